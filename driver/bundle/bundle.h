/* A folder of kernels written ahead of time by ptxgen; its files are checked against its manifest before they
 * are used. */
#ifndef QDNN_DRIVER_BUNDLE_H
#define QDNN_DRIVER_BUNDLE_H

#include "kernels/kernels.h"

#include <qdnn/types.h>

typedef struct bundle bundle;

/* Reads the folder's manifest; it does not change afterwards, so any thread may search it. Close it with
 * bundle_close, which accepts null. QDNN_STATUS_BAD_PARAM for a folder that cannot be used, with a message
 * that tells what to do: manifest.json is missing, malformed, or written by another qdnn (another version, or
 * emitters that write different text); _INTERNAL_ERROR_ALLOCATION_FAILED. */
qdnnStatus_t bundle_open(const char *directory, bundle **out);
void bundle_close(bundle *b);

/* A kernel's image, ready for a driver to load. */
typedef struct bundle_image {
    char *data; /* PTX, zero-terminated, or a cubin; alloc_free frees it */
    bool is_cubin;
    int version; /* of the PTX, times ten; 0 for a cubin */
} bundle_image;

/* Finds the kernel for that SM and these settings. Returns false if the bundle has none, or one that fails a
 * check; either is logged as a warning, with the requested settings. cubins: whether the device can load them
 * (ptxvm cannot); they are for exactly its compute capability. */
bool bundle_find(const bundle *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                 bool cubins, bundle_image *image);

/* What ptxgen writes at the head of a manifest, for bundle_open to compare: the version of the manifest
 * format, and a hash of what the emitters write. The hash covers a few kernels of every row, in tens of
 * microseconds each, and distinguishes builds of the same qdnn version whose emitters differ. Returns false
 * if there is no memory. */
enum { BUNDLE_FORM = 1 };
bool bundle_emitters(uint64_t *hash);
/* The same, computed only by the first call in the process. */
bool bundle_own_emitters(uint64_t *hash);

#endif
