/* The backend for ggml, judged by ggml's own test program, which compares each operation with the CPU backend. Both come
 * from outside: QDNN_GGML_TESTS names the program, and the backend is built where QDNN_GGML (CMake) names ggml's sources. */
#include "support/process.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKEND QDNN_BINARY_DIR "/bindings/ggml/libggml-qdnn.so"

/* An operation of the program, and some of its cases where all of them would take long; and what must be among the cases that
 * were computed, so that a backend which declines everything fails. */
static const struct {
    const char *name, *operation, *some, *has;
} operations[] = {
    {"Products", "MUL_MAT", "type_a=q4_K,type_b=f32,m=16,n=(1|8),k=256", "MUL_MAT(type_a=q4_K,type_b=f32"},
    {"PermutedProducts", "MUL_MAT", "type_a=f16,type_b=f32,m=16,n=16.*per=\\[0,2,1,3\\]", "per=[0,2,1,3]"},
    {"ColumnsAsRows", "MUL_MAT", "m=1056,n=1,k=(67|128),bs=\\[1,1\\],nr=\\[4,1\\],per=\\[0,2,1,3\\]",
     "k=128"},
    {"Experts", "MUL_MAT_ID", "type_a=q4_0,type_b=f32,n_mats=4,n_used=2,b=1,m=512,n=1,",
     "MUL_MAT_ID(type_a=q4_0"},
    {"Attention", "FLASH_ATTN_EXT", "hsk=64,hsv=64,nh=4,nr23=\\[1,3\\],kv=113,nb=3,.*type_K=(f16|q8_0)",
     "type_K=q8_0"},
    {"Norms", "RMS_NORM", "", "RMS_NORM(type=f32"},
    {"LayerNorms", "NORM", "ne=\\[64,5,4,3\\]", "NORM(type=f32"},
    {"Rope", "ROPE", "ne_a=\\[128,(32|40),2,1\\],n_dims=(64|128),.*ff=1", "ROPE(type=f32"},
    {"Sums", "ADD", "type=f32,ne=\\[10,5,4,3\\]", "nr=[1,2,2,2]"},
    {"Quotients", "DIV", "type=f32,ne=\\[10,5,4,3\\]", "DIV(type=f32"},
    {"Gated", "SWIGLU", "", "SWIGLU(type=f16"},
    {"GatedWithLimit", "SWIGLU_OAI", "", "SWIGLU_OAI(type=f32"},
    {"Functions", "GELU_ERF", "", "GELU_ERF(type=f32"},
    {"Logarithms", "SOFTPLUS", "", "SOFTPLUS(type=f32"},
    {"Sines", "SIN", "", "SIN(type=f32"},
    {"RowSums", "SUM_ROWS", "", "SUM_ROWS(type=f32"},
    {"Rows", "GET_ROWS", "type=(f16|q8_0|q4_K|i32),n=256,m=5,r=4,be1=(1|7),", "GET_ROWS(type=q8_0"},
    {"WrittenRows", "SET_ROWS", "type_src=f32,type_dst=(f16|q8_0|q4_0).*nr23=\\[2,3\\]",
     "SET_ROWS(type_src=f32,type_dst=q8_0"},
    {"Softmax", "SOFT_MAX", "ne=\\[16,(2|16),", "max_bias=8"},
    {"Largest", "TOP_K", "ne=\\[12,", "TOP_K(type=f32"},
    {"Sorted", "ARGSORT", "ne=\\[(3|8|16|60),", "order=0"},
    {"Copies", "CPY", "type_src=(f32|f16|q8_0),type_dst=(f32|f16|q8_0),", "CPY(type_src=f32,type_dst=q8_0"},
    {"Joined", "CONCAT", "type=(i32|q8_0),", "CONCAT(type=q8_0"},
    {"Repeated", "REPEAT", "", "REPEAT(type=f32"},
    {"Padded", "PAD", "ne_a=\\[11,22,33,44\\],.*tfrm=(0|2)", "circular=1"},
    {"Rolled", "ROLL", "", "ROLL(shift0=3"},
    {"Triangles", "TRI", "", "tri_type=3"},
    {"Diagonals", "DIAG", "", "DIAG(type=f32"},
    {"CausalMasks", "DIAG_MASK_INF", "", "DIAG_MASK_INF(type=f32"},
    {"Ranges", "ARANGE", "", "ARANGE(type=f32"},
    {"RunningSums", "CUMSUM", "ne=\\[(10|255|1023),5,4,3\\]", "CUMSUM(type=f32,ne=[1023"},
    {"StateSpaces", "SSM_SCAN", "K=(3|4)|n_seq_tokens=65", "K=4"},
    {"StateSpacesByElement", "SSM_SCAN", "d_state=16", "d_state=16"},
    {"DeltaRules", "GATED_DELTA_NET", "", "kda=1,K=4"},
    {"ConvolutionsOverTokens", "SSM_CONV", "ne_a=\\[(4|67),1024,4,1\\]", "SSM_CONV(type=f32,ne_a=[67"},
};

TEST_ROWS(GgmlBackend, Operations, operations)
{
    const char *program = getenv("QDNN_GGML_TESTS");
    if (!program || access(BACKEND, R_OK) != 0)
        SKIP("no ggml: QDNN_GGML_TESTS does not name its test-backend-ops, or the backend is not built "
             "(-DQDNN_GGML=)");
    process_result result =
        process_run("QDNN_DEVICE=vm GGML_BACKEND_PATH=%s %s test -b QDNN -o %s -p '%s'", BACKEND, program,
                    operations[index].operation, operations[index].some);
    CHECK_EQ_I64(result.status, 0);
    CHECK_HAS(result.output, operations[index].has);
    CHECK(!strstr(result.output, "FAIL"));
    process_free(&result);
}
