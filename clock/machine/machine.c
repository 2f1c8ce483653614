/* The run of a launch: blocks are dealt to SMs, their warps to schedulers; a scheduler issues one instruction of one warp per cycle. Only
 * cycles in which one may issue are looked at: they are events in a heap. Whatever an instruction waits for has a known time once it
 * has issued, but for barriers, which wake their warps. */
#include "clock/machine/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/machine/internal.h"

enum { OPERANDS_READ = 10 }; /* cycles until a load or store has read its registers: an estimate */

const char *clock_stall_name(clock_stall stall)
{
    static const char *const names[] = {
        [CLOCK_STALL_FIXED] = "fixed latency",
        [CLOCK_STALL_GLOBAL] = "global memory",
        [CLOCK_STALL_SHARED] = "shared memory",
        [CLOCK_STALL_ASYNC] = "cp.async",
        [CLOCK_STALL_BARRIER] = "barrier",
        [CLOCK_STALL_MBARRIER] = "mbarrier",
        [CLOCK_STALL_FENCE] = "fence",
        [CLOCK_STALL_PIPE] = "pipe",
        [CLOCK_STALL_QUEUE] = "load/store queue",
        [CLOCK_STALL_SELECTED] = "other warps issue",
    };
    return names[stall];
}

const char *clock_unit_name(clock_unit unit)
{
    static const char *const names[] = {
        [CLOCK_CONTROL] = "control", [CLOCK_FMA] = "FMA",         [CLOCK_ALU] = "ALU",
        [CLOCK_HALF] = "half",       [CLOCK_F64] = "f64",         [CLOCK_XU] = "XU",
        [CLOCK_TENSOR] = "tensor",   [CLOCK_UNIFORM] = "uniform", [CLOCK_SHARED] = "load/store",
        [CLOCK_GLOBAL] = "global",
    };
    return names[unit];
}

/* ---- Events ---- */

static bool earlier(const event *a, const event *b)
{
    return a->time != b->time ? a->time < b->time : a->scheduler < b->scheduler;
}

static void swap_events(event *a, event *b)
{
    event kept = *a;
    *a = *b;
    *b = kept;
}

static void push_event(machine *m, event e)
{
    int at = m->n_events++;
    m->events[at] = e;
    for (; at && earlier(&m->events[at], &m->events[(at - 1) / 2]); at = (at - 1) / 2)
        swap_events(&m->events[at], &m->events[(at - 1) / 2]);
}

static event pop_event(machine *m)
{
    event first = m->events[0];
    m->events[0] = m->events[--m->n_events];
    for (int at = 0, child; (child = 2 * at + 1) < m->n_events; at = child) {
        if (child + 1 < m->n_events && earlier(&m->events[child + 1], &m->events[child]))
            child++;
        if (!earlier(&m->events[child], &m->events[at]))
            break;
        swap_events(&m->events[child], &m->events[at]);
    }
    return first;
}

/* Drops events that were overtaken by an earlier one of their scheduler, when there is no room for more. */
static void sweep_events(machine *m)
{
    int n = m->n_events;
    m->n_events = 0;
    for (int i = 0; i < n; i++) {
        event e = m->events[i];
        scheduler *s = &m->sms[e.scheduler / CLOCK_SCHEDULERS].schedulers[e.scheduler % CLOCK_SCHEDULERS];
        if (s->next == e.time)
            push_event(m, e);
    }
}

static void wake(machine *m, int of_sm, int which, int64_t time)
{
    scheduler *s = &m->sms[of_sm].schedulers[which];
    if (time >= s->next)
        return;
    if (m->n_events == m->event_capacity)
        sweep_events(m);
    s->next = time;
    push_event(m, (event){time, of_sm * CLOCK_SCHEDULERS + which});
}

/* ---- Warps ---- */

static const clock_instruction *next_instruction(const machine *m, const warp *w)
{
    return &m->program->instructions[w->trace->steps[w->at]];
}

static void wait_until(warp *w, int64_t time, clock_stall reason)
{
    if (time <= w->ready)
        return;
    w->ready = time;
    w->reason = reason;
}

