/* Objects that users hold by pointer: handles, plans, descriptors. A mark in front of each tells its kind,
 * and is cleared when it is destroyed. The memory of destroyed objects is kept for later objects of the same
 * kind and size, so that a stale pointer can still be checked: it gives an error instead of a crash. */
#ifndef QDNN_DRIVER_OBJECT_H
#define QDNN_DRIVER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qdnn/qdnn.h>

#include "driver/base/process.h"

typedef enum {
    OBJECT_NONE, /* any other pointer, which cannot be checked */
    OBJECT_HANDLE,
    OBJECT_PLAN,
    OBJECT_TENSOR,
    OBJECT_QUANT,
    OBJECT_MATMUL,
    OBJECT_TRAIN,
    OBJECT_INTEGER,
    OBJECT_SCHEDULE,
    OBJECT_PROGRAM,
    OBJECT_SELECT,
    OBJECT_KINDS
} object_kind;

/* The kind of a variable, from its public type. */
/* clang-format off */
#define OBJECT_KIND_OF(argument)                                                                             \
    _Generic((argument),                                                                                     \
        qdnnHandle_t: OBJECT_HANDLE,                                                                         \
        qdnnPlan_t: OBJECT_PLAN,                                                                             \
        qdnnTensorDescriptor_t: OBJECT_TENSOR,                                                               \
        qdnnQuantDescriptor_t: OBJECT_QUANT,                                                                 \
        qdnnMatmulDescriptor_t: OBJECT_MATMUL,                                                               \
        qdnnTrainDescriptor_t: OBJECT_TRAIN,                                                                 \
        qdnnSelectDescriptor_t: OBJECT_SELECT,                                                               \
        qdnnSchedule_t: OBJECT_SCHEDULE,                                                                     \
        qdnnProgram_t: OBJECT_PROGRAM,                                                                       \
        qdnnIntegerDescriptor_t: OBJECT_INTEGER,                                                             \
        default: OBJECT_NONE)
/* clang-format on */

/* Creates an object in zeroed memory, or returns null; and destroys it. */
void *object_create(object_kind kind, size_t bytes);
void object_destroy(void *object);
/* Clears only the mark: users can no longer pass the object, while parts of the library still hold it. */
void object_retire(void *object);

/* The mark in front of an object. */
typedef struct object_header {
    uint64_t mark;
    int process;                /* that created it */
    struct object_header *next; /* in the list of memory to reuse */
} object_header;
extern const uint64_t object_marks[OBJECT_KINDS];

static inline bool object_is(const void *object, object_kind kind)
{
    return kind == OBJECT_NONE || ((const object_header *)object)[-1].mark == object_marks[kind];
}

/* Whether the object uses a device that a parent of this process opened. */
static inline bool object_is_inherited(const void *object, object_kind kind)
{
    return (kind == OBJECT_HANDLE || kind == OBJECT_PLAN || kind == OBJECT_SCHEDULE ||
            kind == OBJECT_PROGRAM) &&
           ((const object_header *)object)[-1].process != process_id();
}
qdnnStatus_t object_refuse_inherited(const char *name, const void *object, object_kind kind);

/* The status and the message for an argument that is not, or no longer, of its kind. */
qdnnStatus_t object_refuse(const char *name, const void *object, object_kind kind);

/* Frees the memory of destroyed objects; for tests that count allocations, while no other thread is in a
 * call. */
void objects_purge(void);

#endif
