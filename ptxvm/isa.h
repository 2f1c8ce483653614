/* The vocabulary of PTX as ptxvm sees it: types, state spaces, opcodes, modifiers, and one parsed
 * instruction.
 *
 * isa.def holds one row for each instruction form, in the notation of the PTX ISA; matching a row yields the
 * opcode, the value of each modifier slot and the type of each operand. Everything after the parser (lane
 * loops, tensor cores, execution) reads an instruction only through the struct pvm_inst below. */
#ifndef PTXVM_ISA_H
#define PTXVM_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PTX types: name in the text, enumerator, bits of one register. Packed types count as one register. */
#define PVM_TYPES(X)                                                                                         \
    X(pred, PRED, 1)                                                                                         \
    X(b8, B8, 8)                                                                                             \
    X(u8, U8, 8)                                                                                             \
    X(s8, S8, 8)                                                                                             \
    X(b16, B16, 16)                                                                                          \
    X(u16, U16, 16)                                                                                          \
    X(s16, S16, 16)                                                                                          \
    X(f16, F16, 16)                                                                                          \
    X(bf16, BF16, 16)                                                                                        \
    X(b32, B32, 32)                                                                                          \
    X(u32, U32, 32)                                                                                          \
    X(s32, S32, 32)                                                                                          \
    X(f32, F32, 32)                                                                                          \
    X(tf32, TF32, 32)                                                                                        \
    X(f16x2, F16X2, 32)                                                                                      \
    X(bf16x2, BF16X2, 32)                                                                                    \
    X(u16x2, U16X2, 32)                                                                                      \
    X(s16x2, S16X2, 32)                                                                                      \
    X(b64, B64, 64)                                                                                          \
    X(u64, U64, 64)                                                                                          \
    X(s64, S64, 64)                                                                                          \
    X(f64, F64, 64)                                                                                          \
    X(f32x2, F32X2, 64)                                                                                      \
    X(b128, B128, 128)                                                                                       \
    /* types that never declare a register, only interpret its bits */                                       \
    X(b1, B1, 1)                                                                                             \
    X(u2, U2, 2)                                                                                             \
    X(s2, S2, 2)                                                                                             \
    X(u4, U4, 4)                                                                                             \
    X(s4, S4, 4)                                                                                             \
    X(b8x16, B8X16, 128)                                                                                     \
    X(b4x16, B4X16, 64)                                                                                      \
    X(b4x16_p64, B4X16_P64, 128)                                                                             \
    X(b6x16_p32, B6X16_P32, 128)                                                                             \
    X(e4m3, E4M3, 8)                                                                                         \
    X(e5m2, E5M2, 8)                                                                                         \
    X(e3m2, E3M2, 6)                                                                                         \
    X(e2m3, E2M3, 6)                                                                                         \
    X(e2m1, E2M1, 4)                                                                                         \
    X(ue8m0, UE8M0, 8)                                                                                       \
    X(ue4m3, UE4M3, 8)                                                                                       \
    X(e4m3x2, E4M3X2, 16)                                                                                    \
    X(e5m2x2, E5M2X2, 16)                                                                                    \
    X(e3m2x2, E3M2X2, 16)                                                                                    \
    X(e2m3x2, E2M3X2, 16)                                                                                    \
    X(e2m1x2, E2M1X2, 8)                                                                                     \
    X(ue8m0x2, UE8M0X2, 16)                                                                                  \
    X(e4m3x4, E4M3X4, 32)                                                                                    \
    X(e5m2x4, E5M2X4, 32)                                                                                    \
    X(e3m2x4, E3M2X4, 32)                                                                                    \
    X(e2m3x4, E2M3X4, 32)                                                                                    \
    X(e2m1x4, E2M1X4, 16)                                                                                    \
    X(s2f6x2, S2F6X2, 16)                                                                                    \
    X(u8x4, U8X4, 32)                                                                                        \
    X(s8x4, S8X4, 32)

typedef enum {
    T_NONE,
#define X(text, name, bits) T_##name,
    PVM_TYPES(X)
#undef X
        T_COUNT
} pvm_type;

typedef enum {
    SPACE_NONE, /* generic, for an address */
    SPACE_REG,
    SPACE_SREG,
    SPACE_CONST,
    SPACE_GLOBAL,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_SHARED,
    SPACE_TENSOR /* tensor memory: bits 16..31 of an address are the lane, bits 0..15 the column */
} pvm_space;

/* Opcodes: the word before the first dot. mods.def lists them and every modifier that is not a type. */
typedef enum {
    OP_NONE,
#define OPCODE(name) OP_##name,
#define MOD(name, text)
#include "mods.def"
#undef OPCODE
#undef MOD
    OP_COUNT
} pvm_opcode;

