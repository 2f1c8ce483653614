/* ptxvm: runs PTX on the CPU, bit for bit as the ISA and the measured tensor cores have it. The whole C interface. */
#ifndef PTXVM_H
#define PTXVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PTXVM_OK = 0,
    PTXVM_ERROR_ARGUMENT,            /* a null or wrong argument */
    PTXVM_ERROR_MEMORY,              /* the host has no memory left, or the device's is used up */
    PTXVM_ERROR_PTX,                 /* the text is not valid PTX */
    PTXVM_ERROR_UNSUPPORTED_VERSION, /* its .version is later than ptxvm knows */
    PTXVM_ERROR_UNSUPPORTED,         /* valid PTX that ptxvm refuses by name */
    PTXVM_ERROR_TARGET,              /* its .target does not run on the SM that ptxvm acts as */
    PTXVM_ERROR_NOT_FOUND,           /* no kernel or global of that name */
    PTXVM_ERROR_LAUNCH_SIZE,         /* grid, block or shared memory beyond the limits, or against .reqntid */
    PTXVM_ERROR_ADDRESS,             /* an access outside every allocation */
    PTXVM_ERROR_MISALIGNED,
    PTXVM_ERROR_TRAP,
    PTXVM_ERROR_ASSERT,
    PTXVM_ERROR_STEP_LIMIT,
    PTXVM_ERROR_DEADLOCK,            /* no lane of a block can go on */
    PTXVM_ERROR_EXECUTION            /* anything else that ends a launch: stack overflow, bad indirect call ... */
} ptxvm_status;

/* .version of the PTX that is read, as 10 * major + minor. */
extern const int ptxvm_oldest_isa, ptxvm_newest_isa;

typedef struct ptxvm ptxvm;               /* a device: its memory and its settings */
typedef struct ptxvm_module ptxvm_module; /* PTX loaded onto it */
typedef struct ptxvm_kernel ptxvm_kernel; /* an .entry of a module */
typedef uint64_t ptxvm_address;           /* a device address; the same in every run */

typedef struct ptxvm_config {
    const char *sm;        /* "sm_90a"; null: sm_90a */
    int threads;           /* host threads for blocks; 0: one a core */
    uint64_t seed;         /* 0: blocks and warps in order; else they are shuffled by it */
    uint64_t step_limit;   /* warp instructions a block may take; 0: none */
    uint64_t memory_bytes; /* size of device memory; 0: 16 GiB (address space, not host memory) */
    uint64_t address_base; /* where global memory begins, a multiple of 2^32 from 2^33 on; 0: 2^33 */
    uint64_t stack_bytes;  /* local memory a thread may use (calls, alloca); 0: 512 KiB */
    void (*print)(void *user, const char *text, size_t length); /* the guest's printf; null: standard output */
    void *print_user;
} ptxvm_config;

/* One thread at a time may use a ptxvm. config may be null: all defaults. */
ptxvm_status ptxvm_create(const ptxvm_config *config, ptxvm **vm);
void ptxvm_destroy(ptxvm *vm);
/* What the last call that failed found wrong: a sentence, for PTX with line, column and the line itself. */
const char *ptxvm_last_error(const ptxvm *vm);
const char *ptxvm_status_name(ptxvm_status status);

ptxvm_status ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module);
void ptxvm_module_unload(ptxvm_module *module);
ptxvm_status ptxvm_module_kernel(ptxvm_module *module, const char *name, ptxvm_kernel **kernel);
ptxvm_status ptxvm_module_global(ptxvm_module *module, const char *name, ptxvm_address *address, uint64_t *bytes);
typedef struct ptxvm_module_info {
    int version;     /* its .version, as 10 * major + minor */
    char target[16]; /* "sm_90a" */
} ptxvm_module_info;
void ptxvm_module_get_info(const ptxvm_module *module, ptxvm_module_info *info);
int ptxvm_module_kernel_count(const ptxvm_module *module);
ptxvm_kernel *ptxvm_module_kernel_at(ptxvm_module *module, int index);

