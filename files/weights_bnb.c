/* NF4 and FP4 of bitsandbytes: what is not stored in tensors is JSON in a tensor of bytes. */
#include "files/weights.h"

#include <math.h>
#include <string.h>

enum { CODES = 16, NESTED_BLOCK = 256 };

/* The numbers that codes represent. A file contains them too, and they must equal the library's. */
static const float nf4_map[CODES] = {-1.0f,
                                     -0.6961928009986877f,
                                     -0.5250730514526367f,
                                     -0.39491748809814453f,
                                     -0.28444138169288635f,
                                     -0.18477343022823334f,
                                     -0.09105003625154495f,
                                     0.0f,
                                     0.07958029955625534f,
                                     0.16093020141124725f,
                                     0.24611230194568634f,
                                     0.33791524171829224f,
                                     0.44070982933044434f,
                                     0.5626170039176941f,
                                     0.7229568362236023f,
                                     1.0f};
static const float fp4_map[CODES] = {
    0.0f,  0x1.555556p-8f,  0x1.555556p-1f,  1.0f,  0x1.555556p-2f,  0.5f,  0x1.555556p-3f,  0.25f,
    -0.0f, -0x1.555556p-8f, -0x1.555556p-1f, -1.0f, -0x1.555556p-2f, -0.5f, -0x1.555556p-3f, -0.25f};

static void check_map(builder *b, const qdnnFileTensor_t *map, bool nf4)
{
    claim(b, map);
    if (!map)
        return;
    if (map->type != QDNN_DATA_F32 || element_count(map) != CODES) {
        report_problem(b, "'%s' must be 16 F32", map->name);
        return;
    }
    for (int i = 0; i < CODES; i++) {
        float value;
        memcpy(&value, (const char *)map->data + 4 * i, sizeof value);
        if (value != (nf4 ? nf4_map : fp4_map)[i])
            report_problem(b, "element %d of '%s' is %.9g; %s has %.9g there", i, map->name, (double)value,
                           nf4 ? "NF4" : "FP4", (double)(nf4 ? nf4_map : fp4_map)[i]);
    }
}

/* ---- nested scales ---- */

static void add_offset(builder *b, const json_value *state)
{
    double offset;
    float *place = file_alloc(b->f, sizeof *place);
    b->no_memory = b->no_memory || !place;
    if (!place)
        return;
    if (!json_f64(state, "nested_offset", &offset) || !isfinite((float)offset))
        report_problem(b, "the quant_state has no nested_offset");
    else
        *place = (float)offset;
    b->w.operand[b->w.operands++] = (qdnnFileOperand_t){QDNN_OPERAND_NESTED_OFFSET, place, sizeof *place, -1};
    b->w.bytes += sizeof *place;
}

static void take_nested(builder *b, const json_value *state, int64_t blocks)
{
    const qdnnFileTensor_t *absmax = require_beside(b, 0, ".nested_absmax"),
                           *map = require_beside(b, 0, ".nested_quant_map");
    uint64_t block = 0;
    claim_operand(b, QDNN_OPERAND_NESTED_SCALE, absmax);
    claim_operand(b, QDNN_OPERAND_NESTED_MAP, map);
    if (!json_u64(state, "nested_blocksize", &block) || block != NESTED_BLOCK)
        report_problem(b, "nested_blocksize is %llu; only %d is supported", (unsigned long long)block,
                       NESTED_BLOCK);
    if (absmax &&
        (absmax->type != QDNN_DATA_F32 || element_count(absmax) != (uint64_t)divide_up(blocks, NESTED_BLOCK)))
        report_problem(b, "'%s' does not have one F32 per %d blocks", absmax->name, NESTED_BLOCK);
    if (map && (map->type != QDNN_DATA_F32 || element_count(map) != 256))
        report_problem(b, "'%s' must be 256 F32", map->name);
    add_offset(b, state);
}

/* ---- the weight ---- */

static bool read_shape(builder *b, const json_value *state, uint64_t *elements)
{
    const json_value *shape = json_at(state, "shape");
    if (!shape || shape->kind != JSON_ARRAY || shape->count == 0 || shape->count > QDNN_DIMS_MAX)
        return !report_problem(b, "the quant_state has no shape");
    for (const json_value *size = shape->first; size; size = size->next) {
        uint64_t n;
        if (!json_u64(size, "", &n) || n >> 40)
            return !report_problem(b, "the quant_state's shape has '%.40s'", size->text);
        b->w.dims[b->w.rank++] = (int64_t)n;
    }
    return files_elements(b->w.rank, b->w.dims, elements) ||
           !report_problem(b, "the quant_state's shape is too large");
}

static void read_state(builder *b, const json_value *state, bool nf4, const qdnnFileTensor_t *absmax)
{
    uint64_t elements, block;
    if (!read_shape(b, state, &elements))
        return;
    if (!json_u64(state, "blocksize", &block) || block == 0 || block >> 31) {
        report_problem(b, "the quant_state has no blocksize");
        return;
    }
    int64_t blocks = divide_up((int64_t)elements, (int64_t)block);
    bool nested = absmax->type == QDNN_DATA_U8;
    if (element_count(b->codes) != elements / 2 + elements % 2)
        report_problem(b, "%llu bytes of codes for %llu elements of 4 bits",
                       (unsigned long long)b->codes->bytes, (unsigned long long)elements);
    if ((!nested && absmax->type != QDNN_DATA_F32) || element_count(absmax) != (uint64_t)blocks)
        report_problem(b, "'%s' does not have one F32 or U8 for each of %lld blocks", absmax->name,
                       (long long)blocks);
    set_weights(b,
                nested ? nf4 ? QDNN_WEIGHTS_BNB_NF4_NESTED : QDNN_WEIGHTS_BNB_FP4_NESTED
                : nf4  ? QDNN_WEIGHTS_BNB_NF4
                       : QDNN_WEIGHTS_BNB_FP4,
                (int64_t)block);
    set_format(b, "bitsandbytes %s g%llu%s", nf4 ? "nf4" : "fp4", (unsigned long long)block,
               nested ? " nested" : "");
    if (nested)
        take_nested(b, state, blocks);
}

bool match_bnb(builder *b)
{
    json_error error;
    const qdnnFileTensor_t *state = find_beside(b, 0, ".quant_state.bitsandbytes__nf4");
    bool nf4 = state != NULL;
    if (!state)
        state = find_beside(b, 0, ".quant_state.bitsandbytes__fp4");
    if (!state || b->codes->type != QDNN_DATA_U8)
        return false;
    set_format(b, "bitsandbytes %s", nf4 ? "nf4" : "fp4");
    claim(b, state);
    const qdnnFileTensor_t *absmax = require_beside(b, 0, ".absmax");
    claim_operand(b, QDNN_OPERAND_SCALE, absmax);
    check_map(b, find_beside(b, 0, ".quant_map"), nf4);
    json *doc = json_parse(state->data, (size_t)state->bytes, &error);
    b->no_memory = b->no_memory || (!doc && error.no_memory);
    if (!doc)
        return report_problem(b, "'%s' is not JSON: %s", state->name, error.reason);
    if (absmax)
        read_state(b, json_root(doc), nf4, absmax);
    json_free(doc);
    return true;
}
