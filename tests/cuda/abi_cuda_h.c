/* What the toolkit's header says, where there is one. */
#ifdef QDNN_CUDA_HEADERS
#include <cuda.h>

#define CUdevprop                     CUdevprop_v1
#define CUDA_MEMSET_NODE_PARAMS       CUDA_MEMSET_NODE_PARAMS_v1
#define CUDA_HOST_NODE_PARAMS         CUDA_HOST_NODE_PARAMS_v1
#define CUDA_BATCH_MEM_OP_NODE_PARAMS CUDA_BATCH_MEM_OP_NODE_PARAMS_v1
#define CUDA_MEM_ALLOC_NODE_PARAMS    CUDA_MEM_ALLOC_NODE_PARAMS_v1
#define ABI_TABLE                     abi_cuda_h
#include "abi_table.h"
#else
#include "abi.h"

const abi_fact abi_cuda_h[] = {{0, 0}};
#endif
