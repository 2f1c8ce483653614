#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/ref_spec.h"
#include "once_cases.h"
#include "driver/cuda/open.h"
#include "support/environment.h"
#include "formats/kernel_data.h"

const scene_kind scene_kinds[] = {
    {"int4", QDNN_DATA_I4, QDNN_ZERO_NONE, QDNN_DATA_F32, QDNN_SCALE_F32, QDNN_GRANULARITY_GROUP, 32, 200},
    {"nf4", QDNN_DATA_NF4, QDNN_ZERO_NONE, QDNN_DATA_F16, QDNN_SCALE_BF16, QDNN_GRANULARITY_GROUP, 64, 130},
    {"int4_zp", QDNN_DATA_I4, QDNN_ZERO_POINT, QDNN_DATA_BF16, QDNN_SCALE_F16, QDNN_GRANULARITY_GROUP, 16,
     100},
    {"tensor", QDNN_DATA_I4, QDNN_ZERO_NONE, QDNN_DATA_F32, QDNN_SCALE_F32, QDNN_GRANULARITY_TENSOR, 0, 8200},
};

int scene_kind_count(void)
{
    return (int)(sizeof scene_kinds / sizeof scene_kinds[0]);
}

void scene_kind_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", scene_kinds[index].name);
}

const char *last_sentence(void)
{
    static _Thread_local char sentence[512];
    qdnnGetLastErrorString(sentence, sizeof sentence);
    return sentence;
}

void vm_begin(const char *settings)
{
    cuda_close_all();
    environment_restore();
    environment_set(
        "QDNN_DEVICE=vm QDNN_LIBCUDA= QDNN_REQUIRE_GPU= QDNN_LOGLEVEL= QDNN_BUNDLE_DIR= QDNN_DUMP_DIR= "
        "QDNN_CHECK_BUFFERS= "
        "PTXVM_SM= PTXVM_FAULT= PTXVM_CHECK= PTXVM_LOG= PTXVM_DEVICES=");
    environment_set(settings);
}

void vm_end(void)
{
    cuda_close_all();
    environment_restore();
}

bool basics_create(qdnnHandle_t *handle, qdnnTensorDescriptor_t *tensor, qdnnQuantDescriptor_t *quant)
{
    return OK(qdnnCreate(handle)) && OK(qdnnCreateTensorDescriptor(tensor)) &&
           OK(qdnnSetTensorDescriptor(*tensor, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL)) &&
           OK(qdnnCreateQuantDescriptor(quant));
}

void basics_destroy(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant)
{
    OK(qdnnDestroyTensorDescriptor(tensor));
    OK(qdnnDestroyQuantDescriptor(quant));
    OK(qdnnDestroy(handle));
}

/* ---- Data ---- */

static ref_quant_spec spec_of(const scene_kind *kind)
{
    return (ref_quant_spec){.storage = kind->storage,
                            .zero_kind = kind->zero_kind,
                            .data = kind->data,
                            .scale = kind->scale,
                            .zero = QDNN_DATA_U8,
                            .group_size = kind->extent > 0 ? kind->extent : kind->n,
                            .floor = REF_DEFAULT_FLOOR};
}

static void set_sizes(scene *s, const ref_quant_spec *spec)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        s->bytes[i] = (size_t)ref_operand_bytes(spec, 1, s->kind->n, i);
}

/* The cache that the first elements of x make as one token with one head. */
static void expect_kv(scene *s)
{
    const ref_quant_spec spec = {.storage = QDNN_DATA_I4,
                                 .data = s->kind->data,
                                 .scale = QDNN_SCALE_F32,
                                 .zero = QDNN_DATA_U8,
                                 .group_size = SCENE_KV,
                                 .floor = REF_DEFAULT_FLOOR};
    float scale;
    uint8_t *operands[QDNN_OPERAND_COUNT] = {
        [QDNN_OPERAND_CODES] = s->kv_expected, [QDNN_OPERAND_SCALE] = (uint8_t *)&scale};
    ref_arrays arrays = ref_arrays_of(operands);
    ref_scale(&spec, 1, SCENE_KV, s->expected[QDNN_OPERAND_X], &arrays);
    ref_quantize(&spec, 1, SCENE_KV, s->expected[QDNN_OPERAND_X], &arrays);
    memcpy(s->kv_expected + SCENE_KV / 2, &scale, sizeof scale);
}

void scene_begin(scene *s, const scene_kind *kind, const char *device, uint32_t seed)
{
    *s = (scene){.kind = kind, .device = device};
    ref_quant_spec spec = spec_of(kind);
    set_sizes(s, &spec);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        s->expected[i] = calloc(1, s->bytes[i] + 1);
        for (int round = 0; round < SCENE_ROUNDS; round++)
            s->got[round][i] = calloc(1, s->bytes[i] + 1);
    }
    uint8_t **e = s->expected;
    const format_row *format =
        kernel_find_format(kind->storage, 0, kind->zero_kind, QDNN_CODE_DEFAULT, QDNN_BLOCK_NONE);
    ref_arrays arrays = ref_arrays_of(e);
    fill_data(DATA_NORMAL, format_facts_of(format), kind->data, seed, e[QDNN_OPERAND_X], kind->n);
    ref_scale(&spec, 1, kind->n, e[QDNN_OPERAND_X], &arrays);
    ref_quantize(&spec, 1, kind->n, e[QDNN_OPERAND_X], &arrays);
    ref_dequantize(&spec, 1, kind->n, &arrays, e[QDNN_OPERAND_Y]);
    expect_kv(s);
}

