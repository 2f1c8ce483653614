/* The ptxgen tool, run as its users run it: every option, every form, every error path, exit codes. */
#include "kernels/kernels.h"
#include "tools/toolkit.h"
#include "support/process.h"
#include "test.h"

#include <qdnn/plan.h>
#include "test_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PTXGEN QDNN_BINARY_DIR "/ptxgen/ptxgen"

static process_result run_tool(const char *arguments)
{
    return process_run("%s %s", PTXGEN, arguments);
}

/* What the library itself emits. */
static char *emitted(const char *kernel, const char *sm)
{
    kernel_spec spec = kernel_spec_default();
    kernel_text text;
    ptx_error error;
    bool ok = kernel_emit(kernel_find(kernel), &spec, ptx_sm_find(sm), NULL, &text, &error);
    CHECK(ok);
    return text.ptx;
}

/* ---- information ---- */

TEST_CASE(Tool, HelpAndVersion)
{
    static const char *const ways[] = {"--help", "-h", "--list --help"};
    for (int i = 0; i < 3; i++) {
        process_result r = run_tool(ways[i]);
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, "examples:");
        CHECK_HAS(r.output, "--kernel quantize_nf4 --sm 90");
        process_free(&r);
    }
    process_result r = run_tool("--version");
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "ptxgen 0.1.0\n");
    process_free(&r);
}

/* docs/operations.md is what ptxgen says, and says something of every name. */
TEST_CASE(Tool, OperationsAreDocumented)
{
    process_result list = run_tool("--list --emit md"), text = run_tool("--list");
    char *file = toolkit_read_file(QDNN_SOURCE_DIR "/docs/operations.md", NULL);
    if (CHECK(file != NULL) && strcmp(file, list.output) != 0)
        FAIL("docs/operations.md is out of date; fix: ptxgen --list --emit md -o docs/operations.md");
    CHECK(strstr(list.output, "formula: (null)") == NULL);
    CHECK(strstr(list.output, "known answer: \n") == NULL);
    CHECK(strstr(list.output, "operands: \n") == NULL);
    for (int i = 0; qdnnGetOperationName(i); i++) {
        char heading[128], line[128];
        snprintf(heading, sizeof heading, "\n## %s\n", qdnnGetOperationName(i));
        snprintf(line, sizeof line, "\n  %s\n", qdnnGetOperationName(i));
        CHECK_HAS(list.output, heading);
        CHECK_HAS(text.output, line);
    }
    free(file);
    process_free(&list);
    process_free(&text);
}

TEST_CASE(Tool, ListNamesEveryKernelAndSetting)
{
    process_result text = run_tool("--list"), list = run_tool("--list --emit json");
    CHECK_EQ_I64(text.status, 0);
    CHECK_EQ_I64(list.status, 0);
    json *doc = read_json(list.output);
    CHECK_EQ_I64(json_count(doc, "kernels"), kernel_row_count);
    CHECK_EQ_I64(json_count(doc, "sms"), ptx_sm_count());
    for (int i = 0; i < kernel_row_count; i++) {
        char path[64];
        CHECK_HAS(text.output, kernel_rows[i].name);
        CHECK_HAS(text.output, kernel_rows[i].summary);
        snprintf(path, sizeof path, "kernels.%d.name", i);
        check_json(doc, path, kernel_rows[i].name);
        snprintf(path, sizeof path, "kernels.%d.lowest_sm", i);
        const char *lowest = json_string(json_root(doc), path);
        CHECK(lowest && ptx_sm_find(lowest));
    }
    for (int i = 0; kernel_key_at(i); i++) {
        CHECK_HAS(text.output, kernel_key_at(i)->name);
        CHECK_HAS(text.output, kernel_key_at(i)->values);
    }
    process_free(&text);
    json_free(doc);
    process_free(&list);
}

/* ---- PTX ---- */

