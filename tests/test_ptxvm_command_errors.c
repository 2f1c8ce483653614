/* The ptxvm command: a wrong command line is reported in one line, with exit code 2. */
#include "test_ptxvm_command.h"

#include <string.h>

typedef struct error_case {
    const char *arguments, *message;
} error_case;

static void check_errors(const error_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        test_push_note("ptxvm %s", cases[i].arguments);
        process_result r = run_ptxvm(cases[i].arguments);
        CHECK_EQ_I64(r.status, 2);
        CHECK_HAS(r.output, cases[i].message);
        CHECK(strncmp(r.output, "ptxvm: ", 7) == 0);
        CHECK(strchr(r.output, '\n') == r.output + r.length - 1);
        process_free(&r);
        test_pop_note();
    }
}

TEST_CASE(PtxvmCommand, WrongOptions)
{
    static const error_case cases[] = {
        {"", "no file is given: ptxvm FILE.ptx (ptxvm --help shows examples)"},
        {"--gird 4 scale.ptx", "unknown option '--gird'; did you mean '--grid'?"},
        {"--frobnicate", "unknown option '--frobnicate'; it is not one of ptxvm's"},
        {"-x", "unknown option '-x'"},
        {"--quiet=1 scale.ptx", "--quiet takes no value"},
        {"scale.ptx --run", "--run needs a value"},
        {"scale.ptx --sm=", "--sm needs a value"},
        {"scale.ptx --sm 81", "unknown SM 'sm_81'; did you mean 'sm_80'?"},
        {"scale.ptx --sm sm_90b", "unknown SM 'sm_90b'; did you mean 'sm_90'?"},
        {"scale.ptx --sm hopper", "unknown SM 'hopper'; as in --sm 90 or --sm sm_100a"},
        {"scale.ptx --block 32", "--grid, --block, --check, --counters and their like go with --run KERNEL"},
        {"scale.ptx --grid 2", "go with --run KERNEL"},
        {"scale.ptx --counters", "go with --run KERNEL"},
        {"scale.ptx --check all", "go with --run KERNEL"},
        {"scale.ptx --run scale --run scale", "--run is given twice"},
        {"scale.ptx --run scale --grid 0 --block 1",
         "--grid takes one to three numbers from 1 up, as in 4,2,1, not '0'"},
        {"scale.ptx --run scale --grid 1,2,3,4", ", not '1,2,3,4'"},
        {"scale.ptx --run scale --block 1,,1",
         "--block takes one to three numbers from 1 up, as in 4,2,1, not '1,,1'"},
        {"scale.ptx --run scale --block x", ", not 'x'"},
        {"scale.ptx --run scale --shared 1Q", "--shared takes a number, not '1Q'"},
        {"scale.ptx --run scale --shared 8G", "--shared 8G: the most is 4294967295"},
        {"scale.ptx --run scale --threads -1", "--threads takes a number, not '-1'"},
        {"scale.ptx --run scale --threads 9999", "--threads 9999: the most is 1024"},
        {"scale.ptx --run scale --seed abc", "--seed takes a number, not 'abc'"},
        {"scale.ptx --run scale --steps 99999999999999999999", "--steps takes a number"},
        {"scale.ptx --run scale --check rac", "unknown check 'rac'; did you mean 'race'?"},
        {"scale.ptx --run scale --check memory,everything",
         "unknown check 'everything'; there are memory, init, race"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

TEST_CASE(PtxvmCommand, WrongLaunches)
{
    static const error_case cases[] = {
        {"scale.ptx --run scael --block 1", "unknown kernel 'scael'; did you mean 'scale'?"},
        {"types.ptx --run convolution --block 1", "unknown kernel 'convolution'; ptxvm types.ptx lists them"},
        {"scale.ptx --run scale 0 0 0", "--run scale needs --block, as in --block 128"},
        {"scale.ptx --run scale --block 1",
         "scale takes 3 arguments (x: u64, factor: f32, n: u32), and 0 were given"},
        {"scale.ptx --run scale --block 1 1 2 3 4", "and 4 were given"},
        {"types.ptx --run fixed 1", "fixed takes 0 arguments, and 1 was given"},
        {"scale.ptx --run scale --block 1025 0 0 0",
         "a block of (1025,1,1) threads: each must be 1 to (1024,1024,64)"},
        {"types.ptx --run fixed --block 32", "a block of (32,1,1) threads: fixed has .reqntid 32, 2"},
        {"scale.ptx --run scale --block 1 --shared 1G 0 0 0", "bytes of shared memory"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

#define SCALE  "scale.ptx --run scale --block 1 "
#define COPY   "types.ptx --run copy --block 1 "
#define PARAMS "types.ptx --run params --block 1 buf:64 "

TEST_CASE(PtxvmCommand, WrongNumbers)
{
    static const error_case cases[] = {
        {SCALE "0 0 1.5",
         "argument 3 '1.5' (parameter n, u32): '1.5' is not a whole number: write f32:1.5 if "
         "its bits are meant"},
        {SCALE "0 0 five", "argument 3 'five' (parameter n, u32): 'five' is not a whole number"},
        {SCALE "0 0 4294967296", "4294967296 is out of range: u32 holds -2147483648 to 4294967295"},
        {SCALE "0 0 -2147483649", "-2147483649 is out of range"},
        {SCALE "0 0 99999999999999999999", "is out of range"},
        {SCALE "0 0 ''", "argument 3 '' (parameter n, u32): '' is not a whole number"},
        {SCALE "0 0 1,2", "the values take 8 bytes, the parameter has 4"},
        {SCALE "0 0 u64:1", "the values take 8 bytes, the parameter has 4"},
        {SCALE "0 0 u16:1", "the values take 2 bytes, the parameter has 4"},
        {SCALE "0 0 u23:1", "unknown form 'u23:'; did you mean 'u32:'?"},
        {SCALE "0 0 something:1",
         "unknown form 'something:'; there are buf:, arg:, bytes: and types as in f32:"},
        {SCALE "0 0 buf:4", "an address has 8 bytes, and this parameter is smaller"},
        {SCALE "0 half 0", "argument 2 'half' (parameter factor, f32): 'half' is not a number of type f32"},
        {SCALE "0 1.5x 0", "'1.5x' is not a number of type f32"},
        {SCALE "0 0x3f800000 0", "0x... may be a value or bits: write b32:0x3f800000 for the bits"},
        {SCALE "bytes:00 0 0", "2 hexadecimal digits: 8 bytes have 16"},
        {SCALE "bytes:0g 0 0", "bytes: takes hexadecimal digits alone"},
        {SCALE "@scale.ptx 0 0", "the parameter 8"},
        {PARAMS "256 0 0 0 0 0 u64:0,0 0",
         "argument 2 '256' (parameter a, u8): 256 is out of range: u8 holds -128 to 255"},
        {PARAMS "0 0 0 0 0 0 0 0",
         "argument 8 '0' (parameter g, b8[16]): it has 16 bytes: write f32:1,2/u32:3 or bytes:HEX or @FILE"},
        {PARAMS "0 0 0 0 0 0 u64:1/2 0", "'2' has no type: write f32:1/u32:2"},
        {PARAMS "0 0 0 0 0 0 f32:1/u64:1,2 0", "the values take 24 bytes, the parameter has 16"},
        {PARAMS "0 0 0 0 0 0 f32:1/u65:1 0", "unknown form 'u65:'; did you mean 'u64:'?"},
        {PARAMS "0 0 0 0 0 0 buf:8 0", "an address has 8 bytes, and this parameter is no single value"},
        {PARAMS "0 0 0 0 0 0 u64:1 0", "the values take 8 bytes, the parameter has 16"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
}

TEST_CASE(PtxvmCommand, WrongBuffers)
{
    static const error_case cases[] = {
        {COPY "buf: 0", "argument 1 'buf:' (parameter to, u64): a buffer's size is a number of bytes (4096, "
                        "4K) or of elements "
                        "(1024xf32) or a file (@FILE), not ''"},
        {COPY "buf:0 0", ", not '0'"},
        {COPY "buf:-4 0", ", not '-4'"},
        {COPY "buf:4xf23 0",
         "unknown type 'f23'; it is u8 to u64, s8 to s64, b8 to b64, x8 to x64, f16, bf16, f32 or f64"},
        {COPY "buf:4=256 0", "256 is out of range: u8 holds -128 to 255 (or iota, or random:SEED)"},
        {COPY "buf:4=itoa 0", "'itoa' is not a whole number (or iota, or random:SEED)"},
        {COPY "buf:4= 0", "'' is not a whole number"},
        {COPY "buf:4=random: 0", "random: takes a number, as in random:1"},
        {COPY "buf:2=1,2,3 0", "3 values for 2 elements"},
        {COPY "buf:100G 0", "the device has no room for 107374182400 bytes"},
        {COPY "buf:@/dev/null 0", "the file is empty"},
        {COPY "'buf:4>' 0", "'>' must be followed by a type, as in >f32 or >x32:16, or a file"},
        {COPY "'buf:6>f32' 0", "6 bytes are not a whole number of f32"},
        {COPY "'buf:8>f32:3' 0", ">f32:3: the buffer has 2 of them"},
        {COPY "'buf:8>f32:0' 0", ">f32:N takes a number of elements, not '0'"},
        {COPY "'buf:8>f32:x' 0", ", not 'x'"},
        {COPY "'buf:8>u8>u8>u8>u8>u8>u8>u8>u8>u8' 0", "more than 8 outputs"},
        {COPY "buf:8 arg:", "argument 2 'arg:' (parameter from, u64): arg: takes the number of an argument, "
                            "as in arg:1 or arg:1+64"},
        {COPY "buf:8 arg:1-4", "arg: takes the number of an argument"},
        {COPY "buf:8 arg:2", "argument 2 is not a buffer before this one"},
        {COPY "8 arg:1", "argument 1 is not a buffer before this one"},
        {COPY "buf:8 arg:1+9", "the buffer of argument 1 has 8 bytes"},
    };
    check_errors(cases, sizeof cases / sizeof cases[0]);
    static const command_case missing[] = {
        {COPY "buf:@nothing.bin 0", 1, "ptxvm: cannot read nothing.bin: No such file or directory\n"},
        {COPY "@nothing.bin 0", 1, "ptxvm: cannot read nothing.bin: No such file or directory\n"},
    };
    CHECK_COMMANDS(missing);
}
