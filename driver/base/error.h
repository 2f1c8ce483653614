/* Error messages: kept per thread until its next failure, and logged. */
#ifndef QDNN_DRIVER_ERROR_H
#define QDNN_DRIVER_ERROR_H

#include <qdnn/qdnn.h>

/* Keeps the message and returns the status, so that a check is one line: return qdnn_error(STATUS, "n is %d;
 * ...", n). */
qdnnStatus_t qdnn_error(qdnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
