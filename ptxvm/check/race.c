/* Races: two threads access a byte, at least one of them writes, and nothing orders them.
 *
 * The device has a clock that advances whenever something orders threads. Every access is stamped with it. A thread
 * records the time when it last released (arrived at a barrier, fenced ...) and when it last acquired (left a
 * barrier, fenced ...): an old access of another thread is ordered before a new one if that thread has released
 * since, and this one has acquired since. Warp-level instructions count between the lanes of their warp; barriers
 * and fences of any scope within the block, where the lanes of a warp count as one (a lane may release on behalf of
 * others that it has synchronized with before). Between blocks, releases and acquires of a wider scope count, and
 * fences before a strong write or after a strong read. A thread that
 * releases to other blocks does so for what it knows of: its own accesses, and those of threads of its block that it
 * has synchronized with. Likewise what it acquires from other blocks reaches the threads that synchronize with it
 * afterwards. This may treat accesses as ordered that are not (the two threads may have
 * synchronized with others), but never the reverse: there are no false alarms. Atomic and other strong accesses do
 * not race with each other if their scopes include both, nor do stores that write the value already there.
 *
 * Order is not enough for reads that take another path than writes: ld.global.nc may return what was there when the
 * kernel began, and a bulk copy out of shared memory what was there before the last fence.proxy.async.
 *
 * There is one cell per four-byte word, until a part of a word is accessed: then one per byte. */
#include <stdlib.h>

#include "check.h"
#include "ptxvm/exec/cluster.h"
#include "ptxvm/exec/ops_common.h"

#define PAGE_WORDS 256

void check_free_cells(check_region *region)
{
    uint64_t pages = region->words && region->split ? region->bytes / 1024 + 1 : 0;
    for (uint64_t i = 0; i < pages; i++) {
        free(region->words[i]);
        free(region->split[i]);
        region->words[i] = region->split[i] = NULL;
    }
}

/* ---- Order ---- */

