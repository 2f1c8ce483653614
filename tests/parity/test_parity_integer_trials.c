/* Each text of the integer products with many shapes and data, so that a mistake in any line of it shows (docs/mutation.md): rows and columns
 * that fill a tile or not, k around chunks of 16 bytes, rounds of 512 and stages of 64, each way of reading codes, every zero
 * point at an end, and strange scales. */
#include <stdio.h>

#include "device/integer_case.h"
#include "device/integer_expose.h"
#include "device/integer_rows.h"
#include "formats/sample.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* clang-format off */
enum { I4 = QDNN_DATA_I4, I8 = QDNN_DATA_I8, U8 = QDNN_DATA_U8, I32 = QDNN_DATA_I32, F32 = QDNN_DATA_F32,
       F16 = QDNN_DATA_F16, BF16 = QDNN_DATA_BF16 };

static const integer_case kinds[] = {
    {.name = "codes", .x = I8, .w = I8, .y = I8, .x_zero = 1, .w_zero = 1, .y_zero = 1, .bias = I32, .multipliers = true,
     .rounding = QDNN_ROUND_TIES_AWAY},
    {.name = "codes_u8", .x = U8, .w = I8, .y = U8, .x_zero = 1, .y_zero = 1, .multiplier = 0.0078125f},
    {.name = "codes_kn", .x = I8, .w = I8, .y = I8, .w_is_kn = true, .w_zero = 1, .multiplier = 0.004f, .rounding = QDNN_ROUND_TIES_AWAY},
    {.name = "sums", .x = U8, .w = I8, .y = I32, .bias = I32, .w_zero = 1},
    {.name = "w8a8", .x = I8, .w = I8, .y = F16, .bias = F16, .activation = QDNN_ACTIVATION_GELU_TANH, .residual = true,
     .alpha = QDNN_ALPHA_COLUMN},
    {.name = "w8a8_u8", .x = U8, .w = I8, .y = BF16, .x_zero = 1, .bias = F32, .activation = QDNN_ACTIVATION_RELU,
     .alpha = QDNN_ALPHA_NUMBER},
    {.name = "w4a8", .x = I8, .w = I4, .y = F32, .group_size = 32, .scale_type = QDNN_SCALE_F16},
    {.name = "w4a8_128", .x = I8, .w = I4, .y = BF16, .group_size = 128, .bias = BF16, .residual = true},
    {.name = "w4a8_odd_groups", .x = I8, .w = I4, .y = F16, .group_size = 7, .scale_type = QDNN_SCALE_BF16},
    {.name = "w4a8_small_groups", .x = I8, .w = I4, .y = F32, .group_size = 20},
    {.name = "w4a4", .x = I4, .w = I4, .y = F32, .bias = F32, .alpha = QDNN_ALPHA_ONE},
    {.name = "int4_batched", .x = I4, .w = I4, .y = F32, .w_first = true},
};
/* clang-format on */

/* Texts for one row, a few rows, tiles of 64 and of 128. Groups of odd sizes take four rows at a time with any m: its remainders by 4
 * are all there. */
static const struct {
    const char *name, *sms[2];
    int64_t m[4], n[4];
} sizes[] = {
    {"one_row", {"sm_75", "sm_90"}, {1, 1, 1, 1}, {6, 9, 40, 17}},
    {"few_rows", {"sm_80", "sm_120"}, {4, 2, 3, 4}, {5, 33, 8, 70}},
    {"tiles", {"sm_75", "sm_80"}, {64, 5, 62, 35}, {40, 67, 64, 17}},
    {"large_tiles", {"sm_90", "sm_75"}, {128, 65, 130, 99}, {65, 128, 70, 131}},
};

