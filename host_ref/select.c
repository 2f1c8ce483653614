/* Softmax, the largest of a row, routing, combining, sampling and copies (docs/numerics.md, "Selection and copies"). All but
 * copies work on one row. */
#include "host_ref/internal.h"

#include <stdlib.h>
#include <string.h>

static float *new_row(int64_t n)
{
    float *row = calloc((size_t)n + 1, sizeof *row);
    hr_require(row != NULL, "out of memory for %lld numbers", (long long)n);
    return row;
}

static float *load_row(qdnnDataType_t type, const void *x, int64_t n)
{
    float *row = new_row(n);
    for (int64_t i = 0; i < n; i++)
        row[i] = hr_scalar_load(type, x, i);
    return row;
}

/* ---- Order: the larger first, equal ones by index, NaN last ---- */

typedef struct {
    float value;
    int64_t index;
} entry;

static int compare(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value) ? 1 : -1;
    if (a->value > b->value || a->value < b->value)
        return a->value > b->value ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* All of them, in order. The caller frees them. */
static entry *sorted(const float *x, int64_t n)
{
    entry *all = calloc((size_t)n + 1, sizeof *all);
    hr_require(all != NULL, "out of memory for %lld numbers", (long long)n);
    for (int64_t i = 0; i < n; i++)
        all[i] = (entry){x[i], i};
    qsort(all, (size_t)n, sizeof *all, compare);
    return all;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void hr_top_k(qdnnDataType_t type, const void *x, int64_t n, int64_t k, void *best, int32_t *index)
{
    hr_require(k >= 1 && k <= least(n, REF_TOP_MAX), "k is %lld; it must be 1 to %lld", (long long)k,
               (long long)least(n, REF_TOP_MAX));
    float *row = load_row(type, x, n);
    entry *all = sorted(row, n);
    for (int64_t i = 0; i < k; i++) {
        hr_scalar_store(type, best, i, all[i].value);
        index[i] = (int32_t)all[i].index;
    }
    free(all);
    free(row);
}

/* ---- Softmax ---- */

/* The largest, without regard to NaN; -Inf for none. */
static float largest(const float *t, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = larger(t[i], m);
    return m;
}

static bool has_nan(const float *t, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(t[i]))
            return true;
    return false;
}

