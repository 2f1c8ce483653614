/* Running the text of a kernel on the device under test against host_ref; the text may be ours or a twin's. */
#ifndef QDNN_TEST_KERNELS_PARITY_H
#define QDNN_TEST_KERNELS_PARITY_H

#include "kernels/kernels.h"
#include "device/machine.h"
#include "formats/kernel_data.h"

/* One launch. */
typedef struct parity_trial {
    int64_t n;
    data_kind kind;
    uint32_t seed;
    bool callers; /* scales and zero points are a caller's strange ones, not those of the scale operation */
    int64_t callers_first; /* where in their lists the first group stands */
    /* How far each buffer lies after an aligned address: in elements, codes in bytes. */
    size_t data_shift, scale_shift, zero_shift, codes_shift;
    /* Buffers have nothing around them: reading beyond one is found, which in guard bands is not. */
    bool exact;
    bool edges; /* blocks: their elements are moved to where the result changes (formats/edges.h) */
    /* Not 0: what the one block of the launch takes its number to be. Buffers then hold the elements from there
     * on. */
    uint64_t block;
    ptxvm_counters *counters; /* null, or receives the sums of the launch, where this ptxvm counts */
} parity_trial;

/* Runs each trial with the text, and compares every output byte. */
void parity_trials(machine *vm, const kernel_row *row, const kernel_spec *spec, const char *ptx,
                   const parity_trial *trials, int count);

/* The number of a block as far out as a grid allows (fewer than 2^31) whose first element starts a group, and the first
 * channel; 0 where the kernel has no such blocks. */
uint64_t parity_far_block(const kernel_row *row, const kernel_spec *spec);

/* The same with the text that the emitter gives. */
void parity_emit_and_run(machine *vm, const kernel_row *row, const kernel_spec *spec,
                         const parity_trial *trials, int count);

/* A trial for every kind of data: a kernel is specialised to its settings, not to n. `round` turns through
 * counts and alignments. */
void parity_kinds(parity_trial trials[DATA_KINDS], int round);

/* Sets what a kernel is specialised to besides types and groups: `round` turns through the values. */
void parity_take_turns(kernel_spec *spec, int round);

bool parity_is(const kernel_row *row, const char *operation);

#endif
