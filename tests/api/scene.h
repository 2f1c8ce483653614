/* A program that uses the whole public API, as a list of steps: tests run it with something failing at each
 * of them. */
#ifndef QDNN_TEST_API_SCENE_H
#define QDNN_TEST_API_SCENE_H

#include <qdnn/qdnn.h>

#include "test.h"

/* Skips a test where there is nothing to run it on. */
#ifdef QDNN_PTXVM
#define NEED_PTXVM
#else
#define NEED_PTXVM SKIP("this build has no ptxvm in it")
#endif

/* Handles of this test are on a fresh ptxvm; nothing is set in the environment except what the settings say
 * ("PTXVM_SM=sm_80 ...", or null). */
void vm_begin(const char *settings);
void vm_end(void);

/* Creates a handle, a tensor of one f32, and a quantization at its defaults; destroys them. */
bool basics_create(qdnnHandle_t *handle, qdnnTensorDescriptor_t *tensor, qdnnQuantDescriptor_t *quant);
void basics_destroy(qdnnHandle_t handle, qdnnTensorDescriptor_t tensor, qdnnQuantDescriptor_t quant);

/* What is quantized, and how. */
typedef struct scene_kind {
    const char *name;
    qdnnDataType_t storage;
    qdnnZeroKind_t zero_kind;
    qdnnDataType_t data;
    qdnnScaleType_t scale;
    qdnnGranularity_t granularity;
    int64_t extent; /* as qdnnSetQuantDescriptor takes it */
    int64_t n;
} scene_kind;

extern const scene_kind scene_kinds[];
int scene_kind_count(void);
void scene_kind_name(int index, char *text, size_t size);
enum { SCENE_INT4, SCENE_NF4, SCENE_ZERO_POINT, SCENE_TENSOR /* its scales need a workspace */ };

enum {
    SCENE_WORKSPACE = QDNN_OPERAND_COUNT,
    SCENE_BUFFERS,
    SCENE_ROUNDS = 2, /* by plans, by one-shot calls */
    SCENE_PLANS = 11,
    SCENE_KV = 8 /* elements of the token that goes into a cache of one slot: 4 bytes of codes, an f32 */
};

typedef struct scene {
    const scene_kind *kind;
    const char *device; /* as qdnnCreateOn takes it */
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t tensor;
    qdnnQuantDescriptor_t quant;
    qdnnTrainDescriptor_t train;
    qdnnIntegerDescriptor_t integer;
    qdnnPlan_t
        plans[SCENE_PLANS]; /* scale, quantize, dequantize; LSQ and an integer product, which are made and not
                                      executed; a token into a cache of keys and values */
    qdnnSchedule_t schedule; /* dequantize, once more */
    qdnnProgram_t program;   /* and again, from a copy of the scales in its arena */
    int program_tensors[QDNN_OPERAND_COUNT + 1];
    void *arena;
    size_t arena_bytes;
    qdnnDeviceInfo_t info;
    size_t bytes[SCENE_BUFFERS];
    void *buffers[SCENE_BUFFERS];          /* of the device, by their operand */
    uint8_t *expected[QDNN_OPERAND_COUNT]; /* by host_ref */
    uint8_t *got[SCENE_ROUNDS][QDNN_OPERAND_COUNT];
    uint8_t kv_expected[SCENE_KV], kv_got[SCENE_KV]; /* the cache: codes, then the scale */
} scene;

typedef struct scene_step {
    const char *name;
    qdnnStatus_t (*run)(scene *s, int which);
    int which;
    enum { ON_HOST, ON_DEVICE, ON_CREATE, ON_DESTROY } place; /* ON_DEVICE: fails with a dead handle */
} scene_step;

extern const scene_step scene_steps[];
extern const int scene_step_count;

/* Makes the data and the expected results from the seed; scene_end frees them. */
void scene_begin(scene *s, const scene_kind *kind, const char *device, uint32_t seed);
void scene_end(scene *s);

/* Runs a step, which must succeed. */
bool scene_run(scene *s, const scene_step *step);
/* Runs the whole scene, which must succeed and give the right bits; the thread-safe form reports nothing and
 * returns whether it did. */
void scene_play(const scene_kind *kind, const char *device, uint32_t seed);
bool scene_plays(const scene_kind *kind, const char *device, uint32_t seed);
/* Runs it until buffers and plans exist and nothing has been executed; the second function frees them. False:
 * a failure was reported. */
bool scene_open(scene *s, const scene_kind *kind, const char *device);
void scene_close(scene *s);
/* The step of that name, which must succeed. */
bool scene_step_run(scene *s, const char *name);
/* Compares all results. */
void scene_compare(const scene *s);

/* How many buffers of the device the scene holds now. */
int scene_held(const scene *s);

/* The thread's last error message. */
const char *last_sentence(void);
/* A status by name, so that a failure can be read. */
#define CHECK_STATUS_IS(call, expected) CHECK_EQ_STR(qdnnGetErrorString(call), qdnnGetErrorString(expected))
#define OK(call)                        CHECK_STATUS_IS(call, QDNN_STATUS_SUCCESS)

#endif
