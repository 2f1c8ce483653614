/* Plain CUDA C twins of dequantize kernels, one or more of each kind of codec and layout, compiled by NVRTC and run on ptxvm: they
 * give the bytes of host_ref, as the kernels themselves do. */
#include <stdlib.h>
#include <string.h>

#include "bench/twins/twin.h"
#include "formats/kernel_data.h"
#include "formats/ref_spec.h"
#include "kernels/operations.h"
#include "device/machine.h"
#include "test.h"

enum { ROWS = 40, COLUMNS = 512, SETTINGS = 8 };

static const struct {
    const char *name, *row, *settings[SETTINGS];
} cases[] = {
    {"int8_groups", "dequantize_int8", {"group_size=64"}},
    {"int8_zp", "dequantize_int8_zp", {"group_size=32", "data=f16", "scale=f16"}},
    {"int8_block", "dequantize_int8_zp", {"groups=columns", "group_size=16", "zero=f32"}},
    {"int5_min", "dequantize_int5_min", {"group_size=128", "data=bf16"}},
    {"int3_rows", "dequantize_int3", {"layout=words", "groups=rows", "group_size=100"}},
    {"fp8_e4m3", "dequantize_e4m3", {"group_size=128", "data=f16"}},
    {"fp8_e5m2", "dequantize_e5m2", {"group_size=128"}},
    {"nvfp4", "dequantize_e2m1", {"group_size=16", "scale=e4m3", "global_scale=yes", "data=bf16"}},
    {"mxfp4", "dequantize_e2m1", {"group_size=32", "scale=e8m0", "data=bf16"}},
    {"mxfp6", "dequantize_e3m2", {"group_size=32", "scale=e8m0"}},
    {"q4_k", "dequantize_gguf_q4_k", {"data=f32"}},
    {"gptq",
     "dequantize_int4_zp",
     {"layout=interleaved", "groups=columns", "group_size=16", "scale=f16", "zero_packed=yes",
      "zero_minus_one=yes", "data=f16"}},
    {"gptq_3_bits",
     "dequantize_int3_zp",
     {"layout=interleaved", "groups=columns", "group_size=32", "scale=f16", "zero_packed=yes"}},
};

static kernel_spec spec_of(int index)
{
    const kernel_row *row = kernel_find(cases[index].row);
    kernel_spec spec = kernel_spec_default();
    for (int i = 0; i < SETTINGS && cases[index].settings[i]; i++) {
        char key[32], error[256];
        const char *value = strchr(cases[index].settings[i], '=') + 1;
        snprintf(key, sizeof key, "%.*s", (int)(value - 1 - cases[index].settings[i]),
                 cases[index].settings[i]);
        if (!kernel_spec_set(row, &spec, key, value, error, sizeof error))
            FAIL("%s", error);
    }
    return kernel_spec_normal(row, &spec);
}

/* Operands on the host: any codes, with scales and zeros that belong to some data; and what is expected. */
typedef struct operands {
    kernel_operand facts[QDNN_OPERAND_COUNT];
    uint8_t *host[QDNN_OPERAND_COUNT];
} operands;

static bool operands_make(const kernel_row *row, const kernel_spec *spec, operands *o)
{
    const ref_quant_spec ref = ref_spec_of(row, spec);
    float *x = malloc(ROWS * COLUMNS * sizeof *x);
    bool ok = x != NULL;
    *o = (operands){0};
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), &(kernel_problem){.rows = ROWS, .columns = COLUMNS},
                       o->facts);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        o->host[i] = calloc(o->facts[i].bytes + 1, 1);
        ok = ok && o->host[i];
    }
    if (CHECK(ok)) {
        ref_quant_spec of_x = ref;
        const ref_arrays arrays = ref_arrays_of(o->host);
        of_x.data = QDNN_DATA_F32;
        fill_data(DATA_NORMAL, kernel_format(row), QDNN_DATA_F32, 5, x, ROWS * COLUMNS);
        if (!ref.block)
            ref_scale(&of_x, ROWS, COLUMNS, x, &arrays);
        fill_bytes(9, o->host[QDNN_OPERAND_CODES], (int64_t)o->facts[QDNN_OPERAND_CODES].bytes);
        ref_dequantize(&ref, ROWS, COLUMNS, &arrays, o->host[QDNN_OPERAND_Y]);
    }
    free(x);
    return ok;
}

static void operands_free(operands *o)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(o->host[i]);
}

static void run(const kernel_row *row, const kernel_spec *spec, const char *sm, const char *ptx,
                const operands *o)
{
    const ptxvm_config config = {.sm = sm, .threads = 1, .checks = PTXVM_CHECK_ALL};
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0};
    uint64_t params[KERNEL_PARAMS_MAX];
    machine_module *module;
    machine_kernel *kernel;
    kernel_steps steps;
    char entry[64];
    machine *vm = NULL;
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &(kernel_problem){.rows = ROWS, .columns = COLUMNS},
                    &steps);
    kernel_entry_name(row, entry, sizeof entry);
    const kernel_step *step = &steps.at[0];
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (o->facts[i].bytes)
            CHECK(
                machine_alloc(vm, o->facts[i].bytes, &at[i]) == PTXVM_OK &&
                (!o->facts[i].reads || machine_write(vm, at[i], o->host[i], o->facts[i].bytes) == PTXVM_OK));
    for (int i = 0; i < step->n_params; i++)
        params[i] =
            step->params[i].kind == KERNEL_OPERAND ? at[step->params[i].operand] : step->params[i].value;
    const ptxvm_launch_config launch = {.grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], 1},
                                        .block = {step->block, 1, 1}};
    uint8_t *y = calloc(o->facts[QDNN_OPERAND_Y].bytes, 1);
    if (y && machine_module_load(vm, ptx, strlen(ptx), &module) == PTXVM_OK &&
        machine_module_kernel(module, entry, &kernel) == PTXVM_OK &&
        machine_launch(vm, kernel, &launch, params, (uint64_t)step->n_params * 8) == PTXVM_OK &&
        machine_read(vm, y, at[QDNN_OPERAND_Y], o->facts[QDNN_OPERAND_Y].bytes) == PTXVM_OK)
        CHECK_EQ_MEM(y, o->host[QDNN_OPERAND_Y], o->facts[QDNN_OPERAND_Y].bytes);
    else
        FAIL("%s", machine_last_error(vm));
    free(y);
    machine_destroy(vm);
}

DEVICE_ROWS(Twins, PlainOnesGiveTheBitsOfHostRef, cases)
{
    const kernel_row *row = kernel_find(cases[index].row);
    kernel_spec spec = spec_of(index);
    operands o;
    nvrtc_result result = {0};
    kernel_text text;
    ptx_error error;
    if (!nvrtc_found())
        SKIP("there is no NVRTC");
    REQUIRE(operands_make(row, &spec, &o));
    if (plain_twin_compile(row, &spec, ptx_sm_find(device_sm("sm_90")), &result))
        run(row, &spec, "sm_90", result.data, &o);
    else
        FAIL("%s", result.log ? result.log : "NVRTC failed");
    if (CHECK(kernel_emit(row, &spec, ptx_sm_find(device_sm("sm_90")), NULL, &text, &error))) {
        run(row, &spec, "sm_90", text.ptx, &o);
        free(text.ptx);
    }
    nvrtc_free(&result);
    operands_free(&o);
}
