/* libFuzzer target: every kernel of any module runs to its end, or to an error with a message, with all checks on.
 * What it may cost is kept small, so that many run in a second. */
#include "ptxvm/ptxvm.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

enum { BUFFER_BYTES = 4096, PARAMS_MOST = 4096, KERNELS_MOST = 4 };

/* A large allocation fails, as it may anywhere, instead of ending the fuzzer. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

static void swallow(void *user, const char *text, size_t length)
{
    *(unsigned *)user += length ? (unsigned char)text[length - 1] : 0; /* so that every byte must be there */
}

/* The SM that a text is for, as far as it needs that very one. */
static const char *sm_of(const char *text, size_t size)
{
    static const char *const names[] = {"sm_90a", "sm_100a", "sm_103a"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0, length = strlen(names[n]); i + length <= size; i++)
            if (memcmp(text + i, names[n], length) == 0)
                return names[n];
    return "sm_120a";
}

static ptxvm *device(const char *sm, unsigned *sum)
{
    ptxvm_config config = {.sm = sm,
                           .threads = 1,
                           .seed = 1,
                           .step_limit = 3000,
                           .memory_bytes = 1 << 22,
                           .stack_bytes = 1 << 14,
                           .print = swallow,
                           .print_user = sum,
                           .checks = PTXVM_CHECK_ALL,
                           .counters = PTXVM_COUNTERS_LINES,
                           .limits = {[PTXVM_LIMIT_REGISTERS] = 1 << 20,
                                      [PTXVM_LIMIT_BLOCKS] = 1 << 26,
                                      [PTXVM_LIMIT_DATA] = 1 << 20,
                                      [PTXVM_LIMIT_PRINTF] = 1 << 16,
                                      [PTXVM_LIMIT_ASYNC] = 64}};
    ptxvm *vm = NULL;
    if (ptxvm_create(&config, &vm))
        abort();
    return vm;
}

/* Every failure has a message, and nothing in it that a terminal would act on. */
static void check(const ptxvm *vm, ptxvm_status status)
{
    const char *text = ptxvm_last_error(vm);
    if (status && !text[0])
        abort();
    for (; status && *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\n' && *text != '\t')
            abort();
}

/* Parameters that mean something as often as not: addresses of a buffer, small numbers in between. */
static void fill_params(uint64_t *params, ptxvm_address buffer)
{
    for (uint64_t i = 0; i < PARAMS_MOST / 8; i++)
        params[i] = i % 3 == 2 ? i : buffer + 1024 * (i % 3);
}

/* Twice: the second launch overlaps with the first. */
static void run(ptxvm *vm, ptxvm_kernel *kernel, uint32_t threads)
{
    uint64_t params[PARAMS_MOST / 8];
    ptxvm_address buffer = 0;
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    ptxvm_launch_config launch = {.grid = {2, 1, 1}, .block = {threads, 1, 1}, .shared_bytes = 1024};
    for (int i = 0; i < 3 && info.reqntid[0]; i++)
        launch.block[i] = info.reqntid[i] ? (uint32_t)info.reqntid[i] : 1;
    if (info.param_bytes > sizeof params || ptxvm_alloc(vm, BUFFER_BYTES, &buffer))
        return;
    fill_params(params, buffer);
    ptxvm_status status = ptxvm_launch(vm, kernel, &launch, params, info.param_bytes);
    check(vm, status);
    launch.programmatic = true;
    check(vm, ptxvm_launch(vm, kernel, &launch, params, info.param_bytes));
    ptxvm_free(vm, buffer);
}

static void load_and_run(const char *text, size_t size)
{
    unsigned sum = 0;
    const char *sm = sm_of(text, size);
    const uint32_t threads = strcmp(sm, "sm_120a") ? 128 : 40; /* a warpgroup */
    ptxvm *vm = device(sm, &sum);
    ptxvm_module *module = NULL;
    check(vm, ptxvm_module_load(vm, text, size, &module));
    for (int i = 0; i < ptxvm_module_kernel_count(module) && i < KERNELS_MOST; i++)
        run(vm, ptxvm_module_kernel_at(module, i), threads);
    ptxvm_destroy(vm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[] = ".version 9.0\n.target sm_120a\n.address_size 64\n";
    bool has_header = false; /* among the comments that may precede it */
    for (size_t i = 0; i + 8 <= size && !has_header; i++)
        has_header = memcmp(data + i, ".version", 8) == 0;
    char *text = malloc(sizeof header + size);
    size_t start = has_header ? 0 : sizeof header - 1;
    memcpy(text, header, start);
    if (size)
        memcpy(text + start, data, size);
    load_and_run(text, start + size);
    free(text);
    return 0;
}
