/* Rules about what lanes and warps exchange. */
#include "mutate/proofs.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, FOLDS_MAX = 16, UNIFORM_DEPTH = 40 };

/* ---- Butterflies ---- */

/* `shfl.bfly x, v, mask, last, members`, `max t, v, x`, `mov v, t`: one step of a reduction. */
typedef struct fold {
    const char *line;
    uint32_t mask[2], last[2]; /* of the original, of the mutant */
    char extreme;              /* the first letter but one of min, max, add; INTEGERS */
} fold;

/* A sum of integers wraps, so that it is the same in any order. */
#define INTEGERS '+'

/* What a lane has: the set of the lanes whose extreme it is, a number that stands for a sum of sums in their order, or a sum of numbers
 * that stand for the lanes. */
static uint64_t joined(char extreme, uint64_t a, uint64_t b)
{
    if (extreme == INTEGERS)
        return a + b;
    if (extreme != 'd')
        return a | b;
    uint64_t least = a < b ? a : b, most = a < b ? b : a; /* a sum of two is the same either way round */
    return (least * UINT64_C(0x9E3779B97F4A7C15) ^ most) * UINT64_C(0xBF58476D1CE4E5B9) + 1;
}

/* What a lane begins with. Sums of integers get numbers of 64 well-mixed bits: equal sums are made of the same ones. */
static uint64_t number_of_lane(char extreme, uint32_t lane)
{
    uint64_t state = lane;
    return extreme == INTEGERS ? random_next(&state)
           : extreme == 'd'    ? (uint64_t)lane * 7919 + 1
                               : UINT64_C(1) << lane;
}

/* Lanes whose numbers agree in the bits `own` begin with the same. */
static void run_folds(const fold *folds, int count, int which, uint32_t own, uint64_t lanes[LANES])
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        lanes[lane] = number_of_lane(count ? folds[0].extreme : 0, lane & own);
    for (int k = 0; k < count; k++) {
        uint64_t before[LANES];
        memcpy(before, lanes, sizeof before);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t from = lane ^ (folds[k].mask[which] & 31);
            if (from > (folds[k].last[which] & 31)) /* bits 5 to 7 of the operand mean nothing */
                from = lane;
            lanes[lane] = joined(folds[k].extreme, before[lane], before[from]);
        }
    }
}

static bool is_fold(const char *line, const instruction *shuffle, char *extreme)
{
    instruction join, move;
    const char *variable = shuffle->operand[1], *second = text_next_line(line),
               *third = second ? text_next_line(second) : NULL;
    if (!third || !text_parse(second, &join) || !text_parse(third, &move))
        return false;
    *extreme = join.opcode[1];
    return (text_is_opcode(&join, "max.f32") || text_is_opcode(&join, "min.f32") ||
            text_is_opcode(&join, "add.rn.f32")) &&
           text_is_opcode(&move, "mov.b32") && strcmp(join.operand[1], variable) == 0 &&
           strcmp(join.operand[2], shuffle->operand[0]) == 0 && strcmp(move.operand[0], variable) == 0 &&
           strcmp(move.operand[1], join.operand[0]) == 0;
}

/* The steps by which a variable is reduced; 0 where it is shuffled in another way as well. */
static int folds_of(const char *ptx, const instruction *i, fold folds[FOLDS_MAX])
{
    int n = 0;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction other;
        uint64_t mask, last;
        if (!text_parse(line, &other) || strncmp(other.opcode, "shfl.", 5) != 0 ||
            strcmp(other.operand[1], i->operand[1]) != 0)
            continue;
        if (strncmp(other.opcode, "shfl.sync.bfly.", 15) != 0 || n == FOLDS_MAX || other.n != 5 ||
            !is_fold(line, &other, &folds[n].extreme) || folds[n].extreme != folds[0].extreme ||
            !text_constant(other.operand[2], &mask) || !text_constant(other.operand[3], &last))
            return 0;
        folds[n].line = line;
        folds[n].mask[0] = folds[n].mask[1] = (uint32_t)mask;
        folds[n].last[0] = folds[n].last[1] = (uint32_t)last;
        n++;
    }
    return n;
}

