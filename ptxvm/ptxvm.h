/* ptxvm: runs PTX on the CPU, bit for bit as the ISA and the measured tensor cores have it. The whole C
 * interface. */
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
    PTXVM_ERROR_ARGUMENT,            /* a null or wrong argument */
    PTXVM_ERROR_MEMORY,              /* the host has no memory left, or the device's is used up */
    PTXVM_ERROR_PTX,                 /* the text is not valid PTX */
    PTXVM_ERROR_UNSUPPORTED_VERSION, /* its .version is later than ptxvm knows */
    PTXVM_ERROR_UNSUPPORTED,         /* valid PTX that ptxvm refuses by name */
    PTXVM_ERROR_TARGET,              /* its .target does not run on the SM that ptxvm acts as */
    PTXVM_ERROR_NOT_FOUND,           /* no kernel or global of that name */
    PTXVM_ERROR_LAUNCH_SIZE,         /* grid, block or shared memory beyond the limits, or against .reqntid */
    PTXVM_ERROR_ADDRESS,             /* an access outside every allocation */
    PTXVM_ERROR_MISALIGNED,
    PTXVM_ERROR_TRAP,
    PTXVM_ERROR_ASSERT,
    PTXVM_ERROR_STEP_LIMIT,
    PTXVM_ERROR_DEADLOCK,  /* no lane of a block can go on, or has gone on for wait_seconds */
    PTXVM_ERROR_EXECUTION, /* anything else that ends a launch: stack overflow, bad indirect call ... */
    PTXVM_ERROR_CHECK      /* a launch that ran to its end, with findings that a GPU would not notice */
} ptxvm_status;

/* The CUresult that a GPU's driver gives: 700 for ADDRESS, 716 for MISALIGNED, 710 for ASSERT, 702 for
 * STEP_LIMIT and DEADLOCK, 719 for TRAP, EXECUTION and CHECK; 1, 2, 218, 222, 801, 209, 500 and 1 for the
 * rest, in the order above. */
int ptxvm_status_cuda(ptxvm_status status);

/* .version of the PTX that is read, as 10 * major + minor. */
extern const int ptxvm_oldest_isa, ptxvm_newest_isa;
/* The newest that is taken: a later one where the environment says so (PTXVM_NEWEST_ISA=9.6), for PTX that has a
 * later number and nothing that came with it. -1: the variable is no such number. */
int ptxvm_accepted_isa(void);

typedef struct ptxvm ptxvm;               /* a device: its memory and its settings */
typedef struct ptxvm_module ptxvm_module; /* PTX loaded onto it */
typedef struct ptxvm_kernel ptxvm_kernel; /* an .entry of a module */
typedef uint64_t ptxvm_address;           /* a device address; the same in every run */

/* What is looked for while kernels run (docs/checks.md). Accesses outside every allocation and its padding end a
 * launch in any case. */
enum {
    PTXVM_CHECK_MEMORY = 1 << 0, /* bounds to the byte; freed memory is remembered, and not given out again at once */
    PTXVM_CHECK_INIT = 1 << 1,   /* computing, deciding or addressing with bytes that nobody wrote */
    PTXVM_CHECK_RACE = 1 << 2,   /* shared and global memory that threads touch with nothing between them */
    PTXVM_CHECK_SYNC =
        1 << 3, /* barriers and warp-level instructions that not all reach; cp.async read too early */
    PTXVM_CHECK_LEAK = 1 << 4, /* ptxvm_leaks: for those above this library to ask when they end a device */
    PTXVM_CHECK_ALL = (1 << 5) - 1,
    PTXVM_CHECK_SAME = 1 << 5 /* with race: also threads that store the same value; not part of all */
};

/* "none", "all", or some of memory, init, race, sync, leak and same (race, and PTXVM_CHECK_SAME), separated
 * by commas. False, and *checks as it was: another word. */
bool ptxvm_checks_parse(const char *text, unsigned *checks);

typedef enum {
    PTXVM_COUNTERS_OFF,
    PTXVM_COUNTERS_KERNEL, /* sums of a launch */
    PTXVM_COUNTERS_LINES   /* and of each line of the PTX */
} ptxvm_counters_level;

