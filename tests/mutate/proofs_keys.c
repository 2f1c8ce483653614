/* Butterflies over keys of 64 bits, which are exchanged in two halves:
 *     mov.b64 {low, high}, key;
 *     shfl.sync.bfly.b32 a, low, mask, last, members;
 *     shfl.sync.bfly.b32 b, high, mask, last, members;
 *     mov.b64 other, {a, b};
 *     max.u64 larger, key, other;
 * and the same with `larger` in the place of `key`. The largest of some keys is the same in any order and any number of times. */
#include "mutate/proofs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, STEPS_MAX = 8, LINES = 5, LINES_DEPTH = 40 };

typedef struct exchange {
    const char *line; /* of its first instruction */
    char key[TEXT_MAX], larger[TEXT_MAX];
    uint32_t mask[2], last[2]; /* of the low half and of the high one */
} exchange;

/* What a lane holds: the largest key of these, or bits of different keys. */
typedef struct held {
    uint32_t keys;
    bool is_mixed;
} held;

static bool is_half(const instruction *shuffle, const char *half, uint32_t *mask, uint32_t *last)
{
    uint64_t m, l;
    if (strcmp(shuffle->opcode, "shfl.sync.bfly.b32") != 0 || shuffle->n != 5 ||
        strcmp(shuffle->operand[1], half) != 0 || !text_constant(shuffle->operand[2], &m) ||
        !text_constant(shuffle->operand[3], &l) || l > 0xFF || strcmp(shuffle->operand[4], "0xFFFFFFFF") != 0)
        return false;
    *mask = (uint32_t)m & 31;
    *last = (uint32_t)l & 31;
    return true;
}

/* The five lines from this one on. */
static bool parse_exchange(const char *line, exchange *e)
{
    instruction i[LINES];
    char low[TEXT_MAX], high[TEXT_MAX], joined[3 * TEXT_MAX];
    e->line = line;
    for (int k = 0; k < LINES; k++, line = text_next_line(line))
        if (!line || !text_parse(line, &i[k]))
            return false;
    if (!text_is_opcode(&i[0], "mov.b64") ||
        sscanf(i[0].operand[0], "{%63[%a-z0-9], %63[%a-z0-9]}", low, high) != 2 ||
        !is_half(&i[1], low, &e->mask[0], &e->last[0]) || !is_half(&i[2], high, &e->mask[1], &e->last[1]))
        return false;
    snprintf(joined, sizeof joined, "{%s, %s}", i[1].operand[0], i[2].operand[0]);
    strcpy(e->key, i[0].operand[1]);
    strcpy(e->larger, i[4].operand[0]);
    return text_is_opcode(&i[3], "mov.b64") && strcmp(i[3].operand[1], joined) == 0 &&
           (text_is_opcode(&i[4], "max.u64") || text_is_opcode(&i[4], "min.u64")) &&
           strcmp(i[4].operand[1], e->key) == 0 && strcmp(i[4].operand[2], i[3].operand[0]) == 0;
}

/* The exchanges one after the other, of which one has the place. */
static int exchanges_around(const char *ptx, const char *place, exchange list[STEPS_MAX])
{
    for (const char *line = ptx; line && line < place; line = text_next_line(line)) {
        int n = 0;
        const char *at = line;
        while (n < STEPS_MAX && at && parse_exchange(at, &list[n]) &&
               (n == 0 || strcmp(list[n].key, list[n - 1].larger) == 0)) {
            for (int k = 0; k < LINES; k++)
                at = text_next_line(at);
            n++;
        }
        if (n > 0 && (!at || at > place))
            return n;
    }
    return 0;
}

/* Which keys there are at first: one per lane, or where they are loaded from `base + (lane & 7) * 8`, one per eight lanes. */
static uint32_t first_lanes(const char *ptx, const char *key)
{
    instruction load, address, lane, id;
    char reg[TEXT_MAX];
    uint64_t mask;
    if (!text_definition(ptx, key, &load) || !text_is_opcode(&load, "ld.shared.u64") ||
        sscanf(load.operand[1], "[%63[%a-z0-9]]", reg) != 1 || !text_definition(ptx, reg, &address) ||
        !text_is_opcode(&address, "mad.lo.u32") || !text_definition(ptx, address.operand[1], &lane) ||
        !text_is_opcode(&lane, "and.b32") || !text_constant(lane.operand[2], &mask) || mask > 31 ||
        !text_definition(ptx, lane.operand[1], &id) || strcmp(id.operand[1], "%laneid") != 0)
        return 31;
    return (uint32_t)mask;
}

static void run_exchanges(const exchange *list, int n, uint32_t lanes, held now[LANES])
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        now[lane] = (held){UINT32_C(1) << (lane & lanes), false};
    for (int k = 0; k < n; k++) {
        held before[LANES];
        memcpy(before, now, sizeof before);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            held half[2];
            for (int h = 0; h < 2; h++) {
                const uint32_t from = lane ^ list[k].mask[h];
                half[h] = before[from <= list[k].last[h] ? from : lane];
            }
            now[lane].is_mixed =
                before[lane].is_mixed || half[0].is_mixed || half[1].is_mixed || half[0].keys != half[1].keys;
            now[lane].keys = before[lane].keys | half[0].keys;
        }
    }
}

/* Another mask or last lane of one half. */
bool keys_are_the_same(const char *ptx, const mutant *m, const instruction *i)
{
    exchange list[STEPS_MAX], changed[STEPS_MAX];
    held before[LANES], after[LANES];
    const char *place = ptx + m->at;
    instruction def;
    bool is_same = true;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "shfl.sync.bfly.b32"))
        return false;
    const int n = exchanges_around(ptx, place, list);
    char *text = n ? mutant_text(ptx, m) : NULL;
    const int n_changed = text ? exchanges_around(text, text + m->at, changed) : 0;
    free(text);
    if (n == 0 || n_changed != n || !text_definition(ptx, list[n - 1].larger, &def))
        return false;
    for (int k = 1; k < n; k++) /* nobody else looks at what is between */
        if (!text_definition(ptx, list[k].key, &def) || text_count_lines(ptx, list[k].key) != 3)
            return false;
    const uint32_t lanes = first_lanes(ptx, list[0].key);
    run_exchanges(list, n, lanes, before);
    run_exchanges(changed, n, lanes, after);
    for (int lane = 0; lane < LANES; lane++)
        is_same = is_same && !after[lane].is_mixed && before[lane].keys == after[lane].keys;
    const char *behind = list[n - 1].line;
    for (int k = 0; k < LINES; k++)
        behind = text_next_line(behind);
    return is_same || (!after[0].is_mixed && before[0].keys == after[0].keys &&
                       is_for_lane_0(ptx, list[n - 1].larger, behind, LINES_DEPTH));
}
