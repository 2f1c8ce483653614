/* ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store: every element has its own value. */
#include <stdio.h>

#include "test_ops.h"

#define EXPECT(name, expression)                                                                             \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        (void)t;                                                                                             \
        return expression;                                                                                   \
    }

/* Shared memory as 16-bit elements: element i is i; rows have 8. Matrix m is rows 8m .. 8m+7. */
#define PAIR16(first, second) ((uint32_t)(first) | (uint32_t)(second) << 16)
static uint32_t plain(uint32_t lane, uint32_t matrix)
{
    uint32_t row = 8 * matrix + lane / 4, column = 2 * (lane % 4);
    return PAIR16(8 * row + column, 8 * row + column + 1);
}

static uint32_t transposed(uint32_t lane, uint32_t matrix)
{
    uint32_t row = 8 * matrix + 2 * (lane % 4), column = lane / 4;
    return PAIR16(8 * row + column, 8 * (row + 1) + column);
}

/* Shared memory as bytes: byte i is i % 256; rows have 16. */
static uint32_t byte_16x16(uint32_t lane, uint32_t reg)
{
    uint32_t value = 0;
    for (uint32_t b = 0; b < 4; b++)
        value |= (16 * (4 * (lane % 4) + 2 * reg + b % 2) + lane / 4 + 8 * (b / 2)) << 8 * b;
    return value;
}

/* The 16 elements of a row, packed from its first byte on. */
static uint32_t packed_element(uint32_t row, uint32_t element, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; i++) {
        uint32_t at = element * bits + i, byte = (16 * row + at / 8) & 0xFF;
        value |= (byte >> at % 8 & 1) << i;
    }
    return value;
}

static uint32_t packed_8x16(uint32_t lane, uint32_t matrix, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t b = 0; b < 4; b++)
        value |= packed_element(8 * matrix + lane / 4, 4 * (lane % 4) + b, bits) << 8 * b;
    return value;
}

static uint32_t packed_16x16(uint32_t lane, uint32_t reg, uint32_t bits)
{
    uint32_t value = 0;
    for (uint32_t b = 0; b < 4; b++)
        value |= packed_element(4 * (lane % 4) + 2 * reg + b % 2, lane / 4 + 8 * (b / 2), bits) << 8 * b;
    return value;
}

#define BOTH(low, high) ((uint64_t)(low) | (uint64_t)(high) << 32)
EXPECT(x1, plain(t, 0))
EXPECT(x2, BOTH(plain(t, 0), plain(t, 1)))
EXPECT(x4, BOTH(plain(t, 2), plain(t, 3)))
EXPECT(x1_trans, transposed(t, 0))
EXPECT(x4_trans, BOTH(transposed(t, 1), transposed(t, 3)))
EXPECT(b8_x1, BOTH(byte_16x16(t, 0), byte_16x16(t, 1)))
EXPECT(b4_x1, packed_8x16(t, 0, 4))
EXPECT(b6_x2, BOTH(packed_8x16(t, 0, 6), packed_8x16(t, 1, 6)))
EXPECT(b4_16, BOTH(packed_16x16(t, 0, 4), packed_16x16(t, 1, 4)))
EXPECT(b6_16, BOTH(packed_16x16(t, 0, 6), packed_16x16(t, 1, 6)))
EXPECT(own_pair, PAIR16(2 * t, 2 * t + 1))
/* Stored transposed: what thread t reads, row t/4, columns 2(t%4) and the next, came from these elements. */
EXPECT(stored_trans, PAIR16(2 * (4 * (2 * (t % 4)) + t / 4 / 2) + t / 4 % 2,
                            2 * (4 * (2 * (t % 4) + 1) + t / 4 / 2) + t / 4 % 2))
EXPECT(x4_stored, PAIR16(2 * t, 2 * t + 1) + 0x03000300)

