/* Writing emitted PTX to QDNN_DUMP_DIR. */
#include "driver/cuda/dump.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/base/log.h"

/* Writes a temporary file and renames it: other threads and processes may write the same file at the same
 * time. */
static bool write_whole(const char *path, const char *text)
{
    char part[4200];
    int n = snprintf(part, sizeof part, "%s.%ld.%lx", path, (long)getpid(), (unsigned long)pthread_self());
    FILE *file = n > 0 && (size_t)n < sizeof part ? fopen(part, "wb") : NULL;
    if (!file)
        return false;
    bool ok = fwrite(text, 1, strlen(text), file) == strlen(text);
    ok = fclose(file) == 0 && ok;
    if (ok && rename(part, path) == 0)
        return true;
    remove(part);
    return false;
}

void dump_ptx(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const char *ptx)
{
    const char *directory = getenv("QDNN_DUMP_DIR");
    if (!directory || !*directory)
        return;
    char name[KERNEL_FILE_NAME], path[4096];
    kernel_file_name(row, spec, sm, name, sizeof name);
    int n = snprintf(path, sizeof path, "%s/%s.ptx", directory, name);
    mkdir(directory, 0777); /* it may exist already */
    if (n < 0 || (size_t)n >= sizeof path || !write_whole(path, ptx))
        log_write(QDNN_SEVERITY_WARNING, "QDNN_DUMP_DIR: %s could not be written: %s", path, strerror(errno));
}
