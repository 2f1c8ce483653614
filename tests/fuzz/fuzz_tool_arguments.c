/* libFuzzer target: the command line of ptxvm, one argument per line. It runs the kernel that it asks for, over a module
 * with parameters of many types; files are neither read nor written. Run it with -close_fd_mask=3: it prints a lot. */
#define tool_read  real_read
#define tool_write real_write
#include "tools/output.c"
#undef tool_read
#undef tool_write

#include "tools/ptxvm/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

enum { ARGUMENTS_MOST = 64 };

const char tool_program[] = "ptxvm";

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

static const char module_text[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n.file 1 \"a.cu\"\n"
    ".visible .entry k(.param .u64 p, .param .f32 x, .param .u32 n)\n{\n"
    ".reg .b64 %d<4>; .reg .f32 %f<4>;\n.loc 1 2 3\nld.param.u64 %d1, [p]; ld.param.f32 %f1, [x];\n"
    "ld.global.f32 %f2, [%d1]; ex2.approx.f32 %f2, %f2; mul.f32 %f2, %f2, %f1; add.f32 %f2, %f2, %f1;\n"
    "st.global.f32 [%d1], %f2; ret;\n}\n"
    ".visible .entry m(.param .b8 b, .param .u16 h, .param .s64 l, .param .f64 d, .param .align 8 .b8 "
    "s[24],\n"
    ".param .f16 g, .param .s8 c, .param .u32 v[3])\n{\n ret;\n}\n"
    ".visible .entry r() .reqntid 8\n{\n bar.sync 0; ret;\n}\n";

int tool_read(const char *path, tool_text *text)
{
    if (strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".ptx") == 0)
        tool_append(text, module_text, sizeof module_text - 1);
    else
        tool_append(text, "0123456789abcdef01234567", strlen(path) % 25);
    return text->failed ? tool_fail("out of memory") : TOOL_OK;
}

/* Every byte is looked at, as writing them would. */
int tool_write(const char *path, const tool_text *text)
{
    unsigned sum = 0;
    for (size_t i = 0; i < text->size; i++)
        sum += (unsigned char)text->data[i];
    return text->failed || (path && !*path && sum == 1) ? TOOL_FAILED : TOOL_OK;
}

/* A user may make a run as expensive as they like, but not here. */
static void make_small(vm_options *o)
{
    for (int i = 0; i < 3; i++) {
        o->launch.grid[i] = o->launch.grid[i] % 4 + (o->launch.grid[i] % 4 == 0);
        o->launch.block[i] = o->launch.block[i] > 64 ? 2000 : o->launch.block[i];
    }
    o->threads = o->threads > 2 ? 2 : o->threads;
    o->steps = 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static vm_options options;
    char *text = calloc(size + 1, 1), *argv[ARGUMENTS_MOST + 2] = {(char *)"ptxvm"};
    int argc = 1;
    if (size)
        memcpy(text, data, size);
    for (char *at = text, *next; at && argc <= ARGUMENTS_MOST; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        argv[argc++] = at;
    }
    if (tool_parse(&options, argc, argv) == TOOL_OK && !options.help && !options.version) {
        make_small(&options);
        options.n_files = options.n_files > 4 ? 4 : options.n_files;
        if (options.kernel)
            tool_run(&options);
        else
            tool_list(&options);
    }
    free(text);
    return 0;
}
