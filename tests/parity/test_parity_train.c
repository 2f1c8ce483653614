/* The training-time operations through the public API against host_ref, on ptxvm: as six SMs, with every check on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/step_launch.h"
#include "formats/kernel_data.h"
#include "formats/sample.h"
#include "host_ref/host_ref.h"
#include "kernels/operations.h"
#include "parity/long_sum.h"
#include "device/under_test.h"
#include "support/checks.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

typedef enum { FAKE_QUANTIZE, FAKE_QUANTIZE_BACKWARD, LSQ, LSQ_BACKWARD } operation;

static const struct {
    const char *name;
    qdnnStatus_t (*plan)(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnTrainDescriptor_t, qdnnPlan_t *);
    const char *operation;
} operations[] = {
    [FAKE_QUANTIZE] = {"fake_quantize", qdnnCreateFakeQuantizePlan, "train.fake_quantize"},
    [FAKE_QUANTIZE_BACKWARD] = {"fake_quantize_backward", qdnnCreateFakeQuantizeBackwardPlan,
                                "train.fake_quantize.backward"},
    [LSQ] = {"lsq", qdnnCreateLsqPlan, "train.lsq"},
    [LSQ_BACKWARD] = {"lsq_backward", qdnnCreateLsqBackwardPlan, "train.lsq.backward"},
};

/* ---- Cases ---- */

typedef struct train_case {
    operation op;
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    qdnnGranularity_t granularity;
    int64_t extent;      /* GROUP: the size; CHANNEL: the axis */
    ref_train_spec spec; /* group_size and channels are filled in from those */
    data_kind kind;
    uint32_t seed;
    size_t shift;  /* elements that every buffer lies after an aligned address, */
    uint64_t kept; /* but for these: bits of operands */
    bool is_curve; /* quotients where tanh is neither straight nor flat */
    bool
        has_rare; /* one NaN in each group: where there are several, no result tells which of them were seen */
    int64_t n;    /* not 0: a number of elements that no tensor has, with channels that end in the middle */
} train_case;

static int64_t elements_of(const train_case *c)
{
    int64_t n = 1;
    if (c->n)
        return c->n;
    for (int i = 0; i < c->rank; i++)
        n *= c->dims[i];
    return n;
}

/* As docs/numerics.md defines it, not as the library computes it. */
static ref_train_spec reference_of(const train_case *c)
{
    ref_train_spec spec = c->spec;
    spec.group_size = spec.channels = 1;
    if (c->granularity == QDNN_GRANULARITY_GROUP) {
        spec.group_size = c->extent;
        spec.channels = 0;
    } else if (c->granularity == QDNN_GRANULARITY_CHANNEL) {
        for (int i = (int)c->extent + 1; i < c->rank; i++)
            spec.group_size *= c->dims[i];
        spec.channels = c->dims[c->extent];
    }
    return spec;
}

static int64_t groups_of(const train_case *c)
{
    ref_train_spec spec = reference_of(c);
    return elements_of(c) ? ref_train_groups(&spec, elements_of(c)) : 0;
}

static void case_text(const train_case *c, char *text, size_t size)
{
    int used =
        snprintf(text, size,
                 "%s %d bits, granularity %d of %lld, mode %d, backward %d, rounding %d, factor %d, "
                 "data %d, seed %u, shift %zu, n %lld, dims",
                 operations[c->op].name, c->spec.bits, (int)c->granularity, (long long)c->extent,
                 (int)c->spec.mode, (int)c->spec.backward, (int)c->spec.rounding,
                 (int)c->spec.gradient_factor, (int)c->kind, (unsigned)c->seed, c->shift, (long long)c->n);
    for (int i = 0; i < c->rank; i++)
        used += snprintf(text + used, size - (size_t)used, " %lld", (long long)c->dims[i]);
}

/* ---- Data ---- */

/* The buffers on the host: inputs as they are, outputs as host_ref has them. */
typedef struct train_data {
    int64_t counts[QDNN_OPERAND_COUNT]; /* f32 of each */
    float *before[QDNN_OPERAND_COUNT], *after[QDNN_OPERAND_COUNT];
} train_data;

static uint64_t operands_of(const train_case *c)
{
    const uint64_t x = UINT64_C(1) << QDNN_OPERAND_X, y = UINT64_C(1) << QDNN_OPERAND_Y,
                   dy = UINT64_C(1) << QDNN_OPERAND_DY, dx = UINT64_C(1) << QDNN_OPERAND_DX,
                   scale = UINT64_C(1) << QDNN_OPERAND_SCALE, dscale = UINT64_C(1) << QDNN_OPERAND_DSCALE;
    uint64_t state = c->spec.mode == QDNN_SCALE_MODE_BATCH ? 0 : UINT64_C(1) << QDNN_OPERAND_STATE;
    switch (c->op) {
    case FAKE_QUANTIZE:
        return x | y | state;
    case FAKE_QUANTIZE_BACKWARD:
        return c->spec.backward == QDNN_BACKWARD_IDENTITY ? dy | dx : x | dy | dx | state;
    case LSQ:
        return x | scale | y;
    case LSQ_BACKWARD:
        return x | scale | dy | dx | dscale;
    }
    return 0;
}

static bool is_output(const train_case *c, int operand)
{
    return operand == QDNN_OPERAND_Y || operand == QDNN_OPERAND_DX || operand == QDNN_OPERAND_DSCALE ||
           (operand == QDNN_OPERAND_STATE && c->op == FAKE_QUANTIZE && c->spec.mode == QDNN_SCALE_MODE_EMA);
}

/* Ties of scales that are not powers of two. */
static bool is_by_thirds(const train_case *c)
{
    return c->kind == DATA_TIES && c->seed % 2;
}

