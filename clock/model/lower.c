/* From SASS with its paths and ptxvm's counts by line to a program of the machine: instructions get units and what they move, paths become
 * traces, blocks are put together from warps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/model/model.h"

#define LOST 0.4
enum { WARP = 32, STEPS_MAX = 16 << 20 };

/* ---- Instructions ---- */

static clock_unit unit_of(const sass_inst *i)
{
    static const clock_unit units[SASS_UNITS] = {
        [SASS_UNIT_UNKNOWN] = CLOCK_ALU,      [SASS_UNIT_ALU] = CLOCK_ALU,
        [SASS_UNIT_FMA] = CLOCK_FMA,          [SASS_UNIT_HALF] = CLOCK_HALF,
        [SASS_UNIT_DOUBLE] = CLOCK_F64,       [SASS_UNIT_SPECIAL] = CLOCK_XU,
        [SASS_UNIT_TENSOR] = CLOCK_TENSOR,    [SASS_UNIT_MEMORY] = CLOCK_SHARED,
        [SASS_UNIT_CONSTANT] = CLOCK_UNIFORM, [SASS_UNIT_UNIFORM] = CLOCK_UNIFORM,
        [SASS_UNIT_BRANCH] = CLOCK_CONTROL,
    };
    const bool global = i->space == SASS_GLOBAL || i->space == SASS_GENERIC || i->space == SASS_LOCAL;
    return i->unit == SASS_UNIT_MEMORY && global ? CLOCK_GLOBAL : units[i->unit];
}

static clock_action action_of(const sass_inst *i)
{
    switch (i->kind) {
    case SASS_LOAD:
        return CLOCK_LOAD;
    case SASS_STORE:
    case SASS_REDUCTION:
        return CLOCK_STORE;
    case SASS_ATOMIC:
        return CLOCK_ATOMIC;
    case SASS_COPY:
        return CLOCK_COPY_ASYNC;
    case SASS_COPY_COMMIT:
        return CLOCK_COMMIT;
    case SASS_COPY_WAIT:
        return i->scoreboard == 0 ? CLOCK_WAIT_GROUPS : CLOCK_NOTHING;
    case SASS_SHUFFLE:
        return CLOCK_SHUFFLE;
    case SASS_BARRIER:
        return sass_has(i, "ARV") ? CLOCK_BARRIER_ARRIVE : CLOCK_BARRIER;
    case SASS_FENCE:
        return sass_is(i, "MEMBAR") && !sass_has(i, "CTA") ? CLOCK_FENCE : CLOCK_NOTHING;
    default:
        return CLOCK_NOTHING;
    }
}

/* In 16-bit products with f32 sums, whose rate GeForce boards halve, but not that of others. */
static double tensor_work(const sass_inst *i, const board *on)
{
    const double products = (double)i->mma.m * i->mma.n * i->mma.k;
    const double others = on->halves ? 0.5 : 1;
    switch (i->text[0]) {
    case 'H':
        return products * (sass_has(i, "TF32") ? 2 : sass_has(i, "F32") ? 1 : others);
    case 'I':
        return products * others * (sass_has(i, "S4") || sass_has(i, "U4") ? 0.25 : 0.5);
    case 'Q':
        return products * 0.5 * (sass_has(i, "F32") ? 1 : others);
    case 'O':
        return products * 0.25;
    default:
        return products;
    }
}

/* Turns of the pipe: products of integers have half of the lanes where there are 128 for f32; two products in one take two. */
static double turns_of(const sass_inst *i, const board *on)
{
    const bool wide = generation_of_sm(on->sm)->fma_per_clock > 64;
    const bool integer = sass_is(i, "IMAD") || sass_is(i, "IDP") || sass_is(i, "IMUL") || sass_is(i, "IDP4A");
    return (wide && integer) || sass_is(i, "FFMA2") || sass_is(i, "FADD2") || sass_is(i, "FMUL2") ? 2 : 1;
}

static float ratio(uint64_t a, uint64_t b)
{
    return b ? (float)((double)a / (double)b) : 0;
}

