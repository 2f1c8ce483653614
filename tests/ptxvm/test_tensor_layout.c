/* Where elements lie: mma fragments against the ISA's text, f16 m8n8k4 in all its layouts, wmma fragments,
 * movmatrix. */
#include <stdio.h>
#include <string.h>

#include "fragments.h"
#include "test.h"

typedef struct shape_case {
    pvm_mod shape;
    pvm_type result, type;
    int bits; /* of an element's container */
    unsigned kind;
} shape_case;

static const shape_case shape_cases[] = {
    {M_m16n8k8, T_F32, T_F16, 16, 0},
    {M_m16n8k8, T_F16, T_F16, 16, 0},
    {M_m16n8k16, T_F32, T_BF16, 16, 0},
    {M_m16n8k16, T_F16, T_F16, 16, 0},
    {M_m16n8k4, T_F32, T_TF32, 32, 0},
    {M_m16n8k8, T_F32, T_TF32, 32, 0},
    {M_m8n8k4, T_F64, T_F64, 64, 0},
    {M_m16n8k4, T_F64, T_F64, 64, 0},
    {M_m16n8k8, T_F64, T_F64, 64, 0},
    {M_m16n8k16, T_F64, T_F64, 64, 0},
    {M_m8n8k16, T_S32, T_S8, 8, 0},
    {M_m16n8k16, T_S32, T_U8, 8, 0},
    {M_m16n8k32, T_S32, T_S8, 8, 0},
    {M_m8n8k32, T_S32, T_S4, 4, 0},
    {M_m16n8k32, T_S32, T_U4, 4, 0},
    {M_m16n8k64, T_S32, T_S4, 4, 0},
    {M_m8n8k128, T_S32, T_B1, 1, 0},
    {M_m16n8k128, T_S32, T_B1, 1, 0},
    {M_m16n8k256, T_S32, T_B1, 1, 0},
    {M_m16n8k16, T_F32, T_E4M3, 8, 0},
    {M_m16n8k32, T_F16, T_E5M2, 8, 0},
    {M_m16n8k32, T_F32, T_E2M1, 8, M_kind__f8f6f4},
    {M_m16n8k32, T_F32, T_E3M2, 8, M_kind__mxf8f6f4},
    {M_m16n8k64, T_F32, T_E2M1, 4, M_kind__mxf4},
    {M_m16n8k64, T_F32, T_E2M1, 4, M_kind__mxf4nvf4},
};

static int n_shape_cases(void)
{
    return sizeof shape_cases / sizeof *shape_cases;
}

static void shape_case_name(int index, char *text, size_t size)
{
    const shape_case *s = &shape_cases[index];
    int m, n, k;
    pvm_shape_of(s->shape, &m, &n, &k);
    snprintf(text, size, "m%dn%dk%d_bits%d_%d", m, n, k, s->bits, index);
}

static void compare_fragment(const tensor_op *op, char matrix, int bits)
{
    const int per = bits < 32 ? 32 / bits : 1, wide = matrix == 'a' ? op->k : op->n;
    uint8_t seen[16 * 256] = {0};
    int row, col, count = 0, wrong = 0;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; fragment_element(op->m, op->n, op->k, bits, matrix, lane, i, &row, &col);
             i++, count++) {
            const tensor_element at = tensor_mma_element(op, matrix, lane, i / per, i % per);
            wrong += at.row != row || at.col != col || seen[row * wide + col]++;
        }
    CHECK_EQ_I64(wrong, 0);
    CHECK_EQ_I64(count, matrix == 'a' ? op->m * op->k : matrix == 'b' ? op->k * op->n : op->m * op->n);
}

TEST_EACH(TensorLayout, MmaFollowsTheIsa, n_shape_cases, shape_case_name)
{
    const shape_case *s = &shape_cases[index];
    pvm_inst inst = mma_instruction(s->shape, s->result, s->type, s->type, s->result);
    inst.mod[S_KIND] = (uint16_t)s->kind;
    tensor_op op;
    REQUIRE(tensor_find(&inst, (pvm_target){120, 'a'}, &op));
    const int result_bits = s->result == T_F16 ? 16 : s->result == T_F64 ? 64 : 32;
    compare_fragment(&op, 'a', s->bits);
    compare_fragment(&op, 'b', s->bits);
    compare_fragment(&op, 'c', result_bits);
    compare_fragment(&op, 'd', result_bits);
}

/* ---- f16 m8n8k4 ---- */

