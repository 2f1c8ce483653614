/* The rules by which mutants are equivalent. Each looks at the instructions that define an operand, as far as they are defined
 * once in the text; a register that is assigned in several places is a variable, of which nothing is known. */
#include "mutate/proofs.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS_MAX = 6, DEPTH = 12, TEXT_MAX = 64 };

typedef struct instruction {
    char opcode[TEXT_MAX], operand[OPERANDS_MAX][TEXT_MAX];
    int n;
} instruction;

/* ---- Reading ---- */

/* The instruction of a line; false for labels, directives and guarded instructions. */
static bool parse(const char *line, instruction *i)
{
    *i = (instruction){0};
    if (*line != '\t' || sscanf(line + 1, "%63[a-z0-9_.]", i->opcode) != 1)
        return false;
    const char *at = line + 1 + strlen(i->opcode);
    while (i->n < OPERANDS_MAX && *at && *at != ';' && *at != '\n') {
        at += strspn(at, " ,");
        size_t length = strcspn(at, ",;\n");
        snprintf(i->operand[i->n++], TEXT_MAX, "%.*s", (int)length, at);
        at += length;
    }
    return true;
}

static const char *next_line(const char *line)
{
    line = strchr(line, '\n');
    return line ? line + 1 : NULL;
}

/* The only instruction whose destination is that register. Vector loads and guarded assignments count as another. */
static bool definition(const char *ptx, const char *reg, instruction *def)
{
    int count = 0;
    const size_t length = strlen(reg);
    for (const char *line = ptx; line; line = next_line(line)) {
        instruction i;
        const char *end = line + strcspn(line, "\n"), *found = strstr(line, reg);
        if (!found || found >= end || isdigit((unsigned char)found[length]))
            continue;
        if (parse(line, &i) && i.n > 0 && strcmp(i.operand[0], reg) == 0 &&
            strncmp(i.opcode, "st.", 3) != 0) {
            *def = i;
            count++;
        } else if (*line == '\t' && (line[1] == '@' || strchr(line, '{') < end)) {
            const char *brace = memchr(line, '{', (size_t)(end - line));
            if (line[1] == '@' || (brace && found > brace))
                count += 2;
        }
    }
    return count == 1;
}

static bool is_opcode(const instruction *i, const char *opcode)
{
    return strcmp(i->opcode, opcode) == 0;
}

static bool constant_of(const char *text, uint64_t *value)
{
    char *end;
    bool is_float = text[0] == '0' && text[1] == 'f';
    *value = strtoull(is_float ? text + 2 : text, &end, is_float ? 16 : 0);
    return *text != '%' && *text != '-' && *text && *end == 0;
}

/* ---- The largest value of an unsigned register ---- */

static uint64_t most_of(const char *ptx, const char *operand, int depth);

static uint64_t most_of_instruction(const char *ptx, const instruction *i, int depth)
{
    uint64_t value = 0, x = i->n > 1 ? most_of(ptx, i->operand[1], depth - 1) : UINT32_MAX;
    uint64_t y = i->n > 2 ? most_of(ptx, i->operand[2], depth - 1) : UINT32_MAX, most = UINT32_MAX;
    bool is_constant = i->n > 2 && constant_of(i->operand[2], &value);
    if (strncmp(i->opcode, "ld.", 3) == 0)
        most = strstr(i->opcode, ".u8") ? UINT8_MAX : UINT32_MAX;
    else if (is_opcode(i, "mov.u32") || is_opcode(i, "mov.b32"))
        most = x;
    else if (is_opcode(i, "and.b32"))
        most = x < y ? x : y;
    else if (is_opcode(i, "min.u32"))
        most = x < y ? x : y;
    else if (is_opcode(i, "shr.u32") && is_constant && value < 32)
        most = x >> value;
    else if (is_opcode(i, "shl.b32") && is_constant && value < 32)
        most = x << value;
    else if (is_opcode(i, "mul.lo.u32") || is_opcode(i, "mul.lo.s32"))
        most = x * y;
    else if (is_opcode(i, "add.u32") || is_opcode(i, "add.s32"))
        most = x + y;
    else if (strncmp(i->opcode, "cvt.u32.u16", 11) == 0)
        most = UINT16_MAX;
    return most < UINT32_MAX ? most : UINT32_MAX;
}

static uint64_t most_of(const char *ptx, const char *operand, int depth)
{
    instruction def;
    uint64_t value;
    if (constant_of(operand, &value))
        return value < UINT32_MAX ? value : UINT32_MAX;
    if (strcmp(operand, "%laneid") == 0)
        return 31;
    if (strncmp(operand, "%tid.", 5) == 0)
        return 1023;
    if (strncmp(operand, "%ctaid.", 7) == 0)
        return INT32_MAX;
    if (depth == 0 || !definition(ptx, operand, &def))
        return UINT32_MAX;
    return most_of_instruction(ptx, &def, depth);
}

