/* Memory: tables, checksums, random numbers, strings, sorts, structs by value, pointers. */
#include "functions.h"

/* ---- tables ---- */

static const u8 primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char *const words[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", 0};
static const double reals[4] = {0.5, -3.25, 1e300, 4.9406564584124654e-324};

u64 look_up(u64 a, u64 b)
{
    u64 h = mix(primes[a % 16], f64_bits(reals[b % 4]));
    return mix(h, (u64)alphabet[(a + b) % 64]);
}

u64 crc32(u64 a, u64 b)
{
    u32 crc = ~0u;
    for (int i = 0; i < 16; i++) {
        crc ^= (u8)((i < 8 ? a : b) >> i % 8 * 8);
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0xEDB88320u & -(crc & 1));
    }
    return ~crc;
}

u64 adler32(u64 a, u64 b)
{
    u32 low = 1, high = 0;
    for (int i = 0; i < 64; i++) {
        low = (low + (u8)((i % 2 ? a : b) >> i % 8 * 8)) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

u64 fnv1a(u64 a, u64 b)
{
    u64 h = 0xCBF29CE484222325u;
    for (int i = 0; i < 16; i++)
        h = (h ^ (u8)((i < 8 ? a : b) >> i % 8 * 8)) * 0x100000001B3u;
    return h;
}

static u32 turn(u32 x, int by)
{
    return x >> by | x << (32 - by);
}

/* The rounds of SHA-256, with a short schedule. */
u64 sha_rounds(u64 a, u64 b)
{
    u32 s[8] = {0x6A09E667u, 0xBB67AE85u, 0x3C6EF372u, 0xA54FF53Au,
                0x510E527Fu, 0x9B05688Cu, 0x1F83D9ABu, 0x5BE0CD19u};
    u32 w[16];
    for (u32 i = 0; i < 16; i++)
        w[i] = (u32)(i % 2 ? a : b) * (i + 1);
    for (int i = 0; i < 64; i++) {
        u32 x = w[(i + 1) % 16], y = w[(i + 14) % 16];
        u32 t1 = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
                 w[i % 16];
        u32 t2 = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                 ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        w[i % 16] +=
            w[(i + 9) % 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
        for (int k = 7; k > 0; k--)
            s[k] = s[k - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    u64 h = 0;
    for (int i = 0; i < 8; i++)
        h = mix(h, s[i]);
    return h;
}

/* ---- random numbers ---- */

u64 xorshift(u64 a, u64 b)
{
    u64 x = a | 1;
    for (u64 i = 0; i < b % 20; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x * 0x2545F4914F6CDD1Du;
}

u64 pcg32(u64 a, u64 b)
{
    u64 state = a, h = 0;
    for (int i = 0; i < 8; i++) {
        u32 shifted = (u32)((state >> 18 ^ state) >> 27), by = (u32)(state >> 59);
        h = mix(h, shifted >> by | shifted << (-by & 31));
        state = state * 6364136223846793005u + (b | 1);
    }
    return h;
}

u64 mersenne(u64 a, u64 b)
{
    u32 state[25];
    state[0] = (u32)a;
    for (u32 i = 1; i < 25; i++)
        state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
    for (int i = 0; i < 25; i++) {
        u32 y = (state[i] & 0x80000000u) | (state[(i + 1) % 25] & 0x7FFFFFFFu);
        state[i] = state[(i + 7) % 25] ^ y >> 1 ^ (y & 1 ? 0x8EBFD028u : 0);
    }
    return (u64)state[b % 25] << 32 | state[(b >> 8) % 25];
}

/* ---- strings ---- */

static int text_length(const char *s)
{
    const char *end = s;
    while (*end)
        end++;
    return (int)(end - s);
}

static int text_compare(const char *x, const char *y)
{
    while (*x && *x == *y)
        x++, y++;
    return (u8)*x - (u8)*y;
}

u64 string_tables(u64 a, u64 b)
{
    const char *x = words[a % 8], *y = words[b % 8];
    int count = 0;
    for (const char *const *w = words; *w; w++)
        count += text_compare(*w, x) < 0;
    return mix(mix((u64)text_length(x), (u64)text_compare(x, y)), (u64)count);
}

/* A number in decimal and back. */
u64 decimal(u64 a, u64 b)
{
    char text[24];
    int n = 0;
    u64 x = a >> b % 64, back = 0;
    do
        text[n++] = (char)('0' + x % 10);
    while ((x /= 10));
    for (int i = 0; i < n / 2; i++) {
        char c = text[i];
        text[i] = text[n - 1 - i];
        text[n - 1 - i] = c;
    }
    text[n] = 0;
    for (const char *p = text; *p; p++)
        back = back * 10 + (u64)(*p - '0');
    return mix(back, (u64)text_length(text));
}

u64 base64(u64 a, u64 b)
{
    u8 bytes[15] = {0};
    char text[21];
    for (int i = 0; i < 15; i++)
        bytes[i] = (u8)((i % 2 ? a : b) >> i % 8 * 8);
    for (int i = 0; i < 5; i++) {
        u32 three = (u32)bytes[3 * i] << 16 | (u32)bytes[3 * i + 1] << 8 | bytes[3 * i + 2];
        for (int k = 0; k < 4; k++)
            text[4 * i + k] = alphabet[three >> (18 - 6 * k) & 63];
    }
    text[20] = 0;
    u64 h = 0;
    for (const char *p = text; *p; p++)
        h = mix(h, (u64)*p);
    return h;
}

u64 move_bytes(u64 a, u64 b)
{
    u8 buffer[40], copy[40];
    for (u32 i = 0; i < 40; i++)
        buffer[i] = (u8)(a >> i % 8 * 8) ^ (u8)(b * i);
    __builtin_memcpy(copy, buffer, sizeof copy);
    __builtin_memset(buffer + 3, (int)(b & 255), 11);
    u32 from = (u32)a % 8, count = (u32)b % 24;
    for (u32 i = 0; i < count; i++)
        copy[from + i] = buffer[i];
    u64 h = 0;
    for (int i = 0; i < 40; i++)
        h = mix(h, (u64)copy[i] << 8 | buffer[i]);
    return h;
}

/* ---- sorts ---- */

static void fill(u32 *values, int n, u64 a, u64 b)
{
    for (int i = 0; i < n; i++)
        values[i] = (u32)(a = a * 6364136223846793005u + b + 1) >> 8;
}

static u64 hash_of(const u32 *values, int n)
{
    u64 h = 0;
    for (int i = 0; i < n; i++)
        h = mix(h, values[i]);
    return h;
}

u64 insertion_sort(u64 a, u64 b)
{
    u32 v[16];
    fill(v, 16, a, b);
    for (int i = 1; i < 16; i++) {
        u32 x = v[i];
        int k = i;
        for (; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
    return hash_of(v, 16);
}

static NOINLINE void quick(u32 *v, int first, int last)
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

u64 quick_sort(u64 a, u64 b)
{
    u32 v[24];
    fill(v, 24, a, b);
    quick(v, 0, 23);
    return hash_of(v, 24);
}

u64 heap_sort(u64 a, u64 b)
{
    u32 v[20];
    fill(v, 20, a, b);
    for (int start = 9, end = 20; end > 1;) {
        if (start >= 0) {
            start--;
        } else {
            u32 t = v[--end];
            v[end] = v[0];
            v[0] = t;
        }
        for (int root = start + 1 > 0 ? start + 1 : 0, child; (child = 2 * root + 1) < end; root = child) {
            child += child + 1 < end && v[child + 1] > v[child];
            if (v[root] >= v[child])
                break;
            u32 t = v[root];
            v[root] = v[child];
            v[child] = t;
        }
    }
    return hash_of(v, 20);
}

u64 counting_sort(u64 a, u64 b)
{
    u8 v[32];
    u32 counts[16] = {0}, sorted[32];
    int n = 0;
    for (int i = 0; i < 32; i++)
        counts[v[i] = (u8)((i % 2 ? a : b) >> i * 2 & 15)]++;
    for (u32 value = 0; value < 16; value++)
        for (u32 k = 0; k < counts[value]; k++)
            sorted[n++] = value;
    return mix(hash_of(sorted, 32), v[a % 32]);
}

u64 binary_search(u64 a, u64 b)
{
    int low = 0, high = 16;
    u8 x = (u8)(a ^ b) % 64;
    while (low < high) {
        int middle = (low + high) / 2;
        if (primes[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return (u64)low;
}

/* ---- structs ---- */

typedef struct small {
    u8 x;
    u16 y;
    u32 z;
} small;

typedef struct large {
    u64 at[5];
    float f;
    double d;
    s8 c[3];
    small inner;
} large;

static NOINLINE small swap_small(small s, u32 by)
{
    return (small){(u8)s.y, (u16)(s.z + by), (u32)s.x << 8 | s.y};
}

static NOINLINE large change_large(large v, int i, float f)
{
    v.at[i] += v.at[(i + 1) % 5];
    v.f = f * v.f;
    v.d += f;
    v.c[i % 3] ^= 0x55;
    v.inner = swap_small(v.inner, (u32)i);
    return v;
}

u64 struct_by_value(u64 a, u64 b)
{
    large v = {{a, b, a ^ b, a + b, a - b},
               (float)(u16)a,
               (double)(u16)b,
               {(s8)a, (s8)b, 3},
               {(u8)a, (u16)b, (u32)a}};
    for (int i = 0; i < 5; i++)
        v = change_large(v, i, (float)(i + 1) * 0.25f);
    u64 h = mix(mix(v.at[0], v.at[1]), mix(v.at[2], mix(v.at[3], v.at[4])));
    h = mix(mix(h, f32_bits(v.f)), f64_bits(v.d));
    h = mix(h, (u64)(u8)v.c[0] | (u64)(u8)v.c[1] << 8 | (u64)(u8)v.c[2] << 16);
    return mix(h, (u64)v.inner.x << 48 | (u64)v.inner.y << 32 | v.inner.z);
}

u64 bit_fields(u64 a, u64 b)
{
    struct {
        u32 low : 3, middle : 11;
        s32 high : 7;
        u64 wide : 37;
    } f = {(u32)a & 7, (u32)b & 2047, 0, a & 0x1FFFFFFFFFu};
    f.high = (s32)(b % 127) - 63;
    f.middle += (u32)a & 2047;
    f.wide *= 3;
    return mix(mix(f.low, f.middle), mix((u64)(s64)f.high, f.wide));
}

/* A list in an array, linked by pointers. */
typedef struct node {
    struct node *next;
    u64 value;
} node;

u64 linked_list(u64 a, u64 b)
{
    node nodes[12], *head = 0;
    for (int i = 0; i < 12; i++) {
        node *n = &nodes[(i * 5) % 12];
        n->value = a * (u64)(i + 1) >> 3;
        node **at = &head;
        while (*at && (*at)->value < n->value)
            at = &(*at)->next;
        n->next = *at;
        *at = n;
    }
    u64 h = b;
    for (node *n = head; n; n = n->next)
        h = mix(h, n->value);
    return h;
}

u64 swap_pointers(u64 a, u64 b)
{
    u64 x = a, y = b, *p = &x, *q = &y;
    u64 **chosen = (a ^ b) & 1 ? &p : &q;
    **chosen += 17;
    *chosen = (a >> 1) & 1 ? &y : &x;
    **chosen ^= 0xFF00FF;
    return mix(mix(*p, *q), (u64)(p == q));
}
