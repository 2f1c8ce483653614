/* RMS norm and layer norm of rows, with a residual in front. */
#include <math.h>
#include <stdlib.h>

#include "host_ref/internal.h"

/* A row in front of its norm: x, or the rounded sum of x and the residual, which is stored. */
static void load_row(const ref_norm_spec *spec, const ref_norm_arrays *a, int64_t row, float *h)
{
    for (int64_t i = 0; i < spec->columns; i++) {
        const int64_t at = row * spec->columns + i;
        h[i] = hr_scalar_load(spec->x, a->x, at);
        if (!spec->sum)
            continue;
        hr_scalar_store(spec->sum, a->sum, at,
                        hr_canonical(h[i] + hr_scalar_load(spec->sum, a->residual, at)));
        h[i] = hr_scalar_load(spec->sum, a->sum, at);
    }
}

static float mean(const float *a, const float *b, int64_t n)
{
    return hr_long_sum(a, b, n) / (float)n;
}

static void norm_row(const ref_norm_spec *spec, const ref_norm_arrays *a, int64_t row, float *h)
{
    const float mu = spec->is_layer ? mean(h, NULL, spec->columns) : 0;
    for (int64_t i = 0; i < spec->columns && spec->is_layer; i++)
        h[i] = h[i] - mu;
    const float r = 1 / sqrtf(mean(h, h, spec->columns) + spec->eps);
    for (int64_t i = 0; i < spec->columns; i++) {
        float y = h[i] * r;
        if (spec->weight) {
            const float w = hr_scalar_load(spec->weight, a->weight, i);
            y = y * (spec->plus_one ? 1 + w : w);
        }
        if (spec->bias)
            y = y + hr_scalar_load(spec->bias, a->bias, i);
        hr_scalar_store(spec->y, a->y, row * spec->columns + i, hr_canonical(y));
    }
}

void hr_norm(const ref_norm_spec *spec, int64_t rows, const ref_norm_arrays *a)
{
    hr_require(spec->columns > 0, "a row must not be empty");
    float *h = malloc((size_t)spec->columns * sizeof *h);
    hr_require(h != NULL, "out of memory");
    for (int64_t row = 0; row < rows; row++) {
        load_row(spec, a, row, h);
        norm_row(spec, a, row, h);
    }
    free(h);
}
