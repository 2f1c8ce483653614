/* Stacks of matrices: sizes, how often the launches are repeated, and the errors where matrices share a byte
 * or a scale. That their bytes are those of each matrix by itself is compared in tests/parity. */
#include <string.h>

#include <qdnn/qdnn.h>

#include "driver/api/request.h"
#include "test.h"

typedef struct stack_case {
    const char *name;
    int64_t dims[3];
    qdnnQuantAttribute_t attributes[6];
    int64_t values[6]; /* of the attributes; QDNN_QUANT_STORAGE ends the list */
    kernel_operation operation;
    uint64_t repeats;
    const char *error; /* or what it says */
} stack_case;

#define INTERLEAVED                                                                                          \
    {                                                                                                        \
        QDNN_QUANT_LAYOUT, QDNN_QUANT_GROUP_SIZE                                                             \
    }
#define COLUMNS                                                                                              \
    {                                                                                                        \
        QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE                                                             \
    }
#define IN_WORDS(g)                                                                                          \
    {                                                                                                        \
        QDNN_LAYOUT_WORDS_INTERLEAVED, g                                                                     \
    }
#define DOWN(g)                                                                                              \
    {                                                                                                        \
        QDNN_GROUPS_COLUMNS, g                                                                               \
    }

static const stack_case cases[] = {
    {"words_and_groups_divide", {3, 16, 4}, INTERLEAVED, IN_WORDS(8), KERNEL_DEQUANTIZE, 1, NULL},
    {"ragged_groups", {3, 16, 4}, INTERLEAVED, IN_WORDS(12), KERNEL_DEQUANTIZE, 3, NULL},
    {"ragged_words", {3, 12, 4}, INTERLEAVED, IN_WORDS(4), KERNEL_DEQUANTIZE, 3, NULL},
    {"bytes_down_columns", {5, 10, 4}, COLUMNS, DOWN(8), KERNEL_QUANTIZE, 5, NULL},
    {"scales_down_columns", {5, 10, 4}, COLUMNS, DOWN(8), KERNEL_SCALE, 5, NULL},
    {"transposed_scales",
     {3, 16, 4},
     {QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE, QDNN_QUANT_SCALE_ORDER},
     {QDNN_GROUPS_COLUMNS, 8, QDNN_SCALE_ORDER_TRANSPOSED},
     KERNEL_DEQUANTIZE,
     3,
     NULL},
    {"group_index",
     {3, 16, 4},
     {QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE, QDNN_QUANT_GROUP_INDEX},
     {QDNN_GROUPS_COLUMNS, 8, 1},
     KERNEL_DEQUANTIZE,
     3,
     NULL},
    {"nested_scales_end_within_a_block",
     {3, 12, 4},
     {QDNN_QUANT_LAYOUT, QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE, QDNN_QUANT_NESTED},
     {QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_FLAT, 4, 1},
     KERNEL_DEQUANTIZE,
     0,
     "each matrix of the stack has 12 nested scales, which is not a multiple of 256; fix: one call per "
     "matrix"},
    {"nested_scales_fill_blocks",
     {3, 12, 256},
     {QDNN_QUANT_LAYOUT, QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE, QDNN_QUANT_NESTED},
     {QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_FLAT, 4, 1},
     KERNEL_DEQUANTIZE,
     3,
     NULL},
    {"flat", {3, 5, 7}, {QDNN_QUANT_GROUP_SIZE}, {8}, KERNEL_DEQUANTIZE, 1, NULL},
    {"one_matrix", {1, 10, 4}, COLUMNS, DOWN(8), KERNEL_QUANTIZE, 1, NULL},
    {"nothing", {3, 0, 4}, COLUMNS, DOWN(8), KERNEL_QUANTIZE, 1, NULL},
    {"half_a_byte",
     {2, 3, 5},
     COLUMNS,
     DOWN(2),
     KERNEL_DEQUANTIZE,
     0,
     "the codes of each 3 x 5 matrix of the stack end within a byte; fix: one call per matrix"},
    {"flat_groups_across",
     {2, 3, 4},
     {QDNN_QUANT_LAYOUT, QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE},
     {QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_FLAT, 8},
     KERNEL_DEQUANTIZE,
     0,
     "groups of 8 elements reach from one 3 x 4 matrix of the stack into the next, and its codes do not; "
     "fix: groups down "
     "columns, or a group size that divides 12"},
    {"shared_scale",
     {2, 3, 4},
     {QDNN_QUANT_LAYOUT, QDNN_QUANT_GRANULARITY},
     {QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GRANULARITY_TENSOR},
     KERNEL_DYNAMIC,
     0,
     "the matrices of the stack are quantized one by one, and share a scale; fix: one call per matrix"},
};

