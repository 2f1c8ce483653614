/* A product with known numbers, through the public API. */
#include "device/small_product.h"

#include "test.h"

static bool make_descriptors(small_product *p)
{
    return CHECK_QDNN(qdnnCreateMatmulDescriptor(&p->matmul)) &&
           CHECK_QDNN(qdnnCreateTensorDescriptor(&p->x)) && CHECK_QDNN(qdnnCreateTensorDescriptor(&p->w)) &&
           CHECK_QDNN(qdnnCreateTensorDescriptor(&p->y)) && CHECK_QDNN(qdnnCreateQuantDescriptor(&p->quant));
}

bool small_product_begin(small_product *p, qdnnHandle_t handle, const int64_t mnk[3], int64_t experts,
                         small_weights w)
{
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    const int64_t x_dims[] = {m, k}, y_dims[] = {m, n},
                  w_dims[] = {experts, w.k_rows ? k : n, w.k_rows ? n : k};
    *p = (small_product){.handle = handle, .m = m, .n = n, .k = k, .experts = experts};
    return make_descriptors(p) && CHECK_QDNN(qdnnSetTensorDescriptor(p->x, QDNN_DATA_F32, 2, x_dims, NULL)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(p->y, QDNN_DATA_F32, 2, y_dims, NULL)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(p->w, QDNN_DATA_F32, experts ? 3 : 2,
                                              experts ? w_dims : w_dims + 1, NULL)) &&
           CHECK_QDNN(qdnnSetQuantWeights(p->quant, w.weights, w.extent)) &&
           small_product_set(p, QDNN_MATMUL_TRANSPOSE_W, !w.k_rows) &&
           small_product_set(p, QDNN_MATMUL_EXPERTS, experts);
}

bool small_product_set(small_product *p, qdnnMatmulAttribute_t attribute, int64_t value)
{
    return CHECK_QDNN(qdnnSetMatmulAttribute(p->matmul, attribute, value));
}

void small_product_end(small_product *p)
{
    qdnnDestroyPlan(p->plan);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        device_buffer_free(&p->at[i]);
    device_buffer_free(&p->workspace);
    qdnnDestroyMatmulDescriptor(p->matmul);
    qdnnDestroyTensorDescriptor(p->x);
    qdnnDestroyTensorDescriptor(p->w);
    qdnnDestroyTensorDescriptor(p->y);
    qdnnDestroyQuantDescriptor(p->quant);
    *p = (small_product){0};
}

bool small_product_plan(small_product *p)
{
    size_t bytes = 0;
    return CHECK_QDNN(qdnnCreateMatmulPlan(p->handle, p->matmul, p->x, p->w, p->quant, p->y, &p->plan)) &&
           CHECK_QDNN(qdnnGetPlanWorkspaceSize(p->plan, &bytes)) &&
           device_buffer_make(p->handle, BUFFER_EXACT, bytes, 0, &p->workspace) &&
           device_buffer_make(p->handle, BUFFER_EXACT, (size_t)(p->m * p->n) * sizeof(float), 0,
                              &p->at[QDNN_OPERAND_Y]);
}

bool small_product_put(small_product *p, qdnnOperand_t operand, const void *host, size_t bytes)
{
    device_buffer_free(&p->at[operand]);
    return device_buffer_make(p->handle, BUFFER_EXACT, bytes, 0, &p->at[operand]) &&
           device_buffer_write(&p->at[operand], host);
}

int small_product_bind(const small_product *p, qdnnBinding_t bindings[QDNN_OPERAND_COUNT])
{
    int n = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (p->at[i].base)
            bindings[n++] = (qdnnBinding_t){(qdnnOperand_t)i, device_buffer_at(&p->at[i]), p->at[i].bytes};
    return n;
}

qdnnStatus_t small_product_execute(small_product *p, int64_t rows)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int count = small_product_bind(p, bindings);
    void *workspace = device_buffer_at(&p->workspace);
    qdnnStatus_t status =
        rows < 0 ? qdnnExecute(p->handle, p->plan, bindings, count, workspace, p->workspace.bytes)
                 : qdnnExecuteRows(p->handle, p->plan, rows, bindings, count, workspace, p->workspace.bytes);
    return status == QDNN_STATUS_SUCCESS ? qdnnSynchronize(p->handle) : status;
}

bool small_product_result(const small_product *p, float *y)
{
    const device_buffer *from = &p->at[QDNN_OPERAND_Y];
    return CHECK_QDNN(qdnnCopyToHost(p->handle, y, device_buffer_at(from), from->bytes));
}

bool small_product_run(small_product *p, float *y)
{
    return CHECK_QDNN(small_product_execute(p, -1)) && small_product_result(p, y);
}
