/* Products with known answers, through the public API: worked out here by hand or in integers, not by host_ref. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/small_product.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const small_weights linear_4bit = {QDNN_WEIGHTS_INT4_LINEAR, 0, true};

static small_weights affine(int64_t group)
{
    return (small_weights){QDNN_WEIGHTS_INT4_AFFINE, group, true};
}

/* One row of x, and a bias where there is one. */
static bool put_row(small_product *p, const float *x, const float *bias)
{
    return small_product_put(p, QDNN_OPERAND_X, x, (size_t)p->k * sizeof(float)) &&
           (!bias || (small_product_put(p, QDNN_OPERAND_BIAS, bias, (size_t)p->n * sizeof(float)) &&
                      small_product_set(p, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32)));
}

/* A plan has the name of the operation, and its kernel the settings that the name stands for; which product computes it
 * is free. */
static void check_named(const small_product *p, const char *operation)
{
    qdnnPlanInfo_t info = {.size = sizeof info};
    const char *kernel = NULL, *settings = NULL, *own = NULL;
    char words[256];
    if (!CHECK_QDNN(qdnnGetPlanInfo(p->plan, &info)) || !CHECK_QDNN(qdnnFindOperation(operation, &kernel)) ||
        !CHECK_QDNN(qdnnFindOperation(info.operation, &own)) ||
        !CHECK_QDNN(qdnnGetOperationSettings(operation, &settings)))
        return;
    CHECK_EQ_STR(own, kernel);
    CHECK_EQ_STR(info.operation, operation);
    snprintf(words, sizeof words, "%s", settings);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        if (strncmp(word, "tile_rows=", 10) != 0)
            CHECK_HAS(info.settings, word);
}

/* ---- quant.linear_4bit ---- */

DEVICE_CASE(ParityKnownProducts, Linear4Bit)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, bias[] = {0, 0};
    static const uint32_t words[] = {0x87654321, 0};
    float y[2] = {-1, -1};
    small_product p;
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    if (small_product_begin(&p, handle, (const int64_t[]){1, 2, 8}, 0, linear_4bit) && put_row(&p, x, bias) &&
        small_product_put(&p, QDNN_OPERAND_CODES, words, sizeof words) && small_product_plan(&p) &&
        small_product_run(&p, y)) {
        CHECK_EQ_F32(y[0], 204);
        CHECK_EQ_F32(y[1], 0);
        check_named(&p, "quant.linear_4bit");
    }
    small_product_end(&p);
    device_end(handle);
}

DEVICE_CASE(ParityKnownProducts, Linear4BitOfFourColumns)
{
    static const float x[] = {0, 1, 2, 3, 4, 5, 6, 7}, expected[] = {140, 364, 28, 0};
    static const uint32_t words[] = {0x76543210, 0xFEDCBA98, 0x11111111, 0};
    float y[4] = {-1, -1, -1, -1};
    small_product p;
    qdnnHandle_t handle = device_begin("sm_75", 2, "all");
    if (small_product_begin(&p, handle, (const int64_t[]){1, 4, 8}, 0, linear_4bit) && put_row(&p, x, NULL) &&
        small_product_put(&p, QDNN_OPERAND_CODES, words, sizeof words) && small_product_plan(&p) &&
        small_product_run(&p, y))
        CHECK_EQ_MEM(y, expected, sizeof y);
    small_product_end(&p);
    device_end(handle);
}

DEVICE_CASE(ParityKnownProducts, AffineGrouped)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, bias[] = {0, 3}, scale[] = {0.5f, 1, 2, 1};
    static const uint32_t words[] = {0x87654321, 0}, zero[] = {1, 0, 4, 0};
    float y[2] = {-1, -1};
    small_product p;
    qdnnHandle_t handle = device_begin("sm_120", 3, "all");
    if (small_product_begin(&p, handle, (const int64_t[]){1, 2, 8}, 0, affine(4)) && put_row(&p, x, bias) &&
        small_product_put(&p, QDNN_OPERAND_CODES, words, sizeof words) &&
        small_product_put(&p, QDNN_OPERAND_SCALE, scale, sizeof scale) &&
        small_product_put(&p, QDNN_OPERAND_ZERO, zero, sizeof zero) && small_product_plan(&p) &&
        small_product_run(&p, y)) {
        CHECK_EQ_F32(y[0], 150);
        CHECK_EQ_F32(y[1], 3);
        check_named(&p, "quant.linear_4bit.affine_grouped");
    }
    small_product_end(&p);
    device_end(handle);
}

