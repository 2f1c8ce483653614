/* The kernels that compute a product by the exact contract, launched directly: whichever is chosen,
 * whatever its tiles, however its lanes are dealt out, on every SM, in every order of warps and blocks and in
 * every batch, the bits of a row are those of host_ref. A kernel that is added to kernel_product takes part
 * automatically. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/step_launch.h"
#include "driver/api/request.h"
#include "formats/sample.h"
#include "parity/matmul.h"
#include "device/under_test.h"
#include "device/machine.h"
#include "support/checks.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

/* ---- Ways to compute a product ---- */

typedef struct way {
    kernel_product product;
    uint64_t tile_rows, split;
} way;
enum { WAYS_MAX = 128 };

static kernel_spec spec_of_way(const kernel_spec *spec, const way *w)
{
    kernel_spec own = *spec;
    own.product.kernel = w->product;
    own.product.tile_rows = w->tile_rows;
    own.product.split = w->split;
    return own;
}

/* All products of mode exact but the one that is the second step of another. */
static int ways_of(const kernel_row *row, const kernel_spec *spec, kernel_problem problem, int64_t m,
                   way ways[WAYS_MAX])
{
    problem.m = (uint64_t)m;
    int count = 0;
    for (int product = 0; product < KERNEL_PRODUCT_TILE; product++)
        for (uint64_t rows = 1; rows <= 128 && product != KERNEL_PRODUCT_JOIN; rows *= 2)
            for (uint64_t split = 1;
                 split <= (spec->product.grouped && product == KERNEL_PRODUCT_LANEWISE ? 1 : 32) &&
                 count < WAYS_MAX;
                 split *= 2) {
                ways[count] = (way){(kernel_product)product, rows, split};
                kernel_spec own = spec_of_way(spec, &ways[count]);
                count += kernel_product_fits(row, &own, &problem);
            }
    return count;
}

/* ---- A product ---- */

typedef struct scene {
    product_case c;
    product_operands o;
    request r;
    way ways[WAYS_MAX];
    int n_ways;
    bool few_blocks;   /* one for all tiles of rows, where the kernel loops over them */
    size_t code_shift; /* bytes from an aligned address to the codes; c.shift: to x */
} scene;

static bool scene_begin(scene *s, const product_case *c)
{
    char text[1200];
    quant_descriptors d = {0};
    *s = (scene){.c = *c, .code_shift = c->shift};
    product_case_text(c, text, sizeof text);
    test_push_note("%s", text);
    bool ok = product_operands_make(c, &s->o) && quant_descriptors_make(&c->weights, &d) &&
              CHECK_QDNN(request_make(KERNEL_MATMUL, d.tensor, d.quant, &s->r));
    quant_descriptors_free(&d);
    const ref_product *p = &s->o.product;
    kernel_spec *spec = &s->r.spec;
    spec->data = c->x;
    spec->epilogue.output = c->y;
    spec->product.reduction = c->k_rows ? KERNEL_K_ROWS : KERNEL_K_COLUMNS;
    spec->epilogue.alpha = c->alpha;
    spec->epilogue.bias = c->bias;
    spec->epilogue.activation = c->activation;
    spec->epilogue.gated = c->gated;
    spec->epilogue.residual = c->residual;
    spec->product.grouped = c->experts > 0;
    spec->epilogue.row_weight = c->row_weight;
    s->r.problem = (kernel_problem){.rows = (uint64_t)c->weights.dims[0],
                                    .columns = (uint64_t)c->weights.dims[1],
                                    .x_stride = (uint64_t)p->x_stride,
                                    .y_stride = (uint64_t)p->y_stride,
                                    .experts = (uint64_t)c->experts,
                                    .alpha = p->alpha_number};
    s->n_ways = ok ? ways_of(s->r.row, spec, s->r.problem, c->m, s->ways) : 0;
    return ok && CHECK(s->n_ways > 0);
}

static void scene_end(scene *s)
{
    product_operands_free(&s->o);
    test_pop_note();
}

/* Bytes before a row of an operand; only x, y and the residual have rows of their own. */
static size_t bytes_before(const scene *s, int operand, int64_t row)
{
    const ref_product *p = &s->o.product;
    if (operand == QDNN_OPERAND_X)
        return (size_t)(row * p->x_stride) * ref_scalar_size(p->x);
    if (operand == QDNN_OPERAND_Y || operand == QDNN_OPERAND_RESIDUAL)
        return (size_t)(row * p->y_stride) * ref_scalar_size(p->y);
    return 0;
}

/* Whether a block goes on to further tiles of rows, so that a grid may have fewer than there are. */
static bool loops_over_rows(kernel_product product)
{
    return product != KERNEL_PRODUCT_GEMV && product != KERNEL_PRODUCT_RAGGED;
}

