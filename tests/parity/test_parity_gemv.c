/* Products of few rows with codes along K, through the public API, against host_ref: the formats, groups and
 * shapes that the kernel for them serves; scales that its shortest decoding does not serve; and that a row's
 * bits do not depend on the others. */
#include <stdio.h>
#include <string.h>

#include "device/product_case.h"
#include "formats/sample.h"
#include "parity/matrix.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { TRIALS = 40 };

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
static const char *const formats[] = {"int4", "int4_zp", "int4_min",  "int8",      "int8_zp",
                                      "int2", "int2_zp", "nf4",       "fp4_bnb",   "e2m1",
                                      "e4m3", "e5m2",    "plain_f32", "plain_f16", "plain_bf16"};

static int format_count(void)
{
    return LENGTH(formats);
}

static void format_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", formats[index]);
}

static const kernel_row *row_of(const char *format)
{
    char name[64];
    snprintf(name, sizeof name, "dequantize_%s", format);
    return kernel_find(name);
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}
#define PICK(state, list) ((list)[next(state) % LENGTH(list)])

/* Around units, rounds, rings of rounds and tiles. */
static const int64_t ks[] = {64, 128, 192, 256, 320, 512, 768, 1024, 1088, 1280, 2112, 4096, 4416};
static const int64_t ns[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 40};
static const int64_t ms[] = {1, 1, 1, 1, 2, 2, 3, 4, 5, 8, 11, 16};
static const int64_t sizes[] = {16, 32, 64, 128, 256, 96, 512, 1024};
static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const qdnnScaleType_t scales[] = {QDNN_SCALE_F32, QDNN_SCALE_F16, QDNN_SCALE_BF16};
static const qdnnCodeKind_t codes[] = {QDNN_CODE_DEFAULT, QDNN_CODE_OFFSET, QDNN_CODE_UNSIGNED,
                                       QDNN_CODE_TWOS_COMPLEMENT};
static const qdnnDataType_t zeros[] = {QDNN_DATA_U8, QDNN_DATA_I32, QDNN_DATA_F32, QDNN_DATA_F16};

static void pick_scales(uint32_t *state, quant_case *w)
{
    const char *format = kernel_format(w->row)->name;
    kernel_spec *spec = &w->spec;
    bool is_float = strcmp(format, "e2m1") == 0 || strcmp(format, "e4m3") == 0 || strcmp(format, "e5m2") == 0;
    bool is_table = strcmp(format, "nf4") == 0 || strcmp(format, "fp4_bnb") == 0;
    spec->stored.scale = PICK(state, scales);
    if (is_float && next(state) % 2)
        spec->stored.scale = next(state) % 2 ? QDNN_SCALE_E4M3 : QDNN_SCALE_E8M0;
    if (spec->stored.scale == QDNN_SCALE_E4M3)
        spec->stored.global_scale = (int)(next(state) % 3);
    if (is_table && spec->stored.scale == QDNN_SCALE_F32)
        spec->stored.nested = next(state) % 2;
    spec->stored.zero = PICK(state, zeros);
    if (spec->stored.zero == QDNN_DATA_I32 && spec->stored.code == QDNN_CODE_UNSIGNED)
        spec->stored.zero = QDNN_DATA_U32;
    if (spec->stored.zero == QDNN_DATA_U8 && spec->stored.code != QDNN_CODE_UNSIGNED)
        spec->stored.zero = QDNN_DATA_I8;
    if (kernel_format(w->row)->zero_kind == QDNN_ZERO_MINIMUM)
        spec->stored.zero = PICK(state, types);
    spec->stored.zero_packed = kernel_format(w->row)->zero_kind == QDNN_ZERO_POINT && next(state) % 4 == 0;
}

static void pick_groups(uint32_t *state, int64_t k, quant_case *w)
{
    static const qdnnGranularity_t others[] = {QDNN_GRANULARITY_TENSOR, QDNN_GRANULARITY_CHANNEL,
                                               QDNN_GRANULARITY_NONE};
    kernel_spec *spec = &w->spec;
    w->granularity = QDNN_GRANULARITY_GROUP;
    spec->stored.groups = next(state) % 2 ? QDNN_GROUPS_ROWS : QDNN_GROUPS_FLAT;
    w->extent = PICK(state, sizes);
    if (spec->stored.groups == QDNN_GROUPS_FLAT)
        while (k % w->extent != 0)
            w->extent = PICK(state, sizes);
    if (spec->stored.groups == QDNN_GROUPS_ROWS && !spec->stored.nested && next(state) % 3 == 0) {
        spec->stored.scale_order = next(state) % 2 ? QDNN_SCALE_ORDER_TRANSPOSED : QDNN_SCALE_ORDER_DEFAULT;
        spec->stored.scale_swizzle = next(state) % 2 ? QDNN_SWIZZLE_128X4 : QDNN_SWIZZLE_NONE;
        spec->stored.group_rows = next(state) % 2 ? 4 : 1;
    }
    if (next(state) % 5 == 0 && !spec->stored.nested && !spec->stored.global_scale &&
        kernel_format(w->row)->zero_kind == QDNN_ZERO_NONE) {
        w->granularity = PICK(state, others);
        spec->stored.groups = QDNN_GROUPS_FLAT;
        spec->stored.scale_order = QDNN_SCALE_ORDER_DEFAULT;
        spec->stored.scale_swizzle = QDNN_SWIZZLE_NONE;
        spec->stored.group_rows = 1;
        w->extent = 0;
    }
}

