/* ptxvm: runs PTX on the CPU, bit for bit as defined by the ISA and by measurements of tensor cores. This is
 * the whole C interface. */
#ifndef PTXVM_H
#define PTXVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PTXVM_OK = 0,
    PTXVM_ERROR_ARGUMENT,            /* a null or invalid argument */
    PTXVM_ERROR_MEMORY,              /* out of host or device memory */
    PTXVM_ERROR_PTX,                 /* the text is not valid PTX */
    PTXVM_ERROR_UNSUPPORTED_VERSION, /* its .version is later than ptxvm supports */
    PTXVM_ERROR_UNSUPPORTED,         /* valid PTX that ptxvm does not support */
    PTXVM_ERROR_TARGET,              /* its .target does not run on the emulated SM */
    PTXVM_ERROR_NOT_FOUND,           /* no kernel or global of that name */
    PTXVM_ERROR_LAUNCH_SIZE,         /* grid, block or shared memory beyond limits, or contrary to .reqntid */
    PTXVM_ERROR_ADDRESS,             /* an access outside every allocation */
    PTXVM_ERROR_MISALIGNED,
    PTXVM_ERROR_TRAP,
    PTXVM_ERROR_ASSERT,
    PTXVM_ERROR_STEP_LIMIT,
    PTXVM_ERROR_DEADLOCK,  /* no lane of a block can continue, or none has made progress for wait_seconds */
    PTXVM_ERROR_EXECUTION, /* any other fault: stack overflow, bad indirect call ... */
    PTXVM_ERROR_CHECK      /* the launch completed, with findings that a GPU would not notice */
} ptxvm_status;

/* The CUresult that a GPU's driver would return: 700 for ADDRESS, 716 for MISALIGNED, 710 for ASSERT, 702 for
 * STEP_LIMIT and DEADLOCK, 719 for TRAP, EXECUTION and CHECK; 1, 2, 218, 222, 801, 209, 500 and 1 for the
 * rest, in the order above. */
int ptxvm_status_cuda(ptxvm_status status);

/* The supported range of .version, as 10 * major + minor. */
extern const int ptxvm_oldest_isa, ptxvm_newest_isa;
/* The newest .version that is accepted: a later one if the environment sets it (PTXVM_NEWEST_ISA=9.6), for
 * PTX that declares a later version but uses nothing new. -1: the variable is invalid. */
int ptxvm_accepted_isa(void);

typedef struct ptxvm ptxvm;               /* a device: its memory and its settings */
typedef struct ptxvm_module ptxvm_module; /* PTX loaded onto it */
typedef struct ptxvm_kernel ptxvm_kernel; /* an .entry of a module */
typedef uint64_t ptxvm_address;           /* a device address; the same in every run */

/* What is checked while kernels run (docs/checks.md). Accesses outside every allocation and its padding end a
 * launch in any case. */
enum {
    PTXVM_CHECK_MEMORY = 1 << 0, /* bounds to the byte; freed memory is remembered, and not reused at once */
    PTXVM_CHECK_INIT = 1 << 1,   /* computing, branching or addressing with uninitialised bytes */
    PTXVM_CHECK_RACE = 1 << 2,   /* unsynchronized accesses of threads to shared and global memory */
    PTXVM_CHECK_SYNC =
        1 << 3, /* barriers and warp instructions that some threads miss; early reads of cp.async */
    PTXVM_CHECK_LEAK = 1 << 4, /* ptxvm_leaks: for callers to check when they destroy a device */
    PTXVM_CHECK_ALL = (1 << 5) - 1,
    PTXVM_CHECK_SAME = 1 << 5 /* with race: also report threads that store the same value; not part of all */
};

/* Parses "none", "all", or some of memory, init, race, sync, leak and same (race and PTXVM_CHECK_SAME),
 * separated by commas. Returns false, with *checks unchanged, for any other word. */
bool ptxvm_checks_parse(const char *text, unsigned *checks);