/* t becomes its softmax, in f32. `sink` may be null. */
static void softmax(float *t, int64_t n, const float *sink)
{
    float m = largest(t, n), none = -INFINITY, z = sink ? *sink : none;
    bool is_nan = has_nan(t, n) || isnan(z);
    m = larger(z, m);
    if (is_nan || m == INFINITY || m == -INFINITY) {
        for (int64_t i = 0; i < n; i++)
            t[i] = is_nan || m > 0.0f ? ref_f32_from_bits(REF_NAN_F32) : 0.0f;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        t[i] = hr_exp(t[i] - m);
    float sum = hr_long_sum(t, NULL, n);
    if (sink)
        sum = sum + hr_exp(z - m);
    for (int64_t i = 0; i < n; i++)
        t[i] = t[i] / sum;
}

void hr_softmax(const ref_softmax_spec *spec, int64_t n, const void *x, const void *mask, const float *slope,
                const float *sink, void *y)
{
    float *t = load_row(spec->x, x, n);
    for (int64_t i = 0; i < n; i++) {
        t[i] = t[i] * spec->scale;
        if (mask) {
            float term = hr_scalar_load(spec->mask, mask, i);
            t[i] = t[i] + (slope ? *slope * term : term);
        }
    }
    softmax(t, n, sink);
    for (int64_t i = 0; i < n; i++)
        hr_scalar_store(spec->y, y, i, t[i]);
    free(t);
}

/* ---- Routing ---- */

static float group_score(const ref_route_spec *spec, const float *selection, int64_t size)
{
    entry *all = sorted(selection, size);
    float score = all[0].value;
    if (spec->group_score == QDNN_GROUP_SCORE_TWO_LARGEST && size > 1)
        score = score + all[1].value;
    free(all);
    return score;
}

/* The experts that may be chosen: those of the best groups. */
static void choose_groups(const ref_route_spec *spec, const float *selection, bool *is_in)
{
    int64_t size = spec->experts / spec->groups;
    float *scores = new_row(spec->groups);
    for (int64_t g = 0; g < spec->groups; g++)
        scores[g] = group_score(spec, selection + g * size, size);
    entry *all = sorted(scores, spec->groups);
    for (int64_t i = 0; i < spec->experts; i++)
        is_in[i] = false;
    for (int64_t i = 0; i < spec->top_groups; i++)
        for (int64_t e = 0; e < size; e++)
            is_in[all[i].index * size + e] = true;
    free(all);
    free(scores);
}

static void weigh(const ref_route_spec *spec, const float *scores, const int32_t *expert, float *weight)
{
    float sum = 0.0f;
    for (int64_t j = 0; j < spec->slots; j++)
        sum = j == 0 ? scores[expert[j]] : sum + scores[expert[j]];
    for (int64_t j = 0; j < spec->slots; j++) {
        float p = scores[expert[j]];
        if (spec->renormalize)
            p = p / (sum + spec->epsilon);
        weight[j] = hr_canonical(p * spec->factor);
    }
}

static void check_route(const ref_route_spec *spec)
{
    hr_require(spec->groups >= 1 && spec->experts % spec->groups == 0 && spec->top_groups >= 1 &&
                   spec->top_groups <= spec->groups,
               "groups is %lld; it must divide the %lld experts, and %lld of them cannot be chosen",
               (long long)spec->groups, (long long)spec->experts, (long long)spec->top_groups);
    hr_require(spec->slots >= 1 && spec->slots <= spec->experts / spec->groups * spec->top_groups,
               "slots is %lld; the chosen groups have %lld experts", (long long)spec->slots,
               (long long)(spec->experts / spec->groups * spec->top_groups));
}

void hr_route(const ref_route_spec *spec, const void *logits, const float *bias, int32_t *expert,
              float *weight)
{
    check_route(spec);
    const int64_t n = spec->experts;
    float *scores = load_row(spec->logits, logits, n), *selection = new_row(n);
    if (spec->scores == QDNN_SCORES_SIGMOID)
        for (int64_t i = 0; i < n; i++)
            scores[i] = hr_sigmoid(scores[i]);
    else
        softmax(scores, n, NULL);
    for (int64_t i = 0; i < n; i++)
        selection[i] = bias ? scores[i] + bias[i] : scores[i];
    bool *is_in = calloc((size_t)n, sizeof *is_in);
    hr_require(is_in != NULL, "out of memory for %lld experts", (long long)n);
    choose_groups(spec, selection, is_in);
    entry *all = sorted(selection, n);
    int64_t slot = 0;
    for (int64_t i = 0; i < n && slot < spec->slots; i++)
        if (is_in[all[i].index])
            expert[slot++] = (int32_t)all[i].index;
    weigh(spec, scores, expert, weight);
    free(all);
    free(is_in);
    free(selection);
    free(scores);
}

void hr_combine(const ref_combine_spec *spec, int64_t n, const void *x, const float *weight,
                const void *residual, void *y)
{
    hr_require(spec->slots >= 1, "slots is %lld; it must be at least 1", (long long)spec->slots);
    for (int64_t i = 0; i < n; i++) {
        float sum = weight[0] * hr_scalar_load(spec->x, x, i);
        for (int64_t j = 1; j < spec->slots; j++)
            sum = sum + weight[j] * hr_scalar_load(spec->x, x, j * n + i);
        if (residual)
            sum = sum + hr_scalar_load(spec->y, residual, i);
        hr_scalar_store(spec->y, y, i, sum);
    }
}

/* ---- Sampling ---- */

void ref_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1,
                            (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

static float uniform(uint64_t seed, uint64_t step)
{
    const uint32_t counter[4] = {(uint32_t)step, (uint32_t)(step >> 32), 0, 0};
    uint32_t word[4];
    ref_philox(seed, counter, word);
    return (float)(word[0] >> 8) * 0x1p-24f;
}

static float penalized(const ref_sampling *s, float l, int32_t count)
{
    if (count <= 0)
        return l;
    l = l > 0.0f ? l / s->repetition : l * s->repetition;
    l = l - (float)count * s->frequency;
    return l - s->presence;
}

/* exp(t), and +0 for a NaN. */
static float probability(float l, float m, float temperature)
{
    float p = hr_exp((l - m) / temperature);
    return isnan(p) ? 0.0f : p;
}

/* From the `count` largest, in order. */
static int32_t sample_sorted(const ref_sampling *s, const entry *all, int64_t count, float u)
{
    float p[REF_TOP_MAX], sums[REF_TOP_MAX];
    for (int64_t i = 0; i < count; i++) {
        p[i] = probability(all[i].value, all[0].value, s->temperature);
        sums[i] = i == 0 ? p[i] : sums[i - 1] + p[i];
    }
    int64_t kept = count;
    for (int64_t i = count - 1; i >= 0 && s->top_p < 1.0f; i--)
        if (sums[i] >= s->top_p * sums[count - 1])
            kept = i + 1;
    for (int64_t i = kept - 1; i >= 1 && s->min_p > 0.0f; i--)
        if (!(p[i] >= s->min_p))
            kept = i;
    float target = u * sums[kept - 1];
    for (int64_t i = 0; i < kept; i++)
        if (sums[i] > target)
            return (int32_t)all[i].index;
    hr_require(false, "no running sum is above u times the last one");
    return 0;
}

/* From all, by index. */
static int32_t sample_all(const ref_sampling *s, const float *l, int64_t n, float m, float u)
{
    float *p = new_row(n), total = 0.0f, before = 0.0f, next = 0.0f;
    for (int64_t i = 0; i < n; i++)
        p[i] = probability(l[i], m, s->temperature);
    for (int64_t i = 0; i < n; i += REF_SAMPLE_SEGMENT)
        total = total + hr_exact_sum(p + i, NULL, least(REF_SAMPLE_SEGMENT, n - i));
    float target = u * total;
    int64_t first = 0;
    while (next = before + hr_exact_sum(p + first, NULL, least(REF_SAMPLE_SEGMENT, n - first)),
           !(next > target)) {
        before = next;
        first += REF_SAMPLE_SEGMENT;
    }
    int64_t end = first + least(REF_SAMPLE_SEGMENT, n - first), found = -1;
    for (int64_t i = first; i < end && found < 0; i++) {
        before = before + p[i];
        if (before > target)
            found = i;
    }
    for (int64_t i = end - 1; i >= first && found < 0; i--)
        if (p[i] > 0.0f)
            found = i;
    free(p);
    return (int32_t)found;
}

static int64_t first_of(const float *l, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 1; i < n; i++)
        if (l[i] > l[found] || (isnan(l[found]) && !isnan(l[i])))
            found = i;
    return found;
}

static int32_t sample(const ref_sampling *s, const float *l, int64_t n, float u)
{
    const int64_t first = first_of(l, n);
    const int64_t count = least(s->top_k > 0 ? s->top_k : REF_TOP_MAX, least(n, REF_TOP_MAX));
    if (!(s->temperature > 0.0f))
        return (int32_t)first;
    if (!isfinite(l[first]))
        return 0;
    if (!(s->top_k > 0 || s->top_p < 1.0f || s->min_p > 0.0f))
        return sample_all(s, l, n, l[first], u);
    entry *all = sorted(l, n);
    int32_t found = sample_sorted(s, all, count, u);
    free(all);
    return found;
}

int32_t hr_sample(const ref_sampling *s, qdnnDataType_t type, const void *logits, int64_t n,
                  const int32_t *counts, uint64_t seed, uint64_t step)
{
    hr_require(n >= 1, "n is %lld; there must be a token to choose", (long long)n);
    float *l = load_row(type, logits, n);
    for (int64_t i = 0; i < n && counts; i++)
        l[i] = penalized(s, l[i], counts[i]);
    int32_t found = sample(s, l, n, uniform(seed, step));
    free(l);
    return found;
}

/* ---- Copies ---- */

static bool is_fp8(qdnnDataType_t type)
{
    return type == QDNN_DATA_F8E4M3 || type == QDNN_DATA_F8E5M2;
}

static size_t element_size(qdnnDataType_t type)
{
    switch (type) {
    case QDNN_DATA_F8E4M3:
    case QDNN_DATA_F8E5M2:
        return 1;
    case QDNN_DATA_U16:
    case QDNN_DATA_I16:
        return 2;
    case QDNN_DATA_U64:
    case QDNN_DATA_I64:
        return 8;
    default:
        return ref_scalar_size(type);
    }
}

void hr_convert(qdnnDataType_t from, const void *x, int64_t x_index, qdnnDataType_t to, void *y,
                int64_t y_index)
{
    if (from == to) {
        const size_t size = element_size(from);
        memcpy((char *)y + (size_t)y_index * size, (const char *)x + (size_t)x_index * size, size);
        return;
    }
    float value = hr_input_load(from, x, x_index);
    if (is_fp8(to))
        ((uint8_t *)y)[y_index] =
            (uint8_t)hr_f32_to_minifloat(to == QDNN_DATA_F8E4M3 ? REF_E4M3 : REF_E5M2, value);
    else
        hr_scalar_store(to, y, y_index, value);
}

void hr_copy(const ref_copy_spec *spec, const void *x, void *y)
{
    int64_t at[REF_COPY_DIMS] = {0}, count = 1;
    for (int d = 0; d < spec->rank; d++)
        count *= spec->dims[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t left = i, x_at = 0, y_at = 0;
        for (int d = spec->rank - 1; d >= 0; d--) {
            at[d] = left % spec->dims[d];
            left /= spec->dims[d];
            x_at += at[d] * spec->x_strides[d];
            y_at += at[d] * spec->y_strides[d];
        }
        hr_convert(spec->x, x, x_at, spec->y, y, y_at);
    }
}

static bool has_nan_code(qdnnDataType_t type)
{
    return is_fp8(type) || type == QDNN_DATA_F32 || type == QDNN_DATA_F16 || type == QDNN_DATA_BF16 ||
           type == QDNN_DATA_F64;
}

/* Element i of an array becomes NaN, or 0. */
static void store_missing(qdnnDataType_t type, void *y, int64_t i)
{
    const float nan = ref_f32_from_bits(REF_NAN_F32);
    if (!has_nan_code(type))
        memset((char *)y + (size_t)i * element_size(type), 0, element_size(type));
    else if (type == QDNN_DATA_F32)
        hr_scalar_store(type, y, i, nan);
    else
        hr_convert(QDNN_DATA_F32, &nan, 0, type, y, i);
}

static bool is_in_table(const ref_rows_spec *spec, int64_t row)
{
    return row >= 0 && row < spec->table_rows;
}

void hr_gather(const ref_rows_spec *spec, int64_t rows, const void *table, const int64_t *index, void *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < spec->columns; k++)
            if (is_in_table(spec, index[i]))
                hr_convert(spec->x, table, index[i] * spec->x_stride + k, spec->y, y, i * spec->y_stride + k);
            else
                store_missing(spec->y, y, i * spec->y_stride + k);
}

void hr_scatter(const ref_rows_spec *spec, int64_t rows, const void *x, const int64_t *index, void *table)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < spec->columns && is_in_table(spec, index[i]); k++)
            hr_convert(spec->x, x, i * spec->x_stride + k, spec->y, table, index[i] * spec->y_stride + k);
}
