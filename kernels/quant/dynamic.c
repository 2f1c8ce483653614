/* Computes scales and codes in one kernel that reads the elements once. This suits activations, with one
 * group per token or per block. A team of lanes keeps its group in registers between reduction and encoding.
 * Groups too large for that, and groups that do not begin on whole bytes, use the scale and quantize kernels
 * instead. */
#include "kernels/formats/quantized.h"
#include "kernels/quant/numbers.h"
#include "kernels/quant/quant.h"

#include <stdio.h>
#include <string.h>

enum { CHUNKS_MAX = 8 /* per lane */ };

/* The teams of a kernel, and the number of chunks per lane. */
typedef struct dynamic_plan {
    team team;
    unsigned chunks;
} dynamic_plan;

static dynamic_plan plan_of(const kernel_spec *spec)
{
    dynamic_plan p = {.team = team_of(spec->data, spec->stored.group_size, spec->stored.group_size)};
    uint64_t chunks = spec->stored.group_size / chunk_elements(spec->data);
    if (chunks > WARP_LANES) /* several chunks per lane: a warp, or a block if that is not enough */
        p.team.lanes = chunks > WARP_LANES * CHUNKS_MAX ? RANGE_BLOCK : WARP_LANES;
    while (p.team.lanes > 1 &&
           p.team.lanes / 2 >= chunks) /* a chunk of f64 takes two of the accesses that team_of counts */
        p.team.lanes /= 2;
    p.chunks = (unsigned)((chunks + p.team.lanes - 1) / p.team.lanes);
    return p;
}

/* Whether a team can keep the group in registers. */
static bool fits(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return spec->stored.groups == QDNN_GROUPS_FLAT && spec->stored.layout == QDNN_LAYOUT_BYTES &&
           spec->stored.channels == 0 && spec->stored.group_size % 8 == 0 && !spec->stored.zero_packed &&
           !spec->stored.zero_minus_one &&
           spec->stored.group_size / chunk_elements(spec->data) <= (uint64_t)RANGE_BLOCK * CHUNKS_MAX;
}

bool dynamic_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    if (fits(row, spec))
        return true;
    snprintf(error, error_size,
             "one kernel takes flat groups of a multiple of 8 elements, up to %u; use scale and quantize for "
             "others",
             RANGE_BLOCK * CHUNKS_MAX * chunk_elements(spec->data));
    return false;
}

/* Strides only apply to a cache whose slots are selected by a list. */
void fix_dynamic(kernel_spec *spec)
{
    spec->strided = spec->strided && spec->row_index;
    if (!spec->row_index)
        spec->index_type = QDNN_DATA_I32;
}

kernel_geometry dynamic_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    return (kernel_geometry){.block = RANGE_BLOCK,
                             .elements_per_block =
                                 RANGE_BLOCK / plan_of(spec).team.lanes * spec->stored.group_size};
}

typedef struct dynamic_kernel {
    quantized q;
    dynamic_plan plan;
    ptx_val x, lane;            /* pointer; u32 */
    ptx_val group, first;       /* u64: the group's number and its first element */
    ptx_val groups;             /* u64: number of groups */
    ptx_val to_group, to_first; /* the same among the codes: differs if a list selects the destination rows */
    stage stage;                /* for codes that are not direct */
    numbers numbers;
} dynamic_kernel;

/* Whether codes that are not direct go through shared memory: if groups fill whole words. */
static bool is_staged(const coding *c)
{
    return !codes_are_direct(c) && c->spec->stored.group_size % 32 == 0;
}

static unsigned groups_of_block(const dynamic_kernel *k)
{
    return RANGE_BLOCK / k->plan.team.lanes;
}

/* The number of this thread's group among those of the block (u32). */
static ptx_val team_in_block(ptx_builder *b, const dynamic_kernel *k)
{
    return ptx_shr(b, ptx_tid_x(b), ceil_log2(k->plan.team.lanes));
}

/* Whether chunk i of the lane exists in the group. */
static ptx_val chunk_exists(ptx_builder *b, const dynamic_kernel *k, unsigned i, ptx_val exists)
{
    const kernel_spec *spec = k->q.coding.spec;
    uint64_t chunks = spec->stored.group_size / chunk_elements(spec->data);
    if ((uint64_t)(i + 1) * k->plan.team.lanes <= chunks)
        return exists;
    return ptx_setp_and(b, PTX_LT, ptx_add(b, k->lane, i * k->plan.team.lanes), ptx_u32(b, (uint32_t)chunks),
                        exists);
}

