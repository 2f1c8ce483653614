/* The kernels that qdnn can emit: a list of formats, a list of operations, and the registry, their product. Operations
 * on plain tensors alone, such as those of training, belong to no format and have one row each.
 *
 * Tests, the ptxgen tool, the benchmarks and the driver all iterate over kernel_rows. Adding a format is adding
 * a row to formats/formats.def; adding an operation is adding a row to operations.c. */
#ifndef QDNN_KERNELS_H
#define QDNN_KERNELS_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "ptxgen/ptx.h"

/* a / b rounded up; b is not 0. */
static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- Specifications: everything that a kernel's text is specialised to (spec.c) ---- */

/* Along what the sum of a product runs in the matrix of weights: [N, K] or [K, N]. */
typedef enum { KERNEL_K_COLUMNS, KERNEL_K_ROWS } kernel_reduction;

/* The kernels that compute a product. By the exact contract, all with the same bits: */
typedef enum {
    KERNEL_PRODUCT_STAGED, /* weights pass through shared memory as f32: any format, any shape */
    KERNEL_PRODUCT_GEMV,   /* few rows, codes along K: weights are decoded in registers */
    KERNEL_PRODUCT_RAGGED, /* the same where rows do not fill 16 bytes, and for codes of 3, 5 and 6 bits */
    KERNEL_PRODUCT_BLOCKS, /* few rows, GGUF blocks: they are decoded in registers */
    KERNEL_PRODUCT_TERNARY, /* the same for TQ1_0 */
    KERNEL_PRODUCT_COLUMNS, /* few rows, weights [K, N]: decoded in registers */
    KERNEL_PRODUCT_LANEWISE, /* many rows: tiles of outputs, one lane after another */
    KERNEL_PRODUCT_JOIN, /* what follows LANEWISE where `split` is not 1: joins the sums of its blocks */
    /* In mode tensor, all with the same bits on SMs of one family: */
    KERNEL_PRODUCT_TILE,   /* weights pass through shared memory as f16 or bf16: any format, any shape */
    KERNEL_PRODUCT_STREAM, /* prepacked weights go straight into registers: sums of strips, in the workspace */
    KERNEL_PRODUCT_STRIPS  /* what follows STREAM: y from the sums of strips */
} kernel_product;

/* A kernel reads the fields that kernel_keys names for it; the others stay at their defaults. Enumerations
 * without a C type of their own here are 0 for no and 1 for yes. */