/* Rows [first, first + m) by one way: the whole of y then, the other rows as they were. */
static bool compute(machine *vm, const scene *s, const way *w, int64_t first, int64_t m, uint8_t *y)
{
    ptxvm_address at[QDNN_OPERAND_COUNT] = {0}, base[QDNN_OPERAND_COUNT] = {0}, workspace = 0;
    kernel_problem problem = s->r.problem;
    kernel_spec spec = spec_of_way(&s->r.spec, w);
    kernel_steps steps;
    bool ok = true;
    problem.m = (uint64_t)m;
    kernel_steps_of(s->r.row, KERNEL_NORMAL(s->r.row, &spec), &problem, &steps);
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (s->o.host[i] && s->o.bytes[i]) {
            const size_t shift = i == QDNN_OPERAND_X       ? s->c.shift
                                 : i == QDNN_OPERAND_CODES ? s->code_shift
                                                           : 0;
            ok = machine_alloc(vm, s->o.bytes[i] + shift, &base[i]) == PTXVM_OK &&
                 machine_write(vm, base[i] + shift, s->o.host[i], s->o.bytes[i]) == PTXVM_OK;
            at[i] = base[i] + shift + bytes_before(s, i, first);
        }
    if (s->c.in_place)
        at[QDNN_OPERAND_RESIDUAL] = at[QDNN_OPERAND_Y];
    if (steps.workspace)
        ok = ok && machine_alloc(vm, steps.workspace, &workspace) == PTXVM_OK;
    ok = CHECK(ok);
    for (int i = 0; i < steps.count && ok; i++) {
        if (s->few_blocks && loops_over_rows(steps.at[i].spec.product.kernel))
            steps.at[i].grid[1] = 1;
        ok = step_launch(vm, &steps.at[i], at, workspace);
    }
    ok = ok && CHECK(machine_read(vm, y, base[QDNN_OPERAND_Y], s->o.bytes[QDNN_OPERAND_Y]) == PTXVM_OK);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (base[i])
            machine_free(vm, base[i]);
    if (workspace)
        machine_free(vm, workspace);
    return ok;
}

static void way_note(const way *w, const char *sm)
{
    test_push_note("product %d, tiles of %d rows, split %d, %s", (int)w->product, (int)w->tile_rows,
                   (int)w->split, sm);
}

/* All rows, compared with host_ref. */
static bool check_way(const scene *s, const way *w, const char *sm, uint64_t seed, unsigned checks)
{
    ptxvm_config config = {.sm = sm, .seed = seed, .checks = checks};
    machine *vm = NULL;
    const size_t bytes = s->o.bytes[QDNN_OPERAND_Y];
    uint8_t *y = malloc(bytes + 1);
    way_note(w, sm);
    bool ok = CHECK(y && machine_create(&config, &vm) == PTXVM_OK) && compute(vm, s, w, 0, s->c.m, y) &&
              CHECK_EQ_MEM(y, s->o.expected, bytes);
    test_pop_note();
    machine_destroy(vm);
    free(y);
    return ok;
}

/* ---- Cases ---- */

/* A trial of the format with other sizes: whole chunks of K, so that weights are read in words; every third not. */
static product_case sized(const kernel_row *row, int trial, int64_t m, int64_t n, int64_t k)
{
    product_case c = matmul_case_at(row, trial);
    c.m = m;
    c.rows = -1;
    c.weights.dims[!c.k_rows] = kernel_columns_multiple(row) > 1 ? quant_case_columns(row, k) : k;
    c.weights.dims[c.k_rows] = c.gated ? 2 * n : n;
    return c;
}

typedef struct stored_weights {
    const char *name, *row;
    bool k_rows;
    qdnnLayout_t layout;
    qdnnGroups_t groups;
    int zero_packed;
} stored_weights;
static const stored_weights common[] = {
    {"int4", "dequantize_int4", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0},
    {"gptq", "dequantize_int4_zp", true, QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_COLUMNS, 1},
    {"awq", "dequantize_int4_zp", true, QDNN_LAYOUT_AWQ, QDNN_GROUPS_COLUMNS, 1},
    {"q4_k", "dequantize_gguf_q4_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0},
};

static product_case case_of(const stored_weights *w, int64_t m, int64_t n, int64_t k)
{
    product_case c = {.rows = -1,
                      .m = m,
                      .x = QDNN_DATA_F16,
                      .y = QDNN_DATA_F32,
                      .k_rows = w->k_rows,
                      .seed = 5,
                      .bias = QDNN_DATA_F32,
                      .weights = {.row = kernel_find(w->row),
                                  .spec = kernel_spec_default(),
                                  .granularity = QDNN_GRANULARITY_GROUP,
                                  .extent = 32,
                                  .rank = 2,
                                  .seed = 9}};
    c.weights.spec.stored.layout = w->layout;
    c.weights.spec.stored.groups = w->groups;
    c.weights.spec.stored.zero_packed = w->zero_packed;
    if (!kernel_takes(c.weights.row, "groups")) {
        c.weights.granularity = QDNN_GRANULARITY_TENSOR;
        c.weights.extent = 0;
    }
    if (kernel_columns_multiple(c.weights.row) > 1)
        k = quant_case_columns(c.weights.row, k);
    c.weights.dims[c.k_rows] = n;
    c.weights.dims[!c.k_rows] = k;
    return c;
}

static product_case common_case(int i, int64_t m, int64_t n, int64_t k)
{
    return case_of(&common[i], m, n, k);
}

static int common_count(void)
{
    return LENGTH(common);
}

static void common_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", common[index].name);
}

/* ---- Shapes ---- */

/* One text of each product that a format has, with shapes that take all its ways: whole and cut tiles,
 * rounds, chunks and words, one row and all rows, K shorter than a chunk, infinities and NaN, and a caller's
 * strange scales. The mutants of `./run mutate` are judged by these. */