/* The first element (u64) of a lane's chunks. */
static ptx_val lane_start(ptx_builder *b, const dynamic_kernel *k, ptx_val first)
{
    unsigned chunk = chunk_elements(k->q.coding.spec->data);
    return ptx_add(b, first, ptx_cvt(b, PTX_U64, ptx_mul(b, k->lane, chunk)));
}

/* Loads the chunks of a complete, aligned group into variables, which stay 0 for chunks that do not exist. */
static void load_chunks(ptx_builder *b, const dynamic_kernel *k, ptx_val exists, const ptx_val *x)
{
    const qdnnDataType_t data = k->q.coding.spec->data;
    const unsigned chunk = chunk_elements(data);
    ptx_val in = ptx_at(b, k->x, lane_start(b, k, k->first), element_bytes(data));
    for (unsigned i = 0; i < k->plan.chunks; i++) {
        ptx_val here[CHUNK_MAX];
        ptx_if(b, chunk_exists(b, k, i, exists));
        emit_load_joint(b, data, in, (int)(i * k->plan.team.lanes * chunk_bytes(data)), chunk, here);
        for (unsigned e = 0; e < chunk; e++)
            ptx_assign(b, x[i * chunk + e], here[e]);
        ptx_end_if(b);
    }
    for (unsigned i = 0; i < k->plan.chunks && chunk_is_joint(data); i++) {
        ptx_val here[CHUNK_MAX];
        memcpy(here, &x[i * chunk], chunk * sizeof *here);
        emit_joint_exchange(b, data, here);
        for (unsigned e = 0; e < chunk; e++)
            ptx_assign(b, x[i * chunk + e], here[e]);
    }
}

/* A tight range must not include the zeros of chunks that do not exist. */
static void add_chunks(ptx_builder *b, const dynamic_kernel *k, ptx_val exists, const range *r,
                       const ptx_val *x)
{
    const kernel_spec *spec = k->q.coding.spec;
    const unsigned chunk = chunk_elements(spec->data);
    const bool is_tight = format_has_zero(k->q.coding.format) && spec->quantize.range == QDNN_RANGE_TIGHT;
    for (unsigned i = 0; i < k->plan.chunks; i++) {
        if (is_tight)
            ptx_if(b, chunk_exists(b, k, i, exists));
        for (unsigned e = 0; e < chunk; e++)
            range_add(b, r, x[i * chunk + e]);
        if (is_tight)
            ptx_end_if(b);
    }
}

/* Copies words first, first + step ... below end from shared memory to `to`. */
static void copy_words(ptx_builder *b, ptx_val from, ptx_val to, ptx_val first, ptx_val end, unsigned step)
{
    ptx_val at = ptx_for(b, first, end, (int)step);
    ptx_st_global(b, ptx_at(b, to, at, 4), 0, ptx_ld_shared(b, PTX_U32, ptx_at(b, from, at, 4), 0));
    ptx_end_for(b);
}

/* Copies the codes of a block's groups, which fill whole words, from shared memory to their destination: all
 * at once, or each group to its own place. */
static void store_words(ptx_builder *b, const dynamic_kernel *k, ptx_val stores)
{
    const coding *c = &k->q.coding;
    const unsigned bits = c->format->facts.bits, words = (unsigned)(c->spec->stored.group_size * bits / 32);
    const unsigned groups = groups_of_block(k);
    ptx_syncthreads(b);
    if (c->spec->row_index) {
        ptx_val to = ptx_add(b, k->q.codes, ptx_shr(b, ptx_mul(b, k->to_first, ptx_u64(b, bits)), 3));
        ptx_val end = ptx_selp(b, ptx_u32(b, words), ptx_u32(b, 0), stores);
        copy_words(b, ptx_at(b, k->stage.shared, team_in_block(b, k), 4 * words), to, k->lane, end,
                   k->plan.team.lanes);
        return;
    }
    ptx_val first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, groups)), left = ptx_sub(b, k->groups, first);
    ptx_val count = ptx_cvt(b, PTX_U32, ptx_min(b, left, ptx_u64(b, groups)));
    copy_words(b, k->stage.shared, ptx_at(b, k->q.codes, first, 4 * words), ptx_tid_x(b),
               ptx_mul(b, count, (int)words), RANGE_BLOCK);
}

