/* Operations on each element, of tensors with any strides that repeat as ggml repeats them. */
#include "engine.h"

#include <string.h>

#include "bodies.h"
#include "kernels/emit.h"

enum { EACH_RANK = 6 }; /* more would be more numbers than a kernel takes */
enum { S_BODY, S_RANK, S_PLACES, S_TYPE };

static bool element_type(enum ggml_type type, qdnnDataType_t *out)
{
    *out = QDNN_DATA_I32;
    return type == GGML_TYPE_I32 || plain_type(type, out);
}

/* ---- The kernel: a thread computes one element ---- */

static void store(ptx_builder *b, qdnnDataType_t type, ptx_val address, ptx_val x)
{
    if (type == QDNN_DATA_I32)
        ptx_st_global(b, address, 0, ptx_cvt_rzi(b, PTX_S32, x));
    else
        emit_store(b, type, address, 0, x);
}

static void write_each(ptx_builder *b, const int64_t *spec)
{
    static const char *const pointers[] = {"to", "a", "c"}, *const numbers[] = {"p0", "p1", "p2", "p3"};
    static const char *const sizes[] = {"n0", "n1", "n2", "n3", "n4"};
    static const char *const strides[3][EACH_RANK] = {{"t0", "t1", "t2", "t3", "t4", "t5"},
                                                      {"a0", "a1", "a2", "a3", "a4", "a5"},
                                                      {"c0", "c1", "c2", "c3", "c4", "c5"}};
    const each_body *body = (const each_body *)(uintptr_t)spec[S_BODY];
    const int rank = (int)spec[S_RANK], places = (int)spec[S_PLACES];
    ptx_val at[LATTICE_PLACES], number[EACH_NUMBERS], size[EACH_RANK], stride[LATTICE_PLACES][EACH_RANK];
    for (int i = 0; i < places; i++)
        at[i] = ptx_param_ptr(b, pointers[i], 1);
    ptx_val n = ptx_param(b, PTX_U32, "n");
    for (int i = 0; i < EACH_NUMBERS; i++)
        number[i] = ptx_param(b, PTX_F32, numbers[i]);
    for (int d = 0; d + 1 < rank; d++)
        size[d] = ptx_param(b, PTX_U32, sizes[d]);
    for (int i = 0; i < places; i++)
        for (int d = 0; d < rank; d++)
            stride[i][d] = ptx_param(b, PTX_U32, strides[i][d]);

    ptx_val rest = ptx_global_index(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, rest, n));
    for (int d = 0; d < rank; d++) {
        ptx_val index = rest;
        if (d + 1 < rank) {
            ptx_val next = ptx_div(b, rest, size[d]);
            index = ptx_sub(b, rest, ptx_mul(b, next, size[d]));
            rest = next;
        }
        for (int i = 0; i < places; i++)
            at[i] = ptx_mad_wide(b, index, stride[i][d], at[i]);
    }
    ptx_val x[2] = {number[0], number[0]};
    for (int i = 1; i < places; i++)
        x[i - 1] = emit_load_mutable(b, (qdnnDataType_t)spec[S_TYPE + i], at[i], 0);
    store(b, (qdnnDataType_t)spec[S_TYPE], at[0], emit_body(b, body, x[0], x[1], number));
}

/* The dimensions of a lattice that a kernel walks, and where they begin in each place. */
typedef struct inner {
    const lattice *l;
    const place *const *places;
    int count, rank;
} inner;

static size_t stride_bytes(const inner *in, int i, int d)
{
    return (size_t)in->l->stride[i][d] * ggml_type_size(in->places[i]->type);
}

static bool add_sizes(run *r, const inner *in, kernel_request *request)
{
    int64_t elements = 1;
    for (int d = 0; d < in->rank; d++)
        elements *= in->l->size[d];
    if (elements > UINT32_MAX - KERNEL_BLOCK)
        return run_declines(r, "more than 2^32 elements");
    request->blocks = (elements + KERNEL_BLOCK - 1) / KERNEL_BLOCK;
    request->number[0] = (uint32_t)elements;
    for (int d = 0; d + 1 < in->rank; d++)
        request->number[request->numbers++] = (uint32_t)in->l->size[d];
    for (int i = 0; i < in->count; i++)
        for (int d = 0; d < in->rank; d++) {
            if (stride_bytes(in, i, d) > UINT32_MAX)
                return run_declines(r, "elements that are more than 4 GB apart");
            request->number[request->numbers++] = (uint32_t)stride_bytes(in, i, d);
        }
    return true;
}

