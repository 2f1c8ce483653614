/* Codes in the order in which tensor cores take them: docs/formats.md, "Prepacked". */
#include "host_ref/prepack.h"

#include <string.h>

enum { UNIT_N = 16, UNIT_K = 64, LANES = 32 };

static int64_t units_of(int64_t count, int64_t unit)
{
    return ceil_div(count, unit);
}

/* The code of column n and row k of the product. */
code_place hr_packed_place(int bits, bool byte_pairs, int64_t k_count, int64_t n, int64_t k)
{
    const int64_t unit = n / UNIT_N * units_of(k_count, UNIT_K) + k / UNIT_K;
    const int64_t lane = n % 8 * 4 + k % 8 / 2, pair = k % UNIT_K / 16 * 4 + n % 16 / 8 + k % 16 / 8 * 2;
    const int64_t first = unit * LANES * bits; /* word */
    if (16 % bits != 0)
        return (code_place){first + lane, LANES, (2 * pair + k % 2) * bits};
    const int64_t pairs = 16 / bits, word = pair / pairs, together = bits < 4 ? bits : 4;
    const int64_t at = first + word / together * LANES * together + lane * together + word % together;
    return (code_place){at, 1, byte_pairs ? pair % pairs * 8 + k % 2 * 4 : pair % pairs * bits + k % 2 * 16};
}

int64_t hr_prepacked_code_bytes(int bits, int64_t n, int64_t k)
{
    return units_of(n, UNIT_N) * units_of(k, UNIT_K) * UNIT_N * UNIT_K / 8 * bits;
}

int64_t ref_prepacked_bytes(const ref_quant_spec *spec, int64_t n, int64_t k)
{
    if (spec->block != QDNN_BLOCK_NONE)
        return hr_prepacked_block_bytes(spec->block, n, k);
    const codec c =
        hr_codec_of(spec->storage, spec->code, spec->bits, spec->zero_kind); /* plain values have none */
    return hr_prepacked_code_bytes(c.bits, n, k);
}

/* Codes of 4 bits that are looked up: a byte is a pair. */
static bool has_byte_pairs(const tensor *t)
{
    return t->spec.storage == QDNN_DATA_NF4 || t->spec.storage == QDNN_DATA_FP4;
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
    memset(back ? codes : packed, 0,
           (size_t)(back ? hr_code_bytes(&t) : ref_prepacked_bytes(spec, k_rows ? columns : rows, k_count)));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            code_place stored = hr_place_of_code(&t, row, column);
            code_place place = hr_packed_place(t.codec.bits, has_byte_pairs(&t), k_count,
                                               k_rows ? column : row, k_rows ? row : column);
            if (back)
                hr_put_code(codes, stored, t.codec.bits, hr_get_code(packed, place, t.codec.bits));
            else
                hr_put_code(packed, place, t.codec.bits, hr_get_code(codes, stored, t.codec.bits));
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
