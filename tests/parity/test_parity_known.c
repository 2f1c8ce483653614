/* Words made by hand, through the public API: GPTQ of every width and both versions, AWQ's order, the way from one to
 * the other, a stack of experts. The values are worked out here, not by host_ref. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/under_test.h"
#include "test.h"

enum { OPERANDS_MAX = 5 };

/* A buffer of a call: what is in it before, or null, and how many bytes. */
typedef struct known_operand {
    qdnnOperand_t operand;
    const void *host;
    size_t bytes;
} known_operand;

/* Executes a plan; the operand without bytes of its own is read back. */
static bool run_plan(qdnnHandle_t handle, qdnnPlan_t plan, const known_operand *operands, int count,
                     void *result)
{
    device_buffer buffers[OPERANDS_MAX] = {0};
    qdnnBinding_t bindings[OPERANDS_MAX];
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        ok = device_buffer_make(handle, BUFFER_EXACT, operands[i].bytes, 0, &buffers[i]) &&
             (!operands[i].host || device_buffer_write(&buffers[i], operands[i].host));
        bindings[i] =
            (qdnnBinding_t){.operand = operands[i].operand, .pointer = device_buffer_at(&buffers[i])};
    }
    ok = ok && CHECK_QDNN(qdnnExecute(handle, plan, bindings, count, NULL, 0)) &&
         CHECK_QDNN(qdnnSynchronize(handle));
    for (int i = 0; i < count; i++) {
        if (ok && !operands[i].host)
            ok = CHECK_QDNN(qdnnCopyToHost(handle, result, device_buffer_at(&buffers[i]), operands[i].bytes));
        device_buffer_free(&buffers[i]);
    }
    return ok;
}

typedef struct known_call {
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
} known_call;

static bool begin(known_call *c, int rank, const int64_t *dims, qdnnWeights_t weights, int64_t group_size)
{
    *c = (known_call){.handle = device_begin("sm_90", 1, "all")};
    return c->handle && CHECK_QDNN(qdnnCreateTensorDescriptor(&c->tensor)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(c->tensor, QDNN_DATA_F32, rank, dims, NULL)) &&
           CHECK_QDNN(qdnnCreateQuantDescriptor(&c->quant)) &&
           CHECK_QDNN(qdnnSetQuantWeights(c->quant, weights, group_size));
}

static void end(known_call *c)
{
    qdnnDestroyQuantDescriptor(c->quant);
    qdnnDestroyTensorDescriptor(c->tensor);
    device_end(c->handle);
}

static bool dequantize(const known_call *c, const known_operand *operands, int count, void *y)
{
    qdnnPlan_t plan = NULL;
    bool ok = CHECK_QDNN(qdnnCreateDequantizePlan(c->handle, c->tensor, c->quant, &plan)) &&
              run_plan(c->handle, plan, operands, count, y);
    qdnnDestroyPlan(plan);
    return ok;
}

/* ---- GPTQ ---- */

/* Two columns: codes k mod 2^bits, and 1; zeros 2 and 1, which version 1 stores one less. */
static const struct {
    const char *name;
    qdnnWeights_t weights[2]; /* version 1, version 2 */
    int bits, rows, words;
    uint32_t qweight[6]; /* word w of column n at [2 w + n] */
    uint32_t v1, v2;
} widths[] = {
    {"2_bits",
     {QDNN_WEIGHTS_GPTQ_2BIT, QDNN_WEIGHTS_GPTQ_V2_2BIT},
     2,
     16,
     1,
     {0xE4E4E4E4, 0x55555555},
     0x1,
     0x6},
    {"3_bits",
     {QDNN_WEIGHTS_GPTQ_3BIT, QDNN_WEIGHTS_GPTQ_V2_3BIT},
     3,
     32,
     3,
     {0x88FAC688, 0x49249249, 0xC688FAC6, 0x92492492, 0xFAC688FA, 0x24924924},
     0x1,
     0xA},
    {"4_bits",
     {QDNN_WEIGHTS_GPTQ_4BIT, QDNN_WEIGHTS_GPTQ_V2_4BIT},
     4,
     16,
     2,
     {0x76543210, 0x11111111, 0xFEDCBA98, 0x11111111},
     0x01,
     0x12},
    {"8_bits",
     {QDNN_WEIGHTS_GPTQ_8BIT, QDNN_WEIGHTS_GPTQ_V2_8BIT},
     8,
     8,
     2,
     {0x03020100, 0x01010101, 0x07060504, 0x01010101},
     0x0001,
     0x0102},
};

