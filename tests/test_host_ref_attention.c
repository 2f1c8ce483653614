/* Attention in the host reference: answers worked out by hand, adversarial keys, and a plain f64 model. */
#include "test_host_ref.h"

#include "support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 5000, D = 16 };
static const float inf = INFINITY;
static const ref_tensor_family families[] = {REF_TENSOR_SM75, REF_TENSOR_SM80, REF_TENSOR_SM90,
                                             REF_TENSOR_SM100, REF_TENSOR_SM120};
enum { FAMILIES = sizeof families / sizeof families[0] };

static float nan_f32(void)
{
    return ref_f32_from_bits(REF_NAN_F32);
}

/* Heads of one element: q is 1, so that keys are scores. Values have one element, too. */
typedef struct {
    int64_t first, last;
    float keys[KEYS_MAX], values[KEYS_MAX];
    ref_attention_spec spec;
    ref_attention_row row;
} scores;

static scores *new_scores(int64_t first, int64_t last)
{
    static const float one = 1.0f;
    scores *s = calloc(1, sizeof *s);
    s->spec = (ref_attention_spec){.x = QDNN_DATA_F32, .y = QDNN_DATA_F32, .d = 1, .dv = 1, .scale = 1};
    s->row = (ref_attention_row){.q = &one,
                                 .keys = s->keys,
                                 .values = s->values,
                                 .key_stride = 1,
                                 .value_stride = 1,
                                 .first = first,
                                 .last = last};
    return s;
}

static float exact_of(const scores *s)
{
    float y = -1;
    ref_attention(&s->spec, &s->row, &y);
    return y;
}

/* In mode tensor, with q and the result in f16, which holds all numbers here. */
static float tensor_of(const scores *s, ref_tensor_family family)
{
    const uint16_t one = ref_f32_to_f16(1.0f);
    ref_attention_spec spec = s->spec;
    ref_attention_row row = s->row;
    float y = -1;
    spec.x = QDNN_DATA_F16;
    row.q = &one;
    ref_attention_tensor(&spec, &row, family, &y);
    return y;
}

/* Both modes, all families. */
static void check_all(const scores *s, float expected)
{
    CHECK_EQ_F32(exact_of(s), expected);
    for (int i = 0; i < FAMILIES; i++) {
        test_push_note("family %d", i);
        CHECK_EQ_F32(tensor_of(s, families[i]), expected);
        test_pop_note();
    }
}

TEST_CASE(HostRefAttention, OneKeyIsItsValue)
{
    for (int64_t j = 0; j < 2100; j += 333) {
        scores *s = new_scores(j, j);
        s->keys[j] = -7;
        s->values[j] = 2.5f;
        check_all(s, 2.5f);
        free(s);
    }
}

TEST_CASE(HostRefAttention, NothingVisibleIsZero)
{
    scores *s = new_scores(5, 4);
    s->values[4] = s->values[5] = 9;
    check_all(s, 0.0f);
    s->row.first = 0;
    s->row.last = -1;
    check_all(s, 0.0f);
    const float sink = 3;
    s->row.sink = &sink;
    check_all(s, 0.0f);
    free(s);
}

/* Two keys with the same score, wherever tiles and strips are cut between them. */
TEST_CASE(HostRefAttention, WindowsCutTilesAndStrips)
{
    static const int64_t cuts[][2] = {{0, 1},     {62, 63},     {63, 64},     {0, 64},    {255, 256},
                                      {200, 700}, {1000, 1001}, {1023, 1024}, {10, 1030}, {63, 4900}};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        scores *s = new_scores(cuts[i][0], cuts[i][1]);
        for (int64_t j = 0; j < KEYS_MAX; j++) {
            const bool is_end = j == cuts[i][0] || j == cuts[i][1];
            s->keys[j] = is_end ? 2.0f : -inf;
            s->values[j] = is_end ? 1.0f + (float)(j == cuts[i][1]) : nan_f32();
        }
        test_push_note("%lld to %lld", (long long)cuts[i][0], (long long)cuts[i][1]);
        check_all(s, 1.5f);
        test_pop_note();
        free(s);
    }
}

