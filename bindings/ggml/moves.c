/* What moves elements: copies between strides, types and formats, CONCAT, REPEAT, SET, ACC, FILL, PAD, ROLL. */
#include <string.h>

#include "bodies.h"
#include "engine.h"

/* ---- Formats ---- */

enum { C_WEIGHTS, C_COLUMNS, C_ROWS, C_TYPE };

/* Plain numbers to a format. */
static qdnnStatus_t make_quantize(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t x = shapes_matrix(&s, (qdnnDataType_t)number[C_TYPE], number[C_ROWS],
                                             number[C_COLUMNS], number[C_COLUMNS]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[C_WEIGHTS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateQuantizePlan(handle, x, quant, plan));
}

/* And back. */
static qdnnStatus_t make_dequantize(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan)
{
    shapes s = {0};
    qdnnTensorDescriptor_t y = shapes_matrix(&s, (qdnnDataType_t)number[C_TYPE], number[C_ROWS],
                                             number[C_COLUMNS], number[C_COLUMNS]);
    qdnnQuantDescriptor_t quant = shapes_weights(&s, (qdnnWeights_t)number[C_WEIGHTS]);
    return shapes_free(&s, s.status ? s.status : qdnnCreateDequantizePlan(handle, y, quant, plan));
}

static bool is_blocks(enum ggml_type type)
{
    return ggml_blck_size(type) > 1;
}

/* Both without gaps, of as many elements; one is plain numbers, the other blocks. */
static bool convert_blocks(run *r, const place *to, const place *from)
{
    const bool reads = is_blocks(from->type);
    const place *blocks = reads ? from : to;
    qdnnWeights_t weights;
    qdnnDataType_t plain;
    if (!weights_type(blocks->type, &weights) || !plain_type(reads ? to->type : from->type, &plain))
        return run_declines(r, "%s to %s", ggml_type_name(from->type), ggml_type_name(to->type));
    plan_request request = {.make = reads ? make_dequantize : make_quantize,
                            .number = {[C_WEIGHTS] = weights,
                                       [C_COLUMNS] = blocks->ne[0],
                                       [C_ROWS] = place_elements(blocks) / blocks->ne[0],
                                       [C_TYPE] = plain}};
    const qdnnBinding_t bindings[] = {{reads ? QDNN_OPERAND_CODES : QDNN_OPERAND_X, from->data, 0},
                                      {reads ? QDNN_OPERAND_Y : QDNN_OPERAND_CODES, to->data, 0}};
    return run_plan(r, &request, ALL_ROWS, bindings, 2);
}

bool convert_place(run *r, const place *to, const struct ggml_tensor *from)
{
    place packed = place_of(from);
    if (!is_blocks(from->type))
        return copy_place(r, to, &packed);
    return packed_place(r, from, SCRATCH_W, &packed) && convert_blocks(r, to, &packed);
}

/* ---- CPY, CONT, DUP ---- */

/* Both sides with the same dimensions: those of the one that has gaps, for elements are counted in order. */
static bool align(run *r, const struct ggml_tensor *from, place *a, place *to)
{
    if (memcmp(a->ne, to->ne, sizeof a->ne) == 0)
        return true;
    if (place_is_packed(to)) {
        *to = place_packed(a, to->type, to->data);
        return true;
    }
    place packed;
    if (!packed_place(r, from, SCRATCH_X, &packed))
        return false;
    *a = place_packed(to, packed.type, packed.data);
    return true;
}

static bool copy_plain(run *r, const struct ggml_tensor *from, place to)
{
    place a = place_of(from);
    return align(r, from, &a, &to) && copy_place(r, &to, &a);
}

static bool copy_to_blocks(run *r, const struct ggml_tensor *from, const place *to)
{
    place packed;
    if (!place_is_packed(to))
        return run_declines(r, "blocks with gaps are not written");
    if (from->type ==
        GGML_TYPE_BF16) /* ggml's own kernels break its many ties otherwise than its reference */
        return run_declines(r, "bf16 to a format");
    return packed_place(r, from, SCRATCH_X, &packed) && convert_blocks(r, to, &packed);
}

/* Decoded without gaps, then put where it belongs. */
static bool copy_from_blocks(run *r, const struct ggml_tensor *from, place to)
{
    place packed;
    if (!packed_place(r, from, SCRATCH_W, &packed))
        return false;
    if (place_is_packed(&to))
        return convert_blocks(r, &to, &packed);
    place decoded = place_packed(&to, to.type, NULL);
    decoded.data = run_scratch(r, SCRATCH_X, (size_t)place_elements(&to) * ggml_type_size(to.type));
    return convert_blocks(r, &decoded, &packed) && copy_place(r, &to, &decoded);
}

/* Blocks of one format are bytes. */
static bool copy_same_blocks(run *r, const struct ggml_tensor *from, const place *to)
{
    place packed;
    if (!place_is_packed(to))
        return run_declines(r, "blocks with gaps are not written");
    if (!packed_place(r, from, SCRATCH_W, &packed))
        return false;
    return run_copy(r, to->data, packed.data, ggml_row_size(to->type, place_elements(to)));
}

static bool copy_tensor(run *r, const struct ggml_tensor *from, place to)
{
    if (!is_blocks(from->type) && !is_blocks(to.type))
        return copy_plain(r, from, to);
    if (!is_blocks(from->type))
        return copy_to_blocks(r, from, &to);
    if (!is_blocks(to.type))
        return copy_from_blocks(r, from, to);
    if (from->type != to.type)
        return run_declines(r, "one format to another");
    return copy_same_blocks(r, from, &to);
}

bool op_copy(run *r, const struct ggml_tensor *t)
{
    return copy_tensor(r, t->src[0], place_of(t));
}

/* ---- Parts ---- */

bool op_concat(run *r, const struct ggml_tensor *t)
{
    const int dim = t->op_params[0];
    const place whole = place_of(t), first = place_of(t->src[0]), second = place_of(t->src[1]);
    const place a = place_as_bytes(&first), c = place_as_bytes(&second);
    place to = place_as_bytes(&whole);
    to.ne[dim] = a.ne[dim];
    if (!copy_place(r, &to, &a))
        return false;
    if (to.data)
        to.data += (size_t)a.ne[dim] * to.nb[dim];
    to.ne[dim] = c.ne[dim];
    return copy_place(r, &to, &c);
}

bool op_repeat(run *r, const struct ggml_tensor *t)
{
    const place to = place_of(t), a = place_of(t->src[0]);
    if (is_blocks(t->type))
        return run_declines(r, "blocks that repeat");
    return copy_place(r, &to, &a);
}

/* The part of t that the parameters name, which is as large as the second input. */
static place named_part(const struct ggml_tensor *t)
{
    const struct ggml_tensor *c = t->src[1];
    place part = {
        .type = t->type,
        .nb = {t->nb[0], (size_t)t->op_params[0], (size_t)t->op_params[1], (size_t)t->op_params[2]}};
    memcpy(part.ne, c->ne, sizeof part.ne);
    if (t->data)
        part.data = (char *)t->data + (size_t)t->op_params[3];
    return part;
}

/* SET writes the second input into a part of the first, ACC adds it to that part. */
bool op_set(run *r, const struct ggml_tensor *t)
{
    const bool in_place = t->op_params[4] != 0;
    const place part = named_part(t), c = place_of(t->src[1]);
    if (is_blocks(t->type))
        return run_declines(r, "a part of blocks");
    if (!in_place && !copy_plain(r, t->src[0], place_of(t)))
        return false;
    return t->op == GGML_OP_SET ? copy_place(r, &part, &c) : run_each(r, &body_add, NULL, &part, &part, &c);
}

bool op_fill(run *r, const struct ggml_tensor *t)
{
    const place to = place_of(t);
    float number[EACH_NUMBERS] = {0};
    memcpy(number, t->op_params, sizeof number[0]);
    return run_each(r, &body_same, number, &to, NULL, NULL);
}

/* ---- PAD, ROLL ---- */

/* The part of a place that begins at `first` of a dimension. */
static place slice_of(place p, int d, int64_t first, int64_t size)
{
    p.ne[d] = size;
    if (p.data)
        p.data += (size_t)first * p.nb[d];
    return p;
}

/* to[i + shift] = from[i] in each dimension, where from repeats without end. */
static bool copy_shifted(run *r, place to, place from, const int64_t *shift, int d)
{
    if (d == GGML_MAX_DIMS)
        return copy_place(r, &to, &from);
    const int64_t n = from.ne[d];
    for (int64_t i = 0, size; n > 0 && i < to.ne[d]; i += size) {
        const int64_t first = ((i - shift[d]) % n + n) % n;
        size = n - first < to.ne[d] - i ? n - first : to.ne[d] - i;
        if (!copy_shifted(r, slice_of(to, d, i, size), slice_of(from, d, first, size), shift, d + 1))
            return false;
    }
    return true;
}

bool op_roll(run *r, const struct ggml_tensor *t)
{
    const int64_t shift[] = {t->op_params[0], t->op_params[1], t->op_params[2], t->op_params[3]};
    return copy_shifted(r, place_of(t), place_of(t->src[0]), shift, 0);
}

/* Zeros around x, or x again on all sides. */
bool op_pad(run *r, const struct ggml_tensor *t)
{
    const int64_t before[] = {t->op_params[0], t->op_params[2], t->op_params[4], t->op_params[6]};
    const bool repeats = t->op_params[8] != 0;
    const place to = place_of(t), from = place_of(t->src[0]);
    place inner = to;
    if (repeats)
        return copy_shifted(r, to, from, before, 0);
    for (int d = 0; d < GGML_MAX_DIMS; d++)
        inner = slice_of(inner, d, before[d], from.ne[d]);
    return run_each(r, &body_same, (const float[EACH_NUMBERS]){0}, &to, NULL, NULL) &&
           copy_place(r, &inner, &from);
}
