/* Products by the exact contract: choosing the kernel, and its launches. */
#include "driver/api/matmul.h"

#include <limits.h>

static qdnnStatus_t check_experts(const matmul_call *c)
{
    const int64_t *value = c->matmul->values;
    if (value[QDNN_MATMUL_EXPERTS] && value[QDNN_MATMUL_LORA_RANK])
        return qdnn_error(
            QDNN_STATUS_NOT_SUPPORTED,
            "QDNN_MATMUL_LORA_RANK is %lld, and QDNN_MATMUL_EXPERTS %lld; fix: LoRA takes one matrix of "
            "weights: set one of the two to 0",
            (long long)value[QDNN_MATMUL_LORA_RANK], (long long)value[QDNN_MATMUL_EXPERTS]);
    if (value[QDNN_MATMUL_EXPERTS] && c->problem.m > INT_MAX)
        return qdnn_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                          "x has %llu rows; a grouped product takes fewer than 2^31; fix: several calls",
                          (unsigned long long)c->problem.m);
    if (value[QDNN_MATMUL_SLOTS] > 1 && !value[QDNN_MATMUL_EXPERTS])
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "QDNN_MATMUL_SLOTS is %lld, and QDNN_MATMUL_EXPERTS is 0; slots belong to a grouped "
            "product; fix: set it to 1",
            (long long)value[QDNN_MATMUL_SLOTS]);
    if (value[QDNN_MATMUL_CHECK_INDICES] && !value[QDNN_MATMUL_EXPERTS])
        return qdnn_error(
            QDNN_STATUS_BAD_PARAM,
            "QDNN_MATMUL_CHECK_INDICES is 1, and QDNN_MATMUL_EXPERTS is 0; there are no indices to check");
    return QDNN_STATUS_SUCCESS;
}

static void choose_kernel(const matmul_call *c, const kernel_row *row, const kernel_problem *problem,
                          kernel_spec *spec)
{
    (void)c;
    kernel_product_choose(row, problem, spec);
}

/* Checks that the intermediate x A, and A and B themselves, are not too large. */
static qdnnStatus_t check_lora(const matmul_call *c)
{
    const uint64_t rank = c->problem.lora_rank, most = UINT64_C(1) << 58;
    const uint64_t sizes[] = {c->problem.m, c->shape.k, c->shape.outputs};
    for (int i = 0; i < 3; i++) {
        uint64_t elements;
        if (__builtin_mul_overflow(sizes[i], rank, &elements) || elements >= most)
            return qdnn_error(
                QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                "QDNN_MATMUL_LORA_RANK is %llu, with %s = %llu; fix: use sizes whose product is below 2^58",
                (unsigned long long)rank, (const char *const[]){"M", "K", "N"}[i],
                (unsigned long long)sizes[i]);
    }
    return QDNN_STATUS_SUCCESS;
}

/* Blocks must run along K. */
static qdnnStatus_t check_blocks(const matmul_call *c, const request *r)
{
    if (kernel_columns_multiple(r->row) == 1 || c->matmul->values[QDNN_MATMUL_TRANSPOSE_W])
        return QDNN_STATUS_SUCCESS;
    return qdnn_error(
        QDNN_STATUS_NOT_SUPPORTED,
        "%s has blocks along K, and QDNN_MATMUL_TRANSPOSE_W is 0; fix: set it to 1 and give w as [N, K]",
        kernel_format(r->row)->name);
}

qdnnStatus_t matmul_prepare(const matmul_call *c, matmul_choice *choose, request *out)
{
    CHECK_STATUS(request_read(KERNEL_MATMUL, &c->matrix, c->quant, out));
    CHECK_STATUS(check_blocks(c, out));
    CHECK_STATUS(check_experts(c));
    CHECK_STATUS(check_lora(c));
    out->spec.data = c->spec.data;
    out->spec.product = c->spec.product;
    out->spec.epilogue = c->spec.epilogue;
    out->problem = c->problem;
    choose(c, out->row, &out->problem, &out->spec);
    char reason[256];
    if (!kernel_spec_settle_kernel(out->row, &out->spec, reason, sizeof reason))
        return qdnn_error(QDNN_STATUS_NOT_SUPPORTED, "%s", reason);
    kernel_operands_of(out->row, &out->spec, &out->problem, out->operands);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t prepare(const matmul_call *c, request *out)
{
    return matmul_prepare(c, choose_kernel, out);
}

qdnnStatus_t matmul_fill(qdnnPlan_t plan, const matmul_call *c, const request *r)
{
    if (c->matmul->values[QDNN_MATMUL_CHECK_INDICES])
        plan->checked_experts = (uint32_t)c->problem.experts;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        plan_needs(plan, (qdnnOperand_t)i, r->operands[i]);
    return plan_add(plan, r, PLAN_PLACES);
}

const matmul_way matmul_exact = {
    .choice = "exact: the same bits on every SM and in every batch", .prepare = prepare, .fill = matmul_fill};
