/* Few settings of every kernel, each with data that no mutant of its text should survive (tests/mutate). */
#include "test_kernels_trials.h"

#include "formats/sample.h"
#include "support/checks.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- Settings ---- */

/* A kernel takes those that it knows. Groups of 101 meet within a chunk at every one of its elements. Every path of the emitters is in one of them: types, short, ragged and long
 * groups, channels, the whole tensor, orders, roundings, SMs with and without bf16 instructions. */
static const struct {
    const char *sm;
    const char *values[7][2];
} variants[] = {
    {"sm_90", {{"data", "f32"}}},
    {"sm_75",
     {{"data", "f16"}, {"scale", "f16"}, {"group_size", "101"}, {"rounding", "away"}, {"zero", "f32"}}},
    {"sm_80",
     {{"data", "bf16"},
      {"scale", "bf16"},
      {"group_size", "5000"},
      {"division", "reciprocal"},
      {"zero", "f16"},
      {"nibble_order", "high"}}},
    {"sm_89", {{"data", "f32"}, {"group_size", "1"}, {"channels", "1"}, {"zero", "bf16"}, {"floor", "0.5"}}},
    {"sm_100",
     {{"data", "f16"},
      {"group_size", "3"},
      {"channels", "5"},
      {"division", "reciprocal"},
      {"rounding", "away"}}},
    {"sm_75", {{"data", "bf16"}, {"scale", "bf16"}, {"group_size", "32"}, {"floor", "0"}}},
    {"sm_120", {{"data", "f32"}, {"scale", "e8m0"}, {"group_size", "32"}, {"mx_rounding", "even"}}},
    /* For kernels that make scales: only from f32 can every one come that lies between two numbers of a narrower type. */
    {"sm_75", {{"data", "f32"}, {"scale", "bf16"}, {"group_size", "64"}}},
    {"sm_86", {{"data", "f32"}, {"scale", "f16"}, {"group_size", "8"}, {"zero", "f16"}}},
};
enum { FOR_SCALES = 2 }; /* of the variants, the last */

static bool makes_ranges(const kernel_row *row)
{
    kernel_operation operation = kernel_operation_of(row);
    return operation != KERNEL_QUANTIZE && operation != KERNEL_DEQUANTIZE;
}

static bool is_new(const trial_setting *settings, int count, const trial_setting *one)
{
    for (int i = 0; i < count; i++)
        if (kernel_spec_equal(&settings[i].spec, &one->spec) && strcmp(settings[i].sm, one->sm) == 0)
            return false;
    return true;
}

/* Others, such as scales over scales and what serves training, have operands of their own; tests/parity compares
 * them. Blocks have trials in test_kernels_blocks.c. */
static bool is_flat(const kernel_row *row)
{
    static const kernel_operation flat[] = {KERNEL_SCALE, KERNEL_QUANTIZE, KERNEL_DEQUANTIZE, KERNEL_DYNAMIC,
                                            KERNEL_RANGE};
    for (int i = 0; i < LENGTH(flat); i++)
        if (kernel_operation_of(row) == flat[i])
            return kernel_format(row)->block == QDNN_BLOCK_NONE;
    return false;
}

int trial_settings(const kernel_row *row, trial_setting settings[TRIAL_SETTINGS_MAX])
{
    int count = 0;
    if (!is_flat(row))
        return 0;
    for (int v = 0; v < LENGTH(variants); v++) {
        trial_setting one = {.spec = kernel_spec_default(), .sm = variants[v].sm};
        char error[256];
        bool ok = makes_ranges(row) || v < LENGTH(variants) - FOR_SCALES;
        for (int i = 0; i < LENGTH(variants[v].values) && variants[v].values[i][0]; i++)
            if (kernel_takes(row, variants[v].values[i][0]))
                ok = kernel_spec_set(row, &one.spec, variants[v].values[i][0], variants[v].values[i][1],
                                     error, sizeof error) &&
                     ok;
        one.spec = kernel_spec_normal(row, &one.spec);
        if (ok && kernel_is_emitted(row, &one.spec, error, sizeof error) && is_new(settings, count, &one))
            settings[count++] = one;
    }
    return count;
}

/* ---- Data ---- */

