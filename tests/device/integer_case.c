/* Integer products for tests. */
#include "device/integer_case.h"

#include "device/integer_expose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* ---- Data ---- */

/* The low bits of the state have short periods, and codes are made of low bits: rows would repeat themselves. */
uint32_t integer_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    const uint32_t mixed = (*state ^ *state >> 16) * 0x7FEB352Du;
    return (mixed ^ mixed >> 15) >> 8;
}

static int code_of(codes_fill fill, qdnnDataType_t type, uint32_t random)
{
    const int bits = type == QDNN_DATA_I4 ? 4 : 8, least = type == QDNN_DATA_U8 ? 0 : -(1 << (bits - 1));
    const int most = least + (1 << bits) - 1;
    switch (fill) {
    case CODES_LEAST:
        return least;
    case CODES_MOST:
        return most;
    case CODES_ENDS:
        return random % 3 ? most : least;
    case CODES_ZERO:
        return 0;
    case CODES_SMALL:
        return type == QDNN_DATA_U8 ? 1 + (int)(random % 3) : random % 3 ? (int)(random % 3) : -1;
    case CODES_ANY:
        break;
    }
    return least + (int)(random % (1u << bits));
}

/* The nibbles after the last code of each row may be anything. */
static void fill_padding(uint32_t seed, int64_t rows, int64_t columns, uint8_t *bytes)
{
    const int64_t pitch = ref_integer_row_bytes(QDNN_DATA_I4, columns);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = columns; i < 2 * pitch; i++)
            bytes[row * pitch + i / 2] |= (uint8_t)((integer_random(&seed) & 15) << i % 2 * 4);
}

void integer_fill(codes_fill fill, qdnnDataType_t type, uint32_t seed, int64_t rows, int64_t columns,
                  void *codes)
{
    const int64_t pitch = ref_integer_row_bytes(type, columns);
    uint8_t *bytes = codes;
    memset(codes, 0, (size_t)(rows * pitch));
    for (int64_t i = 0; i < rows * columns; i++) {
        int code = code_of(fill, type, integer_random(&seed));
        int64_t column = i % columns;
        if (type == QDNN_DATA_I4)
            bytes[i / columns * pitch + column / 2] |= (uint8_t)((code & 15) << column % 2 * 4);
        else
            bytes[i] = (uint8_t)code;
    }
    if (type == QDNN_DATA_I4)
        fill_padding(seed, rows, columns, bytes);
}

void integer_fill_numbers(qdnnDataType_t type, bool strange, uint32_t seed, float middle, int64_t n,
                          void *array)
{
    static const float list[] = {0.0f,      -0.0f,    INFINITY, -INFINITY, NAN,
                                 0x1p-149f, 0x1p-24f, 0x1p-26f, 65504.0f,  3e38f};
    for (int64_t i = 0; i < n; i++) {
        uint32_t r = integer_random(&seed);
        float value = middle * (0.25f + (float)(r % 4096) / 2048.0f);
        if (strange && r / 4096 % 3 == 0)
            value = list[r % (sizeof list / sizeof list[0])];
        ref_scalar_store(type, array, i, r >> 20 & 1 ? -value : value);
    }
}

void integer_fill_multipliers(codes_fill fill, bool strange, uint32_t seed, float middle, int64_t n,
                              float *multipliers)
{
    integer_fill_numbers(QDNN_DATA_F32, strange, seed, middle, n, multipliers);
    for (int64_t i = 0; i < n && fill == CODES_SMALL; i++)
        if (fabsf(multipliers[i]) > 0.125f && fabsf(multipliers[i]) < 16)
            multipliers[i] = roundf(multipliers[i] * 4) / 4;
}

void integer_fill_bias(codes_fill fill, bool strange, uint32_t seed, int64_t n, int32_t *bias)
{
    static const int32_t ends[] = {INT32_MAX, INT32_MIN, (1 << 25) - 1, 1 - (1 << 25), (1 << 24) + 1};
    const int32_t most = fill == CODES_SMALL ? 30 : 10000;
    for (int64_t i = 0; i < n; i++) {
        bias[i] = (int32_t)(integer_random(&seed) % (uint32_t)(2 * most + 1)) - most;
        if (strange && i % 3 == 1)
            bias[i] = ends[i / 3 % (int64_t)(sizeof ends / sizeof ends[0])];
    }
}

