/* Launches that begin before the one in front of them has ended. */
#include "overlap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "memory.h"
#include "ptxvm/exec/hooks.h"

/* ---- Journals: what a launch has overwritten ---- */

enum {
    PIECE = PTXVM_PADDING,   /* allocations begin and end at multiples of it */
    PIECES_MAX = 128 * 1024, /* a kernel that writes to more is not recorded */
    EARLY = 16               /* clusters, without a seed */
};

typedef enum { PIECE_LOST, PIECE_OLD, PIECE_LANDED } piece_state;

typedef struct piece {
    uint64_t address;
    piece_state state; /* before it has landed */
    uint8_t before[PIECE], after[PIECE];
    uint8_t written[PIECE / 8]; /* a bit for each byte */
} piece;

static bool is_written(const piece *p, uint64_t i)
{
    return p->written[i / 8] >> i % 8 & 1;
}

typedef struct vm_journal {
    pthread_mutex_t lock; /* blocks may run on several host threads */
    piece **slots;        /* a hash table */
    size_t capacity, n;   /* capacity: a power of two */
    bool full;
} vm_journal;

static vm_journal *journal_new(void)
{
    vm_journal *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->capacity = 64;
    j->slots = calloc(j->capacity, sizeof *j->slots);
    if (!j->slots || pthread_mutex_init(&j->lock, NULL)) {
        free(j->slots);
        free(j);
        return NULL;
    }
    return j;
}

static void journal_free(vm_journal *j)
{
    for (size_t i = 0; j && i < j->capacity; i++)
        free(j->slots[i]);
    if (j) {
        pthread_mutex_destroy(&j->lock);
        free(j->slots);
    }
    free(j);
}

/* The slot of the piece at this address, or the empty one where it belongs. */
static piece **slot_of(const vm_journal *j, uint64_t address)
{
    uint64_t hash = address / PIECE * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 32) & (j->capacity - 1);
    while (j->slots[i] && j->slots[i]->address != address)
        i = (i + 1) & (j->capacity - 1);
    return &j->slots[i];
}

static bool grow(vm_journal *j)
{
    piece **old = j->slots, **more = calloc(2 * j->capacity, sizeof *more);
    size_t n = j->capacity;
    if (!more)
        return false;
    j->slots = more;
    j->capacity *= 2;
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *slot_of(j, old[i]->address) = old[i];
    free(old);
    return true;
}

/* Global memory of the device at a piece's address; null: it is not there, or belongs to the host. */
static uint8_t *host_of(const vm_memory *memory, uint64_t address)
{
    const vm_alloc *alloc = vm_memory_nearest(memory, address);
    if (!alloc || alloc->flags & (VM_ALLOC_MAPPED | VM_ALLOC_CONST) ||
        address - alloc->address + PIECE > alloc->extent)
        return NULL;
    return alloc->host + (address - alloc->address);
}

/* The piece at this address; null: it is not recorded. */
static piece *piece_at(vm_journal *j, const vm_memory *memory, uint64_t address)
{
    piece *p = *slot_of(j, address);
    const uint8_t *host = p ? NULL : host_of(memory, address);
    if (p || !host)
        return p;
    p = j->n < PIECES_MAX && (4 * j->n < 3 * j->capacity || grow(j)) ? calloc(1, sizeof *p) : NULL;
    j->full |= !p;
    if (!p)
        return NULL;
    p->address = address;
    vm_copy_relaxed(p->before, host, PIECE);
    *slot_of(j, address) = p;
    j->n++;
    return p;
}

static void record(vm_journal *j, const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const uint64_t end = address + bytes;
    pthread_mutex_lock(&j->lock);
    for (uint64_t at = address; !j->full && at < end;) {
        uint64_t start = at / PIECE * PIECE, stop = start + PIECE < end ? start + PIECE : end;
        piece *p = piece_at(j, memory, start);
        for (uint64_t i = at - start; p && i < stop - start; i++)
            p->written[i / 8] |= (uint8_t)(1 << i % 8);
        at = stop;
    }
    pthread_mutex_unlock(&j->lock);
}

/* ---- Taking writes back, and landing them ---- */

/* A NaN in f32 and bf16. */
static uint8_t lost_byte(uint64_t address)
{
    return (uint8_t)(UINT32_C(0x7FBADBAD) >> address % 4 * 8);
}

static void hold_back(piece *p, uint8_t *host, uint64_t *random)
{
    vm_copy_relaxed(p->after, host, PIECE);
    p->state = *random ? (piece_state)(vm_random(random) % 3) : PIECE_LOST;
    for (uint64_t i = 0; i < PIECE; i++)
        if (is_written(p, i) && p->state != PIECE_LANDED)
            vm_store_relaxed(host + i, 1, p->state == PIECE_OLD ? p->before[i] : lost_byte(i));
}

/* In order of address, so that the same seed does the same whatever host thread wrote first. */
static int compare_pieces(const void *a, const void *b)
{
    const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
    return !x || !y ? !x - !y : (x->address > y->address) - (x->address < y->address);
}

