/* Maps against answers worked out by hand, and against the rules of docs/. */
#include "kernels/formats/block_reader.h"
#include "kernels/gemm/gemv.h"
#include "kernels/maps/map.h"
#include "kernels/tensor/prepack.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

/* ---- Every map that has a name ---- */

static int count(void)
{
    int n = 0;
    while (map_named(n))
        n++;
    return n;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", map_named(index)->name);
}

static map_point point(unsigned first, unsigned second, unsigned third)
{
    return (map_point){{first, second, third}};
}

/* Its inverse leads back from everywhere, and back to itself by composition. */
TEST_EACH(Maps, Inverse, count, name)
{
    map m = map_of(map_named(index)->text), back, there_and_back;
    if (!map_is_bijection(&m)) { /* codes narrower than their places leave gaps between them */
        CHECK(map_is_injective(&m));
        CHECK(!map_invert(&m, &back));
        return;
    }
    REQUIRE(map_invert(&m, &back));
    REQUIRE(map_compose(&m, &back, &there_and_back));
    for (unsigned a = 0; a < map_extent(&m, 0); a++)
        for (unsigned b = 0; b < map_extent(&m, 1); b++) {
            const map_point in = point(a, b, 0), out = map_at(&m, &in), again = map_at(&back, &out),
                            same = map_at(&there_and_back, &in);
            for (int i = 0; i < m.in.count; i++) {
                CHECK_EQ_U64(again.at[i], in.at[i]);
                CHECK_EQ_U64(same.at[i], in.at[i]);
            }
        }
}

/* ---- Known answers ---- */

typedef struct answer {
    const char *name;
    unsigned in[3], out[3];
} answer;

/* clang-format off */
static const answer answers[] = {
    /* PTX ISA, "Matrix Fragments for mma.m16n8k16": lane 5 has row 1 and row 9, elements 2, 3, 10 and 11 */
    {"mma_a_k16", {5, 0, 0}, {2, 1}}, {"mma_a_k16", {5, 1, 0}, {3, 1}},  {"mma_a_k16", {5, 0, 1}, {2, 9}},
    {"mma_a_k16", {5, 0, 2}, {10, 1}}, {"mma_a_k16", {31, 1, 3}, {15, 15}},
    {"mma_b_k16", {5, 1, 1}, {11, 1}}, {"mma_b_k16", {31, 0, 0}, {6, 7}},
    {"mma_c", {6, 1, 0}, {5, 1}}, {"mma_c", {6, 2, 0}, {4, 9}},
    /* m16n8k32: four neighbouring bytes */
    {"mma_a_k32", {6, 3, 0}, {11, 1}}, {"mma_a_k32", {6, 0, 3}, {24, 9}},
    /* AWQ: columns 0 to 7 lie at bits 0 16 4 20 8 24 12 28 */
    {"awq", {1}, {16}}, {"awq", {2}, {4}}, {"awq", {5}, {24}}, {"awq", {7}, {28}},
    /* swizzled scales: row 33 of a tile is 4 bytes behind row 1 */
    {"scales_128x4", {1, 0}, {16}}, {"scales_128x4", {33, 2}, {22}}, {"scales_128x4", {127, 3}, {511}},
    /* TQ1_0: digit 4 of byte 31 is element 159; of byte 47 element 239; digit 3 of byte 51 element 255 */
    {"tq1_0_32", {31, 4}, {159}}, {"tq1_0_16", {15, 4}, {79}}, {"tq1_0_4", {3, 3}, {15}},
    /* a prepacked unit: n 9, k 19 are of step 1, pair 1, the second half, in lane 4 * 1 + 1 */
    {"unit", {9, 19}, {5, 5, 1}}, {"unit", {15, 63}, {31, 15, 1}},
    {"unit_4", {5, 1}, {32 + 4 + 16}}, {"unit_4_looked_up", {5, 1}, {44}}, {"unit_6", {3, 1}, {42}},
    /* line 5 has piece 3 at place 6 */
    {"swizzle", {5, 3}, {5 * 128 + 6 * 16}},
    {"team_4", {3, 7}, {31}}, {"team_8", {1, 4}, {9}},
};
/* clang-format on */

