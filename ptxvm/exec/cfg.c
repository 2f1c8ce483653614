/* Where diverged lanes meet again: immediate post-dominators of a function's basic blocks.
 *
 * An edge that only leaves the function (a guarded ret or exit, a branch to a bare ret, a path to a trap)
 * does not count while the block has another way on: lanes that leave are taken off the list of those waited
 * for, so the rest can meet where they would without them. Loops that then have no way out get such edges
 * back, and endless loops one edge to the exit, so that every block has a post-dominator. The dominator
 * algorithm is Cooper, Harvey and Kennedy's, on the reversed graph. */
#include "decode.h"

#include <stdlib.h>

typedef struct edge {
    int from, to;
    bool leaves; /* does not count at first */
} edge;

typedef struct graph {
    const vm_code *code;
    int *block_of; /* of each op */
    int *first;    /* op of each block; [n_blocks] is n_ops */
    int n_blocks;  /* block n_blocks is the virtual exit */
    edge *edges;
    int n_edges, capacity;
    int *in_head, *in_next; /* edges by `to`, as lists: walked from the exit */
    int *out_head, *out_next;
    int *order; /* of each block in the reverse postorder of the reversed graph; -1: cannot reach the exit yet
                 */
    int *by_order, n_ordered;
    int *ipdom;
} graph;

static bool ends_block(const vm_op *op)
{
    return op->kind == VM_KIND_BRANCH || (op->kind == VM_KIND_CONTROL && op->inst->op != OP_call) ||
           op->inst->op == OP_trap;
}

static bool leaves_function(const vm_op *op)
{
    return op->inst->op == OP_ret || op->inst->op == OP_exit || op->inst->op == OP_trap;
}

static void mark_leaders(const vm_code *code, int *leader)
{
    leader[0] = 1;
    for (int i = 0; i < code->n_ops; i++) {
        const vm_op *op = &code->ops[i];
        if (!ends_block(op))
            continue;
        if (i + 1 < code->n_ops)
            leader[i + 1] = 1;
        if (op->kind == VM_KIND_BRANCH)
            leader[op->target] = 1;
        if (op->inst->op == OP_brx) {
            const vm_branch_table *table = op->extra;
            for (int t = 0; t < table->n; t++)
                leader[table->target[t]] = 1;
        }
    }
}

static bool find_blocks(graph *g)
{
    int n = g->code->n_ops;
    g->block_of = calloc((size_t)n + 1, sizeof(int));
    g->first = calloc((size_t)n + 1, sizeof(int));
    if (!g->block_of || !g->first)
        return false;
    mark_leaders(g->code, g->block_of);
    for (int i = 0; i < n; i++) {
        if (g->block_of[i])
            g->first[g->n_blocks++] = i;
        g->block_of[i] = g->n_blocks - 1;
    }
    g->first[g->n_blocks] = n;
    return true;
}

static const vm_op *last_op(const graph *g, int block)
{
    return &g->code->ops[g->first[block + 1] - 1];
}

/* A block of nothing but ret or exit, or one that ends in a trap: no place to meet. */
static bool is_dead_end(const graph *g, int block)
{
    const vm_op *last = last_op(g, block);
    if (!leaves_function(last) || last->guard != VM_NO_SLOT)
        return false;
    return last->inst->op == OP_trap || g->first[block + 1] - g->first[block] == 1;
}

static bool add_edge(graph *g, int from, int to, bool leaves)
{
    if (g->n_edges == g->capacity) {
        int capacity = g->capacity ? 2 * g->capacity : 64;
        edge *edges = realloc(g->edges, (size_t)capacity * sizeof *edges);
        if (!edges)
            return false;
        g->edges = edges;
        g->capacity = capacity;
    }
    g->edges[g->n_edges++] = (edge){from, to, leaves};
    return true;
}

static bool add_jump(graph *g, int from, int target, bool has_other)
{
    int to = g->block_of[target];
    return add_edge(g, from, to, has_other && is_dead_end(g, to));
}

