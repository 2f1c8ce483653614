/* Attention: specifications, the sizes of operands, and launches. */
#include "kernels/attention/tensor.h"

enum { KEY_LONGEST = 576, VALUE_LONGEST = 512, VALUE_SHORT = 256, KEY_SHORT = 256, MULTIPROCESSORS = 108 };

static unsigned power_of_two(uint64_t n)
{
    return 1u << ceil_log2(n ? n : 1);
}

/* ---- Shape ---- */

static uint64_t queries_of_head(const kernel_spec *spec)
{
    return spec->kv.heads ? spec->rope.queries / spec->kv.heads : 0;
}

/* Rows that a thread block may have: their states are in shared memory. */
static unsigned rows_most(const kernel_spec *spec)
{
    return spec->kv.value_size <= VALUE_SHORT ? ATTENTION_ROWS : ATTENTION_ROWS / 2;
}

static attention_shape exact_shape(const kernel_spec *spec)
{
    const unsigned most = rows_most(spec);
    const uint64_t queries = queries_of_head(spec) ? queries_of_head(spec) : 1,
                   blocks = ceil_div(queries, most);
    attention_shape s = {.head_blocks = (unsigned)blocks, .heads = (unsigned)ceil_div(queries, blocks)};
    s.tokens = spec->product.tile_rows < most / s.heads ? (unsigned)spec->product.tile_rows : most / s.heads;
    s.rows = power_of_two((uint64_t)s.heads * s.tokens);
    const bool is_short = spec->kv.value_size <= VALUE_SHORT / 2 && spec->kv.key_size <= KEY_SHORT;
    s.warps = is_short && spec->select.phase == KERNEL_PHASE_WHOLE ? 8 : 4;
    s.block = s.warps * WARP;
    return s;
}

enum { ROW_TILES = 4 };

/* A block has up to 4 warps: 64 rows, fewer where several warps share the columns of the values. */
static unsigned row_tiles_most(const kernel_spec *spec, unsigned column_parts)
{
    return column_parts == 1 && spec->kv.key_size <= WARP_COLUMNS ? ROW_TILES
           : column_parts <= 2 && spec->kv.key_size <= KEY_SHORT  ? ROW_TILES / 2
                                                                  : 1;
}

static unsigned tensor_bytes(const kernel_spec *spec, const attention_shape *s)
{
    return s->row_tiles * WARP_ROWS * matrix_pitch(spec->kv.key_size) +
           s->slots * attend_slot_bytes(spec, s->chunk) + 2 * attend_places_bytes(spec);
}

/* Chunks as large, and as many of them, as the shared memory of every SM has room for. */
static void choose_chunks(const kernel_spec *spec, attention_shape *s)
{
    enum { SHARED_MOST = 64 * 1024 - 1024 };
    s->chunk = s->warps == 1 ? 16 : 32;
    s->slots = spec->kv.type == (int)spec->data ? 3 : 2; /* cp.async may be two chunks ahead */
    if (tensor_bytes(spec, s) > SHARED_MOST)
        s->chunk = 16;
    if (tensor_bytes(spec, s) > SHARED_MOST)
        s->slots = 2;
}

static attention_shape tensor_shape(const kernel_spec *spec)
{
    attention_shape s = {.column_parts = power_of_two(ceil_div(spec->kv.value_size, WARP_COLUMNS))};
    const unsigned most = WARP_ROWS * row_tiles_most(spec, s.column_parts);
    const uint64_t queries = queries_of_head(spec) ? queries_of_head(spec) : 1;
    s.head_blocks = (unsigned)ceil_div(queries, most);
    s.heads = (unsigned)ceil_div(queries, s.head_blocks);
    s.tokens = spec->product.tile_rows < most / s.heads ? (unsigned)spec->product.tile_rows : most / s.heads;
    s.rows = s.heads * s.tokens;
    s.row_tiles = power_of_two(ceil_div(s.rows, WARP_ROWS));
    s.warps = s.row_tiles * s.column_parts;
    s.block = s.warps * WARP;
    choose_chunks(spec, &s);
    return s;
}

