/* Rope: pairs of elements of a head, rotated by the angle of their token's position. */
#include <math.h>

#include "host_ref/internal.h"

static int64_t sections_of(const ref_rope_spec *spec)
{
    int64_t n = 0;
    while (n < 4 && spec->section[n])
        n++;
    return n ? n : 1;
}

/* The section of a pair. */
static int64_t section_of(const ref_rope_spec *spec, int64_t pair)
{
    const int64_t n = sections_of(spec);
    if (n == 1)
        return 0;
    if (spec->interleaved)
        return pair < n * spec->section[pair % n] ? pair % n : 0;
    int64_t section = 0;
    for (int64_t end = spec->section[0]; pair >= end; end += spec->section[section])
        section++;
    return section;
}

static int64_t position_of(const ref_rope_spec *spec, const int32_t *position, int64_t token, int64_t pair)
{
    const int64_t section = section_of(spec, pair);
    return spec->section_stride ? position[section * spec->section_stride + token]
                                : position[token * sections_of(spec) + section];
}

static float factor(const ref_rope_spec *spec, const float *table, int64_t position, int64_t pair)
{
    return position >= 0 && position < spec->positions ? table[position * (spec->size / 2) + pair] : NAN;
}

void hr_rope(const ref_rope_spec *spec, int64_t tokens, const float *cos, const float *sin,
             const int32_t *position, const void *x, void *y)
{
    const int64_t token_size = spec->head * spec->heads;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t h = 0; h < spec->heads; h++) {
            const int64_t from = t * (token_size + spec->gap) + h * spec->head,
                          to = t * token_size + h * spec->head;
            for (int64_t i = 0; i < spec->head; i++)
                hr_scalar_store(spec->y, y, to + i, hr_canonical(hr_scalar_load(spec->x, x, from + i)));
            for (int64_t i = 0; i < spec->size / 2; i++) {
                const int64_t a = spec->first + (spec->neighbours ? 2 * i : i),
                              b = a + (spec->neighbours ? 1 : spec->size / 2),
                              p = position_of(spec, position, t, i);
                const float c = factor(spec, cos, p, i), s = factor(spec, sin, p, i);
                const float x0 = hr_scalar_load(spec->x, x, from + a),
                            x1 = hr_scalar_load(spec->x, x, from + b);
                hr_scalar_store(spec->y, y, to + a, hr_canonical((x0 * c) - (x1 * s)));
                hr_scalar_store(spec->y, y, to + b, hr_canonical((x0 * s) + (x1 * c)));
            }
        }
}