typedef struct shape {
    int64_t rows_less, n,
        k; /* rows: those of the tile, less so many (at least 1); negative: more than a tile */
    data_kind kind;
    bool callers;
    int64_t gap;  /* elements between rows of x and of y; where it is 4, the grid is too small as well */
    size_t shift; /* as product_case has it */
} shape;
static const shape shapes[] = {
    {0, 68, 776, DATA_NORMAL, false, 0, 0},
    {1, 40, 1100, DATA_NORMAL, false, 0, 0},
    {99, 33, 264, DATA_NORMAL, false, 0, 0},
    {-1, 17, 301, DATA_NORMAL, false, 4, 0},
    {3, 40, 7, DATA_NORMAL, false, 0, 0},
    {0, 130, 104, DATA_NORMAL, false, 0, 0},
    {0, 24, 512, DATA_NORMAL, true, 0, 0},
    {5, 3, 128, DATA_SPECIAL, false, 0, 0},
    {0, 9, 4096, DATA_NORMAL, false, 0, 0},
    {1, 6, 4168, DATA_NORMAL, false, 0, 0},
    /* Of the others, the default suite tries every eighth. */
    {0, 16, 64, DATA_NORMAL, false, 0, 0},
    {-1, 144, 320, DATA_NORMAL, false, 4, 4},
    {1, 48, 128, DATA_SPECIAL, false, 0, 0},
    {0, 272, 256, DATA_NORMAL, true, 8, 0},
    {0, 7, 1088, DATA_NORMAL, false, 3, 4},
    {0, 32, 2048, DATA_NORMAL, false, 0, 0},
    {2, 80, 192, DATA_HUGE, false, 0, 8},
    {0, 33, 576, DATA_SUBNORMAL, false, 0, 0},
    {0, 64, 1024, DATA_SPECIAL, true, 0, 4},
    {1, 528, 64, DATA_NORMAL, false, 5, 0},
    {0, 96, 64, DATA_ZEROS, false, 0, 0},
    {0, 130, 2112, DATA_NORMAL, false, 0, 0},
    {0, 72, 512, DATA_TINY, false, 0, 0},
    {2, 40, 4224, DATA_NORMAL, false, 0, 0},
    {0, 36, 1088, DATA_NORMAL, false, 1, 1},
    {1, 33, 2112, DATA_NORMAL, false, 0, 2},
    {0, 72, 1024, DATA_CANCELS, false, 0, 0},
    /* Rows that end within a group. */
    {0, 40, 264, DATA_TINY, false, 0, 0},
    {-1, 72, 1036, DATA_NORMAL, false, 4, 4},
    {0, 530, 520, DATA_NORMAL, false, 0, 0},
    {0, 70, 2090, DATA_NORMAL, false, 0, 3},
    {2, 33, 1100, DATA_NORMAL, true, 3, 0},
    {1, 20, 523, DATA_SPECIAL, false, 0, 0},
    {0, 33, 333, DATA_ZEROS, false, 0, 0},
    {4, 65, 4136, DATA_NORMAL, false, 0, 0},
    {6, 12, 1290, DATA_SUBNORMAL, false, 8, 0},
    {0, 68, 1034, DATA_CANCELS, false, 0, 0},
    {-9, 68, 40, DATA_NORMAL, false, 0, 0},
    {0, 36, 1984, DATA_NORMAL, false, 0, 0},
    {0, 40, 1048, DATA_NORMAL, false, 0, 0},
    {0, 72, 1056, DATA_NORMAL, false, 0, 0}, /* within a group of 64, at the end of one of 32 */
    {0, 40, 1056, DATA_LARGE, false, 0, 0},
    {1, 36, 2080, DATA_CANCELS, false, 0, 0},
    {2, 72, 280, DATA_LARGE, false, 0, 0},
    /* By the general paths. */
    {0, 40, 1088, DATA_LARGE, false, 0, 0},
    {1, 68, 2090, DATA_LARGE, false, 3, 0},
    {0, 33, 320, DATA_LARGE, false, 0, 4},
    {-1, 17, 301, DATA_LARGE, false, 4, 1},
    {0, 130, 64, DATA_LARGE, false, 0, 0},
    {0, 9, 4168, DATA_LARGE, false, 0, 0},
    {0, 24, 4096, DATA_LARGE, false, 0, 0},
    {0, 36, 1984, DATA_LARGE, false, 0, 0},
    /* By the fast paths but for a few outputs. */
    {0, 530, 128, DATA_UNEQUAL, false, 0, 0},
    {1, 270, 320, DATA_UNEQUAL, false, 0, 4},
    {0, 136, 1100, DATA_UNEQUAL, false, 3, 0},
    {0, 40, 4096, DATA_UNEQUAL, false, 0, 0},
    {0, 530, 64, DATA_UNEQUAL, false, 0, 0},
    /* Where nothing but errors of roundings is left, by each path. */
    {1, 33, 1100, DATA_CANCELS, false, 3, 1},
    {0, 40, 1088, DATA_CANCELS, false, 0, 4},
    {0, 40, 4168, DATA_CANCELS, false, 0, 0},
    {-1, 17, 301, DATA_CANCELS, false, 4, 1},
    {0, 40, 1088, DATA_LARGE_CANCELS, false, 0, 0},
    {0, 68, 1034, DATA_LARGE_CANCELS, false, 0, 0},
    {1, 33, 1056, DATA_LARGE_CANCELS, false, 3, 4},
    /* Many tiles, in some of which a single x is too large for the fast decode. */
    {-99, 5, 520, DATA_RARELY_LARGE, false, 0, 0},
    {-60, 5, 1034, DATA_RARELY_LARGE, false, 3, 1},
    /* Where anything beyond K is not finite. */
    {0, 40, 301, DATA_UNBOUNDED, false, 0, 0},
    {0, 33, 1100, DATA_UNBOUNDED, false, 3, 4},
};
enum { ALWAYS = 10 };
static const char *const product_names[] = {
    [KERNEL_PRODUCT_STAGED] = "staged",    [KERNEL_PRODUCT_GEMV] = "gemv",
    [KERNEL_PRODUCT_RAGGED] = "ragged",    [KERNEL_PRODUCT_BLOCKS] = "blocks",
    [KERNEL_PRODUCT_TERNARY] = "ternary",  [KERNEL_PRODUCT_COLUMNS] = "columns",
    [KERNEL_PRODUCT_LANEWISE] = "lanewise"};
