/* Loads stored scales: f32, f16, bf16, or one byte, E4M3 or E8M0. */
#include "kernels/formats/format.h"

/* Decodes a scale from a byte in the low bits of a u32. */
static ptx_val widen_byte(ptx_builder *b, qdnnScaleType_t type, ptx_val byte)
{
    return type == QDNN_SCALE_E8M0 ? e8m0_decode(b, byte) : minifloat_decode(b, &float_e4m3, byte, 0);
}

ptx_val emit_load_scale(ptx_builder *b, qdnnScaleType_t type, ptx_val address, int offset)
{
    if (scale_data_type(type))
        return emit_load(b, scale_data_type(type), address, offset);
    return widen_byte(b, type, ptx_ld_global_nc(b, PTX_U8, address, offset));
}

void emit_load_scale_run(ptx_builder *b, qdnnScaleType_t type, ptx_val address, unsigned count, ptx_val *x)
{
    ptx_val words[2];
    if (scale_data_type(type)) {
        emit_load_run(b, scale_data_type(type), address, 0, count, x);
        return;
    }
    emit_load_words(b, address, 0, count / 4, words);
    if (type == QDNN_SCALE_E4M3 && codec_e4m3.has_pair(b))
        for (unsigned i = 0; i < count; i += 4)
            codec_e4m3.units_of_bytes(b, NULL, NULL, words[i / 4], &x[i]);
    else
        for (unsigned i = 0; i < count; i++)
            x[i] = widen_byte(b, type, ptx_bfe(b, words[i / 4], 8 * (i % 4), 8));
}
