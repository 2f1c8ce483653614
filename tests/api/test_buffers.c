/* How large buffers must be: sizes by operand, bindings that say how many bytes they have, and QDNN_CHECK_BUFFERS, which
 * asks the driver. */
#include <string.h>

#include "scene.h"

/* ---- Sizes by operand ---- */

static const struct {
    const char *name;
    qdnnWeights_t weights;
    int64_t extent, rows, columns;
    size_t bytes[QDNN_OPERAND_COUNT]; /* x, y, codes, scale, zero, global, index, map, nested scale, offset */
} sized[] = {
    {"int4", QDNN_WEIGHTS_INT4_BYTES, 32, 1, 129, {516, 516, 65, 20}},
    {"int4_zp", QDNN_WEIGHTS_INT4_BYTES_ZP, 32, 1, 128, {512, 512, 64, 16, 4}},
    {"nf4", QDNN_WEIGHTS_NF4_BYTES, 0, 2, 64, {512, 512, 64, 8}},
    {"fp8 of a tensor", QDNN_WEIGHTS_FP8_E4M3, 0, 3, 7, {84, 84, 21, 4}},
    {"fp8 by columns", QDNN_WEIGHTS_FP8_E5M2_COLUMNS, 0, 3, 7, {84, 84, 21, 28}},
    {"bnb nested",
     QDNN_WEIGHTS_BNB_NF4_NESTED,
     64,
     10,
     4096,
     {163840, 163840, 20480, 640, 0, 0, 0, 1024, 12, 4}},
    {"nvfp4", QDNN_WEIGHTS_MODELOPT_NVFP4, 0, 2, 32, {256, 256, 32, 4, 0, 4}},
    {"mxfp6", QDNN_WEIGHTS_MXFP6_E2M3, 0, 2, 64, {512, 512, 96, 4}},
    {"empty", QDNN_WEIGHTS_INT4_BYTES_ZP, 0, 0, 8, {0}},
};

TEST_ROWS(ApiBuffers, SizesByOperand, sized)
{
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    size_t codes = 1, scale = 1, zero = 1;
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, (int64_t[]){sized[index].rows, sized[index].columns},
                               NULL));
    OK(qdnnSetQuantWeights(q, sized[index].weights, sized[index].extent));
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        size_t bytes = 77;
        test_push_note("operand %d", i);
        OK(qdnnGetOperandSize(q, t, (qdnnOperand_t)i, &bytes));
        CHECK_EQ_U64(bytes, sized[index].bytes[i]);
        test_pop_note();
    }
    OK(qdnnGetQuantizedSizes(q, t, &codes, &scale, &zero));
    CHECK_EQ_U64(codes, sized[index].bytes[QDNN_OPERAND_CODES]);
    CHECK_EQ_U64(scale, sized[index].bytes[QDNN_OPERAND_SCALE]);
    CHECK_EQ_U64(zero, sized[index].bytes[QDNN_OPERAND_ZERO]);
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
}

TEST_CASE(ApiBuffers, OperandsThatThereAreNot)
{
    static const int none[] = {-1, QDNN_OPERAND_COUNT, INT32_MAX, INT32_MIN};
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 1, (const int64_t[]){1}, NULL));
    OK(qdnnCreateQuantDescriptor(&q));
    for (int i = 0; i < 4; i++) {
        size_t bytes = 77;
        CHECK_STATUS_IS(qdnnGetOperandSize(q, t, (qdnnOperand_t)none[i], &bytes),
                        QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        char part[32];
        snprintf(part, sizeof part, "it must be 0 to %d", QDNN_OPERAND_COUNT - 1);
        CHECK_HAS(last_sentence(), part);
        CHECK_EQ_U64(bytes, 77);
    }
    OK(qdnnDestroyTensorDescriptor(t));
    OK(qdnnDestroyQuantDescriptor(q));
}

/* ---- Bindings with sizes ---- */

enum { OPERANDS = 4 };
static const qdnnOperand_t of_quantize[OPERANDS] = {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO,
                                                    QDNN_OPERAND_CODES};
static const char *const names[OPERANDS] = {"QDNN_OPERAND_X", "QDNN_OPERAND_SCALE", "QDNN_OPERAND_ZERO",
                                            "QDNN_OPERAND_CODES"};
static const char *const arguments[OPERANDS] = {"x", "scale", "zero", "codes"};

