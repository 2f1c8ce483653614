/* Checks of arguments that every public function makes, each a line. */
#ifndef QDNN_DRIVER_CHECK_H
#define QDNN_DRIVER_CHECK_H

#include "driver/base/error.h"
#include "driver/base/log.h"

/* Leaves the function where the argument is null; the sentence names it. */
#define CHECK_NOT_NULL(argument)                                                                             \
    do {                                                                                                     \
        if (!(argument))                                                                                     \
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, #argument " is null; it must not be");     \
    } while (0)

/* The same under the name that the argument has in the public function. */
#define CHECK_NOT_NULL_AS(name, argument)                                                                    \
    do {                                                                                                     \
        if (!(argument))                                                                                     \
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null; it must not be", (name));     \
    } while (0)

/* The same for a buffer of so many bytes: one of 0 may be anywhere. */
#define CHECK_BUFFER(argument, bytes)                                                                        \
    do {                                                                                                     \
        if ((bytes) > 0)                                                                                     \
            CHECK_NOT_NULL(argument);                                                                        \
    } while (0)

/* Leaves the function with the status of a call that failed. */
#define CHECK_STATUS(call)                                                                                   \
    do {                                                                                                     \
        qdnnStatus_t status_ = (call);                                                                       \
        if (status_ != QDNN_STATUS_SUCCESS)                                                                  \
            return status_;                                                                                  \
    } while (0)

/* The status of a host allocation that failed. */
#define OUT_OF_MEMORY() qdnn_error(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "the host is out of memory")

#endif
