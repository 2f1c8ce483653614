/* Programs whose steps are fused when they are compiled, against the same plans executed one after another: every byte of
 * every external tensor, for every number of rows; and what is not fused, because others read what is between, or because
 * no kernel would give the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/row_case.h"
#include "device/under_test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_90", "sm_120"};

#define F32  QDNN_DATA_F32
#define F16  QDNN_DATA_F16
#define BF16 QDNN_DATA_BF16
#define I32  QDNN_DATA_I32
#define U8   QDNN_DATA_U8

enum { ROWS = 5, TENSORS_MAX = 16, STEPS_MAX = 6, BOUND_MAX = 10 };

typedef struct tensor {
    qdnnDataType_t type;
    qdnnProgramPlace_t place;
    bool by_rows;
    size_t bytes;
    uint8_t *host; /* what is in it before */
} tensor;

typedef struct step {
    qdnnPlan_t plan;
    int per_row, count;
    qdnnProgramBinding_t bound[BOUND_MAX];
} step;

/* A list of plans on tensors, to be run either way. */
typedef struct model {
    qdnnHandle_t handle;
    tensor tensors[TENSORS_MAX];
    int n_tensors;
    step steps[STEPS_MAX];
    int n_steps;
    bool ok;
} model;

static size_t size_of(qdnnDataType_t type)
{
    return type == U8 ? 1 : type == I32 ? 4 : (size_t)ref_scalar_size(type);
}

static qdnnTensorDescriptor_t describe(qdnnDataType_t type, int rank, const int64_t *dims,
                                       const int64_t *strides)
{
    qdnnTensorDescriptor_t made = NULL;
    CHECK_QDNN(qdnnCreateTensorDescriptor(&made));
    CHECK_QDNN(qdnnSetTensorDescriptor(made, type, rank, dims, strides));
    return made;
}

/* A tensor of random numbers, [rows, columns] or, not by rows, [columns]. */
static int add(model *m, qdnnDataType_t type, qdnnProgramPlace_t place, bool by_rows, int64_t columns)
{
    tensor *t = &m->tensors[m->n_tensors];
    const int64_t count = (by_rows ? ROWS : 1) * columns;
    *t = (tensor){type, place, by_rows, (size_t)count * size_of(type), NULL};
    t->host = calloc(t->bytes + 1, 1);
    m->ok = m->ok && t->host;
    if (t->host && type != U8 && type != I32)
        row_fill(type, t->host, count, 7 + (uint64_t)m->n_tensors, false);
    return m->n_tensors++;
}

static int external(model *m, qdnnDataType_t type, int64_t columns)
{
    return add(m, type, QDNN_PROGRAM_EXTERNAL, true, columns);
}

static int between(model *m, qdnnDataType_t type, int64_t columns)
{
    return add(m, type, QDNN_PROGRAM_INTERMEDIATE, true, columns);
}

static int constant(model *m, qdnnDataType_t type, int64_t columns)
{
    return add(m, type, QDNN_PROGRAM_EXTERNAL, false, columns);
}

static void set_numbers(model *m, int tensor, const int32_t *numbers, int count)
{
    if (m->tensors[tensor].host)
        memcpy(m->tensors[tensor].host, numbers, (size_t)count * sizeof *numbers);
}

static step *add_step(model *m, qdnnPlan_t plan, int per_row)
{
    m->ok = m->ok && plan;
    m->steps[m->n_steps] = (step){.plan = plan, .per_row = per_row};
    return &m->steps[m->n_steps++];
}

static void bind_at(step *s, qdnnOperand_t operand, int tensor, size_t offset)
{
    s->bound[s->count++] = (qdnnProgramBinding_t){operand, tensor, offset};
}

static void bind(step *s, qdnnOperand_t operand, int tensor)
{
    bind_at(s, operand, tensor, 0);
}

/* ---- Plans ---- */

