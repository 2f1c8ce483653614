/* Shared memory, L1, L2 and DRAM as servers with a rate: an access waits for those before it, then takes its latency. */
#include <math.h>

#include "clock/machine/internal.h"

enum { SECTOR = 32, LINE_SECTORS = 4 };

static double serve(double *free_at, double arrives, double takes)
{
    *free_at = fmax(*free_at, arrives) + takes;
    return *free_at;
}

double memory_passes(machine *m, sm *on, double passes, int64_t now)
{
    (void)m;
    return serve(&on->lsu_free, (double)now, passes);
}

/* A number that looks random, the same in every run. */
static uint64_t scramble(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Of a share of 0.25, every fourth access is the one; the first one of an SM always. */
static bool takes_its_turn(float *due, float share)
{
    *due += share;
    if (*due < 1)
        return false;
    *due -= 1;
    return true;
}

/* An SM has only so many sectors on their way; one that finds no room waits for the oldest. */
static double take_off(sm *on, double limit, double sectors, double now)
{
    while (on->n_flights && (on->flights[on->first_flight].done <= now || on->n_flights == FLIGHTS ||
                             (limit > 0 && on->flying + sectors > limit))) {
        const flight *oldest = &on->flights[on->first_flight];
        now = fmax(now, oldest->done);
        on->flying -= oldest->sectors;
        on->first_flight = (on->first_flight + 1) % FLIGHTS;
        on->n_flights--;
    }
    return now;
}

static void fly(sm *on, double sectors, double done)
{
    on->flights[(on->first_flight + on->n_flights++) % FLIGHTS] = (flight){done, sectors};
    on->flying += sectors;
}

/* Reads and writes in turn cost more than either alone; between, in proportion, up to a tenth of the rarer one. */
static double mixed(const machine *m)
{
    return fmin(1, fmin(m->written_share, 1 - m->written_share) / 0.1);
}

static double dram_rate(machine *m, bool write)
{
    enum { MEMORY = 256 };
    m->written_share += ((write ? 1 : 0) - m->written_share) / MEMORY;
    return m->p->dram_bytes * (1 - (1 - m->p->dram_mixed) * mixed(m));
}

/* How busy DRAM was in the last stretch of cycles; it counts what is moved in this one. */
static double recently_busy(machine *m, double bytes, double now)
{
    enum { STRETCH = 1024 };
    if (now >= m->stretch + STRETCH) {
        m->busy = fmin(1, m->stretch_bytes / (now - m->stretch) / m->p->dram_bytes);
        m->stretch = now;
        m->stretch_bytes = 0;
    }
    m->stretch_bytes += bytes;
    return m->busy;
}

/* When the last of the lines has come out of DRAM; each lies in some channel. */
static double dram_access(machine *m, double sectors, bool write, double arrives)
{
    double done = arrives;
    for (double left = sectors; left > 0; left -= LINE_SECTORS) {
        double bytes = fmin(left, LINE_SECTORS) * SECTOR * m->stands_for;
        double rate = dram_rate(m, write) / m->n_channels;
        int channel = (int)(scramble(m->accesses * 2) % (uint64_t)m->n_channels);
        done = fmax(done, serve(&m->channel_free[channel], arrives, bytes / rate));
        m->accesses++;
    }
    const double bytes = sectors * SECTOR * m->stands_for, busy = recently_busy(m, bytes, arrives);
    m->result->dram_bytes += bytes;
    return done + (write ? 0 : m->p->dram_mixed_wait * busy * mixed(m));
}

static double spread(machine *m)
{
    double unit = (double)(scramble(m->accesses++ * 2 + 1) >> 11) / (double)(UINT64_C(1) << 53);
    return 1 + m->p->latency_spread * (2 * unit - 1);
}

/* Whether L2 keeps what is written until the kernel has ended. */
static bool stays_in_l2(machine *m, double sectors)
{
    m->kept_in_l2 += sectors * SECTOR * m->stands_for;
    return m->kept_in_l2 <= (double)m->launch->l2_bytes;
}

int64_t memory_access(machine *m, sm *on, int instruction, int64_t now)
{
    const clock_parameters *p = m->p;
    const clock_instruction *i = &m->program->instructions[instruction];
    bool write = i->action == CLOCK_STORE;
    double bytes = i->sectors * SECTOR;
    bool misses_l1 = takes_its_turn(&on->l2_share[instruction], i->l2);
    /* of the accesses that miss L1, so many miss L2 */
    bool misses_l2 =
        misses_l1 && takes_its_turn(&on->dram_share[instruction], i->l2 > 0 ? i->dram / i->l2 : 0);
    if (misses_l1)
        on->lsu_free =
            fmax(on->lsu_free, take_off(on, p->in_flight, i->sectors, fmax(on->lsu_free, (double)now)));
    double passes = fmax(i->wavefronts > 1 ? i->wavefronts : 1, bytes / p->l1_bytes);
    double begins = fmax(on->lsu_free, (double)now);
    double done = memory_passes(m, on, passes, now) - 1 + p->l1_latency;
    if (misses_l1) {
        double moved = fmax(serve(&on->port_free, begins, bytes / p->sm_bytes),
                            serve(&m->l2_free, begins, bytes * m->stands_for / p->l2_bytes));
        done = moved + p->l2_latency * spread(m);
        if (misses_l2 && !(write && stays_in_l2(m, i->sectors)))
            done = dram_access(m, i->sectors, write, begins) + p->dram_latency * spread(m);
        done = fmax(done, moved);
        fly(on, i->sectors, done);
    }
    return (int64_t)ceil(done);
}
