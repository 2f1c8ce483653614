/* Plans of copies, gathers and scatters. */
#include <qdnn/copy.h>

#include <string.h>

#include "driver/api/plan.h"
#include "driver/base/check.h"
#include "driver/base/data_type.h"

/* ---- Types ---- */

static bool is_number(qdnnDataType_t type)
{
    switch (type) {
    case QDNN_DATA_F32:
    case QDNN_DATA_F16:
    case QDNN_DATA_BF16:
    case QDNN_DATA_F64:
    case QDNN_DATA_F8E4M3:
    case QDNN_DATA_F8E5M2:
        return true;
    default:
        return false;
    }
}

/* The type by which kernels know it; 0: none. */
static int kernel_type(qdnnDataType_t type)
{
    if (is_number(type))
        return (int)type;
    switch (type == QDNN_DATA_I4 ? 0 : data_type_bits(type)) { /* two codes of i4 share a byte */
    case 8:
        return QDNN_DATA_U8;
    case 16:
        return QDNN_DATA_U16;
    case 32:
        return QDNN_DATA_U32;
    case 64:
        return QDNN_DATA_U64;
    default:
        return 0;
    }
}

static qdnnStatus_t take_types(const char *x_name, qdnnDataType_t x, const char *y_name, qdnnDataType_t y,
                               kernel_copying *copy)
{
    *copy = (kernel_copying){.from = kernel_type(x), .to = kernel_type(y)};
    if (x != y && !(is_number(x) && is_number(y)))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s is of type %s and %s of type %s; conversions are between f32, f16, bf16, f64, f8e4m3 "
            "and f8e5m2; fix: one of these for both, or the same type",
            x_name, qdnnGetDataTypeName(x), y_name, qdnnGetDataTypeName(y));
    if (!copy->from)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s is of type %s; elements must be 1, 2, 4 or 8 bytes; fix: describe its bytes, as u8", x_name,
            qdnnGetDataTypeName(x));
    return QDNN_STATUS_SUCCESS;
}

/* ---- Copies: dimensions ---- */

typedef struct dimension {
    uint64_t size, x, y; /* strides */
} dimension;

typedef struct dimensions {
    int count;
    dimension at[QDNN_DIMS_MAX];
} dimensions;

static void insert(dimensions *d, dimension one)
{
    int i = d->count++;
    for (; i > 0 && d->at[i - 1].y < one.y; i--)
        d->at[i] = d->at[i - 1];
    d->at[i] = one;
}

/* Neighbours that lie behind each other on both sides become one. */
static void merge(dimensions *d)
{
    int n = 0;
    for (int i = 0; i < d->count; i++) {
        dimension *last = n ? &d->at[n - 1] : NULL, one = d->at[i];
        if (last && last->x == one.x * one.size && last->y == one.y * one.size)
            *last = (dimension){last->size * one.size, one.x, one.y};
        else
            d->at[n++] = one;
    }
    d->count = n;
}

static bool has_unit_stride(const dimension *d)
{
    return d->x == 1 || d->y == 1;
}

/* Sorted by their strides in y, each is beyond all that come after it. */
static qdnnStatus_t check_apart(const dimensions *all)
{
    uint64_t reach = 0;
    for (int i = all->count - 1; i >= 0; i--) {
        if (all->at[i].y <= reach)
            return qdnn_error(
                QDNN_STATUS_NOT_SUPPORTED,
                "elements of y overlap: a dimension of %llu has stride %llu, and those within it "
                "reach to %llu; fix: larger strides, or pass null strides",
                (unsigned long long)all->at[i].size, (unsigned long long)all->at[i].y,
                (unsigned long long)reach);
        reach += (all->at[i].size - 1) * all->at[i].y;
    }
    return QDNN_STATUS_SUCCESS;
}

/* The first dimension stays as it is, so that fewer rows can be executed, unless it is one of the two that a transpose
 * exchanges; `d` receives the others. */
