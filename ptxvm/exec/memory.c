/* The table of allocations: where device addresses lie in the host's memory. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN UINT64_C(256)

static uint64_t round_up(uint64_t value)
{
    return (value + ALIGN - 1) & ~(ALIGN - 1);
}

void vm_memory_init(vm_memory *memory, uint64_t limit)
{
    *memory = (vm_memory){.limit = limit};
}

void vm_memory_free_all(vm_memory *memory)
{
    for (int i = 0; i < memory->n_allocs; i++)
        free(memory->allocs[i].storage);
    free(memory->allocs);
    *memory = (vm_memory){.limit = memory->limit, .generation = memory->generation + 1};
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

/* The lowest free place at or above base, and where in the table it belongs. The byte behind an allocation is
 * never another's, so that an access just past the end always faults. */
static uint64_t find_gap(const vm_memory *memory, uint64_t base, uint64_t bytes, int *index)
{
    uint64_t place = base;
    int i = find_below(memory, base - 1) + 1;
    for (; i < memory->n_allocs; i++) {
        if (memory->allocs[i].address - place >= bytes + ALIGN && memory->allocs[i].address > place)
            break;
        place = round_up(memory->allocs[i].address + memory->allocs[i].bytes) + ALIGN;
    }
    *index = i;
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

bool vm_memory_alloc(vm_memory *memory, uint64_t bytes, uint32_t flags, uint64_t *address)
{
    if (!bytes)
        bytes = 1;
    if (bytes > memory->limit || round_up(bytes) > memory->limit - memory->used)
        return false;
    bool is_const = flags & VM_ALLOC_CONST;
    int index;
    uint64_t place = find_gap(memory, is_const ? VM_CONST_BASE : VM_GLOBAL_BASE, round_up(bytes), &index);
    if (is_const && place + bytes > VM_CONST_END)
        return false;
    /* calloc: the host gives large blocks zeroed page by page, when they are first touched. */
    uint8_t *storage = calloc(1, bytes + ALIGN);
    vm_alloc alloc = {place, bytes, NULL, storage, flags};
    alloc.host = storage ? storage + (-(uintptr_t)storage & (ALIGN - 1)) : NULL;
    if (!storage || !insert(memory, index, alloc)) {
        free(storage);
        return false;
    }
    memory->used += round_up(bytes);
    memory->generation++;
    *address = place;
    return true;
}

const vm_alloc *vm_memory_at(const vm_memory *memory, uint64_t address)
{
    int i = find_below(memory, address);
    return i >= 0 && memory->allocs[i].address == address ? &memory->allocs[i] : NULL;
}

bool vm_memory_free(vm_memory *memory, uint64_t address)
{
    const vm_alloc *alloc = vm_memory_at(memory, address);
    if (!alloc)
        return false;
    int index = (int)(alloc - memory->allocs);
    memory->used -= round_up(alloc->bytes);
    memory->generation++;
    free(alloc->storage);
    memory->n_allocs--;
    memmove(memory->allocs + index, memory->allocs + index + 1,
            (size_t)(memory->n_allocs - index) * sizeof *memory->allocs);
    return true;
}

const vm_alloc *vm_memory_find(const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    int i = find_below(memory, address);
    if (i < 0)
        return NULL;
    const vm_alloc *alloc = &memory->allocs[i];
    uint64_t offset = address - alloc->address;
    return bytes <= alloc->bytes && offset <= alloc->bytes - bytes ? alloc : NULL;
}

uint8_t *vm_memory_host(const vm_memory *memory, uint64_t address, uint64_t bytes)
{
    const vm_alloc *alloc = vm_memory_find(memory, address, bytes);
    return alloc ? alloc->host + (address - alloc->address) : NULL;
}
