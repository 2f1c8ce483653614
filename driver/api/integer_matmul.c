/* Plans of integer products: the types of x, w and y select the kernel. */
#include "driver/api/integer.h"

#include "driver/base/check.h"

/* ---- Shapes ---- */

static int64_t columns_of(const struct qdnnTensorDescriptor *t)
{
    return t->dims[t->rank - 1];
}

/* The rows of [..., columns]. */
static int64_t rows_of(const struct qdnnTensorDescriptor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank - 1; i++)
        count *= t->dims[i];
    return count;
}

/* `experts` 0: w is one matrix. */
static qdnnStatus_t find_shape(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                               bool is_kn, int64_t experts, int64_t slots, kernel_problem *p)
{
    const int rank = experts ? 3 : 2;
    if (w->rank != rank)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "w has %d dimensions; it must have %d%s",
                          w->rank, rank, experts ? ", the experts first" : "");
    if (experts && w->dims[0] != experts)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "w has %lld matrices, and %s is %lld; they must be the same", (long long)w->dims[0],
                          integer_attribute_name(QDNN_INTEGER_EXPERTS), (long long)experts);
    const int64_t *matrix = w->dims + rank - 2, n = matrix[is_kn], k = matrix[!is_kn];
    if (columns_of(x) != k)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "x has rows of %lld, w a K of %lld; they must be the same",
                          (long long)columns_of(x), (long long)k);
    CHECK_STATUS(request_check_packed(x));
    CHECK_STATUS(request_check_packed(w));
    CHECK_STATUS(integer_check_size("M", rows_of(x)));
    CHECK_STATUS(integer_check_size("M", rows_of(x) * slots));
    CHECK_STATUS(integer_check_size("N", n));
    CHECK_STATUS(integer_check_size("K", k));
    p->m = (uint64_t)(rows_of(x) * slots);
    p->rows = (uint64_t)n;
    p->columns = (uint64_t)k;
    p->experts = (uint64_t)experts;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_result(const char *name, const struct qdnnTensorDescriptor *y, uint64_t rows,
                                 uint64_t columns)
{
    if ((uint64_t)columns_of(y) != columns || (uint64_t)rows_of(y) != rows)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "%s is [%lld, %lld]; it must be [%llu, %llu]",
                          name, (long long)rows_of(y), (long long)columns_of(y), (unsigned long long)rows,
                          (unsigned long long)columns);
    return request_check_packed(y);
}

/* ---- Products ---- */

static bool is_float(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 || type == QDNN_DATA_F16 || type == QDNN_DATA_BF16;
}

/* The type of the codes of x: its own, or the one it is quantized to. */
static qdnnDataType_t codes_of(const struct qdnnTensorDescriptor *x)
{
    return is_float(x->type) ? QDNN_DATA_I8 : x->type;
}

static const char *kernel_for(qdnnDataType_t x, qdnnDataType_t w, qdnnDataType_t y, bool w_scale_first)
{
    const bool bytes = x == QDNN_DATA_I8 || x == QDNN_DATA_U8;
    if (bytes && w == QDNN_DATA_I8 && is_float(y))
        return "w8a8_matmul";
    if (bytes && w == QDNN_DATA_I8 && (y == QDNN_DATA_I8 || y == QDNN_DATA_U8 || y == QDNN_DATA_I32))
        return "int8_qmatmul";
    if (x == QDNN_DATA_I8 && w == QDNN_DATA_I4 && is_float(y))
        return "w4a8_matmul";
    if (x == QDNN_DATA_I4 && w == QDNN_DATA_I4 && is_float(y))
        return w_scale_first ? "int4_matmul" : "w4a4_matmul";
    return NULL;
}

static qdnnStatus_t set_scaled(const struct qdnnIntegerDescriptor *integer, qdnnDataType_t y, request *out)
{
    const int64_t *value = integer->values;
    if (value[QDNN_INTEGER_BIAS_TYPE] == QDNN_DATA_I32)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s is QDNN_DATA_I32, and y %s; the bias of scaled results must be f32, f16 or bf16",
            integer_attribute_name(QDNN_INTEGER_BIAS_TYPE), qdnnGetDataTypeName(y));
    out->spec.epilogue.output = y;
    out->spec.epilogue.alpha = (qdnnAlpha_t)value[QDNN_INTEGER_ALPHA];
    out->spec.epilogue.bias = (int)value[QDNN_INTEGER_BIAS_TYPE];
    out->spec.epilogue.activation = (qdnnActivation_t)value[QDNN_INTEGER_ACTIVATION];
    out->spec.epilogue.residual = (int)value[QDNN_INTEGER_RESIDUAL];
    out->spec.epilogue.gated = (int)value[QDNN_INTEGER_GATED];
    out->spec.epilogue.row_weight = (int)value[QDNN_INTEGER_ROW_WEIGHT];
    out->spec.product.grouped = value[QDNN_INTEGER_EXPERTS] > 0;
    out->spec.product.x_share = (uint64_t)value[QDNN_INTEGER_SLOTS];
    out->spec.stored.group_size = (uint64_t)value[QDNN_INTEGER_GROUP_SIZE];
    out->spec.stored.scale = (qdnnScaleType_t)value[QDNN_INTEGER_SCALE_TYPE];
    out->problem.alpha = integer->alpha;
    return QDNN_STATUS_SUCCESS;
}