typedef struct trial {
    int64_t k;
    size_t shift;
    codes_fill fill;
    bool strange;
} trial;
static const trial trials[] = {
    {64, 0, CODES_SMALL, false},  {208, 0, CODES_ANY, false},  {36, 4, CODES_SMALL, false},
    {101, 1, CODES_SMALL, false}, {528, 0, CODES_ANY, true},   {16, 0, CODES_ENDS, false},
    {1, 0, CODES_ANY, true},      {256, 0, CODES_ENDS, true},  {0, 0, CODES_ANY, true},
    {1056, 0, CODES_ANY, false},  {39, 0, CODES_SMALL, true},  {128, 0, CODES_LEAST, false},
    {96, 0, CODES_SMALL, true},   {544, 2, CODES_ANY, false},  {192, 0, CODES_MOST, false},
    {80, 0, CODES_SMALL, false},  {52, 0, CODES_SMALL, false}, {112, 4, CODES_SMALL, false},
    {40, 1, CODES_ANY, false},    {45, 3, CODES_ENDS, false},  {43, 1, CODES_ANY, true},
    {300, 0, CODES_SMALL, false}, {148, 4, CODES_ANY, false},  {333, 1, CODES_SMALL, false},
    {4700, 0, CODES_ANY, false},  {4611, 1, CODES_ANY, false}, {4640, 0, CODES_SMALL, false},
};

/* With the most rows and columns, so that every stage and several strips of groups have all of them. */
static const trial whole[] = {
    {1056, 0, CODES_ANY, false},
    {992, 0, CODES_SMALL, false},
    {1121, 1, CODES_ANY, false},
};

/* Rows of every length between two chunks, read byte by byte; and x or w alone out of line. */
enum {
    WHOLE = LENGTH(whole),
    TRIALS = WHOLE + LENGTH(trials),
    ROUNDED = 32,
    LONG = 2000,
    TILES = 2,        /* the first of the sizes that are tiles */
    LONG_ROWS = 4,    /* of which so many are executed with long rows */
    TILE_GROUPS = 32, /* other groups have no tiles */
    LENGTHS = 15,
    SHIFTS = 4,
    FINE = 7,   /* in which a last bit shows */
    ERRORS = 3, /* the last of these */
    ALL_TRIALS = TRIALS + LENGTHS + SHIFTS + FINE
};

static trial trial_at(int i)
{
    if (i < TRIALS)
        return i < WHOLE ? whole[i] : trials[i - WHOLE];
    if (i < TRIALS + LENGTHS)
        return (trial){ROUNDED + i - TRIALS + 1, 1, CODES_SMALL, false};
    return (trial){64, i % 2 ? 4 : 1, CODES_SMALL, false};
}

/* Zero points that are there at all take turns at the ends of their types. */
static int zero_of(int has, int type, codes_fill fill, int turn)
{
    static const int of_u8[] = {255, 1, 128}, of_i8[] = {-128, 127, -1};
    if (has && fill == CODES_SMALL)
        return type == U8 || turn % 2 ? 1 : -1;
    return !has ? 0 : type == U8 ? of_u8[turn % 3] : of_i8[turn % 3];
}

/* ---- Last bits ---- */

static int most_of(int type)
{
    return type == I4 ? 7 : type == I8 ? 127 : 255;
}

/* Every product is the same: a length of rows with a multiplier that tells two sums, or two products, apart. */
static void fit_multiplier(integer_case *c, int64_t least, float (*multiplier)(int64_t))
{
    enum { TRIED = 32 };
    c->fill = CODES_MOST;
    c->x_zero = 2 * (c->x_zero != 0); /* the sum is odd for half of the lengths */
    c->w_zero = 2 * (c->w_zero != 0);
    c->y_zero = 0;
    c->multiplier = 0;
    for (c->k = least; c->multiplier == 0 && c->k < least + TRIED; c->k++)
        c->multiplier = multiplier((most_of(c->x) - c->x_zero) * (most_of(c->w) - c->w_zero) * c->k +
                                   (c->bias ? EXPOSE_BIAS : 0));
    c->k--;
    CHECK(c->multiplier > 0);
}

/* Sums beyond 2^24 are rounded: so many products of the largest codes. */
enum { BEYOND = 1603, LONG_ENOUGH = 4700, STRIP = 512 };

/* Groups and their opposites: three strips, the last of which has two groups; or strips for all threads of a column. */
static int64_t opposites(int64_t group_size, bool is_long)
{
    const int64_t half = is_long ? LONG_ENOUGH / group_size / 2 : STRIP / group_size + 1;
    return 2 * half * group_size;
}

