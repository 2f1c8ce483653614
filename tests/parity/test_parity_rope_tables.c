/* The tables of rope: the library's sequence against that of host_ref, every rule; both against the C library's functions; refusals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qdnn/qdnn.h>

#include "host_ref/host_ref.h"
#include "test.h"

enum { ROWS = 5, PAIRS_MAX = 64 };

typedef struct tables_case {
    const char *name;
    int64_t rotary;
    double base;
    bool has_frequencies, has_divisors;
    qdnnRopeRule_t rule;
    double factor, low, high;
    int exact;
    int64_t length, first;
    float attention;
} tables_case;

static const tables_case all_tables[] = {
    {"Usual", 128, .base = 10000},
    {"Llama2Far", 128, .base = 10000, .first = (1 << 29) - ROWS},
    {"Two", 2, .base = 10000, .first = 100},
    {"One", 16, .base = 1, .first = 12345},
    {"Odd", 22, .base = 1e7, .first = 131071},
    {"Linear", 64, .base = 10000, .rule = QDNN_ROPE_RULE_LINEAR, .factor = 4, .first = 5000},
    {"Llama3", 128, .base = 500000, .rule = QDNN_ROPE_RULE_LLAMA3, .factor = 8, .low = 1, .high = 4,
     .length = 8192, .first = 100000},
    {"Yarn", 128, .base = 1e6, .rule = QDNN_ROPE_RULE_YARN, .factor = 4, .low = 32, .high = 1,
     .length = 32768, .first = 65000},
    {"YarnExact", 64, .base = 150000, .rule = QDNN_ROPE_RULE_YARN, .factor = 32, .low = 32, .high = 1,
     .exact = 1, .length = 4096, .first = 4000},
    {"YarnFactor", 64, .base = 10000, .rule = QDNN_ROPE_RULE_YARN, .factor = 40, .low = 32, .high = 1,
     .length = 4096, .attention = 0.75f},
    {"YarnShort", 4, .base = 10000, .rule = QDNN_ROPE_RULE_YARN, .factor = 2, .low = 32, .high = 1,
     .length = 16},
    {"Divided", 96, .base = 10000, .has_divisors = true, .first = 9999, .attention = 1.19f},
    {"Given", 32, .has_frequencies = true, .first = 777},
    {"GivenAndDivided", 32, .has_frequencies = true, .has_divisors = true, .rule = QDNN_ROPE_RULE_LINEAR,
     .factor = 0.5},
};

static void fill_arrays(float frequencies[PAIRS_MAX], float divisors[PAIRS_MAX])
{
    for (int i = 0; i < PAIRS_MAX; i++) {
        frequencies[i] = 1 / (float)(3 + 7 * i);
        divisors[i] = 1 + 0.37f * (float)i;
    }
}

static qdnnRopeTables_t tables_of(const tables_case *c, const float *frequencies, const float *divisors)
{
    const bool is_llama3 = c->rule == QDNN_ROPE_RULE_LLAMA3;
    return (qdnnRopeTables_t){.size = sizeof(qdnnRopeTables_t),
                              .rotary = c->rotary,
                              .base = c->base,
                              .frequencies = c->has_frequencies ? frequencies : NULL,
                              .divisors = c->has_divisors ? divisors : NULL,
                              .rule = c->rule,
                              .factor = c->factor,
                              .lowFactor = is_llama3 ? c->low : 0,
                              .highFactor = is_llama3 ? c->high : 0,
                              .betaFast = is_llama3 || c->low == 32 ? 0 : c->low,
                              .yarnExact = c->exact,
                              .originalPositions = c->length,
                              .attentionFactor = c->attention};
}

static ref_rope_tables_spec reference_of(const tables_case *c, const float *frequencies,
                                         const float *divisors)
{
    static const ref_rope_rule rules[] = {REF_ROPE_NO_RULE, REF_ROPE_LINEAR, REF_ROPE_LLAMA3, REF_ROPE_YARN};
    return (ref_rope_tables_spec){.rotary = c->rotary,
                                  .base = c->base,
                                  .frequencies = c->has_frequencies ? frequencies : NULL,
                                  .divisors = c->has_divisors ? divisors : NULL,
                                  .rule = rules[c->rule],
                                  .factor = c->factor,
                                  .low = c->low,
                                  .high = c->high,
                                  .is_exact = c->exact,
                                  .length = c->length,
                                  .attention_factor = c->attention};
}

TEST_ROWS(RopeTables, HostRef, all_tables)
{
    const tables_case *c = &all_tables[index];
    float frequencies[PAIRS_MAX], divisors[PAIRS_MAX];
    float cos[2][ROWS * PAIRS_MAX], sin[2][ROWS * PAIRS_MAX];
    fill_arrays(frequencies, divisors);
    const qdnnRopeTables_t tables = tables_of(c, frequencies, divisors);
    const ref_rope_tables_spec reference = reference_of(c, frequencies, divisors);
    CHECK_EQ_I64(qdnnMakeRopeTables(&tables, c->first, ROWS, cos[0], sin[0]), QDNN_STATUS_SUCCESS);
    ref_rope_tables(&reference, c->first, ROWS, cos[1], sin[1]);
    const size_t bytes = (size_t)(ROWS * c->rotary / 2) * sizeof(float);
    CHECK_EQ_MEM(cos[0], cos[1], bytes);
    CHECK_EQ_MEM(sin[0], sin[1], bytes);
}

/* Within an ulp of the C library's, whatever that is; nearly always the nearest. */
/* YaRN's ramp begins below the first pair, ends beyond the last, is empty, or has an end at each place between: every length tries another. */
TEST_CASE(RopeTables, EveryRampOfYarn)
{
    static const double bases[] = {2, 100, 10000};
    static const int64_t widths[] = {2, 4, 8, 10};
    for (int i = 0; i < 3 * 4 * 2; i++)
        for (double length = 1; length < 5e8; length *= 1.31) {
            const tables_case c = {.rotary = widths[i % 4],
                                   .base = bases[i / 4 % 3],
                                   .rule = QDNN_ROPE_RULE_YARN,
                                   .factor = 4,
                                   .low = 32,
                                   .high = 1,
                                   .exact = i / 12,
                                   .length = (int64_t)length,
                                   .first = 1};
            float cos[2][5], sin[2][5];
            const qdnnRopeTables_t tables = tables_of(&c, NULL, NULL);
            const ref_rope_tables_spec reference = reference_of(&c, NULL, NULL);
            test_push_note("rotary %d, base %g, length %.0f", (int)c.rotary, c.base, length);
            CHECK_EQ_I64(qdnnMakeRopeTables(&tables, c.first, 1, cos[0], sin[0]), QDNN_STATUS_SUCCESS);
            ref_rope_tables(&reference, c.first, 1, cos[1], sin[1]);
            CHECK_EQ_MEM(cos[0], cos[1], (size_t)(c.rotary / 2) * sizeof(float));
            CHECK_EQ_MEM(sin[0], sin[1], (size_t)(c.rotary / 2) * sizeof(float));
            test_pop_note();
        }
}

