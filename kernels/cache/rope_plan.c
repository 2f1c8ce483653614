/* Rope: what is possible, how it is launched, and the sizes of its operands. */
#include "kernels/cache/cache.h"
#include "kernels/rows/rows.h"

#include <stdio.h>

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

void rope_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                kernel_steps *steps)
{
    const rope_shape s = rope_shape_of(row, spec);
    step_follows_rows(steps_add(steps, row, spec, problem), 0, s.parts + s.value_parts, 1);
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

number_set rope_numbers(const kernel_spec *spec)
{
    number_set numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | kv_numbers(spec);
    if (spec->rope.queries)
        numbers |= A_NUMBER(Y_STRIDE);
    if (spec->rope.size)
        numbers |= A_NUMBER(POSITIONS);
    return spec->rope.by_section ? numbers | A_NUMBER(B_STRIDE) : numbers;
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

static kernel_operand strided(const kernel_problem *p, qdnnDataType_t type, uint64_t stride, uint64_t token)
{
    const unsigned bytes = element_bytes(type);
    return (kernel_operand){.align = token ? bytes : 0,
                            .bytes = p->m ? ((p->m - 1) * stride + token) * bytes : 0};
}

kernel_operand rope_operand(const kernel_row *row, const kernel_spec *spec, const kernel_problem *p,
                            int operand)
{
    const bool rotates = spec->rope.size != 0;
    kernel_operand o = {0};
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
        o = strided(p, spec->data, p->x_stride, token_elements(spec));
        o.reads = true;
        return o;
    case QDNN_OPERAND_Y:
        o = strided(p, spec->epilogue.output, p->y_stride, spec->rope.queries * spec->rope.head);
        o.writes = o.align != 0;
        return o;
    case QDNN_OPERAND_COS:
    case QDNN_OPERAND_SIN:
        return rotates ? (kernel_operand){.reads = true,
                                          .align = 4,
                                          .bytes = p->positions * (spec->rope.size / 2) * 4}
                       : o;
    case QDNN_OPERAND_POSITION:
        if (!rotates)
            return o;
        o = (kernel_operand){.reads = true, .align = 4, .bytes = p->m * positions_of(spec) * 4};
        if (spec->rope.by_section && p->m)
            o.bytes = ((positions_of(spec) - 1) * p->b_stride + p->m) * 4;
        return o;
    default:
        return kv_operand(row, spec, p, operand);
    }
}

static const char *type_name(int type)
{
    return type == QDNN_DATA_F16 ? "f16" : type == QDNN_DATA_BF16 ? "bf16" : "f32";
}

kernel_operand_text rope_text(const kernel_row *row, const kernel_spec *spec, int operand)
{
    kernel_operand_text text = {.element = "f32"};
    const bool is_x = operand == QDNN_OPERAND_X;
    switch ((qdnnOperand_t)operand) {
    case QDNN_OPERAND_X:
    case QDNN_OPERAND_Y:
        snprintf(text.element, sizeof text.element, "%s",
                 type_name(is_x ? spec->data : spec->epilogue.output));
        snprintf(text.count, sizeof text.count, "((m - 1) * %s_stride + %llu)", is_x ? "x" : "y",
                 (unsigned long long)(is_x ? token_elements(spec) : spec->rope.queries * spec->rope.head));
        return text;
    case QDNN_OPERAND_COS:
    case QDNN_OPERAND_SIN:
        snprintf(text.count, sizeof text.count, "positions * %llu",
                 (unsigned long long)(spec->rope.size / 2));
        return text;
    case QDNN_OPERAND_POSITION:
        snprintf(text.element, sizeof text.element, "i32");
        if (spec->rope.by_section)
            snprintf(text.count, sizeof text.count, "(%llu * b_stride + m)",
                     (unsigned long long)(positions_of(spec) - 1));
        else
            snprintf(text.count, sizeof text.count, "m * %llu", (unsigned long long)positions_of(spec));
        return text;
    default:
        return kv_text(row, spec, operand);
    }
}
