/* The instruction table (isa.def), and what an instruction requires of the target. */
#ifndef PTXGEN_ISA_H
#define PTXGEN_ISA_H

#define PTX_NO_CALL_MACROS
#include "ptxgen/ptx.h"

typedef enum isa_need_id {
#define NEED(id, text, ...) NEED_##id,
#define OP(id, text, t0, t1, shape, need)
#define OR(text, t0, t1, shape, need)
#include "ptxgen/isa.def"
#undef NEED
#undef OP
#undef OR
    NEED_COUNT
} isa_need_id;

/* An OP starts the rows of an instruction, OR rows add further forms; each is on its own line, and the line
 * number identifies it. */
typedef enum isa_id {
#define ISA_JOIN_(a, b) a##b
#define ISA_JOIN(a, b)  ISA_JOIN_(a, b)
#define NEED(id, text, ...)
#define OP(id, text, t0, t1, shape, need) ISA_##id,
#define OR(text, t0, t1, shape, need)     ISA_JOIN(ISA_MORE_, __LINE__),
#include "ptxgen/isa.def"
#undef NEED
#undef OP
#undef OR
    ISA_COUNT
} isa_id;

typedef struct isa_row {
    bool first;       /* an OP row */
    const char *text; /* see isa.def */
    uint32_t t0, t1;  /* sets of types; t1 0: there is no second type */
    const char *shape;
    isa_need_id need;
} isa_row;

const isa_row *isa_row_at(int index);
/* The row of the instruction for these types, or null. */
const isa_row *isa_find(isa_id id, ptx_type t0, ptx_type t1);
/* The lowest .version (times ten) that supports it on this target; 0: the target does not support it. */
int isa_need_version(isa_need_id need, const ptx_sm *sm);
const char *isa_need_text(isa_need_id need);

/* The rows of types.def, by ptx_type; inline because they are used several times per instruction. */
typedef struct isa_type {
    const char *text, *bit_text, *memory_text; /* "f16x2", "b32", "b32" */
    int bits;
} isa_type;
extern const isa_type isa_types[PTX_REAL + 1];

static inline const isa_type *isa_type_row(ptx_type type)
{
    return &isa_types[(unsigned)type <= PTX_REAL ? type : PTX_NOTYPE];
}
static inline const char *isa_type_text(ptx_type type)
{
    return isa_type_row(type)->text;
}
static inline const char *isa_type_bit_text(ptx_type type)
{
    return isa_type_row(type)->bit_text;
}
static inline const char *isa_type_memory_text(ptx_type type)
{
    return isa_type_row(type)->memory_text;
}
static inline int isa_type_bits(ptx_type type)
{
    return isa_type_row(type)->bits;
}
bool isa_type_is_signed(ptx_type type);
bool isa_type_is_integer(ptx_type type); /* u, s and b types */
bool isa_type_is_float(ptx_type type);   /* f16, bf16, f32, f64 */

#endif