typedef struct kernel_spec {
    qdnnDataType_t data; /* of the plain tensor: F32, F16, BF16, F64 */

    qdnnCodeKind_t code; /* of integers: OFFSET, UNSIGNED, TWOS_COMPLEMENT */
    qdnnLayout_t layout; /* BYTES, WORDS_INTERLEAVED, WORDS_ROWS, AWQ */
    qdnnNibbleOrder_t nibble_order;

    qdnnGroups_t groups; /* DEFAULT: there are no scales; FLAT, ROWS, COLUMNS */
    uint64_t group_size; /* neighbours that share a scale, along the groups' direction; at least 1 */
    uint64_t group_rows; /* ROWS, COLUMNS: how far a group reaches across its direction */
    uint64_t channels;   /* FLAT: element i is in group (i / group_size) mod channels; 0: in i / group_size */
    qdnnScaleOrder_t scale_order;
    qdnnScaleSwizzle_t scale_swizzle;
    int group_index; /* COLUMNS: the group of a row is looked up */
    int group_table; /* with group_index: in shared memory, for as many groups as fit there */

    qdnnScaleType_t scale;
    int nested;
    int global_scale;    /* 0, 1, 2: stored as its reciprocal */
    qdnnDataType_t zero; /* U8, I8, U32, I32, F32, F16, BF16 */
    int zero_packed, zero_minus_one, zero_wraps;

    int row_index; /* dequantize: the rows that a list names, alone; quantize_dynamic: to the rows that a list names */
    int strided; /* with row_index, quantize_dynamic: rows of x, and slots and heads of the codes, may lie apart */
    qdnnLayout_t to_layout; /* repack: how codes lie then */
    qdnnNibbleOrder_t to_nibble_order;
    qdnnCodeKind_t to_code;

    qdnnRounding_t rounding;
    qdnnDivision_t division;
    qdnnRange_t range;
    qdnnMxRounding_t mx_rounding;
    float floor; /* the least that a range counts for when its scale is computed */

    /* Training. */
    int bits; /* 8, 4, 2 */
    qdnnScaleMode_t scale_mode;
    float decay; /* of scale mode EMA */
    qdnnBackward_t backward;
    int gradient_factor;

    /* Products: data is the type of x. */
    int x_fp8;   /* qdnnDataType_t: x are FP8 in memory, and data is f16; 0: no */
    int x_scale; /* each row of sums is multiplied by a number of its own, first of all */
    qdnnDataType_t output; /* of y: F32, F16, BF16 */
    kernel_reduction reduction;
    qdnnAlpha_t alpha;
    int bias; /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    int gated;      /* the weights have 2N outputs, a and b: act(a) * b */
    int residual;
    int addend;     /* an f32 matrix in the workspace is added before the bias */
    int grouped;    /* a stack of weights, one of which each row of x names */
    int row_weight; /* each row of the result is multiplied by a number of its own */
    kernel_product product;
    int unpack; /* prepack: the way back */
    uint64_t tile_rows; /* rows of x that a thread block takes */
    uint64_t split;     /* among how many thread blocks the lanes of a sum are dealt out */

    /* Integer products: codes times codes. */
    qdnnDataType_t x_codes, w_codes; /* I8, U8, I4; I8, I4 */
    qdnnDataType_t result;           /* I32: sums; I8, U8: requantized; F32: scaled, of type output */
    int w_scale_first;               /* of the two scales */
    int x_zero, w_zero;              /* whether they are not 0 */
    int bias_i32;
    int multipliers; /* one for each column */
    int tile;        /* rows of x that a thread block takes: 1, 4 (dp4a), 64, 128 (tensor cores) */
    qdnnDataType_t top_index; /* I32, F32 */
    int nhwc;
    uint64_t window_h, window_w, window_c; /* of a convolution: c are the channels of a group */
} kernel_spec;

/* The fields of kernel_spec by number, and sets of them: KERNEL_KEY(DATA) | KERNEL_KEY(SCALE). */
enum {
#define SETTING(key, ...) KERNEL_KEY_NUMBER_##key,
#include "kernels/settings.def"
#undef SETTING
    KERNEL_KEY_COUNT
};
typedef uint64_t kernel_key_set;
#define KERNEL_KEY(key) (UINT64_C(1) << KERNEL_KEY_NUMBER_##key)
_Static_assert(KERNEL_KEY_COUNT <= 64, "a set of settings has 64 bits");

typedef struct kernel_row kernel_row;

/* The defaults of settings.def: f32 data, flat groups of 128 with f32 scales ... The code kind is DEFAULT, which
 * normalising makes the format's own. */
kernel_spec kernel_spec_default(void);

/* Sets one field from text ("data", "f16"). False, with what would be right in `error`, when the row does not
 * take it. */
bool kernel_spec_set(const kernel_row *row, kernel_spec *spec, const char *key, const char *value,
                     char *error, size_t error_size);

/* Whether the row takes a setting of that name. */
bool kernel_takes(const kernel_row *row, const char *key);

/* Whether every field that the row reads has a value it can take, and all of them together have a kernel; else
 * the reason in `error`. */
