/* wgmma.mma_async: every type, operands in registers and in shared memory in every layout, against sums worked out
 * here, mma.sync of the same SM and results of real tensor cores; and what a kernel can do wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fragments.h"
#include "ptxvm/ptxvm.h"
#include "support/silicon.h"
#include "test.h"

enum { M = 64, THREADS = 128, A_AT = 0, B_AT = 16384, SHARED = 49152, D_WORDS = 128, A_WORDS = 4 };

/* ---- The kernel ---- */

typedef struct text {
    char at[20480];
    size_t length;
} text;

#define WRITE(t, ...)                                                                                        \
    ((t)->length += (size_t)snprintf((t)->at + (t)->length, sizeof(t)->at - (t)->length, __VA_ARGS__))

static void write_vector(text *t, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        WRITE(t, "%s%s%d", i ? ", " : "{", name, i);
    WRITE(t, "}");
}

/* in: the shared memory, then a's registers, then d's, both [register][thread]; out: d's registers. `product` stands
 * between a wgmma.fence and the commit; %rda, %rdb are the descriptors, %p0 is scale-d. */
static void write_kernel(text *t, const char *product)
{
    WRITE(t,
          ".version 8.0\n.target sm_90a\n.address_size 64\n"
          ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 da, .param .u64 db, .param .u32 "
          "add)\n{\n"
          ".reg .b32 %%d<128>, %%a<4>, %%r<20>; .reg .b64 %%rd<8>, %%rda, %%rdb; .reg .pred %%p<4>;\n"
          ".shared .align 1024 .b8 sm[%d];\n"
          "ld.param.u64 %%rd0, [out]; ld.param.u64 %%rd1, [in]; ld.param.u64 %%rda, [da]; ld.param.u64 "
          "%%rdb, [db];\n"
          "ld.param.u32 %%r10, [add]; setp.ne.u32 %%p0, %%r10, 0;\n"
          "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, sm; shl.b32 %%r2, %%r0, 4;\n"
          "FILL: cvt.u64.u32 %%rd2, %%r2; add.u64 %%rd2, %%rd2, %%rd1; add.u32 %%r3, %%r1, %%r2;\n"
          "ld.global.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%rd2]; st.shared.v4.u32 [%%r3], {%%r4, %%r5, %%r6, "
          "%%r7};\n"
          "add.u32 %%r2, %%r2, %d; setp.lt.u32 %%p1, %%r2, %d; @%%p1 bra FILL;\n"
          "fence.proxy.async.shared::cta; bar.sync 0;\n"
          "mul.wide.u32 %%rd2, %%r0, 4; add.u64 %%rd0, %%rd0, %%rd2; add.u64 %%rd1, %%rd1, %%rd2;\n",
          SHARED, 16 * THREADS, SHARED);
    for (int i = 0; i < A_WORDS; i++)
        WRITE(t, "ld.global.u32 %%a%d, [%%rd1 + %d];\n", i, SHARED + 4 * THREADS * i);
    for (int i = 0; i < D_WORDS; i++)
        WRITE(t, "ld.global.u32 %%d%d, [%%rd1 + %d];\n", i, SHARED + 4 * THREADS * (A_WORDS + i));
    WRITE(
        t,
        "wgmma.fence.sync.aligned;\n%s\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
        product);
    for (int i = 0; i < D_WORDS; i++)
        WRITE(t, "st.global.u32 [%%rd0 + %d], %%d%d;\n", 4 * THREADS * i, i);
    WRITE(t, "ret;\n}\n");
}

/* What a launch takes and gives. */
typedef struct job {
    uint8_t shared[SHARED];
    uint32_t a[A_WORDS][THREADS], d[D_WORDS][THREADS];
    uint64_t desc_a, desc_b;
    uint32_t add;
    ptxvm_status launched;
} job;

/* Runs the product; job->d becomes d. Returns what went wrong ("" if nothing), which also has the findings. */
static const char *run(job *j, const char *product, uint64_t seed, unsigned checks,
                       ptxvm_counters_level counters, int *published)
{
    static char message[1024];
    const ptxvm_config config = {
        .sm = "sm_90a", .threads = 1, .seed = seed, .checks = checks, .counters = counters};
    const ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}};
    text *t = calloc(1, sizeof *t);
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    struct {
        ptxvm_address out, in;
        uint64_t a, b;
        uint32_t add;
    } params = {.a = j->desc_a, .b = j->desc_b, .add = j->add};
    const uint64_t in_bytes = sizeof j->shared + sizeof j->a + sizeof j->d;
    write_kernel(t, product);
    if (ptxvm_create(&config, &vm))
        return "no device";
    bool ok = !ptxvm_module_load(vm, t->at, t->length, &module) &&
              !ptxvm_module_kernel(module, "k", &kernel) && !ptxvm_alloc(vm, sizeof j->d, &params.out) &&
              !ptxvm_alloc(vm, in_bytes, &params.in) &&
              !ptxvm_write(vm, params.in, j->shared, sizeof j->shared) &&
              !ptxvm_write(vm, params.in + sizeof j->shared, j->a, sizeof j->a) &&
              !ptxvm_write(vm, params.in + sizeof j->shared + sizeof j->a, j->d, sizeof j->d) &&
              !(j->launched = ptxvm_launch(vm, kernel, &launch, &params, 36)) &&
              !ptxvm_read(vm, j->d, params.out, sizeof j->d);
    snprintf(message, sizeof message, "%s", ok ? "" : ptxvm_last_error(vm));
    if (ok && published)
        *published = ptxvm_last_report(vm)->n_tensor;
    ptxvm_destroy(vm);
    free(t);
    return message;
}

