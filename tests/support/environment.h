/* Environment variables for the time of a test. */
#ifndef QDNN_TEST_ENVIRONMENT_H
#define QDNN_TEST_ENVIRONMENT_H

/* Sets "NAME=VALUE OTHER=VALUE"; "NAME=" unsets it. Null: nothing. */
void environment_set(const char *settings);
/* Everything is again what it was before the first environment_set. */
void environment_restore(void);

#endif
