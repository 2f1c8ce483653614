/* Integer products through the public API against host_ref; on ptxvm as six SMs, with every check on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/integer_case.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

/* ---- Products ---- */

/* clang-format off */
enum { I4 = QDNN_DATA_I4, I8 = QDNN_DATA_I8, U8 = QDNN_DATA_U8, I32 = QDNN_DATA_I32, F32 = QDNN_DATA_F32,
       F16 = QDNN_DATA_F16, BF16 = QDNN_DATA_BF16 };
/* clang-format on */

/* Sizes that are multiples of nothing, and some that are. */
/* clang-format off */
static const int64_t shapes[][3] = {
    {1, 1, 1},    {1, 5, 17},    {3, 7, 100},  {4, 9, 513},  {5, 3, 64},     {17, 33, 65},
    {64, 64, 64}, {65, 64, 128}, {70, 130, 3}, {33, 70, 48}, {129, 65, 200}, {128, 128, 256},
    {2, 3, 0},    {7, 2, 0},     {0, 4, 8},    {4, 0, 8},    {1, 40, 1040},  {66, 67, 320},
};
/* clang-format on */

/* clang-format off */
static const integer_case kinds[] = {
    {.name = "qmatmul", .x = I8, .w = I8, .y = I8, .rounding = QDNN_ROUND_TIES_AWAY, .multiplier = 0.003f},
    {.name = "qmatmul_ties", .x = I8, .w = I8, .y = I8, .rounding = QDNN_ROUND_TIES_AWAY, .multiplier = 0.0078125f},
    {.name = "qmatmul_zeros", .x = I8, .w = I8, .y = I8, .x_zero = -128, .w_zero = 127, .y_zero = 5, .bias = I32,
     .multiplier = 0.0007f},
    {.name = "qmatmul_u8", .x = U8, .w = I8, .y = U8, .x_zero = 255, .y_zero = 128, .multipliers = true, .bias = I32},
    {.name = "qmatmul_u8_w_zero", .x = U8, .w = I8, .y = I8, .w_zero = -128, .y_zero = -128, .rounding = QDNN_ROUND_TIES_TO_EVEN,
     .multiplier = 0.5f},
    {.name = "qmatmul_kn", .x = I8, .w = I8, .y = I8, .w_is_kn = true, .x_zero = 3, .multiplier = 0.01f},
    {.name = "sums", .x = I8, .w = I8, .y = I32, .bias = I32, .x_zero = 9, .w_zero = 1},
    {.name = "w8a8", .x = I8, .w = I8, .y = F32},
    {.name = "w8a8_law", .x = I8, .w = I8, .y = F16, .bias = F16, .activation = QDNN_ACTIVATION_GELU_TANH, .residual = true,
     .alpha = QDNN_ALPHA_COLUMN},
    {.name = "w8a8_u8", .x = U8, .w = I8, .y = BF16, .x_zero = 130, .bias = F32, .activation = QDNN_ACTIVATION_RELU,
     .alpha = QDNN_ALPHA_NUMBER, .w_is_kn = true},
    {.name = "w4a8", .x = I8, .w = I4, .y = F32, .group_size = 32},
    {.name = "w4a8_law", .x = I8, .w = I4, .y = BF16, .group_size = 128, .scale_type = QDNN_SCALE_F16, .bias = BF16,
     .activation = QDNN_ACTIVATION_SILU, .residual = true},
    {.name = "w4a8_odd_groups", .x = I8, .w = I4, .y = F16, .group_size = 7, .scale_type = QDNN_SCALE_BF16},
    {.name = "w4a8_long_groups", .x = I8, .w = I4, .y = F32, .group_size = 640},
    {.name = "w4a4", .x = I4, .w = I4, .y = F32},
    {.name = "w4a4_law", .x = I4, .w = I4, .y = F16, .bias = F32, .residual = true, .alpha = QDNN_ALPHA_ONE},
    {.name = "int4_batched", .x = I4, .w = I4, .y = F32, .w_first = true},
    {.name = "per_token_w8a8", .x = I8, .w = I8, .y = F16, .quantizes = F16, .bias = F16},
    {.name = "per_token_w4a8", .x = I8, .w = I4, .y = F32, .quantizes = F32, .group_size = 64},
};
/* clang-format on */

