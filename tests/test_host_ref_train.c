/* Training-time operations in the host reference, with answers worked out by hand. */
#include "test_host_ref.h"

#include <stdlib.h>

static const float inf = INFINITY;

/* One scale for all, 4 bits (qmax 7), ties away, scales per batch. */
static ref_train_spec whole(void)
{
    return (ref_train_spec){
        .bits = 4, .group_size = 1, .channels = 1, .rounding = QDNN_ROUND_TIES_AWAY, .decay = 0.5f};
}

static ref_train_spec fixed(void)
{
    ref_train_spec spec = whole();
    spec.mode = QDNN_SCALE_MODE_FIXED;
    return spec;
}

static void check_floats(const float *actual, const float *expected, int n)
{
    for (int i = 0; i < n; i++) {
        test_push_note("element %d", i);
        CHECK_EQ_F32(actual[i], expected[i]);
        test_pop_note();
    }
}

/* ---- Scales ---- */

TEST_CASE(HostRefTrain, ScalesPerBatch)
{
    ref_train_spec spec = whole();
    const float x[6] = {14, -7, 5, 2.9f, -3, NAN}, y[6] = {14, -8, 6, 2, -4, ref_f32_from_bits(REF_NAN_F32)};
    float got[6];
    ref_fake_quantize(&spec, 6, x, NULL,
                      got); /* 14 / 7 = 2; -3.5, 2.5, 1.45 and -1.5 round to -4, 3, 1, -2 */
    check_floats(got, y, 6);
}

TEST_CASE(HostRefTrain, ScalesOfBitsAndTies)
{
    static const struct {
        int bits;
        qdnnRounding_t rounding;
        float x, y;
    } cases[] = {{8, QDNN_ROUND_TIES_AWAY, 2.5f, 3},       {8, QDNN_ROUND_TIES_TO_EVEN, 2.5f, 2},
                 {8, QDNN_ROUND_TIES_AWAY, 126.5f, 127},   {8, QDNN_ROUND_TIES_TO_EVEN, -126.5f, -126},
                 {8, QDNN_ROUND_TIES_AWAY, 300, 127},      {8, QDNN_ROUND_TIES_AWAY, -300, -127},
                 {4, QDNN_ROUND_TIES_AWAY, -9, -7},        {4, QDNN_ROUND_TIES_TO_EVEN, 7.4f, 7},
                 {2, QDNN_ROUND_TIES_AWAY, 0.5f, 1},       {2, QDNN_ROUND_TIES_TO_EVEN, 0.5f, 0},
                 {2, QDNN_ROUND_TIES_TO_EVEN, 1.5f, 1},    {2, QDNN_ROUND_TIES_AWAY, -5, -1},
                 {4, QDNN_ROUND_TIES_AWAY, -0.25f, -0.0f}, {4, QDNN_ROUND_TIES_TO_EVEN, -0.5f, -0.0f},
                 {4, QDNN_ROUND_TIES_AWAY, 0.25f, 0.0f},   {4, QDNN_ROUND_TIES_AWAY, -0.0f, -0.0f}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ref_train_spec spec = fixed();
        float state = 1, y;
        spec.bits = cases[i].bits;
        spec.rounding = cases[i].rounding;
        ref_fake_quantize(&spec, 1, &cases[i].x, &state, &y);
        test_push_note("case %zu", i);
        CHECK_EQ_F32(y, cases[i].y);
        test_pop_note();
    }
}

TEST_CASE(HostRefTrain, GroupsAndChannels)
{
    const float x[5] = {7, 14, 21, 28, 1};
    float y[5];
    ref_train_spec spec = whole();
    spec.group_size = 2;
    spec.channels = 0;
    CHECK_EQ_I64(ref_train_groups(&spec, 5), 3);
    ref_fake_quantize(&spec, 5, x, NULL, y); /* scales 2, 4 and 1/7 */
    check_floats(y, (const float[5]){8, 14, 20, 28, 7 * (1.0f / 7)}, 5);
    spec.group_size = 1;
    spec.channels = 2;
    CHECK_EQ_I64(ref_train_groups(&spec, 5), 2);
    ref_fake_quantize(&spec, 5, x, NULL, y); /* 7 21 1: 3; 14 28: 4 */
    check_floats(y, (const float[5]){6, 16, 21, 28, 0}, 5);
    CHECK_EQ_I64(ref_train_groups(&spec, 0), 0);
}

