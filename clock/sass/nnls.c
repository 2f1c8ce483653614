/* Non-negative least squares by an active set (Lawson and Hanson), on the normal equations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

typedef struct problem {
    const double *g, *h;
    int n;
    bool *free_to_move; /* the others are held at 0 */
    double *factor, *z; /* of the free ones, packed */
    int *index;         /* of the packed ones */
} problem;

/* The unconstrained solution of the free variables into z, by Cholesky; 0 for the others. */
static void solve_free(problem *p)
{
    int m = 0, n = p->n;
    double *l = p->factor;
    for (int i = 0; i < n; i++)
        if (p->free_to_move[i])
            p->index[m++] = i;
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++) {
            double sum = p->g[p->index[i] * n + p->index[j]];
            for (int k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(sum > 1e-300 ? sum : 1e-300) : sum / l[j * n + j];
        }
    double *y = l + (size_t)n * (size_t)n;
    for (int i = 0; i < m; i++) {
        y[i] = p->h[p->index[i]];
        for (int k = 0; k < i; k++)
            y[i] -= l[i * n + k] * y[k];
        y[i] /= l[i * n + i];
    }
    for (int i = m; i-- > 0;) {
        for (int k = i + 1; k < m; k++)
            y[i] -= l[k * n + i] * y[k];
        y[i] /= l[i * n + i];
    }
    memset(p->z, 0, (size_t)n * sizeof *p->z);
    for (int i = 0; i < m; i++)
        p->z[p->index[i]] = y[i];
}

#define TINY 1e-9

/* Begins where holding all that would be negative gives nothing negative any more. */
static void begin(problem *p, double *x)
{
    for (bool again = true; again;) {
        again = false;
        solve_free(p);
        for (int i = 0; i < p->n; i++)
            if (p->z[i] < 0) {
                p->free_to_move[i] = false;
                again = true;
            }
    }
    memcpy(x, p->z, (size_t)p->n * sizeof *x);
}

/* The held variable that would gain most by growing; -1: none. */
static int find_gain(const problem *p, const double *x)
{
    int best = -1;
    double most = TINY;
    for (int i = 0; i < p->n; i++) {
        if (p->free_to_move[i])
            continue;
        double gain = p->h[i];
        for (int j = 0; j < p->n; j++)
            gain -= p->g[i * p->n + j] * x[j];
        if (gain > most) {
            most = gain;
            best = i;
        }
    }
    return best;
}

/* Towards z as far as nothing becomes negative; what reaches 0 is held there. True: all the way. */
static bool step(problem *p, double *x)
{
    double part = 1;
    for (int i = 0; i < p->n; i++)
        if (p->free_to_move[i] && p->z[i] <= 0 && x[i] / (x[i] - p->z[i] + 1e-300) < part)
            part = x[i] / (x[i] - p->z[i] + 1e-300);
    bool whole = part >= 1;
    for (int i = 0; i < p->n; i++) {
        x[i] += part * (p->z[i] - x[i]);
        if (!whole && p->free_to_move[i] && p->z[i] <= 0 && x[i] <= TINY) {
            p->free_to_move[i] = false;
            x[i] = 0;
        }
    }
    return whole;
}

static void improve(problem *p, double *x)
{
    int grown;
    for (int round = 0; round < 3 * p->n && (grown = find_gain(p, x)) >= 0; round++) {
        p->free_to_move[grown] = true;
        for (int i = 0; i <= p->n; i++) {
            solve_free(p);
            if (step(p, x))
                break;
        }
    }
}

bool nnls(const double *g, const double *h, int n, double *x)
{
    size_t size = (size_t)n;
    problem p = {.g = g,
                 .h = h,
                 .n = n,
                 .free_to_move = malloc(size * sizeof(bool)),
                 .factor = malloc(size * (size + 1) * sizeof(double)),
                 .z = malloc(size * sizeof(double)),
                 .index = malloc(size * sizeof(int))};
    bool ok = n > 0 && p.free_to_move && p.factor && p.z && p.index;
    if (ok) {
        memset(p.free_to_move, 1, size * sizeof(bool));
        begin(&p, x);
        improve(&p, x);
    }
    free(p.free_to_move);
    free(p.factor);
    free(p.z);
    free(p.index);
    return ok;
}