/* ---- Where things are: PTX ISA, "Register Fragments" and "Shared Memory Matrix Layout" ---- */

/* Accumulators: f32 and s32 one by one, f16 in pairs. */
static uint32_t d_get(const job *j, bool is_f16, int row, int col)
{
    int thread = row / 16 * 32 + row % 8 * 4 + col % 8 / 2, i = col / 8 * 4 + row % 16 / 8 * 2 + col % 2;
    return is_f16 ? j->d[i / 2][thread] >> 16 * (i % 2) & 0xFFFF : j->d[i][thread];
}

static void d_set(job *j, bool is_f16, int row, int col, uint32_t value)
{
    int thread = row / 16 * 32 + row % 8 * 4 + col % 8 / 2, i = col / 8 * 4 + row % 16 / 8 * 2 + col % 2;
    if (!is_f16)
        j->d[i][thread] = value;
    else
        j->d[i / 2][thread] = (j->d[i / 2][thread] & ~(0xFFFFu << 16 * (i % 2))) | value << 16 * (i % 2);
}

/* a's registers: the 32 bytes of a row are eight words; word w is in lane w % 4 of its row's quad. */
static void a_set_word(job *j, int row, int word, uint32_t value)
{
    j->a[word / 4 * 2 + row % 16 / 8][row / 16 * 32 + row % 8 * 4 + word % 4] = value;
}

typedef struct place {
    int swizzle; /* bytes; 0 none */
    bool transposed;
    uint32_t at, leading, stride,
        step; /* step: bytes that the start lies behind `at`, along K in a swizzled tile */
} place;

/* The layouts as CUTLASS writes them, in pieces of 16 bytes (mma_sm90_desc): byte `b` of the 32 of line l (K-major), or
 * element l of depth k (transposed; two bytes each). */
static uint32_t place_of(const place *p, int l, int k_byte)
{
    int pieces = p->swizzle ? p->swizzle / 16 : 1;
    uint32_t at, piece = (uint32_t)(p->transposed ? l / 8 : k_byte / 16);
    if (!p->transposed)
        at = (uint32_t)(l % 8 * pieces * 16) + (uint32_t)(l / 8) * p->stride +
             piece * (p->swizzle ? 16 : p->leading) + (uint32_t)(k_byte % 16);
    else {
        uint32_t k = (uint32_t)k_byte / 2;
        uint32_t big = p->swizzle ? p->leading : p->stride, deep = p->swizzle ? p->stride : p->leading;
        at = piece % (uint32_t)pieces * 16 + piece / (uint32_t)pieces * big + k % 8 * (uint32_t)pieces * 16 +
             k / 8 * deep + (uint32_t)(l % 8 * 2 + k_byte % 2);
    }
    at += p->at + p->step;
    uint32_t rows = p->swizzle == 128 ? 7 : p->swizzle == 64 ? 3 : p->swizzle == 32 ? 1 : 0;
    return at ^ (at >> 7 & rows) << 4;
}

static uint64_t descriptor_of(const place *p)
{
    uint64_t mode = p->swizzle == 128 ? 1 : p->swizzle == 64 ? 2 : p->swizzle == 32 ? 3 : 0;
    return (uint64_t)(p->at + p->step) >> 4 | (uint64_t)(p->leading >> 4) << 16 |
           (uint64_t)(p->stride >> 4) << 32 | mode << 62;
}

/* ---- Cases ---- */

typedef struct wgmma_case {
    const char *name;
    const char *types; /* ".f32.f16.f16" */
    pvm_type d, a, b;
    int n, k;
    bool registers; /* a */
    place pa, pb;
    int scale_a, scale_b;
    bool add;
} wgmma_case;

#define K_MAJOR(sw, at_)                                                                                     \
    {                                                                                                        \
        .swizzle = sw, .at = at_, .leading = sw ? 16 : 4096, .stride = sw ? 8 * sw : 128                     \
    }
