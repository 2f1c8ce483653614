/* Launches one step of an operation on the device under test. */
#include "device/step_launch.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

bool step_launch(machine *vm, const kernel_step *step, const ptxvm_address *at, ptxvm_address workspace)
{
    machine_module *module = NULL;
    machine_kernel *kernel = NULL;
    kernel_text text;
    ptx_error error;
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find(machine_sm(vm)), NULL, &text, &error)) {
        FAIL("%s", error.text);
        return false;
    }
    uint8_t block[KERNEL_PARAMS_MAX * 8];
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        params[i] = p->kind == KERNEL_OPERAND     ? at[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? workspace + p->value
                                                  : p->value;
        memcpy(block + text.info.params[i].offset, &params[i], text.info.params[i].size);
    }
    const ptx_param_info *last = &text.info.params[step->n_params - 1];
    const ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    bool ok = machine_module_load(vm, text.ptx, strlen(text.ptx), &module) == PTXVM_OK &&
              machine_module_kernel(module, entry, &kernel) == PTXVM_OK &&
              machine_launch(vm, kernel, &config, block, last->offset + last->size) == PTXVM_OK;
    int findings = 0;
    const ptxvm_finding *found =
        ok && machine_ptxvm(vm) ? ptxvm_findings(machine_ptxvm(vm), &findings, NULL) : NULL;
    if (!ok || findings)
        FAIL("%s", ok ? found[0].message : machine_last_error(vm));
    if (module)
        machine_module_unload(module);
    free(text.ptx);
    return ok;
}
