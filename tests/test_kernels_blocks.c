/* The kernels of blocks where they are easily wrong, and what they ask of memory: no elements, every alignment, blocks
 * beyond element 2^33, sectors and bytes of aligned tensors. Against host_ref. */
#include "test_kernels_parity.h"

#include "formats/ref_spec.h"
#include "formats/sample.h"
#include "support/checks.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))
static const qdnnDataType_t data_types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
static const char *const type_names[] = {"f32", "f16", "bf16", "f64"};
enum { TYPES = LENGTH(data_types) };

/* Products have tests of their own. */
static bool moves_blocks(const kernel_row *row)
{
    kernel_operation operation = kernel_operation_of(row);
    return (operation == KERNEL_QUANTIZE || operation == KERNEL_DEQUANTIZE) && kernel_format(row) &&
           kernel_format(row)->block != QDNN_BLOCK_NONE;
}

static const kernel_row *block_row(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (moves_blocks(&kernel_rows[i]) && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

/* A case is a kernel and its type of data. */
static int case_count(void)
{
    int rows = 0;
    while (block_row(rows))
        rows++;
    return rows * TYPES;
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", block_row(index / TYPES)->name, type_names[index % TYPES]);
}

static kernel_spec spec_of(int index)
{
    kernel_spec spec = kernel_spec_default();
    spec.data = data_types[index % TYPES];
    return spec;
}

/* bf16 is computed with integers on sm_75 and with instructions later. */
static const char *sm_of(int index)
{
    return index % 3 ? "sm_75" : "sm_100";
}

static machine *open_vm(int index)
{
    machine *vm = NULL;
    ptxvm_config config = {
        .sm = sm_of(index), .threads = 1, .checks = EVERY_CHECK, .counters = PTXVM_COUNTERS_KERNEL};
    CHECK(machine_create(&config, &vm) == PTXVM_OK);
    return vm;
}

static void run(int index, machine *vm, const parity_trial *trials, int count)
{
    kernel_spec spec = spec_of(index);
    parity_emit_and_run(vm, block_row(index / TYPES), &spec, trials, count);
}

static int64_t block_elements(int index)
{
    return (int64_t)kernel_columns_multiple(block_row(index / TYPES));
}

static int64_t tile_elements(int index)
{
    kernel_spec spec = spec_of(index);
    return (int64_t)kernel_geometry_of(block_row(index / TYPES), &spec).elements_per_block;
}

TEST_CASE(KernelBlocks, EveryBlockFormatIsRead)
{
    unsigned read = 0, written = 0;
    for (int i = 0; block_row(i); i++)
        *(kernel_operation_of(block_row(i)) == KERNEL_DEQUANTIZE ? &read : &written) |=
            1u << kernel_format(block_row(i))->block;
    CHECK_EQ_U32(read, 0xFFFFFFE);
    CHECK_EQ_U32(written, 0x1B8FFE); /* Q4_0 to Q6_K; TQ1_0, TQ2_0, MXFP4; Q1_0, Q2_0 */
}

/* None (though a thread block is launched), and few. */
DEVICE_EACH(KernelBlocks, FewElements, case_count, case_name)
{
    parity_trial trials[6];
    for (int i = 0; i < LENGTH(trials); i++)
        trials[i] = (parity_trial){.n = i * block_elements(index),
                                   .kind = i % 2 ? DATA_SPECIAL : DATA_TIES,
                                   .seed = (uint32_t)i + 1,
                                   .callers = i > 3};
    machine *vm = open_vm(index);
    if (vm)
        run(index, vm, trials, LENGTH(trials));
    machine_destroy(vm);
}

/* Blocks may begin at any byte, elements at any multiple of their size. A tile and what follows it. */
DEVICE_EACH(KernelBlocks, Alignments, case_count, case_name)
{
    parity_trial trials[20];
    const int count = sample_is_search(block_row(index / TYPES)) ? 5 : LENGTH(trials);
    for (int i = 0; i < count; i++)
        trials[i] = (parity_trial){.n = tile_elements(index) + (1 + i % 3) * block_elements(index),
                                   .kind = DATA_NORMAL,
                                   .seed = (uint32_t)i + 1,
                                   .data_shift = i < 17 ? (size_t)i % 5 % 4 : 0,
                                   .codes_shift = i < 17 ? (size_t)i : 0};
    machine *vm = open_vm(index);
    if (vm)
        run(index, vm, trials, count);
    machine_destroy(vm);
}

/* ---- Trials ---- */

/* Every kind of data in tiles that are whole and cut short, and pointers of each alignment. What a search decides shows in sub-blocks of many
 * kinds and at the edges of its decisions; other encoders decide by the extremes of a block, wherever they are. */
typedef struct block_trials {
    parity_trial at[96];
    int count;
} block_trials;

static void add_trial(block_trials *all, parity_trial one)
{
    if (CHECK(all->count < LENGTH(all->at)))
        all->at[all->count++] = one;
}

static void add_kinds(block_trials *all, int index)
{
    static const data_kind more[] = {DATA_PEAKS, DATA_PEAKS, DATA_PEAKS,  DATA_HALVES,     DATA_HALVES,
                                     DATA_WIDE,  DATA_LEAST, DATA_NANS,   DATA_SCALE_TIES, DATA_SCALE_TIES,
                                     DATA_TINY,  DATA_TINY,  DATA_SPREAD, DATA_INFINITE,   DATA_INFINITE,
                                     DATA_FAR,   DATA_FAR};
    const int64_t tile = tile_elements(index), block = block_elements(index);
    for (int kind = 0; kind < DATA_KINDS; kind++)
        add_trial(all, (parity_trial){.n = tile + block * (kind % 3),
                                      .kind = (data_kind)kind,
                                      .seed = (uint32_t)kind + 1});
    for (int i = 0; i < LENGTH(more); i++)
        add_trial(all, (parity_trial){.n = (i % 4 + 1) * block, .kind = more[i], .seed = (uint32_t)i + 10});
}

static void add_places(block_trials *all, int index)
{
    const int64_t tile = tile_elements(index), block = block_elements(index);
    for (uint32_t i = 0; i < 6; i++)
        add_trial(all, (parity_trial){.n = i % 2 ? 2 * tile : 2 * tile - block,
                                      .kind = DATA_NORMAL,
                                      .seed = i + 30,
                                      .data_shift = i % 3,
                                      .codes_shift = (size_t[]){4, 2, 1, 8, 0, 16}[i],
                                      .exact = i > 2});
    add_trial(all, (parity_trial){.n = 0, .kind = DATA_NORMAL, .seed = 40});
    add_trial(all,
              (parity_trial){.n = tile, .kind = DATA_SPECIAL, .seed = 41, .callers = true, .exact = true});
    for (uint32_t i = 0; i < 14; i++) /* any bytes, and so many that some scale is NaN */
        add_trial(all, (parity_trial){.n = i < 6 ? (int64_t)(i + 2) * block : 2 * tile,
                                      .kind = DATA_SPECIAL,
                                      .seed = i + 42,
                                      .callers = true});
    const uint64_t far = (UINT64_C(1) << 33) / (uint64_t)tile + 7;
    add_trial(all, (parity_trial){.n = tile, .kind = DATA_NORMAL, .seed = 50, .block = far});
}

static void add_decisions(block_trials *all, int index)
{
    static const data_kind kinds[] = {DATA_SPREAD, DATA_NORMAL, DATA_SUB_BLOCKS};
    const int64_t tile = tile_elements(index);
    for (uint32_t i = 0; i < 3; i++)
        add_trial(all, (parity_trial){.n = tile, .kind = DATA_SUB_BLOCKS, .seed = i + 60});
    for (uint32_t i = 0; i < 10; i++)
        add_trial(all, (parity_trial){.n = tile * (i % 8 == 0 ? 3 : 1), .kind = DATA_STEPS, .seed = i * 9});
    for (uint32_t i = 0; i < 4; i++)
        add_trial(all, (parity_trial){.n = tile, .kind = DATA_BEYOND, .seed = i + 100});
    for (uint32_t i = 0; i < 2; i++)
        add_trial(all, (parity_trial){.n = tile, .kind = DATA_HOLES, .seed = i + 110});
    for (uint32_t i = 0; i < 10; i++)
        add_trial(all, (parity_trial){.n = tile, .kind = kinds[i % 3], .seed = i + 70, .edges = true});
}

/* By default one type of data of each kernel, and a part of the trials. */
static bool is_chosen(int index)
{
    return sample_is_full() || index / TYPES % TYPES == index % TYPES;
}

static int trial_case(int number)
{
    const int count = case_count();
    for (int index = 0; index < count; index++)
        if (is_chosen(index) && number-- == 0)
            return index;
    return count;
}

static int trial_count(void)
{
    int count = 0;
    for (int index = 0; index < case_count(); index++)
        count += is_chosen(index);
    return count;
}

static void trial_name(int number, char *text, size_t size)
{
    case_name(trial_case(number), text, size);
}

DEVICE_EACH(KernelBlocks, Trials, trial_count, trial_name)
{
    const int at = trial_case(index), step = sample_is_full()                          ? 1
                                             : sample_is_search(block_row(at / TYPES)) ? 6
                                                                                       : 3;
    block_trials all = {.count = 0}, some = {.count = 0};
    add_kinds(&all, at);
    add_places(&all, at);
    if (kernel_operation_of(block_row(at / TYPES)) == KERNEL_QUANTIZE)
        add_decisions(&all, at);
    for (int i = index % step; i < all.count; i += step)
        add_trial(&some, all.at[i]);
    machine *vm = open_vm(at);
    if (vm)
        run(at, vm, some.at, some.count);
    machine_destroy(vm);
}

/* ---- Far out ---- */

/* One thread block that takes itself for a far one of a huge grid. */
DEVICE_EACH(KernelBlocks, FarBlock, case_count, case_name)
{
    const kernel_row *row = block_row(index / TYPES);
    kernel_spec spec = spec_of(index);
    const uint64_t number = (UINT64_C(1) << 33) / (uint64_t)tile_elements(index) + 7;
    machine *vm = open_vm(index);
    const parity_trial trials[] = {
        {.n = tile_elements(index), .kind = DATA_NORMAL, .seed = 1, .block = number},
        {.n = block_elements(index), .kind = DATA_SPECIAL, .seed = 2, .block = number}};
    if (vm)
        parity_emit_and_run(vm, row, &spec, trials, LENGTH(trials));
    machine_destroy(vm);
}

/* ---- Memory ---- */

/* A thread block reads its codebook whole: a digit of four bits for each number. */
static uint64_t codebook_bytes(qdnnBlockFormat_t block)
{
    static const struct {
        qdnnBlockFormat_t block;
        uint64_t numbers;
    } books[] = {{QDNN_BLOCK_IQ1_S, 2048 * 8}, {QDNN_BLOCK_IQ1_M, 2048 * 8}, {QDNN_BLOCK_IQ2_XXS, 256 * 8},
                 {QDNN_BLOCK_IQ2_XS, 512 * 8}, {QDNN_BLOCK_IQ2_S, 1024 * 8}, {QDNN_BLOCK_IQ3_XXS, 256 * 4},
                 {QDNN_BLOCK_IQ3_S, 512 * 4}};
    for (int i = 0; i < LENGTH(books); i++)
        if (books[i].block == block)
            return books[i].numbers / 2;
    return 0;
}

/* Three whole tiles, aligned: every byte is read once or written once, and requests touch at most 5% more sectors than
 * there are. */
DEVICE_EACH(KernelBlocks, TouchEachSectorOnce, case_count, case_name)
{
    enum { TILES = 3 };
    ONLY_PTXVM("counters of sectors");
    const kernel_row *row = block_row(index / TYPES);
    kernel_spec spec = spec_of(index);
    ref_quant_spec ref = ref_spec_of(row, &spec);
    const int64_t n = TILES * tile_elements(index);
    ptxvm_counters c = {0};
    const parity_trial trial = {.n = n, .kind = DATA_NORMAL, .seed = 1, .counters = &c};
    const uint64_t blocks = (uint64_t)ref_operand_bytes(&ref, 1, n, QDNN_OPERAND_CODES),
                   data = (uint64_t)ref_operand_bytes(&ref, 1, n, QDNN_OPERAND_X),
                   book = codebook_bytes(kernel_format(row)->block), least = (blocks + data + book) / 32;
    bool to_blocks = kernel_operation_of(row) == KERNEL_QUANTIZE;
    machine *vm = open_vm(index);
    if (vm)
        run(index, vm, &trial, 1);
    machine_destroy(vm);
    const uint64_t asked = c.total.load.sectors + c.total.store.sectors - (TILES - 1) * book / 32;
    CHECK_EQ_U64(c.total.load.bytes, to_blocks ? data : blocks + TILES * book);
    CHECK_EQ_U64(c.total.store.bytes, to_blocks ? blocks : data);
    CHECK_EQ_U64(c.unique_sectors, least);
    if (asked * 100 > least * 105)
        FAIL("%llu sectors are asked for, %llu is the least", (unsigned long long)asked,
             (unsigned long long)least);
}