/* What is not visible may be anything. */
TEST_CASE(HostRefAttention, UnseenKeysReachNothing)
{
    scores *s = new_scores(70, 140);
    for (int64_t j = 0; j < KEYS_MAX; j++) {
        const bool is_seen = j >= 70 && j <= 140;
        s->keys[j] = is_seen ? 1.0f : j % 3 == 0 ? inf : nan_f32();
        s->values[j] = is_seen ? 3.0f : j % 2 == 0 ? inf : nan_f32();
    }
    check_all(s, 3.0f);
    free(s);
}

/* Keys with a mask of -Inf do not exist: a tile of them, all of a strip, single ones. */
TEST_CASE(HostRefAttention, MaskedKeysReachNothing)
{
    scores *s = new_scores(0, 2200);
    float *mask = calloc(KEYS_MAX, sizeof *mask);
    for (int64_t j = 0; j < KEYS_MAX; j++) {
        const bool is_masked = j / 64 == 2 || j / 1024 == 1 || j % 7 == 0;
        mask[j] = is_masked ? -inf : 0.0f;
        s->keys[j] = is_masked ? 1e30f : 0.5f;
        s->values[j] = is_masked ? nan_f32() : -4.0f;
    }
    s->spec.mask = QDNN_DATA_F32;
    s->row.mask = mask;
    CHECK_EQ_F32(exact_of(s), -4.0f);
    bool *absent = calloc(KEYS_MAX, 1);
    for (int64_t j = 0; j < KEYS_MAX; j++)
        absent[j] = mask[j] < 0.0f;
    s->row.mask = NULL;
    s->row.absent = absent;
    check_all(s, -4.0f);
    free(absent);
    free(mask);
    free(s);
}

TEST_CASE(HostRefAttention, NanAndInfinityAreSeen)
{
    static const int64_t places[] = {0, 63, 64, 1023, 1024, 1500};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++) {
            scores *s = new_scores(0, 1500);
            for (int64_t j = 0; j <= 1500; j++)
                s->values[j] = 1;
            if (k == 2)
                s->values[places[i]] = inf;
            else
                s->keys[places[i]] = k == 1 ? inf : nan_f32();
            test_push_note("key %lld, kind %d", (long long)places[i], k);
            check_all(s, k == 2 ? inf : nan_f32());
            test_pop_note();
            free(s);
        }
}

/* A weight of 0 is not a missing key: 0 * Inf is NaN. */
TEST_CASE(HostRefAttention, UnderflowIsNotAbsence)
{
    scores *s = new_scores(0, 100);
    for (int64_t j = 0; j <= 100; j++) {
        s->keys[j] = j == 50 ? 200.0f : -100.0f;
        s->values[j] = j == 50 ? 6.0f : -1000.0f;
    }
    check_all(s, 6.0f);
    s->values[7] = inf;
    CHECK(isnan(exact_of(s)));
    for (int i = 0; i < FAMILIES; i++)
        CHECK(isnan(tensor_of(s, families[i])));
    free(s);
}

