/* Instructions generated from the rows of isa.def: each row's own pattern, with each choice and each optional
 * part in turn. */
#ifndef TEST_FORM_EXAMPLES_H
#define TEST_FORM_EXAMPLES_H

#include "ptxvm/front/front.h"

/* Text that grows towards `end`, and is truncated there. */
typedef struct form_text {
    char *at, *end;
} form_text;
void form_put(form_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How operands are written: registers of the type's size; with optional operands ("?") as well; numbers where
 * they are allowed; 64-bit registers where wider ones are allowed; !p for p; _ for results. */
typedef enum {
    FORM_REGISTERS,
    FORM_OPTIONALS,
    FORM_NUMBERS,
    FORM_WIDER,
    FORM_NEGATED,
    FORM_SINKS,
    FORM_STYLES
} form_style;

/* The choices of an example: optional group `group` is present (0: none), and modifier `varied` has its
 * choice `choice`. */
typedef struct form_plan {
    int group, varied, choice;
    form_style style;
} form_plan;

extern const form_plan form_plan_plain; /* the first choices, without optional parts */

/* All plans of one form: its first choices, each other choice, each optional group. Returns their number, at
 * most `most`. */
int form_plans(const form_table *table, const form *f, form_plan *plans, int most);

/* Only the modifiers, which are also stored in inst's slots; and a whole instruction with its ';'. */
void form_put_mods(form_text *t, const form_table *table, const form *f, form_plan how, pvm_inst *inst);
void form_put_example(form_text *t, const form_table *table, const form *f, form_plan how);

/* The start of a module for the first target that a form names; and a kernel around instructions. */
void form_put_header(form_text *t, const char *needs, int version);
/* The .version that the example of a form has: 9.0 (the toolkit's own) unless it needs a later one. */
int form_version(const form *f);
void form_put_kernel(form_text *t, int number, const char *body);

#endif
