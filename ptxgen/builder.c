/* The builder itself: opening, kernels, closing, errors, names, registers. */
#include "ptxgen/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *builder_resize(const ptx_options *options, void *memory, size_t size)
{
    if (options->resize)
        return options->resize(options->user, memory, size);
    if (size)
        return realloc(memory, size);
    free(memory);
    return NULL;
}

ptx_builder *ptx_open(const ptx_sm *sm, const ptx_options *options)
{
    ptx_options chosen = options ? *options : (ptx_options){0};
    ptx_builder *b = builder_resize(&chosen, NULL, sizeof *b);
    if (!b)
        return NULL;
    *b = (ptx_builder){.sm = sm, .options = chosen};
    b->scopes = (uint64_t)(uintptr_t)b << 16; /* so that using a value of another builder is detected */
    if (sm)
        b->version = sm->version;
    else
        ptx_fail(b, "the target is null: ptx_sm_find knows no such name");
    return b;
}

const ptx_sm *ptx_target(const ptx_builder *b)
{
    return b ? b->sm : NULL;
}

bool ptx_ok(const ptx_builder *b)
{
    return b && !b->failed;
}

ptx_builder *ptx_mark(ptx_builder *b, const char *file, int line)
{
    if (b) {
        b->file = file;
        b->line = line;
    }
    return b;
}

/* ---- errors ---- */

/* "kernel: file:line: instruction 7: add: ", without the parts that are not known. */
static int write_place(const ptx_builder *b, char *text, size_t size)
{
    const char *file = b->file ? b->file : "";
    const char *slash = strrchr(file, '/');
    char line[32] = "", number[48] = "";
    if (b->file)
        snprintf(line, sizeof line, ":%d: ", b->line);
    if (b->in_kernel)
        snprintf(number, sizeof number, "instruction %u: ", b->instructions + 1);
    return snprintf(text, size, "%s%s%s%s%s%s%s", b->kernel, *b->kernel ? ": " : "", slash ? slash + 1 : file,
                    line, number, b->doing ? b->doing : "", b->doing ? ": " : "");
}

void ptx_fail(ptx_builder *b, const char *format, ...)
{
    if (!ptx_ok(b))
        return;
    b->failed = true;
    int n = write_place(b, b->error.text, sizeof b->error.text);
    if (n < 0 || n >= (int)sizeof b->error.text)
        n = (int)sizeof b->error.text - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(b->error.text + n, sizeof b->error.text - (size_t)n, format, args);
    va_end(args);
}

void builder_no_memory(ptx_builder *b)
{
    if (ptx_ok(b))
        b->error.no_memory = true;
    ptx_fail(b, "out of memory");
}

bool builder_ready(ptx_builder *b, const char *doing)
{
    if (!ptx_ok(b))
        return false;
    b->doing = doing;
    if (!b->in_kernel)
        ptx_fail(b, "there is no kernel yet: call ptx_kernel first");
    return ptx_ok(b);
}

/* ---- names ---- */

static bool is_name(const char *name)
{
    size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$") : 0;
    return n && n <= MAX_NAME && !name[n] && !(name[0] >= '0' && name[0] <= '9') && name[0] != '$';
}

static bool is_taken(ptx_builder *b, ptx_text *names, const char *line)
{
    if (!names->size)
        text_add(b, names, "\n");
    char *end = text_room(b, names, 1);
    if (!end)
        return true;
    *end = 0;
    return strstr(names->data, line);
}

bool builder_declare(ptx_builder *b, ptx_text *names, const char *name)
{
    char line[MAX_NAME + 4];
    if (!is_name(name)) {
        ptx_fail(b, "\"%.64s\" is not a PTX name: letters, digits and _, not a digit first, at most %d",
                 name ? name : "(null)", MAX_NAME);
        return false;
    }
    *put_string(put_string(put_string(line, "\n"), name), "\n") = 0;
    if (is_taken(b, &b->names, line) || is_taken(b, &b->module_names, line))
        ptx_fail(b, "the name \"%.64s\" is already in use", name);
    else
        text_add(b, names, line + 1);
    return ptx_ok(b);
}

/* ---- registers and scopes ---- */

uint64_t builder_scope(const ptx_builder *b)
{
    return b->frames[b->depth - 1].scope;
}

ptx_val builder_register(ptx_builder *b, ptx_type type)
{
    return (ptx_val){
        .type = type, .kind = PTX_REG, .reg = ++b->registers[emit_class(type)], .bits = builder_scope(b)};
}

