/* Hostile names and metadata, through every command and every error: what comes out may be printed anywhere. */
#include "base/json.h"
#include "driver/base/error.h"
#include "files/opened.h"
#include "support/printable.h"
#include "support/process.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define QDNN QDNN_BINARY_DIR "/qdnn/qdnn"
enum { ROWS = 2, COLUMNS = 32, ELEMENTS = ROWS * COLUMNS };

static const float values[ELEMENTS] = {1, -2, 3, 0.5f};

static int name_count(void)
{
    return n_hostile_names;
}

static void name_of(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", hostile_names[index].name);
}

/* Runs a command in the folder; its output, on a pipe or on a terminal, must be printable. */
static process_result run(const char *dir, const char *program, const char *arguments)
{
    process_result r = process_run("cd %s && QDNN_DEVICE=vm:sm_80 QDNN_LOGLEVEL=3 QDNN_LOGDEST=stderr %s %s",
                                   dir, program, arguments);
    test_push_note("%s %s", program, arguments);
    check_printable(r.output, r.length);
    test_pop_note();
    return r;
}

static void check_run(const char *dir, const char *arguments, int status, const char *says)
{
    process_result r = run(dir, QDNN, arguments);
    if (!CHECK_EQ_I64(r.status, status))
        FAIL("qdnn %s: %s", arguments, r.output);
    CHECK_HAS(r.output, says);
    process_free(&r);
}

/* ---- files whose names are hostile, and otherwise good ---- */

static bytes good_gguf(const char *name)
{
    gguf_maker g = {0};
    char key[256];
    snprintf(key, sizeof key, "key.%s", name);
    gguf_entry_string(&g, "general.architecture", name);
    gguf_entry_string(&g, key, "plain");
    gguf_entry_string(&g, "not.utf8", "a\xff\xfe\x80\nb");
    gguf_tensor(&g, name, 0, 2, (const int64_t[]){ROWS, COLUMNS}, values, sizeof values);
    return gguf_make(&g);
}

/* The name as a JSON string, written by hand: every byte below space as \u. */
static void json_name(bytes *b, const char *name)
{
    bytes_text(b, "\"");
    for (; *name; name++)
        bytes_text(b, (uint8_t)*name < ' ' ? "\\u%04x" : "%c", (unsigned)(uint8_t)*name);
    bytes_text(b, "\"");
}

static bytes good_safetensors(const char *name)
{
    bytes header = {0};
    bytes_text(&header, "{\"__metadata__\":{\"format\":");
    json_name(&header, name);
    bytes_text(&header, ",");
    json_name(&header, name);
    bytes_text(&header,
               ":\"v\",\"quantization_config\":\"{\\\"quant_method\\\":\\\"\\\\u001b[2J\\\\nFORGED\\\"}\"},");
    json_name(&header, name);
    bytes_text(&header, ":{\"dtype\":\"F32\",\"shape\":[2,32],\"data_offsets\":[0,256]}}");
    bytes file = st_raw((const char *)header.data, values, sizeof values);
    bytes_free(&header);
    return file;
}

static const struct {
    const char *arguments; /* of the command; %s is the input */
    const char *says;
} commands[] = {
    {"info %s", "F32"},
    {"info --tensors %s", "F32"},
    {"info %s --json -", "\"format\": \"F32\""},
    {"quantize %s out.gguf --type q8_0", "q8_0"},
    {"verify out.gguf", "the same bits"},
    {"info out.gguf", "Q8_0"},
    {"bench out.gguf --rows 1", "Q8_0"},
    {"bench out.gguf --rows 1 --json -", "Q8_0"},
    {"quantize %s out2.gguf --type q8_0 --json -", "q8_0"},
    {"quantize %s out.safetensors --type int8-g32", "int8"},
    {"convert %s out3.gguf --tensor '.*=f16'", "f16"},
    {"convert out.gguf out4.safetensors", "out4.safetensors"},
    {"info out4.safetensors", "int"},
    {"convert out.gguf out5.gguf --json -", "\"to\": "},
};

