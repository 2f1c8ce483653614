/* The CUDA toolkit, if one is found at run time: ptxas (a program) and nvJitLink (a library, loaded by name).
 *
 * Searched in this order: $CUDA_HOME, then PATH or the system's loader, then /usr/local/cuda unless CUDA_HOME is
 * set. For the tools, the tests and the benchmarks; libqdnn does not contain it. */
#ifndef PTXGEN_TOOLKIT_H
#define PTXGEN_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

/* The path of ptxas. Returns false if there is none. */
bool toolkit_find_ptxas(char *path, size_t size);

/* A result of the toolkit: bytes, zero-terminated for convenience, or a log with the reason. Free it with
 * toolkit_free. */
typedef struct toolkit_result {
    char *data;
    size_t bytes;
    char *log;
} toolkit_result;
void toolkit_free(toolkit_result *result);

/* Assembles the PTX in a file with that ptxas; arch is "sm_90a". The log contains the output of `ptxas -v` in
 * either case. */
bool toolkit_ptxas(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result);

/* The same with line information: nvdisasm then shows the PTX line that each instruction came from. */
bool toolkit_ptxas_lines(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result);

/* The path of nvdisasm: $QDNN_NVDISASM, then where ptxas is searched for. Returns false if there is none. */
bool toolkit_find_nvdisasm(char *path, size_t size);

/* The code of a cubin as text, with the PTX lines and the bits of each instruction. */
bool toolkit_nvdisasm(const char *nvdisasm, const char *cubin_path, toolkit_result *result);

/* PTX to cubin in this process. toolkit_has_jitlink tells whether the library is available. */
bool toolkit_has_jitlink(void);
bool toolkit_jitlink(const char *ptx, const char *arch, toolkit_result *result);

/* Creates a directory for temporary files, and removes it; it contains no folders. */
bool toolkit_make_directory(char *path, size_t size);
void toolkit_remove_directory(const char *path);

/* Reads a whole file, zero-terminated; null if it fails. */
char *toolkit_read_file(const char *path, size_t *bytes);

#endif
