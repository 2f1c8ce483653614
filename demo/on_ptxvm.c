/* The kernels at work without a GPU: a matrix is quantized and brought back by the emitted PTX, run on ptxvm,
 * and every byte is compared with the host reference. */
#include "demo/demo.h"

#include "host_ref/host_ref.h"
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 2048, N = SIDE * SIDE, GROUP = 128, GROUPS = N / GROUP };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void progress(const char *what)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%s", what, *what ? " ..." : "");
}

typedef struct work {
    ptxvm *vm;
    ref_quant_spec ref;
    float *x, *y, *expected_y, *scale, *expected_scale;
    uint8_t *codes, *expected_codes;
    ptxvm_address device_x, device_scale, device_codes, device_y;
} work;

static bool fail(const work *w, const char *what)
{
    fprintf(stderr, "demo: %s: %s\n", what, ptxvm_last_error(w->vm));
    return false;
}

/* Emits, loads and launches one kernel with default settings; says what each step took. */
static bool run_kernel(work *w, const char *name, const ptxvm_address *pointers, int count)
{
    const kernel_row *row = kernel_find(name);
    kernel_spec spec = kernel_spec_default();
    kernel_text text;
    ptx_error error;
    char entry[64];
    progress(name);
    double start = seconds();
    if (!kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &text, &error)) {
        fprintf(stderr, "demo: %s\n", error.text);
        return false;
    }
    double emitted = seconds();
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    kernel_entry_name(row, entry, sizeof entry);
    bool ok = ptxvm_module_load(w->vm, text.ptx, strlen(text.ptx), &module) == PTXVM_OK;
    free(text.ptx);
    if (!ok || ptxvm_module_kernel(module, entry, &kernel) != PTXVM_OK)
        return fail(w, name);
    double loaded = seconds();
    uint64_t params[4] = {0};
    memcpy(params, pointers, (size_t)count * sizeof *pointers);
    params[count] = N;
    ptxvm_launch_config config = {.grid = {(uint32_t)(N / text.geometry.elements_per_block), 1, 1},
                                  .block = {text.geometry.block, 1, 1}};
    ok = ptxvm_launch(w->vm, kernel, &config, params, (uint64_t)(count + 1) * 8) == PTXVM_OK;
    double done = seconds();
    const ptxvm_report *report = ptxvm_last_report(w->vm);
    progress("");
    if (ok)
        printf(
            "  %-18s emitted in %4.0f us, loaded in %5.0f us, ran %5.1f M thread-instructions in %4.0f ms\n",
            name, (emitted - start) * 1e6, (loaded - emitted) * 1e6,
            (double)report->thread_instructions * 1e-6, (done - loaded) * 1e3);
    ptxvm_module_unload(module);
    return ok || fail(w, name);
}

static bool compare(const char *what, const void *actual, const void *expected, size_t bytes)
{
    bool same = memcmp(actual, expected, bytes) == 0;
    printf("    %-8s %9zu bytes: %s\n", what, bytes,
           same ? "every byte equals host_ref" : "DIFFER from host_ref");
    return same;
}

static void print_error(const work *w)
{
    double squared = 0, reference = 0;
    for (int i = 0; i < N; i++) {
        double difference = (double)w->y[i] - (double)w->x[i];
        squared += difference * difference;
        reference += (double)w->x[i] * (double)w->x[i];
    }
    printf("    root mean square error %.5f, signal to noise %.1f dB, %zu bytes become %zu\n",
           sqrt(squared / N), 10 * log10(reference / squared), (size_t)N * sizeof(float),
           (size_t)N / 2 + GROUPS * sizeof(float));
}

static bool run_format(work *w, const char *format, qdnnFormat_t tag)
{
    char name[32];
    w->ref = (ref_quant_spec){.format = tag,
                              .data = QDNN_DATA_F32,
                              .scale = QDNN_DATA_F32,
                              .zero = QDNN_DATA_U8,
                              .group_size = GROUP,
                              .floor = REF_DEFAULT_FLOOR};
    snprintf(name, sizeof name, "scale_%s", format);
    if (!run_kernel(w, name, (ptxvm_address[]){w->device_x, w->device_scale}, 2))
        return false;
    snprintf(name, sizeof name, "quantize_%s", format);
    if (!run_kernel(w, name, (ptxvm_address[]){w->device_x, w->device_scale, w->device_codes}, 3))
        return false;
    snprintf(name, sizeof name, "dequantize_%s", format);
    if (!run_kernel(w, name, (ptxvm_address[]){w->device_codes, w->device_scale, w->device_y}, 3))
        return false;
    ptxvm_read(w->vm, w->scale, w->device_scale, GROUPS * sizeof(float));
    ptxvm_read(w->vm, w->codes, w->device_codes, N / 2);
    ptxvm_read(w->vm, w->y, w->device_y, N * sizeof(float));
    progress("comparing with the host reference");
    ref_scale(&w->ref, w->x, N, w->expected_scale, NULL);
    ref_quantize(&w->ref, w->x, N, w->expected_scale, NULL, w->expected_codes);
    ref_dequantize(&w->ref, w->expected_codes, N, w->expected_scale, NULL, w->expected_y);
    progress("");
    bool same = compare("scales", w->scale, w->expected_scale, GROUPS * sizeof(float));
    same = compare("codes", w->codes, w->expected_codes, N / 2) && same;
    same = compare("values", w->y, w->expected_y, N * sizeof(float)) && same;
    print_error(w);
    return same;
}

/* Bell-shaped values from a fixed seed: like weights. */
static void fill(float *x)
{
    uint32_t state = 1;
    for (int i = 0; i < N; i++) {
        int sum = 0;
        for (int k = 0; k < 6; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (int)(state >> 16) - 0x8000;
        }
        x[i] = (float)sum * 0x1p-17f;
    }
}

static bool run(work *w)
{
    bool ok = ptxvm_alloc(w->vm, N * sizeof(float), &w->device_x) == PTXVM_OK &&
              ptxvm_alloc(w->vm, GROUPS * sizeof(float), &w->device_scale) == PTXVM_OK &&
              ptxvm_alloc(w->vm, N / 2, &w->device_codes) == PTXVM_OK &&
              ptxvm_alloc(w->vm, N * sizeof(float), &w->device_y) == PTXVM_OK;
    if (!ok)
        return fail(w, "device memory");
    fill(w->x);
    ptxvm_write(w->vm, w->device_x, w->x, N * sizeof(float));
    return run_format(w, "int4", QDNN_FORMAT_INT4) && run_format(w, "nf4", QDNN_FORMAT_NF4);
}

bool show_on_ptxvm(void)
{
    printf("\nThe same kernels run without a GPU: a %d x %d f32 matrix in groups of %d, on ptxvm acting as "
           "sm_90\n\n",
           SIDE, SIDE, GROUP);
    work w = {0};
    float *floats = malloc((3 * (size_t)N + 2 * GROUPS) * sizeof(float));
    uint8_t *bytes = malloc(N);
    bool ok = floats && bytes && ptxvm_create(&(ptxvm_config){.sm = "sm_90"}, &w.vm) == PTXVM_OK;
    if (ok) {
        w.x = floats, w.y = floats + N, w.expected_y = floats + 2 * (size_t)N;
        w.scale = floats + 3 * (size_t)N, w.expected_scale = w.scale + GROUPS;
        w.codes = bytes, w.expected_codes = bytes + N / 2;
        ok = run(&w);
        ptxvm_destroy(w.vm);
    } else {
        fprintf(stderr, "demo: out of memory\n");
    }
    free(floats);
    free(bytes);
    return ok;
}
