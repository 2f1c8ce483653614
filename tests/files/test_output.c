/* What the qdnn command writes: whole or not at all, and nothing of the input is lost. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"
#include "tools/toolkit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILS QDNN_BINARY_DIR "/tests/doubles/libfails.so"

enum { ROWS = 8, COLUMNS = 64 };

static void check_list(const char *dir, const char *expected)
{
    process_result r = run_in(dir, "find . -mindepth 1 | LC_ALL=C sort | tr '\\n' ' '");
    CHECK_EQ_STR(r.output, expected);
    process_free(&r);
}

static void fill(float *x)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 40;
}

static bytes model(const char *metadata)
{
    float x[ROWS * COLUMNS];
    st_maker s = {0};
    fill(x);
    if (metadata)
        st_metadata(&s, metadata);
    st_add(&s, "up.weight", "F32", ROWS, COLUMNS, x, sizeof x);
    st_add(&s, "embed_tokens.weight", "F32", ROWS, COLUMNS, x, sizeof x);
    st_add(&s, "norm.weight", "F32", COLUMNS, 0, x, COLUMNS * 4);
    return st_make(&s);
}

/* ---- metadata ---- */

/* 199 bytes, then a character of two: a cut at 200 would halve it. */
#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define LONG  FIFTY FIFTY FIFTY TEN TEN TEN TEN "012345678\xC3\xA4" FIFTY "\\n{{ \xE2\x82\xAC }}"

static void add_array(gguf_maker *g, const char *key, uint32_t type, uint64_t count, const void *data,
                      size_t n)
{
    bytes value = {0};
    bytes_number(&value, type, 4);
    bytes_number(&value, count, 8);
    bytes_put(&value, data, n);
    gguf_entry(g, key, 9, value.data, value.size);
    bytes_free(&value);
}

static const struct {
    const char *key, *text; /* as safetensors has it */
} entries[] = {
    {"general.name", LONG},
    {"tokens", "[\"a\",\"\\\"\",\"\xE2\x96\x81the\",\"\"]"},
    {"scores", "[0,-1.5,0.100000001,\"-Infinity\"]"},
    {"nested", "[[-1,2],[]]"},
    {"flag", "true"},
    {"small", "-2"},
    {"large", "18446744073709551615"},
    {"empty", ""},
};

static bytes model_with_metadata(void)
{
    gguf_maker g = {0};
    bytes strings = {0}, nested = {0};
    float x[ROWS * COLUMNS];
    const float scores[] = {0, -1.5f, 0.1f, -1.0f / 0.0f};
    fill(x);
    gguf_entry_string(&g, "general.name", LONG);
    gguf_string(&strings, "a");
    gguf_string(&strings, "\"");
    gguf_string(&strings, "\xE2\x96\x81the");
    gguf_string(&strings, "");
    add_array(&g, "tokens", 8, 4, strings.data, strings.size);
    add_array(&g, "scores", 6, 4, scores, sizeof scores);
    bytes_number(&nested, 1, 4); /* i8 */
    bytes_number(&nested, 2, 8);
    bytes_number(&nested, 0x02FF, 2);
    bytes_number(&nested, 1, 4);
    bytes_number(&nested, 0, 8);
    add_array(&g, "nested", 9, 2, nested.data, nested.size);
    gguf_entry(&g, "flag", 7, "\1", 1);
    gguf_entry(&g, "small", 3, "\xFE\xFF", 2);
    gguf_entry(&g, "large", 10, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
    gguf_entry_string(&g, "empty", "");
    gguf_entry_u32(&g, "split.count", 0);
    gguf_tensor(&g, "up.weight", 0, 2, (const int64_t[]){ROWS, COLUMNS}, x, sizeof x);
    bytes_free(&strings);
    bytes_free(&nested);
    return gguf_make(&g);
}

static bool find_entry(const opened *o, const char *key, qdnnFileMetadata_t *m)
{
    for (int i = 0; !qdnnGetFileMetadata(o->file, i, m); i++)
        if (strcmp(m->key, key) == 0)
            return true;
    FAIL("no metadata '%s'", key);
    return false;
}

static void check_entries(opened *o, const char *name)
{
    qdnnFileMetadata_t m;
    if (!opened_open(o, name))
        return;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (!find_entry(o, entries[i].key, &m))
            continue;
        CHECK_EQ_STR((const char *)m.data, entries[i].text);
        CHECK_EQ_I64((int64_t)m.bytes, (int64_t)strlen(entries[i].text));
    }
    CHECK(find_entry(o, "general.name", &m) &&
          strlen(m.text) == 199); /* what is shown, in whole characters */
    qdnnCloseFile(o->file);
    o->file = NULL;
}