/* Those that are tried by default; in the full build all formats are, with all products. */
static const struct {
    kernel_product product;
    const char *row;
} shaped[] = {
    {KERNEL_PRODUCT_STAGED, "dequantize_int3_zp"},     {KERNEL_PRODUCT_STAGED, "dequantize_gguf_q3_k"},
    {KERNEL_PRODUCT_GEMV, "dequantize_int4"},          {KERNEL_PRODUCT_GEMV, "dequantize_e4m3"},
    {KERNEL_PRODUCT_RAGGED, "dequantize_int5"},        {KERNEL_PRODUCT_RAGGED, "dequantize_e4m3"},
    {KERNEL_PRODUCT_RAGGED, "dequantize_gguf_q8_0"},   {KERNEL_PRODUCT_RAGGED, "dequantize_gguf_q6_k"},
    {KERNEL_PRODUCT_RAGGED, "dequantize_gguf_mxfp4"},  {KERNEL_PRODUCT_RAGGED, "dequantize_gguf_q2_k"},
    {KERNEL_PRODUCT_BLOCKS, "dequantize_gguf_q4_k"},   {KERNEL_PRODUCT_BLOCKS, "dequantize_gguf_q6_k"},
    {KERNEL_PRODUCT_TERNARY, "dequantize_gguf_tq1_0"}, {KERNEL_PRODUCT_COLUMNS, "dequantize_int4_zp"},
    {KERNEL_PRODUCT_COLUMNS, "dequantize_int4"},       {KERNEL_PRODUCT_LANEWISE, "dequantize_int4_min"},
    {KERNEL_PRODUCT_LANEWISE, "dequantize_gguf_q5_0"},
};

static product_case shaped_case(const kernel_row *row, int turn, bool k_rows)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F16, QDNN_DATA_F32, QDNN_DATA_BF16};
    product_case c = {.rows = -1,
                      .x = types[turn % 3],
                      .y = turn % 6 == 5 ? types[turn % 3]
                                         : QDNN_DATA_F32, /* in which no bit of a sum is lost */
                      .k_rows = k_rows,
                      .alpha = (qdnnAlpha_t)(turn % 4),
                      .bias = turn % 2 ? (int)types[turn % 3] : 0,
                      .activation = (qdnnActivation_t)(turn % 5),
                      .gated = turn % 4 == 3,
                      .residual = turn % 3 == 1,
                      .seed = 5,
                      .weights = {.row = row,
                                  .spec = kernel_spec_default(),
                                  .granularity = QDNN_GRANULARITY_TENSOR,
                                  .rank = 2,
                                  .seed = 9}};
    if (kernel_takes(row, "groups") && kernel_columns_multiple(row) == 1) {
        c.weights.granularity = QDNN_GRANULARITY_GROUP;
        c.weights.extent = turn % 2 ? 32 : 64;
        c.weights.spec.stored.groups = k_rows ? QDNN_GROUPS_COLUMNS : QDNN_GROUPS_ROWS;
        if (k_rows && kernel_format(row)->bits == 4)
            c.weights.spec.stored.layout = QDNN_LAYOUT_WORDS_INTERLEAVED;
    }
    return c;
}

/* Sets the data and the sizes of a case; it says by itself whether it is gated and where K lies. */
static void set_shape(product_case *c, const shape *at)
{
    const bool has_blocks = kernel_columns_multiple(c->weights.row) > 1;
    c->kind = at->kind;
    if (at->kind == DATA_TINY) { /* negative x and positive weights: every product is -0 */
        c->weights.kind = DATA_TINY;
        c->weights.seed = 8;
    }
    if (at->kind == DATA_LARGE && !has_blocks)
        c->weights.kind = DATA_SMALL; /* sums are moderate, and no fast decode can take the scales */
    if (at->kind == DATA_CANCELS || at->kind == DATA_LARGE_CANCELS)
        c->weights.kind = at->kind == DATA_CANCELS || has_blocks ? DATA_CONSTANT : DATA_SMALL_CONSTANT;
    if (at->kind == DATA_UNBOUNDED) { /* sums are numbers or infinite, and NaN with anything beyond K */
        c->kind = DATA_CONSTANT;
        c->weights.kind = DATA_UNBOUNDED;
        c->seed = c->weights.seed = 8;
    }
    if (at->kind == DATA_UNEQUAL) {
        c->kind = has_blocks ? DATA_NORMAL : DATA_LARGE;
        c->weights.kind = DATA_UNEQUAL;
    }
    c->x_gap = c->y_gap = at->gap;
    c->shift = at->shift;
    c->weights.callers = at->callers;
    c->weights.dims[c->k_rows] = c->gated ? 2 * at->n : at->n;
    c->weights.dims[!c->k_rows] = has_blocks ? quant_case_columns(c->weights.row, at->k) : at->k;
}

