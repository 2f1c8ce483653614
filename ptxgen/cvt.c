/* Conversions. */
#include "ptxgen/internal.h"

static ptx_val convert(ptx_builder *b, isa_id id, const char *rounding, ptx_type to, ptx_val x)
{
    return emit_op(b, id, to, emit_common(b, "cvt", &x, 1), rounding, &x);
}

static ptx_val convert_two(ptx_builder *b, isa_id id, ptx_type to, ptx_val lo, ptx_val hi)
{
    ptx_type from = emit_common(b, "cvt_pair", (const ptx_val[]){lo, hi}, 2);
    return emit_op(b, id, to, from, NULL, (const ptx_val[]){hi, lo}); /* PTX names the upper half first */
}

/* The exact form if there is one, else rounding to nearest even; pairs have separate calls. */
static isa_id plain_form(ptx_type to, ptx_type from)
{
    if (isa_find(ISA_cvt, to, from))
        return ISA_cvt;
    return isa_find(ISA_cvt_unpair, to, from) ? ISA_cvt_unpair : ISA_cvt_frnd;
}

ptx_val ptx_cvt(ptx_builder *b, ptx_type to, ptx_val x)
{
    ptx_type from = emit_common(b, "cvt", &x, 1);
    return convert(b, plain_form(to, from), "rn", to, x);
}

ptx_val ptx_cvt_low(ptx_builder *b, ptx_type to, ptx_type from, ptx_val x)
{
    emit_common(b, "cvt_low", &x, 1);
    if (ptx_ok(b) && !isa_type_is_integer(from))
        ptx_fail(b, "the low bits are read as an integer, not as %s", isa_type_text(from));
    return emit_op(b, plain_form(to, from), to, from, "rn", &x);
}

ptx_val ptx_cvt_rn(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_frnd, "rn", to, x);
}

/* bf16 supports only rounding to nearest and toward zero, and toward zero only from f32. */
static ptx_val directed(ptx_builder *b, const char *rounding, bool up_or_down, ptx_type to, ptx_val x)
{
    if (ptx_ok(b) && to == PTX_BF16 && up_or_down && !isa_type_is_integer(x.type))
        ptx_fail(b, "cvt: %s cannot be rounded to bf16 by %s", isa_type_text(x.type), rounding);
    return convert(b, ISA_cvt_frnd, rounding, to, x);
}

ptx_val ptx_cvt_rz(ptx_builder *b, ptx_type to, ptx_val x)
{
    return directed(b, "rz", false, to, x);
}

ptx_val ptx_cvt_rm(ptx_builder *b, ptx_type to, ptx_val x)
{
    return directed(b, "rm", true, to, x);
}

ptx_val ptx_cvt_rp(ptx_builder *b, ptx_type to, ptx_val x)
{
    return directed(b, "rp", true, to, x);
}

ptx_val ptx_cvt_rni(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_irnd, "rni", to, x);
}

ptx_val ptx_cvt_rzi(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_irnd, "rzi", to, x);
}

ptx_val ptx_cvt_rmi(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_irnd, "rmi", to, x);
}

ptx_val ptx_cvt_rpi(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_irnd, "rpi", to, x);
}

ptx_val ptx_cvt_rna_tf32(ptx_builder *b, ptx_val x)
{
    return convert(b, ISA_cvt_tf32, NULL, PTX_TF32, x);
}

/* Every integer of type `from` is also one of type `to`. */
static bool holds_all(ptx_type to, ptx_type from)
{
    bool to_signed = isa_type_is_signed(to), from_signed = isa_type_is_signed(from);
    int spare = isa_type_bits(to) - isa_type_bits(from);
    return isa_type_is_integer(to) && (to_signed == from_signed ? spare >= 0 : to_signed && spare > 0);
}

ptx_val ptx_cvt_sat(ptx_builder *b, ptx_type to, ptx_val x)
{
    ptx_type from = emit_common(b, "cvt_sat", &x, 1);
    return convert(b, holds_all(to, from) ? ISA_cvt : ISA_cvt_sat, NULL, to,
                   x); /* PTX rejects a .sat that has no effect */
}

ptx_val ptx_cvt_relu(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_relu, NULL, to, x);
}

ptx_val ptx_cvt_satfinite(ptx_builder *b, ptx_type to, ptx_val x)
{
    return convert(b, ISA_cvt_satfinite, NULL, to, x);
}

ptx_val ptx_cvt_pair(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi)
{
    return convert_two(b, ISA_cvt_pair, to, lo, hi);
}

ptx_val ptx_cvt_pair_relu(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi)
{
    return convert_two(b, ISA_cvt_pair_relu, to, lo, hi);
}

ptx_val ptx_cvt_pair_rz(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi)
{
    return convert_two(b, ISA_cvt_pair_rz, to, lo, hi);
}

ptx_val ptx_cvt_ue8m0_rz(ptx_builder *b, ptx_val lo, ptx_val hi)
{
    return convert_two(b, ISA_cvt_ue8m0_rz, PTX_UE8M0X2, lo, hi);
}

ptx_val ptx_cvt_ue8m0_rp(ptx_builder *b, ptx_val lo, ptx_val hi)
{
    return convert_two(b, ISA_cvt_ue8m0_rp, PTX_UE8M0X2, lo, hi);
}
