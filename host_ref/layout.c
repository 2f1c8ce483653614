/* Where codes are stored. Every layout consists of streams of u32 words, so a layout is two formulas: where
 * the code of (row, column) begins, and the total number of bytes. */
#include "host_ref/internal.h"

/* The words needed for `count` codes. */
static int64_t words_of(const tensor *t, int64_t count)
{
    return ceil_div(count * t->codec.bits, 32);
}

/* BYTES and BLOCK: one stream over the tensor. */

static code_place bytes_place(const tensor *t, int64_t row, int64_t column)
{
    int64_t bit = (row * t->columns + column) * t->codec.bits;
    if (t->codec.bits == 4 && t->spec.nibble_order == QDNN_NIBBLE_HIGH_FIRST)
        bit ^= 4;
    return (code_place){0, 1, bit};
}

static int64_t bytes_bytes(const tensor *t)
{
    int64_t n = t->rows * t->columns;
    return n / 8 * t->codec.bits + ceil_div(n % 8 * t->codec.bits, 8);
}

/* WORDS_INTERLEAVED: one stream per column; adjacent columns are in adjacent words. */

static code_place interleaved_place(const tensor *t, int64_t row, int64_t column)
{
    return (code_place){column, t->columns, row * t->codec.bits};
}

static int64_t interleaved_bytes(const tensor *t)
{
    return words_of(t, t->rows) * t->columns * 4;
}

/* WORDS_ROWS: one stream per row. */

static code_place rows_place(const tensor *t, int64_t row, int64_t column)
{
    return (code_place){row * words_of(t, t->columns), 1, column * t->codec.bits};
}

static int64_t rows_bytes(const tensor *t)
{
    return t->rows * words_of(t, t->columns) * 4;
}

/* AWQ: one stream per row, eight columns per word: first the even ones, then the odd ones. */

int64_t hr_awq_bit(int64_t column)
{
    int64_t in_word = column % 8;
    int64_t slot = in_word / 2 + (in_word % 2 ? 4 : 0);
    return column / 8 * 32 + slot * 4;
}

static code_place awq_place(const tensor *t, int64_t row, int64_t column)
{
    return (code_place){row * (t->columns / 8), 1, hr_awq_bit(column)};
}

static const struct {
    qdnnGroups_t groups; /* the meaning of QDNN_GROUPS_DEFAULT */
    code_place (*place)(const tensor *t, int64_t row, int64_t column);
    int64_t (*bytes)(const tensor *t);
} layouts[] = {
    [QDNN_LAYOUT_BYTES] = {QDNN_GROUPS_FLAT, bytes_place, bytes_bytes},
    [QDNN_LAYOUT_WORDS_INTERLEAVED] = {QDNN_GROUPS_COLUMNS, interleaved_place, interleaved_bytes},
    [QDNN_LAYOUT_WORDS_ROWS] = {QDNN_GROUPS_ROWS, rows_place, rows_bytes},
    [QDNN_LAYOUT_BLOCK] = {QDNN_GROUPS_COLUMNS, bytes_place, bytes_bytes},
    [QDNN_LAYOUT_AWQ] = {QDNN_GROUPS_COLUMNS, awq_place, rows_bytes},
};

bool hr_layout_is_known(qdnnLayout_t layout)
{
    return (size_t)layout < sizeof layouts / sizeof layouts[0];
}

qdnnGroups_t hr_default_groups(qdnnLayout_t layout)
{
    return layouts[layout].groups;
}

code_place hr_place_of_code(const tensor *t, int64_t row, int64_t column)
{
    return layouts[t->spec.layout].place(t, row, column);
}

int64_t hr_code_bytes(const tensor *t)
{
    if (t->plain)
        return t->rows * t->columns * (int64_t)ref_scalar_size(t->spec.storage);
    return layouts[t->spec.layout].bytes(t);
}

/* The index in the array of bit `bit` of the stream. */
static int64_t bit_in_array(code_place place, int64_t bit)
{
    return (place.first + bit / 32 * place.stride) * 32 + bit % 32;
}

/* Codes of 2, 4 and 8 bits never cross a byte, values of 16 and 32 bits are whole bytes; for other widths, each bit is
 * looked up separately. */
static int bits_together(int bits)
{
    return bits % 8 == 0 ? 8 : 8 % bits == 0 ? bits : 1;
}

static void put_bits(uint8_t *bytes, int64_t at, int bits, unsigned value)
{
    unsigned mask = ((1u << bits) - 1) << at % 8;
    bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~mask) | value << at % 8);
}

unsigned hr_get_code(const void *array, code_place place, int bits)
{
    const uint8_t *bytes = array;
    const int step = bits_together(bits);
    unsigned code = 0;
    for (int i = 0; i < bits; i += step) {
        int64_t at = bit_in_array(place, place.bit + i);
        code |= (bytes[at / 8] >> at % 8 & ((1u << step) - 1)) << i;
    }
    return code;
}

void hr_put_code(void *array, code_place place, int bits, unsigned code)
{
    const int step = bits_together(bits);
    for (int i = 0; i < bits; i += step)
        put_bits(array, bit_in_array(place, place.bit + i), step, code >> i & ((1u << step) - 1));
}
