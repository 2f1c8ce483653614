/* The instructions handled by ops_*.c, and the functions that complete them. */
#include "ops_common.h"

static ops_finder *const finders[OP_COUNT] = {
    [OP_ld] = ops_find_ld,
    [OP_ldu] = ops_find_ld,
    [OP_st] = ops_find_st,
    [OP_atom] = ops_find_atomic,
    [OP_red] = ops_find_atomic,
    [OP_shfl] = ops_find_shfl,
    [OP_vote] = ops_find_warp,
    [OP_match] = ops_find_warp,
    [OP_redux] = ops_find_warp,
    [OP_activemask] = ops_find_warp,
    [OP_elect] = ops_find_warp,
    [OP_cp] = ops_find_cp,
    [OP_tensormap] = ops_find_tensormap,
    [OP_mbarrier] = ops_find_mbarrier,
    [OP_clusterlaunchcontrol] = ops_find_cancel,
    [OP_ldmatrix] = ops_find_matrix,
    [OP_stmatrix] = ops_find_matrix,
    [OP_movmatrix] = ops_find_matrix,
    [OP_wmma] = ops_find_wmma,
    [OP_wgmma] = ops_find_wgmma,
    [OP_tcgen05] = ops_find_tcgen05,
    [OP_mov] = ops_find_mov,
    [OP_cvta] = ops_find_address,
    [OP_isspacep] = ops_find_address,
    [OP_mapa] = ops_find_address,
    [OP_getctarank] = ops_find_address,
    [OP_alloca] = ops_find_address,
    [OP_stacksave] = ops_find_address,
    [OP_stackrestore] = ops_find_address,
    [OP_membar] = ops_find_misc,
    [OP_fence] = ops_find_misc,
    [OP_nanosleep] = ops_find_misc,
    [OP_trap] = ops_find_misc,
    [OP_brkpt] = ops_find_misc,
    [OP_createpolicy] = ops_find_misc,
    [OP_prefetch] = ops_find_misc,
    [OP_prefetchu] = ops_find_misc,
    [OP_applypriority] = ops_find_misc,
    [OP_discard] = ops_find_misc,
    [OP_pmevent] = ops_find_misc,
    [OP_griddepcontrol] = ops_find_misc,
    [OP_setmaxnreg] = ops_find_misc,
};

bool vm_ops_find(vm_op *op)
{
    ops_finder *find = finders[op->inst->op];
    op->exec = NULL;
    op->extra = NULL;
    return find && find(op);
}
