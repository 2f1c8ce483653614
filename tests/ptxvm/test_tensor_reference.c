/* Every floating-point row of the model against a second, plain implementation of the rules: addends as long
 * integers, one element at a time, rounding by the C library. Random numbers of every size, with zeros,
 * subnormals, Inf and NaN. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fragments.h"
#include "test.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ *state >> 33;
    return x * 0xFF51AFD7ED558CCDu ^ x >> 29;
}

typedef struct plain_format {
    pvm_type type;
    int bits, container, mantissa, bias;
    enum { IEEE, ONE_NAN, FINITE } specials;
} plain_format;

static const plain_format plain_formats[] = {
    {T_F16, 16, 16, 10, 15, IEEE}, {T_BF16, 16, 16, 7, 127, IEEE}, {T_TF32, 32, 32, 23, 127, IEEE},
    {T_E4M3, 8, 8, 3, 7, ONE_NAN}, {T_E5M2, 8, 8, 2, 15, IEEE},    {T_E3M2, 6, 8, 2, 3, FINITE},
    {T_E2M3, 6, 8, 3, 1, FINITE},  {T_E2M1, 4, 8, 1, 1, FINITE},
};

static const plain_format *plain_format_of(pvm_type type)
{
    for (size_t i = 0; i < sizeof plain_formats / sizeof *plain_formats; i++)
        if (plain_formats[i].type == type)
            return &plain_formats[i];
    return NULL;
}

/* value = sign * significand * 2^unit; exp is that of the leading place (1.xxx or, subnormal, 0.xxx). */
typedef struct plain_number {
    double value; /* also Inf and NaN */
    int exp;
} plain_number;

static plain_number plain_read(const plain_format *f, uint32_t bits)
{
    if (f->type == T_TF32)
        bits &= ~0x1FFFu;
    const int width = f->bits - 1 - f->mantissa;
    const uint32_t field = bits >> f->mantissa & ((1u << width) - 1),
                   fraction = bits & ((1u << f->mantissa) - 1);
    const double sign = bits >> (f->bits - 1) & 1 ? -1 : 1;
    const bool top = field == (1u << width) - 1;
    if (f->specials == IEEE && top)
        return (plain_number){fraction ? NAN : sign * INFINITY, 0};
    if (f->specials == ONE_NAN && top && fraction == (1u << f->mantissa) - 1)
        return (plain_number){NAN, 0};
    const int exp = (field ? (int)field : 1) - f->bias;
    const double significand = fraction + (field ? ldexp(1, f->mantissa) : 0);
    return (plain_number){sign * ldexp(significand, exp - f->mantissa), exp};
}

static plain_number plain_read_c(bool f16, uint32_t bits)
{
    static const plain_format f32 = {T_F32, 32, 32, 23, 127, IEEE};
    return plain_read(f16 ? plain_format_of(T_F16) : &f32, bits);
}

typedef struct plain_rule {
    int length, fraction, zero32, zero16;
    bool short_f32;
} plain_rule;

static uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7FFFFFFF : bits;
}

/* An exact value (an f64) to the result's format. */
static uint32_t plain_round(double value, bool f16, bool short_f32)
{
    if (value != value)
        return f16 ? 0x7FFF : 0x7FFFFFFF;
    const uint32_t sign = signbit(value) ? 1 : 0;
    const double x = fabs(value), largest = f16 ? 65520 : ldexp(1, 128);
    if (x >= largest)
        return f16 ? sign << 15 | 0x7C00 : sign << 31 | 0x7F800000;
    const int lowest = f16 ? -14 : -126, mantissa = f16 ? 10 : short_f32 ? 13 : 23;
    const int exp = x > 0 && ilogb(x) > lowest ? ilogb(x) : lowest;
    const double units = ldexp(x, mantissa - exp);
    const double kept = ldexp(f16 ? nearbyint(units) : trunc(units), exp - mantissa);
    if (!f16)
        return bits_of_f32((float)(sign ? -kept : kept));
    const int kept_exp = kept > 0 && ilogb(kept) > -14 ? ilogb(kept) : -14;
    return sign << 15 | (uint32_t)(((kept_exp + 14) << 10) + (int)ldexp(kept, 10 - kept_exp));
}

