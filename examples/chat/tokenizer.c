/* Vocabularies of GGUF files. BPE ("gpt2") works on the bytes of words, each byte written as a printable character, and merges by a
 * list of pairs; SPM ("llama") works on characters of the whole text, its spaces written as U+2581, and merges by the scores of what
 * comes out. */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As GGUF numbers them. */
typedef enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
} token_type;

typedef struct token {
    view text;
    double score;
    token_type type;
} token;

typedef struct merge {
    int32_t left, right, result;
    uint32_t rank; /* 0: this slot is empty */
} merge;

struct tokenizer {
    token *tokens;
    int32_t count;
    int32_t *slots; /* hashes of texts to token + 1; 0: empty */
    size_t n_slots; /* a power of two */
    merge *merges;  /* hashes of pairs */
    size_t n_merges;
    int32_t *special, n_special; /* longest text first */
    const word_rules *rules;     /* of BPE; null: SPM */
    uint32_t characters[256];    /* that stand for bytes in texts of BPE */
    int32_t byte_ids[256];       /* the token of each byte; -1: none */
    int32_t first, end, unknown; /* tokens; -1: none */
    bool adds_first, adds_space, *ends;
};

static const char space_mark[] = "\u2581";

/* ---- looking up ---- */

static uint64_t hash_bytes(const char *data, size_t size)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

static size_t slots_for(uint64_t count)
{
    size_t n = 64;
    while (n < 2 * count)
        n *= 2;
    return n;
}

int32_t tokenizer_find(const tokenizer *t, view text)
{
    for (size_t i = hash_bytes(text.data, text.size) & (t->n_slots - 1);; i = (i + 1) & (t->n_slots - 1)) {
        int32_t id = t->slots[i] - 1;
        if (id < 0)
            return -1;
        if (t->tokens[id].text.size == text.size &&
            memcmp(t->tokens[id].text.data, text.data, text.size) == 0)
            return id;
    }
}

static void index_text(tokenizer *t, int32_t id)
{
    const view *text = &t->tokens[id].text;
    size_t i = hash_bytes(text->data, text->size) & (t->n_slots - 1);
    while (t->slots[i])
        i = (i + 1) & (t->n_slots - 1);
    t->slots[i] = id + 1;
}

static merge *merge_slot(const tokenizer *t, int32_t left, int32_t right)
{
    const int32_t pair[2] = {left, right};
    size_t i = hash_bytes((const char *)pair, sizeof pair) & (t->n_merges - 1);
    while (t->merges[i].rank && (t->merges[i].left != left || t->merges[i].right != right))
        i = (i + 1) & (t->n_merges - 1);
    return &t->merges[i];
}

/* ---- opening ---- */

static void read_tokens(tokenizer *t, qdnnFile_t file)
{
    metadata_list texts = metadata_list_open(file, "tokenizer.ggml.tokens"),
                  scores = metadata_list_open(file, "tokenizer.ggml.scores"),
                  kinds = metadata_list_open(file, "tokenizer.ggml.token_type");
    if (texts.count == 0 || texts.count > INT32_MAX / 2)
        fail("the file has no vocabulary (tokenizer.ggml.tokens)");
    t->count = (int32_t)texts.count;
    t->tokens = take((size_t)t->count * sizeof *t->tokens);
    t->n_slots = slots_for(texts.count);
    t->slots = take(t->n_slots * sizeof *t->slots);
    for (int32_t i = 0; i < t->count; i++) {
        t->tokens[i].text = metadata_list_text(&texts);
        t->tokens[i].score = metadata_list_number(&scores);
        t->tokens[i].type = kinds.count ? (token_type)metadata_list_number(&kinds) : TOKEN_NORMAL;
        if (!t->tokens[i].text.data)
            fail("tokenizer.ggml.tokens is not a list of strings");
        if (tokenizer_find(t, t->tokens[i].text) < 0)
            index_text(t, i);
    }
}

