/* Results that are kept in a file (clock/product/kept.h). */
#include "clock/product/kept.h"

#include <stdio.h>
#include <string.h>

#include "test.h"
#include "support/process.h"

typedef struct scene {
    char folder[512], path[600];
} scene;

static void scene_make(scene *s)
{
    temp_dir_make(s->folder, sizeof s->folder);
    snprintf(s->path, sizeof s->path, "%s/results", s->folder);
}

/* Opens the file for a program, and looks for three names; -1 for one that is not there. */
static void look(const scene *s, uint64_t program, double found[3])
{
    static const char *const names[] = {"one", "two words", "three"};
    kept *k = kept_new(sizeof(double));
    REQUIRE(k != NULL);
    CHECK(kept_file(k, s->path, program));
    for (int i = 0; i < 3; i++)
        if (!kept_find(k, names[i], &found[i]))
            found[i] = -1;
    kept_free(k);
}

static void write_two(const scene *s, uint64_t program)
{
    const double values[] = {1.5, -2e300, 7};
    kept *k = kept_new(sizeof(double));
    REQUIRE(k != NULL);
    CHECK(kept_file(k, s->path, program));
    CHECK(kept_add(k, "one", &values[0]) && kept_add(k, "two words", &values[1]));
    CHECK(kept_add(k, "one", &values[2])); /* the first stays */
    CHECK_EQ_U64(kept_count(k), 2);
    kept_free(k);
}

TEST_CASE(Kept, InMemory)
{
    double value = 3, found = 0;
    kept *k = kept_new(sizeof value);
    REQUIRE(k != NULL);
    CHECK(!kept_find(k, "a", &found));
    CHECK(kept_add(k, "a", &value) && kept_find(k, "a", &found) && found == 3);
    CHECK(!kept_find(k, "b", &found) && found == 3);
    kept_free(k);
}

TEST_CASE(Kept, InAFile)
{
    scene s;
    double found[3];
    scene_make(&s);
    write_two(&s, 42);
    look(&s, 42, found);
    CHECK(found[0] == 1.5 && found[1] == -2e300 && found[2] == -1);
    temp_dir_remove(s.folder);
}

TEST_CASE(Kept, OfAnotherProgramIsBegunAnew)
{
    scene s;
    double found[3];
    scene_make(&s);
    write_two(&s, 42);
    look(&s, 43, found);
    CHECK(found[0] == -1 && found[1] == -1);
    look(&s, 42, found); /* it was overwritten */
    CHECK(found[0] == -1 && found[1] == -1);
    temp_dir_remove(s.folder);
}

/* A program that was killed leaves part of a line, behind which the next one goes on. */
TEST_CASE(Kept, ALineThatWasCutOff)
{
    scene s;
    double found[3], three = 3;
    scene_make(&s);
    write_two(&s, 42);
    FILE *file = fopen(s.path, "a");
    REQUIRE(file != NULL);
    fputs("00000000000008", file);
    fclose(file);
    kept *k = kept_new(sizeof three);
    REQUIRE(k != NULL);
    CHECK(kept_file(k, s.path, 42) && kept_add(k, "three", &three));
    kept_free(k);
    look(&s, 42, found);
    CHECK(found[0] == 1.5 && found[1] == -2e300 && found[2] == 3);
    temp_dir_remove(s.folder);
}

TEST_CASE(Kept, AFileThatCannotBeWritten)
{
    kept *k = kept_new(1);
    REQUIRE(k != NULL);
    CHECK(!kept_file(k, "/no such folder/results", 1));
    kept_free(k);
}
