/* Block-scaled mma: which byte of which lane scales what, values worked out by hand, and random ones against
 * a plain sum. */
#include <math.h>
#include <string.h>

#include "fragments.h"
#include "test.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state ^ *state >> 33) * 0xFF51AFD7ED558CCDu >> 8;
}

/* Scales by row and column, for each block along k, and where the selectors find them. */
typedef struct scaling {
    uint8_t a[16][4], b[8][4];
    int blocks, byte_a, thread_a, byte_b, thread_b;
} scaling;

/* Operands as the instruction takes them. Bytes that the selectors do not pick are NaN. */
typedef struct scale_operands {
    uint32_t a[32], b[32];
    uint16_t byte_a[32], thread_a[32], byte_b[32], thread_b[32];
} scale_operands;

static void place_scales(const scaling *s, scale_operands *o)
{
    memset(o, 0xFF, sizeof *o);
    for (int lane = 0; lane < 32; lane++) {
        uint8_t *a = (uint8_t *)&o->a[lane], *b = (uint8_t *)&o->b[lane];
        o->byte_a[lane] = (uint16_t)s->byte_a;
        o->thread_a[lane] = (uint16_t)s->thread_a;
        o->byte_b[lane] = (uint16_t)s->byte_b;
        o->thread_b[lane] = (uint16_t)s->thread_b;
        for (int i = 0; i < s->blocks; i++) {
            /* the pair of lanes 0 and 1 of a quad, or 2 and 3, has rows g and g + 8 */
            if (lane % 4 / 2 == s->thread_a)
                a[s->byte_a + i] = s->a[lane / 4 + lane % 2 * 8][i];
            if (lane % 4 == s->thread_b)
                b[s->byte_b + i] = s->b[lane / 4][i];
        }
    }
}

static pvm_inst scaled_instruction(pvm_mod kind, pvm_mod vector, pvm_type a, pvm_type b, pvm_type scale)
{
    pvm_inst inst = mma_instruction(kind == M_kind__mxf8f6f4 ? M_m16n8k32 : M_m16n8k64, T_F32, a, b, T_F32);
    inst.mod[S_KIND] = kind;
    inst.mod[S_SCALE] = M_block_scale;
    inst.mod[S_SCALEVEC] = vector;
    inst.mod[S_STYPE] = M_TYPE(scale);
    return inst;
}

static void run_scaled(const tensor_op *op, int bits, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                       const scaling *s, uint64_t *d)
{
    scale_operands o;
    place_scales(s, &o);
    const void *const scale[6] = {o.a, o.byte_a, o.thread_a, o.b, o.byte_b, o.thread_b};
    mma_run(op, bits, a, b, c, d, scale);
}

