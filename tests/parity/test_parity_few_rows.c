/* Products with few rows of x, whose kernels decode weights in registers, against host_ref: shapes that take
 * their fast paths and shapes around them, scales and x that must take the slow ones, every SM generation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/product_case.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"};

/* ---- Blocks ---- */

static const kernel_row *block_row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_DEQUANTIZE &&
            kernel_columns_multiple(&kernel_rows[i]) > 1 && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

static int block_row_count(void)
{
    int count = 0;
    while (block_row_at(count))
        count++;
    return count;
}

static void block_row_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_format(block_row_at(index))->name);
}

/* What a product with blocks has beside its format. 2048 elements fill vectors of 16 bytes in every format,
 * 4096 more than one window of x; `more` elements are added where a block has no more, so that the last round
 * is not whole. */
typedef struct block_case {
    int64_t m, n, k, more;
    qdnnDataType_t x;
    data_kind kind;
    bool callers, gated;
    bool shifted; /* operands have only the alignment they need */
} block_case;

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16
static const block_case block_cases[] = {
    {1, 5, 4096, 0, F16, DATA_NORMAL, false, false, false},
    {1, 131, 2048, 0, F32, DATA_NORMAL, false, false, false},
    {1, 3, 2048, 128, BF16, DATA_NORMAL, false, false, false},
    {1, 33, 2048, 64, F16, DATA_SUBNORMAL, false, true, false},
    {1, 4, 6144, 256, F32, DATA_NORMAL, false, false, true},
    {1, 40, 512, 0, F16, DATA_SPECIAL, true, false, false},
    {1, 7, 2048, 0, F32, DATA_HUGE, false, false, false},
    {1, 9, 256, 0, BF16, DATA_SPECIAL, true, true, false},
    {1, 6, 2048, 0, F16, DATA_NORMAL, false, false, true},
    {2, 17, 2048, 0, F32, DATA_NORMAL, false, false, false},
    {3, 5, 2304, 96, F16, DATA_NORMAL, false, true, false},
    {8, 3, 2048, 0, BF16, DATA_HUGE, false, false, false},
    {16, 2, 4096, 0, F16, DATA_NORMAL, false, false, false},
    {13, 4, 2560, 32, F32, DATA_NORMAL, false, true, false},
    {1, 3, 0, 0, F32, DATA_NORMAL, false, false, false},
};

/* What blocks have to be aligned to, and an f32 of x. */
static size_t least_shift(const kernel_row *row)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_spec spec = kernel_spec_default();
    kernel_operands_of(kernel_find_operation(KERNEL_MATMUL, row->format),
                       KERNEL_NORMAL(kernel_find_operation(KERNEL_MATMUL, row->format), &spec),
                       &(kernel_problem){.rows = 1, .columns = 256, .m = 1}, operands);
    return operands[QDNN_OPERAND_CODES].align > 4 ? operands[QDNN_OPERAND_CODES].align : 4;
}

static product_case product_with_blocks(const kernel_row *row, const block_case *c, uint32_t seed)
{
    const int64_t block = (int64_t)kernel_columns_multiple(row);
    product_case p = {.rows = -1,
                      .m = c->m,
                      .x = c->x,
                      .y = QDNN_DATA_F32,
                      .gated = c->gated,
                      .activation = c->gated ? QDNN_ACTIVATION_RELU : QDNN_ACTIVATION_NONE,
                      .kind = c->kind,
                      .seed = seed,
                      .algorithm = QDNN_MATMUL_EXACT,
                      .shift = c->shifted ? least_shift(row) : 0};
    p.weights = (quant_case){.row = row,
                             .spec = kernel_spec_default(),
                             .granularity = QDNN_GRANULARITY_TENSOR,
                             .rank = 2,
                             .dims = {c->n * (c->gated ? 2 : 1), c->k + c->more / block * block},
                             .kind = DATA_NORMAL,
                             .seed = seed,
                             .callers = c->callers};
    return p;
}

