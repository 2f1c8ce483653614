/* Runs a program from a test and captures its output. */
#ifndef QDNN_TEST_PROCESS_H
#define QDNN_TEST_PROCESS_H

#include <stddef.h>

typedef struct process_result {
    int status;   /* exit code; 128 + signal if a signal ended it; -1 if it could not be started */
    char *output; /* standard output and standard error together, zero-terminated; process_free frees it */
    size_t length;
} process_result;

/* Runs a shell command. */
process_result process_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with a terminal as standard input, output and error; line ends in the output are converted back to
 * plain ones. */
process_result process_run_on_terminal(const char *format, ...) __attribute__((format(printf, 1, 2)));
void process_free(process_result *result);

/* A new empty directory; temp_dir_remove removes it with its contents. */
void temp_dir_make(char *path, size_t size);
void temp_dir_remove(const char *path);

#endif
