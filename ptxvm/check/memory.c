/* Every memory access of a kernel: propagates undefined bytes between memory and registers, and calls the
 * race check, the check of asynchronous copies and the counters. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/cluster.h"
#include "ptxvm/exec/ops_common.h"

/* ---- Regions ---- */

check_region *vm_check_region_new(uint64_t address, uint64_t bytes, uint64_t extent, unsigned checks,
                                  bool counters, bool undefined)
{
    check_region *region = calloc(1, sizeof *region);
    if (!region)
        return NULL;
    bool ok = true;
    region->bytes = extent;
    region->first_sector = address / 32;
    region->n_sectors = (address + extent + 31) / 32 - region->first_sector;
    if (checks & PTXVM_CHECK_INIT) {
        ok &= (region->undefined = calloc(extent + 16, 1)) != NULL;
        /* The padding is never written, and n_undefined does not count it; without the memory check, which
         * allows only widened loads to get there, it counts as written. */
        if (ok && checks & PTXVM_CHECK_MEMORY)
            memset(region->undefined + bytes, 1, extent - bytes);
        if (ok && undefined) {
            memset(region->undefined, 1, bytes);
            region->n_undefined = bytes;
        }
    }
    if (checks & PTXVM_CHECK_RACE) {
        ok &= (region->words = calloc(extent / 1024 + 1, sizeof *region->words)) != NULL;
        ok &= (region->split = calloc(extent / 1024 + 1, sizeof *region->split)) != NULL;
    }
    if (counters)
        ok &= (region->sectors = calloc(region->n_sectors / 64 + 1, sizeof *region->sectors)) != NULL;
    if (ok)
        return region;
    vm_check_region_free(region);
    return NULL;
}

void vm_check_region_free(check_region *region)
{
    if (!region)
        return;
    check_free_cells(region);
    free(region->words);
    free(region->split);
    free(region->undefined);
    free(region->sectors);
    free(region);
}

void vm_check_region_define(check_region *region, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = offset; region && region->n_undefined && i < offset + bytes; i++) {
        region->n_undefined -= region->undefined[i];
        region->undefined[i] = 0;
    }
}

void vm_check_region_copy(check_region *to, uint64_t to_offset, const check_region *from,
                          uint64_t from_offset, uint64_t bytes)
{
    if (!to || !to->undefined)
        return;
    if (!from || !from->n_undefined) {
        vm_check_region_define(to, to_offset, bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) /* overlapping copies are rare, and done byte by byte */
    {
        uint8_t undefined = from->undefined[from_offset + i], *d = &to->undefined[to_offset + i];
        to->n_undefined += undefined;
        to->n_undefined -= *d;
        *d = undefined;
    }
}

const char *check_space_name(pvm_space space)
{
    static const char *const names[] = {"generic", "register", "special register", "const", "global",
                                        "local",   "param",    "shared",           "tensor"};
    return names[space];
}

/* ---- Where an address is ---- */

typedef struct spot {
    pvm_space space;
    check_region *region;  /* of global and shared memory */
    const vm_block *owner; /* of shared memory */
    uint64_t base;         /* subtracted from addresses to get offsets in the region */
    uint64_t start, size;  /* of the allocation */
} spot;

static spot spot_of(const vm_warp *warp, pvm_space space, uint64_t address)
{
    pvm_space place = space == SPACE_NONE ? vm_space_of(address) : space;
    spot s = {.space = place, .base = space == SPACE_NONE ? vm_window_base(place) : 0};
    if (place == SPACE_SHARED) {
        s.owner = vm_shared_owner(warp->block, address - s.base);
        s.region = s.owner->check->shared;
        s.base += s.owner->shared_base;
    } else if (place == SPACE_GLOBAL || place == SPACE_CONST) {
        const vm_alloc *alloc = vm_memory_nearest(warp->block->launch->vm->memory, address);
        s.region = alloc ? alloc->check : NULL;
        s.base = s.start = alloc ? alloc->address : 0;
        s.size = alloc ? alloc->bytes : 0;
        if (alloc && alloc->flags & VM_ALLOC_CONST)
            s.space = SPACE_CONST;
    }
    return s;
}

/* The shadow of a lane's bytes; null: all of them are written. */
static uint8_t *shadow_at(const vm_warp *warp, const spot *s, int lane, uint64_t address)
{
    if (s->space == SPACE_LOCAL)
        return warp->local_undefined + (uint64_t)lane * warp->local_stride + (address - s->base);
    return s->region && s->region->undefined ? s->region->undefined + (address - s->base) : NULL;
}

/* Whole words at once: nearly always there is none. */
static bool has_undefined(const uint8_t *shadow, uint64_t bytes)
{
    uint64_t i = 0;
    uint32_t any = 0, word;
    for (; i + 4 <= bytes; i += 4) {
        memcpy(&word, shadow + i, 4);
        any |= word;
    }
    for (; i < bytes; i++)
        any |= shadow[i];
    return any != 0;
}

static uint64_t undefined_mask(const uint8_t *shadow, uint64_t bytes)
{
    uint64_t mask = 0;
    if (!has_undefined(shadow, bytes))
        return 0;
    for (uint64_t i = 0; i < bytes; i++)
        mask |= (uint64_t)shadow[i] << i;
    return mask;
}

static void set_shadow(const spot *s, uint8_t *shadow, uint64_t bytes, uint64_t mask)
{
    if (!mask && !has_undefined(shadow, bytes))
        return;
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t undefined = mask >> i & 1;
        if (s->region) {
            s->region->n_undefined += undefined;
            s->region->n_undefined -= shadow[i];
        }
        shadow[i] = undefined;
    }
}

