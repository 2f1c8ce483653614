/* Quantizing to K-quants: ggml's search for the scale (and minimum) of each sub-block, operation by operation
 * as in docs/numerics.md. First the scale of each sub-block is found; then all scales are rounded to small
 * integers in units of d (and dmin), and the codes are computed again with what was stored. Where the stored
 * scale is 0, the codes of the search are kept. */
#include "host_ref/blocks.h"

enum { SUPER = 256, SUB_MAX = 32, SUBS_MAX = 16 };

/* The integer nearest to v, ties to even, clamped to the limits; a NaN gives the lower one. */
static float nearest_code(float v, float low, float high)
{
    return rintf(clamp(v, low, high));
}

static float finite_or_zero(float x)
{
    return isfinite(x) ? x : 0.0f;
}

/* ---- With a minimum: Q2_K, Q4_K, Q5_K ---- */

typedef struct {
    int count;   /* elements per sub-block */
    float most;  /* the largest code */
    float units; /* the largest scale and minimum as integers */
    float first; /* added to `most` in the first candidate; 0.1 more in each further one */
    int candidates;
    bool rms_weight; /* the weight is the root mean square plus |x|; else |x| */
    bool squared;    /* the error is squared; else its magnitude is used */
} affine_search;

static const affine_search search_q2_k = {16, 3.0f, 15.0f, -0.5f, 16, false, false};
static const affine_search search_q4_k = {32, 15.0f, 63.0f, -1.0f, 21, true, true};
static const affine_search search_q5_k = {32, 31.0f, 63.0f, -0.5f, 16, true, true};

/* x is approximated by scale * code + minimum. */
typedef struct {
    float scale, minimum;
    float codes[SUB_MAX];
} affine_fit;

typedef struct {
    const affine_search *s;
    const float *x;
    float weights[SUB_MAX];
    float largest, sum_w, sum_x;
} affine_data;

static void make_weights(affine_data *d)
{
    float squares = 0.0f;
    for (int i = 0; i < d->s->count; i++)
        squares += d->x[i] * d->x[i];
    float rms = d->s->rms_weight ? sqrtf(squares / (float)d->s->count) : 0.0f;
    for (int i = 0; i < d->s->count; i++)
        d->weights[i] = rms + fabsf(d->x[i]);
}

/* Codes by `levels` over the range from the minimum to the largest value. */
static void make_affine_codes(const affine_data *d, float factor, float minimum, float *codes)
{
    for (int i = 0; i < d->s->count; i++)
        codes[i] = nearest_code(finite_or_zero(factor) * (d->x[i] - minimum), 0.0f, d->s->most);
}

static float affine_error(const affine_data *d, const affine_fit *fit)
{
    float error = 0.0f;
    for (int i = 0; i < d->s->count; i++) {
        float difference = fit->scale * fit->codes[i] + fit->minimum - d->x[i];
        float size = d->s->squared ? difference * difference : fabsf(difference);
        error += d->weights[i] * size;
    }
    return error;
}

/* The line through the codes by weighted least squares, with a minimum of at most 0. Returns false if there
 * is none. */
static bool fit_line(const affine_data *d, affine_fit *fit)
{
    float sum_l = 0.0f, sum_l2 = 0.0f, sum_xl = 0.0f;
    for (int i = 0; i < d->s->count; i++) {
        float weighted = d->weights[i] * fit->codes[i];
        sum_l += weighted;
        sum_l2 += weighted * fit->codes[i];
        sum_xl += weighted * d->x[i];
    }
    float determinant = d->sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0.0f))
        return false;
    fit->scale = (d->sum_w * sum_xl - d->sum_x * sum_l) / determinant;
    fit->minimum = (sum_l2 * d->sum_x - sum_l * sum_xl) / determinant;
    if (fit->minimum > 0.0f) {
        fit->minimum = 0.0f;
        fit->scale = sum_xl / sum_l2;
    }
    return true;
}

/* Returns the smallest value, or 0 if that is positive. */
static float take_sums(affine_data *d)
{
    float least = d->x[0];
    d->largest = d->x[0];
    d->sum_w = d->weights[0];
    d->sum_x = d->weights[0] * d->x[0];
    for (int i = 1; i < d->s->count; i++) {
        least = d->x[i] < least ? d->x[i] : least;
        d->largest = larger(d->x[i], d->largest);
        d->sum_w += d->weights[i];
        d->sum_x += d->weights[i] * d->x[i];
    }
    return least > 0.0f ? 0.0f : least;
}

