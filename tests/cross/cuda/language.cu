/* The language: virtual functions, recursion, pointers to functions, globals, local arrays, the heap, inline
 * PTX. Kernels of the common kind first, then those that a test calls with parameters of their own. n = 4,096
 * words. */
#include "common.cuh"

#define I global_index()

/* ---- objects ---- */

struct shape {
    u32 a, b;
    __device__ shape(u32 a, u32 b) : a(a), b(b)
    {
    }
    __device__ virtual u32 area() const
    {
        return a * b;
    }
    __device__ virtual u32 name() const = 0;
    __device__ virtual ~shape()
    {
    }
};
struct square : shape {
    __device__ square(u32 a) : shape(a, a)
    {
    }
    __device__ u32 name() const override
    {
        return 1;
    }
};
struct box : shape {
    u32 c;
    __device__ box(u32 a, u32 b, u32 c) : shape(a, b), c(c)
    {
    }
    __device__ u32 area() const override
    {
        return 2 * (a * b + b * c + a * c);
    }
    __device__ u32 name() const override
    {
        return 2 + c % 2;
    }
};

__device__ __noinline__ u32 describe(const shape *s)
{
    return s->area() * 16 + s->name();
}

KERNEL virtual_functions(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[I] & 255;
    square s(x);
    box b(x, 3, x + 1);
    const shape *chosen = in[I] & 256 ? (const shape *)&s : (const shape *)&b;
    out[I] = describe(chosen);
}

KERNEL heap_objects(u32 *out, const u32 *in, u32 n)
{
    shape *list[4];
    u32 sum = 0;
    for (u32 k = 0; k < 4; k++) {
        u32 x = in[(I + k) % n] & 127;
        list[k] = x & 1 ? (shape *)new square(x) : (shape *)new box(x, k, 5);
    }
    for (u32 k = 0; k < 4; k++) {
        sum = sum * 31 + describe(list[k]);
        delete list[k];
    }
    out[I] = sum;
}

/* ---- functions ---- */

__device__ __noinline__ u32 add_three(u32 x)
{
    return x + 3;
}
__device__ __noinline__ u32 triple(u32 x)
{
    return x * 3;
}
__device__ __noinline__ u32 flip(u32 x)
{
    return ~x;
}
__device__ u32 (*const table[3])(u32) = {add_three, triple, flip};
__device__ u32 (*changing)(u32) = triple;

KERNEL function_tables(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[I];
    for (u32 k = 0; k < 5; k++)
        x = table[(x >> 3) % 3](x);
    out[I] = changing(x);
}

template <typename F> __device__ inline u32 apply(F f, u32 times, u32 x)
{
    for (u32 k = 0; k < times; k++)
        x = f(x, k);
    return x;
}

KERNEL lambdas(u32 *out, const u32 *in, u32 n)
{
    u32 y = in[(I + 1) % n];
    auto step = [=](u32 x, u32 k) { return x * 5 + (y >> k % 8); };
    out[I] = apply(step, in[I] % 20, in[I]);
}

__device__ __noinline__ void quick(u32 *v, int first, int last)
{
    if (first >= last)
        return;
    u32 pivot = v[(first + last) / 2];
    int i = first, k = last;
    while (i <= k) {
        while (v[i] < pivot)
            i++;
        while (v[k] > pivot)
            k--;
        if (i <= k) {
            u32 t = v[i];
            v[i++] = v[k];
            v[k--] = t;
        }
    }
    quick(v, first, k);
    quick(v, i, last);
}

/* Every thread sorts 16 words of its own, in local memory. */
KERNEL recursion(u32 *out, const u32 *in, u32 n)
{
    u32 v[16], h = 0;
    for (u32 k = 0; k < 16; k++)
        v[k] = in[(I + 7 * k) % n];
    quick(v, 0, 15);
    for (u32 k = 0; k < 16; k++)
        h = h * 31 + v[k];
    out[I] = h;
}

KERNEL switches(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[I], y = x >> 8;
    switch (x % 10) {
    case 0:
        y += 7;
        break;
    case 1:
        y *= 3;
        break;
    case 2:
        y ^= 0x5555;
        break;
    case 3:
        y = ~y;
    case 4:
        y -= 9;
        break;
    case 5:
        y <<= 3;
        break;
    case 6:
        y /= 5;
        break;
    case 7:
        y %= 1000;
        break;
    case 8:
        y = y * y;
        break;
    default:
        y = 1;
    }
    out[I] = y;
}

/* ---- data ---- */

struct record {
    u8 small;
    double real;
    const u32 *link;
    u16 list[3];
};
__device__ u32 numbers[6] = {10, 20, 30, 40};
__device__ u32 *inside = numbers + 2;
__device__ record records[2] = {{7, 2.5, numbers + 1, {1, 2, 3}}, {9, -0.25, nullptr, {4, 5}}};
__constant__ u32 constants[8] = {1, 1, 2, 3, 5, 8, 13, 21};
__device__ const char *const names[3] = {"alpha", "beta", "gamma"};

KERNEL globals(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[I];
    const record &r = records[x % 2];
    u32 sum = numbers[x % 6] + inside[1] + r.small + (u32)(int)(r.real * 8) + r.list[x / 2 % 3];
    sum += r.link ? *r.link : 1000;
    sum += constants[x >> 5 & 7];
    for (const char *s = names[x % 3]; *s; s++)
        sum = sum * 7 + (u32)*s;
    out[I] = sum;
}

