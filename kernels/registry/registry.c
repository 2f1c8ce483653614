/* The registry: every format with each operation that it supports, and how a row becomes PTX text. */
#include "kernels/operations.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kernels/formats/format.h"
#include "kernels/formats/prepacked.h"

extern const format_row format_rows[];

/* The index of each format in the table. */
enum {
#define FORMAT(name, ...) PLACE_##name,
#include "kernels/formats/formats.def"
#undef FORMAT
};

#define ROW_0(...)
#define ROW_1(operation, constant, format, words)                                                            \
    {#operation "_" #format, "quant." #format "." #operation, words, &operation_rows[KERNEL_##constant],     \
     &format_rows[PLACE_##format]},
#define PLAIN_ROW(kernel, constant, operation, words)                                                        \
    {#kernel, operation, words, &operation_rows[KERNEL_##constant], &format_none},
#define PREPACK_ROW(format, words) ROW_1(prepack, PREPACK, format, words " in the order of tensor cores")

#define TRANSPOSED_ROW(format, words)                                                                        \
    ROW_1(dequantize_transposed, DEQUANTIZE_TRANSPOSED, format,                                              \
          "dequantization to the transposed matrix of " words)

#define QUANTIZE_ROWS_ROW(format, words)                                                                     \
    ROW_1(quantize_rows, QUANTIZE_ROWS, format, "rows into the places of a table of " words)

/* One row per line. */
/* clang-format off */
const kernel_row kernel_rows[] = {
#define FORMAT(name, storage, bits, zero, block, codec, number, scales, quantizes, dequantizes, words)         \
    ROW_##scales(scale, SCALE, name, "the scales (and zeros) of " words)                                     \
        ROW_##quantizes(quantize, QUANTIZE, name, "quantization to " words)                                               \
            ROW_##dequantizes(dequantize, DEQUANTIZE, name, "dequantization of " words)                                   \
                ROW_##scales(quantize_dynamic, DYNAMIC, name, "scales and codes, in one kernel, of " words)                 \
                    ROW_##dequantizes(matmul, MATMUL, name, "a product with weights in " words)
#include "kernels/formats/formats.def"
#undef FORMAT
    /* Codes are just bits, whatever they stand for: one row for each width. */
    ROW_1(repack, REPACK, int2, "2-bit codes in another layout")
    ROW_1(repack, REPACK, int3, "3-bit codes in another layout")
    ROW_1(repack, REPACK, int4, "4-bit codes in another layout")
    ROW_1(repack, REPACK, int5, "5-bit codes in another layout")
    ROW_1(repack, REPACK, int6, "6-bit codes in another layout")
    ROW_1(repack, REPACK, int8, "8-bit codes in another layout")
    PREPACK_ROW(int2, "2-bit codes")
    PREPACK_ROW(int3, "3-bit codes")
    PREPACK_ROW(int4, "4-bit codes")
    PREPACK_ROW(e2m1, "4-bit codes for lookup in a table")
    PREPACK_ROW(int5, "5-bit codes")
    PREPACK_ROW(int6, "6-bit codes")
    PREPACK_ROW(int8, "8-bit codes")
    PREPACK_ROW(plain_f16, "plain 16-bit values")
    PREPACK_ROW(plain_f32, "plain 32-bit values")
    PREPACK_ROW(gguf_q4_0, "GGUF Q4_0 blocks")
    PREPACK_ROW(gguf_q4_1, "GGUF Q4_1 blocks")
    PREPACK_ROW(gguf_q5_0, "GGUF Q5_0 blocks")
    PREPACK_ROW(gguf_q5_1, "GGUF Q5_1 blocks")
    PREPACK_ROW(gguf_q8_0, "GGUF Q8_0 blocks")
    PREPACK_ROW(gguf_q8_1, "GGUF Q8_1 blocks")
    PREPACK_ROW(gguf_q2_k, "GGUF Q2_K blocks")
    PREPACK_ROW(gguf_q3_k, "GGUF Q3_K blocks")
    PREPACK_ROW(gguf_q4_k, "GGUF Q4_K blocks")
    PREPACK_ROW(gguf_q5_k, "GGUF Q5_K blocks")
    PREPACK_ROW(gguf_q6_k, "GGUF Q6_K blocks")
    PREPACK_ROW(gguf_q8_k, "GGUF Q8_K blocks")
    PREPACK_ROW(gguf_iq4_nl, "GGUF IQ4_NL blocks")
    PREPACK_ROW(gguf_iq4_xs, "GGUF IQ4_XS blocks")
    PREPACK_ROW(gguf_tq1_0, "GGUF TQ1_0 blocks")
    PREPACK_ROW(gguf_tq2_0, "GGUF TQ2_0 blocks")
    PREPACK_ROW(gguf_mxfp4, "GGUF MXFP4 blocks")
    PREPACK_ROW(gguf_nvfp4, "GGUF NVFP4 blocks")
    PREPACK_ROW(gguf_q1_0, "GGUF Q1_0 blocks")
    PREPACK_ROW(gguf_q2_0, "GGUF Q2_0 blocks")
    PREPACK_ROW(gguf_iq1_s, "GGUF IQ1_S blocks")
    PREPACK_ROW(gguf_iq1_m, "GGUF IQ1_M blocks")
    PREPACK_ROW(gguf_iq2_xxs, "GGUF IQ2_XXS blocks")
    PREPACK_ROW(gguf_iq2_xs, "GGUF IQ2_XS blocks")
    PREPACK_ROW(gguf_iq2_s, "GGUF IQ2_S blocks")
    PREPACK_ROW(gguf_iq3_xxs, "GGUF IQ3_XXS blocks")
    PREPACK_ROW(gguf_iq3_s, "GGUF IQ3_S blocks")
    TRANSPOSED_ROW(gguf_q4_0, "GGUF Q4_0 blocks")
    TRANSPOSED_ROW(gguf_q4_1, "GGUF Q4_1 blocks")
    TRANSPOSED_ROW(gguf_q5_0, "GGUF Q5_0 blocks")
    TRANSPOSED_ROW(gguf_q5_1, "GGUF Q5_1 blocks")
    TRANSPOSED_ROW(gguf_q8_0, "GGUF Q8_0 blocks")
    TRANSPOSED_ROW(gguf_q8_1, "GGUF Q8_1 blocks")
    TRANSPOSED_ROW(gguf_q2_k, "GGUF Q2_K blocks")
    TRANSPOSED_ROW(gguf_q3_k, "GGUF Q3_K blocks")
    TRANSPOSED_ROW(gguf_q4_k, "GGUF Q4_K blocks")
    TRANSPOSED_ROW(gguf_q5_k, "GGUF Q5_K blocks")
    TRANSPOSED_ROW(gguf_q6_k, "GGUF Q6_K blocks")
    TRANSPOSED_ROW(gguf_q8_k, "GGUF Q8_K blocks")
    TRANSPOSED_ROW(gguf_iq4_nl, "GGUF IQ4_NL blocks")
    TRANSPOSED_ROW(gguf_iq4_xs, "GGUF IQ4_XS blocks")
    TRANSPOSED_ROW(gguf_tq1_0, "GGUF TQ1_0 blocks")
    TRANSPOSED_ROW(gguf_tq2_0, "GGUF TQ2_0 blocks")
    TRANSPOSED_ROW(gguf_mxfp4, "GGUF MXFP4 blocks")
    TRANSPOSED_ROW(gguf_nvfp4, "GGUF NVFP4 blocks")
    TRANSPOSED_ROW(gguf_q1_0, "GGUF Q1_0 blocks")
    TRANSPOSED_ROW(gguf_q2_0, "GGUF Q2_0 blocks")
    TRANSPOSED_ROW(gguf_iq1_s, "GGUF IQ1_S blocks")
    TRANSPOSED_ROW(gguf_iq1_m, "GGUF IQ1_M blocks")
    TRANSPOSED_ROW(gguf_iq2_xxs, "GGUF IQ2_XXS blocks")
    TRANSPOSED_ROW(gguf_iq2_xs, "GGUF IQ2_XS blocks")
    TRANSPOSED_ROW(gguf_iq2_s, "GGUF IQ2_S blocks")
    TRANSPOSED_ROW(gguf_iq3_xxs, "GGUF IQ3_XXS blocks")
    TRANSPOSED_ROW(gguf_iq3_s, "GGUF IQ3_S blocks")
    QUANTIZE_ROWS_ROW(gguf_q4_0, "GGUF Q4_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_q4_1, "GGUF Q4_1 blocks")
    QUANTIZE_ROWS_ROW(gguf_q5_0, "GGUF Q5_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_q5_1, "GGUF Q5_1 blocks")
    QUANTIZE_ROWS_ROW(gguf_q8_0, "GGUF Q8_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_q8_1, "GGUF Q8_1 blocks")
    QUANTIZE_ROWS_ROW(gguf_q2_k, "GGUF Q2_K blocks")
    QUANTIZE_ROWS_ROW(gguf_q3_k, "GGUF Q3_K blocks")
    QUANTIZE_ROWS_ROW(gguf_q4_k, "GGUF Q4_K blocks")
    QUANTIZE_ROWS_ROW(gguf_q5_k, "GGUF Q5_K blocks")
    QUANTIZE_ROWS_ROW(gguf_q6_k, "GGUF Q6_K blocks")
    QUANTIZE_ROWS_ROW(gguf_tq1_0, "GGUF TQ1_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_tq2_0, "GGUF TQ2_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_mxfp4, "GGUF MXFP4 blocks")
    QUANTIZE_ROWS_ROW(gguf_q1_0, "GGUF Q1_0 blocks")
    QUANTIZE_ROWS_ROW(gguf_q2_0, "GGUF Q2_0 blocks")
    /* The first of two passes that compute scales; the format named here stands for all whose scale is
     * computed from such a range. */
    {"range_absmax", NULL, "absmax of parts of groups, in f32; scale_... of these gives the scales of whole groups",
     &operation_rows[KERNEL_RANGE], &format_rows[PLACE_int4]},
    {"global_scale", NULL, "the global scale, from the absmax of the tensor", &operation_rows[KERNEL_GLOBAL],
     &format_rows[PLACE_e2m1]},
    {"nest_scales", NULL, "scales quantized to bytes, with one scale per 256 of them", &operation_rows[KERNEL_NEST],
     &format_rows[PLACE_nf4]},
    {"range_lo_hi", NULL, "minimum and maximum of parts of groups, in f32; scale_..._zp of these gives the scales of whole groups",
     &operation_rows[KERNEL_RANGE], &format_rows[PLACE_int4_zp]},
    PLAIN_ROW(fake_quantize, FAKE_QUANTIZE, "train.fake_quantize", "f32 rounded to a few levels and back")
    PLAIN_ROW(fake_quantize_backward, FAKE_QUANTIZE_BACKWARD, "train.fake_quantize.backward",
              "the gradient of fake_quantize")
    PLAIN_ROW(lsq, LSQ, "train.lsq", "fake quantization with a learned step size")
    PLAIN_ROW(lsq_backward, LSQ_BACKWARD, "train.lsq.backward", "the gradients of lsq for x and for the scales")
    PLAIN_ROW(train_scale, TRAIN_SCALE, NULL, "the scales of fake_quantize from absmax, or their moving average")
    PLAIN_ROW(int4_dot, INT4_DOT, "quant.int4.dot", "the integer dot product of two i4 vectors")
    PLAIN_ROW(int4_dot_scaled, INT4_DOT_SCALED, "quant.int4.dot.scaled", "the dot product of two i4 vectors, times their scales")
    PLAIN_ROW(int4_matmul, INT4_MATMUL, "quant.int4.batched_matmul.scaled", "a product of i4 and i4 with one scale per row")
    PLAIN_ROW(int4_top1, INT4_TOP1, "quant.int4.batched_matmul.top1.scaled", "the largest element in each row of a product of i4 and i4")
    PLAIN_ROW(int4_topk, INT4_TOPK, "quant.int4.batched_matmul.topk.scaled", "the k largest elements in each row of a product of i4 and i4")
    PLAIN_ROW(int8_qmatmul, INT8_MATMUL, "quant.int8.qmatmul", "a product of bytes with zero points; results are codes or sums")
    PLAIN_ROW(w8a8_matmul, W8A8, "quant.w8a8.matmul", "a product of bytes with one scale per row and column")
    PLAIN_ROW(w4a8_matmul, W4A8, "quant.w4a8.matmul", "a product of i8 with grouped i4 weights")
    PLAIN_ROW(w4a4_matmul, W4A4, "quant.w4a4.matmul", "a product of i4 and i4 with one scale per row and column")
    PLAIN_ROW(int8_conv2d, INT8_CONV2D, "quant.int8.qconv2d", "a convolution of bytes with zero points; results are codes or sums")
    PLAIN_ROW(softmax, SOFTMAX, "select.softmax", "the softmax of rows, with a mask and one more score")
    PLAIN_ROW(top_k, TOP_K, "select.top_k", "the k largest of each row, in order")
    PLAIN_ROW(sample, SAMPLE, "select.sample", "a token of each row of logits: the largest, or drawn at random")
    PLAIN_ROW(route, ROUTE, "select.route", "the experts of each token, and their weights, from a router's logits")
    PLAIN_ROW(combine, COMBINE, "select.combine", "the weighted sum of the rows that the experts of a token gave")
    PLAIN_ROW(norm, NORM, "rows.norm", "RMS norm or layer norm of rows")
    PLAIN_ROW(pointwise, POINTWISE, "rows.pointwise", "an operation on each element of one tensor or two")
    ROW_1(norm, NORM_QUANTIZED, int8, "a norm of rows, quantized to symmetric INT8")
    ROW_1(norm, NORM_QUANTIZED, int4, "a norm of rows, quantized to symmetric INT4")
    ROW_1(norm, NORM_QUANTIZED, e4m3, "a norm of rows, quantized to E4M3 (FP8)")
    ROW_1(norm, NORM_QUANTIZED, e5m2, "a norm of rows, quantized to E5M2 (FP8)")
    ROW_1(norm, NORM_QUANTIZED, e2m1, "a norm of rows, quantized to E2M1 (FP4)")
    ROW_1(pointwise, POINTWISE_QUANTIZED, int8, "an operation on each element, quantized to symmetric INT8")
    ROW_1(pointwise, POINTWISE_QUANTIZED, int4, "an operation on each element, quantized to symmetric INT4")
    ROW_1(pointwise, POINTWISE_QUANTIZED, e4m3, "an operation on each element, quantized to E4M3 (FP8)")
    ROW_1(pointwise, POINTWISE_QUANTIZED, e5m2, "an operation on each element, quantized to E5M2 (FP8)")
    ROW_1(pointwise, POINTWISE_QUANTIZED, e2m1, "an operation on each element, quantized to E2M1 (FP4)")
    PLAIN_ROW(rope, ROPE, "rows.rope", "rotary positions, and what is written into a plain KV cache")
    ROW_1(rope, ROPE_QUANTIZED, int8, "rotary positions, keys and values to INT8 in a KV cache")
    ROW_1(rope, ROPE_QUANTIZED, int4, "rotary positions, keys and values to INT4 in a KV cache")
    ROW_1(rope, ROPE_QUANTIZED, e4m3, "rotary positions, keys and values to E4M3 (FP8) in a KV cache")
    ROW_1(rope, ROPE_QUANTIZED, e5m2, "rotary positions, keys and values to E5M2 (FP8) in a KV cache")
    PLAIN_ROW(copy, COPY, "rows.copy", "a copy between strides and types")
    PLAIN_ROW(gather, GATHER, "rows.gather", "rows of a table, by a list of their numbers")
    PLAIN_ROW(scatter, SCATTER, "rows.scatter", "rows into the places of a table that a list names")
    PLAIN_ROW(attention, ATTENTION, "rows.attention", "attention over a plain KV cache")
    ROW_1(attention, ATTENTION_QUANTIZED, int8, "attention over a KV cache in INT8")
    ROW_1(attention, ATTENTION_QUANTIZED, int4, "attention over a KV cache in INT4")
    ROW_1(attention, ATTENTION_QUANTIZED, e4m3, "attention over a KV cache in E4M3 (FP8)")
    ROW_1(attention, ATTENTION_QUANTIZED, e5m2, "attention over a KV cache in E5M2 (FP8)")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_q8_0, "attention over a KV cache in GGUF Q8_0 blocks")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_q4_0, "attention over a KV cache in GGUF Q4_0 blocks")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_q4_1, "attention over a KV cache in GGUF Q4_1 blocks")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_q5_0, "attention over a KV cache in GGUF Q5_0 blocks")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_q5_1, "attention over a KV cache in GGUF Q5_1 blocks")
    ROW_1(attention, ATTENTION_QUANTIZED, gguf_iq4_nl, "attention over a KV cache in GGUF IQ4_NL blocks")
    PLAIN_ROW(transpose_bytes, TRANSPOSE, NULL, "transposed matrices of bytes")
    PLAIN_ROW(int4_top_join, TOP_JOIN, NULL, "the largest elements in each row, from those of its parts")
    PLAIN_ROW(long_sum, LONG_SUM, NULL, "partial sums of lists, 4096 terms each, in the order of the long sum")
    PLAIN_ROW(route_rows, ROUTE_ROWS, NULL, "rows of a grouped product, sorted by expert and split into tiles")
};
/* clang-format on */
const int kernel_row_count = sizeof kernel_rows / sizeof kernel_rows[0];

const kernel_row *kernel_find(const char *name)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (strcmp(kernel_rows[i].name, name) == 0 ||
            (kernel_rows[i].operation_name && strcmp(kernel_rows[i].operation_name, name) == 0))
            return &kernel_rows[i];
    return NULL;
}

