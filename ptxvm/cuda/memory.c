/* Allocations of every kind, by address, on all devices. Device memory is in the vm of its device; host
 * memory (and managed memory) is mapped into every vm at its own address. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* MAP_ANONYMOUS is not part of POSIX, but exists on every system that we support. */
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS 0x20
#endif

static cuda_memory *table; /* sorted by address */
static size_t n_memories, capacity;
static uint64_t last_id;
/* Host memory is requested at fixed addresses, so that they are the same in every run if they are free. */
#define HOST_BASE UINT64_C(0x200000000000)
static uint64_t next_host = HOST_BASE;

/* ---- The table ---- */

static size_t index_above(CUdeviceptr address)
{
    size_t low = 0, high = n_memories;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

cuda_memory *memory_find(CUdeviceptr address)
{
    size_t i = index_above(address);
    if (!i)
        return NULL;
    cuda_memory *m = &table[i - 1];
    return address - m->address < m->bytes ? m : NULL;
}

static bool insert(cuda_memory m)
{
    if (n_memories == capacity) {
        size_t wanted = capacity ? 2 * capacity : 64;
        cuda_memory *bigger = realloc(table, wanted * sizeof *table);
        if (!bigger)
            return false;
        table = bigger;
        capacity = wanted;
    }
    size_t i = index_above(m.address);
    memmove(table + i + 1, table + i, (n_memories - i) * sizeof *table);
    m.id = ++last_id;
    m.preferred = m.prefetched = CU_DEVICE_INVALID;
    table[i] = m;
    n_memories++;
    return true;
}

bool memory_is_device(CUdeviceptr address, int *device)
{
    if (address < CUDA_DEVICE_BASE ||
        (address - CUDA_DEVICE_BASE) / CUDA_DEVICE_STRIDE >= (uint64_t)cuda.n_devices)
        return false;
    *device = (int)((address - CUDA_DEVICE_BASE) / CUDA_DEVICE_STRIDE);
    return true;
}

/* ---- Access ---- */

static bool lives_in_vm(const cuda_memory *m)
{
    return m->kind == MEMORY_DEVICE || m->kind == MEMORY_POOL;
}

static bool reaches(int from, const cuda_memory *m)
{
    if (!lives_in_vm(m))
        return true;
    if (from == m->device)
        return false; /* it is already mapped */
    return cuda.peers[from] >> m->device & 1 || (m->pool && m->pool->access[from]);
}

static void unmap_from(int device, const cuda_memory *m)
{
    ptxvm_unmap(cuda.devices[device].vm, m->address);
}

/* All memory is padded except registered memory, which belongs to the program. */
static uint64_t extent_of(const cuda_memory *m)
{
    return m->kind == MEMORY_REGISTERED ? m->bytes
                                        : (m->bytes + PTXVM_PADDING - 1) / PTXVM_PADDING * PTXVM_PADDING;
}

static ptxvm_status map_into(int device, const cuda_memory *m)
{
    void *host = lives_in_vm(m) ? ptxvm_host(cuda.devices[m->device].vm, m->address, m->bytes)
                                : (void *)(uintptr_t)m->address;
    return ptxvm_map(cuda.devices[device].vm, m->address, host, m->bytes, extent_of(m));
}

static ptxvm_status map_all(const cuda_memory *m)
{
    for (int i = 0; i < cuda.n_devices; i++) {
        ptxvm_status status = reaches(i, m) ? map_into(i, m) : PTXVM_OK;
        if (!status)
            continue;
        while (i-- > 0)
            if (reaches(i, m))
                unmap_from(i, m);
        return status;
    }
    return PTXVM_OK;
}

typedef struct peer_query {
    int from, to;
    bool wanted;
} peer_query;

static void ask_context(void *object, void *user)
{
    CUcontext c = object;
    peer_query *q = user;
    q->wanted |= c->device->ordinal == q->from && (c->peers >> q->to & 1);
}

CUresult memory_peer(int from, int to, bool on)
{
    /* Contexts of one device share its vm: what one of them enabled stays in effect while another has it
     * enabled too. */
    peer_query q = {from, to, on};
    object_each(OBJECT_CONTEXT, ask_context, &q);
    on = q.wanted;
    if (on == (cuda.peers[from] >> to & 1))
        return CUDA_SUCCESS;
    for (size_t i = 0; i < n_memories; i++) {
        const cuda_memory *m = &table[i];
        if (!lives_in_vm(m) || m->device != to || (m->pool && m->pool->access[from]))
            continue;
        if (on && map_into(from, m))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (!on)
            unmap_from(from, m);
    }
    cuda.peers[from] ^= 1u << to;
    return CUDA_SUCCESS;
}

/* ---- Creation ---- */

static CUresult new_in_vm(cuda_memory *m)
{
    ptxvm *vm = cuda.devices[m->device].vm;
    ptxvm_address address;
    if (ptxvm_alloc(vm, m->bytes, &address))
        return cuda_log(CUDA_ERROR_OUT_OF_MEMORY, "%s", ptxvm_last_error(vm));
    m->address = address;
    return CUDA_SUCCESS;
}

static size_t page_up(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static CUresult new_on_host(cuda_memory *m)
{
    if (m->bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t size = page_up(m->bytes);
    void *p =
        mmap((void *)(uintptr_t)next_host, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->address = (CUdeviceptr)(uintptr_t)p;
    next_host += size + 4096;
    return CUDA_SUCCESS;
}

static void give_back(const cuda_memory *m)
{
    if (lives_in_vm(m))
        ptxvm_free(cuda.devices[m->device].vm, m->address);
    else if (m->kind != MEMORY_REGISTERED)
        munmap((void *)(uintptr_t)m->address, page_up(m->bytes));
}

static CUresult create(cuda_memory m, CUdeviceptr *address)
{
    CUresult result = lives_in_vm(&m)               ? new_in_vm(&m)
                      : m.kind == MEMORY_REGISTERED ? CUDA_SUCCESS
                                                    : new_on_host(&m);
    if (result)
        return result;
    ptxvm_status status = map_all(&m);
    if (status) {
        give_back(&m);
        return status == PTXVM_ERROR_ARGUMENT ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                              : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!insert(m)) {
        for (int i = 0; i < cuda.n_devices; i++)
            unmap_from(i, &m);
        give_back(&m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = m.address;
    return CUDA_SUCCESS;
}

CUresult memory_new(CUcontext context, memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *address)
{
    return create((cuda_memory){.bytes = bytes,
                                .kind = kind,
                                .flags = flags,
                                .device = context->device->ordinal,
                                .context = context,
                                .address = kind == MEMORY_REGISTERED ? *address : 0},
                  address);
}

CUresult memory_new_in_pool(CUcontext context, CUmemoryPool pool, size_t bytes, CUdeviceptr *address)
{
    return create(
        (cuda_memory){
            .bytes = bytes, .kind = MEMORY_POOL, .device = pool->device, .context = context, .pool = pool},
        address);
}

void memory_pool_access(CUmemoryPool pool, int device, uint8_t flags)
{
    bool before = pool->access[device], after = flags != 0;
    for (size_t i = 0; i < n_memories && device != pool->device; i++) {
        const cuda_memory *m = &table[i];
        if (m->pool != pool || (cuda.peers[device] >> pool->device & 1))
            continue;
        if (after && !before)
            map_into(device, m);
        else if (before && !after)
            unmap_from(device, m);
    }
    pool->access[device] = flags;
}

void memory_forget_pool(CUmemoryPool pool)
{
    for (size_t i = 0; i < n_memories; i++)
        if (table[i].pool == pool) {
            for (int d = 0; d < cuda.n_devices; d++)
                if (d != pool->device && pool->access[d] && !(cuda.peers[d] >> pool->device & 1))
                    unmap_from(d, &table[i]);
            table[i].pool = NULL;
        }
}

CUresult memory_free(CUdeviceptr address)
{
    cuda_memory *found = memory_find(address);
    if (!found || found->address != address)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_memory m = *found;
    for (int i = 0; i < cuda.n_devices; i++)
        if (reaches(i, &m))
            unmap_from(i, &m);
    give_back(&m);
    n_memories--;
    size_t i = (size_t)(found - table);
    memmove(table + i, table + i + 1, (n_memories - i) * sizeof *table);
    return CUDA_SUCCESS;
}

uint64_t memory_of_graphs(int device)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n_memories; i++)
        if (table[i].device == device && table[i].graph_refs)
            bytes += table[i].bytes;
    return bytes;
}

void memory_graph_ref(CUdeviceptr address, uint64_t id, int change)
{
    cuda_memory *m = memory_find(address);
    if (!m || m->id != id || !id)
        return;
    m->graph_refs += (unsigned)change;
    if (!m->graph_refs)
        pool_free(address);
}

static void log_leaks(CUcontext context)
{
    if (!(cuda.checks & PTXVM_CHECK_LEAK))
        return;
    for (size_t i = 0; i < n_memories; i++)
        if (table[i].context == context && !table[i].freed && !table[i].graph_refs)
            cuda_log(CUDA_SUCCESS, "leak: %zu bytes at 0x%llx were not freed when their context ended",
                     table[i].bytes, table[i].address);
}

/* ---- Memory from malloc in kernels: it belongs to the device, and is freed with its last context ---- */

typedef struct same_device {
    CUcontext context;
    int others;
} same_device;

static void count_other(void *object, void *user)
{
    same_device *s = user;
    CUcontext other = object;
    s->others += other != s->context && other->device == s->context->device;
}

#define SHOWN_LEAKS 10

static void log_heap(ptxvm *vm)
{
    ptxvm_leak *leaks = NULL;
    int heap = 0, n = cuda.checks & PTXVM_CHECK_LEAK ? ptxvm_leaks(vm, NULL, 0) : 0;
    if (n && (leaks = calloc((size_t)n, sizeof *leaks)))
        ptxvm_leaks(vm, leaks, n);
    for (int i = 0; leaks && i < n; i++)
        if (leaks[i].heap && ++heap <= SHOWN_LEAKS)
            cuda_log(CUDA_SUCCESS, "leak: %llu bytes of a kernel's malloc at 0x%llx were not freed",
                     (unsigned long long)leaks[i].bytes, (unsigned long long)leaks[i].address);
    if (heap > SHOWN_LEAKS)
        cuda_log(CUDA_SUCCESS, "leak: and %d more of kernels' malloc", heap - SHOWN_LEAKS);
    free(leaks);
}

static void end_heap(CUcontext context)
{
    same_device s = {.context = context};
    object_each(OBJECT_CONTEXT, count_other, &s);
    if (s.others)
        return;
    log_heap(context->device->vm);
    ptxvm_heap_clear(context->device->vm);
}

void memory_free_context(CUcontext context)
{
    log_leaks(context);
    end_heap(context);
    for (size_t i = n_memories; i-- > 0;)
        if (table[i].context == context && table[i].kind != MEMORY_POOL)
            memory_free(table[i].address);
        else if (table[i].context == context)
            pool_free(table[i].address);
}

void memory_clear(void)
{
    while (n_memories)
        memory_free(table[n_memories - 1].address);
    free(table);
    table = NULL;
    capacity = 0;
    next_host = HOST_BASE;
}

/* ---- Device memory ---- */

CUresult do_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (!address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_new(context_current(), MEMORY_DEVICE, bytes, 0, address);
}

CUresult do_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                               unsigned element)
{
    if (!address || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (width > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t row = (width + 511) & ~(size_t)511;
    if (height > SIZE_MAX / row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_new(context_current(), MEMORY_DEVICE, row * height, 0, address);
    if (!result)
        *pitch = row;
    return result;
}

/* Queued work must not use freed memory: as on a GPU, freeing waits. */
CUresult do_cuMemFree_v2(CUdeviceptr address)
{
    if (!address)
        return CUDA_SUCCESS;
    cuda_memory *m = memory_find(address);
    if (!m || m->address != address || m->kind == MEMORY_HOST || m->kind == MEMORY_REGISTERED || m->freed)
        return cuda_log(CUDA_ERROR_INVALID_VALUE,
                        "cuMemFree: no allocation begins at 0x%llx (freed already?)", address);
    CUresult result = context_wait(m->context);
    if (result)
        return result;
    m = memory_find(address);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (m->graph_refs) /* the graph keeps it for its next launch */
        return CUDA_SUCCESS;
    return m->kind == MEMORY_POOL ? pool_free(address) : memory_free(address);
}

CUresult do_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    uint64_t f, t;
    ptxvm_memory_info(context_current()->device->vm, &f, &t);
    if (free_bytes)
        *free_bytes = f;
    if (total)
        *total = t;
    return CUDA_SUCCESS;
}

/* ---- Host memory ---- */

CUresult do_cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    CUdeviceptr address = 0;
    if (!pointer || !bytes || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = memory_new(context_current(), MEMORY_HOST, bytes, flags, &address);
    if (!result)
        *pointer = (void *)(uintptr_t)address;
    return result;
}

CUresult do_cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return do_cuMemHostAlloc(pointer, bytes, 0);
}

CUresult do_cuMemFreeHost(void *pointer)
{
    if (!pointer)
        return CUDA_SUCCESS;
    cuda_memory *m = memory_find((CUdeviceptr)(uintptr_t)pointer);
    if (!m || m->kind != MEMORY_HOST || m->address != (CUdeviceptr)(uintptr_t)pointer)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = context_wait(m->context);
    return result ? result : memory_free((CUdeviceptr)(uintptr_t)pointer);
}

CUresult do_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
    if (!pointer || !bytes || address + bytes < address || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    return memory_new(context_current(), MEMORY_REGISTERED, bytes, flags, &address);
}

CUresult do_cuMemHostUnregister(void *pointer)
{
    cuda_memory *m = memory_find((CUdeviceptr)(uintptr_t)pointer);
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!m || m->kind != MEMORY_REGISTERED || m->address != (CUdeviceptr)(uintptr_t)pointer)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    CUresult result = context_wait(m->context);
    return result ? result : memory_free((CUdeviceptr)(uintptr_t)pointer);
}

static cuda_memory *find_host(const void *pointer)
{
    cuda_memory *m = memory_find((CUdeviceptr)(uintptr_t)pointer);
    return m && (m->kind == MEMORY_HOST || m->kind == MEMORY_REGISTERED) ? m : NULL;
}

CUresult do_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags)
{
    if (!address || flags || !find_host(pointer))
        return CUDA_ERROR_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult do_cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    const cuda_memory *m = find_host(pointer);
    if (!flags || !m)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = m->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult do_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    if (!address || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t f, total;
    ptxvm_memory_info(context_current()->device->vm, &f, &total);
    if (bytes > total)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return memory_new(context_current(), MEMORY_MANAGED, bytes, flags, address);
}