/* Scales as they should be for the data, with a caller's strange ones among them: powers of two where
 * quotients are to be ties or the ends of the range, and around the least scale where numbers are that
 * small. */
static void fill_scales(const train_case *c, float *scales, int64_t n)
{
    static const float strange[] = {0.0f, -1.0f, 1e-20f, 3e38f, 0x1p-149f, INFINITY};
    static const float powers[] = {1.0f, 0.5f, 2.0f, -1.0f}, thirds[] = {3.0f, 0.7f, 0.1f, 1.3f},
                       least[] = {1e-12f, 0x1.19799ap-40f, 3e-12f, 0.0f};
    static const float most[] = {0x1.555554p127f, 3e38f, 1.0f, 0x1p127f,
                                 INFINITY}; /* the largest number is 1.5 times the first */
    for (int64_t i = 0; i < n; i++) {
        uint32_t turn = (uint32_t)i * 2654435761u + c->seed * 40503u;
        scales[i] = 0.01f + (float)(turn >> 16 & 1023) / 256.0f;
        if (c->kind == DATA_TIES || c->kind == DATA_CLAMP)
            scales[i] =
                c->seed % 2 ? thirds[(turn >> 20) % LENGTH(thirds)] : powers[(turn >> 20) % LENGTH(powers)];
        if (c->kind == DATA_SUBNORMAL || c->kind == DATA_LEAST)
            scales[i] = least[(turn >> 20) % LENGTH(least)];
        if (c->kind == DATA_INFINITE || c->kind == DATA_HUGE)
            scales[i] = most[(turn >> 20) % LENGTH(most)];
        if (c->is_curve)
            scales[i] = 1.0f;
        if (c->kind == DATA_SPECIAL && turn >> 28 == 3)
            scales[i] = turn & 64 ? ref_f32_from_bits(0xFFC00001) : strange[(turn >> 8) % LENGTH(strange)];
    }
}

/* A number whose quotient by its scale rounds to half a code, or is next to one that does. */
static float near_tie(const train_case *c, const float *scales, int64_t i)
{
    const ref_train_spec spec = reference_of(c);
    const int64_t group = spec.channels ? i / spec.group_size % spec.channels : i / spec.group_size;
    const float x = scales[group] * ((float)(i * 7 % 11 - 5) + 0.5f);
    return i % 3 == 0 ? x : nextafterf(x, i % 3 == 1 ? INFINITY : -INFINITY);
}

/* Between -3 and 3, and now and then the largest code, which makes the scale of a group 1. */
static float on_curve(const train_case *c, int64_t i)
{
    const uint32_t turn = ((uint32_t)i + 1) * 2654435761u + c->seed;
    if (i % 37 == 5)
        return (float)((1 << (c->spec.bits - 1)) - 1);
    return ((float)(turn >> 8) - 0x1p23f) * (3.0f / 0x1p23f);
}

/* Elsewhere in each group, and with the seed on every lane and element of a chunk. */
static void fill_rare(const train_case *c, float *x)
{
    const ref_train_spec spec = reference_of(c);
    const int64_t n = elements_of(c), groups = groups_of(c), stride = 5;
    for (int64_t group = 0; group < groups; group++) {
        const int64_t run = spec.group_size, turn = run * (spec.channels ? spec.channels : 1);
        const int64_t rank = (c->seed + stride * group) % (spec.channels == 1 ? n : run);
        const int64_t at =
            spec.channels == 1 ? rank : group * run + (spec.channels ? n / turn / 2 * turn : 0) + rank;
        if (at < n)
            x[at] = NAN;
    }
}

static void fill_x(const train_case *c, const format_facts *like, const float *scales, float *x)
{
    const ref_train_spec spec = reference_of(c);
    const int64_t n = elements_of(c);
    if (c->kind == DATA_ONE_HOT)
        fill_one_hot(QDNN_DATA_F32, (uint64_t)spec.group_size, (uint64_t)spec.channels, c->seed, x, n);
    else
        fill_data(c->kind, like, QDNN_DATA_F32, c->seed, x, n);
    for (int64_t i = 0; i < n; i++)
        if (c->kind == DATA_LEAST) /* some codes for the least scale */
            x[i] = 0.3e-12f * (float)(i * 7 % 41 - 20);
        else if (is_by_thirds(c))
            x[i] = near_tie(c, scales, i);
        else if (c->is_curve)
            x[i] = on_curve(c, i);
        else if (c->kind == DATA_TIES && i % 11 == 3) /* plus 1/2, it rounds to 1 */
            x[i] = i % 2 ? 0x1.fffffep-2f : -0x1.fffffep-2f;
    if (c->has_rare)
        fill_rare(c, x);
}

static void fill_inputs(const train_case *c, train_data *d)
{
    const format_facts like = {.name = "none", .storage = QDNN_DATA_I4, .bits = (unsigned)c->spec.bits};
    int64_t n = elements_of(c), groups = groups_of(c);
    fill_data(c->kind == DATA_SPECIAL && c->seed % 2 ? DATA_SPECIAL : DATA_NORMAL, &like, QDNN_DATA_F32,
              c->seed + 77, d->before[QDNN_OPERAND_DY], n);
    fill_scales(c, d->before[QDNN_OPERAND_SCALE], groups);
    fill_scales(c, d->before[QDNN_OPERAND_STATE], groups);
    fill_x(c, &like, d->before[QDNN_OPERAND_SCALE], d->before[QDNN_OPERAND_X]);
}

