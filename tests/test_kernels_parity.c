/* The text of a kernel, run alone on the device under test against host_ref: every output byte, and guard bands around each
 * buffer. What users call is compared through the public API, in tests/parity; here are kernels that are a
 * part of an operation and, for other tests, texts and launches of any kind.
 *
 * A case is a kernel that is such a part, an SM and a data type. Within it every group size meets every kind
 * of data, while counts, other options and misalignments take turns. */
#include "test_kernels_parity.h"

#include "support/checks.h"
#include "test.h"

#include "kernels/operations.h"
#include "device/machine.h"
#include "formats/edges.h"
#include "formats/pinned.h"
#include "formats/ref_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
static const qdnnDataType_t float_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const qdnnDataType_t zero_types[] = {QDNN_DATA_U8, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const uint64_t group_sizes[] = {1, 3, 6, 32, 64, 100, 128, 1024, 5000};
static const int64_t counts[] = {1, 2, 7, 33, 127, 129, 1000, 4095, 4096, 4097, 9001};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

/* ---- Buffers ---- */

/* A tensor on the host and, between guard bands and at a chosen misalignment, on the device. */
typedef struct buffer {
    uint8_t *host;
    size_t bytes, shift, guard;
    ptxvm_address base;
} buffer;

static bool buffer_make(machine *vm, buffer *buf, size_t bytes, size_t shift, bool exact)
{
    *buf = (buffer){.host = calloc(bytes + 1, 1), .bytes = bytes, .shift = shift, .guard = exact ? 0 : GUARD};
    size_t all = bytes + shift + 2 * buf->guard;
    if (all == 0)
        return buf->host;
    return buf->host && machine_alloc(vm, all, &buf->base) == PTXVM_OK &&
           machine_fill(vm, buf->base, GUARD_BYTE, all) == PTXVM_OK;
}

static ptxvm_address buffer_address(const buffer *buf)
{
    return buf->base + buf->guard + buf->shift;
}

static void buffer_free(machine *vm, buffer *buf)
{
    free(buf->host);
    if (buf->base)
        machine_free(vm, buf->base);
}

/* The device's bytes are the host's, and nothing around them was touched. */
static void buffer_check(machine *vm, const buffer *buf, const char *name)
{
    size_t all = buf->bytes + buf->shift + 2 * buf->guard;
    if (all == 0)
        return;
    uint8_t *actual = malloc(all), *expected = malloc(all);
    if (actual && expected) {
        memset(expected, GUARD_BYTE, all);
        memcpy(expected + buf->guard + buf->shift, buf->host, buf->bytes);
        CHECK_EQ_I64(machine_read(vm, actual, buf->base, all), PTXVM_OK);
        test_push_note("output %s, byte %d is its first", name, (int)(buf->guard + buf->shift));
        CHECK_EQ_MEM(actual, expected, all);
        test_pop_note();
    }
    free(actual);
    free(expected);
}

/* ---- One launch ---- */

typedef struct trial {
    machine *vm;
    const kernel_row *row;
    kernel_spec spec;
    ref_quant_spec ref;
    const parity_trial *how;
    int64_t n;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    buffer at[QDNN_OPERAND_COUNT], ranges;
} trial;

bool parity_is(const kernel_row *row, const char *operation)
{
    return strncmp(row->name, operation, strlen(operation)) == 0;
}

static void fill_callers(const trial *t, const ref_arrays *arrays, int64_t groups)
{
    const bool is_uneven = t->how->kind == DATA_UNEVEN, is_huge = t->how->kind == DATA_INFINITE_TIES;
    if (is_uneven || is_huge)
        fill_beside_scales(kernel_format(t->row), t->spec.stored.scale, t->how->seed, is_huge, arrays->scale,
                           groups);
    else
        fill_callers_scales(t->spec.stored.scale, t->how->callers_first, arrays->scale, groups);
    if (t->at[QDNN_OPERAND_ZERO].bytes > 0 && is_uneven)
        fill_small_zeros(t->ref.zero, t->how->seed, arrays->zero, groups);
    else if (t->at[QDNN_OPERAND_ZERO].bytes > 0)
        fill_callers_zeros(t->ref.zero, t->how->callers_first, arrays->zero, groups);
}

/* Of scales that are made of the elements, the largest elements stay. */
static void move_elements(const trial *t, void *x, const ref_arrays *arrays)
{
    const bool has_callers = kernel_operation_of(t->row) == KERNEL_QUANTIZE;
    move_to_bounds(&t->ref, 1, t->n, arrays, t->how->seed,
                   has_callers ? 0 : least_peak(kernel_format(t->row)), x);
    if (!has_callers)
        ref_scale(&t->ref, 1, t->n, x, arrays);
}

/* Fills host buffers with the inputs and the expected outputs. Inputs of quantize and dequantize are the
 * reference's own outputs, unless they are a caller's. */
static void make_expected(trial *t)
{
    uint8_t *host[QDNN_OPERAND_COUNT];
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        host[i] = t->at[i].host;
    ref_arrays arrays = ref_arrays_of(host);
    buffer *codes = &t->at[QDNN_OPERAND_CODES];
    if (t->ref.block) {
        uint8_t *data = host[parity_is(t->row, "dequantize") ? QDNN_OPERAND_Y : QDNN_OPERAND_X];
        fill_data(t->how->kind, kernel_format(t->row), t->spec.data, t->how->seed, data, t->n);
        if (t->how->edges)
            move_to_edges(&t->ref, (int64_t)kernel_columns_multiple(t->row), t->how->seed, data, t->n);
        ref_fill_blocks(t->row, &t->ref, t->n, t->how->seed, t->how->callers ? BLOCKS_ANY : BLOCKS_OF_DATA,
                        data, codes->host);
        return;
    }
    int64_t groups = ref_group_count(&t->ref, 1, t->n);
    uint64_t group_size =
        kernel_has_key(t->row, KERNEL_KEY(GROUP_SIZE)) ? t->spec.stored.group_size : (uint64_t)t->n + 1;
    if (t->how->kind == DATA_ONE_HOT)
        fill_one_hot(t->spec.data, group_size, t->spec.stored.channels, t->how->seed, host[QDNN_OPERAND_X],
                     t->n);
    else
        fill_data(t->how->kind, kernel_format(t->row), t->spec.data, t->how->seed, host[QDNN_OPERAND_X],
                  t->n);
    ref_scale(&t->ref, 1, t->n, host[QDNN_OPERAND_X], &arrays);
    if (t->how->callers)
        fill_callers(t, &arrays, groups);
    if (t->how->kind == DATA_UNEVEN)
        move_elements(t, host[QDNN_OPERAND_X], &arrays);
    ref_quantize(&t->ref, 1, t->n, host[QDNN_OPERAND_X], &arrays);
    if (!parity_is(t->row, "dequantize"))
        return;
    if (t->how->callers)
        fill_bytes(t->how->seed, codes->host, (int64_t)codes->bytes);
    ref_dequantize(&t->ref, 1, t->n, &arrays, host[QDNN_OPERAND_Y]);
}

static void upload(const trial *t, const buffer *buf)
{
    CHECK_EQ_I64(machine_write(t->vm, buffer_address(buf), buf->host, buf->bytes), PTXVM_OK);
}

/* A far block finds its part of the tensor at the start of the buffer, so the pointer lies that far before
 * it. With channels it begins with the first one. */
static ptxvm_address pointer_to(const trial *t, const kernel_geometry *geometry, int operand)
{
    uint64_t first = t->how->block * geometry->elements_per_block, run = first / t->spec.stored.group_size;
    uint64_t group = t->spec.stored.channels ? run % t->spec.stored.channels : run, before;
    switch (operand) {
    case QDNN_OPERAND_CODES:
        before = (uint64_t)ref_operand_bytes(&t->ref, 1, (int64_t)first, operand);
        break;
    case QDNN_OPERAND_SCALE:
    case QDNN_OPERAND_ZERO:
        before = group * ref_element_bytes(&t->ref, operand);
        break;
    default:
        before = first * ref_scalar_size(t->spec.data);
    }
    return buffer_address(&t->at[operand]) - before;
}

static ptxvm_address ranges_pointer(const trial *t, const kernel_geometry *geometry)
{
    uint64_t first = t->how->block * geometry->elements_per_block;
    return buffer_address(&t->ranges) - kernel_range_count(t->row, &t->spec, first) * sizeof(float);
}

/* At least one: a kernel that is launched all the same for n = 0 writes nothing. Where any grid gives the
 * same bytes, small ones take turns with the best: blocks that come round several times. */
static uint32_t blocks_for(const trial *t, const kernel_geometry *geometry)
{
    uint64_t blocks =
        geometry->blocks ? geometry->blocks
                         : ((uint64_t)t->n + geometry->elements_per_block - 1) / geometry->elements_per_block;
    const uint64_t fewer[] = {blocks, 1, blocks / 40 + 1, blocks > 1 ? 2 : 1};
    if (geometry->blocks)
        blocks = fewer[t->how->seed % 4];
    return blocks > 0 ? (uint32_t)blocks : 1;
}

/* What ptxvm says of the launch. */
static void check_report(const trial *t, const ptxvm *vm)
{
    const ptxvm_report *report = ptxvm_last_report(vm);
    CHECK(!report->inexact);
    CHECK_EQ_I64(report->n_contractable, 0);
    if (t->how->counters && CHECK(ptxvm_last_counters(vm) != NULL))
        *t->how->counters = *ptxvm_last_counters(vm);
}

static void launch(const trial *t, machine_kernel *kernel, const kernel_geometry *geometry)
{
    uint64_t params[KERNEL_PARAMS_MAX];
    kernel_problem any = {.rows = 1, .columns = 1};
    kernel_steps steps = {0};
    const kernel_step *step = steps_add(&steps, t->row, &t->spec, &any);
    for (int i = 0; i < step->n_params; i++)
        params[i] = step->params[i].kind == KERNEL_OPERAND ? pointer_to(t, geometry, step->params[i].operand)
                    : step->params[i].kind == KERNEL_WORKSPACE
                        ? ranges_pointer(t, geometry)
                        : t->how->block * geometry->elements_per_block + (uint64_t)t->n;
    ptxvm_launch_config config = {.grid = {blocks_for(t, geometry), 1, 1}, .block = {geometry->block, 1, 1}};
    ptxvm_status status = machine_launch(t->vm, kernel, &config, params, (uint64_t)step->n_params * 8);
    if (status != PTXVM_OK)
        FAIL("launch: %s: %s", ptxvm_status_name(status), machine_last_error(t->vm));
    if (machine_ptxvm(t->vm))
        check_report(t, machine_ptxvm(t->vm));
}

/* The scales of the list of ranges are those of the data. Nothing but the list is written, and all of it:
 * what is left as it was (a huge number) would show in a scale. */
static void run_range(trial *t, machine_kernel *kernel, const kernel_geometry *geometry)
{
    ref_quant_spec list = t->ref;
    list.data = QDNN_DATA_F32;
    list.group_size = (int64_t)kernel_range_list(t->row, &t->spec);
    upload(t, &t->at[QDNN_OPERAND_X]);
    memset(t->ranges.host, 0x7F, t->ranges.bytes);
    upload(t, &t->ranges);
    launch(t, kernel, geometry);
    CHECK_EQ_I64(machine_read(t->vm, t->ranges.host, buffer_address(&t->ranges), t->ranges.bytes), PTXVM_OK);
    buffer_check(t->vm, &t->ranges, "range");

    const buffer *scales = &t->at[QDNN_OPERAND_SCALE], *zeros = &t->at[QDNN_OPERAND_ZERO];
    uint8_t *scale = calloc(scales->bytes + 1, 1), *zero = calloc(zeros->bytes + 1, 1);
    if (CHECK(scale && zero)) {
        ref_arrays out = {.scale = scale, .zero = zero};
        ref_scale(&list, 1, (int64_t)(t->ranges.bytes / sizeof(float)), t->ranges.host, &out);
        CHECK_EQ_MEM(scale, scales->host, scales->bytes);
        CHECK_EQ_MEM(zero, zeros->host, zeros->bytes);
    }
    free(scale);
    free(zero);
}

/* Outputs are compared; the inputs among the buffers too, which nobody may write to. */
static void run_operation(trial *t, machine_kernel *kernel, const kernel_geometry *geometry)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (t->operands[i].reads)
            upload(t, &t->at[i]);
    launch(t, kernel, geometry);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (t->operands[i].reads || t->operands[i].writes)
            buffer_check(t->vm, &t->at[i], "of operand");
}

