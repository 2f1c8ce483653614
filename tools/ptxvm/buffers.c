/* Buffers of a run: "buf:1024xf32=iota>f32:16", their contents before it and their output after it. */
#include "tools/ptxvm/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PER_ROW = 8 };

/* ---- size ---- */

/* "4096", "4K", "1024xf32"; *type is the type of an element. */
static int parse_extent(vm_argument *a, char *text, const value_type **type)
{
    char *x = strchr(text, 'x');
    uint64_t n = 0;
    *type = value_type_find("u8", 2);
    if (x) {
        *x = 0;
        *type = value_type_find(x + 1, strlen(x + 1));
        if (!*type)
            return tool_argument_error(a, "unknown type '%.40s'; it is %s", x + 1, value_type_names);
    }
    if (!tool_parse_size(text, &n) || n == 0 || n > UINT64_MAX / 8)
        return tool_argument_error(a,
                                   "a buffer's size is a number of bytes (4096, 4K) or of elements "
                                   "(1024xf32) or a file (@FILE), not '%.40s'",
                                   text);
    a->bytes = n * (uint64_t)(*type)->bytes;
    return TOOL_OK;
}

/* ---- contents ---- */

/* Values separated by commas; they are repeated to the end. */
static int fill_with_values(const vm_argument *a, const value_type *type, char *list, uint8_t *to)
{
    char why[256];
    uint64_t at = 0, bits = 0, size = (uint64_t)type->bytes;
    for (char *part; (part = tool_cut_part(&list)); at += size) {
        const char *wrong = value_parse(type, part, &bits, why, sizeof why);
        if (wrong)
            return tool_argument_error(a, "%s (or iota, or random:SEED)", wrong);
        if (at + size <= a->bytes)
            value_store(type, bits, to + at);
    }
    if (at > a->bytes)
        return tool_argument_error(a, "%" PRIu64 " values for %" PRIu64 " elements", at / size,
                                   a->bytes / size);
    for (uint64_t i = at; i < a->bytes; i++)
        to[i] = to[i - at];
    return TOOL_OK;
}

/* "iota", "random:SEED" or values. */
static int fill(const vm_argument *a, const value_type *type, char *text, uint8_t *to)
{
    uint64_t state = 0, size = (uint64_t)type->bytes;
    bool iota = strcmp(text, "iota") == 0, random = strncmp(text, "random:", 7) == 0;
    if (random && !tool_parse_size(text + 7, &state))
        return tool_argument_error(a, "random: takes a number, as in random:1");
    if (!iota && !random)
        return fill_with_values(a, type, text, to);
    for (uint64_t i = 0; i < a->bytes / size; i++)
        value_store(type, iota ? value_from_integer(type, i) : value_random(type, &state), to + i * size);
    return TOOL_OK;
}

/* ---- outputs ---- */

/* "f32:16", "f32" or a path. */
static int parse_output(vm_argument *a, const char *text)
{
    size_t length = strcspn(text, ":");
    vm_output output = {.type = value_type_find(text, length), .path = text};
    if (!*text)
        return tool_argument_error(a, "'>' must be followed by a type, as in >f32 or >x32:16, or a file");
    if (a->n_outputs == OUTPUTS_MAX)
        return tool_argument_error(a, "more than %d outputs", OUTPUTS_MAX);
    if (output.type) {
        uint64_t all = a->bytes / (uint64_t)output.type->bytes;
        output.count = all;
        if (a->bytes % (uint64_t)output.type->bytes)
            return tool_argument_error(a, "%" PRIu64 " bytes are not a whole number of %s", a->bytes,
                                       output.type->name);
        if (text[length] && (!tool_parse_size(text + length + 1, &output.count) || output.count == 0))
            return tool_argument_error(a, ">%s:N takes a number of elements, not '%.40s'", output.type->name,
                                       text + length + 1);
        if (output.count > all)
            return tool_argument_error(a, ">%s: the buffer has %" PRIu64 " of them", text, all);
    }
    a->outputs[a->n_outputs++] = output;
    return TOOL_OK;
}

