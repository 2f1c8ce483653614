/* tcgen05: what one thread starts and a commit completes: mma, cp, shift.
 *
 * A thread's instructions take effect in the order in which they were started. When, is up to the seed: at once, at the
 * commit, or (without a seed) when somebody waits for the mbarrier of the commit. */
#include "ops_tcgen05.h"

#include "cluster.h"
#include "ptxvm/exec/hooks.h"

/* ---- Copies from shared to tensor memory ---- */

/* Rows of the matrix in shared memory, the bytes of one, and where it goes: rows row_first to row_first + rows - 1 to
 * the lanes from lane on. */
typedef struct copy_part {
    uint32_t first, rows, lane, lane_step;
} copy_part;

typedef struct copy_shape {
    unsigned shape, warps; /* M_t128x256b ...; M_warpx4 ..., or none */
    uint32_t rows, pieces;
    int n;
    copy_part parts[4];
} copy_shape;

static const copy_shape copy_shapes[] = {
    {M_t128x256b, M_NONE, 128, 2, 1, {{0, 128, 0, 1}}},
    {M_t128x128b, M_NONE, 128, 1, 1, {{0, 128, 0, 1}}},
    {M_t4x256b, M_NONE, 4, 2, 1, {{0, 4, 0, 32}}},
    {M_t64x128b, M_warpx2__02_13, 64, 1, 2, {{0, 64, 0, 1}, {0, 64, 64, 1}}},
    {M_t64x128b,
     M_warpx2__01_23,
     64,
     1,
     4,
     {{0, 32, 0, 1}, {0, 32, 32, 1}, {32, 32, 64, 1}, {32, 32, 96, 1}}},
    {M_t32x128b, M_warpx4, 32, 1, 4, {{0, 32, 0, 1}, {0, 32, 32, 1}, {0, 32, 64, 1}, {0, 32, 96, 1}}},
};

static const copy_shape *shape_of(const vm_op *op)
{
    const copy_shape *s = copy_shapes;
    while (s->shape != op->inst->mod[S_SHAPE] || s->warps != op->inst->mod[S_FLAG])
        s++;
    return s;
}

/* 16 elements of 6 or 4 bits, with padding behind them, become 16 bytes: as for ldmatrix, 4 bits lie in bits 2 to 5. */
static void spread(pvm_type from, uint32_t words[4])
{
    uint8_t bytes[16] = {0};
    uint32_t bits = from == T_B6X16_P32 ? 6 : 4;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t at = i * bits, low = words[at / 32] >> at % 32;
        if (at % 32 + bits > 32)
            low |= words[at / 32 + 1] << (32 - at % 32);
        bytes[i] = (uint8_t)((low & ((1u << bits) - 1)) << (bits == 4 ? 2 : 0));
    }
    memcpy(words, bytes, sizeof bytes);
}

/* The blocks that take part: each copies from its own shared memory into its own tensor memory. */
static int blocks_of(const vm_warp *warp, const tcgen05_item *item, vm_block *blocks[2])
{
    blocks[0] = warp->block;
    if (item->is_pair) { /* by rank */
        uint32_t first = warp->block->rank & ~1u;
        blocks[0] = warp->block->cluster->blocks[first];
        blocks[1] = warp->block->cluster->blocks[first + 1];
    }
    return 1 + item->is_pair;
}

static void copy_block(vm_block *block, const tcgen05_item *item)
{
    const copy_shape *s = shape_of(item->op);
    const vm_matrix m = tcgen05_matrix("the source", item->b, false);
    pvm_type from = pvm_slot_type(item->op->inst, S_TYPE2);
    for (int p = 0; p < s->n; p++)
        for (uint32_t row = 0; row < s->parts[p].rows; row++)
            for (uint32_t piece = 0; piece < s->pieces; piece++) {
                uint32_t words[4],
                    lane = tmem_lane_of(item->d) + s->parts[p].lane + row * s->parts[p].lane_step;
                tcgen05_read_piece(block, vm_matrix_by_line(&m, s->parts[p].first + row, piece), words);
                if (from)
                    spread(from, words);
                memcpy(vm_tmem_row(block, lane, tmem_column_of(item->d) + 4 * piece), words, sizeof words);
            }
}

static int copy_regions(const tcgen05_item *item, vm_block *block, tmem_region *regions)
{
    const copy_shape *s = shape_of(item->op);
    bool apart = s->parts[0].lane_step > 1;
    int n = 0;
    for (int p = 0; p < s->n; p++)
        for (uint32_t row = 0; row < (apart ? s->parts[p].rows : 1); row++)
            regions[n++] =
                (tmem_region){.block = block,
                              .lane = tmem_lane_of(item->d) + s->parts[p].lane + row * s->parts[p].lane_step,
                              .lanes = apart ? 1 : s->parts[p].rows,
                              .column = tmem_column_of(item->d),
                              .columns = 4 * s->pieces,
                              .writes = true};
    return n;
}

