/* Facts about a product that need its machine code, or a run on ptxvm: a small product of the same kernel is run and counted, and what was
 * counted per weight holds for the large one. */
#ifndef CLOCK_PRODUCT_CODE_H
#define CLOCK_PRODUCT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boards/boards.h"
#include "clock/sass/sass.h"
#include "kernels/kernels.h"

typedef struct facts_code {
    bool
        is_sass; /* ptxas and nvdisasm were found: else only what ptxvm counts is known, and 0 for the rest */
    int registers, spill_bytes; /* of the launch that multiplies */
    int bytes,
        loop_bytes; /* of the whole kernel, of its hot loop: the smallest that issues half of all instructions */
    double flight; /* bytes from DRAM that a warp has on their way at a time, at most */
    /* cycles of issue from a load of DRAM to the instruction that waits for it: the mean by bytes, and the least of loads of 8 bytes
     * per thread and more */
    double wait_least, wait_mean;
    double
        per_weight;   /* thread instructions of all launches per weight and tile of rows: SASS, or else PTX */
    double conflicts; /* wavefronts of shared memory that conflicts add, of all */
    double sectors;   /* requested by all launches, relative to those of the operands */
    double misfit;    /* of the counts of SASS */
} facts_code;

/* A product: spec in normal form. */
typedef struct facts_product {
    const kernel_row *row;
    kernel_spec spec;
    kernel_problem problem;
} facts_product;

/* The product that is run instead: at most 512 columns of y, one tile of rows, and 4096 k or a little more. */
facts_product facts_small(const facts_product *product);

/* The same kernel is measured once per board's SM. False: see why. Several threads may ask. */
bool facts_code_of(const facts_product *product, const board *on, facts_code *out, char *why, size_t size);

/* What is measured once: the small product of a kernel, by name; and whether it was. */
enum { FACTS_NAME = 640 };
void facts_code_name(const facts_product *product, const board *on, char *name, size_t size);
bool facts_has_code(const facts_product *product, const board *on);
const ptx_sm *facts_sm_of(const board *on);

/* Takes what this program (a hash of it) has measured before from a file, and adds to it (kept.h). */
bool facts_keep_code_in(const char *path, uint64_t program);

/* The step that reads the weights; sums are joined by the others. */
const kernel_step *facts_multiplying(const kernel_steps *steps);

/* flight.c: the loads of a warp that takes this path, by the control codes of its instructions; `lines` are ptxvm's counts of the launch. */
void facts_follow_loads(const sass_code *code, const sass_path *path, const ptxvm_counts *lines, int n_lines,
                        facts_code *out);
/* The smallest loop that issues half of the path's instructions; -1: none. */
int facts_hot_loop(const sass_code *code, const sass_path *path);

/* Ordinary numbers for an operand: codes are arbitrary, scales neither zero nor infinite. */
void facts_fill_operand(const kernel_row *row, const kernel_spec *spec, qdnnOperand_t operand, uint8_t *bytes,
                        uint64_t count);

#endif
