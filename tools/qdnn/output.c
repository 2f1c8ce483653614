/* An output file that is written completely or not at all. */
#include "tools/qdnn/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- where it goes ---- */

/* What is at a path; *exists: whether there is anything. Returns an exit code. */
static int examine(const char *path, struct stat *info, bool *exists)
{
    *exists = stat(path, info) == 0;
    if (*exists || errno == ENOENT || errno == ENOTDIR)
        return TOOL_OK;
    return tool_fail("cannot examine %s: %s", path, strerror(errno));
}

/* Whether the path names a file of the source, also by another name: a link. */
static int is_source(const char *path, qdnnFile_t source, bool *is)
{
    struct stat mine, theirs;
    const char *shard;
    bool exists;
    *is = false;
    int status = examine(path, &mine, &exists);
    for (int i = 0; status == TOOL_OK && exists && !*is && !qdnnGetFileShard(source, i, &shard); i++) {
        status = examine(shard, &theirs, &exists);
        *is = exists && theirs.st_dev == mine.st_dev && theirs.st_ino == mine.st_ino;
        exists = true;
    }
    return status;
}

int output_check_json(const options *o, qdnnFile_t source)
{
    if (!o->json || strcmp(o->json, "-") == 0)
        return TOOL_OK;
    bool is;
    int status = is_source(o->json, source, &is);
    if (status != TOOL_OK)
        return status;
    if (is)
        return tool_usage_error("--json would replace the input, %s", o->json);
    if (o->out && strcmp(o->json, o->out) == 0)
        return tool_usage_error("--json would replace the output, %s", o->json);
    return TOOL_OK;
}

/* Replacing one of several files would leave a checkpoint that is neither the old one nor the new one. */
static int check_source(const output *out, bool in_place)
{
    qdnnFileInfo_t info;
    bool is;
    int status = is_source(out->path, out->source, &is);
    if (status != TOOL_OK || !is)
        return status;
    qdnnGetFileInfo(out->source, &info);
    if (info.shards > 1)
        return tool_usage_error("%s is one of the %d files of the input; write to another", out->path,
                                info.shards);
    return in_place ? TOOL_OK
                    : tool_usage_error("%s is the input; write to another file, or replace it by --in-place",
                                       out->path);
}

/* Whether a folder has no entries but . and .. */
static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    int n = 0;
    while (folder && n < 3 && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return folder && n < 3;
}

/* A path that ends in '/', or that is a folder, means a folder. */
static int check_place(output *out)
{
    struct stat info;
    bool exists;
    int status = examine(out->path, &info, &exists);
    out->is_folder = ends_with(out->path, "/") || (exists && S_ISDIR(info.st_mode));
    if (status != TOOL_OK || !exists)
        return status;
    if (out->is_folder && !S_ISDIR(info.st_mode))
        return tool_usage_error("%s is not a folder", out->path);
    if (out->is_folder && !is_empty(out->path))
        return tool_usage_error("the folder %s is not empty; write to a new one", out->path);
    if (!out->is_folder && !S_ISREG(info.st_mode))
        return tool_usage_error("%s is not a file that can be replaced", out->path);
    return TOOL_OK;
}

int output_open(output *out, const char *path, qdnnFile_t source, bool in_place)
{
    *out = (output){.path = path, .source = source, .file = -1};
    int status = check_place(out);
    if (status != TOOL_OK)
        return status;
    if (!out->is_folder && ends_with(path, ".gguf"))
        out->kind = QDNN_FILE_GGUF;
    else if (out->is_folder || ends_with(path, ".safetensors"))
        out->kind = QDNN_FILE_SAFETENSORS;
    else
        return tool_usage_error(
            "cannot tell the kind of '%s'; name it OUT.gguf, OUT.safetensors or OUT/ (a folder)", path);
    return check_source(out, in_place);
}

bool output_has_type(qdnnFileKind_t kind, const char *type)
{
    return kind == QDNN_FILE_GGUF ? gguf_has_type(type) : safetensors_has_type(type);
}

int output_add(output *out, const char *name, const char *type, int rank, const int64_t *dims, uint64_t bytes,
               int *index)
{
    if (!output_has_type(out->kind, type))
        return tool_fail(
            "%s: tensors of type %s cannot be stored in %s; give it another type by --tensor, 'drop', or "
            "--requantize",
            name, type, out->kind == QDNN_FILE_GGUF ? "GGUF" : "safetensors");
    if (out->n_tensors == out->room) {
        int room = out->room ? 2 * out->room : 64;
        output_tensor *more = realloc(out->tensors, (size_t)room * sizeof *more);
        if (!more)
            return tool_fail("out of memory");
        out->tensors = more;
        out->room = room;
    }
    output_tensor *t = &out->tensors[out->n_tensors];
    *t = (output_tensor){.name = strdup(name), .type = type, .rank = rank, .bytes = bytes};
    if (!t->name)
        return tool_fail("out of memory");
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    *index = out->n_tensors++;
    return TOOL_OK;
}

/* ---- writing ---- */

static int write_failed(const char *path)
{
    return tool_fail("cannot write %s: %s", path, strerror(errno));
}

/* The folder, if one is asked for, and the file. */
static int create(output *out)
{
    bool ok;
    if (out->is_folder) {
        snprintf(out->folder, sizeof out->folder, "%s", out->path);
        if (!unfinished_beside(out->path, out->folder, NULL))
            return write_failed(out->folder);
        int n = snprintf(out->temporary, sizeof out->temporary, "%s/model.safetensors", out->folder);
        if (n >= (int)sizeof out->temporary)
            return tool_fail("the path of the output is too long");
        ok = unfinished_create(out->temporary, &out->file);
    } else {
        snprintf(out->temporary, sizeof out->temporary, "%s", out->path);
        ok = unfinished_beside(out->path, out->temporary, &out->file);
    }
    return ok ? TOOL_OK : write_failed(out->temporary);
}