/* "left right": both and what they make must be tokens, else no word can use the line. */
static void read_merge(tokenizer *t, view line, uint32_t rank)
{
    const char *blank = line.size > 1 ? memchr(line.data + 1, ' ', line.size - 1) : NULL;
    if (!blank)
        return;
    view left = {line.data, (size_t)(blank - line.data)}, right = {blank + 1, line.size - left.size - 1};
    text both = {0};
    text_add(&both, left.data, left.size);
    text_add(&both, right.data, right.size);
    merge m = {tokenizer_find(t, left), tokenizer_find(t, right),
               tokenizer_find(t, (view){both.data, both.size}), rank};
    text_free(&both);
    if (m.left < 0 || m.right < 0 || m.result < 0)
        return;
    merge *slot = merge_slot(t, m.left, m.right);
    if (!slot->rank)
        *slot = m;
}

static void read_merges(tokenizer *t, qdnnFile_t file)
{
    metadata_list lines = metadata_list_open(file, "tokenizer.ggml.merges");
    if (lines.count == 0 || lines.count > UINT32_MAX / 2)
        fail("the file has no merges (tokenizer.ggml.merges)");
    t->n_merges = slots_for(lines.count);
    t->merges = take(t->n_merges * sizeof *t->merges);
    for (uint32_t rank = 1; rank <= lines.count; rank++)
        read_merge(t, metadata_list_text(&lines), rank);
}

/* In texts of BPE a byte is written as itself where it is printable, else as the next character from U+0100 on. */
static void choose_characters(uint32_t characters[256])
{
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b > ' ' && b < 127) || (b > 160 && b != 173);
        characters[b] = printable ? b : next++;
    }
}

static void find_bytes(tokenizer *t)
{
    choose_characters(t->characters);
    for (int b = 0; b < 256; b++) {
        char text[8];
        size_t size;
        if (t->rules)
            size = utf8_write(t->characters[b], text);
        else
            size = (size_t)snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        t->byte_ids[b] = tokenizer_find(t, (view){text, size});
    }
}

static const token *sort_tokens; /* for qsort, which cannot pass an argument along */

static int compare_special(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    size_t p = sort_tokens[x].text.size, q = sort_tokens[y].text.size;
    return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static void find_special(tokenizer *t)
{
    t->special = take((size_t)t->count * sizeof *t->special);
    for (int32_t i = 0; i < t->count; i++)
        if ((t->tokens[i].type == TOKEN_CONTROL || t->tokens[i].type == TOKEN_USER_DEFINED ||
             t->tokens[i].type == TOKEN_UNKNOWN) &&
            t->tokens[i].text.size > 0)
            t->special[t->n_special++] = i;
    sort_tokens = t->tokens;
    qsort(t->special, (size_t)t->n_special, sizeof *t->special, compare_special);
}

static int32_t token_number(const tokenizer *t, qdnnFile_t file, const char *key, double fallback)
{
    double id = metadata_number(file, key, fallback);
    return id >= 0 && id < t->count ? (int32_t)id : -1;
}

/* Tokens that end an answer: those that the file names, and those that models are known to end with. */
static void find_ends(tokenizer *t, qdnnFile_t file)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    static const char *const names[] = {
        "<|im_end|>",      "<|eot_id|>", "<|eom_id|>",
        "<|endoftext|>",   "<|end|>",    "<end_of_turn>",
        "<|end_of_text|>", "</s>",       "<|END_OF_TURN_TOKEN|>",
        "<|eot|>",         "<EOT>",      "<\uff5cend\u2581of\u2581sentence\uff5c>"};
    t->ends = take((size_t)t->count * sizeof *t->ends);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int32_t id = token_number(t, file, keys[i], -1);
        if (id >= 0)
            t->ends[id] = true;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int32_t id = tokenizer_find(t, view_of(names[i]));
        if (id >= 0 && (t->tokens[id].type == TOKEN_CONTROL || t->tokens[id].type == TOKEN_USER_DEFINED))
            t->ends[id] = true;
    }
}

static void choose_rules(tokenizer *t, qdnnFile_t file)
{
    view model = metadata_text(file, "tokenizer.ggml.model"),
         name = metadata_text(file, "tokenizer.ggml.pre");
    if (view_is(model, "llama"))
        return;
    if (!view_is(model, "gpt2"))
        fail("tokenizer.ggml.model is '%.*s'; known are gpt2 (BPE) and llama (SPM)", (int)model.size,
             model.data ? model.data : "");
    t->rules = word_rules_find(name.data ? name : view_of("default"));
    if (!t->rules)
        fail("tokenizer.ggml.pre is '%.*s', whose rules are not known; a row of words.c would add them",
             (int)name.size, name.data);
}

