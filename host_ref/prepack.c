/* Codes in the order that tensor cores consume: docs/formats.md, "Prepacked". */
#include "host_ref/prepack.h"

#include <string.h>

enum { UNIT_N = 16, LANES = 32 };

static int64_t units_of(int64_t count, int64_t unit)
{
    return ceil_div(count, unit);
}

/* Words of a lane that lie together. */
static int64_t words_together(hr_units units, int64_t words)
{
    if (16 % units.bits != 0 && units.bits != 32)
        return 1;
    return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
}

/* The bit where code k of column n begins in the words of its lane. */
static int64_t bit_of_code(hr_units units, int64_t n, int64_t k)
{
    const int bits = units.bits;
    const int64_t pair = k / 16 * 4 + n % 16 / 8 + k % 16 / 8 * 2;
    if (16 % bits != 0)
        return (2 * pair + k % 2) * bits;
    const int64_t pairs = 16 / bits;
    if (units.byte_pairs)
        return pair * 8 + k % 2 * 4;
    return pair / pairs * 32 + pair % pairs * bits + k % 2 * 16;
}

code_place hr_packed_place(hr_units units, int64_t k_count, int64_t n, int64_t k)
{
    const int64_t unit = n / UNIT_N * units_of(k_count, units.unit_k) + k / units.unit_k;
    const int64_t words = (int64_t)units.unit_k * units.bits / 64, together = words_together(units, words);
    const int64_t lane = n % 8 * 4 + k % 8 / 2, bit = bit_of_code(units, n, k % units.unit_k);
    const int64_t first = unit * LANES * words; /* word */
    if (together == 1)
        return (code_place){first + lane, LANES, bit};
    const int64_t word = bit / 32;
    return (code_place){first + word / together * LANES * together + lane * together + word % together, 1,
                        bit % 32};
}

int64_t hr_prepacked_code_bytes(hr_units units, int64_t n, int64_t k)
{
    return units_of(n, UNIT_N) * units_of(k, units.unit_k) * UNIT_N * units.unit_k / 8 * units.bits;
}

/* The bits of a code or, of plain values, of a value. */
static int width_of(const tensor *t)
{
    return t->plain ? 8 * (int)ref_scalar_size(t->spec.storage) : t->codec.bits;
}

/* In 4-bit codes that are looked up in a table, a byte is a pair. */
static hr_units units_of_tensor(const tensor *t)
{
    const bool byte_pairs = t->spec.storage == QDNN_DATA_NF4 || t->spec.storage == QDNN_DATA_FP4;
    return (hr_units){width_of(t), HR_UNIT_K, byte_pairs};
}

static code_place stored_place(const tensor *t, int64_t row, int64_t column)
{
    if (t->plain)
        return (code_place){0, 1, (row * t->columns + column) * width_of(t)};
    return hr_place_of_code(t, row, column);
}

int64_t ref_prepacked_bytes(const ref_quant_spec *spec, int64_t n, int64_t k)
{
    if (spec->block != QDNN_BLOCK_NONE)
        return hr_prepacked_block_bytes(spec->block, n, k);
    const tensor t = hr_tensor_of(spec, 0, 0);
    return hr_prepacked_code_bytes(units_of_tensor(&t), n, k);
}

static void move_codes(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, void *codes,
                       void *packed, bool back)
{
    if (spec->block != QDNN_BLOCK_NONE) {
        hr_require(!k_rows, "blocks lie along k");
        hr_prepack_blocks(spec->block, rows, columns, codes, packed, back);
        return;
    }
    tensor t = hr_tensor_of(spec, rows, columns);
    const int64_t k_count = k_rows ? rows : columns;
    const int bits = width_of(&t);
    const hr_units units = units_of_tensor(&t);
    memset(back ? codes : packed, 0,
           (size_t)(back ? hr_code_bytes(&t) : ref_prepacked_bytes(spec, k_rows ? columns : rows, k_count)));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            code_place stored = stored_place(&t, row, column);
            code_place place = hr_packed_place(units, k_count, k_rows ? column : row, k_rows ? row : column);
            if (back)
                hr_put_code(codes, stored, bits, hr_get_code(packed, place, bits));
            else
                hr_put_code(packed, place, bits, hr_get_code(codes, stored, bits));
        }
}

void ref_prepack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *codes,
                 void *packed)
{
    move_codes(spec, rows, columns, k_rows, (void *)(uintptr_t)codes, packed, false);
}

void ref_unpack(const ref_quant_spec *spec, int64_t rows, int64_t columns, bool k_rows, const void *packed,
                void *codes)
{
    move_codes(spec, rows, columns, k_rows, codes, (void *)(uintptr_t)packed, true);
}
