/* Matrices held by a warp: ldmatrix and mma. */
#include "ptxgen/internal.h"

#include <string.h>

/* ---- moving matrices ---- */

static const char *matrix_count(ptx_builder *b, int n, bool trans)
{
    if (ptx_ok(b) && n != 1 && n != 2 && n != 4)
        ptx_fail(b, "%d matrices: there are forms for 1, 2 and 4", n);
    return trans    ? (n == 1   ? ".x1.trans"
                       : n == 2 ? ".x2.trans"
                                : ".x4.trans")
           : n == 1 ? ".x1"
           : n == 2 ? ".x2"
                    : ".x4";
}

static void load_matrix(ptx_builder *b, ptx_val shared, int offset, ptx_val *out, int n, bool trans)
{
    for (int i = 0; i < n; i++)
        out[i] = (ptx_val){0};
    if (!builder_ready(b, "ldmatrix"))
        return;
    emit(b, &(ptx_instruction){.id = ISA_ldmatrix,
                               .modifier = matrix_count(b, n, trans),
                               .in = (const ptx_val[]){shared, ptx_from_int(offset)},
                               .out = out,
                               .counts = (const uint8_t[]){(uint8_t)n}});
}

void ptx_ldmatrix(ptx_builder *b, ptx_val shared, int offset, ptx_val *out, int n)
{
    load_matrix(b, shared, offset, out, n, false);
}

void ptx_ldmatrix_trans(ptx_builder *b, ptx_val shared, int offset, ptx_val *out, int n)
{
    load_matrix(b, shared, offset, out, n, true);
}

void ptx_stmatrix(ptx_builder *b, ptx_val shared, int offset, const ptx_val *x, int n)
{
    if (!builder_ready(b, "stmatrix"))
        return;
    const char *count = matrix_count(b, n, false);
    if (!ptx_ok(b))
        return;
    ptx_val in[6] = {shared, ptx_from_int(offset)};
    memcpy(in + 2, x, (size_t)n * sizeof *x);
    emit(b, &(ptx_instruction){
                .id = ISA_stmatrix, .modifier = count, .in = in, .counts = (const uint8_t[]){(uint8_t)n}});
}

ptx_val ptx_movmatrix_trans(ptx_builder *b, ptx_val x)
{
    return EMIT(b, movmatrix, emit_common(b, "movmatrix_trans", &x, 1), x);
}

/* ---- mma ---- */

/* Bits of the element types in mma.def. */
enum {
    bits_f16 = 16,
    bits_bf16 = 16,
    bits_tf32 = 32,
    bits_f32 = 32,
    bits_s32 = 32,
    bits_s8 = 8,
    bits_u8 = 8,
    bits_s4 = 4,
    bits_u4 = 4,
    bits_e4m3 = 8,
    bits_e5m2 = 8
};
/* The type of an accumulator's registers. */
enum { type_f16 = PTX_F16X2, type_f32 = PTX_F32, type_s32 = PTX_S32 };

static const struct mma_row {
    ptx_mma_shape shape;
    const char *text, *satfinite; /* null if there is no such form */
    isa_need_id need;
} rows[] = {
/* clang-format off */
#define MMA(id, m, n, k, d, a, b, c, need) \
    {{#id, m, n, k, m * k * bits_##a / 1024, n * k * bits_##b / 1024, m * n * bits_##c / 1024, \
      (ptx_type)type_##c}, \
     ".m" #m "n" #n "k" #k ".row.col." #d "." #a "." #b "." #c, \
     type_##c == (int)PTX_S32 ? ".m" #m "n" #n "k" #k ".row.col.satfinite." #d "." #a "." #b "." #c : NULL, \
     NEED_##need},
#include "ptxgen/mma.def"
#undef MMA
    /* clang-format on */
};

ptx_mma_shape ptx_mma_describe(ptx_mma_id id)
{
    return (unsigned)id < PTX_MMA_COUNT ? rows[id].shape : (ptx_mma_shape){0};
}

bool ptx_mma_has(const ptx_sm *sm, ptx_mma_id id)
{
    return sm && (unsigned)id < PTX_MMA_COUNT && isa_need_version(rows[id].need, sm);
}

typedef struct fragments {
    ptx_val *d;
    const ptx_val *a, *b, *c, *targets;
} fragments;

static void multiply(ptx_builder *b, ptx_mma_id id, bool satfinite, fragments f)
{
    if (!builder_ready(b, "mma"))
        return;
    if ((unsigned)id >= PTX_MMA_COUNT || (satfinite && !rows[id].satfinite)) {
        ptx_fail(b, "there is no such form");
        return;
    }
    const ptx_mma_shape *s = &rows[id].shape;
    ptx_val in[MAX_OPERANDS];
    memcpy(in, f.a, (size_t)s->n_a * sizeof *in);
    memcpy(in + s->n_a, f.b, (size_t)s->n_b * sizeof *in);
    memcpy(in + s->n_a + s->n_b, f.c, (size_t)s->n_c * sizeof *in);
    const uint8_t counts[] = {(uint8_t)s->n_c, (uint8_t)s->n_a, (uint8_t)s->n_b, (uint8_t)s->n_c};
    emit(b, &(ptx_instruction){.id = ISA_mma,
                               .t0 = s->c_type,
                               .modifier = satfinite ? rows[id].satfinite : rows[id].text,
                               .need = rows[id].need,
                               .in = in,
                               .out = f.d,
                               .counts = counts,
                               .targets = f.targets});
}

static void multiply_new(ptx_builder *b, ptx_mma_id id, bool satfinite, fragments f)
{
    ptx_val d[8] = {{0}};
    int n = ptx_mma_describe(id).n_c;
    ptx_val *out = f.d;
    f.d = d;
    multiply(b, id, satfinite, f); /* d may be c */
    memcpy(out, d, (size_t)n * sizeof *d);
}

void ptx_mma(ptx_builder *b, ptx_mma_id id, ptx_val *d, const ptx_val *a, const ptx_val *b_, const ptx_val *c)
{
    multiply_new(b, id, false, (fragments){.d = d, .a = a, .b = b_, .c = c});
}

void ptx_mma_satfinite(ptx_builder *b, ptx_mma_id id, ptx_val *d, const ptx_val *a, const ptx_val *b_,
                       const ptx_val *c)
{
    multiply_new(b, id, true, (fragments){.d = d, .a = a, .b = b_, .c = c});
}

void ptx_mma_into(ptx_builder *b, ptx_mma_id id, const ptx_val *d, const ptx_val *a, const ptx_val *b_,
                  const ptx_val *c)
{
    ptx_val out[8];
    multiply(b, id, false, (fragments){.d = out, .a = a, .b = b_, .c = c, .targets = d});
}
