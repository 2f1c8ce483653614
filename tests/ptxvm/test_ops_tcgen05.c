/* tcgen05: products of every kind, with operands in shared and tensor memory in every layout, by one block and by a
 * pair; copies and shifts; loads and stores in every shape; allocation; and what a kernel can do wrong. Results are
 * compared with sums worked out here, from places written out once more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/isa.h"
#include "ptxvm/ptxvm.h"
#include "test.h"

enum { THREADS = 128, LANES = 128, COLUMNS = 512, A_AT = 1024, B_AT = 33792, SHARED = 66560, TEXT = 1 << 16 };
/* Columns of tensor memory. */
enum { D_COLUMN = 0, A_COLUMN = 256, SFA_COLUMN = 272, SFB_COLUMN = 288 };

typedef struct text {
    char at[TEXT];
    size_t length;
} text;

#define WRITE(t, ...)                                                                                        \
    ((t)->length += (size_t)snprintf((t)->at + (t)->length, sizeof(t)->at - (t)->length, __VA_ARGS__))

/* What a launch takes and gives, for each of up to two blocks. */
typedef struct job {
    uint8_t shared[2][SHARED];
    uint32_t tmem[2][LANES][COLUMNS];
    uint64_t a, b;
    uint32_t idesc, adds;
} job;

/* ---- The kernel ---- */

/* Shared memory: the mbarrier, the address of tensor memory, then from 1024 on what the job has. `all` is executed by all
 * threads, %t1 being the address of their warp's lanes of tensor memory, then `product` by one thread; %da, %db are its descriptors, %id the instruction descriptor, %p0 is enable-input-d, %t0 the address of
 * tensor memory. */
static void write_kernel(text *t, const char *target, int group, const char *all, const char *product)
{
    WRITE(t, ".version 9.0\n.target %s\n.address_size 64\n.extern .shared .align 1024 .b8 sm[];\n", target);
    WRITE(t,
          ".visible .entry k(.param .u64 shared, .param .u64 tmem, .param .u64 a, .param .u64 b, .param .u32 "
          "id, "
          ".param .u32 adds)%s\n{\n",
          group == 2 ? " .reqnctapercluster 2" : "");
    WRITE(t, ".reg .b32 %%r<48>, %%v<32>, %%w<128>, %%m<8>, %%id, %%t<8>; .reg .b64 %%rd<12>, %%da, %%db; "
             ".reg .pred %%p<8>; "
             ".reg .b16 %%h<2>;\n");
    WRITE(t,
          "ld.param.u64 %%rd0, [shared]; ld.param.u64 %%rd1, [tmem]; ld.param.u64 %%da, [a]; ld.param.u64 "
          "%%db, [b];\n"
          "ld.param.u32 %%id, [id]; ld.param.u32 %%r0, [adds]; setp.ne.u32 %%p0, %%r0, 0;\n"
          "mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%cluster_ctarank; mov.u32 %%r3, sm; shr.u32 %%r4, %%r1, 5;\n"
          "mul.wide.u32 %%rd2, %%r2, %d; add.u64 %%rd0, %%rd0, %%rd2; mul.wide.u32 %%rd2, %%r2, %d; "
          "add.u64 %%rd1, %%rd1, %%rd2;\n",
          SHARED, LANES * COLUMNS * 4);
    WRITE(t,
          "shl.b32 %%r5, %%r1, 4; add.u32 %%r5, %%r5, 1024;\n"
          "FILL: cvt.u64.u32 %%rd3, %%r5; add.u64 %%rd3, %%rd3, %%rd0; add.u32 %%r6, %%r3, %%r5;\n"
          "ld.global.v4.u32 {%%r8, %%r9, %%r10, %%r11}, [%%rd3]; st.shared.v4.u32 [%%r6], {%%r8, %%r9, "
          "%%r10, %%r11};\n"
          "add.u32 %%r5, %%r5, %d; setp.lt.u32 %%p1, %%r5, %d; @%%p1 bra FILL;\n"
          "setp.ne.u32 %%p2, %%r4, 0; @%%p2 bra ALLOCATED;\n"
          "tcgen05.alloc.cta_group::%d.sync.aligned.shared::cta.b32 [sm + 8], 512;\n"
          "setp.ne.u32 %%p3, %%r1, 0; @!%%p3 mbarrier.init.shared.b64 [sm], 1;\n"
          "ALLOCATED: fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0; ld.shared.u32 "
          "%%t0, [sm + 8];\n"
          "shl.b32 %%r12, %%r4, 21; add.u32 %%t1, %%t0, %%r12; mul.wide.u32 %%rd4, %%r1, %d; "
          "add.u64 %%rd4, %%rd4, %%rd1;\n",
          16 * THREADS, SHARED, group, COLUMNS * 4);
    for (int c = 0; c < COLUMNS; c += 32) {
        for (int i = 0; i < 32; i++)
            WRITE(t, "ld.global.u32 %%v%d, [%%rd4 + %d];\n", i, 4 * (c + i));
        WRITE(t, "add.u32 %%r13, %%t1, %d; tcgen05.st.sync.aligned.32x32b.x32.b32 [%%r13], {", c);
        for (int i = 0; i < 32; i++)
            WRITE(t, "%s%%v%d", i ? ", " : "", i);
        WRITE(t, "};\n");
    }
    WRITE(
        t,
        "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; "
        "tcgen05.fence::after_thread_sync;\n%s\n"
        "or.b32 %%r14, %%r1, %%r2; setp.ne.u32 %%p4, %%r14, 0; @%%p4 bra DONE;\n%s\n"
        "mov.u16 %%h0, 3; tcgen05.commit.cta_group::%d.mbarrier::arrive::one.shared::cluster%s.b64 [sm]%s;\n"
        "DONE: mbarrier.try_wait.parity.shared.b64 %%p5, [sm], 0; @!%%p5 bra DONE;\n"
        "tcgen05.fence::after_thread_sync;\n",
        all, product, group, group == 2 ? ".multicast::cluster" : "", group == 2 ? ", %h0" : "");
    for (int c = 0; c < COLUMNS; c += 32) {
        WRITE(t, "add.u32 %%r13, %%t1, %d; tcgen05.ld.sync.aligned.32x32b.x32.b32 {", c);
        for (int i = 0; i < 32; i++)
            WRITE(t, "%s%%v%d", i ? ", " : "", i);
        WRITE(t, "}, [%%r13]; tcgen05.wait::ld.sync.aligned;\n");
        for (int i = 0; i < 32; i++)
            WRITE(t, "st.global.u32 [%%rd4 + %d], %%v%d;\n", 4 * (c + i), i);
    }
    WRITE(t,
          "tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
          "@%%p2 bra END; tcgen05.fence::after_thread_sync; tcgen05.dealloc.cta_group::%d.sync.aligned.b32 "
          "%%t0, 512;\n"
          "tcgen05.relinquish_alloc_permit.cta_group::%d.sync.aligned;\nEND: ret;\n}\n",
          group, group);
}

