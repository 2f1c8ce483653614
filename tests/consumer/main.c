#include <qdnn/qdnn.h>
#include <stdio.h>

int main(void)
{
    float x[1024], y[1024];
    const int64_t dims[] = {8, 128};
    size_t codeBytes, scaleBytes;
    void *data = NULL, *codes = NULL, *scale = NULL; /* on the device */
    qdnnHandle_t h = NULL;                           /* a GPU, or ptxvm where there is none */
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL; /* INT4 in groups of 128, unless it is told otherwise */
    for (int i = 0; i < 1024; i++)
        x[i] = (float)(i % 16) / 10;
    if (qdnnCreate(&h) || qdnnCreateTensorDescriptor(&t) || qdnnCreateQuantDescriptor(&q) ||
        qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, dims, NULL) ||
        qdnnGetQuantizedSizes(q, t, &codeBytes, &scaleBytes, NULL) || qdnnMalloc(h, &data, sizeof x) ||
        qdnnMalloc(h, &codes, codeBytes) || qdnnMalloc(h, &scale, scaleBytes) ||
        qdnnCopyToDevice(h, data, x, sizeof x) || qdnnComputeScales(h, t, data, q, scale, NULL) ||
        qdnnQuantize(h, t, data, q, scale, NULL, codes) ||
        qdnnDequantize(h, q, codes, scale, NULL, t, data) || qdnnCopyToHost(h, y, data, sizeof y)) {
        char why[512];
        qdnnGetLastErrorString(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    printf("%zu bytes became %zu; %.3f came back as %.3f\n", sizeof x, codeBytes + scaleBytes, x[4], y[4]);
    qdnnFree(h, data), qdnnFree(h, codes), qdnnFree(h, scale);
    qdnnDestroyTensorDescriptor(t), qdnnDestroyQuantDescriptor(q);
    return qdnnDestroy(h) != QDNN_STATUS_SUCCESS;
}
