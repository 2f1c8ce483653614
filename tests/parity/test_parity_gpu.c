/* The rule of device/under_test.h itself, in processes of their own: what is skipped and what fails without a GPU, and that a
 * damaged byte of a GPU's launch is found in each family of tests. The GPU is the tests' own (doubles/gpu.c). */
#include "device/gpu_process.h"
#include "test.h"

enum { SKIPPED = 77 }; /* what a program whose every test was skipped ends with */

#define ON_GPU "ParityOnGpu.Large/quantize_nf4"
static const struct {
    const char *name, *settings, *filter;
    int status; /* of the process */
    const char *part, *other;
} rules[] = {
    {"WithoutADriverItIsSkipped", NO_LIBCUDA, ON_GPU, SKIPPED, "[  SKIPPED ] 1 test",
     "no GPU: QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredWithoutADriverItFails", NO_LIBCUDA " QDNN_REQUIRE_GPU=1", ON_GPU, 1,
     "a GPU is required, and there is none", "QDNN_LIBCUDA names no library that can be opened"},
    {"RequiredPtxvmWillNotDo", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_REQUIRE_GPU=1 QDNN_DEVICE=cuda", ON_GPU,
     1, "a GPU is required, and there is none", "is ptxvm"},
    {"RequiredButAnotherDeviceIsNamed", "QDNN_REQUIRE_GPU=1 QDNN_DEVICE=vm:sm_90", ON_GPU, 1,
     "a GPU is required, and there is none", "QDNN_DEVICE is vm:sm_90"},
    {"ZeroRequiresNothing", NO_LIBCUDA " QDNN_REQUIRE_GPU=0", ON_GPU, SKIPPED, "[  SKIPPED ] 1 test", ON_GPU},
    /* The same path as with a GPU, but without one: libcuda.so.1 is opened at run time. */
    {"ThroughLibcuda", "QDNN_LIBCUDA=" PTXVM_LIBCUDA " QDNN_DEVICE=cuda PTXVM_SM=sm_89", ON_GPU, 0,
     "[  PASSED  ] 1 test", "device 0: ptxvm sm_89"},
    {"OnAGpu", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_89", ON_GPU, 0,
     "[  PASSED  ] 1 test", "device 0: the tests' own GPU 8.9, sm_89"},
    {"TheNamedDeviceIsOfAllTests", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_DEVICE=cuda",
     "Parity.Large/quantize_nf4", 0, "[  PASSED  ] 1 test", "device 0: the tests' own GPU"},
    {"TheNamedSmIsOfAllTests", "QDNN_DEVICE=vm:sm_120", "ParityMatmul.Tensor/int4_sm_80", SKIPPED,
     "[  SKIPPED ] 1 test", "the case is for sm_80, the device is sm_120"},
    {"TheNamedBoardIsOfAllTests", "QDNN_DEVICE=vm:a100", "ParityMatmul.Tensor/int4_sm_80", 0,
     "[  PASSED  ] 1 test", "ParityMatmul.Tensor/int4_sm_80"},
    {"RequiredOnesAreAllTests", NO_LIBCUDA " QDNN_REQUIRE_GPU=1", "Parity.Large/quantize_nf4", 1,
     "a GPU is required, and there is none", "Parity.Large/quantize_nf4"},
    {"OtherTensorCores", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_90",
     "ParityMatmulOnGpu.Tensor/int4_sm_80", SKIPPED, "[  SKIPPED ] 1 test",
     "the case is for sm_80, the device is sm_90"},
    {"RelatedTensorCores", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1 PTXVM_SM=sm_86",
     "ParityMatmulOnGpu.Tensor/int4_sm_80", 0, "[  PASSED  ] 1 test", "the tests' own GPU 8.6"},
    {"OnlyPtxvm", "QDNN_LIBCUDA=" GPU_LIBCUDA " QDNN_REQUIRE_GPU=1", "ParityFindsOnGpu.NothingWhereNothingIs",
     SKIPPED, "[  SKIPPED ] 1 test", "only ptxvm has checks of memory"},
};