#define MN_MAJOR(sw, at_)                                                                                    \
    {                                                                                                        \
        .swizzle = sw, .transposed = true, .at = at_, .leading = sw ? 4096 : 512,                            \
        .stride = sw ? 8 * sw : 1024                                                                         \
    }
#define F16      ".f32.f16.f16", T_F32, T_F16, T_F16
#define A_K(sw)  K_MAJOR(sw, A_AT)
#define B_K(sw)  K_MAJOR(sw, B_AT)
#define A_MN(sw) MN_MAJOR(sw, A_AT)
#define B_MN(sw) MN_MAJOR(sw, B_AT)

/* clang-format off */
static const wgmma_case Products[] = {
    {"f16_n8",              F16,   8, 16, false, A_K(128), B_K(128), 1, 1, true},
    {"f16_n256",            F16, 256, 16, false, A_K(128), B_K(128), 1, 1, true},
    {"f16_n72_no_d",        F16,  72, 16, false, A_K(128), B_K(128), 1, 1, false},
    {"f16_swizzle_64",      F16,  64, 16, false, A_K(64),  B_K(64),  1, 1, true},
    {"f16_swizzle_32",      F16,  64, 16, false, A_K(32),  B_K(32),  1, 1, true},
    {"f16_no_swizzle",      F16,  64, 16, false, A_K(0),   B_K(0),   1, 1, true},
    {"f16_mixed_swizzles",  F16,  64, 16, false, A_K(32),  B_K(128), 1, 1, true},
    {"f16_second_k_step",   F16,  64, 16, false, {128, false, A_AT, 16, 1024, 32}, {128, false, B_AT, 16, 1024, 96}, 1, 1, true},
    {"f16_second_k_step_64", F16, 64, 16, false, {64, false, A_AT, 16, 512, 32}, {64, false, B_AT, 16, 512, 32}, 1, 1, true},
    {"f16_wide_strides",    F16,  64, 16, false, {128, false, A_AT, 16, 2048, 0}, {0, false, B_AT, 256, 512, 0}, 1, 1, true},
    {"f16_a_transposed",    F16,  64, 16, false, A_MN(128), B_K(128), 1, 1, true},
    {"f16_b_transposed",    F16, 128, 16, false, A_K(128), B_MN(128), 1, 1, true},
    {"f16_both_transposed_64", F16, 64, 16, false, A_MN(64), B_MN(64), 1, 1, true},
    {"f16_both_transposed_32", F16, 64, 16, false, A_MN(32), B_MN(32), 1, 1, true},
    {"f16_both_transposed_0", F16, 64, 16, false, A_MN(0), B_MN(0),   1, 1, true},
    {"f16_negated_a",       F16,  64, 16, false, A_K(128), B_K(128), -1, 1, true},
    {"f16_negated_b",       F16,  64, 16, false, A_K(128), B_K(128), 1, -1, true},
    {"f16_negated_both",    F16,  64, 16, false, A_K(128), B_K(128), -1, -1, true},
    {"f16_registers",       F16,  64, 16, true,  A_K(0),   B_K(128), 1, 1, true},
    {"f16_registers_negated_transposed", F16, 64, 16, true, A_K(0), B_MN(128), -1, 1, false},
    {"f16_to_f16",          ".f16.f16.f16", T_F16, T_F16, T_F16, 64, 16, false, A_K(128), B_K(128), 1, 1, true},
    {"f16_to_f16_registers", ".f16.f16.f16", T_F16, T_F16, T_F16, 256, 16, true, A_K(0), B_K(64), 1, 1, true},
    {"bf16",                ".f32.bf16.bf16", T_F32, T_BF16, T_BF16, 64, 16, false, A_K(128), B_MN(128), 1, 1, true},
    {"bf16_registers",      ".f32.bf16.bf16", T_F32, T_BF16, T_BF16, 40, 16, true, A_K(0), B_K(32), 1, -1, true},
    {"tf32",                ".f32.tf32.tf32", T_F32, T_TF32, T_TF32, 64, 8, false, A_K(128), B_K(64), 1, 1, true},
    {"tf32_registers",      ".f32.tf32.tf32", T_F32, T_TF32, T_TF32, 48, 8, true, A_K(0), B_K(0), -1, 1, true},
    {"e4m3",                ".f32.e4m3.e4m3", T_F32, T_E4M3, T_E4M3, 64, 32, false, A_K(128), B_K(128), 1, 1, true},
    {"e4m3_e5m2",           ".f32.e4m3.e5m2", T_F32, T_E4M3, T_E5M2, 64, 32, false, A_K(0), B_K(64), 1, -1, true},
    {"e5m2_registers_f16",  ".f16.e5m2.e4m3", T_F16, T_E5M2, T_E4M3, 96, 32, true, A_K(0), B_K(128), 1, 1, true},
    {"s8",                  ".s32.s8.s8", T_S32, T_S8, T_S8, 64, 32, false, A_K(128), B_K(128), 1, 1, true},
    {"u8_s8",               ".s32.u8.s8", T_S32, T_U8, T_S8, 256, 32, false, A_K(64), B_K(32), 1, 1, true},
    {"s8_u8_registers",     ".s32.s8.u8", T_S32, T_S8, T_U8, 48, 32, true, A_K(0), B_K(128), 1, 1, false},
    {"s8_satfinite",        ".satfinite.s32.s8.s8", T_S32, T_S8, T_S8, 16, 32, false, A_K(128), B_K(128), 1, 1, true},
    {"b1",                  ".s32.b1.b1.and.popc", T_S32, T_B1, T_B1, 64, 256, false, A_K(128), B_K(128), 1, 1, true},
    {"b1_registers",        ".s32.b1.b1.and.popc", T_S32, T_B1, T_B1, 24, 256, true, A_K(0), B_K(0), 1, 1, true},
};
/* clang-format on */

