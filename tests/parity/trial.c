/* The trials of the parity suite: which there are, and how one is run. */
#include "parity/trial.h"

#include <stdio.h>
#include <string.h>

#include "formats/sample.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Repacking, products and operations without codes have trials of their own. */
static bool is_in_it(const kernel_row *row)
{
    return row->operation_name && kernel_format(row) && sample_is_elementwise(row);
}

/* Found once: the tests of a program are listed by these whenever it starts. */
static const kernel_row **rows(int *count)
{
    static const kernel_row *found[1024];
    static int n;
    static bool ready;
    for (int i = 0; !ready && i < kernel_row_count; i++)
        if (is_in_it(&kernel_rows[i]) && n < LENGTH(found))
            found[n++] = &kernel_rows[i];
    ready = true;
    *count = n;
    return found;
}

const kernel_row *parity_row_at(int index)
{
    int count;
    const kernel_row **all = rows(&count);
    return index < count ? all[index] : NULL;
}

int parity_row_count(void)
{
    int count;
    rows(&count);
    return count;
}

void parity_row_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", parity_row_at(index)->name);
}

/* ---- Which trials there are ---- */

/* The axis of a channel in any rank. */
enum { FIRST, MIDDLE, LAST };

static const struct {
    qdnnGranularity_t granularity;
    int64_t extent; /* GROUP: the size; CHANNEL: which axis */
} granularities[] = {
    {QDNN_GRANULARITY_GROUP, 1},      {QDNN_GRANULARITY_GROUP, 3},       {QDNN_GRANULARITY_GROUP, 6},
    {QDNN_GRANULARITY_GROUP, 32},     {QDNN_GRANULARITY_GROUP, 64},      {QDNN_GRANULARITY_GROUP, 100},
    {QDNN_GRANULARITY_GROUP, 128},    {QDNN_GRANULARITY_GROUP, 1024},    {QDNN_GRANULARITY_GROUP, 5000},
    {QDNN_GRANULARITY_TENSOR, 0},     {QDNN_GRANULARITY_CHANNEL, FIRST}, {QDNN_GRANULARITY_CHANNEL, MIDDLE},
    {QDNN_GRANULARITY_CHANNEL, LAST},
};

typedef struct shape {
    int tiles; /* so many times the elements of a block are added to the last dimension */
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
} shape;

/* Around a tile, ragged, without elements, of many dimensions. As many of both, and a number without a common
 * factor with the other lists, so that in the turns each shape meets everything. */
enum { SHAPES = 11 };
static const shape flat_shapes[SHAPES] = {
    {0, 1, {0}},        {0, 1, {1}},    {1, 1, {-1}},      {1, 1, {0}},  {1, 1, {1}},
    {0, 3, {3, 5, 67}}, {0, 1, {9001}}, {0, 3, {2, 0, 3}}, {0, 1, {33}}, {0, 8, {3, 2, 2, 2, 2, 2, 2, 5}},
    {0, 2, {7, 127}},
};
static const shape channel_shapes[SHAPES] = {
    {0, 3, {0, 5, 3}},
    {0, 3, {1, 1, 1}},
    {1, 1, {-1}},
    {0, 3, {16, 16, 16}},
    {1, 1, {1}},
    {0, 3, {5, 7, 123}},
    {1, 2, {2, 1}},
    {0, 3, {4, 3, 0}},
    {0, 3, {129, 3, 7}},
    {0, 8, {3, 2, 2, 2, 2, 2, 2, 5}},
    {0, 4, {2, 33, 8, 16}},
};
/* Of formats in blocks, the last dimension counted in blocks. */
static const shape block_shapes[SHAPES] = {
    {0, 1, {0}},       {0, 1, {1}}, {1, 1, {-1}},      {1, 1, {0}}, {1, 1, {1}},
    {0, 3, {3, 5, 1}}, {2, 1, {3}}, {0, 3, {2, 0, 3}}, {0, 1, {7}}, {0, 8, {1, 2, 1, 2, 1, 1, 2, 1}},
    {0, 2, {5, 3}},
};
/* Long enough for scales in two passes. */
static const shape large_blocks = {37, 1, {5}}, large_searches = {7, 1, {5}};
static const shape large_flat = {0, 1, {150001}}, large_channels = {0, 3, {3, 101, 503}};

static const qdnnDataType_t float_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
static const qdnnDataType_t block_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
static const qdnnDataType_t zero_types[] = {KERNEL_ZERO_DEFAULT, QDNN_DATA_F32, QDNN_DATA_F16,
                                            QDNN_DATA_BF16};