void vm_check_moved_to(vm_warp *warp, const vm_access *access, int lane, uint64_t byte)
{
    uint64_t address = access->address[lane] + byte;
    const spot s = spot_of(warp, access->space, address);
    uint8_t *shadow = shadow_at(warp, &s, lane, address);
    if (shadow)
        set_shadow(&s, shadow, 1, 1);
}

/* ---- Loads and stores ---- */

static bool is_signed(pvm_type type)
{
    return type == T_S8 || type == T_S16 || type == T_S32 || type == T_S64;
}

static void load_lane(vm_warp *warp, const vm_op *op, const check_op *info, int lane, uint64_t mask,
                      uint32_t bytes)
{
    uint32_t size = bytes / op->n_results, part = (uint32_t)(UINT64_C(1) << size) - 1;
    bool sign = is_signed(pvm_slot_type(op->inst, S_TYPE));
    for (int e = 0; e < op->n_results; e++) {
        uint32_t element = (uint32_t)(mask >> e * (int)size) & part;
        if (sign && element >> (size - 1) & 1)
            element |= ((1u << op->operand[e].width) - 1) & ~part;
        check_set_lane_bytes(warp->frame, info->id[e], lane, element);
    }
}

static uint64_t stored_mask(vm_warp *warp, const vm_op *op, const check_op *info, int lane, uint32_t bytes)
{
    int n = op->n_operands - 1;
    if (op->inst->mod[S_HINT])
        n--;
    uint32_t size = bytes / (uint32_t)n;
    uint64_t mask = 0;
    for (int e = 0; e < n; e++)
        mask |= (uint64_t)(check_lane_bytes(warp->frame, info->id[1 + e], lane) & ((1u << size) - 1))
                << e * (int)size;
    return mask;
}

static void report_read(vm_warp *warp, const vm_op *op, int lane, const spot *s, uint64_t address,
                        uint64_t bytes)
{
    ptxvm_finding finding = {.kind = PTXVM_FINDING_UNINITIALISED,
                             .space = check_space_name(s->space),
                             .address = address,
                             .access_bytes = bytes,
                             .base = s->start,
                             .size = s->size};
    vm_check_report(warp, op, lane, &finding, -1,
                    "%s takes %llu bytes at %s address 0x%llx, some of which were never written",
                    pvm_opcode_name(op->inst->op), (unsigned long long)bytes, check_space_name(s->space),
                    (unsigned long long)address);
}

/* For instructions other than ld and st: whether it only overwrites. */
static bool may_read_undefined(const vm_op *op)
{
    return op->inst->op == OP_mbarrier || (op->inst->op == OP_atom && op->inst->mod[S_OP] == M_exch);
}

