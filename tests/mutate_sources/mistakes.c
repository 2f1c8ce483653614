/* The one-line mistakes that can be made in a C file.
 *
 * Only the bodies of functions are looked at: what is outside, and what the preprocessor defines, is data or constant. The text is not parsed: a
 * mistake that does not compile, changes a type, or stands where C wants a constant is dropped later by the compiler (check.c). */
#include "mutate_sources/mistakes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[MISTAKE_KINDS] = {
    [MISTAKE_COMPARISON] = "comparison", [MISTAKE_ARITHMETIC] = "arithmetic",
    [MISTAKE_LOGIC] = "logic",           [MISTAKE_TERM] = "term left out",
    [MISTAKE_CONSTANT] = "constant",     [MISTAKE_CONDITION] = "condition",
    [MISTAKE_CALL] = "call left out",    [MISTAKE_ASSIGNMENT] = "assignment left out",
    [MISTAKE_JUMP] = "jump left out",    [MISTAKE_MEMBER] = "member",
    [MISTAKE_ARGUMENTS] = "arguments",
};

const char *mistake_kind_name(mistake_kind kind)
{
    return kind_names[kind];
}

/* One token for another; `needs_operand` are signs that have another meaning without a value on their left. */
static const struct {
    const char *sign, *with;
    mistake_kind kind;
    bool needs_operand;
} replacements[] = {
    {"<", "<=", MISTAKE_COMPARISON, true},      {"<=", "<", MISTAKE_COMPARISON, true},
    {">", ">=", MISTAKE_COMPARISON, true},      {">=", ">", MISTAKE_COMPARISON, true},
    {"==", "!=", MISTAKE_COMPARISON, true},     {"!=", "==", MISTAKE_COMPARISON, true},
    {"+", "-", MISTAKE_ARITHMETIC, true},       {"-", "+", MISTAKE_ARITHMETIC, true},
    {"*", "+", MISTAKE_ARITHMETIC, true},       {"/", "*", MISTAKE_ARITHMETIC, true},
    {"%", "/", MISTAKE_ARITHMETIC, true},       {"<<", ">>", MISTAKE_ARITHMETIC, true},
    {">>", "<<", MISTAKE_ARITHMETIC, true},     {"&", "|", MISTAKE_ARITHMETIC, true},
    {"|", "&", MISTAKE_ARITHMETIC, true},       {"^", "|", MISTAKE_ARITHMETIC, true},
    {"+=", "-=", MISTAKE_ARITHMETIC, true},     {"-=", "+=", MISTAKE_ARITHMETIC, true},
    {"*=", "+=", MISTAKE_ARITHMETIC, true},     {"/=", "*=", MISTAKE_ARITHMETIC, true},
    {"|=", "&=", MISTAKE_ARITHMETIC, true},     {"&=", "|=", MISTAKE_ARITHMETIC, true},
    {"^=", "|=", MISTAKE_ARITHMETIC, true},     {"<<=", ">>=", MISTAKE_ARITHMETIC, true},
    {">>=", "<<=", MISTAKE_ARITHMETIC, true},   {"++", "--", MISTAKE_ARITHMETIC, false},
    {"--", "++", MISTAKE_ARITHMETIC, false},    {"&&", "||", MISTAKE_LOGIC, true},
    {"||", "&&", MISTAKE_LOGIC, true},          {"!", "", MISTAKE_LOGIC, false},
    {"true", "false", MISTAKE_CONSTANT, false}, {"false", "true", MISTAKE_CONSTANT, false},
};

static const char assignments[] = "= += -= *= /= %= &= |= ^= <<= >>=";

typedef struct finder {
    source *s;
    const tokens *t;
    int capacity, block_capacity;
    int *block_of; /* each token's; -1 outside functions */
    bool no_memory;
} finder;

static void *grown(finder *f, void *list, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 256;
    void *more = realloc(list, (size_t)*capacity * size);
    f->no_memory = f->no_memory || !more;
    return more ? more : list;
}

static const token *at(const finder *f, int i)
{
    return &f->t->list[i];
}

