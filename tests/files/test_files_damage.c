/* Damaged files: each is refused with the place and the reason, and nothing else happens. */
#include "files/opened.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- GGUF, byte by byte ---- */

/* One entry ("k": u32 5) and one tensor of two F32, "w": where each field lies. */
enum {
    AT_VERSION = 4,
    AT_TENSORS = 8,
    AT_ENTRIES = 16,
    AT_KEY_LENGTH = 24,
    AT_KEY = 32,
    AT_VALUE_TYPE = 33,
    AT_VALUE = 37,
    AT_NAME_LENGTH = 41,
    AT_NAME = 49,
    AT_RANK = 50,
    AT_DIM = 54,
    AT_TYPE = 62,
    AT_OFFSET = 66,
    AT_DATA = 96
};

static bytes gguf_file(void)
{
    gguf_maker g = {0};
    gguf_entry_u32(&g, "k", 5);
    gguf_tensor(&g, "w", 0, 1, (const int64_t[]){2}, (const float[]){1, 2}, 8);
    return gguf_make(&g);
}

static const struct {
    const char *name;
    size_t at;
    uint64_t value;
    int bytes;
    qdnnStatus_t status;
    const char *says;
} gguf_damages[] = {
    {"Version1", AT_VERSION, 1, 4, QDNN_STATUS_NOT_SUPPORTED,
     "offset 4: GGUF version 1; versions 2 and 3 are read"},
    {"Version4", AT_VERSION, 4, 4, QDNN_STATUS_NOT_SUPPORTED, "GGUF version 4"},
    {"BigEndian", AT_VERSION, 0x03000000, 4, QDNN_STATUS_NOT_SUPPORTED, "a big-endian file"},
    {"HugeTensorCount", AT_TENSORS, UINT64_MAX, 8, QDNN_STATUS_BAD_PARAM,
     "offset 8: 18446744073709551615 tensors"},
    {"TooManyTensors", AT_TENSORS, 5, 8, QDNN_STATUS_BAD_PARAM,
     "offset 8: 5 tensors; the file has 63 more bytes"},
    {"HugeEntryCount", AT_ENTRIES, UINT64_C(1) << 62, 8, QDNN_STATUS_BAD_PARAM,
     "offset 16: 4611686018427387904 metadata entries"},
    {"HugeKey", AT_KEY_LENGTH, UINT64_MAX - 7, 8, QDNN_STATUS_BAD_PARAM,
     "offset 24: a metadata key of 18446744073709551608 bytes"},
    {"KeyNotUtf8", AT_KEY, 0xFF, 1, QDNN_STATUS_BAD_PARAM, "offset 32: a metadata key that is not UTF-8"},
    {"KeyWithNul", AT_KEY, 0, 1, QDNN_STATUS_BAD_PARAM, "a metadata key that is not UTF-8 text"},
    {"ValueType", AT_VALUE_TYPE, 13, 4, QDNN_STATUS_BAD_PARAM,
     "offset 33: metadata value type 13; there are 0 to 12"},
    {"HugeName", AT_NAME_LENGTH, 1000, 8, QDNN_STATUS_BAD_PARAM,
     "offset 41: a tensor's name of 1000 bytes; the file has 55 more"},
    {"NameNotUtf8", AT_NAME, 0xC0, 1, QDNN_STATUS_BAD_PARAM, "offset 49: a tensor's name that is not UTF-8"},
    {"NoRank", AT_RANK, 0, 4, QDNN_STATUS_BAD_PARAM, "offset 50: the tensor 'w' has 0 dimensions"},
    {"HugeRank", AT_RANK, 1000000, 4, QDNN_STATUS_BAD_PARAM, "the tensor 'w' has 1000000 dimensions"},
    {"HugeDimension", AT_DIM, UINT64_MAX, 8, QDNN_STATUS_BAD_PARAM,
     "offset 54: a dimension of 'w' is 18446744073709551615"},
    {"LargerThanFile", AT_DIM, 3, 8, QDNN_STATUS_BAD_PARAM,
     "offset 96: the tensor 'w' takes bytes 0 to 12 of the data, which has 8"},
    {"UnknownType", AT_TYPE, 4, 4, QDNN_STATUS_NOT_SUPPORTED,
     "offset 62: the tensor 'w' is of type 4, which is not known"},
    {"HugeType", AT_TYPE, UINT32_MAX, 4, QDNN_STATUS_NOT_SUPPORTED, "is of type 4294967295"},
    {"RaggedBlocks", AT_TYPE, 2, 4, QDNN_STATUS_BAD_PARAM, "has rows of 2 elements; Q4_0 has blocks of 32"},
    {"Misaligned", AT_OFFSET, 4, 8, QDNN_STATUS_BAD_PARAM,
     "offset 66: the tensor 'w' begins at 4 of the data, which is not a multiple of 32"},
    {"OffsetPastEnd", AT_OFFSET, 32, 8, QDNN_STATUS_BAD_PARAM,
     "takes bytes 32 to 40 of the data, which has 8"},
    {"HugeOffset", AT_OFFSET, UINT64_MAX - 31, 8, QDNN_STATUS_BAD_PARAM,
     "which has 8; the file is cut off or damaged"},
};