typedef struct ptxvm_kernel_info {
    const char *name;
    int n_params;
    uint64_t param_bytes;  /* of the whole parameter block */
    uint64_t static_shared_bytes, local_bytes, const_bytes;
    int max_threads;       /* a block, by .maxntid or the SM */
    int reqntid[3];        /* 0 where not required */
} ptxvm_kernel_info;
void ptxvm_kernel_get_info(const ptxvm_kernel *kernel, ptxvm_kernel_info *info);
bool ptxvm_kernel_param(const ptxvm_kernel *kernel, int index, uint64_t *offset, uint64_t *bytes);

typedef struct ptxvm_param_info {
    const char *name, *type; /* "n", "u32"; the type of one element */
    uint64_t offset, bytes, align;
    uint64_t elements; /* 1 but for arrays */
    bool is_pointer;   /* declared with .ptr */
} ptxvm_param_info;
/* False: there is no such parameter. */
bool ptxvm_kernel_get_param(const ptxvm_kernel *kernel, int index, ptxvm_param_info *info);

ptxvm_status ptxvm_alloc(ptxvm *vm, uint64_t bytes, ptxvm_address *address);
ptxvm_status ptxvm_free(ptxvm *vm, ptxvm_address address);
ptxvm_status ptxvm_write(ptxvm *vm, ptxvm_address to, const void *from, uint64_t bytes);
ptxvm_status ptxvm_read(ptxvm *vm, void *to, ptxvm_address from, uint64_t bytes);
ptxvm_status ptxvm_fill(ptxvm *vm, ptxvm_address to, uint8_t value, uint64_t bytes);
/* Between two devices, or within one; the ranges may overlap. */
ptxvm_status ptxvm_copy(ptxvm *to_vm, ptxvm_address to, ptxvm *from_vm, ptxvm_address from, uint64_t bytes);
/* Memory of the host, or of another device, that kernels reach at that address; it stays the caller's. */
ptxvm_status ptxvm_map(ptxvm *vm, ptxvm_address address, void *host, uint64_t bytes);
ptxvm_status ptxvm_unmap(ptxvm *vm, ptxvm_address address);
/* Where the host sees the bytes; null where no one allocation holds them. */
void *ptxvm_host(ptxvm *vm, ptxvm_address address, uint64_t bytes);
void ptxvm_memory_info(const ptxvm *vm, uint64_t *free_bytes, uint64_t *total_bytes);

typedef struct ptxvm_launch_config {
    uint32_t grid[3], block[3];
    uint64_t shared_bytes; /* dynamic */
    bool cooperative;
} ptxvm_launch_config;

/* A place that a report names: a line of the PTX, and of the source where .loc gives one. */
typedef struct ptxvm_site {
    const char *function;
    int line;
    const char *source_file; /* null where unknown */
    int source_line;
    const char *what; /* ".approx: ex2.approx.ftz.f32", "may be contracted to fma", "sm_120 e4m3 k32: published" */
} ptxvm_site;

/* What a launch did that a GPU might do otherwise, and how much it was. Owned by the vm, valid until its next launch. */
typedef struct ptxvm_report {
    uint64_t warp_instructions, thread_instructions;
    bool inexact;              /* an .approx or .full instruction was executed */
    const ptxvm_site *approx;  /* where */
    int n_approx;
    const ptxvm_site *contractable; /* bare mul and add (no rounding written) that the assembler may fuse; by the text */
    int n_contractable;
    const ptxvm_site *tensor;  /* tensor-core rows used that are not measured */
    int n_tensor;
} ptxvm_report;

/* Runs a kernel to its end. params: the parameter block as the kernel lays it out (ptxvm_kernel_param), null where it has none. */
ptxvm_status ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config, const void *params,
                          uint64_t param_bytes);
const ptxvm_report *ptxvm_last_report(const ptxvm *vm);

#ifdef __cplusplus
}
#endif
#endif