static int answer_count(void)
{
    return sizeof answers / sizeof answers[0];
}

static void answer_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%d", answers[index].name, index);
}

TEST_EACH(Maps, KnownAnswers, answer_count, answer_name)
{
    const answer *a = &answers[index];
    const map m = map_find(a->name);
    const map_point in = point(a->in[0], a->in[1], a->in[2]), out = map_at(&m, &in);
    for (int i = 0; i < m.out.count; i++)
        CHECK_EQ_U64(out.at[i], a->out[i]);
}

/* ---- Composition ---- */

/* From an element of a unit to its bit: docs/formats.md, "Prepacked", by its own words. */
TEST_CASE(Maps, PrepackedBits)
{
    const map unit = map_find("unit"), in_lane = map_find("unit_8");
    map with_lane = in_lane, bits;
    map_add(&with_lane, "lane", 32, "lane", 1);
    REQUIRE(map_compose(&unit, &with_lane, &bits));
    for (unsigned n = 0; n < 16; n++)
        for (unsigned k = 0; k < 64; k++) {
            const unsigned step = k / 16, i = n / 8 + 2 * (k / 8 % 2), pair = 4 * step + i;
            CHECK_EQ_U64(map_value(&bits, "lane", n, k), n % 8 * 4 + k / 2 % 4);
            CHECK_EQ_U64(map_value(&bits, "bit", n, k), pair / 2 * 32 + pair % 2 * 8 + 16 * (k % 2));
        }
}

