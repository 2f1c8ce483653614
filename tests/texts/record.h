/* What kernels a program emits: each kernel_emit and kernel_steps_of of a program that is linked with -Wl,--wrap=...
 * writes the kernel and its
 * settings to a file, each once: "matmul_int4 data=f16 ...". Test programs record to the file that QDNN_TEXTS_RECORD names. */
#ifndef QDNN_TEXTS_RECORD_H
#define QDNN_TEXTS_RECORD_H

#include <stdbool.h>

/* To this file from here on, at its end; null: to none. `only`: nothing is emitted. */
void record_to(const char *path, bool only);

#endif
