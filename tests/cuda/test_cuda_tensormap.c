/* Tensor maps through the driver: made by cuTensorMapEncodeTiled, passed to a kernel by value. */
#include <string.h>

#include "driver.h"

static const char load_box[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n"
    ".reg .b32 r<8>; .reg .b64 d<8>; .reg .pred p;\n.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 "
    "bar;\n"
    "mov.b64 d0, map; cvta.param.u64 d0, d0; ld.param.u64 d1, [out]; mov.u32 r0, tile; mov.u32 r1, bar; "
    "mov.u32 r2, 2;\n"
    "mbarrier.init.shared.b64 [r1], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 d2, [r1], "
    "256;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0, {r2, 1}], [r1];\n"
    "WAIT: mbarrier.try_wait.parity.shared.b64 p, [r1], 0; @!p bra WAIT;\n"
    "mov.u32 r3, 0;\nCOPY: add.u32 r4, r0, r3; ld.shared.u32 r5, [r4]; cvt.u64.u32 d3, r3; add.u64 d3, d3, "
    "d1;\n"
    "st.global.u32 [d3], r5; add.u32 r3, r3, 4; setp.lt.u32 p, r3, 256; @p bra COPY;\nret;\n}\n";

enum { U32 = 2, COLUMNS = 12, ROWS = 20 };

typedef struct shape {
    uint64_t dim[2], stride[1];
    uint32_t box[2], element_stride[2];
} shape;
static const shape good = {{COLUMNS, ROWS}, {COLUMNS * 4}, {8, 8}, {1, 1}};

static CUresult encode(CUtensorMap *map, CUdeviceptr address, const shape *s)
{
    return cu.cuTensorMapEncodeTiled(map, U32, 2, (void *)(uintptr_t)address, s->dim, s->stride, s->box,
                                     s->element_stride, 0, 0, 0, 0);
}

TEST_CASE(CudaTensorMap, LoadsABox)
{
    CUtensorMap map;
    CUdeviceptr tensor, other, out;
    CUmodule module;
    CUfunction kernel;
    uint32_t values[ROWS][COLUMNS], box[8][8];
    REQUIRE(driver_open_context("PTXVM_SM=sm_90a"));
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        values[i / COLUMNS][i % COLUMNS] = 1000 + i;
    CU(cu.cuMemAlloc_v2(&tensor, sizeof values));
    CU(cu.cuMemAlloc_v2(&other, sizeof values));
    CU(cu.cuMemAlloc_v2(&out, sizeof box));
    CU(cu.cuMemcpyHtoD_v2(tensor, values, sizeof values));
    CU(cu.cuModuleLoadData(&module, load_box));
    CU(cu.cuModuleGetFunction(&kernel, module, "k"));
    CU(encode(&map, other, &good));
    CU(cu.cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)tensor));
    CU(launch_one(kernel, NULL, (void *[]){&map, &out}));
    CU(cu.cuMemcpyDtoH_v2(box, out, sizeof box));
    for (uint32_t row = 0; row < 8; row++)
        for (uint32_t column = 0; column < 8; column++)
            CHECK_EQ_U32(box[row][column], values[1 + row][2 + column]);
    driver_close();
}

TEST_CASE(CudaTensorMap, RefusesWhatHardwareCannot)
{
    union {
        CUtensorMap map;
        uint8_t bytes[192];
    } m;
    shape s = good;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90a"));
    CU_IS(encode(NULL, 4096, &good), CUDA_ERROR_INVALID_VALUE);
    CU_IS(encode((CUtensorMap *)(void *)(m.bytes + 16), 4096, &good), CUDA_ERROR_INVALID_VALUE);
    CU_IS(encode(&m.map, 4100, &good), CUDA_ERROR_INVALID_VALUE);
    s.stride[0] = 50;
    CU_IS(encode(&m.map, 4096, &s), CUDA_ERROR_INVALID_VALUE);
    s = good;
    s.box[1] = 257;
    CU_IS(encode(&m.map, 4096, &s), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuTensorMapEncodeTiled(&m.map, U32, 0, (void *)4096, s.dim, s.stride, s.box, s.element_stride, 0,
                                    0, 0, 0),
          CUDA_ERROR_INVALID_VALUE);
    s = good;
    CU_IS(cu.cuTensorMapEncodeTiled(&m.map, U32, 2, (void *)4096, s.dim, s.stride, s.box, s.element_stride, 1,
                                    0, 0, 0),
          CUDA_ERROR_NOT_SUPPORTED); /* interleaved */
    CU(encode(&m.map, 4096, &good));
    CU_IS(cu.cuTensorMapReplaceAddress(&m.map, (void *)4100), CUDA_ERROR_INVALID_VALUE);
    CU_IS(cu.cuTensorMapReplaceAddress(NULL, (void *)4096), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}
