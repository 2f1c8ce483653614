/* Products with quantized weights: the sum of a mode, and the steps after it that all modes share. */
#include "host_ref/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The exact sum: 32 lanes with chunks of 8, then a tree ---- */

enum { LANES = 32, CHUNK = 8 };

float hr_exact_sum(const float *x, const float *w, int64_t n)
{
    float lane[LANES] = {0};
    for (int64_t k = 0; k < n; k++) {
        float *sum = &lane[k / CHUNK % LANES];
        *sum = w ? fmaf(x[k], w[k], *sum) : *sum + x[k];
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            lane[i] = lane[i] + lane[i + distance];
    return hr_canonical(lane[0] + 0.0f);
}

/* ---- After the sum ---- */

static float relu(float x)
{
    return x <= 0.0f ? 0.0f : x;
}

static float activate(qdnnActivation_t activation, float x)
{
    switch (activation) {
    case QDNN_ACTIVATION_NONE:
        return x;
    case QDNN_ACTIVATION_RELU:
        return relu(x);
    case QDNN_ACTIVATION_GELU_TANH:
        return hr_gelu_tanh(x);
    case QDNN_ACTIVATION_GELU_ERF:
        return hr_gelu_erf(x);
    case QDNN_ACTIVATION_SILU:
        return hr_silu(x);
    default:
        break;
    }
    hr_require(false, "activation %d is unknown", (int)activation);
    return 0;
}

/* The row of x that belongs to a row of y. */
int64_t hr_product_x_row(const ref_product *p, int64_t m)
{
    return p->slots ? m / p->slots : m;
}

/* alpha * (S * x_scale) + addend + bias, for one output of the weights. */
static float affine(const ref_product *p, const ref_product_arrays *a, int64_t expert, int64_t m,
                    int64_t output, float sum)
{
    int64_t index = expert * p->outputs + output;
    float v = a->x_scale ? sum * a->x_scale[hr_product_x_row(p, m)] : sum;
    if (p->alpha != QDNN_ALPHA_NONE)
        v = (p->alpha == QDNN_ALPHA_NUMBER ? p->alpha_number
                                           : a->alpha[p->alpha == QDNN_ALPHA_COLUMN ? index : 0]) *
            v;
    if (a->addend)
        v = v + a->addend[m * p->outputs + output];
    if (a->bias)
        v = v + hr_scalar_load(p->bias, a->bias, index);
    return v;
}

void hr_product_finish(const ref_product *p, const ref_product_arrays *a, int64_t expert, int64_t m,
                       int64_t n, const float sums[2])
{
    int64_t columns = p->gated ? p->outputs / 2 : p->outputs, at = m * p->y_stride + n;
    float v = activate(p->activation, affine(p, a, expert, m, n, sums[0]));
    if (p->gated)
        v = v * affine(p, a, expert, m, columns + n, sums[1]);
    if (a->residual)
        v = v + hr_scalar_load(p->y, a->residual, at);
    if (a->row_weight)
        v = a->row_weight[m] * v;
    hr_scalar_store(p->y, a->y, at, hr_canonical(v));
}

/* ---- The product ---- */

/* Column `output` of the weights in f32. */
static void decode_output(const ref_product *p, const ref_arrays *in, int64_t output, float *w)
{
    const bool is_block = p->weights.block != QDNN_BLOCK_NONE;
    const int64_t rows = p->k_rows ? p->k : p->outputs, columns = p->k_rows ? p->outputs : p->k;
    const tensor t = is_block ? (tensor){.rows = rows} : hr_tensor_of(&p->weights, rows, columns);
    for (int64_t k = 0; k < p->k; k++) {
        const int64_t row = p->k_rows ? k : output, column = p->k_rows ? output : k;
        w[k] = is_block ? hr_decode(&p->weights, rows, columns, in, row, column)
                        : hr_decode_at(&t, in, row, column);
    }
}

/* The arrays of one expert in a stack. */
static ref_arrays expert_of(const ref_product *p, const ref_arrays *in, int64_t expert)
{
    ref_sizes size =
        p->k_rows ? ref_sizes_of(&p->weights, p->k, p->outputs) : ref_sizes_of(&p->weights, p->outputs, p->k);
    ref_arrays a = *in;
    a.codes = (char *)in->codes + expert * size.codes;
    if (in->scale)
        a.scale = (char *)in->scale + expert * size.scale;
    if (in->zero)
        a.zero = (char *)in->zero + expert * size.zero;
    if (in->global_scale)
        a.global_scale = in->global_scale + expert;
    if (in->group_index)
        a.group_index = in->group_index + expert * (size.group_index / (int64_t)sizeof(int32_t));
    if (in->nested_scale)
        a.nested_scale = in->nested_scale + expert * (size.nested_scale / (int64_t)sizeof(float));
    return a;
}

void hr_product_row_of_nan(const ref_product *p, const ref_product_arrays *a, int64_t m)
{
    for (int64_t n = 0; n < (p->gated ? p->outputs / 2 : p->outputs); n++)
        hr_scalar_store(p->y, a->y, m * p->y_stride + n, ref_f32_from_bits(REF_NAN_F32));
}

typedef struct {
    float *x, *w[2]; /* all rows of x, one after the other; a column of the weights, or two */
} buffers;

/* The rows of one expert; without experts, all of them. */
static void product_of_expert(const ref_product *p, const ref_product_arrays *a, int64_t expert,
                              const buffers *f, hr_mode mode)
{
    int64_t columns = p->gated ? p->outputs / 2 : p->outputs;
    ref_arrays in = expert_of(p, &a->weights, expert);
    for (int64_t n = 0; n < columns; n++) {
        for (int i = 0; i <= (p->gated ? 1 : 0); i++) {
            decode_output(p, &in, n + i * columns, f->w[i]);
            if (mode.round)
                mode.round(mode.user, f->w[i], p->k);
        }
        for (int64_t m = 0; m < p->m; m++) {
            if (p->experts && a->expert_index[m] != expert)
                continue;
            const float *x = f->x + m * p->k;
            float sums[2] = {mode.sum(mode.user, x, f->w[0], p->k),
                             p->gated ? mode.sum(mode.user, x, f->w[1], p->k) : 0};
            hr_product_finish(p, a, expert, m, n, sums);
        }
    }
}

static float *new_floats(int64_t count)
{
    float *floats = malloc((size_t)(count > 0 ? count : 1) * sizeof *floats);
    hr_require(floats, "out of memory for %lld numbers", (long long)count);
    return floats;
}

void hr_product(const ref_product *p, const ref_product_arrays *a, hr_mode mode)
{
    buffers f = {new_floats(p->m * p->k), {new_floats(p->k), new_floats(p->k)}};
    for (int64_t m = 0; m < p->m; m++)
        for (int64_t k = 0; k < p->k; k++)
            f.x[m * p->k + k] = hr_input_load(p->x, a->x, hr_product_x_row(p, m) * p->x_stride + k);
    for (int64_t e = 0; e < (p->experts ? p->experts : 1); e++)
        product_of_expert(p, a, e, &f, mode);
    for (int64_t m = 0; m < p->m && p->experts; m++)
        if (a->expert_index[m] < 0 || a->expert_index[m] >= p->experts)
            hr_product_row_of_nan(p, a, m);
    free(f.x);
    free(f.w[0]);
    free(f.w[1]);
}

static float exact(const void *user, const float *x, const float *w, int64_t n)
{
    (void)user;
    return hr_exact_sum(x, w, n);
}

void hr_product_exact(const ref_product *p, const ref_product_arrays *a)
{
    hr_product(p, a, (hr_mode){exact, NULL, NULL});
}