/* Lane l's register has the bytes 4l .. 4l+3; word t of what is stored (row t/4, bytes 4(t%4) ..). */
static uint64_t stored_b8(uint32_t t)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = t / 4, column = 4 * (t % 4) + i;
        uint32_t lane = 4 * (column % 8) + row / 2, byte = row % 2 + 2 * (column / 8);
        value |= (uint64_t)(4 * lane + byte) << 8 * i;
    }
    return value;
}

static uint64_t wmma_transposed(uint32_t t)
{
    uint32_t at = 8 * t + 3, column = at / 16, row = at % 16;
    return ops_in_at(4 * (16 * row + column), 4);
}

static uint64_t wmma_stride(uint32_t t)
{
    uint32_t at = 8 * t + 3, row = at / 16, column = at % 16;
    return ops_in_at(4 * (20 * row + column), 4);
}

/* Integer products: a from `in`, b from in + 1024, rows of a and columns of b stride apart unless they are
 * turned. */
static int64_t in_element(uint32_t from, uint32_t index, uint32_t bits, bool is_signed)
{
    uint32_t value = ops_in(from + index * bits / 8) >> index * bits % 8 & ((1u << bits) - 1);
    return is_signed && value >> (bits - 1) ? (int64_t)value - (1 << bits) : (int64_t)value;
}

static uint32_t product(uint32_t row, uint32_t column, uint32_t m, uint32_t n, uint32_t k, uint32_t bits,
                        bool is_signed, bool turned)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < k; i++) {
        int64_t a = in_element(0, turned ? i * m + row : row * k + i, bits, is_signed);
        int64_t b = in_element(1024, turned ? i * n + column : column * k + i, bits, is_signed);
        sum += a * b;
    }
    return (uint32_t)sum;
}

/* Thread t looks at elements 2t and 2t + 1 of the 8 x 8 result, or at 8t + 2 and 8t + 3 of one of 256. */
#define PRODUCT(name, step, at, m, n, k, bits, is_signed, turned)                                            \
    static uint64_t name(uint32_t t)                                                                         \
    {                                                                                                        \
        uint32_t i = step * t + at;                                                                          \
        return BOTH(product(i / n, i % n, m, n, k, bits, is_signed, turned),                                 \
                    product((i + 1) / n, (i + 1) % n, m, n, k, bits, is_signed, turned));                    \
    }
PRODUCT(u8_16x16, 8, 2, 16, 16, 16, 8, false, false)
PRODUCT(s8_16x16_turned, 8, 2, 16, 16, 16, 8, true, true)
PRODUCT(s8_32x8, 8, 2, 32, 8, 16, 8, true, false)
PRODUCT(u8_8x32, 8, 2, 8, 32, 16, 8, false, false)
PRODUCT(u8_8x32_turned, 8, 2, 8, 32, 16, 8, false, true)
PRODUCT(u4_8x8, 2, 0, 8, 8, 32, 4, false, false)
PRODUCT(s4_8x8, 2, 0, 8, 8, 32, 4, true, false)
PRODUCT(b1_8x8, 2, 0, 8, 8, 128, 1, false, false)

/* Word w of shared memory holds the 16-bit numbers 2w and 2w+1, or the bytes 4w .. 4w+3. */
#define FILL(value)                                                                                          \
    "mov.u32 %r20, 0; mov.u32 %r4, sm; mad.lo.u32 %r21, %r0, 64, %r4;\n"                                     \
    "FILL: mad.lo.u32 %r23, %r0, 16, %r20; " value " st.shared.u32 [%r21], %r23; add.u32 %r21, %r21, 4;\n"   \
    "add.u32 %r20, %r20, 1; setp.lt.u32 %p9, %r20, 16; @%p9 bra FILL; bar.sync 0; mad.lo.u32 %r5, %r0, 16, " \
    "%r4;\n"
#define FILL16 FILL("shl.b32 %r23, %r23, 1; mad.lo.u32 %r23, %r23, 0x10001, 0x10000;")
#define FILL8                                                                                                \
    FILL("shl.b32 %r23, %r23, 2; and.b32 %r23, %r23, 255; mad.lo.u32 %r23, %r23, 0x01010101, 0x03020100;")
