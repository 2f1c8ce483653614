/* The kernels of copies, gathers and scatters. */
#include "kernels/copy/copy.h"

/* A line: where its elements are on both sides, and how many there are. */
typedef struct line {
    const kernel_spec *spec;
    ptx_val x, y;               /* u64: addresses */
    ptx_val x_stride, y_stride; /* u64, of way `elements`; empty: neighbours */
    ptx_val columns;            /* u64 */
    ptx_val lane;               /* u64: within the team */
} line;

unsigned copy_turns(const kernel_spec *spec)
{
    return spec->copy.lanes == COPY_BLOCK ? COPY_TURNS : 1;
}

static bool is_of_elements(const kernel_spec *spec)
{
    return spec->copy.way == KERNEL_COPY_ELEMENTS;
}

/* Elements that a lane copies at a time. */
static unsigned vector_of(const kernel_spec *spec)
{
    return is_of_elements(spec) ? 1 : cast_vector(&spec->copy);
}

uint64_t copy_span(const kernel_spec *spec)
{
    return spec->copy.lanes * copy_turns(spec) * vector_of(spec);
}

/* ---- Lines ---- */

static ptx_val element_at(ptx_builder *b, ptx_val base, ptx_val stride, ptx_val element, int type)
{
    return ptx_at(b, base, stride.kind == PTX_NOTHING ? element : ptx_mul(b, element, stride),
                  cast_bytes(type));
}

static void copy_one(ptx_builder *b, const line *l, ptx_val element, unsigned count)
{
    const kernel_copying *copy = &l->spec->copy;
    const cast_run x = cast_load(b, copy, element_at(b, l->x, l->x_stride, element, copy->from), count);
    const cast_run y = cast_run_of(b, copy, &x);
    cast_store(b, copy, element_at(b, l->y, l->y_stride, element, copy->to), &y);
}

/* The vectors of a part of a line, from `begin` to `end`: all loads come before the stores. */
static void copy_vectors(ptx_builder *b, const line *l, ptx_val begin, ptx_val end)
{
    const kernel_copying *copy = &l->spec->copy;
    const unsigned vector = vector_of(l->spec), turns = copy_turns(l->spec);
    const uint64_t turn = l->spec->copy.lanes * vector;
    ptx_val first = ptx_add(b, begin, ptx_mul(b, l->lane, ptx_u64(b, vector)));
    if (turns == 1) {
        ptx_if(b, ptx_setp(b, PTX_LT, first, end));
        copy_one(b, l, first, vector);
        ptx_end_if(b);
        return;
    }
    /* whole parts, as nearly all are */
    ptx_val last = ptx_add(b, first, ptx_u64(b, (turns - 1) * turn));
    ptx_if(b, ptx_setp(b, PTX_LT, last, end));
    cast_run x[COPY_TURNS];
    for (unsigned i = 0; i < turns; i++)
        x[i] = cast_load(
            b, copy, element_at(b, l->x, l->x_stride, ptx_add(b, first, ptx_u64(b, i * turn)), copy->from),
            vector);
    for (unsigned i = 0; i < turns; i++) {
        const cast_run y = cast_run_of(b, copy, &x[i]);
        cast_store(b, copy,
                   element_at(b, l->y, l->y_stride, ptx_add(b, first, ptx_u64(b, i * turn)), copy->to), &y);
    }
    ptx_else(b);
    ptx_rolled(b);
    ptx_val element = ptx_for(b, first, end, ptx_u64(b, turn));
    copy_one(b, l, element, vector);
    ptx_end_for(b);
    ptx_end_if(b);
}

static ptx_val is_aligned(ptx_builder *b, const line *l)
{
    const unsigned vector = vector_of(l->spec);
    ptx_val x = emit_aligned(b, l->x, vector * cast_bytes(l->spec->copy.from));
    return emit_aligned_and(b, x, l->y, vector * cast_bytes(l->spec->copy.to));
}

/* Elements `begin` (a multiple of a vector) to `end` of a line. What is not aligned, or does not fill a vector, is copied by
 * elements, which neighbouring lanes have next to each other. */
