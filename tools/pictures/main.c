/* format_pictures FOLDER: draws every format of the registry, and the layouts in words. The results are in
 * docs/formats/; a test compares them with freshly drawn ones. */
#include "tools/pictures/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "kernels/kernels.h"

/* A whole block; for dense codes, about as many elements as fill a row of bytes. */
static int64_t elements_of(const format_facts *f)
{
    char name[64];
    snprintf(name, sizeof name, "dequantize_%s", f->name);
    if (f->block != QDNN_BLOCK_NONE)
        return (int64_t)kernel_columns_multiple(kernel_find(name));
    return f->bits >= 16 ? 128 / f->bits : 16 / f->bits * 8;
}

static picture format_picture(const format_facts *f)
{
    picture p = {.name = f->name, .rows = 1};
    p.spec = (ref_quant_spec){.data = QDNN_DATA_F32,
                              .block = f->block,
                              .storage = f->storage,
                              .bits = f->bits <= 8 ? (int)f->bits : 0,
                              .code = f->code,
                              .group_size = INT32_MAX,
                              .zero_kind = f->zero_kind,
                              .zero = QDNN_DATA_F32,
                              .floor = REF_DEFAULT_FLOOR};
    p.columns = elements_of(f);
    if (f->block == QDNN_BLOCK_NONE)
        snprintf(p.title, sizeof p.title, "%s: codes of %u bits, the first %lld elements", f->name, f->bits,
                 (long long)p.columns);
    else
        snprintf(p.title, sizeof p.title, "%s: one block of %lld elements", f->name, (long long)p.columns);
    return p;
}

/* INT4 in the layouts whose codes are not dense bytes. */
static const struct {
    const char *name, *title;
    qdnnLayout_t layout;
    qdnnNibbleOrder_t order;
    int bits;
    int64_t rows, columns;
} layouts[] = {
    {"layout_high_first", "4-bit codes, high nibble first", QDNN_LAYOUT_BYTES, QDNN_NIBBLE_HIGH_FIRST, 4, 1,
     32},
    {"layout_interleaved", "4-bit words along K of a tensor [K = 8, N = 4]: element k * 4 + n",
     QDNN_LAYOUT_WORDS_INTERLEAVED, 0, 4, 8, 4},
    {"layout_interleaved_3", "3-bit words along K of a tensor [K = 32, N = 2]: element k * 2 + n",
     QDNN_LAYOUT_WORDS_INTERLEAVED, 0, 3, 32, 2},
    {"layout_words", "4-bit rows of words, a tensor [2, 13]: element row * 13 + column",
     QDNN_LAYOUT_WORDS_ROWS, 0, 4, 2, 13},
    {"layout_awq", "AWQ words along N of a tensor [K = 2, N = 16]: element k * 16 + n", QDNN_LAYOUT_AWQ, 0, 4,
     2, 16},
};

static bool draw(const char *folder, const picture *p)
{
    char path[4096];
    bit_use *bits = NULL;
    int64_t bytes = probe_bits(p, &bits);
    snprintf(path, sizeof path, "%s/%s.svg", folder, p->name);
    bool ok = bytes > 0 && draw_picture(p, bits, bytes, path);
    if (!ok)
        fprintf(stderr, "format_pictures: %s cannot be written\n", path);
    free(bits);
    return ok;
}

int main(int argc, char **argv)
{
    DEFAULT_ENVIRONMENT();
    bool ok = argc == 2;
    if (!ok)
        fprintf(stderr, "usage: format_pictures FOLDER\n");
    for (int i = 0; kernel_format_at(i) && ok; i++) {
        picture p = format_picture(kernel_format_at(i));
        ok = draw(argv[1], &p);
    }
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0] && ok; i++) {
        picture p = {.name = layouts[i].name, .rows = layouts[i].rows, .columns = layouts[i].columns};
        p.spec = (ref_quant_spec){.data = QDNN_DATA_F32,
                                  .storage = QDNN_DATA_I8,
                                  .bits = layouts[i].bits,
                                  .layout = layouts[i].layout,
                                  .nibble_order = layouts[i].order,
                                  .group_size = INT32_MAX};
        snprintf(p.title, sizeof p.title, "%s", layouts[i].title);
        ok = draw(argv[1], &p);
    }
    return ok ? 0 : 1;
}
