/* A call of a quantization operation as data. */
#include "device/quant_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/device_buffer.h"
#include "driver/api/request.h"
#include "host_ref/host_ref.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

int64_t quant_case_elements(const quant_case *c)
{
    int64_t n = 1;
    for (int i = 0; i < c->rank; i++)
        n *= c->dims[i];
    return n;
}

/* Element i is in group (i / group_size) mod channels; without channels in i / group_size. */
static void set_groups(const quant_case *c, int64_t *group_size, int64_t *channels)
{
    *group_size = c->granularity == QDNN_GRANULARITY_GROUP ? c->extent : 1;
    *channels = c->granularity == QDNN_GRANULARITY_TENSOR ? 1 : 0;
    if (c->granularity != QDNN_GRANULARITY_CHANNEL || quant_case_elements(c) == 0)
        return;
    *channels = c->dims[c->extent];
    for (int i = (int)c->extent + 1; i < c->rank; i++)
        *group_size *= c->dims[i];
}

void quant_case_text(const quant_case *c, char *text, size_t size)
{
    static const char *const kinds[] = {"normal", "constant", "zeros", "subnormal",
                                        "huge",   "special",  "ties"};
    char settings[256], dims[128] = "";
    int64_t group_size, channels;
    set_groups(c, &group_size, &channels);
    kernel_spec spec = c->spec;
    spec.group_size = (uint64_t)group_size;
    spec.channels = (uint64_t)channels;
    kernel_spec_text(c->row, &spec, settings, sizeof settings);
    for (int i = 0, used = 0; i < c->rank; i++)
        used += snprintf(dims + used, sizeof dims - (size_t)used, " %lld", (long long)c->dims[i]);
    snprintf(text, size, "%s: %s, dims%s, %s data, seed %u%s", c->row->name, settings, dims, kinds[c->kind],
             (unsigned)c->seed, c->callers ? ", a caller's scales" : "");
}

/* ---- Descriptors ---- */

static qdnnScaleType_t scale_type(qdnnDataType_t type)
{
    return type == QDNN_DATA_F32 ? QDNN_SCALE_F32 : type == QDNN_DATA_F16 ? QDNN_SCALE_F16 : QDNN_SCALE_BF16;
}

static bool set_options(const quant_case *c, qdnnQuantDescriptor_t quant)
{
    const struct {
        qdnnQuantAttribute_t attribute;
        int64_t value;
    } options[] = {
        {QDNN_QUANT_SCALE_TYPE, scale_type(c->spec.scale)},
        {QDNN_QUANT_ZERO_TYPE, c->spec.zero},
        {QDNN_QUANT_ROUNDING, c->spec.rounding},
        {QDNN_QUANT_DIVISION, c->spec.division},
        {QDNN_QUANT_NIBBLE_ORDER, c->spec.nibble_order},
    };
    bool ok = CHECK_QDNN(qdnnSetQuantFloor(quant, c->spec.floor));
    for (int i = 0; i < LENGTH(options); i++)
        ok = CHECK_QDNN(qdnnSetQuantAttribute(quant, options[i].attribute, options[i].value)) && ok;
    return ok;
}

/* Tries every storage with every kind of zero until one leads to the case's kernel. */
static bool find_format(const quant_case *c, quant_descriptors *d)
{
    static const qdnnDataType_t storages[] = {QDNN_DATA_I4,  QDNN_DATA_NF4,    QDNN_DATA_I8,
                                              QDNN_DATA_FP4, QDNN_DATA_F8E4M3, QDNN_DATA_F8E5M2};
    for (int s = 0; s < LENGTH(storages); s++)
        for (int zero = QDNN_ZERO_NONE; zero <= QDNN_ZERO_MINIMUM; zero++) {
            request r;
            CHECK_QDNN(qdnnSetQuantDescriptor(d->quant, storages[s], c->granularity, c->extent));
            CHECK_QDNN(qdnnSetQuantAttribute(d->quant, QDNN_QUANT_ZERO_KIND, zero));
            if (set_options(c, d->quant) &&
                request_make(c->row->operation, d->tensor, d->quant, &r) == QDNN_STATUS_SUCCESS &&
                r.row == c->row)
                return true;
        }
    FAIL("no storage and kind of zero lead to %s", c->row->name);
    return false;
}

