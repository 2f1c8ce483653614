/* Products by the exact contract, through the public API, against host_ref: every format, layouts and groups that take
 * turns, shapes that are multiples of nothing, everything that follows the sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/product_case.h"
#include "parity/matmul.h"
#include "parity/matrix.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { TRIALS = 12 };

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

/* The dequantize row of every format. */
const kernel_row *matmul_row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_DEQUANTIZE && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

int matmul_row_count(void)
{
    int count = 0;
    while (matmul_row_at(count))
        count++;
    return count;
}

void matmul_row_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_format(matmul_row_at(index))->name);
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}
#define PICK(state, list) ((list)[next(state) % LENGTH(list)])

/* Around lanes, chunks and rounds; blocks take the next multiple of theirs. */
static const int64_t ks[] = {1, 7, 8, 9, 31, 64, 96, 255, 256, 257, 300, 520, 777};
static const int64_t ns[] = {1, 2, 3, 8, 15, 16, 17, 33, 40};
static const int64_t ms[] = {1, 1, 1, 2, 3, 5, 8, 9, 17, 30, 33, 65, 130};
static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};

/* The weights: where a format has layouts and groups, those of a trial on matrices. */
static void pick_weights(uint32_t *state, const kernel_row *row, int trial, product_case *c)
{
    c->weights =
        (quant_case){.row = row, .spec = kernel_spec_default(), .granularity = QDNN_GRANULARITY_TENSOR};
    bool is_blocks = kernel_columns_multiple(row) > 1, has_groups = kernel_takes(row, "groups");
    int64_t k = PICK(state, ks), n = PICK(state, ns);
    if (has_groups)
        for (int i = 0; i == 0 || c->weights.spec.stored.layout == QDNN_LAYOUT_AWQ || c->weights.rank != 2;
             i++)
            c->weights = matrix_trial_at(row, trial % MATRIX_TURNS, (trial + i) % MATRIX_TRIALS).c;
    c->k_rows = !is_blocks && next(state) % 2;
    if (is_blocks)
        k = quant_case_columns(row, k);
    if (c->gated)
        n = n * 2;
    c->weights.rank = 2;
    c->weights.dims[c->k_rows] = n;
    c->weights.dims[!c->k_rows] = k;
    c->weights.kind = DATA_NORMAL;
    c->weights.seed = next(state) % 1000 + 1;
    if (c->weights.spec.data == QDNN_DATA_F64)
        c->weights.spec.data = QDNN_DATA_F32;
}

product_case matmul_case_at(const kernel_row *row, int trial)
{
    uint32_t state = (uint32_t)trial * 2654435761u + 17;
    for (const char *p = row->name; *p; p++)
        state = (state ^ (uint32_t)*p) * 16777619u;
    product_case c = {.rows = -1, .m = PICK(&state, ms), .x = PICK(&state, types), .y = PICK(&state, types)};
    c.gated = trial % 4 == 3;
    pick_weights(&state, row, trial, &c);
    c.x_gap = trial % 3 == 1 ? 5 : 0;
    c.y_gap = trial % 3 == 2 ? 3 : 0;
    c.alpha = (qdnnAlpha_t)(next(&state) % 4);
    c.bias = next(&state) % 2 ? (int)PICK(&state, types) : 0;
    c.activation = (qdnnActivation_t)(next(&state) % 5);
    c.residual = next(&state) % 2;
    c.in_place = c.residual && next(&state) % 2;
    c.kind = trial % 6 == 5 ? DATA_SPECIAL : trial % 6 == 4 ? DATA_SUBNORMAL : DATA_NORMAL;
    c.seed = next(&state) % 1000 + 1;
    c.algorithm = trial % 2 ? QDNN_MATMUL_EXACT : QDNN_MATMUL_AUTO;
    if (trial % 5 == 2)
        c.rows = next(&state) % (uint32_t)(c.m + 1);
    return c;
}

