/* Asynchronous copies: cp.async, cp.async.bulk and cp.reduce.async.bulk.
 *
 * A copy into shared memory is held back until the program waits for it: the program must not see its data
 * earlier, and here it cannot. cp.async completes at cp.async.wait_*, or when some lane has to wait for the mbarrier of a
 * cp.async.mbarrier.arrive; a bulk copy into shared memory completes when some lane has to wait for its mbarrier. Copies
 * out of shared memory (bulk_group) are done at once: that makes no observable difference. */
#include <stdlib.h>

#include "cluster.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

void *ops_grow(vm_warp *warp, const vm_op *op, void *items, int count, int *capacity, size_t size)
{
    uint64_t limit = warp->block->launch->vm->config.limits[PTXVM_LIMIT_ASYNC];
    if ((uint64_t)count >= limit) {
        vm_fault(warp, op, vm_first(warp->active), PTXVM_ERROR_EXECUTION,
                 "more than %llu %s: the limit is %s", (unsigned long long)limit,
                 ptxvm_limit_what(PTXVM_LIMIT_ASYNC), ptxvm_limit_name(PTXVM_LIMIT_ASYNC));
        return NULL;
    }
    if (count < *capacity)
        return items;
    int wanted = *capacity ? 2 * *capacity : 8;
    void *grown = realloc(items, (size_t)wanted * size);
    if (grown)
        *capacity = wanted;
    else
        vm_fault(warp, op, vm_first(warp->active), PTXVM_ERROR_MEMORY,
                 "no memory left for an asynchronous copy");
    return grown;
}

static pending *push(vm_warp *warp, const vm_op *op, pending_kind kind, uint32_t lanes)
{
    struct vm_ops_warp *state = warp->ops;
    pending *items =
        ops_grow(warp, op, state->copies, state->n_copies, &state->copies_capacity, sizeof *state->copies);
    if (!items)
        return NULL;
    state->copies = items;
    pending *item = &items[state->n_copies++];
    item->op = op;
    item->lanes = lanes;
    item->marked = 0;
    item->kind = (uint8_t)kind;
    item->count = 1;
    return item;
}

/* ---- completion ---- */

/* The destination was checked when the copy was started, and shared memory does not move. */
static bool land_lane(vm_warp *warp, const pending *item, uint32_t lane, bool by_thread)
{
    if (item->kind == PENDING_COPY) {
        memcpy(warp->block->shared + item->to[lane], item->data[lane], item->bytes);
        if (warp->block->check)
            vm_check_async_landed(warp, item->op, (int)lane, warp->block->shared_base + item->to[lane],
                                  item->bytes, item->undefined[lane], by_thread);
    } else if (item->kind == PENDING_ARRIVE)
        return ops_mbarrier_arrive(warp, item->op, (int)lane, item->to[lane], 1);
    return true;
}

/* Completes the marked items, in order, and drops those that are complete in all lanes. by_thread: because
 * the threads that started the copies wait for them. */
static bool land_marked(vm_warp *warp, bool by_thread)
{
    struct vm_ops_warp *state = warp->ops;
    int kept = 0;
    for (int i = 0; i < state->n_copies; i++) {
        pending *item = &state->copies[i];
        VM_EACH_LANE(lane, item->marked)
        if (!land_lane(warp, item, lane, by_thread))
            return false;
        item->lanes &= ~item->marked;
        item->marked = 0;
        if (item->lanes && kept++ != i)
            state->copies[kept - 1] = *item;
    }
    state->n_copies = kept;
    return true;
}

/* For each lane in mask: marks the items up to the commit that has `newer` commits after it; all if newer is
 * negative. */
static void mark_groups(struct vm_ops_warp *state, uint32_t mask, int64_t newer)
{
    int64_t commits[WARP] = {0};
    uint32_t reached = newer < 0 ? mask : 0;
    for (int i = state->n_copies - 1; i >= 0; i--) {
        pending *item = &state->copies[i];
        if (item->kind == PENDING_COMMIT && reached != mask)
            VM_EACH_LANE(lane, item->lanes & mask)
        reached |= (uint32_t)((commits[lane] += item->count) > newer) << lane;
        item->marked = item->lanes & reached;
    }
}

