/* The text of a kernel as a list of steps: which registers each reads and writes, and where it goes next. */
#ifndef QDNN_MUTATE_PROGRAM_H
#define QDNN_MUTATE_PROGRAM_H

#include "mutate/text.h"

#include <stddef.h>

enum { STEP_REGISTERS = 24, NO_REGISTER = -1, NO_STEP = -1 };

typedef struct step {
    instruction i;
    const char *line;
    int guard; /* a predicate, or NO_REGISTER */
    bool guard_is_negated;
    int reg[OPERANDS_MAX]; /* of operands that are a register and nothing else */
    int writes[STEP_REGISTERS], n_writes;
    int reads[STEP_REGISTERS], n_reads; /* without the guard */
    int next, target;                   /* NO_STEP: none. Both, where a branch is guarded */
    bool is_target;                     /* of a branch */
    bool is_joined;                     /* a branch comes here from below: the first step of a loop */
} step;

typedef struct program {
    char *text;
    step *steps;
    int n_steps;
    char (*names)[12]; /* of the registers, by number */
    uint8_t *width;    /* in bits; 1: predicates */
    int *definitions;  /* steps that write it; one with a guard counts twice */
    int n_registers;
    int number; /* of the text: another for each */
} program;

/* The program of a text; the last one is kept, so that asking again costs a comparison. Null without memory, and where the text has
 * what is not understood. */
const program *program_of(const char *ptx);
/* The number of a register, or NO_REGISTER. */
int program_register(const program *p, const char *name);
/* The step of the line that has this place of the text that the program was made of; NO_STEP for others. */
int program_step_at(const program *p, size_t place);
/* Parses the line as a step of this program; false for a register that the program does not have. */
bool program_parse(const program *p, const char *line, step *s);

bool step_starts(const step *s, const char *opcode);
bool step_is(const step *s, const char *opcode);
/* The bits of the integer type behind the opcode's last dot, and whether it has a sign; 0 for floats and predicates. */
int step_type(const step *s, bool *has_sign);

/* `mma` of bytes, with integer sums: how many products it adds to each addend, which are the last registers that it reads; 0 for all
 * others. */
int step_adds_products(const step *s);

/* The lowest bits. */
uint64_t bits_mask(int width);
int bits_trailing_zeros(uint64_t x);
/* Up to the highest bit that is 1. */
int bits_length(uint64_t x);

#endif
