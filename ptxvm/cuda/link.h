/* Linking PTX texts into one: each text is a unit that consists of pieces, and a piece is a symbol or
 * something else. */
#ifndef PTXVM_CUDA_LINK_H
#define PTXVM_CUDA_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptxvm/module.h"

/* A range of a unit's text. */
typedef struct link_span {
    const char *at;
    size_t length;
} link_span;

typedef enum { LINK_END, LINK_WORD, LINK_NAME, LINK_NUMBER, LINK_STRING, LINK_PUNCT } link_token_kind;
typedef struct link_token { /* a word starts with a dot */
    link_token_kind kind;
    link_span text;
} link_token;
/* The next token at *at, which moves past it; white space and comments are skipped. */
link_token link_next(const char **at, const char *end);
bool link_is(link_token token, const char *text);

typedef enum { LINKAGE_LOCAL, LINKAGE_EXTERN, LINKAGE_WEAK, LINKAGE_COMMON, LINKAGE_VISIBLE } link_linkage;

/* A function or a variable at module scope, declared or defined. */
typedef struct link_symbol {
    link_span name;
    int unit;
    link_linkage linkage;
    bool is_function, is_entry, is_defined, is_initialised;
    bool is_dynamic_shared;         /* .extern .shared: each unit has its own name for the same memory */
    bool renamed;                   /* another unit has a different symbol of the same name */
    uint64_t bytes;                 /* of a variable */
    link_span prefix;               /* from after the linkage up to the name */
    link_span head;                 /* from the name up to a body, an initialiser or the end */
    link_span rest;                 /* body or initialiser */
    const struct link_symbol *kept; /* the definition that replaces this one; null: itself */
} link_symbol;

typedef struct link_piece {
    link_span other; /* copied unchanged, if symbol is -1 */
    int symbol;
} link_piece;

typedef struct link_unit {
    char *label, *text;
    int version;
    pvm_target target;
    bool debug;
    int files; /* one more than the largest number of a .file */
    link_piece *pieces;
    size_t n_pieces, piece_capacity;
    link_symbol *symbols;
    size_t n_symbols, symbol_capacity;
} link_unit;

/* Divides the unit's text into pieces (link_scan.c). Returns false if there is no memory, or it is not
 * PTX. */
bool link_scan(link_unit *unit, int number);
void link_unit_clear(link_unit *unit);

/* Joins all units into one text of at most `most` bytes, which the caller frees (link_join.c). Null: `why` tells
 * what is wrong, or that there is no memory. */
char *link_join(link_unit *units, int n, uint64_t most, char *why, size_t size);

/* The part of libcudadevrt.a that cooperative groups call (link_devrt.c); and whether an archive is that
 * library. */
extern const char link_devrt_ptx[];
bool link_is_devrt(const void *archive, size_t bytes);
/* Whether some unit declares one of those functions without defining it. */
bool link_wants_devrt(const link_unit *units, int n);

#endif
