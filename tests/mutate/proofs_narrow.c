/* Rules about results of which a narrower type, a clamp or half of a register takes only a part. */
#include "mutate/change.h"
#include "mutate/numbers.h"
#include "mutate/proofs.h"

#include <string.h>

enum { F16_BITS = 11, BF16_BITS = 8 };

/* ---- Narrower types ---- */

/* `bfe t, x, 16, 1`, `add u, x, 32767`, `add w, u, t` and a test for NaN: w's upper half is x rounded to bf16. */
typedef struct narrowing {
    int bits;
    char bit[TEXT_MAX], sum[TEXT_MAX];
} narrowing;

static bool takes_narrowing(const instruction *i, void *context)
{
    static const struct {
        const char *opcode;
        int bits;
    } known[] = {{"cvt.rn.f16.f32", F16_BITS},
                 {"cvt.rn.f16x2.f32", F16_BITS},
                 {"cvt.rn.bf16.f32", BF16_BITS},
                 {"cvt.rn.bf16x2.f32", BF16_BITS}};
    narrowing *n = context;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (text_is_opcode(i, known[k].opcode)) {
            const bool is_same = n->bits == 0 || n->bits == known[k].bits;
            n->bits = known[k].bits;
            return is_same && !n->bit[0] && !n->sum[0];
        }
    if (text_is_opcode(i, "testp.notanumber.f32"))
        return true;
    const bool is_bit = text_is_opcode(i, "bfe.u32") && strcmp(i->operand[2], "16") == 0 &&
                        strcmp(i->operand[3], "1") == 0,
               is_sum = text_is_opcode(i, "add.u32") && strcmp(i->operand[2], "32767") == 0;
    if (n->bits || !(is_bit || is_sum) || *(is_bit ? n->bit : n->sum))
        return false;
    strcpy(is_bit ? n->bit : n->sum, i->operand[0]);
    return true;
}

int narrowed_bits(const char *ptx, const char *reg)
{
    narrowing n = {0};
    instruction of_bit, of_sum;
    if (!text_all_readers(ptx, reg, takes_narrowing, &n))
        return 0;
    if (n.bits)
        return n.bits;
    return n.bit[0] && n.sum[0] && text_only_reader(ptx, n.bit, &of_bit) &&
                   text_only_reader(ptx, n.sum, &of_sum) && text_is_opcode(&of_bit, "add.u32") &&
                   strcmp(of_bit.operand[0], of_sum.operand[0]) == 0
               ? BF16_BITS
               : 0;
}

/* ---- Types of 8 bits and fewer ---- */

/* What reads the limited magnitude m: `shr e, m, 23` and `add sum, m, M`. */
typedef struct magnitude_readers {
    char exponent[TEXT_MAX], addend[TEXT_MAX];
} magnitude_readers;

static bool takes_magnitude(const instruction *i, void *context)
{
    magnitude_readers *r = context;
    const bool is_shift = text_is_opcode(i, "shr.u32") && strcmp(i->operand[2], "23") == 0;
    char *to = is_shift ? r->exponent : r->addend;
    if ((!is_shift && !text_is_opcode(i, "add.rn.f32")) || *to)
        return false;
    strcpy(to, i->operand[is_shift ? 0 : 2]);
    return true;
}

/* `min m, x, C`, `shr e, m, 23`, `max f, e, E`, `mad M, f, 2^23, k 2^23`, `add sum, m, M` of an x that is not negative. M is 2^k times a power of
 * two that is not above m, or m is less than 2^(E - 127): the sum rounds m to 24 - k bits, or to multiples of what these bits have there. So
 * neither e nor the sum tells apart two x between two neighbours among the numbers of one bit more, C among them; and none far below 2^E. */
static int rounded_bits(const char *ptx, const instruction *limit)
{
    enum { FRACTION = 1 << 23, EXPONENT_LEAST = 64 };
    magnitude_readers r = {0};
    instruction most, addend;
    uint64_t c, least, factor, k;
    float bound;
    if (!text_is_opcode(limit, "min.f32") || !is_f32_constant(limit->operand[2], &bound) ||
        !text_constant(limit->operand[2], &c) || !(bound > 0 && bound < 0x1p64f) ||
        !text_all_readers(ptx, limit->operand[0], takes_magnitude, &r) || !r.exponent[0] || !r.addend[0] ||
        !text_only_reader(ptx, r.exponent, &most) || !text_is_opcode(&most, "max.u32") ||
        !text_constant(most.operand[2], &least) || least < EXPONENT_LEAST || least > 127 ||
        !text_definition(ptx, r.addend, &addend) || !text_is_opcode(&addend, "mad.lo.u32") ||
        strcmp(addend.operand[1], most.operand[0]) != 0 || !text_constant(addend.operand[2], &factor) ||
        !text_constant(addend.operand[3], &k) || factor != FRACTION || k % FRACTION != 0)
        return 0;
    k /= FRACTION;
    const int bits = F32_BITS - (int)k;
    return k > 2 && k < F32_BITS - 1 && (c & bits_mask(F32_BITS - 1 - bits)) == 0 ? bits : 0;
}

typedef struct encoding {
    const char *ptx, *reg;
    int bits, depth;
} encoding;

