/* The table of operations. */
#include "kernels/operations.h"

#include "kernels/quant/quant.h"
#include "kernels/train/train.h"

#define OPERAND(name) (1u << QDNN_OPERAND_##name)

enum {
    GROUPING = KERNEL_KEY_GROUPS | KERNEL_KEY_GROUP_SIZE | KERNEL_KEY_GROUP_ROWS | KERNEL_KEY_CHANNELS |
               KERNEL_KEY_SCALE_ORDER | KERNEL_KEY_SCALE_SWIZZLE,
    SIDECARS = GROUPING | KERNEL_KEY_SCALE | KERNEL_KEY_GLOBAL_SCALE | KERNEL_KEY_ZERO,
    ZEROS = KERNEL_KEY_ZERO_PACKED | KERNEL_KEY_ZERO_MINUS_ONE | KERNEL_KEY_ZERO_WRAPS,
    STORED = SIDECARS | ZEROS | KERNEL_KEY_NESTED | KERNEL_KEY_GROUP_INDEX,
    CODES = KERNEL_KEY_CODE | KERNEL_KEY_LAYOUT | KERNEL_KEY_NIBBLE_ORDER,
    TRAINING = KERNEL_KEY_BITS | KERNEL_KEY_GROUP_SIZE | KERNEL_KEY_CHANNELS,
};

/* A global scale stands over E4M3 scales; nested scales come as a list of f32. */
static void fix_global(kernel_spec *spec)
{
    spec->scale = QDNN_SCALE_E4M3;
    if (!spec->global_scale)
        spec->global_scale = 1;
}

/* Only the bytes of nested scales are quotients. */
static void fix_scale(kernel_spec *spec)
{
    if (!spec->nested)
        spec->division = QDNN_DIVIDE_EXACT;
}

static void fix_nest(kernel_spec *spec)
{
    spec->nested = 1;
}

