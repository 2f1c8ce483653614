/* The launcher of every operation name: written by ptxgen, compiled, run on ptxvm's libcuda.so.1, and compared with
 * host_ref. Sizes are small and ragged. */
#include "device/row_case.h"
#include "launchers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device/product_case.h"
#include "formats/ref_spec.h"
#include "kernels/formats/blocks.h"
#include "support/random.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { SEED = 25 };

/* ---- Data ---- */

static void take_over(launcher_case *c, int operand, const void *host, size_t bytes, bool is_output)
{
    memcpy(integer_buffer(&c->buffers, (qdnnOperand_t)operand, bytes, is_output), host, bytes);
}

/* How the specification's groups are called by descriptors. */
static void set_groups(quant_case *q)
{
    const bool blocks = kernel_format(q->row)->block != QDNN_BLOCK_NONE;
    q->granularity = blocks || q->spec.stored.groups == QDNN_GROUPS_DEFAULT ? QDNN_GRANULARITY_NONE
                     : q->spec.stored.channels == 1                         ? QDNN_GRANULARITY_TENSOR
                                                                            : QDNN_GRANULARITY_GROUP;
    q->extent = q->granularity == QDNN_GRANULARITY_GROUP ? (int64_t)q->spec.stored.group_size : 0;
}

/* A flat tensor. */
static bool quant_data(launcher_case *c)
{
    const int64_t block = (int64_t)kernel_columns_multiple(c->row), n = c->spec.stored.channels == 1 ? 20001
                                                                        : block > 1 ? 3 * block
                                                                                    : 301;
    quant_case q = {
        .row = c->row, .spec = c->spec, .rank = 1, .dims = {n}, .kind = DATA_NORMAL, .seed = SEED};
    quant_operands o;
    set_groups(&q);
    if (!quant_operands_make(&q, &o))
        return false;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if ((o.reads | o.writes) >> i & 1)
            take_over(c, i, o.host[i], o.bytes[i], o.writes >> i & 1);
    quant_operands_free(&o);
    c->problem.columns = (uint64_t)n;
    return true;
}

static bool product_data(launcher_case *c)
{
    const kernel_row *row = kernel_find_operation(KERNEL_DEQUANTIZE, c->row->format);
    const bool k_rows = c->spec.product.reduction == KERNEL_K_ROWS;
    const int64_t block = (int64_t)kernel_columns_multiple(c->row), k = block > 1 ? 2 * block : 141, n = 5;
    product_case p = {.weights = {.row = row ? row : c->row,
                                  .spec = c->spec,
                                  .rank = 2,
                                  .dims = {k_rows ? k : n, k_rows ? n : k},
                                  .kind = DATA_NORMAL,
                                  .seed = SEED},
                      .k_rows = k_rows,
                      .m = 3,
                      .rows = -1,
                      .x = QDNN_DATA_F32,
                      .y = QDNN_DATA_F32,
                      .bias = c->spec.epilogue.bias,
                      .kind = DATA_NORMAL,
                      .seed = SEED + 1};
    product_operands o;
    set_groups(&p.weights);
    if (!product_operands_make(&p, &o))
        return false;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (o.host[i] && i != QDNN_OPERAND_Y)
            take_over(c, i, o.host[i], o.bytes[i], false);
    take_over(c, QDNN_OPERAND_Y, o.expected, o.bytes[QDNN_OPERAND_Y], true);
    product_operands_free(&o);
    c->problem.rows = (uint64_t)p.weights.dims[0];
    c->problem.columns = (uint64_t)p.weights.dims[1];
    c->problem.m = (uint64_t)p.m;
    c->problem.x_stride = (uint64_t)k;
    c->problem.y_stride = (uint64_t)n;
    return true;
}

static void random_bytes(uint32_t seed, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)integer_random(&seed);
}

/* Any codes, moved. */
static bool moved_data(launcher_case *c)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    const ref_quant_spec ref = ref_spec_of(c->row, &c->spec);
    const int64_t rows = 19, columns = 2 * (int64_t)kernel_columns_multiple(c->row) +
                                       (kernel_columns_multiple(c->row) == 1) * 62;
    c->problem.rows = (uint64_t)rows;
    c->problem.columns = (uint64_t)columns;
    kernel_operands_of(c->row, KERNEL_NORMAL(c->row, &c->spec), &c->problem, operands);
    const size_t from = operands[QDNN_OPERAND_CODES].bytes, to = operands[QDNN_OPERAND_REPACKED].bytes;
    uint8_t *codes = integer_buffer(&c->buffers, QDNN_OPERAND_CODES, from, false);
    uint8_t *moved = integer_buffer(&c->buffers, QDNN_OPERAND_REPACKED, to, true);
    random_bytes(SEED, codes, from);
    if (kernel_operation_of(c->row) == KERNEL_PREPACK)
        ref_prepack(&ref, rows, columns, false, codes, moved);
    else
        ref_repack(&ref, &ref, rows, columns, codes, moved);
    return true;
}

static ref_train_spec train_spec(const kernel_spec *spec)
{
    return (ref_train_spec){.bits = spec->train.bits,
                            .group_size = (int64_t)spec->stored.group_size,
                            .channels = (int64_t)spec->stored.channels,
                            .rounding = spec->quantize.rounding,
                            .mode = spec->train.scale_mode,
                            .decay = spec->train.decay,
                            .backward = spec->train.backward,
                            .gradient_factor = spec->train.gradient_factor};
}

