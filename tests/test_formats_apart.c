/* What kernels ask of a format is a field of its row or codec: outside kernels/formats nothing compares names, storage types, widths
 * of codes, kinds of blocks, or addresses of codecs and of parts of blocks. A new format would get wrong bits there. */
#include "test.h"

#include <dirent.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

static const char *const forbidden[] = {
    "[=!]= *&(codec|codes|scales|float)_[a-z]",        /* addresses */
    "(->|[.])(block|storage) *[=!]= *QDNN_",           /* kinds */
    "(facts[.]bits|bits_of[(][^)]*[)]) *[=!]= *[1-9]", /* widths */
    "facts[.](name|block)[^a-z_]",
};

static void search(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    if (!CHECK(file != NULL))
        return;
    for (int number = 1; fgets(line, sizeof line, file); number++)
        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
            regex_t pattern;
            if (!CHECK(regcomp(&pattern, forbidden[i], REG_EXTENDED | REG_NOSUB) == 0))
                continue;
            if (regexec(&pattern, line, 0, NULL, 0) == 0)
                FAIL("%s:%d compares formats: make it a field of the format's row, codec or layout\n  %s",
                     path, number, line);
            regfree(&pattern);
        }
    fclose(file);
}

TEST_CASE(Formats, AreOnlyComparedByTheirFields)
{
    static const char *const folders[] = {"gemm", "tensor", "integer", "quant", "train"};
    int searched = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/kernels/%s", QDNN_SOURCE_DIR, folders[i]);
        DIR *folder = opendir(path);
        REQUIRE(folder != NULL);
        for (struct dirent *entry; (entry = readdir(folder));) {
            const char *dot = strrchr(entry->d_name, '.');
            if (!dot || (strcmp(dot, ".c") && strcmp(dot, ".h")))
                continue;
            snprintf(path, sizeof path, "%s/kernels/%s/%s", QDNN_SOURCE_DIR, folders[i], entry->d_name);
            search(path);
            searched++;
        }
        closedir(folder);
    }
    CHECK(searched > 80);
}