DEVICE_ROWS(ParityKnown, GptqOfEveryWidth, widths)
{
    static const uint16_t scale[2] = {0x3C00, 0x3800}; /* 1, 1/2 */
    const int rows = widths[index].rows, bits = widths[index].bits;
    for (int version = 1; version <= 2; version++) {
        known_call c;
        float y[64] = {0};
        const uint32_t *zero = version == 1 ? &widths[index].v1 : &widths[index].v2;
        const known_operand operands[] = {
            {QDNN_OPERAND_CODES, widths[index].qweight, (size_t)widths[index].words * 8},
            {QDNN_OPERAND_SCALE, scale, sizeof scale},
            {QDNN_OPERAND_ZERO, zero, sizeof *zero},
            {QDNN_OPERAND_Y, NULL, (size_t)rows * 8}};
        bool ok = begin(&c, 2, (const int64_t[]){rows, 2}, widths[index].weights[version - 1], 1024) &&
                  dequantize(&c, operands, 4, y);
        for (int k = 0; ok && k < rows; k++) {
            CHECK_EQ_F32(y[2 * k], (float)(k % (1 << bits) - 2));
            CHECK_EQ_F32(y[2 * k + 1], 0.0f);
        }
        end(&c);
    }
}

/* Rows that name their groups; the last one names none. */
DEVICE_CASE(ParityKnown, GptqWithGroupsByIndex)
{
    static const int32_t group[4] = {1, 0, 1, 2};
    static const uint16_t scale[2] = {0x3C00, 0x4000}; /* 1, 2 */
    static const uint32_t code = 0x4321, zero[2] = {1, 2};
    const known_operand operands[] = {{QDNN_OPERAND_CODES, &code, 4},
                                      {QDNN_OPERAND_SCALE, scale, sizeof scale},
                                      {QDNN_OPERAND_ZERO, zero, sizeof zero},
                                      {QDNN_OPERAND_GROUP_INDEX, group, sizeof group},
                                      {QDNN_OPERAND_Y, NULL, 16}};
    float y[4] = {0};
    known_call c;
    if (begin(&c, 2, (const int64_t[]){4, 1}, QDNN_WEIGHTS_GPTQ_V2_4BIT, 2) &&
        CHECK_QDNN(qdnnSetQuantAttribute(c.quant, QDNN_QUANT_GROUP_INDEX, 1)) &&
        dequantize(&c, operands, 5, y)) {
        CHECK_EQ_F32(y[0], -2);
        CHECK_EQ_F32(y[1], 1);
        CHECK_EQ_F32(y[2], 2);
        CHECK(isnan(y[3]));
    }
    end(&c);
}

/* ---- AWQ ---- */

/* Nibble i is column {0, 2, 4, 6, 1, 3, 5, 7}[i]: column n has code n in the first row and 15 - n in the second. */
static const uint32_t awq_codes[2] = {0x75316420, 0x8ACE9BDF}, awq_zeros = 0x11111111;
static const uint16_t awq_scales[8] = {0x3C00, 0x3C00, 0x4000, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3800};