/* The typical size of scales and multipliers. */
static float middle_of(const integer_case *c, float usual)
{
    return c->fill == CODES_SMALL ? 1.0f : usual;
}

float integer_small_multiplier(int64_t k, float usual)
{
    return k > 512 ? 64.0f / (float)k : usual;
}

/* ---- Buffers ---- */

void *integer_buffer(integer_buffers *b, qdnnOperand_t operand, size_t bytes, bool is_output)
{
    b->bytes[operand] = bytes;
    b->is_output[operand] = is_output;
    b->host[operand] = calloc(bytes + 1, 1);
    CHECK(b->host[operand] != NULL);
    return b->host[operand];
}

void integer_buffers_free(integer_buffers *b)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(b->host[i]);
}

static bool launch(qdnnHandle_t handle, qdnnPlan_t plan, const device_buffer *buffers,
                   const integer_buffers *b, int64_t rows)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    device_buffer workspace = {0};
    size_t bytes;
    int count = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (b->host[i])
            bindings[count++] = (qdnnBinding_t){
                .operand = (qdnnOperand_t)i, .pointer = device_buffer_at(&buffers[i]), .bytes = b->bytes[i]};
    bool ok = CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &bytes)) &&
              device_buffer_make(handle, BUFFER_EXACT, bytes, 0, &workspace);
    void *at = ok ? device_buffer_at(&workspace) : NULL;
    if (ok && rows < 0)
        ok = CHECK_QDNN(qdnnExecute(handle, plan, bindings, count, at, bytes));
    else if (ok)
        ok = CHECK_QDNN(qdnnExecuteRows(handle, plan, rows, bindings, count, at, bytes));
    ok = ok && CHECK_QDNN(qdnnSynchronize(handle));
    device_buffer_free(&workspace);
    return ok;
}

/* Checks the first bytes of a buffer, and that the rest is unchanged. */
static void check_part(qdnnHandle_t handle, const device_buffer *buffer, const void *expected, size_t bytes)
{
    uint8_t *found = calloc(buffer->bytes + 1, 1);
    if (CHECK(found && bytes <= buffer->bytes) &&
        CHECK_QDNN(qdnnCopyToHost(handle, found, device_buffer_at(buffer), buffer->bytes)))
        CHECK_EQ_MEM(found, expected, bytes);
    for (size_t i = bytes + 1; found && i < buffer->bytes; i++)
        CHECK(found[i] == found[bytes]);
    free(found);
}

bool integer_execute(qdnnHandle_t handle, qdnnPlan_t plan, const integer_buffers *b, int64_t rows)
{
    device_buffer buffers[QDNN_OPERAND_COUNT] = {0};
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (b->host[i])
            ok = device_buffer_make(handle, rows >= 0 ? BUFFER_BANDS : BUFFER_EXACT, b->bytes[i], b->shift[i],
                                    &buffers[i]) &&
                 (b->is_output[i] || device_buffer_write(&buffers[i], b->host[i]));
    ok = ok && launch(handle, plan, buffers, b, rows);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (ok && b->host[i] && rows >= 0 && b->is_output[i])
            check_part(handle, &buffers[i], b->host[i], b->written);
        else if (ok && b->host[i])
            device_buffer_check(&buffers[i], b->host[i], b->is_output[i] ? "result" : "input");
        device_buffer_free(&buffers[i]);
    }
    CHECK_QDNN(qdnnDestroyPlan(plan));
    return ok;
}

/* ---- Products ---- */

static bool is_codes(int type)
{
    return type == QDNN_DATA_I8 || type == QDNN_DATA_U8 || type == QDNN_DATA_I32;
}

