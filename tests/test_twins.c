/* The CUDA C twins of the kernels (bench/twins) compile in every setting, and give an entry that takes our
 * parameters. */
#include "bench/twins/twin.h"
#include "test.h"
#include "test_kernel_grid.h"

#include <stdio.h>
#include <string.h>

static int count(void)
{
    return kernel_row_count;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_rows[index].name);
}

static int count_parameters(const char *ptx)
{
    const char *entry = strstr(ptx, ".entry"), *end = entry ? strchr(entry, ')') : NULL;
    int n = 0;
    for (const char *p = entry; p && (p = strstr(p, ".param .")) && p < end; p++)
        n++;
    return n;
}

static void check_twin(const twin *t, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    char settings[512], entry[64], line[128];
    kernel_spec_text(row, spec, settings, sizeof settings);
    test_push_note("%s", settings);
    toolkit_result result;
    if (twin_compile(t, row, spec, sm, &result)) {
        kernel_entry_name(row, entry, sizeof entry);
        snprintf(line, sizeof line, ".entry %s(", entry);
        CHECK_HAS(result.data, line);
        bool has_zero = row->format == QDNN_FORMAT_INT4_ZP, is_scale = strncmp(row->name, "scale", 5) == 0;
        CHECK_EQ_I64(count_parameters(result.data), (is_scale ? 3 : 4) + has_zero);
    } else {
        FAIL("%s", result.log ? result.log : "NVRTC failed");
    }
    toolkit_free(&result);
    test_pop_note();
}

TEST_EACH(Twins, Compile, count, name)
{
    const kernel_row *row = &kernel_rows[index];
    twin t;
    if (!toolkit_has_nvrtc())
        SKIP("there is no NVRTC");
    if (!twin_open(&t, row))
        SKIP("%s has no twin", row->name);
    kernel_spec specs[GRID_MAX];
    int n = kernel_grid(row, GRID_VALUES, specs);
    for (int i = 0; i < n; i++)
        check_twin(&t, row, &specs[i], ptx_sm_find(i % 2 ? "sm_90" : "sm_75"));
    twin_close(&t);
}