static void wait_for_groups(warp *w, int open)
{
    if (w->n_groups > (uint32_t)open && open < GROUPS)
        wait_until(w, w->groups[(w->n_groups - 1 - (uint32_t)open) % GROUPS], CLOCK_STALL_ASYNC);
}

static void wait_for_phase(warp *w, const mbarrier *bar, int number)
{
    uint32_t phase = w->seen[number];
    w->waiting = phase >= bar->phases;
    if (!w->waiting && bar->phases - phase <= PHASES)
        wait_until(w, bar->done[phase % PHASES], CLOCK_STALL_MBARRIER);
}

/* What the next instruction waits for; the warp is not at its end. */
static void prepare(machine *m, sm *on, warp *w)
{
    const clock_instruction *i = next_instruction(m, w);
    w->ready = w->fixed_until;
    w->reason = CLOCK_STALL_FIXED;
    for (int s = 0; s < CLOCK_SCOREBOARDS; s++)
        if (i->wait_mask >> s & 1)
            wait_until(w, w->held[s], (clock_stall)w->holder[s]);
    if (i->action == CLOCK_WAIT_GROUPS)
        wait_for_groups(w, i->number);
    if (i->action == CLOCK_FENCE)
        wait_until(w, w->stored, CLOCK_STALL_FENCE);
    if (i->action == CLOCK_MBAR_WAIT)
        wait_for_phase(w, &on->blocks[w->slot].mbarriers[i->number], i->number);
}

/* The scheduler of a warp: it is in exactly one list. */
static int scheduler_of(const sm *on, const warp *w)
{
    for (int s = 0; s < CLOCK_SCHEDULERS; s++)
        for (int i = 0; i < on->schedulers[s].n_warps; i++)
            if (on->schedulers[s].warps[i] == w)
                return s;
    return 0;
}

/* Time that a warp spent before the instruction that it issues now. */
static void account(machine *m, const warp *w, uint32_t instruction, int64_t now, double pipe_free,
                    bool queue)
{
    double *waits = m->result->waits[instruction];
    int64_t from = w->issued + 1, fixed = w->fixed_until > from ? w->fixed_until : from;
    int64_t ready = w->ready > fixed ? w->ready : fixed;
    int64_t pipe = (int64_t)ceil(pipe_free);
    pipe = pipe < ready ? ready : pipe > now ? now : pipe;
    waits[CLOCK_STALL_FIXED] += (double)(fixed - from) * m->stands_for;
    waits[w->reason] += (double)(ready - fixed) * m->stands_for;
    waits[queue ? CLOCK_STALL_QUEUE : CLOCK_STALL_PIPE] += (double)(pipe - ready) * m->stands_for;
    waits[CLOCK_STALL_SELECTED] += (double)(now - pipe) * m->stands_for;
}

/* ---- Blocks ---- */

static const clock_block *next_block(machine *m)
{
    while (m->run < m->launch->n_runs && !m->left_of_run[m->run])
        m->run++;
    if (m->run == m->launch->n_runs)
        return NULL;
    m->left_of_run[m->run]--;
    return &m->program->blocks[m->launch->runs[m->run].block];
}

static int emptiest_scheduler(const sm *on)
{
    int best = 0;
    for (int s = 1; s < CLOCK_SCHEDULERS; s++)
        if (on->schedulers[s].n_warps < on->schedulers[best].n_warps)
            best = s;
    return best;
}

static void start_warp(machine *m, int of_sm, int slot, int number, int64_t time)
{
    sm *on = &m->sms[of_sm];
    block *b = &on->blocks[slot];
    warp *w = &b->warps[number];
    *w = (warp){.trace = &m->program->traces[b->what->warps[number]], .slot = slot};
    w->fixed_until = time + (int64_t)(number * m->p->warp_start);
    w->issued = w->fixed_until - 1;
    if (!w->trace->length) {
        b->left--;
        return;
    }
    int s = emptiest_scheduler(on);
    on->schedulers[s].warps[on->schedulers[s].n_warps++] = w;
    prepare(m, on, w);
    wake(m, of_sm, s, w->ready);
}

