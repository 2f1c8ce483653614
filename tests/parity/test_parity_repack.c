/* Codes from every layout into every other, with and without another kind of code, through the public API against
 * host_ref; and the way back. */
#include <stdio.h>
#include <stdlib.h>

#include "device/device_buffer.h"
#include "formats/kernel_data.h"
#include "formats/sample.h"
#include "host_ref/host_ref.h"
#include "device/under_test.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

/* What codes are: integers of every width, and others. */
static const struct code_case {
    const char *name;
    qdnnDataType_t storage;
    int bits;
    qdnnCodeKind_t special; /* DEFAULT: kinds of integers take turns */
    bool is_integer;
} codes[] = {
    {"int2", QDNN_DATA_I8, 2, QDNN_CODE_DEFAULT, true},
    {"int3", QDNN_DATA_I8, 3, QDNN_CODE_DEFAULT, true},
    {"int4", QDNN_DATA_I4, 4, QDNN_CODE_DEFAULT, true},
    {"int5", QDNN_DATA_I8, 5, QDNN_CODE_DEFAULT, true},
    {"int6", QDNN_DATA_I8, 6, QDNN_CODE_DEFAULT, true},
    {"int8", QDNN_DATA_I8, 8, QDNN_CODE_DEFAULT, true},
    {"nf4", QDNN_DATA_NF4, 4, QDNN_CODE_DEFAULT, false},
    {"e3m2", QDNN_DATA_U8, 6, QDNN_CODE_E3M2, false},
    {"e4m3", QDNN_DATA_F8E4M3, 8, QDNN_CODE_DEFAULT, false},
};
enum { CODES = sizeof codes / sizeof codes[0] };

/* Bytes high nibble first is a layout of its own here. */
enum { BYTES, HIGH_FIRST, INTERLEAVED, WORDS, AWQ, WAYS };
static const qdnnLayout_t layouts[WAYS] = {QDNN_LAYOUT_BYTES, QDNN_LAYOUT_BYTES,
                                           QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_LAYOUT_WORDS_ROWS,
                                           QDNN_LAYOUT_AWQ};
static const int64_t shapes[][2] = {{32, 128}, {40, 64}, {70, 36}, {33, 8},
                                    {1, 352},  {5, 37},  {9, 1},   {0, 8}};
static const qdnnCodeKind_t kinds[] = {QDNN_CODE_OFFSET, QDNN_CODE_TWOS_COMPLEMENT, QDNN_CODE_UNSIGNED};

static int case_count(void)
{
    return CODES * SMS;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_turn_%d", codes[index / SMS].name, index % SMS);
}

static bool has_way(const struct code_case *c, int way, int64_t columns)
{
    return (way != HIGH_FIRST && way != AWQ) || (c->bits == 4 && (way == HIGH_FIRST || columns % 8 == 0));
}

static ref_quant_spec spec_of(const struct code_case *c, int way, int kind)
{
    return (ref_quant_spec){.data = QDNN_DATA_F32,
                            .storage = c->storage,
                            .bits = c->bits,
                            .code = c->is_integer ? kinds[kind] : c->special,
                            .layout = layouts[way],
                            .nibble_order =
                                way == HIGH_FIRST ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST,
                            .group_size = 32,
                            .floor = REF_DEFAULT_FLOOR};
}

static bool make_descriptor(const ref_quant_spec *spec, qdnnQuantDescriptor_t *quant)
{
    return CHECK_QDNN(qdnnCreateQuantDescriptor(quant)) &&
           CHECK_QDNN(qdnnSetQuantDescriptor(*quant, spec->storage, QDNN_GRANULARITY_GROUP, 32)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_CODE_BITS, spec->bits)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_CODE_KIND, spec->code)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_LAYOUT, spec->layout)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_NIBBLE_ORDER, spec->nibble_order));
}

