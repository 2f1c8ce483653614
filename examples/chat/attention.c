/* The attention of a layer. */
#include "graph.h"

/* Heads with norms of their own: queries and keys are normed into another row, values copied. */
static int norm_heads(body *s, const layer *l, int qkv, int64_t row)
{
    const settings *m = &s->m->s;
    const int64_t keys = m->heads * m->key_size, values = keys + m->kv_heads * m->key_size,
                  size = m->kv_heads * m->value_size;
    const size_t offset = (size_t)values * type_bytes(s->b.type);
    const int y = builder_rows(&s->b, "normed heads", s->b.type, row);
    const qdnnProgramBinding_t copied[] = {{QDNN_OPERAND_X, qkv, offset}, {QDNN_OPERAND_Y, y, offset}};
    qdnnPlan_t plan;
    builder_norm(&s->b, "norm of queries", l->query_norm, m->eps, qkv, y, m->heads, row, 0, s->b.type,
                 s->b.type);
    builder_norm(&s->b, "norm of keys", l->key_norm, m->eps, qkv, y, m->kv_heads, row, (size_t)keys,
                 s->b.type, s->b.type);
    builder_shape(&s->b, s->b.x, s->b.type, 1, size, row);
    builder_shape(&s->b, s->b.y, s->b.type, 1, size, row);
    ok(qdnnCreateCopyPlan(s->b.handle, s->b.x, s->b.y, &plan));
    builder_step(&s->b, "values", plan, copied, 2);
    return y;
}

/* The parts of the cache that a plan reads or writes; returns how many. */
static int bind_cache(const body *s, const int tensors[4], qdnnProgramBinding_t *bindings)
{
    static const qdnnOperand_t operands[] = {QDNN_OPERAND_KEYS, QDNN_OPERAND_VALUES, QDNN_OPERAND_KEY_SCALE,
                                             QDNN_OPERAND_VALUE_SCALE};
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (tensors[i] >= 0)
            bindings[n++] = (qdnnProgramBinding_t){operands[i], tensors[i], 0};
    if (s->c->table)
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_PAGE_TABLE, s->table, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_SEQUENCE, s->sequence, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_KEY_INDEX, s->position, 0};
    return n;
}

static void add_cache(body *s, int64_t number, int tensors[4])
{
    static const char *const names[] = {"keys", "values", "scales of keys", "scales of values"};
    const cache_layer *l = &s->c->layers[number];
    void *const data[] = {l->keys, l->values, l->key_scale, l->value_scale};
    const size_t bytes[] = {s->c->key_bytes, s->c->value_bytes, s->c->key_scale_bytes,
                            s->c->value_scale_bytes};
    const qdnnDataType_t type = s->c->keys.type ? s->c->keys.type : QDNN_DATA_U8;
    for (int i = 0; i < 4; i++) {
        const qdnnDataType_t of = i < 2 ? type : QDNN_DATA_F32;
        tensors[i] =
            data[i] ? builder_fixed(&s->b, names[i], of, (int64_t)(bytes[i] / type_bytes(of)), data[i]) : -1;
    }
}

static qdnnRope_t describe_rope(const body *s)
{
    return (qdnnRope_t){.size = sizeof(qdnnRope_t),
                        .rotary = s->m->s.rope.rotary,
                        .positions = s->m->s.context,
                        .pairs = s->m->s.family->pairs,
                        .slots = QDNN_KV_SLOTS_BY_SEQUENCE};
}

static int bind_tables(const body *s, qdnnProgramBinding_t *bindings)
{
    bindings[0] = (qdnnProgramBinding_t){QDNN_OPERAND_COS, s->cos, 0};
    bindings[1] = (qdnnProgramBinding_t){QDNN_OPERAND_SIN, s->sin, 0};
    bindings[2] = (qdnnProgramBinding_t){QDNN_OPERAND_POSITION, s->position, 0};
    return 3;
}

/* Queries are rotated; keys are rotated, and keys and values are written into the cache. */
static int rope_and_store(body *s, int x, int64_t row, const int tensors[4])
{
    const settings *m = &s->m->s;
    const qdnnRope_t r = describe_rope(s);
    const int y = builder_rows(&s->b, "queries", s->b.type, m->heads * m->key_size);
    qdnnProgramBinding_t bindings[16];
    qdnnPlan_t plan;
    int n = bind_cache(s, tensors, bindings);
    n += bind_tables(s, bindings + n);
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_X, x, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_Y, y, 0};
    builder_shape(&s->b, s->b.x, s->b.type, 1, row, row);
    builder_shape(&s->b, s->b.y, s->b.type, m->heads, m->key_size, m->heads * m->key_size);
    ok(qdnnCreateRopePlan(s->b.handle, &r, s->b.x, s->b.y, &s->c->keys, &s->c->values, &plan));
    builder_step(&s->b, "rope", plan, bindings, n);
    return y;
}

/* ---- caches of blocks, which other plans write: rows are packed first ---- */