/* What a PTX file, which is untrusted, may make the host spend. Each row is a setting: the environment variable
 * PTXVM_LIMIT_name, ptxvm_config.limits[PTXVM_LIMIT_name], the default; what exceeds it is an error that names
 * the variable. X(name, default, most that can be set, what is limited) */
/* clang-format off */
#define PTXVM_LIMIT_TABLE(X)                                                                                \
    X(TEXT,         256 << 20,          INT32_MAX - 1,    "bytes of PTX text in a module")                   \
    X(INSTRUCTIONS, 4 << 20,            INT32_MAX / 64,   "instructions in a module")                        \
    X(DECODED,      8 << 20,            INT32_MAX / 64,                                                      \
      "instructions of a module's kernels, each with all functions that it can call")                       \
    X(FUNCTIONS,    1 << 20,            INT32_MAX / 64,   "functions and prototypes in a module")            \
    X(VARIABLES,    32 << 10,           INT32_MAX / 64,   "variables at module scope")                       \
    X(PARAMETERS,   64 << 10,           INT32_MAX / 64,   "bytes of parameters of a function")               \
    X(DATA,         256 << 20,          UINT64_C(1) << 40, "bytes of initialised variables in a module")     \
    X(REGISTERS,    64 << 20,           1 << 30,                                                             \
      "bytes of registers and constants of a function, for 32 threads")                                     \
    X(BLOCKS,       UINT64_C(2) << 30,  UINT64_C(1) << 50,                                                   \
      "bytes of registers, local and shared memory of the blocks that a host thread runs at a time")        \
    X(ASYNC,        16 << 10,           INT32_MAX / 2048, "asynchronous copies of a warp in flight")         \
    X(PRINTF,       64 << 20,           1 << 30,          "bytes that a launch prints")
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
/* Limits that are 0 get the environment's, or the default. False, with a sentence in `why`: a value out of range, or
 * a variable that is not a number. */
bool ptxvm_limits_read(uint64_t limits[PTXVM_LIMITS], char *why, size_t size);

typedef struct ptxvm_config {
    const char *sm;        /* "sm_90a"; null: sm_90a */
    int threads;           /* host threads for blocks; 0: one a core */
    uint64_t seed;         /* 0: blocks and warps in order; else they are shuffled by it */
    uint64_t step_limit;   /* warp instructions a block may take; 0: none */
    uint64_t wait_seconds; /* a launch whose threads only look at memory that nobody writes ends after so
                              long (DEADLOCK); 0: never */
    uint64_t memory_bytes; /* size of device memory; 0: 16 GiB (address space, not host memory) */
    uint64_t address_base; /* where global memory begins, a multiple of 2^32 from 2^33 on; 0: 2^33 */
    uint64_t stack_bytes;  /* local memory a thread may use (calls, alloca); 0: 512 KiB */
    void (*print)(void *user, const char *text,
                  size_t length); /* the guest's printf; null: standard output */
    void *print_user;
    unsigned checks; /* PTXVM_CHECK_*; with init, race or sync blocks run on one host thread */
    ptxvm_counters_level counters;
    uint64_t limits[PTXVM_LIMITS]; /* 0: the environment's, or the default */
} ptxvm_config;

/* One thread at a time may use a ptxvm. config may be null: all defaults. */
ptxvm_status ptxvm_create(const ptxvm_config *config, ptxvm **vm);
void ptxvm_destroy(ptxvm *vm);
/* What the last call that failed found wrong: a sentence, for PTX with line, column and the line itself. */
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
    int registers;   /* ptxvm assigns none: a number that lets a block of the greatest size fit */
    int max_threads; /* a block, by .maxntid or the SM */
    int reqntid[3];  /* 0 where not required */
} ptxvm_kernel_info;
void ptxvm_kernel_get_info(const ptxvm_kernel *kernel, ptxvm_kernel_info *info);
bool ptxvm_kernel_param(const ptxvm_kernel *kernel, int index, uint64_t *offset, uint64_t *bytes);

typedef struct ptxvm_param_info {
    const char *name, *type; /* "n", "u32"; the type of one element */
    uint64_t offset, bytes, align;
    uint64_t elements; /* 1 but for arrays */
    bool is_pointer;   /* declared with .ptr */
} ptxvm_param_info;
/* False: there is no such parameter. */
bool ptxvm_kernel_get_param(const ptxvm_kernel *kernel, int index, ptxvm_param_info *info);

