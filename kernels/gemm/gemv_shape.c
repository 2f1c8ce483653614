/* The shape of a kernel for products of few rows: how its threads share the work; and what it serves. */
#include "kernels/gemm/gemv.h"

#include <stdio.h>

/* ---- Shapes ---- */

enum {
    SUMS_MAX = 64,    /* accumulators of a thread */
    WORDS_AHEAD = 32, /* that a thread has in flight, at most, and of one output: */
    WORDS_OF_OUTPUT = 16,
    X_BYTES = 32 * 1024, /* of shared memory, at most */
    TILE_MAX = 4096,     /* k */
    NUMBERS_BYTES = 20 * 1024,
    NUMBERS_BYTES_BESIDE_TABLE = 35 * 1024, /* both fit 99 KB */
    TURN_LEAST = 4,                         /* rounds */
    RAGGED_TURN_MAX = 4,
    RAGGED_BYTES = 40 * 1024, /* of shared memory, for x, numbers and stretches of rows */
    TABLE_BYTES = 64          /* of codes that are looked up */
};

unsigned gemv_unit(const gemv_shape *s)
{
    return CHUNK * s->chunks;
}

static unsigned between(unsigned least, unsigned x, unsigned most)
{
    return x < least ? least : x > most ? most : x;
}

/* Stretches of rows: the codes of a turn, what precedes them in their sector, and a word behind them. Outputs lie such that the
 * teams of a warp read different banks where codes have an odd number of bits. */
static void set_stretch(unsigned bits, gemv_shape *s)
{
    const unsigned unit = gemv_unit(s) * bits;
    unsigned pitch;
    s->vectors = s->turn * ROUND / 8 * bits / LOAD_BYTES + 2 + (unit % 32 != 0);
    for (pitch = s->vectors; bits % 2 && pitch % 8 != s->team * unit / 128 % 8;)
        pitch++;
    s->pitch = pitch * LOAD_BYTES;
}

/* Whether the tile's x and numbers have room. */
static bool tile_has_room(const gemv_codec *codec, const format_row *format, const gemv_shape *s)
{
    const unsigned shared = PTX_SHARED_DEFAULT - (format->codec->open ? TABLE_BYTES : 0);
    const unsigned slots = s->span ? s->tile / s->span : 0, x = s->rows * s->tile * 4;
    const unsigned numbers = slots ? gemv_numbers_bytes(s, codec) : 0;
    if (s->is_ragged)
        return x + numbers + s->of_block * s->pitch <= RAGGED_BYTES;
    if (s->numbers_between)
        return x <= X_BYTES / 2 && 2 * x + numbers <= BYTE_TABLE_BYTES - BYTE_TABLE_RUN;
    if (codec->open)
        return x <= X_BYTES / 2 && numbers <= NUMBERS_BYTES_BESIDE_TABLE;
    return x <= X_BYTES && numbers <= NUMBERS_BYTES && x + numbers <= shared;
}

/* The largest tile that has room: a power of two, whole turns of the loop, and work for every warp. False where that is
 * not so: the least one is taken then. */
static bool set_tile(const kernel_spec *spec, const format_row *format, const gemv_codec *codec,
                     gemv_shape *s)
{
    const unsigned least = between(s->turn, s->warps / s->rows, s->warps) * ROUND;
    const unsigned of_half = s->of_block / (spec->epilogue.gated ? 2 : 1);
    s->tile = TILE_MAX;
    s->span = gemv_span(format, spec);
    while (s->tile > least && !tile_has_room(codec, format, s))
        s->tile /= 2;
    bool has_room = tile_has_room(codec, format, s);
    while (s->span && s->tile / s->span * of_half < s->warps * WARP)
        s->span /= 2;
    return has_room;
}

/* The longest turns that have room. */
static void set_ragged_tile(const kernel_row *row, const kernel_spec *spec, const gemv_codec *codec,
                            gemv_shape *s)
{
    s->turn = 2 * RAGGED_TURN_MAX;
    do {
        s->turn /= 2;
        set_stretch(row->format->facts.bits, s);
    } while (!set_tile(spec, row->format, codec, s) && s->turn > 1);
}

/* Halves a thread's outputs while there are several (of gated pairs, two pairs), then its chunks: the team of an output becomes larger,
 * up to a warp, while a thread has a whole word of codes. */
static void split_outputs(const kernel_spec *spec, unsigned bits, gemv_shape *s)
{
    for (uint64_t split = spec->product.split; split > 1; split /= 2)
        if (s->outputs > (spec->epilogue.gated ? 2 : 1))
            s->outputs /= 2;
        else if (s->chunks > 1 && s->chunks / 2 * bits >= 4)
            s->chunks /= 2;
}

/* Warps hide latency better than loads written ahead, which ptxas moves together: a thread with one output loads no more of it
 * than one with two; on sm_80 half as much, which the model of time prefers there and nowhere else. */
