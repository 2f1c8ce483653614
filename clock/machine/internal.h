/* Between the parts of machine.h: the state of the simulated board. */
#ifndef CLOCK_MACHINE_INTERNAL_H
#define CLOCK_MACHINE_INTERNAL_H

#include "clock/machine/machine.h"

#define NEVER INT64_MAX

enum { GROUPS = 32, PHASES = 4 };

typedef struct warp {
    const clock_trace *trace;
    size_t at;           /* the next step */
    int slot;            /* of its block in the SM */
    int64_t issued;      /* when its last instruction was; for a new warp the cycle before it may begin */
    int64_t fixed_until; /* the stall count of that instruction */
    int64_t ready;       /* when the next one may issue, pipes aside */
    clock_stall reason;  /* for `ready`, if that is later than fixed_until */
    bool waiting;        /* for other warps */
    int64_t held[CLOCK_SCOREBOARDS];
    uint8_t holder[CLOCK_SCOREBOARDS];  /* clock_stall */
    int64_t open_group, groups[GROUPS]; /* when the copies of a group are done */
    uint32_t n_groups;
    uint32_t seen[CLOCK_MBARRIERS]; /* phases that it waited for */
    int64_t stored;                 /* when its stores are visible */
} warp;

typedef struct mbarrier {
    int arrived;
    double expected; /* sectors of bulk copies that are not issued yet */
    int64_t copied;  /* when those that are have landed */
    uint32_t phases;
    int64_t done[PHASES];
} mbarrier;

typedef struct barrier {
    int arrived; /* warps, those that go on among them */
    int needed;  /* 0: all that have not finished */
} barrier;

typedef struct block {
    const clock_block *what; /* null: the slot is free */
    warp *warps;
    int left; /* warps that have not finished */
    barrier barriers[CLOCK_BARRIERS];
    mbarrier mbarriers[CLOCK_MBARRIERS];
} block;

typedef struct scheduler {
    warp **warps; /* resident, the oldest first */
    int n_warps;
    warp *last;
    int64_t next; /* when it looks again; NEVER: when it is woken */
    double pipe_free[CLOCK_UNITS];
} scheduler;

typedef struct flight {
    double done, sectors;
} flight;

typedef struct sm {
    scheduler schedulers[CLOCK_SCHEDULERS];
    block *blocks; /* blocks_per_sm slots */
    double lsu_free, port_free;
    float *l2_share, *dram_share; /* by instruction: what is due of its shares */
    flight *flights;              /* a ring, in the order of issue */
    int first_flight, n_flights;
    double flying;
} sm;

typedef struct event {
    int64_t time;
    int scheduler; /* sm * CLOCK_SCHEDULERS + scheduler */
} event;

typedef struct machine {
    const clock_program *program;
    const clock_launch *launch;
    const clock_parameters *p;
    clock_result *result;
    int n_sms;
    double stands_for; /* SMs of the board for each that is simulated */
    sm *sms;
    event *events; /* a heap */
    int n_events, event_capacity;
    /* Blocks that have not started */
    int run;
    uint64_t *left_of_run;
    int slots_of_sm;
    double dispatch_free;
    int64_t now, end;
    /* Memory of the board */
    double l2_free, *channel_free;
    int n_channels;
    uint64_t accesses;
    double written_share; /* a moving average */
    double busy, stretch,
        stretch_bytes; /* how busy DRAM was in the last stretch; when this one began, what it has moved */
    double kept_in_l2;
} machine;

/* memory.c: what a warp's access costs; when its data are there. */
int64_t memory_access(machine *m, sm *on, int instruction, int64_t now);
/* When the load/store unit is done with passes that begin now or when it is free. */
double memory_passes(machine *m, sm *on, double passes, int64_t now);
enum { FLIGHTS = 4096 };

#endif
