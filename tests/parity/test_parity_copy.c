/* Copies, gathers, scatters and quantized rows through the public API against host_ref, on ptxvm: as six SMs, with every check
 * on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/row_case.h"
#include "device/under_test.h"
#include "host_ref/host_ref.h"
#include "support/random.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0], DIMS = 5 };

/* ---- Data ---- */

static size_t size_of(qdnnDataType_t type)
{
    switch (type) {
    case QDNN_DATA_F8E4M3:
    case QDNN_DATA_F8E5M2:
    case QDNN_DATA_U8:
    case QDNN_DATA_I8:
        return 1;
    case QDNN_DATA_F16:
    case QDNN_DATA_BF16:
    case QDNN_DATA_U16:
        return 2;
    case QDNN_DATA_F64:
    case QDNN_DATA_I64:
    case QDNN_DATA_U64:
        return 8;
    default:
        return 4;
    }
}

/* Random bits, which are numbers of every kind; in f32 and f64 also ordinary ones, and NaN with bits of their own. */
static void fill(qdnnDataType_t type, uint8_t *x, int64_t count, uint64_t seed)
{
    uint64_t state = seed * 31 + 7;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = random_next(&state);
        const double narrow = ((double)(int64_t)word * 0x1p-63) * (word & 64 ? 300 : 1e-6);
        const float f32 = (float)narrow;
        if (type == QDNN_DATA_F32 && word & 1)
            memcpy(x + i * 4, &f32, 4);
        else if (type == QDNN_DATA_F64 && word & 1)
            memcpy(x + i * 8, &narrow, 8);
        else
            memcpy(x + (size_t)i * size_of(type), &word, size_of(type));
        if (type == QDNN_DATA_F32 && word % 29 == 0)
            memcpy(x + i * 4, &(uint32_t){0xFFC12345}, 4);
        if (type == QDNN_DATA_F64 && word % 29 == 0)
            memcpy(x + i * 8, &(uint64_t){0x7FF0000000012345}, 8);
    }
}

static qdnnTensorDescriptor_t tensor_of(qdnnDataType_t type, int rank, const int64_t *dims,
                                        const int64_t *strides)
{
    qdnnTensorDescriptor_t t = NULL;
    return CHECK_QDNN(qdnnCreateTensorDescriptor(&t)) &&
                   CHECK_QDNN(qdnnSetTensorDescriptor(t, type, rank, dims, strides))
               ? t
               : NULL;
}

/* ---- Copies ---- */

typedef struct copy_case {
    const char *name;
    qdnnDataType_t x, y;
    int rank;
    int64_t dims[DIMS], x_strides[DIMS], y_strides[DIMS];
    int64_t rows;            /* to execute; 0: all */
    size_t x_shift, y_shift; /* elements */
    const char *way;         /* of the plan's settings */
    bool is_whole;           /* it takes all rows */
} copy_case;

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16
#define F64  QDNN_DATA_F64
#define E4M3 QDNN_DATA_F8E4M3
#define E5M2 QDNN_DATA_F8E5M2

