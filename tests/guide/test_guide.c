/* The programs of docs/guide.md, copied verbatim from the page: each is compiled, run, and what it prints
 * compared with what the page says.
 *
 * A block of C that begins with a comment "name.c: ..." is a file; one with a main is a program. "Compile it
 * with `...`" after it is the command that compiles it (otherwise it is the one at the top of the page). A
 * block of sh has the commands that run it (otherwise it is just run), a block of text what they print. */
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 64, NAME_MAX_LENGTH = 40 };

/* Blocks lie within the page. */
typedef struct block {
    const char *text;
    int length;
} block;

typedef struct guide_file {
    char name[NAME_MAX_LENGTH]; /* "plan.c" */
    bool is_program;
    block source, commands, output;
} guide_file;

static struct {
    char *page;
    guide_file files[FILES_MAX];
    int n_files;
    int programs[FILES_MAX];
    int n_programs;
} guide;

/* ---- Reading the page ---- */

static bool block_has(block b, const char *part)
{
    const char *found = strstr(b.text, part);
    return found && found - b.text < b.length;
}

static void add_file(block source)
{
    guide_file *f = &guide.files[guide.n_files];
    if (guide.n_files == FILES_MAX || sscanf(source.text, "/* %39[a-z0-9_.]:", f->name) != 1)
        return;
    f->source = source;
    f->is_program = block_has(source, "main(");
    if (f->is_program)
        guide.programs[guide.n_programs++] = guide.n_files;
    guide.n_files++;
}

static void add_block(const char *kind, block b)
{
    guide_file *last = guide.n_files ? &guide.files[guide.n_files - 1] : NULL;
    if (strcmp(kind, "c") == 0)
        add_file(b);
    else if (last && strcmp(kind, "sh") == 0)
        last->commands = b;
    else if (last && strcmp(kind, "text") == 0)
        last->output = b;
}

/* Read once, and kept until the end of the process. */
static void read_guide(void)
{
    if (guide.page)
        return;
    process_result page = process_run("cat %s/docs/guide.md", QDNN_SOURCE_DIR);
    guide.page = page.output;
    char kind[8];
    for (const char *at = guide.page; (at = strstr(at, "\n```"));) {
        const char *start = strchr(at + 1, '\n'), *end = start ? strstr(start, "\n```") : NULL;
        if (!end)
            return;
        kind[0] = 0;
        sscanf(at, "\n```%7[a-z]", kind);
        add_block(kind, (block){start + 1, end > start ? (int)(end - start) : 0});
        at = end + 4;
    }
}

/* ---- Compiling and running ---- */

static void write_block(const char *dir, const char *name, block b)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL))
        return;
    fwrite(b.text, 1, (size_t)b.length, file);
    fclose(file);
}

static void write_files(const char *dir)
{
    for (int i = 0; i < guide.n_files; i++)
        write_block(dir, guide.files[i].name, guide.files[i].source);
}

static bool uses_cuda(const guide_file *f)
{
    return block_has(f->source, "<cuda.h>");
}

/* The name without its ending. */
static int stem(const guide_file *f)
{
    return (int)strcspn(f->name, ".");
}

/* The text in quotes behind the words; 0: they are not between the two. */
static int quoted(const char *from, const char *end, const char *words, const char **text)
{
    const char *at = strstr(from, words);
    if (!at || at >= end)
        return 0;
    *text = at + strlen(words);
    return (int)strcspn(*text, "`");
}

/* The command for a program; the one at the top of the page is about round_trip. */
static void command_of(const guide_file *f, char *command, size_t size)
{
    const char *from = f->source.text, *next = strstr(from, "\n```c\n"),
               *end = next ? next : from + strlen(from), *text = "";
    int length = quoted(from, end, "Compile it with `", &text);
    if (length) {
        snprintf(command, size, "%.*s", length, text);
        return;
    }
    length = quoted(guide.page, guide.page + strlen(guide.page), "Compile them with `", &text);
    size_t used = 0;
    for (const char *at = text; at < text + length && used + 1 < size;) {
        bool name = strncmp(at, "round_trip", 10) == 0;
        used +=
            (size_t)snprintf(command + used, size - used, "%.*s", name ? stem(f) : 1, name ? f->name : at);
        at += name ? 10 : 1;
    }
}

