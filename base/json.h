/* A JSON parser (RFC 8259) for untrusted text: parses it once into linked values.
 *
 * Depth is bounded by JSON_DEPTH_MAX. Strings are UTF-8 without a NUL, so every text is a C string. */
#ifndef QDNN_BASE_JSON_H
#define QDNN_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JSON_DEPTH_MAX = 32, /* nesting of arrays and objects */
    /* A value takes 40 bytes of memory and may be 2 bytes of text, as in [0,0,0]: no more than this many values, and one
     * more for every 4 bytes of text, are read, so that a document takes at most 11 times its size and 2.6 MB. */
    JSON_VALUES_FREE = 1 << 16
};

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
/* Parses an object member by member, for texts of many members: `read` gets each with its values, which are valid during
 * the call; it returns false to stop. A member has at most `values_max` values, so that the memory is that of the text
 * and of one member. Returns false if `read` stopped (error->reason is null then), the text is not JSON or not an object,
 * or there is no memory. */
typedef bool (*json_member_reader)(void *user, const json_value *member);
bool json_read_members(const char *text, size_t bytes, size_t values_max, json_member_reader read, void *user,
                       json_error *error);
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
