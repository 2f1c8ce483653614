/* Turns of a conversation. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct talker {
    engine *e;
    const options *o;
    tokenizer *words;
    const chat_template *form;
    view source; /* of the template */
    text system;
    token_list history; /* all tokens: guesses are taken from it */
} talker;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- guesses ---- */

/* What followed the last time that the text had its last two tokens, or its last one. */
static int64_t guess(const talker *t, int64_t most, int32_t *draft)
{
    const int32_t *ids = t->history.ids;
    const int64_t n = (int64_t)t->history.count;
    int64_t from = 0, count = 0;
    for (int64_t length = 2; length >= 1 && from == 0; length--)
        for (int64_t i = n - length - 1; i >= 0 && from == 0; i--)
            if (n > length && memcmp(ids + i, ids + n - length, (size_t)length * sizeof *ids) == 0)
                from = i + length;
    for (int64_t i = from; count < most && !tokenizer_ends(t->words, ids[i]); count++) {
        draft[count] = ids[i];
        i = i + 1 < n ? i + 1 : from;
    }
    return count;
}

/* ---- answers ---- */

/* Prints the whole characters of what is waiting. */
static void print_text(text *waiting, bool all)
{
    const size_t whole = all ? waiting->size : utf8_whole(waiting->data, waiting->size);
    fwrite(waiting->data, 1, whole, stdout);
    fflush(stdout);
    memmove(waiting->data, waiting->data + whole, waiting->size - whole);
    waiting->size -= whole;
}

enum { DRAFT_MAX = 64 };

/* Prints tokens until one ends the answer; returns how many. */
static int64_t answer(talker *t)
{
    engine *e = t->e;
    int32_t made[DRAFT_MAX] = {engine_next(e)}, draft[DRAFT_MAX];
    int64_t n = 0, ready = 1;
    text waiting = {0};
    bool ended = false;
    while (!ended && ready) {
        for (int64_t i = 0; i < ready && !ended; i++) {
            ended = tokenizer_ends(t->words, made[i]);
            if (ended)
                break;
            tokenizer_decode(t->words, made[i], false, &waiting);
            token_list_add(&t->history, made[i]);
            n++;
            if (waiting.size)
                print_text(&waiting, false);
        }
        if (ended || n >= t->o->tokens || e->at >= e->context || *e->stop)
            break;
        int64_t most = e->width - 1;
        most = most < t->o->tokens - 1 - n ? most : t->o->tokens - 1 - n;
        most = most < e->context - e->at - 1 ? most : e->context - e->at - 1;
        ready = engine_step(e, draft, guess(t, most, draft), made);
    }
    if (waiting.size)
        print_text(&waiting, true);
    text_free(&waiting);
    e->pending = !ended;
    return n;
}

static void report(const talker *t, int64_t taken, double taking, int64_t made, double making)
{
    if (t->o->quiet)
        return;
    printf("[%lld tokens of the prompt, %.2f a second; %lld of the answer", (long long)taken,
           (double)taken / taking, (long long)made);
    if (made > 1)
        printf(", %.2f a second", (double)(made - 1) / making);
    printf("%s]\n", *t->e->stop ? "; interrupted" : t->e->at >= t->e->context ? "; the context is full" : "");
}

static void add_tokens(talker *t, const char *prompt, token_list *tokens)
{
    const bool first = t->history.count == 0;
    if (!t->form) {
        tokenizer_encode(t->words, &(segment){view_of(prompt), false}, 1, first, tokens);
        return;
    }
    const view system = {t->system.data, t->system.size};
    const turn turn = template_turn(t->form, first, system, view_of(prompt), tokenizer_end_text(t->words));
    tokenizer_encode(t->words, turn.segments, turn.count, first, tokens);
}

static void take_turn(talker *t, const char *prompt)
{
    token_list tokens = {0};
    add_tokens(t, prompt, &tokens);
    if (tokens.count == 0)
        return;
    const double begin = now();
    for (size_t i = 0; i < tokens.count; i++)
        token_list_add(&t->history, tokens.ids[i]);
    const bool whole = engine_read(t->e, tokens.ids, (int64_t)tokens.count);
    const double middle = now();
    if (t->o->raw && !t->o->quiet)
        printf("%s", prompt);
    const int64_t made = whole && t->o->tokens ? answer(t) : 0;
    printf("\n");
    report(t, (int64_t)tokens.count, middle - begin, made, now() - middle);
    token_list_free(&tokens);
}

/* ---- conversations ---- */

/* A line of any length without its end; false at the end of the input, or when interrupted. */
static bool read_line(text *line)
{
    int c;
    line->size = 0;
    while ((c = getchar()) != EOF && c != '\n')
        text_add(line, &(char){(char)c}, 1);
    text_add(line, "", 0);
    return c != EOF || line->size;
}

static void take_turns(talker *t)
{
    text line = {0};
    for (;;) {
        if (!t->o->quiet)
            printf("> ");
        fflush(stdout);
        if (*t->e->stop || !read_line(&line) || *t->e->stop)
            break;
        if (line.size == 0)
            continue;
        take_turn(t, line.data);
        *t->e->stop = 0; /* Ctrl-C ended the answer, not the conversation */
        if (t->e->at >= t->e->context)
            break;
    }
    text_free(&line);
}

void talk(engine *e, qdnnFile_t file, const options *o)
{
    talker t = {.e = e, .o = o, .words = tokenizer_open(file)};
    t.source = metadata_text(file, "tokenizer.chat_template");
    if (tokenizer_count(t.words) != e->m->s.vocabulary)
        fail("the file has %d tokens, and a matrix of embeddings for %lld", tokenizer_count(t.words),
             (long long)e->m->s.vocabulary);
    t.form = o->raw ? NULL : template_find(t.source);
    if (!t.form && !o->raw)
        fprintf(stderr,
                "chat: the file has no chat template of a known form; the prompt is continued as a text\n");
    if (o->system)
        text_add(&t.system, o->system, strlen(o->system));
    else if (t.form)
        template_system(t.form, t.source, &t.system);
    if (o->prompt)
        take_turn(&t, o->prompt);
    else
        take_turns(&t);
    text_free(&t.system);
    token_list_free(&t.history);
    tokenizer_close(t.words);
}
