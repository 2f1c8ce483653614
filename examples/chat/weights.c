/* The tensors of the file on the device, as they are stored. */
#include "chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    qdnnHandle_t handle;
    qdnnFile_t file;
    model *m;
    int64_t layer; /* -1: none */
} loader;

static const char *full_name(const loader *l, const char *name)
{
    static char full[128];
    if (l->layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "blk.%lld.%s", (long long)l->layer, name);
    return full;
}

static bool find(const loader *l, const char *name, qdnnFileWeight_t *w)
{
    int index;
    const char *full = full_name(l, name);
    if (qdnnFindFileWeight(l->file, full, &index) || qdnnGetFileWeight(l->file, index, w))
        return false;
    if (w->problem)
        fail("%s: %s", full, w->problem);
    return true;
}

static void *upload(const loader *l, const void *data, size_t bytes)
{
    l->m->bytes += bytes;
    return device_copy(l->handle, data, bytes);
}

/* ---- vectors ---- */

/* One without data, if the file has none and it is not needed. */
static vector load_vector(const loader *l, const char *name, int64_t elements, bool needed)
{
    qdnnFileWeight_t w;
    qdnnFileTensor_t t;
    if (!find(l, name, &w)) {
        if (needed)
            fail("the file has no %s", full_name(l, name));
        return (vector){0};
    }
    if (qdnnGetFileTensor(l->file, w.operand[0].tensor, &t) || t.rank != 1 || t.dims[0] != elements ||
        (t.type != QDNN_DATA_F32 && t.type != QDNN_DATA_F16 && t.type != QDNN_DATA_BF16))
        fail("%s is not f32, f16 or bf16 [%lld]", w.name, (long long)elements);
    return (vector){upload(l, t.data, t.bytes), t.type, elements};
}

/* ---- matrices ---- */

static bool find_matrix(const loader *l, const char *name, int64_t inputs, matrix *out)
{
    qdnnFileWeight_t w;
    if (!find(l, name, &w))
        return false;
    if (w.rank != 2 || w.operands != 1 || w.dims[1] != inputs)
        fail("%s is not a matrix [outputs, %lld]", w.name, (long long)inputs);
    *out = (matrix){.bytes = (size_t)w.operand[0].bytes, .weight = w, .outputs = w.dims[0], .inputs = inputs};
    return true;
}

static bool one_format(const matrix *a, const matrix *b)
{
    return a->weight.weights == b->weight.weights && a->weight.extent == b->weight.extent &&
           a->weight.settings == 0 && b->weight.settings == 0;
}

static void *load_bias(const loader *l, const char *const *names, const matrix *parts, int from, int to)
{
    int64_t count = 0, at = 0;
    bool any = false;
    for (int i = from; i < to; i++)
        count += parts[i].outputs;
    float *bias = take((size_t)count * sizeof *bias);
    for (int i = from; i < to; i++) {
        char name[64];
        qdnnFileWeight_t w;
        snprintf(name, sizeof name, "%s.bias", names[i]);
        if (find(l, name, &w)) {
            if (w.weights != QDNN_WEIGHTS_F32 ||
                w.operand[0].bytes != (size_t)parts[i].outputs * sizeof *bias)
                fail("%s is not f32 [%lld]", w.name, (long long)parts[i].outputs);
            memcpy(bias + at, w.operand[0].data, w.operand[0].bytes);
            any = true;
        }
        at += parts[i].outputs;
    }
    void *data = any ? upload(l, bias, (size_t)count * sizeof *bias) : NULL;
    free(bias);
    return data;
}

/* Rows of blocks follow each other, so several matrices of one format are one with the rows of all. */
static void join(const loader *l, joint *j)
{
    size_t bytes = 0, at = 0;
    for (int i = 0; i < j->parts; i++)
        bytes += j->part[i].bytes;
    char *data = device_take(l->handle, bytes);
    for (int i = 0; i < j->parts; at += j->part[i++].bytes)
        ok(qdnnCopyToDevice(l->handle, data + at, j->part[i].weight.operand[0].data, j->part[i].bytes));
    j->part[0].data = data;
    j->part[0].bytes = bytes;
    j->part[0].outputs = j->part[0].weight.dims[0] = j->outputs;
    j->parts = 1;
    l->m->bytes += bytes;
}

