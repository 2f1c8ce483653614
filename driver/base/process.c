/* The id of the process, kept up to date across forks. */
#include "driver/base/process.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic int id;

static void read_id(void)
{
    atomic_store_explicit(&id, (int)getpid(), memory_order_relaxed);
}

__attribute__((constructor)) static void begin(void)
{
    read_id();
    pthread_atfork(NULL, NULL, read_id);
}

int process_id(void)
{
    int known = atomic_load_explicit(&id, memory_order_relaxed);
    return known ? known : (int)getpid(); /* 0: another library's constructor calls us before ours ran */
}
