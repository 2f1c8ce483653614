/* What the library reports about itself: devices, operations by name, the texts it emits, the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/base/log.h"
#include "kernels/kernels.h"
#include "qdnn/emit.h"
#include "scene.h"
#include "support/environment.h"
#include "support/process.h"

/* ---- Devices ---- */

static const struct {
    const char *device, *variable; /* of qdnnCreateOn; QDNN_DEVICE */
    qdnnStatus_t status;
    int sm;
    const char *part; /* of the target's name, or of the message */
} devices[] = {
    {"vm:sm_75", "", QDNN_STATUS_SUCCESS, 75, "sm_75"},
    {"vm:sm_90", "vm:sm_80", QDNN_STATUS_SUCCESS, 90, "sm_90"},
    {NULL, "vm:sm_80", QDNN_STATUS_SUCCESS, 80, "sm_80"},
    {"", "vm:120", QDNN_STATUS_SUCCESS, 120, "sm_120"},
    {NULL, "vm", QDNN_STATUS_SUCCESS, 90, "sm_90"},
    {NULL, "vm:sm_99", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, 0, "ptxvm does not know the SM or board 'sm_99'"},
    {"gpu", "vm", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, 0, "the device is 'gpu'"},
    {NULL, "cuda:x", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, 0, "the device is 'cuda:x'"},
    {NULL, "vm:", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, 0, "ptxvm does not know the SM or board ''"},
    {"cuda", "vm", QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, 0, "libno_such.so.1"},
};

static void check_info(qdnnHandle_t handle, int sm, const char *target)
{
    qdnnDeviceInfo_t info = {.size = sizeof info};
    OK(qdnnGetDeviceInfo(handle, &info));
    CHECK_EQ_I64(info.kind, QDNN_DEVICE_PTXVM);
    CHECK_EQ_I64(info.ordinal, 0);
    CHECK_EQ_I64(info.smMajor * 10 + info.smMinor, sm);
    CHECK(info.driverVersion >= 11000 && info.multiprocessors > 0 && info.memoryBytes > 0);
    CHECK_HAS(info.target, target);
    CHECK(strlen(info.name) > 0);
}

TEST_CASE(ApiTools, DevicesByName)
{
    NEED_PTXVM;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        char settings[64];
        qdnnHandle_t handle = NULL;
        snprintf(settings, sizeof settings, "QDNN_LIBCUDA=libno_such.so.1 QDNN_DEVICE=%s",
                 devices[i].variable);
        test_push_note("%s, QDNN_DEVICE=%s", devices[i].device ? devices[i].device : "null",
                       devices[i].variable);
        vm_begin(settings);
        CHECK_STATUS_IS(qdnnCreateOn(&handle, devices[i].device), devices[i].status);
        if (devices[i].status == QDNN_STATUS_SUCCESS) {
            check_info(handle, devices[i].sm, devices[i].part);
        } else {
            CHECK_HAS(last_sentence(), devices[i].part);
            CHECK(!handle);
        }
        OK(qdnnDestroy(handle));
        vm_end();
        test_pop_note();
    }
}

/* ---- Operations ---- */

TEST_CASE(ApiTools, OperationsByName)
{
    int count = 0;
    for (const char *name; (name = qdnnGetOperationName(count)); count++) {
        const char *kernel = NULL, *settings = NULL, *list[16] = {NULL};
        char words[256];
        int n = 0;
        qdnnPtx_t by_operation = {0}, by_kernel = {0};
        test_push_note("%s", name);
        OK(qdnnFindOperation(name, &kernel));
        OK(qdnnGetOperationSettings(name, &settings));
        snprintf(words, sizeof words, "%s", settings);
        for (char *word = strtok(words, " "); word && n < 15; word = strtok(NULL, " "))
            list[n++] = word;
        OK(qdnnEmitPtx(name, "sm_80", NULL, &by_operation));
        OK(qdnnEmitPtx(kernel, "80", list, &by_kernel));
        CHECK_EQ_STR(by_operation.ptx, by_kernel.ptx);
        CHECK_EQ_STR(by_operation.entry, by_kernel.entry);
        CHECK_HAS(by_kernel.ptx, by_kernel.entry);
        qdnnFreePtx(&by_operation);
        qdnnFreePtx(&by_kernel);
        for (int other = 0; other < count; other++)
            CHECK(strcmp(qdnnGetOperationName(other), name) != 0);
        test_pop_note();
    }
    CHECK(count >= 9);
    CHECK(!qdnnGetOperationName(-1));
    CHECK(!qdnnGetOperationName(count + 1));
    CHECK(!qdnnGetOperationName(INT32_MAX));
    CHECK(!qdnnGetOperationName(INT32_MIN));
}