/* One operation by the rules as they are written down. */
static uint32_t plain_fuse(const plain_rule *rule, bool f16, const plain_format *fa, const plain_format *fb,
                           int n, const uint64_t *a, const uint64_t *b, int b_step, uint32_t c_bits,
                           int scale_exp)
{
    const plain_number c = plain_read_c(f16, c_bits);
    double special = c.value - c.value; /* 0, or NaN where c is Inf or NaN */
    double infinities = isinf(c.value) ? c.value : 0, value[65];
    int exp[65], top = INT32_MIN;
    const int zero = f16 ? rule->zero16 : rule->zero32;
    bool negative_zero = true;
    for (int i = 0; i <= n; i++) {
        const plain_number x = i < n ? plain_read(fa, (uint32_t)a[i]) : c;
        const plain_number y = i < n ? plain_read(fb, (uint32_t)b[i * b_step]) : (plain_number){1, 0};
        value[i] = x.value * y.value;
        exp[i] = value[i] == 0 ? zero : x.exp + y.exp + (i < n ? scale_exp : 0);
        special += value[i] - value[i];
        if (i < n && isinf(value[i]))
            infinities += value[i];
        if (isnan(value[i]))
            infinities = NAN;
        negative_zero &= value[i] == 0 && signbit(value[i]);
        if (i < n)
            value[i] = ldexp(value[i], scale_exp);
        if (exp[i] > top)
            top = exp[i];
    }
    if (special != 0) /* NaN: some addend is not finite */
        return plain_round(infinities, f16, false);
    __int128 sum = 0;
    for (int i = 0; i <= n; i++)
        sum += (__int128)trunc(ldexp(value[i], rule->fraction - top));
    if (negative_zero)
        return f16 ? 0x8000 : 0x80000000;
    return plain_round(ldexp((double)(int64_t)sum, top - rule->fraction), f16, rule->short_f32);
}

static uint32_t plain_dot(const plain_rule *rule, bool f16, const plain_format *fa, const plain_format *fb,
                          int k, const uint64_t *a, const uint64_t *b, int b_step, uint32_t c, int scale_exp)
{
    for (int i = 0; i < k; i += rule->length)
        c = plain_fuse(rule, f16, fa, fb, k - i < rule->length ? k - i : rule->length, a + i, b + i * b_step,
                       b_step, c, scale_exp);
    return c;
}

/* Rows of the table in docs/tensor-cores.md, once more. */
enum { A24_8, A24_4, H25_16, H25_8, H25_32, ADA_8 };
static const plain_rule plain_rules[] = {
    [A24_8] = {8, 24, -132, -20, false},   [A24_4] = {4, 24, -132, -20, false},
    [H25_16] = {16, 25, -133, -21, false}, [H25_8] = {8, 25, -133, -21, false},
    [H25_32] = {32, 25, -133, -21, false}, [ADA_8] = {16, 13, -133, -21, true},
};

typedef struct plain_case {
    int sm;
    pvm_mod shape;
    pvm_type result, a, b;
    tensor_standing standing;
    int rule;
    bool by_f16; /* the expansion of fp8 by f16 instructions */
} plain_case;

#define PAIR(sm, shape, a, standing, ...)                                                                    \
    {sm, shape, T_F32, a, a, standing, __VA_ARGS__},                                                         \
    {                                                                                                        \
        sm, shape, T_F16, a, a, standing, __VA_ARGS__                                                        \
    }

