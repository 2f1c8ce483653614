/* One definition of a legal call: for every combination of the attributes of a quantization descriptor, library and host_ref both
 * accept or both refuse; where they accept, they agree on the size of every array; where the library refuses, its error names the
 * remedy. */
#include <stdlib.h>
#include <string.h>

#include "driver/api/request.h"
#include "formats/ref_spec.h"
#include "scene.h"

enum { VALUES_MAX = 20 };

/* An attribute and the values that are tried. */
typedef struct axis {
    qdnnQuantAttribute_t attribute;
    int n;
    int64_t values[VALUES_MAX];
} axis;

#define COUNT(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define AXIS(attribute, ...)                                                                                 \
    {                                                                                                        \
        QDNN_QUANT_##attribute, COUNT(__VA_ARGS__),                                                          \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define STORAGE                                                                                              \
    AXIS(STORAGE, QDNN_DATA_I4, QDNN_DATA_NF4, QDNN_DATA_I8, QDNN_DATA_U8, QDNN_DATA_FP4, QDNN_DATA_F8E4M3,  \
         QDNN_DATA_F8E5M2, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16)
#define GRANULARITY AXIS(GRANULARITY, 0, 1, 2, 3)
#define GROUP_SIZE  AXIS(GROUP_SIZE, 128, 1, 48, INT64_C(1) << 40)
#define SCALE_TYPE  AXIS(SCALE_TYPE, 0, 1, 2, 3, 4)
#define ZERO_KIND   AXIS(ZERO_KIND, 0, 1, 2)
#define ZERO_TYPE                                                                                            \
    AXIS(ZERO_TYPE, QDNN_DATA_U8, QDNN_DATA_I8, QDNN_DATA_U32, QDNN_DATA_I32, QDNN_DATA_F32, QDNN_DATA_F16,  \
         QDNN_DATA_BF16)
#define NIBBLE_ORDER AXIS(NIBBLE_ORDER, 0, 1)
#define LAYOUT       AXIS(LAYOUT, 0, 1, 2, 3, 4)
#define BLOCK_ROWS   AXIS(BLOCK_ROWS, 1, 5)
#define GLOBAL_SCALE AXIS(GLOBAL_SCALE, 0, 1, 2)
#define SWIZZLE      AXIS(SCALE_SWIZZLE, 0, 1)
#define CODE_BITS    AXIS(CODE_BITS, 0, 1, 2, 3, 4, 5, 6, 7, 8)
#define CODE_KIND    AXIS(CODE_KIND, 0, 1, 2, 3, 4, 5, 6)
#define BLOCK_FORMAT AXIS(BLOCK_FORMAT, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
#define GROUPS       AXIS(GROUPS, 0, 1, 2, 3)
#define SCALE_ORDER  AXIS(SCALE_ORDER, 0, 1)
#define GROUP_INDEX  AXIS(GROUP_INDEX, 0, 1)
#define NESTED       AXIS(NESTED, 0, 1)
#define ZERO_PACKED  AXIS(ZERO_PACKED, 0, 1)
#define MINUS_ONE    AXIS(ZERO_MINUS_ONE, 0, 1)
#define RANGE        AXIS(RANGE, 0, 1)
/* A few formats of each family. */
#define SOME_STORAGE AXIS(STORAGE, QDNN_DATA_I4, QDNN_DATA_NF4, QDNN_DATA_I8, QDNN_DATA_FP4, QDNN_DATA_F16)
#define INTEGERS     AXIS(STORAGE, QDNN_DATA_I4, QDNN_DATA_I8, QDNN_DATA_U8)
#define INTEGER_BITS AXIS(CODE_BITS, 0, 3, 4)
#define INTEGER_KIND AXIS(CODE_KIND, 0, 1, 2, 3)

/* Whole products. Attributes that a rule mentions together are in one of them; the random ones below mix all. */
enum { AXES_MAX = 12 };
static const struct {
    const char *name;
    axis axes[AXES_MAX];
} products[] = {
    {"codes", {STORAGE, CODE_BITS, CODE_KIND, ZERO_KIND, LAYOUT, NIBBLE_ORDER}},
    {"groups",
     {SOME_STORAGE, GRANULARITY, GROUP_SIZE, LAYOUT, GROUPS, BLOCK_ROWS, SCALE_ORDER, SWIZZLE, GROUP_INDEX,
      AXIS(ZERO_KIND, 0, 1)}},
    {"scales",
     {STORAGE, GRANULARITY, SCALE_TYPE, GLOBAL_SCALE, NESTED, SWIZZLE, ZERO_KIND, AXIS(GROUPS, 0, 2),
      AXIS(ZERO_TYPE, QDNN_DATA_U8, QDNN_DATA_F32)}},
    {"zeros",
     {INTEGERS, INTEGER_BITS, INTEGER_KIND, ZERO_KIND, ZERO_TYPE, ZERO_PACKED, MINUS_ONE,
      AXIS(ZERO_WRAPS, 0, 1), RANGE, GRANULARITY}},
    {"packed_zeros",
     {INTEGERS, INTEGER_KIND, ZERO_KIND, ZERO_PACKED, LAYOUT, GROUPS, BLOCK_ROWS, GRANULARITY, GROUP_INDEX,
      AXIS(ZERO_TYPE, QDNN_DATA_U8, QDNN_DATA_F32)}},
    {"groups_of_zeros",
     {AXIS(STORAGE, QDNN_DATA_I4, QDNN_DATA_NF4), ZERO_KIND, AXIS(ZERO_TYPE, QDNN_DATA_U8, QDNN_DATA_F32),
      GRANULARITY, AXIS(ZERO_GRANULARITY, -1, 0, 1, 2), AXIS(ZERO_GROUP_SIZE, 0, 128, 64),
      AXIS(BLOCK_FORMAT, 0, 1)}},
    {"blocks",
     {BLOCK_FORMAT, AXIS(STORAGE, QDNN_DATA_I4, QDNN_DATA_U8, QDNN_DATA_F32), GRANULARITY, ZERO_KIND,
      CODE_BITS, AXIS(LAYOUT, 0, 4), NIBBLE_ORDER}},
    {"plain",
     {AXIS(STORAGE, QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16), AXIS(CODE_BITS, 0, 8),
      AXIS(CODE_KIND, 0, 3), AXIS(ZERO_KIND, 0, 1), LAYOUT, NIBBLE_ORDER, SWIZZLE, SCALE_ORDER, GROUP_INDEX,
      NESTED, AXIS(GLOBAL_SCALE, 0, 1)}},
};

/* Each attribute with all of its values, for the random combinations. */
static const axis every[] = {STORAGE,
                             GRANULARITY,
                             AXIS(AXIS, 0, 1),
                             GROUP_SIZE,
                             SCALE_TYPE,
                             ZERO_KIND,
                             ZERO_TYPE,
                             AXIS(ROUNDING, 0, 1),
                             AXIS(DIVISION, 0, 1),
                             NIBBLE_ORDER,
                             LAYOUT,
                             BLOCK_ROWS,
                             GLOBAL_SCALE,
                             SWIZZLE,
                             CODE_BITS,
                             CODE_KIND,
                             BLOCK_FORMAT,
                             GROUPS,
                             SCALE_ORDER,
                             GROUP_INDEX,
                             NESTED,
                             ZERO_PACKED,
                             MINUS_ONE,
                             AXIS(ZERO_WRAPS, 0, 1),
                             RANGE,
                             AXIS(MX_ROUNDING, 0, 1, 2),
                             AXIS(ZERO_GRANULARITY, -1, 0, 1, 2),
                             AXIS(ZERO_GROUP_SIZE, 0, 128)};
_Static_assert(sizeof every / sizeof every[0] == QDNN_QUANT_ATTRIBUTE_COUNT, "each attribute once");

/* ---- The descriptor as host_ref takes it, by the documents of the attributes alone ---- */

static void set_groups(const int64_t *v, const int64_t dims[2], ref_quant_spec *s)
{
    s->group_size = 1;
    switch ((qdnnGranularity_t)v[QDNN_QUANT_GRANULARITY]) {
    case QDNN_GRANULARITY_NONE:
        s->no_scale = true;
        return;
    case QDNN_GRANULARITY_TENSOR:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = 1;
        return;
    case QDNN_GRANULARITY_CHANNEL:
        s->groups = QDNN_GROUPS_FLAT;
        s->channels = dims[v[QDNN_QUANT_AXIS]];
        s->group_size = v[QDNN_QUANT_AXIS] == 0 ? dims[1] : 1;
        return;
    case QDNN_GRANULARITY_GROUP:
        s->groups = (qdnnGroups_t)v[QDNN_QUANT_GROUPS];
        s->group_size = v[QDNN_QUANT_GROUP_SIZE];
        s->group_rows = v[QDNN_QUANT_BLOCK_ROWS];
        return;
    }
}

static ref_quant_spec reference_of(const int64_t *v, const int64_t dims[2])
{
    ref_quant_spec s = {.data = QDNN_DATA_F32,
                        .block = (qdnnBlockFormat_t)v[QDNN_QUANT_BLOCK_FORMAT],
                        .storage = (qdnnDataType_t)v[QDNN_QUANT_STORAGE],
                        .bits = (int)v[QDNN_QUANT_CODE_BITS],
                        .code = (qdnnCodeKind_t)v[QDNN_QUANT_CODE_KIND],
                        .layout = (qdnnLayout_t)v[QDNN_QUANT_LAYOUT],
                        .nibble_order = (qdnnNibbleOrder_t)v[QDNN_QUANT_NIBBLE_ORDER],
                        .group_index = v[QDNN_QUANT_GROUP_INDEX],
                        .scale_order = (qdnnScaleOrder_t)v[QDNN_QUANT_SCALE_ORDER],
                        .scale_swizzle = (qdnnScaleSwizzle_t)v[QDNN_QUANT_SCALE_SWIZZLE],
                        .scale = (qdnnScaleType_t)v[QDNN_QUANT_SCALE_TYPE],
                        .nested = v[QDNN_QUANT_NESTED],
                        .global_scale = (int)v[QDNN_QUANT_GLOBAL_SCALE],
                        .mx_rounding = (qdnnMxRounding_t)v[QDNN_QUANT_MX_ROUNDING],
                        .floor = 1e-12f,
                        .zero_kind = (qdnnZeroKind_t)v[QDNN_QUANT_ZERO_KIND],
                        .zero = (qdnnDataType_t)v[QDNN_QUANT_ZERO_TYPE],
                        .zero_packed = v[QDNN_QUANT_ZERO_PACKED],
                        .zero_minus_one = v[QDNN_QUANT_ZERO_MINUS_ONE],
                        .zero_wraps = v[QDNN_QUANT_ZERO_WRAPS],
                        .range = (qdnnRange_t)v[QDNN_QUANT_RANGE],
                        .rounding = (qdnnRounding_t)v[QDNN_QUANT_ROUNDING],
                        .division = (qdnnDivision_t)v[QDNN_QUANT_DIVISION]};
    set_groups(v, dims, &s);
    return s;
}

/* host_ref has one set of groups for scales and zeros: other groups of zeros have no reference. */
static bool zeros_share_groups(const int64_t *v)
{
    int64_t zeros = v[QDNN_QUANT_ZERO_GRANULARITY], size = v[QDNN_QUANT_ZERO_GROUP_SIZE];
    if (v[QDNN_QUANT_ZERO_KIND] == QDNN_ZERO_NONE || v[QDNN_QUANT_BLOCK_FORMAT] != QDNN_BLOCK_NONE)
        return true;
    if (zeros >= 0 && zeros != v[QDNN_QUANT_GRANULARITY])
        return false;
    return v[QDNN_QUANT_GRANULARITY] != QDNN_GRANULARITY_GROUP || size == 0 ||
           size == v[QDNN_QUANT_GROUP_SIZE];
}

/* ---- The comparison ---- */

static const int64_t shapes[][2] = {{8, 256}, {3, 7}};
static const struct {
    const char *name;
    kernel_operation library;
    ref_operation reference;
} operations[] = {{"scale", KERNEL_SCALE, REF_SCALE},
                  {"quantize", KERNEL_QUANTIZE, REF_QUANTIZE},
                  {"dequantize", KERNEL_DEQUANTIZE, REF_DEQUANTIZE}};

typedef struct tally {
    int accepted, refused, wrong;
} tally;

/* "STORAGE=27 ...": what is not at its default. */
static const char *text_of(const int64_t *v)
{
    static char text[512];
    const struct qdnnQuantDescriptor usual = quant_presets();
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < QDNN_QUANT_ATTRIBUTE_COUNT && used < sizeof text; i++)
        if (v[i] != usual.values[i])
            used += (size_t)snprintf(text + used, sizeof text - used, " %s=%lld",
                                     quant_attribute_name((qdnnQuantAttribute_t)i), (long long)v[i]);
    return text;
}

