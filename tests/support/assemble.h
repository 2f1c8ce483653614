/* Kernels assembled by ptxas, many by one call: starting ptxas takes as long as assembling a small kernel. */
#ifndef QDNN_TEST_ASSEMBLE_H
#define QDNN_TEST_ASSEMBLE_H

#include <stdbool.h>

/* A module of one kernel, as an emitter writes it. */
typedef struct assembly_item {
    char *ptx;
    char note[1024]; /* is shown with what fails of it */
} assembly_item;

typedef struct assembly {
    assembly_item *items;
    int count, room;
} assembly;

/* Takes ptx, which assembly_free frees. */
void assembly_add(assembly *a, char *ptx, const char *note);
void assembly_free(assembly *a);

/* Assembles all of them for an SM, those of one .version as one module, and gives what `ptxas -v` says of each kernel to
 * `check`. What does not assemble is a failure of the test. False when this ptxas does not know the SM. */
bool assembly_run(const assembly *a, const char *ptxas, const char *sm, void (*check)(const char *log));

/* Puts a ptxas into bin/ of a folder, which CUDA_HOME may then name: its cubin is an ELF header for sm_90 and the text. For
 * tests of what is done with cubins, where hundreds would have to be assembled. */
void stand_in_ptxas(const char *folder);

#endif
