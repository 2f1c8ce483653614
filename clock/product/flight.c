/* How many bytes a warp has on their way, and for how long it leaves them alone: its blocks in order, an instruction per stall count, nothing
 * else taking any time. */
#include <string.h>

#include "clock/product/code.h"

enum { PENDING = 512, STEPS = 200000 };

/* A load, or a copy to shared memory, that nobody has waited for. */
typedef struct pending {
    double since, bytes;
    bool is_wide;   /* 8 bytes per thread and more: weights, not scales */
    int scoreboard; /* -1: a copy */
    int group;      /* of a copy: how many were committed before */
} pending;

typedef struct flight {
    pending all[PENDING];
    int n, committed;
    double now, bytes, most, waits, waited, least; /* waits: weighted by bytes */
    int n_waits;
} flight;

static bool never_runs(const sass_inst *inst)
{
    return inst->predicate == 7 && inst->negated;
}

/* Bytes that a warp's load of this line is the first in the launch to touch, on average. What most loads of a line find in a cache (x, after
 * the first block has read it) does not count. */
static double bytes_of(const sass_inst *inst, const ptxvm_counts *lines, int n_lines)
{
    const ptxvm_traffic *t = inst->line < n_lines ? &lines[inst->line].load : NULL;
    return t && 2 * t->first_sectors > t->sectors ? 32.0 * (double)t->first_sectors / (double)t->requests : 0;
}

static void begin_load(flight *f, const sass_inst *inst, double bytes)
{
    if (f->n == PENDING)
        return;
    f->all[f->n++] = (pending){.since = f->now,
                               .bytes = bytes,
                               .is_wide = inst->bytes >= 8,
                               .scoreboard = inst->kind == SASS_COPY ? -1 : inst->control.write_barrier,
                               .group = f->committed};
    f->bytes += bytes;
    f->most = f->bytes > f->most ? f->bytes : f->most;
}

/* Only loads that bring something from DRAM count as waited for. */
static void finish(flight *f, int i)
{
    const double waited = f->now - f->all[i].since;
    if (f->all[i].bytes > 0) {
        f->waits += waited * f->all[i].bytes;
        f->waited += f->all[i].bytes;
        if (f->all[i].is_wide) {
            f->least = !f->n_waits || waited < f->least ? waited : f->least;
            f->n_waits++;
        }
    }
    f->bytes -= f->all[i].bytes;
    f->all[i] = f->all[--f->n];
}

static bool is_over(const flight *f, const pending *p, const sass_inst *inst)
{
    if (p->scoreboard >= 0)
        return inst->control.waits >> p->scoreboard & 1;
    if (inst->kind == SASS_COPY_WAIT && inst->scoreboard == 0)
        return p->group < f->committed - inst->keep;
    return inst->kind == SASS_MBARRIER && sass_has(inst, "TRYWAIT");
}

static void step(flight *f, const sass_inst *inst, const ptxvm_counts *lines, int n_lines)
{
    for (int i = f->n - 1; i >= 0; i--)
        if (is_over(f, &f->all[i], inst))
            finish(f, i);
    if (!never_runs(inst) && inst->space == SASS_GLOBAL &&
        (inst->kind == SASS_LOAD || inst->kind == SASS_COPY))
        begin_load(f, inst, bytes_of(inst, lines, n_lines));
    f->committed += inst->kind == SASS_COPY_COMMIT;
    f->now += inst->control.stall > 1 ? inst->control.stall : 1;
}

void facts_follow_loads(const sass_code *code, const sass_path *path, const ptxvm_counts *lines, int n_lines,
                        facts_code *out)
{
    flight f;
    int b, steps = 0;
    memset(&f, 0, sizeof f);
    sass_walk walk = sass_walk_begin(code, path);
    while (steps < STEPS && (b = sass_walk_next(&walk)) >= 0)
        for (int i = 0; i < code->blocks[b].count; i++, steps++)
            step(&f, &code->insts[code->blocks[b].first + i], lines, n_lines);
    sass_walk_free(&walk);
    out->flight = f.most;
    out->wait_least = f.least;
    out->wait_mean = f.waited > 0 ? f.waits / f.waited : 0;
}

/* ---- The hot loop ---- */

static double issued_in(const sass_code *code, const sass_path *path, int loop)
{
    double sum = 0;
    for (int b = 0; b < code->n_blocks; b++)
        if (sass_in_loop(code, b, loop))
            sum += path->blocks[b] * code->blocks[b].count;
    return sum;
}

int facts_hot_loop(const sass_code *code, const sass_path *path)
{
    int best = -1;
    for (int l = 0; l < code->n_loops; l++)
        if (2 * issued_in(code, path, l) >= path->issued &&
            (best < 0 || code->loops[l].bytes < code->loops[best].bytes))
            best = l;
    return best;
}
