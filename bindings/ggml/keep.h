/* Objects kept by the bytes that they were made from. There is a largest number of them: a new one takes the place of the one
 * that was not asked for the longest. */
#ifndef QDNN_GGML_KEEP_H
#define QDNN_GGML_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include <qdnn/qdnn.h>

enum { KEEPER_BUCKETS = 1024, KEPT_MOST = 512, WHY_BYTES = 256 };

typedef struct kept {
    void *object; /* null: it could not be made, and `why` says the reason */
    char why[WHY_BYTES];
    uint64_t stamp;      /* when it was last asked for */
    struct kept *next;   /* in its bucket */
    unsigned char key[]; /* the bytes */
} kept;

/* A kind of objects; what is not named here begins as zeros. */
typedef struct keeper {
    size_t key_bytes; /* of each key, with no padding among them */
    void *(*make)(qdnnHandle_t handle, const void *key, char why[WHY_BYTES]);
    void (*destroy)(void *object);
    kept *bucket[KEEPER_BUCKETS];
    int count;
    uint64_t clock;
} keeper;

/* Finds or makes the object; null: no host memory. It stays until the next call. */
const kept *keep(keeper *k, qdnnHandle_t handle, const void *key);

#endif
