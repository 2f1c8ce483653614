/* Finding and using ptxas and nvJitLink at run time. The few library functions are declared here. */
#include "tools/toolkit.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptxgen/library.h"

/* ---- files ---- */

static char *read_all(FILE *file, size_t *bytes)
{
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (!text)
        return NULL;
    rewind(file);
    size_t got = fread(text, 1, (size_t)size, file);
    text[got] = 0;
    if (bytes)
        *bytes = got;
    return text;
}

char *toolkit_read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = read_all(file, bytes);
    fclose(file);
    return text;
}

bool toolkit_make_directory(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/qdnn.XXXXXX", base && *base ? base : "/tmp");
    return n > 0 && (size_t)n < size && mkdtemp(path) != NULL;
}

void toolkit_remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char file[4096];
        int n = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (n > 0 && (size_t)n < sizeof file && entry->d_name[0] != '.')
            unlink(file);
    }
    closedir(directory);
    rmdir(path);
}

void toolkit_free(toolkit_result *result)
{
    free(result->data);
    free(result->log);
    *result = (toolkit_result){0};
}

/* Fails with a message of our own as the log. */
static bool refuse(toolkit_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(toolkit_result *result, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    free(result->log);
    result->log = malloc(strlen(text) + 1);
    if (result->log)
        memcpy(result->log, text, strlen(text) + 1);
    return false;
}

/* ---- ptxas ---- */

static bool runnable(const char *folder, int length, const char *name, char *path, size_t size)
{
    int n = snprintf(path, size, "%.*s/%s", length, folder, name);
    return length > 0 && n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

/* name: "ptxas"; in_home: "bin/ptxas". */
static bool find_program(const char *name, const char *in_home, char *path, size_t size)
{
    const char *home = getenv("CUDA_HOME"), *search = getenv("PATH");
    if (home && runnable(home, (int)strlen(home), in_home, path, size))
        return true;
    while (search && *search) {
        int length = (int)strcspn(search, ":");
        if (runnable(search, length, name, path, size))
            return true;
        search += length + (search[length] == ':');
    }
    return !home && runnable("/usr/local/cuda", 15, in_home, path, size);
}

bool toolkit_find_ptxas(char *path, size_t size)
{
    return find_program("ptxas", "bin/ptxas", path, size);
}

bool toolkit_find_nvdisasm(char *path, size_t size)
{
    const char *named = getenv("QDNN_NVDISASM");
    if (!named || !*named)
        return find_program("nvdisasm", "bin/nvdisasm", path, size);
    int n = snprintf(path, size, "%s", named);
    return n > 0 && (size_t)n < size && access(path, X_OK) == 0;
}

/* Runs a program to its end; its output goes to the file. Returns its exit code, or -1. */
static int run_program(const char *const *argv, FILE *log)
{
    fflush(NULL); /* otherwise the child could print our buffers again */
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(fileno(log), STDOUT_FILENO) >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0)
            execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool run_ptxas(const char *const *argv, const char *cubin, toolkit_result *result)
{
    FILE *log = tmpfile();
    if (!log)
        return refuse(result, "cannot make a temporary file: %s", strerror(errno));
    int status = run_program(argv, log);
    result->log = read_all(log, NULL);
    fclose(log);
    if (status == 0)
        result->data = toolkit_read_file(cubin, &result->bytes);
    return result->data != NULL;
}

/* option: one more option for ptxas, or null. */
static bool assemble(const char *ptxas, const char *arch, const char *ptx_path, const char *option,
                     toolkit_result *result)
{
    *result = (toolkit_result){0};
    char folder[1024], target[64], cubin[1100];
    if (!toolkit_make_directory(folder, sizeof folder))
        return refuse(result, "cannot make a temporary directory (TMPDIR, else /tmp)");
    snprintf(target, sizeof target, "--gpu-name=%s", arch);
    snprintf(cubin, sizeof cubin, "%s/kernel.cubin", folder);
    bool ok = run_ptxas((const char *const[]){ptxas, "-v", target, ptx_path, "-o", cubin, option, NULL},
                        cubin, result);
    toolkit_remove_directory(folder);
    return ok;
}

bool toolkit_ptxas(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result)
{
    return assemble(ptxas, arch, ptx_path, NULL, result);
}

bool toolkit_ptxas_lines(const char *ptxas, const char *arch, const char *ptx_path, toolkit_result *result)
{
    return assemble(ptxas, arch, ptx_path, "-lineinfo", result);
}

bool toolkit_nvdisasm(const char *nvdisasm, const char *cubin_path, toolkit_result *result)
{
    *result = (toolkit_result){0};
    FILE *out = tmpfile();
    if (!out)
        return refuse(result, "cannot make a temporary file: %s", strerror(errno));
    int status = run_program((const char *const[]){nvdisasm, "-c", "-gp", "-hex", cubin_path, NULL}, out);
    char *text = read_all(out, &result->bytes);
    fclose(out);
    *(status == 0 ? &result->data : &result->log) = text;
    return result->data != NULL;
}

/* ---- nvJitLink ---- */

enum { JITLINK_INPUT_PTX = 2 };

typedef struct jitlink_api {
    int (*create)(void **handle, uint32_t n_options, const char **options);
    int (*destroy)(void **handle);
    int (*add)(void *handle, int kind, const void *data, size_t bytes, const char *name);
    int (*complete)(void *handle);
    int (*cubin_size)(void *handle, size_t *bytes);
    int (*cubin)(void *handle, void *cubin);
    int (*log_size)(void *handle, size_t *bytes);
    int (*log)(void *handle, char *log);
} jitlink_api;

static bool open_jitlink(jitlink_api *api)
{
    static const char *const files[] = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so", NULL};
    static const char *const names[] = {"nvJitLinkCreate",
                                        "nvJitLinkDestroy",
                                        "nvJitLinkAddData",
                                        "nvJitLinkComplete",
                                        "nvJitLinkGetLinkedCubinSize",
                                        "nvJitLinkGetLinkedCubin",
                                        "nvJitLinkGetErrorLogSize",
                                        "nvJitLinkGetErrorLog",
                                        NULL};
    void *library = library_open(files, NULL, 0);
    return library && !library_fill(library, names, api);
}

bool toolkit_has_jitlink(void)
{
    jitlink_api api;
    return open_jitlink(&api);
}

static bool link_ptx(const jitlink_api *api, void *handle, const char *ptx, toolkit_result *result)
{
    size_t bytes = 0;
    if (api->add(handle, JITLINK_INPUT_PTX, ptx, strlen(ptx) + 1, "kernel.ptx") == 0 &&
        api->complete(handle) == 0 && api->cubin_size(handle, &bytes) == 0 &&
        (result->data = malloc(bytes + 1)) && api->cubin(handle, result->data) == 0) {
        result->data[bytes] = 0;
        result->bytes = bytes;
        return true;
    }
    if (api->log_size(handle, &bytes) == 0 && (result->log = malloc(bytes + 1))) {
        result->log[0] = result->log[bytes] = 0;
        api->log(handle, result->log);
    }
    return false;
}

bool toolkit_jitlink(const char *ptx, const char *arch, toolkit_result *result)
{
    *result = (toolkit_result){0};
    jitlink_api api;
    if (!open_jitlink(&api))
        return refuse(result, "nvJitLink was not found");
    char target[64];
    snprintf(target, sizeof target, "-arch=%s", arch);
    void *handle = NULL;
    if (api.create(&handle, 1, (const char *[]){target}) != 0)
        return refuse(result, "nvJitLink does not know %s", arch);
    bool ok = link_ptx(&api, handle, ptx, result);
    api.destroy(&handle);
    return ok;
}
