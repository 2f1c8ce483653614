/* The sizes of an operation by name, for tools and emitted operations: "m=64", "columns=4096". */
#include "kernels/operations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { SIZE, NUMBER_I32, NUMBER_F32 } size_kind;

static const struct {
    const char *name;
    size_t offset;
    size_kind kind;
    bool twice; /* of a height, and of the width after it */
} sizes[] = {
    {"rows", offsetof(kernel_problem, rows), SIZE, false},
    {"columns", offsetof(kernel_problem, columns), SIZE, false},
    {"n", offsetof(kernel_problem, columns), SIZE, false}, /* of a flat tensor, which is one row */
    {"m", offsetof(kernel_problem, m), SIZE, false},
    {"x_stride", offsetof(kernel_problem, x_stride), SIZE, false},
    {"y_stride", offsetof(kernel_problem, y_stride), SIZE, false},
    {"table_rows", offsetof(kernel_problem, table_rows), SIZE, false},
    {"experts", offsetof(kernel_problem, experts), SIZE, false},
    {"top", offsetof(kernel_problem, top), SIZE, false},
    {"x_zero", offsetof(kernel_problem, x_zero), NUMBER_I32, false},
    {"w_zero", offsetof(kernel_problem, w_zero), NUMBER_I32, false},
    {"y_zero", offsetof(kernel_problem, y_zero), NUMBER_I32, false},
    {"alpha", offsetof(kernel_problem, alpha), NUMBER_F32, false},
    {"multiplier", offsetof(kernel_problem, multiplier), NUMBER_F32, false},
    {"b_stride", offsetof(kernel_problem, b_stride), SIZE, false},
    {"eps", offsetof(kernel_problem, eps), NUMBER_F32, false},
    {"limit", offsetof(kernel_problem, limit), NUMBER_F32, false},
    {"factor", offsetof(kernel_problem, factor), NUMBER_F32, false},
    {"page_slots", offsetof(kernel_problem, cache.page_slots), SIZE, false},
    {"page_stride", offsetof(kernel_problem, cache.page_stride), SIZE, false},
    {"slot_stride", offsetof(kernel_problem, cache.slot_stride), SIZE, false},
    {"head_stride", offsetof(kernel_problem, cache.head_stride), SIZE, false},
    {"value_page_stride", offsetof(kernel_problem, values.page_stride), SIZE, false},
    {"value_slot_stride", offsetof(kernel_problem, values.slot_stride), SIZE, false},
    {"value_head_stride", offsetof(kernel_problem, values.head_stride), SIZE, false},
    {"pages", offsetof(kernel_problem, pages), SIZE, false},
    {"table_pages", offsetof(kernel_problem, table_pages), SIZE, false},
    {"positions", offsetof(kernel_problem, positions), SIZE, false},
    {"dim_1", offsetof(kernel_problem, lines.dims), SIZE, false},
    {"dim_2", offsetof(kernel_problem, lines.dims[1]), SIZE, false},
    {"x_stride_1", offsetof(kernel_problem, lines.x[0]), SIZE, false},
    {"x_stride_2", offsetof(kernel_problem, lines.x[1]), SIZE, false},
    {"x_stride_3", offsetof(kernel_problem, lines.x[2]), SIZE, false},
    {"y_stride_1", offsetof(kernel_problem, lines.y[0]), SIZE, false},
    {"y_stride_2", offsetof(kernel_problem, lines.y[1]), SIZE, false},
    {"y_stride_3", offsetof(kernel_problem, lines.y[2]), SIZE, false},
    {"window", offsetof(kernel_problem, window), SIZE, false},
    {"mask_keys", offsetof(kernel_problem, mask_keys), SIZE, false},
    {"mask_stride", offsetof(kernel_problem, mask_stride), SIZE, false},
    {"mask_head_stride", offsetof(kernel_problem, mask_head_stride), SIZE, false},
    {"images", offsetof(kernel_problem, conv.images), SIZE, false},
    {"channels", offsetof(kernel_problem, conv.channels), SIZE, false},
    {"outputs", offsetof(kernel_problem, conv.outputs), SIZE, false},
    {"height", offsetof(kernel_problem, conv.in), SIZE, false},
    {"width", offsetof(kernel_problem, conv.in) + sizeof(uint64_t), SIZE, false},
    {"stride", offsetof(kernel_problem, conv.stride), SIZE, true},
    {"padding", offsetof(kernel_problem, conv.padding), SIZE, true},
    {"dilation", offsetof(kernel_problem, conv.dilation), SIZE, true},
};

const char *kernel_size_name(int index)
{
    return index >= 0 && index < (int)(sizeof sizes / sizeof sizes[0]) ? sizes[index].name : NULL;
}

kernel_problem kernel_problem_default(void)
{
    return (kernel_problem){.rows = 1,
                            .columns = 1,
                            .m = 1,
                            .top = 1,
                            .alpha = 1,
                            .multiplier = 1,
                            .eps = 1e-5f,
                            .limit = 7,
                            .factor = 1.702f,
                            .conv = {.images = 1, .stride = {1, 1}, .dilation = {1, 1}}};
}

static bool parse_size(const char *value, uint64_t *size)
{
    char *end;
    errno = 0;
    *size = strtoull(value, &end, 10);
    return value[0] >= '0' && value[0] <= '9' && *end == 0 && errno == 0 && *size <= KERNEL_GROUP_MAX;
}

