/* The folder of a checkpoint. */
#include "tools/qdnn/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the source ---- */

/* A path in the folder; returns an exit code. */
static int path_in(const folder *f, const char *name, char path[UNFINISHED_PATH])
{
    return snprintf(path, UNFINISHED_PATH, "%s/%s", f->path, name) < UNFINISHED_PATH
               ? TOOL_OK
               : tool_fail("the path of %s is too long", name);
}

/* Reads a regular file; *found: whether there is one. */
static int read_regular(const folder *f, const char *name, tool_text *text, bool *found)
{
    struct stat info;
    char path[UNFINISHED_PATH];
    int status = path_in(f, name, path);
    *found = false;
    if (status != TOOL_OK)
        return status;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? TOOL_OK : tool_fail("cannot read %s: %s", path, strerror(errno));
    *found = S_ISREG(info.st_mode);
    return *found ? tool_read(path, text) : TOOL_OK;
}

static int read_config(folder *f)
{
    tool_text text = {0};
    json_error error;
    bool found;
    int status = read_regular(f, "config.json", &text, &found);
    if (status == TOOL_OK && found) {
        f->config = json_parse(text.data ? text.data : "", text.size, &error);
        if (!f->config)
            status = tool_fail("%s/config.json: line %zu: %s", f->path, error.line, error.reason);
    }
    tool_text_free(&text);
    return status;
}

int folder_open(folder *f, const char *in)
{
    struct stat info;
    const char *slash = strrchr(in, '/');
    if (stat(in, &info) != 0)
        return tool_fail("cannot read %s: %s", in, strerror(errno));
    bool is_folder = S_ISDIR(info.st_mode);
    int length = is_folder ? (int)strlen(in) : slash ? (int)(slash - in) : 0;
    *f = (folder){0};
    const char *from = is_folder || length ? in : slash ? "/" : ".";
    if (snprintf(f->path, sizeof f->path, "%.*s", from == in ? length : 1, from) >= (int)sizeof f->path)
        return tool_fail("the path %.60s... is too long", in);
    return read_config(f);
}

void folder_close(folder *f)
{
    json_free(f->config);
    f->config = NULL;
}

/* ---- Linear layers ---- */

/* Parts of a name, between dots. */
static bool has_part(const char *name, bool (*is)(const char *part, size_t length))
{
    for (const char *end; *name; name = end + (*end == '.')) {
        end = name + strcspn(name, ".");
        if (is(name, (size_t)(end - name)))
            return true;
    }
    return false;
}

static bool is_one_of(const char *part, size_t length, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == length && strncmp(*names, part, length) == 0)
            return true;
    return false;
}

/* "embed_tokens", "word_embeddings", "token_embd"; GPT-2's and T5's names of theirs; and tables of positions. */
static bool is_embedding(const char *part, size_t length)
{
    static const char *const names[] = {"wte", "wpe", "shared", "relative_attention_bias", NULL};
    for (size_t i = 0; i + 4 <= length; i++)
        if (strncmp(part + i, "embd", 4) == 0 || (i + 5 <= length && strncmp(part + i, "embed", 5) == 0))
            return true;
    return is_one_of(part, length, names);
}

static bool is_output_layer(const char *part, size_t length)
{
    static const char *const names[] = {"lm_head", "output_projection", NULL};
    return is_one_of(part, length, names);
}

static bool ties_embeddings(const folder *f)
{
    bool tied = false;
    const json_value *config = json_root(f->config);
    return (json_bool(config, "tie_word_embeddings", &tied) && tied) ||
           (json_bool(config, "text_config.tie_word_embeddings", &tied) && tied);
}

bool folder_is_linear(const folder *f, const char *name)
{
    size_t length = strlen(name);
    if (length < 7 || strcmp(name + length - 7, ".weight") != 0 || has_part(name, is_embedding))
        return false;
    return !(has_part(name, is_output_layer) && ties_embeddings(f));
}

const char *folder_dtype(const folder *f)
{
    static const char *const paths[] = {"dtype", "torch_dtype", "text_config.dtype",
                                        "text_config.torch_dtype"};
    const char *found = NULL;
    for (int i = 0; i < 4 && !found; i++)
        found = json_string(json_root(f->config), paths[i]);
    return found;
}

/* ---- config.json ---- */

