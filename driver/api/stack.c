/* Stacks of matrices, such as experts: [E, K, N] is E matrices of K rows, whose arrays of codes, scales and
 * zeros are concatenated. If nothing crosses from one matrix into the next, the stack is one matrix of E * K
 * rows and takes one launch; otherwise each matrix is a separate problem, and the plan repeats its
 * launches. */
#include "driver/api/request.h"

#include "driver/base/check.h"

/* The number of matrices in the dimensions before the last two, and the rows of each. */
static uint64_t matrices_of(const struct qdnnTensorDescriptor *tensor, uint64_t *rows)
{
    uint64_t count = 1;
    for (int i = 0; i < tensor->rank - 2; i++)
        count *= (uint64_t)tensor->dims[i];
    *rows = tensor->rank > 1 ? (uint64_t)tensor->dims[tensor->rank - 2] : 1;
    return count;
}

/* Whether an array of groups would be laid out differently if the stack were one matrix. */
static bool groups_differ(const request *r, uint64_t rows)
{
    const kernel_spec *spec = &r->spec;
    const uint64_t across =
        spec->stored.groups == QDNN_GROUPS_COLUMNS ? spec->stored.group_size : spec->stored.group_rows;
    if (spec->stored.groups != QDNN_GROUPS_COLUMNS && spec->stored.groups != QDNN_GROUPS_ROWS)
        return false;
    return rows % across != 0 || spec->stored.group_index ||
           spec->stored.scale_order == QDNN_SCALE_ORDER_TRANSPOSED ||
           spec->stored.scale_swizzle != QDNN_SWIZZLE_NONE ||
           (spec->stored.zero_packed && spec->stored.groups == QDNN_GROUPS_ROWS &&
            rows / across * kernel_format(r->row)->bits % 32 != 0);
}

/* The same for codes in words down the columns. */
static bool codes_differ(const request *r, uint64_t rows)
{
    bool in_columns = r->spec.stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED ||
                      r->spec.to.layout == QDNN_LAYOUT_WORDS_INTERLEAVED;
    return in_columns && kernel_operation_of(r->row) != KERNEL_SCALE &&
           rows * kernel_format(r->row)->bits % 32 != 0;
}

#define FIX "fix: one call per matrix"

/* Rejects what cannot be done matrix by matrix. */
static qdnnStatus_t check_stack(const request *r, const kernel_problem *one)
{
    const kernel_spec *spec = &r->spec;
    const uint64_t elements = one->rows * one->columns,
                   run = spec->stored.group_size * (spec->stored.channels ? spec->stored.channels : 1);
    const kernel_operation operation = kernel_operation_of(r->row);
    const bool makes_scales = operation == KERNEL_SCALE || operation == KERNEL_DYNAMIC;
    if (elements * kernel_format(r->row)->bits % 8 != 0 && operation != KERNEL_SCALE &&
        (spec->stored.layout == QDNN_LAYOUT_BYTES ||
         (operation == KERNEL_REPACK && spec->to.layout == QDNN_LAYOUT_BYTES)))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "the codes of each %llu x %llu matrix of the stack end within a byte; " FIX,
                          (unsigned long long)one->rows, (unsigned long long)one->columns);
    if (spec->stored.groups == QDNN_GROUPS_FLAT && elements % run != 0)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "groups of %llu elements reach from one %llu x %llu matrix of the stack into the next, and its "
            "codes do not; fix: groups down columns, or a group size that divides %llu",
            (unsigned long long)run, (unsigned long long)one->rows, (unsigned long long)one->columns,
            (unsigned long long)elements);
    if (spec->stored.zero_packed && spec->stored.groups == QDNN_GROUPS_FLAT && !spec->stored.channels &&
        elements / run * kernel_format(r->row)->bits % 32 != 0)
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "the packed zeros of each %llu x %llu matrix of the stack end within a word; " FIX,
                          (unsigned long long)one->rows, (unsigned long long)one->columns);
    if (makes_scales &&
        (spec->stored.global_scale || (spec->stored.groups == QDNN_GROUPS_FLAT && spec->stored.channels)))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "the matrices of the stack are quantized one by one, and share a scale; " FIX);
    if (spec->stored.nested && kernel_groups(spec, one) % 256 != 0)
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "each matrix of the stack has %llu nested scales, which is not a multiple of 256; " FIX,
            (unsigned long long)kernel_groups(spec, one));
    return QDNN_STATUS_SUCCESS;
}

/* Whether all matrices share one array. */
static bool is_shared(const kernel_spec *spec, int operand)
{
    switch (operand) {
    case QDNN_OPERAND_GLOBAL_SCALE:
    case QDNN_OPERAND_NESTED_MAP:
    case QDNN_OPERAND_NESTED_OFFSET:
        return true;
    case QDNN_OPERAND_SCALE:
    case QDNN_OPERAND_ZERO:
        return spec->stored.groups == QDNN_GROUPS_FLAT && spec->stored.channels;
    default:
        return false;
    }
}

qdnnStatus_t request_stack(const struct qdnnTensorDescriptor *tensor, request *r)
{
    uint64_t rows, matrices = matrices_of(tensor, &rows);
    r->repeats = 1;
    if (matrices <= 1 || rows == 0 || r->problem.columns == 0 ||
        !(groups_differ(r, rows) || codes_differ(r, rows)))
        return QDNN_STATUS_SUCCESS;
    const kernel_problem one = {.rows = rows, .columns = r->problem.columns};
    CHECK_STATUS(check_stack(r, &one));
    r->problem = one;
    r->repeats = matrices;
    kernel_operands_of(r->row, &r->spec, &one, r->operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        r->strides[i] = is_shared(&r->spec, i) ? 0 : r->operands[i].bytes;
        r->operands[i].bytes += (matrices - 1) * r->strides[i];
    }
    return QDNN_STATUS_SUCCESS;
}