KERNEL local_arrays(u32 *out, const u32 *in, u32 n)
{
    u32 v[40], at = I, h = 0;
    for (u32 k = 0; k < 40; k++)
        v[k] = in[(I + k) % n];
    for (u32 k = 0; k < 60; k++) {
        at = v[at % 40];
        v[(at >> 9) % 40] ^= k;
        h = h * 3 + at;
    }
    out[I] = h;
}

/* Bytes, halves and words of one buffer, at every alignment. */
KERNEL reinterpreted(u32 *out, const u32 *in, u32 n)
{
    alignas(8) u8 bytes[32];
    for (u32 k = 0; k < 32; k++)
        bytes[k] = (u8)(in[I] >> k % 4 * 8) ^ (u8)k;
    u64 wide = *(u64 *)(bytes + 8 * (in[I] % 4));
    u16 half = *(u16 *)(bytes + 2 * (in[I] / 4 % 16));
    memcpy(bytes + 3, &wide, 8);
    memset(bytes + 20, half & 255, 5);
    u32 h = 0;
    for (u32 k = 0; k < 32; k++)
        h = h * 31 + bytes[k];
    out[I] = h ^ half;
}

/* ---- inline PTX ---- */

KERNEL inline_ptx(u32 *out, const u32 *in, u32 n)
{
    u32 x = in[I], y = in[(I + 1) % n], low, high, field, both, chosen, ranked;
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %2, 5;" : "=&r"(low), "=r"(high) : "r"(x), "r"(y));
    asm("bfe.s32 %0, %1, 5, 9;" : "=r"(field) : "r"(x));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(both) : "r"(x), "r"(y), "r"(field));
    asm("{ .reg .pred p, q; .reg .u32 t; setp.gt.u32 p|q, %1, %2; @p mul.lo.u32 t, %1, 3; @!p mov.u32 t, "
        "%2;\n\t"
        "selp.u32 %0, t, 17, p; @q bra done%=; add.u32 %0, %0, 1; done%=: }"
        : "=r"(chosen)
        : "r"(x), "r"(y));
    asm("{ .reg .u32 l; mov.u32 l, %%lanemask_lt; and.b32 l, l, %1; popc.b32 %0, l; }"
        : "=r"(ranked)
        : "r"(x));
    u64 product;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(product) : "r"(x), "r"(y), "l"((u64)field));
    out[I] = low ^ high * 3 ^ both * 5 ^ chosen * 7 ^ ranked * 11 ^ (u32)(product >> 32);
}

/* ---- with parameters of their own ---- */

struct big {
    u32 words[500];
    u8 byte;
    double real;
};

KERNEL big_parameter(big b, u32 *out, u16 step)
{
    u32 at = I % 500, sum = 0;
    for (u32 k = 0; k < 10; k++) {
        sum = sum * 3 + b.words[at];
        at = (at + step) % 500;
    }
    b.words[I % 500] = sum; /* a copy of this thread's own */
    out[I] = b.words[I % 500] + b.byte + (u32)(int)b.real;
}

KERNEL prints(const char *text, long long large)
{
    printf("%d|%u|%5d|%-5d|%05d|%+d|%x|%X|%#x|%o|%c|%%\n", -7, 7u, 42, 42, 42, 42, 255, 255, 255, 8, 'q');
    printf("%lld|%llu|%hd|%hhu|%s|%10s|%-10s|%.3s\n", large, (u64)large, (short)-3, (unsigned char)200,
           "word", "right", "left", "cutting");
    printf("%f|%.2f|%10.3f|%-10.1f|%e|%.3E|%g|%G|%g\n", 1.5, 2.345, -3.0, 4.25, 12345.678, 0.00012, 0.0001,
           1e20, 100000.0);
    printf("%s and %s\n", text, threadIdx.x == 0 ? "first" : "other");
    printf("no arguments\n");
}

KERNEL prints_many(u32 count)
{
    if (threadIdx.x % 3 == 0)
        printf("block %d thread %d\n", blockIdx.x, threadIdx.x);
}

KERNEL asserts(const u32 *in, u32 limit)
{
    assert(in[I] < limit && "the number is too large");
}

KERNEL traps(u32 at)
{
    if (I == at)
        __trap();
}

/* A list of nodes on the heap, one per thread, freed by the next launch. */
struct node {
    node *next;
    u32 value;
};
__device__ node *head;

KERNEL heap_push(u32 *out)
{
    node *mine = (node *)malloc(sizeof(node));
    if (!mine) {
        atomicAdd(out, 1);
        return;
    }
    mine->value = I;
    unsigned long long old = (unsigned long long)head, seen;
    do {
        seen = old;
        mine->next = (node *)seen;
        __threadfence();
        old = atomicCAS((unsigned long long *)&head, seen, (unsigned long long)mine);
    } while (old != seen);
}

KERNEL heap_pop(u32 *out)
{
    for (node *at = head; at;) {
        node *next = at->next;
        out[at->value]++;
        free(at);
        at = next;
    }
    head = nullptr;
}

/* The assembler may make these one instruction or two; and forms where it may not. */
KERNEL contractable(float *out, float a, float b, float c)
{
    float product, sum;
    asm("mul.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    asm("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(product), "f"(c));
    out[0] = sum;
}

KERNEL multiply_add(float *out, const float *in)
{
    out[I] = in[3 * I] * in[3 * I + 1] + in[3 * I + 2];
}
