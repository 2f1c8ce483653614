/* mbarrier objects. The ISA leaves the 64 bits opaque; this is our layout:
 *
 *   0..19   arrivals that a phase expects            20..39  arrivals still pending in this phase
 *   40..60  transaction count, two's complement      61      set while the object is valid
 *   63      parity of the current phase
 *
 * The state that an arrive returns is the object as it was before, so it contains the phase and the pending
 * count. */
#include "cluster.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

#define COUNT_BITS 20
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)
#define TX_MASK    ((UINT64_C(1) << 21) - 1)
#define VALID      (UINT64_C(1) << 61)
#define PARITY     (UINT64_C(1) << 63)

static uint64_t expected_of(uint64_t object)
{
    return object & COUNT_MAX;
}

static uint64_t pending_of(uint64_t object)
{
    return object >> 20 & COUNT_MAX;
}

static int64_t tx_of(uint64_t object)
{
    int64_t tx = (int64_t)(object >> 40 & TX_MASK);
    return tx > (int64_t)COUNT_MAX ? tx - (int64_t)TX_MASK - 1 : tx;
}

static uint64_t object_of(uint64_t expected, uint64_t pending, int64_t tx, uint64_t parity)
{
    return expected | pending << 20 | ((uint64_t)tx & TX_MASK) << 40 | VALID | parity;
}

/* Where an object is: its block, and its address in the window of the cluster. */
static vm_block *owner_of(const vm_warp *warp, const vm_u64 *object, uint64_t *address)
{
    const uint8_t *at = (const uint8_t *)object;
    const vm_cluster *cluster = warp->block->cluster;
    int i = (int)warp->block->rank;
    for (int k = 0; at < cluster->blocks[i]->shared ||
                    at >= cluster->blocks[i]->shared + cluster->blocks[i]->shared_reach;
         k++)
        i = k;
    *address = cluster->blocks[i]->shared_base + (uint64_t)(at - cluster->blocks[i]->shared);
    return cluster->blocks[i];
}

/* The object at a .shared or generic address. */
static vm_u64 *object_at(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address)
{
    return (vm_u64 *)(void *)vm_translate_lane(warp, op, lane, space, address, 8, 8, VM_ATOMIC);
}

static vm_u64 *valid_object_at(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address)
{
    vm_u64 *object = object_at(warp, op, lane, space, address);
    if (!object || (*object & VALID))
        return object;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "address 0x%llx holds no initialised mbarrier",
             (unsigned long long)address);
    return NULL;
}

/* A transaction count must lie between -(2^20 - 1) and 2^20 - 1. */
static bool tx_is_in_range(vm_warp *warp, const vm_op *op, int lane, int64_t tx)
{
    if (tx >= -(int64_t)COUNT_MAX && tx <= (int64_t)COUNT_MAX)
        return true;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
             "the mbarrier's transaction count would become %lld: it may be -1048575 to 1048575",
             (long long)tx);
    return false;
}

/* Stores the object, and starts the next phase when nothing is pending any more. */
static void update(vm_warp *warp, const vm_op *op, int lane, vm_u64 *object, uint64_t expected,
                   uint64_t pending, int64_t tx)
{
    uint64_t parity = *object & PARITY;
    if (pending == 0 && tx == 0) {
        pending = expected;
        parity ^= PARITY;
        uint64_t at;
        vm_block *owner = owner_of(warp, object, &at);
        if (warp->block->check)
            vm_check_early_phase(warp, op, lane, ops_async_flying(owner, at));
        vm_wake(owner);
    }
    *object = object_of(expected, pending, tx, parity);
}

static bool arrive(vm_warp *warp, const vm_op *op, int lane, vm_u64 *object, uint64_t count, uint64_t drop,
                   int64_t tx)
{
    uint64_t pending = pending_of(*object), expected = expected_of(*object);
    if (count > pending || drop > expected) {
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "%llu arrivals on an mbarrier that waits for %llu",
                 (unsigned long long)count, (unsigned long long)pending);
        return false;
    }
    if (!tx_is_in_range(warp, op, lane, tx_of(*object) + tx))
        return false;
    update(warp, op, lane, object, expected - drop, pending - count, tx_of(*object) + tx);
    return true;
}

