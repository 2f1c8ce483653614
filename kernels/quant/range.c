/* The range kernel: the first of two passes that compute scales, used if there are few but long groups. It
 * divides the groups into parts, enough for a whole GPU, and writes the range of each part.
 *
 * With channels, the tensor is a sequence of turns; a turn has one run of elements of each channel. A run is
 * divided into segments. A team of lanes takes one segment of one channel in every so many turns (those of a
 * band). So the ranges are a list [band][channel][segment], each with either the absmax or the pair hi, lo.
 * The result does not depend on the grid: blocks loop over the work of the teams. */
#include "kernels/operations.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/ranges.h"

enum {
    SEGMENTS_MAX = 256, /* per run */
    BLOCKS_MAX = 1024,  /* enough to keep a GPU busy: a few per multiprocessor */
    LIST_ROUNDS = 64,   /* maximum number of list elements per lane in the second pass */
    PART_LEAST = 64     /* elements per part, so that the list is short compared to the tensor */
};

typedef struct parts {
    uint64_t run; /* consecutive elements of one channel */
    /* elements per segment (the last of a run may have fewer); segments per run */
    uint64_t segment, segments;
    team team;                 /* for one segment */
    uint64_t channels;         /* 0: a single turn without end; the members below are unused */
    uint64_t turn, turn_parts; /* elements and parts per turn */
    uint64_t bands;            /* at most */
    uint64_t band_elements;    /* one more band for every so many elements */
} parts;

/* Enough bands for all blocks, as long as the lists for the second pass stay short. */
static uint64_t bands_of(const kernel_spec *spec, const parts *p, bool is_signed)
{
    kernel_spec second = {
        .data = QDNN_DATA_F32, .stored.group_size = p->segments, .stored.channels = spec->stored.channels};
    uint64_t list = scale_lanes(&second) * LIST_ROUNDS / (1 + is_signed);
    uint64_t by_list = list * spec->stored.channels / p->turn_parts;
    uint64_t by_blocks = BLOCKS_MAX / ceil_div(p->turn_parts, RANGE_BLOCK / p->team.lanes);
    uint64_t bands = by_list < by_blocks ? by_list : by_blocks;
    return bands > 1 ? bands : 1;
}

/* Any multiple of the number of channels works as well, since part numbers are only used modulo the channels.
 * This fills the block if there are few channels; a single channel can have runs of any length. */
static parts parts_of(const kernel_spec *spec, bool is_signed)
{
    const uint64_t tile = RANGE_BLOCK * 4 * chunk_elements(spec->data);
    parts p = {.run = spec->stored.channels == 1 ? tile : spec->stored.group_size,
               .channels = spec->stored.channels};
    p.segment = p.run;
    if (p.run > tile)
        p.segment = ceil_div(ceil_div(p.run, SEGMENTS_MAX), tile) * tile;
    p.segments = ceil_div(p.run, p.segment);
    p.team = team_of(spec->data, p.segment, p.run);
    if (!p.channels)
        return p;
    uint64_t block_parts = RANGE_BLOCK / p.team.lanes, repeat = block_parts / (p.channels * p.segments);
    if (p.channels > 1 && repeat > 1)
        p.channels *= repeat;
    p.turn = p.run * p.channels;
    p.turn_parts = p.channels * p.segments;
    p.band_elements = p.turn * ceil_div(PART_LEAST, p.segment);
    p.bands = bands_of(spec, &p, is_signed);
    return p;
}

kernel_geometry range_geometry(const kernel_row *row, const kernel_spec *spec)
{
    parts p = parts_of(spec, format_has_zero(row->format));
    uint64_t block_parts = RANGE_BLOCK / p.team.lanes;
    return (kernel_geometry){.block = RANGE_BLOCK,
                             .elements_per_block = block_parts * p.segment,
                             .blocks = p.channels ? ceil_div(p.turn_parts * p.bands, block_parts) : 0};
}

uint64_t kernel_range_list(const kernel_row *row, const kernel_spec *spec)
{
    kernel_spec normal = kernel_spec_normal(row, spec);
    bool is_signed = format_has_zero(row->format);
    return parts_of(&normal, is_signed).segments * (1 + is_signed);
}

uint64_t kernel_range_count(const kernel_row *row, const kernel_spec *spec, uint64_t n)
{
    kernel_spec normal = kernel_spec_normal(row, spec);
    bool is_signed = format_has_zero(row->format);
    parts p = parts_of(&normal, is_signed);
    uint64_t count = n / p.run * p.segments + ceil_div(n % p.run, p.segment);
    if (p.channels) {
        uint64_t bands = ceil_div(n, p.band_elements);
        count = p.turn_parts * (bands < p.bands ? bands : p.bands);
    }
    return count * (1 + is_signed);
}

