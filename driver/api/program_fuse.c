/* Fusing: of neighbouring steps, one kernel does what both do, with the same bits (docs/numerics.md, "Operations on
 * rows"). Which pairs there are is a table; each of its rows says what becomes of the operands, and has a function that
 * derives the request of the fused plan, if there is a kernel for it. */
#include <stdio.h>
#include <string.h>

#include "driver/api/program.h"
#include "driver/api/rows.h"
#include "driver/base/alloc.h"
#include "driver/base/data_type.h"

enum { DROPPED = -1, MOVES = 3 };

/* An operand of one of the two, and the operand of the fused step that it becomes; 0, 0 (X stays X) fills a list. */
typedef struct move {
    int from, to;
} move;

typedef struct rule {
    int written,
        read; /* operands: what the first step writes is what the second reads. DROPPED: both read rows of X */
    bool keeps; /* the fused step writes the tensor between them too, so others may read it */
    bool (*join)(const request *a, const request *b, request *r);
    move first[MOVES], second[MOVES];
} rule;

static kernel_operation operation_of(const request *r)
{
    return kernel_operation_of(r->row);
}

/* Elements of a token of an operation on rows, and whether tokens follow each other without gaps. */
static uint64_t token_of(const request *r)
{
    return r->spec.rows.columns * r->spec.rows.heads;
}

static bool is_packed(const request *r, uint64_t stride)
{
    return r->problem.m <= 1 || stride == token_of(r);
}

/* ---- add, norm ---- */

static bool join_sum(const request *a, const request *b, bool swapped, request *r)
{
    if (operation_of(a) != KERNEL_POINTWISE || a->spec.pointwise.kind != KERNEL_POINTWISE_ADD ||
        a->spec.pointwise.b != KERNEL_B_SAME ||
        (operation_of(b) != KERNEL_NORM && operation_of(b) != KERNEL_NORM_QUANTIZED) || b->spec.norm.sum)
        return false;
    const qdnnDataType_t sum = a->spec.epilogue.output,
                         residual = swapped ? a->spec.data : a->spec.pointwise.b_type;
    const uint64_t residual_stride = swapped ? a->problem.x_stride : a->problem.b_stride;
    if (residual != sum || b->spec.data != sum || a->problem.m != b->problem.m ||
        token_of(a) != token_of(b) || !is_packed(a, residual_stride) || !is_packed(a, a->problem.y_stride) ||
        !is_packed(b, b->problem.x_stride))
        return false;
    *r = *b;
    r->spec.data = swapped ? a->spec.pointwise.b_type : a->spec.data;
    r->spec.norm.sum = (int)sum;
    r->problem.x_stride = swapped ? a->problem.b_stride : a->problem.x_stride;
    return true;
}

static bool join_add_norm(const request *a, const request *b, request *r)
{
    return join_sum(a, b, false, r);
}

/* The first summand as the residual: the sum is the same. */
static bool join_added_norm(const request *a, const request *b, request *r)
{
    return join_sum(a, b, true, r);
}

/* ---- norm or pointwise, quantization ---- */

static bool only_quantizes(const request *b)
{
    if (operation_of(b) == KERNEL_DYNAMIC)
        return !b->spec.row_index && !b->spec.strided;
    return operation_of(b) == KERNEL_POINTWISE_QUANTIZED &&
           b->spec.pointwise.kind == KERNEL_POINTWISE_FUNCTION &&
           b->spec.pointwise.function == QDNN_ACTIVATION_NONE && b->spec.epilogue.output == b->spec.data &&
           is_packed(b, b->problem.x_stride);
}

static bool join_quantize(const request *a, const request *b, request *r)
{
    const bool is_norm = operation_of(a) == KERNEL_NORM;
    if ((!is_norm && operation_of(a) != KERNEL_POINTWISE) || !only_quantizes(b) ||
        a->spec.epilogue.output != b->spec.data || !is_packed(a, a->problem.y_stride))
        return false;
    *r = *a;
    return rows_take_quantization(is_norm ? KERNEL_NORM_QUANTIZED : KERNEL_POINTWISE_QUANTIZED, b, r);
}