/* ---- The rules ---- */

/* u32 for s32 and the reverse: operands below 2^31 are the same number in both, and so is what shr, the wide products,
 * comparisons, extremes and conversions make of them. */
static bool sign_does_not_matter(const char *ptx, const mutant *m, const instruction *i)
{
    static const char *const opcodes[] = {"shr.", "mad.wide.", "mul.wide.", "cvt.u64.", "cvt.rn.f32.", "min.",
                                          "max.", "setp.lt.",  "setp.le.",  "setp.gt.", "setp.ge."};
    bool is_listed = false;
    if (m->kind != MUTANT_TYPE || (strcmp(m->with, "s32") != 0 && strcmp(m->with, "u32") != 0))
        return false;
    for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++)
        is_listed = is_listed || strncmp(i->opcode, opcodes[k], strlen(opcodes[k])) == 0;
    const int last = strncmp(i->opcode, "mad.", 4) == 0 || i->n < 3 ? 2 : i->n; /* the addend is no factor */
    for (int k = 1; k < i->n && (k < last || k < 3) && is_listed; k++)
        if (!(strncmp(i->opcode, "shr.", 4) == 0 && k > 1) && !(strncmp(i->opcode, "mad.", 4) == 0 && k > 2))
            is_listed = most_of(ptx, i->operand[k], DEPTH) <= INT32_MAX;
    return is_listed;
}

/* The exponent of all numbers that the bits of a register may be; -1 where it is not known. lop3 and prmt put a code into the
 * fraction of a power of two: only bits below 23 come from elsewhere. */
static int exponent_of(const instruction *def)
{
    uint64_t mask, base, selector;
    if (strncmp(def->opcode, "lop3.", 5) == 0 && def->n == 5 && constant_of(def->operand[2], &mask) &&
        constant_of(def->operand[3], &base) && strcmp(def->operand[4], "0x6A") == 0 && mask < 1u << 23)
        return (int)(base >> 23);
    if (strncmp(def->opcode, "prmt.", 5) == 0 && def->n == 4 && constant_of(def->operand[2], &base) &&
        constant_of(def->operand[3], &selector) && base == 0x4B000000 && (selector & 0xFFF0) == 0x7440)
        return 0x4B000000 >> 23;
    return -1;
}

/* The rounding of a difference of two numbers between 2^e and 2^(e+1): both are multiples of 2^(e-23), and so is their difference,
 * which is less than 2^e: it has at most 23 bits and is exact. */
static bool difference_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    instruction def;
    uint64_t c;
    if (m->kind != MUTANT_ROUNDING || !is_opcode(i, "sub.rn.f32") || i->n != 3 ||
        !constant_of(i->operand[2], &c) || !definition(ptx, i->operand[1], &def))
        return false;
    int exponent = exponent_of(&def);
    return exponent >= 0 && (int)(c >> 23) == exponent;
}

/* Whether a register holds an integral number, or NaN, or an infinity. Sums, differences, products and extremes of integral
 * numbers are integral, rounded or not: an f32 that cannot hold a fraction's bits is integral anyway. */
static bool is_integral(const char *ptx, const char *operand, int depth)
{
    instruction def;
    uint64_t bits;
    if (constant_of(operand, &bits)) {
        union {
            uint32_t bits;
            float value;
        } x = {(uint32_t)bits};
        return x.value > -8388608.0f && x.value < 8388608.0f && x.value == (float)(int)x.value;
    }
    if (depth == 0 || !definition(ptx, operand, &def))
        return false;
    if (is_opcode(&def, "cvt.rni.f32.f32") || is_opcode(&def, "cvt.rzi.f32.f32"))
        return true;
    if (is_opcode(&def, "copysign.f32"))
        return is_integral(ptx, def.operand[2], depth - 1);
    if (!is_opcode(&def, "selp.b32") && !is_opcode(&def, "min.f32") && !is_opcode(&def, "max.f32") &&
        !is_opcode(&def, "add.rn.f32") && !is_opcode(&def, "sub.rn.f32"))
        return false;
    return is_integral(ptx, def.operand[1], depth - 1) && is_integral(ptx, def.operand[2], depth - 1);
}

/* Whether a register holds a number of f16 (or bf16): widened from one, or the extreme of two such. */
static bool is_half(const char *ptx, const char *operand, bool is_f16, int depth)
{
    instruction def;
    uint64_t bits;
    if (constant_of(operand, &bits)) {
        uint64_t exponent = bits >> 23 & 0xFF;
        return is_f16 ? (bits & 0x1FFF) == 0 &&
                            (exponent == 0 ? bits << 33 == 0 : exponent > 112 && exponent < 143)
                      : (bits & 0xFFFF) == 0;
    }
    if (depth == 0 || !definition(ptx, operand, &def))
        return false;
    if (is_f16 ? is_opcode(&def, "cvt.f32.f16")
               : is_opcode(&def, "shl.b32") && strcmp(def.operand[2], "16") == 0)
        return true;
    return (is_opcode(&def, "min.f32") || is_opcode(&def, "max.f32")) &&
           is_half(ptx, def.operand[1], is_f16, depth - 1) && is_half(ptx, def.operand[2], is_f16, depth - 1);
}

