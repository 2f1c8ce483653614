/* KV caches in kernels: where a head of a slot and its scales are (docs/numerics.md, "KV caches"), and rope with what it writes
 * there. Attention reads the same arrays. */
#ifndef QDNN_KERNELS_CACHE_H
#define QDNN_KERNELS_CACHE_H

#include "kernels/formats/blocks.h"
#include "kernels/formats/quantized.h"
#include "kernels/operations.h"

/* ---- Specifications (kv_plan.c) ---- */

typedef enum { KV_KEYS, KV_VALUES } kv_which;

/* Elements of a head; 0: the cache has no such array. */
uint64_t kv_head_size(const kernel_spec *spec, kv_which which);
/* Scales of a head: 0 if they are static, or the format has none of its own. */
uint64_t kv_groups(const kernel_row *row, const kernel_spec *spec, kv_which which);
/* The specification of one of them as a tensor of codes whose rows are heads: its groups, and rows.columns. */
kernel_spec kv_array_spec(const kernel_row *row, const kernel_spec *spec, kv_which which);

/* Append the operands of a cache: KEYS, VALUES, KEY_SCALE, VALUE_SCALE; the table of its pages, if it has one. Add the numbers that
 * addresses depend on. */
void describe_kv(kernel_description *d, const kernel_row *row, const kernel_spec *spec, bool writes);
void describe_kv_pages(kernel_description *d, const kernel_spec *spec);
/* Whether sizes and groups go together; if not, the reason. */
bool kv_is_allowed(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
/* Sets what the other settings leave no choice for. */
void kv_fix(kernel_spec *spec);
/* Fills in the strides of packed arrays, and pages for so many tokens. */
void kv_complete(const kernel_spec *spec, kernel_problem *problem);

/* ---- Addresses (kv.c) ---- */

/* The keys or the values in a kernel. */
typedef struct kv_array {
    const kernel_row *row;
    kernel_spec spec; /* of kv_array_spec */
    kernel_args args; /* the kernel's; CODES and SCALE are those of the array */
    uint64_t groups;  /* of a head */
    bool by_head;
    uint64_t heads;
    ptx_val start;                                 /* pointer to element 0 */
    ptx_val slots;                                 /* u64 */
    ptx_val page_stride, slot_stride, head_stride; /* u64, in elements */
} kv_array;
kv_array kv_array_of(ptx_builder *b, const kernel_row *row, const kernel_spec *spec, const kernel_args *args,
                     kv_which which);

/* A slot: its page, its place there, its number (u64). */
typedef struct kv_slot {
    ptx_val page, place, number;
    ptx_val exists; /* predicate */
} kv_slot;
/* The slot of a token (u64) that is written, as kv.slots says. */
kv_slot kv_slot_of_token(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val token);
/* Key `index` of a sequence (u32); negative numbers are large ones. */
kv_slot kv_slot_in_sequence(ptx_builder *b, bool is_paged, const kernel_args *args, ptx_val sequence,
                            ptx_val index);

/* The first element (u64) of a head (u64) in a slot, its address, and the number of its first scale. */
ptx_val kv_element(ptx_builder *b, const kv_array *a, const kv_slot *slot, ptx_val head);
ptx_val kv_address(ptx_builder *b, const kv_array *a, ptx_val element);
ptx_val kv_scale_index(ptx_builder *b, const kv_array *a, const kv_slot *slot, ptx_val head);

/* ---- Rope (rope.c, rope_plan.c) ---- */

bool rope_is_empty(const kernel_problem *problem);
void fix_rope(kernel_spec *spec);
void fix_rope_quantized(kernel_spec *spec);
bool rope_is_a_kernel(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
kernel_describes describe_rope;
void rope_complete(const kernel_spec *spec, kernel_problem *problem);
kernel_geometry rope_geometry(const kernel_row *row, const kernel_spec *spec);
void emit_rope(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);

/* How the heads of a token are shared among thread blocks: first those that may be rotated, then the values. */
typedef struct rope_shape {
    unsigned block;
    unsigned lanes, value_lanes; /* of a head */
    uint64_t rotating;           /* heads of queries and keys */
    uint64_t parts, value_parts; /* blocks of a token */
} rope_shape;
rope_shape rope_shape_of(const kernel_row *row, const kernel_spec *spec);

#endif