/* The thread's number in a block of one dimension. */
static bool is_thread(const char *ptx, const char *operand)
{
    instruction def;
    return strstr(ptx, ", 1, 1\n") && text_definition(ptx, operand, &def) &&
           text_is_opcode(&def, "mov.u32") && strcmp(def.operand[1], "%tid.x") == 0;
}

/* A lane's number: the low five bits of the thread's. */
static bool is_lane(const char *ptx, const char *operand)
{
    instruction def;
    uint64_t mask;
    if (strcmp(operand, "%laneid") == 0)
        return true;
    if (!text_definition(ptx, operand, &def))
        return false;
    if (text_is_opcode(&def, "mov.u32") || text_is_opcode(&def, "mov.b32"))
        return strcmp(def.operand[1], "%laneid") == 0;
    return text_is_opcode(&def, "and.b32") && text_constant(def.operand[2], &mask) && mask == 31 &&
           is_thread(ptx, def.operand[1]);
}

/* The bits of a lane's number that are 0 where the operand is: 31 for a lane or a thread, fewer for a lane of a team. 0: it
 * says nothing about lanes. */
static uint32_t lane_bits(const char *ptx, const char *operand)
{
    instruction def;
    uint64_t mask;
    if (is_lane(ptx, operand) || is_thread(ptx, operand))
        return LANES - 1;
    if (!text_definition(ptx, operand, &def) || !text_is_opcode(&def, "and.b32") ||
        !text_constant(def.operand[2], &mask) || (mask & (mask + 1)) != 0 ||
        !(is_thread(ptx, def.operand[1]) || is_lane(ptx, def.operand[1])))
        return 0;
    return (uint32_t)mask & (LANES - 1);
}

/* The bits of the lanes' numbers that are 0 in every lane that was looked at so far. */
static uint32_t looked_at;

/* `setp.eq p, lane, 0`, with another condition or not. */
static bool is_one_lane(const char *ptx, const instruction *i)
{
    if ((!text_is_opcode(i, "setp.eq.u32") && !text_is_opcode(i, "setp.eq.and.u32")) ||
        strcmp(i->operand[2], "0") != 0)
        return false;
    const uint32_t bits = lane_bits(ptx, i->operand[1]);
    looked_at &= bits ? bits : LANES - 1;
    return bits != 0;
}

/* Whether the lanes that were looked at have the same in both. */
static bool are_the_same(const uint64_t before[LANES], const uint64_t after[LANES])
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        if ((lane & looked_at) == 0 && before[lane] != after[lane])
            return false;
    return true;
}

/* `setp.lt p, lane, n`, or of a thread, with another condition or not: bits above those of n - 1 are 0 in such lanes. */
static bool is_one_of_the_first(const char *ptx, const instruction *i)
{
    uint64_t count;
    if ((!text_is_opcode(i, "setp.lt.u32") && !text_is_opcode(i, "setp.lt.and.u32")) ||
        !text_constant(i->operand[2], &count) || count == 0 || count > LANES ||
        !(is_lane(ptx, i->operand[1]) || is_thread(ptx, i->operand[1])))
        return false;
    for (uint32_t bit = 1; bit < count; bit *= 2)
        looked_at &= ~bit;
    return true;
}

/* A predicate that holds in lane 0 alone or in the first few, or that is joined to such a one by `and`. */
static bool is_in_few_lanes(const char *ptx, const char *predicate, int depth)
{
    instruction def;
    if (depth == 0 || !text_definition(ptx, predicate, &def))
        return false;
    return is_one_lane(ptx, &def) || is_one_of_the_first(ptx, &def) ||
           (strncmp(def.opcode, "setp.", 5) == 0 && strstr(def.opcode, ".and.") && def.n == 4 &&
            is_in_few_lanes(ptx, def.operand[3], depth - 1));
}

