/* What the driver writes to its log, in a folder of its own. */
#ifndef TEST_CUDA_LOG_FILE_H
#define TEST_CUDA_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the driver with a context, "settings" and PTXVM_LOG=<prefix><file>. False: reported. */
bool driver_open_logged(const char *prefix, const char *settings);
/* Closes the driver; returns the text of the log (empty if there is none), which the caller frees. */
char *driver_close_logged(void);
/* How often `part` occurs in `text`. */
int text_count(const char *text, const char *part);

#endif
