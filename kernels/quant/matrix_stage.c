/* The groups of a block's tile of a matrix, in shared memory. The warps of a block load the numbers together,
 * each number once, in memory order; on its own, each warp would use only a few bytes of each sector, and
 * other warps would load the same sectors again. */
#include "kernels/quant/matrix.h"

enum {
    STAGE_NUMBERS = 4096, /* 16 KiB: four blocks still fit on a multiprocessor */
    LOADS_AHEAD = 4,
    SWIZZLE_ROWS = 128
};

typedef struct extent {
    uint64_t rows, columns;
} extent;

static extent group_extent(const kernel_spec *spec)
{
    return spec->stored.groups == QDNN_GROUPS_ROWS
               ? (extent){spec->stored.group_rows, spec->stored.group_size}
               : (extent){spec->stored.group_size, spec->stored.group_rows};
}

/* Number of groups in `elements` adjacent elements that start at a multiple of `elements`; 0: groups are not
 * aligned to them. */
static unsigned groups_in(unsigned elements, uint64_t size)
{
    return size % elements == 0 ? 1 : elements % size == 0 ? (unsigned)(elements / size) : 0;
}

/* Whether the columns of a patch share one group, or have one group each. */
static bool may_stage(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const unsigned width = patch_width(c);
    if (spec->stored.group_index || (spec->row_index && !patch_rows_are_free(c)))
        return false;
    switch (spec->stored.groups) {
    case QDNN_GROUPS_ROWS:
        return spec->stored.group_size % width == 0 &&
               (spec->row_index || !matrix_rows_share_groups(spec, BAND));
    case QDNN_GROUPS_COLUMNS:
        return !spec->row_index && (spec->stored.group_rows == 1 || spec->stored.group_rows % width == 0);
    case QDNN_GROUPS_FLAT:
        return spec->stored.group_size % width == 0 && spec->stored.channels != 1;
    default:
        return false;
    }
}

/* The tile is as wide as possible if the scales of a row are adjacent in memory, otherwise as high as
 * possible: 128 rows cover whole tiles of the swizzle. Zeros of swizzled scales are still stored along rows,
 * so that tile is made wider, too. Rows of a list can be anywhere: each warp keeps their numbers in its
 * lanes. */
static warp_tile warps_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const bool swizzled = spec->stored.scale_swizzle != QDNN_SWIZZLE_NONE;
    if (spec->row_index)
        return (warp_tile){1, MATRIX_WARPS};
    if (swizzled && format_has_zero(c->format) && patch_width(c) == 4)
        return (warp_tile){MATRIX_WARPS, 2};
    if (spec->stored.groups == QDNN_GROUPS_COLUMNS ||
        spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED || swizzled)
        return (warp_tile){MATRIX_WARPS, 1};
    return (warp_tile){1, MATRIX_WARPS};
}

/* A power of two that is at least the number of flat groups among `elements` neighbours, which may begin
 * anywhere in a group. */
static unsigned flat_groups_in(unsigned elements, uint64_t size)
{
    unsigned slots = 2;
    while (slots < (elements - 2) / size + 2)
        slots *= 2;
    return slots;
}

group_stage group_stage_of(const coding *c)
{
    const kernel_spec *spec = c->spec;
    if (spec->stored.group_table)
        return group_table_of(c);
    const group_stage none = {.warps = {MATRIX_WARPS, 1}};
    if (!may_stage(c))
        return none;
    const extent e = group_extent(spec);
    group_stage s = {.warps = warps_of(c)};
    const unsigned rows = BAND * s.warps.down, columns = WARP * patch_width(c) * s.warps.across;
    const bool is_flat = spec->stored.groups == QDNN_GROUPS_FLAT;
    s.down = is_flat || spec->row_index ? rows : groups_in(rows, e.rows);
    s.across = is_flat ? flat_groups_in(columns, spec->stored.group_size) : groups_in(columns, e.columns);
    s.is_used = (s.down && s.across) &&
                (uint64_t)s.down * s.across * (format_has_zero(c->format) ? 2 : 1) <= STAGE_NUMBERS;
    s.zeros_at = 4 * s.down * s.across;
    return s.is_used ? s : none;
}

