#include "driver.h"

#include <dlfcn.h>
#include <string.h>

#include "support/environment.h"

driver_functions cu;
CUcontext driver_context;
static void *library;

const char test_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".global .align 4 .u32 counter = 7;\n"
    ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
    ".visible .entry add(.param .u64 out, .param .u64 in, .param .u32 value, .param .u32 n)\n"
    "{\n"
    "  .reg .u64 %rd<6>; .reg .u32 %r<8>; .reg .pred %p;\n"
    "  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in]; ld.param.u32 %r0, [value]; ld.param.u32 %r1, [n];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p, %r5, %r1;\n"
    "  @%p ret;\n"
    "  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2; add.u64 %rd4, %rd0, %rd2;\n"
    "  ld.global.u32 %r6, [%rd3]; add.u32 %r7, %r6, %r0; st.global.u32 [%rd4], %r7;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry bump(.param .u64 out, .param .u32 value)\n"
    "{\n"
    "  .reg .u64 %rd; .reg .u32 %r<3>;\n"
    "  ld.param.u64 %rd, [out]; ld.param.u32 %r0, [value];\n"
    "  ld.u32 %r1, [%rd]; mad.lo.u32 %r2, %r1, 10, %r0; st.u32 [%rd], %r2;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry poke(.param .u64 out)\n"
    "{\n"
    "  .reg .u64 %rd;\n"
    "  ld.param.u64 %rd, [out]; st.u32 [%rd], 1;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry die()\n"
    "{\n"
    "  trap;\n"
    "}\n"
    ".visible .entry spin()\n"
    "{\n"
    "again:\n"
    "  bra again;\n"
    "}\n"
    ".extern .shared .align 4 .b8 dynamic[];\n"
    ".visible .entry share(.param .u64 out) .maxntid 256, 1, 1\n"
    "{\n"
    "  .shared .align 4 .b8 fixed[256];\n"
    "  .reg .u64 %rd; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd, [out]; mov.u32 %r0, fixed; mov.u32 %r1, dynamic;\n"
    "  st.shared.u32 [%r0], 3; st.shared.u32 [%r1], 4;\n"
    "  ld.shared.u32 %r2, [%r0]; mov.u32 %r3, %dynamic_smem_size; add.u32 %r2, %r2, %r3; st.global.u32 "
    "[%rd], %r2;\n"
    "  ret;\n"
    "}\n";

/* ---- Opening ---- */

typedef CUresult get_proc_fn(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static bool find_all(void)
{
    void *symbol = dlsym(library, "cuGetProcAddress_v2");
    get_proc_fn *get;
    memcpy(&get, &symbol, sizeof get);
    bool ok = symbol != NULL;
    CUdriverProcAddressQueryResult status;
#define FIND(field, base, since, flags)                                                                      \
    ok = ok && get(base, &symbol, since, flags, &status) == CUDA_SUCCESS &&                                  \
         status == CU_GET_PROC_ADDRESS_SUCCESS;                                                              \
    memcpy(&cu.field, &symbol, sizeof symbol);
#define F(base, v, since, needs, params, args) FIND(base##v, #base, since, 0)
#define S(base, v, pt, since, needs, params, args)                                                           \
    FIND(base##v, #base, since, 1)                                                                           \
    FIND(base##v##_##pt, #base, since, 2)
#define U(base, v, since)
#define UP(base, v, pt, since)
#include "ptxvm/cuda/functions.def"
    return ok;
}

bool driver_open(const char *settings)
{
    driver_close();
    environment_set(settings);
    library = dlopen(QDNN_BINARY_DIR "/ptxvm/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        FAIL("%s", dlerror());
        return false;
    }
    if (!CHECK(find_all()))
        return false;
    return CU(cu.cuInit(0));
}

bool driver_open_context(const char *settings)
{
    return driver_open(settings) && CU(cu.cuCtxCreate_v2(&driver_context, 0, 0));
}

void driver_close(void)
{
    if (library)
        dlclose(library);
    library = NULL;
    memset(&cu, 0, sizeof cu);
    environment_restore();
}

void *driver_symbol(const char *name)
{
    return dlsym(library, name);
}

/* ---- Kernels and memory ---- */

CUfunction test_function(CUmodule *module, const char *name)
{
    CUfunction f = NULL;
    if (!*module)
        CU(cu.cuModuleLoadData(module, test_ptx));
    CU(cu.cuModuleGetFunction(&f, *module, name));
    return f;
}

CUresult launch_one(CUfunction function, CUstream stream, void **params)
{
    return cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

CUdeviceptr new_u32(size_t n, uint32_t value)
{
    CUdeviceptr p = 0;
    CU(cu.cuMemAlloc_v2(&p, 4 * n));
    CU(cu.cuMemsetD32_v2(p, value, n));
    return p;
}

uint32_t read_u32(CUdeviceptr address)
{
    uint32_t value = 0xdeadbeef;
    CU(cu.cuMemcpyDtoH_v2(&value, address, 4));
    return value;
}
