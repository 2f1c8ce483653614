/* The environment variables that the library, its tools and its tests read. */
#ifndef QDNN_DRIVER_VARIABLES_H
#define QDNN_DRIVER_VARIABLES_H

/* Logs, once per process, a warning for each variable QDNN_... that is set and that nothing reads: it is
 * probably misspelt. */
void qdnn_variables_check(void);
/* For tests: the next check logs again. */
void qdnn_variables_forget(void);

#endif
