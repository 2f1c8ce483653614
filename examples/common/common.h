/* What the examples share: calls that must succeed, device memory, and a program step by step.
 *
 *   device.c    calls of the library, device memory
 *   builder.c   tensors and steps of a program
 *
 * It uses only the public interface: include/qdnn/. Programs define fail and take. */
#ifndef EXAMPLES_COMMON_COMMON_H
#define EXAMPLES_COMMON_COMMON_H

#include <qdnn/qdnn.h>

/* Prints "NAME: ..." and ends the program. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *take(size_t bytes); /* zeroed memory; ends the program if there is none */

/* ---- device.c ---- */

/* Ends the program with the library's error message unless the status is success. */
void ok(qdnnStatus_t status);
void *device_take(qdnnHandle_t handle, size_t bytes);
void *device_copy(qdnnHandle_t handle, const void *host, size_t bytes);
/* The numbers first, first + step ... of 4 or 8 bytes. */
void *device_ramp(qdnnHandle_t handle, int bytes, uint64_t first, uint64_t step, int64_t count);

/* ---- builder.c ---- */

/* A program with the addresses of its tensors, by their numbers. */
typedef struct graph {
    qdnnProgram_t program;
    const void **pointers;
    int tensors;
    int64_t rows; /* at most, in a run */
    qdnnProgramInfo_t info;
} graph;
void graph_run(qdnnHandle_t handle, const graph *g, int64_t rows, void *arena);
void graph_free(graph *g);

/* Writes a program. Descriptors are set anew for each use; all other calls may change them. */
typedef struct builder {
    qdnnHandle_t handle;
    graph *g;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t matmul;
    qdnnMatmulAlgorithm_t algorithm; /* EXACT */
    qdnnDataType_t type;             /* of x in products and attention: F32 */
    int64_t layer;                   /* in front of names; -1: nothing */
} builder;
void builder_begin(builder *b, qdnnHandle_t handle, graph *g, int64_t rows);
/* Compiles the program. */
void builder_end(builder *b);
size_t type_bytes(qdnnDataType_t type);
/* A tensor by rows in the arena, or given by each run. */
int builder_rows(builder *b, const char *name, qdnnDataType_t type, int64_t columns);
int builder_given(builder *b, const char *name, qdnnDataType_t type, int64_t columns);
/* A tensor that is the same in every run; null: given by each run. */
int builder_fixed(builder *b, const char *name, qdnnDataType_t type, int64_t count, const void *data);
/* Sets a descriptor to rows of `heads` times `size` elements that are `stride` apart. */
void builder_shape(const builder *b, qdnnTensorDescriptor_t t, qdnnDataType_t type, int64_t heads,
                   int64_t size, int64_t stride);
/* Adds a plan, of which a row belongs to a row of the program, and destroys it. */
void builder_step(builder *b, const char *name, qdnnPlan_t plan, const qdnnProgramBinding_t *bindings,
                  int count);
/* The same of a plan with so many rows for a row of the program; 0: it is executed as a whole. */
void builder_step_of(builder *b, const char *name, qdnnPlan_t plan, int64_t per_row,
                     const qdnnProgramBinding_t *bindings, int count);

#endif
