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
             "%u, experts %d, slots %d%s%s, lora %d, x scale %d, x quantized to %d; weights %s",
             (long long)c->m, (long long)c->rows, qdnnGetDataTypeName(c->x), qdnnGetDataTypeName(c->y),
             c->k_rows ? "[K, N]" : "[N, K]", (long long)c->x_gap, (long long)c->y_gap, (int)c->alpha,
             c->bias, (int)c->activation, c->gated ? ", gated" : "", c->residual ? ", residual" : "",
             c->in_place ? " in place" : "", (int)c->kind, (unsigned)c->seed, (int)c->experts, (int)c->slots,
             c->one_expert ? ", all on one" : "", c->row_weight ? ", weighted" : "", (int)c->lora_rank,
             (int)c->x_scale, (int)c->quantize_x, weights);
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
                               .gated = c->gated,
                               .experts = c->experts,
                               .slots = c->slots};
    o->product.x_stride = o->product.k + c->x_gap;
    o->product.y_stride = (c->gated ? o->product.outputs / 2 : o->product.outputs) + c->y_gap;
}

/* Rows of x. */
static int64_t x_rows(const ref_product *p)
{
    return p->slots ? p->m / p->slots : p->m;
}

static bool is_fp8(qdnnDataType_t type)
{
    return type == QDNN_DATA_F8E4M3 || type == QDNN_DATA_F8E5M2;
}

static size_t element_size(qdnnDataType_t type)
{
    return is_fp8(type) ? 1 : ref_scalar_size(type);
}

static size_t strided(int64_t rows, int64_t stride, int64_t columns, qdnnDataType_t type)
{
    return rows && columns ? (size_t)((rows - 1) * stride + columns) * element_size(type) : 0;
}

/* FP8 codes of numbers of the given kind; for special data, arbitrary bytes. */
static void fill_fp8(const product_case *c, uint8_t *codes, int64_t count)
{
    float *numbers = calloc((size_t)count + 1, sizeof *numbers);
    fill_data(c->kind, NULL, QDNN_DATA_F32, c->seed, numbers, count);
    for (int64_t i = 0; i < count; i++)
        codes[i] =
            (uint8_t)ref_f32_to_minifloat(c->x == QDNN_DATA_F8E4M3 ? REF_E4M3 : REF_E5M2, 16 * numbers[i]);
    if (c->kind == DATA_SPECIAL)
        fill_bytes(c->seed, codes, count);
    free(numbers);
}

/* Quantizes x as the plan does. */
static bool quantize_x(const product_case *c, product_operands *o)
{
    const ref_product *p = &o->product;
    const ref_quant_spec spec = {
        .data = c->x, .storage = c->quantize_x, .group_size = p->k, .scale = QDNN_SCALE_F32, .floor = 1e-12f};
    const int64_t count = x_rows(p) * p->k;
    o->x_codes = malloc((size_t)count + 1);
    o->x_scales = malloc(((size_t)x_rows(p) + 1) * sizeof *o->x_scales);
    if (!CHECK(o->x_codes && o->x_scales))
        return false;
    const ref_arrays arrays = {.codes = o->x_codes, .scale = o->x_scales};
    ref_scale(&spec, 1, count, o->host[QDNN_OPERAND_X], &arrays);
    ref_quantize(&spec, 1, count, o->host[QDNN_OPERAND_X], &arrays);
    return true;
}

/* In each row numbers, then the same with the other sign, a multiple of the contract's 256 later, and zeros. Times equal weights, every
 * lane of the exact contract adds what it subtracts later: its sum is the error of its roundings, which shows even in a y with few bits. */
