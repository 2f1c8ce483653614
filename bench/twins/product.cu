/* y = x W by the exact contract of docs/numerics.md, in plain CUDA C: a thread for each element of y. K is dealt to 32 lanes in
 * chunks of 8; each lane is a chain of fma; the lanes are joined by a tree. W is [K, N] in interleaved words of 4-bit integers
 * (FORMAT_WORDS: f32 scales and u32 zeros, [K / GROUP_SIZE, N]), or [N, K] in Q4_K blocks (FORMAT_Q4_K). */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef FORMAT_WORDS

__device__ float weight(const void *codes, const float *scale, const u32 *zero, u64 k, u64 n, u64 columns)
{
    u32 word = ((const u32 *)codes)[k / 8 * columns + n], code = word >> (4 * (k % 8)) & 15;
    u64 group = k / GROUP_SIZE * columns + n;
    return __fmul_rn(__fsub_rn((float)code, (float)zero[group]), scale[group]);
}

#else

__device__ float half_at(const u8 *p)
{
    unsigned short bits = (unsigned short)(p[0] | p[1] << 8);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ float weight(const void *codes, const float *, const u32 *, u64 k, u64 n, u64 columns)
{
    const u8 *block = (const u8 *)codes + (n * (columns / 256) + k / 256) * 144, *q = block + 4;
    int i = (int)(k % 256), j = i / 32, sc, m;
    if (j < 4) {
        sc = q[j] & 63;
        m = q[j + 4] & 63;
    } else {
        sc = (q[j + 4] & 15) | (q[j - 4] >> 6) << 4;
        m = q[j + 4] >> 4 | (q[j] >> 6) << 4;
    }
    int code = block[16 + i / 64 * 32 + i % 32] >> (j % 2 * 4) & 15;
    float product = __fmul_rn(__fmul_rn(half_at(block), (float)sc), (float)code);
    return __fsub_rn(product, __fmul_rn(half_at(block + 2), (float)m));
}

#endif

extern "C" __global__ void product_twin(const float *x, const void *codes, const float *scale, const u32 *zero, float *y, u64 m,
                                        u64 n, u64 k)
{
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n)
        return;
    u64 row = i / n, column = i % n;
    float lane[32];
    for (int l = 0; l < 32; l++)
        lane[l] = 0;
    for (u64 chunk = 0; chunk < k; chunk += 8)
        for (u64 e = chunk; e < chunk + 8 && e < k; e++) {
#ifdef FORMAT_WORDS
            float w = weight(codes, scale, zero, e, column, n);
#else
            float w = weight(codes, scale, zero, e, column, k);
#endif
            lane[chunk / 8 % 32] = __fmaf_rn(x[row * k + e], w, lane[chunk / 8 % 32]);
        }
    for (int half = 16; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = __fadd_rn(lane[l], lane[l + half]);
    y[i] = __fadd_rn(lane[0], 0.0f);
}
