/* Facts about products on boards (bench/facts): how blocks fill a board, worked out by hand from the CUDA programming guide, and what the
 * products' launches are today. */
#include "bench/facts/facts.h"
#include "test.h"

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
    {"WarpsGoToFourSchedulers", "a100", 1000, 64, 0, 192, 2, 4, 1000 / 216.0, (1000 % 216) / 216.0},
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
    {"Q4_K", "q4_k", FACTS_EXACT, 1, 4096, 4096, "blocks", 32, 256, 1, 0},
    {"Q4_K_narrow", "q4_k", FACTS_EXACT, 1, 1024, 4096, "blocks", 8, 256, 1, 0},
    {"Int4", "int4_g128", FACTS_EXACT, 1, 4096, 4096, "gemv", 128, 128, 1, 0},
    {"Int4_few", "int4_g128", FACTS_EXACT, 16, 4096, 4096, "gemv", 128, 256, 1, 0},
    {"Int4_stored", "int4_g128", FACTS_TENSOR, 64, 4096, 4096, "tile", 32, 256, 1, 0},
    {"Int4_prepacked", "int4_g128", FACTS_PREPACKED, 64, 4096, 4096, "stream", 128, 256, 2,
     4 * 64 * 4096 * 8},
    {"Q8_0_odd", "q8_0", FACTS_EXACT, 1, 49152, 576, "blocks", 1536, 128, 1, 0},
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