static void make_cancel(const ref_product *p, uint8_t *x)
{
    enum { ROUND = 256 };
    const int64_t half = p->k < 2 * ROUND ? ROUND : p->k / 2 / ROUND * ROUND;
    const size_t size = ref_scalar_size(p->x);
    for (int64_t m = 0; m < x_rows(p); m++)
        for (int64_t k = 0; k < p->k; k++) {
            uint8_t *at = x + (size_t)(m * p->x_stride + k) * size;
            if (k >= half && k < 2 * half) {
                memcpy(at, at - (size_t)half * size, size);
                at[size - 1] ^= 0x80;
            } else if (k >= half || k + half >= p->k) {
                memset(at, 0, size);
            }
        }
}

static bool cancels(const product_case *c)
{
    return c->kind == DATA_CANCELS || c->kind == DATA_LARGE_CANCELS;
}

static void fill_operands(const product_case *c, product_operands *o)
{
    const ref_product *p = &o->product;
    /* Beside other numbers, the sign of 0, the last bits of a sum and a tiny sum would not be seen. */
    const bool alone = c->kind == DATA_ZEROS || c->kind == DATA_TINY || cancels(c) ||
                       c->weights.kind == DATA_SMALL || c->weights.kind == DATA_UNEQUAL;
    const data_kind addends = alone ? DATA_ZEROS : DATA_NORMAL;
    const int64_t n = c->gated ? p->outputs / 2 : p->outputs, stack = c->experts ? c->experts : 1;
    const size_t x_bytes = strided(x_rows(p), p->x_stride, p->k, p->x),
                 y_bytes = strided(p->m, p->y_stride, n, p->y);
    const format_facts *format = kernel_format(c->weights.row);
    uint8_t *x = new_operand(o, QDNN_OPERAND_X, x_bytes);
    if (is_fp8(c->x))
        fill_fp8(c, x, (int64_t)x_bytes);
    else
        fill_data(c->kind, format, c->x, c->seed, x, (int64_t)(x_bytes / ref_scalar_size(c->x)));
    if (cancels(c))
        make_cancel(p, x);
    if (c->x_scale)
        fill_data(DATA_NORMAL, format, QDNN_DATA_F32, c->seed + 8,
                  new_operand(o, QDNN_OPERAND_X_SCALE, (size_t)x_rows(p) * 4), x_rows(p));
    fill_bytes(c->seed + 1, new_operand(o, QDNN_OPERAND_Y, y_bytes), (int64_t)y_bytes);
    if (c->alpha == QDNN_ALPHA_ONE || c->alpha == QDNN_ALPHA_COLUMN) {
        int64_t count = c->alpha == QDNN_ALPHA_ONE ? 1 : p->outputs * stack;
        fill_data(DATA_NORMAL, format, QDNN_DATA_F32, c->seed + 2,
                  new_operand(o, QDNN_OPERAND_ALPHA, (size_t)count * 4), count);
    }
    if (c->bias)
        fill_data(addends, format, (qdnnDataType_t)c->bias, c->seed + 3,
                  new_operand(o, QDNN_OPERAND_BIAS, (size_t)(p->outputs * stack) * ref_scalar_size(p->bias)),
                  p->outputs * stack);
    if (c->residual)
        fill_data(addends, format, c->y, c->seed + 4, new_operand(o, QDNN_OPERAND_RESIDUAL, y_bytes),
                  (int64_t)(y_bytes / ref_scalar_size(c->y)));
    if (c->residual && c->in_place)
        memcpy(o->host[QDNN_OPERAND_Y], o->host[QDNN_OPERAND_RESIDUAL], y_bytes);
    if (c->row_weight)
        fill_data(DATA_NORMAL, format, QDNN_DATA_F32, c->seed + 5,
                  new_operand(o, QDNN_OPERAND_ROW_WEIGHT, (size_t)p->m * 4), p->m);
}

/* ---- Experts ---- */

/* Any expert, or an invalid number: negative, just above the last, far above. */
static void fill_experts(const product_case *c, product_operands *o)
{
    const int32_t strange[] = {-1, (int32_t)c->experts, INT32_MAX, INT32_MIN};
    int32_t *index = (int32_t *)(void *)new_operand(o, QDNN_OPERAND_EXPERT_INDEX, (size_t)c->m * 4);
    uint32_t state = c->seed * 2654435761u;
    for (int64_t i = 0; i < c->m; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t any = state >> 8;
        index[i] = c->one_expert  ? (int32_t)c->experts - 1
                   : any % 9 == 8 ? strange[any / 9 % 4]
                                  : (int32_t)(any % (uint32_t)c->experts);
    }
}

