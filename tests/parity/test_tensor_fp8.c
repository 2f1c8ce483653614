/* FP8 with FP8 in mode tensor, against host_ref: sm_89 (measured) and sm_120 (published) by their instructions for FP8, sm_75
 * and 80 (published), sm_90 and 100 (measured) as f16. Types of both factors, shapes that are multiples of nothing, rows that
 * lie apart, both orders of weights, everything that follows the sum, experts, and x quantized in the plan. */
#include <stdio.h>
#include <stdlib.h>

#include "device/product_case.h"
#include "parity/ptxvm.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const struct {
    const char *sm, *standing;
} families[] = {{"sm_75", "published"}, {"sm_80", "published"}, {"sm_89", "measured"},
                {"sm_90", "measured"},  {"sm_100", "measured"}, {"sm_120", "published"}};

static const qdnnDataType_t fp8[] = {QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2};

/* clang-format off */
static const struct {
    int64_t m, n, k, x_gap;
    bool k_rows;
    size_t shift;
    data_kind kind;
} shapes[] = {
    {5, 40, 608, 0, false, 0, DATA_NORMAL},     /* more than a strip, by pieces */
    {19, 21, 77, 0, false, 1, DATA_NORMAL},     /* one by one */
    {130, 136, 144, 16, false, 0, DATA_NORMAL}, /* several tiles */
    {33, 72, 544, 3, true, 0, DATA_NORMAL},     /* [K, N] */
    {8, 16, 96, 0, false, 0, DATA_SPECIAL},     /* NaN and infinity */
    {1, 3, 1, 0, false, 0, DATA_SUBNORMAL},
};
/* clang-format on */

static product_case case_at(int shape, qdnnDataType_t x, qdnnDataType_t w, const char *sm)
{
    product_case c = {
        .weights = {.row = kernel_find(w == QDNN_DATA_F8E4M3 ? "dequantize_e4m3" : "dequantize_e5m2"),
                    .spec = kernel_spec_default(),
                    .granularity = QDNN_GRANULARITY_NONE,
                    .rank = 2,
                    .seed = (uint32_t)shape + 3},
        .rows = shape == 2 ? 70 : -1,
        .x = x,
        .y = shape % 2 ? QDNN_DATA_F32 : QDNN_DATA_F16,
        .m = shapes[shape].m,
        .x_gap = shapes[shape].x_gap,
        .y_gap = shape % 3,
        .k_rows = shapes[shape].k_rows,
        .alpha = QDNN_ALPHA_COLUMN,
        .bias = shape % 2 ? QDNN_DATA_F16 : 0,
        .activation = shape == 3 ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE,
        .gated = shape == 3,
        .residual = shape == 0,
        .kind = shapes[shape].kind,
        .seed = (uint32_t)shape + 11,
        .algorithm = QDNN_MATMUL_TENSOR,
        .sm = atoi(sm + 3),
        .shift = shapes[shape].shift,
        .x_scale = shape != 1};
    c.weights.dims[c.k_rows] = shapes[shape].n;
    c.weights.dims[!c.k_rows] = shapes[shape].k;
    return c;
}

static int case_count(void)
{
    return LENGTH(families) * 4;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_e%s_e%s", families[index / 4].sm, families[index / 4].standing,
             index % 2 ? "5m2" : "4m3", index / 2 % 2 ? "5m2" : "4m3");
}

TEST_EACH(TensorFp8, HostRef, case_count, case_name)
{
    NEED_PTXVM;
    const char *sm = families[index / 4].sm;
    qdnnHandle_t handle = ptxvm_begin(sm, index % 3, "all", "stderr");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(shapes) && alive; i++) {
        product_case c = case_at(i, fp8[index % 2], fp8[index / 2 % 2], sm);
        c.choice = families[index / 4].standing;
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    ptxvm_end(handle);
}