TEST_CASE(Tool, PtxOnStandardOutputIsWhatTheLibraryEmits)
{
    static const char *const ways[] = {
        "--kernel quantize_nf4 --sm 90",
        "--kernel=quantize_nf4 --sm=sm_90",
        "--sm compute_90 --kernel quantize_nf4",
        "--kernel quantize_nf4 --sm 90 --emit ptx -o -",
        "--kernel quantize_nf4 --sm 90,sm_90",
        "--kernel quantize_nf4 --sm 90 --set data=f32,scale=f32 --set group_size=128",
    };
    char *expected = emitted("quantize_nf4", "sm_90");
    for (size_t i = 0; expected && i < sizeof ways / sizeof ways[0]; i++) {
        test_push_note("ptxgen %s", ways[i]);
        process_result r = run_tool(ways[i]);
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output, expected);
        process_free(&r);
        test_pop_note();
    }
    free(expected);
}

TEST_CASE(Tool, SettingsAndTargetsReachTheText)
{
    process_result plain = run_tool("--kernel scale_int4 --sm 120a");
    process_result set =
        run_tool("--kernel scale_int4 --sm 120a --set data=f16,group_size=100 --set floor=0.5");
    process_result bits =
        run_tool("--kernel scale_int4 --sm 120a --set data=f16,group_size=100,floor=0f3F000000");
    CHECK_EQ_I64(set.status, 0);
    CHECK_HAS(plain.output, ".target sm_120a\n");
    CHECK_HAS(set.output, "0f3F000000");
    CHECK(strcmp(plain.output, set.output) != 0);
    CHECK_EQ_STR(set.output, bits.output);
    process_free(&plain);
    process_free(&set);
    process_free(&bits);
}

TEST_CASE(Tool, CommentsAddLinesAlone)
{
    process_result plain = run_tool("--kernel quantize_nf4 --sm 90");
    process_result without =
        process_run("%s --kernel quantize_nf4 --sm 90 --comments | grep -v '^\t//'", PTXGEN);
    CHECK_EQ_STR(without.output, plain.output);
    process_free(&plain);
    process_free(&without);
}

TEST_CASE(Tool, SameBytesInEveryRunAndLocale)
{
    process_result c =
        process_run("LC_ALL=C %s --kernel scale_int4 --sm 75 --set floor=0.25 --emit json", PTXGEN);
    process_result german =
        process_run("LC_ALL=de_DE.UTF-8 %s --kernel scale_int4 --sm 75 --set floor=0.25 --emit json", PTXGEN);
    CHECK_EQ_I64(c.status, 0);
    CHECK_EQ_STR(german.output, c.output);
    process_free(&c);
    process_free(&german);
}

TEST_CASE(Tool, PrintsMaps)
{
    process_result r = process_run("%s --map mma_b_k16", PTXGEN);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "mma_b_k16: operand B of m16n8k16\n"
                           "  lane 4k*2 8n; half 2k; register 2k*8\n"
                           "  k = 2 (lane % 4) + half + 8 register\n"
                           "  n = lane / 4\n");
    process_free(&r);
}

/* A board is its SM; and with sizes, the kernel that the library would choose there. */
TEST_CASE(Tool, Boards)
{
    process_result sm = process_run("%s --kernel quantize_nf4 --sm 90a", PTXGEN);
    process_result gpu = process_run("%s --kernel quantize_nf4 --gpu H100", PTXGEN);
    CHECK_EQ_I64(gpu.status, 0);
    CHECK_EQ_STR(gpu.output, sm.output);
    process_free(&sm);
    process_free(&gpu);
    process_result chosen =
        process_run("%s --kernel matmul_int4 --gpu a100 --size m=1,rows=4096,columns=4096 --emit json "
                    "--set data=f16,group_size=128,groups=rows,reduction=columns",
                    PTXGEN);
    CHECK_EQ_I64(chosen.status, 0);
    CHECK_HAS(chosen.output, "\"sm\": \"sm_80\",\n  \"multiprocessors\": 108,");
    CHECK_HAS(chosen.output, "\"product\": \"gemv\"");
    process_free(&chosen);
    process_result staged =
        process_run("%s --kernel matmul_int4 --gpu a100 --size m=1,rows=4096,columns=4096 --emit json "
                    "--set product=staged",
                    PTXGEN);
    CHECK_EQ_I64(staged.status, 0);
    CHECK(!strstr(staged.output, "gemv"));
    process_free(&staged);
}

/* ---- errors ---- */