static void stage_chunks(ptx_builder *b, const dynamic_kernel *k, ptx_val stores, const group_values *group,
                         const ptx_val *x)
{
    const kernel_spec *spec = k->q.coding.spec;
    const unsigned chunk = chunk_elements(spec->data);
    const chunk_groups groups = {.first = *group};
    ptx_val first = ptx_mad(b, team_in_block(b, k), (int)spec->stored.group_size, ptx_mul(b, k->lane, chunk));
    for (unsigned i = 0; i < k->plan.chunks; i++) {
        ptx_val quads[CHUNK_MAX / QUAD];
        chunk_encode(b, &k->q, &groups, &x[i * chunk], chunk, quads);
        stage_put_if(b, &k->q.coding, &k->stage, ptx_add(b, first, i * k->plan.team.lanes * chunk),
                     chunk_exists(b, k, i, stores), chunk, quads);
    }
    store_words(b, k, stores);
}

static void store_chunks(ptx_builder *b, const dynamic_kernel *k, ptx_val exists, const group_values *group,
                         const ptx_val *x)
{
    if (is_staged(&k->q.coding)) {
        stage_chunks(b, k, exists, group, x);
        return;
    }
    const unsigned chunk = chunk_elements(k->q.coding.spec->data);
    const chunk_groups groups = {.first = *group};
    ptx_val number = emit_divide(b, lane_start(b, k, k->to_first), chunk);
    for (unsigned i = 0; i < k->plan.chunks; i++) {
        ptx_val quads[CHUNK_MAX / QUAD];
        chunk_encode(b, &k->q, &groups, &x[i * chunk], chunk, quads);
        codes_put(b, &k->q, ptx_add(b, number, i * k->plan.team.lanes), chunk_exists(b, k, i, exists), chunk,
                  quads);
    }
}

/* The elements of a group that is incomplete, or whose pointers are not aligned. */
static void add_elements(ptx_builder *b, const dynamic_kernel *k, const range *r, ptx_val end)
{
    const qdnnDataType_t data = k->q.coding.spec->data;
    ptx_val start = ptx_add(b, k->first, ptx_cvt(b, PTX_U64, k->lane));
    ptx_val i = ptx_for(b, start, end, ptx_u64(b, k->plan.team.lanes));
    range_add(b, r, emit_load(b, data, ptx_at(b, k->x, i, element_bytes(data)), 0));
    ptx_end_for(b);
}

static ptx_val is_aligned(ptx_builder *b, const dynamic_kernel *k)
{
    const coding *c = &k->q.coding;
    unsigned align = codes_are_direct(c) ? chunk_elements(c->spec->data) * c->format->facts.bits / 8
                     : is_staged(c)      ? 4
                                         : 1;
    return emit_aligned_and(b, emit_aligned(b, k->x, LOAD_BYTES), k->q.codes, align);
}

/* Whether all groups of the block are complete and aligned, so that its threads do not diverge. Rows with a
 * place of their own consist of whole groups. */
static ptx_val block_is_whole(ptx_builder *b, const dynamic_kernel *k, ptx_val n)
{
    const coding *c = &k->q.coding;
    const unsigned groups = groups_of_block(k);
    if (c->spec->row_index)
        return is_aligned(b, k);
    ptx_val first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, groups));
    ptx_val end = ptx_mul(b, ptx_add(b, first, groups), ptx_u64(b, c->spec->stored.group_size));
    ptx_val cut =
        emit_remainder(b, n, emit_divide(b, n, c->spec->stored.group_size), c->spec->stored.group_size);
    ptx_val whole = ptx_setp_or(b, PTX_LE, end, n, ptx_setp(b, PTX_EQ, cut, ptx_u64(b, 0)));
    return ptx_and(b, whole, is_aligned(b, k));
}

/* With strided slots and heads: finds the group's first code, and moves x so that its elements have the same
 * numbers as in packed rows. All strides are multiples of a chunk. */
