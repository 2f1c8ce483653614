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
    {"Products", "MUL_MAT", "type_a=q4_K", "MUL_MAT(type_a=q4_K,type_b=f32"},
    {"Rows", "GET_ROWS", "", "GET_ROWS(type=q8_0"},
    {"Softmax", "SOFT_MAX", "ne=\\[16,16,1,1\\]", "SOFT_MAX(type=f32"},
    {"Largest", "TOP_K", "ne=\\[12,", "TOP_K(type=f32"},
    {"Copies", "CPY", "", "CPY(type_src=f32,type_dst=q8_0"},
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