/* Options that change from one to the next specification, each at a pace of its own. */
static kernel_spec spec_at(int granularity, int turn)
{
    int types = granularity + turn, round = turn * LENGTH(granularities) + granularity;
    kernel_spec spec = kernel_spec_default();
    spec.data = float_types[types / 3 % LENGTH(float_types)];
    spec.stored.scale = (qdnnScaleType_t)(types % 3);
    spec.stored.zero = zero_types[(granularity + turn / 3) % 4];
    spec.stored.nibble_order = round / 2 % 2 ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
    spec.quantize.rounding = (round / 3 + turn / 2) % 2 ? QDNN_ROUND_TIES_AWAY : QDNN_ROUND_TIES_TO_EVEN;
    spec.quantize.division = round / 5 % 2 ? QDNN_DIVIDE_RECIPROCAL : QDNN_DIVIDE_EXACT;
    spec.quantize.floor = round % 5 == 1 ? 0.5f : 1e-12f;
    return spec;
}

/* What a block covers; where that is the whole of any tensor, what it covers in the other kernels. */
static int64_t tile_of(const quant_case *c)
{
    enum { USUAL = 4096, MOST = 20000 };
    kernel_spec spec = c->spec;
    if (c->granularity == QDNN_GRANULARITY_GROUP)
        spec.stored.group_size = (uint64_t)c->extent;
    uint64_t elements = kernel_geometry_of(c->row, KERNEL_NORMAL(c->row, &spec)).elements_per_block;
    return elements > 0 && elements <= MOST ? (int64_t)elements : USUAL;
}

static void set_shape(quant_case *c, const shape *s)
{
    c->rank = s->rank;
    memcpy(c->dims, s->dims, sizeof c->dims);
    int64_t *last = &c->dims[c->rank - 1];
    *last = *last * (int64_t)kernel_columns_multiple(c->row) + s->tiles * tile_of(c);
    if (c->granularity == QDNN_GRANULARITY_CHANNEL)
        c->extent = c->extent == FIRST ? 0 : c->extent == MIDDLE ? c->rank / 2 : c->rank - 1;
}

static quant_case case_at(const kernel_row *row, int granularity, int turn)
{
    return (quant_case){.row = row,
                        .spec = spec_at(granularity, turn),
                        .granularity = granularities[granularity].granularity,
                        .extent = granularities[granularity].extent};
}

bool parity_makes_scales(const kernel_row *row)
{
    return kernel_operation_of(row) == KERNEL_SCALE || kernel_operation_of(row) == KERNEL_DYNAMIC;
}

/* Every kind of data; and, where scales are an input, a caller's strange ones. */
static int kind_count(const kernel_row *row)
{
    return parity_makes_scales(row) ? DATA_KINDS : DATA_KINDS + 1;
}

static bool is_blocks(const kernel_row *row)
{
    return kernel_format(row)->block != QDNN_BLOCK_NONE;
}

/* Blocks know no settings but the type of data, and take turns with that. */
static int spec_count(const kernel_row *row)
{
    return is_blocks(row) ? LENGTH(block_types) : LENGTH(granularities);
}

static quant_case block_case(const kernel_row *row, int type)
{
    quant_case c = {.row = row, .spec = kernel_spec_default()};
    c.spec.data = block_types[type % LENGTH(block_types)];
    c.granularity = QDNN_GRANULARITY_TENSOR;
    return c;
}

static const shape *shapes_of(const quant_case *c)
{
    if (is_blocks(c->row))
        return block_shapes;
    return c->granularity == QDNN_GRANULARITY_CHANNEL ? channel_shapes : flat_shapes;
}

int parity_trial_count(const kernel_row *row)
{
    return spec_count(row) * kind_count(row);
}

parity_trial parity_trial_at(const kernel_row *row, int turn, int index)
{
    int kind = index % kind_count(row), spec = index / kind_count(row);
    int round = turn * spec_count(row) + spec, step = round * (DATA_KINDS + 1) + kind;
    parity_trial t = {.c = is_blocks(row) ? block_case(row, spec) : case_at(row, spec, turn)};
    set_shape(&t.c, &shapes_of(&t.c)[step % SHAPES]);
    t.c.callers = kind == DATA_KINDS;
    t.c.kind = t.c.callers ? DATA_NORMAL : (data_kind)kind;
    t.c.seed = (uint32_t)step + 1;
    t.buffers = (round + kind) % 2 ? BUFFER_EXACT : BUFFER_BANDS;
    t.by_plan = (round / 2 + kind) % 2;
    t.shift[QDNN_OPERAND_X] = t.shift[QDNN_OPERAND_Y] = step % 3 == 1;
    t.shift[QDNN_OPERAND_CODES] = step % 5 == 2;
    t.shift[QDNN_OPERAND_SCALE] = step % 7 == 3;
    t.shift[QDNN_OPERAND_ZERO] = step % 7 == 5;
    return t;
}