/* The traffic that an instruction's line has counted. */
static const ptxvm_traffic *traffic_of(const sass_inst *i, const ptxvm_counts *line)
{
    return i->kind == SASS_ATOMIC || i->kind == SASS_REDUCTION ? &line->atomic
           : i->kind == SASS_STORE                             ? &line->store
                                                               : &line->load;
}

static void set_memory(clock_instruction *out, const sass_inst *i, const ptxvm_counts *line)
{
    out->wavefronts = ratio(line->shared_wavefronts, line->shared_accesses);
    if (out->unit != CLOCK_GLOBAL)
        return;
    if (i->space == SASS_LOCAL) { /* spills stay in L1 */
        out->sectors = (float)(i->bytes ? i->bytes : 4);
        return;
    }
    const ptxvm_traffic *t = traffic_of(i, line);
    out->sectors = ratio(t->sectors, line->instructions);
    out->dram = ratio(t->first_sectors, t->sectors);
    out->l2 = i->bypass || i->kind != SASS_LOAD ? 1 : ratio(t->block_sectors, t->sectors);
    out->l2 = fmaxf(out->l2, out->dram);
}

/* "BAR.SYNC.DEFER_BLOCKING 0x1, 0x80": of how many warps; 0: all. */
static uint8_t barrier_warps(const sass_inst *i)
{
    const char *comma = memchr(i->text, ',', (size_t)i->text_length);
    long threads = comma ? strtol(comma + 1, NULL, 0) : 0;
    return (uint8_t)(threads / WARP);
}

/* Which one; 0 if a register says so. */
static uint8_t barrier_number(const sass_inst *i)
{
    const char *blank = memchr(i->text, ' ', (size_t)i->text_length);
    const long number = blank ? strtol(blank + 1, NULL, 0) : 0;
    return number > 0 && number < CLOCK_BARRIERS ? (uint8_t)number : 0;
}

/* What blocks of a sample are the first to load, others may find in L2. */
static double dram_share(const clock_case *what)
{
    const double first = 32.0 * (double)what->counters->total.load.first_sectors;
    const double counted = (double)(what->counted_blocks ? what->counted_blocks : what->blocks);
    const double all = first * (double)what->blocks / counted;
    if (what->warm)
        return 0;
    return what->dram_bytes > 0 && what->dram_bytes < all ? what->dram_bytes / all : 1;
}

static clock_instruction instruction_of(const sass_inst *i, const clock_case *what)
{
    static const ptxvm_counts nothing;
    const ptxvm_counters *c = what->counters;
    const ptxvm_counts *line = i->line > 0 && i->line < c->n_lines ? &c->lines[i->line] : &nothing;
    clock_instruction out = {
        .unit = (uint8_t)unit_of(i),
        .action = (uint8_t)action_of(i),
        .stall = i->control.stall,
        .write_barrier =
            i->control.write_barrier < 0 ? CLOCK_NO_SCOREBOARD : (uint8_t)i->control.write_barrier,
        .read_barrier = i->control.read_barrier < 0 ? CLOCK_NO_SCOREBOARD : (uint8_t)i->control.read_barrier,
        .wait_mask = i->control.waits,
        .line = i->line};
    out.work = (float)(i->kind == SASS_MMA ? tensor_work(i, what->on) : turns_of(i, what->on));
    if (out.action == CLOCK_WAIT_GROUPS)
        out.number = (uint8_t)i->keep;
    if (i->kind == SASS_BARRIER) {
        out.number = barrier_warps(i);
        out.barrier = barrier_number(i);
    }
    if (out.unit == CLOCK_SHARED || out.unit == CLOCK_GLOBAL)
        set_memory(&out, i, line);
    if (what->warm || i->kind == SASS_LOAD || i->kind == SASS_COPY)
        out.dram *= (float)dram_share(what);
    return out;
}

/* ---- What is not modelled ---- */