/* Runs it; the job's tensor memory becomes what the kernel leaves. Returns what went wrong, and the row of the report. */
static const char *run(job *j, const char *sm, int group, const char *all, const char *product, uint64_t seed,
                       unsigned checks, char *row)
{
    static char message[1024];
    const ptxvm_config config = {.sm = sm, .threads = 1, .seed = seed, .checks = checks};
    const ptxvm_launch_config launch = {
        .grid = {(uint32_t)group, 1, 1}, .block = {THREADS, 1, 1}, .shared_bytes = SHARED};
    struct {
        ptxvm_address shared, tmem;
        uint64_t a, b;
        uint32_t id, adds;
    } params = {.a = j->a, .b = j->b, .id = j->idesc, .adds = j->adds};
    text *t = calloc(1, sizeof *t);
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    write_kernel(t, sm, group, all, product);
    if (t->length >= sizeof t->at || ptxvm_create(&config, &vm))
        return "no device";
    bool ok = !ptxvm_module_load(vm, t->at, t->length, &module) &&
              !ptxvm_module_kernel(module, "k", &kernel) &&
              !ptxvm_alloc(vm, sizeof j->shared, &params.shared) &&
              !ptxvm_alloc(vm, sizeof j->tmem, &params.tmem) &&
              !ptxvm_write(vm, params.shared, j->shared, sizeof j->shared) &&
              !ptxvm_write(vm, params.tmem, j->tmem, sizeof j->tmem) &&
              !ptxvm_launch(vm, kernel, &launch, &params, sizeof params) &&
              !ptxvm_read(vm, j->tmem, params.tmem, sizeof j->tmem);
    snprintf(message, sizeof message, "%s", ok ? "" : ptxvm_last_error(vm));
    const ptxvm_report *report = ptxvm_last_report(vm);
    if (row)
        snprintf(row, 128, "%s", ok && report->n_tensor ? report->tensor[0].what : "");
    ptxvm_destroy(vm);
    free(t);
    return message;
}

/* ---- Matrices in shared memory ---- */

typedef struct place {
    int swizzle; /* bytes; 0 none; 129: of 128 bytes, in units of 32 */
    bool transposed;
    uint32_t at, leading, stride;
} place;

/* As CUTLASS writes the layouts (mma_sm100_desc), in bytes: byte `byte` of the 32 of line l, or element l of depth k. */
static uint32_t swizzled(const place *p, uint32_t at)
{
    if (p->swizzle == 129)
        return at ^ (at >> 7 & 3) << 5;
    uint32_t rows = p->swizzle == 128 ? 7 : p->swizzle == 64 ? 3 : p->swizzle == 32 ? 1 : 0;
    return at ^ (at >> 7 & rows) << 4;
}

static uint32_t byte_of_line(const place *p, int l, int byte)
{
    uint32_t width = p->swizzle ? (uint32_t)p->swizzle : 16, piece = (uint32_t)byte / 16;
    uint32_t at =
        (uint32_t)l % 8 * width + (uint32_t)l / 8 * p->stride + piece * (p->swizzle ? 16 : p->leading);
    return swizzled(p, p->at + at + (uint32_t)byte % 16);
}

static uint32_t byte_of_depth(const place *p, int l, int k, int element_bytes)
{
    uint32_t per = 16 / (uint32_t)element_bytes, piece = (uint32_t)l / per, depth = (uint32_t)k;
    uint32_t width = p->swizzle ? (uint32_t)p->swizzle / 32 * 32 : 16, across = width / 16,
             rows = p->swizzle == 129 ? 4 : 8;
    uint32_t at = !p->swizzle ? piece * p->stride + depth % 8 * 16 + depth / 8 * p->leading
                              : piece % across * 16 + piece / across * p->leading + depth % rows * width +
                                    depth / rows * p->stride;
    return swizzled(p, p->at + at + (uint32_t)l % per * (uint32_t)element_bytes);
}

static uint64_t descriptor_of(const place *p)
{
    uint64_t mode = p->swizzle == 129   ? 1
                    : p->swizzle == 128 ? 2
                    : p->swizzle == 64  ? 4
                    : p->swizzle == 32  ? 6
                                        : 0;
    return (uint64_t)p->at >> 4 | (uint64_t)(p->leading >> 4) << 16 | (uint64_t)(p->stride >> 4) << 32 |
           UINT64_C(1) << 46 | mode << 61;
}

/* ---- Elements: small numbers, whose sums every model gives exactly ---- */

static uint32_t encode(pvm_type type, int value)
{
    static const uint32_t f16[] = {0, 0x3C00, 0x4000, 0x4200}, bf16[] = {0, 0x3F80, 0x4000, 0x4040},
                          f32[] = {0, 0x3F800000, 0x40000000, 0x40400000}, e4m3[] = {0, 0x38, 0x40, 0x44},
                          e5m2[] = {0, 0x3C, 0x40, 0x42}, e2m3[] = {0, 0x08, 0x10, 0x14},
                          e3m2[] = {0, 0x0C, 0x10, 0x12}, e2m1[] = {0, 2, 4, 5};
    uint32_t m = (uint32_t)abs(value), sign = value < 0;
    switch (type) {
    case T_F16:
        return f16[m] | sign << 15;
    case T_BF16:
        return bf16[m] | sign << 15;
    case T_TF32:
        return f32[m] | sign << 31;
    case T_E4M3:
        return e4m3[m] | sign << 7;
    case T_E5M2:
        return e5m2[m] | sign << 7;
    case T_E2M3:
        return e2m3[m] | sign << 5;
    case T_E3M2:
        return e3m2[m] | sign << 5;
    case T_E2M1:
        return e2m1[m] | sign << 3;
    case T_U8:
        return m * 80;
    default:
        return (uint32_t)value * 40 & 0xFF;
    }
}

static int value_of(pvm_type type, int value)
{
    return type == T_U8 ? abs(value) * 80 : type == T_S8 ? value * 40 : value;
}

static int bits_of(pvm_type type)
{
    switch (type) {
    case T_TF32:
        return 32;
    case T_F16:
    case T_BF16:
        return 16;
    case T_E2M3:
    case T_E3M2:
        return 6;
    case T_E2M1:
        return 4;
    default:
        return 8;
    }
}

static int element(int i, int k, int salt)
{
    uint32_t x = (uint32_t)(i * 733 + k * 41 + salt) * 2654435761u;
    return (int)(x >> 13) % 7 - 3;
}

static int a_of(int row, int k)
{
    return element(row, k, 5);
}

static int b_of(int column, int k)
{
    return element(column, k, 77);
}

static int d_of(int row, int column)
{
    return (row * 5 + column * 3) % 29 - 14;
}

/* ---- Cases ---- */

typedef struct mma_case {
    const char *name;
    const char *kind; /* "f16" */
    pvm_type d, a, b;
    int group, m, n, k;
    bool a_in_tmem, adds;
    place pa, pb;
    const char *more; /* modifiers */
    int scales, scale_a_id, scale_b_id;
    bool ue4m3, negates_a, negates_b, saturates, masks;
    int scale_d;
    const char *sm; /* null: sm_100a */
} mma_case;

#define K_MAJOR(sw, at_)                                                                                     \
    {                                                                                                        \
        .swizzle = sw, .at = at_, .leading = sw ? 16 : 4096, .stride = sw ? 8 * sw : 128                     \
    }
#define MN_MAJOR(sw, at_)                                                                                    \
    {                                                                                                        \
        .swizzle = sw, .transposed = true, .at = at_, .leading = 4096,                                       \
        .stride = sw == 129 ? 512                                                                            \
                  : sw      ? 8 * sw                                                                         \
                            : 128                                                                            \
    }
#define AK(sw)  K_MAJOR(sw, A_AT)
#define BK(sw)  K_MAJOR(sw, B_AT)
#define AMN(sw) MN_MAJOR(sw, A_AT)
#define BMN(sw) MN_MAJOR(sw, B_AT)
#define F16     "f16", T_F32, T_F16, T_F16
#define TF32    "tf32", T_F32, T_TF32, T_TF32
#define MXF8    "mxf8f6f4", T_F32
#define MXF4    "mxf4", T_F32, T_E2M1, T_E2M1
#define NVF4    "mxf4nvf4", T_F32, T_E2M1, T_E2M1
#define PLAIN   .more = NULL /* nothing else */