enum { TILE_MAX = 5000 };

typedef struct trial_list {
    const kernel_row *row;
    const kernel_spec *spec;
    parity_trial *at;
    int count;
    int64_t tile; /* elements that a block takes, or of a few blocks where it takes any number */
} trial_list;

static void append(trial_list *list, parity_trial one)
{
    if (CHECK(list->count < TRIALS_MAX))
        list->at[list->count++] = one;
}

/* Kernels have a way of their own for whole, aligned tiles: every kind of data goes through it, and one element more
 * through the other way, which takes some kinds as a whole. */
static void add_kinds(trial_list *list)
{
    static const data_kind unaligned[] = {DATA_SPECIAL, DATA_ENDS};
    for (int kind = 0; kind < DATA_KINDS; kind++)
        append(list,
               (parity_trial){.n = 2 * list->tile + 1, .kind = (data_kind)kind, .seed = (uint32_t)kind + 1});
    for (uint32_t seed = 80; seed < 84; seed++) /* a NaN at every element of a thread */
        append(list, (parity_trial){.n = 2 * list->tile, .kind = DATA_SPECIAL, .seed = seed});
    for (int i = 0; i < LENGTH(unaligned); i++)
        append(list,
               (parity_trial){
                   .n = 2 * list->tile, .kind = unaligned[i], .seed = (uint32_t)i + 85, .data_shift = 1});
    append(list, (parity_trial){.n = 2 * list->tile, .kind = DATA_TIES, .seed = 12});
    append(list, (parity_trial){.n = list->tile + 9, .kind = DATA_NORMAL, .seed = 13});
}

/* Short tensors, and pointers with the alignment of an element only. */
static void add_ragged(trial_list *list)
{
    static const int64_t counts[] = {1, 33, 1000, 0};
    const size_t code =
        kernel_format(list->row)->bits > 8 ? kernel_format(list->row)->bits / 8 : 1; /* bytes */
    for (int i = 0; i < LENGTH(counts); i++)
        append(list, (parity_trial){.n = counts[i], .kind = DATA_TIES, .seed = (uint32_t)i + 20});
    append(list, (parity_trial){.n = list->tile, .kind = DATA_TIES, .seed = 23, .data_shift = 1});
    append(list,
           (parity_trial){
               .n = list->tile - 1, .kind = DATA_SPECIAL, .seed = 24, .scale_shift = 1, .zero_shift = 1});
    append(list, (parity_trial){.n = 2 * list->tile, .kind = DATA_NORMAL, .seed = 25, .codes_shift = code});
}

/* Tiles that are whole, one cut short, and groups of which the last lacks one element, in buffers that end with them: what is read and not used
 * shows, such as the numbers of a group that a chunk does not reach. */
static void add_exact(trial_list *list)
{
    const int64_t group = list->spec->stored.channels == 0 && list->spec->stored.group_size <= TILE_MAX
                              ? (int64_t)list->spec->stored.group_size
                              : list->tile;
    const int64_t counts[] = {
        list->tile, 3 * list->tile, list->tile - 7, 300, 0, list->tile / group * group + group - 1};
    for (int i = 0; i < LENGTH(counts); i++)
        append(list,
               (parity_trial){.n = counts[i], .kind = DATA_NORMAL, .seed = (uint32_t)i + 60, .exact = true});
}

/* A caller's scales and zero points, and values beyond what they can express. The places in the lists are those where a
 * scale of 1, -1/2 and 1/3 meets different zero points. */