/* Whether there is such a product; compared with host_ref if so. */
static bool run_way(const product_case *c, const way *w, const char *sm)
{
    bool fits = false;
    scene s;
    kernel_problem problem;
    kernel_spec spec;
    kernel_operand operands[QDNN_OPERAND_COUNT];
    if (scene_begin(&s, c)) {
        problem = s.r.problem;
        spec = spec_of_way(&s.r.spec, w);
        problem.m = (uint64_t)c->m;
        fits = kernel_product_fits(s.r.row, &spec, &problem);
    }
    if (fits) {
        kernel_operands_of(s.r.row, KERNEL_NORMAL(s.r.row, &spec), &problem, operands);
        if (c->shift % operands[QDNN_OPERAND_CODES].align != 0)
            s.code_shift = 0;
        if (c->shift % operands[QDNN_OPERAND_X].align != 0)
            s.c.shift = 0;
        s.few_blocks = c->x_gap == 4;
        check_way(&s, w, sm, 0, EVERY_CHECK);
    }
    scene_end(&s);
    return fits;
}

static bool run_shape(const kernel_row *row, kernel_product product, int turn, const shape *at)
{
    const uint64_t tile = product == KERNEL_PRODUCT_LANEWISE ? 32u << turn % 3 : 1u << turn % 4;
    way w = {product, tile, product == KERNEL_PRODUCT_LANEWISE ? 1u + turn % 2 : 1u << (turn + at->k) % 4};
    product_case c = shaped_case(row, turn, product == KERNEL_PRODUCT_COLUMNS);
    c.m = (int64_t)tile > at->rows_less ? (int64_t)tile - at->rows_less : 1;
    set_shape(&c, at);
    if (run_way(&c, &w, sms[turn % LENGTH(sms)]))
        return true;
    w.split = 1; /* not divided that far */
    return run_way(&c, &w, sms[turn % LENGTH(sms)]);
}

static int shape_count(void)
{
    return sample_is_full() ? matmul_row_count() * LENGTH(product_names) : LENGTH(shaped);
}

static const kernel_row *shape_at(int index, kernel_product *product)
{
    *product = sample_is_full() ? (kernel_product)(index % LENGTH(product_names)) : shaped[index].product;
    return sample_is_full() ? matmul_row_at(index / LENGTH(product_names)) : kernel_find(shaped[index].row);
}

static void shape_name(int index, char *text, size_t size)
{
    kernel_product product;
    const kernel_row *row = shape_at(index, &product);
    snprintf(text, size, "%s_%s", product_names[product], kernel_format(row)->name);
}

/* The kernel for rows of any length has a line for each k that the last of a thread's 32 may be, in each path.
 * By default the paths take turns. */
static void run_tails(const kernel_row *row, int turn)
{
    static const data_kind kinds[] = {DATA_NORMAL, DATA_LARGE, DATA_UNBOUNDED, DATA_CANCELS,
                                      DATA_LARGE_CANCELS};
    const int step = sample_is_full() ? 1 : 8;
    for (int tail = 1 + turn % step; tail < 32; tail += step)
        for (int path = 0; path < LENGTH(kinds); path++) {
            const shape one = {.n = 36, .k = 256 + tail, .kind = kinds[path]};
            if (sample_is_full() || path == tail / step % LENGTH(kinds))
                run_shape(row, KERNEL_PRODUCT_RAGGED, turn, &one);
        }
}

DEVICE_EACH(ParityKernels, Shapes, shape_count, shape_name)
{
    kernel_product product;
    const kernel_row *row = shape_at(index, &product);
    int turn = index, fitting = 0;
    if (product == KERNEL_PRODUCT_COLUMNS && kernel_columns_multiple(row) > 1)
        SKIP("blocks lie along K");
    for (int i = 0; i < LENGTH(shapes); i++)
        if (sample_is_full() || i < ALWAYS || i % 8 == index % 8)
            fitting += run_shape(row, product, turn, &shapes[i]);
    if (product == KERNEL_PRODUCT_RAGGED)
        run_tails(row, turn);
    CHECK(fitting > 0 || sample_is_full());
}

/* The same of stacks: more rows than the kernel that sorts them has threads, more experts than a warp has
 * lanes and than it has threads, experts without rows and rows without an expert. */
