/* Weights that do not fit together: each says what is wrong, and the rest of the file is read. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* "name type rows columns bytes; ...": tensors of zeros; 0 columns: one dimension; rows of -1: a single number. */
static bytes file_of(const char *tensors)
{
    static const uint8_t zeros[4096];
    st_maker s = {0};
    char name[64], type[16];
    int rows, columns, n, used;
    while (sscanf(tensors, " %63s %15s %d %d %d%n", name, type, &rows, &columns, &n, &used) == 5) {
        if (rows < 0)
            st_tensor(&s, name, type, 0, NULL, zeros, (size_t)n);
        else
            st_add(&s, name, type, rows, columns, zeros, (size_t)n);
        tensors += used;
        tensors += *tensors == ';';
    }
    return st_make(&s);
}

#define GPTQ_SCALES "l.scales F16 1 8 16; "
#define GPTQ_ZEROS  "l.qzeros I32 1 1 4; "
static const struct {
    const char *name, *tensors, *config, *says;
} problems[] = {
    {"NoScales", "l.qweight I32 2 8 64; " GPTQ_ZEROS, "", "the tensor 'l.scales' is missing"},
    {"NoZeros", "l.qweight I32 2 8 64; " GPTQ_SCALES, "", "the tensor 'l.qzeros' is missing"},
    {"NotAMatrix", "l.qweight I32 16 0 64; " GPTQ_SCALES GPTQ_ZEROS, "",
     "qweight, scales and qzeros must be matrices"},
    {"NeitherShape", "l.qweight I32 2 3 24; " GPTQ_SCALES GPTQ_ZEROS, "",
     "qweight [2, 3] and scales [1, 8] are neither GPTQ's nor AWQ's"},
    {"AwqShapeWithRest", "l.qweight I32 16 1 64; l.scales F16 1 12 24; l.qzeros I32 1 1 4", "",
     "qweight [16, 1] and scales [1, 12] are neither GPTQ's nor AWQ's"},
    {"AwqShapeInGptq", "l.qweight I32 16 1 64; " GPTQ_SCALES GPTQ_ZEROS,
     "{\"quant_method\":\"gptq\",\"bits\":4}",
     "qweight [16, 1] and scales [1, 8] are neither GPTQ's nor AWQ's"},
    {"GptqShapeInAwq", "l.qweight I32 2 8 64; " GPTQ_SCALES GPTQ_ZEROS,
     "{\"quant_method\":\"awq\",\"bits\":4}",
     "qweight [2, 8] and scales [1, 8] are neither GPTQ's nor AWQ's"},
    {"FiveBits", "l.qweight I32 5 32 640; l.scales F16 1 32 64; l.qzeros I32 1 5 20",
     "{\"quant_method\":\"gptq\",\"bits\":5}", "GPTQ with 5 bits; 2, 3, 4 and 8 are supported"},
    {"WrongRows", "l.qweight I32 2 8 64; l.g_idx I32 20 0 80; " GPTQ_SCALES GPTQ_ZEROS,
     "{\"quant_method\":\"gptq\",\"bits\":4}", "2 rows of words do not hold 20 codes of 4 bits"},
    {"WrongZeros", "l.qweight I32 2 8 64; l.qzeros I32 2 1 8; " GPTQ_SCALES,
     "{\"quant_method\":\"gptq\",\"bits\":4}",
     "'l.qzeros' does not have the shape of 1 groups of 8 packed zeros"},
    {"WrongGroups", "l.qweight I32 2 8 64; l.scales F16 3 8 48; l.qzeros I32 3 1 12",
     "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8}",
     "3 groups along 16 elements do not fit a group size of 8"},
    {"ScaleType", "l.qweight I32 2 8 64; l.scales I16 1 8 16; " GPTQ_ZEROS,
     "{\"quant_method\":\"gptq\",\"bits\":4}", "'l.scales' is of type I16; scales are F32, F16"},
    {"Gemv", "l.qweight I32 16 1 64; " GPTQ_SCALES GPTQ_ZEROS,
     "{\"quant_method\":\"awq\",\"version\":\"gemv\"}", "convert the checkpoint to version \"gemm\""},
    {"AwqBits", "l.qweight I32 16 1 64; " GPTQ_SCALES GPTQ_ZEROS, "{\"quant_method\":\"awq\",\"bits\":8}",
     "AWQ with 8 bits; only 4 is supported"},
    {"PackedAlone", "l.weight_packed I32 2 2 16", "", "the tensor 'l.weight_scale' is missing"},
    {"PackedShape", "l.weight_packed I32 2 2 16; l.weight_scale BF16 2 1 4; l.weight_shape I64 3 0 24", "",
     "'l.weight_shape' must be two integers"},
    {"PackedZeroShape", "l.weight_packed I32 2 2 16; l.weight_scale BF16 2 1 4; l.weight_shape I64 2 0 16",
     "", "'l.weight_shape' has a size of 0"},
    {"PackedZeros", "l.weight_packed I32 2 2 16; l.weight_scale BF16 2 1 4; l.weight_zero_point I8 2 1 2", "",
     "'l.weight_zero_point' is not packed into I32 words"},
    {"PackedType", "l.weight_packed I64 2 2 32; l.weight_scale BF16 2 1 4", "",
     "packed weights of type I64; I32 and U8 are supported"},
    {"PackedGlobal",
     "l.weight_packed U8 2 8 16; l.weight_scale F8_E4M3 2 1 2; l.weight_global_scale F32 2 0 8", "",
     "'l.weight_global_scale' must be one F32"},
    {"PackedFp4Scales",
     "l.weight_packed U8 2 8 16; l.weight_scale F8_E4M3 2 2 4; l.weight_global_scale F32 1 0 4", "",
     "does not have one scale per 16 elements"},
    {"ModelOptAlone", "l.weight U8 2 8 16; l.weight_scale_2 F32 -1 0 4", "",
     "the tensor 'l.weight_scale' is missing"},
    {"ModelOptScales", "l.weight U8 2 8 16; l.weight_scale F32 2 1 8; l.weight_scale_2 F32 -1 0 4", "",
     "does not have one F8_E4M3 scale per 16 elements"},
    {"ModelOptGlobal", "l.weight U8 2 8 16; l.weight_scale F8_E4M3 2 1 2; l.weight_scale_2 F32 2 0 8", "",
     "'l.weight_scale_2' must be one F32"},
    {"Fp8Scales", "l.weight F8_E4M3 4 8 32; l.weight_scale F32 3 1 12", "",
     "'l.weight_scale' has scales neither per tensor"},
    {"Int8Alone", "l.weight I8 4 8 32", "", "the tensor 'l.weight_scale' is missing"},
    {"Int8Scb", "l.weight I8 4 8 32; l.SCB F32 4 0 16", "", "its scales are SCB / 127"},
    {"Int8Zeros", "l.weight I8 4 8 32; l.weight_scale F32 4 1 16; l.weight_zero_point I32 4 1 16", "",
     "'l.weight_zero_point' does not have one I8 per scale"},
    {"GptOssScales", "l_blocks U8 0 0 0", NULL, NULL},
    {"BnbAlone", "l.weight U8 8 1 8; l.weight.quant_state.bitsandbytes__nf4 U8 2 0 2", "",
     "the tensor 'l.weight.absmax' is missing"},
};

