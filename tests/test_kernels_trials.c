/* Few settings of every kernel, each with data that no mutant of its text should survive (tests/mutate). */
#include "test_kernels_trials.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- Settings ---- */

/* A kernel takes those that it knows. Every path of the emitters is in one of them: types, short, ragged and long
 * groups, channels, the whole tensor, orders, roundings, SMs with and without bf16 instructions. */
static const struct {
    const char *sm;
    const char *values[7][2];
} variants[] = {
    {"sm_90", {{"data", "f32"}}},
    {"sm_75", {{"data", "f16"}, {"scale", "f16"}, {"group_size", "100"}, {"rounding", "away"}, {"zero", "f32"}}},
    {"sm_80", {{"data", "bf16"}, {"scale", "bf16"}, {"group_size", "5000"}, {"division", "reciprocal"}, {"zero", "f16"}, {"nibble_order", "high"}}},
    {"sm_89", {{"data", "f32"}, {"group_size", "1"}, {"channels", "1"}, {"zero", "bf16"}, {"floor", "0.5"}}},
    {"sm_100", {{"data", "f16"}, {"group_size", "3"}, {"channels", "5"}, {"division", "reciprocal"}, {"rounding", "away"}}},
    {"sm_75", {{"data", "bf16"}, {"scale", "bf16"}, {"group_size", "32"}}},
    {"sm_120", {{"data", "f32"}, {"scale", "e8m0"}, {"group_size", "32"}, {"mx_rounding", "even"}}},
};

static bool is_new(const trial_setting *settings, int count, const trial_setting *one)
{
    for (int i = 0; i < count; i++)
        if (kernel_spec_equal(&settings[i].spec, &one->spec) && strcmp(settings[i].sm, one->sm) == 0)
            return false;
    return true;
}

int trial_settings(const kernel_row *row, trial_setting settings[TRIAL_SETTINGS_MAX])
{
    int count = 0;
    if (kernel_format(row)->block != QDNN_BLOCK_NONE)
        return 0;
    for (int v = 0; v < LENGTH(variants); v++) {
        trial_setting one = {.spec = kernel_spec_default(), .sm = variants[v].sm};
        char error[256];
        bool ok = true;
        for (int i = 0; i < LENGTH(variants[v].values) && variants[v].values[i][0]; i++)
            if (kernel_takes(row, variants[v].values[i][0]))
                ok = kernel_spec_set(row, &one.spec, variants[v].values[i][0], variants[v].values[i][1], error,
                                     sizeof error) &&
                     ok;
        one.spec = kernel_spec_normal(row, &one.spec);
        if (ok && kernel_is_emitted(row, &one.spec, error, sizeof error) && is_new(settings, count, &one))
            settings[count++] = one;
    }
    return count;
}

/* ---- Data ---- */

int trials_for(const kernel_row *row, const kernel_spec *spec, parity_trial trials[TRIALS_MAX])
{
    static const parity_trial callers[] = {{.n = 4999, .kind = DATA_SPECIAL, .seed = 1, .callers = true},
                                           {.n = 4096, .kind = DATA_TIES, .seed = 2, .callers = true},
                                           {.n = 2001, .kind = DATA_HUGE, .seed = 3, .callers = true},
                                           {.n = 4096, .kind = DATA_SUBNORMAL, .seed = 4, .callers = true},
                                           {.n = 301, .kind = DATA_ZEROS, .seed = 5, .callers = true}};
    int count = 0;
    (void)spec;
    for (int round = 0; round < 2; round++, count += DATA_KINDS)
        parity_kinds(trials + count, round);
    if (parity_is(row, "quantize_dynamic") || !(kernel_keys(row) & KERNEL_KEY_LAYOUT))
        return count;
    memcpy(trials + count, callers, sizeof callers);
    return count + LENGTH(callers);
}

static int case_count(void)
{
    return kernel_row_count;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_rows[index].name);
}

TEST_EACH(KernelTrials, HostRef, case_count, case_name)
{
    const kernel_row *row = &kernel_rows[index];
    trial_setting settings[TRIAL_SETTINGS_MAX];
    parity_trial trials[TRIALS_MAX];
    int count = trial_settings(row, settings);
    if (count == 0)
        SKIP("not a flat tensor with scales of its own");
    for (int i = 0; i < count; i++) {
        ptxvm_config config = {.sm = settings[i].sm, .threads = 1, .checks = PTXVM_CHECK_ALL};
        ptxvm *vm;
        REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
        parity_emit_and_run(vm, settings[i].sm, row, &settings[i].spec, trials,
                            trials_for(row, &settings[i].spec, trials));
        ptxvm_destroy(vm);
    }
}
