/* Kernels as PTX text: what qdnn would load for a call, for programs that load kernels themselves. */
#ifndef QDNN_EMIT_H
#define QDNN_EMIT_H

#include <qdnn/qdnn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An emitted kernel, and how a kernel on a flat tensor is launched: ceil(n / elementsPerBlock) blocks of blockThreads
 * threads (none for n = 0). Other grids are not a division of elements: elementsPerBlock is then 0, or the elements of
 * a block of a matrix. `ptxgen --emit json` gives the rules of every grid, and `ptxgen --emit launcher` C code that
 * computes it. */
typedef struct {
    char *ptx;                 /* a whole PTX module, zero-terminated; qdnnFreePtx frees it */
    char entry[64];            /* the name of its one kernel */
    uint32_t blockThreads;     /* threads per block, along x */
    uint64_t elementsPerBlock; /* tensor elements per block; 0: the grid is not a division of elements */
} qdnnPtx_t;

/* Writes the PTX of a kernel for an SM.
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

/* Frees the text from qdnnEmitPtx and clears the pointer. Does nothing for null or a kernel already freed. */
QDNN_API void qdnnFreePtx(qdnnPtx_t *ptx);

#ifdef __cplusplus
}
#endif
#endif
