/* clusterlaunchcontrol: a running cluster takes over the work of one that has not started, which then never does. The
 * ISA leaves the 16 bytes of the answer opaque; ours are a word that is 1 if there was such a cluster, and the %ctaid of
 * its first block. With a seed some requests are refused although there is one. */
#include "cluster.h"
#include "ops_common.h"

typedef struct cancel_answer {
    uint32_t granted, ctaid[3];
} cancel_answer;
_Static_assert(sizeof(cancel_answer) == OPS_ANSWER_BYTES, "as the ISA has it");

static cancel_answer ask(vm_warp *warp)
{
    cancel_answer answer = {.granted = 0};
    if (ops_landing_of(warp, warp->ops->n_started++) != LANDING_BETWEEN)
        answer.granted = vm_cancel_cluster(warp->block, answer.ctaid);
    return answer;
}

static uint64_t shared_address(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    return operand->space == SPACE_NONE ? address[lane] - VM_SHARED_BASE : address[lane];
}

/* [answer], [mbarrier] */
static vm_result exec_try(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        pending_bulk item = {.op = op, .lane = (uint8_t)lane, .size = OPS_ANSWER_BYTES, .is_answer = true};
        item.to = shared_address(warp, &op->operand[0], (int)lane);
        item.barrier = shared_address(warp, &op->operand[1], (int)lane);
        if (!vm_translate_lane(warp, op, (int)lane, SPACE_SHARED, item.to, item.size, 16, VM_STORE))
            return VM_FAULT;
        cancel_answer answer = ask(warp);
        memcpy(item.answer, &answer, sizeof answer);
        if (!ops_bulk_begin_each(warp, &item))
            return VM_FAULT;
    }
    return VM_NEXT;
}

static cancel_answer answer_of(const vm_warp *warp, const vm_operand *operand, int lane)
{
    cancel_answer answer;
    memcpy(&answer, (const uint8_t *)vm_value(warp, operand) + 16 * lane, sizeof answer);
    return answer;
}

static vm_result exec_is_canceled(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t granted = 0;
    VM_EACH_LANE(lane, mask)
    granted |= (uint32_t)(answer_of(warp, &op->operand[1], (int)lane).granted == 1) << lane;
    ops_result_predicate(warp, &op->operand[0], mask, granted);
    return VM_NEXT;
}

/* All of x y z and 0, or one of them. */
static vm_result exec_first_ctaid(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    unsigned which = op->inst->mod[S_FLAG];
    uint32_t first = which == M_get_first_ctaid ? 0 : which - M_get_first_ctaid__x;
    VM_EACH_LANE(lane, mask)
    {
        cancel_answer answer = answer_of(warp, &op->operand[op->n_results], (int)lane);
        if (answer.granted != 1)
            return vm_fault(
                warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                "get_first_ctaid of a request that was not granted: is_canceled must be asked first");
        for (uint32_t i = 0; i < op->n_results; i++)
            ops_result(warp, &op->operand[i], (int)lane, first + i < 3 ? answer.ctaid[first + i] : 0);
    }
    return VM_NEXT;
}

bool ops_find_cancel(vm_op *op)
{
    const pvm_inst *inst = op->inst;
    op->exec = inst->mod[S_SUB] == M_try_cancel     ? exec_try
               : inst->mod[S_FLAG] == M_is_canceled ? exec_is_canceled
                                                    : exec_first_ctaid;
    return true;
}
