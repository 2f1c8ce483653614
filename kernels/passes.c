/* How kernels are launched: grids, and operations that take more than one pass. */
#include "kernels/emit.h"

enum {
    ROUNDS_MAX = 32,   /* elements that a lane of a single pass takes one after another at most */
    RUN_MAX = 1 << 15, /* a run that one team reduces as fast as two passes would */
    MANY_RUNS = 128    /* enough to keep a GPU busy, however long they are */
};

uint64_t kernel_grid(const kernel_row *row, const kernel_spec *spec, uint64_t n)
{
    kernel_spec normal = kernel_spec_normal(row, spec);
    kernel_geometry g = row->geometry(row, &normal);
    if (n == 0)
        return 0;
    if (g.blocks)
        return g.blocks < INT32_MAX ? g.blocks : INT32_MAX;
    return (n - 1) / g.elements_per_block + 1;
}

uint64_t kernel_groups(const kernel_spec *spec, uint64_t n)
{
    if (n == 0 || spec->channels)
        return n ? spec->channels : 0;
    return (n - 1) / spec->group_size + 1;
}

static bool one_pass(const kernel_spec *spec, uint64_t n)
{
    if (spec->channels == 0)
        return spec->group_size <= RUN_MAX || n / spec->group_size >= MANY_RUNS;
    return n / spec->channels <= ROUNDS_MAX * scale_lanes(spec);
}

int kernel_scale_passes(const kernel_row *row, const kernel_spec *spec, uint64_t n, kernel_pass passes[2],
                        uint64_t *workspace)
{
    kernel_spec whole = kernel_spec_normal(row, spec);
    *workspace = 0;
    if (n == 0)
        return 0;
    if (whole.channels > 1 && n == whole.group_size * whole.channels)
        whole.channels = 0; /* one turn: a channel is a run */
    if (whole.channels == 0 && whole.group_size > RUN_MAX && whole.group_size >= n)
        whole.group_size = whole.channels = 1; /* one run: split by its elements, not by what it might have */
    passes[0] = (kernel_pass){row, whole, n};
    if (one_pass(&whole, n))
        return 1;
    const kernel_row *range = kernel_find(format_of(row)->signed_range ? "range_lo_hi" : "range_absmax");
    kernel_spec lists = whole;
    lists.data = QDNN_DATA_F32;
    lists.group_size = kernel_range_list(range, &whole);
    *workspace = kernel_range_count(range, &whole, n);
    passes[0] = (kernel_pass){range, kernel_spec_normal(range, &whole), n};
    passes[1] = (kernel_pass){row, kernel_spec_normal(row, &lists), *workspace};
    return 2;
}
