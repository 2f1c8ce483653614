/* The facts of abi_facts.def as one of the two headers has them; the includer has included it, and names the
 * table. */
#include <stddef.h>

#include "abi.h"

#define SIZE(type)        {"sizeof " #type, (long long)sizeof(type)},
#define FIELD(type, name) {#type "." #name, (long long)offsetof(type, name)},
#define NUMBER(name)      {#name, (long long)(name)},
const abi_fact ABI_TABLE[] = {
#include "abi_facts.def"
    {NULL, 0}};