/* Attributes that the chosen operation does not support must be at their defaults. */
static qdnnStatus_t check_values(const struct qdnnIntegerDescriptor *integer, const request *r,
                                 const char *kernel)
{
    static const struct {
        qdnnIntegerAttribute_t attribute;
        const char *setting;
    } needs[] = {{QDNN_INTEGER_X_ZERO, "x_zero"},     {QDNN_INTEGER_W_ZERO, "w_zero"},
                 {QDNN_INTEGER_ALPHA, "alpha"},       {QDNN_INTEGER_ACTIVATION, "activation"},
                 {QDNN_INTEGER_RESIDUAL, "residual"}, {QDNN_INTEGER_MULTIPLIERS, "multipliers"},
                 {QDNN_INTEGER_Y_ZERO, "bias_i32"},   {QDNN_INTEGER_SCALE_TYPE, "scale"},
                 {QDNN_INTEGER_GATED, "gated"},       {QDNN_INTEGER_EXPERTS, "grouped"},
                 {QDNN_INTEGER_SLOTS, "x_share"},     {QDNN_INTEGER_ROW_WEIGHT, "row_weight"}};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (!kernel_takes(r->row, needs[i].setting))
            CHECK_STATUS(integer_refuse(integer, needs[i].attribute, r->row->operation_name));
    if (!kernel_takes(r->row, "bias") && !kernel_takes(r->row, "bias_i32"))
        CHECK_STATUS(integer_refuse(integer, QDNN_INTEGER_BIAS_TYPE, r->row->operation_name));
    if (r->problem.w_is_kn && (!kernel_takes(r->row, "x_zero")))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is 0, and w has codes of 4 bits; %s takes w as [N, K]",
                          integer_attribute_name(QDNN_INTEGER_TRANSPOSE_W), kernel);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_quantized(const struct qdnnIntegerDescriptor *integer, const request *r)
{
    if (!r->problem.quantizes)
        return QDNN_STATUS_SUCCESS;
    if (r->problem.columns == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "K is 0; where x is quantized it must be at least 1");
    if (r->spec.integer.x_zero)
        return integer_refuse(integer, QDNN_INTEGER_X_ZERO, "x that is quantized with a scale for each row");
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_experts(const struct qdnnIntegerDescriptor *integer)
{
    const int64_t slots = integer->values[QDNN_INTEGER_SLOTS];
    if (slots == 1 || integer->values[QDNN_INTEGER_EXPERTS])
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM,
                      "%s is %lld, and %s is 0; slots belong to a product with experts; fix: set it to 1",
                      integer_attribute_name(QDNN_INTEGER_SLOTS), (long long)slots,
                      integer_attribute_name(QDNN_INTEGER_EXPERTS));
}

/* y has a column for each output of w, or for each pair. */
static qdnnStatus_t check_outputs(const struct qdnnIntegerDescriptor *integer, const kernel_problem *p,
                                  const struct qdnnTensorDescriptor *y)
{
    if (!integer->values[QDNN_INTEGER_GATED])
        return check_result("y", y, p->m, p->rows);
    if (p->rows % 2 != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s is 1, and w has %llu outputs; it must have an even number, a and b",
                          integer_attribute_name(QDNN_INTEGER_GATED), (unsigned long long)p->rows);
    return check_result("y", y, p->m, p->rows / 2);
}

static qdnnStatus_t make_request(const struct qdnnIntegerDescriptor *integer,
                                 const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *w,
                                 const struct qdnnTensorDescriptor *y, request *out)
{
    const qdnnDataType_t codes = codes_of(x);
    const char *kernel = kernel_for(codes, w->type, y->type, integer->values[QDNN_INTEGER_W_SCALE_FIRST]);
    if (!kernel || (is_float(x->type) && !is_float(y->type)))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "x is %s, w %s and y %s; no integer product has these types (qdnn/integer.h has the list)",
            qdnnGetDataTypeName(x->type), qdnnGetDataTypeName(w->type), qdnnGetDataTypeName(y->type));
    *out = (request){.row = kernel_find(kernel), .spec = kernel_spec_default()};
    out->problem.w_is_kn = !integer->values[QDNN_INTEGER_TRANSPOSE_W];
    out->problem.quantizes = is_float(x->type) ? x->type : (qdnnDataType_t)0;
    CHECK_STATUS(check_values(integer, out, kernel));
    CHECK_STATUS(check_experts(integer));
    CHECK_STATUS(find_shape(x, w, out->problem.w_is_kn, integer->values[QDNN_INTEGER_EXPERTS],
                            integer->values[QDNN_INTEGER_SLOTS], &out->problem));
    CHECK_STATUS(check_outputs(integer, &out->problem, y));
    CHECK_STATUS(integer_set_codes(integer, codes, y->type, out));
    CHECK_STATUS(check_quantized(integer, out));
    return is_float(y->type) ? set_scaled(integer, y->type, out) : QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateIntegerMatmulPlan(qdnnHandle_t handle, qdnnIntegerDescriptor_t integer,
                                         qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                         qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, integer, x, w, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(integer);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    request r;
    CHECK_STATUS(make_request(integer, x, w, y, &r));
    return integer_plan(handle, &r, !r.problem.quantizes, plan);
}