static const struct {
    const char *arguments;
    int status;
    const char *message;
} errors[] = {
    {"", 2, "say what to do"},
    {"--map mma_a_k15", 2, "unknown map 'mma_a_k15'; did you mean 'mma_a_k16'?"},
    {"--map mma_c --sm 90", 2, "go with --kernel or --all"},
    {"--kernel quantise_nf4 --sm 90", 2, "unknown kernel 'quantise_nf4'; did you mean 'quantize_nf4'?"},
    {"--kernel zzzzzzzz --sm 90", 2, "unknown kernel 'zzzzzzzz'; ptxgen --list names them"},
    {"--kernel quantize_nf4 --sm 91", 2, "unknown SM '91'; did you mean 'sm_90'?"},
    {"--kernel quantize_nf4 --sm sm_90b", 2, "unknown SM 'sm_90b'; did you mean 'sm_90"},
    {"--kernel quantize_nf4 --sm hopper", 2, "unknown SM 'hopper'; there are sm_75 to sm_121"},
    {"--kernel quantize_nf4 --sm 90,", 2, "unknown SM ''"},
    {"--kernel quantize_nf4", 2, "needs --sm"},
    {"--kernel quantize_nf4 --gpu a101", 2, "unknown board 'a101'; did you mean 'a100'?"},
    {"--kernel quantize_nf4 --gpu zzzzzzzz", 2, "unknown board 'zzzzzzzz'; t4, rtx2080ti, a100"},
    {"--kernel quantize_nf4 --gpu a100 --gpu h100", 2, "--gpu names one board; there are a100 and h100"},
    {"--kernel quantize_nf4 --gpu a100 --sm 90", 2, "it goes without --sm"},
    {"--list --gpu a100", 2, "go with --kernel or --all"},
    {"--kernel quantize_nf4 --sm", 2, "--sm needs a value"},
    {"--kernel quantize_nf4 --sm=", 2, "--sm needs a value"},
    {"--kernel", 2, "--kernel needs a value"},
    {"--kernel scale_nf4 --kernel quantize_nf4 --sm 90", 2, "--kernel is given twice"},
    {"--kernel quantize_nf4 --sm 75,90", 2, "give --outdir DIR"},
    {"--kernel quantize_nf4 --sm 90 --set grop_size=64", 2, "did you mean 'group_size'?"},
    {"--kernel quantize_nf4 --sm 90 --set rounding=away", 2,
     "quantize_nf4 has no setting 'rounding'; it takes data"},
    {"--kernel quantize_nf4 --sm 90 --set data=f61", 2, "data=f61: it must be f32, f16, bf16"},
    {"--kernel quantize_nf4 --sm 90 --set group_size=0", 2, "group_size"},
    {"--kernel quantize_nf4 --sm 90 --set group_size=-1", 2, "group_size=-1"},
    {"--kernel scale_int4 --sm 90 --set floor=nan", 2, "floor=nan"},
    {"--kernel quantize_nf4 --sm 90 --set data", 2, "KEY=VALUE"},
    {"--kernel quantize_nf4 --sm 90 --set =f16", 2, "KEY=VALUE"},
    {"--kernel quantize_nf4 --sm 90 --emit elf", 2, "--emit takes ptx, c, launcher, cubin or json"},
    {"--kernel quantize_nf4 --sm 90 --emit launcher", 2, "two files"},
    {"--all --emit launcher --outdir x", 2, "--emit launcher writes one kernel: it goes with --kernel"},
    {"--kernel quantize_nf4 --sm 90 --emit cubim", 2, "did you mean 'cubin'?"},
    {"--kernel quantize_nf4 --sm 90 --emit c", 2, "two files"},
    {"--kernel quantize_nf4 --sm 90 -o x --outdir y", 2, "exclude each other"},
    {"--kernel quantize_nf4 --sm 90 --outdir /dev/null/x", 1, "cannot make the directory /dev/null"},
    {"--kernel quantize_nf4 --sm 90 -o /nonexistent/x.ptx", 1,
     "cannot write /nonexistent/x.ptx: No such file or directory"},
    {"--kernel quantize_nf4 --sm 90 -o /", 1, "cannot write /: Is a directory"},
    {"--kernle quantize_nf4", 2, "unknown option '--kernle'; did you mean '--kernel'?"},
    {"--frobnicate", 2, "unknown option '--frobnicate'"},
    {"quantize_nf4", 2, "to name a kernel, use --kernel quantize_nf4"},
    {"--list=yes", 2, "--list takes no value"},
    {"--list --all", 2, "exclude each other"},
    {"--list --sm 90", 2, "go with --kernel or --all"},
    {"--list --emit c", 2, "--list is text, or --emit json or md"},
    {"--kernel train.fake_quantize --sm 90", 2, "train.fake_quantize takes several kernels"},
    {"--kernel train.fake_quantize --sm 90 --size n=8", 2, "makes several files"},
    {"--kernel train.fake_quantize --sm 90 --size n=0 --emit json", 2, "nothing to do for these sizes"},
    {"--kernel train.fake_quantize --sm 90 --size n", 2, "--size takes KEY=VALUE, not 'n'"},
    {"--kernel train.fake_quantize --sm 90 --size n=-8 --emit json", 2, "n=-8: it must be 0 to 2^40"},
    {"--kernel train.fake_quantize --sm 90 --size colums=8 --emit json", 2, "did you mean 'columns'?"},
    {"--kernel matmul_int4 --sm 90 --size rows=1099511627776,columns=1099511627776 --emit json", 2,
     "the sizes are too large"},
    {"--kernel quant.gguf_q4_0.matmul --sm 90 --size rows=8,columns=33 --emit json", 2,
     "columns is 33; it must be a multiple of 32"},
    {"--kernel int4_topk --sm 90 --size rows=8,columns=33,top=9 --emit json", 2,
     "top is 9; it must be 1 to 64"},
    {"--list --size n=8", 2, "--size goes with --kernel"},
    {"--kernel quant.linear_4bit --sm 90 --set layout=words", 2,
     "quant.linear_4bit fixes layout=interleaved"},
    {"--all", 2, "give --outdir DIR"},
    {"--all --outdir there -o x", 2, "give --outdir DIR"},
    {"--all --outdir /dev/null/x --set dta=f16", 2, "unknown setting 'dta'; did you mean 'data'?"},
    {"--all --outdir /dev/null/x", 1, "cannot make the directory"},
};