/* ---- Shifts ---- */

enum { SHIFT_LANES = 32, SHIFT_COLUMNS = 8 };

static tmem_region shift_region(const tcgen05_item *item, vm_block *block)
{
    return (tmem_region){
        block, tmem_lane_of(item->d), SHIFT_LANES, tmem_column_of(item->d), SHIFT_COLUMNS, true, true};
}

/* Each row gets the next one; the last keeps its own. */
static void shift_block(const vm_block *block, const tcgen05_item *item)
{
    for (uint32_t i = 0; i + 1 < SHIFT_LANES; i++)
        memcpy(vm_tmem_row(block, tmem_lane_of(item->d) + i, tmem_column_of(item->d)),
               vm_tmem_row(block, tmem_lane_of(item->d) + i + 1, tmem_column_of(item->d)),
               SHIFT_COLUMNS * sizeof(uint32_t));
}

/* ---- Items ---- */

int tcgen05_regions(const vm_warp *warp, const tcgen05_item *item, tmem_region *regions)
{
    vm_block *blocks[2];
    int n = 0, n_blocks = blocks_of(warp, item, blocks);
    if (item->kind == TCGEN05_MMA)
        return tcgen05_mma_regions(warp, item, regions);
    for (int i = 0; item->kind != TCGEN05_COMMIT && i < n_blocks; i++)
        if (item->kind == TCGEN05_COPY)
            n += copy_regions(item, blocks[i], regions + n);
        else
            regions[n++] = shift_region(item, blocks[i]);
    return n;
}

static bool arrive(vm_warp *warp, const tcgen05_item *item)
{
    for (uint64_t rank = 0; item->ranks >> rank; rank++)
        if (item->ranks >> rank & 1 &&
            !ops_mbarrier_arrive(warp, item->op, item->lane, item->a % VM_SHARED_SIZE + rank * VM_SHARED_SIZE,
                                 1))
            return false;
    return true;
}

static bool perform(vm_warp *warp, tcgen05_item *item)
{
    vm_block *blocks[2];
    item->done = true;
    if (item->kind == TCGEN05_COMMIT)
        return arrive(warp, item);
    if (item->kind == TCGEN05_MMA) {
        tcgen05_multiply(warp, item);
        return true;
    }
    int n = blocks_of(warp, item, blocks);
    for (int i = 0; i < n; i++)
        if (item->kind == TCGEN05_COPY)
            copy_block(blocks[i], item);
        else
            shift_block(blocks[i], item);
    return true;
}

/* The items of a lane up to the last of these happen, in order. */
static bool perform_up_to(vm_warp *warp, struct ops_tcgen05 *state, int last)
{
    int lane = state->items[last].lane;
    for (int i = 0; i <= last; i++)
        if (!state->items[i].done && state->items[i].lane == lane && !perform(warp, &state->items[i]))
            return false;
    return true;
}

/* For the checks: what an item reads of shared memory, from its start to its end. */
static void watch_shared(vm_warp *warp, const tcgen05_item *item, bool begin)
{
    vm_block *blocks[2];
    if (item->kind == TCGEN05_MMA)
        tcgen05_watch_shared(warp, item, begin);
    if (item->kind != TCGEN05_COPY)
        return;
    const copy_shape *s = shape_of(item->op);
    const vm_matrix m = tcgen05_matrix("the source", item->b, false);
    int n = blocks_of(warp, item, blocks);
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->rows * s->pieces; k++)
            vm_check_operand(warp, item->op, item->lane, blocks[i],
                             vm_matrix_by_line(&m, k / s->pieces, k % s->pieces), 16, begin);
}

static void watch_end(vm_warp *warp, const tcgen05_item *item)
{
    tmem_region regions[TCGEN05_REGIONS];
    int n = warp->block->check ? tcgen05_regions(warp, item, regions) : 0;
    for (int i = 0; i < n; i++)
        vm_check_tmem_end(warp, item->op, item->lane, &regions[i]);
    if (warp->block->check)
        watch_shared(warp, item, false);
}