static const struct {
    int64_t m, experts;
    bool one; /* all rows on one expert: tiles of all their rows */
    shape of; /* without rows_less */
} stack_shapes[] = {
    {45, 7, false, {0, 16, 96, DATA_NORMAL, false, 0, 0}},
    {9, 2, true, {0, 24, 64, DATA_NORMAL, false, 0, 0}},
    {1, 1, false, {0, 8, 256, DATA_NORMAL, false, 0, 0}},
    {300, 5, false, {0, 8, 32, DATA_NORMAL, false, 4, 0}},
    {7, 40, false, {0, 8, 128, DATA_SPECIAL, false, 0, 0}},
    {20, 3, false, {0, 72, 264, DATA_NORMAL, false, 0, 0}},
    {33, 33, false, {0, 5, 301, DATA_NORMAL, false, 0, 0}},
    {600, 3, false, {0, 3, 32, DATA_NORMAL, false, 8, 0}},
    {32, 1, true, {0, 130, 32, DATA_NORMAL, false, 0, 0}},
    {9, 4, false, {0, 16, 544, DATA_NORMAL, false, 0, 0}},
    {130, 70, false, {0, 8, 32, DATA_NORMAL, false, 0, 0}},
    {2, 3, false, {0, 33, 40, DATA_HUGE, false, 4, 0}},
    {35, 2, true, {0, 136, 776, DATA_NORMAL, false, 0, 0}},
    {70, 3, false, {0, 68, 1100, DATA_NORMAL, false, 0, 0}},
    {5, 4, false, {0, 528, 72, DATA_NORMAL, false, 0, 0}},
    {33, 2, true, {0, 72, 1088, DATA_NORMAL, false, 8, 0}},
    {6, 2, false, {0, 40, 4168, DATA_NORMAL, false, 0, 0}},
    {17, 2, false, {0, 264, 320, DATA_NORMAL, false, 0, 0}},
    {8, 1, true, {0, 24, 264, DATA_ZEROS, false, 0, 0}},
    {40, 2, false, {0, 20, 520, DATA_SPECIAL, false, 4, 0}},
    {24, 520, false, {0, 8, 32, DATA_NORMAL, false, 0, 0}},
    /* Whole tiles of x that is read element by element. */
    {35, 2, true, {0, 136, 776, DATA_NORMAL, false, 3, 2}},
    {33, 2, true, {0, 68, 544, DATA_NORMAL, false, 1, 0}},
    {70, 2, true, {0, 68, 1100, DATA_CANCELS, false, 1, 0}},
    {12, 3, false, {0, 40, 2090, DATA_NORMAL, false, 0, 4}},
    /* By the general paths, and by the fast ones but for a few outputs. */
    {35, 2, true, {0, 72, 1088, DATA_LARGE, false, 0, 0}},
    {13, 2, false, {0, 136, 301, DATA_LARGE, false, 3, 2}},
    {34, 1, true, {0, 40, 4168, DATA_LARGE, false, 0, 4}},
    {9, 2, true, {0, 270, 320, DATA_UNEQUAL, false, 0, 0}},
    {90, 3, false, {0, 8, 520, DATA_RARELY_LARGE, false, 0, 0}},
    {36, 2, true, {0, 64, 1024, DATA_SPECIAL, true, 0, 4}},
    {33, 2, true, {0, 72, 1024, DATA_CANCELS, false, 0, 0}},
    {33, 2, true, {0, 72, 1088, DATA_LARGE_CANCELS, false, 0, 0}},
    {12, 2, true, {0, 40, 1088, DATA_LARGE_CANCELS, false, 0, 4}},
    {10, 2, true, {0, 40, 520, DATA_TINY, false, 0, 0}},
    {8, 2, true, {0, 40, 1100, DATA_UNBOUNDED, false, 0, 0}},
    /* Three of the four chunks of a warp. */
    {9, 2, true, {0, 40, 1048, DATA_NORMAL, false, 0, 0}},
    {10, 2, false, {0, 72, 280, DATA_LARGE, false, 0, 0}},
};
static const kernel_product stacked[] = {KERNEL_PRODUCT_STAGED, KERNEL_PRODUCT_LANEWISE, KERNEL_PRODUCT_GEMV,
                                         KERNEL_PRODUCT_BLOCKS, KERNEL_PRODUCT_COLUMNS};

static int stack_count(void)
{
    return LENGTH(common) * LENGTH(stacked);
}

static void stack_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", product_names[stacked[index % LENGTH(stacked)]],
             common[index / LENGTH(stacked)].name);
}

static bool run_stack(int index, int i)
{
    const kernel_product product = stacked[index % LENGTH(stacked)];
    const way w = {product,
                   product == KERNEL_PRODUCT_LANEWISE ? 32
                   : product == KERNEL_PRODUCT_STAGED ? 8
                                                      : 4,
                   1};
    const int format = index / LENGTH(stacked);
    shape at = stack_shapes[i].of;
    if (common[format].layout == QDNN_LAYOUT_AWQ)
        at.n = (at.n + 7) / 8 * 8;
    product_case c = common_case(format, stack_shapes[i].m, at.n, at.k);
    c.experts = stack_shapes[i].experts;
    c.one_expert = stack_shapes[i].one;
    c.row_weight = index % 2;
    c.gated = index % 3 == 1;
    c.activation = index % 3 == 1 ? QDNN_ACTIVATION_SILU : QDNN_ACTIVATION_NONE;
    c.alpha = index % 2 ? QDNN_ALPHA_COLUMN : QDNN_ALPHA_NONE;
    set_shape(&c, &at);
    return run_way(&c, &w, sms[index % LENGTH(sms)]);
}

/* By default every sixth. */
DEVICE_EACH(ParityKernels, StackShapes, stack_count, stack_name)
{
    int fitting = 0;
    for (int i = sample_is_full() ? 0 : index % 6; i < LENGTH(stack_shapes); i += sample_is_full() ? 1 : 6)
        fitting += run_stack(index, i);
    if (!fitting)
        SKIP("there is no such product");
}

/* ---- Tests ---- */

