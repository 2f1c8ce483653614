#include "device/tensor_trial.h"

#include "kernels/formats/blocks.h"
#include "support/checks.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- Cases ---- */

#define GPTQ "layout=interleaved", "groups=columns", "zero_packed=yes", "scale=f16"
#define AWQ  "layout=awq", "groups=columns", "zero_packed=yes", "scale=f16"
/* clang-format off */
const tensor_case tensor_cases[] = {
    {"int4_rows", "int4", true, {"groups=rows", "scale=f16"}},
    {"int4_rows_32", "int4", true, {"groups=rows", "scale=f16", "group_size=32", "nibble_order=high"}},
    {"int4_rows_24", "int4", true, {"groups=rows", "group_size=24"}},
    {"int4_rows_5", "int4", true, {"groups=rows", "group_size=5", "code=twos"}},
    {"int4_flat", "int4", true, {"scale=bf16", "group_size=64"}},
    {"int4_zp_rows", "int4_zp", true, {"groups=rows", "scale=f16", "zero=u8"}},
    {"int4_zp_float", "int4_zp", true, {"groups=rows", "zero=f32", "group_size=32"}},
    {"int4_min", "int4_min", true, {"groups=rows", "zero=f16", "group_size=32"}},
    {"int4_channel", "int4", true, {"groups=rows", "group_size=1000000"}},
    {"int4_tensor", "int4", true, {"channels=1", "group_size=1000000"}},
    {"int4_block", "int4", false, {"groups=columns", "scale=f16"}},
    {"int4_zp_block_16", "int4_zp", false, {"groups=columns", "group_size=16"}},
    {"int4_block_rows", "int4", false, {"groups=rows", "group_size=32"}},
    {"int4_square", "int4", false, {"groups=rows", "group_size=64", "group_rows=64"}},
    {"int4_stream_rows", "int4", false, {"layout=interleaved", "groups=rows", "group_size=64"}},
    {"int4_stream_n", "int4", true, {"layout=interleaved", "groups=rows", "group_size=32"}},
    {"gptq_2", "int2_zp", false, {GPTQ, "group_size=32"}},
    {"gptq_3", "int3_zp", false, {GPTQ}},
    {"gptq_4", "int4_zp", false, {GPTQ}},
    {"gptq_4_v1", "int4_zp", false, {GPTQ, "zero_minus_one=yes", "group_size=64"}},
    {"gptq_4_index", "int4_zp", false, {GPTQ, "group_index=yes", "group_size=32"}},
    {"gptq_8", "int8_zp", false, {GPTQ, "code=unsigned"}},
    {"awq", "int4_zp", false, {AWQ}},
    {"awq_32", "int4_zp", false, {AWQ, "group_size=32"}},
    {"words_4", "int4_zp", true, {"layout=words", "groups=rows", "zero_packed=yes", "scale=bf16"}},
    {"words_3", "int3_zp", true, {"layout=words", "groups=rows", "zero_packed=yes"}},
    {"int2", "int2", true, {"groups=rows", "group_size=64"}},
    {"int3", "int3", true, {"groups=rows", "group_size=64"}},
    {"int5", "int5_zp", true, {"groups=rows", "group_size=32"}},
    {"int6", "int6_min", true, {"groups=rows", "group_size=32", "zero=f32"}},
    {"int6_block", "int6", false, {"groups=columns", "group_size=32"}},
    {"int8_rows", "int8", true, {"groups=rows", "scale=f16"}},
    {"int8_channel", "int8", false, {"groups=columns", "group_size=1000000"}},
    {"int8_block", "int8_zp", false, {"groups=columns", "zero=f32"}},
    {"nf4", "nf4", true, {"group_size=64"}},
    {"nf4_nested", "nf4", true, {"group_size=64", "nested=yes", "nibble_order=high"}},
    {"fp4_bnb", "fp4_bnb", true, {"group_size=64"}},
    {"nvfp4", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"nvfp4_swizzled", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "scale_swizzle=128x4"}},
    {"nvfp4_block", "e2m1", false, {"groups=columns", "scale=e4m3", "group_size=16", "global_scale=yes"}},
    {"nvfp4_alpha", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16"}},
    {"nvfp4_alpha_groups", "e2m1", true, {"groups=rows", "scale=e4m3", "group_size=16", "scale_order=transposed"}},
    {"nvfp4_alpha_block", "e2m1", false, {"groups=columns", "scale=e4m3", "group_size=16", "scale_order=transposed"}},
    {"mxfp4", "e2m1", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"mxfp6_e2m3", "e2m3", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"mxfp6_e3m2", "e3m2", true, {"groups=rows", "scale=e8m0", "group_size=32"}},
    {"e4m3_tensor", "e4m3", true, {"channels=1", "group_size=1000000"}},
    {"e4m3_f16", "e4m3", true, {"groups=rows", "scale=f16", "group_size=64"}},
    {"e4m3_square", "e4m3", true, {"groups=rows", "group_rows=128"}},
    {"e4m3_none", "e4m3", false, {"groups=none"}},
    {"e5m2_columns", "e5m2", false, {"groups=columns", "group_size=1000000"}},
    {"plain_f32", "plain_f32", true, {NULL}},
    {"plain_f16", "plain_f16", true, {NULL}},
    {"plain_bf16", "plain_bf16", true, {NULL}},
    {"plain_f16_kn", "plain_f16", false, {NULL}},
    {"plain_f32_kn", "plain_f32", false, {NULL}},
    {"q4_0", "gguf_q4_0", true, {NULL}},
    {"q4_1", "gguf_q4_1", true, {NULL}},
    {"q5_0", "gguf_q5_0", true, {NULL}},
    {"q5_1", "gguf_q5_1", true, {NULL}},
    {"q8_0", "gguf_q8_0", true, {NULL}},
    {"q8_1", "gguf_q8_1", true, {NULL}},
    {"q2_k", "gguf_q2_k", true, {NULL}},
    {"q3_k", "gguf_q3_k", true, {NULL}},
    {"q4_k", "gguf_q4_k", true, {NULL}},
    {"q5_k", "gguf_q5_k", true, {NULL}},
    {"q6_k", "gguf_q6_k", true, {NULL}},
    {"q8_k", "gguf_q8_k", true, {NULL}},
    {"iq4_nl", "gguf_iq4_nl", true, {NULL}},
    {"iq4_xs", "gguf_iq4_xs", true, {NULL}},
    {"tq1_0", "gguf_tq1_0", true, {NULL}},
    {"tq2_0", "gguf_tq2_0", true, {NULL}},
    {"q1_0", "gguf_q1_0", true, {NULL}},
    {"q2_0", "gguf_q2_0", true, {NULL}},
    {"iq1_s", "gguf_iq1_s", true, {NULL}},
    {"iq1_m", "gguf_iq1_m", true, {NULL}},
    {"iq2_xxs", "gguf_iq2_xxs", true, {NULL}},
    {"iq2_xs", "gguf_iq2_xs", true, {NULL}},
    {"iq2_s", "gguf_iq2_s", true, {NULL}},
    {"iq3_xxs", "gguf_iq3_xxs", true, {NULL}},
    {"iq3_s", "gguf_iq3_s", true, {NULL}},
    {"mxfp4_gguf", "gguf_mxfp4", true, {NULL}},
    {"nvfp4_gguf", "gguf_nvfp4", true, {NULL}},
};
const int tensor_n_cases = LENGTH(tensor_cases);

