/* Abstract interpretation of the integers of a text. Registers that are written once keep one range; "variables", which are written in
 * several places or compared before a branch, have a range at every place. */
#include "mutate/ranges_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS_MAX = 200, SWEEPS_BEFORE_WIDENING = 3, SWEEPS_OF_NARROWING = 3, CONDITION_DEPTH = 6 };

/* ---- Conditions ---- */

static bool is_comparison(const step *s)
{
    bool has_sign;
    return step_starts(s, "setp.") && step_type(s, &has_sign) >= 16 && s->n_writes == 1;
}

static bool compares(const step *s)
{
    return is_comparison(s) || step_is(s, "and.pred") || step_is(s, "or.pred") || step_is(s, "not.pred") ||
           step_is(s, "mov.pred");
}

static bool writes(const step *s, int reg)
{
    for (int k = 0; k < s->n_writes; k++)
        if (s->writes[k] == reg)
            return true;
    return false;
}

static bool set(ranges *r, int reg, range value);

/* What is learned about a register holds for its copies, which the block that is left has made. */
static bool set_copies(ranges *r, int reg, range value)
{
    for (int k = r->leaving ? r->leaving->last : -1;
         k >= 0 && k >= r->leaving->first && !writes(&r->p->steps[k], reg); k--) {
        const step *s = &r->p->steps[k];
        bool is_kept =
            step_starts(s, "mov.b") && s->guard == NO_REGISTER && s->n_writes == 1 && s->reg[1] == reg;
        for (int j = k + 1; j <= r->leaving->last && is_kept; j++)
            is_kept = !writes(&r->p->steps[j], s->writes[0]);
        if (is_kept && !set(r, s->writes[0], value))
            return false;
    }
    return true;
}

static bool set(ranges *r, int reg, range value)
{
    if (reg == NO_REGISTER || r->variable[reg] < 0)
        return true;
    value = range_both(r->edge[r->variable[reg]], value, r->p->width[reg]);
    r->edge[r->variable[reg]] = value;
    return !range_is_empty(&value) && set_copies(r, reg, value);
}

static range edge_operand(ranges *r, const step *s, int k, int width)
{
    range *now = r->now;
    r->now = r->edge;
    const range value = ranges_operand(r, s, k, width);
    r->now = now;
    return value;
}

/* a < b, or a <= b, of operands x and y. */
static bool order(ranges *r, const step *s, int x, int y, bool or_equal, bool has_sign, int width)
{
    const range a = edge_operand(r, s, x, width), b = edge_operand(r, s, y, width);
    range most = range_anything(width), least = range_anything(width);
    const int64_t one = or_equal ? 0 : 1;
    if (has_sign) {
        if (!or_equal && (b.high == most.low || a.low == most.high))
            return false;
        most.high = b.high - one;
        least.low = a.low + one;
    } else {
        if (!or_equal && (b.most == 0 || a.least == most.most))
            return false;
        most.most = b.most - (uint64_t)one;
        least.least = a.least + (uint64_t)one;
    }
    return set(r, s->reg[x], range_settled(most, width)) && set(r, s->reg[y], range_settled(least, width));
}

/* a != b: an end that is b moves. */
static range without(range a, range b, int width)
{
    uint64_t value;
    if (!range_is_value(&b, &value))
        return a;
    if (a.least == value && a.most == value)
        return range_nothing;
    a.least += a.least == value;
    a.most -= a.most == value;
    a.low += a.low == range_signed_of(value, width);
    a.high -= a.high == range_signed_of(value, width);
    return range_settled(a, width);
}

unsigned range_relations(const step *s, bool is_true)
{
    static const struct {
        const char *name;
        unsigned relations;
    } names[] = {
        {".lt.", RANGE_BELOW}, {".le.", RANGE_BELOW | RANGE_EQUAL}, {".eq.", RANGE_EQUAL},
        {".gt.", RANGE_ABOVE}, {".ge.", RANGE_ABOVE | RANGE_EQUAL}, {".ne.", RANGE_BELOW | RANGE_ABOVE}};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strncmp(s->i.opcode + 4, names[k].name, 4) == 0)
            return is_true ? names[k].relations : RANGE_ANY & ~names[k].relations;
    return RANGE_ANY;
}

