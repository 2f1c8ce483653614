/* What long measurements have found, by name, so that nothing is measured twice: in memory, and in a file if there is one, with which a run
 * that was interrupted goes on where it ended. Several threads may use it.
 *
 *   kept *results = kept_new(sizeof(result));
 *   kept_file(results, "build/bench_facts.kept", program);
 *   if (!kept_find(results, name, &r)) {
 *       r = measure(...);
 *       kept_add(results, name, &r);
 *   } */
#ifndef CLOCK_PRODUCT_KEPT_H
#define CLOCK_PRODUCT_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kept kept;

/* Values of this many bytes, without pointers. Null: no memory. */
kept *kept_new(size_t bytes);
void kept_free(kept *k);

/* Reads the file, and appends to it what is added from now on. Values are stored as they lie in memory, so a file belongs to one `program`
 * (a hash of it): that of another is begun anew. False: it cannot be read or written. */
bool kept_file(kept *k, const char *path, uint64_t program);

bool kept_find(kept *k, const char *name, void *value);
size_t kept_count(kept *k);

/* A name without line ends. The first value stays. False: no memory, or the file cannot be written. */
bool kept_add(kept *k, const char *name, const void *value);

#endif