/* ---- rope ---- */

static bool is_rope(const request *r)
{
    return operation_of(r) == KERNEL_ROPE || operation_of(r) == KERNEL_ROPE_QUANTIZED;
}

/* What a token of x has, in this order. */
enum { QUERIES = 1, KEYS = 2, VALUES = 4 };
static int parts_of(const request *r)
{
    return (r->spec.rope.queries ? QUERIES : 0) | (r->spec.kv.key_size ? KEYS : 0) |
           (r->spec.kv.value_size ? VALUES : 0);
}

/* All heads are rotated, and then written as the keys of a cache. */
static bool join_rope_write(const request *a, const request *b, request *r)
{
    if (!is_rope(a) || !is_rope(b) || parts_of(a) != QUERIES || parts_of(b) != KEYS || b->spec.rope.size ||
        a->problem.m != b->problem.m || a->spec.rope.queries != b->spec.kv.heads ||
        a->spec.rope.head != b->spec.rope.head || a->spec.epilogue.output != a->spec.data ||
        a->spec.data != b->spec.data || !(a->problem.m <= 1 || a->problem.y_stride == b->problem.x_stride))
        return false;
    *r = *b;
    r->spec.rope = a->spec.rope;
    r->spec.rope.queries = 0;
    r->problem.x_stride = a->problem.x_stride;
    r->problem.b_stride = a->problem.b_stride;
    r->problem.positions = a->problem.positions;
    return true;
}

/* Whether two steps rotate alike. */
static bool rotates_alike(const request *a, const request *b)
{
    kernel_spec x = a->spec, y = a->spec;
    y.rope = b->spec.rope;
    y.rope.queries = x.rope.queries;
    return kernel_spec_equal(&x, &y) && a->problem.positions == b->problem.positions &&
           (!a->spec.rope.by_section || a->problem.b_stride == b->problem.b_stride);
}

/* Whether keys and values, written apart, may be written as one cache. */
static bool caches_alike(const request *a, const request *b)
{
    kernel_spec x = a->spec, y = a->spec;
    y.stored = b->spec.stored;
    y.quantize = b->spec.quantize;
    y.kv = b->spec.kv;
    y.kv.key_size = x.kv.key_size;
    y.kv.value_size = x.kv.value_size;
    return a->row == b->row && kernel_spec_equal(&x, &y) && a->problem.pages == b->problem.pages &&
           a->problem.table_pages == b->problem.table_pages &&
           a->problem.cache.page_slots == b->problem.cache.page_slots;
}

/* What one step does with a part of each row and the next with the part behind it. */
static bool join_rope_parts(const request *a, const request *b, request *r)
{
    if (!is_rope(a) || !is_rope(b))
        return false;
    const int first = parts_of(a), second = parts_of(b);
    const bool ordered = first < (second & -second), rounds = a->spec.epilogue.output != a->spec.data;
    if (!ordered || a->spec.data != b->spec.data || a->problem.m != b->problem.m ||
        a->problem.x_stride != b->problem.x_stride)
        return false;
    if (second & KEYS && (rounds || !rotates_alike(a, b))) /* keys are rounded to the type of y */
        return false;
    if (first & KEYS && !caches_alike(a, b))
        return false;
    *r = first & KEYS ? *a : *b;
    r->spec.rope = a->spec.rope;
    r->spec.epilogue.output = a->spec.epilogue.output;
    r->spec.kv.key_size = a->spec.kv.key_size ? a->spec.kv.key_size : b->spec.kv.key_size;
    r->spec.kv.value_size = b->spec.kv.value_size;
    r->problem.b_stride = a->problem.b_stride;
    r->problem.y_stride = a->problem.y_stride;
    r->problem.positions = a->problem.positions;
    r->problem.values = b->problem.values;
    return true;
}

/* ---- The table ---- */