bool ops_mbarrier_arrive(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint32_t count)
{
    vm_u64 *object = valid_object_at(warp, op, lane, SPACE_SHARED, address);
    return object && arrive(warp, op, lane, object, count, 0, 0);
}

bool ops_mbarrier_add_pending(vm_warp *warp, const vm_op *op, int lane, uint64_t address)
{
    vm_u64 *object = valid_object_at(warp, op, lane, SPACE_SHARED, address);
    if (object)
        *object = object_of(expected_of(*object), pending_of(*object) + 1, tx_of(*object), *object & PARITY);
    return object;
}

bool ops_mbarrier_complete_tx(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint32_t bytes)
{
    vm_u64 *object = valid_object_at(warp, op, lane, SPACE_SHARED, address);
    return object && arrive(warp, op, lane, object, 0, 0, -(int64_t)bytes);
}

/* ---- the instructions, one lane at a time: `state` is the result if there is one ---- */

typedef struct lane_call {
    vm_warp *warp;
    const vm_op *op;
    int lane;
    vm_u64 *object;
    uint64_t argument; /* the operand after the address, or `absent` */
    bool has_argument;
    uint64_t result;
} lane_call;

typedef bool lane_operation(lane_call *call);

/* For the checks: init where there is an object already, inval of one whose phase has begun. */
static void watch_end(const lane_call *call, const char *what)
{
    uint64_t object = *call->object, at;
    const vm_block *owner = owner_of(call->warp, call->object, &at);
    if (!owner->check || !(object & VALID))
        return;
    int copies = ops_async_flying(owner, at);
    uint64_t arrived = expected_of(object) - pending_of(object);
    if (call->op->inst->mod[S_SUB] == M_init || arrived || tx_of(object) || copies)
        vm_check_mbarrier(call->warp, call->op, call->lane, what, arrived, tx_of(object), copies);
}

static bool do_init(lane_call *call)
{
    uint64_t count = (uint32_t)call->argument;
    if (count == 0 || count > COUNT_MAX)
        return vm_fault(call->warp, call->op, call->lane, PTXVM_ERROR_EXECUTION,
                        "mbarrier.init with a count of %llu: it must be 1 to 1048575",
                        (unsigned long long)count) != VM_FAULT;
    watch_end(call, "mbarrier.init where an mbarrier is already: mbarrier.inval has to come first");
    *call->object = object_of(count, count, 0, 0);
    return true;
}

static bool do_inval(lane_call *call)
{
    watch_end(call, "mbarrier.inval in the middle of a phase");
    *call->object = 0;
    return true;
}

static bool do_expect_tx(lane_call *call)
{
    uint64_t object = *call->object;
    if (!tx_is_in_range(call->warp, call->op, call->lane, tx_of(object) + (uint32_t)call->argument))
        return false;
    *call->object = object_of(expected_of(object), pending_of(object),
                              tx_of(object) + (uint32_t)call->argument, object & PARITY);
    return true;
}

static bool do_complete_tx(lane_call *call)
{
    return arrive(call->warp, call->op, call->lane, call->object, 0, 0, -(int64_t)(uint32_t)call->argument);
}

/* arrive and arrive_drop: the argument is the count, or with .expect_tx the bytes. */
static bool do_arrive(lane_call *call)
{
    const pvm_inst *inst = call->op->inst;
    bool expects = inst->mod[S_FLAG2] == M_expect_tx;
    uint64_t count = call->has_argument && !expects ? (uint32_t)call->argument : 1;
    uint64_t drop = inst->mod[S_SUB] == M_arrive_drop ? count : 0;
    call->result = *call->object;
    return arrive(call->warp, call->op, call->lane, call->object, count, drop,
                  expects ? (int64_t)(uint32_t)call->argument : 0);
}

