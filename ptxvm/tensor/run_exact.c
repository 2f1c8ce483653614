/* mma and wmma whose arithmetic leaves no doubt: integers, single bits, and f64 as a chain of IEEE fma. */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "internal.h"

/* s8, u8, s4, u4 elements, as they are in the low bits, to their values. */
void tensor_sign_extend(pvm_type type, uint32_t *x, int n)
{
    const uint32_t sign = type == T_S8 ? 0x80 : type == T_S4 ? 8 : 0;
    for (int i = 0; sign && i < n; i++)
        x[i] = (x[i] ^ sign) - sign;
}

/* Without .satfinite the sum wraps. With it, the whole instruction's exact sum is clamped once. */
void tensor_integer_row(bool satfinite, int k, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    int32_t sum[PART_COLUMNS] = {0}; /* |sum| <= 64 * 255 * 255 */
    for (int i = 0; i < k; i++)
        for (int j = 0; j < PART_COLUMNS; j++)
            sum[j] += (int32_t)a[i] * (int32_t)b[i * PART_COLUMNS + j];
    for (int j = 0; j < PART_COLUMNS; j++) {
        const int64_t whole = (int64_t)(int32_t)c[j] + sum[j];
        const int64_t clamped = whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : whole;
        c[j] = (uint32_t)(satfinite ? clamped : whole);
    }
}

void tensor_run_integer(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                        const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    tensor_gather(op, &x, a, b, c);
    tensor_sign_extend(op->atype, x.a, op->m * op->k);
    tensor_sign_extend(op->btype, x.b, op->n * op->k);
    for (int part = 0; part < op->n / PART_COLUMNS; part++)
        for (int i = 0; i < op->m; i++)
            tensor_integer_row(op->satfinite, op->k, x.a + i * op->k, x.b + part * op->k * PART_COLUMNS,
                               x.c + (part * op->m + i) * PART_COLUMNS);
    tensor_scatter(op, &x, d);
}

void tensor_bits_row(bool is_and, int words, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    for (int j = 0; j < PART_COLUMNS; j++)
        for (int w = 0; w < words; w++) {
            const uint32_t column = b[w * PART_COLUMNS + j];
            c[j] += (uint32_t)__builtin_popcount(is_and ? a[w] & column : a[w] ^ column);
        }
}

void tensor_run_bits(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                     const void *const *c, const void *const *scale)
{
    (void)scale;
    tensor_matrices x;
    const int words = op->k / 32;
    tensor_gather(op, &x, a, b, c);
    for (int i = 0; i < op->m; i++)
        tensor_bits_row(op->is_and, words, x.a + i * words, x.b, x.c + i * PART_COLUMNS);
    tensor_scatter(op, &x, d);
}

/* The host's rounding mode for .rn (or none), .rz, .rm, .rp. */
static int host_rounding(const tensor_op *op)
{
    switch (op->inst->mod[S_RND]) {
    case M_rz:
        return FE_TOWARDZERO;
    case M_rm:
        return FE_DOWNWARD;
    case M_rp:
        return FE_UPWARD;
    default:
        return FE_TONEAREST;
    }
}

/* One element: fma in the order of k. Not inlined, so that no fma moves across the switch of the rounding
 * mode. */
static __attribute__((noinline)) double chain(int k, const double *a, const double *b, double c)
{
    for (int i = 0; i < k; i++)
        c = fma(a[i], b[i * 8], c);
    return c;
}

/* f64 fragments follow the rule of layout.c with one element in a register, 64 bits wide. */
void tensor_run_f64(const tensor_op *op, void *const *d, const void *const *a, const void *const *b,
                    const void *const *c, const void *const *scale)
{
    (void)scale;
    double x[16 * 16], y[16 * 8], z[16 * 8];
    for (int lane = 0; lane < WARP_LANES; lane++) {
        for (int r = 0; r < op->m * op->k / WARP_LANES; r++) {
            const tensor_element at = tensor_mma_element(op, 'a', lane, r, 0);
            x[at.row * op->k + at.col] = ((const double *)a[r])[lane];
        }
        for (int r = 0; r < op->k * op->n / WARP_LANES; r++) {
            const tensor_element at = tensor_mma_element(op, 'b', lane, r, 0);
            y[at.row * 8 + at.col] = ((const double *)b[r])[lane];
        }
        for (int r = 0; r < op->m * op->n / WARP_LANES; r++) {
            const tensor_element at = tensor_mma_element(op, 'c', lane, r, 0);
            z[at.row * 8 + at.col] = ((const double *)c[r])[lane];
        }
    }
    const int before = fegetround();
    fesetround(host_rounding(op));
    for (int i = 0; i < op->m * 8; i++)
        z[i] = chain(op->k, x + i / 8 * op->k, y + i % 8, z[i]);
    fesetround(before);
    for (int lane = 0; lane < WARP_LANES; lane++)
        for (int r = 0; r < op->m * op->n / WARP_LANES; r++) {
            const tensor_element at = tensor_mma_element(op, 'd', lane, r, 0);
            const double value = z[at.row * 8 + at.col];
            const uint64_t nan = 0x7FF8000000000000; /* whatever the host's fma makes of NaN */
            memcpy((double *)d[r] + lane, value != value ? (const void *)&nan : (const void *)&value,
                   sizeof value);
        }
}