/* Numbers of the list and names are stable. */
TEST_CASE(ApiTools, OperationsOfTheFirstHour)
{
    static const char *const names[][2] = {
        {"quant.int4.scale", "scale_int4"},
        {"quant.int4.quantize", "quantize_int4"},
        {"quant.int4.dequantize", "dequantize_int4"},
        {"quant.int4_zp.scale", "scale_int4_zp"},
        {"quant.int4_zp.quantize", "quantize_int4_zp"},
        {"quant.int4_zp.dequantize", "dequantize_int4_zp"},
        {"quant.nf4.scale", "scale_nf4"},
        {"quant.nf4.quantize", "quantize_nf4"},
        {"quant.nf4.dequantize", "dequantize_nf4"},
        {"quant.nf4.matmul", "matmul_nf4"},
        {"quant.linear_4bit", "matmul_int4"},
        {"quant.linear_4bit.affine_grouped", "matmul_int4_zp"},
        {"quant.int4.matvec.scaled", "matmul_int4"},
        {"quant.int4.batched_matvec.scaled", "matmul_int4"},
    };
    static const char *const unknown[] = {"", "quant.int4", "quantize_int4", "quant.int4.quantize ",
                                          "QUANT.NF4.SCALE"};
    const char *kernel = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        OK(qdnnFindOperation(names[i][0], &kernel));
        CHECK_EQ_STR(kernel, names[i][1]);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        kernel = "before";
        CHECK_STATUS_IS(qdnnFindOperation(unknown[i], &kernel), QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
        CHECK_HAS(last_sentence(), "qdnnGetOperationName lists the known ones");
        CHECK_EQ_STR(kernel, "before");
    }
}

/* ---- QDNN_DUMP_DIR ---- */

/* What the log said, line by line. */
static char told[1 << 16];

static void listen(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)user;
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%d %s: %s\n", (int)severity, debug->function, message);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (file && fread(text, 1, (1 << 20) - 1, file) == 0)
        FAIL("%s is empty", path);
    if (!file)
        FAIL("%s is not there", path);
    else
        fclose(file);
    return text;
}

/* The file that a plan's kernel was written to is what qdnnEmitPtx gives for the plan's settings. */
static void check_dump(const char *directory, const scene *s, int which)
{
    qdnnPlanInfo_t info = {.size = sizeof info};
    qdnnPtx_t text = {0};
    const char *kernel = NULL, *settings[32] = {NULL};
    char path[512], name[KERNEL_FILE_NAME], words[KERNEL_SPEC_TEXT], reason[256];
    kernel_spec spec = kernel_spec_default();
    OK(qdnnGetPlanInfo(s->plans[which], &info));
    OK(qdnnFindOperation(info.operation, &kernel));
    const kernel_row *row = kernel_find(kernel);
    snprintf(words, sizeof words, "%s", info.settings);
    int count = 0;
    for (char *word = strtok(words, " "); word && count < 31; word = strtok(NULL, " "))
        settings[count++] = word;
    OK(qdnnEmitPtx(kernel, s->info.target, settings, &text));
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(settings[i], "="), settings[i]);
        CHECK(kernel_spec_set(row, &spec, key, strchr(settings[i], '=') + 1, reason, sizeof reason));
    }
    kernel_file_name(row, KERNEL_NORMAL(row, &spec), ptx_sm_find(s->info.target), name, sizeof name);
    snprintf(path, sizeof path, "%s/%s.ptx", directory, name);
    char *dumped = read_whole(path);
    CHECK_EQ_STR(dumped, text.ptx);
    free(dumped);
    qdnnFreePtx(&text);
}