/* The next block, if there is one, in a free slot that was left at `time`. */
static void start_block(machine *m, int of_sm, int slot, double time)
{
    block *b = &m->sms[of_sm].blocks[slot];
    b->what = next_block(m);
    if (!b->what)
        return;
    double start = fmax(time, m->dispatch_free);
    m->dispatch_free = start + m->p->block_interval * m->stands_for;
    b->left = b->what->n_warps;
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->mbarriers, 0, sizeof b->mbarriers);
    for (int w = 0; w < b->what->n_warps; w++)
        start_warp(m, of_sm, slot, w, (int64_t)ceil(start));
}

static void release_full_barriers(machine *m, int of_sm, block *b, int64_t now);

static void finish_warp(machine *m, int of_sm, int which, warp *w, int64_t now)
{
    sm *on = &m->sms[of_sm];
    scheduler *s = &on->schedulers[which];
    int slot = w->slot;
    block *b = &on->blocks[slot];
    int at = 0;
    while (s->warps[at] != w)
        at++;
    memmove(&s->warps[at], &s->warps[at + 1], (size_t)(--s->n_warps - at) * sizeof *s->warps);
    if (s->last == w)
        s->last = NULL;
    int64_t done = w->stored > now + 1 ? w->stored : now + 1;
    m->end = done > m->end ? done : m->end;
    w->trace = NULL;
    if (--b->left == 0)
        start_block(m, of_sm, slot, (double)(now + 1) + m->p->block_start);
    else
        release_full_barriers(m, of_sm, b, now);
}

/* ---- Barriers ---- */

static void release(machine *m, int of_sm, warp *w, int64_t time)
{
    sm *on = &m->sms[of_sm];
    w->waiting = false;
    prepare(m, on, w);
    wait_until(w, time, w->reason);
    if (!w->waiting)
        wake(m, of_sm, scheduler_of(on, w), w->ready > m->now ? w->ready : m->now + 1);
}

static bool at_barrier(const machine *m, const warp *w, int which)
{
    if (!w->trace || !w->waiting || !w->at)
        return false;
    const clock_instruction *i = &m->program->instructions[w->trace->steps[w->at - 1]];
    return i->action == CLOCK_BARRIER && i->barrier == which;
}

static void release_barrier(machine *m, int of_sm, block *b, int which, int64_t now)
{
    int64_t time = now + (int64_t)m->p->barrier_latency;
    b->barriers[which] = (barrier){0};
    for (int i = 0; i < b->what->n_warps; i++) {
        warp *w = &b->warps[i];
        if (!at_barrier(m, w, which))
            continue;
        m->result->waits[w->trace->steps[w->at - 1]][CLOCK_STALL_BARRIER] +=
            (double)(time - w->issued - 1) * m->stands_for;
        w->issued = time - 1;
        w->fixed_until = time;
        release(m, of_sm, w, time);
    }
}

static bool is_full(const block *b, int which)
{
    const barrier *at = &b->barriers[which];
    return at->arrived && at->arrived == (at->needed ? at->needed : b->left);
}

/* A warp that has finished is not waited for. */
static void release_full_barriers(machine *m, int of_sm, block *b, int64_t now)
{
    for (int i = 0; i < CLOCK_BARRIERS; i++)
        if (is_full(b, i))
            release_barrier(m, of_sm, b, i, now);
}

static void arrive_at_barrier(machine *m, int of_sm, warp *w, const clock_instruction *i, int64_t now)
{
    block *b = &m->sms[of_sm].blocks[w->slot];
    const bool is_last = w->at == w->trace->length;
    if (is_last && !i->number)
        return; /* it finishes, which counts */
    w->waiting = i->action == CLOCK_BARRIER && !is_last;
    b->barriers[i->barrier].needed = i->number;
    b->barriers[i->barrier].arrived++;
    if (is_full(b, i->barrier))
        release_barrier(m, of_sm, b, i->barrier, now);
}