TEST_CASE(QdnnOutput, MetadataArePassedThroughWhole)
{
    opened o;
    qdnnFileMetadata_t m;
    opened_make(&o, model_with_metadata(), "m.gguf");
    check_command(o.dir, "qdnn quantize m.gguf a.safetensors --type int4-g32", 0, "became");
    check_command(o.dir, "qdnn convert a.safetensors b.safetensors --type f32", 0, "became");
    check_command(o.dir, "qdnn quantize m.gguf c.gguf --type q8_0", 0, "became");
    check_command(o.dir, "qdnn quantize c.gguf d.safetensors --type nf4 --requantize", 0, "became");
    check_command(o.dir, "qdnn convert a.safetensors e.gguf", 0, "became");
    check_entries(&o, "a.safetensors");
    check_entries(&o, "b.safetensors");
    check_entries(&o, "d.safetensors"); /* through GGUF, which keeps the bytes of every entry */
    if (opened_open(&o, "e.gguf") && find_entry(&o, "tokens", &m)) {
        bytes raw = {0};
        gguf_string(&raw, "tokens");
        bytes_number(&raw, 8, 4);
        gguf_string(&raw, entries[1].text);
        if (CHECK_EQ_I64((int64_t)m.bytes, (int64_t)raw.size))
            CHECK_EQ_MEM(m.data, raw.data, raw.size);
        bytes_free(&raw);
    }
    opened_close(&o);
}

/* A description that no longer holds is left out. */
TEST_CASE(QdnnOutput, OldQuantizationIsNotPassedOn)
{
    opened o;
    qdnnFileMetadata_t m;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, "qdnn quantize m.safetensors a.safetensors --type int8", 0, "became");
    check_command(o.dir, "qdnn convert a.safetensors b.safetensors --type f32", 0, "became");
    check_command(o.dir, "qdnn convert a.safetensors c.safetensors", 0, "became");
    if (opened_open(&o, "b.safetensors"))
        CHECK(qdnnGetFileMetadata(o.file, 0, &m) == QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    qdnnCloseFile(o.file);
    o.file = NULL;
    if (opened_open(&o, "c.safetensors")) /* kept as it was */
        CHECK(find_entry(&o, "quantization_config", &m));
    opened_close(&o);
}

