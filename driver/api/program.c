/* Programs: tensors and steps are added here, each checked when it is added. */
#include "driver/api/program.h"

#include <string.h>

#include "driver/base/alloc.h"
#include "driver/base/data_type.h"

/* ---- Lists that grow ---- */

static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    const int wanted = *room ? 2 * *room : 16;
    void *larger = alloc_new((size_t)wanted * size);
    if (!larger)
        return NULL;
    if (count)
        memcpy(larger, list, (size_t)count * size);
    alloc_free(list);
    *room = wanted;
    return larger;
}

/* ---- The program ---- */

qdnnStatus_t qdnnCreateProgram(qdnnHandle_t handle, int64_t maxRows, qdnnProgram_t *program)
{
    CALL_BEGIN_WITH(handle, maxRows, program);
    CHECK_NOT_NULL(handle);
    CHECK_NOT_NULL(program);
    if (maxRows < 1 || maxRows > INT64_MAX / 2)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "maxRows is %lld; it must be at least 1",
                          (long long)maxRows);
    CHECK_STATUS(handle_check(handle));
    qdnnProgram_t made = object_create(OBJECT_PROGRAM, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY();
    made->handle = handle;
    made->max_rows = (uint64_t)maxRows;
    handle->programs++;
    *program = made;
    return QDNN_STATUS_SUCCESS;
}

void program_free_step(qdnnHandle_t handle, program_step *step)
{
    if (step->kind == PROGRAM_PLAN)
        plan_release(step->plan);
    if (step->kind == PROGRAM_KERNEL)
        program_kernel_free(handle, step->kernel);
    alloc_free(step->name);
    alloc_free(step->uses);
}

qdnnStatus_t qdnnDestroyProgram(qdnnProgram_t program)
{
    CALL_BEGIN_WITH(program);
    if (!program)
        return QDNN_STATUS_SUCCESS;
    CHECK_NOT_NULL(program);
    program_trace_close(program);
    for (int i = 0; i < program->n_steps; i++)
        program_free_step(program->handle, &program->steps[i]);
    for (int i = 0; i < program->n_tensors; i++)
        alloc_free(program->tensors[i].name);
    alloc_free(program->steps);
    alloc_free(program->tensors);
    program->handle->programs--;
    object_destroy(program);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t program_check_open(const struct qdnnProgram *program)
{
    if (program->is_compiled)
        return qdnn_error(QDNN_STATUS_BAD_PARAM,
                          "the program was compiled; nothing can be added to it: create another");
    return handle_check(program->handle);
}

/* ---- Tensors ---- */

static qdnnStatus_t check_name(const struct qdnnProgram *program, const char *name)
{
    if (!*name)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "name is empty; messages need it");
    for (int i = 0; i < program->n_tensors; i++)
        if (strcmp(program->tensors[i].name, name) == 0)
            return qdnn_error(QDNN_STATUS_BAD_PARAM,
                              "tensor %d is named '%s' already; give each a name of its own", i, name);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_rows(const struct qdnnProgram *program, const struct qdnnTensorDescriptor *shape)
{
    if (shape->dims[0] == 0 || (uint64_t)shape->dims[0] % program->max_rows != 0)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "the first dimension is %lld; that of a tensor by rows is a multiple of the program's %llu",
            (long long)shape->dims[0], (unsigned long long)program->max_rows);
    const uint64_t bits = tensor_elements(shape) * (uint64_t)data_type_bits(shape->type);
    if (bits / program->max_rows % 8 != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "a row has %llu bits of %s; it must be whole bytes",
                          (unsigned long long)(bits / program->max_rows), qdnnGetDataTypeName(shape->type));
    return QDNN_STATUS_SUCCESS;
}