static int end_of(const finder *f, int i)
{
    return at(f, i)->at + at(f, i)->length;
}

static bool is_word(const finder *f, int i)
{
    return i >= 0 && i < f->t->count && at(f, i)->kind == TOKEN_WORD;
}

/* ---- Functions and blocks ---- */

/* The bracket behind which the condition of an if, a loop or a switch ends, by the word before its partner. */
static bool ends_control(const finder *f, int i, const char *words)
{
    return tokens_is(f->t, i, ")") && tokens_in(f->t, at(f, i)->partner - 1, words);
}

static bool begins_function(const finder *f, int i)
{
    return tokens_is(f->t, i, "{") && at(f, i)->inside < 0 && tokens_is(f->t, i - 1, ")") &&
           is_word(f, at(f, i - 1)->partner - 1);
}

static bool begins_block(const finder *f, int i)
{
    return tokens_is(f->t, i, "{") &&
           (tokens_in(f->t, i - 1, "else do") || ends_control(f, i - 1, "if for while"));
}

static uint32_t hash(uint32_t state, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        state = (state ^ (unsigned char)bytes[i]) * 16777619u;
    return state;
}

static void add_block(finder *f, int brace, uint32_t function, int number)
{
    source *s = f->s;
    s->blocks = grown(f, s->blocks, s->n_blocks, &f->block_capacity, sizeof *s->blocks);
    if (f->no_memory)
        return;
    char text[16];
    const int length = snprintf(text, sizeof text, " %d", number);
    const uint32_t h = hash(function, text, (size_t)length);
    s->blocks[s->n_blocks++] = (block){end_of(f, brace), (h ^ h >> 21) % BLOCK_IDS};
}

static uint32_t hash_of_function(const finder *f, int brace)
{
    const token *name = at(f, at(f, brace - 1)->partner - 1);
    uint32_t h = hash(2166136261u, f->s->path, strlen(f->s->path) + 1);
    return hash(h, f->s->text + name->at, (size_t)name->length);
}

static void find_blocks(finder *f)
{
    uint32_t function = 0;
    int first = 0;
    for (int i = 0; i < f->t->count && !f->no_memory; i++) {
        const int inside = at(f, i)->inside;
        f->block_of[i] = inside < 0 ? -1 : f->block_of[inside];
        if (begins_function(f, i)) {
            function = hash_of_function(f, i);
            first = f->s->n_blocks;
        } else if (f->block_of[i] < 0 || !begins_block(f, i)) {
            continue;
        }
        /* Tokens within look at their brace: its own block is the new one. */
        f->block_of[i] = f->s->n_blocks;
        add_block(f, i, function, f->s->n_blocks - first);
    }
}

/* ---- What the switch encloses ---- */

static bool stops(const finder *f, int i, bool past_assignments)
{
    if (tokens_in(f->t, i, ", ; ? : return else do case default goto") || tokens_in(f->t, i, "( [ {"))
        return true;
    return !past_assignments && tokens_in(f->t, i, assignments);
}

/* The first token of the expression around token i. */
static int first_of(const finder *f, int i, bool past_assignments)
{
    for (;;) {
        const int before = i - 1;
        if (before < 0 || stops(f, before, past_assignments) || tokens_is(f->t, before, "}") ||
            ends_control(f, before, "if for while switch"))
            return i;
        i = tokens_in(f->t, before, ") ]") ? at(f, before)->partner : before;
    }
}

/* The last token of it. */
static int last_of(const finder *f, int i, bool past_assignments)
{
    for (;;) {
        if (tokens_in(f->t, i, "( [ {"))
            i = at(f, i)->partner;
        const int next = i + 1;
        if (next >= f->t->count || tokens_in(f->t, next, ") ] }") ||
            (stops(f, next, past_assignments) && !tokens_in(f->t, next, "( [ {")))
            return i;
        i = next;
    }
}

/* ---- Mistakes ---- */