const tensor_case tensor_fp8_cases[TENSOR_FP8_CASES] = {
    {"e4m3_e4m3", "e4m3", true, {"groups=none", "x_fp8=e4m3"}},
    {"e4m3_e5m2_kn", "e5m2", false, {"groups=none", "x_fp8=e4m3"}},
    {"e5m2_e4m3_kn", "e4m3", false, {"groups=none", "x_fp8=e5m2"}},
    {"e5m2_e5m2", "e5m2", true, {"groups=none", "x_fp8=e5m2"}},
};
/* clang-format on */

const struct tensor_family tensor_families[TENSOR_FAMILIES] = {
    {"sm_75", 75, QDNN_DATA_F16},  {"sm_80", 80, QDNN_DATA_F16},   {"sm_89", 89, QDNN_DATA_BF16},
    {"sm_90", 90, QDNN_DATA_BF16}, {"sm_100", 100, QDNN_DATA_F16}, {"sm_120", 120, QDNN_DATA_F16}};

int tensor_case_count(void)
{
    return tensor_n_cases * TENSOR_FAMILIES;
}

void tensor_case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", tensor_cases[index / TENSOR_FAMILIES].name,
             tensor_families[index % TENSOR_FAMILIES].name);
}

machine *tensor_vm(int index)
{
    machine *vm = NULL;
    ptxvm_config config = {.sm = tensor_families[index % TENSOR_FAMILIES].name,
                           .threads = 1,
                           .seed = (uint64_t)(index % 2),
                           .checks = EVERY_CHECK};
    CHECK(machine_create(&config, &vm) == PTXVM_OK);
    return vm;
}