DEVICE_EACH(ParityFewRows, Blocks, block_row_count, block_row_name)
{
    for (int i = 0; i < LENGTH(block_cases); i++) {
        qdnnHandle_t handle = device_begin(sms[(index + i) % LENGTH(sms)], 0, "all");
        product_case c =
            product_with_blocks(block_row_at(index), &block_cases[i], (uint32_t)(index + 31 * i + 1));
        bool alive = handle && product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
        device_end(handle);
        if (!alive)
            return;
    }
}

/* TQ1_0: an infinite scale makes infinite weights of digits other than 1, which the short way of decoding
 * does not. Rows take turns: all digits are 0, all are 2, and as they were. */
DEVICE_CASE(ParityFewRows, TernaryScalesThatAreInfinite)
{
    enum { BLOCK = 54, SCALE_AT = 52, K = 512 };
    static const uint8_t infinite[2] = {0x00, 0x7C};
    qdnnHandle_t handle = device_begin("sm_90", 0, "all");
    for (int64_t m = 1; m <= 16 && handle; m *= 4) {
        const block_case shape = {m, 6, K, 0, F32, DATA_NORMAL, false, false, false};
        product_case c = product_with_blocks(kernel_find("dequantize_gguf_tq1_0"), &shape, (uint32_t)m);
        product_operands o;
        if (CHECK(product_operands_make(&c, &o))) {
            float *x = (float *)(void *)o.host[QDNN_OPERAND_X];
            for (int64_t i = 0; i < m * K; i++)
                x[i] = 1 + (float)(i % 7);
            for (int row = 0; row < 6; row++) {
                uint8_t *block = o.host[QDNN_OPERAND_CODES] + row * (K / 256) * BLOCK;
                if (row % 3 < 2) {
                    memset(block, row % 3 ? 0xFF : 0, SCALE_AT);
                    memcpy(block + SCALE_AT, infinite, sizeof infinite);
                }
            }
            const ref_product_arrays arrays = product_arrays(&o, o.expected);
            ref_product_exact(&o.product, &arrays);
            const float *y = (const float *)(const void *)o.expected;
            CHECK(y[0] == -INFINITY && y[1] == INFINITY && isfinite(y[2]));
            CHECK(product_run_operands(handle, &c, BUFFER_EXACT, &o));
        }
        product_operands_free(&o);
    }
    device_end(handle);
}

/* ---- Weights [K, N] ---- */

/* Settings as the ptxgen command takes them; group_size is that of groups down columns, 0: one scale for the tensor. */
typedef struct column_format {
    const char *name, *kernel;
    int64_t group_size;
    const char *settings[8];
} column_format;