typedef enum {
    PTXVM_COUNTERS_OFF,
    PTXVM_COUNTERS_KERNEL, /* totals of a launch */
    PTXVM_COUNTERS_LINES,  /* also per PTX line */
    PTXVM_COUNTERS_PATHS   /* also per path: warps that execute every line equally often */
} ptxvm_counters_level;

/* The resources that a PTX file, which is untrusted, may use on the host. Each row is a setting: the
 * environment variable PTXVM_LIMIT_name, ptxvm_config.limits[PTXVM_LIMIT_name], and the default; exceeding it
 * is an error that names the variable. X(name, default, maximum that can be set, what is limited) */
/* clang-format off */
#define PTXVM_LIMIT_TABLE(X)                                                                                \
    X(TEXT,         256 << 20,          INT32_MAX - 1,    "bytes of PTX text in a module")                   \
    X(INSTRUCTIONS, 4 << 20,            INT32_MAX / 64,   "instructions in a module")                        \
    X(DECODED,      8 << 20,            INT32_MAX / 64,                                                      \
      "instructions of a module's kernels, each with all functions that it can call")                       \
    X(REACHED,      64 << 20,           UINT64_C(1) << 40,                                                   \
      "functions and shared variables of a module's kernels, each with all functions that it can call")     \
    X(FUNCTIONS,    1 << 20,            INT32_MAX / 64,   "functions and prototypes in a module")            \
    X(VARIABLES,    32 << 10,           INT32_MAX / 64,   "variables at module scope")                       \
    X(PARAMETERS,   64 << 10,           INT32_MAX / 64,   "bytes of parameters of a function")               \
    X(DATA,         256 << 20,          UINT64_C(1) << 40, "bytes of initialised variables in a module")     \
    X(REGISTERS,    64 << 20,           1 << 30,                                                             \
      "bytes of registers and constants of a function, for 32 threads")                                     \
    X(BLOCKS,       UINT64_C(2) << 30,  UINT64_C(1) << 50,                                                   \
      "bytes of registers, local and shared memory of the blocks that a host thread runs at a time")        \
    X(ASYNC,        16 << 10,           INT32_MAX / 2048, "asynchronous copies of a warp in flight")         \
    X(PRINTF,       64 << 20,           1 << 30,          "bytes that a launch prints")                      \
    X(GRAPH,        1 << 20,            INT32_MAX / 64,                                                      \
      "nodes of a graph of the driver API, those of its child graphs included")
/* clang-format on */

typedef enum {
#define X(name, ...) PTXVM_LIMIT_##name,
    PTXVM_LIMIT_TABLE(X)
#undef X
        PTXVM_LIMITS
} ptxvm_limit;

const char *ptxvm_limit_name(ptxvm_limit limit); /* "PTXVM_LIMIT_TEXT" */
const char *ptxvm_limit_what(ptxvm_limit limit); /* "bytes of PTX text in a module" */
uint64_t ptxvm_limit_default(ptxvm_limit limit);
/* Sets limits that are 0 from the environment, or to the default. Returns false, with a message in `why`, if
 * a value is out of range or a variable is not a number. */
bool ptxvm_limits_read(uint64_t limits[PTXVM_LIMITS], char *why, size_t size);

typedef struct ptxvm_config {
    const char *sm;      /* "sm_90a"; null: sm_90a */
    int threads;         /* host threads for blocks; 0: one per core */
    uint64_t seed;       /* 0: blocks and warps run in order; else shuffled by the seed */
    uint64_t step_limit; /* warp instructions per block; 0: PTXVM_STEPS, or unlimited */
    /* a launch whose threads only poll memory that nothing writes to ends after this time (DEADLOCK); 0: never */
    uint64_t wait_seconds;
    uint64_t
        memory_bytes; /* size of device memory; 0: PTXVM_MEMORY, or 16 GiB (address space, not host memory) */
    uint64_t
        heap_bytes; /* what kernels can have from malloc at a time; 0: PTXVM_HEAP, or 8 MiB as on a GPU */
    uint64_t address_base; /* start of global memory, a multiple of 2^32 from 2^33 on; 0: 2^33 */
    uint64_t stack_bytes;  /* local memory per thread (calls, alloca); 0: 512 KiB */
    void (*print)(void *user, const char *text,
                  size_t length); /* output of the kernel's printf; null: standard output */
    void *print_user;
    unsigned checks; /* PTXVM_CHECK_*; with init, race or sync, blocks run on one host thread */
    ptxvm_counters_level counters;
    uint64_t limits[PTXVM_LIMITS]; /* 0: from the environment, or the default */
    const char *board; /* "a100": the board to act as, of that SM (which may be null); null: the usual one of
                          the SM. boards/boards.def lists them */
} ptxvm_config;

