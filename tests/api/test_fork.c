/* Children of a process whose threads are in the middle of calls: what would reach a device is refused without
 * waiting for a lock, everything else works. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

enum { THREADS = 3, CHILDREN = 30 };

typedef struct fork_test {
    qdnnHandle_t handle;
    qdnnPlan_t plan;
    qdnnSchedule_t schedule;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    _Atomic bool stop;
    _Atomic int rounds;
} fork_test;

/* Creates and destroys handles, plans and descriptors, so that every lock is held at some time. */
static void *busy(void *argument)
{
    fork_test *t = argument;
    while (!atomic_load(&t->stop)) {
        qdnnHandle_t handle = NULL;
        qdnnPlan_t plan = NULL;
        qdnnCreateOn(&handle, "vm");
        qdnnCreateScalePlan(handle, t->tensor, t->quant, &plan);
        qdnnDestroyPlan(plan);
        qdnnDestroy(handle);
        atomic_fetch_add(&t->rounds, 1);
    }
    return NULL;
}

static bool is_refused(qdnnStatus_t status)
{
    return status == QDNN_STATUS_NOT_SUPPORTED && strstr(last_sentence(), "fork") != NULL;
}

/* Bit i: the i-th of these is wrong. */
static int wrong_in_child(fork_test *t)
{
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t tensor = NULL;
    size_t bytes = 0;
    void *memory = NULL;
    const qdnnStatus_t host[] = {
        qdnnCreateTensorDescriptor(&tensor),
        qdnnSetTensorDescriptor(tensor, QDNN_DATA_F32, 1, (const int64_t[]){64}, NULL),
        qdnnGetOperandSize(t->quant, tensor, QDNN_OPERAND_CODES, &bytes),
        qdnnDestroyTensorDescriptor(tensor)};
    int wrong = bytes == 32 ? 0 : 1;
    for (int i = 0; i < 4; i++)
        wrong |= host[i] != QDNN_STATUS_SUCCESS;
    wrong |= !is_refused(qdnnCreate(&handle)) << 1 | !is_refused(qdnnMalloc(t->handle, &memory, 4)) << 2;
    wrong |= !is_refused(qdnnExecute(t->handle, t->plan, NULL, 0, NULL, 0)) << 3;
    wrong |= !is_refused(qdnnCreateScalePlan(t->handle, t->tensor, t->quant, &(qdnnPlan_t){NULL})) << 4;
    wrong |= !is_refused(qdnnExecuteSchedule(t->handle, t->schedule, NULL, 0)) << 5;
    wrong |= !is_refused(qdnnDestroyPlan(t->plan)) << 6 | !is_refused(qdnnDestroy(t->handle)) << 7;
    return wrong;
}

TEST_CASE(ApiFork, ChildrenReturn)
{
    NEED_PTXVM;
    fork_test t = {0};
    pthread_t threads[THREADS];
    vm_begin(NULL);
    REQUIRE(basics_create(&t.handle, &t.tensor, &t.quant));
    OK(qdnnSetTensorDescriptor(t.tensor, QDNN_DATA_F32, 1, (const int64_t[]){64}, NULL));
    OK(qdnnCreateScalePlan(t.handle, t.tensor, t.quant, &t.plan));
    OK(qdnnCreateSchedule(t.handle, &t.schedule));
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, busy, &t) == 0);
    while (atomic_load(&t.rounds) == 0)
        ;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* a child that hangs is ended */
            _exit(wrong_in_child(&t));
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        test_push_note("child %d", i);
        CHECK_EQ_I64(status, 0);
        test_pop_note();
    }
    atomic_store(&t.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(qdnnDestroySchedule(t.schedule));
    OK(qdnnDestroyPlan(t.plan)); /* the parent goes on */
    basics_destroy(t.handle, t.tensor, t.quant);
    vm_end();
}

/* A process that has not opened a driver may fork, and the child use it. */
TEST_CASE(ApiFork, BeforeTheFirstHandle)
{
    NEED_PTXVM;
    vm_begin(NULL);
    pid_t child = fork();
    if (child == 0) {
        qdnnHandle_t handle = NULL;
        bool ok = qdnnCreate(&handle) == QDNN_STATUS_SUCCESS && qdnnDestroy(handle) == QDNN_STATUS_SUCCESS;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
    vm_end();
}
