/* What mode tensor promises: a row has the same bits in every batch, by every kernel, with weights as stored or prepacked;
 * and a product with quantized weights is the product with what dequantize makes of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "formats/kernel_data.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { N = 40, K = 1088, ROWS = 70 }; /* two whole strips and a part of one; K in groups of 64 */

/* ---- Weights ---- */

typedef struct weights_kind {
    const char *name;
    qdnnDataType_t storage;
    qdnnScaleType_t scale;
    int64_t group_size;
    bool zeros, prepacks;
    qdnnBlockFormat_t block;
    int block_bytes; /* of 32 */
} weights_kind;

static const weights_kind kinds[] = {
    {"int4_f16", QDNN_DATA_I4, QDNN_SCALE_F16, 64, false, true, QDNN_BLOCK_NONE, 0},
    {"int4_f32_zero", QDNN_DATA_I4, QDNN_SCALE_F32, 64, true, true, QDNN_BLOCK_NONE, 0},
    {"int8_bf16", QDNN_DATA_I8, QDNN_SCALE_BF16, 64, false, true, QDNN_BLOCK_NONE, 0},
    {"nf4", QDNN_DATA_NF4, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_NONE, 0},
    {"nvfp4", QDNN_DATA_FP4, QDNN_SCALE_E4M3, 16, false, true, QDNN_BLOCK_NONE, 0},
    {"e4m3", QDNN_DATA_F8E4M3, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_NONE, 0},
    {"plain_f32", QDNN_DATA_F32, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_NONE, 0},
    {"q5_0", QDNN_DATA_U8, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_Q5_0, 22},
    {"q4_1", QDNN_DATA_U8, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_Q4_1, 20},
    {"plain_bf16", QDNN_DATA_BF16, QDNN_SCALE_F32, 64, false, true, QDNN_BLOCK_NONE, 0},
};

static bool is_plain(const weights_kind *kind)
{
    return kind->storage == QDNN_DATA_F32 || kind->storage == QDNN_DATA_BF16;
}

/* The bytes of N x K weights as stored, without scales beside them. */
static size_t stored_bytes(const weights_kind *kind)
{
    if (kind->block)
        return (size_t)N * K / 32 * (size_t)kind->block_bytes;
    if (is_plain(kind))
        return (size_t)N * K * (kind->storage == QDNN_DATA_F32 ? 4 : 2);
    const bool of_bytes = kind->storage == QDNN_DATA_I8 || kind->storage == QDNN_DATA_F8E4M3;
    return (size_t)N * K / (of_bytes ? 1 : 2);
}

typedef struct scene {
    qdnnHandle_t handle;
    const weights_kind *kind;
    qdnnMatmulDescriptor_t matmul;
    qdnnQuantDescriptor_t quant;
    qdnnTensorDescriptor_t w;
    void *codes, *packed, *scale, *zero, *dense; /* of the device; dense: what dequantize writes, in f16 */
    uint16_t x[ROWS * K];
} scene;

static void *upload(qdnnHandle_t handle, const void *host, size_t bytes)
{
    void *at = NULL;
    CHECK_QDNN(qdnnMalloc(handle, &at, bytes));
    CHECK_QDNN(qdnnCopyToDevice(handle, at, host, bytes));
    return at;
}

static void *fill(qdnnHandle_t handle, qdnnDataType_t type, uint32_t seed, int64_t count)
{
    uint8_t *host = calloc((size_t)count, 4);
    if (type == QDNN_DATA_U8)
        fill_bytes(seed, host, count);
    else
        fill_data(DATA_NORMAL, NULL, type, seed, host, count);
    for (int64_t i = 0; i < count && type == QDNN_DATA_U8; i++) /* neither NaN nor huge as E4M3 and E8M0 */
        host[i] &= 0x5F;
    void *at = upload(handle, host,
                      (size_t)count * (type == QDNN_DATA_F32  ? 4
                                       : type == QDNN_DATA_U8 ? 1
                                                              : 2));
    free(host);
    return at;
}

static int bind(const scene *s, void *codes, qdnnBinding_t *b)
{
    int n = 0;
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_CODES, .pointer = codes};
    if (!is_plain(s->kind) && !s->kind->block)
        b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_SCALE, .pointer = s->scale};
    if (s->kind->zeros)
        b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_ZERO, .pointer = s->zero};
    return n;
}

