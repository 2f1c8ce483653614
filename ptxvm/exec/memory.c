/* The table of allocations: maps device addresses to host memory. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "ptxvm/exec/hooks.h"

#define GRAIN      ((uint64_t)PTXVM_PADDING)
#define HOST_ALIGN UINT64_C(4096)      /* no access of a kernel needs more */
#define MOST_BYTES (UINT64_C(1) << 56) /* so that no sum of sizes wraps */

enum { PADDING_BYTE = 0x5A };

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

vm_memory *vm_memory_create(uint64_t limit)
{
    vm_memory *memory = calloc(1, sizeof *memory);
    if (memory) {
        memory->base = VM_GLOBAL_BASE;
        memory->limit = limit < MOST_BYTES ? limit : MOST_BYTES;
        memory->heap_limit = memory->limit;
    }
    return memory;
}

void vm_memory_destroy(vm_memory *memory)
{
    if (!memory)
        return;
    for (int i = 0; i < memory->n_allocs; i++) {
        vm_check_region_free(memory->allocs[i].check);
        free(memory->allocs[i].storage);
    }
    free(memory->allocs);
    free(memory->freed);
    free(memory);
}

/* The index of the last allocation that starts at or below the address; -1 for none. */
static int find_below(const vm_memory *memory, uint64_t address)
{
    int low = 0, high = memory->n_allocs;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (memory->allocs[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* ---- Freed memory ---- */

const vm_freed *vm_memory_freed(const vm_memory *memory, uint64_t address)
{
    for (int i = 0; i < memory->n_freed; i++)
        if (address - memory->freed[i].address < memory->freed[i].bytes)
            return &memory->freed[i];
    return NULL;
}

static void remember_freed(vm_memory *memory, const vm_alloc *alloc)
{
    if (!(memory->checks & PTXVM_CHECK_MEMORY) || alloc->flags & (VM_ALLOC_CONST | VM_ALLOC_MAPPED))
        return;
    if (!memory->freed && !(memory->freed = calloc(VM_FREED, sizeof *memory->freed)))
        return;
    memory->freed[memory->next_freed] = (vm_freed){alloc->address, alloc->bytes};
    memory->next_freed = (memory->next_freed + 1) % VM_FREED;
    memory->n_freed += memory->n_freed < VM_FREED;
}

/* Skips recently freed ranges that [place, place + bytes) would overlap; returns place itself if there are
 * none. */
static uint64_t past_freed(const vm_memory *memory, uint64_t place, uint64_t bytes, uint64_t align)
{
    for (bool moved = memory->n_freed > 0; moved;) { /* they are mostly ascending: few rounds */
        moved = false;
        for (int i = 0; i < memory->n_freed; i++) {
            const vm_freed *f = &memory->freed[i];
            uint64_t end = round_up(f->address + f->bytes, GRAIN) + GRAIN;
            if (f->address >= place + bytes + GRAIN || place >= end)
                continue;
            place = round_up(end, align);
            moved = true;
        }
    }
    return place;
}

/* The lowest free place at or above base, and its index in the table. The byte after an allocation's padding
 * never belongs to another one, so that an access just past it always faults. */
static uint64_t find_gap(const vm_memory *memory, uint64_t base, uint64_t bytes, uint64_t align, int *index)
{
    uint64_t place = round_up(base, align);
    int i = find_below(memory, base - 1) + 1;
    place = past_freed(memory, place, bytes, align);
    for (; i < memory->n_allocs; i++) {
        const vm_alloc *next = &memory->allocs[i];
        if (next->address > place && next->address - place >= bytes + GRAIN)
            break;
        uint64_t behind = round_up(round_up(next->address + next->extent, GRAIN) + GRAIN, align);
        place = behind > place ? past_freed(memory, behind, bytes, align) : place;
    }
    *index = i;
    return place;
}

/* Where the search for a place in global memory may begin. */
static uint64_t packed_below(const vm_memory *memory, uint64_t extent)
{
    uint64_t from = memory->base;
    for (uint64_t i = 1; i <= VM_SIZES_PACKED && i <= extent / GRAIN; i++)
        from = memory->packed_to[i] > from ? memory->packed_to[i] : from;
    return from;
}

/* The lowest place of a global allocation; remembers that there is none below it. */
static uint64_t find_global(vm_memory *memory, uint64_t extent, uint64_t align, int *index)
{
    uint64_t place = find_gap(memory, packed_below(memory, extent), extent, align, index);
    if (align == GRAIN && extent / GRAIN <= VM_SIZES_PACKED)
        memory->packed_to[extent / GRAIN] = place;
    return place;
}

static bool insert(vm_memory *memory, int index, vm_alloc alloc)
{
    if (memory->n_allocs == memory->capacity) {
        int capacity = memory->capacity ? 2 * memory->capacity : 16;
        vm_alloc *allocs = realloc(memory->allocs, (size_t)capacity * sizeof *allocs);
        if (!allocs)
            return false;
        memory->allocs = allocs;
        memory->capacity = capacity;
    }
    memmove(memory->allocs + index + 1, memory->allocs + index,
            (size_t)(memory->n_allocs - index) * sizeof *memory->allocs);
    memory->allocs[index] = alloc;
    memory->n_allocs++;
    return true;
}

/* Allocates the state of checks and counters. Returns false if there is no memory left. */
static bool watch_alloc(vm_memory *memory, vm_alloc *alloc)
{
    bool defined = alloc->flags & (VM_ALLOC_MODULE | VM_ALLOC_CONST | VM_ALLOC_MAPPED);
    if (!(memory->checks & (PTXVM_CHECK_INIT | PTXVM_CHECK_RACE)) && !memory->counters)
        return true;
    alloc->check = vm_check_region_new(alloc->address, alloc->bytes, alloc->extent, memory->checks,
                                       memory->counters, !defined);
    return alloc->check;
}

static bool make_storage(vm_alloc *alloc, uint64_t align)
{
    align = align < HOST_ALIGN ? align : HOST_ALIGN;
    /* calloc: the host provides large blocks zeroed page by page, when they are first touched. */
    alloc->storage = calloc(1, alloc->extent + align);
    if (!alloc->storage)
        return false;
    alloc->host = (uint8_t *)alloc->storage + (-(uintptr_t)alloc->storage & (align - 1));
    /* Widened loads may read the padding, but results must not depend on it: zeros would hide it if they do. */
    memset((uint8_t *)alloc->host + alloc->bytes, PADDING_BYTE, alloc->extent - alloc->bytes);
    return true;
}

/* Without the memory check the bounds are those of a GPU, which only knows the padded size. */
static uint64_t reach_of(const vm_memory *memory, uint64_t bytes, uint64_t extent)
{
    return memory->checks & PTXVM_CHECK_MEMORY ? bytes : extent;
}

/* What an allocation takes of the heap: at least this on a GPU, where malloc aligns to 16 bytes. */
static uint64_t heap_bytes(uint64_t bytes, uint32_t flags)
{
    return flags & VM_ALLOC_HEAP ? round_up(bytes, 16) : 0;
}

static bool is_within_limits(const vm_memory *memory, uint64_t bytes, uint32_t flags)
{
    if (bytes > memory->limit || round_up(bytes, GRAIN) > memory->limit - memory->used)
        return false;
    uint64_t heap = heap_bytes(bytes, flags);
    return heap == 0 ||
           (memory->heap_used <= memory->heap_limit && heap <= memory->heap_limit - memory->heap_used);
}

ptxvm_status vm_memory_alloc(vm_memory *memory, uint64_t bytes, uint64_t align, uint32_t flags,
                             uint64_t *address)
{
    bytes = bytes ? bytes : 1;
    align = align > GRAIN ? align : GRAIN;
    if (!is_within_limits(memory, bytes, flags))
        return PTXVM_ERROR_MEMORY;
    bool is_const = flags & VM_ALLOC_CONST;
    int index;
    uint64_t base = is_const ? VM_CONST_BASE : memory->base;
    if (flags & VM_ALLOC_HEAP && base < memory->heap_from)
        base = memory->heap_from;
    vm_alloc alloc = {.bytes = bytes, .extent = round_up(bytes, GRAIN), .flags = flags};
    alloc.reach = reach_of(memory, bytes, alloc.extent);
    alloc.address = base == memory->base ? find_global(memory, alloc.extent, align, &index)
                                         : find_gap(memory, base, alloc.extent, align, &index);
    if (is_const && alloc.address + alloc.extent > VM_CONST_END)
        return PTXVM_ERROR_MEMORY;
    if (!make_storage(&alloc, align))
        return PTXVM_ERROR_MEMORY;
    if (!watch_alloc(memory, &alloc) || !insert(memory, index, alloc)) {
        vm_check_region_free(alloc.check);
        free(alloc.storage);
        return PTXVM_ERROR_MEMORY;
    }
    if (flags & VM_ALLOC_HEAP)
        memory->heap_from = alloc.address + alloc.extent + GRAIN;
    memory->used += alloc.extent;
    memory->heap_used += heap_bytes(bytes, flags);
    memory->generation++;
    *address = alloc.address;
    return PTXVM_OK;
}

ptxvm_status vm_memory_map(vm_memory *memory, uint64_t address, void *host, uint64_t bytes, uint64_t extent)
{
    int index = find_below(memory, address);
    const vm_alloc *below = index >= 0 ? &memory->allocs[index] : NULL;
    const vm_alloc *above = index + 1 < memory->n_allocs ? &memory->allocs[index + 1] : NULL;
    if (!bytes || extent < bytes || address + extent < address ||
        (below && below->address + below->extent > address) || (above && address + extent > above->address) ||
        (address < VM_GLOBAL_BASE && address + extent > VM_CODE_BASE))
        return PTXVM_ERROR_ARGUMENT;
    vm_alloc alloc = {
        .address = address, .bytes = bytes, .extent = extent, .host = host, .flags = VM_ALLOC_MAPPED};
    alloc.reach = reach_of(memory, bytes, extent);
    if (!watch_alloc(memory, &alloc) || !insert(memory, index + 1, alloc)) {
        vm_check_region_free(alloc.check);
        return PTXVM_ERROR_MEMORY;
    }
    memory->generation++;
    return PTXVM_OK;
}

ptxvm_status vm_memory_free(vm_memory *memory, uint64_t address)
{
    const vm_alloc *alloc = vm_memory_at(memory, address);
    if (!alloc)
        return PTXVM_ERROR_ADDRESS;
    int index = (int)(alloc - memory->allocs);
    if (!(alloc->flags & VM_ALLOC_MAPPED))
        memory->used -= alloc->extent;
    memory->heap_used -= heap_bytes(alloc->bytes, alloc->flags);
    if (alloc->flags & VM_ALLOC_HEAP && memory->heap_from > alloc->address)
        memory->heap_from = alloc->address;
    memory->generation++;
    memset(memory->packed_to, 0, sizeof memory->packed_to);
    remember_freed(memory, alloc);
    vm_check_region_free(alloc->check);
    free(alloc->storage);
    memory->n_allocs--;
    memmove(memory->allocs + index, memory->allocs + index + 1,
            (size_t)(memory->n_allocs - index) * sizeof *memory->allocs);
    return PTXVM_OK;
}

const vm_alloc *vm_memory_nearest(const vm_memory *memory, uint64_t address)
{
    int i = find_below(memory, address);
    return i >= 0 ? &memory->allocs[i] : NULL;
}

const vm_alloc *vm_memory_at(const vm_memory *memory, uint64_t address)
{
    const vm_alloc *alloc = vm_memory_nearest(memory, address);
    return alloc && alloc->address == address ? alloc : NULL;
}

const vm_alloc *vm_memory_find(const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const vm_alloc *alloc = vm_memory_nearest(memory, address);
    if (!alloc || bytes > alloc->bytes || address - alloc->address > alloc->bytes - bytes)
        return NULL;
    return alloc;
}

const vm_alloc *vm_memory_reach(const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const vm_alloc *alloc = vm_memory_nearest(memory, address);
    if (!alloc || bytes > alloc->reach || address - alloc->address > alloc->reach - bytes)
        return NULL;
    return alloc;
}

static uint8_t *host_range(const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const vm_alloc *alloc = vm_memory_find(memory, address, bytes);
    return alloc ? alloc->host + (address - alloc->address) : NULL;
}

void vm_memory_define(vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const vm_alloc *alloc = vm_memory_find(memory, address, bytes);
    if (alloc && alloc->check)
        vm_check_region_define(alloc->check, address - alloc->address, bytes);
}

ptxvm_status vm_memory_write(vm_memory *memory, uint64_t to, const void *from, uint64_t bytes)
{
    uint8_t *host = host_range(memory, to, bytes);
    if (bytes && !host)
        return PTXVM_ERROR_ADDRESS;
    if (bytes) {
        memcpy(host, from, bytes);
        vm_memory_define(memory, to, bytes);
    }
    return PTXVM_OK;
}

ptxvm_status vm_memory_read(vm_memory *memory, void *to, uint64_t from, uint64_t bytes)
{
    const uint8_t *host = host_range(memory, from, bytes);
    if (bytes && !host)
        return PTXVM_ERROR_ADDRESS;
    if (bytes)
        memcpy(to, host, bytes);
    return PTXVM_OK;
}

ptxvm_status vm_memory_fill(vm_memory *memory, uint64_t to, uint8_t value, uint64_t bytes)
{
    uint8_t *host = host_range(memory, to, bytes);
    if (bytes && !host)
        return PTXVM_ERROR_ADDRESS;
    if (bytes) {
        memset(host, value, bytes);
        vm_memory_define(memory, to, bytes);
    }
    return PTXVM_OK;
}
