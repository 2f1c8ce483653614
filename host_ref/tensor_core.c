/* One tensor-core operation, as defined in docs/numerics.md ("Products in mode tensor"), and the sums of products
 * in mode tensor.
 *
 * Numbers are doubles here: a product of two inputs is exact in a double, and so is a sum of a few truncated ones, which
 * are integers below 2^33. ptxvm has its own model, which works on integers; the two share no code. */
#include "host_ref/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows ---- */

/* The types of inputs. */
typedef struct {
    qdnnDataType_t type;
    int least_exponent; /* of normal numbers; also the exponent of subnormals */
} input_type;

static const input_type input_types[] = {{QDNN_DATA_F16, -14},
                                         {QDNN_DATA_BF16, -126},
                                         {QDNN_DATA_F8E4M3, -6},
                                         {QDNN_DATA_F8E5M2, -14},
                                         {QDNN_DATA_F32, -126}};

enum { HALVES = 1 << 0, BYTES = 1 << 1 }; /* f16 and bf16; e4m3 and e5m2 */

/* An operation adds `products` products to an addend, aligned with `fraction` bits below the largest
 * exponent. An instruction consists of as many operations as its k requires, one after the other. */
typedef struct {
    ref_tensor_family family;
    unsigned types;
    int products, fraction, zero_exponent;
    int kept;  /* bits after the leading one of a result */
    int depth; /* k of an instruction */
    ref_standing standing;
} core_row;

static const core_row core_rows[] = {
    {REF_TENSOR_SM75, HALVES, 8, 24, -132, 23, 8, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM80, HALVES, 8, 24, -132, 23, 16,
     REF_STANDING_PUBLISHED}, /* measured, except for the chain of two */
    {REF_TENSOR_SM80, BYTES, 16, 13, -133, 13, 32, REF_STANDING_MEASURED}, /* only on sm_89 */
    {REF_TENSOR_SM90, HALVES, 16, 25, -133, 23, 16, REF_STANDING_MEASURED},
    {REF_TENSOR_SM100, HALVES, 16, 25, -133, 23, 16, REF_STANDING_MEASURED},
    {REF_TENSOR_SM120, HALVES, 16, 25, -133, 23, 16, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM120, BYTES, 32, 25, -133, 23, 32, REF_STANDING_PUBLISHED},
};

/* wgmma of sm_90, by the type of its inputs: TF32 is F32 whose low 13 bits are dropped. */
enum { SINGLES = 1 << 2 };
static const core_row wgmma_rows[] = {
    {REF_TENSOR_SM90, HALVES, 16, 25, -133, 23, 16, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM90, SINGLES, 8, 25, -133, 23, 8, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM90, BYTES, 32, 13, -134, 13, 32, REF_STANDING_PUBLISHED}, /* measured where c = 0 */
};

/* The SMs, and whether the rows of the family are only assumed to apply to them. */
static const struct {
    int sm;
    ref_tensor_family family;
    bool assumed, has_bytes;
} sms[] = {
    {75, REF_TENSOR_SM75, false, false},  {80, REF_TENSOR_SM80, false, false},
    {86, REF_TENSOR_SM80, false, false},  {87, REF_TENSOR_SM80, false, false},
    {88, REF_TENSOR_SM80, true, false},   {89, REF_TENSOR_SM80, false, true},
    {90, REF_TENSOR_SM90, false, false},  {100, REF_TENSOR_SM100, false, false},
    {103, REF_TENSOR_SM100, true, false}, {110, REF_TENSOR_SM100, true, false},
    {120, REF_TENSOR_SM120, false, true}, {121, REF_TENSOR_SM120, false, true},
};
enum { SM_COUNT = sizeof sms / sizeof sms[0], ROW_COUNT = sizeof core_rows / sizeof core_rows[0] };

static int sm_place(int sm)
{
    for (int i = 0; i < SM_COUNT; i++)
        if (sms[i].sm == sm)
            return i;
    hr_require(false, "sm_%d has no family of tensor cores", sm);
    abort();
}

ref_tensor_family ref_tensor_family_of(int sm)
{
    return sms[sm_place(sm)].family;
}

static bool is_bytes(qdnnDataType_t type)
{
    return type == QDNN_DATA_F8E4M3 || type == QDNN_DATA_F8E5M2;
}

