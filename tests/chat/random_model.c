/* A small model of random weights. */
#include "chat/random_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/tiny.h"
#include "support/random.h"
#include "test.h"

enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q8_0 = 8, ENTRY_F32 = 6, BLOCK = 32 };

static double next_value(random_model *m)
{
    return (double)(int64_t)random_next(&m->seed) / 9223372036854775808.0;
}

/* ---- storing: each function changes the values to those that are stored ---- */

static void put_f32(bytes *b, double *x)
{
    const float value = (float)*x;
    bytes_put(b, &value, sizeof value);
    *x = (double)value;
}

/* Values of 11 significant bits and exponents that f16 has. */
static void put_f16(bytes *b, double *x)
{
    int exponent;
    const double fraction = frexp(*x, &exponent);
    int64_t digits = llround(ldexp(fabs(fraction), 11));
    if (digits == 2048) {
        digits = 1024;
        exponent++;
    }
    if (exponent < -13 || digits == 0) { /* not normal: 0 */
        *x = 0;
        bytes_number(b, 0, 2);
        return;
    }
    const uint32_t bits =
        (fraction < 0 ? 0x8000u : 0) | (uint32_t)(exponent + 14) << 10 | ((uint32_t)digits & 1023);
    *x = ldexp(fraction < 0 ? -(double)digits : (double)digits, exponent - 11);
    bytes_number(b, bits, 2);
}

static void put_q8_0(bytes *b, double *x)
{
    double most = 0;
    for (int i = 0; i < BLOCK; i++)
        most = fmax(most, fabs(x[i]));
    double scale = most / 127;
    put_f16(b, &scale);
    for (int i = 0; i < BLOCK; i++) {
        const int code = scale > 0 ? (int)fmin(127, fmax(-127, nearbyint(x[i] / scale))) : 0;
        bytes_number(b, (uint64_t)(uint8_t)code, 1);
        x[i] = code * scale;
    }
}

/* ---- weights ---- */

static void name_weight(char *full, size_t size, int layer, const char *name, const char *what)
{
    if (layer < 0)
        snprintf(full, size, "%s.%s", name, what);
    else
        snprintf(full, size, "blk.%d.%s.%s", layer, name, what);
}

static void add_stack(random_model *m, gguf_maker *g, const char *name, uint32_t type, int64_t stack,
                      int64_t rows, int64_t columns, double size, double middle)
{
    static const struct {
        void (*put)(bytes *b, double *x);
        int count;
    } types[] = {[TYPE_F32] = {put_f32, 1}, [TYPE_F16] = {put_f16, 1}, [TYPE_Q8_0] = {put_q8_0, BLOCK}};
    const int64_t n = (stack ? stack : 1) * (rows ? rows : 1) * columns, all[] = {stack, rows, columns};
    const int first = stack ? 0 : rows ? 1 : 2;
    rm_weight *w = &m->weights[m->count++];
    bytes b = {0};
    if (m->count == RM_WEIGHTS_MAX)
        abort();
    *w = (rm_weight){.rows = rows, .columns = columns, .values = malloc((size_t)n * sizeof(double))};
    snprintf(w->name, sizeof w->name, "%s", name);
    for (int64_t i = 0; i < n; i++)
        w->values[i] = middle + size * next_value(m);
    for (int64_t i = 0; i < n; i += types[type].count)
        types[type].put(&b, w->values + i);
    gguf_tensor(g, name, type, 3 - first, all + first, b.data, b.size);
    bytes_free(&b);
}

static void add(random_model *m, gguf_maker *g, const char *name, uint32_t type, int64_t rows,
                int64_t columns, double size, double middle)
{
    add_stack(m, g, name, type, 0, rows, columns, size, middle);
}

static uint32_t next_type(const random_model *m, int layer)
{
    static const uint32_t mixed[] = {TYPE_Q8_0, TYPE_F16, TYPE_F32, TYPE_Q8_0, TYPE_F32};
    return m->kind.formats == RM_F32 ? TYPE_F32
           : m->kind.formats == RM_Q8
               ? TYPE_Q8_0
               : mixed[(m->count + layer + 5) % 5]; /* layer is -1 in front of the first */
}

static void add_matrix(random_model *m, gguf_maker *g, int layer, const char *name, int64_t rows,
                       int64_t columns, bool bias)
{
    const uint32_t type = next_type(m, layer);
    char full[64];
    name_weight(full, sizeof full, layer, name, "weight");
    add(m, g, full, type, rows, columns, 1.7 / sqrt((double)columns), 0);
    name_weight(full, sizeof full, layer, name, "bias");
    if (bias)
        add(m, g, full, TYPE_F32, 0, rows, 0.5, 0);
}

