/* Integer products of host_ref: known answers, wrapping, rounding, the largest. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "test_host_ref.h"

TEST_CASE(HostRefIntegerProducts, Int4Dot)
{
    const uint32_t a = 0xCDEF4321, b = 0xFEDC1234;
    CHECK_EQ_I64(ref_int4_dot(8, &a, &b), 40);
    CHECK_EQ_F32(ref_integer_scaled(40, 0.5f, 0.25f), 5.0f);
    CHECK_EQ_I64(ref_int4_dot(4, &a, &b), 20); /* 1 * 4 + 2 * 3 + 3 * 2 + 4 * 1 */
    CHECK_EQ_I64(ref_int4_dot(0, &a, &b), 0);
}

/* Signed nibbles of `columns` numbers a row, in words. */
static void pack(const int *numbers, int rows, int columns, uint32_t *words)
{
    int per_row = (columns + 7) / 8;
    memset(words, 0, (size_t)(rows * per_row) * 4);
    for (int i = 0; i < rows * columns; i++)
        words[i / columns * per_row + i % columns / 8] |= (uint32_t)(numbers[i] & 15) << i % columns % 8 * 4;
}

/* clang-format off */
static const int known_w[] = {1, 2, 3, 4, -1, -2, -3, -4, 5, 4, 3, 2, 1, -4, -3, -2, -1, -5, -8, -7, -6, -5, -4, -3, -2, -1, 0};
static const int known_x[] = {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 4, -4, 3, -3, 2, -2, 1, -1};
/* clang-format on */

TEST_CASE(HostRefIntegerProducts, Int4Matmul)
{
    static const int sums[] = {29, -29, -10, -1, 1, 30};
    static const float expected[] = {10.875f, -5.4375f, -0.9375f, -0.1875f, 0.09375f, 1.40625f};
    static const float row_scale[] = {0.5f, 0.25f, 0.125f}, batch_scale[] = {0.75f, 0.375f};
    const ref_integer_spec s = {.m = 2, .n = 3, .k = 9, .x = QDNN_DATA_I4, .w = QDNN_DATA_I4};
    uint32_t w[6], x[4];
    float y[6];
    pack(known_w, 3, 9, w);
    pack(known_x, 2, 9, x);
    for (int i = 0; i < 6; i++) {
        int32_t sum = ref_integer_sum(&s, x, w, i / 3, i % 3);
        CHECK_EQ_I64(sum, sums[i]);
        y[i] = ref_integer_scaled(sum, row_scale[i % 3], batch_scale[i / 3]);
        CHECK_EQ_F32(y[i], expected[i]);
    }
    float best;
    int32_t place;
    ref_top(3, y, 1, &best, &place);
    CHECK(best == 10.875f && place == 0);
    ref_top(3, y + 3, 1, &best, &place);
    CHECK(best == 1.40625f && place == 2);
}

TEST_CASE(HostRefIntegerProducts, TheLargest)
{
    const float scores[] = {NAN, -0.0f, 3, 0.0f, 3, -INFINITY, NAN};
    const int32_t places[] = {2, 4, 1, 3, 5, 0, 6};
    float best[7];
    int32_t place[7];
    ref_top(7, scores, 7, best, place);
    CHECK_EQ_MEM(place, places, sizeof places);
    CHECK_EQ_F32(best[2], -0.0f);
    CHECK_EQ_U32(ref_f32_to_bits(best[6]), REF_NAN_F32);
    const float none[] = {-NAN, NAN};
    ref_top(2, none, 1, best, place);
    CHECK_EQ_U32(ref_f32_to_bits(best[0]), REF_NAN_F32);
    CHECK_EQ_I64(place[0], 0);
}

