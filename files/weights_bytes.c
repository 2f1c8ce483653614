/* Codes in bytes with separate scales: FP8, INT8, ModelOpt's NVFP4, the MXFP4 of gpt-oss. */
#include "files/weights.h"

#include <string.h>

static const size_t cut = sizeof "weight" - 1;

/* The number of rows: all dimensions but the last. */
static int64_t rows_of(const qdnnFileTensor_t *t)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < t->rank; i++)
        n *= t->dims[i];
    return n;
}

static void set_dims(builder *b, int codes_in_a_byte)
{
    b->w.rank = b->codes->rank;
    memcpy(b->w.dims, b->codes->dims, sizeof b->w.dims);
    b->w.dims[b->w.rank - 1] *= codes_in_a_byte;
}

/* ---- ModelOpt's NVFP4 ---- */

bool match_modelopt_fp4(builder *b)
{
    const qdnnFileTensor_t *global, *scales;
    if (!codes_end(b, ".weight") || b->codes->type != QDNN_DATA_U8 || b->codes->rank < 2 ||
        !(global = find_beside(b, cut, "weight_scale_2")))
        return false;
    set_format(b, "modelopt nvfp4");
    scales = require_beside(b, cut, "weight_scale");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    claim_operand(b, QDNN_OPERAND_GLOBAL_SCALE, global);
    if (!scales)
        return true;
    int64_t k = 2 * b->codes->dims[b->codes->rank - 1];
    if (scales->type != QDNN_DATA_F8E4M3 || scales->rank != b->codes->rank ||
        rows_of(scales) != rows_of(b->codes) || scales->dims[scales->rank - 1] != divide_up(k, 16))
        return report_problem(b, "'%s' does not have one F8_E4M3 scale per 16 elements of a row",
                              scales->name);
    if (global->type != QDNN_DATA_F32 || element_count(global) != 1)
        return report_problem(b, "'%s' must be one F32 for the tensor", global->name);
    set_weights(b, QDNN_WEIGHTS_MODELOPT_NVFP4, 0);
    set_dims(b, 2);
    return true;
}

/* ---- FP8 and INT8: scales per tensor, row, group or block ---- */

typedef enum { SCALES_WRONG, SCALES_TENSOR, SCALES_ROWS, SCALES_GROUPS, SCALES_BLOCKS } scale_shape;

static scale_shape shape_of(const builder *b, const qdnnFileTensor_t *scales, int64_t *groups)
{
    int64_t n = rows_of(b->codes), k = b->codes->dims[b->codes->rank - 1];
    int64_t last = scales->rank ? scales->dims[scales->rank - 1] : 1;
    if (element_count(scales) == 1)
        return SCALES_TENSOR;
    if (element_count(scales) == (uint64_t)n && (last == 1 || scales->rank == 1))
        return SCALES_ROWS;
    *groups = last;
    if (b->codes->rank == 2 && is_matrix(scales, divide_up(n, 128), divide_up(k, 128)))
        return SCALES_BLOCKS;
    return scales->rank == b->codes->rank && rows_of(scales) == n && last <= k ? SCALES_GROUPS : SCALES_WRONG;
}

/* Sets the granularity and the format's text; the zeros have the shape of the scales. */
static bool set_scales(builder *b, const qdnnFileTensor_t *scales, const char *name)
{
    int64_t groups = 1, k = b->codes->dims[b->codes->rank - 1], size;
    set_scale_type(b, scales);
    switch (shape_of(b, scales, &groups)) {
    case SCALES_TENSOR:
        set_attribute(b, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_TENSOR);
        set_format(b, "%s per-tensor", name);
        return true;
    case SCALES_ROWS: /* one per row, whatever the tensor's rank */
        set_attribute(b, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_GROUP);
        set_attribute(b, QDNN_QUANT_GROUPS, QDNN_GROUPS_ROWS);
        set_attribute(b, QDNN_QUANT_GROUP_SIZE, k > 0 ? k : 1);
        set_format(b, "%s per-channel", name);
        return true;
    case SCALES_BLOCKS:
        set_attribute(b, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_GROUP);
        set_attribute(b, QDNN_QUANT_GROUPS, QDNN_GROUPS_ROWS);
        set_attribute(b, QDNN_QUANT_GROUP_SIZE, 128);
        set_attribute(b, QDNN_QUANT_BLOCK_ROWS, 128);
        set_format(b, "%s 128x128", name);
        return true;
    case SCALES_GROUPS:
        size = group_size_of(b, k, groups);
        if (size == 0)
            return false;
        set_attribute(b, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_GROUP);
        set_attribute(b, QDNN_QUANT_GROUPS, QDNN_GROUPS_ROWS);
        set_attribute(b, QDNN_QUANT_GROUP_SIZE, size);
        set_format(b, "%s g%lld", name, (long long)size);
        return true;
    case SCALES_WRONG:
        break;
    }
    return !report_problem(b, "'%s' has scales neither per tensor nor per row, group or block of 128 x 128",
                           scales->name);
}

