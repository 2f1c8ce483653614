/* Which element of a matrix lies in which bits of which lane's register.
 *
 * All mma fragments but those of f16 m8n8k4 follow one rule (PTX ISA, "Matrix Fragments for mma"). With g =
 * lane / 4, t = lane % 4 and P elements in a register: a: register r, part p holds row g + 8 * (r % (M/8)), k
 * = 4P * (r / (M/8)) + P * t + p b: register r, part p holds column g + 8 * (r % (N/8)), k = 4P * (r / (N/8))
 * + P * t + p c: element e of a lane (f16: two in a register) holds row g + 8 * (e/2 % (M/8)), column 8 *
 * (e/2 / (M/8)) + 2t + e % 2 wmma fragments are opaque to PTX programs; here they follow the same rule. f16
 * wmma has 8 registers for a and for b whatever the shape: those beyond the matrix repeat it from the start.
 */
#include "internal.h"

static const uint8_t type_bits[T_COUNT] = {
#define X(text, name, bits) [T_##name] = bits,
    PVM_TYPES(X)
#undef X
};

typedef struct shape {
    int m, n, k;
} shape;

static tensor_element element_a(shape s, int per_register, int lane, int reg, int part)
{
    const int blocks = s.m / 8, r = reg % (s.m * s.k / (WARP_LANES * per_register));
    return (tensor_element){lane / 4 + 8 * (r % blocks),
                            4 * per_register * (r / blocks) + per_register * (lane % 4) + part};
}

static tensor_element element_b(shape s, int per_register, int lane, int reg, int part)
{
    const tensor_element at = element_a((shape){s.n, s.m, s.k}, per_register, lane, reg, part);
    return (tensor_element){at.col, at.row};
}

static tensor_element element_c(shape s, int per_register, int lane, int reg, int part)
{
    const int e = reg * per_register + part, blocks = s.m / 8;
    return (tensor_element){lane / 4 + 8 * (e / 2 % blocks), 8 * (e / 2 / blocks) + 2 * (lane % 4) + e % 2};
}

/* f16 m8n8k4: lanes 4q..4q+3 and 16+4q..16+4q+3 hold the q-th of four independent products. */
static tensor_element element_quad(const tensor_op *op, char fragment, int lane, int reg, int part)
{
    const int half = lane < 16 ? 0 : 4, i = 2 * reg + part;
    const tensor_element by_lane = {lane % 4 + half, i}, by_element = {i + half, lane % 4};
    if (fragment == 'a')
        return op->a_col ? by_element : by_lane;
    if (fragment == 'b')
        return op->b_row ? (tensor_element){by_element.col, by_element.row}
                         : (tensor_element){by_lane.col, by_lane.row};
    if ((fragment == 'c' ? op->ctype : op->dtype) == T_F16)
        return by_lane;
    return (tensor_element){(lane & 1) + (reg & 2) + half, (reg & 4) + (lane & 2) + (reg & 1)};
}

static bool is_quads(const tensor_op *op)
{
    return op->model->method == METHOD_QUADS || op->model->method == METHOD_QUADS_FMA;
}

/* mxf4 and mxf4nvf4 pack e2m1 in 4 bits, f8f6f4 in the middle of 8. */
int tensor_container_bits(const tensor_op *op, pvm_type type)
{
    if (type == T_F64)
        return 64;
    const tensor_format *f = tensor_format_of(type, op->model && op->model->method == METHOD_SCALED_FP4);
    return f ? f->container : type_bits[type];
}

static int per_register(int bits)
{
    return bits < 32 ? 32 / bits : 1;
}

tensor_element tensor_mma_element(const tensor_op *op, char fragment, int lane, int reg, int part)
{
    const shape s = {op->m, op->n, op->k};
    if (is_quads(op))
        return element_quad(op, fragment, lane, reg, part);
    if (fragment == 'a')
        return element_a(s, per_register(tensor_container_bits(op, op->atype)), lane, reg, part);
    if (fragment == 'b')
        return element_b(s, per_register(tensor_container_bits(op, op->btype)), lane, reg, part);
    return element_c(s, (fragment == 'c' ? op->ctype : op->dtype) == T_F16 ? 2 : 1, lane, reg, part);
}

