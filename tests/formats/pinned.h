/* The text of a kernel as a block far out in a huge grid runs it. */
#ifndef QDNN_TEST_PINNED_H
#define QDNN_TEST_PINNED_H

#include <stdint.h>

/* The text with the number of the block written in: a launch of one block is then that block. Free it; null without
 * memory. */
char *pinned_to_block(const char *ptx, uint64_t number);

#endif