static void compute(const train_case *c, train_data *d)
{
    ref_train_spec spec = reference_of(c);
    int64_t n = elements_of(c);
    float **at = d->after;
    switch (c->op) {
    case FAKE_QUANTIZE:
        ref_fake_quantize(&spec, n, at[QDNN_OPERAND_X], at[QDNN_OPERAND_STATE], at[QDNN_OPERAND_Y]);
        break;
    case FAKE_QUANTIZE_BACKWARD:
        ref_fake_quantize_backward(&spec, n, at[QDNN_OPERAND_X], at[QDNN_OPERAND_STATE], at[QDNN_OPERAND_DY],
                                   at[QDNN_OPERAND_DX]);
        break;
    case LSQ:
        ref_lsq(&spec, n, at[QDNN_OPERAND_X], at[QDNN_OPERAND_SCALE], at[QDNN_OPERAND_Y]);
        break;
    case LSQ_BACKWARD:
        ref_lsq_backward(&spec, n, at[QDNN_OPERAND_X], at[QDNN_OPERAND_SCALE], at[QDNN_OPERAND_DY],
                         at[QDNN_OPERAND_DX], at[QDNN_OPERAND_DSCALE]);
        break;
    }
}

static void data_free(train_data *d)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        free(d->before[i]);
        free(d->after[i]);
    }
}

static bool data_make(const train_case *c, train_data *d)
{
    *d = (train_data){0};
    int64_t n = elements_of(c), groups = groups_of(c);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        bool small = i == QDNN_OPERAND_SCALE || i == QDNN_OPERAND_STATE || i == QDNN_OPERAND_DSCALE;
        d->counts[i] = small ? groups : n;
        d->before[i] = calloc((size_t)d->counts[i] + 1, sizeof(float));
        d->after[i] = calloc((size_t)d->counts[i] + 1, sizeof(float));
        if (!CHECK(d->before[i] && d->after[i]))
            return false;
    }
    fill_inputs(c, d);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        memcpy(d->after[i], d->before[i], (size_t)d->counts[i] * sizeof(float));
    if (n > 0)
        compute(c, d);
    return true;
}

/* ---- A call ---- */

typedef struct train_descriptors {
    qdnnTensorDescriptor_t tensor;
    qdnnTrainDescriptor_t train;
} train_descriptors;

static bool set_attributes(const train_case *c, qdnnTrainDescriptor_t train)
{
    const int64_t values[QDNN_TRAIN_ATTRIBUTE_COUNT] = {
        [QDNN_TRAIN_BITS] = c->spec.bits,
        [QDNN_TRAIN_GRANULARITY] = c->granularity,
        [QDNN_TRAIN_AXIS] = c->granularity == QDNN_GRANULARITY_CHANNEL ? c->extent : 0,
        [QDNN_TRAIN_GROUP_SIZE] = c->granularity == QDNN_GRANULARITY_GROUP ? c->extent : 128,
        [QDNN_TRAIN_SCALE_MODE] = c->spec.mode,
        [QDNN_TRAIN_BACKWARD] = c->spec.backward,
        [QDNN_TRAIN_ROUNDING] = c->spec.rounding,
        [QDNN_TRAIN_GRADIENT_FACTOR] = c->spec.gradient_factor};
    for (int i = 0; i < QDNN_TRAIN_ATTRIBUTE_COUNT; i++)
        if (!CHECK_QDNN(qdnnSetTrainAttribute(train, (qdnnTrainAttribute_t)i, values[i])))
            return false;
    return CHECK_QDNN(qdnnSetTrainDecay(train, c->spec.decay));
}

static bool descriptors_make(const train_case *c, train_descriptors *d)
{
    *d = (train_descriptors){0};
    size_t scales = 99;
    bool ok = CHECK_QDNN(qdnnCreateTensorDescriptor(&d->tensor)) &&
              CHECK_QDNN(qdnnCreateTrainDescriptor(&d->train)) &&
              CHECK_QDNN(qdnnSetTensorDescriptor(d->tensor, QDNN_DATA_F32, c->rank, c->dims, NULL)) &&
              set_attributes(c, d->train) && CHECK_QDNN(qdnnGetTrainScaleCount(d->train, d->tensor, &scales));
    if (ok)
        CHECK_EQ_I64((int64_t)scales, groups_of(c));
    return ok;
}

static void descriptors_free(train_descriptors *d)
{
    qdnnDestroyTensorDescriptor(d->tensor);
    qdnnDestroyTrainDescriptor(d->train);
}

/* The workspace is undefined memory, whose use before it is written is found, or full of numbers, so that what is written
 * by mistake shows. */
static bool execute(qdnnHandle_t handle, qdnnPlan_t plan, uint64_t operands, const device_buffer *buffers,
                    buffer_kind kind)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    device_buffer workspace = {0};
    size_t bytes;
    int count = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (operands >> i & 1)
            bindings[count++] =
                (qdnnBinding_t){.operand = (qdnnOperand_t)i, .pointer = device_buffer_at(&buffers[i])};
    bool ok = CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &bytes)) &&
              device_buffer_make(handle, kind, bytes, 0, &workspace) &&
              CHECK_QDNN(qdnnExecute(handle, plan, bindings, count, device_buffer_at(&workspace), bytes)) &&
              CHECK_QDNN(qdnnSynchronize(handle));
    device_buffer_free(&workspace);
    return ok;
}

static buffer_kind buffers_of(const train_case *c)
{
    return c->seed % 2 ? BUFFER_EXACT : BUFFER_BANDS;
}

static bool make_buffers(qdnnHandle_t handle, const train_case *c, const train_data *d,
                         device_buffer *buffers)
{
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (operands_of(c) >> i & 1)
            ok = device_buffer_make(handle, buffers_of(c), (size_t)d->counts[i] * sizeof(float),
                                    c->kept >> i & 1 ? 0 : c->shift * sizeof(float), &buffers[i]) &&
                 ((is_output(c, i) && i != QDNN_OPERAND_STATE) ||
                  device_buffer_write(&buffers[i], d->before[i]));
    return ok;
}

