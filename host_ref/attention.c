/* Attention of one query and one head (docs/numerics.md, "Attention"): keys in tiles of 64, tiles in strips, strips in
 * increasing order. Both modes; that of tensor cores by the model of tensor_core.c. */
#include "host_ref/internal.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 64, EXACT_TILES = 16, TENSOR_TILES = 4 };

/* What is known about some keys: the largest t, the sum of weights, and the sum of weighted values. */
typedef struct {
    bool has_keys;
    float m, l;
    float *o;
} state;

/* The keys of a tile that the query sees. */
typedef struct {
    int64_t first; /* number of the first key of the tile */
    bool exists[TILE];
    float t[TILE];
} tile;

typedef struct {
    const ref_attention_spec *spec;
    const ref_attention_row *row;
    const ref_tensor_family *family; /* null: mode exact */
    float *q;
} attention;

static float *new_numbers(int64_t n)
{
    float *x = calloc((size_t)n + 1, sizeof *x);
    hr_require(x != NULL, "out of memory for %lld numbers", (long long)n);
    return x;
}

static float rounded_to(qdnnDataType_t type, float x)
{
    uint32_t stored = 0;
    hr_scalar_store(type, &stored, 0, x);
    return hr_scalar_load(type, &stored, 0);
}

/* ---- Sums ---- */

/* c plus the sum of a[i] * b[i * stride], by a chain of instructions. Both are numbers of the type. */
static float chain(const attention *at, const float *a, const float *b, int64_t stride, int64_t n, float c)
{
    const qdnnDataType_t type = at->spec->x;
    const int depth = ref_tensor_depth(*at->family, type);
    for (int64_t from = 0; from < n; from += depth) {
        uint16_t x[16] = {0}, w[16] = {0};
        for (int i = 0; i < depth && from + i < n; i++) {
            hr_scalar_store(type, x, i, a[from + i]);
            hr_scalar_store(type, w, i, b[(from + i) * stride]);
        }
        c = hr_tensor_mma(*at->family, type, x, type, w, depth, c);
    }
    return c;
}

static float score(const attention *at, int64_t j)
{
    const float *key = at->row->keys + j * at->row->key_stride;
    if (!at->family)
        return hr_exact_sum(at->q, key, at->spec->d);
    float *rounded = new_numbers(at->spec->d);
    for (int64_t i = 0; i < at->spec->d; i++)
        rounded[i] = rounded_to(at->spec->x, key[i]);
    const float s = chain(at, at->q, rounded, 1, at->spec->d, 0.0f);
    free(rounded);
    return s;
}

/* ---- A tile ---- */

/* From the score of a key: scaled, capped, with its bias. */
static float biased(const attention *at, int64_t j, float s)
{
    const ref_attention_spec *spec = at->spec;
    const ref_attention_row *row = at->row;
    float t = spec->cap ? spec->cap * hr_tanh(s * (spec->scale / spec->cap)) : s * spec->scale;
    if (spec->alibi)
        t = t + *row->slope * (float)(int32_t)(j - row->last);
    else if (row->mask) {
        const float mask = hr_scalar_load(spec->mask, row->mask, j);
        t = t + (row->slope ? *row->slope * mask : mask);
    }
    return hr_canonical(t);
}

/* False: the query sees no key of the tile. */
static bool open_tile(const attention *at, int64_t first, tile *out)
{
    bool any = false;
    out->first = first;
    for (int i = 0; i < TILE; i++) {
        const int64_t j = first + i;
        out->exists[i] =
            j >= at->row->first && j <= at->row->last && !(at->row->absent && at->row->absent[j]);
        if (!out->exists[i])
            continue;
        out->t[i] = biased(at, j, score(at, j));
        out->exists[i] = out->t[i] != -INFINITY;
        any = any || out->exists[i];
    }
    return any;
}

/* Without regard to NaN. */
static float largest(const tile *in)
{
    float m = -INFINITY;
    for (int i = 0; i < TILE; i++)
        if (in->exists[i])
            m = larger(in->t[i], m);
    return m;
}

/* ---- States ---- */

/* The keys of `next` follow those of s. */
static void join(state *s, const state *next, int64_t n)
{
    if (!next->has_keys)
        return;
    if (!s->has_keys) {
        float *o = s->o;
        memcpy(o, next->o, (size_t)n * sizeof *o);
        *s = *next;
        s->o = o;
        return;
    }
    const float m = larger(next->m, s->m), a = hr_exp(s->m - m), c = hr_exp(next->m - m);
    s->l = fmaf(s->l, a, next->l * c);
    for (int64_t i = 0; i < n; i++)
        s->o[i] = fmaf(s->o[i], a, next->o[i] * c);
    s->m = m;
}

/* ---- Mode exact ---- */

static float tree(float sums[TILE])
{
    for (int half = TILE / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] = sums[i] + sums[i + half];
    return sums[0];
}

