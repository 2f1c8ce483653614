/* Memory of every kind, and copies of every shape. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

TEST_CASE(CudaMemory, AllocatesAndFrees)
{
    CUdeviceptr a = 0, b = 0, base = 0;
    size_t bytes = 0, free_bytes = 0, total = 0;
    REQUIRE(driver_open_context("PTXVM_MEMORY=1M"));
    CU(cu.cuMemAlloc_v2(&a, 1000));
    CHECK_EQ_U64(a, UINT64_C(0x200000000)); /* the same in every run */
    CU(cu.cuMemAlloc_v2(&b, 1000));
    CU(cu.cuMemGetAddressRange_v2(&base, &bytes, a + 999));
    CHECK_EQ_U64(base, a);
    CHECK_EQ_U64(bytes, 1000);
    CU_IS(cu.cuMemGetAddressRange_v2(&base, &bytes, a + 1000), CUDA_ERROR_NOT_FOUND);
    CU(cu.cuMemGetInfo_v2(&free_bytes, &total));
    CHECK_EQ_U64(total, 1 << 20);
    CHECK_EQ_U64(free_bytes, (1 << 20) - 2048);
    CU_IS(cu.cuMemAlloc_v2(&base, 1 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    CU_IS(cu.cuMemAlloc_v2(&base, 0), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFree_v2(a));
    CU_IS(cu.cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemFree_v2(b + 4), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFree_v2(0));
    size_t pitch = 0;
    CU(cu.cuMemAllocPitch_v2(&a, &pitch, 100, 7, 4));
    CHECK_EQ_U64(pitch, 512);
    CU_IS(cu.cuMemAllocPitch_v2(&a, &pitch, 100, 7, 3), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaMemory, CopiesInALineEveryWay)
{
    uint8_t in[300], out[300];
    CUdeviceptr a, b;
    REQUIRE(driver_open_context(NULL));
    for (int i = 0; i < 300; i++)
        in[i] = (uint8_t)(i * 7);
    CU(cu.cuMemAlloc_v2(&a, 300));
    CU(cu.cuMemAlloc_v2(&b, 300));
    CU(cu.cuMemcpyHtoD_v2(a, in, 300));
    CU(cu.cuMemcpyDtoD_v2(b, a, 300));
    CU(cu.cuMemcpyDtoH_v2(out, b, 300));
    CHECK_EQ_MEM(out, in, 300);
    CU(cu.cuMemcpy(b + 1, a, 299));
    CU(cu.cuMemcpy((CUdeviceptr)(uintptr_t)out, b, 300));
    CHECK_EQ_MEM(out + 1, in, 299);
    CU(cu.cuMemcpyDtoD_v2(a + 4, a, 200)); /* overlapping */
    CU(cu.cuMemcpyDtoH_v2(out, a + 4, 200));
    CHECK_EQ_MEM(out, in, 200);
    CU_IS(cu.cuMemcpyHtoD_v2(a, in, 301), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemcpyHtoD_v2(a + 300, in, 1), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemcpyHtoD_v2(a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemcpyDtoH_v2(out, 0x1234, 1), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemcpyHtoD_v2(a, in, 0));
    driver_close();
}

TEST_CASE(CudaMemory, FillsInEveryWidth)
{
    uint32_t out[64];
    CUdeviceptr p;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuMemAlloc_v2(&p, 256));
    CU(cu.cuMemsetD8_v2(p, 0x11, 256));
    CU(cu.cuMemsetD16_v2(p + 2, 0x2233, 3));
    CU(cu.cuMemsetD32_v2(p + 16, 0x44556677, 2));
    CU(cu.cuMemcpyDtoH_v2(out, p, 256));
    CHECK_EQ_U32(out[0], 0x22331111);
    CHECK_EQ_U32(out[1], 0x22332233);
    CHECK_EQ_U32(out[2], 0x11111111);
    CHECK_EQ_U32(out[4], 0x44556677);
    CHECK_EQ_U32(out[5], 0x44556677);
    CHECK_EQ_U32(out[6], 0x11111111);
    CU(cu.cuMemsetD2D8_v2(p, 64, 0xaa, 3, 2));
    CU(cu.cuMemsetD2D16_v2(p + 128, 32, 0xbbcc, 2, 2));
    CU(cu.cuMemsetD2D32_v2(p + 192, 32, 0xdeadbeef, 1, 2));
    CU(cu.cuMemcpyDtoH_v2(out, p, 256));
    CHECK_EQ_U32(out[0], 0x22aaaaaa);
    CHECK_EQ_U32(out[16], 0x11aaaaaa);
    CHECK_EQ_U32(out[32], 0xbbccbbcc);
    CHECK_EQ_U32(out[40], 0xbbccbbcc);
    CHECK_EQ_U32(out[41], 0x11111111);
    CHECK_EQ_U32(out[48], 0xdeadbeef);
    CHECK_EQ_U32(out[56], 0xdeadbeef);
    CU_IS(cu.cuMemsetD32_v2(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemsetD8_v2(p, 0, 257), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemsetD2D32_v2(p, 4, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemsetD32Async(p, 5, 64, NULL));
    CU(cu.cuStreamSynchronize(NULL));
    CHECK_EQ_U32(read_u32(p + 252), 5);
    driver_close();
}

TEST_CASE(CudaMemory, CopiesRectanglesAndBoxes)
{
    uint8_t in[10 * 20], out[10 * 20], box[4 * 5 * 6];
    CUdeviceptr p;
    size_t pitch;
    REQUIRE(driver_open_context(NULL));
    for (int i = 0; i < 200; i++)
        in[i] = (uint8_t)i;
    CU(cu.cuMemAllocPitch_v2(&p, &pitch, 20, 10, 4));
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = in,
                       .srcPitch = 20,
                       .srcXInBytes = 3,
                       .srcY = 2,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = p,
                       .dstPitch = pitch,
                       .dstXInBytes = 1,
                       .dstY = 4,
                       .WidthInBytes = 5,
                       .Height = 3};
    CU(cu.cuMemcpy2D_v2(&c));
    memset(out, 0xee, sizeof out);
    CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = p,
                          .srcPitch = pitch,
                          .srcXInBytes = 1,
                          .srcY = 4,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 20,
                          .WidthInBytes = 5,
                          .Height = 3};
    CU(cu.cuMemcpy2DUnaligned_v2(&back));
    for (int y = 0; y < 3; y++)
        CHECK_EQ_MEM(out + 20 * y, in + 20 * (y + 2) + 3, 5);
    CHECK_EQ_U32(out[5], 0xee);
    c.dstPitch = 4;
    CU_IS(cu.cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
    c.dstPitch = pitch;
    c.dstY = 8;
    CU_IS(cu.cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    CU_IS(cu.cuMemcpy2D_v2(&c), CUDA_ERROR_NOT_SUPPORTED);
    CU_IS(cu.cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 120; i++)
        box[i] = (uint8_t)(i + 1);
    CUDA_MEMCPY3D b = {.srcMemoryType = CU_MEMORYTYPE_HOST, /* 4 bytes, 5 rows, 6 slices */
                       .srcHost = box,
                       .srcPitch = 4,
                       .srcHeight = 5,
                       .srcXInBytes = 1,
                       .srcY = 2,
                       .srcZ = 3,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = p,
                       .dstPitch = 8,
                       .dstHeight = 4,
                       .WidthInBytes = 2,
                       .Height = 3,
                       .Depth = 2};
    CU(cu.cuMemcpy3D_v2(&b));
    CU(cu.cuMemcpyDtoH_v2(out, p, 64));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            CHECK_EQ_MEM(out + 32 * z + 8 * y, box + 20 * (z + 3) + 4 * (y + 2) + 1, 2);
    driver_close();
}

TEST_CASE(CudaMemory, OfTheHostIsReachedByKernels)
{
    static uint32_t registered[4] = {5, 6, 7, 8};
    uint32_t *host = NULL;
    CUdeviceptr managed = 0, device = 0;
    CUmodule m = NULL;
    unsigned flags = 0;
    REQUIRE(driver_open_context(NULL));
    CUfunction bump = test_function(&m, "bump");
    CU(cu.cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_PORTABLE));
    CU(cu.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    CU(cu.cuMemHostRegister_v2(registered, sizeof registered, CU_MEMHOSTREGISTER_DEVICEMAP));
    CU_IS(cu.cuMemHostRegister_v2(registered + 1, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    host[0] = 1;
    *(uint32_t *)(uintptr_t)managed = 2;
    CU(cu.cuMemHostGetDevicePointer_v2(&device, host, 0));
    CHECK_EQ_U64(device, (uintptr_t)host);
    CU(cu.cuMemHostGetFlags(&flags, host));
    CHECK_EQ_U32(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr where[] = {device, managed, (uintptr_t)(registered + 2)};
    for (int i = 0; i < 3; i++) {
        uint32_t value = 9;
        void *params[] = {&where[i], &value};
        CU(launch_one(bump, NULL, params));
    }
    CU(cu.cuCtxSynchronize());
    CHECK_EQ_U32(host[0], 19);
    CHECK_EQ_U32(*(uint32_t *)(uintptr_t)managed, 29);
    CHECK_EQ_U32(registered[2], 79);
    CU(cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)host, registered, 16));
    CHECK_EQ_U32(host[3], 8);
    CU_IS(cu.cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFreeHost(host));
    CU_IS(cu.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFree_v2(managed));
    CU(cu.cuMemHostUnregister(registered));
    CU_IS(cu.cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    driver_close();
}

TEST_CASE(CudaMemory, PointersSayWhatTheyAre)
{
    CUdeviceptr p, q;
    CUcontext context = NULL;
    unsigned type = 0, managed = 9;
    int ordinal = -1;
    size_t size = 0;
    void *host = NULL;
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuMemAlloc_v2(&p, 100));
    CU(cu.cuMemAllocHost_v2(&host, 50));
    CU(cu.cuMemAllocManaged(&q, 30, CU_MEM_ATTACH_GLOBAL));
    CU(cu.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p + 50));
    CHECK(context == driver_context);
    CU(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    CHECK_EQ_U32(type, CU_MEMORYTYPE_DEVICE);
    CU(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
    CHECK_EQ_U32(type, CU_MEMORYTYPE_HOST);
    CU(cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, q));
    CHECK_EQ_U32(managed, 1);
    CU_IS(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234),
          CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *out[] = {&type, &ordinal, &size};
    CU(cu.cuPointerGetAttributes(3, list, out, p + 99));
    CHECK_EQ_I64(ordinal, 0);
    CHECK_EQ_U64(size, 100);
    CU(cu.cuPointerGetAttributes(3, list, out, 0x1234));
    CHECK_EQ_U32(type, 0);
    CHECK_EQ_I64(ordinal, -2);
    CU(cu.cuMemAdvise(q, 30, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
    CU(cu.cuMemPrefetchAsync(q, 30, CU_DEVICE_CPU, NULL));
    CU(cu.cuMemRangeGetAttribute(&ordinal, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, q, 30));
    CHECK_EQ_I64(ordinal, 0);
    CU(cu.cuMemRangeGetAttribute(&ordinal, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, q, 30));
    CHECK_EQ_I64(ordinal, CU_DEVICE_CPU);
    driver_close();
}

/* Several attributes at once, and the list of devices, which is filled up with CU_DEVICE_INVALID. */
TEST_CASE(CudaMemory, AttributesOfRanges)
{
    CUdeviceptr p;
    int list[4] = {7, 7, 7, 7}, preferred = 7, mostly = 7;
    void *out[] = {&preferred, list, &mostly};
    size_t sizes[] = {4, 12, 4};
    CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                          CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                          CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY};
    REQUIRE(driver_open_context(NULL));
    CU(cu.cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    CU(cu.cuMemAdvise(p, 64, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    CU(cu.cuMemAdvise(p, 64, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
    CU(cu.cuMemAdvise(p, 64, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    CU(cu.cuMemAdvise(p, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    CU(cu.cuMemRangeGetAttributes(out, sizes, attributes, 3, p, 64));
    CHECK_EQ_I64(preferred, CU_DEVICE_CPU);
    CHECK_EQ_I64(mostly, 1);
    CHECK_EQ_I64(list[0], 0);
    CHECK_EQ_I64(list[1], CU_DEVICE_CPU);
    CHECK_EQ_I64(list[2], CU_DEVICE_INVALID);
    CHECK_EQ_I64(list[3], 7);
    /* No more than there is room for. */
    CU(cu.cuMemRangeGetAttribute(list + 3, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 64));
    CHECK_EQ_I64(list[3], 0);
    attributes[2] = (CUmem_range_attribute)0;
    CU_IS(cu.cuMemRangeGetAttributes(out, sizes, attributes, 3, p, 64), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuMemRangeGetAttributes(out, sizes, attributes, 0, p, 64), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaMemory, Pools)
{
    CUmemoryPool pool = NULL, now = NULL;
    CUdeviceptr p = 0, q = 0;
    cuuint64_t used = 9, threshold = 123;
    CUstream s;
    REQUIRE(driver_open_context(NULL));
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .maxSize = 4096};
    CU(cu.cuStreamCreate(&s, 0));
    CU(cu.cuMemPoolCreate(&pool, &props));
    CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CU(cu.cuMemAllocFromPoolAsync(&p, 1000, pool, s));
    CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    CHECK_EQ_U64(used, 1000);
    CU_IS(cu.cuMemAllocFromPoolAsync(&q, 4000, pool, s), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuMemsetD8Async(p, 1, 1000, s));
    CU(cu.cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    CHECK(now == pool);
    CU(cu.cuMemFreeAsync(p, s));
    CU_IS(cu.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    CHECK_EQ_U64(used, 0);
    CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
    CHECK_EQ_U64(used, 1000);
    CU(cu.cuDeviceSetMemPool(0, pool));
    CU(cu.cuDeviceGetMemPool(&now, 0));
    CHECK(now == pool);
    p = 1;
    CU(cu.cuMemAllocAsync(&p, 0, s)); /* empty, and to be freed all the same */
    CHECK_EQ_U64(p, 0);
    CU(cu.cuMemFreeAsync(p, s));
    CU(cu.cuMemAllocAsync(&p, 64, s));
    CU(cu.cuMemPoolDestroy(pool));
    CU(cu.cuDeviceGetMemPool(&now, 0));
    CHECK(now != pool);
    CU_IS(cu.cuMemPoolDestroy(now), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuMemFree_v2(p));
    CU_IS(cu.cuMemPoolDestroy((CUmemoryPool)(uintptr_t)0x1234), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

/* Reading memory back does not count as writing it: a kernel that computes with it is still reported. */
TEST_CASE(CudaMemory, ACopyOutDoesNotInitialise)
{
    if (!driver_open_context("PTXVM_CHECK=init"))
        return;
    CUmodule module = NULL;
    CUfunction bump = test_function(&module, "bump");
    CUdeviceptr fresh;
    uint32_t value = 1;
    CU(cu.cuMemAlloc_v2(&fresh, 4));
    read_u32(fresh);
    void *params[] = {&fresh, &value};
    CUresult launched = launch_one(bump, NULL, params);
    CU_IS(launched ? launched : cu.cuCtxSynchronize(), 719);
    driver_close();
}
