/* Translates guest addresses to host addresses, for a whole warp at a time. */
#include "cluster.h"
#include "overlap.h"
#include "memory_access.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

/* A region of guest memory in one space (or generic), and its host address. Local memory is one region per
 * lane. */
typedef struct region {
    uint64_t base, bytes;
    uint8_t *host;
    uint64_t lane_stride;
    bool parallel, read_only;
} region;

static const vm_alloc *find_cached(vm_warp *warp, const vm_op *op, uint64_t address, uint64_t bytes)
{
    const vm_memory *memory = warp->block->launch->vm->memory;
    vm_cache *cache = &warp->ops->cache;
    if (cache->generation != memory->generation)
        *cache = (vm_cache){.generation = memory->generation};
    vm_alloc *entry = &cache->entry[(uintptr_t)op / sizeof *op % VM_CACHE_ENTRIES];
    if (address - entry->address < entry->reach && bytes <= entry->reach - (address - entry->address))
        return entry;
    const vm_alloc *found = vm_memory_reach(memory, address, bytes);
    if (!found)
        return NULL;
    *entry = *found;
    return entry;
}

/* Instructions that do not reach other blocks' memory: with .shared or .shared::cta, and the parts of an mbarrier's life
 * that are for its own block. */
static bool is_for_own_block(const pvm_inst *inst)
{
    unsigned sub = inst->mod[S_SUB];
    bool own_space = inst->mod[S_SPACE] == M_shared || inst->mod[S_SPACE] == M_shared__cta;
    return (own_space && inst->op != OP_clusterlaunchcontrol) || /* whose answer may go to all */
           (inst->op == OP_mbarrier &&
            (sub == M_init || sub == M_inval || sub == M_test_wait || sub == M_try_wait));
}

static region shared_region(const vm_block *block, const vm_op *op, uint64_t base, uint64_t address)
{
    const vm_block *owner = vm_shared_owner(block, address);
    if (!owner || (owner != block && is_for_own_block(op->inst)))
        return (region){0};
    return (region){base + owner->shared_base, owner->shared_reach, owner->shared, 0, false, false};
}

/* The region that contains the address, as determined by its space; empty if there is none. */
static region region_of(vm_warp *warp, const vm_op *op, pvm_space space, uint64_t address, uint64_t bytes)
{
    const vm_launch *launch = warp->block->launch;
    pvm_space place = space == SPACE_NONE ? vm_space_of(address) : space;
    uint64_t base = space == SPACE_NONE ? vm_window_base(place) : 0;
    if (place == SPACE_SHARED)
        return shared_region(warp->block, op, base, address - base);
    if (place == SPACE_LOCAL)
        return (region){base, warp->local_stride, warp->local, warp->local_stride, false, false};
    if (place == SPACE_PARAM)
        return (region){base, launch->param_bytes, (uint8_t *)(uintptr_t)launch->params, 0, false, true};
    const vm_alloc *alloc = find_cached(warp, op, address, bytes);
    if (!alloc)
        return (region){0};
    return (region){alloc->address, alloc->reach, alloc->host, 0, true, alloc->flags & VM_ALLOC_CONST};
}

/* Compilers widen loads: the last three of 11 floats are loaded by ld.v4.f32. The load is aligned, so what is
 * beyond the end lies in the padding, and the memory check allows it. */
static region region_of_widened(const vm_warp *warp, const vm_op *op, const vm_access *access,
                                uint64_t address)
{
    pvm_space place = access->space == SPACE_NONE ? vm_space_of(address) : access->space;
    bool widened = (op->inst->op == OP_ld || op->inst->op == OP_ldu) && op->inst->mod[S_VEC] != M_NONE;
    const vm_alloc *alloc = widened && (place == SPACE_GLOBAL || place == SPACE_CONST)
                                ? vm_memory_nearest(warp->block->launch->vm->memory, address)
                                : NULL;
    if (!alloc || address - alloc->address >= alloc->bytes)
        return (region){0};
    return (region){alloc->address, alloc->extent, alloc->host, 0, true, true};
}

static bool region_holds(const region *r, uint64_t address, uint64_t bytes)
{
    return address - r->base < r->bytes && bytes <= r->bytes - (address - r->base);
}

