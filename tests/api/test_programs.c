/* Programs: steps on named tensors, with memory shared by lifetime and a number of rows that each run
 * chooses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "calls.h"
#include "cuda/driver.h"
#include "device/small_product.h"
#include "driver/cuda/nvrtc.h"
#include "scene.h"
#include "support/process.h"
#include "support/random.h"
#include "tools/toolkit.h"

void cuda_close_all(void); /* driver/cuda/open.h, which declares the driver's types anew */

#define SETTINGS                                                                                             \
    "QDNN_DEVICE=cuda QDNN_LIBCUDA=" QDNN_BINARY_DIR                                                         \
    "/ptxvm/libcuda.so.1 QDNN_REQUIRE_GPU= QDNN_BUNDLE_DIR= "                                                \
    "QDNN_LOGLEVEL= PTXVM_SM= PTXVM_FAULT= PTXVM_DEVICES= PTXVM_CHECK=all"

/* A chain of products, h[i + 1] = h[i] W[i]^T, the last of them with the first h as its residual: so that is needed
 * from the beginning to the end. */
enum { ROWS = 5, LINKS = 4, TENSORS = 2 * LINKS + 2 };
static const int64_t widths[LINKS + 1] = {6, 40, 3, 17, 6};

typedef struct chain {
    qdnnHandle_t handle;
    small_product link[LINKS];
    qdnnProgram_t program;
    int h[LINKS + 1], w[LINKS], saved; /* numbers of tensors */
    device_buffer in, out, arena;
    size_t arena_bytes;
} chain;

static bool make_link(chain *c, int i)
{
    float w[64 * 64];
    small_product *p = &c->link[i];
    for (int k = 0; k < widths[i] * widths[i + 1]; k++)
        w[k] = (float)((k * 7 + i * 3) % 11 - 5) / 4;
    return small_product_begin(p, c->handle, (const int64_t[]){ROWS, widths[i + 1], widths[i]}, 0,
                               (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
           (i < LINKS - 1 || small_product_set(p, QDNN_MATMUL_RESIDUAL, 1)) && small_product_plan(p) &&
           small_product_put(p, QDNN_OPERAND_CODES, w, (size_t)(widths[i] * widths[i + 1]) * sizeof *w);
}

/* A tensor of f32, by rows or a matrix. */
static int add_tensor(qdnnProgram_t program, const char *name, qdnnProgramPlace_t place, int64_t rows,
                      int64_t columns, int by_rows)
{
    qdnnTensorDescriptor_t shape = NULL;
    int number = -1;
    OK(qdnnCreateTensorDescriptor(&shape));
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, (const int64_t[]){rows, columns}, NULL));
    OK(qdnnAddTensorToProgram(program, name, place, shape, by_rows, &number));
    OK(qdnnDestroyTensorDescriptor(shape));
    return number;
}

static void add_tensors(chain *c)
{
    char name[16];
    for (int i = 0; i <= LINKS; i++) {
        snprintf(name, sizeof name, "h%d", i);
        c->h[i] = add_tensor(c->program, name,
                             i == 0 || i == LINKS ? QDNN_PROGRAM_EXTERNAL : QDNN_PROGRAM_INTERMEDIATE, ROWS,
                             widths[i], 1);
    }
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        c->w[i] = add_tensor(c->program, name, QDNN_PROGRAM_EXTERNAL, widths[i + 1], widths[i], 0);
    }
    c->saved = add_tensor(c->program, "saved", QDNN_PROGRAM_INTERMEDIATE, ROWS, widths[0], 1);
}

static int bind_link(const chain *c, int i, qdnnProgramBinding_t *bindings)
{
    const int x = i == 0 ? c->saved : c->h[i]; /* the input is copied first */
    bindings[0] = (qdnnProgramBinding_t){QDNN_OPERAND_X, x, 0};
    bindings[1] = (qdnnProgramBinding_t){QDNN_OPERAND_CODES, c->w[i], 0};
    bindings[2] = (qdnnProgramBinding_t){QDNN_OPERAND_Y, c->h[i + 1], 0};
    bindings[3] = (qdnnProgramBinding_t){QDNN_OPERAND_RESIDUAL, c->saved, 0};
    return i == LINKS - 1 ? 4 : 3;
}

static void add_steps(chain *c)
{
    qdnnProgramBinding_t bindings[4];
    char name[16];
    OK(qdnnAddCopyToProgram(c->program, "save", c->saved, c->h[0]));
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "link%d", i);
        const int count = bind_link(c, i, bindings);
        OK(qdnnAddPlanToProgram(c->program, name, c->link[i].plan, 1, bindings, count));
    }
}

static bool make_program(chain *c)
{
    qdnnProgramInfo_t info = {.size = sizeof info};
    if (!CHECK_QDNN(qdnnCreateProgram(c->handle, ROWS, &c->program)))
        return false;
    add_tensors(c);
    add_steps(c);
    if (!CHECK_QDNN(qdnnCompileProgram(c->program)) || !CHECK_QDNN(qdnnGetProgramInfo(c->program, &info)))
        return false;
    c->arena_bytes = info.arenaBytes;
    CHECK_EQ_I64(info.tensors, TENSORS);
    CHECK_EQ_I64(info.steps, LINKS + 1);
    CHECK_EQ_I64(info.maxRows, ROWS);
    return device_buffer_make(c->handle, BUFFER_EXACT, c->arena_bytes, 0, &c->arena);
}

static bool chain_begin(chain *c, qdnnHandle_t handle)
{
    *c = (chain){.handle = handle};
    for (int i = 0; i < LINKS; i++)
        if (!make_link(c, i))
            return false;
    return make_program(c) &&
           device_buffer_make(handle, BUFFER_BANDS, (size_t)(ROWS * widths[0]) * 4, 0, &c->in) &&
           device_buffer_make(handle, BUFFER_BANDS, (size_t)(ROWS * widths[LINKS]) * 4, 0, &c->out);
}

static void chain_end(chain *c)
{
    OK(qdnnDestroyProgram(c->program));
    device_buffer_free(&c->in);
    device_buffer_free(&c->out);
    device_buffer_free(&c->arena);
    for (int i = 0; i < LINKS; i++)
        small_product_end(&c->link[i]);
}

