/* The operations: what each reads and writes, which settings it has, and the functions that emit and plan
 * it. */
#ifndef QDNN_KERNELS_OPERATIONS_H
#define QDNN_KERNELS_OPERATIONS_H

#include "kernels/kernels.h"

/* The scalar parameters of kernels ("numbers"). One list of parameters serves both to declare them in the
 * text and to fill them in at a launch. */
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
    NUMBER_CODES_STRIDE, /* with experts: bytes from one expert's array to the next one's */
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
    NUMBER_CONV_OUTPUTS, /* per group */
    NUMBER_CONV_H,
    NUMBER_CONV_W,
    NUMBER_CONV_OUT_H,
    NUMBER_CONV_OUT_W,
    NUMBER_CONV_STRIDE, /* these three hold the height in the upper half, the width in the lower */
    NUMBER_CONV_PADDING,
    NUMBER_CONV_DILATION,
    NUMBER_PAGE_SLOTS, /* from here on: layout of a strided cache (kernel_cache) */
    NUMBER_PAGE_STRIDE,
    NUMBER_SLOT_STRIDE,
    NUMBER_HEAD_STRIDE,
    NUMBER_PARTS,
    NUMBER_B_STRIDE,
    NUMBER_EPS,               /* an f32, as the next two */
    NUMBER_LIMIT,             /* of a clamped or capped function */
    NUMBER_FACTOR,            /* inside a function */
    NUMBER_VALUE_PAGE_STRIDE, /* KV caches: PAGE_STRIDE and so on are those of the keys, these of the values */
    NUMBER_VALUE_SLOT_STRIDE,
    NUMBER_VALUE_HEAD_STRIDE,
    NUMBER_PAGES,
    NUMBER_TABLE_PAGES,
    NUMBER_POSITIONS,
    NUMBER_DIM_1, /* from here on: kernel_lines */
    NUMBER_DIM_2,
    NUMBER_X_STRIDE_1,
    NUMBER_X_STRIDE_2,
    NUMBER_X_STRIDE_3,
    NUMBER_Y_STRIDE_1,
    NUMBER_Y_STRIDE_2,
    NUMBER_Y_STRIDE_3,
    NUMBER_WINDOW, /* attention */
    NUMBER_MASK_KEYS,
    NUMBER_MASK_STRIDE,
    NUMBER_MASK_HEAD_STRIDE,
    NUMBERS
} kernel_number;

typedef uint64_t number_set; /* one bit for each */
#define A_NUMBER(name) ((number_set)1 << NUMBER_##name)

/* ---- Rules (rules.c) ---- */

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
uint64_t rule_value(const kernel_rule *rule, const uint64_t numbers[NUMBERS]);

typedef struct param_decl {
    const char *name;
    uint8_t kind;  /* kernel_param_kind */
    uint8_t which; /* the operand or the number */
    uint8_t size;  /* alignment of a pointer; size of a number in bytes */
} param_decl;

/* An operand as manifests describe it: the type of its elements ("f16"), and how many it has ("m * columns"). */
typedef struct kernel_operand_text {
    char element[16], count[160];
} kernel_operand_text;

/* What a product's split divides: nothing, the lanes of a sum among thread blocks, or its strips among the warps of one. */
typedef enum { SPLITS_NOTHING, SPLITS_GRID, SPLITS_BLOCK } kernel_splits;
kernel_splits kernel_product_splits(const kernel_spec *spec);

struct operation_row {
    const char *name;
    const kernel_key *keys;    /* null: none */
    operand_set reads, writes; /* operands that the format lacks are left out */
    number_set numbers;        /* that the kernel takes; none: only n */
    /* Sets the fields of a normal specification that this operation leaves no choice for; may be null. */
    void (*fixes)(kernel_spec *spec);
    /* Whether a single kernel can do it, for a normal specification; null: always. */
    bool (*is_a_kernel)(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
    kernel_geometry (*geometry)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
    void (*steps)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                  kernel_steps *steps);
    /* Whether the kernel has an operand listed in `reads` or `writes`; null: if its format has it. */
    bool (*takes)(const kernel_spec *spec, int operand);
    /* Fills in the strides that a problem leaves out; null: those of a product. */
    void (*complete)(const kernel_spec *spec, kernel_problem *problem);
    /* Whether there is nothing to do; null: if the matrix has no elements. */
    bool (*is_empty)(const kernel_problem *problem);
    /* Adjusts the list of operands if the caller binds different ones than the kernel takes; null: they are
     * the same. */
    void (*bound)(const kernel_spec *spec, const kernel_problem *problem,
                  kernel_operand operands[QDNN_OPERAND_COUNT]);
    /* Alignment and size of an operand; null, or an alignment of 0: they follow from the format. */
    kernel_operand (*size)(const kernel_spec *spec, const kernel_problem *problem, int operand);
    /* Both in one, for operations whose operands depend on the format: alignment 0: the kernel does not have it. It may say
     * whether the operand is read or written, if that depends on the settings. */
    kernel_operand (*operand)(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                              int operand);
    /* The numbers that the kernel takes, if they depend on the settings; null: `numbers`. */
    number_set (*counts)(const kernel_spec *spec);
    /* What tools print of an operand; null: it follows from the format. */
    kernel_operand_text (*text)(const kernel_row *row, const kernel_spec *spec, int operand);
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

/* What a workspace parameter is used for: a kernel can have partial sums in addition to another part of its
 * own. */
enum { WORKSPACE_OWN, WORKSPACE_PARTIALS };

/* The name of a number as a kernel parameter: "m". */
const char *kernel_number_name(kernel_number number);

/* Lists the parameters of a kernel in order, and returns their number. */
int kernel_params(const kernel_row *row, const kernel_spec *spec, param_decl list[KERNEL_PARAMS_MAX]);

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

/* Says how many blocks the step needs along a dimension of its grid if fewer rows are executed:
 * ceil(rows * work / per_block). Without this, the grid is the same for any number of rows. */
void step_follows_rows(kernel_step *step, int dimension, uint64_t work, uint64_t per_block);

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