void scene_end(scene *s)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        free(s->expected[i]);
        for (int round = 0; round < SCENE_ROUNDS; round++)
            free(s->got[round][i]);
    }
}

int scene_held(const scene *s)
{
    int held = 0;
    for (int i = 0; i < SCENE_BUFFERS; i++)
        held += s->buffers[i] != NULL;
    return held + (s->arena != NULL);
}

/* ---- Steps: each can be repeated where it failed ---- */

static qdnnStatus_t create(scene *s, int which)
{
    (void)which;
    return s->device ? qdnnCreateOn(&s->handle, s->device) : qdnnCreate(&s->handle);
}

static qdnnStatus_t create_tensor(scene *s, int which)
{
    (void)which;
    return qdnnCreateTensorDescriptor(&s->tensor);
}

static qdnnStatus_t set_tensor(scene *s, int which)
{
    (void)which;
    return qdnnSetTensorDescriptor(s->tensor, s->kind->data, 1, &s->kind->n, NULL);
}

static qdnnStatus_t create_quant(scene *s, int which)
{
    (void)which;
    return qdnnCreateQuantDescriptor(&s->quant);
}

static qdnnStatus_t set_quant(scene *s, int which)
{
    (void)which;
    qdnnZeroKind_t zero = s->kind->zero_kind;
    qdnnStatus_t status =
        qdnnSetQuantDescriptor(s->quant, s->kind->storage, s->kind->granularity, s->kind->extent);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSetQuantAttribute(s->quant, QDNN_QUANT_ZERO_KIND, zero);
    return status == QDNN_STATUS_SUCCESS
               ? qdnnSetQuantAttribute(s->quant, QDNN_QUANT_SCALE_TYPE, s->kind->scale)
               : status;
}

/* The sizes that the library reports are those of host_ref. */
static qdnnStatus_t check_sizes(scene *s, int which)
{
    (void)which;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        size_t bytes = 0;
        qdnnStatus_t status = qdnnGetOperandSize(s->quant, s->tensor, (qdnnOperand_t)i, &bytes);
        if (status != QDNN_STATUS_SUCCESS)
            return status;
        if (bytes != s->bytes[i])
            return QDNN_STATUS_INTERNAL_ERROR; /* threads run this too, where nothing is reported */
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t set_weights(scene *s, int which)
{
    return qdnnSetQuantWeights(s->quant, (qdnnWeights_t)which, 0);
}

static qdnnStatus_t device_info(scene *s, int which)
{
    (void)which;
    s->info.size = sizeof s->info;
    return qdnnGetDeviceInfo(s->handle, &s->info);
}

static qdnnStatus_t set_stream(scene *s, int which)
{
    (void)which;
    return qdnnSetStream(s->handle, NULL);
}

static qdnnStatus_t allocate(scene *s, int which)
{
    if (which == SCENE_WORKSPACE) {
        qdnnStatus_t status = qdnnGetPlanWorkspaceSize(s->plans[0], &s->bytes[which]);
        if (status != QDNN_STATUS_SUCCESS)
            return status;
    }
    return qdnnMalloc(s->handle, &s->buffers[which], s->bytes[which]);
}

static qdnnStatus_t release(scene *s, int which)
{
    qdnnStatus_t status = qdnnFree(s->handle, s->buffers[which]);
    if (status == QDNN_STATUS_SUCCESS)
        s->buffers[which] = NULL;
    return status;
}

static qdnnStatus_t to_device(scene *s, int which)
{
    return qdnnCopyToDevice(s->handle, s->buffers[which], s->expected[which], s->bytes[which]);
}

static qdnnStatus_t on_device(scene *s, int which)
{
    return qdnnCopyOnDevice(s->handle, s->buffers[which], s->buffers[QDNN_OPERAND_X], s->bytes[which]);
}

static qdnnStatus_t fill(scene *s, int which)
{
    return qdnnFill(s->handle, s->buffers[which], 0xA5, s->bytes[which]);
}

static qdnnStatus_t create_plan(scene *s, int which)
{
    static qdnnStatus_t (*const makers[])(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t,
                                          qdnnPlan_t *) = {qdnnCreateScalePlan, qdnnCreateQuantizePlan,
                                                           qdnnCreateDequantizePlan};
    return makers[which](s->handle, s->tensor, s->quant, &s->plans[which]);
}

static qdnnStatus_t create_train(scene *s, int which)
{
    (void)which;
    return qdnnCreateTrainDescriptor(&s->train);
}

static qdnnStatus_t destroy_train(scene *s, int which)
{
    (void)which;
    return qdnnDestroyTrainDescriptor(s->train);
}

/* Of an f32 tensor, whatever the scene's own has. */
static qdnnStatus_t create_train_plan(scene *s, int which)
{
    qdnnTensorDescriptor_t x = NULL;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&x);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateLsqPlan(s->handle, x, s->train, &s->plans[which]);
    qdnnDestroyTensorDescriptor(x);
    return status;
}

static qdnnStatus_t create_integer(scene *s, int which)
{
    (void)which;
    return qdnnCreateIntegerDescriptor(&s->integer);
}