static const plain_case plain_cases[] = {
    PAIR(75, M_m16n8k8, T_F16, TENSOR_PUBLISHED, A24_8, false),
    PAIR(80, M_m16n8k8, T_F16, TENSOR_MEASURED, A24_8, false),
    PAIR(86, M_m16n8k16, T_F16, TENSOR_PUBLISHED, A24_8, false),
    {80, M_m16n8k8, T_F32, T_BF16, T_BF16, TENSOR_MEASURED, A24_8, false},
    {87, M_m16n8k16, T_F32, T_BF16, T_BF16, TENSOR_PUBLISHED, A24_8, false},
    {80, M_m16n8k4, T_F32, T_TF32, T_TF32, TENSOR_MEASURED, A24_4, false},
    {80, M_m16n8k8, T_F32, T_TF32, T_TF32, TENSOR_PUBLISHED, A24_4, false},
    PAIR(88, M_m16n8k16, T_F16, TENSOR_ASSUMED, A24_8, false),
    PAIR(89, M_m16n8k16, T_F16, TENSOR_PUBLISHED, A24_8, false),
    {89, M_m16n8k8, T_F32, T_TF32, T_TF32, TENSOR_PUBLISHED, A24_4, false},
    PAIR(89, M_m16n8k32, T_E4M3, TENSOR_MEASURED, ADA_8, false),
    PAIR(89, M_m16n8k16, T_E5M2, TENSOR_MEASURED, ADA_8, false),
    PAIR(90, M_m16n8k8, T_F16, TENSOR_MEASURED, H25_16, false),
    PAIR(90, M_m16n8k16, T_F16, TENSOR_MEASURED, H25_16, false),
    {90, M_m16n8k16, T_F32, T_BF16, T_BF16, TENSOR_MEASURED, H25_16, false},
    {90, M_m16n8k8, T_F32, T_TF32, T_TF32, TENSOR_PUBLISHED, H25_8, false},
    PAIR(90, M_m16n8k32, T_E5M2, TENSOR_MEASURED, H25_16, true),
    PAIR(90, M_m16n8k16, T_E4M3, TENSOR_PUBLISHED, H25_8, true),
    {100, M_m16n8k16, T_F32, T_BF16, T_BF16, TENSOR_MEASURED, H25_16, false},
    PAIR(100, M_m16n8k32, T_E4M3, TENSOR_MEASURED, H25_16, true),
    PAIR(103, M_m16n8k16, T_F16, TENSOR_ASSUMED, H25_16, false),
    PAIR(110, M_m16n8k32, T_E4M3, TENSOR_ASSUMED, H25_16, true),
    PAIR(120, M_m16n8k16, T_F16, TENSOR_PUBLISHED, H25_16, false),
    {120, M_m16n8k8, T_F32, T_TF32, T_TF32, TENSOR_PUBLISHED, H25_8, false},
    PAIR(120, M_m16n8k32, T_E4M3, TENSOR_PUBLISHED, H25_32, false),
    PAIR(121, M_m16n8k16, T_E5M2, TENSOR_PUBLISHED, H25_32, false),
    {120, M_m16n8k32, T_F32, T_E2M1, T_E4M3, TENSOR_PUBLISHED, H25_32, false},
    {120, M_m16n8k32, T_F16, T_E5M2, T_E3M2, TENSOR_PUBLISHED, H25_32, false},
    {121, M_m16n8k32, T_F32, T_E3M2, T_E2M3, TENSOR_PUBLISHED, H25_32, false},
};

static int n_plain_cases(void)
{
    return sizeof plain_cases / sizeof *plain_cases;
}

static const char *type_name(pvm_type type)
{
    static const char *const names[] = {
#define X(text, name, bits) [T_##name] = #text,
        PVM_TYPES(X)
#undef X
    };
    return names[type];
}

static void plain_case_name(int index, char *text, size_t size)
{
    const plain_case *p = &plain_cases[index];
    int m, n, k;
    pvm_shape_of(p->shape, &m, &n, &k);
    snprintf(text, size, "sm_%d_m16n8k%d_%s_%s_%s", p->sm, k, type_name(p->result), type_name(p->a),
             type_name(p->b));
}

/* Where in its container an element of the format lies. */
static uint64_t in_container(const plain_format *f, uint32_t bits)
{
    return f->type == T_E2M1 ? bits << 2 : bits;
}

/* Numbers of about the same size (mode 0), of any size (1), tiny (2), with Inf and NaN among them (3). Seldom
 * 0. */
