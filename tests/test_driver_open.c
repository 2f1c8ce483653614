/* Opening a CUDA driver and choosing a device: every way in which it can fail, with drivers made for it
 * (tests/doubles/libcuda.h), the toolkit's stub, and ptxvm linked and as libcuda.so.1. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <qdnn/qdnn.h>

#include "driver/base/log.h"
#include "driver/cuda/open.h"
#include "support/environment.h"
#include "test.h"

#define FAKE(name)    QDNN_BINARY_DIR "/tests/doubles/libcuda_" name ".so"
#define PTXVM_LIBCUDA QDNN_BINARY_DIR "/ptxvm/libcuda.so.1"

#ifdef QDNN_PTXVM
#define NEED_PTXVM
#else
#define NEED_PTXVM SKIP("this build has no ptxvm in it")
#endif

/* The tests' own environment: nothing set but the driver's library and what the settings say. */
static void begin(const char *libcuda, const char *settings)
{
    char text[512];
    snprintf(text, sizeof text, "QDNN_LIBCUDA=%s", libcuda);
    cuda_close_all();
    environment_set("QDNN_DEVICE= QDNN_REQUIRE_GPU= PTXVM_SM= PTXVM_GPU= PTXVM_FAULT= PTXVM_DRIVER_VERSION= "
                    "PTXVM_DEVICES=");
    environment_set(text);
    environment_set(settings);
}

static void end(void)
{
    cuda_close_all();
    environment_restore();
}

/* Fails with the status; the message has these parts, and out is untouched. */
static void check_fails(const char *text, qdnnStatus_t status, const char *part, const char *other)
{
    char sentence[512];
    cuda_device before, d;
    memset(&before, 0x5a, sizeof before);
    d = before;
    test_push_note("device '%s'", text);
    CHECK_EQ_STR(qdnnGetErrorString(cuda_device_choose(text, &d)), qdnnGetErrorString(status));
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_HAS(sentence, part);
    CHECK_HAS(sentence, other);
    CHECK_EQ_MEM(&d, &before, sizeof d);
    test_pop_note();
}

/* ---- Drivers that cannot be used ---- */

static const struct {
    const char *name, *library;
    qdnnStatus_t status;
    const char *part, *other;
} broken[] = {
    {"Missing", "libno_such_driver.so.1", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
     "QDNN_LIBCUDA names no library that can be opened", "libno_such_driver.so.1: cannot open"},
    {"Stub", FAKE("stub"), QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "libcuda_stub.so", "the CUDA toolkit's stub"},
    {"NoDevice", FAKE("no_device"), QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE,
     "cuInit returned 100 (CUDA_ERROR_NO_DEVICE)", "CUDA_VISIBLE_DEVICES"},
    {"CountOfZero", FAKE("empty"), QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "finds no GPU",
     "CUDA_VISIBLE_DEVICES"},
    {"Mismatch", FAKE("mismatch"), QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
     "cuInit returned 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)", "reboot"},
    {"Lacking", FAKE("lacking"), QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "libcuda_lacking.so",
     "lacks the function cuStreamIsCapturing"},
    {"TooOld", FAKE("10_2"), QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD, "CUDA 10.2", "11.0 or later"},
};

TEST_ROWS(DriverOpen, SaysWhatIsWrong, broken)
{
    begin(broken[index].library, NULL);
    check_fails("cuda", broken[index].status, broken[index].part, broken[index].other);
    check_fails("cuda", broken[index].status, broken[index].part, broken[index].other); /* again the same */
    /* a driver that the user named is never replaced by another */
    check_fails("auto", broken[index].status, broken[index].part, "QDNN_LIBCUDA is ");
    environment_set("QDNN_REQUIRE_GPU=1");
    check_fails("auto", broken[index].status, broken[index].part, "QDNN_LIBCUDA is ");
    end();
}

/* No driver was named, and there is none. */
static bool has_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}

