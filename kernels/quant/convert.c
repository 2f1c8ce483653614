/* Plain formats: their "codes" are the values themselves, rounded to the type. */
#include "kernels/operations.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/tile.h"

enum { FOUR = 4 /* adjacent elements per thread */ };

typedef struct conversion {
    qdnnDataType_t from_type, to_type;
    ptx_val from, to;
    ptx_val first, end; /* u64: the elements of the tile */
} conversion;

/* If the bits of an f32 are passed through, NaN must be replaced by the canonical NaN that operations
 * write. */
static void canonical_nans(ptx_builder *b, const conversion *c, ptx_val *x, unsigned count)
{
    bool keeps_in = c->from_type == QDNN_DATA_F32 || c->from_type == QDNN_DATA_BF16;
    bool keeps_out = c->to_type == QDNN_DATA_F32 || c->to_type == QDNN_DATA_F64;
    for (unsigned i = 0; i < count && keeps_in && keeps_out; i++)
        x[i] = ptx_selp(b, ptx_bits(b, PTX_F32, 0x7FFFFFFF), x[i], ptx_setp(b, PTX_NAN, x[i], x[i]));
}

/* A complete, aligned tile: four elements at a time, with all loads first. */
static void convert_tile(ptx_builder *b, const conversion *c)
{
    enum { ROUNDS = THREAD_ELEMENTS / FOUR };
    ptx_val x[THREAD_ELEMENTS];
    const unsigned from_bytes = element_bytes(c->from_type), to_bytes = element_bytes(c->to_type);
    ptx_val index = ptx_add(b, c->first, ptx_cvt(b, PTX_U64, ptx_mul(b, ptx_tid_x(b), FOUR)));
    ptx_val in = ptx_at(b, c->from, index, from_bytes), out = ptx_at(b, c->to, index, to_bytes);
    for (unsigned i = 0; i < ROUNDS; i++)
        emit_load_joint(b, c->from_type, in, (int)(i * TILE_BLOCK * FOUR * from_bytes), FOUR, &x[i * FOUR]);
    for (unsigned i = 0; i < ROUNDS; i++)
        emit_joint_exchange(b, c->from_type, &x[i * FOUR]);
    canonical_nans(b, c, x, THREAD_ELEMENTS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        emit_joint_exchange(b, c->to_type, &x[i * FOUR]);
        emit_store_joint(b, c->to_type, out, (int)(i * TILE_BLOCK * FOUR * to_bytes), FOUR, &x[i * FOUR]);
    }
}

static void convert_elements(ptx_builder *b, const conversion *c)
{
    ptx_val first = ptx_add(b, c->first, ptx_cvt(b, PTX_U64, ptx_tid_x(b)));
    ptx_val at = ptx_for(b, first, c->end, TILE_BLOCK);
    ptx_val x = emit_load(b, c->from_type, ptx_at(b, c->from, at, element_bytes(c->from_type)), 0);
    canonical_nans(b, c, &x, 1);
    emit_store(b, c->to_type, ptx_at(b, c->to, at, element_bytes(c->to_type)), 0, x);
    ptx_end_for(b);
}

void emit_convert(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    bool to_codes = kernel_operation_of(row) == KERNEL_QUANTIZE;
    const qdnnDataType_t storage = row->format->facts.storage;
    conversion c = {.from_type = to_codes ? spec->data : storage,
                    .to_type = to_codes ? storage : spec->data,
                    .from = args.operand[to_codes ? QDNN_OPERAND_X : QDNN_OPERAND_CODES],
                    .to = args.operand[to_codes ? QDNN_OPERAND_CODES : QDNN_OPERAND_Y]};
    ptx_val n = args.number[NUMBER_N];
    c.first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, TILE_ELEMENTS));
    ptx_val full_end = ptx_add(b, c.first, TILE_ELEMENTS);
    c.end = ptx_min(b, full_end, n);
    ptx_val aligned = ptx_and(b, emit_aligned(b, c.from, LOAD_BYTES), emit_aligned(b, c.to, LOAD_BYTES));
    ptx_uniform(b);
    ptx_if(b, ptx_setp_and(b, PTX_LE, full_end, n, aligned));
    convert_tile(b, &c);
    ptx_else(b);
    convert_elements(b, &c);
    ptx_end_if(b);
}
