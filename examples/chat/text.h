/* From text to tokens and back, as the metadata of a GGUF file describes it. Nothing here knows the device.
 *
 *   metadata.c    numbers, texts and lists of a file's metadata
 *   unicode.c     UTF-8, and the categories of characters
 *   words.c       how each tokenizer cuts a text into words, before pieces of words are looked up
 *   merge.c       pieces of a word are merged, the best pair first
 *   tokenizer.c   vocabularies: BPE and SPM, special tokens, text of tokens
 *   template.c    what stands around the words of a system, a user and an assistant */
#ifndef EXAMPLES_CHAT_TEXT_H
#define EXAMPLES_CHAT_TEXT_H

#include <qdnn/files.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory.c ---- */

/* Prints "chat: ..." and ends the program. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *take(size_t bytes); /* zeroed memory; ends the program if there is none */
void *take_more(void *memory, size_t bytes);

/* Bytes that grow; data is followed by a zero. A zeroed one is empty. */
typedef struct text {
    char *data;
    size_t size, room;
} text;
void text_add(text *t, const char *data, size_t size);
void text_print(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(text *t);

typedef struct token_list {
    int32_t *ids;
    size_t count, room;
} token_list;
void token_list_add(token_list *list, int32_t id);
void token_list_free(token_list *list);

/* ---- metadata.c ---- */

/* A string of a file, not terminated. */
typedef struct view {
    const char *data;
    size_t size;
} view;
view view_of(const char *text);
bool view_is(view v, const char *text);

/* A value of any integer, boolean or float type; the fallback where the file has none. */
double metadata_number(qdnnFile_t file, const char *key, double fallback);
/* Of a list of numbers element i, of a number itself for every i: some models have one value per layer. */
double metadata_number_at(qdnnFile_t file, const char *key, uint64_t i, double fallback);
/* {NULL, 0} where the file has none. */
view metadata_text(qdnnFile_t file, const char *key);

/* A list, read from its beginning. */
typedef struct metadata_list {
    const uint8_t *at, *end;
    uint32_t type; /* of an element, as GGUF numbers them */
    uint64_t count, next;
} metadata_list;
/* Count 0 where the file has none. */
metadata_list metadata_list_open(qdnnFile_t file, const char *key);
double metadata_list_number(metadata_list *list);
view metadata_list_text(metadata_list *list);

/* ---- unicode.c ---- */

typedef enum unicode_category {
    UNICODE_OTHER = 0, /* also separators */
    UNICODE_UPPER = 1,
    UNICODE_LOWER = 2,
    UNICODE_TITLE = 3,
    UNICODE_MODIFIER = 4,
    UNICODE_LETTER = 5, /* without case */
    UNICODE_MARK = 6,
    UNICODE_NUMBER = 7,
    UNICODE_PUNCTUATION = 8,
    UNICODE_SYMBOL = 9
} unicode_category;
unicode_category unicode_category_of(uint32_t c);
bool unicode_is_letter(uint32_t c); /* of any of the five kinds */
bool unicode_is_space(uint32_t c);

/* Reads one character of 1 to 4 bytes and returns their number. Bytes that are not UTF-8 are read one by one, as U+FFFD. */
size_t utf8_read(const char *data, size_t size, uint32_t *c);
size_t utf8_write(uint32_t c, char out[4]);
/* The bytes of a text that are whole characters: an unfinished one at its end is left out. */
size_t utf8_whole(const char *data, size_t size);

/* ---- words.c ---- */

/* How a tokenizer cuts text into words; null for a name that is not known. */
typedef struct word_rules word_rules;
const word_rules *word_rules_find(view name);
/* Whether a word that is a token is that token, whatever its merges give. */
bool word_rules_take_whole_words(const word_rules *rules);
/* Calls `word` for each part of the text in turn. */
void words_cut(const word_rules *rules, const char *data, size_t size,
               void (*word)(void *context, const char *data, size_t size), void *context);

/* ---- merge.c ---- */

typedef struct piece {
    const char *data;
    size_t size;
    int32_t id; /* -1: no token */
} piece;
/* A pair that may be merged: false if it may not. Lower ranks come first, equal ones from left to right. */
typedef bool (*merge_rank)(const void *context, const piece *left, const piece *right, double *rank,
                           int32_t *id);
/* Merges neighbouring pieces until no pair may be; returns how many are left. */
size_t merge_pieces(piece *pieces, size_t count, merge_rank rank, const void *context);

/* ---- tokenizer.c ---- */

typedef struct tokenizer tokenizer;
tokenizer *tokenizer_open(qdnnFile_t file);
void tokenizer_close(tokenizer *t);
int32_t tokenizer_count(const tokenizer *t);
/* Special tokens (<|im_start|>) are recognised in markup and are plain text elsewhere: what a user types cannot
 * end the user's turn. */
typedef struct segment {
    view text;
    bool markup;
} segment;
/* Appends the tokens of segments that follow one another; `first` puts the token in front that a text begins with. */
void tokenizer_encode(const tokenizer *t, const segment *segments, size_t count, bool first, token_list *out);
/* Appends the bytes of a token: none for special ones, unless `special`. */
void tokenizer_decode(const tokenizer *t, int32_t id, bool special, text *out);
/* The token with that very text; -1 if there is none. */
int32_t tokenizer_find(const tokenizer *t, view text);
/* Whether the token ends an answer. */
bool tokenizer_ends(const tokenizer *t, int32_t id);
view tokenizer_end_text(const tokenizer *t); /* of the token that ends a text: "</s>" */
/* Whether a text begins with a space that was not written. */
bool tokenizer_adds_space(const tokenizer *t);

/* ---- template.c ---- */

typedef struct chat_template chat_template;
/* Recognises the template of a file (tokenizer.chat_template, or the name of one: "chatml"); null if it does not. */
const chat_template *template_find(view source);
const char *template_name(const chat_template *form);
const char *template_name_at(int index); /* null past the last */
/* The words of a system that the template itself has, for conversations without any; empty if it has none. */
void template_system(const chat_template *form, view source, text *out);

/* A turn with what stands around it; the texts are those of the template and of the caller. */
enum { TURN_SEGMENTS_MAX = 24 };
typedef struct turn {
    segment segments[TURN_SEGMENTS_MAX];
    size_t count;
} turn;
/* The next words of the user, with the beginning of the answer: behind the system's for the first turn, else behind the end of the
 * answer before. `end` is the token that ends a text. */
turn template_turn(const chat_template *form, bool first, view system, view user, view end);

#endif
