/* A rule about bounds of clamps: differences that the operations behind them swallow.
 *
 * A register of the original and of the mutant either has the same value in both, or both values lie in one span. The rule follows the
 * span forwards through everything that uses the register, until the rest of the text cannot tell its numbers apart. */
#include "mutate/program.h"
#include "mutate/proofs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    float least, most;
} span;

/* The instruction that differs: what it writes, and the constant that it has in the original and in the mutant. */
static struct {
    const char *reg;
    float old, now;
} changed;

static bool is_one_of(const instruction *i, const char *const *opcodes, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (text_is_opcode(i, opcodes[k]))
            return true;
    return false;
}
#define IS_ONE_OF(i, list) is_one_of(i, list, sizeof(list) / sizeof(list)[0])

static span ordered(float a, float b)
{
    return a < b ? (span){a, b} : (span){b, a};
}

/* ---- Where a number lies, in both texts ---- */

static bool bounds_of(const char *ptx, const char *operand, int depth, span *out);

/* The results of an operation at the ends of its operands; false where one of them is NaN. Between, rounded or not, the operation
 * never turns. */
static bool corners(const instruction *i, span a, span b, span *out)
{
    const float x[4] = {a.least, a.least, a.most, a.most}, y[4] = {b.least, b.most, b.least, b.most};
    *out = (span){INFINITY, -INFINITY};
    if (i->opcode[0] == 'd' && b.least <= 0 && b.most >= 0)
        return false;
    for (int k = 0; k < 4; k++) {
        const float result = i->opcode[0] == 'a'   ? x[k] + y[k]
                             : i->opcode[0] == 's' ? x[k] - y[k]
                             : i->opcode[0] == 'd' ? x[k] / y[k]
                                                   : x[k] * y[k];
        if (result != result)
            return false;
        out->least = fminf(out->least, result);
        out->most = fmaxf(out->most, result);
    }
    return true;
}

static bool is_arithmetic(const instruction *i)
{
    static const char *const opcodes[] = {"add.rn.f32", "sub.rn.f32", "mul.rn.f32", "div.rn.f32"};
    return IS_ONE_OF(i, opcodes) && i->n == 3;
}

static bool is_extreme(const instruction *i)
{
    return (text_is_opcode(i, "min.f32") || text_is_opcode(i, "max.f32")) && i->n == 3;
}

/* The extreme of a number and anything, NaN included, is a number on its side of it. */
static bool extreme_bounds(const char *ptx, const instruction *i, int depth, span *out)
{
    span a, b;
    const bool has_a = bounds_of(ptx, i->operand[1], depth, &a),
               has_b = bounds_of(ptx, i->operand[2], depth, &b), is_min = i->opcode[1] == 'i';
    if (!has_a && !has_b)
        return false;
    if (!has_a || !has_b) {
        *out = has_a ? a : b;
        *(is_min ? &out->least : &out->most) = is_min ? -INFINITY : INFINITY;
        return true;
    }
    *out = is_min ? (span){fminf(a.least, b.least), fminf(a.most, b.most)}
                  : (span){fmaxf(a.least, b.least), fmaxf(a.most, b.most)};
    return true;
}

/* Whether a definition of a variable makes it the lesser (or the larger) of itself and something else. */
static bool goes_on(const char *ptx, const instruction *def, const char *reg, bool *is_min)
{
    instruction inner = *def;
    if (text_is_opcode(def, "mov.b32") && !text_definition(ptx, def->operand[1], &inner))
        return false;
    *is_min = inner.opcode[1] == 'i';
    return is_extreme(&inner) && (strcmp(inner.operand[1], reg) == 0 || strcmp(inner.operand[2], reg) == 0);
}