int output_begin(output *out)
{
    tool_text header = {0};
    int status = metadata_plan(out);
    if (status == TOOL_OK)
        status = out->kind == QDNN_FILE_GGUF ? gguf_header(out, &header) : safetensors_header(out, &header);
    if (status == TOOL_OK && header.failed)
        status = tool_fail("out of memory");
    if (status == TOOL_OK)
        status = create(out);
    out->header_bytes = header.size;
    if (status == TOOL_OK && (!unfinished_reserve(out->file, out->header_bytes + out->data_bytes) ||
                              !unfinished_write(out->file, header.data, header.size, 0)))
        status = write_failed(out->temporary);
    tool_text_free(&header);
    return status;
}

/* A checksum against damage, not against malice. */
static uint64_t checksum(const uint8_t *data, uint64_t bytes)
{
    uint64_t sum = bytes, word;
    for (uint64_t at = 0; at < bytes; at += sizeof word) {
        word = 0;
        memcpy(&word, data + at, bytes - at < sizeof word ? (size_t)(bytes - at) : sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        sum ^= sum >> 29;
    }
    return sum;
}

int output_put(output *out, int index, const void *data)
{
    output_tensor *t = &out->tensors[index];
    t->is_written = true;
    t->sum = checksum(data, t->bytes);
    return unfinished_write(out->file, data, t->bytes, out->header_bytes + t->offset)
               ? TOOL_OK
               : write_failed(out->temporary);
}

int output_put_file(output *out, const char *name, const void *data, size_t bytes)
{
    char path[UNFINISHED_PATH];
    int file = -1;
    if (snprintf(path, sizeof path, "%s/%s", out->folder, name) >= (int)sizeof path)
        return tool_fail("the path of %s is too long", name);
    bool ok =
        unfinished_create(path, &file) && unfinished_write(file, data, bytes, 0) && unfinished_sync(file);
    int status = ok ? TOOL_OK : write_failed(path);
    if (file >= 0 && close(file) != 0 && ok)
        status = write_failed(path);
    return status;
}

/* ---- reading back ---- */

static int not_as_planned(const output *out, const char *what, const char *name)
{
    return tool_fail(
        "%s was not written correctly: %s '%s' is not what was planned; the disk or the memory may be faulty",
        out->temporary, what, name);
}

static bool same_tensor(const output *out, const output_tensor *t, const qdnnFileTensor_t *read)
{
    /* GGUF has no tensors without dimensions: they are written as one of one element */
    int rank = out->kind == QDNN_FILE_GGUF && t->rank == 0 ? 1 : t->rank;
    bool same = t->is_written && strcmp(t->name, read->name) == 0 && strcmp(t->type, read->typeName) == 0 &&
                read->rank == rank && t->bytes == read->bytes;
    for (int i = 0; same && i < t->rank; i++)
        same = t->dims[i] == read->dims[i];
    return same && (t->bytes == 0 || (read->offset == out->header_bytes + t->offset &&
                                      checksum(read->data, read->bytes) == t->sum));
}

static int compare(const output *out, qdnnFile_t file)
{
    qdnnFileInfo_t info;
    qdnnFileTensor_t t;
    qdnnFileMetadata_t m;
    qdnnGetFileInfo(file, &info);
    if (info.kind != out->kind || info.tensors != out->n_tensors || info.metadata != out->n_entries)
        return not_as_planned(out, "the header of", out->path);
    for (int i = 0; i < info.tensors; i++)
        if (qdnnGetFileTensor(file, i, &t) || !same_tensor(out, &out->tensors[i], &t))
            return not_as_planned(out, "the tensor", out->tensors[i].name);
    for (int i = 0; i < info.metadata; i++) {
        const output_entry *e = &out->entries[i];
        if (qdnnGetFileMetadata(file, i, &m) || strcmp(m.key, e->key) != 0 || m.bytes != e->bytes ||
            memcmp(m.data, e->data, e->bytes) != 0)
            return not_as_planned(out, "the metadata", e->key);
    }
    return TOOL_OK;
}

int output_check(output *out)
{
    qdnnFile_t file;
    bool ok = unfinished_sync(out->file);
    int status = ok ? TOOL_OK : write_failed(out->temporary);
    if (close(out->file) != 0 && ok)
        status = write_failed(out->temporary);
    out->file = -1;
    if (status == TOOL_OK)
        status = open_file(out->temporary, &file);
    if (status == TOOL_OK) {
        status = compare(out, file);
        qdnnCloseFile(file);
    }
    return status;
}

/* ---- the end ---- */

int output_finish(output *out)
{
    bool synced;
    int folder = out->is_folder ? open(out->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = !out->is_folder || (folder >= 0 && unfinished_sync(folder));
    if (folder >= 0)
        close(folder);
    if (!ok || !unfinished_publish(out->is_folder ? out->folder : out->temporary, out->path, &synced))
        return write_failed(out->path);
    return synced ? TOOL_OK
                  : tool_fail("%s is complete, but may not survive a crash: its folder cannot be synced",
                              out->path);
}

void output_close(output *out)
{
    if (out->file >= 0)
        close(out->file);
    unfinished_discard();
    for (int i = 0; i < out->n_tensors; i++)
        free(out->tensors[i].name);
    for (int i = 0; i < out->n_entries; i++) {
        free(out->entries[i].key);
        free(out->entries[i].data);
    }
    free(out->tensors);
    free(out->entries);
    free(out->quant_config);
    *out = (output){.file = -1};
}
