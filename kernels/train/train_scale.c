/* The kernel between absmax and fake quantization: one thread per group. The operand STATE receives the
 * scales; in scale mode EMA it is the running state, in scale mode BATCH it is only written. */
#include "kernels/emit.h"
#include "kernels/operations.h"
#include "kernels/train/train.h"

enum { BLOCK = 256 };

kernel_geometry train_scale_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = BLOCK, .elements_per_block = BLOCK};
}

static ptx_val moving_average(ptx_builder *b, const kernel_spec *spec, ptx_val state, ptx_val current)
{
    ptx_val old = ptx_mul(b, state, ptx_f32(b, spec->train.decay));
    ptx_val new = ptx_mul(b, current, ptx_f32(b, 1.0f - spec->train.decay));
    return ptx_selp(b, current, ptx_add(b, old, new), ptx_setp(b, PTX_LE, state, 0.0f));
}

void emit_train_scale(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val group = ptx_global_index64(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, group, args.number[NUMBER_N]));
    ptx_val absmax = emit_load(b, QDNN_DATA_F32, ptx_at(b, args.operand[QDNN_OPERAND_X], group, 4), 0);
    ptx_val state = ptx_at(b, args.operand[QDNN_OPERAND_STATE], group, 4);
    ptx_val scale = train_least_scale(b, ptx_div(b, absmax, ptx_f32(b, train_qmax(spec))));
    if (spec->train.scale_mode == QDNN_SCALE_MODE_EMA)
        scale = moving_average(b, spec, ptx_ld_global(b, PTX_F32, state, 0), scale);
    ptx_st_global(b, state, 0, scale);
}
