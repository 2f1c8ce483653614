/* Our declarations against ptxvm's functions. */
#include <stddef.h>

#include "ptxvm/cuda/cuda_abi.h"

#define F(base, v, since, needs, params, args)     CUresult ptxvm_##base##v params;
#define S(base, v, pt, since, needs, params, args) CUresult ptxvm_##base##v params;
#define U(base, v, since)
#define UP(base, v, pt, since)
#include "ptxvm/cuda/functions.def"

#define THEIRS(name) ptxvm_##name
#include "against.h"
