/* Descriptors of matrices and tensor maps that a kernel has made up: each run ends well, or with an error that says why; none reaches
 * memory of the host (which sanitizers watch). */
#include "support/random.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/ptxvm.h"

/* Rows of the table below end where the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { TRIALS = 300, THREADS = 128, BYTES = 65536 };

typedef struct params {
    _Alignas(64) uint8_t map[128];
    uint64_t a, b;
    uint32_t word, other;
} params;

#define KERNEL(sm, body)                                                                                     \
    ".version 8.8\n.target " sm "\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128], "      \
    ".param .u64 a, .param .u64 b, .param .u32 word, .param .u32 other) .maxntid 128, 1, 1\n{\n"             \
    ".reg .pred %p<6>; .reg .b32 %r<30>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .shared .align 1024 .b8 "        \
    "sm[20480]; .shared .align 8 .b64 bar; .shared .b32 place;\n"                                            \
    "ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; ld.param.u32 %r8, [word]; ld.param.u32 %r9, [other]; "  \
    "mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; mov.u32 %r1, sm; mov.u32 %r2, " \
    "bar; mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2;\n@%p0 mbarrier.init.shared.b64 [%r2], 1; "           \
    "fence.proxy.async.shared::cta; bar.sync 0;\n" body "\nret;\n}\n"

#define TCGEN05(lines)                                                                                       \
    KERNEL("sm_100a",                                                                                        \
           "@!%p1 bra L; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64; L: "           \
           "bar.sync 0; ld.shared.u32 %r3, [place]; add.u32 %r4, %r3, %r9;\n" lines                          \
           "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2]; "              \
           "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;\n@!%p1 bra E; "               \
           "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r10, %r11, %r12, %r13}, [%r4]; "                         \
           "tcgen05.wait::ld.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, "              \
           "64; E:")

typedef struct hostile_case {
    const char *name, *sm, *text;
    bool never_right; /* none of the numbers fit this instruction */
} hostile_case;

/* clang-format off */
static const hostile_case cases[] = {
    {"wgmma", "sm_90a", KERNEL("sm_90a",
        "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 0, 1, 1, 0, 0;"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd0, 0, 1, 1, 1, 1;"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")},
    {"tcgen05", "sm_100a", TCGEN05("@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd0, %rd1, %r8, %p0;")},
    {"tcgen05_from_tmem", "sm_100a", TCGEN05("@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r3], [%r4], %rd1, %r8, %p0;")},
    {"tcgen05_scaled", "sm_100a", TCGEN05("@%p0 tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r3], %rd0, %rd1, %r8, [%r4], [%r4], %p0;"), true},
    {"tcgen05_cp", "sm_100a", TCGEN05("@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r4], %rd0;")},
    {"map_load", "sm_100a", KERNEL("sm_100a",
        "@!%p0 bra E; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024; cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r8, %r9}], [%r2];"
        "mov.u32 %r5, 0; W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; add.u32 %r5, %r5, 1; setp.gt.u32 %p3, %r5, 20; or.pred %p2, %p2, %p3; @!%p2 bra W; E:")},
    {"map_store", "sm_100a", KERNEL("sm_100a",
        "@!%p0 bra E; cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r8, %r9}], [%r1]; cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd2, {%r9, %r8}], [%r1];"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; E:")},
};
/* clang-format on */

/* A number that means something as often as not. */
static uint64_t odd_number(uint64_t *state)
{
    uint64_t r = random_next(state);
    switch (r % 4) {
    case 0:
        return random_next(state);
    case 1: /* a good descriptor of the start of the shared memory, with a few bits changed */
        return UINT64_C(0x4000404000010000) ^ UINT64_C(1) << (r >> 8) % 64;
    case 2:
        return UINT64_C(0x0000004000010000) ^ UINT64_C(1) << (r >> 8) % 64;
    default:
        return (r >> 8) % 64;
    }
}

static void make_map(uint64_t *state, ptxvm_address tensor, uint8_t *map)
{
    char why[256];
    const ptxvm_tensormap_config good = {.type = 6,
                                         .rank = 2,
                                         .address = tensor,
                                         .dim = {64, 32},
                                         .stride = {0, 128},
                                         .box = {64, 8},
                                         .element_stride = {1, 1, 1, 1, 1},
                                         .swizzle = 3};
    CHECK_EQ_I64(ptxvm_tensormap_encode(map, &good, why, sizeof why), PTXVM_OK);
    for (uint64_t n = random_next(state) % 4; n > 0; n--)
        map[random_next(state) % 92] ^= (uint8_t)(1u << random_next(state) % 8);
}

TEST_ROWS(HostileAsync, EndsWell, cases)
{
    const hostile_case *c = &cases[index];
    uint64_t state = 20261119 + (uint64_t)index;
    int ok = 0, refused = 0;
    for (int i = 0; i < TRIALS; i++) {
        const ptxvm_config config = {.sm = c->sm,
                                     .threads = 1,
                                     .seed = (uint64_t)i % 3,
                                     .checks = i % 2 ? PTXVM_CHECK_ALL : 0,
                                     .step_limit = 20000};
        const ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}};
        params p = {.a = odd_number(&state), .b = odd_number(&state)};
        ptxvm *vm;
        ptxvm_module *module;
        ptxvm_kernel *kernel;
        ptxvm_address tensor;
        REQUIRE(!ptxvm_create(&config, &vm) && !ptxvm_module_load(vm, c->text, strlen(c->text), &module) &&
                !ptxvm_module_kernel(module, "k", &kernel) && !ptxvm_alloc(vm, BYTES, &tensor));
        bool product =
            strncmp(c->name, "map", 3) != 0; /* word: the instruction descriptor, or a coordinate */
        p.word = product ? 0x08020010u ^ (uint32_t)(random_next(&state) % 3 ? 0 : odd_number(&state))
                         : (uint32_t)odd_number(&state);
        p.other = (uint32_t)(random_next(&state) % 3 ? 0 : odd_number(&state));
        make_map(&state, tensor, p.map);
        ptxvm_status status = ptxvm_launch(vm, kernel, &launch, &p, sizeof p);
        CHECK(!status || ptxvm_last_error(vm)[0]);
        ok += !status;
        refused += status && status != PTXVM_ERROR_CHECK;
        ptxvm_destroy(vm);
    }
    CHECK(c->never_right ? ok == 0 : ok > 0);
    CHECK(refused > TRIALS / 20);
}
