/* docs/reference/: the pages are what the public headers make now, and have every function. */
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_CASE(Reference, PagesAreThoseOfTheHeaders)
{
    char folder[256];
    temp_dir_make(folder, sizeof folder);
    process_result made =
        process_run("%s/tools/reference_pages %s/include/qdnn %s && diff -rq %s %s/docs/reference",
                    QDNN_BINARY_DIR, QDNN_SOURCE_DIR, folder, folder, QDNN_SOURCE_DIR);
    if (made.status != 0)
        FAIL("%s\nmake them again: build/tools/reference_pages include/qdnn docs/reference", made.output);
    process_free(&made);
    temp_dir_remove(folder);
}

/* The names of functions, found in the headers by other means than the program's. */
TEST_CASE(Reference, HasEveryFunction)
{
    process_result names = process_run(
        "cat %s/include/qdnn/*.h | tr '\\n' ' ' | grep -oE 'QDNN_API [A-Za-z0-9_ *]*qdnn[A-Za-z0-9]+\\(' | "
        "grep -oE 'qdnn[A-Za-z0-9]+\\(' | tr -d '(' | sort -u",
        QDNN_SOURCE_DIR);
    process_result pages = process_run("cat %s/docs/reference/*.md", QDNN_SOURCE_DIR);
    int count = 0;
    for (char *name = strtok(names.output, "\n"); name; name = strtok(NULL, "\n"), count++) {
        char heading[128];
        snprintf(heading, sizeof heading, "\n### %s\n", name);
        CHECK_HAS(pages.output, heading);
    }
    CHECK(count > 100);
    process_free(&names);
    process_free(&pages);
}

/* An argument list, a table that stays as it is, and no body of an inline function. */
TEST_CASE(Reference, ReadsCommentsAsTheyAreMeant)
{
    process_result integer = process_run("cat %s/docs/reference/integer.md", QDNN_SOURCE_DIR);
    CHECK_HAS(integer.output, "- `plan`: receives it; qdnnDestroyPlan frees it, before the handle\n");
    CHECK_HAS(integer.output, "```text\n  x               w    y               operation\n");
    process_free(&integer);
    process_result files = process_run("cat %s/docs/reference/files.md", QDNN_SOURCE_DIR);
    CHECK_HAS(files.output, "qdnnDataType_t data, qdnnUploadedWeight_t *uploaded);\n```");
    CHECK(!strstr(files.output, "memset"));
    process_free(&files);
}
