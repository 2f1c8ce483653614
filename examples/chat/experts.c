/* A mixture of experts: tokens are routed, each of a token's experts is a row of grouped products, and their results are combined. */
#include "graph.h"

#include <stdio.h>

/* The experts of each token, the best first, and their weights. */
static void route(body *s, const mixture *mix, int x, int experts, int weights)
{
    const settings *m = &s->m->s;
    const product p = {.name = "router",
                       .w = &mix->router,
                       .x = x,
                       .y = builder_rows(&s->b, "router", QDNN_DATA_F32, m->experts),
                       .residual = -1,
                       .y_type = QDNN_DATA_F32,
                       .alpha = 1};
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_LOGITS, p.y, 0},
                                             {QDNN_OPERAND_INDEX, experts, 0},
                                             {QDNN_OPERAND_WEIGHT_OUT, weights, 0}};
    qdnnSelectDescriptor_t select;
    qdnnPlan_t plan;
    builder_product(&s->b, &p);
    ok(qdnnCreateSelectDescriptor(&select));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_TOP, m->used_experts));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_RENORMALIZE, 1));
    ok(qdnnSetSelectFactor(select, m->expert_factor));
    ok(qdnnSetTensorDescriptor(s->b.x, QDNN_DATA_F32, 2, (const int64_t[]){s->b.g->rows, m->experts}, NULL));
    ok(qdnnCreateRoutePlan(s->b.handle, s->b.x, select, &plan));
    ok(qdnnDestroySelectDescriptor(select));
    builder_step(&s->b, "route", plan, bindings, 3);
}

typedef struct grouped {
    const char *name;
    const matrix *w;
    int x, y, experts;
    int64_t slots;          /* rows of y for each row of x */
    int64_t first, columns; /* y is columns first and following of rows of so many */
    qdnnDataType_t y_type;
    qdnnActivation_t gate;
} grouped;

static void grouped_product(body *s, const grouped *p)
{
    builder *b = &s->b;
    const int64_t used = s->m->s.used_experts, rows = b->g->rows * used,
                  outputs = p->gate ? p->w->outputs / 2 : p->w->outputs,
                  x[] = {rows / p->slots, p->w->inputs}, y[] = {rows, outputs}, y_strides[] = {p->columns, 1};
    char name[64];
    qdnnMatmulDescriptor_t matmul;
    qdnnPlan_t plan;
    snprintf(name, sizeof name, "%s.weight", p->name);
    const qdnnProgramBinding_t bindings[] = {
        {QDNN_OPERAND_X, p->x, 0},
        {QDNN_OPERAND_CODES, builder_fixed(b, name, QDNN_DATA_U8, (int64_t)p->w->bytes, p->w->data), 0},
        {QDNN_OPERAND_EXPERT_INDEX, p->experts, 0},
        {QDNN_OPERAND_Y, p->y, (size_t)p->first * type_bytes(p->y_type)}};
    ok(qdnnCreateMatmulDescriptor(&matmul));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ALGORITHM, b->algorithm));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_EXPERTS, s->m->s.experts));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_SLOTS, p->slots));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_ACTIVATION, p->gate));
    ok(qdnnSetMatmulAttribute(matmul, QDNN_MATMUL_GATED, p->gate != QDNN_ACTIVATION_NONE));
    ok(qdnnSetTensorDescriptor(b->x, b->type, 2, x, NULL));
    ok(qdnnSetTensorDescriptor(b->y, p->y_type, 2, y, y_strides));
    ok(qdnnSetFileWeight(&p->w->weight, b->type, b->w, b->quant));
    ok(qdnnCreateMatmulPlan(b->handle, matmul, b->x, b->w, b->quant, b->y, &plan));
    ok(qdnnDestroyMatmulDescriptor(matmul));
    builder_step_of(b, p->name, plan, used, bindings, 4);
}

