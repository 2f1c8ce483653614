/* Compiling the CUDA C programs of the cross tests (see nvrtc.h). */
#include "nvrtc.h"

#include "driver/cuda/nvrtc.h"
#include "tools/toolkit.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t in_at(uint32_t i)
{
    uint32_t x = (i + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return x ^ x >> 13;
}

bool cuda_available(void)
{
    return nvrtc_found() && QDNN_CUDA_INCLUDE[0];
}

char *cuda_compile(const char *file, int sm, const char *extra)
{
    char path[1024], arch[64], *source = NULL, *header = NULL, *ptx = NULL;
    snprintf(path, sizeof path, "%s/tests/cross/cuda/%s.cu", QDNN_SOURCE_DIR, file);
    source = toolkit_read_file(path, NULL);
    header = toolkit_read_file(QDNN_SOURCE_DIR "/tests/cross/cuda/common.cuh", NULL);
    snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", sm);
    const char *options[] = {arch, "--include-path=" QDNN_CUDA_INCLUDE,
                             "--include-path=" QDNN_CUDA_INCLUDE "/cccl", "--diag-suppress=20054", extra};
    nvrtc_header headers[] = {{"common.cuh", header}};
    nvrtc_result result = {0};
    if (!source || !header)
        FAIL("%s is missing", path);
    else if (nvrtc_compile(source, headers, 1, options, extra ? 5 : 4, &result) == QDNN_STATUS_SUCCESS)
        ptx = result.data;
    else
        FAIL("%s: %s", file, result.log ? result.log : "NVRTC failed");
    if (ptx)
        result.data = NULL;
    nvrtc_free(&result);
    free(source);
    free(header);
    return ptx;
}
