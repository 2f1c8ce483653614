/* A specification is made normal once, where it enters, however many functions it goes through. */
#include "device/under_test.h"
#include "kernels/formats/format.h"
#include "test.h"

#include <qdnn/qdnn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Every kernel_spec_normal calls this once, from another file. */
static atomic_int times;
qdnnDataType_t __real_format_zero_type(const format_row *format, const kernel_spec *spec);
qdnnDataType_t __wrap_format_zero_type(const format_row *format, const kernel_spec *spec);
qdnnDataType_t __wrap_format_zero_type(const format_row *format, const kernel_spec *spec)
{
    times++;
    return __real_format_zero_type(format, spec);
}

static int taken(void)
{
    const int now = times;
    times = 0;
    return now;
}

TEST_CASE(KernelsNormal, WhatIsNormalStaysSo)
{
    for (int i = 0; i < kernel_row_count; i++) {
        kernel_spec spec = kernel_spec_default();
        const kernel_spec normal = kernel_spec_normal(&kernel_rows[i], &spec);
        test_push_note("%s", kernel_rows[i].name);
        CHECK(kernel_spec_is_normal(&kernel_rows[i], &normal));
        test_pop_note();
    }
    const kernel_row *row = kernel_find("quantize_int4");
    const kernel_spec usual = kernel_spec_default();
    kernel_spec spec = kernel_spec_normal(row, &usual);
    spec.train.bits = 4; /* which the kernel does not have */
    CHECK(!kernel_spec_is_normal(row, &spec));
}

TEST_CASE(KernelsNormal, OnceForEachFunction)
{
    const kernel_row *row = kernel_find("quantize_nf4");
    kernel_spec spec = kernel_spec_default();
    char text[KERNEL_SPEC_TEXT];
    kernel_steps steps;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_text emitted;
    ptx_error error;
#ifndef NDEBUG
    SKIP("assertions make the specification normal, too");
#endif
    taken();
    CHECK(kernel_spec_settle(row, &spec, text, sizeof text));
    CHECK_EQ_I64(taken(), 1);
    kernel_operands_of(row, &spec, &(kernel_problem){.rows = 1, .columns = 4096}, operands);
    CHECK_EQ_I64(taken(), 0);
    kernel_steps_of(row, &spec, &(kernel_problem){.rows = 1, .columns = 4096}, &steps);
    CHECK_EQ_I64(taken(), 1); /* each step is a kernel of its own */
    CHECK(kernel_emit_normal(row, &steps.at[0].spec, ptx_sm_find("sm_90"), NULL, &emitted, &error));
    CHECK_EQ_I64(taken(), 0);
    free(emitted.ptx);
    CHECK(kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &emitted, &error));
    CHECK_EQ_I64(taken(), 1);
    free(emitted.ptx);
    kernel_spec_text(row, &spec, text, sizeof text);
    CHECK_EQ_I64(taken(), 1); /* of the defaults, to leave them out */
}

/* A plan of a kernel that nobody has loaded yet. */
DEVICE_CASE(KernelsNormal, OnceForAColdPlan)
{
#ifndef NDEBUG
    SKIP("assertions make the specification normal, too");
#endif
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    qdnnTensorDescriptor_t x;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
    const int64_t n = 4096;
    if (!handle)
        return;
    CHECK_EQ_I64(qdnnCreateTensorDescriptor(&x), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetTensorDescriptor(x, QDNN_DATA_F16, 1, &n, NULL), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnCreateQuantDescriptor(&quant), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_NF4_BYTES, 64), QDNN_STATUS_SUCCESS);
    taken();
    CHECK_EQ_I64(qdnnCreateDequantizePlan(handle, x, quant, &plan), QDNN_STATUS_SUCCESS);
    /* what was asked for, its one step, and the defaults that the text of the settings leaves out */
    CHECK_EQ_I64(taken(), 3);
    qdnnDestroyPlan(plan);
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(x);
    device_end(handle);
}
