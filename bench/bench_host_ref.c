/* The speed of the plain C references: the time that a parity test takes in addition to the kernel itself. */
#include "bench/bench.h"

#include "host_ref/host_ref.h"
#include "kernels/kernels.h"

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
    bench_report(name, N / bench_best(work, j, 0.05) * 1e-6, "Melem/s", "f32, groups of 128, one thread");
}

/* The formats of the registry. */
static ref_quant_spec spec_of(const format_facts *f)
{
    return (ref_quant_spec){.data = QDNN_DATA_F32,
                            .storage = f->storage,
                            .bits = f->bits <= 8 ? (int)f->bits : 0,
                            .code = f->code,
                            .block = f->block,
                            .zero_kind = f->zero_kind,
                            .zero = f->zero_kind == QDNN_ZERO_MINIMUM ? QDNN_DATA_F32
                                    : f->bits == 8                    ? QDNN_DATA_I32
                                                                      : QDNN_DATA_U8,
                            .group_size = 128,
                            .floor = REF_DEFAULT_FLOOR};
}

static bool has(kernel_operation operation, const format_facts *f)
{
    const format_row *format = kernel_find_format(f->storage, f->bits, f->zero_kind, f->code, f->block);
    return format && kernel_find_operation(operation, format);
}

void bench_host_ref(void)
{
    job j = {.x = malloc(N * sizeof(float)),
             .arrays = {.scale = malloc(N / 128 * sizeof(float)),
                        .zero = calloc(N / 128, sizeof(float)),
                        .codes = calloc(N, sizeof(float))}};
    const ref_arrays *a = &j.arrays;
    for (int i = 0; j.x && a->scale && a->zero && a->codes && kernel_format_at(i); i++) {
        const format_facts *f = kernel_format_at(i);
        j.spec = spec_of(f);
        for (int k = 0; k < N; k++)
            j.x[k] = (float)((k * 2654435761u >> 8) % 2001) * 0.01f - 10.0f;
        if (has(KERNEL_SCALE, f))
            measure("scale", f->name, scale, &j);
        if (has(KERNEL_QUANTIZE, f))
            measure("quantize", f->name, quantize, &j);
        measure("dequantize", f->name, dequantize, &j);
    }
    free(j.x), free(a->scale), free(a->zero), free(a->codes);
}
