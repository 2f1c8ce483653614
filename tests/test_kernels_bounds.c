/* What kernels promise ptxas: threads per block, and the blocks that an SM is to hold, which limits registers. Without the second, ptxas aims for
 * fewer registers and spills, or takes more and halves the warps; no result changes. */
#include "kernels/kernels.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

typedef struct bounds {
    const char *name, *kernel, *words;
    int threads, blocks; /* blocks: 0, nothing is promised */
} bounds;

static const bounds promised[] = {
    {"MatrixCodes", "quantize_int4", "groups=columns", 128, 2},
    {"MatrixValues", "dequantize_int4", "layout=interleaved", 128, 2},
    {"MatrixScales", "scale_int4", "groups=columns", 256, 3},
    {"Repacked", "repack_int4", "", 128, 2},
    {"FlatScales", "scale_int4", "", 256, 0},
    {"FlatCodes", "quantize_int4", "", 256, 3},
    {"FlatValues", "dequantize_int4", "", 256, 0},
    {"ScalesAndCodes", "quantize_dynamic_int4", "", 256, 2},
    {"Ranges", "range_absmax", "", 256, 4},
    {"BlocksWithoutSearch", "quantize_gguf_q8_0", "", 256, 0},
    {"BlocksWithSearch", "quantize_gguf_q4_k", "", 128, 4},
    {"Staged", "matmul_int4", "", 256, 2},
    {"StagedExperts", "matmul_int4", "grouped=yes tile_rows=16", 256, 1},
    {"Lanewise", "matmul_int4", "product=lanewise tile_rows=32", 0, 2},
    {"Columns", "matmul_int4", "product=columns tile_rows=1 reduction=rows", 0, 1},
    {"Ternary", "matmul_gguf_tq1_0", "product=ternary tile_rows=1", 0, 4},
    {"TernaryRows", "matmul_gguf_tq1_0", "product=ternary tile_rows=4", 0, 2},
    {"Dots", "int4_dot", "", 256, 3},
    {"Windows", "int8_conv2d", "", 256, 3},
    {"BytesTransposed", "transpose_bytes", "", 256, 3},
    {"Top", "int4_topk", "", 256, 2},
    {"FakeQuantized", "fake_quantize", "", 256, 3},
    {"LearnedSteps", "lsq_backward", "", 256, 3},
};

static int number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? atoi(at + strlen(word)) : 0;
}

TEST_ROWS(KernelBounds, ArePromised, promised)
{
    const bounds *p = &promised[index];
    const kernel_row *row = kernel_find(p->kernel);
    kernel_spec spec = kernel_spec_default();
    kernel_text text = {0};
    ptx_error error;
    char why[512] = "";
    if (!kernel_spec_set_words(row, &spec, p->words, why, sizeof why) ||
        !kernel_spec_settle_kernel(row, &spec, why, sizeof why)) {
        FAIL("%s", why);
        return;
    }
    if (!kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &text, &error)) {
        FAIL("%s", error.text);
        return;
    }
    if (p->threads)
        CHECK_EQ_I64(number_behind(text.ptx, ".reqntid "), p->threads);
    CHECK_EQ_I64(number_behind(text.ptx, ".minnctapersm "), p->blocks);
    free(text.ptx);
}
