/* The kernels where they are easily wrong: a caller's strange scales and zero points, no elements at all,
 * groups larger than the tensor, every alignment, elements beyond 2^32. Against host_ref. */
#include "test_kernels_parity.h"

#include "formats/sample.h"
#include "kernels/emit.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))
static const qdnnDataType_t float_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const qdnnDataType_t zero_types[] = {QDNN_DATA_U8, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};

/* A case is a kernel and its types of data and scales. */
static int case_count(void)
{
    return sample_row_count() * 9;
}

static const kernel_row *row_of(int index)
{
    return sample_row_at(index / 9);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%s", row_of(index)->name, type_names[index / 3 % 3], type_names[index % 3]);
}

/* `groups` is the group size and the number of channels. */
static kernel_spec spec_of(int index, const uint64_t *groups)
{
    kernel_spec spec = kernel_spec_default();
    spec.data = float_types[index / 3 % 3];
    spec.stored.scale = (qdnnScaleType_t)(index % 3);
    spec.stored.zero = zero_types[index % 4];
    spec.stored.group_size = groups[0];
    spec.stored.channels = groups[1];
    return spec;
}

/* bf16 is computed with integers on sm_75 and with instructions later. */
static const char *sm_of(int index)
{
    return index % 2 ? "sm_75" : "sm_90";
}

static machine *open_vm(int index)
{
    machine *vm = NULL;
    CHECK(machine_create(&(ptxvm_config){.sm = sm_of(index), .threads = 1}, &vm) == PTXVM_OK);
    return vm;
}

static int texts; /* that the running test has launched */

static void skip_without_texts(void)
{
    if (!texts)
        test_skip("these settings are several kernels: there is no text of the whole");
    texts = 0;
}

/* Some settings of the dynamic kernels are several kernels; there is no text for them. */
static void run_spec(int index, const kernel_spec *spec, const parity_trial *trials, int count)
{
    char reason[256];
    if (!kernel_is_emitted(row_of(index), spec, reason, sizeof reason))
        return;
    machine *vm = open_vm(index);
    if (!vm)
        return;
    texts++;
    parity_emit_and_run(vm, row_of(index), spec, trials, count);
    machine_destroy(vm);
}

static void emit_and_run(int index, const uint64_t *groups, const parity_trial *trials, int count)
{
    kernel_spec spec = spec_of(index, groups);
    run_spec(index, &spec, trials, count);
}

/* The scale and range kernels take no scales, and the dynamic ones make theirs. */
static bool takes_scales(int index)
{
    return kernel_operation_of(row_of(index)) == KERNEL_QUANTIZE ||
           kernel_operation_of(row_of(index)) == KERNEL_DEQUANTIZE;
}

/* The index-th case of those that take scales. */
static int coding_case(int index)
{
    int at = 0, all = case_count();
    while (at < all && (!takes_scales(at) || index-- > 0))
        at++;
    return at;
}

static int coding_count(void)
{
    int count = 0, all = case_count();
    for (int i = 0; i < all; i++)
        count += takes_scales(i);
    return count;
}

static void coding_name(int index, char *text, size_t size)
{
    case_name(coding_case(index), text, size);
}

/* The tables of docs/numerics.md, under every division and rounding. */
DEVICE_EACH(KernelEdges, CallersScales, coding_count, coding_name)
{
    static const uint64_t groups[][2] = {{1, 0}, {6, 0}, {8, 0}, {1, 32}, {1, 48}};
    static const parity_trial trials[] = {{.n = 4999, .kind = DATA_SPECIAL, .seed = 1, .callers = true},
                                          {.n = 4096, .kind = DATA_TIES, .seed = 2, .callers = true},
                                          {.n = 2001, .kind = DATA_HUGE, .seed = 3, .callers = true},
                                          {.n = 4096, .kind = DATA_SUBNORMAL, .seed = 4, .callers = true},
                                          {.n = 301, .kind = DATA_ZEROS, .seed = 5, .callers = true}};
    index = coding_case(index);
    for (int i = 0; i < 4 * LENGTH(groups); i++) {
        kernel_spec spec = spec_of(index, groups[i / 4]);
        spec.stored.zero = zero_types[(index + i) % 4];
        spec.quantize.division = i % 2 ? QDNN_DIVIDE_RECIPROCAL : QDNN_DIVIDE_EXACT;
        spec.quantize.rounding = i / 2 % 2 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN;
        run_spec(index, &spec, trials, LENGTH(trials));
    }
    skip_without_texts();
}