/* The value of a modifier slot: 0 if the modifier is absent. A type slot holds M_TYPE(T_x), others one of
 * M_x. Multi-word tokens use two underscores for "::" (".L1::evict_last" is M_L1__evict_last, ".shared::cta"
 * is M_shared__cta). */
typedef enum {
    M_NONE,
#define OPCODE(name)
#define MOD(name, text) M_##name,
#include "mods.def"
#undef OPCODE
#undef MOD
    M_COUNT
} pvm_mod;

/* clang-format off */
/* Where the modifiers of an instruction end up, whatever its opcode. An instruction uses the few that it has.
 * What is not evident from the lists below, by opcode:
 *   mad24 mul24     S_HILO lo hi; dp2a too
 *   set, setp       S_CMP, S_BOOL; set has S_TYPE (result) and S_TYPE2 (sources)
 *   slct            S_TYPE, and S_TYPE2 of the selector c (s32, f32)
 *   dp4a dp2a       S_TYPE of a, S_TYPE2 of b; the result is u32 where both are unsigned, else s32
 *                   (operand[0].type)
 *   lop3            S_BOOL (or and) where it has d|p and the predicate q
 *   cvt             S_TYPE result, S_TYPE2 source; cvt.pack: S_SUB pack, S_TYPE result, S_TYPE2 of a and b,
 *                   S_TYPE3 of c; S_SCALE scaled::n2::ue8m0. A packed cvt of two sources has them as two
 *                   operands (a is the upper half)
 *   vset, vset2/4   have no result type: S_TYPE is filled in as u32, S_TYPE2 and S_TYPE3 are those of a and b
 *   video           S_OP the second operation (add min max), S_SAT, S_MODE clamp wrap of vshl and vshr; vmad:
 *                   S_FLAG po, S_SCALE shr7 shr15, -a is operand.negated; SIMD: d.mask is S_DSEL (written
 *                   after d, as asel after a)
 *   bar, barrier    S_MODE sync arrive red (wait); S_SUB warp (bar.warp.sync), cta (bar.cta) or cluster; S_OP
 *                   of .red
 *   vote match      S_OP any all uni ballot; redux S_OP with S_ABS and S_NAN; S_SYNC where written
 *   membar, fence   S_SCOPE; S_SEM sc acq_rel acquire release; S_MODE proxy (then S_KIND alias async
 *                   async::generic tensormap::generic and S_SPACE), mbarrier_init; S_FLAG sync_restrict::*
 *   ld, st          as below; ".mmio.relaxed" is S_SEM relaxed with S_FLAG mmio; st.bulk: S_SUB bulk;
 *                   st.async and red.async: S_SUB async, S_FLAG mbarrier::complete_tx::bytes, but mmio or
 *                   nothing where they go to global memory
 *   atom red        S_OP and S_VEC; S_FLAG noftz
 *   prefetch(u)     S_MODE L1 L2; S_EVICT2; discard S_MODE L2; applypriority S_EVICT2
 *   createpolicy    S_SUB fractional range cvt; S_EVICT2 primary, S_EVICT secondary priority (as L2::evict_*)
 *   cp.async        S_SUB async; S_MODE absent (the copy: S_CACHE, S_SPACE, S_SPACE2), commit_group,
 *                   wait_group, wait_all, mbarrier (cp.async.mbarrier.arrive; S_FLAG noinc) or bulk
 *   cp.async.bulk   S_SUB async, S_MODE bulk, S_FLAG mbarrier::complete_tx::bytes or bulk_group; S_FLAG2
 *                   commit_group, wait_group (S_FLAG read), prefetch; S_FLAG3 multicast::cluster or cp_mask
 *   cp.reduce.async S_SUB reduce, S_MODE bulk, else as above with S_OP; S_FLAG2 noftz
 *   mbarrier        S_SUB init inval expect_tx complete_tx arrive arrive_drop test_wait try_wait
 *                   pending_count; S_FLAG parity or noComplete; S_FLAG2 expect_tx (arrive.expect_tx)
 *   griddepcontrol  S_SUB launch_dependents wait; setmaxnreg S_SUB inc dec; brx S_SUB idx
 *   tcgen05         S_SUB alloc dealloc relinquish_alloc_permit ld st cp shift mma commit fence::* wait::*; S_FLAG2
 *                   cta_group::*; ld, st: S_SHAPE, S_NUM, S_FLAG pack::16b unpack::16b; ld.red: S_FLAG3 red with
 *                   S_OP; cp: S_SHAPE, S_FLAG warpx*; mma: S_KIND, S_FLAG ashift, S_FLAG3 collector::a::*;
 *                   commit: S_FLAG3 multicast::cluster
 *   ldmatrix        S_TYPE b16 or b8; with two formats S_TYPE b8x16 and S_TYPE2 b6x16_p32, b4x16_p64;
 *                   stmatrix S_TYPE
 *   wmma            S_SUB load store mma; S_FRAG, S_ALAYOUT, S_BLAYOUT; wmma.mma always has the types d a b c
 *                   in S_TYPE..S_TYPE4 (f16 a and b, which are not written, are filled in)
 *   mma             S_TYPE..S_TYPE4 d a b c; S_OP xor and of .b1 (the .popc behind it is in S_FLAG); operands
 *                   d, a, b, c as vectors (one register is a vector of one where it is written so, else a
 *                   register), then block scales: scale-a, {byte-id-a, thread-id-a}, scale-b, {byte-id-b,
 *                   thread-id-b} */