/* And whether it only moves: watch->moved_undefined holds the undefined bytes, for the instruction itself to
 * propagate. */
static bool moves_bytes(const pvm_inst *inst)
{
    return inst->op == OP_cp || inst->op == OP_ldmatrix ||
           (inst->op == OP_wmma && inst->mod[S_SUB] == M_load);
}

static void init_lane(vm_warp *warp, const vm_op *op, const check_op *info, const spot *s, int lane,
                      uint64_t address, uint64_t bytes, vm_access_kind kind)
{
    uint8_t *shadow = shadow_at(warp, s, lane, address);
    bool load = op->inst->op == OP_ld || op->inst->op == OP_ldu;
    if (!shadow)
        return;
    if (load || moves_bytes(op->inst)) {
        uint64_t mask = bytes <= 64 ? undefined_mask(shadow, bytes) : 0;
        if (load && mask)
            load_lane(warp, op, info, lane, mask, (uint32_t)bytes);
        if (!load && kind == VM_LOAD)
            vm_watch_of(warp)->moved_undefined[lane] = (uint16_t)mask;
        return;
    }
    if (op->inst->op == OP_st && op->inst->mod[S_SUB] != M_async) {
        set_shadow(s, shadow, bytes, stored_mask(warp, op, info, lane, (uint32_t)bytes));
        return;
    }
    if ((kind & VM_LOAD) && !may_read_undefined(op) && memchr(shadow, 1, bytes))
        report_read(warp, op, lane, s, address, bytes);
    if (kind & VM_STORE)
        for (uint64_t i = 0; i < bytes; i++)
            set_shadow(s, shadow + i, 1, 0);
}

/* Nothing there is undefined, and nothing undefined is stored. */
static bool init_is_plain(const vm_warp *warp, const vm_op *op, const check_op *info, const spot *s,
                          const vm_access *access, uint32_t mask)
{
    uint32_t undefined = 0;
    if (s->space == SPACE_LOCAL)
        return false;
    if (s->region && (s->region->n_undefined || !access->flat) &&
        !(access->contiguous &&
          !memchr(s->region->undefined + (access->address[0] - s->base), 1, (size_t)WARP * access->bytes)))
        return false;
    if (op->inst->op == OP_st)
        for (int i = 1; i < op->n_operands; i++)
            undefined |= info->id[i] >= 0 ? warp->frame->check->undefined[info->id[i]] : 0;
    return !(undefined & mask);
}

/* ---- All checks, for lanes in one region of memory ---- */

static void check_lanes(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask, uint32_t all)
{
    const vm_watch *watch = vm_watch_of(warp);
    uint64_t first = access->address[vm_first(mask)];
    const spot s = spot_of(warp, access->space, first);
    bool issue = op->inst->op == OP_cp && access->kind == VM_STORE; /* the data arrives later */
    if (s.space == SPACE_PARAM)
        return;
    if (watch->init && moves_bytes(op->inst))
        VM_EACH_LANE(lane, mask)
    vm_watch_of(warp)->moved_undefined[lane] = 0;
    if (watch->init && !issue) {
        const check_op *info = check_op_at(warp, op);
        if (!init_is_plain(warp, op, info, &s, access, mask))
            VM_EACH_LANE(lane, mask)
        init_lane(warp, op, info, &s, (int)lane, access->address[lane], access->bytes, access->kind);
    }
    bool shared = s.space == SPACE_SHARED;
    const vm_block *block = shared ? s.owner : warp->block;
    if (watch->sync && shared && block->check->n_async && !issue)
        VM_EACH_LANE(lane, mask)
    check_async(warp, op, (int)lane, block, access->address[lane] - s.base, access->bytes,
                access->kind & VM_STORE);
    if (watch->sync && block->check->n_bulk)
        VM_EACH_LANE(lane, mask)
    check_bulk_access(warp, op, (int)lane, block, s.space, access->address[lane] - (shared ? s.base : 0),
                      access->bytes, access->kind & VM_STORE);
    if (shared && block->check->n_operands && access->kind & VM_STORE && !issue)
        VM_EACH_LANE(lane, mask)
    check_operand_write(warp, op, (int)lane, block, access->address[lane] - s.base, access->bytes);
    if (watch->race && s.region && s.space != SPACE_CONST && !issue) {
        race_access a = {.warp = warp,
                         .op = op,
                         .access = access,
                         .mask = mask,
                         .all = all,
                         .space = s.space,
                         .owner = s.owner,
                         .reads = access->kind & VM_LOAD,
                         .writes = access->kind & VM_STORE,
                         .reach = check_reach(op->inst, NULL, NULL),
                         .path = op->inst->mod[S_NC] ? PATH_READ_ONLY : PATH_PLAIN,
                         .async = op->inst->mod[S_SUB] == M_async && op->inst->op != OP_cp};
        check_race_lanes(&a, s.region, s.base);
    }
}

