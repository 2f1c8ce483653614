/* Launches one step of an operation on the device under test without the library, for tests that need a specific kernel or
 * algorithm. */
#ifndef QDNN_TEST_STEP_LAUNCH_H
#define QDNN_TEST_STEP_LAUNCH_H

#include "kernels/kernels.h"
#include "device/machine.h"

/* Emits the kernel for its SM and launches it; `at` has the addresses of the operands. If anything fails, or
 * a check finds an error, reports that and returns false. */
bool step_launch(machine *vm, const kernel_step *step, const ptxvm_address *at, ptxvm_address workspace);

#endif