/* clang-format on */
typedef enum {
    S_TYPE, /* the type; with several: the first written (the result's: cvt.TYPE.TYPE2, set.cmp.TYPE.TYPE2) */
    S_TYPE2,   /* the second written (cvt's source, dp4a's and vadd's second ...) */
    S_TYPE3,   /* the third (mma.TYPE.TYPE2.TYPE3.TYPE4 are d, a, b, c; video: d, a, b) */
    S_TYPE4,   /* the fourth */
    S_STYPE,   /* the scale type of a block-scaled mma */
    S_RND,     /* rn rz rm rp, rni rzi rmi rpi, rna, rs */
    S_FTZ,     /* ftz */
    S_SAT,     /* sat or satfinite */
    S_RELU,    /* relu */
    S_APPROX,  /* approx or full */
    S_CMP,     /* eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan */
    S_BOOL,    /* the combination of setp/set (and or xor), vote's and redux's operation is in S_OP */
    S_NAN,     /* NaN */
    S_XORSIGN, /* xorsign (the .abs after it is in S_ABS) */
    S_ABS,     /* abs */
    S_OOB,     /* oob */
    S_HILO,    /* lo hi wide */
    S_CC,      /* cc: the carry flag is written; addc, subc, madc read it too */
    S_SPACE,   /* the state space of the address (or cvta's, isspacep's space): M_global, M_shared__cta ... */
    S_SPACE2,  /* of the second address (cp.async source, mbarrier object space ...) */
    S_VEC,     /* v2 v4 v8 */
    S_SEM,     /* weak volatile relaxed acquire release acq_rel mmio sc, and fence's kinds */
    S_SCOPE,   /* cta cluster gpu sys; membar's gl and sys too */
    S_CACHE,   /* ca cg cs lu cv wb wt, nc */
    S_NC,      /* nc, where a cache modifier may be written as well */
    S_EVICT,   /* L1::evict_* and L1::no_allocate */
    S_EVICT2,  /* L2::evict_* */
    S_PREFETCH, /* L2::64B 128B 256B */
    S_HINT,     /* L2::cache_hint: one more operand */
    S_OP,       /* the operation of atom red redux vote match bar.red and of SIMD video's second half; mma's
                   popc/and/xor */
    S_MODE,    /* shfl's up down bfly idx; prmt's f4e b4e rc8 ecl ecr rc16; shf's, szext's, bmsk's clamp wrap;
                  testp's kind; bfind's shiftamt; barrier's sync arrive red; tanh etc. have none */
    S_DIR,     /* l r of shf; to of cvta */
    S_SYNC,    /* sync */
    S_ALIGNED, /* aligned */
    S_UNI,     /* uni */
    S_SHAPE,   /* m16n8k16 and similar */
    S_NUM,     /* x1 x2 x4 */
    S_TRANS,   /* trans */
    S_ALAYOUT, /* row col of a (and of wmma.load/store) */
    S_BLAYOUT, /* row col of b */
    S_KIND,    /* kind::mxf4 ...; wmma's and others' second word (load store mma, a b c d) is in S_FRAG */
    S_FRAG,    /* a b c d of wmma.load/store */
    S_SCALE,   /* block_scale; scaled::n2::ue8m0 of cvt; shr7 shr15 of vmad */
    S_SCALEVEC, /* scale_vec::1X ... */
    S_SUB,      /* a second word of the opcode that names another instruction: cp.async's, mbarrier's, wmma's,
                   griddepcontrol's */
    S_FLAG,     /* any single modifier that fits no slot above */
    S_FLAG2,
    S_FLAG3,
    S_ASEL, /* video selectors of a, b, c, d: M_b0..M_b3, M_h0, M_h1; SIMD: numbers, see M_LANES; 0: none
               written */
    S_BSEL,
    S_CSEL,
    S_DSEL,
    S_COUNT
} pvm_slot;

