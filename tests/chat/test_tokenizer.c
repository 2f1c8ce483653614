/* examples/chat: from text to tokens and back, with vocabularies that are made here. */
#include "text.h"

#include "chat/tiny.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

typedef struct fixture {
    char dir[512];
    qdnnFile_t file;
    tokenizer *t;
} fixture;

static bool open_fixture(fixture *f, gguf_maker *g)
{
    char path[600];
    bytes b = gguf_make(g);
    *f = (fixture){0};
    temp_dir_make(f->dir, sizeof f->dir);
    bytes_write(&b, f->dir, "words.gguf");
    bytes_free(&b);
    snprintf(path, sizeof path, "%s/words.gguf", f->dir);
    if (!CHECK(qdnnOpenFile(path, &f->file) == QDNN_STATUS_SUCCESS))
        return false;
    f->t = tokenizer_open(f->file);
    return true;
}

static void close_fixture(fixture *f)
{
    tokenizer_close(f->t);
    qdnnCloseFile(f->file);
    temp_dir_remove(f->dir);
}

static void print_ids(const token_list *list, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < list->count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%d", i ? " " : "", list->ids[i]);
}

/* Its ids, and that they give the text back, behind `front`. */
static void check_text(const tokenizer *t, const char *words, bool markup, const char *expected,
                       const char *front)
{
    const segment s = {view_of(words), markup};
    token_list list = {0};
    text back = {0};
    char ids[512], whole[512];
    tokenizer_encode(t, &s, 1, true, &list);
    print_ids(&list, ids, sizeof ids);
    test_push_note("%s", words);
    CHECK_EQ_STR(ids, expected);
    for (size_t i = 0; i < list.count; i++)
        tokenizer_decode(t, list.ids[i], true, &back);
    snprintf(whole, sizeof whole, "%s%s", front, words);
    CHECK_EQ_STR(back.data ? back.data : "", whole);
    test_pop_note();
    token_list_free(&list);
    text_free(&back);
}

TEST_CASE(ChatTokenizer, Bpe)
{
    gguf_maker g = {0};
    fixture f;
    tiny_bpe(&g, "smollm");
    REQUIRE(open_fixture(&f, &g));
    CHECK_EQ_I64(tokenizer_count(f.t), TINY_BPE_COUNT);
    check_text(f.t, "hello", false, "262", "");
    check_text(f.t, "hell", false, "259 260", "");
    check_text(f.t, "hello world", false, "262 264 117 111 103", "");
    check_text(f.t, "12", false, "52 53", ""); /* digits are words of their own */
    check_text(f.t, "   hello", false, "266 35 262", "");
    check_text(f.t, "\u00e9\xff", false, "198 172 258", "");
    check_text(f.t, "<|im_end|>", true, "2", "");
    check_text(f.t, "a<|im_end|>hello", true, "100 2 262", "");
    /* what a user types is no special token */
    check_text(f.t, "<|im_end|>", false, "63 127 108 112 98 104 113 103 127 65", "");
    CHECK(tokenizer_ends(f.t, TINY_IM_END) && tokenizer_ends(f.t, TINY_END));
    CHECK(!tokenizer_ends(f.t, TINY_IM_START) && !tokenizer_ends(f.t, 262));
    close_fixture(&f);
}

/* A word that is a token is taken whole; a text begins with the first token, but not twice. */
TEST_CASE(ChatTokenizer, WholeWords)
{
    static const char *const tokens[] = {"<s>", "</s>", "a", "b", "ab"};
    static const char *const merges[] = {"b a"};
    gguf_maker g = {0};
    fixture f;
    const uint32_t types[] = {3, 3, 1, 1, 1};
    bytes b = {0};
    gguf_entry_string(&g, "tokenizer.ggml.model", "gpt2");
    gguf_entry_string(&g, "tokenizer.ggml.pre", "llama-bpe");
    tiny_texts(&g, "tokenizer.ggml.tokens", tokens, 5);
    tiny_texts(&g, "tokenizer.ggml.merges", merges, 1);
    bytes_number(&b, 5, 4);
    bytes_number(&b, 5, 8);
    bytes_put(&b, types, sizeof types);
    gguf_entry(&g, "tokenizer.ggml.token_type", 9, b.data, b.size);
    bytes_free(&b);
    gguf_entry_u32(&g, "tokenizer.ggml.bos_token_id", 0);
    REQUIRE(open_fixture(&f, &g));
    check_text(f.t, "ab", false, "0 4", "<s>");
    check_text(f.t, "aba", false, "0 2 3 2", "<s>");
    check_text(f.t, "<s>ab", true, "0 4", "");
    close_fixture(&f);
}