static void fill(float *x, int64_t n, int from)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 13 + from) % 29 - 14) / 8;
}

/* The plans one after another, each with a buffer of its own. */
static void by_plans(chain *c, const float *x, int64_t rows, float *y)
{
    const void *in = NULL;
    for (int i = 0; i < LINKS; i++) {
        small_product *p = &c->link[i];
        qdnnBinding_t bindings[4] = {{QDNN_OPERAND_CODES, device_buffer_at(&p->at[QDNN_OPERAND_CODES]), 0},
                                     {QDNN_OPERAND_Y, device_buffer_at(&p->at[QDNN_OPERAND_Y]), 0}};
        if (i == 0)
            small_product_put(p, QDNN_OPERAND_X, x, (size_t)(ROWS * widths[0]) * 4);
        in = i == 0 ? device_buffer_at(&p->at[QDNN_OPERAND_X]) : in;
        bindings[2] = (qdnnBinding_t){QDNN_OPERAND_X, in, 0};
        bindings[3] =
            (qdnnBinding_t){QDNN_OPERAND_RESIDUAL, device_buffer_at(&c->link[0].at[QDNN_OPERAND_X]), 0};
        OK(qdnnExecuteRows(c->handle, p->plan, rows, bindings, i == LINKS - 1 ? 4 : 3,
                           device_buffer_at(&p->workspace), p->workspace.bytes));
        in = device_buffer_at(&p->at[QDNN_OPERAND_Y]);
    }
    OK(qdnnCopyToHost(c->handle, y, in, (size_t)(rows * widths[LINKS]) * 4));
}

static void point(const chain *c, const void *pointers[TENSORS])
{
    for (int i = 0; i < TENSORS; i++)
        pointers[i] = NULL;
    pointers[c->h[0]] = device_buffer_at(&c->in);
    pointers[c->h[LINKS]] = device_buffer_at(&c->out);
    for (int i = 0; i < LINKS; i++)
        pointers[c->w[i]] = device_buffer_at(&c->link[i].at[QDNN_OPERAND_CODES]);
}

static qdnnStatus_t run(chain *c, int64_t rows)
{
    const void *pointers[TENSORS];
    point(c, pointers);
    return qdnnRunProgram(c->handle, c->program, pointers, TENSORS, rows, device_buffer_at(&c->arena),
                          c->arena_bytes);
}

/* Runs with these rows gives the bits of the plans, and leaves the other rows as they are. */
static void check_rows(chain *c, int64_t rows, int from)
{
    enum { WIDEST = 64 };
    float x[ROWS * WIDEST], y[ROWS * WIDEST], expected[ROWS * WIDEST];
    const size_t bytes = (size_t)(ROWS * widths[LINKS]) * 4;
    fill(x, ROWS * widths[0], from);
    memset(expected, 0x5A, sizeof expected);
    device_buffer_write(&c->in, x);
    device_buffer_write(&c->out, expected);
    by_plans(c, x, rows, expected);
    OK(run(c, rows));
    OK(qdnnCopyToHost(c->handle, y, device_buffer_at(&c->out), bytes));
    CHECK_EQ_MEM(y, expected, bytes);
    device_buffer_check(&c->in, x, "in");
    device_buffer_check(&c->out, expected, "out");
}

TEST_CASE(ApiPrograms, GiveTheBitsOfTheirPlans)
{
    NEED_PTXVM;
    chain c;
    qdnnHandle_t handle = NULL;
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle))
        for (int64_t rows = 0; rows <= ROWS; rows++) {
            test_push_note("%lld rows", (long long)rows);
            check_rows(&c, rows, (int)rows);
            test_pop_note();
        }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* From sm_90 on, kernels begin before the one in front of them has ended, here in orders that a seed decides. */
static const struct {
    const char *name, *settings;
} overlaps[] = {{"sm_90", "PTXVM_SM=sm_90 PTXVM_CHECK=all"},
                {"sm_90 in another order", "PTXVM_SM=sm_90 PTXVM_CHECK=all PTXVM_SEED=3"},
                {"sm_100a in another order", "PTXVM_SM=sm_100a PTXVM_CHECK=all PTXVM_SEED=11"},
                {"sm_120 in another order", "PTXVM_SM=sm_120 PTXVM_CHECK=all PTXVM_SEED=12"},
                {"sm_90 without", "PTXVM_SM=sm_90 PTXVM_CHECK=all QDNN_DEPENDENT_LAUNCH=0"}};

TEST_ROWS(ApiPrograms, OverlapAndGiveTheSameBits, overlaps)
{
    NEED_PTXVM;
    chain c;
    qdnnHandle_t handle = NULL;
    vm_begin(overlaps[index].settings);
    CHECK(calls_watch("vm"));
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle)) {
        calls_reset();
        for (int64_t rows = 1; rows <= ROWS; rows++)
            check_rows(&c, rows, (int)rows);
        CHECK((calls_of(CALL_cuLaunchKernelEx) > 0) == !strstr(overlaps[index].settings, "LAUNCH=0"));
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* What the arena held before does not matter; and the same program runs with other pointers. */
TEST_CASE(ApiPrograms, APoisonedArenaChangesNothing)
{
    NEED_PTXVM;
    chain c;
    qdnnHandle_t handle = NULL;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle))
        for (int turn = 0; turn < 3; turn++) {
            OK(qdnnFill(handle, device_buffer_at(&c.arena), (unsigned char)(0xFF - turn), c.arena_bytes));
            check_rows(&c, ROWS - turn, turn);
            device_buffer_free(&c.arena); /* in another place */
            device_buffer_make(handle, BUFFER_BANDS, c.arena_bytes, 16 * (size_t)(turn + 1), &c.arena);
        }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Two programs of the same plans and the same weights, one of them without its first steps. */