/* clang-format off */
static const copy_case copy_cases[] = {
    {"flat", F32, F32, 2, {7, 300}, {300, 1}, {300, 1}, 0, 0, 0, "flat", false},
    {"flat_of_fewer_rows", F32, F32, 2, {20, 1300}, {1300, 1}, {1300, 1}, 11, 0, 0, "flat", false},
    {"flat_shifted", F16, F16, 3, {9, 5, 33}, {165, 33, 1}, {165, 33, 1}, 0, 1, 1, "flat", false},
    {"flat_shifted_apart", QDNN_DATA_U8, QDNN_DATA_U8, 2, {3, 1001}, {1001, 1}, {1001, 1}, 0, 3, 2, "flat", false},
    {"vector", F64, F64, 1, {777}, {1}, {1}, 0, 0, 0, "flat", true},
    {"one_element", F32, F16, 1, {1}, {1}, {1}, 0, 0, 0, "flat", true},
    {"rows_apart", F32, F32, 2, {6, 130}, {140, 1}, {131, 1}, 4, 0, 0, "lines", false},
    {"long_rows_apart", BF16, BF16, 2, {3, 9000}, {9008, 1}, {9016, 1}, 0, 0, 0, "lines", false},
    {"heads_before_tokens", F16, F16, 3, {9, 4, 72}, {288, 72, 1}, {72, 648, 1}, 5, 0, 0, "lines", false},
    {"slice_of_four", F16, F32, 4, {3, 2, 5, 24}, {960, 480, 40, 1}, {240, 120, 24, 1}, 0, 8, 0, "lines", false},
    {"five_dimensions", F32, F32, 5, {2, 3, 2, 4, 16}, {384, 16, 192, 48, 1}, {384, 128, 64, 16, 1}, 0, 0, 0, "lines", false},
    {"repeated", F32, BF16, 3, {4, 3, 40}, {40, 0, 1}, {120, 40, 1}, 0, 0, 0, "lines", false},
    {"one_number", F32, F32, 2, {5, 70}, {0, 0}, {70, 1}, 0, 0, 0, "elements", false},
    {"every_second", F32, F16, 2, {5, 77}, {200, 2}, {77, 1}, 3, 0, 0, "elements", false},
    {"into_every_second", QDNN_DATA_I8, QDNN_DATA_I8, 2, {5, 300}, {300, 1}, {700, 2}, 0, 0, 0, "elements", false},
    {"transpose", F32, F32, 2, {45, 70}, {70, 1}, {1, 45}, 0, 0, 0, "tiles", true},
    {"transpose_halves", F16, F16, 2, {64, 96}, {1, 64}, {96, 1}, 0, 0, 0, "tiles", true},
    {"transpose_to_f64", BF16, F64, 2, {33, 31}, {31, 1}, {1, 40}, 0, 1, 0, "tiles", true},
    {"transpose_bytes", QDNN_DATA_U8, QDNN_DATA_U8, 3, {3, 50, 41}, {2050, 41, 1}, {2100, 1, 50}, 2, 0, 0, "tiles", false},
    {"transposes", F32, E4M3, 4, {3, 2, 35, 20}, {1400, 700, 1, 35}, {1400, 20, 40, 1}, 0, 0, 0, "tiles", false},
    {"transpose_of_few", F32, F32, 2, {100, 3}, {3, 1}, {1, 100}, 0, 0, 0, "elements", true},
    {"indices", QDNN_DATA_I64, QDNN_DATA_I64, 2, {40, 9}, {9, 1}, {1, 40}, 0, 0, 0, "tiles", true},
    {"empty", F32, F16, 2, {0, 30}, {30, 1}, {30, 1}, 0, 0, 0, NULL, false},
    {"empty_rows", F32, F16, 2, {4, 0}, {1, 1}, {1, 1}, 0, 0, 0, NULL, false},
};
/* clang-format on */

/* Bytes from the first element to the last. */
static size_t bytes_of(qdnnDataType_t type, int rank, const int64_t *dims, const int64_t *strides)
{
    int64_t last = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0)
            return 0;
        last += (dims[i] - 1) * strides[i];
    }
    return (size_t)(last + 1) * size_of(type);
}

