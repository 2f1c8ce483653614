/* The CUDA toolkit, where there is one at run time: ptxas (a program) and nvJitLink (a library, opened by
 * name).
 *
 * Searched in this order: $CUDA_HOME, then what PATH or the system's loader knows, then /usr/local/cuda
 * unless CUDA_HOME says that it is elsewhere. For the tool, the tests and the benchmarks; nothing of it is in
 * libqdnn. */
#ifndef PTXGEN_TOOLKIT_H
#define PTXGEN_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

/* The path of ptxas. False when there is none. */
bool toolkit_find_ptxas(char *path, size_t size);

/* A result of the toolkit: bytes, zero-terminated for convenience, or a log that says why not. Free with
 * toolkit_free. */
typedef struct toolkit_result {
    char *data;
    size_t bytes;
    char *log;
} toolkit_result;
void toolkit_free(toolkit_result *result);

/* Assembles the PTX in a file with that ptxas; arch is "sm_90a". The log holds what `ptxas -v` says either
 * way. */
bool toolkit_ptxas(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result);

/* The same with line information: nvdisasm then names the line of the PTX that each instruction came from. */
bool toolkit_ptxas_lines(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result);

/* The path of nvdisasm: $QDNN_NVDISASM, then where ptxas is looked for. False when there is none. */
bool toolkit_find_nvdisasm(char *path, size_t size);

/* The code of a cubin as text, with the lines of the PTX. */
bool toolkit_nvdisasm(const char *nvdisasm, const char *cubin_path, toolkit_result *result);

/* PTX to cubin in this process. toolkit_has_jitlink says whether the library is there. */
bool toolkit_has_jitlink(void);
bool toolkit_jitlink(const char *ptx, const char *arch, toolkit_result *result);

/* A new directory for temporary files, and its end; it holds no folders. */
bool toolkit_make_directory(char *path, size_t size);
void toolkit_remove_directory(const char *path);

/* The whole file, zero-terminated, or null. */
char *toolkit_read_file(const char *path, size_t *bytes);

#endif
