#include "texts/record.h"

#include "kernels/kernels.h"
#include "texts/normal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN = 1 << 20 };

static struct {
    pthread_mutex_t lock;
    const char *path;
    bool only;
    uint64_t seen[SEEN]; /* hashes of lines */
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

void record_to(const char *path, bool only)
{
    record.path = path;
    record.only = only;
}

__attribute__((constructor)) static void begin(void)
{
    record.path = getenv("QDNN_TEXTS_RECORD");
}

static bool is_new(const char *line)
{
    const uint64_t hash = normal_hash(line) | 1;
    for (uint64_t i = 0; i < SEEN; i++) {
        uint64_t *at = &record.seen[(hash + i) % SEEN];
        if (*at == hash)
            return false;
        if (*at == 0) {
            *at = hash;
            return true;
        }
    }
    return false;
}

/* One write for each line: programs that run at the same time add to the same file. */
static void write_line(const char *line)
{
    FILE *file = fopen(record.path, "a");
    if (!file)
        return;
    fputs(line, file);
    fclose(file);
}

static void note(const kernel_row *row, const kernel_spec *spec)
{
    char error[512], line[KERNEL_SPEC_TEXT + 128];
    if (!kernel_spec_check(row, spec, error, sizeof error))
        return;
    const kernel_spec normal = kernel_spec_normal(row, spec);
    int n = snprintf(line, 128, "%s ", row->name);
    kernel_spec_text(row, &normal, line + n, KERNEL_SPEC_TEXT);
    strcat(line, "\n");
    pthread_mutex_lock(&record.lock);
    if (is_new(line))
        write_line(line);
    pthread_mutex_unlock(&record.lock);
}

void __real_kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                            kernel_steps *steps);
void __wrap_kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                            kernel_steps *steps);
void __wrap_kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                            kernel_steps *steps)
{
    if (record.path)
        note(row, spec);
    __real_kernel_steps_of(row, spec, problem, steps);
}

bool __real_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error)
{
    if (record.path)
        note(row, spec);
    if (!record.path || !record.only)
        return __real_kernel_emit(row, spec, sm, options, out, error);
    *out = (kernel_text){0};
    *error = (ptx_error){0};
    return false;
}
