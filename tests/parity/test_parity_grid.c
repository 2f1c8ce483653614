/* The trials sample a far larger grid; these tests count that all combinations occur that have to. */
#include <string.h>

#include "driver/api/request.h"
#include "parity/matrix.h"
#include "parity/trial.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* What a trial has of each property, as a small number. */
enum {
    DATA,
    SCALE,
    ZERO,
    NIBBLES,
    ROUNDING,
    DIVISION,
    FLOOR,
    BUFFERS,
    CALL,
    KIND,
    SIZE,
    SHIFT,
    GRANULARITY,
    PROPERTIES
};

/* How many values of each a kernel meets. Blocks have no settings but the type of data. */
static int values_of(const kernel_row *row, int property)
{
    static const int of_groups[PROPERTIES] = {4, 3, 4, 2, 2, 2, 2, 2, 2, DATA_KINDS + 1, 4, 3, 13};
    static const int of_blocks[PROPERTIES] = {4, 1, 1, 1, 1, 1, 1, 2, 2, DATA_KINDS + 1, 4, 3, 1};
    if (property == KIND && parity_makes_scales(row))
        return DATA_KINDS;
    return (kernel_format(row)->block ? of_blocks : of_groups)[property];
}

static int float_index(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 ? 0 : type == QDNN_DATA_F16 ? 1 : type == QDNN_DATA_BF16 ? 2 : 3;
}

/* None, one (a block, where there are blocks), less than most kernels take at once, more. */
static int size_index(const quant_case *c)
{
    int64_t n = quant_case_elements(c), units = n / (int64_t)kernel_columns_multiple(c->row);
    return units < 2 ? (int)units : n < 4096 ? 2 : 3;
}

static void properties_of(const parity_trial *t, int index, int out[PROPERTIES])
{
    const kernel_spec *spec = &t->c.spec;
    out[DATA] = float_index(spec->data);
    out[SCALE] = (int)spec->stored.scale;
    out[ZERO] = spec->stored.zero == KERNEL_ZERO_DEFAULT ? 3 : float_index(spec->stored.zero);
    out[NIBBLES] = spec->stored.nibble_order;
    out[ROUNDING] = spec->quantize.rounding;
    out[DIVISION] = spec->quantize.division;
    out[FLOOR] = spec->quantize.floor > 0.1f;
    out[BUFFERS] = t->buffers;
    out[CALL] = t->by_plan;
    out[KIND] = t->c.callers ? DATA_KINDS : (int)t->c.kind;
    out[SIZE] = size_index(&t->c);
    out[SHIFT] = t->shift[QDNN_OPERAND_CODES] ? 2 : (int)t->shift[QDNN_OPERAND_X];
    out[GRANULARITY] = index * values_of(t->c.row, GRANULARITY) / parity_trial_count(t->c.row);
    for (int i = 0; i < PROPERTIES; i++)
        if (values_of(t->c.row, i) == 1)
            out[i] = 0;
}

/* Every pair of values of any two properties occurs in some turn of each kernel. */
static void check_pairs(const kernel_row *row)
{
    static bool seen[PROPERTIES][PROPERTIES][16][16];
    memset(seen, 0, sizeof seen);
    for (int turn = 0; turn < PARITY_TURNS; turn++)
        for (int i = 0; i < parity_trial_count(row); i++) {
            int has[PROPERTIES];
            parity_trial t = parity_trial_at(row, turn, i);
            properties_of(&t, i, has);
            for (int a = 0; a < PROPERTIES; a++)
                for (int b = 0; b < PROPERTIES; b++)
                    seen[a][b][has[a]][has[b]] = true;
        }
    for (int a = 0; a < PROPERTIES; a++)
        for (int b = 0; b < a; b++)
            for (int i = 0; i < values_of(row, a); i++)
                for (int j = 0; j < values_of(row, b); j++)
                    if (!seen[a][b][i][j])
                        FAIL("%s: value %d of property %d never meets value %d of property %d", row->name, i,
                             a, j, b);
}