static void run_copy(qdnnHandle_t handle, const copy_case *c)
{
    row_operands all = {0};
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    const size_t x_bytes = bytes_of(c->x, c->rank, c->dims, c->x_strides),
                 y_bytes = bytes_of(c->y, c->rank, c->dims, c->y_strides);
    const int64_t rows = c->rows ? c->rows : c->dims[0];
    uint8_t *x = row_operands_add(&all, QDNN_OPERAND_X, x_bytes);
    all.at[0].shift = c->x_shift * size_of(c->x);
    uint8_t *y = row_operands_cache(&all, QDNN_OPERAND_Y, y_bytes);
    all.at[1].shift = c->y_shift * size_of(c->y);
    fill(c->x, x, (int64_t)(x_bytes / size_of(c->x)), 3);
    ref_copy_spec spec = {.x = c->x, .y = c->y, .rank = c->rank};
    memcpy(spec.dims, c->dims, sizeof c->dims);
    memcpy(spec.x_strides, c->x_strides, sizeof c->x_strides);
    memcpy(spec.y_strides, c->y_strides, sizeof c->y_strides);
    spec.dims[0] = rows;
    ref_copy(&spec, x, y);
    qdnnTensorDescriptor_t t[2] = {tensor_of(c->x, c->rank, c->dims, c->x_strides),
                                   tensor_of(c->y, c->rank, c->dims, c->y_strides)};
    char way[32];
    snprintf(way, sizeof way, "way=%s", c->way ? c->way : "");
    if (CHECK_QDNN(qdnnCreateCopyPlan(handle, t[0], t[1], &plan)) &&
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info))) {
        CHECK_EQ_STR(info.operation, "rows.copy");
        CHECK_EQ_I64(info.kernels, c->way != NULL);
        if (c->way && strcmp(c->way, "flat") != 0)
            CHECK(strstr(info.settings, way) != NULL);
        else if (c->way)
            CHECK(strstr(info.settings, "way=") == NULL);
        row_operands_check(handle, plan, &all, c->is_whole ? -1 : rows);
    }
    qdnnDestroyPlan(plan);
    for (int i = 0; i < 2; i++)
        qdnnDestroyTensorDescriptor(t[i]);
    row_operands_free(&all);
}

DEVICE_ROWS(ParityCopy, Copy, copy_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    for (int i = 0; i < copy_cases[index].rank; i++)
        if (copy_cases[index].dims[i] == 0)
            device_launches_nothing();
    if (handle)
        run_copy(handle, &copy_cases[index]);
    device_end(handle);
}

static int sm_count(void)
{
    return SMS;
}

static void sm_name(int i, char *name, size_t size)
{
    snprintf(name, size, "%s", sms[i]);
}

/* Every pair of types, on each SM. */
DEVICE_EACH(ParityCopy, Casts, sm_count, sm_name)
{
    static const qdnnDataType_t types[] = {F32, F16, BF16, F64, E4M3, E5M2};
    enum { TYPES = sizeof types / sizeof types[0] };
    qdnnHandle_t handle = device_begin(sms[index], index, "all");
    for (int i = 0; i < TYPES * TYPES && handle; i++) {
        const copy_case c = {.x = types[i / TYPES],
                             .y = types[i % TYPES],
                             .rank = 2,
                             .dims = {3, 171},
                             .x_strides = {171, 1},
                             .y_strides = {171, 1},
                             .x_shift = (size_t)(i % 2),
                             .way = "flat"};
        test_push_note("%s to %s", qdnnGetDataTypeName(c.x), qdnnGetDataTypeName(c.y));
        run_copy(handle, &c);
        test_pop_note();
    }
    device_end(handle);
}

/* ---- Rows by index ---- */

typedef struct rows_case {
    const char *name;
    qdnnDataType_t x, y, index;
    int64_t table_rows, m, columns, x_gap, y_gap; /* gap: elements between rows */
    int64_t rows;                                 /* to execute; 0: all */
    size_t shift;                                 /* elements */
} rows_case;

/* clang-format off */
static const rows_case rows_cases[] = {
    {"floats", F32, F32, QDNN_DATA_I32, 30, 17, 64, 0, 0, 0, 0},
    {"halves", F16, F16, QDNN_DATA_I64, 9, 21, 40, 8, 0, 13, 0},
    {"ragged", BF16, BF16, QDNN_DATA_I32, 12, 10, 37, 3, 1, 0, 1},
    {"widened", F16, F32, QDNN_DATA_I64, 12, 10, 1100, 0, 0, 0, 0},
    {"narrowed", F32, E4M3, QDNN_DATA_I32, 12, 10, 96, 0, 32, 7, 0},
    {"wide", F64, F64, QDNN_DATA_I32, 5, 9, 3, 0, 0, 0, 0},
    {"bytes", QDNN_DATA_U8, QDNN_DATA_U8, QDNN_DATA_I64, 14, 13, 530, 0, 6, 0, 0},
    {"single_numbers", F32, F32, QDNN_DATA_I32, 40, 33, 1, 0, 0, 0, 0},
    {"long_rows", F32, F16, QDNN_DATA_I32, 3, 4, 9100, 0, 0, 3, 0},
    {"no_table", E5M2, E5M2, QDNN_DATA_I32, 0, 4, 20, 0, 0, 0, 0},
    {"no_rows", F32, F32, QDNN_DATA_I64, 4, 0, 20, 0, 0, 0, 0},
};
/* clang-format on */

