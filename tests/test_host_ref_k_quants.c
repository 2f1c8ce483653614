/* Quantizing K-quants in the host reference: blocks that ggml's reference quantizer computed, and input that it leaves
 * undefined. */
#include "formats/gguf_excerpts.h"
#include "test_host_ref.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Known answers ---- */

/* Integers over 2^12, so that every build makes the same numbers. Kind 0: bell-shaped, all sub-blocks alike. Kind 1: every
 * sixteen elements of another kind and size. */
static int spread(uint32_t *state)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (int)(*state >> 20) - 2048;
    }
    return sum;
}

static float unlike(int sub, int i, int value)
{
    switch (sub % 8) {
    case 0:
        return 0.0f;
    case 1:
        return i == sub ? -3.0f : 0.0f; /* one-hot */
    case 2:
        return -0.375f; /* constant */
    case 3:
        return (float)i * 0.25f - 1.0f; /* sorted, in equal steps */
    case 4:
        return (float)abs(value) * 0x1p-12f; /* positive */
    case 5:
        return (float)value * 0x1p-22f; /* so small that its scale is rounded to 0 */
    case 6:
        return value % 2 ? 1.5f : -1.5f; /* equal magnitudes */
    default:
        return (float)value * 0x1p-10f;
    }
}

static void make_block(int kind, float *x)
{
    uint32_t state = 1;
    for (int i = 0; i < 256; i++) {
        int value = spread(&state);
        x[i] = kind == 0 ? (float)value * 0x1p-12f : unlike(i / 16, i % 16, value);
    }
}

/* clang-format off */
static const struct {
    const char *name;
    qdnnBlockFormat_t block;
    int kind;
    const char *bytes;
} known[] = {
    {"q2_k_alike", QDNN_BLOCK_Q2_K, 0,
     "bcabaabe69389c9c9cde7bd9ff487cad9999a99f661855b65af7cea95d7ea09a89a7c3da255a9b4582f9898a"
     "a68bce88691e66759546e595a6a2e51b711057661d985f6a8e6e4cea6d7f63be4e6d5c2a252cc42f"},
    {"q2_k_unlike", QDNN_BLOCK_Q2_K, 1,
     "00951025010055de00951025030055ff201010c020000030c0f030101030100083a0c3d3275797478bfb8b8b"
     "ab8fcf8fd0e000d010f000d000000020e0d0d00013935363876747e7ab786bbb4b6f5f2ffd324735"},
    {"q3_k_alike", QDNN_BLOCK_Q3_K, 0,
     "d686e2d739ae7c316f717782febba0b764c37715fa3f659ea7b096b77ba5e516e3c7f68a39c04b88850779b3"
     "1b0cb180efd65f8de341cb01dd4ed1d021ef02d015a3076da10341a1839800ac2dae3574025cc2bca4f1e4ed"
     "31031280e0330169b95c4c690015968b3cccfc0f79a3"},
    {"q3_k_unlike", QDNN_BLOCK_Q3_K, 1,
     "0004800c8004c400cc8880800000008477f27737fb3f559d958195955995d515200030c030000000c0c01030"
     "30003000e4d45480e040cc0cdc48d8d424e400d07050f060e040c060c0f0f0d0506070f00444c4b0a0f0ecec"
     "3c081884e4340060000022227b0078d066bb6ad1312a"},
    {"q4_k_alike", QDNN_BLOCK_Q4_K, 0,
     "d01a2727eef4e6f8edefdae99f77f90577a794bc4b703749aa3fbb75b7d81178a75c0eaa778ace732b958389"
     "7aadfb80837587a6680646ae35ddb098646d9896829dd3b51c47976585cf93847b72e583d6f97997868a9586"
     "895887af46437d8895608c68a899a079929d0c87979592598c33886dd580e8b5c9bbfb337f3587680aa96a3b"
     "b66b67eb8b7f7dbe577b791c"},
    {"q4_k_unlike", QDNN_BLOCK_Q4_K, 1,
     "9e21592d525606ffa40b00f242b60bf92f2f2f2f2f2f2f2f2f2f2f2f2f2f2f2f0f102f3f4f5f6f7f8f9fafbf"
     "cfdfefff464242804540414f818e4b45434e44418090d0b00030906080d090807070f0802f2f2f2f2f2f2f2f"
     "2f2f2f2f2f2f2f2f0f1f2f3f4f5f6f7f8f90afbfcfdfefffb4b962b667bf62b660626269b9b6b46200b07040"
     "d06060f0908080c050808010"},
    {"q5_k_alike", QDNN_BLOCK_Q5_K, 0,
     "95164a27eef5e6f5edeedaa78f57f9f7e83ada6ba5b0e0adf3ddeb3c42079c596acd795bb4732bd0697e5aeb"
     "256b6b5aff4e387a77e07f93456f78fb6fa223e15eba0d44ef058ee7463a0703e64cf811160a1f6cd20c9d6c"
     "6bcb7031d9db303e143bc77b188e3eda1abf2729f704fa26acf3e43e0d152b0d12b10f5f8c87ecf13ac018c0"
     "503240f3252b091e2e3a34a3096701bc9b00d16b8367f667df7b0ec10442c5777dc7beb8f7effb6eaee7e42a"},
    {"q5_k_unlike", QDNN_BLOCK_Q5_K, 1,
     "901d532d525706ffa40c00f342c70bf991d1119911d11195191d1551d19591111998191991111991bbabbbbb"
     "33b3bb3b5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f0f204f6f8fafcfef0f2f4f6f8fafcfef8c8385108b81828e"
     "121c878a868c87830020b060107020c000a02010e0f0e0105f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f0f2f4f6f"
     "8fafcfef0f204f6f8fafcfef6863c46dce6ec36dc1c5c4c3626c68c40060d07090d0d0f010000080b0000020"},
    {"q6_k_alike", QDNN_BLOCK_Q6_K, 0,
     "cb4abf005a10eb03262a8b647b2185dfda818716cbc7d84c49029c54e9d53da07eab78d10dde9cc0fa09913f"
     "0f0a203d95696ee7549f5f0297897e7fd2b8018e98c9c8e42704cb25fb5e41c0383377bee441c1712065f146"
     "7b06b14ded65f9e6eb20e88cc2f05f22f13e03383505e86413a690f7f794959c12e2f1d052f3f3646569582f"
     "92e49106aa033e55a98e5055654b2f26c99653a86e0564664a67226462c159a61a49165a19692ac4bedf5899"
     "19a45b16ba5a68d6984b438969595806a5abaf614554576c6b8b5792804b649e478f"},
    {"q6_k_unlike", QDNN_BLOCK_Q6_K, 1,
     "40c0b00050f0e010e0308060903080d0d0808010c0c0d04040009050e0d03090111111f111111111f1f11111"
     "111111119b6966e3509d5a0795827f7cd9b6038070c0c0202000c020f0b0c0c0d03070b0e040c0702060f040"
     "7000b040e060f0e01111f111f111f111f1f1f1f1111111f11ba996f3f09d9a9715e2ffdc59f6f360101010e0"
     "10101000d0c00010100010106a482a2aca9656a666066262426222621000d010d000d010d0d0d0c0001010d0"
     "1aaa5a1aba5666d69644428262525202003e08c6eb002080003e08c6da00e0742516"},
};
/* clang-format on */

