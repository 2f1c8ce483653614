/* Reading the text of a kernel: instructions, and the only definition of a register. */
#ifndef QDNN_MUTATE_TEXT_H
#define QDNN_MUTATE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { OPERANDS_MAX = 6, TEXT_MAX = 64 };

typedef struct instruction {
    char opcode[TEXT_MAX], operand[OPERANDS_MAX][TEXT_MAX];
    int n;
} instruction;

/* The instruction of a line; false for labels, directives and guarded instructions. What is in braces is one operand. */
bool text_parse(const char *line, instruction *i);
/* The same of a line that may have a guard. */
bool text_parse_guarded(const char *line, instruction *i);
/* Null past the last. */
const char *text_next_line(const char *line);
/* The only instruction whose destination is that register, alone or among others in braces; false where one of several is, or a
 * guarded one. */
bool text_definition(const char *ptx, const char *reg, instruction *def);
/* Whether the register has been written wherever that place is reached: its only definition is before it, with no label between. */
bool text_is_written_before(const char *ptx, const char *reg, const char *place);
/* Whether the register stands anywhere in the line. */
bool text_names(const char *line, const char *reg);
/* The only instruction that reads a register with one definition; false where several do, or a guarded one. */
bool text_only_reader(const char *ptx, const char *reg, instruction *reader);
/* Calls `accepts` with each instruction that reads the register; false where one is not accepted or has a guard, or the register is
 * written in several places. */
bool text_all_readers(const char *ptx, const char *reg, bool (*accepts)(const instruction *i, void *context),
                      void *context);
/* In how many lines it stands. */
int text_count_lines(const char *ptx, const char *reg);
/* Whether the instruction writes a register, its first operand. */
bool text_writes(const instruction *i);
bool text_is_opcode(const instruction *i, const char *opcode);
/* The bits of an unsigned integer or of a float. */
bool text_constant(const char *operand, uint64_t *bits);

#endif
