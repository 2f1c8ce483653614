/* A folder of kernels written ahead of time by ptxgen: what its manifest promises is checked before anything
 * is used. */
#ifndef QDNN_DRIVER_BUNDLE_H
#define QDNN_DRIVER_BUNDLE_H

#include "kernels/kernels.h"

#include <qdnn/types.h>

typedef struct bundle bundle;

/* Reads the folder's manifest; it is not changed afterwards, so any thread may look in it. Close with
 * bundle_close; null is fine there. QDNN_STATUS_BAD_PARAM for a folder that cannot be used, with what to do
 * about it: without manifest.json, with one that is malformed, or written by another qdnn (its version, or
 * emitters that write other text); _INTERNAL_ERROR_ALLOCATION_FAILED. */
qdnnStatus_t bundle_open(const char *directory, bundle **out);
void bundle_close(bundle *b);

/* A kernel's image as a driver loads it. */
typedef struct bundle_image {
    char *data; /* PTX, zero-terminated, or a cubin; alloc_free frees it */
    bool is_cubin;
    int version; /* of the PTX, times ten; 0 for a cubin */
} bundle_image;

/* The kernel for that SM and these settings, if the bundle has it whole. False where it has none, or one
 * that is not what it should be; either is logged as a warning, with what was asked for. cubins: whether the device can load
 * them (ptxvm cannot), which are for exactly its compute capability. */
bool bundle_find(const bundle *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                 bool cubins, bundle_image *image);

/* What ptxgen writes at the head of a manifest, for bundle_open to compare: the version of the manifest's own
 * form, and a hash of what the emitters write. It is made of a few kernels of every row, in tens of
 * microseconds each; two builds with different emitters are told apart although both are of the same qdnn
 * version. False: no memory. */
enum { BUNDLE_FORM = 1 };
bool bundle_emitters(uint64_t *hash);
/* The same, computed by the first call of the process alone. */
bool bundle_own_emitters(uint64_t *hash);

#endif