static bool has_scales(const wgmma_case *c)
{
    return c->d != T_S32;
}

static void product_of(const wgmma_case *c, text *t)
{
    t->length = 0;
    const bool f16 = c->a == T_F16 || c->a == T_BF16;
    WRITE(t, "wgmma.mma_async.sync.aligned.m64n%dk%d%s ", c->n, c->k, c->types);
    write_vector(t, "%d", c->d == T_F16 ? c->n / 4 : c->n / 2);
    WRITE(t, ", ");
    if (c->registers)
        write_vector(t, "%a", 4);
    else
        WRITE(t, "%%rda");
    WRITE(t, ", %%rdb, %%p0");
    if (has_scales(c))
        WRITE(t, ", %d, %d", c->scale_a, c->scale_b);
    if (f16 && !c->registers)
        WRITE(t, ", %d", c->pa.transposed);
    if (f16)
        WRITE(t, ", %d", c->pb.transposed);
    WRITE(t, ";");
}

/* Small whole numbers, whose sums every model gives exactly. */
static uint32_t encode(pvm_type type, int value)
{
    static const uint32_t f16[] = {0, 0x3C00, 0x4000, 0x4200}, bf16[] = {0, 0x3F80, 0x4000, 0x4040},
                          f32[] = {0, 0x3F800000, 0x40000000, 0x40400000}, e4m3[] = {0, 0x38, 0x40, 0x44},
                          e5m2[] = {0, 0x3C, 0x40, 0x42};
    uint32_t magnitude = (uint32_t)abs(value), sign = value < 0;
    switch (type) {
    case T_F16:
        return f16[magnitude] | sign << 15;
    case T_BF16:
        return bf16[magnitude] | sign << 15;
    case T_TF32:
        return f32[magnitude] | sign << 31;
    case T_E4M3:
        return e4m3[magnitude] | sign << 7;
    case T_E5M2:
        return e5m2[magnitude] | sign << 7;
    case T_U8:
        return magnitude * 80;
    case T_S8:
        return (uint32_t)value * 40 & 0xFF;
    default:
        return (uint32_t)value & 1;
    }
}

static int value_of(pvm_type type, int value)
{
    return type == T_U8 ? abs(value) * 80 : type == T_S8 ? value * 40 : type == T_B1 ? value & 1 : value;
}

static int bits_of(pvm_type type)
{
    return type == T_B1 ? 1 : type == T_TF32 ? 32 : type == T_F16 || type == T_BF16 ? 16 : 8;
}

static int element(int i, int k, int salt)
{
    uint32_t x = (uint32_t)(i * 733 + k * 41 + salt) * 2654435761u;
    return (int)(x >> 13) % 7 - 3;
}

/* Line l of a matrix, 32 bytes, from raw elements. */
static void line_bytes(pvm_type type, int k, const uint32_t *raw, uint8_t bytes[32])
{
    memset(bytes, 0, 32);
    for (int i = 0; i < k; i++) {
        int bits = bits_of(type), at = i * bits;
        for (int b = 0; b < bits; b++)
            bytes[(at + b) / 8] |= (uint8_t)((raw[i] >> b & 1) << (at + b) % 8);
    }
}

static void put_line(job *j, const place *p, int l, const uint8_t bytes[32])
{
    for (int b = 0; b < 32; b++)
        j->shared[place_of(p, l, b)] = bytes[b];
}

static void put_a(job *j, const wgmma_case *c, int row, const uint32_t *raw)
{
    uint8_t bytes[32];
    line_bytes(c->a, c->k, raw, bytes);
    for (int w = 0; c->registers && w < 8; w++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * w, 4);
        a_set_word(j, row, w, word);
    }
    if (!c->registers)
        put_line(j, &c->pa, row, bytes);
}