TEST_EACH(HostileText, EveryCommand, name_count, name_of)
{
    static const char *const inputs[] = {"in.gguf", "in.safetensors"};
    for (int kind = 0; kind < 2; kind++) {
        char name[256]; /* scales are found by the suffix */
        opened o;
        snprintf(name, sizeof name, "%s.weight", hostile_names[index].text);
        opened_make(&o, kind ? good_safetensors(name) : good_gguf(name), inputs[kind]);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
            char arguments[256];
            const char *in = strstr(commands[i].arguments, "%s");
            size_t before = in ? (size_t)(in - commands[i].arguments) : strlen(commands[i].arguments);
            snprintf(arguments, sizeof arguments, "%.*s%s%s", (int)before, commands[i].arguments,
                     in ? inputs[kind] : "", in ? in + 2 : "");
            check_run(o.dir, arguments, 0, commands[i].says);
        }
        opened_close(&o);
    }
}

/* JSON gives the name back, bit for bit. */
TEST_EACH(HostileText, JsonKeepsTheName, name_count, name_of)
{
    opened o;
    json_error error;
    opened_make(&o, good_gguf(hostile_names[index].text), "in.gguf");
    process_result r = process_run("cd %s && %s info in.gguf --json -", o.dir, QDNN);
    json *doc = json_parse(r.output, r.length, &error);
    if (CHECK(doc != NULL))
        CHECK_EQ_STR(json_string(json_root(doc), "weights.0.name"), hostile_names[index].text);
    json_free(doc);
    process_free(&r);
    opened_close(&o);
}

/* On a terminal there are colours and the progress line, whose own sequences are known. */
TEST_EACH(HostileText, OnATerminal, name_count, name_of)
{
    opened o;
    opened_make(&o, good_gguf(hostile_names[index].text), "in.gguf");
    process_result r = process_run_on_terminal(
        "cd %s && unset NO_COLOR && TERM=xterm QDNN_DEVICE=vm %s quantize in.gguf out.gguf "
        "--type q8_0 && TERM=xterm QDNN_DEVICE=vm %s verify out.gguf",
        o.dir, QDNN, QDNN);
    CHECK_EQ_I64(r.status, 0);
    char *plain = malloc(r.length + 1), *to = plain;
    for (char *at = r.output; plain && *at;) {
        size_t own = strncmp(at, "\r\033[K", 4) == 0 ? 4 : 0;
        if (!own)
            *to++ = *at;
        at += own ? own : 1;
    }
    if (CHECK(plain != NULL)) {
        *to = 0;
        check_printable(plain, (size_t)(to - plain));
        CHECK_HAS(plain, "100%");
    }
    free(plain);
    process_free(&r);
    opened_close(&o);
}

/* ---- errors that quote names ---- */

static void check_error(opened *o, const char *name, const char *says)
{
    char path[1024], why[2048];
    qdnnFile_t file;
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    CHECK(qdnnOpenFile(path, &file) != QDNN_STATUS_SUCCESS);
    qdnnGetLastFileErrorString(why, sizeof why);
    check_printable(why, strlen(why));
    CHECK(strchr(why, '\n') == NULL);
    CHECK_HAS(why, says);
    char arguments[600];
    snprintf(arguments, sizeof arguments, "info %s", name);
    check_run(o->dir, arguments, 1, says);
}

TEST_EACH(HostileText, ErrorsOfGguf, name_count, name_of)
{
    const char *name = hostile_names[index].text;
    static const char *const says[] = {"duplicate tensor '", "duplicate metadata entry '",
                                       "which is not known", "dimensions"};
    for (int i = 0; i < 4; i++) {
        gguf_maker g = {0};
        opened o;
        for (int k = 0; k < 1 + (i == 1); k++)
            gguf_entry_string(&g, name, "v");
        for (int k = 0; k < 1 + (i == 0); k++)
            gguf_tensor(&g, name, i == 2 ? 9999 : 0, i == 3 ? 0 : 2, (const int64_t[]){ROWS, COLUMNS}, values,
                        sizeof values);
        opened_make(&o, gguf_make(&g), "in.gguf");
        check_error(&o, "in.gguf", says[i]);
        opened_close(&o);
    }
}

