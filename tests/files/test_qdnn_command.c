/* The qdnn command, run as its users run it. */
#include "files/opened.h"
#include "formats/gguf_vectors.h"
#include "host_ref/host_ref.h"
#include "support/process.h"
#include "test.h"
#include "tools/toolkit.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QDNN QDNN_BINARY_DIR "/qdnn/qdnn"
enum { ROWS = 32, COLUMNS = 256, ELEMENTS = ROWS * COLUMNS };

/* In the folder, on ptxvm. */
static process_result run(const char *dir, const char *arguments)
{
    /* --gpu starts NVIDIA's tools, which leak */
    const char *leaks = strstr(arguments, "--gpu") ? "" : QDNN_FIND_LEAKS;
    return process_run("cd %s && QDNN_DEVICE=vm %s%s %s", dir, leaks, QDNN, arguments);
}

static void check_qdnn(const char *dir, const char *arguments, int status, const char *says)
{
    char command[512];
    snprintf(command, sizeof command, "qdnn %s", arguments);
    check_command(dir, command, status, says);
}

static void fill_values(float *x, int n)
{
    uint32_t seed = 12345;
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) / 16777216.0f - 0.5f) * (i % 100 == 7 ? 3.0f : 1.0f);
    }
}

/* A matrix, a vector, a matrix of odd rows, and integers; and perhaps an embedding. */
static bytes model(bool embeds)
{
    static float x[ELEMENTS];
    st_maker s = {0};
    const int64_t ids[2] = {3, 4};
    fill_values(x, ELEMENTS);
    st_metadata(&s, "{\"format\":\"pt\"}");
    st_add(&s, "layers.0.up.weight", "F32", ROWS, COLUMNS, x, sizeof x);
    st_add(&s, "layers.0.norm.weight", "F32", COLUMNS, 0, x, COLUMNS * 4);
    st_add(&s, "layers.0.odd.weight", "F32", 3, 5, x, 60);
    st_add(&s, "ids", "I64", 2, 0, ids, sizeof ids);
    if (embeds)
        st_add(&s, "embed_tokens.weight", "F32", 2, COLUMNS, x, 2 * COLUMNS * 4);
    return st_make(&s);
}

static void make_model(opened *o)
{
    opened_make(o, model(false), "m.safetensors");
}

/* ---- the command line ---- */

TEST_CASE(QdnnCommand, HelpAndVersion)
{
    check_qdnn(".", "--help", 0, "usage: qdnn info FILE");
    check_qdnn(".", "quantize -h", 0, "int4-gSIZE");
    check_qdnn(".", "--version", 0, "qdnn " QDNN_PROJECT_VERSION "\n");
}