attention_shape attention_shape_of(const kernel_spec *spec)
{
    return spec->attention.tensor ? tensor_shape(spec) : exact_shape(spec);
}

unsigned state_keys(const kernel_spec *spec)
{
    return spec->attention.tensor ? TENSOR_TILES * TILE_KEYS : TILE_KEYS;
}

/* ---- Settings ---- */

/* The cache as kv_plan.c knows it: without values, if they are part of the keys. */
static kernel_spec cache_of(const kernel_spec *spec)
{
    kernel_spec cache = *spec;
    if (spec->attention.values_in_keys)
        cache.kv.value_size = 0;
    return cache;
}

static void fix_common(kernel_spec *spec)
{
    kernel_attention *a = &spec->attention;
    kv_fix(spec);
    if (spec->kv.slots == KERNEL_KV_LISTED)
        spec->kv.slots = KERNEL_KV_PAGED;
    if (a->adds != KERNEL_ADDS_MASK && a->adds != KERNEL_ADDS_SLOPED_MASK) {
        a->mask_heads = 0;
        spec->select.mask = 0;
    } else if (!spec->select.mask) {
        spec->select.mask = QDNN_DATA_F32;
    }
    if (spec->select.phase == KERNEL_PHASE_SUMS)
        spec->select.phase = KERNEL_PHASE_WHOLE;
    spec->product.tile_rows = attention_shape_of(spec).tokens;
    if (spec->select.phase == KERNEL_PHASE_LAST && spec->product.tile_rows > 1)
        spec->select.phase = KERNEL_PHASE_PARTS;
}

void fix_attention(kernel_spec *spec)
{
    if (!spec->kv.type)
        spec->kv.type = QDNN_DATA_F32;
    spec->stored.groups = QDNN_GROUPS_DEFAULT;
    fix_common(spec);
}

void fix_attention_quantized(kernel_spec *spec)
{
    spec->kv.type = 0;
    fix_common(spec);
}

bool attention_is_empty(const kernel_problem *problem)
{
    return problem->m == 0;
}

static bool sizes_fit(const kernel_spec *spec, char *error, size_t error_size)
{
    const kernel_kv *kv = &spec->kv;
    if (kv->heads == 0 || kv->key_size == 0 || kv->value_size == 0)
        return kernel_refuse(error, error_size,
                             "kv_heads, key_size and value_size must not be 0 in attention");
    if (kv->key_size > KEY_LONGEST || kv->value_size > VALUE_LONGEST)
        return kernel_refuse(
            error, error_size,
            "keys have %llu elements and values %llu; heads of attention have up to %d and %d",
            (unsigned long long)kv->key_size, (unsigned long long)kv->value_size, KEY_LONGEST, VALUE_LONGEST);
    if (spec->rope.queries == 0 || spec->rope.queries % kv->heads != 0)
        return kernel_refuse(error, error_size,
                             "there are %llu heads of queries and %llu of keys; the first must be a multiple",
                             (unsigned long long)spec->rope.queries, (unsigned long long)kv->heads);
    if (spec->attention.values_in_keys && kv->value_size > kv->key_size)
        return kernel_refuse(error, error_size, "values are the first %llu elements of keys, which have %llu",
                             (unsigned long long)kv->value_size, (unsigned long long)kv->key_size);
    if (kv->heads * attention_shape_of(spec).head_blocks > UINT16_MAX)
        return kernel_refuse(error, error_size, "there are %llu heads of keys; attention takes up to %u",
                             (unsigned long long)kv->heads,
                             UINT16_MAX / attention_shape_of(spec).head_blocks);
    return true;
}

