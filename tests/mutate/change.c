#include "mutate/change.h"

#include <stdio.h>
#include <string.h>

/* The text, what is known of its registers, and the step that the mutant changes. */
static bool find_old(const char *ptx, const mutant *m, change *c)
{
    c->p = program_of(ptx);
    c->r = c->p ? ranges_of(c->p) : NULL;
    c->at = c->r ? program_step_at(c->p, m->at) : NO_STEP;
    if (c->at == NO_STEP)
        return false;
    c->old = &c->p->steps[c->at];
    return true;
}

static bool parse_change(const char *ptx, const mutant *m, change *c)
{
    static char line[512];
    if (!find_old(ptx, m, c))
        return false;
    const size_t length = strcspn(c->old->line, "\n"), before = (size_t)(c->p->text + m->at - c->old->line);
    if (length + sizeof m->with >= sizeof line || before + m->length > length)
        return false;
    snprintf(line, sizeof line, "%.*s%s%.*s\n", (int)before, c->old->line, m->with,
             (int)(length - before - m->length), c->old->line + before + m->length);
    return program_parse(c->p, line, &c->now) && c->now.guard == c->old->guard &&
           c->now.guard_is_negated == c->old->guard_is_negated && c->now.n_writes == c->old->n_writes &&
           memcmp(c->now.writes, c->old->writes, sizeof c->now.writes) == 0;
}

static bool is_written_elsewhere(const program *p, int reg, int at)
{
    for (int k = 0; k < p->n_steps; k++)
        for (int j = 0; j < p->steps[k].n_writes && k != at; j++)
            if (p->steps[k].writes[j] == reg)
                return true;
    return false;
}

/* A step that is left out leaves its destination as it is: `mov d, d`. If no other step writes it, nothing is known of what it is. */
static bool parse_deletion(const char *ptx, const mutant *m, change *c)
{
    static char line[TEXT_MAX];
    if (!find_old(ptx, m, c))
        return false;
    if (c->old->n_writes != 1 || c->p->width[c->old->writes[0]] == 1 ||
        !is_written_elsewhere(c->p, c->old->writes[0], c->at))
        return false;
    const char *name = c->p->names[c->old->writes[0]];
    snprintf(line, sizeof line, "\tmov.b%d %s, %s;\n", c->p->width[c->old->writes[0]], name, name);
    if (!program_parse(c->p, line, &c->now))
        return false;
    c->now.guard = c->old->guard;
    c->now.guard_is_negated = c->old->guard_is_negated;
    return true;
}

/* A register that the mutant reads has been written wherever it is read. */
static bool reads_what_is_written(const change *c)
{
    for (int k = 0; k < c->now.n_reads; k++) {
        bool is_old = false;
        for (int j = 0; j < c->old->n_reads; j++)
            is_old = is_old || c->old->reads[j] == c->now.reads[k];
        if (!is_old && !text_is_written_before(c->p->text, c->p->names[c->now.reads[k]], c->old->line))
            return false;
    }
    return true;
}

bool change_of(const char *ptx, const mutant *m, change *c)
{
    const bool is_deletion = m->kind == MUTANT_DELETION;
    if (m->kind == MUTANT_PREDICATE)
        return false;
    if (is_deletion ? !parse_deletion(ptx, m, c) : !parse_change(ptx, m, c) || !reads_what_is_written(c))
        return false;
    c->used = used_bits(c->p, c->at, &c->now);
    return c->used != NULL;
}
