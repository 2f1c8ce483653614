/* The instructions that are more than a lane loop: memory, atomics, warp-level, asynchronous copies, special
 * registers.
 *
 * What decode asks for is vm_ops_find and vm_builtin_find; what the launch calls is below them; what the
 * operations ask of the rest of the executor is at the end. */
#ifndef PTXVM_EXEC_OPS_H
#define PTXVM_EXEC_OPS_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

/* Completes a decoded instruction (operands, inst and guard are there): sets exec, extra (static tables only:
 * nothing to free), flags and members. False where the opcode is not one of these (lane loops, tensor cores,
 * control flow, barriers of the block). Taken: ld ldu st prefetch* applypriority discard createpolicy atom
 * red membar fence shfl vote match redux activemask elect cp mbarrier ldmatrix stmatrix movmatrix wmma.load
 * wmma.store cvta isspacep alloca stacksave stackrestore griddepcontrol nanosleep trap brkpt pmevent
 * getctarank mapa setmaxnreg, and mov whose source is a special register or the address of a variable or
 * function. */
bool vm_ops_find(vm_op *op);

/* Functions that a module may call without defining them: vprintf, malloc, free, __assertfail. They run at
 * the call's place: the call's arguments are in its .param objects of the running frame (op->inst->call).
 * Null where the name is none of them. */
vm_exec_fn *vm_builtin_find(const char *name);
/* Of these: it allocates or frees, so that the kernel's blocks must run on one host thread. */
bool vm_builtin_is_serial(const char *name);

/* Before a warp's first instruction in a block, after a block's last lane has exited (copies in flight land),
 * when a warp goes. */
void vm_ops_warp_begin(vm_warp *warp);
vm_result vm_ops_block_end(vm_block *block);
void vm_ops_warp_free(vm_warp *warp);

/* Asked of core:
 *   vm_result vm_fault(vm_warp *warp, const vm_op *op, int lane, ptxvm_status status, const char *format,
 * ...) records the launch's fault (kernel, line, block and thread are added to the sentence) and returns
 * VM_FAULT. void vm_print(vm_block *block, const char *text, size_t length) appends to the block's output,
 * which the launch hands to the print callback in the order of the blocks. vm_warp.cache (a vm_cache, all
 * zero at first), vm_launch's vm_memory, kernel parameters and their size, grid and block dimensions, module
 * (for names of files) and device target. .param objects of functions: lane-major in the frame, the callee's
 * own copy (call copies arguments in, ret copies results back), so that ld.param, st.param only need the
 * frame and the variable's offset. */

#endif