/* A short loop that loads strongly, or exchanges, and stores nothing, waits for another block. */
static bool spins(const sass_code *code, int loop)
{
    enum { SHORT = 24 };
    int length = 0;
    bool polls = false, works = false;
    for (int b = 0; b < code->n_blocks; b++)
        for (int i = code->blocks[b].first;
             sass_in_loop(code, b, loop) && i < code->blocks[b].first + code->blocks[b].count; i++) {
            const sass_inst *inst = &code->insts[i];
            length++;
            polls |= (inst->kind == SASS_LOAD && sass_has(inst, "STRONG")) ||
                     (inst->kind == SASS_ATOMIC && sass_has(inst, "CAS"));
            works |= inst->kind == SASS_STORE || inst->kind == SASS_MMA || inst->unit == SASS_UNIT_FMA;
        }
    return polls && !works && length <= SHORT;
}

static bool is_modelled(const sass_code *code, char *error, size_t size)
{
    for (int l = 0; l < code->n_loops; l++)
        if (spins(code, l)) {
            snprintf(error, size, "not modelled: it spins on memory");
            return false;
        }
    for (int i = 0; i < code->n_insts; i++)
        if (code->insts[i].kind == SASS_MBARRIER || code->insts[i].kind == SASS_BULK) {
            snprintf(error, size, "not modelled: which mbarrier an instruction means is not known");
            return false;
        }
    return true;
}

/* ---- Traces ---- */

static bool append(uint32_t **steps, size_t *length, size_t *capacity, uint32_t step)
{
    if (*length == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 1024;
        uint32_t *grown = realloc(*steps, *capacity * sizeof **steps);
        if (!grown)
            return false;
        *steps = grown;
    }
    (*steps)[(*length)++] = step;
    return *length <= STEPS_MAX;
}

static bool trace_path(const sass_code *code, const sass_path *path, clock_trace *out)
{
    uint32_t *steps = NULL;
    size_t capacity = 0;
    bool ok = true;
    sass_walk walk = sass_walk_begin(code, path);
    for (int b; (b = sass_walk_next(&walk)) >= 0;)
        for (int i = code->blocks[b].first; ok && i < code->blocks[b].first + code->blocks[b].count; i++)
            if (code->insts[i].kind != SASS_PADDING)
                ok = append(&steps, &out->length, &capacity, (uint32_t)i);
    out->steps = steps;
    return ok;
}

/* By how much the walk misses the counts: 1 is all of it. Where loops are entered in ways that the counts leave open, it may miss some. */
static double walk_error(const sass_code *code, const sass_path *path, const clock_trace *trace)
{
    double counted = 0;
    for (int b = 0; b < code->n_blocks; b++)
        for (int i = code->blocks[b].first; i < code->blocks[b].first + code->blocks[b].count; i++)
            counted += code->insts[i].kind != SASS_PADDING ? path->blocks[b] : 0;
    return counted > 0 ? fabs((double)trace->length - counted) / counted : 0;
}

/* ---- Blocks ---- */

/* Where the warps of each path go: as many as all blocks can have go to every one, what is left over to one block after another, path behind
 * path in the order of their first warps. So no block gets too many where the blocks of two paths alternate. */
typedef struct placed_path {
    uint64_t each, begin, more; /* `more` blocks from `begin` on, round behind the last, have one more */
} placed_path;

static placed_path *place_paths(const sass_path *paths, int n, uint64_t blocks)
{
    placed_path *placed = calloc((size_t)n + 1, sizeof *placed);
    for (int p = 0; placed && p < n; p++) {
        placed[p].each = paths[p].warps / blocks;
        placed[p].more = paths[p].warps % blocks;
        for (int q = 0; q < n; q++)
            if (paths[q].first < paths[p].first || (paths[q].first == paths[p].first && q < p))
                placed[p].begin += paths[q].warps % blocks;
        placed[p].begin %= blocks;
    }
    return placed;
}

static uint64_t warps_in_block(const placed_path *path, uint64_t block, uint64_t blocks)
{
    return path->each + ((block + blocks - path->begin) % blocks < path->more);
}

/* The first block behind `block` that has other warps. */
static uint64_t next_change(const placed_path *paths, int n, uint64_t block, uint64_t blocks)
{
    uint64_t change = blocks;
    for (int p = 0; p < n; p++) {
        const uint64_t begin = paths[p].begin, end = (begin + paths[p].more) % blocks;
        if (paths[p].more && begin > block && begin < change)
            change = begin;
        if (paths[p].more && end > block && end < change)
            change = end;
    }
    return change;
}