static bool waits_for_mbarrier(const machine *m, const warp *w, int number)
{
    if (!w->trace || !w->waiting || w->at == w->trace->length)
        return false;
    const clock_instruction *i = next_instruction(m, w);
    return i->action == CLOCK_MBAR_WAIT && i->number == number;
}

/* A phase ends when all have arrived and all copies have been issued; it is over when those have landed. */
static void end_phase(machine *m, int of_sm, block *b, int number, int64_t now)
{
    mbarrier *bar = &b->mbarriers[number];
    if (bar->arrived < b->what->mbarrier_arrivals[number] || bar->expected > 0)
        return;
    bar->done[bar->phases++ % PHASES] = bar->copied > now ? bar->copied : now;
    bar->arrived = 0;
    bar->copied = 0;
    for (int i = 0; i < b->what->n_warps; i++)
        if (waits_for_mbarrier(m, &b->warps[i], number))
            release(m, of_sm, &b->warps[i], 0);
}

static void arrive_at_mbarrier(machine *m, int of_sm, warp *w, const clock_instruction *i, int64_t now)
{
    block *b = &m->sms[of_sm].blocks[w->slot];
    b->mbarriers[i->number].arrived++;
    b->mbarriers[i->number].expected += i->sectors;
    end_phase(m, of_sm, b, i->number, now);
}

static void copy_bulk(machine *m, int of_sm, warp *w, const clock_instruction *i, int64_t now, int64_t done)
{
    block *b = &m->sms[of_sm].blocks[w->slot];
    mbarrier *bar = &b->mbarriers[i->number];
    bar->expected -= i->sectors;
    bar->copied = done > bar->copied ? done : bar->copied;
    if (bar->arrived)
        end_phase(m, of_sm, b, i->number, now);
}

/* ---- Issue ---- */

/* Cycles for which a scheduler's pipe is taken. */
static double pipe_cycles(const machine *m, const clock_instruction *i)
{
    if (i->unit == CLOCK_TENSOR)
        return i->work / m->p->tensor_rate;
    return m->p->interval[i->unit] * (i->work > 0 ? i->work : 1);
}

static bool uses_lsu(const clock_instruction *i)
{
    return i->unit == CLOCK_SHARED || i->unit == CLOCK_GLOBAL;
}

/* When pipes let the instruction issue; *queue: it is the load/store unit that is behind. */
static double pipes_free(const machine *m, const sm *on, const scheduler *s, const clock_instruction *i,
                         bool *queue)
{
    double pipe = s->pipe_free[i->unit];
    double lsu = uses_lsu(i) ? on->lsu_free - m->p->lsu_queue : 0;
    *queue = lsu > pipe;
    return *queue ? lsu : pipe;
}

/* When what the instruction produces is there. */
static int64_t execute(machine *m, int of_sm, warp *w, uint32_t instruction, int64_t now)
{
    sm *on = &m->sms[of_sm];
    const clock_instruction *i = &m->program->instructions[instruction];
    if (i->unit == CLOCK_GLOBAL && (i->sectors > 0 || i->action != CLOCK_LOAD))
        return memory_access(m, on, (int)instruction, now);
    if (uses_lsu(i)) {
        double latency = i->action == CLOCK_SHUFFLE ? m->p->shuffle_latency : m->p->latency[CLOCK_SHARED];
        return (int64_t)ceil(memory_passes(m, on, i->wavefronts > 1 ? i->wavefronts : 1, now) - 1 + latency);
    }
    (void)w;
    return now + (int64_t)m->p->latency[i->unit];
}

static clock_stall stall_of(const clock_instruction *i)
{
    return i->unit == CLOCK_GLOBAL ? CLOCK_STALL_GLOBAL : CLOCK_STALL_SHARED;
}

static void hold(warp *w, int scoreboard, int64_t until, clock_stall reason)
{
    if (scoreboard >= CLOCK_SCOREBOARDS || until <= w->held[scoreboard])
        return;
    w->held[scoreboard] = until;
    w->holder[scoreboard] = (uint8_t)reason;
}

