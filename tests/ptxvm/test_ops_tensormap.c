/* Tensor maps: boxes of tensors to and from shared memory against a loop over their elements; the rules of a map; what a
 * kernel can do wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/ptxvm.h"
#include "test.h"

/* Rows of the tables below end where the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
/* A rule is broken by one more initialiser after those of a good map. */
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

enum {
    SHARED = 16384,
    TENSOR = 65536,
    THREADS = 64,
    UINT8 = 0,
    UINT16,
    UINT32,
    INT32,
    UINT64,
    INT64,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    BFLOAT16,
    TF32 = 11,
    U4 = 13,
    U4_SPACED,
    U6_SPACED
};

typedef struct box_case {
    const char *name;
    ptxvm_tensormap_config map; /* the address is that of the tensor, plus this */
    int32_t at[5];
    bool gathers;
} box_case;

#define ONES                                                                                                 \
    {                                                                                                        \
        1, 1, 1, 1, 1                                                                                        \
    }

/* clang-format off */
static const box_case Boxes[] = {
    {"1d", {.type = FLOAT32, .rank = 1, .dim = {1000}, .box = {64}, .element_stride = ONES}, {100}},
    {"1d_start_outside", {.type = FLOAT32, .rank = 1, .dim = {1000}, .box = {64}, .element_stride = ONES}, {-20}},
    {"1d_end_outside", {.type = UINT8, .rank = 1, .dim = {1000}, .box = {128}, .element_stride = ONES}, {950}},
    {"2d", {.type = FLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {32, 16}, .element_stride = ONES}, {8, 4}},
    {"2d_corner", {.type = FLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {64, 16}, .element_stride = ONES}, {80, 30}},
    {"2d_before", {.type = FLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {64, 16}, .element_stride = ONES}, {-10, -3}},
    {"2d_all_outside", {.type = FLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {8, 4}, .element_stride = ONES}, {100, 400}},
    {"2d_far_outside", {.type = FLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {8, 4}, .element_stride = ONES}, {INT32_MAX, INT32_MIN}},
    {"2d_nan", {.type = BFLOAT16, .rank = 2, .dim = {100, 40}, .stride = {0, 224}, .box = {64, 16}, .element_stride = ONES, .fill = 1}, {80, 30}},
    {"2d_nan_f64", {.type = FLOAT64, .rank = 2, .dim = {10, 4}, .stride = {0, 96}, .box = {8, 8}, .element_stride = ONES, .fill = 1}, {5, 1}},
    {"2d_swizzle_128", {.type = FLOAT16, .rank = 2, .dim = {128, 64}, .stride = {0, 256}, .box = {64, 32}, .element_stride = ONES, .swizzle = 3}, {64, 8}},
    {"2d_swizzle_64", {.type = UINT8, .rank = 2, .dim = {128, 64}, .stride = {0, 256}, .box = {64, 33}, .element_stride = ONES, .swizzle = 2}, {100, 8}},
    {"2d_swizzle_32", {.type = UINT32, .rank = 2, .dim = {128, 64}, .stride = {0, 512}, .box = {8, 9}, .element_stride = ONES, .swizzle = 1}, {4, 60}},
    {"2d_swizzle_128_by_32", {.type = FLOAT32, .rank = 2, .dim = {64, 64}, .stride = {0, 256}, .box = {32, 33}, .element_stride = ONES, .swizzle = 4}, {40, 8}},
    {"2d_tf32", {.type = TF32, .rank = 2, .dim = {64, 64}, .stride = {0, 256}, .box = {32, 16}, .element_stride = ONES, .swizzle = 3}, {40, 8}},
    {"2d_narrow_in_swizzle", {.type = UINT16, .rank = 2, .dim = {128, 64}, .stride = {0, 256}, .box = {16, 5}, .element_stride = ONES, .swizzle = 3}, {4, 1}},
    {"2d_every_second", {.type = UINT32, .rank = 2, .dim = {64, 64}, .stride = {0, 512}, .box = {16, 9}, .element_stride = {2, 3, 1, 1, 1}}, {51, 50}},
    {"3d", {.type = UINT64, .rank = 3, .dim = {10, 6, 7}, .stride = {0, 80, 640}, .box = {4, 3, 2}, .element_stride = ONES}, {8, 4, 6}},
    {"4d", {.type = INT32, .rank = 4, .dim = {8, 5, 4, 3}, .stride = {0, 32, 160, 656}, .box = {4, 2, 3, 2}, .element_stride = ONES}, {2, 4, -1, 1}},
    {"5d", {.type = INT64, .rank = 5, .dim = {4, 3, 3, 2, 2}, .stride = {0, 32, 96, 288, 576}, .box = {2, 2, 2, 2, 2}, .element_stride = ONES}, {1, 1, 2, -1, 0}},
    {"address_inside", {.address = 4096, .type = FLOAT16, .rank = 2, .dim = {64, 16}, .stride = {0, 128}, .box = {64, 16}, .element_stride = ONES, .swizzle = 3}, {0, 0}},
    {"one_row_repeated", {.type = FLOAT16, .rank = 2, .dim = {64, 16}, .stride = {0, 0}, .box = {64, 16}, .element_stride = ONES}, {0, 0}},
    {"4_bits", {.type = U4, .rank = 2, .dim = {256, 40}, .stride = {0, 128}, .box = {64, 8}, .element_stride = ONES}, {32, 36}},
    {"4_bits_before", {.type = U4, .rank = 2, .dim = {250, 40}, .stride = {0, 128}, .box = {64, 8}, .element_stride = ONES, .swizzle = 1}, {-6, 36}},
    {"4_bits_spaced", {.type = U4_SPACED, .rank = 2, .dim = {256, 40}, .stride = {0, 160}, .box = {128, 8}, .element_stride = ONES, .swizzle = 3}, {128, 36}},
    {"4_bits_spaced_after", {.type = U4_SPACED, .rank = 2, .dim = {256, 40}, .stride = {0, 160}, .box = {128, 8}, .element_stride = ONES}, {256, 0}},
    {"6_bits_spaced", {.type = U6_SPACED, .rank = 2, .dim = {256, 40}, .stride = {0, 192}, .box = {128, 8}, .element_stride = ONES, .swizzle = 3}, {128, 36}},
    {"gather", {.type = FLOAT16, .rank = 2, .dim = {64, 100}, .stride = {0, 128}, .box = {32, 1}, .element_stride = ONES, .swizzle = 2}, {16, 99, 3, 100, 50}, true},
};
/* clang-format on */

