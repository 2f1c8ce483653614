/* The model as two programs. */
#include "graph.h"

#include <string.h>

/* ---- pieces ---- */

static int norm(body *s, const char *name, vector weight)
{
    const int64_t width = s->m->s.width;
    const int y = builder_rows(&s->b, name, s->b.type, width);
    builder_norm(&s->b, name, weight, s->m->s.eps, s->h, y, 1, width, 0, QDNN_DATA_F32, s->b.type);
    return y;
}

void pointwise(builder *b, const char *name, qdnnPointwise_t p, int x, int second, int y, int64_t columns,
               qdnnDataType_t type)
{
    const int64_t halves = p.kind == QDNN_POINTWISE_GATED ? 2 : 1;
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, x, 0}, {QDNN_OPERAND_Y, y, 0}, {QDNN_OPERAND_B, second, 0}};
    qdnnPlan_t plan;
    p.size = sizeof p;
    builder_shape(b, b->x, type, 1, halves * columns, halves * columns);
    builder_shape(b, b->y, type, 1, columns, columns);
    ok(qdnnCreatePointwisePlan(b->handle, &p, b->x, NULL, b->y, NULL, &plan));
    builder_step(b, name, plan, bindings, second < 0 ? 2 : 3);
}

int body_next_hidden(body *s, const char *name)
{
    return s->last ? s->out->hidden : builder_rows(&s->b, name, QDNN_DATA_F32, s->m->s.width);
}

/* h + factor * x W^T; a norm may come before the sum. */
static void add_to_hidden(body *s, const char *name, const joint *w, int x, vector post_norm)
{
    static const char *const names[][3] = {{"out", "out norm", "out sum"}, {"down", "down norm", "down sum"}};
    const char *const *n = names[strcmp(name, "down") == 0];
    const int64_t width = s->m->s.width;
    product p = {.name = n[0],
                 .w = w,
                 .x = x,
                 .y = post_norm.data ? builder_rows(&s->b, n[0], QDNN_DATA_F32, width)
                                     : body_next_hidden(s, n[0]),
                 .residual = post_norm.data ? -1 : s->h,
                 .y_type = QDNN_DATA_F32,
                 .alpha = s->m->s.residual_factor};
    builder_product(&s->b, &p);
    if (!post_norm.data) {
        s->h = p.y;
        return;
    }
    const int normed = builder_rows(&s->b, n[1], QDNN_DATA_F32, width), sum = body_next_hidden(s, n[2]);
    builder_norm(&s->b, n[1], post_norm, s->m->s.eps, p.y, normed, 1, width, 0, QDNN_DATA_F32, QDNN_DATA_F32);
    pointwise(&s->b, n[2], (qdnnPointwise_t){.kind = QDNN_POINTWISE_ADD, .second = QDNN_SECOND_TENSOR},
              normed, s->h, sum, width, QDNN_DATA_F32);
    s->h = sum;
}

/* ---- the inner network ---- */

static int gated(body *s, const layer *l, int x)
{
    const int64_t inner = l->gate_up.outputs / 2;
    const qdnnActivation_t gate = s->m->s.family->gate;
    const int y = builder_rows(&s->b, "inner", s->b.type, inner);
    product p = {.name = "gate and up",
                 .w = &l->gate_up,
                 .x = x,
                 .y = y,
                 .residual = -1,
                 .y_type = s->b.type,
                 .gate = gate,
                 .alpha = 1};
    if (l->gate_up.parts == 1) {
        builder_product(&s->b, &p);
        return y;
    }
    p.gate = QDNN_ACTIVATION_NONE; /* matrices of two formats: the gate is a step of its own */
    p.y = builder_rows(&s->b, "gate and up", s->b.type, 2 * inner);
    builder_product(&s->b, &p);
    pointwise(
        &s->b, "gate",
        (qdnnPointwise_t){.kind = QDNN_POINTWISE_GATED, .function = gate, .second = QDNN_SECOND_LAST_HALF},
        p.y, -1, y, inner, s->b.type);
    return y;
}

/* ---- programs ---- */

