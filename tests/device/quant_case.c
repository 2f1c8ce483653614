/* A call of a quantization operation as data. */
#include "device/quant_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device_buffer.h"
#include "driver/api/plan.h"
#include "formats/edges.h"
#include "formats/ref_spec.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

int64_t quant_case_elements(const quant_case *c)
{
    int64_t n = 1;
    for (int i = 0; i < c->rank; i++)
        n *= c->dims[i];
    return n;
}

int64_t quant_case_columns(const kernel_row *row, int64_t least)
{
    int64_t multiple = (int64_t)kernel_columns_multiple(row);
    return (least + multiple - 1) / multiple * multiple;
}

int64_t quant_case_row_elements(const quant_case *c)
{
    return c->dims[c->rank - 1];
}

int64_t quant_case_rows(const quant_case *c)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < c->rank; i++)
        n *= c->dims[i];
    return n;
}

/* The specification with the groups that the granularity implies: element i is in group (i / group_size) mod
 * channels; without channels, in group i / group_size. */
static kernel_spec grouped_spec(const quant_case *c)
{
    kernel_spec spec = c->spec;
    if (c->granularity == QDNN_GRANULARITY_NONE)
        spec.stored.groups = QDNN_GROUPS_DEFAULT;
    spec.stored.group_size = c->granularity == QDNN_GRANULARITY_GROUP ? (uint64_t)c->extent : 1;
    spec.stored.channels = c->granularity == QDNN_GRANULARITY_TENSOR ? 1 : 0;
    if (c->granularity != QDNN_GRANULARITY_CHANNEL || quant_case_elements(c) == 0)
        return spec;
    spec.stored.channels = (uint64_t)c->dims[c->extent];
    for (int i = (int)c->extent + 1; i < c->rank; i++)
        spec.stored.group_size *= (uint64_t)c->dims[i];
    return spec;
}

void quant_case_text(const quant_case *c, char *text, size_t size)
{
    static const char *const kinds[] = {[DATA_NORMAL] = "normal",
                                        [DATA_CONSTANT] = "constant",
                                        [DATA_ZEROS] = "zeros",
                                        [DATA_SUBNORMAL] = "subnormal",
                                        [DATA_HUGE] = "huge",
                                        [DATA_SPECIAL] = "special",
                                        [DATA_TIES] = "ties",
                                        [DATA_CLAMP] = "clamped",
                                        [DATA_ONE_HOT] = "one-hot",
                                        [DATA_SUB_BLOCKS] = "sub-block",
                                        [DATA_LEAST] = "least",
                                        [DATA_INFINITE] = "infinite",
                                        [DATA_NANS] = "NaN",
                                        [DATA_MINUTE] = "minute",
                                        [DATA_UNDERFLOW] = "underflowing",
                                        [DATA_TINY] = "tiny",
                                        [DATA_CANCELS] = "cancelling",
                                        [DATA_SCALE_TIES] = "scale-tie",
                                        [DATA_PEAKS] = "peak",
                                        [DATA_SPREAD] = "spread",
                                        [DATA_HALVES] = "half",
                                        [DATA_FEW_F16] = "few-f16",
                                        [DATA_WIDE] = "wide",
                                        [DATA_SMALL] = "small",
                                        [DATA_FLOOR] = "floor",
                                        [DATA_ENDS] = "end",
                                        [DATA_NESTED] = "nested-scale",
                                        [DATA_UNEVEN] = "uneven",
                                        [DATA_INFINITE_TIES] = "infinite-tie",
                                        [DATA_LARGE] = "large",
                                        [DATA_RARELY_LARGE] = "rarely large",
                                        [DATA_UNBOUNDED] = "unbounded",
                                        [DATA_UNEQUAL] = "unequal",
                                        [DATA_LARGE_CANCELS] = "large, cancelling",
                                        [DATA_SMALL_CONSTANT] = "small, constant"};
    char settings[KERNEL_SPEC_TEXT], dims[128] = "";
    kernel_spec spec = grouped_spec(c);
    kernel_spec_text(c->row, KERNEL_NORMAL(c->row, &spec), settings, sizeof settings);
    for (int i = 0, used = 0; i < c->rank; i++)
        used += snprintf(dims + used, sizeof dims - (size_t)used, " %lld", (long long)c->dims[i]);
    snprintf(text, size, "%s: %s, dims%s, %s data, seed %u%s%s", c->row->name, settings, dims, kinds[c->kind],
             (unsigned)c->seed, c->callers ? ", a caller's scales" : "",
             c->blocks_most ? ", in few blocks" : "");
}