bool match_fp8(builder *b)
{
    bool e4m3 = b->codes->type == QDNN_DATA_F8E4M3;
    const qdnnFileTensor_t *scales;
    if (!codes_end(b, ".weight") || b->codes->rank < 2 || (!e4m3 && b->codes->type != QDNN_DATA_F8E5M2))
        return false;
    scales = find_beside(b, cut, "weight_scale");
    if (!scales) /* DeepSeek's name for it; it is multiplied as well, despite its name */
        scales = find_beside(b, cut, "weight_scale_inv");
    if (!scales)
        return false;
    set_format(b, "fp8");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    set_weights(b, e4m3 ? QDNN_WEIGHTS_FP8_E4M3 : QDNN_WEIGHTS_FP8_E5M2, 0);
    set_scales(b, scales, e4m3 ? "fp8_e4m3" : "fp8_e5m2");
    set_dims(b, 1);
    return true;
}

bool match_int8(builder *b)
{
    if (!codes_end(b, ".weight") || b->codes->type != QDNN_DATA_I8 || b->codes->rank < 2)
        return false;
    const qdnnFileTensor_t *scales, *zeros = find_beside(b, cut, "weight_zero_point"),
                                    *scb = find_beside(b, cut, "SCB");
    set_format(b, "int8");
    scales = scb ? scb : require_beside(b, cut, "weight_scale");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    if (scb) {
        claim(b, find_beside(b, 0, "_format"));
        return report_problem(b, "LLM.int8() of bitsandbytes: its scales are SCB / 127, which a descriptor "
                                 "cannot express; store weight_scale");
    }
    if (!scales)
        return true;
    set_weights(b, QDNN_WEIGHTS_INT8_BLOCK, 0);
    set_attribute(b, QDNN_QUANT_LAYOUT, QDNN_LAYOUT_BYTES);
    set_attribute(b, QDNN_QUANT_ZERO_KIND, zeros ? QDNN_ZERO_POINT : QDNN_ZERO_NONE);
    set_scales(b, scales, zeros ? "int8 zp" : "int8");
    set_dims(b, 1);
    if (!zeros)
        return true;
    set_attribute(b, QDNN_QUANT_ZERO_TYPE, QDNN_DATA_I8);
    claim_operand(b, QDNN_OPERAND_ZERO, zeros);
    if (zeros->type != QDNN_DATA_I8 || element_count(zeros) != element_count(scales))
        report_problem(b, "'%s' does not have one I8 per scale", zeros->name);
    return true;
}

/* ---- gpt-oss ---- */

bool match_gpt_oss(builder *b)
{
    const size_t end = strlen("_blocks");
    const qdnnFileTensor_t *t = b->codes, *scales;
    if (!codes_end(b, "_blocks") || t->type != QDNN_DATA_U8 || t->rank < 3 || t->dims[t->rank - 1] != 16 ||
        !(scales = find_beside(b, end, "_scales")) || scales->type != QDNN_DATA_U8)
        return false;
    set_name(b, end, "");
    set_format(b, "gpt-oss mxfp4");
    claim_operand(b, QDNN_OPERAND_SCALE, scales);
    if (scales->rank != t->rank - 1 ||
        memcmp(scales->dims, t->dims, (size_t)scales->rank * sizeof t->dims[0]) != 0)
        return report_problem(b, "'%s' does not have one scale per 32 elements", scales->name);
    set_weights(b, QDNN_WEIGHTS_GPT_OSS_MXFP4, 0);
    b->w.rank = t->rank - 1;
    memcpy(b->w.dims, t->dims, sizeof b->w.dims);
    b->w.dims[b->w.rank] = 0;
    b->w.dims[b->w.rank - 1] *= 32;
    return true;
}
