/* docs/boards.md and the tables of boards/ say the same. */
#include "boards/boards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "tools/toolkit.h"

static char *read_page(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/docs/boards.md", QDNN_SOURCE_DIR);
    return toolkit_read_file(path, NULL);
}

static void board_line(const board *b, char *line, size_t size)
{
    char l2[32];
    snprintf(l2, sizeof l2, b->l2_kib % 1024 ? "%.1f" : "%.0f", b->l2_kib / 1024.0);
    snprintf(line, size, "| `%s`%s | %s | sm_%d | %d | %d | %d | %d | %s | %d | %s |", b->name,
             b->is_default ? " *" : "", b->title, b->sm, b->multiprocessors, b->clock_mhz, b->memory_gb,
             b->dram_gbs, l2, b->tensor_tflops, b->source);
}

static void put_range(char *text, size_t size, published_range r)
{
    if (r.low == r.high)
        snprintf(text, size, "%d", r.low);
    else
        snprintf(text, size, "%d to %d", r.low, r.high);
}

static void generation_line(const generation *g, char *line, size_t size)
{
    const published_range ranges[] = {g->shared, g->l1, g->l2, g->dram, g->tensor, g->dram_percent};
    char text[6][32];
    for (int i = 0; i < 6; i++)
        put_range(text[i], sizeof text[i], ranges[i]);
    snprintf(line, size, "| sm_%d | %s | %s | %s | %s | %s | %d | %d | %d | %s | %s |", g->sm, text[0],
             text[1], text[2], text[3], text[4], g->fma_per_clock, g->integer_per_clock, g->special_per_clock,
             text[5], g->source);
}

static void check_line(const char *page, const char *line)
{
    if (!CHECK(strstr(page, line) != NULL))
        printf("docs/boards.md lacks:\n%s\n", line);
}

TEST_CASE(BoardTables, PageHasEveryRow)
{
    char line[1024];
    char *page = read_page();
    REQUIRE(page != NULL);
    for (int i = 0; i < board_count(); i++) {
        board_line(board_at(i), line, sizeof line);
        check_line(page, line);
        const generation *g = generation_of_sm(board_at(i)->sm);
        if (CHECK(g != NULL)) {
            generation_line(g, line, sizeof line);
            check_line(page, line);
        }
    }
    free(page);
}

/* The memory's clock and width give its bandwidth (two transfers per clock); data sheets round it. */
TEST_CASE(BoardTables, NumbersAgree)
{
    for (int i = 0; i < board_count(); i++) {
        const board *b = board_at(i);
        double gbs = 2e3 * b->memory_khz * b->bus_bits / 8 * 1e-9;
        CHECK(gbs > 0.96 * b->dram_gbs && gbs < 1.04 * b->dram_gbs);
        CHECK(b->multiprocessors >= 1 && b->multiprocessors <= 192 && b->clock_mhz > 1000);
        CHECK(board_find(b->name) == b && board_of_sm(b->sm) && board_of_sm(b->sm)->sm == b->sm);
    }
    CHECK(!board_find("a99") && !board_find("") && !board_of_sm(70));
    CHECK(board_find("RTX4090") == board_find("rtx4090"));
}
