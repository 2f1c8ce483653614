/* Where the keys of a row are divided among thread blocks: joins the states of its tiles to strips, and those to the result; in mode
 * tensor, states are those of strips. A team of threads has one row, a thread some of its columns. */
#include "kernels/attention/attention.h"

enum { TEAM_COLUMNS = 4 }; /* of a thread of the last block */

typedef struct joiner {
    const kernel_spec *spec;
    const kernel_args *args;
    unsigned threads; /* of a row */
    int cache;        /* how states are loaded: not as constants where the same launch has written them */
    ptx_val column;   /* u32: the thread's first */
    ptx_val o;        /* u64: its address in the strip's first tile */
    ptx_val tiles;    /* s32: tiles of the strip that are there, from `first` on */
    ptx_val first;
} joiner;

static ptx_val column_exists(ptx_builder *b, const joiner *j, unsigned i)
{
    const unsigned size = (unsigned)j->spec->kv.value_size, before = i * j->threads;
    return ptx_setp(b, PTX_LT, j->column, ptx_u32(b, size > before ? size - before : 0));
}

static ptx_val stored_column(ptx_builder *b, const void *user, unsigned i, unsigned column)
{
    const joiner *j = user;
    ptx_val has = ptx_setp_and(b, PTX_LE, j->first, (int)i, column_exists(b, j, column));
    has = ptx_setp_and(b, PTX_GT, j->tiles, (int)i, has);
    const int offset = (int)(4 * (i * j->spec->kv.value_size + column * j->threads));
    return ptx_ld_if(b, has, PTX_GLOBAL, j->cache, PTX_F32, j->o, offset, ptx_f32(b, 0));
}

/* y of a row. */
static void store_row(ptx_builder *b, const joiner *j, const row_state *all, ptx_val token, ptx_val head)
{
    const kernel_spec *spec = j->spec;
    const qdnnDataType_t type = spec->epilogue.output;
    ptx_val sink = {0}, y[STATE_COLUMNS];
    if (spec->select.sink)
        sink = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, j->args->operand[QDNN_OPERAND_SINK], head, 4), 0);
    state_finish(b, all, sink, y);
    ptx_val to =
        ptx_mad(b, token, j->args->number[NUMBER_Y_STRIDE], emit_multiply(b, head, spec->kv.value_size));
    to = ptx_at(b, j->args->operand[QDNN_OPERAND_Y], ptx_add(b, to, ptx_cvt(b, PTX_U64, j->column)),
                element_bytes(type));
    for (unsigned i = 0; i < all->columns; i++) {
        ptx_if(b, column_exists(b, j, i));
        emit_store(b, type, to, (int)(i * j->threads * element_bytes(type)), y[i]);
        ptx_end_if(b);
    }
}

static void join_row(ptx_builder *b, joiner *j, const seen_keys *seen, ptx_val token, ptx_val head)
{
    const kernel_spec *spec = j->spec;
    const unsigned columns = (unsigned)ceil_div(spec->kv.value_size, j->threads);
    const row_state strip = state_begin(b, columns), all = state_begin(b, columns);
    ptx_val sees = ptx_setp(b, PTX_LE, seen->first, seen->last);
    const unsigned shift = ceil_log2(state_keys(spec));
    ptx_val first_tile = ptx_shr(b, seen->first, shift),
            end_tile = ptx_add(b, ptx_shr(b, seen->last, shift), 1);
    ptx_val start = ptx_and(b, first_tile, -STRIP_TILES);
    ptx_rolled(b);
    ptx_val tile = ptx_for(b, start, ptx_selp(b, end_tile, ptx_s32(b, 0), sees), ptx_s32(b, STRIP_TILES));
    const state_place from =
        state_place_of(b, spec, j->args, token, head, ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, tile)));
    j->o = ptx_at(b, from.o, j->column, 4);
    j->first = ptx_sub(b, first_tile, tile);
    j->tiles = ptx_sub(b, end_tile, tile);
    ptx_val lane = ptx_as(b, PTX_S32, ptx_laneid(b)), pair[2];
    ptx_val has = ptx_setp_and(b, PTX_LE, j->first, lane, ptx_setp(b, PTX_GT, j->tiles, lane));
    has = ptx_setp_and(b, PTX_LT, lane, STRIP_TILES, has);
    pair[0] = ptx_var(b, ptx_bits(b, PTX_F32, 0xFF800000));
    pair[1] = ptx_var(b, ptx_f32(b, 0));
    ptx_val at = ptx_at(b, from.ml, ptx_laneid(b), 8);
    ptx_when(b, has);
    ptx_ld_vec_into(b, PTX_GLOBAL, j->cache, PTX_F32, at, 0, pair, 2);
    if (spec->attention.tensor) {
        state_join_all(b, &all, pair[0], pair[1], STRIP_TILES, stored_column, j);
    } else {
        state_join_all(b, &strip, pair[0], pair[1], STRIP_TILES, stored_column, j);
        state_join(b, &all, strip.m, strip.l, strip.o);
        state_clear(b, &strip);
    }
    ptx_end_for(b);
    store_row(b, j, &all, token, head);
}

