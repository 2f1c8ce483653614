/* The header of GGUF, version 3. */
#include "tools/qdnn/output.h"

#include <string.h>

enum { ALIGNMENT = 32 };

static int type_number(const char *type)
{
    static const struct {
        int number;
        const char *name;
    } types[] = {
#define GGUF_TYPE(number, name, elements, bytes, type, block) {number, name},
#include "files/gguf_types.def"
#undef GGUF_TYPE
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].number;
    return -1;
}

bool gguf_has_type(const char *type)
{
    return type_number(type) >= 0;
}

static void put(tool_text *text, uint64_t n, int bytes)
{
    uint8_t le[8];
    for (int i = 0; i < bytes; i++)
        le[i] = (uint8_t)(n >> (8 * i));
    tool_append(text, le, (size_t)bytes);
}

static void put_string(tool_text *text, const char *string)
{
    put(text, strlen(string), 8);
    tool_append(text, string, strlen(string));
}

/* Entries that may no longer be true: alignment, split files, the type of most tensors. */
static bool is_stale(const char *key)
{
    return strncmp(key, "split.", 6) == 0 || strcmp(key, "general.alignment") == 0 ||
           strcmp(key, "general.file_type") == 0 || strcmp(key, "general.quantization_version") == 0;
}

/* GGUF: copies the source's entries; safetensors: its strings. */
static int put_metadata(output *out, tool_text *text)
{
    enum { TYPE_U32 = 4, TYPE_STRING = 8 };
    qdnnFileInfo_t info;
    qdnnFileMetadata_t m;
    int count = 1;
    qdnnGetFileInfo(out->source, &info);
    put_string(text, "general.quantization_version");
    put(text, TYPE_U32, 4);
    put(text, 2, 4);
    for (int i = 0; i < info.metadata; i++) {
        if (qdnnGetFileMetadata(out->source, i, &m) || is_stale(m.key) ||
            strcmp(m.key, "quantization_config") == 0)
            continue;
        count++;
        if (m.data) {
            tool_append(text, m.data, m.bytes);
            continue;
        }
        put_string(text, m.key);
        put(text, TYPE_STRING, 4);
        put_string(text, m.text);
    }
    return count;
}

static void put_tensor(tool_text *text, const output_tensor *t)
{
    put_string(text, t->name);
    put(text, (uint64_t)(t->rank ? t->rank : 1), 4);
    for (int i = t->rank; i-- > 0;)
        put(text, (uint64_t)t->dims[i], 8);
    if (t->rank == 0)
        put(text, 1, 8);
    put(text, (uint64_t)type_number(t->type), 4);
    put(text, t->offset, 8);
}

static uint64_t align_up(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int gguf_header(output *out, tool_text *text)
{
    tool_append(text, "GGUF", 4);
    put(text, 3, 4);
    put(text, (uint64_t)out->n_tensors, 8);
    tool_text entries = {0};
    put(text, (uint64_t)put_metadata(out, &entries), 8);
    tool_append(text, entries.data ? entries.data : "", entries.size);
    text->failed = text->failed || entries.failed;
    tool_text_free(&entries);
    out->data_bytes = 0;
    for (int i = 0; i < out->n_tensors; i++) {
        out->tensors[i].offset = align_up(out->data_bytes);
        out->data_bytes = out->tensors[i].offset + out->tensors[i].bytes;
        put_tensor(text, &out->tensors[i]);
    }
    out->data_bytes = align_up(out->data_bytes);
    while (!text->failed && text->size % ALIGNMENT)
        put(text, 0, 1);
    return TOOL_OK;
}
