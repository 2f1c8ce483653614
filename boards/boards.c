/* Lookup in the tables of boards and SM generations. */
#include "boards/boards.h"

#include <stdio.h>
#include <strings.h>

static const board boards[] = {
#define BOARD(...) {__VA_ARGS__},
#include "boards/boards.def"
#undef BOARD
};

static const generation generations[] = {
#define GENERATION(sm, s0, s1, a0, a1, b0, b1, d0, d1, t0, t1, fma, integer, special, p0, p1, source)        \
    {sm, {s0, s1}, {a0, a1}, {b0, b1}, {d0, d1}, {t0, t1}, fma, integer, special, {p0, p1}, source},
#include "boards/generations.def"
#undef GENERATION
};

static const pipes all_pipes[] = {
#define PIPES(sm, half, f64, mma, l1, l20, l21, x0, x1, shuffle, m0, m1, w0, w1, b0, b1, warp, source)       \
    {sm, half, f64, mma, l1, {l20, l21}, {x0, x1}, shuffle, {m0, m1}, {w0, w1}, {b0, b1}, warp, source},
#include "boards/pipes.def"
#undef PIPES
};

enum { BOARDS = sizeof boards / sizeof *boards, GENERATIONS = sizeof generations / sizeof *generations };

int board_count(void)
{
    return BOARDS;
}

const board *board_at(int index)
{
    return index >= 0 && index < BOARDS ? &boards[index] : NULL;
}

const board *board_find(const char *name)
{
    for (int i = 0; i < BOARDS; i++)
        if (!strcasecmp(boards[i].name, name))
            return &boards[i];
    return NULL;
}

const board *board_of_sm(int sm)
{
    for (int i = 0; i < BOARDS; i++)
        if (boards[i].sm == sm && boards[i].is_default)
            return &boards[i];
    return NULL;
}

void board_sm_name(const board *b, char *text, size_t size)
{
    snprintf(text, size, "sm_%d%s", b->sm, b->sm >= 90 ? "a" : "");
}

const char *board_names(void)
{
    /* The literals join: the first name has a separator in front, which is skipped. */
    static const char names[] = ""
#define BOARD(name, ...) ", " name
#include "boards/boards.def"
#undef BOARD
        ;
    return names + 2;
}

const generation *generation_of_sm(int sm)
{
    for (int i = 0; i < GENERATIONS; i++)
        if (generations[i].sm == sm)
            return &generations[i];
    return NULL;
}

const pipes *pipes_of_sm(int sm)
{
    for (size_t i = 0; i < sizeof all_pipes / sizeof *all_pipes; i++)
        if (all_pipes[i].sm == sm)
            return &all_pipes[i];
    return NULL;
}
