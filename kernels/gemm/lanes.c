/* The tree of a sum. */
#include "kernels/gemm/lanes.h"

ptx_val lanes_join_warp(ptx_builder *b, ptx_val partial)
{
    for (unsigned distance = 16; distance; distance /= 2)
        partial = ptx_add(b, partial, ptx_shfl_bfly(b, partial, (int)distance));
    return partial;
}
