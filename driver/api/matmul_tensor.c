/* Products on tensor cores: the same bits on all SMs of a family. */
#include "driver/api/matmul.h"

/* For a plan's info: on which SMs the bits are the same, and how well the tensor core model of host_ref and
 * ptxvm is confirmed; for x in f16 or bf16, and for FP8. Every target has a row. */
static const struct {
    int sm;
    const char *halves, *fp8;
} families[] = {
#define SAME   "tensor: the same bits in every batch, on "
#define SM80   SAME "sm_80, 86, 87, 88 and 89; the model is "
#define FP8_80 SAME "sm_80, 86, 87 and 88, FP8 as f16; the model is "
#define SM100  SAME "sm_100, 103 and 110"
#define SM120  SAME "sm_120 and 121"
#define AS_86  "assumed to be that of sm_86"
#define AS_100 "; the model is assumed to be that of sm_100"
    {75, SAME "sm_75; the model is published", SAME "sm_75, FP8 as f16; the model is published"},
    {80, SM80 "published", FP8_80 "published"},
    {86, SM80 "published", FP8_80 "published"},
    {87, SM80 "published", FP8_80 "published"},
    {88, SM80 AS_86, FP8_80 AS_86},
    {89, SM80 "published", SAME "sm_89, by its instructions for FP8; the model is measured"},
    {90, SAME "sm_90; the model is measured", SAME "sm_90, FP8 as f16; the model is measured"},
    {100, SM100 "; the model is measured", SM100 ", FP8 as f16; the model is measured"},
    {103, SM100 AS_100, SM100 ", FP8 as f16" AS_100},
    {110, SM100 AS_100, SM100 ", FP8 as f16" AS_100},
    {120, SM120 "; the model is published", SM120 ", by their instructions for FP8; the model is published"},
    {121, SM120 "; the model is published", SM120 ", by their instructions for FP8; the model is published"},
};

static const char *choice_on(int sm, bool fp8)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (families[i].sm == sm)
            return fp8 ? families[i].fp8 : families[i].halves;
    return NULL;
}

static qdnnStatus_t check_size(const char *name, uint64_t size)
{
    if (size <= KERNEL_SIZE_32)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
        "%s is %llu; on tensor cores it must be at most 2^31 - 2^16; fix: divide the product, or use "
        "QDNN_MATMUL_EXACT",
        name, (unsigned long long)size);
}

static qdnnStatus_t check_quantized(const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    if (!value[QDNN_MATMUL_QUANTIZE_X])
        return QDNN_STATUS_SUCCESS;
    if (c->x->type == QDNN_DATA_F8E4M3 || c->x->type == QDNN_DATA_F8E5M2)
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_MATMUL_QUANTIZE_X is not 0, and x is %s already; fix: set it to 0, or give x in f32, "
            "f16 or bf16",
            qdnnGetDataTypeName(c->x->type));
    if (value[QDNN_MATMUL_X_SCALE])
        return qdnn_error(QDNN_STATUS_BAD_PARAM, "QDNN_MATMUL_X_SCALE is 1, and x is quantized in the plan, "
                                                 "which makes its scales; fix: set it to 0");
    if (c->shape.k == 0)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "K is 0; where x is quantized it must be at least 1");
    return request_check_packed(c->x);
}

/* FP8 with FP8. The kernel decides which weights it supports. */
static qdnnStatus_t check_fp8(const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    if (!matmul_x_fp8(c))
        return QDNN_STATUS_SUCCESS;
    if (value[QDNN_MATMUL_LORA_RANK])
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "QDNN_MATMUL_LORA_RANK is %lld, and x is FP8; fix: LoRA takes x in f16 or bf16",
                          (long long)value[QDNN_MATMUL_LORA_RANK]);
    return check_quantized(c);
}

