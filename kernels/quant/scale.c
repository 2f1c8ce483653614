/* The scale kernel: the scale (and zero point) of each group.
 *
 * Groups that are runs of elements get a team of lanes each. Groups that alternate (channels) get a block, or
 * a column of one, which goes from run to run; this is meant for short channels, or for the ranges that a
 * range kernel computed from parts of long ones. */
#include "kernels/formats/quantized.h"
#include "kernels/operations.h"
#include "kernels/quant/matrix.h"
#include "kernels/quant/numbers.h"
#include "kernels/quant/quant.h"

/* How a block reduces channels: `width` of them side by side, with neighbouring threads on neighbouring
 * channels; the other threads of a column take further elements of its channel. 8 f32 elements fill a
 * sector. */
enum { COLUMNS = 8, LONG_RUN = 32 };

static unsigned block_channels(const kernel_spec *spec)
{
    return spec->stored.group_size < LONG_RUN && spec->stored.channels >= COLUMNS ? COLUMNS : 1;
}

uint64_t scale_lanes(const kernel_spec *spec)
{
    return spec->stored.channels
               ? RANGE_BLOCK / block_channels(spec)
               : team_of(spec->data, spec->stored.group_size, spec->stored.group_size).lanes;
}

static kernel_geometry channel_geometry(const kernel_spec *spec)
{
    unsigned width = block_channels(spec);
    uint64_t turn = width * spec->stored.group_size, least = 32 * RANGE_BLOCK;
    return (kernel_geometry){.block = RANGE_BLOCK,
                             .elements_per_block = turn > least ? turn : least,
                             .blocks = (spec->stored.channels + width - 1) / width};
}

kernel_geometry scale_geometry(const kernel_row *row, const kernel_spec *spec)
{
    if (kernel_is_matrix(row, spec))
        return matrix_scale_geometry(spec);
    if (spec->stored.channels)
        return channel_geometry(spec);
    return (kernel_geometry){.block = RANGE_BLOCK,
                             .elements_per_block = RANGE_BLOCK / scale_lanes(spec) * spec->stored.group_size};
}

/* The parameters. */
typedef struct scale_kernel {
    coding coding;
    const kernel_spec *spec;
    sidecars out;
    ptx_val x, n;
} scale_kernel;

static void scale_groups(ptx_builder *b, const scale_kernel *k)
{
    const kernel_spec *spec = k->spec;
    team t = team_of(spec->data, spec->stored.group_size, spec->stored.group_size);
    ptx_val tid = ptx_tid_x(b), lane = team_lane(b, &t, tid);
    ptx_val block_first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, RANGE_BLOCK / t.lanes));
    ptx_val group = team_number(b, &t, tid, block_first);
    ptx_val first = emit_multiply(b, group, spec->stored.group_size);
    ptx_val left = ptx_sub(b, k->n, ptx_min(b, first, k->n));
    ptx_val base = ptx_at(b, k->x, first, element_bytes(spec->data));
    range r = range_begin(b, range_kind_of(&k->coding));
    range_add_part(b, spec->data, &t, &r, k->x, base, lane, left);
    range_reduce_team(b, &t, &r);
    group_made made = group_make(b, &k->coding, &k->out, r.lo, r.hi);
    numbers together = numbers_begin(b, &k->coding, t.lanes);
    numbers_store(b, &together, &k->out, &made, block_first,
                  emit_divide_up(b, k->n, spec->stored.group_size));
}

static void store(ptx_builder *b, const scale_kernel *k, const range *r, ptx_val group)
{
    group_made made = group_make(b, &k->coding, &k->out, r->lo, r->hi);
    group_store(b, &k->coding, &k->out, &made, group);
}

/* Adds the elements of a channel, numbered from `start` in steps of `step`; each turn has group_size of them.
 * If the predicate `exists` is given and false, there are none. */