TEST_CASE(DriverOpen, AutoTakesPtxvmInstead)
{
    cuda_device d;
    if (has_driver())
        SKIP("there is a libcuda.so.1 here");
    begin("", "PTXVM_SM=sm_86");
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "not installed: libcuda.so.1",
                "QDNN_DEVICE=vm runs the same kernels on the CPU");
#ifdef QDNN_PTXVM
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK(d.is_vm);
    CHECK_EQ_I64(d.major * 10 + d.minor, 86);
#else
    (void)d;
    check_fails("auto", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "not installed",
                "no ptxvm: this build of qdnn has no ptxvm");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "QDNN_PTXVM=OFF", "");
#endif
    environment_set("QDNN_REQUIRE_GPU=1");
    check_fails("auto", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "not installed",
                "QDNN_REQUIRE_GPU is set, so ptxvm is not used");
    end();
}

/* What failed is tried again: with the library that is named then, and messages name that one. */
TEST_ROWS(DriverOpen, AnotherMayBeNamedAfterwards, broken)
{
    cuda_device d;
    if (!strcmp(broken[index].name, "CountOfZero"))
        return; /* it did start */
    begin(broken[index].library, NULL);
    check_fails("cuda", broken[index].status, broken[index].part, broken[index].other);
    environment_set("QDNN_LIBCUDA=" FAKE("lacking"));
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "libcuda_lacking.so", "lacks the function");
    environment_set("QDNN_LIBCUDA=" PTXVM_LIBCUDA);
    CHECK_EQ_I64(cuda_device_choose("cuda", &d), QDNN_STATUS_SUCCESS);
    environment_set("QDNN_LIBCUDA=" FAKE("stub") " QDNN_REQUIRE_GPU=1"); /* too late: one is in use */
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "QDNN_REQUIRE_GPU", PTXVM_LIBCUDA);
    end();
}

TEST_CASE(DriverOpen, KnowsTheToolkitsStub)
{
    if (!QDNN_CUDA_STUB[0])
        SKIP("no stub libcuda.so was found");
    begin(QDNN_CUDA_STUB, NULL);
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, QDNN_CUDA_STUB, "the CUDA toolkit's stub");
    end();
}

/* ---- Drivers that can ---- */

static void check_finds_all(const char *library, int version)
{
    cuda_device d;
    begin(library, NULL);
    REQUIRE(cuda_device_choose(NULL, &d) == QDNN_STATUS_SUCCESS);
    CHECK(!d.is_vm);
    CHECK_EQ_I64(d.driver_version, version);
    CHECK_EQ_STR(d.name, "fake GPU 0");
    CHECK_EQ_I64(d.major, 8);
    CHECK_EQ_I64(d.minor, 0);
    CHECK(d.context == NULL);
#define FUNCTION(name, suffix, since, params) CHECK(d.api->name != NULL);
#include "driver/cuda/cuda.def"
#undef FUNCTION
    end();
}

TEST_CASE(DriverOpen, FindsFunctionsInThreeWays)
{
    check_finds_all(FAKE("12_4"), 12040); /* cuGetProcAddress_v2 */
    check_finds_all(FAKE("11_4"), 11040); /* cuGetProcAddress */
    check_finds_all(FAKE("11_0"), 11000); /* exported names */
}

