/* What every rewritten file begins with: the switch that turns one mistake on, and the record of blocks that were reached.
 *
 * No header that looks at feature macros is included, because the file behind this one may define some. Each linked program or library has one
 * copy of the state (weak and hidden). The kernel is called directly: some tests count or fail the calls of the C library. */
#ifndef QDNN_MUTATE_SOURCES_INSIDE_H
#define QDNN_MUTATE_SOURCES_INSIDE_H

#include <sys/syscall.h>

extern char *getenv(const char *name);
extern long syscall(long number, ...);

#define SOURCE_SHARED __attribute__((weak, visibility("hidden")))

SOURCE_SHARED int source_chosen;            /* SOURCE_MUTANT; 0: none */
SOURCE_SHARED const char *source_hit_path;  /* SOURCE_HIT: created when the chosen one is reached */
SOURCE_SHARED unsigned char *source_blocks; /* SOURCE_BLOCKS: a file with one byte for each block */
SOURCE_SHARED int source_is_ready;

SOURCE_SHARED void source_start(void)
{
    enum { AT_CURRENT_FOLDER = -100, READ_WRITE = 2, MAP_READ_WRITE = 3, MAP_AS_SHARED = 1, BYTES = 1 << 21 };
    const char *chosen = getenv("SOURCE_MUTANT"), *blocks = getenv("SOURCE_BLOCKS");
    source_is_ready = 1;
    source_hit_path = getenv("SOURCE_HIT");
    for (int n = 0; chosen && *chosen >= '0' && *chosen <= '9'; chosen++)
        source_chosen = n = 10 * n + (*chosen - '0');
    if (!blocks)
        return;
    const long file = syscall(SYS_openat, AT_CURRENT_FOLDER, blocks, READ_WRITE, 0);
    if (file < 0)
        return;
    const long map = syscall(SYS_mmap, 0L, (long)BYTES, (long)MAP_READ_WRITE, (long)MAP_AS_SHARED, file, 0L);
    if (map != -1)
        source_blocks = (unsigned char *)map;
    syscall(SYS_close, file);
}

__attribute__((constructor)) static void source_start_once(void)
{
    if (!source_is_ready)
        source_start();
}

SOURCE_SHARED __attribute__((cold, noinline)) int source_hit(void)
{
    enum { AT_CURRENT_FOLDER = -100, CREATE_TO_WRITE = 0101, MODE = 0600 };
    if (source_hit_path) {
        const long file = syscall(SYS_openat, AT_CURRENT_FOLDER, source_hit_path, CREATE_TO_WRITE, MODE);
        if (file >= 0)
            syscall(SYS_close, file);
        source_hit_path = 0;
    }
    return 1;
}

#define SOURCE_REACHED(id)                                                                                   \
    do {                                                                                                     \
        if (__builtin_expect(source_blocks != 0, 0) && !source_blocks[id])                                   \
            source_blocks[id] = 1;                                                                           \
    } while (0);

#ifndef SOURCE_CHECK
#define SOURCE_MUTANT(n)                    (__builtin_expect(source_chosen == (n), 0) && source_hit())
#define SOURCE_EITHER(n, mutated, original) (SOURCE_MUTANT(n) ? (mutated) : (original))
#else
/* To see whether a mistake compiles, in code that is there, and leaves the type as it is: with the switch off nothing must change. */
struct source_types_differ {
    int unused;
};
#define SOURCE_MUTANT(n)                                                                                     \
    (__extension__({                                                                                         \
        __asm__ volatile("# source_mutant_is_here");                                                         \
        source_chosen == (n);                                                                                \
    }))
#define SOURCE_EITHER(n, mutated, original)                                                                  \
    __builtin_choose_expr(__builtin_types_compatible_p(__typeof__(mutated), __typeof__(original)),           \
                          (SOURCE_MUTANT(n) ? (mutated) : (original)), *(struct source_types_differ *)0)
#endif

#endif