static void complain(tally *t, const struct qdnnQuantDescriptor *quant, const char *operation,
                     const char *what, const char *reason)
{
    if (t->wrong++ < 10)
        FAIL("%s of%s: %s: %s", operation, text_of(quant->values), what, reason);
}

static void compare_sizes(tally *t, const struct qdnnQuantDescriptor *quant, const request *r,
                          const ref_quant_spec *spec, const int64_t dims[2])
{
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET; i++)
        if ((int64_t)r->operands[i].bytes != ref_operand_bytes(spec, dims[0], dims[1], i))
            complain(t, quant, "dequantize", "another size of an operand than host_ref's", "");
}

static void compare(tally *t, const struct qdnnQuantDescriptor *quant, int n_shapes)
{
    for (int shape = 0; shape < n_shapes; shape++) {
        struct qdnnTensorDescriptor tensor;
        CHECK_STATUS_IS(tensor_set(&tensor, QDNN_DATA_F32, 2, shapes[shape], NULL), QDNN_STATUS_SUCCESS);
        const ref_quant_spec spec = reference_of(quant->values, shapes[shape]);
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
            char reason[160] = "zeros are grouped otherwise";
            request r;
            bool has_reference = zeros_share_groups(quant->values) &&
                                 ref_is_legal(operations[i].reference, &spec, shapes[shape][0],
                                              shapes[shape][1], reason, sizeof reason);
            qdnnStatus_t status = request_make(operations[i].library, &tensor, quant, &r);
            t->accepted += !status;
            t->refused += status != 0;
            if (!status && !has_reference)
                complain(t, quant, operations[i].name, "accepted, and host_ref refuses", reason);
            if (status && has_reference)
                complain(t, quant, operations[i].name, "refused, and host_ref accepts", last_sentence());
            if (status && !strstr(last_sentence(), "fix: "))
                complain(t, quant, operations[i].name, "the error names no remedy", last_sentence());
            if (!status && has_reference && operations[i].library == KERNEL_DEQUANTIZE)
                compare_sizes(t, quant, &r, &spec, shapes[shape]);
        }
    }
}