/* What a commit has completed is forgotten, and the commit itself. */
static void drop_completed(vm_warp *warp, struct ops_tcgen05 *state, int commit)
{
    int kept = 0, lane = state->items[commit].lane;
    for (int i = 0; i < state->n; i++) {
        bool completed = i <= commit && state->items[i].lane == lane;
        if (completed && state->items[i].kind != TCGEN05_COMMIT)
            watch_end(warp, &state->items[i]);
        if (!completed)
            state->items[kept++] = state->items[i];
    }
    state->n = kept;
}

/* Does the commit, which arrives on its mbarriers. */
static bool land(vm_warp *warp, struct ops_tcgen05 *state, int commit)
{
    int lane = state->items[commit].lane;
    for (int i = 0; i < commit; i++)
        if (!state->items[i].done && state->items[i].lane == lane && !perform(warp, &state->items[i]))
            return false;
    tcgen05_item item = state->items[commit];
    drop_completed(warp, state, commit);
    return arrive(warp, &item);
}

static bool arrives_on(const tcgen05_item *item, uint64_t barrier)
{
    return item->kind == TCGEN05_COMMIT && item->a % VM_SHARED_SIZE == barrier % VM_SHARED_SIZE &&
           item->ranks >> barrier / VM_SHARED_SIZE & 1;
}

bool ops_tcgen05_land(vm_warp *warp, uint64_t barrier)
{
    struct ops_tcgen05 *state = warp->ops ? warp->ops->tcgen05 : NULL;
    for (int i = 0; state && i < state->n; i++)
        if (arrives_on(&state->items[i], barrier)) {
            if (!land(warp, state, i))
                return false;
            i = -1;
        }
    return true;
}

int ops_tcgen05_flying(const vm_warp *warp, uint64_t barrier)
{
    const struct ops_tcgen05 *state = warp->ops ? warp->ops->tcgen05 : NULL;
    int n = 0;
    for (int i = 0; state && i < state->n; i++)
        n += arrives_on(&state->items[i], barrier);
    return n;
}

bool tcgen05_start(vm_warp *warp, const tcgen05_item *item)
{
    tmem_region regions[TCGEN05_REGIONS];
    struct ops_tcgen05 *state = tcgen05_state(warp, item->op);
    tcgen05_item *items =
        state ? ops_grow(warp, item->op, state->items, state->n, &state->capacity, sizeof *items) : NULL;
    if (!items)
        return false;
    state->items = items;
    if (warp->block->check) {
        int n = tcgen05_regions(warp, item, regions);
        for (int i = 0; i < n; i++)
            vm_check_tmem_begin(warp, item->op, item->lane, &regions[i]);
        watch_shared(warp, item, true);
    }
    items[state->n++] = *item;
    ops_landing landing = ops_landing_of(warp, state->started++);
    items[state->n - 1].at_commit = landing == LANDING_BETWEEN;
    return landing != LANDING_EARLY || perform_up_to(warp, state, state->n - 1);
}

/* ---- The instructions ---- */

static bool region_is_aligned(vm_warp *warp, const vm_op *op, int lane, uint32_t address, uint32_t lanes)
{
    if (tmem_lane_of(address) % lanes == 0)
        return true;
    vm_fault(warp, op, lane, PTXVM_ERROR_MISALIGNED, "lane %u of tensor memory: it must be a multiple of %u",
             tmem_lane_of(address), lanes);
    return false;
}

static bool regions_are_held(vm_warp *warp, const tcgen05_item *item)
{
    tmem_region regions[TCGEN05_REGIONS];
    int n = tcgen05_regions(warp, item, regions);
    for (int i = 0; i < n; i++)
        if (!vm_tmem_holds(warp, item->op, item->lane, &regions[i], "the address"))
            return false;
    return true;
}

static bool source_is_inside(vm_warp *warp, const tcgen05_item *item)
{
    vm_block *blocks[2];
    const copy_shape *s = shape_of(item->op);
    const vm_matrix m = tcgen05_matrix("the source", item->b, false);
    int n = blocks_of(warp, item, blocks);
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < s->rows * s->pieces; k++)
            if (!tcgen05_piece_is_inside(warp, item->op, item->lane, blocks[i], &m,
                                         vm_matrix_by_line(&m, k / s->pieces, k % s->pieces)))
                return false;
    return true;
}

/* Starts an item for the lane; false after a fault. */
static bool begin_item(vm_warp *warp, const vm_op *op, int lane, tcgen05_kind kind, tcgen05_item *item)
{
    int group = vm_tmem_group(warp, op, lane);
    *item = (tcgen05_item){.op = op, .kind = (uint8_t)kind, .lane = (uint8_t)lane, .is_pair = group == 2};
    return group && (group == 1 || vm_tmem_peer(warp, op, lane));
}