/* All different, as a scatter needs, and some that the table does not have. */
static void fill_index(const rows_case *c, int64_t *index)
{
    static const int64_t bad[] = {-1, INT32_MIN, INT32_MAX};
    for (int64_t i = 0; i < c->m; i++) {
        const int64_t row = (i * 11 + 3) % (c->m > c->table_rows ? c->m : c->table_rows);
        index[i] = i % 5 == 4 ? bad[i / 5 % 3] : row;
    }
}

static uint8_t *add_index(const rows_case *c, row_operands *all, int64_t *index)
{
    const bool is_wide = c->index == QDNN_DATA_I64;
    fill_index(c, index);
    uint8_t *list = row_operands_add(all, QDNN_OPERAND_ROW_INDEX, (size_t)c->m * (is_wide ? 8 : 4));
    for (int64_t i = 0; i < c->m; i++)
        if (is_wide)
            memcpy(list + i * 8, &index[i], 8);
        else
            memcpy(list + i * 4, &(int32_t){(int32_t)index[i]}, 4);
    return list;
}

static size_t rows_bytes(qdnnDataType_t type, int64_t rows, int64_t columns, int64_t gap)
{
    return rows ? (size_t)((rows - 1) * (columns + gap) + columns) * size_of(type) : 0;
}

static void run_rows(qdnnHandle_t handle, const rows_case *c, bool gathers)
{
    row_operands all = {0};
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    int64_t index[64];
    if (c->m == 0)
        device_launches_nothing();
    const int64_t x_rows = gathers ? c->table_rows : c->m, y_rows = gathers ? c->m : c->table_rows,
                  rows = c->rows ? c->rows : c->m;
    const ref_rows_spec spec = {
        c->x, c->y, c->columns, c->table_rows, c->columns + c->x_gap, c->columns + c->y_gap};
    const size_t x_bytes = rows_bytes(c->x, x_rows, c->columns, c->x_gap);
    uint8_t *x = row_operands_add(&all, QDNN_OPERAND_X, x_bytes);
    all.at[0].shift = c->shift * size_of(c->x);
    uint8_t *y = row_operands_cache(&all, QDNN_OPERAND_Y, rows_bytes(c->y, y_rows, c->columns, c->y_gap));
    all.at[1].shift = c->shift * size_of(c->y);
    add_index(c, &all, index);
    fill(c->x, x, (int64_t)(x_bytes / size_of(c->x)), 5);
    if (gathers)
        ref_gather(&spec, rows, x, index, y);
    else
        ref_scatter(&spec, rows, x, index, y);
    qdnnTensorDescriptor_t from = tensor_of(c->x, 2, (const int64_t[]){x_rows, c->columns},
                                            (const int64_t[]){spec.x_stride, 1}),
                           to = tensor_of(c->y, 2, (const int64_t[]){y_rows, c->columns},
                                          (const int64_t[]){spec.y_stride, 1});
    if (CHECK_QDNN(gathers ? qdnnCreateGatherPlan(handle, from, c->index, to, &plan)
                           : qdnnCreateScatterPlan(handle, from, c->index, to, &plan)) &&
        CHECK_QDNN(qdnnGetPlanInfo(plan, &info))) {
        CHECK_EQ_STR(info.operation, gathers ? "rows.gather" : "rows.scatter");
        row_operands_check(handle, plan, &all, rows);
    }
    qdnnDestroyPlan(plan);
    qdnnDestroyTensorDescriptor(from);
    qdnnDestroyTensorDescriptor(to);
    row_operands_free(&all);
}

DEVICE_ROWS(ParityCopy, Gather, rows_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_rows(handle, &rows_cases[index], true);
    device_end(handle);
}

DEVICE_ROWS(ParityCopy, Scatter, rows_cases)
{
    qdnnHandle_t handle = device_begin(sms[(index + 3) % SMS], index, "all");
    if (handle)
        run_rows(handle, &rows_cases[index], false);
    device_end(handle);
}

