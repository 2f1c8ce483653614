/* Values in pairs of 16 bits: every format, every code, and where scales have 8 or 16 bits every scale (on one SM; on the others,
 * and for codes of more than 4 bits, every 37th) against host_ref's dequantize, bit for bit. NaN, infinite, negative and subnormal scales are
 * among them. */
#include "test.h"

#include "formats/probe.h"
#include "formats/ref_spec.h"
#include "kernels/formats/pairs.h"

#include <stdlib.h>
#include <string.h>

enum { CODES_MAX = 256, SCALES_MAX = 65536, TYPES = 2 };
static const qdnnDataType_t types[TYPES] = {QDNN_DATA_F16, QDNN_DATA_BF16};
static const qdnnScaleType_t scale_types[] = {QDNN_SCALE_F16, QDNN_SCALE_BF16, QDNN_SCALE_E4M3,
                                              QDNN_SCALE_E8M0, QDNN_SCALE_F32};
static const char *const sms[] = {"sm_75", "sm_80", "sm_89"};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- Cases: a format and a type ---- */

static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++) {
        const format_facts *f = kernel_format(&kernel_rows[i]);
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_DEQUANTIZE && f && f->bits && f->bits <= 8 &&
            index-- == 0)
            return &kernel_rows[i];
    }
    return NULL;
}

static int count(void)
{
    int rows = 0;
    while (row_at(rows))
        rows++;
    return rows * TYPES;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", kernel_format(row_at(index / TYPES))->name, index % TYPES ? "bf16" : "f16");
}

/* ---- What a thread does ---- */

typedef struct pairs_case {
    const kernel_row *row;
    kernel_spec spec;
    unsigned codes, scales;   /* how many of each */
    size_t zero_at, codes_at; /* where they lie in the input; scales come first */
    quantized q;
} pairs_case;

static void open_codec(ptx_builder *b, void *user)
{
    pairs_case *c = user;
    c->q.coding = (coding){c->row->format, &c->spec};
    quantized_open(b, &c->q);
}

/* The place of code k: four to a word. */
static code_place place_of(const ptx_val *quads, unsigned bits, unsigned k)
{
    return (code_place){quads[k / QUAD], bits * (k % QUAD)};
}

/* Pairs of neighbours, then of codes at the same place in neighbouring words, then of neighbours in reverse. */
enum { WAYS = 3 };
static void codes_of_pair(unsigned codes, unsigned way, unsigned pair, unsigned *first, unsigned *second)
{
    *first = 2 * pair + (way == 2);
    *second = 2 * pair + (way == 0);
    if (way == 1)
        *second = (2 * pair + QUAD) % codes;
}

static void decode_all(ptx_builder *b, void *user, ptx_val in, ptx_val out, ptx_val i)
{
    pairs_case *c = user;
    const unsigned bits = kernel_format(c->row)->bits;
    ptx_val quads[CODES_MAX / QUAD];
    c->q.side = (sidecars){.scale = in, .zero = ptx_add(b, in, ptx_u64(b, c->zero_at))};
    for (unsigned k = 0; k < c->codes / QUAD; k++)
        quads[k] = ptx_ld_global(b, PTX_U32, in, (int)(c->codes_at + 4 * k));
    group_values group = group_load(b, &c->q.coding, &c->q.side, ptx_cvt(b, PTX_U64, i));
    pair_group g = pair_group_of(b, &c->q, c->spec.data, &group, &group);
    ptx_val to = ptx_at(b, out, i, 2 * c->codes * WAYS);
    for (unsigned way = 0; way < WAYS; way++)
        for (unsigned pair = 0; pair < c->codes / 2; pair++) {
            unsigned first, second;
            codes_of_pair(c->codes, way, pair, &first, &second);
            ptx_val y = pair_decode(b, &c->q, c->spec.data, &g, place_of(quads, bits, first),
                                    place_of(quads, bits, second));
            ptx_st_global(b, to, (int)(2 * c->codes * way + 4 * pair), y);
        }
}

/* ---- Inputs and what is expected ---- */