static step *add_pointwise(model *m, const qdnnPointwise_t *p, qdnnDataType_t x, qdnnDataType_t y,
                           int64_t columns, row_behind behind)
{
    const int64_t in[] = {ROWS, p->second >= QDNN_SECOND_LAST_HALF ? 2 * columns : columns},
                  out[] = {ROWS, columns};
    qdnnTensorDescriptor_t x_desc = describe(x, 2, in, NULL), y_desc = describe(y, 2, out, NULL);
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    row_behind_make(behind, columns, &quant);
    CHECK_QDNN(qdnnCreatePointwisePlan(m->handle, p, x_desc, NULL, y_desc, quant, &plan));
    qdnnDestroyTensorDescriptor(x_desc);
    qdnnDestroyTensorDescriptor(y_desc);
    qdnnDestroyQuantDescriptor(quant);
    return add_step(m, plan, 1);
}

static void add_sum(model *m, int a, int b, int sum, int64_t columns)
{
    const qdnnPointwise_t p = {.size = sizeof p,
                               .kind = QDNN_POINTWISE_ADD,
                               .second = QDNN_SECOND_TENSOR,
                               .secondType = m->tensors[b].type};
    step *s = add_pointwise(m, &p, m->tensors[a].type, m->tensors[sum].type, columns, BEHIND_NOTHING);
    bind(s, QDNN_OPERAND_X, a);
    bind(s, QDNN_OPERAND_B, b);
    bind(s, QDNN_OPERAND_Y, sum);
}

static void add_gated(model *m, int x, int y, int64_t columns)
{
    const qdnnPointwise_t p = {.size = sizeof p,
                               .kind = QDNN_POINTWISE_GATED,
                               .function = QDNN_ACTIVATION_SILU,
                               .second = QDNN_SECOND_LAST_HALF};
    step *s = add_pointwise(m, &p, m->tensors[x].type, m->tensors[y].type, columns, BEHIND_NOTHING);
    bind(s, QDNN_OPERAND_X, x);
    bind(s, QDNN_OPERAND_Y, y);
}

static void add_norm(model *m, qdnnNormKind_t kind, int x, int weight, int y, int64_t columns)
{
    const qdnnNorm_t norm = {
        .size = sizeof norm, .kind = kind, .eps = 1e-5f, .weightType = m->tensors[weight].type};
    const int64_t dims[] = {ROWS, columns};
    qdnnTensorDescriptor_t x_desc = describe(m->tensors[x].type, 2, dims, NULL),
                           y_desc = describe(m->tensors[y].type, 2, dims, NULL);
    qdnnPlan_t plan = NULL;
    CHECK_QDNN(qdnnCreateNormPlan(m->handle, &norm, x_desc, y_desc, NULL, &plan));
    qdnnDestroyTensorDescriptor(x_desc);
    qdnnDestroyTensorDescriptor(y_desc);
    step *s = add_step(m, plan, 1);
    bind(s, QDNN_OPERAND_X, x);
    bind(s, QDNN_OPERAND_WEIGHT, weight);
    bind(s, QDNN_OPERAND_Y, y);
}

/* Codes and scales of a quantized tensor, by rows. */
typedef struct codes {
    int codes, scale, global;
} codes;

static codes add_codes(model *m, row_behind behind, qdnnDataType_t type, int64_t columns)
{
    const int64_t dims[] = {ROWS, columns};
    qdnnQuantDescriptor_t quant = NULL;
    qdnnTensorDescriptor_t tensor = describe(type, 2, dims, NULL);
    size_t code_bytes = 0, scale_bytes = 0;
    row_behind_make(behind, columns, &quant);
    CHECK_QDNN(qdnnGetQuantizedSizes(quant, tensor, &code_bytes, &scale_bytes, NULL));
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(tensor);
    codes c = {external(m, U8, (int64_t)code_bytes / ROWS), external(m, U8, (int64_t)scale_bytes / ROWS), -1};
    if (behind == BEHIND_NVFP4) {
        const float number = 0.01f;
        c.global = constant(m, F32, 1);
        memcpy(m->tensors[c.global].host, &number, sizeof number);
    }
    return c;
}

