/* Scores and weights of a tile in mode tensor. mma leaves in each thread, of every 8 keys, those with numbers 2i and 2i + 1, where i is
 * the lane's number in its team of four, for two rows: the layout of operand A, two groups of keys being its two halves. */
#include "kernels/attention/tensor.h"
#include "kernels/functions.h"

static ptx_val minus_infinity(ptx_builder *b)
{
    return ptx_bits(b, PTX_F32, 0xFF800000);
}

/* ---- Products ---- */

static ptx_mma_id instruction_of(const tensor *t)
{
    return t->type == QDNN_DATA_BF16 ? PTX_MMA_m16n8k16_f32_bf16
           : t->step == 16           ? PTX_MMA_m16n8k16_f32_f16
                                     : PTX_MMA_m16n8k8_f32_f16;
}

void attend_multiply(ptx_builder *b, const tensor *t, const ptx_val *d, const ptx_val *a, const ptx_val *b_,
                     const ptx_val *c, bool half)
{
    ptx_mma_into(b, instruction_of(t), d, a, b_, c);
    if (t->step == 8 && !half)
        ptx_mma_into(b, instruction_of(t), d, a + 2, b_ + 1, d);
}

static unsigned steps_of(const tensor *t)
{
    return (unsigned)ceil_div(t->spec->kv.key_size, 16);
}

static bool is_half(const tensor *t, unsigned step)
{
    return 16 * step + 8 == t->spec->kv.key_size;
}

static void load_query(ptx_builder *b, const tensor *t, unsigned step, ptx_val a[4])
{
    const bool half = is_half(t, step);
    ptx_ldmatrix(b, t->query_lane, (int)(32 * step), a, half ? 2 : 4);
    if (half)
        a[2] = a[3] = ptx_mov(b, ptx_u32(b, 0));
}

static void load_keys(ptx_builder *b, const tensor *t, ptx_val slot, unsigned group, unsigned step,
                      ptx_val keys[2][2])
{
    const int offset = (int)(group * GROUP_KEYS * t->key_pitch + 32 * step);
    ptx_val out[4];
    if (is_half(t, step)) {
        ptx_ldmatrix(b, ptx_add(b, slot, t->key_lane_short), offset, out, 2);
        keys[0][0] = out[0];
        keys[1][0] = out[1];
        keys[0][1] = keys[1][1] = ptx_mov(b, ptx_u32(b, 0));
        return;
    }
    ptx_ldmatrix(b, ptx_add(b, slot, t->key_lane), offset, out, 4);
    for (unsigned i = 0; i < 4; i++)
        keys[i / 2][i % 2] = out[i];
}

void attend_scores(ptx_builder *b, const tensor *t, const tensor_tile *tile, unsigned chunk)
{
    const unsigned groups = t->shape.chunk / GROUP_KEYS;
    const ptx_val zeros[4] = {t->zero, t->zero, t->zero, t->zero};
    ptx_val slot = attend_slot(b, t, t->reading);
    for (unsigned step = 0; step < steps_of(t); step++) {
        ptx_val a[4], keys[2][2];
        if (!t->keeps_queries)
            load_query(b, t, step, a);
        for (unsigned g = 0; g < groups; g += 2) {
            load_keys(b, t, slot, g, step, keys);
            for (unsigned i = 0; i < 2; i++) {
                const ptx_val *scores = tile->scores[chunk * groups + g + i];
                attend_multiply(b, t, scores, t->keeps_queries ? t->kept[step] : a, keys[i],
                                step ? scores : zeros, is_half(t, step));
            }
        }
    }
}

/* ---- A tile ---- */

