/* The ptxvm command: every form of an argument, what it becomes, and the error for a wrong one. */
#include "test_ptxvm_command.h"

#include <stdio.h>
#include <string.h>

/* ---- numbers: the bytes that the kernel sees ---- */

/* The eight arguments behind `out` of the kernel `params`; one of them is given, the others are 0. */
enum { U8, S16, B32, F32, F64, B16, B8_16, S64, PARAMS };

static const struct {
    int param;
    const char *argument, *bytes; /* as x8 prints them */
} numbers[] = {
    {U8, "255", "ff"},
    {U8, "-128", "80"},
    {U8, "0x2A", "2a"},
    {S16, "-2", "fe ff"},
    {S16, "65535", "ff ff"},
    {S16, "+7", "07 00"},
    {B32, "4294967295", "ff ff ff ff"},
    {B32, "-2147483648", "00 00 00 80"},
    {B32, "f32:1.5", "00 00 c0 3f"},
    {B32, "f16:1,-2", "00 3c 00 c0"},
    {B32, "bytes:0102030F", "01 02 03 0f"},
    {F32, "1.5", "00 00 c0 3f"},
    {F32, "-.5", "00 00 00 bf"},
    {F32, "-inf", "00 00 80 ff"},
    {F32, "nan", "00 00 c0 7f"},
    {F32, "1e-45", "01 00 00 00"},
    {F32, "0x1.8p1", "00 00 40 40"},
    {F32, "0f3FC00000", "00 00 c0 3f"},
    {F32, "b32:0x3f800001", "01 00 80 3f"},
    {F32, "16777217", "00 00 80 4b"},
    {F64, "-1e300", "9c 75 00 88 3c e4 37 fe"},
    {F64, "0d3FF0000000000001", "01 00 00 00 00 00 f0 3f"},
    {B16, "bf16:1.5", "c0 3f"},
    {B16, "f16:1.5", "00 3e"},
    {B16, "f16:65519", "ff 7b"},
    {B16, "f16:65520", "00 7c"},
    {B16, "f16:-1e9", "00 fc"},
    {B16, "f16:5.9604644775390625e-8", "01 00"},
    {B16, "f16:2.98023223876953125e-8", "00 00"},
    {B16, "f16:2.99e-8", "01 00"},
    {B16, "f16:-0", "00 80"},
    {B16, "f16:nan", "00 7e"},
    {B16, "f16:2049", "00 68"},
    {B16, "f16:2051", "02 68"},
    {B16, "bf16:3.4e38", "80 7f"},
    {B8_16, "f32:1,2,3,4", "00 00 80 3f 00 00 00 40\n      40: 00 00 40 40 00 00 80 40"},
    {B8_16, "u8:7/f32:1/u16:9", "07 00 00 00 00 00 80 3f\n      40: 09 00 00 00 00 00 00 00"},
    {B8_16, "f32:2/s32:-1/f64:1.5", "00 00 00 40 ff ff ff ff\n      40: 00 00 00 00 00 00 f8 3f"},
    {B8_16, "u64:1,0x0203", "01 00 00 00 00 00 00 00\n      40: 03 02 00 00 00 00 00 00"},
    {B8_16, "bytes:000102030405060708090a0b0c0d0e0f",
     "00 01 02 03 04 05 06 07\n      40: 08 09 0a 0b 0c 0d 0e 0f"},
    {S64, "-9223372036854775808", "00 00 00 00 00 00 00 80"},
    {S64, "18446744073709551615", "ff ff ff ff ff ff ff ff"},
};

static int number_count(void)
{
    return sizeof numbers / sizeof numbers[0];
}

static void number_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", numbers[index].argument);
    for (char *c = text; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *c))
            *c = '_';
    size_t used = strlen(text);
    snprintf(text + used, size - used, "_%d", index);
}

TEST_EACH(PtxvmCommand, NumbersBecomeBytes, number_count, number_name)
{
    /* Where the kernel stores each, in rows of eight. */
    static const int offsets[PARAMS] = {0, 2, 4, 8, 16, 24, 32, 48};
    char command[1024] = "types.ptx --quiet --run params --block 1 'buf:56=0>x8'", row[256];
    for (int i = 0; i < PARAMS; i++) {
        strcat(command, " ");
        strcat(command, i == numbers[index].param ? numbers[index].argument : i == B8_16 ? "u64:0,0" : "0");
    }
    process_result r = run_ptxvm(command);
    int offset = offsets[numbers[index].param], used = snprintf(row, sizeof row, "%8d:", offset / 8 * 8);
    for (int i = 0; i < offset % 8; i++)
        used += snprintf(row + used, sizeof row - (size_t)used, " 00");
    snprintf(row + used, sizeof row - (size_t)used, " %s", numbers[index].bytes);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, row);
    process_free(&r);
}