/* What else an instruction does. */
static void act(machine *m, int of_sm, warp *w, const clock_instruction *i, int64_t now, int64_t done)
{
    switch ((clock_action)i->action) {
    case CLOCK_STORE:
        w->stored = done > w->stored ? done : w->stored;
        break;
    case CLOCK_COPY_ASYNC:
        done += (int64_t)m->p->async_latency;
        w->open_group = done > w->open_group ? done : w->open_group;
        break;
    case CLOCK_COMMIT: {
        int64_t before = w->n_groups ? w->groups[(w->n_groups - 1) % GROUPS] : 0;
        w->groups[w->n_groups++ % GROUPS] = before > w->open_group ? before : w->open_group;
        w->open_group = 0;
        break;
    }
    case CLOCK_FENCE:
        w->fixed_until = now + (int64_t)m->p->fence_latency;
        break;
    case CLOCK_BARRIER:
    case CLOCK_BARRIER_ARRIVE:
        arrive_at_barrier(m, of_sm, w, i, now);
        break;
    case CLOCK_MBAR_ARRIVE:
        arrive_at_mbarrier(m, of_sm, w, i, now);
        break;
    case CLOCK_MBAR_WAIT:
        w->seen[i->number]++;
        break;
    case CLOCK_COPY_BULK:
        copy_bulk(m, of_sm, w, i, now, done + (int64_t)m->p->async_latency);
        break;
    case CLOCK_NOTHING:
    case CLOCK_LOAD:
    case CLOCK_ATOMIC:
    case CLOCK_WAIT_GROUPS:
    case CLOCK_SHUFFLE:
    case CLOCK_ACTIONS:
        break;
    }
}

static void issue(machine *m, int of_sm, int which, warp *w, int64_t now, double free_at, bool queue)
{
    scheduler *s = &m->sms[of_sm].schedulers[which];
    uint32_t instruction = w->trace->steps[w->at];
    const clock_instruction *i = &m->program->instructions[instruction];
    double takes = pipe_cycles(m, i);
    account(m, w, instruction, now, free_at, queue);
    m->result->issued += m->stands_for;
    m->result->busy[i->unit] += takes * m->stands_for;
    s->pipe_free[i->unit] = (double)now + takes;
    s->last = w;
    int64_t done = execute(m, of_sm, w, instruction, now);
    hold(w, i->write_barrier, done, stall_of(i));
    double behind = m->sms[of_sm].lsu_free - (double)now;
    hold(w, i->read_barrier, now + OPERANDS_READ + (uses_lsu(i) && behind > 0 ? (int64_t)behind : 0),
         uses_lsu(i) && behind > 1 ? CLOCK_STALL_QUEUE : CLOCK_STALL_SHARED);
    w->issued = now;
    w->fixed_until = now + (i->stall > 1 ? i->stall : 1);
    w->at++;
    act(m, of_sm, w, i, now, done);
    if (w->at == w->trace->length)
        finish_warp(m, of_sm, which, w, now);
    else if (!w->waiting)
        prepare(m, &m->sms[of_sm], w);
}

/* Whether the warp could issue now; if not, *when is the least time at which it may. */
static bool may_issue(const machine *m, const sm *on, const scheduler *s, const warp *w, int64_t now,
                      int64_t *when, double *free_at, bool *queue)
{
    if (w->waiting)
        return false;
    *free_at = pipes_free(m, on, s, next_instruction(m, w), queue);
    int64_t possible = (int64_t)ceil(*free_at);
    possible = possible > w->ready ? possible : w->ready;
    if (possible <= now)
        return true;
    *when = possible < *when ? possible : *when;
    return false;
}

