/* The arguments of a run: from the command line into the kernel's parameter block. */
#include "tools/ptxvm/tool.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int tool_argument_error(const vm_argument *a, const char *format, ...)
{
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    char elements[32] = "";
    if (a->param.elements > 1)
        snprintf(elements, sizeof elements, "[%" PRIu64 "]", a->param.elements);
    return tool_usage_error("argument %d '%.200s' (parameter %.200s, %s%s): %s", a->number, a->text,
                            a->param.name, a->param.type, elements, what);
}

/* ---- bytes ---- */

static int hex_bytes(const vm_argument *a, const char *digits, uint8_t *to)
{
    size_t length = strlen(digits);
    uint64_t bytes = a->param.bytes;
    if (strspn(digits, "0123456789abcdefABCDEF") != length)
        return tool_argument_error(a, "bytes: takes hexadecimal digits alone");
    if (length != 2 * bytes)
        return tool_argument_error(a, "%zu hexadecimal digits: %" PRIu64 " bytes have %" PRIu64, length,
                                   bytes, 2 * bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], 0};
        to[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return TOOL_OK;
}

static int file_bytes(const vm_argument *a, const char *path, uint8_t *to)
{
    tool_text data = {0};
    int status = tool_read(path, &data);
    if (status == TOOL_OK && data.size != a->param.bytes)
        status = tool_argument_error(a, "the file has %zu bytes, the parameter %" PRIu64, data.size,
                                     a->param.bytes);
    if (status == TOOL_OK)
        memcpy(to, data.data, data.size);
    tool_text_free(&data);
    return status;
}

/* ---- values ---- */

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* Stores "1,2,3", `length` characters, at *at, which advances; what does not fit is counted but not
 * stored. */
static int store_values(const vm_argument *a, const value_type *type, const char *list, size_t length,
                        uint8_t *to, uint64_t *at)
{
    char why[256], *copy = strndup(list, length), *rest = copy;
    uint64_t bits = 0, size = (uint64_t)type->bytes;
    int status = copy ? TOOL_OK : tool_fail("out of memory");
    *at = align_up(*at, size);
    for (char *part; status == TOOL_OK && (part = tool_cut_part(&rest)); *at += size) {
        const char *wrong = value_parse(type, part, &bits, why, sizeof why);
        if (wrong)
            status = tool_argument_error(a, "%s", wrong);
        else if (*at + size <= a->param.bytes)
            value_store(type, bits, to + *at);
    }
    free(copy);
    return status;
}

/* Structs and arrays may end in padding, which is zero. */
static int check_extent(const vm_argument *a, uint64_t end)
{
    uint64_t align = a->param.elements > 1 ? a->param.align : 1;
    if (align_up(end, align) != a->param.bytes)
        return tool_argument_error(a, "the values take %" PRIu64 " bytes, the parameter has %" PRIu64, end,
                                   a->param.bytes);
    return TOOL_OK;
}

static const char *form_name(const void *list, int index)
{
    static const char *const names[] = {"buf", "arg", "bytes", "u8",  "u16", "u32", "u64",  "s8",
                                        "s16", "s32", "s64",   "f16", "f32", "f64", "bf16", NULL};
    (void)list;
    return names[index];
}

static int unknown_form(const vm_argument *a, const char *text, size_t length)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), text);
    const char *near = tool_nearest(name, form_name, NULL);
    if (near)
        return tool_argument_error(a, "unknown form '%s:'; did you mean '%s:'?", name, near);
    return tool_argument_error(a,
                               "unknown form '%s:'; there are buf:, arg:, bytes: and types as in f32:", name);
}

/* "f32:1,2/u32:3": pieces with one type each, at their natural alignment like the members of a struct. */
static int typed_values(const vm_argument *a, const char *text, uint8_t *to)
{
    uint64_t end = 0;
    for (const char *piece = text, *next; piece; piece = next) {
        size_t name = strcspn(piece, ":/"), length = strcspn(piece, "/");
        const value_type *type = value_type_find(piece, name);
        next = piece[length] ? piece + length + 1 : NULL;
        if (piece[name] != ':')
            return tool_argument_error(a, "'%.*s' has no type: write f32:1/u32:2",
                                       (int)(name < 40 ? name : 40), piece);
        if (!type)
            return unknown_form(a, piece, name);
        int status = store_values(a, type, piece + name + 1, length - name - 1, to, &end);
        if (status != TOOL_OK)
            return status;
    }
    return check_extent(a, end);
}