TEST_EACH(HostileText, ErrorsOfSafetensors, name_count, name_of)
{
    static const struct {
        const char *entry, *says;
    } cases[] = {
        {"{\"dtype\":\"\\u001b[2J\\nFORGED\",\"shape\":[],\"data_offsets\":[0,4]}", "which is not known"},
        {"{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}", "has an invalid dimension"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,99]}", "cut off or damaged"},
        {"7", "is no object"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes header = {0};
        opened o;
        bytes_text(&header, "{");
        json_name(&header, hostile_names[index].text);
        bytes_text(&header, ":%s}", cases[i].entry);
        opened_make(&o, st_raw((const char *)header.data, values, 4), "in.safetensors");
        bytes_free(&header);
        check_error(&o, "in.safetensors", cases[i].says);
        opened_close(&o);
    }
}

TEST_EACH(HostileText, ErrorsOfAnIndex, name_count, name_of)
{
    bytes index_file = {0};
    opened o;
    bytes_text(&index_file, "{\"weight_map\":{");
    json_name(&index_file, hostile_names[index].text);
    bytes_text(&index_file, ":");
    json_name(&index_file, hostile_names[index].text);
    bytes_text(&index_file, "}}");
    opened_make(&o, index_file, "model.safetensors.index.json");
    check_error(&o, "model.safetensors.index.json", "is missing; download it");
    opened_close(&o);
}

/* The path is text from outside too. */
TEST_EACH(HostileText, PathsOfFiles, name_count, name_of)
{
    opened o;
    opened_make(&o, good_gguf("w"), "in.gguf");
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.gguf", o.dir, hostile_names[index].text);
    bytes b = good_gguf("w");
    bytes_write(&b, o.dir, path + strlen(o.dir) + 1);
    bytes_free(&b);
    check_run(o.dir, "info w*.gguf", 0, "GGUF version 3");
    check_run(o.dir, "info w*.gguf --json -", 0, "\"kind\": \"gguf\"");
    check_run(o.dir, "verify w*.gguf", 0, "0 quantized weights");
    check_run(o.dir, "quantize in.gguf \"$(echo w*.gguf)/none.gguf\" --type q8_0", 1, "cannot");
    check_run(o.dir, "info \"$(echo w*.gguf)-\"", 1, "cannot be read");
    opened_close(&o);
}

/* ---- names of 64 KB ---- */

TEST_CASE(HostileText, NamesOf64Kilobytes)
{
    enum { LENGTH = 65536 };
    static char name[LENGTH + 1];
    for (int i = 0; i < LENGTH; i++)
        name[i] = i % 2 ? '\x1b' : '\n';
    gguf_maker g = {0};
    opened o;
    gguf_tensor(&g, name, 0, 2, (const int64_t[]){ROWS, COLUMNS}, values, sizeof values);
    opened_make(&o, gguf_make(&g), "long.gguf");
    check_error(&o, "long.gguf", "a tensor's name of 65536 bytes; at most 4096 are allowed");
    bytes header = {0};
    bytes_text(&header, "{\"__metadata__\":{");
    json_name(&header, name);
    bytes_text(&header, ":");
    json_name(&header, name);
    bytes_text(&header, "},\"w\":{\"dtype\":\"F32\",\"shape\":[2,32],\"data_offsets\":[0,256]}}");
    bytes file = st_raw((const char *)header.data, values, sizeof values);
    bytes_free(&header);
    bytes_write(&file, o.dir, "long.safetensors");
    bytes_free(&file);
    check_run(o.dir, "info long.safetensors", 0, "\\x0a\\x1b");
    opened_close(&o);
}

/* ---- the library and the other commands ---- */

TEST_EACH(HostileText, ErrorsOfTheLibrary, name_count, name_of)
{
    char why[1024];
    qdnn_error(QDNN_STATUS_BAD_PARAM, "the file '%s'", hostile_names[index].text);
    qdnnGetLastErrorString(why, sizeof why);
    check_printable(why, strlen(why));
    CHECK(strchr(why, '\n') == NULL);
    CHECK_HAS(why, "\\x0aFORGED'");
}

