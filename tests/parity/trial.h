/* The trials of the parity suite: each a call through the public API whose every output byte is compared with
 * host_ref's.
 *
 * They come in turns. In a turn every granularity meets every kind of data, and every data type every scale
 * type; shapes, zero types, options, alignments and the way of calling take turns, so that over all turns
 * each meets each of them. test_parity_grid.c counts that. */
#ifndef QDNN_TEST_PARITY_TRIAL_H
#define QDNN_TEST_PARITY_TRIAL_H

#include "device/device_buffer.h"
#include "device/quant_case.h"

enum { PARITY_TURNS = 12 };

typedef struct parity_trial {
    quant_case c;
    buffer_kind buffers;
    bool by_plan;                     /* else by the one-shot call */
    size_t shift[QDNN_OPERAND_COUNT]; /* elements that each buffer lies after an aligned address */
} parity_trial;

/* Kernels that are operations of their own: those a user can call. */
int parity_row_count(void);
const kernel_row *parity_row_at(int index);
void parity_row_name(int index, char *text, size_t size);

/* Whether the operation makes the scales itself: then they are never a caller's. */
bool parity_makes_scales(const kernel_row *row);

/* The trials of a kernel in a turn. */
int parity_trial_count(const kernel_row *row);
parity_trial parity_trial_at(const kernel_row *row, int turn, int index);

/* Trials with a tensor of more than 300,000 elements. */
int parity_large_count(void);
parity_trial parity_large_at(const kernel_row *row, int index);

/* Runs a trial. False where the device did not come to the end of it: a lost device no longer responds. */
bool parity_run(qdnnHandle_t handle, const parity_trial *trial);

/* Runs all trials of a kernel in a turn, or until the device is lost. */
void parity_run_turn(qdnnHandle_t handle, const kernel_row *row, int turn);

#endif