/* For each lane that arrives on the barrier: marks the items up to its last arrival there. */
static bool mark_arrivals(struct vm_ops_warp *state, uint64_t barrier)
{
    uint32_t reached = 0;
    for (int i = state->n_copies - 1; i >= 0; i--) {
        pending *item = &state->copies[i];
        if (item->kind == PENDING_ARRIVE)
            VM_EACH_LANE(lane, item->lanes)
        reached |= (uint32_t)(item->to[lane] == barrier) << lane;
        item->marked = item->lanes & reached;
    }
    return reached;
}

static bool move_bulk(vm_warp *warp, pending_bulk *item)
{
    if (item->moved)
        return true;
    item->moved = true;
    if (item->is_tensor)
        return ops_tensor_load(warp, item->op, item->lane, &item->box);
    uint8_t *to =
        vm_translate_lane(warp, item->op, item->lane, SPACE_SHARED, item->to, item->size, 16, VM_STORE);
    const uint8_t *from = item->answer;
    if (to && !item->is_answer)
        from = vm_translate_lane(warp, item->op, item->lane, item->from_space, item->from, item->size, 16,
                                 VM_LOAD);
    if (to && from)
        vm_copy_relaxed(to, from, item->size);
    return to && from;
}

static bool land_bulk(vm_warp *warp, pending_bulk *item)
{
    if (!move_bulk(warp, item))
        return false;
    if (warp->block->check && vm_shared_owner(warp->block, item->to))
        vm_check_async_landed(warp, item->op, item->lane, item->to, item->size, 0, false);
    uint64_t bytes = item->is_tensor ? ops_tensor_bytes(&item->box) : item->size;
    return ops_mbarrier_complete_tx(warp, item->op, item->lane, item->barrier, (uint32_t)bytes);
}

static bool begin_one(vm_warp *warp, const pending_bulk *item)
{
    struct vm_ops_warp *state = warp->ops;
    pending_bulk *items =
        ops_grow(warp, item->op, state->bulk, state->n_bulk, &state->bulk_capacity, sizeof *items);
    if (!items)
        return false;
    state->bulk = items;
    pending_bulk *last = &items[state->n_bulk++];
    *last = *item;
    if (warp->block->check)
        vm_check_async_begin(warp, item->to, item->size);
    ops_landing landing = ops_landing_of(warp, state->n_started++);
    if (landing == LANDING_BETWEEN)
        return move_bulk(warp, last);
    if (landing != LANDING_EARLY)
        return true;
    last->landed = true;
    bool ok = land_bulk(warp, last);
    state->n_bulk--;
    return ok;
}

/* What a copy into shared memory completes on is where its data goes; .cta_group::2 may also use the other block of
 * the pair. */
static bool barrier_is_near(vm_warp *warp, const pending_bulk *item)
{
    uint64_t to = item->to / VM_SHARED_SIZE, barrier = item->barrier / VM_SHARED_SIZE;
    if (to == barrier || (item->op->inst->mod[S_FLAG2] == M_cta_group__2 && to / 2 == barrier / 2))
        return true;
    vm_fault(warp, item->op, item->lane, PTXVM_ERROR_EXECUTION,
             "a bulk copy to block %llu of the cluster with an mbarrier of block %llu",
             (unsigned long long)to, (unsigned long long)barrier);
    return false;
}

static void move_to_rank(pending_bulk *item, uint64_t rank)
{
    uint64_t step = (rank - item->to / VM_SHARED_SIZE) * VM_SHARED_SIZE;
    item->to += step;
    item->box.shared += step;
    item->barrier += step;
}

/* The blocks of the cluster that a copy goes to. */
static uint32_t ranks_of(const vm_warp *warp, const pending_bulk *item)
{
    const vm_op *op = item->op;
    if (op->inst->mod[S_FLAG2] == M_multicast__cluster__all)
        return (1u << warp->block->cluster->n) - 1;
    if (op->inst->mod[S_FLAG3] != M_multicast__cluster)
        return 1u << item->to / VM_SHARED_SIZE;
    int set = op->n_operands - 1 - (op->inst->mod[S_HINT] != M_NONE);
    return (uint16_t)ops_operand(warp, &op->operand[set], item->lane);
}

