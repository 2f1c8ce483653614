/* The kernels of mode tensor on ptxvm as every family of SMs against host_ref: S as f32, bit for bit, for every format,
 * orientation and kind of groups, with shapes that are multiples of nothing. */
#include "formats/kernel_data.h"
#include "formats/ref_spec.h"
#include "formats/sample.h"
#include "kernels/operations.h"
#include "kernels/formats/blocks.h"
#include "ptxvm/ptxvm.h"
#include "support/checks.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- Cases ---- */

typedef struct tensor_case {
    const char *name, *format;
    bool k_in_columns; /* w is [N, K] */
    const char *settings[12];
} tensor_case;

#define GPTQ "layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16"
#define AWQ  "layout=awq", "groups=columns", "zero_packed=yes", "scale=f16"
/* clang-format off */
static const tensor_case cases[] = {
    {"int4_rows", "int4", true, {"groups=rows", "scale=f16"}},
    {"int4_rows_32", "int4", true, {"groups=rows", "scale=f16", "group_size=32", "nibble_order=high"}},
    {"int4_rows_24", "int4", true, {"groups=rows", "group_size=24"}},
    {"int4_rows_5", "int4", true, {"groups=rows", "group_size=5", "code=twos"}},
    {"int4_flat", "int4", true, {"scale=bf16", "group_size=64"}},
    {"int4_zp_rows", "int4_zp", true, {"groups=rows", "scale=f16", "zero=u8"}},
    {"int4_zp_float", "int4_zp", true, {"groups=rows", "zero=f32", "group_size=32"}},
    {"int4_min", "int4_min", true, {"groups=rows", "zero=f16", "group_size=32"}},
    {"int4_channel", "int4", true, {"groups=rows", "group_size=1000000"}},
    {"int4_tensor", "int4", true, {"channels=1", "group_size=1000000"}},
    {"int4_block", "int4", false, {"groups=columns", "scale=f16"}},
    {"int4_zp_block_16", "int4_zp", false, {"groups=columns", "group_size=16"}},
    {"int4_block_rows", "int4", false, {"groups=rows", "group_size=32"}},
    {"int4_square", "int4", false, {"groups=rows", "group_size=64", "group_rows=64"}},
    {"int4_stream_rows", "int4", false, {"layout=interleaved", "groups=rows", "group_size=64"}},
    {"int4_stream_n", "int4", true, {"layout=interleaved", "groups=rows", "group_size=32"}},
    {"gptq_2", "int2_zp", false, {GPTQ, "group_size=32"}},
    {"gptq_3", "int3_zp", false, {GPTQ}},
    {"gptq_4", "int4_zp", false, {GPTQ}},
    {"gptq_4_v1", "int4_zp", false, {GPTQ, "zero_minus_one=yes", "group_size=64"}},
    {"gptq_4_index", "int4_zp", false, {GPTQ, "group_index=yes", "group_size=32"}},
    {"gptq_8", "int8_zp", false, {GPTQ, "code=unsigned"}},
    {"awq", "int4_zp", false, {AWQ}},
    {"awq_32", "int4_zp", false, {AWQ, "group_size=32"}},
    {"words_4", "int4_zp", true, {"layout=words", "groups=rows", "zero_packed=yes", "scale=bf16"}},
    {"words_3", "int3_zp", true, {"layout=words", "groups=rows", "zero_packed=yes"}},
    {"int2", "int2", true, {"groups=rows", "group_size=64"}},
    {"int3", "int3", true, {"groups=rows", "group_size=64"}},
    {"int5", "int5_zp", true, {"groups=rows", "group_size=32"}},
    {"int6", "int6_min", true, {"groups=rows", "group_size=32", "zero=f32"}},
    {"int6_block", "int6", false, {"groups=columns", "group_size=32"}},
    {"int8_rows", "int8", true, {"groups=rows", "scale=f16"}},
    {"int8_channel", "int8", false, {"groups=columns", "group_size=1000000"}},
    {"int8_block", "int8_zp", false, {"groups=columns", "zero=f32"}},
    {"nf4", "nf4", true, {"group_size=64"}},
    {"nf4_nested", "nf4", true, {"group_size=64", "nested=yes", "nibble_order=high"}},
    {"fp4_bnb", "fp4_bnb", true, {"group_size=64"}},
    {"nvfp4", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"nvfp4_swizzled", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "scale_swizzle=128x4"}},
    {"nvfp4_block", "e2m1", false, {"groups=columns", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"nvfp4_alpha", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16"}},
    {"nvfp4_alpha_groups", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "scale_order=transposed"}},
    {"nvfp4_alpha_block", "e2m1", false, {"groups=columns", "scale=e4m3", "group_size=16", "scale_order=transposed"}},
    {"mxfp4", "e2m1", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"mxfp6_e2m3", "e2m3", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"mxfp6_e3m2", "e3m2", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"e4m3_tensor", "e4m3", true, {"channels=1", "group_size=1000000"}},
    {"e4m3_f16", "e4m3", true, {"groups=rows", "scale=f16", "group_size=64"}},
    {"e4m3_square", "e4m3", true, {"groups=rows", "group_rows=128"}},
    {"e4m3_none", "e4m3", false, {"groups=none"}},
    {"e5m2_columns", "e5m2", false, {"groups=columns", "group_size=1000000"}},
    {"plain_f32", "plain_f32", true, {NULL}},
    {"plain_f16", "plain_f16", true, {NULL}},
    {"plain_bf16", "plain_bf16", true, {NULL}},
    {"plain_f16_kn", "plain_f16", false, {NULL}},
    {"plain_f32_kn", "plain_f32", false, {NULL}},
    {"q4_0", "gguf_q4_0", true, {NULL}},
    {"q4_1", "gguf_q4_1", true, {NULL}},
    {"q5_0", "gguf_q5_0", true, {NULL}},
    {"q5_1", "gguf_q5_1", true, {NULL}},
    {"q8_0", "gguf_q8_0", true, {NULL}},
    {"q8_1", "gguf_q8_1", true, {NULL}},
    {"q2_k", "gguf_q2_k", true, {NULL}},
    {"q3_k", "gguf_q3_k", true, {NULL}},
    {"q4_k", "gguf_q4_k", true, {NULL}},
    {"q5_k", "gguf_q5_k", true, {NULL}},
    {"q6_k", "gguf_q6_k", true, {NULL}},
    {"q8_k", "gguf_q8_k", true, {NULL}},
    {"iq4_nl", "gguf_iq4_nl", true, {NULL}},
    {"iq4_xs", "gguf_iq4_xs", true, {NULL}},
    {"tq1_0", "gguf_tq1_0", true, {NULL}},
    {"tq2_0", "gguf_tq2_0", true, {NULL}},
    {"mxfp4_gguf", "gguf_mxfp4", true, {NULL}},
    {"nvfp4_gguf", "gguf_nvfp4", true, {NULL}},
};
/* x in FP8 as well. */
static const tensor_case fp8_cases[] = {
    {"e4m3_e4m3", "e4m3", true, {"groups=none", "x_fp8=e4m3"}},
    {"e4m3_e5m2_kn", "e5m2", false, {"groups=none", "x_fp8=e4m3"}},
    {"e5m2_e4m3_kn", "e4m3", false, {"groups=none", "x_fp8=e5m2"}},
    {"e5m2_e5m2", "e5m2", true, {"groups=none", "x_fp8=e5m2"}},
};
/* clang-format on */