static qdnnStatus_t destroy_integer(scene *s, int which)
{
    (void)which;
    return qdnnDestroyIntegerDescriptor(s->integer);
}

/* x, w and y are 2 x 2, so that one descriptor serves. */
static qdnnStatus_t create_integer_plan(scene *s, int which)
{
    qdnnTensorDescriptor_t x = NULL;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&x);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSetTensorDescriptor(x, QDNN_DATA_I8, 2, (const int64_t[]){2, 2}, NULL);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateIntegerMatmulPlan(s->handle, s->integer, x, x, x, &s->plans[which]);
    qdnnDestroyTensorDescriptor(x);
    return status;
}

/* A norm, a function of each element, rope, a copy, attention over a cache of one slot. */
static qdnnStatus_t create_row_plan(scene *s, int which)
{
    const qdnnNorm_t norm = {.size = sizeof norm};
    const qdnnPointwise_t relu = {
        .size = sizeof relu, .kind = QDNN_POINTWISE_FUNCTION, .function = QDNN_ACTIVATION_RELU};
    qdnnTensorDescriptor_t x = NULL;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&x);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSetTensorDescriptor(x, QDNN_DATA_F32, 2, (const int64_t[]){1, 8}, NULL);
    const qdnnRope_t rope = {.size = sizeof rope, .rotary = 8, .positions = 1};
    const qdnnAttention_t attention = {.size = sizeof attention};
    const qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = 1, .heads = 1, .headSize = 8, .type = QDNN_DATA_F32};
    if (status == QDNN_STATUS_SUCCESS && which == 6)
        status = qdnnCreateNormPlan(s->handle, &norm, x, x, NULL, &s->plans[which]);
    else if (status == QDNN_STATUS_SUCCESS && which == 7)
        status = qdnnCreatePointwisePlan(s->handle, &relu, x, NULL, x, NULL, &s->plans[which]);
    else if (status == QDNN_STATUS_SUCCESS && which == 9)
        status = qdnnCreateCopyPlan(s->handle, x, x, &s->plans[which]);
    else if (status == QDNN_STATUS_SUCCESS && which == 8)
        status = qdnnCreateRopePlan(s->handle, &rope, x, x, NULL, NULL, &s->plans[which]);
    else if (status == QDNN_STATUS_SUCCESS)
        status = qdnnCreateAttentionPlan(s->handle, &attention, x, &cache, &cache, x, &s->plans[which]);
    qdnnDestroyTensorDescriptor(x);
    return status;
}

/* A token with one head, and a cache with one slot. */
static qdnnStatus_t create_kv_plan(scene *s, int which)
{
    const int64_t dims[] = {1, 1, SCENE_KV};
    qdnnTensorDescriptor_t x = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&x);
    status = status ? status : qdnnCreateQuantDescriptor(&quant);
    status = status ? status : qdnnSetTensorDescriptor(x, s->kind->data, 3, dims, NULL);
    status = status ? status : qdnnSetQuantDescriptor(quant, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, SCENE_KV);
    status = status ? status : qdnnCreateQuantizeKvCachePlan(s->handle, x, quant, x, &s->plans[which]);
    qdnnDestroyTensorDescriptor(x);
    qdnnDestroyQuantDescriptor(quant);
    return status;
}

/* Codes and scales of the scene serve as the cache, its y, all bytes of which are 0, as the list of slots. */
static qdnnStatus_t execute_kv(scene *s, int which)
{
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, s->buffers[QDNN_OPERAND_X], 0},
                                      {QDNN_OPERAND_CODES, s->buffers[QDNN_OPERAND_CODES], 0},
                                      {QDNN_OPERAND_SCALE, s->buffers[QDNN_OPERAND_SCALE], 0},
                                      {QDNN_OPERAND_ROW_INDEX, s->buffers[QDNN_OPERAND_Y], 0}};
    return qdnnExecute(s->handle, s->plans[which], bindings, 4, NULL, 0);
}

static qdnnStatus_t kv_to_host(scene *s, int which)
{
    bool is_scale = which == QDNN_OPERAND_SCALE;
    return qdnnCopyToHost(s->handle, s->kv_got + (is_scale ? SCENE_KV / 2 : 0), s->buffers[which],
                          SCENE_KV / 2);
}

static qdnnStatus_t fill_slots(scene *s, int which)
{
    return qdnnFill(s->handle, s->buffers[which], 0, s->bytes[which]);
}

/* The operands of a plan; how many. */
static int bind(const scene *s, int which, qdnnBinding_t *bindings)
{
    static const qdnnOperand_t operands[3][3] = {{QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_COUNT},
                                                 {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_CODES},
                                                 {QDNN_OPERAND_Y, QDNN_OPERAND_SCALE, QDNN_OPERAND_CODES}};
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (operands[which][i] < QDNN_OPERAND_COUNT)
            bindings[count++] = (qdnnBinding_t){operands[which][i], s->buffers[operands[which][i]],
                                                s->bytes[operands[which][i]]};
    if (s->bytes[QDNN_OPERAND_ZERO] > 0)
        bindings[count++] =
            (qdnnBinding_t){QDNN_OPERAND_ZERO, s->buffers[QDNN_OPERAND_ZERO], s->bytes[QDNN_OPERAND_ZERO]};
    return count;
}

static qdnnStatus_t create_schedule(scene *s, int which)
{
    (void)which;
    return qdnnCreateSchedule(s->handle, &s->schedule);
}

