/* Numbers of specifications, each at its limits and one beyond. */
#include "kernels/kernels.h"
#include "test.h"

#include <stddef.h>

static const struct {
    const char *name, *key, *least, *below, *most, *above, *says;
} limits[] = {
    {"GroupSize", "group_size", "1", "0", "1099511627776", "1099511627777", "at most 2^40"},
    {"GroupRows", "group_rows", "1", "0", "1099511627776", "1099511627777", "at most 2^40"},
    {"Channels", "channels", "0", NULL, "1099511627776", "1099511627777", "at most 2^40"},
    {"WindowH", "window_h", "1", "0", "32768", "32769", "1 to 2^15"},
    {"WindowW", "window_w", "1", "0", "32768", "32769", "1 to 2^15"},
    {"WindowC", "window_c", "1", "0", "1048576", "1048577", "1 to 2^20"},
    {"TileRows", "tile_rows", "1", "0", "128", "129", "it must be 1 to 128"},
    {"Split", "split", "1", "0", "32", "64", "it must be 1, 2, 4, 8, 16 or 32"},
    {"SplitIsAPowerOfTwo", "split", "16", "3", "32", "33", "it must be 1, 2, 4, 8, 16 or 32"},
    {"Decay", "decay", "0", "-0.001", "1", "1.001", "must be 0 to 1"},
    {"Floor", "floor", "0", "-0.001", "3.40282347e38", NULL, "not negative"},
};

/* A kernel that has the setting. */
static const kernel_row *kernel_with(const char *key)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_takes(&kernel_rows[i], key))
            return &kernel_rows[i];
    return NULL;
}

static void check_value(const kernel_row *row, int index, const char *value, bool good)
{
    char error[512] = "";
    kernel_spec spec = kernel_spec_default();
    if (!value)
        return;
    spec.stored.group_size = 1; /* its product with channels has a limit too */
    test_push_note("%s = %s of %s", limits[index].key, value, row->name);
    bool set = kernel_spec_set(row, &spec, limits[index].key, value, error, sizeof error);
    if (!CHECK(set == good))
        FAIL("%s", error);
    if (!good)
        CHECK_HAS(error, limits[index].says);
    test_pop_note();
}

TEST_ROWS(SpecLimits, AtAndBeyond, limits)
{
    const kernel_row *row = kernel_with(limits[index].key);
    REQUIRE(row != NULL);
    check_value(row, index, limits[index].least, true);
    check_value(row, index, limits[index].below, false);
    check_value(row, index, limits[index].most, true);
    check_value(row, index, limits[index].above, false);
}

/* group_size * channels: 2^48, and more. */
TEST_CASE(SpecLimits, CyclesOfChannels)
{
    const kernel_row *row = kernel_with("channels");
    char error[512] = "";
    kernel_spec spec = kernel_spec_default();
    REQUIRE(row != NULL);
    spec.stored.group_size = UINT64_C(1) << 24;
    CHECK(kernel_spec_set(row, &spec, "channels", "16777216", error, sizeof error));
    spec = kernel_spec_default();
    spec.stored.group_size = UINT64_C(1) << 24;
    CHECK(!kernel_spec_set(row, &spec, "channels", "16777217", error, sizeof error));
    CHECK_HAS(error, "at most 2^48");
}