TEST_CASE(ApiPrograms, ShareWeightsAndPlans)
{
    NEED_PTXVM;
    enum { COLUMNS = 3 };
    chain c;
    qdnnHandle_t handle = NULL;
    qdnnProgram_t tail = NULL;
    float x[ROWS * COLUMNS], y[ROWS * 17], expected[ROWS * 17];
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle)) {
        OK(qdnnCreateProgram(handle, ROWS, &tail));
        const int in = add_tensor(tail, "in", QDNN_PROGRAM_EXTERNAL, ROWS, COLUMNS, 1),
                  w = add_tensor(tail, "w", QDNN_PROGRAM_EXTERNAL, 17, COLUMNS, 0),
                  out = add_tensor(tail, "out", QDNN_PROGRAM_EXTERNAL, ROWS, 17, 1);
        const qdnnProgramBinding_t bindings[] = {
            {QDNN_OPERAND_X, in, 0}, {QDNN_OPERAND_CODES, w, 0}, {QDNN_OPERAND_Y, out, 0}};
        OK(qdnnAddPlanToProgram(tail, NULL, c.link[2].plan, 1, bindings, 3));
        for (int i = 0; i < LINKS; i++) { /* the programs keep them */
            OK(qdnnDestroyPlan(c.link[i].plan));
            c.link[i].plan = NULL;
        }
        OK(qdnnCompileProgram(tail));
        fill(x, ROWS * COLUMNS, 3);
        device_buffer_write(&c.out, (float[ROWS * 6]){0});
        small_product_put(&c.link[2], QDNN_OPERAND_X, x, sizeof x);
        const void *pointers[] = {device_buffer_at(&c.link[2].at[QDNN_OPERAND_X]),
                                  device_buffer_at(&c.link[2].at[QDNN_OPERAND_CODES]),
                                  device_buffer_at(&c.link[2].at[QDNN_OPERAND_Y])};
        OK(qdnnRunProgram(handle, tail, pointers, 3, ROWS, NULL, 0));
        OK(qdnnCopyToHost(handle, y, pointers[2], sizeof y));
        for (int i = 0; i < ROWS * 17; i++) { /* eighths times quarters: exact in any order */
            expected[i] = 0;
            for (int k = 0; k < COLUMNS; k++)
                expected[i] +=
                    x[i / 17 * COLUMNS + k] * ((float)(((i % 17 * COLUMNS + k) * 7 + 2 * 3) % 11 - 5) / 4);
        }
        CHECK_EQ_MEM(y, expected, sizeof y);
        CHECK_STATUS_IS(qdnnDestroy(handle), QDNN_STATUS_BAD_PARAM);
        CHECK_HAS(last_sentence(), "schedules (0) and programs (2); destroy them before it");
        OK(qdnnDestroyProgram(tail));
        OK(run(&c, ROWS));
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- The arena ---- */

typedef struct lifetime {
    int first, last;
    size_t offset, bytes;
} lifetime;

static lifetime lifetime_of(qdnnProgram_t program, int tensor)
{
    qdnnProgramTensorInfo_t info = {.size = sizeof info};
    OK(qdnnGetProgramTensorInfo(program, tensor, &info));
    return (lifetime){info.firstStep, info.lastStep, info.offset, info.bytes};
}

static void check_apart(const lifetime *a, const lifetime *b)
{
    const bool at_once = a->first <= b->last && b->first <= a->last;
    const bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
    if (at_once && !apart && a->first >= 0 && b->first >= 0)
        FAIL("steps %d to %d at %zu and steps %d to %d at %zu overlap", a->first, a->last, a->offset,
             b->first, b->last, b->offset);
}

/* Random copies and fills: no two tensors that live at the same time share memory, and the arena is no larger than it
 * has to be by much. */
TEST_CASE(ApiPrograms, TensorsThatLiveAtOnceDoNotOverlap)
{
    NEED_PTXVM;
    enum { COUNT = 40, STEPS = 90, TURNS = 20 };
    qdnnHandle_t handle = NULL;
    uint64_t random = 20;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    for (int turn = 0; turn < TURNS; turn++) {
        qdnnProgram_t program = NULL;
        qdnnProgramInfo_t info = {.size = sizeof info};
        lifetime lives[COUNT];
        bool written[COUNT] = {0};
        char name[16];
        OK(qdnnCreateProgram(handle, 1, &program));
        for (int i = 0; i < COUNT; i++) {
            snprintf(name, sizeof name, "t%d", i);
            add_tensor(program, name, QDNN_PROGRAM_INTERMEDIATE, 1, (int64_t)(random_next(&random) % 5) * 100,
                       0);
        }
        for (int i = 0; i < STEPS; i++) {
            const int to = (int)(random_next(&random) % COUNT), from = (int)(random_next(&random) % COUNT);
            const int near = (i * COUNT / STEPS + to % 6) % COUNT; /* short lives */
            if (!written[from] || near == from ||
                qdnnAddCopyToProgram(program, NULL, near, from) != QDNN_STATUS_SUCCESS)
                OK(qdnnAddFillToProgram(program, NULL, near, 0));
            written[near] = true;
        }
        OK(qdnnCompileProgram(program));
        OK(qdnnGetProgramInfo(program, &info));
        size_t busiest = 0, sum = 0;
        for (int i = 0; i < COUNT; i++) {
            lives[i] = lifetime_of(program, i);
            CHECK(lives[i].first < 0 || lives[i].offset + lives[i].bytes <= info.arenaBytes);
            CHECK(lives[i].offset % 256 == 0);
            for (int k = 0; k < i; k++)
                check_apart(&lives[i], &lives[k]);
            sum += lives[i].first >= 0 ? (lives[i].bytes + 255) / 256 * 256 : 0;
        }
        for (int step = 0; step < STEPS; step++) {
            size_t now = 0;
            for (int i = 0; i < COUNT; i++)
                now += lives[i].first >= 0 && lives[i].first <= step && step <= lives[i].last
                           ? (lives[i].bytes + 255) / 256 * 256
                           : 0;
            busiest = now > busiest ? now : busiest;
        }
        CHECK_EQ_U64(info.intermediateBytes, sum);
        CHECK(info.arenaBytes >= busiest && info.arenaBytes <= busiest + busiest / 3 + 512);
        OK(qdnnDestroyProgram(program));
    }
    OK(qdnnDestroy(handle));
    vm_end();
}

/* ---- Kernels of one's own ---- */

/* y[i] = x[i] + add for the first rows * 6 numbers. */
static const char adding[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                             ".visible .entry adding(.param .u64 x, .param .u64 y, .param .u32 rows,\n"
                             "                       .param .f32 add)\n{\n"
                             "    .reg .u64 %d<4>;\n    .reg .u32 %r<4>;\n    .reg .f32 %f<4>;\n"
                             "    .reg .pred %p;\n"
                             "    ld.param.u64 %d0, [x];\n    ld.param.u64 %d1, [y];\n"
                             "    ld.param.u32 %r0, [rows];\n    ld.param.f32 %f1, [add];\n"
                             "    mul.lo.u32 %r0, %r0, 6;\n"
                             "    mov.u32 %r1, %ctaid.x;\n    mov.u32 %r2, %ntid.x;\n"
                             "    mov.u32 %r3, %tid.x;\n    mad.lo.u32 %r1, %r1, %r2, %r3;\n"
                             "    setp.ge.u32 %p, %r1, %r0;\n    @%p ret;\n"
                             "    mul.wide.u32 %d2, %r1, 4;\n"
                             "    add.u64 %d0, %d0, %d2;\n    add.u64 %d1, %d1, %d2;\n"
                             "    ld.global.f32 %f0, [%d0];\n    add.rn.f32 %f0, %f0, %f1;\n"
                             "    st.global.f32 [%d1], %f0;\n    ret;\n}\n";
static const char adding_cuda[] =
    "extern \"C\" __global__ void adding(const float *x, float *y, unsigned rows, float add)\n"
    "{\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < rows * 6)\n"
    "        y[i] = x[i] + add;\n"
    "}\n";

static uint64_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* out = (in + 0.5) + 0.25, the sum in between in the arena. */
static void check_kernel(qdnnHandle_t handle, qdnnKernelSource_t source, const char *text, void *function)
{
    qdnnProgram_t program = NULL;
    qdnnProgramInfo_t info = {.size = sizeof info};
    device_buffer in = {0}, out = {0}, arena = {0};
    float x[ROWS * 6], y[ROWS * 6], expected[ROWS * 6];
    OK(qdnnCreateProgram(handle, ROWS, &program));
    const int a = add_tensor(program, "a", QDNN_PROGRAM_EXTERNAL, ROWS, 6, 1),
              b = add_tensor(program, "b", QDNN_PROGRAM_INTERMEDIATE, ROWS, 6, 1),
              c = add_tensor(program, "c", QDNN_PROGRAM_EXTERNAL, ROWS, 6, 1);
    for (int i = 0; i < 2; i++) {
        const qdnnProgramArgument_t arguments[] = {
            {.kind = QDNN_KERNEL_ARGUMENT_READ, .tensor = i ? b : a},
            {.kind = QDNN_KERNEL_ARGUMENT_WRITE, .tensor = i ? c : b},
            {.kind = QDNN_KERNEL_ARGUMENT_ROWS, .bytes = 4},
            {.kind = QDNN_KERNEL_ARGUMENT_NUMBER, .bytes = 4, .value = bits_of(i ? 0.25f : 0.5f)}};
        const qdnnProgramKernel_t kernel = {.size = sizeof kernel,
                                            .source = source,
                                            .text = text,
                                            .entry = "adding",
                                            .function = function,
                                            .grid = {1, 1, 1},
                                            .block = {12, 1, 1},
                                            .rowsPerBlock = 2,
                                            .arguments = arguments,
                                            .count = 4};
        OK(qdnnAddKernelToProgram(program, i ? "second" : "first", &kernel));
    }
    OK(qdnnCompileProgram(program));
    OK(qdnnGetProgramInfo(program, &info));
    CHECK_EQ_U64(info.arenaBytes, 256);
    device_buffer_make(handle, BUFFER_EXACT, sizeof x, 0, &in);
    device_buffer_make(handle, BUFFER_BANDS, sizeof x, 0, &out);
    device_buffer_make(handle, BUFFER_EXACT, info.arenaBytes, 0, &arena);
    fill(x, ROWS * 6, 1);
    device_buffer_write(&in, x);
    for (int rows = 0; rows <= ROWS; rows++) {
        memset(expected, 0x11, sizeof expected);
        device_buffer_write(&out, expected);
        for (int i = 0; i < rows * 6; i++)
            expected[i] = x[i] + 0.75f;
        const void *pointers[] = {device_buffer_at(&in), NULL, device_buffer_at(&out)};
        OK(qdnnRunProgram(handle, program, pointers, 3, rows, device_buffer_at(&arena), info.arenaBytes));
        OK(qdnnCopyToHost(handle, y, pointers[2], sizeof y));
        CHECK_EQ_MEM(y, expected, sizeof y);
    }
    device_buffer_free(&in);
    device_buffer_free(&out);
    device_buffer_free(&arena);
    OK(qdnnDestroyProgram(program));
}

TEST_CASE(ApiPrograms, RunKernelsFromPtx)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    check_kernel(handle, QDNN_SOURCE_PTX, adding, NULL);
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiPrograms, RunKernelsFromCuda)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    if (!nvrtc_found())
        SKIP("NVRTC was not found");
    vm_begin("PTXVM_CHECK=all");
    OK(qdnnCreate(&handle));
    check_kernel(handle, QDNN_SOURCE_CUDA, adding_cuda, NULL);
    OK(qdnnDestroy(handle));
    vm_end();
}