/* clang-format off */
static const mma_case Products[] = {
    {"f16_64x8",           F16, 1,  64,   8, 16, false, true,  AK(128), BK(128), PLAIN},
    {"f16_64x256",         F16, 1,  64, 256, 16, false, true,  AK(128), BK(128), PLAIN},
    {"f16_128x256",        F16, 1, 128, 256, 16, false, true,  AK(128), BK(128), PLAIN},
    {"f16_128x24_no_d",    F16, 1, 128,  24, 16, false, false, AK(64),  BK(32), PLAIN},
    {"f16_no_swizzle",     F16, 1, 128,  64, 16, false, true,  AK(0),   BK(0), PLAIN},
    {"f16_to_f16",         "f16", T_F16, T_F16, T_F16, 1, 128, 64, 16, false, true, AK(128), BK(64), PLAIN},
    {"bf16",               "f16", T_F32, T_BF16, T_BF16, 1, 64, 64, 16, false, true, AK(32), BK(128), PLAIN},
    {"f16_bf16",           "f16", T_F32, T_F16, T_BF16, 1, 64, 64, 16, false, true, AK(32), BK(128), PLAIN},
    {"f16_negated_a",      F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .negates_a = true},
    {"f16_negated_both",   F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .negates_a = true, .negates_b = true},
    {"f16_mn_a",           F16, 1, 128,  64, 16, false, true,  AMN(128), BK(128), PLAIN},
    {"f16_mn_b",           F16, 1, 128,  64, 16, false, true,  AK(128), BMN(128), PLAIN},
    {"f16_mn_both_64",     F16, 1,  64,  64, 16, false, true,  AMN(64), BMN(64), PLAIN},
    {"f16_mn_both_32",     F16, 1,  64,  64, 16, false, true,  AMN(32), BMN(32), PLAIN},
    {"f16_mn_both_0",      F16, 1, 128, 128, 16, false, true,  AMN(0),  BMN(0), PLAIN},
    {"f16_a_in_tmem_128",  F16, 1, 128,  64, 16, true,  true,  AK(0),   BK(128), PLAIN},
    {"f16_a_in_tmem_64",   F16, 1,  64,  64, 16, true,  true,  AK(0),   BMN(128), PLAIN},
    {"f16_collector",      F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .more = ".collector::a::fill"},
    {"f16_masked",         F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .masks = true},
    {"f16_masked_64",      F16, 1,  64,  64, 16, false, true,  AK(128), BK(128), .masks = true},
    {"f16_scale_d",        F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .scale_d = 2},
    {"f16_scale_d_masked", F16, 1, 128,  64, 16, true,  true,  AK(128), BK(128), .scale_d = 1, .masks = true},
    {"tf32",               TF32, 1, 128, 64,  8, false, true,  AK(128), BK(64), PLAIN},
    {"tf32_a_in_tmem",     TF32, 1, 64, 128,  8, true,  true,  AK(0),   BK(64), PLAIN},
    {"tf32_mn_both",       TF32, 1, 128, 64,  8, false, true,  AMN(128), BMN(64), PLAIN},
    {"tf32_mn_by_32",      TF32, 1, 128, 64,  8, false, true,  AMN(129), BMN(129), PLAIN},
    {"e4m3",               "f8f6f4", T_F32, T_E4M3, T_E4M3, 1, 128, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"e5m2_e4m3_f16",      "f8f6f4", T_F16, T_E5M2, T_E4M3, 1, 64, 64, 32, false, true, AK(64), BK(128), PLAIN},
    {"e4m3_mn_both",       "f8f6f4", T_F32, T_E4M3, T_E4M3, 1, 128, 64, 32, false, true, AMN(128), BMN(32), PLAIN},
    {"e2m1_e4m3",          "f8f6f4", T_F32, T_E2M1, T_E4M3, 1, 128, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"e4m3_e2m1_tmem",     "f8f6f4", T_F32, T_E4M3, T_E2M1, 1, 128, 64, 32, true, true, AK(128), BK(128), PLAIN},
    {"e2m3_e3m2",          "f8f6f4", T_F32, T_E2M3, T_E3M2, 1, 128, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"e3m2_tmem_e2m3",     "f8f6f4", T_F32, T_E3M2, T_E2M3, 1, 64, 64, 32, true, true, AK(128), BK(32), .negates_a = true},
    {"e2m1_tmem",          "f8f6f4", T_F32, T_E2M1, T_E5M2, 1, 64, 64, 32, true, true, AK(128), BK(32), PLAIN},
    {"s8",                 "i8", T_S32, T_S8, T_S8, 1, 128, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"u8_s8",              "i8", T_S32, T_U8, T_S8, 1, 64, 24, 32, false, true, AK(64), BK(128), PLAIN},
    {"s8_tmem_u8",         "i8", T_S32, T_S8, T_U8, 1, 128, 256, 32, true, false, AK(64), BMN(128), PLAIN},
    {"s8_saturated",       "i8", T_S32, T_S8, T_S8, 1, 128, 16, 32, false, true, AK(128), BK(128), .saturates = true},
    {"mxf8_e4m3",          MXF8, T_E4M3, T_E4M3, 1, 128, 64, 32, false, true, AK(128), BK(128), .scales = 1},
    {"mxf8_e2m1_byte_3",   MXF8, T_E2M1, T_E5M2, 1, 128, 64, 32, false, true, AK(128), BK(128), .scales = 1, .scale_a_id = 3, .scale_b_id = 1},
    {"mxf8_tmem_e3m2",     MXF8, T_E5M2, T_E3M2, 1, 128, 40, 32, true, true, AK(128), BK(128), .more = ".block32", .scales = 1},
    {"mxf4",               MXF4, 1, 128, 64, 64, false, true, AK(128), BK(128), .scales = 2},
    {"mxf4_upper",         MXF4, 1, 128, 256, 64, false, true, AK(128), BK(64), .more = ".scale_vec::2X", .scales = 2, .scale_a_id = 2, .scale_b_id = 2},
    {"nvf4",               NVF4, 1, 128, 128, 64, false, true, AK(128), BK(128), .more = ".block16", .scales = 4, .ue4m3 = true},
    {"nvf4_tmem",          NVF4, 1, 128, 8, 64, true, false, AK(128), BK(128), .more = ".scale_vec::4X", .scales = 4, .ue4m3 = true},
    {"nvf4_ue8m0_block32", NVF4, 1, 128, 64, 64, false, true, AK(128), BK(128), .more = ".block32", .scales = 2},
    {"pair_256x256",       F16, 2, 256, 256, 16, false, true,  AK(128), BK(128), PLAIN},
    {"pair_256x32_mn",     F16, 2, 256,  32, 16, false, true,  AMN(128), BMN(32), PLAIN},
    {"pair_128x64",        F16, 2, 128,  64, 16, false, true,  AK(128), BK(128), PLAIN},
    {"pair_128x64_masked", F16, 2, 128,  64, 16, false, true,  AK(128), BK(128), .masks = true},
    {"pair_256_tmem",      F16, 2, 256,  64, 16, true,  true,  AK(128), BK(128), PLAIN},
    {"pair_128_tmem",      F16, 2, 128,  64, 16, true,  true,  AK(128), BK(128), PLAIN},
    {"pair_256_e4m3",      "f8f6f4", T_F32, T_E4M3, T_E2M1, 2, 256, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"pair_128_s8",        "i8", T_S32, T_S8, T_S8, 2, 128, 64, 32, false, true, AK(128), BK(128), PLAIN},
    {"pair_256_mxf8",      MXF8, T_E4M3, T_E4M3, 2, 256, 64, 32, false, true, AK(128), BK(128), .scales = 1},
    {"pair_256_nvf4",      NVF4, 2, 256, 128, 64, false, true, AK(128), BK(128), .more = ".block16", .scales = 4, .ue4m3 = true},
    {"pair_128_mxf4",      MXF4, 2, 128, 128, 64, false, true, AK(128), BK(128), .scales = 2},
    {"f16_on_sm_103",      F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .sm = "sm_103a"},
    {"f16_on_sm_110",      F16, 1, 128,  64, 16, false, true,  AK(128), BK(128), .sm = "sm_110a"},
};
/* clang-format on */

