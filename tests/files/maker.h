/* Files for tests, made byte by byte: nothing here is shared with what reads or writes them in the project. */
#ifndef QDNN_TEST_FILES_MAKER_H
#define QDNN_TEST_FILES_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
typedef struct bytes {
    uint8_t *data;
    size_t size, room;
} bytes;
void bytes_put(bytes *b, const void *data, size_t n);
void bytes_number(bytes *b, uint64_t value, int n); /* little-endian */
void bytes_text(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bytes_free(bytes *b);
/* Writes them to dir/name; a failure is reported. */
void bytes_write(const bytes *b, const char *dir, const char *name);
void text_write(const char *text, const char *dir, const char *name);

/* ---- GGUF ---- */

typedef struct gguf_maker {
    uint32_t version;   /* 0: 3 */
    uint32_t alignment; /* 0: 32, and the file does not mention it */
    bytes entries, tensors, data;
    uint64_t n_entries, n_tensors;
} gguf_maker;
void gguf_string(bytes *b, const char *text);
void gguf_entry(gguf_maker *g, const char *key, uint32_t type, const void *value, size_t n);
void gguf_entry_string(gguf_maker *g, const char *key, const char *text);
void gguf_entry_u32(gguf_maker *g, const char *key, uint32_t value);
void gguf_entry_u16(gguf_maker *g, const char *key, uint16_t value);
/* Dimensions slowest first; `type` is the number in files. */
void gguf_tensor(gguf_maker *g, const char *name, uint32_t type, int rank, const int64_t *dims,
                 const void *data, size_t n);
/* The file; frees the maker. */
bytes gguf_make(gguf_maker *g);

/* ---- safetensors ---- */

typedef struct st_maker {
    bytes header, data;
    bool begun;
} st_maker;
void st_metadata(st_maker *s, const char *json);
void st_tensor(st_maker *s, const char *name, const char *type, int rank, const int64_t *dims,
               const void *data, size_t n);
/* One or two dimensions; columns of 0: one dimension. */
void st_add(st_maker *s, const char *name, const char *type, int64_t rows, int64_t columns, const void *data,
            size_t n);
bytes st_make(st_maker *s);
/* A file of this header and data, whatever they are. */
bytes st_raw(const char *header, const void *data, size_t n);

#endif