static const uint32_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4,
                                 8, 2, 0, 4, 0, 1, 8, 12}; /* of packed types, of a unit */

/* Elements of a unit, and its bytes in shared memory. */
static uint32_t unit_of(int type)
{
    return type == U4 ? 2 : type > U4 ? 16 : 1;
}

static uint32_t spaced_size(int type)
{
    return type > U4 ? 16 : sizes[type];
}

static uint8_t tensor_byte(uint64_t i)
{
    return (uint8_t)((i * UINT64_C(0x9E3779B97F4A7C15)) >> 40);
}

static uint32_t shared_word(uint32_t w)
{
    return w * 2654435761u + 12345;
}

/* Byte b of row `row` of the box in shared memory: PTX ISA, "Swizzling modes". */
static uint32_t place_of(const box_case *c, uint32_t row_bytes, uint32_t row, uint32_t b)
{
    static const uint32_t rows[] = {0, 1, 3, 7};
    uint32_t at = row * row_bytes + b;
    if (c->map.swizzle == 4)
        return at ^ (at / 128 % 4) * 32;
    return at ^ (at / 128 % 8 & rows[c->map.swizzle]) * 16;
}

/* Calls visit(user, place in shared memory, offset in the tensor or -1) for each byte of the box. */
typedef void visit_fn(void *user, uint32_t place, int64_t offset, uint32_t byte);

static void each_byte(const box_case *c, visit_fn *visit, void *user)
{
    const ptxvm_tensormap_config *m = &c->map;
    uint32_t size = sizes[m->type], spaced = spaced_size(m->type), n[5] = {1, 1, 1, 1, 1}, total = 1;
    for (int i = 0; i < m->rank; i++)
        n[i] = (m->box[i] + m->element_stride[i] - 1) / m->element_stride[i] / (i ? 1 : unit_of(m->type));
    if (c->gathers)
        n[1] = 4;
    for (int i = 0; i < 5; i++)
        total *= n[i];
    for (uint32_t e = 0; e < total; e++) {
        uint32_t rest = e;
        int64_t offset = 0;
        for (int i = 0; i < m->rank; i++) {
            int64_t unit = i ? 1 : unit_of(m->type);
            int64_t at = (int64_t)c->at[i] / unit + (int64_t)(rest % n[i]) * m->element_stride[i];
            if (c->gathers && i == 1)
                at = c->at[1 + rest % n[i]];
            rest /= n[i];
            if (at < 0 || at * unit >= (int64_t)m->dim[i])
                offset = INT64_MIN / 2;
            else
                offset += at * (int64_t)(i ? m->stride[i] : size);
        }
        for (uint32_t b = 0; b < spaced; b++)
            visit(user, place_of(c, n[0] * spaced, e / n[0], e % n[0] * spaced + b),
                  offset < 0 || b >= size ? -1 : offset + b, b);
    }
}

/* ---- The kernel ---- */