/* Groups of 64 and all that are as large as the tensor has dimensions. */
static const int large_granularities[] = {4, 9, 10, 11, 12};

int parity_large_count(void)
{
    return LENGTH(large_granularities);
}

parity_trial parity_large_at(const kernel_row *row, int index)
{
    parity_trial t = {.c = is_blocks(row) ? block_case(row, index)
                                          : case_at(row, large_granularities[index], index),
                      .by_plan = index % 2};
    const shape *flat = sample_is_search(row) ? &large_searches
                        : is_blocks(row)      ? &large_blocks
                                              : &large_flat;
    set_shape(&t.c, t.c.granularity == QDNN_GRANULARITY_CHANNEL ? &large_channels : flat);
    t.c.kind = DATA_SPECIAL;
    t.c.seed = (uint32_t)index + 1;
    return t;
}

/* ---- Running one ---- */

static bool make_buffers(qdnnHandle_t handle, const parity_trial *t, const quant_operands *o,
                         device_buffer buffers[QDNN_OPERAND_COUNT])
{
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if ((o->reads | o->writes) >> i & 1)
            ok = device_buffer_make(handle, t->buffers, o->bytes[i], t->shift[i] * o->element[i],
                                    &buffers[i]) &&
                 (!(o->reads >> i & 1) || device_buffer_write(&buffers[i], o->host[i]));
    return ok;
}

static bool call(qdnnHandle_t handle, const parity_trial *t, const quant_descriptors *d,
                 const device_buffer buffers[QDNN_OPERAND_COUNT])
{
    void *pointers[QDNN_OPERAND_COUNT];
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        pointers[i] = device_buffer_at(&buffers[i]);
    return t->by_plan ? CHECK_QDNN(quant_call_plan(handle, &t->c, d, pointers))
                      : CHECK_QDNN(quant_call_once(handle, &t->c, d, pointers));
}

/* Outputs are host_ref's, and inputs what they were. */
static bool run(qdnnHandle_t handle, const parity_trial *t, const quant_descriptors *d,
                const quant_operands *o)
{
    device_buffer buffers[QDNN_OPERAND_COUNT] = {0};
    bool ok = make_buffers(handle, t, o, buffers) && call(handle, t, d, buffers);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (ok && (o->reads | o->writes) >> i & 1)
            device_buffer_check(&buffers[i], o->host[i], quant_operand_name(i));
        device_buffer_free(&buffers[i]);
    }
    return ok;
}

static void check_sizes(const quant_descriptors *d, const quant_operands *o)
{
    size_t codes, scale, zero;
    if (!CHECK_QDNN(qdnnGetQuantizedSizes(d->quant, d->tensor, &codes, &scale, &zero)))
        return;
    CHECK_EQ_U64(codes, o->bytes[QDNN_OPERAND_CODES]);
    CHECK_EQ_U64(scale, o->bytes[QDNN_OPERAND_SCALE]);
    CHECK_EQ_U64(zero, o->bytes[QDNN_OPERAND_ZERO]);
}

bool parity_run(qdnnHandle_t handle, const parity_trial *trial)
{
    char text[512];
    quant_descriptors d = {0};
    quant_operands o = {0};
    quant_case_text(&trial->c, text, sizeof text);
    test_push_note("%s, by %s, %s, shifts %zu %zu %zu", text, trial->by_plan ? "plan" : "one-shot call",
                   trial->buffers == BUFFER_BANDS ? "in bands" : "exact", trial->shift[QDNN_OPERAND_X],
                   trial->shift[QDNN_OPERAND_CODES], trial->shift[QDNN_OPERAND_SCALE]);
    bool ok = quant_descriptors_make(&trial->c, &d) && quant_operands_make(&trial->c, &o);
    if (ok) {
        check_sizes(&d, &o);
        ok = run(handle, trial, &d, &o);
    }
    quant_operands_free(&o);
    quant_descriptors_free(&d);
    test_pop_note();
    return ok;
}

void parity_run_turn(qdnnHandle_t handle, const kernel_row *row, int turn)
{
    bool alive = true;
    for (int i = 0; i < parity_trial_count(row) && alive; i++) {
        parity_trial trial = parity_trial_at(row, turn, i);
        alive = parity_run(handle, &trial);
    }
}