/* absmax 0 and NaN alone: 1e-12. An infinity: FLT_MAX. */
TEST_CASE(HostRefTrain, SpecialValuesPerBatch)
{
    ref_train_spec spec = whole();
    float y[2];
    ref_fake_quantize(&spec, 2, (const float[2]){0.0f, NAN}, NULL, y);
    check_floats(y, (const float[2]){0.0f, ref_f32_from_bits(REF_NAN_F32)}, 2);
    ref_fake_quantize(&spec, 2, (const float[2]){-inf, 1.0f}, NULL, y);
    float s = FLT_MAX / 7;
    check_floats(y, (const float[2]){-7 * s, 0.0f}, 2);
    ref_fake_quantize(&spec, 2, (const float[2]){1e-13f, -2e-12f}, NULL,
                      y); /* 2e-12 / 7 is below the least */
    check_floats(y, (const float[2]){0.0f, -2e-12f}, 2);
}

TEST_CASE(HostRefTrain, EmaKeepsAState)
{
    ref_train_spec spec = whole();
    float state[1] = {0}, y[2];
    spec.mode = QDNN_SCALE_MODE_EMA;
    spec.decay = 0.75f;
    ref_fake_quantize(&spec, 2, (const float[2]){14, 3}, state, y);
    CHECK_EQ_F32(state[0], 2); /* the first time: cur */
    check_floats(y, (const float[2]){14, 4}, 2);
    ref_fake_quantize(&spec, 2, (const float[2]){-70, 3}, state, y);
    CHECK_EQ_F32(state[0], 4); /* 0.75 * 2 + 0.25 * 10 */
    check_floats(y, (const float[2]){-28, 4}, 2);
    state[0] = -3;
    ref_fake_quantize(&spec, 2, (const float[2]){7, 3}, state, y);
    CHECK_EQ_F32(state[0], 1);
    state[0] = NAN;
    ref_fake_quantize(&spec, 2, (const float[2]){7, 3}, state, y);
    CHECK_EQ_F32(state[0], ref_f32_from_bits(REF_NAN_F32));
    CHECK_EQ_F32(y[0], ref_f32_from_bits(REF_NAN_F32));
}

/* The products are rounded one by one, and 1 - d too: nothing is contracted. */
TEST_CASE(HostRefTrain, EmaRoundsEachStep)
{
    ref_train_spec spec = whole();
    spec.mode = QDNN_SCALE_MODE_EMA;
    spec.decay = 0.9f;
    float state[1] = {0.3f}, y[1];
    ref_fake_quantize(&spec, 1, (const float[1]){0.7f}, state, y);
    volatile float rest = 1.0f - 0.9f, cur = 0.7f / 7.0f, old = 0.9f * 0.3f, new = rest *cur;
    volatile float sum = old + new;
    CHECK_EQ_F32(state[0], sum);
    CHECK_EQ_U32(ref_f32_to_bits(state[0]), 0x3E8F5C29u); /* 0.27 + 0.01 */
}

TEST_CASE(HostRefTrain, FixedScalesHaveALeast)
{
    ref_train_spec spec = fixed();
    static const float states[4] = {0, -1, NAN, 1e-20f};
    for (int i = 0; i < 4; i++) {
        float state = states[i], y;
        ref_fake_quantize(&spec, 1, (const float[1]){3e-12f}, &state, &y);
        CHECK_EQ_F32(y, 3 * 1e-12f);
        CHECK_EQ_U32(ref_f32_to_bits(state), ref_f32_to_bits(states[i]));
        ref_lsq(&spec, 1, (const float[1]){3e-12f}, &states[i], &y);
        CHECK_EQ_F32(y, 3 * 1e-12f);
    }
}

