/* qdnn verify on a device that computes one bit wrong: it must say so, name the weight and fail. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU QDNN_BINARY_DIR "/tests/doubles/gpu/libcuda.so.1"
enum { WEIGHTS = 3, ELEMENTS = 64 };

/* Three weights in Q8_0 of one row each, and a plain one. */
static void make_file(opened *o)
{
    gguf_maker g = {0};
    static const char *const names[WEIGHTS] = {"first", "second", "third"};
    float x[ELEMENTS];
    for (int w = 0; w < WEIGHTS; w++) {
        uint8_t blocks[ELEMENTS / 32][34];
        for (int i = 0; i < ELEMENTS; i++) {
            blocks[i / 32][0] = 0; /* the scale: 1 */
            blocks[i / 32][1] = 0x3C;
            blocks[i / 32][2 + i % 32] = (uint8_t)(1 + i + w);
            x[i] = (float)i;
        }
        gguf_tensor(&g, names[w], 8, 2, (const int64_t[]){1, ELEMENTS}, blocks, sizeof blocks);
    }
    gguf_tensor(&g, "plain", 0, 1, (const int64_t[]){ELEMENTS}, x, sizeof x);
    opened_make(o, gguf_make(&g), "m.gguf");
}

static process_result verify(const opened *o, int damaged_launch)
{
    return process_run(
        "cd %s && QDNN_DEVICE=cuda QDNN_LIBCUDA=%s TEST_GPU_DAMAGE=%d %s/qdnn/qdnn verify m.gguf", o->dir,
        GPU, damaged_launch, QDNN_BINARY_DIR);
}

/* "the device has 41880000, host_ref 41800000": the bit that the device's damage flips, in any byte. */
static void check_bits(const char *message)
{
    unsigned device = 0, reference = 0;
    const char *at = strstr(message, "the device has ");
    REQUIRE(at != NULL);
    CHECK(sscanf(at, "the device has %x, host_ref %x", &device, &reference) == 2);
    unsigned differ = device ^ reference;
    CHECK(differ == 0x10 || differ == 0x1000 || differ == 0x100000 || differ == 0x10000000);
}

static const struct {
    const char *name;
    const char *weight; /* null: no launch is left that could be damaged */
} launches[] = {{"First", "first"}, {"Second", "second"}, {"Third", "third"}, {"None", NULL}};

TEST_ROWS(QdnnVerify, ADifferenceIsReported, launches)
{
    opened o;
    char says[80];
    make_file(&o);
    process_result r = verify(&o, index + 1);
    if (launches[index].weight) {
        CHECK_EQ_I64(r.status, 1);
        snprintf(says, sizeof says, "qdnn: %s: 1 of 64 elements differ; the first at [0, ",
                 launches[index].weight);
        CHECK_HAS(r.output, says);
        check_bits(r.output);
        CHECK_HAS(r.output,
                  "3 quantized weights, 192 elements: NOT the same on the device and by host_ref\n");
        CHECK_HAS(r.output, "qdnn: 1 weights differ\n");
    } else {
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output,
                     "3 quantized weights, 192 elements: the same bits on the device and by host_ref\n");
    }
    process_free(&r);
    opened_close(&o);
}
