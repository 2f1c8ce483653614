/* Choosing settings: out of all combinations, the one that covers the most new pairs of values comes next,
 * until all are covered. */
#include "test_kernel_grid.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

enum { AXES_MAX = 16, VALUES_MAX = 10, ONE_CHANNEL = 3 };

typedef struct axis {
    const char *key;
    const char *values[VALUES_MAX + 1];
} axis;

/* The first value is the default. */
static const axis all_axes[] = {
    {"data", {"f32", "f16", "bf16"}},
    {"scale", {"f32", "f16", "bf16"}},
    {"zero", {"default", "f32", "f16", "bf16"}},
    {"group_size", {"128", "1", "2", "3", "32", "64", "100", "4096", "100000"}},
    {"channels", {"0", "3", "64"}},
    {"nibble_order", {"low", "high"}},
    {"rounding", {"even", "away"}},
    {"division", {"exact", "reciprocal"}},
    {"floor", {"1e-12", "0"}},
    {"bits", {"8", "4", "2"}},
    {"scale_mode", {"batch", "ema", "fixed"}},
    {"decay", {"0.99", "0.5"}},
    {"backward", {"clipped", "identity", "tanh", "hard_tanh"}},
    {"gradient_factor", {"no", "yes"}},
};

typedef struct grid {
    const axis *axes[AXES_MAX];
    int sizes[AXES_MAX], n;
    bool covered[AXES_MAX][AXES_MAX][VALUES_MAX]
                [VALUES_MAX]; /* axes a <= b; a == b stands for single values */
} grid;

static void grid_open(grid *g, const kernel_row *row)
{
    *g = (grid){0};
    for (size_t i = 0; i < sizeof all_axes / sizeof all_axes[0]; i++) {
        if (!kernel_takes(row, all_axes[i].key))
            continue;
        g->axes[g->n] = &all_axes[i];
        while (all_axes[i].values[g->sizes[g->n]])
            g->sizes[g->n]++;
        g->n++;
    }
}

/* How many pairs (or values) this choice would add; marks them if asked to. */
static int gain(grid *g, const int *choice, grid_strength strength, bool mark)
{
    int added = 0;
    for (int a = 0; a < g->n; a++)
        for (int b = a; b < (strength == GRID_PAIRS ? g->n : a + 1); b++) {
            bool *seen = &g->covered[a][b][choice[a]][choice[b]];
            added += !*seen;
            *seen = *seen || mark;
        }
    return added;
}

static bool next_choice(const grid *g, int *choice)
{
    for (int a = g->n; a-- > 0;) {
        if (++choice[a] < g->sizes[a])
            return true;
        choice[a] = 0;
    }
    return false;
}

static kernel_spec spec_of(const grid *g, const kernel_row *row, const int *choice)
{
    kernel_spec spec = kernel_spec_default();
    for (int a = 0; a < g->n; a++) {
        char error[256];
        if (!kernel_spec_set(row, &spec, g->axes[a]->key, g->axes[a]->values[choice[a]], error, sizeof error))
            FAIL("%s: %s", row->name, error);
    }
    return spec;
}

/* Without those that are several kernels. */
static int keep_emitted(const kernel_row *row, kernel_spec *specs, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        char reason[256];
        if (kernel_is_emitted(row, &specs[i], reason, sizeof reason))
            specs[kept++] = specs[i];
    }
    return kept;
}

/* One channel alone takes any group size for 1, so it is no value of an axis: some of the others, with it. */
static int add_one_channel(kernel_spec *specs, int count)
{
    const int more = count < ONE_CHANNEL ? count : ONE_CHANNEL;
    for (int i = 0; i < more; i++) {
        specs[count + i] = specs[i];
        specs[count + i].stored.channels = 1;
    }
    return count + more;
}

int settings_grid(const kernel_row *row, grid_strength strength, kernel_spec *specs)
{
    grid g;
    grid_open(&g, row);
    for (int count = 0; count + ONE_CHANNEL < GRID_MAX; count++) {
        int choice[AXES_MAX] = {0}, best[AXES_MAX] = {0}, best_gain = 0;
        do {
            int added = gain(&g, choice, strength, false);
            if (added > best_gain) {
                best_gain = added;
                memcpy(best, choice, sizeof best);
            }
        } while (count > 0 &&
                 next_choice(&g, choice)); /* the first is the defaults, of kernels without axes too */
        if (best_gain == 0 && count > 0)
            return keep_emitted(row, specs, add_one_channel(specs, count));
        gain(&g, best, strength, true);
        specs[count] = spec_of(&g, row, best);
    }
    FAIL("%s needs more than %d settings", row->name, GRID_MAX);
    return GRID_MAX;
}