#define HEAD                                                                                                 \
    ".address_size 64\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 c0, "   \
    ".param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4, .param .u32 bytes)\n{\n"                \
    ".reg .b32 %r<20>, %c<5>; .reg .b64 %rd<8>, %m; .reg .pred %p<4>; .reg .b64 %state;\n"                   \
    ".shared .align 1024 .b8 sm[16384]; .shared .align 8 .b64 bar;\n"                                        \
    "ld.param.u64 %rd0, [out]; ld.param.u32 %c0, [c0]; ld.param.u32 %c1, [c1]; ld.param.u32 %c2, [c2];\n"    \
    "ld.param.u32 %c3, [c3]; ld.param.u32 %c4, [c4]; ld.param.u32 %r9, [bytes];\n"                           \
    "mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u32 %r0, %tid.x; mov.u32 %r1, sm; mov.u32 %r2, bar;\n"      \
    "setp.eq.u32 %p0, %r0, 0; mov.u32 %r3, %r0;\n"                                                           \
    "FILL: mad.lo.u32 %r4, %r3, 2654435761, 12345; mad.lo.u32 %r5, %r3, 4, %r1; st.shared.u32 [%r5], %r4;\n" \
    "add.u32 %r3, %r3, 64; setp.lt.u32 %p1, %r3, 4096; @%p1 bra FILL;\n"                                     \
    "@%p0 mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async.shared::cta; bar.sync 0;\n"
#define SHOW                                                                                                 \
    "mov.u32 %r3, %r0;\nSHOW: mad.lo.u32 %r5, %r3, 4, %r1; ld.shared.u32 %r4, [%r5]; mul.wide.u32 %rd2, "    \
    "%r3, 4;\n"                                                                                              \
    "add.u64 %rd2, %rd2, %rd0; st.global.u32 [%rd2], %r4; add.u32 %r3, %r3, 64; setp.lt.u32 %p1, %r3, "      \
    "4096;\n"                                                                                                \
    "@%p1 bra SHOW;\nret;\n}\n"
#define EXPECT "@%p0 mbarrier.arrive.expect_tx.shared.b64 %state, [%r2], %r9;\n"
#define WAIT   "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra WAIT;\n"
#define LOAD(dims, coordinates)                                                                              \
    "@%p0 cp.async.bulk.tensor." dims                                                                        \
    ".shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%m, " coordinates "], [%r2];\n"
#define DONE "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0; bar.sync 0;\n"

static const char *const coordinates[] = {"{%c0}", "{%c0, %c1}", "{%c0, %c1, %c2}", "{%c0, %c1, %c2, %c3}",
                                          "{%c0, %c1, %c2, %c3, %c4}"};

typedef struct job {
    ptxvm_tensormap_config map;
    int32_t at[5];
    uint32_t bytes;
    uint64_t seed;
    unsigned checks;
    const char *sm;
    bool spoil; /* the map is overwritten with something else */
    uint8_t shared[SHARED], tensor[TENSOR];
} job;

static const char *run(job *j, const char *lines)
{
    static char message[1024];
    static char text[16384];
    const ptxvm_config config = {.sm = j->sm, .threads = 1, .seed = j->seed, .checks = j->checks};
    const ptxvm_launch_config launch = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}};
    struct {
        _Alignas(64) uint8_t map[128];
        ptxvm_address out;
        int32_t at[5];
        uint32_t bytes;
    } params = {.bytes = j->bytes};
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_address tensor;
    char why[256] = "";
    memcpy(params.at, j->at, sizeof params.at);
    snprintf(text, sizeof text, ".version 8.6\n.target %s\n%s", j->sm, lines);
    if (ptxvm_create(&config, &vm))
        return "no device";
    bool ok = !ptxvm_module_load(vm, text, strlen(text), &module) &&
              !ptxvm_module_kernel(module, "k", &kernel) && !ptxvm_alloc(vm, SHARED, &params.out) &&
              !ptxvm_alloc(vm, TENSOR, &tensor) && !ptxvm_write(vm, tensor, j->tensor, TENSOR);
    j->map.address += tensor;
    ok = ok && !ptxvm_tensormap_encode(params.map, &j->map, why, sizeof why);
    if (j->spoil)
        memset(params.map, 0x11, 100);
    ok = ok && !ptxvm_launch(vm, kernel, &launch, &params, 160) &&
         !ptxvm_read(vm, j->shared, params.out, SHARED) && !ptxvm_read(vm, j->tensor, tensor, TENSOR);
    snprintf(message, sizeof message, "%s", ok ? "" : why[0] ? why : ptxvm_last_error(vm));
    ptxvm_destroy(vm);
    return message;
}

