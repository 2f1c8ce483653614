/* Internals of a warp: groups of lanes that run together, and the places where they wait for each other. */
#ifndef PTXVM_EXEC_WARP_H
#define PTXVM_EXEC_WARP_H

#include "ptxvm/exec.h"

/* A place where lanes meet: after a branch that split them, or after a call. Lanes that exit, return or are
 * released early are no longer expected. It is freed when all expected lanes have arrived. A group's join,
 * its parent and so on lead outwards. */
typedef struct vm_join {
    vm_frame *frame;
    int32_t pc;
    uint32_t expected, arrived;
    struct vm_join *parent; /* also the next free one */
    vm_frame *callee;       /* of a call: freed with the join */
} vm_join;

typedef enum {
    GROUP_READY,
    GROUP_BLOCKED, /* until block->progress changes */
    GROUP_MEMBERS  /* until the other lanes of a member mask have arrived */
} vm_group_state;

/* Lanes at the same place. */
typedef struct vm_group {
    uint32_t mask;
    int32_t pc;
    vm_frame *frame;
    vm_join *join;
    uint64_t progress; /* last seen by a blocked group */
    uint32_t members;  /* that a waiting group waits for */
    vm_group_state state;
} vm_group;

/* The running group is in warp->active, warp->frame, pc and join; the others are in the list, the next to run
 * at its end. */
struct vm_scheduler {
    int32_t pc;
    vm_join *join;
    uint32_t n_active; /* lanes of the running group */
    int n_groups;
    int64_t slice_end; /* in terms of block->clock */
    int spin_edges;    /* back edges of spin loops in this slice */
    int idle_slices;   /* spent spinning while lanes wait at a join */
    vm_frame *root;    /* of the kernel itself */
    vm_group groups[WARP];
};

typedef enum {
    WARP_DONE,    /* all lanes have exited */
    WARP_BLOCKED, /* every group waits */
    WARP_SLICE,   /* its time slice is over */
    WARP_SPIN,    /* its time slice is over, and it seems to wait for others */
    WARP_FAULT
} vm_warp_state;

/* ---- warp.c ---- */
typedef struct vm_scheduler vm_scheduler;
bool vm_warp_begin(vm_warp *warp, const vm_code *entry);
void vm_warp_end(vm_warp *warp); /* called when all its lanes have exited */
/* Runs until done, blocked, or `steps` instructions are used up. */
vm_warp_state vm_warp_run(vm_warp *warp, uint64_t steps);
/* Releases lanes that wait at a join, without the others. Returns false if none wait. */
bool vm_warp_release(vm_warp *warp);
/* An op where some lane of the warp waits; null: none does. */
const vm_op *vm_warp_place(const vm_warp *warp, uint32_t *mask);

/* Splits the running group: `aside` continues at aside_pc, the rest at stay_pc; they meet at join_pc (-1:
 * nowhere). Returns false if there is no memory. */
bool vm_split(vm_warp *warp, uint32_t aside, int32_t aside_pc, int32_t stay_pc, int32_t join_pc);
void vm_group_push(vm_warp *warp, vm_group group);
vm_join *vm_join_new(vm_warp *warp, vm_join join);
/* The lanes are no longer expected at `from` and outwards up to (excluding) `until`. */
void vm_leave(vm_warp *warp, uint32_t lanes, vm_join *from, const vm_join *until);
/* If all expected lanes have reached a join, turns them into a group again. */
void vm_settle(vm_warp *warp, vm_join *join);

/* ---- warp_lanes.c ---- */
/* Copies s to d in the lanes of mask; width in bytes per lane, 0 for a predicate. */
void vm_blend(void *d, const void *s, int width, uint32_t mask);
void vm_run_lane_partly(vm_warp *warp, const vm_op *op, uint32_t mask);
vm_exec_fn vm_exec_lane_converted, vm_exec_tensor, vm_exec_wgmma, vm_exec_nothing;

/* ---- warp_members.c ---- */
/* Runs a warp-level instruction if all required lanes have arrived, in this or in waiting groups; else
 * returns VM_BLOCK, and the running group must wait for `*members`. Lanes with another member mask are split
 * off: *mask are those that remain. */
vm_result vm_run_members(vm_warp *warp, const vm_op *op, uint32_t *mask, uint32_t *members);
bool vm_members_ready(const vm_warp *warp, const vm_group *group);

/* ---- calls.c ---- */
vm_exec_fn vm_exec_call, vm_exec_ret, vm_exec_exit, vm_exec_brx;
vm_frame *vm_frame_new(vm_warp *warp, const vm_code *code);
void vm_frame_free(vm_warp *warp, vm_frame *frame);
bool vm_local_grow(vm_warp *warp, uint64_t bytes);

#endif