TEST_CASE(ChatTokenizer, Spm)
{
    gguf_maker g = {0};
    fixture f;
    tiny_spm(&g);
    REQUIRE(open_fixture(&f, &g));
    /* "he" and "lo" have the best score, the left one first; then the space joins, then "llo", then all */
    check_text(f.t, "hello", false, "1 269", "<s> ");
    check_text(f.t, "hel", false, "1 265 262", "<s> ");
    check_text(f.t, "he", false, "1 265", "<s> ");
    check_text(f.t, "ll o", false, "1 259 266 259 263", "<s> ");
    check_text(f.t, "z\u00e9", false, "1 259 125 198 172", "<s> ");
    check_text(f.t, "", false, "1", "<s>");
    check_text(f.t, " he</s>", true, "1 259 265 2", "<s> ");
    CHECK_EQ_I64((int64_t)tokenizer_end_text(f.t).size, 4);
    CHECK(tokenizer_adds_space(f.t));
    close_fixture(&f);
}

/* Special tokens print nothing unless asked for. */
TEST_CASE(ChatTokenizer, SpecialTokensPrintNothing)
{
    gguf_maker g = {0};
    fixture f;
    text out = {0};
    tiny_bpe(&g, "gpt-2");
    REQUIRE(open_fixture(&f, &g));
    tokenizer_decode(f.t, TINY_IM_END, false, &out);
    CHECK_EQ_I64((int64_t)out.size, 0);
    tokenizer_decode(f.t, TINY_IM_END, true, &out);
    CHECK_EQ_STR(out.data, "<|im_end|>");
    text_free(&out);
    close_fixture(&f);
}

TEST_CASE(ChatMetadata, Numbers)
{
    const float third = 0.25f;
    const uint8_t yes = 1;
    const int16_t less = -3;
    const uint64_t large = 1ull << 40;
    gguf_maker g = {0};
    fixture f;
    bytes b = {0};
    tiny_bpe(&g, "gpt-2");
    gguf_entry(&g, "f", 6, &third, 4);
    gguf_entry(&g, "b", 7, &yes, 1);
    gguf_entry(&g, "s", 3, &less, 2);
    gguf_entry(&g, "u", 10, &large, 8);
    bytes_number(&b, 4, 4);
    bytes_number(&b, 3, 8);
    for (uint64_t i = 7; i < 10; i++)
        bytes_number(&b, i, 4);
    gguf_entry(&g, "list", 9, b.data, b.size);
    bytes_free(&b);
    REQUIRE(open_fixture(&f, &g));
    CHECK(metadata_number(f.file, "f", 9) == 0.25);
    CHECK(metadata_number(f.file, "b", 9) == 1);
    CHECK(metadata_number(f.file, "s", 9) == -3);
    CHECK(metadata_number(f.file, "u", 9) == 1099511627776.0);
    CHECK(metadata_number(f.file, "none", 9) == 9);
    CHECK(metadata_number(f.file, "tokenizer.ggml.model", 9) == 9);
    CHECK(metadata_number_at(f.file, "list", 2, 0) == 9);
    CHECK(metadata_number_at(f.file, "list", 3, -1) == -1);
    CHECK(metadata_number_at(f.file, "s", 5, 0) == -3); /* one number for every layer */
    CHECK(view_is(metadata_text(f.file, "tokenizer.ggml.model"), "gpt2"));
    CHECK(metadata_text(f.file, "f").data == NULL);
    close_fixture(&f);
}
