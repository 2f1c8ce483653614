/* Programs: whole models as lists of steps on named tensors, checked and planned once, run by one call.
 *
 *     qdnnCreateProgram(handle, 512, &program);                                at most 512 rows in a run
 *     qdnnAddTensorToProgram(program, "x", QDNN_PROGRAM_EXTERNAL, xShape, 1, &x);
 *     qdnnAddTensorToProgram(program, "h", QDNN_PROGRAM_INTERMEDIATE, hShape, 1, &h);
 *     qdnnAddPlanToProgram(program, "up", up, 1, upBindings, 3);
 *     ...
 *     qdnnCompileProgram(program);
 *     qdnnGetProgramInfo(program, &info);                                      info.arenaBytes
 *     ...
 *     qdnnRunProgram(handle, program, pointers, count, rows, arena, bytes);    every time
 *
 * A tensor is external (the caller's memory: weights, inputs, results, caches) or intermediate (it lives in the
 * arena, one block of device memory that the caller gives each run). The steps bind plans to tensors, not to
 * pointers, so a compiled program runs on any set of pointers, and any number of programs may use the same
 * plans and the same weights.
 *
 * One dimension is known only at run time: the number of rows, 0 to the program's maximum. The first dimension
 * of a tensor by rows is a multiple of it; a step by rows computes only the rows of the run. A row's bits are
 * the same in any batch, so a program gives the bits that its plans give one after another. Kernels are chosen
 * for the maximum, though: a run of 3 rows of a program for 128 computes a whole tile. Callers with both kinds of runs
 * compile a program for each (examples/chat has them for 1, 8, 32 and 128 rows), which share weights.
 *
 * Compiling checks that every intermediate tensor is written before it is read, fuses neighbouring steps, and gives tensors that are
 * never needed at the same time the same memory. Fused are, where one kernel exists that gives the same bits
 *
 *     add, norm                                 of the sum, which is written too
 *     norm or pointwise, quantization           of a result that nothing else reads. By rows: a quantized
 *                                               QDNN_POINTWISE_FUNCTION with QDNN_ACTIVATION_NONE
 *     rope, writing the keys into a cache       of a result that nothing else reads
 *     rope of queries, that of keys, values     which lie side by side in the rows of one tensor
 *
 * if one step follows the other, and what is between them is intermediate. The epilogue of a product is never made so: it rounds
 * once, and asking for it is up to the caller. A run only launches: it allocates nothing, takes no lock, looks
 * nothing up and may be captured into a CUDA graph. Errors name the step: "step 3 'up' (quant.q4_0.matmul):
 * ...". With QDNN_TRACE=stderr or QDNN_TRACE=FILE (read by qdnnCompileProgram) every run waits for its steps and lists them with
 * shapes, bytes and times. */
#ifndef QDNN_PROGRAM_H
#define QDNN_PROGRAM_H

#include <qdnn/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qdnnProgram *qdnnProgram_t;

/* Where a tensor's memory comes from. */
typedef enum {
    QDNN_PROGRAM_EXTERNAL = 0,    /* a pointer of each run */
    QDNN_PROGRAM_INTERMEDIATE = 1 /* the arena */
} qdnnProgramPlace_t;

/* Creates an empty program.
 *   handle    the one that all its plans belong to
 *   maxRows   the most rows of a run, at least 1
 *   program   receives it; qdnnDestroyProgram frees it, before the handle
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND; _INTERNAL_ERROR_ALLOCATION_FAILED;
 * _EXECUTION_FAILED_STICKY if the device has failed. */
QDNN_API qdnnStatus_t qdnnCreateProgram(qdnnHandle_t handle, int64_t maxRows, qdnnProgram_t *program);

/* Adds a tensor.
 *   program
 *   name     for messages and the trace, copied; not empty, different from those of other tensors
 *   place
 *   shape    its type and shape, packed; codes, scales and whatever else has no type of its own: u8, in bytes
 *   byRows   1: the first dimension is a multiple k of maxRows, and a run of n rows uses the first k * n;
 *            0: the shape is the same in every run
 *   tensor   receives its number: 0, 1, 2, ...
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown place or byRows;
 * _BAD_PARAM for a name that is empty or taken, strides that are not packed, and a program that was compiled;
 * _BAD_PARAM_SHAPE_MISMATCH for a first dimension that is no multiple of maxRows;
 * _INTERNAL_ERROR_ALLOCATION_FAILED. */
QDNN_API qdnnStatus_t qdnnAddTensorToProgram(qdnnProgram_t program, const char *name,
                                             qdnnProgramPlace_t place, qdnnTensorDescriptor_t shape,
                                             int byRows, int *tensor);

/* Binds an operand of a plan to a tensor, or to a part of it. */
typedef struct {
    qdnnOperand_t operand;
    int tensor;
    size_t
        offset; /* of the operand within the tensor, in bytes: the keys in rows of queries, keys and values */
} qdnnProgramBinding_t;