static void add_norm(random_model *m, gguf_maker *g, int layer, const char *name, int64_t columns)
{
    char full[64];
    name_weight(full, sizeof full, layer, name, "weight");
    add(m, g, full, TYPE_F32, 0, columns, 0.4, 1);
}

static void add_experts(random_model *m, gguf_maker *g, int i)
{
    static const struct {
        const char *name;
        int rows, columns;
    } stacks[] = {{"ffn_gate_exps", RM_INNER, RM_WIDTH},
                  {"ffn_up_exps", RM_INNER, RM_WIDTH},
                  {"ffn_down_exps", RM_WIDTH, RM_INNER}};
    char full[64];
    name_weight(full, sizeof full, i, "ffn_gate_inp", "weight");
    add(m, g, full, TYPE_F32, m->kind.experts, RM_WIDTH, 0.5, 0);
    for (int k = 0; k < 3; k++) {
        name_weight(full, sizeof full, i, stacks[k].name, "weight");
        add_stack(m, g, full, next_type(m, i), m->kind.experts, stacks[k].rows, stacks[k].columns,
                  1.7 / sqrt((double)stacks[k].columns), 0);
    }
}

static void add_layer(random_model *m, gguf_maker *g, int i)
{
    const rm_kind *k = &m->kind;
    const int q = RM_HEADS * RM_HEAD, kv = RM_KV_HEADS * RM_HEAD;
    add_norm(m, g, i, "attn_norm", RM_WIDTH);
    if (k->whole) {
        add_matrix(m, g, i, "attn_qkv", q + 2 * kv, RM_WIDTH, k->biases);
    } else {
        add_matrix(m, g, i, "attn_q", q, RM_WIDTH, k->biases);
        add_matrix(m, g, i, "attn_k", kv, RM_WIDTH, k->biases);
        add_matrix(m, g, i, "attn_v", kv, RM_WIDTH, k->biases);
    }
    if (k->head_norms) {
        add_norm(m, g, i, "attn_q_norm", RM_HEAD);
        add_norm(m, g, i, "attn_k_norm", RM_HEAD);
    }
    add_matrix(m, g, i, "attn_output", RM_WIDTH, q, false);
    if (k->post_norms)
        add_norm(m, g, i, "post_attention_norm", RM_WIDTH);
    add_norm(m, g, i, "ffn_norm", RM_WIDTH);
    if (k->experts) {
        add_experts(m, g, i);
        return;
    }
    if (k->whole) {
        add_matrix(m, g, i, "ffn_up", 2 * RM_INNER, RM_WIDTH, false);
    } else {
        add_matrix(m, g, i, "ffn_gate", RM_INNER, RM_WIDTH, false);
        add_matrix(m, g, i, "ffn_up", RM_INNER, RM_WIDTH, false);
    }
    add_matrix(m, g, i, "ffn_down", RM_WIDTH, RM_INNER, false);
    if (k->post_norms)
        add_norm(m, g, i, "post_ffw_norm", RM_WIDTH);
}

/* ---- the file ---- */

static void entry_u32(const random_model *m, gguf_maker *g, const char *key, uint32_t value)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", m->kind.architecture, key);
    if (value)
        gguf_entry_u32(g, full, value);
}

static void entry_f32(const random_model *m, gguf_maker *g, const char *key, float value)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", m->kind.architecture, key);
    if (value != 0)
        gguf_entry(g, full, ENTRY_F32, &value, sizeof value);
}

/* How rope goes beyond the context that a model was made for. */
static void add_rope_rule(const random_model *m, gguf_maker *g)
{
    const rm_kind *k = &m->kind;
    char full[128];
    snprintf(full, sizeof full, "%s.rope.scaling.type", k->architecture);
    if (k->yarn || k->longrope)
        gguf_entry_string(g, full, k->yarn ? "yarn" : "longrope");
    entry_u32(m, g, "rope.scaling.original_context_length", (uint32_t)k->original);
    entry_f32(m, g, "rope.scaling.factor", k->rope_factor);
    entry_f32(m, g, "rope.scaling.attn_factor", k->rope_attention);
}

