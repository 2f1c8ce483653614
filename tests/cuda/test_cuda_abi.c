/* Our declarations against the toolkit's, and our symbols against those of its stub library. */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "driver.h"
#include "tools/toolkit.h"

TEST_CASE(CudaAbi, EqualsCudaH)
{
    if (!abi_cuda_h[0].name)
        SKIP("no cuda.h was found");
    int i = 0;
    for (; abi_ours[i].name && abi_cuda_h[i].name; i++) {
        CHECK_EQ_STR(abi_ours[i].name, abi_cuda_h[i].name);
        test_push_note("%s", abi_ours[i].name);
        CHECK_EQ_I64(abi_ours[i].value, abi_cuda_h[i].value);
        test_pop_note();
    }
    CHECK(!abi_ours[i].name && !abi_cuda_h[i].name);
    CHECK(i > 400);
}

/* Graphics interoperation is not in the stub library, but programs look its names up before they start. */
TEST_CASE(CudaAbi, GraphicsNamesAreStubs)
{
    static const char *const names[] = {"cuGLInit",
                                        "cuGLGetDevices_v2",
                                        "cuGLCtxCreate_v2",
                                        "cuGLMapBufferObject_v2_ptds",
                                        "cuGLMapBufferObjectAsync_v2_ptsz",
                                        "cuGLUnmapBufferObjectAsync",
                                        "cuGraphicsGLRegisterBuffer",
                                        "cuGraphicsGLRegisterImage",
                                        "cuGraphicsEGLRegisterImage",
                                        "cuEGLStreamConsumerConnect",
                                        "cuEGLStreamProducerPresentFrame",
                                        "cuEventCreateFromEGLSync",
                                        "cuGraphicsResourceGetMappedEglFrame",
                                        "cuVDPAUGetDevice",
                                        "cuVDPAUCtxCreate_v2",
                                        "cuGraphicsVDPAURegisterVideoSurface"};
    REQUIRE(driver_open(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = driver_symbol(names[i]);
        test_push_note("%s", names[i]);
        if (CHECK(symbol != NULL)) {
            CUresult (*call)(void);
            memcpy(&call, &symbol, sizeof call);
            CU_IS(call(), CUDA_ERROR_NOT_SUPPORTED);
        }
        test_pop_note();
    }
    driver_close();
}

static const Elf64_Shdr *find_section(const char *image, uint32_t type)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == type)
            return &sections[i];
    return NULL;
}

/* Every function that the stub of the toolkit defines is looked up in ours. */
TEST_CASE(CudaAbi, HasEverySymbolOfTheStub)
{
    size_t bytes = 0;
    char *image = QDNN_CUDA_STUB[0] ? toolkit_read_file(QDNN_CUDA_STUB, &bytes) : NULL;
    if (!image)
        SKIP("no stub libcuda.so was found");
    const Elf64_Shdr *table = find_section(image, SHT_DYNSYM);
    int found = 0;
    if (CHECK(table != NULL) && driver_open(NULL)) {
        const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
        const Elf64_Shdr *names = (const Elf64_Shdr *)(image + head->e_shoff) + table->sh_link;
        for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
            const Elf64_Sym *symbol = (const Elf64_Sym *)(image + table->sh_offset) + i;
            const char *name = image + names->sh_offset + symbol->st_name;
            if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_shndx ||
                strncmp(name, "cu", 2) != 0)
                continue;
            found++;
            if (!driver_symbol(name))
                FAIL("%s is not exported", name);
        }
        driver_close();
    }
    CHECK(found > 600);
    free(image);
}