/* Heads of a row, behind `offset` elements. */
static int rope_heads(body *s, const char *name, int x, int64_t row, int64_t offset, int64_t heads)
{
    const int64_t size = s->m->s.key_size;
    const qdnnRope_t r = describe_rope(s);
    const int y = builder_rows(&s->b, name, s->b.type, heads * size);
    qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, x, (size_t)offset * type_bytes(s->b.type)},
                                       {QDNN_OPERAND_Y, y, 0},
                                       {QDNN_OPERAND_COS, 0, 0},
                                       {QDNN_OPERAND_COS, 0, 0},
                                       {QDNN_OPERAND_COS, 0, 0}};
    qdnnPlan_t plan;
    const int n = 2 + bind_tables(s, bindings + 2);
    builder_shape(&s->b, s->b.x, s->b.type, 1, heads * size, row);
    builder_shape(&s->b, s->b.y, s->b.type, heads, size, heads * size);
    ok(qdnnCreateRopePlan(s->b.handle, &r, s->b.x, s->b.y, NULL, NULL, &plan));
    builder_step(&s->b, name, plan, bindings, n);
    return y;
}

static int pack(body *s, const char *name, int x, int64_t row, int64_t offset, int64_t columns)
{
    const int y = builder_rows(&s->b, name, s->b.type, columns);
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, x, (size_t)offset * type_bytes(s->b.type)},
                                             {QDNN_OPERAND_Y, y, 0}};
    qdnnPlan_t plan;
    builder_shape(&s->b, s->b.x, s->b.type, 1, columns, row);
    builder_shape(&s->b, s->b.y, s->b.type, 1, columns, columns);
    ok(qdnnCreateCopyPlan(s->b.handle, s->b.x, s->b.y, &plan));
    builder_step(&s->b, name, plan, bindings, 2);
    return y;
}

static void store(body *s, const char *name, int x, const qdnnKvCache_t *kv, int tensor)
{
    const int64_t columns = kv->heads * kv->headSize, dims[] = {s->b.g->rows, columns},
                  table[] = {kv->pages * kv->pageSlots, columns};
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_ROW_INDEX, s->slot, 0}, {QDNN_OPERAND_CODES, tensor, 0}};
    qdnnPlan_t plan;
    ok(qdnnSetTensorDescriptor(s->b.x, s->b.type, 2, dims, NULL));
    ok(qdnnSetTensorDescriptor(s->b.y, s->b.type, 2, table, NULL));
    ok(qdnnCreateQuantizeRowsPlan(s->b.handle, s->b.x, kv->quant, QDNN_DATA_I32, s->b.y, &plan));
    builder_step(&s->b, name, plan, bindings, 3);
}

static int rope_and_store_blocks(body *s, int x, int64_t row, const int tensors[4])
{
    const settings *m = &s->m->s;
    const int64_t keys = m->heads * m->key_size, values = keys + m->kv_heads * m->key_size;
    const int q = rope_heads(s, "queries", x, row, 0, m->heads),
              k = rope_heads(s, "rotated keys", x, row, keys, m->kv_heads),
              v = pack(s, "packed values", x, row, values, row - values);
    store(s, "store keys", k, &s->c->keys, tensors[0]);
    store(s, "store values", v, &s->c->values, tensors[1]);
    return q;
}

/* ---- attention ---- */

static qdnnPlan_t plan_attention(body *s, int64_t window)
{
    const settings *m = &s->m->s;
    qdnnAttention_t a = {.size = sizeof a,
                         .mode = s->tensor ? QDNN_ATTENTION_TENSOR : QDNN_ATTENTION_EXACT,
                         .scale = m->attention_scale,
                         .cap = m->attention_cap,
                         .sees = QDNN_SEES_KEY_INDEX,
                         .window = window,
                         .counters = 1};
    qdnnPlan_t plan;
    builder_shape(&s->b, s->b.x, s->b.type, m->heads, m->key_size, m->heads * m->key_size);
    builder_shape(&s->b, s->b.y, s->b.type, m->heads, m->value_size, m->heads * m->value_size);
    qdnnStatus_t status =
        qdnnCreateAttentionPlan(s->b.handle, &a, s->b.x, &s->c->keys, &s->c->values, s->b.y, &plan);
    if (s->tensor && status == QDNN_STATUS_NOT_SUPPORTED) { /* with these sizes, or not yet */
        a.mode = QDNN_ATTENTION_EXACT;
        s->out->exact_attention = true;
        status = qdnnCreateAttentionPlan(s->b.handle, &a, s->b.x, &s->c->keys, &s->c->values, s->b.y, &plan);
    }
    ok(status);
    return plan;
}

int body_attention(body *s, const layer *l, int64_t number, int x)
{
    const settings *m = &s->m->s;
    const int64_t row = l->qkv.outputs;
    const product p = {.name = "qkv",
                       .w = &l->qkv,
                       .x = x,
                       .y = builder_rows(&s->b, "qkv", s->b.type, row),
                       .residual = -1,
                       .y_type = s->b.type,
                       .alpha = 1};
    qdnnProgramBinding_t bindings[16];
    int tensors[4];
    add_cache(s, number, tensors);
    builder_product(&s->b, &p);
    const int heads = l->query_norm.data ? norm_heads(s, l, p.y, row) : p.y;
    const int q = s->c->has_blocks ? rope_and_store_blocks(s, heads, row, tensors)
                                   : rope_and_store(s, heads, row, tensors);
    const int y = builder_rows(&s->b, "attention", s->b.type, m->heads * m->value_size);
    qdnnPlan_t plan = plan_attention(s, l->window);
    int n = bind_cache(s, tensors, bindings);
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_X, q, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_Y, y, 0};
    bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_COUNTERS, s->counters, 0};
    builder_step(&s->b, "attention", plan, bindings, n);
    return y;
}
