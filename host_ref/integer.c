/* Integer products: int32 sums of products of codes, which wrap, and the results computed from a sum. */
#include "host_ref/internal.h"

#include <stdlib.h>

/* ---- Codes ---- */

static int code_bits(qdnnDataType_t type)
{
    hr_require(type == QDNN_DATA_I8 || type == QDNN_DATA_U8 || type == QDNN_DATA_I4,
               "codes are of type 0x%02X; they must be i8, u8 or i4", (unsigned)type);
    return type == QDNN_DATA_I4 ? 4 : 8;
}

int64_t ref_integer_row_bytes(qdnnDataType_t type, int64_t columns)
{
    return code_bits(type) == 8 ? columns : ceil_div(columns, 8) * 4;
}

int32_t ref_integer_code(qdnnDataType_t type, const void *codes, int64_t columns, int64_t row, int64_t column)
{
    const uint8_t *line = (const uint8_t *)codes + row * ref_integer_row_bytes(type, columns);
    if (type == QDNN_DATA_U8)
        return line[column];
    if (type == QDNN_DATA_I8)
        return (int8_t)line[column];
    int nibble = line[column / 2] >> (column % 2 * 4) & 15;
    return nibble - (nibble >= 8 ? 16 : 0);
}

/* ---- Sums ---- */

/* Addition and multiplication mod 2^32, as of unsigned numbers. */
static uint32_t multiply(int32_t a, int32_t b)
{
    return (uint32_t)a * (uint32_t)b;
}

static int32_t wrapped(uint32_t sum)
{
    return sum <= INT32_MAX ? (int32_t)sum : (int32_t)(sum - UINT32_C(0x80000000)) + INT32_MIN;
}

/* Over first <= k < end. */
static int32_t sum_of(const ref_integer_spec *s, const void *x, const void *w, int64_t m, int64_t n,
                      int64_t first, int64_t end)
{
    uint32_t sum = 0;
    for (int64_t k = first; k < end; k++) {
        int32_t a = ref_integer_code(s->x, x, s->k, m, k);
        int32_t b =
            s->w_is_kn ? ref_integer_code(s->w, w, s->n, k, n) : ref_integer_code(s->w, w, s->k, n, k);
        sum += multiply(a - s->x_zero, b - s->w_zero);
    }
    return wrapped(sum);
}

int32_t ref_integer_sum(const ref_integer_spec *s, const void *x, const void *w, int64_t m, int64_t n)
{
    return sum_of(s, x, w, m, n, 0, s->k);
}

int32_t ref_int4_dot(int64_t k, const void *a, const void *b)
{
    const ref_integer_spec s = {.m = 1, .n = 1, .k = k, .x = QDNN_DATA_I4, .w = QDNN_DATA_I4};
    return ref_integer_sum(&s, a, b, 0, 0);
}

/* ---- Results of sums ---- */

float hr_integer_scaled(int32_t sum, float first, float second)
{
    return hr_canonical(((float)sum * first) * second);
}

/* Saturates an integral number to int32; a NaN counts as 0. */
static int64_t saturated_i32(float x)
{
    if (isnan(x))
        return 0;
    if (x >= 2147483648.0f)
        return INT32_MAX;
    return x <= -2147483648.0f ? INT32_MIN : (int64_t)x;
}

