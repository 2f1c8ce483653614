/* Finds the elements that depend on a bit by flipping it. */
#include "tools/pictures/pictures.h"

#include <stdlib.h>
#include <string.h>

enum { BASES = 6 /* starting points: from some, a flip may have no effect (NaN to NaN) */ };

/* The arrays that go with the codes: scales that make every code visible. */
typedef struct setting {
    uint8_t *codes, *scale, *zero;
    float global;
    ref_arrays arrays;
} setting;

/* Scales of 1, in each type. */
static void fill_ones(qdnnScaleType_t type, uint8_t *scale, int64_t count)
{
    static const struct {
        int bytes;
        uint32_t one;
    } ones[] = {[QDNN_SCALE_F32] = {4, 0x3F800000},
                [QDNN_SCALE_F16] = {2, 0x3C00},
                [QDNN_SCALE_BF16] = {2, 0x3F80},
                [QDNN_SCALE_E4M3] = {1, 0x38},
                [QDNN_SCALE_E8M0] = {1, 127}};
    for (int64_t i = 0; i < count; i++)
        memcpy(scale + i * ones[type].bytes, &ones[type].one, (size_t)ones[type].bytes);
}

static bool setting_make(const picture *p, setting *s)
{
    ref_sizes sizes = ref_sizes_of(&p->spec, p->rows, p->columns);
    *s = (setting){.codes = calloc(1, (size_t)sizes.codes + 1),
                   .scale = calloc(1, (size_t)sizes.scale + 1),
                   .zero = calloc(1, (size_t)sizes.zero + 1),
                   .global = 1};
    s->arrays =
        (ref_arrays){.codes = s->codes, .scale = s->scale, .zero = s->zero, .global_scale = &s->global};
    if (!s->codes || !s->scale || !s->zero)
        return false;
    fill_ones(p->spec.scale, s->scale, ref_group_count(&p->spec, p->rows, p->columns));
    return true;
}

static void setting_free(setting *s)
{
    free(s->codes);
    free(s->scale);
    free(s->zero);
}

/* Bytes without a pattern that might hide a dependency. */
static void fill_base(uint8_t *bytes, int64_t count, uint32_t base)
{
    uint32_t state = base * 2654435761u + 99u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static void decode_bits(const picture *p, const setting *s, uint32_t *out)
{
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        out[i] = ref_f32_to_bits(
            ref_decode(&p->spec, p->rows, p->columns, &s->arrays, i / p->columns, i % p->columns));
}

/* Adds the effect of one flip to what is known about the bit. */
static void compare(const uint32_t *before, const uint32_t *after, int64_t n, int *bit)
{
    for (int64_t i = 0; i < n; i++)
        if (before[i] != after[i])
            *bit = *bit == BIT_UNUSED || *bit == (int)i ? (int)i : BIT_SHARED;
}

static void probe_base(const picture *p, setting *s, int64_t bytes, uint32_t *before, uint32_t *after,
                       int *bits)
{
    const int64_t n = p->rows * p->columns;
    decode_bits(p, s, before);
    for (int64_t b = 0; b < 8 * bytes; b++) {
        s->codes[b / 8] ^= (uint8_t)(1u << b % 8);
        decode_bits(p, s, after);
        s->codes[b / 8] ^= (uint8_t)(1u << b % 8);
        compare(before, after, n, &bits[b]);
    }
}

int64_t probe_bits(const picture *p, int **bits)
{
    const int64_t bytes = ref_sizes_of(&p->spec, p->rows, p->columns).codes, n = p->rows * p->columns;
    uint32_t *before = malloc((size_t)n * sizeof *before), *after = malloc((size_t)n * sizeof *after);
    setting s = {0};
    *bits = malloc((size_t)bytes * 8 * sizeof **bits);
    bool ok = before && after && *bits && setting_make(p, &s);
    for (int64_t b = 0; b < 8 * bytes && ok; b++)
        (*bits)[b] = BIT_UNUSED;
    for (uint32_t base = 0; base < BASES && ok; base++) {
        fill_base(s.codes, bytes, base);
        probe_base(p, &s, bytes, before, after, *bits);
    }
    setting_free(&s);
    free(before);
    free(after);
    return ok ? bytes : 0;
}