/* A lane's stack ends at its top: above it is memory of calls that have returned. */
static bool lane_holds(const vm_warp *warp, const region *r, int lane, uint64_t address, uint64_t bytes)
{
    return region_holds(r, address, bytes) &&
           (!r->lane_stride || address - r->base + bytes <= warp->local_top[lane]);
}

static const char *space_name(pvm_space space)
{
    static const char *const names[] = {"generic", "register", "special register", "const", "global", "local",
                                        "param",   "shared"};
    return names[space];
}

/* ---- Faults ---- */

static const char *verb_of(vm_access_kind kind)
{
    return kind == VM_LOAD ? "load" : kind == VM_STORE ? "store" : "atomic access";
}

static void fault_misaligned(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                             uint64_t bytes, uint32_t align)
{
    pvm_space place = space == SPACE_NONE ? vm_space_of(address) : space;
    const vm_alloc *alloc = place == SPACE_GLOBAL || place == SPACE_CONST
                                ? vm_memory_find(warp->block->launch->vm->memory, address, 1)
                                : NULL;
    ptxvm_finding detail = {.kind = PTXVM_FINDING_MISALIGNED,
                            .space = space_name(place),
                            .address = address,
                            .access_bytes = bytes,
                            .base = alloc ? alloc->address : 0,
                            .size = alloc ? alloc->bytes : 0};
    vm_fault_access(warp, op, lane, PTXVM_ERROR_MISALIGNED, &detail, "address 0x%llx is not a multiple of %u",
                    (unsigned long long)address, align);
}

/* The allocation nearest to an address outside all of them, and the distance of the first byte outside. */
static void find_nearest(const vm_memory *memory, uint64_t address, ptxvm_finding *detail)
{
    const vm_alloc *near = vm_memory_nearest(memory, address);
    int above = near ? (int)(near - memory->allocs) + 1 : 0;
    const vm_alloc *next = above < memory->n_allocs ? &memory->allocs[above] : NULL;
    uint64_t past = near ? address - near->address - near->bytes : UINT64_MAX;
    if (near && address - near->address < near->bytes) /* only its last bytes are outside */
        past = 0;
    uint64_t before = next ? next->address - address : UINT64_MAX;
    if (!near && !next)
        return;
    const vm_alloc *nearest = before < past ? next : near;
    detail->base = nearest->address;
    detail->size = nearest->bytes;
    detail->distance = before < past ? -(int64_t)before : (int64_t)past;
}

/* An address of another block of the cluster, which cannot be reached. Returns false if it is not that. */
static bool fault_cluster(vm_warp *warp, const vm_op *op, int lane, uint64_t address,
                          const ptxvm_finding *detail)
{
    const vm_block *block = warp->block;
    uint64_t rank = address / VM_SHARED_SIZE;
    if (rank == block->rank)
        return false;
    const char *why = rank >= (uint64_t)block->cluster->n ? "which the cluster does not have"
                      : block->cluster->blocks[rank]->ended
                          ? "which has ended: a barrier.cluster must keep it "
                            "until its memory is no longer used"
                      : is_for_own_block(op->inst) ? "which this instruction does not reach"
                                                   : NULL;
    if (!why)
        return false;
    vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, detail,
                    "shared address 0x%llx is in the memory of block %llu of the cluster, %s",
                    (unsigned long long)address, (unsigned long long)rank, why);
    return true;
}

