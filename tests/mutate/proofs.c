/* The table of rules, and those about integers. */
#include "mutate/proofs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The largest value of an unsigned register ---- */

static uint64_t most_of_instruction(const char *ptx, const instruction *i, int depth)
{
    uint64_t value = 0, x = i->n > 1 ? most_of(ptx, i->operand[1], depth - 1) : UINT32_MAX;
    uint64_t y = i->n > 2 ? most_of(ptx, i->operand[2], depth - 1) : UINT32_MAX, most = UINT32_MAX;
    bool is_constant = i->n > 2 && text_constant(i->operand[2], &value);
    if (strncmp(i->opcode, "ld.", 3) == 0)
        most = strstr(i->opcode, ".u8") ? UINT8_MAX : UINT32_MAX;
    else if (text_is_opcode(i, "mov.u32") || text_is_opcode(i, "mov.b32"))
        most = x;
    else if (text_is_opcode(i, "and.b32"))
        most = x < y ? x : y;
    else if (text_is_opcode(i, "min.u32"))
        most = x < y ? x : y;
    else if (text_is_opcode(i, "shr.u32") && is_constant && value < 32)
        most = x >> value;
    else if (text_is_opcode(i, "shl.b32") && is_constant && value < 32)
        most = x << value;
    else if (text_is_opcode(i, "mul.lo.u32") || text_is_opcode(i, "mul.lo.s32"))
        most = x * y;
    else if (text_is_opcode(i, "add.u32") || text_is_opcode(i, "add.s32"))
        most = x + y;
    else if (strncmp(i->opcode, "cvt.u32.u16", 11) == 0)
        most = UINT16_MAX;
    return most < UINT32_MAX ? most : UINT32_MAX;
}

/* A loop `mov i, first`, `label:`, `setp.ge p, i, limit`, `@p bra`, ..., `add i, i, step`: i is never above the last below the limit and a
 * step. */
static uint64_t most_of_loop(const char *ptx, const char *reg, int depth)
{
    instruction i;
    uint64_t first = UINT32_MAX, limit = UINT32_MAX, step = 0;
    int written = 0;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        if (!text_names(line, reg) || !text_parse_guarded(line, &i))
            continue;
        const char *second = text_next_line(line);
        if (text_is_opcode(&i, "setp.ge.u32") && written == 1 && strcmp(i.operand[1], reg) == 0 && second &&
            strncmp(second, "\t@%p", 4) == 0 && limit == UINT32_MAX)
            limit = most_of(ptx, i.operand[2], depth - 1);
        if (!text_writes(&i) || strcmp(i.operand[0], reg) != 0)
            continue;
        written++;
        if (written == 1 && line[1] != '@' &&
            (text_is_opcode(&i, "mov.u32") || text_is_opcode(&i, "mov.b32")))
            first = most_of(ptx, i.operand[1], depth - 1);
        else if (written != 2 || line[1] == '@' || !text_is_opcode(&i, "add.u32") ||
                 strcmp(i.operand[1], reg) != 0 || !text_constant(i.operand[2], &step))
            return UINT32_MAX;
    }
    const uint64_t most = limit + step > first ? limit + step : first;
    return written == 2 && step > 0 && most < UINT32_MAX ? most : UINT32_MAX;
}

uint64_t most_of(const char *ptx, const char *operand, int depth)
{
    instruction def;
    uint64_t value;
    if (text_constant(operand, &value))
        return value < UINT32_MAX ? value : UINT32_MAX;
    if (strcmp(operand, "%laneid") == 0)
        return 31;
    if (strncmp(operand, "%tid.", 5) == 0)
        return 1023;
    if (strncmp(operand, "%ntid.", 6) == 0)
        return 1024;
    if (strncmp(operand, "%ctaid.", 7) == 0 || strncmp(operand, "%nctaid.", 8) == 0)
        return INT32_MAX;
    if (depth == 0 || *operand != '%')
        return UINT32_MAX;
    return text_definition(ptx, operand, &def) ? most_of_instruction(ptx, &def, depth)
                                               : most_of_loop(ptx, operand, depth);
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
    if (strncmp(i->opcode, "setp.eq.", 8) == 0 || strncmp(i->opcode, "setp.ne.", 8) == 0)
        return true; /* bits are equal or not */
    for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++)
        is_listed = is_listed || strncmp(i->opcode, opcodes[k], strlen(opcodes[k])) == 0;
    const bool shifts = strncmp(i->opcode, "shr.", 4) == 0;
    for (int k = 1; k < i->n && k < (shifts ? 2 : 3) && is_listed;
         k++) /* what follows is an addend or a predicate */
        is_listed = most_of(ptx, i->operand[k], PROOF_DEPTH) <= INT32_MAX;
    return is_listed;
}

