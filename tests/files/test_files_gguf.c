/* GGUF files as they should be. */
#include "files/opened.h"
#include "formats/gguf_vectors.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static bytes small_file(uint32_t version, uint32_t alignment)
{
    gguf_maker g = {.version = version, .alignment = alignment};
    const float plain[6] = {1, 2, 3, 4, 5, 6};
    const uint8_t q8_0[68] = {0x00, 0x3C, 1, 2, 3}; /* two blocks, the first with d = 1 */
    const uint32_t array[3] = {7, 8, 9};
    bytes strings = {0}, numbers = {0};
    bytes_number(&strings, 8, 4);
    bytes_number(&strings, 2, 8);
    gguf_string(&strings, "a");
    gguf_string(&strings, "bc");
    bytes_number(&numbers, 4, 4);
    bytes_number(&numbers, 3, 8);
    bytes_put(&numbers, array, sizeof array);
    gguf_entry_string(&g, "general.architecture", "test");
    gguf_entry(&g, "a.float", 6, &(float){0.5f}, 4);
    gguf_entry(&g, "a.double", 12, &(double){0.25}, 8);
    gguf_entry(&g, "a.signed", 3, &(int16_t){-3}, 2);
    gguf_entry(&g, "a.long", 11, &(int64_t){-4}, 8);
    gguf_entry(&g, "a.byte", 0, &(uint8_t){200}, 1);
    gguf_entry(&g, "a.bool", 7, &(uint8_t){1}, 1);
    gguf_entry(&g, "a.strings", 9, strings.data, strings.size);
    gguf_entry(&g, "a.numbers", 9, numbers.data, numbers.size);
    gguf_tensor(&g, "plain.weight", 0, 2, (const int64_t[]){2, 3}, plain, sizeof plain);
    gguf_tensor(&g, "blocks.weight", 8, 2, (const int64_t[]){2, 32}, q8_0, sizeof q8_0);
    gguf_tensor(&g, "index", 26, 1, (const int64_t[]){3}, array, sizeof array);
    bytes_free(&strings);
    bytes_free(&numbers);
    return gguf_make(&g);
}

static void check_tensors(const opened *o)
{
    qdnnFileTensor_t t;
    int index;
    REQUIRE(!qdnnFindFileTensor(o->file, "plain.weight", &index) && !qdnnGetFileTensor(o->file, index, &t));
    CHECK_EQ_I64(index, 0);
    CHECK_EQ_STR(t.typeName, "F32");
    CHECK_EQ_I64(t.type, QDNN_DATA_F32);
    CHECK_EQ_I64(t.rank, 2);
    CHECK_EQ_I64(t.dims[0], 2);
    CHECK_EQ_I64(t.dims[1], 3);
    CHECK_EQ_I64(t.bytes, 24);
    CHECK_EQ_I64(t.weight, 0);
    CHECK_EQ_F32(((const float *)t.data)[5], 6.0f);
    REQUIRE(!qdnnGetFileTensor(o->file, 1, &t));
    CHECK_EQ_STR(t.name, "blocks.weight");
    CHECK_EQ_STR(t.typeName, "Q8_0");
    CHECK_EQ_I64(t.block, QDNN_BLOCK_Q8_0);
    CHECK_EQ_I64(t.type, QDNN_DATA_OPAQUE);
    CHECK_EQ_I64(t.bytes, 68);
    REQUIRE(!qdnnGetFileTensor(o->file, 2, &t));
    CHECK_EQ_I64(t.weight, -1); /* integers are not weights */
}

static void check_metadata(const opened *o)
{
    static const char *const texts[][2] = {{"general.architecture", "test"},
                                           {"a.float", "0.5"},
                                           {"a.double", "0.25"},
                                           {"a.signed", "-3"},
                                           {"a.long", "-4"},
                                           {"a.byte", "200"},
                                           {"a.bool", "true"},
                                           {"a.strings", "[2 strings]"},
                                           {"a.numbers", "[3 u32]"}};
    for (int i = 0; i < 9; i++) {
        qdnnFileMetadata_t m;
        REQUIRE(!qdnnGetFileMetadata(o->file, i, &m));
        CHECK_EQ_STR(m.key, texts[i][0]);
        CHECK_EQ_STR(m.text, texts[i][1]);
    }
    qdnnFileMetadata_t m;
    REQUIRE(!qdnnGetFileMetadata(o->file, 3, &m)); /* the entry as it is: length, key, type, value */
    CHECK_EQ_I64(m.bytes, 8 + 8 + 4 + 2);
    CHECK_EQ_MEM(m.data, "\x08\0\0\0\0\0\0\0a.signed\x03\0\0\0\xFD\xFF", 22);
}