/* GGUF may have any bytes in a string; JSON may not. */
TEST_CASE(QdnnOutput, BytesThatAreNotUtf8AreReplaced)
{
    gguf_maker g = {0};
    opened o;
    qdnnFileMetadata_t m;
    float x[ROWS * COLUMNS];
    fill(x);
    gguf_entry_string(&g, "k", "a\xFFz\xE2\x82");
    gguf_tensor(&g, "up.weight", 0, 2, (const int64_t[]){ROWS, COLUMNS}, x, sizeof x);
    opened_make(&o, gguf_make(&g), "m.gguf");
    check_command(o.dir, "qdnn quantize m.gguf a.safetensors --type int4-g32", 0,
                  "metadata 'k': 3 bytes that are not UTF-8 text were written as U+FFFD");
    if (opened_open(&o, "a.safetensors") && find_entry(&o, "k", &m))
        CHECK_EQ_STR((const char *)m.data, "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
    opened_close(&o);
}

TEST_CASE(QdnnOutput, RepeatedKeysAreDetected)
{
    opened o;
    opened_make(&o, model("{\"b\":\"1\",\"a\":\"1\",\"b\":\"1\"}"), "m.safetensors");
    check_refused(o.dir, "m.safetensors", QDNN_STATUS_BAD_PARAM, "offset 8: duplicate metadata entry 'b'");
    bytes two = st_raw("{\"__metadata__\":{\"a\":\"1\"},\"__metadata__\":{\"b\":\"1\"}}", "", 0);
    bytes_write(&two, o.dir, "two.safetensors");
    bytes_free(&two);
    check_refused(o.dir, "two.safetensors", QDNN_STATUS_BAD_PARAM,
                  "the header has two entries '__metadata__'");
    opened_close(&o);
}

/* A checkpoint of two files that repeat an entry. */
static void make_shards(opened *o)
{
    static const char *const metadata[] = {"{\"format\":\"pt\",\"x\":\"1\"}",
                                           "{\"format\":\"pt\",\"y\":\"2\"}"};
    float x[ROWS * COLUMNS];
    fill(x);
    *o = (opened){0};
    temp_dir_make(o->dir, sizeof o->dir);
    for (int i = 0; i < 2; i++) {
        st_maker s = {0};
        char tensor[32], file[32];
        snprintf(tensor, sizeof tensor, "l%d.weight", i);
        snprintf(file, sizeof file, "%d.safetensors", i);
        st_metadata(&s, metadata[i]);
        st_add(&s, tensor, "F32", ROWS, COLUMNS, x, sizeof x);
        bytes b = st_make(&s);
        bytes_write(&b, o->dir, file);
        bytes_free(&b);
    }
    text_write("{\"weight_map\":{\"l0.weight\":\"0.safetensors\",\"l1.weight\":\"1.safetensors\"}}", o->dir,
               "model.safetensors.index.json");
}

TEST_CASE(QdnnOutput, ShardsThatRepeatAnEntryGiveItOnce)
{
    opened o;
    qdnnFileInfo_t info;
    qdnnFileMetadata_t m;
    make_shards(&o);
    check_command(o.dir, "qdnn quantize . o.safetensors --type int4-g32", 0, "became");
    if (opened_open(&o, "o.safetensors") && CHECK(!qdnnGetFileInfo(o.file, &info))) {
        CHECK_EQ_I64(info.metadata, 4); /* format, x, y, quantization_config */
        CHECK(find_entry(&o, "y", &m));
    }
    opened_close(&o);
}

/* ---- the input is safe ---- */

static const struct {
    const char *name, *command;
    int status;
    const char *says;
} same_files[] = {
    {"Same", "qdnn quantize m.safetensors m.safetensors --type int8", 2,
     "m.safetensors is the input; write to another file, or replace it by --in-place"},
    {"OtherPath", "qdnn quantize m.safetensors ././m.safetensors --type int8", 2, "is the input"},
    {"HardLink", "ln m.safetensors h.safetensors && qdnn convert m.safetensors h.safetensors", 2,
     "is the input"},
    {"SymbolicLink", "ln -s m.safetensors s.safetensors && qdnn convert m.safetensors s.safetensors", 2,
     "is the input"},
    {"InputIsLink", "ln -s m.safetensors s.safetensors && qdnn convert s.safetensors m.safetensors", 2,
     "is the input"},
    {"Figures", "qdnn quantize m.safetensors o.safetensors --type int8 --json m.safetensors", 2,
     "--json would replace the input, m.safetensors"},
    {"FiguresOfInfo", "qdnn info m.safetensors --json m.safetensors", 2, "--json would replace the input"},
    {"FiguresOfBench", "qdnn bench m.safetensors --json ./m.safetensors", 2,
     "--json would replace the input"},
    {"FiguresAreOut", "qdnn quantize m.safetensors o.safetensors --type int8 --json o.safetensors", 2,
     "--json would replace the output"},
    {"Folder",
     "mkdir o.safetensors && qdnn quantize m.safetensors o.gguf/ --type int8 && qdnn convert "
     "m.safetensors o.gguf",
     2, "the folder o.gguf is not empty; write to a new one"},
    {"Pipe", "mkfifo p.gguf && qdnn convert m.safetensors p.gguf", 2,
     "p.gguf is not a file that can be replaced"},
};

TEST_ROWS(QdnnOutput, InputIsNotReplaced, same_files)
{
    opened o;
    char path[600];
    size_t before, after;
    opened_make(&o, model(NULL), "m.safetensors");
    snprintf(path, sizeof path, "%s/m.safetensors", o.dir);
    char *old = toolkit_read_file(path, &before);
    check_command(o.dir, same_files[index].command, same_files[index].status, same_files[index].says);
    char *now = toolkit_read_file(path, &after);
    if (CHECK(old && now && before == after))
        CHECK_EQ_MEM(now, old, before);
    free(old);
    free(now);
    opened_close(&o);
}

TEST_CASE(QdnnOutput, InPlaceReplacesTheInput)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, "qdnn quantize m.safetensors good.safetensors --type int8", 0, "became");
    check_command(o.dir, "qdnn quantize m.safetensors m.safetensors --type int8 --in-place", 0, "became");
    check_command(o.dir, "cmp m.safetensors good.safetensors", 0, "");
    check_list(o.dir, "./good.safetensors ./m.safetensors ");
    opened_close(&o);
    make_shards(&o);
    check_command(o.dir, "qdnn convert . 1.safetensors --in-place", 2,
                  "1.safetensors is one of the 2 files of the input; write to another");
    opened_close(&o);
}