static const struct {
    const char *name;
    int sm;
    qdnnDataType_t data;
} families[] = {{"sm_75", 75, QDNN_DATA_F16},   {"sm_80", 80, QDNN_DATA_F16},
                {"sm_89", 89, QDNN_DATA_BF16},  {"sm_90", 90, QDNN_DATA_BF16},
                {"sm_100", 100, QDNN_DATA_F16}, {"sm_120", 120, QDNN_DATA_F16}};

/* ---- Data ---- */

#define ONLY(operand) (1u << QDNN_OPERAND_##operand)
enum { GARBAGE = 0xA5 }; /* what memory holds before a kernel writes it */

typedef struct trial {
    const tensor_case *how;
    const kernel_row *row;
    kernel_spec spec;
    ref_quant_spec ref;
    qdnnDataType_t data;
    int64_t m, n, k;
    int64_t gap;     /* elements between rows of x and of y */
    size_t shift;    /* of every pointer to elements, in elements */
    unsigned only;   /* not 0: of these operands alone (ONLY) */
    data_kind kind;  /* of x */
    int any_codes;   /* rather than those that quantizing gives; of FP8, every so many columns have a NaN */
    bool few_blocks; /* one for all tiles of rows, where the kernel loops over them */
    bool all_strips; /* the sums of strips are added by each of the kernels that can */
    uint8_t *host[QDNN_OPERAND_COUNT];
    int64_t bytes[QDNN_OPERAND_COUNT];
    uint16_t *w16; /* [n][k] */
    float *y;
} trial;

static qdnnDataType_t x_type(const trial *t)
{
    return t->spec.x_fp8 ? (qdnnDataType_t)t->spec.x_fp8 : t->data;
}

static size_t x_bytes(const trial *t)
{
    return t->spec.x_fp8 ? 1 : 2;
}

static bool spec_of(const tensor_case *c, qdnnDataType_t data, kernel_product product, uint64_t tile_rows,
                    kernel_spec *spec, const kernel_row **row)
{
    char name[64], key[32], error[256];
    snprintf(name, sizeof name, "matmul_%s", c->format);
    *row = kernel_find(name);
    *spec = kernel_spec_default();
    if (!CHECK(*row != NULL))
        return false;
    for (int i = 0; c->settings[i]; i++) {
        const char *equals = strchr(c->settings[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(equals - c->settings[i]), c->settings[i]);
        if (!kernel_spec_set(*row, spec, key, equals + 1, error, sizeof error)) {
            FAIL("%s: %s", c->settings[i], error);
            return false;
        }
    }
    spec->data = spec->x_fp8 ? QDNN_DATA_F16 : data;
    spec->product = product;
    spec->tile_rows = tile_rows;
    spec->reduction = c->k_in_columns ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    if (!kernel_spec_check(*row, spec, error, sizeof error)) {
        FAIL("%s", error);
        return false;
    }
    *spec = kernel_spec_normal(*row, spec);
    return true;
}

/* Blocks of any bytes have any scales; those here are of a size that sums can be seen of. */
static void tame_blocks(const block_layout *layout, uint32_t seed, uint8_t *bytes, int64_t total)
{
    for (int64_t at = 0; at + layout->bytes <= total; at += layout->bytes) {
        uint8_t *d = bytes + at + layout->at.scale, *second = bytes + at + layout->at.second;
        seed = seed * 1664525 + 1013904223;
        if (layout->scales == &scales_e8m0)
            d[0] = (uint8_t)(120 + seed / 65536 % 16);
        else if (layout->scales == &scales_f32)
            d[3] = 0x3C;
        else if (layout->scales != &scales_ue4m3)
            d[1] = (uint8_t)((d[1] & 0x83) | 0x20 | (seed / 65536 % 4 << 2));
        if (layout->scales == &scales_f16_min || layout->scales == &scales_q4_k ||
            layout->scales == &scales_q2_k)
            second[1] = (uint8_t)((second[1] & 0x83) | 0x24);
    }
}

/* A code of FP8 that is finite. */
static uint8_t finite_code(qdnnDataType_t storage, uint8_t code)
{
    const uint8_t special = storage == QDNN_DATA_F8E4M3 ? 0x7F : 0x7C;
    return (code & special) == special ? code ^ 0x40 : code;
}

/* Codes of every value. A NaN makes NaN of a whole column: those that have one have it at another k each, and so with infinities. */
static void fill_any_codes(const trial *t, uint32_t seed)
{
    const qdnnDataType_t storage = kernel_format(t->row)->storage;
    uint8_t *codes = t->host[QDNN_OPERAND_CODES];
    fill_bytes(seed, codes, t->bytes[QDNN_OPERAND_CODES]);
    if (storage != QDNN_DATA_F8E4M3 && storage != QDNN_DATA_F8E5M2)
        return;
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t k = 0; k < t->k; k++) {
            uint8_t *code = &codes[t->how->k_in_columns ? n * t->k + k : k * t->n + n];
            *code = finite_code(storage, *code);
            if (k == n * 37 % t->k && n % t->any_codes == 0)
                *code |= n % 8 < 4 ? 0x7F : 0x7C;
        }
}

