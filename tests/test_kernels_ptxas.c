/* Every kernel of the registry assembles for one target of each generation that it has a text of its own for
 * (in the full build for every target), over its settings, without spills and without a stack. ptxas is the
 * judge; where there is none the cases are skipped. */
#include "test_kernels_ptxas.h"

#include "formats/sample.h"
#include "tools/toolkit.h"
#include "test.h"
#include "test_kernel_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that are assembled as one module: by default some, as ptxas takes longer to start than for a small kernel. */
static int rows_of_a_case(void)
{
    return sample_is_full() ? 1 : 8;
}

static int blocks_of_rows(void)
{
    return (kernel_row_count + rows_of_a_case() - 1) / rows_of_a_case();
}

static int count(void)
{
    return blocks_of_rows() * sample_sm_count();
}

static int first_row(int index)
{
    return index % blocks_of_rows() * rows_of_a_case();
}

static int rows_end(int index)
{
    int end = first_row(index) + rows_of_a_case();
    return end < kernel_row_count ? end : kernel_row_count;
}

static const ptx_sm *sm_of(int index)
{
    return sample_sm_at(index / blocks_of_rows());
}

static void name(int index, char *text, size_t size)
{
    const kernel_row *first = &kernel_rows[first_row(index)], *last = &kernel_rows[rows_end(index) - 1];
    bool is_one = first == last;
    snprintf(text, size, "%s%s%s_%s", first->name, is_one ? "" : "_to_", is_one ? "" : last->name,
             sm_of(index)->name);
}

/* Of the settings those from `first` on, `wanted` of them, the first ones following the last. */
static int take_some(kernel_spec *specs, int n, int first, int wanted)
{
    kernel_spec some[GRID_MAX];
    for (int i = 0; i < wanted; i++)
        some[i] = specs[(first + i) % n];
    memcpy(specs, some, (size_t)wanted * sizeof *some);
    return wanted;
}

/* Which one of the rows of its operation this is. */
static int place_in_operation(const kernel_row *row)
{
    int place = 0;
    for (const kernel_row *before = kernel_rows; before < row; before++)
        place += kernel_operation_of(before) == kernel_operation_of(row);
    return place;
}

/* In the full build all pairs of settings for three generations and all values for the others. By default two
 * for one, sm_75 or sm_90 in turns, which are the next two for the next format, so that the formats of an
 * operation have all values between them; and one for the other targets, which is another for each. Of
 * K-quants, whose text is long and differs only in how elements are loaded, and of integer products, whose
 * forms KernelsInteger.Assemble has, one for each target. */
static int settings_for(const kernel_row *row, const ptx_sm *sm, int index, kernel_spec *specs)
{
    enum { FEW = 1, MORE = 2 };
    bool is_old = strcmp(sm->name, "sm_75") == 0, is_new = strcmp(sm->name, "sm_90") == 0;
    if (sample_is_full()) {
        bool in_pairs = is_old || is_new || strcmp(sm->name, "sm_120") == 0;
        return settings_grid(row, in_pairs ? GRID_PAIRS : GRID_VALUES, specs);
    }
    int place = place_in_operation(row), n = settings_grid(row, GRID_VALUES, specs);
    bool is_long = sample_is_search(row) || kernel_takes(row, "tile");
    bool is_thorough = !is_long && (place % 2 ? is_old : is_new);
    int wanted = is_thorough ? MORE : FEW;
    return n <= wanted ? n : take_some(specs, n, is_thorough ? place / 2 * MORE : index * FEW, wanted);
}

/* Of matrices in the full build all; by default one, which is another for each target and kernel. */
static int add_matrices(const kernel_row *row, int turn, int wanted, kernel_spec *specs, int count)
{
    kernel_spec all[MATRIX_SETTINGS];
    int n = matrix_settings(row, all);
    for (int i = 0; i < n && i < wanted && count < GRID_MAX; i++)
        specs[count++] = all[(turn + i) % n];
    return count;
}

/* Products with all that follows the sum, and stacks of experts: the largest kernels. In the full build all;
 * by default one, which is another for each target and kernel. */
