/* Products and conversions against host_ref, before they are timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gpu_report/report.h"
#include "tools/reference.h"

typedef struct weights_tile {
    qdnnTensorDescriptor_t tensor;
    ref_quant_spec spec;
    uint8_t *host[QDNN_OPERAND_COUNT];
    size_t bytes[QDNN_OPERAND_COUNT];
} weights_tile;

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

static uint16_t *numbers(uint32_t seed, int64_t count)
{
    uint16_t *made = malloc((size_t)count * sizeof *made);
    for (int64_t i = 0; made && i < count; i++)
        made[i] = ref_f32_to_f16(number(&seed));
    return made;
}

static ref_arrays arrays_of(const weights_tile *t)
{
    return (ref_arrays){.codes = t->host[QDNN_OPERAND_CODES],
                        .scale = t->host[QDNN_OPERAND_SCALE],
                        .zero = t->host[QDNN_OPERAND_ZERO],
                        .global_scale = (float *)(void *)t->host[QDNN_OPERAND_GLOBAL_SCALE]};
}

/* ---- The weights ---- */

static qdnnStatus_t tile_open(weights_tile *t, qdnnQuantDescriptor_t quant, int64_t k)
{
    const int64_t dims[] = {COMPARED_N, k};
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&t->tensor);
    if (!status)
        status = qdnnSetTensorDescriptor(t->tensor, QDNN_DATA_F16, 2, dims, NULL);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && !status; i++) {
        status = qdnnGetOperandSize(quant, t->tensor, (qdnnOperand_t)i, &t->bytes[i]);
        t->host[i] = t->bytes[i] ? calloc(t->bytes[i], 1) : NULL;
        if (t->bytes[i] && !t->host[i])
            status = QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
    }
    t->spec = reference_of(quant, 2, dims);
    t->spec.data = QDNN_DATA_F16;
    return status;
}

static void tile_close(weights_tile *t)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(t->host[i]);
    qdnnDestroyTensorDescriptor(t->tensor);
}

static bool tile_fill(weights_tile *t, int64_t k)
{
    uint16_t *plain = numbers(1, COMPARED_N * k);
    const ref_arrays arrays = arrays_of(t);
    if (!plain)
        return false;
    if (t->spec.storage == QDNN_DATA_F16) {
        memcpy(t->host[QDNN_OPERAND_CODES], plain, t->bytes[QDNN_OPERAND_CODES]);
    } else {
        if (!t->spec.block && !t->spec.no_scale)
            ref_scale(&t->spec, COMPARED_N, k, plain, &arrays);
        ref_quantize(&t->spec, COMPARED_N, k, plain, &arrays);
    }
    free(plain);
    return true;
}

/* Rows of a tile, again and again; what is not of rows (a scale of the whole tensor) as it is. */
static qdnnStatus_t upload(qdnnHandle_t handle, const qdnnBinding_t *b, const uint8_t *tile, size_t bytes,
                           int64_t rows)
{
    uint8_t *all = malloc(b->bytes);
    qdnnStatus_t status = all ? QDNN_STATUS_SUCCESS : QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
    for (size_t at = 0; all && at < b->bytes; at += bytes)
        memcpy(all + at, tile, b->bytes - at < bytes ? b->bytes - at : bytes);
    if (bytes % (size_t)rows != 0 && bytes != b->bytes)
        status = QDNN_STATUS_INTERNAL_ERROR;
    if (!status)
        status = qdnnCopyToDevice(handle, (void *)(uintptr_t)b->pointer, all, b->bytes);
    free(all);
    return status;
}

/* ---- What is expected ---- */

/* The error of a sum in any order with f32 or better, and of its rounding to f16, is a fraction of the sum of magnitudes. */
static void set_bounds(comparison *c, const weights_tile *t, const uint16_t *x)
{
    const ref_arrays arrays = arrays_of(t);
    for (int64_t i = 0; i < COMPARED_X * COMPARED_N; i++) {
        double sum = 0;
        for (int64_t k = 0; k < c->k; k++)
            sum += fabs((double)ref_f16_to_f32(x[i / COMPARED_N * c->k + k]) *
                        (double)ref_decode(&t->spec, COMPARED_N, c->k, &arrays, i % COMPARED_N, k));
        c->bound[i] = (float)(sum / 1024);
    }
}