static const struct {
    const char *name;
    uint32_t version, alignment;
} kinds[] = {{"v3", 3, 0}, {"v2", 2, 0}, {"aligned_64", 3, 64}, {"aligned_8", 2, 8}};

TEST_ROWS(FilesGguf, ReadsTensorsAndMetadata, kinds)
{
    opened o;
    qdnnFileInfo_t info;
    qdnnFileWeight_t w;
    opened_make(&o, small_file(kinds[index].version, kinds[index].alignment), "m.gguf");
    if (opened_open(&o, "m.gguf") && CHECK(!qdnnGetFileInfo(o.file, &info))) {
        CHECK_EQ_I64(info.kind, QDNN_FILE_GGUF);
        CHECK_EQ_I64(info.version, kinds[index].version);
        CHECK_EQ_I64(info.tensors, 3);
        CHECK_EQ_I64(info.weights, 2);
        CHECK_EQ_I64(info.metadata, 9 + (kinds[index].alignment != 0));
        check_tensors(&o);
        check_metadata(&o);
        if (find_weight(&o, "blocks.weight", &w)) {
            float expected[64] = {1, 2, 3};
            CHECK_EQ_I64(w.weights, QDNN_WEIGHTS_GGUF_Q8_0);
            CHECK_EQ_STR(w.format, "Q8_0");
            CHECK(w.quantized);
            check_values(&w, expected, 64);
        }
        if (find_weight(&o, "plain.weight", &w)) {
            CHECK(!w.quantized);
            CHECK_EQ_I64(w.weights, QDNN_WEIGHTS_F32);
        }
    }
    opened_close(&o);
}

/* Numbers in files of the blocks that have known answers. */
static const struct {
    qdnnBlockFormat_t block;
    uint32_t number;
} numbers[] = {
    {QDNN_BLOCK_Q4_0, 2},     {QDNN_BLOCK_Q4_1, 3},    {QDNN_BLOCK_Q5_0, 6},    {QDNN_BLOCK_Q5_1, 7},
    {QDNN_BLOCK_Q8_0, 8},     {QDNN_BLOCK_Q2_K, 10},   {QDNN_BLOCK_Q3_K, 11},   {QDNN_BLOCK_Q4_K, 12},
    {QDNN_BLOCK_Q5_K, 13},    {QDNN_BLOCK_Q6_K, 14},   {QDNN_BLOCK_IQ4_NL, 20}, {QDNN_BLOCK_IQ4_XS, 23},
    {QDNN_BLOCK_TQ1_0, 34},   {QDNN_BLOCK_TQ2_0, 35},  {QDNN_BLOCK_MXFP4, 39},  {QDNN_BLOCK_NVFP4, 40},
    {QDNN_BLOCK_Q1_0, 41},    {QDNN_BLOCK_Q2_0, 42},   {QDNN_BLOCK_IQ1_S, 19},  {QDNN_BLOCK_IQ1_M, 29},
    {QDNN_BLOCK_IQ2_XXS, 16}, {QDNN_BLOCK_IQ2_XS, 17}, {QDNN_BLOCK_IQ2_S, 22},  {QDNN_BLOCK_IQ3_XXS, 18},
    {QDNN_BLOCK_IQ3_S, 21}};

static uint32_t number_of(qdnnBlockFormat_t block)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].block == block)
            return numbers[i].number;
    return UINT32_MAX;
}

/* The index-th file of blocks to numbers. */
static const gguf_file *vector_at(int index)
{
    return gguf_file_at(false, index);
}

static int vector_count(void)
{
    return gguf_file_count(false);
}

static void vector_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", vector_at(index)->name);
}

/* Blocks that another implementation decoded, through a file. */
TEST_EACH(FilesGguf, KnownBlocksThroughAFile, vector_count, vector_name)
{
    gguf_vectors v;
    gguf_maker g = {0};
    opened o;
    qdnnFileWeight_t w;
    if (!gguf_vectors_read(vector_at(index), &v))
        SKIP("the vectors are not here");
    const int64_t dims[2] = {v.lines, (int64_t)v.block_values};
    gguf_tensor(&g, "w", number_of(vector_at(index)->block), 2, dims, v.blocks,
                (size_t)v.lines * v.block_bytes);
    opened_make(&o, gguf_make(&g), "m.gguf");
    if (opened_open(&o, "m.gguf") && find_weight(&o, "w", &w))
        check_values(&w, v.values, v.lines * (int64_t)v.block_values);
    opened_close(&o);
    gguf_vectors_free(&v);
}