/* Whether i is in the operand of a sizeof without brackets. */
static bool is_measured(const finder *f, int i)
{
    for (int k = i; k >= 0; k--) {
        if (tokens_is(f->t, k, "sizeof"))
            return true;
        if (tokens_in(f->t, k, ") ]"))
            k = at(f, k)->partner;
        else if (!is_word(f, k) && !tokens_in(f->t, k, ". ->"))
            return false;
    }
    return false;
}

static bool is_passive(const finder *f, int i)
{
    if (is_measured(f, i))
        return true;
    for (int open = at(f, i)->inside; open >= 0; open = at(f, open)->inside)
        if (tokens_in(f->t, open - 1,
                      "assert static_assert _Static_assert sizeof offsetof _Alignof __attribute__"))
            return true;
    return false;
}

static mistake *add(finder *f, mistake_kind kind, int i, int at_, int length, const char *with)
{
    source *s = f->s;
    s->mistakes = grown(f, s->mistakes, s->n_mistakes, &f->capacity, sizeof *s->mistakes);
    char *copy = f->no_memory ? NULL : strdup(with);
    f->no_memory = f->no_memory || !copy;
    if (!copy)
        return NULL;
    mistake *m = &s->mistakes[s->n_mistakes++];
    *m = (mistake){.kind = kind, .line = at(f, i)->line, .at = at_, .length = length, .with = copy};
    m->block = f->block_of[i];
    return m;
}

/* A change of one token within its expression. */
static void add_in_expression(finder *f, mistake_kind kind, int i, const char *with, bool past_assignments)
{
    mistake *m = add(f, kind, i, at(f, i)->at, at(f, i)->length, with);
    if (!m)
        return;
    m->first = at(f, first_of(f, i, past_assignments))->at;
    m->end = end_of(f, last_of(f, i, past_assignments));
}

static bool is_value(const finder *f, int i)
{
    return i >= 0 && (at(f, i)->kind != TOKEN_SIGN || tokens_in(f->t, i, ") ]")) &&
           !tokens_in(f->t, i, "return case else do goto");
}

static void find_replacement(finder *f, int i)
{
    for (size_t k = 0; k < sizeof replacements / sizeof replacements[0]; k++) {
        if (!tokens_is(f->t, i, replacements[k].sign) ||
            (replacements[k].needs_operand && !is_value(f, i - 1)))
            continue;
        const bool assigns = tokens_in(f->t, i, assignments) || tokens_in(f->t, i, "++ --");
        add_in_expression(f, replacements[k].kind, i, replacements[k].with, assigns);
        return;
    }
}

static bool is_logical(const finder *f, int i)
{
    return tokens_in(f->t, i, "&& ||");
}

static void add_term(finder *f, int sign, int first, int last)
{
    mistake *m = add(f, MISTAKE_TERM, first, at(f, first)->at, end_of(f, last) - at(f, first)->at,
                     tokens_is(f->t, sign, "&&") ? "1" : "0");
    if (!m)
        return;
    m->first = at(f, first_of(f, sign, false))->at;
    m->end = end_of(f, last_of(f, sign, false));
}

/* The term behind each && or ||, and the one before the first of them. */
static void find_term(finder *f, int i)
{
    if (!is_logical(f, i))
        return;
    const int first = first_of(f, i, false), end = last_of(f, i, false);
    int last = i + 1;
    for (int k = i + 1; k <= end && !is_logical(f, k); k++) {
        if (tokens_in(f->t, k, "( [ {"))
            k = at(f, k)->partner;
        last = k;
    }
    add_term(f, i, i + 1, last);
    for (int k = i - 1; k >= first; k--) {
        if (is_logical(f, k))
            return;
        if (tokens_in(f->t, k, ") ] }"))
            k = at(f, k)->partner;
    }
    add_term(f, i, first, i - 1);
}

