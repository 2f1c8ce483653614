/* The commands. */
#include "tools/qdnn/tool.h"

#include <string.h>

#include "base/environment.h"
const char tool_program[] = "qdnn";

static const struct {
    const char *name;
    int (*run)(const options *o);
} commands[] = {{"info", command_info},
                {"verify", command_verify},
                {"quantize", command_quantize},
                {"convert", command_convert},
                {"bench", command_bench}};

int main(int argc, char **argv)
{
    DEFAULT_ENVIRONMENT();
    options o = {0};
    int status = options_read(argc, argv, &o);
    for (size_t i = 0; status == TOOL_OK && o.command && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, o.command) == 0)
            return tool_finish(commands[i].run(&o));
    return tool_finish(status);
}