static bool run_plan(const scene *s, qdnnPlan_t plan, qdnnBinding_t *b, int n)
{
    size_t bytes = 0;
    void *workspace = NULL;
    bool ok = CHECK_QDNN(qdnnGetPlanWorkspaceSize(plan, &bytes)) &&
              (bytes == 0 || CHECK_QDNN(qdnnMalloc(s->handle, &workspace, bytes))) &&
              CHECK_QDNN(qdnnExecute(s->handle, plan, b, n, workspace, bytes)) &&
              CHECK_QDNN(qdnnSynchronize(s->handle));
    if (workspace)
        qdnnFree(s->handle, workspace);
    qdnnDestroyPlan(plan);
    return ok;
}

static void describe(scene *s)
{
    const weights_kind *kind = s->kind;
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_STORAGE, kind->storage));
    if (kind->block)
        CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_BLOCK_FORMAT, kind->block));
    if (is_plain(kind) || kind->block)
        return;
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_SCALE_TYPE, kind->scale));
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_GROUPS, QDNN_GROUPS_ROWS));
    CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_GROUP_SIZE, kind->group_size));
    if (kind->zeros)
        CHECK_QDNN(qdnnSetQuantAttribute(s->quant, QDNN_QUANT_ZERO_KIND, QDNN_ZERO_POINT));
}

/* The weights as stored, prepacked by a plan, and dequantized by a plan. */
static void make_weights(scene *s)
{
    static const qdnnDataType_t scales[] = {[QDNN_SCALE_F32] = QDNN_DATA_F32,
                                            [QDNN_SCALE_F16] = QDNN_DATA_F16,
                                            [QDNN_SCALE_BF16] = QDNN_DATA_BF16,
                                            [QDNN_SCALE_E4M3] = QDNN_DATA_U8};
    const int64_t groups = N * K / s->kind->group_size;
    qdnnBinding_t b[4];
    qdnnPlan_t plan = NULL;
    s->codes = fill(s->handle, is_plain(s->kind) ? s->kind->storage : QDNN_DATA_U8, 3, (int64_t)N * K);
    s->scale = fill(s->handle, scales[s->kind->scale], 5, groups);
    s->zero = fill(s->handle, QDNN_DATA_U8, 7, groups);
    CHECK_QDNN(qdnnMalloc(s->handle, &s->dense, 2 * N * K));
    CHECK_QDNN(qdnnMalloc(s->handle, &s->packed, 4 * (N + 16) * (K + 64)));
    int n = bind(s, s->codes, b);
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_Y, .pointer = s->dense};
    if (CHECK_QDNN(qdnnCreateDequantizePlan(s->handle, s->w, s->quant, &plan)))
        run_plan(s, plan, b, n);
    if (!s->kind->prepacks)
        return;
    qdnnBinding_t both[2] = {{.operand = QDNN_OPERAND_CODES, .pointer = s->codes},
                             {.operand = QDNN_OPERAND_REPACKED, .pointer = s->packed}};
    if (CHECK_QDNN(qdnnCreatePrepackPlan(s->handle, s->matmul, s->w, s->quant, &plan)))
        run_plan(s, plan, both, 2);
    void *back = NULL; /* and there it is again */
    const size_t bytes = stored_bytes(s->kind);
    uint8_t *before = malloc(bytes), *after = malloc(bytes);
    CHECK_QDNN(qdnnMalloc(s->handle, &back, bytes));
    both[0].pointer = back;
    if (CHECK_QDNN(qdnnCreateUnpackPlan(s->handle, s->matmul, s->w, s->quant, &plan)) &&
        run_plan(s, plan, both, 2) && CHECK_QDNN(qdnnCopyToHost(s->handle, before, s->codes, bytes)) &&
        CHECK_QDNN(qdnnCopyToHost(s->handle, after, back, bytes)))
        CHECK_EQ_MEM(after, before, bytes);
    free(before);
    free(after);
    qdnnFree(s->handle, back);
}

static bool scene_begin(scene *s, const weights_kind *kind, const char *sm)
{
    *s = (scene){.kind = kind, .handle = device_begin(sm, 1, "none")};
    if (!s->handle)
        return false;
    CHECK_QDNN(qdnnCreateMatmulDescriptor(&s->matmul));
    CHECK_QDNN(qdnnCreateQuantDescriptor(&s->quant));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&s->w));
    CHECK_QDNN(qdnnSetTensorDescriptor(s->w, QDNN_DATA_F16, 2, (const int64_t[]){N, K}, NULL));
    describe(s);
    fill_data(DATA_NORMAL, NULL, QDNN_DATA_F16, 11, s->x, ROWS * K);
    make_weights(s);
    return true;
}

