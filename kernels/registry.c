/* The registry's rows, and the way from a row to PTX text. */
#include "kernels/emit.h"

#include <stdio.h>
#include <string.h>

#define quantize_geometry    chunk_geometry
#define dequantize_geometry  chunk_geometry
#define OPERATION_scale      KERNEL_SCALE
#define OPERATION_quantize   KERNEL_QUANTIZE
#define OPERATION_dequantize KERNEL_DEQUANTIZE
#define OPERATION_range      KERNEL_RANGE
const kernel_row kernel_rows[] = {
#define ROW(name, operation_name, format, operation, keys, summary)                                          \
    {#name, operation_name,       summary,         OPERATION_##operation, QDNN_FORMAT_##format,              \
     keys,  operation##_geometry, emit_##operation},
#include "kernels/registry.def"
#undef ROW
};
const int kernel_row_count = sizeof kernel_rows / sizeof kernel_rows[0];

const kernel_row *kernel_find(const char *name)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_rows[i].name, name) == 0 ||
            (kernel_rows[i].operation_name && strcmp(kernel_rows[i].operation_name, name) == 0))
            return &kernel_rows[i];
    return NULL;
}

const kernel_row *kernel_find_operation(kernel_operation operation, qdnnFormat_t format)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_rows[i].operation == operation && kernel_rows[i].format == format)
            return &kernel_rows[i];
    return NULL;
}

void kernel_entry_name(const kernel_row *row, char *text, size_t size)
{
    snprintf(text, size, "qdnn_%s", row->name);
}

bool kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const ptx_options *options,
                 kernel_text *out, ptx_error *error)
{
    *out = (kernel_text){0};
    error->no_memory = false;
    if (!kernel_spec_check(row, spec, error->text, sizeof error->text))
        return false;
    kernel_spec normal = kernel_spec_normal(row, spec);
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    ptx_builder *b = ptx_open(sm, options);
    ptx_kernel(b, entry);
    row->emit(b, row, &normal);
    ptx_describe(b, &out->info);
    if (!ptx_close(b, &out->ptx, error))
        return false;
    out->geometry = row->geometry(row, &normal);
    return true;
}
