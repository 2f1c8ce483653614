/* The tokens of a C file as its author wrote it: no preprocessing, so that every token has its place in the text. */
#ifndef QDNN_MUTATE_SOURCES_TOKENS_H
#define QDNN_MUTATE_SOURCES_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_SIGN } token_kind;

typedef struct token {
    token_kind kind;
    int at, length; /* in the text */
    int line;       /* from 1 */
    int partner;    /* of a bracket: the index of the one that it belongs to; else -1 */
    int inside;     /* the index of the innermost bracket that is open here; -1 outside all of them */
} token;

typedef struct tokens {
    const char *text;
    token *list;
    int count;
} tokens;

/* Comments and preprocessor lines are left out. Returns false if brackets do not match, as where #if gives two beginnings to one
 * block, or without memory. tokens_free frees the list, the text stays the caller's. */
bool tokens_read(const char *text, tokens *out);
void tokens_free(tokens *t);

/* Whether token i exists and is this text. */
bool tokens_is(const tokens *t, int i, const char *text);
/* Whether token i is one of these, which blanks separate. */
bool tokens_in(const tokens *t, int i, const char *list);

#endif
