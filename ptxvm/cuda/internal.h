/* The driver's objects. One lock protects them all: a call takes it on entry and releases it on return or
 * while it waits (api.c). Handles held by programs are pointers to these structs, and are looked up before
 * they are dereferenced (objects.c). */
#ifndef PTXVM_CUDA_INTERNAL_H
#define PTXVM_CUDA_INTERNAL_H

#include <stdbool.h>

#include "boards/boards.h"
#include "ptxvm/sm.h"
#include "cuda_abi.h"
#include "ptxvm/ptxvm.h"
#include "ptxvm_cuda.h"

#define CUDA_MAX_DEVICES 16
/* Each device has its own range of addresses, so that an address identifies its device. */
#define CUDA_DEVICE_BASE   UINT64_C(0x200000000)
#define CUDA_DEVICE_STRIDE (UINT64_C(1) << 40)
#define CUDA_CONST_BASE    UINT64_C(0x20000000) /* .const variables: the same addresses on every device */
#define CUDA_CONST_END     UINT64_C(0x40000000)

/* ---- Objects (objects.c) ---- */

typedef enum {
    OBJECT_CONTEXT = 1,
    OBJECT_STREAM,
    OBJECT_EVENT,
    OBJECT_MODULE,
    OBJECT_FUNCTION,
    OBJECT_LIBRARY,
    OBJECT_KERNEL,
    OBJECT_LINK,
    OBJECT_POOL,
    OBJECT_GRAPH,
    OBJECT_NODE,
    OBJECT_EXEC,
    OBJECT_USER
} object_kind;

/* Creates a zeroed object of that size, identified by its address; null: no memory left. */
void *object_new(object_kind kind, size_t bytes);
/* Removes it; the caller must free its memory. */
void object_forget(const void *object);
bool object_is(const void *object, object_kind kind);
uint64_t object_id(const void *object); /* unique, never reused; 0: not an object */
/* Calls fn for each object of the kind, in order of creation. fn may remove the object it is given. */
void object_each(object_kind kind, void (*fn)(void *object, void *user), void *user);
void objects_clear(void);

/* ---- Devices (device.c) ---- */

typedef struct cuda_device {
    int ordinal;
    ptxvm *vm;
    const sm_traits *traits;
    const board *board;
    CUcontext primary; /* null: not active */
    unsigned primary_refs, primary_flags;
    CUmemoryPool default_pool, pool;
    uint64_t heap_bytes; /* what the kernels of a context can have from malloc, unless the context sets it */
    uint64_t graph_high; /* the most memory that graphs have held */
    uint64_t launches;   /* of kernels */
} cuda_device;

typedef struct cuda_driver {
    bool initialised;
    bool told_table; /* that private tables are not supported */
    int driver_version;
    uint64_t wait_seconds;
    unsigned checks; /* PTXVM_CHECK_* */
    char sm[16];
    const board *board; /* the one of PTXVM_GPU, or the usual one of the SM */
    int n_devices;
    cuda_device devices[CUDA_MAX_DEVICES];
    uint64_t limits[PTXVM_LIMITS];    /* the effective ones */
    unsigned peers[CUDA_MAX_DEVICES]; /* bit j of i: device i may access the memory of device j */
} cuda_driver;
extern cuda_driver cuda;

int driver_version(void); /* also before cuInit */
CUresult devices_create(const ptxvm_cuda_settings *settings);
void devices_destroy(void);
cuda_device *device_at(CUdevice ordinal); /* null: there is none */
int device_attribute(const cuda_device *d, CUdevice_attribute attribute);

/* ---- Settings, log, faults (settings.c, log.c, faults.c) ---- */

/* The effective settings: those configured, then those of the environment. The texts are valid until the next
 * call. */
