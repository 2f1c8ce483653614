/* A user's program checks a kernel of its own: by host_ref, and on ptxvm as a library. */
#include <qdnn/host_ref.h>
#include <qdnn/ptxvm.h>

#include <stdio.h>

int main(void)
{
    const float x[3] = {1, 2, 3}, w[3] = {4, 5, 6};
    printf("%g, %d\n", ref_exact_sum(x, w, 3), ptxvm_status_cuda(PTXVM_ERROR_MISALIGNED));
    return 0;
}