/* Somebody else may have guessed the name of the temporary file. */
TEST_CASE(QdnnOutput, LinksAreNotFollowed)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    text_write("precious\n", o.dir, "victim");
    check_command(
        o.dir,
        "sh -c 'ln -s victim o.gguf.tmp-$$; exec qdnn quantize m.safetensors o.gguf --type q8_0' && "
        "cat victim",
        0, "precious\n");
    check_command(
        o.dir, "sh -c 'ln -s victim f.json.tmp-$$; exec qdnn info m.safetensors --json f.json' && cat victim",
        0, "precious\n");
    check_command(o.dir, "test -f o.gguf -a ! -L o.gguf && qdnn info o.gguf", 0, "Q8_0");
    opened_close(&o);
}

/* ---- a run that does nothing fails ---- */

static const struct {
    const char *name, *command;
    int status;
    const char *says;
} idle_runs[] = {
    {"NoRuleMatches", "qdnn quantize m.safetensors o.gguf --type q8_0 --tensor up=q4_0 --tensor lm_head=f16",
     1, "--tensor 'lm_head=f16' matches no weight of m.safetensors"},
    {"NoRuleMatchesInConvert", "qdnn convert m.safetensors o.gguf --tensor nothing=drop", 1,
     "--tensor 'nothing=drop' matches no weight"},
    {"DryRun", "qdnn quantize m.safetensors o.gguf --type q8_0 --tensor x=keep --dry-run", 1,
     "matches no weight"},
    {"NothingSuits", "qdnn quantize m.safetensors o.gguf --type q4_k", 1,
     "nothing to quantize in m.safetensors; up.weight, for example, is kept: the last dimension is 64"},
    {"OnlyKept", "qdnn quantize m.safetensors o.gguf --tensor .=keep", 1,
     "nothing to quantize: m.safetensors has no matrices to which a type applies"},
    {"OnlyOfInfo", "qdnn info m.safetensors --only nothing", 1,
     "--only 'nothing' matches no name in m.safetensors"},
    {"OnlyOfTensors", "qdnn info m.safetensors --tensors --only nothing", 1, "matches no name"},
    {"OnlyOfVerify", "qdnn verify m.safetensors --only nothing", 1, "matches no name"},
    {"OnlyOfBench", "qdnn bench m.safetensors --only nothing", 1,
     "has no matrices whose name matches --only"},
};

TEST_ROWS(QdnnOutput, RunsThatDoNothingFail, idle_runs)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, idle_runs[index].command, idle_runs[index].status, idle_runs[index].says);
    check_list(o.dir, "./m.safetensors ");
    opened_close(&o);
}

/* ---- folders ---- */

static void make_checkpoint(opened *o, const char *config)
{
    *o = (opened){0};
    temp_dir_make(o->dir, sizeof o->dir);
    process_result r = run_in(o->dir, "mkdir in in/sub");
    process_free(&r);
    bytes b = model(NULL);
    bytes_write(&b, o->dir, "in/model.safetensors");
    bytes_free(&b);
    text_write(config, o->dir, "in/config.json");
    text_write("tokens", o->dir, "in/tokenizer.json");
    text_write("", o->dir, "in/empty.txt");
    text_write("old", o->dir, "in/pytorch_model.bin");
    text_write("{}", o->dir, "in/quantize_config.json");
}