/* ---- Data ---- */

static qdnnDataType_t x_type(const tensor_trial *t)
{
    return t->spec.product.x_fp8 ? (qdnnDataType_t)t->spec.product.x_fp8 : t->data;
}

static size_t x_bytes(const tensor_trial *t)
{
    return t->spec.product.x_fp8 ? 1 : 2;
}

bool tensor_spec_of(const tensor_case *c, qdnnDataType_t data, kernel_product product, uint64_t tile_rows,
                    kernel_spec *spec, const kernel_row **row)
{
    char name[64], key[32], error[256];
    snprintf(name, sizeof name, "matmul_%s", c->format);
    *row = kernel_find(name);
    *spec = kernel_spec_default();
    if (!CHECK(*row != NULL))
        return false;
    for (int i = 0; c->settings[i]; i++) {
        const char *equals = strchr(c->settings[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(equals - c->settings[i]), c->settings[i]);
        if (!kernel_spec_set(*row, spec, key, equals + 1, error, sizeof error)) {
            FAIL("%s: %s", c->settings[i], error);
            return false;
        }
    }
    spec->data = spec->product.x_fp8 ? QDNN_DATA_F16 : data;
    spec->product.kernel = product;
    spec->product.tile_rows = tile_rows;
    spec->product.reduction = c->k_in_columns ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    if (!kernel_spec_check(*row, spec, error, sizeof error)) {
        FAIL("%s", error);
        return false;
    }
    *spec = kernel_spec_normal(*row, spec);
    return true;
}

/* Blocks of any bytes have any scales; those here are of a size that sums can be seen of. */
static void tame_blocks(const block_layout *layout, uint32_t seed, uint8_t *bytes, int64_t total)
{
    for (int64_t at = 0; at + layout->bytes <= total; at += layout->bytes) {
        uint8_t *d = bytes + at + layout->at.scale, *second = bytes + at + layout->at.second;
        seed = seed * 1664525 + 1013904223;
        if (layout->scales == &scales_e8m0)
            d[0] = (uint8_t)(120 + seed / 65536 % 16);
        else if (layout->scales == &scales_f32)
            d[3] = 0x3C;
        else if (layout->scales == &scales_iq1_m) /* the upper bits of d are those of the last scales */
            bytes[at + layout->at.scales + 7] = (uint8_t)((bytes[at + layout->at.scales + 7] & 0x8F) | 0x20);
        else if (layout->scales != &scales_ue4m3)
            d[1] = (uint8_t)((d[1] & 0x83) | 0x20 | (seed / 65536 % 4 << 2));
        if (layout->scales == &scales_f16_min || layout->scales == &scales_q4_k ||
            layout->scales == &scales_q2_k)
            second[1] = (uint8_t)((second[1] & 0x83) | 0x24);
    }
}

/* A code of FP8 that is finite. */
static uint8_t finite_code(qdnnDataType_t storage, uint8_t code)
{
    const uint8_t special = storage == QDNN_DATA_F8E4M3 ? 0x7F : 0x7C;
    return (code & special) == special ? code ^ 0x40 : code;
}

/* Codes of every value. A NaN makes NaN of a whole column: those that have one have it at another k each, and so with infinities. */
static void fill_any_codes(const tensor_trial *t, uint32_t seed)
{
    const qdnnDataType_t storage = kernel_format(t->row)->storage;
    uint8_t *codes = t->host[QDNN_OPERAND_CODES];
    fill_bytes(seed, codes, t->bytes[QDNN_OPERAND_CODES]);
    if (storage != QDNN_DATA_F8E4M3 && storage != QDNN_DATA_F8E5M2)
        return;
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t k = 0; k < t->k; k++) {
            uint8_t *code = &codes[t->how->k_in_columns ? n * t->k + k : k * t->n + n];
            *code = finite_code(storage, *code);
            if (k == n * 37 % t->k && n % t->any_codes == 0)
                *code |= n % 8 < 4 ? 0x7F : 0x7C;
        }
}