static void fill_weights(trial *t, uint32_t seed)
{
    const int64_t rows = t->how->k_in_columns ? t->n : t->k, columns = t->how->k_in_columns ? t->k : t->n;
    const block_layout *blocks = block_layout_of(t->row->format);
    ref_arrays arrays = ref_arrays_of(t->host);
    uint8_t *plain = malloc((size_t)(rows * columns * 4) + 1);
    fill_data(DATA_NORMAL, kernel_format(t->row), t->data, seed, plain, rows * columns);
    if (blocks) {
        fill_bytes(seed, t->host[QDNN_OPERAND_CODES], t->bytes[QDNN_OPERAND_CODES]);
        tame_blocks(blocks, seed, t->host[QDNN_OPERAND_CODES], t->bytes[QDNN_OPERAND_CODES]);
    } else {
        int32_t *index = (int32_t *)(void *)t->host[QDNN_OPERAND_GROUP_INDEX];
        float *map = (float *)(void *)t->host[QDNN_OPERAND_NESTED_MAP];
        for (int64_t i = 0; i < t->bytes[QDNN_OPERAND_GROUP_INDEX] / 4; i++)
            index[i] = (int32_t)(i * 7 % ((rows + t->ref.group_size - 1) / t->ref.group_size));
        for (int64_t i = 0; i < t->bytes[QDNN_OPERAND_NESTED_MAP] / 4; i++)
            map[i] = (float)(i - 100) / 128;
        if (t->bytes[QDNN_OPERAND_NESTED_OFFSET])
            ((float *)(void *)t->host[QDNN_OPERAND_NESTED_OFFSET])[0] = 0.25f;
        if (!format_is_plain(t->row->format))
            ref_scale(&t->ref, rows, columns, plain, &arrays);
        ref_quantize(&t->ref, rows, columns, plain, &arrays);
        if (t->any_codes && !format_is_plain(t->row->format))
            fill_any_codes(t, seed + 2);
    }
    ref_dequantize(&t->ref, rows, columns, &arrays, plain);
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t k = 0; k < t->k; k++)
            t->w16[n * t->k + k] =
                ((uint16_t *)(void *)plain)[t->how->k_in_columns ? n * t->k + k : k * t->n + n];
    free(plain);
}

/* Special data in FP8 are any codes. */
static void fill_x(const trial *t, uint32_t seed)
{
    uint8_t *x = t->host[QDNN_OPERAND_X];
    const int64_t count = t->m * (t->k + t->gap);
    if (!t->spec.x_fp8) {
        fill_data(t->kind, NULL, t->data, seed, x, count);
        return;
    }
    fill_bytes(seed, x, count);
    for (int64_t i = 0; i < count && t->kind != DATA_SPECIAL; i++)
        x[i] = finite_code(x_type(t), x[i]);
}

/* With x in FP8, weights are used as they are; otherwise rounded to the type of x. */
static void multiply(const trial *t, int sm)
{
    const bool is_fp8 = t->spec.x_fp8;
    const ref_quant_spec rounded = {.storage = t->data, .data = t->data};
    const ref_product product = {.m = t->m,
                                 .k = t->k,
                                 .outputs = t->n,
                                 .k_rows = is_fp8 && !t->how->k_in_columns,
                                 .weights = is_fp8 ? t->ref : rounded,
                                 .x = x_type(t),
                                 .y = QDNN_DATA_F32,
                                 .x_stride = t->k + t->gap,
                                 .y_stride = t->n + t->gap};
    const ref_product_arrays arrays = {
        .x = t->host[QDNN_OPERAND_X],
        .weights = {.codes = is_fp8 ? (void *)t->host[QDNN_OPERAND_CODES] : (void *)t->w16},
        .y = t->y};
    ref_product_tensor_on(&product, &arrays, sm);
}

static void fill_trial(trial *t, int sm, uint32_t seed)
{
    const int64_t rows = t->how->k_in_columns ? t->n : t->k, columns = t->how->k_in_columns ? t->k : t->n;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        t->bytes[i] = i == QDNN_OPERAND_X   ? t->m * (t->k + t->gap) * (int64_t)x_bytes(t)
                      : i == QDNN_OPERAND_Y ? t->m * (t->n + t->gap) * 4
                                            : ref_operand_bytes(&t->ref, rows, columns, i);
        t->host[i] = calloc((size_t)t->bytes[i] + 8, 1);
    }
    t->w16 = malloc((size_t)(t->n * t->k) * 2 + 2);
    fill_weights(t, seed);
    fill_x(t, seed + 1);
    t->y = (float *)(void *)t->host[QDNN_OPERAND_Y];
    memset(t->y, GARBAGE, (size_t)t->bytes[QDNN_OPERAND_Y]);
    multiply(t, sm);
    int64_t finite = 0;
    for (int64_t i = 0; i < t->m * t->n; i++)
        finite += isfinite(t->y[i / t->n * (t->n + t->gap) + i % t->n]);
    CHECK(2 * finite > t->m * t->n || t->kind != DATA_NORMAL || t->any_codes);
}

static void free_trial(trial *t)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(t->host[i]);
    free(t->w16);
}

/* ---- The launch ---- */

