#include "bench/functions/function_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "host_ref/host_ref.h"

/* ---- The exact functions ----
 *
 * The C library's exp, tanh, erf and erfc for doubles are a few 2^-53 off, relatively. An argument's rounding
 * error is multiplied by x f'(x) / f(x), at most 230 where a result is not 0. That is 1e-13 at most; an ulp of
 * an f32 is 6e-8. */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Results of -200 and below are far below the smallest f32; the formulas give NaN for -Inf. */
static double silu(double x)
{
    return x < -200 ? -0.0 : x / (1 + exp(-x));
}

static double gelu_tanh(double x)
{
    const double k = 1.5957691216057307118; /* 2 sqrt(2 / pi) */
    return x < -200 ? -0.0 : x / (1 + exp(-k * (x + 0.044715 * x * x * x)));
}

static double gelu_erf(double x)
{
    return x < -200 ? -0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
}

const function_row function_rows[FUNCTION_COUNT] = {
    {"exp", ref_exp, emit_exp, exp, 2},
    {"tanh", ref_tanh, emit_tanh, tanh, 2},
    {"erf", ref_erf, emit_erf, erf, 2},
    {"sigmoid", ref_sigmoid, emit_sigmoid, sigmoid, 2},
    {"silu", ref_silu, emit_silu, silu, 4},
    {"gelu_tanh", ref_gelu_tanh, emit_gelu_tanh, gelu_tanh, 4},
    {"gelu_erf", ref_gelu_erf, emit_gelu_erf, gelu_erf, 4},
};

/* One unit in the last place of an f32 of this size. By bits: frexp and ldexp would take half of a sweep. */
static double last_place(double exact)
{
    uint64_t bits;
    double unit;
    memcpy(&bits, &exact, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7FF) - 1023; /* 0 and what is subnormal: below all others */
    exponent = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
    bits = (uint64_t)(1023 + exponent - 23) << 52;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}

double function_error(const function_row *row, float x, float y)
{
    double exact = row->exact(x);
    if (isnan(exact) || isnan(y))
        return isnan(exact) && ref_f32_to_bits(y) == REF_NAN_F32 ? 0 : INFINITY;
    if (!signbit(exact) != !signbit(y))
        return INFINITY;
    /* Infinity stands for 2^128, and for all that is larger. */
    double actual = isinf(y) ? copysign(0x1p128, y) : y;
    double nearest = fabs(exact) > 0x1p128 ? copysign(0x1p128, exact) : exact;
    return fabs(actual - nearest) / last_place(nearest);
}

char *function_kernel(const function_row *row, const ptx_sm *sm)
{
    ptx_builder *b = ptx_open(sm, NULL);
    ptx_kernel(b, "apply");
    ptx_val x = ptx_param_ptr(b, "x", 4), y = ptx_param_ptr(b, "y", 4), n = ptx_param(b, PTX_U32, "n");
    ptx_val i = ptx_global_index(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    ptx_val from = ptx_at(b, x, i, 4), to = ptx_at(b, y, i, 4);
    ptx_val value = ptx_ld_global(b, PTX_F32, from, 0);
    ptx_st_global(b, to, 0, row ? row->emit(b, value) : value);
    char *text;
    ptx_error error;
    if (!ptx_close(b, &text, &error))
        fprintf(stderr, "%s: %s\n", row ? row->name : "copy", error.text);
    return text;
}