/* Every scale that E4M3 has. A NaN makes NaN of a whole column, so there are few of them. */
static void fill_any_scales(uint8_t *scales, uint64_t count, uint32_t seed)
{
    enum { NAN_BITS = 0x7F, NANS_APART = 16 };
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t code = (uint8_t)(73 * i + seed);
        scales[i] = (code & NAN_BITS) == NAN_BITS && i % NANS_APART ? code - 1 : code;
    }
}

/* Any scale in E8M0 would make most of the results infinite, so a few become NaN and the others stay. */
static void fill_nan_scales(uint8_t *scales, uint64_t count, uint32_t seed)
{
    enum { NAN_BITS = 0xFF, NANS_APART = 37 };
    for (uint64_t i = seed % NANS_APART; i < count; i += NANS_APART)
        scales[i] = NAN_BITS;
}

/* Plain weights have numbers that the type of x has not. */
static void change_weights(const tensor_trial *t, uint32_t seed)
{
    if (t->weights == DATA_FEW_F16 && format_is_plain(t->row->format))
        fill_data(t->weights, NULL, (qdnnDataType_t)t->ref.storage, seed, t->host[QDNN_OPERAND_CODES],
                  t->n * t->k);
    if (t->weights == DATA_SPECIAL && t->spec.stored.scale == QDNN_SCALE_E4M3 && !t->spec.stored.nested)
        fill_any_scales(t->host[QDNN_OPERAND_SCALE], t->bytes[QDNN_OPERAND_SCALE], seed);
    if (t->weights == DATA_SPECIAL && t->spec.stored.scale == QDNN_SCALE_E8M0)
        fill_nan_scales(t->host[QDNN_OPERAND_SCALE], (uint64_t)t->bytes[QDNN_OPERAND_SCALE], seed);
}