typedef struct device {
    ptxvm *vm;
    const ptx_sm *sm;
    ptxvm_address base[QDNN_OPERAND_COUNT + 1], at[QDNN_OPERAND_COUNT + 1]; /* the last is the workspace */
    uint64_t *conflicts; /* not null: those of banks are added to it */
} device;

static size_t set_params(const kernel_step *step, const device *d, uint8_t *params)
{
    size_t bytes = 0;
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        const uint64_t value = p->kind == KERNEL_NUMBER    ? p->value
                               : p->kind == KERNEL_OPERAND ? d->at[p->operand]
                                                           : d->at[QDNN_OPERAND_COUNT] + p->value;
        const size_t size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        bytes = (bytes + size - 1) / size * size;
        memcpy(params + bytes, &value, size);
        bytes += size;
    }
    return bytes;
}

static void launch(const device *d, const kernel_step *step)
{
    uint8_t params[8 * KERNEL_PARAMS_MAX];
    char entry[64];
    kernel_text text;
    ptx_error error;
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    if (!kernel_emit(step->row, &step->spec, d->sm, NULL, &text, &error)) {
        FAIL("%s", error.text);
        return;
    }
    kernel_entry_name(step->row, entry, sizeof entry);
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    size_t bytes = set_params(step, d, params);
    if (ptxvm_module_load(d->vm, text.ptx, strlen(text.ptx), &module) != PTXVM_OK ||
        ptxvm_module_kernel(module, entry, &kernel) != PTXVM_OK ||
        ptxvm_launch(d->vm, kernel, &config, params, bytes) != PTXVM_OK)
        FAIL("%s", ptxvm_last_error(d->vm));
    else if (d->conflicts)
        *d->conflicts += ptxvm_last_counters(d->vm)->total.bank_conflicts;
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
}

static kernel_problem problem_of(const trial *t)
{
    const bool columns = t->how->k_in_columns;
    return (kernel_problem){.rows = (uint64_t)(columns ? t->n : t->k),
                            .columns = (uint64_t)(columns ? t->k : t->n),
                            .m = (uint64_t)t->m,
                            .x_stride = (uint64_t)(t->k + t->gap),
                            .y_stride = (uint64_t)(t->n + t->gap)};
}

static void make_buffers(const trial *t, device *d, uint64_t workspace)
{
    for (int o = 0; o < QDNN_OPERAND_COUNT; o++) {
        const bool prepacked = t->spec.product == KERNEL_PRODUCT_STREAM && o == QDNN_OPERAND_CODES;
        const size_t element = o == QDNN_OPERAND_Y   ? 4
                               : o == QDNN_OPERAND_X ? x_bytes(t)
                                                     : ref_element_bytes(&t->ref, o);
        const bool stays = prepacked || (t->only && !(t->only >> o & 1));
        const size_t shift = stays ? 0 : t->shift * element;
        if (!t->bytes[o])
            continue;
        CHECK(ptxvm_alloc(d->vm, (uint64_t)t->bytes[o] + shift, &d->base[o]) == PTXVM_OK);
        d->at[o] = d->base[o] + shift;
        if (o == QDNN_OPERAND_Y)
            CHECK(ptxvm_fill(d->vm, d->at[o], GARBAGE, (uint64_t)t->bytes[o]) == PTXVM_OK);
        else
            CHECK(ptxvm_write(d->vm, d->at[o], t->host[o], (uint64_t)t->bytes[o]) == PTXVM_OK);
    }
    if (workspace)
        CHECK(ptxvm_alloc(d->vm, workspace, &d->base[QDNN_OPERAND_COUNT]) == PTXVM_OK);
    d->at[QDNN_OPERAND_COUNT] = d->base[QDNN_OPERAND_COUNT];
}

static void check_y(const trial *t, const device *d)
{
    const uint64_t bytes = (uint64_t)t->bytes[QDNN_OPERAND_Y];
    float *actual = malloc((size_t)bytes + 1);
    CHECK(ptxvm_read(d->vm, actual, d->at[QDNN_OPERAND_Y], bytes) == PTXVM_OK);
    CHECK_EQ_MEM(actual, t->y, (size_t)bytes);
    free(actual);
}

static void launch_step(const trial *t, const device *d, kernel_step *step)
{
    if (t->few_blocks && step->spec.product != KERNEL_PRODUCT_STREAM)
        step->grid[1] = 1;
    launch(d, step);
}

/* The kernel that adds strips up, with every number of rows that its threads may have. */
static void run_strips(const trial *t, const device *d, const kernel_step *step)
{
    for (uint64_t rows = 1; rows <= 4 && t->all_strips; rows *= 2) {
        kernel_step own = *step;
        if (rows == step->spec.tile_rows)
            continue;
        own.spec.tile_rows = rows;
        own.grid[1] = ((uint64_t)t->m + rows - 1) / rows;
        CHECK(ptxvm_fill(d->vm, d->at[QDNN_OPERAND_Y], GARBAGE, (uint64_t)t->bytes[QDNN_OPERAND_Y]) ==
              PTXVM_OK);
        test_push_note("strips of %d rows", (int)rows);
        launch_step(t, d, &own);
        check_y(t, d);
        test_pop_note();
    }
}

static void run_steps(const trial *t, device *d)
{
    kernel_problem problem = problem_of(t);
    kernel_steps steps;
    kernel_steps_of(t->row, &t->spec, &problem, &steps);
    make_buffers(t, d, steps.workspace);
    for (int i = 0; i < steps.count; i++)
        launch_step(t, d, &steps.at[i]);
    check_y(t, d);
    if (t->spec.product == KERNEL_PRODUCT_STREAM)
        run_strips(t, d, &steps.at[steps.count - 1]);
    for (int o = 0; o <= QDNN_OPERAND_COUNT; o++)
        if (d->base[o])
            ptxvm_free(d->vm, d->base[o]);
}