/* The line behind the last of the instructions that only lane 0, or a few, come to: the branch on this line goes around them. */
static const char *end_of_few_lanes(const char *ptx, const char *line)
{
    char label[TEXT_MAX] = "\n", predicate[TEXT_MAX];
    if (sscanf(line, "\t@!%63[%a-z0-9] bra %62[$A-Za-z0-9_];", predicate, label + 1) != 2 ||
        !is_in_few_lanes(ptx, predicate, PROOF_DEPTH))
        return NULL;
    strcat(label, ":");
    const char *end = strstr(line, label);
    return end ? end + 1 : NULL;
}

/* Whether nothing but reading happens to a variable on the lines from one to before another. */
static bool is_left_alone(const char *from, const char *to, const char *variable)
{
    for (const char *line = from; line && line < to; line = text_next_line(line)) {
        instruction i;
        if (text_names(line, variable) &&
            (!text_parse(line, &i) || (text_writes(&i) && strcmp(i.operand[0], variable) == 0)))
            return false;
    }
    return true;
}

static const char *behind(const fold *f)
{
    return text_next_line(text_next_line(text_next_line(f->line)));
}

/* Of the steps those that belong together, the last of which is at most `last`: nothing else is done to the variable between
 * them. The number of the first. */
static int first_of(const fold *folds, int last, const char *variable)
{
    while (last > 0 && is_left_alone(behind(&folds[last - 1]), folds[last].line, variable))
        last--;
    return last;
}

/* Where a branch goes: the newline before its label; null where the line has none. */
static const char *target_of(const char *ptx, const char *line)
{
    char label[TEXT_MAX] = "\n", line_text[2 * TEXT_MAX] = "";
    sscanf(line, "%126[^\n]", line_text);
    const char *branch = strstr(line_text, "bra"), *name = branch ? strchr(branch, '$') : NULL;
    if (!name || sscanf(name, "%62[$A-Za-z0-9_]", label + 1) != 1)
        return NULL;
    strcat(label, ":");
    return strstr(ptx, label);
}

static bool is_named_from(const char *line, const char *variable)
{
    for (; line; line = text_next_line(line))
        if (text_names(line, variable))
            return true;
    return false;
}

/* Whether a variable gets another value from here on before it is read, whichever way is taken. */
static bool is_set_anew(const char *ptx, const char *line, const char *variable)
{
    for (; line; line = text_next_line(line)) {
        instruction i;
        const char *target = target_of(ptx, line);
        if (text_names(line, variable))
            return text_parse(line, &i) && i.n == 2 && strcmp(i.operand[0], variable) == 0 &&
                   strcmp(i.operand[1], variable) != 0;
        if (target && is_named_from(target + 1, variable))
            return false;
    }
    return true;
}

static bool is_for_few_lanes(const char *ptx, const char *reg, const char *line, int depth);

/* The same of all registers that an instruction writes: one, or several in braces. */
static bool are_for_few_lanes(const char *ptx, const char *written, const char *line, int depth)
{
    char reg[TEXT_MAX];
    for (const char *at = strchr(written, '%'); at; at = strchr(at + 1, '%'))
        if (sscanf(at, "%63[%a-z0-9]", reg) != 1 || !is_for_few_lanes(ptx, reg, line, depth))
            return false;
    return true;
}

/* Whether from a line on only lane 0, or a few, store what is made of a register, or branch on it; which ones, in `looked_at`. */
static bool is_for_few_lanes(const char *ptx, const char *reg, const char *line, int depth)
{
    const char *end = NULL;
    uint32_t inside = looked_at; /* by the lanes before `end` */
    for (; line && depth > 0; line = text_next_line(line)) {
        instruction i;
        const uint32_t outside = looked_at;
        if (!end || line >= end) {
            end = end_of_few_lanes(ptx, line);
            inside = looked_at;
            looked_at = outside;
        }
        if (!text_names(line, reg))
            continue;
        if (end && *line == '\t' && line[1] != '@') {
            looked_at &= inside;
            continue;
        }
        if (!text_parse(line, &i) || !text_writes(&i) || strncmp(i.opcode, "shfl", 4) == 0)
            return false;
        if (strcmp(i.operand[0], reg) == 0)
            return i.n == 2 && strcmp(i.operand[1], reg) != 0; /* what follows is another value */
        if (!are_for_few_lanes(ptx, i.operand[0], text_next_line(line), depth - 1))
            return false;
    }
    return depth > 0;
}

