/* How fast the plain C references are: what a parity test waits for beside the kernel itself. */
#include "bench/bench.h"

#include "host_ref/host_ref.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20 };

typedef struct job {
    ref_quant_spec spec;
    float *x;
    ref_arrays arrays;
} job;

static void scale(void *argument)
{
    job *j = argument;
    ref_scale(&j->spec, 1, N, j->x, &j->arrays);
}

static void quantize(void *argument)
{
    job *j = argument;
    ref_quantize(&j->spec, 1, N, j->x, &j->arrays);
}

static void dequantize(void *argument)
{
    job *j = argument;
    ref_dequantize(&j->spec, 1, N, &j->arrays, j->x);
}

static void measure(const char *operation, const char *format, void (*work)(void *), job *j)
{
    char name[64];
    snprintf(name, sizeof name, "host_ref.%s_%s.melem_per_s", operation, format);
    bench_progress("measuring %s", name);
    bench_report(name, N / bench_best(work, j, 0.2) * 1e-6, "Melem/s", "f32, groups of 128, one thread");
}

void bench_host_ref(void)
{
    static const struct {
        const char *name;
        qdnnDataType_t storage;
        qdnnZeroKind_t zero_kind;
    } formats[] = {{"int4", QDNN_DATA_I4, QDNN_ZERO_NONE},
                   {"int4_zp", QDNN_DATA_I4, QDNN_ZERO_POINT},
                   {"nf4", QDNN_DATA_NF4, QDNN_ZERO_NONE},
                   {"int8", QDNN_DATA_I8, QDNN_ZERO_NONE},
                   {"e4m3", QDNN_DATA_F8E4M3, QDNN_ZERO_NONE}};
    job j = {
        .x = malloc(N * sizeof(float)),
        .arrays = {.scale = malloc(N / 128 * sizeof(float)), .zero = malloc(N / 128), .codes = malloc(N)}};
    const ref_arrays *a = &j.arrays;
    for (size_t f = 0; j.x && a->scale && a->zero && a->codes && f < sizeof formats / sizeof formats[0];
         f++) {
        j.spec = (ref_quant_spec){.data = QDNN_DATA_F32,
                                  .storage = formats[f].storage,
                                  .zero_kind = formats[f].zero_kind,
                                  .zero = QDNN_DATA_U8,
                                  .group_size = 128,
                                  .floor = REF_DEFAULT_FLOOR};
        for (int i = 0; i < N; i++)
            j.x[i] = (float)((i * 2654435761u >> 8) % 2001) * 0.01f - 10.0f;
        measure("scale", formats[f].name, scale, &j);
        measure("quantize", formats[f].name, quantize, &j);
        measure("dequantize", formats[f].name, dequantize, &j);
    }
    free(j.x), free(a->scale), free(a->zero), free(a->codes);
}
