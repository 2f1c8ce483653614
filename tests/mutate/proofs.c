/* The table of rules, and those about pointers, clamps and quotients. */
#include "mutate/proofs.h"

#include "mutate/ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The rules ---- */

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

/* `[x]`: whether the parameter is declared as a pointer. */
static bool is_pointer(const char *ptx, const char *parameter)
{
    char found[TEXT_MAX];
    int align;
    for (const char *line = ptx; line && *line != '{'; line = text_next_line(line))
        if (sscanf(line, "\t.param .u64 .ptr .global .align %d %63[a-z0-9_]", &align, found) == 2 &&
            strncmp(parameter + 1, found, strlen(found)) == 0 && parameter[1 + strlen(found)] == ']')
            return true;
    return false;
}

/* Whether a register is made of the lower bits of a pointer, and of what else has to be aligned. */
static bool is_of_pointers(const char *ptx, const char *reg, int depth)
{
    instruction def, pointer;
    if (depth == 0 || !text_definition(ptx, reg, &def))
        return false;
    if (text_is_opcode(&def, "or.b32"))
        return is_of_pointers(ptx, def.operand[1], depth - 1) ||
               is_of_pointers(ptx, def.operand[2], depth - 1);
    return text_is_opcode(&def, "cvt.u32.u64") && text_definition(ptx, def.operand[1], &pointer) &&
           text_is_opcode(&pointer, "ld.param.u64") && is_pointer(ptx, pointer.operand[1]);
}

/* The power of two that the register is always a multiple of. */
static uint64_t unit_of(const char *ptx, const char *reg)
{
    const program *p = program_of(ptx);
    ranges *r = p ? ranges_of(p) : NULL;
    const int number = r ? program_register(p, reg) : NO_REGISTER;
    const int zeros = number != NO_REGISTER ? bits_trailing_zeros(~range_anywhere(r, number).zeros) : 0;
    return UINT64_C(1) << (zeros < 32 ? zeros : 32);
}

/* `and t, pointer, mask`; the bytes of an element of what it points to in *element. Codes are aligned to bytes, whatever the
 * bytes of a group are. */
