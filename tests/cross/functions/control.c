/* Control flow: switches, loops, recursion, function pointers, puzzles. */
#include "functions.h"

u64 switch_dense(u64 a, u64 b)
{
    switch (a % 12) {
    case 0:
        return b + 1;
    case 1:
        return b * 3;
    case 2:
        return b ^ 0xFFFF;
    case 3:
        b += 5; /* fall through */
        __attribute__((fallthrough));
    case 4:
        return b >> 3;
    case 5:
    case 6:
        return b / 7;
    case 7:
        return ~b;
    case 8:
        return b << 9;
    case 9:
        return b % 1000;
    default:
        return a & b;
    }
}

u64 switch_sparse(u64 a, u64 b)
{
    switch ((u32)a % 100000) {
    case 0:
        return b;
    case 1:
    case 7:
        return b + 9;
    case 255:
        return b * b;
    case 65535:
        return b ^ a;
    case 65536:
        return b - a;
    default:
        return (u32)a % 100000 > 50000 ? 1 : 2;
    }
}

/* A small machine: loads, adds, branches back. */
u64 interpreter(u64 a, u64 b)
{
    u64 stack[8] = {a, b}, steps = 0;
    int top = 2;
    for (u64 pc = 0, code = a ^ 0x123456789ABCDEFu; pc < 16 && steps < 100; pc++, steps++) {
        switch (code >> 4 * pc & 15) {
        case 0:
        case 1:
            stack[top & 7] = pc + steps;
            top = top < 7 ? top + 1 : top;
            break;
        case 2:
        case 3:
            stack[(top - 2) & 7] += stack[(top - 1) & 7];
            top = top > 2 ? top - 1 : top;
            break;
        case 4:
            stack[(top - 1) & 7] *= 31;
            break;
        case 5:
            if (stack[(top - 1) & 7] & 1 && pc > 2)
                pc -= 2;
            break;
        case 6:
            stack[(top - 1) & 7] = ~stack[(top - 2) & 7];
            break;
        default:
            stack[(top - 1) & 7] ^= code >> pc;
        }
    }
    return mix(stack[(top - 1) & 7], steps);
}

static NOINLINE u64 fibonacci(u32 n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

u64 recursion(u64 a, u64 b)
{
    return mix(fibonacci((u32)(a % 12)), b);
}

static NOINLINE u32 ackermann(u32 m, u32 n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

u64 deep_recursion(u64 a, u64 b)
{
    return ackermann((u32)(a % 3), (u32)(b % 6));
}

static NOINLINE int is_odd(u32 n);
static NOINLINE int is_even(u32 n)
{
    return n == 0 ? 1 : is_odd(n - 1);
}
static NOINLINE int is_odd(u32 n)
{
    return n == 0 ? 0 : is_even(n - 1);
}

u64 mutual_recursion(u64 a, u64 b)
{
    return (u64)is_even((u32)(a % 30)) << 1 | (u64)is_odd((u32)(b % 30));
}

static NOINLINE void hanoi(int n, int from, int to, u64 *h)
{
    if (n == 0)
        return;
    hanoi(n - 1, from, 3 - from - to, h);
    *h = mix(*h, (u64)(16 * from + to));
    hanoi(n - 1, 3 - from - to, to, h);
}

u64 towers(u64 a, u64 b)
{
    u64 h = b;
    hanoi((int)(a % 6), 0, 2, &h);
    return h;
}

static NOINLINE u64 plus(u64 x, u64 y)
{
    return x + y;
}
static NOINLINE u64 times(u64 x, u64 y)
{
    return x * y;
}
static NOINLINE u64 less(u64 x, u64 y)
{
    return x < y;
}
static NOINLINE u64 apply(u64 (*f)(u64, u64), u64 x, u64 y)
{
    return f(x, y) + 1;
}

static u64 (*const table[])(u64, u64) = {plus, times, less, plus};

u64 function_pointers(u64 a, u64 b)
{
    u64 (*f)(u64, u64) = b & 16 ? times : plus;
    return mix(apply(table[a % 4], a, b), apply(f, b, a));
}

typedef struct visitor {
    void (*visit)(struct visitor *self, u64 value);
    u64 sum;
} visitor;

static NOINLINE void visit_sum(visitor *self, u64 value)
{
    self->sum += value;
}
static NOINLINE void visit_mix(visitor *self, u64 value)
{
    self->sum = mix(self->sum, value);
}

u64 callbacks(u64 a, u64 b)
{
    visitor v = {a & 4 ? visit_sum : visit_mix, b};
    for (u64 i = 0; i < a % 9; i++)
        v.visit(&v, a >> i);
    return v.sum;
}

u64 nested_loops(u64 a, u64 b)
{
    u64 h = 0;
    for (u32 i = 0; i < (u32)(a % 6); i++) {
        for (u32 k = i; k < 10; k++) {
            if ((b >> k & 3) == 3)
                continue;
            if ((a >> k & 7) == 5)
                break;
            h = mix(h, i * 10 + k);
        }
        if (h % 11 == 0)
            goto out;
    }
out:
    return h;
}

/* Game of life on eight rows of eight. */
u64 life(u64 a, u64 b)
{
    u64 board = a ^ b << 7;
    for (int step = 0; step < 3; step++) {
        u64 next = 0;
        for (int i = 0; i < 64; i++) {
            int around = 0;
            for (int k = 0; k < 9; k++)
                around += k != 4 && board >> (((i / 8 + k / 3 + 7) % 8) * 8 + (i % 8 + k % 3 + 7) % 8) & 1;
            next |= (u64)(around == 3 || (around == 2 && (board >> i & 1))) << i;
        }
        board = next;
    }
    return board;
}

u64 queens(u64 a, u64 b)
{
    u32 n = 4 + (u32)(a % 2), columns[6] = {0}, found = 0;
    for (u32 row = 0;;) {
        if (columns[row] == n) {
            columns[row] = 0;
            if (row-- == 0)
                return mix(found, b);
            columns[row]++;
            continue;
        }
        int free = 1;
        for (u32 r = 0; r < row; r++)
            free &= columns[r] != columns[row] && columns[r] + row != columns[row] + r &&
                    columns[r] + r != columns[row] + row;
        if (free && row + 1 < n) {
            row++;
        } else {
            found += (u32)free;
            columns[row]++;
        }
    }
}