static void fill_weights(tensor_trial *t, uint32_t seed)
{
    const int64_t rows = t->how->k_in_columns ? t->n : t->k, columns = t->how->k_in_columns ? t->k : t->n;
    const block_layout *blocks = block_layout_of(t->row->format);
    ref_arrays arrays = ref_arrays_of(t->host);
    uint8_t *plain = malloc((size_t)(rows * columns * 4) + 1);
    fill_data(t->weights == DATA_SPECIAL ? DATA_NORMAL : t->weights, kernel_format(t->row), t->data, seed,
              plain, rows * columns);
    if (blocks) {
        fill_bytes(seed, t->host[QDNN_OPERAND_CODES], t->bytes[QDNN_OPERAND_CODES]);
        tame_blocks(blocks, seed, t->host[QDNN_OPERAND_CODES], t->bytes[QDNN_OPERAND_CODES]);
    } else {
        int32_t *index = (int32_t *)(void *)t->host[QDNN_OPERAND_GROUP_INDEX];
        float *map = (float *)(void *)t->host[QDNN_OPERAND_NESTED_MAP];
        for (int64_t i = 0; i < t->bytes[QDNN_OPERAND_GROUP_INDEX] / 4; i++)
            index[i] = (int32_t)(i * 7 % ((rows + t->ref.group_size - 1) / t->ref.group_size));
        for (int64_t i = 0; i < t->bytes[QDNN_OPERAND_NESTED_MAP] / 4; i++)
            map[i] = (float)(i - 100) / 128;
        if (t->bytes[QDNN_OPERAND_NESTED_OFFSET])
            ((float *)(void *)t->host[QDNN_OPERAND_NESTED_OFFSET])[0] = 0.25f;
        if (!format_is_plain(t->row->format))
            ref_scale(&t->ref, rows, columns, plain, &arrays);
        ref_quantize(&t->ref, rows, columns, plain, &arrays);
        if (t->any_codes && !format_is_plain(t->row->format))
            fill_any_codes(t, seed + 2);
        change_weights(t, seed);
    }
    ref_dequantize(&t->ref, rows, columns, &arrays, plain);
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t k = 0; k < t->k; k++)
            t->w16[n * t->k + k] =
                ((uint16_t *)(void *)plain)[t->how->k_in_columns ? n * t->k + k : k * t->n + n];
    free(plain);
}

/* Special data in FP8 are any codes. */
static void fill_x(const tensor_trial *t, uint32_t seed)
{
    uint8_t *x = t->host[QDNN_OPERAND_X];
    const int64_t count = t->m * (t->k + t->gap);
    if (!t->spec.product.x_fp8) {
        fill_data(t->kind, NULL, t->data, seed, x, count);
        return;
    }
    fill_bytes(seed, x, count);
    for (int64_t i = 0; i < count && t->kind != DATA_SPECIAL; i++)
        x[i] = finite_code(x_type(t), x[i]);
}

/* With x in FP8, weights are used as they are; otherwise rounded to the type of x. */
static void multiply(const tensor_trial *t, int sm)
{
    const bool is_fp8 = t->spec.product.x_fp8;
    const ref_quant_spec rounded = {.storage = t->data, .data = t->data};
    const ref_product product = {.m = t->m,
                                 .k = t->k,
                                 .outputs = t->n,
                                 .k_rows = is_fp8 && !t->how->k_in_columns,
                                 .weights = is_fp8 ? t->ref : rounded,
                                 .x = x_type(t),
                                 .y = QDNN_DATA_F32,
                                 .x_stride = t->k + t->gap,
                                 .y_stride = t->n + t->gap};
    const ref_product_arrays arrays = {
        .x = t->host[QDNN_OPERAND_X],
        .weights = {.codes = is_fp8 ? (void *)t->host[QDNN_OPERAND_CODES] : (void *)t->w16},
        .y = t->y};
    ref_product_tensor_on(&product, &arrays, sm);
}

void tensor_fill(tensor_trial *t, int sm, uint32_t seed)
{
    const int64_t rows = t->how->k_in_columns ? t->n : t->k, columns = t->how->k_in_columns ? t->k : t->n;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        t->bytes[i] = i == QDNN_OPERAND_X   ? t->m * (t->k + t->gap) * (int64_t)x_bytes(t)
                      : i == QDNN_OPERAND_Y ? t->m * (t->n + t->gap) * 4
                                            : ref_operand_bytes(&t->ref, rows, columns, i);
        t->host[i] = calloc((size_t)t->bytes[i] + 8, 1);
    }
    t->w16 = malloc((size_t)(t->n * t->k) * 2 + 2);
    fill_weights(t, seed);
    fill_x(t, seed + 1);
    t->y = (float *)(void *)t->host[QDNN_OPERAND_Y];
    memset(t->y, TENSOR_GARBAGE, (size_t)t->bytes[QDNN_OPERAND_Y]);
    multiply(t, sm);
    int64_t finite = 0;
    for (int64_t i = 0; i < t->m * t->n; i++)
        finite += isfinite(t->y[i / t->n * (t->n + t->gap) + i % t->n]);
    CHECK(2 * finite > t->m * t->n || t->kind != DATA_NORMAL || t->any_codes);
}