static ref_integer_spec spec_of(const integer_case *c)
{
    return (ref_integer_spec){.m = c->rows ? c->rows : c->m,
                              .n = c->n,
                              .k = c->k,
                              .x = (qdnnDataType_t)c->x,
                              .w = (qdnnDataType_t)c->w,
                              .w_is_kn = c->w_is_kn,
                              .x_zero = c->x_zero,
                              .w_zero = c->w_zero};
}

/* Quantizes x to codes and scales. */
static void quantize_rows(const integer_case *c, const void *numbers, void *codes, float *scales)
{
    const ref_quant_spec spec = {.data = (qdnnDataType_t)c->quantizes,
                                 .storage = QDNN_DATA_I8,
                                 .group_size = c->k,
                                 .floor = REF_DEFAULT_FLOOR};
    const ref_arrays arrays = {.codes = codes, .scale = scales};
    if (c->m == 0)
        return;
    ref_scale(&spec, 1, c->m * c->k, numbers, &arrays);
    ref_quantize(&spec, 1, c->m * c->k, numbers, &arrays);
}

static void fill_scales(const integer_case *c, integer_buffers *b, const float *x_scale)
{
    const bool grouped = c->w == QDNN_DATA_I4 && c->x == QDNN_DATA_I8;
    const int64_t groups = grouped ? (c->k + c->group_size - 1) / c->group_size : 1;
    const qdnnDataType_t type = grouped ? ref_scale_data_type(c->scale_type) : QDNN_DATA_F32;
    void *w = integer_buffer(b, QDNN_OPERAND_SCALE, (size_t)(c->n * groups) * ref_scalar_size(type), false);
    integer_fill_numbers(type, c->strange, c->seed + 3, middle_of(c, 0.02f), c->n * groups, w);
    if (c->exposes == EXPOSE_ERRORS)
        integer_expose_scales(type, c->n, groups, w);
    if (!c->quantizes)
        memcpy(integer_buffer(b, QDNN_OPERAND_X_SCALE, (size_t)c->m * 4, false), x_scale, (size_t)c->m * 4);
}

static void compute_scaled(const integer_case *c, integer_buffers *b, const void *codes, const float *x_scale)
{
    const ref_integer_spec s = spec_of(c);
    const bool grouped = c->w == QDNN_DATA_I4 && c->x == QDNN_DATA_I8;
    const size_t element = ref_scalar_size((qdnnDataType_t)c->y);
    void *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(c->m * c->n) * element, true);
    ref_product law = {.alpha = c->alpha,
                       .alpha_number = INTEGER_ALPHA,
                       .bias = (qdnnDataType_t)c->bias,
                       .activation = c->activation,
                       .y = (qdnnDataType_t)c->y};
    ref_product_arrays arrays = {.y = y};
    if (c->bias) {
        size_t bytes = (size_t)c->n * ref_scalar_size(law.bias);
        integer_fill_numbers(law.bias, c->strange, c->seed + 4, 2, c->n,
                             integer_buffer(b, QDNN_OPERAND_BIAS, bytes, false));
        arrays.bias = b->host[QDNN_OPERAND_BIAS];
    }
    if (c->residual) {
        integer_fill_numbers(
            law.y, c->strange, c->seed + 5, 1, c->m * c->n,
            integer_buffer(b, QDNN_OPERAND_RESIDUAL, (size_t)(c->m * c->n) * element, false));
        arrays.residual = b->host[QDNN_OPERAND_RESIDUAL];
    }
    if (c->alpha == QDNN_ALPHA_ONE || c->alpha == QDNN_ALPHA_COLUMN) {
        int64_t n = c->alpha == QDNN_ALPHA_ONE ? 1 : c->n;
        integer_fill_numbers(QDNN_DATA_F32, c->strange, c->seed + 6, 1, n,
                             integer_buffer(b, QDNN_OPERAND_ALPHA, (size_t)n * 4, false));
        arrays.alpha = b->host[QDNN_OPERAND_ALPHA];
    }
    const ref_integer_scales scales = {.x = x_scale,
                                       .w = b->host[QDNN_OPERAND_SCALE],
                                       .group_size = grouped ? c->group_size : 0,
                                       .type = c->scale_type,
                                       .w_first = c->w_first};
    integer_expose_rest(c, &s, &scales, &law, codes, b, &arrays);
    ref_integer_product(&s, &scales, &law, codes, b->host[QDNN_OPERAND_CODES], &arrays);
}

