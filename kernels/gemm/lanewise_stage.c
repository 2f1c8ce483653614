/* Stages of the product for many rows: brings two chunks of a lane into shared memory, for the tile's rows
 * of x and its outputs. */
#include "kernels/gemm/lanewise.h"

ptx_val lanewise_row_offset(ptx_builder *b, ptx_val row)
{
    ptx_val eight = ptx_mul(b, ptx_shr(b, row, 3), EIGHT_ROWS);
    return ptx_mad(b, ptx_and(b, row, 7), ROW_BYTES, eight);
}

unsigned lanewise_rows_bytes(unsigned rows)
{
    return rows / 8 * EIGHT_ROWS;
}

unsigned lanewise_buffer_bytes(const lanewise *t)
{
    return lanewise_rows_bytes(t->rows) + lanewise_rows_bytes(t->columns);
}

/* ---- Items ---- */

/* Output `number` (u32) of the tile; in gated pairs, a and b alternate in groups of eight, so that a
 * thread has both. */
static ptx_val output_of(ptx_builder *b, const lanewise *t, ptx_val number)
{
    if (!t->spec->epilogue.gated)
        return ptx_add(b, t->column, ptx_cvt(b, PTX_U64, number));
    ptx_val index = ptx_or(b, ptx_shl(b, ptx_shr(b, number, 4), 3), ptx_and(b, number, 7));
    ptx_val a = ptx_add(b, t->column, ptx_cvt(b, PTX_U64, index)), other = ptx_add(b, a, t->args.n);
    return ptx_selp(b, a, other, ptx_setp(b, PTX_EQ, ptx_and(b, number, 8), 0));
}

/* Each chunk of the stage has `size` items. Returns the number of the thread's item i among those of its
 * chunk, and sets the chunk's k and place. */
static ptx_val place_item(ptx_builder *b, const lanewise *t, unsigned i, unsigned size, ptx_val base,
                          item *it)
{
    if (size >= THREADS) {
        const unsigned chunk = i * THREADS / size, first = i * THREADS % size;
        it->k = ptx_u32(b, chunk * ROUND);
        it->to = ptx_add(b, base, (int)(chunk * 4 * CHUNK));
        return first ? ptx_add(b, t->tid, (int)first) : t->tid;
    }
    ptx_val chunk = ptx_and(b, ptx_shr(b, t->tid, ceil_log2(size)), CHUNKS - 1);
    it->k = ptx_mul(b, chunk, ROUND);
    it->to = ptx_mad(b, chunk, 4 * CHUNK, base);
    return ptx_and(b, t->tid, (int)size - 1);
}

static ptx_val x_address(ptx_builder *b, const lanewise *t, ptx_val row, ptx_val k)
{
    return ptx_at(b, t->args.all.operand[QDNN_OPERAND_X], ptx_mad(b, row, t->args.x_stride, k),
                  element_bytes(t->spec->data));
}

/* Neighbouring threads have neighbouring rows. */
void lanewise_place_x(ptx_builder *b, lanewise *t)
{
    ptx_val last = ptx_sub(b, t->at.count, 1);
    for (unsigned i = 0; i < t->x_items; i++) {
        item *it = &t->x[i];
        ptx_val row = place_item(b, t, i, t->rows, t->shared, it);
        ptx_val of_tile = ptx_min(b, ptx_cvt(b, PTX_U64, row), last);
        it->number = row_tile_row(b, &t->at, of_tile, row_tile_has(b, &t->at, of_tile));
        it->number = x_row_of(b, t->spec, it->number);
        it->to = ptx_add(b, it->to, lanewise_row_offset(b, row));
        it->row = x_address(b, t, it->number, ptx_u64(b, 0));
    }
}

static void place_along_k(ptx_builder *b, lanewise *t, ptx_val number, item *it)
{
    it->number = ptx_min(b, output_of(b, t, number), ptx_sub(b, t->w.outputs, 1));
    it->to = ptx_add(b, it->to, lanewise_row_offset(b, number));
}

/* Places an item of eight outputs at one k. Groups that do not exist are replaced by the last one, at a
 * multiple of 8. */
static void place_group(ptx_builder *b, lanewise *t, ptx_val output, ptx_val k, item *it)
{
    ptx_val last = ptx_and(b, ptx_sub(b, t->w.outputs, 1), ptx_u64(b, ~(uint64_t)(CHUNK - 1)));
    ptx_val chosen = output_of(b, t, output);
    it->number = ptx_selp(b, chosen, last, ptx_setp(b, PTX_LT, chosen, t->w.outputs));
    it->k = ptx_add(b, k, it->k);
    it->to = ptx_mad(b, k, 4, ptx_add(b, it->to, lanewise_row_offset(b, output)));
}

/* Eight neighbouring threads take eight k of one group of eight outputs, the next eight threads the next
 * group. */
static void place_along_outputs(ptx_builder *b, lanewise *t, ptx_val number, item *it)
{
    place_group(b, t, ptx_and(b, number, 0x7FFFFFF8), ptx_and(b, number, CHUNK - 1), it);
}