void tensor_free(tensor_trial *t)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(t->host[i]);
    free(t->w16);
}
/* ---- The tensor_launch ---- */

static size_t set_params(const kernel_step *step, const tensor_device *d, uint8_t *params)
{
    size_t bytes = 0;
    for (int i = 0; i < step->n_params; i++) {
        const kernel_param *p = &step->params[i];
        const uint64_t value = p->kind == KERNEL_NUMBER    ? p->value
                               : p->kind == KERNEL_OPERAND ? d->at[p->operand]
                                                           : d->at[QDNN_OPERAND_COUNT] + p->value;
        const size_t size = p->kind == KERNEL_NUMBER ? p->bytes : 8;
        bytes = (bytes + size - 1) / size * size;
        memcpy(params + bytes, &value, size);
        bytes += size;
    }
    return bytes;
}

void tensor_launch(const tensor_device *d, const kernel_step *step)
{
    uint8_t params[8 * KERNEL_PARAMS_MAX];
    char entry[64];
    kernel_text text;
    ptx_error error;
    machine_module *module = NULL;
    machine_kernel *kernel = NULL;
    if (!kernel_emit(step->row, &step->spec, ptx_sm_find(machine_sm(d->vm)), NULL, &text, &error)) {
        FAIL("%s", error.text);
        return;
    }
    kernel_entry_name(step->row, entry, sizeof entry);
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    size_t bytes = set_params(step, d, params);
    if (machine_module_load(d->vm, text.ptx, strlen(text.ptx), &module) != PTXVM_OK ||
        machine_module_kernel(module, entry, &kernel) != PTXVM_OK ||
        machine_launch(d->vm, kernel, &config, params, bytes) != PTXVM_OK)
        FAIL("%s", machine_last_error(d->vm));
    else if (d->conflicts)
        *d->conflicts += ptxvm_last_counters(machine_ptxvm(d->vm))->total.bank_conflicts;
    if (module)
        machine_module_unload(module);
    free(text.ptx);
}

kernel_problem tensor_problem_of(const tensor_trial *t)
{
    const bool columns = t->how->k_in_columns;
    return (kernel_problem){.rows = (uint64_t)(columns ? t->n : t->k),
                            .columns = (uint64_t)(columns ? t->k : t->n),
                            .m = (uint64_t)t->m,
                            .x_stride = (uint64_t)(t->k + t->gap),
                            .y_stride = (uint64_t)(t->n + t->gap)};
}

static void make_buffers(const tensor_trial *t, tensor_device *d, uint64_t workspace)
{
    for (int o = 0; o < QDNN_OPERAND_COUNT; o++) {
        const bool prepacked = t->spec.product.kernel == KERNEL_PRODUCT_STREAM && o == QDNN_OPERAND_CODES;
        const size_t element = o == QDNN_OPERAND_Y   ? 4
                               : o == QDNN_OPERAND_X ? x_bytes(t)
                                                     : ref_element_bytes(&t->ref, o);
        const bool stays = prepacked || (t->only && !(t->only >> o & 1));
        const size_t shift = stays ? 0 : t->shift * element;
        if (!t->bytes[o])
            continue;
        CHECK(machine_alloc(d->vm, (uint64_t)t->bytes[o] + shift, &d->base[o]) == PTXVM_OK);
        d->at[o] = d->base[o] + shift;
        if (o == QDNN_OPERAND_Y)
            CHECK(machine_fill(d->vm, d->at[o], TENSOR_GARBAGE, (uint64_t)t->bytes[o]) == PTXVM_OK);
        else
            CHECK(machine_write(d->vm, d->at[o], t->host[o], (uint64_t)t->bytes[o]) == PTXVM_OK);
    }
    if (workspace)
        CHECK(machine_alloc(d->vm, workspace, &d->base[QDNN_OPERAND_COUNT]) == PTXVM_OK);
    d->at[QDNN_OPERAND_COUNT] = d->base[QDNN_OPERAND_COUNT];
}

