/* The sentence behind a status: kept for each thread until its next failure, and told to the log. */
#ifndef QDNN_DRIVER_ERROR_H
#define QDNN_DRIVER_ERROR_H

#include <qdnn/qdnn.h>

/* Keeps the sentence and returns the status, so that a check is one line: return qdnn_error(STATUS, "n is %d;
 * ...", n). */
#define qdnn_error(status, ...) qdnn_error_in(__func__, status, __VA_ARGS__)
qdnnStatus_t qdnn_error_in(const char *function, qdnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