/* Of a name that is not taken, and a shape that was checked. */
static qdnnStatus_t add_tensor(qdnnProgram_t program, const char *name, const program_tensor *tensor)
{
    char *copy = alloc_copy(name);
    program_tensor *list =
        copy ? grown(program->tensors, program->n_tensors, &program->room_tensors, sizeof *program->tensors)
             : NULL;
    if (!list) {
        alloc_free(copy);
        return OUT_OF_MEMORY();
    }
    program->tensors = list;
    program->tensors[program->n_tensors] = *tensor;
    program->tensors[program->n_tensors++].name = copy;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnAddTensorToProgram(qdnnProgram_t program, const char *name, qdnnProgramPlace_t place,
                                    qdnnTensorDescriptor_t shape, int byRows, int *tensor)
{
    CALL_BEGIN_WITH(program, name, place, shape, byRows, tensor);
    CHECK_NOT_NULL(program);
    CHECK_NOT_NULL(name);
    CHECK_TENSOR(shape);
    CHECK_NOT_NULL(tensor);
    CHECK_STATUS(program_check_open(program));
    CHECK_STATUS(check_name(program, name));
    if (place != QDNN_PROGRAM_EXTERNAL && place != QDNN_PROGRAM_INTERMEDIATE)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "place is %d; it must be QDNN_PROGRAM_EXTERNAL or QDNN_PROGRAM_INTERMEDIATE",
                          (int)place);
    if (byRows != 0 && byRows != 1)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "byRows is %d; it must be 0 or 1", byRows);
    if (!tensor_is_packed(shape))
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "the shape of '%s' has strides that are not packed; describe all of its memory, and "
            "bind parts of it by their offset",
            name);
    if (byRows)
        CHECK_STATUS(check_rows(program, shape));
    const uint64_t bits = tensor_elements(shape) * (uint64_t)data_type_bits(shape->type);
    const program_tensor made = {.place = place,
                                 .shape = *shape,
                                 .bytes = (bits + 7) / 8,
                                 .row_bytes = byRows ? bits / 8 / program->max_rows : 0,
                                 .align = 1,
                                 .first = -1,
                                 .last = -1};
    CHECK_STATUS(add_tensor(program, name, &made));
    *tensor = program->n_tensors - 1;
    return QDNN_STATUS_SUCCESS;
}

/* ---- Steps ---- */

const char *program_step_operation(const program_step *step)
{
    static const char *const names[PROGRAM_STEP_KINDS] = {
        [PROGRAM_COPY] = "copy", [PROGRAM_FILL] = "fill", [PROGRAM_KERNEL] = "kernel"};
    return step->kind == PROGRAM_PLAN ? step->plan->info.operation : names[step->kind];
}

qdnnStatus_t program_in_step(qdnnStatus_t status, int number, const program_step *step)
{
    return plan_in_step(status, number, step->name, program_step_operation(step));
}

qdnnStatus_t program_append(qdnnProgram_t program, const char *name, const program_step *step)
{
    const size_t bytes = (size_t)step->n_uses * sizeof *step->uses;
    program_step made = *step, *list = NULL;
    made.parts = 1;
    made.name = alloc_copy(name ? name : "");
    made.uses = made.name ? alloc_new(bytes ? bytes : 1) : NULL;
    if (made.uses)
        list = grown(program->steps, program->n_steps, &program->room_steps, sizeof *program->steps);
    if (!list) {
        alloc_free(made.name);
        alloc_free(made.uses);
        return OUT_OF_MEMORY();
    }
    if (bytes)
        memcpy(made.uses, step->uses, bytes);
    program->steps = list;
    program->steps[program->n_steps++] = made;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t program_check_tensor(const struct qdnnProgram *program, const char *what, int tensor)
{
    if (tensor < 0 || tensor >= program->n_tensors)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %d; the program has tensors 0 to %d",
                          what, tensor, program->n_tensors - 1);
    return QDNN_STATUS_SUCCESS;
}

/* ---- Plans ---- */