static bool make_buffers(trial *t)
{
    const parity_trial *how = t->how;
    const size_t shifts[QDNN_OPERAND_COUNT] = {[QDNN_OPERAND_X] = how->data_shift,
                                               [QDNN_OPERAND_Y] = how->data_shift,
                                               [QDNN_OPERAND_CODES] = how->codes_shift,
                                               [QDNN_OPERAND_SCALE] = how->scale_shift,
                                               [QDNN_OPERAND_ZERO] = how->zero_shift};
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        ok = buffer_make(t->vm, &t->at[i], (size_t)ref_operand_bytes(&t->ref, 1, t->n, i),
                         shifts[i] * ref_element_bytes(&t->ref, i), how->exact) &&
             ok;
    uint64_t ranges = parity_is(t->row, "range") ? kernel_range_count(t->row, &t->spec, (uint64_t)t->n) : 0;
    kernel_operands_of(t->row, KERNEL_NORMAL(t->row, &t->spec),
                       &(kernel_problem){.rows = 1, .columns = (uint64_t)t->n}, t->operands);
    return buffer_make(t->vm, &t->ranges, ranges * sizeof(float), how->scale_shift * sizeof(float),
                       how->exact) &&
           ok;
}

static void run_trial(trial *t, machine_kernel *kernel, const kernel_geometry *geometry)
{
    if (CHECK(make_buffers(t))) {
        make_expected(t);
        (parity_is(t->row, "range") ? run_range : run_operation)(t, kernel, geometry);
    }
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        buffer_free(t->vm, &t->at[i]);
    buffer_free(t->vm, &t->ranges);
}