static int bits_of_reader(const encoding *e, const instruction *i)
{
    static const struct {
        const char *opcode;
        int bits;
    } known[] = {{"cvt.rn.satfinite.e4m3x2.f32", 4},
                 {"cvt.rn.satfinite.e5m2x2.f32", 3},
                 {"cvt.rn.satfinite.e2m3x2.f32", 4},
                 {"cvt.rn.satfinite.e3m2x2.f32", 3},
                 {"cvt.rn.satfinite.e2m1x2.f32", 2}};
    instruction limit;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (text_is_opcode(i, known[k].opcode))
            return known[k].bits;
    if (text_is_opcode(i, "selp.b32"))
        return encoded_bits(e->ptx, i->operand[0], e->depth - 1);
    return text_is_opcode(i, "abs.f32") && text_only_reader(e->ptx, i->operand[0], &limit)
               ? rounded_bits(e->ptx, &limit)
               : 0;
}

/* Besides, whether it is NaN, and its sign. */
static bool takes_encoding(const instruction *i, void *context)
{
    encoding *e = context;
    if (text_is_opcode(i, "testp.notanumber.f32") || text_is_opcode(i, "setp.nan.f32") ||
        (text_is_opcode(i, "shr.u32") && strcmp(i->operand[1], e->reg) == 0 &&
         strcmp(i->operand[2], "31") == 0))
        return true;
    const int bits = bits_of_reader(e, i);
    if (bits > e->bits)
        e->bits = bits;
    return bits > 0;
}

int encoded_bits(const char *ptx, const char *reg, int depth)
{
    encoding e = {.ptx = ptx, .reg = reg, .depth = depth};
    return depth > 0 && text_all_readers(ptx, reg, takes_encoding, &e) ? e.bits : 0;
}

/* ---- Products ---- */

/* A product that is exact unless it overflows, and then only converted to f16 or bf16. Where it overflows, it is infinite if rounded to nearest,
 * and the largest f32 if rounded toward zero; both types make an infinity of that, and so does the sum of its bits 7F7FFFFF, 7FFF and 1, which is
 * the sum of 7F800000, 7FFF and 0. Types of 8 bits make their largest number of both, and 0 of what is rounded below 2^-126. */
bool overflow_is_narrowed(const char *ptx, const mutant *m, const instruction *i)
{
    const program *p = m->kind == MUTANT_ROUNDING ? program_of(ptx) : NULL;
    if (!p || !text_is_opcode(i, "mul.rn.f32") || strcmp(m->with, "rz") != 0)
        return false;
    const numbers a = numbers_of(p, i->operand[1]), b = numbers_of(p, i->operand[2]);
    const int x = numbers_bits(&a), y = numbers_bits(&b), bits = x == 1 ? y : y == 1 ? x : x + y;
    return bits <= F32_BITS && ((a.unit + b.unit >= F32_LEAST && narrowed_bits(ptx, i->operand[0]) > 0) ||
                                encoded_bits(ptx, i->operand[0], PROOF_DEPTH) > 0);
}

/* ---- Clamps ---- */

static bool is_clamp(const instruction *i, const char *opcode, const char *reg)
{
    float bound;
    return text_is_opcode(i, opcode) && strcmp(i->operand[1], reg) == 0 &&
           is_f32_constant(i->operand[2], &bound) && bound >= -0x1p24f && bound <= 0x1p24f;
}

/* A sum of integral numbers is exact up to 2^24. Beyond, its magnitude is at least that however it is rounded, and a clamp follows. */
bool sum_is_clamped(const char *ptx, const mutant *m, const instruction *i)
{
    const program *p = m->kind == MUTANT_ROUNDING ? program_of(ptx) : NULL;
    instruction first, second;
    if (!p || strcmp(m->with, "rz") != 0 ||
        (!text_is_opcode(i, "add.rn.f32") && !text_is_opcode(i, "sub.rn.f32")) ||
        numbers_of(p, i->operand[1]).unit < 0 || numbers_of(p, i->operand[2]).unit < 0 ||
        !text_only_reader(ptx, i->operand[0], &first) || !text_only_reader(ptx, first.operand[0], &second))
        return false;
    return (is_clamp(&first, "max.f32", i->operand[0]) && is_clamp(&second, "min.f32", first.operand[0])) ||
           (is_clamp(&first, "min.f32", i->operand[0]) && is_clamp(&second, "max.f32", first.operand[0]));
}

/* ---- Halves ---- */

/* Two numbers are converted to the halves of a register, and only one half is used. */
bool other_half_is_dropped(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    if ((m->kind != MUTANT_CONSTANT && m->kind != MUTANT_REGISTER) || strncmp(i->opcode, "cvt.rn.", 7) != 0 ||
        !strstr(i->opcode, "x2.f32") || i->n != 3 || !change_of(ptx, m, &c) || c.old->n_writes != 1 ||
        strcmp(c.old->i.opcode, c.now.i.opcode) != 0 || c.old->writes[0] != c.now.writes[0])
        return false;
    const int half = c.p->width[c.old->writes[0]] / 2;
    const uint64_t used = c.used[c.old->writes[0]];
    const bool is_upper = strcmp(c.old->i.operand[1], c.now.i.operand[1]) != 0,
               is_lower = strcmp(c.old->i.operand[2], c.now.i.operand[2]) != 0;
    return !(is_upper && used >> half) && !(is_lower && used & bits_mask(half));
}
