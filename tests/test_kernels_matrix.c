/* Memory traffic of the kernels of matrices, by ptxvm's counters, where columns and pointers are aligned: the sectors of
 * all requests are at most 5% more than the bytes of each request would fill side by side; and, unless a case says
 * otherwise, at most 5% more than the operands fill. Groups along rows have a few bytes of scales for each row of a
 * warp, a sector of its own whatever is done with the rest of it. (Swizzled scales lie apart by fours, and are left out.) */
#include "kernels/kernels.h"
#include "ptxvm/ptxvm.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 1024 };

/* Settings as the ptxgen command takes them. */
typedef struct traffic_case {
    const char *name;
    enum { DENSE, SPARSE } scales; /* sparse: they do not fill the sectors that they lie in */
    const char *kernel, *settings[12];
} traffic_case;

#define GPTQ   "layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16"
#define AWQ    "layout=awq", "groups=columns", "zero_packed=yes", "scale=f16"
#define PACKED "layout=words", "groups=rows", "zero_packed=yes", "scale=bf16"
#define BLOCK  "layout=bytes", "groups=columns"
#define SQUARE "layout=bytes", "groups=rows", "group_rows=128"
static const traffic_case cases[] = {
    {"dequantize_gptq_2", DENSE, "dequantize_int2_zp", {GPTQ, "data=f16"}},
    {"dequantize_gptq_3", DENSE, "dequantize_int3_zp", {GPTQ, "data=f16"}},
    {"dequantize_gptq_4", DENSE, "dequantize_int4_zp", {GPTQ, "data=f16"}},
    {"dequantize_gptq_8", DENSE, "dequantize_int8_zp", {GPTQ, "data=f16"}},
    {"dequantize_gptq_4_f32", DENSE, "dequantize_int4_zp", {GPTQ, "data=f32"}},
    {"dequantize_awq", DENSE, "dequantize_int4_zp", {AWQ, "data=f16"}},
    {"dequantize_awq_f32", DENSE, "dequantize_int4_zp", {AWQ, "data=f32"}},
    {"dequantize_words_4", SPARSE, "dequantize_int4_zp", {PACKED, "data=bf16"}},
    {"dequantize_words_3", SPARSE, "dequantize_int3_zp", {PACKED, "data=bf16"}},
    {"dequantize_words_5_f32", SPARSE, "dequantize_int5_zp", {PACKED, "data=f32"}},
    {"dequantize_words_6", SPARSE, "dequantize_int6_zp", {PACKED, "data=f16"}},
    {"dequantize_block_4", DENSE, "dequantize_int4", {BLOCK, "data=f16"}},
    {"dequantize_block_8_zero", DENSE, "dequantize_int8_zp", {BLOCK, "data=f32", "zero=f32"}},
    {"dequantize_nvfp4",
     DENSE,
     "dequantize_e2m1",
     {BLOCK, "data=f16", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"dequantize_fp8_square", DENSE, "dequantize_e4m3", {SQUARE, "data=bf16"}},
    {"quantize_gptq_2", DENSE, "quantize_int2_zp", {GPTQ, "data=f16"}},
    {"quantize_gptq_3", DENSE, "quantize_int3_zp", {GPTQ, "data=f16"}},
    {"quantize_gptq_4", DENSE, "quantize_int4_zp", {GPTQ, "data=f16"}},
    {"quantize_gptq_8_f32", DENSE, "quantize_int8_zp", {GPTQ, "data=f32"}},
    {"quantize_awq", DENSE, "quantize_int4_zp", {AWQ, "data=f16"}},
    {"quantize_awq_f32", DENSE, "quantize_int4_zp", {AWQ, "data=f32"}},
    {"quantize_words_4", SPARSE, "quantize_int4_zp", {PACKED, "data=bf16"}},
    {"quantize_words_3", SPARSE, "quantize_int3_zp", {PACKED, "data=bf16"}},
    {"quantize_words_5_f32", SPARSE, "quantize_int5_zp", {PACKED, "data=f32"}},
    {"quantize_words_6", SPARSE, "quantize_int6_zp", {PACKED, "data=f16"}},
    {"quantize_block_4", DENSE, "quantize_int4", {BLOCK, "data=f16"}},
    {"quantize_fp8_square", DENSE, "quantize_e4m3", {SQUARE, "data=bf16"}},
    {"scale_columns", DENSE, "scale_int4", {"groups=columns", "data=f16", "scale=f16"}},
    {"scale_columns_zero", DENSE, "scale_int4_zp", {"groups=columns", "data=f32", "scale=f32", "zero=f32"}},
    {"scale_rows", DENSE, "scale_int8", {"groups=rows", "data=bf16"}},
    {"scale_square", DENSE, "scale_e4m3", {"groups=rows", "group_rows=128", "data=f16"}},
};

static kernel_spec spec_of(const kernel_row *row, const char *const *settings)
{
    kernel_spec spec = kernel_spec_default();
    for (; *settings; settings++) {
        char key[32], error[256];
        const char *value = strchr(*settings, '=') + 1;
        memcpy(key, *settings, (size_t)(value - 1 - *settings));
        key[value - 1 - *settings] = 0;
        if (!kernel_spec_set(row, &spec, key, value, error, sizeof error))
            FAIL("%s", error);
    }
    return spec;
}

typedef struct machine {
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT];
} machine;

