/* The PTX versions that ptxvm supports, and the newest that the environment lets it accept. */
#include "ptxvm.h"

#include <stdlib.h>

const int ptxvm_oldest_isa = 60, ptxvm_newest_isa = 94; /* 10 * major + minor */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int ptxvm_accepted_isa(void)
{
    const char *text = getenv("PTXVM_NEWEST_ISA");
    int major = 0, digits = 0;
    if (!text || !*text)
        return ptxvm_newest_isa;
    for (; is_digit(*text) && digits < 3; text++, digits++)
        major = 10 * major + (*text - '0');
    if (!digits || text[0] != '.' || !is_digit(text[1]) || text[2])
        return -1;
    int isa = 10 * major + (text[1] - '0');
    return isa > ptxvm_newest_isa ? isa : ptxvm_newest_isa;
}
