/* Codes in words and nibbles: GPTQ and AWQ ("qweight"), compressed-tensors ("weight_packed"). */
#include "files/weights.h"

#include <string.h>

/* Limit of a dimension: larger ones are possible only next to a dimension of 0, and products of them would
 * overflow. */
#define SIZE_LIMIT (INT64_C(1) << 40)

/* ---- GPTQ ---- */

/* [version][bits] */
static qdnnWeights_t gptq_weights(bool v2, int bits)
{
    switch (bits) {
    case 2:
        return v2 ? QDNN_WEIGHTS_GPTQ_V2_2BIT : QDNN_WEIGHTS_GPTQ_2BIT;
    case 3:
        return v2 ? QDNN_WEIGHTS_GPTQ_V2_3BIT : QDNN_WEIGHTS_GPTQ_3BIT;
    case 4:
        return v2 ? QDNN_WEIGHTS_GPTQ_V2_4BIT : QDNN_WEIGHTS_GPTQ_4BIT;
    case 8:
        return v2 ? QDNN_WEIGHTS_GPTQ_V2_8BIT : QDNN_WEIGHTS_GPTQ_8BIT;
    default:
        return QDNN_WEIGHTS_COUNT;
    }
}

/* Whether every stored zero equals `zero`. */
static bool zeros_are(const qdnnFileTensor_t *zeros, int bits, unsigned zero)
{
    uint32_t expected = 0, word;
    for (int i = 0; i < 32; i += bits)
        expected |= zero << i;
    for (uint64_t i = 0; i + 4 <= zeros->bytes; i += 4) {
        memcpy(&word, (const char *)zeros->data + i, sizeof word);
        if (word != expected)
            return false;
    }
    return zeros->bytes > 0;
}

/* The zeros of a symmetric file reveal its version, whatever its configuration says: some are labelled
 * wrongly. */
static bool is_v2(const builder *b, const qdnnFileTensor_t *zeros, int bits)
{
    if (bits != 3 && b->f->config.is_symmetric) {
        if (zeros_are(zeros, bits, 1u << (bits - 1)))
            return true;
        if (zeros_are(zeros, bits, (1u << (bits - 1)) - 1))
            return false;
    }
    return b->f->config.is_v2;
}

/* From the configuration, unless the zeros of this layer are packed differently: layers may differ. */
static int gptq_bits(const builder *b, const qdnnFileTensor_t *zeros, int64_t n)
{
    int configured = b->f->config.bits;
    if (n == 0 || zeros->dims[1] > n || (configured > 0 && divide_up(n * configured, 32) == zeros->dims[1]))
        return configured;
    return (int)(32 * zeros->dims[1] / n);
}

static bool gptq(builder *b, const qdnnFileTensor_t *scales, const qdnnFileTensor_t *zeros,
                 const qdnnFileTensor_t *index)
{
    int64_t n = scales->dims[1], groups = scales->dims[0], rows = b->codes->dims[0];
    int bits = gptq_bits(b, zeros, n);
    if (gptq_weights(false, bits) == QDNN_WEIGHTS_COUNT)
        return report_problem(b, "GPTQ with %d bits; 2, 3, 4 and 8 are supported", bits);
    int64_t k = index ? (index->rank == 1 ? index->dims[0] : 0) : rows / bits * 32 + rows % bits * 32 / bits;
    if (k > INT64_MAX / 8 || divide_up(k * bits, 32) != rows)
        return report_problem(b, "%lld rows of words do not hold %lld codes of %d bits", (long long)rows,
                              (long long)k, bits);
    if (!is_matrix(zeros, groups, divide_up(n * bits, 32)))
        return report_problem(b, "'%s' does not have the shape of %lld groups of %lld packed zeros",
                              zeros->name, (long long)groups, (long long)n);
    int64_t size = group_size_of(b, k, groups);
    if (size == 0)
        return true;
    bool v2 = is_v2(b, zeros, bits), plain = !index || index_is_plain(b, index, size, groups);
    set_weights(b, gptq_weights(v2, bits), size);
    set_matrix(b, k, n);
    set_format(b, "gptq %d-bit g%lld%s%s", bits, (long long)size, v2 ? " v2" : "", plain ? "" : " act-order");
    if (!plain) {
        set_attribute(b, QDNN_QUANT_GROUP_INDEX, 1);
        claim_operand(b, QDNN_OPERAND_GROUP_INDEX, index);
    }
    return true;
}

