/* Converts weights to another format with the same values. Each result is compared with its source before it
 * is written. */
#include "tools/qdnn/repack.h"
#include "tools/qdnn/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The candidate types of a weight if the user does not choose one, smallest first. */
static const char *const candidates[2][8] = {
    [QDNN_FILE_GGUF] = {"mxfp4", "nvfp4", "q4_0", "q5_0", "q8_0", "f16", "bf16", "f32"},
    [QDNN_FILE_SAFETENSORS] = {"mxfp4", "nvfp4", "int4", "int8", "f16", "bf16", "f32"},
};

/* A weight being converted: its values and scales as [.., N, K]. */
typedef struct source {
    tensor from;
    float *values, *scales;
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    int64_t group;
    qdnnScaleType_t scale_type;
} source;

static void source_close(source *s)
{
    free(s->values);
    free(s->scales);
    tensor_close(&s->from);
}

static int source_open(source *s, const qdnnFileWeight_t *w)
{
    *s = (source){0};
    int status = tensor_open(&s->from, w);
    if (status != TOOL_OK)
        return status;
    weight_shape(w, &s->rank, s->dims);
    s->values = weight_values(&s->from);
    s->scales = weight_turn(w, repack_scales(&s->from));
    s->group = repack_group(&s->from);
    s->scale_type = repack_scale_type(&s->from);
    if (s->values && s->scales)
        return TOOL_OK;
    source_close(s);
    return TOOL_FAILED;
}

/* The group size is the source's own unless the user chooses another. */
static qdnnFileWeight_t describe(const source *s, type_choice *choice)
{
    if (choice->type->group && choice->group == choice->type->group)
        choice->group = s->group;
    return type_describe(*choice, s->rank, s->dims, (int)s->scale_type);
}

/* Makes the weight in a type. *why: the reason if the type cannot represent the values; the new tensor is
 * then closed. */
static int try_type(const source *s, const qdnnFileWeight_t *to, type_choice choice, tensor *made,
                    char why[200])
{
    int64_t at = 0;
    const char *refused;
    *made = (tensor){0};
    int status = type_refused(choice, s->from.name, to, &refused);
    snprintf(why, 200, "%s", refused ? refused : "");
    if (status != TOOL_OK || refused)
        return status;
    status = tensor_make(made, s->from.name, to);
    if (status != TOOL_OK)
        return status;
    if (!repack_fill(made, s->values, s->scales))
        snprintf(why, 200, "nothing is converted to this type; use quantize");
    else if (!repack_holds(made, s->values, &at)) {
        status = at < 0 ? TOOL_FAILED : TOOL_OK;
        snprintf(why, 200, "it cannot hold the value %.9g at [%lld, %lld]",
                 at < 0 ? 0 : (double)s->values[at], (long long)(at / made->columns),
                 (long long)(at % made->columns));
    }
    if (*why)
        tensor_close(made);
    return status;
}

/* ---- choosing the type ---- */

static int choose_smallest(rewrite *r, job *j, const source *s)
{
    for (int i = 0; i < 8 && candidates[r->out.kind][i]; i++) {
        char why[200];
        tensor made;
        int status = type_parse(candidates[r->out.kind][i], r->out.kind, &j->choice);
        if (status != TOOL_OK)
            return status;
        j->to = describe(s, &j->choice);
        status = try_type(s, &j->to, j->choice, &made, why);
        tensor_close(&made);
        if (status != TOOL_OK || !*why)
            return status;
    }
    return tool_fail("%s: no type of the output holds its values", j->from.name);
}

/* Weights that are plain, or that stay in the same kind of file, are kept unless the user chooses
 * otherwise. */
static int choose(rewrite *r, job *j, bool typed, const type_choice *usual)
{
    source s;
    bool stays = r->info.kind == r->out.kind || !j->from.quantized;
    if (typed && j->from.quantized)
        j->choice = *usual;
    int status = rewrite_rule(r, j->from.name, &j->choice, &j->named);
    if (status != TOOL_OK || j->choice.drop || (!j->choice.type && (stays || j->named)))
        return status;
    status = source_open(&s, &j->from);
    if (status != TOOL_OK)
        return status;
    if (!j->choice.type)
        status = choose_smallest(r, j, &s);
    else
        j->to = describe(&s, &j->choice);
    source_close(&s);
    return status;
}

static int choose_all(rewrite *r)
{
    type_choice usual = {0};
    int status = r->o->type ? type_parse(r->o->type, r->out.kind, &usual) : TOOL_OK;
    for (int i = 0; i < r->info.weights && status == TOOL_OK; i++)
        status = choose(r, &r->jobs[i], r->o->type != NULL, &usual);
    return status;
}

/* ---- the conversion ---- */

static int make(rewrite *r, job *j, tensor *made)
{
    source s;
    char why[200];
    (void)r;
    int status = source_open(&s, &j->from);
    if (status != TOOL_OK)
        return status;
    status = try_type(&s, &j->to, j->choice, made, why);
    if (status == TOOL_OK && *why)
        status = tool_fail("%s (%s) cannot become %s without loss: %s", j->from.name, j->from.format,
                           j->choice.type->name, why);
    j->lost = (figures){.known = status == TOOL_OK, .sqnr = INFINITY};
    source_close(&s);
    return status;
}

int command_convert(const options *o)
{
    rewrite r;
    int status = rewrite_open(&r, o);
    r.make = make;
    if (status == TOOL_OK)
        status = choose_all(&r);
    if (status == TOOL_OK)
        status = rewrite_check_rules(&r);
    if (status == TOOL_OK)
        status = rewrite_run(&r);
    rewrite_close(&r);
    return status;
}
