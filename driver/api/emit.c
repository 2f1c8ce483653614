/* qdnnEmitPtx and qdnnEmitOperation: kernels and operations as PTX, by name, SM and settings. */
#include <qdnn/emit.h>

#include <stdio.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/base/check.h"
#include "kernels/kernels.h"

enum { KEY_BYTES = 32 };

/* The key of "key=value"; *value points behind it. */
static qdnnStatus_t split(const char *list, const char *pair, char key[KEY_BYTES], const char **value)
{
    const char *equals = strchr(pair, '=');
    size_t length = equals ? (size_t)(equals - pair) : 0;
    if (length == 0 || length >= KEY_BYTES)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s: '%s' is not of the form key=value", list, pair);
    memcpy(key, pair, length);
    key[length] = 0;
    *value = equals + 1;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t apply_setting(const char *name, const kernel_row *row, kernel_spec *spec,
                                  const char *setting)
{
    char key[KEY_BYTES], reason[512];
    const char *value = NULL;
    CHECK_STATUS(split("settings", setting, key, &value));
    if (kernel_name_set(name, row, spec, key, value, reason, sizeof reason))
        return QDNN_STATUS_SUCCESS;
    bool known = kernel_takes(row, key);
    return qdnn_error(known ? QDNN_STATUS_BAD_PARAM : QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "settings: %s",
                      reason);
}

static qdnnStatus_t emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, qdnnPtx_t *out)
{
    kernel_text text;
    ptx_error problem;
    if (!kernel_emit(row, spec, sm, &alloc_for_ptx, &text, &problem))
        return qdnn_error(problem.no_memory ? QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED
                                            : QDNN_STATUS_NOT_SUPPORTED_SM,
                          "%s", problem.text);
    out->ptx = text.ptx;
    kernel_entry_name(row, out->entry, sizeof out->entry);
    out->blockThreads = text.geometry.block;
    out->elementsPerBlock = text.geometry.elements_per_block;
    return QDNN_STATUS_SUCCESS;
}

/* Finds the row, the settings and the target of a call. */
static qdnnStatus_t open_call(const char *name, const char *sm, const char *const *settings,
                              const kernel_row **row, kernel_spec *spec, const ptx_sm **target)
{
    *row = kernel_open(name, spec);
    if (!*row)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "unknown kernel '%s'; ptxgen --list names them",
                          name);
    *target = ptx_sm_find(sm);
    if (!*target)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                          "sm is '%s', which is not a known target (sm_90 is one)", sm);
    for (; settings && *settings; settings++)
        CHECK_STATUS(apply_setting(name, *row, spec, *settings));
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnEmitPtx(const char *kernel, const char *sm, const char *const *settings, qdnnPtx_t *out)
{
    CALL_BEGIN_WITH(kernel, sm, settings, out);
    CHECK_NOT_NULL(kernel);
    CHECK_NOT_NULL(sm);
    CHECK_NOT_NULL(out);
    kernel_spec spec;
    const kernel_row *row;
    const ptx_sm *target;
    CHECK_STATUS(open_call(kernel, sm, settings, &row, &spec, &target));
    return emit(row, &spec, target, out);
}

void qdnnFreePtx(qdnnPtx_t *ptx)
{
    if (!ptx)
        return;
    ptx_free_text(&alloc_for_ptx, ptx->ptx);
    ptx->ptx = NULL;
}

/* ---- Whole operations ---- */

/* What a qdnnEmitted_t points to, in one allocation. */
typedef struct emitted_launch {
    char *ptx;
    char entry[64], rules[3][KERNEL_RULE_CHARS];
    qdnnArgument_t arguments[KERNEL_PARAMS_MAX];
} emitted_launch;

typedef struct emitted {
    qdnnEmitted_t shown; /* first: its address is that of the whole */
    qdnnLaunch_t launches[KERNEL_STEPS_MAX];
    qdnnEmittedOperand_t operands[QDNN_OPERAND_COUNT];
    emitted_launch parts[KERNEL_STEPS_MAX];
} emitted;