static uint32_t small_f16(int value) /* 0..15 */
{
    static const uint16_t table[16] = {0,      0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700,
                                       0x4800, 0x4880, 0x4900, 0x4980, 0x4A00, 0x4A80, 0x4B00, 0x4B80};
    return table[value];
}

static float f32_from(uint32_t bits)
{
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

static int f16_to_int(uint32_t bits)
{
    if (bits == 0)
        return 0;
    const int exp = (int)(bits >> 10 & 31) - 15, significand = (int)(bits & 0x3FF) | 0x400;
    return exp >= 10 ? significand << (exp - 10) : significand >> (10 - exp);
}

static int a_of(int quad, int row, int k)
{
    return (row * 5 + k * 3 + quad) % 7;
}

static int b_of(int quad, int k, int col)
{
    return (col * 3 + k * 7 + 2 * quad) % 8;
}

static int c_of(int quad, int row, int col)
{
    return (row * 8 + col + quad) % 16;
}

/* The ISA: quad pairs of lanes {4q..4q+3, 16+4q..16+4q+3}, each its own 8x8x4. */
static void fill_quads(const tensor_op *op, fragment *a, fragment *b, fragment *c)
{
    for (int lane = 0; lane < 32; lane++) {
        const int quad = lane % 16 / 4, low = lane % 4, high = lane < 16 ? low : low + 4,
                  half = lane < 16 ? 0 : 4;
        for (int i = 0; i < 4; i++) {
            fragment_set(a, 16, lane, i,
                         small_f16(op->a_col ? a_of(quad, i + half, low) : a_of(quad, high, i)));
            fragment_set(b, 16, lane, i,
                         small_f16(op->b_row ? b_of(quad, low, i + half) : b_of(quad, i, high)));
        }
        for (int i = 0; i < 8; i++) {
            const int row = (lane & 1) + (i & 2) + half, col = (i & 4) + (lane & 2) + (i & 1);
            if (op->ctype == T_F16)
                fragment_set(c, 16, lane, i, small_f16(c_of(quad, high, i)));
            else
                fragment_set(c, 32, lane, i, f32_bits((float)c_of(quad, row, col)));
        }
    }
}

static int wrong_in_quads(const tensor_op *op, const fragment *d)
{
    int wrong = 0;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 8; i++) {
            const int quad = lane % 16 / 4, half = lane < 16 ? 0 : 4;
            const bool f16 = op->dtype == T_F16;
            const int row = f16 ? lane % 4 + half : (lane & 1) + (i & 2) + half;
            const int col = f16 ? i : (i & 4) + (lane & 2) + (i & 1);
            int expected = c_of(quad, row, col);
            for (int k = 0; k < 4; k++)
                expected += a_of(quad, row, k) * b_of(quad, k, col);
            const uint32_t bits = (uint32_t)fragment_get(d, f16 ? 16 : 32, lane, i);
            wrong += (f16 ? f16_to_int(bits) : (int)f32_from(bits)) != expected;
        }
    return wrong;
}

TEST_CASE(TensorLayout, QuadsInEveryLayout)
{
    static const pvm_type types[][2] = {{T_F32, T_F32}, {T_F32, T_F16}, {T_F16, T_F16}};
    for (int n = 0; n < 3 * 4 * 2; n++) {
        fragment a = {0}, b = {0}, c = {0}, d = {0};
        const int layout = n / 3 % 4, sm = n < 12 ? 75 : 90;
        pvm_inst inst = mma_instruction(M_m8n8k4, types[n % 3][0], T_F16, T_F16, types[n % 3][1]);
        inst.mod[S_ALAYOUT] = layout & 1 ? M_col : M_row;
        inst.mod[S_BLAYOUT] = layout & 2 ? M_row : M_col;
        tensor_op op;
        REQUIRE(tensor_find(&inst, (pvm_target){sm, 0}, &op));
        CHECK_EQ_I64(op.standing, sm == 75 ? TENSOR_ASSUMED : TENSOR_PUBLISHED);
        fill_quads(&op, &a, &b, &c);
        fragment_pointers pa = fragment_all(&a), pb = fragment_all(&b), pc = fragment_all(&c),
                          pd = fragment_all(&d);
        op.run(&op, pd.r, (const void *const *)pa.r, (const void *const *)pb.r, (const void *const *)pc.r,
               NULL);
        CHECK_EQ_I64(wrong_in_quads(&op, &d), 0);
    }
}

/* ---- wmma ---- */

typedef struct wmma_case {
    pvm_mod shape;
    pvm_type d, a, c;
    int bits, a_regs, b_regs, c_regs; /* c_regs by the ISA, for c's type */
} wmma_case;

