/* Seeded orders: a permutation of any range without a table (a Feistel network, iterated until the result is
 * in range), and a small random generator. */
#include "launch.h"

/* splitmix64. */
uint64_t vm_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A permutation of the numbers with 2 * half bits. */
static uint64_t feistel(uint64_t value, int half, uint64_t seed)
{
    uint64_t mask = (UINT64_C(1) << half) - 1, left = value >> half, right = value & mask;
    for (int round = 0; round < 4; round++) {
        uint64_t state = seed + (uint64_t)round * UINT64_C(0x632be59bd9b4e019) + right;
        uint64_t next = left ^ (vm_random(&state) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t vm_order_block(uint64_t seed, uint64_t n, uint64_t order)
{
    if (!seed || n < 2)
        return order;
    int half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < n)
        half++;
    do
        order = feistel(order, half, seed);
    while (order >= n);
    return order;
}
