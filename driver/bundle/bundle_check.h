/* Internal to bundles: whether an entry of the manifest matches this library, and whether a file matches its
 * entry. */
#ifndef QDNN_DRIVER_BUNDLE_CHECK_H
#define QDNN_DRIVER_BUNDLE_CHECK_H

#include "driver/bundle/bundle.h"
#include "base/json.h"

/* FNV-1a, 64 bits: the hash of files in the manifest. */
#define BUNDLE_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t bundle_hash(uint64_t hash, const void *data, size_t bytes);

/* The requested kernel. */
typedef struct bundle_request {
    const kernel_row *row;
    const kernel_spec *spec;
    const ptx_sm *sm;
} bundle_request;

/* Why something is not used. */
typedef struct bundle_reason {
    bool no_memory;
    char text[256];
} bundle_reason;
bool bundle_refuse(bundle_reason *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads a whole file in the folder, zero-terminated; alloc_free frees it. It must be a regular file (not a
 * link) of at most BUNDLE_FILE_MAX bytes. Null, with the reason, if it cannot be read. */
enum { BUNDLE_FILE_MAX = 1 << 28 };
char *bundle_read(int folder, const char *name, size_t *bytes, bundle_reason *reason);

/* All return true, or false with the reason. */

/* Whether the launch in the manifest's entry is the one of the registry. */
bool bundle_check_entry(const json_value *entry, const bundle_request *request, bundle_reason *reason);
/* Whether the bytes match `file`, an element of the entry's files. */
bool bundle_check_bytes(const json_value *file, const char *data, size_t bytes, bundle_reason *reason);
/* Whether the bytes are the entry's PTX for the requested SM; *version receives its version, times ten. */
bool bundle_check_ptx(const json_value *entry, const bundle_request *request, const char *data, size_t bytes,
                      int *version, bundle_reason *reason);
/* Whether the bytes are machine code for the requested SM. */
bool bundle_check_cubin(const bundle_request *request, const char *data, size_t bytes, bundle_reason *reason);

#endif