TEST_CASE(DriverOpen, CountsDevices)
{
    cuda_device d;
    begin(FAKE("12_4"), NULL);
    CHECK_EQ_I64(cuda_device_choose("cuda:1", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(d.ordinal, 1);
    CHECK_EQ_STR(d.name, "fake GPU 1");
    check_fails("cuda:2", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "no device 2", "the driver has 2");
    environment_set("QDNN_DEVICE=cuda:1");
    CHECK_EQ_I64(cuda_device_choose("", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(d.ordinal, 1);
    CHECK_EQ_I64(cuda_device_choose("cuda:0", &d), QDNN_STATUS_SUCCESS); /* the argument comes first */
    CHECK_EQ_I64(d.ordinal, 0);
    end();
}

TEST_CASE(DriverOpen, UnknownTextsAreNamed)
{
    static const char *const texts[] = {"gpu",   "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999",
                                        "cudnn", "vmx",   "AUTO",   "auto ",   "cuda 1"};
    begin(FAKE("12_4"), NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_fails(texts[i], QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, texts[i],
                    "auto, cuda, cuda:N, vm, vm:sm_XX or vm:BOARD");
    check_fails("vm:sm_12", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "does not know the SM or board 'sm_12'",
                "vm:sm_90");
    check_fails("vm:", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "does not know the SM or board ''", "vm:sm_90");
    environment_set("QDNN_DEVICE=tpu");
    check_fails(NULL, QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "'tpu'", "QDNN_DEVICE");
    end();
}

/* ---- A context of the caller's own ---- */

typedef CUcontext set_current_fn(int device);

TEST_CASE(DriverOpen, BorrowsTheCurrentContext)
{
    cuda_device d;
    set_current_fn *set_current;
    void *library = dlopen(FAKE("12_4"), RTLD_NOW);
    REQUIRE(library != NULL);
    void *symbol = dlsym(library, "fake_set_current");
    memcpy(&set_current, &symbol, sizeof symbol);
    begin(FAKE("12_4"), NULL);
    CUcontext context = set_current(1);
    static const char *const any[] = {"auto", "cuda", "cuda:1"};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_I64(cuda_device_choose(any[i], &d), QDNN_STATUS_SUCCESS);
        CHECK(d.context == context);
        CHECK_EQ_I64(d.ordinal, 1);
        CHECK_EQ_STR(d.name, "fake GPU 1");
    }
    CHECK_EQ_I64(cuda_device_choose("cuda:0", &d),
                 QDNN_STATUS_SUCCESS); /* another device than the context's */
    CHECK(d.context == NULL);
    CHECK_EQ_I64(d.ordinal, 0);
    set_current(-1);
    CHECK_EQ_I64(cuda_device_choose("cuda", &d), QDNN_STATUS_SUCCESS);
    CHECK(d.context == NULL);
    end();
    dlclose(library);
}

/* ---- Threads ---- */

static void *choose_in_thread(void *out)
{
    return cuda_device_choose("cuda:1", out) == QDNN_STATUS_SUCCESS ? out : NULL;
}

TEST_CASE(DriverOpen, ThreadsShareOneDriver)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    cuda_device devices[THREADS];
    begin(FAKE("12_4"), NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, choose_in_thread, &devices[i]);
    for (int i = 0; i < THREADS; i++) {
        void *chosen = NULL;
        pthread_join(threads[i], &chosen);
        CHECK(chosen == &devices[i] && devices[i].api == devices[0].api && devices[i].ordinal == 1);
    }
    end();
}

/* ---- ptxvm ---- */

TEST_CASE(DriverOpen, ThePtxvmLinkedIn)
{
    NEED_PTXVM;
    cuda_device d;
    begin(FAKE("12_4"), NULL);
    CHECK_EQ_I64(cuda_device_choose("vm:sm_75", &d), QDNN_STATUS_SUCCESS);
    CHECK(d.is_vm);
    CHECK_EQ_STR(d.name, "ptxvm sm_75 (emulated GPU)");
    CHECK_EQ_I64(d.major * 10 + d.minor, 75);
    CHECK_EQ_I64(d.driver_version, 13000);
    CHECK_EQ_I64(cuda_device_choose("vm", &d), QDNN_STATUS_SUCCESS); /* as it runs */
    CHECK_EQ_I64(d.major * 10 + d.minor, 75);
    CHECK_EQ_I64(cuda_device_choose("vm:75", &d), QDNN_STATUS_SUCCESS);
    check_fails("vm:sm_80", QDNN_STATUS_NOT_SUPPORTED, "sm_75", "sm_80");
    CHECK_EQ_I64(cuda_device_choose("cuda", &d), QDNN_STATUS_SUCCESS); /* both drivers at once */
    CHECK(!d.is_vm);
    cuda_close_all();
    CHECK_EQ_I64(cuda_device_choose("vm:sm_80", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(d.major * 10 + d.minor, 80);
    end();
}

TEST_CASE(DriverOpen, ThePtxvmsSettings)
{
    NEED_PTXVM;
    cuda_device d;
    begin("", "PTXVM_SM=sm_120 QDNN_DEVICE=vm PTXVM_FAULT=cuInit:1=802,cuDeviceGetName:1=2");
    check_fails(NULL, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "cuInit returned 802", "SYSTEM_NOT_READY");
    check_fails(NULL, QDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "cuDeviceGetName returned 2", "");
    CHECK_EQ_I64(cuda_device_choose(NULL, &d), QDNN_STATUS_SUCCESS); /* what failed is tried anew */
    CHECK_EQ_I64(d.major * 10 + d.minor, 120);
    end();
    begin("", "PTXVM_SM=sm_12345");
    check_fails("vm", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "PTXVM_SM is 'sm_12345'", "");
    CHECK_EQ_I64(cuda_device_choose("vm:sm_90", &d), QDNN_STATUS_SUCCESS); /* the argument comes first */
    end();
    begin("", "PTXVM_DEVICES=many");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "because of its settings: PTXVM_DEVICES=many", "");
    end();
    begin("", "PTXVM_CHECK=foo");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
                "because of its settings: PTXVM_CHECK=foo: none, all, or some of memory", "");
    end();
    begin("", "PTXVM_LOG=/dev/null/log");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "PTXVM_LOG=/dev/null/log cannot be written", "");
    end();
    begin("", "PTXVM_DRIVER_VERSION=10020");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD, "10.2", "11.0");
    end();
}

static void check_board(const char *device, const char *settings, int sm, int multiprocessors)
{
    cuda_device d;
    int count = 0;
    test_push_note("device '%s', %s", device, settings);
    begin("", settings);
    if (CHECK_EQ_I64(cuda_device_choose(device, &d), QDNN_STATUS_SUCCESS)) {
        CHECK_EQ_I64(d.major * 10 + d.minor, sm);
        CHECK_EQ_I64(d.api->cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d.device),
                     0);
        CHECK_EQ_I64(count, multiprocessors);
    }
    end();
    test_pop_note();
}