TEST_CASE(RopeTables, AreCosinesAndSines)
{
    enum { PAIRS = 64, POSITIONS = 4096 };
    const qdnnRopeTables_t tables = {.size = sizeof tables, .rotary = 2 * PAIRS, .base = 10000};
    float *c = malloc(PAIRS * POSITIONS * sizeof *c), *s = malloc(PAIRS * POSITIONS * sizeof *s);
    if (!CHECK(c && s) || !CHECK_EQ_I64(qdnnMakeRopeTables(&tables, 0, POSITIONS, c, s), QDNN_STATUS_SUCCESS))
        return;
    for (int i = 0; i < PAIRS; i++) {
        const float f = (float)pow(10000, -i / (double)PAIRS);
        for (int p = 0; p < POSITIONS; p++) {
            const double angle = (double)p * (double)f;
            CHECK(fabs((double)c[p * PAIRS + i] - cos(angle)) <= 0x1p-24);
            CHECK(fabs((double)s[p * PAIRS + i] - sin(angle)) <= 0x1p-24);
        }
    }
    free(c);
    free(s);
}

/* Worked out by hand, in docs/numerics.md. */
TEST_CASE(RopeTables, KnownAnswers)
{
    const ref_rope_tables_spec reference = {.rotary = 128, .base = 10000};
    const qdnnRopeTables_t tables = {.size = sizeof tables, .rotary = 128, .base = 10000};
    float c[128], s[128];
    CHECK_EQ_U32(ref_f32_to_bits(ref_rope_frequency(&reference, 0)), 0x3F800000);
    CHECK_EQ_U32(ref_f32_to_bits(ref_rope_frequency(&reference, 1)), 0x3F5DAFD7);
    CHECK_EQ_U32(ref_f32_to_bits(ref_rope_frequency(&reference, 63)), 0x38F22CE3);
    CHECK_EQ_I64(qdnnMakeRopeTables(&tables, 0, 2, c, s), QDNN_STATUS_SUCCESS);
    CHECK(c[0] == 1 && s[0] == 0 && c[63] == 1 && s[63] == 0);
    CHECK_EQ_U32(ref_f32_to_bits(c[64]), 0x3F0A5140);
    CHECK_EQ_U32(ref_f32_to_bits(s[64]), 0x3F576AA4);
}