/* The library logs these variables, and refuses them. */
TEST_EACH(HostileText, EnvironmentOfTheLibrary, name_count, name_of)
{
    static const char *const variables[] = {"QDNN_LIBCUDA", "QDNN_BUNDLE_DIR", "QDNN_DEVICE",
                                            "QDNN_LOGLEVEL"};
    opened o;
    opened_make(&o, good_gguf("w"), "in.gguf");
    for (int i = 0; i < 4; i++) {
        bytes script = {0};
        const char *device = i == 0 ? "cuda" : "vm";
        bytes_text(&script,
                   "export QDNN_LOGLEVEL=3 QDNN_LOGDEST=stderr QDNN_DEVICE=%s\nexport %s='%s'\n%s quantize "
                   "in.gguf out.gguf --type q8_0\n",
                   device, variables[i], hostile_names[index].text, QDNN);
        bytes_write(&script, o.dir, "script");
        bytes_free(&script);
        process_result r = run(o.dir, "sh", "script");
        CHECK_HAS(r.output, "FORGED");
        process_free(&r);
    }
    opened_close(&o);
}

TEST_EACH(HostileText, ArgumentsOfTheCommands, name_count, name_of)
{
    static const char *const runs[] = {
        QDNN_BINARY_DIR "/ptxgen/ptxgen --kernel \"$NAME\" --sm 90",
        QDNN_BINARY_DIR "/ptxgen/ptxgen --kernel quantize_nf4 --sm \"$NAME\"",
        QDNN_BINARY_DIR "/ptxgen/ptxgen --kernel quantize_nf4 --sm 90 --set \"$NAME=1\"",
        QDNN_BINARY_DIR "/ptxgen/ptxgen --kernel quantize_nf4 --sm 90 -o \"$NAME/none\"",
        QDNN_BINARY_DIR "/ptxvm/ptxvm \"$NAME\"",
        QDNN_BINARY_DIR "/ptxvm/ptxvm k.ptx --run \"$NAME\"",
        QDNN_BINARY_DIR "/ptxvm/ptxvm k.ptx --run k \"$NAME\"",
        QDNN_BINARY_DIR "/ptxvm/ptxvm-ptxas -arch sm_80 \"$NAME\"",
        QDNN_BINARY_DIR "/ptxvm/ptxvm-ptxas -arch sm_80 --\"$NAME\" k.ptx",
        QDNN " info in.gguf --only \"($NAME\"",
        QDNN " quantize in.gguf out.gguf --type \"$NAME\"",
        QDNN " \"$NAME\"",
        QDNN " info --\"$NAME\"",
    };
    opened o;
    opened_make(&o, good_gguf("w"), "in.gguf");
    text_write(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n", o.dir,
               "k.ptx");
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        bytes script = {0};
        bytes_text(&script, "NAME='%s'\n%s\n", hostile_names[index].text, runs[i]);
        bytes_write(&script, o.dir, "script");
        bytes_free(&script);
        process_result r = run(o.dir, "sh", "script");
        test_push_note("%s", runs[i]);
        CHECK(r.length > 0);
        test_pop_note();
        process_free(&r);
    }
    opened_close(&o);
}

/* ---- files that are none ---- */

TEST_CASE(HostileText, WhatIsNoRegularFileIsRefused)
{
    opened o;
    opened_make(&o, good_gguf("w"), "in.gguf");
    process_result r = process_run("cd %s && mkfifo f.gguf f.safetensors f.index.json", o.dir);
    REQUIRE(r.status == 0);
    process_free(&r);
    check_run(o.dir, "info f.gguf", 1, "f.gguf: cannot be read: not a regular file");
    check_run(o.dir, "verify f.safetensors", 1, "not a regular file");
    check_run(o.dir, "info f.index.json", 1, "no such file");
    check_run(o.dir, "info /dev/null", 1, "/dev/null: cannot be read: not a regular file");
    check_run(o.dir, "quantize f.gguf out.gguf --type q8_0", 1, "not a regular file");
    opened_close(&o);
}