static const struct {
    const char *name, *arguments;
    int status;
    const char *says;
} usages[] = {
    {"Nothing", "", 2,
     "no command; there are info, verify, quantize, convert and bench (qdnn --help shows examples)"},
    {"Unknown", "inform m.safetensors", 2, "unknown command 'inform'; did you mean 'info'?"},
    {"NoFile", "info", 2, "info needs a file"},
    {"NoOut", "quantize m.safetensors --type q4_0", 2, "quantize needs a second file, to write to"},
    {"TooMany", "info a b", 2, "'b' is one file too many"},
    {"TooManyFiles", "convert a b c", 2, "'c' is one file too many"},
    {"NoType", "quantize m.safetensors o.gguf", 2, "quantize needs --type, or --tensor REGEX=TYPE"},
    {"WrongOption", "info m.safetensors --type q4_0", 2, "--type is not for info"},
    {"WrongOptionVerify", "verify m.safetensors --dry-run", 2, "--dry-run is not for verify"},
    {"OptionTypo", "info m.safetensors --onyl x", 2, "did you mean '--only'?"},
    {"TypeTypo", "quantize m.safetensors o.gguf --type q4_O", 2, "unknown type 'q4_O'; did you mean 'q4_0'?"},
    {"TypeOfOther", "quantize m.safetensors o.gguf --type int4-g32", 2,
     "the type 'int4-g32' cannot be stored in GGUF; write to OUT.safetensors"},
    {"TypeOfOther2", "quantize m.safetensors o.safetensors --type q4_0", 2,
     "cannot be stored in safetensors; write to OUT.gguf"},
    {"GroupOfZero", "quantize m.safetensors o.safetensors --type int4-g0", 2,
     "is not of the form int4-gSIZE"},
    {"GroupWithTail", "quantize m.safetensors o.safetensors --type int4-g32x", 2,
     "is not of the form int4-gSIZE"},
    {"FixedGroup", "quantize m.safetensors o.gguf --type q4_0-g64", 2, "has groups of its own; write q4_0"},
    {"GgufNvfp4", "quantize m.safetensors o.gguf --type nvfp4", 2,
     "there is no quantization to nvfp4 in GGUF"},
    {"OutKind", "quantize m.safetensors o.bin --type q4_0", 2,
     "cannot tell the kind of 'o.bin'; name it OUT.gguf, OUT.safetensors or OUT/ (a folder)"},
    {"Rule", "quantize m.safetensors o.gguf --tensor up", 2, "--tensor takes REGEX=TYPE, not 'up'"},
    {"RuleRegex", "quantize m.safetensors o.gguf --tensor '(=q4_0'", 2, "'(' is not a regular expression"},
    {"OnlyRegex", "info m.safetensors --only '['", 2, "'[' is not a regular expression"},
    {"Missing", "info none.gguf", 1, "none.gguf: cannot be read: No such file or directory"},
    {"CannotBecome", "quantize m.safetensors o.gguf --tensor odd=q4_0", 1,
     "layers.0.odd.weight cannot become q4_0: the last dimension is 5"},
    {"NameOfScales", "quantize m.safetensors o.safetensors --tensor 'odd=nvfp4'", 1,
     "cannot become nvfp4: its rows are not a multiple of the group size"},
    {"Device", "verify m.safetensors --device moon", 1, "moon"},
    {"Board", "bench m.safetensors --gpu a1", 2, "--gpu takes a board, not 'a1': t4, "},
    {"BoardOrDevice", "bench m.safetensors --gpu A100 --device vm", 2,
     "--gpu models a board, --device measures a device: choose one of them"},
    {"BoardOfOther", "verify m.safetensors --gpu a100", 2, "--gpu is not for verify"},
    {"NoFolder", "quantize m.safetensors none/o.gguf --type q4_0", 1, "cannot write none/o.gguf.tmp-"},
};

TEST_ROWS(QdnnCommand, Mistakes, usages)
{
    opened o;
    make_model(&o);
    check_qdnn(o.dir, usages[index].arguments, usages[index].status, usages[index].says);
    process_result left = process_run("ls %s", o.dir); /* no partial output is left */
    CHECK_EQ_STR(left.output, "m.safetensors\n");
    process_free(&left);
    opened_close(&o);
}

/* Every line of the examples is understood; their files are made first. */
TEST_CASE(QdnnCommand, TheExamplesOfTheHelpRun)
{
    opened o;
    int n = 0;
    opened_make(&o, model(true), "m.safetensors");
    process_result r =
        process_run("cd %s && mkdir model-awq model-gptq && cp m.safetensors model-awq/model.safetensors && "
                    "cp m.safetensors model-gptq/model.safetensors && cp m.safetensors model.safetensors && "
                    "QDNN_DEVICE=vm %s quantize m.safetensors model.gguf --type q8_0",
                    o.dir, QDNN);
    CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    process_result help = process_run("%s --help", QDNN);
    char *line = strstr(help.output, "examples:\n");
    for (line = line ? strchr(line, '\n') + 1 : NULL; line && strncmp(line, "  qdnn ", 7) == 0; n++) {
        char *end = strchr(line, '\n');
        *end = 0;
        r = process_run("cd %s && QDNN_DEVICE=vm PATH=%s/qdnn:$PATH %s", o.dir, QDNN_BINARY_DIR, line);
        if (!CHECK_EQ_I64(r.status, 0))
            FAIL("%s\n%s", line, r.output);
        process_free(&r);
        line = end + 1;
    }
    CHECK_EQ_I64(n, 6);
    process_free(&help);
    opened_close(&o);
}

/* ---- info ---- */

