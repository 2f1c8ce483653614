#include <qdnn/qdnn.h>
#include <stdio.h>

int main(void)
{
    float x[1024], y[1024];
    void *data, *codes, *scale; /* on the device: a GPU, or ptxvm where there is none */
    qdnnHandle_t h;
    qdnnTensorDescriptor_t t;
    qdnnQuantDescriptor_t q; /* INT4 in groups of 128, unless it is told otherwise */
    for (int i = 0; i < 1024; i++)
        x[i] = (float)(i % 16) / 10;
    if (qdnnCreate(&h) || qdnnCreateTensorDescriptor(&t) || qdnnCreateQuantDescriptor(&q) ||
        qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1024}, NULL) ||
        qdnnMalloc(h, &data, sizeof x) || qdnnMalloc(h, &codes, 512) || qdnnMalloc(h, &scale, 32) ||
        qdnnCopyToDevice(h, data, x, sizeof x) || qdnnComputeScales(h, t, data, q, scale, NULL) ||
        qdnnQuantize(h, t, data, q, scale, NULL, codes) ||
        qdnnDequantize(h, q, codes, scale, NULL, t, data) || qdnnCopyToHost(h, y, data, sizeof y))
        return 1; /* qdnnGetLastErrorString says why */
    printf("4096 bytes became 544; %.3f came back as %.3f\n", x[4], y[4]);
    return qdnnFree(h, data) || qdnnFree(h, codes) || qdnnFree(h, scale) || qdnnDestroyTensorDescriptor(t) ||
           qdnnDestroyQuantDescriptor(q) || qdnnDestroy(h);
}
