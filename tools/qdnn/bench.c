/* Benchmarks products with the file's own layers: counters on ptxvm, times on a GPU. Layers of the same
 * format and shape cost the same, so one of each is measured. */
#include "tools/qdnn/modelled.h"
#include "tools/qdnn/output.h"

#include <stdlib.h>
#include <string.h>

#include "tools/counters.h"

enum { ROWS_MAX = 16, REPEATS = 20, ROUNDS = 5 };

/* Layers of the same format and shape. */
typedef struct kind {
    qdnnFileWeight_t weight; /* the first of them */
    int count;
} kind;

typedef struct result {
    const kind *kind;
    int64_t m;
    bool counted; /* on ptxvm; else timed */
    counts counts;
    double seconds;
} result;

/* Modelled times of the whole file with so many rows, in microseconds. */
typedef struct total {
    double us[CLOCK_CORNERS], plain_us[CLOCK_CORNERS];
    int layers, refused;
} total;

typedef struct scene {
    qdnnHandle_t handle;
    tensor w;
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, y;
    qdnnPlan_t plan;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int n_bindings;
    void *workspace;
    size_t workspace_bytes;
    qdnnStatus_t status; /* of the first call that failed; no more calls are made after it */
} scene;

#define TRY(s, call)                                                                                         \
    do {                                                                                                     \
        if ((s)->status == QDNN_STATUS_SUCCESS)                                                              \
            (s)->status = (call);                                                                            \
    } while (0)

/* ---- one product ---- */

static void describe(scene *s, int64_t m)
{
    bool turned = s->w.how.transposed;
    int64_t n = turned ? s->w.columns : s->w.rows, k = turned ? s->w.rows : s->w.columns;
    TRY(s, qdnnCreateMatmulDescriptor(&s->matmul));
    TRY(s, qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT));
    TRY(s, qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_TRANSPOSE_W, !turned));
    TRY(s, qdnnCreateTensorDescriptor(&s->x));
    TRY(s, qdnnCreateTensorDescriptor(&s->y));
    TRY(s, qdnnSetTensorDescriptor(s->x, QDNN_DATA_F16, 2, (const int64_t[]){m, k}, NULL));
    TRY(s, qdnnSetTensorDescriptor(s->y, QDNN_DATA_F16, 2, (const int64_t[]){m, n}, NULL));
    TRY(s, qdnnCreateMatmulPlan(s->handle, s->matmul, s->x, s->w.plain, s->w.quant, s->y, &s->plan));
    TRY(s, qdnnGetPlanWorkspaceSize(s->plan, &s->workspace_bytes));
    if (s->workspace_bytes)
        TRY(s, qdnnMalloc(s->handle, &s->workspace, s->workspace_bytes));
}

/* Filled with zeros if no bytes are given: the contents of x do not affect the cost. */
static void bind(scene *s, qdnnOperand_t operand, const void *host, size_t bytes)
{
    void *memory = NULL;
    if (bytes == 0)
        return;
    TRY(s, qdnnMalloc(s->handle, &memory, bytes));
    if (host)
        TRY(s, qdnnCopyToDevice(s->handle, memory, host, bytes));
    else
        TRY(s, qdnnFill(s->handle, memory, 0, bytes));
    s->bindings[s->n_bindings++] = (qdnnBinding_t){operand, memory, bytes};
}

static void scene_open(scene *s, int64_t m)
{
    size_t outputs = (size_t)(s->w.how.transposed ? s->w.columns : s->w.rows),
           inputs = (size_t)(s->w.how.transposed ? s->w.rows : s->w.columns);
    describe(s, m);
    bind(s, QDNN_OPERAND_X, NULL, 2 * (size_t)m * inputs);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET; i++)
        bind(s, (qdnnOperand_t)i, s->w.host[i], s->w.bytes[i]);
    bind(s, QDNN_OPERAND_Y, NULL, 2 * (size_t)m * outputs);
}

static void scene_close(scene *s)
{
    for (int i = 0; i < s->n_bindings; i++)
        qdnnFree(s->handle, (void *)(uintptr_t)s->bindings[i].pointer);
    qdnnFree(s->handle, s->workspace);
    qdnnDestroyPlan(s->plan);
    qdnnDestroyMatmulDescriptor(s->matmul);
    qdnnDestroyTensorDescriptor(s->x);
    qdnnDestroyTensorDescriptor(s->y);
}