static void find_strided(ptx_builder *b, dynamic_kernel *k, const kernel_args *args, ptx_val row,
                         ptx_val slot, ptx_val in_row)
{
    const kernel_spec *spec = k->q.coding.spec;
    const ptx_val *number = args->number;
    ptx_val head = emit_divide(b, in_row, spec->stored.group_size),
            page = ptx_div(b, slot, number[NUMBER_PAGE_SLOTS]);
    ptx_val in_page = ptx_sub(b, slot, ptx_mul(b, page, number[NUMBER_PAGE_SLOTS]));
    ptx_val to =
        ptx_mad(b, in_page, number[NUMBER_SLOT_STRIDE], ptx_mul(b, head, number[NUMBER_HEAD_STRIDE]));
    k->to_first = ptx_mad(b, page, number[NUMBER_PAGE_STRIDE], to);
    ptx_val gap = ptx_sub(b, number[NUMBER_X_STRIDE], number[NUMBER_COLUMNS]);
    k->x = ptx_at(b, k->x, ptx_mul(b, row, gap), element_bytes(spec->data));
}

/* Finds the destination row of the group in the list; if it does not exist, the group is skipped. Rows
 * consist of whole groups. Returns whether the group is stored. */
static ptx_val find_place(ptx_builder *b, dynamic_kernel *k, const kernel_args *args, ptx_val exists)
{
    const kernel_spec *spec = k->q.coding.spec;
    k->to_group = k->group;
    k->to_first = k->first;
    if (!spec->row_index)
        return exists;
    ptx_val columns = args->number[NUMBER_COLUMNS], row = ptx_div(b, k->first, columns);
    ptx_val to = emit_row_number(b, spec->index_type, args->operand[QDNN_OPERAND_ROW_INDEX], row, exists);
    ptx_val in_row = ptx_sub(b, k->first, ptx_mul(b, row, columns));
    k->to_first = ptx_mad(b, to, columns, in_row);
    k->to_group = emit_divide(b, k->to_first, spec->stored.group_size);
    if (spec->strided)
        find_strided(b, k, args, row, to, in_row);
    return ptx_setp_and(b, PTX_LT, to, args->number[NUMBER_TABLE_ROWS], exists);
}

/* Encodes a group that is incomplete or not aligned. Elements are numbered like their codes: x is moved so
 * that both have the same numbers. */
static void encode_elements(ptx_builder *b, const dynamic_kernel *k, ptx_val end, ptx_val stores,
                            const group_values *group)
{
    ptx_val count = ptx_selp(b, ptx_sub(b, end, k->first), ptx_u64(b, 0), stores);
    ptx_val moved =
        ptx_mul(b, ptx_sub(b, k->first, k->to_first), ptx_u64(b, element_bytes(k->q.coding.spec->data)));
    ptx_val to_end = ptx_add(b, k->to_first, count), data = ptx_add(b, k->x, moved);
    const few_elements few = {data, k->to_first, to_end, k->lane, k->plan.team.lanes, group, true};
    encode_few(b, &k->q, &few);
}

/* Stores the numbers of consecutive groups together; if each group has its own place, the first lane of its
 * team stores them. */
static void store_numbers(ptx_builder *b, const dynamic_kernel *k, const group_made *made, ptx_val stores)
{
    const coding *c = &k->q.coding;
    if (!c->spec->row_index) {
        ptx_val first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, groups_of_block(k)));
        numbers_store(b, &k->numbers, &k->q.side, made, first, k->groups);
        return;
    }
    ptx_if(b, ptx_setp_and(b, PTX_EQ, k->lane, 0, stores));
    group_store(b, c, &k->q.side, made, k->to_group);
    ptx_end_if(b);
}

/* Allocates the shared memory that codes and numbers go through. */
static void open_stages(ptx_builder *b, dynamic_kernel *k)
{
    const coding *c = &k->q.coding;
    const unsigned groups = groups_of_block(k);
    if (is_staged(c))
        k->stage = stage_begin(b, c, groups * (unsigned)c->spec->stored.group_size, RANGE_BLOCK);
    if (!c->spec->row_index)
        k->numbers = numbers_begin(b, c, k->plan.team.lanes);
}

