/* Softmax, selection and copies in the host reference: answers worked out by hand, plain sorts and an f64 model. */
#include "test_host_ref.h"

#include "support/random.h"

#include <stdlib.h>
#include <string.h>

static const float inf = INFINITY;

static float nan_f32(void)
{
    return ref_f32_from_bits(REF_NAN_F32);
}

static void check_floats(const float *actual, const float *expected, int n)
{
    for (int i = 0; i < n; i++) {
        test_push_note("element %d", i);
        CHECK_EQ_F32(actual[i], expected[i]);
        test_pop_note();
    }
}

static void check_places(const int32_t *actual, const int32_t *expected, int n)
{
    for (int i = 0; i < n; i++) {
        test_push_note("slot %d", i);
        CHECK_EQ_I64(actual[i], expected[i]);
        test_pop_note();
    }
}

/* In [-range, range]. */
static float random_f32(uint64_t *state, float range)
{
    return ((float)(random_next(state) >> 40) * 0x1p-23f - 1.0f) * range;
}

/* ---- Softmax ---- */

static const ref_softmax_spec plain_softmax = {QDNN_DATA_F32, QDNN_DATA_F32, 1.0f, QDNN_DATA_F32};

TEST_CASE(HostRefSelect, SoftmaxByHand)
{
    static const struct {
        float x[2];
        uint32_t y[2];
    } cases[] = {{{0, 0.693147182f}, {0x3EAAAAAB, 0x3F2AAAAB}},
                 {{5, 5}, {0x3F000000, 0x3F000000}},
                 {{-INFINITY, -INFINITY}, {0, 0}},
                 {{-INFINITY, 3}, {0, 0x3F800000}},
                 {{1, NAN}, {REF_NAN_F32, REF_NAN_F32}},
                 {{1, INFINITY}, {REF_NAN_F32, REF_NAN_F32}},
                 {{-1e30f, 1e30f}, {0, 0x3F800000}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float y[2];
        ref_softmax(&plain_softmax, 2, cases[i].x, NULL, NULL, NULL, y);
        test_push_note("case %zu", i);
        for (int j = 0; j < 2; j++)
            CHECK_EQ_U32(ref_f32_to_bits(y[j]), cases[i].y[j]);
        test_pop_note();
    }
}

TEST_CASE(HostRefSelect, SoftmaxOfScaleMaskAndSink)
{
    ref_softmax_spec spec = plain_softmax;
    spec.scale = 0.5f;
    const float x[3] = {2, 8, 4}, mask[3] = {0, -INFINITY, -1}, slope = 1, sink = 1;
    const float third = ref_f32_from_bits(0x3EAAAAAB), half[3] = {0.5f, 0, 0.5f}, none[3] = {0, 0, 0};
    const float thirds[3] = {third, 0, third};
    float y[3];
    ref_softmax(&spec, 3, x, mask, &slope, NULL, y); /* t = 1, -Inf, 1 */
    check_floats(y, half, 3);
    ref_softmax(&spec, 3, x, mask, &slope, &sink, y);
    check_floats(y, thirds, 3);
    const float all[3] = {-INFINITY, -INFINITY, -INFINITY}, low = -INFINITY;
    ref_softmax(&spec, 3, x, all, NULL, &sink, y);
    check_floats(y, none, 3);
    ref_softmax(&spec, 3, x, all, NULL, &low, y);
    check_floats(y, none, 3);
    const float nans[3] = {nan_f32(), nan_f32(), nan_f32()};
    ref_softmax(&spec, 3, x, mask, &slope, &inf, y);
    check_floats(y, nans, 3);
}

TEST_CASE(HostRefSelect, SoftmaxIsNearTheExactOne)
{
    enum { N = 9000 };
    uint64_t state = 7;
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    double sum = 0, worst = 0, largest = -1e300;
    for (int i = 0; i < N; i++)
        x[i] = random_f32(&state, 20);
    for (int i = 0; i < N; i++)
        largest = x[i] > largest ? x[i] : largest;
    for (int i = 0; i < N; i++)
        sum += exp(x[i] - largest);
    ref_softmax(&plain_softmax, N, x, NULL, NULL, NULL, y);
    for (int i = 0; i < N; i++) {
        double exact = exp(x[i] - largest) / sum, error = fabs(y[i] - exact) / exact;
        worst = error > worst ? error : worst;
    }
    CHECK(worst < 4e-6); /* x - m is rounded, to 2^-20 of the exponent at worst */
    free(x);
    free(y);
}

/* ---- Top-k ---- */

TEST_CASE(HostRefSelect, TopByHand)
{
    const float x[8] = {-0.0f, 3, NAN, 3, 0.0f, -INFINITY, INFINITY, NAN};
    const float values[8] = {INFINITY, 3, 3, -0.0f, 0.0f, -INFINITY, nan_f32(), nan_f32()};
    const int32_t places[8] = {6, 1, 3, 0, 4, 5, 2, 7};
    float best[8];
    int32_t place[8];
    for (int k = 1; k <= 8; k++) {
        ref_top_k(QDNN_DATA_F32, x, 8, k, best, place);
        check_floats(best, values, k);
        check_places(place, places, k);
    }
}

/* Each is the first of those that are left. */
TEST_CASE(HostRefSelect, TopIsAPlainSearch)
{
    enum { N = 300 };
    uint64_t state = 11;
    float x[N], best[N];
    int32_t place[N];
    bool taken[N] = {false};
    for (int i = 0; i < N; i++)
        x[i] = i % 17 == 3 ? NAN : floorf(random_f32(&state, 9));
    ref_top_k(QDNN_DATA_F32, x, N, N, best, place);
    for (int k = 0; k < N; k++) {
        int found = -1;
        for (int i = 0; i < N; i++)
            if (!taken[i] && (found < 0 || x[i] > x[found] || (isnan(x[found]) && !isnan(x[i]))))
                found = i;
        taken[found] = true;
        CHECK_EQ_I64(place[k], found);
    }
}

/* ---- Routing ---- */

static ref_route_spec plain_route(int64_t experts, int64_t slots)
{
    return (ref_route_spec){.logits = QDNN_DATA_F32,
                            .experts = experts,
                            .slots = slots,
                            .groups = 1,
                            .top_groups = 1,
                            .factor = 1};
}

TEST_CASE(HostRefSelect, RouteBySoftmax)
{
    ref_route_spec spec = plain_route(4, 2);
    const float logits[4] = {0, 0.693147182f, 0, -INFINITY}; /* scores 1/4, 1/2, 1/4, 0 */
    const int32_t places[2] = {1, 0};
    const float weights[2] = {0.5f, 0.25f};
    int32_t expert[2];
    float weight[2];
    ref_route(&spec, logits, NULL, expert, weight);
    check_places(expert, places, 2);
    check_floats(weight, weights, 2);
    const float bias[4] = {0, 0, 0, 1}; /* selection 1/4, 1/2, 1/4, 1: the weight is without it */
    const int32_t biased[2] = {3, 1};
    const float unbiased[2] = {0, 2};
    spec.renormalize = true;
    spec.factor = 2;
    ref_route(&spec, logits, bias, expert, weight);
    check_places(expert, biased, 2);
    check_floats(weight, unbiased, 2);
    spec.epsilon = 0.5f;
    const float damped[2] = {0, 1};
    ref_route(&spec, logits, bias, expert, weight);
    check_floats(weight, damped, 2);
}

TEST_CASE(HostRefSelect, RouteByGroups)
{
    ref_route_spec spec = plain_route(6, 2);
    spec.scores = QDNN_SCORES_SIGMOID;
    spec.groups = 3;
    const float logits[6] = {3, -9, 2, 2, -1, -1};
    const int32_t of_largest[2] = {0, 1}, of_two[2] = {2, 3}, of_both[2] = {0, 2};
    int32_t expert[2];
    float weight[2];
    ref_route(&spec, logits, NULL, expert, weight);
    check_places(expert, of_largest, 2);
    CHECK_EQ_F32(weight[0], ref_sigmoid(3));
    spec.group_score = QDNN_GROUP_SCORE_TWO_LARGEST;
    ref_route(&spec, logits, NULL, expert, weight);
    check_places(expert, of_two, 2);
    spec.top_groups = 2;
    ref_route(&spec, logits, NULL, expert, weight);
    check_places(expert, of_both, 2);
    const float nans[6] = {NAN, 1, NAN, NAN, 0, 0}; /* a NaN in the sum, but not in the largest */
    ref_route(&spec, nans, NULL, expert, weight);
    CHECK_EQ_I64(expert[0], 1); /* groups 2 and 0 stay: the sums of 0 and 1 are NaN, and 0 comes first */
    CHECK_EQ_I64(expert[1], 4);
    CHECK_EQ_F32(weight[1], 0.5f);
}

/* Whether expert i comes before expert k, by a selection. */
static bool comes_first(const float *selection, int i, int k)
{
    if (isnan(selection[i]) || isnan(selection[k]))
        return isnan(selection[i]) && isnan(selection[k]) ? i < k : !isnan(selection[i]);
    return selection[i] > selection[k] || (selection[i] == selection[k] && i < k);
}

/* Groups and experts by counting those that come before: ties, NaN and infinities among the biases. */
TEST_CASE(HostRefSelect, RouteIsAPlainCount)
{
    enum { E = 24, GROUPS = 6, SIZE = E / GROUPS, KEPT = 3, SLOTS = 5, TRIALS = 300 };
    static const float biases[] = {0, 0, 0.25f, -0.25f, NAN, INFINITY, -INFINITY, 0.25f};
    uint64_t state = 13;
    for (int trial = 0; trial < TRIALS; trial++) {
        ref_route_spec spec = plain_route(E, SLOTS);
        float logits[E], bias[E], selection[E], scores[GROUPS], weight[SLOTS];
        int32_t expert[SLOTS];
        spec.scores = QDNN_SCORES_SIGMOID;
        spec.groups = GROUPS;
        spec.top_groups = KEPT;
        spec.group_score = trial % 2 ? QDNN_GROUP_SCORE_TWO_LARGEST : QDNN_GROUP_SCORE_LARGEST;
        for (int i = 0; i < E; i++) {
            logits[i] = floorf(random_f32(&state, 2));
            bias[i] = biases[random_next(&state) % (trial % 4 < 2 ? 4 : 8)];
            selection[i] = ref_sigmoid(logits[i]) + bias[i];
        }
        for (int g = 0; g < GROUPS; g++) {
            int order[SIZE];
            for (int i = 0; i < SIZE; i++) {
                int before = 0;
                for (int k = 0; k < SIZE; k++)
                    before += comes_first(selection, g * SIZE + k, g * SIZE + i) && k != i;
                order[before] = g * SIZE + i;
            }
            scores[g] = trial % 2 ? selection[order[0]] + selection[order[1]] : selection[order[0]];
        }
        ref_route(&spec, logits, bias, expert, weight);
        test_push_note("trial %d", trial);
        for (int i = 0; i < E; i++) {
            int groups = 0, before = 0;
            for (int g = 0; g < GROUPS; g++)
                groups += g != i / SIZE && comes_first(scores, g, i / SIZE);
            for (int k = 0; k < E && groups < KEPT; k++) {
                int of_k = 0;
                for (int g = 0; g < GROUPS; g++)
                    of_k += g != k / SIZE && comes_first(scores, g, k / SIZE);
                before += of_k < KEPT && k != i && comes_first(selection, k, i);
            }
            if (groups < KEPT && before < SLOTS) {
                CHECK_EQ_I64(expert[before], i);
                CHECK_EQ_F32(weight[before], ref_sigmoid(logits[i]));
            }
        }
        test_pop_note();
    }
}

TEST_CASE(HostRefSelect, Combine)
{
    const ref_combine_spec spec = {QDNN_DATA_F32, QDNN_DATA_F16, 3};
    const float x[6] = {1, 2, 0x1p24f, 4, -0x1p24f, 6}, weight[3] = {1, 1, 1};
    const uint16_t residual[2] = {0x3C00, 0xBC00}; /* 1, -1 */
    uint16_t y[2];
    ref_combine(&spec, 2, x, weight, NULL, y);
    CHECK_EQ_U32(y[0], 0x0000); /* 1 + 2^24 is 2^24: in the order of the slots */
    CHECK_EQ_U32(y[1], 0x4A00);
    ref_combine(&spec, 2, x, weight, residual, y);
    CHECK_EQ_U32(y[0], 0x3C00);
    CHECK_EQ_U32(y[1], 0x4980);
}

/* ---- Sampling ---- */

static const ref_sampling usual = {.temperature = 1, .top_p = 1, .repetition = 1};

/* The step at which u lies in [low, high), for seed 0. */
static uint64_t step_of(float low, float high)
{
    for (uint64_t step = 0;; step++) {
        const uint32_t counter[4] = {(uint32_t)step, 0, 0, 0};
        uint32_t word[4];
        ref_philox(0, counter, word);
        float u = (float)(word[0] >> 8) * 0x1p-24f;
        if (u >= low && u < high)
            return step;
    }
}

TEST_CASE(HostRefSelect, Philox)
{
    static const struct {
        uint64_t key;
        uint32_t counter[4], out[4];
    } cases[] = {{0, {0, 0, 0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
                 {UINT64_MAX, {~0u, ~0u, ~0u, ~0u}, {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
                 {0x299F31D0A4093822,
                  {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
                  {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}};
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        ref_philox(cases[i].key, cases[i].counter, out);
        CHECK_EQ_MEM(out, cases[i].out, sizeof out);
    }
}

static int32_t sample(const ref_sampling *s, const float *logits, int64_t n, float low, float high)
{
    return ref_sample(s, QDNN_DATA_F32, logits, n, NULL, 0, step_of(low, high));
}

TEST_CASE(HostRefSelect, SampleByHand)
{
    const float l[4] = {0, 1.38629436f, 0.693147182f, 0}; /* weights 1/8, 1/2, 1/4, 1/8 */
    ref_sampling s = usual;
    /* by index */
    CHECK_EQ_I64(sample(&s, l, 4, 0, 0.12f), 0);
    CHECK_EQ_I64(sample(&s, l, 4, 0.13f, 0.62f), 1);
    CHECK_EQ_I64(sample(&s, l, 4, 0.63f, 0.87f), 2);
    CHECK_EQ_I64(sample(&s, l, 4, 0.88f, 1), 3);
    /* in order: 1 2 0 3 */
    s.top_k = 4;
    CHECK_EQ_I64(sample(&s, l, 4, 0, 0.49f), 1);
    CHECK_EQ_I64(sample(&s, l, 4, 0.51f, 0.74f), 2);
    CHECK_EQ_I64(sample(&s, l, 4, 0.76f, 0.87f), 0);
    CHECK_EQ_I64(sample(&s, l, 4, 0.88f, 1), 3);
    s.top_k = 2; /* 2/3, 1/3 */
    CHECK_EQ_I64(sample(&s, l, 4, 0.65f, 0.66f), 1);
    CHECK_EQ_I64(sample(&s, l, 4, 0.67f, 1), 2);
    s.top_k = 0;
    s.top_p = 0.499f; /* the first alone reaches it */
    CHECK_EQ_I64(sample(&s, l, 4, 0.9f, 1), 1);
    s.top_p = 0.51f;
    CHECK_EQ_I64(sample(&s, l, 4, 0.9f, 1), 2);
    s.top_p = 0;
    CHECK_EQ_I64(sample(&s, l, 4, 0.9f, 1), 1);
    s.top_p = 1;
    s.min_p = 0.4f; /* of the largest: 1, 1/2 stay, 1/4 does not */
    CHECK_EQ_I64(sample(&s, l, 4, 0.9f, 1), 2);
    s.min_p = 2;
    CHECK_EQ_I64(sample(&s, l, 4, 0.9f, 1), 1);
}

TEST_CASE(HostRefSelect, SampleTheLargest)
{
    ref_sampling s = usual;
    s.temperature = 0;
    const float ties[5] = {-0.0f, 0.0f, NAN, 0, -1}, nans[3] = {NAN, NAN, NAN}, up[3] = {1, INFINITY, NAN};
    CHECK_EQ_I64(sample(&s, ties, 5, 0, 1), 0);
    CHECK_EQ_I64(sample(&s, ties + 1, 4, 0, 1), 0);
    CHECK_EQ_I64(sample(&s, ties + 2, 3, 0, 1), 1);
    CHECK_EQ_I64(sample(&s, nans, 3, 0, 1), 0);
    CHECK_EQ_I64(sample(&s, up, 3, 0, 1), 1);
    s.temperature = 1;
    const float down[3] = {-INFINITY, -INFINITY, NAN}, one[3] = {NAN, -INFINITY, 2};
    CHECK_EQ_I64(sample(&s, up, 3, 0, 1), 0);
    CHECK_EQ_I64(sample(&s, down, 3, 0, 1), 0);
    CHECK_EQ_I64(sample(&s, one, 3, 0.99f, 1), 2);
    CHECK_EQ_I64(sample(&s, one, 3, 0, 0.01f), 2);
}

TEST_CASE(HostRefSelect, SamplePenalties)
{
    ref_sampling s = {.temperature = 0, .top_p = 1, .repetition = 2, .frequency = 0.25f, .presence = 0.125f};
    const float l[3] = {4, 1.7f, -1};
    /* 4 / 2 - 2 * 0.25 - 0.125 = 1.375; a negative logit is multiplied: -1 * 2 - 0.25 - 0.125 */
    const int32_t counts[3] = {2, 0, 1}, once[3] = {1, -5, 1};
    CHECK_EQ_I64(ref_sample(&s, QDNN_DATA_F32, l, 3, counts, 0, 0), 1);
    s.frequency = 0.1f; /* 4 / 2 - 0.1 - 0.125 = 1.775 */
    CHECK_EQ_I64(ref_sample(&s, QDNN_DATA_F32, l, 3, once, 0, 0), 0);
    const float negative[2] = {-2, -2.5f};
    const int32_t first[2] = {1, 0};
    s = usual, s.temperature = 0, s.repetition = 1.5f;
    CHECK_EQ_I64(ref_sample(&s, QDNN_DATA_F32, negative, 2, first, 0, 0), 1);
}

/* Frequencies of many draws, against softmax. */
TEST_CASE(HostRefSelect, SampleFrequencies)
{
    enum { N = 2500, DRAWS = 4000, PARTS = 10 };
    uint64_t state = 3;
    float l[N], p[N];
    int drawn[PARTS] = {0};
    double expected[PARTS] = {0};
    for (int i = 0; i < N; i++)
        l[i] = random_f32(&state, 3);
    ref_softmax(&plain_softmax, N, l, NULL, NULL, NULL, p);
    for (int i = 0; i < N; i++)
        expected[i * PARTS / N] += (double)p[i] * DRAWS;
    for (int i = 0; i < DRAWS; i++)
        drawn[ref_sample(&usual, QDNN_DATA_F32, l, N, NULL, 42, (uint64_t)i) * PARTS / N]++;
    for (int i = 0; i < PARTS; i++)
        CHECK(fabs(drawn[i] - expected[i]) < 5 * sqrt(expected[i]));
}

/* ---- Copies ---- */

TEST_CASE(HostRefSelect, Convert)
{
    const float x[5] = {1.0625f, 1e9f, NAN, -0.0f, 65520};
    const uint8_t e4m3[5] = {0x38, 0x7E, 0x7F, 0x80, 0x7E};
    uint8_t codes[5];
    uint16_t halves[5];
    const uint16_t f16[5] = {0x3C40, 0x7C00, 0x7FFF, 0x8000, 0x7C00};
    for (int i = 0; i < 5; i++) {
        ref_convert(QDNN_DATA_F32, x, i, QDNN_DATA_F8E4M3, codes, i);
        ref_convert(QDNN_DATA_F32, x, i, QDNN_DATA_F16, halves, i);
    }
    CHECK_EQ_MEM(codes, e4m3, sizeof codes);
    CHECK_EQ_MEM(halves, f16, sizeof halves);
    /* twice rounded: 1 + 2^-11 + 2^-40 is 1 + 2^-11 in f32, a tie in f16 */
    const double twice = 1 + 0x1p-11 + 0x1p-40;
    ref_convert(QDNN_DATA_F64, &twice, 0, QDNN_DATA_F16, halves, 0);
    CHECK_EQ_U32(halves[0], 0x3C00);
    uint32_t quiet = 0xFFC12345, copied; /* equal types: the bytes */
    ref_convert(QDNN_DATA_F32, &quiet, 0, QDNN_DATA_F32, &copied, 0);
    CHECK_EQ_U32(copied, quiet);
}

TEST_CASE(HostRefSelect, CopyTransposes)
{
    const ref_copy_spec spec = {QDNN_DATA_F32, QDNN_DATA_F32, 2, {2, 3}, {3, 1}, {1, 2}};
    const float x[6] = {1, 2, 3, 4, 5, 6}, expected[6] = {1, 4, 2, 5, 3, 6};
    float y[6];
    ref_copy(&spec, x, y);
    check_floats(y, expected, 6);
}
