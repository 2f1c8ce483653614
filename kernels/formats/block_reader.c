/* Decoding blocks in registers. */
#include "kernels/formats/block_reader.h"

#include "kernels/formats/placed.h"

#include <math.h>
#include <string.h>

enum { CHUNK_BYTES = 8, TRICK_BITS = 149, ROUND_ELEMENTS = 256 };

/* ---- How a team shares a round ---- */

bool block_share_of(const block_layout *layout, unsigned team, block_share *share)
{
    const block_section *section = &layout->sections[0];
    const bool own_first = layout->scales->is_unpacked_by_team;
    if (layout->sections[1].count || (team > TEAM && !own_first))
        return false;
    *share = (block_share){.layout = layout,
                           .team = team,
                           .chunks = CHUNKS_OF_ROUND / team,
                           .strands = section->strands / (team == CHUNKS_OF_ROUND ? 2 : 1)};
    const unsigned bytes = ROUND_ELEMENTS / team / share->strands;
    share->bytes = bytes < section->span ? bytes : section->span;
    if (share->bytes > RUN_BYTES_MAX)
        share->bytes = RUN_BYTES_MAX;
    share->runs = bytes / share->bytes;
    share->fast = layout->table ? BLOCK_BY_TABLE : layout->scales->is_f32 ? BLOCK_PLAIN : BLOCK_CHEAP;
    share->own_first = own_first;
    return true;
}

/* How many threads have runs of their own: in the largest team, two share one. */
static unsigned threads_of_runs(const block_share *share)
{
    return share->strands < share->layout->sections[0].strands ? share->team / 2 : share->team;
}

/* A thread's chunks are those of its runs, strand by strand; a run begins at an element of a block of the round. */
map block_share_lanes(const block_share *share)
{
    const block_layout *layout = share->layout;
    const block_section *section = &layout->sections[0];
    const unsigned of_run = share->bytes / CHUNK_BYTES, of_section = section->span / CHUNK_BYTES;
    map parts = {0}, lanes = {0}, all;
    map_add(&parts, "thread", 1, "run", 1);
    map_add(&parts, "chunk", of_run, "chunk", 1);
    map_add(&parts, "chunk", share->runs, "run", 1);
    map_add(&parts, "chunk", share->strands, "strand", 1);
    if (share->strands < section->strands)
        map_add(&parts, "thread", 2, "strand", 1);
    else if (share->own_first)
        map_flip(&parts, "thread", 2, "strand", 1);
    map_add(&parts, "thread", threads_of_runs(share), "run", share->runs);
    map_add(&lanes, "chunk", of_run, "lane", 1);
    map_add(&lanes, "run", of_section / of_run, "lane", of_run);
    map_add(&lanes, "run", section->count, "lane", of_section * section->strands);
    map_add(&lanes, "run", ROUND_ELEMENTS / layout->elements, "lane", layout->elements / CHUNK_BYTES);
    map_add(&lanes, "strand", section->strands, "lane", of_section);
    if (!map_compose(&parts, &lanes, &all))
        missing_row("lanes of blocks", (int)layout->block);
    return all;
}

block_place block_share_place(ptx_builder *b, const block_share *share, ptx_val thread, unsigned run,
                              ptx_val *block)
{
    const block_section *section = &share->layout->sections[0];
    const unsigned of_block = section->count * section->span / share->bytes;
    if (threads_of_runs(share) < share->team)
        thread = ptx_shr(b, thread, 1);
    ptx_val number = share->runs == 1 ? thread : ptx_add(b, ptx_shl(b, thread, 1), (int)run);
    *block = ptx_shr(b, number, ceil_log2(of_block));
    return block_place_of_run(b, share->layout, 0, ptx_and(b, number, (int)of_block - 1), share->bytes);
}

void block_round_fetch(ptx_builder *b, const block_share *share, const block_place places[2],
                       block_round *round)
{
    for (unsigned i = 0; i < share->runs; i++)
        block_fetch(b, share->layout, &places[i], &round->runs[i]);
}

/* ---- What a thread keeps ---- */

/* Where the codes of a strand begin in each byte of gathered words. */
static unsigned strand_offset(const block_layout *layout, unsigned strand)
{
    return layout->codes->step * strand;
}

/* A thread unpacks the scale and minimum of its first strand of the block (in a team of 8, thread j of strand j); its
 * neighbour unpacks those of its second. See unpack_six. */
