/* What a kernel takes: pointers with the direction, type and size of what they point to, and numbers. Every operation says it once, by
 * its `describe`, in the order of the parameters. The PTX declares them from that, plans fill them in and check what is bound,
 * manifests and launchers print them.
 *
 *   describe.c          numbers (numbers.def), types of elements, pointers; stacks of experts
 *   rules.c             formulas over numbers */
#ifndef QDNN_KERNELS_DESCRIBE_H
#define QDNN_KERNELS_DESCRIBE_H

#include "kernels/kernels.h"

/* ---- Numbers: the scalar parameters ---- */

typedef enum {
#define NUMBER(constant, ...) NUMBER_##constant,
#include "kernels/numbers.def"
#undef NUMBER
    NUMBERS
} kernel_number;

typedef uint64_t number_set; /* one bit for each */
#define A_NUMBER(name) ((number_set)1 << NUMBER_##name)

const char *kernel_number_name(kernel_number number);    /* as a kernel parameter: "m" */
const char *kernel_number_meaning(kernel_number number); /* "rows of x and y" */
bool kernel_number_is_f32(kernel_number number);         /* else a u64 */

/* ---- Rules: formulas over numbers (rules.c) ---- */

kernel_rule rule_constant(uint64_t value);
kernel_rule rule_number(kernel_number number);
kernel_rule rule_plus(kernel_rule a, kernel_rule b);
kernel_rule rule_minus(kernel_rule a, kernel_rule b);
kernel_rule rule_times(kernel_rule a, kernel_rule b);
kernel_rule rule_over(kernel_rule a, kernel_rule b); /* rounded down */
kernel_rule rule_least(kernel_rule a, kernel_rule b);
kernel_rule rule_ceil(kernel_rule a, uint64_t each); /* a / each, rounded up */
/* ceil(number / each): the usual one. */
kernel_rule rule_parts(kernel_number number, uint64_t each);
/* At most as many blocks as a grid may have along y and z; the kernel loops over the others. */
kernel_rule rule_capped(kernel_rule a);
/* (count - 1) * stride + each: from the first of so many things to the end of the last; 0, if there are none, or each is 0. */
kernel_rule rule_span(kernel_rule count, kernel_rule stride, kernel_rule each);
uint64_t rule_value(const kernel_rule *rule, const uint64_t numbers[NUMBERS]);
/* Whether the value is ceil(rows * work / per_block) for any number of rows, and a constant limit of that. */
bool rule_by_rows(const kernel_rule *rule, const uint64_t numbers[NUMBERS], kernel_number rows,
                  kernel_row_blocks *out);

/* ---- Descriptions ---- */

/* The elements that a pointer points to: their name in manifests, the alignment of the pointer, and the bytes of each. */
typedef struct element_type {
    const char *name;
    unsigned align, bytes;
} element_type;
/* "f16"; types of a byte and FP8, too, and packed I4, which is read as words. */
element_type element_type_of(qdnnDataType_t type);
element_type element_type_of_scale(qdnnScaleType_t type);

/* What a workspace parameter is used for: a kernel can have partial sums in addition to another part of its
 * own. */
enum { WORKSPACE_OWN, WORKSPACE_PARTIALS };

typedef struct kernel_pointer {
    const char *name; /* as a kernel parameter: "x" */
    uint8_t kind;     /* KERNEL_OPERAND or KERNEL_WORKSPACE */
    uint8_t which;    /* qdnnOperand_t, or WORKSPACE_... */
    bool reads, writes;
    bool is_per_group; /* no bytes, if the tensor has no elements */
    element_type element;
    kernel_rule bytes; /* of an operand */
} kernel_pointer;

enum { KERNEL_POINTERS_MAX = 20 };
typedef struct kernel_description {
    int count;
    kernel_pointer pointers[KERNEL_POINTERS_MAX];
    number_set numbers;
    kernel_geometry launch; /* as `geometry` says, each dimension of the grid with a rule */
} kernel_description;

/* What an operation says: appends its operands and workspace, and sets the numbers. The specification is normal. */
typedef void kernel_describes(kernel_description *d, const kernel_row *row, const kernel_spec *spec);

/* Append an operand of `count` elements. The pointer that they return is for what else there is to say. */
kernel_pointer *describe_operand(kernel_description *d, qdnnOperand_t operand, bool writes,
                                 element_type element, kernel_rule count);
kernel_pointer *describe_read(kernel_description *d, qdnnOperand_t operand, element_type element,
                              kernel_rule count);
kernel_pointer *describe_write(kernel_description *d, qdnnOperand_t operand, element_type element,
                               kernel_rule count);
/* Append a part of the workspace, which is written or read. */
void describe_workspace(kernel_description *d, const char *name, int which, element_type element,
                        bool writes);

/* Multiplies the operands from this one on: they are of a stack of experts. Adds the numbers that the kernel then needs. */
void describe_stack(kernel_description *d, int first);
/* Elements of a plain tensor of the same extent: "n", or "rows * columns". */
kernel_rule describe_elements(const kernel_description *d);

/* `spec` is normal. */
void kernel_describe(const kernel_row *row, const kernel_spec *spec, kernel_description *d);

/* All numbers for a problem; the largest value is 0, which its step sets. */
void description_numbers(const kernel_description *d, const kernel_problem *problem,
                         uint64_t numbers[NUMBERS]);

/* The pointer that has this operand, or null. */
const kernel_pointer *description_find(const kernel_description *d, int operand);
/* The bytes of what it points to. */
uint64_t pointer_bytes(const kernel_pointer *p, const uint64_t numbers[NUMBERS]);

#endif
