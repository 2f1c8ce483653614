/* A report of one device: what it is, what products and conversions cost there, and how the tests ended. On a GPU the cost
 * is time, beside cuBLAS and a plain copy; on ptxvm it is what the interpreter counts. */
#ifndef QDNN_GPU_REPORT_H
#define QDNN_GPU_REPORT_H

#include <qdnn/qdnn.h>

#include "tools/counters.h"

enum { RESULTS_MAX = 256 };

/* One measured call. */
typedef struct result {
    const char *operation; /* "copy", "dequantize", "product" */
    const char *format;
    const char *how;     /* of a product: "exact", "tensor", "cublas"; else "" */
    int64_t rows, n, k;  /* of a product, rows of x; else 1 */
    double bytes;        /* that have to be moved at least */
    double seconds;      /* on a GPU */
    counts counts;       /* on ptxvm */
    char why[256];       /* not empty: it could not be measured */
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

/* measure.c: fills the results, telling what is under way on standard error. */
void report_measure(report *r);

/* write.c: report.md, report.json and pictures in a folder. False where one cannot be written. */
bool report_write(const report *r, const char *folder);

#endif