static bool add_edges_of(graph *g, int block)
{
    const vm_op *op = last_op(g, block);
    bool guarded = op->guard != VM_NO_SLOT, ok = true;
    bool falls = !ends_block(op) || guarded;
    if (leaves_function(op))
        ok = add_edge(g, block, g->n_blocks, guarded);
    else if (op->kind == VM_KIND_BRANCH)
        ok = add_jump(g, block, op->target, guarded);
    else if (op->inst->op == OP_brx) {
        const vm_branch_table *table = op->extra;
        for (int t = 0; t < table->n && ok; t++)
            ok = add_jump(g, block, table->target[t], table->n > 1);
    }
    if (falls && ok)
        ok = block + 1 < g->n_blocks ? add_jump(g, block, g->first[block + 1], ends_block(op))
                                     : add_edge(g, block, g->n_blocks, false);
    return ok;
}

static bool link_edges(graph *g)
{
    size_t nodes = (size_t)g->n_blocks + 1, edges = (size_t)g->n_edges + (size_t)g->n_blocks;
    g->in_head = malloc(nodes * sizeof(int));
    g->out_head = malloc(nodes * sizeof(int));
    g->in_next = malloc(edges * sizeof(int));
    g->out_next = malloc(edges * sizeof(int));
    g->order = malloc(nodes * sizeof(int));
    g->by_order = malloc(nodes * sizeof(int));
    g->ipdom = malloc(nodes * sizeof(int));
    if (!g->in_head || !g->out_head || !g->in_next || !g->out_next || !g->order || !g->by_order || !g->ipdom)
        return false;
    for (size_t i = 0; i < nodes; i++)
        g->in_head[i] = g->out_head[i] = -1;
    for (int e = 0; e < g->n_edges; e++) {
        g->in_next[e] = g->in_head[g->edges[e].to];
        g->in_head[g->edges[e].to] = e;
        g->out_next[e] = g->out_head[g->edges[e].from];
        g->out_head[g->edges[e].from] = e;
    }
    return true;
}

/* Depth first from the exit against the edges; by_order gets the postorder. `stack` holds blocks, `at` the
 * edge each is at. */
static void walk_from(graph *g, int root, int *stack, int *at)
{
    int depth = 0;
    stack[0] = root;
    at[root] = g->in_head[root];
    g->order[root] = 0;
    while (depth >= 0) {
        int block = stack[depth], e = at[block];
        while (e >= 0 && (g->edges[e].leaves || g->order[g->edges[e].from] >= 0))
            e = g->in_next[e];
        if (e < 0) {
            g->by_order[g->n_ordered++] = block;
            depth--;
            continue;
        }
        at[block] = g->in_next[e];
        stack[++depth] = g->edges[e].from;
        at[g->edges[e].from] = g->in_head[g->edges[e].from];
        g->order[g->edges[e].from] = 0;
    }
}

static void walk(graph *g, int *stack, int *at)
{
    g->n_ordered = 0;
    for (int i = 0; i <= g->n_blocks; i++)
        g->order[i] = -1;
    walk_from(g, g->n_blocks, stack, at);
}

/* Lets blocks that cannot reach the exit leave by the edges that did not count. True where there were some.
 */
static bool restore_leaving_edges(graph *g)
{
    bool any = false;
    for (int e = 0; e < g->n_edges; e++)
        if (g->edges[e].leaves && g->order[g->edges[e].from] < 0) {
            g->edges[e].leaves = false;
            any = true;
        }
    return any;
}

/* An edge to the exit for one block of an endless loop: the last in the text that is left. link_edges has
 * room for it. */
static bool open_endless_loop(graph *g)
{
    for (int block = g->n_blocks - 1; block >= 0; block--)
        if (g->order[block] < 0) {
            if (!add_edge(g, block, g->n_blocks, false))
                return false;
            int e = g->n_edges - 1;
            g->in_next[e] = g->in_head[g->n_blocks];
            g->in_head[g->n_blocks] = e;
            g->out_next[e] = g->out_head[block];
            g->out_head[block] = e;
            return true;
        }
    return false;
}