void group_stage_begin(ptx_builder *b, const coding *c, group_stage *s)
{
    if (!s->is_used)
        return;
    const unsigned arrays = format_has_zero(c->format) ? 2 : 1;
    if (s->list.kind != PTX_NOTHING)
        s->of_lane = ptx_var(b, ptx_u32(b, 0));
    if (c->spec->stored.groups == QDNN_GROUPS_FLAT)
        s->lefts = ptx_shared(b, "group_lefts", PTX_U32, s->down, LOAD_BYTES);
    s->numbers = s->is_table
                     ? ptx_shared_dynamic(b, LOAD_BYTES)
                     : ptx_shared(b, "group_numbers", PTX_F32, arrays * s->down * s->across, LOAD_BYTES);
}

ptx_val row_list_of_band(ptx_builder *b, ptx_val list, ptx_val rows, ptx_val first)
{
    ptx_val row = ptx_add(b, first, ptx_cvt(b, PTX_U64, ptx_laneid(b)));
    row = ptx_min(b, row, ptx_sub(b, rows, ptx_u64(b, 1)));
    return ptx_ld_global_nc(b, PTX_U32, ptx_at(b, list, row, 4), 0);
}

ptx_val group_stage_serves(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val all)
{
    all = matrix_groups_aligned(b, m, patch_width(&m->q.coding), all);
    return s->is_table ? ptx_and(b, all, group_table_serves(b, m)) : all;
}

/* ---- Filling ---- */

/* A group of the tile: its position down and across (u32). */
typedef struct spot {
    ptx_val down, across;
} spot;

static ptx_val quotient(ptx_builder *b, ptx_val x, unsigned divisor)
{
    return ptx_cvt(b, PTX_U32, emit_divide(b, ptx_cvt(b, PTX_U64, x), divisor));
}

/* The group whose number is at index i of the tile's array; all counts are powers of two. */
static spot spot_in_memory(ptx_builder *b, const kernel_spec *spec, const group_stage *s, ptx_val i,
                           bool swizzled)
{
    const bool by_rows = spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT;
    const unsigned rows = by_rows ? s->down : s->across, columns = by_rows ? s->across : s->down;
    ptx_val row = quotient(b, i, columns), column = ptx_and(b, i, columns - 1);
    if (swizzled && rows == SWIZZLE_ROWS && columns % 4 == 0) {
        row = ptx_or(b, ptx_bfe(b, i, 4, 5), ptx_shl(b, ptx_bfe(b, i, 2, 2), 5));
        column = ptx_or(b, ptx_and(b, i, 3), ptx_shl(b, ptx_shr(b, i, 9), 2));
    }
    return by_rows ? (spot){row, column} : (spot){column, row};
}

/* The row of the matrix for a row of the tile; rows beyond the end count as the last. For entries of a list
 * that are not valid rows, any row will do. */
static ptx_val row_of_spot(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val down)
{
    ptx_val last = ptx_sub(b, m->rows, ptx_u64(b, 1));
    if (s->list.kind != PTX_NOTHING)
        return ptx_min(b, ptx_cvt(b, PTX_U64, ptx_shfl_idx(b, s->of_lane, down)), last);
    return ptx_min(b, ptx_add(b, s->row, ptx_cvt(b, PTX_U64, down)), last);
}

/* The group `at.across` groups after that of the tile's first element in the row; `known` if it begins within
 * the tile. */
static group_place flat_place(ptx_builder *b, const matrix *m, const group_stage *s, spot at)
{
    const coding *c = &m->q.coding;
    const uint64_t size = c->spec->stored.group_size;
    const unsigned width = WARP * patch_width(c) * s->warps.across;
    ptx_val row = row_of_spot(b, m, s, at.down);
    ptx_val first = emit_divide(b, ptx_mad(b, row, m->columns, s->column), size);
    ptx_val end = ptx_mad(b, row, m->columns, ptx_min(b, ptx_add(b, s->column, width), m->columns));
    ptx_val element = ptx_mul(b, ptx_add(b, first, ptx_cvt(b, PTX_U64, at.across)), ptx_u64(b, size));
    return (group_place){.group = flat_group_number(b, c->spec, element),
                         .known = ptx_setp(b, PTX_LT, element, end)};
}

