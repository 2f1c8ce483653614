/* Joins units into one text. Of several definitions of a name one is kept: a strong one (.visible), else the
 * largest .common one, else the first .weak one; the others, and .extern declarations, become declarations of
 * it. A name without linkage is private to its unit, and is renamed if another unit has it as well. */
#include "link.h"
#include "ptxvm/ptxvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which definition is kept ---- */

static int compare_spans(link_span a, link_span b)
{
    int order = memcmp(a.at, b.at, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_symbols(const void *a, const void *b)
{
    const link_symbol *x = *(link_symbol *const *)a, *y = *(link_symbol *const *)b;
    int order = compare_spans(x->name, y->name);
    if (!order)
        order = (x->unit > y->unit) - (x->unit < y->unit);
    return order ? order : (x > y) - (x < y);
}

/* All symbols, by name and then in the order of the units. */
static link_symbol **sort_symbols(link_unit *units, int n, size_t *count)
{
    *count = 0;
    for (int u = 0; u < n; u++)
        *count += units[u].n_symbols;
    link_symbol **all = malloc((*count + 1) * sizeof(link_symbol *));
    size_t at = 0;
    for (int u = 0; u < n && all; u++)
        for (size_t i = 0; i < units[u].n_symbols; i++)
            all[at++] = &units[u].symbols[i];
    if (all)
        qsort(all, *count, sizeof(link_symbol *), compare_symbols);
    return all;
}

static bool is_global(const link_symbol *s)
{
    return s->linkage != LINKAGE_LOCAL && !s->is_dynamic_shared;
}

/* A kernel is visible outside its unit in any case. */
static bool is_strong(const link_symbol *s)
{
    return s->is_defined && (s->linkage == LINKAGE_VISIBLE || (s->is_entry && s->linkage == LINKAGE_LOCAL));
}

static int strength(const link_symbol *s)
{
    if (!s->is_defined)
        return 0;
    return is_strong(s) ? 3 : s->linkage == LINKAGE_COMMON ? 2 : s->linkage == LINKAGE_WEAK ? 1 : 0;
}

/* Of two commons the larger; of equal ones, the one with an initialiser. */
static bool is_better(const link_symbol *a, const link_symbol *than)
{
    if (strength(a) != (than ? strength(than) : 0))
        return strength(a) > (than ? strength(than) : 0);
    if (strength(a) != 2)
        return false;
    return a->bytes != than->bytes ? a->bytes > than->bytes : a->is_initialised && !than->is_initialised;
}

static bool complain(const link_unit *units, const link_symbol *a, const link_symbol *b, const char *what,
                     char *why, size_t size)
{
    int length = a->name.length > 200 ? 200 : (int)a->name.length;
    snprintf(why, size, "'%.*s' is %s in %s and in %s", length, a->name.at, what, units[a->unit].label,
             units[b->unit].label);
    return false;
}

/* How many of the symbols, starting with the first, belong to its unit. *shares: the unit shares the name
 * with others; a forward declaration may lack the linkage. */
static size_t of_one_unit(link_symbol **symbols, size_t n, bool *shares)
{
    size_t i = 0;
    *shares = false;
    for (; i < n && symbols[i]->unit == symbols[0]->unit; i++)
        *shares |= is_global(symbols[i]) || symbols[i]->is_entry;
    return i;
}

/* Resolves all symbols of one name. */
static bool resolve(const link_unit *units, link_symbol **group, size_t n, char *why, size_t size)
{
    link_symbol *kept = NULL;
    int first = -1; /* the unit that keeps it as a private name */
    bool shared = false, shares;
    for (size_t i = 0; i < n; i++) {
        link_symbol *s = group[i];
        if (kept && is_strong(kept) && is_strong(s))
            return complain(units, kept, s, "defined", why, size);
        kept = is_better(s, kept) ? s : kept;
        shared |= is_global(s) || s->is_entry;
    }
    for (size_t i = 0, count; i < n; i += count) {
        count = of_one_unit(group + i, n - i, &shares);
        if (shares && kept && group[i]->is_function != kept->is_function)
            return complain(units, group[i], kept, "a function and a variable", why, size);
        if (!shares && first < 0)
            first = group[i]->unit;
        for (size_t k = i; k < i + count; k++) {
            group[k]->kept = shares && group[k] != kept ? kept : NULL;
            group[k]->renamed = !shares && (shared || group[k]->unit != first);
        }
    }
    return true;
}

static bool resolve_all(link_unit *units, int n, char *why, size_t size)
{
    size_t count, next;
    link_symbol **all = sort_symbols(units, n, &count);
    bool ok = all;
    snprintf(why, size, "no memory is left to link");
    for (size_t i = 0; i < count && ok; i = next) {
        for (next = i + 1; next < count && compare_spans(all[i]->name, all[next]->name) == 0;)
            next++;
        ok = resolve(units, all + i, next - i, why, size);
    }
    free(all);
    return ok;
}

/* ---- Writing ---- */

typedef struct text {
    char *bytes;
    size_t length, capacity;
    uint64_t most;
    bool failed;
} text;

/* A long declaration may be repeated for many short ones: the result can be far longer than the units. */
static void put(text *t, const char *bytes, size_t length)
{
    t->failed |= length > t->most - t->length;
    if (t->failed)
        return;
    if (t->capacity - t->length <= length) {
        size_t capacity = 2 * t->capacity + length + 1024;
        char *more = realloc(t->bytes, capacity);
        if (!more) {
            t->failed = true;
            return;
        }
        t->bytes = more;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    t->bytes[t->length] = 0;
}

static void put_text(text *t, const char *bytes)
{
    put(t, bytes, strlen(bytes));
}

/* The names in a unit's text that change in the result, sorted; and what is added to its file numbers. */
typedef struct changes {
    link_span *names;
    size_t n;
    int unit, file_base;
} changes;

static int compare_names(const void *a, const void *b)
{
    return compare_spans(*(const link_span *)a, *(const link_span *)b);
}

static bool changes_begin(changes *c, const link_unit *unit, int number, int file_base)
{
    *c = (changes){
        .names = malloc((unit->n_symbols + 1) * sizeof(link_span)), .unit = number, .file_base = file_base};
    for (size_t i = 0; i < unit->n_symbols && c->names; i++)
        if (unit->symbols[i].renamed)
            c->names[c->n++] = unit->symbols[i].name;
    if (c->names)
        qsort(c->names, c->n, sizeof(link_span), compare_names);
    return c->names;
}

/* Writes a piece of text with its white space and comments; every use of a renamed name is changed, also
 * inside functions. */
static void put_changed(text *t, link_span span, const changes *c)
{
    const char *at = span.at, *end = span.at + span.length, *copied = at;
    bool file = false; /* the next number is a file number */
    for (link_token k = link_next(&at, end); k.kind != LINK_END; k = link_next(&at, end)) {
        char changed[40] = "";
        bool renamed =
            k.kind == LINK_NAME && c->n && bsearch(&k.text, c->names, c->n, sizeof(link_span), compare_names);
        if (renamed)
            snprintf(changed, sizeof changed, "$ptxvm%d", c->unit);
        else if (file && k.kind == LINK_NUMBER && c->file_base)
            snprintf(changed, sizeof changed, "%ld", strtol(k.text.at, NULL, 10) + c->file_base);
        file = link_is(k, ".file") || link_is(k, ".loc") || link_is(k, "inlined_at");
        if (!changed[0])
            continue;
        const char *until = renamed ? at : k.text.at; /* the unchanged beginning of the name is kept */
        put(t, copied, (size_t)(until - copied));
        put_text(t, changed);
        copied = at;
    }
    if (copied < end)
        put(t, copied, (size_t)(end - copied));
}

static void put_symbol(text *t, const link_symbol *s, const changes *all)
{
    static const char *const words[] = {[LINKAGE_LOCAL] = "",
                                        [LINKAGE_EXTERN] = ".extern ",
                                        [LINKAGE_WEAK] = ".weak ",
                                        [LINKAGE_COMMON] = ".common ",
                                        [LINKAGE_VISIBLE] = ".visible "};
    const link_symbol *shown = s->kept ? s->kept : s;
    const changes *c = &all[shown->unit];
    put_text(t, words[s->kept ? LINKAGE_EXTERN : s->linkage]);
    put_changed(t, shown->prefix, c);
    put_changed(t, shown->head, c);
    if (!s->kept && s->rest.length)
        put_changed(t, s->rest, c);
    put_text(t, s->is_function && s->is_defined && !s->kept ? "\n" : ";\n");
}

static bool is_newer(pvm_target a, pvm_target than)
{
    return a.sm != than.sm ? a.sm > than.sm : a.suffix && (a.suffix == 'a' || !than.suffix);
}

/* The result needs the newest version and target of its units. */
static void put_header(text *t, const link_unit *units, int n)
{
    char header[100];
    int version = 0;
    bool debug = false;
    pvm_target target = {0};
    for (int u = 0; u < n; u++) {
        version = units[u].version > version ? units[u].version : version;
        target = is_newer(units[u].target, target) ? units[u].target : target;
        debug |= units[u].debug;
    }
    snprintf(header, sizeof header, ".version %d.%d\n.target sm_%d%.1s%s\n.address_size 64\n", version / 10,
             version % 10, target.sm, &target.suffix, debug ? ", debug" : "");
    put_text(t, header);
}

static void put_unit(text *t, const link_unit *unit, const changes *all, int number)
{
    for (size_t i = 0; i < unit->n_pieces; i++)
        if (unit->pieces[i].symbol >= 0)
            put_symbol(t, &unit->symbols[unit->pieces[i].symbol], all);
        else {
            put_changed(t, unit->pieces[i].other, &all[number]);
            put_text(t, "\n");
        }
}

char *link_join(link_unit *units, int n, uint64_t most, char *why, size_t size)
{
    text t = {.most = most};
    if (!resolve_all(units, n, why, size))
        return NULL;
    changes *all = calloc((size_t)n, sizeof *all);
    t.failed = !all;
    for (int u = 0, files = 0; u < n && !t.failed; files += units[u++].files)
        t.failed = !changes_begin(&all[u], &units[u], u, files);
    if (!t.failed)
        put_header(&t, units, n);
    for (int u = 0; u < n && !t.failed; u++)
        put_unit(&t, &units[u], all, u);
    for (int u = 0; u < n && all; u++)
        free(all[u].names);
    free(all);
    if (!t.failed)
        return t.bytes;
    free(t.bytes);
    snprintf(why, size, "no memory is left to link, or the result has more than %llu %s: the limit is %s",
             (unsigned long long)most, ptxvm_limit_what(PTXVM_LIMIT_TEXT),
             ptxvm_limit_name(PTXVM_LIMIT_TEXT));
    return NULL;
}