TEST_CASE(ApiPrograms, RunFunctionsOfTheCaller)
{
    NEED_PTXVM;
    qdnnHandle_t handle = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    cuda_close_all();
    REQUIRE(driver_open_context(SETTINGS));
    CU(cu.cuModuleLoadData(&module, adding));
    CU(cu.cuModuleGetFunction(&function, module, "adding"));
    OK(qdnnCreate(&handle));
    check_kernel(handle, QDNN_SOURCE_FUNCTION, NULL, function);
    OK(qdnnDestroy(handle));
    CU(cu.cuModuleUnload(module));
    cuda_close_all();
    driver_close();
}

/* ---- Graphs, threads, the trace ---- */

TEST_CASE(ApiPrograms, CanBeCaptured)
{
    NEED_PTXVM;
    chain c;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    qdnnHandle_t handle = NULL;
    size_t nodes = 0;
    float x[ROWS * 6], y[ROWS * 6], expected[ROWS * 6];
    cuda_close_all();
    REQUIRE(driver_open_context(SETTINGS " QDNN_TRACE=/dev/null"));
    CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(qdnnCreate(&handle));
    OK(qdnnSetStream(handle, stream));
    if (chain_begin(&c, handle)) {
        CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(run(&c, 3));
        CU(cu.cuStreamEndCapture(stream, &graph));
        CU(cu.cuGraphGetNodes(graph, NULL, &nodes));
        CHECK_EQ_I64((int64_t)nodes, LINKS + 1);
        CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        for (int turn = 4; turn < 6; turn++) {
            fill(x, ROWS * 6, turn);
            by_plans(&c, x, 3, expected);
            device_buffer_write(&c.in, x);
            CU(cu.cuGraphLaunch(exec, stream));
            OK(qdnnSynchronize(handle));
            OK(qdnnCopyToHost(handle, y, device_buffer_at(&c.out), 3 * 6 * sizeof *y));
            CHECK_EQ_MEM(y, expected, 3 * 6 * sizeof *y);
        }
        CU(cu.cuGraphExecDestroy(exec));
        CU(cu.cuGraphDestroy(graph));
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    cuda_close_all();
    driver_close();
}

typedef struct worker {
    pthread_t thread;
    chain chain;
    int number, wrong;
} worker;

/* Each thread has its handle and its program; all have the weights of the first. */
static void *work(void *argument)
{
    worker *w = argument;
    const void *pointers[TENSORS];
    float x[ROWS * 6], y[ROWS * 6], again[ROWS * 6];
    fill(x, ROWS * 6, w->number);
    point(&w->chain, pointers);
    w->wrong +=
        qdnnCopyToDevice(w->chain.handle, (void *)(uintptr_t)pointers[w->chain.h[0]], x, sizeof x) != 0;
    for (int turn = 0; turn < 12; turn++) {
        w->wrong += qdnnRunProgram(w->chain.handle, w->chain.program, pointers, TENSORS, ROWS,
                                   device_buffer_at(&w->chain.arena), w->chain.arena_bytes) != 0;
        w->wrong +=
            qdnnCopyToHost(w->chain.handle, turn ? again : y, pointers[w->chain.h[LINKS]], sizeof y) != 0;
        w->wrong += turn && memcmp(y, again, sizeof y) != 0;
    }
    return NULL;
}

TEST_CASE(ApiPrograms, RunInSeveralThreads)
{
    NEED_PTXVM;
    enum { THREADS = 4 };
    static worker workers[THREADS];
    vm_begin(NULL);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
        qdnnHandle_t handle = NULL;
        OK(qdnnCreate(&handle));
        workers[i].number = i;
        REQUIRE(chain_begin(&workers[i].chain, handle));
    }
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        qdnnHandle_t handle = workers[i].chain.handle;
        CHECK_EQ_I64(workers[i].wrong, 0);
        check_rows(&workers[i].chain, ROWS, i);
        chain_end(&workers[i].chain);
        OK(qdnnDestroy(handle));
    }
    vm_end();
}