static quant_case pick_weights(uint32_t *state, const kernel_row *row, int64_t k, int64_t n)
{
    quant_case w = {.row = row,
                    .spec = kernel_spec_default(),
                    .granularity = QDNN_GRANULARITY_TENSOR,
                    .rank = 2,
                    .dims = {n, k},
                    .kind = DATA_NORMAL,
                    .seed = next(state) % 1000 + 1};
    if (!kernel_takes(row, "groups"))
        return w;
    w.spec.stored.code = kernel_takes(row, "code") ? PICK(state, codes) : QDNN_CODE_DEFAULT;
    pick_scales(state, &w);
    pick_groups(state, k, &w);
    w.spec.stored.layout = next(state) % 3 == 0 ? QDNN_LAYOUT_WORDS_ROWS : QDNN_LAYOUT_BYTES;
    if (w.spec.stored.layout == QDNN_LAYOUT_BYTES && kernel_format(row)->bits == 4 && next(state) % 2)
        w.spec.stored.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    w.callers = next(state) % 3 == 0;
    return w;
}

static product_case case_at(const kernel_row *row, int trial)
{
    uint32_t state = (uint32_t)trial * 2654435761u + 99;
    for (const char *p = row->name; *p; p++)
        state = (state ^ (uint32_t)*p) * 16777619u;
    product_case c = {.rows = -1, .m = PICK(&state, ms), .x = PICK(&state, types), .y = PICK(&state, types)};
    c.gated = trial % 5 == 3;
    int64_t n = PICK(&state, ns), k = PICK(&state, ks);
    if (c.m * n > 64 && k > 2048)
        k = 1088;
    c.weights = pick_weights(&state, row, k, c.gated ? 2 * n : n);
    c.x_gap = trial % 4 == 1 ? 3 : 0;
    c.y_gap = trial % 3 == 2 ? 3 : 0;
    c.alpha = (qdnnAlpha_t)(next(&state) % 4);
    c.bias = next(&state) % 2 ? (int)PICK(&state, types) : 0;
    c.activation = (qdnnActivation_t)(next(&state) % 5);
    c.residual = next(&state) % 2;
    c.kind = trial % 8 == 5   ? DATA_SPECIAL
             : trial % 8 == 7 ? DATA_SUBNORMAL
             : trial % 8 == 6 ? DATA_HUGE
                              : DATA_NORMAL;
    c.seed = next(&state) % 1000 + 1;
    c.shift = trial % 7 == 4 ? 4 : 0;
    if (trial % 6 == 2)
        c.rows = next(&state) % (uint32_t)(c.m + 1);
    return c;
}

/* Whether a kernel of few rows serves the case, as the library decides it. */
static bool is_served(const product_case *c, kernel_product product)
{
    const kernel_row *row = kernel_find_operation(KERNEL_MATMUL, c->weights.row->format);
    kernel_spec spec = c->weights.spec;
    spec.data = c->x;
    spec.epilogue.gated = c->gated;
    spec.product.kernel = product;
    if (c->weights.extent)
        spec.stored.group_size = (uint64_t)c->weights.extent;
    while (spec.product.tile_rows < (uint64_t)c->m)
        spec.product.tile_rows *= 2;
    kernel_problem problem = {
        .rows = (uint64_t)c->weights.dims[0], .columns = (uint64_t)c->weights.dims[1], .m = (uint64_t)c->m};
    return kernel_product_fits(row, &spec, &problem);
}

DEVICE_EACH(ParityGemv, HostRef, format_count, format_name)
{
    const kernel_row *row = row_of(formats[index]);
    int served = 0;
    for (int sm = 0; sm < LENGTH(sms); sm++) {
        qdnnHandle_t handle = device_begin(sms[sm], 0, "all");
        bool alive = handle != NULL;
        for (int i = sm; i < TRIALS && alive; i += LENGTH(sms)) {
            product_case c = case_at(row, i);
            served += is_served(&c, KERNEL_PRODUCT_GEMV);
            alive = product_run(handle, &c, i % 4 == 3 ? BUFFER_EXACT : BUFFER_BANDS);
        }
        device_end(handle);
    }
    CHECK(served > TRIALS / 2);
}

