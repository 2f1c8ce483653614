/* Where diverged lanes meet again: immediate post-dominators of a function's basic blocks.
 *
 * An edge that only leaves the function (a guarded ret or exit, a branch to a bare ret, a path to a trap) is ignored
 * if the block has another successor: lanes that leave are no longer waited for, so the others can meet where they
 * would without them. Loops without an exit after that get such edges back, and endless loops get one edge to the
 * exit, so that every block has a post-dominator. Dominators are computed by the algorithm of Lengauer and Tarjan on
 * the reversed graph: in n log n steps for any graph, since the PTX is untrusted. A table of brx.idx is a node
 * between the blocks that jump through it and its targets. */
#include "decode.h"

#include <stdlib.h>

typedef struct edge {
    int from, to;
    bool leaves; /* ignored at first */
} edge;

typedef struct graph {
    const vm_code *code;
    int *block_of; /* of each op */
    int *first;    /* op of each block; [n_blocks] is n_ops */
    int n_blocks;  /* block n_blocks is the virtual exit */
    int n_nodes;   /* blocks, the exit, tables */
    edge *edges;
    int n_edges, capacity;
    int *memory;                   /* of all arrays below */
    int *in_head, *in_next;        /* edges by `to`, as linked lists: followed from the exit */
    int *out_head, *out_next;      /* and by `from` */
    int *number, *node, n_visited; /* number of each node in the walk (-1: not visited), and its inverse */
    int *ipdom;                    /* immediate post-dominator of each node */
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
    }
    for (const vm_branch_table *table = code->tables; table; table = table->next)
        for (int t = 0; t < table->n; t++)
            leader[table->target[t]] = 1;
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
    g->n_nodes = g->n_blocks + 1;
    for (vm_branch_table *table = g->code->tables; table; table = table->next)
        table->node = g->n_nodes++;
    return true;
}

static const vm_op *last_op(const graph *g, int block)
{
    return &g->code->ops[g->first[block + 1] - 1];
}

/* A block with nothing but ret or exit, or one that ends in a trap: not a place to meet. */
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
    else if (op->inst->op == OP_brx)
        ok = add_edge(g, block, ((const vm_branch_table *)op->extra)->node, false);
    if (falls && ok)
        ok = block + 1 < g->n_blocks ? add_jump(g, block, g->first[block + 1], ends_block(op))
                                     : add_edge(g, block, g->n_blocks, false);
    return ok;
}

static bool add_edges(graph *g)
{
    bool ok = true;
    for (int block = 0; block < g->n_blocks && ok; block++)
        ok = add_edges_of(g, block);
    for (const vm_branch_table *table = g->code->tables; table; table = table->next)
        for (int t = 0; t < table->n && ok; t++)
            ok = add_jump(g, table->node, table->target[t], table->n > 1);
    return ok;
}

static void link_edge(graph *g, int e)
{
    g->in_next[e] = g->in_head[g->edges[e].to];
    g->in_head[g->edges[e].to] = e;
    g->out_next[e] = g->out_head[g->edges[e].from];
    g->out_head[g->edges[e].from] = e;
}

/* Allocates one more edge per block, for open_endless_loops. */
static bool link_edges(graph *g)
{
    size_t nodes = (size_t)g->n_nodes, edges = (size_t)g->n_edges + (size_t)g->n_blocks;
    int *at = g->memory = malloc((5 * nodes + 2 * edges) * sizeof *at);
    if (!at)
        return false;
    int **const by_node[] = {&g->in_head, &g->out_head, &g->number, &g->node, &g->ipdom};
    for (size_t i = 0; i < sizeof by_node / sizeof *by_node; i++, at += nodes)
        *by_node[i] = at;
    g->in_next = at;
    g->out_next = at + edges;
    for (size_t i = 0; i < nodes; i++)
        g->in_head[i] = g->out_head[i] = -1;
    for (int e = 0; e < g->n_edges; e++)
        link_edge(g, e);
    return true;
}

/* ---- The walk from the exit, against the edges ---- */

/* State of each node for the walk and the search for dominators; from `parent` on, indexed by its number in
 * the walk. */
typedef struct tree {
    int *stack, *at; /* of the walk: nodes, and the current edge of each */
    int *parent;     /* in the spanning tree of the walk */
    int *semi, *label, *ancestor, *bucket, *bucket_next, *idom;
} tree;