TEST_ROWS(ParityRequiresGpu, Rule, rules)
{
    process_result result = gpu_process_run("parity_tests", rules[index].settings, rules[index].filter);
    CHECK_EQ_I64(result.status, rules[index].status);
    CHECK_HAS(result.output, rules[index].part);
    CHECK_HAS(result.output, rules[index].other);
    process_free(&result);
}

/* ---- Damage ---- */

/* A case of each family of tests, and launches of it whose bytes are compared, or decide bytes that are. */
static const struct {
    const char *name, *filter;
    int first, second;
} families[] = {
    {"Scale", "ParityOnGpu.HostRef/scale_int8_turn_1", 1, 5},
    {"Quantize", "ParityOnGpu.HostRef/quantize_nf4_turn_1", 2, 5},
    {"Dequantize", "ParityOnGpu.HostRef/dequantize_nf4_turn_1", 1, 5},
    {"Matrices", "ParityOnGpu.Matrices/quantize_int4_turn_0", 1, 5},
    {"Rows", "ParityRowsOnGpu.HostRef/dequantize_int4", 1, 2},
    {"Rare", "ParityRareOnGpu.HostRef/quantize_int4", 1, 2},
    {"Stages", "ParityStagesOnGpu.HostRef/quantize_flat_words", 1, 2},
    {"Calls", "ParityCallsOnGpu.ThatDifferInOneThing/dequantize_int4", 1, 5},
    {"Gguf", "ParityGgufOnGpu.Encodes/q4_0", 1, 2},
    {"Repack", "ParityRepackOnGpu.HostRef/int4_turn_0", 1, 2},
    {"Prepack", "TensorFp8OnGpu.PrepackedByAPlan", 1, 2},
    {"KvCache", "ParityKvCacheOnGpu.HostRef/int8_f16_head_128", 1, 0},
    {"Products", "ParityMatmulOnGpu.HostRef/int4", 1, 5},
    {"Gemv", "ParityGemvOnGpu.ScalesInBf16", 1, 5},
    {"Ragged", "ParityRaggedOnGpu.NibblesInBothOrders", 1, 5},
    {"FewRows", "ParityFewRowsOnGpu.LargeScales", 1, 5},
    {"Kernels", "ParityKernelsOnGpu.EveryBatch/int4", 1, 5},
    {"Known", "ParityKnownOnGpu.AwqHasEvenColumnsFirst", 1, 0},
    {"KnownProducts", "ParityKnownProductsOnGpu.AffineGrouped", 1, 0},
    {"Law", "ParityLawOnGpu.EqualsDequantizeThenPlainProduct/int4", 1, 0},
    {"Experts", "ParityStacksOnGpu.StacksOfExperts/int4", 1, 5},
    {"Lora", "ParityLoraOnGpu.LanesAreDealtOut", 1, 4},
    {"Tensor", "ParityMatmulOnGpu.Tensor/int4_sm_90", 1, 2},
    {"TensorExperts", "TensorStacksOnGpu.EveryFormat/int4", 1, 2},
    {"TensorFp8", "TensorFp8OnGpu.HostRef/sm_90_measured_e4m3_e4m3", 1, 5},
    {"TensorLaws", "TensorLawsOnGpu.FusedIsDequantizeThenProduct/int4_f16", 1, 2},
    {"Integer", "ParityIntegerOnGpu.Products/w8a8_turn_0", 1, 5},
    {"IntegerDots", "ParityIntegerOnGpu.Dots/sm_90", 1, 5},
    {"IntegerTop", "ParityIntegerOnGpu.KnownTop/sm_90", 1, 0},
    {"Convolutions", "ParityIntegerOnGpu.Convolutions/c3_o5_g1_turn_0", 1, 5},
    {"Train", "ParityTrainOnGpu.LongSums/two_segments", 1, 2},
};

TEST_ROWS(ParityOnGpuFinds, DamageIn, families)
{
    gpu_process_check_damage("parity_tests", families[index].filter, families[index].first,
                             families[index].second);
}