bool is_for_lane_0(const char *ptx, const char *reg, const char *line, int depth)
{
    looked_at = LANES - 1;
    return is_for_few_lanes(ptx, reg, line, depth) && looked_at == LANES - 1;
}

/* Whether no branch behind the reduction takes its variable back to where it is read. */
static bool stays_behind(const char *ptx, const char *variable, const fold *first, const fold *last)
{
    for (const char *line = behind(last); line; line = text_next_line(line)) {
        const char *target = target_of(ptx, line);
        if (target && target < first->line && !is_set_anew(ptx, target + 1, variable))
            return false;
    }
    return true;
}

/* `and m, lane, bits`, `mad a, m, 4, shared`, `ld.shared t, [a]`, `mov v, t` on the last lines before a reduction: lanes begin with
 * the same where those bits of their numbers agree. Else with what is their own. */
static uint32_t own_bits_of_load(const char *ptx, const char *loaded)
{
    instruction load, address, lane;
    uint64_t bits;
    char reg[TEXT_MAX];
    if (!text_definition(ptx, loaded, &load) ||
        (!text_is_opcode(&load, "ld.shared.f32") && !text_is_opcode(&load, "ld.shared.s32")) ||
        sscanf(load.operand[1], "[%63[%a-z0-9]]", reg) != 1 || !text_definition(ptx, reg, &address) ||
        !text_is_opcode(&address, "mad.lo.u32") || !text_definition(ptx, address.operand[1], &lane) ||
        !text_is_opcode(&lane, "and.b32") || !is_lane(ptx, lane.operand[1]) ||
        !text_constant(lane.operand[2], &bits) || !text_constant(address.operand[2], &(uint64_t){0}))
        return LANES - 1;
    instruction base;
    if (!text_definition(ptx, address.operand[3], &base) || !text_is_opcode(&base, "mov.u32") ||
        strchr(base.operand[1], '%'))
        return LANES - 1;
    return (uint32_t)bits & (LANES - 1);
}

static uint32_t own_bits(const char *ptx, const fold *first, const char *variable)
{
    const char *line = first->line - 1;
    instruction move;
    while (line > ptx && line[-1] != '\n')
        line--;
    return text_parse(line, &move) && text_is_opcode(&move, "mov.b32") &&
                   strcmp(move.operand[0], variable) == 0
               ? own_bits_of_load(ptx, move.operand[1])
               : LANES - 1;
}

/* A reduction leaves the extreme, or the sum, of some lanes in each lane. Other masks or another last lane make no difference where
 * each lane that is looked at gets the same. Minima and maxima may be taken in any order and any number of times. */
bool lanes_get_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    static fold folds[FOLDS_MAX];
    uint64_t before[LANES], after[LANES];
    char *end;
    uint64_t changed = strtoull(m->with, &end, 0);
    if (strncmp(i->opcode, "shfl.sync.bfly.", 15) != 0 || i->n != 5 || *end || m->kind != MUTANT_CONSTANT)
        return false;
    int n = folds_of(ptx, i, folds), commas = 0, k = 0, first;
    while (k < n && ptx + m->at >= folds[k].line + strcspn(folds[k].line, "\n"))
        k++;
    if (k == n)
        return false;
    first = first_of(folds, k, i->operand[1]);
    for (const char *at = folds[k].line; at < ptx + m->at; at++)
        commas += *at == ',';
    if (commas == 2)
        folds[k].mask[1] = (uint32_t)changed;
    else if (commas == 3 && changed < 0x100)
        folds[k].last[1] = (uint32_t)changed;
    else
        return false;
    while (k + 1 < n && first_of(folds, k + 1, i->operand[1]) == first)
        k++;
    const uint32_t own = own_bits(ptx, &folds[first], i->operand[1]);
    run_folds(folds + first, k + 1 - first, 0, own, before);
    run_folds(folds + first, k + 1 - first, 1, own, after);
    looked_at = LANES - 1;
    return memcmp(before, after, sizeof before) == 0 ||
           (stays_behind(ptx, i->operand[1], &folds[first], &folds[k]) &&
            is_for_few_lanes(ptx, i->operand[1], behind(&folds[k]), UNIFORM_DEPTH) &&
            are_the_same(before, after));
}