static void put_b(job *j, const wgmma_case *c, int col, const uint32_t *raw)
{
    uint8_t bytes[32];
    line_bytes(c->b, c->k, raw, bytes);
    put_line(j, &c->pb, col, bytes);
}

static job *new_job(const wgmma_case *c)
{
    job *j = calloc(1, sizeof *j);
    memset(j->shared, 0x77, sizeof j->shared);
    j->desc_a = c->registers ? 0 : descriptor_of(&c->pa);
    j->desc_b = descriptor_of(&c->pb);
    j->add = c->add;
    return j;
}

static uint32_t f16_of(int value)
{
    uint32_t magnitude = (uint32_t)abs(value), e = 0;
    if (!magnitude)
        return 0;
    while (magnitude >> (e + 1))
        e++;
    return (value < 0 ? 0x8000u : 0) | (e + 15) << 10 | (((magnitude << 10) >> e) & 0x3FF);
}

static uint32_t result_bits(pvm_type type, int value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return type == T_F16 ? f16_of(value) : type == T_F32 ? bits : (uint32_t)value;
}

static int start_of_d(int row, int col)
{
    return (row * 5 + col * 3) % 29 - 14;
}

static void fill_small(job *j, const wgmma_case *c)
{
    uint32_t raw[256];
    for (int row = 0; row < M; row++) {
        for (int k = 0; k < c->k; k++)
            raw[k] = encode(c->a, element(row, k, 5));
        put_a(j, c, row, raw);
    }
    for (int col = 0; col < c->n; col++) {
        for (int k = 0; k < c->k; k++)
            raw[k] = encode(c->b, element(col, k, 77));
        put_b(j, c, col, raw);
    }
    for (int row = 0; row < M; row++)
        for (int col = 0; col < c->n; col++)
            d_set(j, c->d == T_F16, row, col, result_bits(c->d, start_of_d(row, col)));
}

static int sum_of(const wgmma_case *c, int row, int col)
{
    int sum = c->add ? start_of_d(row, col) : 0, sign = c->scale_a * c->scale_b;
    for (int k = 0; k < c->k; k++)
        sum += sign * value_of(c->a, element(row, k, 5)) * value_of(c->b, element(col, k, 77));
    return sum;
}

TEST_ROWS(Wgmma, Sums, Products)
{
    const wgmma_case *c = &Products[index];
    text product;
    product_of(c, &product);
    for (uint64_t seed = 0; seed < 4; seed++) { /* a seed chooses when the product reads its operands */
        job *j = new_job(c);
        fill_small(j, c);
        const char *wrong = run(j, product.at, seed, PTXVM_CHECK_ALL, PTXVM_COUNTERS_OFF, NULL);
        CHECK_EQ_STR(wrong, "");
        for (int row = 0; !*wrong && row < M; row++)
            for (int col = 0; col < c->n; col++)
                if (!CHECK_EQ_U32(d_get(j, c->d == T_F16, row, col),
                                  result_bits(c->d, sum_of(c, row, col)))) {
                    FAIL("seed %d, row %d, column %d", (int)seed, row, col);
                    row = M;
                    break;
                }
        free(j);
    }
}

/* ---- Against mma.sync of the same SM, which has the same operation ---- */

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 15;
}

static uint32_t random_element(pvm_type type, uint32_t *state)
{
    uint32_t x = random_bits(state) << 16 | (random_bits(state) & 0xFFFF);
    if (type == T_TF32 || type == T_F32) /* exponents near each other, now and then an infinity or a NaN */
        return x % 251 == 0   ? 0x7F800000u | (x & 0x80000000u)
               : x % 241 == 0 ? 0x7FC00000u
                              : (x & 0x83FFFFFFu) | 0x3C000000u;
    if (x % 251 == 0)
        return type == T_F16 ? 0x7C00u : 0x7F80u;
    return type == T_F16 ? x & 0xBFFFu : (x & 0x83FFu) | 0x3C00u;
}

static const wgmma_case LikeMma[] = {
    {"f16", F16, 64, 16, false, A_K(128), B_K(128), 1, 1, true},
    {"f16_to_f16", ".f16.f16.f16", T_F16, T_F16, T_F16, 64, 16, false, A_K(128), B_K(128), 1, 1, true},
    {"bf16", ".f32.bf16.bf16", T_F32, T_BF16, T_BF16, 64, 16, true, A_K(0), B_K(128), 1, 1, true},
    {"tf32", ".f32.tf32.tf32", T_F32, T_TF32, T_TF32, 64, 8, false, A_K(128), B_K(128), 1, 1, true},
};

typedef struct matrices {
    uint64_t a[M * 16], b[16 * 64], c[M * 64];
} matrices;

