/* Choosing a device: parsing the request, finding a driver that has the device, and querying its
 * properties. */
#include "driver/cuda/open.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "boards/boards.h"
#include "driver/cuda/cuda_error.h"
#include "driver/cuda/drivers.h"
#include "driver/base/check.h"
#include "driver/base/error.h"
#include "driver/base/log.h"
#include "ptxgen/sm.h"

static _Atomic int owner; /* the process that opened a driver; 0: none did */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* What has been reported already; under the lock. */
static bool choice_reported, missing_gpu_reported;

/* ---- The request ---- */

typedef enum device_kind { KIND_AUTO, KIND_CUDA, KIND_VM } device_kind;

typedef struct device_request {
    device_kind kind;
    int ordinal;      /* -1: any */
    const char *vm;   /* the SM or the board that ptxvm acts as; null: any */
    bool require_gpu; /* QDNN_REQUIRE_GPU */
} device_request;

static bool parse_ordinal(const char *text, int *ordinal)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 4 || text[digits])
        return false;
    *ordinal = atoi(text);
    return true;
}

static qdnnStatus_t parse_request(const char *text, device_request *request)
{
    const char *gpu = getenv("QDNN_REQUIRE_GPU");
    *request = (device_request){.ordinal = -1, .require_gpu = gpu && *gpu && strcmp(gpu, "0") != 0};
    if (!strcmp(text, "auto"))
        return QDNN_STATUS_SUCCESS;
    if (!strncmp(text, "cuda", 4)) {
        request->kind = KIND_CUDA;
        if (!text[4] || (text[4] == ':' && parse_ordinal(text + 5, &request->ordinal)))
            return QDNN_STATUS_SUCCESS;
    }
    if (!strncmp(text, "vm", 2) && (!text[2] || text[2] == ':')) {
        request->kind = KIND_VM;
        const ptx_sm *sm = text[2] ? ptx_sm_find(text + 3) : NULL;
        const board *gpu = text[2] ? board_find(text + 3) : NULL;
        request->vm = sm ? sm->name : gpu ? gpu->name : NULL;
        if (!text[2] || request->vm)
            return QDNN_STATUS_SUCCESS;
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
            "the device is '%s': ptxvm does not know the SM or board '%s' (vm:sm_90 is one, and "
            "the boards are %s)",
            text, text + 3, board_names());
    }
    return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                      "the device is '%s'; it must be auto, cuda, cuda:N, vm, vm:sm_XX or vm:BOARD, such as "
                      "vm:a100 (QDNN_DEVICE)",
                      text);
}

/* ---- The device ---- */

/* One driver call; describes the problem if it fails. */
#define TRY(call, ...)                                                                                       \
    do {                                                                                                     \
        CUresult code_ = api->call(__VA_ARGS__);                                                             \
        if (code_ != 0) {                                                                                    \
            cuda_describe(api, code_, #call, problem->text, sizeof problem->text);                           \
            return problem->status = cuda_status(code_);                                                     \
        }                                                                                                    \
    } while (0)

/* The requested ordinal; else the device of the context that is current in this thread, or ordinal 0. */
static qdnnStatus_t pick_device(const cuda_api *api, int requested, cuda_device *d, driver_problem *problem)
{
    CUcontext current = NULL;
    CUdevice of_current = 0;
    int count = 0;
    TRY(cuDeviceGetCount, &count);
    if (count <= 0)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE,
                                  "the driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)");
    if (requested >= count)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE,
                                  "there is no device %d: the driver has %d, counted from 0", requested,
                                  count);
    TRY(cuCtxGetCurrent, &current);
    if (current)
        TRY(cuCtxGetDevice, &of_current);
    TRY(cuDeviceGet, &d->device, requested < 0 ? 0 : requested);
    d->ordinal = requested < 0 ? 0 : requested;
    if (current && (requested < 0 || of_current == d->device)) {
        d->context = current;
        d->device = of_current;
        d->ordinal = of_current; /* drivers number their devices like this */
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t describe_device(const driver *from, int requested, cuda_device *out,
                                    driver_problem *problem)
{
    const cuda_api *api = &from->api;
    cuda_device d = {.api = api, .is_vm = from->is_vm, .driver_version = from->version};
    qdnnStatus_t status = pick_device(api, requested, &d, problem);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    char name[sizeof d.name] = "";
    TRY(cuDeviceGetName, name, (int)sizeof name, d.device);
    escape_string(d.name, sizeof d.name, name); /* it is only ever shown */
    TRY(cuDeviceGetAttribute, &d.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d.device);
    TRY(cuDeviceGetAttribute, &d.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d.device);
    TRY(cuDeviceGetAttribute, &d.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d.device);
    *out = d;
    return QDNN_STATUS_SUCCESS;
}
#undef TRY

static qdnnStatus_t try_cuda(const device_request *request, cuda_device *out, driver_problem *problem)
{
    const driver *from = NULL;
    qdnnStatus_t status = driver_open_cuda(&from, problem);
    if (status == QDNN_STATUS_SUCCESS && from->is_vm && request->require_gpu)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE,
                                  "QDNN_REQUIRE_GPU is set, and %s is ptxvm, not a GPU's driver",
                                  driver_cuda_name());
    return status != QDNN_STATUS_SUCCESS ? status : describe_device(from, request->ordinal, out, problem);
}