DEVICE_EACH(ParityMatmul, HostRef, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    qdnnHandle_t handle = device_begin(sms[index % LENGTH(sms)], 0, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < TRIALS && alive; i++) {
        product_case c = matmul_case_at(row, i);
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}

/* ---- Mode tensor ---- */

static const int64_t tensor_ks[] = {1, 8, 15, 16, 64, 96, 130, 512, 513, 608, 1096};
static const int64_t tensor_ns[] = {1, 8, 17, 32, 96, 129, 160};
static const int64_t tensor_ms[] = {1, 3, 8, 16, 17, 40, 65, 130};

/* The same case with other sizes, and x in a type that tensor cores take. */
product_case matmul_tensor_case_at(const kernel_row *row, int trial, int sm)
{
    uint32_t state = (uint32_t)trial * 40503u + (uint32_t)sm;
    product_case c = matmul_case_at(row, trial);
    const int64_t k = PICK(&state, tensor_ks), n = PICK(&state, tensor_ns);
    c.algorithm = QDNN_MATMUL_TENSOR;
    c.sm = sm;
    c.m = PICK(&state, tensor_ms);
    c.rows = c.rows < 0 ? -1 : (int64_t)(next(&state) % (uint32_t)(c.m + 1));
    c.x = sm == 75 || trial % 2 ? QDNN_DATA_F16 : QDNN_DATA_BF16;
    c.x_gap = trial % 3 == 1 ? 8 : trial % 6 == 2 ? 5 : 0;
    c.weights.dims[!c.k_rows] = kernel_columns_multiple(row) > 1 ? quant_case_columns(row, k) : k;
    c.weights.dims[c.k_rows] = c.gated ? 2 * n : n;
    return c;
}

static int tensor_count(void)
{
    return matmul_row_count() * LENGTH(sms);
}

static void tensor_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", kernel_format(matmul_row_at(index / LENGTH(sms)))->name,
             sms[index % LENGTH(sms)]);
}

/* Whether the weights can be prepacked: the stream kernel says so, and flat groups divide K. */
bool matmul_is_prepackable(const product_case *c)
{
    const kernel_row *row = kernel_find_operation(KERNEL_MATMUL, c->weights.row->format);
    const ref_quant_spec ref =
        quant_case_reference(&c->weights); /* has the groups that granularities stand for */
    kernel_spec spec = c->weights.spec;
    char error[256];
    spec.stored.groups = ref.no_scale ? QDNN_GROUPS_DEFAULT : ref.groups;
    spec.stored.group_size = (uint64_t)ref.group_size;
    spec.stored.group_rows = (uint64_t)ref.group_rows;
    spec.stored.channels = (uint64_t)ref.channels;
    spec.data = c->x;
    spec.product.reduction = c->k_rows ? KERNEL_K_ROWS : KERNEL_K_COLUMNS;
    spec.product.kernel = KERNEL_PRODUCT_STREAM;
    spec.product.tile_rows = 8;
    spec = kernel_spec_normal(row, &spec);
    return kernel_is_emitted(row, &spec, error, sizeof error) &&
           (kernel_columns_multiple(row) > 1 || spec.stored.groups != QDNN_GROUPS_FLAT ||
            spec.stored.channels == 1 || c->weights.dims[!c->k_rows] % (int64_t)spec.stored.group_size == 0);
}

/* sm_75, 80, 89 and 120 rest on published models of their tensor cores, sm_90 and 100 on measured ones. */
DEVICE_EACH(ParityMatmul, Tensor, tensor_count, tensor_name)
{
    const char *sm = sms[index % LENGTH(sms)];
    NEED_SM(sm);
    qdnnHandle_t handle = device_begin(sm, index % 3, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 2 && alive; i++) {
        product_case c = matmul_tensor_case_at(matmul_row_at(index / LENGTH(sms)), (2 * index + i) % TRIALS,
                                               device_sm_number(sm));
        c.prepacked = matmul_is_prepackable(&c) && index / LENGTH(sms) % 3; /* of the others as stored, too */
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}