static job *new_job(const box_case *c)
{
    job *j = calloc(1, sizeof *j);
    j->map = c->map;
    j->checks = PTXVM_CHECK_ALL;
    j->sm = c->gathers ? "sm_100a" : "sm_90a";
    memcpy(j->at, c->at, sizeof j->at);
    for (int i = 0; i < TENSOR; i++)
        j->tensor[i] = tensor_byte((uint64_t)i);
    return j;
}

/* ---- Loads ---- */

typedef struct image {
    const box_case *c;
    const uint8_t *source; /* what moves: the tensor, or the shared memory */
    uint8_t *to;
    uint32_t bytes;
} image;

static void put_loaded(void *user, uint32_t place, int64_t offset, uint32_t byte)
{
    image *im = user;
    uint32_t size = sizes[im->c->map.type];
    uint8_t fill = im->c->map.fill ? (byte == size - 1 ? 0x7F : 0xFF) : 0;
    im->to[place] = offset < 0 ? fill : im->source[im->c->map.address + (uint64_t)offset];
    im->bytes += byte < size; /* not a gap */
}

static void fill_shared(uint8_t *bytes)
{
    for (uint32_t w = 0; w < SHARED / 4; w++) {
        uint32_t word = shared_word(w);
        memcpy(bytes + 4 * w, &word, 4);
    }
}

/* f32 to tf32, to nearest, ties away from zero. */
static void round_words(uint8_t *bytes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, 4);
        bool special = (word & 0x7F800000) == 0x7F800000;
        uint32_t up = word >> 12 & 1;
        word = special ? word : ((word >> 13) + up) << 13;
        memcpy(bytes + 4 * i, &word, 4);
    }
}

static void load_text(const box_case *c, char *text, size_t size)
{
    if (c->gathers)
        snprintf(text, size, "%s%s%s%s%s", HEAD, EXPECT,
                 "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                 "[%r1], "
                 "[%m, {%c0, %c1, %c2, %c3, %c4}], [%r2];\n",
                 WAIT, SHOW);
    else
        snprintf(text, size,
                 "%s%s@%%p0 cp.async.bulk.tensor.%dd.shared::cta.global.tile.mbarrier::complete_tx::bytes "
                 "[%%r1], [%%m, %s], [%%r2];\n%s%s",
                 HEAD, EXPECT, c->map.rank, coordinates[c->map.rank - 1], WAIT, SHOW);
}

TEST_ROWS(TensorMap, Loads, Boxes)
{
    const box_case *c = &Boxes[index];
    char text[8192];
    load_text(c, text, sizeof text);
    for (uint64_t seed = 0; seed < 4; seed++) { /* a seed chooses when the data arrives */
        job *j = new_job(c);
        uint8_t expected[SHARED];
        image im = {.c = c, .source = j->tensor, .to = expected};
        fill_shared(expected);
        each_byte(c, put_loaded, &im);
        if (c->map.type == TF32)
            round_words(expected, c->map.box[0] * c->map.box[1]);
        j->bytes = im.bytes;
        j->seed = seed;
        CHECK_EQ_STR(run(j, text), "");
        CHECK_EQ_MEM(j->shared, expected, SHARED);
        free(j);
    }
}

/* ---- Stores and reductions ---- */

static void put_stored(void *user, uint32_t place, int64_t offset, uint32_t byte)
{
    image *im = user;
    (void)byte;
    if (offset >= 0)
        im->to[im->c->map.address + (uint64_t)offset] = im->source[place];
}

TEST_ROWS(TensorMap, Stores, Boxes)
{
    const box_case *c = &Boxes[index];
    char text[8192];
    uint8_t shared[SHARED], expected[TENSOR];
    if (c->gathers || strstr(c->name, "repeated"))
        return; /* scatter4 is not supported, and rows that overlap have no order */
    snprintf(text, sizeof text,
             "%s@%%p0 cp.async.bulk.tensor.%dd.global.shared::cta.bulk_group [%%m, %s], [%%r1];\n%s%s", HEAD,
             c->map.rank, coordinates[c->map.rank - 1], DONE, SHOW);
    job *j = new_job(c);
    memcpy(expected, j->tensor, TENSOR);
    fill_shared(shared);
    image im = {.c = c, .source = shared, .to = expected};
    each_byte(c, put_stored, &im);
    CHECK_EQ_STR(run(j, text), "");
    CHECK_EQ_MEM(j->tensor, expected, TENSOR);
    free(j);
}

static const box_case sum = {
    "",
    {.type = UINT32, .rank = 2, .dim = {20, 10}, .stride = {0, 96}, .box = {16, 8}, .element_stride = ONES},
    {12, 5},
    false};

static void add_word(void *user, uint32_t place, int64_t offset, uint32_t byte)
{
    image *im = user;
    uint32_t a, b;
    if (offset < 0 || byte)
        return;
    memcpy(&a, im->source + place, 4);
    memcpy(&b, im->to + offset, 4);
    a += b;
    memcpy(im->to + offset, &a, 4);
}