/* Sets step_limit, memory_bytes, heap_bytes and limits, where they are 0, from the environment (PTXVM_STEPS,
 * PTXVM_MEMORY, PTXVM_HEAP, PTXVM_LIMIT_...), as ptxvm_create does. Returns false, with a message in `why`, if a variable is not a number in
 * range. */
bool ptxvm_config_read(ptxvm_config *config, char *why, size_t size);

/* Only one thread at a time may use a ptxvm. config may be null: all defaults. */
ptxvm_status ptxvm_create(const ptxvm_config *config, ptxvm **vm);
void ptxvm_destroy(ptxvm *vm);
/* Describes the last failed call; for PTX with line, column and the line itself. */
const char *ptxvm_last_error(const ptxvm *vm);
const char *ptxvm_status_name(ptxvm_status status);

ptxvm_status ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module);
void ptxvm_module_unload(ptxvm_module *module);
ptxvm_status ptxvm_module_kernel(ptxvm_module *module, const char *name, ptxvm_kernel **kernel);
ptxvm_status ptxvm_module_global(ptxvm_module *module, const char *name, ptxvm_address *address,
                                 uint64_t *bytes);
typedef struct ptxvm_module_info {
    int version;     /* its .version, as 10 * major + minor */
    char target[16]; /* "sm_90a" */
} ptxvm_module_info;
void ptxvm_module_get_info(const ptxvm_module *module, ptxvm_module_info *info);
int ptxvm_module_kernel_count(const ptxvm_module *module);
ptxvm_kernel *ptxvm_module_kernel_at(ptxvm_module *module, int index);

typedef struct ptxvm_kernel_info {
    const char *name;
    int n_params;
    uint64_t param_bytes; /* of the whole parameter block */
    uint64_t static_shared_bytes, local_bytes, const_bytes;
    int registers;   /* ptxvm allocates none: a number that allows blocks of maximum size */
    int max_threads; /* per block, by .maxntid or the SM */
    int reqntid[3];  /* 0 if not required */
    int reqnctapercluster[3];
    bool explicit_cluster; /* a launch must give the size of its clusters, or the kernel has it */
} ptxvm_kernel_info;
void ptxvm_kernel_get_info(const ptxvm_kernel *kernel, ptxvm_kernel_info *info);
bool ptxvm_kernel_param(const ptxvm_kernel *kernel, int index, uint64_t *offset, uint64_t *bytes);

typedef struct ptxvm_param_info {
    const char *name, *type; /* "n", "u32"; the type of one element */
    uint64_t offset, bytes, align;
    uint64_t elements; /* 1 except for arrays */
    bool is_pointer;   /* declared with .ptr */
} ptxvm_param_info;
/* Returns false if there is no such parameter. */
bool ptxvm_kernel_get_param(const ptxvm_kernel *kernel, int index, ptxvm_param_info *info);

/* Allocations are padded to a multiple of this many bytes, like on a GPU: aligned vector loads that begin
 * inside may end in the padding, and without PTXVM_CHECK_MEMORY every access may. Those of 2 MiB and more are
 * aligned to 2 MiB. */