static void begin_six(ptx_builder *b, block_reader *r)
{
    ptx_val early = ptx_setp(b, PTX_LT, r->own, 4), byte = ptx_and(b, r->own, 3);
    const bool halves = has_mixed_fma(b);
    r->select[0] =
        halves ? ptx_add(b, ptx_mul(b, byte, 0x101), 0x400) : ptx_add(b, ptx_mul(b, byte, 0x11), 0x40);
    r->select[1] = ptx_selp(b, ptx_u32(b, 0x4545), ptx_or(b, byte, 0x4540), early);
    r->shift = ptx_selp(b, ptx_u32(b, 0), ptx_u32(b, 2), early);
    r->mask =
        ptx_selp(b, ptx_u32(b, halves ? 0x3F003F : 0x3F3F), ptx_u32(b, halves ? 0x300030 : 0x3030), early);
}

static void begin_own_first(ptx_builder *b, block_reader *r)
{
    const block_layout *layout = r->share->layout;
    ptx_val parity = ptx_and(b, r->thread, 1);
    r->odd = ptx_setp(b, PTX_NE, parity, 0);
    r->own = r->share->team == TEAM
                 ? r->thread
                 : ptx_mad(b, ptx_shr(b, r->thread, ceil_log2(r->share->team / layout->sections[0].count)), 2,
                           parity);
    for (unsigned s = 0; s < 2; s++) {
        const unsigned even = strand_offset(layout, s), odd = strand_offset(layout, !s);
        const int exponent = TRICK_BITS - PLACED_X_EXPONENT;
        for (unsigned k = 0; k < 2; k++)
            r->masks[s][k] = ptx_selp(b, ptx_u32(b, (uint32_t)layout->codes->mask << (8 * k + odd)),
                                      ptx_u32(b, (uint32_t)layout->codes->mask << (8 * k + even)), r->odd);
        r->factors[s] = ptx_selp(b, emit_power_of_two(b, exponent - (int)odd),
                                 emit_power_of_two(b, exponent - (int)even), r->odd);
        r->turns[s].shift = ptx_shl(b, ptx_xor(b, ptx_and(b, r->thread, 1), (int)s), 2);
        r->turns[s].turn = ptx_sub(b, ptx_u32(b, 4), ptx_xor(b, r->own, (int)s));
    }
    begin_six(b, r);
}

block_reader block_reader_begin(ptx_builder *b, const block_share *share, const codec_state *state,
                                ptx_val thread, bool in_units)
{
    block_reader r = {.share = share, .state = state, .thread = thread, .in_units = in_units};
    if (share->own_first)
        begin_own_first(b, &r);
    if (share->fast == BLOCK_CHEAP && share->layout->bias)
        r.guard = ptx_var(b, ptx_f32(b, 0));
    if (in_units)
        r.seen = ptx_var(b, ptx_u32(b, 0));
    return r;
}

/* ---- The cheap decode ---- */

/* Words that hold the strand's codes in their bytes: as loaded, where possible. */
static void gathered_words(ptx_builder *b, const block_reader *r, const block_run *run, unsigned strand,
                           ptx_val *words)
{
    const block_codes *codes = r->share->layout->codes;
    if (codes->gather)
        codes->gather(b, run, strand, r->turns, words);
    else
        memcpy(words, run->codes, r->share->bytes / 4 * sizeof *words);
}

/* The scale and the minimum of strand `thread`, from the four words of the header (d and dmin, then 3
 * times 4 bytes): in bytes 0 and 1 or, for the mixed fma, as f16 numbers with an offset of 1024 in the two
 * halves. The first four strands have them in the low six bits of the first eight bytes; the others have
 * their lower four bits in the last four bytes and the upper two bits at the top of the first eight. */
static ptx_val unpack_six(ptx_builder *b, const block_reader *r, const ptx_val *header)
{
    const bool halves = has_mixed_fma(b);
    ptx_val upper = ptx_shr(b, ptx_prmt(b, header[1], header[2], r->select[0]), r->shift);
    ptx_val byte = ptx_prmt(b, header[3], ptx_u32(b, halves ? 0x64 : 0), r->select[1]);
    ptx_val lower = ptx_lop3(b, byte, ptx_shl(b, byte, halves ? 12 : 4),
                             ptx_u32(b, halves ? 0x640F640F : 0x0F0F), (PTX_LOP_A | PTX_LOP_B) & PTX_LOP_C);
    return ptx_lop3(b, upper, r->mask, lower, (PTX_LOP_A & PTX_LOP_B) | PTX_LOP_C);
}