static const core_row *find_row(ref_tensor_family family, qdnnDataType_t type)
{
    const unsigned want = is_bytes(type) ? BYTES : HALVES;
    for (int i = 0; i < ROW_COUNT; i++)
        if (core_rows[i].family == family && core_rows[i].types & want)
            return &core_rows[i];
    return NULL;
}

bool ref_tensor_has(int sm, qdnnDataType_t type)
{
    const int place = sm_place(sm);
    if (is_bytes(type))
        return sms[place].has_bytes;
    return type == QDNN_DATA_F16 || (type == QDNN_DATA_BF16 && sms[place].family != REF_TENSOR_SM75);
}

ref_standing ref_tensor_standing(int sm, qdnnDataType_t type)
{
    const int place = sm_place(sm);
    return sms[place].assumed ? REF_STANDING_ASSUMED : find_row(sms[place].family, type)->standing;
}

/* ---- One operation ---- */

/* An addend: its value, and the exponent used for its alignment. */
typedef struct {
    double value;
    int exponent;
} term;

/* The exponent of a number that is not zero, infinite or NaN; subnormals have the smallest one. Subnormal
 * f32, and products of them, are normal doubles. */
static int exponent_of(double value, int least)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    return exponent > least ? exponent : least;
}

/* value * 2^exponent, exact: neither is near the ends of a double's range. (ldexp does the same, but would
 * take most of the time of a product.) */
static double scaled(double value, int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return value * power;
}

/* Truncates toward zero; the numbers truncated here are below 2^40. */
static double truncate_toward_zero(double value)
{
    return (double)(int64_t)value;
}

static term addend_of(const core_row *row, float c)
{
    return (term){c, c == 0.0f || !isfinite(c) ? row->zero_exponent : exponent_of(c, -126)};
}

static term product_of(const core_row *row, term a, term b)
{
    const double value = a.value * b.value;
    return (term){value, value == 0.0 || !isfinite(value) ? row->zero_exponent : a.exponent + b.exponent};
}

/* Truncates toward zero to an f32 with so many bits after the leading one. A value that is too large
 * nevertheless becomes infinite. */
static float cut_to_f32(double value, int kept)
{
    if (value == 0.0)
        return 0.0f;
    const int exponent = exponent_of(value, -126);
    const double units = truncate_toward_zero(scaled(value, kept - exponent));
    const double result = scaled(units, exponent - kept);
    if (fabs(result) >= 0x1p128)
        return copysignf(INFINITY, (float)copysign(1.0, value));
    return (float)(units == 0.0 ? copysign(0.0, value) : result);
}

/* The sum if something is infinite or NaN: ordinary addition gives the right result. */
static float sum_of_specials(const term *terms, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        if (!isfinite(terms[i].value))
            sum += terms[i].value;
    return hr_canonical((float)sum);
}

enum { TERMS_MAX = 33 };

static bool are_negative_zeros(const term *terms, int count)
{
    for (int i = 0; i < count; i++)
        if (terms[i].value != 0.0 || !signbit(terms[i].value))
            return false;
    return true;
}

static float operation(const core_row *row, const term *terms, int count)
{
    int top = row->zero_exponent;
    bool special = false;
    for (int i = 0; i < count; i++) {
        special |= !isfinite(terms[i].value);
        if (terms[i].exponent > top)
            top = terms[i].exponent;
    }
    if (special)
        return sum_of_specials(terms, count);
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += (int64_t)scaled(terms[i].value, row->fraction - top); /* toward zero */
    if (sum == 0 && are_negative_zeros(terms, count))
        return -0.0f;
    return cut_to_f32(scaled((double)sum, top - row->fraction), row->kept);
}

/* ---- Inputs ---- */

float hr_input_load(qdnnDataType_t type, const void *array, int64_t index)
{
    if (!is_bytes(type))
        return hr_scalar_load(type, array, index);
    return hr_minifloat_to_f32(type == QDNN_DATA_F8E4M3 ? REF_E4M3 : REF_E5M2,
                               ((const uint8_t *)array)[index]);
}

static int least_exponent(qdnnDataType_t type)
{
    for (size_t i = 0; i < sizeof input_types / sizeof input_types[0]; i++)
        if (input_types[i].type == type)
            return input_types[i].least_exponent;
    hr_require(false, "tensor cores take F16, BF16, F8E4M3 or F8E5M2, not type %d", (int)type);
    return 0;
}

