/* The kernel that adds up lists for LSQ's backward, launched directly. */
#include "parity/long_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/step_launch.h"
#include "formats/kernel_data.h"
#include "host_ref/host_ref.h"
#include "kernels/operations.h"
#include "device/under_test.h"
#include "support/checks.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { SEGMENT = 4096, LANES = 32, CHUNK = 8, ROUND = LANES * CHUNK };

typedef struct lists {
    int64_t groups, entries;
    data_kind kind;
    uint32_t seed;
} lists;

/* Lists of one segment and of three, of more segments than a block takes, and of numbers that are not finite or zeros. */
static const lists long_lists[] = {{3, 300, DATA_NORMAL, 1},         {9, 13, DATA_SPECIAL, 2},
                                   {17, 263, DATA_ZEROS, 3},         {1, 1031, DATA_NORMAL, 4},
                                   {2, 9000, DATA_NORMAL, 5},        {5, SEGMENT, DATA_NORMAL, 6},
                                   {2, SEGMENT + 1, DATA_NORMAL, 7}, {9, 2 * SEGMENT + 1, DATA_NORMAL, 8},
                                   {33, SEGMENT - 1, DATA_NORMAL, 9}};

/* The elements of a group in a tensor of n. */
static int64_t terms_of(const kernel_spec *spec, int64_t n, int64_t group)
{
    const int64_t run = (int64_t)spec->stored.group_size, channels = (int64_t)spec->stored.channels;
    int64_t terms = 0;
    if (channels == 0)
        return n - group * run < run ? n - group * run : run;
    for (int64_t first = group * run; first < n; first += run * channels)
        terms += n - first < run ? n - first : run;
    return terms;
}

static float expected_of(const kernel_spec *spec, const float *list, int64_t count, int64_t terms)
{
    const float sum = ref_long_sum(list, NULL, count), levels = (float)((1 << (spec->train.bits - 1)) - 1);
    return spec->train.gradient_factor ? sum * (1.0f / sqrtf((float)terms * levels)) : sum;
}

static void fill_lists(const lists *l, float *x)
{
    const int64_t n = l->groups * l->entries;
    fill_data(l->kind, NULL, QDNN_DATA_F32, l->seed, x, n);
    for (int64_t k = 0; k < n; k++)
        x[k] *= 0.7f; /* all bits of the fraction: every sum rounds */
}

/* So many that the square root in the factor has to round, as the seed turns; the last group is shorter. */
static int64_t elements_of(const kernel_spec *spec, const lists *l)
{
    const int64_t run = (int64_t)spec->stored.group_size;
    return spec->stored.channels ? 1000003 + 977 * l->seed : (l->groups - 1) * run + run / 2 + 1;
}

static kernel_step step_of(const kernel_spec *spec, const lists *l)
{
    kernel_steps steps = {0};
    kernel_step *step =
        steps_add(&steps, kernel_find("long_sum"), spec,
                  &(kernel_problem){.rows = (uint64_t)l->groups, .columns = (uint64_t)l->entries});
    step_set_number(step, NUMBER_N, (uint64_t)elements_of(spec, l));
    return *step;
}

static void run_lists(machine *vm, const kernel_spec *spec, const lists *l)
{
    const int64_t entries = l->entries, segments = (entries + SEGMENT - 1) / SEGMENT,
                  count = l->groups * segments;
    const uint64_t in = (uint64_t)(l->groups * entries) * 4, out = (uint64_t)count * 4;
    float *x = malloc(in), *sums = malloc(out), *expected = malloc(out);
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0};
    test_push_note("%d lists of %d", (int)l->groups, (int)entries);
    if (CHECK(x && sums && expected)) {
        const kernel_step step = step_of(spec, l);
        fill_lists(l, x);
        for (int64_t s = 0; s < count; s++) {
            const int64_t group = s / segments, first = s % segments * SEGMENT, left = entries - first;
            expected[s] = expected_of(spec, x + group * entries + first, left < SEGMENT ? left : SEGMENT,
                                      terms_of(spec, elements_of(spec, l), group));
        }
        if (CHECK(machine_alloc(vm, in, &at[QDNN_OPERAND_X]) == PTXVM_OK &&
                  machine_alloc(vm, out, &at[QDNN_OPERAND_DSCALE]) == PTXVM_OK &&
                  machine_write(vm, at[QDNN_OPERAND_X], x, in) == PTXVM_OK) &&
            step_launch(vm, &step, at, 0) &&
            CHECK(machine_read(vm, sums, at[QDNN_OPERAND_DSCALE], out) == PTXVM_OK))
            CHECK_EQ_MEM(sums, expected, out);
        machine_free(vm, at[QDNN_OPERAND_X]);
        machine_free(vm, at[QDNN_OPERAND_DSCALE]);
    }
    free(x), free(sums), free(expected);
    test_pop_note();
}

/* With channels, a list for each of them; with groups, as many lists as there are groups. */
static int64_t groups_for(const kernel_spec *spec, int64_t groups)
{
    return spec->train.gradient_factor && spec->stored.channels ? (int64_t)spec->stored.channels : groups;
}

void long_sum_lists(machine *vm, const kernel_spec *spec)
{
    const kernel_spec normal = kernel_spec_normal(kernel_find("long_sum"), spec);
    for (int i = 0; i < LENGTH(long_lists); i++) {
        lists l = long_lists[i];
        l.groups = groups_for(&normal, l.groups);
        run_lists(vm, &normal, &l);
    }
    for (int64_t tail = 1; tail <= CHUNK + 1; tail++) /* in the first chunk, and in the second round */
        for (int64_t round = 0; round <= ROUND + 3 * CHUNK; round += ROUND + 3 * CHUNK) {
            const lists l = {groups_for(&normal, 1 + tail % 3), round + tail, DATA_NORMAL,
                             (uint32_t)(20 + tail)};
            run_lists(vm, &normal, &l);
        }
}

DEVICE_CASE(ParityTrain, Lists)
{
    static const char *const sms[] = {"sm_75", "sm_90"};
    for (int factor = 0; factor < 2; factor++) {
        kernel_spec spec = kernel_spec_default();
        ptxvm_config config = {.sm = sms[factor], .threads = 1, .checks = EVERY_CHECK};
        machine *vm;
        spec.train.gradient_factor = factor;
        spec.stored.group_size = spec.stored.channels = 1;
        REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
        long_sum_lists(vm, &spec);
        machine_destroy(vm);
    }
}