/* ---- Matrices ---- */

/* clang-format off */
static const char *const matrices[MATRIX_SETTINGS][8] = {
    {"layout=interleaved", "groups=columns", "group_size=128", "zero_packed=yes", "scale=f16", "data=f16"},
    {"layout=interleaved", "groups=columns", "group_size=32", "group_index=yes", "zero=f32", "data=bf16"},
    {"layout=interleaved", "groups=columns", "group_index=yes", "group_table=yes", "zero_packed=yes", "scale=f16", "data=f16"},
    {"layout=words", "groups=columns", "group_index=yes", "group_table=yes", "group_rows=3", "data=bf16"},
    {"layout=interleaved", "groups=rows", "group_size=1", "scale_order=transposed", "data=f64"},
    {"layout=awq", "groups=columns", "zero_packed=yes", "data=f32"},
    {"layout=words", "groups=rows", "group_size=100", "zero_packed=yes", "scale=bf16", "data=f16"},
    {"layout=words", "groups=rows", "group_size=3", "group_rows=2", "data=f32"},
    {"layout=words", "groups=flat", "group_size=3", "channels=5", "data=f16"},
    {"layout=interleaved", "groups=flat", "group_size=40", "channels=5", "data=f16"},
    {"groups=rows", "group_size=16", "scale=e4m3", "scale_swizzle=128x4", "data=f32"},
    {"groups=rows", "group_size=128", "group_rows=128", "data=bf16"},
    {"groups=columns", "group_size=16", "scale=e4m3", "scale_swizzle=128x4", "data=f16"},
    {"groups=columns", "group_size=5", "group_rows=3", "scale_order=transposed", "data=f16"},
    {"row_index=yes", "groups=rows", "group_size=32", "data=f16"},
    {"layout=words", "to_layout=interleaved", "to_code=twos"},
    {"layout=interleaved", "to_layout=bytes"},
};
/* clang-format on */

/* Keys that the row does not know are left out. */
static kernel_spec matrix_spec(const kernel_row *row, const char *const *list)
{
    kernel_spec spec = kernel_spec_default();
    for (; *list; list++) {
        char key[32], error[256];
        const char *value = strchr(*list, '=') + 1;
        snprintf(key, sizeof key, "%.*s", (int)(value - 1 - *list), *list);
        if (kernel_takes(row, key) && !kernel_spec_set(row, &spec, key, value, error, sizeof error))
            FAIL("%s: %s", row->name, error);
    }
    return spec;
}

int matrix_settings(const kernel_row *row, kernel_spec *specs)
{
    int count = 0;
    if (!kernel_takes(row, "layout"))
        return 0;
    for (int i = 0; i < MATRIX_SETTINGS; i++)
        specs[count++] = matrix_spec(row, matrices[i]);
    return keep_emitted(row, specs, count);
}

/* ---- the grid itself ---- */

static int count(void)
{
    return kernel_row_count;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_rows[index].name);
}

/* By the text of the settings, so not by the tables above. */
static bool has_pair(const kernel_row *row, const kernel_spec *specs, int n, const char *one,
                     const char *other)
{
    for (int i = 0; i < n; i++) {
        char text[520] = " ";
        kernel_spec_text(row, KERNEL_NORMAL(row, &specs[i]), text + 1, sizeof text - 2);
        strcat(text, " ");
        if (strstr(text, one) && strstr(text, other))
            return true;
    }
    return false;
}

TEST_EACH(KernelGrid, HasEveryPair, count, name)
{
    static const char *const values[][9] = {{" data=f32 ", " data=f16 ", " data=bf16 "},
                                            {" group_size=1 ", " group_size=2 ", " group_size=3 ",
                                             " group_size=32 ", " group_size=64 ", " group_size=100 ",
                                             " group_size=128 ", " group_size=4096 ", " group_size=100000 "}};
    const kernel_row *row = &kernel_rows[index];
    kernel_spec specs[GRID_MAX];
    int n = settings_grid(row, GRID_PAIRS, specs);
    if (!kernel_takes(row, "channels") || !kernel_takes(row, "data") || strstr(row->name, "dynamic"))
        return; /* some kernels have no groups, some f32 alone, and one not all groups */
    CHECK(n >= 27 && n < 80);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 9; k++)
            CHECK(has_pair(row, specs, n, values[0][i], values[1][k]));
    int few = settings_grid(row, GRID_VALUES, specs);
    CHECK_EQ_I64(few, 12);
    for (int k = 0; k < 9; k++)
        CHECK(has_pair(row, specs, few, "data=", values[1][k]));
}