tensor_tile attend_tile_begin(ptx_builder *b, const tensor *t, ptx_val number)
{
    tensor_tile tile = {.number = number, .first = ptx_shl(b, number, 6)};
    ptx_val last = ptx_add(b, tile.first, TILE_KEYS - 1), sees = {0};
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_val row = ptx_setp_and(b, PTX_LE, r->seen.first, last, r->active);
        row = ptx_setp_and(b, PTX_GE, r->seen.last, tile.first, row);
        sees = h ? ptx_or(b, sees, row) : row;
    }
    tile.sees = ptx_vote_any(b, sees);
    for (unsigned g = 0; g < GROUPS; g++) {
        for (unsigned i = 0; i < 4; i++)
            tile.scores[g][i] = ptx_var_of(b, PTX_F32);
        for (unsigned h = 0; h < HALVES; h++)
            tile.weights[g][h] = h < t->halves ? ptx_var_of(b, PTX_U32) : ptx_var(b, ptx_u32(b, 0));
    }
    tile.checked = ptx_var(b, ptx_setp(b, PTX_NE, number, number));
    return tile;
}

/* The number of the thread's first key of group 0. */
static ptx_val first_key(ptx_builder *b, const tensor *t, const tensor_tile *tile)
{
    return ptx_add(b, tile->first, ptx_as(b, PTX_S32, ptx_shl(b, ptx_and(b, t->lane, 3), 1)));
}

static ptx_val mask_of(ptx_builder *b, const tensor *t, const tensor_row *r, ptx_val address, ptx_val key,
                       int offset)
{
    const qdnnDataType_t type = (qdnnDataType_t)t->spec->select.mask;
    ptx_val mask = ptx_var(b, ptx_f32(b, 0));
    ptx_val seen = ptx_setp_and(b, PTX_GE, key, r->seen.first, r->exists);
    ptx_if(b, ptx_setp_and(b, PTX_LE, key, r->seen.last, seen));
    ptx_assign(b, mask, emit_load(b, type, address, offset * (int)element_bytes(type)));
    ptx_end_if(b);
    return mask;
}

/* The address of the mask of a row's key. */
static ptx_val mask_address(ptx_builder *b, const tensor *t, const tensor_row *r, ptx_val key)
{
    const unsigned bytes = element_bytes((qdnnDataType_t)t->spec->select.mask);
    ptx_val at = ptx_mul(b, r->token, t->args->number[NUMBER_MASK_STRIDE]);
    if (t->spec->attention.mask_heads)
        at = ptx_mad(b, ptx_cvt(b, PTX_U64, r->head), t->args->number[NUMBER_MASK_HEAD_STRIDE], at);
    at = ptx_add(b, at, ptx_cvt(b, PTX_U64, ptx_as(b, PTX_U32, key)));
    return ptx_at(b, t->args->operand[QDNN_OPERAND_MASK], at, bytes);
}

/* From scores to t. */
static void bias_scores(ptx_builder *b, const tensor *t, const tensor_tile *tile)
{
    const kernel_attention *a = &t->spec->attention;
    const ptx_val *number = t->args->number;
    ptx_val key = first_key(b, t, tile);
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_val masks = t->spec->select.mask ? mask_address(b, t, r, key) : (ptx_val){0};
        for (unsigned i = 0; i < 2 * GROUPS; i++) {
            const int more = (int)(i / 2 * GROUP_KEYS + i % 2);
            ptx_val to = tile->scores[i / 2][2 * h + i % 2], score = to, at = ptx_add(b, key, more);
            if (a->cap)
                score =
                    ptx_mul(b, number[NUMBER_LIMIT], emit_tanh(b, ptx_mul(b, score, number[NUMBER_FACTOR])));
            else
                score = ptx_mul(b, score, number[NUMBER_ALPHA]);
            if (a->adds == KERNEL_ADDS_ALIBI) {
                ptx_val distance = ptx_cvt_rn(b, PTX_F32, ptx_sub(b, at, r->seen.end));
                score = ptx_add(b, score, ptx_mul(b, r->slope, distance));
            } else if (a->adds != KERNEL_ADDS_NONE) {
                ptx_val mask = mask_of(b, t, r, masks, at, more);
                if (a->adds == KERNEL_ADDS_SLOPED_MASK)
                    mask = ptx_mul(b, r->slope, mask);
                score = ptx_add(b, score, mask);
            }
            ptx_assign(b, to, score);
        }
    }
}

