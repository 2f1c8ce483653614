/* The tables of rope. Powers and logarithms are series in long double, which has bits to spare; cosines and sines are the sequence
 * of docs/numerics.md in double. */
#include <math.h>

#include "host_ref/internal.h"

static const double two_pi = 0x1.921fb54442d18p+2;

/* m = x / 2^e within a factor of sqrt(2) of 1; ln m = 2 (t + t^3 / 3 + ...), t = (m - 1) / (m + 1). */
static long double ln_of(long double x)
{
    const long double ln2 = 0xb.17217f7d1cf79abcap-4L;
    int e = 0;
    for (; x > 1.4142135623730950488L; e++)
        x /= 2;
    for (; x < 0.7071067811865475244L; e--)
        x *= 2;
    const long double t = (x - 1) / (x + 1);
    long double power = t, sum = 0;
    for (int n = 1; n < 60; n += 2, power *= t * t)
        sum += power / n;
    return 2 * sum + e * ln2;
}

static long double exp_of(long double x)
{
    int halvings = 0;
    for (; x < -0.5L; halvings++)
        x /= 2;
    long double term = 1, sum = 0;
    for (int n = 1; n < 40; n++) {
        sum += term;
        term *= x / n;
    }
    for (; halvings > 0; halvings--)
        sum *= sum;
    return sum;
}

static double by_llama3(const ref_rope_tables_spec *s, double f)
{
    const double length = (double)s->length, wave = two_pi / f;
    if (wave < length / s->high)
        return f;
    if (wave > length / s->low)
        return f / s->factor;
    const double t = (length / wave - s->low) / (s->high - s->low);
    return (1 - t) * (f / s->factor) + t * f;
}

/* The number of the pair that turns so often within the original length. */
static double pair_of(const ref_rope_tables_spec *s, double turns)
{
    return (double)s->rotary * (double)ln_of((double)s->length / (turns * two_pi)) /
           (2 * (double)ln_of(s->base));
}

static double by_yarn(const ref_rope_tables_spec *s, double f, int64_t i)
{
    double low = pair_of(s, s->low), high = pair_of(s, s->high);
    if (!s->is_exact) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, (double)(s->rotary - 1));
    if (low == high)
        high = low + 0.001;
    const double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
    return f / s->factor * ramp + f * (1 - ramp);
}

float hr_rope_frequency(const ref_rope_tables_spec *s, int64_t i)
{
    float f = s->frequencies ? s->frequencies[i]
                             : (float)exp_of(-ln_of(s->base) * (long double)(2 * i) / (long double)s->rotary);
    if (s->divisors)
        f = (float)((double)f / (double)s->divisors[i]);
    switch (s->rule) {
    case REF_ROPE_LINEAR:
        return (float)((double)f / s->factor);
    case REF_ROPE_LLAMA3:
        return (float)by_llama3(s, f);
    case REF_ROPE_YARN:
        return (float)by_yarn(s, f, i);
    default:
        return f;
    }
}

/* h + l = h + l + term. */
static void add_term(double *h, double *l, double term)
{
    const double s = *h + term, b = s - *h;
    *l += (*h - (s - b)) + (term - b);
    *h = s;
}

static double series(const double *divisors, int count, double z)
{
    double y = 1 / divisors[count - 1];
    for (int i = count - 2; i >= 0; i--)
        y = 1 / divisors[i] + z * y;
    return y;
}

static void cos_sin(double p, double *c, double *s)
{
    /* (-1)^n (2n)! from n = 2, and (-1)^n (2n + 1)! from n = 1 */
    static const double even[] = {24,         -720,          40320,           -3628800,
                                  479001600., -87178291200., 20922789888000., -6402373705728000.},
                        odd[] = {-6,        120,         -5040,           362880,
                                 -39916800, 6227020800., -1307674368000., 355687428096000.};
    const double k = nearbyint(p * 0x1.45f306dc9c883p-1);
    double h = p - k * 0x1.921fb0p+0, l = 0;
    add_term(&h, &l, -(k * 0x1.5110bp-22));
    add_term(&h, &l, -(k * 0x1.184698p-44));
    add_term(&h, &l, -(k * 0x1.3198a2e037073p-69));
    const double head = h + l, tail = l - (head - h), z = head * head;
    const double sine = head + ((head * (z * series(odd, 8, z))) + tail),
                 cosine = 1 - ((z * 0.5) - (((z * z) * series(even, 8, z)) - (head * tail)));
    const int64_t quadrant = (int64_t)k % 4;
    *c = quadrant == 0 ? cosine : quadrant == 1 ? -sine : quadrant == 2 ? -cosine : sine;
    *s = quadrant == 0 ? sine : quadrant == 1 ? cosine : quadrant == 2 ? -sine : -cosine;
}

static float attention_factor(const ref_rope_tables_spec *s)
{
    if (s->attention_factor != 0)
        return s->attention_factor;
    return s->rule == REF_ROPE_YARN && s->factor > 1 ? (float)(0.1 * (double)ln_of(s->factor) + 1) : 1;
}

void hr_rope_tables(const ref_rope_tables_spec *spec, int64_t first, int64_t positions, float *c, float *s)
{
    const int64_t pairs = spec->rotary / 2;
    const float factor = attention_factor(spec);
    for (int64_t k = 0; k < positions; k++)
        for (int64_t i = 0; i < pairs; i++) {
            double cosine, sine;
            cos_sin((double)(first + k) * (double)hr_rope_frequency(spec, i), &cosine, &sine);
            c[k * pairs + i] = factor == 1 ? (float)cosine : (float)cosine * factor;
            s[k * pairs + i] = factor == 1 ? (float)sine : (float)sine * factor;
        }
}
