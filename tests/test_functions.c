/* exp, tanh, erf, sigmoid, silu and gelu: the reference against the exact functions, the emitted instructions on
 * ptxvm against the reference, bit for bit, and results that are known. All 2^32 inputs are compared by
 * `./run bench functions`; here is a sample of them, dense where something changes. */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/functions/function_rows.h"
#include "host_ref/host_ref.h"
#include "device/machine.h"

/* ---- Inputs ---- */

enum { STEP = 65537, NEAR = 256, NEAR_REDUCTION = 8, REDUCTIONS = 152 };

/* Where ranges begin and end, results overflow, underflow or saturate, or numbers are special. */
static const float edges[] = {
    0.0f,       0x1p-126f,  0x1p-64f,   0x1p-24f,   0x1p-12f,   0.2578125f,
    0.5f,       1.0f,       3.8325068f, 3.9192059f, 4.0f,       5.0f,
    8.6643397f, 9.0109129f, 10.0f,      10.6f,      11.0f,      14.0f,
    14.4f,      15.0f,      16.635532f, 17.328679f, 30.0f,      64.0f,
    87.336548f, 88.722839f, 89.0f,      103.2789f,  103.97208f, 104.0f,
    108.0f,     120.0f,     200.0f,     0x1p64f,    0x1p126f,   0x1.fffffep127f,
    INFINITY,
};
#define EDGES (sizeof edges / sizeof edges[0])

typedef struct inputs {
    float *x;
    uint32_t n;
} inputs;

static void add_around(inputs *in, float x, uint32_t radius)
{
    uint32_t first = ref_f32_to_bits(x) - radius; /* around 0 it wraps to the other sign's NaN: fine */
    for (uint32_t i = 0; i <= 2 * radius; i++)
        in->x[in->n++] = ref_f32_from_bits(first + i);
}

static inputs make_inputs(void)
{
    size_t most =
        (1ull << 32) / STEP + 1 + 2 * EDGES * (2 * NEAR + 1) + 4 * REDUCTIONS * (2 * NEAR_REDUCTION + 1);
    inputs in = {.x = malloc(most * sizeof(float))};
    if (!in.x)
        return in;
    for (uint64_t bits = 0; bits < 1ull << 32; bits += STEP)
        in.x[in.n++] = ref_f32_from_bits((uint32_t)bits);
    for (size_t i = 0; i < EDGES; i++) {
        add_around(&in, edges[i], NEAR);
        add_around(&in, -edges[i], NEAR);
    }
    for (int k = 0; k < REDUCTIONS; k++) { /* x / ln 2, and tanh's 2x / ln 2, round up or down */
        float middle = (float)((k + 0.5) * 0.69314718055994530942);
        add_around(&in, middle, NEAR_REDUCTION);
        add_around(&in, -middle, NEAR_REDUCTION);
        add_around(&in, middle / 2, NEAR_REDUCTION);
        add_around(&in, -middle / 2, NEAR_REDUCTION);
    }
    return in;
}

/* ---- The reference ---- */

TEST_ROWS(HostRefFunctions, StaysWithinItsUlps, function_rows)
{
    const function_row *row = &function_rows[index];
    inputs in = make_inputs();
    REQUIRE(in.x);
    double worst = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < in.n; i++) {
        double error = function_error(row, in.x[i], row->reference(in.x[i]));
        if (error > worst) {
            worst = error;
            at = ref_f32_to_bits(in.x[i]);
        }
    }
    if (worst > row->limit)
        FAIL("%s: %g ulp at x = %08X", row->name, worst, (unsigned)at);
    CHECK(worst > 0.5); /* no such function can do without: the comparison compares something */
    free(in.x);
}

/* Where the error is largest of all 2^32 inputs, as docs/numerics.md has it (`./run bench functions`). */
static const struct {
    uint32_t x;
    double error;
} largest[FUNCTION_COUNT] = {
    {0xC26FD323, 0.9289}, {0x405DC6FD, 1.4991}, {0x3E66AE25, 1.8401}, {0xB9B4E004, 1.9991},
    {0xC0BE0B6A, 3.3442}, {0xBFEB4085, 3.1975}, {0xBFB6A370, 3.8263},
};