/* Narrowing a number that the type has does not round. */
static bool narrowing_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    bool is_f16 = is_opcode(i, "cvt.rn.f16.f32");
    return m->kind == MUTANT_ROUNDING && (is_f16 || is_opcode(i, "cvt.rn.bf16.f32")) && i->n == 2 &&
           is_half(ptx, i->operand[1], is_f16, DEPTH);
}

/* x + 0 is x, and -0 + 0 is +0 in every rounding but the downward one. */
static bool adds_zero(const char *ptx, const mutant *m, const instruction *i)
{
    (void)ptx;
    return m->kind == MUTANT_ROUNDING && is_opcode(i, "add.rn.f32") && i->n == 3 &&
           strcmp(i->operand[2], "0f00000000") == 0 && strcmp(m->with, "rz") == 0;
}

/* The conversion of an integral number to an integer does not round. */
static bool conversion_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    return m->kind == MUTANT_ROUNDING && is_opcode(i, "cvt.rni.s32.f32") && i->n == 2 &&
           is_integral(ptx, i->operand[1], DEPTH);
}

/* Which bits of a register an instruction looks at. */
static uint32_t bits_read(const instruction *i, const char *reg)
{
    uint64_t value;
    uint32_t bits = 0;
    if (strncmp(i->opcode, "prmt.", 5) == 0 && i->n == 4 && constant_of(i->operand[3], &value)) {
        for (int byte = 0; byte < 4; byte++) {
            unsigned selector = (unsigned)(value >> 4 * byte & 15), source = selector >> 2 & 1;
            if (strcmp(i->operand[1 + source], reg) == 0)
                bits |= (selector & 8 ? 0x80u : 0xFFu) << 8 * (selector & 3);
        }
        return bits;
    }
    if (is_opcode(i, "and.b32") && i->n == 3 && constant_of(i->operand[2], &value))
        return (uint32_t)value;
    if (strncmp(i->opcode, "lop3.", 5) == 0 && i->n == 5 && constant_of(i->operand[2], &value) &&
        strcmp(i->operand[4], "0x6A") == 0 && strcmp(i->operand[1], reg) == 0 &&
        strcmp(i->operand[3], reg) != 0)
        return (uint32_t)value;
    if (strncmp(i->opcode, "st.", 3) == 0 && i->n == 2 && strcmp(i->operand[1], reg) == 0)
        return strstr(i->opcode, "8") ? 0xFF : strstr(i->opcode, "16") ? 0xFFFF : ~0u;
    if (is_opcode(i, "cvt.u16.u32"))
        return 0xFFFF;
    uint64_t position, count;
    if (is_opcode(i, "bfe.u32") && i->n == 4 && constant_of(i->operand[2], &position) &&
        constant_of(i->operand[3], &count) && position + count <= 32 && count > 0 && count < 32)
        return ((1u << count) - 1) << position;
    return ~0u;
}

/* Whether no instruction looks at the bits of a register from `width` on. */
static bool upper_bits_are_unused(const char *ptx, const char *reg, unsigned width, int depth)
{
    const size_t length = strlen(reg);
    instruction use;
    if (depth == 0 || !definition(ptx, reg, &use))
        return false;
    for (const char *line = ptx; line; line = next_line(line)) {
        const char *end = line + strcspn(line, "\n"), *found = line;
        bool is_here = false;
        while (!is_here && (found = strstr(found, reg)) && found < end) {
            is_here = !isdigit((unsigned char)found[length]);
            found += length;
        }
        uint64_t k;
        if (!is_here)
            continue;
        if (!parse(line, &use))
            return false;
        if (strcmp(use.operand[0], reg) == 0 && strncmp(use.opcode, "st.", 3) != 0)
            continue; /* the definition */
        if (is_opcode(&use, "shr.u32") && constant_of(use.operand[2], &k) && k < width) {
            if (!upper_bits_are_unused(ptx, use.operand[0], width - (unsigned)k, depth - 1))
                return false;
        } else if (bits_read(&use, reg) >> width) {
            return false;
        }
    }
    return true;
}