const operation_row operation_rows[KERNEL_OPERATIONS] = {
    [KERNEL_SCALE] = {.name = "scale",
                      .keys = KERNEL_KEY_DATA | SIDECARS | ZEROS | KERNEL_KEY_LAYOUT |
                              KERNEL_KEY_GROUP_INDEX | KERNEL_KEY_CODE | KERNEL_KEY_FLOOR | KERNEL_KEY_RANGE |
                              KERNEL_KEY_MX_ROUNDING | KERNEL_KEY_NESTED | KERNEL_KEY_DIVISION,
                      .fixes = fix_scale,
                      .reads = OPERAND(X) | OPERAND(NESTED_MAP) | OPERAND(NESTED_OFFSET),
                      .writes =
                          OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) | OPERAND(NESTED_SCALE),
                      .geometry = scale_geometry,
                      .emit = emit_scale,
                      .steps = scale_steps},
    [KERNEL_QUANTIZE] = {.name = "quantize",
                         .keys = KERNEL_KEY_DATA | STORED | CODES | KERNEL_KEY_ROUNDING | KERNEL_KEY_DIVISION,
                         .reads = OPERAND(X) | OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) |
                                  OPERAND(NESTED_MAP) | OPERAND(NESTED_SCALE) | OPERAND(NESTED_OFFSET) |
                                  OPERAND(GROUP_INDEX),
                         .writes = OPERAND(CODES),
                         .geometry = tile_geometry,
                         .emit = emit_quantize,
                         .steps = tile_steps},
    [KERNEL_DEQUANTIZE] = {.name = "dequantize",
                           .keys = KERNEL_KEY_DATA | STORED | CODES | KERNEL_KEY_ROW_INDEX,
                           .reads = OPERAND(CODES) | OPERAND(SCALE) | OPERAND(ZERO) | OPERAND(GLOBAL_SCALE) |
                                    OPERAND(NESTED_MAP) | OPERAND(NESTED_SCALE) | OPERAND(NESTED_OFFSET) |
                                    OPERAND(GROUP_INDEX) | OPERAND(ROW_INDEX),
                           .writes = OPERAND(Y),
                           .geometry = tile_geometry,
                           .emit = emit_dequantize,
                           .steps = tile_steps},
    [KERNEL_DYNAMIC] = {.name = "quantize_dynamic",
                        .keys = KERNEL_KEY_DATA | SIDECARS | ZEROS | KERNEL_KEY_GROUP_INDEX | CODES |
                                KERNEL_KEY_ROUNDING | KERNEL_KEY_DIVISION | KERNEL_KEY_FLOOR |
                                KERNEL_KEY_RANGE | KERNEL_KEY_MX_ROUNDING | KERNEL_KEY_ROW_INDEX,
                        .reads = OPERAND(X) | OPERAND(GLOBAL_SCALE) | OPERAND(ROW_INDEX),
                        .writes = OPERAND(CODES) | OPERAND(SCALE) | OPERAND(ZERO),
                        .is_a_kernel = dynamic_is_a_kernel,
                        .geometry = dynamic_geometry,
                        .emit = emit_dynamic,
                        .steps = dynamic_steps},
    [KERNEL_REPACK] = {.name = "repack",
                       .keys = CODES | KERNEL_KEY_TO_LAYOUT | KERNEL_KEY_TO_NIBBLE_ORDER | KERNEL_KEY_TO_CODE,
                       .reads = OPERAND(CODES),
                       .writes = OPERAND(REPACKED),
                       .geometry = tile_geometry,
                       .emit = emit_repack,
                       .steps = tile_steps},
    [KERNEL_GLOBAL] = {.name = "global",
                       .keys = KERNEL_KEY_DATA | KERNEL_KEY_FLOOR | KERNEL_KEY_GLOBAL_SCALE,
                       .fixes = fix_global,
                       .reads = OPERAND(X),
                       .writes = OPERAND(GLOBAL_SCALE),
                       .geometry = global_geometry,
                       .emit = emit_global,
                       .steps = tile_steps},
    [KERNEL_NEST] = {.name = "nest",
                     .keys = KERNEL_KEY_DIVISION,
                     .fixes = fix_nest,
                     .reads = OPERAND(X) | OPERAND(NESTED_MAP) | OPERAND(NESTED_OFFSET),
                     .writes = OPERAND(SCALE) | OPERAND(NESTED_SCALE),
                     .geometry = nest_geometry,
                     .emit = emit_nest,
                     .steps = tile_steps},
    [KERNEL_RANGE] = {.name = "range",
                      .keys =
                          KERNEL_KEY_DATA | KERNEL_KEY_GROUP_SIZE | KERNEL_KEY_CHANNELS | KERNEL_KEY_RANGE,
                      .reads = OPERAND(X),
                      .geometry = range_geometry,
                      .emit = emit_range,
                      .steps = tile_steps},
    [KERNEL_FAKE_QUANTIZE] = {.name = "fake_quantize",
                              .keys =
                                  TRAINING | KERNEL_KEY_ROUNDING | KERNEL_KEY_SCALE_MODE | KERNEL_KEY_DECAY,
                              .fixes = fix_decay,
                              .reads = OPERAND(X) | OPERAND(STATE),
                              .writes = OPERAND(Y),
                              .geometry = sweep_geometry,
                              .emit = emit_sweep,
                              .steps = fake_quantize_steps,
                              .bound = fake_quantize_bound},
    [KERNEL_FAKE_QUANTIZE_BACKWARD] = {.name = "fake_quantize_backward",
                                       .keys = TRAINING | KERNEL_KEY_ROUNDING | KERNEL_KEY_SCALE_MODE |
                                               KERNEL_KEY_BACKWARD,
                                       .fixes = fix_identity,
                                       .reads = OPERAND(X) | OPERAND(STATE) | OPERAND(DY),
                                       .writes = OPERAND(DX),
                                       .geometry = sweep_geometry,
                                       .emit = emit_sweep,
                                       .steps = fake_quantize_backward_steps,
                                       .takes = backward_takes,
                                       .bound = backward_bound},
    [KERNEL_LSQ] = {.name = "lsq",
                    .keys = TRAINING | KERNEL_KEY_ROUNDING,
                    .reads = OPERAND(X) | OPERAND(SCALE),
                    .writes = OPERAND(Y),
                    .geometry = sweep_geometry,
                    .emit = emit_sweep,
                    .steps = tile_steps},
    [KERNEL_LSQ_BACKWARD] = {.name = "lsq_backward",
                             .keys = TRAINING | KERNEL_KEY_ROUNDING | KERNEL_KEY_GRADIENT_FACTOR,
                             .reads = OPERAND(X) | OPERAND(SCALE) | OPERAND(DY),
                             .writes = OPERAND(DX) | OPERAND(DSCALE),
                             .geometry = lsq_backward_geometry,
                             .emit = emit_lsq_backward,
                             .steps = lsq_backward_steps},
    [KERNEL_TRAIN_SCALE] = {.name = "train_scale",
                            .keys = KERNEL_KEY_BITS | KERNEL_KEY_SCALE_MODE | KERNEL_KEY_DECAY,
                            .fixes = fix_decay,
                            .reads = OPERAND(X),
                            .writes = OPERAND(STATE),
                            .geometry = train_scale_geometry,
                            .emit = emit_train_scale,
                            .steps = tile_steps},
    [KERNEL_LONG_SUM] = {.name = "long_sum",
                         .keys = TRAINING | KERNEL_KEY_GRADIENT_FACTOR,
                         .fixes = fix_sum,
                         .reads = OPERAND(X),
                         .writes = OPERAND(DSCALE),
                         .numbers = 1 << NUMBER_N | 1 << NUMBER_ROWS | 1 << NUMBER_COLUMNS,
                         .geometry = long_sum_geometry,
                         .emit = emit_long_sum,
                         .steps = tile_steps},
};
