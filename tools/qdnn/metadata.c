/* The metadata of the output: those of the source, whole.
 *
 * GGUF to GGUF copies entries byte for byte. In safetensors every value is a string: numbers and arrays are
 * written as JSON. A string of safetensors stays a string in GGUF. */
#include "tools/qdnn/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- text that is valid UTF-8 ---- */

/* GGUF does not check its strings: bytes that are not UTF-8, and zeros, become U+FFFD. Returns how many. */
static uint64_t append_utf8(tool_text *text, const char *from, size_t bytes)
{
    uint64_t replaced = 0;
    for (size_t at = 0; at < bytes;) {
        size_t n = from[at] ? utf8_length(from + at, bytes - at) : 0;
        tool_append(text, n ? from + at : "\xEF\xBF\xBD", n ? n : 3);
        replaced += n == 0;
        at += n ? n : 1;
    }
    return replaced;
}

/* ---- values of GGUF as text ---- */

typedef enum { UNSIGNED, SIGNED, F32, F64, BOOL, STRING, ARRAY } value_kind;

static const struct {
    const char *name;
    value_kind kind;
    int bytes;
} value_types[] = {
#define VALUE(name, kind, bytes) {name, kind, bytes},
#include "files/gguf_values.def"
#undef VALUE
};

/* A place in an entry, whose lengths the reader has checked. */
typedef struct cursor {
    const uint8_t *at;
    uint64_t replaced; /* characters that were not UTF-8 */
} cursor;

static uint64_t take(cursor *c, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;)
        n = n << 8 | c->at[i];
    c->at += bytes;
    return n;
}

static void append_real(tool_text *text, double x, int digits)
{
    if (isfinite(x))
        tool_printf(text, "%.*g", digits, x);
    else /* JSON has no word for it */
        tool_printf(text, "\"%s\"", isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
}

static void append_number(tool_text *text, cursor *c, uint64_t type)
{
    int bits = 8 * value_types[type].bytes;
    uint64_t n = take(c, value_types[type].bytes);
    float single;
    double real;
    switch (value_types[type].kind) {
    case SIGNED:
        n = bits < 64 && n >> (bits - 1) ? n | ~UINT64_C(0) << bits : n;
        tool_printf(text, "%lld", (long long)n);
        return;
    case BOOL:
        tool_printf(text, "%s", n ? "true" : "false");
        return;
    case F32:
        memcpy(&single, c->at - 4, sizeof single);
        append_real(text, (double)single, 9);
        return;
    case F64:
        memcpy(&real, c->at - 8, sizeof real);
        append_real(text, real, 17);
        return;
    default:
        tool_printf(text, "%llu", (unsigned long long)n);
    }
}

static void append_string(tool_text *text, cursor *c, bool quoted)
{
    tool_text valid = {0};
    uint64_t bytes = take(c, 8);
    tool_append(&valid, "", 0);
    c->replaced += append_utf8(&valid, (const char *)c->at, (size_t)bytes);
    c->at += bytes;
    if (valid.failed)
        text->failed = true;
    else if (quoted)
        tool_quote(text, valid.data);
    else
        tool_append(text, valid.data, valid.size);
    tool_text_free(&valid);
}

static void append_value(tool_text *text, cursor *c, uint64_t type, bool quoted)
{
    if (value_types[type].kind == STRING) {
        append_string(text, c, quoted);
    } else if (value_types[type].kind == ARRAY) {
        uint64_t inner = take(c, 4), count = take(c, 8);
        tool_append(text, "[", 1);
        for (uint64_t i = 0; i < count && !text->failed; i++) {
            tool_append(text, ",", i > 0);
            append_value(text, c, inner, true);
        }
        tool_append(text, "]", 1);
    } else {
        append_number(text, c, type);
    }
}

/* ---- entries ---- */

enum { TYPE_U32 = 4, TYPE_STRING = 8 };

/* The raw entry of a string. */
static void string_entry(tool_text *text, const char *key, const char *value, size_t bytes)
{
    gguf_put_string(text, key, strlen(key));
    gguf_put(text, TYPE_STRING, 4);
    gguf_put_string(text, value, bytes);
}

/* The value of a raw entry as text; reports characters that text cannot hold. */
static void text_of_entry(tool_text *text, const qdnnFileMetadata_t *m)
{
    cursor c = {.at = m->data};
    c.at += take(&c, 8);
    uint64_t type = take(&c, 4);
    append_value(text, &c, type, false);
    if (c.replaced)
        tool_fail(
            "metadata '%s': %llu bytes that are not UTF-8 text were written as U+FFFD, since safetensors "
            "cannot hold them",
            m->key, (unsigned long long)c.replaced);
}

/* Takes the text. */
static int add_entry(output *out, const char *key, tool_text *text)
{
    output_entry *more = NULL;
    if (!text->failed)
        more = realloc(out->entries, (size_t)(out->n_entries + 1) * sizeof *more);
    if (more) {
        out->entries = more;
        more[out->n_entries] = (output_entry){.key = strdup(key), .data = text->data, .bytes = text->size};
        if (more[out->n_entries++].key)
            return TOOL_OK;
        return tool_fail("out of memory");
    }
    tool_text_free(text);
    return tool_fail("out of memory");
}

/* Entries that may no longer be true: alignment, split files, the type of most tensors, the quantization. */
static bool is_stale(const output *out, const char *key)
{
    return strncmp(key, "split.", 6) == 0 || strcmp(key, "general.alignment") == 0 ||
           strcmp(key, "general.file_type") == 0 || strcmp(key, "general.quantization_version") == 0 ||
           (strcmp(key, "quantization_config") == 0 && out->config != CONFIG_OF_SOURCE);
}

static int copy_entry(output *out, qdnnFileKind_t from, const qdnnFileMetadata_t *m)
{
    tool_text text = {0};
    tool_append(&text, "", 0); /* an empty value is a text too */
    if (from == out->kind)
        tool_append(&text, m->data, (size_t)m->bytes);
    else if (out->kind == QDNN_FILE_GGUF)
        string_entry(&text, m->key, m->data, (size_t)m->bytes);
    else
        text_of_entry(&text, m);
    return add_entry(out, m->key, &text);
}

int metadata_plan(output *out)
{
    qdnnFileInfo_t info;
    qdnnFileMetadata_t m;
    tool_text text = {0};
    int status = TOOL_OK;
    qdnnGetFileInfo(out->source, &info);
    if (out->kind == QDNN_FILE_GGUF) {
        static const char version[] = "general.quantization_version";
        gguf_put_string(&text, version, strlen(version));
        gguf_put(&text, TYPE_U32, 4);
        gguf_put(&text, 2, 4);
        status = add_entry(out, version, &text);
    }
    for (int i = 0; i < info.metadata && status == TOOL_OK; i++)
        if (!qdnnGetFileMetadata(out->source, i, &m) && !is_stale(out, m.key))
            status = copy_entry(out, info.kind, &m);
    if (status == TOOL_OK && out->quant_config && out->kind == QDNN_FILE_SAFETENSORS) {
        text = (tool_text){0};
        tool_append(&text, out->quant_config, strlen(out->quant_config));
        status = add_entry(out, "quantization_config", &text);
    }
    return status;
}
