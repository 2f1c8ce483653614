/* x and weights in FP8. */
#include "kernels/tensor/fp8.h"

#include "kernels/formats/pairs.h"

#include <stdio.h>

bool fp8_is_native(const ptx_sm *sm)
{
    return sm && (sm->number == 89 || sm->number == 120 || sm->number == 121);
}

ptx_mma_id fp8_instruction(qdnnDataType_t a, qdnnDataType_t b)
{
    if (a == QDNN_DATA_F8E4M3)
        return b == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e4m3 : PTX_MMA_m16n8k32_f32_e4m3_e5m2;
    return b == QDNN_DATA_F8E4M3 ? PTX_MMA_m16n8k32_f32_e5m2_e4m3 : PTX_MMA_m16n8k32_f32_e5m2;
}

x_form x_form_of(ptx_builder *b, const kernel_spec *spec)
{
    const ptx_sm *sm = ptx_target(b);
    x_form form = {.bytes = 2, .unit_elements = 1, .is_async = sm && sm->number >= 80};
    if (!spec->x_fp8)
        return form;
    form.bytes = 1;
    if (fp8_is_native(sm)) {
        form.unit_elements = 2;
        return form;
    }
    form.is_async = false;
    form.from = spec->x_fp8 == QDNN_DATA_F8E4M3 ? &float_e4m3 : &float_e5m2;
    return form;
}

/* E5M2 is the upper half of an f16. */
void fp8_to_f16(ptx_builder *b, const minifloat *from, ptx_val word, ptx_val out[2])
{
    if (from == &float_e4m3 && codec_e4m3.has_pair(b)) {
        ptx_val halves[2];
        ptx_unpack(b, PTX_U16, word, halves, 2);
        for (int i = 0; i < 2; i++)
            out[i] = ptx_as(b, PTX_U32, ptx_cvt(b, PTX_F16X2, ptx_as(b, PTX_E4M3X2, halves[i])));
        return;
    }
    for (int i = 0; i < 2; i++) {
        ptx_val high = ptx_prmt(b, word, ptx_u32(b, 0), ptx_u32(b, i ? 0x3424 : 0x1404));
        out[i] = from == &float_e5m2 ? high : ptx_as(b, PTX_U32, pair_of_e4m3(b, high));
    }
}

bool fp8_serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const qdnnDataType_t storage = row->format->facts.storage;
    const char *why = NULL;
    if (storage != QDNN_DATA_F8E4M3 && storage != QDNN_DATA_F8E5M2)
        why = "x is FP8; the weights must be e4m3 or e5m2";
    else if (spec->groups != QDNN_GROUPS_DEFAULT)
        why = "x is FP8; the weights must be without scales (groups=none), those of columns are alpha";
    else if (spec->layout != QDNN_LAYOUT_BYTES)
        why = "x is FP8; the weights must be in layout bytes";
    else if (spec->addend)
        why = "x is FP8; an addend is taken with x in f16 or bf16";
    if (why)
        snprintf(error, error_size, "%s", why);
    return !why;
}