/* Dimensions beyond those of a kernel are walked here. */
static bool each_inner(run *r, const inner *in, const kernel_request *request, int rank,
                       const char *const *at)
{
    if (rank == in->rank)
        return run_kernel(r, request, (const void *const *)at);
    for (int64_t i = 0; i < in->l->size[rank - 1]; i++) {
        const char *part[LATTICE_PLACES];
        for (int p = 0; p < in->count; p++)
            part[p] = at[p] + (size_t)i * stride_bytes(in, p, rank - 1);
        if (!each_inner(r, in, request, rank - 1, part))
            return false;
        if (r->dry)
            return true;
    }
    return true;
}

bool run_each(run *r, const each_body *body, const float *numbers, const place *to, const place *a,
              const place *c)
{
    const place *const places[] = {to, a, c};
    const char *at[LATTICE_PLACES];
    lattice l;
    inner in = {.l = &l, .places = places, .count = c ? 3 : a ? 2 : 1};
    kernel_request request = {.write = write_each,
                              .spec = {[S_BODY] = (int64_t)(uintptr_t)body, [S_PLACES] = in.count},
                              .numbers = 1 + EACH_NUMBERS,
                              .pointers = in.count};
    if (!body)
        return run_declines(r, "a function without a kernel");
    if (place_elements(to) == 0)
        return true;
    for (int i = 0; i < in.count; i++) {
        qdnnDataType_t type;
        if (!element_type(places[i]->type, &type))
            return run_declines(r, "elements of type %s", ggml_type_name(places[i]->type));
        request.spec[S_TYPE + i] = type;
        at[i] = places[i]->data;
    }
    if (!lattice_of(r, places, in.count, &l))
        return false;
    in.rank = l.rank < EACH_RANK ? l.rank : EACH_RANK;
    request.spec[S_RANK] = in.rank;
    for (int i = 0; i < EACH_NUMBERS; i++)
        request.number[1 + i] = float_bits(numbers ? numbers[i] : 0);
    return add_sizes(r, &in, &request) && each_inner(r, &in, &request, l.rank, at);
}

/* ---- Operations ---- */

static void numbers_of(const struct ggml_tensor *t, int first, float *numbers)
{
    memcpy(numbers, (const char *)t->op_params + (size_t)first * sizeof(float), EACH_NUMBERS * sizeof(float));
}

bool op_binary(run *r, const struct ggml_tensor *t)
{
    const place to = place_of(t), a = place_of(t->src[0]), c = place_of(t->src[1]);
    return run_pointwise(r, t) || run_each(r, body_of_op(t->op), NULL, &to, &a, &c);
}

bool op_each(run *r, const struct ggml_tensor *t)
{
    const place to = place_of(t), a = place_of(t->src[0]);
    float numbers[EACH_NUMBERS];
    numbers_of(t, 0, numbers);
    return run_each(r, body_of_op(t->op), numbers, &to, &a, NULL);
}

bool op_unary(run *r, const struct ggml_tensor *t)
{
    const each_body *body = body_of_unary(ggml_get_unary_op(t));
    const place to = place_of(t), a = place_of(t->src[0]);
    float numbers[EACH_NUMBERS];
    numbers_of(t, 1, numbers);
    return run_pointwise(r, t) || run_each(r, body, numbers, &to, &a, NULL);
}

/* Half of each row. */
static place half_of(const struct ggml_tensor *t, bool second)
{
    place p = place_of(t);
    p.ne[0] /= 2;
    if (second && p.data)
        p.data += (size_t)p.ne[0] * p.nb[0];
    return p;
}

bool op_glu(run *r, const struct ggml_tensor *t)
{
    const each_body *body = body_of_glu(ggml_get_glu_op(t));
    const bool swapped = t->op_params[1] != 0;
    const place to = place_of(t), a = t->src[1] ? place_of(t->src[0]) : half_of(t->src[0], swapped),
                c = t->src[1] ? place_of(t->src[1]) : half_of(t->src[0], !swapped);
    float numbers[EACH_NUMBERS] = {0};
    memcpy(numbers, &t->op_params[2], 2 * sizeof numbers[0]);
    return run_pointwise(r, t) || run_each(r, body, numbers, &to, &a, &c);
}
