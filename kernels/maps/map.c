/* Making maps: from text, digit by digit, by composition and inversion. */
#include "kernels/maps/map.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Axes and digits ---- */

int map_axis(const map_axes *axes, const char *name)
{
    for (int i = 0; i < axes->count; i++)
        if (strcmp(axes->name[i], name) == 0)
            return i;
    return -1;
}

_Noreturn static void overflow(const char *what)
{
    fprintf(stderr, "qdnn: a map has too many %s\n", what);
    abort();
}

static int axis_of(map_axes *axes, const char *name)
{
    const int known = map_axis(axes, name);
    if (known >= 0)
        return known;
    if (axes->count == MAP_AXES_MAX || strlen(name) >= MAP_NAME_MAX)
        overflow("axes");
    strcpy(axes->name[axes->count], name);
    return axes->count++;
}

/* The values that the digits of an input have so far. */
unsigned map_extent(const map *m, int in)
{
    unsigned extent = 1;
    for (int i = 0; i < m->count; i++)
        if (m->digit[i].from == in && !m->digit[i].flips && m->digit[i].below * m->digit[i].size > extent)
            extent = m->digit[i].below * m->digit[i].size;
    return extent;
}

unsigned map_reach(const map *m, int out)
{
    unsigned most = 0;
    for (int i = 0; i < m->count; i++)
        if (m->digit[i].to == out && !m->digit[i].flips)
            most += (m->digit[i].size - 1) * m->digit[i].step;
    return most + 1;
}

static void put(map *m, map_digit d)
{
    if (d.size == 1)
        return;
    if (m->count == MAP_DIGITS_MAX)
        overflow("digits");
    m->digit[m->count++] = d;
}

static void append(map *m, const char *in, unsigned size, const char *out, unsigned step, bool flips)
{
    const int from = axis_of(&m->in, in);
    put(m, (map_digit){from, axis_of(&m->out, out), map_extent(m, from), size, step, flips});
}

void map_add(map *m, const char *in, unsigned size, const char *out, unsigned step)
{
    append(m, in, size, out, step, false);
}

void map_flip(map *m, const char *in, unsigned size, const char *out, unsigned step)
{
    append(m, in, size, out, step, true);
}

/* ---- Text ---- */

static bool wrong(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return false;
}

static size_t name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_");
}

static bool take_name(const char **text, char name[MAP_NAME_MAX])
{
    const size_t length = name_length(*text);
    if (length == 0 || length >= MAP_NAME_MAX)
        return false;
    memcpy(name, *text, length);
    name[length] = 0;
    *text += length;
    return true;
}

/* 0: there is no number. */
static unsigned take_number(const char **text)
{
    unsigned number = 0;
    for (; **text >= '0' && **text <= '9' && number < 1u << 24; ++*text)
        number = 10 * number + (unsigned)(**text - '0');
    return number;
}

/* One term, such as 4k*2 or ^8place. */
static bool take_term(const char **text, map *m, const char *in, char *error, size_t error_size)
{
    char out[MAP_NAME_MAX];
    const char *begin = *text;
    const bool flips = **text == '^';
    *text += flips;
    const unsigned size = take_number(text);
    unsigned step = 1;
    if (size == 0 || !take_name(text, out))
        return wrong(error, error_size, "'%s' is no digit; write one as in 4k*2", begin);
    if (**text == '*') {
        ++*text;
        step = take_number(text);
    }
    if (step == 0)
        return wrong(error, error_size, "a step is missing in '%s'", begin);
    append(m, in, size, out, step, flips);
    return true;
}

bool map_parse(const char *text, map *m, char *error, size_t error_size)
{
    *m = (map){0};
    while (*text) {
        char in[MAP_NAME_MAX];
        text += strspn(text, " ;");
        if (!take_name(&text, in))
            return wrong(error, error_size, "'%s' does not begin with the name of an input", text);
        axis_of(&m->in, in);
        for (text += strspn(text, " "); *text && *text != ';'; text += strspn(text, " "))
            if (!take_term(&text, m, in, error, error_size))
                return false;
    }
    return true;
}