/* ---- Rows of any length, codes of any width ---- */

/* The formats that have codes of 3, 5 and 6 bits, and some whose rows begin anywhere because of K alone. */
static const char *const ragged_formats[] = {"int3", "int3_zp", "int5",      "int5_min", "int6_zp",
                                             "e2m3", "e3m2",    "int4",      "int4_zp",  "int8_zp",
                                             "int2", "nf4",     "plain_f16", "plain_f32"};

static int ragged_count(void)
{
    return LENGTH(ragged_formats);
}

static void ragged_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", ragged_formats[index]);
}

/* Around chunks, units, rounds and turns; groups of multiples of 8, or one for each row. */
static product_case ragged_case_at(const kernel_row *row, int trial)
{
    static const int64_t lengths[] = {1,   7,    8,    33,   64,   255,  257, 300,
                                      520, 1001, 1024, 1027, 1280, 2051, 4097};
    product_case c = case_at(row, trial);
    uint32_t state = c.seed * 2654435761u + (uint32_t)trial;
    const int64_t k = PICK(&state, lengths), some[] = {8, 24, 32, 128, k};
    c.weights.dims[1] = k;
    if (c.weights.granularity == QDNN_GRANULARITY_GROUP && c.weights.extent)
        c.weights.extent = c.weights.spec.stored.groups == QDNN_GROUPS_FLAT ? k : PICK(&state, some);
    if (c.weights.spec.stored.nested)
        c.weights.extent = 64;
    return c;
}

DEVICE_EACH(ParityRagged, HostRef, ragged_count, ragged_name)
{
    const kernel_row *row = row_of(ragged_formats[index]);
    const int trials = sample_is_full() ? 120 : 12;
    int served = 0;
    for (int sm = 0; sm < LENGTH(sms); sm++) {
        qdnnHandle_t handle = device_begin(sms[sm], 0, "all");
        bool alive = handle != NULL;
        for (int i = sm; i < trials && alive; i += LENGTH(sms)) {
            product_case c = ragged_case_at(row, i);
            served += is_served(&c, KERNEL_PRODUCT_RAGGED);
            alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
        }
        device_end(handle);
    }
    CHECK(served > trials / 2);
}

/* ---- A row does not depend on the others ---- */

static product_case batch_case(const char *format, int64_t m)
{
    return (product_case){.weights = {.row = row_of(format),
                                      .spec = kernel_spec_default(),
                                      .granularity = QDNN_GRANULARITY_GROUP,
                                      .extent = 64,
                                      .rank = 2,
                                      .dims = {9, 320},
                                      .seed = 5},
                          .m = m,
                          .rows = -1,
                          .x = QDNN_DATA_F16,
                          .y = QDNN_DATA_F32,
                          .seed = 77};
}

/* Every row of a batch by the device, then its bits against those of the row alone: x of a smaller batch is the beginning
 * of a larger one's. */
DEVICE_CASE(ParityGemv, RowsOfABatchAreRowsAlone)
{
    static const char *const some[] = {"int4", "nf4", "int8_zp", "e4m3"};
    static const int64_t batches[] = {1, 2, 3, 4, 7, 8, 13, 16, 17, 33, 64};
    qdnnHandle_t handle = device_begin("sm_90", 0, "all");
    for (int f = 0; handle && f < LENGTH(some); f++) {
        product_case largest = batch_case(some[f], 64);
        product_operands all;
        CHECK(product_operands_make(&largest, &all));
        for (int i = 0; i < LENGTH(batches); i++) {
            product_case c = batch_case(some[f], batches[i]);
            product_operands o;
            CHECK(product_operands_make(&c, &o));
            CHECK(memcmp(o.host[QDNN_OPERAND_X], all.host[QDNN_OPERAND_X], o.bytes[QDNN_OPERAND_X]) == 0);
            CHECK(memcmp(o.expected, all.expected, o.bytes[QDNN_OPERAND_Y]) == 0);
            CHECK(product_run_operands(handle, &c, BUFFER_EXACT, &o));
            product_operands_free(&o);
        }
        product_operands_free(&all);
    }
    device_end(handle);
}

/* Rows of an odd number of nibbles begin in the middle of a byte, in both orders of nibbles; from sm_100 on
 * they are decoded in another way. */