TEST_ROWS(HostRefFunctions, LargestErrors, function_rows)
{
    float x = ref_f32_from_bits(largest[index].x);
    double error = function_error(&function_rows[index], x, function_rows[index].reference(x));
    CHECK(fabs(error - largest[index].error) < 0.00005);
    CHECK(error <= function_rows[index].limit);
}

/* Values of the exact functions, computed with 120 digits: the oracle of the test above. */
typedef struct known_exact {
    const char *name;
    double x, y;
} known_exact;

static const known_exact exact_values[] = {
    {"exp", 1.0, 2.718281828459045},
    {"exp", -103.5, 1.1233656060805691e-45},
    {"exp", 88.5, 2.7230878250681117e+38},
    {"tanh", 0.25, 0.24491866240370913},
    {"tanh", -1.0, -0.7615941559557649},
    {"tanh", 1.3969838619232178e-09, 1.3969838619232178e-09},
    {"erf", 0.25, 0.27632639016823696},
    {"erf", -2.0, -0.9953222650189527},
    {"erf", 3.875, 0.999999957486056},
    {"sigmoid", 1.0, 0.7310585786300049},
    {"sigmoid", -17.0, 4.1399375473943306e-08},
    {"sigmoid", -103.5, 1.1233656060805691e-45},
    {"silu", -1.0, -0.2689414213699951},
    {"silu", -90.0, -7.374611361591464e-38},
    {"silu", 3.0, 2.8577223804672998},
    {"silu", -104.0, -7.086099094407111e-44},
    {"gelu_tanh", -1.0, -0.1588080093917233},
    {"gelu_tanh", -10.5, -7.42490055607904e-43},
    {"gelu_tanh", 2.0, 1.954597694087775},
    {"gelu_tanh", 0.0078125, 0.003930599255499402},
    {"gelu_erf", -1.0, -0.15865525393145705},
    {"gelu_erf", -14.25, -3.1940038815884367e-45},
    {"gelu_erf", 2.0, 1.9544997361036416},
    {"gelu_erf", 0.0078125, 0.003930599256725333},
};

TEST_CASE(HostRefFunctions, TheOracleIsRight)
{
    for (size_t i = 0; i < sizeof exact_values / sizeof exact_values[0]; i++) {
        const known_exact *k = &exact_values[i];
        int found = 0;
        for (int f = 0; f < FUNCTION_COUNT; f++) {
            if (strcmp(function_rows[f].name, k->name) != 0)
                continue;
            double y = function_rows[f].exact(k->x);
            found++;
            if (!(fabs(y - k->y) <= 1e-13 * fabs(k->y)))
                FAIL("%s(%.17g) is %.17g, not %.17g", k->name, k->x, k->y, y);
        }
        CHECK_EQ_I64(found, 1);
    }
}

TEST_CASE(HostRefFunctions, TheErrorIsCountedInUlps)
{
    const function_row *exponential = &function_rows[0];
    REQUIRE(strcmp(exponential->name, "exp") == 0);
    CHECK(function_error(exponential, 0.0f, 1.0f) == 0);
    CHECK(function_error(exponential, 0.0f, 1.0f + 0x1p-23f) == 1);
    CHECK(function_error(exponential, 0.0f, 1.0f - 0x1p-24f) == 0.5);
    CHECK(function_error(exponential, INFINITY, INFINITY) == 0);
    CHECK(function_error(exponential, INFINITY, FLT_MAX) == 1);
    CHECK(function_error(exponential, -INFINITY, 0x1p-149f) == 1);
    CHECK(isinf(function_error(exponential, -INFINITY, -0.0f)));
    CHECK(isinf(function_error(exponential, 1.0f, NAN)));
    CHECK(isinf(function_error(exponential, NAN, 1.0f)));
    CHECK(isinf(function_error(exponential, NAN, ref_f32_from_bits(0xFFC00000))));
    CHECK(function_error(exponential, NAN, ref_f32_from_bits(0x7FFFFFFF)) == 0);
}

/* Results as bits, by column: exp, tanh, erf, sigmoid, silu, gelu_tanh, gelu_erf. */
typedef struct known_bits {
    uint32_t x, y[FUNCTION_COUNT];
} known_bits;

