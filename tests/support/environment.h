/* Environment variables for the duration of a test. */
#ifndef QDNN_TEST_ENVIRONMENT_H
#define QDNN_TEST_ENVIRONMENT_H

/* Sets "NAME=VALUE OTHER=VALUE"; "NAME=" unsets a variable. Null: does nothing. */
void environment_set(const char *settings);
/* Restores all variables to their state before the first environment_set. */
void environment_restore(void);

#endif
