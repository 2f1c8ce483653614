/* One call in place of several: the results of a plan, buffers of any size checked, a plan kept for nothing but its own call. */
#include <stdio.h>
#include <string.h>

#include "driver/api/handle.h"
#include "once_cases.h"
#include "scene.h"

enum { ROOM = 64 };

/* The operands of a case on the device; what is read is copied there, what is written filled. */
typedef struct buffers {
    qdnnHandle_t handle;
    const once_case *c;
    int count;
    void *at[ONCE_BINDINGS_MAX];
    qdnnBinding_t bindings[ONCE_BINDINGS_MAX];
    uint8_t got[ONCE_BINDINGS_MAX][ROOM];
} buffers;

static bool prepare(buffers *b)
{
    bool ok = true;
    for (int i = 0; i < b->count; i++) {
        const once_operand *o = &b->c->operands[i];
        ok = ok && (b->at[i] || OK(qdnnMalloc(b->handle, &b->at[i], o->bytes)));
        ok = ok && (o->data ? OK(qdnnCopyToDevice(b->handle, b->at[i], o->data, o->bytes))
                            : OK(qdnnFill(b->handle, b->at[i], 0xA5, o->bytes)));
        b->bindings[i] = (qdnnBinding_t){o->operand, b->at[i], o->bytes};
    }
    return ok;
}

static void read_back(buffers *b)
{
    memset(b->got, 0, sizeof b->got);
    for (int i = 0; i < b->count; i++)
        OK(qdnnCopyToHost(b->handle, b->got[i], b->at[i], b->c->operands[i].bytes));
}

static void release(buffers *b)
{
    for (int i = 0; i < b->count; i++)
        OK(qdnnFree(b->handle, b->at[i]));
}

static int first_written(const buffers *b)
{
    int i = 0;
    while (b->c->operands[i].data)
        i++;
    return i;
}

static void name_of_case(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", once_cases[index].name);
}

static bool begin(buffers *b, int index)
{
    vm_begin(NULL);
    *b = (buffers){.c = &once_cases[index], .count = once_operands(&once_cases[index])};
    return OK(qdnnCreate(&b->handle)) && prepare(b);
}

static void end(buffers *b)
{
    release(b);
    OK(qdnnDestroy(b->handle));
    vm_end();
}

static int count_of_cases(void)
{
    return once_case_count;
}

TEST_EACH(ApiOnce, GivesTheBitsOfAPlan, count_of_cases, name_of_case)
{
    NEED_PTXVM;
    buffers b, planned;
    qdnnPlan_t plan = NULL;
    REQUIRE(begin(&b, index));
    for (int round = 0; round < 2; round++) {
        REQUIRE(prepare(&b));
        OK(b.c->call(b.handle, NULL, b.bindings, b.count));
        CHECK_EQ_I64(b.handle->n_kept, 1);
        CHECK_EQ_I64(b.handle->plans, 0);
    }
    read_back(&b);
    const int written = first_written(&b);
    CHECK_EQ_MEM(b.got[written], b.c->expected, b.c->operands[written].bytes);
    planned = b;
    REQUIRE(prepare(&planned));
    OK(b.c->call(b.handle, &plan, NULL, 0));
    void *workspace = NULL;
    size_t bytes = 0;
    OK(qdnnGetPlanWorkspaceSize(plan, &bytes));
    OK(qdnnMalloc(b.handle, &workspace, bytes));
    OK(qdnnExecute(b.handle, plan, planned.bindings, planned.count, workspace, bytes));
    read_back(&planned);
    CHECK_EQ_MEM(b.got, planned.got, sizeof b.got);
    OK(qdnnFree(b.handle, workspace));
    OK(qdnnDestroyPlan(plan));
    end(&b);
}

