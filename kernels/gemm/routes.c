/* Sorts the rows of a grouped product by expert, and cuts them into tiles. */
#include "kernels/gemm/routes.h"

#include "kernels/emit.h"

enum { THREADS = 512, WARP = 32, COUNT_WORDS = 4 /* before the arrays: the number of tiles */ };

/* ---- Workspace layout ---- */

/* u32 arrays in the workspace, indexed by slot: one slot per expert, and one more for rows without an
 * expert. Their sizes follow from the parameters m and experts, so they lie closer together in an execute
 * with fewer rows. */
typedef struct routes {
    ptx_val tile_count; /* pointer, as the following ones */
    ptx_val start;      /* [slots + 1]: where a slot's rows begin among the sorted ones */
    ptx_val filled;     /* [slots]: how many rows the slot has so far */
    ptx_val first_tile; /* [slots] */
    ptx_val order;      /* [m]: the sorted rows */
    ptx_val tiles;      /* [tiles][2]: the slot, and the place of the tile's first row */
    ptx_val experts;    /* u64, as all that follow */
    ptx_val slots, m;
} routes;

static routes routes_at(ptx_builder *b, const kernel_args *args)
{
    routes r = {
        .tile_count = args->workspace, .experts = args->number[NUMBER_EXPERTS], .m = args->number[NUMBER_M]};
    r.slots = ptx_add(b, r.experts, 1);
    r.start = ptx_add(b, r.tile_count, 4 * COUNT_WORDS);
    r.filled = ptx_add(b, ptx_at(b, r.start, r.slots, 4), 4);
    r.first_tile = ptx_at(b, r.filled, r.slots, 4);
    r.order = ptx_at(b, r.first_tile, r.slots, 4);
    r.tiles = ptx_at(b, r.order, r.m, 4);
    return r;
}

kernel_rule routes_tiles_rule(uint64_t tile_rows)
{
    const kernel_rule m = rule_number(NUMBER_M),
                      slots = rule_plus(rule_number(NUMBER_EXPERTS), rule_constant(1)),
                      spare = rule_times(rule_least(slots, m), rule_constant(tile_rows - 1));
    return tile_rows == 1 ? m : rule_over(rule_plus(m, spare), rule_constant(tile_rows));
}

static uint64_t routes_tiles(const kernel_problem *problem, uint64_t tile_rows)
{
    const uint64_t numbers[NUMBERS] = {[NUMBER_M] = problem->m, [NUMBER_EXPERTS] = problem->experts};
    const kernel_rule tiles = routes_tiles_rule(tile_rows);
    return rule_value(&tiles, numbers);
}

uint64_t routes_bytes(const kernel_problem *problem, uint64_t tile_rows)
{
    const uint64_t slots = problem->experts + 1;
    return 4 * (COUNT_WORDS + 3 * slots + 1 + problem->m + 2 * routes_tiles(problem, tile_rows));
}

/* ---- The kernel that sorts ---- */

kernel_geometry routes_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = THREADS, .blocks = 1};
}

void routes_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps)
{
    const uint64_t bytes = routes_bytes(problem, spec->product.tile_rows);
    steps_add(steps, row, spec, problem);
    if (steps->workspace < bytes) /* they come first; other parts may already follow */
        steps->workspace = bytes;
}

/* The slot of a row, u64. A negative index counts as a large one. */
static ptx_val slot_of(ptx_builder *b, const routes *r, ptx_val index, ptx_val row)
{
    ptx_val expert = ptx_ld_global_nc(b, PTX_U32, ptx_at(b, index, row, 4), 0);
    return ptx_min(b, ptx_cvt(b, PTX_U64, expert), r->experts);
}

static ptx_val thread_number(ptx_builder *b)
{
    return ptx_cvt(b, PTX_U64, ptx_tid_x(b));
}

static void count_rows(ptx_builder *b, const routes *r, ptx_val index)
{
    ptx_val slot = ptx_for(b, thread_number(b), r->slots, ptx_u64(b, THREADS));
    ptx_st_global(b, ptx_at(b, r->filled, slot, 4), 0, ptx_u32(b, 0));
    ptx_end_for(b);
    ptx_syncthreads(b);
    ptx_val row = ptx_for(b, thread_number(b), r->m, ptx_u64(b, THREADS));
    ptx_red(b, PTX_ATOM_ADD, PTX_GLOBAL, ptx_at(b, r->filled, slot_of(b, r, index, row), 4), 0,
            ptx_u32(b, 1));
    ptx_end_for(b);
    ptx_syncthreads(b);
}

/* Inclusive prefix sum of x over the lanes of the warp. */
static ptx_val scan_warp(ptx_builder *b, ptx_val x)
{
    ptx_val lane = ptx_laneid(b);
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        ptx_val before = ptx_shfl_up(b, x, distance);
        x = ptx_add(b, x, ptx_selp(b, before, ptx_u32(b, 0), ptx_setp(b, PTX_GE, lane, distance)));
    }
    return x;
}

