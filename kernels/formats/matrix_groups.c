/* The groups of a matrix: which one an element belongs to, where its numbers are, and how those of adjacent
 * elements are loaded. */
#include "kernels/formats/matrix.h"

static bool is_lined(const kernel_spec *spec)
{
    return spec->stored.groups == QDNN_GROUPS_ROWS || spec->stored.groups == QDNN_GROUPS_COLUMNS;
}

static void set_lines(ptx_builder *b, const kernel_spec *spec, matrix *m)
{
    bool down = spec->stored.groups == QDNN_GROUPS_COLUMNS;
    m->lines = emit_divide_up(b, down ? m->columns : m->rows, spec->stored.group_rows);
    m->groups = emit_divide_up(b, down ? m->rows : m->columns, spec->stored.group_size);
}

/* ---- Places ---- */

/* If a group index is out of range, the numbers of the first group are loaded but not used. */
static group_place indexed_place(ptx_builder *b, const matrix *m, ptx_val row, ptx_val line)
{
    ptx_val index = ptx_cvt(b, PTX_U64, ptx_ld_global_nc(b, PTX_U32, ptx_at(b, m->group_index, row, 4), 0));
    ptx_val known = ptx_setp(b, PTX_LT, index, m->groups);
    return (group_place){.line = line, .group = ptx_selp(b, index, ptx_u64(b, 0), known), .known = known};
}

static group_place place_of(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column)
{
    const kernel_spec *spec = m->q.coding.spec;
    switch (spec->stored.groups) {
    case QDNN_GROUPS_ROWS:
        return (group_place){.line = emit_divide(b, row, spec->stored.group_rows),
                             .group = emit_divide(b, column, spec->stored.group_size)};
    case QDNN_GROUPS_COLUMNS:
        if (spec->stored.group_index)
            return indexed_place(b, m, row, emit_divide(b, column, spec->stored.group_rows));
        return (group_place){.line = emit_divide(b, column, spec->stored.group_rows),
                             .group = emit_divide(b, row, spec->stored.group_size)};
    default:
        return (group_place){.group = flat_group_number(b, spec, ptx_mad(b, row, m->columns, column))};
    }
}

bool lines_first(const kernel_spec *spec)
{
    return (spec->stored.groups != QDNN_GROUPS_COLUMNS) !=
           (spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED);
}

ptx_val matrix_group_number(ptx_builder *b, const matrix *m, const group_place *place)
{
    const kernel_spec *spec = m->q.coding.spec;
    if (!is_lined(spec))
        return place->group;
    return lines_first(spec) ? ptx_mad(b, place->line, m->groups, place->group)
                             : ptx_mad(b, place->group, m->lines, place->line);
}

/* Tiles of 128 x 4 scales, in which rows 32 apart are adjacent. */
ptx_val matrix_scale_slot(ptx_builder *b, const matrix *m, const group_place *place)
{
    const kernel_spec *spec = m->q.coding.spec;
    if (spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE)
        return matrix_group_number(b, m, place);
    bool by_lines = lines_first(spec);
    ptx_val row = by_lines ? place->line : place->group, column = by_lines ? place->group : place->line;
    ptx_val tiles = emit_divide_up(b, by_lines ? m->groups : m->lines, 4);
    ptx_val tile = ptx_mad(b, ptx_shr(b, row, 7), tiles, ptx_shr(b, column, 2));
    ptx_val low = ptx_shl(b, ptx_and(b, row, ptx_u64(b, 31)), 4);
    ptx_val high = ptx_shr(b, ptx_and(b, row, ptx_u64(b, 96)), 3);
    ptx_val inside = ptx_or(b, ptx_or(b, low, high), ptx_and(b, column, ptx_u64(b, 3)));
    return ptx_or(b, ptx_shl(b, tile, 9), inside);
}

/* ---- Packed zeros: codes in streams of words ---- */

/* The stream that contains the zero of a group, and the number of the zero in it. */
static word_stream zero_stream_of(ptx_builder *b, const matrix *m, const group_place *place, ptx_val *number)
{
    const kernel_spec *spec = m->q.coding.spec;
    word_stream s = {.bits = m->q.coding.format->facts.bits, .first = m->q.side.zero};
    *number = spec->stored.groups == QDNN_GROUPS_FLAT ? place->group : place->line;
    if (spec->stored.groups == QDNN_GROUPS_ROWS) {
        s.first = ptx_at(b, s.first, place->group, 4);
        s.stride = ptx_shl(b, m->groups, 2);
    } else if (spec->stored.groups == QDNN_GROUPS_COLUMNS) {
        s.first = ptx_at(b, s.first, ptx_mul(b, place->group, m->zero_words), 4);
        s.is_awq = spec->stored.layout == QDNN_LAYOUT_AWQ;
    }
    return s;
}