#define X        QDNN_OPERAND_X
#define Y        QDNN_OPERAND_Y
#define B        QDNN_OPERAND_B
#define RESIDUAL QDNN_OPERAND_RESIDUAL
#define SUM      QDNN_OPERAND_SUM
/* clang-format off */
static const rule rules[] = {
    /* written, read, keeps, join,         first,                                second */
    {Y,       X, true,  join_add_norm,   {{B, RESIDUAL}, {Y, SUM}},         {{X, DROPPED}}},
    {Y,       X, true,  join_added_norm, {{X, RESIDUAL}, {B, X}, {Y, SUM}}, {{X, DROPPED}}},
    {Y,       X, false, join_quantize,   {{Y, DROPPED}},                    {{X, DROPPED}}},
    {Y,       X, false, join_rope_write, {{Y, DROPPED}},                    {{X, DROPPED}}},
    {DROPPED, X, false, join_rope_parts, {{0}},                             {{X, DROPPED}}},
};
/* clang-format on */
#undef X
#undef Y
#undef B
#undef RESIDUAL
#undef SUM

/* ---- Tensors ---- */

static const program_use *use_of(const program_step *step, int operand)
{
    for (int i = 0; i < step->n_uses; i++)
        if (step->uses[i].place == operand)
            return &step->uses[i];
    return NULL;
}

static int count_uses(const struct qdnnProgram *program, int tensor)
{
    int n = 0;
    for (int i = 0; i < program->n_steps; i++)
        for (int k = 0; k < program->steps[i].n_uses; k++)
            n += program->steps[i].uses[k].tensor == tensor;
    return n;
}

/* Whether what the first step writes is what the second reads, and, unless it is written anyway, nobody else sees it. */
static bool is_between(const struct qdnnProgram *program, const rule *rule, const program_step *a,
                       const program_step *b)
{
    const program_use *out = use_of(a, rule->written), *in = use_of(b, rule->read);
    return out && in && out->tensor == in->tensor && out->offset == in->offset && out->bytes == in->bytes &&
           (rule->keeps || (program->tensors[out->tensor].place == QDNN_PROGRAM_INTERMEDIATE &&
                            count_uses(program, out->tensor) == 2));
}

/* Whether the second step's part of each row of a tensor lies behind that of the first. */
static bool is_beside(const program_step *a, const program_step *b)
{
    const program_use *left = use_of(a, QDNN_OPERAND_X), *right = use_of(b, QDNN_OPERAND_X);
    const request *r = &a->plan->request;
    if (!left || !right || left->tensor != right->tensor || !is_rope(r))
        return false;
    const uint64_t elements = r->spec.rope.queries * r->spec.rope.head +
                              r->spec.kv.heads * (r->spec.kv.key_size + r->spec.kv.value_size);
    return right->offset == left->offset + elements * (uint64_t)data_type_bits(r->spec.data) / 8;
}

/* ---- The fused step ---- */

typedef struct use_list {
    int count;
    program_use at[QDNN_OPERAND_COUNT];
} use_list;

static int moved(const move moves[MOVES], int operand)
{
    for (int i = 0; i < MOVES; i++)
        if (moves[i].from == operand && moves[i].from != moves[i].to)
            return moves[i].to;
    return operand;
}

/* Lists the operands of one of the two as those of the fused plan; false if one is bound to something else already. */
static bool take_uses(const program_step *step, const move moves[MOVES], const struct qdnnPlan *plan,
                      use_list *list)
{
    for (int i = 0; i < step->n_uses; i++) {
        const int operand = moved(moves, step->uses[i].place);
        if (operand == DROPPED)
            continue;
        program_use use = step->uses[i];
        use.place = (uint8_t)operand;
        use.bytes = plan->bytes[operand];
        use.reads = plan->reads >> operand & 1;
        use.writes = plan->writes >> operand & 1;
        int k = 0;
        while (k < list->count && list->at[k].place != operand)
            k++;
        if (k < list->count && (list->at[k].tensor != use.tensor || list->at[k].offset != use.offset))
            return false;
        if (k == list->count)
            list->at[list->count++] = use;
    }
    return true;
}