map map_of(const char *text)
{
    map m;
    char error[128];
    if (!map_parse(text, &m, error, sizeof error)) {
        fprintf(stderr, "qdnn: map \"%s\": %s\n", text, error);
        abort();
    }
    return m;
}

/* ---- Composition ---- */

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The part of a digit of the first map that digit d of the second one sees: the values between `low` and `high` on their
 * common axis. Both have to be cut there. */
static bool put_part(map *result, const map_digit *of, const map_digit *d, unsigned low, unsigned high)
{
    if (low % of->step || low % d->below || high % low)
        return false;
    put(result, (map_digit){.from = of->from,
                            .to = d->to,
                            .below = of->below * (low / of->step),
                            .size = high / low,
                            .step = d->step * (low / d->below),
                            .flips = of->flips || d->flips});
    return true;
}

/* Every value of a digit has to be seen by a digit of the second map, exactly once. */
static bool pass_on(const map_digit *of, const map *then, int axis, map *result)
{
    const unsigned end = of->step * of->size;
    unsigned seen = 1;
    for (int i = 0; i < then->count; i++) {
        const map_digit *d = &then->digit[i];
        const unsigned low = larger(of->step, d->below), high = smaller(end, d->below * d->size);
        if (d->from != axis || low >= high)
            continue;
        if (!put_part(result, of, d, low, high))
            return false;
        seen *= d->flips ? 1 : high / low;
    }
    return seen == of->size;
}

/* Whether no carry passes between what the digits of an output are worth. */
static bool is_free_of_carries(const map *m, int out)
{
    for (int i = 0; i < m->count; i++)
        for (int j = 0; j < m->count; j++) {
            const map_digit *a = &m->digit[i], *b = &m->digit[j];
            if (i == j || a->to != out || b->to != out || a->flips || b->flips || a->step > b->step)
                continue;
            if (b->step % (a->step * a->size))
                return false;
        }
    return true;
}

bool map_compose(const map *first, const map *then, map *result)
{
    *result = (map){.in = first->in, .out = then->out};
    for (int i = 0; i < first->count; i++) {
        const map_digit *d = &first->digit[i];
        const int axis = map_axis(&then->in, first->out.name[d->to]);
        if (axis < 0 || !is_free_of_carries(first, d->to) || !pass_on(d, then, axis, result))
            return false;
    }
    return true;
}

/* ---- Inversion ---- */

/* What the digits that are added are worth, the other way round. */
static map turned(const map *m)
{
    map back = {.in = m->out, .out = m->in};
    for (int i = 0; i < m->count; i++) {
        const map_digit *d = &m->digit[i];
        if (!d->flips)
            put(&back, (map_digit){d->to, d->from, d->step, d->size, d->below, false});
    }
    return back;
}

/* A flip reads a digit that passes through unchanged, so its inverse reads that digit's image, and flips the digit whose
 * image it flipped. */
static bool turn_flip(const map_digit *d, const map *forward, map *back)
{
    for (int i = 0; i < forward->count; i++) {
        const map_digit *source = &forward->digit[i];
        if (source->flips || source->from != d->from || source->below != d->below || source->size < d->size)
            continue;
        for (int j = 0; j < forward->count; j++) {
            const map_digit *target = &forward->digit[j];
            if (target->flips || target->to != d->to || d->step < target->step ||
                d->step * d->size > target->step * target->size || d->step % target->step)
                continue;
            put(back, (map_digit){source->to, target->from, source->step, d->size,
                                  target->below * (d->step / target->step), true});
            return true;
        }
    }
    return false;
}

bool map_invert(const map *m, map *result)
{
    *result = turned(m);
    for (int i = 0; i < m->count; i++)
        if (m->digit[i].flips && !turn_flip(&m->digit[i], m, result))
            return false;
    return map_is_bijection(m);
}
