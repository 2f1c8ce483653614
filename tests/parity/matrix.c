/* Trials on matrices. */
#include "parity/matrix.h"

#include <string.h>

#include "device/device_buffer.h"
#include "driver/api/request.h"
#include "formats/sample.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

const kernel_row *matrix_row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++) {
        const kernel_row *row = &kernel_rows[i];
        if (row->operation_name && kernel_format(row) && kernel_takes(row, "groups") &&
            sample_is_elementwise(row) && index-- == 0)
            return row;
    }
    return NULL;
}

int matrix_row_count(void)
{
    int count = 0;
    while (matrix_row_at(count))
        count++;
    return count;
}

/* A number below `count`, from a state that goes on. */
static int pick(uint64_t *state, int count)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*state >> 33) % (uint64_t)count);
}
#define PICK(state, list) ((list)[pick(state, LENGTH(list))])

/* Patches and their edges: rows around 8, 16, 32 and a block's 128, columns that are multiples of 4, 8 and 32 or of
 * nothing, several spans and tiles, nothing at all, and more than two dimensions. */
static const struct {
    int rank;
    int64_t dims[4];
} shapes[] = {
    {2, {32, 128}},     {2, {40, 64}},  {2, {33, 160}},   {2, {64, 32}},  {2, {130, 8}},  {2, {70, 36}},
    {2, {8, 288}},      {2, {31, 520}}, {2, {1, 352}},    {2, {5, 37}},   {2, {67, 3}},   {2, {1, 1}},
    {2, {9, 1}},        {1, {75}},      {3, {2, 24, 40}}, {2, {16, 264}}, {2, {0, 8}},    {2, {3, 0}},
    {4, {2, 3, 5, 16}}, {2, {257, 24}}, {2, {36, 96}},    {2, {136, 32}}, {2, {3, 1056}},
};

