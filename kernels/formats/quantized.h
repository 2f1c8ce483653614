/* A quantized tensor in a kernel: where its codes and the numbers of its groups lie, and how a few elements are
 * read from it or written to it. */
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
    codec_state state; /* once it is open */
    group_values only; /* where one group is the whole tensor, once it is loaded */
} quantized;

/* From the parameters. What there is one of is loaded here. */
quantized quantized_begin(ptx_builder *b, const kernel_row *row, const kernel_spec *spec,
                          const kernel_args *args);
/* Tables for decoding; by all threads of the block. */
void quantized_open(ptx_builder *b, quantized *q);

/* ---- Groups of a flat tensor (flat_groups.c) ---- */

/* The values of the group of an element (u64). Where one group is the whole tensor, flat_group_only has loaded
 * them before. */
group_values flat_group(ptx_builder *b, const quantized *q, ptx_val index);
ptx_val flat_group_number(ptx_builder *b, const kernel_spec *spec, ptx_val index);
void flat_group_only(ptx_builder *b, quantized *q);

/* The groups of one chunk. Within a chunk there is one group, or two that meet in it, or a group for every few
 * elements. */
typedef struct chunk_groups {
    group_values first, second;
    ptx_val boundary; /* u32: first element of the second group, counted from the chunk's start */
    group_values each[CHUNK_MAX];
} chunk_groups;

void chunk_groups_load(ptx_builder *b, const quantized *q, ptx_val index, chunk_groups *groups);
/* The same for `count` chunks of each lane of a warp: chunk i begins WARP * i chunks behind the first, and the chunks of the
 * warp together begin at a multiple of their elements. Where they have few groups, each is loaded once for all. All
 * lanes take part. */
void warp_groups_load(ptx_builder *b, const quantized *q, ptx_val index, unsigned count, chunk_groups *groups);
group_values chunk_group_at(ptx_builder *b, const quantized *q, const chunk_groups *groups, unsigned element);
/* Whether chunks never cross into another group: then several may be loaded ahead of their use. */
bool chunk_has_one_group(const kernel_spec *spec);
/* Whether the arrays of scales and zeros are aligned as chunk_groups_load needs it; *all is and'ed with that. */
ptx_val chunk_groups_aligned(ptx_builder *b, const quantized *q, ptx_val all);

/* ---- Codes in dense bits (dense_codes.c): code i of a tensor at bit i * width, low bits first ---- */

/* Codes are coded four at a time: a quad is their bits in the low end of a u32, an element's at quad_position. */
unsigned quad_position(const coding *c, unsigned element);

/* Whether the codes of a chunk are 1, 2, 4 or 8 bytes; else they pass through shared memory. */
bool codes_are_direct(const coding *c);

/* The quads of a chunk of `elements` from aligned global memory, and back. */
void codes_load(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                ptx_val *quads);
void codes_store(ptx_builder *b, const quantized *q, ptx_val address, int offset, unsigned elements,
                 const ptx_val *quads);

/* The same for a tile of `tile` elements (a multiple of 256) that passes through shared memory. Loading: stage_load,
 * then quads of any chunk. Storing: stage_put of all chunks, in step by all threads of the block, then
 * stage_store. `first` is the tile's address in global memory, 16-byte aligned. */
typedef struct stage {
    ptx_val shared; /* address */
    unsigned bytes, threads;
} stage;
stage stage_begin(ptx_builder *b, const coding *c, unsigned tile, unsigned threads);
/* Of so many bytes, a multiple of 16. */
stage stage_of_bytes(ptx_builder *b, const char *name, unsigned bytes, unsigned threads);
void stage_load(ptx_builder *b, const stage *s, ptx_val first);
void stage_quads(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
                 ptx_val *quads);
void stage_put(ptx_builder *b, const coding *c, const stage *s, ptx_val element, unsigned elements,
               const ptx_val *quads);
/* Of a chunk that may not exist; with chunks of four, two lanes that put theirs together exist together. */
void stage_put_if(ptx_builder *b, const coding *c, const stage *s, ptx_val element, ptx_val exists, unsigned elements,
                  const ptx_val *quads);
void stage_store(ptx_builder *b, const stage *s, ptx_val first);

/* The quads of the chunk with that number (u64, among chunks of `elements` over the flat tensor), where it exists, to
 * aligned global memory; codes that are not direct are stored byte by byte, by neighbouring lanes together: all lanes of a
 * warp take part. */
void codes_put(ptx_builder *b, const quantized *q, ptx_val chunk, ptx_val exists, unsigned elements, const ptx_val *quads);

/* Codes of the elements [first, end) of data (a pointer to element 0) by some lanes together, as few elements at a time as
 * fill whole bytes; `first` begins a byte. What is missing of the last byte is 0. `only`: the group of all; null: each
 * element's own. */
void encode_few(ptx_builder *b, const quantized *q, ptx_val data, ptx_val first, ptx_val end, ptx_val lane, unsigned lanes,
                const group_values *only);

/* One code (u32) of a tensor, wherever it lies; index is u64. */
ptx_val code_at(ptx_builder *b, const quantized *q, ptx_val index);

/* ---- Elements ---- */

/* The f32 values of a chunk. */
void chunk_decode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                  unsigned elements, ptx_val *y);
/* The same in pairs of F16 or BF16 (pairs.h), for a chunk that has one group. */
void chunk_decode_pairs(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *quads,
                        unsigned elements, ptx_val *words);
/* The quads of a chunk. */
void chunk_encode(ptx_builder *b, const quantized *q, const chunk_groups *groups, const ptx_val *x,
                  unsigned elements, ptx_val *quads);
/* One value, from a code in the low bits of a u32; one code. */
ptx_val element_decode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val code);
ptx_val element_encode(ptx_builder *b, const quantized *q, const group_values *group, ptx_val x);

#endif