TEST_CASE(ApiPrograms, TheTraceListsSteps)
{
    NEED_PTXVM;
    chain c;
    char folder[256], path[300], settings[400];
    qdnnHandle_t handle = NULL;
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/trace", folder);
    snprintf(settings, sizeof settings, "QDNN_TRACE=%s", path);
    vm_begin(settings);
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle)) {
        check_rows(&c, 2, 0);
        check_rows(&c, 0, 0);
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
    char *text = toolkit_read_file(path, NULL);
    CHECK(text != NULL);
    if (text) {
        CHECK_HAS(text, "run 1 of a program: 2 rows, 5 steps, ");
        CHECK_HAS(text, "run 2 of a program: 0 rows, 5 steps, ");
        CHECK_HAS(text, " 48 read         48 written  save copy: => saved f32[2, 6], h0 f32[2, 6]\n");
        CHECK_HAS(text, "link0 quant.plain_f32.matmul: saved f32[2, 6], w0 f32[40, 6], => h1 f32[2, 40]\n");
        CHECK_HAS(text, "1008 read        320 written  link0"); /* 2 * 6 * 4 + 40 * 6 * 4; 2 * 40 * 4 */
    }
    free(text);
    temp_dir_remove(folder);
    vm_begin("QDNN_TRACE=/nowhere/at/all");
    OK(qdnnCreate(&handle));
    qdnnProgram_t program = NULL;
    OK(qdnnCreateProgram(handle, 1, &program));
    CHECK_STATUS_IS(qdnnCompileProgram(program), QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "QDNN_TRACE: /nowhere/at/all cannot be opened");
    OK(qdnnDestroyProgram(program));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* The names of both, and how many they are; the sum is written too. */
TEST_CASE(ApiPrograms, TheTraceListsFusedSteps)
{
    NEED_PTXVM;
    enum { WIDTH = 8 };
    const qdnnPointwise_t add = {
        .size = sizeof add, .kind = QDNN_POINTWISE_ADD, .second = QDNN_SECOND_TENSOR};
    const qdnnNorm_t rms = {.size = sizeof rms};
    char folder[256], path[300], settings[400];
    qdnnHandle_t handle = NULL;
    qdnnTensorDescriptor_t shape = NULL;
    qdnnPlan_t sum_plan = NULL, norm_plan = NULL;
    qdnnProgram_t program = NULL;
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/trace", folder);
    snprintf(settings, sizeof settings, "QDNN_TRACE=%s", path);
    vm_begin(settings);
    OK(qdnnCreate(&handle));
    OK(qdnnCreateTensorDescriptor(&shape));
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, (const int64_t[]){ROWS, WIDTH}, NULL));
    OK(qdnnCreatePointwisePlan(handle, &add, shape, NULL, shape, NULL, &sum_plan));
    OK(qdnnCreateNormPlan(handle, &rms, shape, shape, NULL, &norm_plan));
    OK(qdnnCreateProgram(handle, ROWS, &program));
    const int a = add_tensor(program, "a", QDNN_PROGRAM_EXTERNAL, ROWS, WIDTH, 1),
              b = add_tensor(program, "b", QDNN_PROGRAM_EXTERNAL, ROWS, WIDTH, 1),
              sum = add_tensor(program, "sum", QDNN_PROGRAM_EXTERNAL, ROWS, WIDTH, 1),
              y = add_tensor(program, "y", QDNN_PROGRAM_EXTERNAL, ROWS, WIDTH, 1);
    OK(qdnnAddPlanToProgram(program, "add", sum_plan, 1,
                            (const qdnnProgramBinding_t[]){
                                {QDNN_OPERAND_X, a, 0}, {QDNN_OPERAND_B, b, 0}, {QDNN_OPERAND_Y, sum, 0}},
                            3));
    OK(qdnnAddPlanToProgram(program, "norm", norm_plan, 1,
                            (const qdnnProgramBinding_t[]){{QDNN_OPERAND_X, sum, 0}, {QDNN_OPERAND_Y, y, 0}},
                            2));
    OK(qdnnCompileProgram(program));
    const void *pointers[4] = {NULL};
    void *memory = NULL;
    OK(qdnnMalloc(handle, &memory, 4 * ROWS * WIDTH * sizeof(float)));
    OK(qdnnFill(handle, memory, 0, 4 * ROWS * WIDTH * sizeof(float)));
    for (size_t i = 0; i < 4; i++)
        pointers[i] = (char *)memory + i * ROWS * WIDTH * sizeof(float);
    OK(qdnnRunProgram(handle, program, pointers, 4, 2, NULL, 0));
    OK(qdnnDestroyProgram(program));
    OK(qdnnFree(handle, memory));
    OK(qdnnDestroyPlan(sum_plan));
    OK(qdnnDestroyPlan(norm_plan));
    OK(qdnnDestroyTensorDescriptor(shape));
    OK(qdnnDestroy(handle));
    vm_end();
    char *text = toolkit_read_file(path, NULL);
    CHECK(text != NULL);
    if (text) {
        CHECK_HAS(text, "run 1 of a program: 2 rows, 1 steps, ");
        CHECK_HAS(text, "128 read        128 written  add + norm rows.norm, 2 steps fused: a f32[2, 8], b "
                        "f32[2, 8], => sum f32[2, 8], => y f32[2, 8]\n");
    }
    free(text);
    temp_dir_remove(folder);
}