/* By the page's command, with a stand-in for the installed qdnn.pc (tests of the installation have that one),
 * and ptxvm's libcuda for NVIDIA's. */
static bool compile_as_told(const char *dir, const guide_file *f)
{
    char command[512];
    command_of(f, command, sizeof command);
    const char *sanitize = QDNN_SANITIZE[0] ? "-g -fsanitize=" QDNN_SANITIZE : "";
    process_result result =
        process_run("cd %s && ln -s %s/ptxvm/libcuda.so.1 libcuda.so && printf 'Name: qdnn\nDescription: "
                    "qdnn\nVersion: 0\nCflags: "
                    "-I%s/include\nLibs: -L%s -lqdnn\n' >qdnn.pc && printf 'Name: qdnn_ptxgen\nDescription: "
                    "ptx\nVersion: 0\nCflags: -I%s/ptx_include\nLibs: -L%s -lptxgen -ldl\n' >qdnn_ptxgen.pc "
                    "&& cc() { %s -std=c17 "
                    "-D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror %s "
                    "\"$@\"; } && export PKG_CONFIG_PATH=$PWD LIBRARY_PATH=$PWD C_INCLUDE_PATH=%s && %s",
                    dir, QDNN_BINARY_DIR, QDNN_SOURCE_DIR, QDNN_BINARY_DIR, QDNN_BINARY_DIR, QDNN_BINARY_DIR,
                    QDNN_C_COMPILER, sanitize, QDNN_CUDA_INCLUDE, command);
    if (result.status != 0)
        FAIL("%s does not compile by: %s\n%s", f->name, command, result.output);
    process_free(&result);
    return result.status == 0;
}

static bool compile(const char *dir, const guide_file *f, const char *compiler)
{
    const char *cuda = uses_cuda(f) ? "-isystem " QDNN_CUDA_INCLUDE " -l:libcuda.so.1" : "";
    const char *sanitize = QDNN_SANITIZE[0] ? "-g -fsanitize=" QDNN_SANITIZE : "";
    const char *files = block_has(f->source, "<qdnn/files.h>") ? "-lqdnn_files" : "";
    process_result result = process_run(
        "cd %s && %s -Wall -Wextra -Werror %s -I%s/include -L%s -L%s/ptxvm -o %.*s %s %s -lqdnn -pthread %s",
        dir, compiler, sanitize, QDNN_SOURCE_DIR, QDNN_BINARY_DIR, QDNN_BINARY_DIR, stem(f), f->name, f->name,
        files, cuda);
    if (result.status != 0)
        FAIL("%s does not compile:\n%s", f->name, result.output);
    process_free(&result);
    return result.status == 0;
}

#ifdef QDNN_PTXVM
enum { HAS_PTXVM = true };
#else
enum { HAS_PTXVM = false };
#endif

/* On ptxvm, whatever the machine has, and with no other settings. A program that uses CUDA itself finds ptxvm
 * as its driver, and so does qdnn in it; so does any in a library without ptxvm. */
static void run_and_compare(const char *dir, const guide_file *f)
{
    bool cuda = uses_cuda(f) || !HAS_PTXVM;
    if (f->commands.length)
        write_block(dir, "commands", f->commands);
    process_result result = process_run(
        "cd %s; for name in $(env | sed -n 's/^\\(QDNN_[A-Z_]*\\)=.*/\\1/p; "
        "s/^\\(PTXVM_[A-Z_]*\\)=.*/\\1/p'); "
        "do unset $name; done; export QDNN_DEVICE=%s PATH=%s/ptxgen:%s/ptxvm:$PATH LD_LIBRARY_PATH=%s%s; "
        "if [ -f commands ]; then sh -e commands; else ./%.*s; fi",
        dir, cuda ? "cuda" : "vm", QDNN_BINARY_DIR, QDNN_BINARY_DIR, QDNN_BINARY_DIR,
        cuda ? ":" QDNN_BINARY_DIR "/ptxvm" : "", stem(f), f->name);
    char *expected = calloc((size_t)f->output.length + 1, 1);
    memcpy(expected, f->output.text ? f->output.text : "", (size_t)f->output.length);
    CHECK_EQ_I64(result.status, 0);
    CHECK_EQ_STR(result.output, expected);
    free(expected);
    process_free(&result);
}

