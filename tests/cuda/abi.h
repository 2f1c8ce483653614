#ifndef TEST_CUDA_ABI_H
#define TEST_CUDA_ABI_H

typedef struct abi_fact {
    const char *name;
    long long value;
} abi_fact;
/* Ended by a null name. */
extern const abi_fact abi_ours[], abi_cuda_h[];

#endif
