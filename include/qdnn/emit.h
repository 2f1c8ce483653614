/* Kernels as text, for programs that load them themselves. */
#ifndef QDNN_EMIT_H
#define QDNN_EMIT_H

#include <qdnn/qdnn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An emitted kernel and how it is launched: ceil(n / elementsPerBlock) blocks of blockThreads threads (none
 * for n = 0). */
typedef struct {
    char *ptx;                 /* a whole PTX module, zero-terminated; qdnnFreePtx frees it */
    char entry[64];            /* the name of its one kernel */
    uint32_t blockThreads;     /* threads per block, in x */
    uint64_t elementsPerBlock; /* elements of the tensor that a block covers */
} qdnnPtx_t;

/* Writes the PTX of a kernel for an SM.
 *   kernel    its name, "quantize_nf4", or that of its operation, "quant.nf4.quantize"; `ptxgen --list`
 *             prints them all
 *   sm        the target: "sm_90a", or "90a"
 *   settings  "key=value" strings ending with a null pointer, or null: all defaults; `ptxgen --list` prints
 *             them too
 *   out       receives the text; untouched unless the call succeeds
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_UNKNOWN_NAME for an unknown kernel, SM or setting;
 * _BAD_PARAM for a value that a setting does not take; _NOT_SUPPORTED_SM where the SM lacks an
 * instruction; _INTERNAL_ERROR_ALLOCATION_FAILED. The same call always gives the same bytes. Any thread. */
QDNN_API qdnnStatus_t qdnnEmitPtx(const char *kernel, const char *sm, const char *const *settings,
                                  qdnnPtx_t *out);

/* Frees what qdnnEmitPtx gave and clears the pointer. A null argument, or one freed before, is fine. */
QDNN_API void qdnnFreePtx(qdnnPtx_t *ptx);

#ifdef __cplusplus
}
#endif
#endif