TEST_CASE(QdnnOutput, AFolderIsReadyForLoaders)
{
    opened o;
    make_checkpoint(&o, "{\"a\": [1, {\"b\": \"\\u00e4\\n\"}, []], \"quantization_config\": {\"old\": 1}, "
                        "\"torch_dtype\": \"float32\", \"x\": -1e-12, \"n\": null}");
    check_command(
        o.dir, "qdnn quantize in out/ --type int8 && cat out/config.json", 0,
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"\xC3\xA4\\n\"\n    },\n    []\n  ],\n  "
        "\"torch_dtype\": "
        "\"float32\",\n  \"x\": -1e-12,\n  \"n\": null,\n  \"quantization_config\": {\"quant_method\": "
        "\"compressed-tensors\", ");
    check_command(o.dir, "qdnn quantize in/model.safetensors out4 --type int8", 2, "or OUT/ (a folder)");
    check_command(o.dir, "cmp in/tokenizer.json out/tokenizer.json && qdnn info out", 0,
                  "  up.weight                                                int8 per-channel");
    check_command(o.dir, "qdnn info out", 0,
                  "  embed_tokens.weight                                      F32 ");
    /* an empty folder will do, also for the file in it; FP4 is computed in bf16 */
    check_command(
        o.dir, "mkdir out2 && qdnn quantize in/model.safetensors out2 --type nvfp4 && cat out2/config.json",
        0, "\"dtype\": \"bfloat16\",\n  \"quantization_config\": ");
    check_command(o.dir,
                  "qdnn convert out out3/ && cmp out/model.safetensors out3/model.safetensors && "
                  "cat out3/config.json",
                  0, "\"quant_method\": \"compressed-tensors\"");
    check_command(o.dir, "rm -r out2 out3 && qdnn quantize in out/ --type fp8", 2,
                  "the folder out/ is not empty; write to a new one");
    check_list(o.dir, "./in ./in/config.json ./in/empty.txt ./in/model.safetensors ./in/pytorch_model.bin "
                      "./in/quantize_config.json ./in/sub ./in/tokenizer.json ./out ./out/config.json "
                      "./out/empty.txt ./out/model.safetensors ./out/tokenizer.json ");
    opened_close(&o);
}

/* Without its configuration a loader can do nothing with it, and the user is told. */
TEST_CASE(QdnnOutput, AFolderWithoutConfiguration)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, "qdnn quantize m.safetensors out/ --type int8", 0,
                  ". has no config.json, which loaders need");
    check_list(o.dir, "./m.safetensors ./out ./out/model.safetensors ");
    opened_close(&o);
}

/* Which matrices are of Linear layers. */
static const struct {
    const char *name, *tensor, *config;
    bool quantized;
} layers[] = {
    {"Linear", "h.0.mlp.up_proj.weight", "{}", true},
    {"Embedding", "model.embed_tokens.weight", "{}", false},
    {"Positions", "embeddings.position_embeddings.weight", "{}", false},
    {"OfGpt2", "transformer.wte.weight", "{}", false},
    {"OfT5", "shared.weight", "{}", false},
    {"SharedExpert", "mlp.shared_expert.up_proj.weight", "{}", true},
    {"Head", "lm_head.weight", "{\"tie_word_embeddings\": false}", true},
    {"TiedHead", "lm_head.weight", "{\"tie_word_embeddings\": true}", false},
    {"TiedHeadOfText", "lm_head.weight", "{\"text_config\": {\"tie_word_embeddings\": true}}", false},
};

TEST_ROWS(QdnnOutput, LinearLayersAreQuantized, layers)
{
    opened o;
    st_maker s = {0};
    float x[ROWS * COLUMNS];
    fill(x);
    st_add(&s, "other.weight", "F32", ROWS, COLUMNS, x, sizeof x);
    st_add(&s, layers[index].tensor, "F32", ROWS, COLUMNS, x, sizeof x);
    st_tensor(&s, "conv.weight", "F32", 3, (const int64_t[]){ROWS, 8, COLUMNS / 8}, x, sizeof x);
    opened_make(&o, st_make(&s), "model.safetensors");
    text_write(layers[index].config, o.dir, "config.json");
    check_command(o.dir, "qdnn quantize . o.safetensors --type int8", 0, "became");
    check_command(o.dir, "qdnn info o.safetensors --json - | tr -d '\\n'", 0,
                  "\"name\": \"conv.weight\", \"format\": \"F32\"");
    char says[200];
    snprintf(says, sizeof says, "\"name\": \"%s\", \"format\": \"%s\"", layers[index].tensor,
             layers[index].quantized ? "int8 per-channel" : "F32");
    check_command(o.dir, "qdnn info o.safetensors --json -", 0, says);
    check_command(o.dir,
                  "qdnn quantize . o.safetensors --type int8 --all-matrices && qdnn info o.safetensors", 0,
                  "int8 per-channel                          3 ");
    opened_close(&o);
}

