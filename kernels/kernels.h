/* The kernels that qdnn can emit: a list of formats, a list of operations, and the registry, which is their
 * product. Operations on plain tensors only, such as those for training, belong to no format and have one row
 * each.
 *
 * Tests, the ptxgen tool, the benchmarks and the driver all iterate over kernel_rows. To add a format, add a
 * row to formats/formats.def; to add an operation, add a row to registry/operations.c.
 *
 * Terms used in this folder: a plain tensor holds ordinary floats; a quantized tensor holds one code (a small
 * integer) per element. Elements that share a scale form a group; a group may also have a zero, which is a
 * zero point or a minimum. A specification lists everything that the text of a kernel is specialised for; its
 * normal form identifies the kernel. A problem gives the sizes of the data; a step is one launch. */
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

/* The direction along which a product sums in the matrix of weights: COLUMNS for weights [N, K], ROWS for [K,
 * N]. */
typedef enum { KERNEL_K_COLUMNS, KERNEL_K_ROWS } kernel_reduction;

/* The kernels that compute a product. These follow the exact contract, and all give the same bits: */
typedef enum {
    KERNEL_PRODUCT_STAGED, /* weights go through shared memory as f32: any format, any shape */
    KERNEL_PRODUCT_GEMV,   /* few rows, codes along K: weights are decoded in registers */
    KERNEL_PRODUCT_RAGGED, /* like GEMV and BLOCKS, for rows that do not fill 16 bytes and codes of 3, 5, 6 bits */
    KERNEL_PRODUCT_BLOCKS,   /* few rows, GGUF blocks: decoded in registers */
    KERNEL_PRODUCT_TERNARY,  /* like BLOCKS, for TQ1_0 */
    KERNEL_PRODUCT_COLUMNS,  /* few rows, weights [K, N]: decoded in registers */
    KERNEL_PRODUCT_LANEWISE, /* many rows: tiles of outputs; the lanes of a sum are added one after another */
    KERNEL_PRODUCT_JOIN,     /* runs after LANEWISE where `split` is not 1: joins the sums of its blocks */
    /* These follow the contract of mode tensor, and all give the same bits on SMs of one family: */
    KERNEL_PRODUCT_TILE,   /* weights go through shared memory as f16 or bf16: any format, any shape */
    KERNEL_PRODUCT_STREAM, /* prepacked weights go straight into registers */
    KERNEL_PRODUCT_STORED  /* the same with codes of 4 bits as they are stored */
} kernel_product;

/* The largest group_size, group_rows and channels. */
#define KERNEL_GROUP_MAX (UINT64_C(1) << 40)

/* ---- The parts of a specification. Fields of type int without an enumeration of their own are 0 for no and 1 for
 * yes, unless noted. ---- */

/* A quantized tensor as it is stored: what its codes mean, where they lie, and what lies beside them. */
typedef struct kernel_stored {
    qdnnCodeKind_t code; /* how integer codes represent values: OFFSET, UNSIGNED, TWOS_COMPLEMENT */
    qdnnLayout_t layout; /* BYTES, WORDS_INTERLEAVED, WORDS_ROWS, AWQ */
    qdnnNibbleOrder_t nibble_order;

    qdnnGroups_t groups; /* DEFAULT: no scales; FLAT, ROWS, COLUMNS */
    uint64_t group_size; /* neighbours that share a scale, along the direction of the groups; at least 1 */
    uint64_t group_rows; /* ROWS, COLUMNS: extent of a group across its direction */
    /* FLAT: element i belongs to group (i / group_size) mod channels; 0: to group i / group_size */
    uint64_t channels;
    qdnnScaleOrder_t scale_order;
    qdnnScaleSwizzle_t scale_swizzle;
    int group_index; /* COLUMNS: the group of a row is looked up in a list */
    int group_table; /* with group_index: scales and zeros are looked up in a table in shared memory */

    qdnnScaleType_t scale;
    int nested;
    int global_scale;    /* 0: none; 1: stored as is; 2: stored as its reciprocal */
    qdnnDataType_t zero; /* U8, I8, U32, I32, F32, F16, BF16; before normalising also KERNEL_ZERO_DEFAULT */
    int zero_packed, zero_minus_one, zero_wraps;
} kernel_stored;

/* How numbers become codes and scales. */
typedef struct kernel_quantizing {
    qdnnRounding_t rounding;
    qdnnDivision_t division;
    qdnnRange_t range;
    qdnnMxRounding_t mx_rounding;
    float floor; /* smallest range that is used to compute a scale */
} kernel_quantizing;

/* repack: what the codes are converted to. */
typedef struct kernel_target {
    qdnnLayout_t layout;
    qdnnNibbleOrder_t nibble_order;
    qdnnCodeKind_t code;
} kernel_target;

