/* From a weight to the kernels of its product, and from these to the model of time. No device is opened. */
#include "tools/qdnn/modelled.h"

#include "driver/api/matmul.h"

int modelled_begin(void)
{
    char why[512];
    return sass_found(why, sizeof why) ? TOOL_OK : tool_fail("--gpu models times from machine code: %s", why);
}

/* The weight's descriptors say where N and K are; x and y are described beside them. */
typedef struct question {
    tensor w;
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, y;
} question;

static qdnnStatus_t ask(question *q, int64_t m, const board *on, request *out)
{
    const bool turned = q->w.how.transposed;
    const int64_t n = turned ? q->w.columns : q->w.rows, k = turned ? q->w.rows : q->w.columns;
    qdnnStatus_t status = qdnnCreateMatmulDescriptor(&q->matmul);
    if (!status)
        status = qdnnSetMatmulAttribute(q->matmul, QDNN_MATMUL_TRANSPOSE_W, !turned);
    if (!status)
        status = qdnnCreateTensorDescriptor(&q->x);
    if (!status)
        status = qdnnCreateTensorDescriptor(&q->y);
    if (!status)
        status = qdnnSetTensorDescriptor(q->x, QDNN_DATA_F16, 2, (const int64_t[]){m, k}, NULL);
    if (!status)
        status = qdnnSetTensorDescriptor(q->y, QDNN_DATA_F16, 2, (const int64_t[]){m, n}, NULL);
    matmul_call call = {.matmul = q->matmul,
                        .x = q->x,
                        .w = q->w.plain,
                        .y = q->y,
                        .quant = q->w.quant,
                        .problem.multiprocessors = on->multiprocessors};
    return status ? status : matmul_exact_request(&call, out);
}

static void question_close(question *q)
{
    qdnnDestroyMatmulDescriptor(q->matmul);
    qdnnDestroyTensorDescriptor(q->x);
    qdnnDestroyTensorDescriptor(q->y);
    tensor_close(&q->w);
}

/* The same product with [N, K] weights in f16. */
static bool plain_of(const kernel_problem *like, bool by_columns, const board *on, facts_product *out,
                     char *why, size_t size)
{
    const kernel_row *row = kernel_find("matmul_plain_f16");
    kernel_spec spec = kernel_spec_default();
    const kernel_problem problem = {.rows = by_columns ? like->rows : like->columns,
                                    .columns = by_columns ? like->columns : like->rows,
                                    .multiprocessors = on->multiprocessors,
                                    .m = like->m,
                                    .x_stride = like->x_stride,
                                    .y_stride = like->y_stride};
    if (!kernel_spec_set_words(row, &spec, "data=f16 output=f16 reduction=columns", why, size))
        return false;
    kernel_product_choose(row, &problem, &spec);
    if (!kernel_spec_settle_kernel(row, &spec, why, size))
        return false;
    *out = (facts_product){row, spec, problem};
    return true;
}

static bool model(const request *r, const board *on, modelled *out)
{
    const facts_product product = {r->row, r->spec, r->problem};
    facts_product plain;
    product_time t, plain_time;
    if (!product_time_of(&product, on, &t, out->refused, sizeof out->refused) ||
        !plain_of(&r->problem, r->spec.product.reduction == KERNEL_K_COLUMNS, on, &plain, out->refused,
                  sizeof out->refused) ||
        !product_time_of(&plain, on, &plain_time, out->refused, sizeof out->refused))
        return false;
    for (int c = 0; c < CLOCK_CORNERS; c++) {
        out->us[c] = t.us[c];
        out->plain_us[c] = plain_time.us[c];
    }
    out->roofline_us = t.roofline_us;
    out->launches = t.launches;
    out->refused[0] = 0;
    return true;
}

int modelled_of(const qdnnFileWeight_t *weight, int64_t m, const board *on, modelled *out)
{
    question q = {0};
    request r;
    *out = (modelled){0};
    int status = tensor_describe(&q.w, weight->name, weight);
    if (status == TOOL_OK) {
        qdnnStatus_t asked = ask(&q, m, on, &r);
        if (asked)
            status = fail_status(weight->name, asked);
        else if (!model(&r, on, out) && !out->refused[0])
            status = tool_fail("%s: out of memory", weight->name);
    }
    question_close(&q);
    return status;
}
