/* The SM table (sm.def), and the rules of which PTX runs where. */
#include "ptxgen/sm.h"

#include <stddef.h>
#include <string.h>

static const ptx_sm sms[] = {
#define SM(name, number, flavour, version, block_kb, sm_kb, threads, blocks, fp8, f32x2)                     \
    {name,    number, PTX_##flavour, version, block_kb * 1024u, sm_kb * 1024u, 65536,                        \
     threads, blocks, fp8,           f32x2},
#include "ptxgen/sm.def"
#undef SM
};

int ptx_sm_count(void)
{
    return (int)(sizeof sms / sizeof *sms);
}

const ptx_sm *ptx_sm_get(int index)
{
    return index >= 0 && index < ptx_sm_count() ? &sms[index] : NULL;
}

const ptx_sm *ptx_sm_find(const char *name)
{
    static const char *const prefixes[] = {"sm_", "compute_"};
    if (!name)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) {
            name += strlen(prefixes[i]);
            break;
        }
    for (int i = 0; i < ptx_sm_count(); i++)
        if (!strcmp(sms[i].name + 3, name))
            return &sms[i];
    return NULL;
}

bool ptx_sm_runs_on(const ptx_sm *target, int major, int minor)
{
    int device = major * 10 + minor;
    switch (target->flavour) {
    case PTX_ARCH:
        return device == target->number;
    case PTX_FAMILY: /* a family is one major number, starting at the SM that names it */
        return device / 10 == target->number / 10 && device >= target->number;
    default:
        return device >= target->number;
    }
}

const ptx_sm *ptx_sm_for_device(int major, int minor)
{
    const ptx_sm *best = NULL;
    for (int i = 0; i < ptx_sm_count(); i++) /* later rows are newer, and more specific for the same number */
        if (ptx_sm_runs_on(&sms[i], major, minor))
            best = &sms[i];
    return best;
}
