/* What the CUDA C programs of the cross tests share. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void
#define ALL    0xFFFFFFFFu

__device__ inline u32 global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline u32 lane()
{
    return threadIdx.x % 32;
}
