/* A reader of JSON (RFC 8259) for text that nobody vouches for: read once into values that point at each
 * other.
 *
 * Depth is bounded by JSON_DEPTH_MAX. Strings are UTF-8 without a NUL, so every text is a C string. */
#ifndef QDNN_BASE_JSON_H
#define QDNN_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32 }; /* arrays and objects within each other */

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    uint32_t count;   /* how many members or elements it holds */
    const char *name; /* of a member; null otherwise */
    const char *text; /* a string without quotes and escapes; a number or a word as it is written; else "" */
    const json_value *first; /* of what it holds; null where that is nothing */
    const json_value *next;  /* the member or element after it; null after the last */
};

typedef struct json_error {
    bool no_memory;
    size_t line;   /* of the text, from 1 */
    size_t offset; /* in bytes */
    const char *reason;
} json_error;

/* Null, with the reason in *error, for what is not JSON and where there is no memory. The text may go
 * afterwards. */
typedef struct json json;
json *json_parse(const char *text, size_t bytes, json_error *error);
void json_free(json *doc); /* and all its values; null is fine */
const json_value *json_root(const json *doc);

/* What is at a path of names and numbers such as "kernels.3.files.0.name"; null where there is nothing. "" is
 * the value itself; a null value has nothing anywhere. */
const json_value *json_at(const json_value *value, const char *path);
/* The text of the string there; null where there is none. */
const char *json_string(const json_value *value, const char *path);
/* Whether there is a number of digits alone that fits. */
bool json_u64(const json_value *value, const char *path, uint64_t *number);
/* Whether there is a number; the nearest double, whatever the locale. */
bool json_f64(const json_value *value, const char *path, double *number);
/* Whether there is true or false. */
bool json_bool(const json_value *value, const char *path, bool *answer);

#endif