static void bind_codes(step *s, int x, codes c)
{
    bind(s, QDNN_OPERAND_X, x);
    bind(s, QDNN_OPERAND_CODES, c.codes);
    bind(s, QDNN_OPERAND_SCALE, c.scale);
    if (c.global >= 0)
        bind(s, QDNN_OPERAND_GLOBAL_SCALE, c.global);
}

/* As an operation on rows that changes nothing, or as a plan of all rows. */
static void add_quantization(model *m, row_behind behind, bool whole, int x, codes c, int64_t columns)
{
    const qdnnPointwise_t p = {
        .size = sizeof p, .kind = QDNN_POINTWISE_FUNCTION, .function = QDNN_ACTIVATION_NONE};
    const qdnnDataType_t type = m->tensors[x].type;
    if (!whole) {
        bind_codes(add_pointwise(m, &p, type, type, columns, behind), x, c);
        return;
    }
    const int64_t dims[] = {ROWS, columns};
    qdnnTensorDescriptor_t tensor = describe(type, 2, dims, NULL);
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    row_behind_make(behind, columns, &quant);
    CHECK_QDNN(qdnnCreateDynamicQuantizePlan(m->handle, tensor, quant, &plan));
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
    bind_codes(add_step(m, plan, 0), x, c);
}

/* ---- Rope and caches ---- */

enum { HEAD = 32, QUERIES = 4, KV_HEADS = 2, TOKEN = (QUERIES + 2 * KV_HEADS) * HEAD, POSITIONS = 16 };
enum { PAGES = 4, PAGE_SLOTS = 4, SLOTS = PAGES * PAGE_SLOTS };

typedef struct rope_tensors {
    int x, y, between, cos, sin, position, slots, keys, values, key_scale, value_scale;
} rope_tensors;

static rope_tensors add_rope_tensors(model *m, qdnnDataType_t type, bool int8)
{
    const int64_t cache = SLOTS * KV_HEADS * HEAD;
    const qdnnDataType_t stored = int8 ? U8 : type;
    rope_tensors t = {.x = external(m, type, TOKEN),
                      .y = external(m, type, QUERIES * HEAD),
                      .between = between(m, type, KV_HEADS * HEAD),
                      .cos = constant(m, F32, POSITIONS * HEAD / 2),
                      .sin = constant(m, F32, POSITIONS * HEAD / 2),
                      .position = external(m, I32, 1),
                      .slots = external(m, I32, 1),
                      .keys = constant(m, stored, cache),
                      .values = constant(m, stored, cache),
                      .key_scale = -1,
                      .value_scale = -1};
    if (int8) {
        t.key_scale = constant(m, U8, SLOTS * KV_HEADS * 4);
        t.value_scale = constant(m, U8, SLOTS * KV_HEADS * 4);
    }
    set_numbers(m, t.position, (const int32_t[ROWS]){3, 0, 15, 7, 1}, ROWS);
    set_numbers(m, t.slots, (const int32_t[ROWS]){5, 0, 15, 2, 9}, ROWS);
    return t;
}

