/* Facts about products on boards (bench/facts): how blocks fill a board, worked out by hand from the CUDA programming guide, and what the
 * products' launches are today. */
#include "bench/facts/facts.h"

#include <stdlib.h>
#include <string.h>

#include "clock/product/product.h"
#include "clock/sass/sass.h"
#include "test.h"
#include "tools/toolkit.h"

static facts_fill fill(const char *name, uint64_t blocks, int threads, uint32_t shared, int registers)
{
    return facts_fill_of(board_find(name), &(facts_launch){blocks, threads, shared, registers});
}

static const struct {
    const char *name, *board;
    uint64_t blocks;
    int threads;
    uint32_t shared;
    int registers, per_sm;
    double warps, waves, last;
} fills[] = {
    {"Threads", "a100", 10000, 256, 0, 0, 8, 64, 10000.0 / 864, (10000 % 864) / 864.0},
    {"Blocks", "a10", 100, 32, 0, 16, 16, 100.0 / 72, 100.0 / 1152, 1}, /* 16 blocks on sm_86 */
    /* 255 registers are 8,192 per warp: 8 warps fit */
    {"Registers", "a100", 32, 256, 0, 255, 1, 32 * 8 / 108.0, 32 / 108.0, 1},
    /* 168 are 5,376 per warp: 12 warps, so 3 blocks of 4 warps and 1 of 8 */
    {"RegistersOfSmallBlocks", "a100", 128, 128, 0, 168, 3, 128 * 4 / 108.0, 128 / 324.0, 1},
    {"RegistersOfLargeBlocks", "a100", 128, 256, 0, 168, 1, 8, 128 / 108.0, 20 / 108.0},
    /* 10 warps of 6,144: rounded down to 8, two per scheduler */
    {"WarpsGoToFourSchedulers", "a100", 1000, 64, 0, 192, 4, 8, 1000 / 432.0, (1000 % 432) / 432.0},
    /* 97.9 KiB and 1 KiB of the driver's in 164 KiB; sm_75 has none of the driver's: 32 KiB fit twice in 64 */
    {"Shared", "a100", 1536, 128, 100250, 0, 1, 4, 1536 / 108.0, (1536 % 108) / 108.0},
    {"SharedOnTuring", "t4", 80, 128, 32768, 0, 2, 8, 1, 1},
    {"SharedOnAmpere", "a10", 72, 128, 50688, 0, 1, 4, 1, 1},
    {"WholeWaves", "h100", 264, 1024, 0, 32, 2, 64, 1, 1},
    {"TooLarge", "t4", 10, 128, 70000, 0, 0, 0, 0, 0},
};

TEST_ROWS(Facts, BlocksFillABoard, fills)
{
    facts_fill f = fill(fills[index].board, fills[index].blocks, fills[index].threads, fills[index].shared,
                        fills[index].registers);
    CHECK_EQ_I64(f.blocks_per_sm, fills[index].per_sm);
    CHECK(f.warps_per_sm == fills[index].warps);
    CHECK(f.waves == fills[index].waves);
    CHECK(f.last_wave == fills[index].last);
}

