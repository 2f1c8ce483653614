/* The kernel that adds up lists for LSQ's backward, launched directly: through the public API a list of 300 numbers takes a tensor of a
 * million elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/step_launch.h"
#include "formats/kernel_data.h"
#include "host_ref/host_ref.h"
#include "kernels/operations.h"
#include "parity/ptxvm.h"
#include "test.h"

enum { SEGMENT = 4096, TERMS = 1000000007 };

/* Lists within a chunk of 8, over all lanes and several rounds of them, of one segment and of three. */
static const struct {
    int64_t groups, entries;
    data_kind kind;
} lists[] = {{1, 2, DATA_NORMAL},    {3, 300, DATA_NORMAL},  {9, 13, DATA_SPECIAL},     {17, 263, DATA_ZEROS},
             {1, 1031, DATA_NORMAL}, {2, 9000, DATA_NORMAL}, {5, SEGMENT, DATA_NORMAL}, {2, 6, DATA_NORMAL},
             {8, 15, DATA_NORMAL},   {1, 9, DATA_NORMAL},    {3, 12, DATA_NORMAL},      {2, 10, DATA_NORMAL}};

static float expected_of(const kernel_spec *spec, const float *list, int64_t count)
{
    const float sum = ref_long_sum(list, NULL, count);
    return spec->gradient_factor ? sum * (1.0f / sqrtf((float)TERMS * 127.0f)) : sum;
}

static void run_lists(ptxvm *vm, const char *sm, const kernel_spec *spec, int i)
{
    const int64_t groups = lists[i].groups, entries = lists[i].entries,
                  segments = (entries + SEGMENT - 1) / SEGMENT;
    const uint64_t in = (uint64_t)(groups * entries) * 4, out = (uint64_t)(groups * segments) * 4;
    float *x = malloc(in), *sums = malloc(out), *expected = malloc(out);
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0};
    kernel_steps steps = {0};
    if (!CHECK(x && sums && expected))
        return;
    test_push_note("%d lists of %d", (int)groups, (int)entries);
    fill_data(lists[i].kind, NULL, QDNN_DATA_F32, (uint32_t)i + 1, x, groups * entries);
    for (int64_t k = 0; k < groups * entries; k++)
        x[k] *= 0.7f; /* all bits of the fraction: every sum rounds */
    for (int64_t s = 0; s < groups * segments; s++) {
        const int64_t first = s % segments * SEGMENT, left = entries - first;
        expected[s] = expected_of(spec, x + s / segments * entries + first, left < SEGMENT ? left : SEGMENT);
    }
    kernel_step *step = steps_add(&steps, kernel_find("long_sum"), spec,
                                  &(kernel_problem){.rows = 1, .columns = (uint64_t)(groups * segments)});
    step_set_number(step, NUMBER_N, TERMS);
    step_set_number(step, NUMBER_ROWS, (uint64_t)groups);
    step_set_number(step, NUMBER_COLUMNS, (uint64_t)entries);
    if (CHECK(ptxvm_alloc(vm, in, &at[QDNN_OPERAND_X]) == PTXVM_OK &&
              ptxvm_alloc(vm, out, &at[QDNN_OPERAND_DSCALE]) == PTXVM_OK &&
              ptxvm_write(vm, at[QDNN_OPERAND_X], x, in) == PTXVM_OK) &&
        step_launch(vm, sm, step, at, 0) &&
        CHECK(ptxvm_read(vm, sums, at[QDNN_OPERAND_DSCALE], out) == PTXVM_OK))
        CHECK_EQ_MEM(sums, expected, out);
    ptxvm_free(vm, at[QDNN_OPERAND_X]);
    ptxvm_free(vm, at[QDNN_OPERAND_DSCALE]);
    free(x), free(sums), free(expected);
    test_pop_note();
}

TEST_CASE(ParityTrain, Lists)
{
    NEED_PTXVM;
    static const char *const sms[] = {"sm_75", "sm_90"};
    for (int factor = 0; factor < 2; factor++) {
        kernel_spec spec = kernel_spec_default();
        ptxvm_config config = {.sm = sms[factor], .threads = 1, .checks = PTXVM_CHECK_ALL};
        ptxvm *vm;
        spec.gradient_factor = factor;
        spec.group_size = spec.channels = 1;
        spec = kernel_spec_normal(kernel_find("long_sum"), &spec);
        REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
        for (int i = 0; i < (int)(sizeof lists / sizeof lists[0]); i++)
            run_lists(vm, sms[factor], &spec, i);
        ptxvm_destroy(vm);
    }
}