static void add_entries(const random_model *m, gguf_maker *g)
{
    const rm_kind *k = &m->kind;
    gguf_entry_string(g, "general.architecture", k->architecture);
    entry_u32(m, g, "block_count", RM_LAYERS);
    entry_u32(m, g, "context_length", RM_CONTEXT);
    entry_u32(m, g, "embedding_length", RM_WIDTH);
    entry_u32(m, g, "feed_forward_length", RM_INNER);
    entry_u32(m, g, "attention.head_count", RM_HEADS);
    entry_u32(m, g, "attention.head_count_kv", RM_KV_HEADS);
    entry_u32(m, g, "attention.key_length", RM_HEAD);
    entry_u32(m, g, "attention.value_length", RM_HEAD);
    entry_u32(m, g, "rope.dimension_count", (uint32_t)k->rotary);
    entry_u32(m, g, "attention.sliding_window", (uint32_t)k->window);
    entry_u32(m, g, "expert_count", (uint32_t)k->experts);
    entry_u32(m, g, "expert_used_count", (uint32_t)k->used);
    entry_f32(m, g, "attention.layer_norm_rms_epsilon", 1e-5f);
    entry_f32(m, g, "rope.freq_base", 1000);
    add_rope_rule(m, g);
    entry_f32(m, g, "attn_logit_softcapping", k->attention_cap);
    entry_f32(m, g, "final_logit_softcapping", k->logit_cap);
    entry_f32(m, g, "attention.scale", k->attention_scale);
    entry_f32(m, g, "residual_scale", k->residual_scale);
    entry_f32(m, g, "embedding_scale", k->embedding_scale);
    entry_f32(m, g, "logit_scale", k->logit_scale);
    tiny_bpe(g, "smollm");
}

void random_model_make(random_model *m, rm_kind kind, uint64_t seed, const char *dir, const char *name)
{
    gguf_maker g = {0};
    *m = (random_model){.kind = kind, .vocabulary = TINY_BPE_COUNT, .seed = seed};
    add_entries(m, &g);
    add_matrix(m, &g, -1, "token_embd", m->vocabulary, RM_WIDTH, false);
    if (kind.untied)
        add_matrix(m, &g, -1, "output", m->vocabulary, RM_WIDTH, false);
    add_norm(m, &g, -1, "output_norm", RM_WIDTH);
    if (kind.divisors)
        add(m, &g, "rope_freqs.weight", TYPE_F32, 0, (kind.rotary ? kind.rotary : RM_HEAD) / 2, 0.5, 1.5);
    for (int i = 0; i < 2 && kind.longrope; i++)
        add(m, &g, i ? "rope_factors_short.weight" : "rope_factors_long.weight", TYPE_F32, 0,
            (kind.rotary ? kind.rotary : RM_HEAD) / 2, 0.5, i ? 1.2 : 3);
    for (int i = 0; i < RM_LAYERS; i++)
        add_layer(m, &g, i);
    bytes b = gguf_make(&g);
    bytes_write(&b, dir, name);
    bytes_free(&b);
}

void random_model_free(random_model *m)
{
    for (int i = 0; i < m->count; i++)
        free(m->weights[i].values);
}

/* ---- logits in f64 ---- */

static const rm_weight *weight(const random_model *m, int layer, const char *name, const char *what)
{
    char full[64];
    name_weight(full, sizeof full, layer, name, what);
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->weights[i].name, full) == 0)
            return &m->weights[i];
    return NULL;
}

/* Returns how many outputs there are: 0 without such a matrix. */
static int64_t product(const random_model *m, int layer, const char *name, const double *x, double *y)
{
    const rm_weight *w = weight(m, layer, name, "weight"), *bias = weight(m, layer, name, "bias");
    for (int64_t i = 0; w && i < w->rows; i++) {
        y[i] = bias ? bias->values[i] : 0;
        for (int64_t k = 0; k < w->columns; k++)
            y[i] += x[k] * w->values[i * w->columns + k];
    }
    return w ? w->rows : 0;
}

static void norm(const random_model *m, int layer, const char *name, const double *x, double *y)
{
    const rm_weight *w = weight(m, layer, name, "weight");
    const int64_t n = w ? w->columns : 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    const double factor = n ? 1 / sqrt(sum / (double)n + (double)1e-5f) : 0;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * factor * w->values[i];
}

/* The pair that turns `turns` times over the original context. */
static double pair_of_turns(const rm_kind *k, int rotary, double turns)
{
    return rotary * log(k->original / (turns * 2 * acos(-1))) / (2 * log(1000));
}

/* YaRN: pairs that turn more than 32 times keep their frequency, those that turn less than once have it divided, others are between. */
static double yarn(const rm_kind *k, int rotary, int pair, double f)
{
    const double low = fmax(floor(pair_of_turns(k, rotary, 32)), 0),
                 high = fmin(ceil(pair_of_turns(k, rotary, 1)), rotary - 1),
                 ramp = fmin(fmax((pair - low) / (high - low), 0), 1);
    return f / (double)k->rope_factor * ramp + f * (1 - ramp);
}

