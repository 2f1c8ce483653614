/* A ggml backend over qdnn: what its files share.
 *
 *   backend.c    what ggml sees: the registry, the device, buffers, graphs
 *   engine.c     a handle of qdnn behind a lock, its plans by shape, its scratch memory
 *   keep.c       plans and kernels, kept by what they were made from
 *   types.c      types of ggml and descriptors of qdnn
 *   kernels.c    kernels of this backend's own, for what the library has no plan
 *   places.c     tensors with any strides: walked together, copied
 *   products.c   MUL_MAT, MUL_MAT_ID
 *   attention.c  FLASH_ATTN_EXT
 *   rope.c       ROPE
 *   norms.c      RMS_NORM, NORM, L2_NORM, GROUP_NORM, SUM_ROWS, MEAN, SUM
 *   pointwise.c  operations on each element of packed rows, by the library's plans
 *   each.c       operations on each element; bodies.c: what they compute
 *   rows.c       GET_ROWS, SET_ROWS
 *   moves.c      CPY, CONT, DUP, CONCAT, REPEAT, SET, ACC, PAD, ROLL
 *   sequences.c  TRI, DIAG, DIAG_MASK_INF, ARANGE, CUMSUM, SSM_CONV
 *   recurrent.c  SSM_SCAN, GATED_DELTA_NET
 *   select.c     SOFT_MAX, TOP_K, ARGMAX, ARGSORT
 *
 * An operation has one function, which serves both questions of ggml: "can you compute this?" (it makes the plans and
 * launches nothing) and "compute this". So what is promised is what qdnn accepts, and its reason is the library's own. */
#ifndef QDNN_GGML_ENGINE_H
#define QDNN_GGML_ENGINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <qdnn/qdnn.h>

#include "ggml.h"
#include "ptxgen/ptx.h"

typedef struct engine engine;

/* The one engine of the process, made on first use on the device that QDNN_DEVICE names; null: there is none, and `why` says
 * the reason. */
engine *engine_get(const char **why);

/* Begins and ends the use of the handle by a thread. */
qdnnHandle_t engine_lock(engine *e);
void engine_unlock(engine *e);
qdnnHandle_t engine_handle(engine *e); /* with the engine locked */
/* The text of a status and of the last error. */
void qdnn_reason(char *text, size_t size, qdnnStatus_t status);

/* Whether products with 16-bit x and those that may round x to f16 use tensor cores (QDNN_GGML_MODE=tensor). */
bool engine_is_tensor(const engine *e);

/* ---- One operation, asked for or computed, with the engine locked ---- */

typedef struct run {
    engine *engine;
    bool dry;       /* plans are made, nothing is launched; tensors have no data */
    uint64_t graph; /* the number of the graph that is computed; 0: none */
    char why[256];  /* where false was returned: the reason */
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
static_assert(sizeof(plan_request) == sizeof(plan_maker *) + PLAN_NUMBERS * sizeof(int64_t),
              "a key has no padding");

enum { ALL_ROWS = -1 };
/* Finds or makes the plan, and executes it unless the run is dry: `rows` of them, or ALL_ROWS. */
bool run_plan(run *r, const plan_request *request, int64_t rows, const qdnnBinding_t *bindings, int count);

/* Device memory that is valid until the next operation; null in a dry run, and without memory. Parts of an operation use
 * different slots. */
enum {
    SCRATCH_X,
    SCRATCH_W,
    SCRATCH_Y,
    SCRATCH_INDEX,
    SCRATCH_K,
    SCRATCH_V,
    SCRATCH_COS,
    SCRATCH_SIN,
    SCRATCH_SLOTS
};
void *run_scratch(run *r, int slot, size_t bytes);

/* Device memory with these bytes, which stays as long as the process: made once for each content. */
const void *run_constant(run *r, const void *content, size_t bytes);
/* 0, 1, 2 ... as i32: at least so many. */
const void *run_iota(run *r, int64_t count);

/* Bytes within the device, in order with everything else. */
bool run_copy(run *r, void *to, const void *from, size_t bytes);

/* The number of rows that a plan for `rows` of them is made for: few different ones, as a plan serves fewer rows too. */
int64_t planned_rows(int64_t rows);

/* ---- Kernels of this backend's own ---- */

/* Writes a kernel whose parameters are the pointers and then the numbers, each of 32 bits. The text depends on `spec` alone. */
typedef void kernel_writer(ptx_builder *b, const int64_t *spec);
enum { KERNEL_BLOCK = 256, KERNEL_SPEC = 8, KERNEL_NUMBERS = 28, KERNEL_POINTERS = 8 };

typedef struct kernel_request {
    kernel_writer *write;
    int64_t spec[KERNEL_SPEC];
    uint32_t number[KERNEL_NUMBERS];
    int numbers, pointers;
    int64_t blocks;
} kernel_request;
static_assert(sizeof(kernel_request) == sizeof(kernel_writer *) + (KERNEL_SPEC + 1) * sizeof(int64_t) +
                                            KERNEL_NUMBERS * sizeof(uint32_t) + 2 * sizeof(int),
              "a key has no padding");

/* Finds or makes the kernel and launches it, unless the run is dry. */
bool run_kernel(run *r, const kernel_request *request, const void *const *pointers);
uint32_t float_bits(float x);

/* ---- Tensors of ggml ---- */

/* The type of plain numbers; false: it is not one that qdnn computes with. */
bool plain_type(enum ggml_type type, qdnnDataType_t *out);
/* The format of weights; false: qdnn has none. */
bool weights_type(enum ggml_type type, qdnnWeights_t *out);

/* Whether elements along dimension 0 are neighbours. */
bool is_packed_row(const struct ggml_tensor *t);
/* The address of row (i1, i2, i3). */
void *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3);