static void exact_tile(const attention *at, const tile *in, state *out)
{
    float p[TILE] = {0};
    out->has_keys = true;
    out->m = largest(in);
    memset(out->o, 0, (size_t)at->spec->dv * sizeof *out->o);
    for (int i = 0; i < TILE; i++) {
        if (!in->exists[i])
            continue;
        const float *v = at->row->values + (in->first + i) * at->row->value_stride;
        p[i] = hr_exp(in->t[i] - out->m);
        for (int64_t k = 0; k < at->spec->dv; k++)
            out->o[k] = fmaf(p[i], v[k], out->o[k]);
    }
    out->l = tree(p);
}

static void exact_strip(const attention *at, int64_t first, state *strip, state *one)
{
    tile keys;
    strip->has_keys = false;
    for (int b = 0; b < EXACT_TILES; b++) {
        if (!open_tile(at, first + b * TILE, &keys))
            continue;
        exact_tile(at, &keys, one);
        join(strip, one, at->spec->dv);
    }
}

/* ---- Mode tensor ---- */

float hr_exp16(float x)
{
    if (isnan(x))
        return ref_f32_from_bits(REF_NAN_F32);
    const float clamped = larger(x, -80.0f), log2e = ref_f32_from_bits(0x3FB8AA3B);
    const float t = fmaf(clamped, log2e, 12582912.0f), f = fmaf(clamped, log2e, -(t - 12582912.0f));
    float p = fmaf(ref_f32_from_bits(0x3C1D0166), f, ref_f32_from_bits(0x3D64FE24));
    p = fmaf(p, f, ref_f32_from_bits(0x3E7601BC));
    p = fmaf(p, f, ref_f32_from_bits(0x3F317096));
    p = fmaf(p, f, 1.0f);
    return ref_f32_from_bits(ref_f32_to_bits(p) + (ref_f32_to_bits(t) << 23));
}

static void tensor_tile(const attention *at, const tile *in, state *s)
{
    const ref_attention_row *row = at->row;
    const float m = s->has_keys ? larger(largest(in), s->m) : largest(in),
                a = s->has_keys ? hr_exp(s->m - m) : 1.0f;
    float p[TILE] = {0}, v[TILE], ones[TILE];
    for (int i = 0; i < TILE; i++) {
        ones[i] = 1.0f;
        if (in->exists[i])
            p[i] = rounded_to(at->spec->x, hr_exp16(in->t[i] - m));
    }
    for (int64_t k = 0; k < at->spec->dv; k++) {
        for (int i = 0; i < TILE; i++)
            v[i] = in->exists[i]
                       ? rounded_to(at->spec->x, row->values[(in->first + i) * row->value_stride + k])
                       : 0.0f;
        s->o[k] = chain(at, p, v, 1, TILE, s->o[k] * a);
    }
    s->l = chain(at, p, ones, 1, TILE, s->l * a);
    s->m = m;
    s->has_keys = true;
}

static void tensor_strip(const attention *at, int64_t first, state *strip)
{
    tile keys;
    float *o = strip->o;
    memset(o, 0, (size_t)at->spec->dv * sizeof *o);
    *strip = (state){.o = o};
    for (int b = 0; b < TENSOR_TILES; b++)
        if (open_tile(at, first + b * TILE, &keys))
            tensor_tile(at, &keys, strip);
}

/* ---- The row ---- */

static void finish(const attention *at, state *all, void *y)
{
    const int64_t n = at->spec->dv;
    if (at->row->sink) {
        state sink = {true, *at->row->sink, 1.0f, new_numbers(n)};
        join(all, &sink, n);
        free(sink.o);
    }
    for (int64_t i = 0; i < n; i++)
        hr_scalar_store(at->spec->y, y, i, all->has_keys ? hr_canonical((all->o[i] + 0.0f) / all->l) : 0.0f);
}

static void attend(const attention *at, void *y)
{
    const int64_t n = at->spec->dv, keys = (at->family ? TENSOR_TILES : EXACT_TILES) * TILE;
    state all = {.o = new_numbers(n)}, strip = {.o = new_numbers(n)}, one = {.o = new_numbers(n)};
    for (int64_t first = 0; first <= at->row->last; first += keys) {
        if (first + keys <= at->row->first)
            continue;
        if (at->family)
            tensor_strip(at, first, &strip);
        else
            exact_strip(at, first, &strip, &one);
        join(&all, &strip, n);
    }
    finish(at, &all, y);
    free(all.o);
    free(strip.o);
    free(one.o);
}

static void attend_in_mode(const ref_attention_spec *spec, const ref_attention_row *row,
                           const ref_tensor_family *family, void *y)
{
    attention at = {spec, row, family, new_numbers(spec->d)};
    hr_require(spec->d > 0 && spec->dv > 0, "a head must not be empty");
    hr_require(!spec->alibi || row->slope, "alibi needs a slope");
    for (int64_t i = 0; i < spec->d; i++)
        at.q[i] = hr_scalar_load(spec->x, row->q, i);
    attend(&at, y);
    free(at.q);
}

void hr_attention(const ref_attention_spec *spec, const ref_attention_row *row, void *y)
{
    attend_in_mode(spec, row, NULL, y);
}

void hr_attention_tensor(const ref_attention_spec *spec, const ref_attention_row *row,
                         ref_tensor_family family, void *y)
{
    attend_in_mode(spec, row, &family, y);
}
