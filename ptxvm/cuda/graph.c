/* Graphs: nodes and their dependencies. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Creation and deletion ---- */

CUgraph graph_new(void)
{
    return object_new(OBJECT_GRAPH, sizeof(struct CUgraph_st));
}

static void node_delete(CUgraphNode node)
{
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH && node->work.child)
        node->work.child->parent = NULL;
    work_clear(&node->work);
    object_forget(node);
    free(node->needs);
    free(node->edges);
    free(node);
}

void graph_delete(CUgraph graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        node_delete(graph->nodes[i]);
    user_objects_release(graph->users, graph->n_users);
    object_forget(graph);
    free(graph->nodes);
    free(graph);
}

static CUresult insert(CUgraph graph, CUgraphNode node)
{
    if (graph->n_nodes == graph->capacity) {
        size_t capacity = 2 * graph->capacity + 8;
        CUgraphNode *more = realloc(graph->nodes, capacity * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        graph->nodes = more;
        graph->capacity = capacity;
    }
    node->graph = graph;
    node->index = graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return CUDA_SUCCESS;
}

/* ---- Size: a graph may be copied, so doubling it takes one call; the limit is that of all its copies together ---- */

enum { NESTED_MAX = 64 }; /* child graphs in child graphs: copying them recurses */

static size_t nodes_of(const cuda_work *work)
{
    return 1 + (work->type == CU_GRAPH_NODE_TYPE_GRAPH && work->child ? work->child->total : 0);
}

static int nesting_of(const cuda_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_GRAPH && work->child ? work->child->nesting + 1 : 0;
}

CUresult graph_check_room(CUgraph graph, const cuda_work *work, size_t replaced)
{
    const size_t most = (size_t)cuda.limits[PTXVM_LIMIT_GRAPH], more = nodes_of(work);
    int nesting = nesting_of(work);
    for (CUgraph g = graph; g; g = g->parent, nesting++) {
        if (more > most || g->total - replaced > most - more)
            return cuda_log(CUDA_ERROR_OUT_OF_MEMORY,
                            "a graph of more than %zu nodes with its child graphs: the limit is %s", most,
                            ptxvm_limit_name(PTXVM_LIMIT_GRAPH));
        if (nesting > NESTED_MAX)
            return cuda_log(CUDA_ERROR_OUT_OF_MEMORY, "child graphs nested more than %d deep", NESTED_MAX);
    }
    return CUDA_SUCCESS;
}

void graph_count(CUgraph graph, const cuda_work *work, bool added)
{
    size_t n = nodes_of(work);
    int nesting = nesting_of(work);
    for (CUgraph g = graph; g; g = g->parent, nesting++) {
        g->total = added ? g->total + n : g->total - n;
        g->nesting = added && nesting > g->nesting ? nesting : g->nesting;
    }
}

static CUresult check_needs(CUgraph graph, const CUgraphNode *needs, size_t n)
{
    if (!object_is(graph, OBJECT_GRAPH) || (n && !needs))
        return CUDA_ERROR_INVALID_VALUE;
    graph->n_checks++;
    for (size_t i = 0; i < n; i++) {
        if (!object_is(needs[i], OBJECT_NODE) || needs[i]->graph != graph ||
            needs[i]->checked == graph->n_checks)
            return CUDA_ERROR_INVALID_VALUE;
        needs[i]->checked = graph->n_checks; /* the same node twice is an error */
    }
    return CUDA_SUCCESS;
}

CUresult graph_add_edges(CUgraph graph, const CUgraphNode *needs, const CUgraphEdgeData *edges, size_t n,
                         cuda_work *work, CUgraphNode *out)
{
    CUresult result = check_needs(graph, needs, n);
    for (size_t i = 0; i < n && edges && !result; i++)
        result = edge_check(needs[i], work->type, &edges[i]);
    if (!result)
        result = graph_check_room(graph, work, 0);
    CUgraphNode node = result ? NULL : object_new(OBJECT_NODE, sizeof *node);
    if (!node) {
        work_clear(work);
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->work = *work;
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        work->child->parent = graph;
    for (size_t i = 0; i < n && !result; i++)
        result = node_add_need(node, needs[i], edges ? &edges[i] : NULL);
    if (!result)
        result = insert(graph, node);
    if (result)
        node_delete(node);
    else {
        graph_count(graph, work, true);
        *out = node;
    }
    return result;
}

CUresult graph_add(CUgraph graph, const CUgraphNode *needs, size_t n, cuda_work *work, CUgraphNode *out)
{
    return graph_add_edges(graph, needs, NULL, n, work, out);
}

CUgraph graph_clone(CUgraph graph)
{
    CUgraph clone = graph_new();
    CUresult result =
        clone ? user_objects_copy(graph->users, graph->n_users, &clone->users) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!result)
        clone->n_users = graph->n_users;
    for (size_t i = 0; i < graph->n_nodes && !result; i++) {
        CUgraphNode from = graph->nodes[i], node;
        cuda_work work;
        result = work_copy(&work, &from->work);
        if (!result)
            result = graph_add(clone, NULL, 0, &work, &node);
        if (result)
            break;
        node->original = from;
        node->original_id = object_id(from);
        node->disabled = from->disabled;
    }
    for (size_t i = 0; i < graph->n_nodes && !result; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_needs && !result; k++)
            result = node_add_need(clone->nodes[i], clone->nodes[graph->nodes[i]->needs[k]->index],
                                   &graph->nodes[i]->edges[k]);
    if (result && clone) {
        graph_delete(clone);
        clone = NULL;
    }
    if (clone)
        clone->original = graph;
    return clone;
}

/* ---- Order ---- */

typedef struct node_visit {
    CUgraphNode *open; /* a stack: each node needs the next one */
    size_t *looked_at; /* of each node in the graph: how many of its needs, plus 1; 0: not open yet */
    size_t n_open;
} node_visit;

static void open_node(node_visit *v, CUgraphNode node)
{
    v->looked_at[node->index] = 1;
    v->open[v->n_open++] = node;
}

/* Places a node behind everything that it needs. Returns false if the node needs itself. */
static bool place(node_visit *v, CUgraphNode first, bool *placed, CUgraphNode *order, size_t *done)
{
    open_node(v, first);
    while (v->n_open) {
        CUgraphNode node = v->open[v->n_open - 1];
        size_t next = v->looked_at[node->index]++ - 1;
        if (next == node->n_needs) {
            placed[node->index] = true;
            order[(*done)++] = node;
            v->n_open--;
        } else if (!v->looked_at[node->needs[next]->index])
            open_node(v, node->needs[next]);
        else if (!placed[node->needs[next]->index])
            return false;
    }
    return true;
}

/* In the order they were added, but for nodes that others need: the same in every run, and in time for as many nodes as streams capture. */
CUgraphNode *graph_order(CUgraph graph)
{
    size_t n = graph->n_nodes, done = 0;
    CUgraphNode *order = malloc((n + 1) * sizeof *order);
    bool *placed = calloc(n + 1, sizeof *placed);
    node_visit v = {.open = malloc((n + 1) * sizeof *v.open),
                    .looked_at = calloc(n + 1, sizeof *v.looked_at)};
    bool ok = order && placed && v.open && v.looked_at;
    for (size_t i = 0; ok && i < n; i++)
        ok = placed[i] || place(&v, graph->nodes[i], placed, order, &done);
    free(placed);
    free(v.open);
    free(v.looked_at);
    if (ok)
        return order;
    free(order);
    return NULL;
}

/* A worklist instead of recursion: captured streams may be long. */
static bool search(CUgraphNode node, CUgraphNode on, bool *seen, CUgraphNode *list)
{
    size_t n = 0;
    list[n++] = node;
    for (size_t at = 0; at < n && !seen[on->index]; at++)
        for (size_t i = 0; i < list[at]->n_needs; i++) {
            CUgraphNode need = list[at]->needs[i];
            if (!seen[need->index])
                list[n++] = need;
            seen[need->index] = true;
        }
    return seen[on->index];
}

bool node_depends(CUgraphNode node, CUgraphNode on)
{
    size_t n = node->graph->n_nodes + 1; /* each node once, and the first one twice in a cycle */
    bool *seen = calloc(n, sizeof *seen);
    CUgraphNode *list = malloc(n * sizeof(CUgraphNode));
    bool found = seen && list && search(node, on, seen, list);
    free(seen);
    free(list);
    return found;
}

/* ---- Calls on whole graphs ---- */

CUresult do_cuGraphCreate(CUgraph *graph, unsigned flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_new();
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuGraphDestroy(CUgraph graph)
{
    if (!object_is(graph, OBJECT_GRAPH) || graph->parent || graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    graph_delete(graph);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphClone(CUgraph *clone, CUgraph graph)
{
    if (!clone || !object_is(graph, OBJECT_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *clone = graph_clone(graph);
    return *clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone)
{
    if (!found || !object_is(original, OBJECT_NODE) || !object_is(clone, OBJECT_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < clone->n_nodes; i++)
        if (clone->nodes[i]->original == original && clone->nodes[i]->original_id == object_id(original)) {
            *found = clone->nodes[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- Lists: a null array asks for the count; in a longer array the rest is set to null ---- */

typedef struct list {
    CUgraphNode *out;
    size_t room, n;
} list;

static void list_add(list *l, CUgraphNode node)
{
    if (l->out && l->n < l->room)
        l->out[l->n] = node;
    l->n++;
}

static CUresult list_end(list *l, size_t *count)
{
    for (size_t i = l->n; l->out && i < l->room; i++)
        l->out[i] = NULL;
    *count = l->out && l->n > l->room ? l->room : l->n;
    return CUDA_SUCCESS;
}

CUresult do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    if (!object_is(graph, OBJECT_GRAPH) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    list l = {nodes, *n, 0};
    for (size_t i = 0; i < graph->n_nodes; i++)
        list_add(&l, graph->nodes[i]);
    return list_end(&l, n);
}

CUresult do_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    if (!object_is(graph, OBJECT_GRAPH) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    list l = {nodes, *n, 0};
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->n_needs)
            list_add(&l, graph->nodes[i]);
    return list_end(&l, n);
}

CUresult do_cuGraphDestroyNode(CUgraphNode node)
{
    if (!object_is(node, OBJECT_NODE) || node->graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph graph = node->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        node_remove_need(graph->nodes[i], node);
    for (size_t i = node->index; i + 1 < graph->n_nodes; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    graph->n_nodes--;
    graph_count(graph, &node->work, false);
    node_delete(node);
    return CUDA_SUCCESS;
}

CUresult do_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    if (!object_is(node, OBJECT_NODE) || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = (CUgraphNodeType)node->work.type;
    return CUDA_SUCCESS;
}