/* Which products serve a stack of the formats above. */
#define P(product) (1u << KERNEL_PRODUCT_##product)
static const unsigned stack_products[] = {
    P(STAGED) | P(GEMV) | P(RAGGED) | P(LANEWISE), P(STAGED) | P(COLUMNS) | P(LANEWISE),
    P(STAGED) | P(COLUMNS) | P(LANEWISE), P(STAGED) | P(BLOCKS) | P(LANEWISE)};
#undef P

/* Every format: a few ways each, which are others for each format. Every other is watched for races, which
 * takes most of the time. */
DEVICE_EACH(ParityKernels, EveryFormat, matmul_row_count, matmul_row_name)
{
    enum { WAYS = 6 };
    static const int64_t ks[] = {264, 520, 301}, ns[] = {72, 136, 45}, ms[] = {37, 70, 133};
    for (int i = 0; i < LENGTH(ks); i++) {
        product_case c = sized(matmul_row_at(index), index + i, ms[(index + i) % 3], ns[i], ks[i]);
        scene s;
        bool ok = scene_begin(&s, &c);
        for (int j = 0; j < WAYS / LENGTH(ks) && ok; j++)
            ok = check_way(&s, &s.ways[(7 * index + 5 * i + 11 * j) % s.n_ways],
                           sms[(index + j) % LENGTH(sms)], 0,
                           j % 2 ? PTXVM_CHECK_ALL & ~(unsigned)PTXVM_CHECK_RACE : EVERY_CHECK);
        scene_end(&s);
    }
}

/* The grid: all ways there are, on SMs that take turns. */
DEVICE_EACH(ParityKernels, EveryWay, common_count, common_name)
{
    product_case c = common_case(index, 70, 72, 776);
    scene s;
    bool ok = scene_begin(&s, &c);
    for (int i = 0; i < s.n_ways && ok; i++)
        ok = check_way(&s, &s.ways[i], sms[i % LENGTH(sms)], 0, 0);
    scene_end(&s);
}

/* Stacks of experts by all ways: rows spread over experts, some without one, and experts without rows; or all rows on one
 * expert. Ragged tiles, columns that do not fill a block, a K that ends within a round. */
DEVICE_EACH(ParityKernels, EveryWayOfAStack, common_count, common_name)
{
    for (int one = 0; one < 2; one++) {
        product_case c = common_case(index, one ? 35 : 45, 40, 352);
        c.experts = one ? 2 : 7;
        c.one_expert = one;
        c.row_weight = true;
        c.gated = one;
        c.activation = QDNN_ACTIVATION_SILU;
        c.alpha = QDNN_ALPHA_COLUMN;
        c.weights.dims[c.k_rows] *= c.gated ? 2 : 1;
        scene s;
        bool ok = scene_begin(&s, &c);
        unsigned products = 0;
        for (int i = 0; i < s.n_ways && ok; i += 1 + one) {
            ok = check_way(&s, &s.ways[i], sms[(i + one) % LENGTH(sms)], (uint64_t)i, EVERY_CHECK);
            products |= 1u << s.ways[i].product;
        }
        CHECK_EQ_U32(products, stack_products[index]);
        scene_end(&s);
    }
}

DEVICE_EACH(ParityKernels, EverySm, common_count, common_name)
{
    static const way ways[] = {
        {KERNEL_PRODUCT_STAGED, 8, 1}, {KERNEL_PRODUCT_LANEWISE, 32, 1}, {KERNEL_PRODUCT_LANEWISE, 64, 4}};
    product_case c = common_case(index, 33, 40, 296);
    scene s;
    bool ok = scene_begin(&s, &c);
    for (int i = 0; i < ptx_sm_count() * LENGTH(ways) && ok; i++)
        ok = check_way(&s, &ways[i % LENGTH(ways)], ptx_sm_get(i / LENGTH(ways))->name, 0, 0);
    scene_end(&s);
}

/* A hundred orders of warps and blocks. */
DEVICE_EACH(ParityKernels, EveryOrder, common_count, common_name)
{
    enum { ORDERS = 100 };
    static const way ways[] = {{KERNEL_PRODUCT_LANEWISE, 32, 2},
                               {KERNEL_PRODUCT_STAGED, 4, 1},
                               {KERNEL_PRODUCT_LANEWISE, 64, 1},
                               {KERNEL_PRODUCT_LANEWISE, 128, 8}};
    product_case c = common_case(index, 66, 24, 40);
    scene s;
    bool ok = scene_begin(&s, &c);
    for (int i = 0; i < ORDERS && ok; i++)
        ok = check_way(&s, &ways[i % LENGTH(ways)], sms[i % LENGTH(sms)], (uint64_t)i + 1, 0);
    scene_end(&s);
}