/* ---- Vectors ---- */

static qdnnStatus_t check_vectors(const struct qdnnTensorDescriptor *a, const struct qdnnTensorDescriptor *b,
                                  const struct qdnnTensorDescriptor *y)
{
    if (a->type != QDNN_DATA_I4 || b->type != QDNN_DATA_I4)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "a is %s and b %s; both must be i4",
                          qdnnGetDataTypeName(a->type), qdnnGetDataTypeName(b->type));
    if (a->rank != 1 || b->rank != 1 || a->dims[0] != b->dims[0])
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "a and b must be vectors of the same length; a has %d dimensions, the last of "
                          "%lld, b %d, the last "
                          "of %lld",
                          a->rank, (long long)columns_of(a), b->rank, (long long)columns_of(b));
    if (y->type != QDNN_DATA_I32 && !is_float(y->type))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "y is %s; it must be i32, f32, f16 or bf16",
                          qdnnGetDataTypeName(y->type));
    if (tensor_elements(y) != 1)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "y has %llu elements; it must have 1",
                          (unsigned long long)tensor_elements(y));
    CHECK_STATUS(request_check_packed(a));
    CHECK_STATUS(request_check_packed(b));
    return integer_check_size("K", columns_of(a));
}

qdnnStatus_t qdnnCreateIntegerDotPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t a, qdnnTensorDescriptor_t b,
                                      qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, a, b, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(check_vectors(a, b, y));
    request r = {.row = kernel_find(y->type == QDNN_DATA_I32 ? "int4_dot" : "int4_dot_scaled"),
                 .spec = kernel_spec_default(),
                 .problem = {.m = 1, .rows = 1, .columns = (uint64_t)a->dims[0]}};
    if (y->type != QDNN_DATA_I32)
        r.spec.epilogue.output = y->type;
    return integer_plan(handle, &r, false, plan);
}

/* ---- The k largest scores ---- */

enum { TOP_MAX = 64 };

static qdnnStatus_t check_top(const struct qdnnTensorDescriptor *scores,
                              const struct qdnnTensorDescriptor *indices, const kernel_problem *p)
{
    const int64_t top = columns_of(scores);
    if (scores->type != QDNN_DATA_F32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "scores is %s; it must be f32",
                          qdnnGetDataTypeName(scores->type));
    if (indices->type != QDNN_DATA_I32 && indices->type != QDNN_DATA_F32)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "indices is %s; it must be i32 or f32",
                          qdnnGetDataTypeName(indices->type));
    if (top < 1 || top > TOP_MAX || (uint64_t)top > p->rows)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "scores has rows of %lld; it must be 1 to %d, and at most the %llu rows of w",
                          (long long)top, TOP_MAX, (unsigned long long)p->rows);
    CHECK_STATUS(check_result("scores", scores, p->m, (uint64_t)top));
    return check_result("indices", indices, p->m, (uint64_t)top);
}

qdnnStatus_t qdnnCreateIntegerTopPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t w,
                                      qdnnTensorDescriptor_t scores, qdnnTensorDescriptor_t indices,
                                      qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, w, scores, indices, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_TENSOR(w);
    CHECK_TENSOR(scores);
    CHECK_TENSOR(indices);
    CHECK_NOT_NULL(plan);
    if (x->type != QDNN_DATA_I4 || w->type != QDNN_DATA_I4)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "x is %s and w %s; both must be i4",
                          qdnnGetDataTypeName(x->type), qdnnGetDataTypeName(w->type));
    request r = {.spec = kernel_spec_default()};
    CHECK_STATUS(find_shape(x, w, false, 0, 1, &r.problem));
    CHECK_STATUS(check_top(scores, indices, &r.problem));
    r.problem.top = (uint64_t)columns_of(scores);
    r.row = kernel_find(r.problem.top == 1 ? "int4_top1" : "int4_topk");
    r.spec.integer.top_index = indices->type;
    return integer_plan(handle, &r, false, plan);
}