static void fill_random(job *j, const wgmma_case *c, matrices *m)
{
    uint32_t raw[16], state = 99;
    for (int row = 0; row < M; row++) {
        for (int k = 0; k < c->k; k++)
            m->a[row * c->k + k] = raw[k] = random_element(c->a, &state);
        put_a(j, c, row, raw);
    }
    for (int col = 0; col < c->n; col++) {
        for (int k = 0; k < c->k; k++)
            m->b[k * c->n + col] = raw[k] = random_element(c->b, &state);
        put_b(j, c, col, raw);
    }
    for (int row = 0; row < M; row++)
        for (int col = 0; col < c->n; col++) {
            uint32_t value = random_element(c->d, &state);
            m->c[row * c->n + col] = value;
            d_set(j, c->d == T_F16, row, col, value);
        }
}

TEST_ROWS(Wgmma, LikeMmaOfTheSm, LikeMma)
{
    const wgmma_case *c = &LikeMma[index];
    text product;
    matrices m;
    tensor_op op;
    pvm_inst inst = mma_instruction(c->k == 16 ? M_m16n8k16 : M_m16n8k8, c->d, c->a, c->b, c->d);
    REQUIRE(tensor_find(&inst, (pvm_target){90, 'a'}, &op));
    job *j = new_job(c);
    fill_random(j, c, &m);
    product_of(c, &product);
    int published = 0;
    CHECK_EQ_STR(run(j, product.at, 0, PTXVM_CHECK_ALL, PTXVM_COUNTERS_OFF, &published), "");
    CHECK_EQ_I64(published, 1);
    for (int row = 0; row < M; row += 16)
        for (int col = 0; col < c->n; col += 8) {
            uint64_t b[16 * 8], start[16 * 8], d[16 * 8];
            for (int i = 0; i < c->k * 8; i++)
                b[i] = m.b[i / 8 * c->n + col + i % 8];
            for (int i = 0; i < 16 * 8; i++)
                start[i] = m.c[(row + i / 8) * c->n + col + i % 8];
            mma_run(&op, bits_of(c->a), m.a + row * c->k, b, start, d, NULL);
            for (int i = 0; i < 16 * 8; i++)
                CHECK_EQ_U32(d_get(j, c->d == T_F16, row + i / 8, col + i % 8), (uint32_t)d[i]);
        }
    free(j);
}

/* ---- Against silicon: rows and columns are lines of the set ---- */

static int wrong_in_set(const silicon_set *set, const silicon_data *data, const wgmma_case *c)
{
    text product;
    int wrong = 0;
    product_of(c, &product);
    for (int first = 0; first < SILICON_LINES; first += M) {
        job *j = new_job(c);
        for (int i = 0; i < M; i++) {
            int line = (first + i) % SILICON_LINES;
            put_a(j, c, i, data->a + line * set->k);
            put_b(j, c, i, data->b + line * set->k);
        }
        CHECK_EQ_STR(run(j, product.at, 0, 0, PTXVM_COUNTERS_OFF, NULL), "");
        for (int i = 0; i < M && first + i < SILICON_LINES; i++)
            wrong += d_get(j, false, i, i) != data->d32[first + i];
        free(j);
    }
    return wrong;
}

TEST_CASE(Wgmma, NoneOfTheSiliconSetIsWrong)
{
    for (int i = 0; i < silicon_n_sets; i++) {
        const silicon_set *set = &silicon_sets[i];
        silicon_data data;
        if (!set->is_wgmma)
            continue;
        if (!silicon_load(set, &data))
            SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
        const wgmma_case c = {set->type_name,
                              set->type == T_E5M2 ? ".f32.e5m2.e5m2" : ".f32.e4m3.e4m3",
                              T_F32,
                              set->type,
                              set->type,
                              M,
                              32,
                              false,
                              A_K(128),
                              B_K(128),
                              1,
                              1,
                              false};
        CHECK_EQ_I64(wrong_in_set(set, &data, &c), 0);
        silicon_free(&data);
    }
}

/* ---- Chains, and what is found ---- */

#define D4     "{%d0, %d1, %d2, %d3}"
#define D4_OUT "{%d4, %d5, %d6, %d7}"
#define MMA(d) "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " d ", %rda, %rdb, %p0, 1, 1, 0, 0;\n"
#define MMA_REGISTERS(d)                                                                                     \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " d ", {%a0, %a1, %a2, %a3}, %rdb, %p0, 1, 1, 0;\n"
#define COMMIT  "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " n ";\n"
#define FENCE   "wgmma.fence.sync.aligned;\n"

typedef struct misuse {
    const char *name, *lines;
    const char *error; /* a part of the message; null: all is well */
    ptxvm_status status;
} misuse;