/* The candidates are tried in order; each starts from the minimum of the best one so far. */
static affine_fit fit_affine(const affine_search *s, const float *x)
{
    affine_data d = {.s = s, .x = x};
    make_weights(&d);
    affine_fit best = {.minimum = take_sums(&d)};
    if (d.largest == best.minimum)
        return best;
    float factor = s->most / saturated(d.largest - best.minimum);
    best.scale = 1.0f / factor;
    make_affine_codes(&d, factor, best.minimum, best.codes);
    float least_error = affine_error(&d, &best);
    for (int c = 0; c < s->candidates; c++) {
        float levels = s->first + 0.1f * (float)c + s->most;
        affine_fit tried;
        make_affine_codes(&d, levels / saturated(d.largest - best.minimum), best.minimum, tried.codes);
        if (!fit_line(&d, &tried))
            continue;
        float error = affine_error(&d, &tried);
        if (error < least_error) {
            best = tried;
            least_error = error;
        }
    }
    return best;
}

/* A super-block whose sub-blocks have minima, before its bits are assembled. */
typedef struct {
    unsigned codes[SUPER], scales[SUBS_MAX], minima[SUBS_MAX];
} affine_super;

/* Rounds nonnegative numbers to integers in units of the stored f16, which is returned as f32. */
static float put_units(const float *numbers, int count, float units, uint8_t *at, unsigned *integers)
{
    float largest = 0.0f;
    for (int j = 0; j < count; j++)
        largest = larger(numbers[j], largest);
    float inverse = largest > 0.0f ? finite_or_zero(units / largest) : 0.0f;
    for (int j = 0; j < count; j++)
        integers[j] = (unsigned)nearest_code(inverse * numbers[j], 0.0f, units);
    hr_block_put_f16(at, largest / units);
    return hr_block_f16(at);
}

static affine_super encode_affine(const affine_search *s, const float *x, uint8_t *d_at, uint8_t *dmin_at)
{
    affine_super super;
    affine_fit fits[SUBS_MAX];
    float scales[SUBS_MAX], minima[SUBS_MAX];
    const int subs = SUPER / s->count;
    for (int j = 0; j < subs; j++) {
        fits[j] = fit_affine(s, x + j * s->count);
        scales[j] = fits[j].scale;
        minima[j] = -fits[j].minimum;
    }
    float d = put_units(scales, subs, s->units, d_at, super.scales);
    float dmin = put_units(minima, subs, s->units, dmin_at, super.minima);
    for (int i = 0; i < SUPER; i++) {
        int j = i / s->count;
        float step = d * (float)super.scales[j], least = dmin * (float)super.minima[j];
        float code = fits[j].codes[i % s->count];
        super.codes[i] = (unsigned)(step != 0.0f ? nearest_code((x[i] + least) / step, 0.0f, s->most) : code);
    }
    return super;
}

/* ---- Without a minimum: Q3_K, Q6_K ---- */

/* x is approximated by scale * (code - half). Sub-blocks that are nearly zero have scale 0 and codes 0. */
typedef struct {
    float scale, codes[16];
} symmetric_fit;

#define LEAST_MAGNITUDE 1e-15f

/* The sums of x^3 l and x^2 l^2 for weighted least squares, where l are the codes and x^2 the weights. */
typedef struct {
    float xl, l2;
} symmetric_sums;

static symmetric_sums sums_of_codes(const float *x, float factor, float half, float *l)
{
    symmetric_sums sums = {0.0f, 0.0f};
    for (int i = 0; i < 16; i++) {
        l[i] = nearest_code(factor * x[i], -half, half - 1.0f);
        float w = x[i] * x[i];
        sums.xl += w * x[i] * l[i];
        sums.l2 += w * l[i] * l[i];
    }
    return sums;
}

/* If a sum overflows, the scale is taken from the factor that the codes were computed with. */
static float quotient_or(symmetric_sums sums, float otherwise)
{
    float scale = sums.l2 != 0.0f ? sums.xl / sums.l2 : 0.0f;
    return isfinite(scale) ? scale : otherwise;
}

