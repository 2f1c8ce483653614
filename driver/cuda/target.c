/* The PTX that a device and its driver accept. */
#include "driver/cuda/target.h"

#include <stddef.h>

#include "driver/base/error.h"

const ptx_sm *target_for(int major, int minor)
{
    const ptx_sm *best = NULL;
    for (int i = 0; i < ptx_sm_count(); i++) {
        const ptx_sm *sm = ptx_sm_get(i);
        if (sm->flavour == PTX_PLAIN && ptx_sm_runs_on(sm, major, minor) &&
            (!best || sm->number > best->number))
            best = sm;
    }
    if (!best)
        qdnn_error(QDNN_STATUS_NOT_SUPPORTED_SM,
                   "the device is of compute capability %d.%d; qdnn needs 7.5 (Turing) or later", major,
                   minor);
    return best;
}

/* From the PTX ISA's release notes: the PTX version of each CUDA release, in order. */
static const struct {
    int driver, ptx;
} versions[] = {
    {10020, 65}, {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75},
    {11060, 76}, {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83},
    {12040, 84}, {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91},
};

int target_newest_version(int driver_version)
{
    int newest = versions[0].ptx;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i].driver <= driver_version)
            newest = versions[i].ptx;
    return newest;
}

qdnnStatus_t target_check_version(int ptx_version, int driver_version)
{
    int newest = target_newest_version(driver_version);
    if (ptx_version <= newest)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED_DRIVER_TOO_OLD,
        "the kernel is PTX %d.%d, and a driver of CUDA %d.%d reads PTX up to %d.%d: update the driver",
        ptx_version / 10, ptx_version % 10, driver_version / 1000, driver_version % 1000 / 10, newest / 10,
        newest % 10);
}
