/* The normal form of a kernel's text: what ptxas sees of it and nothing else. */
#ifndef QDNN_TEXTS_NORMAL_H
#define QDNN_TEXTS_NORMAL_H

#include <stdint.h>

/* The text with registers and labels numbered in the order in which they first appear, without the declarations that say how many
 * registers there are, comments, and empty lines. Free it; null without memory. */
char *normal_text(const char *ptx);

uint64_t normal_hash(const char *text);

#endif