TEST_ROWS(FilesProblems, AreSaid, problems)
{
    opened o = {0};
    qdnnFileWeight_t w;
    char config[512];
    if (!problems[index].says) { /* without scales of its shape it is just bytes */
        opened_make(&o, file_of(problems[index].tensors), "model.safetensors");
        qdnnFileInfo_t info;
        if (opened_open(&o, "") && CHECK(!qdnnGetFileInfo(o.file, &info)))
            CHECK_EQ_I64(info.weights, 0);
        opened_close(&o);
        return;
    }
    opened_make(&o, file_of(problems[index].tensors), "model.safetensors");
    snprintf(config, sizeof config, "{\"quantization_config\":%s}",
             *problems[index].config ? problems[index].config : "null");
    text_write(config, o.dir, "config.json");
    if (opened_open(&o, "") && CHECK(!qdnnGetFileWeight(o.file, 0, &w))) {
        CHECK_HAS(w.problem ? w.problem : "(no problem)", problems[index].says);
        CHECK(w.quantized);
        CHECK_EQ_I64(w.settings, 0);
    }
    opened_close(&o);
}

/* bitsandbytes: what its JSON says. */
static const struct {
    const char *name, *state, *says;
} states[] = {
    {"NotJson", "{", "is not JSON"},
    {"NoShape", "{\"blocksize\":64}", "the quant_state has no shape"},
    {"TextShape", "{\"blocksize\":64,\"shape\":[\"a\"]}", "the quant_state's shape has 'a'"},
    {"HugeShape", "{\"blocksize\":64,\"shape\":[1000000000000,1000000000000]}",
     "the quant_state's shape is too large"},
    {"NoBlock", "{\"shape\":[2,8]}", "the quant_state has no blocksize"},
    {"TooFewCodes", "{\"blocksize\":64,\"shape\":[2,9]}", "8 bytes of codes for 18 elements of 4 bits"},
    {"TooFewScales", "{\"blocksize\":4,\"shape\":[2,8]}", "does not have one F32 or U8 for each of 4 blocks"},
};

