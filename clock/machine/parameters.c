/* The parameters of a board, from the tables of boards/; numbers that stand here are estimates, said to be so. */
#include <math.h>

#include "clock/machine/machine.h"

/* The corner's end of a range of which more is slower. */
static double cost(published_range range, clock_corner corner)
{
    return corner == CLOCK_LOW ? range.low : range.high;
}

/* The corner's end of a range of which more is faster. */
static double rate(published_range range, clock_corner corner)
{
    return corner == CLOCK_LOW ? range.high : range.low;
}

/* Cycles that a warp takes on a scheduler's share of a pipe with so many lanes per SM. */
static double interval(int lanes_per_sm)
{
    double lanes = (double)lanes_per_sm / CLOCK_SCHEDULERS;
    return lanes >= 32 ? 1 : 32 / lanes;
}

/* Multiplications per cycle and scheduler: the tensor rate of a data sheet is a power of two of them at some clock. */
static double tensor_rate(const board *on, const pipes *p)
{
    double per_cycle =
        on->tensor_tflops * 1e6 / 2 / ((double)on->multiprocessors * CLOCK_SCHEDULERS * on->clock_mhz);
    return exp2(round(log2(per_cycle))) * p->mma_percent / 100;
}

static void set_pipes(const generation *g, const pipes *p, clock_corner corner, clock_parameters *out)
{
    out->interval[CLOCK_FMA] = interval(g->fma_per_clock);
    out->interval[CLOCK_ALU] = interval(g->integer_per_clock);
    out->interval[CLOCK_HALF] = interval(p->half_per_clock);
    out->interval[CLOCK_F64] = interval(p->f64_per_clock);
    out->interval[CLOCK_XU] = interval(g->special_per_clock);
    out->interval[CLOCK_UNIFORM] = 2; /* estimate */
    out->interval[CLOCK_SHARED] =
        2; /* a scheduler hands the load/store unit one instruction every other cycle */
    out->interval[CLOCK_GLOBAL] = 2;
    for (int u = 0; u < CLOCK_UNITS; u++)
        out->latency[u] = cost(p->special, corner);
    out->latency[CLOCK_SHARED] = cost(g->shared, corner);
    out->latency[CLOCK_TENSOR] = cost(g->tensor, corner);
    out->latency[CLOCK_F64] = p->f64_per_clock < 16 ? 48 : 16; /* estimate */
}

/* A channel of HBM has 64 bits, one of GDDR6 and LPDDR 16. */
static int channels_of(const board *on)
{
    return on->bus_bits / (on->bus_bits >= 2048 ? 64 : 16);
}

bool clock_parameters_of(const board *on, clock_corner corner, clock_parameters *out)
{
    const generation *g = generation_of_sm(on->sm);
    const pipes *p = pipes_of_sm(on->sm);
    *out = (clock_parameters){.sms = on->multiprocessors, .mhz = on->clock_mhz};
    if (!g || !p)
        return false;
    bool low = corner == CLOCK_LOW;
    set_pipes(g, p, corner, out);
    out->tensor_rate = tensor_rate(on, p);
    out->shuffle_latency = p->shuffle;
    out->l1_latency = cost(g->l1, corner);
    out->l2_latency = cost(g->l2, corner);
    out->dram_latency = cost(g->dram, corner);
    out->latency_spread = 0.1;            /* estimate */
    out->barrier_latency = low ? 10 : 30; /* 5 to 15 on sm_120, 22 + 2 per warp on B300 */
    out->fence_latency = low ? 186 : 274; /* 205 on Ada, 274 on B300 */
    out->async_latency = low ? 0 : 30;    /* estimate */
    out->l1_bytes = p->l1_bytes;
    out->sm_bytes = 64;
    out->l2_bytes = rate(p->l2_bytes, corner) * on->multiprocessors;
    out->dram_bytes = on->dram_gbs * 1e3 / on->clock_mhz * rate(g->dram_percent, corner) / 100;
    out->dram_mixed = rate(p->mixed_percent, corner) / rate(g->dram_percent, corner);
    out->dram_mixed_wait = cost(p->mixed_wait, corner) * on->clock_mhz / 1e3;
    out->dram_channels = channels_of(on);
    out->lsu_queue = 24; /* estimate */
    out->block_start = cost(p->block_start, corner);
    out->warp_start = p->warp_start;
    out->block_interval = 1; /* 0.54 ns on B300 */
    return true;
}