/* Which bits of a register an instruction looks at. */
static uint32_t bits_read(const instruction *i, const char *reg)
{
    uint64_t value;
    uint32_t bits = 0;
    if (strncmp(i->opcode, "prmt.", 5) == 0 && i->n == 4 && text_constant(i->operand[3], &value)) {
        for (int byte = 0; byte < 4; byte++) {
            unsigned selector = (unsigned)(value >> 4 * byte & 15), source = selector >> 2 & 1;
            if (strcmp(i->operand[1 + source], reg) == 0)
                bits |= (selector & 8 ? 0x80u : 0xFFu) << 8 * (selector & 3);
        }
        return bits;
    }
    if (text_is_opcode(i, "and.b32") && i->n == 3 && text_constant(i->operand[2], &value))
        return (uint32_t)value;
    if (strncmp(i->opcode, "lop3.", 5) == 0 && i->n == 5 && text_constant(i->operand[2], &value) &&
        strcmp(i->operand[4], "0x6A") == 0 && strcmp(i->operand[1], reg) == 0 &&
        strcmp(i->operand[3], reg) != 0)
        return (uint32_t)value;
    if (strncmp(i->opcode, "st.", 3) == 0 && i->n == 2 && strcmp(i->operand[1], reg) == 0)
        return strstr(i->opcode, "8") ? 0xFF : strstr(i->opcode, "16") ? 0xFFFF : ~0u;
    if (text_is_opcode(i, "cvt.u16.u32"))
        return 0xFFFF;
    uint64_t position, count;
    if (text_is_opcode(i, "bfi.b32") && i->n == 5 && strcmp(i->operand[1], reg) == 0 &&
        strcmp(i->operand[2], reg) != 0 && text_constant(i->operand[4], &count) && count < 32)
        return (1u << count) - 1;
    if (text_is_opcode(i, "bfe.u32") && i->n == 4 && text_constant(i->operand[2], &position) &&
        text_constant(i->operand[3], &count) && position + count <= 32 && count > 0 && count < 32)
        return ((1u << count) - 1) << position;
    return ~0u;
}

/* `mov.b32 {low, high}, reg` where nobody looks at the upper half. */
static bool takes_the_lower_half(const char *ptx, const instruction *i)
{
    char high[TEXT_MAX] = "";
    int lines = 0;
    if (!text_is_opcode(i, "mov.b32") || sscanf(i->operand[0], "{%*[%a-z0-9], %63[%a-z0-9]", high) != 1)
        return false;
    for (const char *line = ptx; line; line = text_next_line(line))
        lines += text_names(line, high);
    return lines == 1;
}

static uint32_t bits_used(const char *ptx, const char *reg, int depth);

/* Which bits of a register play a part in what an instruction makes of it. Shifts move them, to the left out of the register. */
static uint32_t bits_used_by(const char *ptx, const instruction *use, const char *reg, int depth)
{
    uint64_t k, position, count;
    const char *result = use->operand[0];
    const bool once = use->n < 3 || strcmp(use->operand[1], use->operand[2]) != 0;
    if (text_is_opcode(use, "shr.u32") && text_constant(use->operand[2], &k) && k < 32)
        return bits_used(ptx, result, depth - 1) << k;
    if (text_is_opcode(use, "shl.b32") && text_constant(use->operand[2], &k) && k < 32)
        return bits_used(ptx, result, depth - 1) >> k;
    if (text_is_opcode(use, "selp.b32") || text_is_opcode(use, "or.b32") || text_is_opcode(use, "xor.b32"))
        return bits_used(ptx, result, depth - 1);
    if (text_is_opcode(use, "bfi.b32") && use->n == 5 && once && text_constant(use->operand[3], &position) &&
        text_constant(use->operand[4], &count) && position + count <= 32 && count < 32) {
        const uint32_t field = (1u << count) - 1, used = bits_used(ptx, result, depth - 1);
        return strcmp(use->operand[1], reg) == 0 ? field & used >> position : used & ~(field << position);
    }
    return takes_the_lower_half(ptx, use) ? 0xFFFF : bits_read(use, reg);
}

