/* A different result that makes no difference in the end: what follows in the same block overwrites the bits that differ, or joins them
 * with the same bits. `bfe` of too many bits before `or` with the field that has them, or a byte with its sign before bytes that
 * are inserted above it.
 *
 * The block is run once with formulas of its registers' bits, in both programs. Until the end of the block each differs from the
 * original in some bits of some registers. Nothing else differs as long as no address, predicate or stored bit does; behind the
 * block nothing differs if none of these bits is used there. */
#include "mutate/change.h"
#include "mutate/formulas.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4000 };

/* The registers of both programs, before a step. */
typedef struct pair {
    const change *c;
    formulas **made_of[2]; /* of the original, of the mutant; null where it is a register's own bits */
    int *version;
    uint64_t *differing; /* bits */
    bool *is_other;      /* differs in some bit */
} pair;

static bool begin(pair *both, const change *c)
{
    const size_t n = (size_t)c->p->n_registers + 1;
    *both = (pair){.c = c};
    both->version = calloc(n, sizeof *both->version);
    both->differing = calloc(n, sizeof *both->differing);
    both->is_other = calloc(n, sizeof *both->is_other);
    for (int k = 0; k < 2; k++)
        both->made_of[k] = calloc(n, sizeof *both->made_of[k]);
    return both->version && both->differing && both->is_other && both->made_of[0] && both->made_of[1];
}

static void end(pair *both)
{
    for (int k = 0; k < 2; k++) {
        for (int reg = 0; reg < both->c->p->n_registers && both->made_of[k]; reg++)
            free(both->made_of[k][reg]);
        free(both->made_of[k]);
    }
    free(both->version);
    free(both->differing);
    free(both->is_other);
}

static bool reads_other(const pair *both, const step *s)
{
    for (int k = 0; k < s->n_reads; k++)
        if (both->is_other[s->reads[k]])
            return true;
    return false;
}

static view view_of(const pair *both, int which)
{
    return (view){.p = both->c->p,
                  .r = both->c->r,
                  .made_of = both->made_of[which],
                  .version = both->version,
                  .is_other = which ? both->is_other : NULL};
}

static void forget(pair *both, int reg)
{
    for (int k = 0; k < 2; k++) {
        free(both->made_of[k][reg]);
        both->made_of[k][reg] = NULL;
    }
}

static void set_differing(pair *both, int reg, uint64_t bits)
{
    both->differing[reg] = bits;
    both->is_other[reg] = bits != 0;
}

/* Bits of which nothing is known, which are the same in both programs. */
static void set_opaque(pair *both, int reg, int number)
{
    forget(both, reg);
    both->version[reg] = number + 1;
    set_differing(both, reg, 0);
}

static bool set_unknown(pair *both, int reg)
{
    formulas *unknown = calloc(2, sizeof *unknown);
    if (!unknown)
        return false;
    forget(both, reg);
    both->made_of[0][reg] = unknown;
    both->made_of[1][reg] = malloc(sizeof *unknown);
    if (both->made_of[1][reg])
        *both->made_of[1][reg] = *unknown;
    set_differing(both, reg, bits_mask(both->c->p->width[reg]));
    return both->made_of[1][reg] != NULL;
}

/* A bit that is unknown in both, and the same, is the register's own. */
static void set_formulas(pair *both, int reg, int number, formulas *made[2], bool is_same)
{
    uint64_t bits = 0;
    const int width = both->c->p->width[reg];
    for (int bit = 0; bit < width; bit++) {
        const formula own = {.is_known = true, .n = 1, .from = {{reg, number + 1, bit}}, .table = 2};
        for (int k = 0; k < 2 && is_same; k++)
            if (!made[k]->bits[bit].is_known)
                made[k]->bits[bit] = own;
        if (!formula_is_same(&made[0]->bits[bit], &made[1]->bits[bit]))
            bits |= UINT64_C(1) << bit;
    }
    forget(both, reg);
    both->version[reg] = number + 1;
    both->made_of[0][reg] = made[0];
    both->made_of[1][reg] = made[1];
    set_differing(both, reg, bits & both->c->used[reg]);
}