/* Codes in the order of tensor cores take the place of those as stored. */
static void prepack_codes(trial *t)
{
    const bool columns = t->how->k_in_columns;
    const int64_t bytes = ref_prepacked_bytes(&t->ref, t->n, t->k);
    uint8_t *packed = malloc((size_t)bytes + 1), *codes = t->host[QDNN_OPERAND_CODES];
    ref_prepack(&t->ref, columns ? t->n : t->k, columns ? t->k : t->n, !columns, codes, packed);
    free(codes);
    t->host[QDNN_OPERAND_CODES] = packed;
    t->bytes[QDNN_OPERAND_CODES] = bytes;
}

/* ---- Tests ---- */

static int case_count(void)
{
    return LENGTH(cases) * LENGTH(families);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", cases[index / LENGTH(families)].name,
             families[index % LENGTH(families)].name);
}

typedef struct shape {
    int64_t m, n, k;
    size_t shift;
    uint64_t tile_rows;
    data_kind kind;
    bool few_blocks;
    int64_t gap;
    int any_codes;
    bool all_strips;
    unsigned only;
} shape;

static void run_shape(ptxvm *vm, const tensor_case *c, int family, kernel_product product, shape s,
                      uint32_t seed)
{
    trial t = {.how = c,
               .data = families[family].data,
               .m = s.m,
               .n = s.n,
               .k = s.k,
               .shift = s.shift,
               .only = s.only,
               .gap = s.gap,
               .kind = s.kind,
               .any_codes = s.any_codes,
               .few_blocks = s.few_blocks,
               .all_strips = s.all_strips};
    device d = {.vm = vm, .sm = ptx_sm_find(families[family].name)};
    if (!spec_of(c, t.data, product, s.tile_rows, &t.spec, &t.row))
        return;
    t.ref = ref_spec_of(t.row, &t.spec);
    test_push_note("M %d, N %d, K %d, shift %d, tiles of %d rows", (int)s.m, (int)s.n, (int)s.k, (int)s.shift,
                   (int)s.tile_rows);
    fill_trial(&t, families[family].sm, seed);
    if (product == KERNEL_PRODUCT_STREAM)
        prepack_codes(&t);
    run_steps(&t, &d);
    free_trial(&t);
    test_pop_note();
}

static ptxvm *vm_for(int index)
{
    ptxvm *vm = NULL;
    ptxvm_config config = {.sm = families[index % LENGTH(families)].name,
                           .threads = 1,
                           .seed = (uint64_t)(index % 2),
                           .checks = EVERY_CHECK};
    CHECK(ptxvm_create(&config, &vm) == PTXVM_OK);
    return vm;
}

TEST_EACH(TensorTile, HostRef, case_count, case_name)
{
    const tensor_case *c = &cases[index / LENGTH(families)];
    const int family = index % LENGTH(families);
    const kernel_row *row;
    kernel_spec spec;
    REQUIRE(spec_of(c, families[family].data, KERNEL_PRODUCT_TILE, 16, &spec, &row));
    ptxvm *vm = vm_for(index);
    const int64_t multiple = (int64_t)kernel_columns_multiple(row);
    const bool is_blocks = multiple > 1, is_awq = spec.layout == QDNN_LAYOUT_AWQ;
    const uint64_t largest = kernel_tile_rows(row, 1000);
    const int64_t long_k = !is_blocks ? 608 : multiple == 256 ? 768 : 512 + 3 * multiple;
    const shape shapes[] = {{.m = 5, .n = 40, .k = long_k, .tile_rows = 16},
                            {.m = 35, .n = 144, .k = is_blocks ? 2 * multiple : 96, .tile_rows = largest},
                            {.m = 19,
                             .n = is_awq ? 24 : 21,
                             .k = is_blocks ? multiple : 77,
                             .shift = 1,
                             .tile_rows = largest > 32 ? 32 : largest}};
    for (int i = 0; i < LENGTH(shapes) && vm; i++)
        run_shape(vm, c, family, KERNEL_PRODUCT_TILE, shapes[i], (uint32_t)(index + 100 * i));
    ptxvm_destroy(vm);
}

TEST_EACH(TensorStream, HostRef, case_count, case_name)
{
    const tensor_case *c = &cases[index / LENGTH(families)];
    const int family = index % LENGTH(families);
    const kernel_row *row;
    kernel_spec spec;
    char error[256];
    REQUIRE(spec_of(c, families[family].data, KERNEL_PRODUCT_STREAM, 8, &spec, &row));
    if (!kernel_is_emitted(row, &spec, error, sizeof error))
        SKIP("%s", error);
    ptxvm *vm = vm_for(index);
    const bool flat = spec.groups == QDNN_GROUPS_FLAT && spec.channels != 1,
               is_awq = spec.layout == QDNN_LAYOUT_AWQ;
    const int64_t multiple = (int64_t)kernel_columns_multiple(row);
    const int64_t odd_k = multiple > 1 ? 3 * multiple : flat ? (int64_t)spec.group_size * 3 : 77;
    const shape shapes[] = {
        /* 9: a whole tile, and one row */
        {.m = index % 2 ? 9 : 1, .n = 40, .k = 1024 + (multiple > 64 ? multiple : 64), .tile_rows = 8},
        {.m = index % 2 ? 67 : 35, .n = 304, .k = 512, .tile_rows = index % 2 ? 128 : 64},
        {.m = 19, .n = is_awq ? 24 : 21, .k = odd_k, .shift = 1, .tile_rows = 16}};
    const int i = (index / LENGTH(families) + family) % LENGTH(shapes); /* each with two of the families */
    if (vm)
        run_shape(vm, c, family, KERNEL_PRODUCT_STREAM, shapes[i], (uint32_t)(index + 100 * i));
    ptxvm_destroy(vm);
}

