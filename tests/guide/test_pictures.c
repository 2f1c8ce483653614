/* docs/formats/: the pictures are what format_pictures draws now, and the page shows every one of them. */
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST_CASE(Pictures, AreThoseOfTheFormats)
{
    char folder[256];
    temp_dir_make(folder, sizeof folder);
    process_result drawn = process_run("%s/tools/format_pictures %s && diff -rq %s %s/docs/formats",
                                       QDNN_BINARY_DIR, folder, folder, QDNN_SOURCE_DIR);
    if (drawn.status != 0)
        FAIL("%s\ndraw them again: build/tools/format_pictures docs/formats", drawn.output);
    process_free(&drawn);
    temp_dir_remove(folder);
}

TEST_CASE(Pictures, AreOnThePage)
{
    process_result missing =
        process_run("cd %s/docs && for p in formats/*.svg; do grep -q \"($p)\" formats.md || echo $p; done",
                    QDNN_SOURCE_DIR);
    CHECK_EQ_STR(missing.output, "");
    process_free(&missing);
}