TEST_CASE(ApiTools, EmittedTextsAreWritten)
{
    NEED_PTXVM;
    static const int kinds[] = {SCENE_INT4, SCENE_NF4, SCENE_ZERO_POINT};
    char directory[128], settings[256];
    temp_dir_make(directory, sizeof directory);
    snprintf(settings, sizeof settings, "QDNN_DUMP_DIR=%s/new", directory); /* is made */
    snprintf(directory + strlen(directory), 8, "/new");
    for (int i = 0; i < 3; i++) {
        scene s;
        vm_begin(settings);
        if (scene_open(&s, &scene_kinds[kinds[i]], NULL))
            for (int which = 0; which < 3; which++)
                check_dump(directory, &s, which);
        scene_close(&s);
        vm_end();
    }
    process_result files = process_run("ls %s | wc -l", directory);
    /* And those of a cache; those of LSQ, prepacking, products, rows, copies and attention are the same in all three. */
    CHECK_EQ_I64(atoi(files.output), 26);
    process_free(&files);
    *strrchr(directory, '/') = 0;
    temp_dir_remove(directory);
}

TEST_CASE(ApiTools, AFolderThatCannotBeWrittenIsAWarning)
{
    NEED_PTXVM;
    vm_begin("QDNN_DUMP_DIR=/dev/null/no_folder");
    log_reset();
    told[0] = 0;
    OK(qdnnSetCallback(QDNN_SEVERITY_WARNING_BIT | QDNN_SEVERITY_ERROR_BIT, NULL, listen));
    scene_play(&scene_kinds[SCENE_INT4], NULL, 1);
    OK(qdnnSetCallback(0, NULL, NULL));
    CHECK_HAS(told, "2 qdnnCreateQuantizePlan: QDNN_DUMP_DIR: /dev/null/no_folder/quantize_int4");
    CHECK_HAS(told, "could not be written");
    CHECK(!strstr(told, "1 "));
    vm_end();
}

/* ---- The log ---- */

TEST_CASE(ApiTools, CallsAreTold)
{
    NEED_PTXVM;
    vm_begin(NULL);
    log_reset();
    told[0] = 0;
    OK(qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, NULL, listen));
    scene_play(&scene_kinds[SCENE_NF4], NULL, 1);
    CHECK_HAS(told, "3 qdnnCreate: called with handle ");
    CHECK_HAS(told, "3 qdnnCreate: handle ");
    CHECK_HAS(told, "3 qdnnCopyToDevice: called with handle ");
    CHECK_HAS(told, "kernels for sm_90");
    CHECK_HAS(told, "quantize_nf4 sm_90");
    CHECK_HAS(told, "emitted in ");
    CHECK_HAS(told, "3 qdnnExecute: quant.nf4.dequantize: ");
    CHECK_HAS(told, "3 qdnnDequantize: quant.nf4.dequantize: "); /* a call of its own, not an execute */
    CHECK_HAS(told, "3 qdnnDestroy: called with handle ");
    OK(qdnnSetCallback(QDNN_SEVERITY_ERROR_BIT, NULL, listen));
    told[0] = 0;
    qdnnSynchronize(NULL);
    CHECK_EQ_STR(told,
                 "1 qdnnSynchronize: QDNN_STATUS_BAD_PARAM_NULL_POINTER: handle is null; it must not be\n");
    OK(qdnnSetCallback(0, NULL, NULL));
    vm_end();
}

/* A callback may call the library, whatever message it receives. */
static void create_again(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    (void)severity, (void)debug, (void)message;
    qdnnHandle_t handle = NULL;
    if (qdnnCreateOn(&handle, "vm") == QDNN_STATUS_SUCCESS)
        ++*(int *)user;
    qdnnDestroy(handle);
}

TEST_CASE(ApiTools, CallbacksMayCall)
{
    NEED_PTXVM;
    int calls = 0;
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    log_reset();
    OK(qdnnSetCallback(QDNN_SEVERITY_ERROR_BIT | QDNN_SEVERITY_INFO_BIT, &calls, create_again));
    CHECK_STATUS_IS(qdnnCreateOn(&handle, "vm:sm_1"), QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
    scene_play(&scene_kinds[SCENE_INT4], NULL, 1);
    OK(qdnnSetCallback(0, NULL, NULL));
    CHECK(calls > 3);
    vm_end();
}