static void report(const tally *t)
{
    CHECK_EQ_I64(t->wrong, 0);
    CHECK(t->accepted > 0 && t->refused > 0);
    printf("%d accepted, %d refused\n", t->accepted, t->refused);
}

static void walk(tally *t, const axis *axes, struct qdnnQuantDescriptor *quant, int depth)
{
    if (depth == AXES_MAX || axes[depth].n == 0) {
        compare(t, quant, 1);
        return;
    }
    for (int i = 0; i < axes[depth].n; i++) {
        quant->values[axes[depth].attribute] = axes[depth].values[i];
        walk(t, axes, quant, depth + 1);
    }
}

TEST_ROWS(ApiLegal, LibraryAndReferenceAgree, products)
{
    tally t = {0};
    struct qdnnQuantDescriptor quant = quant_presets();
    walk(&t, products[index].axes, &quant, 0);
    report(&t);
}

/* All attributes together, most at their defaults: else nearly everything would be refused. */
TEST_CASE(ApiLegal, RandomOnesToo)
{
    enum { TRIALS = 20000 };
    uint32_t seed = 20261118;
    tally t = {0};
    printf("seed %u\n", seed);
    for (int trial = 0; trial < TRIALS; trial++) {
        struct qdnnQuantDescriptor quant = quant_presets();
        for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
            seed = seed * 1664525u + 1013904223u;
            bool other = seed >> 24 < (every[i].attribute == QDNN_QUANT_BLOCK_FORMAT ? 8u : 64u);
            if (other || every[i].attribute == QDNN_QUANT_STORAGE)
                quant.values[every[i].attribute] =
                    every[i].values[(seed >> 8 & 0xFFFF) % (uint32_t)every[i].n];
        }
        compare(&t, &quant, 2);
    }
    report(&t);
}