/* A variable that begins with a number and is only ever made less (or only ever more). */
static bool variable_bounds(const char *ptx, const char *reg, span *out)
{
    bool has_less = false, has_more = false;
    *out = (span){INFINITY, -INFINITY};
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction i, guarded;
        float c;
        bool is_min;
        if (!text_names(line, reg) || !text_parse_guarded(line, &guarded) || !text_writes(&guarded) ||
            !text_names(guarded.operand[0], reg))
            continue;
        if (!text_parse(line, &i))
            return false;
        if (text_is_opcode(&i, "mov.b32") && is_f32_constant(i.operand[1], &c))
            *out = (span){fminf(out->least, c), fmaxf(out->most, c)};
        else if (!goes_on(ptx, &i, reg, &is_min))
            return false;
        else
            *(is_min ? &has_less : &has_more) = true;
    }
    if (out->least > out->most)
        return false;
    if (has_less)
        out->least = -INFINITY;
    if (has_more)
        out->most = INFINITY;
    return true;
}

/* What the instruction that differs gives with each of its constants. */
static bool changed_bounds(const char *ptx, const instruction *i, int depth, span *out)
{
    span other;
    float c;
    const bool is_min = i->opcode[1] == 'i';
    if (!is_extreme(i) || !is_f32_constant(i->operand[2], &c))
        return false;
    *out = ordered(changed.old, changed.now);
    if (!bounds_of(ptx, i->operand[1], depth, &other))
        other = (span){-INFINITY, INFINITY};
    if (is_min)
        out->least = fminf(out->least, other.least);
    else
        out->most = fmaxf(out->most, other.most);
    return true;
}

/* Numbers between which a register always is; false where it may be NaN, or nothing is known. */
static bool bounds_of(const char *ptx, const char *operand, int depth, span *out)
{
    instruction i;
    span a, b;
    float c;
    if (is_f32_constant(operand, &c)) {
        *out = (span){c, c};
        return true;
    }
    if (depth == 0 || operand[0] != '%')
        return false;
    if (!text_definition(ptx, operand, &i))
        return variable_bounds(ptx, operand, out);
    if (strcmp(operand, changed.reg) == 0)
        return changed_bounds(ptx, &i, depth - 1, out);
    if (is_extreme(&i))
        return extreme_bounds(ptx, &i, depth - 1, out);
    if (text_is_opcode(&i, "mov.b32"))
        return bounds_of(ptx, i.operand[1], depth - 1, out);
    if (text_is_opcode(&i, "neg.f32") && bounds_of(ptx, i.operand[1], depth - 1, &a)) {
        *out = (span){-a.most, -a.least};
        return true;
    }
    if (text_is_opcode(&i, "selp.b32") && bounds_of(ptx, i.operand[1], depth - 1, &a) &&
        bounds_of(ptx, i.operand[2], depth - 1, &b)) {
        *out = (span){fminf(a.least, b.least), fmaxf(a.most, b.most)};
        return true;
    }
    return is_arithmetic(&i) && bounds_of(ptx, i.operand[1], depth - 1, &a) &&
           bounds_of(ptx, i.operand[2], depth - 1, &b) && corners(&i, a, b, out);
}

bool is_between_numbers(const char *ptx, const char *operand)
{
    span s;
    changed.reg = "";
    return bounds_of(ptx, operand, PROOF_DEPTH, &s);
}

/* ---- Following a span ---- */

static bool vanishes(const char *ptx, const char *reg, span s, int depth);

static bool reads_marked(const step *s, const bool *marks)
{
    for (int k = 0; k < s->n_reads; k++)
        if (marks[s->reads[k]])
            return true;
    return false;
}

/* Marks what is made of a register, through any number of steps. Predicates are the same in both texts: a comparison that tells the
 * span's numbers apart ends the proof. */
static void mark_made_of(const program *p, int reg, bool *marks)
{
    marks[reg] = true;
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (int at = 0; at < p->n_steps; at++) {
            const step *s = &p->steps[at];
            for (int k = 0; k < s->n_writes && reads_marked(s, marks); k++)
                if (!marks[s->writes[k]] && p->width[s->writes[k]] > 1)
                    is_new = marks[s->writes[k]] = true;
        }
    }
}

/* Whether the register may differ between the two texts: it is made of the one that does. Memory is the same in both, since spans
 * are never stored. */
