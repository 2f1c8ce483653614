/* The text of a kernel, run alone on ptxvm against host_ref: every output byte, and guard bands around each
 * buffer. What users call is compared through the public API, in tests/parity; here are kernels that are a
 * part of an operation and, for other tests, texts and launches of any kind.
 *
 * A case is a kernel that is such a part, an SM and a data type. Within it every group size meets every kind
 * of data, while counts, other options and misalignments take turns. */
#include "test_kernels_parity.h"

#include "test.h"

#include "host_ref/host_ref.h"
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"

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
    size_t bytes, shift;
    ptxvm_address base;
} buffer;

static bool buffer_make(ptxvm *vm, buffer *buf, size_t bytes, size_t shift)
{
    *buf = (buffer){.host = calloc(bytes + 1, 1), .bytes = bytes, .shift = shift};
    size_t all = bytes + shift + 2 * GUARD;
    return buf->host && ptxvm_alloc(vm, all, &buf->base) == PTXVM_OK &&
           ptxvm_fill(vm, buf->base, GUARD_BYTE, all) == PTXVM_OK;
}

static ptxvm_address buffer_address(const buffer *buf)
{
    return buf->base + GUARD + buf->shift;
}

static void buffer_free(ptxvm *vm, buffer *buf)
{
    free(buf->host);
    if (buf->base)
        ptxvm_free(vm, buf->base);
}

/* The device's bytes are the host's, and nothing around them was touched. */
static void buffer_check(ptxvm *vm, const buffer *buf, const char *name)
{
    size_t all = buf->bytes + buf->shift + 2 * GUARD;
    uint8_t *actual = malloc(all), *expected = malloc(all);
    if (actual && expected) {
        memset(expected, GUARD_BYTE, all);
        memcpy(expected + GUARD + buf->shift, buf->host, buf->bytes);
        CHECK_EQ_I64(ptxvm_read(vm, actual, buf->base, all), PTXVM_OK);
        test_push_note("output %s, byte %d is its first", name, (int)(GUARD + buf->shift));
        CHECK_EQ_MEM(actual, expected, all);
        test_pop_note();
    }
    free(actual);
    free(expected);
}

/* ---- One launch ---- */

typedef struct trial {
    ptxvm *vm;
    const kernel_row *row;
    kernel_spec spec;
    ref_quant_spec ref;
    const parity_trial *how;
    int64_t n;
    buffer data, scale, zero, codes, ranges;
} trial;

bool parity_is(const kernel_row *row, const char *operation)
{
    return strncmp(row->name, operation, strlen(operation)) == 0;
}

static ref_quant_spec reference_of(const kernel_row *row, const kernel_spec *spec)
{
    return (ref_quant_spec){.format = row->format,
                            .data = spec->data,
                            .scale = spec->scale,
                            .zero = spec->zero,
                            .group_size = (int64_t)spec->group_size,
                            .channels = (int64_t)spec->channels,
                            .nibble_order = spec->nibble_order,
                            .rounding = spec->rounding,
                            .division = spec->division,
                            .floor = spec->floor};
}

/* Fills host buffers with the inputs and the expected outputs. Inputs of quantize and dequantize are the
 * reference's own outputs, unless they are a caller's. */
static void make_expected(trial *t)
{
    fill_data(t->how->kind, t->row->format, t->spec.data, t->how->seed, t->data.host, t->n);
    ref_scale(&t->ref, t->data.host, t->n, t->scale.host, t->zero.host);
    if (t->how->callers) {
        int64_t groups = ref_group_count(&t->ref, t->n);
        fill_callers_scales(t->spec.scale, t->scale.host, groups);
        if (t->zero.bytes > 0)
            fill_callers_zeros(t->spec.zero, t->zero.host, groups);
    }
    ref_quantize(&t->ref, t->data.host, t->n, t->scale.host, t->zero.host, t->codes.host);
    if (!parity_is(t->row, "dequantize"))
        return;
    if (t->how->callers)
        fill_bytes(t->how->seed, t->codes.host, (int64_t)t->codes.bytes);
    ref_dequantize(&t->ref, t->codes.host, t->n, t->scale.host, t->zero.host, t->data.host);
}

static void upload(const trial *t, const buffer *buf)
{
    CHECK_EQ_I64(ptxvm_write(t->vm, buffer_address(buf), buf->host, buf->bytes), PTXVM_OK);
}

/* A far block finds its part of the tensor at the start of the buffer, so the pointer lies that far before
 * it. With channels it begins with the first one. */