void emit_dynamic(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 2);
    kernel_args args = kernel_declare(b, row, spec);
    dynamic_kernel k = {
        .q = quantized_begin(b, row, spec, &args), .plan = plan_of(spec), .x = args.operand[QDNN_OPERAND_X]};
    ptx_val tid = ptx_tid_x(b);
    ptx_val n = spec->row_index ? ptx_mul(b, args.number[NUMBER_ROWS], args.number[NUMBER_COLUMNS])
                                : args.number[NUMBER_N];
    ptx_val block_first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, RANGE_BLOCK / k.plan.team.lanes));
    k.lane = team_lane(b, &k.plan.team, tid);
    k.group = team_number(b, &k.plan.team, tid, block_first);
    k.first = ptx_mul(b, k.group, ptx_u64(b, spec->stored.group_size));
    ptx_val exists = ptx_setp(b, PTX_LT, k.first, n),
            end = ptx_min(b, n, ptx_add(b, k.first, ptx_u64(b, spec->stored.group_size)));
    ptx_val whole = block_is_whole(b, &k, n), stores = find_place(b, &k, &args, exists);
    open_stages(b, &k);
    k.groups = emit_divide_up(b, n, spec->stored.group_size);
    range r = range_begin(b, range_kind_of(&k.q.coding));
    ptx_val x[CHUNKS_MAX * CHUNK_MAX];
    for (unsigned i = 0; i < k.plan.chunks * chunk_elements(spec->data); i++)
        x[i] = ptx_var(b, ptx_f32(b, 0));

    ptx_uniform(b);
    ptx_if(b, whole);
    load_chunks(b, &k, exists, x);
    add_chunks(b, &k, exists, &r, x);
    ptx_else(b);
    add_elements(b, &k, &r, end);
    ptx_end_if(b);

    range_reduce_team(b, &k.plan.team, &r);
    group_made made = group_make(b, &k.q.coding, &k.q.side, r.lo, r.hi);
    group_values group = group_of_made(b, &k.q.coding, &k.q.side, &made);
    store_numbers(b, &k, &made, stores);

    ptx_uniform(b);
    ptx_if(b, whole);
    store_chunks(b, &k, stores, &group, x);
    ptx_else(b);
    const few_elements few = {k.x, k.first, end, k.lane, k.plan.team.lanes, &group, false};
    if (spec->row_index)
        encode_elements(b, &k, end, stores, &group);
    else
        encode_few(b, &k.q, &few); /* reads its elements again */
    ptx_end_if(b);
}

/* The steps of the scale and quantize operations, if a single kernel cannot do it. */
static void two_operations(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                           kernel_steps *steps)
{
    const kernel_row *scale = kernel_find_operation(KERNEL_SCALE, row->format);
    const kernel_row *quantize = kernel_find_operation(KERNEL_QUANTIZE, row->format);
    kernel_spec scales = kernel_spec_normal(scale, spec), codes = kernel_spec_normal(quantize, spec);
    scale_level_steps(scale, &scales, problem, steps);
    if (spec->stored.zero_packed)
        zero_packing_steps(scale, &scales, problem, steps);
    steps_add_operation(steps, quantize, &codes, problem);
}

void dynamic_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                   kernel_steps *steps)
{
    if (fits(row, spec))
        steps_add(steps, row, spec, problem);
    else
        two_operations(row, spec, problem, steps);
}

row_codes quantize_rows_steps(const kernel_row *row, qdnnDataType_t data, uint64_t rows, uint64_t columns,
                              kernel_steps *steps)
{
    const int first = steps->count;
    const uint64_t before = steps->workspace;
    const kernel_problem flat = {.rows = 1, .columns = rows * columns};
    kernel_spec spec = kernel_spec_default();
    spec.data = data;
    spec.stored.group_size = columns;
    spec = kernel_spec_normal(row, &spec);
    steps_add_operation(steps, row, &spec, &flat);
    if (steps->workspace < before)
        steps->workspace = before;
    row_codes at;
    at.codes = steps_take(steps, rows * columns);
    at.scales = steps_take(steps, rows * 4);
    for (int i = first; i < steps->count; i++) {
        step_from_workspace(&steps->at[i], QDNN_OPERAND_CODES, at.codes);
        step_from_workspace(&steps->at[i], QDNN_OPERAND_SCALE, at.scales);
    }
    return at;
}