/* ---- AWQ ---- */

static bool awq(builder *b, const qdnnFileTensor_t *scales, const qdnnFileTensor_t *zeros)
{
    int64_t n = scales->dims[1], groups = scales->dims[0], k = b->codes->dims[0];
    if (b->f->config.bits && b->f->config.bits != 4)
        return report_problem(b, "AWQ with %d bits; only 4 is supported", b->f->config.bits);
    if (b->f->config.is_gemv)
        return report_problem(
            b, "AWQ in the layout of its GEMV kernels; convert the checkpoint to version \"gemm\"");
    if (!is_matrix(zeros, groups, n / 8))
        return report_problem(b, "'%s' does not have the shape of %lld groups of %lld packed zeros",
                              zeros->name, (long long)groups, (long long)n);
    int64_t size = group_size_of(b, k, groups);
    set_weights(b, QDNN_WEIGHTS_AWQ, size);
    set_matrix(b, k, n);
    set_format(b, "awq 4-bit g%lld", (long long)size);
    return true;
}

bool match_qweight(builder *b)
{
    const size_t cut = strlen("qweight");
    if (!codes_end(b, ".qweight") || (b->codes->type != QDNN_DATA_I32 && b->codes->type != QDNN_DATA_U32))
        return false;
    set_name(b, cut, "weight");
    set_format(b, "qweight");
    const qdnnFileTensor_t *scales = require_beside(b, cut, "scales"),
                           *zeros = require_beside(b, cut, "qzeros"), *index = find_beside(b, cut, "g_idx");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    claim_operand(b, QDNN_OPERAND_ZERO, zeros);
    claim(b, index);
    if (!scales || !zeros)
        return true;
    if (b->codes->rank != 2 || scales->rank != 2 || zeros->rank != 2 || b->codes->dims[0] > SIZE_LIMIT ||
        scales->dims[1] > SIZE_LIMIT)
        return report_problem(b, "qweight, scales and qzeros must be matrices");
    set_scale_type(b, scales);
    b->w.transposed = true;
    if (b->codes->dims[1] == scales->dims[1] && b->f->config.method != METHOD_AWQ)
        return gptq(b, scales, zeros, index);
    if (b->codes->dims[1] == scales->dims[1] / 8 && scales->dims[1] % 8 == 0 &&
        b->f->config.method != METHOD_GPTQ)
        return awq(b, scales, zeros);
    return report_problem(b, "qweight [%lld, %lld] and scales [%lld, %lld] are neither GPTQ's nor AWQ's",
                          (long long)b->codes->dims[0], (long long)b->codes->dims[1],
                          (long long)scales->dims[0], (long long)scales->dims[1]);
}

/* ---- compressed-tensors ---- */

/* weight_shape: two integers. */
static bool read_shape(builder *b, const qdnnFileTensor_t *shape, int64_t *n, int64_t *k)
{
    int64_t sizes[2];
    bool wide = shape->type == QDNN_DATA_I64;
    if (element_count(shape) != 2 || (!wide && shape->type != QDNN_DATA_I32))
        return !report_problem(b, "'%s' must be two integers", shape->name);
    for (int i = 0; i < 2; i++) {
        int32_t narrow;
        memcpy(wide ? (void *)&sizes[i] : (void *)&narrow, (const char *)shape->data + (wide ? 8 : 4) * i,
               wide ? 8 : 4);
        sizes[i] = wide ? sizes[i] : narrow;
        if (sizes[i] < 1 || sizes[i] > SIZE_LIMIT)
            return !report_problem(b, "'%s' has a size of %lld", shape->name, (long long)sizes[i]);
    }
    *n = sizes[0];
    *k = sizes[1];
    return true;
}

/* The width of codes, from the number of words in a row of k. */
static int bits_of(int64_t words, int64_t k)
{
    return divide_up(k, 8) == words ? 4 : divide_up(k, 4) == words ? 8 : 0;
}