static float f32_from(uint64_t bits64)
{
    const uint32_t bits = (uint32_t)bits64;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void fill(uint64_t *values, int n, uint64_t value)
{
    for (int i = 0; i < n; i++)
        values[i] = value;
}

TEST_CASE(TensorScaled, SelectorsOfMxf8f6f4)
{
    const pvm_inst inst = scaled_instruction(M_kind__mxf8f6f4, M_NONE, T_E4M3, T_E5M2, T_UE8M0);
    tensor_op op;
    uint64_t a[16 * 32], b[32 * 8], c[16 * 8], d[16 * 8];
    scaling s = {.blocks = 1};
    REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
    CHECK_EQ_I64(op.scales, 1);
    CHECK_EQ_I64(op.standing, TENSOR_PUBLISHED);
    fill(a, 16 * 32, 0x38); /* 1 */
    fill(b, 32 * 8, 0x3E);  /* 1.5 */
    fill(c, 16 * 8, 0);
    for (int row = 0; row < 16; row++)
        s.a[row][0] = (uint8_t)(127 + row);
    for (int col = 0; col < 8; col++)
        s.b[col][0] = (uint8_t)(127 - 3 * col);
    for (int n = 0; n < 4 * 2 * 4; n++) {
        s.byte_a = n % 4;
        s.thread_a = n / 4 % 2;
        s.byte_b = 3 - n % 4;
        s.thread_b = n / 8;
        run_scaled(&op, 8, a, b, c, &s, d);
        for (int i = 0; i < 16 * 8; i++)
            CHECK_EQ_F32(f32_from(d[i]), ldexpf(48, i / 8 - 3 * (i % 8)));
    }
}

TEST_CASE(TensorScaled, BlocksOfMxf4)
{
    const pvm_inst inst = scaled_instruction(M_kind__mxf4, M_NONE, T_E2M1, T_E2M1, T_UE8M0);
    tensor_op op;
    uint64_t a[16 * 64], b[64 * 8], c[16 * 8], d[16 * 8];
    scaling s = {.blocks = 2};
    REQUIRE(tensor_find(&inst, (pvm_target){121, 'f'}, &op));
    CHECK_EQ_I64(op.scales, 2);
    for (int i = 0; i < 16 * 64; i++)
        a[i] = i % 64 < 32 ? 2 : 5; /* 1, then 3 */
    fill(b, 64 * 8, 0xB);           /* -1.5 */
    fill(c, 16 * 8, f32_bits(100));
    for (int row = 0; row < 16; row++) {
        s.a[row][0] = (uint8_t)(127 + row % 4);
        s.a[row][1] = (uint8_t)(127 - row % 3);
    }
    for (int col = 0; col < 8; col++) {
        s.b[col][0] = (uint8_t)(127 + col % 2);
        s.b[col][1] = (uint8_t)(127 + col / 2);
    }
    for (int n = 0; n < 2 * 2 * 4; n++) {
        s.byte_a = n % 2 * 2;
        s.thread_a = n / 2 % 2;
        s.byte_b = 2 - n % 2 * 2;
        s.thread_b = n / 4;
        run_scaled(&op, 4, a, b, c, &s, d);
        for (int i = 0; i < 16 * 8; i++) {
            const int row = i / 8, col = i % 8;
            CHECK_EQ_F32(f32_from(d[i]),
                         100 + ldexpf(-48, row % 4 + col % 2) + ldexpf(-144, -(row % 3) + col / 2));
        }
    }
}

TEST_CASE(TensorScaled, Nvf4ScalesOfSixteen)
{
    const pvm_inst inst = scaled_instruction(M_kind__mxf4nvf4, M_scale_vec__4X, T_E2M1, T_E2M1, T_UE4M3);
    tensor_op op;
    uint64_t a[16 * 64], b[64 * 8], c[16 * 8], d[16 * 8];
    scaling s = {.blocks = 4, .thread_a = 1, .thread_b = 2};
    REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
    fill(a, 16 * 64, 7); /* 6 */
    fill(b, 64 * 8, 1);  /* 0.5 */
    fill(c, 16 * 8, f32_bits(-1));
    for (int row = 0; row < 16; row++)
        memcpy(s.a[row], (const uint8_t[4]){0x3C, 0xB0, 0x01, 0x00},
               4); /* 1.5, 0.5 (sign ignored), 2^-9, 0 */
    for (int col = 0; col < 8; col++)
        memcpy(s.b[col], (const uint8_t[4]){0x38, 0x40, 0x48, 0x7E}, 4); /* 1, 2, 4, 448 */
    run_scaled(&op, 4, a, b, c, &s, d);
    for (int i = 0; i < 16 * 8; i++) /* 48 * (1.5 + 1 + 2^-7 + 0) - 1 */
        CHECK_EQ_F32(f32_from(d[i]), 119.375f);
    s.a[9][2] = 0x7F; /* NaN: the whole row */
    s.b[4][3] = 0xFF; /* NaN with the ignored sign bit: the whole column */
    run_scaled(&op, 4, a, b, c, &s, d);
    for (int i = 0; i < 16 * 8; i++)
        CHECK_EQ_U32((uint32_t)d[i], i / 8 == 9 || i % 8 == 4 ? 0x7FFFFFFF : f32_bits(119.375f));
}

/* A group whose products cancel keeps its exponent: what lies 36 bits below is cut. One of zeros does not. */
TEST_CASE(TensorScaled, CancelledGroupsStillAlign)
{
    const pvm_inst inst = scaled_instruction(M_kind__mxf4, M_scale_vec__2X, T_E2M1, T_E2M1, T_UE8M0);
    tensor_op op;
    uint64_t a[16 * 64], b[64 * 8], c[16 * 8], d[16 * 8];
    scaling s = {.blocks = 2};
    REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
    for (int i = 0; i < 16 * 64; i++) {
        const int row = i / 64, k = i % 64;
        const uint64_t first = row < 8 ? (k % 2 ? 2 : 10) : 0; /* 1, -1 in turn, or zeros */
        a[i] = k < 32 ? first : 2;
    }
    fill(b, 64 * 8, 2);
    fill(c, 16 * 8, 0);
    for (int i = 0; i < 16; i++) {
        s.a[i][0] = 127;
        s.a[i][1] = 127 - 40;
        s.b[i % 8][0] = s.b[i % 8][1] = 127;
    }
    run_scaled(&op, 4, a, b, c, &s, d);
    for (int i = 0; i < 16 * 8; i++)
        CHECK_EQ_U32((uint32_t)d[i], i / 8 < 8 ? 0 : f32_bits(ldexpf(32, -40)));
    fill(c, 16 * 8, 0xFF800000);
    run_scaled(&op, 4, a, b, c, &s, d);
    CHECK_EQ_U32((uint32_t)d[0], 0xFF800000);
    fill(c, 16 * 8, 0xFF800001);
    run_scaled(&op, 4, a, b, c, &s, d);
    CHECK_EQ_U32((uint32_t)d[0], 0x7FFFFFFF);
}

/* ---- random values against the rules written plainly in f64 ---- */

static double e2m1(uint64_t bits)
{
    static const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return bits & 8 ? -values[bits & 7] : values[bits & 7];
}

static double scale_value(bool ue4m3, uint8_t bits, int *exp)
{
    const int field = bits >> 3 & 15;
    *exp = ue4m3 ? (field ? field : 1) - 7 : bits - 127;
    return ue4m3 ? (field ? 1 + (bits & 7) / 8.0 : (bits & 7) / 8.0) : 1;
}

static uint32_t toward_zero(double value)
{
    const float nearest = (float)value;
    if (fabs(value) >= ldexp(1, 128))
        return f32_bits(value < 0 ? -INFINITY : INFINITY);
    return f32_bits(fabs((double)nearest) > fabs(value) ? nextafterf(nearest, 0) : nearest);
}

static uint32_t plain_fp4(bool ue4m3, const scaling *s, int row, int col, const uint64_t *a,
                          const uint64_t *b, float c)
{
    double value[5];
    int exp[5], top = -139;
    for (int g = 0; g < 4; g++) {
        double sum = 0;
        bool some = false;
        int ea, eb;
        const double sa = scale_value(ue4m3, s->a[row][g * s->blocks / 4], &ea);
        const double sb = scale_value(ue4m3, s->b[col][g * s->blocks / 4], &eb);
        for (int k = 16 * g; k < 16 * g + 16; k++) {
            sum += e2m1(a[row * 64 + k]) * e2m1(b[k * 8 + col]);
            some |= e2m1(a[row * 64 + k]) * e2m1(b[k * 8 + col]) != 0;
        }
        value[g] = ldexp(sum * sa * sb, ea + eb);
        exp[g] = some && sa * sb != 0 ? ea + eb : -139;
    }
    value[4] = c;
    exp[4] = c == 0 ? -139 : ilogbf(c) < -126 ? -126 : ilogbf(c);
    for (int g = 0; g < 5; g++)
        top = exp[g] > top ? exp[g] : top;
    double total = 0;
    for (int g = 0; g < 5; g++)
        total += trunc(ldexp(value[g], 35 - top));
    return toward_zero(ldexp(total, top - 35));
}

TEST_CASE(TensorScaled, RandomFp4)
{
    static const struct {
        pvm_mod kind, vector;
        pvm_type scale;
        int blocks;
    } kinds[] = {
        {M_kind__mxf4, M_scale_vec__2X, T_UE8M0, 2},
        {M_kind__mxf4nvf4, M_scale_vec__2X, T_UE8M0, 2},
        {M_kind__mxf4nvf4, M_scale_vec__4X, T_UE4M3, 4},
        {M_kind__mxf4nvf4, M_scale_vec__4X, T_UE8M0, 4},
    };
    uint64_t a[16 * 64], b[64 * 8], c[16 * 8], d[16 * 8], state = 44;
    for (int n = 0; n < 60; n++) {
        const bool ue4m3 = kinds[n % 4].scale == T_UE4M3;
        const pvm_inst inst =
            scaled_instruction(kinds[n % 4].kind, kinds[n % 4].vector, T_E2M1, T_E2M1, kinds[n % 4].scale);
        scaling s = {.blocks = kinds[n % 4].blocks, .thread_a = n / 3 % 2, .thread_b = n / 3 % 4};
        tensor_op op;
        int wrong = 0;
        REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
        for (int i = 0; i < 16 * 64; i++)
            a[i] = next_random(&state) % (n % 2 ? 16 : 3);
        for (int i = 0; i < 64 * 8; i++)
            b[i] = next_random(&state) % 16;
        for (int i = 0; i < 16 * 8; i++) /* from mode to mode: about 1, any size, 0 */
            c[i] = n % 4 == 0   ? 0
                   : n % 4 == 1 ? (uint32_t)next_random(&state) & 0xBFFFFFFF
                                : f32_bits((float)(i - 60));
        for (int i = 0; i < 16 * 4; i++) {
            const uint64_t r = next_random(&state);
            s.a[i / 4][i % 4] = (uint8_t)(ue4m3 ? r % 127 : n % 5 == 4 ? r % 255 : 120 + r % 16);
            s.b[i / 4 % 8][i % 4] = (uint8_t)(ue4m3        ? (r >> 8) % 127
                                              : n % 5 == 4 ? (r >> 8) % 255
                                                           : 120 + (r >> 8) % 16);
        }
        run_scaled(&op, 4, a, b, c, &s, d);
        for (int i = 0; i < 16 * 8; i++)
            wrong += (uint32_t)d[i] != plain_fp4(ue4m3, &s, i / 8, i % 8, a, b, f32_from(c[i]));
        CHECK_EQ_I64(wrong, 0);
    }
}

/* The number that bits without a sign stand for; those of the infinity: the least beyond the largest. */
static double number_of(pvm_type type, uint32_t bits)
{
    const int mantissa = type == T_F16 ? 10 : 23, bias = type == T_F16 ? 15 : 127;
    const int field = (int)(bits >> mantissa);
    const double fraction = (double)(bits & ((1u << mantissa) - 1)) + (field ? (double)(1u << mantissa) : 0);
    return ldexp(fraction, (field ? field : 1) - bias - mantissa);
}

static void check_scaled_down(pvm_type type, uint32_t bits, int shift)
{
    const uint32_t sign = bits & tensor_sign_bit(type), largest = type == T_F16 ? 0x7BFF : 0x7F7FFFFF;
    const uint32_t made = tensor_scaled_down(type, bits, shift), magnitude = made ^ sign;
    if ((bits ^ sign) > largest) { /* NaN and infinities stay */
        CHECK_EQ_U32(made, bits);
        return;
    }
    const double wanted = ldexp(number_of(type, bits ^ sign), -shift);
    if (magnitude > largest || number_of(type, magnitude) > wanted ||
        number_of(type, magnitude + 1) <= wanted)
        FAIL("%08x times 2^-%d is %08x", (unsigned)bits, shift, (unsigned)made);
}

/* Cut off towards zero: the largest number that is not above the quotient. */
TEST_CASE(TensorScaled, DividesByPowersOfTwo)
{
    uint64_t random = 20260;
    CHECK_EQ_U32(tensor_sign_bit(T_F16), 0x8000);
    CHECK_EQ_U32(tensor_sign_bit(T_F32), 0x80000000);
    for (int shift = 0; shift < 16; shift++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++)
            check_scaled_down(T_F16, bits, shift);
        for (uint32_t field = 0; field < 0x200; field++)
            for (int i = 0; i < 8; i++)
                check_scaled_down(
                    T_F32, field << 23 | (uint32_t)(i < 7 ? next_random(&random) & 0x7FFFFF : 0), shift);
    }
}
