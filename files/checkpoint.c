/* Checkpoints of several files: the index of the shards, and the quantization described in config.json and
 * similar files. */
#include "files/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_BYTES = 4096 };

/* The path of `name` in the folder of `path`. */
static bool path_beside(const char *path, const char *name, char *out)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(out, PATH_MAX_BYTES, "%.*s%s", folder, path, name) < PATH_MAX_BYTES;
}

/* ---- the index ---- */

static qdnnStatus_t index_wrong(const char *path, const char *name, const char *what)
{
    return files_error(QDNN_STATUS_BAD_PARAM, "%s: the shard '%.200s' of the index %s", path, name, what);
}

/* A shard is a safetensors file in the same folder: an index cannot point to another folder, nor to
 * itself. */
static qdnnStatus_t check_shard_name(const char *path, const char *name, char *shard_path)
{
    if (!*name || strchr(name, '/') || strchr(name, '\\') || strcmp(name, "..") == 0)
        return index_wrong(path, name, "is not the name of a file in the same folder");
    if (files_ends_with(name, ".json"))
        return index_wrong(path, name, "is itself an index; shards are safetensors files");
    if (!path_beside(path, name, shard_path))
        return index_wrong(path, name, "has too long a path");
    bool exists;
    FILES_TRY(files_exists(shard_path, &exists));
    if (!exists)
        return index_wrong(path, name, "is missing; download it into the same folder");
    return QDNN_STATUS_SUCCESS;
}

static int find_shard(const struct qdnnFile *f, const char *name)
{
    for (int i = 0; i < f->n_shards; i++)
        if (strcmp(f->shards[i].name, name) == 0)
            return i;
    return -1;
}

static qdnnStatus_t read_shard(struct qdnnFile *f, const char *path, const json_value *entry)
{
    char shard_path[PATH_MAX_BYTES];
    int number;
    if (entry->kind != JSON_STRING)
        return files_error(QDNN_STATUS_BAD_PARAM, "%s: weight_map has no file name for '%.200s'", path,
                           entry->name);
    if (find_shard(f, entry->text) >= 0)
        return QDNN_STATUS_SUCCESS;
    FILES_TRY(check_shard_name(path, entry->text, shard_path));
    FILES_TRY(file_map(f, shard_path, &number));
    return safetensors_read(f, number);
}

