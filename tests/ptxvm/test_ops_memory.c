/* The table of device memory: places, limits, what is inside and what is not. */
#include "test.h"

#include <string.h>

#include "ptxvm/exec/memory.h"

static uint64_t allocate(vm_memory *memory, uint64_t bytes)
{
    uint64_t address = 0;
    CHECK_EQ_I64(vm_memory_alloc(memory, bytes, 1, 0, &address), PTXVM_OK);
    return address;
}

TEST_CASE(OpsMemory, PlacesAreTheSameInEveryRun)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t a = allocate(memory, 100), b = allocate(memory, 512), c = allocate(memory, 1);
    CHECK_EQ_U64(a, UINT64_C(0x200000000));
    CHECK_EQ_U64(b, UINT64_C(0x200000400)); /* padded to 512 bytes, and 512 unused ones */
    CHECK_EQ_U64(c, UINT64_C(0x200000800));
    CHECK_EQ_I64(vm_memory_free(memory, b), PTXVM_OK);
    CHECK_EQ_U64(allocate(memory, 513), UINT64_C(0x200000C00)); /* does not fit into the hole */
    CHECK_EQ_U64(allocate(memory, 200), b);
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, AlignsAddressAndHost)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t address = 0;
    allocate(memory, 8);
    CHECK_EQ_I64(vm_memory_alloc(memory, 10, 4096, 0, &address), PTXVM_OK);
    CHECK_EQ_U64(address, UINT64_C(0x200001000));
    CHECK_EQ_U64((uintptr_t)vm_memory_at(memory, address)->host % 4096, 0);
    CHECK_EQ_U64(allocate(memory, 8), UINT64_C(0x200000400)); /* the room before it is not lost */
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, ConstantsAreBelow4GiB)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t address = 0;
    allocate(memory, 8);
    CHECK_EQ_I64(vm_memory_alloc(memory, 16, 4, VM_ALLOC_CONST, &address), PTXVM_OK);
    CHECK_EQ_U64(address, UINT64_C(0x20000000));
    CHECK_EQ_I64(vm_memory_alloc(memory, 16, 4, VM_ALLOC_CONST, &address), PTXVM_OK);
    CHECK_EQ_U64(address, UINT64_C(0x20000400));
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, FindsExactlyWhatIsInside)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t a = allocate(memory, 100);
    CHECK(vm_memory_find(memory, a, 100) != NULL);
    CHECK(vm_memory_find(memory, a + 99, 1) != NULL);
    CHECK(vm_memory_find(memory, a + 100, 1) == NULL);
    CHECK(vm_memory_find(memory, a + 97, 4) == NULL);
    CHECK(vm_memory_find(memory, a - 1, 1) == NULL);
    CHECK(vm_memory_find(memory, 0, 1) == NULL);
    CHECK(vm_memory_find(memory, a, UINT64_MAX) == NULL);
    CHECK(vm_memory_at(memory, a + 4) == NULL);
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, ReachIsThePaddingUnlessChecked)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t a = allocate(memory, 100), b = allocate(memory, 1024);
    CHECK(vm_memory_reach(memory, a + 508, 4) != NULL);
    CHECK(vm_memory_reach(memory, a + 509, 4) == NULL);
    CHECK(vm_memory_reach(memory, b + 1024, 1) == NULL);
    memory->checks = PTXVM_CHECK_MEMORY;
    uint64_t c = allocate(memory, 100);
    CHECK(vm_memory_reach(memory, c + 96, 4) != NULL);
    CHECK(vm_memory_reach(memory, c + 97, 4) == NULL);
    vm_memory_destroy(memory);
}