/* Outputs are host_ref's, and inputs what they were; the plan has so many kernels. */
enum { ANY_NUMBER = -1 };
static bool run_case(qdnnHandle_t handle, const train_case *c, int kernels)
{
    char text[512];
    train_data d;
    train_descriptors descriptors;
    device_buffer buffers[QDNN_OPERAND_COUNT] = {0};
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    case_text(c, text, sizeof text);
    test_push_note("%s", text);
    bool ok = data_make(c, &d) && descriptors_make(c, &descriptors) && make_buffers(handle, c, &d, buffers) &&
              CHECK_QDNN(operations[c->op].plan(handle, descriptors.tensor, descriptors.train, &plan)) &&
              CHECK_QDNN(qdnnGetPlanInfo(plan, &info)) &&
              execute(handle, plan, operands_of(c), buffers, buffers_of(c));
    if (ok)
        CHECK_EQ_STR(info.operation, operations[c->op].operation);
    if (ok && kernels != ANY_NUMBER)
        CHECK_EQ_I64(info.kernels, kernels);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (ok && operands_of(c) >> i & 1)
            device_buffer_check(&buffers[i], is_output(c, i) ? d.after[i] : d.before[i], "operand");
        device_buffer_free(&buffers[i]);
    }
    qdnnDestroyPlan(plan);
    descriptors_free(&descriptors);
    data_free(&d);
    test_pop_note();
    return ok;
}

/* ---- The same without the library ---- */

static kernel_spec kernel_spec_of(const train_case *c, const kernel_row *row)
{
    const ref_train_spec reference = reference_of(c);
    kernel_spec spec = kernel_spec_default();
    spec.stored.group_size = (uint64_t)reference.group_size;
    spec.stored.channels = (uint64_t)reference.channels;
    spec.train.bits = reference.bits;
    spec.quantize.rounding = reference.rounding;
    spec.train.scale_mode = reference.mode;
    spec.train.decay = reference.decay;
    spec.train.backward = reference.backward;
    spec.train.gradient_factor = reference.gradient_factor;
    return kernel_spec_normal(row, &spec);
}

/* Whether blocks go on to further work, so that any grid gives the same. */
static bool is_of_any_grid(const kernel_step *step)
{
    const kernel_operation operation = kernel_operation_of(step->row);
    return operation == KERNEL_LSQ_BACKWARD || operation == KERNEL_RANGE ||
           (operation == KERNEL_SCALE && step->spec.stored.channels);
}

static bool device_make(machine *vm, const void *host, uint64_t bytes, ptxvm_address *at)
{
    return bytes == 0 || (CHECK(machine_alloc(vm, bytes, at) == PTXVM_OK) &&
                          (!host || CHECK(machine_write(vm, *at, host, bytes) == PTXVM_OK)));
}

static void device_check_floats(machine *vm, ptxvm_address at, const float *expected, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    float *actual = malloc(bytes + 1);
    if (CHECK(actual != NULL) && CHECK(machine_read(vm, actual, at, bytes) == PTXVM_OK))
        CHECK_EQ_MEM(actual, expected, bytes);
    free(actual);
}

static bool launch_steps(machine *vm, const train_case *c, const ptxvm_address *at, uint64_t blocks)
{
    const kernel_row *row = kernel_find(operations[c->op].name);
    const kernel_spec spec = kernel_spec_of(c, row);
    const kernel_problem problem = {.rows = 1, .columns = (uint64_t)elements_of(c)};
    kernel_steps steps;
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    void *filling = calloc(1, steps.workspace + 1);
    ptxvm_address workspace = 0;
    bool ok =
        CHECK(filling != NULL) && device_make(vm, c->seed % 2 ? NULL : memset(filling, 0xA5, steps.workspace),
                                              steps.workspace, &workspace);
    for (int i = 0; i < steps.count && ok; i++) {
        if (is_of_any_grid(&steps.at[i]) && steps.at[i].grid[0] > blocks)
            steps.at[i].grid[0] = blocks;
        ok = step_launch(vm, &steps.at[i], at, workspace);
    }
    if (workspace)
        machine_free(vm, workspace);
    free(filling);
    return ok;
}

/* The steps of a case with at most so many blocks, where a kernel leaves that to its caller. */
static void run_direct(machine *vm, const train_case *c, uint64_t blocks)
{
    char text[512];
    train_data d;
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0};
    case_text(c, text, sizeof text);
    test_push_note("%s, in %d blocks", text, (int)blocks);
    bool ok = data_make(c, &d);
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (operands_of(c) >> i & 1)
            ok = device_make(vm, is_output(c, i) && i != QDNN_OPERAND_STATE ? NULL : d.before[i],
                             (uint64_t)d.counts[i] * sizeof(float), &at[i]);
    if (ok)
        ok = launch_steps(vm, c, at, blocks);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (ok && at[i])
            device_check_floats(vm, at[i], is_output(c, i) ? d.after[i] : d.before[i], d.counts[i]);
        if (at[i])
            machine_free(vm, at[i]);
    }
    data_free(&d);
    test_pop_note();
}

/* ---- Many of them ---- */