/* ---- Sums of registers that are written once ---- */

/* The letter of its fold; 0: it is no sum. */
static char sum_of(const instruction *i)
{
    if (text_is_opcode(i, "add.s32") || text_is_opcode(i, "add.u32"))
        return INTEGERS;
    return text_is_opcode(i, "add.rn.f32") ? 'd' : 0;
}

/* `shfl x, v, mask, last, members`, `add t, v, x`, and the same with t in the place of v, line by line from this one on; the last t in
 * `result`. Only they look at what they have. */
static int sums_from(const char *ptx, const char *line, fold folds[FOLDS_MAX], char result[TEXT_MAX])
{
    int n = 0;
    for (const char *second; n < FOLDS_MAX && line && (second = text_next_line(line)); n++) {
        instruction shuffle, join;
        uint64_t mask, last;
        if (!text_parse(line, &shuffle) || strncmp(shuffle.opcode, "shfl.sync.bfly.", 15) != 0 ||
            !text_parse(second, &join) || !sum_of(&join) ||
            strcmp(join.operand[1], shuffle.operand[1]) != 0 ||
            strcmp(join.operand[2], shuffle.operand[0]) != 0 ||
            (n > 0 && (strcmp(shuffle.operand[1], result) != 0 || sum_of(&join) != folds[0].extreme)) ||
            text_count_lines(ptx, shuffle.operand[0]) != 2 ||
            (n > 0 && text_count_lines(ptx, shuffle.operand[1]) != 3) ||
            !text_constant(shuffle.operand[2], &mask) || !text_constant(shuffle.operand[3], &last))
            break;
        folds[n] =
            (fold){line, {(uint32_t)mask, (uint32_t)mask}, {(uint32_t)last, (uint32_t)last}, sum_of(&join)};
        strcpy(result, join.operand[0]);
        line = text_next_line(second);
    }
    return n;
}

/* The steps of the same sum that come before this line: lanes that have met already hold the same. */
static int sums_before(const char *ptx, const char *line, fold folds[FOLDS_MAX])
{
    int most = 0;
    for (const char *at = ptx; at < line; at = text_next_line(at)) {
        fold all[FOLDS_MAX];
        char result[TEXT_MAX] = "";
        int n = strncmp(at, "\tshfl.sync.bfly.", 16) == 0 ? sums_from(ptx, at, all, result) : 0, before = 0;
        while (before < n && all[before].line != line)
            before++;
        if (before < n && before > most) {
            most = before;
            memcpy(folds, all, (size_t)before * sizeof *folds);
        }
    }
    return most;
}

/* As lanes_get_the_same, of a sum in registers that are written once; or of one that only lane 0 looks at. */
bool lane_0_gets_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    static fold folds[2 * FOLDS_MAX];
    uint64_t before[LANES], after[LANES];
    char result[TEXT_MAX] = "", *stop;
    const char *line = ptx + m->at;
    uint32_t changed = (uint32_t)strtoul(m->with, &stop, 0);
    instruction def;
    int commas = 0;
    while (line > ptx && line[-1] != '\n')
        line--;
    if (m->kind != MUTANT_CONSTANT || strncmp(i->opcode, "shfl.", 5) != 0 || *stop || changed > 0xFF)
        return false;
    const int first = sums_before(ptx, line, folds);
    const int n = first + sums_from(ptx, line, folds + first, result);
    if (n == first || !text_definition(ptx, result, &def))
        return false;
    for (const char *at = line; at < ptx + m->at; at++)
        commas += *at == ',';
    if (commas != 2 && commas != 3)
        return false;
    *(commas == 2 ? &folds[first].mask[1] : &folds[first].last[1]) = changed;
    run_folds(folds, n, 0, LANES - 1, before);
    run_folds(folds, n, 1, LANES - 1, after);
    if (memcmp(before, after, sizeof before) == 0)
        return true;
    looked_at = LANES - 1;
    return is_for_few_lanes(ptx, result, text_next_line(text_next_line(folds[n - 1].line)), UNIFORM_DEPTH) &&
           are_the_same(before, after);
}

