/* Prepacked weights: the extent of units, and the order of the codes in them. */
#include "kernels/formats/prepacked.h"

#include <stdio.h>

/* ---- Codes ---- */

unsigned prepack_vector(unsigned bits)
{
    return bits == 2 ? 2 : bits && bits % 4 == 0 ? 4 : 1;
}

bool prepack_is_split(unsigned bits)
{
    return bits && 16 % bits == 0;
}

bool prepack_has_byte_pairs(const format_row *format)
{
    return !format_is_blocks(format) && format->codec->numbers;
}

map prepack_order(unsigned bits, bool byte_pairs)
{
    const bool is_split = prepack_is_split(bits) && !byte_pairs;
    const unsigned of_word = is_split ? 16 / bits : UNIT_PAIRS;
    map order = {0};
    map_add(&order, "pair", of_word, "bit", is_split ? bits : 2 * bits);
    map_add(&order, "pair", UNIT_PAIRS / of_word, "bit", 32);
    map_add(&order, "half", 2, "bit", is_split ? 16 : bits);
    return order;
}

unsigned prepack_bits(const format_row *format)
{
    const block_layout *blocks = block_layout_of(format);
    return blocks ? block_parts_of(blocks).bits : format->facts.bits;
}

const format_row *prepack_integers(unsigned bits)
{
    char name[32];
    snprintf(name, sizeof name, "matmul_int%u", bits);
    const kernel_row *row = kernel_find(name);
    if (!row)
        missing_row("integers of so many bits", (int)bits);
    return row->format;
}

unit_extent prepack_unit(const format_row *format)
{
    const block_layout *blocks = block_layout_of(format);
    if (blocks && blocks->codes->is_ternary)
        return (unit_extent){TERNARY_CODES, blocks->elements, UNIT_N * TERNARY_CODES};
    return (unit_extent){UNIT_K, UNIT_K, UNIT_N * UNIT_K / 8 * prepack_bits(format)};
}

uint64_t prepack_bytes(const format_row *format, uint64_t n, uint64_t k)
{
    const block_layout *blocks = block_layout_of(format);
    const unit_extent unit = prepack_unit(format);
    const uint64_t columns = ceil_div(n, UNIT_N) * UNIT_N,
                   codes = columns / UNIT_N * ceil_div(k, unit.elements) * unit.bytes;
    return blocks ? codes + columns * (k / blocks->elements) * block_header_bytes(blocks) : codes;
}