static qdnnStatus_t add_to_schedule(scene *s, int which)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int count = bind(s, which, bindings);
    return qdnnAddToSchedule(s->schedule, s->plans[which], bindings, count);
}

static qdnnStatus_t execute_schedule(scene *s, int which)
{
    (void)which;
    return qdnnExecuteSchedule(s->handle, s->schedule, s->buffers[SCENE_WORKSPACE],
                               s->bytes[SCENE_WORKSPACE]);
}

static qdnnStatus_t destroy_schedule(scene *s, int which)
{
    (void)which;
    qdnnStatus_t status = qdnnDestroySchedule(s->schedule);
    s->schedule = NULL;
    return status;
}

/* The tensors of the program: one for each operand, and after them the copy of the scales. */
static qdnnStatus_t create_program(scene *s, int which)
{
    (void)which;
    return qdnnCreateProgram(s->handle, 3, &s->program);
}

static qdnnStatus_t add_tensor(scene *s, int which)
{
    static const char *const names[] = {"x", "y", "codes", "scale", "zero"};
    const bool is_copy = which == QDNN_OPERAND_COUNT;
    const int operand = is_copy ? QDNN_OPERAND_SCALE : which;
    const int64_t bytes = (int64_t)s->bytes[operand];
    qdnnTensorDescriptor_t shape = NULL;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&shape);
    status = status ? status : qdnnSetTensorDescriptor(shape, QDNN_DATA_U8, 1, &bytes, NULL);
    status = status ? status
                    : qdnnAddTensorToProgram(s->program, is_copy ? "copy" : names[operand],
                                             is_copy ? QDNN_PROGRAM_INTERMEDIATE : QDNN_PROGRAM_EXTERNAL,
                                             operand == QDNN_OPERAND_Y ? s->tensor : shape, 0,
                                             &s->program_tensors[which]);
    qdnnDestroyTensorDescriptor(shape);
    return status;
}

static qdnnStatus_t add_copy(scene *s, int which)
{
    (void)which;
    return qdnnAddCopyToProgram(s->program, "save", s->program_tensors[QDNN_OPERAND_COUNT],
                                s->program_tensors[QDNN_OPERAND_SCALE]);
}

static qdnnStatus_t add_fill(scene *s, int which)
{
    (void)which;
    return qdnnAddFillToProgram(s->program, NULL, s->program_tensors[QDNN_OPERAND_Y], 0xA5);
}

static qdnnStatus_t add_to_program(scene *s, int which)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    qdnnProgramBinding_t bound[QDNN_OPERAND_COUNT];
    const int count = bind(s, which, bindings);
    for (int i = 0; i < count; i++) {
        const qdnnOperand_t operand = bindings[i].operand;
        bound[i] = (qdnnProgramBinding_t){
            operand,
            s->program_tensors[operand == QDNN_OPERAND_SCALE ? (int)QDNN_OPERAND_COUNT : (int)operand], 0};
    }
    return qdnnAddPlanToProgram(s->program, "back", s->plans[which], 0, bound, count);
}

/* To a program that does not run. */
static qdnnStatus_t add_kernel(scene *s, int which)
{
    static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                               ".visible .entry nothing() { ret; }\n";
    const qdnnProgramKernel_t kernel = {.size = sizeof kernel,
                                        .source = QDNN_SOURCE_PTX,
                                        .text = text,
                                        .entry = "nothing",
                                        .grid = {1, 1, 1},
                                        .block = {1, 1, 1}};
    qdnnProgram_t program = NULL;
    (void)which;
    qdnnStatus_t status = qdnnCreateProgram(s->handle, 1, &program);
    status = status ? status : qdnnAddKernelToProgram(program, "nothing", &kernel);
    qdnnDestroyProgram(program);
    return status;
}

/* The steps of one that is fused when it is compiled, and does not run: a sum and its norm. */
static qdnnStatus_t add_sum_and_norm(qdnnProgram_t program, const qdnnPlan_t plans[2],
                                     qdnnTensorDescriptor_t shape)
{
    static const char *const names[] = {"a", "b", "sum", "y"};
    static const qdnnProgramBinding_t sum[] = {
        {QDNN_OPERAND_X, 0, 0}, {QDNN_OPERAND_B, 1, 0}, {QDNN_OPERAND_Y, 2, 0}};
    static const qdnnProgramBinding_t norm[] = {{QDNN_OPERAND_X, 2, 0}, {QDNN_OPERAND_Y, 3, 0}};
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    int number;
    for (int i = 0; i < 4 && !status; i++)
        status = qdnnAddTensorToProgram(program, names[i], QDNN_PROGRAM_EXTERNAL, shape, 0, &number);
    status = status ? status : qdnnAddPlanToProgram(program, "add", plans[0], 0, sum, 3);
    status = status ? status : qdnnAddPlanToProgram(program, "norm", plans[1], 0, norm, 2);
    return status ? status : qdnnCompileProgram(program);
}

