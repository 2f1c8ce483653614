/* A product with quantized weights as data. */
#include "device/product_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/ref_spec.h"
#include "test.h"

void product_case_text(const product_case *c, char *text, size_t size)
{
    char weights[768];
    quant_case_text(&c->weights, weights, sizeof weights);
    snprintf(text, size,
             "m %lld (%lld), x %s, y %s, %s, gaps %lld %lld, alpha %d, bias %d, activation %d%s%s%s, x of "
             "kind %d, seed "
             "%u; weights %s",
             (long long)c->m, (long long)c->rows, qdnnGetDataTypeName(c->x), qdnnGetDataTypeName(c->y),
             c->k_rows ? "[K, N]" : "[N, K]", (long long)c->x_gap, (long long)c->y_gap, (int)c->alpha,
             c->bias, (int)c->activation, c->gated ? ", gated" : "", c->residual ? ", residual" : "",
             c->in_place ? " in place" : "", (int)c->kind, (unsigned)c->seed, weights);
}

/* ---- Operands ---- */

static uint8_t *new_operand(product_operands *o, qdnnOperand_t operand, size_t bytes)
{
    o->bytes[operand] = bytes;
    o->host[operand] = calloc(bytes + 1, 1);
    CHECK(o->host[operand] != NULL);
    return o->host[operand];
}

static void set_product(const product_case *c, product_operands *o)
{
    const int64_t *dims = c->weights.dims;
    o->product = (ref_product){.m = c->m,
                               .k = dims[!c->k_rows],
                               .outputs = dims[c->k_rows],
                               .k_rows = c->k_rows,
                               .weights = quant_case_reference(&c->weights),
                               .x = c->x,
                               .y = c->y,
                               .alpha = c->alpha,
                               .alpha_number = -1.75f,
                               .bias = (qdnnDataType_t)c->bias,
                               .activation = c->activation,
                               .gated = c->gated};
    o->product.x_stride = o->product.k + c->x_gap;
    o->product.y_stride = (c->gated ? o->product.outputs / 2 : o->product.outputs) + c->y_gap;
}

static size_t strided(int64_t rows, int64_t stride, int64_t columns, qdnnDataType_t type)
{
    return rows && columns ? (size_t)((rows - 1) * stride + columns) * ref_scalar_size(type) : 0;
}

static void fill_operands(const product_case *c, product_operands *o)
{
    const ref_product *p = &o->product;
    const int64_t n = c->gated ? p->outputs / 2 : p->outputs;
    const size_t x_bytes = strided(p->m, p->x_stride, p->k, p->x),
                 y_bytes = strided(p->m, p->y_stride, n, p->y);
    const format_facts *format = kernel_format(c->weights.row);
    fill_data(c->kind, format, c->x, c->seed, new_operand(o, QDNN_OPERAND_X, x_bytes),
              (int64_t)(x_bytes / ref_scalar_size(c->x)));
    fill_bytes(c->seed + 1, new_operand(o, QDNN_OPERAND_Y, y_bytes), (int64_t)y_bytes);
    if (c->alpha == QDNN_ALPHA_ONE || c->alpha == QDNN_ALPHA_COLUMN) {
        int64_t count = c->alpha == QDNN_ALPHA_ONE ? 1 : p->outputs;
        fill_data(DATA_NORMAL, format, QDNN_DATA_F32, c->seed + 2,
                  new_operand(o, QDNN_OPERAND_ALPHA, (size_t)count * 4), count);
    }
    if (c->bias)
        fill_data(DATA_NORMAL, format, (qdnnDataType_t)c->bias, c->seed + 3,
                  new_operand(o, QDNN_OPERAND_BIAS, (size_t)p->outputs * ref_scalar_size(p->bias)),
                  p->outputs);
    if (c->residual)
        fill_data(DATA_NORMAL, format, c->y, c->seed + 4, new_operand(o, QDNN_OPERAND_RESIDUAL, y_bytes),
                  (int64_t)(y_bytes / ref_scalar_size(c->y)));
    if (c->residual && c->in_place)
        memcpy(o->host[QDNN_OPERAND_Y], o->host[QDNN_OPERAND_RESIDUAL], y_bytes);
}

ref_product_arrays product_arrays(const product_operands *o, void *y)
{
    return (ref_product_arrays){.x = o->host[QDNN_OPERAND_X],
                                .weights = ref_arrays_of(o->weights.host),
                                .alpha = (const float *)(const void *)o->host[QDNN_OPERAND_ALPHA],
                                .bias = o->host[QDNN_OPERAND_BIAS],
                                .residual = o->host[QDNN_OPERAND_RESIDUAL],
                                .y = y};
}

static void expect(const product_case *c, product_operands *o)
{
    ref_product p = o->product;
    if (c->rows >= 0)
        p.m = c->rows;
    memcpy(o->expected, o->host[QDNN_OPERAND_Y], o->bytes[QDNN_OPERAND_Y]);
    ref_product_arrays a = product_arrays(o, o->expected);
    if (c->algorithm == QDNN_MATMUL_TENSOR)
        ref_product_tensor(&p, &a, ref_tensor_family_of(c->sm));
    else
        ref_product_exact(&p, &a);
}

bool product_operands_make(const product_case *c, product_operands *out)
{
    *out = (product_operands){0};
    if (!quant_operands_make(&c->weights, &out->weights))
        return false;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (out->weights.reads >> i & 1) {
            out->host[i] = out->weights.host[i];
            out->bytes[i] = out->weights.bytes[i];
        }
    set_product(c, out);
    fill_operands(c, out);
    out->expected = malloc(out->bytes[QDNN_OPERAND_Y] + 1);
    if (!CHECK(out->expected != NULL))
        return false;
    expect(c, out);
    return true;
}

