/* ptxvm-ptxas: a replacement for ptxas. It accepts ptxas's command line, checks the PTX as ptxvm would when
 * loading it, and writes the text itself as the "cubin", which ptxvm's libcuda.so.1 loads like any other
 * PTX. */
#ifndef PTXVM_PTXAS_H
#define PTXVM_PTXAS_H

#include <stdbool.h>

enum { PTXAS_OK = 0, PTXAS_FAILED = 255 }; /* ptxas's own exit codes, which callers check */

typedef struct ptxas_options {
    const char *arch;   /* "sm_75", "compute_90" */
    const char *output; /* "elf.o" by default */
    const char *input;  /* null: none */
    bool input_is_text; /* --input-as-string */
    bool verbose, compile_only, no_warnings, warnings_are_errors;
    bool help, version, list_versions;
} ptxas_options;

/* Fills in the options, starting with the defaults. Returns PTXAS_OK or PTXAS_FAILED, with the error on
 * standard error. */
int ptxas_parse(ptxas_options *options, int argc, char **argv);
void ptxas_print_help(void);

/* Prints "ptxas fatal   : ..." and returns PTXAS_FAILED. */
int ptxas_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
