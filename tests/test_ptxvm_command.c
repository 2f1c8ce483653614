/* The ptxvm command: help, files, listings, runs and what they print. */
#include "test_ptxvm_command.h"

#include "test_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- information ---- */

TEST_CASE(PtxvmCommand, HelpAndVersion)
{
    static const char *const ways[] = {"--help", "-h", "nothing.ptx --help"};
    for (int i = 0; i < 3; i++) {
        process_result r = run_ptxvm(ways[i]);
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, "usage: ptxvm FILE.ptx");
        CHECK_HAS(r.output, "buf:SIZE[=FILL]");
        process_free(&r);
    }
    process_result r = run_ptxvm("--version");
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "ptxvm 0.1.0 (PTX 6.0 to 9.4)\n");
    process_free(&r);
}

/* Every line of the examples is a command that does what it says. */
TEST_CASE(PtxvmCommand, TheExamplesOfTheHelpRun)
{
    char dir[256];
    int n = 0;
    temp_dir_make(dir, sizeof dir);
    process_result r = process_run("cp %s/scale.ptx %s/kernel.ptx && cp %s/scale.ptx %s/other.ptx && "
                                   "head -c 1024 /dev/zero >%s/in.bin",
                                   PTXVM_KERNELS, dir, PTXVM_KERNELS, dir, dir);
    CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    process_result help = run_ptxvm("--help");
    char *line = strstr(help.output, "examples:\n");
    for (line = line ? strchr(line, '\n') + 1 : NULL; line && strncmp(line, "  ptxvm ", 8) == 0; n++) {
        char *end = strchr(line, '\n');
        *end = 0;
        test_push_note("%s", line);
        r = process_run("cd %s && PATH=%s:$PATH && %s", dir, PTXVM_FOLDER, line);
        CHECK_EQ_I64(r.status, 0);
        CHECK(r.length > 0);
        process_free(&r);
        test_pop_note();
        line = end + 1;
    }
    CHECK_EQ_I64(n, 5);
    r = process_run("wc -c <%s/out.bin", dir);
    CHECK_EQ_STR(r.output, "1024\n");
    process_free(&r);
    process_free(&help);
    temp_dir_remove(dir);
}

/* ---- listings ---- */

static const char scale_listing[] =
    "scale.ptx: .version 8.0, .target sm_80, 1 kernel\n"
    "  scale: 3 parameters, 16 bytes; shared 0, local 0, const 0 bytes; up to 1024 threads\n"
    "    offset  bytes  type        parameter\n"
    "         0      8  u64         x\n"
    "         8      4  f32         factor\n"
    "        12      4  u32         n\n";

TEST_CASE(PtxvmCommand, ListsKernels)
{
    static const char *const ways[] = {"scale.ptx", "--sm 90a scale.ptx", "--sm=sm_120 -- scale.ptx"};
    for (int i = 0; i < 3; i++) {
        process_result r = run_ptxvm(ways[i]);
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output, scale_listing);
        process_free(&r);
    }
    process_result r = run_ptxvm("types.ptx");
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output,
              "types.ptx: .version 7.8, .target sm_75, 8 kernels\n"
              "  params: 9 parameters, 64 bytes; shared 0, local 0, const 16 bytes; up to 1024 threads\n"
              "    offset  bytes  type        parameter\n"
              "         0      8  u64 ptr     out\n"
              "         8      1  u8          a\n"
              "        10      2  s16         b\n"
              "        12      4  b32         c\n"
              "        16      4  f32         d\n"
              "        24      8  f64         e\n"
              "        32      2  b16         f\n"
              "        40     16  b8[16]      g\n"
              "        56      8  s64         h\n"
              "  fixed: 0 parameters, 0 bytes; shared 256, local 16, const 16 bytes; .reqntid 32,2,1\n"
              "  copy: 2 parameters");
    process_free(&r);
}

TEST_CASE(PtxvmCommand, StandardInputAndQuiet)
{
    static const command_case cases[] = {
        {"--quiet scale.ptx types.ptx", 0, ""},
        {"--quiet - <scale.ptx", 0, ""},
        {"--quiet scale.ptx --run scale --block 1 0 0 0", 0, ""},
    };
    CHECK_COMMANDS(cases);
    process_result r = run_ptxvm("- <scale.ptx");
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output + strlen("<stdin>"), scale_listing + strlen("scale.ptx"));
    process_free(&r);
}