/* ---- The sweep: 24,480 outputs, each exact in any order ---- */

enum { K = 32, SEEDS = 48, N_MAX = 32, GROUPS_MAX = 32 };
static const int ns[] = {1, 2, 3, 5, 8, 13, 21, 32}, group_sizes[] = {1, 2, 4, 8, 16, 32};

typedef struct sweep {
    float x[K], bias[N_MAX], scale[GROUPS_MAX * N_MAX], expected[N_MAX];
    uint32_t words[K / 8 * N_MAX], zero[GROUPS_MAX * N_MAX];
} sweep;

static void sweep_column(sweep *s, int n, int columns, int group, int seed)
{
    static const float scales[] = {0.25f, 0.5f, 1, 2};
    float sum = 0;
    for (int k = 0; k < K; k++) {
        int g = k / group, code = (7 * k + 11 * n + seed) & 15, zero = (5 * g + n + seed) & 15;
        float scale = scales[(g + n + seed) & 3];
        s->words[k / 8 * columns + n] |= (uint32_t)code << k % 8 * 4;
        s->scale[g * columns + n] = scale;
        s->zero[g * columns + n] = (uint32_t)zero;
        sum += s->x[k] * (float)(code - zero) * scale; /* multiples of 1/4 below 2^20: no rounding */
    }
    s->bias[n] = (float)((n + seed) & 7);
    s->expected[n] = sum + s->bias[n];
}

static void sweep_make(sweep *s, int columns, int group, int seed)
{
    memset(s, 0, sizeof *s);
    for (int k = 0; k < K; k++)
        s->x[k] = (float)((3 * k + seed) % 19);
    for (int n = 0; n < columns; n++)
        sweep_column(s, n, columns, group, seed);
}

/* The operands of a plan that is there already. */
static bool sweep_put(small_product *p, const sweep *s, int group)
{
    const size_t columns = (size_t)p->n, groups = (size_t)(K / group);
    return small_product_put(p, QDNN_OPERAND_X, s->x, sizeof s->x) &&
           small_product_put(p, QDNN_OPERAND_BIAS, s->bias, columns * 4) &&
           small_product_put(p, QDNN_OPERAND_CODES, s->words, K / 8 * columns * 4) &&
           small_product_put(p, QDNN_OPERAND_SCALE, s->scale, groups * columns * 4) &&
           small_product_put(p, QDNN_OPERAND_ZERO, s->zero, groups * columns * 4);
}

static int sweep_seeds(qdnnHandle_t handle, int columns, int group)
{
    static sweep s;
    float y[N_MAX];
    small_product p;
    int outputs = 0;
    bool ok = small_product_begin(&p, handle, (const int64_t[]){1, columns, K}, 0, affine(group)) &&
              small_product_set(&p, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32) && small_product_plan(&p);
    for (int seed = 0; seed < SEEDS && ok; seed++) {
        sweep_make(&s, columns, group, seed);
        ok = sweep_put(&p, &s, group) && small_product_run(&p, y);
        test_push_note("seed %d", seed);
        CHECK_EQ_MEM(y, s.expected, (size_t)columns * sizeof(float));
        test_pop_note();
        outputs += columns;
    }
    small_product_end(&p);
    return outputs;
}

static int group_count(void)
{
    return LENGTH(group_sizes);
}

static void group_name(int index, char *text, size_t size)
{
    snprintf(text, size, "g%d", group_sizes[index]);
}

DEVICE_EACH(ParityKnownProducts, SweepOfAffineGrouped, group_count, group_name)
{
    int outputs = 0;
    qdnnHandle_t handle = device_begin("sm_80", 0, "memory");
    for (int i = 0; i < LENGTH(ns) && handle; i++) {
        test_push_note("N %d", ns[i]);
        outputs += sweep_seeds(handle, ns[i], group_sizes[index]);
        test_pop_note();
    }
    CHECK_EQ_I64(outputs, 24480 / LENGTH(group_sizes));
    device_end(handle);
}

