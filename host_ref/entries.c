/* The public functions that compute: each in the default floating-point environment. */
#include "host_ref/environment.h"
#include "host_ref/internal.h"

#define F(type, name, params, args)                                                                          \
    type ref_##name params                                                                                   \
    {                                                                                                        \
        HR_DEFAULT_ENVIRONMENT();                                                                            \
        return hr_##name args;                                                                               \
    }
#define V(name, params, args)                                                                                \
    void ref_##name params                                                                                   \
    {                                                                                                        \
        HR_DEFAULT_ENVIRONMENT();                                                                            \
        hr_##name args;                                                                                      \
    }
#include "host_ref/entries.def"
#undef F
#undef V
