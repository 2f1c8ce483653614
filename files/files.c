/* The public functions. */
#include "files/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

/* ---- opening ---- */

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The file in a folder that represents the checkpoint. */
static qdnnStatus_t find_in_folder(const char *folder, char *path, size_t size)
{
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        bool exists = false;
        if (snprintf(path, size, "%s/%s", folder, names[i]) < (int)size)
            FILES_TRY(files_exists(path, &exists));
        if (exists)
            return QDNN_STATUS_SUCCESS;
    }
    return files_error(
        QDNN_STATUS_BAD_PARAM,
        "%s: the folder has neither model.safetensors.index.json nor model.safetensors; name the file itself",
        folder);
}

static qdnnStatus_t read_one(struct qdnnFile *f, const char *path)
{
    int number;
    FILES_TRY(file_map(f, path, &number));
    const shard *s = &f->shards[number];
    if (s->bytes >= 4 && memcmp(s->data, "GGUF", 4) == 0) {
        FILES_TRY(gguf_read(f, number));
        if (f->split_count > 1)
            FILES_TRY(gguf_read_splits(f, path));
    } else if (safetensors_begins(s) || files_ends_with(path, ".safetensors")) {
        FILES_TRY(safetensors_read(f, number));
    } else {
        return files_error(QDNN_STATUS_NOT_SUPPORTED,
                           "%s: is neither GGUF nor safetensors (nor an index whose name ends in .json)",
                           path);
    }
    return file_check_tensors(f);
}

static qdnnStatus_t read_path(struct qdnnFile *f, const char *path)
{
    char found[4096];
    if (is_folder(path)) {
        FILES_TRY(find_in_folder(path, found, sizeof found));
        path = found;
    }
    FILES_TRY(files_ends_with(path, ".json") ? checkpoint_read_index(f, path) : read_one(f, path));
    f->config.name = "";
    if (f->kind == QDNN_FILE_SAFETENSORS)
        FILES_TRY(checkpoint_read_config(f, path));
    return file_find_weights(f);
}

qdnnStatus_t qdnnOpenFile(const char *path, qdnnFile_t *file)
{
    files_clear_error();
    if (!path || !file)
        return files_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", path ? "file" : "path");
    struct qdnnFile *f = alloc_new(sizeof *f);
    if (!f)
        return files_no_memory();
    qdnnStatus_t status = read_path(f, path);
    if (status)
        qdnnCloseFile(f);
    else
        *file = f;
    return status;
}

qdnnStatus_t qdnnCloseFile(qdnnFile_t f)
{
    if (!f)
        return QDNN_STATUS_SUCCESS;
    file_unmap_all(f);
    file_free_pieces(f);
    alloc_free(f->tensors);
    alloc_free(f->weights);
    alloc_free(f->metadata);
    alloc_free(f);
    return QDNN_STATUS_SUCCESS;
}

/* ---- queries ---- */

/* `what` is the argument that receives the result, `list` the name of what is indexed. */
static qdnnStatus_t check_index(qdnnFile_t f, const char *what, const char *list, int index, int count,
                                const void *out)
{
    files_clear_error();
    if (!f || !out)
        return files_error(QDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", f ? what : "file");
    if (index < 0 || index >= count)
        return files_error(QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "index is %d; the file has %d %s", index,
                           count, list);
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetFileInfo(qdnnFile_t f, qdnnFileInfo_t *info)
{
    FILES_TRY(check_index(f, "info", "", 0, 1, info));
    *info = (qdnnFileInfo_t){.kind = f->kind,
                             .version = f->version,
                             .quantMethod = f->config.name,
                             .shards = f->n_shards,
                             .tensors = f->n_tensors,
                             .weights = f->n_weights,
                             .metadata = f->n_metadata};
    for (int i = 0; i < f->n_shards; i++)
        info->bytes += f->shards[i].bytes;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetFileShard(qdnnFile_t f, int shard, const char **path)
{
    FILES_TRY(check_index(f, "shard", "shards", shard, f ? f->n_shards : 0, path));
    *path = f->shards[shard].path;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetFileTensor(qdnnFile_t f, int index, qdnnFileTensor_t *tensor)
{
    FILES_TRY(check_index(f, "tensor", "tensors", index, f ? f->n_tensors : 0, tensor));
    *tensor = f->tensors[index];
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetFileWeight(qdnnFile_t f, int index, qdnnFileWeight_t *weight)
{
    FILES_TRY(check_index(f, "weight", "weights", index, f ? f->n_weights : 0, weight));
    *weight = f->weights[index];
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnGetFileMetadata(qdnnFile_t f, int index, qdnnFileMetadata_t *metadata)
{
    FILES_TRY(check_index(f, "metadata", "metadata entries", index, f ? f->n_metadata : 0, metadata));
    *metadata = f->metadata[index];
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t unknown_name(const char *what, const char *name)
{
    return files_error(QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME, "the file has no %s '%.200s'", what, name);
}

qdnnStatus_t qdnnFindFileTensor(qdnnFile_t f, const char *name, int *index)
{
    FILES_TRY(check_index(f, name ? "index" : "name", "", 0, 1, name ? index : NULL));
    int found = file_find(f, name);
    if (found < 0)
        return unknown_name("tensor", name);
    *index = found;
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t qdnnFindFileWeight(qdnnFile_t f, const char *name, int *index)
{
    FILES_TRY(check_index(f, name ? "index" : "name", "", 0, 1, name ? index : NULL));
    for (int i = 0; i < f->n_weights; i++) {
        if (strcmp(f->weights[i].name, name) != 0)
            continue;
        *index = i;
        return QDNN_STATUS_SUCCESS;
    }
    return unknown_name("weight", name);
}
