/* Kernels with one scale per channel or per tensor, against host_ref, on ptxvm as several SMs. A case is a
 * kernel and a number of channels; within it every length of runs meets every kind of data, while types of
 * data (in the full build each has a case), counts, types of scales, orders, roundings and misalignments take
 * turns. */
#include "test_kernels_parity.h"

#include "formats/sample.h"
#include "support/checks.h"
#include "test.h"

#include <stdio.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))
static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const uint64_t channel_counts[] = {1, 2, 3, 5, 64, 1000};
static const uint64_t runs[] = {1, 3, 8, 64, 100, 4096};
_Static_assert(LENGTH(runs) + 1 == DATA_KINDS, "two kinds a run are all kinds");

static int type_count(void)
{
    return sample_is_full() ? LENGTH(types) : 1;
}

/* A case by its number: the row counts slowest, then the type, then the number of channels. */
static const kernel_row *row_of(int index)
{
    return sample_row_at(index / type_count() / LENGTH(channel_counts));
}

static int type_of(int index)
{
    return sample_is_full() ? index / LENGTH(channel_counts) % LENGTH(types)
                            : (index / LENGTH(channel_counts) + index) % LENGTH(types);
}

static int case_count(void)
{
    return sample_row_count() * type_count() * LENGTH(channel_counts);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_c%d", row_of(index)->name, type_names[type_of(index)],
             (int)channel_counts[index % LENGTH(channel_counts)]);
}

/* Whole turns of all channels, cut turns, less than one, more than two tiles: what is small enough to run. */
static int64_t count_at(uint64_t run, uint64_t channels, int turn)
{
    const uint64_t all = run * channels, most = 9001;
    const uint64_t counts[] = {2 * all + run / 2 + 1, all,     17 * all + 3, all - 1, 1, most,
                               all / 2 + 1,           most - 5};
    uint64_t n = counts[turn % LENGTH(counts)];
    return (int64_t)(n > most ? most - (uint64_t)turn % 3 : n > 0 ? n : 1);
}

DEVICE_EACH(Channels, HostRef, case_count, case_name)
{
    const kernel_row *row = row_of(index);
    const char *sm = sms[(index + index / LENGTH(channel_counts)) % LENGTH(sms)];
    ptxvm_config config = {.sm = sm, .threads = 1, .seed = (uint64_t)(index % 2), .checks = EVERY_CHECK};
    machine *vm;
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    int texts = 0;
    for (int i = 0; i < LENGTH(runs); i++) {
        int round = index * LENGTH(runs) + i;
        kernel_spec spec = kernel_spec_default();
        parity_trial trials[DATA_KINDS];
        spec.data = types[type_of(index)];
        spec.stored.scale = (qdnnScaleType_t)((index + i) % 3);
        spec.stored.group_size = runs[i];
        spec.stored.channels = channel_counts[index % LENGTH(channel_counts)];
        parity_take_turns(&spec, round);
        char reason[256];
        if (!kernel_is_emitted(row, &spec, reason, sizeof reason))
            continue; /* several kernels: there is no text of the whole */
        texts++;
        parity_kinds(trials, round);
        for (int kind = 0; kind < DATA_KINDS; kind++)
            trials[kind].n = count_at(spec.stored.group_size, spec.stored.channels, round + kind);
        if (spec.stored.channels < 1000)
            parity_emit_and_run(vm, row, &spec, trials, DATA_KINDS);
        else
            parity_emit_and_run(vm, row, &spec, trials + i, 2); /* slow: two kinds per run, all in all */
    }
    machine_destroy(vm);
    if (!texts)
        SKIP("these settings are several kernels: there is no text of the whole");
}