static const struct {
    qdnnGranularity_t granularity;
    int64_t extent;
    int rank;
    int64_t dims[4];
} shapes[] = {
    {QDNN_GRANULARITY_TENSOR, 0, 1, {0}},           {QDNN_GRANULARITY_TENSOR, 0, 1, {1}},
    {QDNN_GRANULARITY_TENSOR, 0, 2, {3, 1365}},     {QDNN_GRANULARITY_TENSOR, 0, 1, {4096}},
    {QDNN_GRANULARITY_TENSOR, 0, 1, {4097}},        {QDNN_GRANULARITY_TENSOR, 0, 1, {20011}},
    {QDNN_GRANULARITY_GROUP, 1, 1, {517}},          {QDNN_GRANULARITY_GROUP, 3, 1, {1000}},
    {QDNN_GRANULARITY_GROUP, 8, 2, {7, 1171}},      {QDNN_GRANULARITY_GROUP, 32, 1, {8192}},
    {QDNN_GRANULARITY_GROUP, 100, 1, {4501}},       {QDNN_GRANULARITY_GROUP, 128, 1, {4500}},
    {QDNN_GRANULARITY_GROUP, 1000, 1, {9001}},      {QDNN_GRANULARITY_GROUP, 4098, 1, {12300}},
    {QDNN_GRANULARITY_GROUP, 5000, 1, {9001}},      {QDNN_GRANULARITY_GROUP, 8192, 1, {20000}},
    {QDNN_GRANULARITY_GROUP, 10000, 1, {33}},       {QDNN_GRANULARITY_CHANNEL, 0, 2, {5, 4100}},
    {QDNN_GRANULARITY_CHANNEL, 0, 3, {40, 3, 7}},   {QDNN_GRANULARITY_CHANNEL, 1, 3, {2, 33, 7}},
    {QDNN_GRANULARITY_CHANNEL, 1, 3, {70, 5, 64}},  {QDNN_GRANULARITY_CHANNEL, 1, 4, {3, 3, 16, 8}},
    {QDNN_GRANULARITY_CHANNEL, 1, 3, {50, 3, 100}}, {QDNN_GRANULARITY_CHANNEL, 1, 2, {4100, 3}},
    {QDNN_GRANULARITY_CHANNEL, 1, 2, {300, 70}},    {QDNN_GRANULARITY_CHANNEL, 1, 2, {4200, 17}},
    {QDNN_GRANULARITY_CHANNEL, 2, 3, {3, 5, 64}},   {QDNN_GRANULARITY_CHANNEL, 1, 3, {2, 0, 4}},
    {QDNN_GRANULARITY_CHANNEL, 1, 3, {2, 1, 4}},
};

/* Options and data change from one shape to the next, each at a pace of its own. */
static train_case case_at(operation op, int shape, int turn)
{
    static const int bits[] = {8, 4, 2};
    static const float decays[] = {0.9f, 0.5f, 0.0f, 1.0f, 0.99f};
    static const data_kind kinds[] = {DATA_NORMAL, DATA_SPECIAL, DATA_TIES,    DATA_SUBNORMAL,
                                      DATA_HUGE,   DATA_ZEROS,   DATA_CONSTANT};
    int step = shape + turn * LENGTH(shapes);
    train_case c = {.op = op,
                    .rank = shapes[shape].rank,
                    .granularity = shapes[shape].granularity,
                    .extent = shapes[shape].extent,
                    .kind = kinds[step % LENGTH(kinds)],
                    .seed = (uint32_t)step + 1,
                    .shift = step % 4 == 3};
    memcpy(c.dims, shapes[shape].dims, sizeof shapes[shape].dims);
    c.spec = (ref_train_spec){.bits = bits[(shape + turn) % 3],
                              .rounding = step / 2 % 3 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN,
                              .mode = (qdnnScaleMode_t)((shape + turn / 2) % 3),
                              .decay = decays[step % LENGTH(decays)],
                              .backward = (qdnnBackward_t)((shape / 3 + turn) % 4),
                              .gradient_factor = (shape / 2 + turn) % 2};
    return c;
}

static int turn_count(void)
{
    return LENGTH(operations) * LENGTH(sms) * 2;
}

static void turn_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_turn_%d", operations[index / 2 / LENGTH(sms)].name, index % (2 * LENGTH(sms)));
}

DEVICE_EACH(ParityTrain, HostRef, turn_count, turn_name)
{
    qdnnHandle_t handle = device_begin(sms[index / 2 % LENGTH(sms)], 1 + index % 2, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < LENGTH(shapes) && alive; i++) {
        train_case c = case_at((operation)(index / 2 / LENGTH(sms)), i, index % (2 * LENGTH(sms)));
        alive = run_case(handle, &c, ANY_NUMBER);
    }
    device_end(handle);
}

/* ---- Trials ---- */

/* Each text with data of every kind, so that a mistake in any line of it shows (docs/mutation.md). */
static const struct {
    const char *name;
    qdnnGranularity_t granularity;
    int64_t extent, run, channels; /* CHANNEL: so many elements of each, one behind the other */
} groupings[] = {
    {"tensor", QDNN_GRANULARITY_TENSOR, 0, 1, 1},
    {"groups_of_1", QDNN_GRANULARITY_GROUP, 1, 1, 1},
    {"groups_of_7", QDNN_GRANULARITY_GROUP, 7, 1, 1},
    {"groups_of_32", QDNN_GRANULARITY_GROUP, 32, 1, 1},
    {"groups_of_100", QDNN_GRANULARITY_GROUP, 100, 1, 1},
    {"groups_of_1000", QDNN_GRANULARITY_GROUP, 1000, 1, 1},
    {"groups_of_5000", QDNN_GRANULARITY_GROUP, 5000, 1, 1},
    {"channels_3_of_1", QDNN_GRANULARITY_CHANNEL, 1, 1, 3},
    {"channels_33_of_1", QDNN_GRANULARITY_CHANNEL, 1, 1, 33},
    {"channels_5_of_16", QDNN_GRANULARITY_CHANNEL, 1, 16, 5},
    {"channels_20_of_7", QDNN_GRANULARITY_CHANNEL, 1, 7, 20},
};

