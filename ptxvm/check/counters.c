/* Counters of a launch. */
#include "check.h"

const ptxvm_counters *ptxvm_last_counters(const ptxvm *vm)
{
    (void)vm;
    return NULL;
}

const char *ptxvm_class_name(ptxvm_class class_of)
{
    static const char *const names[] = {"integer", "f32",     "f64",  "f16",    "conversion",
                                        "memory",  "control", "warp", "tensor", "other"};
    return (unsigned)class_of < PTXVM_CLASSES ? names[class_of] : "unknown";
}
