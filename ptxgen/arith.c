/* Arithmetic: each call selects a row by the type of its operands. */
#include "ptxgen/internal.h"

#define TERNARY(name)                                                                                        \
    ptx_val ptx_##name(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z)                                      \
    {                                                                                                        \
        return EMIT(b, name, emit_common(b, #name, (const ptx_val[]){x, y, z}, 3), x, y, z);                 \
    }

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(mul_hi)
BINARY(div)
BINARY(rem)
BINARY(min)
BINARY(max)
BINARY(min_nan)
BINARY(max_nan)
BINARY(copysign)
BINARY(add_cc)
BINARY(addc)
BINARY(sub_cc)
BINARY(subc)
UNARY(sqrt)
UNARY(rcp)
UNARY(abs)
UNARY(neg)
TERNARY(mad)
TERNARY(sad)
TERNARY(fma_relu)

static ptx_type wide(ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return type; /* no row has this type */
    }
}

ptx_val ptx_mul_wide(ptx_builder *b, ptx_val x, ptx_val y)
{
    ptx_type type = emit_common(b, "mul_wide", (const ptx_val[]){x, y}, 2);
    return emit_op(b, ISA_mul_wide, wide(type), type, NULL, (const ptx_val[]){x, y});
}

ptx_val ptx_mad_wide(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z)
{
    ptx_type type = emit_common(b, "mad_wide", (const ptx_val[]){x, y}, 2);
    return emit_op(b, ISA_mad_wide, wide(type), type, NULL, (const ptx_val[]){x, y, z});
}

ptx_val ptx_fma(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z)
{
    ptx_type product = emit_common(b, "fma", (const ptx_val[]){x, y, z}, 3);
    bool mixed = z.type == PTX_F32 && (product == PTX_F16 || product == PTX_BF16);
    return emit_op(b, ISA_fma, mixed ? PTX_F32 : product, mixed ? product : PTX_NOTYPE, NULL,
                   (const ptx_val[]){x, y, z});
}

ptx_val ptx_clamp(ptx_builder *b, ptx_val x, ptx_val lo, ptx_val hi)
{
    return ptx_min(b, ptx_max(b, x, lo), hi);
}

ptx_val ptx_clamp_s32(ptx_builder *b, ptx_val x, int lo, int hi)
{
    return ptx_clamp(b, x, ptx_s32(b, lo), ptx_s32(b, hi));
}

static ptx_val testp(ptx_builder *b, const char *kind, ptx_val x)
{
    return emit_op(b, ISA_testp, emit_common(b, "testp", &x, 1), PTX_NOTYPE, kind, &x);
}

ptx_val ptx_testp_nan(ptx_builder *b, ptx_val x)
{
    return testp(b, "notanumber", x);
}

ptx_val ptx_testp_finite(ptx_builder *b, ptx_val x)
{
    return testp(b, "finite", x);
}

/* Dot products of small integers: x and y need types, which determine the signs. */
static ptx_val dot(ptx_builder *b, isa_id id, ptx_val x, ptx_val y, ptx_val c)
{
    return emit_op(b, id, emit_common(b, "dp", &x, 1), emit_common(b, "dp", &y, 1), NULL,
                   (const ptx_val[]){x, y, c});
}

ptx_val ptx_dp4a(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c)
{
    return dot(b, ISA_dp4a, x, y, c);
}

ptx_val ptx_dp2a_lo(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c)
{
    return dot(b, ISA_dp2a_lo, x, y, c);
}

ptx_val ptx_dp2a_hi(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c)
{
    return dot(b, ISA_dp2a_hi, x, y, c);
}