/* Allocations are padded to a multiple of this many bytes, as a GPU's are: aligned vector loads that begin inside
 * may end in the padding, and without PTXVM_CHECK_MEMORY every access may. Those of 2 MiB and more are aligned to
 * 2 MiB. */
#define PTXVM_PADDING 512
ptxvm_status ptxvm_alloc(ptxvm *vm, uint64_t bytes, ptxvm_address *address);
ptxvm_status ptxvm_free(ptxvm *vm, ptxvm_address address);
/* Frees what kernels have got from malloc and not freed themselves. */
void ptxvm_heap_clear(ptxvm *vm);
ptxvm_status ptxvm_write(ptxvm *vm, ptxvm_address to, const void *from, uint64_t bytes);
ptxvm_status ptxvm_read(ptxvm *vm, void *to, ptxvm_address from, uint64_t bytes);
ptxvm_status ptxvm_fill(ptxvm *vm, ptxvm_address to, uint8_t value, uint64_t bytes);
/* Between two devices, or within one; the ranges may overlap. */
ptxvm_status ptxvm_copy(ptxvm *to_vm, ptxvm_address to, ptxvm *from_vm, ptxvm_address from, uint64_t bytes);
/* Memory of the host, or of another device, that kernels reach at that address; it stays the caller's. `extent` is
 * bytes and the padding behind them, which is the caller's as well; as many as bytes where there is none. */
ptxvm_status ptxvm_map(ptxvm *vm, ptxvm_address address, void *host, uint64_t bytes, uint64_t extent);
ptxvm_status ptxvm_unmap(ptxvm *vm, ptxvm_address address);
/* Whether one allocation holds all the bytes. */
bool ptxvm_holds(const ptxvm *vm, ptxvm_address address, uint64_t bytes);
/* Where the host sees the bytes, null where no one allocation holds them. They count as written from now on.
 */
void *ptxvm_host(ptxvm *vm, ptxvm_address address, uint64_t bytes);
void ptxvm_memory_info(const ptxvm *vm, uint64_t *free_bytes, uint64_t *total_bytes);

typedef struct ptxvm_launch_config {
    uint32_t grid[3], block[3];
    uint64_t shared_bytes; /* dynamic */
    bool cooperative;
} ptxvm_launch_config;

/* A place that a report names: a line of the PTX, and of the source where .loc gives one. */
typedef struct ptxvm_site {
    const char *function;
    int line;
    const char *source_file; /* null where unknown */
    int source_line;
    const char
        *what; /* ".approx: ex2.approx.ftz.f32", "may be contracted to fma", "sm_120 e4m3 k32: published" */
} ptxvm_site;

/* What a launch did that a GPU might do otherwise, and how much it was. Owned by the vm, valid until its next
 * launch. */
typedef struct ptxvm_report {
    uint64_t warp_instructions, thread_instructions;
    bool inexact;             /* an .approx or .full instruction was executed */
    const ptxvm_site *approx; /* where */
    int n_approx;
    const ptxvm_site
        *contractable; /* bare mul and add (no rounding written) that the assembler may fuse; by the text */
    int n_contractable;
    const ptxvm_site *tensor; /* tensor-core rows used that are not measured */
    int n_tensor;
} ptxvm_report;

/* Runs a kernel to its end. params: the parameter block as the kernel lays it out (ptxvm_kernel_param), null
 * where it has none. */
ptxvm_status ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                          const void *params, uint64_t param_bytes);
const ptxvm_report *ptxvm_last_report(const ptxvm *vm);

/* ---- Findings ---- */

typedef enum {
    PTXVM_FINDING_OUT_OF_BOUNDS,
    PTXVM_FINDING_MISALIGNED,
    PTXVM_FINDING_USE_AFTER_FREE,
    PTXVM_FINDING_DOUBLE_FREE, /* by the guest's free */
    PTXVM_FINDING_READ_ONLY,   /* a write to .const or to a parameter */
    PTXVM_FINDING_UNINITIALISED,
    PTXVM_FINDING_RACE,
    PTXVM_FINDING_DIVERGENT_BARRIER, /* an aligned barrier that part of a warp executes */
    PTXVM_FINDING_MISSED_BARRIER,    /* a barrier that some threads never reach: the others wait for ever */
    PTXVM_FINDING_DEADLOCK,
    PTXVM_FINDING_MEMBER_MASK, /* a warp instruction whose member mask leaves out the caller */
    PTXVM_FINDING_ASYNC_READ,  /* the target of a cp.async touched before its wait */
    PTXVM_FINDING_OTHER,       /* trap, assertion, step limit, stack overflow: see status */
    PTXVM_FINDING_KINDS
} ptxvm_finding_kind;