static bool is_affected(const char *ptx, const char *reg)
{
    const program *p = program_of(ptx);
    const int from = p ? program_register(p, changed.reg) : NO_REGISTER,
              to = p ? program_register(p, reg) : NO_REGISTER;
    bool *marks =
        from != NO_REGISTER && to != NO_REGISTER ? calloc((size_t)p->n_registers, sizeof *marks) : NULL;
    bool result = true;
    if (marks) {
        mark_made_of(p, from, marks);
        result = marks[to];
    }
    free(marks);
    return result;
}

/* An integer that lies between two numbers: clamps to constants, and sums with them. */
static bool integer_vanishes(const char *ptx, const char *reg, long long least, long long most, int depth)
{
    instruction i;
    if (least == most)
        return true;
    if (depth == 0 || !text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        char *end;
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i) || !text_writes(&i))
            return false;
        if (strcmp(i.operand[0], reg) == 0)
            continue;
        const long long c = strtoll(i.operand[2], &end, 10);
        const bool is_min = text_is_opcode(&i, "min.s32");
        if ((!is_min && !text_is_opcode(&i, "max.s32")) || strcmp(i.operand[1], reg) != 0 || *end != 0)
            return false;
        const long long a = is_min == (least < c) ? least : c, b = is_min == (most < c) ? most : c;
        if (!integer_vanishes(ptx, i.operand[0], a, b, depth - 1))
            return false;
    }
    return true;
}

static long long saturated(float x)
{
    return x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (long long)x;
}

/* The bits of a bf16, rounded to nearest even. */
static uint32_t bf16_of(float x)
{
    union {
        float value;
        uint32_t bits;
    } u = {x};
    return (u.bits + 0x7FFF + (u.bits >> 16 & 1)) >> 16;
}

/* Whether the ends are so small that f16 makes the same zero of both: less than half of 2^-24. */
static bool is_zero_f16(span s)
{
    return (s.least > 0 && s.most < 0x1p-25f) || (s.most < 0 && s.least > -0x1p-25f);
}

/* `bfe t, x, 16, 1`, `add u, x, 32767`, `add w, u, t`, `shr v, w, 16`, the registers between used nowhere else: a rounding to bf16. */
static bool is_rounded_to_bf16(const char *ptx, const char *reg)
{
    instruction i, last = {.n = 0}, sum = {.n = 0};
    char t[TEXT_MAX] = "", u[TEXT_MAX] = "";
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_parse(line, &i))
            continue;
        if (text_is_opcode(&i, "bfe.u32") && strcmp(i.operand[1], reg) == 0 &&
            strcmp(i.operand[2], "16") == 0 && strcmp(i.operand[3], "1") == 0)
            strcpy(t, i.operand[0]);
        else if (text_is_opcode(&i, "add.u32") && strcmp(i.operand[1], reg) == 0 &&
                 strcmp(i.operand[2], "32767") == 0)
            strcpy(u, i.operand[0]);
        else if (*t && *u && text_is_opcode(&i, "add.u32") && strcmp(i.operand[1], u) == 0 &&
                 strcmp(i.operand[2], t) == 0)
            sum = i;
        else if (sum.n && text_is_opcode(&i, "shr.u32") && strcmp(i.operand[1], sum.operand[0]) == 0 &&
                 strcmp(i.operand[2], "16") == 0)
            last = i;
    }
    return last.n && text_count_lines(ptx, t) == 2 && text_count_lines(ptx, u) == 2 &&
           text_count_lines(ptx, sum.operand[0]) == 2;
}