TEST_CASE(HostRefAttention, SinksJoinLast)
{
    static const struct {
        float sink, y;
    } cases[] = {{2, 4}, {-INFINITY, 8}, {200, 0}, {-200, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scores *s = new_scores(3, 3);
        s->keys[3] = 2;
        s->values[3] = 8;
        s->row.sink = &cases[i].sink;
        check_all(s, cases[i].y);
        free(s);
    }
}

TEST_CASE(HostRefAttention, CapAndSlope)
{
    scores *s = new_scores(0, 1);
    const float slope = 0.5f;
    s->keys[0] = 4, s->keys[1] = 1;
    s->values[0] = 1, s->values[1] = 0;
    s->spec.cap = 2; /* t = 2 tanh(2), 2 tanh(0.5) */
    float t = 2 * ref_tanh(2) - 2 * ref_tanh(0.5f), p = ref_exp(2 * ref_tanh(0.5f) - 2 * ref_tanh(2));
    CHECK(t > 0);
    CHECK_EQ_F32(exact_of(s), 1.0f / (1.0f + p));
    s->spec.cap = 0;
    s->spec.alibi = true;
    s->row.slope = &slope; /* t = 4 - 0.5, 1 */
    CHECK_EQ_F32(exact_of(s), 1.0f / (1.0f + ref_exp(-2.5f)));
    free(s);
}

/* Keys whose join differs from the sum of all in one go: the strip's state is joined, not its tiles. */
TEST_CASE(HostRefAttention, StripsAreJoinedAsStates)
{
    scores *s = new_scores(0, 1024 + 64);
    for (int64_t j = 0; j <= s->row.last; j++) {
        s->keys[j] = j < 1024 ? -0.3f : j < 1088 ? 0.4f : 0.0f;
        s->values[j] = j < 1024 ? 1.0f : j < 1088 ? 3.0f : -2.0f;
    }
    /* the first strip: 1024 equal keys; the second: 64 of one tile, and one of the next */
    const float c = ref_exp(0.0f - 0.4f), l2 = fmaf(64.0f, 1.0f, 1.0f * c),
                o2 = fmaf(192.0f, 1.0f, -2.0f * c);
    const float a = ref_exp(-0.3f - 0.4f), l = fmaf(1024.0f, a, l2 * 1.0f), o = fmaf(1024.0f, a, o2 * 1.0f);
    CHECK_EQ_F32(exact_of(s), o / l);
    free(s);
}

/* ---- Against f64 ---- */

static float random_f32(uint64_t *state, float range)
{
    return ((float)(random_next(state) >> 40) * 0x1p-23f - 1.0f) * range;
}

/* The largest error, relative to the sum of |p v| / l. */
static double error_of(const float *q, const float *keys, const float *values, int64_t n, float scale,
                       const float *y)
{
    double *p = malloc((size_t)n * sizeof *p), m = -1e300, l = 0, worst = 0;
    for (int64_t j = 0; j < n; j++) {
        p[j] = 0;
        for (int i = 0; i < D; i++)
            p[j] += (double)q[i] * keys[j * D + i];
        p[j] *= scale;
        m = fmax(m, p[j]);
    }
    for (int64_t j = 0; j < n; j++)
        l += p[j] = exp(p[j] - m);
    for (int i = 0; i < D; i++) {
        double o = 0, size = 0;
        for (int64_t j = 0; j < n; j++) {
            o += p[j] * values[j * D + i];
            size += fabs(p[j] * values[j * D + i]);
        }
        worst = fmax(worst, fabs(y[i] - o / l) / (size / l));
    }
    free(p);
    return worst;
}

static void check_against_f64(int64_t n, uint64_t seed)
{
    float *keys = malloc((size_t)n * D * sizeof *keys), *values = malloc((size_t)n * D * sizeof *values),
          q[D], y[D];
    uint16_t half[D];
    for (int i = 0; i < D; i++) {
        half[i] = ref_f32_to_f16(random_f32(&seed, 2));
        q[i] = ref_f16_to_f32(half[i]);
    }
    for (int64_t i = 0; i < n * D; i++) {
        keys[i] = ref_f16_to_f32(ref_f32_to_f16(random_f32(&seed, 2)));
        values[i] = ref_f16_to_f32(ref_f32_to_f16(random_f32(&seed, 1)));
    }
    const ref_attention_spec spec = {.x = QDNN_DATA_F16, .y = QDNN_DATA_F32, .d = D, .dv = D, .scale = 0.25f};
    const ref_attention_row row = {
        .q = half, .keys = keys, .values = values, .key_stride = D, .value_stride = D, .last = n - 1};
    test_push_note("%lld keys", (long long)n);
    ref_attention(&spec, &row, y);
    CHECK(error_of(q, keys, values, n, 0.25f, y) < 1e-6);
    for (int i = 0; i < FAMILIES; i++) {
        ref_attention_tensor(&spec, &row, families[i], y);
        CHECK(error_of(q, keys, values, n, 0.25f, y) < 2.5e-4);
    }
    test_pop_note();
    free(keys);
    free(values);
}

TEST_CASE(HostRefAttention, AgreesWithF64)
{
    static const int64_t counts[] = {1, 2, 63, 64, 65, 255, 257, 1023, 1025, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check_against_f64(counts[i], 77 + i);
}

/* ---- exp16 ---- */

TEST_CASE(HostRefAttention, Exp16)
{
    double worst = 0;
    for (uint32_t i = 0; i < 1u << 20; i++) {
        const float x = -80.0f * (float)i * 0x1p-20f;
        worst = fmax(worst, fabs(ref_exp16(x) / exp(x) - 1));
    }
    CHECK(worst < 1e-5);
    CHECK_EQ_F32(ref_exp16(0.0f), 1.0f);
    CHECK_EQ_F32(ref_exp16(-0.0f), 1.0f);
    CHECK_EQ_F32(ref_exp16(-inf), ref_exp16(-80.0f));
    CHECK_EQ_F32(ref_exp16(nan_f32()), nan_f32());
}