static bool train_data(launcher_case *c)
{
    const ref_train_spec ref = train_spec(&c->spec);
    const kernel_operation o = kernel_operation_of(c->row);
    const bool backward = o == KERNEL_FAKE_QUANTIZE_BACKWARD || o == KERNEL_LSQ_BACKWARD,
               lsq = o == KERNEL_LSQ || o == KERNEL_LSQ_BACKWARD;
    const int64_t n = c->spec.stored.group_size > 4096 ? 20001 : 301, groups = ref_train_groups(&ref, n);
    integer_buffers *b = &c->buffers;
    float *x = integer_buffer(b, QDNN_OPERAND_X, (size_t)n * 4, false), *scale = NULL, *dy = NULL;
    fill_data(DATA_NORMAL, NULL, QDNN_DATA_F32, SEED, x, n);
    if (lsq)
        scale = integer_buffer(b, QDNN_OPERAND_SCALE, (size_t)groups * 4, false);
    for (int64_t i = 0; scale && i < groups; i++)
        scale[i] = 0.01f + 0.003f * (float)i;
    if (backward)
        fill_data(DATA_NORMAL, NULL, QDNN_DATA_F32, SEED + 1,
                  dy = integer_buffer(b, QDNN_OPERAND_DY, (size_t)n * 4, false), n);
    float *out = integer_buffer(b, backward ? QDNN_OPERAND_DX : QDNN_OPERAND_Y, (size_t)n * 4, true);
    if (o == KERNEL_LSQ)
        ref_lsq(&ref, n, x, scale, out);
    else if (o == KERNEL_LSQ_BACKWARD)
        ref_lsq_backward(&ref, n, x, scale, dy, out,
                         integer_buffer(b, QDNN_OPERAND_DSCALE, (size_t)groups * 4, true));
    else if (backward)
        ref_fake_quantize_backward(&ref, n, x, NULL, dy, out);
    else
        ref_fake_quantize(&ref, n, x, NULL, out);
    c->problem.columns = (uint64_t)n;
    return true;
}

static void set_shape(launcher_case *c, int64_t m, int64_t n, int64_t k)
{
    c->problem.m = (uint64_t)m;
    c->problem.rows = (uint64_t)n;
    c->problem.columns = c->problem.x_stride = (uint64_t)k;
    c->problem.y_stride = (uint64_t)n;
}

static bool integer_data(launcher_case *c)
{
    const kernel_operation o = kernel_operation_of(c->row);
    const bool dot = o == KERNEL_INT4_DOT || o == KERNEL_INT4_DOT_SCALED;
    const kernel_spec s = kernel_spec_normal(c->row, &c->spec);
    const integer_case i = {.name = c->name,
                            .x = s.integer.x_codes,
                            .w = s.integer.w_codes,
                            .y = s.integer.result == QDNN_DATA_F32 ? s.epilogue.output : s.integer.result,
                            .m = dot ? 1 : 5,
                            .n = dot ? 1 : 11,
                            .k = 205,
                            .multiplier = 0.01f,
                            .rounding = s.quantize.rounding,
                            .group_size = (int64_t)s.stored.group_size,
                            .scale_type = s.stored.scale,
                            .w_first = s.integer.w_scale_first,
                            .fill = CODES_ANY,
                            .seed = SEED};
    integer_case_data(&i, &c->buffers);
    set_shape(c, i.m, i.n, i.k);
    c->problem.multiplier = i.multiplier;
    return true;
}

static bool top_data(launcher_case *c)
{
    const int64_t m = 5, n = *c->sizes ? 2051 : 43, k = *c->sizes ? 9 : 205,
                  top = kernel_operation_of(c->row) == KERNEL_INT4_TOP1 ? 1 : 7;
    const integer_case i = {.name = c->name,
                            .x = QDNN_DATA_I4,
                            .w = QDNN_DATA_I4,
                            .y = QDNN_DATA_F32,
                            .m = m,
                            .n = n,
                            .k = k,
                            .w_first = true,
                            .fill = CODES_ANY,
                            .seed = SEED};
    integer_buffers *b = &c->buffers;
    integer_case_data(&i, b);
    float *scores = b->host[QDNN_OPERAND_Y];
    b->host[QDNN_OPERAND_Y] = NULL;
    float *best = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(m * top) * 4, true);
    int32_t *places = integer_buffer(b, QDNN_OPERAND_TOP_INDEX, (size_t)(m * top) * 4, true);
    for (int64_t row = 0; row < m; row++)
        ref_top(n, scores + row * n, top, best + row * top, places + row * top);
    free(scores);
    set_shape(c, m, n, k);
    c->problem.top = (uint64_t)top;
    return true;
}