tokenizer *tokenizer_open(qdnnFile_t file)
{
    tokenizer *t = take(sizeof *t);
    choose_rules(t, file);
    read_tokens(t, file);
    if (t->rules)
        read_merges(t, file);
    find_bytes(t);
    find_special(t);
    find_ends(t, file);
    bool spm = !t->rules, begins = spm || word_rules_take_whole_words(t->rules);
    t->first = token_number(t, file, "tokenizer.ggml.bos_token_id", spm ? 1 : -1);
    t->end = token_number(t, file, "tokenizer.ggml.eos_token_id", spm ? 2 : -1);
    t->unknown = token_number(t, file, "tokenizer.ggml.unknown_token_id", spm ? 0 : -1);
    t->adds_first = metadata_number(file, "tokenizer.ggml.add_bos_token", begins) != 0 && t->first >= 0;
    t->adds_space = spm && metadata_number(file, "tokenizer.ggml.add_space_prefix", 1) != 0;
    return t;
}

void tokenizer_close(tokenizer *t)
{
    if (!t)
        return;
    free(t->tokens);
    free(t->slots);
    free(t->merges);
    free(t->special);
    free(t->ends);
    free(t);
}

int32_t tokenizer_count(const tokenizer *t)
{
    return t->count;
}

bool tokenizer_ends(const tokenizer *t, int32_t id)
{
    return t->ends[id];
}

view tokenizer_end_text(const tokenizer *t)
{
    return t->end >= 0 ? t->tokens[t->end].text : (view){"", 0};
}

bool tokenizer_adds_space(const tokenizer *t)
{
    return t->adds_space;
}

/* ---- encoding ---- */

typedef struct encoder {
    const tokenizer *t;
    token_list *out;
    text plain;         /* text since the last special token */
    bool after_special; /* it begins the text, or follows a special token */
} encoder;

static bool rank_of_merge(const void *context, const piece *left, const piece *right, double *rank,
                          int32_t *id)
{
    if (left->id < 0 || right->id < 0)
        return false;
    const merge *m = merge_slot(context, left->id, right->id);
    *rank = m->rank;
    *id = m->result;
    return m->rank != 0;
}

static bool rank_of_score(const void *context, const piece *left, const piece *right, double *rank,
                          int32_t *id)
{
    const tokenizer *t = context;
    *id = tokenizer_find(t, (view){left->data, left->size + right->size});
    if (*id < 0)
        return false;
    *rank = -t->tokens[*id].score;
    return true;
}

/* A piece that is no token: its bytes, where the vocabulary has them. */
static void add_bytes(encoder *e, const piece *p)
{
    for (size_t i = 0; i < p->size; i++) {
        int32_t id = e->t->byte_ids[(unsigned char)p->data[i]];
        id = id < 0 || e->t->rules ? e->t->unknown : id;
        if (id >= 0)
            token_list_add(e->out, id);
    }
}

/* Cuts into characters, merges them, and adds what comes out. */
static void add_pieces(encoder *e, const text *word, merge_rank rank)
{
    piece *pieces = take((word->size + 1) * sizeof *pieces);
    size_t count = 0;
    for (size_t at = 0; at < word->size; count++) {
        uint32_t c;
        pieces[count].data = word->data + at;
        pieces[count].size = utf8_read(word->data + at, word->size - at, &c);
        pieces[count].id = tokenizer_find(e->t, (view){pieces[count].data, pieces[count].size});
        at += pieces[count].size;
    }
    count = merge_pieces(pieces, count, rank, e->t);
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].id >= 0)
            token_list_add(e->out, pieces[i].id);
        else
            add_bytes(e, &pieces[i]);
    }
    free(pieces);
}