static const qdnnDataType_t data_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
static const qdnnDataType_t zero_types[] = {QDNN_DATA_U8,  QDNN_DATA_I8,  QDNN_DATA_U32, QDNN_DATA_I32,
                                            QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
static const qdnnScaleType_t scale_types[] = {QDNN_SCALE_F32, QDNN_SCALE_F16, QDNN_SCALE_BF16,
                                              QDNN_SCALE_E4M3, QDNN_SCALE_E8M0};
static const qdnnGranularity_t granularities[] = {
    QDNN_GRANULARITY_GROUP, QDNN_GRANULARITY_GROUP,  QDNN_GRANULARITY_GROUP,   QDNN_GRANULARITY_GROUP,
    QDNN_GRANULARITY_GROUP, QDNN_GRANULARITY_TENSOR, QDNN_GRANULARITY_CHANNEL, QDNN_GRANULARITY_NONE};
static const qdnnGroups_t directions[] = {QDNN_GROUPS_ROWS, QDNN_GROUPS_COLUMNS, QDNN_GROUPS_COLUMNS,
                                          QDNN_GROUPS_FLAT};
static const int64_t group_sizes[] = {1, 3, 4, 8, 16, 32, 40, 64, 100, 128, 500};
static const uint64_t group_rows[] = {1, 1, 1, 2, 4, 8, 32, 128};
static const qdnnLayout_t layouts[] = {QDNN_LAYOUT_BYTES, QDNN_LAYOUT_WORDS_INTERLEAVED,
                                       QDNN_LAYOUT_WORDS_ROWS, QDNN_LAYOUT_AWQ};
static const qdnnCodeKind_t codes[] = {QDNN_CODE_DEFAULT, QDNN_CODE_OFFSET, QDNN_CODE_UNSIGNED,
                                       QDNN_CODE_TWOS_COMPLEMENT};

static bool in_three(uint64_t *state)
{
    return pick(state, 3) == 0;
}

static void pick_groups(uint64_t *state, quant_case *c)
{
    c->granularity = PICK(state, granularities);
    c->spec.stored.groups = QDNN_GROUPS_FLAT;
    c->extent = c->granularity == QDNN_GRANULARITY_CHANNEL ? pick(state, c->rank) : 0;
    if (c->granularity != QDNN_GRANULARITY_GROUP)
        return;
    c->spec.stored.groups = PICK(state, directions);
    c->extent = PICK(state, group_sizes);
    if (c->spec.stored.groups == QDNN_GROUPS_FLAT)
        return;
    c->spec.stored.group_rows = PICK(state, group_rows);
    c->spec.stored.scale_order = in_three(state) ? QDNN_SCALE_ORDER_TRANSPOSED : QDNN_SCALE_ORDER_DEFAULT;
    c->spec.stored.scale_swizzle = in_three(state) ? QDNN_SWIZZLE_128X4 : QDNN_SWIZZLE_NONE;
    c->spec.stored.group_index = c->spec.stored.groups == QDNN_GROUPS_COLUMNS && in_three(state);
}

static void pick_options(uint64_t *state, kernel_spec *spec)
{
    spec->stored.layout = PICK(state, layouts);
    spec->stored.code = PICK(state, codes);
    spec->data = PICK(state, data_types);
    spec->stored.scale = PICK(state, scale_types);
    spec->stored.nested = pick(state, 5) == 0;
    spec->stored.global_scale = in_three(state) ? 1 + pick(state, 2) : 0;
    spec->stored.zero = PICK(state, zero_types);
    spec->stored.zero_packed = in_three(state);
    spec->stored.zero_minus_one = in_three(state);
    spec->stored.zero_wraps = pick(state, 2);
    spec->stored.nibble_order = pick(state, 2) ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
    spec->quantize.rounding = pick(state, 2) ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN;
    spec->quantize.division = pick(state, 2) ? QDNN_DIVIDE_RECIPROCAL : QDNN_DIVIDE_EXACT;
    spec->quantize.range = in_three(state) ? QDNN_RANGE_TIGHT : QDNN_RANGE_WITH_ZERO;
    spec->quantize.floor = in_three(state) ? 0.5f : 1e-12f;
}

/* Settings that exclude each other are changed, so that few cases have to be picked again. */
static void settle(quant_case *c)
{
    kernel_spec *spec = &c->spec;
    qdnnZeroKind_t zero = kernel_format(c->row)->zero_kind;
    bool has_scales = c->granularity != QDNN_GRANULARITY_NONE;
    if (spec->stored.layout == QDNN_LAYOUT_AWQ && kernel_format(c->row)->bits != 4)
        spec->stored.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    if (spec->stored.layout != QDNN_LAYOUT_BYTES)
        spec->stored.nibble_order = QDNN_NIBBLE_LOW_FIRST;
    spec->stored.nested =
        spec->stored.nested && has_scales && zero == QDNN_ZERO_NONE && kernel_takes(c->row, "nested");
    spec->stored.global_scale =
        has_scales && zero == QDNN_ZERO_NONE && !spec->stored.nested ? spec->stored.global_scale : 0;
    if (spec->stored.global_scale)
        spec->stored.scale = QDNN_SCALE_E4M3;
    if (spec->stored.nested) {
        spec->stored.scale = QDNN_SCALE_F32;
        spec->stored.scale_swizzle = QDNN_SWIZZLE_NONE;
    }
    spec->stored.zero_packed = spec->stored.zero_packed && zero == QDNN_ZERO_POINT;
    if (spec->stored.zero_packed)
        spec->quantize.range = QDNN_RANGE_WITH_ZERO;
}

static bool has_callers(const kernel_row *row)
{
    return kernel_operation_of(row) == KERNEL_QUANTIZE || kernel_operation_of(row) == KERNEL_DEQUANTIZE;
}

static quant_case pick_case(uint64_t *state, const kernel_row *row)
{
    quant_case c = {.row = row, .spec = kernel_spec_default()};
    int shape = pick(state, LENGTH(shapes));
    c.rank = shapes[shape].rank;
    memcpy(c.dims, shapes[shape].dims, sizeof shapes[shape].dims);
    pick_groups(state, &c);
    pick_options(state, &c.spec);
    settle(&c);
    if (kernel_operation_of(row) == KERNEL_SCALE) { /* the layout where it plays a part at all */
        c.spec.stored.layout = kernel_spec_normal(row, &c.spec).stored.layout;
        c.spec.stored.nibble_order = QDNN_NIBBLE_LOW_FIRST;
    }
    int kind = pick(state, DATA_KINDS + 2 * has_callers(row));
    c.callers = kind >= DATA_KINDS;
    c.kind = c.callers ? DATA_NORMAL : (data_kind)kind;
    c.seed = (uint32_t)pick(state, 1000) + 1;
    return c;
}

/* Stacks whose matrices share a byte or a scale have errors of their own, which test_stacks.c compares. */
static bool is_refused_stack(const quant_case *c)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    request r;
    bool is_made = CHECK_QDNN(qdnnCreateTensorDescriptor(&tensor)) &&
                   CHECK_QDNN(qdnnCreateQuantDescriptor(&quant)) &&
                   CHECK_QDNN(qdnnSetTensorDescriptor(tensor, c->spec.data, c->rank, c->dims, NULL));
    bool refused = is_made && c->rank > 2 && quant_case_describe(c, quant) &&
                   request_make(kernel_operation_of(c->row), tensor, quant, &r) == QDNN_STATUS_NOT_SUPPORTED;
    char reason[512] = "";
    if (refused)
        qdnnGetLastErrorString(reason, sizeof reason);
    refused = strstr(reason, "of the stack") != NULL;
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
    return refused;
}