/* A walk visits all it can, so each repetition reaches at least one block more; endless loops are rare. */
static bool order_blocks(graph *g)
{
    int *stack = malloc(2 * ((size_t)g->n_blocks + 1) * sizeof(int));
    if (!stack)
        return false;
    bool ok = true;
    for (;;) {
        walk(g, stack, stack + g->n_blocks + 1);
        if (g->n_ordered == g->n_blocks + 1)
            break;
        if (!restore_leaving_edges(g) && !open_endless_loop(g)) {
            ok = false;
            break;
        }
    }
    free(stack);
    for (int i = 0; i < g->n_ordered && ok; i++)
        g->order[g->by_order[i]] = i;
    return ok;
}

/* Orders here are postorder numbers: the exit's is the highest. */
static int meet(const graph *g, int a, int b)
{
    while (a != b) {
        while (g->order[a] < g->order[b])
            a = g->ipdom[a];
        while (g->order[b] < g->order[a])
            b = g->ipdom[b];
    }
    return a;
}

static int post_dominator(const graph *g, int block)
{
    int result = -1;
    for (int e = g->out_head[block]; e >= 0; e = g->out_next[e]) {
        if (g->edges[e].leaves || g->ipdom[g->edges[e].to] < 0)
            continue;
        result = result < 0 ? g->edges[e].to : meet(g, result, g->edges[e].to);
    }
    return result;
}

static void find_post_dominators(graph *g)
{
    for (int i = 0; i <= g->n_blocks; i++)
        g->ipdom[i] = -1;
    g->ipdom[g->n_blocks] = g->n_blocks;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = g->n_ordered - 2; i >= 0; i--) {
            int block = g->by_order[i], found = post_dominator(g, block);
            changed |= found != g->ipdom[block];
            g->ipdom[block] = found;
        }
    }
}

bool vm_ld_watches(const pvm_inst *inst)
{
    unsigned sem = inst->mod[S_SEM];
    return (sem != M_NONE && sem != M_weak) || inst->mod[S_CACHE] == M_cv;
}

static bool watches_memory(const vm_op *op)
{
    const pvm_inst *inst = op->inst;
    switch (inst->op) {
    case OP_atom:
    case OP_mbarrier:
    case OP_nanosleep:
    case OP_call:
        return true;
    case OP_ld:
        return vm_ld_watches(inst);
    default:
        return false;
    }
}

/* watched[i]: how many of the ops before i look at memory that others change. */
static void mark_back_edge(vm_op *op, int index, int target, const int *watched)
{
    if (target > index)
        return;
    op->flags |= OPF_BACK_EDGE;
    if (watched[index + 1] > watched[target])
        op->flags |= OPF_SPIN;
}

static bool fill_branches(const graph *g, vm_code *code)
{
    int *watched = calloc((size_t)code->n_ops + 1, sizeof(int));
    if (!watched)
        return false;
    for (int i = 0; i < code->n_ops; i++)
        watched[i + 1] = watched[i] + watches_memory(&code->ops[i]);
    for (int i = 0; i < code->n_ops; i++) {
        vm_op *op = &code->ops[i];
        if (op->kind != VM_KIND_BRANCH && op->inst->op != OP_brx)
            continue;
        int join = g->ipdom[g->block_of[i]];
        op->join = join >= 0 && join < g->n_blocks ? g->first[join] : -1;
        if (op->kind == VM_KIND_BRANCH)
            mark_back_edge(op, i, op->target, watched);
        else
            for (int t = 0; t < ((vm_branch_table *)op->extra)->n; t++)
                mark_back_edge(op, i, ((vm_branch_table *)op->extra)->target[t], watched);
    }
    free(watched);
    return true;
}

bool vm_cfg(vm_code *code)
{
    graph g = {.code = code};
    bool ok = find_blocks(&g);
    for (int block = 0; block < g.n_blocks && ok; block++)
        ok = add_edges_of(&g, block);
    ok = ok && link_edges(&g) && order_blocks(&g);
    if (ok) {
        find_post_dominators(&g);
        ok = fill_branches(&g, code);
    }
    free(g.block_of);
    free(g.first);
    free(g.edges);
    free(g.in_head);
    free(g.in_next);
    free(g.out_head);
    free(g.out_next);
    free(g.order);
    free(g.by_order);
    free(g.ipdom);
    return ok;
}
