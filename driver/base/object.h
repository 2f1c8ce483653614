/* What users hold by pointer: handles, plans, descriptors. Each has a mark in front of it that says what it is, and that
 * destroying clears. Memory of destroyed objects is kept for later ones of its kind and size, so that a stale pointer can
 * be looked at: it is refused with a sentence, not followed. */
#ifndef QDNN_DRIVER_OBJECT_H
#define QDNN_DRIVER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qdnn/qdnn.h>

typedef enum {
    OBJECT_NONE, /* a pointer to anything else: nothing is known of it */
    OBJECT_HANDLE,
    OBJECT_PLAN,
    OBJECT_TENSOR,
    OBJECT_QUANT,
    OBJECT_MATMUL,
    OBJECT_TRAIN,
    OBJECT_INTEGER,
    OBJECT_SCHEDULE,
    OBJECT_KINDS
} object_kind;

/* The kind that a variable of a public type has. */
#define OBJECT_KIND_OF(argument)                                                                             \
    _Generic((argument),                                                                                     \
        qdnnHandle_t: OBJECT_HANDLE,                                                                         \
        qdnnPlan_t: OBJECT_PLAN,                                                                             \
        qdnnTensorDescriptor_t: OBJECT_TENSOR,                                                               \
        qdnnQuantDescriptor_t: OBJECT_QUANT,                                                                 \
        qdnnMatmulDescriptor_t: OBJECT_MATMUL,                                                               \
        qdnnTrainDescriptor_t: OBJECT_TRAIN,                                                                 \
        qdnnSchedule_t: OBJECT_SCHEDULE,                                                                     \
        qdnnIntegerDescriptor_t: OBJECT_INTEGER,                                                             \
        default: OBJECT_NONE)

/* Zeroed memory of an object, or null; and its end. */
void *object_create(object_kind kind, size_t bytes);
void object_destroy(void *object);
/* Clears the mark alone: users are refused from now on, while parts of the library still hold the object. */
void object_retire(void *object);

/* The mark in front of an object. */
typedef struct object_header {
    uint64_t mark;
    struct object_header *next; /* among those that wait to be used again */
} object_header;
extern const uint64_t object_marks[OBJECT_KINDS];

static inline bool object_is(const void *object, object_kind kind)
{
    return kind == OBJECT_NONE || ((const object_header *)object)[-1].mark == object_marks[kind];
}

/* The status, and the sentence, for an argument that is not of its kind (any more). */
qdnnStatus_t object_refuse(const char *name, const void *object, object_kind kind);

/* Gives the memory of destroyed objects back; for tests that count it, while no other thread is in a call. */
void objects_purge(void);

#endif