static void begin(builder *b, qdnnHandle_t handle, stage *out, int64_t rows, const options *o,
                  qdnnDataType_t type)
{
    *out = (stage){.slot = -1, .counts = -1, .step = -1, .seed = -1, .sampling = -1};
    builder_begin(b, handle, &out->g, rows);
    b->algorithm = o->tensor ? QDNN_MATMUL_TENSOR : QDNN_MATMUL_EXACT;
    b->type = type;
}

/* Rows of a table of plain numbers are gathered, and then cast. */
static int gather(body *s, const matrix *e)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16,
                                           QDNN_DATA_BF16}; /* as QDNN_WEIGHTS_... */
    if (e->weight.weights > QDNN_WEIGHTS_BF16)
        fail("%s is neither f32, f16, bf16 nor quantized", e->weight.name);
    const qdnnDataType_t type = types[e->weight.weights];
    const int64_t width = s->m->s.width, dims[] = {s->b.g->rows, width}, all = e->outputs * width;
    const int rows = builder_rows(&s->b, "embedded", type, width);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, builder_fixed(&s->b, "embedding", type, all, e->data), 0},
        {QDNN_OPERAND_ROW_INDEX, s->tokens, 0},
        {QDNN_OPERAND_Y, rows, 0}};
    qdnnPlan_t plan;
    ok(qdnnSetTensorDescriptor(s->b.x, type, 2, (const int64_t[]){e->outputs, width}, NULL));
    ok(qdnnSetTensorDescriptor(s->b.y, type, 2, dims, NULL));
    ok(qdnnCreateGatherPlan(s->b.handle, s->b.x, QDNN_DATA_I32, s->b.y, &plan));
    builder_step(&s->b, "embed", plan, bindings, 3);
    if (type == QDNN_DATA_F32)
        return rows;
    const int cast = builder_rows(&s->b, "embedded in f32", QDNN_DATA_F32, width);
    const qdnnProgramBinding_t copied[] = {{QDNN_OPERAND_X, rows, 0}, {QDNN_OPERAND_Y, cast, 0}};
    ok(qdnnSetTensorDescriptor(s->b.x, type, 2, dims, NULL));
    ok(qdnnSetTensorDescriptor(s->b.y, QDNN_DATA_F32, 2, dims, NULL));
    ok(qdnnCreateCopyPlan(s->b.handle, s->b.x, s->b.y, &plan));
    builder_step(&s->b, "cast", plan, copied, 2);
    return cast;
}

static int dequantize(body *s, const matrix *e)
{
    const int64_t dims[] = {s->b.g->rows, s->m->s.width};
    const int rows = builder_rows(&s->b, "embedded", QDNN_DATA_F32, s->m->s.width);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_CODES, builder_fixed(&s->b, "embedding", QDNN_DATA_U8, (int64_t)e->bytes, e->data), 0},
        {QDNN_OPERAND_ROW_INDEX, s->tokens, 0},
        {QDNN_OPERAND_Y, rows, 0}};
    qdnnPlan_t plan;
    ok(qdnnSetFileWeight(&e->weight, QDNN_DATA_F32, s->b.w, s->b.quant));
    ok(qdnnSetTensorDescriptor(s->b.y, QDNN_DATA_F32, 2, dims, NULL));
    ok(qdnnCreateDequantizeRowsPlan(s->b.handle, s->b.w, s->b.quant, s->b.y, &plan));
    builder_step(&s->b, "embed", plan, bindings, 3);
    return rows;
}

static void embed(body *s)
{
    const matrix *e = &s->m->embedding;
    const int64_t width = s->m->s.width;
    s->h = e->weight.quantized ? dequantize(s, e) : gather(s, e);
    if (s->m->s.embedding_factor == 1)
        return;
    const int scaled = builder_rows(&s->b, "scaled", QDNN_DATA_F32, width);
    pointwise(&s->b, "scale",
              (qdnnPointwise_t){.kind = QDNN_POINTWISE_MUL,
                                .second = QDNN_SECOND_NUMBER,
                                .number = s->m->s.embedding_factor},
              s->h, -1, scaled, width, QDNN_DATA_F32);
    s->h = scaled;
}