static void scene_end(scene *s)
{
    void *all[] = {s->codes, s->packed, s->scale, s->zero, s->dense};
    for (int i = 0; i < LENGTH(all); i++)
        if (all[i])
            qdnnFree(s->handle, all[i]);
    qdnnDestroyMatmulDescriptor(s->matmul);
    qdnnDestroyQuantDescriptor(s->quant);
    qdnnDestroyTensorDescriptor(s->w);
    device_end(s->handle);
}

/* ---- Products ---- */

typedef enum { AS_STORED, PREPACKED, DEQUANTIZED, EXACT /* as stored, in mode exact */ } weights_way;

/* Rows [first, first + m) of x. */
static void product(const scene *s, weights_way way, int first, int m, float *y)
{
    qdnnTensorDescriptor_t tx = NULL, ty = NULL;
    qdnnQuantDescriptor_t plain = NULL;
    qdnnPlan_t plan = NULL;
    qdnnBinding_t b[6];
    void *x = upload(s->handle, s->x + first * K, (size_t)m * K * 2), *out = NULL;
    CHECK_QDNN(qdnnMalloc(s->handle, &out, (size_t)m * N * 4));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&tx));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&ty));
    CHECK_QDNN(qdnnCreateQuantDescriptor(&plain));
    CHECK_QDNN(qdnnSetTensorDescriptor(tx, QDNN_DATA_F16, 2, (const int64_t[]){m, K}, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(ty, QDNN_DATA_F32, 2, (const int64_t[]){m, N}, NULL));
    CHECK_QDNN(qdnnSetQuantAttribute(plain, QDNN_QUANT_STORAGE, QDNN_DATA_F16));
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_ALGORITHM,
                                      way == EXACT ? QDNN_MATMUL_EXACT : QDNN_MATMUL_TENSOR));
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_PREPACKED, way == PREPACKED));
    int n = way == DEQUANTIZED ? 1 : bind(s, way == PREPACKED ? s->packed : s->codes, b);
    if (way == DEQUANTIZED)
        b[0] = (qdnnBinding_t){.operand = QDNN_OPERAND_CODES, .pointer = s->dense};
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_X, .pointer = x};
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_Y, .pointer = out};
    if (CHECK_QDNN(qdnnCreateMatmulPlan(s->handle, s->matmul, tx, s->w, way == DEQUANTIZED ? plain : s->quant,
                                        ty, &plan)) &&
        run_plan(s, plan, b, n))
        CHECK_QDNN(qdnnCopyToHost(s->handle, y, out, (size_t)m * N * 4));
    qdnnFree(s->handle, x);
    qdnnFree(s->handle, out);
    qdnnDestroyTensorDescriptor(tx);
    qdnnDestroyTensorDescriptor(ty);
    qdnnDestroyQuantDescriptor(plain);
}

/* ---- The promises ---- */

static int kind_count(void)
{
    return LENGTH(kinds);
}

static void kind_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kinds[index].name);
}

DEVICE_EACH(TensorLaws, FusedIsDequantizeThenProduct, kind_count, kind_name)
{
    static const char *const sms[] = {"sm_75", "sm_80", "sm_90"};
    scene s;
    static float fused[ROWS * N], apart[ROWS * N];
    if (!scene_begin(&s, &kinds[index], sms[index % LENGTH(sms)]))
        return;
    product(&s, DEQUANTIZED, 0, 21, apart);
    int finite = 0;
    for (int i = 0; i < 21 * N; i++)
        finite += isfinite(apart[i]) && apart[i] != 0.0f;
    CHECK_EQ_I64(finite, 21 * N);
    product(&s, AS_STORED, 0, 21, fused);
    CHECK_EQ_MEM(fused, apart, 21 * N * 4);
    if (s.kind->prepacks) {
        product(&s, PREPACKED, 0, 21, fused);
        CHECK_EQ_MEM(fused, apart, 21 * N * 4);
    }
    scene_end(&s);
}

static const char *const families[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

static int family_count(void)
{
    return LENGTH(families);
}

static void family_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", families[index]);
}

/* Batches of 1 to 70 rows, whose kernels have tiles of 16 to 128 rows (prepacked: of 8 to 128, with the weights as the
 * other operand of mma), against each row by itself. */
static void rows_are_alone(const scene *s, weights_way way, const float *alone)
{
    static float batch[ROWS * N];
    for (int m = 1; m <= ROWS; m++) {
        product(s, way, 0, m, batch);
        if (!CHECK_EQ_MEM(batch, alone, (size_t)m * N * 4))
            break;
    }
}

