/* Vocabularies of tests. */
#include "chat/tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY = 9, STRING = 8, I32 = 5, F32 = 6 };

static void begin_array(bytes *b, uint32_t type, uint64_t count)
{
    bytes_number(b, type, 4);
    bytes_number(b, count, 8);
}

static void end_array(gguf_maker *g, const char *key, bytes *b)
{
    gguf_entry(g, key, ARRAY, b->data, b->size);
    bytes_free(b);
}

void tiny_texts(gguf_maker *g, const char *key, const char *const *texts, int count)
{
    bytes b = {0};
    begin_array(&b, STRING, (uint64_t)count);
    for (int i = 0; i < count; i++)
        gguf_string(&b, texts[i]);
    end_array(g, key, &b);
}

/* What stands for a byte in BPE: the table that GPT-2 has, written in another way than the example's. */
static void byte_text(int byte, char *out)
{
    int c = byte;
    if (byte <= 32)
        c = 256 + byte;
    else if (byte >= 127 && byte <= 160)
        c = 256 + 33 + byte - 127;
    else if (byte == 173)
        c = 256 + 67;
    if (c < 128)
        sprintf(out, "%c", c);
    else
        sprintf(out, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 63));
}

typedef struct row {
    const char *text;
    float score; /* SPM */
} row;

/* Three special tokens, 256 bytes, then the rows. */
static void write_tokens(gguf_maker *g, const char *const special[3], void (*byte)(int byte, char *out),
                         int byte_type, const row *rows, int count)
{
    bytes texts = {0}, types = {0}, scores = {0};
    const uint64_t all = (uint64_t)(259 + count);
    begin_array(&texts, STRING, all);
    begin_array(&types, I32, all);
    begin_array(&scores, F32, all);
    for (int i = 0; i < 259 + count; i++) {
        char text[16];
        float score = i < 259 ? 0 : rows[i - 259].score;
        uint32_t bits;
        if (i >= 3 && i < 259)
            byte(i - 3, text);
        gguf_string(&texts, i < 3 ? special[i] : i < 259 ? text : rows[i - 259].text);
        bytes_number(&types, i < 3 ? 3 : i < 259 ? (uint64_t)byte_type : 1, 4);
        memcpy(&bits, &score, sizeof bits);
        bytes_number(&scores, bits, 4);
    }
    end_array(g, "tokenizer.ggml.tokens", &texts);
    end_array(g, "tokenizer.ggml.token_type", &types);
    end_array(g, "tokenizer.ggml.scores", &scores);
}

void tiny_bpe(gguf_maker *g, const char *pre)
{
    static const char *const special[3] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const row rows[8] = {{"he", 0},      {"ll", 0},       {"llo", 0}, {"hello", 0},
                                {"\u0120w", 0}, {"\u0120wo", 0}, {"12", 0},  {"\u0120\u0120", 0}};
    static const char *const merges[8] = {"h e",      "l l",       "ll o", "he llo",
                                          "\u0120 w", "\u0120w o", "1 2",  "\u0120 \u0120"};
    gguf_entry_string(g, "tokenizer.ggml.model", "gpt2");
    gguf_entry_string(g, "tokenizer.ggml.pre", pre);
    write_tokens(g, special, byte_text, 1, rows, 8);
    tiny_texts(g, "tokenizer.ggml.merges", merges, 8);
    gguf_entry_u32(g, "tokenizer.ggml.bos_token_id", TINY_IM_START);
    gguf_entry_u32(g, "tokenizer.ggml.eos_token_id", TINY_IM_END);
    gguf_entry_string(g, "tokenizer.chat_template",
                      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}");
}

static void byte_token(int byte, char *out)
{
    sprintf(out, "<0x%02X>", (unsigned)byte);
}

void tiny_spm(gguf_maker *g)
{
    static const char *const special[3] = {"<unk>", "<s>", "</s>"};
    static const row rows[11] = {{"\u2581", -1}, {"h", -2},  {"e", -3},          {"l", -4},
                                 {"o", -5},      {"he", -1}, {"\u2581he", -6},   {"ll", -2},
                                 {"llo", -7},    {"lo", -1}, {"\u2581hello", -8}};
    gguf_entry_string(g, "tokenizer.ggml.model", "llama");
    write_tokens(g, special, byte_token, 6, rows, 11);
    gguf_entry_string(g, "tokenizer.chat_template", "{{ '<|user|>\\n' + m + eos_token }} '<|assistant|>'");
}