bool ops_bulk_begin_each(vm_warp *warp, const pending_bulk *item)
{
    const vm_op *op = item->op;
    int n = warp->block->cluster->n;
    if (!barrier_is_near(warp, item))
        return false;
    uint32_t ranks = ranks_of(warp, item);
    if (ranks >> n || !ranks) {
        vm_fault(warp, op, item->lane, PTXVM_ERROR_EXECUTION,
                 "a multicast to the blocks 0x%x of a cluster of %d: %s", ranks, n,
                 ranks ? "it has no others" : "there must be one at least");
        return false;
    }
    for (uint64_t rank = 0; rank < (uint64_t)n; rank++) {
        pending_bulk one = *item;
        move_to_rank(&one, rank);
        if (ranks >> rank & 1 &&
            !(vm_translate_lane(warp, op, one.lane, SPACE_SHARED, one.to, one.size, 16, VM_STORE) &&
              begin_one(warp, &one)))
            return false;
    }
    return true;
}

static bool land_bulks(vm_warp *warp, uint64_t barrier)
{
    struct vm_ops_warp *state = warp->ops;
    int kept = 0;
    for (int i = 0; i < state->n_bulk; i++)
        if (state->bulk[i].barrier == barrier) {
            state->bulk[i].landed = true;
            if (!land_bulk(warp, &state->bulk[i]))
                return false;
        }
    for (int i = 0; i < state->n_bulk; i++)
        if (!state->bulk[i].landed)
            state->bulk[kept++] = state->bulk[i];
    state->n_bulk = kept;
    return true;
}

int ops_async_flying(const vm_block *block, uint64_t barrier)
{
    int flying = 0;
    const vm_cluster *cluster = block->cluster;
    for (int w = 0; w < cluster->n * block->n_warps; w++) {
        const struct vm_ops_warp *state = cluster->blocks[w / block->n_warps]->warps[w % block->n_warps].ops;
        for (int i = 0; i < state->n_bulk; i++)
            flying += state->bulk[i].barrier == barrier && !state->bulk[i].landed;
    }
    return flying;
}

bool ops_async_land(vm_block *block, uint64_t barrier)
{
    const vm_cluster *cluster = block->cluster;
    for (int w = 0; w < cluster->n * block->n_warps; w++) {
        vm_warp *warp = &cluster->blocks[w / block->n_warps]->warps[w % block->n_warps];
        if (mark_arrivals(warp->ops, barrier) && !land_marked(warp, false))
            return false;
        if (!land_bulks(warp, barrier) || !ops_tcgen05_land(warp, barrier))
            return false;
    }
    return true;
}

/* ---- cp.async ---- */

/* The operand after the size: src-size or ignore-src; null if there is none. */
static const vm_operand *limit_of(const vm_op *op)
{
    return op->n_operands - (op->inst->mod[S_HINT] ? 1 : 0) > 3 ? &op->operand[3] : NULL;
}

/* The number of source bytes to read: src-size or, with ignore-src, none. False after a fault: a src-size above the size of the copy is
 * undefined behaviour. */
static bool source_bytes(vm_warp *warp, const vm_op *op, const vm_operand *limit, int lane, uint32_t bytes,
                         uint32_t *used)
{
    if (limit->width == 0) {
        *used = vm_predicate(warp, limit) >> lane & 1 ? 0 : bytes;
        return true;
    }
    const uint64_t size = ops_operand(warp, limit, lane);
    *used = (uint32_t)size;
    if (size > bytes)
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "a src-size of %llu bytes in a copy of %u bytes",
                 (unsigned long long)size, (unsigned)bytes);
    return size <= bytes;
}

static bool read_whole(vm_warp *warp, const vm_op *op, pending *item, uint32_t mask)
{
    vm_access source;
    source.bytes = source.align = item->bytes;
    source.space = op->operand[1].space;
    source.kind = VM_LOAD;
    if (!vm_access_operand(warp, op, &op->operand[1], &source, mask))
        return false;
    VM_EACH_LANE(lane, mask)
    vm_copy_relaxed(item->data[lane], vm_host(&source, lane), item->bytes);
    return true;
}

/* Counts the traffic of lanes that are translated one by one; lanes that read only part of their bytes are
 * not counted. */
static void count_whole(vm_warp *warp, const vm_op *op, const uint64_t *source, uint32_t bytes,
                        uint32_t lanes)
{
    vm_access access = {.bytes = bytes, .space = op->operand[1].space, .kind = VM_LOAD};
    if (!lanes || !warp->block->watch || !warp->block->watch->counts)
        return;
    memcpy(access.address, source, sizeof access.address);
    check_count_access(warp, op, &access, lanes);
}