/* act(x gate^T) * (x up^T) of each of a token's experts. */
static int gated(body *s, const mixture *mix, int x, int experts)
{
    const int64_t used = s->m->s.used_experts;
    const qdnnActivation_t gate = s->m->s.family->gate;
    const int y = builder_rows(&s->b, "inner", s->b.type, used * mix->inner);
    grouped p = {.name = "gate and up",
                 .w = &mix->gate,
                 .x = x,
                 .y = y,
                 .experts = experts,
                 .slots = used,
                 .columns = mix->inner,
                 .y_type = s->b.type,
                 .gate = gate};
    if (!mix->up.data) {
        grouped_product(s, &p);
        return y;
    }
    p.name = "gate";
    p.gate = QDNN_ACTIVATION_NONE; /* matrices of two formats: the gate is a step of its own */
    p.y = builder_rows(&s->b, "gate and up", s->b.type, used * 2 * mix->inner);
    p.columns = 2 * mix->inner;
    grouped_product(s, &p);
    p.name = "up";
    p.w = &mix->up;
    p.first = mix->inner;
    grouped_product(s, &p);
    const qdnnPointwise_t settings = {.size = sizeof settings,
                                      .kind = QDNN_POINTWISE_GATED,
                                      .function = gate,
                                      .second = QDNN_SECOND_LAST_HALF};
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, p.y, 0}, {QDNN_OPERAND_Y, y, 0}};
    const int64_t rows = s->b.g->rows * used;
    qdnnPlan_t plan;
    ok(qdnnSetTensorDescriptor(s->b.x, s->b.type, 2, (const int64_t[]){rows, 2 * mix->inner}, NULL));
    ok(qdnnSetTensorDescriptor(s->b.y, s->b.type, 2, (const int64_t[]){rows, mix->inner}, NULL));
    ok(qdnnCreatePointwisePlan(s->b.handle, &settings, s->b.x, NULL, s->b.y, NULL, &plan));
    builder_step_of(&s->b, "gated", plan, used, bindings, 2);
    return y;
}

/* The weighted sum of what a token's experts gave, and its hidden state. */
static void combine(body *s, int x, int weights)
{
    const int64_t used = s->m->s.used_experts, width = s->m->s.width, rows = s->b.g->rows;
    const int y = body_next_hidden(s, "combined");
    const qdnnProgramBinding_t bindings[] = {{QDNN_OPERAND_X, x, 0},
                                             {QDNN_OPERAND_ROW_WEIGHT, weights, 0},
                                             {QDNN_OPERAND_RESIDUAL, s->h, 0},
                                             {QDNN_OPERAND_Y, y, 0}};
    qdnnSelectDescriptor_t select;
    qdnnPlan_t plan;
    ok(qdnnCreateSelectDescriptor(&select));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_TOP, used));
    ok(qdnnSetSelectAttribute(select, QDNN_SELECT_RESIDUAL, 1));
    ok(qdnnSetTensorDescriptor(s->b.x, QDNN_DATA_F32, 3, (const int64_t[]){rows, used, width}, NULL));
    ok(qdnnSetTensorDescriptor(s->b.y, QDNN_DATA_F32, 2, (const int64_t[]){rows, width}, NULL));
    ok(qdnnCreateCombinePlan(s->b.handle, s->b.x, select, s->b.y, &plan));
    ok(qdnnDestroySelectDescriptor(select));
    builder_step(&s->b, "combine", plan, bindings, 4);
    s->h = y;
}

void body_experts(body *s, const mixture *mix, int x)
{
    const int64_t used = s->m->s.used_experts;
    const int experts = builder_rows(&s->b, "experts", QDNN_DATA_I32, used),
              weights = builder_rows(&s->b, "weights", QDNN_DATA_F32, used);
    route(s, mix, x, experts, weights);
    const int inner = gated(s, mix, x, experts),
              down = builder_rows(&s->b, "down", QDNN_DATA_F32, used * s->m->s.width);
    grouped_product(s, &(grouped){.name = "down",
                                  .w = &mix->down,
                                  .x = inner,
                                  .y = down,
                                  .experts = experts,
                                  .slots = 1,
                                  .columns = s->m->s.width,
                                  .y_type = QDNN_DATA_F32});
    combine(s, down, weights);
}
