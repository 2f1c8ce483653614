/* The qdnn command: weights in files.
 *
 *   main.c       the commands                       command.c   their options and help
 *   info.c       what a file holds                  verify.c    device against host_ref
 *   quantize.c   numbers become codes               convert.c   codes become other codes of the same values
 *   rewrite.c    what both do with a file           types.c     the types that can be written
 *   bench.c      products with the file's layers    repack.c    the same values in another format
 *   tensor.c     a weight in memory                 device.c    what runs on the device
 *   reference.c  the same by host_ref               output.c    a file that appears whole
 *   write_*.c    its header, by kind                quant_config.c  the quantization that a file declares
 *   progress.c   the line that shows how far it is */
#ifndef TOOLS_QDNN_TOOL_H
#define TOOLS_QDNN_TOOL_H

#include <qdnn/files.h>
#include <qdnn/qdnn.h>

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
    const char *device; /* as QDNN_DEVICE */
    const char *json;   /* where to write the figures */
    const char *rows;   /* of products: "1,16" */
    bool dry_run, requantize, tensors, help, version;
} options;

/* An exit code. The command's operands are checked against what it takes. */
int options_read(int argc, char **argv, options *o);
/* Whether a POSIX extended regular expression occurs in a name; one that is wrong is reported. */
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
    qdnnFileWeight_t how; /* its descriptor, in the terms of qdnn/files.h */
    qdnnTensorDescriptor_t plain;
    qdnnQuantDescriptor_t quant;
    int64_t rows, columns;
    void *host[QDNN_OPERAND_COUNT]; /* null where the format has no such operand */
    size_t bytes[QDNN_OPERAND_COUNT];
    bool owned[QDNN_OPERAND_COUNT]; /* freed with it; else the file's */
} tensor;

/* A weight of a file. Operands that are shorter than its descriptor needs are reported. */
int tensor_open(tensor *t, const qdnnFileWeight_t *weight);
/* The descriptors and sizes alone. */
int tensor_describe(tensor *t, const char *name, const qdnnFileWeight_t *how);
/* The same with room for the operands. */
int tensor_make(tensor *t, const char *name, const qdnnFileWeight_t *how);
void tensor_close(tensor *t);
/* Why a descriptor does not take tensors of that shape; null where it does. The text is the library's, until the next
 * call. */
const char *tensor_refused(const qdnnFileWeight_t *how);

/* Memory that is reported where there is none; null for 0 bytes too. */
void *tool_alloc(size_t bytes);
int fail_status(const char *what, qdnnStatus_t status);
/* Opens a file, or reports why not. */
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
/* Makes scales, zeros and codes of rows x columns f32. */
int device_quantize(device *d, tensor *t, const float *x);

/* ---- progress.c: a line on standard error, where that is a terminal ---- */

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
