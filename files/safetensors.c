/* safetensors: a u64 length, that many bytes of JSON, then the data.
 *
 * The JSON has one member per tensor with its type, shape and place in the data, and optionally __metadata__. Every
 * byte of the data must belong to a tensor. */
#include "files/internal.h"

#include <string.h>

enum { HEADER_MAX = 100000000 };

static const struct {
    const char *name;
    int bits;
    qdnnDataType_t type;
} types[] = {
    {"F32", 32, QDNN_DATA_F32},       {"F16", 16, QDNN_DATA_F16},       {"BF16", 16, QDNN_DATA_BF16},
    {"F64", 64, QDNN_DATA_F64},       {"I8", 8, QDNN_DATA_I8},          {"U8", 8, QDNN_DATA_U8},
    {"I16", 16, QDNN_DATA_I16},       {"U16", 16, QDNN_DATA_U16},       {"I32", 32, QDNN_DATA_I32},
    {"U32", 32, QDNN_DATA_U32},       {"I64", 64, QDNN_DATA_I64},       {"U64", 64, QDNN_DATA_U64},
    {"F8_E4M3", 8, QDNN_DATA_F8E4M3}, {"F8_E5M2", 8, QDNN_DATA_F8E5M2}, {"BOOL", 8, QDNN_DATA_OPAQUE},
    {"F8_E8M0", 8, QDNN_DATA_OPAQUE}, {"F4", 4, QDNN_DATA_OPAQUE},      {"F6_E2M3", 6, QDNN_DATA_OPAQUE},
    {"F6_E3M2", 6, QDNN_DATA_OPAQUE}, {"C64", 64, QDNN_DATA_OPAQUE},
};

static uint64_t header_bytes(const shard *s)
{
    uint64_t n = 0;
    for (int i = 8; i-- > 0;)
        n = n << 8 | s->data[i];
    return n;
}

bool safetensors_begins(const shard *s)
{
    return s->bytes > 8 && header_bytes(s) <= HEADER_MAX && s->data[8] == '{';
}

/* ---- one tensor ---- */

static qdnnStatus_t wrong(const shard *s, const json_value *v, const char *what)
{
    return files_damaged(s, 8, "the header's entry '%.200s' %s", v->name, what);
}

static qdnnStatus_t read_type(const shard *s, const json_value *v, qdnnFileTensor_t *t, int *bits)
{
    const char *name = json_string(v, "dtype");
    if (!name)
        return wrong(s, v, "has no dtype");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) != 0)
            continue;
        t->typeName = types[i].name;
        t->type = types[i].type;
        *bits = types[i].bits;
        return QDNN_STATUS_SUCCESS;
    }
    return files_error(QDNN_STATUS_NOT_SUPPORTED,
                       "%s: offset 8: the tensor '%.200s' is of type '%.40s', which is not known", s->path,
                       v->name, name);
}

static qdnnStatus_t read_shape(const shard *s, const json_value *v, qdnnFileTensor_t *t, uint64_t *elements)
{
    const json_value *shape = json_at(v, "shape");
    if (!shape || shape->kind != JSON_ARRAY)
        return wrong(s, v, "has no shape");
    if (shape->count > QDNN_DIMS_MAX)
        return files_error(QDNN_STATUS_NOT_SUPPORTED,
                           "%s: offset 8: the tensor '%.200s' has %u dimensions; at most %d are read",
                           s->path, v->name, (unsigned)shape->count, QDNN_DIMS_MAX);
    for (const json_value *size = shape->first; size; size = size->next) {
        uint64_t n;
        if (!json_u64(size, "", &n) || n >> 60)
            return wrong(s, v, "has an invalid dimension");
        t->dims[t->rank++] = (int64_t)n;
    }
    return files_elements(t->rank, t->dims, elements) ? QDNN_STATUS_SUCCESS
                                                      : wrong(s, v, "has 2^60 elements or more");
}