static unsigned depth_of(const gemv_shape *s, const ptx_sm *sm)
{
    const bool is_less = s->outputs == 1 && sm && sm->number == 80;
    const unsigned all = WORDS_AHEAD / (s->outputs * s->words),
                   of_output = (is_less ? WORDS_OF_OUTPUT / 2 : WORDS_OF_OUTPUT) / s->words;
    return between(2, all < of_output ? all : of_output, GEMV_DEPTH_MAX);
}

/* 16 bytes of codes a thread, unless that makes too many sums: of many rows, less. */
gemv_shape gemv_shape_of(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    const gemv_codec *codec = gemv_codec_of(row->format, spec);

    const unsigned bits = row->format->facts.bits,
                   most = spec->product.grouped ? 2 : 4; /* experts take registers */
    gemv_shape s = {.chunks = bits >= 16          ? 1
                              : bits & (bits - 1) ? 4
                                                  : 16 / bits,
                    .rows = (unsigned)spec->product.tile_rows,
                    .is_ragged = gemm_is_ragged(spec),
                    .numbers_between = codec->open && !(sm && sm->shared_block > 64 * 1024)};
    s.outputs = between(spec->epilogue.gated ? 2 : 1, 8 / s.chunks, s.rows > most ? 2 : GEMV_OUTPUTS_MAX);
    while (s.outputs * s.rows * s.chunks > SUMS_MAX && s.chunks > 1)
        s.chunks /= 2;
    split_outputs(spec, bits, &s);
    s.team = LANES / s.chunks;
    s.words = (s.chunks * bits + 3) / 4;
    s.depth = s.rows > 8 ? 1 : s.rows > 4 ? 2 : depth_of(&s, sm);
    s.warps = s.rows > 8 ? 8 : 4;
    s.of_block = s.warps * (WARP / s.team) * s.outputs;
    if (s.is_ragged) {
        set_ragged_tile(row, spec, codec, &s);
        return s;
    }
    s.turn = s.rows > 2 ? s.depth : between(TURN_LEAST, s.depth, GEMV_DEPTH_MAX);
    if (!set_tile(spec, row->format, codec, &s) && s.turn > TURN_LEAST) {
        s.turn = s.depth = TURN_LEAST;
        set_tile(spec, row->format, codec, &s);
    }
    return s;
}

/* ---- What it serves ---- */

static bool refuse(const kernel_spec *spec, char *error, size_t size, const char *why)
{
    snprintf(error, size, "product %s: %s", gemm_is_ragged(spec) ? "ragged" : "gemv", why);
    return false;
}

/* Numbers change with k, and not within the k of a thread in a round. */
static bool groups_serve(const kernel_row *row, const kernel_spec *spec)
{
    if (gemv_span(row->format, spec) == 0)
        return true;
    return spec->stored.groups != QDNN_GROUPS_COLUMNS &&
           (gemm_is_ragged(spec) || gemv_span(row->format, spec) >= 16);
}

bool gemv_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const unsigned bits = row->format->facts.bits;
    if (format_is_blocks(row->format))
        return refuse(spec, error, error_size, "codes must not lie in blocks");
    if ((bits & (bits - 1)) != 0 && !gemm_is_ragged(spec))
        return refuse(spec, error, error_size, "codes must have 2, 4 or 8 bits, or be plain values");
    if (spec->product.reduction != KERNEL_K_COLUMNS)
        return refuse(spec, error, error_size, "reduction must be columns");
    if (spec->stored.layout != QDNN_LAYOUT_BYTES && spec->stored.layout != QDNN_LAYOUT_WORDS_ROWS)
        return refuse(spec, error, error_size, "layout must be bytes or words");
    if (!groups_serve(row, spec))
        return refuse(spec, error, error_size,
                      gemm_is_ragged(spec) ? "groups must run along K"
                                           : "groups must run along K, with a size that is a multiple of 16");
    return true;
}

/* Columns and bytes of a row are counted by 31 bits, and the grid has all rows; groups do not reach from row to row. */
static bool shape_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const uint64_t most = UINT64_C(1) << 28;
    return problem->columns < most && problem->rows < most && problem->m < UINT16_MAX &&
           (spec->stored.groups != QDNN_GROUPS_FLAT || gemv_span(row->format, spec) == 0 ||
            problem->columns % spec->stored.group_size == 0);
}

/* A thread's 16 bytes are whole, and so are the spans of numbers. */
bool gemv_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const unsigned bits = row->format->facts.bits;
    return problem->columns % CHUNK == 0 && problem->columns * bits % (8 * LOAD_BYTES) == 0 &&
           shape_fits(row, spec, problem);
}

/* Any length of rows. Groups of no multiple of 8: one has the whole row. */
bool gemv_ragged_fits(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem)
{
    const bool has_groups = gemv_span(row->format, spec) != 0;
    return shape_fits(row, spec, problem) && (!has_groups || spec->stored.group_size % CHUNK == 0 ||
                                              problem->columns <= spec->stored.group_size);
}