static ptx_val zero_number(ptx_builder *b, const matrix *m, ptx_val word, unsigned position)
{
    const coding *c = &m->q.coding;
    return group_zero_from(b, c, c->format->codec->unit(b, c, &m->q.state, word, position));
}

static ptx_val packed_zero(ptx_builder *b, const matrix *m, const group_place *place)
{
    ptx_val number;
    word_stream s = zero_stream_of(b, m, place, &number);
    return zero_number(b, m, stream_code(b, &s, number), 0);
}

/* The zeros of `width` adjacent groups in a stream without gaps. */
static void packed_zeros(ptx_builder *b, const matrix *m, const group_place *place, unsigned width,
                         ptx_val *zeros)
{
    ptx_val number, quads[CHUNK_MAX / QUAD];
    word_stream s = zero_stream_of(b, m, place, &number);
    stream_quads(b, &s, number, width, quads);
    for (unsigned k = 0; k < width; k++)
        zeros[k] = zero_number(b, m, quads[k / QUAD], stream_position(s.bits, s.is_awq, k % QUAD));
}

/* ---- Values ---- */

static group_values values_of(ptx_builder *b, const matrix *m, const group_place *place, ptx_val scale,
                              ptx_val zero)
{
    if (place->known.kind != PTX_NOTHING) {
        scale = ptx_selp(b, scale, ptx_bits(b, PTX_F32, 0x7FFFFFFF), place->known);
        if (zero.kind != PTX_NOTHING)
            zero = ptx_selp(b, zero, ptx_f32(b, 0), place->known);
    }
    return group_of_numbers(b, &m->q.coding, &m->q.side, scale, zero);
}

ptx_val matrix_load_scale(ptx_builder *b, const matrix *m, const group_place *place)
{
    return group_load_scale(b, &m->q.coding, &m->q.side, matrix_scale_slot(b, m, place));
}

ptx_val matrix_load_zero(ptx_builder *b, const matrix *m, const group_place *place)
{
    const coding *c = &m->q.coding;
    const qdnnDataType_t type = c->spec->stored.zero;
    if (c->spec->stored.zero_packed)
        return packed_zero(b, m, place);
    ptx_val address = ptx_at(b, m->q.side.zero, matrix_group_number(b, m, place), element_bytes(type));
    return group_zero_from(b, c, emit_load(b, type, address, 0));
}

static group_values group_at(ptx_builder *b, const matrix *m, const group_place *place)
{
    ptx_val scale = matrix_load_scale(b, m, place), zero = {0};
    if (format_has_zero(m->q.coding.format))
        zero = matrix_load_zero(b, m, place);
    return values_of(b, m, place, scale, zero);
}

static bool is_one_group(const kernel_spec *spec)
{
    return spec->stored.groups == QDNN_GROUPS_DEFAULT || spec->stored.channels == 1;
}

static void load_only_group(ptx_builder *b, matrix *m)
{
    group_place first = {.group = ptx_u64(b, 0)};
    if (m->q.coding.spec->stored.groups == QDNN_GROUPS_DEFAULT)
        m->q.only = group_without_scale(b);
    else if (m->q.coding.spec->stored.channels == 1)
        m->q.only = group_at(b, m, &first);
}

matrix matrix_begin(ptx_builder *b, const quantized *q, const kernel_args *args)
{
    const kernel_spec *spec = q->coding.spec;
    const uint64_t bits = q->coding.format->facts.bits;
    matrix m = {.q = *q,
                .rows = args->number[spec->row_index ? NUMBER_TABLE_ROWS : NUMBER_ROWS],
                .columns = args->number[NUMBER_COLUMNS],
                .group_index = args->operand[QDNN_OPERAND_GROUP_INDEX]};
    if (spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS || spec->stored.layout == QDNN_LAYOUT_AWQ)
        m.row_words = emit_divide_up(b, ptx_mul(b, m.columns, ptx_u64(b, bits)), 32);
    if (is_lined(spec))
        set_lines(b, spec, &m);
    if (spec->stored.zero_packed && spec->stored.groups == QDNN_GROUPS_COLUMNS)
        m.zero_words = emit_divide_up(b, ptx_mul(b, m.lines, ptx_u64(b, bits)), 32);
    load_only_group(b, &m);
    return m;
}

group_values matrix_group(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column)
{
    if (is_one_group(m->q.coding.spec))
        return m->q.only;
    group_place place = place_of(b, m, row, column);
    return group_at(b, m, &place);
}

/* ---- Neighbours in a row ---- */

typedef enum {
    ONE_GROUP,
    RUN_OF_GROUPS, /* one group per column, adjacent in memory */
    EACH_COLUMN
} row_grouping;