static void execute(scene *s, int times)
{
    for (int i = 0; i < times; i++)
        TRY(s, qdnnExecute(s->handle, s->plan, s->bindings, s->n_bindings, s->workspace, s->workspace_bytes));
    TRY(s, qdnnSynchronize(s->handle));
}

/* The first execute is counted on ptxvm, and serves as warm-up on a GPU. */
static void measure(scene *s, result *r)
{
    counts before;
    vm_counters_read(&before);
    execute(s, 1);
    r->counted = vm_counters_read(&r->counts);
    for (int round = 0; !r->counted && round < ROUNDS && !s->status; round++) {
        double begin = seconds_now();
        execute(s, REPEATS);
        double seconds = (seconds_now() - begin) / REPEATS;
        r->seconds = round == 0 || seconds < r->seconds ? seconds : r->seconds;
    }
}

static int measure_kind(device *d, const kind *k, int64_t m, result *r)
{
    scene s = {.handle = d->handle};
    int status = tensor_open(&s.w, &k->weight);
    *r = (result){.kind = k, .m = m};
    if (status != TOOL_OK)
        return status;
    scene_open(&s, m);
    measure(&s, r);
    if (s.status)
        status = fail_status(k->weight.name, s.status);
    scene_close(&s);
    tensor_close(&s.w);
    return status;
}

/* ---- the layers ---- */

/* A matrix, not a vector. Embedding tables are included, since names do not distinguish them. */
static bool is_layer(const qdnnFileWeight_t *w)
{
    return !w->problem && w->rank == 2 && w->dims[0] > 1 && w->dims[1] > 1;
}

static int add_layer(kind *kinds, int n, const qdnnFileWeight_t *w)
{
    for (int i = 0; i < n; i++)
        if (strcmp(kinds[i].weight.format, w->format) == 0 &&
            memcmp(kinds[i].weight.dims, w->dims, sizeof w->dims) == 0) {
            kinds[i].count++;
            return n;
        }
    kinds[n] = (kind){*w, 1};
    return n + 1;
}

static int list_kinds(qdnnFile_t file, const options *o, kind **kinds, int *n)
{
    qdnnFileInfo_t info;
    int status = TOOL_OK;
    qdnnGetFileInfo(file, &info);
    *kinds = tool_alloc((size_t)info.weights * sizeof **kinds);
    for (int i = 0; *kinds && i < info.weights && status == TOOL_OK; i++) {
        qdnnFileWeight_t w;
        bool wanted = true;
        qdnnGetFileWeight(file, i, &w);
        if (o->only)
            status = regex_matches(o->only, w.name, &wanted);
        if (status == TOOL_OK && wanted && is_layer(&w))
            *n = add_layer(*kinds, *n, &w);
    }
    if (status == TOOL_OK && *kinds && *n == 0)
        return tool_fail("%s has no matrices%s", o->in, o->only ? " whose name matches --only" : "");
    return *kinds ? status : TOOL_FAILED;
}

/* ---- output ---- */

static void sizes_of(const result *r, double *weights, double *flops)
{
    *weights = (double)r->kind->weight.dims[0] * (double)r->kind->weight.dims[1];
    *flops = 2 * *weights * (double)r->m;
}

static void print_result(const result *r)
{
    const qdnnFileWeight_t *w = &r->kind->weight;
    double weights, flops;
    char shape[48];
    sizes_of(r, &weights, &flops);
    snprintf(shape, sizeof shape, "[%lld, %lld]", (long long)w->dims[0], (long long)w->dims[1]);
    tool_print("  %-28s %-18s %6d %6lld", w->format, shape, r->kind->count, (long long)r->m);
    if (r->counted)
        printf(" %16llu %12.3f %14llu %12.2f\n", r->counts.instructions,
               (double)r->counts.instructions * 32 / (weights * (double)r->m), r->counts.sectors,
               r->counts.least ? (double)r->counts.sectors / (double)r->counts.least : 0);
    else
        printf(" %12.2f %12.1f %12.3f\n", r->seconds * 1e6, (double)w->bytes / r->seconds * 1e-9,
               flops / r->seconds * 1e-12);
}

