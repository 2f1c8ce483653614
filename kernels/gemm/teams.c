/* Teams of threads, and which columns of y they compute. */
#include "kernels/gemm/teams.h"

enum { ROWS_OF_TWO = 8 /* most rows of x for two outputs per team */ };

unsigned team_outputs(const kernel_spec *spec)
{
    return spec->product.tile_rows > ROWS_OF_TWO || spec->product.split > 1 ? 1 : 2;
}

bool team_halves_are_apart(const kernel_spec *spec)
{
    return spec->epilogue.gated && team_outputs(spec) == 1;
}

ptx_val team_first_column(ptx_builder *b, const kernel_spec *spec, ptx_val team, unsigned teams,
                          unsigned columns)
{
    const bool apart = team_halves_are_apart(spec);
    ptx_val number =
        ptx_mad(b, ptx_ctaid_x(b), (int)(apart ? teams / 2 : teams), apart ? ptx_shr(b, team, 1) : team);
    return ptx_mul_wide(b, number, ptx_u32(b, columns));
}

ptx_val team_weight_row(ptx_builder *b, const kernel_spec *spec, ptx_val team, ptx_val outputs, ptx_val n)
{
    if (!team_halves_are_apart(spec))
        return n;
    return ptx_mad(b, ptx_cvt(b, PTX_U64, ptx_and(b, team, 1)), outputs, n);
}