/* clang-format off */
static const misuse Uses[] = {
    {"one_after_another", MMA(D4) MMA(D4) MMA(D4), NULL, PTXVM_OK},
    {"two_results", MMA(D4) MMA(D4_OUT), NULL, PTXVM_OK},
    {"older_group_is_complete", MMA(D4) COMMIT MMA(D4_OUT) COMMIT WAIT("1") "mov.b32 %r11, %d0;", NULL, PTXVM_OK},
    {"fence_before_the_next", MMA(D4) COMMIT WAIT("0") "add.f32 %d0, %d0, %d1;" FENCE MMA(D4), NULL, PTXVM_OK},
    {"a_may_be_read", MMA_REGISTERS(D4) "mov.b32 %r11, %a0;", NULL, PTXVM_OK},
    {"operands_may_be_read", MMA(D4) "ld.shared.u32 %r11, [%r1];", NULL, PTXVM_OK},
    {"others_may_be_written", MMA(D4) "mov.b32 %d4, 0;", NULL, PTXVM_OK},
    {"read_before_the_wait", MMA(D4) "mov.b32 %r11, %d0;", "mov reads %d0, which the wgmma of line", PTXVM_ERROR_CHECK},
    {"read_before_the_wait_for_its_group", MMA(D4) COMMIT MMA(D4_OUT) COMMIT WAIT("1") "mov.b32 %r11, %d4;",
        "mov reads %d4, which the wgmma of line", PTXVM_ERROR_CHECK},
    {"an_uncommitted_product_is_not_waited_for", MMA(D4) WAIT("0") "mov.b32 %r11, %d0;", "mov reads %d0", PTXVM_ERROR_CHECK},
    {"written_before_the_wait", MMA(D4) "mov.b32 %d3, 0;", "mov writes %d3", PTXVM_ERROR_CHECK},
    {"a_written_before_the_wait", MMA_REGISTERS(D4) "mov.b32 %a2, 0;", "mov writes %a2, which the wgmma of line", PTXVM_ERROR_CHECK},
    {"no_fence_after_an_access", MMA(D4) COMMIT WAIT("0") "add.f32 %d0, %d0, %d1;" MMA(D4),
        "%d0 was accessed at line", PTXVM_ERROR_CHECK},
    {"no_fence_after_a_change_of_a", "mov.b32 %a1, %a0;" MMA_REGISTERS(D4), "%a0 was accessed at line", PTXVM_ERROR_CHECK},
    {"operand_a_written", MMA(D4) "and.b32 %r11, %r0, 31; shr.u32 %r12, %r0, 5; mad.lo.u32 %r12, %r12, 2048, %r1; mad.lo.u32 %r12, %r11, 4, %r12; "
        "st.shared.u32 [%r12], %r0;", ", which the wgmma of line", PTXVM_ERROR_CHECK},
    {"operand_b_written", MMA(D4) "mad.lo.u32 %r12, %r0, 4, %r1; st.shared.u32 [%r12+16384], %r0;", "which the wgmma of line", PTXVM_ERROR_CHECK},
    {"other_registers_of_a_result", MMA(D4) MMA("{%d2, %d3, %d4, %d5}"), "%d2 belongs to the result of the wgmma", PTXVM_ERROR_EXECUTION},
    {"leaves_it_in_flight", MMA(D4) COMMIT "exit;", "the result of this wgmma is lost", PTXVM_ERROR_CHECK},
    {"reserved_bits", "or.b64 %rda, %rda, 0x4000;" MMA(D4), "the descriptor of A, 0x4000004000014000, has reserved bits set", PTXVM_ERROR_EXECUTION},
    {"base_offset", "or.b64 %rdb, %rdb, 0x2000000000000;" MMA(D4), "the descriptor of B has the base offset 1", PTXVM_ERROR_UNSUPPORTED},
    {"outside", "or.b64 %rdb, %rdb, 0x3FFF;" MMA(D4), "leads to shared address 0x3ff80, which is outside: the block has 49152 bytes", PTXVM_ERROR_ADDRESS},
    {"a_far_stride", "or.b64 %rda, %rda, 0x3FFF00000000;" MMA(D4), "the descriptor of A (start 0x0", PTXVM_ERROR_ADDRESS},
    {"descriptors_differ_in_a_warp", "cvt.u64.u32 %rd2, %r0; or.b64 %rda, %rda, %rd2;" MMA(D4), "it must be the same in all lanes", PTXVM_ERROR_EXECUTION},
    {"descriptors_differ_in_warps", "shr.u32 %r11, %r0, 5; cvt.u64.u32 %rd2, %r11; or.b64 %rda, %rda, %rd2;" MMA(D4),
        "with other descriptors or another scale-d", PTXVM_ERROR_EXECUTION},
    {"scale_d_differs", "setp.lt.u32 %p0, %r0, 5;" MMA(D4), "thread (5,0,0): scale-d is false here and true in other lanes", PTXVM_ERROR_EXECUTION},
    {"a_warp_is_missing", "setp.lt.u32 %p2, %r0, 96; @!%p2 exit;" MMA(D4), "this warp has not executed this wgmma", PTXVM_ERROR_EXECUTION},
    {"warps_execute_different_ones", "setp.lt.u32 %p2, %r0, 96; @%p2 bra X;" MMA(D4) "bra Y; X:" MMA(D4) "Y:",
        "another warp of the warpgroup has executed the wgmma of line", PTXVM_ERROR_EXECUTION},
    {"a_lane_is_missing", "setp.eq.u32 %p2, %r0, 3; @%p2 exit;" MMA(D4), "all 32 threads of the warp: 0xfffffff7", PTXVM_ERROR_EXECUTION},
    {"lanes_at_different_places", "setp.eq.u32 %p2, %r0, 3; @%p2 bra X;" MMA(D4) "bra Y; X:" MMA(D4) "Y:",
        "other lanes of the warp execute another wgmma", PTXVM_ERROR_EXECUTION},
};
/* clang-format on */