#define ONE(a)     "\ncvt.u64.u32 %rd9, " a ";"
#define TWO(a, b)  "\nmov.b64 %rd9, {" a ", " b "};"
#define OWN16      "shl.b32 %r10, %r0, 1; mad.lo.u32 %r10, %r10, 0x10001, 0x10000;\n"
#define ROWS       "mov.u32 %r4, sm; mad.lo.u32 %r5, %r0, 16, %r4;\n"
#define SHOW(from) "\nbar.sync 0; mad.lo.u32 %r6, %r0, 4, %r4; ld.shared.u32 %rd9, [%r6+" from "];"

#define EIGHT    "%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27"
#define TWO_SUMS "%r20, %r21"
#define ZEROS                                                                                                \
    "mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0; mov.u32 %r24, 0; mov.u32 %r25, "    \
    "0;\n"                                                                                                   \
    "mov.u32 %r26, 0; mov.u32 %r27, 0; mov.u32 %r4, sm;\n"
/* d = a * b, in shared memory by rows. */
#define WMMA(alayout, blayout, shape, type, a, b, astride, bstride, d, op)                                   \
    ZEROS "wmma.load.a.sync.aligned." alayout "." shape ".global." type " {" a "}, [%rd1], " astride ";\n"   \
          "wmma.load.b.sync.aligned." blayout "." shape ".global." type " {" b "}, [%rd1+1024], " bstride    \
          ";\n"                                                                                              \
          "wmma.mma" op ".sync.aligned." alayout "." blayout "." shape ".s32." type "." type ".s32 {" d      \
          "}, {" a "}, {" b "}, {" d "};\nwmma.store.d.sync.aligned.row." shape ".shared.s32 [%r4], {" d     \
          "};\nbar.sync 0;\n"
#define SHOW256 "mad.lo.u32 %r6, %r0, 32, %r4; ld.shared.u64 %rd9, [%r6+8];"
#define SHOW64  "mad.lo.u32 %r6, %r0, 8, %r4; ld.shared.u64 %rd9, [%r6];"

