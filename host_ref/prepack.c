/* Codes in the order in which tensor cores take them: docs/formats.md, "Prepacked". */
#include "host_ref/prepack.h"

#include <string.h>

enum { UNIT_N = 16, UNIT_K = 64, LANES = 32 };

static int64_t units_of(int64_t count, int64_t unit)
{
    return ceil_div(count, unit);
}

/* The code of column n and row k of the product. */
code_place hr_packed_place(int bits, int64_t k_count, int64_t n, int64_t k)
{
    const bool whole_words = bits == 32;
    const int64_t unit = n / UNIT_N * units_of(k_count, UNIT_K) + k / UNIT_K;
    const int64_t lane = n % 8 * 4 + k % 8 / 2, pair = k % UNIT_K / 16 * 4 + n % 16 / 8 + k % 16 / 8 * 2;
    const int64_t first = unit * LANES * bits; /* word */
    if (16 % bits != 0 && !whole_words)
        return (code_place){first + lane, LANES, (2 * pair + k % 2) * bits};
    const int64_t pairs = whole_words ? 1 : 16 / bits, together = bits < 4 ? bits : 4;
    const int64_t word = whole_words ? 2 * pair + k % 2 : pair / pairs;
    const int64_t at = first + word / together * LANES * together + lane * together + word % together;
    return (code_place){at, 1, whole_words ? 0 : pair % pairs * bits + k % 2 * 16};
}

int64_t hr_prepacked_code_bytes(int bits, int64_t n, int64_t k)
{
    return units_of(n, UNIT_N) * units_of(k, UNIT_K) * UNIT_N * UNIT_K / 8 * bits;
}

/* The bits of a code or, of plain values, of a value. */
static int width_of(const tensor *t)
{
    return t->plain ? 8 * (int)ref_scalar_size(t->spec.storage) : t->codec.bits;
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
    return hr_prepacked_code_bytes(width_of(&t), n, k);
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
    memset(back ? codes : packed, 0,
           (size_t)(back ? hr_code_bytes(&t) : ref_prepacked_bytes(spec, k_rows ? columns : rows, k_count)));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            code_place stored = stored_place(&t, row, column);
            code_place place = hr_packed_place(bits, k_count, k_rows ? column : row, k_rows ? row : column);
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