/* Item i is one of a pair. Four neighbouring threads take four k of a group with their first items, and
 * the other four with their second ones; every other four groups do so in the opposite order, so that a
 * warp's stores have no bank conflicts. */
static void place_in_pair(ptx_builder *b, lanewise *t, unsigned i, ptx_val number, item *it)
{
    ptx_val group = ptx_shr(b, number, 2), turn = ptx_and(b, group, 4);
    ptx_val k = ptx_add(b, ptx_and(b, number, 3), i % 2 ? ptx_xor(b, turn, 4) : turn);
    place_group(b, t, ptx_shl(b, group, 3), k, it);
}

void lanewise_place_weights(ptx_builder *b, lanewise *t)
{
    ptx_val base = ptx_add(b, t->shared, (int)lanewise_rows_bytes(t->rows));
    for (unsigned i = 0; i < t->w_items; i++) {
        item *it = &t->weight[i];
        if (t->in_pairs)
            place_in_pair(b, t, i, place_item(b, t, i / 2, t->columns / 2, base, it), it);
        else
            (runs_along_k(&t->w) ? place_along_k
                                 : place_along_outputs)(b, t, place_item(b, t, i, t->columns, base, it), it);
        it->base = run_base_of(b, &t->w, it->number);
    }
}

/* ---- Stages ---- */

/* Sets the item's k in the stage that begins at `stage`. */
static void locate(ptx_builder *b, const lanewise *t, item *it, ptx_val stage)
{
    const bool is_wide = stage.type == PTX_U64;
    it->at = ptx_add(b, stage, is_wide ? ptx_cvt(b, PTX_U64, ptx_mov(b, it->k)) : it->k);
    it->exists = ptx_setp(b, PTX_LT, it->at, is_wide ? t->args.k : ptx_cvt(b, PTX_U32, t->args.k));
}

static void fetch_weights(ptx_builder *b, lanewise *t, unsigned i)
{
    item *it = &t->weight[i];
    ptx_val k = ptx_selp(b, it->at, 0, it->exists);
    if (t->in_pairs && i % 2)
        run_fetch_beside(b, &t->w, &t->weight[i - 1].run, k, &it->run);
    else
        run_fetch(b, &t->w, &it->base, k, &it->run);
}

/* With 128 rows, half the threads have all the weights, in pairs. */
static bool has_weights_of_some(const lanewise *t)
{
    return t->in_pairs && t->columns < THREADS;
}

static void weights_begin_put(ptx_builder *b, const lanewise *t)
{
    if (has_weights_of_some(t))
        ptx_if(b, ptx_setp(b, PTX_LT, t->tid, (int)t->columns));
}

static void weights_end_put(ptx_builder *b, const lanewise *t)
{
    if (has_weights_of_some(t))
        ptx_end_if(b);
}

/* Only loads, for k below 2^31. For items beyond K, the first k is loaded, and zeros are stored later. */
void lanewise_fetch(ptx_builder *b, lanewise *t, ptx_val stage)
{
    const unsigned bytes = element_bytes(t->spec->data);
    for (unsigned i = 0; i < t->x_items; i++) {
        item *it = &t->x[i];
        locate(b, t, it, stage);
        ptx_val k = ptx_selp(b, it->at, 0, it->exists);
        emit_load_words(b, ptx_at(b, it->row, k, bytes), 0, CHUNK * bytes / 4, it->words);
    }
    for (unsigned i = 0; i < t->w_items; i++)
        locate(b, t, &t->weight[i], stage);
    ptx_label skip = ptx_label_new(b); /* in a ptx_if, the loaded values would go out of scope */
    if (has_weights_of_some(t)) {
        ptx_uniform(b);
        ptx_bra_unless(b, ptx_setp(b, PTX_LT, t->tid, (int)t->columns), skip);
    }
    for (unsigned i = 0; i < t->w_items && i < ITEMS_AHEAD; i++)
        fetch_weights(b, t, i);
    ptx_label_place(b, skip);
}

/* With 32 rows, only some threads have an item of x. */
static void x_begin(ptx_builder *b, const lanewise *t)
{
    if (t->rows * CHUNKS < THREADS)
        ptx_if(b, ptx_setp(b, PTX_LT, t->tid, (int)(t->rows * CHUNKS)));
}

static void x_end(ptx_builder *b, const lanewise *t)
{
    if (t->rows * CHUNKS < THREADS)
        ptx_end_if(b);
}

static void put_x(ptx_builder *b, const lanewise *t, const item *it, ptx_val buffer)
{
    const unsigned in_word = 4 / element_bytes(t->spec->data);
    ptx_val to = ptx_add(b, it->to, buffer), values[CHUNK];
    for (unsigned k = 0; k < CHUNK; k += in_word)
        emit_widen_word(b, t->spec->data, it->words[k / in_word], values + k);
    for (unsigned k = 0; k < CHUNK; k += QUAD)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(4 * k), values + k, QUAD);
}

static void put_x_zeros(ptx_builder *b, const item *it, ptx_val buffer)
{
    ptx_val to = ptx_add(b, it->to, buffer), zero = ptx_mov(b, ptx_f32(b, 0));
    const ptx_val values[QUAD] = {zero, zero, zero, zero};
    for (unsigned k = 0; k < CHUNK; k += QUAD)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, to, (int)(4 * k), values, QUAD);
}