static void print_title(bool counted)
{
    printf("  %-28s %-18s %6s %6s", "format", "weight", "layers", "rows");
    if (counted)
        printf(" %16s %12s %14s %12s\n", "instructions", "per multiply", "sectors", "of the least");
    else
        printf(" %12s %12s %12s\n", "us", "GB/s", "TFLOP/s");
}

static void json_result(tool_text *out, const result *r, bool first)
{
    const qdnnFileWeight_t *w = &r->kind->weight;
    tool_printf(out, "%s\n    {\"format\": ", first ? "" : ",");
    tool_quote(out, w->format);
    tool_printf(out, ", \"shape\": [%lld, %lld], \"layers\": %d, \"rows\": %lld, \"bytes\": %llu",
                (long long)w->dims[0], (long long)w->dims[1], r->kind->count, (long long)r->m,
                (unsigned long long)w->bytes);
    if (r->counted)
        tool_printf(out, ", \"instructions\": %llu, \"sectors\": %llu, \"least_sectors\": %llu}",
                    r->counts.instructions, r->counts.sectors, r->counts.least);
    else
        tool_printf(out, ", \"seconds\": %.9g}", r->seconds);
}

/* ---- modelled times ---- */

static void print_modelled_title(const board *on)
{
    printf("modelled for %s: nothing runs on a GPU (docs/clock.md)\n", on->title);
    printf("  %-28s %-18s %6s %6s %21s %9s %21s\n", "format", "weight", "layers", "rows", "us", "% of DRAM",
           "us with plain f16");
}

static void print_modelled(const kind *k, int64_t m, const modelled *t)
{
    const qdnnFileWeight_t *w = &k->weight;
    char shape[48];
    snprintf(shape, sizeof shape, "[%lld, %lld]", (long long)w->dims[0], (long long)w->dims[1]);
    tool_print("  %-28s %-18s %6d %6lld ", w->format, shape, k->count, (long long)m);
    if (t->refused[0])
        tool_print("not modelled: %s\n", t->refused);
    else
        printf("%10.1f-%-10.1f %4.0f-%-4.0f %10.1f-%-10.1f\n", t->us[CLOCK_LOW], t->us[CLOCK_HIGH],
               100 * t->roofline_us / t->us[CLOCK_HIGH], 100 * t->roofline_us / t->us[CLOCK_LOW],
               t->plain_us[CLOCK_LOW], t->plain_us[CLOCK_HIGH]);
    fflush(stdout);
}

static void json_modelled(tool_text *out, const kind *k, int64_t m, const modelled *t, bool first)
{
    const qdnnFileWeight_t *w = &k->weight;
    tool_printf(out, "%s\n    {\"format\": ", first ? "" : ",");
    tool_quote(out, w->format);
    tool_printf(out, ", \"shape\": [%lld, %lld], \"layers\": %d, \"rows\": %lld, \"modelled\": ",
                (long long)w->dims[0], (long long)w->dims[1], k->count, (long long)m);
    if (t->refused[0]) {
        tool_printf(out, "false, \"why\": ");
        tool_quote(out, t->refused);
        tool_printf(out, "}");
        return;
    }
    tool_printf(out,
                "true, \"us_low\": %.3f, \"us_high\": %.3f, \"roofline_us\": %.3f, \"plain_us_low\": %.3f, "
                "\"plain_us_high\": %.3f, \"launches\": %d}",
                t->us[CLOCK_LOW], t->us[CLOCK_HIGH], t->roofline_us, t->plain_us[CLOCK_LOW],
                t->plain_us[CLOCK_HIGH], t->launches);
}

static void add_modelled(total *sum, const kind *k, const modelled *t)
{
    sum->layers += k->count;
    sum->refused += t->refused[0] ? k->count : 0;
    for (int c = 0; c < CLOCK_CORNERS && !t->refused[0]; c++) {
        sum->us[c] += k->count * t->us[c];
        sum->plain_us[c] += k->count * t->plain_us[c];
    }
}