static void copy_part(ptx_builder *b, const line *l, ptx_val begin, ptx_val end)
{
    const unsigned vector = vector_of(l->spec);
    ptx_val whole = end;
    if (vector > 1) {
        whole = ptx_and(b, end, ptx_u64(b, -(uint64_t)vector));
        whole = ptx_selp(b, whole, begin, is_aligned(b, l));
    }
    copy_vectors(b, l, begin, whole);
    if (vector == 1)
        return;
    ptx_rolled(b);
    ptx_val element = ptx_for(b, ptx_add(b, whole, l->lane), end, ptx_u64(b, l->spec->copy.lanes));
    copy_one(b, l, element, 1);
    ptx_end_for(b);
}

/* The part of a flat copy that a block has. */
static void copy_flat(ptx_builder *b, line *l, const kernel_args *args)
{
    const uint64_t span = copy_span(l->spec);
    l->columns = ptx_mul(b, args->number[NUMBER_M], args->number[NUMBER_COLUMNS]);
    ptx_val begin = ptx_mul(b, ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), ptx_u64(b, span));
    copy_part(b, l, begin, ptx_min(b, ptx_add(b, begin, ptx_u64(b, span)), l->columns));
}

/* A line by parts, which are shared among blocks along y of the grid. */
static void copy_line(ptx_builder *b, const line *l)
{
    const uint64_t span = copy_span(l->spec);
    ptx_val stride = ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), ptx_u32(b, (uint32_t)span));
    ptx_val begin =
        ptx_for(b, ptx_mul_wide(b, ptx_ctaid_y(b), ptx_u32(b, (uint32_t)span)), l->columns, stride);
    copy_part(b, l, begin, ptx_min(b, ptx_add(b, begin, ptx_u64(b, span)), l->columns));
    ptx_end_for(b);
}

static line line_begin(ptx_builder *b, const kernel_spec *spec, const kernel_args *args)
{
    return (line){.spec = spec,
                  .x = args->operand[QDNN_OPERAND_X],
                  .y = args->operand[QDNN_OPERAND_Y],
                  .columns = args->number[NUMBER_COLUMNS],
                  .lane = ptx_cvt(b, PTX_U64, ptx_and(b, ptx_tid_x(b), (uint32_t)(spec->copy.lanes - 1)))};
}

/* The number of the team's line (u64). */
static ptx_val line_number(ptx_builder *b, const kernel_spec *spec)
{
    const unsigned teams = (unsigned)(COPY_BLOCK / spec->copy.lanes);
    ptx_val team = ptx_shr(b, ptx_tid_x(b), ceil_log2(spec->copy.lanes));
    return ptx_add(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, teams)), ptx_cvt(b, PTX_U64, team));
}

/* The place of a line whose number has three digits, in elements from the start of x or y. */
static ptx_val place_of(ptx_builder *b, const kernel_args *args, const ptx_val digit[3], bool of_y)
{
    static const kernel_number strides[2][3] = {{NUMBER_X_STRIDE, NUMBER_X_STRIDE_1, NUMBER_X_STRIDE_2},
                                                {NUMBER_Y_STRIDE, NUMBER_Y_STRIDE_1, NUMBER_Y_STRIDE_2}};
    ptx_val at = ptx_mul(b, digit[0], args->number[strides[of_y][0]]);
    for (int i = 1; i < 3; i++)
        if (digit[i].kind != PTX_NOTHING)
            at = ptx_mad(b, digit[i], args->number[strides[of_y][i]], at);
    return at;
}

static void move_to(ptx_builder *b, line *l, const kernel_args *args, const ptx_val digit[3])
{
    l->x = ptx_at(b, l->x, place_of(b, args, digit, false), cast_bytes(l->spec->copy.from));
    l->y = ptx_at(b, l->y, place_of(b, args, digit, true), cast_bytes(l->spec->copy.to));
}

static void copy_lines(ptx_builder *b, line *l, const kernel_args *args)
{
    const ptx_val *number = args->number;
    ptx_val i = line_number(b, l->spec), digit[3];
    ptx_val rows = ptx_div(b, i, number[NUMBER_DIM_2]);
    digit[2] = ptx_sub(b, i, ptx_mul(b, rows, number[NUMBER_DIM_2]));
    digit[0] = ptx_div(b, rows, number[NUMBER_DIM_1]);
    digit[1] = ptx_sub(b, rows, ptx_mul(b, digit[0], number[NUMBER_DIM_1]));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, digit[0], number[NUMBER_M]));
    move_to(b, l, args, digit);
    if (is_of_elements(l->spec)) {
        l->x_stride = number[NUMBER_X_STRIDE_3];
        l->y_stride = number[NUMBER_Y_STRIDE_3];
    }
    copy_line(b, l);
}

