/* The instructions that are more than a lane loop: memory, atomics, warp-level, asynchronous copies, special
 * registers. What they give to the executor is declared at the end of exec.h (vm_ops_find and kin); this is
 * between themselves.
 *
 * For the executor to keep:
 *   vm_warp has a vm_cache (memory.h), all zero at first.
 *   A kernel that can call malloc or free is serial: these change the table of allocations while it runs.
 *   Copies that are in flight when a block's last lane exits still land: vm_async_finish. */
#ifndef PTXVM_EXEC_OPS_H
#define PTXVM_EXEC_OPS_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

#endif