bool quant_descriptors_make(const quant_case *c, quant_descriptors *out)
{
    *out = (quant_descriptors){0};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(&out->tensor)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(out->tensor, c->spec.data, c->rank, c->dims, NULL)) &&
           CHECK_QDNN(qdnnCreateQuantDescriptor(&out->quant)) && find_format(c, out);
}

void quant_descriptors_free(quant_descriptors *d)
{
    qdnnDestroyTensorDescriptor(d->tensor);
    qdnnDestroyQuantDescriptor(d->quant);
    *d = (quant_descriptors){0};
}

/* ---- Operands ---- */

const char *quant_operand_name(int operand)
{
    static const char *const names[QDNN_OPERAND_COUNT] = {"x", "y", "codes", "scale", "zero"};
    return names[operand];
}

static ref_quant_spec reference_of(const quant_case *c)
{
    ref_quant_spec ref = {.format = c->row->format,
                          .data = c->spec.data,
                          .scale = c->spec.scale,
                          .zero = c->spec.zero,
                          .nibble_order = c->spec.nibble_order,
                          .rounding = c->spec.rounding,
                          .division = c->spec.division,
                          .floor = c->spec.floor};
    set_groups(c, &ref.group_size, &ref.channels);
    return ref;
}

static int plain_operand(const quant_case *c)
{
    return c->row->operation == KERNEL_DEQUANTIZE ? QDNN_OPERAND_Y : QDNN_OPERAND_X;
}

static void set_roles(const quant_case *c, unsigned *reads, unsigned *writes)
{
    unsigned plain = 1u << plain_operand(c), codes = 1u << QDNN_OPERAND_CODES,
             scale = 1u << QDNN_OPERAND_SCALE;
    unsigned sidecars = scale | (c->row->keys & KERNEL_KEY_ZERO ? 1u << QDNN_OPERAND_ZERO : 0);
    switch (c->row->operation) {
    case KERNEL_QUANTIZE:
        *reads = plain | sidecars, *writes = codes;
        break;
    case KERNEL_DEQUANTIZE:
        *reads = codes | sidecars, *writes = plain;
        break;
    default:
        *reads = plain, *writes = sidecars;
    }
}

static void set_sizes(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    int64_t n = quant_case_elements(c), groups = ref_group_count(ref, n);
    bool has_zero = c->row->keys & KERNEL_KEY_ZERO;
    const int64_t counts[QDNN_OPERAND_COUNT] = {n, n, ref_packed_bytes(n), groups, has_zero ? groups : 0};
    const qdnnDataType_t types[QDNN_OPERAND_COUNT] = {c->spec.data, c->spec.data, QDNN_DATA_U8, c->spec.scale,
                                                      c->spec.zero};
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        o->element[i] = ref_scalar_size(types[i]);
        o->bytes[i] = (size_t)counts[i] * o->element[i];
    }
    set_roles(c, &o->reads, &o->writes);
}

/* Inputs of quantize and dequantize are host_ref's own outputs, unless they are a caller's. */
static void fill(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    int64_t n = quant_case_elements(c), groups = ref_group_count(ref, n);
    uint8_t *plain = o->host[plain_operand(c)], *codes = o->host[QDNN_OPERAND_CODES],
            *scale = o->host[QDNN_OPERAND_SCALE], *zero = o->host[QDNN_OPERAND_ZERO];
    fill_data(c->kind, c->row->format, c->spec.data, c->seed, plain, n);
    ref_scale(ref, plain, n, scale, zero);
    if (c->callers) {
        fill_callers_scales(c->spec.scale, scale, groups);
        if (o->bytes[QDNN_OPERAND_ZERO] > 0)
            fill_callers_zeros(c->spec.zero, zero, groups);
    }
    ref_quantize(ref, plain, n, scale, zero, codes);
    if (c->row->operation != KERNEL_DEQUANTIZE)
        return;
    if (c->callers)
        fill_bytes(c->seed, codes, (int64_t)o->bytes[QDNN_OPERAND_CODES]);
    ref_dequantize(ref, codes, n, scale, zero, plain);
}

