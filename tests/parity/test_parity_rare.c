/* Settings that the turns of the parity suite leave at their defaults: kinds of codes, scales of one byte, global and nested
 * scales, tight ranges, integer zeros, f64. Each with every kernel that takes it, against host_ref, all checks on. */
#include <stdio.h>

#include "device/under_test.h"
#include "parity/trial.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

typedef struct variation {
    const char *name;
    const char *needs[2]; /* settings that the kernel must take */
    const char *settings[4][2];
} variation;

static const variation variations[] = {
    {"offset", {"code"}, {{"code", "offset"}}},
    {"unsigned", {"code"}, {{"code", "unsigned"}}},
    {"twos", {"code"}, {{"code", "twos"}}},
    {"twos_i32", {"code", "zero"}, {{"code", "twos"}, {"zero", "i32"}}},
    {"unsigned_u32", {"code", "zero"}, {{"code", "unsigned"}, {"zero", "u32"}}},
    {"unsigned_f16", {"code", "zero"}, {{"code", "unsigned"}, {"zero", "f16"}, {"rounding", "away"}}},
    {"tight", {"range"}, {{"range", "tight"}, {"zero", "f32"}}},
    {"tight_twos_bf16", {"range", "code"}, {{"range", "tight"}, {"zero", "bf16"}, {"code", "twos"}}},
    {"floor_0", {"floor"}, {{"floor", "0"}}},
    {"e4m3", {"scale"}, {{"scale", "e4m3"}}},
    {"e4m3_global", {"scale", "global_scale"}, {{"scale", "e4m3"}, {"global_scale", "yes"}}},
    {"e4m3_reciprocal_global",
     {"scale", "global_scale"},
     {{"scale", "e4m3"}, {"global_scale", "reciprocal"}}},
    {"e4m3_reciprocal",
     {"scale", "division"},
     {{"scale", "e4m3"}, {"global_scale", "yes"}, {"division", "reciprocal"}}},
    {"e8m0", {"scale"}, {{"scale", "e8m0"}}},
    {"e8m0_ceil", {"mx_rounding"}, {{"scale", "e8m0"}, {"mx_rounding", "ceil"}}},
    {"e8m0_even", {"mx_rounding"}, {{"scale", "e8m0"}, {"mx_rounding", "even"}}},
    {"nested", {"nested"}, {{"nested", "yes"}}},
    {"nested_reciprocal", {"nested", "division"}, {{"nested", "yes"}, {"division", "reciprocal"}}},
    {"f64", {"data"}, {{"data", "f64"}}},
    {"none", {"groups"}, {{"groups", "none"}}},
};

/* Sets what the kernel takes; false where that is nothing it has a kernel for. */
static bool vary(const kernel_row *row, const variation *v, kernel_spec *spec)
{
    char reason[512];
    for (int i = 0; i < LENGTH(v->needs) && v->needs[i]; i++)
        if (!kernel_takes(row, v->needs[i]))
            return false;
    for (int i = 0; i < LENGTH(v->settings) && v->settings[i][0]; i++)
        if (kernel_takes(row, v->settings[i][0]) &&
            !kernel_spec_set(row, spec, v->settings[i][0], v->settings[i][1], reason, sizeof reason))
            FAIL("%s: %s", row->name, reason);
    if (spec->stored.groups == QDNN_GROUPS_DEFAULT &&
        (parity_makes_scales(row) || kernel_format(row)->zero_kind))
        return false; /* without scales there is nothing to make, and no zero */
    return kernel_spec_check(row, spec, reason, sizeof reason);
}

static const struct {
    qdnnGranularity_t granularity;
    int64_t extent;
    int64_t elements;
} groupings[] = {
    {QDNN_GRANULARITY_GROUP, 16, 4096 + 37}, {QDNN_GRANULARITY_GROUP, 32, 8192},
    {QDNN_GRANULARITY_GROUP, 5, 999},        {QDNN_GRANULARITY_TENSOR, 0, 20001},
    {QDNN_GRANULARITY_GROUP, 64, 300},       {QDNN_GRANULARITY_GROUP, 4096, 9000},
};

static void run_variation(qdnnHandle_t handle, const kernel_row *row, const kernel_spec *spec, int round)
{
    bool alive = true;
    for (int i = 0; i < LENGTH(groupings) && alive; i++) {
        bool none = spec->stored.groups == QDNN_GROUPS_DEFAULT;
        parity_trial t = {.c = {.row = row,
                                .spec = *spec,
                                .granularity = none ? QDNN_GRANULARITY_NONE : groupings[i].granularity,
                                .extent = none ? 0 : groupings[i].extent,
                                .rank = 1,
                                .dims = {quant_case_columns(row, groupings[i].elements)},
                                .kind = (data_kind)((round + i) % DATA_KINDS),
                                .seed = (uint32_t)(round * 7 + i + 1),
                                .callers = !parity_makes_scales(row) && (round + i) % 4 == 3},
                          .buffers = i % 2 ? BUFFER_EXACT : BUFFER_BANDS,
                          .by_plan = true};
        t.shift[QDNN_OPERAND_X] = t.shift[QDNN_OPERAND_Y] = i == 4;
        t.shift[QDNN_OPERAND_CODES] = i == 2;
        if (t.c.callers && (spec->stored.zero == QDNN_DATA_U32 || spec->stored.zero == QDNN_DATA_I32))
            t.c.callers = false;
        alive = parity_run(handle, &t);
    }
}

DEVICE_EACH(ParityRare, HostRef, parity_row_count, parity_row_name)
{
    static const char *const sms[] = {"sm_75", "sm_90", "sm_120"};
    const kernel_row *row = parity_row_at(index);
    qdnnHandle_t handle = device_begin(sms[index % 3], index % 2, "all");
    for (int i = 0; i < LENGTH(variations) && handle; i++) {
        kernel_spec spec = kernel_spec_default();
        if (!vary(row, &variations[i], &spec))
            continue;
        test_push_note("%s", variations[i].name);
        run_variation(handle, row, &spec, index + i);
        test_pop_note();
    }
    device_end(handle);
}