/* Whether all rows see all keys, and all t are finite: then nothing needs to be hidden. Uniform. */
static ptx_val nothing_is_hidden(ptx_builder *b, const tensor *t, const tensor_tile *tile)
{
    ptx_val existing = attend_existing(b, t, tile->number), zero = ptx_f32(b, 0), all = {0};
    ptx_val last = ptx_add(b, tile->first, TILE_KEYS - 1);
    ptx_val exist = ptx_setp(b, PTX_EQ, existing, ptx_u64(b, UINT64_MAX));
    for (unsigned h = 0; h < t->halves; h++) {
        const tensor_row *r = &t->rows[h];
        ptx_val probe = zero;
        for (unsigned i = 0; i < 2 * GROUPS; i++)
            probe = ptx_fma(b, tile->scores[i / 2][2 * h + i % 2], zero, probe);
        ptx_val sees =
            ptx_setp_and(b, PTX_GE, r->seen.last, last, ptx_setp(b, PTX_LE, r->seen.first, tile->first));
        sees = ptx_or(b, sees, ptx_not(b, r->active));
        sees = ptx_setp_and(b, PTX_EQ, probe, zero, sees);
        all = h ? ptx_and(b, all, sees) : ptx_and(b, exist, sees);
    }
    return ptx_vote_all(b, all);
}

/* Bit i: the row sees key i of the tile, if it exists: u64. */
static ptx_val seen_bits(ptx_builder *b, const tensor_row *r, const tensor_tile *tile)
{
    ptx_val ones = ptx_u64(b, UINT64_MAX), zero = ptx_s32(b, 0), most = ptx_s32(b, TILE_KEYS);
    ptx_val low = ptx_clamp(b, ptx_sub(b, r->seen.first, tile->first), zero, most);
    ptx_val high =
        ptx_clamp(b, ptx_sub(b, r->seen.last, tile->first), ptx_s32(b, -1), ptx_s32(b, TILE_KEYS - 1));
    low = ptx_shl(b, ptx_mov(b, ones), ptx_as(b, PTX_U32, low));
    high = ptx_shl(b, ptx_mov(b, ones), ptx_as(b, PTX_U32, ptx_add(b, high, 1)));
    ptx_val bits = ptx_and(b, low, ptx_not(b, high));
    return ptx_selp(b, bits, ptx_u64(b, 0), r->active);
}

/* t of what a row does not see becomes -Inf. */
static void hide_scores(ptx_builder *b, const tensor *t, const tensor_tile *tile)
{
    ptx_val existing = attend_existing(b, t, tile->number), shift = ptx_shl(b, ptx_and(b, t->lane, 3), 1);
    for (unsigned h = 0; h < t->halves; h++) {
        ptx_val words[2], bits = ptx_and(b, existing, seen_bits(b, &t->rows[h], tile));
        ptx_unpack(b, PTX_U32, bits, words, 2);
        for (unsigned i = 0; i < 2; i++)
            words[i] = ptx_shr(b, words[i], shift);
        for (unsigned i = 0; i < 2 * GROUPS; i++) {
            const unsigned bit = i / 2 * GROUP_KEYS + i % 2;
            ptx_val seen = ptx_setp(b, PTX_NE, ptx_and(b, words[bit / 32], ptx_u32(b, 1u << bit % 32)), 0);
            ptx_val score = tile->scores[i / 2][2 * h + i % 2];
            ptx_assign(b, score, ptx_selp(b, score, minus_infinity(b), seen));
        }
    }
}

static ptx_val over_team(ptx_builder *b, ptx_val x)
{
    for (unsigned distance = 1; distance < 4; distance *= 2)
        x = ptx_max(b, x, ptx_shfl_bfly(b, x, distance));
    return x;
}

/* The new maximum of a half; gives what sums before are multiplied by. */
static ptx_val raise_maximum(ptx_builder *b, const tensor_tile *tile, unsigned h, ptx_val m)
{
    ptx_val largest = tile->scores[0][2 * h];
    for (unsigned i = 1; i < 2 * GROUPS; i++)
        largest = ptx_max(b, largest, tile->scores[i / 2][2 * h + i % 2]);
    largest = ptx_max(b, over_team(b, largest), m);
    ptx_val a = state_factor(b, m, largest);
    ptx_assign(b, m, largest);
    return a;
}