static qdnnStatus_t list_dimensions(const struct qdnnTensorDescriptor *x,
                                    const struct qdnnTensorDescriptor *y, dimension *first, dimensions *d)
{
    dimensions all = {0};
    *first = (dimension){1, 0, 0};
    *d = (dimensions){0};
    for (int i = 0; i < x->rank; i++) {
        const dimension one = {(uint64_t)x->dims[i], (uint64_t)x->strides[i], (uint64_t)y->strides[i]};
        if (one.size == 1)
            continue;
        insert(&all, one);
        if (i == 0 && x->rank > 1 && !has_unit_stride(&one))
            *first = one;
        else
            insert(d, one);
    }
    return check_apart(&all);
}

/* Puts dimensions in their places: columns last, and before it what x is packed along. */
static kernel_copy_way arrange(dimensions *d)
{
    enum { SHORT = 8 }; /* a tile would be mostly empty */
    dimension *last = &d->at[d->count - 1];
    if (last->y != 1)
        return KERNEL_COPY_ELEMENTS;
    if (last->x == 1)
        return KERNEL_COPY_LINES;
    for (int i = 0; i + 1 < d->count; i++)
        if (d->at[i].x == 1 && d->at[i].size >= SHORT && last->size >= SHORT) {
            const dimension one = d->at[i], other = d->at[d->count - 2];
            d->at[i] = other;
            d->at[d->count - 2] = one;
            return KERNEL_COPY_TILES;
        }
    return KERNEL_COPY_ELEMENTS;
}

/* The last three dimensions; missing ones are 1. */
static void take_lines(const dimensions *d, request *r)
{
    kernel_lines *l = &r->problem.lines;
    const dimension none = {1, 0, 0};
    dimension three[3];
    for (int i = 0; i < 3; i++)
        three[i] = i + d->count >= 3 ? d->at[i + d->count - 3] : none;
    *l = (kernel_lines){{three[0].size, three[1].size},
                        {three[0].x, three[1].x, three[2].x},
                        {three[0].y, three[1].y, three[2].y}};
    r->problem.columns = three[2].size;
}

/* Whether rows follow each other on both sides. */
static bool is_flat(const dimensions *d, const dimension *first)
{
    return d->count == 1 && (first->size == 1 || (first->x == d->at[0].size && first->y == d->at[0].size));
}

static qdnnStatus_t make_copy(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *y,
                              request *r)
{
    dimension first;
    dimensions d;
    r->row = kernel_find("copy");
    r->problem.lines = (kernel_lines){{1, 1}, {0, 0, 0}, {0, 0, 0}};
    if (tensor_elements(x) == 0) {
        r->takes_rows = x->rank > 1;
        r->problem.m = x->rank > 1 ? (uint64_t)x->dims[0] : 0;
        return QDNN_STATUS_SUCCESS;
    }
    CHECK_STATUS(list_dimensions(x, y, &first, &d));
    merge(&d);
    if (d.count > 3)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "x and y have %d dimensions after the first that lie differently; at most 3 are copied "
            "by one plan; fix: two plans, with a packed tensor between them",
            d.count);
    if (d.count == 0)
        insert(&d, (dimension){1, 1, 1});
    r->spec.copy.way = arrange(&d);
    take_lines(&d, r);
    if (r->spec.copy.way == KERNEL_COPY_LINES && is_flat(&d, &first))
        r->spec.copy.way = KERNEL_COPY_FLAT;
    r->takes_rows = x->rank > 1 && (first.size > 1 || x->dims[0] == 1);
    r->problem.m = first.size;
    r->problem.x_stride = first.x;
    r->problem.y_stride = first.y;
    kernel_copy_choose(&r->spec, r->problem.columns);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Plans ---- */