static const wmma_case wmma_cases[] = {
    {M_m16n16k16, T_F32, T_F16, T_F32, 16, 8, 8, 8},  {M_m16n16k16, T_F16, T_F16, T_F16, 16, 8, 8, 4},
    {M_m16n16k16, T_F16, T_F16, T_F32, 16, 8, 8, 8},  {M_m16n16k16, T_F32, T_F16, T_F16, 16, 8, 8, 4},
    {M_m32n8k16, T_F32, T_F16, T_F32, 16, 8, 8, 8},   {M_m8n32k16, T_F16, T_F16, T_F16, 16, 8, 8, 4},
    {M_m16n16k16, T_F32, T_BF16, T_F32, 16, 4, 4, 8}, {M_m32n8k16, T_F32, T_BF16, T_F32, 16, 8, 2, 8},
    {M_m8n32k16, T_F32, T_BF16, T_F32, 16, 2, 8, 8},  {M_m16n16k8, T_F32, T_TF32, T_F32, 32, 4, 4, 8},
    {M_m16n16k16, T_S32, T_S8, T_S32, 8, 2, 2, 8},    {M_m32n8k16, T_S32, T_U8, T_S32, 8, 4, 1, 8},
    {M_m8n32k16, T_S32, T_S8, T_S32, 8, 1, 4, 8},     {M_m8n8k32, T_S32, T_U4, T_S32, 4, 1, 1, 2},
    {M_m8n8k128, T_S32, T_B1, T_S32, 1, 1, 1, 2},     {M_m8n8k4, T_F64, T_F64, T_F64, 64, 1, 1, 2},
};

/* A small whole number in the given type. */
static uint64_t encode(pvm_type type, int value)
{
    const double wide = value;
    uint64_t bits;
    switch (type) {
    case T_F16:
        return small_f16(value);
    case T_BF16:
        return f32_bits((float)value) >> 16;
    case T_F32:
    case T_TF32:
        return f32_bits((float)value);
    case T_F64:
        memcpy(&bits, &wide, sizeof bits);
        return bits;
    case T_B1:
        return value & 1;
    default:
        return (uint64_t)value;
    }
}

static int decode(pvm_type type, uint64_t bits)
{
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    return type == T_F16   ? f16_to_int((uint32_t)bits)
           : type == T_F32 ? (int)f32_from((uint32_t)bits)
           : type == T_F64 ? (int)wide
                           : (int)bits;
}

static pvm_inst wmma_move(pvm_mod shape, pvm_mod direction, pvm_mod matrix, pvm_type type)
{
    pvm_inst inst = {.op = OP_wmma, .guard = -1};
    inst.mod[S_SUB] = direction;
    inst.mod[S_FRAG] = matrix;
    inst.mod[S_SHAPE] = shape;
    inst.mod[S_TYPE] = M_TYPE(type);
    return inst;
}

static int type_bits(pvm_type type)
{
    return type == T_F16 || type == T_BF16 ? 16
           : type == T_F64                 ? 64
           : type == T_B1                  ? 1
           : type == T_U4                  ? 4
           : type == T_S8 || type == T_U8  ? 8
                                           : 32;
}

/* As wmma.load does it: every piece of every register. Returns the number of registers. */
static int load(fragment *f, const pvm_inst *inst, int (*value)(int quad, int row, int col), bool *covered,
                int cols)
{
    const pvm_type type = pvm_slot_type(inst, S_TYPE);
    const int bits = type_bits(type), per = bits < 32 ? 32 / bits : 1;
    int regs = 0;
    for (int lane = 0; lane < 32; lane++) {
        tensor_element at;
        for (int i = 0; tensor_wmma_element(inst, lane, i / per, i % per, &at); i++) {
            fragment_set(f, bits, lane, i, encode(type, value(0, at.row, at.col)));
            covered[at.row * cols + at.col] = true;
            regs = i / per + 1;
        }
    }
    return regs;
}

static int count(const bool *covered, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += covered[i];
    return sum;
}

static pvm_inst wmma_instruction(const wmma_case *w)
{
    pvm_inst inst = mma_instruction(w->shape, w->d, w->a, w->a, w->c);
    inst.op = OP_wmma;
    inst.mod[S_SUB] = M_mma;
    if (w->a == T_F16) { /* only d's and c's types are written */
        inst.mod[S_TYPE2] = M_TYPE(w->c);
        inst.mod[S_TYPE3] = inst.mod[S_TYPE4] = M_NONE;
    }
    if (w->a == T_B1)
        inst.mod[S_OP] = M_and;
    return inst;
}

