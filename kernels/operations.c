/* The table of operations. */
#include "kernels/operations.h"

#include "kernels/attention/attention.h"
#include "kernels/cache/cache.h"
#include "kernels/copy/copy.h"
#include "kernels/gemm/gemm.h"
#include "kernels/integer/integer.h"
#include "kernels/gemm/routes.h"
#include "kernels/quant/quant.h"
#include "kernels/select/select.h"
#include "kernels/rows/rows.h"
#include "kernels/tensor/prepack.h"
#include "kernels/train/train.h"

#define OPERAND(name) ((operand_set)1 << QDNN_OPERAND_##name)

/* Sets of settings that go together. */
#define GROUPING                                                                                             \
    KERNEL_KEY(GROUPS), KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(GROUP_ROWS), KERNEL_KEY(CHANNELS),                \
        KERNEL_KEY(SCALE_ORDER), KERNEL_KEY(SCALE_SWIZZLE)
#define SIDECARS GROUPING, KERNEL_KEY(SCALE), KERNEL_KEY(GLOBAL_SCALE), KERNEL_KEY(ZERO)
#define ZEROS    KERNEL_KEY(ZERO_PACKED), KERNEL_KEY(ZERO_MINUS_ONE), KERNEL_KEY(ZERO_WRAPS)
#define STORED   SIDECARS, ZEROS, KERNEL_KEY(NESTED), KERNEL_KEY(GROUP_INDEX)
#define CODES    KERNEL_KEY(CODE), KERNEL_KEY(LAYOUT), KERNEL_KEY(NIBBLE_ORDER)
#define TRAINING KERNEL_KEY(BITS), KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(CHANNELS)

/* Integer products: settings for turning a sum into a scaled number, and for turning it into a code. */
#define SCALED                                                                                               \
    KERNEL_KEY(OUTPUT), KERNEL_KEY(ALPHA), KERNEL_KEY(BIAS), KERNEL_KEY(ACTIVATION), KERNEL_KEY(RESIDUAL)
#define ZERO_POINTS KERNEL_KEY(X_CODES), KERNEL_KEY(X_ZERO), KERNEL_KEY(W_ZERO)
#define REQUANTIZED                                                                                          \
    ZERO_POINTS, KERNEL_KEY(RESULT), KERNEL_KEY(BIAS_I32), KERNEL_KEY(MULTIPLIERS), KERNEL_KEY(ROUNDING)
#define EXPERTS_AND_PAIRS KERNEL_KEY(GATED), KERNEL_KEY(GROUPED), KERNEL_KEY(X_SHARE), KERNEL_KEY(ROW_WEIGHT)
#define OF_EXPERTS        (OPERAND(EXPERT_INDEX) | OPERAND(ROW_WEIGHT))
#define OF_SCALED                                                                                            \
    (OPERAND(X) | OPERAND(CODES) | OPERAND(SCALE) | OPERAND(X_SCALE) | OPERAND(ALPHA) | OPERAND(BIAS) |      \
     OPERAND(RESIDUAL))
#define OF_REQUANTIZED (OPERAND(X) | OPERAND(CODES) | OPERAND(BIAS) | OPERAND(MULTIPLIER))
#define SHAPE          (A_NUMBER(M) | A_NUMBER(ROWS) | A_NUMBER(COLUMNS))
#define ZERO_NUMBERS   (A_NUMBER(X_ZERO) | A_NUMBER(W_ZERO))
#define CODE_NUMBERS   (ZERO_NUMBERS | A_NUMBER(Y_ZERO) | A_NUMBER(MULTIPLIER))
#define WINDOW_NUMBERS                                                                                       \
    (A_NUMBER(CONV_CHANNELS) | A_NUMBER(CONV_OUTPUTS) | A_NUMBER(CONV_H) | A_NUMBER(CONV_W) |                \
     A_NUMBER(CONV_OUT_H) | A_NUMBER(CONV_OUT_W) | A_NUMBER(CONV_STRIDE) | A_NUMBER(CONV_PADDING) |          \
     A_NUMBER(CONV_DILATION))
#define INTEGER_DOT                                                                                          \
    .writes = OPERAND(Y), .is_empty = int_matmul_is_empty, .takes = int_takes, .size = int_size,             \
    .geometry = int_dot_geometry, .emit = emit_int_dot, .steps = int_dot_steps