/* ---- The typed call ---- */

typedef struct typed {
    qdnnHandle_t handle;
    small_product p; /* its descriptors of x and y */
} typed;

static qdnnStatus_t typed_plan(typed *t, const qdnnQuantizedType_t *type, int64_t k, int64_t n)
{
    const int64_t x_dims[] = {1, k}, y_dims[] = {1, n > 0 ? n : 0};
    qdnnDestroyPlan(t->p.plan);
    t->p.plan = NULL;
    CHECK_QDNN(qdnnSetTensorDescriptor(t->p.x, QDNN_DATA_F32, 2, x_dims, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(t->p.y, QDNN_DATA_F32, 2, y_dims, NULL));
    return qdnnCreateTypedMatmulPlan(t->handle, t->p.matmul, t->p.x, type, n, t->p.y, &t->p.plan);
}

static bool typed_begin(typed *t)
{
    t->handle = device_begin("sm_90", 1, "all");
    return small_product_begin(&t->p, t->handle, (const int64_t[]){1, 1, 8}, 0, linear_4bit);
}

static void typed_end(typed *t)
{
    small_product_end(&t->p);
    device_end(t->handle);
}

static qdnnQuantizedType_t groups_of(int64_t size)
{
    return (qdnnQuantizedType_t){QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, size, QDNN_GRANULARITY_GROUP, size};
}

/* All 288 are accepted, K that is not a multiple of 8 among them. */
DEVICE_CASE(ParityKnownProducts, EverySpecificationIsAccepted)
{
    static const int64_t ks[] = {8, 10, 16, 18, 24, 32, 64, 128}, widths[] = {1, 2, 3, 7, 16, 31};
    int accepted = 0;
    typed t;
    device_launches_nothing();
    if (typed_begin(&t))
        for (int i = 0; i < LENGTH(ks) * LENGTH(widths) * LENGTH(group_sizes); i++) {
            int64_t k = ks[i % LENGTH(ks)], n = widths[i / LENGTH(ks) % LENGTH(widths)];
            qdnnQuantizedType_t type = groups_of(group_sizes[i / LENGTH(ks) / LENGTH(widths)]);
            accepted += CHECK_QDNN(typed_plan(&t, &type, k, n));
        }
    CHECK_EQ_I64(accepted, 288);
    typed_end(&t);
}

TEST_CASE(ParityKnownProducts, SizesOfASpecification)
{
    qdnnTensorDescriptor_t w = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    size_t bytes = 0;
    if (CHECK_QDNN(qdnnCreateTensorDescriptor(&w)) && CHECK_QDNN(qdnnCreateQuantDescriptor(&quant)) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(w, QDNN_DATA_F32, 2, (const int64_t[]){32, 7}, NULL)) &&
        CHECK_QDNN(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_INT4_AFFINE, 8)) &&
        CHECK_QDNN(qdnnGetOperandSize(quant, w, QDNN_OPERAND_CODES, &bytes)))
        CHECK_EQ_I64((int64_t)bytes, 28 * 4);
    qdnnDestroyTensorDescriptor(w);
    qdnnDestroyQuantDescriptor(quant);
}

/* 257 groups of 8: w = (code - zero) * scale is 1 everywhere, in a different way in each group. */
DEVICE_CASE(ParityKnownProducts, ManyGroups)
{
    enum { MANY = 2056, GROUPS = MANY / 8 };
    static uint32_t words[GROUPS], zero[GROUPS];
    static float scale[GROUPS], x[MANY];
    float y = 0;
    small_product p;
    qdnnHandle_t handle = device_begin("sm_100", 1, "all");
    for (int g = 0; g < GROUPS; g++) {
        words[g] = 0x11111111u * (uint32_t)(g % 8 + 1 + (g & 1));
        zero[g] = (uint32_t)(g % 8);
        scale[g] = g & 1 ? 0.5f : 1;
    }
    for (int k = 0; k < MANY; k++)
        x[k] = (float)(k % 7);
    if (small_product_begin(&p, handle, (const int64_t[]){1, 1, MANY}, 0, affine(8)) &&
        put_row(&p, x, NULL) && small_product_put(&p, QDNN_OPERAND_CODES, words, sizeof words) &&
        small_product_put(&p, QDNN_OPERAND_SCALE, scale, sizeof scale) &&
        small_product_put(&p, QDNN_OPERAND_ZERO, zero, sizeof zero) && small_product_plan(&p) &&
        small_product_run(&p, &y))
        CHECK_EQ_F32(y, 293 * 21 + 0 + 1 + 2 + 3 + 4); /* 2056 = 293 * 7 + 5 */
    small_product_end(&p);
    device_end(handle);
}

