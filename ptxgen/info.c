/* What a launch needs to know about a kernel: parameters with their offsets, shared memory, .version. */
#include "ptxgen/internal.h"

_Static_assert((int)PTX_INFO_NAME > (int)MAX_NAME, "every name fits");

static uint32_t align_up(uint32_t x, uint32_t align)
{
    return (x + align - 1) / align * align;
}

/* A parameter is at the next multiple of its own size. (PTX ISA, "Kernel Function Parameters".) */
void info_param(ptx_builder *b, ptx_type type, unsigned align, const char *name)
{
    ptx_info *info = &b->info;
    if (info->n_params == PTX_INFO_PARAMS) {
        ptx_fail(b, "a kernel has at most %d parameters", PTX_INFO_PARAMS);
        return;
    }
    ptx_param_info *p = &info->params[info->n_params];
    const ptx_param_info *before = info->n_params ? p - 1 : NULL;
    *p = (ptx_param_info){
        .type = (uint8_t)type, .pointer = align > 0, .size = (uint32_t)isa_type_bits(type) / 8};
    p->align = align ? align : p->size;
    p->offset = before ? align_up(before->offset + before->size, p->size) : 0;
    *put_string(p->name, name) = 0;
    info->n_params++;
}

void info_shared(ptx_builder *b, uint64_t bytes, unsigned align)
{
    if (ptx_ok(b))
        b->info.shared = align_up(b->info.shared, align) + (uint32_t)bytes;
}

void ptx_describe(const ptx_builder *b, ptx_info *info)
{
    *info = (ptx_info){0};
    if (!b)
        return;
    *info = b->info;
    info->version = b->version;
    info->shared_dynamic = b->has_dynamic;
}

const char *ptx_type_text(ptx_type type)
{
    return isa_type_text(type);
}