/* ---- Descriptors ---- */

static bool set_options(const quant_case *c, qdnnQuantDescriptor_t quant)
{
    const format_facts *f = kernel_format(c->row);
    const ref_quant_spec ref = ref_spec_of(c->row, &c->spec);
    const kernel_spec spec = kernel_spec_normal(c->row, &c->spec); /* nothing that the format cannot mean */
    const struct {
        qdnnQuantAttribute_t attribute;
        int64_t value;
    } options[] = {
        {QDNN_QUANT_CODE_BITS, f->bits <= 8 ? f->bits : 0},
        {QDNN_QUANT_CODE_KIND, ref.code},
        {QDNN_QUANT_BLOCK_FORMAT, f->block},
        {QDNN_QUANT_ZERO_KIND, f->zero_kind},
        {QDNN_QUANT_SCALE_TYPE, spec.stored.scale},
        {QDNN_QUANT_ZERO_TYPE, ref.zero},
        {QDNN_QUANT_ROUNDING, spec.quantize.rounding},
        {QDNN_QUANT_DIVISION, spec.quantize.division},
        {QDNN_QUANT_NIBBLE_ORDER, spec.stored.nibble_order},
        {QDNN_QUANT_RANGE, spec.quantize.range},
        {QDNN_QUANT_MX_ROUNDING, spec.quantize.mx_rounding},
        {QDNN_QUANT_GLOBAL_SCALE, spec.stored.global_scale},
        {QDNN_QUANT_NESTED, spec.stored.nested},
        {QDNN_QUANT_LAYOUT, spec.stored.layout},
        {QDNN_QUANT_GROUPS, spec.stored.groups},
        {QDNN_QUANT_BLOCK_ROWS, (int64_t)spec.stored.group_rows},
        {QDNN_QUANT_SCALE_ORDER, spec.stored.scale_order},
        {QDNN_QUANT_SCALE_SWIZZLE, spec.stored.scale_swizzle},
        {QDNN_QUANT_GROUP_INDEX, spec.stored.group_index},
        {QDNN_QUANT_ZERO_PACKED, spec.stored.zero_packed},
        {QDNN_QUANT_ZERO_MINUS_ONE, spec.stored.zero_minus_one},
        {QDNN_QUANT_ZERO_WRAPS, spec.stored.zero_wraps},
    };
    bool ok = CHECK_QDNN(qdnnSetQuantFloor(quant, spec.quantize.floor));
    for (int i = 0; i < LENGTH(options); i++)
        ok = CHECK_QDNN(qdnnSetQuantAttribute(quant, options[i].attribute, options[i].value)) && ok;
    return ok;
}

bool quant_case_describe(const quant_case *c, qdnnQuantDescriptor_t quant)
{
    return CHECK_QDNN(
               qdnnSetQuantDescriptor(quant, kernel_format(c->row)->storage, c->granularity, c->extent)) &&
           set_options(c, quant);
}

/* Checks that the descriptor selects the kernel of the case. */
static bool set_format(const quant_case *c, quant_descriptors *d)
{
    request r;
    bool ok = quant_case_describe(c, d->quant) &&
              CHECK_QDNN(request_make(kernel_operation_of(c->row), d->tensor, d->quant, &r));
    if (ok && r.row != c->row)
        FAIL("the descriptor of %s leads to %s", c->row->name, r.row->name);
    return ok && r.row == c->row;
}

bool quant_descriptors_make(const quant_case *c, quant_descriptors *out)
{
    *out = (quant_descriptors){0};
    return CHECK_QDNN(qdnnCreateTensorDescriptor(&out->tensor)) &&
           CHECK_QDNN(qdnnSetTensorDescriptor(out->tensor, c->spec.data, c->rank, c->dims, NULL)) &&
           CHECK_QDNN(qdnnCreateQuantDescriptor(&out->quant)) && set_format(c, out);
}

void quant_descriptors_free(quant_descriptors *d)
{
    qdnnDestroyTensorDescriptor(d->tensor);
    qdnnDestroyQuantDescriptor(d->quant);
    *d = (quant_descriptors){0};
}

/* ---- Operands ---- */

const char *quant_operand_name(int operand)
{
    return kernel_operand_name((qdnnOperand_t)operand);
}

ref_quant_spec quant_case_reference(const quant_case *c)
{
    kernel_spec spec = grouped_spec(c);
    return ref_spec_of(c->row, &spec);
}

static int plain_operand(const quant_case *c)
{
    return kernel_operation_of(c->row) == KERNEL_DEQUANTIZE ? QDNN_OPERAND_Y : QDNN_OPERAND_X;
}