/* Row i of a batch of 1 to 64 rows has the bits that it has alone. */
DEVICE_EACH(ParityKernels, EveryBatch, common_count, common_name)
{
    enum { ROWS = 64 };
    product_case c = common_case(index, ROWS, 40, 296);
    ptxvm_config config = {.sm = "sm_90"};
    machine *vm = NULL;
    scene s;
    bool ok = scene_begin(&s, &c) && CHECK(machine_create(&config, &vm) == PTXVM_OK);
    const size_t bytes = s.o.bytes[QDNN_OPERAND_Y], row = bytes / ROWS;
    uint8_t *alone = malloc(bytes + 1), *y = malloc(bytes + 1);
    ok = ok && CHECK(alone && y);
    for (int i = 0; i < ROWS && ok; i++) {
        ok = compute(vm, &s, &s.ways[0], i, 1, y);
        if (ok)
            memcpy(alone + (size_t)i * row, y + (size_t)i * row, row);
    }
    for (int m = 1; m <= ROWS && ok; m++) {
        way ways[WAYS_MAX];
        const way *w = &ways[m * 5 % ways_of(s.r.row, &s.r.spec, s.r.problem, m, ways)];
        way_note(w, "sm_90");
        ok = compute(vm, &s, w, 0, m, y) && CHECK_EQ_MEM(y, alone, (size_t)m * row);
        test_pop_note();
    }
    machine_destroy(vm);
    free(alone);
    free(y);
    scene_end(&s);
}

/* ---- The bits themselves ---- */

static uint64_t hash_of(const void *bytes, size_t count)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3;
    return hash;
}

/* Of 13 rows, 40 outputs and 800 k (blocks: up to 1024). No kernel may ever give others, whatever its shape, on any SM. */
static const struct {
    stored_weights weights;
    uint64_t hash;
} pinned[] = {
    {{"int4", "dequantize_int4", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0xDC4DB9854663ADFC},
    {{"int4_zp", "dequantize_int4_zp", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0xDE6D427F5DC94B2C},
    {{"gptq", "dequantize_int4_zp", true, QDNN_LAYOUT_WORDS_INTERLEAVED, QDNN_GROUPS_COLUMNS, 1},
     0x9489B7D914058313},
    {{"awq", "dequantize_int4_zp", true, QDNN_LAYOUT_AWQ, QDNN_GROUPS_COLUMNS, 1}, 0x9489B7D914058313},
    {{"int8_kn", "dequantize_int8", true, QDNN_LAYOUT_BYTES, QDNN_GROUPS_COLUMNS, 0}, 0xFFD6171CEDA7549D},
    {{"int2", "dequantize_int2", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0x4050E73B7A3DAD39},
    {{"int3_zp", "dequantize_int3_zp", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0x78054FB8FB01E408},
    {{"int8", "dequantize_int8", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0xD52B0CF1F78B94CC},
    {{"nf4", "dequantize_nf4", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0x37D6D3647DECEAC3},
    {{"e2m1", "dequantize_e2m1", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0x97837132B0AFDD61},
    {{"e4m3", "dequantize_e4m3", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_ROWS, 0}, 0xE7150B8BD5C68376},
    {{"f16", "dequantize_plain_f16", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_DEFAULT, 0}, 0x599B96478D6AAA46},
    {{"q4_0", "dequantize_gguf_q4_0", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x68E3C43431B08A4E},
    {{"q4_1", "dequantize_gguf_q4_1", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xF0CDF7B8CDF2C11E},
    {{"q5_0", "dequantize_gguf_q5_0", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xC441746902673B64},
    {{"q8_0", "dequantize_gguf_q8_0", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x1CA0B43A8E878464},
    {{"q2_k", "dequantize_gguf_q2_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x7AE8A134CD648285},
    {{"q3_k", "dequantize_gguf_q3_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x847A87FDEAD0375C},
    {{"q4_k", "dequantize_gguf_q4_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xC056F4558AD3F930},
    {{"q5_k", "dequantize_gguf_q5_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xEC1123D4A84F88CF},
    {{"q6_k", "dequantize_gguf_q6_k", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x4203DEBEED11EC49},
    {{"iq4_xs", "dequantize_gguf_iq4_xs", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xA900B623390245BB},
    {{"iq2_xxs", "dequantize_gguf_iq2_xxs", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0},
     0x10DA4F177A9A53FD},
    {{"iq3_s", "dequantize_gguf_iq3_s", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x86949558D2BB0431},
    {{"mxfp4", "dequantize_gguf_mxfp4", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0x2F2A8AE741289CB4},
    {{"tq1_0", "dequantize_gguf_tq1_0", false, QDNN_LAYOUT_BYTES, QDNN_GROUPS_FLAT, 0}, 0xADFFC3253C4D49B1},
};

static int pinned_count(void)
{
    return LENGTH(pinned);
}

static void pinned_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", pinned[index].weights.name);
}

/* By every kernel for 16 rows and fewer, however it deals out the lanes; SMs take turns. */
DEVICE_EACH(ParityKernels, BitsArePinned, pinned_count, pinned_name)
{
    product_case c = case_of(&pinned[index].weights, 13, 40, 800);
    scene s;
    bool ok = scene_begin(&s, &c);
    uint8_t *y = malloc(s.o.bytes[QDNN_OPERAND_Y] + 1);
    for (int i = 0; i < s.n_ways && ok; i++) {
        ptxvm_config config = {.sm = sms[(index + i) % LENGTH(sms)]};
        machine *vm = NULL;
        if (s.ways[i].tile_rows != 16 && s.ways[i].tile_rows != 1)
            continue;
        way_note(&s.ways[i], config.sm);
        ok = CHECK(y && machine_create(&config, &vm) == PTXVM_OK) && compute(vm, &s, &s.ways[i], 0, c.m, y) &&
             CHECK_EQ_U64(hash_of(y, s.o.bytes[QDNN_OPERAND_Y]), pinned[index].hash);
        test_pop_note();
        machine_destroy(vm);
    }
    free(y);
    scene_end(&s);
}
