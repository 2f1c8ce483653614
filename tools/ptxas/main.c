/* The command: reads, checks, writes, and prints the messages of ptxas. */
#include "tools/ptxas/ptxas.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/environment.h"
#include "ptxvm/module.h"
#include "ptxvm/ptxvm.h"
#include "tools/tool.h"

const char tool_program[] = "ptxvm-ptxas";

/* ---- Versions ---- */

/* PTX ISA 9.x came with CUDA 13.x, and so on: callers choose the .version that they write by the release. */
static int print_version(void)
{
    int isa = ptxvm_accepted_isa() < 0 ? ptxvm_newest_isa : ptxvm_accepted_isa();
    int major = isa / 10 + 4, minor = isa % 10;
    printf("ptxvm-ptxas: PTX for ptxvm, in the place of ptxas\n"
           "ptxvm " QDNN_VERSION ", which reads PTX as of\n"
           "Cuda compilation tools, release %d.%d, V%d.%d.0\n",
           major, minor, major, minor);
    return PTXAS_OK;
}

static int print_versions(void)
{
    for (int isa = ptxvm_oldest_isa; isa <= ptxvm_accepted_isa(); isa++)
        if (isa < 66 || (isa >= 70 && isa < 79) || (isa >= 80 && isa < 89) || isa >= 90)
            printf("%d.%d\n", isa / 10, isa % 10);
    return PTXAS_OK;
}

/* ---- Messages ---- */

/* Rewrites ptxvm's "12:5: what is wrong", with the line and a caret below, in the style of ptxas. */
static int report(const ptxas_options *o, const char *message)
{
    int line = 0, column = 0, used = 0;
    const char *name = o->input_is_text ? "<string>" : o->input;
    char file[4096];
    pvm_escape(file, sizeof file, name, strlen(name));
    if (sscanf(message, "%d:%d: %n", &line, &column, &used) == 2 && used)
        fprintf(stderr, "ptxas %s, line %d; error   : %s\n", file, line, message + used);
    else
        fprintf(stderr, "ptxas error   : %s\n", message);
    return ptxas_fatal("Ptx assembly aborted due to errors");
}

static int warn(const ptxas_options *o, const char *what, const char *message)
{
    if (o->warnings_are_errors || !o->no_warnings)
        fprintf(stderr, "ptxas %s : %s: %s\n", o->warnings_are_errors ? "error  " : "warning", what, message);
    return o->warnings_are_errors ? ptxas_fatal("Ptx assembly aborted due to errors") : PTXAS_OK;
}

static void print_kernel(const ptxas_options *o, const ptxvm_kernel *kernel)
{
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    fprintf(stderr,
            "ptxas info    : Compiling entry function '%s' for '%s'\n"
            "ptxas info    : Function properties for %s\n"
            "    %llu bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used %d registers, %llu bytes smem, %llu bytes cmem[0]\n",
            info.name, o->arch, info.name, (unsigned long long)info.local_bytes, info.registers,
            (unsigned long long)info.static_shared_bytes, (unsigned long long)info.param_bytes);
}

/* ---- Checks ---- */

/* What a kernel calls and uses is resolved when it is decoded. What ptxvm cannot run is a warning: the other
 * kernels of the file can still be loaded. */
static int check_kernels(const ptxas_options *o, ptxvm *vm, ptxvm_module *module)
{
    int status = PTXAS_OK;
    for (int i = 0; i < ptxvm_module_kernel_count(module) && !status; i++) {
        ptxvm_kernel *kernel = ptxvm_module_kernel_at(module, i);
        ptxvm_kernel_info info;
        ptxvm_kernel_get_info(kernel, &info);
        ptxvm_status decoded = ptxvm_module_kernel(module, info.name, &kernel);
        if (decoded == PTXVM_ERROR_PTX)
            status = report(o, ptxvm_last_error(vm));
        else if (decoded)
            status = warn(o, info.name, ptxvm_last_error(vm));
        else if (o->verbose)
            print_kernel(o, kernel);
    }
    return status;
}

/* The device of an architecture: compute_90 and lto_90 are treated like sm_90. */
static int open_device(const ptxas_options *o, ptxvm **vm)
{
    const char *number = strchr(o->arch, '_');
    char sm[32];
    snprintf(sm, sizeof sm, "sm%.20s", number ? number : "");
    ptxvm_config config = {.sm = sm, .threads = 1};
    ptxvm_status status = ptxvm_create(&config, vm);
    if (status == PTXVM_ERROR_TARGET)
        return ptxas_fatal("Value '%s' is not defined for option 'gpu-name'", o->arch);
    return status ? ptxas_fatal("%s", ptxvm_status_name(status)) : PTXAS_OK;
}

static int check(const ptxas_options *o, const tool_text *text)
{
    ptxvm *vm;
    ptxvm_module *module;
    int status = open_device(o, &vm);
    if (status)
        return status;
    if (ptxvm_module_load(vm, text->data ? text->data : "", text->size, &module))
        status = report(o, ptxvm_last_error(vm));
    else if (!o->compile_only)
        status = check_kernels(o, vm, module);
    ptxvm_destroy(vm);
    return status;
}

/* ---- The whole command ---- */

/* The file ends with a zero byte: a program that passes a cubin's bytes to cuModuleLoadData does not add
 * one. */
static int assemble(const ptxas_options *o)
{
    tool_text text = {0};
    int status = PTXAS_OK;
    if (!o->input)
        return ptxas_fatal("No input file was specified");
    if (o->input_is_text)
        tool_append(&text, o->input, strlen(o->input));
    else if (tool_read(o->input, &text) != TOOL_OK)
        return ptxas_fatal("Input file '%s' could not be opened", o->input);
    status = check(o, &text);
    tool_append(&text, "", 1);
    if (!status && strncmp(o->arch, "sm_", 3) == 0 && tool_write(o->output, &text) != TOOL_OK)
        status = PTXAS_FAILED;
    tool_text_free(&text);
    return status;
}

static int run(int argc, char **argv)
{
    ptxas_options o;
    int status = ptxas_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help || argc == 1) {
        ptxas_print_help();
        return PTXAS_OK;
    }
    return o.version ? print_version() : o.list_versions ? print_versions() : assemble(&o);
}

int main(int argc, char **argv)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    return tool_finish(run(argc, argv));
}
