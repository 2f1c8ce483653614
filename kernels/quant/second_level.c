/* The level above scales: the global scale of a tensor, and the scales of nested scales. Both are computed
 * from short lists that other kernels wrote: by one block, or by one block per 256 scales. */
#include "kernels/formats/quantized.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/ranges.h"

enum { NESTED_RUN = 256 /* scales that share one outer scale; one thread each */ };
_Static_assert((int)NESTED_RUN == (int)RANGE_BLOCK, "a thread for each scale of a run");

/* ---- The global scale: max(absmax, floor) / largest, or its reciprocal ---- */

kernel_geometry global_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = RANGE_BLOCK, .elements_per_block = 32 * RANGE_BLOCK, .blocks = 1};
}

void emit_global(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val tid = ptx_tid_x(b), n = args.number[NUMBER_N], largest = args.number[NUMBER_LARGEST];
    range r = range_begin(b, RANGE_ABSMAX);
    ptx_val i = ptx_for(b, ptx_cvt(b, PTX_U64, tid), n, ptx_u64(b, RANGE_BLOCK));
    ptx_val at = ptx_at(b, args.operand[QDNN_OPERAND_X], i, element_bytes(spec->data));
    range_add(b, &r, emit_load(b, spec->data, at, 0));
    ptx_end_for(b);
    range_reduce_columns(b, &r, 1);
    ptx_val finite = ptx_min(b, r.hi, ptx_f32(b, element_largest(QDNN_DATA_F32)));
    ptx_val bounded = ptx_max(b, finite, ptx_f32(b, spec->quantize.floor));
    ptx_val global =
        spec->stored.global_scale == 2 ? ptx_div(b, largest, bounded) : ptx_div(b, bounded, largest);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_cvt(b, PTX_U64, tid), ptx_u64(b, 0)));
    ptx_st_global(b, args.operand[QDNN_OPERAND_GLOBAL_SCALE], 0, global);
    ptx_end_if(b);
}

/* ---- Nested scales: the entry of an ascending map that is nearest to (scale - offset) / absmax ---- */

kernel_geometry nest_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = RANGE_BLOCK, .elements_per_block = NESTED_RUN};
}

/* The number of midpoints between neighbouring entries that are below v, by bisection. */
static ptx_val nearest_entry(ptx_builder *b, ptx_val map, ptx_val v)
{
    ptx_val place = ptx_u32(b, 0);
    for (unsigned step = 128; step > 0; step /= 2) {
        ptx_val next = ptx_add(b, place, step), at = ptx_at(b, map, next, 4);
        ptx_val below = ptx_ld_global_nc(b, PTX_F32, at, -4), above = ptx_ld_global_nc(b, PTX_F32, at, 0);
        ptx_val midpoint = ptx_mul(b, ptx_add(b, below, above), ptx_f32(b, 0.5f));
        place = ptx_selp(b, next, place, ptx_setp(b, PTX_LT, midpoint, v));
    }
    return place;
}

void emit_nest(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    kernel_args args = kernel_declare(b, row, spec);
    quantized q = quantized_begin(b, row, spec, &args);
    ptx_val tid = ptx_tid_x(b), run = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b));
    ptx_val i = ptx_add(b, ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, NESTED_RUN)), ptx_cvt(b, PTX_U64, tid));
    ptx_val exists = ptx_setp(b, PTX_LT, i, args.number[NUMBER_N]);
    ptx_val scale = ptx_ld_if(b, exists, PTX_GLOBAL, PTX_NC, PTX_F32,
                              ptx_at(b, args.operand[QDNN_OPERAND_X], i, 4), 0, q.side.nested_offset);
    ptx_val less = ptx_sub(b, scale, q.side.nested_offset);
    range r = range_begin(b, RANGE_ABSMAX);
    range_add(b, &r, less);
    range_reduce_columns(b, &r, 1);
    ptx_if(b, ptx_setp(b, PTX_EQ, tid, 0));
    ptx_st_global(b, ptx_at(b, q.side.nested_scale, run, 4), 0, r.hi);
    ptx_end_if(b);
    ptx_val v = spec->quantize.division == QDNN_DIVIDE_RECIPROCAL ? ptx_mul(b, less, ptx_rcp(b, r.hi))
                                                                  : ptx_div(b, less, r.hi);
    ptx_val code = nearest_entry(b, q.side.nested_map, nan_to_zero(b, v));
    ptx_if(b, exists);
    ptx_st_global_u8(b, ptx_add(b, q.side.scale, i), 0, code);
    ptx_end_if(b);
}
