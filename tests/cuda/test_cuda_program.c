/* Programs written against cuda.h, linked with -lcuda, run unchanged (program/main.c). */
#include "support/process.h"
#include "test.h"

static void run(const char *path)
{
    process_result result = process_run("PTXVM_DEVICES=2 %s", path);
    if (!CHECK_EQ_I64(result.status, 0))
        FAIL("%s", result.output);
    CHECK_HAS(result.output, "0 failures");
    process_free(&result);
}

TEST_CASE(CudaProgram, AgainstCudaH)
{
    if (!QDNN_CUDA_PROGRAM[0])
        SKIP("no cuda.h was found when this was built");
    run(QDNN_CUDA_PROGRAM);
}

TEST_CASE(CudaProgram, WithTheThreadsOwnDefaultStream)
{
    if (!QDNN_CUDA_PROGRAM[0])
        SKIP("no cuda.h was found when this was built");
    run(QDNN_CUDA_PROGRAM "_per_thread");
}