static qdnnStatus_t read_sizes(const kernel_row *row, kernel_spec *spec, const char *const *sizes,
                               kernel_problem *problem)
{
    char key[KEY_BYTES], reason[256];
    *problem = kernel_problem_default();
    for (; *sizes; sizes++) {
        const char *value = NULL;
        CHECK_STATUS(split("sizes", *sizes, key, &value));
        bool known = false;
        for (int i = 0; kernel_size_name(i); i++)
            known = known || strcmp(kernel_size_name(i), key) == 0;
        if (!kernel_size_set(problem, key, value, reason, sizeof reason))
            return qdnn_error(known ? QDNN_STATUS_BAD_PARAM : QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "sizes: %s",
                              reason);
    }
    const kernel_spec asked = *spec;
    if (!kernel_spec_settle(row, spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "settings: %s", reason);
    if (!kernel_problem_complete(row, &asked, problem, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "sizes: %s", reason);
    return QDNN_STATUS_SUCCESS;
}

static qdnnArgument_t argument_of(const kernel_param *p)
{
    if (p->kind == KERNEL_OPERAND)
        return (qdnnArgument_t){.kind = QDNN_ARGUMENT_OPERAND, .operand = (qdnnOperand_t)p->operand};
    return (qdnnArgument_t){.kind = p->kind == KERNEL_WORKSPACE ? QDNN_ARGUMENT_WORKSPACE
                                    : p->bytes == 8             ? QDNN_ARGUMENT_U64
                                                                : QDNN_ARGUMENT_F32,
                            .value = p->value};
}

static qdnnStatus_t emit_launch(const kernel_step *step, const ptx_sm *sm, emitted_launch *part,
                                qdnnLaunch_t *launch)
{
    qdnnPtx_t text;
    CHECK_STATUS(emit(step->row, &step->spec, sm, &text));
    const kernel_geometry geometry = kernel_geometry_of(step->row, &step->spec);
    part->ptx = text.ptx;
    memcpy(part->entry, text.entry, sizeof part->entry);
    *launch = (qdnnLaunch_t){.ptx = part->ptx,
                             .entry = part->entry,
                             .grid = {step->grid[0], step->grid[1], step->grid[2]},
                             .blockThreads = step->block,
                             .sharedBytes = step->shared,
                             .argumentCount = step->n_params,
                             .arguments = part->arguments};
    for (int i = 0; i < 3; i++) {
        kernel_rule_text(&geometry.grid[i], KERNEL_RULE_TEXT, part->rules[i]);
        launch->gridRule[i] = part->rules[i];
    }
    for (int i = 0; i < step->n_params; i++)
        part->arguments[i] = argument_of(&step->params[i]);
    return QDNN_STATUS_SUCCESS;
}

static void list_operands(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                          emitted *e)
{
    kernel_operand all[QDNN_OPERAND_COUNT];
    kernel_operands_of(row, spec, problem, all);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (all[i].align)
            e->operands[e->shown.operandCount++] =
                (qdnnEmittedOperand_t){.operand = (qdnnOperand_t)i,
                                       .name = kernel_operand_name((qdnnOperand_t)i),
                                       .reads = all[i].reads,
                                       .writes = all[i].writes,
                                       .align = all[i].align,
                                       .bytes = all[i].bytes};
    e->shown.operands = e->operands;
}

static qdnnStatus_t emit_steps(const kernel_steps *steps, const ptx_sm *sm, emitted *e)
{
    for (int i = 0; i < steps->count; i++) {
        CHECK_STATUS(emit_launch(&steps->at[i], sm, &e->parts[i], &e->launches[i]));
        e->shown.launchCount++;
    }
    e->shown.launches = e->launches;
    e->shown.workspaceBytes = steps->workspace;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnEmitOperation(const char *operation, const char *sm, const char *const *settings,
                               const char *const *sizes, qdnnEmitted_t **out)
{
    CALL_BEGIN_WITH(operation, sm, settings, sizes, out);
    CHECK_NOT_NULL(operation);
    CHECK_NOT_NULL(sm);
    CHECK_NOT_NULL(sizes);
    CHECK_NOT_NULL(out);
    kernel_spec spec;
    const kernel_row *row;
    const ptx_sm *target;
    kernel_problem problem;
    CHECK_STATUS(open_call(operation, sm, settings, &row, &spec, &target));
    CHECK_STATUS(read_sizes(row, &spec, sizes, &problem));
    kernel_steps steps;
    kernel_steps_of(row, &spec, &problem, &steps);
    emitted *e = alloc_new(sizeof *e);
    if (!e)
        return qdnn_error(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "out of host memory");
    const kernel_alias *alias = kernel_find_alias(operation);
    e->shown.operation = alias ? alias->name : row->operation_name ? row->operation_name : row->name;
    list_operands(row, &spec, &problem, e);
    const qdnnStatus_t status = emit_steps(&steps, target, e);
    if (status == QDNN_STATUS_SUCCESS)
        *out = &e->shown;
    else
        qdnnFreeEmitted(&e->shown);
    return status;
}

void qdnnFreeEmitted(qdnnEmitted_t *emitted_operation)
{
    emitted *e = (emitted *)emitted_operation;
    for (int i = 0; e && i < e->shown.launchCount; i++)
        ptx_free_text(&alloc_for_ptx, e->parts[i].ptx);
    alloc_free(e);
}
