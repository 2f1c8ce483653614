/* The qdnn command: weights in files.
 *
 *   main.c       the commands                       command.c   their options and help
 *   info.c       lists the contents of a file       verify.c    compares the device with host_ref
 *   quantize.c   quantizes weights                  convert.c   converts to formats with the same values
 *   rewrite.c    shared by these two                types.c     the types that can be written
 *   bench.c      products with the file's layers    repack.c    the same values in another format
 *   tensor.c     a weight in memory                 device.c    operations on the device
 *   reference.c  the same by host_ref               output.c    the output file
 *   write_*.c    its header, by kind                metadata.c  its metadata
 *   folder.c     the folder of a checkpoint         quant_config.c  the quantization that a file declares
 *   modelled.c   modelled times of products          progress.c   the progress line */
#ifndef TOOLS_QDNN_TOOL_H
#define TOOLS_QDNN_TOOL_H

#include <qdnn/files.h>
#include <qdnn/qdnn.h>

#include "boards/boards.h"
#include "host_ref/host_ref.h"
#include "tools/tool.h"

/* ---- command.c ---- */

enum { RULES_MAX = 64 };

/* --tensor REGEX=TYPE */
typedef struct name_rule {
    const char *regex, *type;
} name_rule;

typedef struct options {
    const char *command;
    const char *in, *out;
    const char *type;
    name_rule rules[RULES_MAX];
    int n_rules;
    const char *only;   /* a regular expression */
    const char *device; /* as in QDNN_DEVICE */
    const char *json;   /* where to write the figures */
    const char *rows;   /* products: "1,16" */
    const board *gpu;   /* whose times are modelled; null: the device is measured */
    bool dry_run, requantize, all_matrices, in_place, tensors, help, version;
} options;

/* Returns an exit code. Checks the arguments against those of the command. */
int options_read(int argc, char **argv, options *o);
/* A --only that matched nothing. Returns an exit code. */
int only_matched_nothing(const options *o);
/* Whether a POSIX extended regular expression matches a part of a name; an invalid one is reported. */
int regex_matches(const char *regex, const char *name, bool *matches);

/* The commands; each returns an exit code. */
int command_info(const options *o);
int command_verify(const options *o);
int command_quantize(const options *o);
int command_convert(const options *o);
int command_bench(const options *o);

/* ---- tensor.c: a weight in memory ---- */

typedef struct tensor {
    const char *name;
    qdnnFileWeight_t how; /* its descriptor, in terms of qdnn/files.h */
    qdnnTensorDescriptor_t plain;
    qdnnQuantDescriptor_t quant;
    int64_t rows, columns;
    void *host[QDNN_OPERAND_COUNT]; /* null if the format has no such operand */
    size_t bytes[QDNN_OPERAND_COUNT];
    bool owned[QDNN_OPERAND_COUNT]; /* freed with the tensor; else it belongs to the file */
} tensor;

/* Opens a weight of a file. Operands that are shorter than its descriptor requires are reported. */
int tensor_open(tensor *t, const qdnnFileWeight_t *weight);
/* Sets only the descriptors and sizes. */
int tensor_describe(tensor *t, const char *name, const qdnnFileWeight_t *how);
/* The same, and allocates the operands. */
int tensor_make(tensor *t, const char *name, const qdnnFileWeight_t *how);
void tensor_close(tensor *t);
/* *why receives the reason why a descriptor does not support tensors of that shape; null if it does. The text is
 * the library's, valid until the next call. Returns an exit code: a lack of memory is no such reason. */
int tensor_refused(const char *name, const qdnnFileWeight_t *how, const char **why);

/* Allocates zeroed memory, and reports a failure; 0 bytes give a pointer too. */
void *tool_alloc(size_t bytes);
int fail_status(const char *what, qdnnStatus_t status);
/* Opens a file, or reports why it cannot. */
int open_file(const char *path, qdnnFile_t *file);

/* ---- reference.c ---- */

ref_quant_spec reference_spec(const tensor *t);
ref_arrays reference_arrays(const tensor *t);
/* Writes rows x columns f32. */
void reference_dequantize(const tensor *t, float *y);

/* ---- device.c ---- */

typedef struct device {
    qdnnHandle_t handle;
} device;
int device_open(device *d, const char *name);
void device_close(device *d);
int device_dequantize(device *d, const tensor *t, float *y);
/* Computes scales, zeros and codes of rows x columns f32. */
int device_quantize(device *d, tensor *t, const float *x);

/* ---- progress.c: a line on standard error, if that is a terminal ---- */

typedef struct progress {
    bool shown;
    uint64_t done, total; /* bytes */
    double begin, last;   /* seconds */
} progress;
progress progress_begin(uint64_t total);
void progress_step(progress *p, uint64_t bytes, const char *what);
void progress_end(progress *p);

double seconds_now(void);

/* "1.5 GB" */
const char *size_text(uint64_t bytes, char text[24]);

#endif