static term input_of(float value, int least)
{
    return (term){value, value == 0.0f || !isfinite(value) ? 0 : exponent_of(value, least)};
}

/* Inputs of a type: numbers that it can represent. */
typedef struct {
    qdnnDataType_t type;
    const float *at;
} inputs;

/* ---- Instructions and sums ---- */

/* One instruction over `depth` numbers. */
static float instruction(const core_row *row, inputs a, inputs b, float c)
{
    term terms[TERMS_MAX];
    const int a_least = least_exponent(a.type), b_least = least_exponent(b.type);
    for (int from = 0; from < row->depth; from += row->products) {
        for (int i = 0; i < row->products; i++)
            terms[i] = product_of(row, input_of(a.at[from + i], a_least), input_of(b.at[from + i], b_least));
        terms[row->products] = addend_of(row, c);
        c = operation(row, terms, row->products + 1);
    }
    return c;
}

/* The same where there are only `known` of them: zeros follow. */
static float last_instruction(const core_row *row, inputs a, inputs b, int64_t known, float c)
{
    float x[TERMS_MAX] = {0}, w[TERMS_MAX] = {0};
    memcpy(x, a.at, (size_t)known * sizeof *x);
    memcpy(w, b.at, (size_t)known * sizeof *w);
    return instruction(row, (inputs){a.type, x}, (inputs){b.type, w}, c);
}

static float sum_of_strips(const core_row *row, inputs a, inputs b, int64_t k)
{
    float sum = 0.0f;
    for (int64_t strip = 0; strip < k; strip += REF_TENSOR_STRIP) {
        float part = 0.0f;
        const int64_t end = k - strip < REF_TENSOR_STRIP ? k : strip + REF_TENSOR_STRIP;
        for (int64_t at = strip; at < end; at += row->depth) {
            const inputs x = {a.type, a.at + at}, w = {b.type, b.at + at};
            part = end - at < row->depth ? last_instruction(row, x, w, end - at, part)
                                         : instruction(row, x, w, part);
        }
        sum = strip == 0 ? part : hr_canonical(sum + part);
    }
    return hr_canonical(sum + 0.0f);
}

static const core_row *require_row(ref_tensor_family family, qdnnDataType_t a_type, qdnnDataType_t b_type)
{
    const core_row *row = find_row(family, a_type);
    hr_require(row && is_bytes(a_type) == is_bytes(b_type) && (is_bytes(a_type) || a_type == b_type) &&
                   !(family == REF_TENSOR_SM75 && a_type == QDNN_DATA_BF16),
               "the family has no instruction for types %d and %d", (int)a_type, (int)b_type);
    return row;
}

int ref_tensor_depth(ref_tensor_family family, qdnnDataType_t type)
{
    return require_row(family, type, type)->depth;
}

float hr_tensor_mma(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                    const void *b, int64_t k, float c)
{
    const core_row *row = require_row(family, a_type, b_type);
    float x[TERMS_MAX], w[TERMS_MAX];
    hr_require(k >= 0 && k <= row->depth, "an instruction has a k of %d", row->depth);
    for (int64_t i = 0; i < k; i++) {
        x[i] = hr_input_load(a_type, a, i);
        w[i] = hr_input_load(b_type, b, i);
    }
    return last_instruction(row, (inputs){a_type, x}, (inputs){b_type, w}, k, c);
}

/* ---- wgmma ---- */

static const core_row *wgmma_row(qdnnDataType_t type)
{
    const unsigned want = is_bytes(type) ? BYTES : type == QDNN_DATA_F32 ? SINGLES : HALVES;
    const core_row *row = wgmma_rows;
    while (!(row->types & want))
        row++;
    return row;
}

int hr_tensor_wgmma_depth(qdnnDataType_t type)
{
    least_exponent(type); /* an input at all */
    return wgmma_row(type)->depth;
}

static float wgmma_input(qdnnDataType_t type, const void *array, int64_t index)
{
    if (type != QDNN_DATA_F32)
        return hr_input_load(type, array, index);
    uint32_t bits;
    float value;
    memcpy(&bits, (const float *)array + index, sizeof bits);
    bits &= ~UINT32_C(0x1FFF);
    memcpy(&value, &bits, sizeof value);
    return value;
}

