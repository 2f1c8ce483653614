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

/* The text of a picture, without its title. */
static char *picture_text(const char *name)
{
    process_result r =
        process_run("grep -o '>[^<]*</text>' %s/docs/formats/%s.svg | tail -n +2", QDNN_SOURCE_DIR, name);
    return r.output;
}

/* d, dmin, and the eight scales and minima of 6 bits, of which four lie in two places. */
TEST_CASE(Pictures, ShowTheScalesOfBlocks)
{
    char *text = picture_text("gguf_q4_k");
    static const struct {
        const char *name;
        int boxes;
    } rows[] = {{"d", 2},  {"dmin", 2}, {"s0", 2}, {"s3", 1}, {"s4", 2},
                {"s7", 2}, {"m0", 2},   {"m4", 2}, {"m7", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char label[32];
        int boxes = 0;
        snprintf(label, sizeof label, ">%s</text>", rows[i].name);
        for (const char *at = text; (at = strstr(at, label)); at++)
            boxes++;
        test_push_note("%s", label);
        CHECK_EQ_I64(boxes, rows[i].boxes);
        test_pop_note();
    }
    CHECK(!strstr(text, "no part of a value")); /* the legend lists what there is */
    free(text);
}

TEST_CASE(Pictures, ShowHowCodesBecomeValues)
{
    static const char *const rows[][2] = {{"int4", "number(0), number(1), ... = -8 -7 -6"},
                                          {"int4_zp", "(code - zero point of its group) * scale"},
                                          {"int4_min", "code * scale of its group + minimum"},
                                          {"e2m1", "= 0 0.5 1 1.5 2 3 4 6 -0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = picture_text(rows[i][0]);
        CHECK_HAS(text, rows[i][1]);
        CHECK(!strstr(text, "shared"));
        free(text);
    }
}

TEST_CASE(Pictures, AreOnThePage)
{
    process_result missing =
        process_run("cd %s/docs && for p in formats/*.svg; do grep -q \"($p)\" formats.md || echo $p; done",
                    QDNN_SOURCE_DIR);
    CHECK_EQ_STR(missing.output, "");
    process_free(&missing);
}
