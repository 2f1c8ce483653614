/* Groups of a block's tile of a matrix in shared memory. The warps of a block load their numbers together, each once, in
 * the order in which they lie in memory; a warp by itself would ask for a few bytes of each sector, which the other warps
 * ask for again. */
#include "kernels/quant/matrix.h"

enum {
    STAGE_NUMBERS = 4096, /* 16 KiB: four blocks still fit a multiprocessor */
    LOADS_AHEAD = 4,
    SWIZZLE_ROWS = 128
};

typedef struct extent {
    uint64_t rows, columns;
} extent;

static extent group_extent(const kernel_spec *spec)
{
    return spec->groups == QDNN_GROUPS_ROWS ? (extent){spec->group_rows, spec->group_size}
                                            : (extent){spec->group_size, spec->group_rows};
}

/* Groups side by side in so many elements from a multiple of their number on; 0: they begin anywhere. */
static unsigned groups_in(unsigned elements, uint64_t size)
{
    return size % elements == 0 ? 1 : elements % size == 0 ? (unsigned)(elements / size) : 0;
}

static bool may_stage(const kernel_spec *spec)
{
    if (spec->row_index || spec->group_index)
        return false;
    return spec->groups == QDNN_GROUPS_COLUMNS ||
           (spec->groups == QDNN_GROUPS_ROWS && !matrix_rows_share_groups(spec, BAND));
}

/* The tile is as wide as possible where the scales of a row lie side by side, else as high. */
group_stage group_stage_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const unsigned width = patch_width(c), numbers = format_has_zero(c->format) ? 2 : 1;
    const extent e = group_extent(spec);
    group_stage s = {.warps_across = 1};
    if (!may_stage(spec) || matrix_groups_are_many(spec, width))
        return s;
    if (spec->groups == QDNN_GROUPS_ROWS && spec->scale_order == QDNN_SCALE_ORDER_DEFAULT &&
        spec->scale_swizzle == QDNN_SWIZZLE_NONE)
        s.warps_across = MATRIX_WARPS;
    s.down = groups_in(BAND * MATRIX_WARPS / s.warps_across, e.rows);
    s.across = groups_in(WARP * width * s.warps_across, e.columns);
    s.is_used = s.down && s.across && (uint64_t)s.down * s.across * numbers <= STAGE_NUMBERS;
    return s.is_used ? s : (group_stage){.warps_across = 1};
}

void group_stage_begin(ptx_builder *b, const coding *c, group_stage *s)
{
    if (!s->is_used)
        return;
    s->scales = ptx_shared(b, "group_scales", PTX_F32, s->down * s->across, LOAD_BYTES);
    if (format_has_zero(c->format))
        s->zeros = ptx_shared(b, "group_zeros", PTX_F32, s->down * s->across, LOAD_BYTES);
}

/* ---- Filling ---- */

/* A group of the tile, u32: how far down it lies and how far across. */
typedef struct spot {
    ptx_val down, across;
} spot;

static ptx_val quotient(ptx_builder *b, ptx_val x, unsigned divisor)
{
    return ptx_cvt(b, PTX_U32, emit_divide(b, ptx_cvt(b, PTX_U64, x), divisor));
}

/* The group whose number lies at place i of the tile's array; all counts are powers of two. */
static spot spot_in_memory(ptx_builder *b, const kernel_spec *spec, const group_stage *s, ptx_val i,
                           bool swizzled)
{
    const bool by_rows = spec->scale_order == QDNN_SCALE_ORDER_DEFAULT;
    const unsigned rows = by_rows ? s->down : s->across, columns = by_rows ? s->across : s->down;
    ptx_val row = quotient(b, i, columns), column = ptx_and(b, i, columns - 1);
    if (swizzled && rows == SWIZZLE_ROWS && columns % 4 == 0) {
        row = ptx_or(b, ptx_bfe(b, i, 4, 5), ptx_shl(b, ptx_bfe(b, i, 2, 2), 5));
        column = ptx_or(b, ptx_and(b, i, 3), ptx_shl(b, ptx_shr(b, i, 9), 2));
    }
    return by_rows ? (spot){row, column} : (spot){column, row};
}