static bool is_of_each(int operand)
{
    return operand == QDNN_OPERAND_CODES || operand == QDNN_OPERAND_SCALE || operand == QDNN_OPERAND_ZERO ||
           operand == QDNN_OPERAND_GLOBAL_SCALE || operand == QDNN_OPERAND_GROUP_INDEX ||
           operand == QDNN_OPERAND_NESTED_SCALE;
}

/* The arrays of all experts, back to back. */
static bool make_weights(const product_case *c, quant_operands *out)
{
    if (!quant_operands_make(&c->weights, out))
        return false;
    bool ok = true;
    for (int64_t e = 1; e < c->experts && ok; e++) {
        quant_case other = c->weights;
        quant_operands next;
        other.seed += (uint32_t)e * 97;
        ok = quant_operands_make(&other, &next);
        for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++) {
            size_t bytes = next.bytes[i];
            if (!is_of_each(i) || bytes == 0)
                continue;
            uint8_t *longer = realloc(out->host[i], out->bytes[i] + bytes + 1);
            if (!CHECK(longer != NULL))
                ok = false;
            else
                memcpy((out->host[i] = longer) + out->bytes[i], next.host[i], bytes);
            out->bytes[i] += bytes;
        }
        quant_operands_free(&next);
    }
    return ok;
}

/* ---- LoRA ---- */

/* y [m, n] in f32 = alpha * x W, W [k, n] plain. */
static void plain_product(const ref_product *like, const void *x, qdnnDataType_t x_type, int64_t x_stride,
                          const void *w, qdnnDataType_t w_type, int64_t k, int64_t n, float alpha, float *y)
{
    ref_product p = {.m = like->m,
                     .k = k,
                     .outputs = n,
                     .k_rows = true,
                     .weights = {.data = w_type, .storage = w_type, .group_size = 1, .no_scale = true},
                     .x = x_type,
                     .y = QDNN_DATA_F32,
                     .x_stride = x_stride,
                     .y_stride = n,
                     .alpha = QDNN_ALPHA_NUMBER,
                     .alpha_number = alpha};
    ref_product_arrays a = {.x = x, .weights = {.codes = (void *)w}, .y = y};
    ref_product_exact(&p, &a);
}

static const float lora_scale = 0.375f;

static bool make_lora(const product_case *c, product_operands *o)
{
    const ref_product *p = &o->product;
    const int64_t a_count = p->k * c->lora_rank, b_count = c->lora_rank * p->outputs;
    const size_t element = ref_scalar_size(c->lora_type);
    const format_facts *format = kernel_format(c->weights.row);
    fill_data(DATA_NORMAL, format, c->lora_type, c->seed + 6,
              new_operand(o, QDNN_OPERAND_LORA_A, (size_t)a_count * element), a_count);
    fill_data(DATA_NORMAL, format, c->lora_type, c->seed + 7,
              new_operand(o, QDNN_OPERAND_LORA_B, (size_t)b_count * element), b_count);
    float *t = malloc((size_t)(p->m * c->lora_rank + 1) * sizeof *t);
    o->addend = malloc((size_t)(p->m * p->outputs + 1) * sizeof *o->addend);
    if (CHECK(t && o->addend)) {
        plain_product(p, o->host[QDNN_OPERAND_X], p->x, p->x_stride, o->host[QDNN_OPERAND_LORA_A],
                      c->lora_type, p->k, c->lora_rank, lora_scale, t);
        plain_product(p, t, QDNN_DATA_F32, c->lora_rank, o->host[QDNN_OPERAND_LORA_B], c->lora_type,
                      c->lora_rank, p->outputs, 1, o->addend);
    }
    free(t);
    return o->addend != NULL;
}