/* A type that the library has no weights of is listed, with what to do. */
TEST_CASE(FilesGguf, UnsupportedTypesAreListed)
{
    gguf_maker g = {0};
    opened o;
    qdnnFileWeight_t w;
    gguf_tensor(&g, "d", 28, 1, (const int64_t[]){1}, &(double){1}, 8);
    opened_make(&o, gguf_make(&g), "m.gguf");
    if (opened_open(&o, "m.gguf")) {
        REQUIRE(!qdnnGetFileWeight(o.file, 0, &w));
        CHECK_EQ_STR(w.format, "F64");
        CHECK_EQ_STR(w.problem, "weights in F64 are not supported; convert them to F32");
        CHECK_EQ_I64(w.bytes, 8);
        qdnnTensorDescriptor_t t = NULL;
        CHECK_EQ_I64(qdnnSetFileWeight(&w, QDNN_DATA_F32, t, NULL), QDNN_STATUS_NOT_SUPPORTED);
    }
    opened_close(&o);
}

/* ---- parts ---- */

static bytes part(int number, int count, const char *name)
{
    gguf_maker g = {0};
    gguf_entry_u16(&g, "split.no", (uint16_t)number);
    gguf_entry_u16(&g, "split.count", (uint16_t)count);
    gguf_entry_u32(&g, "split.tensors.count", 3);
    gguf_tensor(&g, name, 0, 1, (const int64_t[]){1}, &(float){(float)number}, 4);
    return gguf_make(&g);
}

static void write_part(const opened *o, int number, int count, const char *tensor, const char *name)
{
    bytes b = part(number, count, tensor);
    bytes_write(&b, o->dir, name);
    bytes_free(&b);
}

static void make_parts(opened *o)
{
    opened_make(o, part(0, 3, "a"), "m-00001-of-00003.gguf");
    write_part(o, 1, 3, "b", "m-00002-of-00003.gguf");
    write_part(o, 2, 3, "c", "m-00003-of-00003.gguf");
}

TEST_CASE(FilesGguf, PartsAreOneFile)
{
    opened o;
    make_parts(&o);
    if (opened_open(&o, "m-00002-of-00003.gguf")) {
        qdnnFileInfo_t info;
        qdnnFileTensor_t t;
        const char *path;
        qdnnGetFileInfo(o.file, &info);
        CHECK_EQ_I64(info.shards, 3);
        CHECK_EQ_I64(info.tensors, 3);
        CHECK_EQ_I64(info.metadata, 3);
        REQUIRE(!qdnnGetFileTensor(o.file, 2, &t));
        CHECK_EQ_STR(t.name, "c");
        CHECK_EQ_F32(*(const float *)t.data, 2.0f);
        REQUIRE(!qdnnGetFileShard(o.file, t.shard, &path));
        CHECK_HAS(path, "m-00003-of-00003.gguf");
    }
    opened_close(&o);
}

TEST_CASE(FilesGguf, PartsThatAreMissingOrWrong)
{
    opened o;
    char path[1024];
    make_parts(&o);
    snprintf(path, sizeof path, "%s/m-00003-of-00003.gguf", o.dir);
    remove(path);
    check_refused(o.dir, "m-00001-of-00003.gguf", QDNN_STATUS_BAD_PARAM,
                  "m-00003-of-00003.gguf: cannot be read: No such file");
    write_part(&o, 1, 3, "c", "m-00003-of-00003.gguf"); /* leads back to the second */
    check_refused(o.dir, "m-00001-of-00003.gguf", QDNN_STATUS_BAD_PARAM,
                  "says that it is part 2 of 3; by its name it is 3 of 3");
    write_part(&o, 2, 3, "a", "m-00003-of-00003.gguf");
    check_refused(o.dir, "m-00001-of-00003.gguf", QDNN_STATUS_BAD_PARAM, "duplicate tensor 'a'");
    text_write("nothing of it", o.dir, "m-00003-of-00003.gguf");
    check_refused(o.dir, "m-00001-of-00003.gguf", QDNN_STATUS_BAD_PARAM, "part 3 of 3 is not a GGUF file");
    write_part(&o, 0, 2, "a", "renamed.gguf");
    check_refused(o.dir, "renamed.gguf", QDNN_STATUS_BAD_PARAM,
                  "is one of 2 parts; parts are named ...-00001-of-00002.gguf");
    write_part(&o, 0, 2, "a", "n-00001-of-00002.gguf");
    write_part(&o, 1, 2, "b", "n-00002-of-00002.gguf");
    check_refused(o.dir, "n-00001-of-00002.gguf", QDNN_STATUS_BAD_PARAM, "split.tensors.count is 3");
    opened_close(&o);
}
