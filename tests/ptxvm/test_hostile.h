/* Modules made to do harm: texts that are made, loaded and run. */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include <stdarg.h>

#include "ptxvm/module.h"
#include "test_exec.h"

#define HEADER ".version 9.0\n.target sm_90\n.address_size 64\n"

/* ---- Text ---- */

typedef struct hostile {
    char *text;
    size_t length, capacity;
} hostile;

__attribute__((format(printf, 2, 3))) static inline void add(hostile *h, const char *format, ...)
{
    char part[1024];
    va_list args;
    va_start(args, format);
    size_t n = (size_t)vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (h->length + n + 1 > h->capacity) {
        h->capacity = 2 * h->capacity + n + 1024;
        h->text = realloc(h->text, h->capacity);
    }
    memcpy(h->text + h->length, part, n + 1);
    h->length += n;
}

/* ---- Loading and running ---- */

/* Loads the text, decodes k and runs 32 threads of it over a buffer; the error, "" where there is none. */
static inline ptxvm_status run_text(const ptxvm_config *config, const char *text, char *error, size_t size,
                                    uint64_t *out)
{
    ptxvm *vm = NULL;
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    ptxvm_address buffer = 0;
    ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    ptxvm_status status = ptxvm_create(config, &vm);
    if (!status)
        status = ptxvm_module_load(vm, text, strlen(text), &module);
    if (!status)
        status = ptxvm_module_kernel(module, "k", &kernel);
    if (!status)
        status = ptxvm_alloc(vm, 512, &buffer);
    if (!status)
        status = ptxvm_launch(vm, kernel, &launch, &buffer, sizeof buffer);
    if (!status && out)
        status = ptxvm_read(vm, out, buffer, 512);
    snprintf(error, size, "%s", status ? ptxvm_last_error(vm) : "");
    ptxvm_destroy(vm);
    return status;
}

/* The module is refused, or its launch fails, with this status and a sentence that has this part. */
static inline void check_refused(const ptxvm_config *config, const char *text, ptxvm_status expected,
                                 const char *part)
{
    char error[1024];
    ptxvm_status status = run_text(config, text, error, sizeof error, NULL);
    CHECK_EQ_STR(ptxvm_status_name(status), ptxvm_status_name(expected));
    CHECK_HAS(error, part);
}

static inline void check_runs(const ptxvm_config *config, const char *text)
{
    char error[1024];
    run_text(config, text, error, sizeof error, NULL);
    CHECK_EQ_STR(error, "");
}

#endif