/* Bytes that are not read are zero, and their address does not matter. */
static bool read_limited(vm_warp *warp, const vm_op *op, const vm_operand *limit, pending *item,
                         uint32_t mask)
{
    const vm_operand *from = &op->operand[1];
    uint64_t source[WARP];
    uint32_t whole = 0; /* lanes that read all of their bytes */
    vm_addresses(warp, from, mask, source);
    memset(item->data, 0, sizeof item->data);
    VM_EACH_LANE(lane, mask)
    {
        uint32_t used;
        const uint8_t *host = NULL;
        if (!source_bytes(warp, op, limit, (int)lane, item->bytes, &used))
            return false;
        if (used && !(host = vm_translate_lane(warp, op, (int)lane, from->space, source[lane], used,
                                               item->bytes, VM_LOAD)))
            return false;
        vm_copy_relaxed(item->data[lane], host, used);
        whole |= (uint32_t)(used == item->bytes) << lane;
    }
    count_whole(warp, op, source, item->bytes, whole);
    return true;
}

static vm_result exec_copy(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *to = &op->operand[0];
    uint32_t bytes = (uint32_t)op->operand[2].bits;
    vm_access target;
    target.bytes = target.align = bytes;
    target.space = to->space;
    target.kind = VM_STORE;
    if (!vm_access_operand(warp, op, to, &target, mask))
        return VM_FAULT;
    pending *item = push(warp, op, PENDING_COPY, mask);
    if (!item)
        return VM_FAULT;
    item->bytes = (uint8_t)bytes;
    VM_EACH_LANE(lane, mask)
    item->to[lane] = (uint32_t)(vm_host(&target, lane) - warp->block->shared);
    const vm_operand *limit = limit_of(op);
    bool ok = limit ? read_limited(warp, op, limit, item, mask) : read_whole(warp, op, item, mask);
    VM_EACH_LANE(lane, ok && warp->block->check ? mask : 0)
    {
        item->undefined[lane] = warp->block->watch->moved_undefined[lane];
        vm_check_async_begin(warp, warp->block->shared_base + item->to[lane], bytes);
    }
    return ok ? VM_NEXT : VM_FAULT;
}

static vm_result exec_commit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const struct vm_ops_warp *state = warp->ops;
    pending *last = state->n_copies ? &state->copies[state->n_copies - 1] : NULL;
    if (last && last->kind == PENDING_COMMIT && last->lanes == mask && last->count < INT32_MAX) {
        last->count++; /* an empty group: loops may commit any number of them */
        return VM_NEXT;
    }
    return push(warp, op, PENDING_COMMIT, mask) ? VM_NEXT : VM_FAULT;
}

static vm_result exec_wait_group(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    mark_groups(warp->ops, mask, op->inst->mod[S_MODE] == M_wait_all ? -1 : (int64_t)op->operand[0].bits);
    return land_marked(warp, true) ? VM_NEXT : VM_FAULT;
}

static vm_result exec_async_arrive(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *barrier = &op->operand[0];
    uint64_t address[WARP];
    vm_addresses(warp, barrier, mask, address);
    pending *item = push(warp, op, PENDING_ARRIVE, mask);
    if (!item)
        return VM_FAULT;
    VM_EACH_LANE(lane, mask)
    {
        item->to[lane] =
            (uint32_t)(barrier->space == SPACE_NONE ? address[lane] - VM_SHARED_BASE : address[lane]);
        if (op->inst->mod[S_FLAG] != M_noinc &&
            !ops_mbarrier_add_pending(warp, op, (int)lane, item->to[lane]))
            return VM_FAULT;
    }
    return VM_NEXT;
}

/* ---- bulk ---- */

/* One lane's operands: [to], [from], size and, optionally, [mbarrier]. */
typedef struct bulk_copy {
    uint64_t to, from, size, barrier;
    pvm_space to_space, from_space;
    bool has_barrier;
    uint32_t byte_mask; /* which of every 16 bytes are copied */
    uint8_t *host_to;
    const uint8_t *host_from;
} bulk_copy;

static uint64_t lane_address(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    return address[lane];
}