const kernel_row *kernel_find_operation(kernel_operation operation, const format_row *format)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == operation && kernel_rows[i].format == format)
            return &kernel_rows[i];
    return NULL;
}

const kernel_row *kernel_find_repack(const format_row *from, const format_row *to)
{
    if (from->codec != to->codec || from->facts.bits != to->facts.bits || format_is_blocks(from) ||
        format_is_plain(from))
        return NULL;
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_REPACK &&
            kernel_rows[i].format->facts.bits == from->facts.bits)
            return &kernel_rows[i];
    return NULL;
}

const kernel_row *kernel_find_prepack(const format_row *format)
{
    if (format_is_blocks(format))
        return kernel_find_operation(KERNEL_PREPACK, format);
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_PREPACK &&
            kernel_rows[i].format->facts.bits == format->facts.bits &&
            prepack_has_byte_pairs(kernel_rows[i].format) == prepack_has_byte_pairs(format))
            return &kernel_rows[i];
    return NULL;
}

kernel_operation kernel_operation_of(const kernel_row *row)
{
    return (kernel_operation)(row->operation - operation_rows);
}

bool kernel_is_product(const kernel_row *row)
{
    return kernel_operation_of(row) == KERNEL_MATMUL;
}

kernel_key_set kernel_keys(const kernel_row *row)
{
    const kernel_key_set none = {0};
    return row->operation->keys
               ? kernel_key_set_both(kernel_key_set_of(row->operation->keys), format_keys(row->format))
               : none;
}

