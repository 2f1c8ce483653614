/* The second step of a product whose lanes were split among thread blocks (lanewise.c): each block left
 * the sum of a subtree in the workspace, [split, M, outputs] of f32, with subtrees that the tree joins
 * first next to each other. Each thread joins the sums of one output and completes it. */
#include "kernels/gemm/epilogue.h"

#include <stdio.h>

enum { THREADS = 128, SPLIT_MAX = 32 };

static unsigned columns_of(const kernel_row *row, const kernel_spec *spec)
{
    (void)row;
    (void)spec;
    return THREADS;
}

static bool serves(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    (void)row;
    if (spec->product.split > 1)
        return true;
    snprintf(error, error_size, "split is 1; product join takes 2 and more");
    return false;
}

static ptx_val joined(ptx_builder *b, const kernel_spec *spec, const gemm_args *args, ptx_val row,
                      ptx_val output)
{
    ptx_val sums[SPLIT_MAX], stride = ptx_shl(b, ptx_mul(b, args->m, args->outputs), 2);
    ptx_val at = ptx_at(b, args->all.partials, ptx_mad(b, row, args->outputs, output), 4);
    for (unsigned i = 0; i < spec->product.split; i++) {
        sums[i] = ptx_ld_global_nc(b, PTX_F32, at, 0);
        at = ptx_add(b, at, stride);
    }
    for (unsigned count = (unsigned)spec->product.split / 2; count; count /= 2)
        for (unsigned i = 0; i < count; i++)
            sums[i] = ptx_add(b, sums[2 * i], sums[2 * i + 1]);
    return sums[0];
}

static void emit_join(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    gemm_args args = gemm_declare(b, row, spec);
    epilogue e = epilogue_begin(b, spec, &args);
    ptx_val n = ptx_global_index64(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, n, args.n));
    ptx_val m =
        ptx_for(b, ptx_cvt(b, PTX_U64, ptx_ctaid_y(b)), args.m, ptx_cvt(b, PTX_U64, ptx_sreg(b, "nctaid.y")));
    ptx_val sums[2] = {joined(b, spec, &args, m, n)};
    if (spec->epilogue.gated)
        sums[1] = joined(b, spec, &args, m, ptx_add(b, n, args.n));
    epilogue_store(b, &e, m, n, sums, (ptx_val){0});
    ptx_end_for(b);
}

const gemm_kernel gemm_join = {.block = THREADS, .outputs = columns_of, .emit = emit_join, .serves = serves};
