/* ./run bench: runs every part, prints a table and writes bench.json (the path is the first argument). */
#include "bench/bench.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
typedef struct figure {
    char name[96], unit[32], note[256];
    double value;
} figure;

static const char *json_path;
static figure *figures;
static int n_figures;

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
#define PART(name) {#name, bench_##name},
#include "bench/parts.def"
#undef PART
};

double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_best(void (*work)(void *argument), void *argument, double budget)
{
    double start = bench_seconds(), best = 1e30;
    do {
        double before = bench_seconds();
        work(argument);
        double taken = bench_seconds() - before;
        best = taken < best ? taken : best;
    } while (bench_seconds() - start < budget);
    return best;
}

void bench_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "\r\033[K");
    vfprintf(stderr, format, args);
    fflush(stderr);
    va_end(args);
}

static uint64_t number_in(const char *variable, uint64_t usual)
{
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : usual;
}

bool bench_is_sampled(const char *format, ...)
{
    const uint64_t one_in = number_in("QDNN_BENCH_ONE_IN", 1);
    uint64_t hash = number_in("QDNN_BENCH_SEED", 1) + UINT64_C(0xcbf29ce484222325);
    char name[256];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return one_in < 2 || (hash ^ hash >> 33) % one_in == 0;
}

void bench_report(const char *name, double value, const char *unit, const char *note)
{
    bench_progress("%s", "");
    printf("%-44s %14.6g %-12s %s\n", name, value, unit, note ? note : "");
    fflush(stdout);
    figure *grown = realloc(figures, (size_t)(n_figures + 1) * sizeof *figures);
    if (!grown) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    figures = grown;
    figure *f = &figures[n_figures++];
    f->value = value;
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->unit, sizeof f->unit, "%s", unit);
    snprintf(f->note, sizeof f->note, "%s", note ? note : "");
}

uint64_t bench_program(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 8 bytes at a time */
    uint64_t word = 0;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file)
        return 0;
    while (fread(&word, 1, sizeof word, file) > 0)
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    fclose(file);
    return hash;
}

void bench_beside(const char *name, char *path, size_t size)
{
    const char *slash = strrchr(json_path, '/');
    snprintf(path, size, "%.*s%s", slash ? (int)(slash - json_path) + 1 : 0, json_path, name);
}

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fputc('"', out);
}

static bool write_json(const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    fprintf(out, "[\n");
    for (int i = 0; i < n_figures; i++) {
        fprintf(out, "  {\"name\": ");
        write_string(out, figures[i].name);
        fprintf(out, ", \"value\": %.9g, \"unit\": ", figures[i].value);
        write_string(out, figures[i].unit);
        fprintf(out, ", \"note\": ");
        write_string(out, figures[i].note);
        fprintf(out, "}%s\n", i + 1 < n_figures ? "," : "");
    }
    fprintf(out, "]\n");
    bool written = !ferror(out);
    return fclose(out) == 0 && written;
}

enum { PARTS = sizeof parts / sizeof parts[0] };

static bool is_part(const char *name)
{
    for (int i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0)
            return true;
    fprintf(stderr, "bench: there is no part '%s'; the parts are", name);
    for (int i = 0; i < PARTS; i++)
        fprintf(stderr, "%s %s", i ? "," : "", parts[i].name);
    fprintf(stderr, "\n");
    return false;
}

/* All parts, or those given. */
static void run_parts(char **names, int count)
{
    for (int i = 0; i < PARTS; i++) {
        bool wanted = count == 0;
        for (int k = 0; k < count; k++)
            wanted = wanted || strcmp(names[k], parts[i].name) == 0;
        if (wanted)
            parts[i].run();
    }
}

int main(int argc, char **argv)
{
    DEFAULT_ENVIRONMENT();
    if (argc < 2) {
        fprintf(stderr, "usage: bench FILE.json [PART...]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        if (!is_part(argv[i]))
            return 2;
    json_path = argv[1];
    run_parts(argv + 2, argc - 2);
    bool ok = write_json(argv[1]);
    if (!ok)
        fprintf(stderr, "bench: cannot write %s\n", argv[1]);
    free(figures);
    return ok ? 0 : 1;
}