#define INTEGER_PRODUCT                                                                                      \
    .writes = OPERAND(Y), .is_empty = int_matmul_is_empty, .takes = int_takes, .size = int_size,             \
    .bound = int_bound, .geometry = int_geometry, .emit = emit_int_matmul, .steps = int_matmul_steps
#define LARGEST_SCORES                                                                                       \
    .keys = KERNEL_KEYS(KERNEL_KEY(TOP_INDEX), KERNEL_KEY(TILE), KERNEL_KEY(SPLIT)), .fixes = fix_int4_top,  \
    .reads = OPERAND(X) | OPERAND(CODES) | OPERAND(SCALE) | OPERAND(X_SCALE),                                \
    .writes = OPERAND(Y) | OPERAND(TOP_INDEX), .is_empty = int_matmul_is_empty, .takes = int_top_takes,      \
    .geometry = int_top_geometry, .emit = emit_int_top, .steps = int_top_steps

/* Operations on rows: on plain tensors, or with a quantized result. */
#define ROW_RESULT           OPERAND(Y)
#define QUANTIZED_ROW_RESULT (OPERAND(CODES) | OPERAND(SCALE))
#define QUANTIZED_ROWS                                                                                       \
    KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(SCALE), KERNEL_KEY(GLOBAL_SCALE), KERNEL_KEY(CODE),                   \
        KERNEL_KEY(NIBBLE_ORDER), KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION), KERNEL_KEY(FLOOR),             \
        KERNEL_KEY(MX_ROUNDING)
#define ROW_KEYS KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(ROW_SIZE), KERNEL_KEY(HEADS)
#define NORM_KEYS                                                                                            \
    ROW_KEYS, KERNEL_KEY(NORM), KERNEL_KEY(WEIGHT), KERNEL_KEY(PLUS_ONE), KERNEL_KEY(SUM), KERNEL_KEY(BIAS)
#define NORM_READS (OPERAND(X) | OPERAND(WEIGHT) | OPERAND(BIAS) | OPERAND(RESIDUAL))
#define NORM_ROW                                                                                             \
    .numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE) | A_NUMBER(EPS),                        \
    .is_a_kernel = norm_is_a_kernel, .is_empty = rows_are_empty, .takes = norm_takes, .size = norm_size,     \
    .text = norm_text, .complete = rows_complete, .geometry = norm_geometry, .emit = emit_norm,              \
    .steps = rows_steps
#define POINTWISE_KEYS                                                                                       \
    ROW_KEYS, KERNEL_KEY(POINTWISE), KERNEL_KEY(FUNCTION), KERNEL_KEY(B), KERNEL_KEY(B_TYPE)
#define POINTWISE_ROW                                                                                        \
    .numbers = A_NUMBER(M) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE) | A_NUMBER(ALPHA) |                     \
               A_NUMBER(B_STRIDE) | A_NUMBER(LIMIT) | A_NUMBER(FACTOR),                                      \
    .is_a_kernel = pointwise_is_a_kernel, .is_empty = rows_are_empty, .takes = pointwise_takes,              \
    .size = pointwise_size, .text = pointwise_text, .complete = rows_complete,                               \
    .geometry = pointwise_geometry, .emit = emit_pointwise, .steps = rows_steps

/* Rope, and KV caches. */
#define KV_KEYS_AND_ROPE                                                                                     \
    KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(HEAD_SIZE), KERNEL_KEY(QUERIES),                        \
        KERNEL_KEY(ROTARY_FIRST), KERNEL_KEY(ROTARY), KERNEL_KEY(NEIGHBOURS), KERNEL_KEY(SECTIONS),          \
        KERNEL_KEY(SECTION_0), KERNEL_KEY(SECTION_1), KERNEL_KEY(SECTION_2), KERNEL_KEY(SECTION_3),          \
        KERNEL_KEY(BY_SECTION), KERNEL_KEY(KV_SLOTS), KERNEL_KEY(KV_HEADS), KERNEL_KEY(KEY_SIZE),            \
        KERNEL_KEY(VALUE_SIZE)
