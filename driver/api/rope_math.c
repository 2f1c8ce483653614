/* The tables of rope: frequencies, cosines and sines. */
#include "driver/api/rope_math.h"

#include <stdbool.h>
#include <string.h>

static const double two_pi = 0x1.921fb54442d18p+2;

/* ---- Numbers of twice the precision: a sum hi + lo, where lo is at most half an ulp of hi ---- */

typedef struct pair {
    double hi, lo;
} pair;

/* |a| >= |b|, or a is 0. */
static pair quick_sum(double a, double b)
{
    const double s = a + b;
    return (pair){s, b - (s - a)};
}

static pair exact_sum(double a, double b)
{
    const double s = a + b, c = s - a;
    return (pair){s, (a - (s - c)) + (b - c)};
}

static pair halves_of(double a)
{
    const double c = 0x1.0000002p27 * a, hi = c - (c - a);
    return (pair){hi, a - hi};
}

static pair exact_product(double a, double b)
{
    const pair x = halves_of(a), y = halves_of(b);
    const double p = a * b;
    return (pair){p, ((x.hi * y.hi - p) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

static pair add(pair a, pair b)
{
    const pair s = exact_sum(a.hi, b.hi), t = exact_sum(a.lo, b.lo), u = quick_sum(s.hi, s.lo + t.hi);
    return quick_sum(u.hi, u.lo + t.lo);
}

static pair multiply(pair a, pair b)
{
    const pair p = exact_product(a.hi, b.hi);
    return quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static pair negated(pair a)
{
    return (pair){-a.hi, -a.lo};
}

static pair divide(pair a, pair b)
{
    const double q = a.hi / b.hi;
    const pair rest = add(a, negated(multiply(b, (pair){q, 0})));
    const double q2 = rest.hi / b.hi;
    const pair rest2 = add(rest, negated(multiply(b, (pair){q2, 0})));
    return add(quick_sum(q, q2), (pair){rest2.hi / b.hi, 0});
}

static pair number(double x)
{
    return (pair){x, 0};
}

/* ---- ln and exp ---- */

static const pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/* x = m 2^e, m from sqrt(1/2) to sqrt(2); x is positive and normal. */
static double mantissa_of(double x, int *e)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFF) | UINT64_C(0x3FF) << 52;
    memcpy(&x, &bits, sizeof x);
    if (x < 0x1.6a09e667f3bcdp+0)
        return x;
    ++*e;
    return x / 2;
}

/* 2 atanh(t) + e ln 2, t = (m - 1) / (m + 1), |t| < 0.172. */
static pair ln_of(double x)
{
    enum { TERMS = 22 };
    int e;
    const double m = mantissa_of(x, &e);
    const pair t = divide(exact_sum(m, -1), exact_sum(m, 1)), square = multiply(t, t);
    pair sum = number(0);
    for (int n = TERMS; n >= 0; n--)
        sum = add(multiply(sum, square), divide(number(2), number(2 * n + 1)));
    return add(multiply(sum, t), multiply(ln2, number(e)));
}

static double nearest_integer(double x)
{
    const double big = 0x1.8p52;
    return (x + big) - big;
}

static double power_of_two(int e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x is -40 to 0: results are normal in f32 and f64. */
static pair exp_of(pair x)
{
    enum { TERMS = 26 };
    const double k = nearest_integer(x.hi * 0x1.71547652b82fep+0);
    const pair r = add(x, negated(multiply(ln2, number(k))));
    pair sum = number(1);
    for (int n = TERMS; n >= 1; n--)
        sum = add(number(1), divide(multiply(sum, r), number(n)));
    const double scale = power_of_two((int)k);
    return (pair){sum.hi * scale, sum.lo * scale};
}

/* Rounded once: hi gets an odd last bit where lo is not 0, so that it is no tie of f32. */
static float round_pair(pair x)
{
    uint64_t bits;
    memcpy(&bits, &x.hi, sizeof bits);
    if (x.lo != 0 && (bits & 1) == 0)
        bits += (x.lo > 0) == (x.hi > 0) ? 1 : UINT64_C(0) - 1;
    memcpy(&x.hi, &bits, sizeof bits);
    return (float)x.hi;
}

/* ---- Frequencies ---- */

static float usual_frequency(const qdnnRopeTables_t *t, int64_t i)
{
    if (t->frequencies)
        return t->frequencies[i];
    const pair exponent =
        divide(multiply(ln_of(t->base), number((double)(2 * i))), number((double)t->rotary));
    return round_pair(exp_of(negated(exponent)));
}

static double by_llama3(const qdnnRopeTables_t *t, double f)
{
    const double length = (double)t->originalPositions, wave = two_pi / f;
    if (wave < length / t->highFactor)
        return f;
    if (wave > length / t->lowFactor)
        return f / t->factor;
    const double s = ((length / wave) - t->lowFactor) / (t->highFactor - t->lowFactor);
    return ((1 - s) * (f / t->factor)) + (s * f);
}

static double floor_of(double x)
{
    const double n = nearest_integer(x);
    return n > x ? n - 1 : n;
}

static double end_of_ramp(const qdnnRopeTables_t *t, double beta)
{
    const double turns = ln_of((double)t->originalPositions / (beta * two_pi)).hi;
    return ((double)t->rotary * turns) / (2 * ln_of(t->base).hi);
}

static double by_yarn(const qdnnRopeTables_t *t, double f, int64_t i)
{
    double low = end_of_ramp(t, t->betaFast == 0 ? 32 : t->betaFast),
           high = end_of_ramp(t, t->betaSlow == 0 ? 1 : t->betaSlow);
    if (!t->yarnExact) {
        low = floor_of(low);
        high = -floor_of(-high);
    }
    low = low < 0 ? 0 : low;
    high = high > (double)(t->rotary - 1) ? (double)(t->rotary - 1) : high;
    if (low == high)
        high = low + 0.001;
    double ramp = ((double)i - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return ((f / t->factor) * ramp) + (f * (1 - ramp));
}

float rope_frequency(const qdnnRopeTables_t *t, int64_t i)
{
    float f = usual_frequency(t, i);
    if (t->divisors)
        f = (float)((double)f / (double)t->divisors[i]);
    switch (t->rule) {
    case QDNN_ROPE_RULE_NONE:
        return f;
    case QDNN_ROPE_RULE_LINEAR:
        return (float)((double)f / t->factor);
    case QDNN_ROPE_RULE_LLAMA3:
        return (float)by_llama3(t, f);
    case QDNN_ROPE_RULE_YARN:
        return (float)by_yarn(t, f, i);
    }
    return f;
}

float rope_attention_factor(const qdnnRopeTables_t *t)
{
    if (t->attentionFactor != 0)
        return t->attentionFactor;
    return t->rule == QDNN_ROPE_RULE_YARN && t->factor > 1 ? (float)((0.1 * ln_of(t->factor).hi) + 1) : 1;
}

/* ---- Cosines and sines ---- */

/* p - k pi/2, |p - k pi/2| up to pi/4 and a little, in two numbers. */
static pair remainder_of(double p, double k)
{
    static const double parts[] = {0x1.5110b0000000p-22, 0x1.184698000000p-44, 0x1.3198a2e037073p-69};
    double h = p - k * 0x1.921fb0000000p+0, l = 0;
    for (int i = 0; i < 3; i++) {
        const pair s = exact_sum(h, -(k * parts[i]));
        h = s.hi;
        l += s.lo;
    }
    return quick_sum(h, l);
}

/* The polynomial in z with these coefficients, the highest first. */
static double polynomial(const double *c, int count, double z)
{
    double y = c[0];
    for (int i = 1; i < count; i++)
        y = c[i] + z * y;
    return y;
}

static double sine_of(pair r)
{
    static const double c[] = {0x1.952c77030ad4ap-49,  -0x1.ae7f3e733b81fp-41, 0x1.6124613a86d09p-33,
                               -0x1.ae64567f544e4p-26, 0x1.71de3a556c734p-19,  -0x1.a01a01a01a01ap-13,
                               0x1.1111111111111p-7,   -0x1.5555555555555p-3};
    const double z = r.hi * r.hi;
    return r.hi + ((r.hi * (z * polynomial(c, 8, z))) + r.lo);
}

static double cosine_of(pair r)
{
    static const double c[] = {-0x1.6827863b97d97p-53, 0x1.ae7f3e733b81fp-45,  -0x1.93974a8c07c9dp-37,
                               0x1.1eed8eff8d898p-29,  -0x1.27e4fb7789f5cp-22, 0x1.a01a01a01a01ap-16,
                               -0x1.6c16c16c16c17p-10, 0x1.5555555555555p-5};
    const double z = r.hi * r.hi;
    return 1 - ((z * 0.5) - (((z * z) * polynomial(c, 8, z)) - (r.hi * r.lo)));
}

void rope_cos_sin(int64_t position, float frequency, float *c, float *s)
{
    const double p = (double)position * (double)frequency, k = nearest_integer(p * 0x1.45f306dc9c883p-1);
    const pair r = remainder_of(p, k);
    const double sine = sine_of(r), cosine = cosine_of(r);
    const int quadrant = (int)((int64_t)k & 3);
    const double cosines[] = {cosine, -sine, -cosine, sine}, sines[] = {sine, cosine, -sine, -cosine};
    *c = (float)cosines[quadrant];
    *s = (float)sines[quadrant];
}