/* ---- Refusals ---- */

#define REFUSED(call, status, sentence)                                                                      \
    do {                                                                                                     \
        CHECK_STATUS_IS(call, status);                                                                       \
        CHECK_HAS(last_sentence(), sentence);                                                                \
    } while (0)

static void refuse_tensors(qdnnProgram_t program)
{
    const int64_t packed[] = {ROWS, 6}, gaps[] = {12, 1};
    qdnnTensorDescriptor_t shape = NULL;
    int number = -7;
    OK(qdnnCreateTensorDescriptor(&shape));
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, packed, NULL));
    REFUSED(qdnnAddTensorToProgram(program, "", QDNN_PROGRAM_EXTERNAL, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM, "name is empty");
    REFUSED(qdnnAddTensorToProgram(program, "h1", QDNN_PROGRAM_EXTERNAL, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM, "tensor 1 is named 'h1' already");
    REFUSED(qdnnAddTensorToProgram(program, "z", (qdnnProgramPlace_t)2, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "place is 2");
    REFUSED(qdnnAddTensorToProgram(program, "z", QDNN_PROGRAM_EXTERNAL, shape, 2, &number),
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "byRows is 2");
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 2, packed, gaps));
    REFUSED(qdnnAddTensorToProgram(program, "z", QDNN_PROGRAM_EXTERNAL, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM, "the shape of 'z' has strides that are not packed");
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_F32, 1, (const int64_t[]){ROWS + 1}, NULL));
    REFUSED(qdnnAddTensorToProgram(program, "z", QDNN_PROGRAM_EXTERNAL, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "the first dimension is 6; that of a tensor by rows is a multiple of the program's 5");
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_I4, 2, (const int64_t[]){ROWS, 3}, NULL));
    REFUSED(qdnnAddTensorToProgram(program, "z", QDNN_PROGRAM_EXTERNAL, shape, 1, &number),
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "a row has 12 bits of i4");
    CHECK_EQ_I64(number, -7);
    OK(qdnnDestroyTensorDescriptor(shape));
}

static void refuse_plans(chain *c, qdnnProgram_t program, qdnnPlan_t fixed, qdnnPlan_t foreign)
{
    const qdnnPlan_t plan = c->link[0].plan;
    const qdnnProgramBinding_t good[] = {
        {QDNN_OPERAND_X, c->h[0], 0}, {QDNN_OPERAND_CODES, c->w[0], 0}, {QDNN_OPERAND_Y, c->h[1], 0}};
    qdnnProgramBinding_t b[3];
    int bytes = -1;
    qdnnTensorDescriptor_t shape = NULL;
    OK(qdnnCreateTensorDescriptor(&shape));
    OK(qdnnSetTensorDescriptor(shape, QDNN_DATA_I32, 2, (const int64_t[]){ROWS, 6}, NULL));
    OK(qdnnAddTensorToProgram(program, "i32", QDNN_PROGRAM_EXTERNAL, shape, 1, &bytes));
    OK(qdnnDestroyTensorDescriptor(shape));
    const int wide = add_tensor(program, "wide", QDNN_PROGRAM_EXTERNAL, ROWS, 80, 1),
              flat = add_tensor(program, "flat", QDNN_PROGRAM_INTERMEDIATE, ROWS, 40, 0);
#define WITH(index, ...) (memcpy(b, good, sizeof b), b[index] = (qdnnProgramBinding_t){__VA_ARGS__}, b)
    REFUSED(qdnnAddPlanToProgram(program, "up", plan, 1, good, 2), QDNN_STATUS_BAD_PARAM,
            "step 0 'up' (quant.plain_f32.matmul): QDNN_OPERAND_Y is missing");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, QDNN_OPERAND_X, 0, 0), 3),
            QDNN_STATUS_BAD_PARAM, "step 0 (quant.plain_f32.matmul): bindings[2] is QDNN_OPERAND_X");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, QDNN_OPERAND_SCALE, 0, 0), 3),
            QDNN_STATUS_BAD_PARAM, "does not take");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, (qdnnOperand_t)99, 0, 0), 3),
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "bindings[2].operand is 99");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, good, 1000), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "count is 1000");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, good, -1), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "count is -1");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, 77, 0), 3),
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "bindings[0].tensor is 77; the program has tensors 0 to ");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, -1, 0), 3),
            QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "bindings[0].tensor is -1");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, bytes, 0), 3),
            QDNN_STATUS_BAD_PARAM,
            "QDNN_OPERAND_X is bound to 'i32', which is i32; the plan was made for f32");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, QDNN_OPERAND_Y, c->h[2], 0), 3),
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "QDNN_OPERAND_Y has 800 bytes, and 'h2' has 60");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, c->h[0], 4), 3),
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "of which the first 4 are skipped");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, wide, SIZE_MAX - 3), 3),
            QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "of which the first");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(0, QDNN_OPERAND_X, wide, 2), 3),
            QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
            "bindings[0].offset is 2; it must be a multiple of the element's 4 bytes");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, QDNN_OPERAND_Y, wide, 0), 3),
            QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "QDNN_OPERAND_Y has 800 bytes, and 'wide' has 5 rows of 320");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 1, WITH(2, QDNN_OPERAND_Y, flat, 0), 3),
            QDNN_STATUS_BAD_PARAM, "'flat', an intermediate tensor that is not by rows");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 0, WITH(2, QDNN_OPERAND_Y, c->w[0], 0), 3),
            QDNN_STATUS_BAD_PARAM, "QDNN_OPERAND_CODES and QDNN_OPERAND_Y are both in 'w0' and overlap");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, 2, good, 3), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "perRow is 2 and the program has up to 5 rows, but the plan was made for 5");
    REFUSED(qdnnAddPlanToProgram(program, NULL, plan, -1, good, 3), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "perRow is -1");
    REFUSED(qdnnAddPlanToProgram(program, NULL, fixed, 1,
                                 (const qdnnProgramBinding_t[]){{QDNN_OPERAND_X, c->h[0], 0},
                                                                {QDNN_OPERAND_SCALE, c->w[0], 0}},
                                 2),
            QDNN_STATUS_BAD_PARAM, "cannot be executed with fewer rows");
    REFUSED(qdnnAddPlanToProgram(program, NULL, foreign, 1, good, 3), QDNN_STATUS_BAD_PARAM,
            "the plan belongs to another handle");
