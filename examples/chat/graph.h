/* A program while it is written: what graph.c and attention.c share. */
#ifndef EXAMPLES_CHAT_GRAPH_H
#define EXAMPLES_CHAT_GRAPH_H

#include "chat.h"

typedef struct body {
    builder b;
    stage *out;
    const model *m;
    const cache *c;
    bool tensor; /* attention on tensor cores too, where there is such a kernel */
    int tokens, sequence, position, slot, table, counters, cos, sin;
    int h;     /* hidden states as they are now: f32 [rows, width] */
    bool last; /* the next ones are the result */
} body;

/* The attention of a layer, from the norm of its hidden states to what its last product takes; keys and values go into the cache. */
int body_attention(body *s, const layer *l, int64_t number, int x);

/* h + what the experts of each token make of x. */
void body_experts(body *s, const mixture *mix, int x);
/* The tensor of the next hidden states: the result of the program, if they are the last. */
int body_next_hidden(body *s, const char *name);
void pointwise(builder *b, const char *name, qdnnPointwise_t p, int x, int second, int y, int64_t columns,
               qdnnDataType_t type);

#endif