static void shift_codes(symmetric_fit *fit, float half)
{
    for (int i = 0; i < 16; i++)
        fit->codes[i] += half;
}

/* Tries nineteen factors; the first maps the value of largest magnitude to the lowest code. */
static symmetric_fit fit_q6_k(const float *x)
{
    const float half = 32.0f;
    symmetric_fit best = {0};
    float top = hr_block_first_of_largest(x, 16);
    if (fabsf(top) < LEAST_MAGNITUDE)
        return best;
    float factor = -half / top;
    symmetric_sums sums = sums_of_codes(x, factor, half, best.codes);
    best.scale = quotient_or(sums, 1.0f / factor);
    float merit = best.scale * sums.xl;
    for (int c = -9; c <= 9; c++) {
        symmetric_fit tried;
        if (c == 0)
            continue;
        sums = sums_of_codes(x, -(half + 0.1f * (float)c) / top, half, tried.codes);
        tried.scale = sums.xl / sums.l2;
        if (sums.l2 > 0.0f && sums.xl * sums.xl > merit * sums.l2 && isfinite(tried.scale)) {
            best = tried;
            merit = best.scale * sums.xl;
        }
    }
    shift_codes(&best, half);
    return best;
}

/* Moves one code to where the others suggest, if that improves the fit as a whole. */
static bool improve_code(float x, float *code, symmetric_sums *sums)
{
    float w = x * x;
    symmetric_sums others = {sums->xl - w * x * *code, 0.0f};
    if (!(others.xl > 0.0f))
        return false;
    others.l2 = sums->l2 - w * *code * *code;
    float l = nearest_code(x * others.l2 / others.xl, -4.0f, 3.0f);
    if (l == *code)
        return false;
    others.xl += w * x * l;
    others.l2 += w * l * l;
    if (!(others.l2 > 0.0f && others.xl * others.xl * sums->l2 > sums->xl * sums->xl * others.l2))
        return false;
    *code = l;
    *sums = others;
    return true;
}

static symmetric_fit fit_q3_k(const float *x)
{
    const float half = 4.0f;
    symmetric_fit fit = {0};
    float top = hr_block_first_of_largest(x, 16);
    if (fabsf(top) < LEAST_MAGNITUDE)
        return fit;
    float factor = -half / top;
    symmetric_sums sums = sums_of_codes(x, factor, half, fit.codes);
    bool changed = true;
    for (int round = 0; round < 5 && changed; round++) {
        changed = false;
        for (int i = 0; i < 16; i++)
            changed |= improve_code(x[i], &fit.codes[i], &sums);
    }
    fit.scale = quotient_or(sums, 1.0f / factor);
    shift_codes(&fit, half);
    return fit;
}

typedef struct {
    unsigned codes[SUPER];
    int scales[SUBS_MAX];
} symmetric_super;

typedef struct {
    symmetric_fit (*fit)(const float *x);
    float half;  /* codes are from -half to half - 1, and stored with half added */
    float units; /* likewise for scales */
    float least; /* if all scales of a super-block are smaller, it is all zeros */
} symmetric_search;

static const symmetric_search search_q3_k = {fit_q3_k, 4.0f, 32.0f, FLT_TRUE_MIN};
static const symmetric_search search_q6_k = {fit_q6_k, 32.0f, 128.0f, LEAST_MAGNITUDE};

/* The scale of largest magnitude becomes -units. Returns false if nothing is stored. */
static bool encode_symmetric(const symmetric_search *s, const float *x, uint8_t *d_at, symmetric_super *super)
{
    symmetric_fit fits[SUBS_MAX];
    float scales[SUBS_MAX];
    for (int j = 0; j < SUBS_MAX; j++) {
        fits[j] = s->fit(x + 16 * j);
        scales[j] = fits[j].scale;
    }
    float top = hr_block_first_of_largest(scales, SUBS_MAX), factor = -s->units / top;
    if (fabsf(top) < s->least)
        return false;
    hr_block_put_f16(d_at, 1.0f / factor);
    for (int j = 0; j < SUBS_MAX; j++)
        super->scales[j] = (int)nearest_code(factor * scales[j], -s->units, s->units - 1.0f);
    for (int i = 0; i < SUPER; i++) {
        float step = hr_block_f16(d_at) * (float)super->scales[i / 16];
        float code = fits[i / 16].codes[i % 16];
        if (step != 0.0f)
            code = nearest_code(x[i] / step, -s->half, s->half - 1.0f) + s->half;
        super->codes[i] = (unsigned)code;
    }
    return true;
}

