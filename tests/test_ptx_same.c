/* The same calls give the same bytes: again, from many threads at once, and in every locale. */
#include "test.h"
#include "support/locale.h"
#include "test_ptx_forms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A module of all golden calls that need no scope of their own, a kernel each. */
static char *write_all(void)
{
    char name[32];
    ptx_builder *b = ptx_open(ptx_sm_find("sm_100a"), NULL);
    for (int i = 0; i < ptx_golden_count(); i++) {
        ptx_pool pool;
        *put_decimal(put_string(name, "k"), (uint64_t)i) = 0;
        ptx_kernel(b, name);
        ptx_pool_fill(b, &pool);
        ptx_golden_get(i)->write(b, &pool);
    }
    return ptx_close_or_error(b);
}

TEST_CASE(PtxSame, Again)
{
    char *first = write_all(), *second = write_all();
    CHECK_EQ_STR(second, first);
    CHECK(strlen(first) > 50000);
    free(first);
    free(second);
}

enum { THREADS = 8 };

static void *thread_writes(void *unused)
{
    (void)unused;
    return write_all();
}

TEST_CASE(PtxSame, FromManyThreads)
{
    pthread_t threads[THREADS];
    char *expected = write_all();
    for (int i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, thread_writes, NULL));
    for (int i = 0; i < THREADS; i++) {
        void *text = NULL;
        CHECK(!pthread_join(threads[i], &text));
        CHECK_EQ_STR(text, expected);
        free(text);
    }
    free(expected);
}

TEST_CASE(PtxSame, InAnotherLocale)
{
    char *expected = write_all();
    if (!comma_locale_begin()) {
        free(expected);
        SKIP("no locale with a decimal comma can be had here");
    }
    char *text = write_all();
    comma_locale_end();
    CHECK_EQ_STR(text, expected);
    free(text);
    free(expected);
}