static const struct {
    data_kind kind;
    int64_t n;
    size_t shift;
    uint64_t kept;
    int64_t per_channel; /* so many elements of each, where there are channels or one tensor */
    bool is_curve;
} trials[] = {
    {DATA_NORMAL, 8192, 0, 0, 0, false},
    {DATA_TIES, 4096, 0, 0, 0, false},
    {DATA_CLAMP, 4100, 0, 0, 0, false},
    {DATA_SPECIAL, 8192, 1, 0, 0, false},
    {DATA_HUGE, 4300, 0, 0, 0, false},
    {DATA_ZEROS, 129, 0, 0, 0, false},
    {DATA_LEAST, 4096, 0, 0, 0, false},
    {DATA_NORMAL, 1, 0, 0, 0, false},
    {DATA_SPECIAL, 9003, 0, 0, 0, false},
    {DATA_LEAST, 4200, 0, 0, 0, false},
    {DATA_CLAMP, 4096, 0, 0, 0, false},
    {DATA_INFINITE, 4097, 0, 0, 0, false},
    {DATA_NANS, 4096, 0, 0, 0, false},
    {DATA_TIES, 9001, 2, 0, 0, false},
    {DATA_SUBNORMAL, 4097, 0, 0, 0, false},
    {DATA_HUGE, 4096, 0, 0, 0, false},
    {DATA_NORMAL, 8192, 1, ~(UINT64_C(1) << QDNN_OPERAND_X), 0, false},
    {DATA_NORMAL, 8192, 3, ~(UINT64_C(1) << QDNN_OPERAND_DY), 0, false},
    {DATA_CLAMP, 8192, 2, ~(UINT64_C(1) << QDNN_OPERAND_Y | UINT64_C(1) << QDNN_OPERAND_DX), 0, false},
    {DATA_NORMAL, 8192, 1, ~(UINT64_C(1) << QDNN_OPERAND_SCALE | UINT64_C(1) << QDNN_OPERAND_STATE), 0,
     false},
    {DATA_INFINITE, 8192, 0, 0, 0, false},
    {DATA_SPECIAL, 8192, 0, 0, 0, false},
    {DATA_NORMAL, 12345, 0, 0, 0, false},
    {DATA_NORMAL, 140000, 0, 0, 0, false}, /* several segments of each of 33 channels */
    {DATA_TIES, 8192, 0, 0, 0, false},     /* by thirds: its seed is odd */
    {DATA_NORMAL, 8192, 0, 0, 0, true},
    {DATA_NORMAL, 50000, 0, 0, 0, true},
    {DATA_NORMAL, 40001, 1, 0, 0, false},    /* many blocks, and none of them aligned */
    {DATA_SPECIAL, 4100, 0, 0, 4097, false}, /* two segments of each channel, or two passes over x */
    {DATA_CLAMP, 4096, 0, 0, 4096, false},
    {DATA_TIES, 4102, 1, 0, 4103, false},
    {DATA_INFINITE, 4101, 0, 0, 4999, false},
    {DATA_CLAMP, 8300, 0, 0, 8300, false},
    {DATA_ONE_HOT, 9000, 0, 0, 9000, false},
    {DATA_ONE_HOT, 9001, 0, 0, 0, false},
    {DATA_ONE_HOT, 4096, 0, 0, 8500, false},
    {DATA_ONE_HOT, 4111, 1, 0, 8701, false},
    {DATA_ONE_HOT, 8192, 0, 0, 0, false},
    {DATA_ONE_HOT, 1030, 0, 0, 8193, false},
    {DATA_INFINITE, 8192, 0, 0, 0, false}, /* of the other sign: its seed is even */
    {DATA_INFINITE, 8193, 1, 0, 0, false},
    {DATA_INFINITE, 4096, 0, 0, 0, false}, /* with other scales each */
    {DATA_INFINITE, 4096, 0, 0, 0, false},
    {DATA_INFINITE, 4096, 0, 0, 0, false},
    {DATA_INFINITE, 4095, 0, 0, 0, false},
    {DATA_INFINITE, 4094, 0, 0, 0, false},
    {DATA_HUGE, 4096, 0, 0, 0, false},
    {DATA_LEAST, 4093, 0, 0, 0, false},
};

/* What the text has is a matter of the operation and the grouping alone; three groupings in a row have the
 * other settings in turns, so that they share the kernel of scales. */
static train_case trial_at(operation op, int grouping, int i)
{
    static const int bits[] = {8, 4, 2};
    static const float decays[] = {0.9f, 0.5f, 0.99f};
    const int turn = grouping + 2 * (int)op;
    const int64_t turn_of_channels = groupings[grouping].run * groupings[grouping].channels;
    int64_t n = trials[i].n + (trials[i].n <= groupings[grouping].extent ? groupings[grouping].extent : 0);
    if (trials[i].per_channel && groupings[grouping].granularity != QDNN_GRANULARITY_GROUP)
        n = trials[i].per_channel * groupings[grouping].channels;
    train_case c = {.op = op,
                    .rank = 3,
                    .dims = {(n + 2 * turn_of_channels - 2) / turn_of_channels, groupings[grouping].channels,
                             groupings[grouping].run},
                    .granularity = groupings[grouping].granularity,
                    .extent = groupings[grouping].extent,
                    .kind = trials[i].kind,
                    .seed = (uint32_t)i + 1,
                    .shift = trials[i].shift,
                    .kept = trials[i].kept,
                    .is_curve = trials[i].is_curve};
    c.spec = (ref_train_spec){.bits = bits[grouping % 3],
                              .rounding = turn % 2 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN,
                              .mode = (qdnnScaleMode_t)(grouping % 3),
                              .decay = decays[grouping % 3],
                              .backward = (qdnnBackward_t)(grouping % 4),
                              .gradient_factor = turn / 2 % 2};
    return c;
}