/* Each family with weights of another kind. */
DEVICE_EACH(TensorLaws, RowsDoNotDependOnTheBatch, family_count, family_name)
{
    static float alone[ROWS * N];
    scene s;
    NEED_SM(families[index]);
    if (!scene_begin(&s, &kinds[index % LENGTH(kinds)], families[index]))
        return;
    for (int row = 0; row < ROWS; row++)
        product(&s, AS_STORED, row, 1, alone + row * N);
    rows_are_alone(&s, AS_STORED, alone);
    if (s.kind->prepacks)
        rows_are_alone(&s, PREPACKED, alone);
    scene_end(&s);
}

/* ---- The bits themselves ---- */

static uint64_t hash_of(const void *bytes, size_t count)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3;
    return hash;
}

/* Of 21 rows: up to sm_89, where an operation of mma adds 8 products, and from sm_90 on, where it adds 16; in mode exact everywhere. No
 * kernel may ever give others, whatever its shape. */
static const struct {
    const char *kind;
    uint64_t hash[2], exact;
} pinned[] = {
    {"int4_f16", {0x5268CE5447E73215, 0xCE08EFD091173207}, 0x7B9D469CAD49F136},
    {"int4_f32_zero", {0x4A5661B810763B89, 0x04FDCB60D416FFB0}, 0x8E2F2A144ED6283C},
    {"nf4", {0x97C8F0AF0A29885F, 0xF5D25BC09EA30958}, 0x39BCA075B378BD05},
    {"nvfp4", {0xFF290E1FCB518985, 0x4F17659B49332389}, 0xE710B8EE28FD11C5},
    {"q4_1", {0x0463E758ADCC9A29, 0xCFE3741992742A04}, 0x5B1A12684705146D},
};

static const char *const pinned_sms[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};

static int pinned_count(void)
{
    return LENGTH(pinned) * LENGTH(pinned_sms);
}

static void pinned_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", pinned[index / LENGTH(pinned_sms)].kind,
             pinned_sms[index % LENGTH(pinned_sms)]);
}

