/* Initialisation and shutdown of the driver, and its devices. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Initialisation and shutdown ---- */

static ptxvm_counters_level counters_level(const ptxvm_cuda_settings *s)
{
    if (!s->counters)
        return PTXVM_COUNTERS_OFF;
    return s->counters_by && strcmp(s->counters_by, "line") == 0 ? PTXVM_COUNTERS_LINES
                                                                 : PTXVM_COUNTERS_KERNEL;
}

static bool create_device(cuda_device *d, const ptxvm_cuda_settings *s)
{
    uint64_t of_board = s->gpu ? (uint64_t)cuda.board->memory_gb << 30 : 0;
    ptxvm_config config = {.sm = cuda.sm,
                           .board = cuda.board->name,
                           .threads = s->threads,
                           .seed = s->seed,
                           .step_limit = s->steps,
                           .wait_seconds = cuda.wait_seconds,
                           .checks = cuda.checks,
                           .counters = counters_level(s),
                           .memory_bytes = s->memory_bytes ? s->memory_bytes : of_board,
                           .address_base = CUDA_DEVICE_BASE + (uint64_t)d->ordinal * CUDA_DEVICE_STRIDE};
    if (ptxvm_create(&config, &d->vm))
        return false;
    d->heap_bytes = ptxvm_heap_size(d->vm);
    d->board = cuda.board;
    d->traits = pvm_sm_traits(cuda.board->sm);
    d->default_pool = d->pool = pool_new(d->ordinal);
    return d->traits && d->pool;
}

/* The SM and the board to act as: either names the other, and together they must agree. */
static CUresult choose_board(const ptxvm_cuda_settings *s)
{
    const board *named = s->gpu ? board_find(s->gpu) : NULL;
    if (s->gpu && !named)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_GPU=%s is not a known board; the boards are %s",
                        s->gpu, board_names());
    snprintf(cuda.sm, sizeof cuda.sm, "%s", s->sm ? s->sm : "sm_90a");
    if (named && !s->sm)
        board_sm_name(named, cuda.sm, sizeof cuda.sm);
    int sm = atoi(cuda.sm + (strncmp(cuda.sm, "sm_", 3) == 0 ? 3 : 0));
    cuda.board = named ? named : board_of_sm(sm);
    if (!cuda.board)
        return cuda_log(CUDA_ERROR_NO_DEVICE, "no device can be made for %s", cuda.sm);
    if (cuda.board->sm != sm)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_GPU=%s has sm_%d, but PTXVM_SM=%s", s->gpu,
                        named->sm, s->sm);
    return CUDA_SUCCESS;
}

CUresult devices_create(const ptxvm_cuda_settings *s)
{
    CUresult chosen = choose_board(s);
    if (chosen)
        return chosen;
    cuda.driver_version = s->driver_version ? s->driver_version : CUDA_VERSION;
    cuda.wait_seconds = s->wait_seconds ? (uint64_t)s->wait_seconds : 60;
    cuda.checks = PTXVM_CHECK_MEMORY;
    if (s->check && !ptxvm_checks_parse(s->check, &cuda.checks))
        return cuda_log(CUDA_ERROR_INVALID_VALUE,
                        "PTXVM_CHECK=%s: none, all, or some of memory, init, race, sync, leak, same",
                        s->check);
    if (!counters_open(s->counters))
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_COUNTERS=%s cannot be written", s->counters);
    if (s->counters_by && strcmp(s->counters_by, "line") != 0 && strcmp(s->counters_by, "kernel") != 0)
        return cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_COUNTERS_BY=%s: kernel or line", s->counters_by);
    cuda.n_devices = s->devices ? s->devices : 1;
    for (int i = 0; i < cuda.n_devices; i++) {
        cuda.devices[i] = (cuda_device){.ordinal = i};
        if (!create_device(&cuda.devices[i], s)) {
            devices_destroy();
            return cuda_log(CUDA_ERROR_NO_DEVICE, "no device can be made for %s", cuda.sm);
        }
    }
    return CUDA_SUCCESS;
}

void devices_destroy(void)
{
    for (int i = 0; i < cuda.n_devices; i++)
        if (cuda.devices[i].vm)
            ptxvm_destroy(cuda.devices[i].vm);
    memset(&cuda, 0, sizeof cuda);
}

CUresult do_cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (cuda.initialised)
        return CUDA_SUCCESS;
    ptxvm_cuda_settings s;
    if (!settings_read(&s) || !faults_read())
        return CUDA_ERROR_INVALID_VALUE;
    cuda_variables_check();
    CUresult result = devices_create(&s);
    cuda.initialised = !result;
    return result;
}

int driver_version(void)
{
    ptxvm_cuda_settings s;
    if (cuda.initialised)
        return cuda.driver_version;
    return settings_read(&s) && s.driver_version ? s.driver_version : CUDA_VERSION;
}

CUresult do_cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = driver_version();
    return CUDA_SUCCESS;
}

cuda_device *device_at(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < cuda.n_devices ? &cuda.devices[ordinal] : NULL;
}

/* ---- Device properties ---- */

CUresult do_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = cuda.n_devices;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetName(char *name, int length, CUdevice device)
{
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "ptxvm %s%s (emulated GPU)", strncmp(cuda.sm, "sm_", 3) ? "sm_" : "",
             cuda.sm);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "ptxvm emulated\0\0", 16);
    uuid->bytes[15] = (char)(device + 1);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    uint64_t unused, total;
    ptxvm_memory_info(d->vm, &unused, &total);
    *bytes = total;
    return CUDA_SUCCESS;
}

int device_attribute(const cuda_device *d, CUdevice_attribute attribute)
{
    const sm_traits *t = d->traits;
    const board *b = d->board;
    switch ((int)attribute) {
#define ATTRIBUTE(name, number, value)                                                                       \
    case number:                                                                                             \
        return value;
#include "attributes.def"
#undef ATTRIBUTE
    default:
        return 0;
    }
}

CUresult do_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (!value || (int)attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    cuda_device *d = device_at(device);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = device_attribute(d, attribute);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetProperties(CUdevprop *p, CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    *p = (CUdevprop){.maxThreadsPerBlock = 1024,
                     .maxThreadsDim = {1024, 1024, 64},
                     .maxGridSize = {2147483647, 65535, 65535},
                     .sharedMemPerBlock = 49152,
                     .totalConstantMemory = 65536,
                     .SIMDWidth = 32,
                     .memPitch = 2147483647,
                     .regsPerBlock = 65536,
                     .clockRate = d->board->clock_mhz * 1000,
                     .textureAlign = 512};
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    cuda_device *d = device_at(device);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    *major = d->traits->sm / 10;
    *minor = d->traits->sm % 10;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    if (!text || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    if (!device || !text)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 && sscanf(text, "%x:%x", &bus, &slot) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (domain || slot || bus < 1 || bus > (unsigned)cuda.n_devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (CUdevice)bus - 1;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device)
{
    if (!supported || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *supported = 0;
    return CUDA_SUCCESS;
}

/* ---- Peers: every device can access every other ---- */

CUresult do_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device) || !device_at(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult do_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    if (!value || (int)attribute < 1 || (int)attribute > 5)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(from) || !device_at(to) || from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

/* ---- The profiler: there is none ---- */

CUresult do_cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
    (void)mode;
    return config && output ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult do_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
