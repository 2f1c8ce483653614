/* The cost of untrusted input is in proportion to its size: ten times the input takes at most fifteen times the work and
 * memory, and no more of both per byte than docs/limits.md states. */
#include <qdnn/files.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cost/work.h"
#include "files/maker.h"
#include "ptxvm/ptxvm.h"
#include "support/process.h"
#include "test.h"

enum { SMALL = 1000, TIMES = 10, MOST_TIMES = 15 };

/* As stated in docs/limits.md, per byte of input. */
typedef struct budget {
    uint64_t steps, bytes;
} budget;
static const budget of_files = {40, 32}, of_json = {20, 12}, of_ptx = {300, 150};

typedef struct cost {
    work_counts counts;
    size_t input;
} cost;

/* `fixed` bytes are held whatever the input. */
static void check_costs(const cost *small, const cost *large, budget b, uint64_t fixed)
{
    printf("%zu and %zu bytes: %llu and %llu steps (%.1f per byte), %llu and %llu bytes (%.1f per byte)\n",
           small->input, large->input, (unsigned long long)small->counts.steps,
           (unsigned long long)large->counts.steps, (double)large->counts.steps / (double)large->input,
           (unsigned long long)small->counts.bytes, (unsigned long long)large->counts.bytes,
           (double)large->counts.bytes / (double)large->input);
    CHECK(small->counts.steps > 0);
    CHECK(large->counts.steps <= MOST_TIMES * small->counts.steps);
    CHECK(large->counts.bytes <= MOST_TIMES * small->counts.bytes + fixed);
    CHECK(large->counts.steps <= b.steps * large->input);
    CHECK(large->counts.bytes <= b.bytes * large->input + fixed);
}

/* ---- files ---- */

/* Text with $i for the index, $j for a scattered one, $r for the index from the end; `copies` of it. */
static void repeat(bytes *b, const char *text, int copies, const char *separator)
{
    for (int i = 0; i < copies; i++) {
        if (i)
            bytes_text(b, "%s", separator);
        for (const char *at = text; *at; at++)
            if (*at == '$') {
                at++;
                bytes_text(b, "%d",
                           *at == 'i'   ? i
                           : *at == 'j' ? (int)((int64_t)i * 7919 % copies)
                                        : copies - 1 - i);
            } else
                bytes_put(b, at, 1);
    }
}

static const char prefix[] = "model.layers.common.prefix.of.all.keys.";

static bytes gguf_keys(int n)
{
    gguf_maker g = {0};
    for (int i = 0; i < n; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s%d", prefix, i);
        gguf_entry_u16(&g, key, 7);
    }
    return gguf_make(&g);
}

static bytes gguf_strings(int n)
{
    gguf_maker g = {0};
    bytes array = {0};
    bytes_number(&array, 8, 4);
    bytes_number(&array, (uint64_t)n, 8);
    for (int i = 0; i < n; i++)
        gguf_string(&array, "token");
    gguf_entry(&g, "tokens", 9, array.data, array.size);
    bytes_free(&array);
    return gguf_make(&g);
}

static bytes gguf_tensors(int n)
{
    gguf_maker g = {0};
    static const float zeros[32];
    for (int i = 0; i < n; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%d", prefix, (int)((int64_t)i * 7919 % n));
        gguf_tensor(&g, name, 0, 2, (const int64_t[]){1, 8}, zeros, 32);
    }
    return gguf_make(&g);
}

static bytes safetensors_of(const char *begin, const char *item, int n, const char *end)
{
    bytes header = {0};
    bytes_text(&header, "%s", begin);
    repeat(&header, item, n, ",");
    bytes_text(&header, "%s", end);
    bytes file = st_raw((const char *)header.data, NULL, 0);
    bytes_free(&header);
    return file;
}

static bytes st_tensors(int n)
{
    return safetensors_of("{", "\"l.$j.weight\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", n,
                          "}");
}

static bytes st_gptq(int n)
{
    return safetensors_of("{",
                          "\"l.$j.qweight\":{\"dtype\":\"I32\",\"shape\":[0,0],\"data_offsets\":[0,0]},"
                          "\"l.$j.scales\":{\"dtype\":\"F16\",\"shape\":[0,0],\"data_offsets\":[0,0]},"
                          "\"l.$j.qzeros\":{\"dtype\":\"I32\",\"shape\":[0,0],\"data_offsets\":[0,0]}",
                          n, "}");
}

static bytes st_keys(int n)
{
    return safetensors_of("{\"__metadata__\":{", "\"$j\":\"\"", n, "}}");
}

