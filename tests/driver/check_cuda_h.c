/* Our declarations against the toolkit's, where there is one that has all the names. */
#ifdef QDNN_CUDA_HEADERS
#include <cuda.h>
#if CUDA_VERSION >= 13000
#include <stddef.h>
#define THEIRS(name) name
#include "against.h"
#endif
#endif
typedef int not_empty;
