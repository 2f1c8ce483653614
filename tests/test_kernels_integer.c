/* Integer products by ptxvm's counters, and as ptxas assembles them: no spill in any of their forms. */
#include "bench/integer/integer_run.h"
#include "formats/sample.h"
#include "kernels/kernels.h"
#include "test.h"
#include "test_kernels_ptxas.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Counters ---- */

static const struct {
    const char *name, *kernel, *tile, *sm;
    uint64_t code_bits; /* of x and w */
    uint64_t y_bytes;
    unsigned others; /* per 100 mma in the main loop, at most; 0: not looked at */
} counted[] = {
    {"int8_128_sm_75", "int8_qmatmul", "tile=128", "sm_75", 8, 1, 0},
    {"int8_128_sm_80", "int8_qmatmul", "tile=128", "sm_80", 8, 1, 70},
    {"int8_128_sm_90", "int8_qmatmul", "tile=128", "sm_90", 8, 1, 70},
    {"int8_64_sm_80", "int8_qmatmul", "tile=64", "sm_80", 8, 1, 180},
    {"int4_128_sm_80", "w4a4_matmul", "tile=128", "sm_80", 4, 4, 70},
    {"int4_128_sm_90", "w4a4_matmul", "tile=128", "sm_90", 4, 4, 0},
};

/* The tiles, padded, need so many mma of 16 x 8 x 32 bytes; sm_75 has four small ones in the place of each, and where nibbles
 * become bytes there are two. */
static uint64_t mma_needed(int index, uint64_t m, uint64_t n, uint64_t k)
{
    const bool spread = counted[index].code_bits == 4 && strcmp(counted[index].sm, "sm_90") == 0;
    const uint64_t side = strcmp(counted[index].tile, "tile=64") == 0 ? 64 : 128,
                   bytes = k * counted[index].code_bits / 8;
    const uint64_t tiles = (m + side - 1) / side * ((n + side - 1) / side);
    return tiles * (side / 16) * (side / 8) * ((bytes + 63) / 64 * 2) *
           (strcmp(counted[index].sm, "sm_75") == 0 ? 4 : 1) * (spread ? 2 : 1);
}

TEST_ROWS(KernelsInteger, Counters, counted)
{
    enum { M = 128, N = 256, K = 256 };
    const uint64_t side = strcmp(counted[index].tile, "tile=64") == 0 ? 64 : 128;
    integer_run run = {.kernel = counted[index].kernel,
                       .settings = {counted[index].tile},
                       .sm = counted[index].sm,
                       .m = M,
                       .n = N,
                       .k = K};
    integer_cost once, twice, odd;
    REQUIRE(integer_measure(&run, &once));
    CHECK_EQ_U64(once.mma, mma_needed(index, M, N, K));
    CHECK_EQ_U64(once.bank_conflicts, 0);
    /* every tile reads its rows of x and w once */
    uint64_t loads = (M / side) * (N / side) * 2 * side * K * counted[index].code_bits / 8 / 32;
    uint64_t stores = M * N * counted[index].y_bytes / 32;
    CHECK_EQ_U64(once.store_sectors, stores);
    if (counted[index].y_bytes == 1)
        CHECK_EQ_U64(once.load_sectors, loads);
    else /* a scale for each row, which the warp reads at once, and each column */
        CHECK(once.load_sectors >= loads && once.load_sectors <= loads + M * N / 32 + N);
    run.k = 2 * K;
    REQUIRE(integer_measure(&run, &twice));
    uint64_t mma = twice.mma - once.mma, others = twice.instructions - once.instructions - mma;
    if (counted[index].others && others * 100 > mma * counted[index].others)
        FAIL("%llu other instructions with %llu mma", (unsigned long long)others, (unsigned long long)mma);
    run.m = M + 3;
    run.n = N - 5;
    run.k = K + 40;
    REQUIRE(integer_measure(&run, &odd));
    CHECK_EQ_U64(odd.mma, mma_needed(index, run.m, run.n, run.k));
    CHECK_EQ_U64(odd.bank_conflicts, 0);
}

/* Tensor cores need far fewer instructions than dp4a. */
TEST_CASE(KernelsInteger, TilesAgainstDp4a)
{
    static const char *const kernels[] = {"int8_qmatmul", "w8a8_matmul", "w4a4_matmul", "w4a8_matmul"};
    for (int i = 0; i < 4; i++) {
        integer_run run = {
            .kernel = kernels[i], .settings = {"tile=4"}, .sm = "sm_80", .m = 64, .n = 64, .k = 256};
        integer_cost plain, tiled;
        REQUIRE(integer_measure(&run, &plain));
        run.settings[0] = "tile=64";
        REQUIRE(integer_measure(&run, &tiled));
        test_push_note("%s: %llu, %llu", kernels[i], (unsigned long long)plain.instructions,
                       (unsigned long long)tiled.instructions);
        CHECK_EQ_U64(plain.mma, 0);
        CHECK(plain.instructions > 20 * tiled.instructions);
        test_pop_note();
    }
}

