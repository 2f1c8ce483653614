/* RMS norm and layer norm of rows, with a residual in front and quantization behind. */
#include "kernels/rows/rows.h"

enum { VALUES_MAX = ROW_CHUNKS_MAX * ROW_CHUNK };

/* An array of one element per column, the same for all rows: kept as words, because that takes fewer registers. */
typedef struct per_column {
    row_array array;
    ptx_val words[ROW_CHUNKS_MAX * ROW_WORDS_MAX];
} per_column;

static void load_columns(ptx_builder *b, const rows *r, qdnnOperand_t operand, int type, per_column *c)
{
    if (!type)
        return;
    c->array = (row_array){.type = (qdnnDataType_t)type, .start = r->args->operand[operand], .spread = 1};
    ptx_val always = ptx_setp(b, PTX_EQ, ptx_u32(b, 0), 0);
    row_load(b, r, &c->array, always, c->words);
}

static void load_values(ptx_builder *b, const rows *r, const row_array *a, ptx_val *x)
{
    ptx_val words[ROW_CHUNKS_MAX * ROW_WORDS_MAX];
    row_load(b, r, a, r->exists, words);
    for (unsigned i = 0; i < r->shape.chunks; i++)
        row_widen(b, a, &words[i * row_words(a)], &x[i * ROW_CHUNK]);
}

/* The residual and the sum lie as packed rows. */
static row_array stream_of(ptx_builder *b, const rows *r, qdnnOperand_t operand)
{
    const qdnnDataType_t type = (qdnnDataType_t)r->spec->norm.sum;
    const uint64_t token = r->spec->rows.heads * r->spec->rows.columns;
    return (row_array){.type = type,
                       .start = row_start(b, r, r->args->operand[operand], ptx_u64(b, token), type),
                       .spread = 1};
}

/* h = x + residual, rounded to its type and written. */
static void add_residual(ptx_builder *b, const rows *r, ptx_val *x)
{
    ptx_val other[VALUES_MAX];
    const row_array residual = stream_of(b, r, QDNN_OPERAND_RESIDUAL),
                    sum = stream_of(b, r, QDNN_OPERAND_SUM);
    load_values(b, r, &residual, other);
    for (unsigned i = 0; i < r->shape.chunks * ROW_CHUNK; i++)
        x[i] = emit_round(b, sum.type, ptx_add(b, x[i], other[i]));
    row_store(b, r, &sum, x);
}

static ptx_val mean(ptx_builder *b, rows *r, const ptx_val *x, bool is_squared)
{
    return ptx_div(b, row_sum(b, r, x, is_squared), ptx_f32(b, (float)r->spec->rows.columns));
}

/* Weights stay in registers from row to row, unless they would take too many. */
static bool keeps_columns(const rows *r)
{
    const kernel_spec *spec = r->spec;
    unsigned bytes = 4;
    bytes += spec->norm.weight ? element_bytes((qdnnDataType_t)spec->norm.weight) : 0;
    bytes += spec->epilogue.bias ? element_bytes((qdnnDataType_t)spec->epilogue.bias) : 0;
    return r->shape.chunks * ROW_CHUNK * bytes / 4 <= (r->shape.block > 256 ? 64 : 96);
}

static void load_all_columns(ptx_builder *b, const rows *r, per_column *weight, per_column *bias)
{
    load_columns(b, r, QDNN_OPERAND_WEIGHT, r->spec->norm.weight, weight);
    load_columns(b, r, QDNN_OPERAND_BIAS, r->spec->epilogue.bias, bias);
}

static void emit_row(ptx_builder *b, rows *r, per_column *weight, per_column *bias)
{
    const kernel_spec *spec = r->spec;
    const unsigned values = r->shape.chunks * ROW_CHUNK;
    const row_array x_array = {.type = spec->data,
                               .start = row_start(b, r, r->args->operand[QDNN_OPERAND_X],
                                                  r->args->number[NUMBER_X_STRIDE], spec->data),
                               .spread = 1};
    ptx_val x[VALUES_MAX];
    load_values(b, r, &x_array, x);
    if (spec->norm.sum)
        add_residual(b, r, x);
    if (spec->norm.kind == KERNEL_NORM_LAYER) {
        ptx_val mu = mean(b, r, x, false);
        for (unsigned i = 0; i < values; i++)
            x[i] = ptx_sub(b, x[i], mu);
        row_mask(b, r, x);
    }
    ptx_val root = ptx_sqrt(b, ptx_add(b, mean(b, r, x, true), r->args->number[NUMBER_EPS]));
    ptx_val factor = ptx_div(b, ptx_f32(b, 1), root);
    if (!keeps_columns(r))
        load_all_columns(b, r, weight, bias);
    for (unsigned i = 0; i < r->shape.chunks; i++) {
        ptx_val w[ROW_CHUNK], c[ROW_CHUNK], *y = &x[i * ROW_CHUNK];
        if (spec->norm.weight)
            row_widen(b, &weight->array, &weight->words[i * row_words(&weight->array)], w);
        if (spec->epilogue.bias)
            row_widen(b, &bias->array, &bias->words[i * row_words(&bias->array)], c);
        for (unsigned e = 0; e < ROW_CHUNK; e++) {
            y[e] = ptx_mul(b, y[e], factor);
            if (spec->norm.weight)
                y[e] = ptx_mul(b, y[e], spec->norm.plus_one ? ptx_add(b, w[e], ptx_f32(b, 1)) : w[e]);
            if (spec->epilogue.bias)
                y[e] = ptx_add(b, y[e], c[e]);
        }
    }
    row_finish(b, r, x);
}

void emit_norm(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const kernel_args args = kernel_declare(b, row, spec);
    static const qdnnOperand_t pointers[] = {QDNN_OPERAND_X,        QDNN_OPERAND_Y,   QDNN_OPERAND_WEIGHT,
                                             QDNN_OPERAND_RESIDUAL, QDNN_OPERAND_SUM, QDNN_OPERAND_BIAS};
    rows r;
    per_column weight = {0}, bias = {0};
    rows_begin(b, &r, row, spec, &args, true);
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        if (args.operand[pointers[i]].kind != PTX_NOTHING)
            rows_need_aligned(b, &r, args.operand[pointers[i]]);
    rows_need_stride(b, &r, args.number[NUMBER_X_STRIDE], spec->data);
    rows_need_stride(b, &r, args.number[NUMBER_Y_STRIDE], spec->epilogue.output);
    if (keeps_columns(&r))
        load_all_columns(b, &r, &weight, &bias);
    rows_loop(b, &r);
    emit_row(b, &r, &weight, &bias);
    rows_end(b);
}