TEST_CASE(HostRefIntegerProducts, Requantize)
{
    static const struct {
        int32_t sum, y_zero;
        float multiplier;
        qdnnRounding_t rounding;
        qdnnDataType_t y;
        int expected;
    } cases[] = {
        {5, 0, 0.5f, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, 3},
        {-5, 0, 0.5f, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, -3},
        {5, 0, 0.5f, QDNN_ROUND_TIES_TO_EVEN, QDNN_DATA_I8, 2},
        {-5, 7, 0.5f, QDNN_ROUND_TIES_TO_EVEN, QDNN_DATA_I8, 5},
        {-5, 7, 0.5f, QDNN_ROUND_TIES_TO_EVEN, QDNN_DATA_U8, 5},
        {300, 0, 1, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, 127},
        {300, 0, 1, QDNN_ROUND_TIES_AWAY, QDNN_DATA_U8, 255},
        {-300, 0, 1, QDNN_ROUND_TIES_AWAY, QDNN_DATA_U8, 0},
        {INT_MAX, 127, 3e38f, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8,
         127}, /* the product is infinite, the addition saturates */
        {INT_MIN, -128, 3e38f, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, -128},
        {0, 9, INFINITY, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, 9}, /* 0 * Inf counts as 0 */
        {16777217, 0, 1e-7f, QDNN_ROUND_TIES_AWAY, QDNN_DATA_I8, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ref_requantize_spec s = {
            .y = cases[i].y, .y_zero = cases[i].y_zero, .rounding = cases[i].rounding};
        test_push_note("case %zu", i);
        CHECK_EQ_I64(ref_requantized(cases[i].sum, cases[i].multiplier, &s), cases[i].expected);
        test_pop_note();
    }
}

/* (127 + 128) * (127 + 128) summed 40,000 times is beyond 2^31. */
TEST_CASE(HostRefIntegerProducts, SumsWrap)
{
    enum { K = 40000 };
    static int8_t x[K], w[K];
    memset(x, 127, K);
    memset(w, 127, K);
    const ref_integer_spec s = {
        .m = 1, .n = 1, .k = K, .x = QDNN_DATA_I8, .w = QDNN_DATA_I8, .x_zero = -128, .w_zero = -128};
    const int32_t bias = 5;
    const ref_requantize_spec plain = {.y = QDNN_DATA_I32};
    int32_t y;
    CHECK_EQ_I64(ref_integer_sum(&s, x, w, 0, 0), INT64_C(40000) * 65025 - (INT64_C(1) << 32));
    ref_integer_matmul(&s, &plain, x, w, &bias, &y);
    CHECK_EQ_I64(y, INT64_C(40000) * 65025 - (INT64_C(1) << 32) + 5);
}

TEST_CASE(HostRefIntegerProducts, Matmul)
{
    const uint8_t x[] = {0, 255, 7, 9};     /* [2, 2] */
    const int8_t w[] = {1, -2, 3, 4, 5, 6}; /* [2, 3] = [K, N] */
    const int8_t transposed[] = {1, 4, -2, 5, 3, 6};
    const int32_t bias[] = {10, 0, -10};
    const float multipliers[] = {0.5f, 0.25f, 1};
    ref_integer_spec s = {
        .m = 2, .n = 3, .k = 2, .x = QDNN_DATA_U8, .w = QDNN_DATA_I8, .w_is_kn = true, .x_zero = 8};
    const ref_requantize_spec r = {.y = QDNN_DATA_I8, .multipliers = multipliers, .y_zero = -1};
    int8_t y[6], again[6];
    /* row 0: (-8, 247): 980 1251 1458; row 1: (-1, 1): 3 7 3; with the bias 990 1251 1448, 13 7 -7 */
    static const int8_t expected[] = {127, 127, 127, 5, 1, -8};
    ref_integer_matmul(&s, &r, x, w, bias, y);
    CHECK_EQ_MEM(y, expected, 6);
    s.w_is_kn = false;
    ref_integer_matmul(&s, &r, x, transposed, bias, again);
    CHECK_EQ_MEM(again, expected, 6);
}

/* Groups of 200: strips of two. Scales of 2^24 and 1 show the order. */
TEST_CASE(HostRefIntegerProducts, W4a8Strips)
{
    enum { K = 1000, GROUPS = 5 };
    int8_t x[K];
    uint32_t w[K / 8];
    float scale[GROUPS] = {0x1p24f, 1, 1, -0x1p24f, 1};
    memset(x, 0, sizeof x);
    memset(w, 0x11, sizeof w);
    for (int g = 0; g < GROUPS; g++)
        x[g * 200] = 1;
    const ref_integer_spec s = {.m = 1, .n = 1, .k = K, .x = QDNN_DATA_I8, .w = QDNN_DATA_I4};
    /* (2^24 + 1 = 2^24) + (1 - 2^24 = -16777215) = 1, + 1 */
    CHECK_EQ_F32(ref_w4a8_sum(&s, 200, QDNN_SCALE_F32, x, w, scale, 0, 0), 2.0f);
    CHECK_EQ_F32(ref_w4a8_sum(&s, 2000, QDNN_SCALE_F32, x, w, scale, 0, 0), 5 * 0x1p24f);
}

TEST_CASE(HostRefIntegerProducts, Conv2d)
{
    /* one image, one channel of 3 x 3, a window of 2 x 2, padding 1, stride 2: the corners and the middle */
    const int8_t x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, -1};
    ref_conv_spec s = {.x = QDNN_DATA_I8,
                       .images = 1,
                       .channels = 1,
                       .height = 3,
                       .width = 3,
                       .outputs = 1,
                       .groups = 1,
                       .window = {2, 2},
                       .stride = {2, 2},
                       .padding = {1, 1},
                       .dilation = {1, 1},
                       .x_zero = 1};
    const ref_requantize_spec plain = {.y = QDNN_DATA_I32};
    int32_t y[4];
    /* x - 1 = 0..8; y[1][1] has 4 5 7 8: 4 + 50 + 700 - 8 */
    static const int32_t expected[] = {0, 100 * 1 - 2, 10 * 3 - 6, 746};
    CHECK_EQ_I64(ref_conv_output(3, 2, 2, 1, 1), 2);
    ref_integer_conv2d(&s, &plain, x, w, NULL, y);
    CHECK_EQ_MEM(y, expected, sizeof expected);
    /* depthwise, two channels, NHWC: the second is twice the first */
    const int8_t pair[] = {1, 2, 2, 4}, both[] = {3, 5}; /* 1 x 2 pixels; windows of 1 x 1 */
    s = (ref_conv_spec){.x = QDNN_DATA_I8,
                        .nhwc = true,
                        .images = 1,
                        .channels = 2,
                        .height = 1,
                        .width = 2,
                        .outputs = 2,
                        .groups = 2,
                        .window = {1, 1},
                        .stride = {1, 1},
                        .dilation = {1, 1}};
    static const int32_t products[] = {3, 10, 6, 20};
    ref_integer_conv2d(&s, &plain, pair, both, NULL, y);
    CHECK_EQ_MEM(y, products, sizeof products);
}
