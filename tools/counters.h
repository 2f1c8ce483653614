/* What ptxvm counts, for programs that run on it: read from the file that PTXVM_COUNTERS names, an object of JSON for each
 * launch. */
#ifndef TOOLS_COUNTERS_H
#define TOOLS_COUNTERS_H

#include <stdbool.h>

typedef struct counts {
    unsigned long long instructions; /* of warps */
    unsigned long long sectors;      /* of 32 bytes, asked of global memory */
    unsigned long long least;        /* that would do for the same bytes */
} counts;

/* Before the first handle: ptxvm then writes its counters to a file. */
void vm_counters_open(void);
/* Adds up the launches since the last call; false where nothing was counted: on a GPU. */
bool vm_counters_read(counts *out);
void vm_counters_close(void);

#endif