#define WORDS "layout=interleaved"
static const column_format column_formats[] = {
    {"words", "dequantize_int4_zp", 128, {WORDS, "zero=u32"}},
    {"words_u8", "dequantize_int4_zp", 32, {WORDS, "zero=u8", "scale=bf16"}},
    {"words_i32", "dequantize_int4_zp", 256, {WORDS, "zero=i32", "code=twos"}},
    {"words_float_zero", "dequantize_int4_zp", 128, {WORDS, "zero=f32"}},
    {"words_symmetric", "dequantize_int4", 128, {WORDS}},
    {"words_unsigned", "dequantize_int4", 512, {WORDS, "code=unsigned"}},
    {"words_odd_groups", "dequantize_int4_zp", 40, {WORDS, "zero=u32"}},
    {"words_small_groups", "dequantize_int4_zp", 3, {WORDS, "zero=u8"}},
    {"words_minimum", "dequantize_int4_min", 128, {WORDS, "zero=f16"}},
    {"gptq_2", "dequantize_int2_zp", 128, {WORDS, "zero_packed=yes", "scale=f16"}},
    {"gptq_3", "dequantize_int3_zp", 64, {WORDS, "zero_packed=yes", "scale=f16", "zero_minus_one=yes"}},
    {"words_5", "dequantize_int5_zp", 32, {WORDS, "zero=u8", "scale=f16"}},
    {"words_6", "dequantize_int6", 64, {WORDS, "scale=f16"}},
    {"gptq_4", "dequantize_int4_zp", 128, {WORDS, "zero_packed=yes", "scale=f16", "zero_minus_one=yes"}},
    {"gptq_4_wraps",
     "dequantize_int4_zp",
     64,
     {WORDS, "zero_packed=yes", "scale=f16", "zero_minus_one=yes", "zero_wraps=yes"}},
    {"gptq_4_index", "dequantize_int4_zp", 32, {WORDS, "zero_packed=yes", "scale=f16", "group_index=yes"}},
    {"gptq_8", "dequantize_int8_zp", 128, {WORDS, "zero_packed=yes", "scale=f16"}},
    {"awq", "dequantize_int4_zp", 128, {"layout=awq", "zero_packed=yes", "scale=f16"}},
    {"awq_wide_scales", "dequantize_int4_zp", 64, {"layout=awq", "zero_packed=yes"}},
    {"int8", "dequantize_int8", 128, {"scale=f16"}},
    {"int8_zp", "dequantize_int8_zp", 32, {"zero=i8", "scale=bf16"}},
    {"int8_zp_wide", "dequantize_int8_zp", 64, {"zero=i32", "code=twos"}},
    {"int4_zp_high", "dequantize_int4_zp", 48, {"zero=u8", "nibble_order=high", "scale=f16"}},
    {"int8_block", "dequantize_int8_zp", 128, {"zero=f32"}},
    {"int4_block", "dequantize_int4", 64, {"code=unsigned"}},
    {"fp8", "dequantize_e4m3", 128, {"scale=f32"}},
    {"fp8_tensor", "dequantize_e5m2", 0, {"scale=f32"}},
    {"nvfp4", "dequantize_e2m1", 16, {"scale=e4m3", "global_scale=yes"}},
    {"mxfp4", "dequantize_e2m1", 32, {"scale=e8m0"}},
    {"nf4", "dequantize_nf4", 64, {"scale=f32"}},
    {"six_bits", "dequantize_int6", 64, {"scale=f32"}},
    {"plain_f32", "dequantize_plain_f32", 0, {0}},
    {"plain_f16", "dequantize_plain_f16", 0, {0}},
    {"plain_bf16", "dequantize_plain_bf16", 0, {0}},
};

typedef struct column_case {
    int64_t m, n, k;
    qdnnDataType_t x;
    data_kind kind;
    bool callers, gated;
    bool shifted; /* operands have only the alignment they need */
} column_case;

static const column_case column_cases[] = {
    {1, 128, 2560, F16, DATA_NORMAL, false, false, false},
    {1, 160, 1024, F32, DATA_NORMAL, false, false, false},
    {1, 32, 2336, BF16, DATA_NORMAL, false, false, false},
    {1, 96, 96, F16, DATA_SPECIAL, true, false, false},
    {1, 64, 320, F32, DATA_HUGE, true, true, false},
    {1, 32, 64, F16, DATA_NORMAL, false, false, true},
    {2, 40, 576, F32, DATA_SUBNORMAL, false, false, true},
    {4, 36, 512, F16, DATA_NORMAL, false, true, false},
    {5, 72, 264, BF16, DATA_NORMAL, true, false, false},
    {8, 32, 1088, F16, DATA_NORMAL, false, true, false},
    {16, 64, 288, F32, DATA_NORMAL, false, false, false},
    {3, 37, 129, F16, DATA_NORMAL, false, false, false},
    {16, 40, 320, BF16, DATA_HUGE, true, true, false},
};

