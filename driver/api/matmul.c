/* Products with quantized weights: descriptors, and plans. */

#include "driver/base/alloc.h"
#include "driver/api/attributes.h"
#include "driver/api/matmul.h"

#include <stdio.h>

/* ---- Descriptors ---- */

/* clang-format off */
static const attribute rows[QDNN_MATMUL_ATTRIBUTE_COUNT] = {
    [QDNN_MATMUL_ALGORITHM] = {"QDNN_MATMUL_ALGORITHM", QDNN_MATMUL_AUTO,
        ONE_OF(C(MATMUL_EXACT), C(MATMUL_CUBLAS), C(MATMUL_AUTO), C(MATMUL_TENSOR))},
    [QDNN_MATMUL_TRANSPOSE_W] = {"QDNN_MATMUL_TRANSPOSE_W", 1, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_ALPHA] = {"QDNN_MATMUL_ALPHA", QDNN_ALPHA_NONE,
        ONE_OF(C(ALPHA_NONE), C(ALPHA_NUMBER), C(ALPHA_ONE), C(ALPHA_COLUMN))},
    [QDNN_MATMUL_BIAS_TYPE] = {"QDNN_MATMUL_BIAS_TYPE", 0,
        ONE_OF({0, "0"}, C(DATA_F32), C(DATA_F16), C(DATA_BF16))},
    [QDNN_MATMUL_ACTIVATION] = {"QDNN_MATMUL_ACTIVATION", QDNN_ACTIVATION_NONE,
        ONE_OF(C(ACTIVATION_NONE), C(ACTIVATION_RELU), C(ACTIVATION_GELU_TANH), C(ACTIVATION_GELU_ERF), C(ACTIVATION_SILU))},
    [QDNN_MATMUL_GATED] = {"QDNN_MATMUL_GATED", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_RESIDUAL] = {"QDNN_MATMUL_RESIDUAL", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_EXPERTS] = {"QDNN_MATMUL_EXPERTS", 0, FROM_TO(0, 1 << 20, "0 to 2^20")},
    [QDNN_MATMUL_ROW_WEIGHT] = {"QDNN_MATMUL_ROW_WEIGHT", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_CHECK_INDICES] = {"QDNN_MATMUL_CHECK_INDICES", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_LORA_RANK] = {"QDNN_MATMUL_LORA_RANK", 0, FROM_TO(0, 1 << 20, "0 to 2^20")},
    [QDNN_MATMUL_LORA_TYPE] = {"QDNN_MATMUL_LORA_TYPE", QDNN_DATA_F16,
        ONE_OF(C(DATA_F32), C(DATA_F16), C(DATA_BF16))},
    [QDNN_MATMUL_PREPACKED] = {"QDNN_MATMUL_PREPACKED", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_X_SCALE] = {"QDNN_MATMUL_X_SCALE", 0, FROM_TO(0, 1, "0 or 1")},
    [QDNN_MATMUL_QUANTIZE_X] = {"QDNN_MATMUL_QUANTIZE_X", 0,
        ONE_OF({0, "0"}, C(DATA_F8E4M3), C(DATA_F8E5M2))},
    [QDNN_MATMUL_SLOTS] = {"QDNN_MATMUL_SLOTS", 1, FROM_TO(1, 32, "1 to 32")},
};
/* clang-format on */
static const attribute_table attributes = {rows, QDNN_MATMUL_ATTRIBUTE_COUNT};

