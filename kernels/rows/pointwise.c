/* Operations on each element: sums, products, functions, gated functions; with quantization behind. */
#include "kernels/functions.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/rows/rows.h"

enum { VALUES_MAX = ROW_CHUNKS_MAX * ROW_CHUNK };

static ptx_val unless_nan(ptx_builder *b, ptx_val x, ptx_val result)
{
    return ptx_selp(b, ptx_bits(b, PTX_F32, 0x7FFFFFFF), result, ptx_setp(b, PTX_NAN, x, x));
}

static ptx_val function_of(ptx_builder *b, const rows *r, ptx_val x)
{
    ptx_val limit = r->args->number[NUMBER_LIMIT];
    switch (r->spec->pointwise.function) {
    case QDNN_ACTIVATION_NONE:
        return x;
    case QDNN_ACTIVATION_RELU:
        return unless_nan(b, x, emit_relu(b, x));
    case QDNN_ACTIVATION_GELU_TANH:
        return emit_gelu_tanh(b, x);
    case QDNN_ACTIVATION_GELU_ERF:
        return emit_gelu_erf(b, x);
    case QDNN_ACTIVATION_SILU:
        return emit_silu(b, x);
    case QDNN_ACTIVATION_TANH:
        return emit_tanh(b, x);
    case QDNN_ACTIVATION_SIGMOID:
        return emit_sigmoid(b, x);
    case QDNN_ACTIVATION_RELU_SQUARED: {
        ptx_val y = emit_relu(b, x);
        return ptx_mul(b, y, y);
    }
    case QDNN_ACTIVATION_SOFTCAP:
        return ptx_mul(b, limit, emit_tanh(b, ptx_div(b, x, limit)));
    case QDNN_ACTIVATION_CLAMPED_SILU:
        break; /* gated only */
    }
    missing_row("functions", r->spec->pointwise.function);
}

/* NaN stays. */
static ptx_val at_most(ptx_builder *b, ptx_val x, ptx_val limit)
{
    return ptx_selp(b, limit, x, ptx_setp(b, PTX_GT, x, limit));
}

/* (a' * sigmoid(factor * a')) * (b' + 1), where a' is at most `limit`, and b' within it. */
static ptx_val clamped(ptx_builder *b, const rows *r, ptx_val x, ptx_val y)
{
    ptx_val limit = r->args->number[NUMBER_LIMIT], least = ptx_neg(b, limit);
    ptx_val a = at_most(b, x, limit), c = at_most(b, y, limit);
    c = ptx_selp(b, least, c, ptx_setp(b, PTX_LT, c, least));
    ptx_val gate = ptx_mul(b, a, emit_sigmoid(b, ptx_mul(b, r->args->number[NUMBER_FACTOR], a)));
    return ptx_mul(b, gate, ptx_add(b, c, ptx_f32(b, 1)));
}

static ptx_val result(ptx_builder *b, const rows *r, ptx_val x, ptx_val y)
{
    switch (r->spec->pointwise.kind) {
    case KERNEL_POINTWISE_ADD:
        return ptx_add(b, x, y);
    case KERNEL_POINTWISE_MUL:
        return ptx_mul(b, x, y);
    case KERNEL_POINTWISE_FUNCTION:
        return function_of(b, r, x);
    case KERNEL_POINTWISE_GATED:
        return r->spec->pointwise.function == QDNN_ACTIVATION_CLAMPED_SILU
                   ? clamped(b, r, x, y)
                   : ptx_mul(b, function_of(b, r, x), y);
    }
    missing_row("pointwise operations", (int)r->spec->pointwise.kind);
}

static void widen(ptx_builder *b, const rows *r, const row_array *a, const ptx_val *words, ptx_val *x)
{
    for (unsigned i = 0; i < r->shape.chunks; i++)
        row_widen(b, a, &words[i * row_words(a)], &x[i * ROW_CHUNK * a->spread]);
}