bool quant_operands_make(const quant_case *c, quant_operands *out)
{
    ref_quant_spec ref = reference_of(c);
    bool ok = true;
    *out = (quant_operands){0};
    set_sizes(c, &ref, out);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        out->host[i] = calloc(out->bytes[i] + 1, 1);
        ok = CHECK(out->host[i] != NULL) && ok;
    }
    if (ok)
        fill(c, &ref, out);
    return ok;
}

void quant_operands_free(quant_operands *o)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(o->host[i]);
    *o = (quant_operands){0};
}

/* ---- Calls ---- */

typedef qdnnStatus_t create_plan_fn(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t,
                                    qdnnPlan_t *);

static create_plan_fn *const create_plan[] = {
    [KERNEL_SCALE] = qdnnCreateScalePlan,
    [KERNEL_QUANTIZE] = qdnnCreateQuantizePlan,
    [KERNEL_DEQUANTIZE] = qdnnCreateDequantizePlan,
};

/* Executes a plan with a workspace of exactly the size that it asks for. */
static qdnnStatus_t execute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings, int count)
{
    size_t bytes;
    device_buffer workspace;
    qdnnStatus_t status = qdnnGetPlanWorkspaceSize(plan, &bytes);
    if (status != QDNN_STATUS_SUCCESS || !device_buffer_make(handle, BUFFER_EXACT, bytes, 0, &workspace))
        return status;
    status = qdnnExecute(handle, plan, bindings, count, device_buffer_at(&workspace), bytes);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSynchronize(handle);
    device_buffer_free(&workspace);
    return status;
}

qdnnStatus_t quant_call_plan(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT])
{
    qdnnPlan_t plan;
    qdnnPlanInfo_t info;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    unsigned reads, writes;
    int count = 0;
    set_roles(c, &reads, &writes);
    qdnnStatus_t status = create_plan[c->row->operation](handle, d->tensor, d->quant, &plan);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    if (CHECK_QDNN(qdnnGetPlanInfo(plan, &info)))
        CHECK_EQ_STR(info.operation, c->row->operation_name);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if ((reads | writes) >> i & 1)
            bindings[count++] = (qdnnBinding_t){(qdnnOperand_t)i, pointers[i]};
    status = execute(handle, plan, bindings, count);
    qdnnDestroyPlan(plan);
    return status;
}

static qdnnStatus_t call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                              void *const pointers[QDNN_OPERAND_COUNT])
{
    void *x = pointers[QDNN_OPERAND_X], *y = pointers[QDNN_OPERAND_Y], *codes = pointers[QDNN_OPERAND_CODES],
         *scale = pointers[QDNN_OPERAND_SCALE], *zero = pointers[QDNN_OPERAND_ZERO];
    switch (c->row->operation) {
    case KERNEL_QUANTIZE:
        return qdnnQuantize(handle, d->tensor, x, d->quant, scale, zero, codes);
    case KERNEL_DEQUANTIZE:
        return qdnnDequantize(handle, d->quant, codes, scale, zero, d->tensor, y);
    default:
        return qdnnComputeScales(handle, d->tensor, x, d->quant, scale, zero);
    }
}

qdnnStatus_t quant_call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT])
{
    qdnnStatus_t status = call_once(handle, c, d, pointers);
    return status == QDNN_STATUS_SUCCESS ? qdnnSynchronize(handle) : status;
}