/* Words and nibbles are for matrices; bytes and bitsandbytes' blocks are for any shape. */
static const struct {
    const char *name, *type;
    bool possible;
} shapes[] = {
    {"Int4", "int4-g8", false}, {"Int4zp", "int4zp-g8", false}, {"Mxfp4", "mxfp4", false},
    {"Nvfp4", "nvfp4", false},  {"Int8", "int8", true},         {"Fp8", "fp8", true},
    {"Nf4", "nf4", true},
};

TEST_ROWS(QdnnOutput, ThreeDimensions, shapes)
{
    opened o;
    st_maker s = {0};
    char command[128];
    float x[ROWS * COLUMNS];
    fill(x);
    st_tensor(&s, "conv.weight", "F32", 3, (const int64_t[]){ROWS, 2, COLUMNS / 2}, x, sizeof x);
    opened_make(&o, st_make(&s), "m.safetensors");
    snprintf(command, sizeof command, "qdnn quantize m.safetensors o.safetensors --tensor conv=%s",
             shapes[index].type);
    check_command(o.dir, command, !shapes[index].possible,
                  shapes[index].possible ? "became"
                                         : "it has more than two dimensions, and this type is for matrices");
    if (shapes[index].possible)
        check_command(o.dir, "qdnn verify o.safetensors", 0,
                      "1 quantized weights, 512 elements: the same bits");
    opened_close(&o);
}

/* Nothing but a matrix has rows to put scales beside. */
TEST_ROWS(QdnnOutput, OneDimension, shapes)
{
    opened o;
    st_maker s = {0};
    char command[128];
    float x[ROWS * COLUMNS];
    fill(x);
    st_tensor(&s, "norm.weight", "F32", 1, (const int64_t[]){ROWS * COLUMNS}, x, sizeof x);
    opened_make(&o, st_make(&s), "m.safetensors");
    snprintf(command, sizeof command, "qdnn quantize m.safetensors o.safetensors --tensor norm=%s",
             shapes[index].type);
    check_command(o.dir, command, 1, "m.safetensors has no matrices to which a type applies");
    opened_close(&o);
}

/* What was printed before a message comes before it, also in a file that has both. */
TEST_CASE(QdnnOutput, MessagesFollowWhatWasPrinted)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, "! qdnn info m.safetensors --only nothing > both 2>&1 && cut -c 1-14 both", 0,
                  "m.safetensors:\nqdnn: --only '");
    opened_close(&o);
}

/* A report that cannot be printed is a failure, but the output is there. */
TEST_CASE(QdnnOutput, StandardOutputIsFull)
{
    opened o;
    opened_make(&o, model(NULL), "m.safetensors");
    check_command(o.dir, "qdnn quantize m.safetensors o.gguf --type q8_0 > /dev/full", 1,
                  "cannot write to standard output");
    check_command(o.dir, "qdnn info o.gguf", 0, "Q8_0");
    check_list(o.dir, "./m.safetensors ./o.gguf ");
    opened_close(&o);
}

/* bitsandbytes computes in the type that config.json names, or else in that of the plain tensors. */
TEST_CASE(QdnnOutput, BitsandbytesComputesInTheTypeOfTheModel)
{
    opened o;
    make_checkpoint(&o, "{\"torch_dtype\": \"float16\"}");
    check_command(o.dir, "qdnn quantize in out/ --type nf4 && cat out/config.json", 0,
                  "\"bnb_4bit_compute_dtype\": \"float16\"");
    check_command(
        o.dir,
        "qdnn quantize in b/ --type bf16 && echo {} > b/config.json && qdnn quantize b c/ --type fp4 && "
        "cat c/config.json",
        0, "\"bnb_4bit_compute_dtype\": \"bfloat16\"");
    opened_close(&o);
}

/* ---- with faults ---- */

#ifdef __GLIBC__
static const char *lacking(void)
{
    return *QDNN_SANITIZE ? "a sanitizer has its own allocations" : NULL;
}
#else
static const char *lacking(void)
{
    return "the faults are those of glibc";
}
#endif

#define WITH_FAULT "LD_PRELOAD=" FAILS " QDNN_FAIL="

/* A command, what is run before it, and where its output goes. */
typedef struct subject {
    const char *name, *before, *command, *out;
} subject;

