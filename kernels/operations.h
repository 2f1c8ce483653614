/* The operations: what each reads and writes, which settings it has, and the functions that emit and plan
 * it. */
#ifndef QDNN_KERNELS_OPERATIONS_H
#define QDNN_KERNELS_OPERATIONS_H

#include "kernels/describe.h"

/* What a product's split divides: nothing; the lanes of a sum among thread blocks; its strips among the warps of one; or the outputs
 * of a thread block among several. */
typedef enum { SPLITS_NOTHING, SPLITS_GRID, SPLITS_BLOCK, SPLITS_OUTPUTS } kernel_splits;
kernel_splits kernel_product_splits(const kernel_spec *spec);

struct operation_row {
    const char *name;
    const kernel_key *keys;     /* null: none */
    kernel_describes *describe; /* what its kernels take */
    /* Sets the fields of a normal specification that this operation leaves no choice for; may be null. */
    void (*fixes)(kernel_spec *spec);
    /* Whether a single kernel can do it, for a normal specification; null: always. */
    bool (*is_a_kernel)(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
    kernel_geometry (*geometry)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
    /* Appends its launches; null: one, of its kernel. */
    void (*steps)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
    /* Fills in the strides that a problem leaves out; null: those of a product. */
    void (*complete)(const kernel_spec *spec, kernel_problem *problem);
    /* Whether there is nothing to do; null: if the matrix has no elements. */
    bool (*is_empty)(const kernel_problem *problem);
    /* Adjusts the list of operands if the caller binds different ones than the kernel takes; null: they are
     * the same. */
    void (*bound)(const kernel_spec *spec, const kernel_problem *problem,
                  kernel_operand operands[QDNN_OPERAND_COUNT]);
};
extern const operation_row operation_rows[KERNEL_OPERATIONS];

/* The settings of products, which every format accepts. */
#define PRODUCT_KEYS                                                                                         \
    KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(REDUCTION), KERNEL_KEY(ALPHA), KERNEL_KEY(BIAS),        \
        KERNEL_KEY(ACTIVATION), KERNEL_KEY(GATED), KERNEL_KEY(RESIDUAL), KERNEL_KEY(ADDEND),                 \
        KERNEL_KEY(GROUPED), KERNEL_KEY(ROW_WEIGHT), KERNEL_KEY(PRODUCT), KERNEL_KEY(TILE_ROWS),             \
        KERNEL_KEY(SPLIT), KERNEL_KEY(X_FP8), KERNEL_KEY(X_SCALE), KERNEL_KEY(X_SHARE)

/* Those of attention, likewise. */
#define ATTENTION_KEYS                                                                                       \
    KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(QUERIES), KERNEL_KEY(KV_SLOTS), KERNEL_KEY(KV_HEADS),   \
        KERNEL_KEY(KEY_SIZE), KERNEL_KEY(VALUE_SIZE), KERNEL_KEY(TENSOR), KERNEL_KEY(SEES),                  \
        KERNEL_KEY(ADDS), KERNEL_KEY(WINDOW), KERNEL_KEY(ONE_SEQUENCE), KERNEL_KEY(CAP),                     \
        KERNEL_KEY(MASK_HEADS), KERNEL_KEY(VALUES_IN_KEYS), KERNEL_KEY(MASK), KERNEL_KEY(SINK),              \
        KERNEL_KEY(TILE_ROWS), KERNEL_KEY(PHASE)

/* Whether the kernel of a normal specification works on a matrix (rows and columns); if not, on a flat
 * tensor. */
bool kernel_is_matrix(const kernel_row *row, const kernel_spec *spec);

/* The parameters as declared in the kernel being emitted. Those that the kernel does not have stay empty. */
typedef struct kernel_args {
    ptx_val operand[QDNN_OPERAND_COUNT];
    ptx_val workspace, partials; /* pointers into the workspace */
    ptx_val number[NUMBERS];
} kernel_args;
kernel_args kernel_declare(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* Appends the launch of one kernel: geometry and parameters come from the row, numbers from the problem. */
kernel_step *steps_add(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem);
/* Appends all launches of an operation. */
void steps_add_operation(kernel_steps *steps, const kernel_row *row, const kernel_spec *spec,
                         const kernel_problem *problem);

/* Overrides a number taken from the problem. */
void step_set_number(kernel_step *step, kernel_number number, uint64_t bits);

/* Sets the offset of the step's part of the workspace. */
void step_in_workspace(kernel_step *step, uint64_t offset);

/* Sets the offset of its partial sums in the workspace. */
void step_with_partials(kernel_step *step, uint64_t offset);

/* Reserves that many bytes at the end of the workspace; returns their offset. */
uint64_t steps_take(kernel_steps *steps, uint64_t bytes);

/* Makes a step use a part of the workspace in place of an operand. */
void step_from_workspace(kernel_step *step, qdnnOperand_t operand, uint64_t offset);

/* Makes a step use another operand of the plan in place of this one. */
void step_with_operand(kernel_step *step, qdnnOperand_t operand, qdnnOperand_t other);

/* Writes an error, and returns false. */
bool kernel_refuse(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
