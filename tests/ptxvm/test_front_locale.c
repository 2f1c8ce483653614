/* Decimal numbers of PTX in a program that has set a locale with a decimal comma. */
#include "support/process.h"
#include "test.h"

#include <locale.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptxvm/front/front.h"

/* LC_NUMERIC of a locale whose decimal point is a comma, as glibc keeps it in a file: a magic number, the count of
 * values, where each is, and the values. Machines without any other locale than C are common. */
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

/* One of the machine's own, else one made for the test. */
static bool use_comma(const char *dir)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "comma"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (i + 1 == sizeof names / sizeof *names) {
            write_locale(dir);
            setenv("LOCPATH", dir, 1);
        }
        if (setlocale(LC_NUMERIC, names[i]) && strtod("1,5", NULL) == 1.5)
            return true;
    }
    return false;
}

TEST_CASE(FrontLocale, DecimalCommaChangesNoNumber)
{
    static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".global .f64 a[3] = {1.5, -2.25e1, .5};\n.global .f32 b = 0.1;\n";
    char dir[256];
    pvm_error error;
    temp_dir_make(dir, sizeof dir);
    bool comma = use_comma(dir);
    pvm_module *m = comma ? pvm_module_parse(ptx, strlen(ptx), &error) : NULL;
    bool still = strtod("1,5", NULL) == 1.5; /* what the program has set is left as it is */
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    temp_dir_remove(dir);
    if (!comma)
        SKIP("no locale with a decimal comma can be had here");
    REQUIRE(m != NULL);
    double a[3];
    float b;
    memcpy(a, m->vars[0]->init, sizeof a);
    memcpy(&b, m->vars[1]->init, sizeof b);
    CHECK(still);
    CHECK(a[0] == 1.5 && a[1] == -22.5 && a[2] == 0.5);
    CHECK_EQ_F32(b, 0.1f);
    pvm_module_free(m);
}