/* No elements (though a block is launched), one, and groups that the tensor does not fill. */
DEVICE_EACH(KernelEdges, FewElements, case_count, case_name)
{
    static const uint64_t groups[][2] = {{1, 0}, {4, 0},  {100, 0}, {100000, 0}, {UINT64_C(1) << 40, 0},
                                         {1, 1}, {1, 40}, {4, 7},   {100, 40},   {UINT64_C(1) << 40, 2}};
    parity_trial trials[6];
    for (int n = 0; n < LENGTH(trials); n++)
        trials[n] = (parity_trial){.n = n < 5 ? n : 4099, .kind = DATA_SPECIAL, .seed = (uint32_t)n + 1};
    for (int i = 0; i < LENGTH(groups); i++)
        emit_and_run(index, groups[i], trials, LENGTH(trials));
    skip_without_texts();
}

/* Pointers need only the alignment of their elements: each combination. */
DEVICE_EACH(KernelEdges, Alignments, case_count, case_name)
{
    static const uint64_t groups[][2] = {{7, 0}, {128, 0}, {1, 1}, {1, 64}};
    parity_trial trials[32];
    for (int i = 0; i < LENGTH(trials); i++)
        trials[i] = (parity_trial){.n = 4096 + i,
                                   .kind = DATA_NORMAL,
                                   .seed = (uint32_t)i + 1,
                                   .data_shift = (size_t)i / 4 % 4,
                                   .codes_shift = (size_t)i % 4,
                                   .scale_shift = (size_t)i / 16,
                                   .zero_shift = (size_t)i / 16};
    for (int i = 0; i < LENGTH(groups); i++)
        emit_and_run(index, groups[i], trials, LENGTH(trials));
    skip_without_texts();
}

/* ---- Far out ---- */

static void run_far(int index, const uint64_t *groups)
{
    const kernel_row *row = row_of(index);
    kernel_spec spec = spec_of(index, groups);
    int64_t all = (int64_t)kernel_geometry_of(row, KERNEL_NORMAL(row, &spec)).elements_per_block;
    uint64_t block = 8589934592u / (uint64_t)all / 300 * 300 + 300;
    const parity_trial trials[] = {{.n = all, .kind = DATA_NORMAL, .seed = 1, .block = block},
                                   {.n = all - 1, .kind = DATA_SPECIAL, .seed = 2, .block = block},
                                   {.n = 1, .kind = DATA_HUGE, .seed = 3, .block = block}};
    run_spec(index, &spec, trials, LENGTH(trials));
}

/* Element 2^33 and beyond; the block's first element starts a group. */
DEVICE_EACH(KernelEdges, FarBlock, case_count, case_name)
{
    static const uint64_t groups[][2] = {{1, 0}, {3, 0}, {100, 0}, {128, 0}};
    for (int i = 0; i < LENGTH(groups); i++)
        run_far(index, groups[i]);
    skip_without_texts();
}

/* The same with channels: the block's first element starts the first of them. */
DEVICE_EACH(KernelEdges, FarBlockWithChannels, coding_count, coding_name)
{
    static const uint64_t groups[][2] = {{1, 1}, {1, 3}, {1, 64}, {3, 5}, {100, 3}, {8, 64}};
    index = coding_case(index);
    for (int i = 0; i < LENGTH(groups); i++)
        run_far(index, groups[i]);
    skip_without_texts();
}

