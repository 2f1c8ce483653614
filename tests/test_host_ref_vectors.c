/* GGUF blocks in the host reference against known answers that another implementation computed; skipped where they are
 * not. */
#include "formats/gguf_vectors.h"
#include "test_host_ref.h"

#include <stdlib.h>
#include <string.h>

static void check(const gguf_file *file, const gguf_vectors *v)
{
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = file->block};
    const int64_t n = (int64_t)((size_t)v->lines * v->block_values);
    const size_t bytes = (size_t)v->lines * v->block_bytes;
    CHECK_EQ_I64(ref_sizes_of(&spec, 1, n).codes, (int64_t)bytes);
    uint8_t *blocks = malloc(bytes);
    float *values = malloc((size_t)n * sizeof *values);
    if (CHECK(blocks && values) && file->quantize) {
        ref_quantize(&spec, 1, n, v->values, &(ref_arrays){.codes = blocks});
        CHECK_EQ_MEM(blocks, v->blocks, bytes);
    } else if (blocks && values) {
        ref_dequantize(&spec, 1, n, &(ref_arrays){.codes = v->blocks}, values);
        CHECK_EQ_MEM(values, v->values, (size_t)n * sizeof *values);
    }
    free(blocks);
    free(values);
}

TEST_ROWS(HostRefVectors, NoByteDiffers, gguf_files)
{
    gguf_vectors v;
    if (!gguf_vectors_read(&gguf_files[index], &v))
        SKIP("no vectors: QDNN_VECTORS_DIR names no folder with gguf/%s.txt", gguf_files[index].name);
    if (CHECK(v.lines >= 24))
        check(&gguf_files[index], &v);
    gguf_vectors_free(&v);
}

/* ---- Codebooks: the known blocks have every entry, every sign or direction, every scale ---- */

/* `count` numbers of `width` bits in a block. Number i begins at bit `at` + i / each * apart + i % each * step. */
typedef struct {
    int count, width, at, each, step, apart;
} field;

static const struct codebook_row {
    const char *name;
    field entry, upper; /* upper bits of entries, if they have a field of their own */
    field sign, scale;
} codebook_rows[] = {
    {"dequantize_IQ1_S",
     {32, 8, 16, 1, 0, 8},
     {32, 3, 272, 4, 3, 16},
     {8, 1, 287, 1, 0, 16},
     {8, 3, 284, 1, 0, 16}},
    {"dequantize_IQ1_M",
     {32, 8, 0, 1, 0, 8},
     {32, 3, 256, 1, 0, 4},
     {32, 1, 259, 1, 0, 4},
     {16, 3, 384, 4, 3, 16}},
    {"dequantize_IQ2_XXS", {32, 8, 16, 4, 8, 64}, {0}, {32, 7, 48, 4, 7, 64}, {8, 4, 76, 1, 0, 64}},
    {"dequantize_IQ2_XS", {32, 9, 16, 1, 0, 16}, {0}, {32, 7, 25, 1, 0, 16}, {16, 4, 528, 1, 0, 4}},
    {"dequantize_IQ2_S",
     {32, 8, 16, 1, 0, 8},
     {32, 2, 528, 1, 0, 2},
     {32, 8, 272, 1, 0, 8},
     {16, 4, 592, 1, 0, 4}},
    {"dequantize_IQ3_XXS", {64, 8, 16, 1, 0, 8}, {0}, {32, 7, 528, 4, 7, 32}, {8, 4, 556, 1, 0, 32}},
    {"dequantize_IQ3_S",
     {64, 8, 16, 1, 0, 8},
     {64, 1, 528, 1, 0, 1},
     {32, 8, 592, 1, 0, 8},
     {8, 4, 848, 1, 0, 4}},
};

static unsigned number_in(const uint8_t *block, const field *f, int i)
{
    const int first = f->at + i / f->each * f->apart + i % f->each * f->step;
    unsigned number = 0;
    for (int k = 0; k < f->width; k++)
        number |= (block[(first + k) / 8] >> (first + k) % 8 & 1u) << k;
    return number;
}

static void check_every_number(const gguf_vectors *v, const field *low, const field *high, const char *what)
{
    enum { NUMBERS_MAX = 2048 };
    static bool seen[NUMBERS_MAX];
    const int all = 1 << (low->width + high->width);
    int n = 0;
    memset(seen, 0, sizeof seen);
    for (int line = 0; line < v->lines; line++)
        for (int i = 0; i < low->count; i++) {
            const uint8_t *block = v->blocks + (size_t)line * v->block_bytes;
            const unsigned upper = high->count ? number_in(block, high, i) : 0;
            seen[number_in(block, low, i) | upper << low->width] = true;
        }
    for (int i = 0; i < all; i++)
        n += seen[i];
    if (n != all)
        FAIL("%d of %d %s", n, all, what);
}

TEST_ROWS(HostRefVectors, ReachEveryNumber, codebook_rows)
{
    const struct codebook_row *row = &codebook_rows[index];
    gguf_vectors v = {0};
    if (getenv("QDNN_VECTORS_DIR"))
        SKIP("QDNN_VECTORS_DIR names other vectors");
    for (int i = 0; i < GGUF_FILES; i++)
        if (strcmp(gguf_files[i].name, row->name) == 0)
            CHECK(gguf_vectors_read(&gguf_files[i], &v));
    check_every_number(&v, &row->entry, &row->upper, "entries");
    check_every_number(&v, &row->sign, &(field){0}, "signs");
    check_every_number(&v, &row->scale, &(field){0}, "scales");
    gguf_vectors_free(&v);
}