TEST_CASE(Tool, ErrorsAreOneClearLineAndAnExitCode)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        test_push_note("ptxgen %s", errors[i].arguments);
        process_result r =
            process_run("%s %s >/dev/null", PTXGEN, errors[i].arguments); /* all that is seen is stderr */
        CHECK_EQ_I64(r.status, errors[i].status);
        CHECK_HAS(r.output, errors[i].message);
        CHECK(strncmp(r.output, "ptxgen: ", 8) == 0);
        CHECK(strchr(r.output, '\n') == r.output + r.length - 1);
        process_free(&r);
        test_pop_note();
    }
}

TEST_CASE(Tool, FullDisk)
{
    if (access("/dev/full", W_OK) != 0)
        SKIP("there is no /dev/full");
    process_result file = run_tool("--kernel quantize_nf4 --sm 90 -o /dev/full");
    process_result out = process_run("%s --kernel quantize_nf4 --sm 90 2>&1 >/dev/full", PTXGEN);
    CHECK_EQ_I64(file.status, 1);
    CHECK_EQ_STR(file.output, "ptxgen: cannot write /dev/full: No space left on device\n");
    CHECK_EQ_I64(out.status, 1);
    CHECK_EQ_STR(out.output, "ptxgen: cannot write to standard output\n");
    process_free(&file);
    process_free(&out);
}

/* ---- files ---- */

TEST_CASE(Tool, OutputReplacesAFileAndLeavesNothingElse)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r = process_run(
        "echo old >%s/k.ptx && %s --kernel scale_nf4 --sm 80 -o %s/k.ptx && ls %s && cat %s/k.ptx", dir,
        PTXGEN, dir, dir, dir);
    char *expected = emitted("scale_nf4", "sm_80");
    CHECK_EQ_I64(r.status, 0);
    CHECK(strncmp(r.output, "k.ptx\n", 6) == 0);
    if (expected)
        CHECK_EQ_STR(r.output + 6, expected);
    free(expected);
    process_free(&r);
    temp_dir_remove(dir);
}

