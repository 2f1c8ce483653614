/* What each operation computes: for --list and docs/operations.md. docs/numerics.md has every step. */
#include "tools/ptxgen/tool.h"

#include <string.h>

#define PRODUCT                                                                                              \
    "y[m,n] = sum over k of x[m,k] * w(k,n), in the order of the exact sum; w(k,n) = the decoded weight; "   \
    "then alpha, bias, activation, residual"

#define NORM                                                                                                 \
    "h = x + residual; RMS: y = (h / sqrt(mean(h^2) + eps)) * weight; layer: y = ((h - mean(h)) / "          \
    "sqrt(mean((h - mean(h))^2) + eps)) * weight + bias; sums in the order of the long sum"
#define POINTWISE "y = a + b, a * b, f(a) or f(a) * b"

#define ROPE                                                                                                 \
    "pairs of a head by the position of its token: y0 = x0 * c - x1 * s, y1 = x0 * s + x1 * c; queries to "  \
    "y, keys and values to their slots of the cache"

#define ATTENTION                                                                                            \
    "s = q * k, t = (s * alpha, or limit * tanh(s * factor)) + bias; y = sum of exp(t - m) * v over the "    \
    "keys that a token sees, divided by the sum of exp(t - m), m the largest t"

static const char *const formulas[KERNEL_OPERATIONS] = {
    [KERNEL_SCALE] = "s = max(absmax of the group, floor) / (largest code); with a zero point s = max(hi - "
                     "lo, floor) / (2^b - 1), zero = clamp(rint(-lo / s))",
    [KERNEL_QUANTIZE] = "q = clamp(R(x / s) + zero), R to nearest, ties to even; blocks: d and the codes by "
                        "the rule of their format",
    [KERNEL_DEQUANTIZE] = "y = (q - zero) * s; tables, floats and blocks: y = (decoded code) * s",
    [KERNEL_DYNAMIC] = "the scales of x by `scale`, then the codes by `quantize`",
    [KERNEL_REPACK] = "the same codes, in another layout or order",
    [KERNEL_PREPACK] = "the same codes, in the order in which tensor cores read them",
    [KERNEL_MATMUL] = PRODUCT,
    [KERNEL_FAKE_QUANTIZE] = "y = clamp(R(x / s), -qmax, qmax) * s, s[c] = max(absmax_c / qmax, 1e-12) per "
                             "batch, its moving average, or fixed",
    [KERNEL_FAKE_QUANTIZE_BACKWARD] = "dx = dy where the forward did not clamp, else +0 (clipped); identity, "
                                      "tanh and hard tanh as settings",
    [KERNEL_LSQ] = "y = clamp(R(x / s), -qmax, qmax) * s, s = max(scale[c], 1e-12)",
    [KERNEL_LSQ_BACKWARD] = "z = x / s; dx = dy where |z| <= qmax, else +0; dscale[c] = long sum of psi * "
                            "dy, psi = R(z) - z, or +-qmax beyond",
    [KERNEL_NORM] = NORM,
    [KERNEL_NORM_QUANTIZED] = NORM "; then the scales and codes of y",
    [KERNEL_POINTWISE] = POINTWISE,
    [KERNEL_POINTWISE_QUANTIZED] = POINTWISE "; then the scales and codes of y",
    [KERNEL_ROPE] = ROPE,
    [KERNEL_ROPE_QUANTIZED] = ROPE ", with their scales and codes",
    [KERNEL_DEQUANTIZE_TRANSPOSED] =
        "y[e,k,n] = (decoded code) * s of element k of row n of matrix e, by the rule of the format",
    [KERNEL_QUANTIZE_ROWS] =
        "row index[i] of the table = the blocks of row i of x, by the rule of their format; an index "
        "that the table does not have leaves its row out",
    [KERNEL_COPY] =
        "y[i0,i1,i2,i3] = x[i0,i1,i2,i3], each side with strides of its own, rounded to the type of y",
    [KERNEL_GATHER] = "y[i] = x[index[i]], rows of a table; NaN, or 0, for an index that it does not have",
    [KERNEL_SCATTER] =
        "y[index[i]] = x[i], rows of a table; an index that it does not have leaves its row out",
    [KERNEL_ATTENTION] = ATTENTION,
    [KERNEL_ATTENTION_QUANTIZED] = ATTENTION "; k and v are decoded",
    [KERNEL_INT4_DOT] = "y = i32 sum of x[k] * w[k]",
    [KERNEL_INT4_DOT_SCALED] = "y = (f32(sum of x[k] * w[k]) * x_scale) * scale",
    [KERNEL_INT4_MATMUL] = "y[b,r] = (f32(sum over k of x[b,k] * w[r,k]) * scale[r]) * x_scale[b]",
    [KERNEL_INT4_TOP1] = "the largest of y[b,:] of quant.int4.batched_matmul.scaled, and its index; ties to "
                         "the lowest index; a NaN loses to every number",
    [KERNEL_INT4_TOPK] = "the `top` largest of y[b,:] of quant.int4.batched_matmul.scaled, in descending "
                         "order, and their indices; equal ones by index; NaN last; 1 <= top <= 64",
    [KERNEL_INT8_MATMUL] = "acc = bias[n] + sum over k of (x[m,k] - x_zero) * (w[n,k] - w_zero); y = "
                           "clamp(R(f32(acc) * multiplier) + y_zero, -128, 127)",
    [KERNEL_W8A8] = "y[m,n] = (f32(sum over k of x[m,k] * w[n,k]) * x_scale[m]) * scale[n], then alpha, "
                    "bias, activation, residual",
    [KERNEL_W4A8] = "t = sum over groups of f32(sum in group g) * scale[n,g], by fma in strips of 512; "
                    "y[m,n] = t * x_scale[m], then alpha, bias, activation, residual",
    [KERNEL_W4A4] = "y[m,n] = (f32(sum over k of x[m,k] * w[n,k]) * x_scale[m]) * scale[n], then alpha, "
                    "bias, activation, residual",
    [KERNEL_SOFTMAX] =
        "t = (x * alpha) + (slope * mask), m the largest t; y = exp(t - m) / long sum of exp(t - m), "
        "to which a sink adds exp(sink - m)",
    [KERNEL_TOP_K] = "the `top` largest of each row in descending order, and their indices; equal ones by "
                     "index; NaN last; 1 <= top <= 1024",
    [KERNEL_SAMPLE] =
        "penalties; temperature 0: the largest; else the first token whose running sum of exp((l - "
        "largest) / temperature), over those that top-k, top-p and min-p keep, is above u * the last "
        "sum; u by Philox4x32-10 from seed and step",
    [KERNEL_ROUTE] =
        "scores = softmax(logits), or sigmoid; the `chosen` first of scores + expert_bias in descending "
        "order, equal ones by index, in the kept_groups best groups; weight = (score / (sum of the scores "
        "+ eps)) * factor",
    [KERNEL_COMBINE] =
        "y[t] = (((row_weight[t,0] * x[t,0]) + (row_weight[t,1] * x[t,1])) + ...) + residual[t]",
    [KERNEL_INT8_CONV2D] = "acc = bias[o] + sum over the window of (x - x_zero) * (w - w_zero), nothing for "
                           "padding; y = clamp(R(f32(acc) * multiplier) + y_zero, -128, 127)",
};

