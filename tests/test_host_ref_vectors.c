/* GGUF blocks in the host reference against known answers that another implementation computed; skipped where they are
 * not. */
#include "formats/gguf_vectors.h"
#include "test_host_ref.h"

#include <stdlib.h>

static void check(const gguf_file *file, const gguf_vectors *v)
{
    ref_quant_spec spec = {.data = QDNN_DATA_F32, .block = file->block};
    const int64_t n = (int64_t)((size_t)v->lines * v->block_values);
    const size_t bytes = (size_t)v->lines * v->block_bytes;
    CHECK_EQ_I64(ref_sizes_of(&spec, 1, n).codes, (int64_t)bytes);
    uint8_t *blocks = malloc(bytes);
    float *values = malloc((size_t)n * sizeof *values);
    if (CHECK(blocks && values) && file->quantize) {
        ref_quantize(&spec, 1, n, v->values, &(ref_arrays){.codes = blocks});
        CHECK_EQ_MEM(blocks, v->blocks, bytes);
    } else if (blocks && values) {
        ref_dequantize(&spec, 1, n, &(ref_arrays){.codes = v->blocks}, values);
        CHECK_EQ_MEM(values, v->values, (size_t)n * sizeof *values);
    }
    free(blocks);
    free(values);
}

TEST_ROWS(HostRefVectors, NoByteDiffers, gguf_files)
{
    gguf_vectors v;
    if (!gguf_vectors_read(&gguf_files[index], &v))
        SKIP("no vectors: QDNN_VECTORS_DIR names no folder with gguf/%s.txt", gguf_files[index].name);
    if (CHECK(v.lines >= 24))
        check(&gguf_files[index], &v);
    gguf_vectors_free(&v);
}