static bytes st_values(int n)
{
    return safetensors_of("{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[",
                          "0,0,0,0,0,0,0,0", n, "]}}");
}

static const struct {
    const char *name;
    bytes (*make)(int n);
    const char *extension;
} file_cases[] = {
    {"GgufKeys", gguf_keys, "gguf"},
    {"GgufStrings", gguf_strings, "gguf"},
    {"GgufTensors", gguf_tensors, "gguf"},
    {"SafetensorsTensors", st_tensors, "safetensors"},
    {"SafetensorsGptq", st_gptq, "safetensors"},
    {"SafetensorsKeys", st_keys, "safetensors"},
    {"SafetensorsValues", st_values, "safetensors"},
};

static cost open_file(bytes b, const char *extension)
{
    char dir[256], name[32], path[300];
    cost c = {.input = b.size};
    qdnnFile_t file = NULL;
    temp_dir_make(dir, sizeof dir);
    snprintf(name, sizeof name, "f.%s", extension);
    bytes_write(&b, dir, name);
    bytes_free(&b);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    work_begin();
    qdnnStatus_t status = qdnnOpenFile(path, &file);
    qdnnCloseFile(file);
    c.counts = work_end();
    CHECK_EQ_I64(status, QDNN_STATUS_SUCCESS);
    temp_dir_remove(dir);
    return c;
}

TEST_ROWS(Cost, Files, file_cases)
{
    cost small = open_file(file_cases[index].make(SMALL), file_cases[index].extension);
    cost large = open_file(file_cases[index].make(TIMES * SMALL), file_cases[index].extension);
    check_costs(&small, &large, of_files, 1 << 20);
}

static const struct {
    const char *name, *begin, *item, *end;
} json_cases[] = {
    {"Numbers", "[", "0,0,0,0,0,0,0,0,0,0", "]"},
    {"Strings", "[", "\"abcdefgh\\u00e9\"", "]"},
    {"Members", "{", "\"$i\":$i", "}"},
    {"Objects", "[", "{\"a\":{\"b\":[]}}", "]"},
};

static cost parse_json(int row, int n)
{
    bytes b = {0};
    json_error error;
    bytes_text(&b, "%s", json_cases[row].begin);
    repeat(&b, json_cases[row].item, n, ",");
    bytes_text(&b, "%s", json_cases[row].end);
    cost c = {.input = b.size};
    work_begin();
    json_free(json_parse((const char *)b.data, b.size, &error));
    c.counts = work_end();
    bytes_free(&b);
    return c;
}

TEST_ROWS(Cost, Json, json_cases)
{
    cost small = parse_json(index, 10 * SMALL), large = parse_json(index, 10 * TIMES * SMALL);
    check_costs(&small, &large, of_json, JSON_VALUES_FREE * sizeof(json_value));
}

/* ---- PTX ---- */

#define HEADER "\n.version 7.8\n.target sm_80\n.address_size 64\n"
#define ENTRY                                                                                                \
    HEADER ".visible .entry k() {\n.reg .b32 r<8>; .reg .pred q; .reg .b64 d<4>; setp.ne.u32 q, 0, 0; "      \
           "mov.u32 r1, 1;\n"

