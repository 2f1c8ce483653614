/* Random control flow: graphs of blocks that jump anywhere, run by ptxvm with every lane on a path of its
 * own, and by a plain loop here. */
#include "test_exec.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_BLOCKS = 24, LANES = 64 };

typedef enum { END_JUMP, END_BRANCH, END_TABLE, END_EXIT, END_CALL, END_KINDS } block_end;

/* value = value * factor + addend; then by the end: jump to target[0]; to target[0] if a bit is set; to
 * target[value >> shift & 3]; leave if a bit is set; call a function (itself a graph: halve until odd) and
 * fall through. */
typedef struct block {
    uint32_t factor, addend, shift;
    block_end end;
    int target[4];
} block;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static int make_graph(block *blocks, uint64_t seed)
{
    uint64_t state = seed * 77 + 5;
    int n = 2 + (int)(next_random(&state) % (MAX_BLOCKS - 1));
    for (int i = 0; i < n; i++) {
        blocks[i] = (block){.factor = next_random(&state) | 1,
                            .addend = next_random(&state),
                            .shift = next_random(&state) % 28,
                            .end = (block_end)(next_random(&state) % END_KINDS)};
        if (blocks[i].end == END_EXIT && next_random(&state) % 2)
            blocks[i].end = END_BRANCH;
        for (int k = 0; k < 4; k++)
            blocks[i].target[k] = (int)(next_random(&state) % (uint32_t)n);
    }
    return n;
}

/* ---- Here ---- */

static uint32_t call_function(uint32_t value)
{
    uint32_t steps = 0;
    while (!(value & 1) && steps < 20) {
        value >>= 1;
        steps++;
    }
    return value ^ steps << 16;
}

static uint32_t expected_value(const block *blocks, int n, uint32_t lane)
{
    uint32_t value = lane * 2654435761u;
    int at = 0;
    for (int fuel = 60; fuel > 0; fuel--) {
        const block *b = &blocks[at];
        value = value * b->factor + b->addend;
        uint32_t bits = value >> b->shift;
        int next = (at + 1) % n;
        if (b->end == END_JUMP || (b->end == END_BRANCH && bits & 1))
            next = b->target[0];
        if (b->end == END_TABLE)
            next = b->target[bits & 3];
        if (b->end == END_EXIT && (bits & 3) == 3)
            return value;
        if (b->end == END_CALL)
            value = call_function(value);
        at = next;
    }
    return value;
}

/* ---- As PTX ---- */

static void append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

static void write_block(char *text, size_t size, const block *b, int index, int n)
{
    append(
        text, size,
        "B%d: mad.lo.u32 r4, r4, %u, %u;\nst.global.u32 [d1], r4;\nsub.u32 r5, r5, 1; shr.u32 r6, r4, %u;\n",
        index, b->factor, b->addend, b->shift);
    switch (b->end) {
    case END_JUMP:
        append(text, size, "setp.eq.u32 p0, r5, 0; @p0 bra DONE; bra B%d;\n", b->target[0]);
        return;
    case END_BRANCH:
        append(text, size,
               "setp.eq.u32 p0, r5, 0; @p0 exit; and.b32 r6, r6, 1; setp.ne.u32 p1, r6, 0; @p1 bra B%d;\n",
               b->target[0]);
        break;
    case END_TABLE:
        append(text, size,
               "setp.eq.u32 p0, r5, 0; @p0 bra DONE; and.b32 r6, r6, 3;\nT%d: .branchtargets B%d, B%d, B%d, "
               "B%d;\nbrx.idx r6, T%d;\n",
               index, b->target[0], b->target[1], b->target[2], b->target[3], index);
        return;
    case END_EXIT:
        append(text, size,
               "and.b32 r6, r6, 3; setp.eq.u32 p1, r6, 3; @p1 exit; setp.eq.u32 p0, r5, 0; @p0 ret;\n");
        break;
    default:
        append(text, size,
               "call (r4), f, (r4); st.global.u32 [d1], r4; setp.eq.u32 p0, r5, 0; @p0 bra DONE;\n");
        break;
    }
    if (index + 1 == n)
        append(text, size, "bra B0;\n");
}

static void write_program(char *text, size_t size, const block *blocks, int n)
{
    text[0] = 0;
    append(text, size, "%s",
           EXEC_HEADER
           ".func (.reg .b32 y) f(.reg .b32 x)\n{\n.reg .pred p<3>; .reg .b32 s<4>; mov.u32 s0, 0; mov.u32 "
           "y, x;\n"
           "L: and.b32 s1, y, 1; setp.ne.u32 p0, s1, 0; setp.ge.u32 p1, s0, 20; or.pred p2, p0, p1; shl.b32 "
           "s2, s0, 16; @p2 xor.b32 y, y, s2; @p2 ret;\n"
           "shr.u32 y, y, 1; add.u32 s0, s0, 1; bra L;\n}\n"
           ".visible .entry k(.param .u64 out)\n{\n.reg .pred p<4>; .reg .b32 r<8>; .reg .b64 d<4>;\n"
           "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n"
           "mul.lo.u32 r4, r0, 2654435761; mov.u32 r5, 60;\n");
    for (int i = 0; i < n; i++)
        write_block(text, size, &blocks[i], i, n);
    append(text, size, "DONE: ret;\n}\n");
}

static int seed_count(void)
{
    return 120;
}

static void seed_name(int index, char *text, size_t size)
{
    snprintf(text, size, "graph_%d", index);
}

TEST_EACH(PtxvmRandomFlow, EveryLaneTakesItsOwnPath, seed_count, seed_name)
{
    static char text[32768];
    block blocks[MAX_BLOCKS + 1];
    int n = make_graph(blocks, (uint64_t)index);
    uint32_t out[LANES] = {0};
    write_program(text, sizeof text, blocks, n);
    exec_simple(text, 1, LANES, out, LANES);
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (!CHECK_EQ_U32(out[lane], expected_value(blocks, n, lane)))
            break;
}
