/* Blocks that hold codes and scales together. */
#include "host_ref/internal.h"

static void no_such_block(void)
{
    require(false, "this block format has no row in the table");
}

int64_t block_array_bytes(const ref_quant_spec *spec, int64_t rows, int64_t columns)
{
    (void)spec, (void)rows, (void)columns;
    no_such_block();
    return 0;
}

float block_decode_one(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                       int64_t row, int64_t column)
{
    (void)spec, (void)rows, (void)columns, (void)blocks, (void)row, (void)column;
    no_such_block();
    return 0.0f;
}

void block_quantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *x,
                        void *blocks)
{
    (void)spec, (void)rows, (void)columns, (void)x, (void)blocks;
    no_such_block();
}

void block_dequantize_all(const ref_quant_spec *spec, int64_t rows, int64_t columns, const void *blocks,
                          void *y)
{
    (void)spec, (void)rows, (void)columns, (void)blocks, (void)y;
    no_such_block();
}
