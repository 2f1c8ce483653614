/* Integer, single-bit and f64 mma, and the special values of floating-point mma: expected results worked out
 * here. */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fragments.h"
#include "test.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state ^ *state >> 33) * 0xFF51AFD7ED558CCDu >> 8;
}

typedef struct integer_case {
    pvm_mod shape;
    pvm_type a, b;
    int bits;
} integer_case;

static const integer_case integer_cases[] = {
    {M_m8n8k16, T_S8, T_S8, 8},  {M_m8n8k16, T_U8, T_S8, 8},  {M_m16n8k16, T_S8, T_U8, 8},
    {M_m16n8k32, T_S8, T_S8, 8}, {M_m16n8k32, T_U8, T_U8, 8}, {M_m8n8k32, T_S4, T_S4, 4},
    {M_m16n8k32, T_U4, T_S4, 4}, {M_m16n8k64, T_S4, T_U4, 4}, {M_m16n8k64, T_U4, T_U4, 4},
    {M_m16n8k64, T_S4, T_S4, 4},
};

static int64_t integer_value(pvm_type type, int bits, uint64_t raw)
{
    const bool is_signed = type == T_S8 || type == T_S4;
    return is_signed && raw >> (bits - 1) & 1 ? (int64_t)raw - (1 << bits) : (int64_t)raw;
}

static int n_integer_cases(void)
{
    return 2 * (int)(sizeof integer_cases / sizeof *integer_cases);
}

static void integer_case_name(int index, char *text, size_t size)
{
    int m, n, k;
    pvm_shape_of(integer_cases[index / 2].shape, &m, &n, &k);
    snprintf(text, size, "m%dn%dk%d_%d%s", m, n, k, index / 2, index % 2 ? "_satfinite" : "");
}

TEST_EACH(TensorExact, Integers, n_integer_cases, integer_case_name)
{
    const integer_case *t = &integer_cases[index / 2];
    const bool satfinite = index % 2;
    pvm_inst inst = mma_instruction(t->shape, T_S32, t->a, t->b, T_S32);
    inst.mod[S_SAT] = satfinite ? M_satfinite : M_NONE;
    tensor_op op;
    uint64_t a[16 * 64], b[64 * 8], c[16 * 8], d[16 * 8], state = 7 + (uint64_t)index;
    REQUIRE(tensor_find(&inst, (pvm_target){index % 3 ? 90 : 80, 0}, &op));
    CHECK_EQ_I64(op.standing, TENSOR_EXACT);
    for (int round = 0; round < 20; round++) {
        int wrong = 0;
        for (int i = 0; i < op.m * op.k; i++)
            a[i] = next_random(&state) & ((1u << t->bits) - 1);
        for (int i = 0; i < op.k * op.n; i++)
            b[i] = next_random(&state) & ((1u << t->bits) - 1);
        for (int i = 0; i < op.m * op.n; i++) /* half of them near the ends, so that sums go over */
            c[i] = (uint32_t)(i % 2 ? next_random(&state) : (i % 4 ? 0x7FFFFFF0u : 0x80000005u));
        mma_run(&op, t->bits, a, b, c, d, NULL);
        for (int i = 0; i < op.m * op.n; i++) {
            int64_t sum = (int32_t)c[i];
            for (int k = 0; k < op.k; k++)
                sum += integer_value(t->a, t->bits, a[i / op.n * op.k + k]) *
                       integer_value(t->b, t->bits, b[k * op.n + i % op.n]);
            if (satfinite)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            wrong += (uint32_t)d[i] != (uint32_t)sum;
        }
        CHECK_EQ_I64(wrong, 0);
    }
}

TEST_CASE(TensorExact, SingleBits)
{
    static const pvm_mod shapes[] = {M_m8n8k128, M_m16n8k128, M_m16n8k256};
    static uint64_t a[16 * 256], b[256 * 8];
    uint64_t c[16 * 8], d[16 * 8], state = 99;
    for (int n = 0; n < 6; n++) {
        pvm_inst inst = mma_instruction(shapes[n / 2], T_S32, T_B1, T_B1, T_S32);
        inst.mod[S_OP] = n % 2 ? M_and : M_xor;
        tensor_op op;
        int wrong = 0;
        REQUIRE(tensor_find(&inst, (pvm_target){80, 0}, &op));
        for (int i = 0; i < op.m * op.k; i++)
            a[i] = next_random(&state) & 1;
        for (int i = 0; i < op.k * op.n; i++)
            b[i] = next_random(&state) & 1;
        for (int i = 0; i < op.m * op.n; i++)
            c[i] = (uint32_t)next_random(&state);
        mma_run(&op, 1, a, b, c, d, NULL);
        for (int i = 0; i < op.m * op.n; i++) {
            uint32_t sum = (uint32_t)c[i];
            for (int k = 0; k < op.k; k++) {
                const uint64_t x = a[i / op.n * op.k + k], y = b[k * op.n + i % op.n];
                sum += (uint32_t)(n % 2 ? x & y : x ^ y);
            }
            wrong += (uint32_t)d[i] != sum;
        }
        CHECK_EQ_I64(wrong, 0);
    }
}

static uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double f64_from(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST_CASE(TensorExact, F64IsAChainOfFma)
{
    static const pvm_mod shapes[] = {M_m8n8k4, M_m16n8k4, M_m16n8k8, M_m16n8k16};
    static const pvm_mod modes[] = {M_NONE, M_rz, M_rm, M_rp};
    static const int host[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    uint64_t a[16 * 16], b[16 * 8], c[16 * 8], d[16 * 8], state = 5;
    for (int n = 0; n < 16; n++) {
        pvm_inst inst = mma_instruction(shapes[n / 4], T_F64, T_F64, T_F64, T_F64);
        inst.mod[S_RND] = modes[n % 4];
        tensor_op op;
        int wrong = 0;
        REQUIRE(tensor_find(&inst, (pvm_target){90, 0}, &op));
        for (int i = 0; i < op.m * op.k; i++)
            a[i] = f64_bits((double)(int64_t)next_random(&state) / 3e15 - 10);
        for (int i = 0; i < op.k * op.n; i++)
            b[i] = f64_bits((double)(int64_t)next_random(&state) / 7e15 - 5);
        for (int i = 0; i < op.m * op.n; i++)
            c[i] = f64_bits(i == 3 ? NAN : (double)(int64_t)next_random(&state) / 1e15);
        mma_run(&op, 64, a, b, c, d, NULL);
        CHECK_EQ_I64(fegetround(), FE_TONEAREST);
        CHECK_EQ_U64(d[3], 0x7FF8000000000000);
        for (int i = 0; i < op.m * op.n; i++) {
            volatile double sum = f64_from(c[i]);
            fesetround(host[n % 4]);
            for (int k = 0; k < op.k; k++)
                sum = fma(f64_from(a[i / op.n * op.k + k]), f64_from(b[k * op.n + i % op.n]), sum);
            fesetround(FE_TONEAREST);
            wrong += i != 3 && d[i] != f64_bits(sum);
        }
        CHECK_EQ_I64(wrong, 0);
    }
}

/* ---- floating-point special values, one dot product in the corner of an m16n8k8 f16 ---- */

typedef struct corner {
    uint32_t a[2], b[2], c; /* the other products are 0 * 0 */
    uint32_t d;
} corner;

enum { ONE = 0x3C00, MINUS_ONE = 0xBC00, INF = 0x7C00, MINUS_INF = 0xFC00, NAN16 = 0x7E01, LARGEST = 0x7BFF };

static void check_corners(int sm, pvm_type result, const corner *corners, int n)
{
    const pvm_inst inst = mma_instruction(M_m16n8k8, result, T_F16, T_F16, result);
    tensor_op op;
    REQUIRE(tensor_find(&inst, (pvm_target){sm, 0}, &op));
    for (int i = 0; i < n; i++) {
        uint64_t a[16 * 8] = {0}, b[8 * 8] = {0}, c[16 * 8] = {0}, d[16 * 8];
        /* all products of the last row and column are -0 but for the first two */
        for (int k = 0; k < 8; k++) {
            a[15 * 8 + k] = k < 2 ? corners[i].a[k] : 0x8000;
            b[k * 8 + 7] = k < 2 ? corners[i].b[k] : 0;
        }
        c[15 * 8 + 7] = corners[i].c;
        test_push_note("corner %d", i);
        mma_run(&op, 16, a, b, c, d, NULL);
        CHECK_EQ_U32((uint32_t)d[15 * 8 + 7], corners[i].d);
        CHECK_EQ_U32((uint32_t)d[0], 0);
        test_pop_note();
    }
}

TEST_CASE(TensorExact, SpecialValuesF32)
{
    static const corner corners[] = {
        {{NAN16, ONE}, {ONE, ONE}, 0, 0x7FFFFFFF},
        {{ONE, ONE}, {ONE, ONE}, 0xFFC12345, 0x7FFFFFFF},
        {{INF, ONE}, {ONE, ONE}, 0, 0x7F800000},
        {{INF, ONE}, {MINUS_ONE, ONE}, 0, 0xFF800000},
        {{INF, INF}, {ONE, MINUS_ONE}, 0, 0x7FFFFFFF},
        {{INF, ONE}, {0, ONE}, 0, 0x7FFFFFFF},
        {{INF, ONE}, {ONE, ONE}, 0xFF800000, 0x7FFFFFFF},
        {{INF, ONE}, {MINUS_INF, ONE}, 0xFF800000, 0xFF800000},
        {{ONE, MINUS_ONE}, {ONE, ONE}, 0x80000000, 0},      /* exact cancellation */
        {{0x8000, 0x8000}, {0, 0}, 0x80000000, 0x80000000}, /* all addends -0 */
        {{0x8000, 0x8000}, {0, 0}, 0, 0},
        {{0, 0x8000}, {0, 0}, 0x80000000, 0},
        {{LARGEST, LARGEST}, {LARGEST, LARGEST}, 0x7F7FFFFF, 0x7F7FFFFF}, /* too small to matter: cut */
        {{1, 0}, {1, 0}, 0, 0x27800000}, /* 2^-24 * 2^-24: subnormals are kept */
        {{1, 0}, {ONE, 0}, 1, 0x33800000},
        {{0, 0}, {0, 0}, 0x007FFFFF, 0x007FFFFF}, /* subnormal c passes */
        {{0, 0}, {0, 0}, 0x80000001, 0x80000001},
    };
    check_corners(80, T_F32, corners, sizeof corners / sizeof *corners);
    check_corners(90, T_F32, corners, sizeof corners / sizeof *corners);
    check_corners(120, T_F32, corners, sizeof corners / sizeof *corners);
}

TEST_CASE(TensorExact, SpecialValuesF16)
{
    static const corner corners[] = {
        {{NAN16, ONE}, {ONE, ONE}, 0, 0x7FFF},
        {{LARGEST, ONE}, {ONE, ONE}, 0, 0x7BFF}, /* 65505 rounds to 65504 */
        {{LARGEST, 0x4C00}, {ONE, ONE}, 0, INF}, /* 65520 rounds to Inf */
        {{LARGEST, 0x4C00}, {0xBC00, 0xBC00}, 0, MINUS_INF},
        {{INF, 0}, {ONE, 0}, MINUS_INF, 0x7FFF},
        {{0x8000, 0x8000}, {0, 0}, 0x8000, 0x8000},
        {{ONE, MINUS_ONE}, {ONE, ONE}, 0x8000, 0},
        {{1, 1}, {0x3800, 0x3800}, 0, 1},     /* 2^-25 + 2^-25 */
        {{1, 0}, {0x3800, 0}, 0, 0},          /* 2^-25: tie to even, 0 */
        {{1, 0}, {0x3E00, 0}, 0, 2},          /* 1.5 * 2^-24: tie to even, 2 */
        {{ONE, 0}, {ONE, 0}, 0x1000, 0x3C00}, /* 1 + 2^-11: tie to even */
    };
    check_corners(80, T_F16, corners, sizeof corners / sizeof *corners);
    check_corners(100, T_F16, corners, sizeof corners / sizeof *corners);
}

/* Too large under rounding toward zero is Inf all the same: bf16 2^127 + 2^127. */
TEST_CASE(TensorExact, OverflowIsInf)
{
    const pvm_inst inst = mma_instruction(M_m16n8k16, T_F32, T_BF16, T_BF16, T_F32);
    tensor_op op;
    uint64_t a[16 * 16] = {0}, b[16 * 8] = {0}, c[16 * 8] = {0}, d[16 * 8];
    a[0] = a[1] = 0x7F00;
    b[0] = b[8] = 0x3F80;
    b[1] = b[8 + 1] = 0xBF80;
    REQUIRE(tensor_find(&inst, (pvm_target){90, 0}, &op));
    mma_run(&op, 16, a, b, c, d, NULL);
    CHECK_EQ_U32((uint32_t)d[0], 0x7F800000);
    CHECK_EQ_U32((uint32_t)d[1], 0xFF800000);
    CHECK_EQ_U32((uint32_t)d[2], 0);
}

TEST_CASE(TensorExact, WhatASmLacksIsNotFound)
{
    tensor_op op;
    pvm_inst inst = mma_instruction(M_m16n8k8, T_F32, T_TF32, T_TF32, T_F32);
    CHECK(!tensor_find(&inst, (pvm_target){75, 0}, &op));
    CHECK(tensor_find(&inst, (pvm_target){80, 0}, &op));
    CHECK_EQ_STR(op.row, "sm_80/86/87 tf32 k8");
    CHECK(!tensor_find(&inst, (pvm_target){70, 0}, &op));
    inst = mma_instruction(M_m16n8k32, T_F32, T_E4M3, T_E4M3, T_F32);
    CHECK(!tensor_find(&inst, (pvm_target){86, 0}, &op));
    CHECK(tensor_find(&inst, (pvm_target){89, 0}, &op));
    inst = mma_instruction(M_m16n8k32, T_F32, T_E2M1, T_E4M3, T_F32);
    CHECK(!tensor_find(&inst, (pvm_target){100, 'a'}, &op));
    CHECK(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
    inst.op = OP_add;
    CHECK(!tensor_find(&inst, (pvm_target){120, 'a'}, &op));
}

/* ---- A and B change places ---- */

typedef struct swap_case {
    int sm;
    pvm_mod shape;
    pvm_type a, b;
    int bits;
} swap_case;

static const swap_case swap_cases[] = {
    {75, M_m16n8k8, T_F16, T_F16, 16},    {80, M_m16n8k16, T_F16, T_F16, 16},
    {80, M_m16n8k16, T_BF16, T_BF16, 16}, {89, M_m16n8k32, T_E4M3, T_E5M2, 8},
    {89, M_m16n8k32, T_E4M3, T_E4M3, 8},  {90, M_m16n8k16, T_BF16, T_BF16, 16},
    {100, M_m16n8k16, T_F16, T_F16, 16},  {120, M_m16n8k16, T_F16, T_F16, 16},
    {120, M_m16n8k32, T_E5M2, T_E4M3, 8},
};

/* The first eight rows of A as columns of B, the columns of B as rows of A, c transposed: D is transposed,
 * bit for bit, for any bits at all. Mode tensor rests on it: its kernels have x as A, or as B. */
TEST_CASE(TensorExact, FactorsMayChangePlaces)
{
    uint64_t state = 5;
    for (size_t i = 0; i < sizeof swap_cases / sizeof *swap_cases; i++) {
        const swap_case *t = &swap_cases[i];
        const pvm_inst one = mma_instruction(t->shape, T_F32, t->a, t->b, T_F32),
                       other = mma_instruction(t->shape, T_F32, t->b, t->a, T_F32);
        tensor_op op, swapped;
        uint64_t a[16 * 32], b[32 * 8], c[16 * 8], d[16 * 8];
        uint64_t a2[16 * 32] = {0}, b2[32 * 8], c2[16 * 8] = {0}, d2[16 * 8];
        REQUIRE(tensor_find(&one, (pvm_target){t->sm, 0}, &op));
        REQUIRE(tensor_find(&other, (pvm_target){t->sm, 0}, &swapped));
        int wrong = 0;
        for (int round = 0; round < 50; round++) {
            const uint64_t mask = (1u << t->bits) - 1;
            for (int at = 0; at < 16 * op.k; at++)
                a[at] = next_random(&state) & mask;
            for (int at = 0; at < op.k * 8; at++)
                b[at] = next_random(&state) & mask;
            for (int at = 0; at < 16 * 8; at++)
                c[at] = next_random(&state) & (round % 2 ? 0xC1FFFFFF : 0xFFFFFFFF);
            for (int k = 0; k < op.k; k++)
                for (int j = 0; j < 8; j++) {
                    a2[j * op.k + k] = b[k * 8 + j];
                    b2[k * 8 + j] = a[j * op.k + k];
                }
            for (int j = 0; j < 64; j++)
                c2[j % 8 * 8 + j / 8] = c[j];
            mma_run(&op, t->bits, a, b, c, d, NULL);
            mma_run(&swapped, t->bits, a2, b2, c2, d2, NULL);
            for (int j = 0; j < 64; j++)
                wrong += (uint32_t)d2[j % 8 * 8 + j / 8] != (uint32_t)d[j];
        }
        test_push_note("case %d", (int)i);
        CHECK_EQ_I64(wrong, 0);
        test_pop_note();
    }
}