/* Launches of today's products; a change of shape changes these rows, and is then seen here. */
static const struct {
    const char *name, *format;
    facts_mode mode;
    uint64_t m, n, k;
    const char *product;
    uint64_t blocks;
    int threads, launches;
    uint64_t workspace;
} products[] = {
    {"Q4_K", "q4_k", FACTS_EXACT, 1, 4096, 4096, "blocks", 256, 128, 1, 0},
    {"Q4_K_narrow", "q4_k", FACTS_EXACT, 1, 1024, 4096, "blocks", 256, 128, 1, 0},
    {"Int4", "int4_g128", FACTS_EXACT, 1, 4096, 4096, "gemv", 256, 128, 1, 0},
    {"Int4_narrow", "int4_g128", FACTS_EXACT, 1, 1024, 4096, "gemv", 256, 128, 1, 0},
    {"Int4_few", "int4_g128", FACTS_EXACT, 16, 4096, 4096, "gemv", 128, 256, 1, 0},
    {"Int4_stored", "int4_g128", FACTS_TENSOR, 64, 4096, 4096, "stored", 128, 256, 1, 0},
    {"Q4_K_stored", "q4_k", FACTS_TENSOR, 64, 4096, 4096, "tile", 256, 256, 1, 0},
    {"Int4_prepacked", "int4_g128", FACTS_PREPACKED, 64, 4096, 4096, "stream", 128, 256, 1, 0},
    {"Q8_0_odd", "q8_0", FACTS_EXACT, 1, 49152, 576, "ragged", 1536, 128, 1, 0},
};