/* ---- One lane for another ---- */

static bool is_uniform(const char *ptx, const char *operand, const char *place, int depth);

/* How many lanes have to have the same: a warp, or a team of fewer. */
static uint32_t team = LANES;

static bool are_teams_alike(const uint64_t lanes[LANES])
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (lanes[lane] != lanes[lane & ~(team - 1)])
            return false;
    return true;
}

/* The last of a sum in registers that are written once. */
static bool is_summed(const char *ptx, const char *reg)
{
    for (const char *line = ptx; line; line = text_next_line(line)) {
        static fold folds[FOLDS_MAX];
        uint64_t lanes[LANES];
        char result[TEXT_MAX] = "";
        const int n = strncmp(line, "\tshfl.sync.bfly.", 16) == 0 ? sums_from(ptx, line, folds, result) : 0;
        instruction shuffle;
        if (n == 0 || strcmp(result, reg) != 0 || !text_parse(line, &shuffle))
            continue;
        run_folds(folds, n, 0, own_bits_of_load(ptx, shuffle.operand[1]), lanes);
        if (are_teams_alike(lanes))
            return true;
    }
    return false;
}

/* A variable that a reduction before the place leaves the same in all lanes, and that nothing changes from there on. */
static bool is_reduced(const char *ptx, const char *variable, const char *place)
{
    static fold folds[FOLDS_MAX];
    uint64_t lanes[LANES];
    instruction shuffle = {.n = 5};
    strcpy(shuffle.operand[1], variable);
    int n = folds_of(ptx, &shuffle, folds);
    while (n > 0 && folds[n - 1].line > place)
        n--;
    if (n == 0 || !is_left_alone(behind(&folds[n - 1]), place, variable))
        return false;
    int first = first_of(folds, n - 1, variable);
    run_folds(folds + first, n - first, 0, own_bits(ptx, &folds[first], variable), lanes);
    return are_teams_alike(lanes);
}

/* The register of "[%d7+4]" or "%r3"; empty for constants and names. */
static void register_of(const char *operand, char reg[TEXT_MAX])
{
    const char *start = strchr(operand, '%');
    reg[0] = 0;
    if (start)
        sscanf(start, "%63[%a-z0-9.]", reg);
}

static bool sources_are_uniform(const char *ptx, const instruction *i, const char *place, int depth)
{
    for (int k = text_writes(i) ? 1 : 0; k < i->n; k++)
        if (!is_uniform(ptx, i->operand[k], place, depth))
            return false;
    return true;
}

/* Whether all lanes of a warp, or of a team, have the same there. */
static bool is_uniform(const char *ptx, const char *operand, const char *place, int depth)
{
    instruction def, thread;
    uint64_t shift;
    char reg[TEXT_MAX];
    register_of(operand, reg);
    if (!reg[0] || strncmp(reg, "%ctaid", 6) == 0 || strncmp(reg, "%nctaid", 7) == 0 ||
        strncmp(reg, "%ntid", 5) == 0)
        return true;
    if (strchr(reg, '.') || strcmp(reg, "%laneid") == 0 || depth == 0)
        return false;
    if (!text_definition(ptx, reg, &def))
        return is_reduced(ptx, reg, place);
    if (text_is_opcode(&def, "shr.u32") && text_constant(def.operand[2], &shift) && shift < 32 &&
        UINT32_C(1) << shift >= team &&
        (is_lane(ptx, def.operand[1]) ||
         (text_definition(ptx, def.operand[1], &thread) && strcmp(thread.operand[1], "%tid.x") == 0)))
        return true; /* the number of the warp, or of the team */
    if (sum_of(&def) && is_summed(ptx, reg))
        return true;
    if (strncmp(def.opcode, "ld.", 3) == 0 || strncmp(def.opcode, "shfl.", 5) == 0 ||
        strncmp(def.opcode, "atom.", 5) == 0)
        return strncmp(def.opcode, "ld.param.", 9) == 0;
    return sources_are_uniform(ptx, &def, place, depth - 1);
}