TEST_CASE(TensorMap, Adds)
{
    uint8_t shared[SHARED], expected[TENSOR];
    job *j = new_job(&sum);
    memcpy(expected, j->tensor, TENSOR);
    fill_shared(shared);
    each_byte(&sum, add_word, &(image){.c = &sum, .source = shared, .to = expected});
    CHECK_EQ_STR(run(j, HEAD "@%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                             "[%m, {%c0, %c1}], [%r1];\n" DONE SHOW),
                 "");
    CHECK_EQ_MEM(j->tensor, expected, TENSOR);
    free(j);
}

/* ---- Rules ---- */

#define GOOD                                                                                                 \
    .type = FLOAT16, .rank = 2, .dim = {64, 16}, .stride = {0, 128}, .box = {64, 16}, .element_stride = ONES

static const struct {
    const char *name;
    ptxvm_tensormap_config map;
    ptxvm_status status;
    const char *why;
} Rules[] = {
    {"good", {GOOD}, PTXVM_OK, ""},
    {"type", {GOOD, .type = 16}, PTXVM_ERROR_ARGUMENT, "data type 16"},
    {"tf32", {GOOD, .type = 11, .dim = {32, 16}, .box = {32, 16}}, PTXVM_OK, ""},
    {"tf32_ftz", {GOOD, .type = 12}, PTXVM_ERROR_UNSUPPORTED, "data type TFLOAT32_FTZ is not supported"},
    {"packed", {GOOD, .type = U4}, PTXVM_OK, ""},
    {"packed_odd",
     {GOOD, .type = U4, .dim = {101, 40}},
     PTXVM_ERROR_ARGUMENT,
     "dimension 0 has 101 elements: with 16U4_ALIGN8B it must be a multiple of 2"},
    {"packed_stepping",
     {GOOD, .type = U4, .element_stride = {2, 1, 1, 1, 1}},
     PTXVM_ERROR_ARGUMENT,
     "the element stride of dimension 0 is 2: with 16U4_ALIGN8B it must be 1"},
    {"spaced_dimension",
     {GOOD, .type = U4_SPACED, .box = {128, 8}},
     PTXVM_ERROR_ARGUMENT,
     "must be a multiple of 128"},
    {"spaced_box",
     {GOOD, .type = U6_SPACED, .dim = {256, 40}, .box = {64, 8}},
     PTXVM_ERROR_ARGUMENT,
     "the box has 64 elements in dimension 0: with 16U6_ALIGN16B it must be 128"},
    {"spaced_stride",
     {GOOD, .type = U4_SPACED, .dim = {256, 40}, .stride = {0, 144}, .box = {128, 8}},
     PTXVM_ERROR_ARGUMENT,
     "the stride of dimension 1 is 144 bytes: with 16U4_ALIGN16B it must be a multiple of 32"},
    {"spaced_swizzle",
     {GOOD, .type = U4_SPACED, .dim = {256, 40}, .stride = {0, 160}, .box = {128, 8}, .swizzle = 2},
     PTXVM_ERROR_ARGUMENT,
     "swizzle 2: with 16U4_ALIGN16B it is 0 or 3"},
    {"rank_0", {GOOD, .rank = 0}, PTXVM_ERROR_ARGUMENT, "rank 0: it is 1 to 5"},
    {"rank_6", {GOOD, .rank = 6}, PTXVM_ERROR_ARGUMENT, "rank 6"},
    {"rank_negative", {GOOD, .rank = -1}, PTXVM_ERROR_ARGUMENT, "rank 255"},
    {"address", {GOOD, .address = 8}, PTXVM_ERROR_ARGUMENT, "the global address 0x8 is not a multiple of 16"},
    {"dim_0", {GOOD, .dim = {0, 16}}, PTXVM_ERROR_ARGUMENT, "dimension 0 has 0 elements"},
    {"dim_large",
     {GOOD, .dim = {64, (UINT64_C(1) << 32) + 1}},
     PTXVM_ERROR_ARGUMENT,
     "dimension 1 has 4294967297 elements"},
    {"stride",
     {GOOD, .stride = {0, 120}},
     PTXVM_ERROR_ARGUMENT,
     "the stride of dimension 1 is 120 bytes: it must be a multiple of 16"},
    {"stride_large", {GOOD, .stride = {0, UINT64_C(1) << 40}}, PTXVM_ERROR_ARGUMENT, "less than 2^40"},
    {"box_0", {GOOD, .box = {64, 0}}, PTXVM_ERROR_ARGUMENT, "the box has 0 elements in dimension 1"},
    {"box_257", {GOOD, .box = {64, 257}}, PTXVM_ERROR_ARGUMENT, "the box has 257 elements"},
    {"box_wraps", {GOOD, .box = {64, 65537}}, PTXVM_ERROR_ARGUMENT, "the box has 65537 elements"},
    {"row",
     {GOOD, .box = {7, 16}},
     PTXVM_ERROR_ARGUMENT,
     "a row of the box has 14 bytes: it must be a multiple of 16"},
    {"element_stride_0",
     {GOOD, .element_stride = {0, 1}},
     PTXVM_ERROR_ARGUMENT,
     "the element stride of dimension 0 is 0"},
    {"element_stride_9",
     {GOOD, .element_stride = {1, 9}},
     PTXVM_ERROR_ARGUMENT,
     "the element stride of dimension 1 is 9"},
    {"interleave", {GOOD, .interleave = 1}, PTXVM_ERROR_UNSUPPORTED, "interleaved layouts are not supported"},
    {"interleave_3", {GOOD, .interleave = 3}, PTXVM_ERROR_ARGUMENT, "interleave 3"},
    {"swizzle_row",
     {GOOD, .swizzle = 2},
     PTXVM_ERROR_ARGUMENT,
     "a row of the box has 128 bytes: with a swizzle of 64 bytes"},
    {"swizzle_5", {GOOD, .swizzle = 5}, PTXVM_ERROR_UNSUPPORTED, "swizzle 5"},
    {"swizzle_6", {GOOD, .swizzle = 6}, PTXVM_ERROR_UNSUPPORTED, "swizzle 6"},
    {"swizzle_7", {GOOD, .swizzle = 7}, PTXVM_ERROR_ARGUMENT, "swizzle 7"},
    {"promotion", {GOOD, .l2_promotion = 4}, PTXVM_ERROR_ARGUMENT, "L2 promotion 4"},
    {"fill", {GOOD, .fill = 2}, PTXVM_ERROR_ARGUMENT, "fill 2"},
    {"fill_of_integers",
     {GOOD, .type = UINT16, .fill = 1},
     PTXVM_ERROR_ARGUMENT,
     "needs a floating-point type, not UINT16"},
};

TEST_ROWS(TensorMap, Rule, Rules)
{
    uint8_t map[128], before[128];
    char why[256] = "";
    memset(map, 0xAB, sizeof map);
    memcpy(before, map, sizeof map);
    CHECK_EQ_I64(ptxvm_tensormap_encode(map, &Rules[index].map, why, sizeof why), Rules[index].status);
    CHECK_HAS(why, Rules[index].why);
    if (Rules[index].status)
        CHECK_EQ_MEM(map, before, sizeof map);
}

TEST_CASE(TensorMap, ReplacesTheAddress)
{
    uint8_t map[128], other[128];
    char why[256] = "";
    ptxvm_tensormap_config config = {GOOD};
    REQUIRE(!ptxvm_tensormap_encode(map, &config, why, sizeof why));
    config.address = 4096;
    REQUIRE(!ptxvm_tensormap_encode(other, &config, why, sizeof why));
    CHECK_EQ_I64(ptxvm_tensormap_replace_address(map, 4095, why, sizeof why), PTXVM_ERROR_ARGUMENT);
    CHECK_EQ_I64(ptxvm_tensormap_replace_address(map, 4096, why, sizeof why), PTXVM_OK);
    CHECK_EQ_MEM(map, other, sizeof map);
    memset(map, 0, sizeof map);
    CHECK_EQ_I64(ptxvm_tensormap_replace_address(map, 4096, why, sizeof why), PTXVM_ERROR_ARGUMENT);
}

/* ---- Uses ---- */

static const box_case tile = {"",
                              {.type = FLOAT16,
                               .rank = 2,
                               .dim = {64, 16},
                               .stride = {0, 128},
                               .box = {64, 16},
                               .element_stride = ONES},
                              {0, 0},
                              false};

#define LOAD2  LOAD("2d", "{%c0, %c1}")
#define STORE2 "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {%c0, %c1}], [%r1];\n"

static const struct {
    const char *name, *lines, *error; /* null: all is well */
    ptxvm_tensormap_config map;       /* rank 0: that of `tile` */
    bool spoil;
} Uses[] = {
    {"good", HEAD EXPECT LOAD2 WAIT SHOW, NULL, {.rank = 0}, false},
    {"prefetch",
     HEAD "prefetch.tensormap [%m]; prefetch.param.tensormap [map]; "
          "cp.async.bulk.prefetch.tensor.2d.L2.global [%m, {%c0, %c1}];\n" EXPECT LOAD2 WAIT SHOW,
     NULL,
     {.rank = 0},
     false},
    {"no_wait", HEAD EXPECT LOAD2 SHOW, "still under way", {.rank = 0}, false},
    {"no_expect_tx",
     HEAD LOAD2 "@%p0 mbarrier.arrive.shared.b64 %state, [%r2];\n" WAIT SHOW,
     "expect_tx must announce",
     {.rank = 0},
     false},
    {"no_map", HEAD EXPECT LOAD2 WAIT SHOW, "there is no tensor map that", {.rank = 0}, true},
    {"no_map_in_a_prefetch",
     HEAD "prefetch.tensormap [%m];\n" SHOW,
     "there is no tensor map that",
     {.rank = 0},
     true},
    {"wrong_rank",
     HEAD EXPECT LOAD("3d", "{%c0, %c1, %c2}") WAIT SHOW,
     "the tensor map has 2 dimensions, the instruction 3",
     {.rank = 0},
     false},
    {"misaligned",
     HEAD EXPECT "add.u32 %r1, %r1, 64;\n" LOAD2 WAIT SHOW,
     "shared address 0x40 of a tensor copy: it must be a multiple of 128",
     {.rank = 0},
     false},
    {"outside_shared",
     HEAD EXPECT "add.u32 %r1, %r1, 16384;\n" LOAD2 WAIT SHOW,
     "which is outside",
     {.rank = 0},
     false},
    {"map_misaligned",
     HEAD EXPECT "add.u64 %m, %m, 32;\n" LOAD2 WAIT SHOW,
     "is not a multiple of 64",
     {.rank = 0},
     false},
    {"map_outside",
     HEAD EXPECT "mov.u64 %m, 0x300000000;\n" LOAD2 WAIT SHOW,
     "which no allocation holds",
     {.rank = 0},
     false},
    {"tensor_outside",
     HEAD EXPECT LOAD2 WAIT SHOW,
     "past the end of the 65536 bytes",
     {GOOD, .address = 65536 - 128},
     false},
    {"stored_too_early",
     HEAD STORE2 "@%p0 cp.async.bulk.commit_group; @%p0 st.shared.u32 [%r1], %r0;\n" DONE SHOW,
     "may still be reading",
     {.rank = 0},
     false},
    {"stored_without_a_proxy_fence",
     HEAD "mad.lo.u32 %r5, %r0, 4, %r1; st.shared.u32 [%r5], %r0; bar.sync 0;\n" STORE2 DONE SHOW,
     "with no fence.proxy.async after it",
     {.rank = 0},
     false},
    {"ends_in_flight", HEAD STORE2 "ret;\n}\n", "the block ends while this bulk copy", {.rank = 0}, false},
    {"reduction_of_a_type_that_has_none",
     HEAD
     "@%p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group [%m, {%c0, %c1}], [%r1];\n" DONE
         SHOW,
     ".xor is not defined for the type 6",
     {.rank = 0},
     false},
};

TEST_ROWS(TensorMap, Finds, Uses)
{
    job *j = new_job(&tile);
    if (Uses[index].map.rank)
        j->map = Uses[index].map;
    j->bytes = 64 * 16 * 2;
    j->spoil = Uses[index].spoil;
    const char *wrong = run(j, Uses[index].lines);
    if (Uses[index].error)
        CHECK_HAS(wrong, Uses[index].error);
    else
        CHECK_EQ_STR(wrong, "");
    free(j);
}

/* A kernel that changes a copy of its map: another address, type, size, box, stride and swizzle. */
TEST_CASE(TensorMap, Replace)
{
    static const char lines[] =
        HEAD "@!%p0 bra NEXT; mov.u32 %r10, sm; add.u32 %r10, %r10, 8192; mov.u32 %r11, 0;\n"
             "COPY: cvt.u64.u32 %rd3, %r11; add.u64 %rd3, %rd3, %m; ld.u32 %r12, [%rd3]; add.u32 %r13, %r10, "
             "%r11; st.shared.u32 [%r13], %r12;\n"
             "add.u32 %r11, %r11, 4; setp.lt.u32 %p1, %r11, 128; @%p1 bra COPY;\n"
             "mov.u64 %rd4, 1024; mov.u32 %r14, 1; mov.u32 %r15, 40; mov.u32 %r16, 8; mov.u64 %rd5, 256; "
             "mov.u32 %r17, 12;\n"
             "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r10], %r14;\n"
             "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r10], 2;\n"
             "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 0, %r15;\n"
             "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 1, %r17;\n"
             "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 0, %r16;\n"
             "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 1, %r16;\n"
             "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r10], 0, %r14;\n"
             "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r10], 0, %rd5;\n"
             "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r10], 1;\n"
             "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r10], 0;\n"
             "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r10], 0;\n"
             "cvt.u64.u32 %m, %r10; cvta.shared.u64 %m, %m; fence.proxy.async;\n"
             "NEXT: bar.sync 0;\n" EXPECT LOAD2 WAIT SHOW;
    box_case after = {"",
                      {.type = UINT32,
                       .rank = 2,
                       .dim = {40, 12},
                       .stride = {0, 256},
                       .box = {8, 8},
                       .element_stride = ONES,
                       .swizzle = 1},
                      {36, 6},
                      false};
    job *j = new_job(&tile);
    uint8_t expected[SHARED];
    fill_shared(expected);
    image im = {.c = &after, .source = j->tensor, .to = expected};
    each_byte(&after, put_loaded, &im);
    memcpy(j->at, after.at, sizeof j->at);
    j->bytes = im.bytes;
    CHECK_EQ_STR(run(j, lines), "");
    CHECK_EQ_MEM(j->shared, expected, 8192);
    free(j);
}

/* A map that a kernel makes from nothing but zeros in shared memory, as Triton does, and copies to global memory. (The
 * address of the tensor comes from the first field of our own map.) */
TEST_CASE(TensorMap, FromZeros)
{
    static const char lines[] = HEAD
        "ld.u64 %rd6, [%m]; mov.u32 %r10, sm; add.u32 %r10, %r10, 8192; setp.lt.u32 %p2, %r0, 32; @!%p2 bra "
        "NEXT;\n"
        "mad.lo.u32 %r13, %r0, 4, %r10; mov.u32 %r12, 0; st.shared.u32 [%r13], %r12; bar.warp.sync -1; @!%p0 "
        "bra MADE;\n"
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r10], %rd6;\n"
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r10], 1;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 0, 64;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r10], 1, 16;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 0, 64;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 1, 16;\n"
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r10], 0, 128;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r10], 0, 1;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r10], 1, 1;\n"
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r10], 6;\n"
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r10], 0;\n"
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r10], 0;\n"
        "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r10], 0;\n"
        "MADE: bar.warp.sync -1;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], "
        "[%r10], 128;\n"
        "NEXT: bar.sync 0; mov.u64 %m, %rd0; fence.proxy.tensormap::generic.acquire.gpu [%m], 128;\n" EXPECT
            LOAD2 WAIT "bar.sync 0;\n" SHOW;
    job *j = new_job(&tile);
    uint8_t expected[SHARED];
    image im = {.c = &tile, .source = j->tensor, .to = expected};
    fill_shared(expected);
    each_byte(&tile, put_loaded, &im);
    j->bytes = im.bytes;
    CHECK_EQ_STR(run(j, lines), "");
    CHECK_EQ_MEM(j->shared, expected, 8192);
    free(j);
}

