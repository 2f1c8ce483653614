/* The header of safetensors: JSON, padded so that the data begins at a multiple of 8. */
#include "tools/qdnn/output.h"

#include <string.h>

bool safetensors_has_type(const char *type)
{
    static const char *const types[] = {"F32", "F16", "BF16", "F64", "I8",   "U8",      "I16",     "U16",
                                        "I32", "U32", "I64",  "U64", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

static void metadata(const output *out, tool_text *text)
{
    tool_printf(text, "\"__metadata__\":{");
    for (int i = 0; i < out->n_entries; i++) {
        tool_append(text, ",", i > 0);
        tool_quote(text, out->entries[i].key);
        tool_append(text, ":", 1);
        tool_quote(text, out->entries[i].data);
    }
    tool_append(text, "}", 1);
}

int safetensors_header(output *out, tool_text *text)
{
    uint8_t length[8] = {0};
    tool_append(text, length, sizeof length);
    tool_printf(text, "{");
    metadata(out, text);
    out->data_bytes = 0;
    for (int i = 0; i < out->n_tensors; i++) {
        output_tensor *t = &out->tensors[i];
        t->offset = out->data_bytes;
        out->data_bytes += t->bytes;
        tool_printf(text, ",");
        tool_quote(text, t->name);
        tool_printf(text, ":{\"dtype\":\"%s\",\"shape\":[", t->type);
        for (int k = 0; k < t->rank; k++)
            tool_printf(text, "%s%lld", k ? "," : "", (long long)t->dims[k]);
        tool_printf(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)t->offset,
                    (unsigned long long)out->data_bytes);
    }
    tool_printf(text, "}");
    while (!text->failed && text->size % 8)
        tool_append(text, " ", 1);
    for (int i = 0; !text->failed && i < 8; i++)
        text->data[i] = (char)((text->size - 8) >> (8 * i));
    return TOOL_OK;
}