/* Depthwise by default; with 16 channels, those are moved next to each other first. */
static bool conv_data(launcher_case *c)
{
    const int64_t channels = c->spec.conv.window_c > 1 ? (int64_t)c->spec.conv.window_c : 3,
                  outputs = channels > 3 ? 9 : 6;
    const ref_conv_spec s = {.x = QDNN_DATA_I8,
                             .images = 2,
                             .channels = channels,
                             .height = 7,
                             .width = 5,
                             .outputs = outputs,
                             .groups = channels / (int64_t)c->spec.conv.window_c,
                             .window = {(int64_t)c->spec.conv.window_h, (int64_t)c->spec.conv.window_w},
                             .stride = {1, 1},
                             .dilation = {1, 1}};
    const ref_requantize_spec r = {
        .y = QDNN_DATA_I8, .multiplier = 0.02f, .rounding = c->spec.quantize.rounding};
    const int64_t out[2] = {s.height - s.window[0] + 1, s.width - s.window[1] + 1},
                  x = s.images * channels * s.height * s.width,
                  w = outputs * (int64_t)c->spec.conv.window_c * s.window[0] * s.window[1];
    integer_buffers *b = &c->buffers;
    integer_fill(CODES_ANY, QDNN_DATA_I8, SEED, 1, x, integer_buffer(b, QDNN_OPERAND_X, (size_t)x, false));
    integer_fill(CODES_ANY, QDNN_DATA_I8, SEED + 1, 1, w,
                 integer_buffer(b, QDNN_OPERAND_CODES, (size_t)w, false));
    void *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(s.images * outputs * out[0] * out[1]), true);
    ref_integer_conv2d(&s, &r, b->host[QDNN_OPERAND_X], b->host[QDNN_OPERAND_CODES], NULL, y);
    c->problem.multiplier = r.multiplier;
    c->problem.conv.images = (uint64_t)s.images;
    c->problem.conv.channels = (uint64_t)channels;
    c->problem.conv.outputs = (uint64_t)outputs;
    c->problem.conv.in[0] = (uint64_t)s.height;
    c->problem.conv.in[1] = (uint64_t)s.width;
    return true;
}

/* Rows of numbers from -3 to 3, some equal. */
static void fill_rows(int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 + SEED) % 97) * 0.0625f - 3.0f;
}

enum { SELECT_M = 5, SELECT_N = 1301, SELECT_TOP = 7 };

static bool softmax_data(launcher_case *c)
{
    const ref_softmax_spec spec = {QDNN_DATA_F32, QDNN_DATA_F32, 1.0f, QDNN_DATA_F32};
    const size_t bytes = SELECT_M * SELECT_N * sizeof(float);
    float *x = integer_buffer(&c->buffers, QDNN_OPERAND_X, bytes, false),
          *y = integer_buffer(&c->buffers, QDNN_OPERAND_Y, bytes, true);
    fill_rows(SELECT_M * SELECT_N, x);
    for (int64_t row = 0; row < SELECT_M; row++)
        ref_softmax(&spec, SELECT_N, x + row * SELECT_N, NULL, NULL, NULL, y + row * SELECT_N);
    set_shape(c, SELECT_M, SELECT_M, SELECT_N);
    return true;
}

static bool top_k_data(launcher_case *c)
{
    float *x = integer_buffer(&c->buffers, QDNN_OPERAND_X, SELECT_M * SELECT_N * sizeof(float), false),
          *y = integer_buffer(&c->buffers, QDNN_OPERAND_Y, SELECT_M * SELECT_TOP * sizeof(float), true);
    int32_t *index = integer_buffer(&c->buffers, QDNN_OPERAND_INDEX, SELECT_M * SELECT_TOP * 4, true);
    fill_rows(SELECT_M * SELECT_N, x);
    for (int64_t row = 0; row < SELECT_M; row++)
        ref_top_k(QDNN_DATA_F32, x + row * SELECT_N, SELECT_N, SELECT_TOP, y + row * SELECT_TOP,
                  index + row * SELECT_TOP);
    set_shape(c, SELECT_M, SELECT_M, SELECT_N);
    c->problem.top = SELECT_TOP;
    return true;
}

enum { ROUTE_M = 5, ROUTE_EXPERTS = 64, ROUTE_SLOTS = 4, COMBINE_N = 77 };

static bool route_data(launcher_case *c)
{
    const ref_route_spec spec = {.logits = QDNN_DATA_F32,
                                 .experts = ROUTE_EXPERTS,
                                 .slots = ROUTE_SLOTS,
                                 .groups = 1,
                                 .top_groups = 1,
                                 .factor = 2.5f};
    float *x =
        integer_buffer(&c->buffers, QDNN_OPERAND_LOGITS, ROUTE_M * ROUTE_EXPERTS * sizeof(float), false);
    int32_t *index = integer_buffer(&c->buffers, QDNN_OPERAND_INDEX, ROUTE_M * ROUTE_SLOTS * 4, true);
    float *weight = integer_buffer(&c->buffers, QDNN_OPERAND_WEIGHT_OUT, ROUTE_M * ROUTE_SLOTS * 4, true);
    fill_rows(ROUTE_M * ROUTE_EXPERTS, x);
    for (int64_t row = 0; row < ROUTE_M; row++)
        ref_route(&spec, x + row * ROUTE_EXPERTS, NULL, index + row * ROUTE_SLOTS,
                  weight + row * ROUTE_SLOTS);
    c->problem.m = ROUTE_M;
    c->problem.factor = spec.factor;
    return true;
}