/* ---- Tiles ---- */

enum { TILE_LINES = COPY_BLOCK / COPY_SIDE, TILE_TURNS = COPY_SIDE / TILE_LINES };

typedef struct tile {
    const kernel_spec *spec;
    ptx_val shared;     /* u32 */
    ptx_val lane, line; /* u32: along the direction of an access, and across it */
    ptx_val first[2];   /* u64: of dim_2 and of columns */
    ptx_val size[2];    /* u64: dim_2, columns */
    ptx_val x, y;       /* u64 */
    ptx_val across[2];  /* u64: elements from one of dim_2 to the next in y; of columns in x */
} tile;

/* Rows of a tile are one element longer, so that neither direction has bank conflicts. */
static ptx_val tile_place(ptx_builder *b, const tile *t, ptx_val row, ptx_val column)
{
    const unsigned bytes = cast_bytes(t->spec->copy.to) == 8 ? 8 : 4;
    return ptx_mad(b, ptx_mad(b, row, COPY_SIDE + 1, column), (int)bytes, t->shared);
}

/* The two elements that a thread has at turn i: the one that varies along a warp, and the other. Whether both exist. */
static ptx_val tile_elements(ptx_builder *b, const tile *t, bool of_y, int i, ptx_val *along, ptx_val *across)
{
    ptx_val line = i ? ptx_add(b, t->line, i * TILE_LINES) : t->line;
    *along = ptx_add(b, t->first[of_y], ptx_cvt(b, PTX_U64, t->lane));
    *across = ptx_add(b, t->first[!of_y], ptx_cvt(b, PTX_U64, line));
    return ptx_setp_and(b, PTX_LT, *along, t->size[of_y], ptx_setp(b, PTX_LT, *across, t->size[!of_y]));
}

static void load_tile(ptx_builder *b, const tile *t)
{
    const kernel_copying *copy = &t->spec->copy;
    for (int i = 0; i < TILE_TURNS; i++) {
        ptx_val along, across;
        ptx_if(b, tile_elements(b, t, false, i, &along, &across));
        ptx_val at = ptx_at(b, t->x, ptx_mad(b, across, t->across[0], along), cast_bytes(copy->from));
        const cast_run x = cast_load(b, copy, at, 1), y = cast_run_of(b, copy, &x);
        ptx_st_shared(b, tile_place(b, t, ptx_add(b, t->line, i * TILE_LINES), t->lane), 0, y.part[0]);
        ptx_end_if(b);
    }
}

static void store_tile(ptx_builder *b, const tile *t)
{
    const kernel_copying *copy = &t->spec->copy;
    const ptx_type type = cast_bytes(copy->to) == 8 ? PTX_U64 : PTX_U32;
    for (int i = 0; i < TILE_TURNS; i++) {
        ptx_val along, across;
        ptx_if(b, tile_elements(b, t, true, i, &along, &across));
        cast_run y = {.count = 1};
        y.part[0] = ptx_ld_shared(b, type, tile_place(b, t, t->lane, ptx_add(b, t->line, i * TILE_LINES)), 0);
        cast_store(b, copy, ptx_at(b, t->y, ptx_mad(b, across, t->across[1], along), cast_bytes(copy->to)),
                   &y);
        ptx_end_if(b);
    }
}

static ptx_val tiles_of(ptx_builder *b, ptx_val size)
{
    return ptx_shr(b, ptx_add(b, size, COPY_SIDE - 1), ceil_log2(COPY_SIDE));
}