bool tensor_wmma_element(const pvm_inst *inst, int lane, int reg, int part, tensor_element *element)
{
    shape s;
    const pvm_type type = pvm_slot_type(inst, S_TYPE);
    if (!pvm_shape_of(inst->mod[S_SHAPE], &s.m, &s.n, &s.k))
        return false;
    const int bits = type_bits[type], per = per_register(bits);
    const bool is_a = pvm_has(inst, S_FRAG, M_a), is_b = pvm_has(inst, S_FRAG, M_b);
    const int elements = is_a ? s.m * s.k : is_b ? s.k * s.n : s.m * s.n;
    const int registers = (is_a || is_b) && type == T_F16 ? 8 : elements / (WARP_LANES * per);
    if (reg < 0 || reg >= registers || part < 0 || part >= per)
        return false;
    *element = is_a   ? element_a(s, per, lane, reg, part)
               : is_b ? element_b(s, per, lane, reg, part)
                      : element_c(s, per, lane, reg, part);
    return true;
}

typedef struct pieces {
    int per, shift;
    uint32_t mask;
} pieces;

static pieces pieces_of(const tensor_op *op, pvm_type type)
{
    const tensor_format *f = tensor_format_of(type, op->model->method == METHOD_SCALED_FP4);
    const int bits = f ? f->mantissa + f->exponent + 1 : type == T_B1 ? 32 : type_bits[type];
    const int container = f ? f->container : bits;
    return (pieces){32 / container, f ? f->shift : 0, bits == 32 ? ~0u : (1u << bits) - 1};
}

void tensor_gather_c(const tensor_op *op, uint32_t *to, const void *const *c)
{
    const int blocks = op->m / 8, pairs = op->m * op->n / 64;
    for (int pair = 0; pair < pairs; pair++)
        for (int lane = 0; lane < WARP_LANES; lane++) {
            uint32_t *at =
                to + (pair / blocks * op->m + lane / 4 + 8 * (pair % blocks)) * PART_COLUMNS + 2 * (lane % 4);
            if (op->ctype == T_F16) {
                const uint32_t word = ((const uint32_t *)c[pair])[lane];
                at[0] = word & 0xFFFF;
                at[1] = word >> 16;
            } else {
                at[0] = ((const uint32_t *)c[2 * pair])[lane];
                at[1] = ((const uint32_t *)c[2 * pair + 1])[lane];
            }
        }
}

#define INLINE static inline __attribute__((always_inline))

/* Takes the registers of a apart (or of b, whose columns are as a's rows): line `l`, depth k goes to
 * to[l / 8 * block + l % 8 * line_step + k * k_step]. `per` is a constant wherever this is called. */
INLINE void gather_lines(int per, pieces p, int blocks, int depth, const void *const *from, uint32_t *to,
                         int block, int line_step, int k_step)
{
    for (int r = 0; r < blocks * depth / (4 * per); r++) {
        const uint32_t *words = from[r];
        uint32_t *first = to + r % blocks * block + r / blocks * 4 * per * k_step;
        for (int g = 0; g < 8; g++)
            for (int t = 0; t < 4; t++)
                for (int i = 0; i < per; i++)
                    first[g * line_step + (t * per + i) * k_step] =
                        words[4 * g + t] >> (32 / per * i + p.shift) & p.mask;
    }
}

INLINE void gather_any(pieces p, int blocks, int depth, const void *const *from, uint32_t *to, int block,
                       int line_step, int k_step)
{
    if (p.per == 1)
        gather_lines(1, p, blocks, depth, from, to, block, line_step, k_step);
    else if (p.per == 2)
        gather_lines(2, p, blocks, depth, from, to, block, line_step, k_step);
    else if (p.per == 4)
        gather_lines(4, p, blocks, depth, from, to, block, line_step, k_step);
    else
        gather_lines(8, p, blocks, depth, from, to, block, line_step, k_step);
}

/* Single bits come as words of 32: k counts words then. */
void tensor_gather(const tensor_op *op, tensor_matrices *x, const void *const *a, const void *const *b,
                   const void *const *c)
{
    const int k = op->atype == T_B1 ? op->k / 32 : op->k;
    gather_any(pieces_of(op, op->atype), op->m / 8, k, a, x->a, 8 * k, k, 1);
    gather_any(pieces_of(op, op->btype), op->n / 8, k, b, x->b, PART_COLUMNS * k, 1, PART_COLUMNS);
    tensor_gather_c(op, x->c, c);
}

void tensor_gather_a(const tensor_op *op, uint32_t *to, const void *const *a)
{
    const int depth = tensor_depth(op);
    gather_any(pieces_of(op, op->atype), op->m / 8, depth, a, to, 8 * depth, depth, 1);
}

int tensor_unpack(const tensor_op *op, pvm_type type, uint32_t word, uint32_t elements[8])
{
    const pieces p = pieces_of(op, type);
    for (int i = 0; i < p.per; i++)
        elements[i] = word >> (32 / p.per * i + p.shift) & p.mask;
    return p.per;
}

void tensor_scatter(const tensor_op *op, const tensor_matrices *x, void *const *d)
{
    tensor_scatter_d(op, x->c, d);
}

