/* A hash table, and a file of lines: the first names the program, the others hold a value as hexadecimal digits, a blank and its name. */
#include "clock/product/kept.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    unsigned char *value; /* behind it the name */
} entry;

enum { SLOTS = 1 << 16 };

struct kept {
    size_t bytes, count;
    entry *slots[SLOTS];
    FILE *file;
    pthread_mutex_t lock;
};

kept *kept_new(size_t bytes)
{
    kept *k = calloc(1, sizeof *k);
    if (k) {
        k->bytes = bytes;
        pthread_mutex_init(&k->lock, NULL);
    }
    return k;
}

void kept_free(kept *k)
{
    for (int i = 0; k && i < SLOTS; i++)
        for (entry *e = k->slots[i], *next; e; e = next) {
            next = e->next;
            free(e->value);
            free(e);
        }
    if (k && k->file)
        fclose(k->file);
    if (k)
        pthread_mutex_destroy(&k->lock);
    free(k);
}

/* ---- The table ---- */

static entry **slot_of(kept *k, const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return &k->slots[(hash ^ hash >> 16) % SLOTS];
}

static const char *name_of(const kept *k, const entry *e)
{
    return (const char *)e->value + k->bytes;
}

static entry *find(kept *k, const char *name)
{
    entry *e = *slot_of(k, name);
    while (e && strcmp(name_of(k, e), name))
        e = e->next;
    return e;
}

static bool insert(kept *k, const char *name, const void *value)
{
    entry *e = malloc(sizeof *e), **slot = slot_of(k, name);
    unsigned char *copy = malloc(k->bytes + strlen(name) + 1);
    if (!e || !copy) {
        free(e);
        free(copy);
        return false;
    }
    memcpy(copy, value, k->bytes);
    memcpy(copy + k->bytes, name, strlen(name) + 1);
    *e = (entry){*slot, copy};
    *slot = e;
    k->count++;
    return true;
}

/* ---- The file ---- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A line that was cut off is left out. */
static void read_line(kept *k, char *line, unsigned char *value)
{
    char *end = strchr(line, '\n');
    if (!end || (size_t)(end - line) < 2 * k->bytes + 2 || line[2 * k->bytes] != ' ')
        return;
    *end = 0;
    for (size_t i = 0; i < k->bytes; i++) {
        const int high = digit(line[2 * i]), low = digit(line[2 * i + 1]);
        if (high < 0 || low < 0)
            return;
        value[i] = (unsigned char)(high << 4 | low);
    }
    const char *name = line + 2 * k->bytes + 1;
    if (!find(k, name))
        insert(k, name, value);
}

static void head_line(const kept *k, uint64_t program, char *head, size_t size)
{
    snprintf(head, size, "kept by %016" PRIx64 ": values of %zu bytes\n", program, k->bytes);
}

/* False: it is of another program, or there is none. */
static bool read_lines(kept *k, FILE *file, const char *head)
{
    enum { NAME = 1024 };
    const size_t size = 2 * k->bytes + NAME;
    char *line = malloc(size);
    unsigned char *value = malloc(k->bytes);
    bool ok = line && value && fgets(line, (int)size, file) && !strcmp(line, head);
    while (ok && fgets(line, (int)size, file))
        read_line(k, line, value);
    free(line);
    free(value);
    return ok;
}

bool kept_file(kept *k, const char *path, uint64_t program)
{
    char head[96];
    head_line(k, program, head, sizeof head);
    FILE *file = fopen(path, "r");
    const bool known = file && read_lines(k, file, head);
    if (file)
        fclose(file);
    k->file = fopen(path, known ? "a" : "w");
    /* behind a line that was cut off, one that is empty */
    return k->file && fputs(known ? "\n" : head, k->file) >= 0 && fflush(k->file) == 0;
}

static bool write_line(kept *k, const char *name, const unsigned char *value)
{
    for (size_t i = 0; i < k->bytes; i++)
        fprintf(k->file, "%02x", value[i]);
    fprintf(k->file, " %s\n", name);
    return fflush(k->file) == 0;
}

/* ---- Both ---- */

bool kept_find(kept *k, const char *name, void *value)
{
    pthread_mutex_lock(&k->lock);
    const entry *e = find(k, name);
    if (e)
        memcpy(value, e->value, k->bytes);
    pthread_mutex_unlock(&k->lock);
    return e != NULL;
}

size_t kept_count(kept *k)
{
    pthread_mutex_lock(&k->lock);
    const size_t count = k->count;
    pthread_mutex_unlock(&k->lock);
    return count;
}

bool kept_add(kept *k, const char *name, const void *value)
{
    pthread_mutex_lock(&k->lock);
    bool ok = find(k, name) || (insert(k, name, value) && (!k->file || write_line(k, name, value)));
    pthread_mutex_unlock(&k->lock);
    return ok;
}