/* d * scale and dmin * minimum, times the powers of two of the cheap decode; d and dmin are a pair of f16. */
static void six_by_f32(ptx_builder *b, const block_reader *r, ptx_val pair, ptx_val six, block_stream *out)
{
    ptx_val both[2];
    ptx_unpack(b, PTX_F16, pair, both, 2);
    ptx_val d = ptx_mul(b, ptx_cvt(b, PTX_F32, both[0]), r->factors[0]);
    ptx_val least = ptx_mul(b, ptx_cvt(b, PTX_F32, both[1]), emit_power_of_two(b, -PLACED_X_EXPONENT));
    ptx_val scale = ptx_cvt_low(b, PTX_F32, PTX_U8, six);
    out->scales[0] = ptx_mul(b, d, scale);
    ptx_val steps = ptx_shr(b, six, 8);
    const bool by_bytes = ptx_target(b) && ptx_target(b)->number < 90; /* a single instruction there */
    steps = by_bytes ? ptx_cvt_low(b, PTX_F32, PTX_U8, steps) : ptx_cvt(b, PTX_F32, steps);
    out->addend = ptx_mul(b, ptx_neg(b, least), steps);
}

/* The same where one instruction multiplies two f16 exactly; the two integers lie in the halves of `six`. */
static void six_by_f16(ptx_builder *b, const block_reader *r, ptx_val pair, ptx_val six, block_stream *out)
{
    ptx_val both[2], numbers[2], nothing = ptx_f32(b, -0.0f);
    ptx_val placed = ptx_as(b, PTX_F16X2, six), offset = ptx_bits(b, PTX_F16X2, 0x64006400);
    ptx_unpack(b, PTX_F16, pair, both, 2);
    ptx_unpack(b, PTX_F16, ptx_sub(b, placed, offset), numbers, 2);
    out->scales[0] = ptx_mul(b, ptx_fma(b, both[0], numbers[0], nothing), r->factors[0]);
    out->addend =
        ptx_mul(b, ptx_fma(b, both[1], numbers[1], nothing), ptx_f32(b, -ldexpf(1, -PLACED_X_EXPONENT)));
}

static void open_six(ptx_builder *b, const block_reader *r, const block_run *run, block_values *out)
{
    block_stream *own = &out->streams[0], *other = &out->streams[1];
    ptx_val six = unpack_six(b, r, run->scales);
    if (has_mixed_fma(b))
        six_by_f16(b, r, run->scales[0], six, own);
    else
        six_by_f32(b, r, run->scales[0], six, own);
    if (r->share->strands == 1)
        return;
    other->scales[0] = ptx_shfl_bfly(b, own->scales[0], 1);
    other->addend = ptx_shfl_bfly(b, own->addend, 1);
}

/* Scales from the format's own readers, adjusted to the position of the strand's codes. */
static void open_scale(ptx_builder *b, const block_reader *r, const block_run *run, unsigned strand,
                       block_stream *out)
{
    const block_layout *layout = r->share->layout;
    const int offset = (int)strand_offset(layout, strand);
    block_strand numbers = {0};
    layout->scales->strand(b, run, strand, &numbers);
    out->scales[0] = offset ? ptx_mul(b, numbers.scale, emit_power_of_two(b, -offset)) : numbers.scale;
    out->addend = numbers.addend.kind != PTX_NOTHING
                      ? numbers.addend
                      : ptx_mul(b, numbers.scale, ptx_f32(b, -ldexpf((float)layout->bias, -TRICK_BITS)));
}

/* Multiplies d and dmin by the powers of two that the cheap decode needs. */
static void open_run(ptx_builder *b, const block_reader *r, block_run *run)
{
    block_open_run(b, r->state, run);
    if (r->guard.kind != PTX_NOTHING)
        ptx_assign(b, r->guard, ptx_fma(b, run->d, ptx_f32(b, 0), r->guard));
    run->d = ptx_mul(b, run->d, emit_power_of_two(b, TRICK_BITS - PLACED_X_EXPONENT));
    if (r->share->layout->at.second && r->share->layout->bias == 0)
        run->second = ptx_mul(b, run->second, emit_power_of_two(b, -PLACED_X_EXPONENT));
}

