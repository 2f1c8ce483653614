/* Assembles many kernels by one call of ptxas, because starting ptxas takes as long as assembling a small
 * kernel. */
#ifndef QDNN_TEST_ASSEMBLE_H
#define QDNN_TEST_ASSEMBLE_H

#include <stdbool.h>

/* A module with one kernel, as an emitter writes it. */
typedef struct assembly_item {
    char *ptx;
    char note[1024]; /* shown with any failure of this kernel */
} assembly_item;

typedef struct assembly {
    assembly_item *items;
    int count, room;
} assembly;

/* Takes ownership of ptx; assembly_free frees it. */
void assembly_add(assembly *a, char *ptx, const char *note);
void assembly_free(assembly *a);

/* Assembles all of them for an SM, those with the same .version as one module, and passes the output of
 * `ptxas -v` for each kernel to `check`. A kernel that does not assemble fails the test. Returns false if
 * this ptxas does not support the SM. */
bool assembly_run(const assembly *a, const char *ptxas, const char *sm, void (*check)(const char *log));

/* Creates a fake ptxas in bin/ of a folder, which CUDA_HOME can then point to: its cubin is an ELF header for
 * sm_90 followed by the text. For tests of the handling of cubins that would otherwise have to assemble
 * hundreds. */
void stand_in_ptxas(const char *folder);

#endif