static const weights_kind *kind_named(const char *name)
{
    for (int i = 0; i < LENGTH(kinds); i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

DEVICE_EACH(TensorLaws, BitsArePinned, pinned_count, pinned_name)
{
    enum { M = 21 };
    static float y[M * N];
    const int family = index % LENGTH(pinned_sms);
    const uint64_t expected = pinned[index / LENGTH(pinned_sms)].hash[family >= 2];
    scene s;
    NEED_SM(pinned_sms[family]);
    if (!scene_begin(&s, kind_named(pinned[index / LENGTH(pinned_sms)].kind), pinned_sms[family]))
        return;
    for (int way = AS_STORED; way <= PREPACKED; way++) {
        product(&s, (weights_way)way, 0, M, y);
        CHECK_EQ_U64(hash_of(y, sizeof y), expected);
    }
    scene_end(&s);
}

/* Many rows at once, and by kernels for few rows: 1, 4 and 16 of them. */
DEVICE_EACH(TensorLaws, BitsOfExactArePinned, pinned_count, pinned_name)
{
    enum { M = 21 };
    static const int pieces[] = {1, 4, 16};
    static float y[M * N];
    const int kind = index / LENGTH(pinned_sms), sm = index % LENGTH(pinned_sms);
    scene s;
    NEED_SM(pinned_sms[sm]);
    if (!scene_begin(&s, kind_named(pinned[kind].kind), pinned_sms[sm]))
        return;
    product(&s, EXACT, 0, M, y);
    CHECK_EQ_U64(hash_of(y, sizeof y), pinned[kind].exact);
    memset(y, 0, sizeof y);
    for (int i = 0, row = 0; i < LENGTH(pieces); row += pieces[i++])
        product(&s, EXACT, row, pieces[i], y + row * N);
    CHECK_EQ_U64(hash_of(y, sizeof y), pinned[kind].exact);
    scene_end(&s);
}

/* ---- Experts ---- */

enum { EXPERTS = 4, OF_EXPERT = N / EXPERTS };

/* The same memory as a stack of EXPERTS matrices: rows of the weights lie one behind the other in both. */
static void product_of_experts(const scene *s, bool prepacked, int m, const int32_t *index, float *y)
{
    qdnnTensorDescriptor_t tx = NULL, tw = NULL, ty = NULL;
    qdnnPlan_t plan = NULL;
    qdnnBinding_t b[6];
    void *packed = NULL;
    CHECK_QDNN(qdnnMalloc(s->handle, &packed, 4 * EXPERTS * 16 * (K + 64)));
    int n = bind(s, prepacked ? packed : s->codes, b);
    void *x = upload(s->handle, s->x, (size_t)m * K * 2), *experts = upload(s->handle, index, (size_t)m * 4),
         *out = NULL;
    CHECK_QDNN(qdnnMalloc(s->handle, &out, (size_t)m * OF_EXPERT * 4));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&tx));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&tw));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&ty));
    CHECK_QDNN(qdnnSetTensorDescriptor(tx, QDNN_DATA_F16, 2, (const int64_t[]){m, K}, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(tw, QDNN_DATA_F16, 3, (const int64_t[]){EXPERTS, OF_EXPERT, K}, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(ty, QDNN_DATA_F32, 2, (const int64_t[]){m, OF_EXPERT}, NULL));
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_PREPACKED, prepacked));
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_EXPERTS, EXPERTS));
    qdnnBinding_t both[2] = {{.operand = QDNN_OPERAND_CODES, .pointer = s->codes},
                             {.operand = QDNN_OPERAND_REPACKED, .pointer = packed}};
    if (prepacked && CHECK_QDNN(qdnnCreatePrepackPlan(s->handle, s->matmul, tw, s->quant, &plan)))
        run_plan(s, plan, both, 2);
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_X, .pointer = x};
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_EXPERT_INDEX, .pointer = experts};
    b[n++] = (qdnnBinding_t){.operand = QDNN_OPERAND_Y, .pointer = out};
    if (CHECK_QDNN(qdnnCreateMatmulPlan(s->handle, s->matmul, tx, tw, s->quant, ty, &plan)) &&
        run_plan(s, plan, b, n))
        CHECK_QDNN(qdnnCopyToHost(s->handle, y, out, (size_t)m * OF_EXPERT * 4));
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_EXPERTS, 0));
    void *all[] = {x, experts, out, packed};
    for (int i = 0; i < LENGTH(all); i++)
        qdnnFree(s->handle, all[i]);
    qdnnDestroyTensorDescriptor(tx);
    qdnnDestroyTensorDescriptor(tw);
    qdnnDestroyTensorDescriptor(ty);
}

/* Rows by experts are those of the product with the whole stack, bit for bit: ragged experts, all rows on one, an empty one,
 * and rows that name none. */
DEVICE_EACH(TensorLaws, ExpertsAreTheirProducts, kind_count, kind_name)
{
    enum { M = 45 };
    static const char *const sms[] = {"sm_120", "sm_80", "sm_75"};
    static const int32_t strange[] = {-1, EXPERTS, INT32_MAX};
    static float whole[M * N], grouped[M * OF_EXPERT], expected[M * OF_EXPERT];
    scene s;
    if (!scene_begin(&s, &kinds[index], sms[index % LENGTH(sms)]))
        return;
    product(&s, AS_STORED, 0, M, whole);
    for (int way = 0; way < 2; way++) {
        int32_t experts[M];
        for (int m = 0; m < M; m++) {
            experts[m] = way             ? EXPERTS - 1
                         : m % 11 == 7   ? strange[m % 3]
                         : m * m % 7 < 4 ? 3
                                         : m % 2; /* none on 2 */
            const bool known = experts[m] >= 0 && experts[m] < EXPERTS;
            for (int n = 0; n < OF_EXPERT; n++) {
                const uint32_t nan = 0x7FFFFFFF;
                if (known)
                    expected[m * OF_EXPERT + n] = whole[m * N + experts[m] * OF_EXPERT + n];
                else
                    memcpy(&expected[m * OF_EXPERT + n], &nan, 4);
            }
        }
        for (int prepacked = 0; prepacked <= s.kind->prepacks; prepacked++) {
            product_of_experts(&s, prepacked, M, experts, grouped);
            CHECK_EQ_MEM(grouped, expected, sizeof expected);
        }
    }
    scene_end(&s);
}

/* ---- What plans say, and what is refused ---- */