/* Faults in windows, which have an extent instead of an allocation. */
static void fault_window(vm_warp *warp, const vm_op *op, int lane, pvm_space place, uint64_t address,
                         uint64_t bytes, vm_access_kind kind, ptxvm_finding *detail)
{
    const vm_block *block = warp->block;
    uint64_t base = vm_window_base(place), at = address >= base ? address - base : address;
    if (place == SPACE_SHARED && fault_cluster(warp, op, lane, at, detail))
        return;
    at = place == SPACE_SHARED ? at % VM_SHARED_SIZE : at;
    uint64_t size = place == SPACE_SHARED  ? block->shared_bytes
                    : place == SPACE_LOCAL ? warp->local_top[lane]
                                           : block->launch->param_bytes;
    if (kind != VM_LOAD && place == SPACE_PARAM && at < size) {
        detail->kind = PTXVM_FINDING_READ_ONLY;
        vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, detail,
                        "%s of %llu bytes at %s address 0x%llx, which is read only", verb_of(kind),
                        (unsigned long long)bytes, detail->space, (unsigned long long)address);
        return;
    }
    detail->size = size;
    detail->distance = (int64_t)(at >= size ? at - size : 0);
    vm_fault_access(
        warp, op, lane, PTXVM_ERROR_ADDRESS, detail,
        "%s of %llu bytes at %s address 0x%llx, which is outside: %lld bytes past the end of the %llu "
        "bytes of %s memory",
        verb_of(kind), (unsigned long long)bytes, detail->space, (unsigned long long)address,
        (long long)detail->distance, (unsigned long long)size, detail->space);
}

static void fault_address(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                          uint64_t bytes, vm_access_kind kind)
{
    const vm_memory *memory = warp->block->launch->vm->memory;
    const char *verb = verb_of(kind);
    pvm_space place = space == SPACE_NONE ? vm_space_of(address) : space;
    ptxvm_finding detail = {.kind = PTXVM_FINDING_OUT_OF_BOUNDS,
                            .space = space_name(place),
                            .address = address,
                            .access_bytes = bytes};
    unsigned long long n = bytes, at = address;
    if (place != SPACE_GLOBAL && place != SPACE_CONST) {
        fault_window(warp, op, lane, place, address, bytes, kind, &detail);
        return;
    }
    const vm_alloc *inside = vm_memory_reach(memory, address, bytes);
    const vm_freed *freed = vm_memory_freed(memory, address);
    find_nearest(memory, address, &detail);
    if (inside) {
        detail.kind = PTXVM_FINDING_READ_ONLY;
        detail.distance = 0;
        vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
                        "%s of %llu bytes at 0x%llx, which is read only: %llu bytes of .const at 0x%llx",
                        verb, n, at, (unsigned long long)detail.size, (unsigned long long)detail.base);
    } else if (freed) {
        detail.kind = PTXVM_FINDING_USE_AFTER_FREE;
        detail.base = freed->address;
        detail.size = freed->bytes;
        detail.distance = 0;
        vm_fault_access(
            warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
            "%s of %llu bytes at %s address 0x%llx, byte %llu of the %llu bytes at 0x%llx that have "
            "been freed",
            verb, n, space_name(space), at, (unsigned long long)(address - freed->address),
            (unsigned long long)freed->bytes, (unsigned long long)freed->address);
    } else if (detail.size)
        vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
                        "%s of %llu bytes at %s address 0x%llx, which no allocation holds: %llu bytes %s the "
                        "%llu bytes at 0x%llx",
                        verb, n, space_name(space), at,
                        (unsigned long long)(detail.distance < 0 ? -detail.distance : detail.distance),
                        detail.distance < 0 ? "before the start of" : "past the end of",
                        (unsigned long long)detail.size, (unsigned long long)detail.base);
    else
        vm_fault_access(
            warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
            "%s of %llu bytes at %s address 0x%llx, which is outside: there is no allocation at all", verb, n,
            space_name(space), at);
}

/* What follows accesses: checks and counters, and launches that overlap. */
static void observe(vm_warp *warp, const vm_op *op, const vm_access *access, uint32_t mask)
{
    const vm_launch *launch = warp->block->launch;
    if (launch->early || launch->journal)
        vm_overlap_access(warp, op, access, mask);
    if (warp->block->watch)
        vm_check_access(warp, op, access, mask);
}

/* Lane by lane: addresses in several regions, or a fault to locate. */
static bool translate_each(vm_warp *warp, const vm_op *op, vm_access *access, uint32_t mask)
{
    access->contiguous = access->flat = access->parallel = false;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t address = access->address[lane];
        if (address & (access->align - 1)) {
            fault_misaligned(warp, op, (int)lane, access->space, address, access->bytes, access->align);
            return false;
        }
        region r = region_of(warp, op, access->space, address, access->bytes);
        if (!r.host)
            r = region_of_widened(warp, op, access, address);
        if (!lane_holds(warp, &r, (int)lane, address, access->bytes) ||
            (r.read_only && access->kind != VM_LOAD)) {
            fault_address(warp, op, (int)lane, access->space, address, access->bytes, access->kind);
            return false;
        }
        access->parallel |= r.parallel;
        access->host[lane] = r.host + (address - r.base) + lane * r.lane_stride;
    }
    if (warp->block->observed)
        observe(warp, op, access, mask);
    return true;
}

