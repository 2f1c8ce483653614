/* Finds the lane function of an instruction, and runs it in the rounding mode it needs. */
#include "table.h"

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/* The flag of each modifier. */
static const uint32_t flag_of_mod[M_COUNT] = {
#define X(name, mod) [mod] = V_##name,
    LANE_FLAGS(X)
#undef X
        [M_rni] = V_INTEGRAL,
    [M_rzi] = V_INTEGRAL,
    [M_rmi] = V_INTEGRAL,
    [M_rpi] = V_INTEGRAL,
};

/* Slots whose words are not flags: setp.hi is a comparison, mul.hi a half of the product. */
static const bool slot_has_no_flags[S_COUNT] = {
    [S_CMP] = true,  [S_BOOL] = true, [S_OP] = true,   [S_ASEL] = true,
    [S_BSEL] = true, [S_CSEL] = true, [S_DSEL] = true,
};

/* The slot that selects among an opcode's functions, if it has one. */
static const uint8_t picking_slot[OP_COUNT] = {
    [OP_setp] = S_CMP, [OP_set] = S_CMP, [OP_testp] = S_MODE, [OP_prmt] = S_MODE, [OP_div] = S_APPROX,
};

/* rni rzi rmi rpi are absent: rounding to an integral value is done in the nearest mode. */
static const lanes_rounding rounding_of_mod[M_COUNT] = {
    [M_rz] = LANES_ZERO,
    [M_rm] = LANES_DOWN,
    [M_rp] = LANES_UP,
};

/* Approximated on a GPU: always, and if no rounding is written. */
static const bool is_approximate[OP_COUNT] = {
    [OP_sin] = true, [OP_cos] = true, [OP_lg2] = true, [OP_ex2] = true, [OP_tanh] = true, [OP_rsqrt] = true,
};
static const bool rounds_or_approximates[OP_COUNT] = {[OP_div] = true, [OP_rcp] = true, [OP_sqrt] = true};

static const lane_table *const tables[][2] = {
#ifdef LANES_HAVE_V3
#define X(group) {&lanes_##group##_baseline, &lanes_##group##_v3},
#else
#define X(group) {&lanes_##group##_baseline, &lanes_##group##_baseline},
#endif
    LANE_GROUPS(X)
#undef X
};
enum { N_TABLES = sizeof tables / sizeof *tables };

/* The range of an opcode's rows in each table: set once, before the first search. */
static struct {
    uint16_t first, last;
} range[N_TABLES][OP_COUNT];
static pthread_once_t ranges_once = PTHREAD_ONCE_INIT;

static void find_ranges(void)
{
    for (int t = 0; t < N_TABLES; t++)
        for (int r = 0; r < tables[t][0]->n_rows; r++) {
            int op = tables[t][0]->rows[r].op;
            if (range[t][op].last == 0)
                range[t][op].first = (uint16_t)r;
            range[t][op].last = (uint16_t)(r + 1);
        }
}

static uint32_t flags_of(const pvm_inst *inst)
{
    uint32_t flags = 0;
    for (int slot = 0; slot < S_COUNT; slot++)
        if (inst->mod[slot] < M_COUNT && !slot_has_no_flags[slot])
            flags |= flag_of_mod[inst->mod[slot]];
    bool of_three = (inst->op == OP_min || inst->op == OP_max) && inst->n_operands - inst->n_results == 3;
    return of_three ? flags | V_THREE : flags;
}

static lane_fn *find_in(int t, const pvm_inst *inst, uint32_t flags, lanes_level level)
{
    const pvm_type type = pvm_slot_type(inst, S_TYPE), type2 = pvm_slot_type(inst, S_TYPE2);
    const unsigned pick = picking_slot[inst->op] ? inst->mod[picking_slot[inst->op]] : 0;
    for (int r = range[t][inst->op].first; r < range[t][inst->op].last; r++) {
        const lane_row *row = &tables[t][level]->rows[r];
        if (row->op == inst->op && row->type == type && row->type2 == type2 && row->pick == pick &&
            (flags & row->flags) == row->flags && (flags & ~row->flags & ~row->any) == 0)
            return row->run;
    }
    return NULL;
}

lane_op lanes_find(const pvm_inst *inst, lanes_level level)
{
    lane_op op = {NULL, LANES_NEAREST, false};
    pthread_once(&ranges_once, find_ranges);
    uint32_t flags = flags_of(inst);
    for (int t = 0; t < N_TABLES && !op.run; t++)
        op.run = find_in(t, inst, flags, level);
    if (op.run) {
        const pvm_type type = pvm_slot_type(inst, S_TYPE);
        /* Results narrower than f32 are rounded by integer arithmetic. */
        if (type == T_F32 || type == T_F64 || type == T_F32X2)
            op.rounding = rounding_of_mod[inst->mod[S_RND]];
        op.inexact = inst->mod[S_APPROX] != M_NONE || is_approximate[inst->op] ||
                     (rounds_or_approximates[inst->op] && inst->mod[S_RND] == M_NONE &&
                      pvm_slot_type(inst, S_TYPE) == T_F32);
    }
    return op;
}

lanes_level lanes_best_level(void)
{
#ifdef LANES_HAVE_V3
    const char *forced = getenv("PTXVM_LANES");
    if (forced && strcmp(forced, "baseline") == 0)
        return LANES_BASELINE;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return LANES_V3;
#endif
    return LANES_BASELINE;
}

#ifdef __SSE2__
/* Only SSE's control word: writing the x87's takes ten times as long, and it affects nothing here but the C
 * library's fma on processors without that instruction. */
static bool switch_sse(const lane_op *op, void *const *d, const void *const *s, const pvm_inst *inst)
{
    static const unsigned mode[] = {
        [LANES_NEAREST] = _MM_ROUND_NEAREST,
        [LANES_ZERO] = _MM_ROUND_TOWARD_ZERO,
        [LANES_DOWN] = _MM_ROUND_DOWN,
        [LANES_UP] = _MM_ROUND_UP,
    };
    if (!__builtin_cpu_supports("fma"))
        return false;
    const unsigned before = _mm_getcsr();
    _mm_setcsr((before & ~(unsigned)_MM_ROUND_MASK) | mode[op->rounding]);
    op->run(d, s, inst);
    _mm_setcsr(before);
    return true;
}
#else
static bool switch_sse(const lane_op *op, void *const *d, const void *const *s, const pvm_inst *inst)
{
    (void)op, (void)d, (void)s, (void)inst;
    return false;
}
#endif

void lanes_run(const lane_op *op, void *const *d, const void *const *s, const pvm_inst *inst)
{
    static const int mode[] = {
        [LANES_NEAREST] = FE_TONEAREST,
        [LANES_ZERO] = FE_TOWARDZERO,
        [LANES_DOWN] = FE_DOWNWARD,
        [LANES_UP] = FE_UPWARD,
    };
    if (op->rounding == LANES_NEAREST) {
        op->run(d, s, inst);
        return;
    }
    if (switch_sse(op, d, s, inst))
        return;
    fesetround(mode[op->rounding]);
    op->run(d, s, inst);
    fesetround(FE_TONEAREST);
}