/* A rope plan of a part of each token: queries to y, or keys or values to a cache. */
static step *add_rope(model *m, const rope_tensors *t, bool rotates, int x, int from, int heads, int y,
                      int keys, int values)
{
    const qdnnDataType_t type = m->tensors[t->x].type;
    const qdnnRope_t rope = {
        .size = sizeof rope, .rotary = rotates ? HEAD : 0, .positions = rotates ? POSITIONS : 0};
    const bool is_whole = x == t->x;
    const int64_t in[] = {ROWS, heads * HEAD}, strides[] = {is_whole ? TOKEN : heads * HEAD, 1},
                  out[] = {ROWS, heads, HEAD};
    qdnnTensorDescriptor_t x_desc = describe(type, 2, in, strides), y_desc = describe(type, 3, out, NULL);
    qdnnQuantDescriptor_t quant = NULL;
    qdnnKvCache_t cache = {.size = sizeof cache,
                           .pages = PAGES,
                           .pageSlots = PAGE_SLOTS,
                           .heads = KV_HEADS,
                           .headSize = HEAD,
                           .type = t->key_scale < 0 ? type : 0};
    if (t->key_scale >= 0) {
        CHECK_QDNN(qdnnCreateQuantDescriptor(&quant));
        CHECK_QDNN(qdnnSetQuantDescriptor(quant, QDNN_DATA_I8, QDNN_GRANULARITY_GROUP, HEAD));
        cache.quant = quant;
    }
    qdnnPlan_t plan = NULL;
    CHECK_QDNN(qdnnCreateRopePlan(m->handle, &rope, x_desc, y >= 0 ? y_desc : NULL, keys >= 0 ? &cache : NULL,
                                  values >= 0 ? &cache : NULL, &plan));
    qdnnDestroyQuantDescriptor(quant);
    qdnnDestroyTensorDescriptor(x_desc);
    qdnnDestroyTensorDescriptor(y_desc);
    step *s = add_step(m, plan, 1);
    bind_at(s, QDNN_OPERAND_X, x, (size_t)(from * HEAD) * size_of(type));
    const struct {
        qdnnOperand_t operand;
        int tensor;
    } others[] = {{QDNN_OPERAND_Y, y},
                  {QDNN_OPERAND_COS, rotates ? t->cos : -1},
                  {QDNN_OPERAND_SIN, rotates ? t->sin : -1},
                  {QDNN_OPERAND_POSITION, rotates ? t->position : -1},
                  {QDNN_OPERAND_KEYS, keys},
                  {QDNN_OPERAND_VALUES, values},
                  {QDNN_OPERAND_KEY_SCALE, keys >= 0 ? t->key_scale : -1},
                  {QDNN_OPERAND_VALUE_SCALE, values >= 0 ? t->value_scale : -1},
                  {QDNN_OPERAND_ROW_INDEX, keys >= 0 || values >= 0 ? t->slots : -1}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].tensor >= 0)
            bind(s, others[i].operand, others[i].tensor);
    return s;
}

/* ---- Running it, either way ---- */

typedef struct result {
    uint8_t *bytes[TENSORS_MAX];
} result;

static void free_result(result *r)
{
    for (int i = 0; i < TENSORS_MAX; i++)
        free(r->bytes[i]);
}

static bool make_buffers(const model *m, device_buffer *buffers)
{
    bool made = true;
    for (int i = 0; i < m->n_tensors && made; i++)
        made = device_buffer_make(m->handle, BUFFER_BANDS, m->tensors[i].bytes, 0, &buffers[i]) &&
               device_buffer_write(&buffers[i], m->tensors[i].host);
    return made;
}

static bool take_results(const model *m, device_buffer *buffers, result *r)
{
    bool taken = true;
    for (int i = 0; i < m->n_tensors; i++) {
        const tensor *t = &m->tensors[i];
        if (t->place == QDNN_PROGRAM_EXTERNAL && (r->bytes[i] = malloc(t->bytes + 1)))
            taken =
                CHECK_QDNN(qdnnCopyToHost(m->handle, r->bytes[i], device_buffer_at(&buffers[i]), t->bytes)) &&
                taken;
        device_buffer_free(&buffers[i]);
    }
    return taken;
}

static bool by_plans(const model *m, int64_t rows, result *r)
{
    device_buffer buffers[TENSORS_MAX] = {0}, workspace = {0};
    bool ran = make_buffers(m, buffers);
    for (int i = 0; i < m->n_steps && ran; i++) {
        const step *s = &m->steps[i];
        qdnnBinding_t bound[BOUND_MAX];
        size_t bytes = 0;
        for (int k = 0; k < s->count; k++)
            bound[k] = (qdnnBinding_t){
                s->bound[k].operand,
                (char *)device_buffer_at(&buffers[s->bound[k].tensor]) + s->bound[k].offset, 0};
        CHECK_QDNN(qdnnGetPlanWorkspaceSize(s->plan, &bytes));
        ran = device_buffer_make(m->handle, BUFFER_EXACT, bytes, 0, &workspace) &&
              CHECK_QDNN(s->per_row ? qdnnExecuteRows(m->handle, s->plan, rows, bound, s->count,
                                                      device_buffer_at(&workspace), bytes)
                                    : qdnnExecute(m->handle, s->plan, bound, s->count,
                                                  device_buffer_at(&workspace), bytes));
        device_buffer_free(&workspace);
    }
    return take_results(m, buffers, r) && ran;
}

