/* What the backend for ggml keeps plans and kernels in: it needs nothing of ggml. */
#include "bindings/ggml/keep.h"
#include "test.h"

#include <stdio.h>

enum { REFUSED = 7 };

static int made, destroyed;
static uint64_t last_destroyed;

static void *make(qdnnHandle_t handle, const void *key, char why[WHY_BYTES])
{
    static uint64_t objects[4 * KEPT_MOST];
    (void)handle;
    const uint64_t number = *(const uint64_t *)key;
    if (number == REFUSED) {
        snprintf(why, WHY_BYTES, "no %d", REFUSED);
        return NULL;
    }
    objects[made] = number;
    return &objects[made++];
}

static void destroy(void *object)
{
    destroyed++;
    last_destroyed = *(uint64_t *)object;
}

TEST_CASE(GgmlKeep, TheOneThatWasNotAskedForTheLongestGivesWay)
{
    static keeper kept_ones = {.key_bytes = sizeof(uint64_t), .make = make, .destroy = destroy};
    made = destroyed = 0;
    for (uint64_t i = 1000; i < 1000 + KEPT_MOST; i++)
        CHECK_EQ_U64(*(uint64_t *)keep(&kept_ones, NULL, &i)->object, i);
    CHECK_EQ_I64(made, KEPT_MOST);
    CHECK_EQ_I64(destroyed, 0);

    uint64_t key = 1000; /* the oldest, asked for again */
    CHECK_EQ_U64(*(uint64_t *)keep(&kept_ones, NULL, &key)->object, key);
    CHECK_EQ_I64(made, KEPT_MOST);

    key = 5;
    CHECK_EQ_U64(*(uint64_t *)keep(&kept_ones, NULL, &key)->object, key);
    CHECK_EQ_I64(destroyed, 1);
    CHECK_EQ_U64(last_destroyed, 1001);
    key = 1000;
    keep(&kept_ones, NULL, &key);
    CHECK_EQ_I64(made, KEPT_MOST + 1);
    key = 1001; /* made again, in the place of 1002 */
    keep(&kept_ones, NULL, &key);
    CHECK_EQ_I64(made, KEPT_MOST + 2);
    CHECK_EQ_U64(last_destroyed, 1002);
    CHECK_EQ_I64(kept_ones.count, KEPT_MOST);
}

TEST_CASE(GgmlKeep, AReasonIsKeptToo)
{
    static keeper kept_ones = {.key_bytes = sizeof(uint64_t), .make = make, .destroy = destroy};
    uint64_t key = REFUSED;
    made = destroyed = 0;
    for (int i = 0; i < 2; i++) {
        const kept *found = keep(&kept_ones, NULL, &key);
        CHECK(!found->object);
        CHECK_EQ_STR(found->why, "no 7");
    }
    for (key = 1000; key < 1000 + KEPT_MOST; key++)
        keep(&kept_ones, NULL, &key);
    CHECK_EQ_I64(destroyed, 0); /* only what was refused has given way */
    CHECK_EQ_I64(kept_ones.count, KEPT_MOST);
}
