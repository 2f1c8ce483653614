/* A ggml backend over qdnn: what its files share.
 *
 *   backend.c    what ggml sees: the registry, the device, buffers, graphs
 *   engine.c     a handle of qdnn behind a lock, its plans by shape, its scratch memory
 *   products.c   MUL_MAT, MUL_MAT_ID
 *   rows.c       GET_ROWS, SET_ROWS, copies
 *   select.c     SOFT_MAX, TOP_K, ARGMAX, ARGSORT
 *
 * An operation has one function, which serves both questions of ggml: "can you compute this?" (it makes the plans and
 * launches nothing) and "compute this". So what is promised is what qdnn accepts, and its reason is the library's own. */
#ifndef QDNN_GGML_ENGINE_H
#define QDNN_GGML_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <qdnn/qdnn.h>

#include "ggml.h"

typedef struct engine engine;

/* The one engine of the process, made on first use on the device that QDNN_DEVICE names; null: there is none, and `why` says
 * the reason. */
engine *engine_get(const char **why);

/* Begins and ends the use of the handle by a thread. */
qdnnHandle_t engine_lock(engine *e);
void engine_unlock(engine *e);

/* Whether products with 16-bit x and those that may round x to f16 use tensor cores (QDNN_GGML_MODE=tensor). */
bool engine_is_tensor(const engine *e);

/* ---- One operation, asked for or computed, with the engine locked ---- */

typedef struct run {
    engine *engine;
    bool dry;      /* plans are made, nothing is launched; tensors have no data */
    char why[256]; /* where false was returned: the reason */
} run;

/* Returns false, with the reason. */
bool run_declines(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes a plan from the numbers that describe it. */
typedef qdnnStatus_t plan_maker(qdnnHandle_t handle, const int64_t *number, qdnnPlan_t *plan);
enum { PLAN_NUMBERS = 28 };

typedef struct plan_request {
    plan_maker *make;
    int64_t number[PLAN_NUMBERS]; /* those not used are 0 */
} plan_request;

enum { ALL_ROWS = -1 };
/* Finds or makes the plan, and executes it unless the run is dry: `rows` of them, or ALL_ROWS. */
bool run_plan(run *r, const plan_request *request, int64_t rows, const qdnnBinding_t *bindings, int count);

/* Device memory that is valid until the next operation; null in a dry run, and without memory. Parts of an operation use
 * different slots. */
enum { SCRATCH_X, SCRATCH_W, SCRATCH_Y, SCRATCH_INDEX, SCRATCH_SLOTS };
void *run_scratch(run *r, int slot, size_t bytes);

/* Bytes within the device, in order with everything else. */
bool run_copy(run *r, void *to, const void *from, size_t bytes);

/* The number of rows that a plan for `rows` of them is made for: few different ones, as a plan serves fewer rows too. */
int64_t planned_rows(int64_t rows);

/* ---- Tensors of ggml ---- */

/* The type of plain numbers; false: it is not one that qdnn computes with. */
bool plain_type(enum ggml_type type, qdnnDataType_t *out);
/* The format of weights; false: qdnn has none. */
bool weights_type(enum ggml_type type, qdnnWeights_t *out);

/* Whether elements along dimension 0 are neighbours. */
bool is_packed_row(const struct ggml_tensor *t);
/* Whether dimensions 1 to 3 can be walked as one, with the stride of dimension 1. */
bool rows_are_uniform(const struct ggml_tensor *t);
/* The address of row (i1, i2, i3). */
void *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3);

/* Descriptors that live until a plan has been made. */
typedef struct shapes {
    qdnnTensorDescriptor_t tensor[4];
    qdnnQuantDescriptor_t quant;
    int n;
    qdnnStatus_t status; /* the first that was not SUCCESS */
} shapes;
/* Packed, or with a distance in elements between neighbours of each dimension. */
qdnnTensorDescriptor_t shapes_add(shapes *s, qdnnDataType_t type, int rank, const int64_t *dims,
                                  const int64_t *strides);
qdnnTensorDescriptor_t shapes_matrix(shapes *s, qdnnDataType_t type, int64_t rows, int64_t columns,
                                     int64_t stride);
qdnnQuantDescriptor_t shapes_weights(shapes *s, qdnnWeights_t weights);
qdnnStatus_t shapes_free(shapes *s, qdnnStatus_t status); /* returns the first failure */

/* ---- Operations ---- */

typedef bool operation(run *r, const struct ggml_tensor *t);
operation op_mul_mat, op_mul_mat_id;
operation op_get_rows, op_copy;
operation op_soft_max, op_top_k, op_argmax, op_argsort;

/* Asks for or computes a node of a graph. */
bool run_node(run *r, const struct ggml_tensor *t);

#endif