static qdnnStatus_t fuse_program(scene *s, int which)
{
    const qdnnPointwise_t add = {
        .size = sizeof add, .kind = QDNN_POINTWISE_ADD, .second = QDNN_SECOND_TENSOR};
    const qdnnNorm_t rms = {.size = sizeof rms};
    qdnnProgramInfo_t info = {.size = sizeof info};
    qdnnTensorDescriptor_t shape = NULL;
    qdnnPlan_t plans[2] = {NULL, NULL};
    qdnnProgram_t program = NULL;
    (void)which;
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&shape);
    status =
        status ? status : qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, (const int64_t[]){2, 8}, NULL);
    status = status ? status : qdnnCreatePointwisePlan(s->handle, &add, shape, NULL, shape, NULL, &plans[0]);
    status = status ? status : qdnnCreateNormPlan(s->handle, &rms, shape, shape, NULL, &plans[1]);
    status = status ? status : qdnnCreateProgram(s->handle, 1, &program);
    status = status ? status : add_sum_and_norm(program, plans, shape);
    status = status ? status : qdnnGetProgramInfo(program, &info);
    if (!status)
        CHECK_EQ_I64(info.fused, 1);
    qdnnDestroyProgram(program);
    qdnnDestroyPlan(plans[0]);
    qdnnDestroyPlan(plans[1]);
    qdnnDestroyTensorDescriptor(shape);
    return status;
}

static qdnnStatus_t compile_program(scene *s, int which)
{
    qdnnProgramInfo_t info = {.size = sizeof info};
    (void)which;
    qdnnStatus_t status = qdnnCompileProgram(s->program);
    status = status ? status : qdnnGetProgramInfo(s->program, &info);
    s->arena_bytes = info.arenaBytes;
    return status;
}

static qdnnStatus_t allocate_arena(scene *s, int which)
{
    (void)which;
    return qdnnMalloc(s->handle, &s->arena, s->arena_bytes);
}

static qdnnStatus_t free_arena(scene *s, int which)
{
    (void)which;
    qdnnStatus_t status = qdnnFree(s->handle, s->arena);
    s->arena = status ? s->arena : NULL;
    return status;
}

static qdnnStatus_t run_program(scene *s, int which)
{
    const void *pointers[QDNN_OPERAND_COUNT + 1] = {0};
    (void)which;
    for (int i = 0; i <= QDNN_OPERAND_ZERO; i++)
        pointers[s->program_tensors[i]] = s->buffers[i];
    return qdnnRunProgram(s->handle, s->program, pointers, QDNN_OPERAND_ZERO + 2, 2, s->arena,
                          s->arena_bytes);
}

static qdnnStatus_t destroy_program(scene *s, int which)
{
    (void)which;
    qdnnStatus_t status = qdnnDestroyProgram(s->program);
    s->program = NULL;
    return status;
}

/* Mode tensor, planned and not executed: a product with experts in FP8 that quantizes x first (several
 * kernels, one of which needs more shared memory than a launch gets by default); codes to the order of tensor
 * cores and back. */
enum { PRODUCT_EXPERTS, PRODUCT_PREPACK, PRODUCT_UNPACK };

typedef struct product_scene {
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
    qdnnPlan_t plan;
} product_scene;

static qdnnStatus_t describe_product(product_scene *p, int which)
{
    const bool experts = which == PRODUCT_EXPERTS;
    const int64_t rows = 256, k = 16, w[] = {2, rows, k};
    qdnnStatus_t status = qdnnSetTensorDescriptor(p->x, QDNN_DATA_F16, 2, (const int64_t[]){rows, k}, NULL);
    status = status
                 ? status
                 : qdnnSetTensorDescriptor(p->w, QDNN_DATA_F16, experts ? 3 : 2, experts ? w : w + 1, NULL);
    status = status ? status
                    : qdnnSetTensorDescriptor(p->y, QDNN_DATA_F16, 2, (const int64_t[]){rows, rows}, NULL);
    status = status ? status : qdnnSetQuantWeights(p->quant, QDNN_WEIGHTS_F16, 0);
    status = status ? status : qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_TENSOR);
    status = status ? status
                    : qdnnSetQuantAttribute(p->quant, QDNN_QUANT_STORAGE,
                                            experts ? QDNN_DATA_F8E4M3 : QDNN_DATA_I4);
    status = status ? status : qdnnSetQuantAttribute(p->quant, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_NONE);
    if (!experts)
        return status;
    status = status ? status : qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_EXPERTS, 2);
    return status ? status : qdnnSetMatmulAttribute(p->matmul, QDNN_MATMUL_QUANTIZE_X, QDNN_DATA_F8E4M3);
}

static qdnnStatus_t plan_described(scene *s, product_scene *p, int which)
{
    switch (which) {
    case PRODUCT_PREPACK:
        return qdnnCreatePrepackPlan(s->handle, p->matmul, p->w, p->quant, &p->plan);
    case PRODUCT_UNPACK:
        return qdnnCreateUnpackPlan(s->handle, p->matmul, p->w, p->quant, &p->plan);
    default:
        return qdnnCreateMatmulPlan(s->handle, p->matmul, p->x, p->w, p->quant, p->y, &p->plan);
    }
}

static qdnnStatus_t plan_product(scene *s, int which)
{
    product_scene p = {0};
    qdnnStatus_t status = qdnnCreateMatmulDescriptor(&p.matmul);
    status = status ? status : qdnnCreateTensorDescriptor(&p.x);
    status = status ? status : qdnnCreateTensorDescriptor(&p.w);
    status = status ? status : qdnnCreateTensorDescriptor(&p.y);
    status = status ? status : qdnnCreateQuantDescriptor(&p.quant);
    status = status ? status : describe_product(&p, which);
    status = status ? status : plan_described(s, &p, which);
    qdnnDestroyPlan(p.plan);
    qdnnDestroyQuantDescriptor(p.quant);
    qdnnDestroyTensorDescriptor(p.x);
    qdnnDestroyTensorDescriptor(p.w);
    qdnnDestroyTensorDescriptor(p.y);
    qdnnDestroyMatmulDescriptor(p.matmul);
    return status;
}