static uint32_t random_number(const plain_format *f, int mode, uint64_t *state)
{
    const uint64_t r = next_random(state);
    const int width = f->bits - 1 - f->mantissa;
    const uint32_t last = (1u << width) - 1, sign = (uint32_t)(r >> 60 & 1) << (f->bits - 1);
    uint32_t fraction = (uint32_t)r & ((1u << f->mantissa) - 1), field = (uint32_t)(r >> 24) & last;
    if ((r >> 50 & 31) == 0)
        return sign;
    if (mode == 0)
        field = (uint32_t)f->bias + (uint32_t)(r >> 24) % 4 - (f->bias > 1);
    if (mode == 2)
        field = (uint32_t)(r >> 24) % 3;
    if (mode == 3 && (r >> 40 & 63) == 0 && f->specials != FINITE)
        return sign | last << f->mantissa |
               (r >> 48 & 1 || f->specials == ONE_NAN ? (1u << f->mantissa) - 1 : 0);
    if (f->specials != FINITE && field == last &&
        !(f->specials == ONE_NAN && fraction + 1 < (1u << f->mantissa)))
        field = last - 1;
    return sign | (field & last) << f->mantissa | fraction;
}

static uint32_t random_c(bool f16, int mode, uint64_t *state)
{
    static const plain_format f32 = {T_F32, 32, 32, 23, 127, IEEE};
    const plain_format *f = f16 ? plain_format_of(T_F16) : &f32;
    if (mode == 4)
        return next_random(state) & 1 ? 0 : 1u << (f->bits - 1);
    return random_number(f, mode, state);
}

/* fp8 by f16: elements with k % 4 in {0, 1}, then the others, from +0; then an IEEE addition. */
static uint32_t plain_by_f16(const plain_case *p, const plain_format *f, int k, const uint64_t *a,
                             const uint64_t *b, int b_step, uint32_t c)
{
    const plain_format *half = plain_format_of(T_F16);
    uint64_t x[2][16], y[2][16];
    const bool f16 = p->result == T_F16;
    for (int i = 0; i < k; i++) {
        const int which = i % 4 / 2, at = i / 4 * 2 + i % 2;
        x[which][at] = plain_round(plain_read(f, (uint32_t)a[i]).value, true, false);
        y[which][at] = plain_round(plain_read(f, (uint32_t)b[i * b_step]).value, true, false);
    }
    uint32_t sum = 0;
    for (int which = 0; which < 2; which++)
        sum = plain_fuse(&plain_rules[p->rule], f16, half, half, k / 2, x[which], y[which], 1, sum, 0);
    const double total = plain_read_c(f16, sum).value + plain_read_c(f16, c).value;
    return f16 ? plain_round(total, true, false) : bits_of_f32((float)total);
}

static uint32_t plain_element(const plain_case *p, const tensor_op *op, const uint64_t *a, const uint64_t *b,
                              const uint64_t *c, int i, int j)
{
    const plain_format *fa = plain_format_of(p->a), *fb = plain_format_of(p->b);
    const uint32_t addend = (uint32_t)c[i * op->n + j];
    if (p->by_f16)
        return plain_by_f16(p, fa, op->k, a + i * op->k, b + j, op->n, addend);
    return plain_dot(&plain_rules[p->rule], p->result == T_F16, fa, fb, op->k, a + i * op->k, b + j, op->n,
                     addend, 0);
}

static int compare_once(const plain_case *p, const tensor_op *op, int mode, uint64_t *state)
{
    const plain_format *fa = plain_format_of(p->a), *fb = plain_format_of(p->b);
    uint64_t a[16 * 32], b[32 * 8], a_held[16 * 32], b_held[32 * 8], c[16 * 8], d[16 * 8];
    int wrong = 0;
    for (int i = 0; i < 16 * op->k; i++)
        a_held[i] = in_container(fa, a[i] = random_number(fa, mode, state));
    for (int i = 0; i < 8 * op->k; i++)
        b_held[i] = in_container(fb, b[i] = random_number(fb, mode == 4 ? 0 : mode, state));
    for (int i = 0; i < 16 * 8; i++)
        c[i] = random_c(p->result == T_F16, mode, state);
    mma_run(op, fa->container, a_held, b_held, c, d, NULL);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            const uint32_t expected = plain_element(p, op, a, b, c, i, j);
            if (d[i * 8 + j] != expected && wrong++ == 0)
                FAIL("mode %d, row %d, column %d: %08X, expected %08X", mode, i, j, (unsigned)d[i * 8 + j],
                     expected);
        }
    return wrong;
}