static int turn_count(void)
{
    return LENGTH(kinds) * LENGTH(sms);
}

static void turn_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_turn_%d", kinds[index / LENGTH(sms)].name, index % LENGTH(sms));
}

/* One kind of product in every shape. */
static void run_shapes(qdnnHandle_t handle, int kind, int turn)
{
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(shapes) && alive; i++) {
        integer_case c = kinds[kind];
        if (c.quantizes && shapes[i][2] == 0)
            continue;
        c.m = shapes[i][0];
        c.n = shapes[i][1];
        c.k = shapes[i][2];
        c.seed = (uint32_t)(turn + 31 * i + 1);
        c.shift = (size_t)(i % 3 == 2 ? i % 5 : 0);
        alive = integer_case_run(handle, &c);
    }
}

DEVICE_EACH(ParityInteger, Products, turn_count, turn_name)
{
    qdnnHandle_t handle = device_begin(sms[index % LENGTH(sms)], 1 + index % 3, "all");
    run_shapes(handle, index / LENGTH(sms), index);
    device_end(handle);
}

/* Sums beyond 2^31, and every code at an end of its range. */
/* clang-format off */
static const integer_case ends[] = {
    {.name = "wraps", .x = I8, .w = I8, .y = I32, .m = 1, .n = 2, .k = 140000, .fill = CODES_LEAST},
    {.name = "wraps_with_zeros", .x = U8, .w = I8, .y = I32, .x_zero = 0, .w_zero = 127, .m = 5, .n = 3, .k = 70000,
     .fill = CODES_ENDS, .bias = I32},
    {.name = "least", .x = I8, .w = I8, .y = I8, .x_zero = 127, .w_zero = 127, .m = 70, .n = 70, .k = 128, .fill = CODES_LEAST,
     .multiplier = 1e-4f},
    {.name = "most", .x = I8, .w = I8, .y = U8, .x_zero = -128, .w_zero = -128, .y_zero = 255, .m = 70, .n = 70, .k = 100,
     .fill = CODES_MOST, .multiplier = -1e-5f},
    {.name = "saturates", .x = I8, .w = I8, .y = I8, .y_zero = 127, .m = 9, .n = 70, .k = 48, .multiplier = 3e38f},
    {.name = "nothing_times_infinity", .x = I8, .w = I8, .y = I8, .y_zero = 7, .m = 9, .n = 70, .k = 48, .fill = CODES_ZERO,
     .multiplier = INFINITY},
    {.name = "w4a4_least", .x = I4, .w = I4, .y = F32, .m = 70, .n = 70, .k = 1000, .fill = CODES_LEAST},
    {.name = "w4a4_long", .x = I4, .w = I4, .y = F32, .m = 5, .n = 2, .k = 131080, .fill = CODES_LEAST},
    {.name = "w4a8_least", .x = I8, .w = I4, .y = F32, .group_size = 1024, .m = 6, .n = 9, .k = 2100, .fill = CODES_LEAST},
};
/* clang-format on */

static int end_count(void)
{
    return LENGTH(ends) * LENGTH(sms);
}

static void end_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", ends[index / LENGTH(sms)].name, sms[index % LENGTH(sms)]);
}

DEVICE_EACH(ParityInteger, Ends, end_count, end_name)
{
    NEED_SM(sms[index % LENGTH(sms)]);
    integer_case c = ends[index / LENGTH(sms)];
    bool is_long = c.k > 10000;
    qdnnHandle_t handle = device_begin(sms[index % LENGTH(sms)], 2, is_long ? "none" : "all");
    c.seed = 7;
    if (handle)
        integer_case_run(handle, &c);
    device_end(handle);
}

/* Any number of rows up to that of the plan, and the same bits. */
DEVICE_CASE(ParityInteger, FewerRows)
{
    qdnnHandle_t handle = device_begin("sm_80", 2, "all");
    for (int64_t rows = 0; rows <= 130 && handle; rows += 13) {
        integer_case c = {.name = "fewer",
                          .x = I8,
                          .w = I8,
                          .y = F32,
                          .m = 130,
                          .n = 66,
                          .k = 70,
                          .seed = 5,
                          .rows = rows + 1};
        c.rows = rows ? rows : 1;
        integer_case_run(handle, &c);
    }
    device_end(handle);
}