TEST_CASE(Tool, OutdirNamesFilesByKernelSettingsAndTarget)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r = process_run(
        "%s --kernel scale_nf4 --sm 80,90a --set data=f16 --outdir %s/a/b && ls %s/a/b", PTXGEN, dir, dir);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "scale_nf4_f16_f32_g128_sm_80.ptx\nscale_nf4_f16_f32_g128_sm_90a.ptx\n");
    process_free(&r);
    temp_dir_remove(dir);
}

/* ---- C ---- */

/* Two kernels in one program: their names do not clash, their text is the PTX, their geometry the registry's.
 */
static const char c_program[] =
    "#include <stdio.h>\n"
    "#include \"one.h\"\n"
    "#include \"two.h\"\n"
    "int main(void)\n"
    "{\n"
    "    fwrite(qdnn_quantize_nf4_f32_f32_g128_sm_90_ptx, 1,\n"
    "           qdnn_quantize_nf4_f32_f32_g128_sm_90_ptx_bytes, stdout);\n"
    "    fwrite(qdnn_scale_int4_zp_f16_f32_u8_g64_sm_75_ptx, 1,\n"
    "           qdnn_scale_int4_zp_f16_f32_u8_g64_sm_75_ptx_bytes, stdout);\n"
    "    printf(\"%s %d %llu %d\\n\", QDNN_QUANTIZE_NF4_F32_F32_G128_SM_90_ENTRY,\n"
    "           QDNN_QUANTIZE_NF4_F32_F32_G128_SM_90_BLOCK,\n"
    "           QDNN_QUANTIZE_NF4_F32_F32_G128_SM_90_ELEMENTS_PER_BLOCK,\n"
    "           QDNN_QUANTIZE_NF4_F32_F32_G128_SM_90_PARAM_N_OFFSET);\n"
    "    return 0;\n"
    "}\n";

static void check_c_program(const char *dir)
{
    char path[300];
    snprintf(path, sizeof path, "%s/main.c", dir);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(c_program, file);
    fclose(file);
    process_result built =
        process_run("cd %s && %s --kernel quantize_nf4 --sm 90 --emit c -o one.c && "
                    "%s --kernel scale_int4_zp --sm 75 --set data=f16,group_size=64 --emit c -o two && "
                    "%s -std=c17 -Wall -Wextra -pedantic -Werror main.c one.c two.c -o program",
                    dir, PTXGEN, PTXGEN, QDNN_C_COMPILER);
    CHECK_EQ_I64(built.status, 0);
    CHECK_EQ_STR(built.output, "");
    process_free(&built);
    process_result got = process_run("%s/program", dir);
    process_result expected = process_run("%s --kernel quantize_nf4 --sm 90 && "
                                          "%s --kernel scale_int4_zp --sm 75 --set data=f16,group_size=64 && "
                                          "echo qdnn_quantize_nf4 256 4096 24",
                                          PTXGEN, PTXGEN);
    CHECK_EQ_STR(got.output, expected.output);
    process_free(&got);
    process_free(&expected);
}

TEST_CASE(Tool, CFilesCompileAndHoldTheText)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    check_c_program(dir);
    temp_dir_remove(dir);
}