bool attention_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const kernel_spec cache = cache_of(spec);
    if (spec->data == QDNN_DATA_F64)
        return kernel_refuse(error, error_size, "data is f64; attention takes f32, f16 and bf16");
    if (spec->attention.tensor && spec->data == QDNN_DATA_F32)
        return kernel_refuse(error, error_size,
                             "data is f32; mode tensor takes f16 and bf16; fix: mode exact");
    return sizes_fit(spec, error, error_size) && kv_is_allowed(row, &cache, error, error_size);
}

void attention_complete(const kernel_spec *spec, kernel_problem *p)
{
    enum { USUAL = 16 };
    const uint64_t slots = p->cache.page_slots ? p->cache.page_slots : USUAL;
    p->x_stride = p->x_stride ? p->x_stride : spec->rope.queries * spec->kv.key_size;
    p->y_stride = p->y_stride ? p->y_stride : spec->rope.queries * spec->kv.value_size;
    kv_complete(spec, p);
    p->rows = p->m;
    p->columns = spec->rope.queries * spec->kv.key_size;
    p->window = p->window ? p->window : p->table_pages * slots;
    p->mask_keys = p->mask_keys ? p->mask_keys : p->table_pages * slots;
    p->mask_stride = p->mask_stride ? p->mask_stride : p->mask_keys;
    p->mask_head_stride = p->mask_head_stride ? p->mask_head_stride : p->mask_stride * p->m;
}

/* ---- Operands ---- */

static kernel_rule rows_of(kernel_number stride, uint64_t elements)
{
    return rule_span(rule_number(NUMBER_M), rule_number(stride), rule_constant(elements));
}

/* What is added to the scores. */
static void describe_added(kernel_description *d, const kernel_spec *spec)
{
    const kernel_adds adds = spec->attention.adds;
    const bool has_heads = spec->attention.mask_heads;
    const kernel_rule queries = rule_constant(spec->rope.queries),
                      one = rule_span(rule_number(NUMBER_M), rule_number(NUMBER_MASK_STRIDE),
                                      rule_number(NUMBER_MASK_KEYS));
    if (spec->select.mask) {
        d->numbers |= A_NUMBER(MASK_STRIDE) | (has_heads ? A_NUMBER(MASK_HEAD_STRIDE) : 0);
        describe_read(d, QDNN_OPERAND_MASK, element_type_of((qdnnDataType_t)spec->select.mask),
                      has_heads ? rule_span(queries, rule_number(NUMBER_MASK_HEAD_STRIDE), one) : one);
    }
    if (adds == KERNEL_ADDS_SLOPED_MASK || adds == KERNEL_ADDS_ALIBI)
        describe_read(d, QDNN_OPERAND_SLOPE, element_type_of(QDNN_DATA_F32), queries);
}

/* Which keys a token sees. */
static void describe_seen(kernel_description *d, const kernel_spec *spec)
{
    const kernel_sees sees = spec->attention.sees;
    const element_type i32 = element_type_of(QDNN_DATA_I32);
    const kernel_rule m = rule_number(NUMBER_M);
    if (sees == KERNEL_SEES_RANGE)
        describe_read(d, QDNN_OPERAND_VISIBLE, i32, rule_times(m, rule_constant(2)));
    else if (sees == KERNEL_SEES_KEY_INDEX)
        describe_read(d, QDNN_OPERAND_KEY_INDEX, i32, m);
    else if (sees == KERNEL_SEES_LENGTH) /* the number of sequences is not known */
        describe_read(d, QDNN_OPERAND_SEQUENCE_LENGTH, i32, rule_constant(1));
}