uint64_t parity_far_block(const kernel_row *row, const kernel_spec *spec)
{
    kernel_spec s = kernel_spec_normal(row, spec);
    kernel_geometry geometry = kernel_geometry_of(row, &s);
    uint64_t turn = s.stored.group_size * (s.stored.channels ? s.stored.channels : 1),
             a = geometry.elements_per_block, b = turn;
    if (geometry.blocks)
        return 0;
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return INT32_MAX / (turn / a) * (turn / a); /* a is their greatest common divisor */
}

/* Null, and a failure, where the text does not load. */
static machine_kernel *load(machine *vm, const kernel_row *row, const char *ptx, machine_module **module)
{
    machine_kernel *kernel = NULL;
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    if (machine_module_load(vm, ptx, strlen(ptx), module) != PTXVM_OK)
        FAIL("%s", machine_last_error(vm));
    else if (machine_module_kernel(*module, entry, &kernel) != PTXVM_OK)
        FAIL("kernel %s: %s", entry, machine_last_error(vm));
    return kernel;
}

static void run_far(trial *t, const char *ptx, const kernel_geometry *geometry)
{
    char *text = pinned_to_block(ptx, t->how->block);
    machine_module *module = NULL;
    machine_kernel *kernel = CHECK(text != NULL) ? load(t->vm, t->row, text, &module) : NULL;
    if (kernel)
        run_trial(t, kernel, geometry);
    if (module)
        machine_module_unload(module);
    free(text);
}

