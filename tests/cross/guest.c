/* The device of a cross test (see guest.h). */
#include "guest.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

static void keep_print(void *user, const char *text, size_t length)
{
    guest *g = user;
    size_t room = sizeof g->printed - 1 - g->n_printed, taken = length < room ? length : room;
    memcpy(g->printed + g->n_printed, text, taken);
    g->n_printed += taken;
    g->printed[g->n_printed] = 0;
}

bool guest_open(guest *g, const guest_setting *setting, const char *ptx, size_t length)
{
    *g = (guest){0};
    ptxvm_config config = {.sm = setting->sm,
                           .checks = setting->checks,
                           .seed = setting->seed,
                           .threads = setting->threads,
                           .step_limit = 50 * 1000 * 1000,
                           .print = keep_print,
                           .print_user = g};
    if (!CHECK(ptxvm_create(&config, &g->vm) == PTXVM_OK))
        return false;
    ptxvm_status status = ptxvm_module_load(g->vm, ptx, length, &g->module);
    if (status != PTXVM_OK)
        FAIL("loading: %s: %s", ptxvm_status_name(status), ptxvm_last_error(g->vm));
    return status == PTXVM_OK;
}

void guest_close(guest *g)
{
    if (g->vm)
        ptxvm_destroy(g->vm);
    g->vm = NULL;
}

ptxvm_address guest_put(guest *g, const void *from, uint64_t bytes)
{
    ptxvm_address address = 0;
    CHECK_EQ_I64(ptxvm_alloc(g->vm, bytes, &address), PTXVM_OK);
    CHECK_EQ_I64(from ? ptxvm_write(g->vm, address, from, bytes) : ptxvm_fill(g->vm, address, 0, bytes),
                 PTXVM_OK);
    return address;
}

void guest_get(guest *g, void *to, ptxvm_address from, uint64_t bytes)
{
    CHECK_EQ_I64(ptxvm_read(g->vm, to, from, bytes), PTXVM_OK);
}

ptxvm_address guest_global(guest *g, const char *name, uint64_t bytes)
{
    ptxvm_address address = 0;
    uint64_t size = 0;
    if (ptxvm_module_global(g->module, name, &address, &size) != PTXVM_OK)
        FAIL("%s", ptxvm_last_error(g->vm));
    CHECK_EQ_U64(size, bytes);
    return address;
}

void guest_try(guest *g, const char *kernel, guest_shape shape, const void *params, uint64_t bytes)
{
    ptxvm_launch_config config = {.grid = {shape.blocks, 1, 1},
                                  .block = {shape.threads, 1, 1},
                                  .shared_bytes = shape.shared_bytes,
                                  .cooperative = shape.cooperative};
    ptxvm_kernel *found = NULL;
    g->status = ptxvm_module_kernel(g->module, kernel, &found);
    if (g->status == PTXVM_OK)
        g->status = ptxvm_launch(g->vm, found, &config, params, bytes);
}

bool guest_run(guest *g, const char *kernel, guest_shape shape, const void *params, uint64_t bytes)
{
    guest_try(g, kernel, shape, params, bytes);
    if (g->status != PTXVM_OK)
        FAIL("%s: %s: %s", kernel, ptxvm_status_name(g->status), ptxvm_last_error(g->vm));
    return g->status == PTXVM_OK;
}
