/* Init, devices, names of codes, the lookup of functions. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"

TEST_CASE(CudaDevice, SaysWhatItIs)
{
    char name[64], bus[32];
    int count = 0, major = 0, minor = 0, value = 0, version = 0;
    size_t total = 0;
    CUdevice device = -1;
    CUuuid a, b;
    REQUIRE(driver_open("PTXVM_SM=sm_80 PTXVM_DEVICES=3 PTXVM_MEMORY=2G PTXVM_DRIVER_VERSION=13010"));
    CU(cu.cuDriverGetVersion(&version));
    CHECK_EQ_I64(version, 13010);
    CU(cu.cuDeviceGetCount(&count));
    CHECK_EQ_I64(count, 3);
    CU(cu.cuDeviceGet(&device, 2));
    CHECK_EQ_I64(device, 2);
    CU_IS(cu.cuDeviceGet(&device, 3), CUDA_ERROR_INVALID_DEVICE);
    CU_IS(cu.cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuDeviceGetName(name, sizeof name, 0));
    CHECK_EQ_STR(name, "ptxvm sm_80 (emulated GPU)");
    CU(cu.cuDeviceComputeCapability(&major, &minor, 0));
    CHECK_EQ_I64(10 * major + minor, 80);
    CU(cu.cuDeviceTotalMem_v2(&total, 0));
    CHECK_EQ_U64(total, UINT64_C(2) << 30);
    CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CHECK_EQ_I64(value, 108);
    CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    CHECK_EQ_I64(value, 166912);
    CU_IS(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cu.cuDeviceGetUuid_v2(&a, 0));
    CU(cu.cuDeviceGetUuid_v2(&b, 1));
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    CU(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 1));
    CHECK_EQ_STR(bus, "0000:02:00.0");
    CU(cu.cuDeviceGetByPCIBusId(&device, bus));
    CHECK_EQ_I64(device, 1);
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
        CU(cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0));
    driver_close();
}

TEST_CASE(CudaDevice, NothingBeforeInit)
{
    CUdevice device;
    REQUIRE(driver_open(NULL));
    int (*version)(void);
    void *symbol = driver_symbol("ptxvmGetVersion");
    memcpy(&version, &symbol, sizeof version);
    CHECK(version() > 0);
    driver_close();
    CUresult (*get)(CUdevice *, int);
    REQUIRE(driver_open("PTXVM_FAULT=cuInit:2=999"));
    CU_IS(cu.cuInit(0), CUDA_ERROR_UNKNOWN);
    CU(cu.cuInit(0));
    CU_IS(cu.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    symbol = driver_symbol("cuDeviceGet");
    memcpy(&get, &symbol, sizeof get);
    CU(get(&device, 0));
    driver_close();
}

TEST_CASE(CudaErrors, EveryCodeHasNameAndText)
{
    static const struct {
        CUresult code;
        const char *name;
    } codes[] = {
#define ERROR(name, number, text) {name, #name},
#include "ptxvm/cuda/errors.def"
#undef ERROR
    };
    const char *text;
    REQUIRE(driver_open(NULL));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        CU(cu.cuGetErrorName(codes[i].code, &text));
        CHECK_EQ_STR(text, codes[i].name);
        CU(cu.cuGetErrorString(codes[i].code, &text));
        CHECK(text && *text);
    }
    CU_IS(cu.cuGetErrorName((CUresult)998, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
    CU_IS(cu.cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
    driver_close();
}

TEST_CASE(CudaLookup, GivesTheFormOfTheVersion)
{
    void *a, *b, *c;
    CUdriverProcAddressQueryResult status;
    REQUIRE(driver_open(NULL));
    CU(cu.cuGetProcAddress_v2("cuCtxCreate", &a, 12000, 0, &status));
    CU(cu.cuGetProcAddress_v2("cuCtxCreate", &b, 13000, 0, &status));
    CHECK(a != b);
    CU(cu.cuGetProcAddress("cuCtxCreate", &c, 13000, 0));
    CHECK(b == c);
    CU(cu.cuGetProcAddress_v2("cuMemcpyAsync", &a, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
    CU(cu.cuGetProcAddress_v2("cuMemcpyAsync", &b, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                              &status));
    CHECK(a != b);
    CU_IS(cu.cuGetProcAddress_v2("cuNoSuchThing", &a, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ_I64(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(a == NULL);
    CU_IS(cu.cuGetProcAddress_v2("cuGraphCreate", &a, 9000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ_I64(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CU_IS(cu.cuGetProcAddress_v2(NULL, &a, 9000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    CUuuid id = {{0}};
    const void *table = &id;
    CU_IS(cu.cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK(table == NULL);
    driver_close();
}

TEST_CASE(CudaLookup, WhatIsNotThereSaysSo)
{
    static const char *const names[] = {
        "cuArrayCreate_v2",    "cuTexObjectCreate",           "cuIpcGetMemHandle",
        "cuMemAddressReserve", "cuGraphicsMapResources_ptsz", "cuMemAlloc"};
    REQUIRE(driver_open(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = driver_symbol(names[i]);
        CUresult (*function)(void *, void *, void *);
        memcpy(&function, &symbol, sizeof function);
        if (CHECK(symbol != NULL))
            CU_IS(function(NULL, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
    }
    driver_close();
}

TEST_CASE(CudaFaults, TheNthCallFails)
{
    CUdeviceptr p;
    REQUIRE(driver_open_context("PTXVM_FAULT=cuMemAlloc_v2:3=2,cuMemFree_v2:1=700"));
    CU(cu.cuMemAlloc_v2(&p, 16));
    CU(cu.cuMemAlloc_v2(&p, 16));
    CU_IS(cu.cuMemAlloc_v2(&p, 16), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cu.cuMemAlloc_v2(&p, 16));
    CU_IS(cu.cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    CU(cu.cuMemFree_v2(p));
    driver_close();
}

/* The runtime asks for a private table; one line of the log explains what that means. */
TEST_CASE(CudaLog, SaysOnceThatTheRuntimeIsNotSupported)
{
    static const CUuuid id = {{0x6b, (char)0xd5, (char)0xfb, 0x6c}};
    const void *table = &id;
    REQUIRE(driver_open_logged("", ""));
    CU_IS(cu.cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CU_IS(cu.cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK(table == NULL);
    char *log = driver_close_logged();
    CHECK_EQ_I64(text_count(log, "\n"), 1);
    CHECK_HAS(log, "6bd5fb6c-0000-0000-0000-000000000000");
    CHECK_HAS(log, "programs on the CUDA runtime");
    CHECK_HAS(log, "are not supported");
    CHECK_HAS(log, "driver API are");
    free(log);
}

TEST_CASE(CudaLog, TracesEveryCall)
{
    CUmodule m = NULL;
    CUdevice device = -1;
    CUdeviceptr p = 0;
    char expected[200];
    REQUIRE(driver_open_logged("trace:", ""));
    CU(cu.cuDeviceGet(&device, 0));
    CU(cu.cuMemAlloc_v2(&p, 64));
    CU(cu.cuMemsetD8_v2_ptds(p, 3, 64));
    CU(cu.cuCtxSynchronize());
    CU_IS(cu.cuModuleLoad(&m, "no such\nfile"), CUDA_ERROR_FILE_NOT_FOUND);
    CU_IS(cu.cuMemFree_v2(16), CUDA_ERROR_INVALID_VALUE);
    char *log = driver_close_logged();
    CHECK_HAS(log, "ptxvm: cuInit(0) = 0 CUDA_SUCCESS\n");
    CHECK_HAS(log, ", 0) = 0 CUDA_SUCCESS, gives 0\n"); /* cuDeviceGet(&device, 0) */
    snprintf(expected, sizeof expected, ", 64) = 0 CUDA_SUCCESS, gives 0x%llx\n", p);
    CHECK_HAS(log, expected);
    snprintf(expected, sizeof expected, "ptxvm: cuMemsetD8_v2_ptds(0x%llx, 3, 64) = 0 CUDA_SUCCESS\n", p);
    CHECK_HAS(log, expected);
    CHECK_HAS(log, "ptxvm: cuCtxSynchronize() = 0 CUDA_SUCCESS\n");
    CHECK_HAS(log, ", \"no such\\x0afile\") = 301 CUDA_ERROR_FILE_NOT_FOUND\n");
    CHECK_HAS(log, "ptxvm: cuMemFree_v2(16) = 1 CUDA_ERROR_INVALID_VALUE\n");
    free(log);
}

TEST_CASE(CudaLog, WithoutTraceNoLineForACall)
{
    REQUIRE(driver_open_logged("", ""));
    CU(cu.cuCtxSynchronize());
    char *log = driver_close_logged();
    CHECK_EQ_STR(log, "");
    free(log);
}