static void take_zeros(builder *b, const qdnnFileTensor_t *zeros, int bits, int64_t n, int64_t groups)
{
    if (zeros->type != QDNN_DATA_I32 || !is_matrix(zeros, divide_up(n * bits, 32), groups))
        report_problem(b, "'%s' is not packed into I32 words along the rows", zeros->name);
    claim_operand(b, QDNN_OPERAND_ZERO, zeros);
}

static bool pack_quantized(builder *b, const qdnnFileTensor_t *scales, size_t cut)
{
    const qdnnFileTensor_t *shape = find_beside(b, cut, "weight_shape"),
                           *zeros = find_beside(b, cut, "weight_zero_point"),
                           *index = find_beside(b, cut, "weight_g_idx");
    int64_t n = b->codes->dims[0], k = b->codes->dims[1] * (b->f->config.bits == 8 ? 4 : 8);
    claim(b, shape);
    claim(b, index);
    if (shape && !read_shape(b, shape, &n, &k))
        return true;
    int bits = bits_of(b->codes->dims[1], k);
    if (bits == 0 || b->codes->dims[0] != n || scales->rank != 2 || scales->dims[0] != n)
        return report_problem(
            b, "words [%lld, %lld] and scales of rank %d do not fit a weight of %lld x %lld in 4 or 8 bits",
            (long long)b->codes->dims[0], (long long)b->codes->dims[1], scales->rank, (long long)n,
            (long long)k);
    int64_t groups = scales->dims[1], size = group_size_of(b, k, groups);
    if (size == 0)
        return true;
    if (index && !index_is_plain(b, index, size, groups))
        report_problem(b, "'%s' reorders the groups along K; of such weights only GPTQ's can be read",
                       index->name);
    set_scale_type(b, scales);
    set_weights(b,
                bits == 4
                    ? zeros ? QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT_ZP : QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT
                : zeros ? QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT_ZP
                        : QDNN_WEIGHTS_COMPRESSED_TENSORS_8BIT,
                size);
    set_matrix(b, n, k);
    set_format(b, "pack-quantized %d-bit g%lld%s", bits, (long long)size, zeros ? " zp" : "");
    if (zeros)
        take_zeros(b, zeros, bits, n, groups);
    return true;
}

/* Nibbles with one scale per 16 (NVFP4) or 32 (MXFP4) of them. */
static bool packed_fp4(builder *b, const qdnnFileTensor_t *scales, size_t cut)
{
    const qdnnFileTensor_t *global = find_beside(b, cut, "weight_global_scale");
    int64_t n = b->codes->dims[0], k = 2 * b->codes->dims[1], size = global ? 16 : 32;
    claim_operand(b, QDNN_OPERAND_GLOBAL_SCALE, global);
    if (!is_matrix(scales, n, divide_up(k, size)) || scales->type == QDNN_DATA_F32)
        return report_problem(b, "'%s' does not have one scale per %lld elements of a row", scales->name,
                              (long long)size);
    if (global && (global->type != QDNN_DATA_F32 || element_count(global) != 1))
        return report_problem(b, "'%s' must be one F32", global->name);
    set_weights(b, global ? QDNN_WEIGHTS_COMPRESSED_TENSORS_NVFP4 : QDNN_WEIGHTS_MXFP4, 0);
    set_matrix(b, n, k);
    set_format(b, global ? "nvfp4-pack-quantized" : "mxfp4-pack-quantized");
    if (scales->bytes != (uint64_t)(n * divide_up(k, size)))
        report_problem(b, "'%s' is of type %s; it must have one byte per scale", scales->name,
                       scales->typeName);
    return true;
}

bool match_packed(builder *b)
{
    const size_t cut = strlen("weight_packed");
    if (!codes_end(b, ".weight_packed"))
        return false;
    set_name(b, cut, "weight");
    set_format(b, "pack-quantized");
    const qdnnFileTensor_t *scales = require_beside(b, cut, "weight_scale");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    if (!scales)
        return true;
    if (b->codes->rank != 2 || b->codes->dims[1] > SIZE_LIMIT)
        return report_problem(b, "packed weights must be matrices");
    if (b->codes->type == QDNN_DATA_I32)
        return pack_quantized(b, scales, cut);
    if (b->codes->type == QDNN_DATA_U8)
        return packed_fp4(b, scales, cut);
    return report_problem(b, "packed weights of type %s; I32 and U8 are supported", b->codes->typeName);
}