static bulk_copy bulk_of(const vm_warp *warp, const vm_op *op, int lane)
{
    const vm_operand *o = op->operand;
    bulk_copy copy = {.byte_mask = 0xFFFF, .to_space = o[0].space, .from_space = o[1].space};
    copy.to = lane_address(warp, &o[0], lane);
    copy.from = lane_address(warp, &o[1], lane);
    copy.size = (uint32_t)ops_operand(warp, &o[2], lane);
    copy.has_barrier = op->inst->mod[S_FLAG] == M_mbarrier__complete_tx__bytes;
    if (copy.has_barrier) {
        copy.barrier = lane_address(warp, &o[3], lane);
        copy.barrier -= o[3].space == SPACE_NONE ? VM_SHARED_BASE : 0;
    }
    if (op->inst->mod[S_FLAG3] == M_cp_mask)
        copy.byte_mask = (uint16_t)ops_operand(warp, &o[op->n_operands - 1], lane);
    return copy;
}

static bool bulk_is_aligned(vm_warp *warp, const vm_op *op, int lane, const bulk_copy *copy)
{
    if (copy->size % 16 == 0)
        return true;
    vm_fault(warp, op, lane, PTXVM_ERROR_MISALIGNED,
             "a bulk copy of %llu bytes: the size must be a multiple of 16", (unsigned long long)copy->size);
    return false;
}

/* Gets the operands and their host addresses; a copy of 0 bytes accesses nothing. Returns false after a
 * fault. */
static bool bulk_begin(vm_warp *warp, const vm_op *op, int lane, vm_access_kind kind, bulk_copy *copy)
{
    *copy = bulk_of(warp, op, lane);
    if (!copy->size)
        return true;
    if (!bulk_is_aligned(warp, op, lane, copy))
        return false;
    copy->host_to = vm_translate_lane(warp, op, lane, copy->to_space, copy->to, copy->size, 16, kind);
    if (copy->host_to)
        copy->host_from =
            vm_translate_lane(warp, op, lane, copy->from_space, copy->from, copy->size, 16, VM_LOAD);
    return copy->host_from;
}

/* A copy out of shared memory, for the checks: it is done at once, but the program must not rely on that. */
static void watch_out(vm_warp *warp, const vm_op *op, int lane, const bulk_copy *copy)
{
    if (warp->block->check)
        vm_check_bulk_out(warp, op, lane, copy->to, copy->from, copy->size);
}

static void copy_masked(uint8_t *to, const uint8_t *from, uint64_t bytes, uint32_t byte_mask)
{
    if (byte_mask == 0xFFFF)
        vm_copy_relaxed(to, from, bytes);
    for (uint64_t i = 0; byte_mask != 0xFFFF && i < bytes; i++)
        if (byte_mask >> i % 16 & 1)
            vm_copy_relaxed(to + i, from + i, 1);
}

static vm_result exec_bulk(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        bulk_copy copy;
        if (!bulk_begin(warp, op, (int)lane, VM_STORE, &copy))
            return VM_FAULT;
        if (!copy.size)
            continue;
        if (!copy.has_barrier) {
            copy_masked(copy.host_to, copy.host_from, copy.size, copy.byte_mask);
            watch_out(warp, op, (int)lane, &copy);
            continue;
        }
        pending_bulk item = {.op = op,
                             .to = copy.to_space == SPACE_NONE ? copy.to - VM_SHARED_BASE : copy.to,
                             .from = copy.from,
                             .size = copy.size,
                             .barrier = copy.barrier,
                             .lane = (uint8_t)lane,
                             .from_space = (uint8_t)copy.from_space};
        if (!ops_bulk_begin_each(warp, &item))
            return VM_FAULT;
    }
    return VM_NEXT;
}

static vm_result exec_bulk_reduce(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    pvm_type type = pvm_slot_type(op->inst, S_TYPE);
    atomic_fn *apply = ops_atomic_find(op->inst->mod[S_OP], type);
    uint64_t size = (uint64_t)pvm_type_bits(type) / 8;
    VM_EACH_LANE(lane, mask)
    {
        bulk_copy copy;
        if (!bulk_begin(warp, op, (int)lane, VM_ATOMIC, &copy))
            return VM_FAULT;
        if (!copy.size)
            continue;
        for (uint64_t i = 0; i < copy.size; i += size) {
            uint64_t value = 0;
            vm_copy_relaxed((uint8_t *)&value, copy.host_from + i, size);
            ops_atomic_apply(apply, copy.host_to + i, (int)size, copy.to_space != SPACE_SHARED, value, 0);
        }
        if (!copy.has_barrier)
            watch_out(warp, op, (int)lane, &copy);
        else if (!ops_mbarrier_complete_tx(warp, op, (int)lane, copy.barrier, (uint32_t)copy.size))
            return VM_FAULT;
    }
    return VM_NEXT;
}

