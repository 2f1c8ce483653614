/* qdnnEmitPtx: its results and its errors. */
#include "test.h"

#include <qdnn/emit.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void check_refused(const char *kernel, const char *sm, const char *setting, qdnnStatus_t status,
                          const char *why)
{
    const char *settings[] = {setting, NULL};
    qdnnPtx_t out;
    memset(&out, 0xA5, sizeof out);
    qdnnPtx_t before = out;
    CHECK_EQ_I64(qdnnEmitPtx(kernel, sm, settings, &out), status);
    CHECK_EQ_MEM(&out, &before, sizeof out);
    char text[512];
    qdnnGetLastErrorString(text, sizeof text);
    CHECK_EQ_STR(text, why);
}

TEST_CASE(EmitPtx, GivesTheTextAndItsGeometry)
{
    const char *settings[] = {"data=f16", "group_size=64", NULL};
    qdnnPtx_t out;
    REQUIRE(qdnnEmitPtx("scale_nf4", "90", settings, &out) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_STR(out.entry, "qdnn_scale_nf4");
    CHECK_EQ_I64(out.blockThreads, 256);
    CHECK_EQ_I64((int64_t)out.elementsPerBlock,
                 32 * 64); /* 8 lanes of 8 elements read a group: 32 groups per block */
    CHECK_HAS(out.ptx, ".target sm_90\n");
    CHECK_HAS(out.ptx, ".visible .entry qdnn_scale_nf4(");
    qdnnFreePtx(&out);
    CHECK(out.ptx == NULL);
    qdnnFreePtx(&out);
    qdnnFreePtx(NULL);
}

/* The text demands the number of threads that the description gives, for every name. */
TEST_CASE(EmitPtx, BlocksAreTheOnesThatTheTextDemands)
{
    int n = 0;
    for (const char *name; (name = qdnnGetOperationName(n)) != NULL; n++) {
        qdnnPtx_t out;
        test_push_note("%s", name);
        REQUIRE(qdnnEmitPtx(name, "sm_90", NULL, &out) == QDNN_STATUS_SUCCESS);
        const char *at = strstr(out.ptx, ".reqntid ");
        if (CHECK(at != NULL))
            CHECK_EQ_U64(out.blockThreads, strtoul(at + 9, NULL, 10));
        qdnnFreePtx(&out);
        test_pop_note();
    }
    CHECK(n > 200);
}

TEST_CASE(EmitPtx, RefusesWithASentence)
{
    check_refused(NULL, "90", NULL, QDNN_STATUS_BAD_PARAM_NULL_POINTER, "kernel is null; it must not be");
    check_refused("scale_nf4", NULL, NULL, QDNN_STATUS_BAD_PARAM_NULL_POINTER, "sm is null; it must not be");
    check_refused("scale_nf5", "90", NULL, QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                  "unknown kernel 'scale_nf5'; ptxgen --list names them");
    check_refused("scale_nf4", "sm_91", NULL, QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
                  "sm is 'sm_91', which is not a known target (sm_90 is one)");
    check_refused("scale_nf4", "90", "data", QDNN_STATUS_BAD_PARAM,
                  "settings: 'data' is not of the form key=value");
    check_refused("scale_nf4", "90", "data=f8", QDNN_STATUS_BAD_PARAM,
                  "settings: data=f8: it must be f32, f16, bf16, f64");
    check_refused(
        "scale_nf4", "90", "zero=u8", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
        "settings: scale_nf4 has no setting 'zero'; it takes data, scale, group_size, channels, groups, "
        "group_rows, layout, division, floor, scale_order, scale_swizzle, global_scale, nested, group_index");
    CHECK_EQ_I64(qdnnEmitPtx("scale_nf4", "90", NULL, NULL), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    check_refused(
        "quant.linear_4bit", "90", "layout=words", QDNN_STATUS_BAD_PARAM,
        "settings: layout=words: quant.linear_4bit fixes layout=interleaved; fix: leave it out, or name the "
        "kernel matmul_int4");
    check_refused(
        "quant.linear_4bit", "90", "reduction=row", QDNN_STATUS_BAD_PARAM,
        "settings: reduction=row: quant.linear_4bit fixes reduction=rows; fix: leave it out, or name the "
        "kernel matmul_int4");
    const char *allowed[] = {"layout=interleaved", "data=f16", NULL};
    qdnnPtx_t out;
    if (CHECK(qdnnEmitPtx("quant.linear_4bit", "90", allowed, &out) == QDNN_STATUS_SUCCESS))
        qdnnFreePtx(&out);
}

/* Three launches, worked out by hand: 8 groups of 128, of which the last has 105 elements. */
TEST_CASE(EmitOperation, GivesEveryLaunch)
{
    const char *const sizes[] = {"n=1001", NULL};
    qdnnEmitted_t *e = NULL;
    REQUIRE(qdnnEmitOperation("train.fake_quantize", "sm_80", NULL, sizes, &e) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_STR(e->operation, "train.fake_quantize");
    CHECK_EQ_U64(e->workspaceBytes, 64); /* 8 of absmax, 8 scales */
    REQUIRE(e->launchCount == 3 && e->operandCount == 2);
    CHECK_EQ_STR(e->operands[0].name, "x");
    CHECK_EQ_U64(e->operands[0].bytes, 4004);
    CHECK(e->operands[1].operand == QDNN_OPERAND_Y && e->operands[1].writes && !e->operands[1].reads);
    CHECK_EQ_STR(e->launches[0].entry, "qdnn_scale_nf4");
    CHECK_EQ_STR(e->launches[0].gridRule[0], "ceil(n / 1024)");
    CHECK_EQ_U64(e->launches[0].grid[0], 1);
    CHECK_HAS(e->launches[1].ptx, ".visible .entry qdnn_train_scale(");
    const qdnnArgument_t *a = e->launches[1].arguments;
    CHECK_EQ_I64(e->launches[1].argumentCount, 3);
    CHECK(a[0].kind == QDNN_ARGUMENT_WORKSPACE && a[0].value == 0);
    CHECK(a[1].kind == QDNN_ARGUMENT_WORKSPACE && a[1].value == 32);
    CHECK(a[2].kind == QDNN_ARGUMENT_U64 && a[2].value == 8);
    CHECK_EQ_U64(e->launches[2].blockThreads, 256);
    CHECK(e->launches[2].arguments[0].kind == QDNN_ARGUMENT_OPERAND &&
          e->launches[2].arguments[0].operand == QDNN_OPERAND_X);
    qdnnFreeEmitted(e);
}

TEST_CASE(EmitOperation, NothingToDoAndErrors)
{
    static const struct {
        const char *operation, *setting, *size;
        qdnnStatus_t status;
        const char *why;
    } calls[] = {
        {"train.fake_quantise", NULL, "n=8", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
         "unknown kernel 'train.fake_quantise'"},
        {"train.fake_quantize", NULL, "n", QDNN_STATUS_BAD_PARAM, "sizes: 'n' is not of the form key=value"},
        {"train.fake_quantize", NULL, "k=8", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "sizes: unknown size 'k'"},
        {"train.fake_quantize", NULL, "n=x", QDNN_STATUS_BAD_PARAM, "sizes: n=x: it must be 0 to 2^40"},
        {"quant.linear_4bit", "code=twos", "m=1", QDNN_STATUS_BAD_PARAM,
         "quant.linear_4bit fixes code=unsigned"},
        {"quant.gguf_q4_k.matmul", NULL, "columns=255", QDNN_STATUS_NOT_SUPPORTED,
         "it must be a multiple of 256"},
        {"quant.int8.qconv2d", NULL, "channels=0", QDNN_STATUS_NOT_SUPPORTED, "channels is 0"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *const settings[] = {calls[i].setting, NULL}, *const sizes[] = {calls[i].size, NULL};
        qdnnEmitted_t *e = NULL;
        char text[512];
        test_push_note("%s %s", calls[i].operation, calls[i].size);
        CHECK_EQ_I64(qdnnEmitOperation(calls[i].operation, "90", settings, sizes, &e), calls[i].status);
        CHECK(!e);
        qdnnGetLastErrorString(text, sizeof text);
        CHECK_HAS(text, calls[i].why);
        test_pop_note();
    }
    const char *const none[] = {"n=0", NULL};
    qdnnEmitted_t *e = NULL;
    REQUIRE(qdnnEmitOperation("train.lsq", "90", NULL, none, &e) == QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(e->launchCount, 0);
    qdnnFreeEmitted(e);
}

/* The message is cut to the buffer, and a buffer of no size is left alone. */
TEST_CASE(EmitPtx, ErrorTextFitsTheBuffer)
{
    char text[8] = "before";
    qdnnEmitPtx(NULL, NULL, NULL, NULL);
    qdnnGetLastErrorString(text, 0);
    CHECK_EQ_STR(text, "before");
    qdnnGetLastErrorString(text, sizeof text);
    CHECK_EQ_STR(text, "kernel ");
    qdnnGetLastErrorString(NULL, 10);
}

static void *emit_many(void *argument)
{
    char **text = argument;
    for (int i = 0; i < 50; i++) {
        qdnnPtx_t out;
        if (qdnnEmitPtx("quantize_nf4", "sm_80", NULL, &out) != QDNN_STATUS_SUCCESS)
            return NULL;
        free(*text);
        *text = out.ptx;
    }
    return NULL;
}

TEST_CASE(EmitPtx, ManyThreadsGetTheSameBytes)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    char *texts[THREADS] = {NULL};
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, emit_many, &texts[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_STR(texts[i], texts[0]);
        CHECK(texts[i] != NULL);
    }
    for (int i = 0; i < THREADS; i++)
        free(texts[i]);
}
