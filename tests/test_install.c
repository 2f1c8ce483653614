/* The installed tree serves a user's project: by find_package and by pkg-config, shared and static. */
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static bool run_ok(const char *command)
{
    process_result result = process_run("%s", command);
    bool ok = result.status == 0;
    if (!ok)
        FAIL("exit code %d from: %s\n%s", result.status, command, result.output);
    process_free(&result);
    return ok;
}

/* 4 bits per value and 8 scales of 4 bytes; 0.4 is 2 steps of 1.5 / 7. In a library without ptxvm there is
 * nothing here to run it on: that it says so is all that can be seen. */
static void check_program(const char *command)
{
    process_result result = process_run("unset QDNN_REQUIRE_GPU; export QDNN_DEVICE=vm; %s", command);
#ifdef QDNN_PTXVM
    CHECK_EQ_I64(result.status, 0);
    CHECK_EQ_STR(result.output, "4096 bytes became 544; 0.400 came back as 0.429\n");
#else
    CHECK_EQ_I64(result.status, 1);
#endif
    process_free(&result);
}

/* A program that prints a kernel of its own, which the installed ptxvm checks and runs: 2 * {0, 1, 2} + {1, 1, 1}. */
static void check_kernel(const char *dir, const char *program)
{
    process_result r = process_run(
        "cd %s && %s >own.ptx && root/bin/ptxvm own.ptx >/dev/null && root/bin/ptxvm own.ptx --run saxpy "
        "--grid 1 --block 32 'buf:3xf32=iota' 'buf:3xf32=1>f32:3' 2.0 3 2>&1 | grep -o '1 3 5'",
        dir, program);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "1 3 5\n");
    process_free(&r);
}

static void by_find_package(const char *dir)
{
    char command[2048];
    snprintf(command, sizeof command,
             "%s -S %s/tests/consumer -B %s/consumer -DCMAKE_PREFIX_PATH=%s/root -DCMAKE_C_COMPILER=%s && %s "
             "--build %s/consumer",
             QDNN_CMAKE, QDNN_SOURCE_DIR, dir, dir, QDNN_C_COMPILER, QDNN_CMAKE, dir);
    if (!run_ok(command))
        return;
    snprintf(command, sizeof command, "%s/consumer/consumer_shared", dir);
    check_program(command);
    snprintf(command, sizeof command, "%s/consumer/consumer_static", dir);
    check_program(command);
    process_result witnesses = process_run("%s/consumer/witnesses", dir);
    CHECK_EQ_STR(witnesses.output, "32, 716\n");
    process_free(&witnesses);
    check_kernel(dir, "consumer/consumer_kernel");
    process_result files = process_run("%s/consumer/consumer_files", dir);
    CHECK_EQ_I64(files.status, 0);
    CHECK_EQ_STR(files.output, "no-such-model.gguf: cannot be read: No such file or directory\n");
    process_free(&files);
}

/* Beside the libraries: ptxvm's libcuda where nobody finds it by accident, man pages, the licence. */
static void check_files(const char *root)
{
    static const char *const files[] = {"lib*/qdnn/ptxvm/libcuda.so.1", "lib*/*/qdnn/ptxvm/libcuda.so.1",
                                        "share/man/man1/ptxgen.1",      "share/man/man1/ptxvm.1",
                                        "share/man/man1/ptxvm-ptxas.1", "share/man/man1/qdnn.1",
                                        "share/doc/qdnn/LICENSE",       "share/doc/qdnn/docs/guide.md",
                                        "include/qdnn/qdnn.h",          "include/qdnn/host_ref.h"};
    int libcuda = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        process_result found = process_run("ls %s/%s", root, files[i]);
        if (i < 2)
            libcuda += found.status == 0;
        else if (found.status != 0)
            FAIL("%s is not installed", files[i]);
        process_free(&found);
    }
    CHECK_EQ_I64(libcuda, 1);
}