static int64_t clamp_i64(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

int32_t hr_requantized(int32_t sum, float multiplier, const ref_requantize_spec *spec)
{
    hr_require(spec->y == QDNN_DATA_I8 || spec->y == QDNN_DATA_U8, "y is of type 0x%02X; it must be i8 or u8",
               (unsigned)spec->y);
    int64_t rounded = saturated_i32(round_integral((float)sum * multiplier, spec->rounding));
    int64_t moved = clamp_i64(rounded + spec->y_zero, INT32_MIN, INT32_MAX);
    return (int32_t)(spec->y == QDNN_DATA_U8 ? clamp_i64(moved, 0, 255) : clamp_i64(moved, -128, 127));
}

static float multiplier_of(const ref_requantize_spec *spec, int64_t column)
{
    return spec->multipliers ? spec->multipliers[column] : spec->multiplier;
}

static int32_t with_bias(int32_t sum, const int32_t *bias, int64_t column)
{
    return bias ? wrapped((uint32_t)sum + (uint32_t)bias[column]) : sum;
}

void hr_integer_matmul(const ref_integer_spec *s, const ref_requantize_spec *spec, const void *x,
                       const void *w, const int32_t *bias, void *y)
{
    for (int64_t m = 0; m < s->m; m++)
        for (int64_t n = 0; n < s->n; n++) {
            int32_t sum = with_bias(ref_integer_sum(s, x, w, m, n), bias, n);
            if (spec->y == QDNN_DATA_I32)
                ((int32_t *)y)[m * s->n + n] = sum;
            else
                ((uint8_t *)y)[m * s->n + n] = (uint8_t)hr_requantized(sum, multiplier_of(spec, n), spec);
        }
}

/* ---- Sums of groups ---- */

float hr_w4a8_sum(const ref_integer_spec *s, int64_t group_size, qdnnScaleType_t type, const void *x,
                  const void *w, const void *scale, int64_t m, int64_t n)
{
    hr_require(group_size >= 1, "group_size is %lld; it must be at least 1", (long long)group_size);
    const int64_t groups = ceil_div(s->k, group_size), in_strip = group_size < 512 ? 512 / group_size : 1;
    float total = 0;
    for (int64_t strip = 0; strip < groups; strip += in_strip) {
        float part = 0;
        for (int64_t g = strip; g < groups && g < strip + in_strip; g++) {
            int64_t first = g * group_size, end = first + group_size < s->k ? first + group_size : s->k;
            float of_group = hr_scalar_load(ref_scale_data_type(type), scale, n * groups + g);
            part = fmaf((float)sum_of(s, x, w, m, n, first, end), of_group, part);
        }
        total = strip ? total + part : part;
    }
    return hr_canonical(total + 0.0f);
}

/* ---- Scaled results ---- */

static float scaled_sum(const ref_integer_spec *s, const ref_integer_scales *scales, const void *x,
                        const void *w, int64_t m, int64_t n)
{
    if (scales->group_size)
        return hr_w4a8_sum(s, scales->group_size, scales->type, x, w, scales->w, m, n) * scales->x[m];
    float of_w = ((const float *)scales->w)[n], of_x = scales->x[m];
    return hr_integer_scaled(ref_integer_sum(s, x, w, m, n), scales->w_first ? of_w : of_x,
                             scales->w_first ? of_x : of_w);
}

/* The weights of one expert of a stack, and their scales. */
static const void *weights_of(const ref_integer_spec *s, const void *w, int64_t expert)
{
    const int64_t rows = s->w_is_kn ? s->k : s->n, columns = s->w_is_kn ? s->n : s->k;
    return (const char *)w + expert * rows * ref_integer_row_bytes(s->w, columns);
}

static ref_integer_scales scales_of(const ref_integer_spec *s, const ref_integer_scales *scales,
                                    int64_t expert)
{
    ref_integer_scales of_expert = *scales;
    const int64_t groups = scales->group_size ? ceil_div(s->k, scales->group_size) : 1;
    const size_t size =
        scales->group_size ? ref_scalar_size(ref_scale_data_type(scales->type)) : sizeof(float);
    of_expert.w = (const char *)scales->w + (size_t)(expert * s->n * groups) * size;
    return of_expert;
}

void hr_integer_product(const ref_integer_spec *s, const ref_integer_scales *scales, const ref_product *law,
                        const void *x, const void *w, const ref_product_arrays *arrays)
{
    ref_product p = *law;
    const int64_t columns = p.gated ? s->n / 2 : s->n;
    p.outputs = s->n;
    p.y_stride = columns;
    for (int64_t m = 0; m < s->m; m++) {
        const int64_t expert = p.experts ? arrays->expert_index[m] : 0, row = hr_product_x_row(&p, m);
        if (p.experts && (expert < 0 || expert >= p.experts)) {
            hr_product_row_of_nan(&p, arrays, m);
            continue;
        }
        const void *of_expert = weights_of(s, w, expert);
        const ref_integer_scales of_scales = scales_of(s, scales, expert);
        for (int64_t n = 0; n < columns; n++) {
            const float a = scaled_sum(s, &of_scales, x, of_expert, row, n),
                        b = p.gated ? scaled_sum(s, &of_scales, x, of_expert, row, columns + n) : 0;
            hr_product_finish(&p, arrays, expert, m, n, (const float[2]){a, b});
        }
    }
}

/* ---- The k largest scores ---- */

/* Whether score a at index i comes before score b at index j. */
static bool comes_before(float a, int64_t i, float b, int64_t j)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? i < j : isnan(b);
    return a == b ? i < j : a > b;
}

