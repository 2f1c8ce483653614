/* Floating-point mma and wmma: fragments to matrices, dot products by the model's row, and back. */
#include <math.h>
#include <string.h>

#include "internal.h"

tensor_dot tensor_dot_of(const tensor_op *op, bool f16)
{
    const tensor_model *row = op->model;
    return (tensor_dot){
        .a = tensor_format_of(op->atype, false),
        .b = tensor_format_of(op->btype, false),
        .length = row->length,
        .fraction = row->fraction,
        .zero_exp = f16 ? row->zero_exp16 : row->zero_exp32,
        .f16 = f16,
        .short_f32 = row->short_f32,
    };
}

tensor_dots_fn *tensor_dots_of(const tensor_op *op)
{
    return op->wide ? tensor_dots_v3 : tensor_dots_baseline;
}

/* Where c and d differ (f16 m8n8k4 and wmma), the assembler widens an f16 c to f32, runs the f32 instruction,
 * and rounds its result for an f16 d. */
static void widen_c(const tensor_op *op, uint32_t *c, int n)
{
    for (int i = 0; op->ctype == T_F16 && op->dtype != T_F16 && i < n; i++)
        c[i] = tensor_f32_bits(tensor_f16_to_f32(c[i]));
}

static void narrow_d(const tensor_op *op, uint32_t *d, int n)
{
    for (int i = 0; op->dtype == T_F16 && op->ctype != T_F16 && i < n; i++)
        d[i] = tensor_f32_to_f16(tensor_f32_from_bits(d[i]));
}

/* .satfinite, which wmma of f16 had up to ISA 6.4: Inf becomes the largest finite number. */
static void make_finite(const tensor_op *op, uint32_t *d, int n)
{
    const uint32_t inf = op->dtype == T_F16 ? 0x7C00u : 0x7F800000u,
                   sign = op->dtype == T_F16 ? 0x8000u : 0x80000000u;
    for (int i = 0; op->satfinite && i < n; i++)
        if ((d[i] & ~sign) == inf)
            d[i]--;
}

static bool in_f16(const tensor_op *op)
{
    return op->dtype == T_F16 && op->ctype == T_F16;
}

void tensor_run_fdpa(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                     const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    const tensor_dot dot = tensor_dot_of(op, in_f16(op));
    tensor_gather(op, &x, a, b, c);
    widen_c(op, x.c, op->m * op->n);
    tensor_dots_of(op)(&dot, op->m, op->n / PART_COLUMNS, op->k, x.a, x.b, x.c, NULL, NULL);
    narrow_d(op, x.c, op->m * op->n);
    make_finite(op, x.c, op->m * op->n);
    tensor_scatter(op, &x, d);
}

/* fp8 to f16, exactly. e5m2 is the upper half of an f16. */
static uint32_t fp8_to_f16(pvm_type type, uint32_t bits)
{
    static const uint16_t subnormal[8] = {0, 0x1800, 0x1C00, 0x1E00, 0x2000, 0x2100, 0x2200, 0x2300};
    if (type == T_E5M2)
        return bits << 8;
    const uint32_t sign = (bits & 0x80) << 8, magnitude = bits & 0x7F;
    if (magnitude == 0x7F)
        return F16_NAN;
    /* a normal number's exponent has its bias grow from 7 to 15 */
    return sign | (magnitude < 8 ? subnormal[magnitude] : (magnitude << 7) + (8u << 10));
}

/* Elements whose k % 4 is 0 or 1 go first, in order, then the others: what the two f16 instructions take. */
static int place_by_f16(int k, int at)
{
    return at / 4 * 2 + at % 2 + (at % 4 < 2 ? 0 : k / 2);
}

