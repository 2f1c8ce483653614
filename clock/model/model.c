/* One launch at both ends of what is known of a board. */
#include "clock/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/sm.h"

enum { WARP = 32 };

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int clock_blocks_per_sm(int sm, int threads, uint32_t shared, int registers)
{
    enum { REGISTER_UNIT = 256, REGISTERS = 65536, SHARED_UNIT = 128 };
    const sm_traits *t = pvm_sm_traits(sm);
    const uint64_t warps = round_up((uint64_t)threads, WARP) / WARP, reserved = sm >= 80 ? 1024 : 0;
    if (!t || !warps)
        return 0;
    uint64_t blocks = least((uint64_t)t->blocks, (uint64_t)t->threads / (warps * WARP));
    if (registers) {
        uint64_t of_warp = round_up((uint64_t)registers * WARP, REGISTER_UNIT);
        uint64_t fit = REGISTERS / of_warp / CLOCK_SCHEDULERS * CLOCK_SCHEDULERS;
        /* a launch is refused as if its warps filled all four parts of an SM, but placed as they are */
        blocks = round_up(warps, CLOCK_SCHEDULERS) > fit ? 0 : least(blocks, fit / warps);
    }
    if (shared + reserved)
        blocks = least(blocks, (uint64_t)t->shared / round_up(shared + reserved, SHARED_UNIT));
    return (int)blocks;
}

/* ---- A plain kernel ---- */

enum { LOADS = 4, LOAD_SECTORS = 16, BLOCK_WARPS = 8, STRIDE = 32 * LOADS * LOAD_SECTORS * BLOCK_WARPS };

/* Each warp loads 4 times 512 bytes and waits for them, so often that one wave of blocks does it all. */
static uint32_t *plain_steps(clock_instruction code[2], int rounds)
{
    uint32_t *steps = malloc((size_t)rounds * (LOADS + 1) * sizeof *steps);
    code[0] = (clock_instruction){.unit = CLOCK_GLOBAL,
                                  .action = CLOCK_LOAD,
                                  .stall = 2,
                                  .read_barrier = CLOCK_NO_SCOREBOARD,
                                  .sectors = LOAD_SECTORS,
                                  .l2 = 1,
                                  .dram = 1};
    code[1] = (clock_instruction){.unit = CLOCK_ALU,
                                  .stall = 5,
                                  .wait_mask = 1,
                                  .write_barrier = CLOCK_NO_SCOREBOARD,
                                  .read_barrier = CLOCK_NO_SCOREBOARD};
    for (int i = 0; steps && i < rounds * (LOADS + 1); i++)
        steps[i] = i % (LOADS + 1) == LOADS;
    return steps;
}

double clock_widened(double us, clock_corner corner)
{
    return us * (corner == CLOCK_LOW ? 1 - CLOCK_MARGIN : 1 + CLOCK_MARGIN);
}

bool clock_plain_read(const board *on, clock_corner corner, double bytes, double *us)
{
    clock_instruction code[2];
    uint16_t warps[BLOCK_WARPS] = {0};
    clock_parameters p;
    clock_result r = {.us = 0};
    const char *why;
    const int per_sm = clock_blocks_per_sm(on->sm, BLOCK_WARPS * WARP, 0, 0);
    const int rounds = (int)ceil(bytes / ((double)STRIDE * per_sm * on->multiprocessors));
    uint32_t *steps = plain_steps(code, rounds > 1 ? rounds : 1);
    clock_trace trace = {steps, (size_t)(rounds > 1 ? rounds : 1) * (LOADS + 1)};
    clock_block block = {.warps = warps, .n_warps = BLOCK_WARPS};
    clock_program program = {code, 2, &trace, 1, &block, 1};
    clock_run_of_blocks run = {(uint64_t)ceil(bytes / ((double)STRIDE * (rounds > 1 ? rounds : 1))), 0};
    clock_launch launch = {.runs = &run, .n_runs = 1, .blocks_per_sm = per_sm};
    bool ok = steps && clock_parameters_of(on, corner, &p) && clock_run(&program, &launch, &p, &r, &why);
    *us = fmax(clock_widened(r.us, corner), fmin(r.us, bytes / on->dram_gbs * 1e-3));
    clock_result_free(&r);
    free(steps);
    return ok;
}

/* ---- A launch ---- */

/* No margin makes a launch faster than its bytes and its instructions can be. */
static void widen(const board *on, clock_corner corner, clock_result *r)
{
    const double bound = fmax(r->dram_bytes / on->dram_gbs * 1e-3, r->issue_bound_us);
    r->us = fmax(clock_widened(r->us, corner), fmin(r->us, bound));
}

static bool run_corner(const clock_case *what, const clock_kernel *kernel, clock_corner corner,
                       clock_estimate *out, char *error, size_t size)
{
    clock_parameters p;
    const char *why = "nothing is known of this SM";
    const uint64_t l2 = (uint64_t)what->on->l2_kib * 1024;
    clock_launch launch = {.runs = kernel->runs,
                           .n_runs = kernel->n_runs,
                           .blocks_per_sm = out->blocks_per_sm,
                           .l2_bytes = what->warm ? UINT64_MAX : l2 / 2,
                           .budget = what->budget};
    if (!clock_parameters_of(what->on, corner, &p) ||
        !clock_run(&kernel->program, &launch, &p, &out->at[corner], &why)) {
        snprintf(error, size, "not modelled: %s", why);
        return false;
    }
    widen(what->on, corner, &out->at[corner]);
    return clock_plain_read(what->on, corner, out->at[corner].dram_bytes, &out->plain_us[corner]);
}