static kernel_spec spec_of(const kernel_row *row, const char *const *settings)
{
    kernel_spec spec = kernel_spec_default();
    for (; *settings; settings++) {
        char key[32], error[256];
        const char *value = strchr(*settings, '=') + 1;
        memcpy(key, *settings, (size_t)(value - 1 - *settings));
        key[value - 1 - *settings] = 0;
        if (!kernel_spec_set(row, &spec, key, value, error, sizeof error))
            FAIL("%s", error);
    }
    return spec;
}

static product_case product_of_columns(const column_format *f, const column_case *c, uint32_t seed)
{
    const kernel_row *row = kernel_find(f->kernel);
    const bool is_awq = strncmp(f->name, "awq", 3) == 0;
    product_case p = {.rows = -1,
                      .k_rows = true,
                      .m = c->m,
                      .x = c->x,
                      .y = QDNN_DATA_F32,
                      .gated = c->gated,
                      .activation = c->gated ? QDNN_ACTIVATION_RELU : QDNN_ACTIVATION_NONE,
                      .kind = c->kind,
                      .seed = seed,
                      .algorithm = QDNN_MATMUL_EXACT,
                      .shift = c->shifted ? 4 : 0};
    p.weights = (quant_case){.row = row,
                             .spec = spec_of(row, f->settings),
                             .granularity = f->group_size ? QDNN_GRANULARITY_GROUP : QDNN_GRANULARITY_TENSOR,
                             .extent = f->group_size,
                             .rank = 2,
                             .dims = {c->k, c->n * (c->gated ? 2 : 1)},
                             .kind = DATA_NORMAL,
                             .seed = seed,
                             .callers = c->callers};
    if (f->group_size)
        p.weights.spec.stored.groups = QDNN_GROUPS_COLUMNS;
    if (is_awq)
        p.weights.dims[1] = (p.weights.dims[1] + 7) / 8 * 8;
    return p;
}

/* Whether the kernel serves the format: it does not serve codes of 6 bits along N. */
static bool is_served(const column_format *f)
{
    return strcmp(f->name, "six_bits") != 0;
}

DEVICE_ROWS(ParityFewRows, Columns, column_formats)
{
    for (int i = 0; i < LENGTH(column_cases); i++) {
        qdnnHandle_t handle = device_begin(sms[(index + i) % LENGTH(sms)], 0, "all");
        product_case c =
            product_of_columns(&column_formats[index], &column_cases[i], (uint32_t)(index + 31 * i + 1));
        if (column_cases[i].m == 16 && is_served(&column_formats[index]))
            c.choice = "kernel columns with tiles of 16 rows";
        bool alive = handle && product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
        device_end(handle);
        if (!alive)
            return;
    }
}

/* ---- Sums in units of the scales of blocks ---- */

/* The exponents of MXFP4's blocks: least and largest that keep sums in units, one beyond them, and blocks of
 * zeros, whose exponents are any. */
typedef enum exponents {
    EXPONENTS_APART,
    EXPONENT_BELOW,
    EXPONENT_ABOVE,
    EXPONENTS_OF_ZEROS,
    EXPONENTS_ANY
} exponents;

static void set_exponents(exponents kind, uint8_t *blocks, size_t count)
{
    enum { BYTES = 17, LEAST = 96, LARGEST = 159 };
    for (size_t i = 0; i < count; i++) {
        uint8_t *block = &blocks[i * BYTES];
        block[0] = i % 3 ? LEAST : LARGEST;
        if (kind == EXPONENT_BELOW && i == count / 2)
            block[0] = LEAST - 1;
        if (kind == EXPONENT_ABOVE && i == count / 2)
            block[0] = LARGEST + 1;
        if (kind == EXPONENTS_ANY)
            block[0] = (uint8_t)(37 * i);
        if (kind == EXPONENTS_OF_ZEROS && i % 4 == 1) {
            memset(block, i % 8 == 1 ? 0x08 : 0, BYTES);
            block[0] = i % 8 == 1 ? 255 : 0;
        }
    }
}