static row_grouping row_grouping_of(const kernel_spec *spec, unsigned width)
{
    bool plain = spec->stored.scale_order == QDNN_SCALE_ORDER_DEFAULT &&
                 spec->stored.scale_swizzle == QDNN_SWIZZLE_NONE && !spec->stored.nested;
    if (is_one_group(spec))
        return ONE_GROUP;
    switch (spec->stored.groups) {
    case QDNN_GROUPS_ROWS:
        return spec->stored.group_size % width == 0 ? ONE_GROUP : EACH_COLUMN;
    case QDNN_GROUPS_COLUMNS:
        return spec->stored.group_rows % width == 0    ? ONE_GROUP
               : spec->stored.group_rows == 1 && plain ? RUN_OF_GROUPS
                                                       : EACH_COLUMN;
    default:
        if (spec->stored.group_size == 1 && spec->stored.channels > 0 && spec->stored.channels % width == 0 &&
            plain)
            return RUN_OF_GROUPS;
        return spec->stored.group_size % width == 0 ? ONE_GROUP : EACH_COLUMN;
    }
}

bool matrix_rows_share_groups(const kernel_spec *spec, unsigned rows)
{
    if (is_one_group(spec))
        return true;
    if (spec->stored.groups == QDNN_GROUPS_ROWS)
        return spec->stored.group_rows % rows == 0;
    return spec->stored.groups == QDNN_GROUPS_COLUMNS && !spec->stored.group_index &&
           spec->stored.group_size % rows == 0;
}

bool matrix_groups_are_many(const kernel_spec *spec, unsigned width)
{
    return row_grouping_of(spec, width) == EACH_COLUMN;
}

ptx_val matrix_groups_aligned(ptx_builder *b, const matrix *m, unsigned width, ptx_val all)
{
    const coding *c = &m->q.coding;
    if (row_grouping_of(c->spec, width) != RUN_OF_GROUPS)
        return all;
    all = ptx_and(b, all, emit_aligned(b, m->q.side.scale, LOAD_BYTES));
    if (format_has_zero(c->format) && !c->spec->stored.zero_packed)
        all = ptx_and(b, all, emit_aligned(b, m->q.side.zero, LOAD_BYTES));
    return all;
}

static void load_run(ptx_builder *b, const matrix *m, const group_place *place, unsigned width,
                     ptx_val *scales, ptx_val *zeros)
{
    const coding *c = &m->q.coding;
    const kernel_spec *spec = c->spec;
    ptx_val number = matrix_group_number(b, m, place);
    emit_load_scale_run(b, spec->stored.scale,
                        ptx_at(b, m->q.side.scale, number, scale_bytes(spec->stored.scale)), width, scales);
    if (!format_has_zero(c->format))
        return;
    if (spec->stored.zero_packed) {
        packed_zeros(b, m, place, width, zeros);
        return;
    }
    emit_load_run(b, spec->stored.zero, ptx_at(b, m->q.side.zero, number, element_bytes(spec->stored.zero)),
                  0, width, zeros);
    for (unsigned k = 0; k < width; k++)
        zeros[k] = group_zero_from(b, c, zeros[k]);
}

static void load_run_of_groups(ptx_builder *b, const matrix *m, const group_place *place, unsigned width,
                               group_values *each)
{
    ptx_val scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    load_run(b, m, place, width, scales, zeros);
    for (unsigned k = 0; k < width; k++)
        each[k] = values_of(b, m, place, scales[k], zeros[k]);
}

void matrix_column_numbers(ptx_builder *b, const matrix *m, ptx_val group, ptx_val column, unsigned width,
                           ptx_val *scales, ptx_val *zeros)
{
    const kernel_spec *spec = m->q.coding.spec;
    const row_grouping grouping = row_grouping_of(spec, width);
    group_place place = {.line = emit_divide(b, column, spec->stored.group_rows), .group = group};
    if (grouping == RUN_OF_GROUPS) {
        load_run(b, m, &place, width, scales, zeros);
        return;
    }
    for (unsigned k = 0; k < width; k++) {
        const bool is_loaded = k && grouping == ONE_GROUP;
        if (k && !is_loaded)
            place.line = emit_divide(b, ptx_add(b, column, k), spec->stored.group_rows);
        scales[k] = is_loaded ? scales[0] : matrix_load_scale(b, m, &place);
        if (format_has_zero(m->q.coding.format))
            zeros[k] = is_loaded ? zeros[0] : matrix_load_zero(b, m, &place);
    }
}

void matrix_row_groups(ptx_builder *b, const matrix *m, ptx_val row, ptx_val column, unsigned width,
                       group_values *each)
{
    group_place place;
    switch (row_grouping_of(m->q.coding.spec, width)) {
    case ONE_GROUP:
        each[0] = matrix_group(b, m, row, column);
        for (unsigned k = 1; k < width; k++)
            each[k] = each[0];
        return;
    case RUN_OF_GROUPS:
        place = place_of(b, m, row, column);
        load_run_of_groups(b, m, &place, width, each);
        return;
    case EACH_COLUMN:
        for (unsigned k = 0; k < width; k++)
            each[k] = matrix_group(b, m, row, ptx_add(b, column, k));
        return;
    }
}
