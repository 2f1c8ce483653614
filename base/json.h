/* A JSON parser (RFC 8259) for untrusted text: parses it once into linked values.
 *
 * Depth is bounded by JSON_DEPTH_MAX. Strings are UTF-8 without a NUL, so every text is a C string. */
#ifndef QDNN_BASE_JSON_H
#define QDNN_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32 }; /* nesting of arrays and objects */

typedef enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    uint32_t count;          /* the number of members or elements */
    const char *name;        /* of a member; null otherwise */
    const char *text;        /* a string without quotes and escapes; a number or a word as written; else "" */
    const json_value *first; /* the first member or element; null if there are none */
    const json_value *next;  /* the next member or element of the same parent; null after the last */
};

typedef struct json_error {
    bool no_memory;
    size_t line;   /* in the text, from 1 */
    size_t offset; /* in bytes */
    const char *reason;
} json_error;

/* Returns null, with the reason in *error, if the text is not JSON or there is no memory. The text may be
 * freed afterwards. */
typedef struct json json;
json *json_parse(const char *text, size_t bytes, json_error *error);
void json_free(json *doc); /* with all its values; may be null */
const json_value *json_root(const json *doc);

/* The value at a path of names and numbers such as "kernels.3.files.0.name"; null if there is none. "" is the
 * value itself; nothing is found in a null value. */
const json_value *json_at(const json_value *value, const char *path);
/* The text of the string at the path; null if there is none. */
const char *json_string(const json_value *value, const char *path);
/* Whether there is a number that consists only of digits and fits. */
bool json_u64(const json_value *value, const char *path, uint64_t *number);
/* Whether there is a number; *number receives the nearest double, whatever the locale. */
bool json_f64(const json_value *value, const char *path, double *number);
/* Whether there is true or false. */
bool json_bool(const json_value *value, const char *path, bool *answer);

#endif