/* One byte less of any operand, and an operand that is missing. */
TEST_EACH(ApiOnce, RefusesWhatIsTooShort, count_of_cases, name_of_case)
{
    NEED_PTXVM;
    buffers b;
    REQUIRE(begin(&b, index));
    const int written = first_written(&b);
    for (int i = 0; i < b.count; i++) {
        b.bindings[i].bytes--;
        CHECK_STATUS_IS(b.c->call(b.handle, NULL, b.bindings, b.count),
                        QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
        b.bindings[i].bytes++;
    }
    CHECK_STATUS_IS(b.c->call(b.handle, NULL, b.bindings, b.count - 1), QDNN_STATUS_BAD_PARAM);
    CHECK_STATUS_IS(b.c->call(b.handle, NULL, b.bindings, -1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    read_back(&b);
    for (size_t i = 0; i < b.c->operands[written].bytes; i++)
        CHECK_EQ_I64(b.got[written][i], 0xA5);
    end(&b);
}

TEST_CASE(ApiOnce, CallsOfAllKindsKeepPlansOfTheirOwn)
{
    NEED_PTXVM;
    vm_begin(NULL);
    qdnnHandle_t handle = NULL;
    REQUIRE(OK(qdnnCreate(&handle)));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < once_case_count; i++) {
            buffers b = {.handle = handle, .c = &once_cases[i], .count = once_operands(&once_cases[i])};
            REQUIRE(prepare(&b));
            OK(b.c->call(handle, NULL, b.bindings, b.count));
            read_back(&b);
            const int written = first_written(&b);
            test_push_note("%s, round %d", b.c->name, round);
            CHECK_EQ_MEM(b.got[written], b.c->expected, b.c->operands[written].bytes);
            test_pop_note();
            release(&b);
        }
    CHECK_EQ_I64(handle->n_kept, once_case_count);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- A plan is used for nothing but its own call ---- */

typedef struct product {
    qdnnHandle_t handle;
    qdnnMatmulDescriptor_t matmul;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
    void *at;
} product;

enum { BUFFER = 4096 };

/* Every operand that a product may have is somewhere in one buffer of ones; y is at its end. The plan's bindings are unknown,
 * so they are tried: the error names those that are missing. */
static qdnnStatus_t run_product(const product *p, float *y)
{
    static const qdnnOperand_t read[] = {QDNN_OPERAND_ALPHA, QDNN_OPERAND_BIAS, QDNN_OPERAND_RESIDUAL,
                                         QDNN_OPERAND_ROW_WEIGHT};
    static const qdnnMatmulAttribute_t of[] = {QDNN_MATMUL_ALPHA, QDNN_MATMUL_BIAS_TYPE, QDNN_MATMUL_RESIDUAL,
                                               QDNN_MATMUL_ROW_WEIGHT};
    char *at = p->at;
    qdnnBinding_t bindings[8] = {
        {QDNN_OPERAND_X, at, 0}, {QDNN_OPERAND_CODES, at, 0}, {QDNN_OPERAND_Y, at + BUFFER / 2, 0}};
    int count = 3;
    for (int i = 0; i < 4; i++) {
        int64_t value = 0;
        OK(qdnnGetMatmulAttribute(p->matmul, of[i], &value));
        if (i == 0 ? value >= QDNN_ALPHA_ONE : value > 0)
            bindings[count++] = (qdnnBinding_t){read[i], at, 0};
    }
    OK(qdnnFill(p->handle, at + BUFFER / 2, 0, BUFFER / 2));
    const qdnnStatus_t status =
        qdnnMatmulWith(p->handle, p->matmul, p->x, p->w, p->quant, p->y, bindings, count);
    OK(qdnnCopyToHost(p->handle, y, at + BUFFER / 2, BUFFER / 2));
    return status;
}

static bool product_begin(product *p, qdnnHandle_t handle)
{
    float ones[BUFFER / 8];
    for (size_t i = 0; i < BUFFER / 8; i++)
        ones[i] = 1 + (float)(i % 7) / 8;
    return OK(qdnnMalloc(handle, &p->at, BUFFER)) && OK(qdnnCopyToDevice(handle, p->at, ones, sizeof ones)) &&
           (p->handle = handle);
}

/* Every attribute with every small value: a handle that has just made the plain call gives what a new handle gives. */
TEST_CASE(ApiOnce, AfterAChangeOfAnAttributeOfAProduct)
{
    NEED_PTXVM;
    float plain[BUFFER / 8], warm[BUFFER / 8], fresh[BUFFER / 8];
    int compared = 0, refused = 0, differ = 0;
    product p = {0}, other;
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    REQUIRE(OK(qdnnCreate(&handle)) && product_begin(&p, handle));
    OK(qdnnCreateTensorDescriptorOf(&p.x, QDNN_DATA_F32, 2, (const int64_t[]){3, 8}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&p.w, QDNN_DATA_F32, 2, (const int64_t[]){8, 8}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&p.y, QDNN_DATA_F32, 2, (const int64_t[]){3, 8}, NULL));
    OK(qdnnCreateQuantDescriptorOfWeights(&p.quant, QDNN_WEIGHTS_F32, 0));
    for (int attribute = 0; attribute < QDNN_MATMUL_ATTRIBUTE_COUNT; attribute++)
        for (int64_t value = 0; value <= 4; value++) {
            OK(qdnnCreateMatmulDescriptorOf(&p.matmul, NULL, 0));
            OK(run_product(&p, plain));
            if (!qdnnSetMatmulAttribute(p.matmul, (qdnnMatmulAttribute_t)attribute, value)) {
                char sentence[256];
                qdnnStatus_t status = run_product(&p, warm);
                snprintf(sentence, sizeof sentence, "%s", status ? last_sentence() : "");
                other = p;
                OK(qdnnCreate(&handle));
                REQUIRE(product_begin(&other, handle));
                test_push_note("attribute %d is %lld", attribute, (long long)value);
                CHECK_STATUS_IS(run_product(&other, fresh), status);
                CHECK_EQ_STR(status ? last_sentence() : "", sentence);
                CHECK_EQ_MEM(warm, fresh, sizeof warm);
                test_pop_note();
                compared++;
                refused += status != QDNN_STATUS_SUCCESS;
                differ += memcmp(fresh, plain, sizeof plain) != 0;
                OK(qdnnFree(handle, other.at));
                OK(qdnnDestroy(handle));
            }
            OK(qdnnDestroyMatmulDescriptor(p.matmul));
        }
    CHECK(compared > QDNN_MATMUL_ATTRIBUTE_COUNT);
    CHECK(refused > 0 && differ > refused);
    OK(qdnnFree(p.handle, p.at));
    OK(qdnnDestroyTensorDescriptor(p.x));
    OK(qdnnDestroyTensorDescriptor(p.w));
    OK(qdnnDestroyTensorDescriptor(p.y));
    OK(qdnnDestroyQuantDescriptor(p.quant));
    OK(qdnnDestroy(p.handle));
    vm_end();
}

/* What is not an attribute decides, too: constants, the handle's choice of algorithms, settings by structure and cache. */
TEST_CASE(ApiOnce, AfterAChangeOfAnythingElse)
{
    NEED_PTXVM;
    product p = {0};
    qdnnHandle_t handle = NULL;
    float once[BUFFER / 8], twice[BUFFER / 8];
    vm_begin("PTXVM_SM=sm_80");
    REQUIRE(OK(qdnnCreate(&handle)) && product_begin(&p, handle));
    OK(qdnnCreateTensorDescriptorOf(&p.x, QDNN_DATA_F32, 2, (const int64_t[]){1, 8}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&p.y, QDNN_DATA_F32, 2, (const int64_t[]){1, 1}, NULL));
    OK(qdnnCreateQuantDescriptorOfWeights(&p.quant, QDNN_WEIGHTS_F32, 0));
    OK(qdnnCreateMatmulDescriptorOf(&p.matmul, NULL, 0));
    p.w = p.x;
    OK(run_product(&p, once));
    OK(qdnnSetMatmulAlpha(p.matmul, 2));
    OK(run_product(&p, twice));
    CHECK_EQ_F32(twice[0], 2 * once[0]);
    OK(qdnnSetMatmulAlpha(p.matmul, 4));
    OK(run_product(&p, twice));
    CHECK_EQ_F32(twice[0], 4 * once[0]);

    const int kept = handle->n_kept;
    OK(qdnnSetMath(handle, QDNN_MATH_EXACT));
    OK(run_product(&p, twice));
    CHECK_EQ_I64(handle->n_kept, kept + 1);

    qdnnNorm_t norm = {.size = sizeof norm};
    const qdnnBinding_t bindings[] = {{QDNN_OPERAND_X, p.at, 32},
                                      {QDNN_OPERAND_Y, (char *)p.at + BUFFER / 2, 32}};
    OK(qdnnNormWith(handle, &norm, p.x, p.x, NULL, bindings, 2));
    OK(qdnnCopyToHost(handle, once, (char *)p.at + BUFFER / 2, 32));
    norm.eps = 1;
    OK(qdnnNormWith(handle, &norm, p.x, p.x, NULL, bindings, 2));
    OK(qdnnCopyToHost(handle, twice, (char *)p.at + BUFFER / 2, 32));
    CHECK(twice[0] < once[0]);
    CHECK_EQ_I64(handle->n_kept, kept + 3);

    OK(qdnnFree(handle, p.at));
    OK(qdnnDestroyTensorDescriptor(p.x));
    OK(qdnnDestroyTensorDescriptor(p.y));
    OK(qdnnDestroyQuantDescriptor(p.quant));
    OK(qdnnDestroyMatmulDescriptor(p.matmul));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* A cache's quantization counts by what it says: the same address may hold another one. */
TEST_CASE(ApiOnce, ACachesQuantizationCountsByItsContent)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t x = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    void *at = NULL;
    vm_begin(NULL);
    REQUIRE(OK(qdnnCreate(&handle)) && OK(qdnnMalloc(handle, &at, BUFFER)) &&
            OK(qdnnFill(handle, at, 1, BUFFER)));
    OK(qdnnCreateTensorDescriptorOf(&x, QDNN_DATA_F32, 3, (const int64_t[]){1, 1, 8}, NULL));
    OK(qdnnCreateQuantDescriptorOf(&quant, QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, 8));
    const qdnnAttention_t all = {.size = sizeof all, .sees = QDNN_SEES_ALL, .oneSequence = 1};
    const qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = 2, .heads = 1, .headSize = 8, .quant = quant};
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_X, at, 0},           {QDNN_OPERAND_KEYS, at, 0},
        {QDNN_OPERAND_VALUES, at, 0},      {QDNN_OPERAND_KEY_SCALE, at, 0},
        {QDNN_OPERAND_VALUE_SCALE, at, 0}, {QDNN_OPERAND_Y, (char *)at + BUFFER / 2, 0}};
    for (int i = 0; i < 2; i++)
        OK(qdnnAttentionWith(handle, &all, x, &cache, &cache, x, bindings, 6));
    CHECK_EQ_I64(handle->n_kept, 1);
    OK(qdnnSetQuantAttribute(quant, QDNN_QUANT_SCALE_TYPE, QDNN_SCALE_F16));
    OK(qdnnAttentionWith(handle, &all, x, &cache, &cache, x, bindings, 6));
    CHECK_EQ_I64(handle->n_kept, 2);
    OK(qdnnDestroyQuantDescriptor(quant));
    CHECK(qdnnAttentionWith(handle, &all, x, &cache, &cache, x, bindings, 6) != QDNN_STATUS_SUCCESS);
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnFree(handle, at));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* The buffer, and how many plans the handle must have kept after the next call. */
typedef struct counted {
    qdnnHandle_t handle;
    char *at;
    int kept;
} counted;