/* Another sign changes the upper bits of a result alone: those that shr brings in, and those that a wider register has. */
static bool sign_is_not_seen(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t k;
    unsigned width = 0;
    if (m->kind != MUTANT_TYPE)
        return false;
    if (strncmp(i->opcode, "shr.", 4) == 0 && i->n == 3 && constant_of(i->operand[2], &k) && k > 0 && k < 32)
        width = 32 - (unsigned)k;
    else if (is_opcode(i, "cvt.u32.u16"))
        width = 16;
    else if (strncmp(i->opcode, "ld.", 3) == 0 && strcmp(m->with, "s8") == 0 && i->n == 2)
        width = 8;
    return width > 0 && upper_bits_are_unused(ptx, i->operand[0], width, DEPTH);
}

/* ---- Butterflies ---- */

/* Adds a mask to a basis of the lanes that are reached by exclusive or. */
static void basis_add(uint32_t basis[5], uint32_t mask)
{
    for (int bit = 4; bit >= 0 && mask; bit--) {
        if (!(mask >> bit & 1))
            continue;
        if (!basis[bit])
            basis[bit] = mask;
        mask ^= basis[bit];
    }
}

static bool reaches(const uint32_t basis[5], uint32_t mask)
{
    for (int bit = 4; bit >= 0; bit--)
        if (mask >> bit & 1)
            mask ^= basis[bit];
    return mask == 0;
}

/* Whether the two instructions behind a shuffle put the extreme of it and the variable into the variable. */
static bool folds(const char *line, const instruction *shuffle)
{
    instruction extreme, move;
    const char *variable = shuffle->operand[1], *second = next_line(line),
               *third = second ? next_line(second) : NULL;
    return third && parse(second, &extreme) && parse(third, &move) &&
           (is_opcode(&extreme, "max.f32") || is_opcode(&extreme, "min.f32")) &&
           is_opcode(&move, "mov.b32") && strcmp(extreme.operand[1], variable) == 0 &&
           strcmp(extreme.operand[2], shuffle->operand[0]) == 0 && strcmp(move.operand[0], variable) == 0 &&
           strcmp(move.operand[1], extreme.operand[0]) == 0;
}

/* A reduction by butterflies leaves in each lane the extreme of all lanes that exclusive or with its masks reaches: minimum and
 * maximum may be taken in any order and any number of times. Another mask gives the same where all of them together reach the
 * same lanes. The instructions are `shfl.bfly x, v, mask`, `max t, v, x` and `mov v, t` by turns. */
static bool masks_reach_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    uint32_t before[5] = {0}, after[5] = {0}, masks[2][16];
    int n = 0;
    char *end;
    uint64_t mask;
    if (strncmp(i->opcode, "shfl.sync.bfly.", 15) != 0 || i->n != 5 || !constant_of(i->operand[2], &mask) ||
        (m->kind != MUTANT_CONSTANT && m->kind != MUTANT_SHIFT))
        return false;
    uint64_t changed = strtoull(m->with, &end, 0);
    const size_t length = strlen(i->operand[2]);
    bool is_mask = m->length == length && strncmp(ptx + m->at, i->operand[2], length) == 0 &&
                   ptx[m->at + length] == ',' && strncmp(ptx + m->at + length, ", 31,", 5) == 0;
    if (*end || !is_mask || changed > 31)
        return false;
    int line_number = 1;
    for (const char *line = ptx; line; line = next_line(line), line_number++) {
        instruction other;
        if (!parse(line, &other) || strncmp(other.opcode, "shfl.sync.bfly.", 15) != 0 ||
            strcmp(other.operand[1], i->operand[1]) != 0)
            continue;
        bool is_extreme = folds(line, &other);
        if (!is_extreme || n == 16 || !constant_of(other.operand[2], &mask))
            return false;
        masks[0][n] = (uint32_t)mask;
        masks[1][n++] = line_number == m->line ? (uint32_t)changed : (uint32_t)mask;
    }
    for (int k = 0; k < n; k++) {
        basis_add(before, masks[0][k]);
        basis_add(after, masks[1][k]);
    }
    bool same = n > 0;
    for (int k = 0; k < n; k++)
        same = same && reaches(before, masks[1][k]) && reaches(after, masks[0][k]);
    return same;
}

static const struct {
    const char *name;
    bool (*holds)(const char *ptx, const mutant *m, const instruction *i);
} rules[] = {
    {"the operands are below 2^31", sign_does_not_matter},
    {"the difference is exact", difference_is_exact},
    {"the number is integral", conversion_is_exact},
    {"the type has the number", narrowing_is_exact},
    {"zero is added", adds_zero},
    {"the upper bits are not used", sign_is_not_seen},
    {"the masks reach the same lanes", masks_reach_the_same},
};

const char *mutant_proof(const char *ptx, const mutant *m)
{
    const char *line = ptx + m->at;
    instruction i;
    while (line > ptx && line[-1] != '\n')
        line--;
    if (!parse(line, &i))
        return NULL;
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++)
        if (rules[k].holds(ptx, m, &i))
            return rules[k].name;
    return NULL;
}