static qdnnProgram_t make_program(const model *m)
{
    qdnnProgram_t program = NULL;
    char name[16];
    int number;
    CHECK_QDNN(qdnnCreateProgram(m->handle, ROWS, &program));
    for (int i = 0; i < m->n_tensors; i++) {
        const tensor *t = &m->tensors[i];
        const int64_t count = (int64_t)(t->bytes / size_of(t->type)),
                      dims[] = {t->by_rows ? ROWS : 1, t->by_rows ? count / ROWS : count};
        qdnnTensorDescriptor_t shape = describe(t->type, 2, dims, NULL);
        snprintf(name, sizeof name, "t%d", i);
        CHECK_QDNN(qdnnAddTensorToProgram(program, name, t->place, shape, t->by_rows, &number));
        qdnnDestroyTensorDescriptor(shape);
    }
    for (int i = 0; i < m->n_steps; i++) {
        snprintf(name, sizeof name, "s%d", i);
        CHECK_QDNN(qdnnAddPlanToProgram(program, name, m->steps[i].plan, m->steps[i].per_row,
                                        m->steps[i].bound, m->steps[i].count));
    }
    CHECK_QDNN(qdnnCompileProgram(program));
    return program;
}

static bool by_program(const model *m, qdnnProgram_t program, int64_t rows, result *r)
{
    device_buffer buffers[TENSORS_MAX] = {0}, arena = {0};
    const void *pointers[TENSORS_MAX];
    qdnnProgramInfo_t info = {.size = sizeof info};
    CHECK_QDNN(qdnnGetProgramInfo(program, &info));
    bool ran =
        make_buffers(m, buffers) && device_buffer_make(m->handle, BUFFER_BANDS, info.arenaBytes, 0, &arena);
    for (int i = 0; i < m->n_tensors; i++)
        pointers[i] = device_buffer_at(&buffers[i]);
    ran = ran && CHECK_QDNN(qdnnRunProgram(m->handle, program, pointers, m->n_tensors, rows,
                                           device_buffer_at(&arena), info.arenaBytes));
    device_buffer_free(&arena);
    return take_results(m, buffers, r) && ran;
}

static void compare(const model *m, int64_t rows, const result *expected, const result *actual)
{
    for (int i = 0; i < m->n_tensors; i++)
        if (expected->bytes[i] && actual->bytes[i] &&
            memcmp(expected->bytes[i], actual->bytes[i], m->tensors[i].bytes) != 0)
            FAIL("%lld rows: tensor %d differs from that of the plans", (long long)rows, i);
}

/* Runs the model both ways; the program must have that many steps. */
static void check(model *m, int steps)
{
    qdnnProgram_t program = m->ok ? make_program(m) : NULL;
    qdnnProgramInfo_t info = {.size = sizeof info};
    if (program && CHECK_QDNN(qdnnGetProgramInfo(program, &info))) {
        CHECK_EQ_I64(info.steps, steps);
        CHECK_EQ_I64(info.fused, m->n_steps - steps);
        for (int64_t rows = 0; rows <= ROWS; rows++) {
            result expected = {0}, actual = {0};
            if (by_plans(m, rows, &expected) && by_program(m, program, rows, &actual))
                compare(m, rows, &expected, &actual);
            free_result(&expected);
            free_result(&actual);
        }
    }
    qdnnDestroyProgram(program);
    for (int i = 0; i < m->n_steps; i++)
        qdnnDestroyPlan(m->steps[i].plan);
    for (int i = 0; i < m->n_tensors; i++)
        free(m->tensors[i].host);
}

/* ---- What is fused ---- */

/* x + residual, the norm of it, quantized; and the sum is external, and read by a step behind. */
typedef struct sum_case {
    const char *name;
    qdnnDataType_t a, b, sum, y;
    qdnnNormKind_t kind;
    int64_t columns;
    row_behind behind;
    bool whole; /* the quantization is a plan of all rows, which is not a step by rows: it stays apart */
    int steps;
} sum_case;

