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

void gguf_put(tool_text *text, uint64_t n, int bytes)
{
    uint8_t le[8];
    for (int i = 0; i < bytes; i++)
        le[i] = (uint8_t)(n >> (8 * i));
    tool_append(text, le, (size_t)bytes);
}

void gguf_put_string(tool_text *text, const char *string, size_t bytes)
{
    gguf_put(text, bytes, 8);
    tool_append(text, string, bytes);
}

static void put_tensor(tool_text *text, const output_tensor *t)
{
    gguf_put_string(text, t->name, strlen(t->name));
    gguf_put(text, (uint64_t)(t->rank ? t->rank : 1), 4);
    for (int i = t->rank; i-- > 0;)
        gguf_put(text, (uint64_t)t->dims[i], 8);
    if (t->rank == 0)
        gguf_put(text, 1, 8);
    gguf_put(text, (uint64_t)type_number(t->type), 4);
    gguf_put(text, t->offset, 8);
}

static uint64_t align_up(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int gguf_header(output *out, tool_text *text)
{
    tool_append(text, "GGUF", 4);
    gguf_put(text, 3, 4);
    gguf_put(text, (uint64_t)out->n_tensors, 8);
    gguf_put(text, (uint64_t)out->n_entries, 8);
    for (int i = 0; i < out->n_entries; i++)
        tool_append(text, out->entries[i].data, out->entries[i].bytes);
    out->data_bytes = 0;
    for (int i = 0; i < out->n_tensors; i++) {
        out->tensors[i].offset = align_up(out->data_bytes);
        out->data_bytes = out->tensors[i].offset + out->tensors[i].bytes;
        put_tensor(text, &out->tensors[i]);
    }
    out->data_bytes = align_up(out->data_bytes);
    while (!text->failed && text->size % ALIGNMENT)
        gguf_put(text, 0, 1);
    return TOOL_OK;
}
