/* The part of the CUDA driver API that qdnn uses, declared here so that no toolkit is needed to build, and
 * the table through which all of qdnn calls it. The table is filled from libcuda.so.1 or from ptxvm
 * (driver/cuda/open.h); tests and benchmarks may fill one of their own. A driver may lack functions that are newer than
 * the oldest one that we support: they are null then. */
#ifndef QDNN_DRIVER_CUDA_H
#define QDNN_DRIVER_CUDA_H

#include <stddef.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

/* Enumerations of cuda.h, which have the size of an int. A CUresult of 0 is success;
 * driver/cuda/cuda_errors.def lists the others. */
typedef int CUresult;
typedef int CUdevice_attribute, CUfunction_attribute, CUjit_option, CUpointer_attribute,
    CUstreamCaptureStatus, CUstreamCaptureMode;
enum {
#define NUMBER(name, value) name = value,
#include "driver/cuda/cuda.def"
#undef NUMBER
};

/* What cuLaunchKernelEx takes; of the attributes' values only those that are used. tests/driver compares the layout. */
typedef struct CUlaunchAttribute {
    int id;
    union {
        char all[64];
        int programmaticStreamSerializationAllowed;
        unsigned long long align;
    } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

/* Named like cuda.h's macros: api->cuMemAlloc is the symbol cuMemAlloc_v2. */
typedef struct cuda_api {
#define FUNCTION(name, suffix, since, params) CUresult(*name) params;
#include "driver/cuda/cuda.def"
#undef FUNCTION
} cuda_api;

#endif