static void find_constant(finder *f, int i)
{
    char text[64], with[96];
    const token *t = at(f, i);
    if (t->kind != TOKEN_NUMBER || t->length >= (int)sizeof text)
        return;
    snprintf(text, sizeof text, "%.*s", t->length, f->s->text + t->at);
    const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (strpbrk(text, is_hex ? ".pP" : ".eE")) {
        snprintf(with, sizeof with, "(%s + 1)", text);
        add_in_expression(f, MISTAKE_CONSTANT, i, with, false);
        return;
    }
    char *suffix;
    errno = 0;
    const unsigned long long value = strtoull(text, &suffix, 0);
    if (errno || value == ~0ull)
        return;
    for (int more = 1; more >= 0; more--) {
        if (!more && value == 0)
            continue;
        const unsigned long long other = more ? value + 1 : value - 1;
        snprintf(with, sizeof with, is_hex ? "0x%llx%s" : "%llu%s", other, suffix);
        add_in_expression(f, MISTAKE_CONSTANT, i, with, false);
    }
}

static void find_condition(finder *f, int i)
{
    if (!tokens_in(f->t, i, "if while") || !tokens_is(f->t, i + 1, "("))
        return;
    const int first = i + 2, last = at(f, i + 1)->partner - 1;
    if (last < first)
        return;
    const int length = end_of(f, last) - at(f, first)->at;
    char *with = malloc((size_t)length + 4);
    if (!with) {
        f->no_memory = true;
        return;
    }
    sprintf(with, "!(%.*s)", length, f->s->text + at(f, first)->at);
    mistake *m = add(f, MISTAKE_CONDITION, first, at(f, first)->at, length, with);
    if (m) {
        m->first = m->at;
        m->end = m->at + m->length;
    }
    free(with);
}

/* Whether the words from i on declare something, as far as can be told without the types. */
static bool is_declaration(const finder *f, int i)
{
    if (tokens_in(f->t, i,
                  "const static extern register volatile struct union enum unsigned signed int char short "
                  "long float "
                  "double bool void size_t typedef _Alignas _Thread_local"))
        return true;
    return is_word(f, i) && (is_word(f, i + 1) || (tokens_is(f->t, i + 1, "*") && is_word(f, i + 2) &&
                                                   tokens_in(f->t, i + 3, "= ; , [")));
}

/* Whether a statement begins at i: in braces, behind what may come before one. */
static bool begins_statement(const finder *f, int i)
{
    if (!tokens_is(f->t, at(f, i)->inside, "{"))
        return false;
    return tokens_in(f->t, i - 1, "; } else do") || at(f, i)->inside == i - 1 ||
           ends_control(f, i - 1, "if for while switch");
}

/* A return at the end of a function has nothing to go on with. */
static bool may_go_on(const finder *f, int i)
{
    return !begins_function(f, at(f, i)->inside) || tokens_in(f->t, i - 1, ") else");
}

/* Macros that declare something for the rest of the block: in a block of their own they would end too early, with the switch off as well. */
static const char declaring_macros[] =
    "CALL_BEGIN CALL_BEGIN_WITH DEFAULT_ENVIRONMENT PTXVM_DEFAULT_ENVIRONMENT HR_DEFAULT_ENVIRONMENT";

static mistake_kind kind_of_statement(const finder *f, int i, int end)
{
    if (tokens_in(f->t, i, "return break continue goto"))
        return tokens_is(f->t, i, "return") && !may_go_on(f, i) ? MISTAKE_KINDS : MISTAKE_JUMP;
    if (tokens_in(f->t, i,
                  "if for while do switch case default else assert static_assert _Static_assert va_end ;") ||
        tokens_in(f->t, i, declaring_macros) || tokens_in(f->t, i + 1, ": ;") || is_declaration(f, i) ||
        (tokens_is(f->t, i, "(") && tokens_is(f->t, i + 1, "void")))
        return MISTAKE_KINDS;
    if (tokens_in(f->t, i, "{ }"))
        return MISTAKE_KINDS;
    for (int k = i; k < end; k++) {
        if (tokens_in(f->t, k, assignments) || tokens_in(f->t, k, "++ --"))
            return MISTAKE_ASSIGNMENT;
        if (tokens_in(f->t, k, "( ["))
            k = at(f, k)->partner;
    }
    return MISTAKE_CALL;
}