const char *ptxvm_finding_name(ptxvm_finding_kind kind); /* "out of bounds" */

typedef struct ptxvm_finding {
    ptxvm_finding_kind kind;
    ptxvm_status status; /* of a launch that has this finding alone */
    const char *kernel, *function;
    int line;                /* of the PTX */
    const char *source_file; /* by .loc; null where unknown */
    int source_line;
    uint32_t block[3], thread[3];
    int lane;
    const char *space; /* of the access: "global", "shared" ...; null where it is none */
    uint64_t address, access_bytes;
    uint64_t base, size; /* the allocation that it concerns; size 0: none */
    int64_t distance;    /* from its end (0: the first byte behind it), negative from its start; 0 too where
                            address lies inside */
    bool has_other;      /* of a race: who else */
    const char *other_function;
    int other_line;
    uint32_t other_block[3], other_thread[3];
    uint64_t count;      /* how often, at this line (and this other line) */
    const char *message; /* all of it, ready to print */
} ptxvm_finding;

/* What the last launch found, in the order of the blocks. At most 100 different ones; *total counts each
 * time. Valid until the next launch, or until the kernel's module is unloaded. */
const ptxvm_finding *ptxvm_findings(const ptxvm *vm, int *n, uint64_t *total);

typedef struct ptxvm_leak {
    ptxvm_address address;
    uint64_t bytes;
    bool heap; /* the guest's malloc */
} ptxvm_leak;

/* Allocations that are still there. Writes up to `capacity` of them, by address, and returns how many there
 * are. */
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

/* Accesses to global memory: requests are warp instructions; sectors are 32 bytes, counted once for each
 * request. */
typedef struct ptxvm_traffic {
    uint64_t requests, sectors;
    uint64_t least_sectors; /* if the different bytes of each request lay side by side */
    uint64_t bytes;         /* that the lanes asked for */
} ptxvm_traffic;

typedef struct ptxvm_counts {
    uint64_t instructions; /* of warps */
    uint64_t threads;      /* that executed them: the thread instructions of ptxvm_report */
    uint64_t lanes;        /* those of them for which the guard held */
    ptxvm_traffic load, store, atomic;
    uint64_t shared_accesses, shared_wavefronts, bank_conflicts; /* conflicts: wavefronts beyond the least */
    uint64_t mma, barriers, atomics, branches, divergent_branches;
} ptxvm_counts;

typedef struct ptxvm_mma_count {
    const char *name; /* "m16n8k16.f32.f16.f16.f32" */
    uint64_t count;
} ptxvm_mma_count;

/* The instructions of one line of the source, as .loc tells it. */
typedef struct ptxvm_source_count {
    const char *file;
    int line;
    ptxvm_counts counts;
} ptxvm_source_count;

typedef struct ptxvm_counters {
    const char *kernel;
    bool complete; /* the launch came to its end; else what was counted until it failed */
    ptxvm_counts total;
    ptxvm_counts by_class[PTXVM_CLASSES];
    uint64_t unique_sectors; /* of global memory, that the whole launch touched */
    const ptxvm_mma_count *mma;
    int n_mma;
    const ptxvm_counts *lines; /* by line of the PTX, lines[0] unused; null without PTXVM_COUNTERS_LINES */
    int n_lines;
    const ptxvm_source_count *sources; /* with PTXVM_COUNTERS_LINES, by file and line; none without .loc */
    int n_sources;
} ptxvm_counters;

/* Of the last launch, where counters are on and it ran at all; else null. Valid until the next launch. */
const ptxvm_counters *ptxvm_last_counters(const ptxvm *vm);
/* As one JSON object; and as the kernel's lines with what each cost, the hot ones marked. False: no counters,
 * or a write failed. */
bool ptxvm_counters_json(const ptxvm *vm, FILE *file);
bool ptxvm_counters_listing(const ptxvm *vm, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
