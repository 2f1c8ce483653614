/* Every mistake is an error with its place, kept until the builder is closed: no crash, no bad text. */
#include "test.h"
#include "test_ptx_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(type) pool->value[0][PTX_##type]
#define Y(type) pool->value[1][PTX_##type]
#define NOTHING ((ptx_val){0})

typedef struct mistake {
    const char *name, *expected;
    void (*make)(ptx_builder *b, const ptx_pool *pool);
} mistake;

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define MISTAKE(name, expected, ...)                                                                         \
    static void JOIN(mistake_, name)(ptx_builder * b, const ptx_pool *pool)                                  \
    {                                                                                                        \
        (void)pool;                                                                                          \
        __VA_ARGS__;                                                                                         \
    }
#include "test_ptx_mistakes.def"
#undef MISTAKE

static const mistake mistakes[] = {
#define MISTAKE(name, expected, ...) {#name, expected, JOIN(mistake_, name)},
#include "test_ptx_mistakes.def"
#undef MISTAKE
};

static int mistake_count(void)
{
    return (int)(sizeof mistakes / sizeof *mistakes);
}

static void mistake_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", mistakes[index].name);
}

TEST_EACH(PtxErrors, Refused, mistake_count, mistake_name)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL);
    ptx_pool pool;
    char *text;
    ptx_error error;
    ptx_kernel(b, "k");
    ptx_pool_fill(b, &pool);
    mistakes[index].make(b, &pool);
    bool ok = ptx_close(b, &text, &error);
    CHECK(!ok);
    CHECK(!text);
    CHECK(!error.no_memory);
    CHECK_HAS(ok ? text : error.text, mistakes[index].expected);
    free(text);
}

TEST_CASE(PtxErrors, TheFirstIsKeptWithItsPlace)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL);
    char *text, expected[200];
    ptx_error error;
    ptx_kernel(b, "scale");
    ptx_val x = ptx_param(b, PTX_F32, "x"), n = ptx_param(b, PTX_S32, "n");
    CHECK(ptx_ok(b));
    int line = __LINE__ + 1;
    ptx_val bad = ptx_add(b, x, n);
    CHECK(!ptx_ok(b));
    CHECK_EQ_I64(bad.kind, PTX_NOTHING);
    ptx_mul(b, bad, bad);
    ptx_ret(b);
    ptx_fail(b, "another");
    CHECK(!ptx_close(b, &text, &error));
    snprintf(expected, sizeof expected,
             "scale: test_ptx_errors.c:%d: instruction 3: add: the types differ: an operand is s32, it has "
             "to be f32",
             line);
    CHECK_EQ_STR(error.text, expected);
}

TEST_CASE(PtxErrors, ALongOneIsCutNotOverrun)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL);
    char *text, name[129];
    ptx_error error;
    memset(name, 'k', 128);
    name[128] = 0;
    ptx_kernel(b, name);
    ptx_fail(b, "%600d", 1);
    CHECK(!ptx_close(b, &text, &error));
    CHECK_EQ_I64((int64_t)strlen(error.text), sizeof error.text - 1);
}

static bool close_fails_with(ptx_builder *b, const char *expected)
{
    char *text;
    ptx_error error;
    return CHECK(!ptx_close(b, &text, &error)) && CHECK_HAS(error.text, expected);
}

TEST_CASE(PtxErrors, WithoutAKernelOrATarget)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL);
    close_fails_with(b, "there is no kernel");
    b = ptx_open(ptx_sm_find("sm_80"), NULL);
    ptx_tid_x(b);
    close_fails_with(b, "there is no kernel yet");
    b = ptx_open(ptx_sm_find("sm_1"), NULL);
    ptx_kernel(b, "k");
    close_fails_with(b, "the target is null");
    b = ptx_open(ptx_sm_find("sm_80"), NULL);
    ptx_kernel(b, "k");
    ptx_kernel(b, "k");
    close_fails_with(b, "\"k\" is already in use");
    char *text;
    CHECK(!ptx_close(ptx_open(NULL, NULL), &text, NULL));
}

TEST_CASE(PtxErrors, ValuesOfAnotherKernelOrBuilder)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL), *c = ptx_open(ptx_sm_find("sm_80"), NULL);
    ptx_kernel(b, "k");
    ptx_kernel(c, "k");
    ptx_val x = ptx_tid_x(b);
    ptx_add(c, x, 1);
    close_fails_with(c, "used after the if, loop or kernel");
    ptx_label label = ptx_label_new(b);
    ptx_label_place(b, label);
    ptx_kernel(b, "l");
    ptx_bra(b, label);
    close_fails_with(b, "this is not a label of the kernel");
}