/* ---- Backward ---- */

static float backward(ref_train_spec spec, qdnnBackward_t kind, float x, float s, float dy)
{
    float dx = -1;
    spec.backward = kind;
    ref_fake_quantize_backward(&spec, 1, &x, &s, &dy, &dx);
    return dx;
}

TEST_CASE(HostRefTrain, BackwardIdentity)
{
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_IDENTITY, NAN, 1, -2.5f), -2.5f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_IDENTITY, 1e30f, NAN, -0.0f), -0.0f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_IDENTITY, 0, 1, -inf), -inf);
    CHECK_EQ_U32(
        ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_IDENTITY, 0, 1, ref_f32_from_bits(0xFFC00001))),
        REF_NAN_F32);
}

/* The forward clamps from 7.5 on: that is where the gradient ends, not at 7. */
TEST_CASE(HostRefTrain, BackwardClipped)
{
    ref_train_spec even = fixed();
    even.rounding = QDNN_ROUND_TIES_TO_EVEN;
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_CLIPPED, 7.25f, 1, -3), -3);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_CLIPPED, -7.5f, 1, -3), 0.0f);
    CHECK_EQ_F32(backward(even, QDNN_BACKWARD_CLIPPED, 7.5f, 1, -3), 0.0f); /* 7.5 is half way to 8 */
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_CLIPPED, 7.4999995f, 1, -0.0f), -0.0f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_CLIPPED, -inf, 1, inf), 0.0f);
    CHECK_EQ_U32(ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_CLIPPED, 100, 1, NAN)), REF_NAN_F32);
    CHECK_EQ_U32(ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_CLIPPED, NAN, 1, 2)), REF_NAN_F32);
}

/* The absmax element keeps its gradient, though 0.23 is above 7 * (0.23 / 7), by rounding. */
TEST_CASE(HostRefTrain, BackwardClippedKeepsTheLargest)
{
    CHECK(0.23f > 7 * (0.23f / 7));
    CHECK_EQ_F32(backward(whole(), QDNN_BACKWARD_CLIPPED, 0.23f, 0, 5), 5);
}

TEST_CASE(HostRefTrain, BackwardTanh)
{
    float t = ref_tanh(0.5f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_TANH, 1, 2, 3), 3 * (1 - t * t));
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_TANH, -0.0f, 2, 3), 3);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_TANH, inf, 1, -3), -0.0f);
    CHECK_EQ_U32(ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_TANH, inf, 1, inf)), REF_NAN_F32);
    CHECK_EQ_U32(ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_TANH, NAN, 1, 1)), REF_NAN_F32);
}

TEST_CASE(HostRefTrain, BackwardHardTanh)
{
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_HARD_TANH, 7, 2, 3), 1.5f); /* 1 - 7 / 14 */
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_HARD_TANH, -14, 2, 3), 0.0f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_HARD_TANH, -99, 2, -3), -0.0f);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_HARD_TANH, 0, 2, 3), 3);
    CHECK_EQ_F32(backward(fixed(), QDNN_BACKWARD_HARD_TANH, inf, FLT_MAX, 3), 3); /* 7 FLT_MAX is infinite */
    CHECK_EQ_U32(ref_f32_to_bits(backward(fixed(), QDNN_BACKWARD_HARD_TANH, NAN, 2, 3)), REF_NAN_F32);
}

/* EMA's backward takes the state as the forward left it, below 1e-12 too, and leaves it alone. */
TEST_CASE(HostRefTrain, BackwardOfEma)
{
    ref_train_spec spec = whole();
    float state = 1e-20f, x = 2e-20f, dy = 3, dx;
    spec.mode = QDNN_SCALE_MODE_EMA;
    spec.backward = QDNN_BACKWARD_CLIPPED;
    ref_fake_quantize_backward(&spec, 1, &x, &state, &dy, &dx);
    CHECK_EQ_F32(dx, 3);
    x = 8e-20f;
    ref_fake_quantize_backward(&spec, 1, &x, &state, &dy, &dx);
    CHECK_EQ_F32(dx, 0.0f);
    CHECK_EQ_F32(state, 1e-20f);
}

