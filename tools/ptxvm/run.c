/* --run: one kernel with the arguments of the command line. */
#include "tools/ptxvm/tool.h"

static const char *kernel_name(const void *list, int index)
{
    ptxvm_kernel_info info;
    ptxvm_kernel *kernel = ptxvm_module_kernel_at((ptxvm_module *)list, index);
    if (!kernel)
        return NULL;
    ptxvm_kernel_get_info(kernel, &info);
    return info.name;
}

static int find_kernel(const vm_options *o, vm_file *file, ptxvm_kernel **kernel)
{
    ptxvm_status status = ptxvm_module_kernel(file->module, o->kernel, kernel);
    char otherwise[300];
    if (status == PTXVM_OK)
        return TOOL_OK;
    if (status != PTXVM_ERROR_NOT_FOUND)
        return tool_fail("%s: %s", o->kernel, ptxvm_last_error(file->vm));
    const char *first = kernel_name(file->module, 0);
    snprintf(otherwise, sizeof otherwise, first ? "ptxvm %.250s lists them" : "%.250s has none", file->name);
    return tool_unknown("kernel", o->kernel, kernel_name, file->module, otherwise);
}

/* --block is the only option that a run requires, unless the kernel itself specifies the block. */
static int find_block(vm_options *o, const ptxvm_kernel *kernel)
{
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    if (o->has_block)
        return TOOL_OK;
    if (!info.reqntid[0])
        return tool_usage_error("--run %s needs --block, as in --block 128", o->kernel);
    for (int i = 0; i < 3; i++)
        o->launch.block[i] = info.reqntid[i] ? (uint32_t)info.reqntid[i] : 1;
    return TOOL_OK;
}

/* Also after a fault: the cost up to that point. */
static void show_counters(const vm_options *o, const vm_file *file)
{
    if (o->listing)
        ptxvm_counters_listing(file->vm, o->out);
    if (o->counters)
        tool_print_counters(file, o->out);
}

static int show(const vm_options *o, vm_file *file, const ptxvm_kernel *kernel, const vm_arguments *arguments)
{
    int status = TOOL_OK;
    for (int i = 0; i < arguments->n && status == TOOL_OK; i++)
        status = tool_buffer_output(&arguments->list[i], file, o->out);
    if (status == TOOL_OK)
        show_counters(o, file);
    if (status == TOOL_OK && !o->quiet)
        tool_print_report(file, o);
    if (status == TOOL_OK && o->time)
        status = tool_print_time(o, file, kernel);
    return status;
}

/* Errors in the launch itself are usage errors; all others happened while it ran. After findings that do not
 * end a run, results are still shown. */
static int end_run(const vm_options *o, vm_file *file, const ptxvm_kernel *kernel,
                   const vm_arguments *arguments, ptxvm_status ran)
{
    int status = TOOL_OK;
    if (ran == PTXVM_ERROR_LAUNCH_SIZE)
        return tool_usage_error("%s", ptxvm_last_error(file->vm));
    if (ran == PTXVM_OK || ran == PTXVM_ERROR_CHECK)
        status = show(o, file, kernel, arguments);
    else
        show_counters(o, file);
    if (ran != PTXVM_OK)
        tool_print_findings(file, ran);
    int leaks = tool_find_leaks(file, o, true);
    int written = o->json ? tool_write_json(file, o, ran) : TOOL_OK;
    tool_print_summary(file, o, ran, leaks);
    return status ? status : ran != PTXVM_OK || leaks ? TOOL_FAILED : written;
}

static int launch(vm_options *o, vm_file *file, ptxvm_kernel *kernel)
{
    vm_arguments arguments = {0};
    int status = find_block(o, kernel);
    if (status == TOOL_OK)
        status = tool_arguments_make(&arguments, o, file, kernel);
    if (status == TOOL_OK) {
        const ptxvm_launch_config *config = &o->launch;
        ptxvm_status ran = ptxvm_launch(file->vm, kernel, config, arguments.block, arguments.block_bytes);
        status = end_run(o, file, kernel, &arguments, ran);
    }
    tool_arguments_free(&arguments);
    return status;
}

int tool_run(vm_options *options)
{
    vm_file file;
    ptxvm_kernel *kernel = NULL;
    int status = tool_open(&file, options, options->files[0]);
    if (status == TOOL_OK)
        status = find_kernel(options, &file, &kernel);
    if (status == TOOL_OK)
        status = launch(options, &file, kernel);
    tool_close(&file);
    return status;
}