static void reorder_by_f16(const tensor_op *op, tensor_matrices *x)
{
    uint32_t a[16 * 32], b[32 * PART_COLUMNS];
    const int k = op->k;
    for (int at = 0; at < k; at++) {
        const int place = place_by_f16(k, at);
        for (int i = 0; i < op->m; i++)
            a[i * k + place] = fp8_to_f16(op->atype, x->a[i * k + at]);
        for (int j = 0; j < PART_COLUMNS; j++)
            b[place * PART_COLUMNS + j] = fp8_to_f16(op->btype, x->b[at * PART_COLUMNS + j]);
    }
    memcpy(x->a, a, sizeof *a * (size_t)(op->m * k));
    memcpy(x->b, b, sizeof *b * (size_t)(k * PART_COLUMNS));
}

void tensor_run_fp8_by_f16(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                           const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    uint32_t addend[16 * PART_COLUMNS];
    const int n = op->m * op->n;
    const bool f16 = in_f16(op);
    tensor_dot dot = tensor_dot_of(op, f16);
    dot.a = dot.b = tensor_format_of(T_F16, false);
    dot.length = op->k / 2;
    tensor_gather(op, &x, a, b, c);
    memcpy(addend, x.c, sizeof *addend * (size_t)n);
    memset(x.c, 0, sizeof *x.c * (size_t)n);
    reorder_by_f16(op, &x);
    tensor_dots_of(op)(&dot, op->m, 1, op->k, x.a, x.b, x.c, NULL, NULL);
    for (int i = 0; i < n; i++)
        x.c[i] = f16 ? tensor_add_f16(x.c[i], addend[i])
                     : tensor_f32_bits(tensor_f32_from_bits(x.c[i]) + tensor_f32_from_bits(addend[i]));
    tensor_scatter(op, &x, d);
}

/* d may be the registers of a, b or c: every quad pair is read before any is written. */
static void run_quads(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                      const void *const *c, void (*multiply)(const tensor_op *op, tensor_matrices *x))
{
    tensor_matrices x[4];
    for (int quad = 0; quad < 4; quad++) {
        tensor_gather_quad(op, quad, &x[quad], a, b, c);
        multiply(op, &x[quad]);
    }
    for (int quad = 0; quad < 4; quad++)
        tensor_scatter_quad(op, quad, &x[quad], d);
}

static void multiply_quad(const tensor_op *op, tensor_matrices *x)
{
    const tensor_dot dot = tensor_dot_of(op, in_f16(op));
    widen_c(op, x->c, 64);
    tensor_dots_of(op)(&dot, 8, 1, 4, x->a, x->b, x->c, NULL, NULL);
    narrow_d(op, x->c, 64);
}

void tensor_run_quads(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                      const void *const *c, const void *const *scale)
{
    (void)scale;
    run_quads(op, d, a, b, c, multiply_quad);
}

/* What the assembler writes for m8n8k4 from sm_80 on. f32: c + fma chain over k from +0. f16: in f32, (c +
 * pair k 0-1)
 * + pair k 2-3, a pair being an exact product and one fma; then rounded to f16. */
static uint32_t scalar_dot(const tensor_op *op, const float *a, const float *b, uint32_t c)
{
    const float addend = op->ctype == T_F16 ? tensor_f16_to_f32(c) : tensor_f32_from_bits(c);
    if (op->dtype == T_F16)
        return tensor_f32_to_f16((addend + fmaf(a[1], b[1], a[0] * b[0])) + fmaf(a[3], b[3], a[2] * b[2]));
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum = fmaf(a[k], b[k], sum);
    return tensor_f32_bits(addend + sum);
}

static void multiply_quad_scalar(const tensor_op *op, tensor_matrices *x)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            float a[4], b[4];
            for (int k = 0; k < 4; k++) {
                a[k] = tensor_f16_to_f32(x->a[i * 4 + k]);
                b[k] = tensor_f16_to_f32(x->b[k * 8 + j]);
            }
            x->c[i * 8 + j] = scalar_dot(op, a, b, x->c[i * 8 + j]);
        }
}

void tensor_run_quads_fma(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                          const void *const *c, const void *const *scale)
{
    (void)scale;
    run_quads(op, d, a, b, c, multiply_quad_scalar);
}
