/* From a checked function to executable ops: shared by decode*.c and cfg.c. */
#ifndef PTXVM_EXEC_DECODE_H
#define PTXVM_EXEC_DECODE_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/vm.h"

/* ---- decode_pool.c: memory that is freed all at once ---- */
typedef struct vm_pool vm_pool;
vm_pool *vm_pool_create(void);
void *vm_pool_alloc(vm_pool *pool, size_t bytes); /* zeroed, 64-byte aligned; null: no memory left */
char *vm_pool_format(vm_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vm_pool_destroy(vm_pool *pool);

/* ---- decode.c ---- */
/* Decodes an entry and all that it can call. Returns null, with vm->error and *status set, if that fails. */
vm_kernel *vm_kernel_decode(ptxvm_module *module, const pvm_function *function, ptxvm_status *status);
void vm_kernel_free(vm_kernel *kernel);

/* ---- decode_reach.c: what a kernel uses ---- */
/* Lists what each function of the module refers to. Returns false if there is no memory left. */
bool vm_uses_list(ptxvm_module *module);
/* Fills in static_shared of the module's kernels. An error if one has too much, or if they reach too much in all. */
ptxvm_status vm_kernels_measure(ptxvm_module *module);
/* Lists the functions that an entry can call, itself included, and lays out its shared memory. */
bool vm_reach(vm_kernel *kernel);
/* The function that a call of `function` runs; null: it has no body. */
const pvm_function *vm_find_body(const pvm_function *function);
/* The offset of a module's shared variable in the kernel's shared memory. */
uint64_t vm_shared_offset(const vm_kernel *kernel, const pvm_var *var);

/* ---- decode_operand.c ---- */

/* A function being decoded. Before vm_decode_layout, constants have slots -2 - offset, and registers have
 * offsets from 0. */
typedef struct vm_decoder {
    ptxvm_module *module;
    vm_kernel *kernel;
    vm_code *code;
    const pvm_function *function;
    vm_slot *reg_slot;
    uint64_t register_bytes;
    vm_slot local_base, trash, carry;         /* hidden registers: u64 lanes; scratch; predicate */
    uint64_t inputs_at, returns_at, calls_at; /* in local memory, from local_base */
    int32_t *constant_table;                  /* hash of constants: offset + 1 */
    uint8_t *constant_width;
    uint64_t constant_capacity;
    uint32_t table_size, n_constants;
    struct vm_branch_table **tables; /* of the function's .branchtargets lists, by number */
    int op_capacity;
    bool failed; /* no memory left, or vm_decode_fail recorded the reason */
} vm_decoder;

/* Fails the decoding: sets the kernel's status and vm->error. Returns false. */
bool vm_decode_fail(vm_decoder *decoder, ptxvm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int vm_type_width(pvm_type type);                      /* bytes per lane; 0 for a predicate */
uint64_t vm_local_bytes(const pvm_function *function); /* local memory of an activation; 0: too large */
bool vm_decode_begin(vm_decoder *decoder);
void vm_decode_end(vm_decoder *decoder);
vm_op *vm_decode_new_op(vm_decoder *decoder, const pvm_inst *inst);
vm_slot vm_decode_constant(vm_decoder *decoder, uint64_t bits, uint64_t bits_hi, int width);
vm_slot vm_decode_temporary(vm_decoder *decoder, int width);
/* Decodes the operands of an instruction, with vectors flattened. May emit ops before the one that it fills
 * (for special registers and addresses in local memory as operands), so it returns the op again. Null: no
 * memory left. */
vm_op *vm_decode_operands(vm_decoder *decoder, const pvm_inst *inst);
vm_op *vm_decode_call_operands(vm_decoder *decoder, const pvm_inst *inst);
/* The offset of a variable in the function's local memory, from local_base; false: it is elsewhere. */
bool vm_local_offset(const vm_decoder *decoder, const pvm_var *var, uint64_t *offset);
/* Converts slots to offsets in a frame. */
bool vm_decode_layout(vm_decoder *decoder);

/* ---- decode_mov.c ---- */
bool vm_decode_mov(vm_decoder *decoder, vm_op *op);
bool vm_decode_cvta(vm_op *op); /* false: it does more than copy */
vm_exec_fn vm_exec_local_address;

/* ---- cfg.c ---- */
/* Fills in join, OPF_BACK_EDGE and OPF_SPIN of the branches. Returns false if there is no memory left. */
bool vm_cfg(vm_code *code);
/* Whether a load looks for what others wrote: volatile, relaxed, acquire, or .cv. */
bool vm_ld_watches(const pvm_inst *inst);

/* The targets of brx.idx, in op->extra: one table for all instructions that use the same list. */
typedef struct vm_branch_table {
    struct vm_branch_table *next; /* of the function */
    int n;
    int32_t lowest; /* of the targets */
    int node;       /* private to cfg.c */
    int32_t target[];
} vm_branch_table;

/* A call, in op->extra. */
typedef struct vm_call_site {
    const vm_code *callee; /* null: indirect */
    uint64_t *n_bytes;     /* size of each return value's and argument's variable; 0 for a register */
    uint64_t inputs_at, returns_at;
} vm_call_site;

/* The fragments of an mma, in op->extra: how many operands d, a, b, c and the scales have. */
typedef struct vm_tensor_site {
    tensor_op op;
    int n[5];
} vm_tensor_site;

#endif
