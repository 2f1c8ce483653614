/* The arena of a program: tensors that are never needed at the same time share memory. */
#include <stdlib.h>

#include "driver/api/program.h"
#include "driver/base/alloc.h"

/* Something that needs memory from one step to another. */
typedef struct arena_item {
    uint64_t bytes; /* a multiple of PROGRAM_ALIGN */
    int first, last;
    int number; /* as they were listed */
    uint64_t *offset;
} arena_item;

/* ---- When each tensor is needed ---- */

static qdnnStatus_t check_written(const struct qdnnProgram *program, int number, const program_use *use)
{
    const program_tensor *t = &program->tensors[use->tensor];
    if (!use->reads || t->place == QDNN_PROGRAM_EXTERNAL || t->first >= 0)
        return QDNN_STATUS_SUCCESS;
    const qdnnStatus_t status = qdnn_error(
        QDNN_STATUS_BAD_PARAM,
        "reads '%s', which no earlier step writes; fix the order of the steps, or make it external", t->name);
    return program_in_step(status, number, &program->steps[number]);
}

qdnnStatus_t program_find_lifetimes(qdnnProgram_t program)
{
    for (int i = 0; i < program->n_tensors; i++)
        program->tensors[i].first = program->tensors[i].last = -1;
    for (int i = 0; i < program->n_steps; i++) {
        const program_step *step = &program->steps[i];
        for (int k = 0; k < step->n_uses; k++)
            CHECK_STATUS(check_written(program, i, &step->uses[k]));
        for (int k = 0; k < step->n_uses; k++) {
            program_tensor *t = &program->tensors[step->uses[k].tensor];
            t->first = t->first < 0 ? i : t->first;
            t->last = i;
        }
    }
    return QDNN_STATUS_SUCCESS;
}

/* ---- Where each lies ---- */

static int larger_first(const void *a, const void *b)
{
    const arena_item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static bool at_once(const arena_item *a, const arena_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap between those placed so far, in increasing order of their offsets. Returns where in that order the item
 * comes. */
static int place(const arena_item *item, arena_item *const *placed, int count)
{
    uint64_t at = 0;
    for (int i = 0; i < count; i++) {
        const arena_item *other = placed[i];
        if (!at_once(item, other))
            continue;
        if (at + item->bytes <= *other->offset)
            break;
        if (*other->offset + other->bytes > at)
            at = *other->offset + other->bytes;
    }
    *item->offset = at;
    int order = 0;
    while (order < count && *placed[order]->offset <= at)
        order++;
    return order;
}

static uint64_t place_all(arena_item *items, int count, arena_item **placed)
{
    uint64_t end = 0;
    qsort(items, (size_t)count, sizeof *items, larger_first);
    for (int i = 0; i < count; i++) {
        const int order = place(&items[i], placed, i);
        for (int k = i; k > order; k--)
            placed[k] = placed[k - 1];
        placed[order] = &items[i];
        if (*items[i].offset + items[i].bytes > end)
            end = *items[i].offset + items[i].bytes;
    }
    return end;
}

static void list(arena_item *items, int *count, uint64_t bytes, int first, int last, uint64_t *offset)
{
    *offset = 0;
    if (bytes == 0 || first < 0)
        return;
    items[*count] = (arena_item){.bytes = (bytes + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN,
                                 .first = first,
                                 .last = last,
                                 .number = *count,
                                 .offset = offset};
    ++*count;
}

static int list_all(qdnnProgram_t program, arena_item *items)
{
    int count = 0;
    for (int i = 0; i < program->n_tensors; i++) {
        program_tensor *t = &program->tensors[i];
        if (t->place == QDNN_PROGRAM_INTERMEDIATE)
            list(items, &count, t->bytes, t->first, t->last, &t->offset);
    }
    for (int i = 0; i < program->n_steps; i++) {
        program_step *step = &program->steps[i];
        if (step->kind == PROGRAM_PLAN)
            list(items, &count, step->plan->workspace_bytes, i, i, &step->workspace);
    }
    return count;
}

/* Of all items together, which bounds the arena. */
static qdnnStatus_t add_up(const arena_item *items, int count, uint64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < count; i++) {
        *bytes += items[i].bytes;
        if (*bytes >= UINT64_C(1) << 60)
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                              "the intermediate tensors have 2^60 bytes or more; fix: fewer rows");
    }
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t program_plan_arena(qdnnProgram_t program)
{
    CHECK_STATUS(program_find_lifetimes(program));
    const size_t most = (size_t)program->n_tensors + (size_t)program->n_steps + 1;
    arena_item *items = alloc_new(most * sizeof *items);
    arena_item **placed = alloc_new(most * sizeof *placed);
    qdnnStatus_t status = items && placed ? QDNN_STATUS_SUCCESS : OUT_OF_MEMORY();
    if (status == QDNN_STATUS_SUCCESS) {
        const int count = list_all(program, items);
        status = add_up(items, count, &program->intermediate_bytes);
        if (status == QDNN_STATUS_SUCCESS)
            program->arena_bytes = place_all(items, count, placed);
    }
    alloc_free(items);
    alloc_free(placed);
    return status;
}
