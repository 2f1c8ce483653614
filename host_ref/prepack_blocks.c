/* Prepacked GGUF blocks: their codes in the order of tensor cores, then headers (docs/formats.md, "Prepacked"). */
#include "host_ref/prepack.h"

#include <string.h>

enum { UNIT_N = 16 };

/* Bits of codes starting at byte `at` of a block: each byte has `fields` of them; field f of byte j in a run
 * of `span` bytes belongs to element f * span + j of that run. */
typedef struct {
    int at, span, fields;
} part;

typedef struct {
    qdnnBlockFormat_t format;
    int elements, bytes;
    part low, high; /* high: the upper bits of codes, if it has fields. Neither: the block is all header */
    int codes;      /* per block: 0 stands for one per element; for TQ1_0, bytes of five digits */
} packing;

static const packing packings[] = {
    {QDNN_BLOCK_Q4_0, 32, 18, {2, 16, 2}, {0}, 0},
    {QDNN_BLOCK_Q4_1, 32, 20, {4, 16, 2}, {0}, 0},
    {QDNN_BLOCK_Q5_0, 32, 22, {6, 16, 2}, {2, 1, 8}, 0},
    {QDNN_BLOCK_Q5_1, 32, 24, {8, 16, 2}, {4, 1, 8}, 0},
    {QDNN_BLOCK_Q8_0, 32, 34, {2, 32, 1}, {0}, 0},
    {QDNN_BLOCK_Q8_1, 32, 36, {4, 32, 1}, {0}, 0},
    {QDNN_BLOCK_Q2_K, 256, 84, {16, 32, 4}, {0}, 0},
    {QDNN_BLOCK_Q3_K, 256, 110, {32, 32, 4}, {0, 32, 8}, 0},
    {QDNN_BLOCK_Q4_K, 256, 144, {16, 32, 2}, {0}, 0},
    {QDNN_BLOCK_Q5_K, 256, 176, {48, 32, 2}, {16, 32, 8}, 0},
    {QDNN_BLOCK_Q6_K, 256, 210, {0, 64, 2}, {128, 32, 4}, 0},
    {QDNN_BLOCK_Q8_K, 256, 292, {4, 256, 1}, {0}, 0},
    {QDNN_BLOCK_IQ4_NL, 32, 18, {2, 16, 2}, {0}, 0},
    {QDNN_BLOCK_IQ4_XS, 256, 136, {8, 16, 2}, {0}, 0},
    {QDNN_BLOCK_TQ1_0, 256, 54, {0, 48, 1}, {0}, 48},
    {QDNN_BLOCK_TQ2_0, 256, 66, {0, 32, 4}, {0}, 0},
    {QDNN_BLOCK_MXFP4, 32, 17, {1, 16, 2}, {0}, 0},
    {QDNN_BLOCK_NVFP4, 64, 36, {4, 8, 2}, {0}, 0},
    {QDNN_BLOCK_Q1_0, 128, 18, {2, 1, 8}, {0}, 0},
    {QDNN_BLOCK_Q2_0, 64, 18, {2, 1, 4}, {0}, 0},
    {QDNN_BLOCK_IQ1_S, 256, 50, {0}, {0}, 0},
    {QDNN_BLOCK_IQ1_M, 256, 56, {0}, {0}, 0},
    {QDNN_BLOCK_IQ2_XXS, 256, 66, {0}, {0}, 0},
    {QDNN_BLOCK_IQ2_XS, 256, 74, {0}, {0}, 0},
    {QDNN_BLOCK_IQ2_S, 256, 82, {0}, {0}, 0},
    {QDNN_BLOCK_IQ3_XXS, 256, 98, {0}, {0}, 0},
    {QDNN_BLOCK_IQ3_S, 256, 110, {0}, {0}, 0},
};

static const packing *packing_of(qdnnBlockFormat_t format)
{
    for (size_t i = 0; i < sizeof packings / sizeof packings[0]; i++)
        if (packings[i].format == format)
            return &packings[i];
    hr_require(false, "this block format is not prepacked");
    return NULL;
}

static int width(const part *p)
{
    return p->fields ? 8 / p->fields : 0;
}

static int code_bits(const packing *p)
{
    return width(&p->low) + width(&p->high);
}

static int code_count(const packing *p)
{
    if (!p->low.fields)
        return 0;
    return p->codes ? p->codes : p->elements;
}

