/* The PTX builder: one C call writes one instruction (or a small, named group of them).
 *
 *     ptx_builder *b = ptx_open(ptx_sm_find("sm_90"), NULL);
 *     ptx_kernel(b, "scale");
 *     ptx_val x = ptx_param_ptr(b, "x", 16), s = ptx_param(b, PTX_F32, "s"), n = ptx_param(b, PTX_U32, "n");
 *     ptx_val i = ptx_global_index(b);
 *     ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
 *     ptx_val at = ptx_at(b, x, i, 4);
 *     ptx_st_global(b, at, 0, ptx_mul(b, ptx_ld_global(b, PTX_F32, at, 0), s));
 *     char *text;
 *     if (!ptx_close(b, &text, &error)) ... error.text tells what is wrong, and where ...
 *
 * - A value knows its type; the type chooses the instruction: ptx_add writes add.s32, add.rn.f32 ...
 *   Floating-point rounding is always explicit, to nearest even; .ftz and .approx are never used.
 * - A C number may be passed instead of a value: ptx_add(b, x, 1), ptx_mul(b, y, 0.5f). It takes the type
 *   of the other operand and must be exact in it. (ptx_u32, ptx_f32 ... create numbers with a type.)
 * - Registers are plain bits by width, so ptx_as (the same bits as another type) costs nothing. Bit
 *   operations (and, prmt, shl, bfi ...) take any type of the right width; arithmetic requires equal types.
 * - The first error is kept in the builder with its source location, later calls do nothing, and ptx_close
 *   returns it. So an emitter never checks for errors. A null builder (no memory) may be passed everywhere.
 * - A value created inside an if or a loop is not valid after it. Use a variable for what must survive:
 *   ptx_var.
 * - The functions are also macros (ptx_call.h), which record the source location, convert C numbers to
 *   values, and evaluate operands from left to right. (In calls of your own functions, let at most one
 *   argument be a builder call: C does not define the order of evaluation, and so of the instructions.) */
#ifndef PTXGEN_PTX_H
#define PTXGEN_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sm.h"

/* The types are rows of types.def. */
typedef enum ptx_type {
    PTX_NOTYPE,
#define TYPE(name, text, bit_text, memory_text, bits) PTX_##name,
#include "types.def"
#undef TYPE
    PTX_TYPE_COUNT,
    PTX_INT = PTX_TYPE_COUNT, /* a C integer without a type yet */
    PTX_REAL                  /* a C float or double without a type yet */
} ptx_type;

/* A value; treat it as opaque. All zero means "no value", and using that is an error. */
typedef struct ptx_val {
    uint8_t type;  /* ptx_type */
    uint8_t kind;  /* ptx_kind */
    uint32_t reg;  /* number within its register class */
    uint64_t bits; /* a number: its bits (PTX_REAL: of a double); a register: its scope */
} ptx_val;

typedef enum ptx_kind { PTX_NOTHING, PTX_REG, PTX_VAR, PTX_NUMBER } ptx_kind;

typedef struct ptx_builder ptx_builder;
typedef struct ptx_label {
    uint32_t id; /* 0: not a label */
} ptx_label;

/* ---- Opening and closing ---- */

typedef struct ptx_options {
    bool comments; /* keep the text of ptx_comment */
    /* Allocates like realloc (size 0 frees and returns null); null: the C library's. */
    void *(*resize)(void *user, void *memory, size_t size);
    void *user;
} ptx_options;

typedef struct ptx_error {
    bool no_memory;
    char text[512]; /* "scale: pack.c:41: instruction 7: add: the types differ: f32 and s32" */
} ptx_error;

/* Returns null if there is no memory. Options may be null. */
ptx_builder *ptx_open(const ptx_sm *sm, const ptx_options *options);
/* Starts a kernel, and finishes the previous one, if any. */
void ptx_kernel(ptx_builder *b, const char *name);
/* Frees the builder. True: *text is the module; free it with ptx_free_text (or free(), without a resize
 * hook). False: *text is null and *error, which may be null, tells why. */
bool ptx_close(ptx_builder *b, char **text, ptx_error *error);
void ptx_free_text(const ptx_options *options, char *text);

/* What a launch of the current kernel needs to know, as far as it has been written: call it before ptx_close.
 * Shared memory is in bytes, including alignment; offsets are those in the parameter block that a launch
 * passes. */
