/* See fragments.h. The layouts are transcribed from the PTX ISA's "Matrix Fragments for mma.*" sections. */
#include <stdio.h>
#include <string.h>

#include "fragments.h"
#include "ptxvm/module.h"
#include "test.h"

fragment_pointers fragment_all(fragment *f)
{
    fragment_pointers p;
    for (int i = 0; i < FRAGMENT_REGISTERS; i++)
        p.r[i] = f->r[i];
    return p;
}

/* Row (of a) or column (of b) is `line`, the other index `k`. */
typedef struct place {
    int line, k;
} place;

/* a of each shape, as the ISA lists it; g = groupID, t = threadID_in_group. */
static place place_a(int m, int k, int bits, int g, int t, int i)
{
    const bool m16 = m == 16;
    switch (bits) {
    case 64: /* .f64 */
        if (!m16)
            return (place){g, t};
        if (k == 4)
            return (place){i == 0 ? g : g + 8, t};
        if (k == 8)
            return (place){i == 0 || i == 2 ? g : g + 8, i == 0 || i == 1 ? t : t + 4};
        return (place){i % 2 == 0 ? g : g + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
    case 32: /* .tf32 */
        if (k == 4)
            return (place){i == 0 ? g : g + 8, t};
        return (place){i == 0 || i == 2 ? g : g + 8, i == 0 || i == 1 ? t : t + 4};
    case 16: /* .f16, .bf16 */
        if (k == 8)
            return (place){i < 2 ? g : g + 8, t * 2 + (i & 1)};
        return (place){i < 2 || (i >= 4 && i < 6) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
    case 8:
        if (!m16)
            return (place){g, t * 4 + i};
        if (k == 16)
            return (place){i < 4 ? g : g + 8, t * 4 + (i & 3)};
        return (place){i < 4 || (i >= 8 && i < 12) ? g : g + 8,
                       i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
    case 4:
        if (!m16)
            return (place){g, t * 8 + i};
        if (k == 32)
            return (place){i < 8 ? g : g + 8, t * 8 + (i & 7)};
        return (place){i < 8 || (i >= 16 && i < 24) ? g : g + 8,
                       i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32};
    default: /* .b1 */
        if (!m16)
            return (place){g, t * 32 + i};
        if (k == 128)
            return (place){i < 32 ? g : g + 8, t * 32 + (i & 31)};
        return (place){i < 32 || (i >= 64 && i < 96) ? g : g + 8,
                       i < 64 ? t * 32 + i % 32 : t * 32 + i % 32 + 128};
    }
}

static place place_b(int k, int bits, int g, int t, int i)
{
    switch (bits) {
    case 64:
    case 32:
        return (place){g, k == 4 ? t : t + i * 4};
    case 16:
        return (place){g, i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
    case 8:
        return (place){g, i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
    case 4:
        return (place){g, i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32};
    default:
        return (place){g, i < 32 ? t * 32 + i : t * 32 + (i & 31) + 128};
    }
}

bool fragment_element(int m, int n, int k, int bits, char matrix, int lane, int i, int *row, int *col)
{
    const int g = lane >> 2, t = lane % 4;
    const int size = matrix == 'a' ? m * k : matrix == 'b' ? k * n : m * n;
    if (i >= size / 32)
        return false;
    if (matrix == 'a') {
        const place p = place_a(m, k, bits, g, t, i);
        *row = p.line;
        *col = p.k;
    } else if (matrix == 'b') {
        const place p = place_b(k, bits, g, t, i);
        *row = p.k;
        *col = p.line;
    } else {
        *row = i < 2 ? g : g + 8;
        *col = t * 2 + (i & 1);
    }
    return true;
}

void fragment_set(fragment *f, int bits, int lane, int i, uint64_t value)
{
    if (bits == 64) {
        f->r[i][lane] = value;
        return;
    }
    const int per = 32 / bits, shift = i % per * bits;
    const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    uint32_t *words = (uint32_t *)f->r[i / per];
    words[lane] = (words[lane] & ~(mask << shift)) | ((uint32_t)value & mask) << shift;
}

uint64_t fragment_get(const fragment *f, int bits, int lane, int i)
{
    if (bits == 64)
        return f->r[i][lane];
    const int per = 32 / bits, shift = i % per * bits;
    const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    return ((const uint32_t *)f->r[i / per])[lane] >> shift & mask;
}

void fragment_fill(fragment *f, int m, int n, int k, int bits, char matrix, const uint64_t *values, int cols)
{
    int row, col;
    memset(f, 0, sizeof *f);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; fragment_element(m, n, k, bits, matrix, lane, i, &row, &col); i++)
            fragment_set(f, bits, lane, i, values[row * cols + col]);
}

void fragment_read(const fragment *f, int m, int n, int k, int bits, char matrix, uint64_t *values, int cols)
{
    int row, col;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; fragment_element(m, n, k, bits, matrix, lane, i, &row, &col); i++)
            values[row * cols + col] = fragment_get(f, bits, lane, i);
}

pvm_inst mma_instruction(pvm_mod shape, pvm_type d, pvm_type a, pvm_type b, pvm_type c)
{
    pvm_inst inst = {.op = OP_mma, .guard = -1};
    inst.mod[S_SYNC] = M_sync;
    inst.mod[S_ALIGNED] = M_aligned;
    inst.mod[S_SHAPE] = shape;
    inst.mod[S_ALAYOUT] = M_row;
    inst.mod[S_BLAYOUT] = M_col;
    inst.mod[S_TYPE] = M_TYPE(d);
    inst.mod[S_TYPE2] = M_TYPE(a);
    inst.mod[S_TYPE3] = M_TYPE(b);
    inst.mod[S_TYPE4] = M_TYPE(c);
    return inst;
}

static int accumulator_bits(pvm_type type)
{
    return type == T_F16 ? 16 : type == T_F64 ? 64 : 32;
}

void mma_run(const tensor_op *op, int a_bits, const uint64_t *a, const uint64_t *b, const uint64_t *c,
             uint64_t *d, const void *const *scale)
{
    fragment fa, fb, fc, fd;
    const int m = op->m, n = op->n, k = op->k;
    memset(&fd, 0xA5, sizeof fd);
    fragment_fill(&fa, m, n, k, a_bits, 'a', a, k);
    fragment_fill(&fb, m, n, k, a_bits, 'b', b, n);
    fragment_fill(&fc, m, n, k, accumulator_bits(op->ctype), 'c', c, n);
    const fragment_pointers pa = fragment_all(&fa), pb = fragment_all(&fb), pc = fragment_all(&fc);
    fragment_pointers pd = fragment_all(&fd);
    op->run(op, pd.r, (const void *const *)pa.r, (const void *const *)pb.r, (const void *const *)pc.r, scale);
    fragment_read(&fd, m, n, k, accumulator_bits(op->dtype), 'd', d, n);
}

/* "@f4" to a vector of four registers. */
static void write_registers(const char *text, char *out, size_t size)
{
    size_t at = 0;
    for (const char *p = text; *p && at + 64 < size; p++) {
        if (*p != '@') {
            out[at++] = *p;
            continue;
        }
        for (int i = 0; i < p[2] - '0'; i++)
            at += (size_t)snprintf(out + at, size - at, "%s%%%c0", i ? ", " : "{", p[1]);
        out[at++] = '}';
        p += 2;
    }
    out[at] = 0;
}

bool mma_parse(const char *text, const char *target, pvm_inst *inst)
{
    char line[1024], module_text[2048];
    pvm_error error;
    write_registers(text, line, sizeof line);
    snprintf(module_text, sizeof module_text,
             ".version 9.0\n.target %s\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<1>; .reg "
             ".f32 %%f<1>; "
             ".reg .f64 %%d<1>; .reg .b16 %%h<1>; .reg .b64 %%p<1>;\n%s\nret;\n}\n",
             target, line);
    pvm_module *module = pvm_module_parse(module_text, strlen(module_text), &error);
    if (!module) {
        FAIL("%s: %s", line, error.message);
        return false;
    }
    *inst = module->functions[0]->insts[0];
    inst->operand = NULL;
    inst->n_operands = 0;
    pvm_module_free(module);
    return true;
}