/* Tiles of 128 rows have room for 128 k of x beside a table: less than a super-block, which goes on behind them. */
TEST_CASE(TensorStream, ShortStripsOfTallTiles)
{
    enum { FAMILY = 3 };
    int ran = 0;
    ptxvm *vm = vm_for(FAMILY);
    for (int i = 0; i < LENGTH(cases) && vm; i++) {
        const kernel_row *row;
        kernel_spec spec;
        REQUIRE(spec_of(&cases[i], families[FAMILY].data, KERNEL_PRODUCT_STREAM, 8, &spec, &row));
        const int64_t multiple = (int64_t)kernel_columns_multiple(row);
        if (multiple != 256 || kernel_stream_rows(row, false, 128) < 128)
            continue;
        for (int64_t blocks = 1; blocks <= 3; blocks += 2)
            run_shape(vm, &cases[i], FAMILY, KERNEL_PRODUCT_STREAM,
                      (shape){.m = 67, .n = 40, .k = blocks * multiple, .tile_rows = 128},
                      (uint32_t)(i + blocks));
        ran++;
    }
    CHECK_EQ_I64(ran, 2); /* Q4_K and IQ4_XS */
    ptxvm_destroy(vm);
}

/* ---- Trials ---- */

/* Each text with many shapes, so that a mistake in any line of it shows (docs/mutation.md): tiles that are full and that are cut, K within a
 * step, of whole strips and between, pointers that are not aligned, infinities and NaN, every code. K is the next multiple that the format
 * takes. The default suite tries every fifth. */
static const struct {
    int rows; /* of the tile, plus so many; from -99 on: 1, 2, ... */
    int64_t n, k;
    size_t shift;
    data_kind kind;
    int64_t gap;
    int any_codes;
    unsigned only; /* operands that are shifted; 0: all */
} trials[] = {
    {0, 40, 608, 0, DATA_NORMAL, 0, 0, 0},
    {-1, 136, 96, 0, DATA_NORMAL, 8, 4, 0},
    {1, 24, 77, 1, DATA_NORMAL, 0, 0, 0},
    {-99, 72, 1100, 0, DATA_NORMAL, 0, 4, 0},
    {0, 8, 16, 0, DATA_SPECIAL, 0, 0, 0},
    {-3, 264, 64, 0, DATA_NORMAL, 0, 4, 0},
    {-5, 16, 1024, 0, DATA_HUGE, 4, 0, 0},
    {-2, 48, 136, 1, DATA_NORMAL, 0, 4, 0},
    {0, 128, 128, 0, DATA_NORMAL, 1, 0, 0},
    {-6, 8, 1, 0, DATA_NORMAL, 0, 0, 0},
    {-1, 88, 2060, 0, DATA_NORMAL, 0, 4, 0},
    {0, 56, 320, 3, DATA_NORMAL, 0, 0, 0},
    {-4, 21, 33, 0, DATA_NORMAL, 3, 4, 0},
    {-7, 1, 520, 2, DATA_NORMAL, 0, 0, 0},
    {-5, 23, 2500, 0, DATA_NORMAL, 0, 0, 0},
    {-2, 42, 1500, 0, DATA_NORMAL, 6, 0, 0},
    {-99, 21, 2060, 0, DATA_NORMAL, 0, 0, 0},
    {-99, 42, 4200, 0, DATA_NORMAL, 0, 4, 0},
    {-3, 13, 5000, 0, DATA_SPECIAL, 0, 0, 0},
    {-1, 40, 1100, 1, DATA_NORMAL, 0, 0, 0},
    {70, 16, 80, 0, DATA_NORMAL, 0, 4, 0},
    {-97, 43, 2304, 0, DATA_NORMAL, 5, 0, 0},
    {-95, 16, 5632, 0, DATA_NORMAL, 4, 4, 0},
    {-98, 520, 512, 0, DATA_NORMAL, 0, 4, 0},
    {0, 264, 512, 0, DATA_NORMAL, 16, 4, 0},
    {-96, 515, 1024, 0, DATA_NORMAL, 1, 0, 0},
    {-94, 36, 8192, 0, DATA_SUBNORMAL, 0, 0, 0},
    {0, 64, 1152, 0, DATA_NORMAL, 0, 4, 0},
    {-2, 96, 2080, 0, DATA_NORMAL, 8, 0, 0},
    {-97, 40, 1025, 0, DATA_NORMAL, 7, 0, 0},
    {-97, 24, 520, 2, DATA_NORMAL, 0, 0, 0},
    {-98, 520, 512, 0, DATA_NORMAL, 0, 1, 0},
    {-92, 32, 552, 0, DATA_NORMAL, 0, 0, 0},
    {-2, 64, 576, 1, DATA_NORMAL, 0, 0, ONLY(X)},
    {-1, 64, 544, 1, DATA_NORMAL, 0, 0, ONLY(CODES)},
    {-3, 64, 96, 1, DATA_NORMAL, 0, 0, ONLY(Y)},
    {-1, 32, 160, 1, DATA_NORMAL, 0, 0, ONLY(SCALE) | ONLY(ZERO)},
    {-2, 64, 192, 8, DATA_NORMAL, 0, 0, ONLY(CODES)},
    {0, 32, 96, 4, DATA_NORMAL, 0, 0, ONLY(X)},
};
enum { EXACT_ROWS = 100 };

static int64_t trial_k(const kernel_spec *spec, const kernel_row *row, int i)
{
    const bool flat = spec->groups == QDNN_GROUPS_FLAT && spec->channels != 1;
    const int64_t blocks = (int64_t)kernel_columns_multiple(row),
                  groups = flat ? (int64_t)spec->group_size : 1;
    const int64_t multiple = blocks > 1 ? blocks : groups < 1000 ? groups : 1;
    return (trials[i].k + multiple - 1) / multiple * multiple;
}

/* By default few formats, and few shapes of each. */
static int trial_count(void)
{
    return sample_is_full() ? case_count() : LENGTH(families);
}

static int trial_case(int index)
{
    return sample_is_full() ? index : index * (11 * LENGTH(families) + 1) % case_count();
}

static void trial_name(int index, char *text, size_t size)
{
    case_name(trial_case(index), text, size);
}

