/* Shared by quantize and convert: rewriting a file. */
#include "tools/qdnn/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

int rewrite_open(rewrite *r, const options *o)
{
    *r = (rewrite){.o = o, .out.file = -1};
    int status = open_file(o->in, &r->file);
    if (status != TOOL_OK)
        return status;
    qdnnGetFileInfo(r->file, &r->info);
    status = output_check_json(o, r->file);
    if (status == TOOL_OK)
        status = output_open(&r->out, o->out, r->file, o->in_place);
    if (status == TOOL_OK && r->info.kind == QDNN_FILE_SAFETENSORS)
        status = folder_open(&r->folder, o->in);
    r->jobs = status == TOOL_OK ? tool_alloc((size_t)r->info.weights * sizeof *r->jobs) : NULL;
    for (int i = 0; r->jobs && i < r->info.weights; i++)
        qdnnGetFileWeight(r->file, i, &r->jobs[i].from);
    return status == TOOL_OK && !r->jobs ? TOOL_FAILED : status;
}

void rewrite_close(rewrite *r)
{
    output_close(&r->out);
    folder_close(&r->folder);
    device_close(&r->device);
    qdnnCloseFile(r->file);
    for (int i = 0; r->jobs && i < r->info.weights; i++)
        free(r->jobs[i].reason);
    free(r->jobs);
}

int rewrite_rule(const rewrite *r, const char *name, type_choice *choice, bool *named)
{
    *named = false;
    for (int i = 0; i < r->o->n_rules && !*named; i++) {
        int status = regex_matches(r->o->rules[i].regex, name, named);
        if (status == TOOL_OK && *named)
            status = type_parse(r->o->rules[i].type, r->out.kind, choice);
        if (status != TOOL_OK)
            return status;
    }
    return TOOL_OK;
}

/* A rule that matches no name is a mistake in its expression. */
static int check_rule(const rewrite *r, const name_rule *rule)
{
    bool matches = false;
    int status = TOOL_OK;
    for (int i = 0; i < r->info.weights && status == TOOL_OK && !matches; i++)
        status = regex_matches(rule->regex, r->jobs[i].from.name, &matches);
    for (int i = 0; i < r->info.tensors && status == TOOL_OK && !matches; i++) {
        qdnnFileTensor_t t;
        qdnnGetFileTensor(r->file, i, &t);
        if (t.weight < 0)
            status = regex_matches(rule->regex, t.name, &matches);
    }
    if (status == TOOL_OK && !matches)
        return tool_fail("--tensor '%s=%s' matches no weight of %s (qdnn info lists them)", rule->regex,
                         rule->type, r->o->in);
    return status;
}

int rewrite_check_rules(const rewrite *r)
{
    int status = TOOL_OK;
    for (int i = 0; i < r->o->n_rules && status == TOOL_OK; i++)
        status = check_rule(r, &r->o->rules[i]);
    return status;
}

/* ---- values ---- */

void weight_shape(const qdnnFileWeight_t *w, int *rank, int64_t *dims)
{
    *rank = w->rank;
    memcpy(dims, w->dims, sizeof w->dims);
    if (w->transposed) {
        dims[0] = w->dims[1];
        dims[1] = w->dims[0];
    }
}

float *weight_turn(const qdnnFileWeight_t *w, float *values)
{
    if (!w->transposed || !values)
        return values;
    int64_t k = w->dims[0], n = w->dims[1];
    float *turned = tool_alloc((size_t)(k * n) * sizeof *turned);
    for (int64_t i = 0; turned && i < k; i++)
        for (int64_t j = 0; j < n; j++)
            turned[j * k + i] = values[i * n + j];
    free(values);
    return turned;
}

float *weight_values(const tensor *t)
{
    float *values = tool_alloc((size_t)(t->rows * t->columns) * sizeof *values);
    if (values)
        reference_dequantize(t, values);
    return weight_turn(&t->how, values);
}

bool is_plain(const tensor *t)
{
    return t->how.weights == QDNN_WEIGHTS_F32 || t->how.weights == QDNN_WEIGHTS_F16 ||
           t->how.weights == QDNN_WEIGHTS_BF16;
}

void round_plain(tensor *made, const float *x)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
    for (int64_t i = 0; i < made->rows * made->columns; i++)
        ref_scalar_store(types[made->how.weights], made->host[QDNN_OPERAND_CODES], i, x[i]);
}