static bool tree_new(tree *t, size_t nodes)
{
    int *memory = malloc(9 * nodes * sizeof *memory);
    int **const arrays[] = {&t->stack,    &t->at,     &t->parent,      &t->semi, &t->label,
                            &t->ancestor, &t->bucket, &t->bucket_next, &t->idom};
    for (size_t i = 0; memory && i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = memory + i * nodes;
    return memory;
}

static void visit(graph *g, tree *t, int node, int parent)
{
    g->number[node] = g->n_visited;
    g->node[g->n_visited] = node;
    t->parent[g->n_visited++] = parent;
    t->at[node] = g->in_head[node];
}

/* Walks depth first from a node whose parent has been visited. */
static void walk_from(graph *g, tree *t, int root, int parent)
{
    int depth = 0;
    t->stack[0] = root;
    visit(g, t, root, parent);
    while (depth >= 0) {
        int node = t->stack[depth], e = t->at[node];
        while (e >= 0 && (g->edges[e].leaves || g->number[g->edges[e].from] >= 0))
            e = g->in_next[e];
        if (e < 0) {
            depth--;
            continue;
        }
        t->at[node] = g->in_next[e];
        t->stack[++depth] = g->edges[e].from;
        visit(g, t, g->edges[e].from, g->number[node]);
    }
}

static void walk(graph *g, tree *t)
{
    g->n_visited = 0;
    for (int i = 0; i < g->n_nodes; i++)
        g->number[i] = -1;
    walk_from(g, t, g->n_blocks, -1);
}

/* Restores the ignored edges of blocks that cannot reach the exit. Returns true if there were any. */
static bool restore_leaving_edges(graph *g)
{
    bool any = false;
    for (int e = 0; e < g->n_edges; e++)
        if (g->edges[e].leaves && g->number[g->edges[e].from] < 0) {
            g->edges[e].leaves = false;
            any = true;
        }
    return any;
}

/* Adds an edge to the exit for one block of each endless loop: the last remaining one in the text. The walk
 * continues from there: nothing that it has visited changes. */
static bool open_endless_loops(graph *g, tree *t)
{
    for (int block = g->n_blocks - 1; block >= 0; block--) {
        if (g->number[block] >= 0)
            continue;
        if (!add_edge(g, block, g->n_blocks, false))
            return false;
        link_edge(g, g->n_edges - 1);
        walk_from(g, t, block, 0);
    }
    return true;
}

/* Numbers every node: the exit is 0, all others are higher than their parents. */
static bool number_nodes(graph *g, tree *t)
{
    walk(g, t);
    if (g->n_visited < g->n_nodes && restore_leaving_edges(g))
        walk(g, t);
    return open_endless_loops(g, t) && g->n_visited == g->n_nodes;
}

/* ---- Dominators ---- */

/* Among the nodes from v up to, but excluding, the root of its tree in the forest: the one with the lowest
 * semidominator. Compresses the path for the next time. */
static int evaluate(tree *t, int v)
{
    if (t->ancestor[v] < 0)
        return v;
    int depth = 0;
    for (int u = v; t->ancestor[t->ancestor[u]] >= 0; u = t->ancestor[u])
        t->stack[depth++] = u;
    while (depth-- > 0) {
        int u = t->stack[depth], above = t->ancestor[u];
        if (t->semi[t->label[above]] < t->semi[t->label[u]])
            t->label[u] = t->label[above];
        t->ancestor[u] = t->ancestor[above];
    }
    return t->label[v];
}

static int semidominator(const graph *g, tree *t, int v)
{
    int semi = t->parent[v];
    for (int e = g->out_head[g->node[v]]; e >= 0; e = g->out_next[e]) {
        if (g->edges[e].leaves)
            continue;
        int u = evaluate(t, g->number[g->edges[e].to]);
        semi = t->semi[u] < semi ? t->semi[u] : semi;
    }
    return semi;
}

static void find_post_dominators(graph *g, tree *t)
{
    int n = g->n_nodes;
    for (int v = 0; v < n; v++) {
        t->semi[v] = t->label[v] = v;
        t->ancestor[v] = t->bucket[v] = -1;
    }
    for (int v = n - 1; v > 0; v--) {
        int parent = t->parent[v];
        t->semi[v] = semidominator(g, t, v);
        t->bucket_next[v] = t->bucket[t->semi[v]];
        t->bucket[t->semi[v]] = v;
        t->ancestor[v] = parent;
        for (int w = t->bucket[parent]; w >= 0; w = t->bucket_next[w]) {
            int u = evaluate(t, w);
            t->idom[w] = t->semi[u] < t->semi[w] ? u : parent;
        }
        t->bucket[parent] = -1;
    }
    t->idom[0] = 0;
    for (int v = 1; v < n; v++)
        if (t->idom[v] != t->semi[v])
            t->idom[v] = t->idom[t->idom[v]];
    for (int v = 0; v < n; v++)
        g->ipdom[g->node[v]] = g->node[t->idom[v]];
}

/* ---- Results for the ops ---- */

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

/* watched[i]: how many of the ops before i read memory that others change. */
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
        while (join > g->n_blocks) /* a table */
            join = g->ipdom[join];
        op->join = join < g->n_blocks ? g->first[join] : -1;
        bool is_table = op->kind != VM_KIND_BRANCH;
        mark_back_edge(op, i, is_table ? ((vm_branch_table *)op->extra)->lowest : op->target, watched);
    }
    free(watched);
    return true;
}

bool vm_cfg(vm_code *code)
{
    graph g = {.code = code};
    tree t = {.stack = NULL};
    bool ok = find_blocks(&g) && add_edges(&g) && link_edges(&g) && tree_new(&t, (size_t)g.n_nodes) &&
              number_nodes(&g, &t);
    if (ok) {
        find_post_dominators(&g, &t);
        ok = fill_branches(&g, code);
    }
    free(g.block_of);
    free(g.first);
    free(g.edges);
    free(g.memory);
    free(t.stack);
    return ok;
}
