/* The PTX that a device and its driver accept. */
#ifndef QDNN_DRIVER_TARGET_H
#define QDNN_DRIVER_TARGET_H

#include <qdnn/types.h>

#include "ptxgen/sm.h"

/* The target to emit for: the newest plain one (sm_90, not sm_90a: no kernel needs those, and one text serves
 * more devices) that runs on a device of this compute capability. A device newer than the table gets the
 * newest target that it can run. Null, with an error of QDNN_STATUS_NOT_SUPPORTED_SM, if there is none. */
const ptx_sm *target_for(int major, int minor);

/* The newest PTX ISA, times ten, that a driver accepts: 84 for 12040 (CUDA 12.4). */
int target_newest_version(int driver_version);

/* Whether a driver accepts PTX of a version (times ten): QDNN_STATUS_SUCCESS, or
 * _NOT_SUPPORTED_DRIVER_TOO_OLD with both versions in the message. */
qdnnStatus_t target_check_version(int ptx_version, int driver_version);

#endif
