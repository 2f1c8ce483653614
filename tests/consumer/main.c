#include <qdnn/emit.h>
#include <stdio.h>

int main(void)
{
    const char *settings[] = {"data=f16", "group_size=64", NULL};
    qdnnPtx_t kernel;
    if (qdnnEmitPtx("quantize_nf4", "sm_90", settings, &kernel) != QDNN_STATUS_SUCCESS) {
        char why[512];
        qdnnGetLastErrorString(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    unsigned long long n = 1000000;
    printf("%s<<<%llu, %u>>>\n%s", kernel.entry, (n + kernel.elementsPerBlock - 1) / kernel.elementsPerBlock,
           kernel.blockThreads, kernel.ptx);
    qdnnFreePtx(&kernel);
    return 0;
}
