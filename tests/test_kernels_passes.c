/* Scales by as many passes as kernel_steps_of says: how many there are, what they need, and that they
 * give the bytes of host_ref. */
#include "test.h"

#include "kernels/operations.h"
#include "device/machine.h"
#include "formats/kernel_data.h"
#include "formats/ref_spec.h"
#include "support/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* What is expected for f32 data; the workspace that of absmax, twice that for lo and hi. */
static const struct {
    uint64_t group_size, channels, n;
    int passes;
    uint64_t workspace;
} cases[] = {
    {128, 0, 0, 0, 0},         {1, 3, 0, 0, 0},     {128, 0, 100000, 1, 0},
    {1, 1, 8192, 1, 0},        {100, 7, 700, 1, 0}, /* one turn: groups */
    {100, 7, 70001, 2, 707},                        /* 101 turns, one band each */
    {1, 1, 20000, 2, 5},                            /* tiles of 4,096 */
    {5, 1, 20000, 2, 5},                            /* whatever the group size */
    {1, 3, 40000, 2, 765},     /* 85 times 3 threads, each on 64 elements or more: 3 bands */
    {1, 64, 100000, 2, 1792},  /* 4 times 64, 7 bands */
    {3, 64, 100000, 2, 1536},  /* 24 bands of 22 turns of 192 */
    {5000, 2, 50001, 2, 24},   /* runs of two segments, 6 turns */
    {5001, 2, 50001, 2, 20},   /* runs that do not start on chunks */
    {40000, 2, 80000, 2, 20},  /* one turn of two long runs, in 10 segments each */
    {50000, 0, 120000, 2, 31}, /* 13, 13 and 5 segments */
    {5000, 3, 7000, 1, 0},     /* a channel without an element */
    {60000, 3, 70001, 2, 45},  /* 15 segments per run; the last run has no element */
    {1 << 30, 0, 20000, 2, 5}, /* one group: as the whole tensor */
    {1 << 30, 0, 8192, 1, 0},
};

static int count(void)
{
    return 3 * LENGTH(cases);
}

static const char *const names[] = {"scale_int4", "scale_int4_zp", "scale_nf4"};

static void name(int index, char *text, size_t size)
{
    int i = index / 3;
    snprintf(text, size, "%s_g%d_c%d_n%d", names[index % 3], (int)cases[i].group_size, (int)cases[i].channels,
             (int)cases[i].n);
}

static kernel_spec spec_of(int index)
{
    kernel_spec spec = kernel_spec_default();
    spec.stored.group_size = cases[index / 3].group_size;
    spec.stored.channels = cases[index / 3].channels;
    return spec;
}

static kernel_steps steps_for(const kernel_row *row, const kernel_spec *spec, uint64_t n)
{
    kernel_steps steps;
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &(kernel_problem){.rows = 1, .columns = n}, &steps);
    return steps;
}

/* The last parameter is the number of elements. */
static uint64_t elements_of(const kernel_step *step)
{
    return step->params[step->n_params - 1].value;
}

TEST_EACH(Passes, AreAsManyAsTheyShouldBe, count, name)
{
    const kernel_row *row = kernel_find(names[index % 3]);
    uint64_t pair = kernel_format(row)->zero_kind == QDNN_ZERO_POINT ? 2 : 1;
    kernel_spec spec = spec_of(index);
    kernel_steps steps = steps_for(row, &spec, cases[index / 3].n);
    CHECK_EQ_I64(steps.count, cases[index / 3].passes);
    CHECK_EQ_U64(steps.workspace, pair * cases[index / 3].workspace * sizeof(float));
    if (cases[index / 3].passes < 2)
        return;
    CHECK_EQ_STR(steps.at[0].row->name, pair == 2 ? "range_lo_hi" : "range_absmax");
    CHECK_EQ_U64(elements_of(&steps.at[0]), cases[index / 3].n);
    CHECK(steps.at[1].row == row);
    CHECK_EQ_U64(elements_of(&steps.at[1]), steps.workspace / sizeof(float));
    CHECK_EQ_I64(steps.at[1].spec.data, QDNN_DATA_F32);
}

/* Blocks of a kernel by itself: operations that take several passes have other launches. */
static uint64_t blocks_of(const kernel_row *row, const kernel_spec *spec, uint64_t n)
{
    kernel_steps steps = {0};
    return n ? steps_add(&steps, row, spec, &(kernel_problem){.rows = 1, .columns = n})->grid[0] : 0;
}

TEST_CASE(Passes, Grids)
{
    static const struct {
        const char *kernel;
        uint64_t group_size, channels, n, blocks;
    } grids[] = {
        {"quantize_nf4", 128, 0, 4096, 1},
        {"quantize_nf4", 1, 7, 4097, 2},
        {"scale_nf4", 128, 0, 1024, 1},
        {"scale_nf4", 128, 0, 1025, 2},
        {"scale_nf4", 1, 1, 5, 1},
        {"scale_nf4", 1, 7, 100, 7},
        {"scale_nf4", 1, 4096, 100, 512},
        {"scale_nf4", 100, 4096, 100, 4096},
        {"range_absmax", 1, 1, 5, 1024},
        {"range_absmax", 1, 4096, 5, 1024},
        {"scale_nf4", 1, UINT64_C(1) << 40, 1, INT32_MAX},
    };
    for (int i = 0; i < LENGTH(grids); i++) {
        kernel_spec spec = kernel_spec_default();
        spec.stored.group_size = grids[i].group_size;
        spec.stored.channels = grids[i].channels;
        test_push_note("%s, row %d", grids[i].kernel, i);
        CHECK_EQ_U64(blocks_of(kernel_find(grids[i].kernel), &spec, grids[i].n), grids[i].blocks);
        test_pop_note();
    }
}