static void add_channel(ptx_builder *b, const scale_kernel *k, const range *r, ptx_val channel,
                        ptx_val exists, ptx_val start, unsigned step)
{
    uint64_t g = k->spec->stored.group_size, turn = g * k->spec->stored.channels;
    ptx_val inside = emit_multiply(b, channel, g), count = k->n;
    if (turn > 1) {
        ptx_val turns = emit_divide(b, k->n, turn), rest = emit_remainder(b, k->n, turns, turn);
        ptx_val last = ptx_sub(b, rest, ptx_min(b, rest, inside));
        count = ptx_add(b, emit_multiply(b, turns, g), ptx_min(b, last, ptx_u64(b, g)));
    }
    if (exists.kind != PTX_NOTHING)
        count = ptx_selp(b, count, ptx_u64(b, 0), exists);
    ptx_val number = ptx_for(b, start, count, ptx_u64(b, step));
    ptx_val row = emit_divide(b, number, g);
    ptx_val at = turn > 1 ? ptx_mad(b, row, ptx_u64(b, turn), inside) : number;
    if (g > 1)
        at = ptx_add(b, at, emit_remainder(b, number, row, g));
    range_add(b, r, emit_load(b, k->spec->data, ptx_at(b, k->x, at, element_bytes(k->spec->data)), 0));
    ptx_end_for(b);
}

/* The channel of this thread, if `first` is the first of its block. */
static void scale_block(ptx_builder *b, const scale_kernel *k, ptx_val tid, ptx_val first, ptx_val bound)
{
    const unsigned width = block_channels(k->spec);
    ptx_val start = ptx_cvt(b, PTX_U64, width == 1 ? tid : ptx_shr(b, tid, 3));
    ptx_val channel = first, exists = {0};
    if (width > 1) {
        channel = ptx_add(b, first, ptx_cvt(b, PTX_U64, ptx_and(b, tid, width - 1)));
        exists = ptx_setp(b, PTX_LT, channel, bound);
    }
    range r = range_begin(b, range_kind_of(&k->coding));
    add_channel(b, k, &r, channel, exists, start, RANGE_BLOCK / width);
    range_reduce_columns(b, &r, width);
    ptx_if(b, width == 1 ? ptx_setp(b, PTX_EQ, tid, 0) : ptx_setp_and(b, PTX_LT, tid, width, exists));
    store(b, k, &r, channel);
    ptx_end_if(b);
}

/* Blocks loop over channels, so that the grid may be smaller than their number. For n = 0, nothing is
 * written. */
static void scale_channels(ptx_builder *b, const scale_kernel *k)
{
    const unsigned width = block_channels(k->spec);
    ptx_val tid = ptx_tid_x(b), none = ptx_setp(b, PTX_EQ, k->n, 0);
    ptx_val bound = ptx_selp(b, ptx_u64(b, 0), ptx_u64(b, k->spec->stored.channels), none);
    ptx_val from = emit_multiply(b, ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), width);
    if (k->spec->stored.channels <= width) { /* the first block takes them all */
        ptx_if(b, ptx_setp(b, PTX_LT, from, bound));
        scale_block(b, k, tid, from, bound);
        ptx_end_if(b);
        return;
    }
    ptx_val next = emit_multiply(b, ptx_cvt(b, PTX_U64, ptx_nctaid_x(b)), width);
    ptx_val first = ptx_for(b, from, bound, next);
    scale_block(b, k, tid, first, bound);
    ptx_syncthreads(b); /* before the ranges of the next channels are written to the same shared memory */
    ptx_end_for(b);
}
_Static_assert(COLUMNS == 1 << 3, "a thread's number is shifted by it");

static void emit_flat(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    if (spec->stored.nested)
        ptx_fail(b, "nested scales are made in two steps: scale without nested, then nest");
    quantized q = quantized_begin(b, row, spec, &args);
    scale_kernel k = {.coding = q.coding,
                      .spec = spec,
                      .out = q.side,
                      .x = args.operand[QDNN_OPERAND_X],
                      .n = args.number[NUMBER_N]};
    if (spec->stored.channels)
        scale_channels(b, &k);
    else
        scale_groups(b, &k);
}

void emit_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    (kernel_is_matrix(row, spec) ? emit_matrix_scale : emit_flat)(b, row, spec);
}