/* The same words by the typed call: the operands are those of the plain one. */
DEVICE_CASE(ParityKnownProducts, TypedCallComputes)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, scale[] = {0.5f, 1, 2, 1};
    static const uint32_t words[] = {0x87654321, 0}, zero[] = {1, 0, 4, 0};
    qdnnQuantizedType_t type = groups_of(4);
    qdnnPlanInfo_t info = {.size = sizeof info};
    float y[2] = {-1, -1};
    typed t;
    if (typed_begin(&t) && CHECK_QDNN(typed_plan(&t, &type, 8, 2)) &&
        CHECK_QDNN(qdnnGetPlanInfo(t.p.plan, &info)) &&
        small_product_put(&t.p, QDNN_OPERAND_X, x, sizeof x) &&
        small_product_put(&t.p, QDNN_OPERAND_CODES, words, sizeof words) &&
        small_product_put(&t.p, QDNN_OPERAND_SCALE, scale, sizeof scale) &&
        small_product_put(&t.p, QDNN_OPERAND_ZERO, zero, sizeof zero) &&
        device_buffer_make(t.handle, BUFFER_EXACT, sizeof y, 0, &t.p.at[QDNN_OPERAND_Y]) &&
        small_product_run(&t.p, y)) {
        CHECK_EQ_STR(info.operation, "quant.int4_zp.matmul");
        CHECK_EQ_F32(y[0], 150);
        CHECK_EQ_F32(y[1], 0);
    }
    typed_end(&t);
}

static const struct {
    const char *name;
    qdnnQuantizedType_t type;
    int64_t k, n;
    qdnnStatus_t status;
    const char *sentence;
} refusals[] = {
    {"storage_i8",
     {QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, 8, QDNN_GRANULARITY_GROUP, 8},
     32,
     7,
     QDNN_STATUS_NOT_SUPPORTED,
     "type->storage is i8, and the products described by a type have integer codes of 4 bits; fix: use storage "
     "QDNN_DATA_I4"},
    {"unequal_groups",
     {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 8, QDNN_GRANULARITY_GROUP, 16},
     32,
     7,
     QDNN_STATUS_NOT_SUPPORTED,
     "type->zeroGroupSize is 16, scale groups of 8 with zero groups of 16; fix: use equal group sizes"},
    {"scales_without_zeros",
     {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 8, QDNN_GRANULARITY_NONE, 0},
     32,
     7,
     QDNN_STATUS_NOT_SUPPORTED,
     "type->scale is QDNN_GRANULARITY_GROUP with type->zero QDNN_GRANULARITY_NONE; fix: use equal "
     "granularities"},
    {"channels",
     {QDNN_DATA_I4, QDNN_GRANULARITY_CHANNEL, 0, QDNN_GRANULARITY_CHANNEL, 0},
     32,
     7,
     QDNN_STATUS_NOT_SUPPORTED,
     "type->scale is QDNN_GRANULARITY_CHANNEL (1); fix: use QDNN_GRANULARITY_GROUP or QDNN_GRANULARITY_NONE"},
    {"group_size_0",
     {QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, 0, QDNN_GRANULARITY_GROUP, 0},
     32,
     7,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "type->scaleGroupSize is 0; fix: use a group size of at least 1"},
    {"group_size_without_groups",
     {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 8, QDNN_GRANULARITY_NONE, 0},
     32,
     7,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "type->scaleGroupSize is 8 without groups; fix: use 0"},
    {"empty_k",
     {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0},
     0,
     7,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "K is 0; fix: use weights with at least one row and column"},
    {"empty_n",
     {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0},
     32,
     0,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "n is 0; fix: use weights with at least one row and column"},
    {"overflow",
     {QDNN_DATA_I4, QDNN_GRANULARITY_NONE, 0, QDNN_GRANULARITY_NONE, 0},
     INT64_C(1) << 40,
     INT64_C(1) << 40,
     QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
     "whose product overflows; fix: use weights of fewer than 2^58 elements"},
};