/* Tensors NAME.weight, with their biases. None: outputs of 0. */
static joint load_joint(const loader *l, const char *const *names, int count, int64_t inputs)
{
    joint j = {.parts = count};
    bool alike = true;
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.weight", names[i]);
        if (!find_matrix(l, name, inputs, &j.part[i])) {
            if (i)
                fail("the file has no %s", full_name(l, name));
            return (joint){0};
        }
        alike &= one_format(&j.part[0], &j.part[i]);
        j.outputs += j.part[i].outputs;
    }
    for (int i = 0; i < count; i++)
        j.bias[i] = alike ? NULL : load_bias(l, names, j.part, i, i + 1);
    if (alike) {
        j.bias[0] = load_bias(l, names, j.part, 0, count);
        join(l, &j);
    }
    for (int i = 0; i < count && !alike; i++)
        j.part[i].data = upload(l, j.part[i].weight.operand[0].data, j.part[i].bytes);
    return j;
}

/* The first of two ways to store it that the file has. */
static joint load_either(const loader *l, const char *const *names, int count, const char *whole,
                         int64_t inputs, int64_t outputs)
{
    joint j = load_joint(l, names, count, inputs);
    if (j.outputs == 0)
        j = load_joint(l, &whole, 1, inputs);
    if (j.outputs == 0)
        fail("the file has no %s.weight", full_name(l, whole));
    if (outputs && j.outputs != outputs)
        fail("%s has %lld outputs instead of %lld", full_name(l, names[0]), (long long)j.outputs,
             (long long)outputs);
    return j;
}

/* ---- mixtures of experts ---- */

static matrix find_stack(const loader *l, const char *name, int64_t inputs)
{
    const settings *s = &l->m->s;
    qdnnFileWeight_t w;
    if (!find(l, name, &w))
        fail("the file has no %s", full_name(l, name));
    if (w.rank != 3 || w.operands != 1 || w.dims[0] != s->experts || w.dims[2] != inputs)
        fail("%s is not a stack [%lld, outputs, %lld]", w.name, (long long)s->experts, (long long)inputs);
    return (matrix){.bytes = (size_t)w.operand[0].bytes, .weight = w, .outputs = w.dims[1], .inputs = inputs};
}

static void upload_stack(const loader *l, matrix *x)
{
    x->data = upload(l, x->weight.operand[0].data, x->bytes);
}

/* Each expert's gate and then its up. */
static void join_stacks(const loader *l, matrix *gate, const matrix *up)
{
    const int64_t experts = l->m->s.experts;
    const size_t part = gate->bytes / (size_t)experts;
    char *data = device_take(l->handle, 2 * gate->bytes);
    for (int64_t i = 0; i < 2 * experts; i++) {
        const matrix *from = i % 2 ? up : gate;
        ok(qdnnCopyToDevice(l->handle, data + (size_t)i * part,
                            (const char *)from->weight.operand[0].data + (size_t)(i / 2) * part, part));
    }
    gate->data = data;
    gate->bytes *= 2;
    gate->outputs *= 2;
    gate->weight.dims[1] = gate->outputs;
    l->m->bytes += gate->bytes;
}

static mixture load_mixture(const loader *l)
{
    static const char *const router[] = {"ffn_gate_inp"};
    const settings *s = &l->m->s;
    mixture x = {.router = load_joint(l, router, 1, s->width)};
    if (x.router.outputs == 0)
        return x; /* this layer has none */
    if (x.router.outputs != s->experts || s->used_experts < 1 || s->used_experts > s->experts)
        fail("%s chooses among %lld experts; the file says %lld of %lld", full_name(l, "ffn_gate_inp.weight"),
             (long long)x.router.outputs, (long long)s->used_experts, (long long)s->experts);
    x.gate = find_stack(l, "ffn_gate_exps.weight", s->width);
    x.up = find_stack(l, "ffn_up_exps.weight", s->width);
    x.inner = x.gate.outputs;
    x.down = find_stack(l, "ffn_down_exps.weight", x.inner);
    if (x.up.outputs != x.inner || x.down.outputs != s->width)
        fail("the experts of layer %lld have matrices of different sizes", (long long)l->layer);
    if (one_format(&x.gate, &x.up)) {
        join_stacks(l, &x.gate, &x.up);
    } else {
        upload_stack(l, &x.gate);
        upload_stack(l, &x.up);
    }
    upload_stack(l, &x.down);
    return x;
}

/* ---- layers ---- */

