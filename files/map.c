/* Files in memory: mapped if they may be large, read if they are small. */
#include "files/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { JSON_BYTES_MAX = 256 << 20 };

static qdnnStatus_t cannot_read(const char *path, const char *why)
{
    return files_error(QDNN_STATUS_BAD_PARAM, "%s: cannot be read: %s", path, why);
}

/* Opens a regular file and gets its size. Without O_NONBLOCK, opening a FIFO would wait for a writer. */
static qdnnStatus_t open_file(const char *path, int *file, uint64_t *bytes)
{
    struct stat info;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*file < 0)
        return cannot_read(path, strerror(errno));
    const char *why = fstat(*file, &info) != 0 ? strerror(errno)
                      : !S_ISREG(info.st_mode) ? "not a regular file"
                                               : NULL;
    if (why) {
        close(*file);
        return cannot_read(path, why);
    }
    *bytes = (uint64_t)info.st_size;
    return QDNN_STATUS_SUCCESS;
}

static shard *add_shard(struct qdnnFile *f, const char *path)
{
    if (f->n_shards == f->shards_room) {
        int room = f->shards_room ? 2 * f->shards_room : 8;
        shard *more = alloc_resize(f->shards, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        f->shards = more;
        f->shards_room = room;
    }
    shard *s = &f->shards[f->n_shards];
    *s = (shard){.path = file_copy(f, path, strlen(path))};
    if (!s->path)
        return NULL;
    const char *slash = strrchr(s->path, '/');
    s->name = slash ? slash + 1 : s->path;
    f->n_shards++;
    return s;
}

qdnnStatus_t file_map(struct qdnnFile *f, const char *path, int *number)
{
    int file;
    uint64_t bytes;
    FILES_TRY(open_file(path, &file, &bytes));
    void *data =
        bytes && bytes <= SIZE_MAX ? mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    int problem = errno;
    close(file);
    if (bytes == 0)
        return files_error(QDNN_STATUS_BAD_PARAM, "%s: the file is empty", path);
    if (!data || data == MAP_FAILED)
        return files_error(QDNN_STATUS_BAD_PARAM, "%s: cannot be mapped: %s", path,
                           data ? strerror(problem) : "too large for this machine");
    shard *s = add_shard(f, path);
    if (!s) {
        munmap(data, (size_t)bytes);
        return files_no_memory();
    }
    s->data = data;
    s->bytes = bytes;
    *number = f->n_shards - 1;
    return QDNN_STATUS_SUCCESS;
}

void file_unmap_all(struct qdnnFile *f)
{
    for (int i = 0; i < f->n_shards; i++)
        munmap((void *)f->shards[i].data, (size_t)f->shards[i].bytes);
    alloc_free(f->shards);
}

qdnnStatus_t files_exists(const char *path, bool *exists)
{
    struct stat info;
    bool found = stat(path, &info) == 0;
    *exists = found && S_ISREG(info.st_mode);
    return found || errno == ENOENT || errno == ENOTDIR ? QDNN_STATUS_SUCCESS
                                                        : cannot_read(path, strerror(errno));
}

/* Reads exactly `bytes` bytes; a file that became shorter is an error. */
static qdnnStatus_t read_all(const char *path, int file, char *text, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = read(file, text + done, (size_t)(bytes - done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return cannot_read(path, n < 0 ? strerror(errno) : "it became shorter");
        done += (uint64_t)n;
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t parse(const char *path, const char *text, uint64_t bytes, json **doc)
{
    json_error error;
    *doc = json_parse(text, (size_t)bytes, &error);
    if (*doc)
        return QDNN_STATUS_SUCCESS;
    if (error.no_memory)
        return files_no_memory();
    return files_error(QDNN_STATUS_BAD_PARAM, "%s: offset %zu (line %zu): not JSON: %s", path, error.offset,
                       error.line, error.reason);
}

qdnnStatus_t files_read_json(const char *path, json **doc)
{
    int file;
    uint64_t bytes;
    bool exists;
    *doc = NULL;
    FILES_TRY(files_exists(path, &exists));
    if (!exists)
        return QDNN_STATUS_SUCCESS;
    FILES_TRY(open_file(path, &file, &bytes));
    qdnnStatus_t status = QDNN_STATUS_SUCCESS;
    char *text = bytes <= JSON_BYTES_MAX ? alloc_new((size_t)bytes + 1) : NULL;
    if (bytes > JSON_BYTES_MAX)
        status = files_error(QDNN_STATUS_BAD_PARAM, "%s: has %llu bytes; JSON of more than %d is not read",
                             path, (unsigned long long)bytes, JSON_BYTES_MAX);
    else if (!text)
        status = files_no_memory();
    if (!status)
        status = read_all(path, file, text, bytes);
    close(file);
    if (!status)
        status = parse(path, text, bytes, doc);
    alloc_free(text);
    return status;
}