/* ---- Putting them into a job ---- */

/* The 32 bytes of a line, from its elements; of 6 and 4 bits: 16 of them in 16 bytes, but all of mxf4. */
static void line_bytes(const mma_case *c, pvm_type type, bool in_tmem, int line, int (*of)(int, int),
                       uint8_t bytes[32])
{
    int bits = bits_of(type);
    bool narrow = bits < 8 && c->k == 32;
    memset(bytes, 0, 32);
    for (int k = 0; k < c->k; k++) {
        uint32_t x = encode(type, of(line, k));
        int at = narrow && in_tmem ? 8 * k + (bits == 4 ? 2 : 0)
                 : narrow          ? k / 16 * 128 + k % 16 * bits
                                   : k * bits;
        for (int b = 0; b < bits; b++)
            bytes[(at + b) / 8] |= (uint8_t)((x >> b & 1) << (at + b) % 8);
    }
}

static void put_line(job *j, const mma_case *c, bool is_b, int block, int line, int number)
{
    const place *p = is_b ? &c->pb : &c->pa;
    pvm_type type = is_b ? c->b : c->a;
    uint8_t bytes[32];
    line_bytes(c, type, false, number, is_b ? b_of : a_of, bytes);
    int size = bits_of(type) / 8;
    for (int i = 0; i < 32; i++)
        j->shared[block][p->transposed ? byte_of_depth(p, line, i / size, size) + (uint32_t)(i % size)
                                       : byte_of_line(p, line, i)] = bytes[i];
}

/* The lane of row r of a block's rows, for columns of D in the lower or upper half. */
static int lane_of(const mma_case *c, int row, bool upper)
{
    int rows = c->m / c->group;
    if (rows == 128)
        return row;
    return c->group == 2 ? row + 64 * upper : row / 16 * 32 + row % 16;
}

static uint32_t *d_at(job *j, const mma_case *c, int row, int column)
{
    int rows = c->m / c->group;
    bool halves = c->group == 2 && rows == 64, upper = halves && column >= c->n / 2;
    return &j->tmem[row / rows][lane_of(c, row % rows, upper)]
                   [D_COLUMN + (halves ? column % (c->n / 2) : column)];
}

static void put_a_in_tmem(job *j, const mma_case *c, int row)
{
    int rows = c->m / c->group;
    uint8_t bytes[32];
    line_bytes(c, c->a, true, row, a_of, bytes);
    for (int upper = 0; upper <= (c->group == 2 && rows == 64); upper++)
        memcpy(&j->tmem[row / rows][lane_of(c, row % rows, upper)][A_COLUMN], bytes, 32);
}

/* A scale: its byte and its value. */
static uint8_t scale_byte(const mma_case *c, int line, int block, int salt, double *value)
{
    int i = (line * 7 + block * 3 + salt) % 3;
    *value = c->ue4m3 ? 1.0 + 0.5 * i : ldexp(1.0, i - 1);
    return (uint8_t)(c->ue4m3 ? 0x38 + 4 * i : 126 + i);
}

static void put_scales(job *j, const mma_case *c)
{
    int rows = c->m / c->group;
    bool halves = c->group == 2 && rows == 64;
    double value;
    for (int block = 0; block < c->group; block++)
        for (int lane = 0; lane < LANES; lane++) {
            bool upper = halves && lane >= 64;
            for (int column = 0; column < rows / 32; column++)
                for (int s = 0; s < c->scales; s++)
                    ((uint8_t *)&j->tmem[block][lane][SFA_COLUMN + column])[(s + c->scale_a_id) % 4] =
                        scale_byte(c, block * rows + column * 32 + lane % 32, s, 1, &value);
            for (int column = 0; column < (halves ? c->n / 2 : c->n) / 32 + 1; column++)
                for (int s = 0; s < c->scales; s++)
                    ((uint8_t *)&j->tmem[block][lane][SFB_COLUMN + column])[(s + c->scale_b_id) % 4] =
                        scale_byte(c, column * 32 + lane % 32 + upper * c->n / 2, s, 2, &value);
        }
}

static uint32_t result_bits(pvm_type type, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (type == T_S32)
        return (uint32_t)(int)value;
    if (type == T_F32)
        return bits;
    int e = (int)(bits >> 23 & 0xFF) - 127 + 15; /* exact in f16, and normal or zero */
    return value == 0 ? 0 : (bits >> 16 & 0x8000) | (uint32_t)e << 10 | (bits >> 13 & 0x3FF);
}

/* Which rows of D stay: the masks have these words, for each block 4. */
static uint32_t mask_word(int i)
{
    return 0x10F0A5u * (uint32_t)(i + 1);
}

static uint32_t instruction_descriptor(const mma_case *c)
{
    static const struct {
        pvm_type type;
        uint32_t code;
    } codes[] = {{T_F16, 0},  {T_BF16, 1}, {T_TF32, 2}, {T_E4M3, 0}, {T_E5M2, 1},
                 {T_E2M3, 3}, {T_E3M2, 4}, {T_E2M1, 5}, {T_U8, 0},   {T_S8, 1}};
    uint32_t a = 0, b = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        a = codes[i].type == c->a ? codes[i].code : a;
        b = codes[i].type == c->b ? codes[i].code : b;
    }
    if (c->k == 64)
        a = b = 1;
    uint32_t id = a << 7 | b << 10 | (uint32_t)c->negates_a << 13 | (uint32_t)c->negates_b << 14 |
                  (uint32_t)c->pa.transposed << 15 | (uint32_t)c->pb.transposed << 16 |
                  (uint32_t)c->n / 8 << 17 | (uint32_t)c->m / 16 << 24;
    if (c->scales)
        return id | (uint32_t)c->scale_b_id << 4 | (uint32_t)!c->ue4m3 << 23 | (uint32_t)c->scale_a_id << 29;
    return id | (uint32_t)c->saturates << 3 | (c->d == T_F32 ? 1u : c->d == T_S32 ? 2u : 0u) << 4;
}

static void product_of(const mma_case *c, text *t)
{
    t->length = 0;
    for (int i = 0; c->masks && i < 4 * c->group; i++)
        WRITE(t, "mov.u32 %%m%d, 0x%x;", i, mask_word(i));
    WRITE(t, "add.u32 %%t2, %%t0, %d; add.u32 %%t3, %%t0, %d; add.u32 %%t4, %%t0, %d;\n", A_COLUMN,
          SFA_COLUMN, SFB_COLUMN);
    WRITE(t, "tcgen05.mma.cta_group::%d.kind::%s%s%s [%%t0], %s, %%db, %%id", c->group, c->kind,
          c->scales ? ".block_scale" : "", c->more ? c->more : "", c->a_in_tmem ? "[%t2]" : "%da");
    if (c->scales)
        WRITE(t, ", [%%t3], [%%t4]");
    for (int i = 0; c->masks && i < 4 * c->group; i++)
        WRITE(t, "%s%%m%d%s", i ? ", " : ", {", i, i == 4 * c->group - 1 ? "}" : "");
    WRITE(t, ", %%p0");
    if (c->scale_d)
        WRITE(t, ", %d", c->scale_d);
    WRITE(t, ";");
}

