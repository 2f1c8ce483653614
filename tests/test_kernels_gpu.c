/* Damage of a GPU's launch is found by the tests that launch kernels without the library, too. */
#include "device/gpu_process.h"
#include "test.h"

static const struct {
    const char *name, *filter;
    int first, second;
} families[] = {
    {"Parts", "KernelPartsOnGpu.HostRef/range_absmax_sm_90_f32", 1, 2},
    {"Trials", "KernelTrialsOnGpu.HostRef/quantize_int4", 1, 5},
    {"Edges", "KernelEdgesOnGpu.DivisionByEveryKindOfGroupSize", 1, 5},
    {"Blocks", "KernelBlocksOnGpu.FewElements/quantize_gguf_q4_0_f32", 1, 2},
    {"Channels", "ChannelsOnGpu.HostRef/scale_int2_bf16_c3", 1, 2},
    {"Passes", "PassesOnGpu.GiveTheBytesOfHostRef/scale_int4_g128_c0_n100000", 1, 2},
    {"Prepack", "TensorPrepackOnGpu.ThereAndBack/int4_rows", 1, 2},
    {"Tile", "TensorTileOnGpu.HostRef/int4_rows_sm_90", 1, 2},
    {"Stream", "TensorStreamOnGpu.HostRef/int4_rows_sm_90", 1, 0},
    {"Functions", "KernelFunctionsOnGpu.MatchTheReference/exp", 1, 2},
};

TEST_ROWS(KernelsOnGpuFinds, DamageIn, families)
{
    gpu_process_check_damage("qdnn_tests", families[index].filter, families[index].first,
                             families[index].second);
}