static void find_statement(finder *f, int i)
{
    if (!begins_statement(f, i))
        return;
    int end = i;
    while (end < f->t->count && !tokens_is(f->t, end, ";")) {
        if (tokens_in(f->t, end, ") ] }"))
            return;
        end = tokens_in(f->t, end, "( [ {") ? at(f, end)->partner + 1 : end + 1;
    }
    const mistake_kind kind = kind_of_statement(f, i, end);
    if (kind == MISTAKE_KINDS || end >= f->t->count)
        return;
    mistake *m = add(f, kind, i, at(f, i)->at, end_of(f, end) - at(f, i)->at, ";");
    if (!m)
        return;
    m->first = m->at;
    m->end = m->at + m->length;
    m->is_statement = true;
}

/* Another member that this file has seen behind . or ->: the next one in the text that has another name. The compiler tells whether the
 * struct has it, and with the same type. */
static void find_member(finder *f, int i)
{
    if (!tokens_in(f->t, i, "-> .") || !is_word(f, i + 1) || !is_value(f, i - 1) ||
        tokens_is(f->t, i + 2, "("))
        return;
    char names[3][64];
    int n_names = 0;
    for (int step = 1; step < f->t->count && n_names < 3; step++) {
        const int k = (i + step) % f->t->count;
        const token *name = k + 1 < f->t->count ? at(f, k + 1) : NULL;
        if (!tokens_in(f->t, k, "-> .") || !is_word(f, k + 1) || !is_word(f, k - 1) || name->length >= 64)
            continue;
        snprintf(names[n_names], sizeof names[0], "%.*s", name->length, f->s->text + name->at);
        bool is_new = !tokens_is(f->t, i + 1, names[n_names]);
        for (int j = 0; j < n_names; j++)
            is_new = is_new && strcmp(names[j], names[n_names]) != 0;
        /* Of the same variable, so that it is likely to be of the same struct. */
        const bool same_owner = at(f, i - 1)->length == at(f, k - 1)->length &&
                                strncmp(f->s->text + at(f, i - 1)->at, f->s->text + at(f, k - 1)->at,
                                        (size_t)at(f, i - 1)->length) == 0;
        if (is_new && same_owner)
            n_names++;
    }
    for (int j = 0; j < n_names; j++) {
        const int last = last_of(f, i + 1, false);
        add_in_expression(f, MISTAKE_MEMBER, i + 1, names[j], tokens_in(f->t, last + 1, assignments));
    }
}

static void add_swap(finder *f, int call, int a, int a_last, int b, int b_last)
{
    const int a_length = end_of(f, a_last) - at(f, a)->at, b_length = end_of(f, b_last) - at(f, b)->at;
    const char *text = f->s->text;
    if (a_length == b_length && strncmp(text + at(f, a)->at, text + at(f, b)->at, (size_t)a_length) == 0)
        return;
    char *with = malloc((size_t)(a_length + b_length) + 3);
    if (!with) {
        f->no_memory = true;
        return;
    }
    sprintf(with, "%.*s, %.*s", b_length, text + at(f, b)->at, a_length, text + at(f, a)->at);
    mistake *m = add(f, MISTAKE_ARGUMENTS, a, at(f, a)->at, end_of(f, b_last) - at(f, a)->at, with);
    if (m) {
        m->first = at(f, first_of(f, call, false))->at;
        m->end = end_of(f, last_of(f, call, false));
    }
    free(with);
}

/* Functions that may have two neighbouring arguments in either order: whether two texts are equal, and instructions of kernels that commute
 * (the order in their text is a matter of the golden tests). */
static const struct {
    const char *names;
    int first; /* of the two, from 0 */
} symmetric[] = {
    {"memcmp strcmp strncmp fmin fmax fminf fmaxf", 0},
    {"ptx_add ptx_mul ptx_min ptx_max ptx_and ptx_or ptx_xor", 1},
};

