/* Fragments of mma for tests: the layouts of the PTX ISA written out shape by shape (apart from the one rule
 * that ptxvm uses), a warp's registers, and instructions. */
#ifndef QDNN_TESTS_FRAGMENTS_H
#define QDNN_TESTS_FRAGMENTS_H

#include "ptxvm/tensor.h"

#define FRAGMENT_REGISTERS 8

/* The registers of one fragment: 32 lanes of 32 bits, or of 64. */
typedef struct fragment {
    _Alignas(64) uint64_t r[FRAGMENT_REGISTERS][32];
} fragment;

typedef struct fragment_pointers {
    void *r[FRAGMENT_REGISTERS];
} fragment_pointers;
fragment_pointers fragment_all(fragment *f);

/* Element i (a0, a1 ...) of a lane by the ISA's text; `bits` is the width of an element's container. False
 * beyond the last. */
bool fragment_element(int m, int n, int k, int bits, char matrix, int lane, int i, int *row, int *col);

/* Raw bits of element i of a lane. */
void fragment_set(fragment *f, int bits, int lane, int i, uint64_t value);
uint64_t fragment_get(const fragment *f, int bits, int lane, int i);

/* A whole matrix, row-major with `cols` columns, into a fragment and back. */
void fragment_fill(fragment *f, int m, int n, int k, int bits, char matrix, const uint64_t *values, int cols);
void fragment_read(const fragment *f, int m, int n, int k, int bits, char matrix, uint64_t *values, int cols);

/* One instruction of PTX as the parser reads it, for a target ("sm_120a") of ISA 9.0. Registers are written
 * "@f4" for
 * {%f0, %f0, %f0, %f0}, with r for 32 bits, d for f64, h for 16 bits. The operands are not kept. */
bool mma_parse(const char *text, const char *target, pvm_inst *inst);

/* mma.sync with these types; further slots are for the caller to set. */
pvm_inst mma_instruction(pvm_mod shape, pvm_type d, pvm_type a, pvm_type b, pvm_type c);

/* Runs op on whole matrices: a m x k, b k x n (row-major), c and d m x n, as raw bits. a_bits: of an
 * element's container. */
void mma_run(const tensor_op *op, int a_bits, const uint64_t *a, const uint64_t *b, const uint64_t *c,
             uint64_t *d, const void *const *scale);

#endif