/* ---- LSQ ---- */

TEST_CASE(HostRefTrain, LsqBackward)
{
    ref_train_spec spec = whole();
    const float x[6] = {0.5f, 5, -3, 14, -15, 100}, dy[6] = {1, 2, 4, 8, 16, 32}, scale = 2;
    float dx[6], dscale;
    /* z = 0.25 2.5 -1.5 7 -7.5 50; psi = -0.25 0.5 -0.5 0 -7 7 */
    ref_lsq_backward(&spec, 6, x, &scale, dy, dx, &dscale);
    check_floats(dx, (const float[6]){1, 2, 4, 8, 0, 0}, 6);
    CHECK_EQ_F32(dscale, -0.25f + 1 - 2 + 0 - 112 + 224);
    spec.rounding = QDNN_ROUND_TIES_TO_EVEN; /* psi = -0.25 -0.5 -0.5 0 -7 7 */
    ref_lsq_backward(&spec, 6, x, &scale, dy, dx, &dscale);
    CHECK_EQ_F32(dscale, -0.25f - 1 - 2 + 0 - 112 + 224);
    spec.gradient_factor = true; /* 1 / sqrt(6 * 7) */
    ref_lsq_backward(&spec, 6, x, &scale, dy, dx, &dscale);
    CHECK_EQ_F32(dscale, 108.75f * (1 / sqrtf(42)));
}

TEST_CASE(HostRefTrain, LsqFactorOfEachGroup)
{
    ref_train_spec spec = whole();
    spec.group_size = 3;
    spec.channels = 0;
    spec.bits = 8;
    spec.gradient_factor = true;
    const float x[4] = {1000, 1000, 1000, -1000}, dy[4] = {1, 1, 1, 2}, scales[2] = {1, 1};
    float dx[4], dscale[2];
    ref_lsq_backward(&spec, 4, x, scales, dy, dx, dscale);
    CHECK_EQ_F32(dscale[0], 381 * (1 / sqrtf(381)));
    CHECK_EQ_F32(dscale[1], -254 * (1 / sqrtf(127)));
}

TEST_CASE(HostRefTrain, LsqSpecialValues)
{
    ref_train_spec spec = whole();
    const float one = 1;
    float dx[2], dscale;
    ref_lsq_backward(&spec, 2, (const float[2]){NAN, 1}, &one, (const float[2]){1, 1}, dx, &dscale);
    CHECK_EQ_U32(ref_f32_to_bits(dx[0]), REF_NAN_F32);
    CHECK_EQ_F32(dx[1], 1);
    CHECK_EQ_U32(ref_f32_to_bits(dscale), REF_NAN_F32);
    ref_lsq_backward(&spec, 2, (const float[2]){99, 1}, &one, (const float[2]){NAN, 1}, dx, &dscale);
    CHECK_EQ_U32(ref_f32_to_bits(dx[0]), REF_NAN_F32);
    CHECK_EQ_U32(ref_f32_to_bits(dscale), REF_NAN_F32);
    ref_lsq_backward(&spec, 2, (const float[2]){-inf, 1}, &one, (const float[2]){2, 0}, dx, &dscale);
    CHECK_EQ_F32(dx[0], 0.0f);
    CHECK_EQ_F32(dscale, -14);
    ref_lsq_backward(&spec, 1, (const float[1]){1}, &one, (const float[1]){-1}, dx, &dscale);
    CHECK_EQ_F32(dscale, 0.0f); /* 0 * -1 is -0; the sum is +0 */
}

/* ---- The long sum ---- */