static const struct {
    const char *name, *begin, *item, *between, *second, *end;
} ptx_cases[] = {
    {"Instructions", ENTRY, "add.s32 r1, r1, $i;\n", "", "", "ret; }"},
    {"OneLine", ENTRY, "add.s32 r1, r1, 1; ", "", "", "ret; }"},
    {"Constants", ENTRY, "mov.b64 d1, $j;\n", "", "", "ret; }"},
    {"Registers", ENTRY, ".reg .b32 x$i; mov.b32 x$i, 1;\n", "", "add.s32 x$i, x$i, x$j;\n", "ret; }"},
    {"RegisterRanges", ENTRY, ".reg .b32 z$i_<2>;\n", "", "mov.b32 z$j_1, 1;\n", "ret; }"},
    {"Branches", ENTRY, "L$i: @q bra L$j;\n", "", "", "ret; }"},
    {"NestedIfs", ENTRY, "@q bra E$i; add.s32 r1, r1, 1;\n", "", "E$r: add.s32 r1, r1, 1;\n", "ret; }"},
    {"NestedLoops", ENTRY, "L$i: add.s32 r1, r1, 1;\n", "", "@q bra L$r;\n", "ret; }"},
    {"Returns", ENTRY, "@q ret; add.s32 r1, r1, 1;\n", "", "", "ret; }"},
    {"Scopes", ENTRY, "{ .reg .b32 y; mov.b32 y, 1; }\n", "", "", "ret; }"},
    {"LocalVariables", ENTRY, "{ .local .b32 l; st.local.u32 [l], 1; }\n", "", "", "ret; }"},
    {"Barriers", ENTRY, "bar.sync 0;\n", "", "", "ret; }"},
    {"SourceLines", HEADER ".file 1 \"a.cu\"\n.visible .entry k() {\n.reg .b32 r1; mov.b32 r1, 1;\n",
     ".loc 1 $i 1\nadd.s32 r1, r1, 1;\n", "", "", "ret; }"},
    {"Functions", HEADER, ".func f$i() { ret; }\n", ".visible .entry k() {\n", "call f$j;\n", "ret; }"},
    {"Kernels", HEADER, ".visible .entry k$i() { ret; }\n", "", "", ".visible .entry k() { ret; }"},
    {"FunctionsOfKernels", HEADER, ".func f$i() { ret; }\n", "", ".visible .entry k$i() { call f$i; ret; }\n",
     ".visible .entry k() { ret; }"},
    {"Declarations", HEADER, ".extern .func e$i();\n", "", "", ".visible .entry k() { ret; }"},
    {"Globals", HEADER, ".global .u32 g$i = $i;\n", "", "", ".visible .entry k() { ret; }"},
    {"Initialisers", HEADER ".global .u32 g[] = {0", ",$i", "};\n", "", ".visible .entry k() { ret; }"},
    {"Addresses", HEADER ".global .u32 t; .global .u64 g[] = {t", ",t+$i", "};\n", "",
     ".visible .entry k() { ret; }"},
    {"Expressions", HEADER ".global .u32 g = 1", "+1", ";\n", "", ".visible .entry k() { ret; }"},
    {"Comments", HEADER, "/* $i */ // $i\n", "", "", ".visible .entry k() { ret; }"},
    {"Targets", ENTRY, "L$i: add.s32 r1, r1, 1;\n", "T: .branchtargets L0", ", L$i",
     "; @q brx.idx r1, T; ret; }"},
    {"Prototypes", HEADER ".func f() { ret; }\n.visible .entry k() { .reg .b64 d1; mov.u64 d1, f;\n",
     "P$i: .callprototype _ (); call d1, (), P$i;\n", "", "", "ret; }"},
    {"Arguments", HEADER ".func f(.param .b32 a) { ret; }\n.visible .entry k() {\n",
     "{ .param .b32 x; st.param.b32 [x], 1; call f, (x); }\n", "", "", "ret; }"},
    {"LongNames", HEADER, ".global .u32 a_name_that_is_long_and_has_a_prefix_$i;\n", "", "",
     ".visible .entry k() { ret; }"},
};

static cost run_ptx(int row, int n)
{
    bytes b = {0};
    bytes_text(&b, "%s", ptx_cases[row].begin);
    repeat(&b, ptx_cases[row].item, n, "");
    bytes_text(&b, "%s", ptx_cases[row].between);
    repeat(&b, ptx_cases[row].second, n, "");
    bytes_text(&b, "%s\n", ptx_cases[row].end);
    cost c = {.input = b.size};
    ptxvm *vm = NULL;
    ptxvm_module *module = NULL;
    ptxvm_kernel *kernel;
    ptxvm_config config = {.sm = "sm_80", .threads = 1};
    if (!CHECK_EQ_I64(ptxvm_create(&config, &vm), PTXVM_OK))
        return c;
    work_begin();
    ptxvm_status status = ptxvm_module_load(vm, (const char *)b.data, b.size, &module);
    if (status == PTXVM_OK && (status = ptxvm_module_kernel(module, "k", &kernel)) == PTXVM_OK)
        status =
            ptxvm_launch(vm, kernel, &(ptxvm_launch_config){.grid = {1, 1, 1}, .block = {32, 1, 1}}, NULL, 0);
    ptxvm_module_unload(module);
    c.counts = work_end();
    if (status != PTXVM_OK)
        FAIL("%s: %s", ptxvm_status_name(status), ptxvm_last_error(vm));
    ptxvm_destroy(vm);
    bytes_free(&b);
    return c;
}

TEST_ROWS(Cost, Ptx, ptx_cases)
{
    cost small = run_ptx(index, SMALL), large = run_ptx(index, TIMES * SMALL);
    check_costs(&small, &large, of_ptx, 1 << 20);
}