static bool combine_data(launcher_case *c)
{
    const ref_combine_spec spec = {QDNN_DATA_F32, QDNN_DATA_F32, ROUTE_SLOTS};
    float *x = integer_buffer(&c->buffers, QDNN_OPERAND_X, ROUTE_M * ROUTE_SLOTS * COMBINE_N * 4, false);
    float *weight = integer_buffer(&c->buffers, QDNN_OPERAND_ROW_WEIGHT, ROUTE_M * ROUTE_SLOTS * 4, false);
    float *y = integer_buffer(&c->buffers, QDNN_OPERAND_Y, ROUTE_M * COMBINE_N * 4, true);
    fill_rows(ROUTE_M * ROUTE_SLOTS * COMBINE_N, x);
    fill_rows(ROUTE_M * ROUTE_SLOTS, weight);
    for (int64_t row = 0; row < ROUTE_M; row++)
        ref_combine(&spec, COMBINE_N, x + row * ROUTE_SLOTS * COMBINE_N, weight + row * ROUTE_SLOTS, NULL,
                    y + row * COMBINE_N);
    set_shape(c, ROUTE_M, ROUTE_M, COMBINE_N);
    return true;
}

/* Rows of several kinds: the largest, among all, among some. */
static bool sample_data(launcher_case *c)
{
    static const qdnnSampling_t settings[SELECT_M] = {{0, 1, 0, 0, 1, 0, 0, 0},
                                                      {1, 1, 0, 0, 1, 0, 0, 0},
                                                      {0.5f, 1, 0, 50, 1, 0, 0, 0},
                                                      {2, 0.75f, 0, 0, 1, 0, 0, 0},
                                                      {1.5f, 0.9f, 0.1f, 30, 1, 0, 0, 0}};
    float *l = integer_buffer(&c->buffers, QDNN_OPERAND_LOGITS, SELECT_M * SELECT_N * sizeof(float), false);
    int32_t *index = integer_buffer(&c->buffers, QDNN_OPERAND_INDEX, SELECT_M * 4, true);
    uint64_t *seed = integer_buffer(&c->buffers, QDNN_OPERAND_SEED, SELECT_M * 8, false),
             *step = integer_buffer(&c->buffers, QDNN_OPERAND_STEP, SELECT_M * 8, false);
    memcpy(integer_buffer(&c->buffers, QDNN_OPERAND_SAMPLING, sizeof settings, false), settings,
           sizeof settings);
    fill_rows(SELECT_M * SELECT_N, l);
    for (int64_t row = 0; row < SELECT_M; row++) {
        const qdnnSampling_t *s = &settings[row];
        const ref_sampling same = {s->temperature, s->topP,      s->minP,    s->topK,
                                   s->repetition,  s->frequency, s->presence};
        seed[row] = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(row + 1);
        step[row] = (uint64_t)row * 3 + SEED;
        index[row] =
            ref_sample(&same, QDNN_DATA_F32, l + row * SELECT_N, SELECT_N, NULL, seed[row], step[row]);
    }
    set_shape(c, SELECT_M, SELECT_M, SELECT_N);
    return true;
}

/* Norms and functions of rows in the default settings, some with a quantized result. */
static bool rows_data(launcher_case *c)
{
    const kernel_operation operation = kernel_operation_of(c->row);
    const bool is_quantized = operation == KERNEL_NORM_QUANTIZED || operation == KERNEL_POINTWISE_QUANTIZED;
    const int64_t rows = 3, columns = (int64_t)c->spec.rows.columns;
    const size_t bytes = (size_t)(rows * columns) * 4;
    integer_buffers *b = &c->buffers;
    float *x = integer_buffer(b, QDNN_OPERAND_X, bytes, false),
          *y = is_quantized ? calloc(1, bytes) : integer_buffer(b, QDNN_OPERAND_Y, bytes, true);
    row_fill(QDNN_DATA_F32, x, rows * columns, SEED, false);
    c->problem.m = (uint64_t)rows;
    if (operation == KERNEL_NORM || operation == KERNEL_NORM_QUANTIZED)
        ref_norm(
            &(ref_norm_spec){
                .columns = columns, .x = QDNN_DATA_F32, .y = QDNN_DATA_F32, .eps = c->problem.eps},
            rows, &(ref_norm_arrays){.x = x, .y = y});
    else
        ref_pointwise(&(ref_pointwise_spec){.columns = columns,
                                            .kind = REF_FUNCTION,
                                            .function = QDNN_ACTIVATION_SILU,
                                            .x = QDNN_DATA_F32,
                                            .y = QDNN_DATA_F32},
                      rows, x, NULL, y);
    if (!is_quantized)
        return true;
    const ref_quant_spec ref = ref_spec_of(c->row, &c->spec);
    const ref_sizes sizes = ref_sizes_of(&ref, rows, columns);
    const ref_arrays arrays = {.codes = integer_buffer(b, QDNN_OPERAND_CODES, (size_t)sizes.codes, true),
                               .scale = integer_buffer(b, QDNN_OPERAND_SCALE, (size_t)sizes.scale, true)};
    ref_scale(&ref, rows, columns, y, &arrays);
    ref_quantize(&ref, rows, columns, y, &arrays);
    free(y);
    return true;
}