TEST_CASE(QdnnCommand, InfoListsAndAddsUp)
{
    opened o;
    make_model(&o);
    check_qdnn(o.dir, "info m.safetensors", 0, "m.safetensors: safetensors, ");
    check_qdnn(o.dir, "info m.safetensors", 0, "  format: pt\n");
    check_qdnn(o.dir, "info m.safetensors", 0,
               "  layers.0.up.weight                                       F32                          [32, "
               "256]               32.8 KB\n");
    check_qdnn(o.dir, "info m.safetensors", 0,
               "  F32                                       3           8463      33.9 KB     32.000\n"
               "  all                                       3           8463      33.9 KB     32.000\n");
    check_qdnn(o.dir, "info m.safetensors --tensors --only ids", 0,
               "I64        [2]                        16 B  at 3");
    check_qdnn(o.dir, "info m.safetensors --only odd", 0,
               "  all                                       1             15         60 B");
    process_result r = run(o.dir, "info m.safetensors --json -");
    json_error error;
    json *doc = json_parse(r.output, r.length, &error);
    if (CHECK(doc != NULL)) {
        uint64_t n = 0;
        CHECK_EQ_STR(json_string(json_root(doc), "kind"), "safetensors");
        CHECK_EQ_STR(json_string(json_root(doc), "weights.0.name"), "layers.0.up.weight");
        CHECK_EQ_STR(json_string(json_root(doc), "weights.0.weights"), "f32");
        CHECK(json_u64(json_root(doc), "weights.0.shape.1", &n) && n == COLUMNS);
    }
    json_free(doc);
    process_free(&r);
    opened_close(&o);
}

/* ---- quantize, info, verify ---- */

static const struct {
    const char *name, *out;
    const char *format; /* as info says it */
    double least_sqnr;  /* in dB, of these values */
    int quantized;      /* weights: the small one of odd rows fits few types */
} types[] = {
    {"f16", "o.gguf", "F16", 60, 0},
    {"bf16", "o.safetensors", "BF16", 40, 0},
    {"f32", "o.gguf", "F32", 1e9, 0},
    {"q4_0", "o.gguf", "Q4_0", 17, 1},
    {"q4_1", "o.gguf", "Q4_1", 19, 1},
    {"q5_0", "o.gguf", "Q5_0", 23, 1},
    {"q5_1", "o.gguf", "Q5_1", 25, 1},
    {"q8_0", "o.gguf", "Q8_0", 40, 1},
    {"q2_k", "o.gguf", "Q2_K", 5, 1},
    {"q3_k", "o.gguf", "Q3_K", 10, 1},
    {"q4_k", "o.gguf", "Q4_K", 15, 1},
    {"q5_k", "o.gguf", "Q5_K", 20, 1},
    {"q6_k", "o.gguf", "Q6_K", 25, 1},
    {"tq1_0", "o.gguf", "TQ1_0", 0, 1},
    {"tq2_0", "o.gguf", "TQ2_0", 0, 1},
    {"q1_0", "o.gguf", "Q1_0", 0, 1},
    {"q2_0", "o.gguf", "Q2_0", 0, 1},
    {"mxfp4", "o.gguf", "MXFP4", 15, 1},
    {"int4-g32", "o.safetensors", "pack-quantized 4-bit g32", 17, 1},
    {"int4", "o.safetensors", "pack-quantized 4-bit g128", 14, 1},
    {"int4zp-g64", "o.safetensors", "pack-quantized 4-bit g64 zp", 17, 1},
    {"int8", "o.safetensors", "int8 per-channel", 38, 2},
    {"int8-g64", "o.safetensors", "int8 g64", 38, 1},
    {"fp8", "o.safetensors", "fp8_e4m3 per-channel", 28, 2},
    {"nf4", "o.safetensors", "bitsandbytes nf4 g64", 15, 2},
    {"fp4-g128", "o.safetensors", "bitsandbytes fp4 g128", 12, 2},
    {"nvfp4", "o.safetensors", "nvfp4-pack-quantized", 15, 1},
    {"nvfp4_modelopt", "o.safetensors", "modelopt nvfp4", 15, 1},
    {"mxfp4", "o.safetensors", "mxfp4-pack-quantized", 15, 1},
};

static int type_count(void)
{
    return (int)(sizeof types / sizeof types[0]);
}

static void type_case(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", types[index].name,
             strcmp(types[index].out, "o.gguf") == 0 ? "gguf" : "safetensors");
    for (; *text; text++)
        *text = *text == '-' ? '_' : *text;
}