/* clang-format off */
static const ops_test Matrix[] = {
    {"ld_x1", FILL16 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5];" ONE("%r9"), x1},
    {"ld_x2", FILL16 "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r9, %r10}, [%r5];" TWO("%r9", "%r10"), x2},
    {"ld_x4", FILL16 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, [%r5];" TWO("%r11",
        "%r12"), x4},
    {"ld_x1_trans", FILL16 "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r9}, [%r5];" ONE("%r9"),
        x1_trans},
    {"ld_x4_trans", FILL16 "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r9, %r10, %r11, %r12}, [%r5];"
        TWO("%r10", "%r12"),
        x4_trans},
    {"ld_generic", FILL16 "cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5;\n"
        "ldmatrix.sync.aligned.m8n8.x1.b16 {%r9}, [%rd5];" ONE("%r9"), x1},
    {"ld_x1_needs_8_addresses", FILL16 "setp.ge.u32 %p1, %r0, 8; @%p1 mov.u32 %r5, 0x7FFFFFF1;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5];" ONE("%r9"), x1},
    {"ld_b8", FILL8 "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r9, %r10}, [%r5];" TWO("%r9",
        "%r10"), b8_x1},
    {"ld_b4_8x16", FILL8 "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r9}, [%r5];" ONE("%r9"),
        b4_x1},
    {"ld_b6_8x16", FILL8 "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%r9, %r10}, [%r5];"
        TWO("%r9", "%r10"), b6_x2},
    {"ld_b4_16x16", FILL8 "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64 {%r9, %r10}, "
        "[%r5];" TWO("%r9", "%r10"), b4_16},
    {"ld_b6_16x16", FILL8 "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 {%r9, %r10}, "
        "[%r5];" TWO("%r9", "%r10"), b6_16},
    {"ld_misaligned", FILL16 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5+8];",
        .status = PTXVM_ERROR_MISALIGNED},
    {"ld_outside", FILL16 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, [%r5+3600];",
        .status = PTXVM_ERROR_ADDRESS},
    {"ld_outside", ROWS "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5+262144];", .status = PTXVM_ERROR_ADDRESS},
    {"st_outside", ROWS OWN16 "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5+262144], {%r10};", .status = PTXVM_ERROR_ADDRESS},
    {"st_x1", ROWS OWN16 "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r10};" SHOW("0"), own_pair},
    {"st_x1_trans", ROWS OWN16 "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r5], {%r10};" SHOW("0"),
        stored_trans},
    {"st_x4", ROWS OWN16 "add.u32 %r11, %r10, 0x01000100; add.u32 %r12, %r10, 0x02000200; "
        "add.u32 %r13, %r10, 0x03000300;\n"
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r10, %r11, %r12, %r13};" SHOW("384"), x4_stored},
    {"st_b8", ROWS "shl.b32 %r10, %r0, 2; mad.lo.u32 %r10, %r10, 0x01010101, 0x03020100;\n"
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r5], {%r10};" SHOW("0"), stored_b8},
    {"movmatrix", OWN16 "movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r10;" ONE("%r9"), x1_trans},
    {"wmma_load_c_store_d", "mov.u32 %r4, sm; wmma.load.c.sync.aligned.row.m16n16k16.global.f32\n"
        "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1];\n"
        "wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%r4], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, "
        "%f8}, 16;\n"
        "bar.sync 0; mad.lo.u32 %r6, %r0, 32, %r4; ld.shared.u32 %rd9, [%r6+12];", wmma_transposed},
    {"wmma_stride", "mov.u32 %r4, sm; mov.u32 %r7, 20; wmma.load.c.sync.aligned.row.m16n16k16.global.f32\n"
        "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1], %r7;\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r4], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, "
        "%f8}, 16;\n"
        "bar.sync 0; mad.lo.u32 %r6, %r0, 32, %r4; ld.shared.u32 %rd9, [%r6+12];", wmma_stride},
    {"wmma_u8_16x16", WMMA("row", "col", "m16n16k16", "u8", "%r10, %r11", "%r12, %r13", "16", "16", EIGHT,
        "") SHOW256, u8_16x16},
    {"wmma_s8_16x16_turned", WMMA("col", "row", "m16n16k16", "s8", "%r10, %r11", "%r12, %r13", "16", "16",
        EIGHT, "") SHOW256,
        s8_16x16_turned},
    {"wmma_s8_32x8", WMMA("row", "col", "m32n8k16", "s8", "%r10, %r11, %r12, %r13", "%r14", "16", "16",
        EIGHT, "") SHOW256, s8_32x8},
    {"wmma_u8_8x32", WMMA("row", "col", "m8n32k16", "u8", "%r10", "%r11, %r12, %r13, %r14", "16", "16",
        EIGHT, "") SHOW256, u8_8x32},
    {"wmma_u8_8x32_turned", WMMA("col", "row", "m8n32k16", "u8", "%r10", "%r11, %r12, %r13, %r14", "8",
        "32", EIGHT, "") SHOW256,
        u8_8x32_turned},
    {"wmma_u4", WMMA("row", "col", "m8n8k32", "u4", "%r10", "%r11", "32", "32", TWO_SUMS, "") SHOW64,
        u4_8x8, "sm_80"},
    {"wmma_s4", WMMA("row", "col", "m8n8k32", "s4", "%r10", "%r11", "32", "32", TWO_SUMS, "") SHOW64,
        s4_8x8, "sm_80"},
    {"wmma_b1_and", WMMA("row", "col", "m8n8k128", "b1", "%r10", "%r11", "128", "128", TWO_SUMS,
        ".and.popc") SHOW64, b1_8x8,
        "sm_80"},
    {"wmma_outside", "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, "
        "%f8}, [%rd1+3200];",
        .status = PTXVM_ERROR_ADDRESS},
};
/* clang-format on */

OPS_TESTS(OpsMatrix, Matrix)
