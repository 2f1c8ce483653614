/* Rope: what is possible, how it is launched, and the sizes of its operands. */
#include "kernels/cache/cache.h"
#include "kernels/rows/rows.h"

bool rope_is_empty(const kernel_problem *problem)
{
    return problem->m == 0;
}

/* ---- Shape ---- */

static row_shape head_shape(const kernel_spec *spec, uint64_t columns)
{
    kernel_spec heads = *spec;
    heads.rows = (kernel_row_extent){.columns = columns ? columns : 1, .heads = 1};
    return row_shape_of(&heads, true);
}

static unsigned power_of_two(uint64_t least)
{
    return 1u << ceil_log2(least);
}

/* A block takes as many heads of a token as it has room for: so the tables of a position are read once or twice. */
rope_shape rope_shape_of(const kernel_row *row, const kernel_spec *spec)
{
    enum {
        LEAST = 64,
        MOST = 512 /* of one chunk per thread, which takes up to 32 bytes of shared memory */
    };
    const kernel_kv *kv = &spec->kv;
    (void)row;
    rope_shape s = {.rotating = spec->rope.queries + (kv->key_size ? kv->heads : 0)};
    const row_shape head = head_shape(spec, s.rotating ? spec->rope.head : 0);
    s.lanes = head.lanes;
    s.value_lanes = head_shape(spec, kv->value_size).lanes;
    const uint64_t threads = s.rotating ? s.rotating * s.lanes : kv->heads * s.value_lanes,
                   most = MOST / power_of_two(head.chunks);
    s.block = power_of_two(threads < LEAST ? LEAST : threads > most ? most : threads);
    s.parts = ceil_div(s.rotating * s.lanes, s.block);
    s.value_parts = kv->value_size ? ceil_div(kv->heads * s.value_lanes, s.block) : 0;
    return s;
}

kernel_geometry rope_geometry(const kernel_row *row, const kernel_spec *spec)
{
    const rope_shape s = rope_shape_of(row, spec);
    return (kernel_geometry){
        .block = s.block,
        .grid = {rule_least(rule_times(rule_number(NUMBER_M), rule_constant(s.parts + s.value_parts)),
                            rule_constant(INT32_MAX))}};
}

/* ---- What is possible ---- */

static void fix_common(kernel_spec *spec)
{
    kernel_rope *rope = &spec->rope;
    kv_fix(spec);
    if (rope->queries == 0 && spec->kv.key_size == 0) { /* values alone */
        rope->size = 0;
        rope->head = 1;
    }
    if (rope->size == 0)
        *rope = (kernel_rope){.head = rope->head, .queries = rope->queries};
    if (rope->sections == KERNEL_ROPE_ONE) {
        for (int i = 0; i < KERNEL_ROPE_SECTIONS; i++)
            rope->section[i] = 0;
        rope->by_section = 0;
    }
    spec->rows = (kernel_row_extent){.columns = rope->head, .heads = 1};
}

void fix_rope(kernel_spec *spec)
{
    if (!spec->kv.type)
        spec->kv = (kernel_kv){0};
    spec->stored.groups = QDNN_GROUPS_DEFAULT;
    fix_common(spec);
}

void fix_rope_quantized(kernel_spec *spec)
{
    spec->kv.type = 0;
    fix_common(spec);
}

static bool sections_fit(const kernel_rope *rope)
{
    uint64_t sum = 0, n = 0;
    for (int i = 0; i < KERNEL_ROPE_SECTIONS; i++) {
        n += rope->section[i] != 0;
        sum += rope->section[i];
        if (rope->section[i] && n != (uint64_t)i + 1) /* none is left out */
            return false;
    }
    return n >= 2 && sum == rope->size / 2;
}

