/* Helps the tests of the lane loops: an instruction made from its mnemonic, and registers to run it on. */
#ifndef TEST_LANES_H
#define TEST_LANES_H

#include "ptxvm/lanes.h"
#include "test.h"

enum { LANES_MAX_SOURCES = 6, LANES_MAX_RESULTS = 3 };

/* One instruction on 32 lanes. `shape` names the operands: results, ':', sources; p is a predicate, b h w d
 * one lane of 1, 2, 4, 8 bytes: "w:ww" is add.s32, "wp:wwp" addc.cc.s32 (with the flag as predicate). An
 * upper case letter is an immediate. */
typedef struct lanes_inst {
    pvm_inst inst;
    pvm_operand operand[LANES_MAX_RESULTS + LANES_MAX_SOURCES];
    char result[LANES_MAX_RESULTS + 1], source[LANES_MAX_SOURCES + 1];
    int n_results, n_sources;
    _Alignas(64) uint8_t d[LANES_MAX_RESULTS][WARP * 8];
    _Alignas(64) uint8_t s[LANES_MAX_SOURCES][WARP * 8];
} lanes_inst;

/* False, with a failure reported, where the mnemonic has a word that PTX does not know. */
bool lanes_make(lanes_inst *li, const char *mnemonic, const char *shape);
void lanes_set_immediate(lanes_inst *li, int source, uint64_t bits);
void lanes_put(uint8_t *reg, char kind, int lane, uint64_t value);
uint64_t lanes_get(const uint8_t *reg, char kind, int lane);
/* Runs it at that level; false, with a failure reported, where there is no lane function. */
bool lanes_execute(lanes_inst *li, lanes_level level);
/* Result 0 of a one-result instruction whose sources are the same in all lanes. */
uint64_t lanes_one(const char *mnemonic, const char *shape, const uint64_t *sources);

/* A row of expected values: "add.s32", "w:ww", results, sources. */
typedef struct lanes_row {
    const char *mnemonic, *shape;
    uint64_t result[2];
    uint64_t source[LANES_MAX_SOURCES];
} lanes_row;
void lanes_check_rows(const lanes_row *rows, int n);

uint64_t lanes_random(uint64_t *state);
/* Random bits that are often an edge: zero, infinities, NaN, subnormals, near powers of two. bits: 16 (f16,
 * and bf16), 32, 64. */
uint64_t lanes_random_float(uint64_t *state, int bits);

#endif