/* Conversions whose result the ends share, or which keep their order. */
static bool vanishes_in_conversion(const char *ptx, const instruction *i, span s, int depth)
{
    static const struct {
        const char *opcode;
        float beyond; /* what is at least this large becomes the largest number, or an infinity */
    } narrow[] = {{"cvt.rn.f16.f32", 65520},
                  {"cvt.rn.satfinite.e4m3x2.f32", 448},
                  {"cvt.rn.satfinite.e5m2x2.f32", 57344},
                  {"cvt.rn.satfinite.e2m1x2.f32", 6},
                  {"cvt.rn.satfinite.e2m3x2.f32", 7.5f},
                  {"cvt.rn.satfinite.e3m2x2.f32", 28}};
    if (text_is_opcode(i, "cvt.rn.f16.f32") && is_zero_f16(s))
        return true;
    if (text_is_opcode(i, "cvt.rn.bf16.f32"))
        return s.least * s.most > 0 && bf16_of(s.least) == bf16_of(s.most);
    for (size_t k = 0; k < sizeof narrow / sizeof narrow[0]; k++)
        if (text_is_opcode(i, narrow[k].opcode))
            return s.least >= narrow[k].beyond || s.most <= -narrow[k].beyond;
    const bool nearest = strncmp(i->opcode, "cvt.rni.", 8) == 0;
    if (!nearest && strncmp(i->opcode, "cvt.rzi.", 8) != 0)
        return false;
    const float a = nearest ? rintf(s.least) : truncf(s.least), b = nearest ? rintf(s.most) : truncf(s.most);
    if (text_is_opcode(i, "cvt.rni.s32.f32") || text_is_opcode(i, "cvt.rzi.s32.f32"))
        return integer_vanishes(ptx, i->operand[0], saturated(a), saturated(b), depth - 1);
    if (!text_is_opcode(i, "cvt.rni.f32.f32") && !text_is_opcode(i, "cvt.rzi.f32.f32"))
        return false;
    return (a == b && a != 0) || vanishes(ptx, i->operand[0], (span){a, b}, depth - 1);
}

/* Comparisons that all numbers of the span answer alike, with a number that lies beside it. */
static bool is_compared_alike(const char *ptx, const instruction *i, const char *reg, span s)
{
    span other;
    if (text_is_opcode(i, "testp.notanumber.f32") ||
        (strncmp(i->opcode, "setp.nan.", 9) == 0 && strcmp(i->operand[1], i->operand[2]) == 0))
        return true;
    if (text_is_opcode(i, "testp.finite.f32"))
        return s.least > -INFINITY && s.most < INFINITY;
    if (strncmp(i->opcode, "setp.", 5) != 0 || i->n < 3 || strcmp(i->operand[1], i->operand[2]) == 0 ||
        !strstr(i->opcode, ".f32"))
        return false;
    const char *beside = i->operand[strcmp(i->operand[1], reg) == 0 ? 2 : 1];
    return bounds_of(ptx, beside, PROOF_DEPTH, &other) && (other.most < s.least || other.least > s.most);
}

/* Divided by any scale, numbers close to the largest f32 are at least almost 1, or the same: 0 by an infinity, infinite by a 0, NaN by
 * a NaN. Their products by a reciprocal are too: 1 / s is at least 1 / largest, or 0. */
static bool vanishes_in_quotient(const char *ptx, const instruction *i, const char *reg, span s, int depth)
{
    const float largest = float_of(0x7F7FFFFF), close = 0.996f, quotient = 0.99f;
    instruction factor;
    const float nearest = s.least > 0 ? s.least : -s.most;
    if (strcmp(i->operand[1], reg) != 0 || nearest < close * largest || s.most > largest ||
        s.least < -largest || is_affected(ptx, i->operand[2]))
        return false;
    if (text_is_opcode(i, "mul.rn.f32") &&
        (!text_definition(ptx, i->operand[2], &factor) || !text_is_opcode(&factor, "rcp.rn.f32")))
        return false;
    return (text_is_opcode(i, "mul.rn.f32") || text_is_opcode(i, "div.rn.f32")) &&
           vanishes(ptx, i->operand[0], (span){quotient, INFINITY}, depth - 1) &&
           vanishes(ptx, i->operand[0], (span){-INFINITY, -quotient}, depth - 1);
}