/* The numbers of a weight by ptxvm, which verify has compared with host_ref. */
static void check_figures(const opened *o, const json *doc, double least)
{
    qdnnFileWeight_t w;
    double rms = -1, largest = -1, sqnr = INFINITY;
    if (!find_weight(o, "layers.0.up.weight", &w))
        return;
    CHECK_EQ_I64(w.dims[0], ROWS);
    CHECK_EQ_I64(w.dims[1], COLUMNS);
    CHECK(json_f64(json_root(doc), "weights.0.rms", &rms) &&
          json_f64(json_root(doc), "weights.0.largest", &largest));
    json_f64(json_root(doc), "weights.0.sqnr_db", &sqnr);
    CHECK(sqnr >= least);
    CHECK(rms >= 0 && largest >= rms && (rms > 0) == isfinite(sqnr));
    static float x[ELEMENTS];
    double signal = 0;
    fill_values(x, ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++)
        signal += (double)x[i] * (double)x[i];
    if (rms > 0)
        CHECK(fabs(10 * log10(signal / (rms * rms * ELEMENTS)) - sqnr) < 1e-6);
}

TEST_EACH(QdnnCommand, QuantizeInfoVerify, type_count, type_case)
{
    opened o;
    char command[256], says[128];
    make_model(&o);
    snprintf(command, sizeof command, "quantize m.safetensors %s --type %s --json f.json", types[index].out,
             types[index].name);
    check_qdnn(o.dir, command, 0, types[index].name);
    snprintf(command, sizeof command, "info %s", types[index].out);
    snprintf(says, sizeof says, "layers.0.up.weight                                       %-28s [32, 256]",
             types[index].format);
    check_qdnn(o.dir, command, 0, says);
    static const int elements[] = {0, ELEMENTS, ELEMENTS + 15};
    snprintf(command, sizeof command, "verify %s", types[index].out);
    snprintf(says, sizeof says, "%d quantized weights, %d elements: the same bits", types[index].quantized,
             elements[types[index].quantized]);
    check_qdnn(o.dir, command, 0, says);
    process_result r = process_run("cat %s/f.json", o.dir);
    json_error error;
    json *doc = json_parse(r.output, r.length, &error);
    if (CHECK(doc != NULL) && opened_open(&o, types[index].out))
        check_figures(&o, doc, types[index].least_sqnr);
    json_free(doc);
    process_free(&r);
    opened_close(&o);
}

/* Blocks that the PyPI package gguf makes of the same numbers. */
static const gguf_file *vector_at(int index)
{
    return gguf_file_at(true, index);
}

static int vector_count(void)
{
    return gguf_file_count(true);
}

static void vector_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", vector_at(index)->name);
}

TEST_EACH(QdnnCommand, KnownBlocksFromAFile, vector_count, vector_name)
{
    gguf_vectors v;
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    char command[256];
    if (!gguf_vectors_read(vector_at(index), &v))
        SKIP("the vectors are not here");
    st_add(&s, "w", "F32", v.lines, (int64_t)v.block_values, v.values, (size_t)v.lines * v.block_values * 4);
    opened_make(&o, st_make(&s), "m.safetensors");
    snprintf(command, sizeof command, "quantize m.safetensors o.gguf --type %s",
             strchr(vector_at(index)->name, '_') + 1);
    for (char *c = strchr(command, 0); *c != ' '; c--)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    check_qdnn(o.dir, command, 0, "became");
    if (opened_open(&o, "o.gguf") && find_weight(&o, "w", &w) &&
        CHECK_EQ_I64(w.bytes, (int64_t)(v.lines * (int)v.block_bytes)))
        CHECK_EQ_MEM(w.operand[0].data, v.blocks, (size_t)w.bytes);
    opened_close(&o);
    gguf_vectors_free(&v);
}

