/* The cheap parts next to the products: attention, softmax, layer norm, in plain C. */
#include "embed.h"

#include <math.h>

void add(float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i];
}

void layer_norm(float *x, int64_t rows, int64_t width, const float *weight, const float *bias)
{
    for (float *row = x; row < x + rows * width; row += width) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++)
            mean += (double)row[i];
        mean /= (double)width;
        for (int64_t i = 0; i < width; i++)
            variance += ((double)row[i] - mean) * ((double)row[i] - mean);
        double factor = 1 / sqrt(variance / (double)width + 1e-12);
        for (int64_t i = 0; i < width; i++)
            row[i] = (float)(((double)row[i] - mean) * factor) * weight[i] + bias[i];
    }
}

static float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void softmax(float *x, int n)
{
    float largest = x[0], sum = 0;
    for (int i = 1; i < n; i++)
        largest = fmaxf(largest, x[i]);
    for (int i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - largest);
    for (int i = 0; i < n; i++)
        x[i] /= sum;
}

/* One token of one head; rows are `width` elements apart. */
static void attend(int tokens, int width, int head, const float *q, const float *k, const float *v,
                   float *out)
{
    float scores[TOKENS_MAX];
    for (int j = 0; j < tokens; j++)
        scores[j] = dot(q, k + j * width, head) / sqrtf((float)head);
    softmax(scores, tokens);
    for (int i = 0; i < head; i++) {
        out[i] = 0;
        for (int j = 0; j < tokens; j++)
            out[i] += scores[j] * v[j * width + i];
    }
}

void attention(const batch *b, int width, int heads, const float *q, const float *k, const float *v,
               float *out)
{
    int head = width / heads;
    for (int s = 0; s < b->sentences; s++)
        for (int t = b->start[s]; t < b->start[s + 1]; t++)
            for (int h = 0; h < heads; h++) {
                int64_t first = (int64_t)b->start[s] * width + h * head, at = (int64_t)t * width + h * head;
                attend(b->start[s + 1] - b->start[s], width, head, q + at, k + first, v + first, out + at);
            }
}

void pool(const batch *b, int width, const float *x, float *out)
{
    for (int s = 0; s < b->sentences; s++, out += width) {
        double length = 0;
        for (int i = 0; i < width; i++) {
            double sum = 0;
            for (int t = b->start[s]; t < b->start[s + 1]; t++)
                sum += (double)x[(int64_t)t * width + i];
            out[i] = (float)(sum / (b->start[s + 1] - b->start[s]));
            length += (double)out[i] * (double)out[i];
        }
        for (int i = 0; i < width; i++)
            out[i] = (float)((double)out[i] / sqrt(length));
    }
}

double cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}