/* clang-format off */
static const known_bits known[] = {
    {0x00000000, {0x3F800000, 0x00000000, 0x00000000, 0x3F000000, 0x00000000, 0x00000000, 0x00000000}},
    {0x80000000, {0x3F800000, 0x80000000, 0x80000000, 0x3F000000, 0x80000000, 0x80000000, 0x80000000}},
    {0x7F800000, {0x7F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x7F800000, 0x7F800000, 0x7F800000}},
    {0xFF800000, {0x00000000, 0xBF800000, 0xBF800000, 0x00000000, 0x80000000, 0x80000000, 0x80000000}},
    {0x7FC00000, {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF}},
    {0xFF800001, {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF}},
    {0x00000001, {0x3F800000, 0x00000001, 0x00000001, 0x3F000000, 0x00000000, 0x00000000, 0x00000001}},
    {0x80000001, {0x3F800000, 0x80000001, 0x80000001, 0x3F000000, 0x80000000, 0x80000000, 0x80000000}},
    {0x33000000, {0x3F800000, 0x33000000, 0x33106EBB, 0x3F000000, 0x32800000, 0x32800000, 0x32800000}},
    {0xB3000000, {0x3F800000, 0xB3000000, 0xB3106EBB, 0x3F000000, 0xB2800000, 0xB27FFFFF, 0xB2800000}},
    {0x3F000000, {0x3FD3094C, 0x3EEC9A9E, 0x3F053F7B, 0x3F1F597F, 0x3E9F597E, 0x3EB1016D, 0x3EB103AF}},
    {0xBF000000, {0x3F1B4598, 0xBEEC9A9E, 0xBF053F7B, 0x3EC14D03, 0xBE414D03, 0xBE1DFD26, 0xBE1DF8A2}},
    {0x3F800000, {0x402DF854, 0x3F42F7D6, 0x3F57BB3D, 0x3F3B26A8, 0x3F3B26A8, 0x3F57585C, 0x3F57625E}},
    {0xBF800000, {0x3EBC5AB2, 0xBF42F7D6, 0xBF57BB3D, 0x3E89B2B1, 0xBE89B2B1, 0xBE229E91, 0xBE227686}},
    {0x40400000, {0x41A0AF2E, 0x3F7EBBE9, 0x3F7FFE8D, 0x3F73DBE6, 0x4036E4EC, 0x403FC468, 0x403FBDA6}},
    {0xC0400000, {0x3D4BED86, 0xBF7EBBE9, 0xBF7FFE8D, 0x3D4241A2, 0xBE11B139, 0xBB6E6151, 0xBB84B34C}},
    {0x41200000, {0x46AC14EF, 0x3F800000, 0x3F800000, 0x3F7FFD06, 0x411FFE24, 0x41200000, 0x41200000}},
    {0xC1200000, {0x383E6BCE, 0xBF800000, 0xBF800000, 0x383E6998, 0xB9EE03FE, 0x8223E47E, 0x9AB83C9C}},
    {0x42B17217, {0x7F7FFF84, 0x3F800000, 0x3F800000, 0x3F800000, 0x42B17217, 0x42B17217, 0x42B17217}},
    {0x42B17218, {0x7F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x42B17218, 0x42B17218, 0x42B17218}},
    {0x42B20000, {0x7F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x42B20000, 0x42B20000, 0x42B20000}},
    {0xC2B20000, {0x001840FC, 0xBF800000, 0xBF800000, 0x001840FC, 0x8286E978, 0x80000000, 0x80000000}},
    {0xC2CE0000, {0x00000001, 0xBF800000, 0xBF800000, 0x00000001, 0x80000088, 0x80000000, 0x80000000}},
    {0xC2CFF1B4, {0x00000001, 0xBF800000, 0xBF800000, 0x00000001, 0x80000034, 0x80000000, 0x80000000}},
    {0xC2CFF1B5, {0x00000000, 0xBF800000, 0xBF800000, 0x00000000, 0x80000034, 0x80000000, 0x80000000}},
    {0xC2D80000, {0x00000000, 0xBF800000, 0xBF800000, 0x00000000, 0x80000001, 0x80000000, 0x80000000}},
    {0x7F7FFFFF, {0x7F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF}},
    {0xFF7FFFFF, {0x00000000, 0xBF800000, 0xBF800000, 0x00000000, 0x80000000, 0x80000000, 0x80000000}},
};
/* clang-format on */