/* The whole warp copies a map, or none of it. */
TEST_CASE(TensorMap, ACopyNeedsAllLanes)
{
    static const char lines[] =
        HEAD "mov.u32 %r10, sm; add.u32 %r10, %r10, 8192; setp.eq.u32 %p2, %r0, 3; @%p2 bra NEXT;\n"
             "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], "
             "[%r10], 128;\n"
             "NEXT: bar.sync 0; ret;\n}\n";
    job *j = new_job(&tile);
    CHECK_HAS(run(j, lines), "no thread of the block can go on");
    free(j);
}

/* Whatever 128 bytes say, nothing outside guest memory is touched: a fault or a copy. */
TEST_CASE(TensorMap, AnyBytesAreSafe)
{
    uint32_t state = 7;
    for (int round = 0; round < 200; round++) {
        job *j = new_job(&tile);
        j->checks = 0;
        j->bytes = 2048;
        /* words of a good map, some of them replaced by the kernel with random ones */
        char lines[8192];
        state = state * 1664525u + 1013904223u;
        uint32_t at = state >> 8 & 0x1F, value = state * 2654435761u;
        snprintf(lines, sizeof lines,
                 "%s@!%%p0 bra NEXT; mov.u32 %%r10, sm; add.u32 %%r10, %%r10, 8192; mov.u32 %%r11, 0;\n"
                 "COPY: cvt.u64.u32 %%rd3, %%r11; add.u64 %%rd3, %%rd3, %%m; ld.u32 %%r12, [%%rd3]; add.u32 "
                 "%%r13, %%r10, %%r11; "
                 "st.shared.u32 [%%r13], %%r12;\nadd.u32 %%r11, %%r11, 4; setp.lt.u32 %%p1, %%r11, 128; "
                 "@%%p1 bra COPY;\n"
                 "mov.u32 %%r14, %u; st.shared.u32 [%%r10+%u], %%r14; cvt.u64.u32 %%m, %%r10; "
                 "cvta.shared.u64 %%m, %%m;\n"
                 "NEXT: bar.sync 0;\n%s@%%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%%m, "
                 "{%%c0, %%c1}], [%%r1];\nbar.sync 0; ret;\n}\n",
                 HEAD, value, 4 * at, "");
        run(j, lines);
        free(j);
    }
}
