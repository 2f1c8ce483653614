/* Every allocation of the reader fails once: it says so, and nothing is lost. */
#include "base/alloc.h"
#include "files/opened.h"
#include "support/scarce.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static bytes a_gguf(void)
{
    gguf_maker g = {0};
    gguf_entry_string(&g, "general.name", "x");
    gguf_tensor(&g, "w", 0, 1, (const int64_t[]){2}, (const float[]){1, 2}, 8);
    gguf_tensor(&g, "v", 0, 1, (const int64_t[]){2}, (const float[]){1, 2}, 8);
    return gguf_make(&g);
}

static bytes a_checkpoint(void)
{
    st_maker s = {0};
    const uint8_t zeros[64] = {0};
    const char *state = "{\"blocksize\":64,\"shape\":[2,8],\"nested_blocksize\":256,\"nested_offset\":0.5}";
    st_metadata(&s, "{\"quantization_config\":\"{\\\"quant_method\\\":\\\"gptq\\\",\\\"bits\\\":4}\"}");
    st_add(&s, "a.qweight", "I32", 2, 8, zeros, 64);
    st_add(&s, "a.qzeros", "I32", 1, 1, zeros, 4);
    st_add(&s, "a.scales", "F16", 1, 8, zeros, 16);
    st_add(&s, "b.weight", "U8", 8, 1, zeros, 8);
    st_add(&s, "b.weight.absmax", "U8", 1, 0, zeros, 1);
    st_add(&s, "b.weight.nested_absmax", "F32", 1, 0, zeros, 4);
    st_add(&s, "b.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(state), 0, state,
           strlen(state));
    return st_make(&s);
}

static void fail_each(bytes b, const char *name)
{
    opened o;
    char path[1024];
    opened_make(&o, b, name);
    snprintf(path, sizeof path, "%s/%s", o.dir, name);
    long failed = 0;
    for (;; failed++) {
        scarce memory = {.fails = failed};
        qdnnFile_t file = NULL;
        alloc_use(scarce_resize, &memory);
        qdnnStatus_t status = qdnnOpenFile(path, &file);
        bool ran_out = memory.asked > memory.fails;
        CHECK_EQ_I64(status, ran_out ? QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED : QDNN_STATUS_SUCCESS);
        qdnnCloseFile(file);
        alloc_use(NULL, NULL);
        CHECK_EQ_I64(memory.living, 0);
        if (!ran_out || status == QDNN_STATUS_SUCCESS)
            break;
    }
    CHECK(failed > 10);
    opened_close(&o);
}

TEST_CASE(FilesMemory, EveryAllocationOfGgufFails)
{
    fail_each(a_gguf(), "m.gguf");
}

TEST_CASE(FilesMemory, EveryAllocationOfACheckpointFails)
{
    fail_each(a_checkpoint(), "model.safetensors");
}
