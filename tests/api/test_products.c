/* Products, grouped products, LoRA and schedules as a program uses them: captured into graphs, with fewer
 * rows, with wrong arguments, without memory. The weights are small numbers, so that every sum is exact. */
#include <stdio.h>
#include <string.h>

#include "cuda/driver.h"
#include "device/small_product.h"
#include "scene.h"

void cuda_close_all(void); /* driver/cuda/open.h, which declares the driver's types anew */

/* The driver is the program's, and the library opens the same. */
#define SETTINGS                                                                                             \
    "QDNN_DEVICE=cuda QDNN_LIBCUDA=" QDNN_BINARY_DIR                                                         \
    "/ptxvm/libcuda.so.1 QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= "                                                \
    "QDNN_LOGLEVEL= PTXVM_SM= PTXVM_FAULT= PTXVM_DEVICES= PTXVM_CHECK=all"

enum { M = 5, N = 4, K = 8, EXPERTS = 3, RANK = 2 };

/* ---- Three products: x W, a stack of experts, and LoRA ---- */

typedef enum { PLAIN, GROUPED, LORA, KINDS } kind;

typedef struct numbers {
    float x[M * K], w[EXPERTS * N * K], a[K * RANK], b[RANK * N], expected[M * N];
    int32_t expert[M];
} numbers;

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((i * 7 + seed * 5) % 9 - 4);
}

/* Small integers: every order of every sum gives the same. */
static float dot(const numbers *d, kind k, int m, int n)
{
    const float *w = d->w + (k == GROUPED ? d->expert[m] * N * K : 0) + n * K;
    float sum = 0;
    for (int i = 0; i < K; i++)
        sum += d->x[m * K + i] * w[i];
    for (int r = 0; r < RANK && k == LORA; r++) {
        float t = 0;
        for (int i = 0; i < K; i++)
            t += d->x[m * K + i] * d->a[i * RANK + r];
        sum += 0.5f * t * d->b[r * N + n];
    }
    return sum;
}

static void numbers_make(numbers *d, kind k, int seed)
{
    fill(d->x, M * K, seed);
    fill(d->w, EXPERTS * N * K, seed + 1);
    fill(d->a, K * RANK, seed + 2);
    fill(d->b, RANK * N, seed + 3);
    for (int m = 0; m < M; m++)
        d->expert[m] = (m * 2 + seed) % EXPERTS;
    for (int i = 0; i < M * N; i++)
        d->expected[i] = dot(d, k, i / N, i % N);
}

static bool put(small_product *p, kind k, const numbers *d)
{
    bool ok = small_product_put(p, QDNN_OPERAND_X, d->x, sizeof d->x) &&
              small_product_put(p, QDNN_OPERAND_CODES, d->w, sizeof d->w / (k == GROUPED ? 1 : EXPERTS));
    if (k == GROUPED)
        ok = ok && small_product_put(p, QDNN_OPERAND_EXPERT_INDEX, d->expert, sizeof d->expert);
    if (k == LORA)
        ok = ok && small_product_put(p, QDNN_OPERAND_LORA_A, d->a, sizeof d->a) &&
             small_product_put(p, QDNN_OPERAND_LORA_B, d->b, sizeof d->b);
    return ok;
}

static bool begin(small_product *p, qdnnHandle_t handle, kind k, const numbers *d)
{
    bool ok = small_product_begin(p, handle, (const int64_t[]){M, N, K}, k == GROUPED ? EXPERTS : 0,
                                  (small_weights){QDNN_WEIGHTS_F32, 0, false});
    if (k == LORA)
        ok = ok && small_product_set(p, QDNN_MATMUL_LORA_RANK, RANK) &&
             small_product_set(p, QDNN_MATMUL_LORA_TYPE, QDNN_DATA_F32) &&
             CHECK_QDNN(qdnnSetMatmulLoraScale(p->matmul, 0.5f));
    return ok && put(p, k, d) && small_product_plan(p);
}

static int kind_count(void)
{
    return KINDS;
}

static void kind_name(int index, char *text, size_t size)
{
    static const char *const names[KINDS] = {"plain", "grouped", "lora"};
    snprintf(text, size, "%s", names[index]);
}

/* ---- Graphs ---- */