/* The lowest and the highest address, and the bits set in any of them. */
typedef struct span {
    uint64_t low, high, bits;
} span;

/* Whether lane i is at first + i * bytes. Avoids 64-bit comparisons, which the x86-64 baseline cannot
 * vectorise. */
static inline __attribute__((always_inline)) bool scan_contiguous(const uint64_t address[WARP],
                                                                  uint64_t bytes)
{
    uint64_t gap = 0, first = address[0];
    for (uint64_t i = 0; i < WARP; i++)
        gap |= address[i] ^ (first + i * bytes);
    return !gap && first <= address[WARP - 1];
}

static inline __attribute__((always_inline)) span scan_span(const uint64_t address[WARP])
{
    uint64_t spread = 0, bits = 0, first = address[0];
    for (int i = 0; i < WARP; i++) {
        spread |= address[i] ^ first;
        bits |= address[i];
    }
    span s = {first, first, bits};
    for (int i = 1; i < WARP && spread; i++) {
        s.low = address[i] < s.low ? address[i] : s.low;
        s.high = address[i] > s.high ? address[i] : s.high;
    }
    return s;
}

static inline __attribute__((always_inline)) span scan_all(const uint64_t address[WARP], uint64_t bytes,
                                                           bool *contiguous)
{
    *contiguous = scan_contiguous(address, bytes);
    return *contiguous ? (span){address[0], address[WARP - 1], address[0]} : scan_span(address);
}

static inline __attribute__((always_inline)) void add_offset(const void *value, int width, uint64_t offset,
                                                             uint64_t address[WARP])
{
    if (width == 8)
        for (int i = 0; i < WARP; i++)
            address[i] = ((const vm_u64 *)value)[i] + offset;
    else
        for (int i = 0; i < WARP; i++)
            address[i] = (uint32_t)(((const vm_u32 *)value)[i] + (uint32_t)offset);
}

/* The loops over all lanes, for the baseline and for AVX2. */
typedef span scan_fn(const uint64_t address[WARP], uint64_t bytes, bool *contiguous);
typedef void offset_fn(const void *value, int width, uint64_t offset, uint64_t address[WARP]);

static span scan_baseline(const uint64_t address[WARP], uint64_t bytes, bool *contiguous)
{
    return scan_all(address, bytes, contiguous);
}

