/* The kernels that put codes into the order of tensor cores, and back, against host_ref. */
#include "formats/sample.h"
#include "device/tensor_trial.h"
#include "kernels/formats/blocks.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int dense_count(void)
{
    return tensor_n_cases;
}

static void dense_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", tensor_cases[index].name);
}

/* One tensor_launch between two buffers, of which the second starts as garbage. The kernels take any number of blocks along the dimension of
 * the grid that they loop over: unpacking the second, but for blocks and plain values. */
static void move_codes(machine *vm, const kernel_row *row, const kernel_spec *spec,
                       const kernel_problem *problem, const uint8_t *codes, int64_t code_bytes,
                       const uint8_t *packed, int64_t packed_bytes, bool has_few_blocks)
{
    tensor_device d = {.vm = vm};
    const int from = spec->product.unpack ? QDNN_OPERAND_REPACKED : QDNN_OPERAND_CODES;
    const int to = spec->product.unpack ? QDNN_OPERAND_CODES : QDNN_OPERAND_REPACKED;
    const int64_t bytes[2] = {spec->product.unpack ? packed_bytes : code_bytes,
                              spec->product.unpack ? code_bytes : packed_bytes};
    const uint8_t *expected = spec->product.unpack ? codes : packed;
    const int loops_over =
        spec->product.unpack && !block_layout_of(row->format) && !format_is_plain(row->format);
    uint8_t *actual = malloc((size_t)bytes[1] + 1);
    kernel_steps steps;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), problem, operands);
    CHECK_EQ_I64((int64_t)operands[from].bytes, bytes[0]);
    CHECK_EQ_I64((int64_t)operands[to].bytes, bytes[1]);
    CHECK(operands[from].reads && operands[to].writes && !operands[from].writes && !operands[to].reads);
    CHECK(machine_alloc(vm, (uint64_t)bytes[0], &d.at[from]) == PTXVM_OK);
    CHECK(machine_alloc(vm, (uint64_t)bytes[1], &d.at[to]) == PTXVM_OK);
    CHECK(machine_write(vm, d.at[from], spec->product.unpack ? packed : codes, (uint64_t)bytes[0]) ==
          PTXVM_OK);
    CHECK(machine_fill(vm, d.at[to], TENSOR_GARBAGE, (uint64_t)bytes[1]) == PTXVM_OK);
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), problem, &steps);
    for (int i = 0; i < steps.count; i++) {
        uint64_t *blocks = &steps.at[i].grid[loops_over];
        *blocks = has_few_blocks ? (*blocks + 1) / 2 : *blocks;
        tensor_launch(&d, &steps.at[i]);
    }
    CHECK(machine_read(vm, actual, d.at[to], (uint64_t)bytes[1]) == PTXVM_OK);
    CHECK_EQ_MEM(actual, expected, (size_t)bytes[1]);
    machine_free(vm, d.at[from]);
    machine_free(vm, d.at[to]);
    free(actual);
}

/* Codes of every layout to units and back: n columns, and k or so many blocks. */
static void there_and_back(machine *vm, int index, int64_t n, int64_t k, int64_t blocks, bool has_few_blocks)
{
    tensor_trial t = {.how = &tensor_cases[index], .data = QDNN_DATA_F16, .m = 1, .n = n, .k = k};
    REQUIRE(tensor_spec_of(t.how, t.data, KERNEL_PRODUCT_TILE, 16, &t.spec, &t.row));
    const kernel_row *row = kernel_find_prepack(t.row->format);
    if (block_layout_of(row->format))
        t.k = blocks * (int64_t)kernel_columns_multiple(row);
    t.ref = ref_spec_of(t.row, &t.spec);
    test_push_note("N %d, K %d", (int)t.n, (int)t.k);
    tensor_fill(&t, 75, (uint32_t)index);
    const bool columns = t.how->k_in_columns;
    const int64_t code_bytes = t.bytes[QDNN_OPERAND_CODES];
    uint8_t *codes = malloc((size_t)code_bytes + 1), *back = malloc((size_t)code_bytes + 1);
    memcpy(codes, t.host[QDNN_OPERAND_CODES], (size_t)code_bytes);
    tensor_prepack(&t);
    ref_unpack(&t.ref, columns ? t.n : t.k, columns ? t.k : t.n, !columns, t.host[QDNN_OPERAND_CODES], back);
    CHECK_EQ_MEM(back, codes, (size_t)code_bytes);
    kernel_problem problem = tensor_problem_of(&t);
    for (int unpack = 0; unpack < 2; unpack++) {
        kernel_spec spec = t.spec;
        spec.product.unpack = unpack;
        spec = kernel_spec_normal(row, &spec);
        CHECK_EQ_I64(spec.product.unpack, unpack);
        move_codes(vm, row, &spec, &problem, codes, code_bytes, t.host[QDNN_OPERAND_CODES],
                   t.bytes[QDNN_OPERAND_CODES], has_few_blocks);
    }
    free(codes);
    free(back);
    tensor_free(&t);
    test_pop_note();
}

/* Rows of bytes may have any length; words hold several columns. */
static bool takes_any_n(const tensor_case *how)
{
    for (int i = 0; i < LENGTH(how->settings) && how->settings[i]; i++)
        if (strncmp(how->settings[i], "layout=", 7) == 0)
            return false;
    return true;
}

/* Every remainder that K and N have by the size of a unit: each code of a unit is the first that does not exist. */
static void every_remainder(machine *vm, int index, bool is_block, bool is_any_n)
{
    for (int i = 0; i < (is_block ? 16 : 64); i++)
        there_and_back(vm, index, is_any_n ? 17 + i * 5 % 16 : 8 + i % 4 * 8, 1 + i, 1 + i % 3, i % 2 == 1);
}

/* Whole units and not, with as many blocks as usual and with half of them; the first shapes alone by default. */
DEVICE_EACH(TensorPrepack, ThereAndBack, dense_count, dense_name)
{
    static const int64_t shapes[][3] = {
        {88, 200, 3},  {40, 331, 2},  {24, 77, 1},  {8, 16, 2},   {136, 512, 4}, {64, 64, 9},   {16, 1, 5},
        {256, 96, 17}, {56, 1024, 6}, {72, 129, 1}, {48, 11, 3},  {32, 257, 2},  {104, 130, 1}, {8, 27, 4},
        {16, 158, 7},  {168, 61, 2},  {24, 383, 3}, {80, 255, 5}, {8, 2, 10},    {40, 35, 1}};
    char name[64];
    snprintf(name, sizeof name, "matmul_%s", tensor_cases[index].format);
    if (!kernel_find_prepack(kernel_find(name)->format))
        SKIP("%s is not prepacked", tensor_cases[index].format);
    const bool is_block = block_layout_of(kernel_find(name)->format) != NULL,
               is_any_n = is_block || takes_any_n(&tensor_cases[index]);
    machine *vm = tensor_vm(0);
    for (int i = 0; i < (sample_is_full() ? LENGTH(shapes) : 2) && vm; i++)
        there_and_back(vm, index, shapes[i][0] - (is_any_n ? (i + 3) % 8 : 0), shapes[i][1], shapes[i][2],
                       i % 2 == 1);
    if (sample_is_full() && vm)
        every_remainder(vm, index, is_block, is_any_n);
    machine_destroy(vm);
}