#define PTXVM_PADDING 512
ptxvm_status ptxvm_alloc(ptxvm *vm, uint64_t bytes, ptxvm_address *address);
ptxvm_status ptxvm_free(ptxvm *vm, ptxvm_address address);
/* Frees what kernels have allocated by malloc and not freed. */
void ptxvm_heap_clear(ptxvm *vm);
/* How many bytes kernels can have from malloc at a time (ptxvm_config.heap_bytes); beyond, malloc returns 0. Memory that they have
 * already stays theirs. */
uint64_t ptxvm_heap_size(const ptxvm *vm);
void ptxvm_heap_resize(ptxvm *vm, uint64_t bytes);
ptxvm_status ptxvm_write(ptxvm *vm, ptxvm_address to, const void *from, uint64_t bytes);
ptxvm_status ptxvm_read(ptxvm *vm, void *to, ptxvm_address from, uint64_t bytes);
ptxvm_status ptxvm_fill(ptxvm *vm, ptxvm_address to, uint8_t value, uint64_t bytes);
/* Between two devices, or within one; the ranges may overlap. */
ptxvm_status ptxvm_copy(ptxvm *to_vm, ptxvm_address to, ptxvm *from_vm, ptxvm_address from, uint64_t bytes);
/* Maps memory of the host, or of another device, at that address for kernels; the caller still owns it.
 * `extent` is bytes plus the padding after them, which the caller also owns; equal to bytes if there is
 * none. */
ptxvm_status ptxvm_map(ptxvm *vm, ptxvm_address address, void *host, uint64_t bytes, uint64_t extent);
ptxvm_status ptxvm_unmap(ptxvm *vm, ptxvm_address address);
/* Whether a single allocation contains all the bytes. */
bool ptxvm_holds(const ptxvm *vm, ptxvm_address address, uint64_t bytes);
/* The host address of the bytes; null if no single allocation contains them. They count as written from now
 * on. */
void *ptxvm_host(ptxvm *vm, ptxvm_address address, uint64_t bytes);
void ptxvm_memory_info(const ptxvm *vm, uint64_t *free_bytes, uint64_t *total_bytes);

typedef struct ptxvm_launch_config {
    uint32_t grid[3], block[3];
    uint64_t shared_bytes; /* dynamic */
    bool cooperative;
    uint32_t cluster[3]; /* blocks of a cluster; 0: what the kernel's .reqnctapercluster says, or 1 */
    bool
        programmatic; /* it may begin before the launch in front of it has ended (griddepcontrol); from sm_90 on */
} ptxvm_launch_config;

/* ---- Tensor maps ---- */

/* The numbers of types, swizzles and fills are those of CUtensorMapDataType, CUtensorMapSwizzle and
 * CUtensorMapFloatOOBfill. */
#define PTXVM_TENSORMAP_BYTES 128
#define PTXVM_TENSORMAP_RANK  5
typedef struct ptxvm_tensormap_config {
    int type, rank;
    ptxvm_address address;
    uint64_t dim[PTXVM_TENSORMAP_RANK];    /* in elements, the innermost first */
    uint64_t stride[PTXVM_TENSORMAP_RANK]; /* in bytes, of dimensions 1 and up; stride[0] is not used */
    uint32_t box[PTXVM_TENSORMAP_RANK], element_stride[PTXVM_TENSORMAP_RANK];
    int interleave, swizzle, l2_promotion, fill;
} ptxvm_tensormap_config;

/* Writes a map of 128 bytes, which kernels take by value or by address. PTXVM_ERROR_ARGUMENT, or _UNSUPPORTED, with the
 * rule that is broken in `why`. ptxvm's maps have a layout of their own. */
ptxvm_status ptxvm_tensormap_encode(void *map, const ptxvm_tensormap_config *config, char *why, size_t size);
ptxvm_status ptxvm_tensormap_replace_address(void *map, ptxvm_address address, char *why, size_t size);

/* A place in a report: a PTX line, and the source line if .loc gives one. */
typedef struct ptxvm_site {
    const char *function;
    int line;
    const char *source_file; /* null if unknown */
    int source_line;
    const char
        *what; /* ".approx: ex2.approx.ftz.f32", "may be contracted to fma", "sm_120 e4m3 k32: published" */
} ptxvm_site;

