/* The instructions that are more than a lane loop: memory, atomics, warp-level, asynchronous copies, special
 * registers. */
#ifndef PTXVM_EXEC_OPS_H
#define PTXVM_EXEC_OPS_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

/* Completes a decoded instruction (operands, inst and guard are set): sets exec, extra (static tables only:
 * nothing to free), flags and members. Returns false if the opcode is not one of these: ld ldu st prefetch*
 * applypriority discard createpolicy atom red membar fence shfl vote match redux activemask elect cp mbarrier
 * ldmatrix stmatrix movmatrix wmma.load wmma.store wgmma.fence wgmma.commit_group wgmma.wait_group cvta isspacep alloca stacksave stackrestore griddepcontrol
 * nanosleep trap brkpt pmevent getctarank mapa setmaxnreg, and mov whose source is a special register. */
bool vm_ops_find(vm_op *op);

/* Functions that a module may call without defining them: vprintf, malloc, free, __assertfail. Null for any
 * other name. */
vm_exec_fn *vm_builtin_find(const char *name);
/* The right declaration of the function of that name, if `function` is declared differently; null: it is
 * right, or the name is not one of them. */
const char *vm_builtin_mismatch(const pvm_function *function);
/* Whether it allocates or frees, so that the kernel's blocks must run on one host thread. */
bool vm_builtin_is_serial(const char *name);

/* Called before a warp's first instruction in a block (false: no memory left); after a block's last lane has
 * exited, because copies in flight still complete (VM_NEXT or VM_FAULT); and when a warp is freed. warp->ops
 * is null before the first. */
bool vm_ops_warp_begin(vm_warp *warp);
vm_result vm_ops_block_end(vm_block *block);
void vm_ops_warp_free(vm_warp *warp);
void vm_ops_block_free(vm_block *block);
/* A function returns: results of wgmma that are still in flight have no registers any more. */
void vm_ops_frame_end(vm_warp *warp, const vm_frame *frame);

#endif