static const subject sweeps[] = {
    {"Quantize", "echo old > o.safetensors", "qdnn quantize in o.safetensors --type int4-g32",
     "o.safetensors"},
    {"QuantizeToFolder", "rm -rf out", "qdnn quantize in out/ --type int8", "out/model.safetensors"},
    {"QuantizeInPlace", "cp in/model.safetensors o.safetensors",
     "qdnn quantize o.safetensors o.safetensors --type fp8 --in-place", "o.safetensors"},
    {"Convert", "echo old > o.safetensors",
     "qdnn convert in/sub/codes.safetensors o.safetensors --type int8-g32", "o.safetensors"},
    {"ConvertToGguf", "rm -f o.gguf", "qdnn convert in/sub/codes.safetensors o.gguf", "o.gguf"},
};

/* The folder with the input, and what the output is before and after a good run; before, there may be none. */
typedef struct bench {
    opened o;
    const subject *of;
    char *in, *old, *good;
    size_t in_bytes, old_bytes, good_bytes;
} bench;

static char *read_in(const bench *b, const char *name, size_t *bytes)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", b->o.dir, name);
    return toolkit_read_file(path, bytes);
}

static void bench_make(bench *b, const subject *of)
{
    *b = (bench){.of = of};
    make_checkpoint(&b->o, "{\"tie_word_embeddings\": true}");
    check_command(b->o.dir, "qdnn quantize in in/sub/codes.safetensors --type int4-g32", 0, "became");
    check_command(b->o.dir, of->before, 0, "");
    b->in = read_in(b, "in/model.safetensors", &b->in_bytes);
    b->old = read_in(b, of->out, &b->old_bytes);
    check_command(b->o.dir, of->command, 0, "became");
    b->good = read_in(b, of->out, &b->good_bytes);
    CHECK(b->in && b->good);
}

static void bench_free(bench *b)
{
    free(b->in);
    free(b->old);
    free(b->good);
    opened_close(&b->o);
}

/* The names in a folder, but for . and .. */
static int count_names(const bench *b, const char *folder)
{
    char path[600];
    int n = -2;
    snprintf(path, sizeof path, "%s%s", b->o.dir, folder);
    DIR *list = opendir(path);
    if (!CHECK(list != NULL))
        return -1;
    while (readdir(list))
        n++;
    closedir(list);
    return n;
}

static bool is_same(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a && b ? a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0 : !a && !b;
}

/* After a run: the input is intact; the output is the good one, or the old one if the run failed; nothing else is
 * left. Returns whether all of that is so. */
static bool bench_check(const bench *b, int status)
{
    size_t in_bytes = 0, bytes = 0;
    char *in = read_in(b, "in/model.safetensors", &in_bytes), *out = read_in(b, b->of->out, &bytes);
    bool good = is_same(out, bytes, b->good, b->good_bytes), old = is_same(out, bytes, b->old, b->old_bytes);
    bool ok = CHECK(is_same(in, in_bytes, b->in, b->in_bytes));
    ok = CHECK(status == 0 ? good : good || old) && ok;
    ok = CHECK(status == 0 || status == 1) && ok;
    ok = CHECK_EQ_I64(count_names(b, ""), out ? 2 : 1) && ok;
    if (out && strncmp(b->of->out, "out/", 4) == 0)
        ok = CHECK_EQ_I64(count_names(b, "/out"), 4) && ok;
    free(in);
    free(out);
    return ok;
}

/* Without these nobody knows whether the output is on the disk, even where it looks whole. */
static bool is_fatal(const char *output)
{
    static const char *const calls[] = {
        "fsync",    "close of what was written", "pwrite", "posix_fallocate", "rename", "ftruncate",
        "fdatasync"};
    const char *name = strstr(output, "fails: ");
    for (size_t i = 0; name && i < sizeof calls / sizeof calls[0]; i++)
        if (strncmp(name + strlen("fails: "), calls[i], strlen(calls[i])) == 0)
            return true;
    return false;
}