TEST_ROWS(HostRefFunctions, KnownAnswers, function_rows)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        float y = function_rows[index].reference(ref_f32_from_bits(known[i].x));
        test_push_note("x = %08X", (unsigned)known[i].x);
        CHECK_EQ_U32(ref_f32_to_bits(y), known[i].y[index]);
        test_pop_note();
    }
}

/* ---- The instructions ---- */

/* y[i] = f(x[i]) by the kernel on a device of its own. */
static bool run_kernel(machine *vm, const char *text, const inputs *in, float *y)
{
    struct {
        ptxvm_address x, y;
        uint32_t n;
    } params = {.n = in->n};
    const ptxvm_launch_config config = {.grid = {(in->n + 255) / 256, 1, 1}, .block = {256, 1, 1}};
    const uint64_t bytes = in->n * sizeof(float);
    machine_module *module;
    machine_kernel *kernel;
    return machine_module_load(vm, text, strlen(text), &module) == PTXVM_OK &&
           machine_module_kernel(module, "apply", &kernel) == PTXVM_OK &&
           machine_alloc(vm, bytes, &params.x) == PTXVM_OK &&
           machine_alloc(vm, bytes, &params.y) == PTXVM_OK &&
           machine_write(vm, params.x, in->x, bytes) == PTXVM_OK &&
           machine_launch(vm, kernel, &config, &params, 20) == PTXVM_OK &&
           machine_read(vm, y, params.y, bytes) == PTXVM_OK;
}

static void compare_outputs(const function_row *row, const inputs *in, const float *y)
{
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t actual = ref_f32_to_bits(y[i]), expected = ref_f32_to_bits(row->reference(in->x[i]));
        if (actual != expected) {
            FAIL("%s(%08X) is %08X, not %08X", row->name, (unsigned)ref_f32_to_bits(in->x[i]),
                 (unsigned)expected, (unsigned)actual);
            return;
        }
    }
}

static void match_reference(const function_row *row, const char *sm, const inputs *in, float *y)
{
    const ptxvm_config config = {.sm = sm, .checks = PTXVM_CHECK_INIT};
    char *text = function_kernel(row, ptx_sm_find(device_sm(sm)));
    machine *vm = NULL;
    memset(y, 0xA5, in->n * sizeof(float));
    if (!CHECK(text && machine_create(&config, &vm) == PTXVM_OK) || !CHECK(run_kernel(vm, text, in, y))) {
        FAIL("%s on %s: %s", row->name, device_sm(sm), vm ? machine_last_error(vm) : "");
    } else {
        const ptxvm_report *report = machine_ptxvm(vm) ? ptxvm_last_report(machine_ptxvm(vm)) : NULL;
        CHECK(!report || (!report->inexact && report->n_contractable == 0));
        compare_outputs(row, in, y);
    }
    machine_destroy(vm);
    free(text);
}

DEVICE_ROWS(KernelFunctions, MatchTheReference, function_rows)
{
    inputs in = make_inputs();
    float *y = malloc((in.n + 1) * sizeof(float));
    if (CHECK(in.x && y)) {
        match_reference(&function_rows[index], "sm_75", &in, y);
        match_reference(&function_rows[index], "sm_120", &in, y);
    }
    free(in.x);
    free(y);
}

/* docs/numerics.md gives these numbers. */
static const int instructions[FUNCTION_COUNT] = {20, 28, 28, 22, 23, 36, 35};

/* Instructions, and as many declarations of registers as every such kernel has. */
static int semicolons(const function_row *row)
{
    char *text = function_kernel(row, ptx_sm_find("sm_90"));
    int count = 0;
    for (const char *at = text; at && *at; at++)
        count += *at == ';';
    free(text);
    return count;
}

TEST_ROWS(KernelFunctions, InstructionCounts, function_rows)
{
    char *text = function_kernel(&function_rows[index], ptx_sm_find("sm_90"));
    REQUIRE(text);
    CHECK(!strstr(text, ".approx") && !strstr(text, ".ftz") && !strstr(text, "bra"));
    free(text);
    CHECK_EQ_I64(semicolons(&function_rows[index]) - semicolons(NULL), instructions[index]);
}