/* The text after the next `mark`, where it is cut; null: there is none. */
static char *cut(char *text, char mark)
{
    char *at = text ? strchr(text, mark) : NULL;
    if (!at)
        return NULL;
    *at = 0;
    return at + 1;
}

/* ---- a buffer ---- */

/* data: the contents; size 0 if the buffer is uninitialised. */
static int make_contents(vm_argument *a, char *text, tool_text *data)
{
    const value_type *type;
    if (text[0] == '@') {
        int status = tool_read(text + 1, data);
        a->bytes = data->size;
        return status == TOOL_OK && !a->bytes ? tool_argument_error(a, "the file is empty") : status;
    }
    char *values = cut(text, '=');
    int status = parse_extent(a, text, &type);
    if (status != TOOL_OK || !values)
        return status;
    data->data = malloc(a->bytes);
    if (!data->data)
        return tool_fail("no memory for the %" PRIu64 " bytes of argument %d", a->bytes, a->number);
    data->size = a->bytes;
    return fill(a, type, values, (uint8_t *)data->data);
}

int tool_buffer_make(vm_argument *a, vm_file *file)
{
    tool_text data = {0};
    char *text = a->copy = strdup(a->text + strlen("buf:"));
    if (!text)
        return tool_fail("out of memory");
    char *next = cut(text, '>');
    int status = make_contents(a, text, &data);
    while (next && status == TOOL_OK) {
        char *output = next;
        next = cut(output, '>');
        status = parse_output(a, output);
    }
    if (status == TOOL_OK && ptxvm_alloc(file->vm, a->bytes, &a->address) != PTXVM_OK)
        status = tool_argument_error(a, "the device has no room for %" PRIu64 " bytes", a->bytes);
    if (status == TOOL_OK && data.size && ptxvm_write(file->vm, a->address, data.data, data.size) != PTXVM_OK)
        status = tool_fail("argument %d: %s", a->number, ptxvm_last_error(file->vm));
    tool_text_free(&data);
    return status;
}

/* ---- after the run ---- */

static void print_values(const vm_argument *a, const vm_output *output, const uint8_t *data, FILE *out)
{
    uint64_t all = a->bytes / (uint64_t)output->type->bytes;
    fprintf(out, "%s, ", a->param.name);
    if (output->count < all)
        fprintf(out, "%" PRIu64 " of ", output->count);
    fprintf(out, "%" PRIu64 " %s:", all, output->type->name);
    for (uint64_t i = 0; i < output->count; i++) {
        char text[64];
        value_print(output->type, value_load(output->type, data + i * (uint64_t)output->type->bytes), text,
                    sizeof text);
        if (i % PER_ROW == 0)
            fprintf(out, "\n%8" PRIu64 ":", i);
        fprintf(out, " %s", text);
    }
    fprintf(out, "\n");
}

int tool_buffer_output(const vm_argument *a, vm_file *file, FILE *out)
{
    int status = TOOL_OK;
    if (!a->n_outputs)
        return status;
    tool_text data = {.data = malloc(a->bytes), .size = a->bytes};
    if (!data.data)
        return tool_fail("no memory for the %" PRIu64 " bytes of argument %d", a->bytes, a->number);
    if (ptxvm_read(file->vm, data.data, a->address, a->bytes) != PTXVM_OK)
        status = tool_fail("argument %d: %s", a->number, ptxvm_last_error(file->vm));
    for (int i = 0; i < a->n_outputs && status == TOOL_OK; i++) {
        if (a->outputs[i].type)
            print_values(a, &a->outputs[i], (const uint8_t *)data.data, out);
        else
            status = tool_write(a->outputs[i].path, &data);
    }
    tool_text_free(&data);
    return status;
}
