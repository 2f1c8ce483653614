/* Kernels as PTX text: what qdnn would load for a call, for programs that load kernels themselves. */
#ifndef QDNN_EMIT_H
#define QDNN_EMIT_H

#include <qdnn/qdnn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An emitted kernel, and how a kernel on a flat tensor is launched: ceil(n / elementsPerBlock) blocks of blockThreads
 * threads (none for n = 0). Other grids are not a division of elements: elementsPerBlock is then 0, or the elements of
 * a block of a matrix; qdnnEmitOperation gives the grid of every kernel. */
typedef struct {
    char *ptx;                 /* a whole PTX module, zero-terminated; qdnnFreePtx frees it */
    char entry[64];            /* the name of its one kernel */
    uint32_t blockThreads;     /* threads per block, along x */
    uint64_t elementsPerBlock; /* tensor elements per block; 0: the grid is not a division of elements */
} qdnnPtx_t;

/* Writes the PTX of a kernel for an SM. An operation of several kernels (train.fake_quantize) has others before it:
 * qdnnEmitOperation gives all of them.
 *   kernel    its name, "quantize_nf4", or that of its operation, "quant.nf4.quantize"; `ptxgen --list`
 *             prints them all
 *   sm        the target: "sm_90a", or "90a"
 *   settings  "key=value" strings ending with a null pointer, or null: all defaults; `ptxgen --list` prints
 *             them too
 *   out       receives the text; unchanged unless the call succeeds
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME for an unknown kernel, SM or setting;
 * _BAD_PARAM for an invalid value of a setting; _NOT_SUPPORTED_SM if the SM lacks an instruction;
 * _INTERNAL_ERROR_ALLOCATION_FAILED. The same arguments always give the same bytes. Thread-safe. */
QDNN_API qdnnStatus_t qdnnEmitPtx(const char *kernel, const char *sm, const char *const *settings,
                                  qdnnPtx_t *out);

/* What a parameter of a launch is. */
typedef enum {
    QDNN_ARGUMENT_OPERAND,   /* the address of an operand */
    QDNN_ARGUMENT_WORKSPACE, /* an address in the workspace: `value` bytes from its beginning */
    QDNN_ARGUMENT_U64,       /* the number `value` */
    QDNN_ARGUMENT_F32        /* the f32 whose bits are `value`; it takes 4 bytes */
} qdnnArgumentKind_t;

typedef struct {
    qdnnArgumentKind_t kind;
    qdnnOperand_t operand; /* of OPERAND */
    uint64_t value;
} qdnnArgument_t;

/* One launch of an emitted operation. */
typedef struct {
    const char *ptx;   /* a whole PTX module, zero-terminated */
    const char *entry; /* the name of its one kernel */
    uint64_t grid[3];  /* blocks along x, y, z */
    /* the same as formulas, "min(ceil(m / 8), 65535)", in terms of the sizes and of this kernel's own numbers: `/` rounds
     * down, but up as the last step of ceil(...) */
    const char *gridRule[3];
    uint32_t blockThreads; /* threads per block, along x */
    uint32_t sharedBytes;  /* dynamic shared memory */
    int argumentCount;
    const qdnnArgument_t *arguments; /* in the order of the kernel's parameters */
} qdnnLaunch_t;

/* An operand that the caller binds. */
typedef struct {
    qdnnOperand_t operand;
    const char *name; /* "x" */
    int reads, writes;
    uint32_t align; /* of its address */
    uint64_t bytes;
} qdnnEmittedOperand_t;

/* An operation: its launches, to be made in this order on one stream. The library allocates it, and later versions may
 * add members at its end. */
typedef struct {
    const char *operation; /* its stable name, or the kernel's if that has none */
    uint64_t
        workspaceBytes; /* of device memory, aligned to 16 bytes, whose contents do not matter; 0: none is needed */
    int launchCount; /* 0: there is nothing to do */
    const qdnnLaunch_t *launches;
    int operandCount;
    const qdnnEmittedOperand_t *operands;
} qdnnEmitted_t;

/* Writes an operation for an SM and given sizes: every kernel that it takes, with its grid and its arguments.
 *   operation  its stable name, "train.fake_quantize", or a kernel's
 *   sm         the target: "sm_90a", or "90a"
 *   settings   "key=value" strings ending with a null pointer, or null: all defaults
 *   sizes      "key=value" strings ending with a null pointer: "m=64", "rows=4096", "columns=4096" (n of a flat tensor); docs/bundles.md
 *              lists them
 *   out        receives the operation, to be freed by qdnnFreeEmitted; unchanged unless the call succeeds
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME for an unknown name, SM, setting or size; _BAD_PARAM for
 * an invalid value; _NOT_SUPPORTED for settings or sizes that no kernel serves; _NOT_SUPPORTED_SM if the SM lacks an
 * instruction; _INTERNAL_ERROR_ALLOCATION_FAILED. The same arguments always give the same bytes. Thread-safe. */
QDNN_API qdnnStatus_t qdnnEmitOperation(const char *operation, const char *sm, const char *const *settings,
                                        const char *const *sizes, qdnnEmitted_t **out);

/* Frees what qdnnEmitOperation returned. Does nothing for null. */
QDNN_API void qdnnFreeEmitted(qdnnEmitted_t *emitted);

/* Frees the text from qdnnEmitPtx and clears the pointer. Does nothing for null or a kernel already freed. */
QDNN_API void qdnnFreePtx(qdnnPtx_t *ptx);

#ifdef __cplusplus
}
#endif
#endif