float hr_tensor_wgmma(qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type, const void *b, float c)
{
    const core_row *row = wgmma_row(a_type);
    float x[TERMS_MAX], w[TERMS_MAX];
    hr_require(is_bytes(a_type) ? is_bytes(b_type) : a_type == b_type,
               "wgmma does not multiply types %d and %d", (int)a_type, (int)b_type);
    for (int i = 0; i < row->depth; i++) {
        x[i] = wgmma_input(a_type, a, i);
        w[i] = wgmma_input(b_type, b, i);
    }
    return instruction(row, (inputs){a_type, x}, (inputs){b_type, w}, c);
}

/* ---- tcgen05 ---- */

static const core_row tcgen05_rows[] = {
    {REF_TENSOR_SM100, HALVES, 16, 25, -133, 23, 16, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM100, SINGLES, 8, 25, -133, 23, 8, REF_STANDING_PUBLISHED},
    {REF_TENSOR_SM100, BYTES, 32, 25, -133, 23, 32,
     REF_STANDING_PUBLISHED}, /* e3m2, e2m3 and scales: assumed */
};

float hr_tensor_tcgen05(qdnnDataType_t type, const void *a, const void *b, float c)
{
    const core_row *row = &tcgen05_rows[type == QDNN_DATA_F32];
    float x[TERMS_MAX], w[TERMS_MAX];
    hr_require(type == QDNN_DATA_F16 || type == QDNN_DATA_BF16 || type == QDNN_DATA_F32,
               "tcgen05 of F16, BF16 or F32 (as TF32), not of type %d", (int)type);
    for (int i = 0; i < row->depth; i++) {
        x[i] = wgmma_input(type, a, i);
        w[i] = wgmma_input(type, b, i);
    }
    return instruction(row, (inputs){type, x}, (inputs){type, w}, c);
}

/* The least exponent of each minifloat, by ref_minifloat. */
static const int least_of_minifloat[] = {
    [REF_E4M3] = -6, [REF_E5M2] = -14, [REF_E2M3] = 0, [REF_E3M2] = -2, [REF_E2M1] = 0};

float hr_tensor_tcgen05_f8f6f4(ref_minifloat a_type, const uint8_t *a, ref_minifloat b_type, const uint8_t *b,
                               const uint8_t *scales, float c)
{
    const core_row *row = &tcgen05_rows[2];
    const int exponent = scales ? scales[0] - 127 + scales[1] - 127 : 0;
    term terms[TERMS_MAX];
    if (scales && (scales[0] == 0xFF || scales[1] == 0xFF))
        return hr_canonical(NAN);
    for (int i = 0; i < row->depth; i++) {
        const term x = input_of(hr_minifloat_to_f32(a_type, a[i]), least_of_minifloat[a_type]),
                   w = input_of(hr_minifloat_to_f32(b_type, b[i]), least_of_minifloat[b_type]);
        terms[i] = product_of(row, x, w);
        if (terms[i].value == 0.0 || !isfinite(terms[i].value))
            continue;
        terms[i].value = scaled(terms[i].value, exponent);
        terms[i].exponent += exponent;
    }
    terms[row->depth] = addend_of(row, c);
    return operation(row, terms, row->depth + 1);
}

/* mxf4 and mxf4nvf4: groups of 16 products are summed exactly; such a sum is aligned by the exponents of its scales. */
static const core_row fp4_row = {REF_TENSOR_SM100, 0, 0, 35, -139, 23, 64, REF_STANDING_ASSUMED};

static term scale_of(uint8_t bits, bool ue4m3)
{
    if (!ue4m3)
        return bits == 0xFF ? (term){NAN, 0} : (term){scaled(1.0, bits - 127), bits - 127};
    const float value = hr_minifloat_to_f32(REF_E4M3, bits & 0x7F);
    return (term){value, value > 0.0f ? exponent_of(value, -6) : 0};
}