static run_target target_of(ptx_builder *b, const item *it, ptx_val buffer)
{
    return (run_target){ptx_add(b, it->to, buffer), 4 * QUAD, ROW_BYTES};
}

static void put_weights(ptx_builder *b, const lanewise *t, const item *it, ptx_val buffer)
{
    const run_target to = target_of(b, it, buffer);
    run_put(b, &t->w, &it->run, &to);
}

static void put_weight_zeros(ptx_builder *b, const lanewise *t, const item *it, ptx_val buffer)
{
    const run_target to = target_of(b, it, buffer);
    run_put_zeros(b, &t->w, &to);
}

/* Stores what was fetched in a buffer. Not every lane has chunks in the last stage; the branch also keeps
 * ptxas from moving the decoding into the sums, where there are no registers to spare. */
static void put_values(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_LT, stage, ptx_cvt(b, PTX_U32, t->args.k)));
    x_begin(b, t);
    for (unsigned i = 0; i < t->x_items; i++)
        put_x(b, t, &t->x[i], buffer);
    x_end(b, t);
    weights_begin_put(b, t);
    for (unsigned i = 0; i < t->w_items; i++) {
        if (i >= ITEMS_AHEAD)
            fetch_weights(b, t, i);
        put_weights(b, t, &t->weight[i], buffer);
    }
    weights_end_put(b, t);
    ptx_end_if(b);
}

/* Then overwrites with zeros what does not exist, in the last stage of a lane. */
static void put_zeros(ptx_builder *b, const lanewise *t, ptx_val stage, ptx_val buffer)
{
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_GE, ptx_add(b, stage, (CHUNKS - 1) * ROUND), ptx_cvt(b, PTX_U32, t->args.k)));
    x_begin(b, t);
    for (unsigned i = 0; i < t->x_items; i++) {
        ptx_if_not(b, t->x[i].exists);
        put_x_zeros(b, &t->x[i], buffer);
        ptx_end_if(b);
    }
    x_end(b, t);
    weights_begin_put(b, t);
    for (unsigned i = 0; i < t->w_items; i++) {
        ptx_if_not(b, t->weight[i].exists);
        put_weight_zeros(b, t, &t->weight[i], buffer);
        ptx_end_if(b);
    }
    weights_end_put(b, t);
    ptx_end_if(b);
}

void lanewise_put(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer)
{
    put_values(b, t, stage, buffer);
    put_zeros(b, t, stage, buffer);
}

/* ---- Stages element by element: rows at any address, a K that is not a multiple of 8 ---- */

static void copy_x(ptx_builder *b, const lanewise *t, const item *it, ptx_val to)
{
    ptx_val i = ptx_for(b, ptx_u32(b, 0), CHUNK, 1);
    ptx_val k = ptx_add(b, it->at, ptx_cvt(b, PTX_U64, i)), value = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, ptx_setp(b, PTX_LT, k, t->args.k));
    ptx_assign(b, value, emit_load(b, t->spec->data, x_address(b, t, it->number, k), 0));
    ptx_end_if(b);
    ptx_st_shared(b, ptx_at(b, to, i, 4), 0, value);
    ptx_end_for(b);
}

/* Blocks can always be read in runs. */
static void copy_weights(ptx_builder *b, const lanewise *t, item *it, ptx_val buffer)
{
    const run_target to = target_of(b, it, buffer);
    if (!t->w.layout) {
        run_put_elements(b, &t->w, it->number, it->at, &to);
        return;
    }
    ptx_uniform(b);
    ptx_if(b, it->exists);
    run_fetch(b, &t->w, &it->base, it->at, &it->run);
    run_put(b, &t->w, &it->run, &to);
    ptx_else(b);
    put_weight_zeros(b, t, it, buffer);
    ptx_end_if(b);
}

void lanewise_copy(ptx_builder *b, lanewise *t, ptx_val stage, ptx_val buffer)
{
    x_begin(b, t);
    for (unsigned i = 0; i < t->x_items; i++) {
        locate(b, t, &t->x[i], stage);
        copy_x(b, t, &t->x[i], ptx_add(b, t->x[i].to, buffer));
    }
    x_end(b, t);
    weights_begin_put(b, t);
    for (unsigned i = 0; i < t->w_items; i++) {
        locate(b, t, &t->weight[i], stage);
        copy_weights(b, t, &t->weight[i], buffer);
    }
    weights_end_put(b, t);
}

ptx_val lanewise_x_is_aligned(ptx_builder *b, const lanewise *t)
{
    const unsigned elements = LOAD_BYTES / element_bytes(t->spec->data);
    ptx_val rest = ptx_or(b, ptx_and(b, t->args.x_stride, ptx_u64(b, elements - 1)),
                          ptx_and(b, t->args.k, ptx_u64(b, CHUNK - 1)));
    return ptx_setp_and(b, PTX_EQ, rest, ptx_u64(b, 0),
                        emit_aligned(b, t->args.all.operand[QDNN_OPERAND_X], LOAD_BYTES));
}