/* ---- any call, any operand ---- */

TEST_CASE(PtxErrors, ANullBuilderIsHarmless)
{
    ptx_pool pool;
    ptx_pool_fill(NULL, &pool);
    for (int i = 0; i < ptx_golden_count(); i++)
        ptx_golden_get(i)->write(NULL, &pool);
    for (int i = 0; i < mistake_count(); i++)
        mistakes[i].make(NULL, &pool);
    char *text;
    ptx_error error;
    ptx_kernel(NULL, "k");
    CHECK(!ptx_ok(NULL));
    CHECK(!ptx_target(NULL));
    CHECK(!ptx_close(NULL, &text, &error));
    CHECK(error.no_memory);
    CHECK_EQ_STR(error.text, "out of memory");
}

/* All calls with operands of the wrong types, and with none: an error or a text, nothing else. */
TEST_CASE(PtxErrors, WrongOperandsAreRefusedOrRight)
{
    uint64_t seed = 12345;
    int refused = 0, written = 0;
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < ptx_golden_count(); i++) {
            ptx_builder *b = ptx_open(ptx_sm_find("sm_100a"), NULL);
            ptx_pool pool, mixed = {0};
            ptx_kernel(b, "k");
            ptx_pool_fill(b, &pool);
            for (int k = 0; round && k < 3; k++)
                for (int t = 1; t < PTX_TYPE_COUNT; t++) {
                    seed = seed * 6364136223846793005u + 1442695040888963407u;
                    mixed.value[k][t] = pool.value[seed >> 60 & 1][1 + (seed >> 33) % (PTX_TYPE_COUNT - 1)];
                }
            ptx_golden_get(i)->write(b, &mixed);
            char *text;
            bool ok = ptx_close(b, &text, NULL);
            CHECK(ok == (text != NULL));
            *(ok ? &written : &refused) += 1;
            free(text);
        }
    CHECK(refused > 10000);
    CHECK(written > 1000);
}

/* ---- memory ---- */

typedef struct meter {
    int calls, fail_at, live;
} meter;

static void *metered(void *user, void *memory, size_t size)
{
    meter *m = user;
    if (!size) {
        m->live -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    m->live += memory == NULL;
    return realloc(memory, size);
}

static void write_everything(ptx_builder *b)
{
    static const uint64_t elements[100] = {1, 2, 3};
    char name[32];
    for (int kernel = 0; kernel < 2; kernel++) {
        snprintf(name, sizeof name, "kernel_%d", kernel);
        ptx_kernel(b, name);
        ptx_reqntid(b, 32, 1, 1);
        for (int i = 0; i < 30; i++) {
            snprintf(name, sizeof name, "parameter_%d", i);
            ptx_param_ptr(b, name, 16);
        }
        ptx_val n = ptx_param(b, PTX_U32, "n");
        ptx_shared(b, "tile", PTX_F32, 64, 16);
        ptx_shared_dynamic(b, 16);
        snprintf(name, sizeof name, "table_%d", kernel);
        ptx_table(b, PTX_GLOBAL, name, PTX_U32, elements, 100);
        ptx_comment(b, "a comment");
        for (int i = 0; i < 200; i++) {
            ptx_val k = ptx_for(b, 0, n, 1);
            ptx_continue_if(b, ptx_setp(b, PTX_EQ, k, 3));
            ptx_if(b, ptx_setp(b, PTX_LT, k, 7));
            ptx_add(b, k, 5);
            ptx_else(b);
            ptx_mul(b, k, 5);
            ptx_end_if(b);
            ptx_end_for(b);
            ptx_loop(b);
            ptx_break(b);
            ptx_end_loop(b);
        }
    }
}

TEST_CASE(PtxErrors, NoMemoryAtAnyPoint)
{
    meter m = {0};
    ptx_options options = {.comments = true, .resize = metered, .user = &m};
    bool done = false;
    int failures = 0;
    for (int k = 1; !done && k < 1000; k++) {
        m = (meter){.fail_at = k};
        ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), &options);
        write_everything(b);
        char *text;
        ptx_error error;
        done = ptx_close(b, &text, &error);
        if (!done && !error.no_memory)
            FAIL("allocation %d: %s", k, error.text);
        CHECK(done || strstr(error.text, "out of memory"));
        CHECK(done == (text != NULL));
        failures += !done;
        ptx_free_text(&options, text);
        CHECK_EQ_I64(m.live, 0);
    }
    CHECK(done);
    CHECK(failures > 20);
    ptx_free_text(NULL, NULL);
}
