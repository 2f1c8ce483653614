/* How fast the plain C references are: what a parity test waits for beside the kernel itself. */
#include "bench/bench.h"

#include "host_ref/host_ref.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20 };

typedef struct job {
    ref_quant_spec spec;
    float *x, *scale;
    uint8_t *zero, *codes;
} job;

static void scale(void *argument)
{
    job *j = argument;
    ref_scale(&j->spec, j->x, N, j->scale, j->zero);
}

static void quantize(void *argument)
{
    job *j = argument;
    ref_quantize(&j->spec, j->x, N, j->scale, j->zero, j->codes);
}

static void dequantize(void *argument)
{
    job *j = argument;
    ref_dequantize(&j->spec, j->codes, N, j->scale, j->zero, j->x);
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
    static const char *const names[] = {"int4", "int4_zp", "nf4"};
    job j = {.x = malloc(N * sizeof(float)),
             .scale = malloc(N / 128 * sizeof(float)),
             .zero = malloc(N / 128),
             .codes = malloc(N / 2)};
    for (int format = QDNN_FORMAT_INT4; j.x && j.scale && j.zero && j.codes && format <= QDNN_FORMAT_NF4;
         format++) {
        j.spec = (ref_quant_spec){.format = (qdnnFormat_t)format,
                                  .data = QDNN_DATA_F32,
                                  .scale = QDNN_DATA_F32,
                                  .zero = QDNN_DATA_U8,
                                  .group_size = 128,
                                  .floor = REF_DEFAULT_FLOOR};
        for (int i = 0; i < N; i++)
            j.x[i] = (float)((i * 2654435761u >> 8) % 2001) * 0.01f - 10.0f;
        measure("scale", names[format], scale, &j);
        measure("quantize", names[format], quantize, &j);
        measure("dequantize", names[format], dequantize, &j);
    }
    free(j.x), free(j.scale), free(j.zero), free(j.codes);
}