/* What a comparison of the operands 1 and 2 says, if it comes out as given. */
static bool learn_comparison(ranges *r, int number, bool is_true)
{
    const step *s = &r->p->steps[number];
    const int place = r->comparison[number];
    r->edge_relation[place] = r->edge_relation[place] & (uint8_t)range_relations(s, is_true);
    if (r->edge_relation[place] == 0)
        return false;
    static const struct {
        const char *name, *opposite;
    } names[] = {{".lt.", ".ge."}, {".le.", ".gt."}, {".eq.", ".ne."},
                 {".ge.", ".lt."}, {".gt.", ".le."}, {".ne.", ".eq."}};
    const char *name = NULL;
    bool has_sign;
    const int width = step_type(s, &has_sign);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strncmp(s->i.opcode + 4, names[k].name, 4) == 0)
            name = is_true ? names[k].name : names[k].opposite;
    if (!name)
        return true;
    if (name[1] == 'l')
        return order(r, s, 1, 2, name[2] == 'e', has_sign, width);
    if (name[1] == 'g')
        return order(r, s, 2, 1, name[2] == 'e', has_sign, width);
    const range a = edge_operand(r, s, 1, width), b = edge_operand(r, s, 2, width);
    if (name[1] == 'e')
        return set(r, s->reg[1], b) && set(r, s->reg[2], a);
    return set(r, s->reg[1], without(a, b, width)) && set(r, s->reg[2], without(b, a, width));
}

/* Narrows `edge` by what the predicate says; false where it cannot come out so. */
static bool learn(ranges *r, int predicate, bool is_true, int depth)
{
    const int place = predicate == NO_REGISTER ? -1 : r->predicate[predicate];
    if (place < 0 || depth == 0)
        return true;
    const range value = ranges_get(r, predicate);
    if (is_true ? value.most == 0 : value.least == 1)
        return false;
    if (r->condition[place] == NO_STEP)
        return true;
    const step *s = &r->p->steps[r->condition[place]];
    if (step_is(s, "not.pred"))
        return learn(r, s->reg[1], !is_true, depth - 1);
    if (step_is(s, "mov.pred"))
        return learn(r, s->reg[1], is_true, depth - 1);
    if (step_is(s, "and.pred") || step_is(s, "or.pred"))
        return is_true != step_is(s, "and.pred") ||
               (learn(r, s->reg[1], is_true, depth - 1) && learn(r, s->reg[2], is_true, depth - 1));
    const bool joins_and = strstr(s->i.opcode, ".and.") != NULL,
               joins_or = strstr(s->i.opcode, ".or.") != NULL;
    if ((joins_and && !is_true) || (joins_or && is_true))
        return true;
    return learn_comparison(r, r->condition[place], is_true) &&
           (!(joins_and || joins_or) || learn(r, s->reg[3], is_true, depth - 1));
}

/* ---- Running a block ---- */

static void forget_conditions(ranges *r, int reg)
{
    if (r->predicate[reg] >= 0)
        r->condition[r->predicate[reg]] = NO_STEP;
    for (const int *user = r->users + r->first_user[reg]; *user != NO_STEP; user++) {
        if (r->comparison[*user] >= 0)
            r->relation[r->comparison[*user]] = RANGE_ANY;
        const int place = r->predicate[r->p->steps[*user].writes[0]];
        if (r->condition[place] == *user)
            r->condition[place] = NO_STEP;
    }
}

static bool reads(const step *s, int reg)
{
    for (int k = 0; k < s->n_reads; k++)
        if (s->reads[k] == reg)
            return true;
    return false;
}

static bool may_wrap(const ranges *r, const step *s)
{
    bool has_sign;
    const int width = step_type(s, &has_sign);
    if (width == 0 || !(step_starts(s, "add.") || step_starts(s, "sub.")))
        return false;
    const range a = ranges_operand(r, s, 1, width), b = ranges_operand(r, s, 2, width);
    return step_starts(s, "sub.") ? a.least < b.most : (unsigned_wide)a.most + b.most > bits_mask(width);
}

