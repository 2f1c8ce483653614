/* What real tensor cores computed, and what the model gives for the same numbers: not one bit may differ.
 * Sixteen lines of a set are the rows of A; the columns of B are the same lines in another order, so that the
 * whole fragment takes part. */
#include <stdio.h>

#include "fragments.h"
#include "support/silicon.h"
#include "test.h"

/* The instruction of a set, as PTX. */
static bool instruction_of(const silicon_set *set, pvm_type result, int k, pvm_inst *inst)
{
    const int bits = set->type == T_TF32 ? 32 : set->type == T_F16 || set->type == T_BF16 ? 16 : 8;
    const char *type = pvm_type_name(set->type), *d = pvm_type_name(result),
               *regs = result == T_F16 ? "@r2" : "@f4";
    char text[256], target[16];
    snprintf(text, sizeof text, "mma.sync.aligned.m16n8k%d.row.col%s%s%s%s %s, @r%d, @r%d, %s;", k, d, type,
             type, d, regs, k * bits / 64, k * bits / 128, regs);
    snprintf(target, sizeof target, "sm_%d", set->sm);
    return mma_parse(text, target, inst);
}

static int bits_of(pvm_type type)
{
    return type == T_TF32 ? 32 : type == T_F16 || type == T_BF16 ? 16 : 8;
}

enum { ROWS = 16, COLUMNS = 8 };

/* Lines first..first+15 through two mma; k_at is where in the instruction's K the products lie, the rest
 * being zero. */
static int wrong_of_sixteen(const tensor_op *op, const silicon_set *set, const silicon_data *data, int first,
                            int k_at)
{
    uint64_t a[ROWS * 32] = {0}, b[32 * COLUMNS] = {0}, c[ROWS * COLUMNS], d[ROWS * COLUMNS];
    const bool f16 = op->dtype == T_F16;
    int wrong = 0;
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < set->k; k++)
            a[row * op->k + k_at + k] = data->a[(first + row) % SILICON_LINES * set->k + k];
    for (int half = 0; half < 2; half++) {
        int line[COLUMNS];
        for (int column = 0; column < COLUMNS; column++) {
            line[column] = (5 * (half * COLUMNS + column) + first / ROWS) % ROWS;
            for (int k = 0; k < set->k; k++)
                b[(k_at + k) * COLUMNS + column] =
                    data->b[(first + line[column]) % SILICON_LINES * set->k + k];
        }
        for (int i = 0; i < ROWS * COLUMNS; i++)
            c[i] = (f16 ? data->c16 : data->c)[(first + i / COLUMNS) % SILICON_LINES];
        mma_run(op, bits_of(set->type), a, b, c, d, NULL);
        for (int column = 0; column < COLUMNS; column++) {
            const int at = (first + line[column]) % SILICON_LINES;
            wrong += d[line[column] * COLUMNS + column] != (f16 ? data->d16 : data->d32)[at];
        }
    }
    return wrong;
}

static int wrong_in_set(const silicon_set *set, const silicon_data *data, pvm_type result, int k, int k_at)
{
    pvm_inst inst;
    tensor_op op;
    int wrong = 0;
    if (!instruction_of(set, result, k, &inst) || !CHECK(tensor_find(&inst, (pvm_target){set->sm, 0}, &op)))
        return -1;
    CHECK(op.standing == TENSOR_MEASURED || k != set->k);
    for (int build = 0; build < 2; build++) {
        for (int first = 0; first < SILICON_LINES; first += ROWS)
            wrong += wrong_of_sixteen(&op, set, data, first, k_at);
        op.wide = false; /* the baseline build the second time */
    }
    return wrong;
}

TEST_EACH(TensorSilicon, NoneOfTheSetIsWrong, silicon_set_count, silicon_set_name)
{
    const silicon_set *set = &silicon_sets[index];
    silicon_data data;
    if (!silicon_load(set, &data))
        SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
    if (!set->is_wgmma)
        CHECK_EQ_I64(wrong_in_set(set, &data, T_F32, set->k, 0), 0);
    if (set->has_f16)
        CHECK_EQ_I64(wrong_in_set(set, &data, T_F16, set->k, 0), 0);
    silicon_free(&data);
}

/* An instruction of twice the depth whose other half is zero gives the same: a zero operation passes c on. */
TEST_CASE(TensorSilicon, HalfEmptyInstructionsAgree)
{
    silicon_data data;
    for (int i = 0; i < silicon_n_sets; i++) {
        const silicon_set *set = &silicon_sets[i];
        if (set->k > 8)
            continue;
        if (!silicon_load(set, &data))
            SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
        CHECK_EQ_I64(wrong_in_set(set, &data, T_F32, 2 * set->k, 0), 0);
        CHECK_EQ_I64(wrong_in_set(set, &data, T_F32, 2 * set->k, set->k), 0);
        silicon_free(&data);
    }
}
