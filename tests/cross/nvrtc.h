/* CUDA C programs and their expected results. A program is a file of cuda/; each of its kernels is given n =
 * 4,096 words and a larger buffer for its results, and has an expectation in C. */
#ifndef QDNN_CROSS_NVRTC_H
#define QDNN_CROSS_NVRTC_H

#include "guest.h"

enum { IN_WORDS = 4096, OUT_WORDS = 4096 + 256 };

/* Word i of the input. */
uint32_t in_at(uint32_t i);

typedef struct cuda_case {
    const char *file, *kernel;
    guest_shape shape;
    uint32_t start;                /* what every word of the output holds before */
    void (*expect)(uint32_t *out); /* from what it holds before to what it should hold; out[OUT_WORDS] */
    int least_sm;                  /* the kernel is there from this SM on; 0: always */
    uint32_t sorted;               /* this many words are compared regardless of their order */
} cuda_case;

extern const cuda_case cuda_cases_warp[], cuda_cases_block[], cuda_cases_grid[], cuda_cases_async[],
    cuda_cases_numeric[], cuda_cases_language[], cuda_cases_matrix[];

/* The PTX of a program; extra may be null. Null, with a failure reported, when NVRTC cannot. */
char *cuda_compile(const char *file, int sm, const char *extra);
/* False, after a skip, where NVRTC or its headers are missing. */
bool cuda_available(void);

#endif
