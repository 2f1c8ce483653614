#include "formats/code_bounds.h"

#include "formats/ref_spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS_MAX = 64 };

/* The value of the code that host_ref chooses for x. */
static float value_for(const ref_quant_spec *spec, float x)
{
    float scale = 1.0f, value = 0.0f;
    uint8_t codes[8] = {0};
    ref_arrays arrays = {.codes = codes, .scale = &scale};
    ref_quantize(spec, 1, 1, &x, &arrays);
    ref_dequantize(spec, 1, 1, &arrays, &value);
    return value;
}

static float value_of(const ref_quant_spec *spec, int code)
{
    float scale = 1.0f, value = 0.0f;
    uint8_t codes[8] = {(uint8_t)code};
    ref_arrays arrays = {.codes = codes, .scale = &scale};
    ref_dequantize(spec, 1, 1, &arrays, &value);
    return value;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The finite values in increasing order; their number. */
static int list_values(const ref_quant_spec *spec, unsigned bits, float values[CODE_BOUNDS_MAX])
{
    int n = 0;
    for (int code = 0; code < 1 << bits; code++) {
        values[n] = value_of(spec, code);
        n += isfinite(values[n]) != 0;
    }
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n;
}

/* The last f32 from `low` on whose code is not worth more than that of `low`; that of `high` is. */
static float last_before(const ref_quant_spec *spec, float low, float high)
{
    const float worth = value_for(spec, low);
    for (;;) {
        /* between +-2^127 the middle is exact enough to end at two neighbours */
        const float middle = low + (high - low) * 0.5f;
        const float at = middle == low || middle == high ? nextafterf(low, high) : middle;
        if (at == high)
            return low;
        *(value_for(spec, at) > worth ? &high : &low) = at;
    }
}

static void find(code_bounds *found, const ref_quant_spec *spec, unsigned bits)
{
    float values[CODE_BOUNDS_MAX];
    const int n = list_values(spec, bits, values);
    for (int i = 0; i + 1 < n; i++)
        if (value_for(spec, values[i + 1]) > value_for(spec, values[i]))
            found->bound[found->count++] = last_before(spec, values[i], values[i + 1]);
    for (int i = 0; i < n; i++)
        found->largest = fmaxf(found->largest, fabsf(values[i]));
}

const code_bounds *code_bounds_of(const format_facts *format)
{
    static code_bounds known[FORMATS_MAX];
    static int n_known;
    char name[64], error[256];
    for (int i = 0; i < n_known; i++)
        if (known[i].name == format->name)
            return known[i].count ? &known[i] : NULL;
    if (n_known == FORMATS_MAX)
        return NULL;
    code_bounds *found = &known[n_known++];
    *found = (code_bounds){.name = format->name};
    snprintf(name, sizeof name, "quantize_%s", format->name);
    const kernel_row *row = kernel_find(name);
    kernel_spec spec = kernel_spec_default();
    /* codes of integers are rounded as a setting says */
    if (!row || format->block != QDNN_BLOCK_NONE || format->bits == 0 || format->bits > 8 ||
        kernel_has_key(row, KERNEL_KEY(ROUNDING)) || !kernel_spec_settle(row, &spec, error, sizeof error))
        return NULL;
    const ref_quant_spec ref = ref_spec_of(row, &spec);
    find(found, &ref, format->bits);
    return found->count ? found : NULL;
}
