/* Operations on rows: operands, random values, quantized results. */
#include "device/row_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/random.h"
#include "test.h"

enum { UNTOUCHED = 0xA5 };

static row_operand *add(row_operands *all, qdnnOperand_t operand, size_t bytes)
{
    row_operand *o = &all->at[all->count++];
    *o = (row_operand){
        .operand = operand, .bytes = bytes, .before = calloc(bytes + 1, 1), .after = calloc(bytes + 1, 1)};
    return o;
}

uint8_t *row_operands_add(row_operands *all, qdnnOperand_t operand, size_t bytes)
{
    return add(all, operand, bytes)->before;
}

uint8_t *row_operands_result(row_operands *all, qdnnOperand_t operand, size_t rows, size_t in_row)
{
    row_operand *o = add(all, operand, rows * in_row);
    o->in_row = in_row;
    memset(o->before, UNTOUCHED, o->bytes);
    return o->after;
}

uint8_t *row_operands_cache(row_operands *all, qdnnOperand_t operand, size_t bytes)
{
    row_operand *o = add(all, operand, bytes);
    o->is_whole = true;
    memset(o->before, UNTOUCHED, bytes);
    memset(o->after, UNTOUCHED, bytes);
    return o->after;
}

void row_operands_free(row_operands *all)
{
    for (int i = 0; i < all->count; i++) {
        free(all->at[i].before);
        free(all->at[i].after);
    }
    *all = (row_operands){0};
}

/* What it has to hold after so many rows. */
static void check_operand(const row_operand *o, const device_buffer *at, int64_t rows)
{
    uint8_t *expected = malloc(o->bytes + 1);
    if (!CHECK(expected != NULL))
        return;
    memcpy(expected, o->before, o->bytes);
    if (o->in_row || o->is_whole)
        memcpy(expected, o->after, o->is_whole ? o->bytes : o->in_row * (size_t)rows);
    char name[32];
    snprintf(name, sizeof name, "operand %d", (int)o->operand);
    device_buffer_check(at, expected, name);
    free(expected);
}

bool row_operands_check(qdnnHandle_t handle, qdnnPlan_t plan, const row_operands *all, int64_t rows)
{
    device_buffer at[ROW_OPERANDS_MAX] = {0};
    qdnnBinding_t bindings[ROW_OPERANDS_MAX];
    bool ok = true;
    for (int i = 0; i < all->count && ok; i++) {
        const row_operand *o = &all->at[i];
        ok = device_buffer_make(handle, BUFFER_BANDS, o->bytes, o->shift, &at[i]) &&
             device_buffer_write(&at[i], o->before);
        bindings[i] = (qdnnBinding_t){.operand = o->operand, .pointer = device_buffer_at(&at[i])};
    }
    size_t bytes = 0;
    void *workspace = NULL;
    ok = ok && CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &bytes)) &&
         (bytes == 0 || CHECK_QDNN(qdnnMalloc(handle, &workspace, bytes))) &&
         CHECK_QDNN(rows < 0 ? qdnnExecute(handle, plan, bindings, all->count, workspace, bytes)
                             : qdnnExecuteRows(handle, plan, rows, bindings, all->count, workspace, bytes)) &&
         CHECK_QDNN(qdnnSynchronize(handle));
    CHECK_QDNN(qdnnFree(handle, workspace));
    for (int i = 0; i < all->count; i++) {
        if (ok)
            check_operand(&all->at[i], &at[i], rows);
        device_buffer_free(&at[i]);
    }
    return ok;
}

void row_fill(qdnnDataType_t type, void *array, int64_t count, uint64_t seed, bool has_special)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-41f, 3e38f, 65504, 0};
    uint64_t state = seed * 77 + 5;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = random_next(&state);
        float x = (float)(int32_t)(word >> 32) * 0x1p-31f;
        x = x * (word & 15 ? 3 : 40);
        if (has_special && word % 61 == 0)
            x = special[word / 61 % 8];
        ref_scalar_store(type, array, i, x);
    }
}

/* ---- Quantized results ---- */

static const struct {
    qdnnDataType_t storage;
    int64_t group; /* 0: the row */
    qdnnScaleType_t scale;
    int bits, global;
} behinds[BEHIND_COUNT] = {
    [BEHIND_INT8] = {QDNN_DATA_I8, 0, QDNN_SCALE_F32, 8, 0},
    [BEHIND_FP8] = {QDNN_DATA_F8E4M3, 0, QDNN_SCALE_F32, 8, 0},
    [BEHIND_NVFP4] = {QDNN_DATA_FP4, 16, QDNN_SCALE_E4M3, 4, 1},
    [BEHIND_MXFP8] = {QDNN_DATA_F8E5M2, 32, QDNN_SCALE_E8M0, 8, 0},
    [BEHIND_FP8_128] = {QDNN_DATA_F8E4M3, 128, QDNN_SCALE_F32, 8, 0},
    [BEHIND_INT4] = {QDNN_DATA_I4, 64, QDNN_SCALE_F16, 4, 0},
};

static int64_t group_of(row_behind behind, int64_t columns)
{
    return behinds[behind].group ? behinds[behind].group : columns;
}

bool row_behind_make(row_behind behind, int64_t columns, qdnnQuantDescriptor_t *quant)
{
    *quant = NULL;
    if (behind == BEHIND_NOTHING)
        return true;
    return CHECK_QDNN(qdnnCreateQuantDescriptor(quant)) &&
           CHECK_QDNN(qdnnSetQuantDescriptor(*quant, behinds[behind].storage, QDNN_GRANULARITY_GROUP,
                                             group_of(behind, columns))) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_SCALE_TYPE, behinds[behind].scale)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_GLOBAL_SCALE, behinds[behind].global));
}

static size_t scale_size(qdnnScaleType_t type)
{
    return type == QDNN_SCALE_F32 ? 4 : type == QDNN_SCALE_F16 ? 2 : 1;
}

bool row_behind_result(row_operands *all, row_behind behind, qdnnDataType_t type, int64_t rows,
                       int64_t columns, const void *y)
{
    const int64_t group = group_of(behind, columns);
    const ref_quant_spec spec = {.data = type,
                                 .storage = behinds[behind].storage,
                                 .groups = QDNN_GROUPS_FLAT,
                                 .group_size = group,
                                 .scale = behinds[behind].scale,
                                 .global_scale = behinds[behind].global,
                                 .floor = 1e-12f};
    float *global = NULL;
    if (behinds[behind].global) {
        global = (float *)row_operands_add(all, QDNN_OPERAND_GLOBAL_SCALE, sizeof *global);
        *global = 0.0123f;
    }
    const ref_arrays arrays = {
        .codes = row_operands_result(all, QDNN_OPERAND_CODES, (size_t)rows,
                                     (size_t)(columns * behinds[behind].bits / 8)),
        .scale = row_operands_result(all, QDNN_OPERAND_SCALE, (size_t)rows,
                                     (size_t)(columns / group) * scale_size(behinds[behind].scale)),
        .global_scale = global};
    ref_scale(&spec, rows, columns, y, &arrays);
    ref_quantize(&spec, rows, columns, y, &arrays);
    return true;
}