/* Whether a register's range changed. */
static bool run_step(ranges *r, int number)
{
    const step *s = &r->p->steps[number];
    bool has_changed = false;
    if (s->n_writes == 0)
        return false;
    range values[STEP_REGISTERS];
    for (int k = 0; k < s->n_writes; k++)
        values[k] = ranges_result_at(r, s, k);
    r->may_wrap[number] = may_wrap(r, s);
    for (int k = 0; k < s->n_writes; k++) {
        const int reg = s->writes[k];
        const range new_value = values[k];
        forget_conditions(r, reg);
        if (r->variable[reg] >= 0) {
            range *old = &r->now[r->variable[reg]];
            *old = s->guard == NO_REGISTER ? new_value : range_either(*old, new_value);
        } else if (!range_is_same(&r->fixed[reg], &new_value)) {
            r->fixed[reg] = new_value;
            has_changed = true;
        }
    }
    if (s->guard == NO_REGISTER && compares(s) && s->n_writes == 1 && !reads(s, s->writes[0]))
        r->condition[r->predicate[s->writes[0]]] = number;
    return has_changed;
}

/* All variables, or those that are changed. */
static void meet(const ranges *r, meeting *m, const range *values, const int *conditions,
                 const uint8_t *relations, const bool *is_changed)
{
    for (int k = 0; k < r->n_comparisons; k++)
        m->relations[k] = m->is_reached ? m->relations[k] | relations[k] : relations[k];
    for (int k = 0; k < r->n_variables; k++)
        if (!is_changed || is_changed[k])
            m->values[k] = m->is_reached ? range_either(m->values[k], values[k]) : values[k];
    for (int k = 0; k < r->n_predicates; k++)
        if (!m->is_reached)
            m->conditions[k] = conditions[k];
        else if (m->conditions[k] != conditions[k])
            m->conditions[k] = NO_STEP;
    m->is_reached = true;
}

static void go_on(ranges *r, int from, int to)
{
    if (to == NO_STEP)
        return;
    block *b = &r->blocks[r->block_of[to]];
    meet(r, to > from ? &b->above : &b->next_below, r->edge, r->condition, r->edge_relation, NULL);
}

static void copy_to_edge(ranges *r)
{
    memcpy(r->edge, r->now, (size_t)r->n_variables * sizeof *r->now);
    memcpy(r->edge_relation, r->relation, (size_t)r->n_comparisons * sizeof *r->relation);
}

/* Along the ways that lead out of the block. */
static void leave(ranges *r, const block *b)
{
    const step *s = &r->p->steps[b->last];
    r->leaving = b;
    copy_to_edge(r);
    if (s->target == NO_STEP || s->guard == NO_REGISTER) {
        go_on(r, b->last, s->target == NO_STEP ? s->next : s->target);
        return;
    }
    if (learn(r, s->guard, !s->guard_is_negated, CONDITION_DEPTH))
        go_on(r, b->last, s->target);
    copy_to_edge(r);
    if (learn(r, s->guard, s->guard_is_negated, CONDITION_DEPTH))
        go_on(r, b->last, s->next);
}

/* Whether a step that counts may go beyond the ends of its type. */
static bool wraps(const ranges *r, const block *b, int variable)
{
    const int reg = r->register_of[variable];
    for (int k = b->first; k <= b->end_of_loop; k++)
        if (r->may_wrap[k] && r->p->steps[k].n_writes == 1 && r->p->steps[k].writes[0] == reg)
            return true;
    return false;
}

/* A counter that begins at `first`, changes in every round and has an end says how many rounds there are. */
static uint64_t most_rounds(const ranges *r, const block *b, const range *first, const range *now)
{
    uint64_t rounds = UINT64_MAX;
    for (int k = 0; k < b->n_counters; k++) {
        const counter *c = &b->counters[k];
        const range *begin = &first[c->variable], *at = &now[c->variable];
        const uint64_t from = c->is_down ? at->least : begin->least, to = c->is_down ? begin->most : at->most;
        if (c->least > 0 && to >= from && !wraps(r, b, c->variable))
            rounds = range_least_of(rounds, (to - from) / c->least);
    }
    return rounds;
}

