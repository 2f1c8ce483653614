/* Finds the elements that depend on a bit by flipping it. */
#include "tools/pictures/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BASES = 24 /* starting points: from some, a flip has no effect on an element (NaN to NaN, codes of 0) */,
    BLOCK_MAX = 256
};

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
    for (int64_t i = 0; i < count; i++) {
        uint32_t mixed = (base * 1009 + (uint32_t)i + 1) * 2654435761u;
        mixed = (mixed ^ mixed >> 15) * 2246822519u;
        bytes[i] = (uint8_t)((mixed ^ mixed >> 13) * 3266489917u >> 24);
    }
}

static void decode_bits(const picture *p, const setting *s, uint32_t *out)
{
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        out[i] = ref_f32_to_bits(
            ref_decode(&p->spec, p->rows, p->columns, &s->arrays, i / p->columns, i % p->columns));
}

/* One way to fill the bytes, and room for what it decodes to. */
typedef struct probe {
    const picture *picture;
    setting s;
    int64_t bytes, n;
    uint32_t *before, *after;
    uint8_t *affected; /* by bit and element */
} probe;

/* Decodes with bit b flipped. */
static void decode_flipped(probe *p, int64_t b)
{
    p->s.codes[b / 8] ^= (uint8_t)(1u << b % 8);
    decode_bits(p->picture, &p->s, p->after);
    p->s.codes[b / 8] ^= (uint8_t)(1u << b % 8);
}

static void find_affected(probe *p, uint32_t base)
{
    fill_base(p->s.codes, p->bytes, base);
    decode_bits(p->picture, &p->s, p->before);
    for (int64_t b = 0; b < 8 * p->bytes; b++) {
        decode_flipped(p, b);
        for (int64_t i = 0; i < p->n; i++)
            p->affected[b * p->n + i] |= p->before[i] != p->after[i];
    }
}

/* A run of elements is a group with a scale or a minimum; others have digits in common. */
static bit_use use_of(const probe *p, int64_t b)
{
    int count = 0;
    bit_use use = {BIT_UNUSED, 0, 0};
    for (int i = 0; i < p->n; i++)
        if (p->affected[b * p->n + i]) {
            use.first = count++ ? use.first : i;
            use.last = i;
        }
    if (count)
        use.kind = count == 1                                   ? BIT_ELEMENT
                   : 4 * count > 3 * (use.last - use.first + 1) ? BIT_SCALE
                                                                : BIT_SHARED;
    return use.kind == BIT_SHARED ? (bit_use){BIT_SHARED, 0, 0} : use;
}

static double change(const probe *p, int i)
{
    return (double)ref_f32_from_bits(p->after[i]) - ref_f32_from_bits(p->before[i]);
}

/* Whether a flip changes the elements by as much when all of their codes are others. Sets *known if it tells. */
static bool adds_the_same(probe *p, const bit_use *bits, int64_t b, uint32_t base, bool *known)
{
    double changes[BLOCK_MAX], largest = 0, difference = 0;
    const bit_use *use = &bits[b];
    for (int turn = 0; turn < 2; turn++) {
        fill_base(p->s.codes, p->bytes, base);
        for (int64_t k = 0; k < 8 * p->bytes && turn; k++)
            p->s.codes[k / 8] ^=
                (uint8_t)((bits[k].kind == BIT_ELEMENT || bits[k].kind == BIT_SHARED) << k % 8);
        decode_bits(p->picture, &p->s, p->before);
        decode_flipped(p, b);
        for (int i = use->first; i <= use->last; i++) {
            difference = turn ? fmax(difference, fabs(change(p, i) - changes[i])) : 0;
            changes[i] = change(p, i);
            largest = fmax(largest, fabs(changes[i]));
        }
    }
    *known = isfinite(largest) && isfinite(difference) && largest > 0;
    return difference <= largest / 256;
}

static void tell_minima(probe *p, bit_use *bits)
{
    for (int64_t b = 0; b < 8 * p->bytes; b++) {
        bool known = bits[b].kind != BIT_SCALE;
        for (uint32_t base = 0; base < BASES && !known; base++)
            if (adds_the_same(p, bits, b, base, &known) && known)
                bits[b].kind = BIT_MINIMUM;
    }
}

int64_t probe_bits(const picture *picture, bit_use **bits)
{
    probe p = {.picture = picture,
               .bytes = ref_sizes_of(&picture->spec, picture->rows, picture->columns).codes,
               .n = picture->rows * picture->columns};
    p.before = malloc((size_t)p.n * sizeof *p.before);
    p.after = malloc((size_t)p.n * sizeof *p.after);
    p.affected = calloc((size_t)(8 * p.bytes), (size_t)p.n);
    *bits = calloc((size_t)(8 * p.bytes), sizeof **bits);
    bool ok = p.n <= BLOCK_MAX && p.before && p.after && p.affected && *bits && setting_make(picture, &p.s);
    for (uint32_t base = 0; base < BASES && ok; base++)
        find_affected(&p, base);
    for (int64_t b = 0; b < 8 * p.bytes && ok; b++)
        (*bits)[b] = use_of(&p, b);
    if (ok)
        tell_minima(&p, *bits);
    setting_free(&p.s);
    free(p.before);
    free(p.after);
    free(p.affected);
    return ok ? p.bytes : 0;
}

int probe_codes(const picture *p, float values[16])
{
    setting s = {0};
    int count =
        p->spec.bits >= 1 && p->spec.bits <= 4 && p->spec.block == QDNN_BLOCK_NONE ? 1 << p->spec.bits : 0;
    if (!setting_make(p, &s))
        count = 0;
    for (int code = 0; code < count; code++) {
        s.codes[0] = (uint8_t)code;
        values[code] = ref_decode(&p->spec, p->rows, p->columns, &s.arrays, 0, 0);
    }
    setting_free(&s);
    return count;
}