static void open_codes(ptx_builder *b, const block_reader *r, const block_run *run, unsigned strand,
                       block_stream *out)
{
    const block_share *share = r->share;
    const block_layout *layout = share->layout;
    gathered_words(b, r, run, strand, out->words);
    for (unsigned i = 0; 4 * i < share->bytes; i++)
        out->shifted[i] = ptx_shr(b, out->words[i], 16);
    for (unsigned k = 0; k < 2; k++)
        out->masks[k] =
            share->own_first && layout->codes->step
                ? r->masks[strand][k]
                : ptx_u32(b, (uint32_t)layout->codes->mask << (8 * k + strand_offset(layout, strand)));
    out->scales[1] = ptx_mul(b, out->scales[0], emit_power_of_two(b, -8));
}

static void open_cheap(ptx_builder *b, const block_reader *r, block_round *round, block_values *out)
{
    const block_share *share = r->share;
    if (share->own_first)
        open_six(b, r, &round->runs[0], out);
    for (unsigned i = 0; i < share->runs; i++) {
        block_run *run = &round->runs[i];
        if (!share->own_first && i == 0)
            open_run(b, r, run);
        else if (!share->own_first)
            run->d = round->runs[0].d, run->table = round->runs[0].table; /* both lie in one block */
        for (unsigned s = 0; s < share->strands; s++) {
            block_stream *stream = &out->streams[s * share->runs + i];
            if (!share->own_first)
                open_scale(b, r, run, s, stream);
            open_codes(b, r, run, s, stream);
        }
    }
}

/* ---- The plain decode ---- */

static void open_plain(ptx_builder *b, const block_reader *r, block_round *round, block_values *out)
{
    const block_share *share = r->share;
    for (unsigned i = 0; i < share->runs; i++) {
        block_open_run(b, r->state, &round->runs[i]);
        for (unsigned s = 0; s < share->strands; s++)
            out->streams[s * share->runs + i].strand = block_strand_of(b, share->layout, &round->runs[i], s);
    }
    if (!share->own_first)
        return;
    block_strand low = out->streams[0].strand, high = block_strand_of(b, share->layout, &round->runs[0], 1);
    out->streams[0].strand = block_strand_select(b, &high, &low, share->bytes, r->odd);
    if (share->strands > 1)
        out->streams[1].strand = block_strand_select(b, &low, &high, share->bytes, r->odd);
}

/* ---- By table: bytes as loaded; both strands share the scale ---- */

/* The unit of a block; also records in `seen` whether e is supported: e + 32 is then from 128 to 191. */
static ptx_val open_unit(ptx_builder *b, const block_reader *r, const block_run *run)
{
    const ptx_val *codes = run->codes;
    ptx_val some = ptx_lop3(b, codes[0], codes[1], codes[2], PTX_LOP_A | PTX_LOP_B | PTX_LOP_C);
    some = ptx_lop3(b, some, codes[3], ptx_u32(b, 0x77777777), (PTX_LOP_A | PTX_LOP_B) & PTX_LOP_C);
    ptx_val e = ptx_selp(b, run->d, ptx_u32(b, 128), ptx_setp(b, PTX_NE, some, 0));
    ptx_assign(b, r->seen,
               ptx_lop3(b, ptx_add(b, e, 32), ptx_u32(b, 128), r->seen, (PTX_LOP_A ^ PTX_LOP_B) | PTX_LOP_C));
    return ptx_shl(b, e, 23);
}

static void open_scales_by_table(ptx_builder *b, const block_reader *r, block_round *round, block_values *out)
{
    const block_share *share = r->share;
    for (unsigned i = 0; i < share->runs; i++) {
        block_strand numbers = {0};
        block_open_run(b, r->state, &round->runs[i]);
        share->layout->scales->strand(b, &round->runs[i], 0, &numbers);
        out->streams[i].scales[0] = numbers.scale;
    }
}

static void open_by_table(ptx_builder *b, const block_reader *r, block_round *round, block_values *out)
{
    const block_share *share = r->share;
    if (r->in_units)
        out->unit = open_unit(b, r, &round->runs[0]);
    else
        open_scales_by_table(b, r, round, out);
    for (unsigned i = 0; i < share->runs; i++) {
        block_run *run = &round->runs[i];
        for (unsigned k = 0; 4 * k < share->bytes; k++)
            out->streams[i].words[k] = run->codes[k];
    }
}

