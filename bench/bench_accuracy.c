/* The error of attention against f64, by the length of the context: host_ref, whose bits the kernels have. Heads of 128 elements, queries, keys and values
 * from a normal distribution whose scores have a standard deviation of 1 (weights spread over all keys) or 4 (few keys dominate). An error is
 * that of the worst element of the heads, relative to the sum of |p v| / l. QDNN_BENCH_SEED gives other numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "host_ref/host_ref.h"

enum { SIZE = 128, HEADS = 4 };

typedef struct head {
    int64_t keys;
    uint16_t q[SIZE];
    float *k, *v;
} head;

/* ---- Numbers ---- */

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = (*state ^ *state >> 29) * 0x9E3779B97F4A7C15u;
    return ((double)(word >> 11) + 0.5) * 0x1p-53;
}

/* From N(0, 1), as f16. */
static uint16_t normal(uint64_t *state, double factor)
{
    const double radius = sqrt(-2 * log(uniform(state))), angle = 6.283185307179586 * uniform(state);
    return ref_f32_to_f16((float)(factor * radius * cos(angle)));
}

static bool head_make(head *h, int64_t keys, double spread, uint64_t *state)
{
    const size_t count = (size_t)keys * SIZE;
    *h = (head){.keys = keys, .k = malloc(count * sizeof *h->k), .v = malloc(count * sizeof *h->v)};
    if (!h->k || !h->v)
        return false;
    for (int i = 0; i < SIZE; i++)
        h->q[i] = normal(state, spread);
    for (size_t i = 0; i < count; i++) {
        h->k[i] = ref_f16_to_f32(normal(state, 1));
        h->v[i] = ref_f16_to_f32(normal(state, 1));
    }
    return true;
}

static void head_free(head *h)
{
    free(h->k);
    free(h->v);
}

/* ---- Errors ---- */

typedef struct truth {
    double o[SIZE], size[SIZE]; /* the result, and the sum of its magnitudes */
} truth;

static truth truth_of(const head *h, double scale)
{
    truth t = {{0}, {0}};
    double m = -INFINITY, l = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < h->keys; j++) {
            double s = 0;
            for (int i = 0; i < SIZE; i++)
                s += (double)ref_f16_to_f32(h->q[i]) * h->k[j * SIZE + i];
            if (pass == 0) {
                m = fmax(m, s * scale);
                continue;
            }
            const double p = exp(s * scale - m);
            l += p;
            for (int i = 0; i < SIZE; i++) {
                t.o[i] += p * h->v[j * SIZE + i];
                t.size[i] += fabs(p * h->v[j * SIZE + i]);
            }
        }
    for (int i = 0; i < SIZE; i++) {
        t.o[i] /= l;
        t.size[i] /= l;
    }
    return t;
}

static double error_of(const truth *t, const float *y)
{
    double worst = 0;
    for (int i = 0; i < SIZE; i++)
        worst = fmax(worst, fabs(y[i] - t->o[i]) / t->size[i]);
    return worst;
}

static const int families[] = {75, 80, 90};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* errors: exact, then by family. */
static void add_errors(const head *h, double errors[1 + FAMILIES])
{
    const float scale = 0.088388346f;
    const ref_attention_spec spec = {
        .x = QDNN_DATA_F16, .y = QDNN_DATA_F32, .d = SIZE, .dv = SIZE, .scale = scale};
    const ref_attention_row row = {.q = h->q,
                                   .keys = h->k,
                                   .values = h->v,
                                   .key_stride = SIZE,
                                   .value_stride = SIZE,
                                   .last = h->keys - 1};
    const truth t = truth_of(h, scale);
    float y[SIZE];
    ref_attention(&spec, &row, y);
    errors[0] = fmax(errors[0], error_of(&t, y));
    for (int f = 0; f < FAMILIES; f++) {
        ref_attention_tensor(&spec, &row, ref_tensor_family_of(families[f]), y);
        errors[1 + f] = fmax(errors[1 + f], error_of(&t, y));
    }
}

void bench_accuracy(void)
{
    static const int64_t contexts[] = {64, 256, 1024, 4096, 16384, 32768};
    static const double spreads[] = {1, 4};
    const char *given = getenv("QDNN_BENCH_SEED");
    uint64_t state = given && *given ? strtoull(given, NULL, 10) : 1;
    printf("attention against f64, seed %llu: the worst error of %d heads, relative to the sum of |p v| / l\n"
           "%8s %10s %12s %12s %12s %12s\n",
           (unsigned long long)state, HEADS, "keys", "deviation", "exact", "tensor sm_75", "tensor sm_80",
           "tensor sm_90");
    for (size_t s = 0; s < sizeof spreads / sizeof spreads[0]; s++)
        for (size_t c = 0; c < sizeof contexts / sizeof contexts[0]; c++) {
            double errors[1 + FAMILIES] = {0};
            for (int i = 0; i < HEADS; i++) {
                head h;
                if (head_make(&h, contexts[c], spreads[s], &state))
                    add_errors(&h, errors);
                head_free(&h);
            }
            printf("%8lld %10.0f %12.1e %12.1e %12.1e %12.1e\n", (long long)contexts[c], spreads[s],
                   errors[0], errors[1], errors[2], errors[3]);
            fflush(stdout);
        }
}