/* How host_ref sees the tensor: several matrices back to back, or one with all rows. */
typedef struct matrices {
    ref_quant_spec spec; /* of each */
    int64_t count, rows, columns;
    size_t stride[QDNN_OPERAND_COUNT]; /* bytes from one matrix to the next; 0: they share the operand */
} matrices;

static bool is_lined(const ref_quant_spec *ref)
{
    return ref->groups == QDNN_GROUPS_ROWS || ref->groups == QDNN_GROUPS_COLUMNS;
}

/* Groups along rows and down columns, and words down columns, start anew in each matrix of a stack. Codes in
 * bytes and flat groups continue across matrices, as do a computed global scale and runs of 256 nested
 * scales. */
static bool is_stack(const quant_case *c, const ref_quant_spec *ref, int64_t rows, int64_t columns)
{
    kernel_operation operation = kernel_operation_of(c->row);
    bool makes_scales = operation == KERNEL_SCALE || operation == KERNEL_DYNAMIC;
    bool in_columns = ref->layout == QDNN_LAYOUT_WORDS_INTERLEAVED && operation != KERNEL_SCALE;
    if (c->rank < 3 || ref->block || (makes_scales && ref->global_scale) ||
        (ref->nested && ref_group_count(ref, rows, columns) % 256 != 0))
        return false;
    if (operation != KERNEL_SCALE && ref->layout == QDNN_LAYOUT_BYTES &&
        rows * columns * kernel_format(c->row)->bits % 8 != 0)
        return false;
    return is_lined(ref) || (in_columns && rows * kernel_format(c->row)->bits % 32 != 0);
}

static matrices matrices_of(const quant_case *c, const ref_quant_spec *ref)
{
    matrices m = {*ref, 1, quant_case_rows(c), quant_case_row_elements(c), {0}};
    int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    if (!is_stack(c, ref, rows, m.columns) || m.rows == 0)
        return m;
    if (ref->channels * ref->group_size == quant_case_elements(c)) /* each channel is a single run */
        m.spec.channels = 0;
    m.count = m.rows / rows;
    m.rows = rows;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        bool is_shared = i == QDNN_OPERAND_GLOBAL_SCALE || i == QDNN_OPERAND_NESTED_MAP ||
                         i == QDNN_OPERAND_NESTED_OFFSET ||
                         ((i == QDNN_OPERAND_SCALE || i == QDNN_OPERAND_ZERO) && m.spec.channels > 0);
        m.stride[i] = is_shared ? 0 : (size_t)ref_operand_bytes(&m.spec, m.rows, m.columns, i);
    }
    return m;
}

/* The operands, starting with the given matrix. */
static ref_arrays arrays_at(const quant_operands *o, const matrices *m, int64_t index,
                            uint8_t *host[QDNN_OPERAND_COUNT])
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        host[i] = o->host[i] + (size_t)index * m->stride[i];
    return ref_arrays_of(host);
}

static void set_sizes(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    int64_t rows = quant_case_rows(c), columns = quant_case_row_elements(c);
    matrices m = matrices_of(c, ref);
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_spec spec = grouped_spec(c);
    kernel_operands_of(c->row, KERNEL_NORMAL(c->row, &spec),
                       &(kernel_problem){.rows = (uint64_t)rows, .columns = (uint64_t)columns}, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        o->element[i] = ref_element_bytes(ref, i);
        o->bytes[i] =
            (size_t)ref_operand_bytes(&m.spec, m.rows, m.columns, i) + (size_t)(m.count - 1) * m.stride[i];
        o->reads |= (uint64_t)operands[i].reads << i;
        o->writes |= (uint64_t)operands[i].writes << i;
    }
}

/* Scales that are the elements themselves (set_nested in parity/matrix.c). */
static bool has_single_scales(const quant_case *c, const ref_quant_spec *ref)
{
    return ref->nested && ref->group_size == 1 && c->spec.data == QDNN_DATA_F32 &&
           kernel_operation_of(c->row) == KERNEL_SCALE;
}

/* Maps whose neighbours add up to ties: as they are, or after halving. */
typedef enum { MAP_USUAL, MAP_TIED, MAP_TIED_OFFSET, MAP_LEAST, MAPS } map_kind;

static map_kind map_kind_of(const quant_case *c, const ref_quant_spec *ref)
{
    return has_single_scales(c, ref) && c->kind == DATA_NESTED ? (map_kind)(c->seed % MAPS) : MAP_USUAL;
}

