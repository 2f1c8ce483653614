/* Loading libcuda.so.1 and starting the linked-in ptxvm: fills a cuda_api and initialises it. */
#include "driver/cuda/drivers.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda/cuda_error.h"
#include "driver/cuda/open.h"
#ifdef QDNN_PTXVM
#include "boards/boards.h"
#include "ptxgen/sm.h"
#include "ptxvm/cuda/ptxvm_cuda.h"
#endif

qdnnStatus_t driver_problem_set(driver_problem *problem, qdnnStatus_t status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, sizeof problem->text, format, args);
    va_end(args);
    return problem->status = status;
}

/* ---- The table ---- */

/* Finds a function by name, symbol and CUDA version, or null. */
typedef void *find_function(const char *name, const char *symbol, int since);

/* Fills the table with the functions that exist; returns the symbol of the first missing one that every supported driver
 * has, or null. ISO C
 * has no cast from void * to a function pointer, so the bits are copied. */
static const char *fill(cuda_api *api, find_function *find)
{
    static const struct {
        const char *name, *symbol;
        int since;
        size_t offset;
    } rows[] = {
#define FUNCTION(name, suffix, since, params) {#name, #name #suffix, since, offsetof(cuda_api, name)},
#include "driver/cuda/cuda.def"
#undef FUNCTION
    };
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = find(rows[i].name, rows[i].symbol, rows[i].since);
        memcpy((char *)api + rows[i].offset, &function, sizeof function);
        if (!function && !missing && rows[i].since <= CUDA_OLDEST_DRIVER)
            missing = rows[i].symbol;
    }
    return missing;
}

/* ---- libcuda.so.1 ---- */

/* cuGetProcAddress in its two forms; flags 0 means the legacy default stream. */
typedef CUresult get_5_fn(const char *name, void **function, int version, unsigned long long flags,
                          int *found);
typedef CUresult get_4_fn(const char *name, void **function, int version, unsigned long long flags);

static struct {
    void *library;
    char name[1024]; /* of the loaded library */
    get_5_fn *get_5;
    get_4_fn *get_4;
    bool ready;
    driver driver;
} libcuda;

static const char *wanted_name(void)
{
    const char *name = getenv("QDNN_LIBCUDA");
    return name && *name ? name : "libcuda.so.1";
}

bool driver_is_named(void)
{
    const char *name = getenv("QDNN_LIBCUDA");
    return name && *name;
}

const char *driver_cuda_name(void)
{
    return libcuda.library ? libcuda.name : wanted_name();
}

/* Uses the newest way that the driver offers; a name that it does not resolve may still be exported. */
static void *find_in_libcuda(const char *name, const char *symbol, int since)
{
    void *function = NULL;
    int found = 0;
    if (libcuda.get_5 && libcuda.get_5(name, &function, since, CU_GET_PROC_ADDRESS_DEFAULT, &found) != 0)
        function = NULL;
    if (!libcuda.get_5 && libcuda.get_4 &&
        libcuda.get_4(name, &function, since, CU_GET_PROC_ADDRESS_DEFAULT) != 0)
        function = NULL;
    return function ? function : dlsym(libcuda.library, symbol);
}

bool driver_cuda_found(void)
{
    return libcuda.library != NULL;
}

static void close_library(void)
{
    if (libcuda.library)
        dlclose(libcuda.library);
    memset(&libcuda, 0, sizeof libcuda);
}

static qdnnStatus_t open_library(driver_problem *problem)
{
    libcuda.library = dlopen(wanted_name(), RTLD_NOW | RTLD_LOCAL);
    if (!libcuda.library)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER, "%s: %s",
                                  driver_is_named() ? "QDNN_LIBCUDA names no library that can be opened"
                                                    : "the CUDA driver is not installed",
                                  dlerror());
    snprintf(libcuda.name, sizeof libcuda.name, "%s", wanted_name());
    void *get_5 = dlsym(libcuda.library, "cuGetProcAddress_v2");
    void *get_4 = dlsym(libcuda.library, "cuGetProcAddress");
    memcpy(&libcuda.get_5, &get_5, sizeof get_5);
    memcpy(&libcuda.get_4, &get_4, sizeof get_4);
    libcuda.driver.is_vm = dlsym(libcuda.library, "ptxvmGetVersion") != NULL;
    return QDNN_STATUS_SUCCESS;
}