/* ---- From a bundle ---- */

static char bundle_parent[512];

static void remove_bundle(void)
{
    temp_dir_remove(bundle_parent);
}

/* Written once for all programs. */
static const char *bundle_folder(void)
{
    static char folder[600];
    if (!folder[0]) {
        temp_dir_make(bundle_parent, sizeof bundle_parent);
        atexit(remove_bundle);
        snprintf(folder, sizeof folder, "%s/kernels", bundle_parent);
        process_result r =
            process_run("%s/ptxgen/ptxgen --all --sm 80,90 --outdir %s", QDNN_BINARY_DIR, folder);
        CHECK_EQ_I64(r.status, 0);
        process_free(&r);
    }
    return folder;
}

/* Every kernel that the program emits is a file of the same name and the same bytes in the bundle of ptxgen --all. */
static void check_bundle_serves(const char *dir, const guide_file *f)
{
    if (!HAS_PTXVM || uses_cuda(f) || f->commands.length)
        return;
    process_result r = process_run("cd %s && mkdir -p dump && QDNN_DEVICE=vm:sm_90 QDNN_DUMP_DIR=dump "
                                   "LD_LIBRARY_PATH=%s ./%.*s >/dev/null && "
                                   "for file in $(ls dump); do cmp dump/$file %s/$file; done",
                                   dir, QDNN_BINARY_DIR, stem(f), f->name, bundle_folder());
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "");
    process_free(&r);
}

static int program_count(void)
{
    read_guide();
    return guide.n_programs;
}

static void program_name(int index, char *text, size_t size)
{
    const guide_file *f = &guide.files[guide.programs[index]];
    snprintf(text, size, "%.*s", stem(f), f->name);
}

TEST_EACH(Guide, PrintsWhatThePageSays, program_count, program_name)
{
    const guide_file *f = &guide.files[guide.programs[index]];
    if (uses_cuda(f) && !QDNN_CUDA_INCLUDE[0])
        SKIP("no cuda.h was found when this was built");
    if (!HAS_PTXVM && !strcmp(f->name, "device.c"))
        SKIP("this build has no ptxvm in it, and the program asks for it");
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    write_files(dir);
    if (compile_as_told(dir, f)) {
        run_and_compare(dir, f);
        check_bundle_serves(dir, f);
    }
    temp_dir_remove(dir);
}

TEST_EACH(Guide, IsCppToo, program_count, program_name)
{
    const guide_file *f = &guide.files[guide.programs[index]];
    if (uses_cuda(f) && !QDNN_CUDA_INCLUDE[0])
        SKIP("no cuda.h was found when this was built");
    if (block_has(f->source, "<qdnn/ptx.h>"))
        SKIP("the builder of PTX is for C alone");
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    write_files(dir);
    compile(dir, f, QDNN_CXX_COMPILER " -std=c++17 -x c++");
    temp_dir_remove(dir);
}

TEST_CASE(Guide, HasItsPrograms)
{
    read_guide();
    CHECK(guide.n_programs >= 9);
    CHECK(guide.n_files > guide.n_programs);
}

TEST_CASE(Guide, NamesEveryEnvironmentVariable)
{
    read_guide();
    process_result names =
        process_run("grep -rhE 'getenv\\(|\\.variable = ' %s/driver | grep -oE 'QDNN_[A-Z_]+' | sort -u",
                    QDNN_SOURCE_DIR);
    CHECK_HAS(names.output, "QDNN_DEVICE\n");
    for (char *name = strtok(names.output, "\n"); name; name = strtok(NULL, "\n")) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", name);
        CHECK_HAS(guide.page, quoted);
    }
    process_free(&names);
}
