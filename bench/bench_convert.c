/* Converts all 2^32 f32 values by cvt on ptxvm to the narrow formats, and compares with CUDA's own headers
 * where these can be used from C (fp8), and otherwise with a table of exact thresholds. 0 mismatches are
 * expected. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/sweep.h"
#include "ptxvm/ptxvm.h"

#ifdef QDNN_CUDA_HEADERS
#include <cuda_fp8.h>
#endif

enum { CHUNK = 1 << 22, ROUNDS = 16, THREADS = 256 };

/* Each thread converts ROUNDS pairs of neighbours; results are in the order of the inputs. */
#define KERNEL(convert, store, bytes)                                                                        \
    ".version 8.6\n.target sm_90\n.address_size 64\n"                                                        \
    ".visible .entry k(.param .u64 out, .param .u32 first)\n{\n"                                             \
    ".reg .pred p; .reg .b16 h0, h1; .reg .b32 r<12>; .reg .b64 d<4>; .reg .f32 f<2>;\n"                     \
    "ld.param.u64 d0, [out]; ld.param.u32 r0, [first]; mov.u32 r1, %tid.x; mov.u32 r2, %ctaid.x;\n"          \
    "mov.u32 r3, %nctaid.x; shl.b32 r3, r3, 8; mad.lo.u32 r4, r2, 256, r1;\n"                                \
    "mad.wide.u32 d0, r4, " bytes ", d0; mul.wide.u32 d1, r3, " bytes ";\n"                                  \
    "mad.lo.u32 r5, r4, 2, r0; shl.b32 r6, r3, 1; mov.u32 r7, 0;\n"                                          \
    "LOOP:\n"                                                                                                \
    "add.u32 r8, r5, 1; mov.b32 f0, r5; mov.b32 f1, r8;\n" convert "\n" store "\n"                           \
    "add.u32 r5, r5, r6; add.u64 d0, d0, d1; add.u32 r7, r7, 1; setp.lt.u32 p, r7, 16; @p bra LOOP;\n"       \
    "ret;\n}\n"
#define HALVES(type)                                                                                         \
    KERNEL("cvt.rn." type ".f32 h0, f0; cvt.rn." type ".f32 h1, f1;", "st.global.v2.b16 [d0], {h0, h1};", "4")
#define BYTES(type) KERNEL("cvt.rn.satfinite." type "x2.f32 h0, f1, f0;", "st.global.b16 [d0], h0;", "2")

/* A code has sign, exponent and mantissa, from the top; below it are `shift` zero bits (tf32). */
typedef struct format {
    const char *name, *text;
    int bytes, exponent, mantissa, bias, shift;
    uint32_t largest, nan; /* the largest code without sign; the bits of NaN */
    bool saturates, away;  /* values that are too large become the largest; ties are rounded away from zero */
    uint32_t (*header)(float x);
} format;

#ifdef QDNN_CUDA_HEADERS
static uint32_t header_e4m3(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

static uint32_t header_e5m2(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
}
#else
#define header_e4m3 NULL
#define header_e5m2 NULL
#endif

static const format formats[] = {
    {"f16", HALVES("f16"), 2, 5, 10, 15, 0, 0x7BFF, 0x7FFF, false, false, NULL},
    {"bf16", HALVES("bf16"), 2, 8, 7, 127, 0, 0x7F7F, 0x7FFF, false, false, NULL},
    {"e4m3", BYTES("e4m3"), 1, 4, 3, 7, 0, 0x7E, 0x7F, true, false, header_e4m3},
    {"e5m2", BYTES("e5m2"), 1, 5, 2, 15, 0, 0x7B, 0x7F, true, false, header_e5m2},
    {"tf32",
     KERNEL("cvt.rna.tf32.f32 r9, f0; cvt.rna.tf32.f32 r10, f1;", "st.global.v2.b32 [d0], {r9, r10};", "8"),
     4, 8, 10, 127, 13, 0x3FBFF, 0x7FFFFFFF, false, true, NULL},
};

/* ---- Expected results ---- */

static double value_of(const format *f, uint32_t code)
{
    int exponent = (int)(code >> f->mantissa), fraction = (int)(code & ((1u << f->mantissa) - 1));
    return exponent ? ldexp(fraction + (1 << f->mantissa), exponent - f->bias - f->mantissa)
                    : ldexp(fraction, 1 - f->bias - f->mantissa);
}

/* The bits of the least f32 that becomes this code: half way from the code below, which is exact in f32, or
 * the next f32 if a tie is rounded down to an even code. */
static uint32_t threshold(const format *f, uint32_t code)
{
    if (code == 0)
        return 0;
    float middle = (float)((value_of(f, code - 1) + value_of(f, code)) / 2);
    uint32_t bits;
    memcpy(&bits, &middle, 4);
    return bits + (code % 2 && !f->away);
}

/* starts[c] is where code c begins; the last entry is where NaN begins. If the format has an infinity, it is
 * the code after the largest. */
typedef struct steps {
    uint32_t *starts, n;
} steps;

static steps make_steps(const format *f)
{
    steps s = {.n = f->largest + (f->saturates ? 1 : 2)};
    s.starts = malloc((s.n + 1) * sizeof *s.starts);
    for (uint32_t code = 0; s.starts && code < s.n; code++)
        s.starts[code] = threshold(f, code);
    if (s.starts)
        s.starts[s.n] = 0x7F800001;
    return s;
}

static uint32_t code_at(const steps *s, uint32_t magnitude)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (s->starts[middle] <= magnitude)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

#define COUNT(type)                                                                                          \
    static uint64_t count_##type(const void *results, uint32_t n, uint32_t expected)                         \
    {                                                                                                        \
        const type *at = results;                                                                            \
        uint32_t wrong = 0;                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                                     \
            wrong += at[i] != (type)expected;                                                                \
        return wrong;                                                                                        \
    }
COUNT(uint8_t)
COUNT(uint16_t)
COUNT(uint32_t)

static uint64_t count_wrong(const format *f, const uint8_t *results, uint32_t n, uint32_t expected)
{
    return f->bytes == 1   ? count_uint8_t(results, n, expected)
           : f->bytes == 2 ? count_uint16_t(results, n, expected)
                           : count_uint32_t(results, n, expected);
}

/* Checks the inputs from `first` on, which have the same sign, one run of equal codes at a time. */
static uint64_t wrong_by_steps(const format *f, const steps *s, const uint8_t *results, uint32_t first)
{
    uint32_t magnitude = first & 0x7FFFFFFF, end = magnitude + CHUNK, code = code_at(s, magnitude);
    uint32_t sign = (first >> 31) << (f->exponent + f->mantissa);
    uint64_t wrong = 0;
    for (uint32_t at = magnitude; at < end; code++) {
        uint32_t stop = code < s->n && s->starts[code + 1] < end ? s->starts[code + 1] : end;
        uint32_t expected = code == s->n ? f->nan : (code | sign) << f->shift;
        wrong += count_wrong(f, results + (size_t)(at - magnitude) * (size_t)f->bytes, stop - at, expected);
        at = stop;
    }
    return wrong;
}

static uint64_t wrong_by_header(const format *f, const uint8_t *results, uint32_t first)
{
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        uint32_t bits = first + i;
        float x;
        memcpy(&x, &bits, 4);
        wrong += results[i] != f->header(x);
    }
    return wrong;
}