bool rope_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const kernel_rope *rope = &spec->rope;
    const uint64_t columns = rope->head;
    if (columns < 1 || columns > 1024)
        return kernel_refuse(error, error_size, "a head has %llu elements; it must have 1 to 1024",
                             (unsigned long long)columns);
    if (rope->first % 2 != 0 || rope->size % 2 != 0 || rope->first > columns ||
        rope->size > columns - rope->first)
        return kernel_refuse(
            error, error_size,
            "elements %llu to %llu are rotated; both must be even, and within the head of %llu",
            (unsigned long long)rope->first, (unsigned long long)(rope->first + rope->size),
            (unsigned long long)columns);
    if (rope->sections != KERNEL_ROPE_ONE && !sections_fit(rope))
        return kernel_refuse(error, error_size,
                             "there must be 2 to 4 sections, the first ones, with %llu pairs together",
                             (unsigned long long)(rope->size / 2));
    if (spec->kv.key_size && spec->kv.key_size != columns)
        return kernel_refuse(error, error_size, "key_size is %llu; it must be head_size, %llu",
                             (unsigned long long)spec->kv.key_size, (unsigned long long)columns);
    if (rope->queries == 0 && spec->kv.heads == 0)
        return kernel_refuse(error, error_size, "there are neither queries nor keys nor values");
    if (spec->kv.heads == 0 && row->format != &format_none)
        return kernel_refuse(error, error_size, "%s writes a quantized cache; kv_heads must not be 0",
                             row->name);
    return kv_is_allowed(row, spec, error, error_size);
}

/* Positions of a token. */
static uint64_t positions_of(const kernel_spec *spec)
{
    uint64_t n = 0;
    for (int i = 0; i < KERNEL_ROPE_SECTIONS; i++)
        n += spec->rope.section[i] != 0;
    return n ? n : 1;
}

static uint64_t token_elements(const kernel_spec *spec)
{
    return spec->rope.queries * spec->rope.head + spec->kv.heads * (spec->kv.key_size + spec->kv.value_size);
}

void rope_complete(const kernel_spec *spec, kernel_problem *p)
{
    const uint64_t token = token_elements(spec), y = spec->rope.queries * spec->rope.head;
    p->rows = p->m;
    p->columns = token;
    p->x_stride = p->x_stride ? p->x_stride : token;
    p->y_stride = p->y_stride ? p->y_stride : y;
    p->b_stride = p->b_stride ? p->b_stride : p->m;
    kv_complete(spec, p);
}

/* ---- Operands ---- */

static kernel_rule strided(kernel_number stride, uint64_t token)
{
    return rule_span(rule_number(NUMBER_M), rule_number(stride), rule_constant(token));
}

/* The tables of angles, and the positions of each token in them. */
static void describe_positions(kernel_description *d, const kernel_spec *spec)
{
    const element_type i32 = element_type_of(QDNN_DATA_I32), f32 = element_type_of(QDNN_DATA_F32);
    const kernel_rule m = rule_number(NUMBER_M), each = rule_constant(positions_of(spec)),
                      table = rule_times(rule_number(NUMBER_POSITIONS), rule_constant(spec->rope.size / 2));
    d->numbers |= A_NUMBER(POSITIONS) | (spec->rope.by_section ? A_NUMBER(B_STRIDE) : 0);
    describe_read(d, QDNN_OPERAND_POSITION, i32,
                  spec->rope.by_section ? rule_span(each, rule_number(NUMBER_B_STRIDE), m)
                                        : rule_times(m, each));
    describe_read(d, QDNN_OPERAND_COS, f32, table);
    describe_read(d, QDNN_OPERAND_SIN, f32, table);
}

/* Where in the cache a token goes. */
static void describe_slots(kernel_description *d, const kernel_spec *spec)
{
    const element_type i32 = element_type_of(QDNN_DATA_I32);
    const kernel_rule m = rule_number(NUMBER_M);
    describe_kv_pages(d, spec);
    if (spec->kv.heads && spec->kv.slots != KERNEL_KV_LISTED) {
        describe_read(d, QDNN_OPERAND_SEQUENCE, i32, m);
        describe_read(d, QDNN_OPERAND_KEY_INDEX, i32, m);
    }
}

void describe_rope(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const uint64_t queries = spec->rope.queries * spec->rope.head;
    d->numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | (queries ? A_NUMBER(Y_STRIDE) : 0);
    describe_read(d, QDNN_OPERAND_X, element_type_of(spec->data),
                  strided(NUMBER_X_STRIDE, token_elements(spec)));
    if (spec->kv.heads && spec->kv.slots == KERNEL_KV_LISTED)
        describe_read(d, QDNN_OPERAND_ROW_INDEX, element_type_of(QDNN_DATA_I32), rule_number(NUMBER_M));
    if (spec->rope.size)
        describe_positions(d, spec);
    describe_slots(d, spec);
    if (queries)
        describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->epilogue.output),
                       strided(NUMBER_Y_STRIDE, queries));
    describe_kv(d, row, spec, true);
}