static bool parse_i32(const char *value, int32_t *number)
{
    char *end;
    long parsed = strtol(value, &end, 10);
    *number = (int32_t)parsed;
    return *value && *end == 0 && parsed >= -255 && parsed <= 255;
}

bool kernel_size_set(kernel_problem *problem, const char *key, const char *value, char *error,
                     size_t error_size)
{
    int i = 0;
    while (kernel_size_name(i) && strcmp(sizes[i].name, key) != 0)
        i++;
    if (!kernel_size_name(i))
        return kernel_refuse(error, error_size, "unknown size '%s'", key);
    char *at = (char *)problem + sizes[i].offset;
    uint64_t size;
    int32_t number;
    float real;
    switch (sizes[i].kind) {
    case SIZE:
        if (!parse_size(value, &size))
            return kernel_refuse(error, error_size, "%s=%s: it must be 0 to 2^40", key, value);
        memcpy(at, &size, sizeof size);
        if (sizes[i].twice)
            memcpy(at + sizeof size, &size, sizeof size);
        return true;
    case NUMBER_I32:
        if (!parse_i32(value, &number))
            return kernel_refuse(error, error_size, "%s=%s: it must be -255 to 255", key, value);
        memcpy(at, &number, sizeof number);
        return true;
    default:
        if (!kernel_parse_f32(value, &real))
            return kernel_refuse(error, error_size, "%s=%s: it must be a number", key, value);
        memcpy(at, &real, sizeof real);
        return true;
    }
}

/* What a convolution's shape implies for the product that it is. */
static bool complete_conv(const kernel_spec *spec, kernel_problem *p, char *error, size_t error_size)
{
    kernel_conv *c = &p->conv;
    const uint64_t window[2] = {spec->conv.window_h, spec->conv.window_w};
    if (c->channels == 0 || c->channels % spec->conv.window_c != 0)
        return kernel_refuse(error, error_size,
                             "channels is %llu; it must be a multiple of window_c, which is %llu",
                             (unsigned long long)c->channels, (unsigned long long)spec->conv.window_c);
    c->groups = c->channels / spec->conv.window_c;
    if (c->outputs % c->groups != 0)
        return kernel_refuse(error, error_size, "outputs is %llu; it must be a multiple of the %llu groups",
                             (unsigned long long)c->outputs, (unsigned long long)c->groups);
    for (int i = 0; i < 2; i++) {
        const uint64_t reach = c->dilation[i] * (window[i] - 1) + 1, room = c->in[i] + 2 * c->padding[i];
        if (c->stride[i] == 0 || c->dilation[i] == 0 || reach > room)
            return kernel_refuse(
                error, error_size,
                "stride and dilation must be at least 1, and the window must fit the padded input");
        c->out[i] = (room - reach) / c->stride[i] + 1;
    }
    p->m = c->images * c->out[0] * c->out[1];
    p->rows = c->outputs;
    p->columns = spec->conv.window_c * spec->conv.window_h * spec->conv.window_w;
    return true;
}

/* Whether a * b is at most 2^56, which leaves room for bytes of any element. */
static bool is_moderate(uint64_t a, uint64_t b)
{
    return a == 0 || b <= (UINT64_C(1) << 56) / a;
}

static bool takes_top(const kernel_row *row, const kernel_spec *spec)
{
    kernel_description d;
    kernel_describe(row, KERNEL_NORMAL(row, spec), &d);
    return d.numbers & A_NUMBER(TOP);
}

bool kernel_problem_complete(const kernel_row *row, const kernel_spec *spec, kernel_problem *p, char *error,
                             size_t error_size)
{
    if (kernel_operation_of(row) == KERNEL_INT8_CONV2D && !complete_conv(spec, p, error, error_size))
        return false;
    if (row->operation->complete)
        row->operation->complete(KERNEL_NORMAL(row, spec), p);
    const bool by_columns = !kernel_is_product(row) || spec->product.reduction == KERNEL_K_COLUMNS;
    const uint64_t k = by_columns ? p->columns : p->rows, outputs = by_columns ? p->rows : p->columns;
    p->x_stride = p->x_stride ? p->x_stride : k;
    p->y_stride = p->y_stride ? p->y_stride : spec->epilogue.gated ? outputs / 2 : outputs;
    const uint64_t largest = p->rows > p->columns ? p->rows : p->columns;
    if (!is_moderate(p->rows, p->columns) || !is_moderate(p->m, largest) ||
        !is_moderate(p->m, p->x_stride > p->y_stride ? p->x_stride : p->y_stride) ||
        !is_moderate(p->rows * p->columns, p->experts ? p->experts : 1))
        return kernel_refuse(error, error_size,
                             "the sizes are too large: a tensor would have more than 2^56 elements");
    if (p->columns % kernel_columns_multiple(row) != 0)
        return kernel_refuse(error, error_size, "columns is %llu; it must be a multiple of %llu",
                             (unsigned long long)p->columns,
                             (unsigned long long)kernel_columns_multiple(row));
    const bool of_row = kernel_operation_of(row) == KERNEL_TOP_K;
    const uint64_t most = of_row ? 1024 : 64, choice = of_row ? p->columns : p->rows;
    if (takes_top(row, spec) && (p->top < 1 || p->top > most || p->top > choice))
        return kernel_refuse(error, error_size, "top is %llu; it must be 1 to %llu, and at most %s",
                             (unsigned long long)p->top, (unsigned long long)most,
                             of_row ? "columns" : "rows");
    return kernel_problem_check(spec, p, error, error_size);
}
