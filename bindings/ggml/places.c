/* Tensors with any strides: walked together in as few dimensions as possible, and copied. */
#include <string.h>

#include "bodies.h"
#include "engine.h"

place place_of(const struct ggml_tensor *t)
{
    place p = {.type = t->type, .data = t->data};
    memcpy(p.ne, t->ne, sizeof p.ne);
    memcpy(p.nb, t->nb, sizeof p.nb);
    return p;
}

place place_packed(const place *p, enum ggml_type type, void *data)
{
    place packed = {.type = type, .data = data};
    size_t bytes = ggml_type_size(type);
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        packed.ne[d] = p->ne[d];
        packed.nb[d] = bytes;
        bytes = d == 0 ? ggml_row_size(type, p->ne[0]) : bytes * (size_t)p->ne[d];
    }
    return packed;
}

int64_t place_elements(const place *p)
{
    return p->ne[0] * p->ne[1] * p->ne[2] * p->ne[3];
}

bool place_is_packed(const place *p)
{
    const place packed = place_packed(p, p->type, NULL);
    for (int d = 0; d < GGML_MAX_DIMS; d++)
        if (p->ne[d] > 1 && p->nb[d] != packed.nb[d])
            return false;
    return true;
}

void *place_row(const place *p, int64_t i2, int64_t i3)
{
    return p->data + (size_t)i2 * p->nb[2] + (size_t)i3 * p->nb[3];
}

bool rows_are_uniform(const place *p, int64_t *stride)
{
    size_t bytes = 0;
    int64_t rows = 1;
    for (int d = 1; d < GGML_MAX_DIMS; d++) {
        if (p->ne[d] == 1)
            continue;
        if (rows == 1)
            bytes = p->nb[d];
        else if (p->nb[d] != bytes * (size_t)rows)
            return false;
        rows *= p->ne[d];
    }
    *stride = rows == 1 ? p->ne[0] : (int64_t)(bytes / ggml_type_size(p->type));
    return p->nb[0] == ggml_type_size(p->type) && bytes % ggml_type_size(p->type) == 0;
}

/* ---- Lattices ---- */

/* One more dimension, outside those that are there. */
static void push(lattice *l, int count, int64_t size, const int64_t *strides)
{
    if (size == 1)
        return;
    bool goes_on = l->rank > 0;
    for (int i = 0; i < count && goes_on; i++)
        goes_on = strides[i] == l->stride[i][l->rank - 1] * l->size[l->rank - 1];
    if (goes_on) {
        l->size[l->rank - 1] *= size;
        return;
    }
    l->size[l->rank] = size;
    for (int i = 0; i < count; i++)
        l->stride[i][l->rank] = strides[i];
    l->rank++;
}

/* The size that repeats within dimension d of the first place; 0: several differ. */
static int64_t period_of(const place *const *places, int count, int d)
{
    const int64_t whole = places[0]->ne[d];
    int64_t period = whole;
    for (int i = 1; i < count; i++) {
        const int64_t size = places[i]->ne[d];
        if (size == whole || size == 1)
            continue;
        if (size == 0 || whole % size || (period != whole && period != size))
            return 0;
        period = size;
    }
    return period;
}

bool lattice_of(run *r, const place *const *places, int count, lattice *out)
{
    *out = (lattice){0};
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        const int64_t whole = places[0]->ne[d], period = period_of(places, count, d);
        int64_t within[LATTICE_PLACES], beyond[LATTICE_PLACES];
        if (period == 0)
            return run_declines(r, "sizes that do not repeat within each other");
        for (int i = 0; i < count; i++) {
            const size_t bytes = ggml_type_size(places[i]->type);
            if (places[i]->nb[d] % bytes)
                return run_declines(r, "strides that are not whole elements");
            const int64_t stride = (int64_t)(places[i]->nb[d] / bytes);
            within[i] = places[i]->ne[d] == 1 ? 0 : stride;
            beyond[i] = places[i]->ne[d] == whole ? period * within[i] : 0;
        }
        push(out, count, period, within);
        push(out, count, whole / period, beyond);
    }
    if (out->rank == 0)
        out->size[out->rank++] = 1; /* the strides do not matter */
    return true;
}

/* ---- Copies ---- */

enum { COPY_RANK = 4 }; /* of a plan, with merged dimensions */
enum { K_FROM_TYPE, K_TO_TYPE, K_RANK, K_SIZE, K_FROM = K_SIZE + COPY_RANK, K_TO = K_FROM + COPY_RANK };