/* Of numbers between 1/2 and 1, the sum of two neighbours is a tie that is rounded up; of the least numbers, half of it is. */
static float map_entry(map_kind kind, size_t i)
{
    enum { APART = 32716 }; /* a multiple of 4 */
    const float odd = i % 2 ? 3 : 0;
    return kind == MAP_USUAL   ? ((float)i - 100.0f) / 155.0f
           : kind == MAP_LEAST ? 0x1p-149f * (4 * (float)i + odd)
                               : 0.5f + 0x1p-24f * ((float)(APART * i) + odd);
}

/* Of constant scales, the offset is the scale: nothing is left, or nothing that is a number. Of scales at midpoints of the map, there is none, or it
 * is so small that the difference is rounded to the scale. */
static float nested_offset(const quant_case *c, const ref_quant_spec *ref)
{
    static const float odd[] = {NAN, INFINITY, 1.75f};
    const map_kind kind = map_kind_of(c, ref);
    if (c->kind == DATA_CONSTANT && has_single_scales(c, ref))
        return c->seed % 2 ? odd[c->seed / 2 % 3] : 0.3125f;
    return kind == MAP_USUAL ? 0.75f : kind == MAP_TIED_OFFSET ? 0x1p-26f : 0;
}

/* Operands that nothing computes: the tables of nested scales, and a global scale if only codes are made. */
static void fill_tables(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    float *map = (float *)(void *)o->host[QDNN_OPERAND_NESTED_MAP],
          *outer = (float *)(void *)o->host[QDNN_OPERAND_NESTED_SCALE];
    for (size_t i = 0; i < o->bytes[QDNN_OPERAND_NESTED_MAP] / 4; i++)
        map[i] = map_entry(map_kind_of(c, ref), i);
    for (size_t i = 0; i < o->bytes[QDNN_OPERAND_NESTED_SCALE] / 4; i++)
        outer[i] = 0.5f + 0.125f * (float)(i % 8);
    if (o->bytes[QDNN_OPERAND_NESTED_OFFSET])
        *(float *)(void *)o->host[QDNN_OPERAND_NESTED_OFFSET] = nested_offset(c, ref);
}

/* Scales at the midpoints between entries of the map, and the numbers beside them, times the largest of each run: 1, or the largest number, which is
 * 2^128 but for a last bit. */
static void fill_midpoints(const quant_case *c, const ref_quant_spec *ref, const quant_operands *o, float *x,
                           int64_t n)
{
    enum { RUN = 256, BESIDE = 3, MIDPOINTS = RUN - 1, STEP = 37 };
    const float *map = (const float *)(const void *)o->host[QDNN_OPERAND_NESTED_MAP];
    const bool is_least = map_kind_of(c, ref) == MAP_LEAST;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (i * STEP + c->seed) % (BESIDE * MIDPOINTS), j = at / BESIDE;
        const float middle = (map[j] + map[j + 1]) * 0.5f;
        const float value = at % BESIDE == 1 ? middle : nextafterf(middle, at % BESIDE ? 2 : 0);
        x[i] = i % RUN == c->seed * STEP % RUN ? (is_least ? 0x1.fffffep127f : 1)
                                               : ldexpf(value, is_least ? 128 : 0);
    }
}

/* The elements. Where each has a nested scale of its own, the extremes are those of a run of scales. */
static void fill_plain(const quant_case *c, const ref_quant_spec *ref, const quant_operands *o, int64_t n)
{
    enum { RUN = 256 };
    void *plain = o->host[plain_operand(c)];
    const bool is_single = has_single_scales(c, ref);
    if (c->kind == DATA_ONE_HOT)
        fill_one_hot(c->spec.data, is_single ? RUN : (uint64_t)ref->group_size, (uint64_t)ref->channels,
                     c->seed, plain, n);
    else if (map_kind_of(c, ref) != MAP_USUAL)
        fill_midpoints(c, ref, o, plain, n);
    else
        fill_data(c->kind, kernel_format(c->row), c->spec.data, c->seed, plain, n);
}

/* The groups of rows, not in order; those of a caller may be out of range. */
static void fill_group_index(const quant_case *c, const matrices *m, quant_operands *o)
{
    static const int32_t strange[] = {-1, INT32_MAX, INT32_MIN};
    int32_t *index = (int32_t *)(void *)o->host[QDNN_OPERAND_GROUP_INDEX];
    int64_t rows = (int64_t)o->bytes[QDNN_OPERAND_GROUP_INDEX] / 4,
            groups = rows ? (m->rows - 1) / c->extent + 1 : 0;
    for (int64_t i = 0; i < rows; i++)
        index[i] = c->callers && i % 5 == 4 ? strange[i / 5 % 3] : (int32_t)((i * 7 + c->seed) % groups);
    if (c->callers && rows > 0)
        index[0] = (int32_t)groups; /* the first index out of range */
}

