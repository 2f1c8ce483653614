/* Sources of values: numbers, variables, parameters, special registers; and the kernel's directives. */
#include "ptxgen/internal.h"

#include <string.h>

/* ---- numbers ---- */

static ptx_val number(ptx_type type, uint64_t bits)
{
    return (ptx_val){.type = type, .kind = PTX_NUMBER, .bits = bits};
}

ptx_val ptx_u16(ptx_builder *b, uint16_t x)
{
    (void)b;
    return number(PTX_U16, x);
}

ptx_val ptx_s16(ptx_builder *b, int16_t x)
{
    (void)b;
    return number(PTX_S16, (uint16_t)x);
}

ptx_val ptx_u32(ptx_builder *b, uint32_t x)
{
    (void)b;
    return number(PTX_U32, x);
}

ptx_val ptx_s32(ptx_builder *b, int32_t x)
{
    (void)b;
    return number(PTX_S32, (uint32_t)x);
}

ptx_val ptx_u64(ptx_builder *b, uint64_t x)
{
    (void)b;
    return number(PTX_U64, x);
}

ptx_val ptx_s64(ptx_builder *b, int64_t x)
{
    (void)b;
    return number(PTX_S64, (uint64_t)x);
}

ptx_val ptx_f32(ptx_builder *b, float x)
{
    uint32_t bits;
    (void)b;
    memcpy(&bits, &x, sizeof bits);
    return number(PTX_F32, bits);
}

ptx_val ptx_f64(ptx_builder *b, double x)
{
    (void)b;
    return number(PTX_F64, ptx_from_real(x).bits);
}

ptx_val ptx_bits(ptx_builder *b, ptx_type type, uint64_t bits)
{
    int width = isa_type_bits(type);
    if (width < 16 || (width < 64 && bits >> width))
        ptx_fail(b, "bits: 0x%llx are not the bits of %s", (unsigned long long)bits, isa_type_text(type));
    return number(type, bits);
}

/* ---- variables ---- */

ptx_val ptx_as(ptx_builder *b, ptx_type type, ptx_val x)
{
    if (!builder_ready(b, "as"))
        return (ptx_val){0};
    if (x.type == PTX_INT || x.type == PTX_REAL)
        return emit_number(b, type, x);
    if (!builder_usable(b, x))
        return (ptx_val){0};
    if (isa_type_bits(type) != isa_type_bits(x.type))
        ptx_fail(b, "%s cannot be reinterpreted as %s: the widths differ", isa_type_text(x.type),
                 isa_type_text(type));
    x.type = type;
    return x;
}

ptx_val ptx_mov(ptx_builder *b, ptx_val x)
{
    return EMIT(b, mov, emit_common(b, "mov", &x, 1), x);
}

ptx_val ptx_var(ptx_builder *b, ptx_val x)
{
    ptx_val d = EMIT(b, mov, emit_common(b, "var", &x, 1), x);
    d.kind = ptx_ok(b) ? PTX_VAR : PTX_NOTHING;
    return d;
}

ptx_val ptx_var_of(ptx_builder *b, ptx_type type)
{
    if (!builder_ready(b, "var_of"))
        return (ptx_val){0};
    ptx_val d = builder_register(b, type);
    d.kind = ptx_ok(b) ? PTX_VAR : PTX_NOTHING;
    return d;
}

void ptx_into(ptx_builder *b, ptx_val var)
{
    if (!builder_ready(b, "into"))
        return;
    if (var.kind != PTX_VAR)
        ptx_fail(b, "this is not a variable");
    b->into = var;
}

void ptx_assign(ptx_builder *b, ptx_val var, ptx_val x)
{
    if (!builder_ready(b, "assign"))
        return;
    ptx_into(b, var);
    EMIT(b, mov, var.type, x);
}

/* ---- special registers ---- */

ptx_val ptx_sreg(ptx_builder *b, const char *name)
{
    static const struct {
        const char *name;
        ptx_type type;
    } known[] = {
        {"tid.x", PTX_U32},       {"tid.y", PTX_U32},       {"tid.z", PTX_U32},
        {"ntid.x", PTX_U32},      {"ntid.y", PTX_U32},      {"ntid.z", PTX_U32},
        {"ctaid.x", PTX_U32},     {"ctaid.y", PTX_U32},     {"ctaid.z", PTX_U32},
        {"nctaid.x", PTX_U32},    {"nctaid.y", PTX_U32},    {"nctaid.z", PTX_U32},
        {"laneid", PTX_U32},      {"warpid", PTX_U32},      {"nwarpid", PTX_U32},
        {"smid", PTX_U32},        {"nsmid", PTX_U32},       {"lanemask_eq", PTX_U32},
        {"lanemask_le", PTX_U32}, {"lanemask_lt", PTX_U32}, {"lanemask_ge", PTX_U32},
        {"lanemask_gt", PTX_U32}, {"clock", PTX_U32},       {"dynamic_smem_size", PTX_U32},
        {"clock64", PTX_U64},     {"globaltimer", PTX_U64},
    };
    if (!builder_ready(b, "sreg"))
        return (ptx_val){0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!name || strcmp(known[i].name, name))
            continue;
        char *at = text_room(b, &b->body, MAX_INSTRUCTION);
        if (!at)
            return (ptx_val){0};
        ptx_val d = builder_register(b, known[i].type);
        at = put_string(put_string(at, "\tmov."), isa_type_text(d.type));
        *at++ = ' ';
        at = put_string(put_string(emit_register(at, d), ", %"), name);
        at = put_string(at, ";\n");
        b->body.size = (size_t)(at - b->body.data);
        b->instructions++;
        return d;
    }
    ptx_fail(b, "there is no special register \"%.32s\"", name ? name : "(null)");
    return (ptx_val){0};
}