static int bare_value(const vm_argument *a, uint8_t *to)
{
    const value_type *type = value_type_find(a->param.type, strlen(a->param.type));
    uint64_t end = 0;
    if (!type || a->param.elements > 1)
        return tool_argument_error(a, "it has %" PRIu64 " bytes: write f32:1,2/u32:3 or bytes:HEX or @FILE",
                                   a->param.bytes);
    int status = store_values(a, type, a->text, strlen(a->text), to, &end);
    return status == TOOL_OK ? check_extent(a, end) : status;
}

/* ---- addresses ---- */

/* "arg:1+64" */
static int address_again(vm_argument *a, const vm_arguments *all, const char *text, uint64_t *address)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    uint64_t offset = 0;
    if (!isdigit((unsigned char)*text) || (*end && *end != '+') ||
        (*end == '+' && !tool_parse_size(end + 1, &offset)))
        return tool_argument_error(a, "arg: takes the number of an argument, as in arg:1 or arg:1+64");
    if (n < 1 || n >= (unsigned long)a->number || !all->list[n - 1].address)
        return tool_argument_error(a, "argument %lu is not a buffer before this one", n);
    if (offset > all->list[n - 1].bytes)
        return tool_argument_error(a, "the buffer of argument %lu has %" PRIu64 " bytes", n,
                                   all->list[n - 1].bytes);
    *address = all->list[n - 1].address + offset;
    return TOOL_OK;
}

static int address_of(vm_argument *a, const vm_arguments *all, vm_file *file, uint8_t *to)
{
    const value_type *type = value_type_find("u64", 3);
    uint64_t address = 0;
    if (a->param.bytes != 8 || a->param.elements != 1)
        return tool_argument_error(a, "an address has 8 bytes, and this parameter is %s",
                                   a->param.elements == 1 ? "smaller" : "no single value");
    int status;
    if (strncmp(a->text, "arg:", 4) == 0)
        status = address_again(a, all, a->text + 4, &address);
    else {
        status = tool_buffer_make(a, file);
        address = a->address;
    }
    value_store(type, address, to);
    return status;
}

/* ---- one argument ---- */

static int parse_argument(vm_argument *a, vm_arguments *all, vm_file *file)
{
    uint8_t *to = all->block + a->param.offset;
    if (a->text[0] == '@')
        return file_bytes(a, a->text + 1, to);
    if (strncmp(a->text, "buf:", 4) == 0 || strncmp(a->text, "arg:", 4) == 0)
        return address_of(a, all, file, to);
    if (strncmp(a->text, "bytes:", 6) == 0)
        return hex_bytes(a, a->text + 6, to);
    return strchr(a->text, ':') ? typed_values(a, a->text, to) : bare_value(a, to);
}

/* ---- all of them ---- */

/* "scale takes 3 arguments (x: u64, f: f32, n: u32), and 1 was given" */
static int wrong_count(const vm_options *o, const ptxvm_kernel *kernel, int n)
{
    tool_text list = {0};
    ptxvm_param_info p;
    for (int i = 0; ptxvm_kernel_get_param(kernel, i, &p); i++)
        tool_printf(&list, "%s%.200s: %s", i ? ", " : " (", p.name, p.type);
    tool_printf(&list, "%s", n ? ")" : "");
    int status =
        tool_usage_error("%s takes %d argument%s%s, and %d %s given", o->kernel, n, n == 1 ? "" : "s",
                         list.data ? list.data : "", o->n_arguments, o->n_arguments == 1 ? "was" : "were");
    tool_text_free(&list);
    return status;
}

int tool_arguments_make(vm_arguments *all, const vm_options *options, vm_file *file, ptxvm_kernel *kernel)
{
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    *all = (vm_arguments){.n = info.n_params, .block_bytes = info.param_bytes};
    if (options->n_arguments != info.n_params)
        return wrong_count(options, kernel, info.n_params);
    all->list = calloc((size_t)info.n_params + 1, sizeof *all->list);
    all->block = calloc(info.param_bytes + 1, 1);
    if (!all->list || !all->block)
        return tool_fail("out of memory");
    int status = TOOL_OK;
    for (int i = 0; i < all->n && status == TOOL_OK; i++) {
        vm_argument *a = &all->list[i];
        a->number = i + 1;
        a->text = options->arguments[i];
        ptxvm_kernel_get_param(kernel, i, &a->param);
        status = parse_argument(a, all, file);
    }
    return status;
}

void tool_arguments_free(vm_arguments *arguments)
{
    for (int i = 0; arguments->list && i < arguments->n; i++)
        free(arguments->list[i].copy);
    free(arguments->list);
    free(arguments->block);
}
