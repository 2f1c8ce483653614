/* Measurements: each is reported once, by a stable name, so that two runs can be compared by a script. */
#ifndef QDNN_BENCH_H
#define QDNN_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints a line of the table and records the figure for bench.json. The strings are copied. */
void bench_report(const char *name, double value, const char *unit, const char *note);

/* Seconds on a steady clock. */
double bench_seconds(void);

/* The shortest of several runs of work(argument), in seconds per call; repeats until about `budget` seconds
 * have passed. */
double bench_best(void (*work)(void *argument), void *argument, double budget);

/* Shows what is being measured, on terminals only. */
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether what has this name belongs to the sample: one of QDNN_BENCH_ONE_IN=N (1: everything), by a hash of the name and of
 * QDNN_BENCH_SEED. */
bool bench_is_sampled(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A hash of this program: what it has measured is of no use to another (clock/product/kept.h). 0: it cannot be read. */
uint64_t bench_program(void);

/* The path of a file in the same folder as bench.json. */
void bench_beside(const char *name, char *path, size_t size);

/* The parts of the benchmark, one file each; parts.def lists them. */
#define PART(name) void bench_##name(void);
#include "bench/parts.def"
#undef PART

#endif
