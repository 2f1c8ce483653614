/* Lookup in the table of SMs. */
#include "ptxvm/sm.h"

#include <stddef.h>

static const sm_traits traits[] = {
#define SM(sm, threads, blocks, shared, shared_optin, double_ratio, cluster, ...)                            \
    {sm, threads, blocks, shared, shared_optin, double_ratio, cluster},
#define TARGET(...)
#include "ptxvm/sm.def"
};

static const sm_target targets[] = {
#define SM(sm, threads, blocks, shared, shared_optin, double_ratio, cluster, ...) {sm, __VA_ARGS__},
#define TARGET(...)                                                               {__VA_ARGS__},
#include "ptxvm/sm.def"
};

const sm_traits *pvm_sm_traits(int sm)
{
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
        if (traits[i].sm == sm)
            return &traits[i];
    return NULL;
}

const sm_traits *pvm_sm_traits_near(int sm)
{
    size_t i = 0;
    while (i + 1 < sizeof traits / sizeof *traits && traits[i].sm < sm)
        i++;
    return &traits[i];
}

const sm_target *pvm_sm_target(int sm)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm == sm)
            return &targets[i];
    return NULL;
}