static qdnnStatus_t finish(qdnnHandle_t handle, request *r, qdnnDataType_t x, qdnnDataType_t y,
                           qdnnPlan_t *plan)
{
    char reason[256];
    if (!kernel_spec_settle_kernel(r->row, &r->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    kernel_operands_of(r->row, &r->spec, &r->problem, r->operands);
    CHECK_STATUS(plan_create(handle, r, plan));
    plan_typed(*plan, QDNN_OPERAND_X, x);
    plan_typed(*plan, QDNN_OPERAND_Y, y);
    return QDNN_STATUS_SUCCESS;
}

static bool same_shape(const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *y)
{
    return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

qdnnStatus_t qdnnCreateCopyPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnTensorDescriptor_t y,
                                qdnnPlan_t *plan)
{
    CALL_BEGIN_WITH(handle, x, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    request r = {.spec = kernel_spec_default()};
    CHECK_STATUS(take_types("x", x->type, "y", y->type, &r.spec.copy));
    if (!same_shape(x, y))
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "y is not of the shape of x; fix: the same dimensions, with the strides of each side");
    CHECK_STATUS(make_copy(x, y, &r));
    return finish(handle, &r, x->type, y->type, plan);
}

/* ---- Rows by index ---- */

/* A tensor as rows: the first dimension, and all others together. */
typedef struct row_list {
    uint64_t rows, columns, stride;
} row_list;

static qdnnStatus_t rows_of_tensor(const char *name, const struct qdnnTensorDescriptor *t, row_list *out)
{
    int64_t columns = 1;
    bool is_packed = true;
    for (int i = t->rank - 1; i > 0; i--) {
        is_packed = is_packed && (t->strides[i] == columns || t->dims[i] <= 1);
        columns *= t->dims[i];
    }
    *out = (row_list){(uint64_t)t->dims[0], (uint64_t)columns, (uint64_t)t->strides[0]};
    if (out->rows <= 1)
        out->stride = out->columns;
    if (!is_packed || (out->stride < out->columns && columns))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "%s has rows that are not packed, or that overlap; only the first stride may be larger "
            "than packed; fix: copy it, or pass null strides",
            name);
    return QDNN_STATUS_SUCCESS;
}

/* From x to y, one of which is the table. */
static qdnnStatus_t move_rows(qdnnHandle_t handle, const char *kernel, const char *const names[2],
                              const struct qdnnTensorDescriptor *x, const struct qdnnTensorDescriptor *y,
                              qdnnDataType_t index, qdnnPlan_t *plan)
{
    const bool gathers = strcmp(kernel, "gather") == 0;
    request r = {.row = kernel_find(kernel), .spec = kernel_spec_default(), .takes_rows = true};
    row_list from, to;
    CHECK_STATUS(take_types(names[0], x->type, names[1], y->type, &r.spec.copy));
    CHECK_STATUS(rows_of_tensor(names[0], x, &from));
    CHECK_STATUS(rows_of_tensor(names[1], y, &to));
    CHECK_STATUS(request_check_index(index, gathers ? from.rows : to.rows));
    if (from.columns != to.columns)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s has rows of %llu elements, and %s rows of %llu; fix: the same for both",
                          names[0], (unsigned long long)from.columns, names[1],
                          (unsigned long long)to.columns);
    r.spec.index_type = (int)index;
    r.problem = (kernel_problem){.m = gathers ? to.rows : from.rows,
                                 .table_rows = gathers ? from.rows : to.rows,
                                 .columns = from.columns,
                                 .x_stride = from.stride,
                                 .y_stride = to.stride,
                                 .lines = {.dims = {1, 1}}};
    kernel_copy_choose(&r.spec, r.problem.columns);
    CHECK_STATUS(finish(handle, &r, x->type, y->type, plan));
    plan_typed(*plan, QDNN_OPERAND_ROW_INDEX, index);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnCreateGatherPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t table, qdnnDataType_t indexType,
                                  qdnnTensorDescriptor_t y, qdnnPlan_t *plan)
{
    static const char *const names[] = {"table", "y"};
    CALL_BEGIN_WITH(handle, table, indexType, y, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(table);
    CHECK_TENSOR(y);
    CHECK_NOT_NULL(plan);
    return move_rows(handle, "gather", names, table, y, indexType, plan);
}

qdnnStatus_t qdnnCreateScatterPlan(qdnnHandle_t handle, qdnnTensorDescriptor_t x, qdnnDataType_t indexType,
                                   qdnnTensorDescriptor_t table, qdnnPlan_t *plan)
{
    static const char *const names[] = {"x", "table"};
    CALL_BEGIN_WITH(handle, x, indexType, table, plan);
    CHECK_NOT_NULL(handle);
    CHECK_TENSOR(x);
    CHECK_TENSOR(table);
    CHECK_NOT_NULL(plan);
    return move_rows(handle, "scatter", names, x, table, indexType, plan);
}