/* Rope in the default settings; every slot of a cache receives a token. */
static bool rope_data(launcher_case *c)
{
    enum { TOKENS = 8, POSITIONS = 5, PAGE_SLOTS = 4, PAGES = TOKENS / PAGE_SLOTS };
    const bool has_cache = kernel_operation_of(c->row) == KERNEL_ROPE_QUANTIZED;
    const int64_t head = (int64_t)c->spec.rope.head, queries = (int64_t)c->spec.rope.queries,
                  heads = has_cache ? (int64_t)c->spec.kv.heads : 0, rotated = (queries + heads) * head,
                  token = rotated + heads * head, pairs = (int64_t)c->spec.rope.size / 2;
    integer_buffers *b = &c->buffers;
    float *x = integer_buffer(b, QDNN_OPERAND_X, (size_t)(TOKENS * token) * 4, false),
          *cos = integer_buffer(b, QDNN_OPERAND_COS, (size_t)(POSITIONS * pairs) * 4, false),
          *sin = integer_buffer(b, QDNN_OPERAND_SIN, (size_t)(POSITIONS * pairs) * 4, false),
          *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(TOKENS * queries * head) * 4, true);
    int32_t *position = integer_buffer(b, QDNN_OPERAND_POSITION, TOKENS * sizeof *position, false);
    row_fill(QDNN_DATA_F32, x, TOKENS * token, SEED, false);
    row_fill(QDNN_DATA_F32, cos, POSITIONS * pairs, SEED + 1, false);
    row_fill(QDNN_DATA_F32, sin, POSITIONS * pairs, SEED + 2, false);
    for (int t = 0; t < TOKENS; t++)
        position[t] = t * 3 % POSITIONS;
    const ref_rope_spec rope = {.head = head,
                                .heads = queries + heads,
                                .gap = token - rotated,
                                .size = 2 * pairs,
                                .positions = POSITIONS,
                                .x = QDNN_DATA_F32,
                                .y = QDNN_DATA_F32};
    float *all = calloc((size_t)(TOKENS * rotated), sizeof *all);
    ref_rope(&rope, TOKENS, cos, sin, position, x, all);
    for (int t = 0; t < TOKENS; t++)
        memcpy(y + t * queries * head, all + t * rotated, (size_t)(queries * head) * 4);
    c->problem.m = TOKENS;
    c->problem.positions = POSITIONS;
    c->problem.pages = PAGES;
    c->problem.cache.page_slots = PAGE_SLOTS;
    const ref_kv_spec kv = {.pages = PAGES,
                            .page_slots = PAGE_SLOTS,
                            .heads = heads,
                            .head_size = head,
                            .page_stride = PAGE_SLOTS * heads * head,
                            .slot_stride = heads * head,
                            .head_stride = head,
                            .quant = has_cache ? ref_spec_of(c->row, &c->spec) : (ref_quant_spec){0}};
    int32_t *slots =
        has_cache ? integer_buffer(b, QDNN_OPERAND_ROW_INDEX, TOKENS * sizeof *slots, false) : NULL;
    for (int i = 0; i < 2 && has_cache; i++) {
        uint8_t *array = integer_buffer(b, i ? QDNN_OPERAND_VALUES : QDNN_OPERAND_KEYS,
                                        (size_t)ref_kv_bytes(&kv), true),
                *scale = NULL;
        if (ref_kv_scale_bytes(&kv))
            scale = integer_buffer(b, i ? QDNN_OPERAND_VALUE_SCALE : QDNN_OPERAND_KEY_SCALE,
                                   (size_t)ref_kv_scale_bytes(&kv), true);
        for (int t = 0; t < TOKENS; t++) {
            slots[t] = (t * 3 + 2) % TOKENS;
            const float *heads_of = i ? x + t * token + rotated : all + t * rotated + queries * head;
            for (int64_t h = 0; h < heads; h++)
                ref_kv_write(&kv, slots[t], h, heads_of + h * head, array, scale);
        }
    }
    free(all);
    return true;
}

/* Rows by index: a permutation, so that all of the result is written. */
enum { MOVED_ROWS = 11, MOVED_COLUMNS = 131 };

static int64_t moved_row(int64_t i)
{
    return i * 4 % MOVED_ROWS;
}

static void list_rows(launcher_case *c, int64_t index[MOVED_ROWS])
{
    int32_t *list = integer_buffer(&c->buffers, QDNN_OPERAND_ROW_INDEX, MOVED_ROWS * sizeof *list, false);
    for (int i = 0; i < MOVED_ROWS; i++)
        list[i] = (int32_t)(index[i] = moved_row(i));
    c->problem.table_rows = MOVED_ROWS;
}

