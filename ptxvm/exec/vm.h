/* A device's modules and kernels, shared by vm.c, decode.c, launch.c and report.c. */
#ifndef PTXVM_EXEC_VM_H
#define PTXVM_EXEC_VM_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory.h"

#define VM_STATIC_SHARED (UINT64_C(48) << 10) /* that a kernel may declare; more must be dynamic */

struct ptxvm_kernel {
    ptxvm_module *module;
    const pvm_function *function;
    vm_kernel *decoded;     /* null until its first launch */
    uint64_t static_shared; /* bytes of it and of all functions that it can call */
};

struct ptxvm_module {
    ptxvm *vm;
    pvm_module *ptx;
    uint64_t *address; /* of .global and .const variables, by index; 0 for the others */
    uint32_t stamp, *function_stamp, *var_stamp,
        *list_stamp;      /* what decode_reach.c has visited for the current kernel */
    struct vm_uses *uses; /* what each function refers to, by index: decode_reach.c */
    struct vm_pool *uses_pool;
    uint64_t const_bytes;             /* of its .const variables */
    uint64_t n_decoded;               /* instructions of all decoded kernels */
    uint64_t first_function;          /* number of its function 0 among all functions of the vm */
    ptxvm_kernel *kernels, **by_name; /* in the order of the text; sorted */
    int n_kernels;
    ptxvm_module *next;
};

/* Writes vm->error and returns status. */
ptxvm_status vm_error(ptxvm *vm, ptxvm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Decodes the kernel if that has not been done yet. */
ptxvm_status vm_kernel_ready(ptxvm_kernel *kernel);

/* Runs the launch to its end, and fills vm->reports. */
ptxvm_status vm_launch_run(vm_launch *launch);

/* The report of the last launch. */
typedef struct vm_reports {
    ptxvm_report report;
    ptxvm_site *sites; /* approx, then tensor */
    struct vm_pool *texts;
} vm_reports;

/* sites: one byte per op of the kernel, not 0 if it was executed and should be listed. */
ptxvm_status vm_report_fill(ptxvm *vm, const vm_kernel *kernel, const uint8_t *sites,
                            uint64_t warp_instructions, uint64_t thread_instructions);
void vm_report_clear(ptxvm *vm);
/* Finds the pairs of mul and add in a decoded kernel. Returns false if there is no memory left. */
bool vm_report_contractable(vm_kernel *kernel);

#endif
