/* The kernels of mode tensor against host_ref, on ptxvm as every family of SMs: S as f32, bit for bit, for every format,
 * orientation and kind of groups, with shapes that are multiples of nothing. */
#include "device/tensor_trial.h"
#include "driver/api/matmul.h"
#include "ptxgen/sm.h"
#include "support/checks.h"
#include "test.h"

#include <stdio.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

DEVICE_EACH(TensorTile, HostRef, tensor_case_count, tensor_case_name)
{
    NEED_SM(tensor_families[index % TENSOR_FAMILIES].name);
    const tensor_case *c = &tensor_cases[index / TENSOR_FAMILIES];
    const int family = index % TENSOR_FAMILIES;
    const kernel_row *row;
    kernel_spec spec;
    REQUIRE(tensor_spec_of(c, tensor_families[family].data, KERNEL_PRODUCT_TILE, 16, &spec, &row));
    machine *vm = tensor_vm(index);
    const int64_t multiple = (int64_t)kernel_columns_multiple(row);
    const bool is_blocks = multiple > 1, is_awq = spec.stored.layout == QDNN_LAYOUT_AWQ;
    const uint64_t largest = kernel_tile_rows(row, 1000);
    const int64_t long_k = !is_blocks ? 608 : multiple == 256 ? 768 : 512 + 3 * multiple;
    const tensor_shape shapes[] = {
        {.m = 5, .n = 40, .k = long_k, .tile_rows = 16},
        /* several rounds of parts, or more parts than strips */
        {.m = index % 5 + 1,
         .n = 40,
         .k = long_k + (index % 2 ? 1024 : 0),
         .tile_rows = (uint64_t)1 << (index + index / TENSOR_FAMILIES) % 6,
         .split = (uint64_t)2 << index / 7 % 3},
        {.m = 35, .n = 144, .k = is_blocks ? 2 * multiple : 96, .tile_rows = largest},
        {.m = 19,
         .n = is_awq ? 24 : 21,
         .k = is_blocks ? multiple : 77,
         .shift = 1,
         .tile_rows = largest > 32 ? 32 : largest}};
    for (int i = 0; i < LENGTH(shapes) && vm; i++)
        tensor_run_shape(vm, c, family, KERNEL_PRODUCT_TILE, shapes[i], (uint32_t)(index + 100 * i));
    machine_destroy(vm);
}

/* ---- Every SM, with every type that tensor cores have: those of a family may differ ---- */

static const ptx_sm *plain_sm(int index)
{
    for (int i = 0; i < ptx_sm_count(); i++)
        if (ptx_sm_get(i)->flavour == PTX_PLAIN && index-- == 0)
            return ptx_sm_get(i);
    return NULL;
}

static int sm_count(void)
{
    int n = 0;
    while (plain_sm(n))
        n++;
    return n;
}

static void sm_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", plain_sm(index)->name);
}

DEVICE_EACH(TensorSms, HostRef, sm_count, sm_name)
{
    static const tensor_case halves = {"plain_f16", "plain_f16", true, {NULL}},
                             bfloats = {"plain_bf16", "plain_bf16", true, {NULL}};
    const ptx_sm *sm = plain_sm(index);
    const tensor_shape shape = {.m = 17, .n = 24, .k = 608, .tile_rows = 16};
    const struct tensor_family f16 = {sm->name, (int)sm->number, QDNN_DATA_F16},
                               bf16 = {sm->name, (int)sm->number, QDNN_DATA_BF16};
    const ptxvm_config config = {.sm = sm->name, .threads = 1, .checks = EVERY_CHECK};
    machine *vm = NULL;
    CHECK(tensor_bits_on((int)sm->number) != NULL); /* what plans say of their bits */
    CHECK_EQ_I64(sm->has_fp8, ref_tensor_has((int)sm->number, QDNN_DATA_F8E4M3));
    NEED_SM(sm->name);
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    tensor_run_on(vm, &halves, &f16, KERNEL_PRODUCT_TILE, shape, (uint32_t)index);
    if (sm->number >= 80)
        tensor_run_on(vm, &bfloats, &bf16, KERNEL_PRODUCT_TILE, shape, (uint32_t)index + 100);
    for (int i = 0; i < TENSOR_FP8_CASES; i++)
        tensor_run_on(vm, &tensor_fp8_cases[i], &f16, KERNEL_PRODUCT_TILE, shape,
                      (uint32_t)(index + 200 * i));
    machine_destroy(vm);
}