void parity_trials(machine *vm, const kernel_row *row, const kernel_spec *spec, const char *ptx,
                   const parity_trial *trials, int count)
{
    machine_module *module = NULL;
    machine_kernel *kernel = load(vm, row, ptx, &module);
    kernel_spec normal = kernel_spec_normal(row, spec);
    kernel_geometry geometry = kernel_geometry_of(row, &normal);
    for (int i = 0; kernel && i < count; i++) {
        const parity_trial *how = &trials[i];
        trial t = {
            .vm = vm, .row = row, .spec = normal, .ref = ref_spec_of(row, &normal), .how = how, .n = how->n};
        test_push_note("data kind %d, n = %d, seed %u, block %llu, shifts %zu %zu %zu %zu", (int)how->kind,
                       (int)how->n, (unsigned)how->seed, (unsigned long long)how->block, how->data_shift,
                       how->scale_shift, how->zero_shift, how->codes_shift);
        if (how->block)
            run_far(&t, ptx, &geometry);
        else
            run_trial(&t, kernel, &geometry);
        test_pop_note();
    }
    if (module)
        machine_module_unload(module);
}

void parity_kinds(parity_trial trials[DATA_KINDS], int round)
{
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        int turn = round * DATA_KINDS + kind;
        size_t shift = turn % 4 == 3;
        trials[kind] = (parity_trial){.n = counts[turn % LENGTH(counts)],
                                      .kind = (data_kind)kind,
                                      .seed = (uint32_t)turn + 1,
                                      .data_shift = shift,
                                      .scale_shift = shift,
                                      .zero_shift = shift,
                                      .codes_shift = turn % 5 == 4};
    }
}