/* Each operand of the plan is bound, and nothing is read where it is written: in two steps it may have been. */
static bool is_sound(const struct qdnnPlan *plan, const use_list *list)
{
    operand_set bound = 0;
    for (int i = 0; i < list->count; i++) {
        bound |= (operand_set)1 << list->at[i].place;
        for (int k = i + 1; k < list->count; k++)
            if (program_uses_collide(&list->at[i], &list->at[k]))
                return false;
    }
    return bound == plan->operands;
}

static char *join_names(const program_step *a, const program_step *b)
{
    const size_t room = strlen(a->name) + strlen(b->name) + sizeof " + ";
    char *name = alloc_new(room);
    if (name)
        snprintf(name, room, "%s%s%s", a->name, *a->name && *b->name ? " + " : "", b->name);
    return name;
}

/* Puts the fused step in the place of the two. The plan is the step's from here on. */
static qdnnStatus_t replace(qdnnProgram_t program, int number, qdnnPlan_t plan, const use_list *list)
{
    program_step *a = &program->steps[number], *b = a + 1;
    const size_t bytes = (size_t)list->count * sizeof *list->at;
    program_step fused = {.kind = PROGRAM_PLAN,
                          .name = join_names(a, b),
                          .parts = a->parts + b->parts,
                          .uses = alloc_new(bytes),
                          .n_uses = list->count,
                          .per_row = a->per_row,
                          .plan = plan};
    if (!fused.name || !fused.uses) {
        program_free_step(program->handle, &fused);
        return OUT_OF_MEMORY();
    }
    memcpy(fused.uses, list->at, bytes);
    program_align_tensors(program, &fused);
    program_free_step(program->handle, a);
    program_free_step(program->handle, b);
    *a = fused;
    memmove(b, b + 1, (size_t)(program->n_steps - number - 2) * sizeof *b);
    program->n_steps--;
    program->fused++;
    return QDNN_STATUS_SUCCESS;
}

static bool can_join(const struct qdnnProgram *program, const rule *rule, const program_step *a,
                     const program_step *b, request *r)
{
    char reason[512];
    return (rule->written == DROPPED ? is_beside(a, b) : is_between(program, rule, a, b)) &&
           rule->join(&a->plan->request, &b->plan->request, r) && rows_can_finish(r, reason, sizeof reason);
}

/* Fuses a step with the next one by a rule, if it can. */
static qdnnStatus_t apply(qdnnProgram_t program, int number, const rule *rule, bool *done)
{
    const program_step *a = &program->steps[number], *b = a + 1;
    use_list list = {0};
    qdnnPlan_t plan;
    request r;
    if (!can_join(program, rule, a, b, &r))
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(plan_create(program->handle, &r, &plan));
    if (!take_uses(a, rule->first, plan, &list) || !take_uses(b, rule->second, plan, &list) ||
        !is_sound(plan, &list)) {
        plan_release(plan);
        return QDNN_STATUS_SUCCESS;
    }
    *done = true;
    return replace(program, number, plan, &list);
}

static bool is_candidate(const program_step *a, const program_step *b)
{
    return a->kind == PROGRAM_PLAN && b->kind == PROGRAM_PLAN && a->plan->has_request &&
           b->plan->has_request && a->per_row == b->per_row && a->plan->request.problem.m > 0;
}

/* With each step that results, its neighbours are tried again: rope of queries, of keys, and two caches become one. */
qdnnStatus_t program_fuse(qdnnProgram_t program)
{
    enum { RULES = sizeof rules / sizeof rules[0] };
    for (int i = 0; i + 1 < program->n_steps;) {
        bool done = false;
        for (int k = 0; k < RULES && !done && is_candidate(&program->steps[i], &program->steps[i + 1]); k++)
            CHECK_STATUS(apply(program, i, &rules[k], &done));
        i = !done ? i + 1 : i > 0 ? i - 1 : 0;
    }
    return QDNN_STATUS_SUCCESS;
}
