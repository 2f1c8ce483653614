/* The table that lanes_find searches: one row per function, keyed by opcode, types and the modifiers that
 * select between functions.
 *
 * Each file in loops/ is compiled once per level and defines one lane_table, named by LANES_GROUP(level).
 * Modifiers that a function reads from the instruction itself are in `any` of its row, so that one row covers
 * all of them. */
#ifndef PTXVM_LANES_TABLE_H
#define PTXVM_LANES_TABLE_H

#include "ptxvm/lanes.h"

/* Modifiers that select between functions: the flag's name, and the modifier that sets it in any slot. */
#define LANE_FLAGS(X)                                                                                        \
    X(FTZ, M_ftz)                                                                                            \
    X(SAT, M_sat)                                                                                            \
    X(SATFINITE, M_satfinite)                                                                                \
    X(RELU, M_relu)                                                                                          \
    X(NAN, M_NaN)                                                                                            \
    X(XORSIGN, M_xorsign)                                                                                    \
    X(ABS, M_abs)                                                                                            \
    X(OOB, M_oob)                                                                                            \
    X(HI, M_hi)                                                                                              \
    X(WIDE, M_wide)                                                                                          \
    X(CC, M_cc)                                                                                              \
    X(SHIFTAMT, M_shiftamt)                                                                                  \
    X(WRAP, M_wrap)                                                                                          \
    X(RIGHT, M_r)                                                                                            \
    X(RS, M_rs)                                                                                              \
    X(PACK, M_pack)

enum {
#define X(name, mod) LANE_BIT_##name,
    LANE_FLAGS(X)
#undef X
        LANE_BIT_INTEGRAL,
    LANE_BIT_THREE
};

enum {
    V_NONE = 0,
#define X(name, mod) V_##name = 1 << LANE_BIT_##name,
    LANE_FLAGS(X)
#undef X
        V_INTEGRAL = 1 << LANE_BIT_INTEGRAL, /* rni rzi rmi rpi */
    V_THREE = 1 << LANE_BIT_THREE,           /* min and max of three */
    V_FTZ_SAT = V_FTZ | V_SAT,
    V_ANY = (1 << (LANE_BIT_THREE + 1)) - 1
};

typedef struct lane_row {
    uint8_t op;          /* pvm_opcode */
    uint8_t type, type2; /* S_TYPE and S_TYPE2; T_NONE: the slot is empty */
    uint16_t
        pick; /* value of the opcode's picking slot (setp's comparison ...), see lanes.c; 0 if it has none */
    uint32_t flags, any; /* flags that must be set; flags that may be set */
    lane_fn *run;
} lane_row;

typedef struct lane_table {
    const lane_row *rows;
    int n_rows;
} lane_table;

/* The groups of functions: one file each in loops/. */
#define LANE_GROUPS(X)                                                                                       \
    X(integer) X(bits) X(carry) X(real) X(half) X(approx) X(compare) X(convert) X(convert_small) X(video)

#define X(group) extern const lane_table lanes_##group##_baseline, lanes_##group##_v3;
LANE_GROUPS(X)
#undef X

#endif