/* A call with other arguments than all before it: it makes a plan, and once more does not. */
#define MAKES_A_PLAN(c, call)                                                                                \
    do {                                                                                                     \
        OK(call);                                                                                            \
        CHECK_EQ_I64((c)->handle->n_kept, ++(c)->kept);                                                      \
        OK(call);                                                                                            \
        CHECK_EQ_I64((c)->handle->n_kept, (c)->kept);                                                        \
    } while (0)

static void change_integers(counted *c)
{
    qdnnIntegerDescriptor_t i = NULL;
    qdnnTensorDescriptor_t codes = NULL, y8 = NULL, y = NULL;
    OK(qdnnCreateIntegerDescriptorOf(&i, NULL, 0));
    OK(qdnnCreateTensorDescriptorOf(&codes, QDNN_DATA_I8, 2, (const int64_t[]){1, 8}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&y8, QDNN_DATA_I8, 2, (const int64_t[]){1, 1}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&y, QDNN_DATA_F32, 2, (const int64_t[]){1, 1}, NULL));
    char *at = c->at, *to = at + BUFFER / 2;
    const qdnnBinding_t b[] = {{QDNN_OPERAND_X, at, 0},
                               {QDNN_OPERAND_CODES, at, 0},
                               {QDNN_OPERAND_Y, to, 0},
                               {QDNN_OPERAND_X_SCALE, at, 0},
                               {QDNN_OPERAND_SCALE, at, 0}};
    MAKES_A_PLAN(c, qdnnIntegerMatmulWith(c->handle, i, codes, codes, y8, b, 3));
    OK(qdnnSetIntegerAttribute(i, QDNN_INTEGER_W_ZERO, 1));
    MAKES_A_PLAN(c, qdnnIntegerMatmulWith(c->handle, i, codes, codes, y8, b, 3));
    OK(qdnnSetIntegerMultiplier(i, 0.5f));
    MAKES_A_PLAN(c, qdnnIntegerMatmulWith(c->handle, i, codes, codes, y8, b, 3));
    OK(qdnnDestroyIntegerDescriptor(i));
    OK(qdnnCreateIntegerDescriptorOf(&i, NULL, 0));
    OK(qdnnSetIntegerAlpha(i, 2));
    MAKES_A_PLAN(c, qdnnIntegerMatmulWith(c->handle, i, codes, codes, y, b, 5));
    OK(qdnnSetIntegerAlpha(i, 3));
    MAKES_A_PLAN(c, qdnnIntegerMatmulWith(c->handle, i, codes, codes, y, b, 5));
    OK(qdnnDestroyIntegerDescriptor(i));
    OK(qdnnDestroyTensorDescriptor(codes));
    OK(qdnnDestroyTensorDescriptor(y8));
    OK(qdnnDestroyTensorDescriptor(y));
}