bool settings_read(ptxvm_cuda_settings *settings);
/* Called first by every function: opens the log. */
void settings_begin(void);
/* variables.c: logs each variable PTXVM_... that nothing reads. */
void cuda_variables_check(void);
void settings_clear(void);
/* Returns false if the file cannot be written. */
bool cuda_log_open(const char *where);
void cuda_log_close(void);
void cuda_log_line(const char *text);
/* The file for counters of launches, one JSON object per line; null: none. */
bool counters_open(const char *path);
void counters_close(void);
void counters_write(const ptxvm *vm);
/* Logs a message for the user, if PTXVM_LOG is set. Returns code. */
CUresult cuda_log(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *settings_fault(void);
/* Parses PTXVM_FAULT, at the first call of any function; false: it is invalid. */
bool faults_read(void);
void faults_forget(void);
/* The fault requested for this call of the function; CUDA_SUCCESS: none. */
CUresult faults_next(int function);

/* ---- Calls (api.c) ---- */

enum { /* what a function requires before it may be called */
       NEED_INIT = 1,
       NEED_CONTEXT_ = 2,
       NEED_NO_CAPTURE = 4, /* would make a capture wait or allocate: rejected during one */
       NOTHING = 0,
       INIT = NEED_INIT,
       INIT_UNSAFE = NEED_INIT | NEED_NO_CAPTURE,
       CONTEXT = NEED_INIT | NEED_CONTEXT_,
       UNSAFE = CONTEXT | NEED_NO_CAPTURE
};

#define CONTEXT_DEPTH 64
typedef struct cuda_thread {
    uint64_t id; /* 0: not numbered yet */
    int depth;
    struct {
        CUcontext context;
        uint64_t id;
    } stack[CONTEXT_DEPTH];
    bool per_thread; /* the call is a _ptds or _ptsz one */
    bool in_callback;
    CUstreamCaptureMode capture_mode;
} cuda_thread;
cuda_thread *cuda_self(void);

CUresult cuda_enter(int function, int needs, bool per_thread);
CUresult cuda_leave(CUresult result);
void cuda_lock(void);
void cuda_unlock(void);
/* Releases the lock until something happens, or for a millisecond. */
void cuda_pause(void);
void cuda_signal(void);

/* ---- Contexts (context.c) ---- */

struct CUctx_st {
    uint64_t id;
    cuda_device *device;
    unsigned flags, api_version;
    int refs; /* of cuCtxAttach */
    bool primary;
    CUresult error;  /* sticky */
    CUresult missed; /* of a launch that ran out of memory: reported once, by the next launch or wait */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache;
    CUsharedconfig shared_config;
    CUstream legacy;  /* the default stream */
    CUstream streams; /* all, including the default ones */
    unsigned peers;   /* bit j: cuCtxEnablePeerAccess to a context of device j */
};

CUcontext context_new(cuda_device *device, unsigned flags, bool primary);
void context_destroy(CUcontext context);
CUcontext context_current(void); /* null: none, or destroyed */
bool context_is(CUcontext context);
/* Returns context->missed and resets it to 0. */
CUresult context_take_missed(CUcontext context);
/* Sets a sticky error; work still queued in the context is dropped. */
void context_fail(CUcontext context, CUresult error);

/* ---- Memory (memory.c, copy.c) ---- */

typedef enum { MEMORY_DEVICE, MEMORY_HOST, MEMORY_REGISTERED, MEMORY_MANAGED, MEMORY_POOL } memory_kind;

typedef struct cuda_memory {
    CUdeviceptr address;
    size_t bytes;
    memory_kind kind;
    unsigned flags;
    int device;
    CUcontext context;
    CUmemoryPool pool;   /* MEMORY_POOL: the pool it came from */
    bool freed;          /* MEMORY_POOL: cuMemFreeAsync is queued */
    unsigned graph_refs; /* allocation nodes of graphs that it belongs to: it lives as long as they do */
    bool sync_memops, read_mostly;
    int preferred, prefetched;
    unsigned accessed_by;
    uint64_t id;
} cuda_memory;

/* The allocation that contains the address, or null. Valid until the table changes. */
cuda_memory *memory_find(CUdeviceptr address);
CUresult memory_new(CUcontext context, memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *address);
CUresult memory_new_in_pool(CUcontext context, CUmemoryPool pool, size_t bytes, CUdeviceptr *address);
void memory_pool_access(CUmemoryPool pool, int device, uint8_t flags);
void memory_forget_pool(CUmemoryPool pool); /* its memory remains, without a pool */
CUresult memory_free(CUdeviceptr address);
/* Adds or removes a node that uses this allocation (its id is checked). Removing the last one frees it. */
uint64_t memory_of_graphs(int device); /* bytes */
void memory_graph_ref(CUdeviceptr address, uint64_t id, int change);
void memory_free_context(CUcontext context);
void memory_clear(void);
/* Lets device `from` access the memory of `to`, or revokes it. */
CUresult memory_peer(int from, int to, bool on);
bool memory_is_device(CUdeviceptr address, int *device); /* judging by the address alone */
CUresult status_code(ptxvm_status status);

/* Copies bytes between any two places, including host addresses. `context` determines whose .const memory an
 * address refers to. */
CUresult copy_bytes(CUcontext context, CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult copy_check(CUcontext context, const CUDA_MEMCPY3D_PEER *copy);
CUresult copy_run(CUcontext context, const CUDA_MEMCPY3D_PEER *copy);
CUresult memset_check(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *set);
CUresult memset_run(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *set);
/* Whether all of it is memory that a device can access. */
bool copy_reaches(CUcontext context, CUdeviceptr address, size_t bytes);

/* ---- Images (image.c, expand.c) ---- */

#define IMAGE_IN_MEMORY SIZE_MAX /* a length known only from the image itself */

typedef struct cuda_image {
    const char *text; /* PTX, zero-terminated */
    size_t length;
    char *owned;   /* the text, if it is not the caller's */
    char why[400]; /* why it was rejected */
} cuda_image;
/* The PTX of an image: text, or the newest in a fat binary that the SM can run. Code 209 if it contains only
 * machine code or PTX for other SMs, 200 for anything else. The data is zero-terminated, or contains its own
 * length. Call image_close in any case. */
CUresult image_open(const void *data, size_t bytes, cuda_image *image);
void image_close(cuda_image *image);

/* Decompresses one LZ4 block, which must fill the size exactly. */
bool expand_lz4(const uint8_t *from, size_t bytes, uint8_t *to, size_t size);
typedef enum { EXPAND_OK, EXPAND_DAMAGED, EXPAND_NO_LIBRARY } expand_result;
expand_result expand_zstd(const uint8_t *from, size_t bytes, uint8_t *to, size_t size);

/* ---- Modules and functions (module.c, library.c, function.c) ---- */

struct CUmod_st {
    CUcontext context;
    ptxvm_module *vm;
    CUfunction functions; /* created on demand */
    CUlibrary library;    /* null: loaded by itself */
};

struct CUfunc_st {
    CUmodule module;
    ptxvm_kernel *vm;
    ptxvm_kernel_info info;
    int max_dynamic_shared, carveout, cluster_policy;
    bool non_portable_cluster;
    CUfunc_cache cache;
    CUfunction next;
    /* cuFuncSetBlockShape and similar */
    unsigned block[3], shared;
    uint8_t *params;
    size_t param_bytes;
};

/* The log options of a JIT call. */
typedef struct jit_log {
    char *info, *error;
    size_t info_size, error_size;
    void **info_used, **error_used; /* where the written sizes go */
    void **wall_time;
    bool verbose;
} jit_log;
CUresult jit_options(unsigned n, const CUjit_option *options, void **values, jit_log *log);
void jit_finish(jit_log *log, const char *info, const char *error);

CUresult module_load(CUcontext context, const void *image, size_t bytes, jit_log *log, CUmodule *module);
void module_unload(CUmodule module);
CUresult module_function(CUmodule module, const char *name, CUfunction *function);
CUfunction module_function_at(CUmodule module, int index);
/* A CUfunction, or the function of a CUkernel in the context. */
CUresult function_get(CUcontext context, CUfunction handle, CUfunction *function);
CUresult kernel_function(CUkernel kernel, CUcontext context, CUfunction *function);
int function_registers(const struct CUfunc_st *f);
int occupancy_blocks(const struct CUfunc_st *f, int block, size_t dynamic_shared);
void libraries_forget_context(CUcontext context);
char *read_file(const char *path, size_t *bytes);

/* ---- Work (work.c): the elements of a stream's queue and of a graph's nodes ---- */

enum {                      /* the others are CUgraphNodeType */
       WORK_CALLBACK = 100, /* of cuStreamAddCallback */
       WORK_HOLD            /* the end of a graph's launch: user objects live until then */
};

typedef struct graph_user_object {
    CUuserObject object;
    unsigned count;
} graph_user_object;

typedef struct cuda_work {
    int type;
    CUcontext context;
    union {
        struct {
            CUfunction function; /* as given: may be a CUkernel */
            unsigned grid[3], block[3], shared;
            unsigned cluster[3]; /* 0: as the kernel says */
            bool cooperative;
            bool programmatic; /* it may begin before the kernel in front of it has ended */
            int priority;
            uint8_t *params; /* the parameter block */
            size_t param_bytes;
            void **pointers; /* to each parameter in it */
        } kernel;
        CUDA_MEMCPY3D_PEER copy;
        CUDA_MEMSET_NODE_PARAMS memset;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            CUstream stream;
            void *user;
        } host;
        struct {
            CUevent event;
            uint64_t record; /* the record that a wait refers to; of a record: its number */
        } event;
        struct {
            CUdeviceptr address;
            size_t bytes;
            uint64_t id; /* of a graph's allocation; else 0 */
            CUmemPoolProps props;
        } memory;
        struct {
            unsigned count, next, flags;
            CUstreamBatchMemOpParams *ops;
        } batch;
        CUgraph child;
        struct {
            graph_user_object *users;
            size_t n;
        } hold;
    };
} cuda_work;

CUresult work_copy(cuda_work *to, const cuda_work *from); /* a deep copy */
void work_clear(cuda_work *work);
/* Whether it could continue now, as far as it depends on events and values. */
bool work_ready(cuda_work *work);
/* Runs it to its end; host functions are handled by the queue. */
CUresult work_run(cuda_work *work);
CUresult launch_fill(CUcontext context, CUfunction function, const unsigned grid[3], const unsigned block[3],
                     unsigned shared, void **params, void **extra, cuda_work *work);
CUresult launch_run(cuda_work *work);
/* Clusters: the size that attributes ask for (0: none), its check for a grid, and the largest that a function may have;
 * 0: the device has none. */
CUresult launch_set_cluster(cuda_work *work, unsigned x, unsigned y, unsigned z);
CUresult launch_cluster_of(const CUlaunchConfig *config, unsigned cluster[3]);
CUresult launch_check_cluster(const struct CUfunc_st *f, const unsigned given[3], const unsigned grid[3],
                              unsigned *blocks);
int launch_cluster_most(const struct CUfunc_st *f);

/* ---- Streams (stream.c, queue.c) ---- */

typedef struct cuda_op {
    cuda_work work;
    uint64_t order;
    struct cuda_op *next;
} cuda_op;

typedef struct cuda_capture cuda_capture;

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id, thread; /* thread: of a per-thread default stream, else 0 */
    bool legacy, destroyed;
    bool busy; /* its first op is a host function that is running */
    uint64_t
        last_launch; /* the number, on its device, of the kernel that it ran last; 0: it has done something else since */
    cuda_op *first, *last;
    cuda_capture *capture;  /* null: none */
    CUgraphNode *tips;      /* of the capture: the dependencies of the next node */
    CUgraphEdgeData *edges; /* parallel to tips, all zero: plain dependencies */
    size_t n_tips, tip_capacity;
    CUlaunchAttributeValue attributes[17];
    CUstream next, next_active;
};