static double factor_of_tables(const rm_kind *k)
{
    const double given = k->rope_attention != 0 ? (double)k->rope_attention : 1;
    return k->yarn ? given * (0.1 * log((double)k->rope_factor) + 1) : given;
}

static void rotate(const random_model *m, int position, double *head)
{
    const rm_kind *k = &m->kind;
    const int rotary = k->rotary ? k->rotary : RM_HEAD, half = rotary / 2;
    const char *name = !k->longrope               ? "rope_freqs"
                       : k->original < RM_CONTEXT ? "rope_factors_long"
                                                  : "rope_factors_short";
    const rm_weight *divisors = weight(m, -1, name, "weight");
    const double factor = factor_of_tables(k);
    for (int i = 0; i < half; i++) {
        double f = pow(1000, -2.0 * i / rotary) / (divisors ? divisors->values[i] : 1);
        if (k->yarn)
            f = yarn(k, rotary, i, f);
        else if (k->rope_factor != 0)
            f /= (double)k->rope_factor;
        const int a = k->neighbours ? 2 * i : i, b = k->neighbours ? 2 * i + 1 : i + half;
        const double x = head[a], y = head[b], c = cos(position * f) * factor, s = sin(position * f) * factor;
        head[a] = x * c - y * s;
        head[b] = x * s + y * c;
    }
}

enum { QKV = (RM_HEADS + 2 * RM_KV_HEADS) * RM_HEAD };

static void make_qkv(const random_model *m, int layer, int position, const double *x, double *row)
{
    int64_t n = product(m, layer, "attn_qkv", x, row);
    if (n == 0) {
        n = product(m, layer, "attn_q", x, row);
        n += product(m, layer, "attn_k", x, row + n);
        product(m, layer, "attn_v", x, row + n);
    }
    for (int h = 0; h < RM_HEADS + RM_KV_HEADS; h++) {
        double *head = row + h * RM_HEAD;
        if (m->kind.head_norms)
            norm(m, layer, h < RM_HEADS ? "attn_q_norm" : "attn_k_norm", head, head);
        rotate(m, position, head);
    }
}

static void attend(const random_model *m, int layer, const double *qkv, int position, double *out)
{
    const rm_kind *k = &m->kind;
    const bool slides = k->window && !(k->window_period && layer % k->window_period == k->window_period - 1);
    const int first = slides && position + 1 > k->window ? position + 1 - k->window : 0;
    const double scale = k->attention_scale != 0 ? (double)k->attention_scale : 1 / sqrt((double)RM_HEAD);
    memset(out, 0, RM_HEADS * RM_HEAD * sizeof *out);
    for (int h = 0; h < RM_HEADS; h++) {
        const double *q = qkv + position * QKV + h * RM_HEAD;
        const int kv = h / (RM_HEADS / RM_KV_HEADS);
        double sum = 0, *o = out + h * RM_HEAD;
        for (int j = first; j <= position; j++) {
            const double *key = qkv + j * QKV + (RM_HEADS + kv) * RM_HEAD,
                         *value = key + RM_KV_HEADS * RM_HEAD;
            double score = 0;
            for (int i = 0; i < RM_HEAD; i++)
                score += q[i] * key[i];
            score *= scale;
            if (k->attention_cap != 0)
                score = (double)k->attention_cap * tanh(score / (double)k->attention_cap);
            const double p = exp(score); /* scores are small */
            sum += p;
            for (int i = 0; i < RM_HEAD; i++)
                o[i] += p * value[i];
        }
        for (int i = 0; i < RM_HEAD; i++)
            o[i] /= sum;
    }
}

static double gate(const rm_kind *k, double x)
{
    return k->gelu ? 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)))
                   : x / (1 + exp(-x));
}

static void add_to(const random_model *m, int layer, const char *post, double *part, double *h)
{
    if (m->kind.post_norms)
        norm(m, layer, post, part, part);
    for (int i = 0; i < RM_WIDTH; i++)
        h[i] += part[i] * (m->kind.residual_scale != 0 ? (double)m->kind.residual_scale : 1);
}

static void run_inner(const random_model *m, int layer, const double *x, double *y)
{
    double both[2 * RM_INNER];
    const int64_t n = product(m, layer, "ffn_gate", x, both);
    product(m, layer, "ffn_up", x, both + n);
    for (int i = 0; i < RM_INNER; i++)
        both[i] = gate(&m->kind, both[i]) * both[RM_INNER + i];
    product(m, layer, "ffn_down", both, y);
}