static void offset_baseline(const void *value, int width, uint64_t offset, uint64_t address[WARP])
{
    add_offset(value, width, offset, address);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static span scan_v3(const uint64_t address[WARP], uint64_t bytes,
                                                    bool *contiguous)
{
    return scan_all(address, bytes, contiguous);
}

__attribute__((target("avx2"))) static void offset_v3(const void *value, int width, uint64_t offset,
                                                      uint64_t address[WARP])
{
    add_offset(value, width, offset, address);
}
#else
#define scan_v3   scan_baseline
#define offset_v3 offset_baseline
#endif

static span span_of_all(const vm_warp *warp, const vm_access *access, bool *contiguous)
{
    scan_fn *scan = warp->block->launch->vm->level == LANES_V3 ? scan_v3 : scan_baseline;
    return scan(access->address, access->bytes, contiguous);
}

static span span_of_some(const uint64_t address[WARP], uint32_t mask)
{
    uint64_t first = address[vm_first(mask)];
    span s = {first, first, 0};
    VM_EACH_LANE(lane, mask)
    {
        s.low = address[lane] < s.low ? address[lane] : s.low;
        s.high = address[lane] > s.high ? address[lane] : s.high;
        s.bits |= address[lane];
    }
    return s;
}

static bool all_lanes_hold(const vm_warp *warp, const region *r, const vm_access *access, uint32_t mask)
{
    bool ok = true;
    VM_EACH_LANE(lane, mask)
    ok &= access->address[lane] - r->base + access->bytes <= warp->local_top[lane];
    return ok;
}

bool vm_translate(vm_warp *warp, const vm_op *op, vm_access *access, uint32_t mask)
{
    bool contiguous = false;
    span s =
        mask == UINT32_MAX ? span_of_all(warp, access, &contiguous) : span_of_some(access->address, mask);
    if (s.bits & (access->align - 1))
        return translate_each(warp, op, access, mask);
    region r = region_of(warp, op, access->space, s.low, access->bytes);
    if (!region_holds(&r, s.low, access->bytes) || !region_holds(&r, s.high, access->bytes) ||
        (r.read_only && access->kind != VM_LOAD) ||
        (r.lane_stride && !all_lanes_hold(warp, &r, access, mask)))
        return translate_each(warp, op, access, mask);
    access->flat = true;
    access->parallel = r.parallel;
    access->contiguous = contiguous && !r.lane_stride;
    access->origin = r.host;
    access->base = r.base;
    access->stride = r.lane_stride;
    if (__builtin_expect(warp->block->observed, 0))
        observe(warp, op, access, mask);
    return true;
}

uint8_t *vm_translate_lane(vm_warp *warp, const vm_op *op, int lane, pvm_space space, uint64_t address,
                           uint64_t bytes, uint32_t align, vm_access_kind kind)
{
    if (address & (align - 1)) {
        fault_misaligned(warp, op, lane, space, address, bytes, align);
        return NULL;
    }
    region r = region_of(warp, op, space, address, bytes);
    if (!lane_holds(warp, &r, lane, address, bytes) || (r.read_only && kind != VM_LOAD)) {
        fault_address(warp, op, lane, space, address, bytes, kind);
        return NULL;
    }
    if (warp->block->launch->early || warp->block->launch->journal)
        vm_overlap_range(warp, op, space, address, bytes, kind);
    if (warp->block->check)
        vm_check_range(warp, op, lane, space, address, bytes, kind);
    return r.host + (address - r.base) + (uint64_t)lane * r.lane_stride;
}

void vm_addresses(const vm_warp *warp, const vm_operand *operand, uint32_t mask, uint64_t address[WARP])
{
    if (operand->slot == VM_NO_SLOT)
        for (int i = 0; i < WARP; i++)
            address[i] = (uint64_t)operand->offset;
    else if (mask == UINT32_MAX)
        (warp->block->launch->vm->level == LANES_V3 ? offset_v3 : offset_baseline)(
            vm_value(warp, operand), operand->width, (uint64_t)operand->offset, address);
    else
        VM_EACH_LANE(lane, mask)
        {
            uint64_t sum = ops_operand(warp, operand, (int)lane) + (uint64_t)operand->offset;
            address[lane] = operand->width == 8 ? sum : (uint32_t)sum;
        }
    /* These spaces have 32-bit addresses: sums wrap around. */
    if (operand->width == 8 && (operand->space == SPACE_SHARED || operand->space == SPACE_LOCAL))
        for (int i = 0; i < WARP; i++)
            address[i] = (uint32_t)address[i];
    if (operand->space == SPACE_SHARED && warp->block->shared_base && !operand->in_cluster)
        for (int i = 0; i < WARP; i++)
            address[i] |= address[i] < VM_SHARED_SIZE ? warp->block->shared_base : 0;
}

bool vm_access_operand(vm_warp *warp, const vm_op *op, const vm_operand *operand, vm_access *access,
                       uint32_t mask)
{
    vm_addresses(warp, operand, mask, access->address);
    return vm_translate(warp, op, access, mask);
}

void vm_copy_relaxed(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    bool by_words = (((uintptr_t)to | (uintptr_t)from) & 7) == 0;
    uint64_t i = 0;
    for (; by_words && i + 8 <= bytes; i += 8)
        VM_STORE_RELAXED(64, to + i, VM_LOAD_RELAXED(64, from + i));
    for (; i < bytes; i++)
        VM_STORE_RELAXED(8, to + i, VM_LOAD_RELAXED(8, from + i));
}