/* ---- Assembling ---- */

/* clang-format off */
static const struct {
    const char *kernel, *settings[7];
} forms[] = {
    {"int8_qmatmul", {"x_codes=u8", "x_zero=yes", "w_zero=yes", "bias_i32=yes", "multipliers=yes", "rounding=away"}},
    {"int8_qmatmul", {"x_zero=yes", "result=u8"}},
    {"int8_qmatmul", {"w_zero=yes", "result=i32", "tile=64"}},
    {"int8_qmatmul", {"x_zero=yes", "w_zero=yes", "tile=4"}},
    {"w8a8_matmul", {"output=f16", "alpha=column", "bias=f16", "activation=gelu_erf", "residual=yes"}},
    {"w8a8_matmul", {"x_codes=u8", "x_zero=yes", "w_zero=yes", "output=bf16", "activation=gelu_tanh", "residual=yes"}},
    {"w8a8_matmul", {"activation=silu", "alpha=number", "bias=bf16", "tile=4"}},
    {"w8a8_matmul", {"grouped=yes", "gated=yes", "activation=silu", "x_share=4", "row_weight=yes", "tile=128"}},
    {"w8a8_matmul", {"grouped=yes", "gated=yes", "x_zero=yes", "w_zero=yes", "tile=128"}},
    {"w8a8_matmul", {"grouped=yes", "gated=yes", "x_zero=yes", "w_zero=yes", "tile=4"}},
    {"w4a8_matmul", {"grouped=yes", "gated=yes", "activation=silu", "x_share=8", "row_weight=yes", "group_size=32"}},
    {"w4a8_matmul", {"grouped=yes", "gated=yes", "group_size=7", "tile=4"}},
    {"w4a4_matmul", {"output=bf16", "activation=silu", "bias=f32"}},
    {"w4a4_matmul", {"tile=64", "residual=yes"}},
    {"w4a8_matmul", {"group_size=32", "scale=f16", "activation=gelu_erf", "bias=f32"}},
    {"w4a8_matmul", {"group_size=512", "scale=bf16", "output=bf16", "residual=yes"}},
    {"w4a8_matmul", {"group_size=7", "output=f16"}},
    {"w4a8_matmul", {"group_size=64", "tile=1"}},
    {"int8_conv2d", {"nhwc=yes", "x_zero=yes", "w_zero=yes", "window_h=3", "window_w=3", "window_c=64"}},
    {"int8_conv2d", {"nhwc=yes", "x_codes=u8", "x_zero=yes", "window_h=3", "window_w=5", "multipliers=yes"}},
    {"int8_conv2d", {"nhwc=yes", "tile=64", "w_zero=yes", "bias_i32=yes", "result=i32"}},
    {"int8_conv2d", {"window_c=3", "window_h=7", "window_w=7", "x_zero=yes", "w_zero=yes"}},
    {"int8_conv2d", {"nhwc=yes", "tile=1", "window_c=4", "x_zero=yes", "w_zero=yes"}},
};
/* clang-format on */
static const char *const targets[] = {"sm_75", "sm_90", "sm_80", "sm_89", "sm_100", "sm_120a"};
enum { FORMS = sizeof forms / sizeof forms[0] };

static int target_count(void)
{
    return sample_is_full() ? 6 : 2;
}

static void target_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", targets[index]);
}

static kernel_spec form_spec(const kernel_row *row, int form)
{
    kernel_spec spec = kernel_spec_default();
    for (int i = 0; forms[form].settings[i]; i++) {
        char key[32], error[256];
        const char *setting = forms[form].settings[i], *value = strchr(setting, '=') + 1;
        snprintf(key, sizeof key, "%.*s", (int)(value - 1 - setting), setting);
        if (!kernel_spec_set(row, &spec, key, value, error, sizeof error))
            FAIL("%s", error);
    }
    return spec;
}

static void check_frugal(const char *log)
{
    CHECK_HAS(log, " 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
}

TEST_EACH(KernelsInteger, Assemble, target_count, target_name)
{
    char ptxas[1024];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    assembly all = {0};
    for (int i = 0; i < FORMS; i++) {
        const kernel_row *row = kernel_find(forms[i].kernel);
        kernel_spec spec = form_spec(row, i);
        assembly_add_kernel(&all, row, &spec, ptx_sm_find(targets[index]));
    }
    CHECK(assembly_run(&all, ptxas, targets[index], check_frugal));
    assembly_free(&all);
}
