/* Checks at their exact limits: legal calls that are almost wrong, and wrong ones that are almost legal. */
#include <string.h>

#include "scene.h"

typedef struct objects {
    qdnnHandle_t handle;
    qdnnTensorDescriptor_t x, w, y;
    qdnnQuantDescriptor_t quant;
    qdnnMatmulDescriptor_t matmul;
} objects;

static bool begin(objects *o)
{
    *o = (objects){0};
    vm_begin(NULL);
    return basics_create(&o->handle, &o->x, &o->quant) && OK(qdnnCreateTensorDescriptor(&o->w)) &&
           OK(qdnnCreateTensorDescriptor(&o->y)) && OK(qdnnCreateMatmulDescriptor(&o->matmul));
}

static void end(objects *o)
{
    OK(qdnnDestroyTensorDescriptor(o->w));
    OK(qdnnDestroyTensorDescriptor(o->y));
    OK(qdnnDestroyMatmulDescriptor(o->matmul));
    basics_destroy(o->handle, o->x, o->quant);
    vm_end();
}

/* The leading dimensions of x are rows if they have one stride between them. */
static const struct {
    const char *name;
    int64_t dims[3], strides[3];
    bool ok;
} rows_of_x[] = {
    {"packed", {2, 3, 8}, {24, 8, 1}, true},
    {"gaps", {2, 3, 8}, {30, 10, 1}, true},
    {"gaps between matrices only", {2, 3, 8}, {32, 8, 1}, false},
    {"matrices too close", {2, 3, 8}, {16, 8, 1}, false},
    {"one row each", {2, 1, 8}, {32, 5, 1}, true},
    {"one matrix", {1, 3, 8}, {7, 10, 1}, true},
    {"elements apart", {2, 3, 8}, {48, 16, 2}, false},
};

TEST_ROWS(ApiExactLimits, RowsOfX, rows_of_x)
{
    NEED_PTXVM;
    objects o;
    qdnnPlan_t plan = NULL;
    REQUIRE(begin(&o));
    const int64_t m = rows_of_x[index].dims[0] * rows_of_x[index].dims[1];
    const int64_t y[3] = {rows_of_x[index].dims[0], rows_of_x[index].dims[1], 4};
    OK(qdnnSetTensorDescriptor(o.x, QDNN_DATA_F32, 3, rows_of_x[index].dims, rows_of_x[index].strides));
    OK(qdnnSetTensorDescriptor(o.w, QDNN_DATA_F32, 2, (const int64_t[]){4, 8}, NULL));
    OK(qdnnSetTensorDescriptor(o.y, QDNN_DATA_F32, 3, y, NULL));
    OK(qdnnSetQuantWeights(o.quant, QDNN_WEIGHTS_INT4_ROWS, 0));
    qdnnStatus_t status = qdnnCreateMatmulPlan(o.handle, o.matmul, o.x, o.w, o.quant, o.y, &plan);
    CHECK(m > 0);
    CHECK_EQ_I64(status == QDNN_STATUS_SUCCESS, rows_of_x[index].ok);
    OK(qdnnDestroyPlan(plan));
    end(&o);
}

/* The number of a row of a grouped product is a signed 32-bit integer. */
TEST_CASE(ApiExactLimits, RowsOfAGroupedProduct)
{
    NEED_PTXVM;
    objects o;
    REQUIRE(begin(&o));
    OK(qdnnSetTensorDescriptor(o.w, QDNN_DATA_F32, 3, (const int64_t[]){2, 4, 8}, NULL));
    OK(qdnnSetQuantWeights(o.quant, QDNN_WEIGHTS_INT4_ROWS, 0));
    OK(qdnnSetMatmulAttribute(o.matmul, QDNN_MATMUL_EXPERTS, 2));
    OK(qdnnSetMatmulAttribute(o.matmul, QDNN_MATMUL_ALGORITHM, QDNN_MATMUL_EXACT));
    for (int64_t beyond = 0; beyond < 2; beyond++) {
        qdnnPlan_t plan = NULL;
        const int64_t m = INT32_MAX + beyond;
        OK(qdnnSetTensorDescriptor(o.x, QDNN_DATA_F32, 2, (const int64_t[]){m, 8}, NULL));
        OK(qdnnSetTensorDescriptor(o.y, QDNN_DATA_F32, 2, (const int64_t[]){m, 4}, NULL));
        qdnnStatus_t status = qdnnCreateMatmulPlan(o.handle, o.matmul, o.x, o.w, o.quant, o.y, &plan);
        bool of_groups = status && strstr(last_sentence(), "a grouped product takes fewer than 2^31");
        CHECK_EQ_I64(of_groups, beyond);
        OK(qdnnDestroyPlan(plan));
    }
    end(&o);
}

/* A table without rows has nothing to look up; without results that is no mistake. */
TEST_CASE(ApiExactLimits, TablesWithoutRows)
{
    NEED_PTXVM;
    objects o;
    REQUIRE(begin(&o));
    OK(qdnnSetQuantWeights(o.quant, QDNN_WEIGHTS_INT4_BYTES, 32));
    for (int64_t table = 0; table < 2; table++)
        for (int64_t rows = 0; rows < 2; rows++) {
            qdnnPlan_t plan = NULL;
            test_push_note("%d rows of a table of %d", (int)rows, (int)table);
            OK(qdnnSetTensorDescriptor(o.x, QDNN_DATA_F32, 2, (const int64_t[]){table, 32}, NULL));
            OK(qdnnSetTensorDescriptor(o.y, QDNN_DATA_F32, 2, (const int64_t[]){rows, 32}, NULL));
            CHECK_STATUS_IS(qdnnCreateDequantizeRowsPlan(o.handle, o.x, o.quant, o.y, &plan),
                            !table && rows ? QDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH : QDNN_STATUS_SUCCESS);
            OK(qdnnDestroyPlan(plan));
            test_pop_note();
        }
    end(&o);
}

/* Every offset below the size of an element is refused, and the size itself is not. */
TEST_CASE(ApiExactLimits, Alignment)
{
    NEED_PTXVM;
    objects o;
    qdnnPlan_t plan = NULL;
    char *x = NULL, *scale = NULL;
    REQUIRE(begin(&o));
    OK(qdnnSetTensorDescriptor(o.x, QDNN_DATA_F32, 1, (const int64_t[]){32}, NULL));
    OK(qdnnCreateScalePlan(o.handle, o.x, o.quant, &plan));
    OK(qdnnMalloc(o.handle, (void **)&x, 256));
    OK(qdnnMalloc(o.handle, (void **)&scale, 256));
    OK(qdnnFill(o.handle, x, 0, 256));
    for (int i = 0; i <= 4; i++) {
        const qdnnBinding_t bound[] = {{QDNN_OPERAND_X, x + i, 0}, {QDNN_OPERAND_SCALE, scale, 0}};
        CHECK_STATUS_IS(qdnnExecute(o.handle, plan, bound, 2, NULL, 0),
                        i % 4 ? QDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER : QDNN_STATUS_SUCCESS);
    }
    OK(qdnnSynchronize(o.handle));
    OK(qdnnFree(o.handle, x));
    OK(qdnnFree(o.handle, scale));
    OK(qdnnDestroyPlan(plan));
    end(&o);
}