/* So all counters of the loop are bounded. */
static void bound_counters(const ranges *r, const block *b, const range *first, range *now)
{
    const uint64_t rounds = most_rounds(r, b, first, now);
    for (int k = 0; k < b->n_counters && rounds < UINT64_MAX; k++) {
        const counter *c = &b->counters[k];
        const int width = r->p->width[r->register_of[c->variable]];
        const range *from = &first[c->variable];
        const unsigned_wide most = (unsigned_wide)rounds * c->most + from->most;
        if (!c->is_down && most <= bits_mask(width))
            now[c->variable] =
                range_both(now[c->variable], range_between(from->least, (uint64_t)most, width), width);
    }
}

/* What comes from above and from below; until the end is found, besides what has come before. */
static bool enter(ranges *r, block *b, int sweep, bool is_narrowing)
{
    meeting *old = &b->in;
    bool has_changed = false;
    meeting *fresh = &b->above;
    if (!fresh->is_reached)
        return false;
    const size_t bytes = (size_t)r->n_variables * sizeof *r->first;
    memcpy(r->first, fresh->values, bytes);
    if (b->below.is_reached)
        meet(r, fresh, b->below.values, b->below.conditions, b->below.relations, b->is_changed);
    if (is_narrowing && b->n_counters)
        bound_counters(r, b, r->first, fresh->values);
    for (int k = 0; k < r->n_variables; k++) {
        range value = fresh->values[k];
        if (!is_narrowing && old->is_reached) {
            value = range_either(old->values[k], value);
            if (sweep >= SWEEPS_BEFORE_WIDENING && r->p->steps[b->first].is_joined &&
                (!b->is_changed || b->is_changed[k]))
                value = range_widened(old->values[k], value, r->p->width[r->register_of[k]]);
        }
        has_changed = has_changed || !old->is_reached || !range_is_same(&value, &old->values[k]);
        old->values[k] = value;
    }
    for (int k = 0; k < r->n_predicates; k++) {
        has_changed = has_changed || !old->is_reached || old->conditions[k] != fresh->conditions[k];
        old->conditions[k] = fresh->conditions[k];
    }
    for (int k = 0; k < r->n_comparisons; k++) {
        has_changed = has_changed || !old->is_reached || old->relations[k] != fresh->relations[k];
        old->relations[k] = fresh->relations[k];
    }
    old->is_reached = true;
    return has_changed;
}

static void begin_at(ranges *r, const block *b)
{
    memcpy(r->now, b->in.values, (size_t)r->n_variables * sizeof *r->now);
    memcpy(r->condition, b->in.conditions, (size_t)r->n_predicates * sizeof *r->condition);
    memcpy(r->relation, b->in.relations, (size_t)r->n_comparisons * sizeof *r->relation);
    r->at = b->first;
}

static bool sweep_once(ranges *r, int sweep, bool is_narrowing)
{
    bool has_changed = false;
    for (int k = 0; k < r->n_blocks; k++) {
        r->blocks[k].above.is_reached = false;
        r->blocks[k].next_below.is_reached = false;
    }
    for (int k = 0; k < r->n_variables; k++)
        r->edge[k] =
            r->is_empty[r->register_of[k]] ? range_nothing : range_anything(r->p->width[r->register_of[k]]);
    for (int k = 0; k < r->n_predicates; k++)
        r->condition[k] = NO_STEP;
    for (int k = 0; k < r->n_comparisons; k++)
        r->edge_relation[k] = RANGE_ANY;
    meet(r, &r->blocks[0].above, r->edge, r->condition, r->edge_relation, NULL);
    for (int k = 0; k < r->n_blocks; k++) {
        block *b = &r->blocks[k];
        has_changed = enter(r, b, sweep, is_narrowing) || has_changed;
        if (!b->above.is_reached)
            continue;
        begin_at(r, b);
        for (int step = b->first; step <= b->last; step++)
            has_changed = run_step(r, step) || has_changed;
        leave(r, b);
    }
    for (int k = 0; k < r->n_blocks; k++) {
        const meeting below = r->blocks[k].below;
        r->blocks[k].below = r->blocks[k].next_below;
        r->blocks[k].next_below = below;
    }
    return has_changed;
}