static qdnnStatus_t check_x(const matmul_call *c)
{
    if (matmul_x_fp8(c) || c->x->type == QDNN_DATA_F16 || c->x->type == QDNN_DATA_BF16)
        return QDNN_STATUS_SUCCESS;
    if (c->matmul->values[QDNN_MATMUL_PREPACKED])
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "x is %s, and only products on tensor cores read prepacked weights, which take f16 or "
            "bf16; fix: convert x, or set QDNN_MATMUL_PREPACKED to 0 and pass the codes as they were",
            qdnnGetDataTypeName(c->x->type));
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "x is %s, and QDNN_MATMUL_TENSOR takes f16 or bf16; fix: convert x, or use QDNN_MATMUL_EXACT",
        qdnnGetDataTypeName(c->x->type));
}

static bool has_bf16(int sm)
{
    return sm >= 80;
}

static qdnnStatus_t check_device(const context *c, qdnnDataType_t x)
{
    if (!choice_on(c->target->number, false))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED,
                          "%s is not a target of QDNN_MATMUL_TENSOR; fix: use QDNN_MATMUL_EXACT",
                          c->target->name);
    if (x == QDNN_DATA_BF16 && !has_bf16(c->target->number))
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "x is bf16, for which %s has no tensor cores; fix: give x in f16, or use QDNN_MATMUL_EXACT",
            c->target->name);
    return QDNN_STATUS_SUCCESS;
}

/* Flat groups that continue from one column of y to the next would change in the middle of a step. */
qdnnStatus_t matmul_check_flat(const kernel_row *row, const kernel_spec *spec, uint64_t k)
{
    if (kernel_columns_multiple(row) > 1) /* blocks contain their scales, so there are no groups */
        return QDNN_STATUS_SUCCESS;
    if (spec->stored.groups != QDNN_GROUPS_FLAT || spec->stored.channels == 1 ||
        k % spec->stored.group_size == 0)
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "K is %llu and the flat groups have %llu elements; prepacked weights need groups that divide K",
        (unsigned long long)k, (unsigned long long)spec->stored.group_size);
}

static void choose_kernel(const matmul_call *c, const kernel_row *row, const kernel_problem *problem,
                          kernel_spec *spec)
{
    kernel_tensor_choose(row, c->matmul->values[QDNN_MATMUL_PREPACKED], problem, spec);
}

static qdnnStatus_t prepare(const matmul_call *c, request *out)
{
    CHECK_STATUS(check_x(c));
    CHECK_STATUS(check_fp8(c));
    CHECK_STATUS(check_size("M", c->problem.m));
    CHECK_STATUS(check_size("N", c->shape.outputs));
    CHECK_STATUS(check_size("K", c->shape.k));
    CHECK_STATUS(matmul_prepare(c, choose_kernel, out));
    return c->matmul->values[QDNN_MATMUL_PREPACKED] ? matmul_check_flat(out->row, &out->spec, c->shape.k)
                                                    : QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t fill(qdnnPlan_t plan, const matmul_call *c, const request *r)
{
    const context *on = plan->handle->context;
    const bool fp8 = matmul_x_fp8(c);
    CHECK_STATUS(check_device(on, fp8 ? QDNN_DATA_F16 : c->x->type));
    plan->info.choice = choice_on(on->target->number, fp8);
    return matmul_fill(plan, c, r);
}

const char *tensor_bits_on(int sm)
{
    return choice_on(sm, false);
}

bool tensor_has_type(int sm, qdnnDataType_t x)
{
    return choice_on(sm, false) && (x == QDNN_DATA_F16 || (x == QDNN_DATA_BF16 && has_bf16(sm)));
}

bool matmul_tensor_has(qdnnHandle_t handle, const matmul_call *c)
{
    const int sm = handle->context->target->number;
    return matmul_x_fp8(c) ? choice_on(sm, false) != NULL : tensor_has_type(sm, c->x->type);
}

const matmul_way matmul_tensor = {.choice = "tensor", .prepare = prepare, .fill = fill};