static const sum_case sums[] = {
    {"Rms", F16, F32, F32, F16, QDNN_NORM_RMS, 96, BEHIND_NOTHING, false, 1},
    {"ResidualFirst", F32, F16, F32, BF16, QDNN_NORM_RMS, 33, BEHIND_NOTHING, false, 1},
    {"Layer", BF16, BF16, BF16, F32, QDNN_NORM_LAYER, 576, BEHIND_NOTHING, false, 1},
    {"ThenInt8", F16, F32, F32, F16, QDNN_NORM_RMS, 128, BEHIND_INT8, false, 1},
    {"ThenNvfp4", F32, F32, F32, BF16, QDNN_NORM_LAYER, 256, BEHIND_NVFP4, false, 1},
    {"ThenFp8Of128", BF16, BF16, BF16, BF16, QDNN_NORM_RMS, 256, BEHIND_FP8_128, false, 1},
    {"ThenAllRows", F16, F16, F16, F16, QDNN_NORM_RMS, 64, BEHIND_FP8, true, 2},
    /* No kernel rounds the sum to a type of which neither summand is. */
    {"AnotherType", F16, F16, F32, F16, QDNN_NORM_RMS, 64, BEHIND_NOTHING, false, 2},
};

DEVICE_ROWS(ParityFusing, Sums, sums)
{
    const sum_case *c = &sums[index];
    model m = {.handle = device_begin(sms[index % 4], index, "all"), .ok = true};
    if (m.handle) {
        const int a = external(&m, c->a, c->columns), b = external(&m, c->b, c->columns),
                  sum = external(&m, c->sum, c->columns), weight = constant(&m, F32, c->columns),
                  y = c->behind ? between(&m, c->y, c->columns) : external(&m, c->y, c->columns);
        if (c->whole) /* a step that is not by rows reads all of it */
            m.tensors[y].place = QDNN_PROGRAM_EXTERNAL;
        add_sum(&m, a, b, sum, c->columns);
        add_norm(&m, c->kind, sum, weight, y, c->columns);
        if (c->behind)
            add_quantization(&m, c->behind, c->whole, y, add_codes(&m, c->behind, c->y, c->columns),
                             c->columns);
        check(&m, c->steps);
    }
    device_end(m.handle);
}

typedef struct gated_case {
    const char *name;
    qdnnDataType_t x, y;
    int64_t columns;
    row_behind behind;
} gated_case;

static const gated_case gates[] = {
    {"Int8", F16, F16, 64, BEHIND_INT8},     {"Fp8", BF16, F32, 96, BEHIND_FP8},
    {"Nvfp4", F32, BF16, 128, BEHIND_NVFP4}, {"Mxfp8", BF16, BF16, 64, BEHIND_MXFP8},
    {"Int4", F32, F32, 192, BEHIND_INT4},
};

DEVICE_ROWS(ParityFusing, Gates, gates)
{
    const gated_case *c = &gates[index];
    model m = {.handle = device_begin(sms[index % 4], index, "all"), .ok = true};
    if (m.handle) {
        const int x = external(&m, c->x, 2 * c->columns), y = between(&m, c->y, c->columns);
        add_gated(&m, x, y, c->columns);
        add_quantization(&m, c->behind, false, y, add_codes(&m, c->behind, c->y, c->columns), c->columns);
        check(&m, 1);
    }
    device_end(m.handle);
}

/* Steps that are not by rows, of a plan that quantizes all rows: both compute all of them in each run. */
DEVICE_CASE(ParityFusing, AllRows)
{
    enum { COLUMNS = 64 };
    model m = {.handle = device_begin("sm_89", 3, "all"), .ok = true};
    if (m.handle) {
        const int x = external(&m, F16, 2 * COLUMNS), y = between(&m, F16, COLUMNS);
        add_gated(&m, x, y, COLUMNS);
        m.steps[0].per_row = 0;
        add_quantization(&m, BEHIND_INT8, true, y, add_codes(&m, BEHIND_INT8, F16, COLUMNS), COLUMNS);
        check(&m, 1);
    }
    device_end(m.handle);
}