static void expect_product(comparison *c, const weights_tile *t, int sm, int algorithm, const uint16_t *x)
{
    const ref_product p = {.m = COMPARED_X,
                           .k = c->k,
                           .outputs = COMPARED_N,
                           .weights = t->spec,
                           .x = QDNN_DATA_F16,
                           .y = QDNN_DATA_F16,
                           .x_stride = c->k,
                           .y_stride = COMPARED_N};
    const ref_product_arrays arrays = {.x = x, .weights = arrays_of(t), .y = c->y};
    if (algorithm == QDNN_MATMUL_TENSOR)
        ref_product_tensor_on(&p, &arrays, sm);
    else
        ref_product_exact(&p, &arrays);
    if (algorithm == QDNN_MATMUL_CUBLAS)
        set_bounds(c, t, x);
}

static const qdnnBinding_t *bound_as(const qdnnBinding_t *bindings, int count, int operand)
{
    for (int i = 0; i < count; i++)
        if ((int)bindings[i].operand == operand)
            return &bindings[i];
    return NULL;
}

static qdnnStatus_t upload_tile(const weights_tile *t, qdnnHandle_t handle, const qdnnBinding_t *bindings,
                                int count)
{
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && !status; i++) {
        const qdnnBinding_t *b = t->bytes[i] ? bound_as(bindings, count, i) : NULL;
        if (b)
            status = upload(handle, b, t->host[i], t->bytes[i], COMPARED_N);
    }
    return status;
}

qdnnStatus_t comparison_begin(comparison *c, qdnnHandle_t handle, int sm, int algorithm,
                              qdnnQuantDescriptor_t quant, qdnnBinding_t *bindings, int count)
{
    const bool is_product = algorithm >= 0;
    const int64_t columns = is_product ? COMPARED_N : c->k, rows = is_product ? COMPARED_X : COMPARED_N;
    weights_tile t = {0};
    uint16_t *x = numbers(2, COMPARED_X * c->k);
    c->y = malloc((size_t)(rows * columns) * sizeof *c->y);
    c->bound = algorithm == QDNN_MATMUL_CUBLAS ? malloc(sizeof *c->bound * COMPARED_X * COMPARED_N) : NULL;
    qdnnStatus_t status = tile_open(&t, quant, c->k);
    if (!status && (!x || !c->y || (algorithm == QDNN_MATMUL_CUBLAS && !c->bound) || !tile_fill(&t, c->k)))
        status = QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
    const ref_arrays arrays = arrays_of(&t);
    if (!status)
        status = upload_tile(&t, handle, bindings, count);
    if (!status && is_product)
        status = upload(handle, bound_as(bindings, count, QDNN_OPERAND_X), (const uint8_t *)x,
                        (size_t)(COMPARED_X * c->k) * 2, COMPARED_X);
    if (!status && is_product)
        expect_product(c, &t, sm, algorithm, x);
    else if (!status)
        ref_dequantize(&t.spec, COMPARED_N, c->k, &arrays, c->y);
    tile_close(&t);
    free(x);
    return status;
}

/* ---- The comparison ---- */

/* The place of an output among those that host_ref computed; dequantized weights have rows of the tile. */
static int64_t place_of(const comparison *c, int64_t i)
{
    return c->rows ? i / c->n % COMPARED_X * COMPARED_N + i % c->n % COMPARED_N
                   : i / c->k % COMPARED_N * c->k + i % c->k;
}

bool comparison_is_right(const comparison *c, const uint16_t *y, char *why, size_t size)
{
    const int64_t count = c->rows ? c->rows * c->n : c->n * c->k;
    int64_t wrong = 0, first = 0;
    for (int64_t i = count; i-- > 0;) {
        const int64_t at = place_of(c, i);
        const bool is_near =
            c->bound && fabsf(ref_f16_to_f32(y[i]) - ref_f16_to_f32(c->y[at])) <= c->bound[at];
        if (y[i] != c->y[at] && !is_near)
            wrong++, first = i;
    }
    if (wrong)
        snprintf(why, size,
                 "wrong: %lld of %lld outputs are not host_ref's, the first is output %lld: 0x%04X, expected "
                 "0x%04X",
                 (long long)wrong, (long long)count, (long long)first, y[first], c->y[place_of(c, first)]);
    return wrong == 0;
}

void comparison_end(comparison *c)
{
    free(c->y);
    free(c->bound);
}
