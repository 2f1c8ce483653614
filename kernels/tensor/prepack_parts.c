/* The parts of prepacked weights: the bits of codes, where they lie in a block, and headers. */
#include "kernels/tensor/prepack.h"

#include <stdio.h>

/* ---- Codes ---- */

unsigned prepack_vector(unsigned bits)
{
    return bits == 2 ? 2 : bits % 4 == 0 ? 4 : 1;
}

bool prepack_is_split(unsigned bits)
{
    return 16 % bits == 0;
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
    return blocks ? prepack_parts(blocks).bits : format->facts.bits;
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
    if (blocks && prepack_is_ternary(blocks))
        return (unit_extent){TERNARY_CODES, blocks->elements, UNIT_N * TERNARY_CODES};
    return (unit_extent){UNIT_K, UNIT_K, UNIT_N * UNIT_K / 8 * prepack_bits(format)};
}

uint64_t prepack_bytes(const format_row *format, uint64_t n, uint64_t k)
{
    const block_layout *blocks = block_layout_of(format);
    const unit_extent unit = prepack_unit(format);
    const uint64_t columns = ceil_div(n, UNIT_N) * UNIT_N,
                   codes = columns / UNIT_N * ceil_div(k, unit.elements) * unit.bytes;
    return blocks ? codes + columns * (k / blocks->elements) * prepack_header_bytes(blocks) : codes;
}

/* ---- Parts of a block ---- */

/* Formats whose upper bits lie in separate bytes; the lower bits of Q6_K lie in sections twice as wide as
 * those of its bytes. */
static const struct {
    const block_codes *codes;
    unsigned low_span; /* 0: as the block's sections */
    unsigned high_span, high_fields;
} odd_parts[] = {{&codes_nibbles_bits, 0, 1, 8},
                 {&codes_nibbles_bytes, 0, 32, 8},
                 {&codes_pairs_mask, 0, 32, 8},
                 {&codes_six, 64, 32, 4}};

bool prepack_is_ternary(const block_layout *layout)
{
    return layout->codes == &codes_ternary;
}

static unsigned code_count(const block_layout *layout)
{
    return prepack_is_ternary(layout) ? TERNARY_CODES : layout->elements;
}

block_parts prepack_parts(const block_layout *layout)
{
    if (prepack_is_ternary(layout))
        return (block_parts){.bits = 8, .low = {layout->at.codes, TERNARY_CODES, 1}};
    const block_section *section = &layout->sections[0];
    block_parts p = {.low = {layout->at.codes, section->span, section->strands},
                     .high = {.first = layout->at.high}};
    for (size_t i = 0; i < sizeof odd_parts / sizeof odd_parts[0]; i++) {
        if (odd_parts[i].codes != layout->codes)
            continue;
        if (odd_parts[i].low_span)
            p.low = (block_part){layout->at.codes, odd_parts[i].low_span, 2};
        p.high = (block_part){layout->at.high, odd_parts[i].high_span, odd_parts[i].high_fields};
    }
    p.bits = 8 / p.low.fields + (p.high.fields ? 8 / p.high.fields : 0);
    return p;
}

unsigned part_bytes(const block_layout *layout, const block_part *part)
{
    return part->fields ? code_count(layout) / part->fields : 0;
}

/* ---- Headers ---- */

unsigned prepack_header_bytes(const block_layout *layout)
{
    return layout->bytes - code_count(layout) * prepack_parts(layout).bits / 8;
}

static bool is_in(const block_layout *layout, const block_part *part, unsigned byte)
{
    return byte >= part->first && byte < part->first + part_bytes(layout, part);
}

static bool is_header(const block_layout *layout, unsigned byte)
{
    const block_parts p = prepack_parts(layout);
    return !is_in(layout, &p.low, byte) && !is_in(layout, &p.high, byte);
}

unsigned prepack_header_place(const block_layout *layout, unsigned byte)
{
    unsigned place = 0;
    for (unsigned i = 0; i < byte; i++)
        place += is_header(layout, i);
    return place;
}

unsigned prepack_header_byte(const block_layout *layout, unsigned place)
{
    unsigned byte = 0;
    while (!is_header(layout, byte) || prepack_header_place(layout, byte) != place)
        byte++;
    return byte;
}