static uint64_t rows_of_tile(const kernel_row *row, kernel_product product, int turn)
{
    static const uint64_t stream_rows[] = {8, 16, 32, 64, 128}, tile_rows[] = {16, 32, 64, 128};
    return product == KERNEL_PRODUCT_STREAM ? kernel_stream_rows(row, false, stream_rows[turn % 5])
                                            : kernel_tile_rows(row, tile_rows[turn % 4]);
}

/* By default every fifth trial, from another on with each index. */
static void run_trials(const tensor_case *c, int family, kernel_product product, int turn, int index)
{
    const kernel_row *row;
    kernel_spec spec;
    char error[256];
    REQUIRE(
        spec_of(c, families[family].data, product, product == KERNEL_PRODUCT_STREAM ? 8 : 16, &spec, &row));
    if (!kernel_is_emitted(row, &spec, error, sizeof error))
        SKIP("%s", error);
    const uint64_t rows = rows_of_tile(row, product, turn);
    ptxvm *vm = vm_for(turn / LENGTH(families) * LENGTH(families) + family);
    for (int i = sample_is_full() ? 0 : index % 5; i < LENGTH(trials) && vm; i += sample_is_full() ? 1 : 5) {
        const int64_t m = trials[i].rows + (trials[i].rows <= -90 ? EXACT_ROWS : (int64_t)rows);
        const int64_t n = spec.layout == QDNN_LAYOUT_AWQ ? (trials[i].n + 7) / 8 * 8 : trials[i].n;
        run_shape(vm, c, family, product,
                  (shape){.m = m > 0 ? m : 1,
                          .n = n,
                          .k = trial_k(&spec, row, i),
                          .shift = trials[i].shift,
                          .only = trials[i].only,
                          .tile_rows = rows,
                          .kind = trials[i].kind,
                          .few_blocks = trials[i].rows > 1 || trials[i].gap == 5,
                          .gap = trials[i].gap,
                          .any_codes = trials[i].any_codes,
                          .all_strips = true},
                  (uint32_t)(turn + 100 * i));
    }
    ptxvm_destroy(vm);
}

static void run_case(int index, kernel_product product)
{
    const int at = trial_case(index);
    run_trials(&cases[at / LENGTH(families)], at % LENGTH(families), product, at, index);
}

TEST_EACH(TensorTile, Trials, trial_count, trial_name)
{
    run_case(index, KERNEL_PRODUCT_TILE);
}

TEST_EACH(TensorStream, Trials, trial_count, trial_name)
{
    run_case(index, KERNEL_PRODUCT_STREAM);
}

/* x in FP8: every other index is prepacked. */
static int fp8_count(void)
{
    return sample_is_full() ? 2 * LENGTH(fp8_cases) * LENGTH(families) : LENGTH(families);
}

static int fp8_case(int index)
{
    return (index / LENGTH(families) + index) % (2 * LENGTH(fp8_cases));
}

static void fp8_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%s", fp8_case(index) % 2 ? "stream" : "tile",
             fp8_cases[fp8_case(index) / 2].name, families[index % LENGTH(families)].name);
}

TEST_EACH(TensorFp8, Trials, fp8_count, fp8_name)
{
    const int at = fp8_case(index);
    run_trials(&fp8_cases[at / 2], index % LENGTH(families),
               at % 2 ? KERNEL_PRODUCT_STREAM : KERNEL_PRODUCT_TILE, index, index);
}

/* ---- Prepacking ---- */

static int dense_count(void)
{
    return LENGTH(cases);
}

static void dense_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", cases[index].name);
}

/* One launch between two buffers, of which the second starts as garbage. The kernels take any number of blocks along the dimension of
 * the grid that they loop over: unpacking the second, but for blocks and plain values. */
static void move_codes(ptxvm *vm, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem, const uint8_t *codes, int64_t code_bytes,
                       const uint8_t *packed, int64_t packed_bytes, bool has_few_blocks)
{
    device d = {.vm = vm, .sm = ptx_sm_find("sm_75")};
    const int from = spec->unpack ? QDNN_OPERAND_REPACKED : QDNN_OPERAND_CODES;
    const int to = spec->unpack ? QDNN_OPERAND_CODES : QDNN_OPERAND_REPACKED;
    const int64_t bytes[2] = {spec->unpack ? packed_bytes : code_bytes,
                              spec->unpack ? code_bytes : packed_bytes};
    const uint8_t *expected = spec->unpack ? codes : packed;
    const int loops_over = spec->unpack && !block_layout_of(row->format) && !format_is_plain(row->format);
    uint8_t *actual = malloc((size_t)bytes[1] + 1);
    kernel_steps steps;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(row, spec, problem, operands);
    CHECK_EQ_I64((int64_t)operands[from].bytes, bytes[0]);
    CHECK_EQ_I64((int64_t)operands[to].bytes, bytes[1]);
    CHECK(operands[from].reads && operands[to].writes && !operands[from].writes && !operands[to].reads);
    CHECK(ptxvm_alloc(vm, (uint64_t)bytes[0], &d.at[from]) == PTXVM_OK);
    CHECK(ptxvm_alloc(vm, (uint64_t)bytes[1], &d.at[to]) == PTXVM_OK);
    CHECK(ptxvm_write(vm, d.at[from], spec->unpack ? packed : codes, (uint64_t)bytes[0]) == PTXVM_OK);
    CHECK(ptxvm_fill(vm, d.at[to], GARBAGE, (uint64_t)bytes[1]) == PTXVM_OK);
    kernel_steps_of(row, spec, problem, &steps);
    for (int i = 0; i < steps.count; i++) {
        uint64_t *blocks = &steps.at[i].grid[loops_over];
        *blocks = has_few_blocks ? (*blocks + 1) / 2 : *blocks;
        launch(&d, &steps.at[i]);
    }
    CHECK(ptxvm_read(vm, actual, d.at[to], (uint64_t)bytes[1]) == PTXVM_OK);
    CHECK_EQ_MEM(actual, expected, (size_t)bytes[1]);
    ptxvm_free(vm, d.at[from]);
    ptxvm_free(vm, d.at[to]);
    free(actual);
}