/* What a launch did that a GPU might do differently, and its instruction counts. Owned by the vm, valid until
 * its next launch. */
typedef struct ptxvm_report {
    uint64_t warp_instructions, thread_instructions;
    bool inexact;             /* an .approx or .full instruction was executed */
    const ptxvm_site *approx; /* where */
    int n_approx;
    const ptxvm_site *contractable; /* bare mul and add that the assembler may fuse; in text order */
    int n_contractable;
    const ptxvm_site *tensor; /* tensor-core rows used that are not measured */
    int n_tensor;
} ptxvm_report;

/* Runs a kernel to its end. params: the parameter block in the kernel's layout (ptxvm_kernel_param), null if
 * it has none. */
ptxvm_status ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                          const void *params, uint64_t param_bytes);
const ptxvm_report *ptxvm_last_report(const ptxvm *vm);

/* ---- Findings ---- */

typedef enum {
    PTXVM_FINDING_OUT_OF_BOUNDS,
    PTXVM_FINDING_MISALIGNED,
    PTXVM_FINDING_USE_AFTER_FREE,
    PTXVM_FINDING_DOUBLE_FREE, /* by the kernel's free */
    PTXVM_FINDING_READ_ONLY,   /* a write to .const or to a parameter */
    PTXVM_FINDING_UNINITIALISED,
    PTXVM_FINDING_RACE,
    PTXVM_FINDING_DIVERGENT_BARRIER, /* an aligned barrier executed by only part of a warp */
    PTXVM_FINDING_MISSED_BARRIER,    /* a barrier that some threads never reach: the others wait for ever */
    PTXVM_FINDING_DEADLOCK,
    PTXVM_FINDING_MEMBER_MASK, /* a warp instruction whose member mask does not include the calling lane */
    PTXVM_FINDING_ASYNC_READ,  /* the destination of a cp.async accessed before its wait */
    PTXVM_FINDING_IN_FLIGHT,   /* a register or shared memory that a wgmma in flight uses */
    PTXVM_FINDING_MBARRIER,    /* an mbarrier that is in use initialised or invalidated */
    PTXVM_FINDING_OTHER,       /* trap, assertion, step limit, stack overflow: see status */
    PTXVM_FINDING_KINDS
} ptxvm_finding_kind;

const char *ptxvm_finding_name(ptxvm_finding_kind kind); /* "out of bounds" */

typedef struct ptxvm_finding {
    ptxvm_finding_kind kind;
    ptxvm_status status; /* of a launch with only this finding */
    const char *kernel, *function;
    int line;                /* of the PTX */
    const char *source_file; /* from .loc; null if unknown */
    int source_line;
    uint32_t block[3], thread[3];
    int lane;
    const char *space; /* of the access: "global", "shared" ...; null if it is not one */
    uint64_t address, access_bytes;
    uint64_t base, size; /* the allocation concerned; size 0: none */
    /* from its end (0: the first byte after it), negative from its start; also 0 if address is inside */
    int64_t distance;
    bool has_other; /* of a race: the other thread */
    const char *other_function;
    int other_line;
    uint32_t other_block[3], other_thread[3];
    uint64_t count;      /* how often, at this line (and this other line) */
    const char *message; /* the complete text, ready to print */
} ptxvm_finding;

/* The findings of the last launch, in the order of the blocks. At most 100 different ones; *total counts all
 * occurrences. Valid until the next launch, or until the kernel's module is unloaded. */
const ptxvm_finding *ptxvm_findings(const ptxvm *vm, int *n, uint64_t *total);

typedef struct ptxvm_leak {
    ptxvm_address address;
    uint64_t bytes;
    bool heap; /* by malloc in a kernel */
} ptxvm_leak;

/* Allocations that have not been freed. Writes up to `capacity` of them, by address, and returns their total
 * number. */
int ptxvm_leaks(const ptxvm *vm, ptxvm_leak *leaks, int capacity);

