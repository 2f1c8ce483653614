#include "device/integer_rows.h"

#include <stdlib.h>
#include <string.h>

#include "device/step_launch.h"
#include "support/checks.h"
#include "test.h"

static bool is_code(int type)
{
    return type == QDNN_DATA_I8 || type == QDNN_DATA_U8 || type == QDNN_DATA_I32;
}

static const kernel_row *row_of(const integer_case *c)
{
    return kernel_find(is_code(c->y)          ? "int8_qmatmul"
                       : c->w == QDNN_DATA_I8 ? "w8a8_matmul"
                       : c->x == QDNN_DATA_I8 ? "w4a8_matmul"
                       : c->w_first           ? "int4_matmul"
                                              : "w4a4_matmul");
}

static kernel_spec spec_of(const integer_case *c)
{
    kernel_spec s = kernel_spec_default();
    s.integer.x_codes = (qdnnDataType_t)c->x;
    s.integer.x_zero = c->x_zero != 0;
    s.integer.w_zero = c->w_zero != 0;
    if (is_code(c->y)) {
        s.integer.result = (qdnnDataType_t)c->y;
        s.integer.bias_i32 = c->bias != 0;
        s.integer.multipliers = c->multipliers;
        s.quantize.rounding = c->rounding;
        return s;
    }
    s.epilogue.output = (qdnnDataType_t)c->y;
    s.epilogue.alpha = c->alpha;
    s.epilogue.bias = c->bias;
    s.epilogue.activation = c->activation;
    s.epilogue.residual = c->residual;
    s.stored.group_size = c->group_size ? (uint64_t)c->group_size : s.stored.group_size;
    s.stored.scale = c->scale_type;
    return s;
}

/* The steps for the planned rows; the last one gets all of them. */
static void steps_of(const integer_case *c, int64_t planned, kernel_steps *steps)
{
    const kernel_spec spec = spec_of(c);
    const kernel_problem few = {.m = (uint64_t)planned,
                                .rows = (uint64_t)c->n,
                                .columns = (uint64_t)c->k,
                                .w_is_kn = c->w_is_kn,
                                .alpha = INTEGER_ALPHA,
                                .x_zero = c->x_zero,
                                .w_zero = c->w_zero,
                                .y_zero = c->y_zero,
                                .multiplier = c->multiplier};
    kernel_steps_of(row_of(c), KERNEL_NORMAL(row_of(c), &spec), &few, steps);
    kernel_step *last = &steps->at[steps->count - 1];
    last->grid[1] = ((uint64_t)c->m + last->rows.per_block - 1) / last->rows.per_block;
    for (int i = 0; i < last->n_params; i++)
        if (last->params[i].is_rows)
            last->params[i].value = (uint64_t)c->m;
}

typedef struct memory {
    ptxvm_address base[QDNN_OPERAND_COUNT], at[QDNN_OPERAND_COUNT], workspace;
} memory;

static bool memory_make(machine *vm, const integer_buffers *b, uint64_t workspace, memory *m)
{
    bool ok = workspace == 0 || machine_alloc(vm, workspace, &m->workspace) == PTXVM_OK;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++) {
        if (!b->host[i])
            continue;
        ok = machine_alloc(vm, b->bytes[i] + b->shift[i] + (b->bytes[i] == 0), &m->base[i]) == PTXVM_OK;
        m->at[i] = m->base[i] + b->shift[i];
        ok = ok && (b->is_output[i] || machine_write(vm, m->at[i], b->host[i], b->bytes[i]) == PTXVM_OK);
    }
    return CHECK(ok);
}

static void check_y(machine *vm, const integer_buffers *b, const memory *m)
{
    const size_t bytes = b->bytes[QDNN_OPERAND_Y];
    uint8_t *y = malloc(bytes + 1);
    if (CHECK(y && machine_read(vm, y, m->at[QDNN_OPERAND_Y], bytes) == PTXVM_OK))
        CHECK_EQ_MEM(y, b->host[QDNN_OPERAND_Y], bytes);
    free(y);
}

bool integer_rows_run(const char *sm, const integer_case *c, int64_t planned)
{
    const ptxvm_config config = {.sm = sm, .seed = c->seed, .checks = EVERY_CHECK};
    machine *vm = NULL;
    kernel_steps steps;
    integer_buffers b = {0};
    memory m = {0};
    test_push_note("%s for %lld rows, %lld x %lld x %lld, seed %u", c->name, (long long)planned,
                   (long long)c->m, (long long)c->n, (long long)c->k, (unsigned)c->seed);
    integer_case_data(c, &b);
    steps_of(c, planned, &steps);
    bool ok = CHECK(machine_create(&config, &vm) == PTXVM_OK) && memory_make(vm, &b, steps.workspace, &m);
    for (int i = 0; i < steps.count && ok; i++)
        ok = step_launch(vm, &steps.at[i], m.at, m.workspace);
    if (ok)
        check_y(vm, &b, &m);
    if (vm)
        machine_destroy(vm);
    integer_buffers_free(&b);
    test_pop_note();
    return ok;
}
