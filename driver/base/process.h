/* The process that created an object. Neither CUDA nor the locks of its threads survive a fork, so what a
 * parent created is refused in its child. */
#ifndef QDNN_DRIVER_PROCESS_H
#define QDNN_DRIVER_PROCESS_H

#include <pthread.h>

/* The id of this process, without a system call: it is read again in the child of a fork. */
int process_id(void);

/* Keeps a lock usable in a child: a fork waits until no other thread holds it. For locks of functions that
 * work in a child too. */
#define PROCESS_KEEPS_LOCK(lock)                                                                             \
    static void lock##_before_fork(void)                                                                     \
    {                                                                                                        \
        pthread_mutex_lock(&(lock));                                                                         \
    }                                                                                                        \
    static void lock##_after_fork(void)                                                                      \
    {                                                                                                        \
        pthread_mutex_unlock(&(lock));                                                                       \
    }                                                                                                        \
    __attribute__((constructor)) static void lock##_at_fork(void)                                            \
    {                                                                                                        \
        pthread_atfork(lock##_before_fork, lock##_after_fork, lock##_after_fork);                            \
    }                                                                                                        \
    _Static_assert(sizeof(lock) == sizeof(pthread_mutex_t), "a mutex")

#endif