/* The first warp turns counts into starts, 32 slots at a time; all of its lanes take part in every
 * iteration. */
static void place_slots(ptx_builder *b, const routes *r, uint64_t tile_rows)
{
    ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), WARP));
    ptx_val rows_before = ptx_var(b, ptx_u32(b, 0)), tiles_before = ptx_var(b, ptx_u32(b, 0));
    ptx_val turn = ptx_for(b, ptx_u64(b, 0), r->slots, ptx_u64(b, WARP));
    ptx_val slot = ptx_add(b, turn, ptx_cvt(b, PTX_U64, ptx_laneid(b)));
    ptx_val exists = ptx_setp(b, PTX_LT, slot, r->slots), filled = ptx_at(b, r->filled, slot, 4);
    ptx_val rows = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_CACHE_DEFAULT, PTX_U32, filled, 0, ptx_u32(b, 0));
    ptx_val tiles = ptx_cvt(b, PTX_U32, emit_divide_up(b, ptx_cvt(b, PTX_U64, rows), tile_rows));
    ptx_val rows_end = ptx_add(b, rows_before, scan_warp(b, rows));
    ptx_val tiles_end = ptx_add(b, tiles_before, scan_warp(b, tiles));
    ptx_if(b, exists);
    ptx_st_global(b, ptx_at(b, r->start, slot, 4), 0, ptx_sub(b, rows_end, rows));
    ptx_st_global(b, ptx_at(b, r->first_tile, slot, 4), 0, ptx_sub(b, tiles_end, tiles));
    ptx_st_global(b, filled, 0, ptx_u32(b, 0));
    ptx_end_if(b);
    ptx_assign(b, rows_before, ptx_shfl_idx(b, rows_end, WARP - 1));
    ptx_assign(b, tiles_before, ptx_shfl_idx(b, tiles_end, WARP - 1));
    ptx_end_for(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    ptx_st_global(b, ptx_at(b, r->start, r->slots, 4), 0, rows_before);
    ptx_st_global(b, r->tile_count, 0, tiles_before);
    ptx_end_if(b);
    ptx_end_if(b);
    ptx_syncthreads(b);
}

/* The rows of an expert may end up in any order: results do not depend on it. */
static void place_rows(ptx_builder *b, const routes *r, ptx_val index, uint64_t tile_rows)
{
    ptx_val row = ptx_for(b, thread_number(b), r->m, ptx_u64(b, THREADS));
    ptx_val slot = slot_of(b, r, index, row);
    ptx_val number = ptx_atom(b, PTX_ATOM_ADD, PTX_GLOBAL, ptx_at(b, r->filled, slot, 4), 0, ptx_u32(b, 1));
    ptx_val place = ptx_add(b, ptx_ld_global(b, PTX_U32, ptx_at(b, r->start, slot, 4), 0), number);
    ptx_st_global(b, ptx_at(b, r->order, place, 4), 0, ptx_cvt(b, PTX_U32, row));
    ptx_val wide = ptx_cvt(b, PTX_U64, number), tile = emit_divide(b, wide, tile_rows);
    ptx_if(b, ptx_setp(b, PTX_EQ, emit_remainder(b, wide, tile, tile_rows), ptx_u64(b, 0)));
    ptx_val first = ptx_ld_global(b, PTX_U32, ptx_at(b, r->first_tile, slot, 4), 0);
    ptx_val at = ptx_at(b, r->tiles, ptx_add(b, ptx_cvt(b, PTX_U64, first), tile), 8);
    ptx_st_global(b, at, 0, ptx_cvt(b, PTX_U32, slot));
    ptx_st_global(b, at, 4, place);
    ptx_end_if(b);
    ptx_end_for(b);
}

void emit_routes(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    routes r = routes_at(b, &args);
    ptx_val index = args.operand[QDNN_OPERAND_EXPERT_INDEX];
    count_rows(b, &r, index);
    place_slots(b, &r, spec->product.tile_rows);
    place_rows(b, &r, index, spec->product.tile_rows);
}

/* ---- Tiles of rows in a product ---- */

static ptx_val load_u32(ptx_builder *b, ptx_val array, ptx_val index, int offset)
{
    return ptx_cvt(b, PTX_U64, ptx_ld_global_nc(b, PTX_U32, ptx_at(b, array, index, 4), offset));
}

static ptx_val tile_count(ptx_builder *b, const routes *r)
{
    return ptx_cvt(b, PTX_U64, ptx_ld_global_nc(b, PTX_U32, r->tile_count, 0));
}

