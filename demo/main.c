/* The demo: a matrix is quantized to 4 bits and back, on a GPU or on ptxvm; then a chain of products with
 * quantized weights runs as in a transformer. Every byte is compared with the host reference. `demo --side N`
 * uses an N x N matrix. */
#include "demo/demo.h"

#include <qdnn/qdnn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 4096, SIDE_MAX = 32768 };

/* clang-format off */
static const struct format {
    const char *name;
    qdnnDataType_t storage;
    int64_t group_size;
    const char *steps[3], *comparing;
} formats[] = {
    {"INT4 in groups of 128", QDNN_DATA_I4, 128,
     {"INT4: scales", "INT4: quantize", "INT4: dequantize"}, "INT4: comparing with host_ref"},
    {"NF4 in groups of 64", QDNN_DATA_NF4, 64,
     {"NF4: scales", "NF4: quantize", "NF4: dequantize"}, "NF4: comparing with host_ref"},
};
/* clang-format on */
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The buffers of all formats, on the host and on the device. */
typedef struct demo {
    int64_t side, n;
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    float *x, *y, *scale;
    uint8_t *codes;
    void *device_x, *device_y, *device_scale, *device_codes;
    comparison results[FORMATS];
} demo;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double mib(double bytes)
{
    return bytes / (1 << 20);
}

bool ok(qdnnStatus_t status)
{
    if (status == QDNN_STATUS_SUCCESS)
        return true;
    char why[512];
    qdnnGetLastErrorString(why, sizeof why);
    progress_clear();
    fprintf(stderr, "demo: %s: %s\n", qdnnGetErrorString(status), why);
    return false;
}

/* ---- One operation ---- */

static void print_counts(void)
{
    counts c;
    if (vm_counters_read(&c))
        printf(" %11.2f M %9.2f M %5.1f%%\n", (double)c.instructions * 1e-6, (double)c.sectors * 1e-6,
               100.0 * (double)c.least / (double)c.sectors);
    else
        printf("%13s %11s %6s\n", "-", "-", "-");
}

static bool execute(demo *d, qdnnPlan_t plan, const qdnnBinding_t *bindings, int count)
{
    void *workspace = NULL;
    size_t bytes = 0;
    qdnnPlanInfo_t info = {.size = sizeof info};
    if (!ok(qdnnGetPlanInfo(plan, &info)) || !ok(qdnnGetPlanWorkspaceSize(plan, &bytes)) ||
        !ok(qdnnMalloc(d->handle, &workspace, bytes)))
        return false;
    double start = seconds();
    bool done =
        ok(qdnnExecute(d->handle, plan, bindings, count, workspace, bytes)) && ok(qdnnSynchronize(d->handle));
    double ran = seconds() - start;
    progress_clear();
    if (done) {
        printf("  %-21s %6.0f us %6.0f us %8.1f ms", info.operation, info.emitSeconds * 1e6,
               info.loadSeconds * 1e6, ran * 1e3);
        print_counts();
    }
    return ok(qdnnFree(d->handle, workspace)) && done;
}

typedef qdnnStatus_t make_plan(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t, qdnnPlan_t *);

static bool run_operation(demo *d, const char *step, make_plan *make, const qdnnBinding_t *bindings,
                          int count)
{
    qdnnPlan_t plan;
    progress_step(step);
    if (!ok(make(d->handle, d->tensor, d->quant, &plan)))
        return false;
    bool done = execute(d, plan, bindings, count);
    return ok(qdnnDestroyPlan(plan)) && done;
}

static bool run_operations(demo *d, const struct format *f)
{
    const qdnnBinding_t x = {QDNN_OPERAND_X, d->device_x, 0}, y = {QDNN_OPERAND_Y, d->device_y, 0},
                        codes = {QDNN_OPERAND_CODES, d->device_codes, 0},
                        scale = {QDNN_OPERAND_SCALE, d->device_scale, 0};
    return run_operation(d, f->steps[0], qdnnCreateScalePlan, (qdnnBinding_t[]){x, scale}, 2) &&
           run_operation(d, f->steps[1], qdnnCreateQuantizePlan, (qdnnBinding_t[]){x, scale, codes}, 3) &&
           run_operation(d, f->steps[2], qdnnCreateDequantizePlan, (qdnnBinding_t[]){codes, scale, y}, 3);
}