static int add_products(const kernel_row *row, int turn, kernel_spec *specs, int count)
{
    static const char *const products[] = {
        "tile_rows=8 grouped=yes gated=yes alpha=column bias=f16 activation=gelu_erf residual=yes "
        "row_weight=yes "
        "data=f16 output=bf16",
        "tile_rows=8 addend=yes gated=yes alpha=one bias=bf16 activation=gelu_tanh residual=yes data=bf16",
        "tile_rows=1 grouped=yes activation=silu output=f16 row_weight=yes",
        "tile_rows=4 addend=yes alpha=number activation=relu bias=f32",
        "product=blocks data=f16",
        "product=blocks tile_rows=8 gated=yes activation=silu data=f32",
        "product=blocks tile_rows=16 data=bf16",
        "product=blocks tile_rows=16 gated=yes activation=silu data=f32",
        "product=ragged data=f16",
        "product=ragged tile_rows=16 gated=yes activation=silu data=f32",
        "product=ragged tile_rows=4 grouped=yes row_weight=yes data=bf16",
        "product=ternary data=f16",
        "product=ternary tile_rows=16 gated=yes activation=silu data=f32",
        "product=ternary tile_rows=8 grouped=yes row_weight=yes data=bf16",
        "tile_rows=16 grouped=yes gated=yes activation=silu row_weight=yes data=f16",
        "product=columns reduction=rows data=f16",
        "product=columns reduction=rows tile_rows=4 gated=yes activation=silu data=f32",
        "product=columns reduction=rows tile_rows=16 grouped=yes row_weight=yes data=f16",
        "product=columns reduction=rows tile_rows=16 gated=yes layout=interleaved groups=columns data=f16",
        "product=blocks tile_rows=8 grouped=yes gated=yes activation=silu row_weight=yes data=f16",
        "product=gemv tile_rows=4 grouped=yes gated=yes alpha=column bias=f16 activation=gelu_erf "
        "residual=yes "
        "row_weight=yes data=f16 output=bf16",
        "product=gemv tile_rows=1 grouped=yes activation=silu row_weight=yes",
        "product=gemv tile_rows=16 grouped=yes data=bf16 bias=f32",
    };
    enum { PRODUCTS = sizeof products / sizeof products[0] };
    char reason[512];
    if (!kernel_is_product(row))
        return count;
    for (int i = 0; i < PRODUCTS && count < GRID_MAX; i++) {
        if (!sample_is_full() && i != turn % PRODUCTS)
            continue;
        if (strstr(products[i], "layout=") && !kernel_takes(row, "layout"))
            continue; /* plain values and blocks have one layout */
        specs[count] = kernel_spec_default();
        if (CHECK(kernel_spec_set_words(row, &specs[count], products[i], reason, sizeof reason)) &&
            kernel_is_emitted(row, &specs[count], reason, sizeof reason))
            count++;
    }
    return count;
}

/* Products of few rows; by default one of each target and kernel. */
static int add_few_rows(const kernel_row *row, int turn, bool all, kernel_spec *specs, int count)
{
    static const char *const settings[][2] = {
        {"1", "f16"}, {"16", "f32"}, {"2", "bf16"}, {"4", "f32"}, {"8", "f16"}};
    enum { SETTINGS = sizeof settings / sizeof settings[0] };
    char error[256];
    for (int i = 0; i < (all ? 2 * SETTINGS : 1) && kernel_takes(row, "product"); i++) {
        int which = all ? i : turn % (2 * SETTINGS);
        kernel_spec spec = kernel_spec_default();
        spec.product.kernel = KERNEL_PRODUCT_GEMV;
        spec.product.tile_rows = strtoull(settings[which % SETTINGS][0], NULL, 10);
        spec.epilogue.gated = which / SETTINGS;
        spec.epilogue.activation = spec.epilogue.gated ? QDNN_ACTIVATION_GELU_ERF : QDNN_ACTIVATION_NONE;
        kernel_spec_set(row, &spec, "data", settings[which % SETTINGS][1], error, sizeof error);
        if (kernel_takes(row, "scale"))
            kernel_spec_set(row, &spec, "scale", settings[which % SETTINGS][1], error, sizeof error);
        if (count < GRID_MAX && kernel_is_emitted(row, &spec, error, sizeof error))
            specs[count++] = spec;
    }
    return count;
}

static bool is_fp8(const kernel_row *row)
{
    const qdnnDataType_t storage = kernel_format(row)->storage;
    return storage == QDNN_DATA_F8E4M3 || storage == QDNN_DATA_F8E5M2;
}

/* Products by tensor cores: the smallest tile and the largest, with experts now and then, prepacked weights
 * with one row, with many and with parts, x in FP8; by
 * default one of them, another for each target and kernel. bf16 has no tensor cores on sm_75, and some
 * formats are not prepacked. */