enum { PTX_INFO_PARAMS = 32, PTX_INFO_NAME = 132 };
typedef struct ptx_param_info {
    char name[PTX_INFO_NAME];
    uint8_t type; /* ptx_type */
    bool pointer; /* to global memory, aligned to `align` */
    uint32_t offset, size, align;
} ptx_param_info;
typedef struct ptx_info {
    int version; /* the lowest .version, times ten */
    uint32_t shared;
    bool shared_dynamic;
    int n_params;
    ptx_param_info params[PTX_INFO_PARAMS];
} ptx_info;
void ptx_describe(const ptx_builder *b, ptx_info *info);
const char *ptx_type_text(ptx_type type); /* "f32", as in an instruction */

/* For emitters: the target, whether an error has occurred, and a way to report one. */
const ptx_sm *ptx_target(const ptx_builder *b);
bool ptx_ok(const ptx_builder *b);
void ptx_fail(ptx_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the source location of the next instruction; called by the macros. Returns b. */
ptx_builder *ptx_mark(ptx_builder *b, const char *file, int line);
void ptx_comment(ptx_builder *b, const char *text);

/* ---- Kernels: parameters and directives ---- */

ptx_val ptx_param(ptx_builder *b, ptx_type type, const char *name);
/* A pointer to global memory with at least this alignment (a power of two). */
ptx_val ptx_param_ptr(ptx_builder *b, const char *name, unsigned align);
/* The block has exactly this many threads. */
void ptx_reqntid(ptx_builder *b, unsigned x, unsigned y, unsigned z);
void ptx_maxntid(ptx_builder *b, unsigned threads);
void ptx_minnctapersm(ptx_builder *b, unsigned blocks);
void ptx_maxnreg(ptx_builder *b, unsigned registers);

/* ---- Numbers, variables, types ---- */

ptx_val ptx_u16(ptx_builder *b, uint16_t x);
ptx_val ptx_s16(ptx_builder *b, int16_t x);
ptx_val ptx_u32(ptx_builder *b, uint32_t x);
ptx_val ptx_s32(ptx_builder *b, int32_t x);
ptx_val ptx_u64(ptx_builder *b, uint64_t x);
ptx_val ptx_s64(ptx_builder *b, int64_t x);
ptx_val ptx_f32(ptx_builder *b, float x);
ptx_val ptx_f64(ptx_builder *b, double x);
/* The number with these bits: f16, bf16 and the packed types, or an f32 NaN. */
ptx_val ptx_bits(ptx_builder *b, ptx_type type, uint64_t bits);

/* The same bits reinterpreted as another type of the same width; no instruction. */
ptx_val ptx_as(ptx_builder *b, ptx_type type, ptx_val x);
/* A variable initialised to x (which needs a type); it is valid in the scope where it is created. */
ptx_val ptx_var(ptx_builder *b, ptx_val x);
/* An uninitialised variable. */
ptx_val ptx_var_of(ptx_builder *b, ptx_type type);
void ptx_assign(ptx_builder *b, ptx_val var, ptx_val x);
/* The next instruction writes its result into this variable instead of a new register. */
void ptx_into(ptx_builder *b, ptx_val var);
/* Copies x to a new register. */
ptx_val ptx_mov(ptx_builder *b, ptx_val x);
/* Special registers: "tid.x", "laneid", "ctaid.y", "clock", "smid" ... and the usual ones by name. All are
 * u32, except clock64 and globaltimer. */
ptx_val ptx_sreg(ptx_builder *b, const char *name);
ptx_val ptx_tid_x(ptx_builder *b);
ptx_val ptx_tid_y(ptx_builder *b);
ptx_val ptx_ntid_x(ptx_builder *b);
ptx_val ptx_ctaid_x(ptx_builder *b);
ptx_val ptx_ctaid_y(ptx_builder *b);
ptx_val ptx_ctaid_z(ptx_builder *b);
ptx_val ptx_nctaid_x(ptx_builder *b);
ptx_val ptx_laneid(ptx_builder *b);
/* ctaid.x * ntid.x + tid.x as u32, and as u64 (for grids beyond 2^32 threads). */
ptx_val ptx_global_index(ptx_builder *b);
ptx_val ptx_global_index64(ptx_builder *b);

/* ---- Control flow ---- */

void ptx_if(ptx_builder *b, ptx_val pred);
void ptx_if_not(ptx_builder *b, ptx_val pred);
void ptx_else(ptx_builder *b);
void ptx_end_if(ptx_builder *b);
/* for (i = start; i < bound; i += step): the type is that of start, or of bound if start is a C number. i is
 * a variable. */
ptx_val ptx_for(ptx_builder *b, ptx_val start, ptx_val bound, ptx_val step);
void ptx_end_for(ptx_builder *b);
/* A loop that ends with one of the breaks. break and continue apply to the innermost loop or for. */
void ptx_loop(ptx_builder *b);
void ptx_end_loop(ptx_builder *b);
void ptx_break(ptx_builder *b);
void ptx_break_if(ptx_builder *b, ptx_val pred);
void ptx_break_unless(ptx_builder *b, ptx_val pred);
void ptx_continue(ptx_builder *b);
void ptx_continue_if(ptx_builder *b, ptx_val pred);
void ptx_continue_unless(ptx_builder *b, ptx_val pred);
void ptx_ret(ptx_builder *b);
void ptx_ret_if(ptx_builder *b, ptx_val pred);
void ptx_ret_unless(ptx_builder *b, ptx_val pred);
void ptx_trap(ptx_builder *b);
void ptx_exit(ptx_builder *b);
/* The next branch, if or loop is uniform: all threads of a warp go the same way (bra.uni). */
void ptx_uniform(ptx_builder *b);
/* The next loop or for is not unrolled by ptxas: for loops that are seldom taken, which would need registers of the others. */
void ptx_rolled(ptx_builder *b);
/* The next instruction is executed only where pred is true (false). It cannot create a new value: use
 * ptx_into. */
void ptx_when(ptx_builder *b, ptx_val pred);
void ptx_unless(ptx_builder *b, ptx_val pred);
/* Labels by hand: every label that is created must be placed. */
ptx_label ptx_label_new(ptx_builder *b);
void ptx_label_place(ptx_builder *b, ptx_label label);
void ptx_bra(ptx_builder *b, ptx_label label);
void ptx_bra_if(ptx_builder *b, ptx_val pred, ptx_label label);
void ptx_bra_unless(ptx_builder *b, ptx_val pred, ptx_label label);

/* ---- Arithmetic: integers, f32, f64, f16, bf16, f16x2, bf16x2; add, sub, mul and fma also f32x2 (sm_100 and
 * later) ---- */

ptx_val ptx_add(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_sub(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_mul(ptx_builder *b, ptx_val x, ptx_val y); /* integers: the low half */
ptx_val ptx_mul_hi(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_mul_wide(ptx_builder *b, ptx_val x, ptx_val y);       /* twice the width */
ptx_val ptx_mad(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z); /* integers */
ptx_val ptx_mad_wide(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z);
ptx_val ptx_div(ptx_builder *b, ptx_val x, ptx_val y); /* f32, f64: div.rn */
ptx_val ptx_rem(ptx_builder *b, ptx_val x, ptx_val y);
/* x*y + z rounded once. z f32 with x and y both f16 or both bf16: the mixed form of sm_100 and later. */
ptx_val ptx_fma(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z);
/* f16, bf16 and pairs; clamped at +0. */
ptx_val ptx_fma_relu(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z);
ptx_val ptx_sqrt(ptx_builder *b, ptx_val x);
ptx_val ptx_rcp(ptx_builder *b, ptx_val x);
ptx_val ptx_min(ptx_builder *b, ptx_val x, ptx_val y); /* the number if one is NaN */
ptx_val ptx_max(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_min_nan(ptx_builder *b, ptx_val x, ptx_val y); /* NaN if either is; sm_80 and later */
ptx_val ptx_max_nan(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_abs(ptx_builder *b, ptx_val x);
ptx_val ptx_neg(ptx_builder *b, ptx_val x);
ptx_val ptx_copysign(ptx_builder *b, ptx_val sign, ptx_val magnitude);
ptx_val ptx_sad(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z);     /* z + |x - y| */
ptx_val ptx_clamp(ptx_builder *b, ptx_val x, ptx_val lo, ptx_val hi); /* min(max(x, lo), hi) */
ptx_val ptx_clamp_s32(ptx_builder *b, ptx_val x, int lo, int hi);
ptx_val ptx_testp_nan(ptx_builder *b, ptx_val x); /* f32, f64: a predicate */
ptx_val ptx_testp_finite(ptx_builder *b, ptx_val x);
/* Four 8-bit (two 16-by-8-bit) products added to c. The types of x and y determine their signs; the result is
 * s32 if either is signed. */
ptx_val ptx_dp4a(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c);
ptx_val ptx_dp2a_lo(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c);
ptx_val ptx_dp2a_hi(ptx_builder *b, ptx_val x, ptx_val y, ptx_val c);
/* Multi-word arithmetic: add with carry out, add with carry in and out; x and y are u32 (u64). */
ptx_val ptx_add_cc(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_addc(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_sub_cc(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_subc(ptx_builder *b, ptx_val x, ptx_val y);

/* ---- Bits: any type of the right width; the result has the type of the first operand ---- */

ptx_val ptx_and(ptx_builder *b, ptx_val x, ptx_val y); /* also predicates, like or, xor and not */
ptx_val ptx_or(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_xor(ptx_builder *b, ptx_val x, ptx_val y);
ptx_val ptx_not(ptx_builder *b, ptx_val x);
ptx_val ptx_cnot(ptx_builder *b, ptx_val x);
ptx_val ptx_lop3(ptx_builder *b, ptx_val x, ptx_val y, ptx_val z, unsigned table);
/* Tables of lop3 are built from these: PTX_LOP_A & PTX_LOP_B | PTX_LOP_C */
#define PTX_LOP_A 0xF0u
#define PTX_LOP_B 0xCCu
#define PTX_LOP_C 0xAAu
ptx_val ptx_prmt(ptx_builder *b, ptx_val x, ptx_val y, ptx_val selector);
ptx_val ptx_shl(ptx_builder *b, ptx_val x, ptx_val count);
ptx_val ptx_shr(ptx_builder *b, ptx_val x, ptx_val count); /* arithmetic for signed types */
/* funnel shift, count wraps at 32 */
ptx_val ptx_shf_l(ptx_builder *b, ptx_val lo, ptx_val hi, ptx_val count);
ptx_val ptx_shf_r(ptx_builder *b, ptx_val lo, ptx_val hi, ptx_val count);
ptx_val ptx_bfe(ptx_builder *b, ptx_val x, ptx_val pos, ptx_val len); /* sign-extends for signed types */
/* Inserts the `len` low bits of x into base at `pos`; the result has base's type. */
ptx_val ptx_bfi(ptx_builder *b, ptx_val x, ptx_val base, ptx_val pos, ptx_val len);
ptx_val ptx_bfind(ptx_builder *b, ptx_val x); /* u32: position of the highest bit that is not the sign */
ptx_val ptx_popc(ptx_builder *b, ptx_val x);  /* u32 */
ptx_val ptx_clz(ptx_builder *b, ptx_val x);   /* u32 */
ptx_val ptx_brev(ptx_builder *b, ptx_val x);
/* Packs n equal parts into one value of n times the width (2 x 16, 2 x 32, 4 x 16, 4 x E2M1X2 bytes, ...),
 * part 0 lowest. */
ptx_val ptx_pack(ptx_builder *b, ptx_type type, const ptx_val *parts, int n);
ptx_val ptx_pack2(ptx_builder *b, ptx_type type, ptx_val lo, ptx_val hi);
void ptx_unpack(ptx_builder *b, ptx_type part, ptx_val x, ptx_val *parts, int n);

/* ---- Comparing ---- */

/* EQ to GE: ordered (false with a NaN); EQU to GEU: true with a NaN; NUM: neither is NaN; NAN: either is. */
typedef enum ptx_cmp {
    PTX_EQ,
    PTX_NE,
    PTX_LT,
    PTX_LE,
    PTX_GT,
    PTX_GE,
    PTX_EQU,
    PTX_NEU,
    PTX_LTU,
    PTX_LEU,
    PTX_GTU,
    PTX_GEU,
    PTX_NUM,
    PTX_NAN
} ptx_cmp;

ptx_val ptx_setp(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y);
/* (x cmp y) and p, or p */
ptx_val ptx_setp_and(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val p);
ptx_val ptx_setp_or(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val p);
ptx_val ptx_selp(ptx_builder *b, ptx_val if_true, ptx_val if_false, ptx_val pred);
/* f16x2, bf16x2: one predicate per half. */
void ptx_setp_x2(ptx_builder *b, ptx_cmp cmp, ptx_val x, ptx_val y, ptx_val *lo, ptx_val *hi);

/* ---- Conversions ---- */

/* The plain conversion: exact if possible, otherwise to nearest even (float to float, integer to float),
 * dropping the high bits (integer to integer). Float to integer must name its rounding: see below. */
ptx_val ptx_cvt(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rn(ptx_builder *b, ptx_type to, ptx_val x); /* to a narrower float, or from an integer */
ptx_val ptx_cvt_rz(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rm(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rp(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rni(ptx_builder *b, ptx_type to, ptx_val x); /* to an integer, or to an integral float */
ptx_val ptx_cvt_rzi(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rmi(ptx_builder *b, ptx_type to, ptx_val x);
ptx_val ptx_cvt_rpi(ptx_builder *b, ptx_type to, ptx_val x);
/* Rounding to tf32: rna (ties away from zero), on sm_80 and later. */
ptx_val ptx_cvt_rna_tf32(ptx_builder *b, ptx_val x);
/* The low bits of a wider integer register, read as `from`: ptx_cvt_low(b, PTX_F32, PTX_U8, word), (b,
 * PTX_S32, PTX_S8, word). For u8 and s8 as `to`, the result is a u32 or s32. */
ptx_val ptx_cvt_low(ptx_builder *b, ptx_type to, ptx_type from, ptx_val x);
/* Saturating: integer to a narrower integer; float to float clamped to [0, 1]. */
ptx_val ptx_cvt_sat(ptx_builder *b, ptx_type to, ptx_val x);
/* Two values into a pair: f32 pairs to f16x2, bf16x2, e4m3x2, e5m2x2, e2m1x2; for ue8m0x2 see ptx_cvt_ue8m0.
 * The fp8 and fp4 pairs saturate to the largest finite number, as the instruction always does. */
ptx_val ptx_cvt_pair(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi);
ptx_val ptx_cvt_pair_relu(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi);
ptx_val ptx_cvt_pair_rz(ptx_builder *b, ptx_type to, ptx_val lo, ptx_val hi); /* f16x2, bf16x2 */
/* f32 to f16, bf16; f16x2 to fp8; pairs to f16x2 */
ptx_val ptx_cvt_relu(ptx_builder *b, ptx_type to, ptx_val x);
/* f16x2 to e4m3x2, e5m2x2; f32 to f16, bf16, tf32 */
ptx_val ptx_cvt_satfinite(ptx_builder *b, ptx_type to, ptx_val x);
/* Scales as powers of two, rounded down (rz) or up (rp), saturating; from two f32. */
ptx_val ptx_cvt_ue8m0_rz(ptx_builder *b, ptx_val lo, ptx_val hi);
ptx_val ptx_cvt_ue8m0_rp(ptx_builder *b, ptx_val lo, ptx_val hi);
/* The reverse, e4m3x2, e5m2x2 and e2m1x2 to f16x2, and ue8m0x2 to bf16x2, is ptx_cvt. */

/* ---- Memory ---- */

typedef enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_CONST, PTX_LOCAL } ptx_space;

/* Cache behaviour of a load or store. One of each group may be or'ed. */
typedef enum ptx_cache {
    PTX_CACHE_DEFAULT = 0,
    PTX_NC = 1, /* global loads: data is read-only during the whole kernel */
    PTX_CA = 2,
    PTX_CG = 4,
    PTX_CS = 8,
    PTX_LU = 16,
    PTX_CV = 32,
    PTX_WB = 64,
    PTX_WT = 128,
    PTX_L1_NO_ALLOCATE = 256,
    PTX_L1_EVICT_FIRST = 512,
    PTX_L1_EVICT_LAST = 1024,
    PTX_L1_EVICT_UNCHANGED = 2048,
    PTX_L2_64B = 4096,
    PTX_L2_128B = 8192,
    PTX_L2_256B = 16384,
    PTX_VOLATILE = 32768,
    PTX_RELAXED_GPU = 65536,
    PTX_ACQUIRE_GPU = 131072,
    PTX_RELEASE_GPU = 262144
} ptx_cache;

/* base + index * scale as a u64 (as a u32 if index and base are u32, for shared memory). The type of the
 * index determines its sign. */
ptx_val ptx_at(ptx_builder *b, ptx_val base, ptx_val index, unsigned scale);
/* Loads of u8, s8 and b8 give u32, s32 and u32; all other types are unchanged. Shared addresses are u32, all
 * others u64. */
ptx_val ptx_ld(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset);
/* n: 1, 2, 4, or 8 (32-bit elements, global, sm_100 and later) */
void ptx_ld_vec(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
                ptx_val *out, int n);
/* The same into variables; may be guarded (ptx_when). */
void ptx_ld_vec_into(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address,
                     int offset, const ptx_val *vars, int n);
/* Loads where pred is true, and gives `otherwise` elsewhere. */
ptx_val ptx_ld_if(ptx_builder *b, ptx_val pred, ptx_space space, unsigned cache, ptx_type type,
                  ptx_val address, int offset, ptx_val otherwise);
void ptx_st(ptx_builder *b, ptx_space space, unsigned cache, ptx_val address, int offset, ptx_val x);
/* Stores the low bits of a 32-bit value as u8; or as any type not wider than x. */
void ptx_st_as(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
               ptx_val x);
void ptx_st_vec(ptx_builder *b, ptx_space space, unsigned cache, ptx_val address, int offset,
                const ptx_val *x, int n);
ptx_val ptx_ld_global(ptx_builder *b, ptx_type type, ptx_val address, int offset);
ptx_val ptx_ld_global_nc(ptx_builder *b, ptx_type type, ptx_val address, int offset);
ptx_val ptx_ld_shared(ptx_builder *b, ptx_type type, ptx_val address, int offset);
ptx_val ptx_ld_const(ptx_builder *b, ptx_type type, ptx_val address, int offset);
void ptx_st_global(ptx_builder *b, ptx_val address, int offset, ptx_val x);
void ptx_st_global_u8(ptx_builder *b, ptx_val address, int offset, ptx_val x);
void ptx_st_shared(ptx_builder *b, ptx_val address, int offset, ptx_val x);
void ptx_prefetch_l1(ptx_builder *b, ptx_val address, int offset); /* global */
void ptx_prefetch_l2(ptx_builder *b, ptx_val address, int offset);

/* Shared memory of a fixed size: its u32 address. Likewise local memory (per thread): a u64 address. */
ptx_val ptx_shared(ptx_builder *b, const char *name, ptx_type type, unsigned count, unsigned align);
ptx_val ptx_local(ptx_builder *b, const char *name, ptx_type type, unsigned count, unsigned align);
/* The shared memory whose size is given at the launch; once per kernel. */
ptx_val ptx_shared_dynamic(ptx_builder *b, unsigned align);
/* A constant table of the module, its elements given as bits: its u64 address in that space (PTX_CONST or
 * PTX_GLOBAL). */
ptx_val ptx_table(ptx_builder *b, ptx_space space, const char *name, ptx_type type, const uint64_t *bits,
                  unsigned count);
ptx_val ptx_cvta_to(ptx_builder *b, ptx_space space, ptx_val generic);
ptx_val ptx_cvta(ptx_builder *b, ptx_space space, ptx_val address); /* u64, to generic */

/* Integer atomics; they return the old value. ADD, MIN, MAX, EXCH, CAS: u32, s32, u64; AND, OR, XOR: any 32
 * or 64 bits; INC, DEC: u32. */
typedef enum ptx_atom_op {
    PTX_ATOM_ADD,
    PTX_ATOM_MIN,
    PTX_ATOM_MAX,
    PTX_ATOM_INC,
    PTX_ATOM_DEC,
    PTX_ATOM_AND,
    PTX_ATOM_OR,
    PTX_ATOM_XOR,
    PTX_ATOM_EXCH
} ptx_atom_op;
ptx_val ptx_atom(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset, ptx_val x);
ptx_val ptx_atom_acq_rel(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset,
                         ptx_val x);
ptx_val ptx_atom_cas(ptx_builder *b, ptx_space space, ptx_val address, int offset, ptx_val expected,
                     ptx_val x);
void ptx_red(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset, ptx_val x);

/* ---- Asynchronous copies (sm_80 and later) and mbarriers ---- */

/* 4, 8 or 16 bytes from global to shared. cg: 16 bytes, bypassing L1. cache: PTX_L2_* or none. */
void ptx_cp_async_ca(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned bytes,
                     unsigned cache);
void ptx_cp_async_cg(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned cache);
/* Reads only src_bytes (u32, at most `bytes`) and fills the rest with zeros. */
void ptx_cp_async_ca_zfill(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned bytes,
                           ptx_val src_bytes, unsigned cache);
void ptx_cp_async_cg_zfill(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, ptx_val src_bytes,
                           unsigned cache);
void ptx_cp_async_commit(ptx_builder *b);
void ptx_cp_async_wait(ptx_builder *b, unsigned pending_groups);
void ptx_cp_async_wait_all(ptx_builder *b);
void ptx_mbarrier_init(ptx_builder *b, ptx_val shared, int offset, ptx_val count);
void ptx_mbarrier_inval(ptx_builder *b, ptx_val shared, int offset);
ptx_val ptx_mbarrier_arrive(ptx_builder *b, ptx_val shared, int offset); /* the state, b64 */
ptx_val ptx_mbarrier_arrive_expect_tx(ptx_builder *b, ptx_val shared, int offset, ptx_val bytes); /* sm_90 */
ptx_val ptx_mbarrier_test_wait(ptx_builder *b, ptx_val shared, int offset, ptx_val state); /* a predicate */
ptx_val ptx_mbarrier_test_wait_parity(ptx_builder *b, ptx_val shared, int offset, ptx_val parity);
ptx_val ptx_mbarrier_try_wait(ptx_builder *b, ptx_val shared, int offset, ptx_val state); /* sm_90 */
ptx_val ptx_mbarrier_try_wait_parity(ptx_builder *b, ptx_val shared, int offset, ptx_val parity);
void ptx_cp_async_mbarrier_arrive(ptx_builder *b, ptx_val shared, int offset);
void ptx_cp_async_mbarrier_arrive_noinc(ptx_builder *b, ptx_val shared, int offset);

/* ---- Warps and blocks ---- */

/* Shuffles of any 32-bit value among all 32 lanes of a warp (member mask ffffffff). */
ptx_val ptx_shfl_bfly(ptx_builder *b, ptx_val x, ptx_val lane_mask);
ptx_val ptx_shfl_up(ptx_builder *b, ptx_val x, ptx_val delta);
ptx_val ptx_shfl_down(ptx_builder *b, ptx_val x, ptx_val delta);
ptx_val ptx_shfl_idx(ptx_builder *b, ptx_val x, ptx_val lane);
/* The general form: clamp is operand c; *in_range, if not null, receives the predicate. */
typedef enum ptx_shfl_mode { PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX } ptx_shfl_mode;
ptx_val ptx_shfl(ptx_builder *b, ptx_shfl_mode mode, ptx_val x, ptx_val lane, ptx_val clamp, ptx_val members,
                 ptx_val *in_range);
ptx_val ptx_vote_all(ptx_builder *b, ptx_val pred);
ptx_val ptx_vote_any(ptx_builder *b, ptx_val pred);
ptx_val ptx_vote_uni(ptx_builder *b, ptx_val pred);
ptx_val ptx_ballot(ptx_builder *b, ptx_val pred); /* u32 */
ptx_val ptx_match_any(ptx_builder *b, ptx_val x); /* u32 mask of the lanes with the same x */
ptx_val ptx_match_all(ptx_builder *b, ptx_val x);
ptx_val ptx_activemask(ptx_builder *b);
/* redux.sync over the warp: add, min, max: u32, s32; and, or, xor: 32 bits. sm_80 and later. */
typedef enum ptx_redux_op {
    PTX_REDUX_ADD,
    PTX_REDUX_MIN,
    PTX_REDUX_MAX,
    PTX_REDUX_AND,
    PTX_REDUX_OR,
    PTX_REDUX_XOR
} ptx_redux_op;
ptx_val ptx_redux(ptx_builder *b, ptx_redux_op op, ptx_val x);
void ptx_syncthreads(ptx_builder *b); /* bar.sync 0 */
void ptx_bar_sync(ptx_builder *b, unsigned barrier, unsigned threads);
void ptx_bar_arrive(ptx_builder *b, unsigned barrier, unsigned threads);
/* barrier.sync: threads of a warp may arrive separately; numbers may be run-time values */
void ptx_barrier_sync(ptx_builder *b, ptx_val barrier, ptx_val threads);
/* bar.red: and, or and popc of a predicate over the block. */
ptx_val ptx_bar_red_and(ptx_builder *b, unsigned barrier, ptx_val pred);
ptx_val ptx_bar_red_or(ptx_builder *b, unsigned barrier, ptx_val pred);
ptx_val ptx_bar_red_popc(ptx_builder *b, unsigned barrier, ptx_val pred);
void ptx_syncwarp(ptx_builder *b); /* bar.warp.sync of all 32 lanes */
void ptx_membar_cta(ptx_builder *b);
void ptx_membar_gl(ptx_builder *b);
void ptx_membar_sys(ptx_builder *b);
void ptx_fence_acq_rel_gpu(ptx_builder *b);
void ptx_fence_acq_rel_cta(ptx_builder *b);
void ptx_nanosleep(ptx_builder *b, ptx_val nanoseconds);
void ptx_griddepcontrol_wait(ptx_builder *b); /* sm_90: programmatic dependent launch */
void ptx_griddepcontrol_launch(ptx_builder *b);
/* From here on, ptx_ld_global_nc and PTX_NC become plain loads: of memory that may have been written since the kernel began, or
 * that ptxas must not load long before it is used. */
void ptx_coherent(ptx_builder *b);
/* For a kernel that may be launched before the one in front of it has ended, to be called before it touches memory: from
 * sm_90 on, it waits for that kernel, then lets the next one begin, and its loads are coherent. Without effect on earlier SMs. */
void ptx_dependent(ptx_builder *b);

/* ---- Matrices ---- */

/* n = 1, 2, 4 matrices of 8x8 16-bit elements; each lane passes the shared address of a row. out: n u32. */
void ptx_ldmatrix(ptx_builder *b, ptx_val shared, int offset, ptx_val *out, int n);
void ptx_ldmatrix_trans(ptx_builder *b, ptx_val shared, int offset, ptx_val *out, int n);
void ptx_stmatrix(ptx_builder *b, ptx_val shared, int offset, const ptx_val *x, int n); /* sm_90 */
ptx_val ptx_movmatrix_trans(ptx_builder *b, ptx_val x);

/* The rows of mma.def: D = A * B + C by a warp, A row-major, B column-major; and the number of 32-bit
 * registers of each fragment. */
typedef enum ptx_mma_id {
#define MMA(id, m, n, k, d, a, b, c, need) PTX_MMA_##id,
#include "mma.def"
#undef MMA
    PTX_MMA_COUNT
} ptx_mma_id;
typedef struct ptx_mma_shape {
    const char *name; /* "m16n8k16_f32_bf16" */
    int m, n, k;
    int n_a, n_b, n_c; /* registers; D has as many as C */
    ptx_type c_type;   /* f32, f16x2 or s32 */
} ptx_mma_shape;
ptx_mma_shape ptx_mma_describe(ptx_mma_id id);
/* Whether the target supports it. */
bool ptx_mma_has(const ptx_sm *sm, ptx_mma_id id);
/* The elements of a and b_ are any 32-bit values. D is new values, or with ptx_mma_into variables (which may
 * be C itself). */
void ptx_mma(ptx_builder *b, ptx_mma_id id, ptx_val *d, const ptx_val *a, const ptx_val *b_,
             const ptx_val *c);
void ptx_mma_into(ptx_builder *b, ptx_mma_id id, const ptx_val *d, const ptx_val *a, const ptx_val *b_,
                  const ptx_val *c);
/* integers */
void ptx_mma_satfinite(ptx_builder *b, ptx_mma_id id, ptx_val *d, const ptx_val *a, const ptx_val *b_,
                       const ptx_val *c);

/* ---- C numbers as values ---- */

static inline ptx_val ptx_from_val(ptx_val x)
{
    return x;
}
static inline ptx_val ptx_from_int(long long x)
{
    return (ptx_val){.type = PTX_INT, .kind = PTX_NUMBER, .bits = (uint64_t)x};
}
static inline ptx_val ptx_from_real(double x)
{
    union {
        double real;
        uint64_t bits;
    } u = {x};
    return (ptx_val){.type = PTX_REAL, .kind = PTX_NUMBER, .bits = u.bits};
}

#ifndef PTX_NO_CALL_MACROS
#include "ptx_call.h"
#endif
#endif