/* ---- One format ---- */

static bool print_comparison(const comparison *c, int64_t n, size_t scale_bytes, size_t code_bytes)
{
    bool same = !c->scales && !c->codes && !c->values;
    if (same)
        printf("  Every byte equals host_ref's: %zu of scales, %zu of codes, %lld of values.\n", scale_bytes,
               code_bytes, (long long)n * 4);
    else
        printf("  BYTES DIFFER from host_ref's: %lld of scales, %lld of codes, %lld of values.\n",
               (long long)c->scales, (long long)c->codes, (long long)c->values);
    printf("  Error against the original: RMS %.5f, largest %.5f; signal to noise %.2f dB.\n\n",
           sqrt(c->squared_error / (double)n), c->largest_error, 10 * log10(c->squared / c->squared_error));
    return same;
}

static bool fetch_and_compare(demo *d, const struct format *f, size_t scale_bytes, size_t code_bytes,
                              comparison *result)
{
    if (!ok(qdnnCopyToHost(d->handle, d->scale, d->device_scale, scale_bytes)) ||
        !ok(qdnnCopyToHost(d->handle, d->codes, d->device_codes, code_bytes)) ||
        !ok(qdnnCopyToHost(d->handle, d->y, d->device_y, (size_t)d->n * sizeof(float))))
        return false;
    progress_step(f->comparing);
    quantized q = {.spec = {.data = QDNN_DATA_F32,
                            .storage = f->storage,
                            .group_size = f->group_size,
                            .floor = REF_DEFAULT_FLOOR},
                   .n = d->n,
                   .x = d->x,
                   .y = d->y,
                   .scale = d->scale,
                   .codes = d->codes};
    bool done = compare(&q, result);
    progress_clear();
    if (!done)
        fprintf(stderr, "demo: out of memory\n");
    return done && print_comparison(result, d->n, scale_bytes, code_bytes);
}

static bool run_format(demo *d, const struct format *f, comparison *result)
{
    size_t scale_bytes, code_bytes;
    double before = (double)d->n * sizeof(float);
    if (!ok(qdnnSetQuantDescriptor(d->quant, f->storage, QDNN_GRANULARITY_GROUP, f->group_size)) ||
        !ok(qdnnGetQuantizedSizes(d->quant, d->tensor, &code_bytes, &scale_bytes, NULL)))
        return false;
    printf("%s: %.2f MiB become %.2f of codes and %.2f of scales, %.2f bits per value\n", f->name,
           mib(before), mib((double)code_bytes), mib((double)scale_bytes),
           (double)(code_bytes + scale_bytes) * 8 / (double)d->n);
    printf("  %-21s %9s %9s %11s %13s %11s %6s\n", "operation", "emitted", "loaded", "ran", "instructions",
           "sectors", "used");
    return run_operations(d, f) && fetch_and_compare(d, f, scale_bytes, code_bytes, result);
}

/* ---- The histogram ---- */

enum { BAR = 30 };

static void print_bar(double share, double largest, bool last)
{
    int length = (int)(BAR * share / largest + 0.5);
    printf("  %4.1f%% %.*s", share * 100, length, "##############################");
    printf("%*s", last ? 0 : BAR - length, "");
}

static void print_bars(const demo *d)
{
    double largest = 0;
    for (int f = 0; f < FORMATS; f++)
        for (int i = 0; i < BINS; i++)
            largest = fmax(largest, (double)d->results[f].bins[i] / (double)d->n);
    printf("How large the errors are\n  %-14s%-*s%s\n", "", BAR + 8, formats[0].name, formats[1].name);
    for (int i = 0; i < BINS; i++) {
        printf("  %.2f ", i * (double)BIN_WIDTH);
        printf(i < BINS - 1 ? "to %.2f" : "or more", (i + 1) * (double)BIN_WIDTH);
        for (int f = 0; f < FORMATS; f++)
            print_bar((double)d->results[f].bins[i] / (double)d->n, largest, f == FORMATS - 1);
        printf("\n");
    }
}

/* ---- The matrix ---- */

void fill_bell(float *x, int64_t n, uint32_t seed, float size)
{
    for (int64_t i = 0; i < n; i++) {
        int sum = 0;
        for (int k = 0; k < 6; k++) {
            seed = seed * 1664525u + 1013904223u;
            sum += (int)(seed >> 16) - 0x8000;
        }
        x[i] = (float)sum * 0x1p-17f * size;
    }
}