/* By default each grouping with one operation. */
static int trial_count(void)
{
    return sample_is_full() ? LENGTH(operations) * LENGTH(groupings) : LENGTH(groupings);
}

static operation trial_operation(int index)
{
    return (operation)((index % LENGTH(groupings) + index / LENGTH(groupings)) % LENGTH(operations));
}

static void trial_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", operations[trial_operation(index)].name,
             groupings[index % LENGTH(groupings)].name);
}

/* Channels that end in the middle of a turn, and blocks that take several parts of the work. */
static const struct {
    data_kind kind;
    int64_t n, per_channel;
    uint64_t blocks;
    bool has_rare;
} directs[] = {
    {DATA_NORMAL, 4301, 0, 2, false},    {DATA_ONE_HOT, 12349, 0, 1, false},
    {DATA_NORMAL, 17, 4097, 3, false},   {DATA_SPECIAL, 5, 4096, 2, false},
    {DATA_CLAMP, 3, 8200, 5, false},     {DATA_ONE_HOT, 11, 8400, 7, false},
    {DATA_ONE_HOT, 2, 12300, 40, false}, {DATA_NORMAL, 4100, 0, 3, true},
    {DATA_NORMAL, 4101, 0, 3, true},     {DATA_NORMAL, 4102, 0, 3, true},
    {DATA_NORMAL, 4103, 0, 3, true},     {DATA_NORMAL, 4104, 0, 3, true},
    {DATA_NORMAL, 4105, 0, 3, true},     {DATA_NORMAL, 4106, 0, 3, true},
    {DATA_NORMAL, 4107, 0, 3, true},
};

static train_case direct_at(operation op, int grouping, int i)
{
    train_case c = trial_at(op, grouping, i);
    c.kind = directs[i].kind;
    c.seed = (uint32_t)i;
    c.shift = 0;
    c.is_curve = false;
    c.has_rare = directs[i].has_rare;
    c.n = directs[i].n + directs[i].per_channel * groupings[grouping].channels +
          (c.granularity == QDNN_GRANULARITY_GROUP ? groupings[grouping].extent : 0);
    return c;
}

/* The kernels of scales with few elements, none, and with one more than fills what a range kernel divides the work by. */
static void run_absmax(machine *vm, const kernel_row *row, const kernel_spec *spec, int64_t n,
                       uint64_t blocks)
{
    const int64_t groups =
        spec->stored.channels ? (int64_t)spec->stored.channels
                              : (n + (int64_t)spec->stored.group_size - 1) / (int64_t)spec->stored.group_size;
    const uint64_t in = (uint64_t)n * sizeof(float), out = (uint64_t)groups * sizeof(float);
    float *x = malloc(in + 1), *expected = calloc(1, out + 1);
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0};
    kernel_steps steps = {0};
    kernel_step *step =
        steps_add(&steps, row, spec, &(kernel_problem){.rows = 1, .columns = n ? (uint64_t)n : 1});
    step_set_number(step, NUMBER_N, (uint64_t)n);
    if (is_of_any_grid(step) && step->grid[0] > blocks)
        step->grid[0] = blocks;
    test_push_note("absmax of %d elements", (int)n);
    if (CHECK(x && expected)) {
        fill_data(DATA_NORMAL, NULL, QDNN_DATA_F32, (uint32_t)n, x, n);
        for (int64_t i = 0; i < n; i++) {
            const int64_t run = i / (int64_t)spec->stored.group_size,
                          group = spec->stored.channels ? run % groups : run;
            expected[group] = fmaxf(expected[group], fabsf(x[i]));
        }
        memset(expected + (n ? groups : 0), 0xA5, n ? 0 : out); /* as before: nothing is written */
        if (device_make(vm, x, in, &at[QDNN_OPERAND_X]) &&
            device_make(vm, n ? NULL : expected, out, &at[QDNN_OPERAND_SCALE]) &&
            step_launch(vm, step, at, 0))
            device_check_floats(vm, at[QDNN_OPERAND_SCALE], expected, groups);
        for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
            if (at[i])
                machine_free(vm, at[i]);
    }
    free(x), free(expected);
    test_pop_note();
}

/* The kernel that takes x, and the one that takes the ranges of its parts. */
static void run_scales(machine *vm, const train_case *c)
{
    static const int64_t counts[] = {1, 2, 3, 5, 17, 33, 130, 259, 1000};
    const kernel_row *row = kernel_find("scale_nf4"), *range = kernel_find("range_absmax");
    const ref_train_spec reference = reference_of(c);
    kernel_spec spec = kernel_spec_default();
    spec.stored.group_size = (uint64_t)reference.group_size;
    spec.stored.channels = (uint64_t)reference.channels;
    spec.quantize.floor = 0;
    kernel_spec list = spec;
    list.stored.group_size = kernel_range_list(range, &spec);
    for (int i = 0; i < LENGTH(counts); i++) {
        run_absmax(vm, row, &spec, counts[i], 1 + (uint64_t)i % 3);
        if (spec.stored.channels && list.stored.group_size != spec.stored.group_size)
            run_absmax(vm, row, &list, counts[i], 1 + (uint64_t)i % 3);
    }
    if (spec.stored.channels)
        run_absmax(vm, row, &list, 0, 1);
}

