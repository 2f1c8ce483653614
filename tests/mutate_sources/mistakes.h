/* The one-line mistakes that can be made in a C file, and the blocks that show which test reaches which of them. */
#ifndef QDNN_MUTATE_SOURCES_MISTAKES_H
#define QDNN_MUTATE_SOURCES_MISTAKES_H

#include "mutate_sources/tokens.h"

#include <stdint.h>

typedef enum mistake_kind {
    MISTAKE_COMPARISON, /* < for <=, == for != */
    MISTAKE_ARITHMETIC, /* + for -, << for >>, & for | */
    MISTAKE_LOGIC,      /* && for ||, a ! left out */
    MISTAKE_TERM,       /* one term of && or || left out: a key that is too coarse, a check that is missing */
    MISTAKE_CONSTANT,   /* one more or less; true for false */
    MISTAKE_CONDITION,  /* an if or while negated */
    MISTAKE_CALL,       /* a call left out: an unlock, a free, a synchronise */
    MISTAKE_ASSIGNMENT, /* an assignment left out */
    MISTAKE_JUMP,       /* a return, break, continue or goto left out */
    MISTAKE_MEMBER,     /* another member of the same struct */
    MISTAKE_ARGUMENTS,  /* two neighbouring arguments swapped */
    MISTAKE_KINDS
} mistake_kind;

const char *mistake_kind_name(mistake_kind kind);

/* The text from `at` is replaced; what the switch chooses between is the text from `first` to before `end`. */
typedef struct mistake {
    mistake_kind kind;
    int line;
    int at, length;
    char *with;
    int first, end;
    bool is_statement; /* with its semicolon, instead of an expression */
    int block;         /* the index of the innermost block around it */
} mistake;

/* Where statements begin that are executed together: the body of a function, of an if, an else or a loop. */
typedef struct block {
    int at;      /* behind its brace */
    uint32_t id; /* from the file, the function and its number in it: the same until the function changes */
} block;

enum { BLOCK_IDS = 1 << 21 };

typedef struct source {
    char *path; /* within the project */
    char *text;
    tokens tokens;
    block *blocks;
    int n_blocks;
    mistake *mistakes;
    int n_mistakes;
} source;

/* Takes a copy of both. Returns false if the file cannot be understood (tokens_read). source_free frees it in either case. */
bool source_read(source *s, const char *path, const char *text);
void source_free(source *s);

/* The lines around the change before and after it, each as one line of single blanks; the caller frees them. */
char *mistake_before(const source *s, const mistake *m);
char *mistake_after(const source *s, const mistake *m);

#endif