/* What the scales are multiplied by: NaN, infinite or as it is, in turn; or huge, so that the largest f32 is divided by about that. */
static void fill_callers_factors(const quant_case *c, quant_operands *o)
{
    static const float first[] = {NAN, -INFINITY};
    float *outer = (float *)(void *)o->host[QDNN_OPERAND_NESTED_SCALE],
          *global = (float *)(void *)o->host[QDNN_OPERAND_GLOBAL_SCALE];
    if (o->bytes[QDNN_OPERAND_NESTED_SCALE] && c->kind != DATA_UNEVEN && c->seed % 3 < 2)
        outer[0] = first[c->seed % 3];
    if (o->bytes[QDNN_OPERAND_GLOBAL_SCALE] && c->kind == DATA_INFINITE_TIES)
        *global = 0x1p126f;
}

/* Scales over scales by which elements are beside bounds. In turn, sums that are not rounded, and such that are rounded up. */
static void fill_beside_map(const quant_case *c, quant_operands *o)
{
    float *map = (float *)(void *)o->host[QDNN_OPERAND_NESTED_MAP],
          *outer = (float *)(void *)o->host[QDNN_OPERAND_NESTED_SCALE],
          *offset = (float *)(void *)o->host[QDNN_OPERAND_NESTED_OFFSET];
    const int64_t count = (int64_t)o->bytes[QDNN_OPERAND_NESTED_MAP] / 4;
    fill_beside_scales(kernel_format(c->row), QDNN_SCALE_F32, c->seed, c->kind == DATA_INFINITE_TIES, map,
                       count);
    for (size_t i = 0; i < o->bytes[QDNN_OPERAND_NESTED_SCALE] / 4; i++)
        outer[i] = 1;
    *offset = c->seed % 2 ? 0.75f : 0;
    for (int64_t i = 0; i<count && * offset> 0; i++)
        map[i] = nextafterf(map[i] - *offset, -INFINITY);
}

/* Arbitrary scales and zeros, not computed from data. Packed zeros have every bit pattern. */
static void fill_callers(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    int64_t scales = (int64_t)(o->bytes[QDNN_OPERAND_SCALE] / o->element[QDNN_OPERAND_SCALE]);
    int64_t zeros = (int64_t)(o->bytes[QDNN_OPERAND_ZERO] / o->element[QDNN_OPERAND_ZERO]);
    const bool is_huge = c->kind == DATA_INFINITE_TIES;
    fill_callers_factors(c, o);
    if (ref->nested)
        fill_bytes(c->seed, o->host[QDNN_OPERAND_SCALE], scales);
    if (ref->nested && (c->kind == DATA_UNEVEN || is_huge))
        fill_beside_map(c, o);
    else if (c->kind == DATA_UNEVEN || is_huge)
        fill_beside_scales(kernel_format(c->row), c->spec.stored.scale, c->seed, is_huge,
                           o->host[QDNN_OPERAND_SCALE], scales);
    else if (c->kind == DATA_CLAMP && c->seed % 3 && !ref->nested)
        fill_simple_scales(c->spec.stored.scale, c->seed, o->host[QDNN_OPERAND_SCALE], scales);
    else if (!ref->nested)
        fill_callers_scales(c->spec.stored.scale, c->callers_first, o->host[QDNN_OPERAND_SCALE], scales);
    if (ref->zero_packed)
        fill_bytes(c->seed, o->host[QDNN_OPERAND_ZERO], (int64_t)o->bytes[QDNN_OPERAND_ZERO]);
    else if (zeros > 0 && c->kind == DATA_UNEVEN)
        fill_small_zeros(ref->zero, c->seed, o->host[QDNN_OPERAND_ZERO], zeros);
    else if (zeros > 0)
        fill_callers_zeros(ref->zero, c->callers_first, o->host[QDNN_OPERAND_ZERO], zeros);
}

/* Of scales that are made of the elements, the largest elements stay. */
static void move_elements(const quant_case *c, const matrices *m, quant_operands *o)
{
    uint8_t *host[QDNN_OPERAND_COUNT];
    const bool has_callers = kernel_operation_of(c->row) == KERNEL_QUANTIZE;
    for (int64_t i = 0; i < m->count; i++) {
        ref_arrays arrays = arrays_at(o, m, i, host);
        move_to_bounds(&m->spec, m->rows, m->columns, &arrays, c->seed,
                       has_callers ? 0 : least_peak(kernel_format(c->row)), host[plain_operand(c)]);
    }
}

