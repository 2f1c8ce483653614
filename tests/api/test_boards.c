/* The number of multiprocessors of a device reaches whoever chooses a product's kernel, and devices of one SM share the kernels that do not
 * depend on it. */
#include <stdio.h>
#include <string.h>

#include "device/small_product.h"
#include "kernels/kernels.h"
#include "scene.h"

enum { M = 3, N = 8, K = 64 };

typedef struct made {
    char settings[1024], choice[320];
    uint64_t blocks;
} made;

static bool make(const char *device, qdnnMatmulAlgorithm_t algorithm, made *out)
{
    small_product p = {0};
    qdnnHandle_t handle = NULL;
    qdnnPlanInfo_t info = {.size = sizeof info};
    vm_begin(NULL);
    bool ok = OK(qdnnCreateOn(&handle, device)) &&
              small_product_begin(&p, handle, (const int64_t[]){M, N, K}, 0,
                                  (small_weights){QDNN_WEIGHTS_GGUF_Q8_0, 0, false});
    if (ok && algorithm == QDNN_MATMUL_TENSOR)
        ok = OK(qdnnSetTensorDescriptor(p.x, QDNN_DATA_F16, 2, (const int64_t[]){M, K}, NULL));
    ok = ok && small_product_set(&p, QDNN_MATMUL_ALGORITHM, algorithm) && small_product_plan(&p) &&
         OK(qdnnGetPlanInfo(p.plan, &info));
    if (ok) {
        *out = (made){.blocks = info.blocks};
        snprintf(out->settings, sizeof out->settings, "%s", info.settings);
        snprintf(out->choice, sizeof out->choice, "%s", info.choice);
    }
    small_product_end(&p);
    if (handle)
        OK(qdnnDestroy(handle));
    vm_end();
    return ok;
}

static const struct {
    const char *name;
    qdnnMatmulAlgorithm_t algorithm;
} algorithms[] = {{"exact", QDNN_MATMUL_EXACT}, {"tensor", QDNN_MATMUL_TENSOR}};

TEST_ROWS(Boards, PlansKnowTheMultiprocessors, algorithms)
{
    made one, other;
    REQUIRE(make("vm:a10", algorithms[index].algorithm, &one) &&
            make("vm:rtx3090", algorithms[index].algorithm, &other));
    CHECK_HAS(one.choice, "for up to 3 rows on 72 multiprocessors");
    CHECK_HAS(other.choice, "for up to 3 rows on 82 multiprocessors");
    CHECK_EQ_STR(other.settings, one.settings);
    CHECK_EQ_U64(other.blocks, one.blocks);
}

/* The name of the kernel that a product gets: bundles and dumps have it, and it is as good as the specification. */
static void name_kernel(const kernel_row *row, uint64_t m, int multiprocessors, char *name, size_t size)
{
    kernel_spec spec = kernel_spec_default();
    const kernel_problem problem = {.rows = 4096,
                                    .columns = 4096,
                                    .m = m,
                                    .x_stride = 4096,
                                    .y_stride = 4096,
                                    .multiprocessors = multiprocessors};
    char error[256];
    REQUIRE(kernel_spec_set_words(row, &spec, "data=f16 output=f16", error, sizeof error));
    kernel_product_choose(row, &problem, &spec);
    spec = kernel_spec_normal(row, &spec);
    kernel_file_name(row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_80"), name, size);
}

/* A name without how outputs are divided. */
static void leave_split_out(char *name)
{
    char *split = strstr(name, "_split");
    if (!split)
        return;
    char *rest = split + strlen("_split");
    rest += strspn(rest, "0123456789");
    memmove(split, rest, strlen(rest) + 1);
}

/* Of exact products only how the outputs of few rows are divided depends on the device; where another's shape does, its name must,
 * too, and this list gets shorter. (The shapes of products in mode tensor do.) */
TEST_CASE(Boards, KernelsAreShared)
{
    static const uint64_t rows[] = {1, 16, 64, 4096};
    int divided = 0;
    for (int i = 0; i < kernel_row_count; i++)
        for (size_t r = 0;
             kernel_operation_of(&kernel_rows[i]) == KERNEL_MATMUL && r < sizeof rows / sizeof *rows; r++) {
            char one[512], other[512];
            name_kernel(&kernel_rows[i], rows[r], 108, one, sizeof one);
            name_kernel(&kernel_rows[i], rows[r], 16, other, sizeof other);
            divided += strcmp(one, other) != 0;
            if (rows[r] <= 16) {
                leave_split_out(one);
                leave_split_out(other);
            }
            CHECK_EQ_STR(other, one);
        }
    CHECK(divided >= 30);
}