qdnnStatus_t qdnnCreateMatmulDescriptor(qdnnMatmulDescriptor_t *matmul)
{
    CALL_BEGIN_WITH(matmul);
    CHECK_NOT_NULL(matmul);
    qdnnMatmulDescriptor_t made = object_create(OBJECT_MATMUL, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    attributes_preset(&attributes, made->values);
    made->lora_scale = 1;
    *matmul = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                    int64_t value)
{
    CALL_BEGIN_WITH(matmul, attribute, value);
    CHECK_NOT_NULL(matmul);
    return attribute_set(&attributes, matmul->values, (int)attribute, value);
}

qdnnStatus_t qdnnGetMatmulAttribute(qdnnMatmulDescriptor_t matmul, qdnnMatmulAttribute_t attribute,
                                    int64_t *value)
{
    CALL_BEGIN_WITH(matmul, attribute, value);
    CHECK_NOT_NULL(matmul);
    CHECK_NOT_NULL(value);
    return attribute_get(&attributes, matmul->values, (int)attribute, value);
}

qdnnStatus_t qdnnSetMatmulAlpha(qdnnMatmulDescriptor_t matmul, float alpha)
{
    CALL_BEGIN_WITH(matmul, alpha);
    CHECK_NOT_NULL(matmul);
    matmul->values[QDNN_MATMUL_ALPHA] = QDNN_ALPHA_NUMBER;
    matmul->alpha = alpha;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnSetMatmulLoraScale(qdnnMatmulDescriptor_t matmul, float scale)
{
    CALL_BEGIN_WITH(matmul, scale);
    CHECK_NOT_NULL(matmul);
    matmul->lora_scale = scale;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnDestroyMatmulDescriptor(qdnnMatmulDescriptor_t matmul)
{
    CALL_BEGIN_WITH(matmul);
    if (matmul)
        CHECK_NOT_NULL(matmul);
    object_destroy(matmul);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Shapes ---- */

/* The rows of [..., columns]. */
static int64_t rows_of(const struct qdnnTensorDescriptor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank - 1; i++)
        count *= t->dims[i];
    return count;
}

/* The elements of a row are contiguous; rows may have gaps between them, all of the same size. */
static qdnnStatus_t find_stride(const char *name, const struct qdnnTensorDescriptor *t, uint64_t *stride)
{
    const int last = t->rank - 1;
    bool even = t->dims[last] <= 1 || t->strides[last] == 1;
    int64_t rows = t->dims[last],
            next = -1; /* between rows; the stride that the previous dimension must have */
    for (int i = last - 1; i >= 0; i--) {
        if (t->dims[i] <= 1)
            continue;
        if (next < 0)
            rows = t->strides[i];
        else
            even = even && t->strides[i] == next;
        next = t->strides[i] * t->dims[i];
    }
    *stride = (uint64_t)rows;
    if (even && (rows_of(t) <= 1 || rows >= t->dims[last]))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "the strides of %s do not describe contiguous rows at equal distances; fix: make the "
                      "last stride 1 and give all rows the same stride",
                      name);
}

bool matmul_type_is_fp8(qdnnDataType_t type)
{
    return type == QDNN_DATA_F8E4M3 || type == QDNN_DATA_F8E5M2;
}

qdnnDataType_t matmul_x_fp8(const matmul_call *c)
{
    const qdnnDataType_t quantized = (qdnnDataType_t)c->matmul->values[QDNN_MATMUL_QUANTIZE_X];
    return matmul_type_is_fp8(c->x->type) ? c->x->type : quantized;
}

static qdnnStatus_t check_type(const char *name, qdnnDataType_t type)
{
    if (type == QDNN_DATA_F32 || type == QDNN_DATA_F16 || type == QDNN_DATA_BF16)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s is %s; it must be f32, f16 or bf16", name,
                      qdnnGetDataTypeName(type));
}

/* The weights of one expert, or all of them, as a matrix. */
static qdnnStatus_t find_matrix(matmul_call *c)
{
    const struct qdnnTensorDescriptor *w = c->w;
    const int64_t experts = c->matmul->values[QDNN_MATMUL_EXPERTS];
    const int rank = experts ? 3 : 2;
    if (w->rank != rank)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "w has %d dimensions; it must have %d%s",
                          w->rank, rank, experts ? ", the experts first" : "");
    if (experts && w->dims[0] != experts)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "w has %lld matrices, and QDNN_MATMUL_EXPERTS is %lld; they must be the same",
                          (long long)w->dims[0], (long long)experts);
    CHECK_STATUS(request_check_packed(w));
    /* next to x in FP8, FP8 means the type of the codes; a request has a floating-point type there */
    const qdnnDataType_t type = matmul_x_fp8(c) && matmul_type_is_fp8(w->type) ? QDNN_DATA_F16 : w->type;
    return tensor_set(&c->matrix, type, 2, w->dims + rank - 2, NULL);
}

/* Translates the descriptor into settings of kernels. */
static kernel_spec spec_of(const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    kernel_spec spec = kernel_spec_default();
    spec.epilogue.output = c->y->type;
    spec.product.reduction = value[QDNN_MATMUL_TRANSPOSE_W] ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    spec.epilogue.alpha = (qdnnAlpha_t)value[QDNN_MATMUL_ALPHA];
    spec.epilogue.bias = (int)value[QDNN_MATMUL_BIAS_TYPE];
    spec.epilogue.activation = (qdnnActivation_t)value[QDNN_MATMUL_ACTIVATION];
    spec.epilogue.gated = (int)value[QDNN_MATMUL_GATED];
    spec.epilogue.residual = (int)value[QDNN_MATMUL_RESIDUAL];
    spec.product.grouped = value[QDNN_MATMUL_EXPERTS] > 0;
    spec.product.x_share = (uint64_t)value[QDNN_MATMUL_SLOTS];
    spec.epilogue.row_weight = (int)value[QDNN_MATMUL_ROW_WEIGHT];
    spec.epilogue.addend = value[QDNN_MATMUL_LORA_RANK] > 0;
    spec.product.x_fp8 = (int)matmul_x_fp8(c);
    spec.product.x_scale = value[QDNN_MATMUL_X_SCALE] || value[QDNN_MATMUL_QUANTIZE_X];
    spec.data = spec.product.x_fp8 ? QDNN_DATA_F16 : c->x->type; /* F16: the type in the tiles on most SMs */
    return spec;
}