ref_product_arrays product_arrays(const product_operands *o, void *y)
{
    return (ref_product_arrays){.x = o->host[QDNN_OPERAND_X],
                                .weights = ref_arrays_of(o->weights.host),
                                .alpha = (const float *)(const void *)o->host[QDNN_OPERAND_ALPHA],
                                .bias = o->host[QDNN_OPERAND_BIAS],
                                .residual = o->host[QDNN_OPERAND_RESIDUAL],
                                .addend = o->addend,
                                .expert_index =
                                    (const int32_t *)(const void *)o->host[QDNN_OPERAND_EXPERT_INDEX],
                                .row_weight = (const float *)(const void *)o->host[QDNN_OPERAND_ROW_WEIGHT],
                                .x_scale = (const float *)(const void *)o->host[QDNN_OPERAND_X_SCALE],
                                .y = y};
}

static void expect(const product_case *c, product_operands *o)
{
    ref_product p = o->product;
    if (c->rows >= 0)
        p.m = c->rows;
    memcpy(o->expected, o->host[QDNN_OPERAND_Y], o->bytes[QDNN_OPERAND_Y]);
    ref_product_arrays a = product_arrays(o, o->expected);
    if (c->quantize_x) {
        p.x = c->quantize_x;
        a.x = o->x_codes;
        a.x_scale = o->x_scales;
    }
    if (c->algorithm == QDNN_MATMUL_TENSOR)
        ref_product_tensor_on(&p, &a, c->sm);
    else
        ref_product_exact(&p, &a);
}

void product_prepack(const product_case *c, product_operands *o)
{
    const int64_t *dims = c->weights.dims;
    const ref_quant_spec *spec = &o->product.weights;
    const size_t stack = (size_t)(c->experts ? c->experts : 1),
                 of_one = o->weights.bytes[QDNN_OPERAND_CODES] / stack;
    const size_t packed_one = (size_t)ref_prepacked_bytes(spec, dims[c->k_rows], dims[!c->k_rows]),
                 bytes = stack * packed_one;
    uint8_t *packed = malloc(bytes + 1), **codes = &o->weights.host[QDNN_OPERAND_CODES];
    if (!CHECK(packed != NULL))
        return;
    for (size_t e = 0; e < stack; e++)
        ref_prepack(spec, dims[0], dims[1], c->k_rows, *codes + e * of_one, packed + e * packed_one);
    free(*codes);
    *codes = o->host[QDNN_OPERAND_CODES] = packed;
    o->weights.bytes[QDNN_OPERAND_CODES] = o->bytes[QDNN_OPERAND_CODES] = bytes;
}

bool product_operands_make(const product_case *c, product_operands *out)
{
    *out = (product_operands){0};
    if (!make_weights(c, &out->weights))
        return false;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (out->weights.reads >> i & 1) {
            out->host[i] = out->weights.host[i];
            out->bytes[i] = out->weights.bytes[i];
        }
    set_product(c, out);
    fill_operands(c, out);
    if (c->experts)
        fill_experts(c, out);
    if (c->lora_rank && !make_lora(c, out))
        return false;
    if (c->quantize_x && !quantize_x(c, out))
        return false;
    out->expected = malloc(out->bytes[QDNN_OPERAND_Y] + 1);
    if (!CHECK(out->expected != NULL))
        return false;
    expect(c, out);
    if (c->prepacked)
        product_prepack(c, out);
    return true;
}

void product_operands_free(product_operands *o)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (!(o->weights.reads >> i & 1))
            free(o->host[i]);
    quant_operands_free(&o->weights);
    free(o->expected);
    free(o->addend);
    free(o->x_codes);
    free(o->x_scales);
    *o = (product_operands){0};
}

/* ---- The call ---- */

typedef struct product_descriptors {
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, y, stack;
    quant_descriptors weights;
} product_descriptors;