static qdnnStatus_t execute(scene *s, int which)
{
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    int count = bind(s, which, bindings);
    return qdnnExecute(s->handle, s->plans[which], bindings, count, s->buffers[SCENE_WORKSPACE],
                       s->bytes[SCENE_WORKSPACE]);
}

static qdnnStatus_t one_shot(scene *s, int which)
{
    void **b = s->buffers;
    if (which == 0)
        return qdnnComputeScales(s->handle, s->tensor, b[QDNN_OPERAND_X], s->quant, b[QDNN_OPERAND_SCALE],
                                 b[QDNN_OPERAND_ZERO]);
    if (which == 1)
        return qdnnQuantize(s->handle, s->tensor, b[QDNN_OPERAND_X], s->quant, b[QDNN_OPERAND_SCALE],
                            b[QDNN_OPERAND_ZERO], b[QDNN_OPERAND_CODES]);
    return qdnnDequantize(s->handle, s->quant, b[QDNN_OPERAND_CODES], b[QDNN_OPERAND_SCALE],
                          b[QDNN_OPERAND_ZERO], s->tensor, b[QDNN_OPERAND_Y]);
}

/* A call of once.h, on whatever the scene's buffers hold: all that is read is in x, all that is written in y and codes. */
static qdnnStatus_t call_once(scene *s, int which)
{
    enum { APART = 16 };
    const once_case *c = &once_cases[which];
    const int count = once_operands(c);
    qdnnBinding_t bindings[ONCE_BINDINGS_MAX];
    char *read = s->buffers[QDNN_OPERAND_X];
    void *written = s->buffers[QDNN_OPERAND_Y];
    for (int i = 0; i < count; i++) {
        const once_operand *o = &c->operands[i];
        bindings[i] = (qdnnBinding_t){o->operand, o->data ? read : written, o->bytes};
        if (o->data)
            read += (o->bytes + APART - 1) / APART * APART;
        else
            written = s->buffers[QDNN_OPERAND_CODES];
    }
    return c->call(s->handle, NULL, bindings, count);
}

static qdnnStatus_t synchronize(scene *s, int which)
{
    (void)which;
    return qdnnSynchronize(s->handle);
}

/* which: the round in tens, the buffer in ones. */
static qdnnStatus_t to_host(scene *s, int which)
{
    int round = which / 10, buffer = which % 10;
    return qdnnCopyToHost(s->handle, s->got[round][buffer], s->buffers[buffer], s->bytes[buffer]);
}

static qdnnStatus_t destroy_plan(scene *s, int which)
{
    qdnnStatus_t status = qdnnDestroyPlan(s->plans[which]);
    s->plans[which] = NULL;
    return status;
}

static qdnnStatus_t destroy_tensor(scene *s, int which)
{
    (void)which;
    return qdnnDestroyTensorDescriptor(s->tensor);
}

static qdnnStatus_t destroy_quant(scene *s, int which)
{
    (void)which;
    return qdnnDestroyQuantDescriptor(s->quant);
}

static qdnnStatus_t destroy(scene *s, int which)
{
    (void)which;
    return qdnnDestroy(s->handle);
}

