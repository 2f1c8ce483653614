/* The repack kernel: converts codes to another layout and, if requested, another kind of code. It combines
 * the reader of one layout with the writer of the other. */
#include "kernels/quant/matrix.h"
#include "kernels/quant/quant.h"

typedef struct repacker {
    kernel_spec from_spec, to_spec;
    matrix from, to;
} repacker;

/* The specification of the codes to read. It pretends that data is 16 bits wide, because such patches have
 * eight columns of a row: the codes of a warp then fill whole sectors, whatever their width. */
static kernel_spec source_of(const kernel_spec *spec)
{
    kernel_spec from = *spec;
    from.data = QDNN_DATA_F16;
    return from;
}

/* The specification of the codes to write. */
static kernel_spec target_of(const kernel_spec *spec)
{
    kernel_spec to = source_of(spec);
    to.stored.layout = spec->to.layout;
    to.stored.nibble_order = spec->to.nibble_order;
    to.stored.code = spec->to.code;
    return to;
}

/* Two's complement differs from the other kinds in the highest bit. */
static ptx_val change_kind(ptx_builder *b, const repacker *r, ptx_val code)
{
    const coding *from = &r->from.q.coding, *to = &r->to.q.coding;
    bool flips = (from->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT) !=
                 (to->spec->stored.code == QDNN_CODE_TWOS_COMPLEMENT);
    return flips ? ptx_xor(b, code, ptx_u32(b, 1u << (from->format->facts.bits - 1))) : code;
}

static void repack_patch(ptx_builder *b, void *user, patch *p)
{
    const repacker *r = user;
    const unsigned bits = r->from.q.coding.format->facts.bits;
    patch out = *p;
    patch_load(b, &r->from, p);
    patch_arrive(b, &r->from, p);
    for (unsigned i = 0; i < p->rows; i++) {
        for (unsigned k = 0; k < p->width; k++) {
            unsigned position;
            ptx_val word = patch_word(b, &r->from, p, i, k, &position);
            patch_put(b, &r->to, &out, i, k, change_kind(b, r, ptx_bfe(b, word, position, bits)));
        }
        patch_row_done(b, &r->to, &out, i);
    }
    patch_store(b, &r->to, &out);
}

static ptx_val code_of(ptx_builder *b, const void *user, ptx_val row, ptx_val column)
{
    const repacker *r = user;
    return change_kind(b, r, matrix_code(b, &r->from, row, column));
}

static void repack_elements(ptx_builder *b, void *user, const matrix_part *part)
{
    const repacker *r = user;
    matrix_write(b, &r->to, part, code_of, r);
}

/* Column streams have patches of four columns. */
static unsigned width_of_both(const kernel_row *row, const kernel_spec *spec)
{
    const kernel_spec from = source_of(spec), to = target_of(spec);
    unsigned a = patch_width(&(coding){row->format, &from}), b = patch_width(&(coding){row->format, &to});
    return a < b ? a : b;
}

kernel_geometry repack_geometry(const kernel_row *row, const kernel_spec *spec)
{
    return matrix_geometry_of_width(width_of_both(row, spec));
}

/* A walk in patches that suit both layouts. */
static matrix_walk both_walks(const matrix *from, const matrix *to, ptx_val aligned)
{
    matrix_walk w = matrix_walk_of(from, aligned), other = matrix_walk_of(to, aligned);
    if (other.patch_rows > w.patch_rows)
        w.patch_rows = other.patch_rows;
    if (other.columns_multiple > w.columns_multiple)
        w.columns_multiple = other.columns_multiple;
    if (other.width < w.width)
        w.width = other.width;
    w.rows_are_free = w.rows_are_free && other.rows_are_free;
    return w;
}

void emit_repack(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    matrix_directives(b);
    kernel_args args = kernel_declare(b, row, spec);
    repacker r = {.from_spec = source_of(spec), .to_spec = target_of(spec)};
    quantized from = {.coding = {row->format, &r.from_spec}, .codes = args.operand[QDNN_OPERAND_CODES]};
    quantized to = {.coding = {row->format, &r.to_spec}, .codes = args.operand[QDNN_OPERAND_REPACKED]};
    r.from = matrix_begin(b, &from, &args);
    r.to = matrix_begin(b, &to, &args);
    matrix_walk w =
        both_walks(&r.from, &r.to,
                   emit_aligned_and(b, emit_aligned(b, from.codes, patch_codes_align(&from.coding)), to.codes,
                                    patch_codes_align(&to.coding)));
    w.stage = patch_stage(b, &to.coding, MATRIX_WARPS);
    w.user = &r;
    w.patch = repack_patch;
    w.elements = repack_elements;
    matrix_walk_run(b, &w);
}