TEST_ROWS(FilesDamage, Gguf, gguf_damages)
{
    opened o;
    bytes b = gguf_file();
    REQUIRE(b.size == AT_DATA + 8);
    for (int i = 0; i < gguf_damages[index].bytes; i++)
        b.data[gguf_damages[index].at + (size_t)i] = (uint8_t)(gguf_damages[index].value >> (8 * i));
    opened_make(&o, b, "m.gguf");
    check_refused(o.dir, "m.gguf", gguf_damages[index].status, gguf_damages[index].says);
    opened_close(&o);
}

/* ---- safetensors: header, data, what is said ---- */

#define W(rest) "{\"w\":{\"dtype\":\"F32\"," rest "}}"
static const struct {
    const char *name, *header;
    size_t data;
    qdnnStatus_t status;
    const char *says;
} st_damages[] = {
    {"NotJson", "{\"w\":", 8, QDNN_STATUS_BAD_PARAM,
     "offset 13: the header is not JSON: the text ends too early"},
    {"NotAnObject", "[1]", 8, QDNN_STATUS_BAD_PARAM, "offset 8: the header is not a JSON object"},
    {"BadUtf8", "{\"\xC3\x28\":1}", 0, QDNN_STATUS_BAD_PARAM,
     "offset 10: the header is not JSON: a string that is not UTF-8"},
    {"Surrogate", "{\"\xED\xA0\x80\":1}", 0, QDNN_STATUS_BAD_PARAM, "a string that is not UTF-8"},
    {"TooDeep", "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, QDNN_STATUS_BAD_PARAM,
     "nested too deeply"},
    {"EntryNoObject", "{\"w\":3}", 0, QDNN_STATUS_BAD_PARAM, "the header's entry 'w' is no object"},
    {"NoType", "{\"w\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, QDNN_STATUS_BAD_PARAM,
     "entry 'w' has no dtype"},
    {"UnknownType", "{\"w\":{\"dtype\":\"Q9\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     QDNN_STATUS_NOT_SUPPORTED, "is of type 'Q9'"},
    {"NoShape", W("\"data_offsets\":[0,8]"), 8, QDNN_STATUS_BAD_PARAM, "has no shape"},
    {"NegativeSize", W("\"shape\":[-2],\"data_offsets\":[0,8]"), 8, QDNN_STATUS_BAD_PARAM,
     "has an invalid dimension"},
    {"HugeSize", W("\"shape\":[99999999999999999999],\"data_offsets\":[0,8]"), 8, QDNN_STATUS_BAD_PARAM,
     "an invalid dimension"},
    {"HugeProduct", W("\"shape\":[1099511627776,1099511627776],\"data_offsets\":[0,8]"), 8,
     QDNN_STATUS_BAD_PARAM, "has 2^60 elements or more"},
    {"ManyDimensions", W("\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]"), 8,
     QDNN_STATUS_NOT_SUPPORTED, "has 9 dimensions"},
    {"NoPlace", W("\"shape\":[2]"), 8, QDNN_STATUS_BAD_PARAM, "has no data_offsets"},
    {"PlaceOfThree", W("\"shape\":[2],\"data_offsets\":[0,4,8]"), 8, QDNN_STATUS_BAD_PARAM,
     "has no data_offsets of two increasing"},
    {"PlaceBackwards", W("\"shape\":[2],\"data_offsets\":[8,0]"), 8, QDNN_STATUS_BAD_PARAM,
     "has no data_offsets of two increasing"},
    {"PastTheEnd", W("\"shape\":[2],\"data_offsets\":[0,8]"), 7, QDNN_STATUS_BAD_PARAM,
     "takes bytes 0 to 8 of the data, which has 7"},
    {"HugePlace", W("\"shape\":[2],\"data_offsets\":[18446744073709551608,18446744073709551615]"), 8,
     QDNN_STATUS_BAD_PARAM, "which has 8"},
    {"WrongSize", W("\"shape\":[3],\"data_offsets\":[0,8]"), 8, QDNN_STATUS_BAD_PARAM,
     "has 8 bytes; its type and shape need 12"},
    {"BytesOfNobody", W("\"shape\":[2],\"data_offsets\":[0,8]"), 12, QDNN_STATUS_BAD_PARAM,
     "has 12 bytes, but the tensors have 8"},
    {"HalfAByte", "{\"w\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, QDNN_STATUS_BAD_PARAM,
     "do not fill its last byte"},
    {"MetadataNumbers", "{\"__metadata__\":{\"a\":1}}", 0, QDNN_STATUS_BAD_PARAM,
     "__metadata__ is not an object of strings"},
    {"Twice",
     "{\"w\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},\"w\":{\"dtype\":\"I8\",\"shape\":[2],"
     "\"data_offsets\":[2,4]}}",
     4, QDNN_STATUS_BAD_PARAM, "duplicate tensor 'w'"},
    {"Overlapping",
     "{\"v\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]},\"w\":{\"dtype\":\"I8\",\"shape\":[2],"
     "\"data_offsets\":[2,4]}}",
     4, QDNN_STATUS_BAD_PARAM, "the tensor 'w' begins inside 'v', which ends at offset"},
};

TEST_ROWS(FilesDamage, Safetensors, st_damages)
{
    opened o;
    const uint8_t data[16] = {0};
    opened_make(&o, st_raw(st_damages[index].header, data, st_damages[index].data), "m.safetensors");
    check_refused(o.dir, "m.safetensors", st_damages[index].status, st_damages[index].says);
    opened_close(&o);
}

TEST_CASE(FilesDamage, LengthsOfHeaders)
{
    opened o;
    bytes b = {0};
    bytes_number(&b, 100000001, 8);
    opened_make(&o, b, "m.safetensors");
    check_refused(o.dir, "m.safetensors", QDNN_STATUS_BAD_PARAM,
                  "offset 0: a header of 100000001 bytes; safetensors has at most");
    text_write("\x10", o.dir, "m.safetensors");
    check_refused(o.dir, "m.safetensors", QDNN_STATUS_BAD_PARAM,
                  "1 bytes are too few for a safetensors file");
    text_write("", o.dir, "m.safetensors");
    check_refused(o.dir, "m.safetensors", QDNN_STATUS_BAD_PARAM, "the file is empty");
    text_write("something else", o.dir, "m.bin");
    check_refused(o.dir, "m.bin", QDNN_STATUS_NOT_SUPPORTED, "is neither GGUF nor safetensors");
    check_refused(o.dir, "none.gguf", QDNN_STATUS_BAD_PARAM, "cannot be read: No such file");
    opened_close(&o);
}

/* ---- overlapping and repeated, GGUF ---- */

TEST_CASE(FilesDamage, GgufTensorsThatShare)
{
    gguf_maker g = {0};
    opened o;
    const uint8_t data[64] = {0};
    gguf_tensor(&g, "v", 24, 1, (const int64_t[]){40}, data, 40);
    gguf_tensor(&g, "w", 24, 1, (const int64_t[]){40}, data, 40);
    bytes b = gguf_make(&g);
    for (size_t i = 0; i + 8 < b.size; i++) /* the second one's offset, 64 */
        if (memcmp(b.data + i, "\x18\0\0\0\x40\0\0\0\0\0\0\0", 12) == 0)
            b.data[i + 4] = 32;
    opened_make(&o, b, "m.gguf");
    check_refused(o.dir, "m.gguf", QDNN_STATUS_BAD_PARAM, "the tensor 'w' begins inside 'v'");
    opened_close(&o);
}

TEST_CASE(FilesDamage, GgufNamesArraysAndAlignment)
{
    gguf_maker g = {0}, h = {0}, depth = {0}, alignment = {0}, kind = {0}, huge = {0};
    bytes nested = {0}, count = {0};
    opened o;
    gguf_tensor(&g, "w", 24, 1, (const int64_t[]){1}, "x", 1);
    gguf_tensor(&g, "w", 24, 1, (const int64_t[]){1}, "y", 1);
    opened_make(&o, gguf_make(&g), "a.gguf");
    check_refused(o.dir, "a.gguf", QDNN_STATUS_BAD_PARAM, "duplicate tensor 'w'");
    gguf_entry_u32(&h, "k", 1);
    gguf_entry_u32(&h, "k", 1);
    bytes b = gguf_make(&h);
    bytes_write(&b, o.dir, "b.gguf");
    bytes_free(&b);
    check_refused(o.dir, "b.gguf", QDNN_STATUS_BAD_PARAM, "offset 41: duplicate metadata entry 'k'");
    for (int i = 0; i < 6; i++) {
        bytes_number(&nested, 9, 4);
        bytes_number(&nested, 1, 8);
    }
    gguf_entry(&depth, "k", 9, nested.data, nested.size);
    b = gguf_make(&depth);
    bytes_write(&b, o.dir, "c.gguf");
    bytes_free(&b);
    bytes_free(&nested);
    check_refused(o.dir, "c.gguf", QDNN_STATUS_BAD_PARAM, "metadata arrays nested more than 4 deep");
    bytes_number(&count, 4, 4);
    bytes_number(&count, UINT64_C(1) << 62, 8); /* times 4 bytes is 0 */
    gguf_entry(&huge, "k", 9, count.data, count.size);
    b = gguf_make(&huge);
    bytes_write(&b, o.dir, "f.gguf");
    bytes_free(&b);
    bytes_free(&count);
    check_refused(o.dir, "f.gguf", QDNN_STATUS_BAD_PARAM,
                  "offset 41: a metadata array of 4611686018427387904 elements");
    gguf_entry_u32(&alignment, "general.alignment", 24);
    b = gguf_make(&alignment);
    bytes_write(&b, o.dir, "d.gguf");
    bytes_free(&b);
    check_refused(o.dir, "d.gguf", QDNN_STATUS_BAD_PARAM,
                  "general.alignment is 24; it must be a power of two");
    gguf_entry_string(&kind, "general.alignment", "32");
    b = gguf_make(&kind);
    bytes_write(&b, o.dir, "e.gguf");
    bytes_free(&b);
    check_refused(o.dir, "e.gguf", QDNN_STATUS_BAD_PARAM, "general.alignment is not an integer");
    opened_close(&o);
}

/* ---- every cut and every flipped bit ---- */

static bytes quantized_file(void)
{
    st_maker s = {0};
    const uint8_t zeros[128] = {0};
    st_metadata(
        &s,
        "{\"format\":\"pt\",\"quantization_config\":\"{\\\"quant_method\\\":\\\"gptq\\\",\\\"bits\\\":4}\"}");
    st_add(&s, "a.qweight", "I32", 2, 8, zeros, 64);
    st_add(&s, "a.qzeros", "I32", 1, 1, zeros, 4);
    st_add(&s, "a.scales", "F16", 1, 8, zeros, 16);
    st_add(&s, "a.g_idx", "I32", 16, 0, zeros, 64);
    const char *state = "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[2,8]}";
    st_add(&s, "b.weight", "U8", 8, 1, zeros, 8);
    st_add(&s, "b.weight.absmax", "F32", 1, 0, zeros, 4);
    st_add(&s, "b.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(state), 0, state,
           strlen(state));
    return st_make(&s);
}

/* A file that is not whole is never taken for one; a bit more or less is read or refused, and never more than that. The file
 * is changed in place. */
static void open_damaged(const char *path, bool must_fail)
{
    qdnnFile_t file = NULL;
    char why[256] = "";
    if (qdnnOpenFile(path, &file) != QDNN_STATUS_SUCCESS)
        qdnnGetLastFileErrorString(why, sizeof why);
    CHECK((file == NULL) == (why[0] != 0));
    CHECK(!must_fail || file == NULL);
    qdnnCloseFile(file);
}

static void damage_all(bytes b, const char *name)
{
    opened o;
    char path[1024];
    size_t size = b.size;
    uint8_t *copy = malloc(size);
    memcpy(copy, b.data, size);
    opened_make(&o, b, name);
    snprintf(path, sizeof path, "%s/%s", o.dir, name);
    int file = open(path, O_WRONLY);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        uint8_t flipped = copy[bit / 8] ^ (uint8_t)(1 << bit % 8);
        CHECK(pwrite(file, &flipped, 1, (off_t)(bit / 8)) == 1);
        open_damaged(path, false);
        CHECK(pwrite(file, &copy[bit / 8], 1, (off_t)(bit / 8)) == 1);
    }
    while (size-- > 0 && CHECK(ftruncate(file, (off_t)size) == 0))
        open_damaged(path, true);
    close(file);
    free(copy);
    opened_close(&o);
}

TEST_CASE(FilesDamage, EveryCutAndEveryBitOfGguf)
{
    damage_all(gguf_file(), "m.gguf");
}

TEST_CASE(FilesDamage, EveryCutAndEveryBitOfSafetensors)
{
    damage_all(quantized_file(), "m.safetensors");
}