static bool set_attributes(const product_case *c, qdnnMatmulDescriptor_t matmul, float alpha)
{
    const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
    } values[] = {{QDNN_MATMUL_ALGORITHM, c->algorithm},
                  {QDNN_MATMUL_TRANSPOSE_W, !c->k_rows},
                  {QDNN_MATMUL_ALPHA, c->alpha},
                  {QDNN_MATMUL_BIAS_TYPE, c->bias},
                  {QDNN_MATMUL_ACTIVATION, c->activation},
                  {QDNN_MATMUL_GATED, c->gated},
                  {QDNN_MATMUL_RESIDUAL, c->residual},
                  {QDNN_MATMUL_EXPERTS, c->experts},
                  {QDNN_MATMUL_SLOTS, c->slots ? c->slots : 1},
                  {QDNN_MATMUL_ROW_WEIGHT, c->row_weight},
                  {QDNN_MATMUL_LORA_RANK, c->lora_rank},
                  {QDNN_MATMUL_LORA_TYPE, c->lora_rank ? c->lora_type : QDNN_DATA_F16},
                  {QDNN_MATMUL_PREPACKED, c->prepacked},
                  {QDNN_MATMUL_X_SCALE, c->x_scale},
                  {QDNN_MATMUL_QUANTIZE_X, c->quantize_x}};
    bool ok = true;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        ok = CHECK_QDNN(qdnnSetMatmulAttribute(matmul, values[i].attribute, values[i].value)) && ok;
    ok = ok && CHECK_QDNN(qdnnSetMatmulLoraScale(matmul, lora_scale));
    return ok && (c->alpha != QDNN_ALPHA_NUMBER || CHECK_QDNN(qdnnSetMatmulAlpha(matmul, alpha)));
}

/* The descriptor of w: one more dimension if there are experts. */
static bool make_stack(const product_case *c, product_descriptors *d)
{
    const int64_t dims[] = {c->experts, c->weights.dims[0], c->weights.dims[1]};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(&d->stack)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(d->stack, c->weights.spec.data, c->experts ? 3 : 2,
                                              c->experts ? dims : dims + 1, NULL));
}

static bool descriptors_make(const product_case *c, const ref_product *p, product_descriptors *d)
{
    const int64_t n = c->gated ? p->outputs / 2 : p->outputs;
    const int64_t x_dims[] = {x_rows(p), p->k}, y_dims[] = {p->m, n};
    const int64_t x_strides[] = {p->x_stride, 1}, y_strides[] = {p->y_stride, 1};
    return CHECK_QDNN(qdnnCreateMatmulDescriptor(&d->matmul)) &&
           CHECK_QDNN(qdnnCreateTensorDescriptor(&d->x)) && CHECK_QDNN(qdnnCreateTensorDescriptor(&d->y)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(d->x, c->x, 2, x_dims, x_strides)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(d->y, c->y, 2, y_dims, y_strides)) &&
           quant_descriptors_make(&c->weights, &d->weights) &&
           set_attributes(c, d->matmul, p->alpha_number) && make_stack(c, d);
}