DEVICE_CASE(ParityKnown, AwqHasEvenColumnsFirst)
{
    static const float scale[8] = {1, 1, 2, 1, 1, 1, 1, 0.5f};
    const known_operand operands[] = {{QDNN_OPERAND_CODES, awq_codes, sizeof awq_codes},
                                      {QDNN_OPERAND_SCALE, awq_scales, sizeof awq_scales},
                                      {QDNN_OPERAND_ZERO, &awq_zeros, sizeof awq_zeros},
                                      {QDNN_OPERAND_Y, NULL, 64}};
    float y[16] = {0};
    known_call c;
    if (begin(&c, 2, (const int64_t[]){2, 8}, QDNN_WEIGHTS_AWQ, 1024) && dequantize(&c, operands, 4, y))
        for (int n = 0; n < 8; n++) {
            CHECK_EQ_F32(y[n], (float)(n - 1) * scale[n]);
            CHECK_EQ_F32(y[8 + n], (float)(14 - n) * scale[n]);
        }
    end(&c);
}

/* Rows 0 and 1 of a column are the low nibbles of its word; two's complement changes the highest bit. */
DEVICE_CASE(ParityKnown, AwqRepackedIntoInterleavedWords)
{
    static const uint32_t expected[8] = {0x78, 0x69, 0x5A, 0x4B, 0x3C, 0x2D, 0x1E, 0x0F};
    const known_operand operands[] = {{QDNN_OPERAND_CODES, awq_codes, sizeof awq_codes},
                                      {QDNN_OPERAND_REPACKED, NULL, sizeof expected}};
    uint32_t words[8] = {0};
    known_call c;
    qdnnQuantDescriptor_t to = NULL;
    qdnnPlan_t plan = NULL;
    if (begin(&c, 2, (const int64_t[]){2, 8}, QDNN_WEIGHTS_AWQ, 1024) &&
        CHECK_QDNN(qdnnCreateQuantDescriptor(&to)) &&
        CHECK_QDNN(qdnnSetQuantAttribute(to, QDNN_QUANT_LAYOUT, QDNN_LAYOUT_WORDS_INTERLEAVED)) &&
        CHECK_QDNN(qdnnSetQuantAttribute(to, QDNN_QUANT_CODE_KIND, QDNN_CODE_TWOS_COMPLEMENT)) &&
        CHECK_QDNN(qdnnCreateRepackPlan(c.handle, c.tensor, c.quant, to, &plan)) &&
        run_plan(c.handle, plan, operands, 2, words))
        CHECK_EQ_MEM(words, expected, sizeof expected);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(to);
    end(&c);
}

/* ---- A stack of experts ---- */

/* [E, K, N] with groups that divide K: expert e has codes e + 1 and the scale 2^e, so each has groups of its own. */
DEVICE_CASE(ParityKnown, ExpertsHaveGroupsOfTheirOwn)
{
    enum { EXPERTS = 3, K = 16, N = 4 };
    uint32_t codes[EXPERTS * K / 8 * N], zeros[EXPERTS * 2] = {0};
    uint16_t scales[EXPERTS * 2 * N];
    float y[EXPERTS * K * N] = {0};
    for (int i = 0; i < EXPERTS * K / 8 * N; i++)
        codes[i] = 0x11111111u * (uint32_t)(i / (K / 8 * N) + 1);
    for (int i = 0; i < EXPERTS * 2 * N; i++)
        scales[i] = (uint16_t)(0x3C00 + 0x400 * (i / (2 * N)));
    const known_operand operands[] = {{QDNN_OPERAND_CODES, codes, sizeof codes},
                                      {QDNN_OPERAND_SCALE, scales, sizeof scales},
                                      {QDNN_OPERAND_ZERO, zeros, sizeof zeros},
                                      {QDNN_OPERAND_Y, NULL, sizeof y}};
    known_call c;
    if (begin(&c, 3, (const int64_t[]){EXPERTS, K, N}, QDNN_WEIGHTS_GPTQ_V2_4BIT, 8) &&
        dequantize(&c, operands, 4, y))
        for (int i = 0; i < EXPERTS * K * N; i++) {
            int expert = i / (K * N);
            CHECK_EQ_F32(y[i], (float)((expert + 1) << expert));
        }
    end(&c);
}