/* For each row, the number of elements from the tile's first column to the end of their group, limited to
 * 1,024, which is at least the width of a tile. */
static void fill_lefts(ptx_builder *b, const matrix *m, const group_stage *s)
{
    const uint64_t size = m->q.coding.spec->stored.group_size;
    ptx_val down = ptx_tid_x(b);
    ptx_if(b, ptx_setp(b, PTX_LT, down, s->down));
    ptx_val first = ptx_mad(b, row_of_spot(b, m, s, down), m->columns, s->column);
    ptx_val past = emit_remainder(b, first, emit_divide(b, first, size), size);
    ptx_val left = ptx_min(b, ptx_sub(b, ptx_u64(b, size), past), ptx_u64(b, 1024));
    ptx_st_shared(b, ptx_at(b, s->lefts, down, 4), 0, ptx_cvt(b, PTX_U32, left));
    ptx_end_if(b);
}

/* Groups beyond the edge of the matrix are loaded from its last group. */
static group_place place_of_spot(ptx_builder *b, const matrix *m, const group_stage *s, spot at)
{
    const kernel_spec *spec = m->q.coding.spec;
    if (spec->stored.groups == QDNN_GROUPS_FLAT)
        return flat_place(b, m, s, at);
    const extent e = group_extent(spec);
    const bool along = spec->stored.groups == QDNN_GROUPS_ROWS;
    ptx_val down = ptx_add(b, emit_divide(b, s->row, e.rows), ptx_cvt(b, PTX_U64, at.down));
    ptx_val across = ptx_add(b, emit_divide(b, s->column, e.columns), ptx_cvt(b, PTX_U64, at.across));
    if (s->list.kind != PTX_NOTHING)
        down = emit_divide(b, row_of_spot(b, m, s, at.down), e.rows);
    return (group_place){.line = ptx_min(b, along ? down : across, ptx_sub(b, m->lines, ptx_u64(b, 1))),
                         .group = ptx_min(b, along ? across : down, ptx_sub(b, m->groups, ptx_u64(b, 1)))};
}

typedef ptx_val load_number(ptx_builder *b, const matrix *m, const group_place *place);

static unsigned stage_threads(const group_stage *s)
{
    return s->warps.down * s->warps.across * WARP;
}

/* Numbers that do not exist are not loaded, since nobody else may need their sector. */
static ptx_val load_known(ptx_builder *b, const matrix *m, const group_place *place, load_number *load)
{
    if (place->known.kind == PTX_NOTHING)
        return load(b, m, place);
    ptx_val number = ptx_var(b, ptx_f32(b, 0));
    ptx_if(b, place->known);
    ptx_assign(b, number, load(b, m, place));
    ptx_end_if(b);
    return number;
}

/* Loads numbers first, first + threads of the block ... of the tile's array. */
static void fill_some(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val to, load_number *load,
                      ptx_val first, unsigned count)
{
    const kernel_spec *spec = m->q.coding.spec;
    const bool swizzled = load == matrix_load_scale && spec->stored.scale_swizzle != QDNN_SWIZZLE_NONE;
    const unsigned threads = stage_threads(s);
    ptx_val numbers[LOADS_AHEAD], index[LOADS_AHEAD];
    for (unsigned k = 0; k < count; k++) {
        ptx_val i = k ? ptx_add(b, first, k * threads) : first;
        spot at = spot_in_memory(b, spec, s, i, swizzled);
        group_place place = place_of_spot(b, m, s, at);
        numbers[k] = load_known(b, m, &place, load);
        index[k] = ptx_mad(b, at.down, s->across, at.across);
    }
    for (unsigned k = 0; k < count; k++)
        ptx_st_shared(b, ptx_at(b, to, index[k], 4), 0, numbers[k]);
}

/* In a loop: if it were unrolled, the positions of all numbers would stay in registers from tile to tile. */
static void fill_numbers(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val to, load_number *load)
{
    const unsigned all = s->down * s->across, threads = stage_threads(s);
    const unsigned ahead = all < LOADS_AHEAD * threads ? ceil_div(all, threads) : LOADS_AHEAD;
    ptx_val first = ptx_for(b, ptx_tid_x(b), ptx_u32(b, all), ptx_u32(b, ahead * threads));
    fill_some(b, m, s, to, load, first, ahead);
    ptx_end_for(b);
}

