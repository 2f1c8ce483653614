/* One step of a plan on ptxvm, for its counters. */
#ifndef QDNN_TEST_KERNELS_LAUNCH_H
#define QDNN_TEST_KERNELS_LAUNCH_H

#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

/* Every byte of every operand is `byte`. False: ptxvm_last_error tells why. */
bool launch_filled(ptxvm *vm, const kernel_step *step, const char *ptx, const kernel_operand *operands,
                   uint8_t byte);

#endif
