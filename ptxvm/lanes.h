/* The lane loops: what an instruction that only reads and writes registers does to a whole warp at once.
 *
 * A register is 32 lanes side by side, each as wide as its type (u8..b128: 1, 2, 4, 8 or 16 bytes, 64-byte
 * aligned); a predicate is one uint32_t, bit i for lane i. A lane function computes all 32 lanes, active
 * or not: it does not trap whatever the inputs (no integer division by zero, no INT_MIN / -1). The executor
 * preserves the values of inactive lanes. A result may be the same register as a source (exactly the same
 * address, never a partial overlap).
 *
 * d: the results, in the order written, and last the carry flag (a predicate) if the instruction has .cc.
 *    A result written as _ still needs a register.
 * s: the sources, in the order written, and last the carry flag if the opcode is addc, subc or madc.
 *    Immediates are 32 equal lanes; a predicate immediate is a mask of all ones or zero; a negated predicate
 *    operand is already negated (for vmad's negated operands the function looks at inst->operand). A vector
 *    operand is as many sources as it has elements (cvt's {a, b, e, f}). lop3's table is read from
 *    inst->operand.
 * inst: modifiers that do not determine the function; n_results tells whether there is a second result, S_BOOL
 *    whether there is a predicate to combine with.
 * The width of each is that of the operand type in the form: the executor widens and narrows registers that are
 * wider than the instruction's type (allowed for cvt, ld, st) before and after. */
#ifndef PTXVM_LANES_H
#define PTXVM_LANES_H

#include "isa.h"

#define WARP 32

typedef void lane_fn(void *const *d, const void *const *s, const pvm_inst *inst);

/* The rounding mode that the processor must be in while the function runs. */
typedef enum { LANES_NEAREST, LANES_ZERO, LANES_DOWN, LANES_UP } lanes_rounding;

typedef struct lane_op {
    lane_fn *run; /* null: not a lane instruction */
    lanes_rounding rounding;
    bool inexact; /* .approx or .full: correctly rounded here, different on a GPU */
} lane_op;

/* Which build of the loops: the baseline, or x86-64-v3 (AVX2, FMA, F16C). Both give the same bits. */
typedef enum { LANES_BASELINE, LANES_V3 } lanes_level;

/* The best level for this processor; PTXVM_LANES=baseline in the environment forces the baseline. */
lanes_level lanes_best_level(void);

/* The lane function of an instruction; .run is null if there is none (memory, control flow, warp-level,
 * tensor, mov). */
lane_op lanes_find(const pvm_inst *inst, lanes_level level);

/* Calls op->run with the processor in the required rounding mode, switched once per warp. */
void lanes_run(const lane_op *op, void *const *d, const void *const *s, const pvm_inst *inst);

#endif
