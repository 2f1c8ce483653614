/* Edges of graphs: the dependencies of a node, plain or programmatic (its kernel may begin before the one that it needs has
 * ended); queries about them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DEFAULT, PORT_PROGRAMMATIC, PORT_LAUNCH_ORDER };
enum { TYPE_DEFAULT, TYPE_PROGRAMMATIC };
static const CUgraphEdgeData plain = {0};
const CUgraphEdgeData graph_programmatic_edge = {.from_port = PORT_PROGRAMMATIC, .type = TYPE_PROGRAMMATIC};

static bool is_plain(const CUgraphEdgeData *edge)
{
    return !memcmp(edge, &plain, sizeof plain);
}

CUresult node_add_need(CUgraphNode node, CUgraphNode need, const CUgraphEdgeData *edge)
{
    if (node->n_needs == node->need_capacity) {
        size_t capacity = 2 * node->need_capacity + 4;
        CUgraphNode *needs = realloc(node->needs, capacity * sizeof *needs);
        node->needs = needs ? needs : node->needs;
        CUgraphEdgeData *edges = needs ? realloc(node->edges, capacity * sizeof *edges) : NULL;
        if (!edges)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->edges = edges;
        node->need_capacity = capacity;
    }
    node->edges[node->n_needs] = edge ? *edge : plain;
    node->needs[node->n_needs++] = need;
    return CUDA_SUCCESS;
}

static bool has_need(CUgraphNode node, CUgraphNode need)
{
    for (size_t i = 0; i < node->n_needs; i++)
        if (node->needs[i] == need)
            return true;
    return false;
}

void node_remove_need(CUgraphNode node, CUgraphNode need)
{
    for (size_t i = 0; i < node->n_needs; i++)
        if (node->needs[i] == need) {
            size_t after = --node->n_needs - i;
            memmove(node->needs + i, node->needs + i + 1, after * sizeof *node->needs);
            memmove(node->edges + i, node->edges + i + 1, after * sizeof *node->edges);
            return;
        }
}

bool node_may_overlap(CUgraphNode node, CUgraphNode previous)
{
    for (size_t i = 0; i < node->n_needs; i++)
        if (node->needs[i] == previous)
            return node->edges[i].type == TYPE_PROGRAMMATIC;
    return false;
}

CUresult edge_check(CUgraphNode from, int to_type, const CUgraphEdgeData *edge)
{
    const uint8_t zero[sizeof edge->reserved] = {0};
    if (!edge || is_plain(edge))
        return CUDA_SUCCESS;
    bool kernels = from->work.type == CU_GRAPH_NODE_TYPE_KERNEL && to_type == CU_GRAPH_NODE_TYPE_KERNEL;
    bool ports = edge->from_port == PORT_PROGRAMMATIC || edge->from_port == PORT_LAUNCH_ORDER;
    if (kernels && ports && edge->type == TYPE_PROGRAMMATIC && !edge->to_port &&
        !memcmp(edge->reserved, zero, sizeof zero))
        return CUDA_SUCCESS;
    return cuda_log(
        CUDA_ERROR_INVALID_VALUE,
        "an edge with from_port %d, to_port %d, type %d: between two kernels it may be 0, 0, 0, or from_port "
        "1 or 2 with type 1 (programmatic); between others 0, 0, 0",
        edge->from_port, edge->to_port, edge->type);
}

/* ---- Adding and removing ---- */

static CUresult check_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                            const CUgraphEdgeData *edges, size_t n)
{
    CUresult result = CUDA_SUCCESS;
    if (!object_is(graph, OBJECT_GRAPH) || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n && !result; i++)
        if (!object_is(from[i], OBJECT_NODE) || !object_is(to[i], OBJECT_NODE) || from[i]->graph != graph ||
            to[i]->graph != graph || from[i] == to[i])
            result = CUDA_ERROR_INVALID_VALUE;
        else
            result = edge_check(from[i], to[i]->work.type, edges ? &edges[i] : NULL);
    return result;
}

CUresult do_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t n)
{
    CUresult result = check_edges(graph, from, to, edges, n);
    for (size_t i = 0; i < n && !result; i++)
        if (has_need(to[i], from[i]))
            result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n && !result; i++)
        result = node_add_need(to[i], from[i], edges ? &edges[i] : NULL);
    return result;
}

CUresult do_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return do_cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

CUresult do_cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                         const CUgraphEdgeData *edges, size_t n)
{
    CUresult result = check_edges(graph, from, to, edges, n);
    for (size_t i = 0; i < n && !result; i++)
        if (!has_need(to[i], from[i]))
            result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n && !result; i++)
        node_remove_need(to[i], from[i]);
    return result;
}

CUresult do_cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return do_cuGraphRemoveDependencies_v2(graph, from, to, NULL, n);
}

/* ---- Lists: null arrays ask for the count; in longer arrays the rest is null. Edges that are not plain are not listed without
 * room for their data ---- */

typedef struct list {
    CUgraphNode *from, *to;
    CUgraphEdgeData *edges;
    size_t room, n;
    bool lossy;
} list;

static void list_add(list *l, CUgraphNode node, size_t i)
{
    if (l->n < l->room) {
        if (l->from)
            l->from[l->n] = node->needs[i];
        if (l->to)
            l->to[l->n] = node;
        if (l->edges)
            l->edges[l->n] = node->edges[i];
        l->lossy |= (l->from || l->to) && !l->edges && !is_plain(&node->edges[i]);
    }
    l->n++;
}

static CUresult list_end(const list *l, size_t *count)
{
    bool listed = l->from || l->to;
    for (size_t i = l->n; listed && i < l->room; i++) {
        if (l->from)
            l->from[i] = NULL;
        if (l->to)
            l->to[i] = NULL;
        if (l->edges)
            l->edges[i] = plain;
    }
    *count = listed && l->n > l->room ? l->room : l->n;
    return l->lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

CUresult do_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                               size_t *n)
{
    if (!object_is(graph, OBJECT_GRAPH) || !n || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    list l = {from, to, from ? edges : NULL, *n, 0, false};
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i]->n_needs; k++)
            list_add(&l, graph->nodes[i], k);
    return list_end(&l, n);
}

CUresult do_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return do_cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

CUresult do_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                          size_t *n)
{
    if (!object_is(node, OBJECT_NODE) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    list l = {nodes, NULL, nodes ? edges : NULL, *n, 0, false};
    for (size_t i = 0; i < node->n_needs; i++)
        list_add(&l, node, i);
    return list_end(&l, n);
}

CUresult do_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return do_cuGraphNodeGetDependencies_v2(node, nodes, NULL, n);
}

CUresult do_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                            size_t *n)
{
    if (!object_is(node, OBJECT_NODE) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    list l = {NULL, nodes, nodes ? edges : NULL, *n, 0, false};
    for (size_t i = 0; i < node->graph->n_nodes; i++)
        for (size_t k = 0; k < node->graph->nodes[i]->n_needs; k++)
            if (node->graph->nodes[i]->needs[k] == node)
                list_add(&l, node->graph->nodes[i], k);
    return list_end(&l, n);
}

CUresult do_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return do_cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n);
}
