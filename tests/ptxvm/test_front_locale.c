/* Decimal numbers of PTX in a program that has set a locale with a decimal comma. */
#include "support/locale.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "ptxvm/front/front.h"

TEST_CASE(FrontLocale, DecimalCommaChangesNoNumber)
{
    static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".global .f64 a[3] = {1.5, -2.25e1, .5};\n.global .f32 b = 0.1;\n";
    pvm_error error;
    if (!comma_locale_begin())
        SKIP("no locale with a decimal comma can be had here");
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), &error);
    bool still = strtod("1,5", NULL) == 1.5; /* what the program has set is left as it is */
    comma_locale_end();
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