static void set_times(vm_warp *warp, uint32_t mask, uint32_t *times, uint32_t time)
{
    uint32_t *of_warp = times + WARP * warp->index;
    if (mask == UINT32_MAX)
        for (int lane = 0; lane < WARP; lane++)
            of_warp[lane] = time;
    else
        VM_EACH_LANE(lane, mask)
    of_warp[lane] = time;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Raises the time of each thread of the block to that of its last access that the lanes `mask` know of: that of
 * their own accesses is `now`. */
static void publish(const vm_warp *warp, uint32_t mask, uint32_t now, uint32_t *times)
{
    const block_check *check = warp->block->check;
    uint32_t *own = times + WARP * warp->index, seen = 0;
    VM_EACH_LANE(lane, mask)
    seen = most(seen, check->warp_acquired[WARP * warp->index + (int)lane]);
    for (int lane = 0; lane < WARP; lane++)
        own[lane] = most(
            own[lane], mask >> lane & 1 ? now : least(seen, check->warp_released[WARP * warp->index + lane]));
    for (int w = 0; w < warp->block->n_warps; w++)
        for (int lane = 0; w != warp->index && lane < WARP; lane++)
            times[WARP * w + lane] =
                most(times[WARP * w + lane], least(check->acquired[warp->index], check->released[w]));
}

/* The times when this block last released to others, by thread; null without memory for them: then it is taken
 * to have released everything. */
static uint32_t *grid_times(const vm_warp *warp)
{
    uint32_t **blocks = vm_watch_of(warp)->released, **times = blocks + warp->block->linear_index;
    if (blocks && !*times)
        *times = calloc((size_t)(WARP * warp->block->n_warps), sizeof **times);
    if (blocks && !*times)
        vm_watch_of(warp)->blind = true;
    return blocks ? *times : NULL;
}

static void release(vm_warp *warp, uint32_t mask, bool block, uint32_t time)
{
    block_check *check = warp->block->check;
    set_times(warp, mask, check->warp_released, time);
    if (block)
        check->released[warp->index] = time;
}

void check_release(vm_warp *warp, uint32_t mask, bool block, bool grid)
{
    uint32_t time = ++warp->block->launch->vm->checks->clock, *times = grid ? grid_times(warp) : NULL;
    release(warp, mask, block, time);
    if (times)
        publish(warp, mask, time, times);
}

/* What lanes learn of other blocks: `others` is the time up to which they have acquired it. */
static void acquire(vm_warp *warp, uint32_t mask, bool block, uint32_t time, uint32_t others)
{
    block_check *check = warp->block->check;
    uint32_t *of_warp = &check->grid_latest_of_warp[warp->index];
    set_times(warp, mask, check->warp_acquired, time);
    if (block)
        check->acquired[warp->index] = time;
    VM_EACH_LANE(lane, mask)
    {
        uint32_t *own = &check->grid_acquired[WARP * warp->index + (int)lane];
        *own = most(*own, others);
    }
    *of_warp = most(*of_warp, others);
    check->grid_latest = most(check->grid_latest, others);
}

void check_acquire(vm_warp *warp, uint32_t mask, bool block, bool grid)
{
    const block_check *check = warp->block->check;
    uint32_t time = ++warp->block->launch->vm->checks->clock;
    acquire(warp, mask, block, time,
            grid    ? time
            : block ? check->grid_latest
                    : check->grid_latest_of_warp[warp->index]);
}

/* Between blocks, a fence orders nothing by itself: it releases together with a strong write after it, and acquires
 * together with a strong read before it. */
void check_fence(vm_warp *warp, uint32_t mask, bool grid)
{
    block_check *check = warp->block->check;
    uint32_t time = ++warp->block->launch->vm->checks->clock;
    release(warp, mask, true, time);
    if (grid)
        publish(warp, mask, time, check->fenced);
    check->has_fenced |= grid;
    time = ++warp->block->launch->vm->checks->clock;
    acquire(warp, mask, true, time, most(check->grid_latest, grid ? check->observed : 0));
}

void check_signal(vm_warp *warp)
{
    block_check *check = warp->block->check;
    uint32_t *times = check->has_fenced ? grid_times(warp) : NULL;
    for (int i = 0; times && i < WARP * warp->block->n_warps; i++)
        times[i] = most(times[i], check->fenced[i]);
    check->has_fenced = false;
}

void check_observe(vm_warp *warp)
{
    warp->block->check->observed = ++warp->block->launch->vm->checks->clock;
}

void check_proxy_fence(vm_warp *warp, uint32_t mask)
{
    publish(warp, mask, ++warp->block->launch->vm->checks->clock, warp->block->check->proxied);
}

/* One access, of one lane. */
typedef struct touch {
    const race_access *a;
    const block_check *check;
    int lane;
    uint32_t thread, block, since; /* since: earlier accesses do not count */
    race_touch now;                /* the stamp it leaves, except for its thread */
    uint16_t stamp_thread;
    uint64_t address, bytes;
    uint64_t cell, cell_bytes; /* the part that is checked: a word, or a byte of it */
} touch;

static touch touch_of(const race_access *a, uint64_t bytes)
{
    const vm_block *block = a->warp->block;
    return (touch){.a = a,
                   .check = block->check,
                   .block = (uint32_t)block->linear_index,
                   .since = a->owner ? a->owner->check->start : vm_watch_of(a->warp)->horizon,
                   .now = {.time = block->launch->vm->checks->clock,
                           .site = (uint32_t)a->op->site,
                           .block = (uint32_t)block->linear_index,
                           .reach = (uint8_t)a->reach,
                           .state = RACE_SET},
                   .bytes = bytes};
}

static inline void set_lane(touch *t, int lane, uint64_t address)
{
    t->lane = lane;
    t->thread = (uint32_t)(WARP * t->a->warp->index + lane);
    t->stamp_thread = t->a->async ? RACE_ASYNC : (uint16_t)t->thread;
    t->address = address;
}

/* An access of a launch in front of this one that may still run. */
static inline bool is_of_past_launch(const touch *t, const race_touch *past)
{
    return past->time < vm_watch_of(t->a->warp)->start;
}

/* The instruction that made an access. */
static const vm_op *op_of(const touch *t, const race_touch *past)
{
    const vm_kernel *kernel = is_of_past_launch(t, past) ? check_launch_of(t->a->warp, past)->kernel
                                                         : t->a->warp->block->launch->kernel;
    return kernel->sites[past->site];
}

static inline bool is_mine(const touch *t, const race_touch *past)
{
    return past->block == t->block && past->thread == t->thread;
}

/* Whether two blocks, by their numbers in the grid, are in one cluster. */
static bool is_in_cluster(const vm_launch *launch, uint32_t a, uint32_t b)
{
    for (int i = 0; launch->n_cluster > 1 && i < 3; i++) {
        uint32_t of_a = a % launch->grid[i] / launch->cluster[i],
                 of_b = b % launch->grid[i] / launch->cluster[i];
        if (of_a != of_b)
            return false;
        a /= launch->grid[i];
        b /= launch->grid[i];
    }
    return launch->n_cluster > 1;
}

/* A strong access is visible to other blocks only with a scope that includes them. */
static inline race_reach needed_reach(const touch *t, const race_touch *past)
{
    return is_of_past_launch(t, past)                                        ? REACH_GRID
           : past->block == t->block                                         ? REACH_BLOCK
           : is_in_cluster(t->a->warp->block->launch, past->block, t->block) ? REACH_CLUSTER
                                                                             : REACH_GRID;
}

static bool are_strong(const touch *t, const race_touch *past)
{
    race_reach needed = needed_reach(t, past);
    return past->reach >= needed && t->a->reach >= needed;
}

static inline bool is_ordered(const touch *t, const race_touch *past)
{
    const block_check *check = t->check;
    uint32_t released, acquired;
    if (past->state != RACE_SET || past->time < t->since)
        return true;
    if (__builtin_expect(is_of_past_launch(t, past), 0))
        return check_has_ended(t->a->warp, t->lane, past);
    if (is_mine(t, past))
        return true;
    if (past->thread == RACE_ASYNC) {
        released = UINT32_MAX;
        acquired = check->acquired[t->thread / WARP];
    } else if (past->block != t->block) {
        const vm_watch *watch = vm_watch_of(t->a->warp);
        const uint32_t *times = watch->released ? watch->released[past->block] : NULL;
        released = times ? times[past->thread] : watch->blind ? UINT32_MAX : 0;
        acquired = watch->blind ? UINT32_MAX : check->grid_acquired[t->thread];
    } else if (past->thread / WARP == t->thread / WARP) {
        released = check->warp_released[past->thread];
        acquired = check->warp_acquired[t->thread];
    } else {
        released = check->released[past->thread / WARP];
        acquired = check->acquired[t->thread / WARP];
    }
    if (past->reach >= needed_reach(t, past)) /* a strong access needs no release after it */
        released = UINT32_MAX;
    return acquired > past->time && released > past->time;
}

bool check_is_ordered(const vm_warp *warp, int lane, const race_touch *past)
{
    const race_access a = {.warp = (vm_warp *)warp, .op = warp->block->launch->kernel->sites[past->site]};
    touch t = touch_of(&a, 4);
    set_lane(&t, lane, 0);
    t.since = warp->block->check->start;
    return is_ordered(&t, past);
}

/* A write that is ordered before, and that this read may miss all the same: of this launch or, for ld.global.nc, of one that
 * had not ended when it began. */
static inline bool is_missed(const touch *t, const race_touch *write)
{
    if (t->a->path == PATH_PLAIN || write->state != RACE_SET || write->time < t->since ||
        write->thread == RACE_ASYNC)
        return false;
    if (t->a->path == PATH_READ_ONLY)
        return true;
    return !is_of_past_launch(t, write) && write->block == t->block &&
           t->check->proxied[write->thread] <= write->time;
}

/* The loop around atom.cas that CUDA's guide shows begins with a plain load. */
static bool is_cas_loop(const touch *t, const race_touch *past, bool was_write)
{
    const pvm_inst *cas = was_write ? op_of(t, past)->inst : t->a->op->inst;
    return was_write != t->a->writes && cas->op == OP_atom && cas->mod[S_OP] == M_cas;
}

/* ---- Findings ---- */

static bool is_plain_store(const pvm_inst *inst)
{
    return (inst->op == OP_st && inst->mod[S_SUB] == M_NONE) || inst->op == OP_stmatrix;
}

/* The byte that a lane of this store writes to an address. */
static uint8_t stored_byte(const race_access *a, int lane, uint64_t address)
{
    if (a->op->inst->op == OP_stmatrix)
        return ops_stmatrix_byte(a->warp, a->op, lane, (int)(address - a->access->address[lane]));
    int n = a->op->n_operands - 1 - (a->op->inst->mod[S_HINT] != M_NONE);
    uint64_t size = a->access->bytes / (uint64_t)n, at = address - a->access->address[lane];
    const vm_operand *operand = &a->op->operand[1 + at / size];
    const uint8_t *value = vm_value(a->warp, operand);
    return value[(uint64_t)(operand->width * lane) + at % size];
}

/* Whether this same instruction has already stamped the cell, for an earlier lane: its value is not in memory
 * yet. */
static bool is_same_store(const touch *t, const race_touch *past, uint64_t address)
{
    const race_access *a = t->a;
    int other = past->thread % WARP;
    return !is_of_past_launch(t, past) && past->block == t->block &&
           past->thread / WARP == t->thread / WARP && past->site == (uint32_t)a->op->site &&
           other < t->lane && a->all >> other & 1 && address - a->access->address[other] < a->access->bytes;
}

/* Two threads that store the same value do no harm: the value that memory already holds, or that another lane
 * of the same store writes. */
static bool writes_the_same(const touch *t, const race_touch *past)
{
    const race_access *a = t->a;
    const vm_op *other = op_of(t, past);
    if (vm_watch_of(a->warp)->same || !a->access || !is_plain_store(a->op->inst) ||
        !is_plain_store(other->inst))
        return false;
    const uint8_t *memory = vm_host(a->access, (uint32_t)t->lane);
    for (uint64_t i = 0; i < t->cell_bytes; i++) {
        uint64_t address = t->cell + i;
        uint8_t before = is_same_store(t, past, address) ? stored_byte(a, past->thread % WARP, address)
                                                         : memory[address - t->address];
        if (stored_byte(a, t->lane, address) != before)
            return false;
    }
    return true;
}

static void find_thread(const vm_launch *launch, const race_touch *past, ptxvm_finding *finding)
{
    finding->other_block[0] = past->block % launch->grid[0];
    finding->other_block[1] = past->block / launch->grid[0] % launch->grid[1];
    finding->other_block[2] = past->block / launch->grid[0] / launch->grid[1];
    uint32_t thread = past->thread == RACE_ASYNC ? 0 : past->thread;
    finding->other_thread[0] = thread % launch->dim[0];
    finding->other_thread[1] = thread / launch->dim[0] % launch->dim[1];
    finding->other_thread[2] = thread / launch->dim[0] / launch->dim[1];
}

static void report(const touch *t, const race_touch *past, bool was_write)
{
    const race_access *a = t->a;
    const vm_launch *launch = a->warp->block->launch;
    const vm_op *other = op_of(t, past);
    const vm_alloc *alloc =
        a->space == SPACE_GLOBAL ? vm_memory_nearest(launch->vm->memory, t->address) : NULL;
    ptxvm_finding f = {.kind = PTXVM_FINDING_RACE,
                       .space = check_space_name(a->space),
                       .address = t->address,
                       .access_bytes = t->bytes,
                       .base = alloc ? alloc->address : 0,
                       .size = alloc ? alloc->bytes : 0,
                       .has_other = true,
                       .other_function = other->function->name,
                       .other_line = other->inst->line};
    if (is_of_past_launch(t, past)) {
        check_report_overlap(a->warp, a->op, t->lane, past, a->writes, was_write, &f);
        return;
    }
    find_thread(launch, past, &f);
    const char *copy = past->thread == RACE_ASYNC ? "a copy of " : "";
    const char *scope = !past->reach || !a->reach ? ""
                        : past->reach == REACH_CLUSTER || a->reach == REACH_CLUSTER
                            ? ": a scope of .cluster does not reach a block of another cluster"
                            : ": a scope of .cta does not reach another block";
    const char *why =
        !was_write || !is_missed(t, past) || !is_ordered(t, past) ? ", with nothing between to order them"
        : a->path == PATH_READ_ONLY ? ": ld.global.nc needs memory that nothing writes while the kernel runs"
                                    : ", with no fence.proxy.async after it: the async proxy may not see it";
    vm_check_report(
        a->warp, a->op, t->lane, &f, (int)past->site,
        "race: %s %llu bytes at %s address 0x%llx that %sblock (%u,%u,%u), thread (%u,%u,%u) %s at "
        "line %d%s%s",
        a->writes ? "writes" : "reads", (unsigned long long)t->bytes, check_space_name(a->space),
        (unsigned long long)t->address, copy, f.other_block[0], f.other_block[1], f.other_block[2],
        f.other_thread[0], f.other_thread[1], f.other_thread[2], was_write ? "wrote" : "read", f.other_line,
        why, scope);
}

static bool check_pair(const touch *t, const race_touch *past, bool was_write)
{
    bool missed = was_write && is_missed(t, past);
    if (!missed && (is_ordered(t, past) || are_strong(t, past) || is_cas_loop(t, past, was_write)))
        return true;
    if (was_write && t->a->writes && writes_the_same(t, past))
        return true;
    report(t, past, was_write);
    return false;
}

/* ---- Cells ---- */

/* The two last readers are kept, as one of them may be the next writer. (The thread comes after the rest: a stamp whose thread
 * has just been stored is slow to copy.) */
static inline void stamp(const touch *t, race_cell *cell)
{
    race_touch *to = &cell->write;
    if (t->a->uses_object && to->state == RACE_SET && to->time >= t->since && !to->reach)
        return; /* every use of an mbarrier is to be compared with its init */
    if (t->a->writes)
        cell->read[0].state = cell->read[1].state = 0;
    else
        to = &cell->read[is_ordered(t, &cell->read[0]) ? 0 : 1];
    *to = t->now;
    to->thread = t->stamp_thread;
}

/* The common case: all that there was is ordered before this. The cell is not one that is split. */
static inline bool touch_in_order(const touch *t, race_cell *cell)
{
    if (!is_ordered(t, &cell->write) || is_missed(t, &cell->write))
        return false;
    if (t->a->writes && !(is_ordered(t, &cell->read[0]) && is_ordered(t, &cell->read[1])))
        return false;
    stamp(t, cell);
    return true;
}

/* Returns true if a race was reported. */
static bool touch_cell(const touch *t, race_cell *cell)
{
    if (touch_in_order(t, cell))
        return false;
    bool ok = check_pair(t, &cell->write, true);
    if (t->a->writes)
        ok = ok && check_pair(t, &cell->read[0], false) && check_pair(t, &cell->read[1], false);
    stamp(t, cell);
    return !ok;
}

static race_cell *page_of(race_cell **pages, uint64_t page, size_t cells)
{
    if (!pages[page])
        pages[page] = calloc(cells, sizeof *pages[page]);
    return pages[page];
}

/* The cells of a word's four bytes, created from that of the word if it is not split yet. */
static race_cell *split_word(check_region *region, uint64_t word, race_cell *cell, uint32_t since)
{
    race_cell *page = page_of(region->split, word / PAGE_WORDS, 4 * PAGE_WORDS);
    if (!page)
        return NULL;
    race_cell *bytes = page + word % PAGE_WORDS * 4;
    if (cell->write.state != RACE_SPLIT || cell->write.time < since)
        for (int i = 0; i < 4; i++)
            bytes[i] = *cell;
    return bytes;
}

static void touch_word(touch *t, check_region *region, uint64_t word, uint32_t bytes, bool *told)
{
    uint64_t base = t->cell; /* the first address of the accessed part of the word */
    race_cell *page = page_of(region->words, word / PAGE_WORDS, PAGE_WORDS);
    if (!page)
        return; /* no memory for it: the word is not checked */
    race_cell *cell = &page[word % PAGE_WORDS];
    bool is_split = cell->write.state == RACE_SPLIT && cell->write.time >= t->since;
    if (!is_split && cell->write.state == RACE_SPLIT)
        *cell = (race_cell){.write = {.state = 0}};
    if (!is_split && bytes == 0xF) {
        *told = touch_cell(t, cell) || *told;
        return;
    }
    race_cell *parts = split_word(region, word, cell, t->since);
    t->cell_bytes = 1;
    for (int i = 0; parts && i < 4; i++)
        if (bytes >> i & 1 && !*told) {
            t->cell = base + (uint64_t)(i - __builtin_ctz(bytes));
            *told = touch_cell(t, &parts[i]);
        }
    if (parts)
        cell->write = (race_touch){.state = RACE_SPLIT, .time = t->now.time};
}

/* Whole words of one lane, as far as they are in order. Returns how many bytes that is. */
static uint64_t touch_words(const touch *t, const check_region *region, uint64_t offset)
{
    if ((offset | t->bytes) % 4 || offset / 1024 != (offset + t->bytes - 1) / 1024)
        return 0;
    race_cell *page = region->words[offset / 1024];
    if (!page)
        return 0;
    race_cell *cell = page + offset / 4 % PAGE_WORDS;
    uint64_t done = 0;
    for (; done < t->bytes; done += 4, cell++)
        if (cell->write.state == RACE_SPLIT || !touch_in_order(t, cell))
            break;
    return done;
}

/* The bytes of one lane from `done` on, word by word. */
static void touch_bytes(touch *t, check_region *region, uint64_t offset, uint64_t done)
{
    const uint64_t last = offset + t->bytes;
    bool told = false;
    for (uint64_t at = offset + done; at < last && !told;) {
        uint64_t end = (at | 3) + 1 < last ? (at | 3) + 1 : last;
        uint32_t mask = ((1u << (end - at)) - 1) << at % 4;
        t->cell = t->address + (at - offset);
        t->cell_bytes = end - at;
        touch_word(t, region, at / 4, mask, &told);
        at = end;
    }
}

/* The same row accessed again by the same op, with no synchronization in between: the stamps are already
 * there, or whoever changed them has been compared with them. */
static bool is_row_again(const race_access *a)
{
    const vm_block *block = a->warp->block;
    uint32_t clock = block->launch->vm->checks->clock;
    int row = (int)((uint32_t)a->op->site % RACE_ROWS), w = a->warp->index;
    uint64_t address = a->access->address[0];
    if (!a->access->contiguous)
        return false;
    bool again = block->check->rows[w][row].op == a->op && block->check->rows[w][row].clock == clock &&
                 block->check->rows[w][row].address == address;
    block->check->rows[w][row].op = a->op;
    block->check->rows[w][row].clock = clock;
    block->check->rows[w][row].address = address;
    return again;
}

void check_race_lanes(const race_access *a, check_region *region, uint64_t base)
{
    const vm_access *access = a->access;
    if (a->path == PATH_PLAIN && is_row_again(a))
        return;
    touch t = touch_of(a, access->bytes);
    VM_EACH_LANE(lane, a->mask)
    {
        uint64_t offset = access->address[lane] - base;
        set_lane(&t, (int)lane, access->address[lane]);
        uint64_t done = touch_words(&t, region, offset);
        if (done < t.bytes)
            touch_bytes(&t, region, offset, done);
    }
}

void check_race(const race_access *a, check_region *region, int lane, uint64_t address, uint64_t offset,
                uint64_t bytes)
{
    touch t = touch_of(a, bytes);
    set_lane(&t, lane, address);
    touch_bytes(&t, region, offset, 0);
}