static void add_callers(trial_list *list)
{
    static const data_kind kinds[] = {DATA_SPECIAL, DATA_TIES, DATA_HUGE, DATA_SUBNORMAL, DATA_ZEROS};
    static const int64_t firsts[] = {12, 148, 63, 97, 165, 150, 13};
    enum { ALL = 17, COMBINATIONS = 255 };
    bool few_groups =
        list->spec->stored.channels == 1 || (int64_t)list->spec->stored.group_size > list->tile / ALL;
    for (int i = 0; i < LENGTH(kinds); i++)
        append(list, (parity_trial){
                         .n = list->tile + 5, .kind = kinds[i], .seed = (uint32_t)i + 30, .callers = true});
    for (int i = 0; i < LENGTH(firsts); i++)
        append(list, (parity_trial){.n = list->tile + 3,
                                    .kind = DATA_CLAMP,
                                    .seed = (uint32_t)i + 40,
                                    .callers = true,
                                    .callers_first = firsts[i]});
    for (int i = 0; i < 5;
         i++) /* an infinity less an infinite zero; infinities by infinite and by large scales */
        append(list, (parity_trial){.n = list->tile,
                                    .kind = DATA_ENDS,
                                    .seed = (uint32_t)i + 90,
                                    .callers = true,
                                    .callers_first = i * COMBINATIONS / 5,
                                    .data_shift = i == 4});
    for (int i = 0; i < 2; i++) /* scales of 1 in the way for unaligned tensors */
        append(list, (parity_trial){.n = list->tile,
                                    .kind = DATA_CLAMP,
                                    .seed = (uint32_t)i + 95,
                                    .callers = true,
                                    .callers_first = firsts[i],
                                    .data_shift = 1});
    for (int i = 0; few_groups && i < ALL; i++) /* so that every scale of the list is met */
        append(list, (parity_trial){.n = list->tile,
                                    .kind = DATA_SPECIAL,
                                    .seed = (uint32_t)i + 70,
                                    .callers = true,
                                    .callers_first = i});
}

/* Bounds between codes times a number that is not a power of two: quotients by the scale come out a last bit beside the bounds, and roundings
 * decide. Pointers out of line by 2 and 4 elements. */
static void add_beside(trial_list *list)
{
    static const uint32_t seeds[] = {122, 123, 126, 127};
    for (int i = 0; i < LENGTH(seeds); i++)
        append(list, (parity_trial){.n = list->tile + (i % 2 ? 0 : 11),
                                    .kind = DATA_HALVES,
                                    .seed = seeds[i],
                                    .data_shift = i == 1   ? 2
                                                  : i == 3 ? 4
                                                           : 0});
}

/* Elements at the bounds between codes. Where groups are few, so are the scales of a launch. Scales that the elements make, those of a caller by which they
 * are beside the bounds, and huge ones. */
static void add_bounds(trial_list *list)
{
    enum { FEW_GROUPS = 16, MANY_GROUPS = 6, HUGE = 4 };
    const int64_t groups = list->spec->stored.channels ? (int64_t)list->spec->stored.channels
                                                       : list->tile / (int64_t)list->spec->stored.group_size;
    const bool has_callers = !makes_ranges(list->row);
    const uint32_t count = groups < 8 ? FEW_GROUPS : MANY_GROUPS;
    for (uint32_t i = 0; i < count; i++)
        append(list, (parity_trial){.n = list->tile + (i % 2 ? 0 : 11),
                                    .kind = DATA_UNEVEN,
                                    .seed = i + 144,
                                    .callers = has_callers && i % 4 < 3,
                                    .data_shift = i % 4 == 3});
    for (uint32_t i = 0; i < HUGE; i++)
        append(list, (parity_trial){.n = list->tile + (i % 2 ? 0 : 11),
                                    .kind = DATA_INFINITE_TIES,
                                    .seed = i + 160,
                                    .callers = has_callers,
                                    .callers_first = 1 + i});
}

/* The extremes of a group everywhere in it; the next group's are close by where they come first. Where there are many groups, few turns show all places. */
static void add_one_hot(trial_list *list)
{
    enum { FEW = 3, MANY = 34, SHORT = 128 };
    bool is_short = list->spec->stored.channels == 0 && list->spec->stored.group_size <= SHORT;
    for (uint32_t turn = 0; turn < (is_short ? FEW : MANY); turn++)
        append(list, (parity_trial){.n = list->tile + (turn % 2 ? 0 : 13),
                                    .kind = DATA_ONE_HOT,
                                    .seed = turn,
                                    .data_shift = turn % 4 == 3});
    for (uint32_t turn = 0; turn < FEW; turn++)
        append(list, (parity_trial){.n = list->tile, .kind = DATA_ONE_HOT, .seed = turn, .data_shift = 1});
}