/* Weights of hidden keys become -0, those of NaN and +Inf NaN. */
static void hide_weights(ptx_builder *b, const tensor_tile *tile, unsigned h)
{
    const uint32_t nan = 0x7FFF, hidden = 0x8000;
    for (unsigned i = 0; i < 2 * GROUPS; i++) {
        const unsigned g = i / 2, e = i % 2, shift = 16 * e;
        ptx_val word = tile->weights[g][h], score = tile->scores[g][2 * h + e];
        ptx_val others = ptx_and(b, word, ptx_u32(b, 0xFFFFu << (16 - shift)));
        ptx_val is_hidden = ptx_setp(b, PTX_EQ, score, minus_infinity(b));
        ptx_val is_nan = ptx_setp(b, PTX_GEU, score, ptx_bits(b, PTX_F32, 0x7F800000));
        ptx_val as_hidden = ptx_or(b, others, ptx_u32(b, hidden << shift));
        ptx_val as_nan = ptx_or(b, others, ptx_u32(b, nan << shift));
        word = ptx_selp(b, as_hidden, word, is_hidden);
        ptx_assign(b, tile->weights[g][h], ptx_selp(b, as_nan, word, is_nan));
    }
}

static void scale_sums(ptx_builder *b, const tensor *t, const tensor_state *s, const ptx_val a[HALVES])
{
    ptx_val change = ptx_setp(b, PTX_NEU, a[0], ptx_f32(b, 1));
    if (t->halves > 1)
        change = ptx_setp_or(b, PTX_NEU, a[1], ptx_f32(b, 1), change);
    ptx_uniform(b);
    ptx_if(b, ptx_vote_any(b, change));
    for (unsigned i = 0; i < 2 * t->halves; i++) {
        for (unsigned g = 0; g < t->groups; g++)
            ptx_assign(b, s->o[g][i], ptx_mul(b, s->o[g][i], a[i / 2]));
        ptx_assign(b, s->l[i], ptx_mul(b, s->l[i], a[i / 2]));
    }
    ptx_end_if(b);
}

/* The sum of the weights is a column of values that are 1. */
static void add_weights(ptx_builder *b, const tensor *t, const tensor_tile *tile, const tensor_state *s)
{
    const uint32_t one = t->type == QDNN_DATA_F16 ? 0x3C003C00 : 0x3F803F80;
    const ptx_val ones[2] = {ptx_mov(b, ptx_u32(b, one)), ptx_mov(b, ptx_u32(b, one))};
    for (unsigned g = 0; g < GROUPS; g += 2) {
        const ptx_val a[4] = {tile->weights[g][0], tile->weights[g][1], tile->weights[g + 1][0],
                              tile->weights[g + 1][1]};
        attend_multiply(b, t, s->l, a, ones, s->l, false);
    }
}

void attend_weights(ptx_builder *b, const tensor *t, const tensor_tile *tile, const tensor_state *strip)
{
    ptx_val a[HALVES] = {{0}};
    bias_scores(b, t, tile);
    ptx_val plain = nothing_is_hidden(b, t, tile);
    ptx_assign(b, tile->checked, ptx_not(b, plain));
    ptx_uniform(b);
    ptx_if(b, tile->checked);
    hide_scores(b, t, tile);
    ptx_end_if(b);
    for (unsigned h = 0; h < t->halves; h++) {
        a[h] = raise_maximum(b, tile, h, strip->m[h]);
        for (unsigned g = 0; g < GROUPS; g++) {
            ptx_val p[2];
            for (unsigned e = 0; e < 2; e++)
                p[e] = emit_exp16(b, ptx_sub(b, tile->scores[g][2 * h + e], strip->m[h]));
            ptx_assign(b, tile->weights[g][h], emit_narrow_pair(b, t->type, p[0], p[1]));
        }
        ptx_uniform(b);
        ptx_if(b, tile->checked);
        hide_weights(b, tile, h);
        ptx_end_if(b);
    }
    scale_sums(b, t, strip, a);
    add_weights(b, t, tile, strip);
}
