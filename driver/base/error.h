/* Error messages: kept per thread until its next failure, and logged. */
#ifndef QDNN_DRIVER_ERROR_H
#define QDNN_DRIVER_ERROR_H

#include <qdnn/qdnn.h>

/* Keeps the message and returns the status, so that a check is one line: return qdnn_error(STATUS, "n is %d;
 * ...", n). */
qdnnStatus_t qdnn_error(qdnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the thread's last error with "; fix: ..." unless it names a remedy already; returns the status. */
qdnnStatus_t error_with_remedy(qdnnStatus_t status);

#endif