/* Where the elements of a tensor, or of a part of it, lie. */
typedef struct place {
    enum ggml_type type;
    int64_t ne[GGML_MAX_DIMS];
    size_t nb[GGML_MAX_DIMS];
    char *data; /* not looked at in a dry run */
} place;
place place_of(const struct ggml_tensor *t);
/* The same dimensions without gaps, in memory of the caller's. */
place place_packed(const place *p, enum ggml_type type, void *data);
int64_t place_elements(const place *p);
bool place_is_packed(const place *p);
/* Whether rows are packed, and dimensions 1 to 3 can be walked as one: with this distance, in elements. */
bool rows_are_uniform(const place *p, int64_t *stride);
/* Rows of blocks as rows of bytes, which can be copied; others stay as they are. */
place place_as_bytes(const place *p);
void *place_row(const place *p, int64_t i2, int64_t i3); /* the address of row (0, i2, i3) */

/* Places that are walked together: the dimensions of the first, the innermost first, as few as possible. The others have the
 * same size, or one that is repeated. */
enum { LATTICE_PLACES = 3, LATTICE_RANK = 8 };
typedef struct lattice {
    int rank; /* 1 or more */
    int64_t size[LATTICE_RANK];
    int64_t stride[LATTICE_PLACES][LATTICE_RANK]; /* in elements */
} lattice;
bool lattice_of(run *r, const place *const *places, int count, lattice *out);

/* Copies elements, converting and repeating them; either may have any strides. */
bool copy_place(run *r, const place *to, const place *from);
/* Plain numbers without gaps from a tensor in any format. */
bool convert_place(run *r, const place *to, const struct ggml_tensor *from);
/* A copy of t in scratch memory if it is not packed; t itself if it is. */
bool packed_place(run *r, const struct ggml_tensor *t, int slot, place *out);

/* What is computed of an element or two, and up to four numbers: bodies.h. */
typedef struct each_body each_body;
enum { EACH_NUMBERS = 4 };
/* to[i] = body(a[i], c[i]); c may be null. Sizes of a and c may repeat within those of `to`. */
bool run_each(run *r, const each_body *body, const float *numbers, const place *to, const place *a,
              const place *c);

/* The same by the library's plans, for packed rows; false: it has none for the operation. */
bool run_pointwise(run *r, const struct ggml_tensor *t);

/* ALiBi: the factors of the mask, by head, for a largest bias of `most`; at most 1024 heads. Null in a dry run. */
const void *run_slopes(run *r, float most, int64_t heads);

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
operation op_flash_attention, op_rope;
operation op_norm, op_group_norm, op_sums;
operation op_binary, op_each, op_unary, op_glu, op_add_id;
operation op_get_rows, op_set_rows;
operation op_copy, op_concat, op_repeat, op_set, op_fill, op_pad, op_roll;
operation op_triangle, op_arange, op_running_sums, op_convolution;
operation op_scan, op_delta;
operation op_soft_max, op_top_k, op_argmax, op_argsort;

/* Asks for or computes a node of a graph. */
bool run_node(run *r, const struct ggml_tensor *t);

#endif
