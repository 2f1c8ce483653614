/* Fat binaries that hold PTX: made by hand in each way they come, damaged ones, and nvcc's own. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "log_file.h"
#include "support/process.h"
#include "tools/toolkit.h"

/* ---- Made by hand ---- */

typedef enum { STORED, LZ4, ZSTD, CUBIN } packing;

typedef struct part {
    packing how;
    int sm;
    const char *suffix;
} part;

/* A kernel that stores the SM that the text is for, and 1000 for an `a` target. */
static size_t write_ptx(char *text, size_t size, const part *p)
{
    return (size_t)snprintf(
        text, size,
        "\n\n\n\n\n\n\n\n.version 9.0\n.target sm_%d%s\n.address_size 64\n"
        ".visible .entry which(.param .u64 out) { .reg .u64 %%rd; ld.param.u64 %%rd, [out]; "
        "st.global.u32 [%%rd], %d; ret; }\n",
        p->sm, p->suffix, p->sm + (p->suffix[0] ? 1000 : 0));
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
    memcpy(at, &value, (size_t)bytes);
}

/* One literal and a match that repeats it seven times; then literals, of which there are many. */
static size_t pack_lz4(uint8_t *to, const char *text, size_t n)
{
    size_t at = 0, literals = n - 8;
    memcpy(to, "\x13\n\1\0\xf0", 5);
    at = 5;
    for (size_t rest = literals - 15;; rest -= 255) {
        to[at++] = rest < 255 ? (uint8_t)rest : 255;
        if (rest < 255)
            break;
    }
    memcpy(to + at, text + 8, literals);
    return at + literals;
}

/* A frame of one block that is stored: size in 4 bytes, single segment. */
static size_t pack_zstd(uint8_t *to, const char *text, size_t n)
{
    memcpy(to, "\x28\xb5\x2f\xfd\xa0", 5);
    put(to + 5, n, 4);
    put(to + 9, n << 3 | 1, 3);
    memcpy(to + 12, text, n);
    return 12 + n;
}

static size_t write_entry(uint8_t *to, const part *p)
{
    char text[600];
    size_t n = write_ptx(text, sizeof text, p), bytes = n;
    uint8_t *payload = to + 72; /* the header may be longer than its fields */
    memset(to, 0, 72);
    if (p->how == LZ4)
        bytes = pack_lz4(payload, text, n);
    else if (p->how == ZSTD)
        bytes = pack_zstd(payload, text, n);
    else
        memcpy(payload,
               p->how == CUBIN ? "\x7f"
                                 "ELF"
                               : text,
               p->how == CUBIN ? 4 : n);
    size_t padded = (bytes + 7) / 8 * 8;
    memset(payload + bytes, 0, padded - bytes);
    put(to, p->how == CUBIN ? 2 : 1, 2);
    put(to + 2, 0x101, 2);
    put(to + 4, 72, 4);
    put(to + 8, padded, 8);
    put(to + 28, (uint64_t)p->sm, 4);
    if (p->how == LZ4 || p->how == ZSTD) {
        put(to + 16, bytes, 4);
        put(to + 40, p->how == LZ4 ? 0x2011 : 0x8011, 8);
        put(to + 56, n, 8);
    }
    return 72 + padded;
}

static size_t write_fatbin(uint8_t *to, const part *parts, int n)
{
    size_t at = 16;
    for (int i = 0; i < n; i++)
        at += write_entry(to + at, &parts[i]);
    memcpy(to, "\x50\xed\x55\xba\1\0\x10\0", 8);
    put(to + 8, at - 16, 8);
    return at;
}

/* ---- Which is taken ---- */

static uint32_t run_which(CUmodule m)
{
    CUfunction f = NULL;
    CUdeviceptr out = new_u32(1, 0);
    void *params[] = {&out};
    CU(cu.cuModuleGetFunction(&f, m, "which"));
    CU(launch_one(f, NULL, params));
    return read_u32(out);
}

static const struct {
    const char *name, *sm;
    part parts[4];
    int n;
    uint32_t taken; /* 0: none */
} choices[] = {
    {"Stored", "sm_90", {{STORED, 80, ""}}, 1, 80},
    {"Lz4", "sm_90", {{LZ4, 75, ""}}, 1, 75},
    {"Newest", "sm_90", {{STORED, 80, ""}, {LZ4, 90, ""}, {STORED, 120, ""}, {STORED, 75, ""}}, 4, 90},
    {"MachineCodeIsPassedOver", "sm_86", {{CUBIN, 86, ""}, {LZ4, 80, ""}, {CUBIN, 80, ""}}, 3, 80},
    {"SpecialOnItsSm", "sm_90a", {{STORED, 90, ""}, {LZ4, 90, "a"}}, 2, 1090},
    {"SpecialElsewhere", "sm_100", {{STORED, 80, ""}, {LZ4, 90, "a"}}, 2, 80},
    {"FamilyOfItsOwn", "sm_103", {{STORED, 90, ""}, {STORED, 100, "f"}}, 2, 1100},
    {"NoneThatRuns", "sm_80", {{STORED, 90, ""}, {CUBIN, 80, ""}}, 2, 0},
    {"NoPtx", "sm_80", {{CUBIN, 80, ""}}, 1, 0},
};