static number_set numbers_of(const kernel_spec *spec, bool scores, bool finishes)
{
    number_set numbers = A_NUMBER(M) | A_NUMBER(PAGE_SLOTS);
    if (spec->kv.slots == KERNEL_KV_PAGED)
        numbers |= A_NUMBER(TABLE_PAGES);
    if (scores)
        numbers |= A_NUMBER(X_STRIDE) | A_NUMBER(ALPHA);
    if (scores && spec->attention.cap)
        numbers |= A_NUMBER(LIMIT) | A_NUMBER(FACTOR);
    if (finishes)
        numbers |= A_NUMBER(Y_STRIDE);
    if (spec->select.phase != KERNEL_PHASE_WHOLE)
        numbers |= A_NUMBER(PARTS);
    if (spec->attention.window)
        numbers |= A_NUMBER(WINDOW);
    return spec->select.mask ? numbers | A_NUMBER(MASK_KEYS) : numbers;
}

/* Of two launches, the first computes scores and states, the second y. */
void describe_attention(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_spec cache = cache_of(spec);
    const uint64_t queries = spec->rope.queries;
    const bool scores = spec->select.phase != KERNEL_PHASE_JOIN,
               finishes = spec->select.phase != KERNEL_PHASE_PARTS;
    d->numbers = numbers_of(spec, scores, finishes);
    if (scores) {
        describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data),
                      rows_of(NUMBER_X_STRIDE, queries * spec->kv.key_size));
        describe_kv(d, row, &cache, false);
        describe_kv_pages(d, &cache);
    }
    if (!spec->attention.one_sequence)
        describe_read(d, QDNN_OPERAND_SEQUENCE, element_type_of(QDNN_DATA_I32), rule_number(NUMBER_M));
    if (scores)
        describe_added(d, spec);
    if (finishes && spec->select.sink)
        describe_read(d, QDNN_OPERAND_SINK, element_type_of(QDNN_DATA_F32), rule_constant(queries));
    describe_seen(d, spec);
    if (finishes)
        describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output),
                       rows_of(NUMBER_Y_STRIDE, queries * spec->kv.value_size));
    if (spec->select.phase != KERNEL_PHASE_WHOLE)
        describe_workspace(d, "partials", WORKSPACE_PARTIALS, (element_type){"f32", 8, 4}, scores);
    if (spec->select.phase == KERNEL_PHASE_LAST)
        describe_write(d, QDNN_OPERAND_COUNTERS, element_type_of(QDNN_DATA_U32),
                       rule_times(rule_number(NUMBER_M), rule_constant(queries)))
            ->reads = true;
}

/* ---- Launches ---- */

kernel_geometry attention_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    const attention_shape s = attention_shape_of(spec);
    if (spec->select.phase == KERNEL_PHASE_JOIN)
        return (kernel_geometry){.block = JOIN_THREADS,
                                 .grid = {rule_number(NUMBER_M), rule_constant(spec->rope.queries)}};
    kernel_geometry g = {
        .block = s.block,
        .grid = {rule_parts(NUMBER_M, s.tokens), rule_constant(spec->kv.heads * s.head_blocks)}};
    if (spec->select.phase != KERNEL_PHASE_WHOLE)
        g.grid[2] = rule_number(NUMBER_PARTS);
    if (spec->attention.tensor)
        g.shared_dynamic = tensor_bytes(spec, &s);
    return g;
}

/* The keys that a sequence has room for. */
static uint64_t capacity(const kernel_spec *spec, const kernel_problem *p)
{
    const uint64_t pages = spec->kv.slots == KERNEL_KV_PAGED ? p->table_pages : 1;
    const uint64_t most = pages * p->cache.page_slots;
    return most < INT32_MAX ? most : INT32_MAX;
}

uint64_t state_workspace(const kernel_spec *spec, const kernel_problem *p)
{
    return p->m * spec->rope.queries * ceil_div(capacity(spec, p), state_keys(spec)) *
           (spec->kv.value_size + 2) * 4;
}

enum { ROUNDS_LEAST = 2, WORKSPACE_MOST = 1 << 28 };

