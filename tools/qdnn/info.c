/* The command info: lists the contents of a file. */
#include "tools/qdnn/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Totals for the weights of one format. */
typedef struct total {
    const char *format;
    int count;
    uint64_t elements, bytes;
} total;

static uint64_t elements_of(int rank, const int64_t *dims)
{
    uint64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (uint64_t)dims[i];
    return n;
}

static const char *shape_text(int rank, const int64_t *dims, char text[96])
{
    int n = snprintf(text, 96, "[");
    for (int i = 0; i < rank && n < 90; i++)
        n += snprintf(text + n, 96 - (size_t)n, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(text + n, 96 - (size_t)n, "]");
    return text;
}

static void json_shape(tool_text *out, int rank, const int64_t *dims)
{
    char text[96];
    tool_printf(out, "%s", shape_text(rank, dims, text));
}

/* The row of a format; added if it is new. Formats have numbers from files in their names, so there may be as many as
 * weights: all after the first ones share a row. */
static total *find_total(total *totals, int *n, const char *format)
{
    enum { FORMATS_MAX = 256 };
    for (int i = 0; i < *n && i < FORMATS_MAX; i++)
        if (strcmp(totals[i].format, format) == 0)
            return &totals[i];
    if (*n > FORMATS_MAX)
        return &totals[FORMATS_MAX];
    totals[*n] = (total){.format = *n < FORMATS_MAX ? format : "other formats"};
    return &totals[(*n)++];
}

/* ---- text ---- */

/* The first line of a metadata value, at most 100 bytes of it. */
static void print_metadata(const qdnnFileMetadata_t *m)
{
    size_t line = strcspn(m->text, "\n"), shown = 0, n;
    while (shown < line && shown < 100 && (n = utf8_length(m->text + shown, line - shown)) > 0)
        shown += n;
    if (shown < line && shown < 100) /* not UTF-8: escaped, so it may be cut anywhere */
        shown = line < 100 ? line : 100;
    tool_line("  %s: %.*s%s", m->key, (int)shown, m->text, m->text[shown] ? " ..." : "");
}

static void print_head(qdnnFile_t file, const char *path, const qdnnFileInfo_t *info)
{
    char size[24];
    qdnnFileMetadata_t m;
    tool_print("%s: ", path);
    if (info->kind == QDNN_FILE_GGUF)
        tool_print("GGUF version %d", info->version);
    else
        tool_print("safetensors");
    if (*info->quantMethod)
        tool_print(", quantized by %s", info->quantMethod);
    tool_print(", %s", size_text(info->bytes, size));
    if (info->shards > 1)
        tool_print(" in %d files", info->shards);
    tool_line(", %d tensors", info->tensors);
    for (int i = 0; i < info->metadata; i++)
        if (!qdnnGetFileMetadata(file, i, &m))
            print_metadata(&m);
}

static void print_weight(const qdnnFileWeight_t *w)
{
    char size[24], shape[96] = "?";
    if (w->rank)
        shape_text(w->rank, w->dims, shape);
    tool_line("  %-56s %-28s %-20s %10s", w->name, w->format, shape, size_text(w->bytes, size));
    if (w->problem)
        tool_line("    no descriptor: %s", w->problem);
}

static void print_tensor(qdnnFile_t file, const qdnnFileTensor_t *t, int shards)
{
    char size[24], shape[96];
    const char *path = "";
    qdnnGetFileShard(file, t->shard, &path);
    tool_line("  %-56s %-10s %-20s %10s  at %llu%s%s", t->name, t->typeName,
              shape_text(t->rank, t->dims, shape), size_text(t->bytes, size), (unsigned long long)t->offset,
              shards > 1 ? " of " : "", shards > 1 ? path : "");
}

static void print_totals(const total *totals, int n)
{
    char size[24];
    total all = {.format = "all"};
    printf("\n  %-34s %8s %14s %12s %10s\n", "format", "weights", "elements", "bytes", "bits each");
    for (int i = 0; i <= n; i++) {
        const total *t = i < n ? &totals[i] : &all;
        tool_line("  %-34s %8d %14llu %12s %10.3f", t->format, t->count, (unsigned long long)t->elements,
                  size_text(t->bytes, size), t->elements ? 8 * (double)t->bytes / (double)t->elements : 0);
        all.count += t->count;
        all.elements += t->elements;
        all.bytes += t->bytes;
    }
}

/* ---- JSON ---- */

static void json_weight(tool_text *out, const qdnnFileWeight_t *w, bool first)
{
    tool_printf(out, "%s\n    {\"name\": ", first ? "" : ",");
    tool_quote(out, w->name);
    tool_printf(out, ", \"format\": ");
    tool_quote(out, w->format);
    tool_printf(out, ", \"quantized\": %s, \"bytes\": %llu", w->quantized ? "true" : "false",
                (unsigned long long)w->bytes);
    if (w->problem) {
        tool_printf(out, ", \"problem\": ");
        tool_quote(out, w->problem);
    } else {
        tool_printf(out, ", \"weights\": \"%s\", \"shape\": ", qdnnGetWeightsName(w->weights));
        json_shape(out, w->rank, w->dims);
    }
    tool_printf(out, "}");
}

static void json_head(tool_text *out, const char *path, const qdnnFileInfo_t *info)
{
    tool_printf(out, "{\n  \"file\": ");
    tool_quote(out, path);
    tool_printf(out, ",\n  \"kind\": \"%s\",\n  \"version\": %d,\n  \"quant_method\": ",
                info->kind == QDNN_FILE_GGUF ? "gguf" : "safetensors", info->version);
    tool_quote(out, info->quantMethod);
    tool_printf(out, ",\n  \"bytes\": %llu,\n  \"shards\": %d,\n  \"tensors\": %d,\n  \"weights\": [",
                (unsigned long long)info->bytes, info->shards, info->tensors);
}

/* ---- both ---- */

static int list_weights(qdnnFile_t file, const options *o, const qdnnFileInfo_t *info, bool text,
                        tool_text *json)
{
    total *totals = tool_alloc((size_t)info->weights * sizeof *totals);
    int n = 0, matched = 0, status = totals ? TOOL_OK : TOOL_FAILED;
    bool first = true;
    for (int i = 0; i < info->weights && status == TOOL_OK; i++) {
        qdnnFileWeight_t w;
        bool wanted = true;
        qdnnGetFileWeight(file, i, &w);
        if (o->only)
            status = regex_matches(o->only, w.name, &wanted);
        if (!wanted)
            continue;
        matched++;
        total *t = find_total(totals, &n, w.format);
        t->count++;
        t->elements += w.rank ? elements_of(w.rank, w.dims) : 0;
        t->bytes += w.bytes;
        json_weight(json, &w, first);
        first = false;
        if (text && !o->tensors)
            print_weight(&w);
    }
    for (int i = 0; i < info->tensors && text && o->tensors && status == TOOL_OK; i++) {
        qdnnFileTensor_t t;
        bool wanted = true;
        qdnnGetFileTensor(file, i, &t);
        if (o->only)
            status = regex_matches(o->only, t.name, &wanted);
        matched += wanted;
        if (wanted)
            print_tensor(file, &t, info->shards);
    }
    if (status == TOOL_OK && o->only && !matched)
        status = only_matched_nothing(o);
    if (text && status == TOOL_OK)
        print_totals(totals, n);
    free(totals);
    return status;
}

int command_info(const options *o)
{
    qdnnFile_t file;
    qdnnFileInfo_t info;
    tool_text json = {0};
    int status = open_file(o->in, &file);
    if (status != TOOL_OK)
        return status;
    status = output_check_json(o, file);
    if (status != TOOL_OK) {
        qdnnCloseFile(file);
        return status;
    }
    bool text = !o->json || strcmp(o->json, "-") != 0;
    qdnnGetFileInfo(file, &info);
    json_head(&json, o->in, &info);
    if (text)
        print_head(file, o->in, &info);
    status = list_weights(file, o, &info, text, &json);
    tool_printf(&json, "\n  ]\n}\n");
    if (status == TOOL_OK && o->json)
        status = tool_write(o->json, &json);
    tool_text_free(&json);
    qdnnCloseFile(file);
    return status;
}