TEST_EACH(TensorReference, FastAndPlainAgree, n_plain_cases, plain_case_name)
{
    const plain_case *p = &plain_cases[index];
    const pvm_inst inst = mma_instruction(p->shape, p->result, p->a, p->b, p->result);
    tensor_op op;
    uint64_t state = 2026 + (uint64_t)index;
    REQUIRE(tensor_find(&inst, (pvm_target){p->sm, 0}, &op));
    CHECK_EQ_I64(op.standing, p->standing);
    const bool wide = op.wide;
    for (int round = 0; round < 50; round++) {
        op.wide = wide && round % 4;
        if (compare_once(p, &op, round % 5, &state))
            return;
    }
}

/* mxf8f6f4: the scales' exponents come in addition; subnormal and too large results among them. */
TEST_CASE(TensorReference, ScaledMxf8f6f4)
{
    static const pvm_type types[][2] = {
        {T_E4M3, T_E4M3}, {T_E5M2, T_E2M1}, {T_E3M2, T_E5M2}, {T_E2M3, T_E3M2}};
    const plain_rule *rule = &plain_rules[H25_32];
    uint64_t state = 31;
    for (int n = 0; n < 40; n++) {
        const plain_format *fa = plain_format_of(types[n % 4][0]), *fb = plain_format_of(types[n % 4][1]);
        uint64_t a[16 * 32], b[32 * 8], a_held[16 * 32], b_held[32 * 8], c[16 * 8], d[16 * 8];
        uint32_t a_scale[32], b_scale[32];
        const uint16_t zero[32] = {0};
        const void *const scale[6] = {a_scale, zero, zero, b_scale, zero, zero};
        pvm_inst inst = mma_instruction(M_m16n8k32, T_F32, fa->type, fb->type, T_F32);
        inst.mod[S_KIND] = M_kind__mxf8f6f4;
        inst.mod[S_SCALE] = M_block_scale;
        inst.mod[S_SCALEVEC] = M_scale_vec__1X;
        inst.mod[S_STYPE] = M_TYPE(T_UE8M0);
        tensor_op op;
        int wrong = 0;
        REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
        op.wide &= n % 3 != 0;
        for (int i = 0; i < 16 * 32; i++)
            a_held[i] = in_container(fa, (uint32_t)(a[i] = random_number(fa, n % 5, &state)));
        for (int i = 0; i < 32 * 8; i++)
            b_held[i] = in_container(fb, (uint32_t)(b[i] = random_number(fb, n % 5, &state)));
        for (int i = 0; i < 16 * 8; i++)
            c[i] = random_c(false, n % 5, &state);
        for (int i = 0; i < 32; i++) {
            a_scale[i] = (uint32_t)(n / 5 % 2 ? next_random(&state) % 255 : 120 + next_random(&state) % 16);
            b_scale[i] = (uint32_t)(n / 5 % 2 ? next_random(&state) % 255 : 120 + next_random(&state) % 16);
        }
        mma_run(&op, 8, a_held, b_held, c, d, scale);
        for (int i = 0; i < 16 * 8; i++) {
            const int row = i / 8, col = i % 8, lane = row % 8 * 4 + row / 8;
            const int exp = (int)a_scale[lane] + (int)b_scale[col * 4] - 254;
            wrong +=
                d[i] != plain_dot(rule, false, fa, fb, 32, a + row * 32, b + col, 8, (uint32_t)c[i], exp);
        }
        CHECK_EQ_I64(wrong, 0);
    }
}

