/* The device under test: what every test that compares a kernel with host_ref runs on.
 *
 *   QDNN_DEVICE unset, "auto", "vm"   ptxvm, as the SM that a case asks for, with the checks that it asks for
 *   QDNN_DEVICE=vm:sm_89, vm:a100     ptxvm as that SM or board alone
 *   QDNN_DEVICE=cuda, cuda:1          a GPU
 *   QDNN_REQUIRE_GPU=1                a GPU; without one, and where a test launches nothing on it, the test fails
 *
 * DEVICE_CASE, DEVICE_EACH and DEVICE_ROWS register a test twice: as SUITE.NAME on the device under test, and as
 * SUITEOnGpu.NAME on a GPU (the one that QDNN_DEVICE names, else the first), which is skipped where there is none. So
 * `QDNN_REQUIRE_GPU=1 ./run test -R OnGpu` runs everything that a GPU has to prove.
 *
 * A GPU is one SM. A case whose expected bytes are those of every SM asks for one only to spread the cases over ptxvm's SMs,
 * and runs on any device. A case of one family of tensor cores begins with NEED_SM, and is skipped on the others. What only
 * ptxvm can do begins with ONLY_PTXVM, and is skipped on a GPU with that reason. */
#ifndef QDNN_TEST_UNDER_TEST_H
#define QDNN_TEST_UNDER_TEST_H

#include <qdnn/qdnn.h>

#include "test.h"

#define DEVICE_REGISTER_(suite_, name_, count_, case_name_)                                                  \
    static void suite_##_##name_##_body(int index);                                                          \
    TEST_REGISTER_(suite_, name_, count_, case_name_)                                                        \
    {                                                                                                        \
        device_run(suite_##_##name_##_body, index, false);                                                   \
    }                                                                                                        \
    TEST_REGISTER_(suite_##OnGpu, name_, count_, case_name_)                                                 \
    {                                                                                                        \
        device_run(suite_##_##name_##_body, index, true);                                                    \
    }                                                                                                        \
    static void suite_##_##name_##_body(__attribute__((unused)) int index)

#define DEVICE_CASE(suite, name)                   DEVICE_REGISTER_(suite, name, NULL, NULL)
#define DEVICE_EACH(suite, name, count, case_name) DEVICE_REGISTER_(suite, name, count, case_name)
#define DEVICE_ROWS(suite_, name_, table_)                                                                   \
    TEST_NAMES_(suite_, name_, table_)                                                                       \
    DEVICE_REGISTER_(suite_, name_, suite_##_##name_##_count, suite_##_##name_##_row)

/* Runs the body of a test where its device is found; else the test is skipped, or fails if a GPU is required. */
void device_run(void (*body)(int), int index, bool on_gpu);

/* A handle on the device under test. On ptxvm it starts anew as the SM, with the seed and the checks (as PTXVM_CHECK; "all"
 * includes `same`: our kernels store each byte once, and a second thread that stores it too has taken another's work). Null,
 * with a failure reported, where it does not start; end it in any case. Failures in between say which device it was. */
qdnnHandle_t device_begin(const char *sm, int seed, const char *checks);
qdnnHandle_t device_begin_logged(const char *sm, int seed, const char *checks,
                                 const char *log); /* as PTXVM_LOG */
void device_end(qdnnHandle_t handle);

bool device_is_gpu(void);

/* Whether the device under test can be the SM: ptxvm can be any; a GPU has to have the same tensor cores. */
bool device_is_for(const char *sm);

/* The SM as which device_begin(sm, ...) starts: on a GPU its own. */
const char *device_sm(const char *sm);
int device_sm_number(const char *sm); /* sm_90a: 90 */

/* The body launches nothing, because its calls are refused or only planned. */
void device_launches_nothing(void);

#define NEED_SM(sm)                                                                                          \
    do {                                                                                                     \
        if (!device_is_for(sm))                                                                              \
            SKIP("the case is for %s, the device is %s", (sm), device_sm(sm));                               \
    } while (0)

#define ONLY_PTXVM(what)                                                                                     \
    do {                                                                                                     \
        if (device_is_gpu())                                                                                 \
            SKIP("only ptxvm has %s", (what));                                                               \
    } while (0)

#endif