static void bind_all(const scene *s, qdnnBinding_t *bound)
{
    for (int i = 0; i < OPERANDS; i++)
        bound[i] = (qdnnBinding_t){of_quantize[i], s->buffers[of_quantize[i]], s->bytes[of_quantize[i]]};
}

/* x holds data, so that it can be quantized. */
static bool open_scene(scene *s, const char *settings)
{
    vm_begin(settings);
    return scene_open(s, &scene_kinds[SCENE_ZERO_POINT], NULL) && scene_step_run(s, "qdnnComputeScales");
}

static void close_scene(scene *s)
{
    scene_close(s);
    vm_end();
}

static qdnnStatus_t execute(const scene *s, const qdnnBinding_t *bound)
{
    return qdnnExecute(s->handle, s->plans[1], bound, OPERANDS, s->buffers[SCENE_WORKSPACE],
                       s->bytes[SCENE_WORKSPACE]);
}

TEST_CASE(ApiBuffers, BindingsThatAreTooSmall)
{
    NEED_PTXVM;
    scene s;
    REQUIRE(open_scene(&s, NULL));
    for (int i = 0; i < OPERANDS; i++) {
        qdnnBinding_t bound[OPERANDS];
        char part[128];
        size_t needed = s.bytes[of_quantize[i]];
        test_push_note("%s", names[i]);
        bind_all(&s, bound);
        bound[i].bytes = needed - 1;
        CHECK_STATUS_IS(execute(&s, bound), QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        snprintf(part, sizeof part, "bindings[%d].bytes is %zu; %s of quant.int4_zp.quantize has %zu bytes",
                 i, needed - 1, names[i], needed);
        CHECK_EQ_STR(last_sentence(), part);
        bound[i].bytes = needed + 1;
        OK(execute(&s, bound));
        bound[i].bytes = 0;
        OK(execute(&s, bound));
        test_pop_note();
    }
    close_scene(&s);
}

/* ---- One-shot calls with bindings ---- */

typedef qdnnStatus_t with_bindings(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor,
                                   qdnnQuantDescriptor_t quant, const qdnnBinding_t *bindings, int count);

static const struct {
    const char *name;
    with_bindings *run;
    qdnnOperand_t operands[OPERANDS];
    int count;
} bound_calls[] = {
    {"scales", qdnnComputeScalesWith, {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO}, 3},
    {"quantize",
     qdnnQuantizeWith,
     {QDNN_OPERAND_X, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_CODES},
     4},
    {"dequantize",
     qdnnDequantizeWith,
     {QDNN_OPERAND_CODES, QDNN_OPERAND_SCALE, QDNN_OPERAND_ZERO, QDNN_OPERAND_Y},
     4},
};

TEST_ROWS(ApiBuffers, OneShotCallsWithSizes, bound_calls)
{
    NEED_PTXVM;
    scene s;
    qdnnBinding_t bound[OPERANDS];
    const int count = bound_calls[index].count;
    REQUIRE(open_scene(&s, NULL));
    OK(qdnnQuantizeWith(s.handle, s.tensor, s.quant, (bind_all(&s, bound), bound), OPERANDS));
    for (int i = 0; i < count; i++) {
        const qdnnOperand_t operand = bound_calls[index].operands[i];
        bound[i] = (qdnnBinding_t){operand, s.buffers[operand], s.bytes[operand]};
    }
    for (int i = 0; i < count; i++) {
        const size_t needed = bound[i].bytes;
        char part[64];
        bound[i].bytes = needed - 1;
        CHECK_STATUS_IS(bound_calls[index].run(s.handle, s.tensor, s.quant, bound, count),
                        QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        snprintf(part, sizeof part, "bindings[%d].bytes is %zu", i, needed - 1);
        CHECK_HAS(last_sentence(), part);
        bound[i].bytes = needed;
    }
    OK(bound_calls[index].run(s.handle, s.tensor, s.quant, bound, count)); /* the handle is alive */
    OK(qdnnSynchronize(s.handle));
    CHECK_STATUS_IS(bound_calls[index].run(s.handle, s.tensor, s.quant, bound, count - 1),
                    QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "is missing");
    CHECK_STATUS_IS(bound_calls[index].run(s.handle, s.tensor, s.quant, NULL, 1),
                    QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_STATUS_IS(bound_calls[index].run(NULL, s.tensor, s.quant, bound, count),
                    QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_STATUS_IS(bound_calls[index].run(s.handle, NULL, s.quant, bound, count),
                    QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_STATUS_IS(bound_calls[index].run(s.handle, s.tensor, NULL, bound, count),
                    QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    close_scene(&s);
}

/* ---- QDNN_CHECK_BUFFERS ---- */

/* Buffers that touch do not overlap, in either order. */
TEST_CASE(ApiBuffers, CheckedBuffersMayBeAdjacent)
{
    NEED_PTXVM;
    scene s;
    REQUIRE(open_scene(&s, "QDNN_CHECK_BUFFERS=1"));
    for (int reversed = 0; reversed < 2; reversed++) {
        qdnnBinding_t bound[OPERANDS];
        char *all = NULL;
        bind_all(&s, bound);
        /* Codes follow x without a gap, or x follows codes that a multiple of 4 bytes precedes. */
        const size_t x = bound[0].bytes, codes = bound[3].bytes, pad = reversed ? (4 - codes % 4) % 4 : 0;
        OK(qdnnMalloc(s.handle, (void **)&all, x + codes + pad));
        bound[0].pointer = reversed ? all + pad + codes : all;
        bound[3].pointer = reversed ? all + pad : all + x;
        OK(qdnnFill(s.handle, all, 0, x + codes + pad));
        OK(execute(&s, bound));
        bound[3].pointer = reversed ? all + pad + 1 : all + x - 1; /* one byte of both */
        CHECK_STATUS_IS(execute(&s, bound), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(), "overlap");
        OK(qdnnFree(s.handle, all));
    }
    close_scene(&s);
}

static qdnnStatus_t one_shot(const scene *s, const qdnnBinding_t *b)
{
    return qdnnQuantize(s->handle, s->tensor, b[0].pointer, s->quant, b[1].pointer, b[2].pointer,
                        (void *)b[3].pointer);
}

/* Refused by both ways of calling, each with its own name for the buffer; and nothing was launched. */
static void check_buffer(const scene *s, const qdnnBinding_t *bound, int which, qdnnStatus_t status,
                         const char *part)
{
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s%s", names[which], part);
    CHECK_STATUS_IS(execute(s, bound), status);
    CHECK_HAS(last_sentence(), sentence);
    snprintf(sentence, sizeof sentence, "%s%s", arguments[which], part);
    CHECK_STATUS_IS(one_shot(s, bound), status);
    CHECK(strncmp(last_sentence(), arguments[which], strlen(arguments[which])) == 0);
    CHECK_HAS(last_sentence(), sentence);
}

TEST_CASE(ApiBuffers, CheckedBuffersMustBeOfTheDevice)
{
    NEED_PTXVM;
    static double host[512];
    scene s;
    REQUIRE(open_scene(&s, "QDNN_CHECK_BUFFERS=1 PTXVM_CHECK=all"));
    for (int i = 0; i < OPERANDS; i++) {
        qdnnBinding_t bound[OPERANDS];
        char part[128];
        bind_all(&s, bound);
        bound[i].pointer = host;
        snprintf(part, sizeof part, " is 0x%llx, which is not device memory that the driver knows",
                 (unsigned long long)(uintptr_t)host);
        check_buffer(&s, bound, i, QDNN_STATUS_BAD_PARAM, part);
        CHECK_HAS(last_sentence(), "allocate it with qdnnMalloc or cuMemAlloc");
    }
    OK(qdnnSynchronize(s.handle)); /* and the handle lives */
    close_scene(&s);
}

TEST_CASE(ApiBuffers, CheckedBuffersMustBeLongEnough)
{
    NEED_PTXVM;
    scene s;
    REQUIRE(open_scene(&s, "QDNN_CHECK_BUFFERS=1 PTXVM_CHECK=all"));
    for (int i = 0; i < OPERANDS; i++) {
        qdnnBinding_t bound[OPERANDS];
        void *shorter = NULL;
        char part[128];
        size_t needed = s.bytes[of_quantize[i]];
        bind_all(&s, bound);
        OK(qdnnMalloc(s.handle, &shorter, needed - 1));
        bound[i].pointer = shorter; /* whatever size the binding claims */
        snprintf(part, sizeof part,
                 " is 0x%llx, with %zu bytes to the end of its allocation; quant.int4_zp.quantize needs %zu",
                 (unsigned long long)(uintptr_t)shorter, needed - 1, needed);
        check_buffer(&s, bound, i, QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, part);
        OK(qdnnFree(s.handle, shorter));
        check_buffer(&s, bound, i, QDNN_STATUS_BAD_PARAM, " is 0x"); /* freed */
    }
    close_scene(&s);
}

TEST_CASE(ApiBuffers, CheckedBuffersMustNotOverlap)
{
    NEED_PTXVM;
    scene s;
    void *large = NULL;
    REQUIRE(open_scene(&s, "QDNN_CHECK_BUFFERS=1 PTXVM_CHECK=all"));
    OK(qdnnMalloc(s.handle, &large, 4096));
    OK(qdnnFill(s.handle, large, 0, 4096));
    for (int i = 1; i < OPERANDS; i++) {
        qdnnBinding_t bound[OPERANDS];
        char part[128];
        size_t x = s.bytes[QDNN_OPERAND_X], aligned = (x + 15) / 16 * 16;
        bind_all(&s, bound);
        bound[0].pointer = large;
        bound[i].pointer = (char *)large + aligned - 16; /* its last elements */
        snprintf(part, sizeof part, " (0x%llx, %zu bytes) and ", (unsigned long long)(uintptr_t)large, x);
        check_buffer(&s, bound, 0, QDNN_STATUS_BAD_PARAM, part);
        CHECK_HAS(last_sentence(), arguments[i]);
        CHECK_HAS(last_sentence(), "overlap; give each a buffer of its own");
        bound[i].pointer = (char *)large + aligned; /* right behind it */
        OK(execute(&s, bound));
        OK(one_shot(&s, bound));
    }
    OK(qdnnFree(s.handle, large));
    close_scene(&s);
}

/* The workspace is a buffer too. */
TEST_CASE(ApiBuffers, CheckedWorkspaces)
{
    NEED_PTXVM;
    scene s;
    vm_begin("QDNN_CHECK_BUFFERS=1");
    REQUIRE(scene_open(&s, &scene_kinds[SCENE_TENSOR], NULL));
    void *x = s.buffers[QDNN_OPERAND_X], *small = NULL;
    size_t needed = s.bytes[SCENE_WORKSPACE];
    OK(qdnnMalloc(s.handle, &small, needed - 4));
    const qdnnBinding_t bound[] = {{QDNN_OPERAND_X, x, 0},
                                   {QDNN_OPERAND_SCALE, s.buffers[QDNN_OPERAND_SCALE], 0}};
    CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, x, needed), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "QDNN_OPERAND_X (0x");
    CHECK_HAS(last_sentence(), "and workspace (0x");
    CHECK_STATUS_IS(qdnnExecute(s.handle, s.plans[0], bound, 2, small, needed),
                    QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    CHECK_HAS(last_sentence(), "workspace is 0x");
    OK(qdnnExecute(s.handle, s.plans[0], bound, 2, s.buffers[SCENE_WORKSPACE], needed));
    OK(qdnnFree(s.handle, small));
    scene_close(&s);
    vm_end();
}

/* Whole scenes give the same bits with the checks. */
TEST_CASE(ApiBuffers, CheckedScenesPlay)
{
    NEED_PTXVM;
    vm_begin("QDNN_CHECK_BUFFERS=1 PTXVM_CHECK=all");
    for (int i = 0; i < scene_kind_count(); i++)
        scene_play(&scene_kinds[i], NULL, 5);
    vm_end();
}

static const struct {
    const char *name;
    bool checks;
} settings[] = {
    {"QDNN_CHECK_BUFFERS=", false}, {"QDNN_CHECK_BUFFERS=0", false}, {"QDNN_CHECK_BUFFERS=1", true}};

/* It is off unless it is asked for: a kernel may read what lies behind a buffer of another. */
TEST_CASE(ApiBuffers, ChecksAreAskedFor)
{
    NEED_PTXVM;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        scene s;
        qdnnBinding_t bound[OPERANDS];
        test_push_note("%s", settings[i].name);
        REQUIRE(open_scene(&s, settings[i].name));
        bind_all(&s, bound);
        bound[1].pointer = bound[0].pointer;
        CHECK_STATUS_IS(execute(&s, bound), settings[i].checks ? QDNN_STATUS_BAD_PARAM : QDNN_STATUS_SUCCESS);
        close_scene(&s);
        test_pop_note();
    }
}

/* ---- Copies ---- */

static char copied[1024];

static qdnnStatus_t to_device(qdnnHandle_t h, void *device, void *other, size_t bytes)
{
    (void)other;
    return qdnnCopyToDevice(h, device, copied, bytes);
}

static qdnnStatus_t to_host(qdnnHandle_t h, void *device, void *other, size_t bytes)
{
    (void)other;
    return qdnnCopyToHost(h, copied, device, bytes);
}

static qdnnStatus_t onto(qdnnHandle_t h, void *device, void *other, size_t bytes)
{
    return qdnnCopyOnDevice(h, device, other, bytes);
}

static qdnnStatus_t from(qdnnHandle_t h, void *device, void *other, size_t bytes)
{
    return qdnnCopyOnDevice(h, other, device, bytes);
}

static qdnnStatus_t fill(qdnnHandle_t h, void *device, void *other, size_t bytes)
{
    (void)other;
    return qdnnFill(h, device, 1, bytes);
}

static const struct {
    const char *name;
    qdnnStatus_t (*copy)(qdnnHandle_t h, void *device, void *other, size_t bytes);
    const char *argument;
} copies[] = {{"ToDevice", to_device, "device"},
              {"ToHost", to_host, "device"},
              {"OnDeviceTo", onto, "to"},
              {"OnDeviceFrom", from, "from"},
              {"Fill", fill, "device"}};

/* One byte too many, from the start of an allocation and from within it, and what is no device memory: the error names the argument, the
 * bytes that are left and what to do. The handle lives, and a copy of all that is left succeeds. */
TEST_ROWS(ApiBuffers, CopiesBeyondTheirAllocation, copies)
{
    NEED_PTXVM;
    enum { BYTES = 100, INSIDE = 60, OTHER = 500 };
    static char host[OTHER];
    qdnnHandle_t h = NULL;
    void *device = NULL, *other = NULL;
    char part[256];
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&h));
    OK(qdnnMalloc(h, &device, BYTES));
    OK(qdnnMalloc(h, &other, OTHER));
    OK(qdnnFill(h, device, 0, BYTES));
    OK(qdnnFill(h, other, 0, OTHER));
    for (size_t at = 0; at < BYTES; at += INSIDE) {
        void *here = (char *)device + at;
        const size_t left = BYTES - at;
        snprintf(
            part, sizeof part,
            "%s is %p, with %zu bytes to the end of its allocation; this call needs %zu: pass at most %zu",
            copies[index].argument, here, left, left + 1, left);
        CHECK_STATUS_IS(copies[index].copy(h, here, other, left + 1),
                        QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        CHECK_HAS(last_sentence(), part);
        OK(copies[index].copy(h, here, other, left));
    }
    snprintf(part, sizeof part, "%s is %p, which is not device memory", copies[index].argument, (void *)host);
    CHECK_STATUS_IS(copies[index].copy(h, host, other, 1), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), part);
    CHECK_HAS(last_sentence(), "qdnnMalloc");
    OK(qdnnFree(h, device));
    OK(qdnnFree(h, other));
    OK(qdnnSynchronize(h));
    OK(qdnnDestroy(h));
    vm_end();
}

/* ---- Calls without an argument for it ---- */

TEST_CASE(ApiBuffers, OneShotCallsWithoutTheArgument)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    void *d = NULL;
    vm_begin(NULL);
    REQUIRE(basics_create(&handle, &t, &q));
    OK(qdnnMalloc(handle, &d, 4096));
    OK(qdnnSetTensorDescriptor(t, QDNN_DATA_F32, 2, (int64_t[]){2, 64}, NULL));
    OK(qdnnSetQuantWeights(q, QDNN_WEIGHTS_BNB_NF4_NESTED, 0));
    CHECK_STATUS_IS(qdnnDequantize(handle, q, d, (char *)d + 256, NULL, t, (char *)d + 512),
                    QDNN_STATUS_BAD_PARAM);
    CHECK_EQ_STR(last_sentence(),
                 "quant.nf4.dequantize needs QDNN_OPERAND_NESTED_MAP, for which this call has no "
                 "argument; create a plan and bind it with qdnnExecute");
    /* no scales at all: null is right, anything else is not */
    OK(qdnnSetQuantDescriptor(q, QDNN_DATA_I8, QDNN_GRANULARITY_NONE, 0));
    OK(qdnnFill(handle, d, 3, 4096));
    OK(qdnnDequantize(handle, q, d, NULL, NULL, t, (char *)d + 512));
    CHECK_STATUS_IS(qdnnDequantize(handle, q, d, (char *)d + 256, NULL, t, (char *)d + 512),
                    QDNN_STATUS_BAD_PARAM);
    CHECK_EQ_STR(last_sentence(),
                 "scale is given, but quant.int8.dequantize does not take it; it must be null");
    OK(qdnnFree(handle, d));
    basics_destroy(handle, t, q);
    vm_end();
}