/* Whole fragments by the places that tensor_mma_element gives (which test_tensor_layout.c checks), for wmma
 * and m8n8k4. Matrices are row-major; those of m8n8k4's four products follow each other. */
typedef struct whole {
    uint64_t a[512], b[512], c[256], d[256];
} whole;

static int quad_of(const tensor_op *op, int lane)
{
    return op->k == 4 && op->atype == T_F16 ? lane % 16 / 4 : 0;
}

/* Copies a matrix into a fragment's registers, or back out of them. */
static void move_whole(const tensor_op *op, char matrix, uint64_t *values, fragment *f, bool out)
{
    const pvm_type type = matrix == 'c' ? op->ctype : matrix == 'd' ? op->dtype : op->atype;
    const int bits = type == T_F16 || type == T_BF16 ? 16 : 32, per = 32 / bits;
    const int rows = matrix == 'b' ? op->k : op->m, cols = matrix == 'a' ? op->k : op->n;
    const int products = op->k == 4 && op->atype == T_F16 ? 4 : 1;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < products * rows * cols / 32; i++) {
            const tensor_element at = tensor_mma_element(op, matrix, lane, i / per, i % per);
            uint64_t *value = values + quad_of(op, lane) * rows * cols + at.row * cols + at.col;
            if (out)
                *value = fragment_get(f, bits, lane, i);
            else
                fragment_set(f, bits, lane, i, *value);
        }
}

static void run_whole(const tensor_op *op, whole *w)
{
    fragment a = {0}, b = {0}, c = {0}, d = {0};
    fragment_pointers pa = fragment_all(&a), pb = fragment_all(&b), pc = fragment_all(&c),
                      pd = fragment_all(&d);
    move_whole(op, 'a', w->a, &a, false);
    move_whole(op, 'b', w->b, &b, false);
    move_whole(op, 'c', w->c, &c, false);
    op->run(op, pd.r, (const void *const *)pa.r, (const void *const *)pb.r, (const void *const *)pc.r, NULL);
    move_whole(op, 'd', w->d, &d, true);
}

static void fill_whole(const tensor_op *op, whole *w, int mode, uint64_t *state)
{
    const plain_format *f = plain_format_of(op->atype);
    for (int i = 0; i < 512; i++) {
        w->a[i] = random_number(f, mode, state);
        w->b[i] = random_number(f, mode, state);
    }
    for (int i = 0; i < 256; i++)
        w->c[i] = random_c(op->ctype == T_F16, mode, state);
}

/* wmma of tf32 is two operations of 4 on every SM; where mma has one of 8 they differ somewhere. */
TEST_CASE(TensorReference, WmmaTf32IsAChainOfFours)
{
    static const plain_rule fours = {4, 25, -133, -21, false};
    const plain_format *f = plain_format_of(T_TF32);
    pvm_inst inst = mma_instruction(M_m16n16k8, T_F32, T_TF32, T_TF32, T_F32);
    uint64_t state = 8;
    int wrong = 0, as_eight = 0;
    tensor_op op;
    whole w;
    inst.op = OP_wmma;
    inst.mod[S_SUB] = M_mma;
    REQUIRE(tensor_find(&inst, (pvm_target){90, 0}, &op));
    CHECK_EQ_I64(op.standing, TENSOR_PUBLISHED);
    fill_whole(&op, &w, 0, &state);
    run_whole(&op, &w);
    for (int i = 0; i < 256; i++) {
        const uint64_t *row = w.a + i / 16 * 8, *col = w.b + i % 16;
        wrong += w.d[i] != plain_dot(&fours, false, f, f, 8, row, col, 16, (uint32_t)w.c[i], 0);
        as_eight +=
            w.d[i] == plain_dot(&plain_rules[H25_8], false, f, f, 8, row, col, 16, (uint32_t)w.c[i], 0);
    }
    CHECK_EQ_I64(wrong, 0);
    CHECK(as_eight < 256);
}

static uint32_t to_f32(bool f16, uint64_t bits)
{
    return f16 ? bits_of_f32((float)plain_read_c(true, (uint32_t)bits).value) : (uint32_t)bits;
}