static void change_types(counted *c)
{
    qdnnQuantizedType_t type = {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0};
    qdnnMatmulDescriptor_t m = NULL;
    qdnnTensorDescriptor_t x = NULL, y = NULL, y2 = NULL;
    OK(qdnnCreateMatmulDescriptorOf(&m, NULL, 0));
    OK(qdnnCreateTensorDescriptorOf(&x, QDNN_DATA_F32, 2, (const int64_t[]){1, 16}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&y, QDNN_DATA_F32, 2, (const int64_t[]){1, 1}, NULL));
    OK(qdnnCreateTensorDescriptorOf(&y2, QDNN_DATA_F32, 2, (const int64_t[]){1, 2}, NULL));
    const qdnnBinding_t b[] = {{QDNN_OPERAND_X, c->at, 0},
                               {QDNN_OPERAND_CODES, c->at, 0},
                               {QDNN_OPERAND_Y, c->at + BUFFER / 2, 0},
                               {QDNN_OPERAND_SCALE, c->at, 0},
                               {QDNN_OPERAND_ZERO, c->at, 0}};
    MAKES_A_PLAN(c, qdnnTypedMatmulWith(c->handle, m, x, &type, 1, y, b, 3));
    MAKES_A_PLAN(c, qdnnTypedMatmulWith(c->handle, m, x, &type, 2, y2, b, 3));
    type = (qdnnQuantizedType_t){QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 8, QDNN_GRANULARITY_GROUP, 8};
    MAKES_A_PLAN(c, qdnnTypedMatmulWith(c->handle, m, x, &type, 1, y, b, 5));
    type.scaleGroupSize = type.zeroGroupSize = 4;
    MAKES_A_PLAN(c, qdnnTypedMatmulWith(c->handle, m, x, &type, 1, y, b, 5));
    OK(qdnnDestroyMatmulDescriptor(m));
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroyTensorDescriptor(y2));
}