/* Members that no longer apply: how the source was quantized, and the type in which it computes. */
static bool is_stale(const output *out, const json_value *v)
{
    static const char *const quantization[] = {"quantization_config", "compression_config", NULL};
    static const char *const dtype[] = {"dtype", "torch_dtype", NULL};
    return v->name &&
           ((out->config != CONFIG_OF_SOURCE && is_one_of(v->name, strlen(v->name), quantization)) ||
            (out->dtype && is_one_of(v->name, strlen(v->name), dtype)));
}

static void begin_member(tool_text *text, int depth, bool *first)
{
    tool_append(text, ",", !*first);
    tool_printf(text, "\n%*s", 2 * depth, "");
    *first = false;
}

static void print(tool_text *text, const output *out, const json_value *v, int depth);

static void print_members(tool_text *text, const output *out, const json_value *v, int depth, bool *first)
{
    for (const json_value *child = v->first; child; child = child->next) {
        if (is_stale(out, child))
            continue;
        begin_member(text, depth, first);
        if (child->name) {
            tool_quote(text, child->name);
            tool_append(text, ": ", 2);
        }
        print(text, out, child, depth);
    }
}

static void print_new(tool_text *text, const output *out, bool *first)
{
    if (out->dtype) {
        begin_member(text, 1, first);
        tool_printf(text, "\"dtype\": \"%s\"", out->dtype);
    }
    if (out->quant_config) {
        begin_member(text, 1, first);
        tool_printf(text, "\"quantization_config\": %s", out->quant_config);
    }
}

static void print(tool_text *text, const output *out, const json_value *v, int depth)
{
    bool object = v->kind == JSON_OBJECT, first = true;
    if (v->kind == JSON_STRING) {
        tool_quote(text, v->text);
    } else if (!object && v->kind != JSON_ARRAY) {
        tool_printf(text, "%s", v->text);
    } else {
        tool_append(text, object ? "{" : "[", 1);
        print_members(text, out, v, depth + 1, &first);
        if (object && depth == 0)
            print_new(text, out, &first);
        if (!first)
            tool_printf(text, "\n%*s", 2 * depth, "");
        tool_append(text, object ? "}" : "]", 1);
    }
}

static int write_config(const folder *f, output *out)
{
    tool_text text = {0};
    print(&text, out, json_root(f->config), 0);
    tool_append(&text, "\n", 1);
    int status =
        text.failed ? tool_fail("out of memory") : output_put_file(out, "config.json", text.data, text.size);
    tool_text_free(&text);
    return status;
}

/* ---- other files ---- */

static bool ends_in(const char *name, const char *const *ends)
{
    size_t length = strlen(name);
    for (; *ends; ends++)
        if (length >= strlen(*ends) && strcmp(name + length - strlen(*ends), *ends) == 0)
            return true;
    return false;
}

/* Weights, configurations of the source's quantization, and hidden files stay behind. */
static bool is_copied(const output *out, const char *name)
{
    static const char *const weights[] = {".safetensors", ".bin",    ".pt",         ".pth",       ".ckpt",
                                          ".gguf",        ".onnx",   ".msgpack",    ".h5",        ".ot",
                                          ".npz",         ".tflite", ".index.json", ".onnx_data", NULL};
    static const char *const quantization[] = {"hf_quant_config.json", "quantize_config.json",
                                               "quant_config.json", NULL};
    if (*name == '.' || strcmp(name, "config.json") == 0 || ends_in(name, weights))
        return false;
    return out->config == CONFIG_OF_SOURCE || !is_one_of(name, strlen(name), quantization);
}

static int copy_file(const folder *f, output *out, const char *name)
{
    tool_text text = {0};
    bool found;
    int status = read_regular(f, name, &text, &found);
    if (status == TOOL_OK && found)
        status = output_put_file(out, name, text.data, text.size);
    tool_text_free(&text);
    return status;
}

int folder_write(const folder *f, output *out)
{
    if (!f->config) {
        fprintf(stderr, "%s: %s has no config.json, which loaders need; only the weights are written\n",
                tool_program, *f->path ? f->path : "the input");
        return TOOL_OK;
    }
    int status = write_config(f, out);
    DIR *list = opendir(f->path);
    if (!list)
        return tool_fail("cannot read %s: %s", f->path, strerror(errno));
    errno = 0;
    for (struct dirent *entry; status == TOOL_OK && (entry = readdir(list)) != NULL; errno = 0)
        if (is_copied(out, entry->d_name))
            status = copy_file(f, out, entry->d_name);
    if (status == TOOL_OK && errno)
        status = tool_fail("cannot read %s: %s", f->path, strerror(errno));
    closedir(list);
    return status;
}
