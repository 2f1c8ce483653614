/* Checks and counters: what is watched while kernels run.
 *
 * Who does what:
 *   finding.c    the list of findings, their texts, leaks
 *   decode.c     what each op reads, writes and counts as, worked out once
 *   init.c       which bytes of registers nobody has written (init_bytes.c: what bits and bytes do to that)
 *   memory.c     the same for memory; every access of the guest comes by here
 *   race.c       who touched which byte last, and whether something lies between
 *   sync.c       barriers, member masks, cp.async
 *   counters.c   counts by op, and their sums; counters_print.c writes them
 *
 * Nothing of it exists where checks and counters are off: worker->watch is null, and warps are run by the
 * loop that never asks. With init, race or sync on, one host thread runs all blocks, so that what is kept
 * here needs no lock, and is the same however many threads there are. */
#ifndef PTXVM_CHECK_H
#define PTXVM_CHECK_H

#include "ptxvm/exec.h"
#include "ptxvm/exec/memory_access.h"

#define CHECK_FINDINGS 100
#define CHECK_TEXT     1024

/* ---- finding.c ---- */

/* What a device keeps: the findings and counters of its last launch, and the clock of the race check. */
typedef struct vm_checks {
    ptxvm_finding findings[CHECK_FINDINGS];
    struct {
        int site, other_site;
        char text[CHECK_TEXT];
    } keys[CHECK_FINDINGS];
    int n;
    uint64_t total;
    ptxvm_status status; /* of the first finding */
    uint32_t clock;      /* moves whenever threads are ordered; see race.c */
    struct check_sums *sums;
} vm_checks;

void vm_checks_clear(ptxvm *vm);
void vm_checks_free(ptxvm *vm);

/* Adds a finding: `detail` says what it is, the place comes from the warp. other_site: of a race, else -1. */
void vm_check_report(vm_warp *warp, const vm_op *op, int lane, const ptxvm_finding *detail, int other_site,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Adds the fault that ended the launch. */
void vm_check_add_fault(ptxvm *vm, const ptxvm_finding *fault, const char *text);
/* Kernel, function, lines, block and thread of a finding. */
void vm_check_place(const vm_warp *warp, const vm_op *op, int lane, ptxvm_finding *finding);

#endif
