/* The operations: what each reads and writes, which settings it knows, and who emits and plans it. */
#ifndef QDNN_KERNELS_OPERATIONS_H
#define QDNN_KERNELS_OPERATIONS_H

#include "kernels/kernels.h"

/* A parameter of a kernel: the same list declares it in the text and fills it in a launch. */
typedef enum {
    NUMBER_N,
    NUMBER_ROWS,
    NUMBER_COLUMNS,
    NUMBER_LARGEST, /* an f32 */
    NUMBER_TABLE_ROWS,
    NUMBER_M,
    NUMBER_X_STRIDE,
    NUMBER_Y_STRIDE,
    NUMBER_EXPERTS,
    NUMBER_CODES_STRIDE, /* of a stack of experts: bytes from an expert's array to the next one's */
    NUMBER_SCALE_STRIDE,
    NUMBER_ZERO_STRIDE,
    NUMBER_NESTED_STRIDE,
    NUMBER_ALPHA, /* an f32 */
    NUMBER_X_ZERO,
    NUMBER_W_ZERO,
    NUMBER_Y_ZERO,
    NUMBER_MULTIPLIER, /* an f32 */
    NUMBER_TOP,
    NUMBER_CONV_CHANNELS,
    NUMBER_CONV_OUTPUTS, /* of a group */
    NUMBER_CONV_H,
    NUMBER_CONV_W,
    NUMBER_CONV_OUT_H,
    NUMBER_CONV_OUT_W,
    NUMBER_CONV_STRIDE, /* of these three the height in the upper half, the width in the lower */
    NUMBER_CONV_PADDING,
    NUMBER_CONV_DILATION,
    NUMBER_PAGE_SLOTS, /* of a strided cache */
    NUMBER_PAGE_STRIDE,
    NUMBER_SLOT_STRIDE,
    NUMBER_HEAD_STRIDE,
    NUMBERS
} kernel_number;
typedef struct param_decl {
    const char *name;
    uint8_t kind;  /* kernel_param_kind */
    uint8_t which; /* the operand, or the number */
    uint8_t size;  /* alignment of a pointer; bytes of a number */
} param_decl;

struct operation_row {
    const char *name;
    kernel_key_set keys;
    unsigned reads, writes; /* bits of qdnnOperand_t, as far as the format has them */
    unsigned numbers;       /* bits of kernel_number that the kernel takes; 0: n alone */
    /* Sets what is no choice in a normal specification; null: nothing. */
    void (*fixes)(kernel_spec *spec);
    /* Whether one kernel does it for a normal specification; null: it always does. */
    bool (*is_a_kernel)(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
    kernel_geometry (*geometry)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
    void (*steps)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
    /* Whether the kernel has an operand of `reads` or `writes`; null: it has those that its format has. */
    bool (*takes)(const kernel_spec *spec, int operand);
    /* Whether there is nothing to do; null: where the matrix has no elements. */
    bool (*is_empty)(const kernel_problem *problem);
    /* Corrects the list of operands where the caller binds others than the kernel has; null: they are the same. */
    void (*bound)(const kernel_spec *spec, const kernel_problem *problem,
                  kernel_operand operands[QDNN_OPERAND_COUNT]);
    /* Alignment and bytes of an operand; null: they follow from the format. */
    kernel_operand (*size)(const kernel_spec *spec, const kernel_problem *problem, int operand);
};
extern const operation_row operation_rows[KERNEL_OPERATIONS];

/* The settings of products, which every format knows. */
#define PRODUCT_KEYS                                                                                         \
    (KERNEL_KEY(DATA) | KERNEL_KEY(OUTPUT) | KERNEL_KEY(REDUCTION) | KERNEL_KEY(ALPHA) | KERNEL_KEY(BIAS) |  \
     KERNEL_KEY(ACTIVATION) | KERNEL_KEY(GATED) | KERNEL_KEY(RESIDUAL) | KERNEL_KEY(ADDEND) |                \
     KERNEL_KEY(GROUPED) | KERNEL_KEY(ROW_WEIGHT) | KERNEL_KEY(PRODUCT) | KERNEL_KEY(TILE_ROWS) |                                                          \
     KERNEL_KEY(SPLIT) | KERNEL_KEY(X_FP8) | KERNEL_KEY(X_SCALE))

/* Whether the kernel of a normal specification is about rows and columns; else it is about a flat tensor. */
bool kernel_is_matrix(const kernel_row *row, const kernel_spec *spec);

/* What a kernel takes a part of the workspace for: partial sums may come beside anything else. */
enum { WORKSPACE_OWN, WORKSPACE_PARTIALS };

/* The parameters of a kernel, in order; how many. */
int kernel_params(const kernel_row *row, const kernel_spec *spec, param_decl list[KERNEL_PARAMS_MAX]);

/* The values of the parameters, declared in the kernel that is being emitted. Those that it does not have stay
 * empty. */
typedef struct kernel_args {
    ptx_val operand[QDNN_OPERAND_COUNT];
    ptx_val workspace, partials; /* pointers into the workspace */
    ptx_val number[NUMBERS];
} kernel_args;
kernel_args kernel_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Appends the launch of one kernel: geometry and parameters from the row, numbers from the problem. */
kernel_step *steps_add(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem);

/* Sets a number that is not the problem's. */
void step_set_number(kernel_step *step, kernel_number number, uint64_t bits);

/* Where in the workspace a step finds its own part. */
void step_in_workspace(kernel_step *step, uint64_t offset);

/* Where in the workspace its partial sums are. */
void step_with_partials(kernel_step *step, uint64_t offset);

/* The offset of so many more bytes at the end of the workspace. */
uint64_t steps_take(kernel_steps *steps, uint64_t bytes);

/* Lets a step take an operand from the workspace instead. */
void step_from_workspace(kernel_step *step, qdnnOperand_t operand, uint64_t offset);

/* Lets a step take another operand of the plan in the place of one. */
void step_with_operand(kernel_step *step, qdnnOperand_t operand, qdnnOperand_t other);

#endif