static qdnnStatus_t check_type(const program_tensor *t, const struct qdnnPlan *plan, int operand)
{
    const qdnnDataType_t type = (qdnnDataType_t)plan->types[operand];
    if (!type || type == t->shape.type)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is bound to '%s', which is %s; the plan was made for %s",
                      plan_place_name(BY_BINDINGS, operand), t->name, qdnnGetDataTypeName(t->shape.type),
                      qdnnGetDataTypeName(type));
}

static qdnnStatus_t check_size(const program_tensor *t, const program_use *use)
{
    if (use->offset <= t->bytes && use->bytes <= t->bytes - use->offset)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                      "%s has %llu bytes, and '%s' has %llu, of which the first %llu are skipped",
                      plan_place_name(BY_BINDINGS, use->place), (unsigned long long)use->bytes, t->name,
                      (unsigned long long)t->bytes, (unsigned long long)use->offset);
}

/* A step by rows uses the first rows of its tensors by rows: the operand must reach into the last row of the
 * tensor, or the rows of the two would not be the same. */
static qdnnStatus_t check_rows_of(const struct qdnnProgram *program, const program_tensor *t,
                                  const program_use *use)
{
    if (t->row_bytes) {
        if (use->bytes == 0 || use->offset + use->bytes > t->row_bytes * (program->max_rows - 1))
            return QDNN_STATUS_SUCCESS;
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "%s has %llu bytes, and '%s' has %llu rows of %llu; fix: bind a tensor whose rows are "
            "those of the operand",
            plan_place_name(BY_BINDINGS, use->place), (unsigned long long)use->bytes, t->name,
            (unsigned long long)program->max_rows, (unsigned long long)t->row_bytes);
    }
    if (use->writes && t->place == QDNN_PROGRAM_INTERMEDIATE)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "%s is bound to '%s', an intermediate tensor that is not by rows; a run of fewer rows "
            "would leave a part of it unwritten: add it with byRows 1",
            plan_place_name(BY_BINDINGS, use->place), t->name);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t make_use(const struct qdnnProgram *program, const program_step *step,
                             const qdnnProgramBinding_t *binding, int number, program_use *use)
{
    const struct qdnnPlan *plan = step->plan;
    const unsigned operand = (unsigned)binding->operand;
    char what[32];
    snprintf(what, sizeof what, "bindings[%d].tensor", number);
    CHECK_STATUS(program_check_tensor(program, what, binding->tensor));
    const program_tensor *t = &program->tensors[binding->tensor];
    *use = (program_use){.tensor = binding->tensor,
                         .offset = binding->offset,
                         .bytes = plan->bytes[operand],
                         .place = (uint8_t)operand,
                         .reads = plan->reads >> operand & 1,
                         .writes = plan->writes >> operand & 1};
    CHECK_STATUS(check_type(t, plan, (int)operand));
    CHECK_STATUS(check_size(t, use));
    if (binding->offset & (plan->align[operand] - 1u))
        return qdnn_error(QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                          "bindings[%d].offset is %zu; it must be a multiple of the element's %d bytes",
                          number, binding->offset, plan->align[operand]);
    return step->per_row ? check_rows_of(program, t, use) : QDNN_STATUS_SUCCESS;
}

/* Unless each element is read by the thread that writes it. */
bool program_uses_collide(const program_use *a, const program_use *b)
{
    const bool meet = a->tensor == b->tensor && a->offset < b->offset + b->bytes &&
                      b->offset < a->offset + a->bytes && (a->writes || b->writes);
    return meet && !(a->offset == b->offset && a->bytes == b->bytes && plan_may_coincide(a->place, b->place));
}

static qdnnStatus_t check_apart(const struct qdnnProgram *program, const program_use *a, const program_use *b)
{
    if (!program_uses_collide(a, b))
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s and %s are both in '%s' and overlap; give each its own",
                      plan_place_name(BY_BINDINGS, a->place), plan_place_name(BY_BINDINGS, b->place),
                      program->tensors[a->tensor].name);
}

