#include "formats/edges.h"

#include "formats/ref_spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES = 24, HALVINGS = 40, BLOCK_BYTES_MAX = 512 };

typedef struct edges {
    const ref_quant_spec *spec;
    int64_t block;
    void *data;                      /* of one block */
    size_t bytes;                    /* of its result */
    uint8_t before[BLOCK_BYTES_MAX]; /* the result that a move must change */
    int least;                       /* bytes of it that must change */
    uint32_t state;
} edges;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void quantize(const edges *e, uint8_t *result)
{
    ref_arrays arrays = {.codes = result};
    ref_quantize(e->spec, 1, e->block, e->data, &arrays);
}

/* Whether the result with this element is another one. */
static bool changes(const edges *e, int64_t i, float value)
{
    uint8_t after[BLOCK_BYTES_MAX];
    int differ = 0;
    ref_scalar_store(e->spec->data, e->data, i, value);
    quantize(e, after);
    for (size_t k = 0; k < e->bytes; k++)
        differ += after[k] != e->before[k];
    return differ >= e->least;
}

/* Between a value that leaves the result and one that changes it, two neighbours of which the same is true. */
static void halve(const edges *e, int64_t i, float *same, float *other)
{
    for (int k = 0; k < HALVINGS; k++) {
        float middle = 0.5f * *same + 0.5f * *other;
        ref_scalar_store(e->spec->data, e->data, i, middle);
        middle = ref_scalar_load(e->spec->data, e->data, i);
        if (middle == *same || middle == *other)
            return;
        *(changes(e, i, middle) ? other : same) = middle;
    }
}

/* One of two neighbours; in f64 a number between them that is rounded to it, and would be rounded to the other if it were cut off. */
static void store_neighbour(const edges *e, int64_t i, float value, float other)
{
    ref_scalar_store(e->spec->data, e->data, i, value);
    if (e->spec->data == QDNN_DATA_F64 && fabsf(value) > fabsf(other))
        ((double *)e->data)[i] = 0.75 * (double)value + 0.25 * (double)other;
}

/* Near an edge a small move of another element crosses the same edge, in smaller steps. */
static void move(edges *e)
{
    const int64_t i = (int64_t)(next_random(&e->state) % (uint64_t)e->block);
    const float value = ref_scalar_load(e->spec->data, e->data, i);
    const float part = ldexpf(1.0f, -(int)(next_random(&e->state) % 12));
    float same = value, other = next_random(&e->state) & 1 ? value + value * part : value - value * part;
    ref_scalar_store(e->spec->data, e->data, i, other);
    other = ref_scalar_load(e->spec->data, e->data, i);
    if (isfinite(other) && other != value && changes(e, i, other))
        halve(e, i, &same, &other);
    else
        other = same;
    if (next_random(&e->state) & 1)
        store_neighbour(e, i, same, other);
    else
        store_neighbour(e, i, other, same);
    quantize(e, e->before);
}

void move_to_edges(const ref_quant_spec *spec, int64_t block, uint32_t seed, void *data, int64_t n)
{
    edges e = {.spec = spec, .block = block, .state = seed * 2654435761u + 1};
    e.bytes = (size_t)ref_operand_bytes(spec, 1, block, QDNN_OPERAND_CODES);
    const size_t data_bytes = (size_t)ref_operand_bytes(spec, 1, block, QDNN_OPERAND_X);
    for (int64_t i = 0; i + block <= n && e.bytes <= BLOCK_BYTES_MAX; i += block) {
        e.data = (uint8_t *)data + (size_t)(i / block) * data_bytes;
        e.least = 1 + 2 * (int)(i / block % 2); /* a code alone, or what several codes depend on */
        memset(e.before, 0, sizeof e.before);
        quantize(&e, e.before);
        for (int k = 0; k < MOVES; k++)
            move(&e);
    }
}

/* ---- Bounds between codes ---- */

/* Every element of a matrix is between two others, with different codes; `middle` is between these. */
typedef struct bounds {
    const ref_quant_spec *spec;
    int64_t rows, columns;
    ref_arrays arrays; /* with codes of its own */
    uint8_t *low, *middle, *high;
    float *of_low, *of_middle, *of_high; /* what their codes stand for */
} bounds;