/* The named orders are those that kernels use. */
TEST_CASE(Maps, OrdersOfUnits)
{
    static const struct {
        const char *name;
        unsigned bits;
        bool byte_pairs;
    } rows[] = {{"unit_2", 2, false},
                {"unit_4", 4, false},
                {"unit_8", 8, false},
                {"unit_6", 6, false},
                {"unit_4_looked_up", 4, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const map named = map_find(rows[i].name), used = prepack_order(rows[i].bits, rows[i].byte_pairs);
        for (unsigned pair = 0; pair < UNIT_PAIRS; pair++)
            for (unsigned half = 0; half < 2; half++)
                CHECK_EQ_U64(map_value(&used, "bit", pair, half), map_value(&named, "bit", pair, half));
    }
}

/* Every thread of a team has lanes of its own, whatever the format of the blocks: in a team of 8, four. */
TEST_CASE(Maps, LanesOfBlocks)
{
    for (int i = 0; i < kernel_row_count; i++) {
        const block_layout *layout =
            kernel_format(&kernel_rows[i]) ? block_layout_of(kernel_rows[i].format) : NULL;
        block_share share;
        for (unsigned team = 8; team <= 32; team *= 2) {
            if (!layout || !block_share_of(layout, team, &share))
                continue;
            const map lanes = block_share_lanes(&share);
            CHECK(map_is_bijection(&lanes));
            CHECK_EQ_U64(map_extent(&lanes, 0), team);
            CHECK_EQ_U64(share.chunks * team, 32);
        }
    }
    block_share q4_k;
    const block_layout *layout = block_layout_of(kernel_find("matmul_gguf_q4_k")->format);
    REQUIRE(block_share_of(layout, 8, &q4_k));
    map lanes = block_share_lanes(&q4_k);
    /* Thread 3 has bytes 16 to 31 of section 1: elements 80 to 95 and 112 to 127; an odd one takes the upper strand first. */
    CHECK_EQ_U64(map_value(&lanes, "lane", 3, 0), 14);
    CHECK_EQ_U64(map_value(&lanes, "lane", 3, 3), 11);
    /* Of 16 threads number 7 has bytes 24 to 31 of it; of 32, threads 14 and 15 share them, the odd one has the upper strand. */
    REQUIRE(block_share_of(layout, 16, &q4_k));
    lanes = block_share_lanes(&q4_k);
    CHECK_EQ_U64(map_value(&lanes, "lane", 7, 0), 15);
    CHECK_EQ_U64(map_value(&lanes, "lane", 7, 1), 11);
    REQUIRE(block_share_of(layout, 32, &q4_k));
    lanes = block_share_lanes(&q4_k);
    CHECK_EQ_U64(map_value(&lanes, "lane", 14, 0), 11);
    CHECK_EQ_U64(map_value(&lanes, "lane", 15, 0), 15);
}

/* The numbers of no two spans of a tile overlap, in order or between the entries of a table. */
TEST_CASE(Maps, PlacesOfNumbers)
{
    static const char *const kernels[] = {"matmul_int4", "matmul_nf4", "matmul_e2m1"};
    static const char *const sms[] = {"sm_75", "sm_90"};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        for (size_t j = 0; j < sizeof sms / sizeof sms[0]; j++)
            for (unsigned rows = 1; rows <= 16; rows *= 2) {
                const kernel_row *row = kernel_find(kernels[i]);
                kernel_spec spec = kernel_spec_default();
                char error[256];
                char words[64];
                snprintf(words, sizeof words, "groups=rows group_size=32 product=gemv tile_rows=%u", rows);
                REQUIRE(kernel_spec_set_words(row, &spec, words, error, sizeof error));
                spec = kernel_spec_normal(row, &spec);
                const gemv_shape s = gemv_shape_of(row, &spec, ptx_sm_find(sms[j]));
                const gemv_codec *codec = gemv_codec_of(row->format, &spec);
                const unsigned slots = s.tile / s.span, bytes = gemv_numbers_bytes(&s, codec);
                unsigned char *used = calloc(bytes, 1);
                REQUIRE(used != NULL);
                for (unsigned output = 0; output < s.of_block; output++)
                    for (unsigned slot = 0; slot < slots; slot++)
                        for (unsigned n = 0; n < 4 * codec->numbers; n++) {
                            const unsigned at =
                                gemv_output_offset(&s, codec, output) + gemv_slot_offset(&s, codec, slot) + n;
                            if (!CHECK(at < bytes) || !CHECK(!used[at]++))
                                output = s.of_block - 1, slot = slots - 1, n = 4 * codec->numbers;
                        }
                free(used);
            }
}

/* K = 576: 2 rounds of 32 chunks of 8, and a quarter of one; 34 bytes a block of 32. */
TEST_CASE(Maps, MixedRadix)
{
    const map codes = map_of("k 32inside 18block"), bytes = map_of("inside 32byte; block 18byte*34");
    map all, back;
    REQUIRE(map_compose(&codes, &bytes, &all));
    CHECK_EQ_U64(map_extent(&all, 0), 576);
    CHECK_EQ_U64(map_value(&all, "byte", 575, 0), 17 * 34 + 31);
    CHECK(map_is_injective(&all));
    CHECK(!map_is_bijection(&all)); /* two bytes of each block are its scale */
    REQUIRE(map_invert(&codes, &back));
    CHECK_EQ_U64(map_value(&back, "k", 31, 17), 575);
}

/* 12 in digits of 4 cannot be cut at 3, and digits that overlap carry. */
TEST_CASE(Maps, NoComposition)
{
    const map by_four = map_of("x 4a 3a*4"), by_three = map_of("a 3b 4c"), overlap = map_of("x 4a 3a*2");
    map all;
    CHECK(!map_compose(&by_four, &by_three, &all));
    CHECK(!map_compose(&overlap, &by_three, &all));
    CHECK(!map_compose(&by_three, &by_four, &all)); /* no input of that name */
    CHECK(!map_is_injective(&overlap));
}

/* ---- Memory ---- */

typedef struct access {
    const char *name, *text;
    unsigned bytes, sectors, wavefronts;
} access;

/* clang-format off */
static const access accesses[] = {
    {"words",         "lane 32byte*4",                            4,  4,  1},
    {"vectors",       "lane 32byte*16",                          16, 16,  4},
    {"pairs",         "lane 32byte*8",                            8,  8,  2},
    {"bytes",         "lane 32byte",                              1,  1,  1},
    {"every_other",   "lane 32byte*8",                            4,  8,  2},
    {"columns",       "lane 32byte*128",                          4, 32, 32},
    {"same",          "lane 32nothing; other 1byte",              4,  1,  1},
    {"padded",        "lane 32byte*132",                          4, 32,  1},
    /* ldmatrix: lanes 8 i to 8 i + 7 name the lines of matrix i */
    {"straight",      "lane 8byte*128 4byte*16",                 16, 16, 32},
    {"swizzled",      "lane ^8byte*16 8byte*128 4byte*1024",     16, 32,  4},
    /* rows of 20 words, eight at a time (lanewise.c) */
    {"rows_of_20",    "lane 8byte*80 4byte*16",                  16, 20,  4},
};
/* clang-format on */

TEST_ROWS(Maps, Memory, accesses)
{
    const access *a = &accesses[index];
    map m = map_of(a->text);
    map_point at = {0};
    map_add(&m, "lane", 1, "byte", 1); /* the axes exist, even if nothing depends on them */
    CHECK_EQ_U64(map_sectors(&m, &at, a->bytes), a->sectors);
    CHECK_EQ_U64(map_wavefronts(&m, &at, a->bytes), a->wavefronts);
}

/* Both swizzles of the tile kernel: no conflicts, whichever piece is read. */
TEST_CASE(Maps, SwizzlesHaveNoConflicts)
{
    const map lines = map_find("swizzle"), fp8 = map_find("fp8_lines");
    const map of_lane = map_of("lane 8line 4piece; first 2piece*4"),
              of_fp8 = map_of("lane 2k 4k*4 2k*2 2piece; first 4piece*2");
    map all;
    REQUIRE(map_compose(&of_lane, &lines, &all));
    for (unsigned first = 0; first < 2; first++) {
        const map_point at = point(0, first, 0);
        CHECK_EQ_U64(map_wavefronts(&all, &at, 16), 4);
    }
    REQUIRE(map_compose(&of_fp8, &fp8, &all));
    for (unsigned first = 0; first < 4; first++) {
        const map_point at = point(0, first, 0);
        CHECK_EQ_U64(map_wavefronts(&all, &at, 16), 4);
    }
}

/* ---- Texts ---- */

TEST_CASE(Maps, Prints)
{
    char text[256];
    map m = map_find("mma_a_k16");
    map_print(&m, text, sizeof text);
    CHECK_EQ_STR(text, "k = 2 (lane % 4) + half + 8 (register / 2)\nm = lane / 4 + 8 (register % 2)\n");
    m = map_find("swizzle");
    map_print(&m, text, sizeof text);
    CHECK_EQ_STR(text, "byte = 128 line + 16 piece ^ 16 (line % 8)\n");
}

static const struct {
    const char *name, *text, *error;
} mistakes[] = {
    {"no_input", "4k", "'4k' does not begin with the name of an input"},
    {"no_size", "lane k", "'k' is no digit; write one as in 4k*2"},
    {"no_output", "lane 4", "'4' is no digit; write one as in 4k*2"},
    {"no_step", "lane 4k*", "a step is missing in '4k*'"},
};

TEST_ROWS(Maps, Mistakes, mistakes)
{
    map m;
    char error[128];
    CHECK(!map_parse(mistakes[index].text, &m, error, sizeof error));
    CHECK_EQ_STR(error, mistakes[index].error);
}
