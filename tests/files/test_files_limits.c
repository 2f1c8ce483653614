/* Limits of files, each at the limit and one beyond. */
#include "files/opened.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static const float zeros[32];

static void add_tensor(gguf_maker *g, const char *name, int rank)
{
    const int64_t dims[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    gguf_tensor(g, name, 0, rank, dims, zeros, 4);
}

static char *long_name(int length)
{
    char *name = calloc(1, (size_t)length + 1);
    memset(name, 'n', (size_t)length);
    return name;
}

static bytes gguf_name(int64_t length)
{
    gguf_maker g = {0};
    char *name = long_name((int)length);
    add_tensor(&g, name, 1);
    free(name);
    return gguf_make(&g);
}

static bytes gguf_key(int64_t length)
{
    gguf_maker g = {0};
    char *name = long_name((int)length);
    gguf_entry_u32(&g, name, 1);
    free(name);
    return gguf_make(&g);
}

static bytes gguf_entries(int64_t n)
{
    gguf_maker g = {0};
    for (int64_t i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "%x", (unsigned)i);
        gguf_entry(&g, key, 7, "\1", 1);
    }
    return gguf_make(&g);
}

static bytes gguf_nesting(int64_t depth)
{
    gguf_maker g = {0};
    bytes value = {0};
    for (int64_t i = 1; i < depth; i++) {
        bytes_number(&value, 9, 4);
        bytes_number(&value, 1, 8);
    }
    bytes_number(&value, 0, 4);
    bytes_number(&value, 1, 8);
    bytes_number(&value, 5, 1);
    gguf_entry(&g, "nested", 9, value.data, value.size);
    bytes_free(&value);
    return gguf_make(&g);
}

static bytes gguf_rank(int64_t rank)
{
    gguf_maker g = {0};
    add_tensor(&g, "t", (int)rank);
    return gguf_make(&g);
}

static bytes gguf_alignment(int64_t alignment)
{
    gguf_maker g = {0};
    gguf_entry_u32(&g, "general.alignment", (uint32_t)alignment);
    return gguf_make(&g);
}

static bytes gguf_version(int64_t version)
{
    gguf_maker g = {.version = (uint32_t)version};
    add_tensor(&g, "t", 1);
    return gguf_make(&g);
}

/* An empty tensor, so that the size of the dimension is all that matters. */
static bytes gguf_dimension(int64_t size)
{
    gguf_maker g = {0};
    gguf_tensor(&g, "t", 0, 2, (const int64_t[]){0, size}, zeros, 0);
    return gguf_make(&g);
}

static bytes st_name(int64_t length)
{
    bytes header = {0};
    char *name = long_name((int)length);
    bytes_put(&header, "{\"", 2);
    bytes_put(&header, name, (size_t)length);
    bytes_text(&header, "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    free(name);
    bytes file = st_raw((const char *)header.data, NULL, 0);
    bytes_free(&header);
    return file;
}

static bytes st_list(const char *begin, int64_t n, const char *end)
{
    bytes header = {0};
    bytes_text(&header, "%s", begin);
    for (int64_t i = 0; i < n; i++)
        bytes_text(&header, "%s1", i ? "," : "");
    bytes_text(&header, "%s", end);
    bytes file = st_raw((const char *)header.data, zeros, strstr(end, "[0,1]") ? 1 : 0);
    bytes_free(&header);
    return file;
}

static bytes st_rank(int64_t rank)
{
    return st_list("{\"t\":{\"dtype\":\"U8\",\"shape\":[", rank, "],\"data_offsets\":[0,1]}}");
}

/* The entry has 7 values beside those of the list. */
static bytes st_values(int64_t n)
{
    return st_list("{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[", n - 8, "]}}");
}

static const struct {
    const char *name;
    bytes (*make)(int64_t n);
    int64_t least, below, most, above; /* -1: there is none */
    const char *says;
} limits[] = {
    {"GgufName", gguf_name, 0, -1, 4096, 4097, "at most 4096 are allowed"},
    {"GgufKey", gguf_key, 0, -1, 4096, 4097, "at most 4096 are allowed"},
    {"GgufEntries", gguf_entries, 0, -1, 65536, 65537, "at most 65536 are allowed"},
    {"GgufNesting", gguf_nesting, 1, -1, 4, 5, "nested more than 4 deep"},
    {"GgufRank", gguf_rank, 1, 0, 8, 9, "it may have 1 to 8"},
    {"GgufAlignment", gguf_alignment, 1, 0, 1 << 20, 1 << 21, "a power of two up to 1048576"},
    {"GgufVersion", gguf_version, 2, 1, 3, 4, "versions 2 and 3 are read"},
    {"GgufDimension", gguf_dimension, 0, -1, (INT64_C(1) << 60) - 1, INT64_C(1) << 60,
     "a dimension of 't' is"},
    {"SafetensorsName", st_name, 0, -1, 4096, 4097, "at most 4096 are allowed"},
    {"SafetensorsRank", st_rank, 0, -1, 8, 9, "at most 8 are read"},
    {"SafetensorsValues", st_values, 8, -1, 1 << 17, (1 << 17) + 1, "too many values"},
};

static void check_limit(int index, int64_t n, bool good)
{
    const char *name = strncmp(limits[index].name, "Gguf", 4) == 0 ? "f.gguf" : "f.safetensors";
    opened o = {0};
    if (n < 0)
        return;
    test_push_note("%lld", (long long)n);
    opened_make(&o, limits[index].make(n), name);
    char path[1024], why[1024] = "";
    snprintf(path, sizeof path, "%s/%s", o.dir, name);
    qdnnStatus_t status = qdnnOpenFile(path, &o.file);
    qdnnGetLastFileErrorString(why, sizeof why);
    if (!CHECK((status == QDNN_STATUS_SUCCESS) == good))
        FAIL("%s", why);
    if (!good)
        CHECK_HAS(why, limits[index].says);
    opened_close(&o);
    test_pop_note();
}

TEST_ROWS(FilesLimits, AtAndBeyond, limits)
{
    check_limit(index, limits[index].least, true);
    check_limit(index, limits[index].below, false);
    check_limit(index, limits[index].most, true);
    check_limit(index, limits[index].above, false);
}