CUstream stream_new(CUcontext context, unsigned flags, int priority);
void stream_delete(CUstream stream);
/* The stream of a handle: 0, 1 and 2 are the default ones. */
CUresult stream_get(CUstream handle, CUstream *stream);
/* Queues the work (taking ownership, even on failure), or makes it a graph node while the stream is
 * capturing. */
CUresult stream_submit(CUstream stream, cuda_work *work);
/* The same, and waits for it: for calls without Async. */
CUresult stream_submit_wait(CUstream stream, cuda_work *work);
bool stream_idle(CUstream stream);
CUresult stream_wait(CUstream stream);
CUresult context_wait(CUcontext context);
void queue_add(CUstream stream, cuda_op *op);
void queue_pump(void);
/* Waits until `done(user)`; fails with code 702 if there is no progress for too long. */
CUresult queue_wait(bool (*done)(void *user), void *user, CUcontext context);
void queue_drop(CUcontext context, CUresult error);
/* Waits until no host function is running. */
void queue_quiet(void);

/* ---- Events (event.c) ---- */

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool destroyed;
    int refs;                /* ops and nodes that refer to it */
    uint64_t recorded, done; /* the last record that was queued, and that has run */
    double time;             /* of the last that has run, in milliseconds */
    cuda_capture *capture;   /* if the last record was captured: */
    uint64_t capture_id;
    CUgraphNode *tips;
    size_t n_tips;
};
void event_retain(CUevent event);
void event_release(CUevent event);
void event_complete(CUevent event, uint64_t record);
CUresult event_get(CUevent event);