DEVICE_CASE(ParityFewRows, UnitsOfBlocks)
{
    static const struct {
        exponents exponents;
        data_kind x;
        int64_t m, k;
        bool gated;
    } cases[] = {
        {EXPONENTS_APART, DATA_NORMAL, 1, 4096, false},  {EXPONENTS_APART, DATA_SUBNORMAL, 1, 2560, true},
        {EXPONENTS_APART, DATA_SPECIAL, 2, 1024, false}, {EXPONENT_BELOW, DATA_NORMAL, 1, 1024, false},
        {EXPONENT_ABOVE, DATA_NORMAL, 1, 1024, false},   {EXPONENTS_OF_ZEROS, DATA_NORMAL, 1, 2560, false},
        {EXPONENTS_OF_ZEROS, DATA_HUGE, 4, 1024, false}, {EXPONENTS_ANY, DATA_NORMAL, 1, 512, false}};
    static const char *const targets[] = {"sm_75", "sm_80", "sm_100"};
    for (int i = 0; i < LENGTH(cases) * LENGTH(targets); i++) {
        const int k = i / LENGTH(targets);
        qdnnHandle_t handle = device_begin(targets[i % LENGTH(targets)], 0, "all");
        block_case shape = {cases[k].m, 5, cases[k].k, 0, F16, cases[k].x, false, cases[k].gated, false};
        product_case c = product_with_blocks(kernel_find("dequantize_gguf_mxfp4"), &shape, (uint32_t)i + 1);
        product_operands o;
        if (handle && product_operands_make(&c, &o)) {
            set_exponents(cases[k].exponents, o.host[QDNN_OPERAND_CODES], o.bytes[QDNN_OPERAND_CODES] / 17);
            ref_product_arrays arrays = product_arrays(&o, o.expected);
            ref_product_exact(&o.product, &arrays);
            CHECK(product_run_operands(handle, &c, BUFFER_EXACT, &o));
            product_operands_free(&o);
        }
        device_end(handle);
    }
}

/* Scales around the largest that cheap decodes serve, all alike, so that none of them takes the slow path
 * because of another: bytes and nibbles, along K and along N. */
DEVICE_CASE(ParityFewRows, LargeScales)
{
    static const char *const rows[] = {"dequantize_int8", "dequantize_int4"};
    qdnnHandle_t handle = device_begin("sm_80", 0, "all");
    for (int i = 0; i < 48; i++) {
        const bool k_rows = i % 2;
        const int exponent = 20 + i / 4;
        product_operands o;
        product_case c = {.rows = -1,
                          .k_rows = k_rows,
                          .m = 1,
                          .x = QDNN_DATA_F16,
                          .y = QDNN_DATA_F32,
                          .seed = (uint32_t)i + 1,
                          .algorithm = QDNN_MATMUL_EXACT,
                          .choice = k_rows ? "kernel columns" : "kernel gemv",
                          .weights = {.row = kernel_find(rows[i / 2 % 2]),
                                      .spec = kernel_spec_default(),
                                      .granularity = QDNN_GRANULARITY_GROUP,
                                      .extent = 128,
                                      .rank = 2,
                                      .dims = {k_rows ? 256 : 8, k_rows ? 8 : 256},
                                      .seed = (uint32_t)i + 1}};
        c.weights.spec.stored.groups = k_rows ? QDNN_GROUPS_COLUMNS : QDNN_GROUPS_ROWS;
        if (handle && product_operands_make(&c, &o)) {
            float *scale = (float *)o.host[QDNN_OPERAND_SCALE];
            for (size_t k = 0; k < o.bytes[QDNN_OPERAND_SCALE] / sizeof *scale; k++)
                scale[k] = ldexpf(1.5f, exponent);
            ref_product_arrays arrays = product_arrays(&o, o.expected);
            ref_product_exact(&o.product, &arrays);
            CHECK(product_run_operands(handle, &c, BUFFER_EXACT, &o));
            product_operands_free(&o);
        }
    }
    device_end(handle);
}