void vm_check_access(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask)
{
    const vm_watch *watch = vm_watch_of(warp);
    if (watch->counts)
        check_count_access(warp, op, access, mask);
    if (!watch->init && !watch->race && !watch->sync)
        return;
    if (access->flat)
        check_lanes(warp, op, access, mask, mask);
    else
        VM_EACH_LANE(lane, mask)
    check_lanes(warp, op, access, 1u << lane, mask);
}

/* mbarrier.init and inval are plain writes. */
static bool is_initialisation(const pvm_inst *inst)
{
    return inst->op == OP_mbarrier && check_reach(inst, NULL, NULL) == REACH_NONE;
}

void vm_check_range(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                    uint64_t bytes, vm_access_kind kind)
{
    const vm_watch *watch = vm_watch_of(warp);
    const pvm_inst *inst = op->inst;
    bool bulk = (inst->op == OP_cp && inst->mod[S_MODE] == M_bulk) || inst->op == OP_clusterlaunchcontrol;
    if (bulk && inst->mod[S_FLAG] == M_mbarrier__complete_tx__bytes && kind == VM_STORE)
        return; /* vm_check_async_landed handles it */
    const spot s = spot_of(warp, space, address);
    if (watch->init && s.space != SPACE_PARAM) {
        uint8_t *shadow = shadow_at(warp, &s, lane, address);
        if (inst->op == OP_cp && !bulk)
            vm_watch_of(warp)->moved_undefined[lane] = (uint16_t)(shadow ? undefined_mask(shadow, bytes) : 0);
        else if (shadow && (kind & VM_LOAD) && !(inst->op == OP_mbarrier) && memchr(shadow, 1, bytes))
            report_read(warp, op, lane, &s, address, bytes);
        for (uint64_t i = 0; shadow && (kind & VM_STORE) && i < bytes; i++)
            set_shadow(&s, shadow + i, 1, 0);
    }
    const vm_block *block = s.space == SPACE_SHARED ? s.owner : warp->block;
    if (watch->sync && s.space == SPACE_SHARED && block->check->n_async && inst->op != OP_mbarrier)
        check_async(warp, op, lane, block, address - s.base, bytes, kind & VM_STORE);
    if (watch->sync && block->check->n_bulk && inst->op != OP_cp)
        check_bulk_access(warp, op, lane, block, s.space, address - (s.space == SPACE_SHARED ? s.base : 0),
                          bytes, kind & VM_STORE);
    if (s.space == SPACE_SHARED && block->check->n_operands && kind & VM_STORE)
        check_operand_write(warp, op, lane, block, address - s.base, bytes);
    if (watch->race && s.region && s.space != SPACE_CONST) {
        race_access a = {
            .warp = warp,
            .op = op,
            .mask = 1u << lane,
            .space = s.space,
            .owner = s.owner,
            .reads = kind & VM_LOAD,
            .writes = kind & VM_STORE,
            .uses_object = kind == VM_ATOMIC && s.space == SPACE_SHARED && !is_initialisation(inst),
            .reach = kind != VM_ATOMIC         ? REACH_NONE
                     : inst->op == OP_mbarrier ? check_reach(inst, NULL, NULL)
                                               : REACH_GRID,
            .path = (bulk || inst->op == OP_wgmma || inst->op == OP_tcgen05) && kind == VM_LOAD ? PATH_PROXY
                                                                                                : PATH_PLAIN};
        check_race(&a, s.region, lane, address, address - s.base, bytes);
    }
}
