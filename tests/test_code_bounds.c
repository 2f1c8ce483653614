/* Where the tests attack a format, as host_ref finds it: against bounds that are known otherwise. */
#include "formats/code_bounds.h"
#include "formats/kernel_data.h"
#include "test.h"

#include <string.h>

static const format_facts *facts(const char *name)
{
    for (int i = 0; kernel_format_at(i); i++)
        if (strcmp(kernel_format_at(i)->name, name) == 0)
            return kernel_format_at(i);
    return NULL;
}

TEST_CASE(CodeBounds, OfTables)
{
    /* half way between the entries of NF4; bitsandbytes' own thresholds for FP4 */
    static const uint32_t nf4[15] = {0xBF591CD8, 0xBF1C5270, 0xBEEB8480, 0xBEADEA76, 0xBE703CEC,
                                     0xBE0D38BC, 0xBD3A7871, 0x3D22FAFF, 0x3DF64862, 0x3E5067E0,
                                     0x3E9582D4, 0x3EC753F9, 0x3F006D04, 0x3F248DAF, 0x3F5C89DA};
    static const uint32_t fp4[7] = {0x3B2AAAB9, 0x3DB00000, 0x3E555555, 0x3E955555,
                                    0x3ED55556, 0x3F155550, 0x3F555555};
    const code_bounds *found = code_bounds_of(facts("nf4"));
    REQUIRE(found != NULL && found->count == 15);
    CHECK_EQ_MEM(found->bound, nf4, sizeof nf4);
    CHECK_EQ_F32(found->largest, 1.0f);
    found = code_bounds_of(facts("fp4_bnb"));
    REQUIRE(found != NULL && found->count == 14);
    CHECK_EQ_MEM(found->bound + 7, fp4, sizeof fp4);
}

TEST_CASE(CodeBounds, OfFloatsAndNone)
{
    const code_bounds *found = code_bounds_of(facts("e2m1"));
    REQUIRE(found != NULL && found->count == 14);
    CHECK_EQ_F32(found->largest, 6.0f);
    CHECK_EQ_F32(found->bound[7], 0.25f); /* 0.25 is between 0 and 0.5, and goes to the even one */
    found = code_bounds_of(facts("e5m2"));
    REQUIRE(found != NULL);
    CHECK_EQ_F32(found->largest, 57344.0f);
    CHECK(code_bounds_of(facts("int4")) == NULL);
    CHECK(code_bounds_of(facts("gguf_q4_0")) == NULL);
    CHECK(code_bounds_of(facts("plain_f32")) == NULL);
}

/* In every type of data both sides of every bound occur. */
TEST_CASE(CodeBounds, DataHasBothSides)
{
    enum { N = 1 << 14 };
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
    static float x[N];
    const code_bounds *found = code_bounds_of(facts("nf4"));
    REQUIRE(found != NULL);
    for (int t = 0; t < 3; t++) {
        fill_data(DATA_TIES, facts("nf4"), types[t], 3, x, N);
        for (int k = 0; k < found->count; k++) {
            const float near = 0.0078125f * (found->bound[k] < 0 ? -found->bound[k] : found->bound[k]);
            bool below = false, above = false;
            for (int i = 0; i < N; i++) {
                uint32_t bits;
                float value = x[i];
                if (t > 0) { /* the bits of bf16 are the upper half of f32's; f16's exponent is 112 less */
                    uint16_t half;
                    memcpy(&half, (const char *)x + 2 * (size_t)i, 2);
                    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFF;
                    bits = t == 2 ? (uint32_t)half << 16 : sign + (rest << 13) + (rest ? 112u << 23 : 0);
                    memcpy(&value, &bits, sizeof value);
                }
                below = below || (value <= found->bound[k] && value >= found->bound[k] - near);
                above = above || (value > found->bound[k] && value <= found->bound[k] + near);
            }
            test_push_note("type %d, bound %d", t, k);
            CHECK(below && above);
            test_pop_note();
        }
    }
}