static bool print_device(const demo *d)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    if (!ok(qdnnGetDeviceInfo(d->handle, &info)))
        return false;
    progress_clear();
    printf("Device: %s%s, compute capability %d.%d, CUDA %d.%d; kernels are written for %s\n", info.name,
           info.kind == QDNN_DEVICE_GPU ? ", a GPU" : "", info.smMajor, info.smMinor,
           info.driverVersion / 1000, info.driverVersion % 1000 / 10, info.target);
    printf("Matrix: %lld x %lld f32, %.2f MiB, bell-shaped like weights, from a fixed seed\n\n",
           (long long)d->side, (long long)d->side, mib((double)d->n * sizeof(float)));
    printf("%s\n\n",
           info.kind == QDNN_DEVICE_GPU
               ? "Counters: not available on a GPU; QDNN_DEVICE=vm provides them."
               : "Counters of ptxvm: warp instructions, 32-byte sectors of memory that they touch, and "
                 "how much of these is used.");
    return true;
}

/* Sizes for the smallest groups are enough for all formats. */
static bool make_buffers(demo *d)
{
    size_t n = (size_t)d->n, groups = (n + 63) / 64;
    d->x = malloc(n * sizeof(float));
    d->y = malloc(n * sizeof(float));
    d->scale = malloc(groups * sizeof(float));
    d->codes = malloc((n + 1) / 2);
    if (!d->x || !d->y || !d->scale || !d->codes) {
        fprintf(stderr, "demo: out of memory\n");
        return false;
    }
    progress_step("making a matrix");
    fill_bell(d->x, d->n, 1, 1);
    progress_step("copying it to the device");
    return ok(qdnnMalloc(d->handle, &d->device_x, n * sizeof(float))) &&
           ok(qdnnMalloc(d->handle, &d->device_y, n * sizeof(float))) &&
           ok(qdnnMalloc(d->handle, &d->device_scale, groups * sizeof(float))) &&
           ok(qdnnMalloc(d->handle, &d->device_codes, (n + 1) / 2)) &&
           ok(qdnnCopyToDevice(d->handle, d->device_x, d->x, n * sizeof(float))) &&
           ok(qdnnCreateTensorDescriptor(&d->tensor)) && ok(qdnnCreateQuantDescriptor(&d->quant)) &&
           ok(qdnnSetTensorDescriptor(d->tensor, QDNN_DATA_F32, 2, (int64_t[]){d->side, d->side}, NULL));
}

static bool run(demo *d)
{
    if (!make_buffers(d) || !print_device(d))
        return false;
    for (int i = 0; i < FORMATS; i++)
        if (!run_format(d, &formats[i], &d->results[i]))
            return false;
    print_bars(d);
    return true;
}

static bool run_and_clean_up(int64_t side)
{
    demo d = {.side = side, .n = side * side};
    progress_begin(2 + 4 * FORMATS);
    if (!ok(qdnnCreate(&d.handle)))
        return false;
    bool done = run(&d);
    void *device[] = {d.device_x, d.device_y, d.device_scale, d.device_codes};
    for (int i = 0; i < 4; i++)
        qdnnFree(d.handle, device[i]);
    qdnnDestroyTensorDescriptor(d.tensor);
    qdnnDestroyQuantDescriptor(d.quant);
    done = ok(qdnnDestroy(d.handle)) && done;
    free(d.x);
    free(d.y);
    free(d.scale);
    free(d.codes);
    return done;
}

int main(int argc, char **argv)
{
    bool with_side = argc == 3 && strcmp(argv[1], "--side") == 0;
    char *end = "";
    long side = with_side ? strtol(argv[2], &end, 10) : SIDE;
    if ((argc != 1 && !with_side) || *end || side < 1 || side > SIDE_MAX) {
        fprintf(stderr, "usage: demo [--side N]   with N from 1 to %d\n", SIDE_MAX);
        return 2;
    }
    printf("A matrix is quantized and dequantized in several formats, a chain of products is run, and one "
           "kernel is\n"
           "shown for two SMs; every byte is compared with the reference.\n\n");
    vm_counters_open();
    bool done = run_and_clean_up(side) && show_chain() && show_two_sms();
    vm_counters_close();
    return done ? 0 : 1;
}
