/* GGUF blocks through the public API, on ptxvm, against known answers that another implementation computed: excerpts of
 * them, and all where they are; and what the API says to rows that are not whole blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_buffer.h"
#include "device/small_product.h"
#include "formats/gguf_vectors.h"
#include "device/under_test.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0] };

static void describe(qdnnBlockFormat_t block, qdnnDataType_t data, int64_t rows, int64_t columns,
                     qdnnTensorDescriptor_t *tensor, qdnnQuantDescriptor_t *quant)
{
    CHECK_QDNN(qdnnCreateTensorDescriptor(tensor));
    CHECK_QDNN(qdnnCreateQuantDescriptor(quant));
    CHECK_QDNN(qdnnSetTensorDescriptor(*tensor, data, 2, (const int64_t[]){rows, columns}, NULL));
    CHECK_QDNN(qdnnSetQuantAttribute(*quant, QDNN_QUANT_BLOCK_FORMAT, block));
}

/* Rows of one block each; the other form of them is compared with what is known. */
typedef struct known_rows {
    qdnnBlockFormat_t block;
    bool quantize;
    int64_t rows;
    size_t block_bytes, block_values;
    const uint8_t *blocks;
    const float *values;
} known_rows;

static void check_known(qdnnHandle_t handle, const known_rows *k)
{
    const size_t bytes = (size_t)k->rows * k->block_bytes,
                 size = (size_t)k->rows * k->block_values * sizeof(float);
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    device_buffer blocks = {0}, values = {0};
    size_t codes_bytes = 0;
    describe(k->block, QDNN_DATA_F32, k->rows, (int64_t)k->block_values, &tensor, &quant);
    CHECK_QDNN(qdnnGetQuantizedSizes(quant, tensor, &codes_bytes, NULL, NULL));
    CHECK_EQ_U64(codes_bytes, bytes);
    bool ok =
        device_buffer_make(handle, BUFFER_BANDS, bytes, 0, &blocks) &&
        device_buffer_make(handle, BUFFER_BANDS, size, 0, &values) &&
        (k->quantize ? device_buffer_write(&values, k->values) : device_buffer_write(&blocks, k->blocks));
    void *at = device_buffer_at(&blocks), *data = device_buffer_at(&values);
    if (ok && CHECK_QDNN(k->quantize ? qdnnQuantize(handle, tensor, data, quant, NULL, NULL, at)
                                     : qdnnDequantize(handle, quant, at, NULL, NULL, tensor, data))) {
        device_buffer_check(&blocks, k->blocks, "blocks");
        device_buffer_check(&values, k->values, "values");
    }
    device_buffer_free(&blocks);
    device_buffer_free(&values);
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
}

static void check_on_every_sm(const known_rows *k)
{
    for (int i = 0; i < SMS; i++) {
        qdnnHandle_t handle = device_begin(sms[i], i, "all");
        test_push_note("%s", sms[i]);
        if (handle)
            check_known(handle, k);
        test_pop_note();
        device_end(handle);
    }
}

DEVICE_ROWS(ParityGguf, NoByteDiffers, gguf_files)
{
    const gguf_file *file = &gguf_files[index];
    gguf_vectors v;
    if (!gguf_vectors_read(file, &v))
        SKIP("no vectors: QDNN_VECTORS_DIR names no folder with gguf/%s.txt", file->name);
    if (CHECK(v.lines >= 24))
        check_on_every_sm(&(known_rows){file->block, file->quantize, v.lines, v.block_bytes, v.block_values,
                                        v.blocks, v.values});
    gguf_vectors_free(&v);
}

DEVICE_ROWS(ParityGguf, Encodes, gguf_encoded_blocks)
{
    const gguf_encoded *known = &gguf_encoded_blocks[index];
    uint8_t block[GGUF_BYTES_MAX];
    float values[GGUF_VALUES_MAX];
    size_t bytes = (size_t)gguf_read_bytes(known->bytes, block),
           count = (size_t)gguf_read_values(known->values, values);
    check_on_every_sm(&(known_rows){known->block, true, 1, bytes, count, block, values});
}

/* Some of the values are known. */
static void check_decoded(qdnnHandle_t handle, const gguf_decoded *known)
{
    uint8_t block[GGUF_BYTES_MAX];
    uint32_t values[GGUF_VALUES_MAX];
    size_t bytes = (size_t)gguf_read_bytes(known->bytes, block), count = (size_t)known->values[7].index + 1;
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    device_buffer in = {0}, out = {0};
    describe(known->block, QDNN_DATA_F32, 1, (int64_t)count, &tensor, &quant);
    if (device_buffer_make(handle, BUFFER_EXACT, bytes, 0, &in) && device_buffer_write(&in, block) &&
        device_buffer_make(handle, BUFFER_EXACT, 4 * count, 0, &out) &&
        CHECK_QDNN(qdnnDequantize(handle, quant, device_buffer_at(&in), NULL, NULL, tensor,
                                  device_buffer_at(&out))) &&
        CHECK_QDNN(qdnnCopyToHost(handle, values, device_buffer_at(&out), 4 * count)))
        for (int i = 0; i < 8; i++)
            CHECK_EQ_U32(values[known->values[i].index], known->values[i].bits);
    device_buffer_free(&in);
    device_buffer_free(&out);
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
}