/* ---- In a launch of its own: a block has one row ---- */

void emit_attention_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    ptx_reqntid(b, JOIN_THREADS, 1, 1);
    ptx_val token = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), head = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b));
    const seen_keys seen = seen_by_token(b, spec, &args, token);
    joiner j = {
        .spec = spec, .args = &args, .threads = JOIN_THREADS, .cache = PTX_NC, .column = ptx_tid_x(b)};
    join_row(b, &j, &seen, token, head);
}

/* ---- In the last block ---- */

/* Whether the block is the last to arrive: what all have stored is visible to it then. The counter starts from 0 again after as
 * many blocks as there are. */
static ptx_val is_last(ptx_builder *b, const kernel_args *args)
{
    ptx_val flag = ptx_shared(b, "last", PTX_U32, 1, 4);
    ptx_val most = ptx_sub(b, ptx_cvt(b, PTX_U32, args->number[NUMBER_PARTS]), 1);
    ptx_val number = ptx_mad(b, ptx_ctaid_y(b), ptx_nctaid_x(b), ptx_ctaid_x(b));
    ptx_val counter = ptx_at(b, args->operand[QDNN_OPERAND_COUNTERS], number, 4);
    ptx_syncthreads(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_fence_acq_rel_gpu(b);
    ptx_st_shared(b, flag, 0, ptx_atom(b, PTX_ATOM_INC, PTX_GLOBAL, counter, 0, most));
    ptx_fence_acq_rel_gpu(b);
    ptx_end_if(b);
    ptx_syncthreads(b);
    return ptx_setp(b, PTX_EQ, ptx_ld_shared(b, PTX_U32, flag, 0), most);
}

void emit_join_if_last(ptx_builder *b, const kernel_spec *spec, const kernel_args *args,
                       const shared_rows *rows)
{
    const unsigned warps = 1u << ceil_log2(ceil_div(spec->kv.value_size, TEAM_COLUMNS * WARP)),
                   threads = warps * WARP < rows->threads ? warps * WARP : rows->threads;
    joiner j = {.spec = spec, .args = args, .threads = threads};
    ptx_uniform(b);
    ptx_if(b, is_last(b, args));
    const seen_keys seen = seen_by_token(b, spec, args, rows->token);
    ptx_val team = ptx_shr(b, ptx_tid_x(b), ceil_log2(threads));
    j.column = ptx_and(b, ptx_tid_x(b), (int)threads - 1);
    ptx_rolled(b);
    ptx_val i = ptx_for(b, team, ptx_u32(b, rows->heads), ptx_u32(b, rows->threads / threads));
    ptx_val head = ptx_add(b, rows->head, ptx_cvt(b, PTX_U64, i));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, head, rows->head_end));
    join_row(b, &j, &seen, rows->token, head);
    ptx_end_if(b);
    ptx_end_for(b);
    ptx_end_if(b);
}
