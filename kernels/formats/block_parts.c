/* The parts of blocks: where the bits of codes lie, and everything else, the header. */
#include "kernels/formats/blocks.h"

/* ---- Codes ---- */

/* Bytes with fewer digits than the first ones belong to the header. */
unsigned block_code_count(const block_layout *layout)
{
    unsigned bytes = 0;
    if (!layout->codes->is_ternary)
        return layout->elements;
    for (const block_section *s = layout->sections; s->strands == layout->sections[0].strands; s++)
        bytes += s->count * s->span;
    return bytes;
}

block_parts block_parts_of(const block_layout *layout)
{
    const block_codes *codes = layout->codes;
    const block_section *section = &layout->sections[0];
    if (codes->grid)
        return (block_parts){0};
    if (codes->is_ternary)
        return (block_parts){.bits = 8, .low = {layout->at.codes, block_code_count(layout), 1}};
    block_parts p = {.low = {layout->at.codes, section->span, section->strands},
                     .high = {layout->at.high, codes->high_span, codes->high_fields}};
    if (codes->low_span)
        p.low = (block_part){layout->at.codes, codes->low_span, codes->low_fields};
    p.bits = 8 / p.low.fields + (p.high.fields ? 8 / p.high.fields : 0);
    return p;
}

unsigned block_part_bytes(const block_layout *layout, const block_part *part)
{
    return part->fields ? block_code_count(layout) / part->fields : 0;
}

/* ---- Headers ---- */

unsigned block_header_bytes(const block_layout *layout)
{
    return layout->bytes - block_code_count(layout) * block_parts_of(layout).bits / 8;
}

static bool is_in(const block_layout *layout, const block_part *part, unsigned byte)
{
    return byte >= part->first && byte < part->first + block_part_bytes(layout, part);
}

static bool is_header(const block_layout *layout, unsigned byte)
{
    const block_parts p = block_parts_of(layout);
    return !is_in(layout, &p.low, byte) && !is_in(layout, &p.high, byte);
}

unsigned block_header_place(const block_layout *layout, unsigned byte)
{
    unsigned place = 0;
    for (unsigned i = 0; i < byte; i++)
        place += is_header(layout, i);
    return place;
}

unsigned block_header_byte(const block_layout *layout, unsigned place)
{
    unsigned byte = 0;
    while (!is_header(layout, byte) || block_header_place(layout, byte) != place)
        byte++;
    return byte;
}

ptx_val block_header_half(ptx_builder *b, const block_layout *layout, const block_header *h, unsigned byte)
{
    const unsigned place = block_header_place(layout, byte);
    ptx_val halves[2];
    ptx_unpack(b, PTX_F16, h->words[place / 4], halves, 2);
    return halves[place % 4 / 2];
}

void block_header_open(ptx_builder *b, const block_layout *layout, block_header *h)
{
    if (layout->scales->has_d)
        h->d = ptx_cvt(b, PTX_F32, block_header_half(b, layout, h, layout->at.scale));
    if (layout->scales->has_second)
        h->second = ptx_cvt(b, PTX_F32, block_header_half(b, layout, h, layout->at.second));
}