static qdnnStatus_t make_copy(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    const int rank = (int)number[K_RANK];
    qdnnTensorDescriptor_t x = shapes_add(&s, (qdnnDataType_t)number[K_FROM_TYPE], rank, number + K_SIZE,
                                          number + K_FROM),
                           y = shapes_add(&s, (qdnnDataType_t)number[K_TO_TYPE], rank, number + K_SIZE,
                                          number + K_TO);
    return shapes_free(&s, s.status ? s.status : qdnnCreateCopyPlan(handle, x, y, plan));
}

/* The type of elements that are copied; equal ones of ggml may be any of whole bytes. */
static bool copied_types(enum ggml_type from, enum ggml_type to, qdnnDataType_t *x, qdnnDataType_t *y)
{
    if (plain_type(from, x) && plain_type(to, y))
        return true;
    if (from != to || ggml_blck_size(from) != 1)
        return false;
    const size_t bytes = ggml_type_size(from);
    *x = *y = bytes == 1   ? QDNN_DATA_U8
              : bytes == 2 ? QDNN_DATA_U16
              : bytes == 4 ? QDNN_DATA_U32
                           : QDNN_DATA_U64;
    return true;
}

/* A plan takes four dimensions; those beyond are walked here. */
static bool copy_inner(run *r, const lattice *l, plan_request *request, int rank, char *to, const char *from,
                       size_t to_bytes, size_t from_bytes)
{
    if (rank <= COPY_RANK) {
        const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, from, 0}, {QDNN_OPERAND_Y, to, 0}};
        return run_plan(r, request, ALL_ROWS, bindings, 2);
    }
    for (int64_t i = 0; i < l->size[rank - 1]; i++) {
        if (!copy_inner(r, l, request, rank - 1, to + (size_t)(i * l->stride[0][rank - 1]) * to_bytes,
                        from + (size_t)(i * l->stride[1][rank - 1]) * from_bytes, to_bytes, from_bytes))
            return false;
        if (r->dry)
            return true;
    }
    return true;
}

bool copy_place(run *r, const place *to, const place *from)
{
    qdnnDataType_t x, y;
    lattice l;
    if (place_elements(to) == 0)
        return true;
    if (!copied_types(from->type, to->type, &x, &y))
        return run_each(r, &body_same, NULL, to, from, NULL); /* numbers that the library does not convert */
    if (!lattice_of(r, (const place *const[]){to, from}, 2, &l))
        return false;
    plan_request request = {.make = make_copy, .number = {[K_FROM_TYPE] = x, [K_TO_TYPE] = y}};
    const int rank = l.rank < COPY_RANK ? l.rank : COPY_RANK;
    request.number[K_RANK] = rank;
    for (int i = 0; i < rank; i++) { /* descriptors have the innermost dimension last */
        request.number[K_SIZE + rank - 1 - i] = l.size[i];
        request.number[K_FROM + rank - 1 - i] = l.stride[1][i];
        request.number[K_TO + rank - 1 - i] = l.stride[0][i];
    }
    return copy_inner(r, &l, &request, l.rank, to->data, from->data, ggml_type_size(to->type),
                      ggml_type_size(from->type));
}

place place_as_bytes(const place *p)
{
    place bytes = *p;
    if (ggml_blck_size(p->type) > 1) {
        bytes.type = GGML_TYPE_I8;
        bytes.ne[0] = (int64_t)ggml_row_size(p->type, p->ne[0]);
        bytes.nb[0] = 1;
    }
    return bytes;
}

bool packed_place(run *r, const struct ggml_tensor *t, int slot, place *out)
{
    const place from = place_of(t);
    *out = from;
    if (place_is_packed(&from))
        return true;
    if (ggml_blck_size(t->type) > 1 && !is_packed_row(t))
        return run_declines(r, "blocks that are not neighbours along a row");
    *out = place_packed(&from, t->type, NULL);
    const size_t bytes = ggml_row_size(t->type, t->ne[0]) * (size_t)ggml_nrows(t);
    out->data = run_scratch(r, slot, bytes);
    if (!out->data && !r->dry)
        return run_declines(r, "no device memory for a copy of %zu bytes", bytes);
    const place to_bytes = place_as_bytes(out), from_bytes = place_as_bytes(&from);
    return copy_place(r, &to_bytes, &from_bytes);
}