static void add_word(void *context, const char *data, size_t size)
{
    encoder *e = context;
    text word = {0};
    for (size_t i = 0; i < size; i++) {
        char c[4];
        text_add(&word, c, utf8_write(e->t->characters[(unsigned char)data[i]], c));
    }
    int32_t whole =
        word_rules_take_whole_words(e->t->rules) ? tokenizer_find(e->t, (view){word.data, word.size}) : -1;
    if (whole >= 0)
        token_list_add(e->out, whole);
    else
        add_pieces(e, &word, rank_of_merge);
    text_free(&word);
}

static void add_spm(encoder *e)
{
    text marked = {0};
    if (e->t->adds_space && e->after_special)
        text_add(&marked, space_mark, 3);
    for (size_t i = 0; i < e->plain.size; i++) {
        if (e->plain.data[i] == ' ')
            text_add(&marked, space_mark, 3);
        else
            text_add(&marked, e->plain.data + i, 1);
    }
    add_pieces(e, &marked, rank_of_score);
    text_free(&marked);
}

static void add_plain(encoder *e)
{
    if (e->plain.size == 0)
        return;
    if (e->t->rules)
        words_cut(e->t->rules, e->plain.data, e->plain.size, add_word, e);
    else
        add_spm(e);
    e->plain.size = 0;
    e->after_special = false;
}

/* The longest special token that the text begins with; -1: none. */
static int32_t special_at(const tokenizer *t, const char *data, size_t size, bool markup)
{
    for (int32_t i = 0; i < t->n_special; i++) {
        const token *k = &t->tokens[t->special[i]];
        if (k->text.size <= size && (markup || k->type == TOKEN_USER_DEFINED) &&
            memcmp(k->text.data, data, k->text.size) == 0)
            return t->special[i];
    }
    return -1;
}

void tokenizer_encode(const tokenizer *t, const segment *segments, size_t count, bool first, token_list *out)
{
    encoder e = {.t = t, .out = out, .after_special = true};
    if (first && t->adds_first)
        token_list_add(out, t->first);
    for (size_t s = 0; s < count; s++) {
        const view v = segments[s].text;
        for (size_t at = 0; at < v.size;) {
            int32_t id = special_at(t, v.data + at, v.size - at, segments[s].markup);
            if (id < 0) {
                text_add(&e.plain, v.data + at++, 1);
                continue;
            }
            add_plain(&e);
            bool again = first && out->count == 1 && t->adds_first && id == t->first;
            if (!again) /* the template wrote the token that was put in front */
                token_list_add(out, id);
            e.after_special = true;
            at += t->tokens[id].text.size;
        }
    }
    add_plain(&e);
    text_free(&e.plain);
}

/* ---- decoding ---- */

/* The byte that a character of BPE stands for; -1: none. */
static int byte_of(const tokenizer *t, uint32_t c)
{
    for (int b = 0; b < 256; b++)
        if (t->characters[b] == c)
            return b;
    return -1;
}

static void decode_bpe(const tokenizer *t, view v, text *out)
{
    for (size_t at = 0; at < v.size;) {
        uint32_t c;
        size_t size = utf8_read(v.data + at, v.size - at, &c);
        int byte = byte_of(t, c);
        char raw = (char)byte;
        if (byte >= 0)
            text_add(out, &raw, 1);
        else
            text_add(out, v.data + at, size);
        at += size;
    }
}

static void decode_spm(view v, text *out)
{
    for (size_t at = 0; at < v.size;) {
        bool space = v.size - at >= 3 && memcmp(v.data + at, space_mark, 3) == 0;
        text_add(out, space ? " " : v.data + at, 1);
        at += space ? 3 : 1;
    }
}

void tokenizer_decode(const tokenizer *t, int32_t id, bool special, text *out)
{
    const token *k = &t->tokens[id];
    if (k->type == TOKEN_CONTROL || k->type == TOKEN_UNKNOWN) {
        if (special)
            text_add(out, k->text.data, k->text.size);
    } else if (k->type == TOKEN_USER_DEFINED)
        text_add(out, k->text.data, k->text.size);
    else if (t->rules)
        decode_bpe(t, k->text, out);
    else if (k->type == TOKEN_BYTE && k->text.size == 6) {
        char byte = (char)strtol((char[3]){k->text.data[3], k->text.data[4], 0}, NULL, 16);
        text_add(out, &byte, 1);
    } else
        decode_spm(k->text, out);
}
