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
#define INTEGER_DOT                                                                                          \
    .describe = describe_int_dot, .is_empty = int_matmul_is_empty, .geometry = int_dot_geometry,             \
    .emit = emit_int_dot
#define INTEGER_PRODUCT                                                                                      \
    .describe = describe_int_matmul, .is_empty = int_matmul_is_empty, .bound = int_bound,                    \
    .geometry = int_geometry, .emit = emit_int_matmul, .steps = int_matmul_steps
#define LARGEST_SCORES                                                                                       \
    .describe = describe_int_top,                                                                            \
    .keys = KERNEL_KEYS(KERNEL_KEY(TOP_INDEX), KERNEL_KEY(TILE), KERNEL_KEY(SPLIT)), .fixes = fix_int4_top,  \
    .is_empty = int_matmul_is_empty, .geometry = int_top_geometry, .emit = emit_int_top,                     \
    .steps = int_top_steps

/* Operations on rows: on plain tensors, or with a quantized result. */
#define QUANTIZED_ROWS                                                                                       \
    KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(SCALE), KERNEL_KEY(GLOBAL_SCALE), KERNEL_KEY(CODE),                   \
        KERNEL_KEY(NIBBLE_ORDER), KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION), KERNEL_KEY(FLOOR),             \
        KERNEL_KEY(MX_ROUNDING)
#define ROW_KEYS KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(ROW_SIZE), KERNEL_KEY(HEADS)
#define NORM_KEYS                                                                                            \
    ROW_KEYS, KERNEL_KEY(NORM), KERNEL_KEY(WEIGHT), KERNEL_KEY(PLUS_ONE), KERNEL_KEY(SUM), KERNEL_KEY(BIAS)
#define NORM_ROW                                                                                             \
    .describe = describe_norm, .is_a_kernel = norm_is_a_kernel, .is_empty = rows_are_empty,                  \
    .complete = rows_complete, .geometry = norm_geometry, .emit = emit_norm
#define POINTWISE_KEYS                                                                                       \
    ROW_KEYS, KERNEL_KEY(POINTWISE), KERNEL_KEY(FUNCTION), KERNEL_KEY(B), KERNEL_KEY(B_TYPE)
#define POINTWISE_ROW                                                                                        \
    .describe = describe_pointwise, .is_a_kernel = pointwise_is_a_kernel, .is_empty = rows_are_empty,        \
    .complete = rows_complete, .geometry = pointwise_geometry, .emit = emit_pointwise

/* Rope, and KV caches. */
#define KV_KEYS_AND_ROPE                                                                                     \
    KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(HEAD_SIZE), KERNEL_KEY(QUERIES),                        \
        KERNEL_KEY(ROTARY_FIRST), KERNEL_KEY(ROTARY), KERNEL_KEY(NEIGHBOURS), KERNEL_KEY(SECTIONS),          \
        KERNEL_KEY(SECTION_0), KERNEL_KEY(SECTION_1), KERNEL_KEY(SECTION_2), KERNEL_KEY(SECTION_3),          \
        KERNEL_KEY(BY_SECTION), KERNEL_KEY(KV_SLOTS), KERNEL_KEY(KV_HEADS), KERNEL_KEY(KEY_SIZE),            \
        KERNEL_KEY(VALUE_SIZE)
#define ROPE_ROW                                                                                             \
    .describe = describe_rope, .is_a_kernel = rope_is_a_kernel, .is_empty = rope_is_empty,                   \
    .complete = rope_complete, .geometry = rope_geometry, .emit = emit_rope

/* Rows of a table by index: read, and written. */
#define MOVED_ROWS                                                                                           \
    .describe = describe_move_rows,                                                                          \
    .keys = KERNEL_KEYS(KERNEL_KEY(FROM), KERNEL_KEY(TO), KERNEL_KEY(LANES), KERNEL_KEY(INDEX_TYPE)),        \
    .fixes = fix_move_rows, .is_a_kernel = copy_is_a_kernel, .is_empty = copy_is_empty,                      \
    .complete = move_rows_complete, .geometry = copy_geometry