static qdnnStatus_t check_plan_rows(const struct qdnnProgram *program, const program_step *step)
{
    const struct qdnnPlan *plan = step->plan;
    if (!step->per_row)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(plan_check_rows(plan, 0));
    uint64_t needed;
    if (__builtin_mul_overflow(step->per_row, program->max_rows, &needed) || needed != plan->rows)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "perRow is %llu and the program has up to %llu rows, but the plan was made for %llu",
            (unsigned long long)step->per_row, (unsigned long long)program->max_rows,
            (unsigned long long)plan->rows);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t bind(const struct qdnnProgram *program, program_step *step,
                         const qdnnProgramBinding_t *bindings, int count)
{
    /* The same checks of operands as in an execute, with addresses that do not matter. */
    qdnnBinding_t plain[QDNN_OPERAND_COUNT];
    CUdeviceptr at[PLAN_PLACES] = {0};
    if (count > QDNN_OPERAND_COUNT)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is %d; there are %d operands", count,
                          QDNN_OPERAND_COUNT);
    for (int i = 0; i < count; i++)
        plain[i] = (qdnnBinding_t){bindings[i].operand, (const void *)(uintptr_t)PROGRAM_ALIGN, 0};
    CHECK_STATUS(plan_bind(step->plan, step->plan->rows, plain, count, BY_BINDINGS, at));
    CHECK_STATUS(check_plan_rows(program, step));
    for (int i = 0; i < count; i++)
        CHECK_STATUS(make_use(program, step, &bindings[i], i, &step->uses[i]));
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++)
            CHECK_STATUS(check_apart(program, &step->uses[i], &step->uses[k]));
    return QDNN_STATUS_SUCCESS;
}

void program_align_tensors(qdnnProgram_t program, const program_step *step)
{
    for (int i = 0; i < step->n_uses; i++) {
        program_tensor *t = &program->tensors[step->uses[i].tensor];
        const unsigned align = step->plan->align[step->uses[i].place];
        if (align > t->align)
            t->align = align;
    }
}