static void load_values(ptx_builder *b, const rows *r, const row_array *a, ptx_val *x)
{
    ptx_val words[ROW_CHUNKS_MAX * ROW_WORDS_MAX];
    row_load(b, r, a, r->exists, words);
    widen(b, r, a, words, x);
}

/* Even columns are x, odd ones y. */
static void load_interleaved(ptx_builder *b, const rows *r, row_array a, ptx_val *x, ptx_val *y)
{
    ptx_val both[2 * VALUES_MAX];
    a.spread = 2;
    load_values(b, r, &a, both);
    for (unsigned i = 0; i < r->shape.chunks * ROW_CHUNK; i++) {
        x[i] = both[2 * i];
        y[i] = both[2 * i + 1];
    }
}

/* Both inputs as f32; y is unused where the operation has one. */
static void load_inputs(ptx_builder *b, const rows *r, ptx_val *x, ptx_val *y)
{
    const kernel_spec *spec = r->spec;
    const ptx_val *number = r->args->number;
    const uint64_t columns = spec->rows.columns;
    row_array a = {.type = spec->data, .spread = 1}, second = {.type = spec->data, .spread = 1};
    ptx_val base = r->args->operand[QDNN_OPERAND_X], other = r->args->operand[QDNN_OPERAND_B];
    const unsigned bytes = element_bytes(spec->data);
    a.start = row_start(b, r, base, number[NUMBER_X_STRIDE], spec->data);
    switch (spec->pointwise.b) {
    case KERNEL_B_INTERLEAVED:
        a.start = ptx_at(b, base, ptx_mul(b, r->token, number[NUMBER_X_STRIDE]), bytes);
        load_interleaved(b, r, a, x, y);
        return;
    case KERNEL_B_SECOND_HALF:
    case KERNEL_B_FIRST_HALF:
        second.start = ptx_add(b, a.start, (long long)(columns * bytes));
        load_values(b, r, &a, spec->pointwise.b == KERNEL_B_SECOND_HALF ? x : y);
        load_values(b, r, &second, spec->pointwise.b == KERNEL_B_SECOND_HALF ? y : x);
        return;
    case KERNEL_B_SAME:
    case KERNEL_B_ROW:
        second.type = (qdnnDataType_t)spec->pointwise.b_type;
        second.start = spec->pointwise.b == KERNEL_B_ROW
                           ? other
                           : row_start(b, r, other, number[NUMBER_B_STRIDE], second.type);
        load_values(b, r, &a, x);
        load_values(b, r, &second, y);
        return;
    case KERNEL_B_NUMBER:
    case KERNEL_B_NONE:
        load_values(b, r, &a, x);
        for (unsigned i = 0; i < r->shape.chunks * ROW_CHUNK; i++)
            y[i] = number[NUMBER_ALPHA];
        return;
    }
    missing_row("second inputs", (int)spec->pointwise.b);
}

void emit_pointwise(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    static const qdnnOperand_t pointers[] = {QDNN_OPERAND_X, QDNN_OPERAND_Y, QDNN_OPERAND_B};
    rows r;
    rows_begin(b, &r, row, spec, &args, rows_have_one_scale(spec));
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        if (args.operand[pointers[i]].kind != PTX_NOTHING)
            rows_need_aligned(b, &r, args.operand[pointers[i]]);
    rows_need_stride(b, &r, args.number[NUMBER_X_STRIDE], spec->data);
    rows_need_stride(b, &r, args.number[NUMBER_Y_STRIDE], spec->epilogue.output);
    if (spec->pointwise.b == KERNEL_B_SAME)
        rows_need_stride(b, &r, args.number[NUMBER_B_STRIDE], (qdnnDataType_t)spec->pointwise.b_type);
    rows_loop(b, &r);
    ptx_val x[VALUES_MAX], y[VALUES_MAX];
    load_inputs(b, &r, x, y);
    for (unsigned i = 0; i < r.shape.chunks * ROW_CHUNK; i++)
        x[i] = result(b, &r, x[i], y[i]);
    row_finish(b, &r, x);
    rows_end(b);
}