static const wgmma_case small = {"", F16, 8, 16, false, A_K(128), B_K(128), 1, 1, true};

TEST_ROWS(Wgmma, Finds, Uses)
{
    const misuse *u = &Uses[index];
    job *j = new_job(&small);
    const char *wrong = run(j, u->lines, 0, PTXVM_CHECK_ALL, PTXVM_COUNTERS_OFF, NULL);
    CHECK_EQ_I64(j->launched, u->status);
    if (u->error)
        CHECK_HAS(wrong, u->error);
    else
        CHECK_EQ_STR(wrong, "");
    free(j);
}

/* Without checks, a result that is read too early is POISON, whatever the seed. */
TEST_CASE(Wgmma, AResultIsPoisonBeforeItsWait)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        job *j = new_job(&small);
        fill_small(j, &small);
        CHECK_EQ_STR(run(j, MMA(D4) "mov.b32 %d100, %d2;", seed, 0, PTXVM_COUNTERS_OFF, NULL), "");
        CHECK_EQ_U32(j->d[100][5], 0x7FBADBAD);
        CHECK_EQ_U32(d_get(j, false, 3, 4), result_bits(T_F32, sum_of(&small, 3, 4)));
        free(j);
    }
}

/* An operand that changes before the wait: a product without a seed reads it late, and some seed reads it early. */
TEST_CASE(Wgmma, SeedsReadOperandsEarlyOrLate)
{
    int changed = 0, intact = 0;
    for (uint64_t seed = 0; seed < 16; seed++) {
        job *j = new_job(&small);
        fill_small(j, &small);
        CHECK_EQ_STR(run(j,
                         MMA(D4) "mov.u32 %r11, 0; mul.lo.u32 %r12, %r0, 16; add.u32 %r12, %r12, %r1; "
                                 "st.shared.v4.u32 [%r12+16384], "
                                 "{%r11, %r11, %r11, %r11};",
                         seed, 0, PTXVM_COUNTERS_OFF, NULL),
                     "");
        bool late = d_get(j, false, 3, 2) == result_bits(T_F32, start_of_d(3, 2));
        changed += late;
        intact += d_get(j, false, 3, 2) == result_bits(T_F32, sum_of(&small, 3, 2));
        CHECK(seed > 0 || late);
        free(j);
    }
    CHECK_EQ_I64(changed + intact, 16);
    CHECK(intact > 0);
}

/* Whatever a descriptor says, nothing outside the block's shared memory is read: an error, or a product. */
TEST_CASE(Wgmma, AnyDescriptorIsSafe)
{
    uint64_t state = 12345;
    int refused = 0;
    for (int round = 0; round < 200; round++) {
        job *j = new_job(&small);
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t bits = state ^ state >> 29;
        *(round % 2 ? &j->desc_a : &j->desc_b) = round % 4 < 2 ? bits : bits & UINT64_C(0xC0003FFF3FFF3FFF);
        refused += *run(j, MMA(D4), (uint64_t)round, 0, PTXVM_COUNTERS_OFF, NULL) != 0;
        free(j);
    }
    CHECK(refused >= 100 && refused < 200); /* those with reserved bits; not all the others */
}

TEST_CASE(Wgmma, NeedsFourWarps)
{
    static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
                              "wgmma.fence.sync.aligned; ret;\n}\n";
    const ptxvm_config config = {.sm = "sm_90a", .threads = 1};
    const ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {224, 1, 1}};
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    REQUIRE(!ptxvm_create(&config, &vm));
    CHECK(!ptxvm_module_load(vm, ptx, strlen(ptx), &module) && !ptxvm_module_kernel(module, "k", &kernel));
    CHECK_EQ_I64(ptxvm_launch(vm, kernel, &launch, NULL, 0), PTXVM_ERROR_EXECUTION);
    CHECK_HAS(ptxvm_last_error(vm),
              "wgmma needs a warpgroup: four warps, the first of which is a multiple of 4; this one has 3");
    ptxvm_destroy(vm);
}