/* A program on the driver API: 301 numbers become INT4 with scales of 1. It prints which text was loaded and the codes. */
static const char launcher_program[] =
    "#include <stdio.h>\n"
    "#include \"int4.h\"\n"
    "enum { N = 301 };\n"
    "int main(void)\n"
    "{\n"
    "    float x[N], scale[3] = {1, 1, 1};\n"
    "    unsigned char codes[(N + 1) / 2];\n"
    "    CUdevice device; CUcontext context; CUdeviceptr dx, ds, dc;\n"
    "    qdnn_quantize_int4_f32_f32_g128_kernel k;\n"
    "    for (int i = 0; i < N; i++)\n"
    "        x[i] = (float)(i * 7 % 15) - 7;\n"
    "    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||\n"
    "        cuCtxSetCurrent(context) || cuMemAlloc(&dx, sizeof x) ||\n"
    "        cuMemAlloc(&ds, sizeof scale) || cuMemAlloc(&dc, sizeof codes) || cuMemcpyHtoD(dx, x, sizeof x) "
    "||\n"
    "        cuMemcpyHtoD(ds, scale, sizeof scale))\n"
    "        return 1;\n"
    "    CUresult loaded = qdnn_quantize_int4_f32_f32_g128_load(&k);\n"
    "    if (loaded) {\n"
    "        printf(\"load: %d\\n\", (int)loaded);\n"
    "        return 0;\n"
    "    }\n"
    "    if (qdnn_quantize_int4_f32_f32_g128_launch(&k, NULL, dx, ds, dc, 0) ||\n"
    "        qdnn_quantize_int4_f32_f32_g128_launch(&k, NULL, dx, ds, dc, N) ||\n"
    "        cuMemcpyDtoH(codes, dc, sizeof codes) || qdnn_quantize_int4_f32_f32_g128_unload(&k))\n"
    "        return 2;\n"
    "    printf(\"%s \", k.sm);\n"
    "    for (int i = 0; i < (N + 1) / 2; i++)\n"
    "        printf(\"%02x\", codes[i]);\n"
    "    printf(\"\\n\");\n"
    "    return cuDevicePrimaryCtxRelease(device) != CUDA_SUCCESS;\n"
    "}\n";

static bool build_launcher(const char *dir)
{
    char path[300];
    snprintf(path, sizeof path, "%s/main.c", dir);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL))
        return false;
    fputs(launcher_program, file);
    fclose(file);
    process_result built =
        process_run("cd %s && %s --kernel quantize_int4 --sm 90,80,90a,86 --emit launcher -o int4 && %s "
                    "-std=c17 -Wall -Wextra -pedantic -Werror -isystem %s main.c int4.c -L%s/ptxvm "
                    "-l:libcuda.so.1 -o program",
                    dir, PTXGEN, QDNN_C_COMPILER, QDNN_CUDA_INCLUDE, QDNN_BINARY_DIR);
    CHECK_EQ_STR(built.output, "");
    bool ok = CHECK(built.status == 0);
    process_free(&built);
    return ok;
}

/* Codes are x + 8, the first of two in the low bits. */
static void expect_codes(const char *sm, char *text)
{
    text += sprintf(text, "%s ", sm);
    for (int i = 0; i < 301; i += 2)
        text += sprintf(text, "%02x",
                        (unsigned)(i * 7 % 15 + 1) | (i < 300 ? (unsigned)((i + 1) * 7 % 15 + 1) << 4 : 0));
    sprintf(text, "\n");
}

TEST_CASE(Tool, LauncherPicksTheTextForTheDevice)
{
    static const char *const devices[][2] = {
        {"sm_80", "sm_80"}, {"sm_89", "sm_86"}, {"sm_90", "sm_90a"}, {"sm_120", "sm_90"}, {"sm_75", NULL}};
    if (!QDNN_CUDA_INCLUDE[0])
        SKIP("no cuda.h was found when this was built");
    if (QDNN_SANITIZE[0])
        SKIP("a sanitized driver needs a sanitized program");
    char dir[256], expected[512];
    temp_dir_make(dir, sizeof dir);
    bool built = build_launcher(dir);
    for (int i = 0; built && i < 5; i++) {
        process_result r = process_run("LD_LIBRARY_PATH=%s/ptxvm PTXVM_CHECK=all PTXVM_SM=%s %s/program",
                                       QDNN_BINARY_DIR, devices[i][0], dir);
        test_push_note("on %s", devices[i][0]);
        if (devices[i][1])
            expect_codes(devices[i][1], expected);
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output, devices[i][1] ? expected : "load: 209\n"); /* CUDA_ERROR_NO_BINARY_FOR_GPU */
        test_pop_note();
        process_free(&r);
    }
    temp_dir_remove(dir);
}