/* Infinities and NaN are skipped, since their error has no meaning. */
figures measure(const float *x, const float *y, int64_t n)
{
    double error = 0, signal = 0, largest = 0;
    int64_t counted = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        double e = fabs((double)y[i] - (double)x[i]);
        error += e * e;
        signal += (double)x[i] * (double)x[i];
        largest = fmax(largest, e);
        counted++;
    }
    return (figures){.known = true,
                     .rms = counted ? sqrt(error / (double)counted) : 0,
                     .largest = largest,
                     .sqnr = error > 0 ? 10 * log10(signal / error) : INFINITY};
}

/* ---- planning ---- */

/* A tensor that is copied. */
static int add_copy(rewrite *r, const qdnnFileTensor_t *t, int *index)
{
    return output_add(&r->out, t->name, t->typeName, t->rank, t->dims, t->bytes, index);
}

static int add_job(rewrite *r, job *j)
{
    tensor t;
    int status = tensor_describe(&t, j->from.name, &j->to);
    if (status == TOOL_OK) {
        int before = r->out.n_tensors;
        status = type_add(&r->out, j->choice, &t, &j->first);
        for (int i = before; i < r->out.n_tensors; i++)
            j->bytes += r->out.tensors[i].bytes;
    }
    tensor_close(&t);
    return status;
}

/* In the order of the source; *copies receives, for each of its tensors, the number of its copy, or -1. */
static int list_tensors(rewrite *r, int *copies)
{
    int status = TOOL_OK;
    for (int i = 0; i < r->info.tensors && status == TOOL_OK; i++) {
        qdnnFileTensor_t t;
        type_choice rule = {0};
        bool named;
        qdnnGetFileTensor(r->file, i, &t);
        job *j = t.weight >= 0 ? &r->jobs[t.weight] : NULL;
        copies[i] = -1;
        if (!j)
            status = rewrite_rule(r, t.name, &rule, &named);
        if (status != TOOL_OK || rule.drop || (j && j->choice.drop))
            continue;
        if (j && j->choice.type) {
            if (j->from.operand[0].tensor == i)
                status = add_job(r, j);
            continue;
        }
        status = add_copy(r, &t, &copies[i]);
        if (j)
            j->bytes += t.bytes;
    }
    return status;
}

/* ---- writing ---- */

static int write_copies(rewrite *r, const int *copies, progress *p)
{
    int status = TOOL_OK;
    for (int i = 0; i < r->info.tensors && status == TOOL_OK; i++) {
        qdnnFileTensor_t t;
        if (copies[i] < 0)
            continue;
        qdnnGetFileTensor(r->file, i, &t);
        status = output_put(&r->out, copies[i], t.data);
        progress_step(p, t.bytes, t.name);
    }
    return status;
}

static int write_jobs(rewrite *r, progress *p)
{
    int status = TOOL_OK;
    for (int i = 0; i < r->info.weights && status == TOOL_OK; i++) {
        job *j = &r->jobs[i];
        tensor made = {0};
        if (!j->choice.type)
            continue;
        progress_step(p, 0, j->from.name);
        status = r->make(r, j, &made);
        if (status == TOOL_OK)
            status = type_put(&r->out, j->choice, &made, j->first);
        tensor_close(&made);
        progress_step(p, j->from.bytes, j->from.name);
    }
    return status;
}

static uint64_t work_bytes(const rewrite *r, const int *copies)
{
    uint64_t sum = 0;
    for (int i = 0; i < r->info.tensors; i++) {
        qdnnFileTensor_t t;
        if (copies[i] >= 0 && !qdnnGetFileTensor(r->file, i, &t))
            sum += t.bytes;
    }
    for (int i = 0; i < r->info.weights; i++)
        sum += r->jobs[i].choice.type ? r->jobs[i].from.bytes : 0;
    return sum;
}

static int write_file(rewrite *r, const int *copies)
{
    progress p = progress_begin(work_bytes(r, copies));
    int status = output_begin(&r->out);
    if (status == TOOL_OK)
        status = write_copies(r, copies, &p);
    if (status == TOOL_OK)
        status = write_jobs(r, &p);
    if (status == TOOL_OK)
        status = output_check(&r->out);
    if (status == TOOL_OK && r->out.is_folder)
        status = folder_write(&r->folder, &r->out);
    if (status == TOOL_OK)
        status = output_finish(&r->out);
    progress_end(&p);
    return status;
}

