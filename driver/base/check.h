/* Checks of arguments in public functions, one line each. */
#ifndef QDNN_DRIVER_CHECK_H
#define QDNN_DRIVER_CHECK_H

#include <string.h>

#include "driver/base/error.h"
#include "driver/base/log.h"
#include "driver/base/object.h"

/* Returns from the function if the argument is null, or an object that was destroyed, is of the wrong kind or
 * needs a device of this process's parent; the message calls it by `name`, its name in the public function. */
#define CHECK_NOT_NULL_AS(name, argument)                                                                    \
    do {                                                                                                     \
        if (!(argument))                                                                                     \
            return qdnn_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null; it must not be", (name));     \
        if (!object_is((argument), OBJECT_KIND_OF(argument)))                                                \
            return object_refuse((name), (argument), OBJECT_KIND_OF(argument));                              \
        if (object_is_inherited((argument), OBJECT_KIND_OF(argument)))                                       \
            return object_refuse_inherited((name), (argument), OBJECT_KIND_OF(argument));                    \
    } while (0)

/* The same, with the argument's own name. */
#define CHECK_NOT_NULL(argument) CHECK_NOT_NULL_AS(#argument, argument)

/* The same for a buffer of so many bytes: a pointer to 0 bytes may have any value. */
#define CHECK_BUFFER(argument, bytes)                                                                        \
    do {                                                                                                     \
        if ((bytes) > 0)                                                                                     \
            CHECK_NOT_NULL(argument);                                                                        \
    } while (0)

/* Copies an info struct to the caller's, which begins with its size: as much as fits, and members beyond this
 * version become 0. Returns from the function if the size is not set. */
#define GIVE_INFO(to, from)                                                                                  \
    do {                                                                                                     \
        const size_t size_ = (to)->size, known_ = sizeof *(to);                                              \
        if (size_ <= sizeof(size_t) || size_ > 65536)                                                        \
            return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,                                            \
                              #to "->size is %zu; set it to sizeof *" #to " before the call", size_);        \
        memset((to), 0, size_);                                                                              \
        memcpy((to), (from), size_ < known_ ? size_ : known_);                                               \
        (to)->size = size_;                                                                                  \
    } while (0)

/* Returns from the function with the status if the call failed. */
#define CHECK_STATUS(call)                                                                                   \
    do {                                                                                                     \
        qdnnStatus_t status_ = (call);                                                                       \
        if (status_ != QDNN_STATUS_SUCCESS)                                                                  \
            return status_;                                                                                  \
    } while (0)

/* The status of a failed host allocation. */
#define OUT_OF_MEMORY() qdnn_error(QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED, "the host is out of memory")

#endif