static void compute_codes(const integer_case *c, integer_buffers *b)
{
    const ref_integer_spec s = spec_of(c);
    ref_requantize_spec r = {
        .y = (qdnnDataType_t)c->y, .multiplier = c->multiplier, .y_zero = c->y_zero, .rounding = c->rounding};
    if (c->bias) {
        int32_t *bias = integer_buffer(b, QDNN_OPERAND_BIAS, (size_t)c->n * 4, false);
        integer_fill_bias(c->fill, c->strange, c->seed + 8, c->n, bias);
        for (int64_t i = 0; i < c->n && c->exposes; i++)
            bias[i] = EXPOSE_BIAS;
    }
    if (c->multipliers) {
        r.multipliers = integer_buffer(b, QDNN_OPERAND_MULTIPLIER, (size_t)c->n * 4, false);
        const float middle = c->fill == CODES_SMALL ? integer_small_multiplier(c->k, 1) : 0.002f;
        integer_fill_multipliers(c->fill, c->strange, c->seed + 9, middle, c->n,
                                 b->host[QDNN_OPERAND_MULTIPLIER]);
        for (int64_t i = 0; i < c->n && c->exposes; i++)
            ((float *)b->host[QDNN_OPERAND_MULTIPLIER])[i] = c->multiplier;
    }
    void *y =
        integer_buffer(b, QDNN_OPERAND_Y, (size_t)(c->m * c->n) * (c->y == QDNN_DATA_I32 ? 4 : 1), true);
    ref_integer_matmul(&s, &r, b->host[QDNN_OPERAND_X], b->host[QDNN_OPERAND_CODES],
                       b->host[QDNN_OPERAND_BIAS], y);
}

/* Nibbles are stored in words, which are aligned. */
static size_t shift_of(qdnnDataType_t type, size_t shift)
{
    return type == QDNN_DATA_I4 ? 4 * shift : shift;
}

void integer_case_data(const integer_case *c, integer_buffers *b)
{
    const qdnnDataType_t x = (qdnnDataType_t)c->x, w = (qdnnDataType_t)c->w,
                         numbers = (qdnnDataType_t)c->quantizes;
    size_t x_bytes = (size_t)(c->m * ref_integer_row_bytes(x, c->k)), m = (size_t)c->m;
    size_t bytes = numbers ? (size_t)(c->m * c->k) * ref_scalar_size(numbers) : x_bytes;
    void *given = integer_buffer(b, QDNN_OPERAND_X, bytes, false), *codes = calloc(x_bytes + 1, 1);
    float *x_scale = calloc(m + 1, 4);
    int64_t w_rows = c->w_is_kn ? c->k : c->n, w_columns = c->w_is_kn ? c->n : c->k;
    void *weights =
        integer_buffer(b, QDNN_OPERAND_CODES, (size_t)(w_rows * ref_integer_row_bytes(w, w_columns)), false);
    if (!CHECK(given && codes && x_scale && weights))
        return;
    integer_fill(c->fill, w, c->seed + 1, w_rows, w_columns, weights);
    integer_fill_numbers(QDNN_DATA_F32, c->strange, c->seed + 2, middle_of(c, 0.01f), c->m, x_scale);
    if (numbers) {
        integer_fill_numbers(numbers, c->strange, c->seed, 3, c->m * c->k, given);
        quantize_rows(c, given, codes, x_scale);
    } else {
        integer_fill(c->fill, x, c->seed, c->m, c->k, given);
        integer_expose_codes(c, given, weights, x_scale);
        memcpy(codes, given, x_bytes);
    }
    if (is_codes(c->y)) {
        compute_codes(c, b);
    } else {
        fill_scales(c, b, x_scale);
        compute_scaled(c, b, codes, x_scale);
    }
    b->shift[QDNN_OPERAND_X] = numbers || c->shifted == SHIFT_W ? 0 : shift_of(x, c->shift);
    b->shift[QDNN_OPERAND_CODES] = c->shifted == SHIFT_X ? 0 : shift_of(w, c->shift);
    free(codes);
    free(x_scale);
}

