/* A file of a test: made, opened, looked at. */
#ifndef QDNN_TEST_FILES_OPENED_H
#define QDNN_TEST_FILES_OPENED_H

#include <qdnn/files.h>
#include <qdnn/qdnn.h>

#include "files/maker.h"
#include "support/process.h"

typedef struct opened {
    char dir[512];
    qdnnFile_t file;
} opened;

/* Writes the bytes (which are freed) under a name into a new folder. */
void opened_make(opened *o, bytes b, const char *name);
/* Opens it; false, with a failure reported, where it is refused. */
bool opened_open(opened *o, const char *name);
void opened_close(opened *o);

/* Opens a file that is damaged, and checks the status and what the error says. */
void check_refused(const char *dir, const char *name, qdnnStatus_t status, const char *says);

/* Runs a shell command in the folder, with the commands of the project in the path and ptxvm as the device. */
process_result run_in(const char *dir, const char *command);
/* It must end with that exit code and say that. */
void check_command(const char *dir, const char *command, int status, const char *says);

/* A weight by its name; false, with a failure reported, where there is none or it has a problem. */
bool find_weight(const opened *o, const char *name, qdnnFileWeight_t *w);

/* The weight on ptxvm by its descriptor as it is; false, with a failure reported, where that fails. */
bool read_values(const qdnnFileWeight_t *w, float *y, int64_t n);

/* The same, compared with the values that it stands for, bit for bit. */
void check_values(const qdnnFileWeight_t *w, const float *expected, int64_t n);

#endif