/* clang-format off */
const scene_step scene_steps[] = {
    {"qdnnCreateTensorDescriptor", create_tensor, 0, ON_HOST},
    {"qdnnSetTensorDescriptor", set_tensor, 0, ON_HOST},
    {"qdnnCreateQuantDescriptor", create_quant, 0, ON_HOST},
    {"qdnnSetQuantWeights", set_weights, QDNN_WEIGHTS_AWQ, ON_HOST},
    {"qdnnSetQuantDescriptor", set_quant, 0, ON_HOST},
    {"qdnnGetOperandSize", check_sizes, 0, ON_HOST},
    {"qdnnCreateTrainDescriptor", create_train, 0, ON_HOST},
    {"qdnnCreateIntegerDescriptor", create_integer, 0, ON_HOST},
    {"qdnnCreate", create, 0, ON_CREATE},
    {"qdnnGetDeviceInfo", device_info, 0, ON_DEVICE},
    {"qdnnSetStream", set_stream, 0, ON_DEVICE},
    {"qdnnMalloc of x", allocate, QDNN_OPERAND_X, ON_DEVICE},
    {"qdnnMalloc of y", allocate, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnMalloc of codes", allocate, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnMalloc of scales", allocate, QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnMalloc of zeros", allocate, QDNN_OPERAND_ZERO, ON_DEVICE},
    {"qdnnCopyToDevice", to_device, QDNN_OPERAND_X, ON_DEVICE},
    {"qdnnCopyOnDevice", on_device, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnFill", fill, QDNN_OPERAND_CODES, ON_DEVICE},

    {"qdnnCreateScalePlan", create_plan, 0, ON_DEVICE},
    {"qdnnCreateQuantizePlan", create_plan, 1, ON_DEVICE},
    {"qdnnCreateDequantizePlan", create_plan, 2, ON_DEVICE},
    {"qdnnCreateLsqPlan", create_train_plan, 3, ON_DEVICE},
    {"qdnnCreateIntegerMatmulPlan", create_integer_plan, 4, ON_DEVICE},
    {"qdnnCreateQuantizeKvCachePlan", create_kv_plan, 5, ON_DEVICE},
    {"qdnnCreateNormPlan", create_row_plan, 6, ON_DEVICE},
    {"qdnnCreatePointwisePlan", create_row_plan, 7, ON_DEVICE},
    {"qdnnCreateRopePlan", create_row_plan, 8, ON_DEVICE},
    {"qdnnCreateCopyPlan", create_row_plan, 9, ON_DEVICE},
    {"qdnnCreateAttentionPlan", create_row_plan, 10, ON_DEVICE},
    {"qdnnMalloc of the workspace", allocate, SCENE_WORKSPACE, ON_DEVICE},
    {"qdnnCreateMatmulPlan", plan_product, PRODUCT_EXPERTS, ON_DEVICE},
    {"qdnnCreatePrepackPlan", plan_product, PRODUCT_PREPACK, ON_DEVICE},
    {"qdnnCreateUnpackPlan", plan_product, PRODUCT_UNPACK, ON_DEVICE},
    {"qdnnCreateSchedule", create_schedule, 0, ON_DEVICE},
    {"qdnnAddToSchedule", add_to_schedule, 2, ON_DEVICE},
    {"qdnnCreateProgram", create_program, 0, ON_DEVICE},
    {"qdnnAddTensorToProgram of x", add_tensor, QDNN_OPERAND_X, ON_DEVICE},
    {"qdnnAddTensorToProgram of y", add_tensor, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnAddTensorToProgram of codes", add_tensor, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnAddTensorToProgram of scales", add_tensor, QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnAddTensorToProgram of zeros", add_tensor, QDNN_OPERAND_ZERO, ON_DEVICE},
    {"qdnnAddTensorToProgram of a copy", add_tensor, QDNN_OPERAND_COUNT, ON_DEVICE},
    {"qdnnAddCopyToProgram", add_copy, 0, ON_DEVICE},
    {"qdnnAddFillToProgram", add_fill, 0, ON_DEVICE},
    {"qdnnAddPlanToProgram", add_to_program, 2, ON_DEVICE},
    {"qdnnAddKernelToProgram", add_kernel, 0, ON_DEVICE},
    {"qdnnCompileProgram", compile_program, 0, ON_DEVICE},
    {"qdnnCompileProgram of steps that are fused", fuse_program, 0, ON_DEVICE},
    {"qdnnMalloc of the arena", allocate_arena, 0, ON_DEVICE},
    {"qdnnExecute of scales", execute, 0, ON_DEVICE},
    {"qdnnExecute of quantize", execute, 1, ON_DEVICE},
    {"qdnnExecute of dequantize", execute, 2, ON_DEVICE},
    {"qdnnExecuteSchedule", execute_schedule, 0, ON_DEVICE},
    {"qdnnRunProgram", run_program, 0, ON_DEVICE},
    {"qdnnSynchronize", synchronize, 0, ON_DEVICE},
    {"qdnnCopyToHost of scales", to_host, QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnCopyToHost of zeros", to_host, QDNN_OPERAND_ZERO, ON_DEVICE},
    {"qdnnCopyToHost of codes", to_host, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnCopyToHost of y", to_host, QDNN_OPERAND_Y, ON_DEVICE},

    {"qdnnFill of slots", fill_slots, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnExecute of a cache", execute_kv, 5, ON_DEVICE},
    {"qdnnCopyToHost of a cache's codes", kv_to_host, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnCopyToHost of a cache's scale", kv_to_host, QDNN_OPERAND_SCALE, ON_DEVICE},

    {"qdnnMatmulWith", call_once, 0, ON_DEVICE},
    {"qdnnTypedMatmulWith", call_once, 1, ON_DEVICE},
    {"qdnnIntegerMatmulWith", call_once, 2, ON_DEVICE},
    {"qdnnIntegerDotWith", call_once, 3, ON_DEVICE},
    {"qdnnIntegerTopWith", call_once, 4, ON_DEVICE},
    {"qdnnIntegerConvWith", call_once, 5, ON_DEVICE},
    {"qdnnNormWith", call_once, 6, ON_DEVICE},
    {"qdnnAttentionWith", call_once, 7, ON_DEVICE},
    {"qdnnLsqWith", call_once, 8, ON_DEVICE},
    {"qdnnLsqBackwardWith", call_once, 9, ON_DEVICE},
    {"qdnnFill of scales", fill, QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnFill of codes", fill, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnCopyOnDevice again", on_device, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnComputeScales", one_shot, 0, ON_DEVICE},
    {"qdnnQuantize", one_shot, 1, ON_DEVICE},
    {"qdnnDequantize", one_shot, 2, ON_DEVICE},
    {"qdnnCopyToHost of scales again", to_host, 10 + QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnCopyToHost of zeros again", to_host, 10 + QDNN_OPERAND_ZERO, ON_DEVICE},
    {"qdnnCopyToHost of codes again", to_host, 10 + QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnCopyToHost of y again", to_host, 10 + QDNN_OPERAND_Y, ON_DEVICE},

    {"qdnnDestroySchedule", destroy_schedule, 0, ON_HOST},
    {"qdnnDestroyProgram", destroy_program, 0, ON_HOST},
    {"qdnnDestroyPlan of scales", destroy_plan, 0, ON_HOST},
    {"qdnnDestroyPlan of quantize", destroy_plan, 1, ON_HOST},
    {"qdnnDestroyPlan of dequantize", destroy_plan, 2, ON_HOST},
    {"qdnnDestroyPlan of LSQ", destroy_plan, 3, ON_HOST},
    {"qdnnDestroyPlan of the integer product", destroy_plan, 4, ON_HOST},
    {"qdnnDestroyPlan of the cache", destroy_plan, 5, ON_HOST},
    {"qdnnDestroyPlan of the norm", destroy_plan, 6, ON_HOST},
    {"qdnnDestroyPlan of the function", destroy_plan, 7, ON_HOST},
    {"qdnnDestroyPlan of rope", destroy_plan, 8, ON_HOST},
    {"qdnnDestroyPlan of the copy", destroy_plan, 9, ON_HOST},
    {"qdnnDestroyPlan of attention", destroy_plan, 10, ON_HOST},
    {"qdnnFree of x", release, QDNN_OPERAND_X, ON_DEVICE},
    {"qdnnFree of y", release, QDNN_OPERAND_Y, ON_DEVICE},
    {"qdnnFree of codes", release, QDNN_OPERAND_CODES, ON_DEVICE},
    {"qdnnFree of scales", release, QDNN_OPERAND_SCALE, ON_DEVICE},
    {"qdnnFree of zeros", release, QDNN_OPERAND_ZERO, ON_DEVICE},
    {"qdnnFree of the workspace", release, SCENE_WORKSPACE, ON_DEVICE},
    {"qdnnFree of the arena", free_arena, 0, ON_DEVICE},
    {"qdnnDestroy", destroy, 0, ON_DESTROY},
    {"qdnnDestroyTensorDescriptor", destroy_tensor, 0, ON_HOST},
    {"qdnnDestroyQuantDescriptor", destroy_quant, 0, ON_HOST},
    {"qdnnDestroyTrainDescriptor", destroy_train, 0, ON_HOST},
    {"qdnnDestroyIntegerDescriptor", destroy_integer, 0, ON_HOST},
};
/* clang-format on */
const int scene_step_count = sizeof scene_steps / sizeof scene_steps[0];

/* ---- All of it ---- */

bool scene_run(scene *s, const scene_step *step)
{
    qdnnStatus_t status = step->run(s, step->which);
    if (status != QDNN_STATUS_SUCCESS)
        FAIL("%s, %s: %s: %s", s->kind->name, step->name, qdnnGetErrorString(status), last_sentence());
    return status == QDNN_STATUS_SUCCESS;
}

static int find_step(const char *name)
{
    for (int i = 0; i < scene_step_count; i++)
        if (strcmp(scene_steps[i].name, name) == 0)
            return i;
    abort(); /* a mistake of the test */
}

bool scene_step_run(scene *s, const char *name)
{
    return scene_run(s, &scene_steps[find_step(name)]);
}

bool scene_open(scene *s, const scene_kind *kind, const char *device)
{
    bool ok = true;
    scene_begin(s, kind, device, 11);
    for (int i = 0; i < find_step("qdnnExecute of scales") && ok; i++)
        ok = scene_run(s, &scene_steps[i]);
    return ok;
}

void scene_close(scene *s)
{
    for (int i = find_step("qdnnDestroySchedule"); i < scene_step_count; i++)
        scene_run(s, &scene_steps[i]);
    scene_end(s);
}

static const qdnnOperand_t results[] = {QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_CODES,
                                        QDNN_OPERAND_Y};
enum { RESULTS = sizeof results / sizeof results[0] };

void scene_compare(const scene *s)
{
    for (int round = 0; round < SCENE_ROUNDS; round++)
        for (int i = 0; i < RESULTS; i++) {
            test_push_note("%s, round %d, operand %d", s->kind->name, round, (int)results[i]);
            CHECK_EQ_MEM(s->got[round][results[i]], s->expected[results[i]], s->bytes[results[i]]);
            test_pop_note();
        }
    CHECK_EQ_MEM(s->kv_got, s->kv_expected, sizeof s->kv_got);
}

void scene_play(const scene_kind *kind, const char *device, uint32_t seed)
{
    scene s;
    scene_begin(&s, kind, device, seed);
    bool ok = true;
    for (int i = 0; i < scene_step_count && ok; i++)
        ok = scene_run(&s, &scene_steps[i]);
    if (ok)
        scene_compare(&s);
    scene_end(&s);
}

bool scene_plays(const scene_kind *kind, const char *device, uint32_t seed)
{
    scene s;
    scene_begin(&s, kind, device, seed);
    bool ok = true;
    for (int i = 0; i < scene_step_count; i++)
        ok = scene_steps[i].run(&s, scene_steps[i].which) == QDNN_STATUS_SUCCESS && ok;
    for (int round = 0; round < SCENE_ROUNDS; round++)
        for (int i = 0; i < RESULTS; i++)
            ok = ok && memcmp(s.got[round][results[i]], s.expected[results[i]], s.bytes[results[i]]) == 0;
    ok = ok && memcmp(s.kv_got, s.kv_expected, sizeof s.kv_got) == 0;
    scene_end(&s);
    return ok;
}