static uint64_t exact_parts(const kernel_spec *spec, uint64_t blocks, uint64_t machine, uint64_t keys)
{
    enum { PARTS_MOST = 64 };
    const uint64_t rounds = ceil_div(keys, (uint64_t)attention_shape_of(spec).warps * TILE_KEYS);
    if (2 * blocks > machine || rounds < ROUNDS_LEAST)
        return 1;
    const uint64_t wanted = ceil_div(4 * machine, blocks), most = rounds < PARTS_MOST ? rounds : PARTS_MOST;
    return wanted < most ? wanted : most;
}

/* The most parts for which the machine needs the least time: waves of blocks times strips of each. */
static uint64_t tensor_parts(const kernel_spec *spec, uint64_t blocks, uint64_t machine, uint64_t keys)
{
    enum { PARTS_MOST = 128, WARPS_OF_SM = 12 };
    const uint64_t strips = ceil_div(keys, state_keys(spec)),
                   most = strips < PARTS_MOST ? strips : PARTS_MOST,
                   at_once = machine * (WARPS_OF_SM / attention_shape_of(spec).warps);
    uint64_t best = 1, least = UINT64_MAX;
    for (uint64_t parts = 1; parts <= most; parts++) {
        const uint64_t time = ceil_div(blocks * parts, at_once) * (2 * ceil_div(strips, parts) + 1);
        if (time < least)
            best = parts;
        least = time < least ? time : least;
    }
    return best;
}

/* Into how many parts the keys of a row are divided: 1, if there are blocks enough without, or few keys. */
static uint64_t parts_of(const kernel_spec *spec, const kernel_problem *p)
{
    kernel_spec divided = *spec;
    divided.select.phase = KERNEL_PHASE_PARTS;
    const attention_shape s = attention_shape_of(&divided);
    const uint64_t machine = p->multiprocessors ? (uint64_t)p->multiprocessors : MULTIPROCESSORS,
                   blocks = ceil_div(p->m, s.tokens) * spec->kv.heads * s.head_blocks,
                   keys = capacity(spec, p);
    if (p->parts || state_workspace(spec, p) > WORKSPACE_MOST)
        return p->parts ? p->parts : 1;
    return (spec->attention.tensor ? tensor_parts : exact_parts)(&divided, blocks, machine, keys);
}

/* One block for all rows of several tokens would take longer than a launch whose blocks have one row each. */
static bool joins_at_once(const kernel_spec *spec, const kernel_problem *p)
{
    return p->counted && spec->product.tile_rows == 1;
}

/* Counters are an operand wherever the caller has said that there are some, whether they are needed or not. */
void attention_bound(const kernel_spec *spec, const kernel_problem *problem,
                     kernel_operand operands[QDNN_OPERAND_COUNT])
{
    if (!problem->counted)
        return;
    const bool needed = problem->m > 0 && joins_at_once(spec, problem) && parts_of(spec, problem) > 1;
    operands[QDNN_OPERAND_COUNTERS] = (kernel_operand){
        .reads = true, .writes = true, .align = 4, .bytes = needed ? 4 * problem->m * spec->rope.queries : 0};
}

void attention_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps)
{
    kernel_problem p = *problem;
    kernel_spec part = *spec;
    p.parts = parts_of(spec, problem);
    if (p.parts == 1) {
        steps_add(steps, row, spec, &p);
        return;
    }
    const uint64_t states = steps_take(steps, state_workspace(spec, &p));
    part.select.phase = joins_at_once(spec, &p) ? KERNEL_PHASE_LAST : KERNEL_PHASE_PARTS;
    step_with_partials(steps_add(steps, row, &part, &p), states);
    if (part.select.phase == KERNEL_PHASE_LAST)
        return;
    part.select.phase = KERNEL_PHASE_JOIN;
    step_with_partials(steps_add(steps, row, &part, &p), states);
}

void emit_attention(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    if (spec->select.phase == KERNEL_PHASE_JOIN)
        emit_attention_join(b, row, spec);
    else if (spec->attention.tensor)
        emit_attention_tensor(b, row, spec);
    else
        emit_attention_exact(b, row, spec);
}
