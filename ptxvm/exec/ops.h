/* The instructions that are more than a lane loop: memory, atomics, warp-level, asynchronous copies, special
 * registers. */
#ifndef PTXVM_EXEC_OPS_H
#define PTXVM_EXEC_OPS_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

/* Completes a decoded instruction (operands, inst and guard are there): sets exec, extra (static tables only:
 * nothing to free), flags and members. False where the opcode is not one of these. Taken: ld ldu st prefetch*
 * applypriority discard createpolicy atom red membar fence shfl vote match redux activemask elect cp mbarrier
 * ldmatrix stmatrix movmatrix wmma.load wmma.store cvta isspacep alloca stacksave stackrestore griddepcontrol
 * nanosleep trap brkpt pmevent getctarank mapa setmaxnreg, and mov whose source is a special register. */
bool vm_ops_find(vm_op *op);

/* Functions that a module may call without defining them: vprintf, malloc, free, __assertfail. Null where the
 * name is none of them. */
vm_exec_fn *vm_builtin_find(const char *name);
/* How the function of that name is declared, where that is not how `function` is; null: it is, or the name is
 * none of them. */
const char *vm_builtin_mismatch(const pvm_function *function);
/* Of these: it allocates or frees, so that the kernel's blocks must run on one host thread. */
bool vm_builtin_is_serial(const char *name);

/* Before a warp's first instruction in a block (false: no memory left); after a block's last lane has exited,
 * as copies in flight still land (VM_NEXT or VM_FAULT); when a warp goes. warp->ops is null before the first.
 */
bool vm_ops_warp_begin(vm_warp *warp);
vm_result vm_ops_block_end(vm_block *block);
void vm_ops_warp_free(vm_warp *warp);

#endif
