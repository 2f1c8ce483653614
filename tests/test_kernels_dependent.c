/* Kernels may begin before the one in front of them has ended (driver/api/launch.h): from sm_90 on, each waits before it touches
 * memory, lets the next one begin after that, and loads nothing as read-only. */
#include "kernels/kernels.h"
#include "test.h"
#include "test_kernel_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int row_count(void)
{
    return kernel_row_count;
}

static void row_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_rows[index].name);
}

/* Whether an instruction uses memory that others may write. */
static bool touches_memory(const char *line)
{
    static const char *const spaces[] = {".global", "cp.async", "fence", "membar"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (strstr(line, spaces[i]))
            return true;
    return false;
}

static void check_order(const char *ptx, bool dependent)
{
    int waits = 0, triggers = 0;
    for (const char *line = strstr(ptx, "\n{\n"); line; line = strchr(line + 1, '\n')) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
        if (strstr(text, "griddepcontrol.wait"))
            waits++;
        if (strstr(text, "griddepcontrol.launch_dependents") && CHECK_EQ_I64(waits, 1))
            triggers++;
        if (touches_memory(text) && !CHECK_EQ_I64(waits, dependent))
            FAIL("%s", text);
        if (dependent && strstr(text, ".nc"))
            FAIL("%s", text);
    }
    CHECK_EQ_I64(waits, dependent);
    CHECK_EQ_I64(triggers, dependent);
}

TEST_EACH(KernelsDependent, WaitBeforeTheyTouchMemory, row_count, row_name)
{
    static const char *const sms[] = {"sm_75", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_121"};
    const kernel_row *row = &kernel_rows[index];
    kernel_spec specs[GRID_MAX];
    const int n = settings_grid(row, GRID_VALUES, specs);
    int emitted = 0;
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < sizeof sms / sizeof *sms; s++) {
            const ptx_sm *sm = ptx_sm_find(sms[s]);
            kernel_text text;
            ptx_error error;
            if (!kernel_emit(row, &specs[i], sm, NULL, &text, &error))
                continue;
            test_push_note("%s, settings %d", sms[s], i);
            check_order(text.ptx, sm->number >= 90);
            test_pop_note();
            free(text.ptx);
            emitted++;
        }
    CHECK(emitted > 0);
}
