/* Every kernel of the registry assembles for every target, over its settings, without spills and without a
 * stack.
 *
 * ptxas is the judge; where there is none the cases are skipped. All pairs of settings are tried for three
 * targets of different generations, all single values for the others. */
#include "kernels/kernels.h"
#include "tools/toolkit.h"
#include "support/process.h"
#include "test.h"
#include "test_kernel_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count(void)
{
    return kernel_row_count * ptx_sm_count();
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", kernel_rows[index / ptx_sm_count()].name,
             ptx_sm_get(index % ptx_sm_count())->name);
}

static grid_strength strength_for(const ptx_sm *sm)
{
    static const char *const thorough[] = {"sm_75", "sm_90", "sm_120"};
    for (int i = 0; i < 3; i++)
        if (strcmp(sm->name, thorough[i]) == 0)
            return GRID_PAIRS;
    return GRID_VALUES;
}

/* Every function of `ptxas -v`'s report has a line of this form. */
static void check_frugal(const char *log)
{
    static const char *const nothing = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
    int functions = 0;
    for (const char *p = log; (p = strstr(p, " bytes stack frame")); p++) {
        functions++;
        CHECK(p > log && strncmp(p - 1, nothing, strlen(nothing)) == 0 && p[-2] == ' ');
    }
    CHECK_EQ_I64(functions, 1);
    CHECK(strstr(log, "warning") == NULL);
}

/* False when this ptxas does not know the target at all. */
static bool assemble(const char *ptxas, const char *path, const kernel_row *row, const kernel_spec *spec,
                     const ptx_sm *sm)
{
    kernel_text text;
    ptx_error error = {0};
    if (!kernel_emit(row, spec, sm, NULL, &text, &error)) {
        FAIL("%s", error.text);
        return true;
    }
    FILE *file = fopen(path, "w");
    if (CHECK(file != NULL)) {
        fputs(text.ptx, file);
        fclose(file);
    }
    free(text.ptx);
    toolkit_result result;
    bool ok = toolkit_ptxas(ptxas, sm->name, path, &result);
    bool known = ok || !result.log || !strstr(result.log, "gpu-name");
    if (ok)
        check_frugal(result.log);
    else if (known)
        FAIL("%s", result.log ? result.log : "ptxas failed");
    toolkit_free(&result);
    return known;
}

TEST_EACH(Kernels, Assembles, count, name)
{
    const kernel_row *row = &kernel_rows[index / ptx_sm_count()];
    const ptx_sm *sm = ptx_sm_get(index % ptx_sm_count());
    char ptxas[1024], dir[256], path[300];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    kernel_spec specs[GRID_MAX];
    int n = settings_grid(row, strength_for(sm), specs);
    temp_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/kernel.ptx", dir);
    bool known = true;
    for (int i = 0; i < n && known; i++) {
        char settings[512];
        kernel_spec_text(row, &specs[i], settings, sizeof settings);
        test_push_note("%s", settings);
        known = assemble(ptxas, path, row, &specs[i], sm);
        test_pop_note();
    }
    temp_dir_remove(dir);
    if (!known)
        SKIP("this ptxas does not know %s", sm->name);
}
