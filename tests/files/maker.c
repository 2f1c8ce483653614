/* Files for tests. */
#include "files/maker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

void bytes_put(bytes *b, const void *data, size_t n)
{
    if (b->room - b->size < n + 1) {
        b->room = 2 * b->room + n + 64;
        b->data = realloc(b->data, b->room);
    }
    if (n)
        memcpy(b->data + b->size, data, n);
    b->size += n;
    b->data[b->size] = 0;
}

void bytes_number(bytes *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        bytes_put(b, &byte, 1);
    }
}

void bytes_text(bytes *b, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_put(b, text, (size_t)n);
}

void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

void bytes_write(const bytes *b, const char *dir, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    CHECK(fwrite(b->data, 1, b->size, file) == b->size);
    CHECK(fclose(file) == 0);
}

void text_write(const char *text, const char *dir, const char *name)
{
    bytes b = {0};
    bytes_put(&b, text, strlen(text));
    bytes_write(&b, dir, name);
    bytes_free(&b);
}

static void pad(bytes *b, size_t multiple)
{
    while (b->size % multiple)
        bytes_number(b, 0, 1);
}

static void join(bytes *to, bytes *from)
{
    bytes_put(to, from->data, from->size);
    bytes_free(from);
}

/* ---- GGUF ---- */

void gguf_string(bytes *b, const char *text)
{
    bytes_number(b, strlen(text), 8);
    bytes_put(b, text, strlen(text));
}

void gguf_entry(gguf_maker *g, const char *key, uint32_t type, const void *value, size_t n)
{
    gguf_string(&g->entries, key);
    bytes_number(&g->entries, type, 4);
    bytes_put(&g->entries, value, n);
    g->n_entries++;
}

void gguf_entry_string(gguf_maker *g, const char *key, const char *text)
{
    bytes value = {0};
    gguf_string(&value, text);
    gguf_entry(g, key, 8, value.data, value.size);
    bytes_free(&value);
}

void gguf_entry_u32(gguf_maker *g, const char *key, uint32_t value)
{
    gguf_entry(g, key, 4, &value, sizeof value);
}

void gguf_entry_u16(gguf_maker *g, const char *key, uint16_t value)
{
    gguf_entry(g, key, 2, &value, sizeof value);
}

void gguf_tensor(gguf_maker *g, const char *name, uint32_t type, int rank, const int64_t *dims,
                 const void *data, size_t n)
{
    pad(&g->data, g->alignment ? g->alignment : 32);
    gguf_string(&g->tensors, name);
    bytes_number(&g->tensors, (uint64_t)rank, 4);
    for (int i = rank; i-- > 0;)
        bytes_number(&g->tensors, (uint64_t)dims[i], 8);
    bytes_number(&g->tensors, type, 4);
    bytes_number(&g->tensors, g->data.size, 8);
    bytes_put(&g->data, data, n);
    g->n_tensors++;
}

bytes gguf_make(gguf_maker *g)
{
    bytes out = {0};
    if (g->alignment)
        gguf_entry_u32(g, "general.alignment", g->alignment);
    bytes_put(&out, "GGUF", 4);
    bytes_number(&out, g->version ? g->version : 3, 4);
    bytes_number(&out, g->n_tensors, 8);
    bytes_number(&out, g->n_entries, 8);
    join(&out, &g->entries);
    join(&out, &g->tensors);
    pad(&out, g->alignment ? g->alignment : 32);
    join(&out, &g->data);
    return out;
}

/* ---- safetensors ---- */

static void begin(st_maker *s)
{
    bytes_put(&s->header, s->begun ? "," : "{", 1);
    s->begun = true;
}

void st_metadata(st_maker *s, const char *json)
{
    begin(s);
    bytes_put(&s->header, "\"__metadata__\":", 15);
    bytes_put(&s->header, json, strlen(json));
}

void st_tensor(st_maker *s, const char *name, const char *type, int rank, const int64_t *dims,
               const void *data, size_t n)
{
    begin(s);
    bytes_text(&s->header, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, type);
    for (int i = 0; i < rank; i++)
        bytes_text(&s->header, "%s%lld", i ? "," : "", (long long)dims[i]);
    bytes_text(&s->header, "],\"data_offsets\":[%zu,%zu]}", s->data.size, s->data.size + n);
    bytes_put(&s->data, data, n);
}

void st_add(st_maker *s, const char *name, const char *type, int64_t rows, int64_t columns, const void *data,
            size_t n)
{
    const int64_t dims[2] = {rows, columns};
    st_tensor(s, name, type, columns ? 2 : 1, dims, data, n);
}

bytes st_make(st_maker *s)
{
    bytes_put(&s->header, s->begun ? "}" : "{}", s->begun ? 1 : 2);
    bytes out = st_raw((const char *)s->header.data, s->data.data, s->data.size);
    bytes_free(&s->header);
    bytes_free(&s->data);
    return out;
}

bytes st_raw(const char *header, const void *data, size_t n)
{
    bytes out = {0};
    bytes_number(&out, strlen(header), 8);
    bytes_put(&out, header, strlen(header));
    bytes_put(&out, data, n);
    return out;
}