/* ---- buffers: what a fill makes, as every type prints it ---- */

static const struct {
    const char *buffer, *output;
} buffers[] = {
    {"buf:4=7>u8", "4 u8:\n       0: 7 7 7 7\n"},
    {"buf:4=0xff>s8", "4 s8:\n       0: -1 -1 -1 -1\n"},
    {"buf:4=1,2>x16", "2 x16:\n       0: 0201 0201\n"},
    {"buf:3xu16=1,2,3>u16", "3 u16:\n       0: 1 2 3\n"},
    {"buf:5xs32=-1,2>s32", "5 s32:\n       0: -1 2 -1 2 -1\n"},
    {"buf:2xs32=-1>u64>x64",
     "1 u64:\n       0: 18446744073709551615\nto, 1 x64:\n       0: ffffffffffffffff\n"},
    {"buf:1xs64=-5>s64", "1 s64:\n       0: -5\n"},
    {"buf:12xu8=iota>u8:11", "11 of 12 u8:\n       0: 0 1 2 3 4 5 6 7\n       8: 8 9 10\n"},
    {"buf:300xu8=iota>u32:1", "1 of 75 u32:\n       0: 50462976\n"},
    {"buf:4xf16=iota>f16", "4 f16:\n       0: 0 1 2 3\n"},
    {"buf:4xbf16=0.1,-2,inf,nan>bf16", "4 bf16:\n       0: 0.1 -2 inf nan\n"},
    {"buf:3xf32=0.1,16777216,1e-45>f32", "3 f32:\n       0: 0.1 16777216 1e-45\n"},
    {"buf:2xf64=0.1,1e300>f64", "2 f64:\n       0: 0.1 1e+300\n"},
    {"buf:1xx32=0xdeadbeef>x32>x8", "1 x32:\n       0: deadbeef\nto, 4 x8:\n       0: ef be ad de\n"},
    {"buf:2xu64=random:1>x64", "2 x64:\n       0: 910a2dec89025cc1 beeb8da1658eec67\n"},
    {"buf:2xu32=random:1>x32", "2 x32:\n       0: 89025cc1 658eec67\n"},
    {"buf:1K=1>u32:1", "1 of 256 u32:\n       0: 16843009\n"},
};

TEST_CASE(PtxvmCommand, BuffersAreFilledAndPrinted)
{
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        char command[256], expected[256];
        snprintf(command, sizeof command, "types.ptx --quiet --check none --run copy --block 1 '%s' arg:1",
                 buffers[i].buffer);
        snprintf(expected, sizeof expected, "to, %s", buffers[i].output);
        test_push_note("%s", buffers[i].buffer);
        process_result r = run_ptxvm(command);
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output, expected);
        process_free(&r);
        test_pop_note();
    }
}

/* Random floating-point numbers lie between -1 and 1, and differ by seed. */
TEST_CASE(PtxvmCommand, RandomFloats)
{
    process_result r[2];
    for (int i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof command,
                 "types.ptx --quiet --run copy --block 32 'buf:32xf32=0>f32' buf:32xf32=random:%d", i + 1);
        r[i] = run_ptxvm(command);
        CHECK_EQ_I64(r[i].status, 0);
        int n = 0, negative = 0;
        char *at = strchr(r[i].output, ':');
        for (char *word = strtok(at ? at + 1 : r[i].output, " \n"); word; word = strtok(NULL, " \n")) {
            double x;
            if (strchr(word, ':') || sscanf(word, "%lf", &x) != 1)
                continue;
            n++;
            negative += x < 0;
            CHECK(x >= -1 && x <= 1);
        }
        CHECK_EQ_I64(n, 32);
        CHECK(negative > 4 && negative < 28);
    }
    CHECK(r[0].length != r[1].length || memcmp(r[0].output, r[1].output, r[0].length) != 0);
    process_free(&r[0]);
    process_free(&r[1]);
}

TEST_CASE(PtxvmCommand, AnAddressTwiceAndInside)
{
    static const command_case cases[] = {
        {"types.ptx --quiet --check none --run copy --block 2 'buf:4xu32=iota>u32' arg:1+8", 0,
         "to, 4 u32:\n       0: 2 3 2 3\n"},
        {"types.ptx --quiet --check none --run copy --block 4 'buf:4xu32=5>u32' buf:4xu32=iota", 0,
         "to, 4 u32:\n       0: 0 1 2 3\n"},
    };
    CHECK_COMMANDS(cases);
}