#define ROPE_ROW                                                                                             \
    .reads = OPERAND(X) | OPERAND(POSITION) | OPERAND(COS) | OPERAND(SIN) | OPERAND(ROW_INDEX) |             \
             OPERAND(PAGE_TABLE) | OPERAND(SEQUENCE) | OPERAND(KEY_INDEX),                                   \
    .writes = OPERAND(Y) | OPERAND(KEYS) | OPERAND(VALUES) | OPERAND(KEY_SCALE) | OPERAND(VALUE_SCALE),      \
    .numbers = A_NUMBER(M), .counts = rope_numbers, .is_a_kernel = rope_is_a_kernel,                         \
    .is_empty = rope_is_empty, .operand = rope_operand, .text = rope_text, .complete = rope_complete,        \
    .geometry = rope_geometry, .emit = emit_rope, .steps = rope_steps

/* Rows of a table by index: read, and written. */
#define MOVED_ROWS                                                                                           \
    .keys = KERNEL_KEYS(KERNEL_KEY(FROM), KERNEL_KEY(TO), KERNEL_KEY(LANES), KERNEL_KEY(INDEX_TYPE)),        \
    .fixes = fix_move_rows, .reads = OPERAND(X) | OPERAND(ROW_INDEX), .writes = OPERAND(Y),                  \
    .numbers =                                                                                               \
        A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TABLE_ROWS) | A_NUMBER(X_STRIDE) | A_NUMBER(Y_STRIDE),    \
    .is_a_kernel = copy_is_a_kernel, .is_empty = copy_is_empty, .operand = move_rows_operand,                \
    .text = move_rows_text, .complete = move_rows_complete, .geometry = copy_geometry,                       \
    .steps = move_rows_steps

#define ATTENTION_ROW                                                                                        \
    .reads = OPERAND(X) | OPERAND(KEYS) | OPERAND(VALUES) | OPERAND(KEY_SCALE) | OPERAND(VALUE_SCALE) |      \
             OPERAND(PAGE_TABLE) | OPERAND(SEQUENCE) | OPERAND(KEY_INDEX) | OPERAND(SEQUENCE_LENGTH) |       \
             OPERAND(VISIBLE) | OPERAND(MASK) | OPERAND(SLOPE) | OPERAND(SINK),                              \
    .writes = OPERAND(Y), .numbers = A_NUMBER(M), .counts = attention_numbers,                               \
    .is_a_kernel = attention_is_a_kernel, .is_empty = attention_is_empty, .operand = attention_operand,      \
    .text = attention_text, .complete = attention_complete, .geometry = attention_geometry,                  \
    .emit = emit_attention, .steps = attention_steps

/* A global scale applies to E4M3 scales. */
static void fix_global(kernel_spec *spec)
{
    spec->stored.scale = QDNN_SCALE_E4M3;
    if (!spec->stored.global_scale)
        spec->stored.global_scale = 1;
}

/* Only nested scales involve a division: their bytes are quotients. */
static void fix_scale(kernel_spec *spec)
{
    if (!spec->stored.nested)
        spec->quantize.division = QDNN_DIVIDE_EXACT;
}

static void fix_quantize_rows(kernel_spec *spec)
{
    spec->row_index = 1;
}

static void fix_nest(kernel_spec *spec)
{
    spec->stored.nested = 1;
}

