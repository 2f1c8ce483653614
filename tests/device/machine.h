/* The device under test without the library: for tests that launch the text of one kernel, or steps of their own choice.
 * The functions are ptxvm's; on a GPU they are calls of the driver, and a configuration's SM, seed and checks do not count. */
#ifndef QDNN_TEST_MACHINE_H
#define QDNN_TEST_MACHINE_H

#include "device/under_test.h"
#include "ptxvm/ptxvm.h"

typedef struct machine machine;
typedef struct machine_module machine_module;
typedef struct machine_kernel machine_kernel;

ptxvm_status machine_create(const ptxvm_config *config, machine **out);
void machine_destroy(machine *m); /* with its memory and modules; null does nothing */
const char *machine_last_error(const machine *m);

/* The SM that texts for it are emitted for. */
const char *machine_sm(const machine *m);
/* Its ptxvm, for counters, findings and reports; null: it is a GPU. */
ptxvm *machine_ptxvm(const machine *m);

ptxvm_status machine_alloc(machine *m, uint64_t bytes, ptxvm_address *address);
ptxvm_status machine_free(machine *m, ptxvm_address address);
ptxvm_status machine_write(machine *m, ptxvm_address to, const void *from, uint64_t bytes);
ptxvm_status machine_read(machine *m, void *to, ptxvm_address from, uint64_t bytes);
ptxvm_status machine_fill(machine *m, ptxvm_address to, uint8_t value, uint64_t bytes);

ptxvm_status machine_module_load(machine *m, const char *text, size_t length, machine_module **out);
void machine_module_unload(machine_module *module);
ptxvm_status machine_module_kernel(machine_module *module, const char *name, machine_kernel **out);
ptxvm_status machine_launch(machine *m, machine_kernel *kernel, const ptxvm_launch_config *config,
                            const void *params, uint64_t param_bytes);

#endif