static job *new_job(const mma_case *c)
{
    job *j = calloc(1, sizeof *j);
    memset(j->shared, 0x77, sizeof j->shared);
    memset(j->tmem, 0x5A, sizeof j->tmem);
    j->a = descriptor_of(&c->pa);
    j->b = descriptor_of(&c->pb);
    j->idesc = instruction_descriptor(c);
    j->adds = c->adds;
    for (int row = 0; row < c->m; row++)
        if (c->a_in_tmem)
            put_a_in_tmem(j, c, row);
        else
            put_line(j, c, false, row / (c->m / c->group), row % (c->m / c->group), row);
    for (int column = 0; column < c->n; column++)
        put_line(j, c, true, column / (c->n / c->group), column % (c->n / c->group), column);
    for (int row = 0; row < c->m; row++)
        for (int column = 0; column < c->n; column++)
            *d_at(j, c, row, column) =
                result_bits(c->d, c->scale_d ? d_of(row, column) * 4 : d_of(row, column));
    if (c->scales)
        put_scales(j, c);
    return j;
}

static bool stays(const mma_case *c, int row, int column)
{
    int rows = c->m / c->group;
    bool upper = c->group == 2 && rows == 64 && column >= c->n / 2;
    int lane = lane_of(c, row % rows, upper);
    return c->masks && mask_word(row / rows * 4 + lane / 32) >> lane % 32 & 1;
}

static uint32_t expected(const mma_case *c, int row, int column)
{
    double start = c->scale_d ? d_of(row, column) * 4 : d_of(row, column), a_scale = 1, b_scale = 1;
    double sum = c->adds ? ldexp(start, -c->scale_d) : 0, sign = c->negates_a != c->negates_b ? -1 : 1;
    if (stays(c, row, column))
        return result_bits(c->d, start);
    for (int k = 0; k < c->k; k++) {
        if (c->scales) {
            scale_byte(c, row, k * c->scales / c->k, 1, &a_scale);
            scale_byte(c, column, k * c->scales / c->k, 2, &b_scale);
        }
        sum += sign * value_of(c->a, a_of(row, k)) * value_of(c->b, b_of(column, k)) * a_scale * b_scale;
    }
    return result_bits(c->d, sum);
}

TEST_ROWS(Tcgen05, Products, Products)
{
    const mma_case *c = &Products[index];
    text product;
    product_of(c, &product);
    for (uint64_t seed = 0; seed < 2; seed++) { /* it chooses when the product happens */
        job *j = new_job(c), *before = new_job(c);
        const char *wrong =
            run(j, c->sm ? c->sm : "sm_100a", c->group, "", product.at, seed, PTXVM_CHECK_ALL, NULL);
        CHECK_EQ_STR(wrong, "");
        for (int row = 0; !*wrong && row < c->m; row++)
            for (int column = 0; column < c->n; column++) {
                if (*d_at(j, c, row, column) != expected(c, row, column)) {
                    CHECK_EQ_U32(*d_at(j, c, row, column), expected(c, row, column));
                    FAIL("seed %d, row %d, column %d", (int)seed, row, column);
                    row = c->m;
                    break;
                }
                *d_at(before, c, row, column) = *d_at(j, c, row, column);
            }
        if (!*wrong)
            CHECK(memcmp(before->tmem, j->tmem, sizeof j->tmem / 2 * (size_t)c->group) ==
                  0); /* nothing else has changed */
        free(j);
        free(before);
    }
}

