/* The parts of the demo. */
#ifndef QDNN_DEMO_H
#define QDNN_DEMO_H

#include "host_ref/host_ref.h"
#include "tools/counters.h"

/* ---- Shared by the parts (main.c) ---- */

/* Whether a call succeeded; otherwise its error message is printed. */
bool ok(qdnnStatus_t status);

/* Bell-shaped random values, similar to weights. */
void fill_bell(float *x, int64_t n, uint32_t seed, float size);

/* ---- One kernel, two SMs (two_sms.c) ---- */

bool show_two_sms(void);

/* ---- A chain of products, as in a transformer (chain.c) ---- */

/* Returns false if something failed, or a byte differs from host_ref's. */
bool show_chain(void);

/* ---- A progress line, on a terminal only (progress.c) ---- */

void progress_begin(int steps);
void progress_step(const char *what); /* the next step begins */
void progress_clear(void);

/* ---- Against host_ref and the original (compare.c) ---- */

enum { BINS = 12 };
#define BIN_WIDTH 0.01f /* the last bin also counts larger errors */

/* A quantized tensor of n f32 on the host, with its original values. */
typedef struct quantized {
    ref_quant_spec spec; /* the group size must divide 65536 */
    int64_t n;
    const float *x, *scale, *y;
    const uint8_t *codes;
} quantized;

typedef struct comparison {
    int64_t scales, codes, values; /* bytes that differ from host_ref's */
    double squared_error, squared; /* sums */
    double largest_error;
    int64_t bins[BINS]; /* the number of errors of each size */
} comparison;

/* Uses all threads of the machine; the result does not depend on their number. Returns false if out of
 * memory. */
bool compare(const quantized *q, comparison *out);

#endif