/* Whether there is such a kernel, for such a tensor. */
static bool is_served(const quant_case *c)
{
    char error[256];
    kernel_spec spec = c->spec;
    kernel_problem problem = {.rows = (uint64_t)quant_case_rows(c),
                              .columns = (uint64_t)quant_case_row_elements(c)};
    if (c->granularity == QDNN_GRANULARITY_NONE)
        spec.stored.groups = QDNN_GROUPS_DEFAULT;
    return kernel_spec_check(c->row, &spec, error, sizeof error) &&
           kernel_problem_check(&spec, &problem, error, sizeof error) && !is_refused_stack(c);
}

parity_trial matrix_trial_at(const kernel_row *row, int turn, int index)
{
    uint64_t state = (uint64_t)(turn * MATRIX_TRIALS + index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    for (const char *p = row->name; *p; p++)
        state = (state ^ (uint64_t)*p) * UINT64_C(0x100000001B3);
    parity_trial t = {.c = pick_case(&state, row)};
    while (!is_served(&t.c))
        t.c = pick_case(&state, row);
    t.buffers = pick(&state, 2) ? BUFFER_EXACT : BUFFER_BANDS;
    /* one-shot calls have scales, and zeros, and nothing else */
    const kernel_spec *spec = &t.c.spec;
    t.by_plan = spec->stored.group_index || spec->stored.nested || spec->stored.global_scale ||
                t.c.granularity == QDNN_GRANULARITY_NONE || pick(&state, 2);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        t.shift[i] = pick(&state, 8) == 0;
    return t;
}

/* ---- One text, many matrices ---- */

/* The first 24: every kind of data in turn. The others: extremes at every place, and what the first have not. */
static const int64_t others[][2] = {
    {32, 128},  {40, 64},   {33, 160}, {130, 8},   {70, 36},   {8, 288},   {31, 520},  {1, 352},   {5, 37},
    {67, 24},   {16, 264},  {257, 24}, {36, 96},   {136, 32},  {3, 1056},  {64, 256},  {9, 1032},  {129, 40},
    {2, 4104},  {128, 128}, {17, 136}, {300, 512}, {12, 8},    {65, 72},   {300, 512}, {64, 256},  {33, 160},
    {520, 264}, {40, 64},   {257, 96}, {9, 1032},  {130, 264}, {70, 36},   {36, 520},  {128, 128}, {31, 2056},
    {300, 264}, {32, 128},  {66, 260}, {129, 40},  {40, 64},   {33, 160},  {8, 288},   {64, 32},   {300, 512},
    {300, 520}, {128, 128}, {3, 1056}, {40, 64},   {33, 96},   {12, 288},  {64, 32},   {32, 512},  {17, 136},
    {128, 64},  {3, 1056},  {33, 33},  {40, 65},   {20, 129},  {64, 130},  {33, 132},  {34, 260},  {41, 9},
    {128, 144}, {49, 272},  {24, 520}, {130, 136}, {16, 2064}, {40, 264},  {33, 520},  {130, 72},  {64, 256},
    {31, 160},  {128, 128}, {40, 136}, {66, 260},  {33, 33},   {64, 130},  {128, 136}, {257, 264}, {66, 260},
    {40, 520},  {130, 72},  {64, 256}, {300, 160}, {256, 40},  {36, 1032}, {70, 100}};

static const data_kind first_kinds[] = {DATA_NORMAL,    DATA_TIES,  DATA_SPECIAL, DATA_HUGE, DATA_NORMAL,
                                        DATA_SUBNORMAL, DATA_ZEROS, DATA_CLAMP,   DATA_LEAST};
static const data_kind second_kinds[] = {
    DATA_PEAKS,    DATA_PEAKS,      DATA_PEAKS,         DATA_PEAKS,         DATA_ENDS,    DATA_HALVES,
    DATA_PEAKS,    DATA_PEAKS,      DATA_HALVES,        DATA_PEAKS,         DATA_PEAKS,   DATA_PEAKS,
    DATA_SPREAD,   DATA_HALVES,     DATA_PEAKS,         DATA_SPREAD,        DATA_HALVES,  DATA_SPECIAL,
    DATA_WIDE,     DATA_FEW_F16,    DATA_PEAKS,         DATA_PEAKS,         DATA_TIES,    DATA_HALVES,
    DATA_INFINITE, DATA_SCALE_TIES, DATA_SPECIAL,       DATA_MINUTE,        DATA_SPECIAL, DATA_WIDE,
    DATA_SPREAD,   DATA_SCALE_TIES, DATA_NORMAL,        DATA_CLAMP,         DATA_SPECIAL, DATA_HALVES,
    DATA_CLAMP,    DATA_SPREAD,     DATA_TIES,          DATA_CLAMP,         DATA_SPREAD,  DATA_PEAKS,
    DATA_HALVES,   DATA_CLAMP,      DATA_UNEVEN,        DATA_UNEVEN,        DATA_UNEVEN,  DATA_UNEVEN,
    DATA_UNEVEN,   DATA_UNEVEN,     DATA_INFINITE_TIES, DATA_INFINITE_TIES, DATA_UNEVEN,  DATA_UNEVEN,
    DATA_UNEVEN,   DATA_UNEVEN,     DATA_UNEVEN,        DATA_UNEVEN,        DATA_UNEVEN,  DATA_TIES,
    DATA_UNEVEN,   DATA_UNEVEN,     DATA_UNEVEN,        DATA_UNEVEN};

/* Rows of whole groups are flat groups, which other kernels take: the columns are changed so that the trial's kernel takes them. Half a group more may
 * still be whole vectors. */
static int64_t fitting_columns(const quant_case *c, int64_t columns, int i)
{
    if (c->granularity != QDNN_GRANULARITY_GROUP || c->spec.stored.groups != QDNN_GROUPS_ROWS)
        return columns;
    const bool is_whole = quant_case_row_elements(c) % c->extent == 0;
    if (is_whole && columns % c->extent != 0)
        return (columns + c->extent - 1) / c->extent * c->extent;
    return !is_whole && columns % c->extent == 0 ? columns + (i % 2 ? 1 : (c->extent + 1) / 2) : columns;
}

/* Without scales, extremes play no part, but numbers at and beyond the ends of the codes do. */
static data_kind second_kind(const quant_case *c, int i)
{
    static const data_kind plain[] = {DATA_CLAMP, DATA_TIES, DATA_CLAMP, DATA_SPREAD};
    const data_kind kind = second_kinds[i];
    return c->granularity == QDNN_GRANULARITY_NONE && kind == DATA_PEAKS ? plain[i % LENGTH(plain)] : kind;
}

bool matrix_other(const parity_trial *trial, int i, parity_trial *other)
{
    enum { FIRST = 24, SECOND = MATRIX_OTHERS - FIRST };
    _Static_assert(LENGTH(others) == MATRIX_OTHERS && LENGTH(second_kinds) == SECOND, "one for each");
    *other = *trial;
    quant_case *c = &other->c;
    c->rank = 2;
    c->dims[0] = others[i][0];
    c->dims[1] = fitting_columns(&trial->c, others[i][1], i);
    c->extent = c->granularity == QDNN_GRANULARITY_CHANNEL ? c->extent % 2 : c->extent;
    c->kind = i < FIRST ? first_kinds[i % LENGTH(first_kinds)] : second_kind(c, i - FIRST);
    c->callers =
        has_callers(c->row) && (i % 5 == 4 || c->kind == DATA_CLAMP || c->kind == DATA_INFINITE_TIES ||
                                (c->kind == DATA_UNEVEN && i % 4 > 0));
    c->callers_first = i;
    c->seed = (uint32_t)i + 1;
    c->blocks_most = i % 3 == 2 ? 1 + (unsigned)i / 3 % 2 : 0;
    other->by_plan = other->by_plan || c->blocks_most;
    other->buffers = (i + i / 4) % 2 ? BUFFER_BANDS : BUFFER_EXACT;
    /* 1, 2, 4 and 8 elements: each bit of an address that a kernel asks for is the only one once */
    for (int k = 0; k < QDNN_OPERAND_COUNT; k++)
        other->shift[k] = i % 4 == 3 && (i / 4 + k) % 3 == 0 ? (size_t)1 << i / 12 % 4 : 0;
    return is_served(c);
}

/* ---- Lists ---- */

static bool makes_scales(const kernel_row *row)
{
    return kernel_operation_of(row) == KERNEL_SCALE || kernel_operation_of(row) == KERNEL_DYNAMIC;
}

static void set_shape(quant_case *c, int64_t rows, int64_t columns)
{
    c->rank = 2;
    c->dims[0] = rows;
    c->dims[1] = columns;
}

static void set_tensor(quant_case *c)
{
    c->granularity = QDNN_GRANULARITY_TENSOR;
    c->extent = 0;
    c->spec.stored.groups = QDNN_GROUPS_FLAT;
}

/* So short that the kernel takes the elements themselves, which it takes as it does a list of ranges: those are f32. */
static void set_list(quant_case *c, int i)
{
    static const int64_t lengths[] = {8192, 257, 4104, 300, 2056, 32, 1000, 512};
    static const data_kind kinds[] = {DATA_SPECIAL,   DATA_ENDS,       DATA_HUGE,   DATA_UNEVEN,
                                      DATA_SUBNORMAL, DATA_SCALE_TIES, DATA_HALVES, DATA_INFINITE,
                                      DATA_LEAST,     DATA_SPREAD};
    enum { HOT = 34 };
    const int turn = i / 2;
    set_tensor(c);
    set_shape(c, 1, lengths[turn % LENGTH(lengths)]);
    c->spec.data = i % 2 ? QDNN_DATA_F32 : c->spec.data;
    c->kind = turn < HOT ? DATA_ONE_HOT : kinds[turn % LENGTH(kinds)];
    c->seed = (uint32_t)turn;
}

/* More parts of the tensor than the kernel of ranges has blocks: each takes a second one. A global scale comes from the list of ranges: the largest is
 * its first. (The scale of a whole tensor over a global one is always the same.) */
static void set_large(quant_case *c)
{
    enum { COLUMNS = 4100, FEW_PEAKS = 3 };
    const int64_t rows[] = {
        [QDNN_DATA_F32] = 1031, [QDNN_DATA_F16] = 2060, [QDNN_DATA_BF16] = 2060, [QDNN_DATA_F64] = 515};
    if (!c->spec.stored.global_scale)
        set_tensor(c);
    set_shape(c, rows[c->spec.data], COLUMNS);
    c->kind = c->spec.stored.global_scale ? DATA_ONE_HOT : DATA_PEAKS;
    c->seed = c->spec.stored.global_scale ? 0 : FEW_PEAKS;
}

/* Scales that are the elements' magnitudes, in several runs. */
enum { NESTED_HOT = 34 };
static const data_kind nested_kinds[] = {DATA_NESTED,   DATA_NESTED,   DATA_NESTED,   DATA_NESTED,
                                         DATA_SPECIAL,  DATA_CONSTANT, DATA_NESTED,   DATA_CONSTANT,
                                         DATA_CONSTANT, DATA_CONSTANT, DATA_HUGE,     DATA_NESTED,
                                         DATA_ENDS,     DATA_NESTED,   DATA_SUBNORMAL};
enum { NESTED = NESTED_HOT + LENGTH(nested_kinds) };

static void set_nested(quant_case *c, int i)
{
    static const int64_t lengths[] = {250, 1500, 256, 1023, 512, 33, 1025};
    c->row = kernel_find("scale_nf4");
    c->spec = kernel_spec_default();
    c->spec.stored.nested = 1;
    c->granularity = QDNN_GRANULARITY_GROUP;
    c->extent = 1;
    set_shape(c, 1, i < NESTED_HOT || i % 2 ? lengths[i % LENGTH(lengths)] : 1500);
    c->kind = i < NESTED_HOT ? DATA_ONE_HOT : nested_kinds[i - NESTED_HOT];
    c->seed = (uint32_t)(i < NESTED_HOT ? i : i - NESTED_HOT);
}

/* A whole tensor has one scale: so many calls have a caller's, each with another. */
static bool set_callers(quant_case *c, int i)
{
    static const int64_t shapes[][2] = {{5, 40}, {32, 128}, {33, 36}, {1, 352}, {9, 65}};
    static const data_kind kinds[] = {DATA_ENDS,   DATA_UNEVEN,        DATA_CLAMP,  DATA_UNEVEN,
                                      DATA_UNEVEN, DATA_SPECIAL,       DATA_UNEVEN, DATA_TIES,
                                      DATA_UNEVEN, DATA_INFINITE_TIES, DATA_UNEVEN};
    enum { APART = 8 }; /* so that each scale meets other zeros */
    set_shape(c, shapes[i % LENGTH(shapes)][0], shapes[i % LENGTH(shapes)][1]);
    c->kind = kinds[i % LENGTH(kinds)];
    c->callers = true;
    c->callers_first = i * APART;
    c->seed = (uint32_t)i;
    return is_served(c);
}

bool matrix_extra(const parity_trial *trial, int i, parity_trial *extra)
{
    *extra = *trial;
    quant_case *c = &extra->c;
    const bool is_tensor = c->granularity == QDNN_GRANULARITY_TENSOR, is_nested = c->spec.stored.nested;
    const qdnnDivision_t division = c->spec.quantize.division;
    if (has_callers(c->row))
        return is_tensor && set_callers(c, i);
    if (!makes_scales(c->row))
        return false;
    c->callers = false;
    if (is_nested && i < NESTED) {
        set_nested(c, i);
        c->spec.quantize.division = division;
    } else if (i == MATRIX_EXTRAS - 1 && (is_tensor || c->spec.stored.global_scale))
        set_large(c);
    else if (is_tensor && i < MATRIX_EXTRAS - 1)
        set_list(c, i);
    else
        return false;
    return is_served(c);
}