DEVICE_ROWS(ParityKnownProducts, TypedCallRefuses, refusals)
{
    char sentence[512];
    typed t;
    device_launches_nothing();
    if (typed_begin(&t)) {
        CHECK_EQ_STR(
            qdnnGetErrorString(typed_plan(&t, &refusals[index].type, refusals[index].k, refusals[index].n)),
            qdnnGetErrorString(refusals[index].status));
        qdnnGetLastErrorString(sentence, sizeof sentence);
        CHECK_HAS(sentence, refusals[index].sentence);
        CHECK(t.p.plan == NULL);
    }
    typed_end(&t);
}

/* ---- quant.int4.matvec.scaled, quant.int4.batched_matvec.scaled ---- */

/* Rows of 9 signed codes, two words each. */
static const uint32_t int4_rows[] = {0xCDEF4321, 0x5, 0xFEDC1234, 0xB, 0xFEDCBA98, 0x0};
static const float row_scales[] = {0.5f, 0.25f, 0.125f},
                   matvec_x[] = {1, -0.5f, 0.25f, 2, -1.5f, 0.75f, 1.25f, -2, 0.5f},
                   matvec_y[] = {7.75f, 1.4375f, -1.59375f};

/* A scale for each row of any length: one group that no row fills. */
static bool set_long_groups(small_product *p)
{
    return CHECK_QDNN(qdnnSetQuantAttribute(p->quant, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_GROUP)) &&
           CHECK_QDNN(qdnnSetQuantAttribute(p->quant, QDNN_QUANT_GROUP_SIZE, INT64_C(1) << 40));
}

/* As QDNN_WEIGHTS_INT4_ROWS has it, or as the kernel that the operation's name stands for. */
static void check_matvec(int64_t batch, const char *operation)
{
    float x[2 * 9], y[2 * 3] = {0};
    small_product p;
    qdnnHandle_t handle = device_begin("sm_89", 1, "all");
    for (int i = 0; i < 9; i++) {
        x[i] = matvec_x[i];
        x[9 + i] = -matvec_x[i];
    }
    if (small_product_begin(&p, handle, (const int64_t[]){batch, 3, 9}, 0,
                            (small_weights){QDNN_WEIGHTS_INT4_ROWS, 0, false}) &&
        (!operation || set_long_groups(&p)) &&
        small_product_put(&p, QDNN_OPERAND_X, x, (size_t)batch * 9 * 4) &&
        small_product_put(&p, QDNN_OPERAND_CODES, int4_rows, sizeof int4_rows) &&
        small_product_put(&p, QDNN_OPERAND_SCALE, row_scales, sizeof row_scales) && small_product_plan(&p) &&
        small_product_run(&p, y)) {
        for (int i = 0; i < batch * 3; i++)
            CHECK_EQ_F32(y[i], i < 3 ? matvec_y[i] : -matvec_y[i - 3]);
        if (operation)
            check_named(&p, operation);
    }
    small_product_end(&p);
    device_end(handle);
}

DEVICE_CASE(ParityKnownProducts, Int4MatvecScaled)
{
    check_matvec(1, NULL);
    check_matvec(1, "quant.int4.matvec.scaled");
}

DEVICE_CASE(ParityKnownProducts, Int4BatchedMatvecScaled)
{
    check_matvec(2, NULL);
    check_matvec(2, "quant.int4.batched_matvec.scaled");
}

/* ---- NVFP4: (code * scale) * global is rounded once each ---- */