static bool copy_data(launcher_case *c)
{
    const size_t bytes = MOVED_ROWS * MOVED_COLUMNS * sizeof(float);
    float *x = integer_buffer(&c->buffers, QDNN_OPERAND_X, bytes, false),
          *y = integer_buffer(&c->buffers, QDNN_OPERAND_Y, bytes, true);
    int64_t index[MOVED_ROWS];
    const ref_rows_spec rows = {QDNN_DATA_F32, QDNN_DATA_F32, MOVED_COLUMNS,
                                MOVED_ROWS,    MOVED_COLUMNS, MOVED_COLUMNS};
    fill_rows(MOVED_ROWS * MOVED_COLUMNS, x);
    c->problem.m = MOVED_ROWS;
    c->problem.columns = MOVED_COLUMNS;
    switch (kernel_operation_of(c->row)) {
    case KERNEL_GATHER:
        list_rows(c, index);
        ref_gather(&rows, MOVED_ROWS, x, index, y);
        return true;
    case KERNEL_SCATTER:
        list_rows(c, index);
        ref_scatter(&rows, MOVED_ROWS, x, index, y);
        return true;
    default:
        memcpy(y, x, bytes);
        return true;
    }
}

/* Any blocks of two matrices. */
static bool transposed_data(launcher_case *c)
{
    enum { EXPERTS = 2, N = 5 };
    const int64_t k = 2 * (int64_t)kernel_columns_multiple(c->row);
    const quant_case q = {.row = kernel_find_operation(KERNEL_DEQUANTIZE, c->row->format),
                          .spec = kernel_spec_default(),
                          .granularity = QDNN_GRANULARITY_TENSOR,
                          .rank = 2,
                          .dims = {EXPERTS * N, k},
                          .seed = SEED};
    quant_operands o;
    if (!quant_operands_make(&q, &o))
        return false;
    take_over(c, QDNN_OPERAND_CODES, o.host[QDNN_OPERAND_CODES], o.bytes[QDNN_OPERAND_CODES], false);
    float *y = integer_buffer(&c->buffers, QDNN_OPERAND_Y, o.bytes[QDNN_OPERAND_Y], true);
    const float *w = (const float *)(const void *)o.host[QDNN_OPERAND_Y];
    for (int64_t i = 0; i < EXPERTS * N * k; i++)
        y[(i / (N * k) * k + i % k) * N + i / k % N] = w[i];
    quant_operands_free(&o);
    c->problem.rows = N;
    c->problem.columns = (uint64_t)k;
    c->problem.experts = EXPERTS;
    return true;
}

static bool quantize_rows_data(launcher_case *c)
{
    const ref_quant_spec ref = ref_spec_of(c->row, &c->spec);
    const int64_t columns = 2 * (int64_t)kernel_columns_multiple(c->row);
    const size_t row_bytes = (size_t)ref_sizes_of(&ref, 1, columns).codes;
    float *x = integer_buffer(&c->buffers, QDNN_OPERAND_X, (size_t)(MOVED_ROWS * columns) * 4, false);
    uint8_t *codes = integer_buffer(&c->buffers, QDNN_OPERAND_CODES, MOVED_ROWS * row_bytes, true);
    int64_t index[MOVED_ROWS];
    row_fill(QDNN_DATA_F32, x, MOVED_ROWS * columns, SEED, false);
    list_rows(c, index);
    for (int64_t i = 0; i < MOVED_ROWS; i++) {
        const ref_arrays to = {.codes = codes + (size_t)index[i] * row_bytes};
        ref_quantize(&ref, 1, columns, x + i * columns, &to);
    }
    c->problem.rows = MOVED_ROWS;
    c->problem.columns = (uint64_t)columns;
    return true;
}

/* Keys or values of a cache: bytes that mean something in every format, and their scales. */
static void cache_data(launcher_case *c, const ref_kv_spec *kv, bool is_keys)
{
    const size_t bytes = (size_t)ref_kv_bytes(kv), scales = (size_t)ref_kv_scale_bytes(kv);
    uint8_t *array =
        integer_buffer(&c->buffers, is_keys ? QDNN_OPERAND_KEYS : QDNN_OPERAND_VALUES, bytes, false);
    uint64_t state = SEED + is_keys;
    if (kv->type)
        row_fill(kv->type, array, (int64_t)bytes / ref_scalar_size(kv->type), SEED + is_keys, false);
    for (size_t i = 0; i < bytes && !kv->type; i++) /* small numbers of FP8, too */
        array[i] = (uint8_t)(random_next(&state) >> 40) & 0xB7;
    const block_layout *blocks = block_layout_of(c->row->format);
    for (size_t i = 0; blocks && i < bytes; i += blocks->bytes)
        for (int k = 0; k < 2; k++) /* the first or the first two numbers of a block */
            ref_scalar_store(QDNN_DATA_F16, array + i, k, 0.01f);
    if (!scales)
        return;
    float *scale = integer_buffer(&c->buffers, is_keys ? QDNN_OPERAND_KEY_SCALE : QDNN_OPERAND_VALUE_SCALE,
                                  scales, false);
    for (size_t i = 0; i < scales / sizeof *scale; i++)
        scale[i] = 0.01f * (float)(i % 7 + 1);
}

