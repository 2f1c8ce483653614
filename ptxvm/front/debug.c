/* Directives without effect on execution: .file, .loc, .section with debug data, .pragma; and .alias. */
#include "front.h"

#include <string.h>

static uint64_t take_integer(parser *p)
{
    if (p->tok.kind != TOKEN_INT)
        parse_fail(p, PVM_ERROR_SYNTAX, "a number is needed here");
    uint64_t value = p->tok.value;
    next_token(p);
    return value;
}

/* A file name is printed in messages and reports, so it must not contain bytes that a terminal would
 * interpret. */
static const char *printable_text(parser *p, const token *t)
{
    size_t size = 4 * (size_t)t->length + 1;
    char *text = parse_alloc(p, size);
    pvm_escape(text, size, t->text, (size_t)t->length);
    return text;
}

/* .file 1 "name" [, timestamp, size]; clang writes "folder" "name". */
void parse_file(parser *p)
{
    next_token(p);
    uint64_t number = take_integer(p);
    pvm_module *m = p->module;
    if (p->tok.kind != TOKEN_STRING)
        parse_fail(p, PVM_ERROR_SYNTAX, ".file needs a name in quotes");
    token name = p->tok;
    next_token(p);
    if (p->tok.kind == TOKEN_STRING) {
        name = p->tok;
        next_token(p);
    }
    if (number < 65536) {
        if ((int)number >= m->n_files) {
            int capacity = (int)number * 2 + 8;
            const char **files = parse_alloc(p, (size_t)capacity * sizeof *files);
            if (m->n_files)
                memcpy(files, m->files, (size_t)m->n_files * sizeof *files);
            m->files = files;
            m->n_files = capacity;
        }
        m->files[number] = printable_text(p, &name);
    }
    while (accept_punct(p, ','))
        take_integer(p);
}

/* function_name label [+ n] */
static void parse_function_name(parser *p)
{
    next_token(p);
    if (p->tok.kind != TOKEN_NAME && p->tok.kind != TOKEN_WORD)
        parse_fail(p, PVM_ERROR_SYNTAX, "function_name needs a label");
    next_token(p);
    if (accept_punct(p, '+'))
        take_integer(p);
}

/* .loc file line column [, function_name label, inlined_at file line column] */
void parse_loc(parser *p)
{
    next_token(p);
    p->loc_file = (int)(take_integer(p) & 0x7fffffff);
    p->loc_line = (int)(take_integer(p) & 0x7fffffff);
    take_integer(p);
    while (accept_punct(p, ',')) {
        if (at_name(p, "function_name"))
            parse_function_name(p);
        else if (at_name(p, "inlined_at")) {
            next_token(p);
            for (int i = 0; i < 3; i++)
                take_integer(p);
        } else
            parse_fail(p, PVM_ERROR_SYNTAX, ".loc knows function_name and inlined_at only");
    }
}

/* A number, a label, a section, or a sum or difference of them. */
static void parse_datum(parser *p)
{
    do {
        if (p->tok.kind == TOKEN_NAME || p->tok.kind == TOKEN_WORD || p->tok.kind == TOKEN_INT)
            next_token(p);
        else if (!at_punct(p, '-'))
            parse_fail(p, PVM_ERROR_SYNTAX, "a number or a label is needed in a section");
    } while (accept_punct(p, '+') || accept_punct(p, '-'));
}

static void parse_section_line(parser *p)
{
    if (p->tok.kind == TOKEN_NAME) {
        next_token(p);
        expect_punct(p, ':');
        return;
    }
    if (!at_word(p, "b8") && !at_word(p, "b16") && !at_word(p, "b32") && !at_word(p, "b64"))
        parse_fail(p, PVM_ERROR_SYNTAX, "a section holds labels and .b8 .b16 .b32 .b64 data");
    next_token(p);
    do
        parse_datum(p);
    while (accept_punct(p, ','));
}

void parse_section(parser *p)
{
    next_token(p);
    if (p->tok.kind != TOKEN_WORD && p->tok.kind != TOKEN_NAME)
        parse_fail(p, PVM_ERROR_SYNTAX, ".section needs a name");
    next_token(p);
    expect_punct(p, '{');
    while (!accept_punct(p, '}')) {
        if (p->tok.kind == TOKEN_END)
            parse_fail(p, PVM_ERROR_SYNTAX, "'}' is missing at the end of the text");
        parse_section_line(p);
    }
}

void parse_pragma(parser *p)
{
    next_token(p);
    do {
        if (p->tok.kind != TOKEN_STRING)
            parse_fail(p, PVM_ERROR_SYNTAX, ".pragma needs a string");
        next_token(p);
    } while (accept_punct(p, ','));
    expect_punct(p, ';');
}

static pvm_function *take_function(parser *p)
{
    symbol *s = p->tok.kind == TOKEN_NAME ? find_symbol(p, intern(p, p->tok.text, p->tok.length)) : NULL;
    if (!s || s->kind != SYMBOL_FUNCTION || s->function->is_entry)
        parse_fail(p, PVM_ERROR_SYNTAX, ".alias needs the names of two functions");
    next_token(p);
    return s->function;
}

/* .alias name, of; : the first gets the body of the second, which is already defined. */
void parse_alias(parser *p)
{
    next_token(p);
    pvm_function *alias = take_function(p);
    expect_punct(p, ',');
    token where = p->tok;
    pvm_function *of = take_function(p);
    expect_punct(p, ';');
    if (!of->has_body || alias->has_body)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX,
                      ".alias needs a function without a body and one with");
    if (!pvm_same_signature(alias, of))
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX,
                      "'%s' has other parameters or results than '%s'", of->name, alias->name);
    pvm_function kept = *alias;
    *alias = *of;
    alias->name = kept.name;
    alias->index = kept.index;
    alias->line = kept.line;
    alias->is_weak = kept.is_weak;
    alias->is_visible = kept.is_visible;
}