/* Codes of every layout to units and back: n columns, and k or so many blocks. */
static void there_and_back(ptxvm *vm, int index, int64_t n, int64_t k, int64_t blocks, bool has_few_blocks)
{
    trial t = {.how = &cases[index], .data = QDNN_DATA_F16, .m = 1, .n = n, .k = k};
    REQUIRE(spec_of(t.how, t.data, KERNEL_PRODUCT_TILE, 16, &t.spec, &t.row));
    const kernel_row *row = kernel_find_prepack(t.row->format);
    if (block_layout_of(row->format))
        t.k = blocks * (int64_t)kernel_columns_multiple(row);
    t.ref = ref_spec_of(t.row, &t.spec);
    test_push_note("N %d, K %d", (int)t.n, (int)t.k);
    fill_trial(&t, 75, (uint32_t)index);
    const bool columns = t.how->k_in_columns;
    const int64_t code_bytes = t.bytes[QDNN_OPERAND_CODES];
    uint8_t *codes = malloc((size_t)code_bytes + 1), *back = malloc((size_t)code_bytes + 1);
    memcpy(codes, t.host[QDNN_OPERAND_CODES], (size_t)code_bytes);
    prepack_codes(&t);
    ref_unpack(&t.ref, columns ? t.n : t.k, columns ? t.k : t.n, !columns, t.host[QDNN_OPERAND_CODES], back);
    CHECK_EQ_MEM(back, codes, (size_t)code_bytes);
    kernel_problem problem = problem_of(&t);
    for (int unpack = 0; unpack < 2; unpack++) {
        kernel_spec spec = t.spec;
        spec.unpack = unpack;
        spec = kernel_spec_normal(row, &spec);
        CHECK_EQ_I64(spec.unpack, unpack);
        move_codes(vm, row, &spec, &problem, codes, code_bytes, t.host[QDNN_OPERAND_CODES],
                   t.bytes[QDNN_OPERAND_CODES], has_few_blocks);
    }
    free(codes);
    free(back);
    free_trial(&t);
    test_pop_note();
}

/* Rows of bytes may have any length; words hold several columns. */
static bool takes_any_n(const tensor_case *how)
{
    for (int i = 0; i < LENGTH(how->settings) && how->settings[i]; i++)
        if (strncmp(how->settings[i], "layout=", 7) == 0)
            return false;
    return true;
}

/* Whole units and not, with as many blocks as usual and with half of them; the first shapes alone by default. */
TEST_EACH(TensorPrepack, ThereAndBack, dense_count, dense_name)
{
    static const int64_t shapes[][3] = {
        {88, 200, 3},  {40, 331, 2},  {24, 77, 1},  {8, 16, 2},   {136, 512, 4}, {64, 64, 9},   {16, 1, 5},
        {256, 96, 17}, {56, 1024, 6}, {72, 129, 1}, {48, 11, 3},  {32, 257, 2},  {104, 130, 1}, {8, 27, 4},
        {16, 158, 7},  {168, 61, 2},  {24, 383, 3}, {80, 255, 5}, {8, 2, 10},    {40, 35, 1}};
    char name[64];
    snprintf(name, sizeof name, "matmul_%s", cases[index].format);
    if (!kernel_find_prepack(kernel_find(name)->format))
        SKIP("%s is not prepacked", cases[index].format);
    const bool is_any_n = block_layout_of(kernel_find(name)->format) || takes_any_n(&cases[index]);
    ptxvm *vm = vm_for(0);
    for (int i = 0; i < (sample_is_full() ? LENGTH(shapes) : 2) && vm; i++)
        there_and_back(vm, index, shapes[i][0] - (is_any_n ? (i + 3) % 8 : 0), shapes[i][1], shapes[i][2],
                       i % 2 == 1);
    ptxvm_destroy(vm);
}

/* ---- Counters ---- */

/* FP8 with FP8, of zeros, on which no count depends. */
static void check_no_conflicts(const char *sm, kernel_product product, bool k_in_columns)
{
    const ptxvm_config config = {.sm = sm, .threads = 1, .counters = PTXVM_COUNTERS_KERNEL};
    const kernel_row *row = kernel_find("matmul_e4m3");
    const kernel_problem problem = {.rows = 256, .columns = 256, .m = 32, .x_stride = 256, .y_stride = 256};
    uint64_t conflicts = 0;
    device d = {.sm = ptx_sm_find(sm), .conflicts = &conflicts};
    kernel_spec spec = kernel_spec_default();
    kernel_steps steps;
    spec.product = product;
    spec.tile_rows = 32;
    spec.groups = QDNN_GROUPS_DEFAULT;
    spec.x_fp8 = QDNN_DATA_F8E4M3;
    spec.reduction = k_in_columns ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    kernel_steps_of(row, &spec, &problem, &steps);
    REQUIRE(ptxvm_create(&config, &d.vm) == PTXVM_OK);
    const uint64_t bytes = 256 * 256 * 4;
    for (int o = 0; o <= QDNN_OPERAND_COUNT; o++)
        CHECK(ptxvm_alloc(d.vm, bytes, &d.at[o]) == PTXVM_OK &&
              ptxvm_fill(d.vm, d.at[o], 0, bytes) == PTXVM_OK);
    for (int i = 0; i < steps.count; i++)
        launch(&d, &steps.at[i]);
    CHECK_EQ_U64(conflicts, 0);
    ptxvm_destroy(d.vm);
}

TEST_CASE(TensorFp8Counters, NoBankConflicts)
{
    static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_120"};
    for (int i = 0; i < LENGTH(sms); i++)
        for (int k_in_columns = 0; k_in_columns < 2; k_in_columns++) {
            test_push_note("%s, %s", sms[i], k_in_columns ? "[N, K]" : "[K, N]");
            check_no_conflicts(sms[i], KERNEL_PRODUCT_TILE, k_in_columns);
            check_no_conflicts(sms[i], KERNEL_PRODUCT_STREAM, k_in_columns);
            test_pop_note();
        }
}