static bool vanishes_in_arithmetic(const char *ptx, const instruction *i, const char *reg, span s, int depth)
{
    const bool is_first = strcmp(i->operand[1], reg) == 0;
    span other, result;
    if (strcmp(i->operand[1], i->operand[2]) == 0)
        return false;
    if (!bounds_of(ptx, i->operand[is_first ? 2 : 1], PROOF_DEPTH, &other) ||
        !corners(i, is_first ? s : other, is_first ? other : s, &result))
        return vanishes_in_quotient(ptx, i, reg, s, depth);
    return (result.least == result.most && result.least != 0) ||
           vanishes(ptx, i->operand[0], result, depth - 1);
}

/* The extreme of the register and anything that is the same in both texts keeps the ends. */
static bool vanishes_in_extreme(const char *ptx, const instruction *i, const char *reg, span s, int depth)
{
    const char *beside = i->operand[strcmp(i->operand[1], reg) == 0 ? 2 : 1];
    const bool is_min = i->opcode[1] == 'i';
    span other;
    if (bounds_of(ptx, beside, PROOF_DEPTH, &other))
        s = is_min ? (span){fminf(s.least, other.least), fminf(s.most, other.most)}
                   : (span){fmaxf(s.least, other.least), fmaxf(s.most, other.most)};
    else if (is_affected(ptx, beside))
        return false;
    return (s.least == s.most && s.least != 0) || vanishes(ptx, i->operand[0], s, depth - 1);
}

static bool vanishes_behind(const char *ptx, const instruction *i, const char *reg, span s, int depth)
{
    if (text_is_opcode(i, "mov.b32") || text_is_opcode(i, "selp.b32"))
        return vanishes(ptx, i->operand[0], s, depth - 1);
    if (text_is_opcode(i, "neg.f32"))
        return vanishes(ptx, i->operand[0], (span){-s.most, -s.least}, depth - 1);
    if (text_is_opcode(i, "copysign.f32")) /* its sign alone */
        return strcmp(i->operand[2], reg) != 0 && (s.least > 0 || s.most < 0);
    if (is_extreme(i))
        return vanishes_in_extreme(ptx, i, reg, s, depth);
    if (is_arithmetic(i))
        return vanishes_in_arithmetic(ptx, i, reg, s, depth);
    if (text_is_opcode(i, "bfe.u32") || text_is_opcode(i, "add.u32"))
        return s.least * s.most > 0 && bf16_of(s.least) == bf16_of(s.most) && is_rounded_to_bf16(ptx, reg);
    return vanishes_in_conversion(ptx, i, s, depth) || is_compared_alike(ptx, i, reg, s);
}

/* Whether every use of the register gives the same. */
static bool vanishes(const char *ptx, const char *reg, span s, int depth)
{
    instruction i;
    if (depth == 0 || !text_definition(ptx, reg, &i))
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg))
            continue;
        if (!text_parse(line, &i) || !text_writes(&i))
            return false;
        if (strcmp(i.operand[0], reg) != 0 && !vanishes_behind(ptx, &i, reg, s, depth))
            return false;
    }
    return true;
}

/* Another bound of a clamp: the result is the same, or lies between the two bounds. What rounds to the same number from both, or
 * is clamped once more behind it, cannot be told apart. */
bool difference_vanishes(const char *ptx, const mutant *m, const instruction *i)
{
    static const char *const opcodes[] = {"min.f32", "max.f32", "neg.f32", "mov.b32", "selp.b32"};
    char operand[TEXT_MAX] = "";
    float a, b;
    if (m->kind != MUTANT_CONSTANT || !IS_ONE_OF(i, opcodes) || m->length >= TEXT_MAX)
        return false;
    memcpy(operand, ptx + m->at, m->length);
    if (!is_f32_constant(operand, &a) || !is_f32_constant(m->with, &b))
        return false;
    changed.reg = i->operand[0];
    changed.old = a;
    changed.now = b;
    if (text_is_opcode(i, "neg.f32"))
        a = -a, b = -b;
    return vanishes(ptx, i->operand[0], ordered(a, b), PROOF_DEPTH);
}