/* ---- Capture (capture.c) ---- */

struct cuda_capture {
    uint64_t id, thread;
    CUgraph graph;
    bool own_graph;
    CUstreamCaptureMode mode;
    CUstream origin;
    bool invalid;
    CUgraphNode *loose; /* tips of destroyed forked streams: they must be joined as well */
    size_t n_loose;
    cuda_capture *next;
};
/* Code 900 if a capture forbids calls that wait or allocate; the capture is then invalid. */
CUresult capture_check_unsafe(void);
/* Code 906 if work on the legacy stream would wait for a capturing stream. */
CUresult capture_check_legacy(CUcontext context);
bool capture_blocks_legacy(CUcontext context); /* only a query */
CUresult capture_add(CUstream stream, const cuda_work *work, CUgraphNode *node);
CUresult capture_record(CUstream stream, CUevent event);
CUresult capture_wait(CUstream stream, CUevent event);
CUresult capture_check_event(CUevent event); /* code 907 */
CUresult capture_refuse(CUstream stream);    /* 900 if the stream is capturing */
/* Called when a stream is destroyed: a capture that began in it ends, one that was forked into it
 * continues. */
void capture_forget_stream(CUstream stream);
bool capture_alive(const cuda_capture *capture, uint64_t id);
void captures_clear(void);

