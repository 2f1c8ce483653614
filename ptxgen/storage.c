/* Memory declared by a kernel: shared and local variables, and constant tables of the module. */
#include "ptxgen/internal.h"

#include <string.h>

/* Declares "\t.shared .align 16 .b8 name[64]" and the like. */
static bool declare(ptx_builder *b, ptx_text *out, const char *space, unsigned align, ptx_type type,
                    const char *name)
{
    if (!ptx_ok(b))
        return false;
    if (!align || align & (align - 1))
        ptx_fail(b, "the alignment %u is not a power of two", align);
    else if (isa_type_bits(type) < 8 || type >= PTX_TYPE_COUNT)
        ptx_fail(b, "memory cannot be declared of type %s", isa_type_text(type));
    if (!ptx_ok(b) || !builder_declare(b, out == &b->tables ? &b->module_names : &b->names, name))
        return false;
    text_add(b, out, space);
    text_add(b, out, " .align ");
    text_add_number(b, out, align);
    text_add(b, out, " .");
    text_add(b, out, isa_type_bit_text(type));
    text_add(b, out, " ");
    text_add(b, out, name);
    return ptx_ok(b);
}

static void add_count(ptx_builder *b, ptx_text *out, unsigned count)
{
    text_add(b, out, "[");
    text_add_number(b, out, count);
    text_add(b, out, "]");
}

/* "mov.u32 %r1, name;" */
static ptx_val address_of(ptx_builder *b, ptx_type type, const char *name)
{
    char *at = ptx_ok(b) ? text_room(b, &b->body, MAX_INSTRUCTION) : NULL;
    if (!at)
        return (ptx_val){0};
    ptx_val d = builder_register(b, type);
    at = put_string(put_string(at, "\tmov."), isa_type_text(type));
    *at++ = ' ';
    at = put_string(put_string(emit_register(at, d), ", "), name);
    at = put_string(at, ";\n");
    b->body.size = (size_t)(at - b->body.data);
    b->instructions++;
    return d;
}

static ptx_val variable(ptx_builder *b, const char *space, const char *name, ptx_type type, unsigned count,
                        unsigned align, uint64_t limit, ptx_type address)
{
    uint64_t bytes = (uint64_t)count * (unsigned)isa_type_bits(type) / 8;
    if (!count || bytes > limit)
        ptx_fail(b, "%llu bytes: there have to be between 1 and %llu", (unsigned long long)bytes,
                 (unsigned long long)limit);
    if (!declare(b, &b->variables, space, align, type, name))
        return (ptx_val){0};
    add_count(b, &b->variables, count);
    text_add(b, &b->variables, ";\n");
    if (address == PTX_U32)
        info_shared(b, bytes, align);
    return address_of(b, address, name);
}

ptx_val ptx_shared(ptx_builder *b, const char *name, ptx_type type, unsigned count, unsigned align)
{
    if (!builder_ready(b, "shared"))
        return (ptx_val){0};
    return variable(b, "\t.shared", name, type, count, align, PTX_SHARED_DEFAULT, PTX_U32);
}

ptx_val ptx_local(ptx_builder *b, const char *name, ptx_type type, unsigned count, unsigned align)
{
    if (!builder_ready(b, "local"))
        return (ptx_val){0};
    return variable(b, "\t.local", name, type, count, align, 512 * 1024, PTX_U64);
}

ptx_val ptx_shared_dynamic(ptx_builder *b, unsigned align)
{
    char name[MAX_NAME + 16];
    if (!builder_ready(b, "shared_dynamic"))
        return (ptx_val){0};
    if (b->has_dynamic)
        ptx_fail(b, "the kernel has its dynamic shared memory already");
    *put_string(put_string(name, b->kernel), "_dynamic") = 0;
    if (!declare(b, &b->tables, "\n.extern .shared", align, PTX_B8, name))
        return (ptx_val){0};
    b->has_dynamic = true;
    text_add(b, &b->tables, "[];\n");
    return address_of(b, PTX_U32, name);
}

static void add_elements(ptx_builder *b, const uint64_t *bits, unsigned count, int width)
{
    for (unsigned i = 0; i < count && ptx_ok(b); i++) {
        if (width < 64 && bits[i] >> width)
            ptx_fail(b, "element %u does not fit %d bits", i, width);
        char *at = text_room(b, &b->tables, 32);
        if (!at)
            return;
        at = put_string(at, !i ? "" : i % 8 ? ", " : ",\n\t");
        at = put_hex(put_string(at, "0x"), bits[i], width / 4);
        b->tables.size = (size_t)(at - b->tables.data);
    }
}

ptx_val ptx_table(ptx_builder *b, ptx_space space, const char *name, ptx_type type, const uint64_t *bits,
                  unsigned count)
{
    if (!builder_ready(b, "table"))
        return (ptx_val){0};
    unsigned width = (unsigned)isa_type_bits(type);
    if (space != PTX_CONST && space != PTX_GLOBAL)
        ptx_fail(b, "a table is in constant or in global memory");
    else if (!count || (space == PTX_CONST && (uint64_t)count * width / 8 > 64 * 1024))
        ptx_fail(b, "%u elements: there has to be one at least, and 64 KB at most in constant memory", count);
    if (!declare(b, &b->tables, space == PTX_CONST ? "\n.const" : "\n.global", 16, type, name))
        return (ptx_val){0};
    add_count(b, &b->tables, count);
    text_add(b, &b->tables, " = {\n\t");
    add_elements(b, bits, count, (int)width);
    text_add(b, &b->tables, "\n};\n");
    return address_of(b, PTX_U64, name);
}