/* Whether the instruction writes the register and does not read it. */
static bool only_writes(const instruction *i, const char *reg)
{
    if (!text_writes(i) || strcmp(i->operand[0], reg) != 0)
        return false;
    for (int k = 1; k < i->n; k++)
        if (text_names(i->operand[k], reg))
            return false;
    return true;
}

/* Which bits of a register any instruction looks at. */
static uint32_t bits_used(const char *ptx, const char *reg, int depth)
{
    instruction use;
    uint32_t bits = 0;
    for (const char *line = ptx; line && bits != ~0u; line = text_next_line(line)) {
        if (!text_names(line, reg) || (text_parse_guarded(line, &use) && only_writes(&use, reg)))
            continue;
        bits |= depth > 0 && text_parse(line, &use) ? bits_used_by(ptx, &use, reg, depth) : ~0u;
    }
    return bits;
}

static bool upper_bits_are_unused(const char *ptx, const char *reg, unsigned width, int depth)
{
    return width >= 32 || bits_used(ptx, reg, depth) >> width == 0;
}

/* `bfe d, x, position, count` with another count: the bits that differ are not used. */
static bool count_is_not_seen(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t count, now;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "bfe.u32") || i->n != 4 ||
        ptx[m->at + m->length] != ';' || !text_constant(i->operand[3], &count) ||
        !text_constant(m->with, &now) || now > 32)
        return false;
    return upper_bits_are_unused(ptx, i->operand[0], (unsigned)(now < count ? now : count), PROOF_DEPTH);
}

/* Another sign changes the upper bits of a result alone: those that shr brings in, and those that a wider register has. */
static bool sign_is_not_seen(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t k;
    unsigned width = 0;
    if (m->kind != MUTANT_TYPE)
        return false;
    if (strncmp(i->opcode, "shr.", 4) == 0 && i->n == 3 && text_constant(i->operand[2], &k) && k > 0 &&
        k < 32)
        width = 32 - (unsigned)k;
    else if (text_is_opcode(i, "cvt.u32.u16"))
        width = 16;
    else if (strncmp(i->opcode, "ld.", 3) == 0 && strcmp(m->with, "s8") == 0 && i->n == 2)
        width = 8;
    return width > 0 && upper_bits_are_unused(ptx, i->operand[0], width, PROOF_DEPTH);
}

/* The bytes of an element of the array that a parameter points to: what the loads and stores of single ones at addresses
 * made from it move; 0 where there are none. `mad address, index, bytes, pointer` has them. */
static uint64_t element_of(const char *ptx, const char *pointer)
{
    uint64_t least = 0, bytes;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction i;
        if (text_parse(line, &i) && text_is_opcode(&i, "mad.lo.u64") && strcmp(i.operand[3], pointer) == 0 &&
            text_constant(i.operand[2], &bytes) && (least == 0 || bytes < least))
            least = bytes;
    }
    return least;
}

/* `and t, pointer, mask`; the bytes of an element of what it points to in *element. */
static bool masks_pointer(const char *ptx, const instruction *i, uint64_t *mask, uint64_t *element)
{
    instruction low, pointer;
    if (!text_is_opcode(i, "and.b32") || !text_constant(i->operand[2], mask) ||
        !text_definition(ptx, i->operand[1], &low) || !text_is_opcode(&low, "cvt.u32.u64") ||
        !text_definition(ptx, low.operand[1], &pointer) || !text_is_opcode(&pointer, "ld.param.u64"))
        return false;
    *element = element_of(ptx, low.operand[1]);
    return *element > 0;
}

/* `setp.eq p, t, 0` of such a t: whether a pointer is aligned. */
static bool is_alignment(const char *ptx, const instruction *i, uint64_t *element)
{
    instruction masked;
    uint64_t mask;
    return text_is_opcode(i, "setp.eq.u32") && strcmp(i->operand[2], "0") == 0 &&
           text_definition(ptx, i->operand[1], &masked) && masks_pointer(ptx, &masked, &mask, element);
}

