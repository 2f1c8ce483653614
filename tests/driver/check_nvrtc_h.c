/* Our declarations of NVRTC against the toolkit's, where they are found. */
#if defined(QDNN_CUDA_HEADERS) && __has_include(<nvrtc.h>)
#include <nvrtc.h>

#define FUNCTION(field, symbol, params)                                                                      \
    _Static_assert(__builtin_types_compatible_p(nvrtcResult params, __typeof__(symbol)),                     \
                   #symbol " is declared otherwise");
#include "driver/cuda/nvrtc.def"
_Static_assert(sizeof(nvrtcResult) == sizeof(int), "an enumeration is as wide as an int");
#endif
typedef int not_empty;