/* Appends a plan. The program keeps a reference to it, so the caller may destroy it.
 *   program
 *   name       of the step, copied; null or "": none
 *   plan       of the program's handle
 *   perRow     how many rows of the plan belong to a row of a run: the step then computes perRow * rows of them
 *              (1 for most, the experts per token for a mixture of experts), and the plan must have been made
 *              for perRow * maxRows. 0: the step executes the whole plan in every run
 *   bindings   one for each operand of the plan, and no others
 *   count      how many
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for a plan of another handle, an operand that is
 * missing, bound twice or not used by the plan, a plan that cannot be executed with fewer rows, tensors of
 * another type than the plan's, a tensor that is read where it is written, a step by rows that writes an
 * intermediate tensor which is not by rows, and a program that was compiled;
 * _BAD_PARAM_OUT_OF_BOUND for an unknown operand or tensor; _BAD_PARAM_SIZE_INSUFFICIENT for a tensor that is too small;
 * _BAD_PARAM_SHAPE_MISMATCH for rows that do not fit; _BAD_PARAM_MISALIGNED_POINTER for an offset within an
 * element; _INTERNAL_ERROR_ALLOCATION_FAILED. A step that is rejected is not added. */
QDNN_API qdnnStatus_t qdnnAddPlanToProgram(qdnnProgram_t program, const char *name, qdnnPlan_t plan,
                                           int64_t perRow, const qdnnProgramBinding_t *bindings, int count);

/* Appends a copy of a whole tensor, or of a run's rows if both are by rows.
 *   program
 *   name       of the step; may be null
 *   to, from   tensors of the same size, both by rows or neither
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown tensor; _BAD_PARAM if it is the same one, or for a program that
 * was compiled; _BAD_PARAM_SHAPE_MISMATCH; _INTERNAL_ERROR_ALLOCATION_FAILED. */
QDNN_API qdnnStatus_t qdnnAddCopyToProgram(qdnnProgram_t program, const char *name, int to, int from);

/* Appends a step that sets every byte of a tensor, or of a run's rows.
 *   program
 *   name     of the step; may be null
 *   tensor
 *   byte     the value of every byte
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown tensor; _BAD_PARAM for a
 * program that was compiled; _INTERNAL_ERROR_ALLOCATION_FAILED. */
QDNN_API qdnnStatus_t qdnnAddFillToProgram(qdnnProgram_t program, const char *name, int tensor,
                                           unsigned char byte);

/* An argument of a kernel of the caller's own. */
typedef enum {
    QDNN_KERNEL_ARGUMENT_READ = 0,       /* the address of a tensor that the kernel reads */
    QDNN_KERNEL_ARGUMENT_WRITE = 1,      /* ... that it writes */
    QDNN_KERNEL_ARGUMENT_READ_WRITE = 2, /* ... that it reads and writes */
    QDNN_KERNEL_ARGUMENT_ROWS = 3,       /* the rows of the run: a u32 or u64 */
    QDNN_KERNEL_ARGUMENT_NUMBER = 4      /* a constant */
} qdnnKernelArgumentKind_t;

typedef struct {
    qdnnKernelArgumentKind_t kind;
    int tensor;     /* READ, WRITE, READ_WRITE */
    size_t offset;  /* likewise: of the address within the tensor, in bytes */
    int bytes;      /* ROWS: 4 or 8; NUMBER: 1, 2, 4 or 8 */
    uint64_t value; /* NUMBER: its bits, in the low bytes */
} qdnnProgramArgument_t;

/* How a kernel of the caller's own is given. */
typedef enum {
    QDNN_SOURCE_PTX = 0,     /* `text` is PTX */
    QDNN_SOURCE_CUDA = 1,    /* `text` is CUDA C, compiled by NVRTC: a kernel declared extern "C" */
    QDNN_SOURCE_FUNCTION = 2 /* `function` is a CUfunction of the handle's context */
} qdnnKernelSource_t;

typedef struct {
    size_t size; /* sizeof(qdnnProgramKernel_t): set it before the call */
    qdnnKernelSource_t source;
    const char *text;  /* PTX, CUDA */
    const char *entry; /* likewise: the kernel's name */
    void *function;    /* FUNCTION */
    uint32_t grid[3];  /* blocks; each at least 1 */
    uint32_t block[3]; /* threads of a block; each at least 1 */
    uint32_t sharedBytes;
    /* not 0: grid[0] is ceil(rows / rowsPerBlock) instead, and a run of 0 rows does not launch the kernel */
    uint32_t rowsPerBlock;
    const qdnnProgramArgument_t *arguments; /* in the order of the kernel's parameters */
    int count;                              /* of arguments: at most QDNN_KERNEL_ARGUMENTS_MAX */
} qdnnProgramKernel_t;
enum { QDNN_KERNEL_ARGUMENTS_MAX = 32 };

