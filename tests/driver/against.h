/* Every row of driver/cuda/cuda.def and driver/cuda/cuda_errors.def against another's declarations, when this is
 * compiled: the includer has declared them under the type names of cuda.h, and THEIRS(name) is a function's
 * name there. */
#define FUNCTION(name, suffix, since, params)                                                                \
    _Static_assert(__builtin_types_compatible_p(CUresult params, __typeof__(THEIRS(name##suffix))),          \
                   #name #suffix " is declared otherwise");
#define NUMBER(name, value) _Static_assert(name == value, #name " is another number");
#include "driver/cuda/cuda.def"
#undef FUNCTION
#undef NUMBER

#define ERROR(code, name, status, advice)                                                                    \
    _Static_assert(CUDA_ERROR_##name == code, #name " is another number");
#include "driver/cuda/cuda_errors.def"
#undef ERROR

/* What we declare as int and unsigned long long. */
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice_attribute) == sizeof(int) &&
                   sizeof(CUjit_option) == sizeof(int) && sizeof(CUpointer_attribute) == sizeof(int) &&
                   sizeof(CUstreamCaptureStatus) == sizeof(int) && sizeof(CUstreamCaptureMode) == sizeof(int),
               "an enumeration is as wide as an int");
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long) &&
                   __builtin_types_compatible_p(CUdevice, int) &&
                   __builtin_types_compatible_p(CUcontext, struct CUctx_st *) &&
                   __builtin_types_compatible_p(CUmodule, struct CUmod_st *) &&
                   __builtin_types_compatible_p(CUfunction, struct CUfunc_st *) &&
                   __builtin_types_compatible_p(CUstream, struct CUstream_st *),
               "a type is another");

/* The layout that driver/cuda/cuda.h gives to what cuLaunchKernelEx takes. */
_Static_assert(offsetof(CUlaunchConfig, blockDimX) == 12 && offsetof(CUlaunchConfig, sharedMemBytes) == 24 &&
                   offsetof(CUlaunchConfig, hStream) == 32 && offsetof(CUlaunchConfig, attrs) == 40 &&
                   offsetof(CUlaunchConfig, numAttrs) == 48 && sizeof(CUlaunchConfig) == 56 &&
                   offsetof(CUlaunchAttribute, value) == 8 && sizeof(CUlaunchAttribute) == 72,
               "a launch is laid out otherwise");