static bool fill_block(const placed_path *paths, int n, uint64_t block, uint64_t blocks, int per_block,
                       clock_block *out)
{
    uint16_t *warps = calloc((size_t)per_block, sizeof *warps);
    out->warps = warps;
    for (int p = 0; warps && p < n; p++)
        for (uint64_t w = warps_in_block(&paths[p], block, blocks); w && out->n_warps < per_block; w--)
            warps[out->n_warps++] = (uint16_t)p;
    while (warps && out->n_warps && out->n_warps < per_block) { /* rounding: as the last one */
        warps[out->n_warps] = warps[out->n_warps - 1];
        out->n_warps++;
    }
    return warps != NULL;
}

/* `counted` blocks were run; the launch has what->blocks of them, in the same proportions. */
static bool make_blocks(const sass_path *paths, int n, const clock_case *what, clock_kernel *out)
{
    const uint64_t counted = what->counted_blocks ? what->counted_blocks : what->blocks;
    const int per_block = (what->threads + WARP - 1) / WARP, most = 2 * n + 1;
    double scale = (double)what->blocks / (double)counted;
    placed_path *placed = place_paths(paths, n, counted);
    out->blocks = calloc((size_t)most, sizeof *out->blocks);
    out->runs = calloc((size_t)most, sizeof *out->runs);
    bool ok = placed && out->blocks && out->runs;
    uint64_t given = 0;
    for (uint64_t b = 0, next; ok && b < counted && out->n_runs < most; b = next) {
        next = next_change(placed, n, b, counted);
        ok = fill_block(placed, n, b, counted, per_block, &out->blocks[out->n_runs]);
        uint64_t until = (uint64_t)llround((double)next * scale);
        out->runs[out->n_runs] = (clock_run_of_blocks){until - given, out->n_runs};
        given = until;
        out->n_runs++;
    }
    free(placed);
    return ok;
}

bool clock_lower(const sass_code *code, const sass_path *paths, int n_paths, const clock_case *what,
                 clock_kernel *out, char *error, size_t size)
{
    *out = (clock_kernel){0};
    if (!generation_of_sm(what->on->sm) || !pipes_of_sm(what->on->sm)) {
        snprintf(error, size, "nothing is known of sm_%d", what->on->sm);
        return false;
    }
    if (!is_modelled(code, error, size))
        return false;
    out->instructions = calloc((size_t)code->n_insts + 1, sizeof *out->instructions);
    out->traces = calloc((size_t)n_paths + 1, sizeof *out->traces);
    bool ok = out->instructions && out->traces && make_blocks(paths, n_paths, what, out);
    for (int i = 0; ok && i < code->n_insts; i++)
        out->instructions[i] = instruction_of(&code->insts[i], what);
    out->program =
        (clock_program){out->instructions, code->n_insts, out->traces, n_paths, out->blocks, out->n_runs};
    for (int t = 0; ok && t < n_paths; t++)
        ok = trace_path(code, &paths[t], &out->traces[t]);
    for (int t = 0; ok && t < n_paths; t++)
        out->misfit = fmax(out->misfit, walk_error(code, &paths[t], &out->traces[t]));
    if (ok && out->misfit > LOST) {
        snprintf(error, size,
                 "not modelled: the order in which its blocks run does not follow from the counts");
        clock_kernel_free(out);
        return false;
    }
    if (!ok) {
        snprintf(error, size, "not modelled: its warps execute too many instructions, or there is no memory");
        clock_kernel_free(out);
    }
    return ok;
}

void clock_kernel_free(clock_kernel *kernel)
{
    for (int t = 0; kernel->traces && t < kernel->program.n_traces; t++)
        free((void *)kernel->traces[t].steps);
    for (int b = 0; kernel->blocks && b < kernel->n_runs; b++)
        free((void *)kernel->blocks[b].warps);
    free(kernel->instructions);
    free(kernel->traces);
    free(kernel->blocks);
    free(kernel->runs);
    *kernel = (clock_kernel){0};
}