/* Checks that every tensor is in the shard that the index gives. */
static qdnnStatus_t check_map(const struct qdnnFile *f, const char *path, const json_value *map)
{
    for (const json_value *entry = map->first; entry; entry = entry->next) {
        int found = file_find(f, entry->name);
        if (found < 0 || strcmp(f->shards[f->tensors[found].shard].name, entry->text) != 0)
            return files_error(QDNN_STATUS_BAD_PARAM,
                               "%s: the tensor '%.200s' of the index is not in '%.200s'", path, entry->name,
                               entry->text);
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t read_map(struct qdnnFile *f, const char *path, const json_value *root)
{
    const json_value *map = json_at(root, "weight_map");
    if (!map || map->kind != JSON_OBJECT || !map->first)
        return files_error(QDNN_STATUS_BAD_PARAM, "%s: is not an index of shards: it has no weight_map",
                           path);
    for (const json_value *entry = map->first; entry; entry = entry->next)
        FILES_TRY(read_shard(f, path, entry));
    FILES_TRY(file_check_tensors(f));
    FILES_TRY(file_merge_keys(f));
    return check_map(f, path, map);
}

qdnnStatus_t checkpoint_read_index(struct qdnnFile *f, const char *path)
{
    json *doc;
    FILES_TRY(files_read_json(path, &doc));
    if (!doc)
        return files_error(QDNN_STATUS_BAD_PARAM, "%s: cannot be read: no such file", path);
    qdnnStatus_t status = read_map(f, path, json_root(doc));
    json_free(doc);
    return status;
}

/* ---- the configuration ---- */

static int64_t integer_of(const json_value *v, const char *path)
{
    const json_value *n = json_at(v, path);
    if (n && n->kind == JSON_NUMBER && strcmp(n->text, "-1") == 0)
        return -1;
    uint64_t number;
    return json_u64(v, path, &number) && number < INT32_MAX ? (int64_t)number : 0;
}

/* The width of a code; an invalid one counts as missing. */
static int bits_of(const json_value *v, const char *path)
{
    int64_t bits = integer_of(v, path);
    return bits > 0 && bits <= 64 ? (int)bits : 0;
}

static bool has_text(const json_value *v, const char *path, const char *text)
{
    const char *s = json_string(v, path);
    return s && strcmp(s, text) == 0;
}

static quant_method method_of(const char *name)
{
    static const struct {
        const char *name;
        quant_method method;
    } methods[] = {{"gptq", METHOD_GPTQ},
                   {"awq", METHOD_AWQ},
                   {"compressed-tensors", METHOD_COMPRESSED_TENSORS},
                   {"modelopt", METHOD_MODELOPT},
                   {"modelopt_fp4", METHOD_MODELOPT},
                   {"bitsandbytes", METHOD_BITSANDBYTES},
                   {"fp8", METHOD_FP8},
                   {"mxfp4", METHOD_MXFP4}};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return methods[i].method;
    return METHOD_OTHER;
}

/* Reads the first group of a compressed-tensors configuration; further groups are recognized by the shapes of
 * their tensors. */
static void read_groups(const json_value *v, quant_config *c)
{
    const json_value *groups = json_at(v, "config_groups");
    const json_value *weights = groups && groups->first ? json_at(groups->first, "weights") : NULL;
    if (!weights)
        return;
    c->bits = bits_of(weights, "num_bits");
    c->group_size = integer_of(weights, "group_size");
    json_bool(weights, "symmetric", &c->is_symmetric);
}

static qdnnStatus_t set_config(struct qdnnFile *f, const json_value *v, const char *method)
{
    quant_config *c = &f->config;
    c->method = method_of(method);
    c->name = file_copy(f, method, strlen(method));
    c->bits = bits_of(v, json_at(v, "bits") ? "bits" : "w_bit");
    c->group_size = integer_of(v, json_at(v, "group_size") ? "group_size" : "q_group_size");
    c->is_v2 = has_text(v, "checkpoint_format", "gptq_v2");
    json_bool(v, "sym", &c->is_symmetric);
    c->is_gemv = has_text(v, "version", "gemv") || has_text(v, "version", "GEMV");
    read_groups(v, c);
    return c->name ? QDNN_STATUS_SUCCESS : files_no_memory();
}

/* Where configurations are found: the file, the member in it, and the method if the configuration does not
 * name it. */
static const struct {
    const char *file, *member, *method;
} places[] = {
    {"config.json", "quantization_config", NULL},
    {"config.json", "compression_config", "compressed-tensors"},
    {"config.json", "text_config.quantization_config", NULL},
    {"hf_quant_config.json", "quantization", "modelopt"},
    {"quantize_config.json", "", "gptq"},
    {"quant_config.json", "", "awq"},
};

static qdnnStatus_t try_config(struct qdnnFile *f, const char *text_method, const json_value *v)
{
    const char *method = json_string(v, "quant_method");
    if (!v || v->kind != JSON_OBJECT || (!method && !text_method))
        return QDNN_STATUS_SUCCESS;
    return set_config(f, v, method ? method : text_method);
}

static qdnnStatus_t own_config(struct qdnnFile *f)
{
    for (int i = 0; i < f->n_metadata; i++) {
        json_error error;
        if (strcmp(f->metadata[i].key, "quantization_config") != 0)
            continue;
        json *doc = json_parse(f->metadata[i].data, (size_t)f->metadata[i].bytes, &error);
        if (!doc)
            return error.no_memory
                       ? files_no_memory()
                       : files_damaged(&f->shards[0], 8, "__metadata__.quantization_config is not JSON: %s",
                                       error.reason);
        qdnnStatus_t status = try_config(f, NULL, json_root(doc));
        json_free(doc);
        return status;
    }
    return QDNN_STATUS_SUCCESS;
}

qdnnStatus_t checkpoint_read_config(struct qdnnFile *f, const char *path)
{
    char name[PATH_MAX_BYTES];
    f->config.name = "";
    FILES_TRY(own_config(f));
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !f->config.method; i++) {
        json *doc;
        if (!path_beside(path, places[i].file, name))
            continue;
        FILES_TRY(files_read_json(name, &doc));
        qdnnStatus_t status = doc ? try_config(f, places[i].method, json_at(json_root(doc), places[i].member))
                                  : QDNN_STATUS_SUCCESS;
        json_free(doc);
        FILES_TRY(status);
    }
    return QDNN_STATUS_SUCCESS;
}
