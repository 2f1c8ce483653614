/* Tensor cores through wmma: products of 64x64 matrices of small whole numbers, which are exact in every
 * type. A is word (row, k) of the input, B word (k, column), each cut down by the kernel. One warp per tile of 16x16. */
#include "common.cuh"
#include <mma.h>

using namespace nvcuda;

__device__ inline u32 tile_row()
{
    return blockIdx.x / 4 * 16;
}

__device__ inline u32 tile_column()
{
    return blockIdx.x % 4 * 16;
}

/* Fills the block's rows of A and its columns of B, in shared memory, with 8-bit numbers as `T`. */
template <typename T, bool is_signed> struct operands {
    T a[16 * 64], b[64 * 16];
    __device__ static T number(u32 x)
    {
        int small = is_signed ? (int)(x >> 28) - 8 : (int)(x >> 28);
        return (T)(float)small;
    }
    /* A by rows; B by rows, or by columns. */
    __device__ void fill(const u32 *in, bool by_columns)
    {
        for (u32 i = threadIdx.x; i < 16 * 64; i += 32) {
            a[i] = number(in[(tile_row() + i / 64) * 64 + i % 64]);
            u32 k = by_columns ? i % 64 : i / 16, column = by_columns ? i / 64 : i % 16;
            b[i] = number(in[k * 64 + tile_column() + column]);
        }
        __syncwarp();
    }
};

template <typename T, typename S, typename F, typename C, int K, typename Layout, bool is_signed>
__device__ inline void product(u32 *out, const u32 *in)
{
    __shared__ alignas(32) operands<S, is_signed> o;
    __shared__ alignas(32) C d[256];
    constexpr bool by_columns = Layout::by_columns;
    wmma::fragment<wmma::matrix_a, 16, 16, K, F, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, K, F, typename Layout::type> b;
    wmma::fragment<wmma::accumulator, 16, 16, K, C> c;
    o.fill(in, by_columns);
    wmma::fill_fragment(c, (C)0.0f);
    for (u32 k = 0; k < 64; k += K) {
        wmma::load_matrix_sync(a, (const T *)o.a + k, 64);
        wmma::load_matrix_sync(b, (const T *)o.b + (by_columns ? k : k * 16), by_columns ? 64 : 16);
        wmma::mma_sync(c, a, b, c);
    }
    for (int i = 0; i < c.num_elements; i++)
        c.x[i] = c.x[i] + c.x[i];
    wmma::store_matrix_sync(d, c, 16, wmma::mem_row_major);
    __syncwarp();
    for (u32 i = threadIdx.x; i < 256; i += 32)
        out[(tile_row() + i / 16) * 64 + tile_column() + i % 16] = (u32)(int)(float)d[i];
}

struct rows {
    typedef wmma::row_major type;
    static constexpr bool by_columns = false;
};
struct columns {
    typedef wmma::col_major type;
    static constexpr bool by_columns = true;
};

KERNEL wmma_f16(u32 *out, const u32 *in, u32 n)
{
    product<__half, __half, __half, float, 16, rows, true>(out, in);
}

KERNEL wmma_f16_columns(u32 *out, const u32 *in, u32 n)
{
    product<__half, __half, __half, float, 16, columns, true>(out, in);
}

KERNEL wmma_s8(u32 *out, const u32 *in, u32 n)
{
    product<signed char, signed char, signed char, int, 16, columns, true>(out, in);
}

KERNEL wmma_u8(u32 *out, const u32 *in, u32 n)
{
    product<u8, u8, u8, int, 16, rows, false>(out, in);
}

#if __CUDA_ARCH__ >= 800
#include <cuda_bf16.h>
KERNEL wmma_bf16(u32 *out, const u32 *in, u32 n)
{
    product<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 16, rows, true>(out, in);
}

KERNEL wmma_tf32(u32 *out, const u32 *in, u32 n)
{
    product<float, float, wmma::precision::tf32, float, 8, columns, true>(out, in);
}

KERNEL wmma_f64(u32 *out, const u32 *in, u32 n)
{
    /* 8x8x4: a warp does four tiles of its sixteen by sixteen. */
    for (u32 part = 0; part < 4; part++) {
        u32 row = tile_row() + part / 2 * 8, column = tile_column() + part % 2 * 8;
        __shared__ double a[8 * 4], b[4 * 8], d[64];
        wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
        wmma::fill_fragment(c, 0.0);
        for (u32 k = 0; k < 64; k += 4) {
            __syncwarp();
            a[lane()] = (double)((int)(in[(row + lane() / 4) * 64 + k + lane() % 4] >> 28) - 8);
            b[lane()] = (double)((int)(in[(k + lane() / 8) * 64 + column + lane() % 8] >> 28) - 8);
            __syncwarp();
            wmma::load_matrix_sync(fa, a, 4);
            wmma::load_matrix_sync(fb, b, 8);
            wmma::mma_sync(c, fa, fb, c);
        }
        wmma::store_matrix_sync(d, c, 8, wmma::mem_col_major);
        __syncwarp();
        for (u32 i = lane(); i < 64; i += 32)
            out[(row + i % 8) * 64 + column + i / 8] = (u32)(2 * (int)d[i]);
    }
}
#endif

/* f16 sums: at most 64 products of 0 or 1. */
KERNEL wmma_f16_sums(u32 *out, const u32 *in, u32 n)
{
    __shared__ alignas(32) __half a[16 * 64], b[64 * 16], d[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> c;
    for (u32 i = threadIdx.x; i < 16 * 64; i += 32) {
        a[i] = (__half)(float)(in[(tile_row() + i / 64) * 64 + i % 64] >> 31);
        b[i] = (__half)(float)(in[i / 16 * 64 + tile_column() + i % 16] >> 31);
    }
    __syncwarp();
    wmma::fill_fragment(c, (__half)0.0f);
    for (u32 k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(fa, a + k, 64);
        wmma::load_matrix_sync(fb, b + k * 16, 16);
        wmma::mma_sync(c, fa, fb, c);
    }
    wmma::store_matrix_sync(d, c, 16, wmma::mem_row_major);
    __syncwarp();
    for (u32 i = threadIdx.x; i < 256; i += 32)
        out[(tile_row() + i / 16) * 64 + tile_column() + i % 16] = (u32)(float)d[i];
}