/* ---- Division of element numbers ---- */

enum {
    NUMBERS = 32 /* a thread each */
};

/* out[t] is in[t] / divisor, out[t + NUMBERS] the rest. */
static char *division_kernel(uint64_t divisor)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_75"), NULL);
    ptx_kernel(b, "divide");
    ptx_val in = ptx_param_ptr(b, "in", 8), out = ptx_param_ptr(b, "out", 8), tid = ptx_tid_x(b);
    ptx_val i = ptx_ld_global(b, PTX_U64, ptx_at(b, in, tid, 8), 0);
    ptx_val quotient = emit_divide(b, i, divisor), at = ptx_at(b, out, tid, 8);
    ptx_st_global(b, at, 0, quotient);
    ptx_st_global(b, at, 8 * NUMBERS, emit_remainder(b, i, quotient, divisor));
    char *text = NULL;
    ptx_error error;
    if (!ptx_close(b, &text, &error))
        FAIL("%s", error.text);
    return text;
}

/* Multiples of the divisor and their neighbours, small and as large as an element number may be. */
static void numbers_around(uint64_t divisor, uint64_t in[NUMBERS])
{
    const uint64_t largest = INT64_MAX;
    const uint64_t about[] = {0,
                              divisor,
                              5 * divisor,
                              largest / divisor * divisor,
                              largest / 2 / divisor * divisor,
                              UINT64_C(1) << 32,
                              UINT64_C(1) << 62,
                              largest};
    for (int k = 0; k < NUMBERS; k++) {
        uint64_t number = about[k / 4] + (uint64_t)(k % 4) - 1;
        in[k] = number > largest ? largest : number;
    }
}

static void check_division(machine *vm, ptxvm_address in, uint64_t divisor)
{
    char *text = division_kernel(divisor);
    uint64_t numbers[NUMBERS], results[2 * NUMBERS];
    machine_module *module = NULL;
    machine_kernel *kernel = NULL;
    numbers_around(divisor, numbers);
    ptxvm_address params[] = {in, in + sizeof numbers};
    const ptxvm_launch_config one_warp = {.grid = {1, 1, 1}, .block = {NUMBERS, 1, 1}};
    if (CHECK(text && machine_module_load(vm, text, strlen(text), &module) == PTXVM_OK &&
              machine_module_kernel(module, "divide", &kernel) == PTXVM_OK &&
              machine_write(vm, in, numbers, sizeof numbers) == PTXVM_OK &&
              machine_launch(vm, kernel, &one_warp, params, sizeof params) == PTXVM_OK &&
              machine_read(vm, results, params[1], sizeof results) == PTXVM_OK))
        for (int i = 0; i < NUMBERS; i++) {
            CHECK_EQ_U64(results[i], numbers[i] / divisor);
            CHECK_EQ_U64(results[NUMBERS + i], numbers[i] % divisor);
        }
    if (module)
        machine_module_unload(module);
    free(text);
}

DEVICE_CASE(KernelEdges, DivisionByEveryKindOfGroupSize)
{
    static const uint64_t divisors[] = {
        1,   2,     3,     5,       6,          7,           10,           31,           64,           100,
        641, 65535, 65537, 1000003, 0xFFFFFFFF, 0x100000001, 0x8000000001, 0xFFFFFFFFFF, 0x10000000000};
    machine *vm;
    ptxvm_address memory;
    REQUIRE(machine_create(&(ptxvm_config){.sm = "sm_75", .threads = 1}, &vm) == PTXVM_OK);
    if (CHECK(machine_alloc(vm, 3 * NUMBERS * 8, &memory) == PTXVM_OK))
        for (int i = 0; i < LENGTH(divisors); i++) {
            test_push_note("divisor %llu", (unsigned long long)divisors[i]);
            check_division(vm, memory, divisors[i]);
            test_pop_note();
        }
    machine_destroy(vm);
}
