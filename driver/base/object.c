/* Marks of objects, and the lists of destroyed objects. */
#include "driver/base/object.h"

#include <pthread.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/base/error.h"

static const struct {
    const char *name, *creator;
} kinds[OBJECT_KINDS] = {
    [OBJECT_HANDLE] = {"handle", "qdnnCreate"},
    [OBJECT_PLAN] = {"plan", "one of the qdnnCreate...Plan functions"},
    [OBJECT_TENSOR] = {"tensor descriptor", "qdnnCreateTensorDescriptor"},
    [OBJECT_QUANT] = {"quantization descriptor", "qdnnCreateQuantDescriptor"},
    [OBJECT_MATMUL] = {"matmul descriptor", "qdnnCreateMatmulDescriptor"},
    [OBJECT_TRAIN] = {"training descriptor", "qdnnCreateTrainDescriptor"},
    [OBJECT_INTEGER] = {"integer descriptor", "qdnnCreateIntegerDescriptor"},
    [OBJECT_SCHEDULE] = {"schedule", "qdnnCreateSchedule"},
    [OBJECT_PROGRAM] = {"program", "qdnnCreateProgram"},
    [OBJECT_SELECT] = {"selection descriptor", "qdnnCreateSelectDescriptor"},
};

/* Unlikely in other data: odd, and not an address in user space. */
#define MARK(kind) (UINT64_C(0x9DB1C0DE51E7A001) + 2 * (kind))
const uint64_t object_marks[OBJECT_KINDS] = {
    [OBJECT_HANDLE] = MARK(OBJECT_HANDLE),   [OBJECT_PLAN] = MARK(OBJECT_PLAN),
    [OBJECT_TENSOR] = MARK(OBJECT_TENSOR),   [OBJECT_QUANT] = MARK(OBJECT_QUANT),
    [OBJECT_MATMUL] = MARK(OBJECT_MATMUL),   [OBJECT_TRAIN] = MARK(OBJECT_TRAIN),
    [OBJECT_INTEGER] = MARK(OBJECT_INTEGER), [OBJECT_SCHEDULE] = MARK(OBJECT_SCHEDULE),
    [OBJECT_PROGRAM] = MARK(OBJECT_PROGRAM),
    [OBJECT_SELECT] = MARK(OBJECT_SELECT),
};
/* The mark of a destroyed object, which still tells its kind. */
#define DESTROYED(mark) (~(mark))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object_header *destroyed[OBJECT_KINDS];
PROCESS_KEEPS_LOCK(lock);

static object_header *take(object_kind kind)
{
    pthread_mutex_lock(&lock);
    object_header *header = destroyed[kind];
    if (header)
        destroyed[kind] = header->next;
    pthread_mutex_unlock(&lock);
    return header;
}

void *object_create(object_kind kind, size_t bytes)
{
    object_header *header = take(kind);
    if (header)
        memset(header + 1, 0, bytes);
    else
        header = alloc_new(sizeof *header + bytes);
    if (!header)
        return NULL;
    header->mark = object_marks[kind];
    header->process = process_id();
    return header + 1;
}

static object_kind kind_of_mark(uint64_t mark)
{
    for (int kind = OBJECT_NONE + 1; kind < OBJECT_KINDS; kind++)
        if (object_marks[kind] == mark)
            return (object_kind)kind;
    return OBJECT_NONE;
}

void object_retire(void *object)
{
    object_header *header = (object_header *)object - 1;
    if (kind_of_mark(header->mark) != OBJECT_NONE)
        header->mark = DESTROYED(header->mark);
}

void object_destroy(void *object)
{
    if (!object)
        return;
    object_header *header = (object_header *)object - 1;
    object_retire(object);
    object_kind kind = kind_of_mark(DESTROYED(header->mark));
    pthread_mutex_lock(&lock);
    header->next = destroyed[kind];
    destroyed[kind] = header;
    pthread_mutex_unlock(&lock);
}

qdnnStatus_t object_refuse(const char *name, const void *object, object_kind kind)
{
    const uint64_t mark = ((const object_header *)object)[-1].mark;
    if (DESTROYED(mark) == object_marks[kind])
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is a %s that was destroyed; create another with %s",
                          name, kinds[kind].name, kinds[kind].creator);
    object_kind other = kind_of_mark(mark);
    if (other != OBJECT_NONE)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is a %s; it must be a %s, created by %s", name,
                          kinds[other].name, kinds[kind].name, kinds[kind].creator);
    return qdnn_error(QDNN_STATUS_BAD_PARAM, "%s is %p, which is not a %s; it must come from %s", name,
                      object, kinds[kind].name, kinds[kind].creator);
}

qdnnStatus_t object_refuse_inherited(const char *name, const void *object, object_kind kind)
{
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "%s is a %s of process %d, from which this process, %d, was forked; CUDA does not work "
        "after a fork: fork before the first qdnnCreate, or start the child by exec (Python: the "
        "start method 'spawn')",
        name, kinds[kind].name, ((const object_header *)object)[-1].process, process_id());
}

void objects_purge(void)
{
    for (int kind = 0; kind < OBJECT_KINDS; kind++)
        for (object_header *header; (header = take((object_kind)kind));)
            alloc_free(header);
}