bool kernel_has_key(const kernel_row *row, kernel_key key)
{
    const kernel_key_set keys = kernel_keys(row);
    return kernel_key_set_has(&keys, key);
}

void kernel_entry_name(const kernel_row *row, char *text, size_t size)
{
    snprintf(text, size, "qdnn_%s", row->name);
}

bool kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const ptx_options *options,
                 kernel_text *out, ptx_error *error)
{
    *out = (kernel_text){0};
    error->no_memory = false;
    kernel_spec normal = *spec;
    return kernel_spec_settle_kernel(row, &normal, error->text, sizeof error->text) &&
           kernel_emit_normal(row, &normal, sm, options, out, error);
}

bool kernel_emit_normal(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error)
{
    assert(kernel_spec_is_normal(row, spec));
    *out = (kernel_text){0};
    error->no_memory = false;
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    const kernel_geometry geometry = kernel_geometry_of(row, spec);
    ptx_builder *b = ptx_open(sm, options);
    if (b) { /* otherwise out of memory, which ptx_close reports */
        ptx_kernel(b, entry);
        ptx_reqntid(b, geometry.block, 1, 1);
        row->operation->emit(b, row, spec);
        ptx_describe(b, &out->info);
    }
    if (!ptx_close(b, &out->ptx, error))
        return false;
    out->geometry = geometry;
    return true;
}