/* The place must have the size given by type and shape, and lie within the data. */
static qdnnStatus_t read_place(const shard *s, const json_value *v, uint64_t expected, qdnnFileTensor_t *t)
{
    uint64_t from, to, begin = 8 + header_bytes(s), room = s->bytes - begin;
    const json_value *place = json_at(v, "data_offsets");
    if (!place || place->kind != JSON_ARRAY || place->count != 2 || !json_u64(place, "0", &from) ||
        !json_u64(place, "1", &to) || to < from)
        return wrong(s, v, "has no data_offsets of two increasing numbers");
    if (to > room)
        return files_damaged(
            s, begin,
            "the tensor '%.200s' takes bytes %llu to %llu of the data, which has %llu; the file is cut "
            "off or damaged",
            t->name, (unsigned long long)from, (unsigned long long)to, (unsigned long long)room);
    if (to - from != expected)
        return files_damaged(s, begin + from,
                             "the tensor '%.200s' has %llu bytes; its type and shape need %llu", t->name,
                             (unsigned long long)(to - from), (unsigned long long)expected);
    t->offset = begin + from;
    t->bytes = expected;
    t->data = s->data + t->offset;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_tensor(struct qdnnFile *f, int number, const json_value *v)
{
    const shard *s = &f->shards[number];
    qdnnFileTensor_t t = {.shard = number};
    int bits = 0;
    uint64_t elements;
    if (v->kind != JSON_OBJECT)
        return wrong(s, v, "is no object");
    if (f->n_tensors == FILES_TENSORS_MAX)
        return files_damaged(s, 8, "more than %d tensors", FILES_TENSORS_MAX);
    if (strlen(v->name) > FILES_NAME_MAX)
        return files_damaged(s, 8, "a tensor's name has %zu bytes; at most %d are allowed", strlen(v->name),
                             FILES_NAME_MAX);
    FILES_TRY(read_type(s, v, &t, &bits));
    FILES_TRY(read_shape(s, v, &t, &elements));
    t.name = file_copy(f, v->name, strlen(v->name));
    if (!t.name)
        return files_no_memory();
    if (elements * (uint64_t)(bits % 8) % 8)
        return wrong(s, v, "has elements that do not fill its last byte");
    FILES_TRY(read_place(s, v, elements / 8 * (uint64_t)bits + elements % 8 * (uint64_t)bits / 8, &t));
    qdnnFileTensor_t *place = file_add_tensor(f);
    if (!place)
        return files_no_memory();
    *place = t;
    return QDNN_STATUS_SUCCESS;
}

/* ---- the file ---- */

static qdnnStatus_t read_metadata(struct qdnnFile *f, const shard *s, const json_value *v)
{
    int first = f->n_metadata;
    for (const json_value *entry = v->first; entry; entry = entry->next) {
        if (v->kind != JSON_OBJECT || entry->kind != JSON_STRING)
            return files_damaged(s, 8, "__metadata__ is not an object of strings");
        qdnnFileMetadata_t *m = file_add_metadata(f);
        size_t n = strlen(entry->text), shown = files_cut(entry->text, n);
        if (!m || !(m->key = file_copy(f, entry->name, strlen(entry->name))) ||
            !(m->data = file_copy(f, entry->text, n)) ||
            !(m->text = shown < n ? file_copy(f, entry->text, shown) : m->data))
            return files_no_memory();
        m->bytes = n;
    }
    return file_check_keys(f, s, first);
}

/* Tensors do not overlap (checked later), so the sum of their sizes shows whether bytes are left over. */
static qdnnStatus_t check_sum(const struct qdnnFile *f, int number, int first)
{
    const shard *s = &f->shards[number];
    uint64_t begin = 8 + header_bytes(s), sum = 0;
    for (int i = first; i < f->n_tensors; i++)
        sum += f->tensors[i].bytes;
    if (sum < s->bytes - begin)
        return files_damaged(s, begin, "the data has %llu bytes, but the tensors have %llu",
                             (unsigned long long)(s->bytes - begin), (unsigned long long)sum);
    return QDNN_STATUS_SUCCESS;
}

/* The header, read member by member: its values would take many times its size. */
typedef struct header_reader {
    struct qdnnFile *f;
    int number; /* of the shard */
    bool has_metadata;
    qdnnStatus_t status;
} header_reader;

static bool read_member(void *user, const json_value *v)
{
    header_reader *h = user;
    const shard *s = &h->f->shards[h->number];
    bool metadata = strcmp(v->name, "__metadata__") == 0;
    if (metadata && h->has_metadata)
        h->status = files_damaged(s, 8, "the header has two entries '__metadata__'");
    else
        h->status = metadata ? read_metadata(h->f, s, v) : read_tensor(h->f, h->number, v);
    h->has_metadata = h->has_metadata || metadata;
    return h->status == QDNN_STATUS_SUCCESS;
}

/* Whether the JSON is a value other than an object. */
static bool is_other_value(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && memchr(" \n\t\r", text[at], 4))
        at++;
    return at < bytes && memchr("[\"-0123456789tfn", text[at], 16);
}

static qdnnStatus_t read_header(struct qdnnFile *f, int number, const char *text, size_t bytes)
{
    const shard *s = &f->shards[number];
    int first = f->n_tensors;
    json_error error;
    header_reader h = {.f = f, .number = number};
    if (is_other_value(text, bytes))
        return files_damaged(s, 8, "the header is not a JSON object");
    if (json_read_members(text, bytes, FILES_MEMBER_VALUES_MAX, read_member, &h, &error))
        return check_sum(f, number, first);
    if (h.status)
        return h.status;
    return error.no_memory ? files_no_memory()
                           : files_damaged(s, 8 + error.offset, "the header is not JSON: %s", error.reason);
}

qdnnStatus_t safetensors_read(struct qdnnFile *f, int number)
{
    const shard *s = &f->shards[number];
    f->kind = QDNN_FILE_SAFETENSORS;
    if (s->bytes < 8)
        return files_damaged(s, 0, "%llu bytes are too few for a safetensors file; it is cut off",
                             (unsigned long long)s->bytes);
    uint64_t bytes = header_bytes(s);
    if (bytes > HEADER_MAX)
        return files_damaged(s, 0, "a header of %llu bytes; safetensors has at most %d",
                             (unsigned long long)bytes, HEADER_MAX);
    if (bytes > s->bytes - 8)
        return files_damaged(s, 0, "a header of %llu bytes; the file has %llu more, it is cut off",
                             (unsigned long long)bytes, (unsigned long long)(s->bytes - 8));
    return read_header(f, number, (const char *)s->data + 8, (size_t)bytes);
}
