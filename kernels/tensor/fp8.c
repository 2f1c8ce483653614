/* x and weights in FP8. */
#include "kernels/tensor/fp8.h"

#include <stdio.h>

bool fp8_is_native(const ptx_sm *sm)
{
    return sm && sm->has_fp8;
}

/* For operands A and B of these types, F8E4M3 or F8E5M2. */
static ptx_mma_id fp8_instruction(qdnnDataType_t a, qdnnDataType_t b)
{
    if (a == QDNN_DATA_F8E4M3)
        return b == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e4m3 : PTX_MMA_m16n8k32_f32_e4m3_e5m2;
    return b == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e5m2_e4m3 : PTX_MMA_m16n8k32_f32_e5m2;
}

ptx_mma_id mma_instruction(ptx_builder *b, const kernel_spec *spec, const x_form *form,
                           qdnnDataType_t weights, bool w_first)
{
    const qdnnDataType_t x = (qdnnDataType_t)spec->product.x_fp8;
    const ptx_sm *sm = ptx_target(b);
    if (form->unit_elements == 2)
        return w_first ? fp8_instruction(weights, x) : fp8_instruction(x, weights);
    if (spec->data == QDNN_DATA_BF16)
        return PTX_MMA_m16n8k16_f32_bf16;
    return sm && sm->number < 80 ? PTX_MMA_m16n8k8_f32_f16 : PTX_MMA_m16n8k16_f32_f16;
}

x_form x_form_of(ptx_builder *b, const kernel_spec *spec)
{
    const ptx_sm *sm = ptx_target(b);
    x_form form = {.bytes = 2, .unit_elements = 1, .is_async = sm && sm->number >= 80};
    if (!spec->product.x_fp8)
        return form;
    form.bytes = 1;
    if (fp8_is_native(sm)) {
        form.unit_elements = 2;
        return form;
    }
    form.is_async = false;
    form.from = minifloat_of((qdnnDataType_t)spec->product.x_fp8);
    return form;
}

bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const char *why = NULL;
    if (!row->format->number || !row->format->number->is_fp8)
        why = "x is FP8; the weights must be e4m3 or e5m2";
    else if (spec->stored.groups != QDNN_GROUPS_DEFAULT)
        why = "x is FP8; the weights must have no scales (groups=none); pass scales per column as alpha";
    else if (spec->stored.layout != QDNN_LAYOUT_BYTES)
        why = "x is FP8; the weights must be in layout bytes";
    else if (spec->epilogue.addend)
        why = "x is FP8; an addend needs x in f16 or bf16";
    if (why)
        snprintf(error, error_size, "%s", why);
    return !why;
}
