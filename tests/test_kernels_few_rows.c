/* Products of one row with GGUF blocks, by ptxvm's counters: loads and stores of shared memory cause no bank
 * conflicts, except in the formats that docs/performance.md names, and sectors are requested at most 1.25
 * times, not counting x, which each thread block reads. */
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"
#include "test.h"
#include "test_kernels_launch.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 128, SECTOR = 32, FILL = 0x78 }; /* an ordinary number as E8M0, and as f16 */

static const char *const formats[] = {"q4_0", "q4_1", "q5_1",   "q8_0",   "q8_1",  "q2_k",  "q3_k",
                                      "q4_k", "q5_k", "iq4_nl", "iq4_xs", "tq2_0", "mxfp4", "nvfp4"};
static const char *const sms[] = {"sm_75", "sm_80", "sm_100"};
enum { SMS = sizeof sms / sizeof sms[0] };

static int count(void)
{
    return SMS * (int)(sizeof formats / sizeof formats[0]);
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", formats[index / SMS], sms[index % SMS]);
}

static uint64_t sectors_of(uint64_t bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}

static uint64_t least_sectors(const kernel_operand *operands)
{
    uint64_t sectors = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        sectors += sectors_of(operands[i].bytes);
    return sectors;
}

/* Runs a product of one row with k columns, and checks what it asks of memory. */
static void check_product(int index, kernel_product product, uint64_t k)
{
    const char *sm = sms[index % SMS];
    char row_name[64];
    snprintf(row_name, sizeof row_name, "matmul_gguf_%s", formats[index / SMS]);
    const kernel_row *row = kernel_find(row_name);
    const kernel_problem problem = {.rows = N, .columns = k, .m = 1, .x_stride = k, .y_stride = N};
    kernel_spec spec = kernel_spec_default();
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    kernel_text text;
    ptx_error error;
    ptxvm_config config = {.sm = sm, .counters = PTXVM_COUNTERS_KERNEL};
    ptxvm *vm = NULL;
    spec.product.kernel = product;
    spec.data = QDNN_DATA_F16;
    REQUIRE(row && kernel_emit(row, &spec, ptx_sm_find(sm), NULL, &text, &error));
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    kernel_operands_of(row, KERNEL_NORMAL(row, &spec), &problem, operands);
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    if (!launch_filled(vm, &steps.at[0], text.ptx, operands, FILL)) {
        FAIL("%s", ptxvm_last_error(vm));
    } else {
        const ptxvm_counts *total = &ptxvm_last_counters(vm)->total;
        if (product == KERNEL_PRODUCT_BLOCKS)
            CHECK_EQ_U64(total->bank_conflicts, 0);
        const uint64_t least =
            least_sectors(operands) + (steps.at[0].grid[0] - 1) * sectors_of(operands[QDNN_OPERAND_X].bytes);
        CHECK((total->load.sectors + total->store.sectors) * 4 <= least * 5);
    }
    ptxvm_destroy(vm);
    free(text.ptx);
}

TEST_EACH(KernelFewRows, MeetNoBankTwice, count, name)
{
    check_product(index, KERNEL_PRODUCT_BLOCKS, 4096);
}

/* Where rows begin anywhere, their banks differ, but not the sectors. */
TEST_EACH(KernelFewRows, RequestFewSectorsOfAnyRow, count, name)
{
    kernel_spec spec = kernel_spec_default();
    const kernel_problem problem = {.rows = N, .columns = 4864, .m = 1, .x_stride = 4864, .y_stride = N};
    char row_name[64];
    snprintf(row_name, sizeof row_name, "matmul_gguf_%s", formats[index / SMS]);
    spec.product.kernel = KERNEL_PRODUCT_RAGGED;
    if (!kernel_product_fits(kernel_find(row_name), &spec, &problem))
        SKIP("all rows are aligned");
    check_product(index, KERNEL_PRODUCT_RAGGED,
                  kernel_columns_multiple(kernel_find(row_name)) == 256 ? 4864 : 576);
}