static void hold_back_all(vm_launch *launch, vm_journal *j)
{
    uint64_t seed = launch->vm->config.seed, random = seed ? seed ^ launch->grid_id * 0x51ED27u : 0;
    qsort(j->slots, j->capacity, sizeof *j->slots, compare_pieces); /* no longer a hash table */
    for (size_t i = 0; i < j->n; i++) {
        piece *p = j->slots[i];
        uint8_t *host = host_of(launch->vm->memory, p->address);
        if (host)
            hold_back(p, host, &random);
        else
            memset(p->written, 0, sizeof p->written); /* it has been freed */
    }
}

static void land_piece(const piece *p, uint8_t *host)
{
    for (uint64_t i = 0; i < PIECE; i++)
        if (is_written(p, i) && p->state != PIECE_LANDED)
            vm_store_relaxed(host + i, 1, p->after[i]);
}

void vm_overlap_land(vm_launch *launch)
{
    vm_journal *j = launch->vm->overlap->landing;
    for (size_t i = 0; j && i < j->n; i++) {
        uint8_t *host = host_of(launch->vm->memory, j->slots[i]->address);
        if (host)
            land_piece(j->slots[i], host);
    }
    journal_free(j);
    launch->vm->overlap->landing = NULL;
    launch->early = false;
}

uint64_t vm_overlap_early(const vm_launch *launch)
{
    uint64_t random = launch->vm->config.seed ^ launch->grid_id;
    return launch->vm->config.seed ? vm_random(&random) % (2 * EARLY) : EARLY;
}

/* ---- Accesses ---- */

static void note(vm_warp *warp, const vm_op *op, uint64_t address, uint64_t bytes, vm_access_kind kind)
{
    vm_launch *launch = warp->block->launch;
    if (launch->early && (kind == VM_ATOMIC || vm_check_is_strong(op->inst)))
        vm_overlap_land(launch);
    if (launch->journal && kind & VM_STORE)
        record(launch->journal, launch->vm->memory, address, bytes);
}

static bool is_global(pvm_space space, uint64_t address)
{
    return space == SPACE_GLOBAL || (space == SPACE_NONE && vm_space_of(address) == SPACE_GLOBAL);
}

void vm_overlap_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    if (is_global(access->space, access->address[lane]))
        note(warp, op, access->address[lane], access->bytes, access->kind);
}

void vm_overlap_range(vm_warp *warp, const vm_op *op, pvm_space space, uint64_t address, uint64_t bytes,
                      vm_access_kind kind)
{
    if (is_global(space, address))
        note(warp, op, address, bytes, kind);
}

void vm_overlap_trigger(vm_block *block)
{
    if (!block->triggered && block->waited)
        block->launch->waited_first = true;
    block->triggered = true;
}

/* ---- Launches ---- */

struct vm_overlap *vm_overlap_new(void)
{
    return calloc(1, sizeof(struct vm_overlap));
}

void vm_overlap_free(struct vm_overlap *overlap)
{
    if (overlap) {
        journal_free(overlap->last);
        journal_free(overlap->landing);
    }
    free(overlap);
}

void vm_overlap_drop(ptxvm *vm)
{
    if (!vm->overlap) /* the device is not complete */
        return;
    journal_free(vm->overlap->last);
    vm->overlap->last = NULL;
    vm->overlap->n = 0;
}

/* Of the launches in front, those that may still run when this one begins. */
static void keep_running(struct vm_overlap *o)
{
    int first = o->n ? o->n - 1 : 0;
    while (first > 0 && !o->chain[first].waited_first)
        first--;
    if (first == 0 && o->n == VM_CHAIN)
        first = 1;
    memmove(o->chain, o->chain + first, (size_t)(o->n - first) * sizeof *o->chain);
    o->n -= first;
}

bool vm_overlap_begin(vm_launch *launch)
{
    struct vm_overlap *o = launch->vm->overlap;
    launch->programmatic &= o->n > 0;
    if (!launch->programmatic)
        vm_overlap_drop(launch->vm);
    keep_running(o);
    o->chain[o->n] = (vm_past_launch){.start = launch->vm->checks->clock + 1, .kernel = launch->kernel};
    memcpy(o->chain[o->n].grid, launch->grid, sizeof launch->grid);
    memcpy(o->chain[o->n].dim, launch->dim, sizeof launch->dim);
    o->landing = o->last;
    o->last = NULL;
    launch->serial |= launch->programmatic;
    if (o->landing && o->landing->full) {
        journal_free(o->landing);
        o->landing = NULL;
    }
    if (o->landing)
        hold_back_all(launch, o->landing);
    launch->early = o->landing != NULL;
    if (launch->kernel->triggers)
        launch->journal = journal_new();
    return !launch->kernel->triggers || launch->journal;
}

void vm_overlap_end(vm_launch *launch)
{
    struct vm_overlap *o = launch->vm->overlap;
    vm_overlap_land(launch);
    o->chain[o->n].waited = launch->waited;
    o->chain[o->n].waited_first = launch->waited_first;
    o->n++;
    o->last = launch->journal;
    launch->journal = NULL;
}