const operation_row operation_rows[KERNEL_OPERATIONS] = {
    [KERNEL_SCALE] = {.name = "scale",
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), SIDECARS, ZEROS, KERNEL_KEY(LAYOUT),
                                          KERNEL_KEY(GROUP_INDEX), KERNEL_KEY(CODE), KERNEL_KEY(FLOOR),
                                          KERNEL_KEY(RANGE), KERNEL_KEY(MX_ROUNDING), KERNEL_KEY(NESTED),
                                          KERNEL_KEY(DIVISION)),
                      .fixes = fix_scale,
                      .reads = OPERAND(X) | OPERAND(NESTED_MAP) | OPERAND(NESTED_OFFSET),
                      .writes =
                          OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) | OPERAND(NESTED_SCALE),
                      .geometry = scale_geometry,
                      .emit = emit_scale,
                      .steps = scale_steps},
    [KERNEL_QUANTIZE] = {.name = "quantize",
                         .keys = KERNEL_KEYS(KERNEL_KEY(DATA), STORED, CODES, KERNEL_KEY(GROUP_TABLE),
                                             KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION)),
                         .reads = OPERAND(X) | OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) |
                                  OPERAND(NESTED_MAP) | OPERAND(NESTED_SCALE) | OPERAND(NESTED_OFFSET) |
                                  OPERAND(GROUP_INDEX),
                         .writes = OPERAND(CODES),
                         .geometry = tile_geometry,
                         .emit = emit_quantize,
                         .steps = tile_steps},
    [KERNEL_DEQUANTIZE] = {.name = "dequantize",
                           .keys = KERNEL_KEYS(KERNEL_KEY(DATA), STORED, CODES, KERNEL_KEY(GROUP_TABLE),
                                               KERNEL_KEY(ROW_INDEX)),
                           .reads = OPERAND(CODES) | OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) |
                                    OPERAND(NESTED_MAP) | OPERAND(NESTED_SCALE) | OPERAND(NESTED_OFFSET) |
                                    OPERAND(GROUP_INDEX) | OPERAND(ROW_INDEX),
                           .writes = OPERAND(Y),
                           .geometry = tile_geometry,
                           .emit = emit_dequantize,
                           .steps = tile_steps},
    [KERNEL_DYNAMIC] = {.name = "quantize_dynamic",
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), SIDECARS, ZEROS, KERNEL_KEY(GROUP_INDEX), CODES,
                                            KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION), KERNEL_KEY(FLOOR),
                                            KERNEL_KEY(RANGE), KERNEL_KEY(MX_ROUNDING), KERNEL_KEY(ROW_INDEX),
                                            KERNEL_KEY(INDEX_TYPE), KERNEL_KEY(STRIDED)),
                        .fixes = fix_dynamic,
                        .reads = OPERAND(X) | OPERAND(GLOBAL_SCALE) | OPERAND(ROW_INDEX),
                        .writes = OPERAND(CODES) | OPERAND(SCALE) | OPERAND(ZERO),
                        .is_a_kernel = dynamic_is_a_kernel,
                        .geometry = dynamic_geometry,
                        .emit = emit_dynamic,
                        .steps = dynamic_steps},
    [KERNEL_QUANTIZE_ROWS] = {.name = "quantize_rows",
                              .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(INDEX_TYPE)),
                              .fixes = fix_quantize_rows,
                              .reads = OPERAND(X) | OPERAND(ROW_INDEX),
                              .writes = OPERAND(CODES),
                              .geometry = tile_geometry,
                              .emit = emit_block_quantize,
                              .steps = tile_steps},
    [KERNEL_REPACK] = {.name = "repack",
                       .keys = KERNEL_KEYS(CODES, KERNEL_KEY(TO_LAYOUT), KERNEL_KEY(TO_NIBBLE_ORDER),
                                           KERNEL_KEY(TO_CODE)),
                       .reads = OPERAND(CODES),
                       .writes = OPERAND(REPACKED),
                       .geometry = repack_geometry,
                       .emit = emit_repack,
                       .steps = repack_steps},
    [KERNEL_PREPACK] = {.name = "prepack",
                        .keys = KERNEL_KEYS(CODES, KERNEL_KEY(REDUCTION), KERNEL_KEY(UNPACK)),
                        .reads = OPERAND(CODES),
                        .writes = OPERAND(REPACKED),
                        .numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS),
                        .is_a_kernel = prepack_is_a_kernel,
                        .geometry = prepack_geometry,
                        .emit = emit_prepack,
                        .steps = prepack_steps,
                        .bound = prepack_bound},
    [KERNEL_MATMUL] = {.name = "matmul",
                       .keys = KERNEL_KEYS(PRODUCT_KEYS, STORED, CODES),
                       .reads = OPERAND(X) | OPERAND(CODES) | OPERAND(SCALE) | OPERAND(ZERO) |
                                OPERAND(GLOBAL_SCALE) | OPERAND(NESTED_MAP) | OPERAND(NESTED_SCALE) |
                                OPERAND(NESTED_OFFSET) | OPERAND(GROUP_INDEX) | OPERAND(ALPHA) |
                                OPERAND(BIAS) | OPERAND(RESIDUAL) | OPERAND(EXPERT_INDEX) |
                                OPERAND(ROW_WEIGHT) | OPERAND(X_SCALE),
                       .writes = OPERAND(Y),
                       .numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS) | A_NUMBER(M) | A_NUMBER(X_STRIDE) |
                                  A_NUMBER(Y_STRIDE),
                       .fixes = gemm_fix,
                       .is_a_kernel = gemm_is_a_kernel,
                       .is_empty = gemm_is_empty,
                       .geometry = gemm_geometry,
                       .emit = emit_gemm,
                       .steps = gemm_steps,
                       .bound = gemm_bound},
    [KERNEL_ROUTE_ROWS] = {.name = "route_rows",
                           .keys = KERNEL_KEYS(KERNEL_KEY(TILE_ROWS)),
                           .reads = OPERAND(EXPERT_INDEX),
                           .numbers = A_NUMBER(M) | A_NUMBER(EXPERTS),
                           .geometry = routes_geometry,
                           .emit = emit_routes,
                           .steps = routes_steps,
                           .takes = routes_takes,
                           .is_empty = gemm_is_empty},
    [KERNEL_GLOBAL] = {.name = "global",
                       .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(FLOOR), KERNEL_KEY(GLOBAL_SCALE)),
                       .fixes = fix_global,
                       .reads = OPERAND(X),
                       .writes = OPERAND(GLOBAL_SCALE),
                       .geometry = global_geometry,
                       .emit = emit_global,
                       .steps = tile_steps},
    [KERNEL_NEST] = {.name = "nest",
                     .keys = KERNEL_KEYS(KERNEL_KEY(DIVISION)),
                     .fixes = fix_nest,
                     .reads = OPERAND(X) | OPERAND(NESTED_MAP) | OPERAND(NESTED_OFFSET),
                     .writes = OPERAND(SCALE) | OPERAND(NESTED_SCALE),
                     .geometry = nest_geometry,
                     .emit = emit_nest,
                     .steps = tile_steps},
    [KERNEL_RANGE] = {.name = "range",
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(CHANNELS),
                                          KERNEL_KEY(RANGE)),
                      .reads = OPERAND(X),
                      .geometry = range_geometry,
                      .emit = emit_range,
                      .steps = tile_steps},
    [KERNEL_FAKE_QUANTIZE] = {.name = "fake_quantize",
                              .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING), KERNEL_KEY(SCALE_MODE),
                                                  KERNEL_KEY(DECAY)),
                              .fixes = fix_decay,
                              .reads = OPERAND(X) | OPERAND(STATE),
                              .writes = OPERAND(Y),
                              .geometry = sweep_geometry,
                              .emit = emit_sweep,
                              .steps = fake_quantize_steps,
                              .bound = fake_quantize_bound},
    [KERNEL_FAKE_QUANTIZE_BACKWARD] = {.name = "fake_quantize_backward",
                                       .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING),
                                                           KERNEL_KEY(SCALE_MODE), KERNEL_KEY(BACKWARD)),
                                       .fixes = fix_unscaled,
                                       .reads = OPERAND(X) | OPERAND(STATE) | OPERAND(DY),
                                       .writes = OPERAND(DX),
                                       .geometry = sweep_geometry,
                                       .emit = emit_sweep,
                                       .steps = fake_quantize_backward_steps,
                                       .takes = backward_takes,
                                       .bound = backward_bound},
    [KERNEL_LSQ] = {.name = "lsq",
                    .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING)),
                    .reads = OPERAND(X) | OPERAND(SCALE),
                    .writes = OPERAND(Y),
                    .geometry = sweep_geometry,
                    .emit = emit_sweep,
                    .steps = tile_steps},
    [KERNEL_LSQ_BACKWARD] = {.name = "lsq_backward",
                             .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING), KERNEL_KEY(GRADIENT_FACTOR)),
                             .reads = OPERAND(X) | OPERAND(SCALE) | OPERAND(DY),
                             .writes = OPERAND(DX) | OPERAND(DSCALE),
                             .geometry = lsq_backward_geometry,
                             .emit = emit_lsq_backward,
                             .steps = lsq_backward_steps},
    [KERNEL_TRAIN_SCALE] = {.name = "train_scale",
                            .keys = KERNEL_KEYS(KERNEL_KEY(BITS), KERNEL_KEY(SCALE_MODE), KERNEL_KEY(DECAY)),
                            .fixes = fix_decay,
                            .reads = OPERAND(X),
                            .writes = OPERAND(STATE),
                            .geometry = train_scale_geometry,
                            .emit = emit_train_scale,
                            .steps = tile_steps},
    [KERNEL_LONG_SUM] = {.name = "long_sum",
                         .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(GRADIENT_FACTOR)),
                         .fixes = fix_sum,
                         .reads = OPERAND(X),
                         .writes = OPERAND(DSCALE),
                         .numbers = A_NUMBER(N) | A_NUMBER(ROWS) | A_NUMBER(COLUMNS),
                         .geometry = long_sum_geometry,
                         .emit = emit_long_sum,
                         .steps = tile_steps},
    [KERNEL_INT4_DOT] = {.name = "int4_dot",
                         .fixes = fix_int4_dot,
                         .reads = OPERAND(X) | OPERAND(CODES),
                         .numbers = A_NUMBER(COLUMNS),
                         INTEGER_DOT},
    [KERNEL_INT4_DOT_SCALED] = {.name = "int4_dot_scaled",
                                .keys = KERNEL_KEYS(KERNEL_KEY(OUTPUT)),
                                .fixes = fix_int4_dot_scaled,
                                .reads = OF_SCALED,
                                .numbers = A_NUMBER(COLUMNS),
                                INTEGER_DOT},
    [KERNEL_INT4_MATMUL] = {.name = "int4_matmul",
                            .keys = KERNEL_KEYS(KERNEL_KEY(OUTPUT), KERNEL_KEY(TILE)),
                            .fixes = fix_int4_matmul,
                            .reads = OF_SCALED,
                            .numbers = SHAPE,
                            INTEGER_PRODUCT},
    [KERNEL_INT4_TOP1] = {.name = "int4_top1", .numbers = SHAPE, LARGEST_SCORES, .size = int_top1_size},
    [KERNEL_INT4_TOPK] = {.name = "int4_topk",
                          .numbers = SHAPE | A_NUMBER(TOP),
                          LARGEST_SCORES,
                          .size = int_topk_size},
    [KERNEL_TOP_JOIN] = {.name = "int4_top_join",
                         .keys = KERNEL_KEYS(KERNEL_KEY(TOP_INDEX), KERNEL_KEY(SPLIT)),
                         .fixes = fix_top_join,
                         .writes = OPERAND(Y) | OPERAND(TOP_INDEX),
                         .numbers = A_NUMBER(M) | A_NUMBER(TOP),
                         .is_empty = int_matmul_is_empty,
                         .takes = int_top_join_takes,
                         .size = int_topk_size,
                         .geometry = int_top_join_geometry,
                         .emit = emit_int_top_join,
                         .steps = tile_steps},
    [KERNEL_INT8_MATMUL] = {.name = "int8_qmatmul",
                            .keys = KERNEL_KEYS(REQUANTIZED, KERNEL_KEY(TILE)),
                            .fixes = fix_int8_matmul,
                            .reads = OF_REQUANTIZED,
                            .numbers = SHAPE | CODE_NUMBERS,
                            INTEGER_PRODUCT},
    [KERNEL_W8A8] = {.name = "w8a8_matmul",
                     .keys = KERNEL_KEYS(SCALED, EXPERTS_AND_PAIRS, ZERO_POINTS, KERNEL_KEY(TILE)),
                     .fixes = fix_w8a8,
                     .reads = OF_SCALED | OF_EXPERTS,
                     .numbers = SHAPE | ZERO_NUMBERS,
                     INTEGER_PRODUCT},
    [KERNEL_W4A8] = {.name = "w4a8_matmul",
                     .keys = KERNEL_KEYS(SCALED, EXPERTS_AND_PAIRS, KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(SCALE),
                                         KERNEL_KEY(TILE)),
                     .fixes = fix_w4a8,
                     .reads = OF_SCALED | OF_EXPERTS,
                     .numbers = SHAPE,
                     INTEGER_PRODUCT},
    [KERNEL_W4A4] = {.name = "w4a4_matmul",
                     .keys = KERNEL_KEYS(SCALED, KERNEL_KEY(TILE)),
                     .fixes = fix_w4a4,
                     .reads = OF_SCALED,
                     .numbers = SHAPE,
                     INTEGER_PRODUCT},
    [KERNEL_INT8_CONV2D] = {.name = "int8_conv2d",
                            .keys =
                                KERNEL_KEYS(REQUANTIZED, KERNEL_KEY(TILE), KERNEL_KEY(NHWC),
                                            KERNEL_KEY(WINDOW_H), KERNEL_KEY(WINDOW_W), KERNEL_KEY(WINDOW_C)),
                            .fixes = fix_conv2d,
                            .reads = OF_REQUANTIZED,
                            .writes = OPERAND(Y),
                            .numbers = SHAPE | CODE_NUMBERS | WINDOW_NUMBERS,
                            .is_empty = int_conv_is_empty,
                            .takes = int_takes,
                            .size = int_conv_size,
                            .geometry = int_conv_geometry,
                            .emit = emit_int_conv2d,
                            .steps = int_conv_steps},
    [KERNEL_SOFTMAX] = {.name = "softmax",
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(MASK),
                                            KERNEL_KEY(SLOPE), KERNEL_KEY(SINK), KERNEL_KEY(ROUNDS),
                                            KERNEL_KEY(STAGED)),
                        .fixes = softmax_fix,
                        .reads = OPERAND(X) | OPERAND(MASK) | OPERAND(SLOPE) | OPERAND(SINK),
                        .writes = OPERAND(Y),
                        .numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TABLE_ROWS) | A_NUMBER(ALPHA),
                        .is_empty = select_is_empty,
                        .takes = softmax_takes,
                        .size = softmax_size,
                        .text = softmax_text,
                        .geometry = softmax_geometry,
                        .emit = emit_softmax,
                        .steps = softmax_steps},
    [KERNEL_TOP_K] = {.name = "top_k",
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(PHASE)),
                      .fixes = top_k_fix,
                      .reads = OPERAND(X),
                      .writes = OPERAND(Y) | OPERAND(INDEX),
                      .numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(TOP) | A_NUMBER(PARTS),
                      .is_empty = select_is_empty,
                      .takes = top_k_takes,
                      .size = top_k_size,
                      .text = top_k_text,
                      .geometry = select_geometry,
                      .emit = emit_top_k,
                      .steps = top_k_steps},
    [KERNEL_SAMPLE] = {.name = "sample",
                       .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(PHASE), KERNEL_KEY(GREEDY),
                                           KERNEL_KEY(COUNTS)),
                       .fixes = sample_fix,
                       .reads = OPERAND(LOGITS) | OPERAND(SAMPLING) | OPERAND(TOKEN_COUNT) | OPERAND(SEED) |
                                OPERAND(STEP),
                       .writes = OPERAND(INDEX),
                       .numbers = A_NUMBER(M) | A_NUMBER(COLUMNS) | A_NUMBER(PARTS),
                       .is_empty = select_is_empty,
                       .takes = sample_takes,
                       .size = sample_size,
                       .text = sample_text,
                       .geometry = select_geometry,
                       .emit = emit_sample,
                       .steps = sample_steps},
    [KERNEL_ROUTE] = {.name = "route",
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(SCORES), KERNEL_KEY(EXPERT_COUNT),
                                          KERNEL_KEY(CHOSEN), KERNEL_KEY(EXPERT_GROUPS),
                                          KERNEL_KEY(KEPT_GROUPS), KERNEL_KEY(GROUP_SCORE),
                                          KERNEL_KEY(EXPERT_BIAS), KERNEL_KEY(RENORMALIZE)),
                      .fixes = route_fix,
                      .reads = OPERAND(LOGITS) | OPERAND(EXPERT_BIAS),
                      .writes = OPERAND(INDEX) | OPERAND(WEIGHT_OUT),
                      .counts = route_numbers,
                      .is_a_kernel = route_is_a_kernel,
                      .is_empty = select_is_empty,
                      .takes = route_takes,
                      .size = route_size,
                      .text = route_text,
                      .complete = route_complete,
                      .geometry = route_geometry,
                      .emit = emit_route,
                      .steps = route_steps},
    [KERNEL_COMBINE] = {.name = "combine",
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(CHOSEN),
                                            KERNEL_KEY(RESIDUAL)),
                        .reads = OPERAND(X) | OPERAND(ROW_WEIGHT) | OPERAND(RESIDUAL),
                        .writes = OPERAND(Y),
                        .numbers = A_NUMBER(M) | A_NUMBER(COLUMNS),
                        .is_empty = select_is_empty,
                        .takes = combine_takes,
                        .size = combine_size,
                        .text = combine_text,
                        .geometry = combine_geometry,
                        .emit = emit_combine,
                        .steps = combine_steps},
    [KERNEL_NORM] = {.name = "norm",
                     .keys = KERNEL_KEYS(NORM_KEYS),
                     .fixes = fix_norm,
                     .reads = NORM_READS,
                     .writes = ROW_RESULT | OPERAND(SUM),
                     NORM_ROW},
    [KERNEL_NORM_QUANTIZED] = {.name = "norm_quantized",
                               .keys = KERNEL_KEYS(NORM_KEYS, QUANTIZED_ROWS),
                               .fixes = fix_norm_quantized,
                               .reads = NORM_READS | OPERAND(GLOBAL_SCALE),
                               .writes = QUANTIZED_ROW_RESULT | OPERAND(SUM),
                               NORM_ROW},
    [KERNEL_POINTWISE] = {.name = "pointwise",
                          .keys = KERNEL_KEYS(POINTWISE_KEYS),
                          .fixes = fix_pointwise,
                          .reads = OPERAND(X) | OPERAND(B),
                          .writes = ROW_RESULT,
                          POINTWISE_ROW},
    [KERNEL_POINTWISE_QUANTIZED] = {.name = "pointwise_quantized",
                                    .keys = KERNEL_KEYS(POINTWISE_KEYS, QUANTIZED_ROWS),
                                    .fixes = fix_pointwise_quantized,
                                    .reads = OPERAND(X) | OPERAND(B) | OPERAND(GLOBAL_SCALE),
                                    .writes = QUANTIZED_ROW_RESULT,
                                    POINTWISE_ROW},
    [KERNEL_ROPE] = {.name = "rope",
                     .keys = KERNEL_KEYS(KV_KEYS_AND_ROPE, KERNEL_KEY(CACHE)),
                     .fixes = fix_rope,
                     ROPE_ROW},
    [KERNEL_ROPE_QUANTIZED] = {.name = "rope_quantized",
                               .keys =
                                   KERNEL_KEYS(KV_KEYS_AND_ROPE, KERNEL_KEY(KV_SCALES),
                                               KERNEL_KEY(SCALES_BY_HEAD), KERNEL_KEY(GROUP_SIZE),
                                               KERNEL_KEY(SCALE), KERNEL_KEY(CODE), KERNEL_KEY(NIBBLE_ORDER),
                                               KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION), KERNEL_KEY(FLOOR)),
                               .fixes = fix_rope_quantized,
                               ROPE_ROW},
    [KERNEL_COPY] = {.name = "copy",
                     .keys =
                         KERNEL_KEYS(KERNEL_KEY(FROM), KERNEL_KEY(TO), KERNEL_KEY(WAY), KERNEL_KEY(LANES)),
                     .fixes = fix_copy,
                     .reads = OPERAND(X),
                     .writes = OPERAND(Y),
                     .numbers = A_NUMBER(M),
                     .counts = copy_numbers,
                     .is_a_kernel = copy_is_a_kernel,
                     .is_empty = copy_is_empty,
                     .size = copy_size,
                     .text = copy_text,
                     .complete = copy_complete,
                     .geometry = copy_geometry,
                     .emit = emit_copy,
                     .steps = copy_steps},
    [KERNEL_GATHER] = {.name = "gather", MOVED_ROWS, .emit = emit_gather},
    [KERNEL_SCATTER] = {.name = "scatter", MOVED_ROWS, .emit = emit_scatter},
    [KERNEL_ATTENTION] = {.name = "attention",
                          .keys = KERNEL_KEYS(ATTENTION_KEYS, KERNEL_KEY(CACHE)),
                          .fixes = fix_attention,
                          ATTENTION_ROW},
    [KERNEL_ATTENTION_QUANTIZED] = {.name = "attention_quantized",
                                    .keys = KERNEL_KEYS(ATTENTION_KEYS, KERNEL_KEY(KV_SCALES),
                                                        KERNEL_KEY(SCALES_BY_HEAD), KERNEL_KEY(GROUP_SIZE),
                                                        KERNEL_KEY(SCALE), KERNEL_KEY(CODE),
                                                        KERNEL_KEY(NIBBLE_ORDER)),
                                    .fixes = fix_attention_quantized,
                                    ATTENTION_ROW},
    [KERNEL_TRANSPOSE] = {.name = "transpose_bytes",
                          .reads = OPERAND(CODES),
                          .writes = OPERAND(REPACKED),
                          .numbers = A_NUMBER(ROWS) | A_NUMBER(COLUMNS),
                          .size = transpose_size,
                          .geometry = transpose_geometry,
                          .emit = emit_transpose,
                          .steps = transpose_steps},
};