static qdnnStatus_t plan_of(const scene *s, qdnnDataType_t x, int64_t m, qdnnPlan_t *plan)
{
    qdnnTensorDescriptor_t tx = NULL, ty = NULL;
    CHECK_QDNN(qdnnCreateTensorDescriptor(&tx));
    CHECK_QDNN(qdnnCreateTensorDescriptor(&ty));
    CHECK_QDNN(qdnnSetTensorDescriptor(tx, x, 2, (const int64_t[]){m, K}, NULL));
    CHECK_QDNN(qdnnSetTensorDescriptor(ty, x, 2, (const int64_t[]){m, N}, NULL));
    qdnnStatus_t status = qdnnCreateMatmulPlan(s->handle, s->matmul, tx, s->w, s->quant, ty, plan);
    qdnnDestroyTensorDescriptor(tx);
    qdnnDestroyTensorDescriptor(ty);
    return status;
}

static void check_choice(const scene *s, qdnnMath_t math, qdnnDataType_t x, int64_t m, const char *part)
{
    qdnnPlan_t plan = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    CHECK_QDNN(qdnnSetMatmulAttribute(s->matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_AUTO));
    CHECK_QDNN(qdnnSetMath(s->handle, math));
    CHECK_QDNN(plan_of(s, x, m, &plan));
    CHECK_QDNN(qdnnGetPlanInfo(plan, &info));
    CHECK_HAS(info.choice, part);
    qdnnDestroyPlan(plan);
}

/* By the type of x alone, and what the handle asks for: never by the rows. */
DEVICE_CASE(TensorLaws, AutoChoosesByTheTypeOfX)
{
    static const char tensor[] =
        "tensor: the same bits in every batch, on sm_90; the model is measured; AUTO; kernel stored",
                      asked[] = "; AUTO, and the handle asks for QDNN_MATH_EXACT; kernel ";
    NEED_SM("sm_90");
    scene s;
    if (!scene_begin(&s, &kinds[0], "sm_90"))
        return;
    for (int experts = 0; experts <= 8; experts += 8) {
        if (experts)
            CHECK_QDNN(qdnnSetTensorDescriptor(s.w, QDNN_DATA_F16, 3, (const int64_t[]){8, N, K}, NULL));
        CHECK_QDNN(qdnnSetMatmulAttribute(s.matmul, QDNN_MATMUL_EXPERTS, experts));
        for (int64_t m = 1; m <= 64; m *= 64) {
            check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_F16, m, tensor);
            check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_BF16, m, tensor);
            check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_F32, m, "; AUTO, as x is f32; kernel ");
            check_choice(&s, QDNN_MATH_EXACT, QDNN_DATA_F16, m, asked);
            check_choice(&s, QDNN_MATH_EXACT, QDNN_DATA_F32, m, asked);
        }
    }
    check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_F16, 64, "rows, for up to 64 rows sorted by expert on ");
    scene_end(&s);
}

DEVICE_CASE(TensorLaws, AutoIsExactWhereTheSmLacksTheInstruction)
{
    NEED_SM("sm_75");
    scene s;
    if (!scene_begin(&s, &kinds[0], "sm_75"))
        return;
    check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_F16, 64, "tensor: the same bits in every batch, on sm_75");
    check_choice(&s, QDNN_MATH_FAMILY, QDNN_DATA_BF16, 64,
                 "; AUTO, as the SM has no tensor cores for x; kernel ");
    scene_end(&s);
}

static void check_refused(const scene *s, qdnnDataType_t x, const char *part)
{
    qdnnPlan_t plan = NULL;
    char text[512];
    CHECK_EQ_I64(plan_of(s, x, 3, &plan), QDNN_STATUS_NOT_SUPPORTED);
    qdnnGetLastErrorString(text, sizeof text);
    CHECK_HAS(text, part);
}

DEVICE_CASE(TensorLaws, RefusalsSayWhatWouldDo)
{
    NEED_SM("sm_75");
    scene s;
    if (!scene_begin(&s, &kinds[0], "sm_75"))
        return;
    CHECK_QDNN(qdnnSetMatmulAttribute(s.matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_TENSOR));
    check_refused(&s, QDNN_DATA_BF16, "x is bf16, for which sm_75 has no tensor cores; fix: give x in f16");
    check_refused(&s, QDNN_DATA_F32, "x is f32, and QDNN_MATMUL_TENSOR takes f16 or bf16; fix: convert x");
    CHECK_QDNN(qdnnSetMatmulAttribute(s.matmul, QDNN_MATMUL_PREPACKED, 1));
    CHECK_QDNN(qdnnSetQuantAttribute(s.quant, QDNN_QUANT_GROUP_SIZE, 24));
    check_refused(&s, QDNN_DATA_F16, "prepacked weights must have a group size that is a multiple of 16");
    scene_end(&s);
}
