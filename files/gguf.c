/* GGUF, versions 2 and 3: a header, metadata, names and places of the tensors, then their data.
 *
 * Everything is little-endian. Strings are a u64 length and bytes. A count is trusted only if the rest of the file has
 * room for what it announces. */
#include "files/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { ALIGNMENT_DEFAULT = 32, ALIGNMENT_MAX = 1 << 20, ARRAY_DEPTH_MAX = 4, ENTRIES_MAX = 1 << 16 };

/* ---- reading ---- */

typedef struct cursor {
    struct qdnnFile *f;
    const shard *s;
    uint64_t at;
} cursor;

static uint64_t left(const cursor *c)
{
    return c->s->bytes - c->at;
}

static uint64_t number_at(const uint8_t *p, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;)
        n = n << 8 | p[i];
    return n;
}

static qdnnStatus_t cut_off(const cursor *c, const char *what)
{
    return files_damaged(c->s, c->at, "the file ends inside %s; it is cut off", what);
}

static qdnnStatus_t read_number(cursor *c, int bytes, const char *what, uint64_t *n)
{
    *n = 0;
    if (left(c) < (uint64_t)bytes)
        return cut_off(c, what);
    *n = number_at(c->s->data + c->at, bytes);
    c->at += (uint64_t)bytes;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_string(cursor *c, const char *what, const char **text, uint64_t *bytes)
{
    uint64_t begin = c->at;
    *text = "";
    FILES_TRY(read_number(c, 8, what, bytes));
    if (*bytes > left(c))
        return files_damaged(c->s, begin, "%s of %llu bytes; the file has %llu more", what,
                             (unsigned long long)*bytes, (unsigned long long)left(c));
    *text = (const char *)c->s->data + c->at;
    c->at += *bytes;
    return QDNN_STATUS_SUCCESS;
}

/* A key or a tensor's name: text of a reasonable length. */
static qdnnStatus_t read_name(cursor *c, const char *what, const char **name)
{
    const char *text;
    uint64_t bytes, begin = c->at;
    FILES_TRY(read_string(c, what, &text, &bytes));
    if (bytes > FILES_NAME_MAX)
        return files_damaged(c->s, begin, "%s of %llu bytes; at most %d are allowed", what,
                             (unsigned long long)bytes, FILES_NAME_MAX);
    size_t good = utf8_check(text, (size_t)bytes);
    if (good < bytes || memchr(text, 0, (size_t)bytes))
        return files_damaged(c->s, begin + 8 + (good < bytes ? good : 0), "%s that is not UTF-8 text", what);
    *name = file_copy(c->f, text, (size_t)bytes);
    return *name ? QDNN_STATUS_SUCCESS : files_no_memory();
}

/* ---- metadata ---- */

typedef enum {
    VALUE_UNSIGNED,
    VALUE_SIGNED,
    VALUE_F32,
    VALUE_F64,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY
} value_kind;

/* Indexed by their numbers in files. */
static const struct {
    const char *name;
    value_kind kind;
    int bytes; /* of a number */
} value_types[] = {
#define VALUE(name, kind, bytes) {name, VALUE_##kind, bytes},
#include "files/gguf_values.def"
#undef VALUE
};
enum { VALUE_TYPES = sizeof value_types / sizeof value_types[0] };

static qdnnStatus_t read_value_type(cursor *c, uint64_t *type)
{
    uint64_t begin = c->at;
    FILES_TRY(read_number(c, 4, "the type of a metadata value", type));
    if (*type >= VALUE_TYPES)
        return files_damaged(c->s, begin, "metadata value type %llu; there are 0 to %d",
                             (unsigned long long)*type, VALUE_TYPES - 1);
    return QDNN_STATUS_SUCCESS;
}

static char *print_number(struct qdnnFile *f, int type, const uint8_t *p)
{
    int bits = 8 * value_types[type].bytes;
    uint64_t n = number_at(p, value_types[type].bytes);
    float single;
    double real;
    switch (value_types[type].kind) {
    case VALUE_SIGNED: /* sign extension */
        n = bits < 64 && n >> (bits - 1) ? n | ~UINT64_C(0) << bits : n;
        return file_print(f, "%lld", (long long)n);
    case VALUE_BOOL:
        return file_print(f, "%s", n ? "true" : "false");
    case VALUE_F32:
        memcpy(&single, p, sizeof single);
        return file_print(f, "%.9g", (double)single);
    case VALUE_F64:
        memcpy(&real, p, sizeof real);
        return file_print(f, "%.17g", real);
    default:
        return file_print(f, "%llu", (unsigned long long)n);
    }
}

static qdnnStatus_t skip_array(cursor *c, int depth, uint64_t *type, uint64_t *count);

/* Skips the elements of an array, checking only what is needed to skip them. */
static qdnnStatus_t skip_elements(cursor *c, int depth, uint64_t type, uint64_t count)
{
    const char *text;
    uint64_t bytes, inner, inner_count;
    for (uint64_t i = 0; i < count; i++) {
        if (value_types[type].kind == VALUE_STRING)
            FILES_TRY(read_string(c, "a string of a metadata array", &text, &bytes));
        else
            FILES_TRY(skip_array(c, depth + 1, &inner, &inner_count));
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t skip_array(cursor *c, int depth, uint64_t *type, uint64_t *count)
{
    uint64_t begin = c->at;
    if (depth == ARRAY_DEPTH_MAX)
        return files_damaged(c->s, begin, "metadata arrays nested more than %d deep", ARRAY_DEPTH_MAX);
    FILES_TRY(read_value_type(c, type));
    FILES_TRY(read_number(c, 8, "the length of a metadata array", count));
    bool numbers = value_types[*type].bytes > 0;
    uint64_t least = numbers                                   ? (uint64_t)value_types[*type].bytes
                     : value_types[*type].kind == VALUE_STRING ? 8
                                                               : 12;
    if (*count > left(c) / least)
        return files_damaged(c->s, begin + 4,
                             "a metadata array of %llu elements; the file has %llu more bytes",
                             (unsigned long long)*count, (unsigned long long)left(c));
    if (!numbers)
        return skip_elements(c, depth, *type, *count);
    c->at += *count * least;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_value(cursor *c, qdnnFileMetadata_t *m, uint64_t *type)
{
    const char *text;
    uint64_t bytes, inner, count;
    FILES_TRY(read_value_type(c, type));
    switch (value_types[*type].kind) {
    case VALUE_STRING:
        FILES_TRY(read_string(c, "a metadata string", &text, &bytes));
        m->text = file_copy(c->f, text, files_cut(text, (size_t)bytes));
        break;
    case VALUE_ARRAY:
        FILES_TRY(skip_array(c, 0, &inner, &count));
        m->text = file_print(c->f, "[%llu %s]", (unsigned long long)count, value_types[inner].name);
        break;
    default:
        if (left(c) < (uint64_t)value_types[*type].bytes)
            return cut_off(c, "a metadata value");
        m->text = print_number(c->f, (int)*type, c->s->data + c->at);
        c->at += (uint64_t)value_types[*type].bytes;
    }
    return m->text ? QDNN_STATUS_SUCCESS : files_no_memory();
}

/* Stores the numbers of the entries that determine how the file is read. */
static qdnnStatus_t note_entry(cursor *c, const qdnnFileMetadata_t *m, uint64_t type, uint64_t value_at)
{
    struct qdnnFile *f = c->f;
    const struct {
        const char *key;
        uint64_t *place;
    } known[] = {{"general.alignment", &f->alignment},
                 {"split.no", &f->split_number},
                 {"split.count", &f->split_count},
                 {"split.tensors.count", &f->split_tensors}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(m->key, known[i].key) != 0)
            continue;
        bool integer = value_types[type].kind == VALUE_UNSIGNED || value_types[type].kind == VALUE_SIGNED;
        if (!integer)
            return files_damaged(c->s, value_at, "%s is not an integer", m->key);
        *known[i].place = number_at(c->s->data + value_at + 4, value_types[type].bytes);
    }
    if (f->alignment == 0 || f->alignment > ALIGNMENT_MAX || (f->alignment & (f->alignment - 1)))
        return files_damaged(c->s, value_at, "general.alignment is %llu; it must be a power of two up to %d",
                             (unsigned long long)f->alignment, ALIGNMENT_MAX);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_entry(cursor *c)
{
    uint64_t begin = c->at, value_at, type;
    qdnnFileMetadata_t *m = file_add_metadata(c->f);
    if (!m)
        return files_no_memory();
    FILES_TRY(read_name(c, "a metadata key", &m->key));
    value_at = c->at;
    FILES_TRY(read_value(c, m, &type));
    m->data = c->s->data + begin;
    m->bytes = c->at - begin;
    return note_entry(c, m, type, value_at);
}

static qdnnStatus_t read_metadata(cursor *c, uint64_t count)
{
    enum { LEAST = 8 + 4 + 1 };
    int first = c->f->n_metadata;
    if (count > left(c) / LEAST)
        return files_damaged(c->s, 16, "%llu metadata entries; the file has %llu more bytes",
                             (unsigned long long)count, (unsigned long long)left(c));
    if (count > ENTRIES_MAX)
        return files_damaged(c->s, 16, "%llu metadata entries; at most %d are allowed",
                             (unsigned long long)count, ENTRIES_MAX);
    for (uint64_t i = 0; i < count; i++)
        FILES_TRY(read_entry(c));
    return file_check_keys(c->f, c->s, first);
}

/* ---- tensors ---- */

typedef struct gguf_type {
    uint32_t number;
    const char *name;
    uint32_t elements, bytes; /* of a block */
    qdnnDataType_t type;
    qdnnBlockFormat_t block;
} gguf_type;

static const gguf_type *find_type(uint64_t number)
{
    static const gguf_type types[] = {
#define GGUF_TYPE(number, name, elements, bytes, type, block) {number, name, elements, bytes, type, block},
#include "files/gguf_types.def"
#undef GGUF_TYPE
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

/* GGUF lists the fastest dimension first. */
static qdnnStatus_t read_shape(cursor *c, qdnnFileTensor_t *t)
{
    uint64_t begin = c->at, rank, size, elements;
    FILES_TRY(read_number(c, 4, "the rank of a tensor", &rank));
    if (rank == 0 || rank > QDNN_DIMS_MAX)
        return files_damaged(c->s, begin, "the tensor '%.200s' has %llu dimensions; it may have 1 to %d",
                             t->name, (unsigned long long)rank, QDNN_DIMS_MAX);
    t->rank = (int)rank;
    for (int i = t->rank; i-- > 0;) {
        FILES_TRY(read_number(c, 8, "the dimensions of a tensor", &size));
        if (size >> 60)
            return files_damaged(c->s, c->at - 8, "a dimension of '%.200s' is %llu", t->name,
                                 (unsigned long long)size);
        t->dims[i] = (int64_t)size;
    }
    if (!files_elements(t->rank, t->dims, &elements))
        return files_damaged(c->s, begin, "the tensor '%.200s' has 2^60 elements or more", t->name);
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_type(cursor *c, qdnnFileTensor_t *t)
{
    uint64_t begin = c->at, number, elements;
    FILES_TRY(read_number(c, 4, "the type of a tensor", &number));
    const gguf_type *type = find_type(number);
    if (!type)
        return files_error(QDNN_STATUS_NOT_SUPPORTED,
                           "%s: offset %llu: the tensor '%.200s' is of type %llu, which is not known",
                           c->s->path, (unsigned long long)begin, t->name, (unsigned long long)number);
    if (t->dims[t->rank - 1] % type->elements)
        return files_damaged(c->s, begin,
                             "the tensor '%.200s' has rows of %lld elements; %s has blocks of %u", t->name,
                             (long long)t->dims[t->rank - 1], type->name, (unsigned)type->elements);
    files_elements(t->rank, t->dims, &elements);
    t->typeName = type->name;
    t->type = type->type;
    t->block = type->block;
    /* divide first: elements are below 2^60 and a block of one element has at most 8 bytes */
    t->bytes = elements / type->elements * type->bytes;
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_tensor(cursor *c, int number)
{
    qdnnFileTensor_t t = {.shard = number};
    FILES_TRY(read_name(c, "a tensor's name", &t.name));
    FILES_TRY(read_shape(c, &t));
    FILES_TRY(read_type(c, &t));
    FILES_TRY(read_number(c, 8, "the place of a tensor", &t.offset));
    if (t.offset % c->f->alignment)
        return files_damaged(
            c->s, c->at - 8,
            "the tensor '%.200s' begins at %llu of the data, which is not a multiple of %llu", t.name,
            (unsigned long long)t.offset, (unsigned long long)c->f->alignment);
    qdnnFileTensor_t *place = file_add_tensor(c->f);
    if (!place)
        return files_no_memory();
    *place = t;
    return QDNN_STATUS_SUCCESS;
}

/* Offsets are relative to the start of the data, which is known once all names have been read. */
static qdnnStatus_t place_tensors(cursor *c, int first)
{
    uint64_t begin = (c->at + c->f->alignment - 1) / c->f->alignment * c->f->alignment;
    uint64_t room = begin < c->s->bytes ? c->s->bytes - begin : 0;
    for (int i = first; i < c->f->n_tensors; i++) {
        qdnnFileTensor_t *t = &c->f->tensors[i];
        if (t->bytes && (t->offset > room || t->bytes > room - t->offset))
            return files_damaged(
                c->s, begin,
                "the tensor '%.200s' takes bytes %llu to %llu of the data, which has %llu; the "
                "file is cut off or damaged",
                t->name, (unsigned long long)t->offset, (unsigned long long)(t->offset + t->bytes),
                (unsigned long long)room);
        if (!t->bytes) /* an empty tensor may have any offset */
            t->offset = 0;
        t->offset += begin < c->s->bytes ? begin : c->s->bytes;
        t->data = c->s->data + t->offset;
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t check_version(cursor *c, uint64_t version)
{
    if (version == 2 || version == 3)
        return QDNN_STATUS_SUCCESS;
    bool swapped = version && (version & 0xFFFF) == 0;
    return files_error(QDNN_STATUS_NOT_SUPPORTED,
                       "%s: offset 4: GGUF version %llu%s; versions 2 and 3 are read", c->s->path,
                       (unsigned long long)version, swapped ? " (a big-endian file)" : "");
}

qdnnStatus_t gguf_read(struct qdnnFile *f, int number)
{
    enum { LEAST = 8 + 4 + 4 + 8 };
    cursor c = {f, &f->shards[number], 4};
    uint64_t version, tensors, entries;
    int first = f->n_tensors;
    f->kind = QDNN_FILE_GGUF;
    f->alignment = ALIGNMENT_DEFAULT;
    f->split_number = f->split_count = f->split_tensors = 0;
    FILES_TRY(read_number(&c, 4, "the header", &version));
    FILES_TRY(check_version(&c, version));
    f->version = (int)version;
    FILES_TRY(read_number(&c, 8, "the header", &tensors));
    FILES_TRY(read_number(&c, 8, "the header", &entries));
    FILES_TRY(read_metadata(&c, entries));
    if (tensors > left(&c) / LEAST)
        return files_damaged(c.s, 8, "%llu tensors; the file has %llu more bytes",
                             (unsigned long long)tensors, (unsigned long long)left(&c));
    if (tensors > (uint64_t)(FILES_TENSORS_MAX - f->n_tensors))
        return files_damaged(c.s, 8, "%llu tensors; at most %d are read", (unsigned long long)tensors,
                             FILES_TENSORS_MAX);
    for (uint64_t i = 0; i < tensors; i++)
        FILES_TRY(read_tensor(&c, number));
    return place_tensors(&c, first);
}

/* ---- split files ---- */

enum { SPLITS_MAX = 99999, SPLIT_TAIL = 20 }; /* "-00001-of-00003.gguf" */

/* The path of a part, if the path of another part has the form of a split file's name. */
static bool split_path(const char *path, uint64_t number, uint64_t count, char *out, size_t size)
{
    char tail[40];
    size_t n = strlen(path);
    unsigned a, b;
    if (n < SPLIT_TAIL || sscanf(path + n - SPLIT_TAIL, "-%5u-of-%5u.gguf", &a, &b) != 2 || b != count)
        return false;
    snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", (unsigned)number + 1, (unsigned)count);
    return snprintf(out, size, "%.*s%s", (int)(n - SPLIT_TAIL), path, tail) < (int)size;
}

/* Checks that a part has the right number and count. */
static qdnnStatus_t read_split(struct qdnnFile *f, const char *path, uint64_t number, uint64_t count)
{
    int shard;
    FILES_TRY(file_map(f, path, &shard));
    if (f->shards[shard].bytes < 4 || memcmp(f->shards[shard].data, "GGUF", 4) != 0)
        return files_damaged(&f->shards[shard], 0, "part %llu of %llu is not a GGUF file",
                             (unsigned long long)number + 1, (unsigned long long)count);
    FILES_TRY(gguf_read(f, shard));
    if (f->split_number != number || f->split_count != count)
        return files_damaged(&f->shards[shard], 0,
                             "says that it is part %llu of %llu; by its name it is %llu of %llu",
                             (unsigned long long)f->split_number + 1, (unsigned long long)f->split_count,
                             (unsigned long long)number + 1, (unsigned long long)count);
    return QDNN_STATUS_SUCCESS;
}

/* The first part has all metadata that matter: the file read so far is discarded, and the parts are read in
 * order. */
qdnnStatus_t gguf_read_splits(struct qdnnFile *f, const char *path)
{
    uint64_t count = f->split_count, tensors = f->split_tensors;
    char part[4096];
    if (count > SPLITS_MAX || !split_path(path, 0, count, part, sizeof part))
        return files_error(
            QDNN_STATUS_BAD_PARAM,
            "%s: is one of %llu parts; parts are named ...-00001-of-%05llu.gguf, and it is not", path,
            (unsigned long long)count, (unsigned long long)count);
    file_unmap_all(f);
    f->shards = NULL;
    f->n_shards = f->shards_room = f->n_tensors = f->n_metadata = 0;
    for (uint64_t i = 0; i < count; i++) {
        int metadata = f->n_metadata;
        split_path(path, i, count, part, sizeof part);
        FILES_TRY(read_split(f, part, i, count));
        tensors = f->split_tensors ? f->split_tensors : tensors;
        if (i > 0)
            f->n_metadata = metadata;
    }
    if (tensors && tensors != (uint64_t)f->n_tensors)
        return files_error(QDNN_STATUS_BAD_PARAM,
                           "%s: split.tensors.count is %llu, and the %llu parts have %d tensors", path,
                           (unsigned long long)tensors, (unsigned long long)count, f->n_tensors);
    return QDNN_STATUS_SUCCESS;
}