/* A kernel of our own: counts[token] += 1 for each token. */
static const char count_tokens[] =
    ".version 6.3\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry count_tokens(.param .u64 tokens, .param .u64 counts, .param .u32 "
    "rows, .param .u32 vocabulary)\n"
    "{\n"
    "    .reg .pred %out;\n"
    "    .reg .b32 %row, %threads, %block, %rows, %token, %most;\n"
    "    .reg .b64 %tokens, %counts, %at;\n"
    "    mov.u32 %row, %tid.x;\n"
    "    mov.u32 %threads, %ntid.x;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mad.lo.u32 %row, %block, %threads, %row;\n"
    "    ld.param.u32 %rows, [rows];\n"
    "    setp.ge.u32 %out, %row, %rows;\n"
    "    @%out ret;\n"
    "    ld.param.u64 %tokens, [tokens];\n"
    "    mad.wide.u32 %at, %row, 4, %tokens;\n"
    "    ld.global.u32 %token, [%at];\n"
    "    ld.param.u32 %most, [vocabulary];\n"
    "    setp.ge.u32 %out, %token, %most;\n"
    "    @%out ret;\n"
    "    ld.param.u64 %counts, [counts];\n"
    "    mad.wide.u32 %at, %token, 4, %counts;\n"
    "    red.global.add.u32 [%at], 1;\n"
    "    ret;\n"
    "}\n";

static void count(body *s)
{
    s->out->counts = builder_fixed(&s->b, "counts", QDNN_DATA_I32, s->m->s.vocabulary, NULL);
    const qdnnProgramArgument_t arguments[] = {
        {.kind = QDNN_KERNEL_ARGUMENT_READ, .tensor = s->tokens},
        {.kind = QDNN_KERNEL_ARGUMENT_READ_WRITE, .tensor = s->out->counts},
        {.kind = QDNN_KERNEL_ARGUMENT_ROWS, .bytes = 4},
        {.kind = QDNN_KERNEL_ARGUMENT_NUMBER, .bytes = 4, .value = (uint64_t)s->m->s.vocabulary}};
    ok(qdnnAddKernelToProgram(s->b.g->program, "count",
                              &(qdnnProgramKernel_t){.size = sizeof(qdnnProgramKernel_t),
                                                     .source = QDNN_SOURCE_PTX,
                                                     .text = count_tokens,
                                                     .entry = "count_tokens",
                                                     .grid = {1, 1, 1},
                                                     .block = {128, 1, 1},
                                                     .rowsPerBlock = 128,
                                                     .arguments = arguments,
                                                     .count = 4}));
}

void graph_body(stage *out, qdnnHandle_t handle, const model *m, const cache *c, const options *o,
                qdnnDataType_t type, int64_t rows, bool counts)
{
    body s = {.out = out, .m = m, .c = c, .tensor = o->tensor};
    begin(&s.b, handle, out, rows, o, type);
    const int64_t table = (int64_t)m->s.context * m->s.rope.rotary / 2;
    out->tokens = s.tokens = builder_given(&s.b, "tokens", QDNN_DATA_I32, 1);
    out->sequence = s.sequence = builder_given(&s.b, "sequences", QDNN_DATA_I32, 1);
    out->position = s.position = builder_given(&s.b, "positions", QDNN_DATA_I32, 1);
    if (c->has_blocks)
        out->slot = s.slot = builder_given(&s.b, "slots", QDNN_DATA_I32, 1);
    out->hidden = builder_given(&s.b, "hidden", QDNN_DATA_F32, m->s.width);
    s.cos = builder_fixed(&s.b, "cos", QDNN_DATA_F32, table, m->cos);
    s.sin = builder_fixed(&s.b, "sin", QDNN_DATA_F32, table, m->sin);
    if (c->table)
        s.table = builder_fixed(&s.b, "page table", QDNN_DATA_I32, c->sequences * c->table_pages, c->table);
    s.counters = builder_fixed(&s.b, "counters", QDNN_DATA_U32, COUNTED_TOKENS * m->s.heads, c->counters);
    if (counts)
        count(&s);
    embed(&s);
    for (int64_t i = 0; i < m->s.layers; i++) {
        const layer *l = &m->layers[i];
        s.b.layer = i;
        const int y = body_attention(&s, l, i, norm(&s, "norm", l->attention_norm));
        add_to_hidden(&s, "out", &l->out, y, l->attention_post_norm);
        const int x = norm(&s, "inner norm", l->inner_norm);
        s.last = i == m->s.layers - 1;
        if (l->mixture.router.outputs)
            body_experts(&s, &l->mixture, x);
        else
            add_to_hidden(&s, "down", &l->down, gated(&s, l, x), l->inner_post_norm);
    }
    s.b.layer = -1;
    builder_end(&s.b);
}