static const float negative_frequencies[] = {-1, 1};

static const struct {
    const char *name;
    qdnnRopeTables_t tables;
    int64_t first, positions;
} refusals[] = {
    {"NoRotary", {.base = 10000}, 0, 1},
    {"OddRotary", {.rotary = 3, .base = 10000}, 0, 1},
    {"LongRotary", {.rotary = 1026, .base = 10000}, 0, 1},
    {"NoBase", {.rotary = 4}, 0, 1},
    {"BaseNaN", {.rotary = 4, .base = NAN}, 0, 1},
    {"NegativeFrequency", {.rotary = 4, .frequencies = negative_frequencies}, 0, 1},
    {"NegativeDivisor", {.rotary = 4, .base = 10000, .divisors = negative_frequencies}, 0, 1},
    {"Rule", {.rotary = 4, .base = 10000, .rule = (qdnnRopeRule_t)4}, 0, 1},
    {"NoFactor", {.rotary = 4, .base = 10000, .rule = QDNN_ROPE_RULE_LINEAR}, 0, 1},
    {"NoLength", {.rotary = 4, .base = 10000, .rule = QDNN_ROPE_RULE_YARN, .factor = 4}, 0, 1},
    {"Factors",
     {.rotary = 4,
      .base = 10000,
      .rule = QDNN_ROPE_RULE_LLAMA3,
      .factor = 8,
      .lowFactor = 4,
      .highFactor = 1,
      .originalPositions = 8192},
     0,
     1},
    {"TooFast", {.rotary = 4, .base = 10000, .rule = QDNN_ROPE_RULE_LINEAR, .factor = 0.25}, 0, 1},
    {"Attention", {.rotary = 4, .base = 10000, .attentionFactor = -1}, 0, 1},
    {"NegativeFirst", {.rotary = 4, .base = 10000}, -1, 1},
    {"NegativePositions", {.rotary = 4, .base = 10000}, 0, -1},
    {"TooFar", {.rotary = 4, .base = 10000}, (1 << 29) - 1, 2},
};

TEST_ROWS(RopeTables, Refuses, refusals)
{
    qdnnRopeTables_t tables = refusals[index].tables;
    float c[4] = {7}, s[4] = {7};
    tables.size = sizeof tables;
    CHECK_EQ_I64(qdnnMakeRopeTables(&tables, refusals[index].first, refusals[index].positions, c, s),
                 QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK(c[0] == 7 && s[0] == 7);
}