void tensor_scatter_d(const tensor_op *op, const uint32_t *from, void *const *d)
{
    const int blocks = op->m / 8, pairs = op->m * op->n / 64;
    for (int pair = 0; pair < pairs; pair++)
        for (int lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t *at = from +
                                 (pair / blocks * op->m + lane / 4 + 8 * (pair % blocks)) * PART_COLUMNS +
                                 2 * (lane % 4);
            if (op->dtype == T_F16) {
                ((uint32_t *)d[pair])[lane] = at[0] | at[1] << 16;
            } else {
                ((uint32_t *)d[2 * pair])[lane] = at[0];
                ((uint32_t *)d[2 * pair + 1])[lane] = at[1];
            }
        }
}

static int quad_lane(int quad, int i)
{
    return 4 * quad + i % 4 + (i < 4 ? 0 : 16);
}

void tensor_gather_quad(const tensor_op *op, int quad, tensor_matrices *x, const void *const *a,
                        const void *const *b, const void *const *c)
{
    const bool f16 = op->ctype == T_F16;
    for (int i = 0; i < 8; i++) {
        const int lane = quad_lane(quad, i);
        for (int e = 0; e < 4; e++) {
            const tensor_element in_a = element_quad(op, 'a', lane, e / 2, e % 2);
            const tensor_element in_b = element_quad(op, 'b', lane, e / 2, e % 2);
            x->a[in_a.row * 4 + in_a.col] = ((const uint32_t *)a[e / 2])[lane] >> (16 * (e % 2)) & 0xFFFF;
            x->b[in_b.row * 8 + in_b.col] = ((const uint32_t *)b[e / 2])[lane] >> (16 * (e % 2)) & 0xFFFF;
        }
        for (int e = 0; e < 8; e++) {
            const tensor_element at = element_quad(op, 'c', lane, f16 ? e / 2 : e, f16 ? e % 2 : 0);
            x->c[at.row * 8 + at.col] = f16 ? ((const uint32_t *)c[e / 2])[lane] >> (16 * (e % 2)) & 0xFFFF
                                            : ((const uint32_t *)c[e])[lane];
        }
    }
}

void tensor_scatter_quad(const tensor_op *op, int quad, const tensor_matrices *x, void *const *d)
{
    const bool f16 = op->dtype == T_F16;
    for (int i = 0; i < 8; i++) {
        const int lane = quad_lane(quad, i);
        for (int reg = 0; reg < (f16 ? 4 : 8); reg++) {
            const tensor_element at = element_quad(op, 'd', lane, reg, 0);
            const uint32_t *from = x->c + at.row * 8 + at.col;
            ((uint32_t *)d[reg])[lane] = f16 ? from[0] | from[1] << 16 : from[0];
        }
    }
}

/* PTX ISA, "Block scaling for mma": of each quad of lanes, thread-id-a picks the pair whose first lane has
 * the scales of row lane / 4 and whose second those of row lane / 4 + 8; thread-id-b picks the lane with
 * those of column lane / 4. byte-id picks where in the lane's four bytes they start. */
void tensor_gather_scales(const tensor_op *op, tensor_scales *scales, const void *const *scale)
{
    const int count = op->scales;
    const uint32_t *a = scale[0], *b = scale[3];
    const int byte_a = *(const uint16_t *)scale[1] & 3, thread_a = *(const uint16_t *)scale[2] & 1;
    const int byte_b = *(const uint16_t *)scale[4] & 3, thread_b = *(const uint16_t *)scale[5] & 3;
    for (int i = 0; i < count; i++) {
        for (int row = 0; row < 16; row++)
            scales->a[row][i] = (uint8_t)(a[row % 8 * 4 + 2 * thread_a + row / 8] >> ((byte_a + i) % 4 * 8));
        for (int column = 0; column < PART_COLUMNS; column++)
            scales->b[column][i] = (uint8_t)(b[column * 4 + thread_b] >> ((byte_b + i) % 4 * 8));
    }
}

void tensor_movmatrix(uint32_t d[32], const uint32_t a[32])
{
    uint32_t out[WARP_LANES];
    for (int lane = 0; lane < WARP_LANES; lane++) {
        out[lane] = 0;
        for (int p = 0; p < 2; p++) {
            /* row lane / 4, column 2 * (lane % 4) + p of the result is there in the transposed place of the
             * source */
            const int row = 2 * (lane % 4) + p, column = lane / 4;
            out[lane] |= (a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xFFFF) << (16 * p);
        }
    }
    for (int lane = 0; lane < WARP_LANES; lane++)
        d[lane] = out[lane];
}