/* One step of a model is one product with each of its matrices; what is between the products is not counted. */
static void print_total(const total *sum, int64_t m)
{
    const double tokens = 1e6 * (double)m;
    if (sum->refused == sum->layers)
        return;
    printf(
        "  rows %lld: %.0f to %.0f tokens per second, modelled; with plain f16 %.0f to %.0f; products alone",
        (long long)m, tokens / sum->us[CLOCK_HIGH], tokens / sum->us[CLOCK_LOW],
        tokens / sum->plain_us[CLOCK_HIGH], tokens / sum->plain_us[CLOCK_LOW]);
    if (sum->refused)
        printf(", without %d of %d layers", sum->refused, sum->layers);
    printf("\n");
}

static int model_all(const options *o, const int64_t *rows, int n_rows, const kind *kinds, int n,
                     tool_text *json)
{
    bool text = !o->json || strcmp(o->json, "-") != 0, first = true;
    if (text)
        print_modelled_title(o->gpu);
    for (int k = 0; k < n_rows; k++) {
        total sum = {0};
        progress p = progress_begin((uint64_t)n);
        for (int i = 0; i < n; i++) {
            modelled t;
            progress_step(&p, 1, kinds[i].weight.name);
            int status = modelled_of(&kinds[i].weight, rows[k], o->gpu, &t);
            progress_end(&p);
            if (status != TOOL_OK)
                return status;
            if (text)
                print_modelled(&kinds[i], rows[k], &t);
            json_modelled(json, &kinds[i], rows[k], &t, first);
            add_modelled(&sum, &kinds[i], &t);
            first = false;
        }
        if (text)
            print_total(&sum, rows[k]);
    }
    return TOOL_OK;
}

/* ---- the command ---- */

/* "1,16" */
static int parse_rows(const char *text, int64_t *rows, int *n)
{
    char part[24], *end;
    *n = 0;
    while (tool_next_part(&text, part, sizeof part)) {
        long long value = strtoll(part, &end, 10);
        if (value < 1 || value > 1 << 20 || *end || *n == ROWS_MAX)
            return tool_usage_error("--rows takes up to %d numbers from 1 to %d with commas, not '%s'",
                                    ROWS_MAX, 1 << 20, part);
        rows[(*n)++] = value;
    }
    return TOOL_OK;
}

static int measure_all(const options *o, device *d, const int64_t *rows, int n_rows, const kind *kinds, int n,
                       tool_text *json)
{
    int status = TOOL_OK;
    bool text = !o->json || strcmp(o->json, "-") != 0, first = true;
    for (int i = 0; i < n && status == TOOL_OK; i++)
        for (int k = 0; k < n_rows && status == TOOL_OK; k++) {
            result r;
            status = measure_kind(d, &kinds[i], rows[k], &r);
            if (status != TOOL_OK)
                break;
            if (text && first)
                print_title(r.counted);
            if (text)
                print_result(&r);
            json_result(json, &r, first);
            first = false;
        }
    return status;
}

int command_bench(const options *o)
{
    qdnnFile_t file;
    device d = {0};
    kind *kinds = NULL;
    tool_text json = {0};
    int64_t rows[ROWS_MAX];
    int n = 0, n_rows, status = open_file(o->in, &file);
    if (status != TOOL_OK)
        return status;
    vm_counters_open();
    status = output_check_json(o, file);
    if (status == TOOL_OK)
        status = list_kinds(file, o, &kinds, &n);
    if (status == TOOL_OK)
        status = parse_rows(o->rows ? o->rows : "1,16", rows, &n_rows);
    if (status == TOOL_OK)
        status = o->gpu ? modelled_begin() : device_open(&d, o->device);
    tool_printf(&json, "{\n  \"file\": ");
    tool_quote(&json, o->in);
    if (o->gpu)
        tool_printf(&json, ",\n  \"gpu\": \"%s\"", o->gpu->name);
    tool_printf(&json, ",\n  \"products\": [");
    if (status == TOOL_OK)
        status = o->gpu ? model_all(o, rows, n_rows, kinds, n, &json)
                        : measure_all(o, &d, rows, n_rows, kinds, n, &json);
    tool_printf(&json, "\n  ]\n}\n");
    if (status == TOOL_OK && o->json)
        status = tool_write(o->json, &json);
    tool_text_free(&json);
    device_close(&d);
    vm_counters_close();
    qdnnCloseFile(file);
    free(kinds);
    return status;
}