vm_result tcgen05_exec_copy(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        tcgen05_item item;
        if (!begin_item(warp, op, (int)lane, TCGEN05_COPY, &item))
            return VM_FAULT;
        item.d = tcgen05_address(warp, &op->operand[0], (int)lane);
        item.b = ops_operand(warp, &op->operand[1], (int)lane);
        if (!tcgen05_descriptor_is_valid(warp, op, (int)lane, "the source", item.b) ||
            !regions_are_held(warp, &item) || !source_is_inside(warp, &item) || !tcgen05_start(warp, &item))
            return VM_FAULT;
    }
    return VM_NEXT;
}

vm_result tcgen05_exec_shift(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        tcgen05_item item;
        if (!begin_item(warp, op, (int)lane, TCGEN05_SHIFT, &item))
            return VM_FAULT;
        item.d = tcgen05_address(warp, &op->operand[0], (int)lane);
        if (!region_is_aligned(warp, op, (int)lane, item.d, SHIFT_LANES) || !regions_are_held(warp, &item) ||
            !tcgen05_start(warp, &item))
            return VM_FAULT;
    }
    return VM_NEXT;
}

/* The blocks whose mbarriers a commit arrives on. 0 after a fault. */
static uint16_t ranks_of(vm_warp *warp, const vm_op *op, int lane, uint64_t barrier)
{
    int n = warp->block->cluster->n;
    if (op->inst->mod[S_FLAG3] != M_multicast__cluster)
        return (uint16_t)(1u << barrier / VM_SHARED_SIZE);
    uint32_t ranks = (uint16_t)ops_operand(warp, &op->operand[1], lane);
    if (ranks && !(ranks >> n))
        return (uint16_t)ranks;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "a multicast to the blocks 0x%x of a cluster of %d: %s",
             ranks, n, ranks ? "it has no others" : "there must be one at least");
    return 0;
}

static bool barriers_are_there(vm_warp *warp, const tcgen05_item *item)
{
    bool multicast = item->op->inst->mod[S_FLAG3] != M_NONE;
    for (uint64_t rank = 0; item->ranks >> rank; rank++) {
        uint64_t at = multicast ? item->a % VM_SHARED_SIZE + rank * VM_SHARED_SIZE : item->a;
        if (item->ranks >> rank & 1 &&
            !vm_translate_lane(warp, item->op, item->lane, SPACE_SHARED, at, 8, 8, VM_ATOMIC))
            return false;
    }
    return true;
}

vm_result tcgen05_exec_commit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        tcgen05_item item;
        uint64_t address[WARP];
        if (!begin_item(warp, op, (int)lane, TCGEN05_COMMIT, &item))
            return VM_FAULT;
        vm_addresses(warp, &op->operand[0], 1u << lane, address);
        item.a = op->operand[0].space == SPACE_NONE ? address[lane] - VM_SHARED_BASE : address[lane];
        item.ranks = item.a / VM_SHARED_SIZE < VM_CLUSTER_BLOCKS ? ranks_of(warp, op, (int)lane, item.a) : 1;
        if (!item.ranks)
            return VM_FAULT;
        if (!barriers_are_there(warp, &item))
            return VM_FAULT;
        struct ops_tcgen05 *state = tcgen05_state(warp, op);
        tcgen05_item *items =
            state ? ops_grow(warp, op, state->items, state->n, &state->capacity, sizeof *items) : NULL;
        if (!items)
            return VM_FAULT;
        state->items = items;
        items[state->n++] = item;
        if (warp->block->check)
            vm_check_tmem_commit(warp, 1u << lane);
        for (int i = state->n - 2; i >= 0; i--)
            if (items[i].at_commit && items[i].lane == lane && !perform_up_to(warp, state, i))
                return VM_FAULT;
        if (ops_landing_of(warp, state->started++) == LANDING_EARLY && !land(warp, state, state->n - 1))
            return VM_FAULT;
    }
    return VM_NEXT;
}

void ops_tcgen05_block_end(vm_block *block)
{
    for (int w = 0; block->check && w < block->n_warps; w++) {
        vm_warp *warp = &block->warps[w];
        const struct ops_tcgen05 *state = warp->ops ? warp->ops->tcgen05 : NULL;
        for (int i = 0; state && i < state->n; i++)
            if (state->items[i].kind != TCGEN05_COMMIT)
                vm_check_tmem_pending(warp, state->items[i].op, state->items[i].lane);
        for (int i = 0; state && i < state->n_stores; i++)
            vm_check_tmem_pending(warp, state->stores[i].op, 0);
    }
}