/* Block x of the grid has a tile of one pair (m, dim_1). */
static void copy_tile(ptx_builder *b, line *l, const kernel_args *args)
{
    const ptx_val *number = args->number;
    const kernel_copying *copy = &l->spec->copy;
    tile t = {.spec = l->spec, .size = {number[NUMBER_DIM_2], number[NUMBER_COLUMNS]}};
    ptx_val tid = ptx_tid_x(b), item = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b));
    ptx_val down = tiles_of(b, t.size[0]), right = tiles_of(b, t.size[1]);
    ptx_val rest = ptx_div(b, item, right);
    t.first[1] = ptx_mul(b, ptx_sub(b, item, ptx_mul(b, rest, right)), ptx_u64(b, COPY_SIDE));
    ptx_val pair = ptx_div(b, rest, down);
    t.first[0] = ptx_mul(b, ptx_sub(b, rest, ptx_mul(b, pair, down)), ptx_u64(b, COPY_SIDE));
    ptx_val digit[3] = {{0}};
    digit[0] = ptx_div(b, pair, number[NUMBER_DIM_1]);
    digit[1] = ptx_sub(b, pair, ptx_mul(b, digit[0], number[NUMBER_DIM_1]));
    move_to(b, l, args, digit);
    t.x = l->x;
    t.y = l->y;
    t.across[0] = number[NUMBER_X_STRIDE_3];
    t.across[1] = number[NUMBER_Y_STRIDE_2];
    t.lane = ptx_and(b, tid, COPY_SIDE - 1);
    t.line = ptx_shr(b, tid, ceil_log2(COPY_SIDE));
    t.shared =
        ptx_shared(b, "tile", cast_bytes(copy->to) == 8 ? PTX_U64 : PTX_U32, COPY_SIDE * (COPY_SIDE + 1), 8);
    load_tile(b, &t);
    ptx_syncthreads(b);
    store_tile(b, &t);
}

void emit_copy(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    line l = line_begin(b, spec, &args);
    switch (spec->copy.way) {
    case KERNEL_COPY_FLAT:
        copy_flat(b, &l, &args);
        return;
    case KERNEL_COPY_LINES:
    case KERNEL_COPY_ELEMENTS:
        copy_lines(b, &l, &args);
        return;
    case KERNEL_COPY_TILES:
        copy_tile(b, &l, &args);
        return;
    }
    missing_row("ways to copy", (int)spec->copy.way);
}

/* ---- Rows by index ---- */

/* A line of NaN, or of zeros. */
static void fill_line(ptx_builder *b, const line *l)
{
    const kernel_copying *copy = &l->spec->copy;
    const uint64_t nan = cast_nan(copy->to);
    cast_run y = {.count = 1};
    y.part[0] = cast_bytes(copy->to) == 8 ? ptx_u64(b, nan) : ptx_u32(b, (uint32_t)nan);
    const uint64_t lanes = l->spec->copy.lanes;
    ptx_val first = ptx_add(b, ptx_mul_wide(b, ptx_ctaid_y(b), ptx_u32(b, (uint32_t)lanes)), l->lane);
    ptx_val stride = ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), ptx_u32(b, (uint32_t)lanes));
    ptx_rolled(b);
    ptx_val element = ptx_for(b, first, l->columns, stride);
    cast_store(b, copy, ptx_at(b, l->y, element, cast_bytes(copy->to)), &y);
    ptx_end_for(b);
}

static void emit_moved(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, bool gathers)
{
    const kernel_args args = kernel_declare(b, row, spec);
    const ptx_val *number = args.number;
    line l = line_begin(b, spec, &args);
    ptx_val i = line_number(b, spec);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, number[NUMBER_M]));
    ptx_val there =
        emit_row_number(b, spec->index_type, args.operand[QDNN_OPERAND_ROW_INDEX], i, (ptx_val){0});
    ptx_val exists = ptx_setp(b, PTX_LT, there, number[NUMBER_TABLE_ROWS]);
    l.x =
        ptx_at(b, l.x, ptx_mul(b, gathers ? there : i, number[NUMBER_X_STRIDE]), cast_bytes(spec->copy.from));
    l.y = ptx_at(b, l.y, ptx_mul(b, gathers ? i : there, number[NUMBER_Y_STRIDE]), cast_bytes(spec->copy.to));
    ptx_if(b, exists);
    copy_line(b, &l);
    if (gathers) {
        ptx_else(b);
        fill_line(b, &l);
    }
    ptx_end_if(b);
}

void emit_gather(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    emit_moved(b, row, spec, true);
}

void emit_scatter(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    emit_moved(b, row, spec, false);
}
