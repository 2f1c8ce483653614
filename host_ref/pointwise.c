/* Operations on each element: sums, products, functions, gated functions. */
#include <math.h>

#include "host_ref/internal.h"

static float relu(float x)
{
    return x <= 0 ? 0.0f : x;
}

static float function_of(const ref_pointwise_spec *spec, float x)
{
    switch (spec->function) {
    case QDNN_ACTIVATION_NONE:
        return x;
    case QDNN_ACTIVATION_RELU:
        return relu(x);
    case QDNN_ACTIVATION_GELU_TANH:
        return hr_gelu_tanh(x);
    case QDNN_ACTIVATION_GELU_ERF:
        return hr_gelu_erf(x);
    case QDNN_ACTIVATION_SILU:
        return hr_silu(x);
    case QDNN_ACTIVATION_TANH:
        return hr_tanh(x);
    case QDNN_ACTIVATION_SIGMOID:
        return hr_sigmoid(x);
    case QDNN_ACTIVATION_RELU_SQUARED:
        return relu(x) * relu(x);
    case QDNN_ACTIVATION_SOFTCAP:
        return spec->limit * hr_tanh(x / spec->limit);
    case QDNN_ACTIVATION_CLAMPED_SILU:
        break;
    }
    hr_require(false, "function %d takes no single input", (int)spec->function);
    return 0;
}

static float clamped(const ref_pointwise_spec *spec, float x, float y)
{
    const float a = x > spec->limit ? spec->limit : x;
    const float b = y > spec->limit ? spec->limit : y < -spec->limit ? -spec->limit : y;
    return (a * hr_sigmoid(spec->factor * a)) * (b + 1);
}

static float result(const ref_pointwise_spec *spec, float x, float y)
{
    switch (spec->kind) {
    case REF_ADD:
        return x + y;
    case REF_MUL:
        return x * y;
    case REF_FUNCTION:
        return function_of(spec, x);
    default:
        return spec->function == QDNN_ACTIVATION_CLAMPED_SILU ? clamped(spec, x, y)
                                                              : function_of(spec, x) * y;
    }
}

/* Where the inputs of an element are. */
typedef struct {
    int64_t x, b;
} places;

static places places_of(const ref_pointwise_spec *spec, int64_t row, int64_t i)
{
    const int64_t n = spec->columns, wide = 2 * row * n;
    switch (spec->b) {
    case REF_B_ROW:
        return (places){row * n + i, i};
    case REF_B_SECOND_HALF:
        return (places){wide + i, wide + n + i};
    case REF_B_FIRST_HALF:
        return (places){wide + n + i, wide + i};
    case REF_B_INTERLEAVED:
        return (places){wide + 2 * i, wide + 2 * i + 1};
    default:
        return (places){row * n + i, row * n + i};
    }
}

static float second_of(const ref_pointwise_spec *spec, const void *x, const void *b, int64_t at)
{
    switch (spec->b) {
    case REF_B_NONE:
    case REF_B_NUMBER:
        return spec->number;
    case REF_B_SAME:
    case REF_B_ROW:
        return hr_scalar_load(spec->b_type, b, at);
    default:
        return hr_scalar_load(spec->x, x, at);
    }
}

void hr_pointwise(const ref_pointwise_spec *spec, int64_t rows, const void *x, const void *b, void *y)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < spec->columns; i++) {
            const places at = places_of(spec, row, i);
            const float v = result(spec, hr_scalar_load(spec->x, x, at.x), second_of(spec, x, b, at.b));
            hr_scalar_store(spec->y, y, row * spec->columns + i, hr_canonical(v));
        }
}