/* A number of elements, above n, at which the work of the range kernel has one part more. */
static int64_t at_next_part(const train_case *c, int64_t n)
{
    const kernel_row *range = kernel_find("range_absmax");
    const ref_train_spec reference = reference_of(c);
    kernel_spec spec = kernel_spec_default();
    spec.stored.group_size = (uint64_t)reference.group_size;
    spec.stored.channels = (uint64_t)reference.channels;
    const uint64_t before = kernel_range_count(range, &spec, (uint64_t)n);
    for (int64_t more = 0; more < 100000; more++)
        if (kernel_range_count(range, &spec, (uint64_t)(n + more)) != before)
            return n + more;
    return n; /* it has all that it ever has */
}

static bool makes_scales(operation op, int grouping)
{
    const train_case c = direct_at(op, grouping, 0);
    const kernel_row *row = kernel_find(operations[op].name);
    const kernel_spec spec = kernel_spec_of(&c, row);
    kernel_steps steps;
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec),
                    &(kernel_problem){.rows = 1, .columns = (uint64_t)elements_of(&c)}, &steps);
    return kernel_operation_of(steps.at[0].row) == KERNEL_SCALE ||
           kernel_operation_of(steps.at[0].row) == KERNEL_RANGE;
}

static void run_directs(int index)
{
    const operation op = trial_operation(index);
    const char *sm = sms[op % LENGTH(sms)];
    const int grouping = index % LENGTH(groupings);
    const ptxvm_config config = {.sm = sm, .threads = 1, .checks = EVERY_CHECK};
    machine *vm;
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    for (int i = 0; i < LENGTH(directs); i++) {
        const train_case c = direct_at(op, grouping, i);
        run_direct(vm, &c, directs[i].blocks);
    }
    if (makes_scales(op, grouping)) {
        train_case c = direct_at(op, grouping, 0);
        run_scales(vm, &c);
        if (c.granularity != QDNN_GRANULARITY_GROUP) {
            c.n = at_next_part(&c, 8500 * groupings[grouping].channels);
            run_direct(vm, &c, 9);
        }
    }
    if (op == LSQ_BACKWARD) {
        const train_case c = direct_at(op, grouping, 0);
        const kernel_spec spec = kernel_spec_of(&c, kernel_find(operations[op].name));
        long_sum_lists(vm, &spec);
    }
    machine_destroy(vm);
}

DEVICE_EACH(ParityTrain, Trials, trial_count, trial_name)
{
    qdnnHandle_t handle = device_begin(sms[trial_operation(index) % LENGTH(sms)], 1 + index % 2, "all");
    bool alive = handle != NULL;
    for (int i = sample_is_full() ? 0 : index % 4; i < LENGTH(trials) && alive;
         i += sample_is_full() ? 1 : 4) {
        train_case c = trial_at(trial_operation(index), index % LENGTH(groupings), i);
        alive = run_case(handle, &c, ANY_NUMBER);
    }
    device_end(handle);
    run_directs(index);
}

/* ---- Long sums ---- */

static const struct {
    const char *name;
    qdnnGranularity_t granularity;
    int64_t extent;
    int rank;
    int64_t dims[2];
    int kernels;
} longs[] = {
    {"one_segment", QDNN_GRANULARITY_TENSOR, 0, 1, {4096}, 1},
    {"two_segments", QDNN_GRANULARITY_TENSOR, 0, 1, {4097}, 2},
    {"many_segments", QDNN_GRANULARITY_TENSOR, 0, 1, {300007}, 2},
    {"long_rows", QDNN_GRANULARITY_CHANNEL, 0, 2, {3, 70001}, 2},
    {"long_columns", QDNN_GRANULARITY_CHANNEL, 1, 2, {9001, 37}, 2},
    {"long_groups", QDNN_GRANULARITY_GROUP, 100000, 1, {250000}, 2},
    {"three_levels", QDNN_GRANULARITY_TENSOR, 0, 1, {4096 * 4096 + 5}, 3},
};

DEVICE_ROWS(ParityTrain, LongSums, longs)
{
    bool is_huge = longs[index].dims[0] > 1000000;
    train_case c = {.op = LSQ_BACKWARD,
                    .rank = longs[index].rank,
                    .granularity = longs[index].granularity,
                    .extent = longs[index].extent,
                    .kind = DATA_NORMAL,
                    .seed = 5};
    memcpy(c.dims, longs[index].dims, sizeof longs[index].dims);
    c.spec = (ref_train_spec){.bits = 4, .rounding = QDNN_ROUND_TIES_AWAY, .gradient_factor = index % 2};
    qdnnHandle_t handle = device_begin("sm_90", 4, is_huge ? "none" : "all");
    if (handle)
        run_case(handle, &c, longs[index].kernels);
    device_end(handle);
}

/* Long channels of the scales that are computed: two passes and the kernel between. The clipped gradient with scales of x
 * itself needs none. */
DEVICE_CASE(ParityTrain, LongChannels)
{
    qdnnHandle_t handle = device_begin("sm_80", 4, "all");
    for (int i = 0; i < 6 && handle; i++) {
        train_case c = {
            .op = i < 2 ? FAKE_QUANTIZE : FAKE_QUANTIZE_BACKWARD, .kind = DATA_SPECIAL, .seed = 9};
        c.granularity = i % 2 ? QDNN_GRANULARITY_CHANNEL : QDNN_GRANULARITY_TENSOR;
        c.rank = 2;
        c.dims[0] = 3;
        c.dims[1] = 70001;
        c.spec = (ref_train_spec){.bits = 8, .rounding = QDNN_ROUND_TIES_AWAY, .decay = 0.75f};
        c.spec.mode = i == 1 ? QDNN_SCALE_MODE_EMA : QDNN_SCALE_MODE_BATCH;
        c.spec.backward = i < 4 ? QDNN_BACKWARD_TANH : QDNN_BACKWARD_CLIPPED;
        run_case(handle, &c, i < 4 ? 4 : 1);
    }
    device_end(handle);
}
