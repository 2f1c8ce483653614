/* Stacks of experts in mode tensor, against host_ref: every format, ragged experts, empty ones, all rows on one, rows that
 * name none, gated pairs, router weights. sm_75, 80, 89 and 120 rest on published models of their tensor cores, sm_90 and
 * 100 on measured ones. */
#include "parity/matmul.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

static product_case stack_at(const kernel_row *row, int trial, int sm)
{
    static const struct {
        int64_t m, experts, n, k;
        bool one_expert, gated;
    } shapes[] = {{37, 3, 24, 96, false, true}, {21, 2, 17, 40, true, false}, {70, 9, 3, 520, false, false}};
    const int which = trial % LENGTH(shapes);
    product_case c = matmul_tensor_case_at(row, trial, sm);
    c.m = shapes[which].m;
    c.rows = trial % 4 == 3 ? c.m - 5 : -1;
    c.experts = shapes[which].experts;
    c.one_expert = shapes[which].one_expert;
    c.gated = shapes[which].gated;
    c.row_weight = trial % 2;
    if (c.m % 7 == 0) /* a row of x for several rows of y */
        c.slots = 7;
    c.weights.dims[c.k_rows] = shapes[which].n * (c.gated ? 2 : 1);
    c.weights.dims[!c.k_rows] =
        kernel_columns_multiple(row) > 1 ? quant_case_columns(row, shapes[which].k) : shapes[which].k;
    return c;
}

DEVICE_EACH(TensorStacks, EveryFormat, matmul_row_count, matmul_row_name)
{
    const kernel_row *row = matmul_row_at(index);
    const char *sm = sms[index % LENGTH(sms)];
    qdnnHandle_t handle = device_begin(sm, index, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < 2 && alive; i++) {
        product_case c = stack_at(row, index + i, device_sm_number(sm));
        c.prepacked = i && matmul_is_prepackable(&c);
        c.choice = c.prepacked ? "kernel stream" : "kernel tile";
        alive = product_run(handle, &c, i % 2 ? BUFFER_EXACT : BUFFER_BANDS);
    }
    device_end(handle);
}

/* With their usual settings. */
TEST_CASE(TensorStacks, EveryFormatIsPrepacked)
{
    for (int i = 0; i < matmul_row_count(); i++) {
        const kernel_row *row = kernel_find_operation(KERNEL_MATMUL, matmul_row_at(i)->format);
        kernel_spec spec = kernel_spec_default();
        char error[256] = "";
        spec.data = QDNN_DATA_F16;
        spec.product.kernel = KERNEL_PRODUCT_STREAM;
        spec.product.tile_rows = 8;
        spec = kernel_spec_normal(row, &spec);
        test_push_note("%s", kernel_format(row)->name);
        CHECK(kernel_is_emitted(row, &spec, error, sizeof error));
        CHECK_EQ_STR(error, "");
        CHECK(kernel_find_prepack(row->format) != NULL);
        test_pop_note();
    }
}

TEST_CASE(TensorStacks, ManyFormatsAreStreamed)
{
    int streamed = 0;
    for (int i = 0; i < matmul_row_count(); i++) {
        product_case c = stack_at(matmul_row_at(i), i + 1, 80);
        streamed += matmul_is_prepackable(&c);
    }
    CHECK(streamed >= 12);
}