enum { CODE_STUB = 34 };

static qdnnStatus_t does_not_start(const driver *d, CUresult code, const char *call, driver_problem *problem)
{
    if (code == CODE_STUB)
        return driver_problem_set(
            problem, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
            "%s is the CUDA toolkit's stub, not a driver: take its folder out of the library path",
            driver_cuda_name());
    cuda_describe(&d->api, code, call, problem->text, sizeof problem->text);
    problem->code = code;
    qdnnStatus_t status = cuda_status(code);
    return problem->status =
               status == QDNN_STATUS_EXECUTION_FAILED ? QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER : status;
}

/* The version is checked before missing functions: an old driver lacks functions because of its age. */
static qdnnStatus_t check_version(driver *d, driver_problem *problem)
{
    CUresult code = d->api.cuDriverGetVersion ? d->api.cuDriverGetVersion(&d->version) : 0;
    if (code != 0)
        return does_not_start(d, code, "cuDriverGetVersion", problem);
    if (d->api.cuDriverGetVersion && d->version < CUDA_OLDEST_DRIVER)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD,
                                  "the CUDA driver is for CUDA %d.%d; qdnn needs %d.%d or later: update it",
                                  d->version / 1000, d->version % 1000 / 10, CUDA_OLDEST_DRIVER / 1000,
                                  CUDA_OLDEST_DRIVER % 1000 / 10);
    return QDNN_STATUS_SUCCESS;
}

/* Fills, checks and initialises a driver whose functions `find` returns. */
static qdnnStatus_t start(driver *d, find_function *find, const char *name, driver_problem *problem)
{
    const char *missing = fill(&d->api, find);
    qdnnStatus_t status = check_version(d, problem);
    if (status == QDNN_STATUS_SUCCESS && missing)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
                                  "%s lacks the function %s: it is not a complete CUDA driver", name,
                                  missing);
    CUresult code = status == QDNN_STATUS_SUCCESS ? d->api.cuInit(0) : 0;
    return code != 0 ? does_not_start(d, code, "cuInit", problem) : status;
}

qdnnStatus_t driver_open_cuda(const driver **out, driver_problem *problem)
{
    /* A library that did not start may be replaced by the one that QDNN_LIBCUDA names now. */
    if (!libcuda.ready && libcuda.library && strcmp(libcuda.name, wanted_name()) != 0)
        close_library();
    if (!libcuda.library && open_library(problem) != QDNN_STATUS_SUCCESS)
        return problem->status;
    if (!libcuda.ready &&
        start(&libcuda.driver, find_in_libcuda, driver_cuda_name(), problem) != QDNN_STATUS_SUCCESS)
        return problem->status;
    libcuda.ready = true;
    *out = &libcuda.driver;
    return QDNN_STATUS_SUCCESS;
}

/* ---- ptxvm ---- */

static struct {
    bool ready;
    char name[16]; /* the SM or board that it emulates, or will */
    driver driver;
} linked;

#ifdef QDNN_PTXVM
static void *find_in_ptxvm(const char *name, const char *symbol, int since)
{
    (void)name, (void)since;
    return ptxvm_cuda_symbol(symbol);
}

