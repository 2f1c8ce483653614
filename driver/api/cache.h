/* KV caches: from descriptions to specifications, sizes and strides. */
#ifndef QDNN_DRIVER_CACHE_H
#define QDNN_DRIVER_CACHE_H

#include <qdnn/cache.h>

#include "driver/api/request.h"

/* Checks the descriptions of keys and values (null: there are none of them; at least one is given) and puts them into the
 * request: kv, stored and quantize of its specification; pages, table_pages, cache and values of its problem. *format: that of
 * the codes, or null. kv.slots is PAGED or CONTIGUOUS, as the description says. */
qdnnStatus_t cache_take(const qdnnKvCache_t *keys, const qdnnKvCache_t *values, request *r,
                        const format_row **format);

#endif