DEVICE_CASE(ParityRagged, NibblesInBothOrders)
{
    static const char *const some[] = {"sm_80", "sm_100", "sm_120"};
    for (int i = 0; i < LENGTH(some); i++) {
        qdnnHandle_t handle = device_begin(some[i], 0, "all");
        for (int high = 0; handle && high < 2; high++) {
            product_case c = batch_case("int4", 1 + i);
            c.weights.dims[1] = 321;
            c.weights.spec.stored.groups = QDNN_GROUPS_ROWS;
            c.weights.spec.stored.scale = QDNN_SCALE_F16;
            c.weights.spec.stored.nibble_order = high ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
            CHECK(is_served(&c, KERNEL_PRODUCT_RAGGED));
            CHECK(product_run(handle, &c, BUFFER_EXACT));
        }
        device_end(handle);
    }
}

/* ---- Fused is dequantize, then the product ---- */

/* The product of the dequantized weights, as plain f32, has the bits of the fused one. */
static void check_fused(qdnnHandle_t handle, const char *format, int64_t m)
{
    product_case fused = batch_case(format, m), plain = batch_case("plain_f32", m);
    product_operands a, b;
    plain.weights.granularity = QDNN_GRANULARITY_TENSOR;
    plain.weights.extent = 0;
    if (CHECK(product_operands_make(&fused, &a)) && CHECK(product_operands_make(&plain, &b))) {
        const uint8_t *values = a.weights.host[QDNN_OPERAND_Y]; /* as the dequantize operation writes them */
        CHECK_EQ_I64((int64_t)a.weights.bytes[QDNN_OPERAND_Y], (int64_t)b.bytes[QDNN_OPERAND_CODES]);
        memcpy(b.host[QDNN_OPERAND_CODES], values, b.bytes[QDNN_OPERAND_CODES]);
        memcpy(b.host[QDNN_OPERAND_X], a.host[QDNN_OPERAND_X], b.bytes[QDNN_OPERAND_X]);
        memcpy(b.expected, a.expected, b.bytes[QDNN_OPERAND_Y]);
        CHECK(product_run_operands(handle, &fused, BUFFER_EXACT, &a));
        CHECK(product_run_operands(handle, &plain, BUFFER_EXACT, &b));
    }
    product_operands_free(&a);
    product_operands_free(&b);
}

DEVICE_CASE(ParityGemv, FusedIsDequantizeThenProduct)
{
    qdnnHandle_t handle = device_begin("sm_80", 0, "all");
    for (int f = 0; handle && f < LENGTH(formats) && strncmp(formats[f], "plain", 5) != 0; f++) {
        test_push_note("%s", formats[f]);
        check_fused(handle, formats[f], 1 + f % 3);
        test_pop_note();
    }
    device_end(handle);
}

/* ---- The same bits on every SM ---- */

DEVICE_CASE(ParityGemv, TheSameOnEverySm)
{
    static const char *const all[] = {"sm_75",  "sm_80",  "sm_86",  "sm_89", "sm_90",
                                      "sm_100", "sm_103", "sm_110", "sm_120"};
    static const char *const some[] = {"int4", "nf4", "e2m1", "e4m3"};
    for (int i = 0; i < LENGTH(all); i++) {
        qdnnHandle_t handle = device_begin(all[i], 0, "all");
        for (int f = 0; handle && f < LENGTH(some); f++) {
            product_case c = batch_case(some[f], 1 + f);
            c.weights.spec.stored.scale = strcmp(some[f], "e2m1") == 0 ? QDNN_SCALE_E4M3
                                          : i % 2                      ? QDNN_SCALE_F16
                                                                       : QDNN_SCALE_F32;
            CHECK(product_run(handle, &c, BUFFER_EXACT));
        }
        device_end(handle);
    }
}

/* Scales in bf16 that f16 can represent and some that it cannot: the latter are decoded in another way from
 * sm_100 on, and the largest in a third. */
DEVICE_CASE(ParityGemv, ScalesInBf16)
{
    static const char *const some[] = {"sm_90", "sm_100", "sm_120"};
    static const data_kind kinds[] = {DATA_NORMAL, DATA_SUBNORMAL, DATA_HUGE};
    for (int i = 0; i < LENGTH(some); i++) {
        qdnnHandle_t handle = device_begin(some[i], 0, "all");
        for (int k = 0; handle && k < LENGTH(kinds); k++) {
            product_case c = batch_case("int4", 1 + k % 2);
            c.weights.spec.stored.scale = QDNN_SCALE_BF16;
            c.weights.kind = kinds[k];
            CHECK(product_run(handle, &c, BUFFER_EXACT));
            c.weights.granularity = QDNN_GRANULARITY_TENSOR;
            c.weights.extent = 0;
            CHECK(product_run(handle, &c, BUFFER_EXACT));
        }
        device_end(handle);
    }
}