/* One plan, from one buffer to the other. */
static bool call(qdnnHandle_t handle, const ref_quant_spec *from, const ref_quant_spec *to,
                 const int64_t dims[2], const device_buffer *codes_at, const device_buffer *repacked)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t before = NULL, after = NULL;
    qdnnPlan_t plan = NULL;
    const qdnnBinding_t bindings[] = {
        {.operand = QDNN_OPERAND_CODES, .pointer = device_buffer_at(codes_at)},
        {.operand = QDNN_OPERAND_REPACKED, .pointer = device_buffer_at(repacked)}};
    bool ok = CHECK_QDNN(qdnnCreateTensorDescriptor(&tensor)) &&
              CHECK_QDNN(qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 2, dims, NULL)) &&
              make_descriptor(from, &before) && make_descriptor(to, &after) &&
              CHECK_QDNN(qdnnCreateRepackPlan(handle, tensor, before, after, &plan)) &&
              CHECK_QDNN(qdnnExecute(handle, plan, bindings, 2, NULL, 0)) &&
              CHECK_QDNN(qdnnSynchronize(handle));
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(before);
    qdnnDestroyQuantDescriptor(after);
    qdnnDestroyTensorDescriptor(tensor);
    return ok;
}

/* How far the first pointer is from an address of 256 bytes, and the second: both by themselves, and at an address of elements. */
static int64_t offset_of(const ref_quant_spec *spec, uint32_t seed, uint32_t turn)
{
    static const int64_t words[] = {4, 8, 12, 4}, bytes[] = {1, 4, 2, 8};
    return seed % 3 == turn ? (spec->layout == QDNN_LAYOUT_BYTES ? bytes : words)[seed / 3 % 4] : 0;
}

/* There and back: padding is 0 on both ways. */
static bool run(qdnnHandle_t handle, const ref_quant_spec *from, const ref_quant_spec *to,
                const int64_t dims[2], uint32_t seed)
{
    size_t from_bytes = (size_t)ref_sizes_of(from, dims[0], dims[1]).codes,
           to_bytes = (size_t)ref_sizes_of(to, dims[0], dims[1]).codes;
    uint8_t *raw = calloc(from_bytes + 1, 1), *codes_host = calloc(from_bytes + 1, 1),
            *repacked = calloc(to_bytes + 1, 1);
    buffer_kind kind = seed % 2 ? BUFFER_EXACT : BUFFER_BANDS;
    device_buffer in = {0}, out = {0}, back = {0};
    bool ok = CHECK(raw && codes_host && repacked);
    if (ok) {
        fill_bytes(seed, raw, (int64_t)from_bytes);
        ref_repack(from, from, dims[0], dims[1], raw, codes_host);
        ref_repack(from, to, dims[0], dims[1], codes_host, repacked);
        ok = device_buffer_make(handle, kind, from_bytes, offset_of(from, seed, 1), &in) &&
             device_buffer_make(handle, kind, to_bytes, offset_of(to, seed, 2), &out) &&
             device_buffer_make(handle, kind, from_bytes, 0, &back) && device_buffer_write(&in, codes_host) &&
             call(handle, from, to, dims, &in, &out) && call(handle, to, from, dims, &out, &back);
    }
    if (ok) {
        device_buffer_check(&out, repacked, "repacked");
        device_buffer_check(&back, codes_host, "codes");
    }
    device_buffer_free(&in);
    device_buffer_free(&out);
    device_buffer_free(&back);
    free(raw);
    free(codes_host);
    free(repacked);
    return ok;
}