DEVICE_CASE(ParityKnownProducts, Nvfp4RoundsInOrder)
{
    static const uint8_t code = 0x03, scale = 0x3E; /* 1.5; 1.75 */
    static const float x = 1, global = 0.01f;
    float y = 0;
    small_product p;
    qdnnHandle_t handle = device_begin("sm_100", 1, "all");
    if (small_product_begin(&p, handle, (const int64_t[]){1, 1, 1}, 0,
                            (small_weights){QDNN_WEIGHTS_NVFP4, 0, true}) &&
        put_row(&p, &x, NULL) && small_product_put(&p, QDNN_OPERAND_CODES, &code, 1) &&
        small_product_put(&p, QDNN_OPERAND_SCALE, &scale, 1) &&
        small_product_put(&p, QDNN_OPERAND_GLOBAL_SCALE, &global, 4) && small_product_plan(&p) &&
        small_product_run(&p, &y)) {
        uint32_t bits;
        memcpy(&bits, &y, sizeof bits);
        CHECK_EQ_U32(bits, 0x3CD70A3D);
    }
    small_product_end(&p);
    device_end(handle);
}

/* ---- Empty sizes ---- */

/* A stack without K: each row gets the bias of its expert, and the row without an expert NaN. */
DEVICE_CASE(ParityKnownProducts, StacksWithoutK)
{
    static const float bias[] = {1, 2, 3, 4};
    static const int32_t expert[] = {1, 2, 0};
    float y[6] = {0};
    small_product p;
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    if (small_product_begin(&p, handle, (const int64_t[]){3, 2, 0}, 2, affine(8)) &&
        small_product_put(&p, QDNN_OPERAND_BIAS, bias, sizeof bias) &&
        small_product_put(&p, QDNN_OPERAND_EXPERT_INDEX, expert, sizeof expert) &&
        small_product_set(&p, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32) && small_product_plan(&p) &&
        small_product_run(&p, y)) {
        CHECK_EQ_F32(y[0], 3);
        CHECK_EQ_F32(y[1], 4);
        CHECK(isnan(y[2]) && isnan(y[3]));
        CHECK_EQ_F32(y[4], 1);
        CHECK_EQ_F32(y[5], 2);
    }
    small_product_end(&p);
    device_end(handle);
}

/* K = 0: the sum is +0; then bias and the rest. M = 0 and N = 0 write nothing. */
DEVICE_CASE(ParityKnownProducts, EmptySizes)
{
    static const small_weights all[] = {
        {QDNN_WEIGHTS_INT4_LINEAR, 0, true}, {QDNN_WEIGHTS_INT4_AFFINE, 8, true},
        {QDNN_WEIGHTS_FP8_E4M3, 0, false},   {QDNN_WEIGHTS_NF4_BYTES, 64, false},
        {QDNN_WEIGHTS_GGUF_Q4_K, 0, false},  {QDNN_WEIGHTS_F16, 0, true},
        {QDNN_WEIGHTS_NVFP4, 0, true}};
    static const int64_t sizes[][3] = {{2, 3, 0}, {0, 3, 256}, {2, 0, 256}};
    static const float bias[] = {1, -2, 3}, global = 1;
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    for (int i = 0; i < LENGTH(all) * LENGTH(sizes) && handle; i++) {
        const int64_t *mnk = sizes[i / LENGTH(all)];
        float y[6] = {0};
        small_product p;
        test_push_note("%s, m %d, n %d, k %d", qdnnGetWeightsName(all[i % LENGTH(all)].weights), (int)mnk[0],
                       (int)mnk[1], (int)mnk[2]);
        if (small_product_begin(&p, handle, mnk, 0, all[i % LENGTH(all)]) &&
            small_product_put(&p, QDNN_OPERAND_BIAS, bias, (size_t)mnk[1] * 4) &&
            small_product_set(&p, QDNN_MATMUL_BIAS_TYPE, QDNN_DATA_F32) &&
            (all[i % LENGTH(all)].weights != QDNN_WEIGHTS_NVFP4 ||
             small_product_put(&p, QDNN_OPERAND_GLOBAL_SCALE, &global, 4)) &&
            small_product_plan(&p) && small_product_run(&p, y))
            for (int j = 0; j < mnk[0] * mnk[1]; j++)
                CHECK_EQ_F32(y[j], bias[j % 3]);
        small_product_end(&p);
        test_pop_note();
    }
    device_end(handle);
}