static row_tile tile_at(ptx_builder *b, const routes *r, ptx_val number)
{
    ptx_val twice = ptx_shl(b, number, 1), slot = load_u32(b, r->tiles, twice, 0);
    row_tile t = {.first = load_u32(b, r->tiles, twice, 4), .order = r->order};
    t.count = ptx_sub(b, load_u32(b, r->start, slot, 4), t.first);
    t.known = ptx_setp(b, PTX_LT, slot, r->experts);
    t.expert = ptx_selp(b, slot, ptx_u64(b, 0), t.known);
    return t;
}

static row_tile sorted_tiles_begin(ptx_builder *b, const gemm_args *args)
{
    routes r = routes_at(b, &args->all);
    ptx_val number = ptx_for(b, ptx_cvt(b, PTX_U64, ptx_ctaid_y(b)), tile_count(b, &r),
                             ptx_cvt(b, PTX_U64, ptx_sreg(b, "nctaid.y")));
    return tile_at(b, &r, number);
}

row_tile row_tile_of_block(ptx_builder *b, const gemm_args *args)
{
    routes r = routes_at(b, &args->all);
    ptx_val number = ptx_cvt(b, PTX_U64, ptx_ctaid_y(b));
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, number, tile_count(b, &r)));
    return tile_at(b, &r, number);
}

row_tile row_tiles_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args)
{
    if (spec->product.grouped)
        return sorted_tiles_begin(b, args);
    ptx_val rows = ptx_u32(b, (uint32_t)spec->product.tile_rows);
    row_tile t = {.first = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_y(b), rows), args->m,
                                   ptx_mul_wide(b, ptx_sreg(b, "nctaid.y"), rows))};
    t.count = ptx_sub(b, args->m, t.first);
    return t;
}

void row_tiles_end(ptx_builder *b)
{
    ptx_end_for(b);
}

ptx_val row_tile_has(ptx_builder *b, const row_tile *t, ptx_val i)
{
    return ptx_setp(b, PTX_LT, i, t->count);
}

ptx_val row_tile_row(ptx_builder *b, const row_tile *t, ptx_val i, ptx_val has)
{
    ptx_val place = ptx_add(b, t->first, i);
    if (t->order.kind == PTX_NOTHING)
        return place;
    ptx_val at = ptx_at(b, t->order, place, 4);
    return ptx_cvt(b, PTX_U64, ptx_ld_if(b, has, PTX_GLOBAL, PTX_NC, PTX_U32, at, 0, ptx_u32(b, 0)));
}

ptx_val x_row_of(ptx_builder *b, const kernel_spec *spec, ptx_val row)
{
    return spec->product.x_share == 1 ? row : emit_divide(b, row, spec->product.x_share);
}

ptx_val row_tile_size(ptx_builder *b, const row_tile *t, ptx_val size)
{
    if (t->known.kind == PTX_NOTHING)
        return size;
    return ptx_selp(b, size, size.type == PTX_U64 ? ptx_u64(b, 0) : ptx_u32(b, 0), t->known);
}

ptx_val row_tile_sum(ptx_builder *b, const row_tile *t, ptx_val sum)
{
    return t->known.kind == PTX_NOTHING ? sum : ptx_selp(b, sum, ptx_bits(b, PTX_F32, 0x7FFFFFFF), t->known);
}

/* Bytes between the arrays of neighbouring experts; empty where experts share one. */
static ptx_val stride_of(ptx_builder *b, const kernel_args *args, qdnnOperand_t operand)
{
    switch (operand) {
    case QDNN_OPERAND_CODES:
        return args->number[NUMBER_CODES_STRIDE];
    case QDNN_OPERAND_SCALE:
        return args->number[NUMBER_SCALE_STRIDE];
    case QDNN_OPERAND_ZERO:
        return args->number[NUMBER_ZERO_STRIDE];
    case QDNN_OPERAND_NESTED_SCALE:
        return args->number[NUMBER_NESTED_STRIDE];
    case QDNN_OPERAND_GLOBAL_SCALE:
        return ptx_u64(b, 4);
    case QDNN_OPERAND_GROUP_INDEX:
        return ptx_shl(b, args->number[NUMBER_ROWS], 2);
    default:
        return (ptx_val){0};
    }
}

gemm_args row_tile_args(ptx_builder *b, const row_tile *t, const gemm_args *args)
{
    gemm_args a = *args;
    for (int i = 0; i < QDNN_OPERAND_COUNT && t->expert.kind != PTX_NOTHING; i++) {
        ptx_val pointer = args->all.operand[i];
        if (pointer.kind == PTX_NOTHING)
            continue;
        ptx_val stride = stride_of(b, &args->all, (qdnnOperand_t)i);
        if (stride.kind != PTX_NOTHING)
            a.all.operand[i] = ptx_mad(b, t->expert, stride, pointer);
    }
    return a;
}
