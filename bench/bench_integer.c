/* Integer products by ptxvm's counters: warp instructions per multiply-add for every kernel, compared with
 * the plain one by dp4a; and for kernels on tensor cores, the instructions in their main loop other than
 * mma. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/integer/integer_run.h"
#include "clock/sass/sass.h"

enum { SIZE = 128, K = 1024 };

static const struct {
    const char *name, *kernel, *settings[5]; /* without the tile */
} products[] = {
    {"int8", "int8_qmatmul", {NULL}},
    {"int8_zero_points", "int8_qmatmul", {"x_zero=yes", "w_zero=yes"}},
    {"w8a8", "w8a8_matmul", {"output=f16", "bias=f16", "activation=silu"}},
    {"w4a4", "w4a4_matmul", {NULL}},
    {"w4a8_g128", "w4a8_matmul", {"group_size=128"}},
    {"w4a8_g32", "w4a8_matmul", {"group_size=32"}},
};
static const char *const tiles[] = {"tile=4", "tile=64", "tile=128"};
static const char *const sms[] = {"sm_75", "sm_80", "sm_90"};

static integer_run run_of(int product, int tile, int sm, uint64_t k)
{
    integer_run r = {.kernel = products[product].kernel, .sm = sms[sm], .m = SIZE, .n = SIZE, .k = k};
    int i = 0;
    for (; i < 5 && products[product].settings[i]; i++)
        r.settings[i] = products[product].settings[i];
    r.settings[i] = tiles[tile];
    return r;
}

/* The difference to a run with twice the k is the cost of the loop. */
static void measure(int product, int tile, int sm)
{
    char name[96], why[256], note[200] = "plain, by dp4a";
    integer_cost once, twice;
    integer_run r = run_of(product, tile, sm, K), longer = run_of(product, tile, sm, 2 * K);
    /* the estimate takes minutes, so only for one kernel */
    r.sass = longer.sass = product == 0 && tile == 2 && sm == 1 && sass_found(why, sizeof why);
    bench_progress("integer.%s.%s.%s", products[product].name, tiles[tile], sms[sm]);
    if (!integer_measure(&r, &once) || !integer_measure(&longer, &twice))
        return;
    const double macs = (double)SIZE * SIZE * K, mma = (double)(twice.mma - once.mma);
    if (once.mma)
        snprintf(note, sizeof note,
                 "%.2f others per mma in the main loop, %llu bank conflicts, %llu + %llu sectors",
                 ((double)(twice.instructions - once.instructions) - mma) / mma,
                 (unsigned long long)once.bank_conflicts, (unsigned long long)once.load_sectors,
                 (unsigned long long)once.store_sectors);
    if (once.mma && once.sass > 0 && twice.sass > 0)
        snprintf(note + strlen(note), sizeof note - strlen(note),
                 "; %.2f instructions of the SM per mma in the main loop", (twice.sass - once.sass) / mma);
    snprintf(name, sizeof name, "integer.%s.%s.%s", products[product].name, tiles[tile] + 5, sms[sm]);
    bench_report(name, 1000 * (double)once.instructions / macs, "instr/1000 mac", note);
}

/* Windows of 3 x 3 over 64 channels. */
static void measure_conv(int tile, int sm)
{
    static const char *const conv_tiles[] = {"tile=1", "tile=64", "tile=128"};
    enum { M = 256, N = 128, C = 64 };
    char name[96], note[160] = "plain, by dp4a";
    integer_run r = {.kernel = "int8_conv2d",
                     .settings = {"nhwc=yes", conv_tiles[tile]},
                     .sm = sms[sm],
                     .m = M,
                     .n = N,
                     .k = C,
                     .window = 3},
                longer = r;
    integer_cost once, twice;
    longer.k = 2 * C;
    bench_progress("integer.conv2d.%s.%s", conv_tiles[tile], sms[sm]);
    if (!integer_measure(&r, &once) || !integer_measure(&longer, &twice))
        return;
    const double macs = (double)M * N * C * 9, mma = (double)(twice.mma - once.mma);
    if (once.mma)
        snprintf(note, sizeof note, "%.2f others per mma in the main loop, %llu bank conflicts",
                 ((double)(twice.instructions - once.instructions) - mma) / mma,
                 (unsigned long long)once.bank_conflicts);
    snprintf(name, sizeof name, "integer.conv2d.%s.%s", conv_tiles[tile] + 5, sms[sm]);
    bench_report(name, 1000 * (double)once.instructions / macs, "instr/1000 mac", note);
}

void bench_integer(void)
{
    for (int s = 0; s < (int)(sizeof sms / sizeof sms[0]); s++)
        for (int t = 0; t < 3; t++)
            measure_conv(t, s);
    for (int p = 0; p < (int)(sizeof products / sizeof products[0]); p++)
        for (int s = 0; s < (int)(sizeof sms / sizeof sms[0]); s++)
            for (int t = 0; t < (int)(sizeof tiles / sizeof tiles[0]); t++)
                if (t < 2 || products[p].kernel[1] != '4' ||
                    products[p].kernel[3] != '8') /* w4a8 has only the small tile */
                    measure(p, t, s);
}
