/* Matrices of bytes the other way round: a stack of them, [rows, columns] each, becomes [columns, rows]. A block takes 64 x
 * 64 bytes through shared memory. */
#include "kernels/integer/integer.h"

enum { SIDE = 64, PITCH = SIDE + 4, BLOCK = 256, PASSES = SIDE * SIDE / BLOCK };

kernel_operand transpose_size(const kernel_spec *spec, const kernel_problem *problem, int operand)
{
    (void)spec, (void)operand;
    return (kernel_operand){.align = 1, .bytes = problem->m * problem->rows * problem->columns};
}

static uint64_t tiles(uint64_t size)
{
    return (size + SIDE - 1) / SIDE;
}

void transpose_steps(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem, kernel_steps *steps)
{
    kernel_step *step = steps_add(steps, row, spec, problem);
    step->block = BLOCK;
    step->grid[0] = tiles(problem->rows) * tiles(problem->columns) * problem->m;
}

/* The thread's part of a tile in rows of bytes: pass i takes four further rows. */
static void load_tile(ptx_builder *b, ptx_val from, ptx_val tile, ptx_val rows, ptx_val columns, ptx_val row, ptx_val column)
{
    ptx_val tid = ptx_tid_x(b), c = ptx_and(b, tid, SIDE - 1), r = ptx_shr(b, tid, 6);
    ptx_val x = ptx_add(b, column, ptx_cvt(b, PTX_U64, c)), inside = ptx_setp(b, PTX_LT, x, columns);
    for (int i = 0; i < PASSES; i++) {
        ptx_val line = ptx_add(b, r, i * (BLOCK / SIDE)), y = ptx_add(b, row, ptx_cvt(b, PTX_U64, line));
        ptx_if(b, ptx_setp_and(b, PTX_LT, y, rows, inside));
        ptx_val byte = ptx_ld_global_nc(b, PTX_U8, ptx_add(b, from, ptx_mad(b, y, columns, x)), 0);
        ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, ptx_add(b, tile, ptx_mad(b, line, PITCH, c)), 0, byte);
        ptx_end_if(b);
    }
}

static void store_tile(ptx_builder *b, ptx_val to, ptx_val tile, ptx_val rows, ptx_val columns, ptx_val row, ptx_val column)
{
    ptx_val tid = ptx_tid_x(b), r = ptx_and(b, tid, SIDE - 1), c = ptx_shr(b, tid, 6);
    ptx_val y = ptx_add(b, row, ptx_cvt(b, PTX_U64, r)), inside = ptx_setp(b, PTX_LT, y, rows);
    for (int i = 0; i < PASSES; i++) {
        ptx_val line = ptx_add(b, c, i * (BLOCK / SIDE)), x = ptx_add(b, column, ptx_cvt(b, PTX_U64, line));
        ptx_if(b, ptx_setp_and(b, PTX_LT, x, columns, inside));
        ptx_val byte = ptx_ld_shared(b, PTX_U8, ptx_add(b, tile, ptx_mad(b, r, PITCH, line)), 0);
        ptx_st_global_u8(b, ptx_add(b, to, ptx_mad(b, x, rows, y)), 0, byte);
        ptx_end_if(b);
    }
}

void emit_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_reqntid(b, BLOCK, 1, 1);
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val tile = ptx_shared(b, "tile", PTX_U8, SIDE * PITCH, 4);
    ptx_val rows = args.number[NUMBER_ROWS], columns = args.number[NUMBER_COLUMNS];
    ptx_val across = ptx_shr(b, ptx_add(b, columns, SIDE - 1), 6), down = ptx_shr(b, ptx_add(b, rows, SIDE - 1), 6);
    ptx_val block = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), line = ptx_div(b, block, across);
    ptx_val column = ptx_shl(b, ptx_sub(b, block, ptx_mul(b, line, across)), 6);
    ptx_val matrix = ptx_div(b, line, down), first = ptx_shl(b, ptx_sub(b, line, ptx_mul(b, matrix, down)), 6);
    ptx_val skipped = ptx_mul(b, matrix, ptx_mul(b, rows, columns));
    load_tile(b, ptx_add(b, args.operand[QDNN_OPERAND_CODES], skipped), tile, rows, columns, first, column);
    ptx_syncthreads(b);
    store_tile(b, ptx_add(b, args.operand[QDNN_OPERAND_REPACKED], skipped), tile, rows, columns, first, column);
}