DEVICE_EACH(ParityRepack, HostRef, case_count, case_name)
{
    const struct code_case *c = &codes[index / SMS];
    qdnnHandle_t handle = device_begin(sms[index % SMS], 1 + index % 2, "all");
    bool alive = handle != NULL;
    int turn = index;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int from = 0; from < WAYS; from++)
            for (int to = 0; to <= from; to++) {
                if (!has_way(c, from, shapes[s][1]) || !has_way(c, to, shapes[s][1]) || !alive)
                    continue;
                ref_quant_spec before = spec_of(c, from, turn % 3), after = spec_of(c, to, turn / 3 % 3);
                test_push_note("%s %lld x %lld from way %d to %d, turn %d", c->name, (long long)shapes[s][0],
                               (long long)shapes[s][1], from, to, turn);
                alive = run(handle, &before, &after, shapes[s], (uint32_t)++turn);
                test_pop_note();
            }
    device_end(handle);
}

/* ---- Trials ---- */

/* Each text with many shapes, so that a mistake in any line of it shows (docs/mutation.md): around patches of 8 and 32 rows and spans of 128
 * columns, ragged and not, and pointers that are not aligned. */
static const int64_t trial_shapes[][2] = {
    {32, 128}, {40, 64},  {70, 36},  {33, 8},   {1, 352},  {5, 37},  {9, 1},    {64, 72},   {16, 264},
    {130, 24}, {3, 1056}, {257, 40}, {8, 513},  {31, 136}, {7, 32},  {96, 129}, {129, 160}, {2, 5},
    {63, 256}, {35, 16},  {43, 48},  {27, 11},  {49, 27},  {22, 22}, {21, 150}, {86, 17},   {13, 800},
    {59, 43},  {170, 61}, {39, 7},   {6, 1290}, {54, 56},  {11, 6},  {95, 312}, {300, 88}};
enum { TRIAL_SHAPES = sizeof trial_shapes / sizeof trial_shapes[0] };

static bool has_both_ways(int at)
{
    const struct code_case *c = &codes[at / WAYS / WAYS];
    return has_way(c, at / WAYS % WAYS, 128) && has_way(c, at % WAYS, 128);
}

enum { TRIALS = CODES * WAYS * WAYS, SAMPLED = 12 };

/* By default few of those that there are. */
static int trial_case(int index)
{
    int count = 0, at = 0;
    for (int i = 0; i < TRIALS; i++)
        count += has_both_ways(i);
    for (int left = (2 * index + 1) * count / (2 * SAMPLED); !has_both_ways(at) || left-- > 0;)
        at++;
    return sample_is_full() ? index : at;
}

static int trial_count(void)
{
    return sample_is_full() ? TRIALS : SAMPLED;
}

static void trial_name(int index, char *text, size_t size)
{
    const int at = trial_case(index);
    snprintf(text, size, "%s_from_%d_to_%d", codes[at / WAYS / WAYS].name, at / WAYS % WAYS, at % WAYS);
}

DEVICE_EACH(ParityRepack, Trials, trial_count, trial_name)
{
    const int at = trial_case(index), from = at / WAYS % WAYS, to = at % WAYS;
    const struct code_case *c = &codes[at / WAYS / WAYS];
    if (!has_both_ways(at))
        SKIP("%s has no such layout", c->name);
    const ref_quant_spec before = spec_of(c, from, at % 3), after = spec_of(c, to, at / 3 % 3);
    qdnnHandle_t handle = device_begin(sms[at % SMS], 1, "all");
    bool alive = handle != NULL;
    for (int i = sample_is_full() ? 0 : index % 5; i < TRIAL_SHAPES && alive; i += sample_is_full() ? 1 : 5) {
        const int64_t *dims = trial_shapes[i];
        if (!has_way(c, from, dims[1]) || !has_way(c, to, dims[1]))
            continue;
        const int turns = sample_is_full() && dims[1] % 8 == 0 ? 3 : 1; /* of pointers */
        for (int turn = 0; turn < turns && alive; turn++) {
            test_push_note("%lld x %lld, turn %d", (long long)dims[0], (long long)dims[1], turn);
            alive = run(handle, &before, &after, dims, (uint32_t)(5 * i + turn + 1));
            test_pop_note();
        }
    }
    device_end(handle);
}