static bool run_code(const clock_case *what, const sass_code *code, const sass_path *paths,
                     clock_estimate *out, char *error, size_t size)
{
    clock_kernel kernel;
    if (!clock_lower(code, paths, out->paths, what, &kernel, error, size))
        return false;
    bool ok = true;
    out->misfit = kernel.misfit;
    for (int corner = 0; ok && corner < CLOCK_CORNERS; corner++)
        ok = run_corner(what, &kernel, (clock_corner)corner, out, error, size);
    clock_kernel_free(&kernel);
    return ok;
}

/* ---- Lines ---- */

/* By reason, of all instructions of a line. */
static double wait_of_line(const sass_code *code, const clock_result *r, int line, clock_stall *reason)
{
    double sums[CLOCK_STALLS] = {0}, all = 0;
    for (int i = 0; i < code->n_insts; i++)
        for (int s = 0; s < CLOCK_STALLS && code->insts[i].line == line; s++)
            sums[s] += r->waits[i][s];
    *reason = CLOCK_STALL_FIXED;
    for (int s = 0; s < CLOCK_STALLS; s++) {
        all += sums[s];
        if (sums[s] > sums[*reason])
            *reason = (clock_stall)s;
    }
    return all;
}

static bool is_hot(const clock_estimate *e, int line)
{
    for (int i = 0; i < e->n_hot; i++)
        if (e->hot[i].line == line)
            return true;
    return false;
}

static void add_hottest(const sass_code *code, const clock_result *r, double all, clock_estimate *e)
{
    clock_hot_line best = {.share = 0};
    int last = 0;
    for (int i = 0; i < code->n_insts; i++) {
        clock_hot_line one = {.line = code->insts[i].line};
        if (one.line == last || !one.line || is_hot(e, one.line))
            continue;
        last = one.line;
        one.share = wait_of_line(code, r, one.line, &one.reason) / all;
        best = one.share > best.share ? one : best;
    }
    if (best.share > 0)
        e->hot[e->n_hot++] = best;
}

static void find_hot_lines(const sass_code *code, clock_estimate *e)
{
    const clock_result *r = &e->at[CLOCK_HIGH];
    double all = 0;
    for (int s = 0; s < CLOCK_STALLS; s++)
        all += r->stalls[s];
    for (int i = 0; all > 0 && i < CLOCK_HOT_LINES; i++)
        add_hottest(code, r, all, e);
}

/* With .loc, SASS names lines of a source that the counters do not know. */
static bool has_loc(const char *ptx)
{
    for (const char *at = ptx; (at = strstr(at, ".loc")); at += 4)
        if ((at == ptx || at[-1] == '\n' || at[-1] == '\t' || at[-1] == ' ') &&
            (at[4] == ' ' || at[4] == '\t'))
            return true;
    return false;
}

/* The first line with two instructions, which the counters by line cannot tell apart; 0: none. Declarations and braces do not count. */
static int crowded_line(const char *ptx)
{
    int line = 1, instructions = 0;
    for (const char *at = ptx; *at; line++) {
        const char *end = at + strcspn(at, "\n"), *comment = strstr(at, "//");
        const char *stop = comment && comment < end ? comment : end;
        for (instructions = 0; at < stop; at++) {
            at += strspn(at, " \t{}");
            instructions += at < stop && *at != '.' && memchr(at, ';', (size_t)(stop - at)) != NULL;
            at += strcspn(at, ";\n");
        }
        if (instructions > 1)
            return line;
        at = *end ? end + 1 : end;
    }
    return 0;
}

static bool has_one_per_line(const char *ptx, char *error, size_t size)
{
    const int line = crowded_line(ptx);
    if (has_loc(ptx))
        snprintf(error, size, "the PTX has .loc lines; compile it without line information");
    else if (line)
        snprintf(error, size,
                 "line %d of the PTX has several instructions; they have to be on lines of their own", line);
    return !has_loc(ptx) && !line;
}

bool clock_time(const clock_case *what, clock_estimate *out, char *error, size_t size)
{
    char sm[16];
    sass_code code;
    sass_path *paths = NULL;
    const uint64_t counted = what->counted_blocks ? what->counted_blocks : what->blocks;
    const uint64_t warps = counted * (uint64_t)((what->threads + WARP - 1) / WARP);
    *out = (clock_estimate){0};
    board_sm_name(what->on, sm, sizeof sm);
    if (!has_one_per_line(what->ptx, error, size) ||
        !sass_assemble(what->ptx, sm, what->kernel, &code, error, size))
        return false;
    out->registers = code.registers;
    out->spill_bytes = code.spill_bytes;
    out->blocks_per_sm = what->blocks_per_sm
                             ? what->blocks_per_sm
                             : clock_blocks_per_sm(what->on->sm, what->threads, what->shared, code.registers);
    out->paths = sass_paths(&code, what->counters, warps, &paths);
    snprintf(error, size, "there are no counters by line");
    bool ok = out->paths > 0 && run_code(what, &code, paths, out, error, size);
    for (int p = 0; p < out->paths; p++)
        out->misfit = fmax(out->misfit, paths[p].misfit);
    if (ok)
        find_hot_lines(&code, out);
    out->roofline = ok ? out->at[CLOCK_LOW].dram_bytes / what->on->dram_gbs * 1e-3 : 0;
    sass_paths_free(paths, out->paths);
    sass_code_free(&code);
    if (!ok)
        clock_estimate_free(out);
    return ok;
}

void clock_estimate_free(clock_estimate *e)
{
    for (int corner = 0; corner < CLOCK_CORNERS; corner++)
        clock_result_free(&e->at[corner]);
}