typedef struct kernel_training {
    int bits; /* 8, 4, 2 */
    qdnnScaleMode_t scale_mode;
    float decay; /* for scale mode EMA */
    qdnnBackward_t backward;
    int gradient_factor;
} kernel_training;

/* Products with weights that are decoded on the fly; `data` is the type of x. */
typedef struct kernel_multiplying {
    kernel_product kernel;
    int x_fp8;   /* qdnnDataType_t: x is FP8 in memory, and data is f16; 0: no */
    int x_scale; /* each row of sums is multiplied by its own factor before anything else */
    kernel_reduction reduction;
    int grouped; /* a stack of weights (experts); each row of y selects one */
    uint64_t
        x_share; /* with grouped: neighbouring rows of y that have the same row of x, the slots of a token */
    int unpack;  /* prepack: the reverse direction */
    uint64_t tile_rows; /* rows of x per thread block */
    uint64_t
        split; /* thread blocks that share the lanes of a sum; in TILE: strips of a sum that a block has side by side; in GEMV, RAGGED,
                  BLOCKS and TERNARY: how many times fewer outputs a warp has than it can have */
} kernel_multiplying;

/* What follows the sum, in either kind of product. */
typedef struct kernel_epilogue {
    qdnnDataType_t output; /* type of y: F32, F16, BF16 */
    qdnnAlpha_t alpha;
    int bias; /* qdnnDataType_t; 0: none */
    qdnnActivation_t activation;
    int gated; /* the weights have 2N outputs, a and b; the result is act(a) * b */
    int residual;
    int addend;     /* an f32 matrix in the workspace is added before the bias */
    int row_weight; /* each row of the result is multiplied by its own factor */
} kernel_epilogue;

/* Integer products: codes times codes. */
typedef struct kernel_integer {
    qdnnDataType_t x_codes, w_codes; /* x: I8, U8, I4; w: I8, I4 */
    qdnnDataType_t result; /* I32: sums; I8, U8: requantized; F32: scaled, stored as the epilogue's output */
    int w_scale_first;     /* of the two scales, that of w is applied first */
    int x_zero, w_zero;    /* whether these zero points may be nonzero */
    int bias_i32;
    int multipliers;          /* one multiplier per column */
    int tile;                 /* rows of x per thread block: 1, 4 (dp4a), 64, 128 (tensor cores) */
    qdnnDataType_t top_index; /* I32, F32 */
} kernel_integer;

/* Rows of which few elements are chosen: how the work is divided into kernels, in their order. */
typedef enum {
    KERNEL_PHASE_WHOLE, /* one kernel does all */
    KERNEL_PHASE_PARTS, /* the best of each part of a row */
    KERNEL_PHASE_SUMS,  /* the sums of each part */
    KERNEL_PHASE_JOIN,  /* the result, from those */
    KERNEL_PHASE_LAST   /* parts; the last block of a row to finish its own goes on with the result */
} kernel_phase;

typedef struct kernel_selecting {
    int phase;       /* kernel_phase */
    int greedy;      /* sample: the largest, without settings */
    int counts;      /* sample: tokens that occurred are penalized */
    int mask;        /* softmax: qdnnDataType_t; 0: none */
    int slope, sink; /* softmax */
    uint64_t rounds; /* softmax: rows of so many times 256 elements at most, one per warp; 0: one per block */
    int staged;      /* softmax: a block keeps its row in shared memory */
} kernel_selecting;

/* Routing of tokens to experts; combining takes only the slots. */
enum { ROUTE_EXPERTS_MAX = 1024, ROUTE_SLOTS_MAX = 32, ROUTE_GROUPS_MAX = 32 };
typedef struct kernel_routing {
    qdnnScores_t scores;
    uint64_t experts, slots; /* slots: experts of a token */
    uint64_t groups, kept; /* of neighbouring experts, and how many groups of them a token may choose from */
    qdnnGroupScore_t group_score;
    int bias, renormalize;
} kernel_routing;

typedef struct kernel_window {
    int nhwc;
    uint64_t window_h, window_w, window_c; /* window_c: channels per group */
} kernel_window;

/* Operations on rows: all of them. */
typedef struct kernel_row_extent {
    uint64_t columns; /* elements of a row: of y */
    uint64_t heads;   /* adjacent rows that make up a token */
} kernel_row_extent;

typedef enum { KERNEL_NORM_RMS, KERNEL_NORM_LAYER } kernel_norm_kind;
typedef struct kernel_norm {
    kernel_norm_kind kind;
    int weight;   /* qdnnDataType_t; 0: none */
    int plus_one; /* the factor is 1 + weight */
    int sum;      /* qdnnDataType_t of the residual in front, and of the sum; 0: none */
} kernel_norm;