/* ---- Graphs (graph.c) ---- */

struct CUgraphNode_st {
    CUgraph graph;
    cuda_work work;
    bool disabled;
    CUgraphNode *needs; /* its dependencies, and the data of their edges */
    CUgraphEdgeData *edges;
    size_t n_needs, need_capacity;
    CUgraphNode original; /* of a clone: the node that it was cloned from */
    uint64_t original_id;
    size_t index;
    size_t checked; /* the last check of a list of nodes that it was in */
};
struct CUgraph_st {
    CUgraphNode *nodes; /* in the order they were added */
    size_t n_nodes, capacity;
    size_t total;    /* nodes, with those of child graphs */
    int nesting;     /* the most child graphs that were in each other */
    size_t n_checks; /* of lists of nodes */
    CUgraph original;
    CUgraph parent; /* of a child node: the graph of that node */
    bool capturing;
    graph_user_object *users;
    size_t n_users;
};
struct CUgraphExec_st {
    CUgraph graph;      /* a private clone */
    CUgraphNode *order; /* topological order of its nodes */
    unsigned long long flags;
    CUcontext context;
};

CUgraph graph_new(void);
void graph_delete(CUgraph graph);
CUgraph graph_clone(CUgraph graph);
/* Takes ownership of the work, even on failure. */
CUresult graph_add(CUgraph graph, const CUgraphNode *needs, size_t n, cuda_work *work, CUgraphNode *node);
/* Whether a node with that work may be added, in place of `replaced` nodes. */
CUresult graph_check_room(CUgraph graph, const cuda_work *work, size_t replaced);
/* Adds a node's work to the sizes of its graph and of those around it, or takes it away. */
void graph_count(CUgraph graph, const cuda_work *work, bool added);
CUresult graph_add_edges(CUgraph graph, const CUgraphNode *needs, const CUgraphEdgeData *edges, size_t n,
                         cuda_work *work, CUgraphNode *node); /* edges: null: plain ones */
