/* KV caches of tests: formats, descriptions for the API and for host_ref, slots of tokens. */
#ifndef QDNN_TEST_KV_CASE_H
#define QDNN_TEST_KV_CASE_H

#include <qdnn/qdnn.h>

#include "host_ref/host_ref.h"

typedef enum {
    KV_F32,
    KV_F16,
    KV_BF16,
    KV_INT8, /* a scale for each head and token */
    KV_INT4,
    KV_E4M3,
    KV_E5M2,
    KV_INT8_GROUPS, /* of 32 */
    KV_INT4_GROUPS, /* of 64 */
    KV_E4M3_GROUPS,
    KV_INT8_HEADS, /* a static scale for each head */
    KV_INT4_HEADS,
    KV_E4M3_CACHE, /* one static scale */
    KV_INT8_CACHE,
    KV_Q8_0,
    KV_Q4_0,
    KV_Q4_1,
    KV_Q5_0,
    KV_Q5_1,
    KV_IQ4_NL,
    KV_FORMATS
} kv_format;

/* Where slots and heads lie. */
typedef enum {
    KV_PACKED,
    KV_HEADS_FIRST, /* [pages, heads, slots, elements] */
    KV_GAPS         /* pages, slots and heads are further apart than they have to be */
} kv_order;

typedef struct kv_layout {
    kv_format format;
    kv_order order;
    int64_t pages, page_slots, table_pages, heads;
    bool by_head;
} kv_layout;

/* Describes the keys or the values of that head size; type: that of what is written. The descriptor of a quantized one is
 * made too. */
bool kv_describe(const kv_layout *layout, int64_t head_size, qdnnKvCache_t *cache,
                 qdnnQuantDescriptor_t *quant);
ref_kv_spec kv_reference(const kv_layout *layout, int64_t head_size, qdnnDataType_t type);
bool kv_is_static(kv_format format);
bool kv_has_scales(kv_format format);

#endif
