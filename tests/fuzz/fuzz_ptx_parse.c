/* libFuzzer target: any bytes are a module or an error. Built with -DQDNN_FUZZ=ON and clang;
 * tests/fuzz/CMakeLists.txt says how the seed corpus is made. */
#include "ptxvm/module.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[] = ".version 9.0\n.target sm_120a\n.address_size 64\n";
    ptx_error error;
    ptx_module *m = ptx_module_parse((const char *)data, size, &error);
    if (!m && error.kind == PTX_OK)
        abort();
    ptx_module_free(m);
    /* Once more behind a good header, so that most inputs get past it. */
    char *text = malloc(sizeof header + size);
    memcpy(text, header, sizeof header - 1);
    if (size)
        memcpy(text + sizeof header - 1, data, size);
    ptx_module_free(ptx_module_parse(text, sizeof header - 1 + size, &error));
    free(text);
    return 0;
}
