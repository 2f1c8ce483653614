/* Bits and predicates: logic, shifts, fields, permutations, packing, comparing, selecting. */
#include "ptxgen/internal.h"

/* The type is that of the first operand; the second is the shift count. */
#define SHIFT(name)                                                                                          \
    ptx_val ptx_##name(ptx_builder *b, ptx_val x, ptx_val count)                                             \
    {                                                                                                        \
        return EMIT(b, name, emit_common(b, #name, &x, 1), x, count);                                        \
    }
#define FUNNEL(name)                                                                                         \
    ptx_val ptx_##name(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z)                                      \
    {                                                                                                        \
        return EMIT(b, name, emit_common(b, #name, (const ptx_val[]){x, y}, 2), x, y, z);                    \
    }

BINARY(and)
BINARY(or)
BINARY(xor)
UNARY(not )
UNARY(cnot)
UNARY(bfind)
UNARY(popc)
UNARY(clz)
UNARY(brev)
SHIFT(shl)
SHIFT(shr)
FUNNEL(shf_l)
FUNNEL(shf_r)
FUNNEL(prmt)

ptx_val ptx_lop3(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z, unsigned table)
{
    ptx_type type = emit_common(b, "lop3", (const ptx_val[]){x, y, z}, 3);
    if (ptx_ok(b) && table > 255)
        ptx_fail(b, "the table %u is more than 255", table);
    return EMIT(b, lop3, type, x, y, z, (ptx_val){.type = PTX_B8, .kind = PTX_NUMBER, .bits = table});
}

ptx_val ptx_bfe(ptx_builder *b, ptx_val x, ptx_val pos, ptx_val len)
{
    return EMIT(b, bfe, emit_common(b, "bfe", &x, 1), x, pos, len);
}

ptx_val ptx_bfi(ptx_builder *b, ptx_val x, ptx_val base, ptx_val pos, ptx_val len)
{
    return EMIT(b, bfi, emit_common(b, "bfi", (const ptx_val[]){base, x}, 2), x, base, pos, len);
}

/* ---- packing ---- */

static bool parts_fit(ptx_builder *b, ptx_type whole, ptx_type part, int n)
{
    if (ptx_ok(b) && ((n != 2 && n != 4) || isa_type_bits(whole) != n * isa_type_bits(part)))
        ptx_fail(b, "%d parts of type %s do not make a %s", n, isa_type_text(part), isa_type_text(whole));
    return ptx_ok(b);
}

ptx_val ptx_pack(ptx_builder *b, ptx_type type, const ptx_val *parts, int n)
{
    ptx_type part = emit_common(b, "pack", parts, n);
    if (!parts_fit(b, type, part, n))
        return (ptx_val){0};
    ptx_val out = {0};
    emit(b, &(ptx_instruction){.id = ISA_pack,
                               .t0 = type,
                               .t1 = part,
                               .in = parts,
                               .out = &out,
                               .counts = (const uint8_t[]){(uint8_t)n}});
    return out;
}

ptx_val ptx_pack2(ptx_builder *b, ptx_type type, ptx_val lo, ptx_val hi)
{
    return ptx_pack(b, type, (const ptx_val[]){lo, hi}, 2);
}

void ptx_unpack(ptx_builder *b, ptx_type part, ptx_val x, ptx_val *parts, int n)
{
    for (int i = 0; i < n; i++)
        parts[i] = (ptx_val){0};
    ptx_type whole = emit_common(b, "unpack", &x, 1);
    if (!parts_fit(b, whole, part, n))
        return;
    emit(b, &(ptx_instruction){.id = ISA_unpack,
                               .t0 = whole,
                               .t1 = part,
                               .in = &x,
                               .out = parts,
                               .counts = (const uint8_t[]){(uint8_t)n}});
}

/* ---- comparing ---- */

static const char *compare_name(ptx_builder *b, ptx_cmp cmp, ptx_type type)
{
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    bool bits = type == PTX_B16 || type == PTX_B32 || type == PTX_B64;
    if ((unsigned)cmp > PTX_NAN)
        ptx_fail(b, "there is no comparison number %d", (int)cmp);
    else if ((bits && cmp > PTX_NE) || (isa_type_is_integer(type) && cmp > PTX_GE))
        ptx_fail(b, "%s is not for type %s", names[cmp], isa_type_text(type));
    return ptx_ok(b) ? names[cmp] : "";
}

ptx_val ptx_setp(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y)
{
    ptx_type type = emit_common(b, "setp", (const ptx_val[]){x, y}, 2);
    return emit_op(b, ISA_setp, type, PTX_NOTYPE, compare_name(b, cmp, type), (const ptx_val[]){x, y});
}

ptx_val ptx_setp_and(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val p)
{
    ptx_type type = emit_common(b, "setp_and", (const ptx_val[]){x, y}, 2);
    return emit_op(b, ISA_setp_and, type, PTX_NOTYPE, compare_name(b, cmp, type), (const ptx_val[]){x, y, p});
}

ptx_val ptx_setp_or(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val p)
{
    ptx_type type = emit_common(b, "setp_or", (const ptx_val[]){x, y}, 2);
    return emit_op(b, ISA_setp_or, type, PTX_NOTYPE, compare_name(b, cmp, type), (const ptx_val[]){x, y, p});
}

void ptx_setp_x2(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val *lo, ptx_val *hi)
{
    ptx_val out[2] = {{0}};
    ptx_type type = emit_common(b, "setp_x2", (const ptx_val[]){x, y}, 2);
    emit(b, &(ptx_instruction){.id = ISA_setp_x2,
                               .t0 = type,
                               .modifier = compare_name(b, cmp, type),
                               .in = (const ptx_val[]){x, y},
                               .out = out});
    *lo = out[0];
    *hi = out[1];
}

ptx_val ptx_selp(ptx_builder *b, ptx_val if_true, ptx_val if_false, ptx_val pred)
{
    ptx_type type = emit_common(b, "selp", (const ptx_val[]){if_true, if_false}, 2);
    return EMIT(b, selp, type, if_true, if_false, pred);
}
