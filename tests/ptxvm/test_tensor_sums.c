/* Sums of two f16, as tensor cores without f16 accumulators of their own add them: infinities and zeros of both signs, and ties. */
#include "ptxvm/tensor/internal.h"
#include "test.h"

static const struct {
    const char *name;
    uint32_t a, b, sum;
} sums[] = {
    {"negative_and_infinity", 0xBC00, 0x7C00, 0x7C00}, /* -1 + inf */
    {"infinity_and_negative", 0x7C00, 0xBC00, 0x7C00},
    {"positive_and_minus_infinity", 0x3C00, 0xFC00, 0xFC00},
    {"minus_infinity_and_positive", 0xFC00, 0x3C00, 0xFC00},
    {"minus_zero_and_infinity", 0x8000, 0x7C00, 0x7C00},
    {"infinities", 0x7C00, 0x7C00, 0x7C00},
    {"minus_infinities", 0xFC00, 0xFC00, 0xFC00},
    {"infinity_and_minus_infinity", 0x7C00, 0xFC00, 0x7FFF},
    {"minus_infinity_and_infinity", 0xFC00, 0x7C00, 0x7FFF},
    {"nan_and_infinity", 0x7E01, 0x7C00, 0x7FFF},
    {"infinity_and_nan", 0x7C00, 0xFE01, 0x7FFF},
    {"zeros", 0x0000, 0x0000, 0x0000},
    {"minus_zeros", 0x8000, 0x8000, 0x8000},
    {"zeros_of_both_signs", 0x8000, 0x0000, 0x0000},
    {"nothing_is_left", 0x3C00, 0xBC00, 0x0000},
    {"negative", 0xBC00, 0xC000, 0xC200},          /* -1 - 2 */
    {"tie_to_even_below", 0x6800, 0x3C00, 0x6800}, /* 2048 + 1: between 2048 and 2050 */
    {"tie_to_even_above", 0x6801, 0x3C00, 0x6802}, /* 2050 + 1: between 2050 and 2052 */
    {"overflow", 0x7BFF, 0x4C00, 0x7C00},          /* 65504 + 16 is half a step above the largest */
    {"no_overflow", 0x7BFF, 0x4BFF, 0x7BFF},
    {"subnormals", 0x0001, 0x03FF, 0x0400},
};

TEST_ROWS(TensorSums, OfF16, sums)
{
    CHECK_EQ_U32(tensor_add_f16(sums[index].a, sums[index].b), sums[index].sum);
}
