/* A hash that distinguishes builds of qdnn whose emitters write different text. */
#include "driver/bundle/bundle.h"

#include <pthread.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/bundle/bundle_check.h"

/* Settings chosen to exercise what the defaults do not. */
static kernel_spec other_settings(void)
{
    kernel_spec spec = kernel_spec_default();
    spec.data = QDNN_DATA_BF16;
    spec.stored.scale = QDNN_SCALE_F16;
    spec.stored.zero = QDNN_DATA_F32;
    spec.stored.group_size = 100;
    spec.stored.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    spec.quantize.rounding = QDNN_ROUND_TIES_AWAY;
    spec.quantize.division = QDNN_DIVIDE_RECIPROCAL;
    spec.quantize.floor = 0.5f;
    return spec;
}

/* Adds the kernel's text for the first target that supports it, searching from either end of the table of
 * SMs. Returns false if there is no memory. */
static bool add_kernel(uint64_t *hash, const kernel_row *row, const kernel_spec *spec, bool newest)
{
    kernel_text text = {0};
    ptx_error error = {0};
    int n = ptx_sm_count();
    for (int i = 0; i < n && !text.ptx && !error.no_memory; i++)
        kernel_emit(row, spec, ptx_sm_get(newest ? n - 1 - i : i), &alloc_for_ptx, &text, &error);
    if (text.ptx)
        *hash = bundle_hash(*hash, text.ptx, strlen(text.ptx));
    ptx_free_text(&alloc_for_ptx, text.ptx);
    return !error.no_memory;
}

/* Emitting a few kernels of every row takes a good part of a second in all, so it is done once. */
bool bundle_own_emitters(uint64_t *hash)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_known;
    static uint64_t known;
    pthread_mutex_lock(&lock);
    is_known = is_known || bundle_emitters(&known);
    bool ok = is_known;
    *hash = known;
    pthread_mutex_unlock(&lock);
    return ok;
}

bool bundle_emitters(uint64_t *hash)
{
    kernel_spec usual = kernel_spec_default(), other = other_settings(), channels = usual;
    channels.stored.group_size = 1;
    channels.stored.channels = 5;
    *hash = BUNDLE_HASH_START;
    for (int i = 0; i < kernel_row_count; i++)
        if (!add_kernel(hash, &kernel_rows[i], &usual, false) ||
            !add_kernel(hash, &kernel_rows[i], &other, true) ||
            !add_kernel(hash, &kernel_rows[i], &channels, true))
            return false;
    return true;
}