/* One cycle of a scheduler: the warp that issued last goes on if it can, else the oldest. */
static void step(machine *m, int of_sm, int which, int64_t now)
{
    sm *on = &m->sms[of_sm];
    scheduler *s = &on->schedulers[which];
    int64_t when = NEVER;
    double free_at;
    bool queue;
    warp *chosen = s->last && may_issue(m, on, s, s->last, now, &when, &free_at, &queue) ? s->last : NULL;
    for (int i = 0; !chosen && i < s->n_warps; i++)
        if (may_issue(m, on, s, s->warps[i], now, &when, &free_at, &queue))
            chosen = s->warps[i];
    s->next = NEVER;
    if (chosen) {
        issue(m, of_sm, which, chosen, now, free_at, queue);
        when = now + 1;
    }
    if (s->n_warps && when != NEVER)
        wake(m, of_sm, which, when);
}

/* ---- A launch ---- */

static double launch_instructions(const clock_program *program, const clock_launch *launch, uint64_t *blocks)
{
    double sum = 0;
    *blocks = 0;
    for (int r = 0; r < launch->n_runs; r++) {
        const clock_block *b = &program->blocks[launch->runs[r].block];
        for (int w = 0; w < b->n_warps; w++)
            sum += (double)launch->runs[r].count * (double)program->traces[b->warps[w]].length;
        *blocks += launch->runs[r].count;
    }
    return sum;
}

/* All SMs where that is within the budget; else fewer, each of which stands for several, but at least four. */
static void choose_sms(machine *m)
{
    enum { BUDGET = 4000000, FEWEST = 4 };
    uint64_t blocks;
    double work = launch_instructions(m->program, m->launch, &blocks);
    double budget = (double)(m->launch->budget ? m->launch->budget : BUDGET);
    int sms = m->p->sms;
    m->n_sms = work > budget ? (int)(sms * budget / work) : sms;
    if (m->n_sms < FEWEST)
        m->n_sms = sms < FEWEST ? sms : FEWEST;
    m->stands_for = (double)sms / m->n_sms;
    m->result->simulated_sms = m->n_sms;
    m->result->issued = 0;
    m->result->issue_bound_us = work / (sms * CLOCK_SCHEDULERS) / m->p->mhz;
}

/* Blocks of each run that the simulated SMs get: rounded so that the sums over the first runs are right. */
static void scale_runs(machine *m)
{
    double before = 0;
    uint64_t given = 0;
    for (int r = 0; r < m->launch->n_runs; r++) {
        before += (double)m->launch->runs[r].count / m->stands_for;
        m->left_of_run[r] = (uint64_t)llround(before) - given;
        given += m->left_of_run[r];
    }
    if (!given && m->launch->n_runs)
        m->left_of_run[m->launch->n_runs - 1] = 1;
}

static int most_warps(const clock_program *program)
{
    int most = 1;
    for (int b = 0; b < program->n_blocks; b++)
        most = program->blocks[b].n_warps > most ? program->blocks[b].n_warps : most;
    return most;
}

static bool make_sm(machine *m, sm *on)
{
    int slots = m->launch->blocks_per_sm, warps = most_warps(m->program);
    size_t n = (size_t)m->program->n_instructions + 1;
    on->blocks = calloc((size_t)slots, sizeof *on->blocks);
    on->l2_share = malloc(n * sizeof *on->l2_share);
    on->dram_share = malloc(n * sizeof *on->dram_share);
    on->flights = malloc(FLIGHTS * sizeof *on->flights);
    bool ok = on->blocks && on->l2_share && on->dram_share && on->flights;
    for (int s = 0; ok && s < CLOCK_SCHEDULERS; s++) {
        on->schedulers[s].next = NEVER;
        on->schedulers[s].warps = malloc((size_t)(slots * warps) * sizeof(warp *));
        ok = on->schedulers[s].warps != NULL;
    }
    for (int b = 0; ok && b < slots; b++) {
        on->blocks[b].warps = calloc((size_t)warps, sizeof(warp));
        ok = on->blocks[b].warps != NULL;
    }
    for (size_t i = 0; ok && i < n; i++)
        on->l2_share[i] = on->dram_share[i] = 1 - 1e-3f; /* so that the first access misses */
    return ok;
}