bool integer_tensor(qdnnTensorDescriptor_t *t, qdnnDataType_t type, int rank, const int64_t *dims)
{
    return CHECK_QDNN(qdnnCreateTensorDescriptor(t)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(*t, type, rank, dims, NULL));
}

void integer_tensors_destroy(qdnnTensorDescriptor_t *t, int count)
{
    for (int i = 0; i < count; i++)
        qdnnDestroyTensorDescriptor(t[i]);
}

static bool set_attributes(const integer_case *c, qdnnIntegerDescriptor_t d)
{
    const int64_t values[][2] = {
        {QDNN_INTEGER_TRANSPOSE_W, !c->w_is_kn},
        {QDNN_INTEGER_X_ZERO, c->x_zero},
        {QDNN_INTEGER_W_ZERO, c->w_zero},
        {QDNN_INTEGER_Y_ZERO, c->y_zero},
        {QDNN_INTEGER_MULTIPLIERS, c->multipliers ? QDNN_GRANULARITY_CHANNEL : QDNN_GRANULARITY_TENSOR},
        {QDNN_INTEGER_ROUNDING, c->rounding},
        {QDNN_INTEGER_BIAS_TYPE, c->bias},
        {QDNN_INTEGER_ALPHA, c->alpha},
        {QDNN_INTEGER_ACTIVATION, c->activation},
        {QDNN_INTEGER_RESIDUAL, c->residual},
        {QDNN_INTEGER_GROUP_SIZE, c->group_size ? c->group_size : 128},
        {QDNN_INTEGER_SCALE_TYPE, c->scale_type},
        {QDNN_INTEGER_W_SCALE_FIRST, c->w_first},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (!CHECK_QDNN(qdnnSetIntegerAttribute(d, (qdnnIntegerAttribute_t)values[i][0], values[i][1])))
            return false;
    return CHECK_QDNN(qdnnSetIntegerMultiplier(d, c->multiplier)) &&
           (c->alpha != QDNN_ALPHA_NUMBER || CHECK_QDNN(qdnnSetIntegerAlpha(d, INTEGER_ALPHA)));
}

static bool make_plan(qdnnHandle_t handle, const integer_case *c, qdnnPlan_t *plan)
{
    qdnnIntegerDescriptor_t d = NULL;
    qdnnTensorDescriptor_t t[3] = {NULL};
    const int64_t x[] = {c->m, c->k}, w[] = {c->w_is_kn ? c->k : c->n, c->w_is_kn ? c->n : c->k},
                  y[] = {c->m, c->n};
    const int64_t *dims[] = {x, w, y};
    const int types[] = {c->quantizes ? c->quantizes : c->x, c->w, c->y};
    bool ok = CHECK_QDNN(qdnnCreateIntegerDescriptor(&d)) && set_attributes(c, d);
    for (int i = 0; i < 3 && ok; i++)
        ok = integer_tensor(&t[i], (qdnnDataType_t)types[i], 2, dims[i]);
    ok = ok && CHECK_QDNN(qdnnCreateIntegerMatmulPlan(handle, d, t[0], t[1], t[2], plan));
    qdnnDestroyIntegerDescriptor(d);
    integer_tensors_destroy(t, 3);
    return ok;
}

bool integer_case_run(qdnnHandle_t handle, const integer_case *c)
{
    integer_buffers b = {0};
    qdnnPlan_t plan = NULL;
    test_push_note("%s, %lld x %lld x %lld, seed %u, shift %zu", c->name, (long long)c->m, (long long)c->n,
                   (long long)c->k, (unsigned)c->seed, c->shift);
    integer_case_data(c, &b);
    b.written = c->m ? b.bytes[QDNN_OPERAND_Y] / (size_t)c->m * (size_t)c->rows : 0;
    bool ok = make_plan(handle, c, &plan) && integer_execute(handle, plan, &b, c->rows ? c->rows : -1);
    integer_buffers_free(&b);
    test_pop_note();
    return ok;
}
