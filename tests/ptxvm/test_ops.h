/* Runs a few lines of PTX on ptxvm and compares what each thread leaves behind. For the test_ops_*.c. */
#ifndef TEST_OPS_H
#define TEST_OPS_H

#include "test.h"

#include "ptxvm/ptxvm.h"

/* Rows of the tables below end where the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* The lines run in a kernel that has declared
 *   %r<64> .b32, %rd<64> .b64, %h<32> .b16, %f<16> .f32, %fd<16> .f64, %p<16> .pred, %q<8> .b128 (where the
 * SM has them), .shared .align 128 .b8 sm[4096], .local .align 16 .b8 lo[256] and set %r0 = %tid.x, %rd0 =
 * out, %rd1 = in, %rd2 = out + 8 * (%ctaid.x * %ntid.x + %tid.x). What is then in %rd9 is stored at [%rd2].
 * in: 4096 bytes, byte k is ops_in(k); out starts as zeros. */
typedef struct ops_test {
    const char *name;
    const char *lines;
    uint64_t (*expect)(uint32_t thread); /* null: not looked at */
    const char *sm;                      /* null: "sm_100a" */
    uint32_t threads, blocks;            /* 0: 32, 1 */
    const char *decls;                   /* at module scope */
    ptxvm_status status;                 /* of the launch */
    const char *error;                   /* a part of the message, where it fails */
    const char *printed;                 /* what the kernel prints */
    uint32_t cluster;                    /* blocks of a cluster; 0: as the kernel says */
    uint64_t seed;
} ops_test;

static inline uint8_t ops_in(uint32_t k)
{
    return (uint8_t)(k * 37 + (k >> 8) * 5 + 11);
}

/* `bytes` little-endian bytes of the input from k on. */
static inline uint64_t ops_in_at(uint32_t k, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)ops_in(k + (uint32_t)i) << 8 * i;
    return value;
}

void ops_run(const ops_test *test);

/* TEST_EACH over a table of ops_test named `table`. */
#define OPS_TESTS(suite, table)                                                                              \
    static int table##_count(void)                                                                           \
    {                                                                                                        \
        return (int)(sizeof table / sizeof *table);                                                          \
    }                                                                                                        \
    static void table##_name(int index, char *text, size_t size)                                             \
    {                                                                                                        \
        snprintf(text, size, "%s", table[index].name);                                                       \
    }                                                                                                        \
    TEST_EACH(suite, table, table##_count, table##_name)                                                     \
    {                                                                                                        \
        ops_run(&table[index]);                                                                              \
    }

#endif