static qdnnStatus_t try_vm(const device_request *request, cuda_device *out, driver_problem *problem)
{
    const driver *from = NULL;
    if (request->require_gpu)
        return driver_problem_set(problem, QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE,
                                  "QDNN_REQUIRE_GPU is set, and the device asked for is ptxvm, not a GPU");
    qdnnStatus_t status = driver_open_vm(request->vm, &from, problem);
    return status != QDNN_STATUS_SUCCESS ? status : describe_device(from, -1, out, problem);
}

/* ---- The choice ---- */

/* Whether there is no GPU, or no driver for it. Any other status is a failure of a GPU that exists; ptxvm,
 * with different memory, cannot replace that. */
static bool is_lacking(qdnnStatus_t status)
{
    return status == QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER || status == QDNN_STATUS_NOT_SUPPORTED_NO_DEVICE ||
           status == QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD;
}

/* Tries what the request allows. `problem` tells why it failed or, if it succeeded, why there is no GPU; the
 * caller logs it, outside the lock. */
static qdnnStatus_t choose(const device_request *request, cuda_device *out, driver_problem *problem)
{
    if (request->kind == KIND_VM)
        return try_vm(request, out, problem);
    qdnnStatus_t status = try_cuda(request, out, problem);
    if (status == QDNN_STATUS_SUCCESS || !is_lacking(status))
        return status;
    driver_problem gpu = *problem, vm;
    if (driver_is_named())
        return driver_problem_set(problem, status,
                                  "%.300s: QDNN_LIBCUDA is %.120s; correct it, or unset it to do without",
                                  gpu.text, getenv("QDNN_LIBCUDA"));
    if (request->kind == KIND_CUDA && !request->require_gpu)
        return driver_problem_set(problem, status, "%.400s; QDNN_DEVICE=vm runs the same kernels on the CPU",
                                  gpu.text);
    if (request->kind == KIND_CUDA)
        return status;
    if (request->require_gpu)
        return driver_problem_set(problem, status, "%.400s; QDNN_REQUIRE_GPU is set, so ptxvm is not used",
                                  gpu.text);
    if (try_vm(request, out, &vm) == QDNN_STATUS_SUCCESS)
        return QDNN_STATUS_SUCCESS;
    status = vm.status == QDNN_STATUS_NOT_SUPPORTED_NO_DRIVER ? gpu.status : vm.status;
    return driver_problem_set(problem, status, "no GPU: %.220s; and no ptxvm: %.220s", gpu.text, vm.text);
}

/* Nobody should benchmark an interpreter by mistake: a fallback that was not requested is reported on
 * standard error, whatever the log level. */
static void report_choice(const cuda_device *d, const driver_problem *gpu)
{
    const bool fell_back = *gpu->text;
    const qdnnSeverity_t severity = fell_back ? QDNN_SEVERITY_WARNING : QDNN_SEVERITY_INFO;
    log_write(severity, "the device is %s, compute capability %d.%d, CUDA %d.%d%s%s", d->name, d->major,
              d->minor, d->driver_version / 1000, d->driver_version % 1000 / 10,
              fell_back ? ", because there is no GPU: " : "", gpu->text);
    char why[sizeof gpu->text];
    if (fell_back && !log_on(severity))
        fprintf(stderr,
                "qdnn: there is no GPU (%s); kernels run on ptxvm, an interpreter on the CPU (QDNN_DEVICE=vm "
                "selects it without this message)\n",
                escape_string(why, sizeof why, gpu->text));
}

/* The drivers belong to the process that first opens one. Its children are refused before they take a lock,
 * which a thread of the parent may have held. */
static qdnnStatus_t own_drivers(bool *is_first)
{
    const int mine = process_id();
    int found = 0;
    *is_first = atomic_compare_exchange_strong(&owner, &found, mine);
    if (*is_first || found == mine)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "the driver was opened by process %d, from which this process, %d, was forked; CUDA does "
        "not work after a fork: fork before the first qdnnCreate, or start the child by exec "
        "(Python: the start method 'spawn')",
        found, mine);
}

qdnnStatus_t cuda_device_choose(const char *text, cuda_device *out)
{
    const char *variable = getenv("QDNN_DEVICE");
    if (!text || !*text)
        text = variable && *variable ? variable : "auto";
    device_request request;
    driver_problem problem = {0};
    qdnnStatus_t status = parse_request(text, &request);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    bool is_first;
    CHECK_STATUS(own_drivers(&is_first));
    pthread_mutex_lock(&lock);
    status = choose(&request, out, &problem);
    bool gpu_is_missing = *problem.text != 0;
    bool first =
        status == QDNN_STATUS_SUCCESS && (!choice_reported || (gpu_is_missing && !missing_gpu_reported));
    choice_reported |= first;
    missing_gpu_reported |= first && gpu_is_missing;
    pthread_mutex_unlock(&lock);
    if (status != QDNN_STATUS_SUCCESS && is_first)
        atomic_store(&owner, 0);
    if (status != QDNN_STATUS_SUCCESS)
        return qdnn_error(status, "%s", problem.text);
    if (first)
        report_choice(out, &problem);
    return status;
}

void cuda_close_all(void)
{
    pthread_mutex_lock(&lock);
    drivers_close();
    choice_reported = missing_gpu_reported = false;
    atomic_store(&owner, 0);
    pthread_mutex_unlock(&lock);
}