/* ---- Quantized rows ---- */

typedef struct quantized_case {
    const char *name;
    qdnnBlockFormat_t block; /* NONE: storage and group */
    qdnnDataType_t storage;
    int64_t group;
    qdnnDataType_t x, index;
    int64_t table_rows, m, columns, rows;
    size_t shift; /* elements of x */
} quantized_case;

/* clang-format off */
static const quantized_case quantized_cases[] = {
    {"q8_0", QDNN_BLOCK_Q8_0, 0, 0, F32, QDNN_DATA_I64, 9, 7, 64, 0, 0},
    {"q4_0_of_short_rows", QDNN_BLOCK_Q4_0, 0, 0, F16, QDNN_DATA_I32, 200, 160, 32, 100, 0},
    {"q4_1", QDNN_BLOCK_Q4_1, 0, 0, F32, QDNN_DATA_I64, 9, 7, 96, 0, 1},
    {"q5_0_of_long_rows", QDNN_BLOCK_Q5_0, 0, 0, F32, QDNN_DATA_I32, 4, 3, 4640, 2, 0},
    {"q5_1", QDNN_BLOCK_Q5_1, 0, 0, BF16, QDNN_DATA_I32, 40, 33, 160, 0, 0},
    {"q4_k", QDNN_BLOCK_Q4_K, 0, 0, F32, QDNN_DATA_I64, 5, 6, 512, 0, 0},
    {"q6_k", QDNN_BLOCK_Q6_K, 0, 0, F32, QDNN_DATA_I32, 20, 17, 256, 9, 0},
    {"mxfp4", QDNN_BLOCK_MXFP4, 0, 0, F32, QDNN_DATA_I64, 5, 6, 128, 0, 0},
    {"tq1_0", QDNN_BLOCK_TQ1_0, 0, 0, F32, QDNN_DATA_I64, 5, 6, 512, 0, 0},
    {"q1_0", QDNN_BLOCK_Q1_0, 0, 0, F32, QDNN_DATA_I32, 5, 6, 512, 0, 0},
    {"int8_of_rows", QDNN_BLOCK_NONE, QDNN_DATA_I8, 96, F16, QDNN_DATA_I64, 9, 7, 96, 0, 0},
    {"int4_of_groups", QDNN_BLOCK_NONE, QDNN_DATA_I4, 32, F32, QDNN_DATA_I32, 9, 7, 96, 5, 0},
    {"no_row", QDNN_BLOCK_Q8_0, 0, 0, F32, QDNN_DATA_I64, 9, 0, 64, 0, 0},
};
/* clang-format on */

static qdnnQuantDescriptor_t quant_of(const quantized_case *c)
{
    qdnnQuantDescriptor_t q = NULL;
    if (!CHECK_QDNN(qdnnCreateQuantDescriptor(&q)))
        return NULL;
    if (c->block != QDNN_BLOCK_NONE) {
        CHECK_QDNN(qdnnSetQuantAttribute(q, QDNN_QUANT_STORAGE, QDNN_DATA_U8));
        CHECK_QDNN(qdnnSetQuantAttribute(q, QDNN_QUANT_BLOCK_FORMAT, c->block));
    } else {
        CHECK_QDNN(qdnnSetQuantDescriptor(q, c->storage, QDNN_GRANULARITY_GROUP, c->group));
    }
    return q;
}

static ref_quant_spec reference_of(const quantized_case *c)
{
    return (ref_quant_spec){.data = c->x,
                            .block = c->block,
                            .storage = c->storage,
                            .groups = QDNN_GROUPS_FLAT,
                            .group_size = c->group,
                            .floor = 1e-12f};
}