TEST_CASE(Tcgen05, TheReportHasTheModel)
{
    static const struct {
        const char *name, *row;
    } rows[] = {{"f16_64x8", "sm_100 tcgen05 f16, bf16: published"},
                {"f16_scale_d", "sm_100 tcgen05 f16, bf16: assumed"},
                {"pair_128x64", "sm_100 tcgen05 f16, bf16: assumed"},
                {"e4m3", "sm_100 tcgen05 f8f6f4: published"},
                {"e2m3_e3m2", "sm_100 tcgen05 f8f6f4: assumed"},
                {"mxf4", "sm_100/103/110 tcgen05 mxf4, mxf4nvf4 (as sm_120): assumed"},
                {"s8", "sm_100/110 tcgen05 i8: assumed"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const mma_case *c = Products;
        char row[128];
        text product;
        while (strcmp(c->name, rows[i].name))
            c++;
        product_of(c, &product);
        job *j = new_job(c);
        CHECK_EQ_STR(run(j, "sm_100a", c->group, "", product.at, 0, 0, row), "");
        CHECK_EQ_STR(row, rows[i].row);
        free(j);
    }
}

/* ---- Loads and stores: the layouts as CUTLASS writes them (copy_traits_sm100), as strides in bits ---- */

typedef struct shape_case {
    const char *name;
    int per; /* registers for each of .x1 .. */
    int threads[3][2],
        registers[3][2]; /* sizes and strides; of a stride, -n is n rows, and n / 1000 row widths / 8 */
    int row;             /* bits of a row for each of .x1 .. */
} shape_case;

/* Strides of rows are written as 1000000 * rows. */
#define ROWS(n) (1000000 * (n))
static const shape_case Shapes[] = {
    {"32x32b", 1, {{32, ROWS(1)}}, {{128, 32}}, 32},
    {"16x64b", 1, {{2, ROWS(8)}, {2, 32}, {8, ROWS(1)}}, {{128, 64}}, 64},
    {"16x128b", 2, {{4, 32}, {8, ROWS(1)}}, {{2, ROWS(8)}, {64, 128}}, 128},
    {"16x256b", 4, {{4, 64}, {8, ROWS(1)}}, {{2, 32}, {2, ROWS(8)}, {32, 256}}, 256},
};

static void locate(const int modes[3][2], int index, int *row, int *bit)
{
    for (int m = 0; m < 3 && modes[m][0]; m++) {
        int stride = modes[m][1], i = index % modes[m][0];
        *row += stride >= ROWS(1) ? stride / ROWS(1) * i : 0;
        *bit += stride < ROWS(1) ? stride * i : 0;
        index /= modes[m][0];
    }
}

static void write_registers(text *t, int n)
{
    for (int i = 0; i < n; i++)
        WRITE(t, "%s%%w%d", i ? ", " : "{", i);
    WRITE(t, "}");
}

static job *numbered_job(void)
{
    job *j = calloc(1, sizeof *j);
    for (int lane = 0; lane < LANES; lane++)
        for (int c = 0; c < COLUMNS; c++)
            j->tmem[0][lane][c] = (uint32_t)(lane << 16 | (c * 2 + 1)) * 2654435761u;
    return j;
}

/* The same fragment, loaded and then stored to lanes as 32x32b, or the other way round. */
TEST_ROWS(Tcgen05, Fragments, Shapes)
{
    const shape_case *s = &Shapes[index];
    for (int repeats = 1; repeats * s->per <= 128; repeats *= repeats < 2 ? 2 : 8)
        for (int mode = 0; mode < 4; mode++) { /* loads and stores, plain and packed */
            int n = repeats * s->per, half = index && mode % 2 ? 16 : 0;
            bool stores = mode & 1, packed = mode & 2;
            text t = {.length = 0};
            if (packed && n * s->row / s->per / 16 > 256)
                continue;
            WRITE(&t, "add.u32 %%t2, %%t1, %d; add.u32 %%t3, %%t1, 256;\n", half << 16);
            WRITE(&t, "tcgen05.ld.sync.aligned.%s.x%d%s.b32 ", stores ? "32x32b" : s->name,
                  stores ? n : repeats, packed && !stores ? ".pack::16b" : "");
            write_registers(&t, n);
            WRITE(&t, ", [%s]; tcgen05.wait::ld.sync.aligned;\n", stores ? "%t1" : "%t2");
            if (stores && half)
                WRITE(&t, "add.u32 %%t3, %%t2, 256;\n");
            WRITE(&t, "tcgen05.st.sync.aligned.%s.x%d%s.b32 [%%t3], ", stores ? s->name : "32x32b",
                  stores ? repeats : n, packed && stores ? ".unpack::16b" : "");
            write_registers(&t, n);
            WRITE(&t, "; tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n");
            job *j = numbered_job(), *before = numbered_job();
            CHECK_EQ_STR(run(j, "sm_100a", 1, t.at, "", (uint64_t)mode, PTXVM_CHECK_ALL, NULL), "");
            for (int warp = 0; warp < 4; warp++)
                for (int thread = 0; thread < 32; thread++)
                    for (int r = 0; r < n; r++) {
                        int row = 32 * warp + half, bit = 0;
                        locate(s->threads, thread, &row, &bit);
                        locate(s->registers, r, &row, &bit);
                        int c = packed ? bit / 16 : bit / 32;
                        const uint32_t *from = &before->tmem[0][row][c];
                        uint32_t whole = packed ? (from[0] & 0xFFFF) | from[1] << 16 : from[0];
                        uint32_t value = before->tmem[0][32 * warp + thread][r];
                        if (!stores)
                            before->tmem[0][32 * warp + thread][256 + r] = whole;
                        else if (packed) {
                            before->tmem[0][row][256 + c] = value & 0xFFFF;
                            before->tmem[0][row][257 + c] = value >> 16;
                        } else
                            before->tmem[0][row][256 + c] = value;
                    }
            CHECK_EQ_MEM(j->tmem[0], before->tmem[0], sizeof j->tmem[0]);
            free(j);
            free(before);
        }
}

/* .16x32bx2: lanes 0 to 15 from the address, lanes 16 to 31 the same rows, `split` columns further. */
TEST_CASE(Tcgen05, FragmentsOfTwoParts)
{
    job *j = numbered_job(), *before = numbered_job();
    CHECK_EQ_STR(
        run(j, "sm_100a", 1,
            "tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%w0, %w1}, [%t1], 40; tcgen05.wait::ld.sync.aligned;\n"
            "add.u32 %t3, %t1, 0x100100; tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%t3], 8, {%w0, %w1};\n"
            "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n",
            "", 0, PTXVM_CHECK_ALL, NULL),
        "");
    for (int warp = 0; warp < 4; warp++)
        for (int row = 0; row < 16; row++)
            for (int r = 0; r < 2; r++) {
                before->tmem[0][32 * warp + 16 + row][256 + r] = before->tmem[0][32 * warp + row][r];
                before->tmem[0][32 * warp + 16 + row][264 + r] = before->tmem[0][32 * warp + row][40 + r];
            }
    CHECK_EQ_MEM(j->tmem[0], before->tmem[0], sizeof j->tmem[0]);
    free(j);
    free(before);
}

typedef struct reduce_case {
    const char *name, *words;
    uint32_t in[4], out;
} reduce_case;

static const reduce_case Reductions[] = {
    {"min_u32", "min.u32", {5, 0x80000000, 7, 6}, 5},
    {"max_u32", "max.u32", {5, 0x80000000, 7, 6}, 0x80000000},
    {"min_s32", "min.s32", {5, 0x80000000, 7, 6}, 0x80000000},
    {"max_s32", "max.s32", {5, 0x80000000, 7, 6}, 7},
    {"min_f32", "min.f32", {0x3F800000, 0xBF800000, 0x7FC00000, 0x40000000}, 0xBF800000},
    {"max_f32_zeros", "max.f32", {0x80000000, 0, 0x80000000, 0xBF800000}, 0},
    {"min_abs", "min.abs.f32", {0xC0000000, 0x40400000, 0xBF800000, 0x40800000}, 0x3F800000},
    {"max_nan", "max.NaN.f32", {0x3F800000, 0xFFC00001, 0, 0}, 0x7FFFFFFF},
    {"all_nan", "min.f32", {0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7FFFFFFF}, 0x7FFFFFFF},
};

TEST_ROWS(Tcgen05, Reductions, Reductions)
{
    const reduce_case *c = &Reductions[index];
    const char *type = strrchr(c->words, '.');
    text t = {.length = 0};
    job *j = calloc(1, sizeof *j);
    for (int lane = 0; lane < LANES; lane++)
        memcpy(j->tmem[0][lane], c->in, sizeof c->in);
    if (strcmp(type, ".f32") == 0)
        WRITE(&t,
              "{ .reg .f32 %%f<5>; tcgen05.ld.red.sync.aligned.32x32b.x4.%s {%%f0, %%f1, %%f2, %%f3}, %%f4, "
              "[%%t1]; "
              "tcgen05.wait::ld.sync.aligned; mov.b32 %%w0, %%f4; }\n",
              c->words);
    else
        WRITE(&t,
              "tcgen05.ld.red.sync.aligned.32x32b.x4.%s {%%w1, %%w2, %%w3, %%w4}, %%w0, [%%t1]; "
              "tcgen05.wait::ld.sync.aligned;\n",
              c->words);
    WRITE(&t, "add.u32 %%t3, %%t1, 8; tcgen05.st.sync.aligned.32x32b.x1.b32 [%%t3], {%%w0}; "
              "tcgen05.wait::st.sync.aligned;\n");
    CHECK_EQ_STR(run(j, "sm_103a", 1, t.at, "", 0, PTXVM_CHECK_ALL, NULL), "");
    CHECK_EQ_U32(j->tmem[0][77][8], c->out);
    CHECK_EQ_U32(j->tmem[0][77][1], c->in[1]);
    free(j);
}

/* ---- Copies and shifts ---- */

typedef struct copy_case {
    const char *name, *words;
    int group, rows, bytes; /* of a row */
    int lanes[4];           /* where row 0 goes; -1: nowhere */
    int step;
    int first[4];
    int narrow; /* bits of the elements that become bytes */
} copy_case;

static const copy_case Copies[] = {
    {"128x256b", "128x256b", 1, 128, 32, {0, -1, -1, -1}, 1, {0}, 0},
    {"128x128b", "128x128b", 1, 128, 16, {0, -1, -1, -1}, 1, {0}, 0},
    {"4x256b", "4x256b", 1, 4, 32, {0, -1, -1, -1}, 32, {0}, 0},
    {"64x128b_02_13", "64x128b.warpx2::02_13", 1, 64, 16, {0, 64, -1, -1}, 1, {0}, 0},
    {"64x128b_01_23", "64x128b.warpx2::01_23", 1, 32, 16, {0, 32, 64, 96}, 1, {0, 0, 32, 32}, 0},
    {"32x128b", "32x128b.warpx4", 1, 32, 16, {0, 32, 64, 96}, 1, {0}, 0},
    {"pair_32x128b", "32x128b.warpx4", 2, 32, 16, {0, 32, 64, 96}, 1, {0}, 0},
    {"from_6_bits", "128x256b.b8x16.b6x16_p32", 1, 128, 32, {0, -1, -1, -1}, 1, {0}, 6},
    {"from_4_bits", "32x128b.warpx4.b8x16.b4x16_p64", 1, 32, 16, {0, 32, 64, 96}, 1, {0}, 4},
};

static uint8_t copied_byte(const copy_case *c, const uint8_t *row, int i)
{
    if (!c->narrow)
        return row[i];
    int at = i % 16 * c->narrow, value = 0;
    for (int b = 0; b < c->narrow; b++)
        value |= (row[i / 16 * 16 + (at + b) / 8] >> (at + b) % 8 & 1) << b;
    return (uint8_t)(c->narrow == 4 ? value << 2 : value);
}

TEST_ROWS(Tcgen05, Copies, Copies)
{
    const copy_case *c = &Copies[index];
    const place p = {128, false, A_AT, 16, 1024};
    job *j = calloc(1, sizeof *j), *before = calloc(1, sizeof *before);
    text t = {.length = 0};
    for (int b = 0; b < 2; b++)
        for (int i = 1024; i < SHARED; i++)
            j->shared[b][i] = (uint8_t)((uint32_t)(i + 7 * b) * 2654435761u >> 21);
    memset(j->tmem, 0x33, sizeof j->tmem);
    memcpy(before, j, sizeof *j);
    j->a = descriptor_of(&p);
    WRITE(&t, "add.u32 %%t2, %%t0, 64; tcgen05.cp.cta_group::%d.%s [%%t2], %%da;", c->group, c->words);
    CHECK_EQ_STR(run(j, "sm_100a", c->group, "", t.at, (uint64_t)index, PTXVM_CHECK_ALL, NULL), "");
    for (int b = 0; b < c->group; b++)
        for (int part = 0; part < 4; part++)
            for (int row = 0; c->lanes[part] >= 0 && row < c->rows; row++) {
                uint8_t bytes[32];
                for (int i = 0; i < 32; i++)
                    bytes[i] = j->shared[b][byte_of_line(&p, c->first[part] + row, i)];
                for (int i = 0; i < c->bytes; i++)
                    ((uint8_t *)&before->tmem[b][c->lanes[part] + row * c->step][64])[i] =
                        copied_byte(c, bytes, i);
            }
    CHECK_EQ_MEM(j->tmem, before->tmem, sizeof j->tmem / 2 * (size_t)c->group);
    free(j);
    free(before);
}

/* Each of 31 rows gets the next one; what follows in the pipeline sees that. */
TEST_CASE(Tcgen05, ShiftsRows)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        job *j = numbered_job(), *before = numbered_job();
        CHECK_EQ_STR(run(j, "sm_100a", 1, "",
                         "add.u32 %t2, %t0, 0x200008; tcgen05.shift.cta_group::1.down [%t2]; "
                         "tcgen05.shift.cta_group::1.down [%t2];",
                         seed, PTXVM_CHECK_ALL, NULL),
                     "");
        for (int row = 32; row < 63; row++)
            for (int c = 8; c < 16; c++)
                before->tmem[0][row][c] = before->tmem[0][row < 62 ? row + 2 : 63][c];
        CHECK_EQ_MEM(j->tmem[0], before->tmem[0], sizeof j->tmem[0]);
        free(j);
        free(before);
    }
}