/* What the caller names comes before the environment; in the environment the two must agree. */
TEST_CASE(DriverOpen, Boards)
{
    NEED_PTXVM;
    check_board("vm:a100", "PTXVM_SM=", 80, 108);
    check_board("vm:RTX4090", "PTXVM_SM=sm_90 PTXVM_GPU=h100", 89, 128);
    check_board("vm:sm_89", "PTXVM_GPU=rtx4090", 89, 128);
    check_board("vm:sm_89", "PTXVM_GPU=a100", 89, 58);
    check_board("vm", "PTXVM_GPU=a40", 86, 84);
    check_board("vm", "PTXVM_GPU=a40 PTXVM_SM=sm_86", 86, 84);
    begin("", "PTXVM_GPU=a99");
    check_fails("vm", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "PTXVM_GPU is 'a99'", "a100");
    check_fails("vm:a99", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "'a99'", "rtx5090");
    end();
    begin("", "PTXVM_GPU=a100 PTXVM_SM=sm_90");
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "PTXVM_GPU=a100 has sm_80", "PTXVM_SM=sm_90");
    end();
}

TEST_CASE(DriverOpen, ThePtxvmAsLibcuda)
{
    cuda_device d;
    begin(PTXVM_LIBCUDA, "PTXVM_SM=sm_89 PTXVM_DEVICES=2");
    CHECK_EQ_I64(cuda_device_choose("cuda:1", &d), QDNN_STATUS_SUCCESS);
    CHECK(d.is_vm);
    CHECK_EQ_I64(d.ordinal, 1);
    CHECK_EQ_STR(d.name, "ptxvm sm_89 (emulated GPU)");
    CHECK_EQ_I64(d.driver_version, 13000);
    end();
    begin(PTXVM_LIBCUDA, "PTXVM_DRIVER_VERSION=11040");
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(d.driver_version, 11040);
    end();
}