/* The value of a variable that is set and not empty; else null. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* What ptxvm acts as where no device is named: PTXVM_GPU, else PTXVM_SM, else sm_90a. */
static qdnnStatus_t name_from_environment(const char **name, driver_problem *problem)
{
    const char *gpu = variable("PTXVM_GPU"), *sm = variable("PTXVM_SM");
    const board *of_gpu = gpu ? board_find(gpu) : NULL;
    const ptx_sm *of_sm = sm ? ptx_sm_find(sm) : NULL;
    if (gpu && !of_gpu)
        return driver_problem_set(problem, QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                                  "PTXVM_GPU is '%s', which is not a known board; the boards are %s", gpu,
                                  board_names());
    if (sm && !of_sm)
        return driver_problem_set(problem, QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                                  "PTXVM_SM is '%s', which ptxvm does not know; sm_90 is one", sm);
    *name = of_gpu ? of_gpu->name : of_sm ? of_sm->name : "sm_90a";
    return QDNN_STATUS_SUCCESS;
}

/* ptxvm reads what is null here from PTXVM_SM and PTXVM_GPU. A device that the caller named comes before both
 * of them; PTXVM_GPU still decides which board of a named SM it is. */
static ptxvm_cuda_settings settings_for(const char *name, bool is_argument, char *sm_text, size_t size)
{
    const ptx_sm *sm = ptx_sm_find(name);
    const char *gpu = variable("PTXVM_GPU");
    const board *of_gpu = gpu ? board_find(gpu) : NULL;
    if (sm) {
        bool other = gpu && (!of_gpu || of_gpu->sm != sm->number);
        return (ptxvm_cuda_settings){.sm = name, .gpu = other ? board_of_sm(sm->number)->name : NULL};
    }
    board_sm_name(board_find(name), sm_text, size);
    return (ptxvm_cuda_settings){.sm = is_argument ? sm_text : NULL, .gpu = name};
}

/* ptxvm is configured once, not for every attempt; otherwise the faults requested by PTXVM_FAULT would be
 * counted from the start each time. */
static qdnnStatus_t configure(const char *name, bool is_argument, driver_problem *problem)
{
    if (!strcmp(linked.name, name))
        return QDNN_STATUS_SUCCESS;
    char sm[16];
    ptxvm_cuda_settings settings = settings_for(name, is_argument, sm, sizeof sm);
    if (!ptxvm_cuda_configure(&settings))
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
                                  "ptxvm cannot start, because of its settings: %s",
                                  ptxvm_cuda_last_sentence());
    snprintf(linked.name, sizeof linked.name, "%s", name);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t start_vm(const char *name, driver_problem *problem)
{
    bool is_argument = name != NULL;
    if (!is_argument && name_from_environment(&name, problem) != QDNN_STATUS_SUCCESS)
        return problem->status;
    linked.driver.is_vm = true;
    qdnnStatus_t status = configure(name, is_argument, problem);
    if (status == QDNN_STATUS_SUCCESS)
        status = start(&linked.driver, find_in_ptxvm, "ptxvm", problem);
    enum { INVALID_VALUE = 1 }; /* its code for an environment variable that it cannot parse */
    if (problem->code == INVALID_VALUE)
        driver_problem_set(problem, status, "ptxvm cannot start, because of its settings: %s",
                           ptxvm_cuda_last_sentence());
    return status;
}

qdnnStatus_t driver_open_vm(const char *name, const driver **out, driver_problem *problem)
{
    if (linked.ready && name && strcmp(name, linked.name) != 0)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED,
                                  "ptxvm runs as %s in this process already; it cannot be %s as well",
                                  linked.name, name);
    if (!linked.ready && start_vm(name, problem) != QDNN_STATUS_SUCCESS)
        return problem->status;
    linked.ready = true;
    *out = &linked.driver;
    return QDNN_STATUS_SUCCESS;
}

static void close_vm(void)
{
    ptxvm_cuda_shutdown();
}
#else
qdnnStatus_t driver_open_vm(const char *name, const driver **out, driver_problem *problem)
{
    (void)name, (void)out;
    return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER,
                              "this build of qdnn has no ptxvm (it was configured with QDNN_PTXVM=OFF)");
}

static void close_vm(void)
{
}
#endif

void drivers_close(void)
{
    close_library();
    close_vm();
    memset(&linked, 0, sizeof linked);
}
