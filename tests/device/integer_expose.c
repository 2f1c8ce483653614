#include "device/integer_expose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* ---- Codes ---- */

enum { CODES_TRIED = 61 }; /* odd ones: half a code more rounds up to the even one, and away from 0 */

float integer_expose_product(int64_t sum)
{
    const float s = (float)sum;
    for (int code = 1; code <= CODES_TRIED; code += 2) {
        const float tie = (float)code + 0.5f, near = tie / s, factors[] = {near, nextafterf(near, 0)};
        for (int i = 0; i < 2; i++)
            if (s * factors[i] == tie && (double)s * (double)factors[i] < (double)tie)
                return factors[i];
    }
    return 0;
}

float integer_expose_sum(int64_t sum)
{
    const float s = (float)sum, less = (int64_t)s > sum ? nextafterf(s, 0) : s;
    for (int code = 1; code <= CODES_TRIED && less < s; code += 2) {
        const float tie = (float)code + 0.5f, near = tie / s,
                    factors[] = {near, nextafterf(near, 0), nextafterf(near, INFINITY)};
        for (int i = 0; i < 3; i++)
            if (s * factors[i] >= tie && less * factors[i] < tie)
                return factors[i];
    }
    return 0;
}

/* ---- Rows ---- */

static int code_at(qdnnDataType_t type, const uint8_t *row, int64_t i)
{
    if (type == QDNN_DATA_I4)
        return (int)((row[i / 2] >> i % 2 * 4 & 15) ^ 8) - 8;
    return type == QDNN_DATA_U8 ? row[i] : (int8_t)row[i];
}

static void set_code(qdnnDataType_t type, uint8_t *row, int64_t i, int code)
{
    if (type == QDNN_DATA_I4)
        row[i / 2] = (uint8_t)((row[i / 2] & ~(15 << i % 2 * 4)) | (code & 15) << i % 2 * 4);
    else
        row[i] = (uint8_t)code;
}

/* The last group is the opposite of the first, and so on; one in the middle is 0, and so are codes of a group that is cut. */
static void oppose(qdnnDataType_t type, uint8_t *row, int64_t k, int64_t group_size, int sign)
{
    const int64_t groups = k / group_size;
    for (int64_t i = 0; i < k; i++) {
        const int64_t group = i / group_size, other = groups - 1 - group;
        const int code =
            group < groups && group > other ? code_at(type, row, other * group_size + i % group_size) : 0;
        if (group >= groups || group == other)
            set_code(type, row, i, 0);
        else if (group > other)
            set_code(type, row, i, sign * code);
        else if (code_at(type, row, i) == -128)
            set_code(type, row, i, 1);
    }
}

void integer_expose_codes(const integer_case *c, void *x, void *w, float *x_scale)
{
    const int64_t x_bytes = ref_integer_row_bytes((qdnnDataType_t)c->x, c->k),
                  w_bytes = ref_integer_row_bytes((qdnnDataType_t)c->w, c->k);
    uint8_t *rows = x, *columns = w;
    for (int64_t i = 0; i < c->m && c->exposes == EXPOSE_REST; i++) {
        memcpy(rows + i * x_bytes, rows, (size_t)x_bytes);
        x_scale[i] = x_scale[0];
    }
    for (int64_t i = 0; i < c->m && c->exposes == EXPOSE_ERRORS; i++) {
        oppose((qdnnDataType_t)c->x, rows + i * x_bytes, c->k, c->group_size, -1);
        x_scale[i] = 1;
    }
    for (int64_t i = 0; i < c->n && c->exposes == EXPOSE_ERRORS; i++)
        oppose((qdnnDataType_t)c->w, columns + i * w_bytes, c->k, c->group_size, 1);
}

void integer_expose_scales(qdnnDataType_t type, int64_t columns, int64_t groups, void *scales)
{
    for (int64_t i = 0; i < columns * groups; i++) {
        const int64_t group = i % groups, other = groups - 1 - group;
        const float scale = group > other ? ref_scalar_load(type, scales, i - group + other)
                                          : ldexpf(ref_scalar_load(type, scales, i), (int)(i * 7 % 13));
        ref_scalar_store(type, scales, i, scale);
    }
}

/* ---- Bias and residual ---- */

/* What the type has of a number; of f32 without the last bits, so that what is left is not 0 and has the number's sign. */
static float shortened(qdnnDataType_t type, float x)
{
    enum { CUT = 0xF };
    uint16_t half[2];
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(uint32_t)CUT;
    memcpy(&x, &bits, sizeof bits);
    if (type == QDNN_DATA_F32)
        return x;
    ref_scalar_store(type, half, 0, x);
    return ref_scalar_load(type, half, 0);
}

/* Of each column, before the bias is added. */
static void take_away(const ref_integer_spec *s, const ref_integer_scales *scales, const ref_product *law,
                      const void *codes, const integer_buffers *b, const ref_product_arrays *arrays)
{
    ref_product plain = *law;
    float *y = calloc((size_t)(s->m * s->n) + 1, sizeof *y);
    ref_product_arrays found = {.y = y, .alpha = arrays->alpha};
    plain.bias = (qdnnDataType_t)0;
    plain.activation = QDNN_ACTIVATION_NONE;
    plain.y = QDNN_DATA_F32;
    if (!CHECK(y))
        return;
    ref_integer_product(s, scales, &plain, codes, b->host[QDNN_OPERAND_CODES], &found);
    for (int64_t i = 0; i < s->n; i++)
        ref_scalar_store(law->bias, b->host[QDNN_OPERAND_BIAS], i, -shortened(law->bias, y[i]));
    free(y);
}

void integer_expose_rest(const integer_case *c, const ref_integer_spec *s, const ref_integer_scales *scales,
                         const ref_product *law, const void *codes, integer_buffers *b,
                         const ref_product_arrays *arrays)
{
    ref_product_arrays found = *arrays;
    if (c->exposes == EXPOSE_NOTHING)
        return;
    if (c->bias && c->exposes == EXPOSE_ERRORS)
        memset(b->host[QDNN_OPERAND_BIAS], 0, b->bytes[QDNN_OPERAND_BIAS]);
    else if (c->bias && (c->activation == QDNN_ACTIVATION_NONE || c->activation == QDNN_ACTIVATION_RELU))
        take_away(s, scales, law, codes, b, arrays);
    if (!c->residual)
        return;
    memset(b->host[QDNN_OPERAND_RESIDUAL], 0, b->bytes[QDNN_OPERAND_RESIDUAL]);
    if (c->exposes != EXPOSE_REST)
        return;
    ref_integer_product(s, scales, law, codes, b->host[QDNN_OPERAND_CODES], &found);
    for (int64_t i = 0; i < s->m * s->n; i++)
        ref_scalar_store(law->y, b->host[QDNN_OPERAND_RESIDUAL], i, -ref_scalar_load(law->y, arrays->y, i));
}