/* A GPU that fails is not replaced: the caller's pointers belong to it. */
TEST_CASE(DriverOpen, AutoKeepsAGpuThatFails)
{
    cuda_device d;
    begin(PTXVM_LIBCUDA, "PTXVM_FAULT=cuDeviceGetName:1=700");
    check_fails("auto", QDNN_STATUS_EXECUTION_FAILED_STICKY, "cuDeviceGetName returned 700",
                "ILLEGAL_ADDRESS");
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    end();
}

TEST_CASE(DriverOpen, AGpuCanBeRequired)
{
    cuda_device d;
    begin(PTXVM_LIBCUDA, "QDNN_REQUIRE_GPU=1");
    check_fails("auto", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "QDNN_REQUIRE_GPU", "is ptxvm");
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "QDNN_REQUIRE_GPU", PTXVM_LIBCUDA);
    check_fails("vm", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "QDNN_REQUIRE_GPU", "not a GPU");
    environment_set("QDNN_REQUIRE_GPU=0");
    CHECK_EQ_I64(cuda_device_choose("cuda", &d), QDNN_STATUS_SUCCESS);
    end();
    begin(FAKE("12_4"), "QDNN_REQUIRE_GPU=yes");
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK(!d.is_vm);
    end();
}

/* ---- The log ---- */

static char told[2048];

static void listen(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)user, (void)debug;
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%d %s\n", (int)severity, message);
}

TEST_CASE(DriverOpen, TheChoiceIsToldOnce)
{
    NEED_PTXVM;
    cuda_device d;
    if (has_driver())
        SKIP("there is a libcuda.so.1 here");
    begin("", NULL);
    told[0] = 0;
    CHECK_EQ_I64(qdnnSetCallback(0xe, NULL, listen), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK_HAS(
        told,
        "2 the device is ptxvm sm_90a (emulated GPU), compute capability 9.0, CUDA 13.0, because there is "
        "no GPU: the CUDA driver is not installed: libcuda.so.1");
    told[0] = 0;
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_STR(told, "");
    check_fails("cuda", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "", "");
    CHECK_HAS(told, "1 QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER: the CUDA driver is not installed");
    cuda_close_all();
    CHECK_EQ_I64(cuda_device_choose("vm", &d), QDNN_STATUS_SUCCESS); /* as requested: no GPU is missing */
    told[0] = 0;
    CHECK_EQ_I64(cuda_device_choose("auto", &d), QDNN_STATUS_SUCCESS);
    CHECK_HAS(told, "because there is no GPU");
    CHECK_EQ_I64(qdnnSetCallback(0, NULL, NULL), QDNN_STATUS_SUCCESS);
    end();
}

static void choose_again(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)severity, (void)debug, (void)message;
    cuda_device d;
    *(qdnnStatus_t *)user = cuda_device_choose("cuda", &d);
}

/* No lock is held while the callback runs. */
TEST_CASE(DriverOpen, ACallbackMayChooseToo)
{
    cuda_device d;
    qdnnStatus_t inner = QDNN_STATUS_INTERNAL_ERROR;
    begin(FAKE("12_4"), NULL);
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, &inner, choose_again), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(cuda_device_choose("cuda", &d), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(inner, QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_ERROR_BIT, &inner, choose_again), QDNN_STATUS_SUCCESS);
    inner = QDNN_STATUS_INTERNAL_ERROR;
    check_fails("cuda:7", QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE, "no device 7", "");
    CHECK_EQ_I64(inner, QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetCallback(0, NULL, NULL), QDNN_STATUS_SUCCESS);
    end();
}