/* Whether all lines that name a register are between those two. */
static bool is_named_only_in(const char *ptx, const char *from, const char *to, const char *reg)
{
    int lines = 0;
    for (const char *line = from; line && line <= to; line = text_next_line(line))
        lines += text_names(line, reg);
    return lines == text_count_lines(ptx, reg);
}

/* Whether everything behind the branch, up to its label, is the same for all lanes of a warp, or of a team, and leaves nothing in
 * registers. */
static bool region_is_uniform(const char *ptx, const char *line)
{
    char label[TEXT_MAX] = "\n";
    if (sscanf(line, "\t@!%*[%a-z0-9] bra %62[$A-Za-z0-9_];", label + 1) != 1)
        return false;
    strcat(label, ":");
    const char *end = strstr(line, label), *branch = line;
    if (!end)
        return false;
    for (line = text_next_line(line); line && line <= end; line = text_next_line(line)) {
        instruction i;
        if (!text_parse(line, &i) || strncmp(i.opcode, "bar", 3) == 0 || strncmp(i.opcode, "bra", 3) == 0 ||
            strncmp(i.opcode, "shfl", 4) == 0 || strncmp(i.opcode, "atom", 4) == 0 ||
            strncmp(i.opcode, "red", 3) == 0 ||
            !(sources_are_uniform(ptx, &i, branch, UNIFORM_DEPTH) ||
              (text_writes(&i) && is_uniform(ptx, i.operand[0], branch, UNIFORM_DEPTH))) ||
            (text_writes(&i) && !is_named_only_in(ptx, branch, end, i.operand[0])))
            return false;
    }
    return true;
}

/* One lane stores what all lanes of its warp or team have: another stores the same. (Several would be found by a check.) Of threads,
 * another of the first warp. */
bool any_lane_does(const char *ptx, const mutant *m, const instruction *i)
{
    uint64_t number;
    if ((!text_is_opcode(i, "setp.eq.u32") && !text_is_opcode(i, "setp.eq.and.u32")) ||
        m->kind != MUTANT_CONSTANT || !text_constant(m->with, &number) || strcmp(i->operand[2], "0") != 0)
        return false;
    team = lane_bits(ptx, i->operand[1]) + 1;
    if (team == 1 || number >= team ||
        (i->n == 4 && !is_uniform(ptx, i->operand[3], ptx + m->at, UNIFORM_DEPTH)))
        return false;
    int uses = 0;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction own;
        if (!text_names(line, i->operand[0]) ||
            (text_parse(line, &own) && strcmp(own.operand[0], i->operand[0]) == 0))
            continue;
        if (!region_is_uniform(ptx, line))
            return false;
        uses++;
    }
    return uses > 0;
}

/* ---- Barriers ---- */

/* `bar.sync a` waits for all threads of the block, whatever a is: another barrier does the same, if no other instruction counts threads
 * at one. `bar.warp.sync` has none of these barriers. */
bool any_barrier_does(const char *ptx, const mutant *m, const instruction *i)
{
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "bar.sync") || i->n != 1 ||
        strtoul(m->with, NULL, 0) > 15)
        return false;
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction other;
        if (strncmp(line, "\tbar.", 5) == 0 && strncmp(line, "\tbar.warp.", 10) != 0 &&
            (!text_parse(line, &other) || !text_is_opcode(&other, "bar.sync") || other.n != 1))
            return false;
    }
    return true;
}