/* Appends a kernel of the caller's own; text and arguments are copied.
 *   program
 *   name     of the step; may be null
 *   kernel
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown source, kind, tensor or
 * size; _BAD_PARAM for a program that was compiled; _BAD_PARAM_UNKNOWN_NAME if the text has no such kernel;
 * _NOT_SUPPORTED_LIBRARY_MISSING without NVRTC; _INTERNAL_ERROR_COMPILATION_FAILED with the compiler's
 * message; _INTERNAL_ERROR_ALLOCATION_FAILED; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY. */
QDNN_API qdnnStatus_t qdnnAddKernelToProgram(qdnnProgram_t program, const char *name,
                                             const qdnnProgramKernel_t *kernel);

/* Checks the order of the steps, fuses neighbours and plans the arena. Steps have new numbers then, and the
 * names of both ("add + norm"). Different external tensors must not overlap in a run, unless they are only read. Nothing can be added afterwards.
 *   program
 * Returns _SUCCESS, also if it was compiled before; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for an intermediate
 * tensor that a step reads before any has written it; _BAD_PARAM_OUT_OF_BOUND if the arena would have 2^60 bytes or more;
 * _INTERNAL_ERROR_ALLOCATION_FAILED; _EXECUTION_FAILED if QDNN_TRACE is set and the driver makes no events. */
QDNN_API qdnnStatus_t qdnnCompileProgram(qdnnProgram_t program);

typedef struct {
    size_t size;        /* sizeof(qdnnProgramInfo_t): set it before the call */
    int tensors, steps; /* steps: as they were added; of a compiled program, those that a run has */
    int64_t maxRows;
    size_t arenaBytes;        /* what a run needs; 0 before the program is compiled */
    size_t intermediateBytes; /* of all intermediate tensors and workspaces, as if none shared memory */
    int fused;                /* by how many compiling lowered the number of steps */
} qdnnProgramInfo_t;

/* Describes a program.
 *   program
 *   info      receives it; the caller sets its size
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND if size is not set. */
QDNN_API qdnnStatus_t qdnnGetProgramInfo(qdnnProgram_t program, qdnnProgramInfo_t *info);

typedef struct {
    size_t size;      /* sizeof(qdnnProgramTensorInfo_t): set it before the call */
    const char *name; /* lives with the program */
    qdnnProgramPlace_t place;
    size_t bytes;            /* for maxRows */
    size_t rowBytes;         /* for each row of a run; 0: not by rows */
    size_t alignment;        /* of an external tensor's pointer, as far as its steps need it */
    int firstStep, lastStep; /* that use it, in a compiled program; -1: none */
    size_t offset;           /* of an intermediate tensor in the arena of a compiled program */
} qdnnProgramTensorInfo_t;

/* Describes a tensor of a program.
 *   program
 *   tensor    its number
 *   info      receives it; the caller sets its size
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM_OUT_OF_BOUND for an unknown tensor, or if size is not
 * set. */
QDNN_API qdnnStatus_t qdnnGetProgramTensorInfo(qdnnProgram_t program, int tensor,
                                               qdnnProgramTensorInfo_t *info);

/* Runs a compiled program on the handle's stream. Allowed while the stream is being captured, unless a plan
 * checks its expert indices.
 *   handle       that of the program
 *   program
 *   pointers     the address of each tensor, by number; those of intermediate and of unused tensors are not
 *                looked at
 *   count        of pointers: the number of tensors
 *   rows         0 to maxRows
 *   arena        device memory, aligned to 16; null if none is needed. Its contents do not matter, and runs
 *                that do not overlap in time may share it, also those of other programs
 *   arenaBytes   at least info.arenaBytes
 * Returns _SUCCESS; _BAD_PARAM_NULL_POINTER; _BAD_PARAM for another handle or a program that was not
 * compiled; _BAD_PARAM_OUT_OF_BOUND for count or rows; _BAD_PARAM_SIZE_INSUFFICIENT;
 * _BAD_PARAM_MISALIGNED_POINTER; _EXECUTION_FAILED; _EXECUTION_FAILED_STICKY; and the errors of
 * QDNN_CHECK_BUFFERS and QDNN_MATMUL_CHECK_INDICES if set. Steps before the one that failed have been
 * launched. */
QDNN_API qdnnStatus_t qdnnRunProgram(qdnnHandle_t handle, qdnnProgram_t program, const void *const *pointers,
                                     int count, int64_t rows, void *arena, size_t arenaBytes);

/* Frees a program, releases its plans and unloads its own kernels, waiting for them. A graph captured from it
 * must not be launched afterwards.
 *   program   may be null
 * Returns _SUCCESS. */
QDNN_API qdnnStatus_t qdnnDestroyProgram(qdnnProgram_t program);

#ifdef __cplusplus
}
#endif
#endif