static void change_rows(counted *c)
{
    qdnnAttention_t a = {.size = sizeof a, .sees = QDNN_SEES_ALL, .oneSequence = 1};
    qdnnKvCache_t cache = {
        .size = sizeof cache, .pages = 1, .pageSlots = 2, .heads = 1, .headSize = 8, .type = QDNN_DATA_F32};
    qdnnTensorDescriptor_t x = NULL;
    qdnnTrainDescriptor_t train = NULL;
    OK(qdnnCreateTensorDescriptorOf(&x, QDNN_DATA_F32, 3, (const int64_t[]){1, 1, 8}, NULL));
    OK(qdnnCreateTrainDescriptorOf(&train, NULL, 0));
    const qdnnBinding_t b[] = {{QDNN_OPERAND_X, c->at, 0},
                               {QDNN_OPERAND_Y, c->at + BUFFER / 2, 0},
                               {QDNN_OPERAND_KEYS, c->at, 0},
                               {QDNN_OPERAND_VALUES, c->at, 0}};
    const qdnnBinding_t lsq[] = {
        {QDNN_OPERAND_X, c->at, 0}, {QDNN_OPERAND_Y, c->at + BUFFER / 2, 0}, {QDNN_OPERAND_SCALE, c->at, 0}};
    MAKES_A_PLAN(c, qdnnAttentionWith(c->handle, &a, x, &cache, &cache, x, b, 4));
    a.cap = 1;
    MAKES_A_PLAN(c, qdnnAttentionWith(c->handle, &a, x, &cache, &cache, x, b, 4));
    cache.pageSlots = 4;
    MAKES_A_PLAN(c, qdnnAttentionWith(c->handle, &a, x, &cache, &cache, x, b, 4));
    a.valueSize = 8;
    MAKES_A_PLAN(c, qdnnAttentionWith(c->handle, &a, x, &cache, NULL, x, b, 3));
    MAKES_A_PLAN(c, qdnnLsqWith(c->handle, x, train, lsq, 3));
    OK(qdnnSetTrainAttribute(train, QDNN_TRAIN_BITS, 4));
    MAKES_A_PLAN(c, qdnnLsqWith(c->handle, x, train, lsq, 3));
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTrainDescriptor(train));
}