DEVICE_ROWS(ParityGguf, Decodes, gguf_decoded_blocks)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], index, "all");
    if (handle)
        check_decoded(handle, &gguf_decoded_blocks[index]);
    device_end(handle);
}

/* ---- Known answers by way of tensor cores: x is the identity, so y is the weights as bf16 ---- */

enum { IDENTITY = 512, BF16_ONE = 0x3F80 }; /* a strip of the sum, and so one or more blocks of a row */

typedef struct known_weights {
    int64_t n, of_row; /* rows, and how many blocks each has */
    uint8_t *blocks;
    float *values; /* [n, IDENTITY] */
} known_weights;

/* Row n begins with block n; the next one follows it, and the first follows the last. */
static bool make_known_weights(const gguf_vectors *v, known_weights *w)
{
    *w = (known_weights){.n = (v->lines + 15) / 16 * 16, .of_row = IDENTITY / (int64_t)v->block_values};
    w->blocks = malloc((size_t)(w->n * w->of_row) * v->block_bytes);
    w->values = malloc((size_t)w->n * IDENTITY * sizeof *w->values);
    for (int64_t i = 0; w->blocks && w->values && i < w->n * w->of_row; i++) {
        const int64_t from = (i / w->of_row + i % w->of_row) % v->lines;
        memcpy(w->blocks + (size_t)i * v->block_bytes, v->blocks + (size_t)from * v->block_bytes,
               v->block_bytes);
        memcpy(w->values + (size_t)i * v->block_values, v->values + (size_t)from * v->block_values,
               v->block_values * sizeof *v->values);
    }
    return CHECK(w->blocks && w->values);
}

static float rounded_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* An infinity times 0 is NaN: no sum of a row with infinities or NaN is finite. */
static int64_t wrong_in_row(const known_weights *w, const float *y, int64_t n)
{
    bool is_finite = true;
    int64_t wrong = 0;
    for (int64_t k = 0; k < IDENTITY; k++)
        is_finite &= isfinite(rounded_to_bf16(w->values[n * IDENTITY + k])) != 0;
    for (int64_t m = 0; m < IDENTITY; m++) {
        const float got = y[m * w->n + n], expected = rounded_to_bf16(w->values[n * IDENTITY + m]);
        wrong += is_finite ? got != expected : isfinite(got) != 0;
    }
    return wrong;
}

static void check_identity(const known_weights *w, const float *y)
{
    int64_t wrong = 0;
    for (int64_t n = 0; n < w->n; n++)
        wrong += wrong_in_row(w, y, n);
    CHECK_EQ_I64(wrong, 0);
}

/* Reorders the codes on the device, in place of those that were there: the sizes are equal. */
static bool prepack_codes(small_product *p, size_t bytes)
{
    device_buffer packed = {0};
    qdnnPlan_t plan = NULL;
    bool ok = device_buffer_make(p->handle, BUFFER_EXACT, bytes, 0, &packed) &&
              CHECK_QDNN(qdnnCreatePrepackPlan(p->handle, p->matmul, p->w, p->quant, &plan));
    const qdnnBinding_t bindings[] = {
        {QDNN_OPERAND_CODES, device_buffer_at(&p->at[QDNN_OPERAND_CODES]), bytes},
        {QDNN_OPERAND_REPACKED, device_buffer_at(&packed), bytes}};
    ok = ok && CHECK_QDNN(qdnnExecute(p->handle, plan, bindings, 2, NULL, 0)) &&
         CHECK_QDNN(qdnnSynchronize(p->handle));
    qdnnDestroyPlan(plan);
    device_buffer_free(&p->at[QDNN_OPERAND_CODES]);
    p->at[QDNN_OPERAND_CODES] = packed;
    return ok && small_product_set(p, QDNN_MATMUL_PREPACKED, 1);
}