#define ATTENTION_ROW                                                                                        \
    .describe = describe_attention, .is_a_kernel = attention_is_a_kernel, .is_empty = attention_is_empty,    \
    .complete = attention_complete, .geometry = attention_geometry, .emit = emit_attention,                  \
    .steps = attention_steps, .bound = attention_bound

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
                      .describe = describe_scale,
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), SIDECARS, ZEROS, KERNEL_KEY(LAYOUT),
                                          KERNEL_KEY(GROUP_INDEX), KERNEL_KEY(CODE), KERNEL_KEY(FLOOR),
                                          KERNEL_KEY(RANGE), KERNEL_KEY(MX_ROUNDING), KERNEL_KEY(NESTED),
                                          KERNEL_KEY(DIVISION)),
                      .fixes = fix_scale,
                      .geometry = scale_geometry,
                      .emit = emit_scale,
                      .steps = scale_steps},
    [KERNEL_QUANTIZE] = {.name = "quantize",
                         .describe = describe_quantize,
                         .keys = KERNEL_KEYS(KERNEL_KEY(DATA), STORED, CODES, KERNEL_KEY(GROUP_TABLE),
                                             KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION)),
                         .geometry = tile_geometry,
                         .emit = emit_quantize,
                         .steps = tile_steps},
    [KERNEL_DEQUANTIZE] = {.name = "dequantize",
                           .describe = describe_dequantize,
                           .keys = KERNEL_KEYS(KERNEL_KEY(DATA), STORED, CODES, KERNEL_KEY(GROUP_TABLE),
                                               KERNEL_KEY(ROW_INDEX)),
                           .geometry = tile_geometry,
                           .emit = emit_dequantize,
                           .steps = tile_steps},
    [KERNEL_DYNAMIC] = {.name = "quantize_dynamic",
                        .describe = describe_dynamic,
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), SIDECARS, ZEROS, KERNEL_KEY(GROUP_INDEX), CODES,
                                            KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION), KERNEL_KEY(FLOOR),
                                            KERNEL_KEY(RANGE), KERNEL_KEY(MX_ROUNDING), KERNEL_KEY(ROW_INDEX),
                                            KERNEL_KEY(INDEX_TYPE), KERNEL_KEY(STRIDED)),
                        .fixes = fix_dynamic,
                        .is_a_kernel = dynamic_is_a_kernel,
                        .geometry = dynamic_geometry,
                        .emit = emit_dynamic,
                        .steps = dynamic_steps},
    [KERNEL_QUANTIZE_ROWS] = {.name = "quantize_rows",
                              .describe = describe_quantize_rows,
                              .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(INDEX_TYPE)),
                              .fixes = fix_quantize_rows,
                              .geometry = tile_geometry,
                              .emit = emit_block_quantize,
                              .steps = tile_steps},
    [KERNEL_DEQUANTIZE_TRANSPOSED] = {.name = "dequantize_transposed",
                                      .describe = describe_block_transpose,
                                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA)),
                                      .is_empty = block_transpose_is_empty,
                                      .complete = block_transpose_complete,
                                      .geometry = block_transpose_geometry,
                                      .emit = emit_block_transpose},
    [KERNEL_REPACK] = {.name = "repack",
                       .describe = describe_repack,
                       .keys = KERNEL_KEYS(CODES, KERNEL_KEY(TO_LAYOUT), KERNEL_KEY(TO_NIBBLE_ORDER),
                                           KERNEL_KEY(TO_CODE)),
                       .geometry = repack_geometry,
                       .emit = emit_repack},
    [KERNEL_PREPACK] = {.name = "prepack",
                        .describe = describe_prepack,
                        .keys = KERNEL_KEYS(CODES, KERNEL_KEY(REDUCTION), KERNEL_KEY(UNPACK)),
                        .is_a_kernel = prepack_is_a_kernel,
                        .geometry = prepack_geometry,
                        .emit = emit_prepack},
    [KERNEL_MATMUL] = {.name = "matmul",
                       .describe = describe_matmul,
                       .keys = KERNEL_KEYS(PRODUCT_KEYS, STORED, CODES),
                       .fixes = gemm_fix,
                       .is_a_kernel = gemm_is_a_kernel,
                       .is_empty = gemm_is_empty,
                       .geometry = gemm_geometry,
                       .emit = emit_gemm,
                       .steps = gemm_steps,
                       .bound = gemm_bound},
    [KERNEL_ROUTE_ROWS] = {.name = "route_rows",
                           .describe = describe_route_rows,
                           .keys = KERNEL_KEYS(KERNEL_KEY(TILE_ROWS)),
                           .geometry = routes_geometry,
                           .emit = emit_routes,
                           .steps = routes_steps,
                           .is_empty = gemm_is_empty},
    [KERNEL_GLOBAL] = {.name = "global",
                       .describe = describe_global,
                       .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(FLOOR), KERNEL_KEY(GLOBAL_SCALE)),
                       .fixes = fix_global,
                       .geometry = global_geometry,
                       .emit = emit_global,
                       .steps = tile_steps},
    [KERNEL_NEST] = {.name = "nest",
                     .describe = describe_nest,
                     .keys = KERNEL_KEYS(KERNEL_KEY(DIVISION)),
                     .fixes = fix_nest,
                     .geometry = nest_geometry,
                     .emit = emit_nest,
                     .steps = tile_steps},
    [KERNEL_RANGE] = {.name = "range",
                      .describe = describe_range,
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(CHANNELS),
                                          KERNEL_KEY(RANGE)),
                      .geometry = range_geometry,
                      .emit = emit_range,
                      .steps = tile_steps},
    [KERNEL_FAKE_QUANTIZE] = {.name = "fake_quantize",
                              .describe = describe_fake_quantize,
                              .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING), KERNEL_KEY(SCALE_MODE),
                                                  KERNEL_KEY(DECAY)),
                              .fixes = fix_decay,
                              .geometry = sweep_geometry,
                              .emit = emit_sweep,
                              .steps = fake_quantize_steps,
                              .bound = fake_quantize_bound},
    [KERNEL_FAKE_QUANTIZE_BACKWARD] = {.name = "fake_quantize_backward",
                                       .describe = describe_fake_quantize_backward,
                                       .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING),
                                                           KERNEL_KEY(SCALE_MODE), KERNEL_KEY(BACKWARD)),
                                       .fixes = fix_unscaled,
                                       .geometry = sweep_geometry,
                                       .emit = emit_sweep,
                                       .steps = fake_quantize_backward_steps,
                                       .bound = backward_bound},
    [KERNEL_LSQ] = {.name = "lsq",
                    .describe = describe_lsq,
                    .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING)),
                    .geometry = sweep_geometry,
                    .emit = emit_sweep,
                    .steps = tile_steps},
    [KERNEL_LSQ_BACKWARD] = {.name = "lsq_backward",
                             .describe = describe_lsq_backward,
                             .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(ROUNDING), KERNEL_KEY(GRADIENT_FACTOR)),
                             .geometry = lsq_backward_geometry,
                             .emit = emit_lsq_backward,
                             .steps = lsq_backward_steps},
    [KERNEL_TRAIN_SCALE] = {.name = "train_scale",
                            .describe = describe_train_scale,
                            .keys = KERNEL_KEYS(KERNEL_KEY(BITS), KERNEL_KEY(SCALE_MODE), KERNEL_KEY(DECAY)),
                            .fixes = fix_decay,
                            .geometry = train_scale_geometry,
                            .emit = emit_train_scale,
                            .steps = tile_steps},
    [KERNEL_LONG_SUM] = {.name = "long_sum",
                         .describe = describe_long_sum,
                         .keys = KERNEL_KEYS(TRAINING, KERNEL_KEY(GRADIENT_FACTOR)),
                         .fixes = fix_sum,
                         .geometry = long_sum_geometry,
                         .emit = emit_long_sum,
                         .steps = tile_steps},
    [KERNEL_INT4_DOT] = {.name = "int4_dot", .fixes = fix_int4_dot, INTEGER_DOT},
    [KERNEL_INT4_DOT_SCALED] = {.name = "int4_dot_scaled",
                                .keys = KERNEL_KEYS(KERNEL_KEY(OUTPUT)),
                                .fixes = fix_int4_dot_scaled,
                                INTEGER_DOT},
    [KERNEL_INT4_MATMUL] = {.name = "int4_matmul",
                            .keys = KERNEL_KEYS(KERNEL_KEY(OUTPUT), KERNEL_KEY(TILE)),
                            .fixes = fix_int4_matmul,
                            INTEGER_PRODUCT},
    [KERNEL_INT4_TOP1] = {.name = "int4_top1", LARGEST_SCORES},
    [KERNEL_INT4_TOPK] = {.name = "int4_topk", LARGEST_SCORES},
    [KERNEL_TOP_JOIN] = {.name = "int4_top_join",
                         .describe = describe_int_top_join,
                         .keys = KERNEL_KEYS(KERNEL_KEY(TOP_INDEX), KERNEL_KEY(SPLIT)),
                         .fixes = fix_top_join,
                         .is_empty = int_matmul_is_empty,
                         .geometry = int_top_join_geometry,
                         .emit = emit_int_top_join,
                         .steps = tile_steps},
    [KERNEL_INT8_MATMUL] = {.name = "int8_qmatmul",
                            .keys = KERNEL_KEYS(REQUANTIZED, KERNEL_KEY(TILE)),
                            .fixes = fix_int8_matmul,
                            INTEGER_PRODUCT},
    [KERNEL_W8A8] = {.name = "w8a8_matmul",
                     .keys = KERNEL_KEYS(SCALED, EXPERTS_AND_PAIRS, ZERO_POINTS, KERNEL_KEY(TILE)),
                     .fixes = fix_w8a8,
                     INTEGER_PRODUCT},
    [KERNEL_W4A8] = {.name = "w4a8_matmul",
                     .keys = KERNEL_KEYS(SCALED, EXPERTS_AND_PAIRS, KERNEL_KEY(GROUP_SIZE), KERNEL_KEY(SCALE),
                                         KERNEL_KEY(TILE)),
                     .fixes = fix_w4a8,
                     INTEGER_PRODUCT},
    [KERNEL_W4A4] = {.name = "w4a4_matmul",
                     .keys = KERNEL_KEYS(SCALED, KERNEL_KEY(TILE)),
                     .fixes = fix_w4a4,
                     INTEGER_PRODUCT},
    [KERNEL_INT8_CONV2D] = {.name = "int8_conv2d",
                            .describe = describe_int_conv,
                            .keys =
                                KERNEL_KEYS(REQUANTIZED, KERNEL_KEY(TILE), KERNEL_KEY(NHWC),
                                            KERNEL_KEY(WINDOW_H), KERNEL_KEY(WINDOW_W), KERNEL_KEY(WINDOW_C)),
                            .fixes = fix_conv2d,
                            .is_empty = int_conv_is_empty,
                            .geometry = int_conv_geometry,
                            .emit = emit_int_conv2d,
                            .steps = int_conv_steps},
    [KERNEL_SOFTMAX] = {.name = "softmax",
                        .describe = describe_softmax,
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(MASK),
                                            KERNEL_KEY(SLOPE), KERNEL_KEY(SINK), KERNEL_KEY(ROUNDS),
                                            KERNEL_KEY(STAGED)),
                        .fixes = softmax_fix,
                        .is_empty = select_is_empty,
                        .geometry = softmax_geometry,
                        .emit = emit_softmax,
                        .steps = softmax_steps},
    [KERNEL_TOP_K] = {.name = "top_k",
                      .describe = describe_top_k,
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(PHASE)),
                      .fixes = top_k_fix,
                      .is_empty = select_is_empty,
                      .geometry = select_geometry,
                      .emit = emit_top_k,
                      .steps = top_k_steps},
    [KERNEL_SAMPLE] = {.name = "sample",
                       .describe = describe_sample,
                       .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(PHASE), KERNEL_KEY(GREEDY),
                                           KERNEL_KEY(COUNTS)),
                       .fixes = sample_fix,
                       .is_empty = select_is_empty,
                       .geometry = select_geometry,
                       .emit = emit_sample,
                       .steps = sample_steps},
    [KERNEL_ROUTE] = {.name = "route",
                      .describe = describe_route,
                      .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(SCORES), KERNEL_KEY(EXPERT_COUNT),
                                          KERNEL_KEY(CHOSEN), KERNEL_KEY(EXPERT_GROUPS),
                                          KERNEL_KEY(KEPT_GROUPS), KERNEL_KEY(GROUP_SCORE),
                                          KERNEL_KEY(EXPERT_BIAS), KERNEL_KEY(RENORMALIZE)),
                      .fixes = route_fix,
                      .is_a_kernel = route_is_a_kernel,
                      .is_empty = select_is_empty,
                      .complete = route_complete,
                      .geometry = route_geometry,
                      .emit = emit_route},
    [KERNEL_COMBINE] = {.name = "combine",
                        .describe = describe_combine,
                        .keys = KERNEL_KEYS(KERNEL_KEY(DATA), KERNEL_KEY(OUTPUT), KERNEL_KEY(CHOSEN),
                                            KERNEL_KEY(RESIDUAL)),
                        .is_empty = select_is_empty,
                        .geometry = combine_geometry,
                        .emit = emit_combine},
    [KERNEL_NORM] = {.name = "norm", .keys = KERNEL_KEYS(NORM_KEYS), .fixes = fix_norm, NORM_ROW},
    [KERNEL_NORM_QUANTIZED] = {.name = "norm_quantized",
                               .keys = KERNEL_KEYS(NORM_KEYS, QUANTIZED_ROWS),
                               .fixes = fix_norm_quantized,
                               NORM_ROW},
    [KERNEL_POINTWISE] = {.name = "pointwise",
                          .keys = KERNEL_KEYS(POINTWISE_KEYS),
                          .fixes = fix_pointwise,
                          POINTWISE_ROW},
    [KERNEL_POINTWISE_QUANTIZED] = {.name = "pointwise_quantized",
                                    .keys = KERNEL_KEYS(POINTWISE_KEYS, QUANTIZED_ROWS),
                                    .fixes = fix_pointwise_quantized,
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
                     .describe = describe_copy,
                     .keys =
                         KERNEL_KEYS(KERNEL_KEY(FROM), KERNEL_KEY(TO), KERNEL_KEY(WAY), KERNEL_KEY(LANES)),
                     .fixes = fix_copy,
                     .is_a_kernel = copy_is_a_kernel,
                     .is_empty = copy_is_empty,
                     .complete = copy_complete,
                     .geometry = copy_geometry,
                     .emit = emit_copy},
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
                          .describe = describe_transpose,
                          .geometry = transpose_geometry,
                          .emit = emit_transpose}};