/* test_wait and try_wait: whether the phase of the state, or with that parity, is complete. */
static bool do_wait(lane_call *call)
{
    bool parity = call->op->inst->mod[S_FLAG] == M_parity ? call->argument & 1 : call->argument >> 63;
    call->result = parity != *call->object >> 63;
    return true;
}

typedef struct mbarrier_row {
    unsigned sub;
    lane_operation *run;
    bool on_any; /* also on memory without a valid object */
} mbarrier_row;

static const mbarrier_row rows[] = {
    {M_init, do_init, true},
    {M_inval, do_inval, false},
    {M_expect_tx, do_expect_tx, false},
    {M_complete_tx, do_complete_tx, false},
    {M_arrive, do_arrive, false},
    {M_arrive_drop, do_arrive, false},
    {M_test_wait, do_wait, false},
    {M_try_wait, do_wait, false},
};

/* The operand that holds the address. */
static int address_index(const vm_op *op)
{
    int i = 0;
    while (!op->operand[i].is_address)
        i++;
    return i;
}

static vm_result run_lane(const mbarrier_row *row, lane_call *call, int at)
{
    const vm_op *op = call->op;
    const vm_operand *address = &op->operand[at];
    uint64_t a[WARP];
    vm_addresses(call->warp, address, 1u << call->lane, a);
    call->object = (row->on_any ? object_at : valid_object_at)(call->warp, op, call->lane, address->space,
                                                               a[call->lane]);
    if (!call->object)
        return VM_FAULT;
    call->has_argument = op->n_operands > at + 1;
    call->argument = call->has_argument ? ops_operand(call->warp, &op->operand[at + 1], call->lane) : 0;
    return row->run(call) ? VM_NEXT : VM_FAULT;
}

static vm_result exec_mbarrier(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const mbarrier_row *row = op->extra;
    int at = address_index(op);
    VM_EACH_LANE(lane, mask)
    {
        lane_call call = {.warp = warp, .op = op, .lane = (int)lane};
        if (run_lane(row, &call, at) == VM_FAULT)
            return VM_FAULT;
        if (at > 0)
            ops_result(warp, &op->operand[0], (int)lane, call.result);
    }
    return VM_NEXT;
}

/* A lane that would have to wait completes the copies for the barrier, and then lets others run. A phase that is over
 * already completes none: its end does not tell that they are there. */
static vm_result exec_wait(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const mbarrier_row *row = op->extra;
    int at = address_index(op);
    uint32_t done = 0;
    uint64_t a[WARP];
    vm_addresses(warp, &op->operand[at], mask, a);
    VM_EACH_LANE(lane, mask)
    {
        uint64_t barrier = op->operand[at].space == SPACE_NONE ? a[lane] - VM_SHARED_BASE : a[lane];
        lane_call call = {.warp = warp, .op = op, .lane = (int)lane};
        if (run_lane(row, &call, at) == VM_FAULT)
            return VM_FAULT;
        if (!call.result && (!ops_async_land(warp->block, barrier) || run_lane(row, &call, at) == VM_FAULT))
            return VM_FAULT;
        done |= (uint32_t)call.result << lane;
    }
    ops_result_predicate(warp, &op->operand[0], mask, done);
    return done == mask ? VM_NEXT : VM_YIELD;
}

static vm_result exec_pending_count(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, pending_of(ops_operand(warp, &op->operand[1], (int)lane)));
    return VM_NEXT;
}

bool ops_find_mbarrier(vm_op *op)
{
    unsigned sub = op->inst->mod[S_SUB];
    if (sub == M_pending_count) {
        op->exec = exec_pending_count;
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].sub == sub)
            op->extra = (void *)(uintptr_t)&rows[i];
    op->exec = sub == M_test_wait || sub == M_try_wait ? exec_wait : exec_mbarrier;
    return op->extra;
}