static ptxvm_address pointer_to(const trial *t, const kernel_geometry *geometry, const buffer *buf)
{
    uint64_t first = t->how->block * geometry->elements_per_block, run = first / t->spec.group_size;
    uint64_t group = t->spec.channels ? run % t->spec.channels : run;
    uint64_t before = buf == &t->data     ? first * ref_scalar_size(t->spec.data)
                      : buf == &t->scale  ? group * ref_scalar_size(t->spec.scale)
                      : buf == &t->zero   ? group * ref_scalar_size(t->spec.zero)
                      : buf == &t->ranges ? kernel_range_count(t->row, &t->spec, first) * sizeof(float)
                                          : first / 2;
    return buffer_address(buf) - before;
}

/* At least one: a kernel that is launched all the same for n = 0 writes nothing. Where any grid gives the
 * same bytes, small ones take turns with the best. */
static uint32_t blocks_for(const trial *t, const kernel_geometry *geometry)
{
    uint64_t blocks = kernel_grid(t->row, &t->spec, (uint64_t)t->n);
    if (geometry->blocks && t->how->seed % 4)
        blocks = blocks / 40 + 1;
    return blocks > 0 ? (uint32_t)blocks : 1;
}

static void launch(const trial *t, ptxvm_kernel *kernel, const kernel_geometry *geometry,
                   const buffer *const *buffers, int count)
{
    uint64_t params[6];
    for (int i = 0; i < count; i++)
        params[i] = pointer_to(t, geometry, buffers[i]);
    params[count] = t->how->block * geometry->elements_per_block + (uint64_t)t->n;
    ptxvm_launch_config config = {.grid = {blocks_for(t, geometry), 1, 1}, .block = {geometry->block, 1, 1}};
    ptxvm_status status = ptxvm_launch(t->vm, kernel, &config, params, (uint64_t)(count + 1) * 8);
    if (status != PTXVM_OK)
        FAIL("launch: %s: %s", ptxvm_status_name(status), ptxvm_last_error(t->vm));
    const ptxvm_report *report = ptxvm_last_report(t->vm);
    CHECK(!report->inexact);
    CHECK_EQ_I64(report->n_contractable, 0);
}

/* The scales of the list of ranges are those of the data. Nothing but the list is written, and all of it:
 * what is left as it was (a huge number) would show in a scale. */
static void run_range(trial *t, ptxvm_kernel *kernel, const kernel_geometry *geometry)
{
    const buffer *buffers[2] = {&t->data, &t->ranges};
    ref_quant_spec list = t->ref;
    list.data = QDNN_DATA_F32;
    list.group_size = (int64_t)kernel_range_list(t->row, &t->spec);
    upload(t, &t->data);
    memset(t->ranges.host, 0x7F, t->ranges.bytes);
    upload(t, &t->ranges);
    launch(t, kernel, geometry, buffers, 2);
    CHECK_EQ_I64(ptxvm_read(t->vm, t->ranges.host, buffer_address(&t->ranges), t->ranges.bytes), PTXVM_OK);
    buffer_check(t->vm, &t->ranges, "range");

    uint8_t *scale = calloc(t->scale.bytes + 1, 1), *zero = calloc(t->zero.bytes + 1, 1);
    if (CHECK(scale && zero)) {
        ref_scale(&list, t->ranges.host, (int64_t)(t->ranges.bytes / sizeof(float)), scale, zero);
        CHECK_EQ_MEM(scale, t->scale.host, t->scale.bytes);
        CHECK_EQ_MEM(zero, t->zero.host, t->zero.bytes);
    }
    free(scale);
    free(zero);
}

/* Outputs are compared; the inputs among the buffers too, which nobody may write to. */
static void run_operation(trial *t, ptxvm_kernel *kernel, const kernel_geometry *geometry)
{
    bool has_zero = t->row->keys & KERNEL_KEY_ZERO, is_scale = parity_is(t->row, "scale");
    bool to_codes = parity_is(t->row, "quantize");
    const buffer *in = is_scale || to_codes ? &t->data : &t->codes, *out = to_codes ? &t->codes : &t->data;
    const buffer *buffers[4] = {in, &t->scale};
    int count = 2;
    if (has_zero)
        buffers[count++] = &t->zero;
    if (!is_scale)
        buffers[count++] = out;

    upload(t, in);
    if (!is_scale)
        upload(t, &t->scale), upload(t, &t->zero);
    launch(t, kernel, geometry, buffers, count);
    buffer_check(t->vm, &t->scale, "scale");
    if (has_zero)
        buffer_check(t->vm, &t->zero, "zero");
    if (!is_scale)
        buffer_check(t->vm, out, to_codes ? "codes" : "y");
}

