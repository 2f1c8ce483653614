/* Inside bundles: is an entry of the manifest what this library would make, and is a file what its entry
 * says? */
#ifndef QDNN_DRIVER_BUNDLE_CHECK_H
#define QDNN_DRIVER_BUNDLE_CHECK_H

#include "driver/bundle/bundle.h"
#include "base/json.h"

/* FNV-1a, 64 bits, as the manifest has it of files. */
#define BUNDLE_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t bundle_hash(uint64_t hash, const void *data, size_t bytes);

/* What is asked for. */
typedef struct bundle_request {
    const kernel_row *row;
    const kernel_spec *spec;
    const ptx_sm *sm;
} bundle_request;

/* Why something is not used, in words. */
typedef struct bundle_reason {
    bool no_memory;
    char text[256];
} bundle_reason;
bool bundle_refuse(bundle_reason *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The whole file of that name in the folder, zero-terminated; alloc_free frees it. It has to be a regular
 * file (a link is none) of at most BUNDLE_FILE_MAX bytes. Null, with the reason. */
enum { BUNDLE_FILE_MAX = 1 << 28 };
char *bundle_read(int folder, const char *name, size_t *bytes, bundle_reason *reason);

/* All return whether it is so, or the reason why not. */

/* The entry of the manifest launches as the registry says. */
bool bundle_check_entry(const json_value *entry, const bundle_request *request, bundle_reason *reason);
/* The bytes are those of which `file`, an element of the entry's files, tells. */
bool bundle_check_bytes(const json_value *file, const char *data, size_t bytes, bundle_reason *reason);
/* The bytes are the entry's PTX for the SM asked for, and its version is *version, times ten. */
bool bundle_check_ptx(const json_value *entry, const bundle_request *request, const char *data, size_t bytes,
                      int *version, bundle_reason *reason);
/* The bytes are machine code for the SM asked for. */
bool bundle_check_cubin(const bundle_request *request, const char *data, size_t bytes, bundle_reason *reason);

#endif
