/* qdnnMakeRopeTables. */
#include <float.h>

#include "driver/api/rope_math.h"
#include "driver/api/rows.h"
#include "driver/base/check.h"

enum { PAIRS_MAX = 512, POSITIONS_MAX = 1 << 29 };

static qdnnStatus_t check_integer(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %lld; it must be %lld to %lld", name,
                      (long long)value, (long long)least, (long long)most);
}

/* Also false for NaN. */
static qdnnStatus_t check_real(const char *name, double value, double least, double most)
{
    if (value >= least && value <= most)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "%s is %g; it must be %g to %g", name, value, least,
                      most);
}

static qdnnStatus_t check_rule(const qdnnRopeTables_t *t)
{
    const double least = 0x1p-20, most = 0x1p20;
    CHECK_STATUS(check_integer("tables->rule", (int64_t)t->rule, 0, QDNN_ROPE_RULE_YARN));
    if (t->rule == QDNN_ROPE_RULE_NONE)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(check_real("tables->factor", t->factor, least, most));
    if (t->rule == QDNN_ROPE_RULE_LINEAR)
        return QDNN_STATUS_SUCCESS;
    CHECK_STATUS(check_integer("tables->originalPositions", t->originalPositions, 1, POSITIONS_MAX));
    if (t->rule == QDNN_ROPE_RULE_LLAMA3) {
        CHECK_STATUS(check_real("tables->lowFactor", t->lowFactor, least, most));
        CHECK_STATUS(check_real("tables->highFactor", t->highFactor, least, most));
        if (t->lowFactor < t->highFactor)
            return QDNN_STATUS_SUCCESS;
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "tables->lowFactor is %g and tables->highFactor %g; the first must be less",
                          t->lowFactor, t->highFactor);
    }
    if (t->betaFast != 0)
        CHECK_STATUS(check_real("tables->betaFast", t->betaFast, least, most));
    if (t->betaSlow != 0)
        CHECK_STATUS(check_real("tables->betaSlow", t->betaSlow, least, most));
    CHECK_STATUS(check_integer("tables->yarnExact", t->yarnExact, 0, 1));
    return check_real("tables->base", t->base, 1 + 0x1p-20, 0x1p50); /* the ramp depends on its logarithm */
}

static qdnnStatus_t check_tables(const qdnnRopeTables_t *t)
{
    CHECK_STATUS(check_integer("tables->rotary", t->rotary, 2, 2 * PAIRS_MAX));
    if (t->rotary % 2 != 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "tables->rotary is %lld; it must be even",
                          (long long)t->rotary);
    if (!t->frequencies)
        CHECK_STATUS(check_real("tables->base", t->base, 1, 0x1p50));
    for (int64_t i = 0; i < t->rotary / 2; i++) {
        if (t->frequencies)
            CHECK_STATUS(check_real("a frequency", (double)t->frequencies[i], 0, 2));
        if (t->divisors)
            CHECK_STATUS(check_real("a divisor", (double)t->divisors[i], FLT_MIN, (double)FLT_MAX));
    }
    if (t->attentionFactor != 0)
        CHECK_STATUS(
            check_real("tables->attentionFactor", (double)t->attentionFactor, FLT_MIN, (double)FLT_MAX));
    return check_rule(t);
}

static void make_row(const float *frequencies, int64_t pairs, int64_t position, float factor, float *c,
                     float *s)
{
    for (int64_t i = 0; i < pairs; i++) {
        rope_cos_sin(position, frequencies[i], &c[i], &s[i]);
        if (factor != 1) {
            c[i] = c[i] * factor;
            s[i] = s[i] * factor;
        }
    }
}

qdnnStatus_t qdnnMakeRopeTables(const qdnnRopeTables_t *tables, int64_t first, int64_t positions, float *cos,
                                float *sin)
{
    CALL_BEGIN_WITH(tables, first, positions, cos, sin);
    CHECK_NOT_NULL(tables);
    float frequencies[PAIRS_MAX];
    qdnnRopeTables_t t;
    CHECK_STATUS(rows_take_settings("tables", tables, &t, sizeof t));
    CHECK_STATUS(check_tables(&t));
    CHECK_STATUS(check_integer("first", first, 0, POSITIONS_MAX));
    CHECK_STATUS(check_integer("positions", positions, 0, POSITIONS_MAX - first));
    CHECK_BUFFER(cos, positions);
    CHECK_BUFFER(sin, positions);
    const int64_t pairs = t.rotary / 2;
    for (int64_t i = 0; i < pairs; i++) {
        frequencies[i] = rope_frequency(&t, i);
        CHECK_STATUS(check_real("a frequency, divided as asked,", (double)frequencies[i], 0, 2));
    }
    const float factor = rope_attention_factor(&t);
    for (int64_t k = 0; k < positions; k++)
        make_row(frequencies, pairs, first + k, factor, cos + k * pairs, sin + k * pairs);
    return QDNN_STATUS_SUCCESS;
}