void group_stage_fill(ptx_builder *b, const matrix *m, group_stage *s, ptx_val row, ptx_val column)
{
    s->row = row;
    s->column = column;
    if (s->is_table) {
        group_table_fill(b, m, s);
        return;
    }
    if (s->list.kind != PTX_NOTHING)
        ptx_assign(b, s->of_lane, row_list_of_band(b, s->list, s->list_rows, row));
    if (s->lefts.kind != PTX_NOTHING)
        fill_lefts(b, m, s);
    fill_numbers(b, m, s, s->numbers, matrix_load_scale);
    if (format_has_zero(m->q.coding.format))
        fill_numbers(b, m, s, ptx_add(b, s->numbers, s->zeros_at), matrix_load_zero);
}

/* ---- Reading ---- */

static ptx_val steps_from(ptx_builder *b, ptx_val first, ptx_val at, unsigned groups, uint64_t size)
{
    if (groups == 1)
        return ptx_u32(b, 0);
    return ptx_cvt(b, PTX_U32, emit_divide(b, ptx_sub(b, at, first), size));
}

/* x / size for x below 1,024 (u32), the width of the widest tile. */
static ptx_val small_quotient(ptx_builder *b, ptx_val x, uint64_t size)
{
    enum { FRACTION = 20 };
    if (size >= 1024)
        return ptx_u32(b, 0);
    return ptx_shr(b, ptx_mul(b, x, (int)ceil_div(1u << FRACTION, size)), FRACTION);
}

/* The number of groups of the row that begin after the tile's first column, up to and including this one. */
static ptx_val flat_steps(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val down, ptx_val column)
{
    ptx_val at = ptx_cvt(b, PTX_U32, ptx_sub(b, column, s->column));
    ptx_val left = ptx_ld_shared(b, PTX_U32, ptx_at(b, s->lefts, down, 4), 0);
    ptx_val after = small_quotient(b, ptx_sub(b, at, left), m->q.coding.spec->stored.group_size);
    return ptx_selp(b, ptx_u32(b, 0), ptx_add(b, after, 1), ptx_setp(b, PTX_LT, at, left));
}

/* The index of a patch's first group in the stage. */
static ptx_val stage_index(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, ptx_val column)
{
    const kernel_spec *spec = m->q.coding.spec;
    const extent e = group_extent(spec);
    const bool is_flat = spec->stored.groups == QDNN_GROUPS_FLAT;
    const bool is_listed = s->list.kind != PTX_NOTHING;
    ptx_val down =
        steps_from(b, s->row, is_listed ? s->list_row : row, s->down, is_flat || is_listed ? 1 : e.rows);
    ptx_val across =
        is_flat ? flat_steps(b, m, s, down, column) : steps_from(b, s->column, column, s->across, e.columns);
    return ptx_mad(b, down, s->across, across);
}

/* One number for all columns, or one per column. */
static void read_numbers(ptx_builder *b, ptx_val address, unsigned offset, bool is_one, unsigned width,
                         ptx_val *x)
{
    if (is_one) {
        x[0] = ptx_ld_shared(b, PTX_F32, address, (int)offset);
        return;
    }
    for (unsigned k = 0; k < width; k += 4)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, address, (int)(offset + 4 * k), &x[k], 4);
}

void group_stage_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each)
{
    const coding *c = &m->q.coding;
    const kernel_spec *spec = c->spec;
    const bool is_one = spec->stored.groups == QDNN_GROUPS_FLAT || group_extent(spec).columns % p->width == 0;
    ptx_val scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    ptx_val address = ptx_at(b, s->numbers, stage_index(b, m, s, row, p->column), 4);
    read_numbers(b, address, 0, is_one, p->width, scales);
    if (format_has_zero(c->format))
        read_numbers(b, address, s->zeros_at, is_one, p->width, zeros);
    for (unsigned k = 0; k < p->width; k++)
        each[k] = k && is_one ? each[0] : group_of_numbers(b, c, &m->q.side, scales[k], zeros[k]);
}
