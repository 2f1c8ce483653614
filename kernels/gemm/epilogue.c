/* What every product does with its sum; docs/numerics.md has the order. */
#include "kernels/gemm/epilogue.h"

#include "kernels/emit.h"
#include "kernels/functions.h"
#include "kernels/gemm/routes.h"

epilogue epilogue_begin(ptx_builder *b, const kernel_spec *spec, const gemm_args *args)
{
    epilogue e = {.spec = spec, .args = args};
    if (spec->epilogue.alpha == QDNN_ALPHA_NUMBER)
        e.alpha = args->all.number[NUMBER_ALPHA];
    if (spec->epilogue.alpha == QDNN_ALPHA_ONE)
        e.alpha = ptx_ld_global_nc(b, PTX_F32, args->all.operand[QDNN_OPERAND_ALPHA], 0);
    return e;
}

ptx_val emit_relu(ptx_builder *b, ptx_val x)
{
    return ptx_selp(b, ptx_f32(b, 0), x, ptx_setp(b, PTX_LE, x, ptx_f32(b, 0)));
}

static ptx_val activated(ptx_builder *b, qdnnActivation_t activation, ptx_val x)
{
    switch (activation) {
    case QDNN_ACTIVATION_NONE:
        return x;
    case QDNN_ACTIVATION_RELU:
        return emit_relu(b, x);
    case QDNN_ACTIVATION_GELU_TANH:
        return emit_gelu_tanh(b, x);
    case QDNN_ACTIVATION_GELU_ERF:
        return emit_gelu_erf(b, x);
    case QDNN_ACTIVATION_SILU:
        return emit_silu(b, x);
    default:
        break;
    }
    missing_row("activations", activation);
}

/* alpha * (S * x_scale) + bias of one output of the weights. alpha and bias are arrays of one number per
 * output (and expert). */
static ptx_val affine(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val output, ptx_val expert,
                      ptx_val sum)
{
    const kernel_args *all = &e->args->all;
    ptx_val index = expert.kind == PTX_NOTHING ? output : ptx_mad(b, expert, e->args->outputs, output);
    ptx_val v = e->keeps_zero ? sum : ptx_add(b, sum, ptx_f32(b, 0)); /* never -0 */
    ptx_val alpha = e->alpha;
    if (e->spec->product.x_scale) {
        ptx_val at = ptx_at(b, all->operand[QDNN_OPERAND_X_SCALE], x_row_of(b, e->spec, m), 4);
        v = ptx_mul(b, v, ptx_ld_global_nc(b, PTX_F32, at, 0));
    }
    if (e->spec->epilogue.alpha == QDNN_ALPHA_COLUMN)
        alpha = ptx_ld_global_nc(b, PTX_F32, ptx_at(b, all->operand[QDNN_OPERAND_ALPHA], index, 4), 0);
    if (alpha.kind != PTX_NOTHING)
        v = ptx_mul(b, alpha, v);
    if (e->spec->epilogue.addend) {
        ptx_val at = ptx_at(b, all->workspace, ptx_mad(b, m, e->args->outputs, output), 4);
        v = ptx_add(b, v, ptx_ld_global(b, PTX_F32, at, 0));
    }
    if (e->spec->epilogue.bias) {
        qdnnDataType_t type = (qdnnDataType_t)e->spec->epilogue.bias;
        ptx_val at = ptx_at(b, all->operand[QDNN_OPERAND_BIAS], index, element_bytes(type));
        v = ptx_add(b, v, emit_load(b, type, at, 0));
    }
    return v;
}

/* The index in y of the element from which `behind` counts. */
static ptx_val index_of(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n)
{
    return e->first.kind == PTX_NOTHING ? ptx_mad(b, m, e->args->y_stride, n) : e->first;
}

static ptx_val value_at(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, ptx_val at,
                        const ptx_val *sums, ptx_val expert)
{
    const kernel_spec *spec = e->spec;
    const kernel_args *all = &e->args->all;
    const unsigned bytes = element_bytes(spec->epilogue.output);
    ptx_val v = activated(b, spec->epilogue.activation, affine(b, e, m, n, expert, sums[0]));
    if (spec->epilogue.gated)
        v = ptx_mul(b, v, affine(b, e, m, ptx_add(b, n, e->args->n), expert, sums[1]));
    if (spec->epilogue.residual) {
        ptx_val from = ptx_at(b, all->operand[QDNN_OPERAND_RESIDUAL], at, bytes);
        v = ptx_add(b, v,
                    emit_load_mutable(b, spec->epilogue.output, from,
                                      e->behind * (int)bytes)); /* it may be y itself */
    }
    if (spec->epilogue.row_weight)
        v = ptx_mul(
            b, ptx_ld_global_nc(b, PTX_F32, ptx_at(b, all->operand[QDNN_OPERAND_ROW_WEIGHT], m, 4), 0), v);
    return v;
}

ptx_val epilogue_value(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                       ptx_val expert)
{
    return value_at(b, e, m, n, index_of(b, e, m, n), sums, expert);
}

void epilogue_store(ptx_builder *b, const epilogue *e, ptx_val m, ptx_val n, const ptx_val *sums,
                    ptx_val expert)
{
    const unsigned bytes = element_bytes(e->spec->epilogue.output);
    ptx_val at = index_of(b, e, m, n), v = value_at(b, e, m, n, at, sums, expert);
    emit_store(b, e->spec->epilogue.output, ptx_at(b, e->args->all.operand[QDNN_OPERAND_Y], at, bytes),
               e->behind * (int)bytes, v);
}
