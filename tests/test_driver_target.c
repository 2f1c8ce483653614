/* Which PTX a device and its driver accept. */
#include "driver/cuda/target.h"

#include <qdnn/qdnn.h>

#include "test.h"

TEST_CASE(DriverTarget, TheNewestPlainOneThatRuns)
{
    static const struct {
        int major, minor;
        const char *name;
    } devices[] = {{7, 5, "sm_75"},
                   {8, 0, "sm_80"},
                   {8, 6, "sm_86"},
                   {8, 7, "sm_87"},
                   {8, 8, "sm_88"},
                   {8, 9, "sm_89"},
                   {9, 0, "sm_90"},
                   {10, 0, "sm_100"},
                   {10, 3, "sm_103"},
                   {11, 0, "sm_110"},
                   {12, 0, "sm_120"},
                   {12, 1, "sm_121"},
                   /* in between and newer: the nearest lower */
                   {8, 2, "sm_80"},
                   {9, 5, "sm_90"},
                   {10, 1, "sm_100"},
                   {12, 9, "sm_121"},
                   {13, 0, "sm_121"},
                   {99, 9, "sm_121"}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const ptx_sm *sm = target_for(devices[i].major, devices[i].minor);
        test_push_note("compute capability %d.%d", devices[i].major, devices[i].minor);
        CHECK_EQ_STR(sm ? sm->name : NULL, devices[i].name);
        test_pop_note();
    }
}

TEST_CASE(DriverTarget, OlderThanTuringIsRefused)
{
    char sentence[512];
    CHECK(target_for(7, 0) == NULL);
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_EQ_STR(sentence, "the device is of compute capability 7.0; qdnn needs 7.5 (Turing) or later");
    CHECK(target_for(0, 0) == NULL);
}

TEST_CASE(DriverTarget, WhatADriverReads)
{
    static const int pairs[][2] = {{10020, 65}, {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73},
                                   {11040, 74}, {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78},
                                   {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
                                   {12050, 85}, {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88},
                                   {13000, 90}, {13010, 91}, {13020, 91}, {14000, 91}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        CHECK_EQ_I64(target_newest_version(pairs[i][0]), pairs[i][1]);
}

TEST_CASE(DriverTarget, NewerPtxIsRefusedBeforeTheLoad)
{
    char sentence[512];
    CHECK_EQ_I64(target_check_version(84, 12040), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(target_check_version(63, 11000), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(target_check_version(87, 12040), QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD);
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_EQ_STR(sentence,
                 "the kernel is PTX 8.7, and a driver of CUDA 12.4 reads PTX up to 8.4: update the driver");
}
