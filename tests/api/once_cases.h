/* Small examples of the calls in qdnn/once.h, for several tests. */
#ifndef QDNN_TEST_API_ONCE_CASES_H
#define QDNN_TEST_API_ONCE_CASES_H

#include <qdnn/qdnn.h>

enum { ONCE_BINDINGS_MAX = 6, ONCE_DIMS = 4 };

/* An operand: its bytes on the host if it is read. */
typedef struct once_operand {
    qdnnOperand_t operand;
    const void *data; /* null: it is written */
    size_t bytes;
} once_operand;

typedef struct once_case {
    const char *name;
    /* With a plan: creates it; else makes the one-shot call. */
    qdnnStatus_t (*call)(qdnnHandle_t handle, qdnnPlan_t *plan, const qdnnBinding_t *bindings, int count);
    once_operand operands[ONCE_BINDINGS_MAX];
    const void *expected; /* what the first operand that is written becomes */
} once_case;

extern const once_case once_cases[];
extern const int once_case_count;
int once_operands(const once_case *c);

#endif
