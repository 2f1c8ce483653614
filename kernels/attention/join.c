/* The second launch of attention whose keys were divided among thread blocks: joins the states of the tiles of a row to strips, and
 * those to the result; in mode tensor, states are those of strips. A block has one row, a thread some of its columns. */
#include "kernels/attention/attention.h"

unsigned attention_join_columns(const kernel_spec *spec)
{
    return (unsigned)ceil_div(spec->kv.value_size, JOIN_THREADS);
}

typedef struct joiner {
    const kernel_spec *spec;
    ptx_val o;      /* u64: address of the thread's first column of the strip's first tile */
    ptx_val column; /* u32 */
    ptx_val tiles;  /* s32: tiles of the strip that are there, from `first` on */
    ptx_val first;
} joiner;

static ptx_val column_exists(ptx_builder *b, const kernel_spec *spec, ptx_val column, unsigned i)
{
    const unsigned size = (unsigned)spec->kv.value_size;
    return ptx_setp(b, PTX_LT, column, ptx_u32(b, size > i * JOIN_THREADS ? size - i * JOIN_THREADS : 0));
}

static ptx_val stored_column(ptx_builder *b, const void *user, unsigned i, unsigned column)
{
    const joiner *j = user;
    ptx_val has = ptx_setp_and(b, PTX_LE, j->first, (int)i, column_exists(b, j->spec, j->column, column));
    has = ptx_setp_and(b, PTX_GT, j->tiles, (int)i, has);
    const int offset = (int)(4 * (i * j->spec->kv.value_size + column * JOIN_THREADS));
    return ptx_ld_if(b, has, PTX_GLOBAL, PTX_NC, PTX_F32, j->o, offset, ptx_f32(b, 0));
}

void emit_attention_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    ptx_reqntid(b, JOIN_THREADS, 1, 1);
    ptx_val token = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), head = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b));
    const seen_keys seen = seen_by_token(b, spec, &args, token);
    const row_state strip = state_begin(b, attention_join_columns(spec)),
                    all = state_begin(b, attention_join_columns(spec));
    joiner j = {.spec = spec, .column = ptx_tid_x(b)};
    ptx_val sees = ptx_setp(b, PTX_LE, seen.first, seen.last);
    const unsigned shift = ceil_log2(state_keys(spec));
    ptx_val first_tile = ptx_shr(b, seen.first, shift),
            end_tile = ptx_add(b, ptx_shr(b, seen.last, shift), 1);
    ptx_val start = ptx_and(b, first_tile, -STRIP_TILES);
    ptx_rolled(b);
    ptx_val tile = ptx_for(b, start, ptx_selp(b, end_tile, ptx_s32(b, 0), sees), ptx_s32(b, STRIP_TILES));
    const state_place from =
        state_place_of(b, spec, &args, token, head, ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, tile)));
    j.o = ptx_at(b, from.o, j.column, 4);
    j.first = ptx_sub(b, first_tile, tile);
    j.tiles = ptx_sub(b, end_tile, tile);
    ptx_val lane = ptx_as(b, PTX_S32, ptx_laneid(b)), pair[2];
    ptx_val has = ptx_setp_and(b, PTX_LE, j.first, lane, ptx_setp(b, PTX_GT, j.tiles, lane));
    has = ptx_setp_and(b, PTX_LT, lane, STRIP_TILES, has);
    pair[0] = ptx_var(b, ptx_bits(b, PTX_F32, 0xFF800000));
    pair[1] = ptx_var(b, ptx_f32(b, 0));
    ptx_val at = ptx_at(b, from.ml, ptx_laneid(b), 8);
    ptx_when(b, has);
    ptx_ld_vec_into(b, PTX_GLOBAL, PTX_NC, PTX_F32, at, 0, pair, 2);
    if (spec->attention.tensor) {
        state_join_all(b, &all, pair[0], pair[1], STRIP_TILES, stored_column, &j);
    } else {
        state_join_all(b, &strip, pair[0], pair[1], STRIP_TILES, stored_column, &j);
        state_join(b, &all, strip.m, strip.l, strip.o);
        state_clear(b, &strip);
    }
    ptx_end_for(b);
    ptx_val sink = {0}, y[STATE_COLUMNS];
    if (spec->select.sink)
        sink = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, args.operand[QDNN_OPERAND_SINK], head, 4), 0);
    state_finish(b, &all, sink, y);
    const qdnnDataType_t type = spec->epilogue.output;
    ptx_val to = ptx_mad(b, token, args.number[NUMBER_Y_STRIDE], emit_multiply(b, head, spec->kv.value_size));
    to = ptx_at(b, args.operand[QDNN_OPERAND_Y], ptx_add(b, to, ptx_cvt(b, PTX_U64, j.column)),
                element_bytes(type));
    for (unsigned i = 0; i < all.columns; i++) {
        ptx_if(b, column_exists(b, spec, j.column, i));
        emit_store(b, type, to, (int)(i * JOIN_THREADS * element_bytes(type)), y[i]);
        ptx_end_if(b);
    }
}