/* u64 values of one launch: the number of parts, and the distance from a part's elements in one turn to those
 * in the next turn that it handles. */
typedef struct extent {
    ptx_val count, stride;
} extent;

static extent extent_of(ptx_builder *b, const parts *p, ptx_val n)
{
    if (p->channels) {
        ptx_val bands = ptx_min(b, emit_divide_up(b, n, p->band_elements), ptx_u64(b, p->bands));
        return (extent){.count = ptx_mul(b, bands, ptx_u64(b, p->turn_parts)),
                        .stride = ptx_mul(b, bands, ptx_u64(b, p->turn))};
    }
    ptx_val runs = emit_divide(b, n, p->run), rest = emit_remainder(b, n, runs, p->run);
    ptx_val cut = emit_divide_up(b, rest, p->segment);
    return (extent){.count = ptx_mad(b, runs, ptx_u64(b, p->segments), cut), .stride = n};
}

/* Where a part begins in its first turn, and the maximum number of elements in its segment. */
typedef struct place {
    ptx_val first, room;
} place;

static place place_of(ptx_builder *b, const parts *p, ptx_val part)
{
    if (p->segments == 1)
        return (place){emit_multiply(b, part, p->run), ptx_u64(b, p->run)};
    ptx_val run = emit_divide(b, part, p->segments); /* counted over all turns */
    ptx_val segment = emit_remainder(b, part, run, p->segments);
    ptx_val inside = ptx_mul(b, segment, ptx_u64(b, p->segment));
    return (place){.first = ptx_mad(b, run, ptx_u64(b, p->run), inside),
                   .room = ptx_sub(b, ptx_u64(b, p->run), inside)};
}

static void add_turns(ptx_builder *b, const kernel_spec *spec, const parts *p, const range *r, ptx_val x,
                      ptx_val n, ptx_val lane, place from, ptx_val stride)
{
    ptx_val at = ptx_for(b, from.first, n, stride);
    ptx_val base = ptx_at(b, x, at, element_bytes(spec->data));
    if (p->segment == 1)
        range_add(b, r, emit_load(b, spec->data, base, 0));
    else
        range_add_part(b, spec->data, &p->team, r, x, base, lane, ptx_min(b, ptx_sub(b, n, at), from.room));
    ptx_end_for(b);
}

static void store_range(ptx_builder *b, const range *r, ptx_val ranges, ptx_val part)
{
    ptx_val address = ptx_at(b, ranges, part, r->is_signed ? 8 : 4);
    ptx_st_global(b, address, 0, r->hi);
    if (r->is_signed)
        ptx_st_global(b, address, 4, r->lo);
}

void emit_range(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const coding c = {row->format, spec};
    parts p = parts_of(spec, format_has_zero(row->format));
    ptx_minnctapersm(b, 4); /* up to 64 registers: by default, ptxas aims for 32 and spills */
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val x = args.operand[QDNN_OPERAND_X], ranges = args.workspace, n = args.number[NUMBER_N];

    ptx_val block_parts = ptx_u32(b, RANGE_BLOCK / p.team.lanes);
    ptx_val tid = ptx_tid_x(b), lane = team_lane(b, &p.team, tid);
    extent all = extent_of(b, &p, n);
    ptx_val next = ptx_mul_wide(b, ptx_nctaid_x(b), block_parts);
    ptx_val block_first = ptx_for(b, ptx_mul_wide(b, ptx_ctaid_x(b), block_parts), all.count, next);
    ptx_val part = team_number(b, &p.team, tid, block_first), exists = ptx_setp(b, PTX_LT, part, all.count);
    place from = place_of(b, &p, part);
    from.first = ptx_selp(b, from.first, n, exists);
    range r = range_begin(b, range_kind_of(&c));
    add_turns(b, spec, &p, &r, x, n, lane, from, all.stride);
    range_reduce_team(b, &p.team, &r);
    ptx_if(b, ptx_setp_and(b, PTX_EQ, lane, 0, exists));
    store_range(b, &r, ranges, part);
    ptx_end_if(b);
    if (p.team.lanes == RANGE_BLOCK)
        ptx_syncthreads(b); /* before the ranges of the next part are written to the same shared memory */
    ptx_end_for(b);
}