/* Names with a formula of their own, and answers that were worked out by hand. W is
 * [1 2 3 4 -1 -2 -3 -4 5; 4 3 2 1 -4 -3 -2 -1 -5; -8 -7 -6 -5 -4 -3 -2 -1 0] with row scales 0.5, 0.25, 0.125, and X
 * [1 -1 2 -2 3 -3 4 -4 5; -5 4 -4 3 -3 2 -2 1 -1] with batch scales 0.75, 0.375. Tests: ParityInteger.Known*,
 * ParityKnownProducts.*, ParityKnown.*. */
static const struct {
    const char *name, *formula, *answer;
} named[] = {
    {"quant.linear_4bit", "y[m,n] = sum over k of x[m,k] * code(k,n) + bias[n], code 0 to 15",
     "x = 1 to 8, words 0x87654321 and 0, bias 0: 204 and 0"},
    {"quant.linear_4bit.affine_grouped",
     "y[m,n] = sum over k of x[m,k] * ((code(k,n) - zero[g,n]) * scale[g,n]) + bias[n]",
     "the same x and words, groups of 4, scales [[0.5,1],[2,1]], zeros [[1,0],[4,0]], bias [0,3]: 150 and 3"},
    {"quant.int4.matvec.scaled", "y[r] = sum over k of x[k] * (w[r,k] * scale[r])",
     "W and x = [1 -0.5 0.25 2 -1.5 0.75 1.25 -2 0.5]: 7.75, 1.4375, -1.59375"},
    {"quant.int4.batched_matvec.scaled", "y[b,r] = sum over k of x[b,k] * (w[r,k] * scale[r])",
     "W with that x and its negative: 7.75, 1.4375, -1.59375 and -7.75, -1.4375, 1.59375"},
    {"quant.int4.dot", NULL, "0xCDEF4321 and 0xFEDC1234: 40"},
    {"quant.int4.dot.scaled", NULL, "0xCDEF4321 and 0xFEDC1234 with scales 0.5 and 0.25: 5"},
    {"quant.int4.batched_matmul.scaled", NULL,
     "W and X: 10.875, -5.4375, -0.9375 and -0.1875, 0.09375, 1.40625"},
    {"quant.int4.batched_matmul.top1.scaled", NULL, "W and X: (10.875, 0) and (1.40625, 2)"},
    {"quant.int8.quantize", NULL, "x = 999 and -999, scale 0.05: 127 and -128"},
};

/* Digests of outputs, which a test compares with host_ref and with what launchers compute. */
static const struct {
    const char *name, *answer;
} digests[] = {
#define KNOWN(name, answer) {name, answer},
#include "tools/ptxgen/known.def"
#undef KNOWN
};

const char *tool_formula(const kernel_row *row, const char *name)
{
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strcmp(named[i].name, name) == 0 && named[i].formula)
            return named[i].formula;
    return formulas[kernel_operation_of(row)];
}

const char *tool_known_answer(const char *name)
{
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strcmp(named[i].name, name) == 0)
            return named[i].answer;
    return NULL;
}

const char *tool_known_digest(const char *name)
{
    for (size_t i = 0; i < sizeof digests / sizeof digests[0]; i++)
        if (strcmp(digests[i].name, name) == 0)
            return digests[i].answer;
    return "";
}
