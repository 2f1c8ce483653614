/* Trials of the kernels of mode tensor. */
#include "formats/sample.h"
#include "device/tensor_trial.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Each text with many shapes, so that a mistake in any line of it shows (docs/mutation.md): tiles that are full and that are cut, K within a
 * step, of whole strips and between, pointers that are not aligned, infinities and NaN, every code. K is the next multiple that the format
 * takes. The default suite tries every fifth. */
static const struct {
    int rows; /* of the tile, plus so many; from -99 on: 1, 2, ... */
    int64_t n, k;
    size_t shift;
    data_kind kind;
    int64_t gap;
    int any_codes;
    unsigned only; /* operands that are shifted; 0: all */
    data_kind weights;
} trials[] = {
    {0, 40, 608, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-1, 136, 96, 0, DATA_NORMAL, 8, 4, 0, DATA_NORMAL},
    {1, 24, 77, 1, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-99, 72, 1100, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {0, 8, 16, 0, DATA_SPECIAL, 0, 0, 0, DATA_NORMAL},
    {-3, 264, 64, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {-5, 16, 1024, 0, DATA_HUGE, 4, 0, 0, DATA_NORMAL},
    {-2, 48, 136, 1, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {0, 128, 128, 0, DATA_NORMAL, 1, 0, 0, DATA_NORMAL},
    {-6, 8, 1, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-1, 88, 2060, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {0, 56, 320, 3, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-4, 21, 33, 0, DATA_NORMAL, 3, 4, 0, DATA_NORMAL},
    {-7, 1, 520, 2, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-5, 23, 2500, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-2, 42, 1500, 0, DATA_NORMAL, 6, 0, 0, DATA_NORMAL},
    {-99, 21, 2060, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-99, 42, 4200, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {-3, 13, 5000, 0, DATA_SPECIAL, 0, 0, 0, DATA_NORMAL},
    {-1, 40, 1100, 1, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {70, 16, 80, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {-97, 43, 2304, 0, DATA_NORMAL, 5, 0, 0, DATA_NORMAL},
    {-95, 16, 5632, 0, DATA_NORMAL, 4, 4, 0, DATA_NORMAL},
    {-98, 520, 512, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {0, 264, 512, 0, DATA_NORMAL, 16, 4, 0, DATA_NORMAL},
    {-96, 515, 1024, 0, DATA_NORMAL, 1, 0, 0, DATA_NORMAL},
    {-94, 36, 8192, 0, DATA_SUBNORMAL, 0, 0, 0, DATA_NORMAL},
    {0, 64, 1152, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {-2, 96, 2080, 0, DATA_NORMAL, 8, 0, 0, DATA_NORMAL},
    {-97, 40, 1025, 0, DATA_NORMAL, 7, 0, 0, DATA_NORMAL},
    {-97, 24, 520, 2, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-98, 520, 512, 0, DATA_NORMAL, 0, 1, 0, DATA_NORMAL},
    {-92, 32, 552, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-2, 64, 576, 1, DATA_NORMAL, 0, 0, TENSOR_ONLY(X), DATA_NORMAL},
    {-1, 64, 544, 1, DATA_NORMAL, 0, 0, TENSOR_ONLY(CODES), DATA_NORMAL},
    {-3, 64, 96, 1, DATA_NORMAL, 0, 0, TENSOR_ONLY(Y), DATA_NORMAL},
    {-1, 32, 160, 1, DATA_NORMAL, 0, 0, TENSOR_ONLY(SCALE) | TENSOR_ONLY(ZERO), DATA_NORMAL},
    {-2, 64, 192, 8, DATA_NORMAL, 0, 0, TENSOR_ONLY(CODES), DATA_NORMAL},
    {0, 32, 96, 4, DATA_NORMAL, 0, 0, TENSOR_ONLY(X), DATA_NORMAL},
    {-1, 72, 608, 0, DATA_NORMAL, 0, 0, 0, DATA_FEW_F16},
    {0, 136, 320, 0, DATA_NORMAL, 0, 0, 0, DATA_FEW_F16},
    {-2, 33, 1100, 1, DATA_NORMAL, 1, 0, 0, DATA_FEW_F16},
    {-97, 264, 96, 0, DATA_NORMAL, 0, 0, 0, DATA_SPECIAL},
    {-1, 72, 608, 0, DATA_NORMAL, 0, 4, 0, DATA_SPECIAL},
    {-96, 16, 10752, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-97, 1064, 16, 0, DATA_NORMAL, 4, 4, 0, DATA_NORMAL},
    {-99, 1063, 16, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-98, 11, 16, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
    {-97, 5, 16, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-97, 6, 48, 0, DATA_NORMAL, 0, 0, 0, DATA_NORMAL},
    {-96, 14, 16, 0, DATA_NORMAL, 0, 4, 0, DATA_NORMAL},
};
enum { EXACT_ROWS = 100 };

static int64_t trial_k(const kernel_spec *spec, const kernel_row *row, int i)
{
    const bool flat = spec->stored.groups == QDNN_GROUPS_FLAT && spec->stored.channels != 1;
    const int64_t blocks = (int64_t)kernel_columns_multiple(row),
                  groups = flat ? (int64_t)spec->stored.group_size : 1;
    const int64_t multiple = blocks > 1 ? blocks : groups < 1000 ? groups : 1;
    return (trials[i].k + multiple - 1) / multiple * multiple;
}

/* By default few formats, and few shapes of each. */
static int trial_count(void)
{
    return sample_is_full() ? tensor_case_count() : TENSOR_FAMILIES;
}

static int trial_case(int index)
{
    return sample_is_full() ? index : index * (11 * TENSOR_FAMILIES + 1) % tensor_case_count();
}

static void trial_name(int index, char *text, size_t size)
{
    tensor_case_name(trial_case(index), text, size);
}

static uint64_t rows_of_tile(const kernel_row *row, kernel_product product, int turn)
{
    static const uint64_t stream_rows[] = {8, 16, 32, 64, 4}, tile_rows[] = {16, 32, 64, 128};
    return product == KERNEL_PRODUCT_STREAM ? kernel_stream_rows(row, stream_rows[turn % 5])
                                            : kernel_tile_rows(row, tile_rows[turn % 4]);
}

/* By default every fifth trial, from another on with each index. */
static void run_trials(const tensor_case *c, int family, kernel_product product, int turn, int index)
{
    const kernel_row *row;
    kernel_spec spec;
    char error[256];
    NEED_SM(tensor_families[family].name);
    REQUIRE(tensor_spec_of(c, tensor_families[family].data, product,
                           product == KERNEL_PRODUCT_STREAM ? 8 : 16, &spec, &row));
    if (!kernel_is_emitted(row, &spec, error, sizeof error))
        SKIP("%s", error);
    const uint64_t rows = rows_of_tile(row, product, turn);
    machine *vm = tensor_vm(turn / TENSOR_FAMILIES * TENSOR_FAMILIES + family);
    for (int i = sample_is_full() ? 0 : index % 5; i < LENGTH(trials) && vm; i += sample_is_full() ? 1 : 5) {
        const int64_t m = trials[i].rows + (trials[i].rows <= -90 ? EXACT_ROWS : (int64_t)rows);
        const int64_t n = spec.stored.layout == QDNN_LAYOUT_AWQ ? (trials[i].n + 7) / 8 * 8 : trials[i].n;
        tensor_run_shape(vm, c, family, product,
                         (tensor_shape){.m = m > 0 ? m : 1,
                                        .n = n,
                                        .k = trial_k(&spec, row, i),
                                        .shift = trials[i].shift,
                                        .only = trials[i].only,
                                        .tile_rows = rows,
                                        .split = product == KERNEL_PRODUCT_STREAM ? (uint64_t)1 << i % 4 : 1,
                                        .kind = trials[i].kind,
                                        .few_blocks = trials[i].rows > 1 || trials[i].gap == 5,
                                        .gap = trials[i].gap,
                                        .any_codes = trials[i].any_codes,
                                        .weights = trials[i].weights},
                         (uint32_t)(turn + 100 * i));
    }
    machine_destroy(vm);
}

static void run_case(int index, kernel_product product)
{
    const int at = trial_case(index);
    run_trials(&tensor_cases[at / TENSOR_FAMILIES], at % TENSOR_FAMILIES, product, at, index);
}

DEVICE_EACH(TensorTile, Trials, trial_count, trial_name)
{
    run_case(index, KERNEL_PRODUCT_TILE);
}

DEVICE_EACH(TensorStream, Trials, trial_count, trial_name)
{
    run_case(index, KERNEL_PRODUCT_STREAM);
}

/* x in FP8: every other index is prepacked. */
static int fp8_count(void)
{
    return sample_is_full() ? 2 * TENSOR_FP8_CASES * TENSOR_FAMILIES : TENSOR_FAMILIES;
}

static int fp8_case(int index)
{
    return (index / TENSOR_FAMILIES + index) % (2 * TENSOR_FP8_CASES);
}

static void fp8_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%s", fp8_case(index) % 2 ? "stream" : "tile",
             tensor_fp8_cases[fp8_case(index) / 2].name, tensor_families[index % TENSOR_FAMILIES].name);
}

DEVICE_EACH(TensorFp8, Trials, fp8_count, fp8_name)
{
    const int at = fp8_case(index);
    run_trials(&tensor_fp8_cases[at / 2], index % TENSOR_FAMILIES,
               at % 2 ? KERNEL_PRODUCT_STREAM : KERNEL_PRODUCT_TILE, index, index);
}