/* Their strides are not known yet; neither is whether the two fit together. */
static kernel_problem problem_of(const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    return (kernel_problem){.rows = (uint64_t)c->matrix.dims[0],
                            .columns = (uint64_t)c->matrix.dims[1],
                            .multiprocessors = c->problem.multiprocessors,
                            .m = (uint64_t)(rows_of(c->x) * value[QDNN_MATMUL_SLOTS]),
                            .experts = (uint64_t)value[QDNN_MATMUL_EXPERTS],
                            .quantizes = value[QDNN_MATMUL_QUANTIZE_X] ? c->x->type : (qdnnDataType_t)0,
                            .alpha = c->matmul->alpha,
                            .lora_rank = (uint64_t)value[QDNN_MATMUL_LORA_RANK],
                            .lora_scale = c->matmul->lora_scale,
                            .lora_type = (qdnnDataType_t)value[QDNN_MATMUL_LORA_TYPE]};
}

static qdnnStatus_t check_shape(const matmul_call *c)
{
    const struct qdnnTensorDescriptor *x = c->x, *y = c->y;
    const kernel_shape *s = &c->shape;
    const uint64_t x_columns = (uint64_t)x->dims[x->rank - 1], y_columns = (uint64_t)y->dims[y->rank - 1];
    if (c->spec.epilogue.gated && s->outputs % 2 != 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_MATMUL_GATED is 1, and w has %llu outputs; it must have an even number, a and b",
            (unsigned long long)s->outputs);
    if (x_columns != s->k)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has rows of %llu, w a K of %llu; they must be the same",
                          (unsigned long long)x_columns, (unsigned long long)s->k);
    if (y_columns != s->n || (uint64_t)rows_of(y) != c->problem.m)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "y is [%lld, %llu]; it must be [%llu, %llu]",
                          (long long)rows_of(y), (unsigned long long)y_columns,
                          (unsigned long long)c->problem.m, (unsigned long long)s->n);
    if (!matmul_type_is_fp8(x->type))
        CHECK_STATUS(check_type("x", x->type));
    return check_type("y", y->type);
}

static qdnnStatus_t find_shape(matmul_call *c)
{
    CHECK_STATUS(find_matrix(c));
    c->spec = spec_of(c);
    c->problem = problem_of(c);
    c->shape = kernel_shape_of(&c->spec, &c->problem);
    CHECK_STATUS(check_shape(c));
    CHECK_STATUS(find_stride("x", c->x, &c->problem.x_stride));
    return find_stride("y", c->y, &c->problem.y_stride);
}

/* ---- Plans ---- */

/* M, N and the batch have no say: they would decide about bits. */
static const matmul_way *way_of(qdnnHandle_t handle, const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    switch ((qdnnMatmulAlgorithm_t)value[QDNN_MATMUL_ALGORITHM]) {
    case QDNN_MATMUL_CUBLAS:
        return &matmul_cublas;
    case QDNN_MATMUL_TENSOR:
        return &matmul_tensor;
    case QDNN_MATMUL_AUTO:
        if (handle->math == QDNN_MATH_EXACT)
            return &matmul_exact;
        /* no other kernel reads prepacked weights */
        return value[QDNN_MATMUL_PREPACKED] || matmul_tensor_has(handle, c) ? &matmul_tensor : &matmul_exact;
    default:
        return &matmul_exact;
    }
}

static const char *reason_of(qdnnHandle_t handle, const matmul_call *c, const matmul_way *way)
{
    if (c->matmul->values[QDNN_MATMUL_ALGORITHM] != QDNN_MATMUL_AUTO)
        return "as asked for";
    return handle->math == QDNN_MATH_EXACT ? "AUTO, and the handle asks for QDNN_MATH_EXACT"
           : way == &matmul_tensor         ? "AUTO"
           : c->x->type == QDNN_DATA_F32   ? "AUTO, as x is f32"
                                           : "AUTO, as the SM has no tensor cores for x";
}

/* The algorithm, the kernel and the reason, appended to the description of the way. */
static void describe(qdnnPlan_t plan, const matmul_call *c, const matmul_way *way, const request *r)
{
    char kernel[32];
    kernel_spec_value(&r->spec, "product", kernel, sizeof kernel);
    int used = snprintf(plan->choice, sizeof plan->choice, "%s; %s", plan->info.choice,
                        reason_of(plan->handle, c, way));
    if (way != &matmul_cublas)
        snprintf(plan->choice + used, sizeof plan->choice - (size_t)used,
                 "; kernel %s with tiles of %llu rows, for up to %llu rows%s on %d multiprocessors", kernel,
                 (unsigned long long)r->spec.product.tile_rows, (unsigned long long)c->problem.m,
                 c->problem.experts ? " sorted by expert" : "", r->problem.multiprocessors);
    plan->info.choice = plan->choice;
}

