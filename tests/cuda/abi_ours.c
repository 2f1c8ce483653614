#include "ptxvm/cuda/cuda_abi.h"

#define ABI_TABLE abi_ours
#include "abi_table.h"