DEVICE_EACH(TensorStream, HostRef, tensor_case_count, tensor_case_name)
{
    NEED_SM(tensor_families[index % TENSOR_FAMILIES].name);
    const tensor_case *c = &tensor_cases[index / TENSOR_FAMILIES];
    const int family = index % TENSOR_FAMILIES;
    const kernel_row *row;
    kernel_spec spec;
    char error[256];
    REQUIRE(tensor_spec_of(c, tensor_families[family].data, KERNEL_PRODUCT_STREAM, 8, &spec, &row));
    if (!kernel_is_emitted(row, &spec, error, sizeof error))
        SKIP("%s", error);
    machine *vm = tensor_vm(index);
    const bool flat = spec.stored.groups == QDNN_GROUPS_FLAT && spec.stored.channels != 1,
               is_awq = spec.stored.layout == QDNN_LAYOUT_AWQ;
    const int64_t multiple = (int64_t)kernel_columns_multiple(row);
    const int64_t odd_k = multiple > 1 ? 3 * multiple : flat ? (int64_t)spec.stored.group_size * 3 : 77;
    const tensor_shape shapes[] = {
        /* 9: a whole tile, and one row */
        {.m = index % 2 ? 9 : 1,
         .n = 40,
         .k = 1024 + (multiple > 64 ? multiple : 64),
         .tile_rows = 8,
         .split = (uint64_t)1 << index / 2 % 4},
        {.m = index % 2 ? 67 : 35, .n = 304, .k = 1024, .tile_rows = kernel_stream_rows(row, 64)},
        {.m = 19,
         .n = is_awq ? 24 : 21,
         .k = odd_k,
         .shift = 1,
         .tile_rows = 16,
         .split = (uint64_t)1 << index / 3 % 4},
        /* few rows, and several rounds of parts, the last of which is not full */
        {.m = index % 4 + 1,
         .n = 72,
         .k = 2560 + (multiple > 64 ? multiple : 64),
         .tile_rows = (uint64_t)1 << index / 7 % 3,
         .split = (uint64_t)2 << index / 5 % 2}};
    const int i =
        (index / TENSOR_FAMILIES + family) % LENGTH(shapes); /* each with two of the tensor_families */
    if (vm)
        tensor_run_shape(vm, c, family, KERNEL_PRODUCT_STREAM, shapes[i], (uint32_t)(index + 100 * i));
    machine_destroy(vm);
}

/* Codes of 4 bits as they are stored, by the same kernel: K need not be whole strips, or aligned to whole words of a row. */
DEVICE_EACH(TensorStored, HostRef, tensor_case_count, tensor_case_name)
{
    NEED_SM(tensor_families[index % TENSOR_FAMILIES].name);
    const tensor_case *c = &tensor_cases[index / TENSOR_FAMILIES];
    const int family = index % TENSOR_FAMILIES;
    const kernel_row *row;
    kernel_spec spec;
    char error[256];
    REQUIRE(tensor_spec_of(c, tensor_families[family].data, KERNEL_PRODUCT_STORED, 8, &spec, &row));
    if (!kernel_is_emitted(row, &spec, error, sizeof error))
        SKIP("%s", error);
    machine *vm = tensor_vm(index);
    const bool flat = spec.stored.groups == QDNN_GROUPS_FLAT && spec.stored.channels != 1;
    const int64_t odd_k = flat ? (int64_t)spec.stored.group_size * 16 : 80;
    const tensor_shape shapes[] = {
        {.m = index % 2 ? 9 : 1, .n = 40, .k = 1104, .tile_rows = 8, .split = (uint64_t)1 << index / 2 % 4},
        {.m = index % 2 ? 67 : 35, .n = 304, .k = 1024, .tile_rows = kernel_stream_rows(row, 64)},
        {.m = 19, .n = 21, .k = odd_k, .shift = 1, .tile_rows = 16, .split = (uint64_t)1 << index / 3 % 4},
        {.m = index % 4 + 1,
         .n = 72,
         .k = 2624,
         .tile_rows = (uint64_t)1 << index / 7 % 3,
         .split = (uint64_t)2 << index / 5 % 2}};
    for (int i = 0; i < LENGTH(shapes) && vm; i++)
        if (!flat || shapes[i].k % (int64_t)spec.stored.group_size == 0)
            tensor_run_shape(vm, c, family, KERNEL_PRODUCT_STORED, shapes[i], (uint32_t)(index + 100 * i));
    machine_destroy(vm);
}

/* ---- Counters ---- */

/* FP8 with FP8, of zeros, on which no count depends. */
static void check_no_conflicts(const char *sm, kernel_product product, bool k_in_columns)
{
    const ptxvm_config config = {.sm = sm, .threads = 1, .counters = PTXVM_COUNTERS_KERNEL};
    const kernel_row *row = kernel_find("matmul_e4m3");
    const kernel_problem problem = {.rows = 256, .columns = 256, .m = 32, .x_stride = 256, .y_stride = 256};
    uint64_t conflicts = 0;
    tensor_device d = {.conflicts = &conflicts};
    kernel_spec spec = kernel_spec_default();
    kernel_steps steps;
    spec.product.kernel = product;
    spec.product.tile_rows = 32;
    spec.stored.groups = QDNN_GROUPS_DEFAULT;
    spec.product.x_fp8 = QDNN_DATA_F8E4M3;
    spec.product.reduction = k_in_columns ? KERNEL_K_COLUMNS : KERNEL_K_ROWS;
    kernel_steps_of(row, KERNEL_NORMAL(row, &spec), &problem, &steps);
    REQUIRE(machine_create(&config, &d.vm) == PTXVM_OK);
    const uint64_t bytes = 256 * 256 * 4;
    for (int o = 0; o <= QDNN_OPERAND_COUNT; o++)
        CHECK(machine_alloc(d.vm, bytes, &d.at[o]) == PTXVM_OK &&
              machine_fill(d.vm, d.at[o], 0, bytes) == PTXVM_OK);
    for (int i = 0; i < steps.count; i++)
        tensor_launch(&d, &steps.at[i]);
    CHECK_EQ_U64(conflicts, 0);
    machine_destroy(d.vm);
}

DEVICE_CASE(TensorFp8Counters, NoBankConflicts)
{
    ONLY_PTXVM("counters of bank conflicts");
    static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_120"};
    for (int i = 0; i < LENGTH(sms); i++)
        for (int k_in_columns = 0; k_in_columns < 2; k_in_columns++) {
            test_push_note("%s, %s", sms[i], k_in_columns ? "[N, K]" : "[K, N]");
            check_no_conflicts(sms[i], KERNEL_PRODUCT_TILE, k_in_columns);
            check_no_conflicts(sms[i], KERNEL_PRODUCT_STREAM, k_in_columns);
            test_pop_note();
        }
}
