/* A quantized tensor in a kernel: where its codes and the numbers of its groups are, and how a few elements
 * are read or written. */
#ifndef QDNN_KERNELS_QUANTIZED_H
#define QDNN_KERNELS_QUANTIZED_H

#include "kernels/formats/format.h"
#include "kernels/formats/stream.h"
#include "kernels/operations.h"

enum { WARP = 32 };

typedef struct quantized {
    coding coding;
    ptx_val codes; /* pointer */
    sidecars side;
    codec_state state; /* valid after quantized_open */
    group_values only; /* if one group covers the whole tensor: its values, valid after flat_group_only */
} quantized;

/* Set up from the kernel's parameters. Numbers that exist once per tensor are loaded here. */
quantized quantized_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec,
                          const kernel_args *args);
/* Sets up tables for decoding; called by all threads of the block. */
void quantized_open(ptx_builder *b, quantized *q);

/* ---- Groups of a flat tensor (flat_groups.c) ---- */

/* The values of an element's group; the index is u64. If one group covers the whole tensor, flat_group_only
 * must have loaded it before. */
group_values flat_group(ptx_builder *b, const quantized *q, ptx_val index);
ptx_val flat_group_number(ptx_builder *b, const kernel_spec *spec, ptx_val index);
void flat_group_only(ptx_builder *b, quantized *q);

/* The groups of one chunk: one group for all of it, or two that meet within it, or a group for every few
 * elements. */
typedef struct chunk_groups {
    group_values first, second;
    ptx_val boundary; /* u32: the first element of the second group, counted from the start of the chunk */
    group_values each[CHUNK_MAX];
} chunk_groups;

void chunk_groups_load(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups);
/* The same for `count` chunks per lane of a warp: chunk i begins WARP * i chunks after the first, and
 * together the chunks of the warp begin at a multiple of their number of elements. If they have few groups,
 * each is loaded once for the whole warp. All lanes take part. */
void warp_groups_load(ptx_builder *b, const quantized *q, ptx_val index, unsigned count,
                      chunk_groups *groups);
group_values chunk_group_at(ptx_builder *b, const quantized *q, const chunk_groups *groups, unsigned element);
/* Whether no chunk crosses a group boundary: then several can be loaded before they are used. */
bool chunk_has_one_group(const kernel_spec *spec);
/* Whether the arrays of scales and zeros are aligned as chunk_groups_load requires, and'ed with `all`. */
ptx_val chunk_groups_aligned(ptx_builder *b, const quantized *q, ptx_val all);

/* ---- Densely packed codes (dense_codes.c): code i of a tensor is at bit i * width, low bits first ---- */

/* Codes are handled four at a time: a quad is a u32 whose low bits hold four codes, each at its
 * quad_position. */
unsigned quad_position(const coding *c, unsigned element);

/* Whether two codes share a byte, or each has one; and whether the first of two is the upper nibble. */
bool codes_are_nibbles(const coding *c);
bool codes_are_bytes(const coding *c);
bool nibbles_are_swapped(const coding *c);

/* Whether the codes of a chunk take 1, 2, 4 or 8 bytes; if not, they go through shared memory. */
bool codes_are_direct(const coding *c);

/* Loads or stores the quads of a chunk of `elements`, in aligned global memory. */
void codes_load(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                ptx_val *quads);
void codes_store(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                 const ptx_val *quads);

/* The same for a tile of `tile` elements (a multiple of 256) that goes through shared memory. To load:
 * stage_load, then stage_quads for any chunk. To store: stage_put for all chunks, by all threads of the block
 * in step, then stage_store. `first` is the address of the tile in global memory, 16-byte aligned. */
typedef struct stage {
    ptx_val shared; /* address */
    unsigned bytes, threads;
} stage;
stage stage_begin(ptx_builder *b, const coding *c, unsigned tile, unsigned threads);
/* The same with that many bytes, a multiple of 16. */
stage stage_of_bytes(ptx_builder *b, const char *name, unsigned bytes, unsigned threads);
void stage_load(ptx_builder *b, const stage *s, ptx_val first);
void stage_quads(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
                 ptx_val *quads);
void stage_put(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
               const ptx_val *quads);
/* The same for a chunk that may not exist. With chunks of four elements, two neighbouring lanes store
 * together, and their chunks must either both exist or both not. */
void stage_put_if(ptx_builder *b, const coding *c, const stage *s, ptx_val element, ptx_val exists,
                  unsigned elements, const ptx_val *quads);
void stage_store(ptx_builder *b, const stage *s, ptx_val first);

/* Stores the quads of a chunk, if it exists, to aligned global memory. `chunk` (u64) counts chunks of
 * `elements` over the flat tensor. Codes that are not direct are stored byte by byte by pairs of neighbouring
 * lanes, so all lanes of a warp must take part. */
void codes_put(ptx_builder *b, const quantized *q, ptx_val chunk, ptx_val exists, unsigned elements,
               const ptx_val *quads);

/* Elements of a tensor that are encoded a few at a time, distributed over lanes, each taking as few as fill whole bytes. */
typedef struct few_elements {
    ptx_val data;       /* pointer to element 0 */
    ptx_val first, end; /* u64; `first` begins a byte */
    ptx_val lane;       /* u32 */
    unsigned lanes;
    const group_values *only; /* the group of all of them; null: each element's own is looked up */
    bool is_whole;            /* first and end are multiples of 8 */
} few_elements;
/* Unused bits of the last byte are 0. */
void encode_few(ptx_builder *b, const quantized *q, const few_elements *few);

/* One code (u32) of a tensor, at any index (u64). */
ptx_val code_at(ptx_builder *b, const quantized *q, ptx_val index);

/* ---- Elements ---- */

/* The numbers of four codes in a word, in units of their scales. Codes that are bytes fill it; others are at these bits. */
void quad_units(ptx_builder *b, const coding *c, const codec_state *state, ptx_val word,
                const unsigned positions[QUAD], ptx_val units[QUAD]);
/* The f32 values of a chunk. */
void chunk_decode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                  unsigned elements, ptx_val *y);
/* The same as pairs of F16 or BF16 (pairs.h), for a chunk with only one group. */
void chunk_decode_pairs(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                        unsigned elements, ptx_val *words);
/* The quads of a chunk. */
void chunk_encode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *x,
                  unsigned elements, ptx_val *quads);
/* One value from a code in the low bits of a u32, and one code from a value. */
ptx_val element_decode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val code);
ptx_val element_encode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val x);

/* ---- Descriptions (describe_stored.c) ---- */

/* Appends operands of a quantized tensor, those of the list that it has; the list ends with QDNN_OPERAND_COUNT. Their sizes are in
 * terms of d->numbers, which have to be set: n, or rows (table_rows) and columns. */
void describe_stored(kernel_description *d, const kernel_row *row, const kernel_spec *spec, bool writes,
                     const qdnnOperand_t *list);
#define STORED_LIST(...) ((const qdnnOperand_t[]){__VA_ARGS__, (qdnnOperand_t)QDNN_OPERAND_COUNT})
/* The number of scales. */
kernel_rule describe_groups(const kernel_description *d, const kernel_spec *spec);

#endif
