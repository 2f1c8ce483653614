#include "tools/api_pages/page.h"

#include <ctype.h>
#include <string.h>

/* ---- Comments: lines without their stars ---- */

enum { LINE_MAX_LENGTH = 512 };

/* The next line of a comment, from a place in it; its length, or -1 at the end. */
static int next_line(span comment, size_t *at, char line[LINE_MAX_LENGTH])
{
    const char *end = comment.text + comment.length - 2, *p = comment.text + *at;
    if (*at == 0)
        p += 2;
    if (p >= end)
        return -1;
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop)
        stop = end;
    *at = (size_t)(stop + 1 - comment.text);
    const char *from = p;
    while (from < stop && isspace((unsigned char)*from))
        from++;
    if (from < stop && *from == '*' && p != comment.text + 2)
        p = from + 1;
    if (p < stop && *p == ' ')
        p++;
    while (stop > p && isspace((unsigned char)stop[-1]))
        stop--;
    const size_t length = (size_t)(stop - p) < LINE_MAX_LENGTH ? (size_t)(stop - p) : LINE_MAX_LENGTH - 1;
    memcpy(line, p, length);
    line[length] = 0;
    return (int)length;
}

/* Text whose stars and angles are no marks of Markdown. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '*' || *text == '<' || *text == '|' || *text == '[')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static int indent_of(const char *line)
{
    return (int)strspn(line, " ");
}

typedef enum { IN_NOTHING, IN_PARAGRAPH, IN_LIST, IN_BLOCK } place;

static place leave(FILE *out, place in)
{
    fputs(in == IN_BLOCK ? "\n```\n\n" : in == IN_NOTHING ? "" : "\n\n", out);
    return IN_NOTHING;
}

/* "  x, y   what they are": an argument. */
static void put_argument(FILE *out, const char *line)
{
    const char *name = line + indent_of(line), *gap = strstr(name, "  ");
    const int length = gap ? (int)(gap - name) : (int)strlen(name);
    fprintf(out, "- `%.*s`", length, name);
    if (gap) {
        fputs(": ", out);
        put_text(out, gap + strspn(gap, " "));
    }
}

/* Paragraphs; lines that are indented are arguments, or, after an empty line, tables and formulas that stay as they are. */
static void put_comment(FILE *out, span comment)
{
    char line[LINE_MAX_LENGTH];
    size_t at = 0;
    place in = IN_NOTHING;
    bool after_empty = false;
    for (int length; (length = next_line(comment, &at, line)) >= 0;) {
        if (length == 0) {
            after_empty = true;
            continue;
        }
        const int indent = indent_of(line);
        if (in == IN_BLOCK && indent && !after_empty) {
            fprintf(out, "\n%s", line);
        } else if (indent && after_empty) {
            if (in != IN_BLOCK) {
                leave(out, in);
                fputs("```text\n", out);
            } else {
                fputs("\n\n", out);
            }
            fputs(line, out);
            in = IN_BLOCK;
        } else if (indent == 2) {
            fputs(in == IN_LIST ? "\n" : in == IN_PARAGRAPH ? "\n\n" : "", out);
            put_argument(out, line);
            in = IN_LIST;
        } else if (indent && in == IN_LIST) {
            fputc(' ', out);
            put_text(out, line + indent);
        } else {
            if (in == IN_LIST || in == IN_BLOCK || after_empty || strncmp(line, "Returns ", 8) == 0)
                in = leave(out, in);
            fputs(in == IN_PARAGRAPH ? "\n" : "", out);
            put_text(out, line + indent);
            in = IN_PARAGRAPH;
        }
        after_empty = false;
    }
    leave(out, in);
}

/* "---- Descriptors ----", with words behind it in the same comment or not. */
static bool put_section(FILE *out, span comment)
{
    char line[LINE_MAX_LENGTH];
    size_t at = 0;
    if (next_line(comment, &at, line) < 0 || strncmp(line, "---- ", 5) != 0)
        return false;
    char *end = strstr(line + 5, " ----");
    if (end)
        *end = 0;
    fprintf(out, "## %s\n\n", line + 5);
    if (at < comment.length) {
        const span rest = {comment.text + at, comment.length - at};
        put_comment(out, rest);
    }
    return true;
}

/* ---- Declarations ---- */

/* Without what only the compiler wants: the export, and the body of an inline function. */
static void put_code(FILE *out, span d)
{
    static const char export[] = "QDNN_API ";
    const size_t width = sizeof export - 1;
    const char *text = d.text, *end = d.text + d.length;
    const bool exported = strncmp(text, export, width) == 0;
    if (exported)
        text += width;
    if (strncmp(text, "static inline ", 14) == 0) {
        end = memchr(text, '{', (size_t)(end - text));
        while (end > text && isspace((unsigned char)end[-1]))
            end--;
    }
    fputs("```c\n", out);
    for (const char *at = text; at < end; at++) {
        fputc(*at, out);
        if (*at == '\n' && exported && strspn(at + 1, " ") >= width)
            at += width; /* what follows the export moves to the left with it */
    }
    fputs(end[-1] == ';' ? "\n```\n\n" : ";\n```\n\n", out);
}

static void put_declaration(FILE *out, span declaration, const item *comment)
{
    const span name = declared_name(declaration);
    if (name.length)
        fprintf(out, "### %.*s\n\n", (int)name.length, name.text);
    if (comment)
        put_comment(out, comment->text);
    put_code(out, declaration);
}

void page_write(FILE *out, const char *name, const header *h)
{
    fprintf(out, "# qdnn/%s\n\n", name);
    fprintf(out,
            "Made from [the header](../../include/qdnn/%s) by `build/tools/reference_pages include/qdnn "
            "docs/reference`.\n\n",
            name);
    for (int i = 0; i < h->count; i++) {
        const item *at = &h->items[i], *next = i + 1 < h->count ? at + 1 : NULL;
        if (at->kind == ITEM_DECLARATION)
            put_declaration(out, at->text, NULL);
        else if (put_section(out, at->text))
            continue;
        else if (next && next->kind == ITEM_DECLARATION && next->follows)
            put_declaration(out, h->items[++i].text, at);
        else
            put_comment(out, at->text);
    }
}

void page_summary(FILE *out, const header *h)
{
    char line[LINE_MAX_LENGTH], text[4 * LINE_MAX_LENGTH] = "";
    size_t at = 0, used = 0;
    if (!h->count || h->items[0].kind != ITEM_COMMENT)
        return;
    while (used + LINE_MAX_LENGTH < sizeof text && next_line(h->items[0].text, &at, line) > 0 &&
           !strstr(text, ". "))
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", line);
    char *end = strstr(text, ". ");
    if (end)
        end[1] = 0;
    put_text(out, text);
}