#undef WITH
}

static void refuse_other_steps(chain *c, qdnnProgram_t program)
{
    qdnnProgramArgument_t argument = {.kind = QDNN_KERNEL_ARGUMENT_READ, .tensor = 99};
    const qdnnProgramKernel_t good = {.size = sizeof good,
                                      .text = adding,
                                      .entry = "adding",
                                      .grid = {1, 1, 1},
                                      .block = {1, 1, 1},
                                      .arguments = &argument,
                                      .count = 1};
    qdnnProgramKernel_t k = good;
    REFUSED(qdnnAddCopyToProgram(program, "c", c->h[0], c->h[0]), QDNN_STATUS_BAD_PARAM,
            "step 0 'c' (copy): 'h0' is copied onto itself");
    REFUSED(qdnnAddCopyToProgram(program, "c", c->h[0], c->h[1]), QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            "'h0' has 120 bytes, 24 of them for each row, and 'h1' has 800 and 160");
    REFUSED(qdnnAddCopyToProgram(program, "c", 0, 50), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "from is 50");
    REFUSED(qdnnAddCopyToProgram(program, "c", -1, 0), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "to is -1");
    REFUSED(qdnnAddFillToProgram(program, NULL, 50, 0), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "step 0 (fill): tensor is 50");
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "step 0 'k' (kernel): arguments[0].tensor is 99");
    argument.tensor = c->h[0];
    argument.offset = 121;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "arguments[0].offset is 121; 'h0' has 120 bytes");
    argument = (qdnnProgramArgument_t){.kind = QDNN_KERNEL_ARGUMENT_ROWS, .bytes = 2};
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "arguments[0].bytes is 2");
    argument.kind = (qdnnKernelArgumentKind_t)9;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "arguments[0].kind is 9");
    k.count = QDNN_KERNEL_ARGUMENTS_MAX + 1;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "count is 33");
    k = good;
    k.count = 0;
    k.block[2] = 0;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "kernel->block 1, 1, 0; each must be at least 1");
    k.block[2] = 1;
    k.source = (qdnnKernelSource_t)3;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "kernel->source is 3");
    k.source = QDNN_SOURCE_PTX;
    k.entry = "subtracting";
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME,
            "the text has no kernel subtracting");
    k.text = "nonsense";
    CHECK(qdnnAddKernelToProgram(program, "k", &k) != QDNN_STATUS_SUCCESS);
    CHECK_HAS(last_sentence(), "step 0 'k' (kernel): kernel subtracting");
    k.size = 0;
    REFUSED(qdnnAddKernelToProgram(program, "k", &k), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "kernel->size is 0");
}