/* Every kind of grid becomes C that compiles. */
TEST_CASE(Tool, LaunchersCompile)
{
    static const char *const kernels[] = {"matmul_int4 --set product=gemv,tile_rows=4",
                                          "prepack_int4",
                                          "w8a8_matmul",
                                          "int8_conv2d",
                                          "matmul_plain_f32 --set grouped=yes",
                                          "scale_int8 --set groups=rows"};
    if (!QDNN_CUDA_INCLUDE[0])
        SKIP("no cuda.h was found when this was built");
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        process_result r = process_run(
            "cd %s && %s --kernel %s --sm 80 --emit launcher -o k && %s -std=c17 -Wall -Wextra -pedantic "
            "-Werror -isystem %s -fsyntax-only k.c",
            dir, PTXGEN, kernels[i], QDNN_C_COMPILER, QDNN_CUDA_INCLUDE);
        CHECK_EQ_I64(r.status, 0);
        CHECK_EQ_STR(r.output, "");
        process_free(&r);
    }
    temp_dir_remove(dir);
}

/* Three launches with a workspace: worked out by hand for 1000 numbers in groups of 128. */
TEST_CASE(Tool, OperationsOfSeveralKernelsAreSequences)
{
    process_result r = run_tool("--kernel train.fake_quantize --sm 80 --size n=1000 --emit json");
    CHECK_EQ_I64(r.status, 0);
    json *doc = read_json(r.output);
    const json_value *root = json_root(doc);
    CHECK_EQ_STR(json_string(root, "operation"), "train.fake_quantize");
    CHECK_EQ_STR(json_at(root, "workspace")->text, "64"); /* 8 of absmax, 8 scales */
    CHECK_EQ_U64(json_at(root, "operands")->count, 2);
    CHECK_EQ_STR(json_at(root, "operands.0.bytes")->text, "4000");
    CHECK_EQ_U64(json_at(root, "steps")->count, 3);
    CHECK_EQ_STR(json_at(root, "steps.1.arguments.1.workspace")->text, "32");
    CHECK_EQ_STR(json_at(root, "steps.1.arguments.2")->text, "8");
    CHECK_EQ_STR(json_string(root, "steps.2.kernel"), "fake_quantize");
    CHECK_EQ_U64(json_at(root, "kernels")->count, 3);
    json_free(doc);
    process_free(&r);
}

/* ---- cubin ---- */

static bool is_elf(const char *path)
{
    size_t bytes = 0;
    char *data = toolkit_read_file(path, &bytes);
    bool elf = data && bytes > 64 && memcmp(data, "\177ELF", 4) == 0;
    free(data);
    return elf;
}

TEST_CASE(Tool, CubinByPtxas)
{
    char ptxas[1024], dir[256], path[300];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    temp_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/k.cubin", dir);
    process_result r = process_run("%s --kernel quantize_int4 --sm 90a --emit cubin -o %s", PTXGEN, path);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "");
    CHECK(is_elf(path));
    process_free(&r);
    temp_dir_remove(dir);
}

/* A toolkit that is elsewhere: no ptxas there nor on PATH. Then nvJitLink does it where the system has one,
 * and otherwise the message says what is missing. */
TEST_CASE(Tool, CubinWithoutPtxas)
{
    char dir[256], path[300];
    temp_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/k.cubin", dir);
    process_result r =
        process_run("PATH=/nonexistent CUDA_HOME=%s %s --kernel quantize_int4 --sm 90 --emit cubin -o %s",
                    dir, PTXGEN, path);
    if (r.status == 0)
        CHECK(is_elf(path));
    else {
        CHECK_EQ_I64(r.status, 1);
        CHECK_HAS(r.output, "needs ptxas or libnvJitLink");
        CHECK(access(path, F_OK) != 0);
    }
    process_free(&r);
    temp_dir_remove(dir);
}

TEST_CASE(Tool, CubinReportsWhatTheAssemblerSays)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result r = process_run(
        "mkdir %s/bin && printf '#!/bin/sh\\necho it is broken >&2\\nexit 3\\n' >%s/bin/ptxas && "
        "chmod +x %s/bin/ptxas && CUDA_HOME=%s %s --kernel quantize_int4 --sm 90 --emit cubin -o %s/k",
        dir, dir, dir, dir, PTXGEN, dir);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "quantize_int4 did not assemble for sm_90:\nit is broken\n");
    process_free(&r);
    temp_dir_remove(dir);
}