static bool make_buffers(trial *t)
{
    const parity_trial *how = t->how;
    size_t element = ref_scalar_size(t->spec.data), scale = ref_scalar_size(t->spec.scale),
           zero = ref_scalar_size(t->spec.zero);
    size_t groups = (size_t)ref_group_count(&t->ref, t->n);
    bool has_zero = t->row->format == QDNN_FORMAT_INT4_ZP, is_range = parity_is(t->row, "range");
    uint64_t ranges = is_range ? kernel_range_count(t->row, &t->spec, (uint64_t)t->n) : 0;
    bool ok = buffer_make(t->vm, &t->data, element * (size_t)t->n, how->data_shift * element);
    ok = buffer_make(t->vm, &t->scale, scale * groups, how->scale_shift * scale) && ok;
    ok = buffer_make(t->vm, &t->zero, has_zero ? zero * groups : 0, how->zero_shift * zero) && ok;
    ok = buffer_make(t->vm, &t->codes, (size_t)ref_packed_bytes(t->n), how->codes_shift) && ok;
    return buffer_make(t->vm, &t->ranges, ranges * sizeof(float), how->scale_shift * sizeof(float)) && ok;
}

static void run_trial(trial *t, ptxvm_kernel *kernel, const kernel_geometry *geometry)
{
    if (CHECK(make_buffers(t))) {
        make_expected(t);
        (parity_is(t->row, "range") ? run_range : run_operation)(t, kernel, geometry);
    }
    buffer *const buffers[] = {&t->data, &t->scale, &t->zero, &t->codes, &t->ranges};
    for (int i = 0; i < LENGTH(buffers); i++)
        buffer_free(t->vm, buffers[i]);
}

void parity_trials(ptxvm *vm, const kernel_row *row, const kernel_spec *spec, const char *ptx,
                   const parity_trial *trials, int count)
{
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    kernel_spec normal = kernel_spec_normal(row, spec);
    kernel_geometry geometry = row->geometry(row, &normal);
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    if (ptxvm_module_load(vm, ptx, strlen(ptx), &module) != PTXVM_OK)
        FAIL("%s", ptxvm_last_error(vm));
    else if (ptxvm_module_kernel(module, entry, &kernel) != PTXVM_OK)
        FAIL("kernel %s: %s", entry, ptxvm_last_error(vm));
    for (int i = 0; kernel && i < count; i++) {
        const parity_trial *how = &trials[i];
        trial t = {
            .vm = vm, .row = row, .spec = normal, .ref = reference_of(row, &normal), .how = how, .n = how->n};
        test_push_note("data kind %d, n = %d, seed %u, shifts %zu %zu %zu %zu", (int)how->kind, (int)how->n,
                       (unsigned)how->seed, how->data_shift, how->scale_shift, how->zero_shift,
                       how->codes_shift);
        run_trial(&t, kernel, &geometry);
        test_pop_note();
    }
    if (module)
        ptxvm_module_unload(module);
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
    spec->zero = zero_types[round % 4];
    spec->nibble_order = round / 2 % 2 ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
    spec->rounding = round / 3 % 2 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN;
    spec->division = round / 5 % 2 ? QDNN_DIVIDE_RECIPROCAL : QDNN_DIVIDE_EXACT;
    spec->floor = round % 3 ? 1e-12f : 0.5f;
}

void parity_emit_and_run(ptxvm *vm, const char *sm, const kernel_row *row, const kernel_spec *spec,
                         const parity_trial *trials, int count)
{
    kernel_text text;
    ptx_error error;
    char settings[256];
    kernel_spec_text(row, spec, settings, sizeof settings);
    test_push_note("%s", settings);
    if (!kernel_emit(row, spec, ptx_sm_find(sm), NULL, &text, &error))
        FAIL("%s", error.text);
    else
        parity_trials(vm, row, spec, text.ptx, trials, count);
    free(text.ptx);
    test_pop_note();
}

/* ---- Parts of operations ---- */

/* The index-th row that no user calls by itself. */
static const kernel_row *part_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (!kernel_rows[i].operation_name && index-- == 0)
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

TEST_EACH(KernelParts, HostRef, case_count, case_name)
{
    const char *sm = sms[index / 3 % LENGTH(sms)];
    ptxvm_config config = {.sm = sm, .threads = 1, .seed = (uint64_t)(index % 2), .checks = PTXVM_CHECK_ALL};
    ptxvm *vm;
    parity_trial trials[DATA_KINDS];
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    for (int g = 0; g < LENGTH(group_sizes); g++) {
        int round = index + g;
        kernel_spec spec = kernel_spec_default();
        spec.data = float_types[index % 3];
        spec.group_size = group_sizes[g];
        parity_take_turns(&spec, round);
        parity_kinds(trials, round);
        parity_emit_and_run(vm, sm, part_at(index / 3 / LENGTH(sms)), &spec, trials, DATA_KINDS);
    }
    ptxvm_destroy(vm);
}