static void refuse_runs(chain *c, qdnnHandle_t other)
{
    const void *pointers[TENSORS];
    void *arena = device_buffer_at(&c->arena);
    point(c, pointers);
#define RUN(handle, count, rows, arena, bytes)                                                               \
    qdnnRunProgram(handle, c->program, pointers, count, rows, arena, bytes)
    REFUSED(RUN(other, TENSORS, 1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM,
            "the program belongs to another handle");
    REFUSED(RUN(c->handle, TENSORS - 1, 1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "count is 9; there must be a pointer for each of the 10 tensors");
    REFUSED(RUN(c->handle, TENSORS, ROWS + 1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "rows is 6; the program was made for 0 to 5");
    REFUSED(RUN(c->handle, TENSORS, -1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "rows is -1");
    REFUSED(RUN(c->handle, TENSORS, 1, arena, c->arena_bytes - 1), QDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
            "arenaBytes is");
    REFUSED(RUN(c->handle, TENSORS, 1, NULL, c->arena_bytes), QDNN_STATUS_BAD_PARAM_NULL_POINTER, "arena");
    REFUSED(RUN(c->handle, TENSORS, 1, (char *)arena + 8, c->arena_bytes),
            QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "it must be a multiple of 16");
    pointers[c->w[2]] = (const char *)pointers[c->w[2]] + 2;
    REFUSED(RUN(c->handle, TENSORS, 1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
            "('w2') is 0x");
    pointers[c->w[2]] = NULL;
    REFUSED(RUN(c->handle, TENSORS, 1, arena, c->arena_bytes), QDNN_STATUS_BAD_PARAM_NULL_POINTER,
            "pointers[7] ('w2') is null");
#undef RUN
}

TEST_CASE(ApiPrograms, RefuseWhatDoesNotFit)
{
    NEED_PTXVM;
    chain c;
    qdnnHandle_t handle = NULL, other = NULL;
    qdnnProgram_t program = NULL, good;
    qdnnPlan_t fixed = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    small_product foreign;
    vm_begin(NULL);
    OK(qdnnCreate(&handle));
    OK(qdnnCreate(&other));
    REFUSED(qdnnCreateProgram(handle, 0, &program), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "maxRows is 0");
    if (chain_begin(&c, handle) &&
        small_product_begin(&foreign, other, (const int64_t[]){ROWS, 2, 2}, 0,
                            (small_weights){QDNN_WEIGHTS_F32, 0, false}) &&
        small_product_plan(&foreign)) {
        OK(qdnnCreateQuantDescriptor(&quant));
        OK(qdnnSetQuantDescriptor(quant, QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, 6));
        OK(qdnnCreateScalePlan(handle, c.link[0].x, quant, &fixed));
        OK(qdnnCreateProgram(handle, ROWS, &program));
        good = c.program;
        c.program = program;
        add_tensors(&c);
        refuse_tensors(program);
        refuse_plans(&c, program, fixed, foreign.plan);
        refuse_other_steps(&c, program);
        REFUSED(qdnnRunProgram(handle, program, NULL, 0, 0, NULL, 0), QDNN_STATUS_BAD_PARAM,
                "the program was not compiled");
        qdnnProgramTensorInfo_t info = {.size = sizeof info};
        REFUSED(qdnnGetProgramTensorInfo(program, 100, &info), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                "tensor is 100");
        info.size = 0;
        REFUSED(qdnnGetProgramTensorInfo(program, 0, &info), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "size is 0");
        OK(qdnnAddFillToProgram(program, NULL, c.h[2], 0));
        OK(qdnnAddCopyToProgram(program, "early", c.h[0], c.saved));
        REFUSED(qdnnCompileProgram(program), QDNN_STATUS_BAD_PARAM,
                "step 1 'early' (copy): reads 'saved', which no earlier step writes");
        c.program = good;
        refuse_runs(&c, other);
        OK(qdnnCompileProgram(good)); /* it was, and stays so */
        REFUSED(qdnnAddFillToProgram(good, NULL, 0, 0), QDNN_STATUS_BAD_PARAM, "the program was compiled");
        check_rows(&c, ROWS, 0);
    }
    OK(qdnnDestroyProgram(program));
    OK(qdnnDestroyPlan(fixed));
    OK(qdnnDestroyQuantDescriptor(quant));
    small_product_end(&foreign);
    chain_end(&c);
    OK(qdnnDestroy(other));
    OK(qdnnDestroy(handle));
    vm_end();
}

/* The driver refuses the third launch of a run, which is step 3: the first step is a copy. */
/* The third launch; from sm_90 on, it is the second that begins before the one in front of it has ended. */
static const struct {
    const char *name, *settings;
} failing[] = {{"independent", "PTXVM_SM=sm_80 PTXVM_FAULT=cuLaunchKernel:3=701"},
               {"dependent", "PTXVM_SM=sm_90 PTXVM_FAULT=cuLaunchKernelEx:2=701"}};

TEST_ROWS(ApiPrograms, ALaunchThatFails, failing)
{
    NEED_PTXVM;
    chain c;
    qdnnHandle_t handle = NULL;
    vm_begin(failing[index].settings);
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle)) {
        device_buffer_write(&c.in, (float[ROWS * 6]){0});
        CHECK_STATUS_IS(run(&c, ROWS), QDNN_STATUS_EXECUTION_FAILED);
        CHECK_HAS(last_sentence(), "step 3 'link2' (quant.plain_f32.matmul): quant.plain_f32.matmul: ");
        OK(run(&c, ROWS));
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    vm_end();
}

/* Every allocation fails once; nothing is added, nothing leaks, and the same call then succeeds. */
TEST_CASE(ApiPrograms, SurviveAllocationsThatFail)
{
    NEED_PTXVM;
    enum { STEPS = 40 };
    chain c;
    qdnnHandle_t handle = NULL;
    qdnnProgram_t program = NULL;
    qdnnProgramBinding_t bindings[4];
    int failures = 0;
    vm_begin("QDNN_TRACE=/dev/null");
    blocks_begin();
    OK(qdnnCreate(&handle));
    if (chain_begin(&c, handle)) {
        qdnnProgramInfo_t info = {.size = sizeof info};
        const qdnnProgram_t good = c.program;
        OK(qdnnCreateProgram(handle, ROWS, &program));
        c.program = program;
        add_tensors(&c);
        const int count = bind_link(&c, 1, bindings);
        for (int i = 0; i < STEPS; i++)
            for (int nth = 1; nth <= 4; nth++) {
                blocks_fail(nth);
                const qdnnStatus_t status =
                    qdnnAddPlanToProgram(program, "step", c.link[1].plan, 1, bindings, count);
                blocks_fail(0);
                failures += status == QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED;
                if (status == QDNN_STATUS_SUCCESS)
                    break;
            }
        OK(qdnnGetProgramInfo(program, &info));
        CHECK_EQ_I64(info.steps, STEPS);
        CHECK(failures >= 2 * STEPS);
        c.program = good;
        OK(qdnnDestroyProgram(program));
        failures = 0;
        OK(qdnnCreateProgram(handle, ROWS, &program));
        add_tensor(program, "t", QDNN_PROGRAM_INTERMEDIATE, ROWS, 6, 1);
        OK(qdnnAddFillToProgram(program, NULL, 0, 0));
        for (int nth = 1; nth <= 8; nth++) {
            blocks_fail(nth);
            const qdnnStatus_t status = qdnnCompileProgram(program);
            blocks_fail(0);
            if (status == QDNN_STATUS_SUCCESS)
                break;
            CHECK_STATUS_IS(status, QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED);
            failures++;
        }
        CHECK_EQ_I64(failures, 4); /* items, their order, the trace, its events */
        OK(qdnnDestroyProgram(program));
        check_rows(&c, ROWS, 0);
    }
    chain_end(&c);
    OK(qdnnDestroy(handle));
    CHECK_EQ_I64(blocks_live(), 0);
    blocks_end();
    vm_end();
}