/* ---- Their bytes ---- */

typedef struct work {
    machine *vm;
    ptxvm_address operands[QDNN_OPERAND_COUNT], workspace;
} work;

static bool run_step(work *w, const kernel_step *step)
{
    kernel_text text;
    ptx_error error;
    machine_module *module = NULL;
    machine_kernel *kernel;
    char entry[64];
    uint64_t params[KERNEL_PARAMS_MAX];
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find(machine_sm(w->vm)), NULL, &text, &error))
        return FAIL("%s", error.text), false;
    kernel_entry_name(step->row, entry, sizeof entry);
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        params[i] = p->kind == KERNEL_OPERAND     ? w->operands[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? w->workspace + p->value
                                                  : p->value;
    }
    ptxvm_launch_config config = {.grid = {(uint32_t)step->grid[0], 1, 1}, .block = {step->block, 1, 1}};
    bool ok = machine_module_load(w->vm, text.ptx, strlen(text.ptx), &module) == PTXVM_OK &&
              machine_module_kernel(module, entry, &kernel) == PTXVM_OK &&
              machine_launch(w->vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK;
    if (!ok)
        FAIL("%s: %s", entry, machine_last_error(w->vm));
    free(text.ptx);
    if (module)
        machine_module_unload(module);
    return ok;
}

static bool run_steps(work *w, const kernel_steps *steps)
{
    bool ok = true;
    for (int i = 0; i < steps->count && ok; i++)
        ok = run_step(w, &steps->at[i]);
    return ok;
}

static void check_passes(work *w, const kernel_row *row, const kernel_spec *spec, data_kind kind, uint64_t n)
{
    ref_quant_spec ref = ref_spec_of(row, spec);
    bool has_zero = kernel_has_key(row, KERNEL_KEY(ZERO));
    size_t bytes = (size_t)n * ref_scalar_size(spec->data),
           groups = (size_t)ref_group_count(&ref, 1, (int64_t)n);
    uint8_t *x = malloc(bytes), *zero = malloc(groups), *actual_zero = malloc(groups);
    float *scale = malloc(groups * 4), *actual = malloc(groups * 4);
    kernel_steps steps = steps_for(row, spec, n);
    ptxvm_address *at = w->operands;
    if (CHECK(x && zero && actual_zero && scale && actual) &&
        CHECK(machine_alloc(w->vm, bytes, &at[QDNN_OPERAND_X]) == PTXVM_OK &&
              machine_alloc(w->vm, steps.workspace + 4, &w->workspace) == PTXVM_OK &&
              machine_alloc(w->vm, groups * 4, &at[QDNN_OPERAND_SCALE]) == PTXVM_OK &&
              machine_alloc(w->vm, groups, &at[QDNN_OPERAND_ZERO]) == PTXVM_OK)) {
        fill_data(kind, kernel_format(row), spec->data, (uint32_t)n, x, (int64_t)n);
        ref_scale(&ref, 1, (int64_t)n, x, &(ref_arrays){.scale = scale, .zero = zero});
        CHECK(machine_write(w->vm, at[QDNN_OPERAND_X], x, bytes) == PTXVM_OK);
        if (run_steps(w, &steps)) {
            CHECK(machine_read(w->vm, actual, at[QDNN_OPERAND_SCALE], groups * 4) == PTXVM_OK);
            CHECK_EQ_MEM(actual, scale, groups * 4);
            CHECK(!has_zero || machine_read(w->vm, actual_zero, at[QDNN_OPERAND_ZERO], groups) == PTXVM_OK);
            CHECK_EQ_MEM(actual_zero, zero, has_zero ? groups : 0);
        }
    }
    free(x), free(zero), free(actual_zero), free(scale), free(actual);
}

DEVICE_EACH(Passes, GiveTheBytesOfHostRef, count, name)
{
    static const data_kind kinds[] = {DATA_NORMAL, DATA_SPECIAL, DATA_HUGE};
    const kernel_row *row = kernel_find(names[index % 3]);
    if (cases[index / 3].n == 0)
        SKIP("nothing is launched for no elements");
    for (int i = 0; i < LENGTH(kinds); i++) {
        kernel_spec spec = spec_of(index);
        spec.data = (i + index) % 2 ? QDNN_DATA_F16 : QDNN_DATA_F32;
        ptxvm_config config = {.sm = "sm_80", .threads = 1, .checks = EVERY_CHECK};
        work w = {0};
        REQUIRE(machine_create(&config, &w.vm) == PTXVM_OK);
        test_push_note("data kind %d", (int)kinds[i]);
        check_passes(&w, row, &spec, kinds[i], cases[index / 3].n);
        test_pop_note();
        machine_destroy(w.vm);
    }
}
