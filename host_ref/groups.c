/* Which elements share a scale, and where the scale of a group is stored. */
#include "host_ref/internal.h"

/* Returns the number of groups per line. */
int64_t hr_flat_or_lined_groups(const ref_quant_spec *spec, int64_t rows, int64_t columns, int64_t *lines)
{
    *lines = 1;
    if (rows == 0 || columns == 0)
        return 0;
    switch (spec->groups) {
    case QDNN_GROUPS_ROWS:
        *lines = ceil_div(rows, spec->group_rows);
        return ceil_div(columns, spec->group_size);
    case QDNN_GROUPS_COLUMNS:
        *lines = ceil_div(columns, spec->group_rows);
        return ceil_div(rows, spec->group_size);
    default:
        return spec->channels > 0 ? spec->channels : ceil_div(rows * columns, spec->group_size);
    }
}

static group_place flat_group(const tensor *t, int64_t index)
{
    int64_t run = index / t->spec.group_size;
    return (group_place){0, t->spec.channels > 0 ? run % t->spec.channels : run};
}

group_place hr_group_of(const tensor *t, const ref_arrays *in, int64_t row, int64_t column)
{
    switch (t->spec.groups) {
    case QDNN_GROUPS_ROWS:
        return (group_place){row / t->spec.group_rows, column / t->spec.group_size};
    case QDNN_GROUPS_COLUMNS: {
        int64_t group = t->spec.group_index ? in->group_index[row] : row / t->spec.group_size;
        bool known = group >= 0 && group < t->groups;
        return (group_place){column / t->spec.group_rows, known ? group : NO_GROUP};
    }
    default:
        return flat_group(t, row * t->columns + column);
    }
}

int64_t hr_group_total(const tensor *t)
{
    return t->lines * t->groups;
}

/* Scales are an array [lines, groups] or [groups, lines]. */
static bool lines_first(const tensor *t)
{
    bool transposed = t->spec.scale_order == QDNN_SCALE_ORDER_TRANSPOSED;
    return (t->spec.groups != QDNN_GROUPS_COLUMNS) != transposed;
}

int64_t hr_group_number(const tensor *t, group_place place)
{
    return lines_first(t) ? place.line * t->groups + place.group : place.group * t->lines + place.line;
}

group_place hr_group_numbered(const tensor *t, int64_t number)
{
    if (lines_first(t))
        return (group_place){number / t->groups, number % t->groups};
    return (group_place){number % t->lines, number / t->lines};
}

/* Tiles of 128 x 4, each of 512 consecutive scales, in which rows 32 apart are adjacent. */
int64_t hr_scale_slot(const tensor *t, int64_t number)
{
    if (t->spec.scale_swizzle == QDNN_SWIZZLE_NONE)
        return number;
    int64_t width = lines_first(t) ? t->groups : t->lines;
    int64_t m = number / width, k = number % width;
    int64_t tile = m / 128 * ceil_div(width, 4) + k / 4;
    return tile * 512 + m % 32 * 16 + m / 32 % 4 * 4 + k % 4;
}

int64_t hr_scale_slots(const tensor *t)
{
    int64_t height = lines_first(t) ? t->lines : t->groups, width = lines_first(t) ? t->groups : t->lines;
    if (t->spec.scale_swizzle == QDNN_SWIZZLE_NONE || hr_group_total(t) == 0)
        return hr_group_total(t);
    return ceil_div(height, 128) * ceil_div(width, 4) * 512;
}