static void encode(qdnnBlockFormat_t format, const float *x, uint8_t *block)
{
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = format};
    ref_arrays arrays = {.codes = block};
    memset(block, 0xAA, GGUF_BYTES_MAX);
    ref_quantize(&spec, 1, 256, x, &arrays);
}

static void decode(qdnnBlockFormat_t format, uint8_t *block, float *y)
{
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = format};
    ref_arrays arrays = {.codes = block};
    ref_dequantize(&spec, 1, 256, &arrays, y);
}

TEST_ROWS(HostRefKQuants, HaveGgmlsBytes, known)
{
    uint8_t expected[GGUF_BYTES_MAX], block[GGUF_BYTES_MAX];
    float x[256];
    int bytes = gguf_read_bytes(known[index].bytes, expected);
    make_block(known[index].kind, x);
    encode(known[index].block, x, block);
    CHECK_EQ_MEM(block, expected, (size_t)bytes);
    CHECK_EQ_U32(block[bytes], 0xAA);
}

/* ---- Special blocks ---- */

static const struct {
    const char *name;
    qdnnBlockFormat_t block;
    int bytes, d, dmin; /* dmin is d where there is none */
    float most;         /* the largest scale, and minimum, that can be stored */
} formats[] = {{"q2_k", QDNN_BLOCK_Q2_K, 84, 80, 82, 65504.0f * 15},
               {"q3_k", QDNN_BLOCK_Q3_K, 110, 108, 108, 65504.0f * 32},
               {"q4_k", QDNN_BLOCK_Q4_K, 144, 0, 2, 65504.0f * 63},
               {"q5_k", QDNN_BLOCK_Q5_K, 176, 0, 2, 65504.0f * 63},
               {"q6_k", QDNN_BLOCK_Q6_K, 210, 208, 208, 65504.0f * 128}};

