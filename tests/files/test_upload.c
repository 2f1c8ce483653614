/* A weight of a file on a device in one call. */
#include <string.h>

#include "files/opened.h"
#include "test.h"

#ifdef QDNN_PTXVM
#define NEED_PTXVM
#else
#define NEED_PTXVM SKIP("this build has no ptxvm in it")
#endif

static const qdnnUploadedWeight_t nothing; /* all 0 */

static bool is_empty(qdnnUploadedWeight_t u)
{
    u.weight.problem = NULL;
    return memcmp(&u, &nothing, sizeof u) == 0;
}

/* Int8 with one scale per row, and a weight that no descriptor reads. */
static bool make(opened *o)
{
    static const int8_t codes[8] = {1, -2, 3, -4, 100, 50, -25, 0};
    st_maker s = {0};
    st_add(&s, "up.weight", "I8", 2, 4, codes, 8);
    st_add(&s, "up.weight_scale", "F32", 2, 1, (const float[]){0.5f, 0.01f}, 8);
    st_add(&s, "wide", "F64", 1, 1, (const double[]){1}, 8);
    opened_make(o, st_make(&s), "model.safetensors");
    return opened_open(o, "model.safetensors");
}

TEST_CASE(FilesUpload, AWeightIsOnTheDeviceAsPlansTakeIt)
{
    NEED_PTXVM;
    static const float expected[8] = {0.5f, -1, 1.5f, -2, 1, 0.5f, -0.25f, 0};
    opened o;
    qdnnHandle_t h = NULL;
    qdnnUploadedWeight_t u;
    float y[8];
    void *values = NULL;
    REQUIRE(make(&o) && CHECK(!qdnnCreateOn(&h, "vm")) && CHECK(!qdnnMalloc(h, &values, sizeof y)));
    CHECK(qdnnUploadFileWeight(h, o.file, "up.weight", QDNN_DATA_F32, &u) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(u.weight.operands, 2);
    CHECK(u.bindings[0].operand == QDNN_OPERAND_CODES && u.bindings[1].operand == QDNN_OPERAND_SCALE);
    CHECK(u.bindings[0].bytes == 8 && u.bindings[1].bytes == 8);
    for (int i = 0; i < 2; i++)
        CHECK_EQ_I64((int64_t)((uintptr_t)u.bindings[i].pointer % 256), 0);
    u.bindings[u.weight.operands] = (qdnnBinding_t){QDNN_OPERAND_Y, values, sizeof y};
    CHECK(!qdnnDequantizeWith(h, u.tensor, u.quant, u.bindings, 3));
    CHECK(!qdnnCopyToHost(h, y, values, sizeof y));
    CHECK_EQ_MEM(y, expected, sizeof y);
    CHECK(!qdnnFreeUploadedWeight(h, &u));
    CHECK(is_empty(u));
    CHECK(!qdnnFreeUploadedWeight(h, &u));
    CHECK(!qdnnFree(h, values) && !qdnnDestroy(h));
    opened_close(&o);
}

TEST_CASE(FilesUpload, WhatFailsLeavesNothing)
{
    NEED_PTXVM;
    opened o;
    qdnnHandle_t h = NULL;
    qdnnUploadedWeight_t u;
    char why[512];
    REQUIRE(make(&o) && CHECK(!qdnnCreateOn(&h, "vm")));
    CHECK(qdnnUploadFileWeight(h, o.file, "down", QDNN_DATA_F32, &u) == QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
    qdnnGetLastFileErrorString(why, sizeof why);
    CHECK_HAS(why, "down");
    CHECK(is_empty(u) && !u.weight.problem);
    CHECK(qdnnUploadFileWeight(h, o.file, "wide", QDNN_DATA_F32, &u) == QDNN_STATUS_NOT_SUPPORTED);
    CHECK(is_empty(u));
    CHECK_HAS(u.weight.problem, "F64");
    CHECK(qdnnUploadFileWeight(NULL, o.file, "up.weight", QDNN_DATA_F32, &u) ==
          QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK(is_empty(u));
    CHECK(qdnnUploadFileWeight(h, o.file, "up.weight", QDNN_DATA_I32, &u) == QDNN_STATUS_SUCCESS);
    CHECK(qdnnDequantizeWith(h, u.tensor, u.quant, u.bindings, 2) == QDNN_STATUS_NOT_SUPPORTED);
    CHECK(!qdnnFreeUploadedWeight(h, &u));
    CHECK(!qdnnDestroy(h));
    opened_close(&o);
}