/* ---- Preparing ---- */

static bool make_meeting(const ranges *r, meeting *m)
{
    m->values = calloc((size_t)r->n_variables + 1, sizeof *m->values);
    m->conditions = calloc((size_t)r->n_predicates + 1, sizeof *m->conditions);
    m->relations = calloc((size_t)r->n_comparisons + 1, sizeof *m->relations);
    return m->values && m->conditions && m->relations;
}

static bool make_blocks(ranges *r)
{
    const program *p = r->p;
    bool *begins = calloc((size_t)p->n_steps + 1, sizeof *begins);
    bool is_made = begins && (r->block_of = calloc((size_t)p->n_steps + 1, sizeof *r->block_of));
    for (int k = 0; k < p->n_steps && is_made; k++) {
        begins[k] =
            begins[k] || k == 0 || p->steps[k - 1].target != NO_STEP || p->steps[k - 1].next == NO_STEP;
        if (p->steps[k].target != NO_STEP)
            begins[p->steps[k].target] = true;
    }
    for (int k = 0; k < p->n_steps && is_made; k++)
        r->n_blocks += begins[k];
    r->blocks = calloc((size_t)r->n_blocks + 1, sizeof *r->blocks);
    is_made = is_made && r->blocks;
    for (int k = 0, n = -1; k < p->n_steps && is_made; k++) {
        if (begins[k]) {
            block *b = &r->blocks[++n];
            b->first = k;
            is_made =
                make_meeting(r, &b->in) && make_meeting(r, &b->above) &&
                (!p->steps[k].is_joined || (make_meeting(r, &b->below) && make_meeting(r, &b->next_below)));
        }
        r->block_of[k] = n;
        r->blocks[n].last = k;
    }
    free(begins);
    return is_made;
}

/* The last step that branches back to the block. */
static int end_of_loop(const program *p, int first)
{
    int last = first;
    for (int k = first; k < p->n_steps; k++)
        if (p->steps[k].target == first)
            last = k;
    return last;
}

static bool is_entered_elsewhere(const program *p, int first, int last)
{
    for (int k = 0; k < p->n_steps; k++)
        if ((k < first || k > last) && p->steps[k].target > first && p->steps[k].target <= last)
            return true;
    return false;
}

/* Whether the step, of the loop from first to last, is in a loop inside it. */
static bool is_in_inner_loop(const program *p, int step, int first, int last)
{
    for (int k = step; k <= last; k++)
        if (p->steps[k].target != NO_STEP && p->steps[k].target > first && p->steps[k].target <= step)
            return true;
    return false;
}

/* Whether a round of the loop may go without the step. */
static bool is_left_out(const program *p, int step, int first, int last)
{
    for (int k = first; k < step; k++)
        if (p->steps[k].target != NO_STEP &&
            (p->steps[k].target == first || (p->steps[k].target > step && p->steps[k].target <= last)))
            return true;
    return false;
}

/* Adds the step to the counter of the variable that it writes; false where it is none. */
static bool count_step(const ranges *r, int number, int first, int last, counter *c)
{
    const step *s = &r->p->steps[number];
    const bool is_down = step_starts(s, "sub.");
    bool has_sign;
    uint64_t by;
    if (!(is_down || step_starts(s, "add.")) || step_type(s, &has_sign) == 0 || s->guard != NO_REGISTER ||
        s->n_writes != 1 || s->reg[1] != s->writes[0] || !text_constant(s->i.operand[2], &by) ||
        by > UINT32_MAX || is_in_inner_loop(r->p, number, first, last) ||
        (c->most > 0 && c->is_down != is_down))
        return false;
    c->is_down = is_down;
    c->most += by;
    c->least += is_left_out(r->p, number, first, last) ? 0 : by;
    return true;
}