/* ---- What is found ---- */

#define MMA(d)       "tcgen05.mma.cta_group::1.kind::f16 [" d "], %da, %db, %id, %p0;\n"
#define COMMIT       "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [sm];\n"
#define LOAD(r)      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {" r "}, [%t1];\n"
#define STORE        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%t1], {%w0};\n"
#define WAIT_LD      "tcgen05.wait::ld.sync.aligned;\n"
#define WAIT_ST      "tcgen05.wait::st.sync.aligned;\n"
#define BEFORE       "tcgen05.fence::before_thread_sync;\n"
#define AFTER        "tcgen05.fence::after_thread_sync;\n"
#define ONLY_WARP(w) "setp.ne.u32 %p6, %r4, " w "; @%p6 bra SKIP;\n"

typedef struct misuse {
    const char *name, *all, *product;
    const char *error; /* a part of the message; null: all is well */
} misuse;

/* clang-format off */
static const misuse Uses[] = {
    {"products_in_a_row", "", MMA("%t0") MMA("%t0") MMA("%t0"), NULL},
    {"copy_before_a_product", "", "add.u32 %t2, %t0, 256; tcgen05.cp.cta_group::1.128x256b [%t2], %da;" MMA("%t0"), NULL},
    {"load_twice", LOAD("%w0") LOAD("%w1") WAIT_LD "add.u32 %w2, %w0, %w1;", "", NULL},
    {"store_then_load", "mov.u32 %w0, 7;" STORE WAIT_ST LOAD("%w1") WAIT_LD "add.u32 %w2, %w1, 1;" BEFORE "bar.sync 0;", AFTER MMA("%t0"), NULL},
    {"read_before_the_wait", LOAD("%w0") "add.u32 %w2, %w0, 1;", "", "add reads %w0, which the tcgen05.ld of line"},
    {"written_before_the_wait", LOAD("%w0") "mov.u32 %w0, 1;", "", "mov writes %w0, which the tcgen05.ld of line"},
    {"loaded_twice_into_one", LOAD("%w0") LOAD("%w0") WAIT_LD, "", "tcgen05 writes %w0, which the tcgen05.ld of line"},
    {"load_after_a_store", "mov.u32 %w0, 7;" STORE LOAD("%w1") WAIT_LD WAIT_ST, "",
        ", column 0 of tensor memory, which the tcgen05.st of line"},
    {"product_after_a_store", "mov.u32 %w0, 7;" STORE BEFORE "bar.sync 0;", AFTER MMA("%t0"), "may still write: tcgen05.wait::st must come first"},
    {"product_without_before", "mov.u32 %w0, 7;" STORE WAIT_ST "bar.sync 0;", AFTER MMA("%t0"), "a tcgen05.fence::before_thread_sync is missing"},
    {"product_without_after", "mov.u32 %w0, 7;" STORE WAIT_ST BEFORE "bar.sync 0;", MMA("%t0"), "a tcgen05.fence::after_thread_sync is missing"},
    {"product_without_a_barrier", "mov.u32 %w0, 7;" STORE WAIT_ST BEFORE, AFTER MMA("%t0"), "nothing orders that after the tcgen05.st of line"},
    {"operand_written", "", MMA("%t0") "st.shared.u32 [sm + 1024], %r1;", "which the tcgen05.mma of line"},
    {"copy_source_written", "", "add.u32 %t2, %t0, 256; tcgen05.cp.cta_group::1.128x256b [%t2], %da; st.shared.u32 [sm + 1024], %r1;",
        "which the tcgen05.cp of line"},
    {"no_proxy_fence", "mad.lo.u32 %r20, %r1, 4, %r3; st.shared.u32 [%r20 + 1024], %r1; bar.sync 0;", MMA("%t0"), "fence.proxy.async"},
    {"leaves_it_in_flight", ONLY_WARP("1") LOAD("%w0") "exit; SKIP:", "", "may still read: tcgen05.wait::ld must come first"},
    {"another_warps_lanes", "add.u32 %t2, %t1, 0x200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, [%t2];" WAIT_LD, "",
        "lanes 96 to 127 of tensor memory: warp 2 may access lanes 64 to 95, from their first"},
    {"lanes_by_their_place_in_the_quarter", "mov.u32 %w0, %r1;" STORE WAIT_ST "mov.u32 %t2, %t0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w1}, [%t2];" WAIT_LD
        "setp.ne.u32 %p6, %w1, %r1; @%p6 trap;", "", NULL},
    {"not_the_first_lane", "add.u32 %t2, %t1, 0x80000; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%w0}, [%t2];" WAIT_LD, "",
        "warp 2 may access lanes 64 to 95, from their first or 17th"},
    {"columns_outside", "add.u32 %t2, %t1, 511; tcgen05.ld.sync.aligned.32x32b.x2.b32 {%w0, %w1}, [%t2];" WAIT_LD, "",
        "columns 511 to 512 of tensor memory: not all of these columns are allocated"},
    {"lanes_outside", "", "add.u32 %t2, %t0, 0x600000;" MMA("%t2"), "d: lanes 128 to 143, columns 0 to 7 of tensor memory: there are lanes 0 to 127"},
    {"addresses_differ", "add.u32 %t1, %t1, %r1; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, [%t1];" WAIT_LD, "", "it must be the same in all lanes"},
    {"a_lane_is_missing", "setp.eq.u32 %p6, %r1, 3; @%p6 exit;" LOAD("%w0") WAIT_LD, "", "it needs all 32 threads of the warp: 0xfffffff7"},
    {"groups_mixed", "", "tcgen05.shift.cta_group::2.down [%t0];", "all tcgen05 instructions of a kernel must have the same"},
    {"constant", "", "and.b64 %da, %da, 0xFFFFBFFFFFFFFFFF;" MMA("%t0"), "the descriptor of A, 0x4000004000010040: the constant in bits 46 to 48 is 0, but must be 1"},
    {"base_offset", "", "or.b64 %db, %db, 0x2000000000000;" MMA("%t0"), "the base offset is 1, ptxvm supports only 0"},
    {"mode_of_leading", "", "or.b64 %db, %db, 0x10000000000000;" MMA("%t0"), "the mode of the leading dimension is 1, ptxvm supports only 0"},
    {"swizzle", "", "or.b64 %db, %db, 0x6000000000000000;" MMA("%t0"), "the swizzle is 3, but must be 0, 1, 2, 4 or 6"},
    {"outside", "", "or.b64 %db, %db, 0x3FFF;" MMA("%t0"), "leads to shared address 0x3ff80, which is outside: the block has 66560 bytes"},
    {"sparse", "", "or.b32 %id, %id, 4;" MMA("%t0"), "sparsity is 1, ptxvm supports only 0"},
    {"type_of_a", "", "or.b32 %id, %id, 0x100;" MMA("%t0"), "the type of A is 2, but must be one that the .kind has"},
    {"type_of_d", "", "or.b32 %id, %id, 0x20;" MMA("%t0"), "the type of D is 3"},
    {"size_m", "", "or.b32 %id, %id, 0x1000000;" MMA("%t0"), "M is 80, but must be 64 or 128"},
    {"size_n", "", "and.b32 %id, %id, 0xFF81FFFF;" MMA("%t0"), "N is 0, but must be a multiple of 8 up to 256"},
    {"saturates", "", "or.b32 %id, %id, 8;" MMA("%t0"), "saturation is 1, but must be 0 but for kind::i8"},
    {"reserved", "", "or.b32 %id, %id, 64;" MMA("%t0"), "one of the reserved bits 6, 23 and 29 is 1"},
    {"max_shift", "", "or.b32 %id, %id, 0x40000000;" MMA("%t0"), "the maximum shift is 1, but must be 0 without .ws"},
    {"f16_of_bf16", "", "and.b32 %id, %id, 0xFFFFFFCF; or.b32 %id, %id, 0x480;" MMA("%t0"), "the type of D is 0, but must be 1 (f32) for bf16 inputs"},
    {"shift_of_64_rows", "", "add.u32 %t2, %t0, 256; tcgen05.mma.cta_group::1.kind::f16.ashift [%t0], [%t2], %db, %id, %p0;",
        "M is 64, but .ashift needs 128"},
    {"shift_unaligned", "", "add.u32 %t2, %t0, 0x100000; tcgen05.shift.cta_group::1.down [%t2];", "lane 16 of tensor memory: it must be a multiple of 32"},
    {"mbarrier_is_not_one", "", MMA("%t0") "add.u32 %r20, %r3, 1024; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20]; "
        "W: mbarrier.try_wait.parity.shared.b64 %p6, [%r20], 0;", "holds no initialised mbarrier"},
};
/* clang-format on */