typedef enum {
    KERNEL_POINTWISE_ADD,
    KERNEL_POINTWISE_MUL,
    KERNEL_POINTWISE_FUNCTION,
    KERNEL_POINTWISE_GATED
} kernel_pointwise_kind;
/* Where the second input is: a tensor like the first, one row for all, a number; or a part of each row of x. */
typedef enum {
    KERNEL_B_NONE,
    KERNEL_B_SAME,
    KERNEL_B_ROW,
    KERNEL_B_NUMBER,
    KERNEL_B_SECOND_HALF,
    KERNEL_B_FIRST_HALF,
    KERNEL_B_INTERLEAVED /* the odd columns */
} kernel_b;
typedef struct kernel_pointwise {
    kernel_pointwise_kind kind;
    qdnnActivation_t function;
    kernel_b b;
    qdnnDataType_t b_type; /* of a tensor or a row */
} kernel_pointwise;

/* Rotary positions: a range of the elements of a head is rotated. */
typedef enum { KERNEL_ROPE_ONE, KERNEL_ROPE_CONTIGUOUS, KERNEL_ROPE_INTERLEAVED } kernel_rope_sections;
enum { KERNEL_ROPE_SECTIONS = 4 };
typedef struct kernel_rope {
    uint64_t head;                 /* elements of a head of queries and keys */
    uint64_t queries;              /* heads of x that come first and become y */
    uint64_t first, size;          /* the range, of an even size; 0: nothing is rotated */
    int neighbours;                /* pairs are (2i, 2i + 1); else (i, i + size / 2) */
    kernel_rope_sections sections; /* which of a token's positions a pair has; ONE: there is only one */
    uint64_t section[KERNEL_ROPE_SECTIONS]; /* pairs of each */
    int by_section;                         /* positions [sections, tokens]; else [tokens, sections] */
} kernel_rope;

/* KV caches: what a slot holds. Codes and scales are described by `stored`, except for the groups. */
typedef enum {
    KERNEL_KV_BY_TOKEN, /* a scale for each head and token */
    KERNEL_KV_BY_GROUP, /* for each stored.group_size elements of it */
    KERNEL_KV_BY_HEAD,  /* static: for each head */
    KERNEL_KV_BY_CACHE  /* static: one */
} kernel_kv_scales;
typedef enum {
    KERNEL_KV_LISTED,    /* ROW_INDEX has the slot of each token */
    KERNEL_KV_PAGED,     /* it follows from PAGE_TABLE, SEQUENCE and KEY_INDEX */
    KERNEL_KV_CONTIGUOUS /* from SEQUENCE and KEY_INDEX */
} kernel_kv_slots;
typedef struct kernel_kv {
    int type; /* qdnnDataType_t of the elements; 0: codes or blocks of the row's format */
    kernel_kv_scales scales;
    int by_head; /* scales [heads, slots, groups]; else [slots, heads, groups] */
    kernel_kv_slots slots;
    uint64_t heads;                /* of keys and values; 0: there is no cache */
    uint64_t key_size, value_size; /* elements of a head; 0: there are none of them */
} kernel_kv;

/* Copies (copy/copy.h). */
typedef enum { KERNEL_COPY_FLAT, KERNEL_COPY_LINES, KERNEL_COPY_ELEMENTS, KERNEL_COPY_TILES } kernel_copy_way;
typedef struct kernel_copying {
    int from, to; /* qdnnDataType_t; U8, U16, U32, U64: any elements of that size */
    kernel_copy_way way;
    uint64_t lanes; /* threads that share a line */
} kernel_copying;

/* Attention. The queries of a token are rope.queries, the cache is kv; masks and sinks are those of `select`. */
typedef enum {
    KERNEL_SEES_KEY_INDEX, /* keys 0 to KEY_INDEX */
    KERNEL_SEES_LENGTH,    /* keys 0 to SEQUENCE_LENGTH - 1 */
    KERNEL_SEES_RANGE,     /* a range from VISIBLE */
    KERNEL_SEES_ALL        /* all that the cache has room for */
} kernel_sees;
typedef enum { KERNEL_ADDS_NONE, KERNEL_ADDS_MASK, KERNEL_ADDS_SLOPED_MASK, KERNEL_ADDS_ALIBI } kernel_adds;
typedef struct kernel_attention {
    int tensor; /* mode tensor; else exact */
    kernel_sees sees;
    kernel_adds adds;
    int window;         /* only the last keys of those are seen */
    int one_sequence;   /* there is no list of sequences */
    int cap;            /* scores are capped */
    int mask_heads;     /* each head has a mask */
    int values_in_keys; /* values are the first elements of keys */
} kernel_attention;

