/* Warps: shuffles, votes, matches, and what libraries build from them. Each kernel is given n = 4,096 words. */
#include "common.cuh"

/* Sum, minimum and maximum of each warp's words, by three kinds of shuffle. */
KERNEL warp_reduce(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), sum = in[i], least = in[i], most = in[i];
    for (int k = 16; k; k /= 2) {
        sum += __shfl_xor_sync(ALL, sum, k);
        least = min(least, __shfl_down_sync(ALL, least, k));
        most = max(most, __shfl_up_sync(ALL, most, k));
    }
    least = __shfl_sync(ALL, least, 0);
    most = __shfl_sync(ALL, most, 31);
    out[i] = sum ^ least * 3 ^ most * 5;
}

KERNEL warp_scan(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), sum = in[i];
    for (u32 k = 1; k < 32; k *= 2) {
        u32 before = __shfl_up_sync(ALL, sum, k);
        if (lane() >= k)
            sum += before;
    }
    out[i] = sum;
}

/* Groups of eight lanes: shuffles with a width. */
KERNEL warp_width(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i];
    out[i] = __shfl_sync(ALL, x, 3, 8) + 2 * __shfl_up_sync(ALL, x, 2, 8) +
             3 * __shfl_down_sync(ALL, x, 5, 8) + 4 * __shfl_xor_sync(ALL, x, 9, 16);
}

KERNEL warp_wide_values(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index();
    u64 x = (u64)in[i] << 32 | i;
    double d = (double)in[i];
    x = __shfl_xor_sync(ALL, x, 7);
    d = __shfl_down_sync(ALL, d, 1);
    out[i] = (u32)(x >> 32) ^ (u32)x ^ (u32)d;
}

KERNEL warp_votes(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i];
    u32 ballot = __ballot_sync(ALL, x & 1), all = __all_sync(ALL, x >> 8),
        any = __any_sync(ALL, (x & 63) == 0);
    out[i] = ballot ^ all << 5 ^ any << 9;
}

/* Half the warp votes by itself; the other half by itself after it. */
KERNEL warp_divergent_votes(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i], odd = x & 1;
    u32 mine = __ballot_sync(ALL, odd), others = ~mine;
    if (odd)
        out[i] = __ballot_sync(mine, x & 2);
    else
        out[i] = __ballot_sync(others, x & 4) * 3 + (u32)__any_sync(others, x & 8);
}

KERNEL warp_match(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i] % 5;
    int same;
    u32 all = __match_all_sync(ALL, i / 32 % 2 ? x : 7, &same);
    out[i] = __match_any_sync(ALL, x) + all * (u32)same + __match_any_sync(ALL, (u64)x << 40);
}

/* Lanes leave a loop one after the other, each as the leader of those that are left. */
KERNEL warp_leaders(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), left = ALL, rounds = 0;
    for (u32 x = in[i] % 7;;) {
        u32 leader = (u32)__ffs((int)left) - 1, chosen = __shfl_sync(left, x, (int)leader);
        bool done = x == chosen;
        u32 leaving = __ballot_sync(left, done);
        rounds++;
        if (done)
            break;
        left &= ~leaving;
    }
    out[i] = rounds;
}

KERNEL warp_sort(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i];
    for (u32 size = 2; size <= 32; size *= 2)
        for (u32 stride = size / 2; stride; stride /= 2) {
            u32 other = __shfl_xor_sync(ALL, x, (int)stride);
            bool up = (lane() & size) == 0, low = (lane() & stride) == 0;
            x = up == low ? min(x, other) : max(x, other);
        }
    out[i] = x;
}

/* Every lane loops for as long as its number says, with a shuffle among those that are left. */
KERNEL warp_uneven_loops(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i], steps = 0;
    while (x % 16 != 0) {
        x = x % 3 == 0 ? x / 3 : x * 5 + 1;
        if (++steps == 50)
            break;
        if (x & 64)
            continue;
        x ^= steps;
    }
    out[i] = x + steps + __popc(__ballot_sync(ALL, steps > 10));
}

#if __CUDA_ARCH__ >= 800
KERNEL warp_redux(u32 *out, const u32 *in, u32 n)
{
    u32 i = global_index(), x = in[i];
    out[i] = __reduce_add_sync(ALL, x) ^ __reduce_min_sync(ALL, x) ^ __reduce_max_sync(ALL, x) ^
             (u32)__reduce_min_sync(ALL, (int)x) ^ __reduce_and_sync(ALL, x | 0xF0) ^
             __reduce_or_sync(ALL, x & 0xFF) ^ __reduce_xor_sync(ALL, x);
}
#endif
