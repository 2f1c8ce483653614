/* Every %ctaid.x of a text becomes a number. */
#include "formats/pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *pinned_to_block(const char *ptx, uint64_t number)
{
    static const char name[] = "%ctaid.x";
    char *text = malloc(2 * strlen(ptx) + 32), *end = text;
    if (!text)
        return NULL;
    for (const char *at; (at = strstr(ptx, name)); ptx = at + strlen(name))
        end += sprintf(end, "%.*s%llu", (int)(at - ptx), ptx, (unsigned long long)number);
    strcpy(end, ptx);
    return text;
}
