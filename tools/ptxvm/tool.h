/* The ptxvm command: declarations shared by its files. main.c shows the order of execution. */
#ifndef PTXVM_TOOL_TOOL_H
#define PTXVM_TOOL_TOOL_H

#include "ptxvm/ptxvm.h"
#include "tools/tool.h"

/* ---- options.c: the command line ---- */

enum { TOOL_OPERANDS_MAX = 4096 };

typedef struct vm_options {
    bool help, version, quiet, counters, listing;
    const char *kernel; /* null: the files are checked and listed */
    const char *json;
    const char *time;                     /* a board; null: no time is modelled */
    FILE *out;                            /* for text; standard error if JSON goes to standard output */
    const char *files[TOOL_OPERANDS_MAX]; /* --run: the first is the file, the others are the arguments */
    int n_files;
    const char *const *arguments;
    int n_arguments;
    const char *sm; /* null: each file's own */
    ptxvm_launch_config launch;
    bool has_block;
    int threads;
    uint64_t seed, steps;
    unsigned checks;
} vm_options;

/* Returns an exit code; errors are reported on stderr. */
int tool_parse(vm_options *options, int argc, char **argv);
int tool_print_help(void);
/* "4096", "0x1000", "4K", "1M", "2G"; false: anything else, or more than 64 bits. */
bool tool_parse_size(const char *text, uint64_t *value);

/* ---- load.c: a file onto a device ---- */

typedef struct vm_file {
    char *name;  /* as shown in messages */
    char sm[16]; /* the emulated SM */
    tool_text text;
    ptxvm *vm;
    ptxvm_module *module;
} vm_file;

/* Returns an exit code; close it in any case. */
int tool_open(vm_file *file, const vm_options *options, const char *path);
void tool_close(vm_file *file);

/* ---- values.c: numbers as bits ---- */

typedef enum value_kind { VALUE_UNSIGNED, VALUE_SIGNED, VALUE_HEX, VALUE_FLOAT } value_kind;

typedef struct value_type {
    const char *name;
    int bytes;
    value_kind kind;
    int mantissa; /* bits of a floating-point type's fraction */
} value_type;

/* Finds a type by name, "f32", from the first `length` characters; null: there is none. */
const value_type *value_type_find(const char *name, size_t length);
/* The names, for messages. */
extern const char value_type_names[];

/* Returns null, or what is wrong with the text (it may point into `why`). */
const char *value_parse(const value_type *type, const char *text, uint64_t *bits, char *why, size_t size);
/* The shortest text that reproduces the bits; hexadecimal types have all their digits. */
void value_print(const value_type *type, uint64_t bits, char *text, size_t size);
/* A number of the type: integers wrap. */
uint64_t value_from_integer(const value_type *type, uint64_t number);
/* Integers: any bits; floating point: from -1 up to 1. A seed gives the same sequence everywhere. */
uint64_t value_random(const value_type *type, uint64_t *state);
/* Little-endian, as on the device. */
void value_store(const value_type *type, uint64_t bits, uint8_t *to);
uint64_t value_load(const value_type *type, const uint8_t *from);

/* ---- arguments.c: the arguments of a kernel ---- */

enum { OUTPUTS_MAX = 8 };

/* One ">..." of a buffer. */
typedef struct vm_output {
    const value_type *type; /* null: to the file */
    uint64_t count;
    const char *path;
} vm_output;

typedef struct vm_argument {
    ptxvm_param_info param;
    int number;            /* from 1 */
    const char *text;      /* as given */
    char *copy;            /* of a buffer: split into pieces, which outputs point into */
    ptxvm_address address; /* of a buffer; 0: not a buffer */
    uint64_t bytes;
    vm_output outputs[OUTPUTS_MAX];
    int n_outputs;
} vm_argument;

/* All arguments of a run, and the resulting parameter block. */
typedef struct vm_arguments {
    vm_argument *list;
    int n;
    uint8_t *block;
    uint64_t block_bytes;
} vm_arguments;

/* Allocates and fills buffers. Returns an exit code; free the arguments in any case. */
int tool_arguments_make(vm_arguments *arguments, const vm_options *options, vm_file *file,
                        ptxvm_kernel *kernel);
void tool_arguments_free(vm_arguments *arguments);
/* "argument 2 'x' for parameter n (u32): ..." Returns TOOL_USAGE. */
int tool_argument_error(const vm_argument *argument, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- buffers.c: "buf:1024xf32=iota>f32:16" ---- */

int tool_buffer_make(vm_argument *argument, vm_file *file);
/* Prints and writes the requested outputs. Returns an exit code. */
int tool_buffer_output(const vm_argument *argument, vm_file *file, FILE *out);

/* ---- The modes, and their output ---- */

int tool_list(const vm_options *options); /* list.c */
int tool_run(vm_options *options);        /* run.c; fills in the block */

/* report.c: the findings of the last launch; status is what it returned. */
void tool_print_findings(vm_file *file, ptxvm_status status);
/* The number of allocations by malloc in the kernel that were not freed. */
int tool_find_leaks(const vm_file *file, const vm_options *options, bool print);
/* The last line of a failed run: what was found, and how often. */
void tool_print_summary(const vm_file *file, const vm_options *options, ptxvm_status status, int leaks);
void tool_print_report(const vm_file *file, const vm_options *options);
void tool_print_counters(const vm_file *file, FILE *out);

/* ---- time.c: what a board would take, modelled ---- */

/* Returns an exit code. */
int tool_print_time(const vm_options *o, const vm_file *file, const ptxvm_kernel *kernel);
int tool_write_json(const vm_file *file, const vm_options *options, ptxvm_status status);
void tool_json_kernel(tool_text *out, const ptxvm_kernel *kernel, int indent); /* list.c */

#endif