static void descriptors_free(product_descriptors *d)
{
    qdnnDestroyMatmulDescriptor(d->matmul);
    qdnnDestroyTensorDescriptor(d->x);
    qdnnDestroyTensorDescriptor(d->y);
    qdnnDestroyTensorDescriptor(d->stack);
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

static bool check_choice(const product_case *c, qdnnPlan_t plan)
{
    qdnnPlanInfo_t info = {.size = sizeof info};
    return !c->choice || (CHECK_QDNN(qdnnGetPlanInfo(plan, &info)) && CHECK_HAS(info.choice, c->choice));
}

bool product_run_operands(qdnnHandle_t handle, const product_case *c, buffer_kind buffers,
                          const product_operands *o)
{
    product_descriptors d = {0};
    device_buffer at[QDNN_OPERAND_COUNT] = {0};
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnPlan_t plan = NULL;
    const qdnnMath_t math = c->algorithm == QDNN_MATMUL_AUTO ? QDNN_MATH_EXACT : QDNN_MATH_FAMILY;
    bool ok = make_buffers(handle, buffers, c->shift, o, at) && descriptors_make(c, &o->product, &d) &&
              CHECK_QDNN(qdnnSetMath(handle, math)) &&
              CHECK_QDNN(qdnnCreateMatmulPlan(handle, d.matmul, d.x, d.stack, d.weights.quant, d.y, &plan)) &&
              check_choice(c, plan) && execute(handle, c, plan, bindings, bind_operands(c, o, at, bindings));
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

/* ---- In two calls ---- */

/* Dequantizes the weights to f32, to be bound as the codes of a plain matrix. */
static bool dequantize(qdnnHandle_t handle, const product_case *c, const product_descriptors *d,
                       const product_operands *o, const device_buffer *at, const device_buffer *plain)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnPlan_t plan = NULL;
    int n = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (o->weights.reads >> i & 1)
            bindings[n++] = (qdnnBinding_t){(qdnnOperand_t)i, device_buffer_at(&at[i]), o->bytes[i]};
    bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_Y, device_buffer_at(plain), plain->bytes};
    bool ok = CHECK_QDNN(qdnnSetTensorDescriptor(d->stack, QDNN_DATA_F32, 2, c->weights.dims, NULL)) &&
              CHECK_QDNN(qdnnCreateDequantizePlan(handle, d->stack, d->weights.quant, &plan)) &&
              CHECK_QDNN(qdnnExecute(handle, plan, bindings, n, NULL, 0));
    qdnnDestroyPlan(plan);
    return ok;
}

static int bind_plain(const product_case *c, const product_operands *o, const device_buffer *at,
                      const device_buffer *plain, qdnnBinding_t *bindings)
{
    qdnnBinding_t all[QDNN_OPERAND_COUNT];
    int count = bind_operands(c, o, at, all), n = 0;
    for (int i = 0; i < count; i++)
        if (!(o->weights.reads >> all[i].operand & 1))
            bindings[n++] = all[i];
    bindings[n++] = (qdnnBinding_t){QDNN_OPERAND_CODES, device_buffer_at(plain), plain->bytes};
    return n;
}

static bool run_in_two(qdnnHandle_t handle, const product_case *c, buffer_kind buffers,
                       const product_operands *o)
{
    product_descriptors d = {0};
    device_buffer at[QDNN_OPERAND_COUNT] = {0}, plain = {0};
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnPlan_t product = NULL;
    const size_t bytes = (size_t)(c->weights.dims[0] * c->weights.dims[1]) * sizeof(float);
    bool ok =
        make_buffers(handle, buffers, c->shift, o, at) &&
        device_buffer_make(handle, BUFFER_EXACT, bytes, 0, &plain) && descriptors_make(c, &o->product, &d) &&
        dequantize(handle, c, &d, o, at, &plain) &&
        CHECK_QDNN(qdnnSetQuantWeights(d.weights.quant, QDNN_WEIGHTS_F32, 0)) &&
        CHECK_QDNN(qdnnCreateMatmulPlan(handle, d.matmul, d.x, d.stack, d.weights.quant, d.y, &product)) &&
        execute(handle, c, product, bindings, bind_plain(c, o, at, &plain, bindings));
    if (ok)
        check_buffers(o, at);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        device_buffer_free(&at[i]);
    device_buffer_free(&plain);
    qdnnDestroyPlan(product);
    descriptors_free(&d);
    return ok;
}

bool product_run_in_two(qdnnHandle_t handle, const product_case *c, buffer_kind buffers)
{
    char text[1200];
    product_operands o;
    product_case_text(c, text, sizeof text);
    test_push_note("in two calls: %s", text);
    bool ok = product_operands_make(c, &o) && run_in_two(handle, c, buffers, &o);
    product_operands_free(&o);
    test_pop_note();
    return ok;
}