TEST_ROWS(HostRefKQuants, ZerosAreZeroBytes, formats)
{
    static const uint8_t zeros[GGUF_BYTES_MAX];
    uint8_t block[GGUF_BYTES_MAX];
    float x[256];
    for (int i = 0; i < 256; i++)
        x[i] = i % 3 ? 0.0f : i % 2 ? -0.0f : NAN;
    encode(formats[index].block, x, block);
    CHECK_EQ_MEM(block, zeros, (size_t)formats[index].bytes);
}

/* Below 1e-15 Q3_K and Q6_K see zeros; the scales of the others have no f16. */
TEST_ROWS(HostRefKQuants, TinyBlocksDecodeToZero, formats)
{
    static const float sizes[] = {0x1p-149f, 0x1p-130f, 1e-30f, 1e-15f, 3e-15f};
    uint8_t block[GGUF_BYTES_MAX];
    float x[256], y[256];
    for (int s = 0; s < 5; s++) {
        for (int i = 0; i < 256; i++)
            x[i] = sizes[s] * (float)(i % 7 - 3);
        encode(formats[index].block, x, block);
        decode(formats[index].block, block, y);
        for (int i = 0; i < 256; i++)
            CHECK(y[i] == 0.0f);
    }
}

/* 1e-15 itself is not a zero for Q3_K: it has codes, though their scale has no f16. */
TEST_CASE(HostRefKQuants, TheLeastMagnitudeIsCoded)
{
    static const uint8_t zeros[GGUF_BYTES_MAX];
    const float sizes[] = {1e-15f, -1e-15f, nextafterf(1e-15f, 0.0f), -nextafterf(1e-15f, 0.0f)};
    for (int i = 0; i < 4; i++) {
        uint8_t block[GGUF_BYTES_MAX];
        float x[256] = {0};
        x[37] = sizes[i];
        encode(QDNN_BLOCK_Q3_K, x, block);
        CHECK_EQ_I64(memcmp(block, zeros, 110) != 0, i < 2);
    }
}

/* One element that no format holds: it comes back as large as can be, with its sign, and the others as 0. ggml stores an
 * infinite d. */
TEST_ROWS(HostRefKQuants, OneHugeElementSaturates, formats)
{
    static const float sizes[] = {1e10f, -1e13f, 1e20f, -3e38f, INFINITY, -INFINITY};
    uint8_t block[GGUF_BYTES_MAX];
    for (int s = 0; s < 6; s++) {
        float x[256] = {[37] = sizes[s], [38] = NAN}, y[256];
        encode(formats[index].block, x, block);
        decode(formats[index].block, block, y);
        for (int i = 0; i < 256; i++)
            CHECK(i == 37 ? y[i] * sizes[s] > 0 && fabsf(y[i]) >= formats[index].most : y[i] == 0.0f);
    }
}

/* No number that goes in makes a stored scale that is none. */
TEST_ROWS(HostRefKQuants, ScalesAreAlwaysFinite, formats)
{
    uint8_t block[GGUF_BYTES_MAX];
    uint32_t state = 3;
    for (int turn = 0; turn < 300; turn++) {
        float x[256];
        for (int i = 0; i < 256; i++) {
            state = state * 1664525u + 1013904223u;
            x[i] = ref_f32_from_bits(turn % 3 ? state : (state & 0x80FFFFFF) | 0x7E000000);
        }
        encode(formats[index].block, x, block);
        CHECK((block[formats[index].d + 1] & 0x7C) != 0x7C);
        CHECK((block[formats[index].dmin + 1] & 0x7C) != 0x7C);
    }
}

/* The largest magnitude of a block of one value is met. */
TEST_ROWS(HostRefKQuants, Constants, formats)
{
    static const float values[] = {1.0f, -1.0f, 0.25f, -96.0f};
    uint8_t block[GGUF_BYTES_MAX];
    float x[256], y[256];
    for (int v = 0; v < 4; v++) {
        for (int i = 0; i < 256; i++)
            x[i] = values[v];
        encode(formats[index].block, x, block);
        decode(formats[index].block, block, y);
        for (int i = 0; i < 256; i++)
            CHECK(fabsf(y[i] - values[v]) <= fabsf(values[v]) * 0x1p-10f);
    }
}