static size_t scale_size(qdnnScaleType_t type)
{
    return type == QDNN_SCALE_F32 ? 4 : type == QDNN_SCALE_E4M3 || type == QDNN_SCALE_E8M0 ? 1 : 2;
}

static void fill_input(const pairs_case *c, uint8_t *in)
{
    const size_t size = scale_size(c->spec.stored.scale), zero_size = ref_scalar_size(c->spec.stored.zero);
    const uint32_t step = size == 4 ? 0x9E3779B1u : size == 2 && c->scales < SCALES_MAX ? 37 : 1;
    for (unsigned i = 0; i < c->scales; i++) {
        uint32_t bits = i * step;
        memcpy(in + i * size, &bits, size);
        bits = i * 11;
        if (zero_size == 1)
            in[c->zero_at + i] = (uint8_t)bits;
        else
            ref_scalar_store(c->spec.stored.zero, in + c->zero_at, i, (float)(i % 97) / 8 - 3);
    }
    const unsigned width = kernel_format(c->row)->bits;
    for (unsigned k = 0; k < c->codes; k++) {
        uint32_t word;
        memcpy(&word, in + c->codes_at + k / QUAD * 4, 4);
        word |= (k & ((1u << width) - 1)) << width * (k % QUAD);
        memcpy(in + c->codes_at + k / QUAD * 4, &word, 4);
    }
}

static void dense_codes(const pairs_case *c, uint8_t *codes)
{
    const unsigned width = kernel_format(c->row)->bits;
    for (unsigned k = 0; k < c->codes; k++)
        for (unsigned bit = 0; bit < width; bit++)
            codes[(k * width + bit) / 8] |= (uint8_t)((k >> bit & 1) << (k * width + bit) % 8);
}

static void compare(const pairs_case *c, const uint8_t *in, const uint16_t *out)
{
    ref_quant_spec ref = ref_spec_of(c->row, &c->spec);
    uint8_t codes[CODES_MAX] = {0};
    uint16_t y[CODES_MAX];
    dense_codes(c, codes);
    for (unsigned i = 0; i < c->scales; i++) {
        const ref_arrays arrays = {.codes = codes,
                                   .scale = (void *)(in + i * scale_size(c->spec.stored.scale)),
                                   .zero =
                                       (void *)(in + c->zero_at + i * ref_scalar_size(c->spec.stored.zero))};
        ref_dequantize(&ref, 1, c->codes, &arrays, y);
        for (unsigned way = 0; way < WAYS; way++)
            for (unsigned pair = 0; pair < c->codes / 2; pair++) {
                unsigned first, second;
                codes_of_pair(c->codes, way, pair, &first, &second);
                const uint16_t *at = &out[((size_t)i * WAYS + way) * c->codes + 2 * pair];
                if (at[0] == y[first] && at[1] == y[second])
                    continue;
                FAIL("scale %u, codes %u and %u: %04X %04X, not %04X %04X", i, first, second, at[0], at[1],
                     y[first], y[second]);
                return;
            }
    }
}

static void run_case(pairs_case *c, const char *sm)
{
    c->zero_at = c->scales * (size_t)4;
    c->codes_at = c->zero_at + c->scales * (size_t)4;
    const size_t in_bytes = c->codes_at + c->codes, out_bytes = (size_t)c->scales * c->codes * 2 * WAYS;
    uint8_t *in = calloc(in_bytes, 1), *out = malloc(out_bytes);
    if (CHECK(in && out)) {
        fill_input(c, in);
        const probe p = {.sm = sm,
                         .open = open_codec,
                         .thread = decode_all,
                         .user = c,
                         .threads = c->scales,
                         .in = in,
                         .in_bytes = in_bytes,
                         .out = out,
                         .out_bytes = out_bytes};
        if (probe_run(&p))
            compare(c, in, (const uint16_t *)out);
    }
    free(in);
    free(out);
}

/* ---- The tests ---- */