static int add_tensor(const kernel_row *row, const ptx_sm *sm, int turn, kernel_spec *specs, int count)
{
    static const kernel_product products[] = {
        KERNEL_PRODUCT_TILE,   KERNEL_PRODUCT_STREAM, KERNEL_PRODUCT_TILE,  KERNEL_PRODUCT_STREAM,
        KERNEL_PRODUCT_STREAM, KERNEL_PRODUCT_TILE,   KERNEL_PRODUCT_STREAM};
    if (kernel_operation_of(row) != KERNEL_MATMUL)
        return count;
    const int ways = is_fp8(row) ? 7 : 5;
    for (int i = 0; i < ways && count < GRID_MAX; i++) {
        kernel_spec spec = kernel_spec_default();
        char error[256];
        const uint64_t rows = i < 2 ? 1 : 1000;
        spec.data = sm->number >= 80 && turn % 2 ? QDNN_DATA_BF16 : QDNN_DATA_F16;
        spec.product.kernel = products[i];
        spec.product.grouped = turn / ways % 2;
        spec.product.tile_rows = i == 4                               ? 16
                                 : products[i] == KERNEL_PRODUCT_TILE ? kernel_tile_rows(row, rows)
                                                                      : kernel_stream_rows(row, rows);
        spec.product.split = i == 4 ? 8 : 1;
        if (i >= 5) {
            spec.product.reduction = turn / 2 % 2 ? KERNEL_K_ROWS : KERNEL_K_COLUMNS;
            spec.product.x_fp8 = turn % 2 ? QDNN_DATA_F8E5M2 : QDNN_DATA_F8E4M3;
            spec.product.x_scale = 1;
            spec.stored.groups = QDNN_GROUPS_DEFAULT;
        }
        spec = kernel_spec_normal(row, &spec);
        if ((sample_is_full() || i == turn % ways) && kernel_is_emitted(row, &spec, error, sizeof error))
            specs[count++] = spec;
    }
    return count;
}

/* What `ptxas -v` says of a kernel. */
static void check_frugal(const char *log)
{
    CHECK_HAS(log, "\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n");
}

void assembly_add_kernel(assembly *a, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    char settings[KERNEL_SPEC_TEXT], note[KERNEL_SPEC_TEXT + 64];
    kernel_text text;
    ptx_error error = {0};
    kernel_spec_text(row, KERNEL_NORMAL(row, spec), settings, sizeof settings);
    snprintf(note, sizeof note, "%s %s", row->name, settings);
    if (kernel_emit(row, spec, sm, NULL, &text, &error))
        assembly_add(a, text.ptx, note);
    else
        FAIL("%s: %s", note, error.text);
}

/* The kinds of products besides the default; by default they take turns over targets and kernels. */
static int add_kinds(const kernel_row *row, const ptx_sm *sm, int index, kernel_spec *specs, int count)
{
    const int turn = (index / sample_sm_count() + index) % 3;
    if (sample_is_full() || turn == 0)
        count = add_products(row, index, specs, count);
    if (sample_is_full() || turn == 1)
        count = add_few_rows(row, index, sample_is_full(), specs, count);
    if (sample_is_full() || turn == 2)
        count = add_tensor(row, sm, index, specs, count);
    return count;
}

/* A text without its header, which names the target; null where it cannot be emitted. Free *text. */
static const char *body_for(const kernel_row *row, const kernel_spec *spec, int target, char **text)
{
    kernel_text emitted = {0};
    ptx_error error = {0};
    if (!kernel_emit(row, spec, sample_sm_at(target), NULL, &emitted, &error))
        return NULL;
    *text = emitted.ptx;
    return strstr(emitted.ptx, ".address_size");
}

/* Targets for which a kernel is the same text but for its header: whether this one stands for them. It is
 * another one of them for the next row. */
static bool stands_for_the_same(const kernel_row *row, const kernel_spec *spec, int target)
{
    char *own = NULL;
    const char *body = body_for(row, spec, target, &own);
    int same = 0, place = 0;
    for (int i = 0; body && i < sample_sm_count(); i++) {
        char *text = NULL;
        const char *other = body_for(row, spec, i, &text);
        place = i == target ? same : place;
        same += other && strcmp(other, body) == 0;
        free(text);
    }
    free(own);
    return !body || (int)(row - kernel_rows) % same == place;
}

