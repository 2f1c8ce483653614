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
    ref_scalar_store(e->spec->data, e->data, i, next_random(&e->state) & 1 ? same : other);
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