TEST_CASE(PtxvmCommand, ListsAsJson)
{
    static const char *const values[][2] = {
        {"files.0.file", "scale.ptx"},
        {"files.1.file", "types.ptx"},
        {"files.0.version", "8.0"},
        {"files.0.target", "sm_80"},
        {"files.0.sm", "sm_90a"},
        {"files.0.kernels.0.name", "scale"},
        {"files.0.kernels.0.params.1.type", "f32"},
        {"files.0.kernels.0.params.2.offset", "12"},
        {"files.1.kernels.0.params.0.pointer", "true"},
        {"files.1.kernels.0.params.7.elements", "16"},
        {"files.1.kernels.0.params.7.align", "8"},
        {"files.1.kernels.1.reqntid.1", "2"},
        {"files.1.kernels.1.static_shared_bytes", "256"},
    };
    process_result r = run_ptxvm("scale.ptx types.ptx --json - --sm 90a");
    CHECK_EQ_I64(r.status, 0);
    json *doc = read_json(r.output);
    CHECK_EQ_I64(json_count(doc, "files"), 2);
    CHECK_EQ_I64(json_count(doc, "files.1.kernels"), 8);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        check_json(doc, values[i][0], values[i][1]);
    json_free(doc);
    process_free(&r);
}

/* ---- PTX that is not valid ---- */

TEST_CASE(PtxvmCommand, InvalidPtxIsShownWithItsLine)
{
    process_result r =
        process_run("cd %s && sed s/mul.rn.f32/mul.rn.f23/ scale.ptx | %s - scale.ptx", PTXVM_KERNELS, PTXVM);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "<stdin>:28:11: unknown modifier .f23\n"
                        "      mul.rn.f23 %f, %f, %s;\n"
                        "            ^\n");
    CHECK_HAS(r.output, scale_listing); /* the others are still checked */
    process_free(&r);
    static const command_case cases[] = {
        {"/dev/null", 1, "/dev/null: the file is empty\n"},
        {"nothing.ptx", 1, "ptxvm: cannot read nothing.ptx: No such file or directory\n"},
        {".", 1, "ptxvm: cannot read .: Is a directory\n"},
        {"--sm 75 scale.ptx", 1, "scale.ptx: PTX for sm_80 does not run on sm_75\n"},
    };
    CHECK_COMMANDS(cases);
}

/* ---- runs ---- */

TEST_CASE(PtxvmCommand, RunsAKernel)
{
    static const command_case cases[] = {
        {"scale.ptx --run scale --grid 2 --block 4 'buf:10xf32=iota>f32' 0.5 7", 0,
         "x, 10 f32:\n"
         "       0: 0 0.5 1 1.5 2 2.5 3 7\n"
         "       8: 8 9\n"
         "scale on sm_80, grid 2,1,1, block 4,1,1: 30 warp instructions, 114 thread instructions\n"},
        {"--run=scale --block=4,1,1 --sm 90 scale.ptx 'buf:4xf32=3>f32:2' -2 4 --quiet --seed 7 --threads 1",
         0, "x, 2 of 4 f32:\n       0: -6 -6\n"},
        {"types.ptx --run fixed", 0,
         "fixed on sm_75, grid 1,1,1, block 32,2,1: 20 warp instructions, 640 thread instructions\n"},
        {"types.ptx --run prints --block 2 42 --quiet", 0, "42 and 0\n42 and 1\n"},
        {"types.ptx --run dynamic --shared 1K --block 1 'buf:4>u32' --quiet", 0,
         "out, 1 u32:\n       0: 1024\n"},
        {"types.ptx --run meets --grid 7 --block 1 --cooperative 'buf:1xu32=0>u32' --quiet", 0,
         "out, 1 u32:\n       0: 7\n"},
    };
    CHECK_COMMANDS(cases);
}

TEST_CASE(PtxvmCommand, ReportsWhatAGpuMightDoOtherwise)
{
    static const command_case cases[] = {
        {"types.ptx --run rough --block 1 'buf:4>f32>x32' 2", 0,
         "out, 1 f32:\n       0: 12\n"
         "out, 1 x32:\n       0: 41400000\n"
         "rough on sm_75, grid 1,1,1, block 1,1,1: 7 warp instructions, 7 thread instructions\n"
         "approximate: a GPU's last bits may differ:\n"
         "  types.ptx:124: .approx: ex2.approx.f32\n"
         "contractable: the assembler may round once where the text rounds twice:\n"
         "  types.ptx:126: add may be contracted to fma with the mul of line 125\n"},
    };
    CHECK_COMMANDS(cases);
}