/* Ranges whose scale is clamped, rounded half way, or made of infinities. */
static void add_ranges(trial_list *list)
{
    static const data_kind others[] = {DATA_HALVES,  DATA_HALVES, DATA_HALVES, DATA_HALVES,
                                       DATA_FEW_F16, DATA_WIDE,   DATA_SPREAD};
    for (int i = 0; i < LENGTH(others); i++)
        append(list, (parity_trial){.n = list->tile + (i % 2 ? 0 : 1 << (i / 2 + 1)),
                                    .kind = others[i],
                                    .seed = (uint32_t)i + 120});
    static const data_kind kinds[] = {DATA_SCALE_TIES, DATA_SCALE_TIES, DATA_SCALE_TIES, DATA_SCALE_TIES,
                                      DATA_SCALE_TIES, DATA_SCALE_TIES, DATA_FLOOR,      DATA_FLOOR,
                                      DATA_LEAST,      DATA_LEAST,      DATA_INFINITE,   DATA_INFINITE,
                                      DATA_ENDS,       DATA_ENDS,       DATA_ENDS,       DATA_ENDS};
    static const data_kind whole[] = {DATA_MINUTE, DATA_UNDERFLOW, DATA_NANS};
    for (int i = 0; i < LENGTH(kinds); i++)
        append(list, (parity_trial){.n = i % 2 ? 300 + 13 * i : 256 + (4 << (i / 2)),
                                    .kind = kinds[i],
                                    .seed = (uint32_t)i + 100});
    for (uint32_t seed = 8; seed < 12; seed++)
        append(list, (parity_trial){.n = 512, .kind = DATA_SCALE_TIES, .seed = seed});
    static const uint32_t least[] = {2, 4, 8}; /* twice that over the largest code of few bits rounds to 1 */
    for (int i = 0; i < LENGTH(least); i++)
        append(list,
               (parity_trial){.n = list->tile + i % 2, .kind = DATA_LEAST, .seed = LEAST_OF_SEED | least[i]});
    for (int i = 0; i < LENGTH(whole); i++)
        append(list, (parity_trial){.n = list->tile, .kind = whole[i], .seed = (uint32_t)i + 110});
}

int trials_for(const kernel_row *row, const kernel_spec *spec, parity_trial trials[TRIALS_MAX])
{
    enum { TILE_USUAL = 4096 };
    kernel_geometry geometry = kernel_geometry_of(row, spec);
    uint64_t tile =
        geometry.blocks || geometry.elements_per_block > TILE_MAX ? TILE_USUAL : geometry.elements_per_block;
    trial_list list = {row, spec, trials, 0, (int64_t)tile};
    uint64_t far = parity_far_block(row, spec);
    add_kinds(&list);
    add_ragged(&list);
    add_exact(&list);
    if (makes_ranges(row)) {
        add_ranges(&list);
        add_one_hot(&list);
    } else
        add_callers(&list);
    if (kernel_operation_of(row) == KERNEL_QUANTIZE)
        add_beside(&list);
    add_bounds(&list);
    if (far)
        append(&list, (parity_trial){.n = (int64_t)geometry.elements_per_block - 1,
                                     .kind = DATA_TIES,
                                     .seed = 50,
                                     .block = far});
    return list.count;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", sample_row_at(index)->name);
}

/* By default every other trial; the settings take turns. */
static int sampled(parity_trial trials[TRIALS_MAX], int count, int first)
{
    if (sample_is_full())
        return count;
    int kept = 0;
    for (int i = first % 2; i < count; i += 2)
        trials[kept++] = trials[i];
    return kept;
}

DEVICE_EACH(KernelTrials, HostRef, sample_row_count, case_name)
{
    const kernel_row *row = sample_row_at(index);
    trial_setting settings[TRIAL_SETTINGS_MAX];
    parity_trial trials[TRIALS_MAX];
    int count = trial_settings(row, settings);
    if (count == 0)
        SKIP("not a flat tensor with scales of its own");
    for (int i = 0; i < count; i++) {
        ptxvm_config config = {.sm = settings[i].sm, .threads = 1, .checks = EVERY_CHECK};
        machine *vm;
        REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
        const int trial_count = sampled(trials, trials_for(row, &settings[i].spec, trials), index + i);
        parity_emit_and_run(vm, row, &settings[i].spec, trials, trial_count);
        machine_destroy(vm);
    }
}
