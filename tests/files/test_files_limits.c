/* The limits of the readers, each at the limit and one beyond. */
#include "files/opened.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens the file of a limit; a null message: it must be accepted. */
static void check_limit(bytes b, const char *name, const char *says)
{
    opened o;
    opened_make(&o, b, name);
    if (says)
        check_refused(o.dir, name, QDNN_STATUS_BAD_PARAM, says);
    else
        CHECK(opened_open(&o, name));
    opened_close(&o);
}

/* Arrays of arrays, the innermost with one byte. */
static bytes nested_arrays(int depth)
{
    gguf_maker g = {0};
    bytes value = {0};
    for (int i = 0; i < depth; i++) {
        bytes_number(&value, i + 1 < depth ? 9 : 0, 4);
        bytes_number(&value, 1, 8);
    }
    bytes_number(&value, 7, 1);
    gguf_entry(&g, "k", 9, value.data, value.size);
    bytes_free(&value);
    return gguf_make(&g);
}

TEST_CASE(FilesLimits, DepthOfGgufArrays)
{
    check_limit(nested_arrays(1), "m.gguf", NULL);
    check_limit(nested_arrays(4), "m.gguf", NULL);
    check_limit(nested_arrays(5), "m.gguf", "metadata arrays nested more than 4 deep");
}

static const struct {
    const char *name;
    uint32_t alignment;
    const char *says; /* null: accepted */
} alignments[] = {
    {"One", 1, NULL},
    {"Largest", 1 << 20, NULL},
    {"Zero", 0, "general.alignment is 0; it must be a power of two up to 1048576"},
    {"NoPower", 3, "general.alignment is 3;"},
    {"Beyond", 1 << 21, "general.alignment is 2097152;"},
    {"LargestNumber", UINT32_MAX, "general.alignment is 4294967295;"},
};

TEST_ROWS(FilesLimits, GgufAlignment, alignments)
{
    gguf_maker g = {0};
    bool accepted = !alignments[index].says;
    g.alignment = accepted ? alignments[index].alignment : 0;
    if (!accepted)
        gguf_entry_u32(&g, "general.alignment", alignments[index].alignment);
    gguf_tensor(&g, "a", 24, 1, (const int64_t[]){1}, "x", 1);
    gguf_tensor(&g, "b", 24, 1, (const int64_t[]){1}, "y", 1);
    check_limit(gguf_make(&g), "m.gguf", alignments[index].says);
}

TEST_CASE(FilesLimits, LengthOfNames)
{
    enum { MOST = 4096 };
    char name[MOST + 2];
    for (int length = MOST; length <= MOST + 1; length++) {
        gguf_maker g = {0}, key = {0};
        bytes header = {0};
        memset(name, 'n', (size_t)length);
        name[length] = 0;
        bool fits = length == MOST;
        gguf_tensor(&g, name, 24, 1, (const int64_t[]){1}, "x", 1);
        check_limit(gguf_make(&g), "m.gguf",
                    fits ? NULL : "a tensor's name of 4097 bytes; at most 4096 are allowed");
        gguf_entry_u32(&key, name, 1);
        check_limit(gguf_make(&key), "m.gguf",
                    fits ? NULL : "a metadata key of 4097 bytes; at most 4096 are allowed");
        bytes_put(&header, "{\"", 2);
        bytes_put(&header, name, (size_t)length);
        bytes_text(&header, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
        check_limit(st_raw((const char *)header.data, "x", 1), "m.safetensors",
                    fits ? NULL : "a tensor's name has 4097 bytes; at most 4096 are allowed");
        bytes_free(&header);
    }
}

TEST_CASE(FilesLimits, NumberOfGgufEntries)
{
    enum { MOST = 1 << 16 };
    for (int count = MOST; count <= MOST + 1; count++) {
        gguf_maker g = {0};
        for (int i = 0; i < count; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            gguf_entry(&g, key, 0, "\1", 1);
        }
        check_limit(gguf_make(&g), "m.gguf",
                    count == MOST ? NULL : "65537 metadata entries; at most 65536 are allowed");
    }
}

/* What is shown of a value ends after 200 bytes, before a character that would be cut. */
TEST_CASE(FilesLimits, TextOfMetadata)
{
    static const struct {
        int before; /* bytes of ASCII before the character */
        const char *character;
        int shown;
    } cases[] = {{199, "x", 200},
                 {200, "x", 200},
                 {199, "\xC3\xA4", 199},
                 {198, "\xC3\xA4", 200},
                 {197, "\xE2\x82\xAC", 200},
                 {198, "\xE2\x82\xAC", 198},
                 {197, "\xF0\x9F\x98\x80", 197},
                 {196, "\xF0\x9F\x98\x80", 200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300] = "";
        gguf_maker g = {0};
        opened o;
        qdnnFileMetadata_t m;
        memset(text, 'a', (size_t)cases[i].before);
        strcat(text, cases[i].character);
        gguf_entry_string(&g, "k", text);
        opened_make(&o, gguf_make(&g), "m.gguf");
        if (opened_open(&o, "m.gguf") && CHECK(!qdnnGetFileMetadata(o.file, 0, &m)))
            CHECK_EQ_I64((int64_t)strlen(m.text), cases[i].shown);
        opened_close(&o);
    }
}
