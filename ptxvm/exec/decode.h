/* From a checked function to what runs: between decode*.c and cfg.c. */
#ifndef PTXVM_EXEC_DECODE_H
#define PTXVM_EXEC_DECODE_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/vm.h"

/* ---- decode_pool.c: memory that is given back all at once ---- */
typedef struct vm_pool vm_pool;
vm_pool *vm_pool_create(void);
void *vm_pool_alloc(vm_pool *pool, size_t bytes); /* zeroed, 64-byte aligned; null: no memory left */
char *vm_pool_format(vm_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vm_pool_destroy(vm_pool *pool);

/* ---- decode.c ---- */
/* Decodes an entry and all that it can call. Null, with vm->error and *status set, where that fails. */
vm_kernel *vm_kernel_decode(ptxvm_module *module, const pvm_function *function, ptxvm_status *status);
void vm_kernel_free(vm_kernel *kernel);
/* What an entry needs of memory, without decoding it; 0 where that cannot be known. */
void vm_kernel_measure(ptxvm_module *module, const pvm_function *function, uint64_t *shared_bytes,
                       uint64_t *local_bytes);

/* ---- decode_reach.c: what a kernel needs ---- */
/* Lists the functions that an entry can call, itself included, and lays out its shared memory. */
bool vm_reach(vm_kernel *kernel);
/* The function that a call of `function` runs; null: it has no body. */
const pvm_function *vm_find_body(const pvm_function *function);
/* Where a shared variable of the module lies in the kernel's shared memory. */
uint64_t vm_shared_offset(const vm_kernel *kernel, const pvm_var *var);

/* ---- decode_operand.c ---- */

/* A function being decoded. Until vm_decode_layout constants have slots -2 - offset, registers offsets from
 * 0. */
typedef struct vm_decoder {
    ptxvm_module *module;
    vm_kernel *kernel;
    vm_code *code;
    const pvm_function *function;
    vm_slot *reg_slot;
    uint64_t register_bytes;
    vm_slot local_base, trash, carry;         /* hidden registers: u64 lanes; anything; predicate */
    uint64_t inputs_at, returns_at, calls_at; /* in local memory, from local_base */
    int32_t *constant_table;                  /* hash of constants: offset + 1 */
    uint8_t *constant_width;
    uint64_t constant_capacity;
    uint32_t table_size, n_constants;
    struct vm_branch_table **tables; /* of the function's .branchtargets lists, by number */
    int op_capacity;
    bool failed; /* no memory left, or vm_decode_fail said why */
} vm_decoder;

/* Ends the decoding: the kernel's status, and vm->error. Returns false. */
bool vm_decode_fail(vm_decoder *decoder, ptxvm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int vm_type_width(pvm_type type); /* bytes a lane; 0 for a predicate */
uint64_t
vm_local_bytes(const pvm_function *function); /* local memory of an activation; 0: more than there is */
bool vm_decode_begin(vm_decoder *decoder);
void vm_decode_end(vm_decoder *decoder);
vm_op *vm_decode_new_op(vm_decoder *decoder, const pvm_inst *inst);
vm_slot vm_decode_constant(vm_decoder *decoder, uint64_t bits, uint64_t bits_hi, int width);
vm_slot vm_decode_temporary(vm_decoder *decoder, int width);
/* The operands of an instruction, vectors spread out. May emit ops before the one that it fills (special
 * registers and addresses in local memory as operands), so it returns the op anew. Null: no memory left. */
vm_op *vm_decode_operands(vm_decoder *decoder, const pvm_inst *inst);
vm_op *vm_decode_call_operands(vm_decoder *decoder, const pvm_inst *inst);
/* Where a variable is in the function's local memory, as an offset from local_base; false: it is elsewhere.
 */
bool vm_local_offset(const vm_decoder *decoder, const pvm_var *var, uint64_t *offset);
/* Slots become offsets in a frame. */
bool vm_decode_layout(vm_decoder *decoder);

/* ---- decode_mov.c ---- */
bool vm_decode_mov(vm_decoder *decoder, vm_op *op);
bool vm_decode_cvta(vm_op *op); /* false: not one that only copies */
vm_exec_fn vm_exec_local_address;

/* ---- cfg.c ---- */
/* Fills join, OPF_BACK_EDGE and OPF_SPIN of the branches. False: no memory left. */
bool vm_cfg(vm_code *code);
/* A load that looks for what others wrote: volatile, relaxed, acquire, or .cv. */
bool vm_ld_watches(const pvm_inst *inst);

/* Branch targets of brx.idx, in op->extra: one table for all that name the same list. */
typedef struct vm_branch_table {
    struct vm_branch_table *next; /* of the function */
    int n;
    int32_t lowest; /* of the targets */
    int node;       /* cfg.c's own */
    int32_t target[];
} vm_branch_table;

/* A call, in op->extra. */
typedef struct vm_call_site {
    const vm_code *callee; /* null: indirect */
    uint64_t *n_bytes;     /* size of each return value's, then each argument's variable; 0 for a register */
    uint64_t inputs_at, returns_at;
} vm_call_site;

/* Fragments of an mma, in op->extra: how many operands d, a, b, c and the scales are. */
typedef struct vm_tensor_site {
    tensor_op op;
    int n[5];
} vm_tensor_site;

#endif
