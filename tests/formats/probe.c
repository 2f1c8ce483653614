/* Building a kernel around a function of the emitters, and running it. */
#include "formats/probe.h"

#include <stdlib.h>
#include <string.h>

#include "ptxvm/ptxvm.h"
#include "test.h"

enum { PROBE_BLOCK = 256 };

static char *probe_text(const probe *p)
{
    ptx_builder *b = ptx_open(ptx_sm_find(p->sm), NULL);
    ptx_kernel(b, "probe");
    ptx_val in = ptx_param_ptr(b, "in", 16), out = ptx_param_ptr(b, "out", 16),
            n = ptx_param(b, PTX_U32, "n");
    if (p->open)
        p->open(b, p->user);
    ptx_val i = ptx_global_index(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    p->thread(b, p->user, in, out, i);
    char *text;
    ptx_error error;
    if (!ptx_close(b, &text, &error))
        FAIL("%s: %s", p->sm, error.text);
    return text;
}

static bool launch(ptxvm *vm, const char *text, const probe *p)
{
    struct {
        ptxvm_address in, out;
        uint32_t n;
    } params = {.n = p->threads};
    const ptxvm_launch_config config = {.grid = {(p->threads + PROBE_BLOCK - 1) / PROBE_BLOCK, 1, 1},
                                        .block = {PROBE_BLOCK, 1, 1}};
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    return ptxvm_module_load(vm, text, strlen(text), &module) == PTXVM_OK &&
           ptxvm_module_kernel(module, "probe", &kernel) == PTXVM_OK &&
           ptxvm_alloc(vm, p->in_bytes, &params.in) == PTXVM_OK &&
           ptxvm_alloc(vm, p->out_bytes, &params.out) == PTXVM_OK &&
           ptxvm_write(vm, params.in, p->in, p->in_bytes) == PTXVM_OK &&
           ptxvm_launch(vm, kernel, &config, &params, 20) == PTXVM_OK &&
           ptxvm_read(vm, p->out, params.out, p->out_bytes) == PTXVM_OK;
}

bool probe_run(const probe *p)
{
    const ptxvm_config config = {.sm = p->sm, .checks = PTXVM_CHECK_ALL};
    char *text = probe_text(p);
    ptxvm *vm = NULL;
    bool ok = text && ptxvm_create(&config, &vm) == PTXVM_OK && launch(vm, text, p);
    if (!ok)
        FAIL("%s: %s", p->sm, vm ? ptxvm_last_error(vm) : "no kernel");
    ptxvm_destroy(vm);
    free(text);
    return ok;
}