static qdnnStatus_t ask(const stack_case *c, request *r)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    CHECK_EQ_I64(qdnnCreateTensorDescriptor(&tensor), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnCreateQuantDescriptor(&quant), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 3, c->dims, NULL), QDNN_STATUS_SUCCESS);
    for (int i = 0; c->attributes[i] != QDNN_QUANT_STORAGE; i++)
        CHECK_EQ_I64(qdnnSetQuantAttribute(quant, c->attributes[i], c->values[i]), QDNN_STATUS_SUCCESS);
    qdnnStatus_t status = request_make(c->operation, tensor, quant, r);
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
    return status;
}

TEST_ROWS(ApiStacks, AreOneMatrixOrMany, cases)
{
    const stack_case *c = &cases[index];
    request r;
    char error[512] = "";
    qdnnStatus_t status = ask(c, &r);
    qdnnGetLastErrorString(error, sizeof error);
    CHECK_EQ_I64(status, c->error ? QDNN_STATUS_NOT_SUPPORTED : QDNN_STATUS_SUCCESS);
    if (c->error)
        CHECK_HAS(error, c->error);
    else if (status == QDNN_STATUS_SUCCESS)
        CHECK_EQ_U64(r.repeats, c->repeats);
}

/* Groups along rows that they divide are flat groups, unless what goes with them is arranged by rows. */
TEST_CASE(ApiStacks, GroupsThatDivideRowsAreFlat)
{
    static const struct {
        qdnnQuantAttribute_t attribute;
        int64_t value;
        qdnnGroups_t groups;
    } rows[] = {{QDNN_QUANT_ZERO_PACKED, 0, QDNN_GROUPS_FLAT},
                {QDNN_QUANT_ZERO_PACKED, 1, QDNN_GROUPS_ROWS},
                {QDNN_QUANT_SCALE_ORDER, QDNN_SCALE_ORDER_TRANSPOSED, QDNN_GROUPS_ROWS},
                {QDNN_QUANT_SCALE_SWIZZLE, QDNN_SWIZZLE_128X4, QDNN_GROUPS_ROWS},
                {QDNN_QUANT_BLOCK_ROWS, 2, QDNN_GROUPS_ROWS},
                {QDNN_QUANT_GROUP_SIZE, 5, QDNN_GROUPS_ROWS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stack_case c = {"",
                        {1, 6, 16},
                        {QDNN_QUANT_GROUPS, QDNN_QUANT_GROUP_SIZE, QDNN_QUANT_ZERO_KIND, QDNN_QUANT_LAYOUT,
                         rows[i].attribute},
                        {QDNN_GROUPS_ROWS, 8, QDNN_ZERO_POINT, QDNN_LAYOUT_WORDS_ROWS, rows[i].value},
                        KERNEL_DEQUANTIZE,
                        1,
                        NULL};
        request r;
        test_push_note("row %d", (int)i);
        if (CHECK_EQ_I64(ask(&c, &r), QDNN_STATUS_SUCCESS))
            CHECK_EQ_I64(r.spec.stored.groups, rows[i].groups);
        test_pop_note();
    }
}

/* Two groups of 8 rows, the second cut short, in each of five 10 x 4 matrices. */
TEST_CASE(ApiStacks, HaveArraysOneBehindTheOther)
{
    request r;
    REQUIRE(ask(&cases[3], &r) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_U64(r.problem.rows, 10);
    CHECK_EQ_U64(r.strides[QDNN_OPERAND_CODES], 20);
    CHECK_EQ_U64(r.strides[QDNN_OPERAND_SCALE], 2 * 4 * 4);
    CHECK_EQ_U64(r.strides[QDNN_OPERAND_X], 160);
    CHECK_EQ_U64(r.operands[QDNN_OPERAND_SCALE].bytes, 5 * 32);
    CHECK_EQ_U64(r.operands[QDNN_OPERAND_CODES].bytes, 100);
}