/* A block whose codes are not one of each element is a unit. */
static hr_units units_of(const packing *p)
{
    return (hr_units){code_bits(p), p->codes ? p->codes : HR_UNIT_K, false};
}

static int64_t codes_of(const packing *p, int64_t k)
{
    return k / p->elements * code_count(p);
}

static int header_bytes(const packing *p)
{
    return p->bytes - code_count(p) * code_bits(p) / 8;
}

/* ---- Codes ---- */

typedef struct {
    int byte, shift;
} field;

static field field_of(const part *p, int element)
{
    const int run = element / (p->span * p->fields);
    return (field){p->at + run * p->span + element % p->span, element / p->span % p->fields * width(p)};
}

static unsigned code_of(const packing *p, const uint8_t *block, int element)
{
    const field low = field_of(&p->low, element);
    unsigned code = block[low.byte] >> low.shift & ((1u << width(&p->low)) - 1);
    if (p->high.fields) {
        const field high = field_of(&p->high, element);
        code |= (block[high.byte] >> high.shift & ((1u << width(&p->high)) - 1)) << width(&p->low);
    }
    return code;
}

/* The code bits of the block must be 0. */
static void put_code(const packing *p, uint8_t *block, int element, unsigned code)
{
    const field low = field_of(&p->low, element);
    block[low.byte] |= (uint8_t)((code & ((1u << width(&p->low)) - 1)) << low.shift);
    if (p->high.fields) {
        const field high = field_of(&p->high, element);
        block[high.byte] |= (uint8_t)(code >> width(&p->low) << high.shift);
    }
}

/* ---- Headers ---- */

static bool is_of(const packing *p, const part *codes, int byte)
{
    return codes->fields && byte >= codes->at && byte < codes->at + code_count(p) / codes->fields;
}

/* The offset of byte i of the header of block b of column n, from the first header. */
static int64_t header_place(const packing *p, int64_t columns, int64_t n, int64_t b, int i)
{
    const int all = header_bytes(p), words = all / 4 * 4;
    const int64_t first = b * columns * all;
    if (i < words)
        return first + i / 4 * 4 * columns + 4 * n + i % 4;
    return first + words * columns + (all - words) * n + i - words;
}

/* ---- Both ---- */

static int64_t columns_of(int64_t n)
{
    return (n + UNIT_N - 1) / UNIT_N * UNIT_N;
}

int64_t hr_prepacked_block_bytes(qdnnBlockFormat_t format, int64_t n, int64_t k)
{
    const packing *p = packing_of(format);
    return hr_prepacked_code_bytes(units_of(p), n, codes_of(p, k)) +
           columns_of(n) * (k / p->elements) * header_bytes(p);
}

static void move_block(const packing *p, int64_t n_count, int64_t k_count, int64_t n, int64_t b,
                       uint8_t *block, uint8_t *packed, bool back)
{
    const int bits = code_bits(p);
    const int64_t k_codes = codes_of(p, k_count);
    uint8_t *headers = packed + hr_prepacked_code_bytes(units_of(p), n_count, k_codes);
    for (int i = 0; i < code_count(p); i++) {
        const code_place place = hr_packed_place(units_of(p), k_codes, n, b * code_count(p) + i);
        if (back)
            put_code(p, block, i, hr_get_code(packed, place, bits));
        else
            hr_put_code(packed, place, bits, code_of(p, block, i));
    }
    for (int byte = 0, i = 0; byte < p->bytes; byte++) {
        if (is_of(p, &p->low, byte) || is_of(p, &p->high, byte))
            continue;
        uint8_t *place = &headers[header_place(p, columns_of(n_count), n, b, i++)];
        if (back)
            block[byte] = *place;
        else
            *place = block[byte];
    }
}

void hr_prepack_blocks(qdnnBlockFormat_t format, int64_t n_count, int64_t k_count, uint8_t *blocks,
                       uint8_t *packed, bool back)
{
    const packing *p = packing_of(format);
    const int64_t of_row = k_count / p->elements;
    memset(back ? blocks : packed, 0,
           (size_t)(back ? n_count * of_row * p->bytes : hr_prepacked_block_bytes(format, n_count, k_count)));
    for (int64_t n = 0; n < n_count; n++)
        for (int64_t b = 0; b < of_row; b++)
            move_block(p, n_count, k_count, n, b, blocks + (n * of_row + b) * p->bytes, packed, back);
}