/* Whether a predicate asks for an alignment, alone or besides something else: what it guards is the faster of two ways. */
static bool asks_for_alignment(const char *ptx, const char *predicate, int depth)
{
    instruction def;
    uint64_t element;
    if (depth == 0 || !text_definition(ptx, predicate, &def))
        return false;
    if (text_is_opcode(&def, "and.pred"))
        return asks_for_alignment(ptx, def.operand[1], depth - 1) ||
               asks_for_alignment(ptx, def.operand[2], depth - 1);
    if (strncmp(def.opcode, "setp.", 5) == 0 && strstr(def.opcode, ".and.") && def.n == 4)
        return asks_for_alignment(ptx, def.operand[3], depth - 1);
    return is_alignment(ptx, &def, &element);
}

/* Kernels take vectors where a pointer is aligned to them and enough elements are left: `setp.ge.and p, left, 128, aligned`. Where they
 * ask for more than they need, the other way is taken more often, and that one takes any pointer and any number of elements. Elements
 * are aligned to their size at least: a mask without bits below it asks for the same, and one that keeps all bits asks for more. */
static bool asks_for_more(const char *ptx, const mutant *m, const instruction *i)
{
    instruction aligned;
    uint64_t old, element, now = strtoull(m->with, NULL, 0);
    if (masks_pointer(ptx, i, &old, &element))
        return m->kind == MUTANT_LOGIC ||
               (m->kind == MUTANT_CONSTANT && ((now & old) == old || (now ^ old) < element));
    if (is_alignment(ptx, i, &element)) {
        text_definition(ptx, i->operand[1], &aligned);
        return (m->kind == MUTANT_CONSTANT && now % element != 0) ||
               (m->kind == MUTANT_REGISTER && strcmp(m->with, aligned.operand[1]) == 0 &&
                text_is_written_before(ptx, m->with, ptx + m->at));
    }
    if (text_is_opcode(i, "setp.le.and.u64") && m->kind == MUTANT_COMPARISON && strcmp(m->with, "lt") == 0)
        return asks_for_alignment(ptx, i->operand[3], PROOF_DEPTH);
    return text_is_opcode(i, "setp.ge.and.u64") && text_constant(i->operand[2], &old) &&
           asks_for_alignment(ptx, i->operand[3], PROOF_DEPTH) &&
           (m->kind == MUTANT_CONSTANT ? now > old
                                       : m->kind == MUTANT_COMPARISON && strcmp(m->with, "gt") == 0);
}

/* `prmt d, a, constant, selector`: bytes of the constant that the selector does not name. */
static bool bytes_are_not_taken(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t bytes, selector, changed;
    const size_t length = strlen(i->operand[2]);
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "prmt.b32") || i->n != 4 || m->length != length ||
        strncmp(ptx + m->at, i->operand[2], length) != 0 || !text_constant(i->operand[2], &bytes) ||
        !text_constant(i->operand[3], &selector) || !text_constant(m->with, &changed))
        return false;
    uint64_t taken = 0;
    for (int k = 0; k < 4; k++) {
        unsigned source = selector >> 4 * k & 15;
        if (source & 4)
            taken |= (uint64_t)(source & 8 ? 0x80 : 0xFF) << 8 * (source & 3);
    }
    return ((bytes ^ changed) & taken) == 0;
}

/* `prmt d, a, constant, selector`: another byte of the constant that is the same. */
static bool byte_is_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t bytes, before, after;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "prmt.b32") || i->n != 4 ||
        ptx[m->at + m->length] != ';' || !text_constant(i->operand[2], &bytes) ||
        !text_constant(i->operand[3], &before) || !text_constant(m->with, &after) || after > 0xFFFF)
        return false;
    for (int k = 0; k < 16; k += 4) {
        const unsigned x = before >> k & 15, y = after >> k & 15;
        const bool are_bytes = (x & 12) == 4 && (y & 12) == 4; /* of the constant, as they are */
        if (x != y && !(are_bytes && (bytes >> 8 * (x & 3) & 0xFF) == (bytes >> 8 * (y & 3) & 0xFF)))
            return false;
    }
    return true;
}