static const char *const caches[] = {"F16", "Bf16", "F32", "Int8"};
static int count_caches(void)
{
    return (int)(sizeof caches / sizeof caches[0]);
}
static void name_cache(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", caches[index]);
}

/* Rope of queries and of keys, keys into the cache, values into the cache: one kernel. */
DEVICE_EACH(ParityFusing, RopeAndCaches, count_caches, name_cache)
{
    static const qdnnDataType_t types[] = {F16, BF16, F32, F16};
    model m = {.handle = device_begin(sms[index], index, "all"), .ok = true};
    if (m.handle) {
        const rope_tensors t = add_rope_tensors(&m, types[index], index == 3);
        add_rope(&m, &t, true, t.x, 0, QUERIES, t.y, -1, -1);
        add_rope(&m, &t, true, t.x, QUERIES, KV_HEADS, t.between, -1, -1);
        add_rope(&m, &t, false, t.between, 0, KV_HEADS, -1, t.keys, -1);
        add_rope(&m, &t, false, t.x, QUERIES + KV_HEADS, KV_HEADS, -1, -1, t.values);
        check(&m, 1);
    }
    device_end(m.handle);
}

/* ---- What is not ---- */

DEVICE_CASE(ParityFusing, WhatOthersReadStays)
{
    enum { COLUMNS = 64 };
    for (int external_y = 0; external_y < 2; external_y++) {
        model m = {.handle = device_begin("sm_80", 5, "all"), .ok = true};
        if (m.handle) {
            const int x = external(&m, F16, COLUMNS), weight = constant(&m, F16, COLUMNS),
                      y = external_y ? external(&m, F16, COLUMNS) : between(&m, F16, COLUMNS),
                      sum = external(&m, F16, COLUMNS);
            add_norm(&m, QDNN_NORM_RMS, x, weight, y, COLUMNS);
            add_quantization(&m, BEHIND_INT8, false, y, add_codes(&m, BEHIND_INT8, F16, COLUMNS), COLUMNS);
            if (!external_y)
                add_sum(&m, y, x, sum, COLUMNS);
            check(&m, external_y ? 2 : 3);
        }
        device_end(m.handle);
    }
}

/* A second step that writes what the first reads: one kernel may do so only to the residual, whose elements the threads read that
 * write them. */
DEVICE_CASE(ParityFusing, WhatIsWrittenBackStays)
{
    enum { COLUMNS = 64 };
    for (int is_residual = 0; is_residual < 2; is_residual++) {
        model m = {.handle = device_begin("sm_90", 6, "all"), .ok = true};
        if (m.handle) {
            const int a = external(&m, F16, COLUMNS), b = external(&m, F32, COLUMNS),
                      sum = between(&m, F32, COLUMNS), weight = constant(&m, F16, COLUMNS);
            add_sum(&m, a, b, sum, COLUMNS);
            add_norm(&m, QDNN_NORM_RMS, sum, weight, is_residual ? b : a, COLUMNS);
            check(&m, is_residual ? 1 : 2);
        }
        device_end(m.handle);
    }
}

/* Parts of a token that do not lie side by side, or are rotated by other tables. */
DEVICE_CASE(ParityFusing, RopeOfOtherPartsStays)
{
    for (int other_tables = 0; other_tables < 2; other_tables++) {
        model m = {.handle = device_begin("sm_75", 7, "all"), .ok = true};
        if (m.handle) {
            rope_tensors t = add_rope_tensors(&m, F16, false);
            const int from = other_tables ? QUERIES : QUERIES + KV_HEADS;
            add_rope(&m, &t, true, t.x, 0, QUERIES, t.y, -1, -1);
            if (other_tables)
                t.cos = constant(&m, F32, POSITIONS * HEAD / 2);
            add_rope(&m, &t, true, t.x, from, KV_HEADS, -1, t.keys, -1);
            check(&m, 2);
        }
        device_end(m.handle);
    }
}
