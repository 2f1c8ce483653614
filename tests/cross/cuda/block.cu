/* Blocks: shared memory, barriers, sorting, scanning, counting. Each kernel is given n = 4,096 words. */
#include "common.cuh"

KERNEL block_reduce(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 part[256];
    u32 t = threadIdx.x;
    part[t] = in[global_index()];
    __syncthreads();
    for (u32 k = blockDim.x / 2; k; k /= 2) {
        if (t < k)
            part[t] += part[t + k];
        __syncthreads();
    }
    out[global_index()] = part[0] + t;
}

/* A thousand and twenty-four words sorted by one block. */
KERNEL block_bitonic_sort(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 v[1024];
    u32 t = threadIdx.x;
    v[t] = in[global_index()];
    for (u32 size = 2; size <= 1024; size *= 2)
        for (u32 stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            u32 other = t ^ stride;
            if (other > t && (v[t] > v[other]) == ((t & size) == 0)) {
                u32 x = v[t];
                v[t] = v[other];
                v[other] = x;
            }
        }
    __syncthreads();
    out[global_index()] = v[t];
}

/* Tiles of 32 by 32 of a matrix of 64 by 64, by 256 threads each. */
KERNEL block_transpose(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 tile[32][33];
    u32 x = threadIdx.x % 32, bx = blockIdx.x % 2, by = blockIdx.x / 2;
    for (u32 y = threadIdx.x / 32; y < 32; y += 8)
        tile[y][x] = in[(by * 32 + y) * 64 + bx * 32 + x];
    __syncthreads();
    for (u32 y = threadIdx.x / 32; y < 32; y += 8)
        out[(bx * 32 + y) * 64 + by * 32 + x] = tile[x][y];
}

/* A scan of all n words by one block: warps, then the warps' sums, then again and again. */
KERNEL block_scan(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 sums[32];
    u32 carry = 0, warp = threadIdx.x / 32;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        u32 x = in[i];
        for (u32 k = 1; k < 32; k *= 2) {
            u32 before = __shfl_up_sync(ALL, x, k);
            x += lane() >= k ? before : 0;
        }
        if (lane() == 31)
            sums[warp] = x;
        __syncthreads();
        u32 before = 0, all = 0;
        for (u32 w = 0; w < blockDim.x / 32; w++) {
            before += w < warp ? sums[w] : 0;
            all += sums[w];
        }
        out[i] = carry + before + x;
        carry += all;
        __syncthreads();
    }
}

KERNEL block_histogram(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 counts[256];
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();
    for (u32 i = global_index(); i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[in[i] >> 24], 1);
    __syncthreads();
    for (u32 i = threadIdx.x; i < 256; i += blockDim.x)
        if (counts[i])
            atomicAdd(&out[i], counts[i]);
}

/* A radix sort of 1,024 words: eight bits of the key, a bit at a time. */
KERNEL block_radix_sort(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 v[1024], zeros;
    u32 t = threadIdx.x, x = in[global_index()];
    for (u32 bit = 0; bit < 8; bit++) {
        v[t] = x >> bit & 1 ? 0 : 1;
        __syncthreads();
        for (u32 k = 1; k < 1024; k *= 2) {
            u32 before = t >= k ? v[t - k] : 0;
            __syncthreads();
            v[t] += before;
            __syncthreads();
        }
        if (t == 1023)
            zeros = v[t];
        u32 zeros_before = v[t] - (x >> bit & 1 ? 0 : 1);
        __syncthreads();
        u32 place = x >> bit & 1 ? zeros + t - zeros_before : zeros_before;
        __syncthreads();
        v[place] = x;
        __syncthreads();
        x = v[t];
        __syncthreads();
    }
    out[global_index()] = x;
}

KERNEL block_votes(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i];
    int count = __syncthreads_count(x & 1), all = __syncthreads_and(x != 12345),
        any = __syncthreads_or((x & 255) == 0);
    out[i] = (u32)count + ((u32)(all != 0) << 16) + ((u32)(any != 0) << 17);
}

/* Two halves of a block pass a buffer back and forth by barriers of their own: bar.arrive and bar.sync. */
KERNEL block_named_barriers(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 buffer[2][64];
    u32 t = threadIdx.x % 64, sum = 0;
    bool producer = threadIdx.x < 64;
    for (u32 k = 0; k < 8; k++) {
        u32 slot = k % 2;
        if (producer) {
            if (k >= 2)
                asm volatile("bar.sync %0, 128;" ::"r"(3 + slot) : "memory");
            buffer[slot][t] = in[(blockIdx.x * 8 + k) * 64 + t];
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + slot) : "memory");
        } else {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + slot) : "memory");
            sum += buffer[slot][63 - t] * (k + 1);
            if (k < 6)
                asm volatile("bar.arrive %0, 128;" ::"r"(3 + slot) : "memory");
        }
    }
    if (!producer)
        out[blockIdx.x * 64 + t] = sum;
}

extern __shared__ u32 dynamic[];

/* Dynamic shared memory as two arrays of different types. */
KERNEL block_dynamic(u32 *out, const u32 *in, u32 n)
{
    u16 *halves = (u16 *)(dynamic + blockDim.x);
    u32 t = threadIdx.x, i = global_index();
    dynamic[t] = in[i];
    halves[t] = (u16)(in[i] >> 7);
    __syncthreads();
    out[i] = dynamic[blockDim.x - 1 - t] + halves[(t * 7 + 3) % blockDim.x];
}

/* A product of two 64x64 matrices of small numbers, 16 rows per block, by tiles. */
KERNEL block_matrix(u32 *out, const u32 *in, u32 n)
{
    __shared__ float a[16][17], b[16][17];
    u32 x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.x / 4 * 16 + y,
        column = blockIdx.x % 4 * 16 + x;
    float sum = 0;
    for (u32 k = 0; k < 64; k += 16) {
        a[y][x] = (float)(in[row * 64 + k + x] >> 24);
        b[y][x] = (float)(in[(k + y) * 64 + column] >> 16 & 255);
        __syncthreads();
        for (u32 j = 0; j < 16; j++)
            sum += a[y][j] * b[j][x];
        __syncthreads();
    }
    out[row * 64 + column] = (u32)sum;
}

/* Threads that have left do not hold up the barrier of those that stay. */
KERNEL block_early_exit(u32 *out, const u32 *in, u32 n)
{
    __shared__ u32 sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    if (threadIdx.x >= 100)
        return;
    atomicAdd(&sum, in[global_index()]);
    __syncthreads();
    out[global_index()] = sum;
}