TEST_CASE(QdnnCommand, RulesDryRunAndWhatIsKept)
{
    opened o;
    qdnnFileInfo_t info;
    make_model(&o);
    check_qdnn(o.dir,
               "quantize m.safetensors o.gguf --type q4_0 --tensor 'up=q8_0' --tensor '.*=f16' --dry-run", 0,
               "q8_0              32.8 KB     8.7 KB\n");
    check_qdnn(o.dir, "info o.gguf", 1, "No such file"); /* nothing was written */
    check_qdnn(
        o.dir, "quantize m.safetensors o.gguf --type q4_0 --dry-run", 0,
        "layers.0.odd.weight                              F32                      kept                "
        " 60 B       60 B  "
        "the last dimension is 5; gguf_q4_0 has blocks of 32 elements");
    check_qdnn(o.dir, "quantize m.safetensors o.gguf --type q4_0 --dry-run", 0, "would become");
    check_qdnn(o.dir, "quantize m.safetensors o.gguf --type q4_0 --tensor norm=q8_0", 0, "no matrix");
    if (opened_open(&o, "o.gguf") && CHECK(!qdnnGetFileInfo(o.file, &info))) {
        qdnnFileTensor_t t;
        qdnnFileMetadata_t m;
        int at;
        CHECK_EQ_I64(info.tensors, 4);
        CHECK_EQ_I64(info.version, 3);
        if (CHECK(!qdnnFindFileTensor(o.file, "ids", &at) && !qdnnGetFileTensor(o.file, at, &t)))
            CHECK_EQ_MEM(t.data, "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 16);
        CHECK(!qdnnGetFileMetadata(o.file, 1, &m));
        CHECK_EQ_STR(m.key, "format");
        CHECK_EQ_STR(m.text, "pt");
        qdnnCloseFile(o.file);
        o.file = NULL;
    }
    check_qdnn(o.dir, "quantize m.safetensors p.gguf --type q4_0 --tensor 'ids|odd=drop'", 0, "dropped");
    if (opened_open(&o, "p.gguf") && CHECK(!qdnnGetFileInfo(o.file, &info)))
        CHECK_EQ_I64(info.tensors, 2);
    opened_close(&o);
}

/* What loaders read of the quantization is in the file, and our reader takes it from there. */
static const struct {
    const char *name, *type, *method, *says;
} descriptions[] = {
    {"Int4", "int4-g64", "compressed-tensors",
     "\"format\": \"pack-quantized\", \"quantization_status\": \"compressed\", \"config_groups\": "
     "{\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4, \"type\": \"int\", "
     "\"symmetric\": "
     "true, \"dynamic\": false, \"strategy\": \"group\", \"group_size\": 64}, \"format\": "
     "\"pack-quantized\"}}, "
     "\"ignore\": [\"layers.0.odd\", \"embed_tokens\"], \"kv_cache_scheme\": null"},
    {"Int8", "int8", "compressed-tensors", "\"strategy\": \"channel\"}, \"format\": \"int-quantized\"}"},
    {"Fp8", "fp8", "compressed-tensors", "\"format\": \"float-quantized\""},
    {"Mxfp4", "mxfp4", "compressed-tensors",
     "\"strategy\": \"group\", \"group_size\": 32, \"scale_dtype\": \"torch.uint8\"}"},
    {"Nvfp4", "nvfp4", "compressed-tensors",
     "\"strategy\": \"tensor_group\", \"group_size\": 16, \"scale_dtype\": \"torch.float8_e4m3fn\"}"},
    {"Modelopt", "nvfp4_modelopt", "modelopt", "\"quant_algo\": \"NVFP4\""},
    {"Nf4", "nf4", "bitsandbytes",
     "\"bnb_4bit_quant_type\": \"nf4\", \"bnb_4bit_use_double_quant\": false, \"bnb_4bit_quant_storage\": "
     "\"uint8\", \"bnb_4bit_compute_dtype\": \"float32\", \"llm_int8_skip_modules\": [\"embed_tokens\"]}"},
    {"TwoTypes", "int4-g64 --tensor odd=int8", "compressed-tensors",
     "\"format\": \"mixed-precision\", \"quantization_status\": \"compressed\", \"config_groups\": "
     "{\"group_0\": "
     "{\"targets\": [\"layers.0.up\"], "},
    {"Embedding", "fp8 --all-matrices", "compressed-tensors",
     "{\"targets\": [\"layers.0.up\", \"layers.0.odd\", \"embed_tokens\"], "},
};

TEST_ROWS(QdnnCommand, SaysHowItIsQuantized, descriptions)
{
    opened o;
    char command[128];
    qdnnFileInfo_t info;
    qdnnFileMetadata_t m;
    opened_make(&o, model(true), "m.safetensors");
    snprintf(command, sizeof command, "quantize m.safetensors o.safetensors --type %s",
             descriptions[index].type);
    check_qdnn(o.dir, command, 0, "became");
    if (opened_open(&o, "o.safetensors") && CHECK(!qdnnGetFileInfo(o.file, &info))) {
        CHECK_EQ_STR(info.quantMethod, descriptions[index].method);
        CHECK_EQ_I64(info.metadata, 2);
        CHECK(!qdnnGetFileMetadata(o.file, 1, &m));
        CHECK_EQ_STR(m.key, "quantization_config");
        CHECK_HAS((const char *)m.data, descriptions[index].says);
        CHECK_EQ_I64((int64_t)m.bytes, (int64_t)strlen(m.data));
        CHECK_EQ_I64((int64_t)strlen(m.text), m.bytes < 200 ? (int64_t)m.bytes : 200);
    }
    opened_close(&o);
}

TEST_CASE(QdnnCommand, QuantizedWeightsStayUnlessTheyAreAskedFor)
{
    opened o;
    make_model(&o);
    check_qdnn(o.dir, "quantize m.safetensors a.gguf --type q8_0", 0, "became");
    check_qdnn(o.dir, "quantize a.gguf b.gguf --type q4_0", 1,
               "nothing to quantize in a.gguf; layers.0.up.weight, for example, is kept: quantized already "
               "(--requantize)");
    check_qdnn(o.dir, "info b.gguf", 1, "No such file");
    check_qdnn(o.dir, "quantize a.gguf b.gguf --type q4_0 --requantize", 0, "became");
    check_qdnn(o.dir, "info b.gguf", 0, "Q4_0");
    check_qdnn(o.dir, "quantize a.gguf c.safetensors --tensor odd=nf4", 1,
               "layers.0.up.weight: tensors of type Q8_0 cannot be stored in safetensors; give it another "
               "type by --tensor, 'drop', or --requantize");
    check_qdnn(o.dir, "quantize a.gguf c.safetensors --type int4-g32 --requantize", 0, "became");
    opened_close(&o);
}

/* ---- convert ---- */

static const struct {
    const char *name, *first, *second, *says;
    int status;
} conversions[] = {
    {"Q4_0ToInt4", "quantize m.safetensors a.gguf --type q4_0", "convert a.gguf b.safetensors", "int4-g32",
     0},
    {"Q8_0ToInt8", "quantize m.safetensors a.gguf --type q8_0", "convert a.gguf b.safetensors", "int8-g32",
     0},
    {"Q5_0ToInt8", "quantize m.safetensors a.gguf --type q5_0", "convert a.gguf b.safetensors", "int8-g32",
     0},
    {"Mxfp4ToMxfp4", "quantize m.safetensors a.gguf --type mxfp4", "convert a.gguf b.safetensors", "mxfp4   ",
     0},
    {"Q4_1ToF32", "quantize m.safetensors a.gguf --type q4_1", "convert a.gguf b.safetensors", "f32  ", 0},
    {"Q4_0ToQ8_0", "quantize m.safetensors a.gguf --type q4_0", "convert a.gguf b.gguf --type q8_0", "q8_0  ",
     0},
    {"Q4_0Stays", "quantize m.safetensors a.gguf --type q4_0", "convert a.gguf b.gguf", "kept", 0},
    {"Int4ToQ4_0", "quantize m.safetensors a.safetensors --type int4-g64", "convert a.safetensors b.gguf",
     "q4_0  ", 0},
    {"Int4zpToQ5_0", "quantize m.safetensors a.safetensors --type int4zp-g64", "convert a.safetensors b.gguf",
     "q5_0  ", 0},
    {"Nf4ToF32", "quantize m.safetensors a.safetensors --type nf4", "convert a.safetensors b.gguf", "f32  ",
     0},
    {"Mxfp4Back", "quantize m.safetensors a.safetensors --type mxfp4", "convert a.safetensors b.gguf",
     "mxfp4  ", 0},
    {"Q8_0IntoQ4_0", "quantize m.safetensors a.gguf --type q8_0", "convert a.gguf b.gguf --type q4_0",
     "layers.0.up.weight (Q8_0) cannot become q4_0 without loss: it cannot hold the value", 1},
    {"IntoNf4", "quantize m.safetensors a.gguf --type q8_0", "convert a.gguf b.safetensors --type int4zp-g32",
     "nothing is converted to this type; use quantize", 1},
};

/* The values of two files are the same. */
static void check_same_values(const opened *o, const char *a, const char *b)
{
    opened files[2] = {*o, *o};
    qdnnFileWeight_t w;
    static float zeros[ELEMENTS];
    if (opened_open(&files[0], a) && opened_open(&files[1], b) &&
        find_weight(&files[0], "layers.0.up.weight", &w)) {
        float *x = malloc(sizeof zeros), *y = malloc(sizeof zeros);
        CHECK(read_values(&w, x, ELEMENTS));
        if (find_weight(&files[1], "layers.0.up.weight", &w))
            CHECK(read_values(&w, y, ELEMENTS));
        for (int i = 0; i < ELEMENTS; i++)
            if (!CHECK(x[i] == y[i]))
                break;
        free(x);
        free(y);
    }
    qdnnCloseFile(files[0].file);
    qdnnCloseFile(files[1].file);
}

TEST_ROWS(QdnnCommand, Convert, conversions)
{
    opened o;
    bool gguf = strstr(conversions[index].second, "b.gguf") != NULL;
    make_model(&o);
    check_qdnn(o.dir, conversions[index].first, 0, "became");
    check_qdnn(o.dir, conversions[index].second, conversions[index].status, conversions[index].says);
    if (conversions[index].status == 0)
        check_same_values(&o, strstr(conversions[index].first, "a.gguf") ? "a.gguf" : "a.safetensors",
                          gguf ? "b.gguf" : "b.safetensors");
    else
        check_qdnn(o.dir, gguf ? "info b.gguf" : "info b.safetensors", 1, "No such file");
    opened_close(&o);
}

/* GPTQ is [K, N] in words down columns; in GGUF it is [N, K] in blocks along rows. */
TEST_CASE(QdnnCommand, GptqBecomesGguf)
{
    enum { K = 64, N = 8 };
    uint32_t words[K / 8 * N], zeros[2] = {0x77777777, 0x77777777};
    uint16_t scales[2 * N];
    float expected[N * K];
    st_maker s = {0};
    opened o;
    qdnnFileWeight_t w;
    for (int i = 0; i < K / 8 * N; i++)
        words[i] = 0x9E3779B9u * (uint32_t)(i + 1);
    for (int i = 0; i < 2 * N; i++)
        scales[i] = ref_f32_to_f16(0.01f * (float)(i + 1));
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            expected[n * K + k] = (float)((int)(words[k / 8 * N + n] >> 4 * (k % 8) & 15) - 8) *
                                  ref_f16_to_f32(scales[k / 32 * N + n]);
    st_add(&s, "l.qweight", "I32", K / 8, N, words, sizeof words);
    st_add(&s, "l.qzeros", "I32", 2, 1, zeros, sizeof zeros);
    st_add(&s, "l.scales", "F16", 2, N, scales, sizeof scales);
    opened_make(&o, st_make(&s), "model.safetensors");
    check_qdnn(o.dir, "convert . b.gguf", 0, "gptq 4-bit g32           q4_0");
    if (opened_open(&o, "b.gguf") && find_weight(&o, "l.weight", &w)) {
        CHECK_EQ_I64(w.dims[0], N);
        CHECK_EQ_I64(w.dims[1], K);
        check_values(&w, expected, N * K);
    }
    opened_close(&o);
}

/* NVFP4 of GGUF has no global scale: in ModelOpt's form it is 1, and the way back gives the same blocks. */
TEST_CASE(QdnnCommand, Nvfp4BothWays)
{
    uint8_t blocks[4 * 36];
    gguf_maker g = {0};
    opened o;
    qdnnFileWeight_t w;
    for (int i = 0; i < (int)sizeof blocks; i++)
        blocks[i] = i % 36 < 4 ? (uint8_t)(0x30 + i % 36 + i / 36) : (uint8_t)((i * 37 & 0x77) | 0x11);
    gguf_tensor(&g, "a.weight", 40, 2, (const int64_t[]){2, 128}, blocks, sizeof blocks);
    opened_make(&o, gguf_make(&g), "a.gguf");
    check_qdnn(o.dir, "convert a.gguf b.safetensors", 0, "nvfp4 ");
    check_qdnn(o.dir, "info b.safetensors", 0, "nvfp4-pack-quantized");
    check_qdnn(o.dir, "verify b.safetensors", 0, "1 quantized weights, 256 elements: the same bits");
    check_qdnn(o.dir, "convert b.safetensors c.gguf", 0, "nvfp4 ");
    if (opened_open(&o, "c.gguf") && find_weight(&o, "a.weight", &w) &&
        CHECK_EQ_I64((int64_t)w.bytes, sizeof blocks))
        CHECK_EQ_MEM(w.operand[0].data, blocks, sizeof blocks);
    opened_close(&o);
}

/* ---- bench ---- */

TEST_CASE(QdnnCommand, BenchCountsOnPtxvm)
{
    opened o;
    make_model(&o);
    check_qdnn(o.dir, "quantize m.safetensors a.gguf --type q4_0", 0, "became");
    check_qdnn(o.dir, "bench a.gguf --rows 0", 2, "--rows takes up to 16 numbers from 1 to");
    check_qdnn(o.dir, "bench a.gguf --only nothing", 1, "a.gguf has no matrices whose name matches --only");
    process_result r = run(o.dir, "bench a.gguf --rows 1,5 --json -");
    json_error error;
    json *doc = json_parse(r.output, r.length, &error);
    uint64_t one = 0, five = 0, sectors = 0, least = 0;
    CHECK_EQ_I64(r.status, 0);
    if (CHECK(doc != NULL)) {
        CHECK_EQ_STR(json_string(json_root(doc), "products.0.format"), "Q4_0");
        CHECK(json_u64(json_root(doc), "products.0.instructions", &one) && one > ELEMENTS / 32);
        CHECK(json_u64(json_root(doc), "products.1.rows", &five) && five == 5);
        CHECK(json_u64(json_root(doc), "products.1.instructions", &five) && five > one);
        CHECK(json_u64(json_root(doc), "products.0.sectors", &sectors) &&
              sectors >= ROWS * COLUMNS / 32 * 18 / 32);
        CHECK(json_u64(json_root(doc), "products.0.least_sectors", &least) && least > 0 && least <= sectors);
        CHECK_EQ_STR(json_string(json_root(doc), "products.2.format"), "F32"); /* the small matrix */
    }
    json_free(doc);
    process_free(&r);
    opened_close(&o);
}

static bool has_disassembler(void)
{
    char path[1024];
    return toolkit_find_ptxas(path, sizeof path) && toolkit_find_nvdisasm(path, sizeof path);
}

/* What is certain of a modelled time: it is not below that of DRAM, and its ends are in order. */
TEST_CASE(QdnnCommand, BenchModelsABoard)
{
    opened o;
    make_model(&o);
    check_qdnn(o.dir, "quantize m.safetensors a.gguf --type q4_0", 0, "became");
    process_result r = run(o.dir, "bench a.gguf --rows 1,16 --gpu rtx4090 --json f.json");
    if (has_disassembler()) {
        size_t bytes;
        char path[600];
        json_error error;
        snprintf(path, sizeof path, "%s/f.json", o.dir);
        char *text = toolkit_read_file(path, &bytes);
        json *doc = text ? json_parse(text, bytes, &error) : NULL;
        bool modelled = false;
        double low = 0, high = 0, roofline = 0, plain = 0;
        CHECK_EQ_I64(r.status, 0);
        CHECK_HAS(r.output, "modelled for GeForce RTX 4090");
        CHECK_HAS(r.output, "tokens per second, modelled; with plain f16");
        if (CHECK(doc != NULL)) {
            const json_value *root = json_root(doc);
            CHECK_EQ_STR(json_string(root, "gpu"), "rtx4090");
            CHECK_EQ_STR(json_string(root, "products.0.format"), "Q4_0");
            CHECK(json_bool(root, "products.0.modelled", &modelled) && modelled);
            CHECK(json_f64(root, "products.0.us_low", &low) && json_f64(root, "products.0.us_high", &high));
            CHECK(json_f64(root, "products.0.roofline_us", &roofline) && roofline > 0);
            CHECK(json_f64(root, "products.0.plain_us_low", &plain) && plain > roofline);
            CHECK(roofline <= low && low <= high);
        }
        json_free(doc);
        free(text);
    } else {
        CHECK_EQ_I64(r.status, 1);
        CHECK_HAS(r.output, "--gpu models times from machine code: ");
    }
    process_free(&r);
    opened_close(&o);
}

/* ---- verify ---- */

TEST_CASE(QdnnCommand, VerifySaysWhatItCannotCheck)
{
    enum { K = 64, N = 8 };
    st_maker s = {0};
    opened o;
    static const uint32_t words[K / 8 * N];
    st_add(&s, "l.qweight", "I32", K / 8, N, words, sizeof words);
    opened_make(&o, st_make(&s), "m.safetensors");
    check_qdnn(o.dir, "verify m.safetensors", 1, "the tensor 'l.scales' is missing");
    check_qdnn(o.dir, "verify m.safetensors", 1, "1 weights could not be checked");
    check_qdnn(o.dir, "verify m.safetensors --only nothing", 1,
               "--only 'nothing' matches no name in m.safetensors");
    check_qdnn(o.dir, "info m.safetensors", 0, "no descriptor: the tensor 'l.");
    opened_close(&o);
}