/* Those beyond the matrix's edge are loaded from its last group. */
static group_place place_of_spot(ptx_builder *b, const matrix *m, const group_stage *s, spot at)
{
    const kernel_spec *spec = m->q.coding.spec;
    const extent e = group_extent(spec);
    const bool along = spec->groups == QDNN_GROUPS_ROWS;
    ptx_val down = ptx_add(b, emit_divide(b, s->row, e.rows), ptx_cvt(b, PTX_U64, at.down));
    ptx_val across = ptx_add(b, emit_divide(b, s->column, e.columns), ptx_cvt(b, PTX_U64, at.across));
    return (group_place){.line = ptx_min(b, along ? down : across, ptx_sub(b, m->lines, ptx_u64(b, 1))),
                         .group = ptx_min(b, along ? across : down, ptx_sub(b, m->groups, ptx_u64(b, 1)))};
}

typedef ptx_val load_number(ptx_builder *b, const matrix *m, const group_place *place);

/* Numbers first, first + MATRIX_BLOCK ... of the tile's array. */
static void fill_some(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val to, load_number *load,
                      ptx_val first, unsigned count)
{
    const kernel_spec *spec = m->q.coding.spec;
    const bool swizzled = load == matrix_load_scale && spec->scale_swizzle != QDNN_SWIZZLE_NONE;
    ptx_val numbers[LOADS_AHEAD], index[LOADS_AHEAD];
    for (unsigned k = 0; k < count; k++) {
        ptx_val i = k ? ptx_add(b, first, k * MATRIX_BLOCK) : first;
        spot at = spot_in_memory(b, spec, s, i, swizzled);
        group_place place = place_of_spot(b, m, s, at);
        numbers[k] = load(b, m, &place);
        index[k] = ptx_mad(b, at.down, s->across, at.across);
    }
    for (unsigned k = 0; k < count; k++)
        ptx_st_shared(b, ptx_at(b, to, index[k], 4), 0, numbers[k]);
}

/* In a loop: unrolled, the places of all numbers would stay in registers from tile to tile. */
static void fill_numbers(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val to, load_number *load)
{
    const unsigned all = s->down * s->across;
    const unsigned ahead = all < LOADS_AHEAD * MATRIX_BLOCK ? ceil_div(all, MATRIX_BLOCK) : LOADS_AHEAD;
    ptx_val first = ptx_for(b, ptx_tid_x(b), ptx_u32(b, all), ptx_u32(b, ahead * MATRIX_BLOCK));
    fill_some(b, m, s, to, load, first, ahead);
    ptx_end_for(b);
}

void group_stage_fill(ptx_builder *b, const matrix *m, group_stage *s, ptx_val row, ptx_val column)
{
    s->row = row;
    s->column = column;
    fill_numbers(b, m, s, s->scales, matrix_load_scale);
    if (s->zeros.kind != PTX_NOTHING)
        fill_numbers(b, m, s, s->zeros, matrix_load_zero);
}

/* ---- Reading ---- */

static ptx_val steps_from(ptx_builder *b, ptx_val first, ptx_val at, unsigned groups, uint64_t size)
{
    if (groups == 1)
        return ptx_u32(b, 0);
    return ptx_cvt(b, PTX_U32, emit_divide(b, ptx_sub(b, at, first), size));
}

/* One number for all columns, or one for each. */
static void read_numbers(ptx_builder *b, ptx_val from, ptx_val index, bool is_one, unsigned width, ptx_val *x)
{
    ptx_val address = ptx_at(b, from, index, 4);
    if (is_one) {
        x[0] = ptx_ld_shared(b, PTX_F32, address, 0);
        return;
    }
    for (unsigned k = 0; k < width; k += 4)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, address, (int)(4 * k), &x[k], 4);
}

void group_stage_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each)
{
    const coding *c = &m->q.coding;
    const extent e = group_extent(c->spec);
    const bool is_one = e.columns % p->width == 0;
    ptx_val scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    ptx_val down = steps_from(b, s->row, row, s->down, e.rows);
    ptx_val across = steps_from(b, s->column, p->column, s->across, e.columns);
    ptx_val index = ptx_mad(b, down, s->across, across);
    read_numbers(b, s->scales, index, is_one, p->width, scales);
    if (s->zeros.kind != PTX_NOTHING)
        read_numbers(b, s->zeros, index, is_one, p->width, zeros);
    for (unsigned k = 0; k < p->width; k++)
        each[k] = k && is_one ? each[0] : group_of_numbers(b, c, &m->q.side, scales[k], zeros[k]);
}