static bool make_case(const kernel_row *row, qdnnDataType_t data, qdnnScaleType_t scale, qdnnCodeKind_t code,
                      bool all, pairs_case *c)
{
    const unsigned bits = kernel_format(row)->bits;
    char error[512];
    *c = (pairs_case){.row = row, .codes = bits < 3 ? 8 : 1u << bits, .spec = kernel_spec_default()};
    c->spec.data = data;
    c->spec.stored.scale = scale;
    c->spec.stored.code = code;
    c->spec.stored.group_size = c->codes;
    if (!kernel_spec_check(row, &c->spec, error, sizeof error))
        return false;
    c->spec = kernel_spec_normal(row, &c->spec);
    c->scales = scale_size(scale) == 1 ? 256 : SCALES_MAX / 37;
    if (scale_size(scale) == 2 && bits <= 4 && all)
        c->scales = SCALES_MAX;
    return true;
}

static qdnnCodeKind_t code_kind_at(const kernel_row *row, int i)
{
    static const qdnnCodeKind_t kinds[] = {QDNN_CODE_DEFAULT, QDNN_CODE_TWOS_COMPLEMENT, QDNN_CODE_OFFSET};
    return kernel_takes(row, "code") ? kinds[i] : QDNN_CODE_DEFAULT;
}

TEST_EACH(KernelPairs, AreWhatDequantizeWrites, count, name)
{
    const kernel_row *row = row_at(index / TYPES);
    int run = 0;
    for (int s = 0; s < LENGTH(scale_types) * LENGTH(sms); s++) {
        pairs_case c;
        const char *sm = sms[s % LENGTH(sms)];
        if (!make_case(row, types[index % TYPES], scale_types[s / LENGTH(sms)], code_kind_at(row, s % 3),
                       s % LENGTH(sms) == 1, &c))
            continue;
        test_push_note("%s, scale type %d, code kind %d", sm, (int)c.spec.stored.scale,
                       (int)c.spec.stored.code);
        run_case(&c, sm);
        test_pop_note();
        run++;
    }
    CHECK(run > 0);
}

/* Where scales are applied in 16 bits: those cases, and no others. */
static const struct {
    const char *name, *row, *sm;
    qdnnDataType_t data;
    qdnnScaleType_t scale;
    bool is_short;
} known[] = {
    {"int4_f16", "dequantize_int4", "sm_75", QDNN_DATA_F16, QDNN_SCALE_F16, true},
    {"int4_bf16", "dequantize_int4", "sm_80", QDNN_DATA_BF16, QDNN_SCALE_BF16, true},
    {"int4_bf16_on_sm_75", "dequantize_int4", "sm_75", QDNN_DATA_BF16, QDNN_SCALE_BF16, false},
    {"f16_scales_of_bf16", "dequantize_int4", "sm_80", QDNN_DATA_BF16, QDNN_SCALE_F16, false},
    {"bf16_scales_of_f16", "dequantize_int4", "sm_80", QDNN_DATA_F16, QDNN_SCALE_BF16, false},
    {"f32_scales", "dequantize_int4", "sm_80", QDNN_DATA_F16, QDNN_SCALE_F32, false},
    {"int8_zp", "dequantize_int8_zp", "sm_80", QDNN_DATA_BF16, QDNN_SCALE_BF16, true},
    {"minima", "dequantize_int4_min", "sm_80", QDNN_DATA_F16, QDNN_SCALE_F16, false},
    {"nf4", "dequantize_nf4", "sm_80", QDNN_DATA_F16, QDNN_SCALE_F16, false},
    {"nvfp4_f16", "dequantize_e2m1", "sm_80", QDNN_DATA_F16, QDNN_SCALE_E4M3, true},
    {"nvfp4_bf16", "dequantize_e2m1", "sm_80", QDNN_DATA_BF16, QDNN_SCALE_E4M3, true},
    {"mxfp4_bf16", "dequantize_e2m1", "sm_80", QDNN_DATA_BF16, QDNN_SCALE_E8M0, true},
    {"mxfp4_f16", "dequantize_e2m1", "sm_80", QDNN_DATA_F16, QDNN_SCALE_E8M0, false},
    {"fp8_without_instruction", "dequantize_e4m3", "sm_80", QDNN_DATA_F16, QDNN_SCALE_F16, false},
    {"fp8", "dequantize_e4m3", "sm_89", QDNN_DATA_F16, QDNN_SCALE_F16, true},
};

