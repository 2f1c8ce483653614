/* Stacks of matrices in blocks, dequantized to the transposed ones, against host_ref: every GGUF type, sizes that are multiples of
 * nothing, every type of y. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/quant_case.h"
#include "device/under_test.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_DEQUANTIZE_TRANSPOSED && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

static int row_count(void)
{
    int count = 0;
    while (row_at(count))
        count++;
    return count;
}

static void row_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_format(row_at(index))->name);
}

TEST_CASE(ParityTransposed, EveryBlockFormatHasIt)
{
    for (int i = 0; kernel_format_at(i); i++) {
        const format_facts *f = kernel_format_at(i);
        if (f->block != QDNN_BLOCK_NONE)
            CHECK(kernel_find_operation(KERNEL_DEQUANTIZE_TRANSPOSED,
                                        kernel_find_format(f->storage, 0, f->zero_kind, f->code, f->block)) !=
                  NULL);
    }
}

typedef struct shape {
    int64_t experts, n, blocks; /* 0 experts: a matrix without them; blocks of a row */
    qdnnDataType_t type;
} shape;

static const shape shapes[] = {
    {3, 33, 9, QDNN_DATA_F32}, {2, 64, 2, QDNN_DATA_F16}, {0, 7, 3, QDNN_DATA_BF16}};

/* The tensor of the experts' rows one below the other, and what host_ref makes of it. */
static bool make_case(const kernel_row *row, const shape *s, int seed, quant_case *c, quant_operands *o)
{
    const int64_t experts = s->experts ? s->experts : 1;
    *c = (quant_case){.row = kernel_find_operation(KERNEL_DEQUANTIZE, row->format),
                      .spec = kernel_spec_default(),
                      .granularity = QDNN_GRANULARITY_TENSOR,
                      .rank = 2,
                      .dims = {experts * s->n, s->blocks * (int64_t)kernel_columns_multiple(row)},
                      .callers = seed % 2,
                      .seed = (uint32_t)seed};
    c->spec.data = s->type;
    return quant_operands_make(c, o);
}

static uint8_t *transposed(const quant_case *c, const shape *s, const quant_operands *o)
{
    const size_t size = ref_scalar_size(s->type), k = (size_t)c->dims[1], n = (size_t)s->n;
    const uint8_t *from = o->host[QDNN_OPERAND_Y];
    uint8_t *to = malloc(o->bytes[QDNN_OPERAND_Y] + 1);
    for (size_t e = 0; to && e < (size_t)c->dims[0] / n; e++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < k; j++)
                memcpy(to + ((e * k + j) * n + i) * size, from + ((e * n + i) * k + j) * size, size);
    return to;
}

static bool execute(qdnnHandle_t handle, const quant_case *c, const shape *s, const quant_operands *o,
                    const device_buffer *codes, const device_buffer *y)
{
    const int64_t w_dims[] = {s->experts, s->n, c->dims[1]}, y_dims[] = {s->experts, c->dims[1], s->n};
    const int skipped = s->experts == 0;
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_CODES, device_buffer_at(codes), o->bytes[QDNN_OPERAND_CODES]},
        {QDNN_OPERAND_Y, device_buffer_at(y), o->bytes[QDNN_OPERAND_Y]}};
    quant_descriptors d = {0};
    qdnnTensorDescriptor_t t = NULL;
    qdnnPlan_t plan = NULL;
    bool ok =
        quant_descriptors_make(c, &d) && CHECK_QDNN(qdnnCreateTensorDescriptor(&t)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(d.tensor, QDNN_DATA_F32, 3 - skipped, w_dims + skipped, NULL)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(t, s->type, 3 - skipped, y_dims + skipped, NULL)) &&
        CHECK_QDNN(qdnnCreateDequantizeTransposedPlan(handle, d.tensor, d.quant, t, &plan)) &&
        CHECK_QDNN(qdnnExecute(handle, plan, bindings, 2, NULL, 0)) && CHECK_QDNN(qdnnSynchronize(handle));
    qdnnDestroyPlan(plan);
    qdnnDestroyTensorDescriptor(t);
    quant_descriptors_free(&d);
    return ok;
}

static void run_shape(qdnnHandle_t handle, const kernel_row *row, const shape *s, int seed)
{
    quant_case c;
    quant_operands o;
    device_buffer codes = {0}, y = {0};
    if (!make_case(row, s, seed, &c, &o))
        return;
    uint8_t *expected = transposed(&c, s, &o);
    if (CHECK(expected != NULL) &&
        device_buffer_make(handle, BUFFER_BANDS, o.bytes[QDNN_OPERAND_CODES], 0, &codes) &&
        device_buffer_write(&codes, o.host[QDNN_OPERAND_CODES]) &&
        device_buffer_make(handle, BUFFER_BANDS, o.bytes[QDNN_OPERAND_Y], 0, &y) &&
        execute(handle, &c, s, &o, &codes, &y))
        device_buffer_check(&y, expected, "y");
    device_buffer_free(&codes);
    device_buffer_free(&y);
    quant_operands_free(&o);
    free(expected);
}

DEVICE_EACH(ParityTransposed, HostRef, row_count, row_name)
{
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        qdnnHandle_t handle = device_begin(sms[(index + i) % SMS], index, "all");
        if (handle)
            run_shape(handle, row_at(index), &shapes[i], index + i);
        device_end(handle);
    }
}