static bool is_counter(const ranges *r, int variable, int first, int last, counter *c)
{
    const int reg = r->register_of[variable];
    *c = (counter){.variable = variable};
    for (int k = first; k <= last; k++)
        for (int j = 0; j < r->p->steps[k].n_writes; j++)
            if (r->p->steps[k].writes[j] == reg && !count_step(r, k, first, last, c))
                return false;
    return c->most > 0;
}

static bool make_counters(ranges *r, block *b)
{
    b->counters = calloc((size_t)r->n_variables + 1, sizeof *b->counters);
    for (int k = 0; k < r->n_variables && b->counters; k++)
        if (b->is_changed[k] && is_counter(r, k, b->first, b->end_of_loop, &b->counters[b->n_counters]))
            b->n_counters++;
    return b->counters != NULL;
}

/* What a loop does not write is the same in all its rounds. */
static bool make_loops(ranges *r)
{
    const program *p = r->p;
    for (int k = 0; k < r->n_blocks; k++) {
        block *b = &r->blocks[k];
        const int last = p->steps[b->first].is_joined ? end_of_loop(p, b->first) : b->first;
        if (!p->steps[b->first].is_joined || is_entered_elsewhere(p, b->first, last))
            continue;
        b->is_changed = calloc((size_t)r->n_variables + 1, sizeof *b->is_changed);
        if (!b->is_changed)
            return false;
        for (int s = b->first; s <= last; s++)
            for (int j = 0; j < p->steps[s].n_writes; j++)
                if (r->variable[p->steps[s].writes[j]] >= 0)
                    b->is_changed[r->variable[p->steps[s].writes[j]]] = true;
        b->end_of_loop = last;
        if (!make_counters(r, b))
            return false;
    }
    return true;
}

static bool make_variables(ranges *r)
{
    const program *p = r->p;
    const size_t n = (size_t)p->n_registers + 1;
    r->fixed = calloc(n, sizeof *r->fixed);
    r->variable = calloc(n, sizeof *r->variable);
    r->predicate = calloc(n, sizeof *r->predicate);
    r->register_of = calloc(n, sizeof *r->register_of);
    r->comparison = calloc((size_t)p->n_steps + 1, sizeof *r->comparison);
    bool *is_compared = calloc(n, sizeof *is_compared);
    r->is_empty = calloc(n, sizeof *r->is_empty);
    const bool is_made = r->comparison && r->fixed && r->variable && r->predicate && r->register_of &&
                         is_compared && r->is_empty;
    for (int k = 0; k < p->n_steps && is_made; k++) {
        r->comparison[k] = is_comparison(&p->steps[k]) ? r->n_comparisons++ : -1;
        for (int j = 0; j < p->steps[k].n_reads && compares(&p->steps[k]); j++)
            is_compared[p->steps[k].reads[j]] = true;
        for (int j = 0; j < p->steps[k].n_writes; j++)
            r->is_empty[p->steps[k].writes[j]] =
                p->steps[k].guard != NO_REGISTER && p->definitions[p->steps[k].writes[j]] == 2;
    }
    for (int reg = 0; reg < p->n_registers && is_made; reg++) {
        const bool is_predicate = p->width[reg] == 1;
        r->fixed[reg] = range_anything(p->width[reg]);
        r->predicate[reg] = is_predicate ? r->n_predicates++ : -1;
        r->variable[reg] =
            p->definitions[reg] != 1 || (is_compared[reg] && !is_predicate) ? r->n_variables : -1;
        if (r->variable[reg] >= 0)
            r->register_of[r->n_variables++] = reg;
    }
    free(is_compared);
    return is_made;
}

