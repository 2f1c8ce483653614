/* Tensor maps: encoded and checked by ptxvm_tensormap_encode. */
#include "internal.h"

#include <stdint.h>

static CUresult result_of(ptxvm_status status, const char *function, const char *why)
{
    if (!status)
        return CUDA_SUCCESS;
    return cuda_log(status == PTXVM_ERROR_UNSUPPORTED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE,
                    "%s: %s", function, why);
}

CUresult do_cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *address,
                                   const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                                   const uint32_t *element_stride, int interleave, int swizzle,
                                   int l2_promotion, int fill)
{
    char why[256];
    ptxvm_tensormap_config config = {.type = type,
                                     .rank = (int)rank,
                                     .address = (ptxvm_address)(uintptr_t)address,
                                     .interleave = interleave,
                                     .swizzle = swizzle,
                                     .l2_promotion = l2_promotion,
                                     .fill = fill};
    if (!map || !dim || !box || !element_stride || (uintptr_t)map % 64 || rank < 1 ||
        rank > PTXVM_TENSORMAP_RANK || (rank > 1 && !stride))
        return cuda_log(
            CUDA_ERROR_INVALID_VALUE,
            "cuTensorMapEncodeTiled: a map at a multiple of 64, a rank of 1 to 5 and arrays are needed");
    for (uint32_t i = 0; i < rank; i++) {
        config.dim[i] = dim[i];
        config.stride[i] = i ? stride[i - 1] : 0;
        config.box[i] = box[i];
        config.element_stride[i] = element_stride[i];
    }
    return result_of(ptxvm_tensormap_encode(map, &config, why, sizeof why), "cuTensorMapEncodeTiled", why);
}

CUresult do_cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    char why[256];
    if (!map || (uintptr_t)map % 64)
        return CUDA_ERROR_INVALID_VALUE;
    return result_of(ptxvm_tensormap_replace_address(map, (ptxvm_address)(uintptr_t)address, why, sizeof why),
                     "cuTensorMapReplaceAddress", why);
}