static qdnnStatus_t add_plan(qdnnProgram_t program, const char *name, program_step *step,
                             const qdnnProgramBinding_t *bindings, int count)
{
    CHECK_STATUS(bind(program, step, bindings, count));
    step->n_uses = count;
    CHECK_STATUS(program_append(program, name, step));
    step->plan->references++;
    program_align_tensors(program, step);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnAddPlanToProgram(qdnnProgram_t program, const char *name, qdnnPlan_t plan, int64_t perRow,
                                  const qdnnProgramBinding_t *bindings, int count)
{
    CALL_BEGIN_WITH(program, name, plan, perRow, bindings, count);
    program_use uses[QDNN_OPERAND_COUNT];
    CHECK_NOT_NULL(program);
    CHECK_NOT_NULL(plan);
    CHECK_STATUS(program_check_open(program));
    if (perRow < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "perRow is %lld; it must not be negative",
                          (long long)perRow);
    CHECK_STATUS(plan_check_bindings(plan, program->handle, NULL, 0));
    if (count < 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is %d; it must not be negative", count);
    CHECK_BUFFER(bindings, count);
    program_step step = {.kind = PROGRAM_PLAN, .uses = uses, .per_row = (uint64_t)perRow, .plan = plan};
    return plan_in_step(add_plan(program, name, &step, bindings, count), program->n_steps, name,
                        plan->info.operation);
}

/* ---- Copies and fills ---- */

static program_use whole(const struct qdnnProgram *program, int tensor, bool writes)
{
    return (program_use){
        .tensor = tensor, .bytes = program->tensors[tensor].bytes, .reads = !writes, .writes = writes};
}

static qdnnStatus_t check_copy(const struct qdnnProgram *program, int to, int from)
{
    CHECK_STATUS(program_check_tensor(program, "to", to));
    CHECK_STATUS(program_check_tensor(program, "from", from));
    const program_tensor *a = &program->tensors[to], *b = &program->tensors[from];
    if (to == from)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "'%s' is copied onto itself", a->name);
    if (a->bytes != b->bytes || a->row_bytes != b->row_bytes)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "'%s' has %llu bytes, %llu of them for each row, and '%s' has %llu and %llu; a copy "
            "needs tensors of one size",
            a->name, (unsigned long long)a->bytes, (unsigned long long)a->row_bytes, b->name,
            (unsigned long long)b->bytes, (unsigned long long)b->row_bytes);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnAddCopyToProgram(qdnnProgram_t program, const char *name, int to, int from)
{
    CALL_BEGIN_WITH(program, name, to, from);
    CHECK_NOT_NULL(program);
    CHECK_STATUS(program_check_open(program));
    CHECK_STATUS(plan_in_step(check_copy(program, to, from), program->n_steps, name, "copy"));
    program_use uses[] = {whole(program, to, true), whole(program, from, false)};
    return program_append(program, name, &(program_step){.kind = PROGRAM_COPY, .uses = uses, .n_uses = 2});
}

qdnnStatus_t qdnnAddFillToProgram(qdnnProgram_t program, const char *name, int tensor, unsigned char byte)
{
    CALL_BEGIN_WITH(program, name, tensor, byte);
    CHECK_NOT_NULL(program);
    CHECK_STATUS(program_check_open(program));
    CHECK_STATUS(
        plan_in_step(program_check_tensor(program, "tensor", tensor), program->n_steps, name, "fill"));
    program_use use = whole(program, tensor, true);
    return program_append(program, name,
                          &(program_step){.kind = PROGRAM_FILL, .uses = &use, .n_uses = 1, .byte = byte});
}

/* ---- Compiling, and what is known of a program ---- */

qdnnStatus_t qdnnCompileProgram(qdnnProgram_t program)
{
    CALL_BEGIN_WITH(program);
    CHECK_NOT_NULL(program);
    if (program->is_compiled)
        return handle_check(program->handle);
    CHECK_STATUS(program_check_open(program));
    CHECK_STATUS(program_find_lifetimes(program));
    CHECK_STATUS(program_fuse(program));
    CHECK_STATUS(program_plan_arena(program));
    CHECK_STATUS(program_trace_open(program));
    program->is_compiled = true;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetProgramInfo(qdnnProgram_t program, qdnnProgramInfo_t *info)
{
    CALL_BEGIN_WITH(program, info);
    CHECK_NOT_NULL(program);
    CHECK_NOT_NULL(info);
    const qdnnProgramInfo_t found = {.tensors = program->n_tensors,
                                     .steps = program->n_steps,
                                     .maxRows = (int64_t)program->max_rows,
                                     .arenaBytes = program->is_compiled ? program->arena_bytes : 0,
                                     .intermediateBytes =
                                         program->is_compiled ? program->intermediate_bytes : 0,
                                     .fused = program->fused};
    GIVE_INFO(info, &found);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetProgramTensorInfo(qdnnProgram_t program, int tensor, qdnnProgramTensorInfo_t *info)
{
    CALL_BEGIN_WITH(program, tensor, info);
    CHECK_NOT_NULL(program);
    CHECK_NOT_NULL(info);
    CHECK_STATUS(program_check_tensor(program, "tensor", tensor));
    const program_tensor *t = &program->tensors[tensor];
    const bool known = program->is_compiled;
    const qdnnProgramTensorInfo_t found = {.name = t->name,
                                           .place = t->place,
                                           .bytes = t->bytes,
                                           .rowBytes = t->row_bytes,
                                           .alignment = t->align,
                                           .firstStep = known ? t->first : -1,
                                           .lastStep = known ? t->last : -1,
                                           .offset = known ? t->offset : 0};
    GIVE_INFO(info, &found);
    return QDNN_STATUS_SUCCESS;
}