/* n / d as `mul.hi t, n, factor`, `shr q, t, k`: factor = (2^(64+k) + e) / d. What is too much, n e / (d 2^(64+k)), is less than the 1/d
 * that the quotient's fraction lacks at most to the next integer if n e < 2^(64+k). No memory has 2^60 elements. */
static bool factor_is_as_good(const char *ptx, const mutant *m, const instruction *i)
{
    __extension__ typedef unsigned __int128 wide;
    instruction shift = {.n = 0}, use;
    uint64_t factor, changed, k;
    int uses = 0;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "mul.hi.u64") ||
        !text_constant(i->operand[2], &factor) || !text_constant(m->with, &changed) || factor < changed / 2)
        return false;
    for (const char *line = ptx; line; line = text_next_line(line))
        if (text_names(line, i->operand[0])) {
            uses++;
            if (text_parse(line, &use) && text_is_opcode(&use, "shr.u64"))
                shift = use;
        }
    if (uses != 2 || shift.n != 3 || !text_constant(shift.operand[2], &k) || k >= 60 ||
        factor < UINT64_C(1) << 63)
        return false;
    const wide power = (wide)1 << (64 + k), divisor = power / factor + (power % factor > factor / 2);
    const wide product = divisor * changed;
    return divisor * factor >= power && divisor * factor - power < divisor && product >= power &&
           (product - power) < power >> 60;
}

/* `dp4a.s32.u32 d, a, b, c`: bytes of a constant below 128 are the same number with a sign and without. */
static bool bytes_have_no_sign(const char *ptx, const mutant *m, const instruction *i)
{
    const char *line = ptx + m->at;
    uint64_t bytes;
    if (m->kind != MUTANT_TYPE || strncmp(i->opcode, "dp4a.", 5) != 0 || i->n != 4)
        return false;
    while (line[-1] != '.')
        line--;
    const bool is_second = ptx[m->at + m->length] != '.';
    return line == ptx + m->at && text_constant(i->operand[is_second ? 2 : 1], &bytes) &&
           (bytes & 0x80808080) == 0;
}

/* The only instruction that reads the register; false where several do, or a guarded one. */
static bool only_use(const char *ptx, const char *reg, instruction *use)
{
    int uses = 0;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction i;
        if (!text_names(line, reg) || (text_parse(line, &i) && only_writes(&i, reg)))
            continue;
        if (uses++ || !text_parse(line, use))
            return false;
    }
    return uses == 1;
}

static bool is_extreme_s32(const instruction *i, const char *reg, long long *bound)
{
    char *end;
    *bound = strtoll(i->operand[2], &end, 10);
    return (text_is_opcode(i, "max.s32") || text_is_opcode(i, "min.s32")) &&
           strcmp(i->operand[1], reg) == 0 && *i->operand[2] && *end == 0;
}

/* Whether a register holds a zero point, which is a code of 8 bits. */
static bool is_zero_point(const char *ptx, const char *reg)
{
    instruction narrow, load;
    return text_definition(ptx, reg, &narrow) && text_is_opcode(&narrow, "cvt.u32.u64") &&
           text_definition(ptx, narrow.operand[1], &load) && text_is_opcode(&load, "ld.param.u64") &&
           strcmp(load.operand[1], "[y_zero]") == 0;
}

/* `max a, x, -65536`, `min b, a, 65535`, `add c, b, zero`, and a clamp to codes of 8 bits: another bound that is as far from them. */
static bool is_clamped_behind(const char *ptx, const mutant *m, const instruction *i)
{
    enum { FAR = 1024, CODE = 256 };
    instruction use;
    long long old, bound, now = strtoll(m->with, NULL, 10);
    char reg[TEXT_MAX];
    bool is_moved = false, is_high = false, is_low = false;
    if (m->kind != MUTANT_CONSTANT || !is_extreme_s32(i, i->operand[1], &old) || (old < 0) != (now < 0) ||
        llabs(old) < FAR || llabs(now) < FAR || llabs(now) > INT32_MAX)
        return false;
    strcpy(reg, i->operand[0]);
    while (!(is_high && is_low) && only_use(ptx, reg, &use)) {
        if (!is_moved && text_is_opcode(&use, "add.s32") && is_zero_point(ptx, use.operand[2]))
            is_moved = true;
        else if (!is_extreme_s32(&use, reg, &bound) || (is_moved ? llabs(bound) > CODE : llabs(bound) < FAR))
            return false;
        else if (is_moved)
            *(use.opcode[1] == 'i' ? &is_high : &is_low) = true;
        strcpy(reg, use.operand[0]);
    }
    return is_high && is_low;
}

