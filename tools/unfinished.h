/* Files and folders that exist under a temporary name until they are complete.
 *
 * They are created exclusively, so that neither an existing file nor the target of a symbolic link is
 * overwritten. Until they are published, discarding removes them, and so does every signal that can be caught
 * and would end the program. Not thread-safe: a command writes one output at a time. */
#ifndef TOOLS_UNFINISHED_H
#define TOOLS_UNFINISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNFINISHED_PATH = 4096 };

/* Creates an empty file or folder next to `path`: PATH.tmp-PID, or with another number if that exists.
 *   name   receives its path
 *   file   receives a descriptor for writing; null: a folder is created
 * Returns false with errno set. */
bool unfinished_beside(const char *path, char name[UNFINISHED_PATH], int *file);
/* The same with exactly that name, which must not exist: a file in an unfinished folder. */
bool unfinished_create(const char *name, int *file);

/* Writes all bytes at an offset; returns false with errno set. */
bool unfinished_write(int file, const void *data, uint64_t bytes, uint64_t offset);
/* Makes room for a file of that size, so that a full disk is noticed before the work; gaps read as zeros. */
bool unfinished_reserve(int file, uint64_t bytes);
/* Returns false if the bytes may not have reached the disk. */
bool unfinished_sync(int file);

/* Renames what unfinished_beside created, and forgets everything that was created.
 *   synced   null: the rename need not survive a crash of the machine; else receives whether it does
 * Returns false with errno set: then nothing was renamed. */
bool unfinished_publish(const char *name, const char *path, bool *synced);
/* Removes everything that was created since the last publication. Keeps errno. */
void unfinished_discard(void);

#endif