/* y = x W^T of one expert of a stack. */
static void expert_product(const random_model *m, int layer, const char *name, int expert, int rows,
                           int columns, const double *x, double *y)
{
    const double *w = weight(m, layer, name, "weight")->values + (int64_t)expert * rows * columns;
    for (int i = 0; i < rows; i++) {
        y[i] = 0;
        for (int k = 0; k < columns; k++)
            y[i] += x[k] * w[i * columns + k];
    }
}

/* The softmax of the chosen experts' logits is their share. */
static void run_experts(const random_model *m, int layer, const double *x, double *y)
{
    double logits[RM_EXPERTS_MAX], gates[RM_INNER], ups[RM_INNER], part[RM_WIDTH], sum = 0;
    bool chosen[RM_EXPERTS_MAX] = {false};
    product(m, layer, "ffn_gate_inp", x, logits);
    for (int k = 0; k < m->kind.used; k++) {
        int best = -1;
        for (int i = 0; i < m->kind.experts; i++)
            if (!chosen[i] && (best < 0 || logits[i] > logits[best]))
                best = i;
        chosen[best] = true;
        sum += exp(logits[best]);
    }
    memset(y, 0, RM_WIDTH * sizeof *y);
    for (int e = 0; e < m->kind.experts; e++) {
        if (!chosen[e])
            continue;
        expert_product(m, layer, "ffn_gate_exps", e, RM_INNER, RM_WIDTH, x, gates);
        expert_product(m, layer, "ffn_up_exps", e, RM_INNER, RM_WIDTH, x, ups);
        for (int i = 0; i < RM_INNER; i++)
            gates[i] = gate(&m->kind, gates[i]) * ups[i];
        expert_product(m, layer, "ffn_down_exps", e, RM_WIDTH, RM_INNER, gates, part);
        for (int i = 0; i < RM_WIDTH; i++)
            y[i] += part[i] * exp(logits[e]) / sum;
    }
}

static void run_layer(const random_model *m, int layer, int count, double *h, double *qkv)
{
    double x[RM_WIDTH], y[RM_HEADS * RM_HEAD], part[RM_WIDTH];
    for (int t = 0; t < count; t++) {
        norm(m, layer, "attn_norm", h + t * RM_WIDTH, x);
        make_qkv(m, layer, t, x, qkv + t * QKV);
    }
    for (int t = 0; t < count; t++) {
        attend(m, layer, qkv, t, y);
        product(m, layer, "attn_output", y, part);
        add_to(m, layer, "post_attention_norm", part, h + t * RM_WIDTH);
        norm(m, layer, "ffn_norm", h + t * RM_WIDTH, x);
        if (m->kind.experts)
            run_experts(m, layer, x, part);
        else
            run_inner(m, layer, x, part);
        add_to(m, layer, "post_ffw_norm", part, h + t * RM_WIDTH);
    }
}

void random_model_logits(const random_model *m, const int32_t *tokens, int count, double *logits)
{
    const rm_kind *k = &m->kind;
    const rm_weight *embedding = weight(m, -1, "token_embd", "weight");
    double *h = malloc((size_t)count * RM_WIDTH * sizeof *h),
           *qkv = malloc((size_t)count * QKV * sizeof *qkv);
    double x[RM_WIDTH], factor = k->embedding_scale != 0 ? (double)k->embedding_scale : 1;
    if (k->scaled_embedding)
        factor = sqrt((double)RM_WIDTH);
    for (int t = 0; t < count; t++)
        for (int i = 0; i < RM_WIDTH; i++)
            h[t * RM_WIDTH + i] = factor * embedding->values[tokens[t] * RM_WIDTH + i];
    for (int i = 0; i < RM_LAYERS; i++)
        run_layer(m, i, count, h, qkv);
    for (int t = 0; t < count; t++) {
        double *row = logits + (int64_t)t * m->vocabulary;
        norm(m, -1, "output_norm", h + t * RM_WIDTH, x);
        product(m, -1, k->untied ? "output" : "token_embd", x, row);
        for (int i = 0; i < m->vocabulary; i++) {
            row[i] /= k->logit_scale != 0 ? (double)k->logit_scale : 1;
            if (k->logit_cap != 0)
                row[i] = (double)k->logit_cap * tanh(row[i] / (double)k->logit_cap);
        }
    }
    free(h);
    free(qkv);
}