/* Each allocation or each system call of the run fails once. */
static void sweep(const bench *b, const char *kind)
{
    bool reached = true;
    int n = 0;
    while (reached && n < 5000) {
        process_result r = process_run(
            "cd %s && %s && export QDNN_DEVICE=vm && PATH=%s/qdnn:$PATH && " WITH_FAULT "%s:%d exec %s",
            b->o.dir, b->of->before, QDNN_BINARY_DIR, kind, ++n, b->of->command);
        reached = strstr(r.output, "fails: ") != NULL;
        test_push_note("%s %d: exit code %d: %s", kind, n, r.status, r.output);
        bool ok = bench_check(b, r.status) && CHECK(reached || r.status == 0);
        ok = CHECK(!is_fatal(r.output) || r.status == 1) && ok;
        ok = CHECK(r.status == 0 || strstr(r.output, "qdnn:")) && ok; /* a failure is explained */
        test_pop_note();
        process_free(&r);
        if (!ok)
            return;
    }
    CHECK(n > 20 && n < 5000);
}

TEST_ROWS(QdnnFaults, EveryAllocationFailsOnce, sweeps)
{
    bench b;
    if (lacking())
        SKIP("%s", lacking());
    bench_make(&b, &sweeps[index]);
    sweep(&b, "alloc");
    bench_free(&b);
}

TEST_ROWS(QdnnFaults, EverySystemCallFailsOnce, sweeps)
{
    bench b;
    if (lacking())
        SKIP("%s", lacking());
    bench_make(&b, &sweeps[index]);
    sweep(&b, "call");
    bench_free(&b);
}

/* A run with a fault that lasts. */
static int run_with(const bench *b, const char *fault, const char *says)
{
    char command[512];
    snprintf(command, sizeof command, "%s && " WITH_FAULT "%s %s", b->of->before, fault, b->of->command);
    process_result r = run_in(b->o.dir, command);
    int status = r.status;
    test_push_note("%s: exit code %d: %s", fault, status, r.output);
    if (says)
        CHECK_HAS(r.output, says);
    bench_check(b, status);
    test_pop_note();
    process_free(&r);
    return status;
}

TEST_CASE(QdnnFaults, DifficultFileSystemsAreWrittenCorrectly)
{
    bench b;
    if (lacking())
        SKIP("%s", lacking());
    bench_make(&b, &sweeps[0]);
    CHECK_EQ_I64(run_with(&b, "short", "fails: pwrite"), 0);
    CHECK_EQ_I64(run_with(&b, "interrupted", "fails: "), 0);
    CHECK_EQ_I64(run_with(&b, "unreserved", "fails: posix_fallocate"), 0);
    bench_free(&b);
}

/* One bit of what is written changes on its way: the file is read back and refused. */
TEST_CASE(QdnnFaults, DamageIsFoundBeforeTheRename)
{
    bench b;
    int n = 1;
    if (lacking())
        SKIP("%s", lacking());
    bench_make(&b, &sweeps[0]);
    for (; n < 100; n++) {
        char fault[32];
        snprintf(fault, sizeof fault, "damage:%d", n);
        if (run_with(&b, fault, NULL) == 0)
            break;
    }
    CHECK_EQ_I64(n,
                 7); /* the header; the codes, scales and shape of one weight; two tensors that are copied */
    bench_free(&b);
}

/* Every signal that can be caught and ends a program. */
TEST_CASE(QdnnFaults, SignalsLeaveNothingBehind)
{
    static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT,  SIGBUS,  SIGFPE,
                                  SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,   SIGTERM,  SIGXCPU, SIGXFSZ,
                                  SIGPROF, SIGIO,   SIGPWR,  SIGSYS,  SIGVTALRM, SIGSTKFLT};
    opened o;
    if (lacking())
        SKIP("%s", lacking());
    make_checkpoint(&o, "{}");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (int folder = 0; folder < 2; folder++) {
            char command[400];
            snprintf(command, sizeof command,
                     "ulimit -c 0; " WITH_FAULT "signal:%d qdnn quantize in %s --type int4-g32", numbers[i],
                     folder ? "out/" : "o.safetensors");
            check_command(o.dir, command, 128 + numbers[i], "fails: pwrite");
            process_result r = run_in(o.dir, "ls");
            CHECK_EQ_STR(r.output, "in\n");
            process_free(&r);
        }
    }
    /* what the caller ignores stays ignored */
    char command[400];
    snprintf(command, sizeof command,
             "trap '' HUP; " WITH_FAULT "signal:%d qdnn quantize in o.safetensors --type int8", SIGHUP);
    check_command(o.dir, command, 0, "became");
    opened_close(&o);
}
