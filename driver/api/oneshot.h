/* Plans that the handle keeps for one-shot calls, found by what they were made from. */
#ifndef QDNN_DRIVER_ONESHOT_H
#define QDNN_DRIVER_ONESHOT_H

#include "driver/api/plan.h"

/* What decides about a plan, as bytes: calls with equal keys share one. Padding of the caller's structures may differ; that
 * costs another plan. */
enum { ONESHOT_KEY_MAX = 2048 };
typedef struct oneshot_key {
    size_t size;
    unsigned char bytes[ONESHOT_KEY_MAX];
} oneshot_key;

void key_add(oneshot_key *key, const void *data, size_t size);
/* Descriptors by their content; a null quantization is one more content. */
void key_add_tensor(oneshot_key *key, const struct qdnnTensorDescriptor *tensor);
void key_add_quant(oneshot_key *key, const struct qdnnQuantDescriptor *quant);

/* Makes the plan of a call, whose arguments are behind the pointer. */
typedef qdnnStatus_t (*oneshot_maker)(qdnnHandle_t handle, const void *arguments, qdnnPlan_t *plan);

/* The plan with that key, kept or made, as the handle's most recently used; and an execute with the handle's workspace. */
qdnnStatus_t oneshot_plan(qdnnHandle_t handle, const oneshot_key *key, oneshot_maker make,
                          const void *arguments, qdnnPlan_t *plan);
qdnnStatus_t oneshot_run(qdnnPlan_t plan, const qdnnBinding_t *bindings, int count, plan_caller by);

#endif
