/* The sentence behind a status: kept for each thread until its next failure, and told to the log. */
#ifndef QDNN_DRIVER_ERROR_H
#define QDNN_DRIVER_ERROR_H

#include <qdnn/qdnn.h>

/* Keeps the sentence and returns the status, so that a check is one line: return qdnn_error(STATUS, "n is %d;
 * ...", n). */
qdnnStatus_t qdnn_error(qdnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
