#include "log_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "support/process.h"
#include "tools/toolkit.h"

static char folder[512], path[600];

bool driver_open_logged(const char *prefix, const char *settings)
{
    char all[1024];
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(all, sizeof all, "PTXVM_LOG=%s%s %s", prefix, path, settings);
    return driver_open_context(all);
}

char *driver_close_logged(void)
{
    size_t bytes;
    driver_close();
    char *text = toolkit_read_file(path, &bytes);
    temp_dir_remove(folder);
    return text ? text : calloc(1, 1);
}

int text_count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}
