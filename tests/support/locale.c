#include "locale.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "process.h"

static char made_in[256]; /* the directory of the locale that was created; empty: none */

/* LC_NUMERIC of a locale whose decimal point is a comma, in glibc's file format: a magic number, the number
 * of values, their offsets, and the values. Many machines have no locale other than C. */
typedef struct numeric_file {
    uint32_t magic, n, at[6];
    char comma[2], none[2], grouping[4];
    uint32_t wide_comma, wide_none;
    char codeset[8];
} numeric_file;

static void write_locale(const char *dir)
{
    numeric_file f = {.magic = 0x20031115u ^ LC_NUMERIC,
                      .n = 6,
                      .at = {offsetof(numeric_file, comma), offsetof(numeric_file, none),
                             offsetof(numeric_file, grouping), offsetof(numeric_file, wide_comma),
                             offsetof(numeric_file, wide_none), offsetof(numeric_file, codeset)},
                      .comma = ",",
                      .grouping = "\177",
                      .wide_comma = ',',
                      .codeset = "UTF-8"};
    char path[300];
    snprintf(path, sizeof path, "%s/comma", dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", dir);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(&f, sizeof f, 1, file);
        fclose(file);
    }
}

static bool try_locale(const char *name)
{
    return setlocale(LC_ALL, name) && strtod("1,5", NULL) == 1.5;
}

bool comma_locale_begin(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                        "fr_FR.UTF-8", "fr_FR.utf8", "pl_PL.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (try_locale(names[i]))
            return true;
    temp_dir_make(made_in, sizeof made_in);
    write_locale(made_in);
    setenv("LOCPATH", made_in, 1);
    if (setlocale(LC_NUMERIC, "comma") && strtod("1,5", NULL) == 1.5)
        return true;
    comma_locale_end();
    return false;
}

void comma_locale_end(void)
{
    setlocale(LC_ALL, "C");
    if (!*made_in)
        return;
    unsetenv("LOCPATH");
    temp_dir_remove(made_in);
    *made_in = 0;
}
