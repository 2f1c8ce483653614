/* Lookups in isa.def, and properties of types. */
#include "ptxgen/isa.h"

enum {
#define TYPE(name, text, bit_text, memory_text, bits) name = 1 << PTX_##name,
#include "ptxgen/types.def"
#undef TYPE
    I16 = U16 | S16,
    I32 = U32 | S32,
    I64 = U64 | S64,
    INTS = I16 | I32 | I64,
    BITS = B16 | B32 | B64,
    HALVES = F16 | F16X2,
    BHALVES = BF16 | BF16X2,
    W8 = U8 | S8 | B8 | E2M1X2,
    W16 = I16 | B16 | F16 | BF16 | E4M3X2 | E5M2X2 | UE8M0X2,
    W32 = I32 | B32 | F16X2 | BF16X2 | F32 | TF32,
    W64 = I64 | B64 | F64 | F32X2,
    MEMORY = U8 | S8 | B8 | W16 | W32 | W64
};

static const isa_row rows[] = {
#define NEED(id, text, ...)
#define OP(id, text, t0, t1, shape, need) {true, text, t0, t1, shape, NEED_##need},
#define OR(text, t0, t1, shape, need)     {false, text, t0, t1, shape, NEED_##need},
#include "ptxgen/isa.def"
#undef NEED
#undef OP
#undef OR
};

static const struct isa_need {
    const char *text;
    struct {
        uint16_t from, to;
        uint8_t flavour, version;
    } range[3];
} needs[] = {
#define NEED(id, text, ...) {text, {__VA_ARGS__}},
#define OP(id, text, t0, t1, shape, need)
#define OR(text, t0, t1, shape, need)
#include "ptxgen/isa.def"
#undef NEED
#undef OP
#undef OR
};

const isa_type isa_types[] = {
    [PTX_NOTYPE] = {"nothing", "nothing", "nothing", 0},
#define TYPE(name, text, bit_text, memory_text, bits) [PTX_##name] = {text, bit_text, memory_text, bits},
#include "ptxgen/types.def"
#undef TYPE
    [PTX_INT] = {"a C integer", "", "", 0},
    [PTX_REAL] = {"a C float", "", "", 0},
};

const isa_row *isa_row_at(int index)
{
    return index >= 0 && index < ISA_COUNT ? &rows[index] : NULL;
}

const isa_row *isa_find(isa_id id, ptx_type t0, ptx_type t1)
{
    uint32_t set0 = t0 && t0 < PTX_TYPE_COUNT ? 1u << t0 : 0, set1 = t1 && t1 < PTX_TYPE_COUNT ? 1u << t1 : 0;
    for (const isa_row *row = &rows[id]; row < rows + ISA_COUNT && (row == &rows[id] || !row->first); row++)
        if ((row->t0 ? row->t0 & set0 : !t0) && (row->t1 ? row->t1 & set1 : !t1))
            return row;
    return NULL;
}

int isa_need_version(isa_need_id need, const ptx_sm *sm)
{
    for (int i = 0; i < 3 && needs[need].range[i].from; i++)
        if (sm->number >= needs[need].range[i].from && sm->number <= needs[need].range[i].to &&
            sm->flavour >= needs[need].range[i].flavour)
            return needs[need].range[i].version;
    return 0;
}

const char *isa_need_text(isa_need_id need)
{
    return needs[need].text;
}

static bool in_set(ptx_type type, uint32_t set)
{
    return type > PTX_NOTYPE && type < PTX_TYPE_COUNT && (set >> type & 1);
}

bool isa_type_is_signed(ptx_type type)
{
    return in_set(type, S8 | S16 | S32 | S64);
}

bool isa_type_is_integer(ptx_type type)
{
    return in_set(type, U8 | S8 | B8 | INTS | BITS);
}

bool isa_type_is_float(ptx_type type)
{
    return in_set(type, F16 | BF16 | F32 | F64);
}