/* What a step writes, in both programs; the mutant may have another step there. */
static bool write_result(pair *both, int number, const step *old, const step *now)
{
    const int reg = old->writes[0];
    const bool is_same = old == now && !reads_other(both, old);
    formulas *made[2] = {malloc(sizeof(formulas)), malloc(sizeof(formulas))};
    const view views[2] = {view_of(both, 0), view_of(both, 1)};
    if (made[0] && made[1] && formulas_of_result(&views[0], old, made[0]) &&
        formulas_of_result(&views[1], now, made[1])) {
        set_formulas(both, reg, number, made, is_same);
        return true;
    }
    free(made[0]);
    free(made[1]);
    if (is_same)
        set_opaque(both, reg, number);
    return is_same || set_unknown(both, reg);
}

/* What is stored is the same. */
static bool stores_the_same(const pair *both, const step *s)
{
    static formulas before, after;
    const view views[2] = {view_of(both, 0), view_of(both, 1)};
    bool has_sign;
    const int width = step_type(s, &has_sign);
    if (width == 0 || s->i.n != 2 || s->i.operand[1][0] == '{' || s->n_reads != 2 ||
        both->is_other[s->reads[0]] || !formulas_of_operand(&views[0], s, 1, width, false, &before) ||
        !formulas_of_operand(&views[1], s, 1, width, false, &after))
        return false;
    return formulas_are_same(&before, &after, width);
}

/* Instructions that only compute: a different operand gives a different result and nothing else. */
static bool only_computes(const step *s)
{
    static const char *const others[] = {"ld.", "atom",     "shfl", "vote",      "match",
                                         "mma", "ldmatrix", "bar",  "activemask"};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        if (step_starts(s, others[k]))
            return false;
    return s->n_writes > 0;
}

static bool take_step(pair *both, int number)
{
    const change *c = both->c;
    const step *old = &c->p->steps[number], *now = number == c->at ? &c->now : old;
    const bool has_other = reads_other(both, old) || number == c->at;
    if (old->guard != NO_REGISTER && both->is_other[old->guard])
        return false;
    if (old->n_writes == 0)
        return !has_other || (step_starts(old, "st.") && stores_the_same(both, old));
    if (has_other && !only_computes(old))
        return false;
    if (old->n_writes == 1 && old->guard == NO_REGISTER)
        return write_result(both, number, old, now);
    for (int k = 0; k < old->n_writes; k++) {
        const int reg = old->writes[k];
        const bool keeps = old->guard != NO_REGISTER && both->is_other[reg];
        if (!has_other && !keeps)
            set_opaque(both, reg, number);
        else if (!set_unknown(both, reg))
            return false;
    }
    return true;
}

/* The bits that differ behind the block are used neither there nor before the changed step, to which a loop may come again. */
static bool is_over(const pair *both, int last)
{
    const change *c = both->c;
    for (int reg = 0; reg < c->p->n_registers; reg++)
        for (int k = 0; k < c->p->n_steps && both->is_other[reg]; k++)
            if ((k <= c->at || k > last) &&
                (used_by(c->p, &c->p->steps[k], reg, c->used) & both->differing[reg]))
                return false;
    return true;
}

static int first_of_block(const program *p, int at)
{
    while (at > 0 && !p->steps[at].is_target && p->steps[at - 1].target == NO_STEP &&
           p->steps[at - 1].next == at)
        at--;
    return at;
}

static bool runs_to_the_same(pair *both)
{
    const change *c = both->c;
    const int first = first_of_block(c->p, c->at);
    int number = first;
    for (;; number++) {
        if (number - first > STEPS_MAX || !ranges_go_to(c->r, number) || !take_step(both, number))
            return false;
        bool is_other = false;
        for (int reg = 0; reg < c->p->n_registers && number >= c->at && !is_other; reg++)
            is_other = both->is_other[reg];
        if (number >= c->at && !is_other)
            return true;
        const step *s = &c->p->steps[number];
        if (s->next != number + 1 || s->target != NO_STEP || number + 1 == c->p->n_steps ||
            c->p->steps[number + 1].is_target)
            break;
    }
    return is_over(both, number);
}

bool difference_is_absorbed(const char *ptx, const mutant *m, const instruction *i)
{
    change c;
    pair both;
    (void)i;
    if (!change_of(ptx, m, &c) || c.old->n_writes != 1 || c.old->guard != NO_REGISTER ||
        !only_computes(c.old))
        return false;
    const bool is_same = begin(&both, &c) && runs_to_the_same(&both);
    end(&both);
    return is_same;
}
