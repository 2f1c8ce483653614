/* WordPiece: lower case, punctuation separated, then the longest matching piece of the vocabulary first.
 * Letters beyond ASCII are kept, including accents. */
#include "embed.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 100 };

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("%s cannot be read; the folder of the model must have it", path);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    char *text = take(bytes + 1);
    rewind(file);
    if (fread(text, 1, bytes, file) != bytes)
        fail("%s cannot be read", path);
    fclose(file);
    return text;
}

static char **sort_words; /* for qsort, which cannot pass an argument along */

static int compare(const void *a, const void *b)
{
    return strcmp(sort_words[*(const int *)a], sort_words[*(const int *)b]);
}

vocabulary vocabulary_read(const char *folder)
{
    char path[4096];
    vocabulary v = {0};
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    v.text = read_text(path);
    for (char *c = v.text; *c; c++)
        v.count += *c == '\n';
    v.words = take(((size_t)v.count + 1) * sizeof *v.words);
    v.sorted = take(((size_t)v.count + 1) * sizeof *v.sorted);
    v.count = 0;
    for (char *line = v.text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        v.words[v.count] = line;
        v.sorted[v.count] = v.count;
        v.count++;
    }
    sort_words = v.words;
    qsort(v.sorted, (size_t)v.count, sizeof *v.sorted, compare);
    return v;
}

void vocabulary_free(vocabulary *v)
{
    free(v->text);
    free(v->words);
    free(v->sorted);
}

/* Returns -1 if there is none. */
static int find(const vocabulary *v, const char *word)
{
    for (int from = 0, to = v->count; from < to;) {
        int middle = from + (to - from) / 2, order = strcmp(word, v->words[v->sorted[middle]]);
        if (order == 0)
            return v->sorted[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return -1;
}

static int must_find(const vocabulary *v, const char *word)
{
    int found = find(v, word);
    if (found < 0)
        fail("vocab.txt has no %s", word);
    return found;
}

/* Adds the pieces of one word; if a part cannot be matched, the whole word is unknown. */
static int add_word(const vocabulary *v, const char *word, int length, int *tokens, int n)
{
    int first = n;
    for (int at = 0; at < length;) {
        char piece[WORD_MAX + 3];
        int found = -1, end = length;
        for (; end > at && found < 0; end--) {
            snprintf(piece, sizeof piece, "%s%.*s", at ? "##" : "", end - at, word + at);
            found = find(v, piece);
        }
        if (found < 0 || n == TOKENS_MAX - 1) {
            n = first;
            if (n < TOKENS_MAX - 1)
                tokens[n++] = must_find(v, "[UNK]");
            return n;
        }
        tokens[n++] = found;
        at = end + 1;
    }
    return n;
}

int tokenize(const vocabulary *v, const char *sentence, int *tokens)
{
    char word[WORD_MAX];
    int n = 0, length = 0;
    tokens[n++] = must_find(v, "[CLS]");
    for (const char *c = sentence;; c++) {
        unsigned char byte = (unsigned char)*c;
        bool apart = byte < 128 && ispunct(byte);
        if (byte && !apart && !isspace(byte)) {
            if (length < WORD_MAX)
                word[length++] = (char)(byte < 128 ? tolower(byte) : byte);
            continue;
        }
        if (length)
            n = add_word(v, word, length, tokens, n);
        length = 0;
        if (apart)
            n = add_word(v, c, 1, tokens, n);
        if (!byte)
            break;
    }
    tokens[n++] = must_find(v, "[SEP]");
    return n;
}
