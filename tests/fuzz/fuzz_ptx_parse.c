/* libFuzzer target: any bytes are a module or an error, and any kernel of a module is decoded or refused.
 * Built with -DQDNN_FUZZ=ON and clang; tests/fuzz/CMakeLists.txt says how the seed corpus is made. */
#include "ptxvm/ptxvm.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ptxvm *device(void)
{
    static ptxvm *vm;
    if (!vm && ptxvm_create(&(ptxvm_config){.sm = "sm_120a", .threads = 1, .memory_bytes = 1 << 24}, &vm))
        abort();
    return vm;
}

/* Every failure has a message. */
static void check(const ptxvm *vm, ptxvm_status status)
{
    if (status && !ptxvm_last_error(vm)[0])
        abort();
}

static void load(const char *text, size_t size)
{
    ptxvm *vm = device();
    ptxvm_module *module = NULL;
    check(vm, ptxvm_module_load(vm, text, size, &module));
    for (int i = 0; i < ptxvm_module_kernel_count(module); i++) {
        ptxvm_kernel_info info;
        ptxvm_kernel *kernel;
        ptxvm_kernel_get_info(ptxvm_module_kernel_at(module, i), &info);
        check(vm, ptxvm_module_kernel(module, info.name, &kernel));
    }
    ptxvm_module_unload(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[] = ".version 9.0\n.target sm_120a\n.address_size 64\n";
    load((const char *)data, size);
    /* Once more behind a good header, so that most inputs get past it. */
    char *text = malloc(sizeof header + size);
    memcpy(text, header, sizeof header - 1);
    if (size)
        memcpy(text + sizeof header - 1, data, size);
    load(text, sizeof header - 1 + size);
    free(text);
    return 0;
}