static qdnnStatus_t make_plan(qdnnHandle_t handle, const matmul_call *c, const matmul_way *way,
                              const request *r, qdnnPlan_t *out)
{
    qdnnPlan_t plan = NULL;
    CHECK_STATUS(plan_new(handle,
                          way == &matmul_cublas ? "quant.matmul"
                                                : kernel_operation_name(r->row, &r->spec, c->problem.m),
                          &plan));
    plan->takes_rows = !r->problem.quantizes || way == &matmul_cublas;
    plan->rows = c->problem.m;
    plan->info.choice = way->choice;
    plan_typed(plan, QDNN_OPERAND_X, c->x->type);
    plan_typed(plan, QDNN_OPERAND_Y, c->y->type);
    plan_typed(plan, QDNN_OPERAND_RESIDUAL, c->y->type);
    plan_typed(plan, QDNN_OPERAND_BIAS, (qdnnDataType_t)c->matmul->values[QDNN_MATMUL_BIAS_TYPE]);
    qdnnStatus_t status = way->fill(plan, c, r);
    describe(plan, c, way, r);
    if (status == QDNN_STATUS_SUCCESS)
        *out = plan;
    else
        plan_free(plan);
    return status;
}

/* What only tensor cores compute; the handle may have asked AUTO for something else. */
static qdnnStatus_t refuse_tensor_only(const matmul_call *c, const char *what, const char *type)
{
    if (c->matmul->values[QDNN_MATMUL_ALGORITHM] == QDNN_MATMUL_AUTO)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s%s, which only tensor cores compute, and the handle asks for QDNN_MATH_EXACT; fix: set "
            "QDNN_MATMUL_ALGORITHM to QDNN_MATMUL_TENSOR, or call qdnnSetMath with QDNN_MATH_FAMILY",
            what, type);
    return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                      "%s%s; fix: set QDNN_MATMUL_ALGORITHM to QDNN_MATMUL_TENSOR or QDNN_MATMUL_AUTO", what,
                      type);
}

static qdnnStatus_t check_prepacked(const matmul_call *c, const matmul_way *way)
{
    if (c->matmul->values[QDNN_MATMUL_PREPACKED] && way != &matmul_tensor)
        return refuse_tensor_only(c, "QDNN_MATMUL_PREPACKED is 1", "");
    return QDNN_STATUS_SUCCESS;
}

/* x in FP8, and its scales. */
static qdnnStatus_t check_fp8(const matmul_call *c, const matmul_way *way)
{
    if (matmul_x_fp8(c) && way != &matmul_tensor)
        return refuse_tensor_only(c, matmul_type_is_fp8(c->x->type) ? "x is " : "x is to be quantized to ",
                                  qdnnGetDataTypeName(matmul_x_fp8(c)));
    if (c->matmul->values[QDNN_MATMUL_X_SCALE] && !matmul_x_fp8(c))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_MATMUL_X_SCALE is 1, and x is %s; scales belong to x in FP8; fix: set it to 0",
            qdnnGetDataTypeName(c->x->type));
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t matmul_exact_request(matmul_call *call, request *out)
{
    CHECK_STATUS(find_shape(call));
    CHECK_STATUS(check_fp8(call, &matmul_exact));
    return matmul_exact.prepare(call, out);
}

qdnnStatus_t matmul_create_plan(qdnnHandle_t handle, matmul_call *call, qdnnPlan_t *plan)
{
    request r;
    bool pushed;
    call->problem.multiprocessors = handle->context->device.multiprocessors;
    CHECK_STATUS(find_shape(call));
    const matmul_way *way = way_of(handle, call);
    CHECK_STATUS(check_prepacked(call, way));
    CHECK_STATUS(check_fp8(call, way));
    CHECK_STATUS(way->prepare(call, &r));
    CHECK_STATUS(handle_enter(handle, &pushed));
    qdnnStatus_t status = make_plan(handle, call, way, &r, plan);
    handle_leave(handle, pushed);
    if (status == QDNN_STATUS_SUCCESS)
        handle->plans++;
    return status;
}

qdnnStatus_t qdnnCreateMatmulPlan(qdnnHandle_t handle, qdnnMatmulDescriptor_t matmul,
                                  qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                  qdnnQuantDescriptor_t quant, qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, matmul, x, w, quant, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(matmul);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_NOT_NULL(quant);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    matmul_call call = {.matmul = matmul, .x = x, .w = w, .y = y, .quant = quant};
    return matmul_create_plan(handle, &call, plan);
}
