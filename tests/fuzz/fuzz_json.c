/* libFuzzer target: any bytes are JSON or an error with a line of the text; what is JSON can be walked through. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts what a value holds, itself included. */
static uint64_t walk(const json_value *v, int depth)
{
    uint64_t n = 1, held = 0;
    if (depth > JSON_DEPTH_MAX || !v->text)
        abort();
    for (const json_value *inner = v->first; inner; inner = inner->next, held++) {
        if ((v->kind == JSON_OBJECT) != (inner->name != NULL))
            abort();
        n += walk(inner, depth + 1);
    }
    if (held != v->count || (held && v->kind != JSON_OBJECT && v->kind != JSON_ARRAY))
        abort();
    return n;
}

static void look_up(const json_value *root, const uint8_t *data, size_t size)
{
    char path[64];
    uint64_t number;
    size_t n = size < sizeof path - 1 ? size : sizeof path - 1;
    memcpy(path, data + size - n, n);
    path[n] = 0;
    json_at(root, path);
    json_string(root, path);
    json_u64(root, path, &number);
    json_u64(root, "0", &number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error error = {0};
    json *doc = json_parse((const char *)data, size, &error);
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    if (!doc && (!error.reason || error.line < 1 || error.line > lines))
        abort();
    if (doc && walk(json_root(doc), 0) == 0)
        abort();
    if (doc && size)
        look_up(json_root(doc), data, size);
    json_free(doc);
    return 0;
}
