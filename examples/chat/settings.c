/* What a file says about its model. */
#include "chat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const family families[] = {
    {"llama", QDNN_ROPE_NEIGHBOURS, QDNN_ACTIVATION_SILU, false, 0}, /* also mistral, mixtral, smollm */
    {"granite", QDNN_ROPE_NEIGHBOURS, QDNN_ACTIVATION_SILU, false, 0},
    {"qwen2", QDNN_ROPE_HALVES, QDNN_ACTIVATION_SILU, false, 0},
    {"qwen3", QDNN_ROPE_HALVES, QDNN_ACTIVATION_SILU, false, 0},
    {"qwen3moe", QDNN_ROPE_HALVES, QDNN_ACTIVATION_SILU, false, 0},
    {"phi3", QDNN_ROPE_HALVES, QDNN_ACTIVATION_SILU, false, 0},
    {"gemma", QDNN_ROPE_HALVES, QDNN_ACTIVATION_GELU_TANH, true, 0},
    {"gemma2", QDNN_ROPE_HALVES, QDNN_ACTIVATION_GELU_TANH, true, 2},
};
enum { CONTEXT = 4096 }; /* unless another one is asked for */
enum { FAMILIES = sizeof families / sizeof families[0] };

static const family *find_family(qdnnFile_t file)
{
    const view name = metadata_text(file, "general.architecture");
    text known = {0};
    for (int i = 0; i < FAMILIES; i++)
        if (view_is(name, families[i].name))
            return &families[i];
    for (int i = 0; i < FAMILIES; i++)
        text_print(&known, "%s%s", i ? ", " : "", families[i].name);
    fail("the model is of the architecture '%.*s'; known are %s", (int)name.size, name.data ? name.data : "",
         known.data);
}

/* Keys of the metadata begin with the architecture's name. */
static const char *key(const family *f, const char *rest)
{
    static char full[128];
    snprintf(full, sizeof full, "%s.%s", f->name, rest);
    return full;
}

static double number(qdnnFile_t file, const family *f, const char *rest, double fallback)
{
    return metadata_number(file, key(f, rest), fallback);
}

static int64_t at_least(int64_t least, qdnnFile_t file, const family *f, const char *rest, int64_t fallback)
{
    const double value = number(file, f, rest, (double)fallback);
    if (!(value >= (double)least && value <= 1 << 30))
        fail("the file's %s is %g; it must be a number from %lld to 2^30", key(f, rest), value,
             (long long)least);
    return (int64_t)value;
}

static int64_t count(qdnnFile_t file, const family *f, const char *rest, int64_t fallback)
{
    return at_least(1, file, f, rest, fallback);
}

/* ---- rope ---- */

/* Frequencies may be divided one by one, by a tensor of the file; those of long contexts by another one than those of short ones. */
static float *read_divisors(qdnnFile_t file, int64_t pairs, bool is_long)
{
    const char *const names[] = {"rope_freqs.weight",
                                 is_long ? "rope_factors_long.weight" : "rope_factors_short.weight"};
    for (int i = 0; i < 2; i++) {
        int index;
        qdnnFileTensor_t t;
        if (qdnnFindFileTensor(file, names[i], &index) || qdnnGetFileTensor(file, index, &t))
            continue;
        if (t.type != QDNN_DATA_F32 || t.rank != 1 || t.dims[0] != pairs)
            fail("%s is not f32 [%lld]", names[i], (long long)pairs);
        float *divisors = take(t.bytes);
        memcpy(divisors, t.data, t.bytes);
        return divisors;
    }
    return NULL;
}

static void read_rope(qdnnFile_t file, settings *s)
{
    const family *f = s->family;
    qdnnRopeTables_t *r = &s->rope;
    *r = (qdnnRopeTables_t){.size = sizeof *r,
                            .rotary = count(file, f, "rope.dimension_count", s->key_size),
                            .base = number(file, f, "rope.freq_base", 10000),
                            .attentionFactor = (float)number(file, f, "rope.scaling.attn_factor", 0)};
    const int64_t original = count(file, f, "rope.scaling.original_context_length", s->trained);
    const view rule = metadata_text(file, key(f, "rope.scaling.type"));
    r->factor = number(file, f, "rope.scaling.factor", number(file, f, "rope.scale_linear", 1));
    if (view_is(rule, "yarn")) {
        const double usual = 0.1 * log(r->factor) + 1;
        r->rule = QDNN_ROPE_RULE_YARN;
        r->originalPositions = original;
        r->betaFast = number(file, f, "rope.scaling.yarn_beta_fast", 0);
        r->betaSlow = number(file, f, "rope.scaling.yarn_beta_slow", 0);
        r->attentionFactor *= (float)usual;
    } else if (r->factor != 1 && (rule.size == 0 || view_is(rule, "linear"))) {
        r->rule = QDNN_ROPE_RULE_LINEAR;
    }
    s->rope_divisors = read_divisors(file, r->rotary / 2, s->context > original);
    r->divisors = s->rope_divisors;
}

/* ---- all ---- */

settings settings_read(qdnnFile_t file, int64_t context)
{
    const family *f = find_family(file);
    settings s = {.family = f,
                  .layers = count(file, f, "block_count", 0),
                  .width = count(file, f, "embedding_length", 0),
                  .heads = count(file, f, "attention.head_count", 0),
                  .trained = count(file, f, "context_length", 2048),
                  .eps = (float)number(file, f, "attention.layer_norm_rms_epsilon", 1e-5),
                  .attention_scale = (float)number(file, f, "attention.scale", 0),
                  .attention_cap = (float)number(file, f, "attn_logit_softcapping", 0),
                  .logit_cap = (float)number(file, f, "final_logit_softcapping", 0),
                  .embedding_factor = (float)number(file, f, "embedding_scale", 1),
                  .residual_factor = (float)number(file, f, "residual_scale", 1),
                  .experts = at_least(0, file, f, "expert_count", 0),
                  .used_experts = at_least(0, file, f, "expert_used_count", 0),
                  .expert_factor = (float)number(file, f, "expert_weights_scale", 1)};
    s.kv_heads = count(file, f, "attention.head_count_kv", s.heads);
    s.key_size = count(file, f, "attention.key_length", s.width / s.heads);
    s.value_size = count(file, f, "attention.value_length", s.key_size);
    s.logit_factor = (float)(1 / number(file, f, "logit_scale", 1)); /* granite divides by it */
    if (f->scales_embedding)
        s.embedding_factor = sqrtf((float)s.width);
    s.context = context ? context : s.trained < CONTEXT ? s.trained : CONTEXT;
    read_rope(file, &s);
    return s;
}

int64_t settings_window(qdnnFile_t file, const settings *s, int64_t layer)
{
    const family *f = s->family;
    const char *pattern = "attention.sliding_window_pattern";
    const int64_t window = at_least(0, file, f, "attention.sliding_window", 0);
    const metadata_list list = metadata_list_open(file, key(f, pattern));
    if (list.count > 1) /* whether each layer has one */
        return metadata_number_at(file, key(f, pattern), (uint64_t)layer, 0) != 0 ? window : 0;
    const int64_t period = at_least(0, file, f, pattern, f->window_period);
    return period > 1 && layer % period == period - 1 ? 0 : window;
}