/* The lists of the comparisons that read a register. */
static bool make_users(ranges *r)
{
    const program *p = r->p;
    const size_t n = (size_t)p->n_registers + 1;
    size_t total = n;
    for (int k = 0; k < p->n_steps; k++)
        total += compares(&p->steps[k]) ? (size_t)p->steps[k].n_reads : 0;
    r->first_user = calloc(n, sizeof *r->first_user);
    r->users = calloc(total, sizeof *r->users);
    int *count = calloc(n, sizeof *count);
    const bool is_made = r->first_user && r->users && count;
    for (int k = 0; k < p->n_steps && is_made; k++)
        for (int j = 0; j < p->steps[k].n_reads && compares(&p->steps[k]); j++)
            count[p->steps[k].reads[j]]++;
    for (int reg = 0, at = 0; reg < p->n_registers && is_made; reg++) {
        r->first_user[reg] = at;
        at += count[reg] + 1;
        r->users[at - 1] = NO_STEP;
        count[reg] = 0;
    }
    for (int k = 0; k < p->n_steps && is_made; k++)
        for (int j = 0; j < p->steps[k].n_reads && compares(&p->steps[k]); j++) {
            const int reg = p->steps[k].reads[j];
            r->users[r->first_user[reg] + count[reg]++] = k;
        }
    free(count);
    return is_made;
}

/* Integer products (int8_qmatmul, w4a8_matmul), and products on tensor cores: those that use them, and those that stream weights,
 * which have a workspace for sums. */
static bool is_of_integers(const char *text)
{
    return strstr(text, ".entry qdnn_int4_") || strstr(text, ".entry qdnn_int8_") ||
           strstr(text, ".entry qdnn_w4a") || strstr(text, ".entry qdnn_w8a");
}

static bool counts_in_32_bits(const char *text)
{
    return is_of_integers(text) || strstr(text, "\tmma.sync.") || strstr(text, " sums,\n");
}

static void read_head(ranges *r)
{
    r->is_limited = counts_in_32_bits(r->p->text);
    r->is_integer = is_of_integers(r->p->text);
    const char *size = strstr(r->p->text, "\n.reqntid ");
    r->block_size = size ? atoi(size + strlen("\n.reqntid ")) : 1024;
}

static void free_meeting(meeting *m)
{
    free(m->values);
    free(m->conditions);
    free(m->relations);
}

static void forget_ranges(ranges *r)
{
    for (int k = 0; k < r->n_blocks && r->blocks; k++) {
        free_meeting(&r->blocks[k].in);
        free_meeting(&r->blocks[k].above);
        free_meeting(&r->blocks[k].below);
        free_meeting(&r->blocks[k].next_below);
        free(r->blocks[k].is_changed);
        free(r->blocks[k].counters);
    }
    free(r->blocks);
    free(r->fixed);
    free(r->variable);
    free(r->predicate);
    free(r->register_of);
    free(r->block_of);
    free(r->first_user);
    free(r->users);
    free(r->now);
    free(r->condition);
    free(r->edge);
    free(r->first);
    free(r->may_wrap);
    free(r->relation);
    free(r->edge_relation);
    free(r->comparison);
    free(r->is_empty);
    *r = (ranges){0};
}

static bool prepare(ranges *r)
{
    if (!make_variables(r) || !make_blocks(r) || !make_loops(r) || !make_users(r))
        return false;
    r->now = calloc((size_t)r->n_variables + 1, sizeof *r->now);
    r->edge = calloc((size_t)r->n_variables + 1, sizeof *r->edge);
    r->may_wrap = calloc((size_t)r->p->n_steps + 1, sizeof *r->may_wrap);
    r->first = calloc((size_t)r->n_variables + 1, sizeof *r->first);
    r->condition = calloc((size_t)r->n_predicates + 1, sizeof *r->condition);
    r->relation = calloc((size_t)r->n_comparisons + 1, sizeof *r->relation);
    r->edge_relation = calloc((size_t)r->n_comparisons + 1, sizeof *r->edge_relation);
    read_head(r);
    return r->may_wrap && r->now && r->edge && r->first && r->condition && r->relation && r->edge_relation;
}

ranges *ranges_of(const program *p)
{
    static ranges last;
    static bool is_known;
    int sweep = 0;
    if (last.p == p && last.number == p->number)
        return is_known ? &last : NULL;
    forget_ranges(&last);
    last.p = p;
    last.number = p->number;
    is_known = prepare(&last);
    for (int k = 0; k < p->n_registers && is_known; k++)
        last.fixed[k] = range_nothing;
    while (is_known && sweep_once(&last, sweep, false))
        is_known = ++sweep < SWEEPS_MAX;
    for (int k = 0; k < SWEEPS_OF_NARROWING && is_known; k++)
        sweep_once(&last, sweep, true);
    last.at = NO_STEP;
    return is_known ? &last : NULL;
}