TEST_ROWS(CudaFatbin, Choice, choices)
{
    static uint8_t image[4096];
    char settings[40];
    CUmodule m = NULL;
    CUlibrary library = NULL;
    snprintf(settings, sizeof settings, "PTXVM_SM=%s", choices[index].sm);
    REQUIRE(driver_open_context(settings));
    write_fatbin(image, choices[index].parts, choices[index].n);
    struct {
        uint32_t magic, version;
        const void *data, *unused;
    } wrapper = {0x466243b1, 1, image, NULL};
    if (!choices[index].taken) {
        CU_IS(cu.cuModuleLoadData(&m, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
        CU_IS(cu.cuModuleLoadFatBinary(&m, &wrapper), CUDA_ERROR_NO_BINARY_FOR_GPU);
    } else {
        CU(cu.cuModuleLoadData(&m, image));
        CHECK_EQ_U32(run_which(m), choices[index].taken);
        CU(cu.cuModuleLoadFatBinary(&m, &wrapper));
        CHECK_EQ_U32(run_which(m), choices[index].taken);
        CU(cu.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
        CU(cu.cuLibraryGetModule(&m, library));
        CHECK_EQ_U32(run_which(m), choices[index].taken);
    }
    driver_close();
}

/* ---- zstd ---- */

static const part zstd_part = {ZSTD, 80, ""};

TEST_CASE(CudaFatbin, ZstdByTheSystemsLibrary)
{
    static uint8_t image[4096];
    CUmodule m = NULL;
    REQUIRE(driver_open_logged("", "PTXVM_SM=sm_90"));
    write_fatbin(image, &zstd_part, 1);
    CUresult result = cu.cuModuleLoadData(&m, image);
    if (!result)
        CHECK_EQ_U32(run_which(m), 80);
    char *log = driver_close_logged();
    if (result)
        CHECK_HAS(log, "libzstd.so.1 cannot be opened");
    free(log);
    if (result)
        SKIP("no libzstd.so.1 was found");
}

TEST_CASE(CudaFatbin, WithoutZstdASentence)
{
    static uint8_t image[4096];
    CUmodule m;
    REQUIRE(driver_open_logged("", "PTXVM_SM=sm_90 PTXVM_LIBZSTD=/no/such/library"));
    write_fatbin(image, &zstd_part, 1);
    CU_IS(cu.cuModuleLoadData(&m, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
    char *log = driver_close_logged();
    CHECK_HAS(log, "compressed with zstd");
    CHECK_HAS(log, "--no-compress");
    free(log);
}

/* ---- From files ---- */

/* Loads the bytes as a file: then their number is known. */
static CUresult load_file(const void *data, size_t bytes, CUmodule *m)
{
    char folder[256], path[300];
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/image", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(data, 1, bytes, file) == bytes);
    if (file)
        fclose(file);
    CUresult result = cu.cuModuleLoad(m, path);
    temp_dir_remove(folder);
    return result;
}

/* Every byte of a fat binary in turn becomes something else, and the file is cut after each. The result is an
 * error or a module; sanitizers check the rest. */
TEST_CASE(CudaFatbin, DamagedOnesAreErrors)
{
    static const part parts[] = {{LZ4, 80, ""}, {STORED, 75, ""}};
    static const uint8_t values[] = {0, 1, 0x7f, 0xff};
    static uint8_t image[4096], damaged[4096];
    size_t n = write_fatbin(image, parts, 2);
    int loaded = 0, refused = 0;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    for (size_t i = 0; i < 2 * n; i++) {
        size_t bytes = i < n ? n : i - n;
        memcpy(damaged, image, n);
        if (i < n)
            damaged[i] = values[i % 4];
        CUmodule m;
        CUresult result = load_file(damaged, bytes, &m);
        loaded += result == CUDA_SUCCESS;
        refused += result != CUDA_SUCCESS;
        if (!result)
            CU(cu.cuModuleUnload(m));
    }
    CHECK(loaded > 20 && refused > (int)n);
    driver_close();
}

typedef struct change {
    const char *name;
    size_t offset;
    uint64_t value;
    int bytes;
} change;

static const change changes[] = {
    {"Version", 4, 2, 2},
    {"TotalTooLong", 8, UINT64_MAX, 8},
    {"HeaderTooShort", 16 + 4, 63, 4},
    {"PayloadTooLong", 16 + 8, UINT64_MAX - 71, 8},
    {"CompressedTooLong", 16 + 16, 0xffffffff, 4},
    {"RawTooLarge", 16 + 56, (uint64_t)1 << 40, 8},
    {"RawTooSmall", 16 + 56, 100, 8},
    {"RawTooBig", 16 + 56, 10000, 8},
    {"MatchBeforeTheText", 16 + 72 + 2, 2, 2},
    {"MatchOfNothing", 16 + 72 + 2, 0, 2},
};

TEST_ROWS(CudaFatbin, WrongField, changes)
{
    static const part one = {LZ4, 80, ""};
    static uint8_t image[4096];
    CUmodule m;
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    size_t n = write_fatbin(image, &one, 1);
    put(image + changes[index].offset, changes[index].value, changes[index].bytes);
    CU_IS(load_file(image, n, &m), CUDA_ERROR_INVALID_IMAGE);
    driver_close();
}

TEST_CASE(CudaFatbin, TheTextIsLimited)
{
    static const part one = {LZ4, 80, ""};
    static uint8_t image[4096];
    CUmodule m = NULL;
    write_fatbin(image, &one, 1);
    REQUIRE(driver_open_logged("", "PTXVM_SM=sm_90 PTXVM_LIMIT_TEXT=150"));
    CU_IS(cu.cuModuleLoadData(&m, image), CUDA_ERROR_INVALID_IMAGE);
    char *log = driver_close_logged();
    CHECK_HAS(log, " bytes of PTX text in a fat binary: the limit is PTXVM_LIMIT_TEXT");
    free(log);
}

/* 40 KB become 10 MB of ".target", none of which names one. Each was looked at in a time proportional to all. */
TEST_CASE(CudaFatbin, ManyTargets)
{
    enum { REPEATED = 39000, RAW = 8 + 4 + 15 + REPEATED * 255 + 5 };
    static uint8_t image[16 + 64 + REPEATED + 64];
    uint8_t *entry = image + 16, *payload = entry + 64;
    CUmodule m = NULL;
    size_t n = 0;
    memcpy(payload, "\x8f.target \x08\0", 11); /* 8 literals, which are repeated, */
    n = 11;
    memset(payload + n, 255, REPEATED);
    n += REPEATED;
    memcpy(payload + n, "\0\x50 ; \n ", 7); /* and 5 literals at the end */
    n += 7;
    memcpy(image, "\x50\xed\x55\xba\1\0\x10\0", 8);
    put(image + 8, 64 + n, 8);
    put(entry, 1, 2);
    put(entry + 2, 0x101, 2);
    put(entry + 4, 64, 4);
    put(entry + 8, n, 8);
    put(entry + 16, n, 4);
    put(entry + 28, 80, 4);
    put(entry + 40, 0x2011, 8);
    put(entry + 56, RAW, 8);
    REQUIRE(driver_open_context("PTXVM_SM=sm_90"));
    CU_IS(cu.cuModuleLoadData(&m, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
    driver_close();
}

/* A pointer in a file points to nothing. */
TEST_CASE(CudaFatbin, AWrapperFromAFileIsRefused)
{
    static const uint8_t wrapper[24] = {0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0, 0xf0, 0xf1, 0xf2, 0xf3};
    CUmodule m;
    REQUIRE(driver_open_context(NULL));
    CU_IS(load_file(wrapper, sizeof wrapper, &m), CUDA_ERROR_INVALID_IMAGE);
    driver_close();
}

/* ---- nvcc's ---- */

static const struct {
    const char *name, *option;
} modes[] = {{"Default", ""}, {"Lz4", "-compress-mode=speed"}, {"Stored", "--no-compress"}};

static const char which_cu[] =
    "extern \"C\" __global__ void which(unsigned *out) { *out = __CUDA_ARCH__ / 10; }\n";

TEST_ROWS(CudaFatbin, OfNvcc, modes)
{
    char nvcc[512], folder[256];
    if (!toolkit_find_ptxas(nvcc, sizeof nvcc - 8))
        SKIP("no toolkit was found");
    void *zstd = dlopen("libzstd.so.1", RTLD_NOW);
    if (!zstd && !modes[index].option[0])
        SKIP("no libzstd.so.1 was found");
    if (zstd)
        dlclose(zstd);
    memcpy(strrchr(nvcc, '/') + 1, "nvcc", 5);
    temp_dir_make(folder, sizeof folder);
    process_result made = process_run(
        "cd %s && printf '%%s' '%s' > k.cu && %s -fatbin -gencode arch=compute_80,code=compute_80 "
        "-gencode arch=compute_90,code=[compute_90,sm_90] -gencode arch=compute_120,code=compute_120 "
        "%s k.cu -o k.fatbin",
        folder, which_cu, nvcc, modes[index].option);
    char path[300];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/k.fatbin", folder);
    char *image = made.status == 0 ? toolkit_read_file(path, &bytes) : NULL;
    process_free(&made);
    if (image && driver_open_context("PTXVM_SM=sm_100")) {
        CUmodule m = NULL;
        CU(cu.cuModuleLoadData(&m, image));
        CHECK_EQ_U32(run_which(m), 90);
        CU(cu.cuModuleLoad(&m, path));
        CHECK_EQ_U32(run_which(m), 90);
        driver_close();
    }
    temp_dir_remove(folder);
    free(image);
    if (!bytes)
        SKIP("this nvcc does not compile the example");
}