/* ---- Counters ---- */

typedef enum {
    PTXVM_CLASS_INTEGER,
    PTXVM_CLASS_F32,
    PTXVM_CLASS_F64,
    PTXVM_CLASS_F16, /* f16 and bf16 */
    PTXVM_CLASS_CONVERSION,
    PTXVM_CLASS_MEMORY,
    PTXVM_CLASS_CONTROL,
    PTXVM_CLASS_WARP,
    PTXVM_CLASS_TENSOR,
    PTXVM_CLASS_OTHER,
    PTXVM_CLASSES
} ptxvm_class;

const char *ptxvm_class_name(ptxvm_class class_of);

/* Accesses to global memory: requests are warp instructions; sectors are 32 bytes, counted once per
 * request. */
typedef struct ptxvm_traffic {
    uint64_t requests, sectors;
    uint64_t least_sectors; /* if the distinct bytes of each request were contiguous */
    uint64_t bytes;         /* requested by the lanes */
    uint64_t
        first_sectors; /* that no request of the launch touched before: the sum over lines is unique_sectors */
    uint64_t
        block_sectors; /* that no request of the block touched before, as far as 4096 sectors remember: what L1 would miss */
} ptxvm_traffic;

typedef struct ptxvm_counts {
    uint64_t instructions; /* warp instructions */
    uint64_t threads;      /* that executed them: the thread instructions of ptxvm_report */
    uint64_t lanes;        /* those of them whose guard was true */
    ptxvm_traffic load, store, atomic;
    uint64_t shared_accesses, shared_wavefronts, bank_conflicts; /* conflicts: wavefronts beyond the least */
    uint64_t mma, barriers, atomics, branches, divergent_branches;
} ptxvm_counts;

typedef struct ptxvm_mma_count {
    const char *name; /* "m16n8k16.f32.f16.f16.f32" */
    uint64_t count;
} ptxvm_mma_count;

/* The instructions of one source line, according to .loc. */
typedef struct ptxvm_source_count {
    const char *file;
    int line;
    ptxvm_counts counts;
} ptxvm_source_count;

/* The warps of a launch that execute every line equally often. There are at most PTXVM_PATHS of them: the rarest are merged with those
 * that they resemble most. */
#define PTXVM_PATHS 128
typedef struct ptxvm_path {
    uint64_t warps;
    uint64_t first;        /* the first of them: block * warps of a block + warp */
    bool merged;           /* not all of its warps are alike */
    const uint64_t *lines; /* instructions by PTX line, of all its warps together */
} ptxvm_path;

typedef struct ptxvm_counters {
    const char *kernel;
    bool complete; /* the launch completed; else the counts up to the failure */
    ptxvm_counts total;
    ptxvm_counts by_class[PTXVM_CLASSES];
    uint64_t unique_sectors; /* of global memory, distinct over the whole launch */
    const ptxvm_mma_count *mma;
    int n_mma;
    const ptxvm_counts *lines; /* by PTX line, lines[0] unused; null without PTXVM_COUNTERS_LINES */
    int n_lines;
    const ptxvm_source_count *sources; /* with PTXVM_COUNTERS_LINES, by file and line; none without .loc */
    int n_sources;
    const ptxvm_path *paths; /* with PTXVM_COUNTERS_PATHS, in the order of their first warps */
    int n_paths;
    const uint8_t *path_of; /* by block * warps of a block + warp: its path */
    uint64_t n_warps;       /* of path_of; 0: the launch failed, or there were more than 16 million */
} ptxvm_counters;

/* The counters of the last launch, if counters are on and it ran at all; else null. Valid until the next
 * launch. */
const ptxvm_counters *ptxvm_last_counters(const ptxvm *vm);
/* Writes them as one JSON object, or as a listing of the kernel with the cost of each line, hot ones marked.
 * Returns false if there are no counters or a write failed. */
bool ptxvm_counters_json(const ptxvm *vm, FILE *file);
bool ptxvm_counters_listing(const ptxvm *vm, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
