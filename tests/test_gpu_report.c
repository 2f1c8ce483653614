/* The report of a device, on ptxvm: facts, a figure for every call, a picture. */
#include "device/gpu_process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static void check_file(const char *dir, const char *name, const char *const parts[])
{
    process_result text = process_run("cat %s/%s", dir, name);
    CHECK_EQ_I64(text.status, 0);
    for (int i = 0; parts[i]; i++)
        CHECK_HAS(text.output, parts[i]);
    CHECK(strstr(text.output, "nan") == NULL);
    process_free(&text);
}

/* The command as a user gives it, with few tests: facts, tests, figures, all in one folder. */
TEST_CASE(GpuReport, TheCommandRunsWholeOnPtxvm)
{
#ifdef QDNN_PTXVM
    if (strcmp(QDNN_BINARY_DIR, QDNN_SOURCE_DIR "/build") != 0)
        SKIP("./run gpu is about build/, and this is another folder");
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    process_result run = process_run(
        "cd %s && QDNN_TEST_SUMMARY= QDNN_DEVICE= QDNN_REQUIRE_GPU= QDNN_LIBCUDA= ./run gpu --outdir %s/r "
        "--no-build -R '^HostRefScalar'",
        QDNN_SOURCE_DIR, dir);
    CHECK_EQ_I64(run.status, 0);
    CHECK_HAS(run.output, "there is no GPU that can be used: the report is of ptxvm");
    CHECK_HAS(run.output, "0 failed");
    process_free(&run);
    char folder[600];
    snprintf(folder, sizeof folder, "%s/r", dir);
    static const char *const facts[] = {"**No GPU**",
                                        "cases passed, 0 failed",
                                        "![shares](shares.svg)",
                                        "| product | mxfp4 | tensor | 16 |",
                                        "host_ref before it was measured: none is wrong",
                                        NULL};
    static const char *const picture[] = {"<svg ", "</svg>", NULL};
    check_file(folder, "report.md", facts);
    check_file(folder, "shares.svg", picture);
    temp_dir_remove(dir);
#else
    SKIP("this build has no ptxvm in it");
#endif
}

TEST_CASE(GpuReport, IsWholeOnPtxvm)
{
#ifdef QDNN_PTXVM
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    process_result tests = process_run("printf '7 cases passed\n' > %s/tests.txt", dir);
    process_free(&tests);
    process_result run = process_run(
        "QDNN_DEVICE=vm:sm_80 QDNN_REQUIRE_GPU= " QDNN_FIND_LEAKS "%s/tools/gpu_report/gpu_report %s --side 256 --tests "
        "%s/tests.txt",
        QDNN_BINARY_DIR, dir, dir);
    CHECK_EQ_I64(run.status, 0);
    process_free(&run);
    static const char *const facts[] = {"**No GPU**",
                                        "| qdnn | " QDNN_PROJECT_VERSION " |",
                                        "| copy | f16 |  | 1 | a copy is not a kernel: nothing is counted |",
                                        "| compute capability | 8.0",
                                        "7 cases passed",
                                        "| product | gguf_q4_k | exact | 16 |",
                                        "| dequantize | mxfp4 |",
                                        NULL};
    static const char *const numbers[] = {"\"gpu\": false", "\"sm\": 80", "\"by\": \"exact\", \"rows\": 1",
                                          NULL};
    static const char *const picture[] = {"<svg ", "</svg>", "counted on ptxvm", NULL};
    check_file(dir, "report.md", facts);
    check_file(dir, "report.json", numbers);
    check_file(dir, "shares.svg", picture);
    temp_dir_remove(dir);
#else
    SKIP("this build has no ptxvm in it");
#endif
}

/* A bit of a product's first launch is flipped: the report names it in red in the place of its time, and the command fails. The 21 launches
 * before are those of the conversions. */
TEST_CASE(GpuReport, AWrongProductIsRed)
{
#ifdef QDNN_PTXVM
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    process_result run =
        process_run("QDNN_DEVICE= QDNN_REQUIRE_GPU=1 QDNN_LIBCUDA=" GPU_LIBCUDA
                    " PTXVM_SM=sm_90 TEST_GPU_DAMAGE=22 %s/tools/gpu_report/gpu_report %s --side 256 --quick",
                    QDNN_BINARY_DIR, dir);
    CHECK_EQ_I64(run.status, 1);
    CHECK_HAS(run.output, "1 calls are wrong");
    process_free(&run);
    static const char *const facts[] = {"1 of 50 calls are wrong</b>",
                                        "| product | f16 | exact | 1 | <b style=\"color:red\">",
                                        "wrong: 1 of 256 outputs are not host_ref's", NULL};
    static const char *const numbers[] = {"\"gpu\": true", "\"wrong\": true, \"why\": \"wrong: 1 of 256",
                                          NULL};
    static const char *const picture[] = {"fill=\"red\" font-weight=\"bold\">wrong", NULL};
    check_file(dir, "report.md", facts);
    check_file(dir, "report.json", numbers);
    check_file(dir, "shares.svg", picture);
    temp_dir_remove(dir);
#else
    SKIP("this build has no ptxvm in it");
#endif
}