/* A kernel reads the fields that kernel_keys returns for it; the others keep their defaults. */
typedef struct kernel_spec {
    qdnnDataType_t data; /* type of the plain tensor: F32, F16, BF16, F64 */
    /* dequantize: only the rows in a list are read; quantize_dynamic: rows are written to the places in a
     * list */
    int row_index;
    int index_type; /* qdnnDataType_t of the list: I32, I64 */
    /* with row_index, quantize_dynamic: rows of x, and slots and heads of the codes, need not be adjacent */
    int strided;
    kernel_stored stored;
    kernel_quantizing quantize;
    kernel_target to;
    kernel_training train;
    kernel_multiplying product;
    kernel_epilogue epilogue;
    kernel_integer integer;
    kernel_window conv;
    kernel_selecting select;
    kernel_routing route;
    kernel_row_extent rows;
    kernel_norm norm;
    kernel_pointwise pointwise;
    kernel_rope rope;
    kernel_kv kv;
    kernel_copying copy;
    kernel_attention attention;
} kernel_spec;

/* The zero type that the format has by itself: u8, i8 for signed codes, f32 for minima. */
#define KERNEL_ZERO_DEFAULT ((qdnnDataType_t)0)

/* The fields of kernel_spec as numbers. A list of them ends with KERNEL_KEY_COUNT. */
#define KERNEL_KEY(key) KERNEL_KEY_##key
typedef enum {
#define SETTING(key, ...) KERNEL_KEY(key),
#include "kernels/settings.def"
#undef SETTING
    KERNEL_KEY_COUNT
} kernel_key;
#define KERNEL_KEYS(...) ((const kernel_key[]){__VA_ARGS__, KERNEL_KEY_COUNT})

/* A set of them, of any size. */
typedef struct kernel_key_set {
    uint32_t word[(KERNEL_KEY_COUNT + 31) / 32];
} kernel_key_set;
kernel_key_set kernel_key_set_of(const kernel_key *list);
kernel_key_set kernel_key_set_others(kernel_key_set set);               /* all that are not in it */
kernel_key_set kernel_key_set_both(kernel_key_set a, kernel_key_set b); /* what is in both */
static inline bool kernel_key_set_has(const kernel_key_set *set, kernel_key key)
{
    return set->word[key / 32] >> key % 32 & 1;
}

typedef struct kernel_row kernel_row;

/* The defaults from settings.def: f32 data, flat groups of 128 with f32 scales ... The code kind is DEFAULT,
 * which normalising replaces by the format's own. */
kernel_spec kernel_spec_default(void);

/* Sets one field from text ("data", "f16"). Returns false if the row does not accept it; `error` then names
 * what it accepts. */
bool kernel_spec_set(const kernel_row *row, kernel_spec *spec, const char *key, const char *value,
                     char *error, size_t error_size);

/* A decimal number, in any locale. */
bool kernel_parse_f32(const char *text, float *value);

/* Whether the row has a setting of that name. */
bool kernel_takes(const kernel_row *row, const char *key);

/* Whether every field that the row reads has a valid value, and a kernel exists for the combination. If not,
 * `error` has the reason. */