/* The owner of mapped memory says what of the padding is its own: here none, then 8 bytes. */
TEST_CASE(OpsMemory, MappedMemoryHasThePaddingOfItsOwner)
{
    static uint64_t words[4];
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t at = UINT64_C(0x700000000000);
    CHECK_EQ_I64(vm_memory_map(memory, at, words, 24, 24), PTXVM_OK);
    CHECK(vm_memory_reach(memory, at + 24, 1) == NULL);
    CHECK_EQ_I64(vm_memory_free(memory, at), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_map(memory, at, words, 24, 32), PTXVM_OK);
    CHECK(vm_memory_reach(memory, at + 24, 8) != NULL);
    CHECK(vm_memory_find(memory, at + 24, 8) == NULL);
    CHECK_EQ_I64(vm_memory_map(memory, at + 24, words, 8, 8), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(vm_memory_map(memory, at + 64, words, 8, 4), PTXVM_ERROR_ARGUMENT);
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, StaysWithinTheLimit)
{
    vm_memory *memory = vm_memory_create(1024);
    uint64_t address = 0;
    uint64_t a = allocate(memory, 512);
    CHECK_EQ_I64(vm_memory_alloc(memory, 513, 1, 0, &address), PTXVM_ERROR_MEMORY);
    CHECK_EQ_I64(vm_memory_alloc(memory, UINT64_MAX, 1, 0, &address), PTXVM_ERROR_MEMORY);
    allocate(memory, 512);
    CHECK_EQ_I64(vm_memory_alloc(memory, 1, 1, 0, &address), PTXVM_ERROR_MEMORY);
    CHECK_EQ_I64(vm_memory_free(memory, a), PTXVM_OK);
    CHECK_EQ_U64(allocate(memory, 0), a);
    vm_memory_destroy(memory);
}

/* Rounded up, such a size is 0: it fitted, and its bytes were those of the host. */
TEST_CASE(OpsMemory, SizesThatWrapWithoutALimit)
{
    vm_memory *memory = vm_memory_create(UINT64_MAX);
    uint64_t address = 0;
    for (uint64_t below = 0; below < 1024; below += 256)
        CHECK_EQ_I64(vm_memory_alloc(memory, UINT64_MAX - below, 1, VM_ALLOC_HEAP, &address),
                     PTXVM_ERROR_MEMORY);
    CHECK_EQ_U64(address, 0);
    vm_memory_destroy(memory);
}

static uint64_t allocate_on_heap(vm_memory *memory, uint64_t bytes)
{
    uint64_t address = 0;
    CHECK_EQ_I64(vm_memory_alloc(memory, bytes, 1, VM_ALLOC_HEAP, &address), PTXVM_OK);
    return address;
}

/* A kernel's malloc takes the place of what was freed, and otherwise the next one, whatever the sizes are. */
TEST_CASE(OpsMemory, HeapOfKernels)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t a = allocate(memory, 8), b = allocate_on_heap(memory, 8), c = allocate_on_heap(memory, 3000),
             d = allocate_on_heap(memory, 8);
    CHECK(a < b && b < c && c < d);
    CHECK_EQ_I64(vm_memory_free(memory, c), PTXVM_OK);
    CHECK_EQ_U64(allocate_on_heap(memory, 8), c);
    CHECK_EQ_U64(allocate_on_heap(memory, 8), c + 2 * PTXVM_PADDING);
    CHECK(allocate_on_heap(memory, 3000) > d);
    CHECK_EQ_I64(vm_memory_free(memory, a), PTXVM_OK); /* the host's, not the heap's */
    CHECK(allocate_on_heap(memory, 8) > d);
    CHECK_EQ_U64(allocate(memory, 8), a);
    vm_memory_destroy(memory);
}

TEST_CASE(OpsMemory, CopiesOfTheHost)
{
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t a = allocate(memory, 10);
    uint8_t bytes[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, back[10];
    const uint8_t expected[10] = {1, 2, 3, 7, 7, 7, 7, 8, 9, 10};
    CHECK_EQ_I64(vm_memory_read(memory, back, a, 10), PTXVM_OK);
    CHECK_EQ_MEM(back, (const uint8_t[10]){0}, 10);
    CHECK_EQ_I64(vm_memory_write(memory, a, bytes, 10), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_fill(memory, a + 3, 7, 4), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_read(memory, back, a, 10), PTXVM_OK);
    CHECK_EQ_MEM(back, expected, 10);
    CHECK_EQ_I64(vm_memory_write(memory, a + 1, bytes, 10), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(vm_memory_read(memory, back, a + 10, 1), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(vm_memory_free(memory, a + 1), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(vm_memory_free(memory, a), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_read(memory, back, a, 1), PTXVM_ERROR_ADDRESS);
    CHECK_EQ_I64(vm_memory_free(memory, a), PTXVM_ERROR_ADDRESS);
    vm_memory_destroy(memory);
}
