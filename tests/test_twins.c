/* The CUDA C twins of the kernels (bench/twins) compile in every setting, and give an entry that takes our
 * parameters. */
#include "bench/twins/twin.h"
#include "test.h"
#include "test_kernel_grid.h"
#include "test_kernels_parity.h"

#include <stdio.h>

/* The kernels that have a twin. */
static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (twin_exists(&kernel_rows[i]) && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

static int count(void)
{
    int n = 0;
    while (row_at(n))
        n++;
    return n;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", row_at(index)->name);
}

static void check_twin(machine *vm, const twin *t, const kernel_row *row, const kernel_spec *spec, int round)
{
    char settings[KERNEL_SPEC_TEXT];
    kernel_spec_text(row, KERNEL_NORMAL(row, spec), settings, sizeof settings);
    test_push_note("%s", settings);
    nvrtc_result result;
    parity_trial trials[DATA_KINDS];
    parity_kinds(trials, round);
    if (twin_compile(t, row, spec, ptx_sm_find(machine_sm(vm)), &result))
        parity_trials(vm, row, spec, result.data, trials, DATA_KINDS);
    else
        FAIL("%s", result.log ? result.log : "NVRTC failed");
    nvrtc_free(&result);
    test_pop_note();
}

static void check_settings(const twin *t, const kernel_row *row, const char *sm)
{
    kernel_spec specs[GRID_MAX];
    int n = settings_grid(row, GRID_VALUES, specs);
    ptxvm_config config = {.sm = sm, .threads = 1};
    machine *vm;
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    for (int i = 0; i < n; i++)
        check_twin(vm, t, row, &specs[i], i);
    machine_destroy(vm);
}

DEVICE_EACH(Twins, GiveTheBitsOfHostRef, count, name)
{
    const kernel_row *row = row_at(index);
    twin t;
    if (!nvrtc_found())
        SKIP("there is no NVRTC");
    REQUIRE(twin_open(&t, row));
    check_settings(&t, row, "sm_75"); /* bf16 by hand */
    check_settings(&t, row, "sm_90");
    twin_close(&t);
}
