/* Checks that apply to every file: names of tensors and keys of metadata are unique, tensors do not overlap. */
#include "files/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

bool files_elements(int rank, const int64_t *dims, uint64_t *elements)
{
    uint64_t n = 1;
    bool empty = false, fits = true;
    for (int i = 0; i < rank; i++) {
        uint64_t size = (uint64_t)dims[i];
        empty = empty || size == 0;
        fits = fits && size < UINT64_C(1) << 60 && (size == 0 || n <= ((UINT64_C(1) << 60) - 1) / size);
        n = fits && size ? n * size : n;
    }
    *elements = empty ? 0 : n;
    return fits;
}

bool files_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

size_t files_cut(const char *text, size_t bytes)
{
    enum { TEXT_MAX = 200 };
    size_t n = TEXT_MAX;
    if (bytes <= TEXT_MAX)
        return bytes;
    while (n > TEXT_MAX - 4 && (text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* qsort cannot pass the file along, so the sorted elements contain the names. */
typedef struct named {
    const char *name;
    int index;
} named;

static int compare_names(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int *sort_names(named *list, int n, struct qdnnFile *f)
{
    int *order = file_alloc(f, ((size_t)n + 1) * sizeof *order);
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_names);
    for (int i = 0; order && i < n; i++)
        order[i] = list[i].index;
    return order;
}

static qdnnStatus_t check_names(struct qdnnFile *f)
{
    named *list = alloc_new(((size_t)f->n_tensors + 1) * sizeof *list);
    for (int i = 0; list && i < f->n_tensors; i++)
        list[i] = (named){f->tensors[i].name, i};
    f->by_name = list ? sort_names(list, f->n_tensors, f) : NULL;
    alloc_free(list);
    if (!f->by_name)
        return files_no_memory();
    for (int i = 1; i < f->n_tensors; i++) {
        const qdnnFileTensor_t *a = &f->tensors[f->by_name[i - 1]], *b = &f->tensors[f->by_name[i]];
        if (strcmp(a->name, b->name) == 0)
            return files_damaged(&f->shards[b->shard], b->offset,
                                 "duplicate tensor '%.200s'; the first is in %s at offset %llu", b->name,
                                 f->shards[a->shard].name, (unsigned long long)a->offset);
    }
    return QDNN_STATUS_SUCCESS;
}

/* The metadata from `first` on, sorted by key and then by place; null if there is no memory. */
static named *sort_keys(const struct qdnnFile *f, int first)
{
    int n = f->n_metadata - first;
    named *list = alloc_new(((size_t)n + 1) * sizeof *list);
    for (int i = 0; list && i < n; i++)
        list[i] = (named){f->metadata[first + i].key, first + i};
    if (list && n > 0)
        qsort(list, (size_t)n, sizeof *list, compare_names);
    return list;
}

qdnnStatus_t file_check_keys(struct qdnnFile *f, const shard *s, int first)
{
    named *list = sort_keys(f, first);
    qdnnStatus_t status = list ? QDNN_STATUS_SUCCESS : files_no_memory();
    for (int i = 1; i < f->n_metadata - first && !status; i++) {
        const qdnnFileMetadata_t *m = &f->metadata[list[i].index];
        uint64_t at = f->kind == QDNN_FILE_GGUF ? (uint64_t)((const uint8_t *)m->data - s->data) : 8;
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            status = files_damaged(s, at, "duplicate metadata entry '%.200s'", m->key);
    }
    alloc_free(list);
    return status;
}

/* The first shard that has a key decides: shards repeat what applies to all, such as "format". */
qdnnStatus_t file_merge_keys(struct qdnnFile *f)
{
    int kept = 0;
    named *list = sort_keys(f, 0);
    if (!list)
        return files_no_memory();
    for (int i = 1; i < f->n_metadata; i++)
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            f->metadata[list[i].index].key = NULL;
    for (int i = 0; i < f->n_metadata; i++)
        if (f->metadata[i].key)
            f->metadata[kept++] = f->metadata[i];
    f->n_metadata = kept;
    alloc_free(list);
    return QDNN_STATUS_SUCCESS;
}

typedef struct range {
    int shard, index;
    uint64_t from, to;
} range;

static int compare_ranges(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static qdnnStatus_t check_overlaps(struct qdnnFile *f)
{
    range *list = alloc_new(((size_t)f->n_tensors + 1) * sizeof *list);
    qdnnStatus_t status = list ? QDNN_STATUS_SUCCESS : files_no_memory();
    int n = 0;
    for (int i = 0; list && i < f->n_tensors; i++)
        if (f->tensors[i].bytes)
            list[n++] = (range){f->tensors[i].shard, i, f->tensors[i].offset,
                                f->tensors[i].offset + f->tensors[i].bytes};
    if (n > 1)
        qsort(list, (size_t)n, sizeof *list, compare_ranges);
    for (int i = 1; i < n && !status; i++)
        if (list[i].shard == list[i - 1].shard && list[i].from < list[i - 1].to)
            status = files_damaged(&f->shards[list[i].shard], list[i].from,
                                   "the tensor '%.200s' begins inside '%.200s', which ends at offset %llu",
                                   f->tensors[list[i].index].name, f->tensors[list[i - 1].index].name,
                                   (unsigned long long)list[i - 1].to);
    alloc_free(list);
    return status;
}

qdnnStatus_t file_check_tensors(struct qdnnFile *f)
{
    FILES_TRY(check_names(f));
    return check_overlaps(f);
}

int file_find(const struct qdnnFile *f, const char *name)
{
    for (int from = 0, to = f->n_tensors; from < to;) {
        int middle = from + (to - from) / 2, order = strcmp(name, f->tensors[f->by_name[middle]].name);
        if (order == 0)
            return f->by_name[middle];
        *(order < 0 ? &to : &from) = order < 0 ? middle : middle + 1;
    }
    return -1;
}

int file_find_beside(const struct qdnnFile *f, const char *name, size_t cut, const char *suffix)
{
    char text[FILES_NAME_MAX + 64];
    size_t length = strlen(name), n = strlen(suffix);
    if (length < cut || length - cut + n >= sizeof text)
        return -1;
    size_t kept = length - cut;
    memcpy(text, name, kept);
    memcpy(text + kept, suffix, n + 1);
    return file_find(f, text);
}
