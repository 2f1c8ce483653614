/* Plans that prepack codes into the order of tensor cores, and plans that unpack them. */
#include "driver/api/matmul.h"

/* Whether there is a kernel for products that reads such prepacked codes; x in f16 stands for all types of
 * x. */
static qdnnStatus_t check_served(const request *weights, const kernel_spec *from)
{
    kernel_spec product = *from;
    char reason[256];
    product.data = QDNN_DATA_F16;
    product.product.kernel = KERNEL_PRODUCT_STREAM;
    product.product.tile_rows = 1;
    if (kernel_is_emitted(weights->row, &product, reason, sizeof reason))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
}

enum { EXPERTS_MAX = 1 << 20 }; /* same limit as QDNN_MATMUL_EXPERTS */

/* The shape of the weights of one expert, or of the only matrix. */
static qdnnStatus_t find_matrix(const struct qdnnTensorDescriptor *w, struct qdnnTensorDescriptor *matrix)
{
    if (w->rank != 2 && w->rank != 3)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "w has %d dimensions; it must have 2, or 3 with the experts first", w->rank);
    if (w->rank == 3 && (w->dims[0] < 1 || w->dims[0] > EXPERTS_MAX))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "w has %lld matrices; it must have 1 to 2^20",
                          (long long)w->dims[0]);
    CHECK_STATUS(request_check_packed(w));
    /* FP8 stands for the codes, as in products with x in FP8; requests have a plain type there */
    const qdnnDataType_t type = matmul_type_is_fp8(w->type) ? QDNN_DATA_F16 : w->type;
    return tensor_set(matrix, type, 2, w->dims + w->rank - 2, NULL);
}

/* Repeats the request for each matrix of a stack. */
static void repeat(request *r, uint64_t matrices)
{
    r->repeats = matrices;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        r->strides[i] = r->operands[i].bytes;
        r->operands[i].bytes *= matrices;
    }
}

static qdnnStatus_t prepare(const struct qdnnMatmulDescriptor *matmul, const struct qdnnTensorDescriptor *w,
                            const struct qdnnQuantDescriptor *quant, bool back, request *out)
{
    const bool columns = matmul->values[QDNN_MATMUL_TRANSPOSE_W];
    struct qdnnTensorDescriptor matrix;
    CHECK_STATUS(find_matrix(w, &matrix));
    const int64_t *dims = matrix.dims;
    CHECK_STATUS(request_make(KERNEL_MATMUL, &matrix, quant, out));
    out->spec.product.reduction = columns ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    CHECK_STATUS(check_served(out, &out->spec));
    CHECK_STATUS(matmul_check_flat(out->row, &out->spec, dims[columns]));
    out->row = kernel_find_prepack(out->row->format);
    out->spec.product.unpack = back;
    out->spec = kernel_spec_normal(out->row, &out->spec);
    out->problem = (kernel_problem){.rows = (uint64_t)dims[0], .columns = (uint64_t)dims[1]};
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    if (w->rank == 3)
        repeat(out, (uint64_t)w->dims[0]);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t create(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul, qdnnTensorDescriptor_t w,
                           qdnnQuantDescriptor_t quant, bool back, qdnnPlan_t *plan)
{
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_TENSOR(w);
    CHECK_NOT_NULL(quant);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(prepare(matmul, w, quant, back, &r));
    return plan_create(handle, &r, plan);
}

qdnnStatus_t qdnnCreatePrepackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                   qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN();
    return create(handle, matmul, w, quant, false, plan);
}

qdnnStatus_t qdnnCreateUnpackPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                  qdnnTensorDescriptor_t w, qdnnQuantDescriptor_t quant, qdnnPlan_t *plan)
{
    CALL_BEGIN();
    return create(handle, matmul, w, quant, true, plan);
}