static void run_quantized(qdnnHandle_t handle, const quantized_case *c)
{
    row_operands all = {0};
    qdnnPlan_t plan = NULL;
    int64_t index[256];
    const rows_case as_rows = {.index = c->index, .table_rows = c->table_rows, .m = c->m};
    const ref_quant_spec spec = reference_of(c);
    const ref_sizes one = ref_sizes_of(&spec, 1, c->columns);
    const size_t row_bytes = (size_t)c->columns * size_of(c->x), codes = (size_t)one.codes,
                 scales = (size_t)one.scale;
    const int64_t rows = c->rows ? c->rows : c->m;
    if (c->m == 0)
        device_launches_nothing();
    uint8_t *x = row_operands_add(&all, QDNN_OPERAND_X, (size_t)c->m * row_bytes), *scale = NULL;
    all.at[0].shift = c->shift * size_of(c->x);
    uint8_t *table = row_operands_cache(&all, QDNN_OPERAND_CODES, (size_t)c->table_rows * codes);
    if (scales)
        scale = row_operands_cache(&all, QDNN_OPERAND_SCALE, (size_t)c->table_rows * scales);
    add_index(&as_rows, &all, index);
    row_fill(c->x, x, c->m * c->columns, 11, true);
    for (int64_t i = 0; i < rows; i++) {
        if (index[i] < 0 || index[i] >= c->table_rows)
            continue;
        const ref_arrays to = {.codes = table + (size_t)index[i] * codes,
                               .scale = scale ? scale + (size_t)index[i] * scales : NULL};
        if (scale)
            ref_scale(&spec, 1, c->columns, x + (size_t)i * row_bytes, &to);
        ref_quantize(&spec, 1, c->columns, x + (size_t)i * row_bytes, &to);
    }
    qdnnTensorDescriptor_t from = tensor_of(c->x, 2, (const int64_t[]){c->m, c->columns}, NULL),
                           to = tensor_of(F32, 2, (const int64_t[]){c->table_rows, c->columns}, NULL);
    qdnnQuantDescriptor_t quant = quant_of(c);
    if (CHECK_QDNN(qdnnCreateQuantizeRowsPlan(handle, from, quant, c->index, to, &plan)))
        row_operands_check(handle, plan, &all, rows);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(from);
    qdnnDestroyTensorDescriptor(to);
    row_operands_free(&all);
}

DEVICE_ROWS(ParityCopy, QuantizedRows, quantized_cases)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        run_quantized(handle, &quantized_cases[index]);
    device_end(handle);
}

/* ---- What cannot be ---- */

typedef struct refusal {
    const char *name;
    qdnnDataType_t x, y;
    int rank;
    int64_t dims[DIMS], x_strides[DIMS], y_strides[DIMS];
    qdnnStatus_t status;
    const char *says;
} refusal;

/* clang-format off */
static const refusal refusals[] = {
    {"integers_are_not_converted", QDNN_DATA_I32, F32, 1, {4}, {1}, {1}, QDNN_STATUS_NOT_SUPPORTED, "x is of type i32 and y of type f32"},
    {"overlap", F32, F32, 2, {4, 8}, {8, 1}, {4, 1}, QDNN_STATUS_NOT_SUPPORTED, "elements of y overlap"},
    {"one_place", F32, F32, 1, {4}, {1}, {0}, QDNN_STATUS_NOT_SUPPORTED, "elements of y overlap"},
    {"codes_of_four_bits", QDNN_DATA_I4, QDNN_DATA_I4, 1, {4}, {1}, {1}, QDNN_STATUS_NOT_SUPPORTED, "describe its bytes"},
    {"too_many_dimensions", F32, F32, 5, {2, 3, 2, 3, 2}, {100, 1, 3, 6, 18}, {36, 12, 6, 2, 1}, QDNN_STATUS_NOT_SUPPORTED, "two plans"},
};
/* clang-format on */

DEVICE_ROWS(ParityCopy, Refuses, refusals)
{
    const refusal *c = &refusals[index];
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_80", 1, "none");
    qdnnPlan_t plan = NULL;
    char message[512];
    qdnnTensorDescriptor_t t[2] = {tensor_of(c->x, c->rank, c->dims, c->x_strides),
                                   tensor_of(c->y, c->rank, c->dims, c->y_strides)};
    CHECK_EQ_I64(qdnnCreateCopyPlan(handle, t[0], t[1], &plan), c->status);
    qdnnGetLastErrorString(message, sizeof message);
    CHECK_HAS(message, c->says);
    for (int i = 0; i < 2; i++)
        qdnnDestroyTensorDescriptor(t[i]);
    device_end(handle);
}