/* Attention in the default settings: a few tokens of one sequence, whose pages lie in no order. */
static bool attention_data(launcher_case *c)
{
    enum { TOKENS = 5, PAGE_SLOTS = 4, PAGES = 19 };
    const kernel_kv *sizes = &c->spec.kv;
    const int64_t head = (int64_t)sizes->key_size, queries = (int64_t)c->spec.rope.queries,
                  heads = (int64_t)sizes->heads, group = queries / heads;
    integer_buffers *b = &c->buffers;
    const bool is_plain = kernel_operation_of(c->row) == KERNEL_ATTENTION;
    ref_kv_spec kv = {.pages = PAGES,
                      .page_slots = PAGE_SLOTS,
                      .heads = heads,
                      .head_size = head,
                      .type = is_plain ? QDNN_DATA_F32 : 0,
                      .page_stride = PAGE_SLOTS * heads * head,
                      .slot_stride = heads * head,
                      .head_stride = head};
    if (!is_plain)
        kv.quant = ref_spec_of(c->row, &c->spec);
    float *x = integer_buffer(b, QDNN_OPERAND_X, (size_t)(TOKENS * queries * head) * 4, false),
          *y = integer_buffer(b, QDNN_OPERAND_Y, (size_t)(TOKENS * queries * head) * 4, true);
    int32_t *sequence = integer_buffer(b, QDNN_OPERAND_SEQUENCE, TOKENS * sizeof *sequence, false),
            *index = integer_buffer(b, QDNN_OPERAND_KEY_INDEX, TOKENS * sizeof *index, false),
            *table = integer_buffer(b, QDNN_OPERAND_PAGE_TABLE, PAGES * sizeof *table, false);
    row_fill(QDNN_DATA_F32, x, TOKENS * queries * head, SEED, false);
    cache_data(c, &kv, true);
    cache_data(c, &kv, false);
    for (int i = 0; i < PAGES; i++)
        table[i] = i * 7 % PAGES;
    float *keys = calloc((size_t)(PAGES * PAGE_SLOTS * head), sizeof *keys),
          *values = calloc((size_t)(PAGES * PAGE_SLOTS * head), sizeof *values);
    for (int t = 0; t < TOKENS; t++)
        index[t] = 70 - 3 * t;
    for (int64_t h = 0; h < queries; h++) {
        for (int64_t j = 0; j < PAGES * PAGE_SLOTS; j++) {
            const int64_t slot = ref_kv_slot(&kv, table, PAGES, 0, j);
            ref_kv_read(&kv, slot, h / group, b->host[QDNN_OPERAND_KEYS], b->host[QDNN_OPERAND_KEY_SCALE],
                        keys + j * head);
            ref_kv_read(&kv, slot, h / group, b->host[QDNN_OPERAND_VALUES], b->host[QDNN_OPERAND_VALUE_SCALE],
                        values + j * head);
        }
        for (int t = 0; t < TOKENS; t++)
            ref_attention(
                &(ref_attention_spec){
                    .x = QDNN_DATA_F32, .y = QDNN_DATA_F32, .d = head, .dv = head, .scale = c->problem.alpha},
                &(ref_attention_row){.q = x + (t * queries + h) * head,
                                     .keys = keys,
                                     .values = values,
                                     .key_stride = head,
                                     .value_stride = head,
                                     .last = index[t]},
                y + (t * queries + h) * head);
    }
    free(keys);
    free(values);
    c->problem.m = TOKENS;
    c->problem.pages = c->problem.table_pages = PAGES;
    c->problem.cache.page_slots = PAGE_SLOTS;
    return true;
}

static bool (*const data_of[KERNEL_OPERATIONS])(launcher_case *c) = {
    [KERNEL_SCALE] = quant_data,
    [KERNEL_QUANTIZE] = quant_data,
    [KERNEL_DEQUANTIZE] = quant_data,
    [KERNEL_DYNAMIC] = quant_data,
    [KERNEL_REPACK] = moved_data,
    [KERNEL_PREPACK] = moved_data,
    [KERNEL_MATMUL] = product_data,
    [KERNEL_FAKE_QUANTIZE] = train_data,
    [KERNEL_FAKE_QUANTIZE_BACKWARD] = train_data,
    [KERNEL_LSQ] = train_data,
    [KERNEL_LSQ_BACKWARD] = train_data,
    [KERNEL_INT4_DOT] = integer_data,
    [KERNEL_INT4_DOT_SCALED] = integer_data,
    [KERNEL_INT4_MATMUL] = integer_data,
    [KERNEL_INT4_TOP1] = top_data,
    [KERNEL_INT4_TOPK] = top_data,
    [KERNEL_INT8_MATMUL] = integer_data,
    [KERNEL_W8A8] = integer_data,
    [KERNEL_W4A8] = integer_data,
    [KERNEL_W4A4] = integer_data,
    [KERNEL_INT8_CONV2D] = conv_data,
    [KERNEL_SOFTMAX] = softmax_data,
    [KERNEL_TOP_K] = top_k_data,
    [KERNEL_SAMPLE] = sample_data,
    [KERNEL_ROUTE] = route_data,
    [KERNEL_COMBINE] = combine_data,
    [KERNEL_NORM] = rows_data,
    [KERNEL_NORM_QUANTIZED] = rows_data,
    [KERNEL_POINTWISE] = rows_data,
    [KERNEL_POINTWISE_QUANTIZED] = rows_data,
    [KERNEL_ROPE] = rope_data,
    [KERNEL_ROPE_QUANTIZED] = rope_data,
    [KERNEL_DEQUANTIZE_TRANSPOSED] = transposed_data,
    [KERNEL_QUANTIZE_ROWS] = quantize_rows_data,
    [KERNEL_COPY] = copy_data,
    [KERNEL_GATHER] = copy_data,
    [KERNEL_SCATTER] = copy_data,
    [KERNEL_ATTENTION] = attention_data,
    [KERNEL_ATTENTION_QUANTIZED] = attention_data,
};