TEST_ROWS(Facts, ProductsOfToday, products)
{
    facts f;
    char why[256] = "";
    const facts_shape shape = {"", products[index].n, products[index].k};
    REQUIRE(facts_of(facts_format_find(products[index].format), products[index].mode, products[index].m,
                     &shape, board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK_EQ_STR(f.product, products[index].product);
    CHECK_EQ_U64(f.launch.blocks, products[index].blocks);
    CHECK_EQ_I64(f.launch.threads, products[index].threads);
    CHECK_EQ_I64(f.launches, products[index].launches);
    CHECK_EQ_U64(f.workspace, products[index].workspace);
}

/* INT4 in groups of 128 with f16 scales: 4096 x 4096 / 2 codes, 4096 x 32 scales, x and y. */
TEST_CASE(Facts, BytesAndWhatIsWanted)
{
    facts f;
    char why[256];
    const facts_shape shape = {"", 4096, 4096};
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_EXACT, 1, &shape, board_find("a100"), FACTS_PLAN,
                     &f, why, sizeof why));
    CHECK_EQ_U64(f.bytes, 8388608 + 262144 + 8192 + 8192);
    CHECK(f.dram_us > 5.57 && f.dram_us < 5.58); /* 8.67 MB at 1,555 GB/s */
    CHECK(f.wanted_warps == 8);
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_TENSOR, 1, &(facts_shape){"", 1024, 4096},
                     board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK(f.wanted_warps == 64 * 8 / 108.0);
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_TENSOR, 64, &shape, board_find("a100"), FACTS_PLAN,
                     &f, why, sizeof why));
    CHECK(f.wanted_warps == 0);
    CHECK(!facts_of(facts_format_find("q4_k"), FACTS_EXACT, 1, &(facts_shape){"", 1536, 576},
                    board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK_EQ_STR(why, "K is no multiple of 256");
}

/* ---- The golden table: plans of today on the main boards ---- */

static const char *const golden_formats[] = {"int4_g128", "nvfp4", "gptq", "q4_k", "q8_0", "f16"};
static const char *const golden_boards[] = {"a100", "h100", "b200"};
static const uint64_t golden_rows[] = {1, 16, 64, 512};
static const facts_shape golden_shapes[] = {
    {"", 4096, 4096}, {"", 1024, 4096}, {"", 49152, 576}, {"", 5760, 2880}, {"", 8192, 28672}};
#define EACH(i, table) (size_t i = 0; i < sizeof(table) / sizeof *(table); i++)

typedef struct golden_text {
    char *text;
    size_t length, capacity;
} golden_text;

static void add_line(golden_text *t, const char *line)
{
    const size_t length = strlen(line);
    if (t->length + length + 1 > t->capacity) {
        t->capacity = 2 * t->capacity + length + 4096;
        t->text = realloc(t->text, t->capacity);
        REQUIRE(t->text != NULL);
    }
    memcpy(t->text + t->length, line, length + 1);
    t->length += length;
}

static void add_product(golden_text *t, const char *format, facts_mode mode, uint64_t m,
                        const facts_shape *shape, const board *on)
{
    facts f;
    char why[256] = "", line[512];
    int n =
        snprintf(line, sizeof line, "%s %s M=%llu %llux%llu %s: ", format, facts_mode_name(mode),
                 (unsigned long long)m, (unsigned long long)shape->n, (unsigned long long)shape->k, on->name);
    if (facts_of(facts_format_find(format), mode, m, shape, on, FACTS_PLAN, &f, why, sizeof why))
        snprintf(line + n, sizeof line - (size_t)n,
                 "%s tile_rows %llu split %llu, %llu x %d, launches %d, workspace %llu, warps %.2f of %.2f, "
                 "waves %.2f, last %.2f\n",
                 f.product, (unsigned long long)f.tile_rows, (unsigned long long)f.split,
                 (unsigned long long)f.launch.blocks, f.launch.threads, f.launches,
                 (unsigned long long)f.workspace, f.fill.warps_per_sm, f.wanted_warps, f.fill.waves,
                 f.fill.last_wave);
    else
        snprintf(line + n, sizeof line - (size_t)n, "none: %s\n", why);
    add_line(t, line);
}

static void make_golden(golden_text *t)
{
    for
        EACH(f, golden_formats)
    for (int mode = 0; mode < FACTS_MODES; mode++)
            for
                EACH(r, golden_rows)
                for
                    EACH(s, golden_shapes)
                    for
                        EACH(b, golden_boards)
                    add_product(t, golden_formats[f], (facts_mode)mode, golden_rows[r], &golden_shapes[s],
                                board_find(golden_boards[b]));
}

/* The first line that differs: what a change of a shape changes is seen here, line by line in the file's history. */
static void compare_lines(const char *now, const char *before)
{
    while (*now && *before) {
        const size_t n = strcspn(now, "\n"), k = strcspn(before, "\n");
        if (n != k || memcmp(now, before, n)) {
            FAIL("is now\n  %.*s\nand was\n  %.*s\n(QDNN_UPDATE_GOLDEN=1 rewrites tests/golden/facts.txt)",
                 (int)n, now, (int)k, before);
            return;
        }
        now += n + (now[n] != 0);
        before += k + (before[k] != 0);
    }
    CHECK(!*now && !*before);
}

/* Registers are not among them: warps are upper bounds. Without ptxas the same. */
TEST_CASE(Facts, PlansAreThoseOfTheTable)
{
    golden_text t = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/facts.txt", QDNN_SOURCE_DIR);
    make_golden(&t);
    if (getenv("QDNN_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        REQUIRE(file && fputs(t.text, file) >= 0 && fclose(file) == 0);
    }
    char *golden = toolkit_read_file(path, NULL);
    if (CHECK(golden != NULL))
        compare_lines(t.text, golden);
    free(golden);
    free(t.text);
}

TEST_CASE(Facts, EveryFormatWithProductsIsJudged)
{
    for (int i = 0; i < kernel_row_count; i++) {
        bool found = kernel_operation_of(&kernel_rows[i]) != KERNEL_MATMUL;
        for (int f = 0; f < facts_format_count(); f++)
            found |= !strcmp(facts_format_at(f)->kernel, kernel_rows[i].name);
        if (!CHECK(found))
            printf("%s is not in bench/facts/facts_formats.def\n", kernel_rows[i].name);
    }
    for (int f = 0; f < facts_format_count(); f++) { /* and each of them is one that kernels know */
        facts out;
        char why[256] = "";
        if (!CHECK(facts_of(facts_format_at(f), FACTS_EXACT, 1, &(facts_shape){"", 4096, 4096},
                            board_find("a100"), FACTS_PLAN, &out, why, sizeof why)))
            printf("%s: %s\n", facts_format_at(f)->name, why);
    }
}

/* ---- Code ---- */

/* tests/golden/sass/sm_80.sass: a copy of 16 bytes per thread and a wait for it 1 + 3 + 1 cycles later; then ten rounds of a loop with a
 * load of 4 bytes, waited for 1 + 1 + 5 + 1 + 1 cycles later, and 11 instructions. */
TEST_CASE(Facts, LoadsInFlight)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/sass/sm_80.sass", QDNN_SOURCE_DIR);
    char *text = toolkit_read_file(path, NULL);
    uint64_t counts[64];
    ptxvm_counts lines[64] = {{0}};
    sass_code code;
    sass_path *paths;
    facts_code out = {.is_sass = true};
    REQUIRE(text && sass_parse(text, "k", &code));
    for (int i = 0; i < 64; i++)
        counts[i] = i >= 27 && i <= 34 ? 10 : 1;
    const ptxvm_path of = {.warps = 1, .lines = counts};
    ptxvm_counters counters = {.kernel = "k", .lines = lines, .n_lines = 64, .paths = &of, .n_paths = 1};
    lines[17].load = (ptxvm_traffic){.requests = 1, .sectors = 16, .first_sectors = 16};
    lines[27].load = (ptxvm_traffic){.requests = 10, .sectors = 40, .first_sectors = 40};
    REQUIRE(sass_paths(&code, &counters, 1, &paths) == 1);
    CHECK_EQ_I64(facts_hot_loop(&code, paths), 0);
    facts_follow_loads(&code, paths, lines, 64, &out);
    CHECK(out.flight == 512);
    CHECK(out.wait_least == 5);
    CHECK(out.wait_mean > 7.857 && out.wait_mean < 7.858); /* (512 * 5 + 10 * 128 * 9) / (512 + 1280) */
    lines[27].load.first_sectors = 19;                     /* fewer than half come from DRAM */
    facts_follow_loads(&code, paths, lines, 64, &out);
    CHECK(out.wait_mean == 5);
    sass_paths_free(paths, 1);
    sass_code_free(&code);
    free(text);
}

TEST_CASE(Facts, SmallProducts)
{
    static const uint64_t k[][2] = {{576, 576},    {2880, 2880},  {4096, 4096},
                                    {14336, 4096}, {25600, 5120}, {7168, 5120}};
    facts_product p = {.row = kernel_find("matmul_int4"), .spec = kernel_spec_default()};
    for
        EACH(i, k)
        {
            p.problem = (kernel_problem){.rows = 4096, .columns = k[i][0], .m = 100};
            p.spec.product.tile_rows = 64;
            p.spec.product.reduction = KERNEL_K_COLUMNS;
            facts_product small = facts_small(&p);
            CHECK_EQ_U64(small.problem.rows, 512);
            CHECK_EQ_U64(small.problem.columns, k[i][1]);
            CHECK_EQ_U64(small.problem.m, 64);
            p.problem = (kernel_problem){.rows = k[i][0], .columns = 192, .m = 7};
            p.spec.product.reduction = KERNEL_K_ROWS;
            small = facts_small(&p);
            CHECK_EQ_U64(small.problem.rows, k[i][1]);
            CHECK_EQ_U64(small.problem.columns, 192);
            CHECK_EQ_U64(small.problem.m, 7);
        }
}

/* A product on a board: no faster than its bytes, its ends in order, and nothing left behind, also where there is no model. */
TEST_CASE(Facts, TimeOfAProduct)
{
    char why[256] = "", path[1024];
    facts_product p = {.row = kernel_find("matmul_int4"),
                       .spec = kernel_spec_default(),
                       .problem = {.rows = 1024, .columns = 256, .m = 1, .x_stride = 256, .y_stride = 1024}};
    if (!toolkit_find_ptxas(path, sizeof path) || !toolkit_find_nvdisasm(path, sizeof path))
        SKIP("ptxas or nvdisasm was not found");
    REQUIRE(kernel_spec_set_words(p.row, &p.spec, "reduction=columns", why, sizeof why));
    p.problem.multiprocessors = board_find("a100")->multiprocessors;
    kernel_product_choose(p.row, &p.problem, &p.spec);
    REQUIRE(kernel_spec_settle_kernel(p.row, &p.spec, why, sizeof why));
    product_time t = {0};
    if (!CHECK(product_time_of(&p, board_find("a100"), &t, why, sizeof why)))
        FAIL("%s", why);
    CHECK(t.launches >= 1);
    CHECK(t.roofline_us > 0);
    CHECK(t.us[CLOCK_LOW] >= t.roofline_us && t.us[CLOCK_HIGH] >= t.us[CLOCK_LOW]);
    CHECK(t.plain_us[CLOCK_LOW] >= t.roofline_us);
}

/* What DRAM delivers in 600 ns, or a quarter of what is read. */
TEST_CASE(Facts, WantedFlight)
{
    facts f;
    char why[256];
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_EXACT, 1, &(facts_shape){"", 4096, 4096},
                     board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK(f.wanted_flight == 1555.0 * 600);
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_EXACT, 1, &(facts_shape){"", 1024, 4096},
                     board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK(f.wanted_flight == (double)f.bytes / 4);
    REQUIRE(facts_of(facts_format_find("int4_g128"), FACTS_TENSOR, 64, &(facts_shape){"", 4096, 4096},
                     board_find("a100"), FACTS_PLAN, &f, why, sizeof why));
    CHECK(f.wanted_flight == 0);
}

/* Limits for what ptxas makes of today's kernels (13.0; other versions differ by a few registers). SASS per weight as ./run bench gemv and
 * tensor measure it at N = K = 4096. */
static const struct {
    const char *name, *format;
    facts_mode mode;
    uint64_t m;
    int registers, loop_bytes, code_bytes;
    double per_weight[2], sectors, conflicts;
} codes[] = {
    {"Int4", "int4_g128", FACTS_EXACT, 1, 128, 8 << 10, 28 << 10, {3.9, 4.4}, 1.3, 0},
    {"Q4_K", "q4_k", FACTS_EXACT, 1, 128, 9 << 10, 24 << 10, {4.5, 5.0}, 1.5, 0},
    {"Int4_stored", "int4_g128", FACTS_TENSOR, 1, 104, 35 << 10, 38 << 10, {2.9, 3.4}, 1.7, 0},
    {"Q4_K_tile", "q4_k", FACTS_TENSOR, 1, 96, 8 << 10, 30 << 10, {9.0, 10.0}, 7.0, 0},
};

TEST_ROWS(Facts, CodeOfToday, codes)
{
    facts f;
    char why[512] = "";
    if (!sass_found(why, sizeof why))
        SKIP("%s", why);
    if (!facts_of(facts_format_find(codes[index].format), codes[index].mode, codes[index].m,
                  &(facts_shape){"", 4096, 4096}, board_find("a100"), FACTS_RUN, &f, why, sizeof why))
        FAIL("%s", why);
    CHECK(f.code.is_sass && f.code.misfit < 0.001);
    CHECK_EQ_I64(f.spill_bytes, 0);
    CHECK(f.launch.registers > 32 && f.launch.registers <= codes[index].registers);
    CHECK(f.code.loop_bytes > 1024 && f.code.loop_bytes <= codes[index].loop_bytes);
    CHECK(f.code.bytes > f.code.loop_bytes && f.code.bytes <= codes[index].code_bytes);
    CHECK(f.code.per_weight > codes[index].per_weight[0] && f.code.per_weight < codes[index].per_weight[1]);
    CHECK(f.code.sectors >= 1 && f.code.sectors < codes[index].sectors);
    CHECK(f.code.conflicts == codes[index].conflicts);
    CHECK(f.flight > 100000 && f.code.wait_mean >= f.code.wait_least);
    CHECK(f.issue_us > 1 && f.issue_us < 12);
}