static bool bounds_alloc(bounds *b, int64_t n, size_t element)
{
    const size_t codes = (size_t)ref_operand_bytes(b->spec, b->rows, b->columns, QDNN_OPERAND_CODES);
    b->arrays.codes = calloc(codes + 1, 1);
    b->low = malloc((size_t)n * element + 1);
    b->middle = malloc((size_t)n * element + 1);
    b->high = malloc((size_t)n * element + 1);
    b->of_low = calloc((size_t)n + 1, sizeof(float));
    b->of_middle = calloc((size_t)n + 1, sizeof(float));
    b->of_high = calloc((size_t)n + 1, sizeof(float));
    return b->arrays.codes && b->low && b->middle && b->high && b->of_low && b->of_middle && b->of_high;
}

static void bounds_free(bounds *b)
{
    free(b->arrays.codes);
    free(b->low);
    free(b->middle);
    free(b->high);
    free(b->of_low);
    free(b->of_middle);
    free(b->of_high);
}

static void code_values(const bounds *b, const void *x, float *values)
{
    ref_quant_spec wide = *b->spec;
    wide.data = QDNN_DATA_F32;
    ref_quantize(b->spec, b->rows, b->columns, x, &b->arrays);
    ref_dequantize(&wide, b->rows, b->columns, &b->arrays, values);
}

/* The bits of an element as an integer that grows with it. */
static int64_t rank_of(const uint8_t *x, int64_t i, size_t element)
{
    uint64_t bits = 0;
    memcpy(&bits, x + (size_t)i * element, element);
    const uint64_t sign = UINT64_C(1) << (8 * element - 1);
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static void put_rank(uint8_t *x, int64_t i, size_t element, int64_t rank)
{
    const uint64_t sign = UINT64_C(1) << (8 * element - 1);
    const uint64_t bits = rank < 0 ? sign | (uint64_t)-rank : (uint64_t)rank;
    memcpy(x + (size_t)i * element, &bits, element);
}

static bool is_same_value(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Halves the ways from low to high elements; false where no two of them have another between them. */
static bool halve_all(bounds *b, int64_t n, size_t element)
{
    bool is_between = false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t low = rank_of(b->low, i, element), high = rank_of(b->high, i, element);
        const int64_t middle = low / 2 + high / 2 + (low % 2 + high % 2) / 2;
        put_rank(b->middle, i, element, middle);
        is_between = is_between || (middle != low && middle != high);
    }
    code_values(b, b->middle, b->of_middle);
    for (int64_t i = 0; i < n; i++) {
        const int64_t middle = rank_of(b->middle, i, element);
        if (is_same_value(b->of_middle[i], b->of_low[i]))
            put_rank(b->low, i, element, middle);
        else
            put_rank(b->high, i, element, middle);
    }
    return is_between;
}

/* From where to where each element may move: as far as its neighbour, or as 0. */
static void set_ways(bounds *b, int64_t n, size_t element, float kept, const void *x)
{
    memcpy(b->low, x, (size_t)n * element);
    for (int64_t i = 0; i < n; i++) {
        const bool stays = fabsf(ref_scalar_load(b->spec->data, x, i)) >= kept;
        put_rank(b->high, i, element,
                 kept == 0 ? rank_of(x, (i + 1) % n, element)
                 : stays   ? rank_of(x, i, element)
                           : 0);
    }
}

/* An element whose code is the same all the way stays. */
static void stay_where_same(bounds *b, int64_t n, size_t element)
{
    for (int64_t i = 0; i < n; i++)
        if (is_same_value(b->of_low[i], b->of_high[i]))
            put_rank(b->high, i, element, rank_of(b->low, i, element));
}

void move_to_bounds(const ref_quant_spec *spec, int64_t rows, int64_t columns, const ref_arrays *arrays,
                    uint32_t seed, float kept, void *x)
{
    const int64_t n = rows * columns;
    const size_t element = ref_scalar_size(spec->data);
    bounds b = {.spec = spec, .rows = rows, .columns = columns, .arrays = *arrays};
    uint32_t state = seed * 2654435761u + 1;
    if (n > 0 && bounds_alloc(&b, n, element)) {
        set_ways(&b, n, element, kept, x);
        code_values(&b, b.low, b.of_low);
        code_values(&b, b.high, b.of_high);
        stay_where_same(&b, n, element);
        for (int k = 0; k < 8 * (int)element && halve_all(&b, n, element); k++)
            ;
        for (int64_t i = 0; i < n; i++)
            put_rank(x, i, element, rank_of(next_random(&state) & 1 ? b.low : b.high, i, element));
    }
    bounds_free(&b);
}