/* ---- Which launchers there are ---- */

/* Operations of several kernels, which are written for their sizes; among them is every kernel that is only a part of
 * others. */
static const struct {
    const char *name, *settings, *sizes;
} sequences[] = {
    {"train.fake_quantize", "", "n=301"},
    {"train.fake_quantize.backward", "", "n=301"},
    {"train.lsq.backward", "group_size=5000", "n=20001"},
    {"quant.nf4.scale", "group_size=1,channels=1", "n=20001"},
    {"quant.int4_zp.scale", "group_size=1,channels=1", "n=20001"},
    {"quant.int4.batched_matmul.topk.scaled", "", "m=5,rows=2051,columns=9,top=7"},
    {"quant.int4.batched_matmul.top1.scaled", "", "m=5,rows=2051,columns=9"},
    {"quant.int8.qconv2d", "window_c=16,window_h=3,window_w=2",
     "images=2,channels=16,outputs=9,height=7,width=5,multiplier=0.02"},
};

enum { CASES_MAX = 512 };
static launcher_case cases[CASES_MAX];

static bool add_case(int *n, const char *name, const char *settings, const char *sizes)
{
    launcher_case *c = &cases[*n];
    char words[256], error[256];
    *c = (launcher_case){
        .name = name, .settings = settings, .sizes = sizes, .problem = kernel_problem_default()};
    c->row = kernel_open(name, &c->spec);
    snprintf(words, sizeof words, "%s", settings);
    for (char *at = words; *at; at++)
        *at = *at == ',' ? ' ' : *at;
    if (!CHECK(*n + 1 < CASES_MAX && c->row != NULL) ||
        !CHECK(kernel_spec_set_words(c->row, &c->spec, words, error, sizeof error)))
        return false;
    bool (*data)(launcher_case *) = data_of[kernel_operation_of(c->row)];
    test_push_note("%s", name);
    const bool ok = CHECK(data != NULL) && CHECK(data(c)) &&
                    CHECK(kernel_problem_complete(c->row, &c->spec, &c->problem, error, sizeof error));
    test_pop_note();
    *n += ok;
    return ok;
}

/* Every stable name that is one kernel, and the sequences. */
static int add_cases(void)
{
    int n = 0;
    kernel_spec spec;
    for (int i = 0; qdnnGetOperationName(i); i++) {
        const char *name = qdnnGetOperationName(i);
        const kernel_row *row = kernel_open(name, &spec);
        if (!kernel_is_sequence(row, &spec))
            add_case(&n, name, "", "");
    }
    for (int i = 0; i < LENGTH(sequences); i++)
        add_case(&n, sequences[i].name, sequences[i].settings, sequences[i].sizes);
    return n;
}

/* "y 0123456789abcdef": FNV-1a of 64 bits of each output, as host_ref computes it. */
static void digest_of(const launcher_case *c, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        if (!c->buffers.host[i] || !c->buffers.is_output[i])
            continue;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t k = 0; k < c->buffers.bytes[i]; k++)
            hash = (hash ^ ((const uint8_t *)c->buffers.host[i])[k]) * UINT64_C(0x100000001b3);
        used += (size_t)snprintf(text + used, size - used, "%s%s %016" PRIx64, used ? ", " : "",
                                 kernel_operand_name((qdnnOperand_t)i), hash);
    }
}

static const struct {
    const char *name, *answer;
} known[] = {
#define KNOWN(name, answer) {name, answer},
#include "tools/ptxgen/known.def"
#undef KNOWN
};

/* The digest in the list of operations is that of host_ref, and so that of the launcher. */
static void check_known(const launcher_case *c)
{
    char digest[256];
    digest_of(c, digest, sizeof digest);
    for (int i = 0; i < LENGTH(known); i++)
        if (strcmp(known[i].name, c->name) == 0) {
            CHECK_EQ_STR(known[i].answer, digest);
            return;
        }
    FAIL("tools/ptxgen/known.def lacks KNOWN(\"%s\", \"%s\")", c->name, digest);
}

static bool is_covered(const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(cases[i].name, name) == 0)
            return true;
    return false;
}

TEST_CASE(ParityLaunchers, EveryOperationName)
{
    if (QDNN_SANITIZE[0])
        SKIP("a sanitized driver needs a sanitized program");
    const int n = add_cases();
    for (int i = 0; qdnnGetOperationName(i); i++)
        if (!is_covered(qdnnGetOperationName(i), n))
            FAIL("%s has no launcher here", qdnnGetOperationName(i));
    const bool built = launchers_build(cases, n);
    for (int i = 0; i < n; i++) {
        test_push_note("%s %s", cases[i].name, cases[i].sizes);
        if (built)
            launchers_run(&cases[i], i);
        if (!*cases[i].sizes || kernel_is_sequence(cases[i].row, &cases[i].spec))
            check_known(&cases[i]);
        integer_buffers_free(&cases[i].buffers);
        test_pop_note();
    }
    CHECK(n > 235);
    launchers_end();
}