/* st.async and red.async: [address], value, [mbarrier]. */
vm_result ops_exec_async(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *barrier = &op->operand[op->n_operands - 1];
    uint32_t values = (uint32_t)op->n_operands - 2;
    uint32_t bytes = values * (uint32_t)pvm_type_bits(pvm_slot_type(op->inst, S_TYPE)) / 8;
    if ((op->inst->op == OP_st ? ops_exec_st : ops_exec_atomic)(warp, op, mask) == VM_FAULT)
        return VM_FAULT;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t address = lane_address(warp, barrier, (int)lane);
        address -= barrier->space == SPACE_NONE ? VM_SHARED_BASE : 0;
        if (!ops_mbarrier_complete_tx(warp, op, (int)lane, address, bytes))
            return VM_FAULT;
    }
    return VM_NEXT;
}

/* Copies out of shared memory are complete already: only the checks care about groups of them. */
static vm_result exec_bulk_commit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)op;
    if (warp->block->check)
        vm_check_bulk_commit(warp, mask);
    return VM_NEXT;
}

static vm_result exec_bulk_wait(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    if (warp->block->check)
        vm_check_bulk_wait(warp, mask, (uint32_t)op->operand[0].bits, op->inst->mod[S_FLAG] == M_read);
    return VM_NEXT;
}

static vm_result exec_nothing(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)warp, (void)op, (void)mask;
    return VM_NEXT;
}

static vm_exec_fn *find_bulk(const pvm_inst *inst)
{
    if (inst->mod[S_FLAG2] == M_commit_group)
        return exec_bulk_commit;
    if (inst->mod[S_FLAG2] == M_wait_group)
        return exec_bulk_wait;
    if (inst->mod[S_SUB] == M_async)
        return exec_bulk;
    return ops_atomic_find(inst->mod[S_OP], pvm_slot_type(inst, S_TYPE)) ? exec_bulk_reduce : NULL;
}

bool ops_find_cp(vm_op *op)
{
    if (op->inst->mod[S_KIND] == M_tensor) {
        op->exec = ops_find_tensor_copy(op->inst);
        return true;
    }
    if (op->inst->mod[S_FLAG2] == M_prefetch) {
        op->exec = exec_nothing;
        return true;
    }
    switch (op->inst->mod[S_MODE]) {
    case M_NONE:
        op->exec = exec_copy;
        break;
    case M_commit_group:
        op->exec = exec_commit;
        break;
    case M_wait_group:
    case M_wait_all:
        op->exec = exec_wait_group;
        break;
    case M_mbarrier:
        op->exec = exec_async_arrive;
        break;
    case M_bulk:
        op->exec = find_bulk(op->inst);
        break;
    default:
        return false;
    }
    return op->exec;
}

/* ---- lifetime of a warp ---- */

bool vm_ops_warp_begin(vm_warp *warp)
{
    if (!warp->ops)
        warp->ops = calloc(1, sizeof *warp->ops);
    if (!warp->ops)
        return false;
    warp->ops->n_copies = warp->ops->n_bulk = 0;
    warp->ops->n_started = 0;
    ops_wgmma_begin(warp);
    ops_tcgen05_begin(warp);
    if (warp->index == 0)
        vm_tmem_begin(warp->block);
    return true;
}

/* Copies still in flight go into shared memory, which ends with the block. */
vm_result vm_ops_block_end(vm_block *block)
{
    if (block->check)
        vm_check_bulk_end(block);
    ops_tcgen05_block_end(block);
    vm_tmem_end(block);
    for (int i = 0; i < block->n_warps; i++) {
        struct vm_ops_warp *state = block->warps[i].ops;
        if (!state)
            continue;
        for (int k = 0; block->check && k < state->n_bulk; k++)
            vm_check_bulk_pending(&block->warps[i], state->bulk[k].op, state->bulk[k].lane);
        state->n_copies = state->n_bulk = 0;
    }
    return ops_wgmma_block_end(block) ? VM_NEXT : VM_FAULT;
}

void vm_ops_warp_free(vm_warp *warp)
{
    if (!warp->ops)
        return;
    free(warp->ops->copies);
    free(warp->ops->bulk);
    free(warp->ops->maps);
    ops_wgmma_free(warp);
    ops_tcgen05_free(warp);
    free(warp->ops);
    warp->ops = NULL;
}