/* False where the case has nothing of the kind. */
static bool make_fine(integer_case *c, int turn)
{
    if (c->y == I8 || c->y == U8) {
        c->exposes = EXPOSE_CODE;
        if (turn < 4)
            fit_multiplier(c, turn % 2 ? BEYOND : 37 + 16 * turn,
                           turn % 2 ? integer_expose_sum : integer_expose_product);
        return turn < 4;
    }
    if (c->y == I32)
        return false;
    c->exposes = turn >= FINE - ERRORS ? EXPOSE_ERRORS : EXPOSE_REST;
    c->fill = turn == 3 ? CODES_MOST : CODES_ANY;
    c->k = turn == 3 ? BEYOND : 48 * turn + 16;
    if (turn >= FINE - ERRORS && c->group_size)
        c->k = opposites(c->group_size, turn == 5);
    if (turn == 6)
        c->shift = 1;
    return turn < FINE - ERRORS || c->group_size;
}

static int64_t most_columns(int size)
{
    int64_t most = 0;
    for (int i = 0; i < LENGTH(sizes[size].n); i++)
        most = sizes[size].n[i] > most ? sizes[size].n[i] : most;
    return most;
}

/* Every third trial of the kernels for one row and for a few is repeated with more rows. */
static bool run_rows(int kind, int size, int i, integer_case c)
{
    const int64_t planned = sizes[size].m[0];
    c.m = planned == 1 ? 3 : 7;
    return i % 3 || integer_rows_run(sizes[size].sms[kind % 2], &c, planned);
}

/* The most rows and columns, or others. */
static bool is_whole(int i)
{
    return i < WHOLE || i >= ALL_TRIALS - ERRORS;
}

static bool run_trial(qdnnHandle_t handle, int kind, int size, int i)
{
    const trial t = trial_at(i);
    integer_case c = kinds[kind];
    if (t.k > LONG && kinds[kind].group_size == 0)
        return true; /* strips of groups for all threads of a column */
    c.m = sizes[size].m[is_whole(i) ? 0 : i % 4];
    c.n = is_whole(i) ? most_columns(size) : sizes[size].n[(i + i / 4) % 4];
    c.k = t.k;
    c.fill = t.fill;
    c.multiplier = c.fill == CODES_SMALL ? integer_small_multiplier(c.k, 0.75f) : c.multiplier;
    c.x_zero = zero_of(c.x_zero, c.x, c.fill, i);
    c.w_zero = zero_of(c.w_zero, c.w, c.fill, i / 2);
    c.y_zero = zero_of(c.y_zero, c.y, c.fill, i / 3);
    c.strange = t.strange;
    c.shift = t.shift;
    if (i >= TRIALS + LENGTHS)
        c.shifted = (i - TRIALS - LENGTHS) / 2 ? SHIFT_X : SHIFT_W;
    c.seed = (uint32_t)(1000 * kind + 100 * size + i + 1);
    if (i >= ALL_TRIALS - FINE && !make_fine(&c, i - (ALL_TRIALS - FINE)))
        return true;
    const bool is_slow = c.k > LONG || (is_whole(i) && c.group_size % TILE_GROUPS);
    c.rows = is_slow && size >= TILES ? LONG_ROWS : 0;
    return integer_case_run(handle, &c) && (size >= TILES || run_rows(kind, size, i, c));
}

/* By default one size of each kind, and few of its trials. */
static int case_count(void)
{
    return sample_is_full() ? LENGTH(kinds) * LENGTH(sizes) : LENGTH(kinds);
}

static int size_of(int index)
{
    return sample_is_full() ? index / LENGTH(kinds) : index % LENGTH(sizes);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", kinds[index % LENGTH(kinds)].name, sizes[size_of(index)].name);
}

DEVICE_EACH(ParityInteger, Trials, case_count, case_name)
{
    const int kind = index % LENGTH(kinds), size = size_of(index);
    qdnnHandle_t handle = device_begin(sizes[size].sms[kind % 2], 1 + kind % 3, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < ALL_TRIALS && alive; i += sample_is_full() ? 1 : 5)
        alive = run_trial(handle, kind, size, (i + (sample_is_full() ? 0 : index % 5)) % ALL_TRIALS);
    device_end(handle);
}