void parity_take_turns(kernel_spec *spec, int round)
{
    spec->stored.zero = zero_types[round % 4];
    spec->stored.nibble_order = round / 2 % 2 ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
    spec->quantize.rounding = round / 3 % 2 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN;
    spec->quantize.division = round / 5 % 2 ? QDNN_DIVIDE_RECIPROCAL : QDNN_DIVIDE_EXACT;
    spec->quantize.floor = round % 3 ? 1e-12f : 0.5f;
}

void parity_emit_and_run(machine *vm, const kernel_row *row, const kernel_spec *spec,
                         const parity_trial *trials, int count)
{
    kernel_text text;
    ptx_error error;
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(row, KERNEL_NORMAL(row, spec), settings, sizeof settings);
    test_push_note("%s", settings);
    if (!kernel_emit(row, spec, ptx_sm_find(machine_sm(vm)), NULL, &text, &error))
        FAIL("%s", error.text);
    else
        parity_trials(vm, row, spec, text.ptx, trials, count);
    free(text.ptx);
    test_pop_note();
}

/* ---- Parts of operations ---- */

/* The index-th row of those that no user calls by itself and whose operands are those of a flat tensor. */
static const kernel_row *part_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_RANGE && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

static int case_count(void)
{
    int parts = 0;
    while (part_at(parts))
        parts++;
    return parts * LENGTH(sms) * LENGTH(float_types);
}

static void case_name(int index, char *text, size_t size)
{
    static const char *const names[] = {"f32", "f16", "bf16"};
    snprintf(text, size, "%s_%s_%s", part_at(index / 3 / LENGTH(sms))->name, sms[index / 3 % LENGTH(sms)],
             names[index % 3]);
}

DEVICE_EACH(KernelParts, HostRef, case_count, case_name)
{
    const char *sm = sms[index / 3 % LENGTH(sms)];
    NEED_SM(sm);
    ptxvm_config config = {.sm = sm, .threads = 1, .seed = (uint64_t)(index % 2), .checks = EVERY_CHECK};
    machine *vm;
    parity_trial trials[DATA_KINDS];
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    for (int g = 0; g < LENGTH(group_sizes); g++) {
        int round = index + g;
        kernel_spec spec = kernel_spec_default();
        spec.data = float_types[index % 3];
        spec.stored.group_size = group_sizes[g];
        parity_take_turns(&spec, round);
        parity_kinds(trials, round);
        parity_emit_and_run(vm, part_at(index / 3 / LENGTH(sms)), &spec, trials, DATA_KINDS);
    }
    machine_destroy(vm);
}
