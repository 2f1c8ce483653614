/* Operations for training: fake quantization and LSQ, forward and backward, and the long sum. */
#include "host_ref/internal.h"

#include <stdlib.h>

/* The minimum of a scale, unless it is a state. */
static const float least_scale = 1e-12f;

static float qmax_of(const ref_train_spec *spec)
{
    hr_require(spec->bits == 8 || spec->bits == 4 || spec->bits == 2, "bits is %d; it must be 8, 4 or 2",
               spec->bits);
    return (float)((1 << (spec->bits - 1)) - 1);
}

/* ---- Groups ---- */

int64_t ref_train_groups(const ref_train_spec *spec, int64_t n)
{
    hr_require(spec->group_size >= 1, "group_size is %lld; it must be at least 1",
               (long long)spec->group_size);
    if (n == 0)
        return 0;
    return spec->channels > 0 ? spec->channels : ceil_div(n, spec->group_size);
}

static int64_t group_of(const ref_train_spec *spec, int64_t i)
{
    int64_t run = i / spec->group_size;
    return spec->channels > 0 ? run % spec->channels : run;
}

static float *new_array(int64_t count)
{
    float *array = calloc((size_t)count + 1, sizeof *array);
    hr_require(array != NULL, "out of memory for %lld numbers", (long long)count);
    return array;
}

/* ---- Scales ---- */

/* max(absmax / qmax, 1e-12) of each group. The caller frees it. */
static float *batch_scales(const ref_train_spec *spec, int64_t n, const float *x)
{
    int64_t groups = ref_train_groups(spec, n);
    float *scales = new_array(groups);
    for (int64_t i = 0; i < n; i++) {
        float *absmax = &scales[group_of(spec, i)];
        *absmax = larger(fabsf(saturated(x[i])), *absmax); /* a NaN never counts as larger */
    }
    for (int64_t g = 0; g < groups; g++)
        scales[g] = larger(scales[g] / qmax_of(spec), least_scale);
    return scales;
}

static float *bounded_scales(const ref_train_spec *spec, int64_t n, const float *given)
{
    int64_t groups = ref_train_groups(spec, n);
    float *scales = new_array(groups);
    for (int64_t g = 0; g < groups; g++)
        scales[g] = larger(given[g], least_scale); /* a NaN never counts as larger */
    return scales;
}

static void update_state(const ref_train_spec *spec, int64_t groups, const float *current, float *state)
{
    hr_require(spec->decay >= 0.0f && spec->decay <= 1.0f, "decay is %g; it must be 0 to 1",
               (double)spec->decay);
    for (int64_t g = 0; g < groups; g++) {
        float old = spec->decay * state[g], new = (1.0f - spec->decay) * current[g];
        state[g] = state[g] <= 0.0f ? current[g] : hr_canonical(old + new);
    }
}

/* The scales that an operation divides by. The caller frees them. */
static float *scales_of(const ref_train_spec *spec, int64_t n, const float *x, const float *state)
{
    if (spec->mode == QDNN_SCALE_MODE_BATCH)
        return batch_scales(spec, n, x);
    float *scales = bounded_scales(spec, n, state);
    if (spec->mode == QDNN_SCALE_MODE_EMA)
        for (int64_t g = 0; g < ref_train_groups(spec, n); g++)
            scales[g] = state[g];
    return scales;
}

/* ---- Forward ---- */

static float fake_quantized(const ref_train_spec *spec, float x, float s)
{
    float q = round_integral(saturated(x) / s, spec->rounding);
    return isnan(q) ? q : clamp(q, -qmax_of(spec), qmax_of(spec)) * s;
}

static void quantize_all(const ref_train_spec *spec, int64_t n, const float *x, const float *scales, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = hr_canonical(fake_quantized(spec, x[i], scales[group_of(spec, i)]));
}

void hr_fake_quantize(const ref_train_spec *spec, int64_t n, const float *x, float *state, float *y)
{
    if (spec->mode == QDNN_SCALE_MODE_EMA) {
        float *current = batch_scales(spec, n, x);
        update_state(spec, ref_train_groups(spec, n), current, state);
        free(current);
    }
    float *scales = scales_of(spec, n, x, state);
    quantize_all(spec, n, x, scales, y);
    free(scales);
}