static void sample(builder *b, stage *out, const model *m, bool greedy, bool counts)
{
    qdnnSelectDescriptor_t select;
    qdnnProgramBinding_t bindings[6] = {{QDNN_OPERAND_LOGITS, out->logits, 0},
                                        {QDNN_OPERAND_INDEX, out->next, 0}};
    qdnnPlan_t plan;
    int n = 2;
    ok(qdnnCreateSelectDescriptor(&select));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_GREEDY, greedy));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_COUNTS, counts));
    ok(qdnnSetTensorDescriptor(b->x, QDNN_DATA_F32, 2, (const int64_t[]){b->g->rows, m->s.vocabulary}, NULL));
    ok(qdnnCreateSamplePlan(b->handle, b->x, select, &plan));
    ok(qdnnDestroySelectDescriptor(select));
    if (!greedy) {
        out->sampling = builder_given(b, "sampling", QDNN_DATA_F32, sizeof(qdnnSampling_t) / sizeof(float));
        out->seed = builder_given(b, "seeds", QDNN_DATA_U64, 1);
        out->step = builder_given(b, "steps", QDNN_DATA_U64, 1);
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_SAMPLING, out->sampling, 0};
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_SEED, out->seed, 0};
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_STEP, out->step, 0};
    }
    if (counts) {
        out->counts = builder_given(b, "counts", QDNN_DATA_I32, m->s.vocabulary);
        bindings[n++] = (qdnnProgramBinding_t){QDNN_OPERAND_TOKEN_COUNT, out->counts, 0};
    }
    builder_step(b, "sample", plan, bindings, n);
}

void graph_head(stage *out, qdnnHandle_t handle, const model *m, const options *o, qdnnDataType_t type,
                int64_t rows, bool greedy, bool counts)
{
    builder b;
    begin(&b, handle, out, rows, o, type);
    const settings *s = &m->s;
    const joint output = {.part = {m->output}, .parts = 1, .outputs = m->output.outputs};
    out->hidden = builder_given(&b, "hidden", QDNN_DATA_F32, s->width);
    out->logits = builder_given(&b, "logits", QDNN_DATA_F32, s->vocabulary);
    out->next = builder_given(&b, "next tokens", QDNN_DATA_I32, 1);
    const int normed = builder_rows(&b, "normed", type, s->width);
    const int raw = s->logit_cap ? builder_rows(&b, "raw logits", QDNN_DATA_F32, s->vocabulary) : out->logits;
    builder_norm(&b, "output norm", m->output_norm, s->eps, out->hidden, normed, 1, s->width, 0,
                 QDNN_DATA_F32, type);
    builder_product(&b, &(product){.name = "output",
                                   .w = &output,
                                   .x = normed,
                                   .y = raw,
                                   .residual = -1,
                                   .y_type = QDNN_DATA_F32,
                                   .alpha = s->logit_factor});
    if (s->logit_cap)
        pointwise(&b, "cap",
                  (qdnnPointwise_t){.kind = QDNN_POINTWISE_FUNCTION,
                                    .function = QDNN_ACTIVATION_SOFTCAP,
                                    .limit = s->logit_cap},
                  raw, -1, out->logits, s->vocabulary, QDNN_DATA_F32);
    sample(&b, out, m, greedy, counts);
    builder_end(&b);
}