static int expected_product(const wmma_case *w, int k, int row, int col)
{
    int sum = c_of(0, row, col);
    for (int i = 0; i < k; i++)
        sum += w->a == T_B1 ? a_of(0, row, i) & b_of(0, i, col) & 1 : a_of(0, row, i) * b_of(0, i, col);
    return sum;
}

static int n_wmma_cases(void)
{
    return sizeof wmma_cases / sizeof *wmma_cases;
}

static void wmma_case_name(int index, char *text, size_t size)
{
    int m, n, k;
    pvm_shape_of(wmma_cases[index].shape, &m, &n, &k);
    snprintf(text, size, "m%dn%dk%d_%d", m, n, k, index);
}

TEST_EACH(TensorLayout, WmmaLoadsMultipliesAndStores, n_wmma_cases, wmma_case_name)
{
    const wmma_case *w = &wmma_cases[index];
    const pvm_inst inst = wmma_instruction(w), load_a = wmma_move(w->shape, M_load, M_a, w->a);
    const pvm_inst load_b = wmma_move(w->shape, M_load, M_b, w->a),
                   load_c = wmma_move(w->shape, M_load, M_c, w->c);
    const pvm_inst store = wmma_move(w->shape, M_store, M_d, w->d);
    fragment a = {0}, b = {0}, c = {0}, d = {0};
    bool seen[3][32 * 128] = {{false}};
    tensor_op op;
    REQUIRE(tensor_find(&inst, (pvm_target){80, 0}, &op));
    CHECK_EQ_I64(load(&a, &load_a, a_of, seen[0], op.k), w->a_regs);
    CHECK_EQ_I64(load(&b, &load_b, b_of, seen[1], op.n), w->b_regs);
    CHECK_EQ_I64(load(&c, &load_c, c_of, seen[2], op.n), w->c_regs);
    CHECK_EQ_I64(count(seen[0], op.m * op.k), op.m * op.k);
    CHECK_EQ_I64(count(seen[1], op.k * op.n), op.k * op.n);
    CHECK_EQ_I64(count(seen[2], op.m * op.n), op.m * op.n);
    fragment_pointers pa = fragment_all(&a), pb = fragment_all(&b), pc = fragment_all(&c),
                      pd = fragment_all(&d);
    op.run(&op, pd.r, (const void *const *)pa.r, (const void *const *)pb.r, (const void *const *)pc.r, NULL);
    const int bits = type_bits(w->d), per = bits < 32 ? 32 / bits : 1;
    int wrong = 0, stored = 0;
    for (int lane = 0; lane < 32; lane++) {
        tensor_element at;
        for (int i = 0; tensor_wmma_element(&store, lane, i / per, i % per, &at); i++, stored++)
            wrong +=
                decode(w->d, fragment_get(&d, bits, lane, i)) != expected_product(w, op.k, at.row, at.col);
    }
    CHECK_EQ_I64(wrong, 0);
    CHECK_EQ_I64(stored, op.m * op.n);
}

TEST_CASE(TensorLayout, WmmaHasNoOtherRegisters)
{
    const pvm_inst a = wmma_move(M_m16n16k16, M_load, M_a, T_BF16),
                   f16 = wmma_move(M_m16n16k16, M_load, M_a, T_F16);
    tensor_element at;
    CHECK(tensor_wmma_element(&a, 0, 3, 1, &at));
    CHECK(!tensor_wmma_element(&a, 0, 4, 0, &at));
    CHECK(!tensor_wmma_element(&a, 0, 0, 2, &at));
    CHECK(tensor_wmma_element(&f16, 5, 7, 1, &at)); /* repeats register 3 */
    CHECK_EQ_I64(at.row, 5 / 4 + 8);
    CHECK_EQ_I64(at.col, 8 + 2 * (5 % 4) + 1);
}

TEST_CASE(TensorLayout, MovmatrixTransposes)
{
    uint32_t a[32], d[32];
    for (int lane = 0; lane < 32; lane++) /* element (row, col) is 16 * row + col */
        a[lane] = (uint32_t)(16 * (lane / 4) + 2 * (lane % 4)) * 0x10001u + 0x10000u;
    tensor_movmatrix(d, a);
    for (int lane = 0; lane < 32; lane++)
        CHECK_EQ_U32(d[lane], (uint32_t)(lane / 4 + 32 * (lane % 4)) * 0x10001u + 0x100000u);
    tensor_movmatrix(d, d); /* in place, and back again */
    CHECK_EQ_MEM(d, a, sizeof a);
}