static void fill_codes(const quant_case *c, const matrices *m, quant_operands *o)
{
    uint8_t *host[QDNN_OPERAND_COUNT];
    for (int64_t i = 0; i < m->count; i++) {
        ref_arrays arrays = arrays_at(o, m, i, host);
        ref_quantize(&m->spec, m->rows, m->columns, host[plain_operand(c)], &arrays);
    }
}

static void fill_values(const quant_case *c, const matrices *m, quant_operands *o)
{
    uint8_t *host[QDNN_OPERAND_COUNT];
    for (int64_t i = 0; i < m->count; i++) {
        ref_arrays arrays = arrays_at(o, m, i, host);
        ref_dequantize(&m->spec, m->rows, m->columns, &arrays, host[plain_operand(c)]);
    }
}

/* Flat groups continue across all matrices. */
static void fill_scales(const quant_case *c, const ref_quant_spec *ref, const matrices *m, quant_operands *o)
{
    uint8_t *host[QDNN_OPERAND_COUNT];
    const int64_t count = is_lined(ref) ? m->count : 1, rows = m->rows * m->count / count;
    for (int64_t i = 0; i < count; i++) {
        ref_arrays arrays = arrays_at(o, m, i, host);
        ref_scale(ref, rows, m->columns, host[plain_operand(c)], &arrays);
    }
}

/* The row of a product's weights that scale i of `count` belongs to, and its place in the row; groups that go down columns have columns for
 * rows. */
static int64_t row_of_scale(const quant_case *c, int64_t i, int64_t count, int64_t *place)
{
    const bool is_down = c->spec.stored.groups == QDNN_GROUPS_COLUMNS;
    const int64_t rows = c->dims[is_down], of_row = count > rows ? count / rows : 1;
    *place = is_down ? i / rows : i % of_row;
    return is_down ? i % rows : i / of_row;
}

/* Of unbounded data: those rows have something infinite. */
enum { UNBOUNDED_APART = 3 };

/* What a scale is multiplied by. Unequal: in few rows, far apart and at all places among those that a thread takes, one scale is small
 * or large, another one in each, and the others are 0, so that nothing hides what becomes of it. */
static float factor_of_scale(const quant_case *c, int64_t i, int64_t count)
{
    enum { APART = 67 };
    const int64_t of_row = count / c->dims[c->spec.stored.groups == QDNN_GROUPS_COLUMNS];
    int64_t place, row = row_of_scale(c, i, count, &place), turn = row / APART;
    if (c->kind == DATA_SMALL || c->kind == DATA_SMALL_CONSTANT)
        return 0x1p-80f;
    if (c->kind == DATA_UNBOUNDED)
        return row % UNBOUNDED_APART == 0 && place == (of_row > 0 ? of_row - 1 : 0) ? INFINITY : 1;
    if (row % APART)
        return 1;
    if (of_row > 0 && place != turn / 2 % of_row)
        return 0;
    return turn % 2 ? 0x1p40f : 0x1p-80f;
}

/* After quantization, so that no floor of scales applies. */
static void change_scales(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    const bool has_minima =
        kernel_format(c->row)->zero_kind == QDNN_ZERO_MINIMUM && ref->zero == QDNN_DATA_F32;
    float *scale = (float *)(void *)o->host[QDNN_OPERAND_SCALE],
          *minimum = (float *)(void *)o->host[QDNN_OPERAND_ZERO];
    if (c->spec.stored.scale != QDNN_SCALE_F32 || ref->nested)
        return;
    const int64_t count = (int64_t)o->bytes[QDNN_OPERAND_SCALE] / 4;
    for (int64_t i = 0; i < count; i++) {
        const float factor = factor_of_scale(c, i, count);
        scale[i] *= factor;
        if (has_minima)
            minimum[i] *= factor;
    }
}

/* Elements that have no scales: rows that begin with infinities, which follow the ends of others. */
static void add_infinities(const quant_case *c, uint8_t *plain, int64_t rows, int64_t columns)
{
    enum { FIRST = 32 };
    const int64_t size = (int64_t)ref_scalar_size(c->spec.data);
    for (int64_t row = 0; row < rows; row += UNBOUNDED_APART)
        fill_data(DATA_INFINITE, kernel_format(c->row), c->spec.data, 0, plain + row * columns * size,
                  columns < FIRST ? columns : FIRST);
}

