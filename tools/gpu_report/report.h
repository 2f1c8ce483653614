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
} result;

typedef struct report {
    qdnnHandle_t handle;
    qdnnDeviceInfo_t device;
    bool counted; /* on ptxvm */
    int64_t side; /* of the matrices */
    result results[RESULTS_MAX];
    int n;
    const char *tests; /* a file with the summary of the tests, or null */
} report;

/* measure.c: fills in the results, and reports progress on standard error. */
void report_measure(report *r);

/* write.c: writes report.md, report.json and pictures to a folder. Returns false if one cannot be written. */
bool report_write(const report *r, const char *folder);

#endif
