/* Transposes matrices of bytes: each matrix of a stack, [rows, columns], becomes [columns, rows]. A block
 * moves 64 x 64 bytes through shared memory. */
#include "kernels/integer/integer.h"

enum { SIDE = 64, PITCH = SIDE + 4, BLOCK = 256 };

void describe_transpose(kernel_description *d, const kernel_row *row, const kernel_spec *spec)
{
    const element_type byte = element_type_of(QDNN_DATA_U8);
    const kernel_rule bytes = rule_times(rule_times(rule_number(NUMBER_MATRICES), rule_number(NUMBER_ROWS)),
                                         rule_number(NUMBER_COLUMNS));
    (void)row, (void)spec;
    d->numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS);
    describe_read(d, QDNN_OPERAND_CODES, byte, bytes);
    describe_write(d, QDNN_OPERAND_REPACKED, byte, bytes);
}

kernel_geometry transpose_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    const kernel_rule tiles = rule_times(rule_parts(NUMBER_ROWS, SIDE), rule_parts(NUMBER_COLUMNS, SIDE));
    return (kernel_geometry){.block = BLOCK, .grid = {rule_times(tiles, rule_number(NUMBER_MATRICES))}};
}

/* A thread handles every fourth byte of a column of the tile: its position in the tile and, relative to (row,
 * column), in the matrix. Neighbouring threads have neighbouring columns. */
typedef struct strip {
    ptx_val line, across; /* u32: position in the tile; line is a variable */
    ptx_val y, inside;    /* u64: the line in the matrix; predicate: the column exists */
} strip;

static strip strip_begin(ptx_builder *b, ptx_val row, ptx_val column, ptx_val columns, ptx_val *x)
{
    ptx_val tid = ptx_tid_x(b), across = ptx_and(b, tid, SIDE - 1), first = ptx_shr(b, tid, 6);
    *x = ptx_add(b, column, ptx_cvt(b, PTX_U64, across));
    ptx_val inside = ptx_setp(b, PTX_LT, *x, columns),
            line = ptx_for(b, first, ptx_u32(b, SIDE), BLOCK / SIDE);
    return (strip){
        .line = line, .across = across, .y = ptx_add(b, row, ptx_cvt(b, PTX_U64, line)), .inside = inside};
}

static void load_tile(ptx_builder *b, ptx_val from, ptx_val tile, ptx_val rows, ptx_val columns, ptx_val row,
                      ptx_val column)
{
    ptx_val x;
    strip s = strip_begin(b, row, column, columns, &x);
    ptx_if(b, ptx_setp_and(b, PTX_LT, s.y, rows, s.inside));
    ptx_val byte = ptx_ld_global_nc(b, PTX_U8, ptx_add(b, from, ptx_mad(b, s.y, columns, x)), 0);
    ptx_val to = ptx_add(b, tile, ptx_mad(b, s.line, PITCH, s.across));
    ptx_st_as(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U8, to, 0, byte);
    ptx_end_if(b);
    ptx_end_for(b);
}

/* In the transposed matrix, rows and columns are exchanged. */
static void store_tile(ptx_builder *b, ptx_val to, ptx_val tile, ptx_val rows, ptx_val columns, ptx_val row,
                       ptx_val column)
{
    ptx_val x;
    strip s = strip_begin(b, column, row, rows, &x);
    ptx_if(b, ptx_setp_and(b, PTX_LT, s.y, columns, s.inside));
    ptx_val byte = ptx_ld_shared(b, PTX_U8, ptx_add(b, tile, ptx_mad(b, s.across, PITCH, s.line)), 0);
    ptx_st_global_u8(b, ptx_add(b, to, ptx_mad(b, s.y, rows, x)), 0, byte);
    ptx_end_if(b);
    ptx_end_for(b);
}

void emit_transpose(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers */
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val tile = ptx_shared(b, "tile", PTX_U8, SIDE * PITCH, 4);
    ptx_val rows = args.number[NUMBER_ROWS], columns = args.number[NUMBER_COLUMNS];
    ptx_val across = ptx_shr(b, ptx_add(b, columns, SIDE - 1), 6),
            down = ptx_shr(b, ptx_add(b, rows, SIDE - 1), 6);
    ptx_val block = ptx_cvt(b, PTX_U64, ptx_ctaid_x(b)), line = ptx_div(b, block, across);
    ptx_val column = ptx_shl(b, ptx_sub(b, block, ptx_mul(b, line, across)), 6);
    ptx_val matrix = ptx_div(b, line, down),
            first = ptx_shl(b, ptx_sub(b, line, ptx_mul(b, matrix, down)), 6);
    ptx_val skipped = ptx_mul(b, matrix, ptx_mul(b, rows, columns));
    load_tile(b, ptx_add(b, args.operand[QDNN_OPERAND_CODES], skipped), tile, rows, columns, first, column);
    ptx_syncthreads(b);
    store_tile(b, ptx_add(b, args.operand[QDNN_OPERAND_REPACKED], skipped), tile, rows, columns, first,
               column);
}
