/* The command quantize: quantizes weights on the device and measures the loss. */
#include "tools/qdnn/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- choosing the type ---- */

/* Why a weight is kept; null if it is not. Norms and biases are small but sensitive: a rule that happens to
 * match them does not quantize them. */
static const char *reason_to_keep(const rewrite *r, const job *j, int rank)
{
    bool plain = j->choice.type->either_kind;
    bool all = plain || j->named || r->o->all_matrices || r->out.kind == QDNN_FILE_GGUF;
    if (rank < 2 && !(plain && j->named))
        return "no matrix";
    if (!all && (rank != 2 || !folder_is_linear(&r->folder, j->from.name)))
        return "not of a Linear layer (--all-matrices)";
    if (j->from.problem && !j->named)
        return j->from.problem;
    return j->from.quantized && !j->named && !r->o->requantize ? "quantized already (--requantize)" : NULL;
}

static bool can_quantize(const type_choice *choice)
{
    return choice->type->weights != QDNN_WEIGHTS_GGUF_NVFP4;
}

/* If a rule cannot be applied, that is an error; the default type is simply not applied where it is
 * impossible. */
static int choose(rewrite *r, job *j, const type_choice *usual)
{
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    const char *refused = NULL;
    j->choice = *usual;
    int status = rewrite_rule(r, j->from.name, &j->choice, &j->named);
    if (status != TOOL_OK || !j->choice.type)
        return status;
    weight_shape(&j->from, &rank, dims);
    if (!can_quantize(&j->choice))
        return tool_usage_error("there is no quantization to %s in GGUF; it can be converted to",
                                j->choice.type->name);
    const char *kept = reason_to_keep(r, j, rank);
    if (!kept && j->from.problem)
        return tool_fail("%s cannot become %s: %s", j->from.name, j->choice.type->name, j->from.problem);
    if (!kept) {
        j->to = type_describe(j->choice, rank, dims, -1);
        status = type_refused(j->choice, j->from.name, &j->to, &refused);
    }
    if (status != TOOL_OK)
        return status;
    if (refused && j->named)
        return tool_fail("%s cannot become %s: %s", j->from.name, j->choice.type->name, refused);
    if (kept || refused) {
        j->choice = (type_choice){0};
        j->reason = strdup(kept ? kept : refused);
        if (!j->reason)
            return tool_fail("out of memory");
    }
    return TOOL_OK;
}

/* The reasons are in the table, which is printed only after a success. */
static int check_any(const rewrite *r)
{
    const job *kept = NULL;
    for (int i = 0; i < r->info.weights; i++) {
        if (r->jobs[i].choice.type)
            return TOOL_OK;
        if (!kept && r->jobs[i].reason && r->jobs[i].from.rank > 1)
            kept = &r->jobs[i];
    }
    if (!kept)
        return tool_fail("nothing to quantize: %s has no matrices to which a type applies", r->o->in);
    return tool_fail("nothing to quantize in %s; %s, for example, is kept: %s", r->o->in, kept->from.name,
                     kept->reason);
}

static int choose_all(rewrite *r)
{
    type_choice usual = {0};
    int status = r->o->type ? type_parse(r->o->type, r->out.kind, &usual) : TOOL_OK;
    for (int i = 0; i < r->info.weights && status == TOOL_OK; i++)
        status = choose(r, &r->jobs[i], &usual);
    return status;
}

/* ---- the quantization ---- */

static int make_codes(rewrite *r, job *j, const float *x, tensor *made)
{
    int status = tensor_make(made, j->from.name, &j->to);
    if (status != TOOL_OK)
        return status;
    status = device_quantize(&r->device, made, x);
    float *y = status == TOOL_OK ? tool_alloc((size_t)(made->rows * made->columns) * sizeof *y) : NULL;
    if (status == TOOL_OK)
        status = y ? device_dequantize(&r->device, made, y) : TOOL_FAILED;
    if (status == TOOL_OK)
        j->lost = measure(x, y, made->rows * made->columns);
    free(y);
    return status;
}

static int make(rewrite *r, job *j, tensor *made)
{
    tensor from;
    int status = tensor_open(&from, &j->from);
    if (status != TOOL_OK)
        return status;
    float *x = weight_values(&from);
    status = x ? make_codes(r, j, x, made) : TOOL_FAILED;
    free(x);
    tensor_close(&from);
    return status;
}

int command_quantize(const options *o)
{
    rewrite r;
    int status = rewrite_open(&r, o);
    r.make = make;
    if (status == TOOL_OK)
        status = choose_all(&r);
    if (status == TOOL_OK)
        status = rewrite_check_rules(&r);
    if (status == TOOL_OK)
        status = check_any(&r);
    if (status == TOOL_OK && !o->dry_run)
        status = device_open(&r.device, o->device);
    if (status == TOOL_OK)
        status = rewrite_run(&r);
    rewrite_close(&r);
    return status;
}