/* ---- Answers ---- */

bool ranges_go_to(ranges *r, int step)
{
    const block *b = &r->blocks[r->block_of[step]];
    if (!b->in.is_reached)
        return false;
    if (r->at == NO_STEP || r->at > step || r->at < b->first)
        begin_at(r, b);
    for (; r->at < step; r->at++)
        run_step(r, r->at);
    return true;
}

bool ranges_assume(ranges *r, int predicate, bool is_true)
{
    r->leaving = NULL;
    copy_to_edge(r);
    if (!learn(r, predicate, is_true, CONDITION_DEPTH))
        return false;
    memcpy(r->now, r->edge, (size_t)r->n_variables * sizeof *r->now);
    memcpy(r->relation, r->edge_relation, (size_t)r->n_comparisons * sizeof *r->relation);
    r->at = NO_STEP;
    return true;
}

/* A register that nothing has written holds anything. */
static range known(range value, int width)
{
    value = range_settled(value, width);
    return range_is_empty(&value) ? range_anything(width) : value;
}

range range_of_register(const ranges *r, int reg)
{
    return known(ranges_get(r, reg), r->p->width[reg]);
}

range range_anywhere(const ranges *r, int reg)
{
    const int width = r->p->width[reg];
    return r->variable[reg] < 0 ? known(r->fixed[reg], width) : range_anything(width);
}

range range_of_operand(const ranges *r, const step *s, int operand, int width)
{
    return known(ranges_operand(r, s, operand, width),
                 s->reg[operand] == NO_REGISTER ? width : r->p->width[s->reg[operand]]);
}

range range_of_result(const ranges *r, const step *s)
{
    return known(ranges_result(r, s), s->n_writes == 1 ? r->p->width[s->writes[0]] : 64);
}

static unsigned swapped(unsigned relations)
{
    return (relations & RANGE_EQUAL) | (relations & RANGE_BELOW ? RANGE_ABOVE : 0) |
           (relations & RANGE_ABOVE ? RANGE_BELOW : 0);
}

/* What has been learned from comparisons of the same operands. */
static unsigned learned(const ranges *r, const step *s, bool has_sign)
{
    unsigned relations = RANGE_ANY;
    for (int k = 0; k < r->p->n_steps; k++) {
        const step *other = &r->p->steps[k];
        bool other_has_sign;
        if (r->comparison[k] < 0 || r->relation[r->comparison[k]] == RANGE_ANY)
            continue;
        const unsigned known_relations = r->relation[r->comparison[k]];
        step_type(other, &other_has_sign);
        if (other_has_sign != has_sign)
            continue;
        if (strcmp(other->i.operand[1], s->i.operand[1]) == 0 &&
            strcmp(other->i.operand[2], s->i.operand[2]) == 0)
            relations &= known_relations;
        else if (strcmp(other->i.operand[1], s->i.operand[2]) == 0 &&
                 strcmp(other->i.operand[2], s->i.operand[1]) == 0)
            relations &= swapped(known_relations);
    }
    return relations;
}

unsigned range_relations_now(const ranges *r, const step *s)
{
    bool has_sign;
    const int width = step_type(s, &has_sign);
    const range a = range_of_operand(r, s, 1, width), b = range_of_operand(r, s, 2, width);
    unsigned relations = learned(r, s, has_sign);
    if (has_sign ? a.low >= b.high : a.least >= b.most)
        relations &= ~(unsigned)RANGE_BELOW;
    if (has_sign ? a.high <= b.low : a.most <= b.least)
        relations &= ~(unsigned)RANGE_ABOVE;
    if ((a.zeros & b.ones) || (a.ones & b.zeros) || a.most < b.least || a.least > b.most || a.high < b.low ||
        a.low > b.high)
        relations &= ~(unsigned)RANGE_EQUAL;
    return relations;
}