static void run_identity(qdnnHandle_t handle, const gguf_file *file, const known_weights *w, size_t bytes,
                         bool prepacked)
{
    static uint16_t x[IDENTITY * IDENTITY];
    const int64_t mnk[] = {IDENTITY, w->n, IDENTITY}, dims[] = {IDENTITY, IDENTITY};
    const qdnnWeights_t weights =
        (qdnnWeights_t)(QDNN_WEIGHTS_GGUF_Q4_0 - QDNN_BLOCK_Q4_0 + (int)file->block);
    float *y = malloc((size_t)(IDENTITY * w->n) * sizeof *y);
    small_product p;
    for (int i = 0; i < IDENTITY; i++)
        x[i * IDENTITY + i] = BF16_ONE;
    if (small_product_begin(&p, handle, mnk, 0, (small_weights){weights, 0, false}) && CHECK(y != NULL) &&
        CHECK_QDNN(qdnnSetTensorDescriptor(p.x, QDNN_DATA_BF16, 2, dims, NULL)) &&
        small_product_set(&p, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_TENSOR) &&
        small_product_put(&p, QDNN_OPERAND_X, x, sizeof x) &&
        small_product_put(&p, QDNN_OPERAND_CODES, w->blocks, bytes) &&
        (!prepacked || prepack_codes(&p, bytes)) && small_product_plan(&p) && small_product_run(&p, y))
        check_identity(w, y);
    small_product_end(&p);
    free(y);
}

/* The known blocks have every entry of a codebook, every sign, scale and direction (HostRefVectors.ReachEveryNumber): so products
 * on tensor cores do, with weights as stored and prepacked. */
static int known_block_count(void)
{
    return gguf_file_count(false);
}

static void known_block_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", gguf_file_at(false, index)->name);
}

DEVICE_EACH(ParityGguf, IdentityTimesKnownBlocks, known_block_count, known_block_name)
{
    static const char *const with_bf16[] = {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
    const gguf_file *file = gguf_file_at(false, index);
    gguf_vectors v;
    known_weights w;
    if (!gguf_vectors_read(file, &v))
        SKIP("no vectors: QDNN_VECTORS_DIR names no folder with gguf/%s.txt", file->name);
    for (int prepacked = 0; prepacked < 2 && CHECK(v.lines > 0); prepacked++) {
        qdnnHandle_t handle = device_begin(with_bf16[(index + prepacked) % 5], index, "all");
        if (make_known_weights(&v, &w) && handle)
            run_identity(handle, file, &w, (size_t)(w.n * w.of_row) * v.block_bytes, prepacked);
        free(w.blocks);
        free(w.values);
        device_end(handle);
    }
    gguf_vectors_free(&v);
}

/* ---- What is refused ---- */

static void check_refused(qdnnBlockFormat_t block, int64_t columns, qdnnStatus_t expected, const char *words)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    size_t bytes = 77;
    char text[1024];
    describe(block, QDNN_DATA_F16, 3, columns, &tensor, &quant);
    CHECK_EQ_I64(qdnnGetQuantizedSizes(quant, tensor, &bytes, NULL, NULL), expected);
    qdnnGetLastErrorString(text, sizeof text);
    CHECK_HAS(text, words);
    CHECK_EQ_U64(bytes, 77);
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
}

TEST_CASE(ParityGguf, RowsThatAreNotWholeBlocksAreRefused)
{
    const qdnnStatus_t shape = QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    check_refused(QDNN_BLOCK_Q4_0, 33, shape,
                  "the last dimension is 33; gguf_q4_0 has blocks of 32 elements along it: "
                  "it must be a multiple of 32");
    check_refused(QDNN_BLOCK_Q4_K, 128, shape, "it must be a multiple of 256");
    check_refused(QDNN_BLOCK_NVFP4, 96, shape, "it must be a multiple of 64");
}

/* Formats that are only read have no quantize, and none has scales of their own to compute. */
DEVICE_CASE(ParityGguf, OperationsThatThereAreNot)
{
    qdnnTensorDescriptor_t tensor = NULL;
    qdnnQuantDescriptor_t quant = NULL;
    qdnnPlan_t plan = NULL;
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_90", 0, "all");
    describe(QDNN_BLOCK_IQ4_XS, QDNN_DATA_F32, 2, 256, &tensor, &quant);
    CHECK_EQ_I64(qdnnCreateQuantizePlan(handle, tensor, quant, &plan), QDNN_STATUS_NOT_SUPPORTED);
    CHECK_EQ_I64(qdnnCreateScalePlan(handle, tensor, quant, &plan), QDNN_STATUS_NOT_SUPPORTED);
    char text[1024];
    qdnnGetLastErrorString(text, sizeof text);
    CHECK_HAS(text, "gguf_iq4_xs does not have this operation; it has: quant.gguf_iq4_xs.dequantize");
    qdnnDestroyTensorDescriptor(tensor);
    qdnnDestroyQuantDescriptor(quant);
    device_end(handle);
}
