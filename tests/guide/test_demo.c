/* ./run demo at a small size, and its comparison when something is wrong. */
#include "demo/demo.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#ifdef QDNN_PTXVM
#define NEED_PTXVM
#else
#define NEED_PTXVM SKIP("this build has no ptxvm in it")
#endif

static const char *const devices[] = {"vm:sm_75", "vm:sm_90", "vm:sm_120"};

static int device_count(void)
{
    return (int)(sizeof devices / sizeof devices[0]);
}

static void device_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", devices[index] + strlen("vm:"));
}

static process_result run_demo(const char *environment, const char *arguments)
{
    return process_run("env -u QDNN_REQUIRE_GPU -u PTXVM_COUNTERS %s %s/demo/demo %s", environment,
                       QDNN_BINARY_DIR, arguments);
}

TEST_EACH(Demo, EveryByteEqualsHostRef, device_count, device_name)
{
    NEED_PTXVM;
    char environment[64], sm[64];
    snprintf(environment, sizeof environment, "QDNN_DEVICE=%s", devices[index]);
    snprintf(sm, sizeof sm, "kernels are written for %s\n", devices[index] + strlen("vm:"));
    process_result result = run_demo(environment, "--side 256");
    CHECK_EQ_I64(result.status, 0);
    CHECK_HAS(result.output, sm);
    CHECK_HAS(result.output, "0.25 MiB become 0.03 of codes and 0.00 of scales, 4.25 bits per value\n");
    CHECK_HAS(result.output, "  quant.int4.scale ");
    CHECK_HAS(result.output, "  quant.nf4.dequantize ");
    CHECK_HAS(result.output,
              "Every byte equals host_ref's: 2048 of scales, 32768 of codes, 262144 of values.\n");
    CHECK_HAS(result.output,
              "Every byte equals host_ref's: 4096 of scales, 32768 of codes, 262144 of values.\n");
    /* The same bits everywhere, so the same figures. */
    CHECK_HAS(result.output, "RMS 0.03948, largest 0.09342; signal to noise 19.11 dB.\n");
    CHECK_HAS(result.output, "RMS 0.03257, largest 0.17180; signal to noise 20.78 dB.\n");
    CHECK_HAS(result.output, "How large the errors are\n");
    CHECK_HAS(
        result.output,
        "  attention output + residual  INT4, groups of 64    16 x 256 x 256     128      36     8.23%  "
        "equal     equal\n");
    CHECK_HAS(
        result.output,
        "  SwiGLU, gate and up          NF4, groups of 64     16 x 512 x 256     512     144    13.28%  "
        "equal     equal\n");
    CHECK_HAS(
        result.output,
        "  8 experts, router weights    INT4, groups of 64    16 x 256 x 256    1024     288    10.54%  "
        "equal     equal\n");
    CHECK(strstr(result.output, "\r") == NULL); /* no progress line where there is no terminal */
    process_free(&result);
}

/* Odd counts, a ragged last group, a matrix of one element. */
TEST_CASE(Demo, TakesAnySide)
{
    NEED_PTXVM;
    static const char *const sides[] = {"--side 1", "--side 257"};
    for (int i = 0; i < 2; i++) {
        process_result result = run_demo("QDNN_DEVICE=vm", sides[i]);
        CHECK_EQ_I64(result.status, 0);
        CHECK(strstr(result.output, "DIFFER") == NULL);
        process_free(&result);
    }
}

TEST_CASE(Demo, RefusesWhatItCannotRead)
{
    static const char *const wrong[] = {"--side 0",   "--side 12x",   "--side",
                                        "--sides 12", "--side 40000", "12"};
    for (int i = 0; i < 6; i++) {
        process_result result = run_demo("QDNN_DEVICE=vm", wrong[i]);
        CHECK_EQ_I64(result.status, 2);
        CHECK_HAS(result.output, "usage: demo [--side N]");
        process_free(&result);
    }
}

TEST_CASE(Demo, SaysWhatFailed)
{
    NEED_PTXVM;
    process_result result = run_demo("QDNN_DEVICE=vm PTXVM_FAULT=cuLaunchKernel:2=701", "--side 64");
    CHECK_EQ_I64(result.status, 1);
    CHECK_HAS(result.output, "demo: QDNN_STATUS_EXECUTION_FAILED: quant.int4.quantize: ");
    process_free(&result);
}

/* ---- The comparison ---- */

enum { N = 200000, GROUP = 64 }; /* several bands, the last one ragged */

static struct {
    float x[N], y[N], scale[N / GROUP];
    uint8_t codes[N / 2];
} data;

static quantized make_data(void)
{
    quantized q = {.spec = {.data = QDNN_DATA_F32, .storage = QDNN_DATA_NF4, .group_size = GROUP},
                   .n = N,
                   .x = data.x,
                   .y = data.y,
                   .scale = data.scale,
                   .codes = data.codes};
    for (int i = 0; i < N; i++)
        data.x[i] = (float)(i % 101 - 50) / 50;
    ref_arrays arrays = {.codes = data.codes, .scale = data.scale};
    ref_scale(&q.spec, 1, N, data.x, &arrays);
    ref_quantize(&q.spec, 1, N, data.x, &arrays);
    ref_dequantize(&q.spec, 1, N, &arrays, data.y);
    return q;
}

TEST_CASE(DemoComparison, CountsEveryByteThatDiffers)
{
    quantized q = make_data();
    comparison c;
    CHECK(compare(&q, &c));
    CHECK_EQ_I64(c.scales + c.codes + c.values, 0);
    ((uint8_t *)data.scale)[5] ^= 1;
    data.codes[0] ^= 16;
    data.codes[N / 2 - 1] ^= 1;
    ((uint8_t *)data.y)[N * 4 - 1] ^= 128;
    ((uint8_t *)data.y)[0] ^= 1;
    ((uint8_t *)data.y)[300000] ^= 1;
    CHECK(compare(&q, &c));
    CHECK_EQ_I64(c.scales, 1);
    CHECK_EQ_I64(c.codes, 2);
    CHECK_EQ_I64(c.values, 3);
}

TEST_CASE(DemoComparison, MeasuresErrors)
{
    quantized q = make_data();
    comparison c;
    for (int i = 0; i < N; i++) {
        data.x[i] = 1;
        data.y[i] = i % 4 ? 1 : 1.0625f;
    }
    CHECK(compare(&q, &c));
    CHECK_EQ_I64(c.bins[0], N / 4 * 3);
    CHECK_EQ_I64(c.bins[6], N / 4);
    CHECK(c.largest_error == 0.0625);
    CHECK(c.squared == N && c.squared_error == N / 4 * 0.0625 * 0.0625);
}
