/* The counters of ptxvm, for programs that run on it: read from the file named by PTXVM_COUNTERS, with one
 * JSON object per launch. */
#ifndef TOOLS_COUNTERS_H
#define TOOLS_COUNTERS_H

#include <stdbool.h>

typedef struct counts {
    unsigned long long instructions; /* warp instructions */
    unsigned long long sectors;      /* 32-byte sectors of global memory accessed */
    unsigned long long least;        /* the minimum number of sectors for the same bytes */
} counts;

/* Call it before creating the first handle: ptxvm then writes its counters to a file. */
void vm_counters_open(void);
/* Adds up the launches since the last call; returns false if nothing was counted, as on a GPU. */
bool vm_counters_read(counts *out);
void vm_counters_close(void);

#endif