static void check_y(const tensor_trial *t, const tensor_device *d)
{
    const uint64_t bytes = (uint64_t)t->bytes[QDNN_OPERAND_Y];
    float *actual = malloc((size_t)bytes + 1);
    CHECK(machine_read(d->vm, actual, d->at[QDNN_OPERAND_Y], bytes) == PTXVM_OK);
    CHECK_EQ_MEM(actual, t->y, (size_t)bytes);
    free(actual);
}

static void launch_step(const tensor_trial *t, const tensor_device *d, kernel_step *step)
{
    if (t->few_blocks && step->spec.product.kernel != KERNEL_PRODUCT_STREAM)
        step->grid[1] = 1;
    tensor_launch(d, step);
}

static void run_steps(const tensor_trial *t, tensor_device *d)
{
    kernel_problem problem = tensor_problem_of(t);
    kernel_steps steps;
    kernel_steps_of(t->row, KERNEL_NORMAL(t->row, &t->spec), &problem, &steps);
    make_buffers(t, d, steps.workspace);
    for (int i = 0; i < steps.count; i++)
        launch_step(t, d, &steps.at[i]);
    check_y(t, d);
    for (int o = 0; o <= QDNN_OPERAND_COUNT; o++)
        if (d->base[o])
            machine_free(d->vm, d->base[o]);
}

void tensor_prepack(tensor_trial *t)
{
    const bool columns = t->how->k_in_columns;
    const int64_t bytes = ref_prepacked_bytes(&t->ref, t->n, t->k);
    uint8_t *packed = malloc((size_t)bytes + 1), *codes = t->host[QDNN_OPERAND_CODES];
    ref_prepack(&t->ref, columns ? t->n : t->k, columns ? t->k : t->n, !columns, codes, packed);
    free(codes);
    t->host[QDNN_OPERAND_CODES] = packed;
    t->bytes[QDNN_OPERAND_CODES] = bytes;
}

/* ---- One shape ---- */

void tensor_run_shape(machine *vm, const tensor_case *c, int family, kernel_product product, tensor_shape s,
                      uint32_t seed)
{
    tensor_run_on(vm, c, &tensor_families[family], product, s, seed);
}

void tensor_run_on(machine *vm, const tensor_case *c, const struct tensor_family *on, kernel_product product,
                   tensor_shape s, uint32_t seed)
{
    tensor_trial t = {.how = c,
                      .data = on->data,
                      .m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .shift = s.shift,
                      .only = s.only,
                      .gap = s.gap,
                      .kind = s.kind,
                      .any_codes = s.any_codes,
                      .weights = s.weights,
                      .few_blocks = s.few_blocks};
    tensor_device d = {.vm = vm};
    if (!tensor_spec_of(c, t.data, product, s.tile_rows, &t.spec, &t.row))
        return;
    char why[256];
    t.spec.product.split = s.split ? s.split : 1;
    while (t.spec.product.split > 1 && !kernel_is_emitted(t.row, &t.spec, why, sizeof why))
        t.spec.product.split /= 2;
    t.ref = ref_spec_of(t.row, &t.spec);
    test_push_note("M %d, N %d, K %d, shift %d, tiles of %d rows, split %d", (int)s.m, (int)s.n, (int)s.k,
                   (int)s.shift, (int)s.tile_rows, (int)t.spec.product.split);
    tensor_fill(&t, on->sm, seed);
    if (product == KERNEL_PRODUCT_STREAM)
        tensor_prepack(&t);
    run_steps(&t, &d);
    tensor_free(&t);
    test_pop_note();
}
