/* Streams of words: quads of codes of every width from 2 to 8 bits, wherever they begin in a word. */
#include "test.h"

#include "formats/probe.h"
#include "kernels/formats/stream.h"

enum { WORD_BITS = 32, CODES = 256, WORDS_MAX = CODES * 8 / WORD_BITS };

static uint32_t code_in(const uint32_t *words, unsigned bits, unsigned number)
{
    uint32_t code = 0;
    for (unsigned i = 0; i < bits; i++) {
        unsigned bit = number * bits + i;
        code |= (words[bit / WORD_BITS] >> bit % WORD_BITS & 1) << i;
    }
    return code;
}

typedef struct quads_case {
    unsigned bits, count;
} quads_case;

static int count_cases(void)
{
    return 14;
}

static quads_case case_of(int index)
{
    return (quads_case){.bits = 2 + (unsigned)index % 7, .count = index < 7 ? 4 : 8};
}

static void name_case(int index, char *text, size_t size)
{
    snprintf(text, size, "%u_codes_of_%u_bits", case_of(index).count, case_of(index).bits);
}

static void read_quads(ptx_builder *b, void *user, ptx_val in, ptx_val out, ptx_val i)
{
    const quads_case *c = user;
    const word_stream stream = {.bits = c->bits, .first = in};
    ptx_val quads[2], number = ptx_cvt(b, PTX_U64, ptx_mul(b, i, c->count));
    stream_quads(b, &stream, number, c->count, quads);
    for (unsigned k = 0; k < c->count / QUAD; k++)
        ptx_st_global(b, ptx_at(b, out, i, 8), 4 * (int)k, quads[k]);
}

/* The words end with the last code: one read beyond them is found. */
TEST_EACH(KernelStream, QuadsOfEveryWidth, count_cases, name_case)
{
    quads_case c = case_of(index);
    uint32_t words[WORDS_MAX], quads[CODES / QUAD][2] = {{0}};
    for (unsigned i = 0; i < WORDS_MAX; i++)
        words[i] = (i + 1) * 0x9E3779B1u ^ i << 13;
    const unsigned runs = CODES / c.count;
    const probe p = {.sm = "sm_80",
                     .thread = read_quads,
                     .user = &c,
                     .threads = runs,
                     .in = words,
                     .in_bytes = CODES * c.bits / 8,
                     .out = quads,
                     .out_bytes = runs * sizeof quads[0]};
    REQUIRE(probe_run(&p));
    for (unsigned i = 0; i < CODES; i++) {
        unsigned in_quad = i % QUAD;
        uint32_t quad = quads[i / c.count][i % c.count / QUAD];
        test_push_note("code %u", i);
        CHECK_EQ_U32(quad >> stream_position(c.bits, false, in_quad) & ((1u << c.bits) - 1),
                     code_in(words, c.bits, i));
        test_pop_note();
    }
}

TEST_CASE(KernelStream, WordsThatQuadsReach)
{
    CHECK_EQ_I64(quads_words(2, 8), 1);
    CHECK_EQ_I64(quads_words(4, 8), 1);
    CHECK_EQ_I64(quads_words(3, 8), 2);
    CHECK_EQ_I64(quads_words(5, 8), 2);
    CHECK_EQ_I64(quads_words(6, 8), 2);
    CHECK_EQ_I64(quads_words(7, 4), 2);
    CHECK_EQ_I64(quads_words(7, 8), 3);
    CHECK_EQ_I64(quads_words(8, 8), 2);
}