/* Codes of a few elements of FP8: no quantizing gives NaN to numbers. */
static void add_nans(const ref_quant_spec *ref, quant_operands *o)
{
    enum { APART = 9001, NAN_BITS = 0x7F };
    for (size_t i = 0; i < o->bytes[QDNN_OPERAND_CODES]; i += APART)
        if (ref->storage == QDNN_DATA_F8E4M3 || ref->storage == QDNN_DATA_F8E5M2)
            o->host[QDNN_OPERAND_CODES][i] |= NAN_BITS;
}

/* Sets the bits that pad streams of words to whole words, which may be anything: `length` codes per stream. */
static void fill_padding(const quant_case *c, int bits, int64_t streams, int64_t length, bool interleaved,
                         uint8_t *codes)
{
    const int64_t words = (length * bits + 31) / 32;
    uint32_t state = c->seed * 2654435761u + 1;
    for (int64_t s = 0; s < streams; s++)
        for (int64_t bit = length * bits; bit < words * 32; bit++) {
            const int64_t word = interleaved ? bit / 32 * streams + s : s * words + bit / 32;
            state = state * 1664525u + 1013904223u;
            if (state >> 31)
                codes[word * 4 + bit % 32 / 8] |= (uint8_t)(1u << bit % 8);
        }
}

static void fill_all_padding(const quant_case *c, const matrices *m, quant_operands *o)
{
    const int bits = kernel_format(c->row)->bits;
    const bool interleaved = m->spec.layout == QDNN_LAYOUT_WORDS_INTERLEAVED;
    if (m->spec.block || (!interleaved && m->spec.layout != QDNN_LAYOUT_WORDS_ROWS))
        return;
    for (int64_t i = 0; i < m->count; i++)
        fill_padding(c, bits, interleaved ? m->columns : m->rows, interleaved ? m->rows : m->columns,
                     interleaved, o->host[QDNN_OPERAND_CODES] + (size_t)i * m->stride[QDNN_OPERAND_CODES]);
}

/* The inputs of quantize and dequantize are outputs of host_ref, unless they are a caller's. */
static void fill(const quant_case *c, const ref_quant_spec *ref, quant_operands *o)
{
    int64_t rows = quant_case_rows(c), columns = quant_case_row_elements(c);
    uint8_t *plain = o->host[plain_operand(c)], *codes = o->host[QDNN_OPERAND_CODES];
    const matrices m = matrices_of(c, ref);
    fill_tables(c, ref, o);
    fill_plain(c, ref, o, rows * columns);
    if (c->kind == DATA_UNBOUNDED && o->bytes[QDNN_OPERAND_SCALE] == 0 && !ref->block)
        add_infinities(c, plain, rows, columns);
    if (ref->block) {
        ref_fill_blocks(c->row, ref, rows * columns, c->seed,
                        c->callers                ? BLOCKS_ANY
                        : c->kind == DATA_UNEQUAL ? BLOCKS_MODERATE
                                                  : BLOCKS_OF_DATA,
                        plain, codes);
        return;
    }
    fill_group_index(c, &m, o);
    fill_scales(c, ref, &m, o);
    if (c->callers)
        fill_callers(c, ref, o);
    if (c->kind == DATA_UNEVEN) {
        move_elements(c, &m, o);
        if (kernel_operation_of(c->row) != KERNEL_QUANTIZE)
            fill_scales(c, ref, &m, o);
    }
    fill_codes(c, &m, o);
    if (kernel_operation_of(c->row) != KERNEL_DEQUANTIZE)
        return;
    fill_all_padding(c, &m, o);
    if (c->callers)
        fill_bytes(c->seed, codes, (int64_t)o->bytes[QDNN_OPERAND_CODES]);
    if (c->kind == DATA_SMALL || c->kind == DATA_SMALL_CONSTANT || c->kind == DATA_UNEQUAL ||
        c->kind == DATA_UNBOUNDED)
        change_scales(c, ref, o);
    if (c->kind == DATA_UNEQUAL)
        add_nans(ref, o);
    fill_values(c, &m, o);
}

bool quant_operands_make(const quant_case *c, quant_operands *out)
{
    ref_quant_spec ref = quant_case_reference(c);
    bool ok = true;
    *out = (quant_operands){0};
    set_sizes(c, &ref, out);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++) {
        out->host[i] = calloc(out->bytes[i] + 1, 1);
        ok = CHECK(out->host[i] != NULL) && ok;
    }
    if (ok)
        fill(c, &ref, out);
    return ok;
}

