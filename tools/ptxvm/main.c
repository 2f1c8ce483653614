/* ptxvm: checks PTX files, lists their kernels, and runs one with arguments from the command line. */
#include "tools/ptxvm/tool.h"

#include "ptxvm/environment.h"
const char tool_program[] = "ptxvm";

static int print_version(void)
{
    printf("ptxvm " QDNN_VERSION " (PTX %d.%d to %d.%d)\n", ptxvm_oldest_isa / 10, ptxvm_oldest_isa % 10,
           ptxvm_newest_isa / 10, ptxvm_newest_isa % 10);
    return TOOL_OK;
}

int main(int argc, char **argv)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    vm_options options;
    int status = tool_parse(&options, argc, argv);
    if (status == TOOL_OK)
        status = options.help      ? tool_print_help()
                 : options.version ? print_version()
                 : options.kernel  ? tool_run(&options)
                                   : tool_list(&options);
    return tool_finish(status);
}