TEST_ROWS(FilesProblems, OfBitsandbytes, states)
{
    opened o;
    qdnnFileWeight_t w;
    st_maker s = {0};
    const uint8_t zeros[64] = {0};
    st_add(&s, "l.weight", "U8", 8, 1, zeros, 8);
    st_add(&s, "l.weight.absmax", "F32", 1, 0, zeros, 4);
    st_add(&s, "l.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(states[index].state), 0,
           states[index].state, strlen(states[index].state));
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && CHECK(!qdnnGetFileWeight(o.file, 0, &w)))
        CHECK_HAS(w.problem ? w.problem : "(no problem)", states[index].says);
    opened_close(&o);
}

TEST_CASE(FilesProblems, AnotherTableThanNf4)
{
    opened o;
    qdnnFileWeight_t w;
    st_maker s = {0};
    const uint8_t zeros[64] = {0};
    const char *state = "{\"blocksize\":64,\"shape\":[2,8]}";
    st_add(&s, "l.weight", "U8", 8, 1, zeros, 8);
    st_add(&s, "l.weight.absmax", "F32", 1, 0, zeros, 4);
    st_add(&s, "l.weight.quant_map", "F32", 16, 0, zeros, 64);
    st_add(&s, "l.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(state), 0, state,
           strlen(state));
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && CHECK(!qdnnGetFileWeight(o.file, 0, &w)))
        CHECK_HAS(w.problem ? w.problem : "", "element 0 of 'l.weight.quant_map' is 0; NF4 has -1 there");
    opened_close(&o);
}

/* A g_idx that names a group that is not there. */
TEST_CASE(FilesProblems, GroupsOutOfRange)
{
    opened o;
    qdnnFileWeight_t w;
    st_maker s = {0};
    const uint8_t zeros[64] = {0};
    int32_t index_of[16] = {0};
    index_of[9] = 1;
    st_add(&s, "l.qweight", "I32", 2, 8, zeros, 64);
    st_add(&s, "l.qzeros", "I32", 1, 1, zeros, 4);
    st_add(&s, "l.scales", "F16", 1, 8, zeros, 16);
    st_add(&s, "l.g_idx", "I32", 16, 0, index_of, 64);
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && CHECK(!qdnnGetFileWeight(o.file, 0, &w)))
        CHECK_HAS(w.problem ? w.problem : "", "element 9 of 'l.g_idx' is 1; there are 1 groups");
    opened_close(&o);
}

/* A dimension of 0 lets another be anything: sizes are looked at before they are multiplied. */
TEST_CASE(FilesProblems, HugeBesideNothing)
{
    opened o;
    qdnnFileWeight_t w;
    st_maker s = {0};
    const int64_t huge[2] = {INT64_C(1) << 59, 0}, wide[2] = {0, INT64_C(1) << 59};
    st_tensor(&s, "l.qweight", "I32", 2, huge, NULL, 0);
    st_tensor(&s, "l.qzeros", "I32", 2, wide, NULL, 0);
    st_tensor(&s, "l.scales", "F16", 2, wide, NULL, 0);
    st_metadata(&s,
                "{\"quantization_config\":\"{\\\"quant_method\\\":\\\"gptq\\\",\\\"bits\\\":2147483646}\"}");
    opened_make(&o, st_make(&s), "model.safetensors");
    if (opened_open(&o, "") && CHECK(!qdnnGetFileWeight(o.file, 0, &w)))
        CHECK_HAS(w.problem ? w.problem : "(no problem)", "must be matrices");
    opened_close(&o);
}
