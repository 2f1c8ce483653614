/* One step of an operation, launched on a ptxvm without the driver: for kernels that a test wants by name or by way. */
#ifndef QDNN_TEST_STEP_LAUNCH_H
#define QDNN_TEST_STEP_LAUNCH_H

#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

/* Emits the kernel for the SM and launches it; operands are at those addresses. Whatever fails, or a check finds, is reported; false then. */
bool step_launch(ptxvm *vm, const char *sm, const kernel_step *step, const ptxvm_address *at,
                 ptxvm_address workspace);

#endif