void hr_top(int64_t count, const float *scores, int64_t top, float *best, int32_t *index)
{
    hr_require(top >= 1 && top <= count, "top is %lld; it must be 1 to %lld", (long long)top,
               (long long)count);
    for (int64_t t = 0; t < top; t++) {
        int64_t found = -1;
        for (int64_t i = 0; i < count; i++) {
            bool is_left = t == 0 || comes_before(best[t - 1], index[t - 1], scores[i], i);
            if (is_left && (found < 0 || comes_before(scores[i], i, scores[found], found)))
                found = i;
        }
        best[t] = hr_canonical(scores[found]);
        index[t] = (int32_t)found;
    }
}

/* ---- Convolution ---- */

int64_t ref_conv_output(int64_t size, int64_t window, int64_t stride, int64_t padding, int64_t dilation)
{
    return (size + 2 * padding - dilation * (window - 1) - 1) / stride + 1;
}

static int64_t at4(bool nhwc, const int64_t dims[4], int64_t a, int64_t c, int64_t h, int64_t w)
{
    return nhwc ? ((a * dims[2] + h) * dims[3] + w) * dims[1] + c
                : ((a * dims[1] + c) * dims[2] + h) * dims[3] + w;
}

/* One output: the sum over the window and the channels of its group. dims are [N, C, H, W] whatever the order
 * in memory. */
static int32_t window_sum(const ref_conv_spec *s, const void *x, const void *w, int64_t image, int64_t out,
                          int64_t oh, int64_t ow)
{
    const int64_t channels = s->channels / s->groups, first = out / (s->outputs / s->groups) * channels;
    const int64_t x_dims[4] = {s->images, s->channels, s->height, s->width};
    const int64_t w_dims[4] = {s->outputs, channels, s->window[0], s->window[1]};
    uint32_t sum = 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < s->window[0]; r++)
            for (int64_t q = 0; q < s->window[1]; q++) {
                int64_t h = oh * s->stride[0] - s->padding[0] + r * s->dilation[0];
                int64_t v = ow * s->stride[1] - s->padding[1] + q * s->dilation[1];
                if (h < 0 || h >= s->height || v < 0 || v >= s->width)
                    continue;
                int64_t x_at = at4(s->nhwc, x_dims, image, first + c, h, v),
                        w_at = at4(s->nhwc, w_dims, out, c, r, q);
                int32_t a = ref_integer_code(s->x, x, 1, x_at, 0), b = ((const int8_t *)w)[w_at];
                sum += multiply(a - s->x_zero, b - s->w_zero);
            }
    return wrapped(sum);
}

void hr_integer_conv2d(const ref_conv_spec *s, const ref_requantize_spec *spec, const void *x, const void *w,
                       const int32_t *bias, void *y)
{
    const int64_t height =
        ref_conv_output(s->height, s->window[0], s->stride[0], s->padding[0], s->dilation[0]);
    const int64_t width =
        ref_conv_output(s->width, s->window[1], s->stride[1], s->padding[1], s->dilation[1]);
    const int64_t y_dims[4] = {s->images, s->outputs, height, width};
    for (int64_t i = 0; i < s->images; i++)
        for (int64_t o = 0; o < s->outputs; o++)
            for (int64_t h = 0; h < height; h++)
                for (int64_t v = 0; v < width; v++) {
                    int32_t sum = with_bias(window_sum(s, x, w, i, o, h, v), bias, o);
                    int64_t at = at4(s->nhwc, y_dims, i, o, h, v);
                    if (spec->y == QDNN_DATA_I32)
                        ((int32_t *)y)[at] = sum;
                    else
                        ((uint8_t *)y)[at] = (uint8_t)hr_requantized(sum, multiplier_of(spec, o), spec);
                }
}