TEST_ROWS(Tcgen05, Finds, Uses)
{
    const misuse *u = &Uses[index];
    job *j = new_job(&Products[0]);
    const char *wrong = run(j, "sm_100a", 1, u->all, u->product, 0, PTXVM_CHECK_ALL, NULL);
    if (u->error)
        CHECK_HAS(wrong, u->error);
    else
        CHECK_EQ_STR(wrong, "");
    free(j);
}

/* Without checks, a result that is read before its wait is POISON with a seed. */
TEST_CASE(Tcgen05, ALoadIsPoisonBeforeItsWait)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        job *j = numbered_job(), *before = numbered_job();
        CHECK_EQ_STR(run(j, "sm_100a", 1,
                         LOAD("%w1") "mov.u32 %w0, %w1;" WAIT_LD "add.u32 %t2, %t1, 9; "
                                     "tcgen05.st.sync.aligned.32x32b.x2.b32 [%t2], {%w0, %w1};" WAIT_ST,
                         "", seed, 0, NULL),
                     "");
        CHECK_EQ_U32(j->tmem[0][40][9], seed ? 0x7FBADBAD : before->tmem[0][40][0]);
        CHECK_EQ_U32(j->tmem[0][40][10], before->tmem[0][40][0]);
        free(j);
        free(before);
    }
}

/* An operand that changes before the commit is waited for: without a seed the product takes what comes last. */
TEST_CASE(Tcgen05, SeedsReadOperandsEarlyOrLate)
{
    const mma_case *c = &Products[0];
    int early = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        job *j = new_job(c);
        CHECK_EQ_STR(run(j, "sm_100a", 1, "",
                         MMA("%t0") "mov.u32 %r20, 0; mov.u32 %r21, sm; add.u32 %r22, %r21, 34816; add.u32 "
                                    "%r21, %r21, 33792;\n"
                                    "Z: st.shared.u32 [%r21], %r20; add.u32 %r21, %r21, 4; setp.lt.u32 %p6, "
                                    "%r21, %r22; @%p6 bra Z;",
                         seed, 0, NULL),
                     "");
        bool is_late = *d_at(j, c, 3, 2) == result_bits(T_F32, d_of(3, 2));
        CHECK(is_late || *d_at(j, c, 3, 2) == expected(c, 3, 2));
        CHECK(seed || is_late);
        early += !is_late;
        free(j);
    }
    CHECK(early > 0 && early < 12);
}

/* Whatever descriptors and addresses say, no other memory is reached: an error, or a product. */
TEST_CASE(Tcgen05, AnyDescriptorIsSafe)
{
    uint64_t state = 12345;
    int refused = 0;
    for (int round = 0; round < 120; round++) {
        const mma_case *c = &Products[round % 3 ? 0 : 16];
        text product = {.length = 0};
        product_of(c, &product);
        job *j = new_job(c);
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t bits = state ^ state >> 29, valid = (bits & UINT64_C(0x80003FFF3FFF3FFF)) | UINT64_C(1)
                                                                                                 << 46;
        switch (round % 4) {
        case 0:
            j->a = round % 8 ? valid : bits;
            break;
        case 1:
            j->b = round % 8 ? valid : bits;
            break;
        case 2:
            j->idesc = round % 8 < 4 ? (uint32_t)bits : (j->idesc & 0xFF81FFFF) | ((uint32_t)bits & 0x7E0000);
            break;
        default:
            WRITE(&product,
                  "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%%t0], %%da; add.u32 %%t2, %%t0, 0x%x; "
                  "tcgen05.shift.cta_group::1.down [%%t2];",
                  (uint32_t)bits & (round % 8 < 4 ? UINT32_MAX : 0x6001FF));
        }
        refused += *run(j, "sm_100a", 1, "", product.at, (uint64_t)round, 0, NULL) != 0;
        free(j);
    }
    CHECK(refused > 30 && refused < 115);
}