static bool open_driver(CUstream *stream)
{
    cuda_close_all();
    return driver_open_context(SETTINGS) && CU(cu.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

static void close_driver(void)
{
    cuda_close_all();
    driver_close();
}

static bool end_capture(CUstream stream, CUgraphExec *exec)
{
    CUgraph graph = NULL;
    bool ok = CU(cu.cuStreamEndCapture(stream, &graph)) && CU(cu.cuGraphInstantiateWithFlags(exec, graph, 0));
    CU(cu.cuGraphDestroy(graph));
    return ok;
}

/* Replays with other data in the same buffers: the first `rows` rows are written, the others stay as they were. */
static void replay(small_product *p, kind k, CUgraphExec exec, CUstream stream, int rows)
{
    numbers d;
    float y[M * N], before[M * N];
    for (int seed = 30; seed < 33; seed++) {
        numbers_make(&d, k, seed);
        fill(before, M * N, seed);
        device_buffer_write(&p->at[QDNN_OPERAND_X], d.x);
        device_buffer_write(&p->at[QDNN_OPERAND_CODES], d.w);
        device_buffer_write(&p->at[QDNN_OPERAND_Y], before);
        if (k == GROUPED)
            device_buffer_write(&p->at[QDNN_OPERAND_EXPERT_INDEX], d.expert);
        if (k == LORA) {
            device_buffer_write(&p->at[QDNN_OPERAND_LORA_A], d.a);
            device_buffer_write(&p->at[QDNN_OPERAND_LORA_B], d.b);
        }
        CU(cu.cuGraphLaunch(exec, stream));
        OK(qdnnSynchronize(p->handle));
        if (!small_product_result(p, y))
            return;
        CHECK_EQ_MEM(y, d.expected, (size_t)(rows * N) * sizeof(float));
        CHECK_EQ_MEM(y + rows * N, before + rows * N, (size_t)((M - rows) * N) * sizeof(float));
    }
}

/* A plan for up to M rows, captured with each number of rows. */
TEST_EACH(ApiProducts, FewerRowsInAGraph, kind_count, kind_name)
{
    NEED_PTXVM;
    CUstream stream = NULL;
    qdnnHandle_t handle = NULL;
    numbers d;
    numbers_make(&d, (kind)index, 1);
    REQUIRE(open_driver(&stream));
    OK(qdnnCreate(&handle));
    OK(qdnnSetStream(handle, stream));
    small_product p;
    if (begin(&p, handle, (kind)index, &d))
        for (int rows = 0; rows <= M; rows++) {
            qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
            CUgraphExec exec = NULL;
            int count = small_product_bind(&p, bindings);
            test_push_note("rows %d", rows);
            CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            OK(qdnnExecuteRows(handle, p.plan, rows, bindings, count, device_buffer_at(&p.workspace),
                               p.workspace.bytes));
            if (end_capture(stream, &exec)) {
                replay(&p, (kind)index, exec, stream, rows);
                CU(cu.cuGraphExecDestroy(exec));
            }
            test_pop_note();
        }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    close_driver();
}

/* ---- Expert indices ---- */

TEST_CASE(ApiProducts, IndicesAreCheckedOnRequest)
{
    NEED_PTXVM;
    static const int32_t wrong[] = {-1, EXPERTS, INT32_MAX, INT32_MIN};
    numbers d;
    small_product p;
    qdnnHandle_t handle = NULL;
    float y[M * N];
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    numbers_make(&d, GROUPED, 1);
    bool ok = small_product_begin(&p, handle, (const int64_t[]){M, N, K}, EXPERTS,
                                  (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
              small_product_set(&p, QDNN_MATMUL_CHECK_INDICES, 1) && put(&p, GROUPED, &d) &&
              small_product_plan(&p);
    if (ok && small_product_run(&p, y))
        CHECK_EQ_MEM(y, d.expected, sizeof y);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0] && ok; i++) {
        char sentence[128];
        int32_t expert[M];
        memcpy(expert, d.expert, sizeof expert);
        expert[3] = wrong[i];
        device_buffer_write(&p.at[QDNN_OPERAND_EXPERT_INDEX], expert);
        CHECK_STATUS_IS(small_product_execute(&p, -1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        snprintf(sentence, sizeof sentence, "QDNN_OPERAND_EXPERT_INDEX has %d for row 3; it must be 0 to 2",
                 (int)wrong[i]);
        CHECK_HAS(last_sentence(), sentence);
        OK(small_product_execute(&p, 3)); /* that row is not executed */
    }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Many rows, the last of which is wrong: every index is checked, a part at a time. */
TEST_CASE(ApiProducts, TheLastIndexIsChecked)
{
    NEED_PTXVM;
    enum { MANY = 2500 };
    static float x[MANY], w[2] = {1, 2};
    static int32_t expert[MANY];
    small_product p;
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    expert[MANY - 1] = 2;
    if (small_product_begin(&p, handle, (const int64_t[]){MANY, 1, 1}, 2,
                            (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
        small_product_set(&p, QDNN_MATMUL_CHECK_INDICES, 1) &&
        small_product_put(&p, QDNN_OPERAND_X, x, sizeof x) &&
        small_product_put(&p, QDNN_OPERAND_CODES, w, sizeof w) &&
        small_product_put(&p, QDNN_OPERAND_EXPERT_INDEX, expert, sizeof expert) && small_product_plan(&p)) {
        CHECK_STATUS_IS(small_product_execute(&p, -1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_HAS(last_sentence(), "has 2 for row 2499; it must be 0 to 1");
        OK(small_product_execute(&p, MANY - 1));
    }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Without checking: rows of NaN, every bit of them canonical, and the other rows as they should be. */
TEST_CASE(ApiProducts, WrongIndicesGiveNan)
{
    NEED_PTXVM;
    static const int32_t wrong[M] = {-1, 1, EXPERTS, INT32_MIN, 0};
    numbers d;
    small_product p;
    qdnnHandle_t handle = NULL;
    uint32_t y[M * N];
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    numbers_make(&d, GROUPED, 1);
    memcpy(d.expert, wrong, sizeof wrong);
    if (begin(&p, handle, GROUPED, &d) && small_product_run(&p, (float *)(void *)y))
        for (int i = 0; i < M * N; i++) {
            uint32_t bits;
            bool known = wrong[i / N] >= 0 && wrong[i / N] < EXPERTS;
            float number = known ? dot(&d, GROUPED, i / N, i % N) : 0;
            memcpy(&bits, &number, sizeof bits);
            CHECK_EQ_U32(y[i], known ? bits : 0x7FFFFFFFu);
        }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* A capture cannot wait for indices: the execute reports it, and the capture continues. */
TEST_CASE(ApiProducts, CheckingIsRefusedInACapture)
{
    NEED_PTXVM;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    qdnnHandle_t handle = NULL;
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    numbers d;
    small_product p;
    numbers_make(&d, GROUPED, 1);
    REQUIRE(open_driver(&stream));
    OK(qdnnCreate(&handle));
    OK(qdnnSetStream(handle, stream));
    if (small_product_begin(&p, handle, (const int64_t[]){M, N, K}, EXPERTS,
                            (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
        small_product_set(&p, QDNN_MATMUL_CHECK_INDICES, 1) && put(&p, GROUPED, &d) &&
        small_product_plan(&p)) {
        int count = small_product_bind(&p, bindings);
        CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CHECK_STATUS_IS(
            qdnnExecute(handle, p.plan, bindings, count, device_buffer_at(&p.workspace), p.workspace.bytes),
            QDNN_STATUS_EXECUTION_FAILED);
        CHECK_HAS(last_sentence(),
                  "QDNN_MATMUL_CHECK_INDICES is 1, and the handle's stream is being captured");
        CU(cu.cuStreamEndCapture(stream, &graph));
        CU(cu.cuGraphDestroy(graph));
    }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    close_driver();
}

/* ---- What cannot be ---- */

static void check_refused(small_product *p, qdnnStatus_t status, const char *sentence)
{
    qdnnPlan_t plan = NULL;
    CHECK_STATUS_IS(qdnnCreateMatmulPlan(p->handle, p->matmul, p->x, p->w, p->quant, p->y, &plan), status);
    CHECK_HAS(last_sentence(), sentence);
    CHECK(plan == NULL);
}

TEST_CASE(ApiProducts, StacksAndLoraThatCannotBe)
{
    NEED_PTXVM;
    small_product p;
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    if (small_product_begin(&p, handle, (const int64_t[]){M, N, K}, EXPERTS,
                            (small_weights){QDNN_WEIGHTS_F32, 0, false})) {
        small_product_set(&p, QDNN_MATMUL_LORA_RANK, 4);
        check_refused(&p, QDNN_STATUS_NOT_SUPPORTED,
                      "fix: LoRA takes one matrix of weights: set one of the two to 0");
        small_product_set(&p, QDNN_MATMUL_LORA_RANK, 0);
        small_product_set(&p, QDNN_MATMUL_EXPERTS, EXPERTS + 1);
        check_refused(&p, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "w has 3 matrices, and QDNN_MATMUL_EXPERTS is 4");
        small_product_set(&p, QDNN_MATMUL_EXPERTS, 0);
        check_refused(&p, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "w has 3 dimensions; it must have 2");
        OK(qdnnSetTensorDescriptor(p.w, QDNN_DATA_F32, 2, (const int64_t[]){N, K}, NULL));
        small_product_set(&p, QDNN_MATMUL_CHECK_INDICES, 1);
        check_refused(&p, QDNN_STATUS_BAD_PARAM, "there are no indices to check");
        small_product_set(&p, QDNN_MATMUL_CHECK_INDICES, 0);
        small_product_set(&p, QDNN_MATMUL_LORA_RANK, 1 << 20);
        OK(qdnnSetTensorDescriptor(p.x, QDNN_DATA_F32, 2, (const int64_t[]){INT64_C(1) << 50, K}, NULL));
        OK(qdnnSetTensorDescriptor(p.y, QDNN_DATA_F32, 2, (const int64_t[]){INT64_C(1) << 50, N}, NULL));
        check_refused(&p, QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "QDNN_MATMUL_LORA_RANK is 1048576, with M = 1125899906842624; fix: ");
        small_product_set(&p, QDNN_MATMUL_LORA_RANK, 0);
        OK(qdnnSetTensorDescriptor(p.x, QDNN_DATA_F32, 2, (const int64_t[]){M, K}, NULL));
        OK(qdnnSetTensorDescriptor(p.y, QDNN_DATA_F32, 2, (const int64_t[]){2 * M, N}, NULL));
        small_product_set(&p, QDNN_MATMUL_SLOTS, 2);
        check_refused(&p, QDNN_STATUS_BAD_PARAM,
                      "QDNN_MATMUL_SLOTS is 2, and QDNN_MATMUL_EXPERTS is 0; slots belong to a grouped product");
        small_product_set(&p, QDNN_MATMUL_SLOTS, 1);
        small_product_set(&p, QDNN_MATMUL_EXPERTS, 2);
        check_refused(&p, QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                      "w has 2 dimensions; it must have 3, the experts first");
        CHECK_STATUS_IS(qdnnSetMatmulAttribute(p.matmul, QDNN_MATMUL_EXPERTS, -1),
                        QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_STATUS_IS(qdnnSetMatmulAttribute(p.matmul, QDNN_MATMUL_LORA_TYPE, QDNN_DATA_I4),
                        QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}

static const struct {
    const char *name, *variable;
    qdnnStatus_t status;
    qdnnMath_t math;
} maths[] = {{"unset", "QDNN_MATH=", QDNN_STATUS_SUCCESS, QDNN_MATH_FAMILY},
             {"family", "QDNN_MATH=family", QDNN_STATUS_SUCCESS, QDNN_MATH_FAMILY},
             {"exact", "QDNN_MATH=exact", QDNN_STATUS_SUCCESS, QDNN_MATH_EXACT},
             {"typo", "QDNN_MATH=Exact", QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, QDNN_MATH_FAMILY}};

static int math_count(void)
{
    return sizeof maths / sizeof maths[0];
}

static void math_name(int index, char *name, size_t size)
{
    snprintf(name, size, "%s", maths[index].name);
}

/* A handle begins with what the environment says, and a call changes it. */
TEST_EACH(ApiProducts, MathOfHandles, math_count, math_name)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    qdnnMath_t math = (qdnnMath_t)77;
    vm_begin(maths[index].variable);
    CHECK_STATUS_IS(qdnnCreate(&handle), maths[index].status);
    if (!handle) {
        CHECK_HAS(last_sentence(), "QDNN_MATH is 'Exact'; it must be family or exact");
    } else {
        OK(qdnnGetMath(handle, &math));
        CHECK_EQ_I64(math, maths[index].math);
        for (int other = QDNN_MATH_FAMILY; other <= QDNN_MATH_EXACT; other++) {
            OK(qdnnSetMath(handle, (qdnnMath_t)other));
            OK(qdnnGetMath(handle, &math));
            CHECK_EQ_I64(math, other);
        }
        CHECK_STATUS_IS(qdnnSetMath(handle, (qdnnMath_t)2), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_HAS(last_sentence(), "math is 2; it must be QDNN_MATH_FAMILY or QDNN_MATH_EXACT");
        OK(qdnnGetMath(handle, &math));
        CHECK_EQ_I64(math, QDNN_MATH_EXACT);
        OK(qdnnDestroy(handle));
    }
    vm_end();
}

/* What only tensor cores compute is refused where the handle asks for one answer on every SM: the error names both settings. */
TEST_CASE(ApiProducts, ExactMathRefusesWhatNeedsTensorCores)
{
    static const char both[] =
        "the handle asks for QDNN_MATH_EXACT; fix: set QDNN_MATMUL_ALGORITHM to QDNN_MATMUL_TENSOR, "
        "or call qdnnSetMath with QDNN_MATH_FAMILY";
    static const struct {
        qdnnMatmulAttribute_t attribute;
        int64_t value;
        const char *part;
    } needs[] = {{QDNN_MATMUL_PREPACKED, 1, "QDNN_MATMUL_PREPACKED is 1, which only tensor cores compute"},
                 {QDNN_MATMUL_QUANTIZE_X, QDNN_DATA_F8E4M3,
                  "x is to be quantized to f8e4m3, which only tensor cores"}};
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    vm_begin("QDNN_MATH=exact");
    OK(qdnnCreate(&handle));
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        small_product p;
        if (small_product_begin(&p, handle, (const int64_t[]){1, N, K}, 0,
                                (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
            small_product_set(&p, needs[i].attribute, needs[i].value)) {
            CHECK_STATUS_IS(qdnnCreateMatmulPlan(handle, p.matmul, p.x, p.w, p.quant, p.y, &p.plan),
                            QDNN_STATUS_NOT_SUPPORTED);
            CHECK_HAS(last_sentence(), needs[i].part);
            CHECK_HAS(last_sentence(), both);
            small_product_set(&p, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT);
            CHECK_STATUS_IS(qdnnCreateMatmulPlan(handle, p.matmul, p.x, p.w, p.quant, p.y, &p.plan),
                            QDNN_STATUS_NOT_SUPPORTED);
            CHECK_HAS(last_sentence(),
                      "fix: set QDNN_MATMUL_ALGORITHM to QDNN_MATMUL_TENSOR or QDNN_MATMUL_AUTO");
        }
        small_product_end(&p);
    }
    OK(qdnnDestroy(handle));
    vm_end();
}

/* The plan says what was chosen, and why. */
TEST_CASE(ApiProducts, PlansSayWhatWasChosen)
{
    NEED_PTXVM;
    numbers d;
    small_product p;
    qdnnPlanInfo_t info = {.size = sizeof info};
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    numbers_make(&d, GROUPED, 1);
    if (begin(&p, handle, GROUPED, &d)) {
        OK(qdnnGetPlanInfo(p.plan, &info));
        CHECK_HAS(info.choice,
                  "exact: the same bits on every SM and in every batch; AUTO, as x is f32; kernel ");
        CHECK_HAS(info.choice, ", for up to 5 rows sorted by expert");
        CHECK_EQ_I64(info.kernels, 2);
    }
    small_product_end(&p);
    if (small_product_begin(&p, handle, (const int64_t[]){1, N, K}, 0,
                            (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
        small_product_set(&p, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT) && small_product_plan(&p)) {
        OK(qdnnGetPlanInfo(p.plan, &info));
        CHECK_HAS(info.choice, "exact: the same bits on every SM and in every batch; as asked for; kernel ");
        CHECK_HAS(info.choice, " with tiles of 1 rows, for up to 1 rows");
    }
    small_product_end(&p);
    OK(qdnnDestroy(handle));
    vm_end();
}
