/* Whether ptxas makes the same of two texts. */
#ifndef QDNN_TEXTS_CUBIN_H
#define QDNN_TEXTS_CUBIN_H

typedef enum { CUBIN_SAME, CUBIN_DIFFERS, CUBIN_UNKNOWN } cubin_verdict;

/* Assembles both in a folder for temporary files, and compares the instructions, the constants, and what a launch needs. Unknown: one of
 * them does not assemble (for example as this ptxas does not know the SM). */
cubin_verdict cubin_compare(const char *ptxas, const char *folder, const char *sm, const char *one,
                            const char *other);

#endif