/* Selectors of SIMD video operands (.h32, .b7610, and .b210 or .h1 as the mask of d) are not listed but
 * encoded as numbers: M_LANES plus, for a selector, one octal digit per lane, lane 0 in the low three bits
 * (.b7610 is M_LANES + 07610, .h32 is M_LANES + 032); for the mask of d one bit per lane (.b210 is M_LANES +
 * 7). */
#define M_LANES           0x4000
#define MOD_IS_LANES(mod) ((mod) >= M_LANES)

/* A type slot's value and back. */
#define M_TYPE(type)     (M_COUNT + (type))
#define MOD_IS_TYPE(mod) ((mod) > M_COUNT && (mod) < M_LANES)
#define MOD_TYPE(mod)    ((pvm_type)((mod) > M_COUNT ? (mod)-M_COUNT : T_NONE))

typedef enum {
    OPERAND_NONE,
    OPERAND_REG,      /* reg; negated if written as !p */
    OPERAND_IMM,      /* bits, already converted to the operand's type */
    OPERAND_SREG,     /* a special register: sreg, component in bits (0..3 for x y z w) */
    OPERAND_SYMBOL,   /* the address of var (or of function), plus bits */
    OPERAND_ADDRESS,  /* [reg + bits], [var + bits] or [bits]: reg or var may be absent */
    OPERAND_VECTOR,   /* { ... }: elements */
    OPERAND_LABEL,    /* the index of an instruction of the same function, in bits; n_insts for a label at the
                         end */
    OPERAND_FUNCTION, /* function */
    OPERAND_SINK      /* _ */
} pvm_operand_kind;

struct pvm_function;
struct pvm_var;

typedef struct pvm_operand {
    pvm_operand_kind kind;
    pvm_type type;   /* what the instruction expects here, by its form */
    pvm_space space; /* of an address */
    bool negated;
    int reg;  /* index into the function's registers; -1: none */
    int sreg; /* pvm_sreg */
    uint64_t bits;
    uint64_t bits_hi; /* upper half of a .b128 immediate */
    struct pvm_var *var;
    struct pvm_function *function;
    struct pvm_operand *elements;
    int n_elements;
} pvm_operand;

#define PVM_MAX_OPERANDS 12

typedef struct pvm_inst {
    pvm_opcode op;
    uint16_t mod[S_COUNT];
    int guard; /* register index of @p, -1 for none */
    bool guard_negated;
    int n_operands; /* results first, in the order written; "d|p" is two operands */
    int n_results;
    pvm_operand *operand;
    int form;               /* row of isa.def, for messages */
    int line, column;       /* in the PTX text */
    int loc_file, loc_line; /* of the last .loc, 0 for none */
    /* Control flow beyond operands: call's argument lists and brx.idx's targets (instruction indices). */
    struct pvm_call *call;
    const struct pvm_targets *targets;
    const char *text; /* position of its opcode in the module's text; null if ptxvm inserted it */
} pvm_inst;

/* A .branchtargets list, shared by all instructions that name it. */
typedef struct pvm_targets {
    int number; /* index among the lists of the function */
    int count;
    int *items; /* instruction indices */
} pvm_targets;

/* call (ret...), target, (args...), prototype-or-targets. Variables are .param or .reg objects of the
 * caller's scope. */
typedef struct pvm_call {
    pvm_operand target; /* FUNCTION, or REG for an indirect call */
    pvm_operand *ret;   /* zero or more */
    pvm_operand *args;
    int n_ret, n_args;
    struct pvm_function *prototype; /* of an indirect call: the .callprototype */
    struct pvm_function *
        *candidates; /* of an indirect call: .calltargets; null if only a prototype is known */
    int n_candidates;
    int list; /* the number of that .calltargets in the module */
} pvm_call;

const char *pvm_opcode_name(pvm_opcode op);
const char *pvm_mod_text(pvm_mod mod); /* ".rn", or for a type slot's value ".f32" */
const char *pvm_type_name(pvm_type type);
int pvm_type_bits(pvm_type type);
bool pvm_shape_of(unsigned mod, int *m, int *n, int *k); /* of a word such as m16n8k16 */
pvm_space pvm_mod_space(unsigned mod); /* the state space that a modifier names; SPACE_NONE if none */

static inline bool pvm_has(const pvm_inst *inst, pvm_slot slot, unsigned mod)
{
    return inst->mod[slot] == mod;
}

static inline pvm_type pvm_slot_type(const pvm_inst *inst, pvm_slot slot)
{
    return MOD_TYPE(inst->mod[slot]);
}

#endif