void block_values_open(ptx_builder *b, const block_reader *reader, block_round *round, block_way way,
                       block_values *out)
{
    static void (*const open[])(ptx_builder *, const block_reader *, block_round *, block_values *) = {
        [BLOCK_PLAIN] = open_plain, [BLOCK_CHEAP] = open_cheap, [BLOCK_BY_TABLE] = open_by_table};
    *out = (block_values){.way = way};
    open[way](b, reader, round, out);
}

/* ---- Elements ---- */

static const block_stream *stream_of(const block_values *values, const block_share *share, unsigned chunk,
                                     unsigned e, unsigned *byte)
{
    const unsigned of_run = share->bytes / CHUNK_BYTES;
    *byte = chunk % of_run * CHUNK_BYTES + e;
    return &values->streams[chunk / of_run];
}

/* Masks the code; bytes in two's complement get an offset of 128 on the way. */
static ptx_val masked(ptx_builder *b, const block_reader *r, const block_stream *stream, unsigned byte)
{
    const ptx_val *words = byte % 4 < 2 ? stream->words : stream->shifted, mask = stream->masks[byte % 2];
    ptx_val code =
        r->share->layout->codes->is_signed
            ? ptx_lop3(b, words[byte / 4], mask, ptx_u32(b, 0x80808080), (PTX_LOP_A ^ PTX_LOP_C) & PTX_LOP_B)
            : ptx_and(b, words[byte / 4], mask);
    return ptx_as(b, PTX_F32, code);
}

ptx_val block_value(ptx_builder *b, const block_reader *reader, const block_values *values, unsigned chunk,
                    unsigned e)
{
    unsigned byte;
    const block_stream *stream = stream_of(values, reader->share, chunk, e, &byte);
    if (values->way == BLOCK_PLAIN)
        return block_decode(b, reader->share->layout, reader->state, &stream->strand, byte);
    return ptx_fma(b, masked(b, reader, stream, byte), stream->scales[byte % 2], stream->addend);
}

static ptx_val look_up(ptx_builder *b, const block_reader *reader, const block_values *values, unsigned chunk,
                       unsigned e, ptx_val out[2])
{
    unsigned byte;
    const block_stream *stream = stream_of(values, reader->share, chunk, e, &byte);
    byte_table_load(b, &reader->table, stream->words[byte / 4], byte % 4, out, 2);
    return stream->scales[0];
}

void block_values_looked_up(ptx_builder *b, const block_reader *reader, const block_values *values,
                            unsigned chunk, unsigned e, ptx_val out[2])
{
    ptx_val scale = look_up(b, reader, values, chunk, e, out);
    for (unsigned i = 0; i < 2 && !reader->in_units; i++)
        out[i] = ptx_mul(b, out[i], scale);
}

ptx_val block_value_pair(ptx_builder *b, const block_reader *reader, const block_values *values,
                         unsigned chunk, unsigned e)
{
    const unsigned other = chunk + reader->share->chunks / 2;
    unsigned byte[2];
    if (values->way == BLOCK_BY_TABLE) {
        ptx_val two[2], scale = look_up(b, reader, values, chunk, e, two);
        ptx_val numbers = ptx_pack2(b, PTX_F32X2, two[0], two[1]);
        return reader->in_units ? numbers : ptx_mul(b, numbers, ptx_pack2(b, PTX_F32X2, scale, scale));
    }
    const block_stream *one = stream_of(values, reader->share, chunk, e, &byte[0]);
    const block_stream *two = stream_of(values, reader->share, other, e, &byte[1]);
    if (values->way == BLOCK_PLAIN)
        return ptx_pack2(b, PTX_F32X2, block_value(b, reader, values, chunk, e),
                         block_value(b, reader, values, other, e));
    ptx_val codes = ptx_pack2(b, PTX_F32X2, masked(b, reader, one, byte[0]), masked(b, reader, two, byte[1]));
    ptx_val scales = ptx_pack2(b, PTX_F32X2, one->scales[byte[0] % 2], two->scales[byte[1] % 2]);
    return ptx_fma(b, codes, scales, ptx_pack2(b, PTX_F32X2, one->addend, two->addend));
}