/* ---- Tensor descriptors that were never set ---- */

TEST_CASE(ApiLegal, ATensorThatWasNeverSetIsRefused)
{
    NEED_PTXVM;
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t one, unset;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t matmul;
    qdnnPlan_t plan = NULL;
    size_t bytes = 77;
    void *d = (void *)(uintptr_t)4096;
    vm_begin(NULL);
    REQUIRE(basics_create(&handle, &one, &quant) && OK(qdnnCreateTensorDescriptor(&unset)) &&
            OK(qdnnCreateMatmulDescriptor(&matmul)));
    const qdnnStatus_t statuses[] = {
        qdnnGetOperandSize(quant, unset, QDNN_OPERAND_CODES, &bytes),
        qdnnGetQuantizedSizes(quant, unset, &bytes, NULL, NULL),
        qdnnCreateScalePlan(handle, unset, quant, &plan),
        qdnnCreateQuantizePlan(handle, unset, quant, &plan),
        qdnnCreateDequantizePlan(handle, unset, quant, &plan),
        qdnnQuantize(handle, unset, d, quant, d, d, d),
        qdnnCreateMatmulPlan(handle, matmul, unset, unset, quant, unset, &plan),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        CHECK_STATUS_IS(statuses[i], QDNN_STATUS_BAD_PARAM);
    CHECK_HAS(last_sentence(), "x was never set; fix: call qdnnSetTensorDescriptor");
    CHECK(bytes == 77 && !plan);
    OK(qdnnDestroyMatmulDescriptor(matmul));
    OK(qdnnDestroyTensorDescriptor(unset));
    basics_destroy(handle, one, quant);
    vm_end();
}

/* ---- The typed call ---- */

static qdnnTensorDescriptor_t matrix_of(qdnnDataType_t type, int64_t rows, int64_t columns)
{
    qdnnTensorDescriptor_t t = NULL;
    OK(qdnnCreateTensorDescriptor(&t));
    OK(qdnnSetTensorDescriptor(t, type, 2, (const int64_t[]){rows, columns}, NULL));
    return t;
}

#define GROUPS_OF(size)                                                                                      \
    {                                                                                                        \
        QDNN_DATA_I4, QDNN_GRANULARITY_GROUP, size, QDNN_GRANULARITY_GROUP, size                             \
    }
static const struct {
    const char *name;
    qdnnDataType_t x, y;
    int64_t y_rows, y_columns, n;
    qdnnQuantizedType_t type;
    int gated, algorithm;
} typed[] = {
    {"y_columns", QDNN_DATA_F32, QDNN_DATA_F32, 1, 5, 4, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"y_rows", QDNN_DATA_F32, QDNN_DATA_F32, 2, 4, 4, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"x_i32", QDNN_DATA_I32, QDNN_DATA_F32, 1, 4, 4, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"x_f64", QDNN_DATA_F64, QDNN_DATA_F32, 1, 4, 4, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"y_i8", QDNN_DATA_F32, QDNN_DATA_I8, 1, 4, 4, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"negative_group", QDNN_DATA_F32, QDNN_DATA_F32, 1, 4, 4, GROUPS_OF(-4), 0, QDNN_MATMUL_AUTO},
    {"large_group", QDNN_DATA_F32, QDNN_DATA_F32, 1, 4, 4, GROUPS_OF(INT64_C(1) << 41), 0, QDNN_MATMUL_AUTO},
    {"nf4",
     QDNN_DATA_F32,
     QDNN_DATA_F32,
     1,
     4,
     4,
     {QDNN_DATA_NF4, QDNN_GRANULARITY_GROUP, 8, QDNN_GRANULARITY_GROUP, 8},
     0,
     QDNN_MATMUL_AUTO},
    {"n_0", QDNN_DATA_F32, QDNN_DATA_F32, 1, 4, 0, GROUPS_OF(8), 0, QDNN_MATMUL_AUTO},
    {"tensor_f32", QDNN_DATA_F32, QDNN_DATA_F32, 1, 4, 4, GROUPS_OF(8), 0, QDNN_MATMUL_TENSOR},
    {"gated_odd", QDNN_DATA_F32, QDNN_DATA_F32, 1, 2, 5, GROUPS_OF(8), 1, QDNN_MATMUL_AUTO},
};

TEST_ROWS(ApiLegal, ErrorsOfTheTypedCallEndWithARemedy, typed)
{
    NEED_PTXVM;
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t one;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t m;
    qdnnPlan_t plan = NULL;
    vm_begin(NULL);
    REQUIRE(basics_create(&handle, &one, &quant) && OK(qdnnCreateMatmulDescriptor(&m)));
    qdnnTensorDescriptor_t x = matrix_of(typed[index].x, 1, 32),
                           y = matrix_of(typed[index].y, typed[index].y_rows, typed[index].y_columns);
    OK(qdnnSetMatmulAttribute(m, QDNN_MATMUL_GATED, typed[index].gated));
    OK(qdnnSetMatmulAttribute(m, QDNN_MATMUL_ALGORITHM, typed[index].algorithm));
    CHECK(qdnnCreateTypedMatmulPlan(handle, m, x, &typed[index].type, typed[index].n, y, &plan) != 0);
    CHECK_HAS(last_sentence(), "; fix: ");
    CHECK(!strstr(last_sentence(), "have codes of 4 bits"));
    CHECK(qdnnCreateTypedMatmulPlan(handle, m, x, NULL, 4, y, &plan) == QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_HAS(last_sentence(), "; fix: ");
    CHECK(!plan);
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroyMatmulDescriptor(m));
    basics_destroy(handle, one, quant);
    vm_end();
}

/* AUTO with prepacked weights is on tensor cores: the error speaks of what the caller set. */
TEST_CASE(ApiLegal, PrepackedUnderAutoNamesItsRemedy)
{
    NEED_PTXVM;
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t one;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t m;
    qdnnPlan_t plan = NULL;
    vm_begin(NULL);
    REQUIRE(basics_create(&handle, &one, &quant) && OK(qdnnCreateMatmulDescriptor(&m)));
    qdnnTensorDescriptor_t x = matrix_of(QDNN_DATA_F32, 1, 32), w = matrix_of(QDNN_DATA_F32, 4, 32),
                           y = matrix_of(QDNN_DATA_F32, 1, 4);
    OK(qdnnSetMatmulAttribute(m, QDNN_MATMUL_PREPACKED, 1));
    OK(qdnnSetQuantWeights(quant, QDNN_WEIGHTS_INT4_BYTES, 32));
    CHECK_STATUS_IS(qdnnCreateMatmulPlan(handle, m, x, w, quant, y, &plan), QDNN_STATUS_NOT_SUPPORTED);
    CHECK_HAS(last_sentence(), "fix: convert x, or set QDNN_MATMUL_PREPACKED to 0");
    OK(qdnnDestroyTensorDescriptor(x));
    OK(qdnnDestroyTensorDescriptor(w));
    OK(qdnnDestroyTensorDescriptor(y));
    OK(qdnnDestroyMatmulDescriptor(m));
    basics_destroy(handle, one, quant);
    vm_end();
}
