/* The modelled time of a product on a board: a small product of the same kernels is run on ptxvm, and its warps stand for those of the
 * large one; the machine then has all blocks. */
#ifndef CLOCK_PRODUCT_PRODUCT_H
#define CLOCK_PRODUCT_PRODUCT_H

#include "clock/product/code.h"
#include "clock/model/model.h"

enum { PRODUCT_REASONS = 3 };

typedef struct product_time {
    double us[CLOCK_CORNERS];       /* of all launches, without what is between them */
    double plain_us[CLOCK_CORNERS]; /* a plain kernel that reads all operands */
    double roofline_us,
        issue_us; /* all operands at the peak of DRAM; all instructions, if every scheduler issued in every cycle */
    double tflops[CLOCK_CORNERS];
    int launches;
    clock_stall reasons
        [PRODUCT_REASONS]; /* why warps of the launch that multiplies wait, and their share of all waiting (slow end) */
    double shares[PRODUCT_REASONS];
    double busy[CLOCK_UNITS], dram_busy; /* of that launch */
    double misfit;
} product_time;

/* False with a reason: it is not modelled, or tools are missing. */
bool product_time_of(const facts_product *product, const board *on, product_time *out, char *why,
                     size_t size);

#endif