/* ---- reporting ---- */

static const char *result_name(const job *j, char text[48])
{
    if (j->choice.drop || !j->choice.type)
        return j->choice.drop ? "dropped" : "kept";
    if (j->choice.group > 0)
        snprintf(text, 48, "%s-g%lld", j->choice.type->name, (long long)j->choice.group);
    else
        snprintf(text, 48, "%s", j->choice.type->name);
    return text;
}

static void print_job(const job *j, bool lost)
{
    char before[24], after[24], to[48];
    tool_print("  %-48s %-24s %-14s %10s %10s", j->from.name, j->from.format, result_name(j, to),
               size_text(j->from.bytes, before), size_text(j->bytes, after));
    if (lost && j->lost.known && isinf(j->lost.sqnr))
        printf("      exact");
    else if (lost && j->lost.known)
        printf(" %10.3e %8.2f %10.3e", j->lost.rms, j->lost.sqnr, j->lost.largest);
    tool_line("%s%s", j->reason ? "  " : "", j->reason ? j->reason : "");
}

static void print_jobs(const rewrite *r)
{
    uint64_t before = 0, after = 0;
    char a[24], b[24];
    bool lost = !r->o->dry_run;
    printf("  %-48s %-24s %-14s %10s %10s%s\n", "weight", "from", "to", "before", "after",
           lost ? "        RMS  SQNR dB    largest" : "");
    for (int i = 0; i < r->info.weights; i++) {
        print_job(&r->jobs[i], lost);
        before += r->jobs[i].from.bytes;
        after += r->jobs[i].bytes;
    }
    tool_line("%s: %s in %d weights %s %s (%.1f%%)", r->o->out, size_text(before, a), r->info.weights,
              lost ? "became" : "would become", size_text(after, b),
              before ? 100 * (double)after / (double)before : 100);
}

static void json_job(tool_text *out, const job *j, bool first)
{
    char to[48];
    tool_printf(out, "%s\n    {\"name\": ", first ? "" : ",");
    tool_quote(out, j->from.name);
    tool_printf(out, ", \"from\": ");
    tool_quote(out, j->from.format);
    tool_printf(out, ", \"to\": \"%s\", \"bytes_before\": %llu, \"bytes_after\": %llu", result_name(j, to),
                (unsigned long long)j->from.bytes, (unsigned long long)j->bytes);
    if (j->lost.known)
        tool_printf(out, ", \"rms\": %.9g, \"largest\": %.9g", j->lost.rms, j->lost.largest);
    if (j->lost.known && isfinite(j->lost.sqnr)) /* JSON has no infinity: omitted if nothing was lost */
        tool_printf(out, ", \"sqnr_db\": %.9g", j->lost.sqnr);
    if (j->reason) {
        tool_printf(out, ", \"reason\": ");
        tool_quote(out, j->reason);
    }
    tool_printf(out, "}");
}

static int write_json(const rewrite *r)
{
    tool_text text = {0};
    tool_printf(&text, "{\n  \"in\": ");
    tool_quote(&text, r->o->in);
    tool_printf(&text, ",\n  \"out\": ");
    tool_quote(&text, r->o->out);
    tool_printf(&text, ",\n  \"dry_run\": %s,\n  \"weights\": [", r->o->dry_run ? "true" : "false");
    for (int i = 0; i < r->info.weights; i++)
        json_job(&text, &r->jobs[i], i == 0);
    tool_printf(&text, "\n  ]\n}\n");
    int status = tool_write(r->o->json, &text);
    tool_text_free(&text);
    return status;
}

int rewrite_run(rewrite *r)
{
    int *copies = tool_alloc((size_t)r->info.tensors * sizeof *copies);
    int status = copies ? list_tensors(r, copies) : TOOL_FAILED;
    if (status == TOOL_OK)
        status = rewrite_describe(r);
    if (status == TOOL_OK && !r->o->dry_run)
        status = write_file(r, copies);
    free(copies);
    if (status == TOOL_OK && !(r->o->json && strcmp(r->o->json, "-") == 0))
        print_jobs(r);
    if (status == TOOL_OK && r->o->json)
        status = write_json(r);
    return status;
}