TEST_CASE(HostRefTrain, SumOfFewTerms)
{
    const float ones[3] = {1, 2, 3}, minus_zero = -0.0f;
    CHECK_EQ_F32(ref_long_sum(ones, NULL, 0), 0.0f);
    CHECK_EQ_F32(ref_long_sum(ones, NULL, 3), 6);
    CHECK_EQ_F32(ref_long_sum(ones, ones, 3), 14);
    CHECK_EQ_F32(ref_long_sum(&minus_zero, NULL, 1), 0.0f);
}

/* Products are not rounded before they are added: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24. */
TEST_CASE(HostRefTrain, SumsOfProductsUseFma)
{
    const float a[2] = {-(1 + 0x1p-11f), 1 + 0x1p-12f}, b[2] = {1, 1 + 0x1p-12f};
    CHECK_EQ_F32(ref_long_sum(a, b, 2), 0x1p-24f);
}

/* A large number swallows what is added to it alone: so the result tells which terms met when. */
static float sum_with(int64_t n, int64_t large, int64_t minus, float rest)
{
    float *terms = malloc((size_t)n * sizeof *terms);
    for (int64_t i = 0; i < n; i++)
        terms[i] = i == large ? 0x1p60f : i == minus ? -0x1p60f : rest;
    float sum = ref_long_sum(terms, NULL, n);
    free(terms);
    return sum;
}

TEST_CASE(HostRefTrain, WhichTermsMeet)
{
    /* Lane 0 has terms 0 to 7 and 256 to 263. The large number comes and goes in it: 14 ones; before that none. */
    CHECK_EQ_F32(sum_with(512, 0, 1, 1), 510);
    /* it stays for terms 0 to 7: six ones of lane 0 are lost */
    CHECK_EQ_F32(sum_with(512, 0, 7, 1), 504);
    CHECK_EQ_F32(sum_with(512, 0, 256, 1), 503);
    CHECK_EQ_F32(sum_with(512, 0, 263, 1), 496);
    /* lanes 0 and 16 meet first: both lose all */
    CHECK_EQ_F32(sum_with(512, 0, 16 * 8, 1), 480);
    /* lanes 0 and 8 meet in the second step, with those of 16 and 24 in them */
    CHECK_EQ_F32(sum_with(512, 0, 8 * 8, 1), 448);
    CHECK_EQ_F32(sum_with(512, 0, 4 * 8, 1), 384);
    CHECK_EQ_F32(sum_with(512, 0, 2 * 8, 1), 256);
    CHECK_EQ_F32(sum_with(512, 0, 1 * 8, 1), 0);
}

TEST_CASE(HostRefTrain, SegmentsOfALongSum)
{
    CHECK_EQ_F32(sum_with(4096, 0, 4095, 1), 0); /* lanes 0 and 31 meet in the last step */
    CHECK_EQ_F32(sum_with(8192, 0, 4095, 1), 4096);
    /* two segments, which are the first two terms of lane 0 of the second level */
    CHECK_EQ_F32(sum_with(8192, 0, 4096, 1), 0);
    CHECK_EQ_F32(sum_with(3 * 4096, 0, 4096, 1), 4096);
    CHECK_EQ_F32(sum_with(3 * 4096 + 5, 0, 2 * 4096, 1), 5);
    /* segment 8 is in another lane of the second level */
    CHECK_EQ_F32(sum_with(9 * 4096, 0, 8 * 4096, 1), 0);
    CHECK_EQ_F32(sum_with(17 * 4096, 0, 8 * 4096, 1), 0);
    CHECK_EQ_F32(sum_with(16 * 4096, 0, 1, 1), 16 * 4096 - 2);
}

/* More than 4,096 segments: a third level. Segments 0 and 4095 are in the same list, 4096 is in the next. */
TEST_CASE(HostRefTrain, AThirdLevel)
{
    const int64_t n = 4096 * 4096 + 3;
    CHECK_EQ_F32(sum_with(n, 0, 4096 * 4096 - 1, 1), 3);
    CHECK_EQ_F32(sum_with(n, 0, 1, 0x1p-12f), 4096 * 4096 * 0x1p-12f);
    CHECK_EQ_F32(sum_with(n, 0, 4096 * 4096, 1), 0);
}
