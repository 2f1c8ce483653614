/* A wrong spec is a defect of the caller: the host reference names the rule on stderr and aborts. */
#include "test_host_ref.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef ref_quant_spec S;

/* clang-format off */
static const struct {
    const char *name;
    S spec;
    int64_t rows, columns;
    const char *message;
} wrong[] = {
    {"group_size", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4}, 1, 8, "group_size must be at least 1"},
    {"data", {.data = QDNN_DATA_U8, .storage = QDNN_DATA_I4, .group_size = 1}, 1, 8, "data must be F32, F16, BF16 or F64"},
    {"storage", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_U64, .group_size = 1}, 1, 8, "storage 0x03 with code kind 0"},
    {"bits_of_i4", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .bits = 3, .group_size = 1}, 1, 8, "bits is 3; storage I4 has 4"},
    {"bits", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I8, .bits = 9, .group_size = 1}, 1, 8, "bits is 9; integer codes have 2 to 6, or 8"},
    {"bits_of_fp8", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_F8E4M3, .bits = 4, .group_size = 1}, 1, 8, "bits is 4; this storage has 8"},
    {"zeros_of_nf4", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_NF4, .zero_kind = QDNN_ZERO_POINT, .group_size = 1}, 1, 8, "only integer codes have zeros"},
    {"negative", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1}, -1, 8, "rows and columns must not be negative"},
    {"overflow", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1}, INT64_MAX, 2, "rows * columns must fit"},
    {"floor", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .floor = -1}, 1, 8, "floor must be finite and not negative"},
    {"channels", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .groups = QDNN_GROUPS_ROWS, .channels = 2}, 1, 8, "only flat groups have channels"},
    {"flat_swizzle", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .scale_swizzle = QDNN_SWIZZLE_128X4}, 1, 8, "flat groups have no group_rows"},
    {"group_index", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .groups = QDNN_GROUPS_ROWS, .group_index = true}, 1, 8, "group_index needs groups down columns"},
    {"global", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_FP4, .group_size = 1, .global_scale = 1}, 1, 8, "a global scale needs E4M3 scales"},
    {"nested", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_NF4, .group_size = 1, .nested = true, .scale = QDNN_SCALE_F16}, 1, 8, "nested scales are F32"},
    {"zeros_with_e8m0", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I8, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_I8, .scale = QDNN_SCALE_E8M0}, 1, 8, "exclude a global scale and E8M0"},
    {"zero_type", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_U64}, 1, 8, "zero must be U8"},
    {"signed_zeros", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I8, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_U8}, 1, 8, "zeros of codes from -128 to 127 do not fit"},
    {"wide_zeros", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_U8, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_I8}, 1, 8, "zeros of codes from 0 to 255 do not fit"},
    {"minima", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .zero_kind = QDNN_ZERO_MINIMUM, .zero = QDNN_DATA_U8}, 1, 8, "minima must be F32"},
    {"tight", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_U8, .range = QDNN_RANGE_TIGHT}, 1, 8, "a tight range needs zeros of float type"},
    {"minus_one", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .zero_kind = QDNN_ZERO_POINT, .zero = QDNN_DATA_F32, .zero_minus_one = true}, 1, 8, "zero_minus_one is for integer zeros"},
    {"awq", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I4, .group_size = 1, .layout = QDNN_LAYOUT_AWQ}, 1, 9, "AWQ has 4 bits and a multiple of 8 columns"},
    {"nibbles", {.data = QDNN_DATA_F32, .storage = QDNN_DATA_I8, .group_size = 1, .nibble_order = QDNN_NIBBLE_HIGH_FIRST}, 1, 8, "high first is for 4-bit codes in bytes"},
    {"half_a_block", {.data = QDNN_DATA_F32, .block = QDNN_BLOCK_Q4_0}, 2, 16, "columns is 16; a row has whole blocks of 32"},
    {"no_such_block", {.data = QDNN_DATA_F32, .block = (qdnnBlockFormat_t)99}, 1, 32, "block format 99 has no row"},
};
/* clang-format on */

/* Runs in a process of its own; stderr goes to `text`. Returns the signal that ended it. */
static int signal_of(void (*work)(const void *), const void *argument, char *text, size_t size)
{
    int ends[2], status = 0;
    if (!CHECK(pipe(ends) == 0))
        return 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        work(argument);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void ask_for_sizes(const void *argument)
{
    int index = *(const int *)argument;
    ref_sizes_of(&wrong[index].spec, wrong[index].rows, wrong[index].columns);
}

TEST_ROWS(HostRefSpec, WrongOnesAreNamed, wrong)
{
    char text[512];
    CHECK_EQ_I64(signal_of(ask_for_sizes, &index, text, sizeof text), SIGABRT);
    CHECK_HAS(text, "host_ref: ");
    CHECK_HAS(text, wrong[index].message);
}

static void write_iq4(const void *argument)
{
    const ref_arrays *arrays = argument;
    static const float x[256];
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = QDNN_BLOCK_IQ4_XS};
    ref_quantize(&spec, 1, 256, x, arrays);
}

TEST_CASE(HostRefSpec, ArraysThatCannotBe)
{
    char text[512];
    uint8_t blocks[136];
    ref_arrays arrays = {.codes = blocks};
    CHECK_EQ_I64(signal_of(write_iq4, &arrays, text, sizeof text), SIGABRT);
    CHECK_HAS(text, "block format 14 can only be decoded");
}
