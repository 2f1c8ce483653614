/* qdnnEmitPtx: the PTX of a kernel by name, SM and settings. */
#include <qdnn/emit.h>

#include <stdio.h>
#include <string.h>

#include "driver/base/alloc.h"
#include "driver/base/check.h"
#include "kernels/kernels.h"

static qdnnStatus_t apply_setting(const char *name, const kernel_row *row, kernel_spec *spec,
                                  const char *setting)
{
    char key[32], reason[512];
    const char *equals = strchr(setting, '=');
    size_t length = equals ? (size_t)(equals - setting) : 0;
    if (length == 0 || length >= sizeof key)
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "settings: '%s' is not of the form key=value", setting);
    memcpy(key, setting, length);
    key[length] = 0;
    if (kernel_name_set(name, row, spec, key, equals + 1, reason, sizeof reason))
        return QDNN_STATUS_SUCCESS;
    bool known = kernel_takes(row, key);
    return qdnn_error(known ? QDNN_STATUS_BAD_PARAM : QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "settings: %s",
                      reason);
}

static qdnnStatus_t emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, qdnnPtx_t *out)
{
    kernel_text text;
    ptx_error problem;
    if (!kernel_emit(row, spec, sm, &alloc_for_ptx, &text, &problem))
        return qdnn_error(problem.no_memory ? QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED
                                            : QDNN_STATUS_NOT_SUPPORTED_SM,
                          "%s", problem.text);
    out->ptx = text.ptx;
    kernel_entry_name(row, out->entry, sizeof out->entry);
    out->blockThreads = text.geometry.block;
    out->elementsPerBlock = text.geometry.elements_per_block;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnEmitPtx(const char *kernel, const char *sm, const char *const *settings, qdnnPtx_t *out)
{
    CALL_BEGIN_WITH(kernel, sm, settings, out);
    CHECK_NOT_NULL(kernel);
    CHECK_NOT_NULL(sm);
    CHECK_NOT_NULL(out);
    kernel_spec spec;
    const kernel_row *row = kernel_open(kernel, &spec);
    if (!row)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "unknown kernel '%s'; ptxgen --list names them",
                          kernel);
    const ptx_sm *target = ptx_sm_find(sm);
    if (!target)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                          "sm is '%s', which is not a known target (sm_90 is one)", sm);
    for (; settings && *settings; settings++)
        CHECK_STATUS(apply_setting(kernel, row, &spec, *settings));
    return emit(row, &spec, target, out);
}

void qdnnFreePtx(qdnnPtx_t *ptx)
{
    if (!ptx)
        return;
    ptx_free_text(&alloc_for_ptx, ptx->ptx);
    ptx->ptx = NULL;
}