static term group_of(const uint8_t *a, const uint8_t *b, term a_scale, term b_scale)
{
    double sum = 0.0;
    bool any = false, all_negative = true;
    for (int i = 0; i < 16; i++) {
        const double product =
            (double)hr_minifloat_to_f32(REF_E2M1, a[i]) * hr_minifloat_to_f32(REF_E2M1, b[i]);
        sum += product;
        any |= product != 0.0;
        all_negative &= signbit(product) != 0;
    }
    if (!isfinite(a_scale.value) || !isfinite(b_scale.value))
        return (term){NAN, 0};
    if (!any || a_scale.value == 0.0 || b_scale.value == 0.0)
        return (term){all_negative ? -0.0 : 0.0, fp4_row.zero_exponent};
    return (term){sum * a_scale.value * b_scale.value, a_scale.exponent + b_scale.exponent};
}

float hr_tensor_tcgen05_fp4(const uint8_t *a, const uint8_t *b, int scales, bool ue4m3,
                            const uint8_t *a_scale, const uint8_t *b_scale, float c)
{
    term terms[5];
    hr_require(scales == 2 || scales == 4, "mxf4 and mxf4nvf4 have 2 or 4 scales, not %d", scales);
    for (int g = 0; g < 4; g++)
        terms[g] = group_of(a + 16 * g, b + 16 * g, scale_of(a_scale[g * scales / 4], ue4m3),
                            scale_of(b_scale[g * scales / 4], ue4m3));
    terms[4] = addend_of(&fp4_row, c);
    return operation(&fp4_row, terms, 5);
}

static float *new_numbers(int64_t n)
{
    float *numbers = malloc((size_t)(n > 0 ? n : 1) * sizeof *numbers);
    hr_require(numbers, "out of memory for rows of %lld", (long long)n);
    return numbers;
}

float hr_tensor_sum(ref_tensor_family family, qdnnDataType_t a_type, const void *a, qdnnDataType_t b_type,
                    const void *b, int64_t k)
{
    const core_row *row = require_row(family, a_type, b_type);
    float *x = new_numbers(k), *w = new_numbers(k);
    for (int64_t i = 0; i < k; i++) {
        x[i] = hr_input_load(a_type, a, i);
        w[i] = hr_input_load(b_type, b, i);
    }
    const float sum = sum_of_strips(row, (inputs){a_type, x}, (inputs){b_type, w}, k);
    free(x);
    free(w);
    return sum;
}

/* ---- Products ---- */

typedef struct {
    const core_row *row;
    qdnnDataType_t x, w; /* the types of the instruction's inputs */
} tensor_mode;

/* 16-bit weights are rounded to their type; x already has its type. */
static void round_weights(const void *user, float *w, int64_t n)
{
    const tensor_mode *mode = user;
    for (int64_t k = 0; k < n && !is_bytes(mode->w); k++) {
        uint16_t half = 0;
        hr_scalar_store(mode->w, &half, 0, w[k]);
        w[k] = hr_scalar_load(mode->w, &half, 0);
    }
}

static float tensor_sum(const void *user, const float *x, const float *w, int64_t n)
{
    const tensor_mode *mode = user;
    return sum_of_strips(mode->row, (inputs){mode->x, x}, (inputs){mode->w, w}, n);
}

static void product_of_mode(const ref_product *p, const ref_product_arrays *a, const tensor_mode *mode)
{
    hr_product(p, a, (hr_mode){tensor_sum, round_weights, mode});
}

void hr_product_tensor(const ref_product *p, const ref_product_arrays *a, ref_tensor_family family)
{
    hr_require(!is_bytes(p->x), "with x in FP8, SMs of a family differ: hr_product_tensor_on takes the SM");
    const tensor_mode mode = {require_row(family, p->x, p->x), p->x, p->x};
    product_of_mode(p, a, &mode);
}

void hr_product_tensor_on(const ref_product *p, const ref_product_arrays *a, int sm)
{
    const ref_tensor_family family = ref_tensor_family_of(sm);
    const qdnnDataType_t w = p->weights.storage;
    if (!is_bytes(p->x)) {
        hr_product_tensor(p, a, family);
        return;
    }
    hr_require(is_bytes(w) && p->weights.no_scale, "x in FP8 takes weights in FP8 without scales");
    const tensor_mode of_bytes = {find_row(family, p->x), p->x, w},
                      of_halves = {find_row(family, QDNN_DATA_F16), QDNN_DATA_F16, QDNN_DATA_F16};
    product_of_mode(p, a, ref_tensor_has(sm, p->x) ? &of_bytes : &of_halves);
}