/* All that is assembled of a row for a target. By default, where there is only one of the settings, a
 * matrix or a kind of product may take its place, and it is left out where the text of another target
 * stands for it. */
static int all_settings_for(const kernel_row *row, int target, kernel_spec *specs)
{
    const ptx_sm *sm = sample_sm_at(target);
    const int index = (int)(row - kernel_rows) * sample_sm_count() + target;
    const int first = settings_for(row, sm, index, specs);
    int n = first;
    if (sample_is_full() || first > 1 || index / sample_sm_count() % 2 == target % 2)
        n = add_matrices(row, index * 5, sample_is_full() ? MATRIX_SETTINGS : 1, specs, n);
    n = add_kinds(row, sm, index, specs, n);
    if (sample_is_full() || first > 1)
        return n;
    specs[0] = specs[n - 1];
    return stands_for_the_same(row, &specs[0], target) ? 1 : 0;
}

TEST_EACH(Kernels, Assembles, count, name)
{
    const ptx_sm *sm = sm_of(index);
    char ptxas[1024];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    assembly all = {0};
    for (int row = first_row(index); row < rows_end(index); row++) {
        kernel_spec specs[GRID_MAX];
        int n = all_settings_for(&kernel_rows[row], index / blocks_of_rows(), specs);
        for (int i = 0; i < n; i++)
            assembly_add_kernel(&all, &kernel_rows[row], &specs[i], sm);
    }
    bool known = assembly_run(&all, ptxas, sm->name, check_frugal);
    assembly_free(&all);
    if (!known)
        SKIP("this ptxas does not know %s", sm->name);
}

/* ---- Streams that complete y: with the widest tiles, whose sums take half of the registers, and with parts ---- */

#define TRANSPOSED "groups=rows scale_order=transposed "
/* clang-format off */
#define COMPLETED "output=f16 alpha=column bias=f16 residual=yes activation=gelu_erf "
static const struct wide_stream {
    const char *kernel, *settings;
} wide_streams[] = {
    {"matmul_int4",      TRANSPOSED "scale=f16"},
    {"matmul_nf4",       TRANSPOSED "group_size=64"},
    {"matmul_gguf_q4_k", ""},
    {"matmul_e2m1",      TRANSPOSED "scale=e4m3 group_size=16"},
};
/* clang-format on */

enum { WIDE_STREAMS = sizeof wide_streams / sizeof wide_streams[0] };

static int wide_count(void)
{
    return sample_sm_count();
}

static void wide_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", sample_sm_at(index)->name);
}

/* With one part, and with as many as there are for their rows. By default one for each generation: INT4, which needs the most, for
 * sm_80. */
TEST_EACH(Kernels, WideStreamsAssemble, wide_count, wide_name)
{
    const ptx_sm *sm = sample_sm_at(index);
    char ptxas[1024], error[256];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    assembly all = {0};
    for (int i = 0; i < WIDE_STREAMS; i++) {
        const struct wide_stream *w = &wide_streams[i];
        const kernel_row *row = kernel_find(w->kernel);
        kernel_spec spec = kernel_spec_default();
        REQUIRE(kernel_spec_set_words(row, &spec, w->settings, error, sizeof error));
        spec.data = QDNN_DATA_F16;
        spec.product.kernel = KERNEL_PRODUCT_STREAM;
        CHECK(kernel_spec_set_words(row, &spec, COMPLETED, error, sizeof error));
        for (spec.product.tile_rows = kernel_stream_rows(row, 64); spec.product.tile_rows >= 1;
             spec.product.tile_rows /= 2) {
            spec.product.split = kernel_stream_parts_max(spec.product.tile_rows);
            spec.epilogue.gated = spec.product.tile_rows % 3 == 1;
            if (!sample_is_full() && i != (index + WIDE_STREAMS - 1) % WIDE_STREAMS)
                continue;
            spec.product.kernel = KERNEL_PRODUCT_STREAM;
            assembly_add_kernel(&all, row, &spec, sm);
            spec.product.kernel = KERNEL_PRODUCT_STORED;
            if (kernel_is_emitted(row, &spec, error, sizeof error))
                assembly_add_kernel(&all, row, &spec, sm);
        }
    }
    bool known = assembly_run(&all, ptxas, sm->name, check_frugal);
    assembly_free(&all);
    if (!known)
        SKIP("this ptxas does not know %s", sm->name);
}