/* ---- Bits ---- */

static void put_bits(uint8_t *at, unsigned value, int shift)
{
    *at = (uint8_t)(*at | value << shift);
}

static void put_two_bits(uint8_t *codes, int i, unsigned code)
{
    put_bits(&codes[i / 128 * 32 + i % 32], code & 3, 2 * (i % 128 / 32));
}

void hr_q2_k_encode(const float *x, uint8_t *block)
{
    affine_super super = encode_affine(&search_q2_k, x, block + 80, block + 82);
    for (int j = 0; j < 16; j++)
        block[j] = (uint8_t)(super.scales[j] | super.minima[j] << 4);
    for (int i = 0; i < SUPER; i++)
        put_two_bits(block + 16, i, super.codes[i]);
}

static void put_q3_k_scale(uint8_t *scales, int j, unsigned scale)
{
    put_bits(&scales[j % 8], scale & 15, j < 8 ? 0 : 4);
    put_bits(&scales[8 + j % 4], scale >> 4, 2 * (j / 4));
}

void hr_q3_k_encode(const float *x, uint8_t *block)
{
    symmetric_super super;
    if (!encode_symmetric(&search_q3_k, x, block + 108, &super))
        return;
    for (int j = 0; j < SUBS_MAX; j++)
        put_q3_k_scale(block + 96, j, (unsigned)(super.scales[j] + 32));
    for (int i = 0; i < SUPER; i++) {
        put_two_bits(block + 32, i, super.codes[i]);
        put_bits(&block[i % 32], super.codes[i] >> 2, i / 32);
    }
}

static void put_q4_k_scale(uint8_t *scales, int j, unsigned scale, unsigned minimum)
{
    if (j < 4) {
        put_bits(&scales[j], scale, 0);
        put_bits(&scales[j + 4], minimum, 0);
        return;
    }
    put_bits(&scales[j + 4], (scale & 15) | (minimum & 15) << 4, 0);
    put_bits(&scales[j - 4], scale >> 4, 6);
    put_bits(&scales[j], minimum >> 4, 6);
}

/* Shared by Q4_K and Q5_K: d, dmin, scales[12], and the low nibbles at `nibbles`. */
static affine_super encode_q45_k(const affine_search *s, const float *x, uint8_t *block, uint8_t *nibbles)
{
    affine_super super = encode_affine(s, x, block, block + 2);
    for (int j = 0; j < 8; j++)
        put_q4_k_scale(block + 4, j, super.scales[j], super.minima[j]);
    for (int i = 0; i < SUPER; i++)
        put_bits(&nibbles[i / 64 * 32 + i % 32], super.codes[i] & 15, i % 64 < 32 ? 0 : 4);
    return super;
}

void hr_q4_k_encode(const float *x, uint8_t *block)
{
    encode_q45_k(&search_q4_k, x, block, block + 16);
}

void hr_q5_k_encode(const float *x, uint8_t *block)
{
    affine_super super = encode_q45_k(&search_q5_k, x, block, block + 48);
    for (int i = 0; i < SUPER; i++)
        put_bits(&block[16 + i % 32], super.codes[i] >> 4, i / 32);
}

void hr_q6_k_encode(const float *x, uint8_t *block)
{
    symmetric_super super;
    if (!encode_symmetric(&search_q6_k, x, block + 208, &super))
        return;
    for (int j = 0; j < SUBS_MAX; j++)
        block[192 + j] = (uint8_t)super.scales[j];
    for (int i = 0; i < SUPER; i++) {
        int n = i / 128, j = i % 128 / 32, l = i % 32;
        put_bits(&block[64 * n + 32 * (j & 1) + l], super.codes[i] & 15, 4 * (j >> 1));
        put_bits(&block[128 + 32 * n + l], super.codes[i] >> 4, 2 * j);
    }
}