TEST_CASE(ParityGrid, EveryPairOccursForEveryKernel)
{
    for (int i = 0; i < parity_row_count(); i++)
        check_pairs(parity_row_at(i));
}

/* A turn is an SM: each has every pair of types, and every kind of data in every granularity. */
TEST_CASE(ParityGrid, EveryTurnHasAllTypesAndAllKinds)
{
    for (int i = 0; i < parity_row_count(); i++)
        for (int turn = 0; turn < PARITY_TURNS; turn++) {
            const kernel_row *row = parity_row_at(i);
            unsigned types = 0, kinds[13] = {0};
            for (int k = 0; k < parity_trial_count(row); k++) {
                int has[PROPERTIES];
                parity_trial t = parity_trial_at(row, turn, k);
                properties_of(&t, k, has);
                types |= 1u << (has[DATA] * 3 + has[SCALE]);
                kinds[has[GRANULARITY]] |= 1u << has[KIND];
            }
            CHECK_EQ_U32(types, kernel_format(row)->block ? 0x249 : 0xFFF);
            for (int g = 0; g < values_of(row, GRANULARITY); g++)
                CHECK_EQ_U32(kinds[g] & 0x7F, 0x7F);
        }
}

/* A block takes 4096 elements of quantize and dequantize; each kernel's own tile is met from both sides. */
TEST_CASE(ParityGrid, TensorsEndAroundTheTile)
{
    for (int i = 0; i < parity_row_count(); i++) {
        const kernel_row *row = parity_row_at(i);
        if (parity_makes_scales(row))
            continue;
        kernel_spec spec = kernel_spec_default();
        int64_t tile = (int64_t)kernel_geometry_of(row, KERNEL_NORMAL(row, &spec)).elements_per_block;
        unsigned seen = 0;
        for (int k = 0; k < parity_trial_count(row); k++) {
            parity_trial t = parity_trial_at(row, 0, k);
            int64_t past = (quant_case_elements(&t.c) - tile) / (int64_t)kernel_columns_multiple(row);
            if (past >= -1 && past <= 1)
                seen |= 1u << (past + 1);
        }
        CHECK_EQ_U32(seen, 7);
    }
}

/* ---- Matrices ---- */

/* What the generator of matrices must have met for each kernel: every value of these settings, as texts. */
static const struct {
    const char *setting, *values[6];
} matrix_values[] = {
    {"data", {"f32", "f16", "bf16", "f64"}},  {"layout", {"bytes", "interleaved", "words"}},
    {"groups", {"flat", "rows", "columns"}},  {"scale", {"f32", "f16", "bf16", "e4m3"}},
    {"scale_order", {"usual", "transposed"}}, {"scale_swizzle", {"linear", "128x4"}},
    {"zero_packed", {"no", "yes"}},
};

static bool trial_has(const parity_trial *t, const char *setting, const char *value)
{
    kernel_spec other = t->c.spec;
    char error[256];
    return kernel_spec_set(t->c.row, &other, setting, value, error, sizeof error) &&
           kernel_spec_equal(&t->c.spec, &other);
}

enum { MATRIX_VALUES = sizeof matrix_values / sizeof matrix_values[0] };

/* As bits of seen[setting]. */
static void see_values(const kernel_row *row, unsigned seen[MATRIX_VALUES])
{
    memset(seen, 0, MATRIX_VALUES * sizeof *seen);
    for (int turn = 0; turn < MATRIX_TURNS; turn++)
        for (int i = 0; i < MATRIX_TRIALS; i++) {
            parity_trial t = matrix_trial_at(row, turn, i);
            for (int k = 0; k < MATRIX_VALUES; k++)
                for (int v = 0; matrix_values[k].values[v]; v++)
                    seen[k] |= (unsigned)trial_has(&t, matrix_values[k].setting, matrix_values[k].values[v])
                               << v;
        }
}

