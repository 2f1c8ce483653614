/* Values of a file's metadata. An entry is its key (u64 length, bytes), a u32 type and the value; a list is the u32
 * type of its elements, a u64 count and the elements. The reader has checked that they lie inside the file. */
#include "text.h"

#include <string.h>

/* As GGUF numbers its types. */
enum { TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };
typedef enum number_kind { KIND_NONE, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT } number_kind;
static const struct {
    uint8_t bytes;
    number_kind kind;
} types[TYPES] = {
    {1, KIND_UNSIGNED}, {1, KIND_SIGNED}, {2, KIND_UNSIGNED}, {2, KIND_SIGNED}, {4, KIND_UNSIGNED},
    {4, KIND_SIGNED},   {4, KIND_FLOAT},  {1, KIND_UNSIGNED}, {0, KIND_NONE},   {0, KIND_NONE},
    {8, KIND_UNSIGNED}, {8, KIND_SIGNED}, {8, KIND_FLOAT},
};

view view_of(const char *text)
{
    return (view){text, text ? strlen(text) : 0};
}

bool view_is(view v, const char *text)
{
    return v.data && v.size == strlen(text) && memcmp(v.data, text, v.size) == 0;
}

/* Little-endian, at any address. */
static uint64_t read_bytes(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static double read_number(const uint8_t *at, uint32_t type)
{
    int bits = 8 * types[type].bytes;
    uint64_t value = read_bytes(at, types[type].bytes);
    float narrow;
    double wide;
    if (types[type].kind == KIND_UNSIGNED)
        return (double)value;
    if (types[type].kind == KIND_SIGNED)
        return (double)((int64_t)(value << (64 - bits)) >> (64 - bits));
    if (bits == 64) {
        memcpy(&wide, &value, sizeof wide);
        return wide;
    }
    uint32_t word = (uint32_t)value;
    memcpy(&narrow, &word, sizeof narrow);
    return (double)narrow;
}

/* A value as a list of one, with the type in front of it as in the list of a single element. */
static metadata_list open_entry(qdnnFile_t file, const char *key)
{
    qdnnFileInfo_t info;
    qdnnFileMetadata_t entry;
    metadata_list list = {0};
    if (qdnnGetFileInfo(file, &info) || info.kind != QDNN_FILE_GGUF)
        return list;
    for (int i = 0; i < info.metadata; i++) {
        if (qdnnGetFileMetadata(file, i, &entry) || strcmp(entry.key, key) != 0)
            continue;
        const uint8_t *data = entry.data;
        list.end = data + entry.bytes;
        data += 8 + read_bytes(data, 8);
        list.type = (uint32_t)read_bytes(data, 4);
        list.count = 1;
        list.at = data + 4;
        if (list.type == TYPE_ARRAY) {
            list.type = (uint32_t)read_bytes(data + 4, 4);
            list.count = read_bytes(data + 8, 8);
            list.at = data + 16;
        }
        break;
    }
    return list;
}

metadata_list metadata_list_open(qdnnFile_t file, const char *key)
{
    return open_entry(file, key);
}

double metadata_list_number(metadata_list *list)
{
    if (list->next == list->count || list->type >= TYPES || types[list->type].kind == KIND_NONE)
        return 0;
    double value = read_number(list->at, list->type);
    list->at += types[list->type].bytes;
    list->next++;
    return value;
}

view metadata_list_text(metadata_list *list)
{
    if (list->next == list->count || list->type != TYPE_STRING)
        return (view){0};
    view text = {(const char *)list->at + 8, (size_t)read_bytes(list->at, 8)};
    list->at += 8 + text.size;
    list->next++;
    return text;
}

double metadata_number_at(qdnnFile_t file, const char *key, uint64_t i, double fallback)
{
    metadata_list list = open_entry(file, key);
    if (list.count == 0 || list.type >= TYPES || types[list.type].kind == KIND_NONE)
        return fallback;
    if (list.count == 1)
        return metadata_list_number(&list);
    if (i >= list.count)
        return fallback;
    list.at += i * types[list.type].bytes;
    return metadata_list_number(&list);
}

double metadata_number(qdnnFile_t file, const char *key, double fallback)
{
    return metadata_number_at(file, key, 0, fallback);
}

view metadata_text(qdnnFile_t file, const char *key)
{
    metadata_list list = open_entry(file, key);
    return metadata_list_text(&list);
}
