/* What a map says: its values, whether it is a bijection, its formulas, and what accesses to memory cost. */
#include "kernels/maps/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ---- */

map_point map_at(const map *m, const map_point *in)
{
    map_point out = {0};
    for (int pass = 0; pass < 2; pass++) /* sums first */
        for (int i = 0; i < m->count; i++) {
            const map_digit *d = &m->digit[i];
            const unsigned worth = in->at[d->from] / d->below % d->size * d->step;
            if (d->flips && pass)
                out.at[d->to] ^= worth;
            else if (!d->flips && !pass)
                out.at[d->to] += worth;
        }
    return out;
}

unsigned map_value(const map *m, const char *out, unsigned first, unsigned second)
{
    const map_point in = {{first, second}};
    return map_at(m, &in).at[map_axis(&m->out, out)];
}

/* ---- Bijections ---- */

/* The next input; false after the last one. */
static bool next(const map *m, map_point *in)
{
    for (int i = 0; i < m->in.count; i++) {
        if (++in->at[i] < map_extent(m, i))
            return true;
        in->at[i] = 0;
    }
    return false;
}

/* All points below the reach of the outputs, as one number. */
static size_t points(const map *m)
{
    size_t all = 1;
    for (int i = 0; i < m->out.count; i++)
        all *= map_reach(m, i);
    return all;
}

static size_t number_of(const map *m, const map_point *out)
{
    size_t number = 0;
    for (int i = m->out.count; i-- > 0;)
        number = number * map_reach(m, i) + out->at[i];
    return number;
}

/* How many outputs there are; 0: two inputs share one. */
static size_t different_outputs(const map *m)
{
    const size_t all = points(m);
    unsigned char *seen = calloc(all, 1);
    map_point in = {0};
    size_t count = 0;
    if (!seen)
        return 0;
    do {
        const map_point out = map_at(m, &in);
        const size_t number = number_of(m, &out);
        if (number >= all || seen[number]++) {
            count = 0;
            break;
        }
        count++;
    } while (next(m, &in));
    free(seen);
    return count;
}

bool map_is_injective(const map *m)
{
    return different_outputs(m) > 0;
}

bool map_is_bijection(const map *m)
{
    return different_outputs(m) == points(m);
}

/* ---- Formulas ---- */

typedef struct writer {
    char *text;
    size_t size, used;
} writer;

static void add_text(writer *w, const char *text)
{
    const size_t length = strlen(text);
    if (w->used + length < w->size) {
        memcpy(w->text + w->used, text, length + 1);
        w->used += length;
    }
}

/* "lane / 4", "2 (lane % 4)" */
static void add_term(writer *w, const map *m, const map_digit *d)
{
    const bool is_top = d->below * d->size == map_extent(m, d->from), is_whole = is_top && d->below == 1;
    const char *open = d->step > 1 && is_whole ? "" : d->step > 1 || d->flips ? "(" : "";
    char step[16] = "", below[20] = "", size[20] = "", text[MAP_NAME_MAX + 80];
    if (d->step > 1)
        snprintf(step, sizeof step, "%u ", d->step);
    if (d->below > 1)
        snprintf(below, sizeof below, " / %u", d->below);
    if (!is_top)
        snprintf(size, sizeof size, " %% %u", d->size);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", step, open, m->in.name[d->from], below, size,
             *open ? ")" : "");
    add_text(w, text);
}

void map_print(const map *m, char *text, size_t size)
{
    writer w = {text, size, 0};
    text[0] = 0;
    for (int out = 0; out < m->out.count; out++) {
        const char *before = " = ";
        add_text(&w, m->out.name[out]);
        for (int flips = 0; flips < 2; flips++)
            for (int i = 0; i < m->count; i++) {
                if (m->digit[i].to != out || m->digit[i].flips != (flips == 1))
                    continue;
                add_text(&w, flips ? " ^ " : before);
                add_term(&w, m, &m->digit[i]);
                before = " + ";
            }
        add_text(&w, "\n");
    }
}

/* ---- Memory ---- */

enum { BANKS = 32, WORD = 4 };

/* The address of a lane's access. */
static unsigned address(const map *m, const map_point *at, unsigned lane)
{
    map_point in = *at;
    in.at[map_axis(&m->in, "lane")] = lane;
    return map_at(m, &in).at[map_axis(&m->out, "byte")];
}

static bool contains(const unsigned *list, unsigned count, unsigned x)
{
    while (count-- > 0)
        if (list[count] == x)
            return true;
    return false;
}

unsigned map_sectors(const map *m, const map_point *at, unsigned bytes)
{
    unsigned seen[MAP_WARP * 2], count = 0;
    for (unsigned lane = 0; lane < MAP_WARP; lane++) {
        const unsigned first = address(m, at, lane);
        for (unsigned s = first / MAP_SECTOR; s <= (first + bytes - 1) / MAP_SECTOR; s++)
            if (!contains(seen, count, s))
                seen[count++] = s;
    }
    return count;
}

/* Lanes [first, end) at once: the most different words that a bank is asked for. */
static unsigned wavefronts_of(const map *m, const map_point *at, unsigned first, unsigned end, unsigned bytes)
{
    unsigned words[MAP_WARP], count = 0, of_bank[BANKS] = {0}, most = 0;
    for (unsigned lane = first; lane < end; lane++)
        for (unsigned w = 0; w < bytes / WORD; w++) {
            const unsigned word = address(m, at, lane) / WORD + w;
            if (contains(words, count, word))
                continue;
            words[count++] = word;
            if (++of_bank[word % BANKS] > most)
                most = of_bank[word % BANKS];
        }
    return most;
}

/* Half a warp is served at a time if lanes load 8 bytes, a quarter if they load 16. */
unsigned map_wavefronts(const map *m, const map_point *at, unsigned bytes)
{
    const unsigned together = bytes <= WORD ? MAP_WARP : MAP_WARP * WORD / bytes;
    unsigned all = 0;
    for (unsigned first = 0; first < MAP_WARP; first += together)
        all += wavefronts_of(m, at, first, first + together, bytes < WORD ? WORD : bytes);
    return all;
}

/* ---- Names ---- */

static const named_map maps[] = {
#define MAP(name, text, what) {#name, text, what},
#include "kernels/maps/maps.def"
#undef MAP
};

const named_map *map_named(int index)
{
    return index >= 0 && index < (int)(sizeof maps / sizeof maps[0]) ? &maps[index] : NULL;
}

map map_find(const char *name)
{
    for (int i = 0; map_named(i); i++)
        if (strcmp(map_named(i)->name, name) == 0)
            return map_of(map_named(i)->text);
    fprintf(stderr, "qdnn: there is no map named %s\n", name);
    abort();
}
