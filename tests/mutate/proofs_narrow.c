/* Rules about results of which a narrower type, a clamp or half of a register takes only a part. */
#include "mutate/change.h"
#include "mutate/numbers.h"
#include "mutate/proofs.h"

#include <string.h>

enum { F16_BITS = 11, BF16_BITS = 8 };

/* Calls `accepts` with each instruction that reads the register; false where one is not accepted, or the register is written elsewhere. */
static bool all_readers(const char *ptx, const char *reg,
                        bool (*accepts)(const instruction *i, void *context), void *context)
{
    instruction i;
    if (!text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if (text_writes(&i) && strcmp(i.operand[0], reg) == 0)
            continue;
        if (!accepts(&i, context))
            return false;
    }
    return true;
}

static bool takes_only(const instruction *i, void *context)
{
    instruction *only = context;
    const bool is_first = only->n == 0;
    *only = *i;
    return is_first;
}

static bool only_reader(const char *ptx, const char *reg, instruction *reader)
{
    reader->n = 0;
    return all_readers(ptx, reg, takes_only, reader) && reader->n > 0;
}

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
    if (!all_readers(ptx, reg, takes_narrowing, &n))
        return 0;
    if (n.bits)
        return n.bits;
    return n.bit[0] && n.sum[0] && only_reader(ptx, n.bit, &of_bit) && only_reader(ptx, n.sum, &of_sum) &&
                   text_is_opcode(&of_bit, "add.u32") && strcmp(of_bit.operand[0], of_sum.operand[0]) == 0
               ? BF16_BITS
               : 0;
}

/* A product that is exact unless it overflows, and then only converted to f16 or bf16. Where it overflows, it is infinite if rounded to nearest,
 * and the largest f32 if rounded toward zero; both types make an infinity of that, and so does the sum of its bits 7F7FFFFF, 7FFF and 1, which is
 * the sum of 7F800000, 7FFF and 0. */
bool overflow_is_narrowed(const char *ptx, const mutant *m, const instruction *i)
{
    const program *p = m->kind == MUTANT_ROUNDING ? program_of(ptx) : NULL;
    if (!p || !text_is_opcode(i, "mul.rn.f32") || strcmp(m->with, "rz") != 0)
        return false;
    const numbers a = numbers_of(p, i->operand[1]), b = numbers_of(p, i->operand[2]);
    const int x = numbers_bits(&a), y = numbers_bits(&b), bits = x == 1 ? y : y == 1 ? x : x + y;
    return bits <= F32_BITS && a.unit + b.unit >= F32_LEAST && narrowed_bits(ptx, i->operand[0]) > 0;
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
        !only_reader(ptx, i->operand[0], &first) || !only_reader(ptx, first.operand[0], &second))
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