/* Scales have layouts for packed zeros alone, and only zero points are packed. */
static bool can_have(const kernel_row *row, const char *setting, const char *value)
{
    if (strcmp(setting, "layout") == 0)
        return kernel_operation_of(row) != KERNEL_SCALE;
    if (strcmp(setting, "zero_packed") == 0 && strcmp(value, "yes") == 0)
        return kernel_format(row)->zero_kind == QDNN_ZERO_POINT;
    return kernel_takes(row, setting);
}

TEST_CASE(ParityGrid, MatricesMeetEveryValue)
{
    for (int r = 0; r < matrix_row_count(); r++) {
        const kernel_row *row = matrix_row_at(r);
        unsigned seen[MATRIX_VALUES];
        see_values(row, seen);
        for (int k = 0; k < MATRIX_VALUES; k++)
            for (int v = 0; matrix_values[k].values[v]; v++)
                if (can_have(row, matrix_values[k].setting, matrix_values[k].values[v]) &&
                    !(seen[k] >> v & 1))
                    FAIL("%s never has %s=%s", row->name, matrix_values[k].setting,
                         matrix_values[k].values[v]);
    }
}

/* Codes in another order, products, rows that are quantized by index, and operations on rows with quantization behind. */
static bool has_tests_of_its_own(const kernel_row *row)
{
    switch (kernel_operation_of(row)) {
    case KERNEL_REPACK:
    case KERNEL_PREPACK:
    case KERNEL_NORM_QUANTIZED:
    case KERNEL_POINTWISE_QUANTIZED:
    case KERNEL_ROPE_QUANTIZED:
    case KERNEL_DEQUANTIZE_TRANSPOSED:
    case KERNEL_QUANTIZE_ROWS:
    case KERNEL_ATTENTION_QUANTIZED:
        return true;
    default:
        return kernel_is_product(row);
    }
}

TEST_CASE(ParityGrid, EveryOperationIsInIt)
{
    int count = 0;
    for (int i = 0; qdnnGetOperationName(i); i++) {
        const kernel_row *row =
            kernel_find(qdnnGetOperationName(i)); /* null: a name for some settings of another */
        if (!row || !kernel_format(row) || has_tests_of_its_own(row))
            continue;
        const kernel_row *in_it = parity_row_at(count++);
        if (CHECK(in_it != NULL))
            CHECK_EQ_STR(in_it->operation_name, qdnnGetOperationName(i));
    }
    CHECK_EQ_I64(parity_row_count(), count);
}

static int passes_of(const parity_trial *t)
{
    quant_descriptors d;
    request r;
    kernel_steps steps = {0};
    if (quant_descriptors_make(&t->c, &d) &&
        CHECK_QDNN(request_make(kernel_operation_of(t->c.row), d.tensor, d.quant, &r)))
        kernel_steps_of(r.row, KERNEL_NORMAL(r.row, &r.spec), &r.problem, &steps);
    quant_descriptors_free(&d);
    return steps.count;
}

/* Scales of large groups take two launches and a workspace: by plans, whose workspace is the caller's, and by
 * one-shot calls, whose workspace is the handle's. */
TEST_CASE(ParityGrid, ScalesTakeOnePassAndTwo)
{
    for (int i = 0; i < parity_row_count(); i++) {
        const kernel_row *row = parity_row_at(i);
        int seen[2][3] = {{0}};
        if (kernel_operation_of(row) != KERNEL_SCALE)
            continue;
        for (int k = 0; k < parity_large_count(); k++) {
            parity_trial t = parity_large_at(row, k);
            seen[t.by_plan][passes_of(&t)]++;
        }
        CHECK(seen[false][1] + seen[true][1] > 0);
        CHECK(seen[false][2] > 0);
        CHECK(seen[true][2] > 0);
    }
}