bool kernel_spec_check(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* The same, and whether a single kernel does all of it: some operations need several launches. */
bool kernel_is_emitted(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);
/* Whether the kernel that a product's specification selects can compute this problem. */
struct kernel_problem;
bool kernel_product_fits(const kernel_row *row, const kernel_spec *spec,
                         const struct kernel_problem *problem);
/* Whether a specification that passed kernel_spec_check can handle a problem of that size. If not, `error`
 * has the reason. */
bool kernel_problem_check(const kernel_spec *spec, const struct kernel_problem *problem, char *error,
                          size_t error_size);

/* The normal form: fields that the row does not read are set to their defaults, and of equivalent settings
 * one is chosen, so that all specifications of the same kernel become equal. It identifies the kernel. */
kernel_spec kernel_spec_normal(const kernel_row *row, const kernel_spec *spec);
bool kernel_spec_is_normal(const kernel_row *row, const kernel_spec *spec);
/* A pointer to it that is valid to the end of the block. */
#define KERNEL_NORMAL(row, spec) ((const kernel_spec[]){kernel_spec_normal(row, spec)})

/* kernel_spec_check and kernel_spec_normal in one: what a caller asks for becomes what all functions behind it are given. They
 * assert that it is normal, and none makes it so again. */
bool kernel_spec_settle(const kernel_row *row, kernel_spec *spec, char *error, size_t error_size);
/* The same for what has to be a single kernel. */
bool kernel_spec_settle_kernel(const kernel_row *row, kernel_spec *spec, char *error, size_t error_size);

/* Whether two specifications are equal, field by field. */
bool kernel_spec_equal(const kernel_spec *a, const kernel_spec *b);

/* "data=f16 scale=f32 group_size=64 ...": the settings that the row has, in the order of settings.def; less
 * common ones appear only if they differ from their defaults. Two kernels of a row never have the same
 * text. */
enum { KERNEL_SPEC_TEXT = 1024 }; /* large enough for all of them */
/* `spec` is normal, here and in the names below. */
void kernel_spec_text(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* The value of one setting, as text: "staged" for product. */
void kernel_spec_value(const kernel_spec *spec, const char *key, char *text, size_t size);

/* A short form for file names: "f16_f32_g64", followed by the settings that differ from their defaults. If it
 * is too long, its end is replaced by a hash of the whole. */
enum { KERNEL_SPEC_LABEL = 128 };
void kernel_spec_label(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* The name of a kernel's files, without suffix: "quantize_nf4_f16_f32_g64_sm_90". It is unique per kernel,
 * settings and SM, and a valid C identifier. */
enum { KERNEL_FILE_NAME = 224 };
void kernel_file_name(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, char *text,
                      size_t size);

/* The table of settings, for tools that list them: name, description of the allowed values, default as text.
 * Null past the end. */
typedef struct kernel_key_info {
    kernel_key key;
    const char *name, *values, *preset;
} kernel_key_info;
const kernel_key_info *kernel_key_at(int index);

/* ---- The registry (registry.c) ---- */

typedef struct operation_row operation_row;
typedef struct format_row format_row;

struct kernel_row {
    const char *name; /* "quantize_nf4" */
    /* stable, for lookup by users: "quant.nf4.quantize"; null: a part of other operations */
    const char *operation_name;
    const char *summary; /* one-line description */
    const operation_row *operation;
    const format_row *format; /* format_none if the operation has no codes */
};

extern const kernel_row kernel_rows[];
extern const int kernel_row_count;

/* Finds a row by its own name or that of its operation; null if there is none. */
const kernel_row *kernel_find(const char *name);

/* ---- Names for a row with some settings fixed (aliases.c) ---- */

typedef struct kernel_alias {
    const char *name;   /* stable: "quant.linear_4bit" */
    const char *kernel; /* "matmul_int4" */
    /* "layout=interleaved code=unsigned ...": fixed by the name, except tile_rows, which no result depends on */
    const char *settings;
    enum {
        KERNEL_ANY_ROWS,
        KERNEL_ONE_ROW,
        KERNEL_SEVERAL_ROWS
    } rows; /* of x, for which the name is meant */
    const char *summary;
} kernel_alias;
const kernel_alias *kernel_alias_at(int index); /* null past the end */
const kernel_alias *kernel_find_alias(const char *name);

/* The row that a name stands for (a row's own name, its operation's, or an alias), and the settings that the
 * name implies. Null if the name is unknown. */
const kernel_row *kernel_open(const char *name, kernel_spec *spec);

/* The stable name of what a specification computes for m rows of x: of the alias that fits, or of the row. */
const char *kernel_operation_name(const kernel_row *row, const kernel_spec *spec, uint64_t m);

/* kernel_spec_set for a row that was opened by that name: an alias's own settings cannot be changed, and errors say the
 * name that the caller knows. */
bool kernel_name_set(const char *name, const kernel_row *row, kernel_spec *spec, const char *key,
                     const char *value, char *error, size_t error_size);

/* Sets fields from words separated by spaces: "data=f16 group_size=64". Returns false, with the reason, if
 * one is not accepted. */
bool kernel_spec_set_words(const kernel_row *row, kernel_spec *spec, const char *words, char *error,
                           size_t error_size);

/* The row of this operation for a format, or null. */
typedef enum {
    KERNEL_SCALE,
    KERNEL_QUANTIZE,
    KERNEL_DEQUANTIZE,
    KERNEL_DYNAMIC, /* scales and codes in one operation */
    KERNEL_REPACK,  /* converts codes to another layout */
    KERNEL_PREPACK, /* converts codes to the order in which tensor cores read them, or back */
    KERNEL_MATMUL,  /* a product with weights that are decoded on the fly */
    KERNEL_FAKE_QUANTIZE,
    KERNEL_FAKE_QUANTIZE_BACKWARD,
    KERNEL_LSQ,
    KERNEL_LSQ_BACKWARD,
    KERNEL_INT4_DOT,
    KERNEL_INT4_DOT_SCALED,
    KERNEL_INT4_MATMUL,
    KERNEL_INT4_TOP1,
    KERNEL_INT4_TOPK,
    KERNEL_INT8_MATMUL,
    KERNEL_W8A8,
    KERNEL_W4A8,
    KERNEL_W4A4,
    KERNEL_INT8_CONV2D,
    KERNEL_SOFTMAX,
    KERNEL_TOP_K,
    KERNEL_SAMPLE,
    KERNEL_NORM,
    KERNEL_NORM_QUANTIZED,
    KERNEL_POINTWISE,
    KERNEL_POINTWISE_QUANTIZED,
    KERNEL_ROPE, /* and what is written into a KV cache of plain elements */
    KERNEL_ROPE_QUANTIZED,
    KERNEL_DEQUANTIZE_TRANSPOSED, /* blocks, to [K, N] */
    KERNEL_QUANTIZE_ROWS,         /* blocks, into the rows of a table that a list names */
    KERNEL_COPY,
    KERNEL_GATHER,
    KERNEL_SCATTER,
    KERNEL_ATTENTION, /* over a KV cache of plain elements, of codes or of blocks */
    KERNEL_ATTENTION_QUANTIZED,
    KERNEL_ROUTE,
    KERNEL_COMBINE,
    KERNEL_RANGE, /* from here on: parts of the operations above */
    KERNEL_GLOBAL,
    KERNEL_NEST,
    KERNEL_TRAIN_SCALE,
    KERNEL_LONG_SUM,
    KERNEL_TRANSPOSE,
    KERNEL_TOP_JOIN,
    KERNEL_ROUTE_ROWS, /* grouped products: rows sorted by expert */
    KERNEL_OPERATIONS
} kernel_operation;
const kernel_row *kernel_find_operation(kernel_operation operation, const format_row *format);

/* The row that converts codes of one format to the layout of another, or null if the two have different kinds
 * of codes. */
const kernel_row *kernel_find_repack(const format_row *from, const format_row *to);

/* The row that prepacks weights of a format. */
const kernel_row *kernel_find_prepack(const format_row *format);

/* Whether the row is a product, which has three matrices instead of one. */
bool kernel_is_product(const kernel_row *row);

/* The operation that the row belongs to. */
kernel_operation kernel_operation_of(const kernel_row *row);

/* The settings of the row: those that both its operation and its format have. */
kernel_key_set kernel_keys(const kernel_row *row);
bool kernel_has_key(const kernel_row *row, kernel_key key);

/* The name of the row's .entry: "qdnn_quantize_nf4". */
void kernel_entry_name(const kernel_row *row, char *text, size_t size);

/* ---- Formats, as descriptors select them (formats/formats.c) ---- */

typedef struct format_facts {
    const char *name;
    qdnnDataType_t storage;
    unsigned bits; /* of a code */
    qdnnZeroKind_t zero_kind;
    qdnnBlockFormat_t block;
    qdnnCodeKind_t code; /* where the code kind distinguishes the format from others; else DEFAULT */
} format_facts;
const format_facts *kernel_format(const kernel_row *row); /* null: the row has no format */

/* The format with these properties, or null. bits 0: as many as the storage type has. `code` matters for
 * formats that only the code kind distinguishes (bitsandbytes' FP4, 6-bit floats). */
const format_row *kernel_find_format(qdnnDataType_t storage, unsigned bits, qdnnZeroKind_t zero_kind,
                                     qdnnCodeKind_t code, qdnnBlockFormat_t block);
const format_facts *kernel_format_at(int index); /* null past the end */
const format_facts *format_facts_of(const format_row *format);

/* ---- Emitting ---- */

/* A formula over the numbers of a launch (rules.c), such as min(ceil(m / 8), 65535): its operations in postfix
 * order. Plans evaluate it; manifests and launchers print it. */
enum { KERNEL_RULE_MAX = 40, KERNEL_RULE_CONSTANTS = 8 };
typedef struct kernel_rule {
    uint8_t count; /* 0: no rule */
    uint8_t constants;
    uint8_t operation[KERNEL_RULE_MAX];       /* or a number */
    uint64_t constant[KERNEL_RULE_CONSTANTS]; /* in the order in which they occur */
} kernel_rule;

/* How a rule is printed: "ceil(n / 128)", or in C, with the functions quotient_up and least. */
typedef enum { KERNEL_RULE_TEXT, KERNEL_RULE_C } kernel_rule_style;
enum { KERNEL_RULE_CHARS = 512 };
void kernel_rule_text(const kernel_rule *rule, kernel_rule_style style, char text[KERNEL_RULE_CHARS]);
/* The rule's i-th number (kernel_number in describe.h), each once; -1 past the end. */
int kernel_rule_number(const kernel_rule *rule, int i);

/* How a kernel is launched. This is the only description of it: steps are made from it. */
typedef struct kernel_geometry {
    uint32_t block;
    /* tensor elements per block; 0: the grid is not a division of elements */
    uint64_t elements_per_block;
    /* if not 0: the kernel loops over its work; any grid size gives the same bytes, and this one is best */
    uint64_t blocks;
    /* blocks along x, y and z, given that there is something to do */
    kernel_rule grid[3];
    /* bytes of dynamic shared memory for the launch, in addition to the kernel's static shared memory */
    uint32_t shared_dynamic;
} kernel_geometry;

/* `spec` is in normal form. */
kernel_geometry kernel_geometry_of(const kernel_row *row, const kernel_spec *spec);

/* An emitted kernel. */
typedef struct kernel_text {
    char *ptx; /* free with free() */
    kernel_geometry geometry;
    ptx_info info; /* its parameters and other properties that a launch needs */
} kernel_text;

/* Emits the kernel for an SM; options may be null. On failure returns false, with the reason in *error, and
 * out->ptx is null. */
bool kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const ptx_options *options,
                 kernel_text *out, ptx_error *error);
/* The same for a normal specification that kernel_is_emitted accepts, such as that of a step. */
bool kernel_emit_normal(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error);

/* ---- Launching (steps.c) ---- */

/* The shape of a convolution; pairs are height, width. */
typedef struct kernel_conv {
    uint64_t images, channels, outputs, groups;
    uint64_t in[2], out[2], stride[2], padding[2], dilation[2];
} kernel_conv;

/* Layout of a strided cache, in elements: slot s, head h is at
 * (s / page_slots) * page_stride + (s % page_slots) * slot_stride + h * head_stride. */
typedef struct kernel_cache {
    uint64_t page_slots, page_stride, slot_stride, head_stride;
} kernel_cache;

/* Copies: the two dimensions between m and columns, and the strides of these and of columns, in elements. */
typedef struct kernel_lines {
    uint64_t dims[2], x[3], y[3];
} kernel_lines;

/* The sizes that an operation works on: a matrix; a flat tensor is a matrix of one row. */
typedef struct kernel_problem {
    uint64_t rows, columns;
    /* of the device; 0: unknown. Only the choice of a product's shape may depend on it, and whatever does is part of the
     * specification, so that kernels are shared by devices for which the choice is the same. */
    int multiprocessors;
    /* with row_index: number of rows of the quantized tensor; `rows` is that of the plain one */
    uint64_t table_rows;
    kernel_cache cache; /* with strided; the stride between rows of x is then x_stride. KV caches: the keys */
    kernel_cache values;                    /* KV caches: the values, with the same page_slots */
    uint64_t pages, table_pages, positions; /* KV caches; rows of rope's tables */
    kernel_lines lines;
    /* Products: rows and columns are those of the weights; with several experts, those of one expert. */
    uint64_t m;                  /* rows of x and y */
    uint64_t x_stride, y_stride; /* elements from one row to the next */
    uint64_t b_stride;           /* of operations on rows */
    uint64_t experts;            /* 0: the product is not grouped */
    float alpha;                 /* for QDNN_ALPHA_NUMBER */
    /* Integer products. */
    int32_t x_zero, w_zero, y_zero;
    float multiplier;
    /* Both kinds of product: */
    /* type of x if it is quantized first; 0: x holds codes already, or has type `data` */
    qdnnDataType_t quantizes;
    /* the weights are [K, N] in memory; rows and columns are N and K even so */
    bool w_is_kn;
    uint64_t top;
    uint64_t
        parts; /* into which each row is divided; set by steps, but for attention it may be given (0: as fits) */
    bool counted; /* attention: there are counters, by which the last block of a row knows that it is */
    uint64_t window, mask_keys, mask_stride, mask_head_stride; /* attention */
    kernel_conv conv;
    float eps, limit, factor; /* operations on rows */
    /* if not 0: x A B is added, and `addend` is set in the specification */
    uint64_t lora_rank;
    float lora_scale;
    qdnnDataType_t lora_type; /* type of A and B: F32, F16, BF16 */
} kernel_problem;

/* A product's extents, from its problem. */
typedef struct kernel_shape {
    uint64_t k, outputs; /* of the weights */
    uint64_t n;          /* of y: half of outputs for gated pairs */
} kernel_shape;
kernel_shape kernel_shape_of(const kernel_spec *spec, const kernel_problem *problem);

/* Problems by name (sizes.c), as in "m=64": the sizes that are not given are 1, strides those of packed rows. A
 * convolution has images, channels, outputs, height, width, stride, padding and dilation instead of rows and columns.
 * kernel_problem_complete derives the rest and checks all of it; on failure, `error` has the reason. */
kernel_problem kernel_problem_default(void);
const char *kernel_size_name(int index); /* null past the end */
bool kernel_size_set(kernel_problem *problem, const char *key, const char *value, char *error,
                     size_t error_size);
bool kernel_problem_complete(const kernel_row *row, const kernel_spec *spec, kernel_problem *problem,
                             char *error, size_t error_size);

/* Whether the operation takes several kernels, however small it is. */
bool kernel_is_sequence(const kernel_row *row, const kernel_spec *spec);

/* The largest size of products that count in 32 bits: a counter goes beyond it by a step, which is below 2^16. */
enum { KERNEL_SIZE_32 = INT32_MAX - UINT16_MAX };

/* One parameter of a launch. */
typedef enum { KERNEL_OPERAND, KERNEL_WORKSPACE, KERNEL_NUMBER } kernel_param_kind;
typedef struct kernel_param {
    uint8_t kind;    /* kernel_param_kind */
    uint8_t operand; /* qdnnOperand_t; for the workspace, which part of it (WORKSPACE_...) */
    uint8_t bytes;   /* size of a number: 4 or 8 */
    bool is_rows;    /* the number is that of the rows, which an execute call may lower */
    uint64_t value;  /* the number's bits, or a byte offset into the workspace */
} kernel_param;

enum { KERNEL_PARAMS_MAX = 32, KERNEL_STEPS_MAX = 6 };

/* How a grid depends on the rows: ceil(rows * work / per_block) blocks along one dimension; per_block 0: it does not. */
typedef struct kernel_row_blocks {
    int dimension;
    uint64_t work, per_block;
} kernel_row_blocks;

typedef struct kernel_step {
    const kernel_row *row;
    kernel_spec spec; /* in normal form */
    uint64_t grid[3]; /* a GPU accepts fewer than 2^31, 2^16, 2^16 blocks */
    uint32_t block, shared;
    kernel_row_blocks rows;
    int n_params;
    kernel_param params[KERNEL_PARAMS_MAX];
} kernel_step;

/* The sequence of launches that makes up an operation on a problem. */
typedef struct kernel_steps {
    int count; /* 0 if there is nothing to do */
    kernel_step at[KERNEL_STEPS_MAX];
    uint64_t workspace; /* bytes of workspace, shared by all steps */
} kernel_steps;

/* `spec` is normal. */
void kernel_steps_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                     kernel_steps *steps);

typedef uint64_t operand_set; /* one bit for each */

/* Describes an operand of an operation: whether it is read or written, the alignment required of its pointer,
 * and its size in bytes. All fields are 0 for an operand that the operation does not have. */
typedef struct kernel_operand {
    bool reads, writes;
    unsigned align;
    uint64_t bytes;
} kernel_operand;
/* The operand's name as a kernel parameter: "x". */
const char *kernel_operand_name(qdnnOperand_t operand);
/* `spec` is normal. */
void kernel_operands_of(const kernel_row *row, const kernel_spec *spec, const kernel_problem *problem,
                        kernel_operand operands[QDNN_OPERAND_COUNT]);

/* The number of columns of a matrix must be a multiple of this: the elements of a block, or 1 for formats
 * without blocks. */
uint64_t kernel_columns_multiple(const kernel_row *row);

/* Rows of x that use the same weights: all of them, or the average number per expert. */
uint64_t kernel_rows_together(uint64_t m, uint64_t experts);

/* Sets `product`, `tile_rows` and `split` to suit a product in mode exact of up to problem->m rows.
 * The bits of the result do not depend on them. */
void kernel_product_choose(const kernel_row *row, const kernel_problem *problem, kernel_spec *spec);

/* The same in mode tensor, for weights as stored or prepacked. */
void kernel_tensor_choose(const kernel_row *row, bool prepacked, const kernel_problem *problem,
                          kernel_spec *spec);

/* The best tile_rows for KERNEL_PRODUCT_TILE with up to that many rows. */
uint64_t kernel_tile_rows(const kernel_row *row, uint64_t rows);
/* The same for KERNEL_PRODUCT_STREAM, and the largest split with so many rows. */
uint64_t kernel_stream_rows(const kernel_row *row, uint64_t rows);
uint64_t kernel_stream_parts_max(uint64_t rows);

/* Sets the lanes that suit lines of so many columns, for a copy whose way is set, and for rows by index. No byte depends on
 * them. */
void kernel_copy_choose(kernel_spec *spec, uint64_t columns);

/* The number of scales of a matrix; 0 for an empty one. */
uint64_t kernel_groups(const kernel_spec *spec, const kernel_problem *problem);

/* The number of f32 values that a range kernel writes for n elements, and how they are assigned to groups:
 * value k belongs to group (k / list) mod channels (channels 0: to group k / list). */
uint64_t kernel_range_count(const kernel_row *row, const kernel_spec *spec, uint64_t n);
uint64_t kernel_range_list(const kernel_row *row, const kernel_spec *spec);

#endif
