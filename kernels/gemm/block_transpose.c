/* Stacks of matrices in blocks, [experts, N, K], to elements [experts, K, N]: blocks run along K, and frameworks that multiply plain
 * weights want the outputs N side by side. Tiles of weights are decoded into shared memory as products do it, and stored with the outputs
 * of one k by neighbouring threads. */
#include "kernels/emit.h"
#include "kernels/gemm/weights.h"

enum { OUTPUTS = 32, THREADS = 256, TURNS = OUTPUTS * ROUND / 4 / THREADS };

/* An element has four neighbours along k in shared memory: thread t has output t mod 32, and every eighth four of its k. */
static void store_tile(ptx_builder *b, const kernel_spec *spec, const gemm_args *args, ptx_val shared,
                       ptx_val first, ptx_val k0)
{
    const unsigned bytes = element_bytes(spec->data);
    ptx_val output = ptx_and(b, ptx_tid_x(b), OUTPUTS - 1), four = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_val n = ptx_add(b, first, ptx_cvt(b, PTX_U64, output)), from = ptx_mad(b, output, TILE_PITCH, shared);
    ptx_val step = ptx_mul(b, args->outputs, bytes);
    ptx_if(b, ptx_setp(b, PTX_LT, n, args->outputs));
    for (unsigned turn = 0; turn < TURNS; turn++) {
        ptx_val k = ptx_mul(b, turn ? ptx_add(b, four, turn * (THREADS / OUTPUTS)) : four, 4), x[4];
        ptx_val at = ptx_add(b, k0, ptx_cvt(b, PTX_U64, k));
        ptx_if(b, ptx_setp(b, PTX_LT, at, args->k));
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_F32, ptx_add(b, from, round_offset(b, k)), 0, x, 4);
        ptx_val to = ptx_at(b, args->all.operand[QDNN_OPERAND_Y], ptx_mad(b, at, args->outputs, n), bytes);
        for (unsigned i = 0; i < 4; i++) {
            emit_store(b, spec->data, to, 0, x[i]);
            to = ptx_add(b, to, step);
        }
        ptx_end_if(b);
    }
    ptx_end_if(b);
}
_Static_assert(OUTPUTS == 1 << 5, "the number of a thread is shifted by it");

/* The matrix of the block's expert. */
static gemm_args matrix_args(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *layout = block_layout_of(row->format);
    gemm_args a = {.all = kernel_declare(b, row, spec)};
    a.outputs = a.n = a.all.number[NUMBER_ROWS];
    a.k = a.all.number[NUMBER_COLUMNS];
    ptx_val expert = ptx_cvt(b, PTX_U64, ptx_ctaid_z(b)),
            elements = ptx_mul(b, expert, ptx_mul(b, a.outputs, a.k));
    ptx_val blocks = ptx_shr(b, elements, ceil_log2(layout->elements)), *operand = a.all.operand;
    operand[QDNN_OPERAND_CODES] = ptx_at(b, operand[QDNN_OPERAND_CODES], blocks, layout->bytes);
    operand[QDNN_OPERAND_Y] = ptx_at(b, operand[QDNN_OPERAND_Y], elements, element_bytes(spec->data));
    return a;
}

void emit_block_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    gemm_args args = matrix_args(b, row, spec);
    const weights w = weights_begin(b, row, spec, &args);
    const weight_tile tile = {.shared = ptx_shared(b, "tile", PTX_F32, OUTPUTS * TILE_PITCH / 4, LOAD_BYTES),
                              .outputs = OUTPUTS,
                              .threads = THREADS};
    ptx_val first = ptx_mul_wide(b, ptx_ctaid_x(b), ptx_u32(b, OUTPUTS)),
            k = ptx_mul_wide(b, ptx_ctaid_y(b), ptx_u32(b, ROUND));
    weights_stage(b, &w, &tile, first, (ptx_val){0}, k);
    ptx_syncthreads(b);
    store_tile(b, spec, &args, tile.shared, first, k);
}

kernel_geometry block_transpose_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = THREADS,
                             .grid = {rule_parts(NUMBER_ROWS, OUTPUTS), rule_parts(NUMBER_COLUMNS, ROUND),
                                      rule_number(NUMBER_EXPERTS)}};
}

void describe_block_transpose(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const block_layout *layout = block_layout_of(row->format);
    const element_type block = {"block", block_align(layout), 1};
    const kernel_rule rows = rule_times(rule_number(NUMBER_EXPERTS), rule_number(NUMBER_ROWS)),
                      columns = rule_number(NUMBER_COLUMNS);
    const kernel_rule of_row =
        rule_times(rule_over(columns, rule_constant(layout->elements)), rule_constant(layout->bytes));
    d->numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS) | A_NUMBER(EXPERTS);
    describe_read(d, QDNN_OPERAND_CODES, block, rule_times(rows, of_row));
    describe_write(d, QDNN_OPERAND_Y, element_type_of(spec->data), rule_times(rows, columns));
}

void block_transpose_complete(const kernel_spec *spec, kernel_problem *problem)
{
    (void)spec;
    problem->experts = problem->experts ? problem->experts : 1;
}

bool block_transpose_is_empty(const kernel_problem *problem)
{
    return problem->experts == 0 || problem->rows == 0 || problem->columns == 0;
}