bool kernel_spec_check(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* The same, and whether it is one kernel that can be emitted: an operation may take several where one does not do. */
bool kernel_is_emitted(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
/* Whether the kernel that a product's specification names serves a problem. */
struct kernel_problem;
bool kernel_product_fits(const kernel_row *row, const kernel_spec *spec, const struct kernel_problem *problem);
/* Whether a checked specification serves a problem of that size; else the reason. */
bool kernel_problem_check(const kernel_spec *spec, const struct kernel_problem *problem, char *error,
                          size_t error_size);

/* The specification with every field that the row does not read at its default, and everything that can be said
 * in two ways said in one: specifications of the same kernel become equal. It is the kernel's identity. */
kernel_spec kernel_spec_normal(const kernel_row *row, const kernel_spec *spec);

/* Whether two specifications are field by field the same. */
bool kernel_spec_equal(const kernel_spec *a, const kernel_spec *b);

/* "data=f16 scale=f32 group_size=64 ...": the settings that the row takes, in the order of settings.def; the rarer ones
 * where they are not at their defaults. Two kernels of a row never have the same text. */
enum { KERNEL_SPEC_TEXT = 1024 }; /* room enough for all of them */
void kernel_spec_text(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* The value of one setting, as text: "staged" for product. */
void kernel_spec_value(const kernel_spec *spec, const char *key, char *text, size_t size);

/* A file-name-safe short form: "f16_f32_g64", with what differs from the defaults behind it. Where that is long,
 * a hash of the whole takes the place of its end. */
enum { KERNEL_SPEC_LABEL = 128 };
void kernel_spec_label(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* The name of a kernel's files, without suffix: "quantize_nf4_f16_f32_g64_sm_90"; unique by kernel, settings and SM,
 * and a C name. */
enum { KERNEL_FILE_NAME = 224 };
void kernel_file_name(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, char *text,
                      size_t size);

/* The table of settings, for tools that list them: name, the values allowed in words, the default as text. Null
 * past the end. */
typedef struct kernel_key_info {
    kernel_key_set key;
    const char *name, *values, *preset;
} kernel_key_info;
const kernel_key_info *kernel_key_at(int index);

/* ---- The registry (registry.c) ---- */

typedef struct operation_row operation_row;
typedef struct format_row format_row;

struct kernel_row {
    const char *name;           /* "quantize_nf4" */
    const char *operation_name; /* stable, users look it up: "quant.nf4.quantize"; null: part of another */
    const char *summary;        /* one line for people */
    const operation_row *operation;
    const format_row *format; /* format_none where the operation has no codes */
};

extern const kernel_row kernel_rows[];
extern const int kernel_row_count;

/* The row of that name, its own or that of its operation; or null. */
const kernel_row *kernel_find(const char *name);

/* ---- Names for a row with some settings (aliases.c) ---- */

typedef struct kernel_alias {
    const char *name;     /* stable: "quant.linear_4bit" */
    const char *kernel;   /* "matmul_int4" */
    const char *settings; /* "layout=interleaved code=unsigned ..." */
} kernel_alias;
const kernel_alias *kernel_alias_at(int index); /* null past the end */
const kernel_alias *kernel_find_alias(const char *name);

/* The row that a name stands for (its own, its operation's, an alias), and the settings that the name brings. Null: the name is
 * unknown. */
const kernel_row *kernel_open(const char *name, kernel_spec *spec);

/* Sets fields from words with spaces between them: "data=f16 group_size=64". False, with the reason, where one is not taken. */
bool kernel_spec_set_words(const kernel_row *row, kernel_spec *spec, const char *words, char *error, size_t error_size);

/* The row that does this for a format, or null. */
typedef enum {
    KERNEL_SCALE,
    KERNEL_QUANTIZE,
    KERNEL_DEQUANTIZE,
    KERNEL_DYNAMIC, /* scales and codes at once */
    KERNEL_REPACK,  /* codes in another layout */
    KERNEL_PREPACK, /* codes in the order in which tensor cores take them, or back */
    KERNEL_MATMUL,  /* a product with weights that are decoded on the way */
    KERNEL_FAKE_QUANTIZE,
    KERNEL_FAKE_QUANTIZE_BACKWARD,
    KERNEL_LSQ,
    KERNEL_LSQ_BACKWARD,
    KERNEL_INT4_DOT,
    KERNEL_INT4_DOT_SCALED,
    KERNEL_INT4_MATMUL,
    KERNEL_INT4_TOP,
    KERNEL_INT8_MATMUL,
    KERNEL_W8A8,
    KERNEL_W4A8,
    KERNEL_W4A4,
    KERNEL_INT8_CONV2D,
    KERNEL_RANGE, /* parts of the others from here on */
    KERNEL_GLOBAL,
    KERNEL_NEST,
    KERNEL_TRAIN_SCALE,
    KERNEL_LONG_SUM,
    KERNEL_TRANSPOSE,
    KERNEL_ROUTE, /* grouped products: rows sorted by expert */
    KERNEL_OPERATIONS
} kernel_operation;
const kernel_row *kernel_find_operation(kernel_operation operation, const format_row *format);

/* The row that brings codes of one format into the layout of another, or null where they are not the same kind of
 * codes. */
const kernel_row *kernel_find_repack(const format_row *from, const format_row *to);

/* The row that prepacks weights of a format. */
const kernel_row *kernel_find_prepack(const format_row *format);

/* Whether the row is a product: it is about three matrices, not about one. */
bool kernel_is_product(const kernel_row *row);

/* Which operation the row is of. */
kernel_operation kernel_operation_of(const kernel_row *row);

/* Which settings the row takes: those that both its operation and its format know. */
kernel_key_set kernel_keys(const kernel_row *row);

/* The name of its .entry: "qdnn_quantize_nf4". */
void kernel_entry_name(const kernel_row *row, char *text, size_t size);

/* ---- Formats, as a descriptor names them (formats/formats.c) ---- */

typedef struct format_facts {
    const char *name;
    qdnnDataType_t storage;
    unsigned bits; /* of a code */
    qdnnZeroKind_t zero_kind;
    qdnnBlockFormat_t block;
    qdnnCodeKind_t code; /* where it makes the format one of its own; else DEFAULT */
} format_facts;
const format_facts *kernel_format(const kernel_row *row); /* null: the row belongs to no format */

/* The format of codes of that kind, or null. bits 0: as many as the storage has. A code kind that makes a format
 * of its own (bitsandbytes' FP4, 6-bit floats) is told by `code`. */
const format_row *kernel_find_format(qdnnDataType_t storage, unsigned bits, qdnnZeroKind_t zero_kind,
                                     qdnnCodeKind_t code, qdnnBlockFormat_t block);
const format_facts *kernel_format_at(int index); /* null past the end */
const format_facts *format_facts_of(const format_row *format);

/* ---- Emitting ---- */

/* How a kernel is launched. */
typedef struct kernel_geometry {
    uint32_t block;
    uint64_t elements_per_block; /* the grid is ceil(n / elements_per_block) blocks; none for n = 0 */
    uint64_t
        blocks; /* not 0: the kernel loops over its work, any grid gives the same bytes, this one is best */
    uint32_t
        shared_dynamic; /* bytes of shared memory that the launch has to give, on top of the kernel's own */
} kernel_geometry;

/* Of a normal specification. */
kernel_geometry kernel_geometry_of(const kernel_row *row, const kernel_spec *spec);

/* An emitted kernel. */
typedef struct kernel_text {
    char *ptx; /* free with free() */
    kernel_geometry geometry;
    ptx_info info; /* its parameters and what else a launch needs to know */
} kernel_text;

/* Emits the kernel for an SM; options may be null. False, with the reason in *error, when it cannot be;
 * out->ptx is null then. */
bool kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const ptx_options *options,
                 kernel_text *out, ptx_error *error);

/* ---- Launching (steps.c) ---- */

/* The shape of a convolution; pairs are height, width. */
typedef struct kernel_conv {
    uint64_t images, channels, outputs, groups;
    uint64_t in[2], out[2], stride[2], padding[2], dilation[2];
} kernel_conv;

/* Where the heads of a cache lie, in elements: slot s, head h at (s / page_slots) page_stride + (s % page_slots) slot_stride +
 * h head_stride. */
typedef struct kernel_cache {
    uint64_t page_slots, page_stride, slot_stride, head_stride;
} kernel_cache;

/* What an operation is about: a matrix, flat tensors being one row. */
typedef struct kernel_problem {
    uint64_t rows, columns;
    uint64_t table_rows; /* of row_index: how many rows the quantized tensor has; `rows` are those of the plain one */
    kernel_cache cache;  /* of strided; x_stride then has the rows of x */
    /* Products: rows and columns are those of the weights, of one expert where there are several. */
    uint64_t m;                  /* rows of x and y */
    uint64_t x_stride, y_stride; /* elements from a row to the next */
    uint64_t experts;            /* 0: the product is not grouped */
    float alpha;                 /* where it is a number */
    /* Integer products. */
    int32_t x_zero, w_zero, y_zero;
    float multiplier;
    /* Both: */
    qdnnDataType_t quantizes; /* the type of x where it is quantized first; 0: x are codes, or as data says */
    bool w_is_kn;              /* the weights are [K, N] in memory; rows and columns are N and K all the same */
    uint64_t top;
    kernel_conv conv;
    uint64_t lora_rank;          /* not 0: what x A B gives is added, with addend in the specification */
    float lora_scale;
    qdnnDataType_t lora_type; /* of A and B: F32, F16, BF16 */
} kernel_problem;

/* One parameter of a launch. */
typedef enum { KERNEL_OPERAND, KERNEL_WORKSPACE, KERNEL_NUMBER } kernel_param_kind;
typedef struct kernel_param {
    uint8_t kind;    /* kernel_param_kind */
    uint8_t operand; /* qdnnOperand_t; of the workspace, which part the kernel takes it for */
    uint8_t bytes;   /* of a number: 4 or 8 */
    bool is_rows;    /* the number is m, which an execute may lower */
    uint64_t value;  /* the number's bits; or how many bytes into the workspace */
} kernel_param;

enum { KERNEL_PARAMS_MAX = 28, KERNEL_STEPS_MAX = 6 };

typedef struct kernel_step {
    const kernel_row *row;
    kernel_spec spec; /* normal */
    uint64_t grid[3]; /* a GPU takes fewer than 2^31, 2^16, 2^16 blocks */
    uint32_t block, shared;
    uint32_t rows_per_block; /* of x, along the grid's y; 0: the grid does not depend on them */
    int n_params;
    kernel_param params[KERNEL_PARAMS_MAX];
} kernel_step;

/* The launches, one after another, that make up an operation on a problem. */
typedef struct kernel_steps {
    int count; /* none where there is nothing to do */
    kernel_step at[KERNEL_STEPS_MAX];
    uint64_t workspace; /* bytes that they share */
} kernel_steps;

void kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps);

/* What each operand of the operation is: whether it is read or written, the alignment that its pointer needs, its
 * bytes. An operand that the operation does not have is all 0. */
typedef struct kernel_operand {
    bool reads, writes;
    unsigned align;
    uint64_t bytes;
} kernel_operand;
/* "x": its name as a parameter of kernels. */
const char *kernel_operand_name(qdnnOperand_t operand);
void kernel_operands_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_operand operands[QDNN_OPERAND_COUNT]);

/* What the columns of a matrix must be a multiple of: the elements of a block, 1 where the format has none. */
uint64_t kernel_columns_multiple(const kernel_row *row);

/* Rows of x that share weights: all of them, or as many as an expert has on average. */
uint64_t kernel_rows_together(uint64_t m, uint64_t experts);

/* Sets `product`, `tile_rows` and `split` as they suit a product in mode exact of up to problem->m rows: the bits do not
 * depend on them. */
void kernel_product_choose(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec);

/* The tile_rows that suit a product by KERNEL_PRODUCT_TILE of up to so many rows. */
uint64_t kernel_tile_rows(const kernel_row *row, uint64_t rows);
/* And by KERNEL_PRODUCT_STREAM; `grouped`: with experts. */
uint64_t kernel_stream_rows(const kernel_row *row, bool grouped, uint64_t rows);

/* How many scales a matrix has; none for an empty one. */
uint64_t kernel_groups(const kernel_spec *spec, const kernel_problem *problem);

/* How many f32 a range kernel writes for n elements, and how they belong to groups: f32 number k to group (k /
 * list) mod channels (channels 0: to k / list). */
uint64_t kernel_range_count(const kernel_row *row, const kernel_spec *spec, uint64_t n);
uint64_t kernel_range_list(const kernel_row *row, const kernel_spec *spec);

#endif