TEST_CASE(PtxvmCommand, FaultsEndTheRunWithOne)
{
    static const struct {
        const char *arguments, *message;
    } cases[] = {
        {"scale.ptx --run scale --block 128 buf:508=0 2 128", "scale.ptx:27: "},
        {"scale.ptx --run scale --block 128 1 2 128", "scale.ptx:27: "},
        {"types.ptx --run spins --block 1 --steps 100", "types.ptx:114: "},
        {"types.ptx --run copy --block 16 buf:16xf16=0 arg:1", "types.ptx:70: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_push_note("ptxvm %s", cases[i].arguments);
        process_result r = run_ptxvm(cases[i].arguments);
        CHECK_EQ_I64(r.status, 1);
        CHECK_HAS(r.output, cases[i].message);
        CHECK(strstr(r.output, "warp instructions") == NULL);
        process_free(&r);
        test_pop_note();
    }
}

/* ---- files ---- */

TEST_CASE(PtxvmCommand, BuffersFromAndToFiles)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r =
        process_run("cd %s && printf '\\001\\000\\000\\000\\377\\377\\000\\000' >in && "
                    "%s %s/types.ptx --run copy --block 2 'buf:8=0xaa>out>./f32>u32' buf:@in --quiet && "
                    "cmp in out && cmp in f32 && ls",
                    dir, PTXVM, PTXVM_KERNELS);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "to, 2 u32:\n       0: 1 65535\nf32\nin\nout\n");
    process_free(&r);
    r = process_run("cd %s && printf 0123456789abcdef >g && "
                    "%s %s/types.ptx --run params --block 1 'buf:64=0>x8' 1 2 3 4 5 6 @g 7 --quiet",
                    dir, PTXVM, PTXVM_KERNELS);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "      32: 30 31 32 33 34 35 36 37\n      40: 38 39 61 62 63 64 65 66\n");
    process_free(&r);
    temp_dir_remove(dir);
}

TEST_CASE(PtxvmCommand, RunAsJson)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r =
        process_run("cd %s && %s types.ptx --run rough --block 1 buf:4 2 --json %s/j --quiet && cat %s/j",
                    PTXVM_KERNELS, PTXVM, dir, dir);
    CHECK_EQ_I64(r.status, 0);
    json *doc = read_json(r.output);
    check_json(doc, "kernel", "rough");
    check_json(doc, "sm", "sm_75");
    check_json(doc, "block.0", "1");
    check_json(doc, "status", "ok");
    check_json(doc, "warp_instructions", "7");
    check_json(doc, "approximate.0.line", "124");
    check_json(doc, "contractable.0.what", "add may be contracted to fma with the mul of line 125");
    CHECK_EQ_I64(json_count(doc, "findings"), 0);
    json_free(doc);
    process_free(&r);
    r = process_run("cd %s && %s types.ptx --run spins --block 1 --steps 50 --json - 2>%s/errors",
                    PTXVM_KERNELS, PTXVM, dir);
    CHECK_EQ_I64(r.status, 1);
    doc = read_json(r.output);
    check_json(doc, "cuda_error", "702");
    check_json(doc, "findings.0.line", "114");
    CHECK_EQ_I64(json_count(doc, "findings"), 1);
    json_free(doc);
    process_free(&r);
    temp_dir_remove(dir);
}

TEST_CASE(PtxvmCommand, FullDisk)
{
    if (access("/dev/full", W_OK) != 0)
        SKIP("there is no /dev/full");
    static const command_case cases[] = {
        {"scale.ptx 2>&1 >/dev/full", 1, "ptxvm: cannot write to standard output\n"},
        {"scale.ptx --quiet --json /dev/full", 1, "ptxvm: cannot write /dev/full: No space left on device\n"},
        {"types.ptx --quiet --run fixed --json /dev/full", 1,
         "ptxvm: cannot write /dev/full: No space left on device\n"},
        {"types.ptx --quiet --run dynamic --block 1 'buf:4>/dev/full'", 1,
         "ptxvm: cannot write /dev/full: No space left on device\n"},
    };
    CHECK_COMMANDS(cases);
}