TEST_ROWS(KernelPairs, AreShortWhereThatIsExact, known)
{
    pairs_case c;
    ptx_builder *b = ptx_open(ptx_sm_find(known[index].sm), NULL);
    const kernel_row *row = kernel_find(known[index].row);
    REQUIRE(row && make_case(row, known[index].data, known[index].scale, QDNN_CODE_DEFAULT, false, &c));
    CHECK_EQ_I64(pair_is_short(b, &(coding){row->format, &c.spec}, c.spec.data), known[index].is_short);
    char *text;
    if (ptx_close(b, &text, NULL))
        free(text);
}

/* ---- What they cost ---- */

/* The instructions of a text but for mov: constants, which an assembler keeps in registers or folds. */
static int count_instructions(const char *text)
{
    int count = 0;
    for (const char *line = text; line; line = strchr(line + 1, '\n'))
        count += strcspn(line + 1, ";") < strcspn(line + 1, "\n") &&
                 strncmp(line + 1 + strspn(line + 1, " \t"), "mov.", 4) != 0;
    return count;
}

/* Of one pair of neighbours, short or by way of f32, with what every such kernel has besides. */
static int instructions(const pairs_case *c, const char *sm, bool is_short)
{
    ptx_builder *b = ptx_open(ptx_sm_find(sm), NULL);
    ptx_kernel(b, "count");
    quantized q = {.coding = {c->row->format, &c->spec}};
    group_values group = {.scale = ptx_mov(b, ptx_f32(b, 1)), .zero = ptx_mov(b, ptx_f32(b, 1))};
    ptx_val word = ptx_mov(b, ptx_u32(b, 0)), low, high;
    const unsigned bits = kernel_format(c->row)->bits;
    const codec *codec = c->row->format->codec;
    if (is_short) {
        pair_group g = {.first = group, .second = group};
        g.scale = ptx_mov(b, pair_constant(b, c->spec.data, 1, 1));
        if (kernel_format(c->row)->zero_kind != QDNN_ZERO_NONE)
            g.minus_zero = ptx_mov(b, pair_constant(b, c->spec.data, 1, 1));
        pair_decode(b, &q, c->spec.data, &g, (code_place){word, 0}, (code_place){word, bits});
    } else {
        low = group_decode(b, &q.coding, &q.side, &group, codec->unit(b, &q.coding, &q.state, word, 0));
        high = group_decode(b, &q.coding, &q.side, &group, codec->unit(b, &q.coding, &q.state, word, bits));
        emit_narrow_pair(b, c->spec.data, low, high);
    }
    char *text;
    ptx_error error;
    int count = 0;
    if (!ptx_close(b, &text, &error)) {
        FAIL("%s", error.text);
        return 0;
    }
    count = count_instructions(text);
    free(text);
    return count;
}

/* A conversion of the scale for each group is what they cost more: for two pairs or more they are cheaper. */
TEST_EACH(KernelPairs, TakeFewerInstructions, count, name)
{
    const kernel_row *row = row_at(index / TYPES);
    const qdnnDataType_t data = types[index % TYPES];
    pairs_case c;
    ptx_builder *b = ptx_open(ptx_sm_find("sm_89"), NULL);
    char *text;
    REQUIRE(make_case(row, data, data == QDNN_DATA_F16 ? QDNN_SCALE_F16 : QDNN_SCALE_BF16, QDNN_CODE_DEFAULT,
                      false, &c));
    bool is_short = pair_is_short(b, &(coding){row->format, &c.spec}, data);
    if (ptx_close(b, &text, NULL))
        free(text);
    if (!is_short)
        SKIP("by way of f32 in any case");
    int less = instructions(&c, "sm_89", true), more = instructions(&c, "sm_89", false);
    if (less >= more)
        FAIL("%d instructions, %d by way of f32", less, more);
}
