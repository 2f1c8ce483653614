/* ptxgen: writes the kernels of qdnn as files, without a GPU and without the CUDA toolkit. */
#include "tools/ptxgen/tool.h"

#include <qdnn/qdnn.h>

#include "base/environment.h"
const char tool_program[] = "ptxgen";

static int print_version(void)
{
    int version = qdnnGetVersion();
    printf("ptxgen %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    return TOOL_OK;
}

static int run(const tool_options *options)
{
    switch (options->mode) {
    case MODE_HELP:
        return tool_print_help();
    case MODE_VERSION:
        return print_version();
    case MODE_LIST:
        return tool_list(options);
    case MODE_MAP:
        return tool_map(options);
    case MODE_KERNEL:
        return tool_kernel(options);
    case MODE_ALL:
        return tool_all(options);
    case MODE_NONE:
        break;
    }
    return tool_usage_error("say what to do: --list, --kernel NAME, --all or --map NAME");
}

int main(int argc, char **argv)
{
    DEFAULT_ENVIRONMENT();
    tool_options options;
    int status = tool_parse(&options, argc, argv);
    if (status == TOOL_OK)
        status = run(&options);
    return tool_finish(status);
}