static void by_pkg_config(const char *dir)
{
    process_result found = process_run("pkg-config --version");
    process_free(&found);
    if (found.status != 0)
        return;
    char command[2048];
    const char *config = "PKG_CONFIG_PATH=$(dirname $(find %s/root -name qdnn.pc)) pkg-config";
    char tool[700];
    snprintf(tool, sizeof tool, config, dir);
    snprintf(command, sizeof command, "%s %s/tests/consumer/main.c $(%s --cflags --libs qdnn) -o %s/by_pc",
             QDNN_C_COMPILER, QDNN_SOURCE_DIR, tool, dir);
    if (run_ok(command)) {
        snprintf(command, sizeof command, "LD_LIBRARY_PATH=$(%s --variable=libdir qdnn) %s/by_pc", tool, dir);
        check_program(command);
    }
    snprintf(command, sizeof command,
             "%s %s/tests/consumer/main.c -static $(%s --static --cflags --libs qdnn) -o %s/by_pc_static",
             QDNN_C_COMPILER, QDNN_SOURCE_DIR, tool, dir);
    if (run_ok(command)) {
        snprintf(command, sizeof command, "%s/by_pc_static", dir);
        check_program(command);
    }
    snprintf(command, sizeof command,
             "%s -std=c17 %s/tests/consumer/kernel.c $(%s --cflags --libs qdnn_ptxgen) -o %s/kernel_by_pc",
             QDNN_C_COMPILER, QDNN_SOURCE_DIR, tool, dir);
    if (run_ok(command))
        check_kernel(dir, "./kernel_by_pc");
    snprintf(command, sizeof command,
             "%s %s/tests/consumer/files.c $(%s --cflags --libs qdnn_files) -o %s/files_by_pc",
             QDNN_C_COMPILER, QDNN_SOURCE_DIR, tool, dir);
    if (run_ok(command)) {
        process_result files =
            process_run("LD_LIBRARY_PATH=$(%s --variable=libdir qdnn_files) %s/files_by_pc", tool, dir);
        CHECK_EQ_STR(files.output, "no-such-model.gguf: cannot be read: No such file or directory\n");
        process_free(&files);
    }
}

TEST_CASE(Install, ServesAUsersProject)
{
    if (strlen(QDNN_SANITIZE) > 0)
        SKIP("a sanitized library needs a sanitized user");
    char dir[512], command[2400];
    temp_dir_make(dir, sizeof dir);
    /* An installed tree may be moved. */
    snprintf(command, sizeof command, "%s --install %s --prefix %s/first && mv %s/first %s/root", QDNN_CMAKE,
             QDNN_BINARY_DIR, dir, dir, dir);
    if (run_ok(command)) {
        snprintf(command, sizeof command,
                 "%s/root/bin/ptxgen --version && %s/root/bin/ptxvm --version && %s/root/bin/ptxvm-ptxas "
                 "--version && %s/root/bin/qdnn --version",
                 dir, dir, dir, dir);
        run_ok(command);
        snprintf(command, sizeof command, "%s/root", dir);
        check_files(command);
        by_find_package(dir);
        by_pkg_config(dir);
    }
    temp_dir_remove(dir);
}

/* The archive unpacks to one folder with the same tree. */
TEST_CASE(Install, PackagesHoldTheTree)
{
    if (strlen(QDNN_SANITIZE) > 0)
        SKIP("nobody packs a sanitized library");
    char dir[512], command[2400];
    temp_dir_make(dir, sizeof dir);
    snprintf(
        command, sizeof command,
        "cd %s && cpack --config %s/CPackConfig.cmake -G TGZ && mkdir root && tar xzf qdnn-*.tar.gz -C root "
        "--strip-components=1",
        dir, QDNN_BINARY_DIR);
    if (run_ok(command)) {
        snprintf(command, sizeof command, "%s/root", dir);
        check_files(command);
    }
    temp_dir_remove(dir);
}

/* Internal names must not clash with those of a user's program: neither the shared nor the static library
 * exports them. */
TEST_CASE(Install, LibrariesShowPublicNamesAlone)
{
    if (strlen(QDNN_SANITIZE) > 0)
        SKIP("sanitizers add names of their own");
    static const struct {
        const char *listing, *shows, *prefix;
    } libraries[] = {{"nm -D --defined-only %s/libqdnn.so", " T qdnnEmitPtx\n", "qdnn[A-Z]"},
                     {"nm -g --defined-only %s/libqdnn.a", " T qdnnEmitPtx\n", "qdnn[A-Z]"},
                     {"nm -g --defined-only %s/libqdnn_files.a", " T qdnnOpenFile\n", "qdnn[A-Z]"},
                     {"nm -g --defined-only %s/libptxgen.a", " T ptx_open\n", "ptx_"}};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        char command[1200];
        snprintf(command, sizeof command, libraries[i].listing, QDNN_BINARY_DIR);
        process_result names = process_run("%s", command);
        process_result foreign =
            process_run("%s | awk 'NF == 3 && $3 !~ /^%s/'", command, libraries[i].prefix);
        CHECK_HAS(names.output, libraries[i].shows);
        CHECK_EQ_STR(foreign.output, "");
        process_free(&names);
        process_free(&foreign);
    }
}

/* The README's example is the consumer's program, to the letter. */
TEST_CASE(Install, ReadmeShowsTheSameProgram)
{
    process_result readme = process_run("cat %s/README.md", QDNN_SOURCE_DIR);
    process_result program = process_run("cat %s/tests/consumer/main.c", QDNN_SOURCE_DIR);
    CHECK_HAS(readme.output, program.output);
    process_free(&readme);
    process_free(&program);
}