static layer load_layer(const loader *l)
{
    static const char *const qkv[] = {"attn_q", "attn_k", "attn_v"},
                             *const gate_up[] = {"ffn_gate", "ffn_up"}, *const out[] = {"attn_output"},
                             *const down[] = {"ffn_down"};
    const settings *s = &l->m->s;
    layer y = {.attention_norm = load_vector(l, "attn_norm.weight", s->width, true),
               .query_norm = load_vector(l, "attn_q_norm.weight", s->key_size, false),
               .key_norm = load_vector(l, "attn_k_norm.weight", s->key_size, false),
               .attention_post_norm = load_vector(l, "post_attention_norm.weight", s->width, false),
               .inner_norm = load_vector(l, "ffn_norm.weight", s->width, true),
               .inner_post_norm = load_vector(l, "post_ffw_norm.weight", s->width, false),
               .window = settings_window(l->file, s, l->layer)};
    y.qkv = load_either(l, qkv, 3, "attn_qkv", s->width,
                        s->heads * s->key_size + s->kv_heads * (s->key_size + s->value_size));
    y.out = load_either(l, out, 1, out[0], s->heads * s->value_size, s->width);
    if (s->experts)
        y.mixture = load_mixture(l);
    if (y.mixture.router.outputs == 0) {
        y.gate_up = load_either(l, gate_up, 2, "ffn_up", s->width, 0);
        y.down = load_either(l, down, 1, down[0], y.gate_up.outputs / 2, s->width);
    }
    if (!y.query_norm.data != !y.key_norm.data)
        fail("layer %lld has a norm of queries or keys without the other", (long long)l->layer);
    return y;
}

static void load_rope(const loader *l)
{
    const int64_t context = l->m->s.context, count = context * l->m->s.rope.rotary / 2;
    float *c = take((size_t)count * sizeof *c), *s = take((size_t)count * sizeof *s);
    ok(qdnnMakeRopeTables(&l->m->s.rope, 0, context, c, s));
    l->m->cos = device_copy(l->handle, c, (size_t)count * sizeof *c);
    l->m->sin = device_copy(l->handle, s, (size_t)count * sizeof *s);
    free(c);
    free(s);
}

model *model_load(qdnnHandle_t handle, qdnnFile_t file, int64_t context)
{
    model *m = take(sizeof *m);
    loader l = {handle, file, m, -1};
    m->s = settings_read(file, context);
    m->layers = take((size_t)m->s.layers * sizeof *m->layers);
    if (!find_matrix(&l, "token_embd.weight", m->s.width, &m->embedding))
        fail("the file has no token_embd.weight");
    m->embedding.data = upload(&l, m->embedding.weight.operand[0].data, m->embedding.bytes);
    m->s.vocabulary = m->embedding.outputs;
    if (find_matrix(&l, "output.weight", m->s.width, &m->output))
        m->output.data = upload(&l, m->output.weight.operand[0].data, m->output.bytes);
    else
        m->output = m->embedding; /* tied */
    m->output_norm = load_vector(&l, "output_norm.weight", m->s.width, true);
    for (l.layer = 0; l.layer < m->s.layers; l.layer++)
        m->layers[l.layer] = load_layer(&l);
    load_rope(&l);
    return m;
}

static void free_joint(qdnnHandle_t handle, joint *j)
{
    for (int i = 0; i < j->parts; i++) {
        ok(qdnnFree(handle, j->part[i].data));
        ok(qdnnFree(handle, j->bias[i]));
    }
}

void model_free(qdnnHandle_t handle, model *m)
{
    for (int64_t i = 0; i < m->s.layers; i++) {
        layer *y = &m->layers[i];
        void *const vectors[] = {y->attention_norm.data,      y->query_norm.data, y->key_norm.data,
                                 y->attention_post_norm.data, y->inner_norm.data, y->inner_post_norm.data};
        for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++)
            ok(qdnnFree(handle, vectors[k]));
        free_joint(handle, &y->qkv);
        free_joint(handle, &y->out);
        free_joint(handle, &y->gate_up);
        free_joint(handle, &y->down);
        free_joint(handle, &y->mixture.router);
        ok(qdnnFree(handle, y->mixture.gate.data));
        ok(qdnnFree(handle, y->mixture.up.data));
        ok(qdnnFree(handle, y->mixture.down.data));
    }
    if (m->output.data != m->embedding.data)
        ok(qdnnFree(handle, m->output.data));
    ok(qdnnFree(handle, m->embedding.data));
    ok(qdnnFree(handle, m->output_norm.data));
    ok(qdnnFree(handle, m->cos));
    ok(qdnnFree(handle, m->sin));
    free(m->s.rope_divisors);
    free(m->layers);
    free(m);
}
