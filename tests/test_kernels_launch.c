#include "test_kernels_launch.h"

#include <string.h>

bool launch_filled(ptxvm *vm, const kernel_step *step, const char *ptx, const kernel_operand *operands,
                   uint8_t byte)
{
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    bool ok = true;
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        params[i] = p->value;
        if (p->kind == KERNEL_OPERAND)
            ok = ok && ptxvm_alloc(vm, operands[p->operand].bytes, &params[i]) == PTXVM_OK &&
                 ptxvm_fill(vm, params[i], byte, operands[p->operand].bytes) == PTXVM_OK;
    }
    const ptxvm_launch_config config = {.grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], 1},
                                        .block = {step->block, 1, 1},
                                        .shared_bytes = step->shared};
    return ok && ptxvm_module_load(vm, ptx, strlen(ptx), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, entry, &kernel) == PTXVM_OK &&
           ptxvm_launch(vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
}
