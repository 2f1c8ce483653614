/* A report on one device: its properties, the cost of products and conversions, and the results of the tests.
 * On a GPU the cost is time, compared with cuBLAS and a plain copy; on ptxvm it is what the interpreter
 * counts. */
#ifndef QDNN_GPU_REPORT_H
#define QDNN_GPU_REPORT_H

#include <qdnn/qdnn.h>

#include "tools/counters.h"

enum { RESULTS_MAX = 256 };

/* One measured call. */
typedef struct result {
    const char *operation; /* "copy", "dequantize", "product" */
    const char *format;
    const char *how;    /* products: "exact", "tensor", "cublas"; else "" */
    int64_t rows, n, k; /* products: rows of x; else 1 */
    double bytes;       /* that must be moved at least */
    double seconds;     /* on a GPU */
    counts counts;      /* on ptxvm */
    char why[256];      /* not empty: why it could not be measured */
    bool is_wrong;      /* it was not measured, because its bytes are not host_ref's, as `why` tells */
} result;

typedef struct report {
    qdnnHandle_t handle;
    qdnnDeviceInfo_t device;
    bool counted;  /* on ptxvm */
    bool is_quick; /* each call once, with few rows: what is wrong, not what it costs */
    int64_t side;  /* of the matrices */
    result results[RESULTS_MAX];
    int n;
    const char *tests; /* a file with the summary of the tests, or null */
} report;

/* measure.c: fills in the results, and reports progress on standard error. */
void report_measure(report *r);

/* compare.c: what the device is given and what it has to give back. Weights and x have rows that are repeated, so that host_ref
 * computes few of them: neither period divides a tile. */
typedef struct comparison {
    int64_t n, k, rows;
    uint16_t *y;  /* expected, f16: COMPARED_X rows of COMPARED_N numbers */
    float *bound; /* not null: how far a result may be from it, for cuBLAS, which has no contract of bits */
} comparison;

enum { COMPARED_N = 61, COMPARED_X = 7 };

/* Uploads weights and x to the operands that are bound. algorithm < 0: the weights are dequantized. */
qdnnStatus_t comparison_begin(comparison *c, qdnnHandle_t handle, int sm, int algorithm,
                              qdnnQuantDescriptor_t quant, qdnnBinding_t *bindings, int count);
/* Compares y of the device; `why` receives what is wrong with it. */
bool comparison_is_right(const comparison *c, const uint16_t *y, char *why, size_t size);
void comparison_end(comparison *c);

/* write.c: writes report.md, report.json and pictures to a folder. Returns false if one cannot be written. */
bool report_write(const report *r, const char *folder);
int report_wrong(const report *r); /* how many results are wrong */

#endif
