/* ops_run: see test_ops.h. */
#include "test_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_BYTES 4096

typedef struct printed {
    char text[8192];
    size_t length;
} printed;

static void keep(void *user, const char *text, size_t length)
{
    printed *p = user;
    if (p->length + length < sizeof p->text) {
        memcpy(p->text + p->length, text, length);
        p->length += length;
    }
}

static char *module_text(const ops_test *test, const char *sm)
{
    static const char format[] =
        ".version 9.4\n.target %s\n.address_size 64\n%s\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
        ".reg .b32 %%r<64>;\n.reg .b64 %%rd<64>;\n.reg .b16 %%h<32>;\n.reg .f32 %%f<16>;\n"
        ".reg .f64 %%fd<16>;\n.reg .pred %%p<16>;\n%s"
        ".shared .align 128 .b8 sm[4096];\n.local .align 16 .b8 lo[256];\n"
        "ld.param.u64 %%rd0, [out];\nld.param.u64 %%rd1, [in];\nmov.u32 %%r0, %%tid.x;\n"
        "{\n.reg .b32 %%t<4>;\nmov.u32 %%t0, %%ctaid.x;\nmov.u32 %%t1, %%ntid.x;\n"
        "mad.lo.u32 %%t2, %%t0, %%t1, %%r0;\nmad.wide.u32 %%rd2, %%t2, 8, %%rd0;\n}\n"
        "mov.u64 %%rd9, 0;\n%s\nst.global.u64 [%%rd2], %%rd9;\nret;\n}\n";
    const char *wide = atoi(sm + 3) >= 70 ? ".reg .b128 %q<8>;\n" : "";
    const char *decls = test->decls ? test->decls : "";
    size_t size = sizeof format + strlen(decls) + strlen(test->lines) + 200;
    char *text = malloc(size);
    snprintf(text, size, format, sm, decls, wide, test->lines);
    return text;
}

/* A launch of the kernel "k" of a module, with its input and output. */
static void launch(const ops_test *test, ptxvm *vm, ptxvm_module *module, const printed *text)
{
    uint32_t threads = test->threads ? test->threads : 32, blocks = test->blocks ? test->blocks : 1;
    uint64_t count = (uint64_t)threads * blocks;
    uint8_t in[IN_BYTES];
    for (uint32_t i = 0; i < IN_BYTES; i++)
        in[i] = ops_in(i);
    ptxvm_kernel *kernel;
    ptxvm_address params[2];
    uint64_t *out = calloc(count, 8);
    if (!CHECK(ptxvm_module_kernel(module, "k", &kernel) == PTXVM_OK) ||
        !CHECK(ptxvm_alloc(vm, count * 8, &params[0]) == PTXVM_OK) ||
        !CHECK(ptxvm_alloc(vm, IN_BYTES, &params[1]) == PTXVM_OK) ||
        !CHECK(ptxvm_write(vm, params[1], in, IN_BYTES) == PTXVM_OK)) {
        free(out);
        return;
    }
    ptxvm_launch_config config = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    if (test->cluster)
        memcpy(config.cluster, (uint32_t[]){test->cluster, 1, 1}, sizeof config.cluster);
    ptxvm_status status = ptxvm_launch(vm, kernel, &config, params, sizeof params);
    if (status != test->status)
        FAIL("%s: %s", ptxvm_status_name(status), ptxvm_last_error(vm));
    if (test->error)
        CHECK_HAS(ptxvm_last_error(vm), test->error);
    if (test->printed)
        CHECK_EQ_STR(text->text, test->printed);
    if (status == PTXVM_OK && test->expect) {
        CHECK(ptxvm_read(vm, out, params[0], count * 8) == PTXVM_OK);
        for (uint32_t i = 0; i < count; i++)
            if (out[i] != test->expect(i)) {
                test_push_note("thread %u", i);
                CHECK_EQ_U64(out[i], test->expect(i));
                test_pop_note();
                break;
            }
    }
    free(out);
}

void ops_run(const ops_test *test)
{
    printed text = {{0}, 0};
    const char *sm = test->sm ? test->sm : "sm_100a";
    ptxvm_config config = {.sm = sm,
                           .threads = 2,
                           .step_limit = 1000000,
                           .seed = test->seed,
                           .print = keep,
                           .print_user = &text,
                           .checks = PTXVM_CHECK_MEMORY};
    ptxvm *vm;
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    char *source = module_text(test, sm);
    ptxvm_module *module;
    if (ptxvm_module_load(vm, source, strlen(source), &module) == PTXVM_OK)
        launch(test, vm, module, &text);
    else
        FAIL("%s", ptxvm_last_error(vm));
    free(source);
    ptxvm_destroy(vm);
}