static bool masks_pointer(const char *ptx, const instruction *i, uint64_t *mask, uint64_t *element)
{
    instruction low, pointer;
    if (!text_is_opcode(i, "and.b32") || !text_constant(i->operand[2], mask) ||
        !text_definition(ptx, i->operand[1], &low))
        return false;
    if (text_is_opcode(&low, "or.b32")) {
        *element = unit_of(ptx, i->operand[1]);
        return is_of_pointers(ptx, i->operand[1], PROOF_DEPTH);
    }
    if (!text_is_opcode(&low, "cvt.u32.u64") || !text_definition(ptx, low.operand[1], &pointer) ||
        !text_is_opcode(&pointer, "ld.param.u64"))
        return false;
    const bool is_packed = strcmp(pointer.operand[1], "[codes]") == 0 && !strstr(ptx, "_plain_");
    *element = is_packed ? 1 : element_of(ptx, low.operand[1]);
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

/* The same of a pointer and the bytes of a row at once: `or.b64 both, bytes, pointer`. */
static bool is_alignment_of_rows(const char *ptx, const instruction *i)
{
    instruction masked, low, both, pointer;
    return text_is_opcode(i, "setp.eq.u32") && strcmp(i->operand[2], "0") == 0 &&
           text_definition(ptx, i->operand[1], &masked) && text_is_opcode(&masked, "and.b32") &&
           text_definition(ptx, masked.operand[1], &low) && text_is_opcode(&low, "cvt.u32.u64") &&
           text_definition(ptx, low.operand[1], &both) && text_is_opcode(&both, "or.b64") &&
           text_definition(ptx, both.operand[2], &pointer) && text_is_opcode(&pointer, "ld.param.u64");
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
    return is_alignment(ptx, &def, &element) || is_alignment_of_rows(ptx, &def);
}

/* Whether a predicate is only joined to others, by `and` or `or`, to one that asks for an alignment too: where it holds less often, the
 * faster of two ways is taken less often. */
static bool is_joined_to_alignment(const char *ptx, const char *predicate, int depth)
{
    instruction use;
    if (depth == 0 || !text_only_reader(ptx, predicate, &use))
        return false;
    const bool is_and = text_is_opcode(&use, "and.pred");
    if (is_and &&
        asks_for_alignment(ptx, use.operand[strcmp(use.operand[1], predicate) == 0 ? 2 : 1], PROOF_DEPTH))
        return true;
    return (is_and || text_is_opcode(&use, "or.pred") ||
            (strncmp(use.opcode, "setp.", 5) == 0 && use.n == 4 && strcmp(use.operand[3], predicate) == 0)) &&
           is_joined_to_alignment(ptx, use.operand[0], depth - 1);
}

/* `and r, n, mask`, `setp.eq p, r, 0` where p is so joined: `or` never gives 0. */
static bool is_never_whole(const char *ptx, const mutant *m, const instruction *i)
{
    instruction use;
    uint64_t mask;
    return m->kind == MUTANT_LOGIC && strcmp(m->with, "or") == 0 && strncmp(i->opcode, "and.b", 5) == 0 &&
           text_constant(i->operand[2], &mask) && mask != 0 && text_only_reader(ptx, i->operand[0], &use) &&
           strncmp(use.opcode, "setp.eq.u", 9) == 0 && strcmp(use.operand[2], "0") == 0 && use.n == 3 &&
           is_joined_to_alignment(ptx, use.operand[0], PROOF_DEPTH);
}

/* `cp.async.wait_group` of fewer groups waits for all that the original waits for, and for more. */
static bool waits_for_more(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t old;
    (void)ptx;
    return m->kind == MUTANT_CONSTANT && text_is_opcode(i, "cp.async.wait_group") &&
           text_constant(i->operand[0], &old) && strtoull(m->with, NULL, 0) < old;
}

/* `setp.lt.and p, n, limit, q` where p is so joined: a lower limit holds less often. */
static bool is_lower_limit(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t old, now;
    return m->kind == MUTANT_CONSTANT && text_is_opcode(i, "setp.lt.and.u64") &&
           text_constant(i->operand[2], &old) && text_constant(m->with, &now) && now < old &&
           is_joined_to_alignment(ptx, i->operand[0], PROOF_DEPTH);
}

/* Kernels take vectors where a pointer is aligned to them and enough elements are left: `setp.ge.and p, left, 128, aligned`. Where they
 * ask for more than they need, the other way is taken more often, and that one takes any pointer and any number of elements. Elements
 * are aligned to their size at least: a mask without bits below it asks for the same, and one that keeps all bits asks for more. */
static bool asks_for_more(const char *ptx, const mutant *m, const instruction *i)
{
    instruction aligned;
    uint64_t old, element, now = strtoull(m->with, NULL, 0);
    if (is_never_whole(ptx, m, i) || is_lower_limit(ptx, m, i))
        return true;
    if (masks_pointer(ptx, i, &old, &element))
        return m->kind == MUTANT_LOGIC ||
               (m->kind == MUTANT_CONSTANT && ((now & old) == old || (now ^ old) < element));
    if (is_alignment(ptx, i, &element)) {
        text_definition(ptx, i->operand[1], &aligned);
        return (m->kind == MUTANT_CONSTANT && now % element != 0) ||
               (m->kind == MUTANT_REGISTER && strcmp(m->with, aligned.operand[1]) == 0 &&
                text_is_written_before(ptx, m->with, ptx + m->at));
    }
    if ((text_is_opcode(i, "setp.le.and.u64") || text_is_opcode(i, "setp.le.and.u32")) &&
        m->kind == MUTANT_COMPARISON && strcmp(m->with, "lt") == 0)
        return asks_for_alignment(ptx, i->operand[3], PROOF_DEPTH);
    return text_is_opcode(i, "setp.ge.and.u64") && text_constant(i->operand[2], &old) &&
           asks_for_alignment(ptx, i->operand[3], PROOF_DEPTH) &&
           (m->kind == MUTANT_CONSTANT ? now > old
                                       : m->kind == MUTANT_COMPARISON && strcmp(m->with, "gt") == 0);
}

/* The shift behind `mul.hi t, n, factor`, the only use of t; -1 where there is none. */
static int shift_behind(const char *ptx, const instruction *i)
{
    instruction shift = {.n = 0}, use;
    uint64_t k;
    int uses = 0;
    for (const char *line = ptx; line; line = text_next_line(line))
        if (text_names(line, i->operand[0])) {
            uses++;
            if (text_parse(line, &use) && text_is_opcode(&use, "shr.u64"))
                shift = use;
        }
    return uses == 2 && shift.n == 3 && text_constant(shift.operand[2], &k) && k < 60 ? (int)k : -1;
}

uint64_t divisor_of(const char *ptx, const instruction *i)
{
    uint64_t factor;
    if (!text_is_opcode(i, "mul.hi.u64") || !text_constant(i->operand[2], &factor) ||
        factor < UINT64_C(1) << 63)
        return 0;
    const int k = shift_behind(ptx, i);
    if (k < 0)
        return 0;
    const unsigned_wide power = (unsigned_wide)1 << (64 + k),
                        divisor = power / factor + (power % factor > factor / 2);
    return divisor * factor >= power && divisor * factor - power < divisor ? (uint64_t)divisor : 0;
}

/* n / d as `mul.hi t, n, factor`, `shr q, t, k`: factor = (2^(64+k) + e) / d. What is too much, n e / (d 2^(64+k)), is less than the 1/d
 * that the quotient's fraction lacks at most to the next integer if n e < 2^(64+k). No memory has 2^60 elements. */
static bool factor_is_as_good(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t factor, changed;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "mul.hi.u64") ||
        !text_constant(i->operand[2], &factor) || !text_constant(m->with, &changed) || factor < changed / 2)
        return false;
    const uint64_t divisor = divisor_of(ptx, i);
    if (divisor == 0)
        return false;
    const unsigned_wide power = (unsigned_wide)1 << (64 + shift_behind(ptx, i)),
                        product = (unsigned_wide)divisor * changed;
    return product >= power && (product - power) < power >> 60;
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
    while (!(is_high && is_low) && text_only_reader(ptx, reg, &use)) {
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

static const struct {
    const char *name;
    bool (*holds)(const char *ptx, const mutant *m, const instruction *i);
    bool is_guarded; /* it holds behind a guard as well */
} rules[] = {
    {"the result is the same", result_is_the_same, true},
    {"the difference is absorbed", difference_is_absorbed, false},
    {"the difference is exact", difference_is_exact, false},
    {"the number is integral", conversion_is_exact, false},
    {"the number is positive", conversion_is_of_positive, false},
    {"the type has the number", narrowing_is_exact, false},
    {"zero is added", adds_zero, false},
    {"the lanes get the same", lanes_get_the_same, false},
    {"the difference vanishes", difference_vanishes, false},
    {"the other is never NaN", other_is_never_nan, false},
    {"NaN never comes", nan_never_comes, false},
    {"more is asked for than needed", asks_for_more, false},
    {"more is waited for", waits_for_more, false},
    {"lane 0 gets the same", lane_0_gets_the_same, false},
    {"the factor divides as well", factor_is_as_good, false},
    {"the keys are the same", keys_are_the_same, false},
    {"any lane does", any_lane_does, false},
    {"no lane is above the last", lane_is_not_above_the_last, false},
    {"any barrier does", any_barrier_does, false},
    {"the other is NaN with it", other_is_nan_with_it, false},
    {"any NaN does", nan_is_any, false},
    {"the product is exact", multiplies_exactly, false},
    {"the difference is integral", difference_is_integral, false},
    {"a clamp is behind it", is_clamped_behind, false},
    {"the result is exact", result_is_exact, true},
    {"the difference is a fraction", difference_is_a_fraction, false},
    {"no quotient is between", no_quotient_is_between, false},
    {"the quotient is never beside a tie", quotient_is_never_beside_a_tie, false},
    {"the quotient is never beside a bound", quotient_is_never_beside_a_bound, false},
    {"the registers have the same", registers_have_the_same, true},
    {"the field is wide enough", field_is_wide_enough, true},
    {"the quotient is the same", quotient_is_the_same, false},
    {"nothing is carried", nothing_is_carried, false},
    {"any copy does", any_copy_does, false},
    {"the sum rounds alike", sum_rounds_alike, false},
    {"an overflow is narrowed", overflow_is_narrowed, false},
    {"the sum is clamped", sum_is_clamped, false},
    {"the other half is dropped", other_half_is_dropped, false},
    {"the quotient narrows alike", quotient_narrows_alike, false},
    {"the quotient encodes alike", quotient_encodes_alike, false},
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
