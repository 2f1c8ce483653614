/* ptx_describe: what the builder reports about a kernel for its launch. */
#include "ptxgen/ptx.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static void close_builder(ptx_builder *b, bool expected)
{
    char *text = NULL;
    ptx_error error;
    CHECK(ptx_close(b, &text, &error) == expected);
    free(text);
}

TEST_CASE(PtxInfo, ParametersLieAtMultiplesOfTheirSize)
{
    static const struct {
        ptx_type type;
        unsigned offset, size;
    } rows[] = {{PTX_U8, 0, 1},  {PTX_F16, 2, 2},  {PTX_U8, 4, 1},    {PTX_F32, 8, 4},
                {PTX_U8, 12, 1}, {PTX_U64, 16, 8}, {PTX_BF16, 24, 2}, {PTX_S32, 28, 4}};
    enum { N = sizeof rows / sizeof rows[0] };
    ptx_builder *b = ptx_open(ptx_sm_find("sm_90"), NULL);
    ptx_kernel(b, "k");
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        ptx_param(b, rows[i].type, name);
    }
    ptx_param_ptr(b, "data", 16);
    ptx_info info;
    ptx_describe(b, &info);
    CHECK_EQ_I64(info.n_params, N + 1);
    for (int i = 0; i < N; i++) {
        CHECK_EQ_I64(info.params[i].type, rows[i].type);
        CHECK_EQ_U32(info.params[i].offset, rows[i].offset);
        CHECK_EQ_U32(info.params[i].size, rows[i].size);
        CHECK(!info.params[i].pointer);
    }
    CHECK_EQ_STR(info.params[N].name, "data");
    CHECK(info.params[N].pointer);
    CHECK_EQ_U32(info.params[N].offset, 32);
    CHECK_EQ_U32(info.params[N].align, 16);
    close_builder(b, true);
}

TEST_CASE(PtxInfo, SharedMemoryAndVersion)
{
    ptx_info info;
    ptx_builder *b = ptx_open(ptx_sm_find("sm_90"), NULL);
    ptx_kernel(b, "first");
    ptx_shared(b, "a", PTX_U8, 5, 1);
    ptx_shared(b, "b", PTX_F32, 4, 16);
    ptx_shared(b, "c", PTX_U64, 1, 8);
    ptx_local(b, "d", PTX_U64, 9, 8);
    ptx_shared_dynamic(b, 16);
    ptx_describe(b, &info);
    CHECK_EQ_U32(info.shared, 40);
    CHECK(info.shared_dynamic);
    CHECK_EQ_I64(info.version, 78);
    ptx_kernel(b, "second"); /* starts anew */
    ptx_describe(b, &info);
    CHECK_EQ_U32(info.shared, 0);
    CHECK_EQ_I64(info.n_params, 0);
    CHECK(!info.shared_dynamic);
    close_builder(b, true);
}

TEST_CASE(PtxInfo, TooManyParametersAreAnError)
{
    ptx_builder *b = ptx_open(ptx_sm_find("sm_90"), NULL);
    ptx_kernel(b, "k");
    for (int i = 0; i <= PTX_INFO_PARAMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        CHECK(ptx_ok(b));
        ptx_param(b, PTX_U32, name);
    }
    CHECK(!ptx_ok(b));
    close_builder(b, false);
}

TEST_CASE(PtxInfo, WithoutABuilderThereIsNothing)
{
    ptx_info info;
    ptx_describe(NULL, &info);
    CHECK_EQ_I64(info.n_params, 0);
    CHECK_EQ_I64(info.version, 0);
    CHECK_EQ_STR(ptx_type_text(PTX_F16X2), "f16x2");
}