void quant_operands_free(quant_operands *o)
{
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        free(o->host[i]);
    *o = (quant_operands){0};
}

/* ---- Calls ---- */

typedef qdnnStatus_t create_plan_fn(qdnnHandle_t, qdnnTensorDescriptor_t, qdnnQuantDescriptor_t,
                                    qdnnPlan_t *);

static create_plan_fn *const create_plan[] = {
    [KERNEL_SCALE] = qdnnCreateScalePlan,
    [KERNEL_QUANTIZE] = qdnnCreateQuantizePlan,
    [KERNEL_DEQUANTIZE] = qdnnCreateDequantizePlan,
    [KERNEL_DYNAMIC] = qdnnCreateDynamicQuantizePlan,
};

/* Executes a plan with a workspace of exactly the required size. */
static qdnnStatus_t execute(qdnnHandle_t handle, qdnnPlan_t plan, const qdnnBinding_t *bindings, int count)
{
    size_t bytes;
    device_buffer workspace;
    qdnnStatus_t status = qdnnGetPlanWorkspaceSize(plan, &bytes);
    if (status != QDNN_STATUS_SUCCESS || !device_buffer_make(handle, BUFFER_EXACT, bytes, 0, &workspace))
        return status;
    status = qdnnExecute(handle, plan, bindings, count, device_buffer_at(&workspace), bytes);
    if (status == QDNN_STATUS_SUCCESS)
        status = qdnnSynchronize(handle);
    device_buffer_free(&workspace);
    return status;
}

/* The kernels of ranges loop along x, those of matrices along y. */
static void limit_blocks(qdnnPlan_t plan, unsigned most)
{
    for (int i = 0; i < plan->n_steps; i++) {
        plan_launch *l = &plan->steps[i].launch;
        const int dimension = kernel_operation_of(l->module->row) == KERNEL_RANGE ? 0 : 1;
        if (l->grid[dimension] > most)
            l->grid[dimension] = most;
    }
}

qdnnStatus_t quant_call_plan(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT])
{
    qdnnPlan_t plan;
    qdnnPlanInfo_t info = {.size = sizeof info};
    qdnnBinding_t bindings[QDNN_OPERAND_COUNT];
    kernel_operand operands[QDNN_OPERAND_COUNT];
    int count = 0;
    kernel_spec spec = grouped_spec(c);
    kernel_operands_of(c->row, KERNEL_NORMAL(c->row, &spec), &(kernel_problem){.rows = 1, .columns = 1},
                       operands);
    qdnnStatus_t status = create_plan[kernel_operation_of(c->row)](handle, d->tensor, d->quant, &plan);
    if (status != QDNN_STATUS_SUCCESS)
        return status;
    if (CHECK_QDNN(qdnnGetPlanInfo(plan, &info)))
        CHECK_EQ_STR(info.operation, c->row->operation_name);
    if (c->blocks_most)
        limit_blocks(plan, c->blocks_most);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (operands[i].reads || operands[i].writes)
            bindings[count++] = (qdnnBinding_t){(qdnnOperand_t)i, pointers[i], 0};
    status = execute(handle, plan, bindings, count);
    qdnnDestroyPlan(plan);
    return status;
}

static qdnnStatus_t call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                              void *const pointers[QDNN_OPERAND_COUNT])
{
    void *x = pointers[QDNN_OPERAND_X], *y = pointers[QDNN_OPERAND_Y], *codes = pointers[QDNN_OPERAND_CODES],
         *scale = pointers[QDNN_OPERAND_SCALE], *zero = pointers[QDNN_OPERAND_ZERO];
    switch (kernel_operation_of(c->row)) {
    case KERNEL_QUANTIZE:
        return qdnnQuantize(handle, d->tensor, x, d->quant, scale, zero, codes);
    case KERNEL_DEQUANTIZE:
        return qdnnDequantize(handle, d->quant, codes, scale, zero, d->tensor, y);
    default:
        return qdnnComputeScales(handle, d->tensor, x, d->quant, scale, zero);
    }
}

qdnnStatus_t quant_call_once(qdnnHandle_t handle, const quant_case *c, const quant_descriptors *d,
                             void *const pointers[QDNN_OPERAND_COUNT])
{
    if (kernel_operation_of(c->row) == KERNEL_DYNAMIC) /* it has no one-shot call */
        return quant_call_plan(handle, c, d, pointers);
    qdnnStatus_t status = call_once(handle, c, d, pointers);
    return status == QDNN_STATUS_SUCCESS ? qdnnSynchronize(handle) : status;
}