extern const CUgraphEdgeData graph_programmatic_edge;
CUresult node_add_need(CUgraphNode node, CUgraphNode need, const CUgraphEdgeData *edge); /* null: plain */
void node_remove_need(CUgraphNode node, CUgraphNode need);
/* Whether a node may begin before the one that was submitted last has ended. */
bool node_may_overlap(CUgraphNode node, CUgraphNode previous);
CUresult edge_check(CUgraphNode from, int to_type, const CUgraphEdgeData *edge);
bool node_depends(CUgraphNode node, CUgraphNode on);
/* The nodes in topological order; null if there is a cycle. */
CUgraphNode *graph_order(CUgraph graph);
void user_object_release(CUuserObject object, unsigned count);
/* Lists of user objects, each with a number of references. */
CUresult user_objects_copy(const graph_user_object *from, size_t n, graph_user_object **to);
void user_objects_release(graph_user_object *users, size_t n); /* and frees the list */

/* ---- Pools (pool.c) ---- */

struct CUmemPoolHandle_st {
    CUmemPoolProps props;
    int device;
    bool is_default;
    int reuse[3];
    uint64_t threshold, used, used_high;
    uint8_t access[CUDA_MAX_DEVICES];
};
CUmemoryPool pool_new(int device);
CUresult pool_alloc(CUmemoryPool pool, CUcontext context, size_t bytes, CUdeviceptr *address);
CUresult pool_free(CUdeviceptr address);

/* ---- The table ---- */

#define do_cuCtxCreate                do_cuCtxCreate_v2 /* the same interface under an older name */
#define do_cuCtxDestroy               do_cuCtxDestroy_v2
#define do_cuCtxPopCurrent            do_cuCtxPopCurrent_v2
#define do_cuCtxPushCurrent           do_cuCtxPushCurrent_v2
#define do_cuDevicePrimaryCtxRelease  do_cuDevicePrimaryCtxRelease_v2
#define do_cuDevicePrimaryCtxReset    do_cuDevicePrimaryCtxReset_v2
#define do_cuDevicePrimaryCtxSetFlags do_cuDevicePrimaryCtxSetFlags_v2
#define do_cuDeviceGetUuid            do_cuDeviceGetUuid_v2
#define do_cuEventDestroy             do_cuEventDestroy_v2
#define do_cuStreamDestroy            do_cuStreamDestroy_v2
#define do_cuEventElapsedTime         do_cuEventElapsedTime_v2
#define do_cuMemHostRegister          do_cuMemHostRegister_v2
#define do_cuLinkCreate               do_cuLinkCreate_v2
#define do_cuLinkAddData              do_cuLinkAddData_v2
#define do_cuLinkAddFile              do_cuLinkAddFile_v2
#define do_cuStreamWaitValue32        do_cuStreamWaitValue32_v2
#define do_cuStreamWaitValue64        do_cuStreamWaitValue64_v2
#define do_cuStreamWriteValue32       do_cuStreamWriteValue32_v2
#define do_cuStreamWriteValue64       do_cuStreamWriteValue64_v2
#define do_cuStreamBatchMemOp         do_cuStreamBatchMemOp_v2
#define do_cuGraphInstantiate_v2      do_cuGraphInstantiate
#define do_cuMemcpy2DUnaligned_v2     do_cuMemcpy2D_v2

/* The implementations, called with the lock held: do_cuNAME. The entry points, which take the lock:
 * ptxvm_cuNAME. */
#define F(base, v, since, needs, params, args)                                                               \
    CUresult do_##base##v params;                                                                            \
    CUresult ptxvm_##base##v params;
#define S(base, v, pt, since, needs, params, args)                                                           \
    CUresult do_##base##v params;                                                                            \
    CUresult ptxvm_##base##v params;                                                                         \
    CUresult ptxvm_##base##v##_##pt params;
#define U(base, v, since)      CUresult ptxvm_##base##v(void);
#define UP(base, v, pt, since) CUresult ptxvm_##base##v(void), ptxvm_##base##v##_##pt(void);
#include "functions.def"
#undef F
#undef S
#undef U
#undef UP

/* A number for each function, for faults and messages. */
enum {
#define F(base, v, since, needs, params, args)     FN_##base##v,
#define S(base, v, pt, since, needs, params, args) FN_##base##v,
#define U(base, v, since)                          FN_##base##v,
#define UP(base, v, pt, since)                     FN_##base##v,
#include "functions.def"
#undef F
#undef S
#undef U
#undef UP
    FN_COUNT
};
extern const char *const cuda_function_names[FN_COUNT];

#endif