void product_operands_free(product_operands *o)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (!(o->weights.reads >> i & 1))
            free(o->host[i]);
    quant_operands_free(&o->weights);
    free(o->expected);
    *o = (product_operands){0};
}

/* ---- The call ---- */

typedef struct product_descriptors {
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, y;
    quant_descriptors weights;
} product_descriptors;

static bool set_attributes(const product_case *c, qdnnMatmulDescriptor_t matmul, float alpha)
{
    const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } values[] = {{QDNN_MATMUL_ALGORITHM, c->algorithm},   {QDNN_MATMUL_TRANSPOSE_W, !c->k_rows},
                  {QDNN_MATMUL_ALPHA, c->alpha},           {QDNN_MATMUL_BIAS_TYPE, c->bias},
                  {QDNN_MATMUL_ACTIVATION, c->activation}, {QDNN_MATMUL_GATED, c->gated},
                  {QDNN_MATMUL_RESIDUAL, c->residual}};
    bool ok = true;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        ok = CHECK_QDNN(qdnnSetMatmulAttribute(matmul, values[i].attribute, values[i].value)) && ok;
    return ok && (c->alpha != QDNN_ALPHA_NUMBER || CHECK_QDNN(qdnnSetMatmulAlpha(matmul, alpha)));
}

static bool descriptors_make(const product_case *c, const ref_product *p, product_descriptors *d)
{
    const int64_t n = c->gated ? p->outputs / 2 : p->outputs;
    const int64_t x_dims[] = {p->m, p->k}, y_dims[] = {p->m, n};
    const int64_t x_strides[] = {p->x_stride, 1}, y_strides[] = {p->y_stride, 1};
    return CHECK_QDNN(qdnnCreateMatmulDescriptor(&d->matmul)) &&
           CHECK_QDNN(qdnnCreateTensorDescriptor(&d->x)) && CHECK_QDNN(qdnnCreateTensorDescriptor(&d->y)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(d->x, c->x, 2, x_dims, x_strides)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(d->y, c->y, 2, y_dims, y_strides)) &&
           quant_descriptors_make(&c->weights, &d->weights) && set_attributes(c, d->matmul, p->alpha_number);
}

static void descriptors_free(product_descriptors *d)
{
    qdnnDestroyMatmulDescriptor(d->matmul);
    qdnnDestroyTensorDescriptor(d->x);
    qdnnDestroyTensorDescriptor(d->y);
    quant_descriptors_free(&d->weights);
}

static int bind_operands(const product_case *c, const product_operands *o, const device_buffer *at,
                         qdnnBinding_t *bindings)
{
    int n = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        int from = i == QDNN_OPERAND_RESIDUAL && c->in_place ? QDNN_OPERAND_Y : i;
        if (o->host[i])
            bindings[n++] = (qdnnBinding_t){(qdnnOperand_t)i, device_buffer_at(&at[from]), o->bytes[i]};
    }
    return n;
}

static bool execute(qdnnHandle_t handle, const product_case *c, qdnnPlan_t plan,
                    const qdnnBinding_t *bindings, int n)
{
    size_t bytes = 0;
    void *workspace = NULL;
    bool ok = CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &bytes)) &&
              (bytes == 0 || CHECK_QDNN(qdnnMalloc(handle, &workspace, bytes)));
    if (ok)
        ok = c->rows < 0 ? CHECK_QDNN(qdnnExecute(handle, plan, bindings, n, workspace, bytes))
                         : CHECK_QDNN(qdnnExecuteRows(handle, plan, c->rows, bindings, n, workspace, bytes));
    ok = ok && CHECK_QDNN(qdnnSynchronize(handle));
    if (workspace)
        qdnnFree(handle, workspace);
    return ok;
}

static bool make_buffers(qdnnHandle_t handle, buffer_kind kind, size_t shift, const product_operands *o,
                         device_buffer *at)
{
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (o->host[i])
            ok = device_buffer_make(handle, kind, o->bytes[i],
                                    i == QDNN_OPERAND_CODES || i == QDNN_OPERAND_X ? shift : 0, &at[i]) &&
                 device_buffer_write(&at[i], o->host[i]);
    return ok;
}

static void check_buffers(const product_operands *o, const device_buffer *at)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (o->host[i])
            device_buffer_check(&at[i], i == QDNN_OPERAND_Y ? o->expected : o->host[i],
                                quant_operand_name(i));
}

bool product_run_operands(qdnnHandle_t handle, const product_case *c, buffer_kind buffers, const product_operands *o)
{
    product_descriptors d = {0};
    device_buffer at[QDNN_OPERAND_COUNT] = {0};
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnPlan_t plan = NULL;
    bool ok = make_buffers(handle, buffers, c->shift, o, at) && descriptors_make(c, &o->product, &d) &&
              CHECK_QDNN(qdnnCreateMatmulPlan(handle, d.matmul, d.x, d.weights.tensor, d.weights.quant, d.y,
                                              &plan)) &&
              execute(handle, c, plan, bindings, bind_operands(c, o, at, bindings));
    if (ok)
        check_buffers(o, at);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        device_buffer_free(&at[i]);
    qdnnDestroyPlan(plan);
    descriptors_free(&d);
    return ok;
}

bool product_run(qdnnHandle_t handle, const product_case *c, buffer_kind buffers)
{
    char text[1200];
    product_operands o;
    product_case_text(c, text, sizeof text);
    test_push_note("%s", text);
    bool ok = product_operands_make(c, &o) && product_run_operands(handle, c, buffers, &o);
    product_operands_free(&o);
    test_pop_note();
    return ok;
}