static bool is_symmetric(const finder *f, int call, int argument)
{
    for (size_t i = 0; i < sizeof symmetric / sizeof symmetric[0]; i++) {
        int n = 0;
        for (int k = call + 2; k < argument; k++) {
            if (tokens_in(f->t, k, "( [ {"))
                k = at(f, k)->partner;
            n += tokens_is(f->t, k, ",");
        }
        if (n == symmetric[i].first && tokens_in(f->t, call, symmetric[i].names))
            return true;
    }
    return false;
}

/* i is the name of a function that is called. */
static void find_arguments(finder *f, int i)
{
    if (!is_word(f, i) || !tokens_is(f->t, i + 1, "(") ||
        tokens_in(f->t, i, "if for while switch return sizeof"))
        return;
    const int end = at(f, i + 1)->partner;
    int before = -1, before_last = -1, first = i + 2;
    for (int k = first; k <= end; k++) {
        if (tokens_in(f->t, k, "( [ {")) {
            k = at(f, k)->partner;
            continue;
        }
        if (k != end && !tokens_is(f->t, k, ","))
            continue;
        if (before >= 0 && k > first && !is_symmetric(f, i, before))
            add_swap(f, i, before, before_last, first, k - 1);
        before = first;
        before_last = k - 1;
        first = k + 1;
    }
}

static void find_mistakes(finder *f)
{
    static void (*const finders[])(finder *, int) = {find_replacement, find_term,      find_constant,
                                                     find_condition,   find_statement, find_member,
                                                     find_arguments};
    for (int i = 0; i < f->t->count; i++) {
        if (f->block_of[i] < 0 || at(f, i)->inside < 0 || is_passive(f, i))
            continue;
        for (size_t k = 0; k < sizeof finders / sizeof finders[0] && !f->no_memory; k++)
            finders[k](f, i);
    }
}

bool source_read(source *s, const char *path, const char *text)
{
    *s = (source){.path = strdup(path), .text = strdup(text)};
    if (!s->path || !s->text || !tokens_read(s->text, &s->tokens))
        return false;
    finder f = {.s = s, .t = &s->tokens};
    f.block_of = malloc(((size_t)f.t->count + 1) * sizeof *f.block_of);
    f.no_memory = !f.block_of;
    if (!f.no_memory)
        find_blocks(&f);
    if (!f.no_memory)
        find_mistakes(&f);
    free(f.block_of);
    return !f.no_memory;
}

void source_free(source *s)
{
    for (int i = 0; i < s->n_mistakes; i++)
        free(s->mistakes[i].with);
    free(s->mistakes);
    free(s->blocks);
    tokens_free(&s->tokens);
    free(s->path);
    free(s->text);
    *s = (source){0};
}

/* ---- Lines, to be shown and compared ---- */

static char *in_one_line(const char *a, int a_length, const char *b, const char *c, int c_length)
{
    const size_t size = (size_t)a_length + strlen(b) + (size_t)c_length + 1;
    char *whole = malloc(size), *out = malloc(size);
    if (whole && out) {
        snprintf(whole, size, "%.*s%s%.*s", a_length, a, b, c_length, c);
        char *to = out;
        for (const char *from = whole; *from; from++)
            if (!isspace((unsigned char)*from))
                *to++ = *from;
            else if (to > out && to[-1] != ' ')
                *to++ = ' ';
        while (to > out && to[-1] == ' ')
            to--;
        *to = 0;
    }
    free(whole);
    return out;
}

static char *lines_with(const source *s, const mistake *m, const char *with)
{
    int first = m->at, end = m->at + m->length;
    while (first > 0 && s->text[first - 1] != '\n')
        first--;
    while (s->text[end] && s->text[end] != '\n')
        end++;
    return in_one_line(s->text + first, m->at - first, with, s->text + m->at + m->length,
                       end - m->at - m->length);
}

char *mistake_before(const source *s, const mistake *m)
{
    char *same = strndup(s->text + m->at, (size_t)m->length);
    char *lines = same ? lines_with(s, m, same) : NULL;
    free(same);
    return lines;
}

char *mistake_after(const source *s, const mistake *m)
{
    return lines_with(s, m, m->with);
}
