/* The product for many rows assembles for every format and a generation each (in the full build every target) without a spill: the only local memory is what it declares for sums that wait. And ptxvm's counters show what it is built
 * for: mostly fma, no bank conflicts. */
#include "formats/sample.h"
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"
#include "test.h"
#include "test_kernels_launch.h"
#include "test_kernels_ptxas.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (kernel_operation_of(&kernel_rows[i]) == KERNEL_MATMUL && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

/* Targets of a format: all in the full build; by default one, and the next one for the next format. */
static int targets(void)
{
    return sample_is_full() ? sample_sm_count() : 1;
}

static const ptx_sm *target_at(int index)
{
    return sample_sm_at(index % sample_sm_count());
}

static int count(void)
{
    int rows = 0;
    while (row_at(rows))
        rows++;
    return rows * targets();
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", row_at(index / targets())->name, target_at(index)->name);
}

/* ---- Assembling ---- */

/* Settings that take turns; those that a format does not take, or has no kernel for, are left out. */
static const char *const turns[][7] = {
    {"tile_rows=128", "data=f16", "groups=rows", "scale=f16"},
    {"tile_rows=64", "split=4", "data=f32", "reduction=rows", "groups=columns"},
    {"tile_rows=32", "data=bf16", "output=bf16", "gated=yes", "activation=silu", "layout=words"},
    {"tile_rows=128", "data=f32", "gated=yes", "activation=gelu_erf", "residual=yes", "bias=f16",
     "layout=interleaved"},
    {"tile_rows=64", "data=f16", "reduction=rows", "alpha=column", "bias=f32", "layout=interleaved",
     "groups=columns"},
    {"tile_rows=32", "data=f32", "reduction=rows", "groups=columns", "group_size=64", "activation=gelu_tanh"},
};

static void set(const kernel_row *row, kernel_spec *spec, const char *setting)
{
    char key[32] = {0}, error[256];
    const char *value = strchr(setting, '=') + 1;
    memcpy(key, setting, (size_t)(value - 1 - setting));
    kernel_spec changed = *spec;
    if (kernel_takes(row, key) && kernel_spec_set(row, &changed, key, value, error, sizeof error) &&
        kernel_is_emitted(row, &changed, error, sizeof error))
        *spec = changed;
}

static kernel_spec spec_at(const kernel_row *row, int turn)
{
    kernel_spec spec = kernel_spec_default();
    spec.product.kernel = KERNEL_PRODUCT_LANEWISE;
    spec.product.tile_rows = 64;
    for (int i = 0; i < LENGTH(turns[turn]) && turns[turn][i]; i++)
        set(row, &spec, turns[turn][i]);
    return spec;
}

static void check_log(const char *log)
{
    CHECK_HAS(log, " 0 bytes spill stores, 0 bytes spill loads");
    CHECK_HAS(log, " 1280 bytes stack frame"); /* five sums of 8 x 8 f32 */
}

TEST_EACH(KernelLanewise, Assembles, count, name)
{
    const kernel_row *row = row_at(index / targets());
    const ptx_sm *sm = target_at(index);
    char ptxas[1024];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    assembly all = {0};
    for (int i = 0; i < (sample_is_full() ? LENGTH(turns) : 1); i++) {
        kernel_spec spec = spec_at(row, (index + index / targets() / 2 + i) % LENGTH(turns));
        assembly_add_kernel(&all, row, &spec, sm);
    }
    bool known = assembly_run(&all, ptxas, sm->name, check_log);
    assembly_free(&all);
    if (!known)
        SKIP("this ptxas does not know %s", sm->name);
}

/* ---- Counters ---- */

/* Shares of fma in all PTX instructions but mov, per cent, of one tile with K = 4096: what was measured, rounded down. */
static const struct {
    const char *name, *kernel;
    uint64_t rows;
    int share;
    const char *settings[6];
} shares[] = {
    {"int4_64", "matmul_int4", 64, 78, {"scale=f16", "groups=rows"}},
    {"int4_128", "matmul_int4", 128, 82, {"scale=f16", "groups=rows"}},
    {"gptq_64",
     "matmul_int4_zp",
     64,
     78,
     {"layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"gptq_128",
     "matmul_int4_zp",
     128,
     82,
     {"layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"awq_64",
     "matmul_int4_zp",
     64,
     78,
     {"layout=awq", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"awq_128",
     "matmul_int4_zp",
     128,
     82,
     {"layout=awq", "groups=columns", "zero_packed=yes", "scale=f16", "reduction=rows"}},
    {"nf4_64", "matmul_nf4", 64, 78, {"group_size=64"}},
    {"nf4_128", "matmul_nf4", 128, 82, {"group_size=64"}},
    {"q4_k_64", "matmul_gguf_q4_k", 64, 78, {0}},
    {"q4_k_128", "matmul_gguf_q4_k", 128, 82, {0}},
};

static double share_of_fma(const char *ptx, const ptxvm_counters *counters)
{
    uint64_t fma = 0, all = 0;
    for (int i = 1; i < counters->n_lines && ptx; i++) {
        const char *line = ptx + strspn(ptx, " \t");
        all += strncmp(line, "mov", 3) != 0 ? counters->lines[i].instructions : 0;
        fma += strncmp(line, "fma", 3) == 0 ? counters->lines[i].instructions : 0;
        ptx = strchr(ptx, '\n');
        ptx += ptx != NULL;
    }
    return all ? 100.0 * (double)fma / (double)all : 0;
}

TEST_ROWS(KernelLanewise, IsMostlyFma, shares)
{
    const kernel_row *row = kernel_find(shares[index].kernel);
    const uint64_t k = 4096, n = 8192 / shares[index].rows;
    kernel_spec spec = kernel_spec_default();
    spec.product.kernel = KERNEL_PRODUCT_LANEWISE;
    spec.product.tile_rows = shares[index].rows;
    spec.data = spec.epilogue.output = QDNN_DATA_F16;
    for (int i = 0; shares[index].settings[i]; i++)
        set(row, &spec, shares[index].settings[i]);
    const bool by_columns = spec.product.reduction == KERNEL_K_COLUMNS;
    const kernel_problem problem = {.rows = by_columns ? n : k,
                                    .columns = by_columns ? k : n,
                                    .m = shares[index].rows,
                                    .x_stride = k,
                                    .y_stride = n};
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    kernel_text text;
    ptx_error error;
    ptxvm_config config = {.sm = "sm_80", .counters = PTXVM_COUNTERS_LINES};
    ptxvm *vm = NULL;
    REQUIRE(kernel_emit(row, &spec, ptx_sm_find("sm_80"), NULL, &text, &error));
    REQUIRE(ptxvm_create(&config, &vm) == PTXVM_OK);
    kernel_operands_of(row, KERNEL_NORMAL(row, &spec), &problem, operands);
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    if (!launch_filled(vm, &steps.at[0], text.ptx, operands, 0x38)) {
        FAIL("%s", ptxvm_last_error(vm));
    } else {
        const ptxvm_counters *counters = ptxvm_last_counters(vm);
        double share = share_of_fma(text.ptx, counters);
        test_push_note("%.2f%% fma", share);
        CHECK(share >= shares[index].share);
        CHECK_EQ_I64((int64_t)counters->total.bank_conflicts, 0);
        test_pop_note();
    }
    ptxvm_destroy(vm);
    free(text.ptx);
}