#define SREG(name, text)                                                                                     \
    ptx_val ptx_##name(ptx_builder *b)                                                                       \
    {                                                                                                        \
        return ptx_sreg(b, text);                                                                            \
    }
SREG(tid_x, "tid.x")
SREG(tid_y, "tid.y")
SREG(ntid_x, "ntid.x")
SREG(ctaid_x, "ctaid.x")
SREG(ctaid_y, "ctaid.y")
SREG(ctaid_z, "ctaid.z")
SREG(nctaid_x, "nctaid.x")
SREG(laneid, "laneid")

ptx_val ptx_global_index(ptx_builder *b)
{
    ptx_val block = ptx_ctaid_x(b), size = ptx_ntid_x(b), thread = ptx_tid_x(b);
    return ptx_mad(b, block, size, thread);
}

ptx_val ptx_global_index64(ptx_builder *b)
{
    ptx_val block = ptx_ctaid_x(b), size = ptx_ntid_x(b), thread = ptx_tid_x(b);
    return ptx_mad_wide(b, block, size, ptx_cvt(b, PTX_U64, thread));
}

/* ---- parameters and directives ---- */

static bool add_param(ptx_builder *b, ptx_type type, unsigned align, const char *name)
{
    if (!builder_declare(b, &b->names, name))
        return false;
    text_add(b, &b->params, b->params.size ? ",\n\t.param ." : "\n\t.param .");
    text_add(b, &b->params, isa_type_memory_text(type));
    if (align) {
        text_add(b, &b->params, " .ptr .global .align ");
        text_add_number(b, &b->params, align);
    }
    text_add(b, &b->params, " ");
    text_add(b, &b->params, name);
    info_param(b, type, align, name);
    return ptx_ok(b);
}

static ptx_val load_param(ptx_builder *b, ptx_type type, const char *name)
{
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return (ptx_val){0};
    ptx_val d = builder_register(b, emit_widened(type));
    at = put_string(put_string(at, "\tld.param."), isa_type_memory_text(type));
    *at++ = ' ';
    at = put_string(emit_register(at, d), ", [");
    at = put_string(put_string(at, name), "];\n");
    b->body.size = (size_t)(at - b->body.data);
    b->instructions++;
    return d;
}

ptx_val ptx_param(ptx_builder *b, ptx_type type, const char *name)
{
    if (!builder_ready(b, "param"))
        return (ptx_val){0};
    if (isa_type_bits(type) < 8 || type == PTX_E2M1X2) {
        ptx_fail(b, "a parameter cannot be of type %s", isa_type_text(type));
        return (ptx_val){0};
    }
    return add_param(b, type, 0, name) ? load_param(b, type, name) : (ptx_val){0};
}

ptx_val ptx_param_ptr(ptx_builder *b, const char *name, unsigned align)
{
    if (!builder_ready(b, "param_ptr"))
        return (ptx_val){0};
    if (!align || align & (align - 1)) {
        ptx_fail(b, "the alignment %u is not a power of two", align);
        return (ptx_val){0};
    }
    return add_param(b, PTX_U64, align, name) ? load_param(b, PTX_U64, name) : (ptx_val){0};
}

static void directive(ptx_builder *b, const char *name, const unsigned *x, int n)
{
    if (!builder_ready(b, name))
        return;
    text_add(b, &b->directives, ".");
    text_add(b, &b->directives, name);
    for (int i = 0; i < n; i++) {
        if (!x[i])
            ptx_fail(b, "0 is not allowed");
        text_add(b, &b->directives, i ? ", " : " ");
        text_add_number(b, &b->directives, x[i]);
    }
    text_add(b, &b->directives, "\n");
}

void ptx_reqntid(ptx_builder *b, unsigned x, unsigned y, unsigned z)
{
    directive(b, "reqntid", (const unsigned[]){x, y, z}, 3);
    if (ptx_ok(b) && (uint64_t)x * y > PTX_THREADS_BLOCK / z)
        ptx_fail(b, "%u x %u x %u threads are more than %d", x, y, z, PTX_THREADS_BLOCK);
}

void ptx_maxntid(ptx_builder *b, unsigned threads)
{
    directive(b, "maxntid", &threads, 1);
    if (ptx_ok(b) && threads > PTX_THREADS_BLOCK)
        ptx_fail(b, "%u threads are more than %d", threads, PTX_THREADS_BLOCK);
}

void ptx_minnctapersm(ptx_builder *b, unsigned blocks)
{
    directive(b, "minnctapersm", &blocks, 1);
}

void ptx_maxnreg(ptx_builder *b, unsigned registers)
{
    directive(b, "maxnreg", &registers, 1);
    if (ptx_ok(b) && registers > PTX_REGISTERS_THREAD)
        ptx_fail(b, "%u registers are more than %d", registers, PTX_REGISTERS_THREAD);
}
