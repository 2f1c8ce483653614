/* An output file that is written completely or not at all. */
#include "tools/qdnn/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file to remove on an interrupt; only one is written at a time. */
static char unfinished[4096];
static volatile sig_atomic_t is_unfinished;

static void remove_unfinished(int signal_number)
{
    if (is_unfinished)
        unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int output_open(output *out, const char *path, qdnnFile_t source)
{
    *out = (output){.path = path, .source = source, .file = -1};
    if (ends_with(path, ".gguf"))
        out->kind = QDNN_FILE_GGUF;
    else if (ends_with(path, ".safetensors"))
        out->kind = QDNN_FILE_SAFETENSORS;
    else
        return tool_usage_error("cannot tell the kind of '%s'; name it OUT.gguf or OUT.safetensors", path);
    return TOOL_OK;
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
            "%s: tensors of type %s cannot be stored in %s; give it another type by --tensor, or 'drop'",
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

static int write_failed(const output *out)
{
    return tool_fail("cannot write %s: %s", out->temporary, strerror(errno));
}

static int write_at(output *out, const void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n =
            pwrite(out->file, (const char *)data + done, (size_t)(bytes - done), (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return write_failed(out);
        done += (uint64_t)n;
    }
    return TOOL_OK;
}

int output_begin(output *out)
{
    tool_text header = {0};
    int n = snprintf(out->temporary, sizeof out->temporary, "%s.tmp-%ld", out->path, (long)getpid());
    int status = n < (int)sizeof out->temporary ? TOOL_OK : tool_fail("the path of the output is too long");
    if (status == TOOL_OK)
        status = out->kind == QDNN_FILE_GGUF ? gguf_header(out, &header) : safetensors_header(out, &header);
    if (status == TOOL_OK && header.failed)
        status = tool_fail("out of memory");
    if (status == TOOL_OK) {
        out->file = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        status = out->file < 0 ? write_failed(out) : TOOL_OK;
    }
    if (status == TOOL_OK) {
        memcpy(unfinished, out->temporary, sizeof unfinished);
        is_unfinished = 1;
        signal(SIGINT, remove_unfinished);
        signal(SIGTERM, remove_unfinished);
        out->header_bytes = header.size;
        status = write_at(out, header.data, header.size, 0);
    }
    /* reserve the whole length now: a full disk is noticed before the work, and gaps are zeros */
    if (status == TOOL_OK && ftruncate(out->file, (off_t)(out->header_bytes + out->data_bytes)) != 0)
        status = write_failed(out);
    tool_text_free(&header);
    return status;
}

int output_put(output *out, int index, const void *data)
{
    const output_tensor *t = &out->tensors[index];
    return write_at(out, data, t->bytes, out->header_bytes + t->offset);
}

int output_finish(output *out)
{
    int closed = close(out->file);
    out->file = -1;
    if (closed != 0 || rename(out->temporary, out->path) != 0) {
        int status = tool_fail("cannot write %s: %s", out->path, strerror(errno));
        unlink(out->temporary);
        is_unfinished = 0;
        return status;
    }
    is_unfinished = 0;
    return TOOL_OK;
}

void output_close(output *out)
{
    if (out->file >= 0) {
        close(out->file);
        unlink(out->temporary);
        is_unfinished = 0;
    }
    for (int i = 0; i < out->n_tensors; i++)
        free(out->tensors[i].name);
    free(out->tensors);
    free(out->quant_config);
    *out = (output){.file = -1};
}