static uint32_t to_f16(uint32_t f32)
{
    return plain_round(plain_read_c(false, f32).value, true, false);
}

/* wmma of f16 whose c and d differ: f32 all through, d rounded once more at the end. */
TEST_CASE(TensorReference, WmmaWithMixedAccumulators)
{
    static const pvm_mod shapes[] = {M_m16n16k16, M_m32n8k16, M_m8n32k16};
    const plain_format *f = plain_format_of(T_F16);
    uint64_t state = 12;
    for (int n = 0; n < 30; n++) {
        const bool d16 = n % 2, hopper = n / 2 % 2;
        pvm_inst inst =
            mma_instruction(shapes[n % 3], d16 ? T_F16 : T_F32, T_F16, T_F16, d16 ? T_F32 : T_F16);
        tensor_op op;
        whole w;
        int wrong = 0;
        inst.op = OP_wmma;
        inst.mod[S_SUB] = M_mma;
        REQUIRE(tensor_find(&inst, (pvm_target){hopper ? 90 : 75, 0}, &op));
        fill_whole(&op, &w, n % 5, &state);
        run_whole(&op, &w);
        for (int i = 0; i < op.m * op.n; i++) {
            const uint32_t sum =
                plain_dot(&plain_rules[hopper ? H25_16 : A24_8], false, f, f, 16, w.a + i / op.n * 16,
                          w.b + i % op.n, op.n, to_f32(!d16, w.c[i]), 0);
            wrong += w.d[i] != (d16 ? to_f16(sum) : sum);
        }
        CHECK_EQ_I64(wrong, 0);
    }
}

/* m8n8k4: a tensor instruction of four products on sm_75; from sm_80 on, f32 instructions, each rounded to
 * nearest. */
static uint32_t plain_quad(const tensor_op *op, bool turing, const uint64_t *a, const uint64_t *b, uint64_t c)
{
    static const plain_rule fours = {4, 24, -132, -20, false};
    const plain_format *f = plain_format_of(T_F16);
    const bool c16 = op->ctype == T_F16, d16 = op->dtype == T_F16;
    double product[4];
    if (turing)
        return plain_dot(&fours, d16, f, f, 4, a, b, 8, d16 ? (uint32_t)c : to_f32(c16, c), 0);
    for (int k = 0; k < 4; k++) /* exact */
        product[k] = plain_read(f, (uint32_t)a[k]).value * plain_read(f, (uint32_t)b[k * 8]).value;
    const float addend = (float)plain_read_c(c16, (uint32_t)c).value;
    if (d16) { /* two f16 products add up exactly in f64, so each line rounds once */
        const float low = (float)(product[0] + product[1]), high = (float)(product[2] + product[3]);
        return to_f16(bits_of_f32((addend + low) + high));
    }
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum = fmaf((float)product[k], 1, sum);
    return bits_of_f32(addend + sum);
}

TEST_CASE(TensorReference, Quads)
{
    static const pvm_type types[][2] = {{T_F32, T_F32}, {T_F32, T_F16}, {T_F16, T_F16}};
    uint64_t state = 16;
    for (int n = 0; n < 60; n++) {
        const bool turing = n / 3 % 2;
        const pvm_inst inst = mma_instruction(M_m8n8k4, types[n % 3][0], T_F16, T_F16, types[n % 3][1]);
        tensor_op op;
        whole w;
        int wrong = 0;
        REQUIRE(tensor_find(&inst, (pvm_target){turing ? 75 : 86, 0}, &op));
        fill_whole(&op, &w, n / 6 % 5, &state);
        run_whole(&op, &w);
        for (int i = 0; i < 4 * 64; i++) {
            const uint64_t *a = w.a + i / 64 * 32 + i % 64 / 8 * 4, *b = w.b + i / 64 * 32 + i % 8;
            wrong += w.d[i] != plain_quad(&op, turing, a, b, w.c[i]);
        }
        CHECK_EQ_I64(wrong, 0);
    }
}