static bool make_machine(machine *m)
{
    double channels = m->p->dram_channels / m->stands_for;
    m->n_channels = channels > 1 ? (int)channels : 1;
    m->event_capacity = m->n_sms * CLOCK_SCHEDULERS * 4 + 16;
    m->sms = calloc((size_t)m->n_sms, sizeof *m->sms);
    m->events = malloc((size_t)m->event_capacity * sizeof *m->events);
    m->left_of_run = calloc((size_t)m->launch->n_runs + 1, sizeof *m->left_of_run);
    m->channel_free = calloc((size_t)m->n_channels, sizeof *m->channel_free);
    m->result->waits = calloc((size_t)m->program->n_instructions + 1, sizeof *m->result->waits);
    bool ok = m->sms && m->events && m->left_of_run && m->channel_free && m->result->waits;
    for (int s = 0; ok && s < m->n_sms; s++)
        ok = make_sm(m, &m->sms[s]);
    return ok;
}

static void free_machine(machine *m)
{
    for (int s = 0; m->sms && s < m->n_sms; s++) {
        sm *on = &m->sms[s];
        for (int b = 0; on->blocks && b < m->launch->blocks_per_sm; b++)
            free(on->blocks[b].warps);
        for (int i = 0; i < CLOCK_SCHEDULERS; i++)
            free(on->schedulers[i].warps);
        free(on->blocks);
        free(on->l2_share);
        free(on->dram_share);
        free(on->flights);
    }
    free(m->sms);
    free(m->events);
    free(m->left_of_run);
    free(m->channel_free);
}

static bool run_to_the_end(machine *m)
{
    for (int slot = 0; slot < m->launch->blocks_per_sm; slot++)
        for (int s = 0; s < m->n_sms; s++)
            start_block(m, s, slot, 0);
    while (m->n_events) {
        event e = pop_event(m);
        m->now = e.time;
        sm *on = &m->sms[e.scheduler / CLOCK_SCHEDULERS];
        if (on->schedulers[e.scheduler % CLOCK_SCHEDULERS].next == e.time)
            step(m, e.scheduler / CLOCK_SCHEDULERS, e.scheduler % CLOCK_SCHEDULERS, e.time);
    }
    for (int s = 0; s < m->n_sms; s++)
        for (int b = 0; b < m->launch->blocks_per_sm; b++)
            if (m->sms[s].blocks[b].what && m->sms[s].blocks[b].left)
                return false;
    return true;
}

static void sum_up(machine *m)
{
    clock_result *r = m->result;
    double turns = (double)m->end * m->p->sms * CLOCK_SCHEDULERS;
    r->cycles = (double)m->end;
    r->us = r->cycles / m->p->mhz;
    r->issue_busy = turns > 0 ? r->issued / turns : 0;
    for (int u = 0; u < CLOCK_UNITS; u++)
        r->busy[u] = turns > 0 ? r->busy[u] / turns : 0;
    r->dram_busy = m->end ? r->dram_bytes / (double)m->end / m->p->dram_bytes : 0;
    for (int i = 0; i < m->program->n_instructions; i++)
        for (int s = 0; s < CLOCK_STALLS; s++)
            r->stalls[s] += r->waits[i][s];
}

bool clock_run(const clock_program *program, const clock_launch *launch, const clock_parameters *parameters,
               clock_result *result, const char **error)
{
    *result = (clock_result){0};
    machine m = {.program = program, .launch = launch, .p = parameters, .result = result};
    if (launch->blocks_per_sm < 1) {
        *error = "no block fits on an SM";
        return false;
    }
    choose_sms(&m);
    bool ok = make_machine(&m);
    if (ok) {
        scale_runs(&m);
        ok = run_to_the_end(&m);
        *error = ok ? NULL : "warps wait for each other for ever";
    } else
        *error = "out of memory";
    if (ok)
        sum_up(&m);
    else
        clock_result_free(result);
    free_machine(&m);
    return ok;
}

void clock_result_free(clock_result *result)
{
    free(result->waits);
    result->waits = NULL;
}