/* One of the three operands of lop3 at a bit: what a constant has there; of a register both are possible. */
static bool may_be(const char *operand, int bit, unsigned value)
{
    uint64_t bits;
    return !text_constant(operand, &bits) || (bits >> bit & 1) == value;
}

/* Whether the two tables give the same, for all bits that the operands of either may have. */
static bool tables_agree(const instruction *a, const instruction *b)
{
    uint64_t x, y;
    if (!text_constant(a->operand[4], &x) || !text_constant(b->operand[4], &y))
        return false;
    for (int bit = 0; bit < 32; bit++)
        for (unsigned i = 0; i < 64;
             i++) { /* what a's operands have, and what b's have: registers are the same in both */
            bool is_possible = true;
            for (int k = 0; k < 3; k++) {
                const unsigned of_a = i >> (2 - k) & 1, of_b = i >> (5 - k) & 1;
                is_possible = is_possible && may_be(a->operand[1 + k], bit, of_a) &&
                              may_be(b->operand[1 + k], bit, of_b) &&
                              (of_a == of_b || a->operand[1 + k][0] != '%' || b->operand[1 + k][0] != '%');
            }
            if (is_possible && (x >> (i & 7) & 1) != (y >> (i >> 3) & 1))
                return false;
        }
    return true;
}

/* `lop3 d, a, b, c, table` with another constant. */
static bool table_gives_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    char line[256], changed[256];
    const char *start = ptx + m->at;
    instruction other;
    if (m->kind != MUTANT_CONSTANT || strncmp(i->opcode, "lop3.", 5) != 0 || i->n != 5)
        return false;
    while (start[-1] != '\n')
        start--;
    const int before = (int)(ptx + m->at - start);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(start, "\n"), start);
    snprintf(changed, sizeof changed, "%.*s%s%s", before, line, m->with, line + before + m->length);
    return text_parse(changed, &other) && other.n == 5 && tables_agree(i, &other);
}

static const struct {
    const char *name;
    bool (*holds)(const char *ptx, const mutant *m, const instruction *i);
    bool is_guarded; /* it holds behind a guard as well */
} rules[] = {
    {"the operands are below 2^31", sign_does_not_matter, true},
    {"the difference is exact", difference_is_exact, false},
    {"the number is integral", conversion_is_exact, false},
    {"the type has the number", narrowing_is_exact, false},
    {"zero is added", adds_zero, false},
    {"the upper bits are not used", sign_is_not_seen, true},
    {"the lanes get the same", lanes_get_the_same, false},
    {"the difference vanishes", difference_vanishes, false},
    {"the other is never NaN", other_is_never_nan, false},
    {"NaN never comes", nan_never_comes, false},
    {"more is asked for than needed", asks_for_more, false},
    {"lane 0 gets the same", lane_0_gets_the_same, false},
    {"the bytes are not taken", bytes_are_not_taken, false},
    {"the byte is the same", byte_is_the_same, false},
    {"the factor divides as well", factor_is_as_good, false},
    {"any lane does", any_lane_does, false},
    {"any barrier does", any_barrier_does, false},
    {"the other is NaN with it", other_is_nan_with_it, false},
    {"any NaN does", nan_is_any, false},
    {"the product is exact", multiplies_exactly, false},
    {"the difference is integral", difference_is_integral, false},
    {"the bytes have no sign", bytes_have_no_sign, false},
    {"a clamp is behind it", is_clamped_behind, false},
    {"the upper bits of a field are not used", count_is_not_seen, false},
    {"the table gives the same", table_gives_the_same, false},
};

const char *mutant_proof(const char *ptx, const mutant *m)
{
    const char *line = ptx + m->at;
    instruction i;
    while (line > ptx && line[-1] != '\n')
        line--;
    const bool is_guarded = !text_parse(line, &i);
    if (is_guarded && (line[1] != '@' || !text_parse_guarded(line, &i)))
        return NULL;
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++)
        if ((!is_guarded || rules[k].is_guarded) && rules[k].holds(ptx, m, &i))
            return rules[k].name;
    return NULL;
}