void hr_lsq(const ref_train_spec *spec, int64_t n, const float *x, const float *scale, float *y)
{
    float *scales = bounded_scales(spec, n, scale);
    quantize_all(spec, n, x, scales, y);
    free(scales);
}

/* ---- Backward ---- */

static float gradient(const ref_train_spec *spec, float x, float s, float dy)
{
    float qmax = qmax_of(spec), z = saturated(x) / s, t = hr_tanh(z);
    if (isnan(z) || isnan(dy))
        return NAN;
    switch (spec->backward) {
    case QDNN_BACKWARD_CLIPPED:
        return fabsf(round_integral(z, spec->rounding)) <= qmax ? dy : 0.0f;
    case QDNN_BACKWARD_TANH:
        return dy * (1.0f - t * t);
    case QDNN_BACKWARD_HARD_TANH:
        return dy * larger(1.0f - fabsf(saturated(x) / (qmax * s)), 0.0f);
    default:
        hr_require(false, "backward is %d, which is unknown", (int)spec->backward);
        return NAN;
    }
}

void hr_fake_quantize_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *state,
                               const float *dy, float *dx)
{
    bool identity = spec->backward == QDNN_BACKWARD_IDENTITY;
    float *scales = identity ? NULL : scales_of(spec, n, x, state);
    for (int64_t i = 0; i < n; i++)
        dx[i] = hr_canonical(identity ? dy[i] : gradient(spec, x[i], scales[group_of(spec, i)], dy[i]));
    free(scales);
}

/* ---- The long sum ---- */

enum { SEGMENT = 4096 };

float hr_long_sum(const float *a, const float *b, int64_t n)
{
    if (n <= SEGMENT)
        return hr_exact_sum(a, b, n);
    int64_t count = ceil_div(n, SEGMENT);
    float *sums = new_array(count);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = i * SEGMENT, left = n - first;
        sums[i] = hr_exact_sum(a + first, b ? b + first : NULL, left < SEGMENT ? left : SEGMENT);
    }
    float sum = hr_long_sum(sums, NULL, count);
    free(sums);
    return sum;
}

/* ---- LSQ backward ---- */

/* The derivative of an element with respect to its scale, per dy. */
static float slope(const ref_train_spec *spec, float z)
{
    float qmax = qmax_of(spec);
    if (isnan(z))
        return NAN;
    return fabsf(z) <= qmax ? round_integral(z, spec->rounding) - z : copysignf(qmax, z);
}

static float lsq_gradient(const ref_train_spec *spec, float z, float dy)
{
    if (isnan(z) || isnan(dy))
        return NAN;
    return fabsf(z) <= qmax_of(spec) ? dy : 0.0f;
}

static float factor_of(const ref_train_spec *spec, int64_t count)
{
    return spec->gradient_factor ? 1.0f / sqrtf((float)count * qmax_of(spec)) : 1.0f;
}

/* The gradient of one scale, over the elements of its group, run by run. `slopes` and `dys` have room for all
 * n. */
static float scale_gradient(const ref_train_spec *spec, int64_t n, int64_t group, const float *x, float s,
                            const float *dy, float *slopes, float *dys)
{
    int64_t count = 0, next = spec->channels > 0 ? spec->group_size * spec->channels : n;
    for (int64_t first = group * spec->group_size; first < n; first += next)
        for (int64_t i = first; i < n && i - first < spec->group_size; i++) {
            slopes[count] = slope(spec, saturated(x[i]) / s);
            dys[count++] = dy[i];
        }
    return hr_canonical(hr_long_sum(slopes, dys, count) * factor_of(spec, count));
}

void hr_lsq_backward(const ref_train_spec *spec, int64_t n, const float *x, const float *scale,
                     const float *dy, float *dx, float *dscale)
{
    float *scales = bounded_scales(spec, n, scale), *slopes = new_array(n), *dys = new_array(n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = hr_canonical(lsq_gradient(spec, saturated(x[i]) / scales[group_of(spec, i)], dy[i]));
    for (int64_t g = 0; g < ref_train_groups(spec, n); g++)
        dscale[g] = scale_gradient(spec, n, g, x, scales[g], dy, slopes, dys);
    free(scales);
    free(slopes);
    free(dys);
}
