/* Rows by their numbers (an embedding lookup) through the public API against host_ref: repeated numbers, in
 * no order, and some that are not rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/quant_case.h"
#include "formats/ref_spec.h"
#include "parity/matrix.h"
#include "device/under_test.h"
#include "test.h"

enum { ROWS_TRIALS = 10 };

/* Dequantize kernels of formats that have layouts, and of blocks. */
static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_DEQUANTIZE &&
            kernel_takes(&kernel_rows[i], "row_index") && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

/* Rows of blocks: shorter and longer than a tile, of bytes that 16, 4 or nothing divides. */
static parity_trial blocks_trial(const kernel_row *row, int index)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
    static const int64_t blocks[] = {1, 2, 3, 8, 16, 17, 130, 5};
    parity_trial t = {.c = {.row = row,
                            .spec = kernel_spec_default(),
                            .granularity = QDNN_GRANULARITY_GROUP,
                            .extent = 128,
                            .rank = 2,
                            .dims = {9, blocks[index % 8] * (int64_t)kernel_columns_multiple(row)},
                            .seed = (uint32_t)index + 1,
                            .callers = index % 3 == 2},
                      .buffers = index % 2 ? BUFFER_EXACT : BUFFER_BANDS,
                      .by_plan = true};
    t.c.spec.data = types[index % 4];
    t.shift[QDNN_OPERAND_CODES] = index % 4 == 3;
    t.shift[QDNN_OPERAND_Y] = index % 5 == 4;
    return t;
}

static parity_trial trial_at(const kernel_row *row, int index)
{
    return kernel_format(row)->block
               ? blocks_trial(row, index)
               : matrix_trial_at(row, MATRIX_TURNS, index); /* a turn that the other tests do not have */
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
    snprintf(text, size, "%s", row_at(index)->name);
}

/* The result: what host_ref makes of the rows of the list. */
typedef struct lookup {
    int64_t count, table_rows, columns;
    int32_t *index;
    uint8_t *y;
    size_t y_bytes;
} lookup;

static bool lookup_make(const quant_case *c, const quant_operands *o, lookup *l)
{
    static const int32_t strange[] = {-1, INT32_MIN, INT32_MAX};
    *l = (lookup){.count = c->seed % 3 ? 41 : 5,
                  .table_rows = quant_case_rows(c),
                  .columns = quant_case_row_elements(c)};
    ref_quant_spec ref = quant_case_reference(c);
    ref_arrays arrays = ref_arrays_of(o->host);
    l->y_bytes = (size_t)(l->count * l->columns) * ref_scalar_size(c->spec.data);
    l->index = malloc((size_t)l->count * sizeof *l->index);
    l->y = calloc(l->y_bytes + 1, 1);
    if (!CHECK(l->index && l->y))
        return false;
    for (int64_t i = 0; i < l->count; i++)
        l->index[i] = i % 7 == 3   ? strange[i / 7 % 3]
                      : i % 7 == 5 ? (int32_t)l->table_rows
                                   : (int32_t)((i * 11 + c->seed) % l->table_rows);
    ref_dequantize_rows(&ref, l->table_rows, l->columns, &arrays, l->index, l->count, l->y);
    return true;
}

/* The first half of the list alone: the other rows of y stay as they are. */
static bool check_fewer(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings, int n,
                        const lookup *l, const device_buffer *y)
{
    const int64_t rows = l->count / 2;
    const size_t written = (size_t)rows * (l->y_bytes / (size_t)l->count);
    uint8_t *expected = malloc(l->y_bytes + 1);
    bool ok = CHECK(expected != NULL);
    if (ok) {
        memset(expected, 0xA5, l->y_bytes);
        ok = device_buffer_write(y, expected) &&
             CHECK_QDNN(qdnnExecuteRows(handle, plan, rows, bindings, n, NULL, 0)) &&
             CHECK_QDNN(qdnnSynchronize(handle));
        memcpy(expected, l->y, written);
        if (ok)
            device_buffer_check(y, expected, "y of the first half");
    }
    free(expected);
    return ok;
}

static bool run(qdnnHandle_t handle, const parity_trial *t, const quant_descriptors *d,
                const quant_operands *o, const lookup *l)
{
    device_buffer at[QDNN_OPERAND_COUNT] = {0};
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnTensorDescriptor_t y = NULL;
    qdnnPlan_t plan = NULL;
    int n = 0;
    bool ok = true;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++) {
        bool is_y = i == QDNN_OPERAND_Y, is_index = i == QDNN_OPERAND_ROW_INDEX;
        if (!is_y && !is_index && !(o->reads >> i & 1))
            continue;
        size_t bytes = is_y ? l->y_bytes : is_index ? (size_t)l->count * 4 : o->bytes[i];
        ok = device_buffer_make(handle, t->buffers, bytes, t->shift[i] * (is_index ? 4 : o->element[i]),
                                &at[i]) &&
             (is_y || device_buffer_write(&at[i], is_index ? (const void *)l->index : o->host[i]));
        bindings[n++] = (qdnnBinding_t){.operand = (qdnnOperand_t)i, .pointer = device_buffer_at(&at[i])};
    }
    ok = ok && CHECK_QDNN(qdnnCreateTensorDescriptor(&y)) &&
         CHECK_QDNN(
             qdnnSetTensorDescriptor(y, t->c.spec.data, 2, (const int64_t[]){l->count, l->columns}, NULL)) &&
         CHECK_QDNN(qdnnCreateDequantizeRowsPlan(handle, d->tensor, d->quant, y, &plan)) &&
         check_fewer(handle, plan, bindings, n, l, &at[QDNN_OPERAND_Y]) &&
         CHECK_QDNN(qdnnExecute(handle, plan, bindings, n, NULL, 0)) && CHECK_QDNN(qdnnSynchronize(handle));
    if (ok)
        device_buffer_check(&at[QDNN_OPERAND_Y], l->y, "y");
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        device_buffer_free(&at[i]);
    qdnnDestroyPlan(plan);
    qdnnDestroyTensorDescriptor(y);
    return ok;
}

static bool run_trial(qdnnHandle_t handle, const parity_trial *t)
{
    char text[512];
    quant_descriptors d = {0};
    quant_operands o = {0};
    lookup l = {0};
    quant_case_text(&t->c, text, sizeof text);
    test_push_note("%s", text);
    bool ok = quant_descriptors_make(&t->c, &d) && quant_operands_make(&t->c, &o) &&
              lookup_make(&t->c, &o, &l) && run(handle, t, &d, &o, &l);
    free(l.index);
    free(l.y);
    quant_operands_free(&o);
    quant_descriptors_free(&d);
    test_pop_note();
    return ok;
}

DEVICE_EACH(ParityRows, HostRef, row_count, row_name)
{
    static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
    qdnnHandle_t handle = device_begin(sms[index % 6], 1, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < ROWS_TRIALS && alive; i++) {
        parity_trial t = trial_at(row_at(index), i);
        if (quant_case_elements(&t.c) > 0 && t.c.rank <= 2)
            alive = run_trial(handle, &t);
    }
    device_end(handle);
}