TEST_CASE(ApiOnce, EveryArgumentCounts)
{
    NEED_PTXVM;
    counted c = {0};
    void *at = NULL;
    vm_begin(NULL);
    REQUIRE(OK(qdnnCreate(&c.handle)) && OK(qdnnMalloc(c.handle, &at, BUFFER)) &&
            OK(qdnnFill(c.handle, at, 0, BUFFER)));
    c.at = at;
    change_integers(&c);
    change_types(&c);
    change_rows(&c);
    OK(qdnnFree(c.handle, at));
    OK(qdnnDestroy(c.handle));
    vm_end();
}

/* ---- Descriptors ---- */

TEST_CASE(ApiOnce, DescriptorsAreSetOrNotCreated)
{
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    qdnnMatmulDescriptor_t m = NULL;
    qdnnIntegerDescriptor_t i = NULL;
    int64_t dims[QDNN_DIMS_MAX] = {0}, value = 0;
    qdnnDataType_t type;
    int rank = 0;
    OK(qdnnCreateTensorDescriptorOf(&t, QDNN_DATA_F16, 2, (const int64_t[]){3, 5}, NULL));
    OK(qdnnGetTensorDescriptor(t, &type, &rank, dims, NULL));
    CHECK(type == QDNN_DATA_F16 && rank == 2 && dims[0] == 3 && dims[1] == 5);
    OK(qdnnDestroyTensorDescriptor(t));
    t = NULL;
    CHECK_STATUS_IS(qdnnCreateTensorDescriptorOf(&t, QDNN_DATA_F16, 0, dims, NULL),
                    QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), "rank is 0");
    CHECK(t == NULL);
    OK(qdnnCreateQuantDescriptorOfWeights(&q, QDNN_WEIGHTS_GGUF_Q4_0, 0));
    OK(qdnnGetQuantAttribute(q, QDNN_QUANT_BLOCK_FORMAT, &value));
    CHECK_EQ_I64(value, QDNN_BLOCK_Q4_0);
    OK(qdnnDestroyQuantDescriptor(q));
    q = NULL;
    CHECK_STATUS_IS(qdnnCreateQuantDescriptorOf(&q, QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 0),
                    QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK(q == NULL);
    const qdnnSetting_t settings[] = {{QDNN_MATMUL_GATED, 1}, {QDNN_MATMUL_TRANSPOSE_W, 2}};
    OK(qdnnCreateMatmulDescriptorOf(&m, settings, 1));
    OK(qdnnGetMatmulAttribute(m, QDNN_MATMUL_GATED, &value));
    CHECK_EQ_I64(value, 1);
    OK(qdnnDestroyMatmulDescriptor(m));
    m = NULL;
    CHECK_STATUS_IS(qdnnCreateMatmulDescriptorOf(&m, settings, 2), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), "QDNN_MATMUL_TRANSPOSE_W is 2");
    CHECK(m == NULL);
    CHECK_STATUS_IS(qdnnCreateIntegerDescriptorOf(&i, NULL, -1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_HAS(last_sentence(), "count is -1");
    CHECK(i == NULL);
}
