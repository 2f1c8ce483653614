/* Plans and kernels, kept by what they were made from. */
#include "keep.h"

#include <stdlib.h>
#include <string.h>

static kept **bucket_of(keeper *k, const void *key)
{
    const unsigned char *byte = key;
    uint64_t hash = 0;
    for (size_t i = 0; i < k->key_bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3) ^ hash >> 29;
    return &k->bucket[hash % KEEPER_BUCKETS];
}

static kept *find(keeper *k, kept *of_bucket, const void *key)
{
    while (of_bucket && memcmp(of_bucket->key, key, k->key_bytes) != 0)
        of_bucket = of_bucket->next;
    return of_bucket;
}

static void drop_oldest(keeper *k)
{
    kept **oldest = NULL;
    for (int i = 0; i < KEEPER_BUCKETS; i++)
        for (kept **at = &k->bucket[i]; *at; at = &(*at)->next)
            if (!oldest || (*at)->stamp < (*oldest)->stamp)
                oldest = at;
    kept *gone = *oldest;
    *oldest = gone->next;
    if (gone->object)
        k->destroy(gone->object);
    free(gone);
    k->count--;
}

const kept *keep(keeper *k, qdnnHandle_t handle, const void *key)
{
    kept **bucket = bucket_of(k, key), *found = find(k, *bucket, key);
    if (!found) {
        if (k->count == KEPT_MOST)
            drop_oldest(k);
        found = calloc(1, sizeof *found + k->key_bytes);
        if (!found)
            return NULL;
        memcpy(found->key, key, k->key_bytes);
        found->object = k->make(handle, key, found->why);
        found->next = *bucket;
        *bucket = found;
        k->count++;
    }
    found->stamp = ++k->clock;
    return found;
}