bool builder_usable(ptx_builder *b, ptx_val x)
{
    if (x.kind == PTX_NUMBER)
        return true;
    if (x.kind == PTX_NOTHING) {
        ptx_fail(b, "an operand is not a value (it was never set)");
        return false;
    }
    for (int i = b->depth; i-- > 0;)
        if (b->frames[i].scope == x.bits)
            return true;
    ptx_fail(b, "a value of type %s is used after the if, loop or kernel that it was made in (use ptx_var)",
             isa_type_text(x.type));
    return false;
}

/* ---- kernels ---- */

static void add_registers(ptx_builder *b, ptx_text *out)
{
    static const char *const types[] = {".pred", ".b8", ".b16", ".b32", ".b64"};
    for (int c = 0; c < CLASS_COUNT; c++) {
        if (!b->registers[c])
            continue;
        text_add(b, out, "\t.reg ");
        text_add(b, out, types[c]);
        text_add(b, out, " ");
        text_add(b, out, emit_class_letter(c));
        text_add(b, out, "<");
        text_add_number(b, out, b->registers[c] + 1ull);
        text_add(b, out, ">;\n");
        b->registers[c] = 0;
    }
}

static void finish_kernel(ptx_builder *b)
{
    if (!ptx_ok(b) || !b->in_kernel)
        return;
    control_check_closed(b);
    EMIT_VOID(b, ret, PTX_NOTYPE, {0});
    ptx_text *out = &b->kernels;
    text_add(b, out, "\n.visible .entry ");
    text_add(b, out, b->kernel);
    text_add(b, out, "(");
    text_add_text(b, out, &b->params);
    text_add(b, out, b->params.size ? "\n)\n" : ")\n");
    text_add_text(b, out, &b->directives);
    text_add(b, out, "{\n");
    add_registers(b, out);
    text_add_text(b, out, &b->variables);
    text_add(b, out, "\n");
    text_add_text(b, out, &b->body);
    text_add(b, out, "}\n");
    b->names.size = b->params.size = b->directives.size = b->variables.size = b->body.size = 0;
    b->in_kernel = false;
    b->has_dynamic = false;
    b->depth = 0;
}

void ptx_kernel(ptx_builder *b, const char *name)
{
    finish_kernel(b);
    if (!ptx_ok(b))
        return;
    b->doing = "kernel";
    b->kernel[0] = 0;
    if (!builder_declare(b, &b->module_names, name))
        return;
    *put_string(b->kernel, name) = 0;
    b->instructions = 0;
    b->info = (ptx_info){0};
    b->in_kernel = true;
    b->coherent = false;
    control_open_kernel(b);
}

static void add_header(ptx_builder *b, ptx_text *out)
{
    text_add(b, out, ".version ");
    text_add_number(b, out, (uint64_t)b->version / 10);
    text_add(b, out, ".");
    text_add_number(b, out, (uint64_t)b->version % 10);
    text_add(b, out, "\n.target ");
    text_add(b, out, b->sm->name);
    text_add(b, out, "\n.address_size 64\n");
}

static char *assemble(ptx_builder *b)
{
    finish_kernel(b);
    b->doing = "close";
    if (ptx_ok(b) && !b->kernels.size)
        ptx_fail(b, "there is no kernel");
    ptx_text out = {0};
    if (ptx_ok(b) && text_room(b, &out, 128 + b->tables.size + b->kernels.size)) {
        add_header(b, &out);
        text_add_text(b, &out, &b->tables);
        text_add_text(b, &out, &b->kernels);
        out.data[out.size] = 0;
    }
    return out.data;
}

bool ptx_close(ptx_builder *b, char **text, ptx_error *error)
{
    static const ptx_error none = {.no_memory = true, .text = "out of memory"};
    *text = NULL;
    if (error)
        *error = none;
    if (!b)
        return false;
    *text = assemble(b);
    bool ok = !b->failed;
    if (error)
        *error = b->error;
    ptx_text *all[] = {&b->tables, &b->kernels, &b->params, &b->directives,  &b->variables,
                       &b->body,   &b->names,   &b->labels, &b->module_names};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        text_free(b, all[i]);
    ptx_options options = b->options;
    builder_resize(&options, b, 0);
    return ok;
}

void ptx_free_text(const ptx_options *options, char *text)
{
    if (text)
        builder_resize(options ? options : &(ptx_options){0}, text, 0);
}

void ptx_comment(ptx_builder *b, const char *text)
{
    if (!builder_ready(b, "comment") || !b->options.comments)
        return;
    text_add(b, &b->body, "\t// ");
    char *at = text_room(b, &b->body, strlen(text) + 2);
    if (!at)
        return;
    for (; *text; text++) /* a comment must stay on one line */
        *at++ = (unsigned char)*text < ' ' ? ' ' : *text;
    *at++ = '\n';
    b->body.size = (size_t)(at - b->body.data);
}