/* Fills every operand with zeros; returns the sectors that all of them take. */
static uint64_t make_operands(machine *m, const kernel_operand *operands)
{
    uint64_t sectors = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (operands[i].bytes == 0)
            continue;
        CHECK_EQ_I64(ptxvm_alloc(m->vm, operands[i].bytes, &m->at[i]), PTXVM_OK);
        CHECK_EQ_I64(ptxvm_fill(m->vm, m->at[i], 0, operands[i].bytes), PTXVM_OK);
        sectors += (operands[i].bytes + 31) / 32;
    }
    return sectors;
}

/* Returns the sectors that the launch asked for; *least: those that its requests would take, dense. */
static uint64_t launch(machine *m, const kernel_step *step, const char *ptx, uint64_t *least)
{
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel = NULL;
    uint64_t params[KERNEL_PARAMS_MAX], sectors = 0;
    char entry[64];
    kernel_entry_name(step->row, entry, sizeof entry);
    for (int i = 0; i < step->n_params; i++)
        params[i] =
            step->params[i].kind == KERNEL_OPERAND ? m->at[step->params[i].operand] : step->params[i].value;
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1}};
    if (ptxvm_module_load(m->vm, ptx, strlen(ptx), &module) != PTXVM_OK ||
        ptxvm_module_kernel(module, entry, &kernel) != PTXVM_OK ||
        ptxvm_launch(m->vm, kernel, &config, params, (uint64_t)step->n_params * 8) != PTXVM_OK)
        FAIL("%s", ptxvm_last_error(m->vm));
    const ptxvm_counters *counters = ptxvm_last_counters(m->vm);
    *least = 0;
    if (CHECK(counters != NULL)) {
        sectors = counters->total.load.sectors + counters->total.store.sectors;
        *least = counters->total.load.least_sectors + counters->total.store.least_sectors;
    }
    if (module)
        ptxvm_module_unload(module);
    return sectors;
}

TEST_ROWS(KernelsMatrix, AskForFewSectors, cases)
{
    const kernel_row *row = kernel_find(cases[index].kernel);
    kernel_spec spec = spec_of(row, cases[index].settings);
    kernel_problem problem = {.rows = ROWS, .columns = COLUMNS};
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_steps steps;
    kernel_text text;
    ptx_error error;
    ptxvm_config config = {.sm = "sm_90", .counters = PTXVM_COUNTERS_KERNEL};
    machine m = {0};
    REQUIRE(ptxvm_create(&config, &m.vm) == PTXVM_OK);
    kernel_operands_of(row, &spec, &problem, operands);
    kernel_steps_of(row, &spec, &problem, &steps);
    CHECK_EQ_I64(steps.count, 1);
    if (!kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &text, &error))
        FAIL("%s", error.text);
    uint64_t dense, filled = make_operands(&m, operands), asked = launch(&m, &steps.at[0], text.ptx, &dense);
    test_push_note("%llu sectors; %llu if requests were dense, operands fill %llu", (unsigned long long)asked,
                   (unsigned long long)dense, (unsigned long long)filled);
    CHECK(asked >= filled);
    CHECK(asked * 100 <= dense * 105);
    if (cases[index].scales == DENSE)
        CHECK(asked * 100 <= filled * 105);
    test_pop_note();
    free(text.ptx);
    ptxvm_destroy(m.vm);
}
