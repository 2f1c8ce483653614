/* Reading the counters of ptxvm. */
#include "tools/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char own[512]; /* our temporary file; empty if the user named a file */
static FILE *file;    /* opened at the first read: by then ptxvm has created it */

void vm_counters_open(void)
{
    const char *named = getenv("PTXVM_COUNTERS"), *folder = getenv("TMPDIR");
    if (named && *named)
        return;
    snprintf(own, sizeof own, "%s/qdnn-counters-XXXXXX", folder && *folder ? folder : "/tmp");
    int made = mkstemp(own);
    if (made >= 0 && setenv("PTXVM_COUNTERS", own, 1) == 0)
        close(made);
    else
        own[0] = 0; /* nothing will be counted */
}

/* The number after `"key": `, searching from `at`; moves `at` past it. */
static unsigned long long number(const char **at, const char *key)
{
    const char *found = strstr(*at, key);
    if (!found)
        return 0;
    *at = found + strlen(key);
    return strtoull(*at, NULL, 10);
}

static void add_traffic(const char **at, counts *out)
{
    out->sectors += number(at, "\"sectors\": ");
    out->least += number(at, "\"least_sectors\": ");
}

bool vm_counters_read(counts *out)
{
    static char text[16384]; /* a launch writes about 2000 bytes */
    *out = (counts){0};
    const char *path = getenv("PTXVM_COUNTERS");
    if (!file && path)
        file = fopen(path, "r");
    if (!file)
        return false;
    clearerr(file); /* it has grown since the end was reached */
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    int launches = 0;
    for (const char *at = text; (at = strstr(at, "\"total\": {")); launches++) {
        out->instructions += number(&at, "\"instructions\": ");
        add_traffic(&at, out); /* loads */
        add_traffic(&at, out); /* stores */
    }
    return launches > 0;
}

void vm_counters_close(void)
{
    if (file)
        fclose(file);
    if (own[0])
        remove(own);
}