/* ---- All inputs ---- */

typedef struct job {
    const format *format;
    steps steps;
    uint64_t wrong;
} job;

typedef struct worker {
    const job *job;
    ptxvm *vm;
    ptxvm_kernel *kernel;
    ptxvm_address out;
    uint8_t *results;
    uint64_t wrong;
} worker;

static void free_worker(worker *w)
{
    ptxvm_destroy(w->vm);
    free(w->results);
    free(w);
}

static bool open_device(worker *w, const format *f)
{
    ptxvm_config config = {.sm = "sm_90", .threads = 1};
    ptxvm_module *module;
    return ptxvm_create(&config, &w->vm) == PTXVM_OK &&
           ptxvm_module_load(w->vm, f->text, strlen(f->text), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, "k", &w->kernel) == PTXVM_OK &&
           ptxvm_alloc(w->vm, (uint64_t)CHUNK * (uint64_t)f->bytes, &w->out) == PTXVM_OK;
}

static void *open_worker(void *argument)
{
    const job *j = argument;
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->job = j;
    w->results = malloc((size_t)CHUNK * (size_t)j->format->bytes);
    if (w->results && open_device(w, j->format))
        return w;
    free_worker(w);
    return NULL;
}

static bool run_chunk(void *argument, uint32_t chunk)
{
    worker *w = argument;
    const format *f = w->job->format;
    const uint32_t first = chunk * CHUNK;
    struct {
        ptxvm_address out;
        uint32_t first;
    } params = {w->out, first};
    ptxvm_launch_config config = {.grid = {CHUNK / 2 / ROUNDS / THREADS, 1, 1}, .block = {THREADS, 1, 1}};
    if (ptxvm_launch(w->vm, w->kernel, &config, &params, 12) != PTXVM_OK ||
        ptxvm_read(w->vm, w->results, w->out, (uint64_t)CHUNK * (uint64_t)f->bytes) != PTXVM_OK) {
        fprintf(stderr, "convert.%s: %s\n", f->name, ptxvm_last_error(w->vm));
        return false;
    }
    w->wrong += f->header ? wrong_by_header(f, w->results, first)
                          : wrong_by_steps(f, &w->job->steps, w->results, first);
    return true;
}

static void close_worker(void *argument, void *done)
{
    job *j = argument;
    worker *w = done;
    j->wrong += w->wrong;
    free_worker(w);
}

static void sweep_format(const format *f)
{
    job j = {.format = f, .steps = make_steps(f)};
    const sweep s = {.name = f->name,
                     .chunks = UINT32_MAX / CHUNK + 1,
                     .open = open_worker,
                     .step = run_chunk,
                     .close = close_worker,
                     .job = &j};
    char name[64];
    double start = bench_seconds();
    bool done = j.steps.starts && sweep_run(&s);
    double seconds = bench_seconds() - start;
    free(j.steps.starts);
    if (!done)
        return;
    snprintf(name, sizeof name, "convert.%s.mismatches", f->name);
    bench_report(name, (double)j.wrong, "of 2^32",
                 f->header ? "against CUDA's header" : "against exact thresholds");
    snprintf(name, sizeof name, "convert.%s.minputs_per_s", f->name);
    bench_report(name, 4294.967296 / seconds, "M/s", "cvt on ptxvm and its comparison, on two threads");
}

void bench_convert(void)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        sweep_format(&formats[i]);
}
